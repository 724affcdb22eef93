"""Offsets between the clocks of timelines: injected ones are found, contradictions named, timelines placed."""

from __future__ import annotations

import json

import numpy as np
import pytest

import lanescope
from lanescope import MergeError, TimeBase, Trace, TraceBuilder, UsageError
from lanescope.analysis.align.answer import Alignment
from lanescope.trace import Column, Table


def shifted(trace: Trace, wanted: str, offset: int, ppm: float = 0.0) -> Trace:
    """Return a trace in which lanes of some roles show other times: by an offset, and by a rate."""
    lanes = np.isin(trace.tracks.values("role"), wanted.split())

    def late(values, tracks):
        return np.where(lanes[tracks], values + offset + np.round(values * ppm / 1e6).astype(np.int64), values)

    tables = dict(trace.tables())
    for name, pairs in {
        "slices": [("ts", "track_id")],
        "instants": [("ts", "track_id")],
        "flows": [("src_ts", "src_track_id"), ("dst_ts", "dst_track_id")],
    }.items():
        table = tables[name]
        columns = {column: table.column(column) for column in table.spec.names}
        for column, key in pairs:
            new = late(table.values(column), table.values(key))
            columns[column] = Column.array(new)
            if name == "slices":
                end = late(table.values("ts") + table.values("dur"), table.values(key))
                columns["dur"] = Column.array(end - new, valid=table.valid("dur"))
        tables[name] = Table(table.spec, columns)
    return Trace(trace.time, tables, {name: tables[name] for name in trace.details}, trace.records)


def capture(tmp_path, family, main=None, **options):
    files = lanescope.simulate(family, **options).files
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return lanescope.open(tmp_path / (main or next(iter(files))))


#: Family, options of its simulator, roles of the lanes on the second clock, how many clocks are not the host's.
FAMILIES = [
    ("kineto", {"seed": 3}, "stream", 1),
    ("levelzero", {"seed": 3}, "queue", 4),
    ("ascend", {"seed": 3, "format_version": "v4", "host": True}, "scheduler core flight", 1),
    ("cuda", {"seed": 3, "layout": "ls2", "clock64": True}, "group async", 132),
]


@pytest.mark.parametrize(("family", "options", "roles", "count"), FAMILIES, ids=[row[0] for row in FAMILIES])
def test_injected_offsets_of_each_family_are_found_and_undone(tmp_path, family, options, roles, count):
    trace = capture(tmp_path, family, **options)
    before = [row for row in trace.align().table().rows() if row["method"] == "straight" and row["status"] != "read"]
    assert len(before) == count
    assert {row["status"] for row in before} == {"holds"}
    offset = 40_000_000
    wrong = shifted(trace, roles, offset)
    alignment = wrong.align()
    after = {row["second"]: row for row in alignment.table().rows()}
    for row in before:
        found = after[row["second"]]
        assert (found["least"], found["most"]) == (row["least"] + offset, row["most"] + offset)
        assert (found["status"], found["error"]) == ("off", row["error"])
    back = alignment.place()
    errors = back.anchors.values("error_ns")[back.anchors.valid("error_ns")]
    error = int(errors.max())
    first = int(trace.slices.values("ts").min()) - int(back.slices.values("ts").min())
    apart = np.abs(back.slices.values("ts") + first - trace.slices.values("ts"))
    assert apart.max() <= 2 * error + 2
    assert {row["status"] for row in back.align().table().rows()} <= {"holds", "read"}


@pytest.mark.parametrize(("family", "options", "roles", "count"), FAMILIES, ids=[row[0] for row in FAMILIES])
def test_windows_know_no_more_than_the_whole(tmp_path, family, options, roles, count):
    """Causes and effects of cut slices are not where they are cut: no limit may rest on them."""
    trace = capture(tmp_path, family, **options)
    begins = trace.slices.values("ts")
    first, last = int(begins.min()), int((begins + trace.slices.values("dur")).max())
    moment = (first + last) // 2
    whole = {(row["first"], row["second"]): row for row in trace.align(at=moment).table().rows()}
    random, limits, cut = np.random.default_rng(1), 0, 0
    for _ in range(12):
        begin, end = (int(random.integers(*part)) for part in ((max(first, 0), moment), (moment, last)))
        part = trace.window(begin, end + 1)
        cut += int(np.count_nonzero(part.slices.values("flags") & np.uint32(lanescope.Flag.CUT)))
        for row in part.align(at=moment).table().rows():
            assert row["status"] != "contradiction"
            known = whole.get((row["first"], row["second"]))
            if known is None or row["status"] == "read" or known["status"] == "read":
                continue
            for column, sign in (("least", 1), ("most", -1)):
                if row[column] is not None and row["at"] == known["at"] == moment:
                    assert sign * row[column] <= sign * known[column], (begin, end, row, known)
                    limits += 1
    assert limits > 0
    assert cut > 0


