"""What a report holds is what the tables hold: decoded from the file alone, for every family and for drawn traces."""

import io
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.view.report.decoded import Decoded

import lanescope
from lanescope.analysis.lane_time import LaneTime
from lanescope.testing.strategies import valid_traces
from lanescope.view.report.write import write_report

FAMILIES = ("aie", "ascend", "cuda", "levelzero")


def decoded(trace, **options):
    out = io.BytesIO()
    write_report(trace, out, **options)
    return Decoded(out.getvalue())


def written(text):
    """Return a text as a report has it: long ones cut in the middle."""
    return text if len(text) <= 400 else f"{text[:200]}…{text[-199:]}"


def agrees(trace, report):
    """Check everything that the columns have against the tables."""
    head, slices = report.head, trace.slices
    low, _ = LaneTime(trace).window
    assert head["lo"] == str(low)
    rows = report.rows()
    extents = LaneTime(trace).extents
    names = list(map(written, slices.values("name").tolist()))
    expected = Counter(
        zip(
            slices.values("track_id").tolist(),
            (extents.begin - low).tolist(),
            (extents.end - low).tolist(),
            names,
            slices.values("id").tolist(),
            strict=True,
        )
    )
    assert Counter((row["track"], row["begin"], row["end"], row["name"], row["id"]) for row in rows) == expected
    for before, after in pairwise(rows):
        assert before["strip"] != after["strip"] or before["end"] <= after["begin"]
    assert head["bundled"] is None
    assert head["total"]["slices"] == len(slices)
    marks(trace, report, low)
    flows(trace, report, low, rows)


def marks(trace, report, low):
    """Check gaps, what was not recorded, instants and counters."""
    gaps, head = trace.gaps, report.head
    causes = [head["causes"][code] for code in report.raw("g.cause")]
    found = zip(report.raw("g.track"), report.raw("g.ts") + low, causes, strict=True)
    rows = zip(*(gaps.values(name).tolist() for name in ("track_id", "ts", "cause")), strict=True)
    assert list(found) == [(*row[:2], written(row[2])) for row in rows]
    known = gaps.valid("dur")
    assert report.raw("g.dur")[known].tolist() == np.maximum(gaps.values("dur"), 0)[known].tolist()
    instants = trace.instants
    names = [head["instant_names"][code] for code in report.raw("i.name")]
    found = zip(report.sums("i.track"), report.sums("i.ts") + low, names, strict=True)
    rows = zip(*(instants.values(name).tolist() for name in ("track_id", "ts", "name")), strict=True)
    assert Counter(found) == Counter((*row[:2], written(row[2])) for row in rows)
    counters = trace.counters
    value = report.raw("c.value") if head["columns"]["c.value"][3] == "f" else report.sums("c.value")
    found = zip(report.sums("c.track").tolist(), (report.sums("c.ts") + low).tolist(), value.tolist(), strict=True)
    rows = zip(*(counters.values(name).tolist() for name in ("track_id", "ts", "value")), strict=True)
    # Not a number is not equal to itself; and 0.0 == -0.0.
    assert Counter((*row[:2], str(row[2] + 0.0)) for row in found) == Counter(
        (*row[:2], str(row[2] + 0.0)) for row in rows
    )


def flows(trace, report, low, rows):
    """Check flows as pairs of slice ids, with their times."""
    table = trace.flows
    bound = table.valid("src_slice_id") & table.valid("dst_slice_id")
    names = ("src_slice_id", "dst_slice_id", "src_ts", "dst_ts", "kind")
    expected = Counter(zip(*(table.values(name)[bound].tolist() for name in names), strict=True))
    source = report.sums("f.src")
    found = Counter(
        (rows[a]["id"], rows[b]["id"], rows[a]["end"] + out + low, rows[b]["begin"] + into + low, kind)
        for a, b, out, into, kind in zip(
            source.tolist(),
            (source + report.raw("f.dst")).tolist(),
            report.raw("f.out").tolist(),
            report.raw("f.in").tolist(),
            [report.head["flow_kinds"][code] for code in report.raw("f.kind")],
            strict=True,
        )
    )
    assert found == expected
    assert any("end is on no slice" in sentence for sentence in report.head["left_out"]) == bool((~bound).any())


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    files = lanescope.simulate(request.param, seed=3).files
    for name, content in files.items():
        (folder / name).write_bytes(content)
    path = folder if request.param == "ascend" else folder / next(iter(files))
    trace = lanescope.open(path)
    return trace, decoded(trace, max_size=20_000_000)


def test_columns_hold_what_the_tables_hold(family):
    agrees(*family)


