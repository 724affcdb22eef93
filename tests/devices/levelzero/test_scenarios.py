"""The regressions of the tracer by their names: what a reader has to make of what the recorder writes.

Each scenario once with numbered operations, where attribution is exact whatever happens; those that a trace without
numbers can tell, also that way.
"""

from __future__ import annotations

import pytest

from devices.levelzero.helpers import Script, names, operations, stats
from lanescope.analysis import check

KERNELS = {1: '"k1"', 2: '"k2"', 3: '"k3"', 4: '"k4"'}


def numbered(*, immediate: bool = True, in_order: bool = False, lists: int = 1) -> Script:
    script = Script()
    for number in range(1, lists + 1):
        fields = {"ordinal": 0, "immediate": int(immediate), "in_order": int(in_order), "compute": 1}
        script.record("lanescope_ze:list", list_id=number, handle=0x100 * number, device=0xD0, **fields)
    for number, name in KERNELS.items():
        script.record("lanescope_ze:kernel", kernel=number, name=name, simd=16)
    return script


def launch(script: Script, op: int, kernel: int, **fields) -> Script:
    return script.op(op, "LaunchKernel", kernel=kernel, groups_x=1, groups_y=1, groups_z=1, **fields)


def found(script: Script, tmp_path) -> list[tuple[str, int]]:
    trace = script.open(tmp_path)
    # The texts name no device, and some neither kernels nor timestamps.
    lawful = {"levelzero_unknown_device", "levelzero_unnamed_kernel", "levelzero_untimed"}
    assert not [one for one in check.run(trace) if one.code != "LS303" and one.stat not in lawful]
    return [(row["name"], row["execution_index"]) for row in operations(trace)]


def test_R1_shared_event(tmp_path) -> None:
    """4 Appends of different kernels signal one event: 4 results, one per kernel."""
    script = numbered()
    for number in range(1, 5):
        launch(script, number, number, signal=1)
    for number in range(1, 5):
        script.harvest(number)
    assert found(script, tmp_path) == [("k1", 1), ("k2", 1), ("k3", 1), ("k4", 1)]


def test_R2_sequential_reuse(tmp_path) -> None:
    script = numbered()
    for number in (1, 2, 3):
        launch(script, number, number, signal=1).harvest(number)
    assert found(script, tmp_path) == [("k1", 1), ("k2", 1), ("k3", 1)]


@pytest.mark.parametrize("destroyed", [True, False])
def test_R3_recycled_kernel_handle(destroyed, tmp_path) -> None:
    """A kernel is created where another one was: the new name counts, even if the destruction was not seen."""
    script = Script()
    for name in ('"old"', '"new"'):
        script.call("zeKernelCreate", desc_val={"pKernelName": name}, out_phKernel_val=0x70)
        script.append("LaunchKernel", 0x4, hKernel=0x70).result(0x4)
        if destroyed:
            script.call("zeKernelDestroy", hKernel=0x70)
    assert names(script.open(tmp_path)) == ["old", "new"]


def test_R3_a_destroyed_kernel_has_no_name(tmp_path) -> None:
    script = Script().call("zeKernelCreate", desc_val={"pKernelName": '"old"'}, out_phKernel_val=0x70)
    script.call("zeKernelDestroy", hKernel=0x70).append("LaunchKernel", 0x4, hKernel=0x70).result(0x4)
    trace = script.open(tmp_path)
    assert names(trace) == ["LaunchKernel"]
    assert stats(trace)["levelzero_unnamed_kernel"] == 1


def test_R3_simd_and_group_size_do_not_outlive_a_kernel(tmp_path) -> None:
    script = Script().call("zeKernelCreate", desc_val={"pKernelName": '"old"'}, out_phKernel_val=0x70)
    script.record("lttng_ust_ze_properties:kernel", hKernel=0x70, pKernelProperties_val={"maxSubgroupSize": 16})
    script.call("zeKernelSetGroupSize", hKernel=0x70, groupSizeX=4, groupSizeY=2, groupSizeZ=1)
    script.append("LaunchKernel", 0x4, hKernel=0x70).result(0x4)
    script.call("zeKernelSetGroupSize", hKernel=0x70, groupSizeX=8, groupSizeY=1, groupSizeZ=1)
    script.append("LaunchKernel", 0x4, hKernel=0x70).result(0x4)
    script.call("zeKernelCreate", desc_val={"pKernelName": '"new"'}, out_phKernel_val=0x70)
    script.append("LaunchKernel", 0x4, hKernel=0x70).result(0x4)
    rows = operations(script.open(tmp_path))
    assert [(row["simd"], row["group_x"], row["group_y"]) for row in rows] == [
        (16, 4, 2),
        (16, 8, 1),
        (None, None, None),
    ]


