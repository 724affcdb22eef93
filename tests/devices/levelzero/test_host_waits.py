"""What calls wait for on devices: the queue, list, event, fence or device that they name, and its last operation."""

import re

import numpy as np
import pytest

import lanescope
from analysis.critical_path.paths import checked
from devices.levelzero.helpers import SUCCESS, Script, opened
from lanescope.devices.levelzero.emit import host_waits

A, B, C = 0x4000, 0x4040, 0x4080
QUEUE, LIST = ("zeCommandQueueSynchronize", "hCommandQueue"), ("zeCommandListHostSynchronize", "hCommandList")
EVENT, DEVICE = ("zeEventHostSynchronize", "hEvent"), ("zeDeviceSynchronize", "hDevice")


def script():
    return Script().device().pair(0)


def wait(made, what, handle, *results, result=SUCCESS):
    """Let a call wait; results of operations are read inside it."""
    function, field = what
    made.entry(function, **{field: handle, "timeout": (1 << 64) - 1})
    for event, start, end in results:
        made.result(event, start, end)
    return made.exit(function, result)


def waited(trace):
    """Return for each call that waits its target, handle, and the place of the operation in the order of begins."""
    order = np.argsort(trace.slices["ts"][trace.details["levelzero_operations"]["slice_id"]], kind="stable").tolist()
    slices = trace.details["levelzero_operations"]["slice_id"]
    number = {int(slices[row]): at for at, row in enumerate(order)}
    return [
        (row["target"], row["handle"], number.get(row["operation_slice_id"]))
        for row in trace.details["levelzero_waits"].rows()
    ]


def test_a_list_is_waited_for_with_what_was_appended_to_it(tmp_path):
    made = script().immediate(1).immediate(2).append("MemoryFill", A, cl=1).append("MemoryFill", B, cl=2)
    made = wait(made, LIST, 1, (A, 20, 30), (B, 40, 60))
    assert waited(wait(made, LIST, 2).open(tmp_path)) == [("list", 1, 0), ("list", 2, 1)]


def test_what_ended_last_counts_and_not_what_was_appended_last(tmp_path):
    made = script().immediate(1).append("MemoryFill", A, cl=1).append("MemoryFill", B, cl=1)
    assert waited(wait(made, LIST, 1, (A, 20, 60), (B, 30, 40)).open(tmp_path)) == [("list", 1, 0)]


LATE = 900_000_000


@pytest.mark.parametrize(("near", "first", "expected"), [(1024, LATE, 1), (1, LATE, None), (1024, 10, 1), (1, 10, 1)])
def test_what_seems_to_end_behind_the_call_is_not_what_it_waited_for(tmp_path, monkeypatch, near, first, expected):
    """Clocks that contradict each other: the last that had ended counts, unless that would take a search of all."""
    monkeypatch.setattr(host_waits, "_NEAR", near)
    made = script().immediate(1)
    for event in (A, B, C):
        made = made.append("MemoryFill", event, cl=1)
    made = wait(made, LIST, 1, (A, 5, first), (B, 20, 30), (C, 40, LATE))
    assert waited(made.open(tmp_path)) == [("list", 1, expected)]


def test_what_is_appended_after_the_call_is_not_waited_for(tmp_path):
    made = wait(script().immediate(1).append("MemoryFill", A, cl=1), LIST, 1, (A, 20, 30))
    made = made.append("MemoryFill", B, cl=1).result(B, 50, 60)
    assert waited(made.open(tmp_path)) == [("list", 1, 0)]


def test_a_list_that_was_made_at_the_place_of_another_is_another(tmp_path):
    made = script().immediate(1).append("MemoryFill", A, cl=1).result(A, 20, 30)
    made = made.call("zeCommandListDestroy", hCommandList=1).immediate(1)
    assert waited(wait(made, LIST, 1).open(tmp_path)) == [("list", 1, None)]


def test_a_queue_is_waited_for_with_the_lists_that_it_executed(tmp_path):
    made = script().regular(1).regular(2).append("MemoryFill", A, cl=1).append("MemoryFill", B, cl=2)
    made = made.execute(0x9, 1).execute(0x8, 2)
    made = wait(made, QUEUE, 0x9, (A, 30, 40), (B, 45, 70))
    assert waited(wait(made, QUEUE, 0x8).open(tmp_path)) == [("queue", 0x9, 0), ("queue", 0x8, 1)]


FENCE = ("zeFenceHostSynchronize", "hFence")


def test_a_fence_is_waited_for_with_the_execution_that_it_was_given_to(tmp_path):
    made = script().regular(1).regular(2).append("MemoryFill", A, cl=1).append("MemoryFill", B, cl=2)
    made = made.execute(0x9, 1, fence=0xF1).execute(0x9, 2, fence=0xF2)
    # Of the same queue the later one ended last, but its fence is another.
    made = wait(made, FENCE, 0xF1, (A, 30, 40), (B, 45, 70))
    made = wait(wait(made, FENCE, 0xF2), FENCE, 0xF3)
    assert waited(made.open(tmp_path)) == [("fence", 0xF1, 0), ("fence", 0xF2, 1), ("fence", 0xF3, None)]


