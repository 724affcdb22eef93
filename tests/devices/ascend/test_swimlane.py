"""The merged JSON of the peer, against what its converter is known to write for the golden captures."""

import json

import numpy as np
import pytest
from hypothesis import given, settings

from devices.ascend.helpers import CASES, NAMINGS, decode, decode_simulated, golden, graph, records, simulated
from devices.ascend.test_attribution import captures
from effort import some
from lanescope.cli import main
from lanescope.devices.ascend.export.swimlane import export
from lanescope.devices.ascend.export.swimlane.trace_view import Content
from lanescope.errors import UsageError
from lanescope.trace import TimeBase, TraceBuilder

WORKER, VIEW, SCHEDULER, ORCHESTRATOR = 4, 3, 2, 1


def merged(trace):
    """Return the events of the export."""
    return json.loads(b"".join(export(trace)))["traceEvents"]


def bars(events, pid):
    """Return (name, lane, begin, length) of the bars of a process, by begin, in nanoseconds."""
    found = [event for event in events if event["ph"] == "X" and event["pid"] == pid]
    return sorted(
        ((e["name"], e["tid"], round(e["ts"] * 1000), round(e["dur"] * 1000)) for e in found), key=lambda bar: bar[2]
    )


def arrows(events, name):
    """Return (process, lane, ns) of both ends of the arrows of a name."""
    ends = {}
    for event in events:
        if event["ph"] in "sf" and event["name"] == name:
            ends.setdefault(event["id"], {})[event["ph"]] = (event["pid"], event["tid"], round(event["ts"] * 1000))
    assert all(set(pair) == {"s", "f"} for pair in ends.values())
    return sorted((pair["s"], pair["f"]) for pair in ends.values())


@pytest.mark.parametrize("naming", NAMINGS)
@pytest.mark.parametrize("case", CASES)
def test_a_bar_for_each_execution(case, naming):
    trace = golden(case, naming)
    kernels = [bar for bar in bars(merged(trace), WORKER) if "(r" in bar[0] or "(t" in bar[0]]
    tasks = trace.details["ascend_tasks"]
    begins, lengths = trace.slices["ts"][tasks["slice_id"]], trace.slices["dur"][tasks["slice_id"]]
    one_bar = trace.inputs["format"][0] == "v3c"
    expected = []
    for row, begin, length in zip(tasks.rows(), begins.tolist(), lengths.tolist(), strict=True):
        at = row["receive_ts"] if one_bar else begin
        expected.append((row["label"], 10_000 + 10 * row["core"], at, begin + length - at))
    labels = {row[0] for row in expected}
    assert sorted(bar for bar in kernels if bar[0] in labels) == sorted(expected)


def test_setups_of_the_seed_format_version_have_bars():
    events = merged(golden("v3_cold_first", "l2"))
    # Deltas of 180, 35, 2, 1 cycles; one of 0 has no bar.
    assert [bar[1:] for bar in bars(events, WORKER) if bar[0] == "setup"] == [
        (10_000, 0, 3600),
        (10_020, 18_300, 700),
        (10_010, 18_780, 20),
        (10_020, 25_960, 40),
    ]
    assert not [bar for bar in bars(merged(golden("v3_cold_first", "chip")), WORKER) if bar[0] == "setup"]


def test_level_one_has_no_view_of_the_scheduler():
    events = merged(golden("v3_cold_first", "l2"))
    assert {event["pid"] for event in events} == {WORKER}
    assert {event["args"]["name"] for event in events if event["name"] == "process_name"} == {"Worker View"}


@pytest.mark.parametrize("naming", NAMINGS)
def test_lanes_and_processes(naming):
    events = merged(golden("v3_spec_dummy", naming))
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {1: "AICPU SpecDemo", 2: "AICPU Scheduler", 3: "Scheduler View", 4: "Worker View"}
    lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    base, step = {"l2": (3000, 1), "chip": (30_000, 10)}[naming]
    assert lanes[SCHEDULER, base] == "Sched_0"
    assert lanes[SCHEDULER, base + step] == "Sched_1"
    assert lanes[WORKER, 10_000] == lanes[VIEW, 10_000] == "AIC_0"
    assert lanes[ORCHESTRATOR, 4000] == "Orch_0"
    bare = {
        "l2": {19_001: "DUMMY_T1", 18_000: "ALLOC_T0"},
        "chip": {19_000: "AICPU_0", 19_001: "AICPU_1", 19_002: "AICPU_2"},
    }[naming]
    assert {tid: name for (pid, tid), name in lanes.items() if pid == WORKER and tid >= 18_000} == bare
    assert {"alloc(r1t0)", "dummy(r1t4)"} <= {bar[0] for bar in bars(events, WORKER)}
    # What resolves has a lane of its own with the newer naming.
    resolving = {bar[1] for bar in bars(events, SCHEDULER) if bar[0].startswith("resolve")}
    assert resolving == {"l2": {3000, 3001}, "chip": {30_001, 30_011}}[naming]