def test_R4_R5_resubmission(tmp_path) -> None:
    """2 Appends, executed 3 times: 6 results with their runs."""
    script = numbered(immediate=False)
    launch(script, 1, 1, signal=1)
    launch(script, 2, 2, signal=1)
    for run in (1, 2, 3):
        script.list_run(1, run).harvest(1, run).harvest(2, run)
    assert found(script, tmp_path) == [(name, run) for run in (1, 2, 3) for name in ("k1", "k2")]


def test_R4_without_numbers(tmp_path) -> None:
    script = Script().regular(1).append("Barrier", 0x4).append("MemoryRangesBarrier", 0x4)
    for _ in range(3):
        script.execute(0x9, 1).result(0x4).result(0x4)
    trace = script.open(tmp_path)
    rows = operations(trace)
    assert [(row["name"][-7:], row["execution_index"]) for row in rows] == [
        (n, run) for run in (1, 2, 3) for n in ("Barrier",) * 2
    ]
    assert len({row["submit_ts"] for row in rows}) == 3
    executes = [row["id"] for row in trace.slices.rows() if row["name"] == "zeCommandQueueExecuteCommandLists"]
    assert [row["submit_slice_id"] for row in rows] == [
        executes[0],
        executes[0],
        executes[1],
        executes[1],
        *executes[2:] * 2,
    ]


def test_R5_results_that_come_twice(tmp_path) -> None:
    script = launch(numbered(), 1, 1).harvest(1, 1, 100, 110).harvest(1, 1, 200, 220)
    trace = script.open(tmp_path)
    assert [row["dur"] for row in operations(trace)] == [10]
    assert stats(trace)["levelzero_result_duplicate"] == 1
    assert "LS402" in [finding.code for finding in check.run(trace)]


def test_R6_counts_per_kernel(tmp_path) -> None:
    """R1 times R4: no two results of one event collapse."""
    script = numbered(immediate=False)
    for number in range(1, 5):
        launch(script, number, 1 + number % 2, signal=7)
    for run in range(1, 11):
        script.list_run(1, run)
        for number in range(1, 5):
            script.harvest(number, run)
    listed = [name for name, _ in found(script, tmp_path)]
    assert (listed.count("k1"), listed.count("k2")) == (20, 20)


def test_R9_three_lists_on_three_queues(tmp_path) -> None:
    script = numbered(immediate=False, lists=3)
    for number in (1, 2, 3):
        launch(script, 2 * number - 1, number, cl=number)
        launch(script, 2 * number, number, cl=number)
    for number in (3, 1, 2):
        script.list_run(number, 1, queue=0x90 + number)
    for op in (1, 6, 3, 4, 5, 2):
        script.harvest(op)
    trace = script.open(tmp_path)
    rows = operations(trace)
    assert [row["name"] for row in rows] == ["k1", "k3", "k2", "k2", "k3", "k1"]
    tracks = trace.tracks["name"]
    assert {(row["name"], tracks[row["track_id"]]) for row in rows} == {
        (f"k{number}", f"queue 0x{0x90 + number:x}, ordinal 0") for number in (1, 2, 3)
    }


def test_R10_waves(tmp_path) -> None:
    """3 waves of 12 Appends, a wait for the last event of each: 36 of 36."""
    script = numbered(in_order=True)
    for wave in range(3):
        for number in range(12):
            launch(script, 1 + wave * 12 + number, 1, **({"signal": 1} if number == 11 else {}))
        for number in range(12):
            script.harvest(1 + wave * 12 + number)
    assert len(found(script, tmp_path)) == 36


def test_R11_predecessor_in_another_list(tmp_path) -> None:
    """A short kernel in one list, one three times as long in another that waits for it: each has its own ticks."""
    script = numbered(lists=2)
    launch(script, 1, 1, cl=1, signal=1)
    launch(script, 2, 2, cl=2, waits=[1])
    script.harvest(2, 1, 400, 700).harvest(1, 1, 200, 300)
    assert [(row["name"], row["dur"]) for row in operations(script.open(tmp_path))] == [("k2", 300), ("k1", 100)]


def test_R13_R14_more_than_a_chunk(tmp_path) -> None:
    script = numbered()
    for number in range(65):
        launch(script, number + 1, 1, signal=number + 1)
    for number in range(65):
        script.harvest(number + 1)
    assert len(found(script, tmp_path)) == 65


@pytest.mark.parametrize("runs", [1, 2])
def test_R19_shared_signal_in_a_regular_list(runs, tmp_path) -> None:
    script = numbered(immediate=False, in_order=True)
    launch(script, 1, 1, signal=1)
    launch(script, 2, 2, signal=1)
    for run in range(1, runs + 1):
        script.list_run(1, run)
        script.call("zeEventHostReset").harvest(1, run).harvest(2, run)
    assert len(found(script, tmp_path)) == 2 * runs


