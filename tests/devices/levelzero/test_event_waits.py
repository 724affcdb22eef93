"""Operations that wait for events: an arrow from the operation that signals them, and causes of the critical path."""

import pytest

from analysis.critical_path.paths import checked, longest
from devices.levelzero.helpers import Script

A, B, C = 0x4000, 0x4040, 0x4080


def script():
    return Script().device().pair(0).immediate(1).immediate(2)


def waiting(made, what, event, *events, cl=2):
    """Append an operation that waits for events."""
    made.entry(
        f"zeCommandListAppend{what}",
        hCommandList=cl,
        hSignalEvent=event,
        numWaitEvents=len(events),
        phWaitEvents_vals=list(events),
    )
    made.record("lttng_ust_ze_profiling:event_profiling", hEvent=event)
    return made.exit(f"zeCommandListAppend{what}")


def arrows(trace):
    """Return the arrows between operations, by the order in which they begin."""
    order = trace.slices["ts"][trace.details["levelzero_operations"]["slice_id"]].argsort().tolist()
    number = {int(trace.details["levelzero_operations"]["slice_id"][row]): at for at, row in enumerate(order)}
    return sorted(
        (number[row["src_slice_id"]], number[row["dst_slice_id"]])
        for row in trace.flows.rows()
        if row["kind"] == "signal"
    )


def test_an_arrow_from_the_operation_that_signals(tmp_path):
    made = waiting(script().append("MemoryFill", A), "Barrier", B, A)
    trace = made.result(A, 1000, 5000).result(B, 5010, 5020).open(tmp_path)
    assert arrows(trace) == [(0, 1)]


def test_events_that_are_used_again_are_those_of_the_last_append(tmp_path):
    made = script().append("MemoryFill", A).result(A, 1000, 1100)
    made = waiting(made.append("MemoryFill", A), "Barrier", B, A)
    trace = made.result(A, 2000, 2100).result(B, 2200, 2300).open(tmp_path)
    assert arrows(trace) == [(1, 2)]


@pytest.mark.parametrize(
    "ends",
    [
        [(A, 1000, 5000), (B, 4000, 4100)],  # it began before the other one ended: something else signalled
        [(B, 4000, 4100)],  # the other result is lost
    ],
)
def test_no_arrow_where_the_other_had_not_ended(tmp_path, ends):
    made = waiting(script().append("MemoryFill", A), "Barrier", B, A)
    for event, start, end in ends:
        made.result(event, start, end)
    assert arrows(made.open(tmp_path)) == []


def test_events_of_the_host_have_no_arrow_and_several_have_one_each(tmp_path):
    made = script().append("MemoryFill", A).append("MemoryFill", C)
    waiting(made, "Barrier", B, A, C, 0x9999)
    trace = made.result(A, 1000, 1100).result(C, 1200, 1300).result(B, 1400, 1500).open(tmp_path)
    assert arrows(trace) == [(0, 2), (1, 2)]


def test_the_critical_path_follows_the_event(tmp_path):
    made = waiting(script().append("MemoryFill", A), "MemoryFill", B, A)
    trace = made.result(A, 1000, 90_000).result(B, 90_010, 90_020).open(tmp_path)
    path = checked(trace)
    kinds = {row["kind"]: row for row in path.edges.rows()}
    assert (kinds["signal"]["count"], kinds["signal"]["binding"]) == (1, 1)
    assert (longest(path)["cause"], longest(path)["role"]) == ("work", "queue")


def lists():
    """Two regular lists whose operations signal one event, and a third whose operation waits for it."""
    made = Script().device().pair(0).regular(1).regular(2).regular(3)
    made = made.append("MemoryFill", A, cl=1).append("MemoryFill", A, cl=2)
    return waiting(made, "Barrier", B, A, cl=3)


def test_of_lists_that_signal_one_event_the_one_that_was_executed_last_counts(tmp_path):
    """What was appended last is not what ran last."""
    made = lists()
    for cl, start in ((1, 1000), (2, 2000), (1, 3000)):
        made = made.execute(0x9, cl).result(A, start, start + 100)
    assert arrows(made.execute(0x9, 3).result(B, 4000, 4100).open(tmp_path)) == [(2, 3)]


def test_an_execution_without_a_result_is_not_replaced_by_an_older_one(tmp_path):
    """The last execution of the list that signals has no result: the one before it had its event reset."""
    made = Script().device().pair(0).regular(1).regular(3).append("MemoryFill", A, cl=1)
    made = waiting(made, "Barrier", B, A, cl=3).execute(0x9, 1).result(A, 1000, 1100)
    assert arrows(made.execute(0x9, 1).execute(0x9, 3).result(B, 2200, 2300).open(tmp_path)) == []


def test_an_append_without_a_result_is_not_replaced_by_an_older_one(tmp_path):
    made = script().append("MemoryFill", A).result(A, 1000, 1100).append("MemoryFill", A)
    made = waiting(made, "Barrier", B, A).result(B, 2200, 2300)
    # The second of A has no result that could be its own: the record of the first one came before it.
    assert arrows(made.open(tmp_path)) == []


def test_an_event_that_was_destroyed_is_another_one(tmp_path):
    made = script().append("MemoryFill", A).result(A, 1000, 1100).call("zeEventDestroy", hEvent=A)
    made = waiting(made, "Barrier", B, A).result(B, 2200, 2300)
    assert arrows(made.open(tmp_path)) == []


@pytest.mark.parametrize(("first", "second", "expected"), [(1, 3, [(0, 1), (2, 3)]), (3, 1, [(1, 2)])])
def test_each_execution_waits_for_the_one_before_it(tmp_path, first, second, expected):
    """Lists that run again and again: a wait is for what was given before, not for what was appended before."""
    made = Script().device().pair(0).regular(1).regular(3).append("MemoryFill", A, cl=1)
    made = waiting(made, "Barrier", B, A, cl=3)
    events = {1: A, 3: B}
    for round_ in range(2):
        at = 1000 * (round_ + 1)
        made = made.execute(0x9, first).execute(0x9, second)
        made = made.result(events[first], at, at + 100).result(events[second], at + 200, at + 300)
    assert arrows(made.open(tmp_path)) == expected
