"""Paths of traces: windows, sinks, waits, what is left out, tables, and the lane that shows them."""

import numpy as np
import pytest

from lanescope import InputError, TimeBase, TraceBuilder, UsageError, simulate, write
from lanescope import open as opened
from lanescope.analysis.critical_path.answer import CriticalPath
from lanescope.analysis.critical_path.drawing import drawn
from lanescope.analysis.critical_path.windows import WindowChoice
from lanescope.trace import Flag


def made(rows, flows=(), *, lanes=None, gaps=(), coverage=(), flags=()):
    """Return a trace of rows (lane, begin, end, name) and flows (row, ts, row, ts); an end of None is unknown."""
    builder = TraceBuilder(TimeBase())
    names = list(dict.fromkeys(row[0] for row in rows)) if lanes is None else list(lanes)
    tracks, devices = {}, {}
    for name in names:
        nesting = "disjoint" if lanes is None else lanes[name]
        device = name.partition("/")[0]
        if device not in devices:
            devices[device] = builder.track(device, kind="group", role="device")
        tracks[name] = builder.track(
            name.partition("/")[2], kind="lane", role="queue", parent=devices[device], nesting=nesting
        )
    flag = dict(flags)
    for number, (lane, begin, end, name) in enumerate(rows):
        more = {"dur": 0 if end is None else end - begin}
        if end is None:
            more |= {"dur": np.array([0]), "dur_valid": np.array([False])}
        builder.append("slices", track_id=[tracks[lane]], ts=[begin], name=name, flags=int(flag.get(number, 0)), **more)
    for source, source_ts, target, target_ts in flows:
        builder.append(
            "flows",
            kind="signal",
            src_track_id=[tracks[rows[source][0]]],
            src_ts=[source_ts],
            dst_track_id=[tracks[rows[target][0]]],
            dst_ts=[target_ts],
            src_slice_id=[source],
            dst_slice_id=[target],
        )
    for table, spans in (("gaps", gaps), ("coverage", coverage)):
        for lane, begin, end in spans:
            more = {"cause": "overrun"} if table == "gaps" else {}
            builder.append(table, track_id=[tracks[lane]], ts=[begin], dur=[end - begin], **more)
    return builder.finish()


def listed(path):
    """Return the parts as (ts, dur, cause, name of the slice)."""
    names = path.trace.slices["name"]
    return [(row["ts"], row["dur"], row["cause"], names[row["slice_id"]]) for row in path.parts.rows()]


TWO = [("d/a", 0, 10, "first"), ("d/b", 12, 30, "second"), ("d/a", 10, 20, "other")]


def test_a_path_follows_its_flow():
    path = CriticalPath(made(TWO, [(0, 10, 1, 12)]))
    assert listed(path) == [(0, 10, "work", "first"), (10, 2, "delay beyond", "second"), (12, 18, "work", "second")]
    assert path.longest.explained == 28 / 30
    summary = {(row["cause"], row["name"]): row for row in path.summary.rows()}
    assert summary["work", "second"]["dur"] == 18
    assert summary["work", "second"]["busy_share"] == 18 / 38
    assert summary["work", "second"]["slack_min"] == 0
    assert [row["slack"] for row in path.slack.rows()] == [0, 0, None]
    assert [row["is_on_path"] for row in path.slack.rows()] == [True, True, False]
    (edges,) = path.edges.rows()
    assert (edges["kind"], edges["count"], edges["binding"], edges["floor_count"]) == ("signal", 1, 1, 0)


def test_windows_by_time_by_name_and_by_sink():
    trace = made(TWO, [(0, 10, 1, 12)])
    assert listed(CriticalPath(trace, WindowChoice(begin=5, end=15))) == [
        (5, 5, "work", "first"),
        (10, 2, "delay beyond", "second"),
        (12, 3, "work", "second"),
    ]
    assert listed(CriticalPath(trace, WindowChoice(name="other"))) == [(10, 10, "work", "other")]
    assert listed(CriticalPath(trace, WindowChoice(sink="d/a"))) == [
        (0, 10, "work", "first"),
        (10, 10, "work", "other"),
        (20, 10, "after last end", "other"),
    ]
    named = CriticalPath(trace, WindowChoice(name="other")).paths[0].window
    assert (named.name, named.reason) == ("other", "end of other")


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        (WindowChoice(name="nothing"), "no slice or window 'nothing': 0 slices"),
        (WindowChoice(name="first#3"), "no slice or window 'first#3': 1 slices"),
        (WindowChoice(begin=9, end=9), "the window from 9 to 9 is empty"),
        (WindowChoice(end=-4, begin=-9), "no slice starts before"),
        (WindowChoice(sink="x*"), "no lane 'x*' has slices"),
        (WindowChoice(device="e"), "no device 'e' has slices"),
    ],
)
def test_windows_that_are_not_there_are_refused_by_name(choice, text):
    with pytest.raises(UsageError, match=text.replace("*", r"\*")):
        CriticalPath(made(TWO), choice)