def test_a_fence_that_is_given_again_is_that_of_the_last_execution(tmp_path):
    made = script().regular(1).append("MemoryFill", A, cl=1).execute(0x9, 1, fence=0xF1)
    made = wait(made, FENCE, 0xF1, (A, 30, 40)).call("zeFenceReset", hFence=0xF1).execute(0x9, 1, fence=0xF1)
    made = wait(made, FENCE, 0xF1, (A, 60, 70)).execute(0x9, 1, fence=0).result(A, 90, 95)
    assert waited(wait(made, FENCE, 0).open(tmp_path)) == [("fence", 0xF1, 0), ("fence", 0xF1, 1), ("fence", 0, None)]


@pytest.mark.parametrize("seed", range(3))
def test_simulated_fences_end_where_their_queues_do(tmp_path, seed):
    """Each execution gets a fence of its own, and waits for queues become waits for the fences of their last."""
    made = lanescope.simulate("levelzero", seed=seed, ops=300, threads=2, style="thapi")
    (content,) = made.files.values()
    number, latest, lines = 0xF0000, {}, []
    for line in content.decode().splitlines():
        queue = re.search(r"hCommandQueue: (0x[0-9a-f]+)", line)
        if "zeCommandQueueExecuteCommandLists_entry" in line:
            number += 1
            latest[queue[1]] = number
            line = line.replace("hCommandQueue: ", f"hFence: {number:#x}, hCommandQueue: ")
        elif "zeCommandQueueSynchronize_entry" in line:
            line = line.replace(queue[0], f"hFence: {latest[queue[1]]:#x}")
        lines.append(line.replace("zeCommandQueueSynchronize", "zeFenceHostSynchronize") + "\n")
    queues, fences = opened(content, tmp_path), opened("".join(lines).encode(), tmp_path)
    ends = [[each[2] for each in waited(trace)] for trace in (queues, fences)]
    assert ends[0] == ends[1]
    found = [end for target, _, end in waited(fences) if target == "fence"]
    assert len(found) > 3
    assert None not in found


def test_an_event_is_waited_for_with_the_operation_that_was_appended_with_it_last(tmp_path):
    made = script().immediate(1)
    made = wait(made.append("MemoryFill", A, cl=1), EVENT, A, (A, 20, 30))
    made = made.append("MemoryFill", A, cl=1).append("MemoryFill", B, cl=1)
    made = wait(made, EVENT, A, (A, 60, 70), (B, 62, 80))
    assert waited(made.open(tmp_path)) == [("event", A, 0), ("event", A, 1)]


@pytest.mark.parametrize(("in_order", "expected"), [(True, 0), (False, None)])
def test_a_signal_of_an_in_order_list_comes_behind_all_before_it(tmp_path, in_order, expected):
    made = script().immediate(1, in_order=in_order).append("MemoryFill", A, cl=1)
    made = made.append("SignalEvent", C, cl=1).append("MemoryFill", B, cl=1)
    made = wait(made, EVENT, C, (A, 20, 30), (B, 32, 40))
    assert waited(made.open(tmp_path)) == [("event", C, expected)]


def test_a_device_is_waited_for_with_all_that_it_was_given(tmp_path):
    made = script().device(0xD1, uuid="86800000-0000-0000-0000-0000000000cd").pair(0, 0xD1)
    made = made.immediate(1).immediate(2, 0xD1).append("MemoryFill", A, cl=1).append("MemoryFill", B, cl=2)
    made = wait(made, DEVICE, 0xD0, (A, 20, 30), (B, 40, 60))
    assert waited(wait(made, DEVICE, 0xD1).open(tmp_path)) == [("device", 0xD0, 0), ("device", 0xD1, 1)]


@pytest.mark.parametrize("result", ["ZE_RESULT_NOT_READY", "ZE_RESULT_ERROR_DEVICE_LOST"])
def test_a_call_that_gave_up_waited_for_nothing_that_ended(tmp_path, result):
    made = script().immediate(1).append("MemoryFill", A, cl=1)
    trace = wait(made, LIST, 1, (A, 20, 30), result=result).open(tmp_path)
    assert waited(trace) == [("list", 1, None)]
    assert {row["kind"]: row["count"] for row in checked(trace).edges.rows()}.get("sync", 0) == 0


def test_another_process_with_the_same_handles_has_its_own(tmp_path):
    made = script().immediate(1).append("MemoryFill", A, cl=1).result(A, 20, 30)
    made.pid = 11
    made = wait(made.device().pair(0).immediate(1), LIST, 1)
    assert waited(made.open(tmp_path)) == [("list", 1, None)]