def test_what_a_window_lacks_is_not_laid_at_the_capture(tmp_path):
    trace = capture(tmp_path, "kineto", seed=3)
    assert [row["status"] for row in trace.align().table().rows()] == ["holds"]
    first = int(trace.slices.values("ts").min())
    for part in (trace.window(lane="*stream*"), trace.window(name="gemm*"), trace.window(first, first + 100_000)):
        (row,) = part.align().table().rows()
        assert row["status"] in ("unknown", "one bound")
        assert row["detail"].startswith("nothing in this window; what it excludes may")
    (row,) = trace.window(first, first + 10**10).align().table().rows()
    assert row["status"] == "holds"


def host_and_device(*, lag=0, drift_ppm=0.0, launches=200, syncs=True, reversed_launch=None, clock=True, seed=1):
    """Return a host that launches work and waits for it, and a device whose clock is off by ``lag`` and a drift."""
    random = np.random.default_rng(seed)
    builder = TraceBuilder(TimeBase())
    device_clock = builder.clock(name="counter", device="chip", frequency=None) if clock else None
    host = builder.track("thread", kind="lane", role="host_thread", nesting="nested")
    group = builder.track("chip", kind="group", role="device")
    queue = builder.track("queue", kind="lane", role="queue", parent=group, clock_id=device_clock)
    launch = np.arange(launches) * 50_000
    begin = launch + 3_000 + random.integers(0, 3_000, launches)
    end = begin + 20_000
    wait = end + 2_000 + random.integers(0, 2_000, launches)

    def shown(times):
        found = times + lag + np.round(times * drift_ppm / 1e6).astype(np.int64)
        return found

    first = builder.append("slices", track_id=host, ts=launch, dur=np.full(launches, 1_000), name=["launch"] * launches)
    last = builder.append("slices", track_id=host, ts=wait - 500, dur=np.full(launches, 500), name=["wait"] * launches)
    device_begin = shown(begin)
    if reversed_launch is not None:
        device_begin[reversed_launch] -= 60_000
    work = builder.append(
        "slices", track_id=queue, ts=device_begin, dur=shown(end) - device_begin, name=["work"] * launches
    )
    rows = np.arange(launches)
    builder.append(
        "flows",
        kind=["submit"] * launches,
        src_track_id=host,
        src_ts=launch,
        dst_track_id=queue,
        dst_ts=device_begin,
        src_slice_id=first + rows,
        dst_slice_id=work + rows,
    )
    if syncs:
        builder.append(
            "flows",
            kind=["signal"] * launches,
            src_track_id=queue,
            src_ts=shown(end),
            dst_track_id=host,
            dst_ts=wait,
            src_slice_id=work + rows,
            dst_slice_id=last + rows,
        )
    return builder.finish()


def only_row(trace, **options):
    (row,) = trace.align(**options).table().rows()
    return row


def test_an_offset_and_a_rate_are_in_their_intervals():
    row = only_row(host_and_device(lag=1_000_000, drift_ppm=40.0))
    assert (row["first"], row["second"]) == ("host", "counter of chip")
    truth = 1_000_000 + row["at"] * 40 / 1e6
    assert row["least"] <= truth <= row["most"]
    assert row["rate_least_ppm"] <= 40 <= row["rate_most_ppm"]
    assert abs(row["offset"] - truth) <= row["half_width"] + 1
    assert (row["forward"], row["backward"]) == (200, 200)
    at = only_row(host_and_device(lag=1_000_000, drift_ppm=40.0), at=0)
    assert at["at"] == 0
    assert at["least"] <= 1_000_000 <= at["most"]


def test_one_side_is_refused_with_the_bound_that_is_known():
    row = only_row(host_and_device(lag=500, syncs=False))
    assert (row["status"], row["least"], row["offset"]) == ("one bound", None, None)
    assert 3_500 <= row["most"] <= 6_500
    assert row["detail"] == "nothing limits the other side"
    assert row["most_by"].startswith("launch (slice ")


@pytest.mark.parametrize("method", ["auto", "rate", "segments"])
def test_the_pair_that_contradicts_is_named(method):
    trace = host_and_device(lag=500, reversed_launch=77)
    row = only_row(trace, method=method)
    assert row["status"] == "contradiction"
    assert row["most_by"] == "launch (slice 77) -> work (slice 477)"
    assert "miss each other by " in row["detail"]
    placed = trace.align(method=method).place()
    assert placed.slices.values("ts").tolist() == trace.slices.values("ts").tolist()
    assert "chip (unknown error)" in placed.tracks.values("name").tolist()