def test_devices_that_no_cause_joins_have_a_path_each():
    rows = [("d/a", 0, 10, "x"), ("e/a", 2, 30, "y")]
    path = CriticalPath(made(rows))
    assert [(each.window.name, each.length) for each in path.paths] == [("d", 10), ("e", 28)]
    joined = CriticalPath(made(rows, [(0, 2, 1, 2)]))
    assert [each.length for each in joined.paths] == [30]
    (one,) = CriticalPath(made(rows), WindowChoice(device="d")).paths
    assert listed(CriticalPath(made(rows), WindowChoice(device="d")))[0] == (0, 10, "work", "x")
    assert one.window.end == 30


def test_known_calls_wait_and_others_where_the_user_says_so():
    rows = [("d/a", 0, 4, "go"), ("d/a", 4, 20, "cudaStreamSynchronize"), ("d/a", 20, 30, "pause")]
    trace = made(rows)
    assert [part[2] for part in listed(CriticalPath(trace))] == ["work", "wait without cause", "work"]
    assert [part[2] for part in listed(CriticalPath(trace, waits="^pa"))][1:] == ["wait without cause"] * 2
    with pytest.raises(UsageError, match="invalid regular expression"):
        CriticalPath(trace, waits="(")


def test_slices_with_suspect_clocks_and_ends_that_nothing_recorded_stay_out():
    rows = [*TWO, ("d/b", 1000, 2000, "far")]
    path = CriticalPath(made(rows, [(0, 10, 1, 12)], flags={3: Flag.CLOCK_SUSPECT}.items()))
    assert path.made.rows_suspect == 1
    assert path.longest.window.end == 30
    unfinished = CriticalPath(made([("d/a", 0, None, "first"), ("d/b", 12, 30, "second")], [(0, 0, 1, 12)]))
    (edges,) = unfinished.edges.rows()
    assert (edges["count"], edges["unplaced"]) == (0, 1)


def test_backward_causes_are_left_out_and_counted():
    path = CriticalPath(made(TWO, [(1, 30, 2, 10)]))
    (edges,) = path.edges.rows()
    assert (edges["count"], edges["backward"], edges["backward_max"]) == (0, 1, 20)


def test_gaps_and_missing_coverage_are_unknown():
    rows = [("d/a", 0, 10, "x"), ("d/a", 50, 60, "y")]
    path = CriticalPath(made(rows, gaps=[("d/a", 20, 30)], coverage=[("d/a", 0, 40), ("d/a", 45, 60)]))
    assert [(row["ts"], row["dur"], row["cause"]) for row in path.parts.rows()] == [
        (0, 10, "work"),
        (10, 10, "lane idle"),
        (20, 10, "unknown"),
        (30, 10, "lane idle"),
        (40, 5, "unknown"),
        (45, 5, "lane idle"),
        (50, 10, "work"),
    ]


def test_a_slice_that_runs_over_the_end_comes_first_and_is_counted():
    path = CriticalPath(made([("d/a", 0, 10, "x"), ("d/a", 20, 60, "y")]), WindowChoice(begin=0, end=40))
    assert listed(path) == [(0, 10, "work", "x"), (10, 10, "lane idle", "y"), (20, 20, "work", "y")]
    assert path.paths[0].window.outlive == 1


def test_what_if_answers_lie_between_bounds_and_refuse_outcomes():
    rows = [("d/a", 0, 10, "first"), ("d/b", 12, 30, "second"), ("d/c", 0, 5, "cudaDeviceSynchronize")]
    path = CriticalPath(made(rows, [(0, 10, 1, 12)]))
    (answer,) = path.what_if(["second=1/2"]).rows()
    assert (answer["observed"], answer["low"], answer["nominal"], answer["high"]) == (30, 21, 21, 21)
    for change, text in (
        ("none=0.5", "no slice on the path's lanes"),
        ("cudaDeviceSynchronize=0.5", "is a wait"),
        ("second", "invalid change"),
        ("second=-1", "invalid change"),
        ("second=x", "invalid change"),
        ("=2", "invalid change"),
    ):
        with pytest.raises(UsageError, match=text):
            path.what_if([change])
    (same,) = path.what_if(["first=1"]).rows()
    assert {same[name] for name in ("observed", "low", "nominal", "high")} == {30}


def queue_of(count, waits=("cudaStreamSynchronize",)):
    """Return a trace of calls that each launch an operation 5 ns later, at least, and of waits for them."""
    rows, flows = [], []
    for number in range(count):
        begin = 20 * number
        rows += [("d/a", begin, begin + 2, "call"), ("d/b", begin + 5 + number % 2, begin + 11, "work")]
        rows += [("d/a", begin + 2, begin + 12 + number % 3, waits[number % len(waits)])]
        flows += [(3 * number, begin, 3 * number + 1, begin + 5 + number % 2)]
        flows += [(3 * number + 1, begin + 11, 3 * number + 2, begin + 12 + number % 3)]
    return made(rows, flows)