@pytest.mark.parametrize("naming", NAMINGS)
def test_the_one_violation_is_called_one(naming):
    events = merged(golden("v3_spec_dummy", naming))
    (worker,) = (arrow for arrow in arrows(events, "hb_violation") if arrow[0][0] == WORKER)
    # r1t1 on core 0 ends at 17.6 us; r1t6 on core 2 is received at 6.4 us.
    if naming == "l2":
        assert worker == ((WORKER, 10_000, 17_590), (WORKER, 10_020, 6400))
    else:
        assert worker[0][:2] == (WORKER, 10_000)
        assert worker[1] == (WORKER, 10_020, 6400)
    assert len(arrows(events, "hb_violation")) == 2  # in both views
    # r1t1 and r1t2, r1t2 and r1t3: both staged or not, neither is one.
    dependencies = [arrow for arrow in arrows(events, "dependency") if arrow[0][0] == WORKER]
    assert len([arrow for arrow in dependencies if max(arrow[0][1], arrow[1][1]) < 18_000]) == 2
    # The newer converter joins tasks without executions as well: r1t0 and r1t4 with their producers and consumers.
    assert len(dependencies) == {"l2": 2, "chip": 7}[naming]


@pytest.mark.parametrize("format_version", ["v2", "v3", "v3c"])
def test_arrows_leave_bars_and_enter_bars(format_version):
    trace = decode_simulated(simulated(2, tasks=150, format_version=format_version, aic=4, aiv=6))
    events = merged(trace)
    spans = {}
    for event in events:
        if event["ph"] == "X":
            spans.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    for name in ("dependency", "complete"):
        found = arrows(events, name)
        assert found
        for source, _ in found:
            if source[0] == WORKER:
                ts = source[2] / 1000
                assert any(begin - 1e-6 <= ts <= end + 1e-6 for begin, end in spans[source[:2]])
    for source, target in arrows(events, "dispatch"):
        assert source[0] == SCHEDULER
        assert any(begin - 0.001 < target[2] / 1000 < end + 0.001 for begin, end in spans[target[:2]])
    tasks = trace.details["ascend_tasks"]["task_id"].tolist()
    # The newer converter joins a submit with each dispatch of its task, the older ones with the first.
    assert len(arrows(events, "submit→dispatch")) == len(tasks if format_version == "v3c" else set(tasks))
    for source, target in arrows(events, "complete→ready"):
        assert source[2] <= target[2]


def test_mix_tasks_have_arrows_between_all_their_halves():
    kernels = {1: (0, 1, 2), 2: (3, 4, 5)}
    rows = [[core, 1, 1, 100, 150, 2] for core in range(3)] + [[core, 2, 2, 200, 250, 2] for core in range(3)]
    content = records(rows, level=1, cores=("aic", "aiv", "aiv"))
    events = merged(decode(content, deps=graph(kernels, [(1, 2)])))
    assert len(arrows(events, "dependency")) == 9


def test_a_task_of_many_blocks_has_one_arrow():
    deps = graph({1: (-1, 0, -1), 2: (-1, 1, -1)}, [(1, 2)])
    for task in deps["tasks"]:
        task["block_num"] = 3
    rows = [[core, 1, 1, 100 + core, 150, 2] for core in range(3)]
    rows += [[core, 2, 2, 200 - core, 250, 2] for core in range(3)]
    content = records(rows, level=1, cores=("aiv",) * 3, key="chip_swimlane_level")
    (arrow,) = arrows(merged(decode(content, deps=deps)), "dependency")
    # From the earliest block to the earliest block.
    assert (arrow[0][1], arrow[1][1]) == (10_000, 10_020)


def test_names_do_not_break_the_json():
    names = {"callable_id_to_name": {"0": 'a"b\\c\u0001', "1": "plain"}, "orchestrator_name": 'o"'}
    phase = {"kind": 'odd"kind', "start_cycles": 90, "end_cycles": 95, "loop_iter": 1, "tasks_processed": 1}
    content = records([[0, 1, 1, 100, 150, 2]], [[0, 1, 90, 160]], level=3, aicpu_scheduler_phases=[[phase]])
    trace = decode(content, deps=graph({1: (0, -1, -1)}), beside={"name_map_x.json": names})
    events = merged(trace)
    assert 'a"b\\c\u0001(t1)' in {event["name"] for event in events}
    assert 'odd"kind(1)' in {event["name"] for event in events}


@pytest.mark.parametrize("format_version", ["v1c", "v4"])
def test_other_format_versions_are_exported_too(format_version):
    trace = decode_simulated(simulated(5, tasks=80, format_version=format_version))
    kernels = [event for event in merged(trace) if event.get("cat") == "event" and "fanout-hint" in event["args"]]
    assert len(kernels) == len(trace.details["ascend_tasks"])


def test_the_verb_writes_it(tmp_path, capsys):
    out = tmp_path / "merged.json"
    source = golden_path("v3_spec_dummy")
    assert main(["convert", source, "--format", "swimlane", "-o", str(out)]) == 0
    assert len(json.loads(out.read_text())["traceEvents"]) > 50


def golden_path(case):
    from devices.ascend.helpers import GOLDEN

    return str(GOLDEN / case / "l2_swimlane_records.json")


def test_other_traces_are_refused():
    with pytest.raises(UsageError, match="no Ascend tasks"):
        export(TraceBuilder(TimeBase()).finish())


@given(captures())
@settings(max_examples=some(150))
def test_dispatches_are_on_the_first_lane_that_is_free(capture):
    content, deps = capture
    made = Content(decode(content, deps=deps))
    rows = [(int(made.core[row]), float(made.dispatch[row]), row) for row in np.flatnonzero(made.is_joined).tolist()]
    free, before = [], None
    for core, begin, row in sorted(rows):
        free = free if core == before else []
        before = core
        lane = next((place for place, end in enumerate(free) if end <= begin), len(free))
        free[lane : lane + 1] = [float(made.finish[row])]
        assert made.flight_tid[row] == 10_000 + 10 * core + min(lane, 9)
