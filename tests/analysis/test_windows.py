"""Windows of traces: against one row at a time, batch by batch, and against the sum of their neighbours."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from effort import some
from lanescope import Flag, TimeBase, Trace, TraceBuilder, UsageError
from lanescope.analysis.track_tree import Tree
from lanescope.analysis.windows.cut import Limits, WindowCut
from lanescope.analysis.windows.report import chosen_tracks, described, require_all_slices
from lanescope.analysis.windows.window import Instance, make_window
from lanescope.io import parquet
from lanescope.pipeline.sources import CaptureSource, InMemory
from lanescope.pipeline.trace_queries import windowed
from lanescope.pipeline.windowed import WindowedSource
from lanescope.testing import strategies
from lanescope.trace.streams import StreamInfo

EDGES = st.tuples(st.integers(0, 70), st.integers(1, 40)).map(lambda pair: (pair[0], pair[0] + pair[1]))


class Batches:
    """A source of given batches."""

    def __init__(self, batches, *, is_sorted):
        self.info = StreamInfo(is_sorted=is_sorted)
        self._batches = batches

    def batches(self, progress=None):
        yield from self._batches


def rows_of(trace):
    return {name: list(table.rows()) for name, table in trace.tables().items()}


def known_end(row):
    if row["dur"] is not None:
        return row["ts"] + row["dur"]
    return max(row["ts"], row["ts"] if row["last_known_ts"] is None else row["last_known_ts"])


def expected_slices(trace, start, end):
    """What is left of each slice, one at a time: id, begin, duration and whether it is cut."""
    found = []
    for row in trace.slices.rows():
        begin, until = row["ts"], known_end(row)
        if not (begin < end and (until > start or begin >= start)):
            continue
        runs_on = row["dur"] is None and until >= end
        dur = min(until, end) - max(begin, start) if row["dur"] is not None or runs_on else None
        found.append((row["id"], max(begin, start), dur, begin < start or until > end or runs_on))
    return found


@given(strategies.traces(), EDGES)
def test_slices_are_those_of_one_at_a_time(trace, edges):
    part = lanescope.window(trace, *edges)
    wanted = expected_slices(trace, *edges)
    got = [(row["ts"], row["dur"], bool(row["flags"] & Flag.CUT)) for row in part.slices.rows()]
    flags = trace.slices.values("flags").tolist()
    assert got == [(ts, dur, cut or bool(flags[old] & Flag.CUT)) for old, ts, dur, cut in wanted]
    assert part.slices["id"].tolist() == list(range(len(wanted)))
    new = {old: number for number, (old, *_) in enumerate(wanted)}
    tasks = [
        row | {"slice_id": new[row["slice_id"]]} for row in trace.details["test_tasks"].rows() if row["slice_id"] in new
    ]
    assert list(part.details["test_tasks"].rows()) == tasks
    for old, row in zip((old for old, *_ in wanted), part.slices.rows(), strict=True):
        assert (row["name"], row["track_id"]) == (trace.slices["name"][old], trace.slices["track_id"][old])
        before = next(each for each in trace.slices.rows() if each["id"] == old)
        assert row["ts_ticks"] == (None if row["ts"] != before["ts"] else before["ts_ticks"])


@given(strategies.traces(), EDGES)
def test_points_flows_and_counters(trace, edges):
    start, end = edges
    part = lanescope.window(trace, start, end)
    assert part.instants["ts"].tolist() == [ts for ts in trace.instants["ts"].tolist() if start <= ts < end]
    kept = {old: number for number, (old, *_) in enumerate(expected_slices(trace, start, end))}
    flows, halves = [], 0
    for row in trace.flows.rows():
        inside = []
        for side in ("src", "dst"):
            known = row[f"{side}_slice_id"] is not None
            ts = row[f"{side}_ts"]
            inside.append(start <= ts <= end and row[f"{side}_slice_id"] in kept if known else start <= ts < end)
        halves += inside[0] != inside[1]
        if all(inside):
            flows.append((row["src_ts"], kept.get(row["src_slice_id"]), kept.get(row["dst_slice_id"])))
    assert [(row["src_ts"], row["src_slice_id"], row["dst_slice_id"]) for row in part.flows.rows()] == flows
    counted = dict(zip(part.stats["name"].tolist(), part.stats["count"].tolist(), strict=True))
    assert counted.get("window_open_flows", 0) == halves
    samples = list(trace.counters.rows("track_id", "ts", "value"))
    held = [row for row in samples if row["ts"] <= start]
    wanted = [{**held[-1], "ts": start}] if held else []
    wanted += [row for row in samples if start < row["ts"] < end]
    assert list(part.counters.rows("track_id", "ts", "value")) == wanted


@given(strategies.batches(), EDGES)
def test_a_window_of_batches_is_that_of_the_whole(batches, edges):
    window = make_window(start=edges[0] or None, end=edges[1])
    (whole,) = WindowedSource(InMemory(Trace.concat(batches)), window).batches()
    for is_sorted in (False, True):
        parts = list(WindowedSource(Batches(batches, is_sorted=is_sorted), window).batches())
        if not is_sorted:
            assert len(parts) == 1
        got, wanted = rows_of(Trace.concat(parts)), rows_of(whole)
        for found in (got, wanted):  # times that are added at the end come in another order
            found["coverage"] = sorted((row["track_id"], row["ts"], row["dur"]) for row in found["coverage"])
        if is_sorted:  # flows of sorted streams stay within a batch; these need not
            for found in (got, wanted):
                del found["flows"], found["stats"]
        assert got == wanted


def busy(trace):
    return sum(row["dur"] or 0 for row in trace.slices.rows())


@given(strategies.valid_traces(), st.integers(0, 60))
def test_neighbours_add_up_to_the_whole(trace, edge):
    before, after = lanescope.window(trace, end=edge), lanescope.window(trace, edge)
    assert busy(before) + busy(after) == busy(trace)
    assert len(before.instants) + len(after.instants) == len(trace.instants)
    from lanescope.analysis.lane_time import LaneTime
    from lanescope.analysis.partition import BUSY, IDLE, by_state, partition

    def spent(part):
        time = LaneTime(part)
        return by_state(partition(time), len(time.tree))[:, [BUSY, IDLE]]

    if not len(trace.gaps):  # what a gap at the end leaves unknown reaches as far as the trace does
        assert (spent(before) + spent(after)).tolist() == spent(trace).tolist()


def two_lanes():
    builder = TraceBuilder(TimeBase())
    top = builder.track("core 0", kind="group", role="core")
    lanes = [builder.track(name, kind="lane", role="lane", parent=top) for name in ("mma", "load [0]")]
    other = builder.track("other", kind="lane", role="lane")
    for lane, first in ((lanes[0], 0), (lanes[1], 5), (other, 9)):
        builder.append("slices", track_id=lane, ts=[first, first + 20], dur=[10, 4], name=["a", "b"])
    builder.append("coverage", track_id=top, ts=0, dur=50)
    builder.append("gaps", track_id=top, ts=30, dur=None, cause="overrun", lost_count=7)
    builder.append("coverage", track_id=other, ts=0, dur=50)
    return builder.finish()


def test_lanes_are_those_of_a_group_and_bring_its_coverage():
    part = lanescope.window(two_lanes(), lane="core*")
    assert sorted(set(part.slices["track_id"].tolist())) == [1, 2]
    assert [(row["track_id"], row["dur"]) for row in part.coverage.rows()] == [(1, 50), (2, 50)]
    one = lanescope.window(two_lanes(), lane="load [0]")  # a name with brackets is meant as it is
    assert set(one.slices["track_id"].tolist()) == {2}
    assert one.coverage["track_id"].tolist() == [2]
    assert len(one.gaps) == 1
    assert len(lanescope.window(two_lanes(), lane="other").gaps) == 0
    assert len(lanescope.window(two_lanes(), lane=["other", "*/mma"]).slices) == 4


def test_gaps_are_cut_and_their_losses_are_not_divided():
    part = lanescope.window(two_lanes(), 10, 40)
    assert [(row["ts"], row["dur"], row["lost_count"]) for row in part.gaps.rows()] == [(30, 10, None)]


def test_names_durations_and_conditions():
    assert set(lanescope.window(two_lanes(), name="b").slices["name"].tolist()) == {"b"}
    assert len(lanescope.window(two_lanes(), min_dur=5).slices) == 3
    assert len(lanescope.window(two_lanes(), min_dur="4ns").slices) == 6
    condition = "dur > 5 and track_id in (select id from tracks where name = 'mma')"
    assert lanescope.window(two_lanes(), where=condition).slices["ts"].tolist() == [0]
    part = lanescope.window(two_lanes(), 0, 20, name="a", min_dur=11)
    assert described(part)["filtered_slices"] == 3
    with pytest.raises(UsageError, match="read without 3 of them"):
        require_all_slices(part)
    require_all_slices(lanescope.window(two_lanes(), 0, 20))
    alone = windowed(two_lanes(), make_window(name="a", min_dur=11))
    with pytest.raises(UsageError, match="read without 6 of them"):
        alone.critical_path()


@pytest.mark.parametrize(
    ("start", "end", "begin", "until"),
    [
        ("-20", None, 30, None),
        ("+10", "40ns", 10, 40),
        ("a#1", "a#1", 5, 15),
        ("b#-1", "-1", 29, 49),
        (-20, -10, 30, 40),
        ("0.01us", "b#0", 10, 24),
        ("@5", "@0.02us", 5, 20),
        ("@-20", "-1", -20, 49),
        ("@-1us", "9223372036854775806", -1000, 9223372036854775806),
    ],
)
def test_times(start, end, begin, until):
    found = described(lanescope.window(two_lanes(), start, end))
    assert (found["start"], found["end"]) == (begin, until)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"start": "soon"}, "expected a time"),
        ({"start": "1.5"}, "whole nanoseconds"),
        ({"start": "9223372036854775808"}, "larger than 2\\^63 - 1"),
        ({"start": "@"}, "expected a time"),
        ({"start": "@+5"}, "expected a time"),
        ({"start": 30, "end": 30}, "is empty"),
        ({"start": "c#0"}, "there is none"),
        ({"start": "a#9"}, "it has 3"),
        ({"lane": "nowhere"}, "no lane matches"),
        ({"min_dur": "-5"}, "expected a duration"),
        ({"where": "dur >"}, "invalid condition"),
        ({"where": "true) union (select 1"}, "invalid condition"),
        ({"where": "true); select (1"}, "expected one SQL condition"),
        ({"where": "true) or (false"}, "invalid condition"),
        ({"where": "name"}, "invalid condition"),
    ],
)
def test_what_is_refused(asked, message):
    with pytest.raises(UsageError, match=message):
        lanescope.window(two_lanes(), **asked)


def test_times_before_0_are_given_with_an_at():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core", kind="lane", role="core")
    builder.append("slices", track_id=lane, ts=[-50, -10, 20], dur=[20, 20, 20], name="a")
    trace = builder.finish()
    part = lanescope.window(trace, "@-35", "@-5")
    assert [(row["ts"], row["dur"]) for row in part.slices.rows()] == [(-35, 5), (-10, 5)]
    assert lanescope.window(trace, -35, -5).slices["ts"].tolist() == [5, 20]  # from the end, as everywhere


def test_seconds_are_refused_where_times_are_cycles():
    builder = TraceBuilder(TimeBase(time_unit="cycles"))
    lane = builder.track("core", kind="lane", role="core")
    builder.append("slices", track_id=lane, ts=5, dur=5, name="a")
    trace = builder.finish()
    assert len(lanescope.window(trace, 6).slices) == 1
    with pytest.raises(UsageError, match="times are in cycles"):
        lanescope.window(trace, "6ns")


def test_a_window_of_a_window_is_the_narrowest():
    part = lanescope.window(lanescope.window(two_lanes(), 5, 40, lane="core*"), 10, 45)
    found = described(part)
    assert (found["start"], found["end"]) == (10, 40)
    builder = TraceBuilder(TimeBase())
    builder.input(capture="c", role="main", path="p", size=0, sha256="", family="f", format="g", options={"x": 1})
    builder.add_bytes(decoded=0)
    twice = lanescope.window(lanescope.window(builder.finish(), 5), 6)
    options = json.loads(twice.inputs["options"][0])
    assert options == {"x": 1, "windows": [{"start": "5"}, {"start": "6"}]}


def test_window_texts():
    assert make_window(start="mma#tile#-2").start.instance == Instance("mma#tile", -2)
    assert make_window(lane="a").lanes == ("a",)


@pytest.mark.parametrize("family", ["aie", "cuda"])
def test_a_capture_is_cut_as_it_is_decoded(tmp_path, family, monkeypatch):
    if family == "cuda":
        monkeypatch.setattr("lanescope.devices.cuda.emit.batches.PART_RECORDS", 5_000)
        simulated = lanescope.simulate("cuda", tiles=12)
    else:
        monkeypatch.setattr("lanescope.devices.aie.decoder.BATCH_ROWS", 1 << 14)
        simulated = lanescope.simulate("aie", tiles=2, records=100_000)
    for name, content in simulated.files.items():
        (tmp_path / name).write_bytes(content)
    main = tmp_path / next(iter(simulated.files))
    trace = lanescope.open(main)
    last = int(trace.slices["ts"].max())
    window = make_window(start=last // 3, end=last // 2)
    whole = rows_of(lanescope.window(trace, last // 3, last // 2))
    with CaptureSource(main) as source:
        assert len(list(source.batches())) > 1
    with CaptureSource(main, window=window) as source:
        parts = list(source.batches())
    assert len(parts) > 1 if family == "aie" else len(parts) == 1
    assert rows_of(Trace.concat(parts)) == whole
    assert 0 < len(whole["slices"]) < len(trace.slices)


@pytest.mark.parametrize(("count", "passes"), [(1, 1), (3, 2)])
@pytest.mark.parametrize("where", ["", "dur >= 0"])
def test_what_turns_out_to_be_one_batch_is_decoded_once(count, passes, where):
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core", kind="lane", role="core")
    batches = []
    for ts in range(count):
        builder.append("slices", track_id=lane, ts=[10 * ts, 10 * ts + 5], dur=[5, 5], name="a")
        batches.append(builder.batch())

    class Counted(Batches):
        decoded = 0

        def batches(self, progress=None):
            self.decoded += 1
            yield from self._batches

    source = Counted(batches, is_sorted=False)
    (part,) = WindowedSource(source, make_window(start="+2", end="-2", where=where)).batches()
    assert source.decoded == passes
    assert part.slices["ts"].tolist()[0] == 2
    assert part.slices["dur"].tolist()[-1] == 3


def test_details_of_excluded_events_do_not_wait_for_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr("lanescope.devices.cuda.emit.batches.PART_RECORDS", 5_000)
    simulated = lanescope.simulate("cuda", tiles=12)
    for name, content in simulated.files.items():
        (tmp_path / name).write_bytes(content)
    with CaptureSource(tmp_path / next(iter(simulated.files))) as source:
        batches = list(source.batches())
    last = max(int(batch.slices["ts"].max(initial=0)) for batch in batches)
    cut = WindowCut(Limits(make_window(start=last // 3, end=last // 2), last // 3, last // 2), at_once=False)
    for batch in batches:
        assert len(batch.details["cuda_regions"]) == len(batch.slices)
        assert cut.add(batch) is None
    held = cut._parts
    assert [len(part.details["cuda_regions"]) for part in held] == [len(part.slices) for part in held]
    assert 0 < sum(len(part.slices) for part in held) < sum(len(batch.slices) for batch in batches) / 2


def test_of_a_folder_of_parquet_files_only_what_is_near_the_window_is_read(tmp_path, monkeypatch):
    simulated = [("cuda", {"layout": "ls2", "across": True, "blocks": 8}), ("levelzero", {"ops": 300}), ("ascend", {})]
    monkeypatch.setattr(parquet, "read", lambda _: pytest.fail("all of the folder was read"))
    for family, options in simulated:
        files = lanescope.simulate(family, seed=3, **options).files
        (tmp_path / family).mkdir()
        for name, content in files.items():
            (tmp_path / family / name).write_bytes(content)
        trace = lanescope.open(tmp_path / family / next(iter(files)))
        out = tmp_path / f"{family}.parquet"
        parquet.write(trace, out)
        first, last = int(trace.slices["ts"].min()), int(trace.slices["ts"].max())
        middle, late = first + (last - first) // 3, first + (last - first) // 2
        for start, end, lane in [
            (middle, late, None),
            (None, middle, "*0*"),
            ("+1us", "-1us", None),
            (late, None, None),
            (last + 10**9, None, None),
        ]:
            window = make_window(start=start, end=end, lane=lane)
            with CaptureSource(out, window=window) as source:
                (part,) = source.batches()
            (expected,) = WindowedSource(InMemory(trace), window).batches()
            assert rows_of(part) == rows_of(expected)


@settings(max_examples=some(200, 4))
@given(strategies.traces(), EDGES, st.sampled_from(["between", "from", "to"]))
def test_a_window_of_a_folder_is_that_of_all_of_it(tmp_path_factory, trace, edges, kind):
    out = tmp_path_factory.mktemp("folder") / "out.parquet"
    parquet.write(trace, out)
    start, end = (edges[0] if kind != "to" else None), (edges[1] if kind != "from" else None)
    window = make_window(start=start, end=end)
    with CaptureSource(out, window=window) as source:
        (part,) = source.batches()
    (expected,) = WindowedSource(InMemory(parquet.read(out)), window).batches()
    assert rows_of(part) == rows_of(expected)


def test_batches_without_a_row_in_the_window_are_skipped():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core", kind="lane", role="core")
    batches = []
    for ts in range(0, 50, 10):
        builder.append("slices", track_id=lane, ts=ts, dur=5, name="a")
        batches.append(builder.batch())
    cut = WindowCut(Limits(make_window(start=20), 20), at_once=True)
    assert [part is not None for part in map(cut.add, batches)] == [False, False, True, True, True]
    assert np.array_equal(cut.finish().coverage["dur"], [25])


# --- lanes that a window leaves out ---------------------------------------------------------------------------------


def kernel(folder, **options):
    made = lanescope.simulate("cuda", seed=2, blocks=4, sms=2, tiles=4, **options)
    for name, content in made.files.items():
        (folder / name).write_bytes(content)
    return folder / next(iter(made.files))


def test_lanes_that_a_window_leaves_out_are_not_called_unrecorded(tmp_path):
    path = kernel(tmp_path)
    whole, part = lanescope.open(path), lanescope.open(path, window={"lane": "*load"})
    asked = {row["track"] for row in part.phases().rows()}
    assert asked == {row["track"] for row in whole.phases().rows() if row["track"].endswith("load")}
    wanted = {}
    for row in whole.phases().rows():
        if row["track"].endswith("load"):
            key = row["state"], row["name"]
            wanted[key] = wanted.get(key, 0) + row["total"]
    found = list(part.phases("device").rows())
    # The window of these lanes alone ends earlier: only what is behind their last region differs.
    assert {(row["state"], row["name"]): row["total"] for row in found if row["state"] in ("busy", "waiting")} == {
        key: total for key, total in wanted.items() if key[0] in ("busy", "waiting")
    }
    assert sum(row["share"] for row in found) == pytest.approx(1)
    assert {row["track_id"] for row in part.longest_gaps(1000).rows()} <= {
        number for number, name in enumerate(part.tracks["name"].tolist()) if name == "load"
    }


def test_nothing_is_said_of_what_runs_beside_lanes_that_a_window_chose(tmp_path):
    """A wait is charged to no lane of the rest, and loads are not called exposed for want of computing lanes."""
    path = kernel(tmp_path)
    part = lanescope.open(path, window={"lane": ["*load", "*store"]})
    assert {row["cause"] for row in lanescope.open(path).phases().rows() if row["state"] == "waiting"} > {"pv"}
    assert {row["cause"] for row in part.phases().rows() if row["state"] == "waiting"} == {None}
    assert [row["topic"] for row in part.explain().rows() if row["topic"] in ("bound", "exposed")] == []
    block = lanescope.open(path, window={"lane": "block 1"})
    assert {row["cause"] for row in block.phases().rows() if row["state"] == "waiting"} > {"pv"}
    assert "block 1 works" in "".join(row["sentence"] for row in block.explain().rows())


def test_lanes_that_a_window_chose_are_those_of_its_capture(tmp_path):
    (tmp_path / "a").mkdir()
    first = lanescope.open(kernel(tmp_path / "a"), window={"lane": "*load"})
    tree = Tree(first.tracks)
    chosen = chosen_tracks(first, tree)
    names = np.array(first.tracks["name"].tolist())
    assert chosen[names == "load"].all()
    assert not chosen[names == "store"].any()
    narrower = lanescope.window(first, lane="GPU/block 0/*")
    found = chosen_tracks(narrower, tree)
    assert [tree.path(track) for track in np.flatnonzero(found & (names == "load")).tolist()] == ["GPU/block 0/load"]
    narrower.save(tmp_path / "part.parquet")
    assert (chosen_tracks(lanescope.open(tmp_path / "part.parquet"), tree) == found).all()
