"""Bytes of reports: size, determinism, hostile texts, the policy, and columns as they are packed."""

import base64
import hashlib
import io
import re
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.view.report.decoded import Decoded, varints

import lanescope
from lanescope.trace import TimeBase, TraceBuilder
from lanescope.view.model.view_model import ViewModel
from lanescope.view.report.bundles import CELLS, finest
from lanescope.view.report.pack import Column, Columns, scale_of
from lanescope.view.report.write import filled, write_report

HOSTILE = (
    "</script><script>alert(1)</script>", "<img src=x onerror=alert(2)>", "{{columns}}", "{{script}}", "__proto__",
    "\u202egnp.exe", "\x1b[31mred", "\ud800 lone", "x" * 100_000, "'\"><svg/onload=alert(3)>", "",
)  # fmt: skip
UNSIGNED, SIGNED = st.integers(0, 2**63 - 1), st.integers(-(2**62), 2**62 - 1)


def page(trace, **options):
    out = io.BytesIO()
    write_report(trace, out, **options)
    return out.getvalue()


def small(names, dur=5):
    builder = TraceBuilder(TimeBase())
    lane = builder.track("lane </script> {{title}}", kind="lane", role="core")
    builder.append("slices", track_id=lane, ts=np.arange(len(names)) * 10, dur=[dur] * len(names), name=list(names))
    return builder.finish()