def test_names_of_clocks_change_nothing_but_names():
    rows = []
    for name in ("counter", "another name"):
        trace = host_and_device(lag=900, drift_ppm=-30.0)
        names = Column.array(np.array([name], object))
        columns = {each: trace.clocks.column(each) for each in trace.clocks.spec.names} | {"name": names}
        tables = dict(trace.tables()) | {"clocks": Table(trace.clocks.spec, columns)}
        rows.append(only_row(Trace(trace.time, tables)))
    assert rows[0].pop("second") == "counter of chip"
    assert rows[1].pop("second") == "another name of chip"
    assert rows[0] == rows[1]


def test_placed_clocks_are_within_their_error_and_the_error_is_stated():
    trace, truth = host_and_device(lag=2_000_000, drift_ppm=45.0), host_and_device()
    placed = trace.align().place()
    (error,) = set(placed.anchors.values("error_ns").tolist())
    assert 0 < error < 10_000
    low = int(placed.slices.values("ts").min())
    apart = np.abs((placed.slices.values("ts") - low) - truth.slices.values("ts"))
    assert apart[:400].max() == 0  # the host stays
    assert 0 < apart[400:].max() <= error
    names = placed.tracks.values("name").tolist()
    assert f"chip (placed, ±{error:,} ns)" in names
    assert (np.diff(placed.slices.values("ts")[400:]) > 0).all()
    assert placed.flows.values("dst_ts")[:200].tolist() == placed.slices.values("ts")[400:].tolist()
    assert {row["status"] for row in placed.align().table().rows()} == {"holds"}


def test_times_that_are_possible_stay_and_their_error_is_stated():
    trace = host_and_device(lag=1_000)
    row = only_row(trace)
    assert row["status"] == "holds"
    placed = trace.align().place()
    assert placed.slices.values("ts").tolist() == trace.slices.values("ts").tolist()
    (error,) = set(placed.anchors.values("error_ns").tolist())
    assert error >= max(-row["least"], row["most"]) > 1_000


def test_orders_closer_than_the_error_are_undecided():
    """A launch that comes after its work by less than the clocks' error is excused by checks and by the path."""
    trace = host_and_device(lag=3_000, syncs=False)
    early = shifted(trace, "queue", -6_500)
    with_waits = shifted(host_and_device(lag=3_000), "queue", -6_500)
    before = lanescope.check(with_waits, select=["LS201"])
    assert [str(finding.severity) for finding in before] == ["warning"]
    assert any(counts.backward for counts in with_waits.critical_path().made.edge_counts())
    placed = with_waits.align().place()
    assert not lanescope.check(placed, select=["LS201"])
    # The one side alone leaves the times as they are.
    left = early.align().place()
    assert [str(finding.severity) for finding in lanescope.check(left, select=["LS201"])] == ["warning"]
    # Work that begins before its launch by less than the stated error.
    worst = shifted(placed, "queue", -7_000)
    columns = {each: worst.anchors.column(each) for each in worst.anchors.spec.names}
    columns["error_ns"] = Column.array(np.full(len(worst.anchors), 20_000))
    stated = Trace(worst.time, dict(worst.tables()) | {"anchors": Table(worst.anchors.spec, columns)})
    assert [str(finding.severity) for finding in lanescope.check(stated, select=["LS201"])] == ["notice"]
    counts = stated.critical_path().made.edge_counts()
    assert sum(count.undecided for count in counts) > 0
    assert not any(count.backward for count in counts)


def ranks(tmp_path, late_ns, *, rank_count=2):
    """Return profiles of ranks of one run whose hosts' clocks are apart by ``late_ns`` each."""
    traces = []
    for rank in range(rank_count):
        (content,) = (
            data
            for name, data in lanescope.simulate("kineto", seed=5, rank=rank, ranks=rank_count).files.items()
            if name.endswith(".json")
        )
        profile = json.loads(content)
        profile["baseTimeNanoseconds"] += rank * late_ns
        path = tmp_path / f"rank{rank}.json"
        path.write_text(json.dumps(profile))
        traces.append(lanescope.open(path))
    return lanescope.merge(traces)