def test_what_causes_of_a_kind_cost_at_least_can_change():
    # Of fewer than 20 waits of a name nothing is known of what one costs at least.
    trace = queue_of(30, ("cudaStreamSynchronize", "cudaDeviceSynchronize"))
    path = CriticalPath(trace, WindowChoice(name="cudaStreamSynchronize#0"))
    with pytest.raises(UsageError, match="no cause is of kind 'launch'"):
        path.what_if(["kind:launch=0.5"])
    (edges,) = path.edges.rows()
    assert (edges["kind"], edges["floor"], edges["floor_count"]) == ("signal", 1, 60)
    same, gone, more = path.what_if(["kind:signal=1", "kind:signal=0", "kind:signal=4"]).rows()
    assert {same[name] for name in ("observed", "low", "nominal", "high")} == {same["observed"]}
    assert gone["observed"] - gone["nominal"] == 2  # the launch and the return
    assert more["nominal"] - more["observed"] == 6
    few = CriticalPath(queue_of(5))
    with pytest.raises(UsageError, match="nothing is known of what a cause of kind 'signal' costs"):
        few.what_if(["kind:signal=2"])


def test_waits_have_floors_by_name():
    path = CriticalPath(queue_of(30))
    assert list(path.waits.rows()) == [
        {"id": 0, "name": "cudaStreamSynchronize", "count": 30, "floor": 0, "floor_count": 0}
    ]  # each of them waited for something: none tells what one costs by itself
    needless = [("d/c", 100 * number, 100 * number + 4 + number, "cudaDeviceSynchronize") for number in range(20)]
    assert list(CriticalPath(made(needless)).waits.rows()) == [
        {"id": 0, "name": "cudaDeviceSynchronize", "count": 20, "floor": 4, "floor_count": 20}
    ]
    (few,) = CriticalPath(queue_of(5)).waits.rows()
    assert (few["count"], few["floor"], few["floor_count"]) == (5, 0, 0)


def test_sql_has_the_tables_of_paths_and_phases():
    trace = queue_of(30)
    path = CriticalPath(trace)
    for name, table in (
        ("critical_path_parts", path.parts),
        ("critical_path_summary", path.summary),
        ("critical_path_edges", path.edges),
        ("critical_path_waits", path.waits),
        ("slack", path.slack),
        ("phases", trace.phases()),
        ("longest_gaps", trace.longest_gaps()),
    ):
        found = [tuple(row.values()) for row in trace.sql(f"select * from {name} order by id").rows()]
        assert found == [tuple(row.values()) for row in table.rows()]
        assert found
    joined = "select sum(p.dur) from critical_path_parts p join slices s on s.id = p.slice_id"
    assert [tuple(row.values()) for row in trace.sql(joined).rows()] == [(path.longest.length,)]
    assert list(made([]).sql("select * from critical_path_parts").rows()) == []


def test_the_second_latest_cause_of_the_least_explained_part():
    rows = [("d/a", 0, 10, "first"), ("d/b", 0, 25, "late"), ("d/c", 40, 60, "last")]
    path = CriticalPath(made(rows, [(0, 10, 2, 40), (1, 25, 2, 40)]))
    found = path.longest.sensitivity()
    assert (found.ts, found.dur, found.other) == (25, 15, "signal")
    assert found.shares[0] == (10 + 20) / 60
    assert found.shares[3] == 30 / 60
    assert CriticalPath(made([("d/a", 0, 5, "x")])).longest.sensitivity() is None


def test_lanes_of_zero_length_have_no_parts():
    path = CriticalPath(made([("d/a", 7, 7, "x")]))
    assert len(path.parts) == len(path.summary) == 0
    assert path.longest.explained == 0


def test_a_trace_without_slices_is_refused():
    with pytest.raises(UsageError, match="no slices that work or wait"):
        CriticalPath(made([], lanes={"d/a": "disjoint"}))


def test_the_path_is_a_lane_of_its_own_and_its_causes_are_arrows(tmp_path):
    trace = made(TWO, [(0, 10, 1, 12)])
    found = drawn(CriticalPath(trace))
    lane = int(np.flatnonzero(found.tracks["name"] == "critical path")[0])
    mine = found.slices.where(found.slices["track_id"] == lane)
    assert mine["name"].tolist() == ["first", "delay beyond: signal", "second"]
    assert (int(mine["ts"].min()), int(mine["dur"].sum())) == (0, 30)
    assert found.flows["kind"].tolist() == ["signal", "critical path"]
    assert list(found.slices.rows())[: len(trace.slices)] == list(trace.slices.rows())
    write(found, tmp_path / "path.pftrace")
    again = opened(tmp_path / "path.pftrace")
    assert {"first", "delay beyond: signal", "second"} <= set(again.slices["name"].tolist())
    assert len(again.slices) == len(found.slices)


