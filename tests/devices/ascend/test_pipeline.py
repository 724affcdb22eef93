"""Arrows from the host to the core and back, against a truth from the files of the producer's captures."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from devices.ascend.helpers import decode, decode_file, decode_simulated, graph, records, simulated, stats

PUBLISHING = ("dispatch", "early_dispatch", "drain_publish")


def captures(corpus):
    """Return the records files of the producer's captures."""
    return sorted(Path(corpus, "producers/ascend").glob("*/*/chip_swimlane_records.json"))


def truth(path):
    """Return (dispatch stamp, core) of the executions that a phase dispatched, and the same of those seen to finish."""
    content = json.loads(path.read_text())
    threads = content["metadata"].get("core_to_thread", [])
    phases = content.get("aicpu_scheduler_phases", [])
    dispatched, completed = Counter(), Counter()
    for core, _, dispatch, finish in content["aicpu_tasks"]:
        if core >= len(threads):
            continue
        mine = phases[threads[core]]
        for phase in mine:
            if phase["kind"] in PUBLISHING and phase["start_cycles"] <= dispatch <= phase["end_cycles"]:
                dispatched[core, phase["start_cycles"]] += 1
                break
        for phase in mine:
            if phase["kind"] == "complete" and phase["start_cycles"] <= finish <= phase["end_cycles"]:
                completed[core, phase["start_cycles"]] += 1
                break
    return dispatched, completed


def drawn(trace, kind, core_side, phase_side):
    """Return (core, start of the phase) of the arrows of a kind between cores and phases."""
    lanes = trace.tracks["name"]
    roles = trace.tracks["role"]
    found = Counter()
    for flow in trace.flows.rows():
        if flow["kind"] == kind and roles[flow[f"{phase_side}_track_id"]] == "scheduler":
            core = int(lanes[flow[f"{core_side}_track_id"]].split("_")[1])
            found[core, int(trace.slices["ts_ticks"][flow[f"{phase_side}_slice_id"]])] += 1
    return found


def test_arrows_of_dispatches_and_completions_are_those_of_the_records(corpus):
    total = Counter()
    for path in captures(corpus):
        trace = decode_file(path)
        dispatched, completed = truth(path)
        assert drawn(trace, "dispatch", "dst", "src") == dispatched, path.parent.name
        assert drawn(trace, "complete", "src", "dst") == completed, path.parent.name
        total += Counter(trace.flows["kind"].tolist())
    assert total["dispatch"] > 1000
    assert total["complete"] > 1000
    assert total["submit"] > 500
    assert total["ready"] > 500


def test_each_execution_that_was_dispatched_says_what_held_it(corpus):
    for path in captures(corpus):
        trace = decode_file(path)
        tasks = trace.details["ascend_tasks"]
        reached = set(trace.flows["dst_slice_id"].tolist())
        dispatched = tasks.values("slice_id")[tasks.valid("dispatch_ticks")].tolist()
        assert reached.issuperset(dispatched), path.parent.name


def pipeline(**options):
    """Return a capture of a producer and its consumer, each step recorded."""

    def phase(kind, start, end, count=1):
        return {
            "kind": kind,
            "start_cycles": start,
            "end_cycles": end,
            "loop_iter": start,
            "tasks_processed": count,
            "pop_hit": 1,
            "pop_miss": 0,
        }

    content = records(
        [[0, 1, 1, 200, 300, 10], [1, 2, 1, 420, 500, 5]],
        [[0, 1, 170, 310], [1, 1, 400, 520]],
        level=4,
        metadata={"core_to_thread": [0, 0]},
        aicpu_scheduler_phases=[
            [
                phase("dispatch", 160, 180),
                phase("complete", 305, 320),
                phase("dispatch", 390, 405),
                phase("complete", 510, 525),
            ]
        ],
        aicpu_orchestrator_phases=[
            [
                {"submit_idx": 0, "task_id": 1, "start_cycles": 100, "end_cycles": 110},
                {"submit_idx": 1, "task_id": 2, "start_cycles": 120, "end_cycles": 130},
            ]
        ],
        **options,
    )
    return decode(content, deps=graph({1: (0, -1, -1), 2: (-1, 0, -1)}, [(1, 2)]))