def test_ranks_are_placed_by_the_ends_of_their_collectives(tmp_path):
    trace = ranks(tmp_path, 5_000_000, rank_count=3)
    alignment = trace.align()
    rows = {(row["first"], row["second"]): row for row in alignment.table().rows()}
    direct = rows["rank0 GPU 0", "rank2 GPU 0"]
    assert (direct["status"], direct["forward"], direct["backward"]) == ("off", *[direct["forward"]] * 2)
    assert direct["least"] <= 10_000_000 <= direct["most"]
    chained = rows["rank0 host", "rank1 host"]
    assert (chained["method"], chained["status"]) == ("chain", "off")
    assert chained["least"] <= 5_000_000 <= chained["most"]
    assert chained["least_by"] == "rank0 host -> rank0 GPU 0 -> rank1 GPU 0 -> rank1 host"
    placed = alignment.place()
    collectives = placed.details["kineto_collectives"]
    slices = collectives.values("slice_id")
    kernels = slices[placed.tracks.values("role")[placed.slices.values("track_id")[slices]] == "stream"]
    ends = placed.slices.values("ts")[kernels] + placed.slices.values("dur")[kernels]
    by_rank = np.split(ends, 3)
    assert np.abs(by_rank[0] - by_rank[2]).max() < 200_000
    assert any("rank" not in name and "placed, ±" in name for name in placed.tracks.values("name").tolist())


def test_clocks_that_contradict_each_other_around_a_circle_are_named():
    builder = TraceBuilder(TimeBase())
    lanes, clocks = [], []
    for name in "abc":
        clocks.append(builder.clock(name=name, device="", frequency=None))
        lanes.append(builder.track(name, kind="lane", role="queue", clock_id=clocks[-1]))
    offsets = {(0, 1): 1_000, (1, 2): 1_000, (0, 2): 9_000}
    for (first, second), offset in offsets.items():
        for src, dst, src_ts, dst_ts in (
            (first, second, 50_000, 50_000 + offset + 10),
            (second, first, 60_000 + offset - 10, 60_000),
        ):
            a = builder.append("slices", track_id=lanes[src], ts=[src_ts], dur=[1], name=["x"])
            b = builder.append("slices", track_id=lanes[dst], ts=[dst_ts], dur=[1], name=["y"])
            builder.append(
                "flows",
                kind=["signal"],
                src_track_id=lanes[src],
                src_ts=[src_ts],
                dst_track_id=lanes[dst],
                dst_ts=[dst_ts],
                src_slice_id=[a],
                dst_slice_id=[b],
            )
    rows = list(builder.finish().align().table().rows())
    assert [row["status"] for row in rows] == ["off", "off", "off", "contradiction"]
    assert "offsets miss each other by " in rows[-1]["detail"]
    assert set(rows[-1]["detail"].split(":")[0].split(" -> ")) == {"a", "b", "c"}


def test_captures_that_nothing_joins_are_refused_with_the_way_out(tmp_path):
    first = host_and_device(clock=False)
    traces = [capture(tmp_path / str(seed), "ascend", seed=seed, tasks=20) for seed in (1, 2)]
    merged = lanescope.merge(traces, side_by_side=True)
    with pytest.raises(MergeError, match=r"cannot place .* against the first capture") as refused:
        merged.align().place()
    assert "--side-by-side" in str(refused.value.hint)
    assert not len(first.align().table())


def test_readings_without_a_stated_error_need_one(tmp_path):
    trace = capture(tmp_path, "levelzero", seed=2)
    with pytest.raises(UsageError, match="unknown method"):
        trace.align(method="best")
    with pytest.raises(UsageError, match="rate"):
        trace.align(rate_ppm=0)
    with pytest.raises(UsageError, match="error of readings"):
        trace.align(reading_error=-1)
    assert isinstance(trace.align(), Alignment)


def test_clocks_that_no_record_joins_are_unknown(tmp_path):
    trace = capture(tmp_path, "ascend", seed=1, format_version="v4", host=True, anchors=False)
    rows = [(row["first"], row["second"], row["status"], row["detail"]) for row in trace.align().table().rows()]
    assert rows == [("host_monotonic of host", "syscnt", "unknown", "no record joins them")]


def test_rows_with_a_suspect_clock_are_left_out_and_counted():
    trace = host_and_device(lag=500, reversed_launch=77)
    assert only_row(trace)["status"] == "contradiction"
    flags = trace.slices.values("flags").copy()
    flags[477] |= np.uint32(lanescope.Flag.CLOCK_SUSPECT)
    columns = {each: trace.slices.column(each) for each in trace.slices.spec.names}
    columns["flags"] = Column.array(flags)
    row = only_row(Trace(trace.time, dict(trace.tables()) | {"slices": Table(trace.slices.spec, columns)}))
    assert (row["status"], row["forward"], row["backward"]) == ("holds", 199, 199)
    assert row["detail"] == "2 pairs of rows with a suspect clock, impossible times or cut by a window excluded"