def test_the_path_ends_waits_with_what_the_call_names_and_not_with_what_ended_last(tmp_path):
    """By times alone the operation of the other list would be the cause: it ended later."""
    made = script().immediate(1).immediate(2).append("MemoryFill", A, cl=1).append("MemoryFill", B, cl=2)
    trace = wait(made, LIST, 1, (A, 20, 130), (B, 20, 140)).open(tmp_path)
    path = checked(trace)
    kinds = {row["kind"]: row for row in path.edges.rows()}
    assert (kinds["sync"]["count"], kinds["sync"]["quality"]) == (1, "exact")
    assert "inferred sync" not in kinds
    graph = path.made.graph
    (edge,) = np.flatnonzero(graph.edges["kind"] == [kind.name for kind in graph.kinds].index("sync"))
    (waits,) = trace.details["levelzero_waits"].rows()
    source = path.made.slice_of[graph.nodes["row"][graph.edges["source"][edge]]]
    assert source == waits["operation_slice_id"]
    assert waited(trace) == [("list", 1, 0)]


def test_without_a_handle_what_ended_last_is_inferred(tmp_path):
    made = script().immediate(1).append("MemoryFill", A, cl=1).entry("zeCommandListHostSynchronize")
    trace = made.result(A, 20, 30).exit("zeCommandListHostSynchronize").open(tmp_path)
    assert not len(trace.details["levelzero_waits"])
    kinds = {row["kind"]: row for row in checked(trace).edges.rows()}
    assert (kinds["inferred sync"]["count"], kinds["inferred sync"]["quality"]) == (1, "inferred")


def test_simulated_calls_wait_for_the_last_operation_of_what_they_name(tmp_path):
    for style in ("thapi", "numbered"):
        made = lanescope.simulate("levelzero", seed=5, ops=400, threads=2, style=style)
        (content,) = made.files.values()
        trace = opened(content, tmp_path)
        waits, operations = trace.details["levelzero_waits"], trace.details["levelzero_operations"]
        assert len(waits) > 20
        ends = {}
        slices = trace.slices
        for row in operations.rows():
            end = int(slices["ts"][row["slice_id"]] + slices["dur"][row["slice_id"]])
            ends.setdefault(row["thread_track_id"], []).append(end)
        for row in waits.rows():
            call = row["slice_id"]
            returned = int(slices["ts"][call] + slices["dur"][call])
            chosen = row["operation_slice_id"]
            # A thread waits for each batch before it goes on, so the last that ended is of what the call names.
            last = max((end for end in ends[int(slices["track_id"][call])] if end <= returned), default=None)
            assert last == (None if chosen is None else int(slices["ts"][chosen] + slices["dur"][chosen]))


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("program", "target"), [("fence", "fence"), ("saxpy", "event"), ("resubmit", "queue")], ids=str
)
def test_recorded_calls_name_what_they_wait_for(fake_ze, recording, program, target):
    done = recording(fake_ze.app, program)
    assert done.status == 0, done.err
    trace = lanescope.open(done.folder)
    calls = {row["slice_id"]: row["result"] for row in trace.details["levelzero_calls"].rows()}
    rows = list(trace.details["levelzero_waits"].rows())
    assert target in {row["target"] for row in rows}
    # The program of fences waits in vain as well.
    for row in rows:
        assert (row["operation_slice_id"] is not None) == (calls[row["slice_id"]] == SUCCESS)
    assert any(row["operation_slice_id"] is not None for row in rows)


def test_an_event_of_two_lists_is_signalled_by_the_one_that_was_executed_last(tmp_path):
    """And not by the one that was appended last."""
    made = script().regular(1).regular(2).append("MemoryFill", A, cl=1).append("MemoryFill", A, cl=2)
    for cl, start in ((1, 20), (2, 60), (1, 100)):
        made = wait(made.execute(0x9, cl), EVENT, A, (A, start, start + 10))
    assert waited(made.open(tmp_path)) == [("event", A, 0), ("event", A, 1), ("event", A, 2)]


def test_an_event_whose_last_execution_has_no_result_names_no_older_one(tmp_path):
    made = script().regular(1).append("MemoryFill", A, cl=1)
    made = wait(made.execute(0x9, 1), EVENT, A, (A, 20, 30)).execute(0x9, 1)
    assert waited(wait(made, EVENT, A).open(tmp_path)) == [("event", A, 0), ("event", A, None)]


def test_of_many_queues_the_operation_that_ended_last_is_named():
    """Simulated programs have more queues and lists than a join keeps in the order of their handles."""
    trace = lanescope.open(next(iter(lanescope.simulate("levelzero", ops=2000, seed=3).files.values())))
    slices, found = trace.slices, trace.details["levelzero_operations"]
    operation, submitted = found["slice_id"], found["submit_ts"]
    begin, end, lane = slices["ts"], slices["ts"] + slices["dur"], slices["track_id"]
    waits = [row for row in trace.details["levelzero_waits"].rows() if row["operation_slice_id"] is not None]
    assert len(waits) > 100
    for row in waits:
        call, named = row["slice_id"], row["operation_slice_id"]
        of_lane = (lane[operation] == lane[named]) & (submitted <= begin[call]) & ~found["error"]
        ends = end[operation[of_lane]]
        assert end[named] == ends[ends <= end[call]].max()