def test_R24_signals_are_no_fills(tmp_path) -> None:
    """The recorder passes a signal through: it is a call, no operation."""
    script = numbered()
    script.op(1, "MemoryFill", bytes=64, dst='"device"', signal=1).call("zeCommandListAppendSignalEvent").harvest(1)
    assert found(script, tmp_path) == [("zeCommandListAppendMemoryFill(D)", 1)]


def test_R28_only_what_was_reached(tmp_path) -> None:
    """Out of order: A and B are drained, C is not; the trace ends before it is."""
    script = numbered()
    for number in (1, 2, 3):
        launch(script, number, number)
    script.harvest(1).harvest(2)
    trace = script.open(tmp_path)
    assert names(trace) == ["k1", "k2"]
    assert stats(trace)["levelzero_operation_unmatched"] == 1


def test_R29_execution_again_without_a_wait(tmp_path) -> None:
    """The results of the first run come inside the second Execute; each run keeps its own Execute."""
    script = Script().regular(1).append("Barrier", 0x4)
    script.execute(0x9, 1).execute(0x9, 1, inside=lambda: script.result(0x4)).result(0x4)
    rows = operations(script.open(tmp_path))
    assert [row["execution_index"] for row in rows] == [1, 2]
    assert rows[0]["submit_ts"] < rows[1]["submit_ts"]


def test_R30_an_operation_without_a_signal(tmp_path) -> None:
    script = launch(numbered(), 1, 1).op(2, "Barrier", signal=1).harvest(1).harvest(2)
    assert found(script, tmp_path) == [("k1", 1), ("zeCommandListAppendBarrier", 1)]


def test_N6_second_run_out_of_order(tmp_path) -> None:
    script = launch(numbered(immediate=False), 1, 1, signal=1)
    for run in (1, 2):
        script.list_run(1, run).harvest(1, run)
    assert found(script, tmp_path) == [("k1", 1), ("k1", 2)]


def test_N8_two_signallers_one_done(tmp_path) -> None:
    """The second one is harvested much later; numbers leave no doubt, a third use in between or not."""
    script = launch(numbered(), 1, 1, signal=1)
    launch(script, 2, 2, signal=1).harvest(1)
    launch(script, 3, 3, signal=1).harvest(2).harvest(3)
    assert found(script, tmp_path) == [("k1", 1), ("k2", 1), ("k3", 1)]


def test_records_of_threads_may_cross(tmp_path) -> None:
    """A result may stand before the record of its operation: numbers join, not the order."""
    script = numbered().harvest(1)
    launch(script, 1, 1)
    assert found(script, tmp_path) == [("k1", 1)]


def test_lost_runs_are_said(tmp_path) -> None:
    script = launch(numbered(), 1, 1)
    launch(script, 2, 2).harvest(1).record("lanescope_ze:lost", op_id=2, run=1, reason='"device_error"')
    trace = script.open(tmp_path)
    assert stats(trace)["levelzero_result_abandoned"] == 1
    assert "levelzero_operation_unmatched" not in stats(trace)
    assert trace.instants["name"].tolist() == ["lost: device_error"]
    producer = [row for row in trace.accounting.rows() if row["scope"] == "producer"]
    assert [(row["total"], row["lost"]) for row in producer] == [(2, 1)]
    assert "LS002" in [finding.code for finding in check.run(trace)]


def test_untimed_and_degraded(tmp_path) -> None:
    script = numbered().op(1, "Barrier", how='"UNTIMED"', reason='"no_memory"')
    script.record("lanescope_ze:degraded", scope='"list"', id=1, reason='"no_memory"', code=0, count=3)
    trace = script.open(tmp_path)
    assert not operations(trace)
    assert (stats(trace)["levelzero_untimed"], stats(trace)["levelzero_degraded"]) == (1, 3)
    assert trace.instants["name"].tolist() == ["no_memory (list 1)"]


def test_quiet_runs_owe_no_results(tmp_path) -> None:
    script = launch(numbered(immediate=False), 1, 1)
    script.record("lanescope_ze:list_run", list_id=1, run=1, queue=9, quiet=1)
    assert "levelzero_operation_unmatched" not in stats(script.open(tmp_path))


def test_numbers_used_twice(tmp_path) -> None:
    script = launch(numbered(), 1, 1)
    launch(script, 1, 2).harvest(1)
    trace = script.open(tmp_path)
    assert names(trace) == ["k1"]
    assert stats(trace)["levelzero_append_duplicate"] == 1


def test_numbers_are_per_process(tmp_path) -> None:
    script = numbered()
    launch(script, 1, 1)
    script.pid = 11
    script.record("lanescope_ze:kernel", kernel=1, name='"other"')
    launch(script, 1, 1).harvest(1)
    script.pid = 10
    script.harvest(1)
    assert names(script.open(tmp_path)) == ["other", "k1"]