def hard(slices, lanes=400, names=1300):
    """Return a trace of random lengths in ns, with names of which some are much more frequent than others."""
    random = np.random.default_rng(5)
    builder = TraceBuilder(TimeBase())
    device = builder.track("device", kind="group", role="device")
    tracks = [builder.track(f"lane {at}", kind="lane", role="core", parent=device) for at in range(lanes)]
    per = slices // lanes
    texts = [f"kernel_{at}_{at * 7919 % 1000}" for at in range(names)]
    begins, lengths = [], []
    for track in tracks:
        dur, gap = (np.maximum(random.lognormal(8, 1.5, per), 1).astype(np.int64) for _ in range(2))
        end = np.cumsum(gap + dur)
        begins.append(end - dur)
        lengths.append(dur)
        rank = np.minimum(random.zipf(1.3, per) - 1, names - 1)
        builder.append("slices", track_id=track, ts=end - dur, dur=dur, name=[texts[at] for at in rank.tolist()])
    count = per * lanes
    source = np.sort(random.integers(0, count, count // 2))
    ts, dur, owner = np.concatenate(begins), np.concatenate(lengths), np.repeat(tracks, per)
    target = random.integers(0, count, len(source))
    builder.append(
        "flows", kind="dependency", src_track_id=owner[source], src_ts=(ts + dur)[source], src_slice_id=source,
        dst_track_id=owner[target], dst_ts=ts[target], dst_slice_id=target,
    )  # fmt: skip
    return builder.finish()


def check_size(trace, size=2_000_000):
    """Assert that a report keeps its size, uses it if it bundles, and has each slice and all their time."""
    made = page(trace, max_size=size)
    report = Decoded(made)
    assert len(made) <= size
    rows = report.rows()
    assert sum(row["slices"] for row in rows) == len(trace.slices)
    assert sum(row["busy"] for row in rows) == int(trace.slices.values("dur").sum())
    if report.head["bundled"]:
        assert len(made) >= 0.9 * size
    return report


@pytest.mark.full
def test_a_million_slices_fill_two_megabytes_and_have_flows():
    trace = hard(1_000_000)
    report = check_size(trace)
    assert report.head["bundled"]["slices"] > 500_000
    assert report.head["columns"]["f.src"][2] > 100


@pytest.mark.full
def test_ten_million_slices():
    """The decoder of this test takes them all; it needs 6 GB."""
    files = lanescope.simulate("cuda", tiles=10_000_000 // 1584).files
    trace = lanescope.open(next(iter(files.values())))
    assert len(trace.slices) > 9_900_000
    report = check_size(trace)
    assert report.head["bundled"]
    assert not any("critical path" in sentence for sentence in report.head["left_out"])


@pytest.fixture(scope="module")
def large():
    return hard(100_000)


def test_1e5_hard_slices_fit_into_two_megabytes_unbundled(large):
    made = page(large)
    report = Decoded(made)
    assert len(made) <= 2_000_000
    assert report.head["bundled"] is None
    assert report.head["rows"] == 100_000


def test_a_small_size_is_kept_and_what_it_costs_is_stated(large):
    made = page(large, max_size=500_000)
    report, exact = Decoded(made), Decoded(page(large))
    assert len(made) <= 500_000
    bundled = report.head["bundled"]
    rows = report.rows()
    assert sum(row["slices"] for row in rows) == 100_000
    assert sum(row["busy"] for row in rows) == int(large.slices.values("dur").sum())
    assert bundled["slices"] == sum(row["slices"] for row in rows if row["slices"] > 1)
    assert bundled["rows"] == sum(row["slices"] > 1 for row in rows)
    assert any("joined" in sentence for sentence in report.head["left_out"])
    assert report.head["tables"] == exact.head["tables"]
    assert bundled["exact"]
    for begin, end in bundled["exact"]:
        inside = [row for row in rows if row["begin"] < end and row["end"] > begin]
        # A bundle may reach over a window only if none of its slices lies in it.
        assert sum(row["slices"] == 1 for row in inside) == sum(
            (large.slices.values("ts") - int(report.head["lo"]) < end)
            & (large.slices.values("ts") + large.slices.values("dur") - int(report.head["lo"]) > begin)
        )
    for place in (place for finding in report.head["findings"] for place in finding["places"]):
        assert place["row"] is None or rows[place["row"]]["slices"] == 1


def test_the_longest_slice_of_each_name_stays_exact(large):
    report = Decoded(page(large, max_size=500_000))
    longest = {}
    for row in report.rows():
        if row["slices"] == 1:
            longest[row["name"]] = max(longest.get(row["name"], 0), row["end"] - row["begin"])
    table = next(table for table in report.head["tables"] if table["id"] == "names")
    names = [column["name"] for column in table["columns"]]
    for row in table["rows"]:
        assert longest[row[names.index("name")]] == row[names.index("max")]


def test_the_same_trace_gives_the_same_bytes():
    assert page(small(["a", "b", "a"]), title="x") == page(small(["a", "b", "a"]), title="x")


@pytest.mark.parametrize("title", ["</title><script>alert(9)</script>", "{{columns}}", "\ud800", '"><b>', "a&b"])
def test_hostile_texts_are_only_in_the_blocks(title):
    made = page(small(HOSTILE), title=title)
    honest = page(small(["a"] * len(HOSTILE)), title="a")
    assert len(re.findall(rb"<script", made)) == len(re.findall(rb"<script", honest))
    assert b"alert(" not in re.sub(rb"&lt;.*?&gt;", b"", made).replace(title.encode("utf-8", "replace"), b"?") or (
        b"<script>alert" not in made
    )
    report = Decoded(made)
    assert report.head["title"] == title
    assert sorted(report.head["names"]) == sorted(
        name if len(name) <= 400 else f"{name[:200]}…{name[-199:]}" for name in HOSTILE
    )
    assert "The middle of 1 very long name." in report.head["left_out"]


def test_the_policy_has_the_hashes_of_what_is_written():
    made = page(small(["a"]))
    policy = re.search(rb'http-equiv="Content-Security-Policy" content="([^"]*)"', made)[1].decode()
    assert policy.startswith("default-src 'none'; ")
    for content, kind in ((rb'<script type="module">(.*?)</script>', "script"), (rb"<style>(.*?)</style>", "style")):
        written = re.search(content, made, re.DOTALL)[1]
        assert f"{kind}-src 'sha256-{base64.b64encode(hashlib.sha256(written).digest()).decode()}'" in policy
    assert "unsafe" not in policy
    assert not re.search(rb'(?:src|href)="(?:https?:)?//', made)


def test_a_template_is_filled_in_one_pass():
    assert "".join(filled("a {{x}} b {{y}} {{x}}", {"x": "{{y}}", "y": "{{x}}"})) == "a {{y}} b {{x}} {{y}}"


def test_an_empty_trace_has_a_report():
    report = Decoded(page(TraceBuilder(TimeBase()).finish()))
    assert report.rows() == []
    assert report.head["span"] == 1


def test_times_near_the_epoch_of_unix_are_exact():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("lane", kind="lane", role="core")
    begin = 1_700_000_000_123_456_789
    builder.append("slices", track_id=lane, ts=[begin, begin + 7], dur=[3, 11], name=["a", "b"])
    report = Decoded(page(builder.finish()))
    assert report.head["lo"] == str(begin)
    assert [(row["begin"], row["end"]) for row in report.rows()] == [(0, 3), (7, 18)]


def test_the_model_opens_one_chain_to_its_leaves_and_no_more_than_fit():
    builder = TraceBuilder(TimeBase())
    root = builder.track("GPU", kind="group", role="device")
    for number in range(60):
        block = builder.track(f"block {number}", kind="group", role="block", parent=root)
        for name in ("load", "mma"):
            lane = builder.track(name, kind="lane", role="warp", parent=block)
            builder.append("slices", track_id=lane, ts=[0], dur=[5], name=["x"])
    rows = ViewModel(builder.finish()).tree
    opened = [row for row in rows if row.is_open]
    assert [row.depth for row in opened] == [0, 1]
    assert len(rows) == 181


@given(st.lists(UNSIGNED), st.lists(SIGNED), st.lists(st.floats(allow_nan=False)))
def test_columns_come_back(unsigned, signed, floats):
    columns = Columns()
    columns.add([Column("u", "u", np.array(unsigned, np.int64)), Column("z", "z", np.array(signed, np.int64))])
    columns.add([Column("f", "f", np.array(floats, np.float64))])
    data = zlib.decompress(b"".join(columns.pieces()), -15)
    parts = {name: data[at : at + size] for name, (at, size, _, _) in columns.directory().items()}
    assert varints(parts["u"]) == unsigned
    assert [-(value + 1) // 2 if value % 2 else value // 2 for value in varints(parts["z"])] == signed
    assert np.frombuffer(parts["f"], "<f8").tolist() == floats
    assert columns.size == len(base64.b64encode(b"".join(columns.pieces())))


@given(st.lists(st.integers(0, 10**9)), st.integers(1, 1000))
def test_the_scale_divides_all(values, factor):
    found = scale_of(np.array(values, np.int64) * factor, np.array([factor * 6], np.int64))
    assert found % factor == 0
    assert not (np.array(values, np.int64) * factor % found).any()


@pytest.mark.parametrize("most", [0, 1, 100, 724, 5000])
def test_the_finest_cells_that_fit_are_chosen(most):
    assert finest(lambda cells: cells <= most) == min(max(most, 1), CELLS)


@pytest.mark.parametrize("size", [500_000, 900_000])
def test_a_budget_is_used_and_has_flows(large, size):
    """Of flows those that fit are there, the others counted; no tenth of the size is left."""
    made = page(large, max_size=size)
    report = Decoded(made)
    assert 0.9 * size <= len(made) <= size
    flows = report.head["columns"]["f.src"][2]
    assert flows > 100
    assert report.head["flows_left"] == len(large.flows) - flows
    assert any(f"{len(large.flows) - flows:,} of 50,000 flows" in one for one in report.head["left_out"])
    rows = report.rows()
    source = report.sums("f.src")
    for row in (*source, *(source + report.raw("f.dst"))):
        assert rows[row]["slices"] == 1


def test_samples_and_instants_that_do_not_fit_are_counted():
    random = np.random.default_rng(3)
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core", kind="lane", role="core")
    power = builder.track("power", kind="counter", role="counter", unit="W")
    builder.append("slices", track_id=lane, ts=[0], dur=[10**9], name=["x"])
    ts = np.sort(random.integers(0, 10**9, 30_000))
    builder.append("counters", track_id=power, ts=ts, value=random.random(30_000))
    builder.append("instants", track_id=lane, ts=ts, name=[f"mark {at}" for at in range(30_000)])
    trace = builder.finish()
    kept, small = Decoded(page(trace)).head, Decoded(page(trace, max_size=250_000)).head
    assert (kept["counters_left"], kept["instants_left"]) == (0, 0)
    assert (small["counters_left"], small["instants_left"]) == (30_000, 30_000)
    assert small["columns"]["c.ts"][2] == 0
    assert any("30,000 counter samples" in sentence for sentence in small["left_out"])


def test_halves_of_surrogate_pairs_stay_apart():
    names = Decoded(page(small(["\ud800 a", "\udfff a", "? a"]))).head["names"]
    assert names == ["\ud800 a", "\udfff a", "? a"]


def test_a_header_beyond_the_size_is_stated():
    names = [f"{at:05} {'x' * 300} {at * 7919 % 104729}" for at in range(20_000)]
    made = page(small(names), max_size=300_000)
    report = Decoded(made)
    assert len(made) > 300_000
    assert any("larger than was asked for (293.0 KiB)" in one for one in report.head["left_out"]), report.head[
        "left_out"
    ]
    assert max(len(table["rows"]) for table in report.head["tables"]) == 50
    assert any("50 rows of each table" in one for one in report.head["left_out"])
    assert report.head["tables"][0]["total"] == 20_000


def test_a_missing_critical_path_is_stated(monkeypatch):
    from lanescope.view.model import view_model

    trace = small(["a", "b", "c"])
    assert Decoded(page(trace)).head["left_out"] == []
    monkeypatch.setattr(view_model, "_PATH", 2)
    assert "critical path" in Decoded(page(trace)).head["left_out"][0]


def test_beside_the_rows_numbers_stand_for_addresses_and_paths_keep_them():
    builder = TraceBuilder(TimeBase())
    names = ["list 0x5500000c1680, index 1", "list 0x5500000c1700, index 0", "core 0"]
    for name in names:
        builder.append("slices", track_id=builder.track(name, kind="lane", role="core"), ts=0, dur=5, name="load")
    head = Decoded(page(builder.finish())).head
    assert [track[2] for track in head["tracks"]] == names
    assert head["short"] == {"0": "list 0, index 1", "1": "list 1, index 0"}