def test_captures_without_causes_are_refused_with_what_answers_instead(tmp_path):
    for name, content in simulate("aie", seed=2).files.items():
        (tmp_path / name).write_bytes(content)
        break
    with pytest.raises(InputError, match="records no causes") as refused:
        CriticalPath(opened(tmp_path / name))
    assert "phases" in refused.value.hint


def test_times_are_those_of_windows_everywhere():
    trace = made(TWO, [(0, 10, 1, 12)])
    found = {
        (begin, end): (window.begin, window.end)
        for begin, end in (("5ns", "0.015us"), ("+5ns", "-4ns"), ("other#0", "other#-1"))
        for window in [CriticalPath(trace, WindowChoice(begin=begin, end=end)).paths[0].window]
    }
    assert list(found.values()) == [(5, 15), (5, 26), (10, 20)]
    with pytest.raises(UsageError, match="--start"):
        CriticalPath(trace, WindowChoice(begin="yesterday"))


def test_causes_that_clock_errors_may_have_turned_are_undecided():
    builder = TraceBuilder(TimeBase())
    clocks = [builder.clock(name=name, device="d", frequency=10**9) for name in ("host", "device")]
    builder.anchor(clock_id=clocks[1], ticks=0, ts=0, error_ns=5)
    group = builder.track("d", kind="group", role="device")
    lanes = [
        builder.track(str(n), kind="lane", role="queue", parent=group, clock_id=clock) for n, clock in enumerate(clocks)
    ]
    for lane, begin in zip(lanes, (100, 97), strict=True):
        builder.append("slices", track_id=[lane], ts=[begin], dur=[10], name="x")
    builder.append("slices", track_id=[lanes[1]], ts=[10], dur=[10], name="x")
    for target, ts in ((1, 97), (2, 10)):
        builder.append(
            "flows",
            kind="dispatch",
            src_track_id=[lanes[0]],
            src_ts=[100],
            dst_track_id=[lanes[1]],
            dst_ts=[ts],
            src_slice_id=[0],
            dst_slice_id=[target],
        )
    (edges,) = CriticalPath(builder.finish()).edges.rows()
    assert [edges[name] for name in ("count", "undecided", "backward", "backward_max")] == [0, 1, 1, 90]


def test_of_lanes_that_end_together_one_with_causes_is_the_sink():
    rows = [("d/a", 0, 30, "alone"), ("d/b", 0, 10, "first"), ("d/c", 12, 30, "second")]
    path = CriticalPath(made(rows, [(1, 10, 2, 12)]))
    assert [part[3] for part in listed(path)] == ["first", "second", "second"]
    assert [part[3] for part in listed(CriticalPath(made(rows)))] == ["alone"]


def test_closing_records_that_take_no_time_are_passed_over_as_sinks():
    rows = [("d/a", 0, 10, "first"), ("d/b", 12, 30, "second"), ("d/a", 90, 90, "closing"), ("d/b", 95, 95, "closing")]
    path = CriticalPath(made(rows, [(0, 10, 1, 12)]))
    window = path.paths[0].window
    assert (window.begin, window.end, window.passed_over, window.passed_until) == (0, 30, 2, 95)
    assert [part[3] for part in listed(path)] == ["first", "second", "second"]
    # Where a window is asked for, it stays what it is.
    asked = CriticalPath(path.trace, WindowChoice(end=92)).paths[0].window
    assert (asked.end, asked.passed_over, path.made.graph.time[asked.sink]) == (92, 1, 30)
    # One that something caused, or that caused something, ends the run; so does one where there is nothing else.
    for cause in ((1, 30, 2, 90), (2, 90, 3, 95)):
        window = CriticalPath(made(rows, [(0, 10, 1, 12), cause])).paths[0].window
        assert (window.end, window.passed_over) == (max(cause[1], cause[3]), 1 if cause[3] == 90 else 0)
    (window,) = [each.window for each in CriticalPath(made(rows[2:])).paths]
    assert (window.end, window.passed_over) == (95, 0)


def test_lanes_that_are_devices_of_their_own_may_be_many():
    """Processes of a Chrome trace, for example: what no cause joins is told apart in one pass over them."""
    count = 20_000
    builder = TraceBuilder(TimeBase())
    lanes = [builder.track(f"process {number}", kind="lane", role="thread") for number in range(count)]
    builder.append("slices", track_id=lanes, ts=range(count), dur=[10] * count, name=["work"] * count)
    path = builder.finish().critical_path()
    assert path.longest.length == count + 9