def test_every_step_of_the_pipeline_is_joined_with_the_next():
    trace = pipeline()
    names = trace.slices["name"]
    found = []
    for flow in trace.flows.rows():
        source, target = ((names[flow[f"{side}_slice_id"]], flow[f"{side}_ts"] // 20 + 100) for side in ("src", "dst"))
        found.append((flow["kind"], *source, *target))
    kernel = "func_0_a"
    assert sorted(found) == [
        ("complete", kernel, 300, "complete", 310),
        ("complete", kernel, 500, "complete", 520),
        ("dependency", kernel, 300, kernel, 415),
        ("dispatch", "dispatch", 170, kernel, 190),
        ("dispatch", "dispatch", 400, kernel, 415),
        ("ready", "complete", 320, "dispatch", 400),
        ("submit", "submit", 110, "dispatch", 170),
        ("submit", "submit", 130, "dispatch", 400),
    ]


def test_perfetto_shows_what_held_an_execution(trace_processor, tmp_path):
    from lanescope.io import perfetto

    trace = pipeline()
    path = tmp_path / "a.pftrace"
    perfetto.write(trace, path)
    (rows,) = trace_processor(
        path,
        "select dst.name as name, src.name as cause from flow join slice src on slice_out = src.id "
        "join slice dst on slice_in = dst.id where dst.name = 'func_0_a'",
    )
    assert sorted(row["cause"] for row in rows) == ["dispatch", "dispatch", "func_0_a"]


def assert_forward(trace, name):
    """Arrows of the pipeline go forward, from and to times within the slices that they join, or the setup before."""
    flows, slices = trace.flows, trace.slices
    kinds = flows.column("kind").texts.astype(str)
    ts = slices.values("ts")
    ends = np.where(slices.valid("dur"), ts + slices.values("dur"), np.iinfo(np.int64).max)
    src, dst = flows.values("src_slice_id"), flows.values("dst_slice_id")
    pipeline = kinds != "dependency"
    assert (flows.values("src_ts") <= flows.values("dst_ts"))[pipeline].all(), name
    for slice_id, at, is_setup in (
        (src, flows.values("src_ts"), np.zeros(len(flows), np.bool_)),
        (dst, flows.values("dst_ts"), kinds == "dispatch"),
    ):
        assert (at <= ends[slice_id])[pipeline].all(), name
        assert ((at >= ts[slice_id]) | is_setup)[pipeline].all(), name


def test_arrows_of_the_producer_go_forward(corpus):
    for path in captures(corpus):
        assert_forward(decode_file(path), path.parent.name)


@pytest.mark.parametrize("version", ["v2", "v3", "v3c", "v4"])
@pytest.mark.parametrize("seed", range(2))
def test_simulated_arrows_go_forward(version, seed):
    # Lost phases, and cores whose clocks step: what contradicts an arrow is reported, and the arrow is not drawn.
    made = simulated(seed, format_version=version, tasks=300, drop_phases=40, clock_steps=2)
    assert_forward(decode_simulated(made), made)


def test_a_pass_that_began_later_saw_nothing():
    phases = [
        {"kind": "complete", "start_cycles": start, "end_cycles": end, "loop_iter": at, "tasks_processed": 1}
        for at, (start, end) in enumerate(((2060, 2100), (2150, 2200)))
    ]
    rows = [[0, 1, 1, 2000, 2050, 0], [0, 2, 2, 2060, 2110, 0]]
    trace = decode(
        records(
            rows,
            [[0, 1, 1990, 2070], [0, 2, 2055, 2120]],
            level=3,
            metadata={"core_to_thread": [0, 0]},
            aicpu_scheduler_phases=[phases],
        )
    )
    # The second was seen between both passes, by one that left no record.
    assert drawn(trace, "complete", "src", "dst") == {(0, 2060): 1}
    assert stats(trace)["ascend_finish_unmatched"] == 1