def test_tables_hold_what_the_commands_print(family):
    trace, report = family
    tables = {table["id"]: table for table in report.head["tables"]}
    names = [column["name"] for column in tables["names"]["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in tables["names"]["rows"]]
    assert [(row["name"], row["count"], row["total"]) for row in rows] == [
        (row["name"], row["count"], row["total"]) for row in lanescope.summary(trace).rows()
    ][: len(rows)]
    lanes = [row[2:6] for row in tables["lanes"]["rows"]]
    assert all(sum(row) == report.head["span"] for row in lanes)
    assert all(len(row) == len(table["columns"]) for table in tables.values() for row in table["rows"])
    assert {word for _, word in report.head["words"]} >= {
        row["sentence"] for row in lanescope.explain(trace).rows() if row["topic"] != "nothing"
    }


def test_findings_are_rolled_up_with_all_their_counts(family):
    trace, report = family
    found = lanescope.check(trace)
    assert sum(one["count"] for one in report.head["findings"]) == sum(one.count for one in found)
    assert sum(one["places_total"] for one in report.head["findings"]) == len(found)
    ids = report.sums("s.id")
    track = dict(zip(trace.slices.values("id").tolist(), trace.slices.values("track_id").tolist(), strict=True))
    shown = [(one["code"], place) for one in report.head["findings"] for place in one["places"]]
    for one in found:
        if one.evidence.table != "slices" or not len(one.evidence.ids):
            continue
        # One of the rows that prove it, on the lane that it names.
        proof = {at for at in one.evidence.ids.tolist() if one.location.track_id in (None, track[at])}
        rows = {int(ids[place["row"]]) for code, place in shown if code == one.code and place["row"] is not None}
        assert not proof or proof & rows
    for _, place in shown:
        assert place["row"] is None or track[int(ids[place["row"]])] == place["track"]


def test_arguments_are_those_of_the_detail_tables(family):
    trace, report = family
    expected = Counter()
    for table in trace.details.values():
        if table.spec.key == "slice_id":
            for column in table.spec.columns:
                if column.is_argument and column.name != "slice_id":
                    ok = table.valid(column.name)
                    values = table.values(column.name)[ok].tolist()
                    expected.update(
                        (int(row), column.name, str(value))
                        for row, value in zip(table.values("slice_id")[ok], values, strict=True)
                    )
    found = Counter()
    ids = report.sums("s.id")
    for number, entry in enumerate(report.head["args"]):
        values = report.sums(f"a.{number}") if entry["type"] == "int" else report.raw(f"a.{number}")
        texts = [entry["texts"][value] for value in values] if entry["type"] == "text" else map(str, values.tolist())
        found.update(
            (int(ids[row]), entry["name"], text)
            for row, text in zip(report.sums(f"a.{number}.row").tolist(), texts, strict=True)
        )
    assert found == expected


def test_the_critical_path_fills_its_window(family):
    _, report = family
    if report.head["path"] is None:
        pytest.skip("this family records no causes")
    begin, length = report.sums("p.ts"), report.raw("p.dur")
    assert (begin[1:] == (begin + length)[:-1]).all()
    assert report.raw("p.row").max() <= report.head["rows"]


def test_parts_of_the_critical_path_say_what_was_waited_for(family):
    trace, report = family
    if report.head["path"] is None:
        pytest.skip("this family records no causes")
    parts = trace.sql("select cause, kind, dur from critical_path_parts order by ts").rows()
    causes = [report.head["path"]["causes"][code] for code in report.raw("p.cause")]
    assert [(cause, dur) for cause, dur in zip(causes, report.raw("p.dur").tolist(), strict=True)] == [
        (f"{part['cause']}: {part['kind']}" if part["kind"] else part["cause"], part["dur"]) for part in parts
    ]
    assert "work" in causes
    assert any(cause != "work" for cause in causes)


def test_every_row_of_the_tree_is_a_track_and_every_lane_with_slices_is_there(family):
    trace, report = family
    shown = [track for chain, *_ in report.head["tree"] for track in chain]
    assert len(shown) == len(set(shown))
    assert set(trace.slices.values("track_id").tolist()) <= set(shown)
    depths = [depth for _, depth, *_ in report.head["tree"]]
    assert all(after <= before + 1 for before, after in zip([-1, *depths], depths, strict=False))


@given(valid_traces(max_slices=30))
def test_any_trace(trace):
    agrees(trace, decoded(trace))


@given(valid_traces(max_slices=60), st.integers(0, 3))
def test_bundles_lose_no_slice_and_no_time(trace, seed):
    from lanescope.view.model.view_model import ViewModel
    from lanescope.view.report.bundles import bundled, main_names

    model = ViewModel(trace)
    strips, count = model.strips, len(trace.slices)
    keep = np.random.default_rng(seed).random(count) < 0.2
    rows = bundled(strips, model.window[0], max(model.span // 4, 1), keep)
    assert rows.slices.sum() == count
    assert rows.busy.sum() == (strips.end - strips.begin).sum()
    assert (rows.slices[rows.row_of[strips.order[keep]]] == 1).all()
    for number in range(len(strips)):
        own = slice(rows.start[number], rows.start[number + 1])
        assert (rows.begin[own][1:] >= rows.end[own][:-1]).all()
    names = main_names(rows, strips, model.name_of)
    length = strips.end - strips.begin
    for row in rows.bundles.tolist():
        members = rows.row_of[strips.order] == row
        time = np.bincount(model.name_of[strips.order][members], length[members])
        assert names[row] == time.argmax()
        assert rows.begin[row] == strips.begin[members].min()
        assert rows.end[row] == strips.end[members].max()
