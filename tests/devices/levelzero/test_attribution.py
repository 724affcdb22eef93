"""Results that name events: the ring of uses, against the scenarios and against a ring that is written down plainly."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from devices.levelzero.helpers import SUCCESS, Script, names, operations, stats
from lanescope.analysis import check
from lanescope.devices.levelzero.formats.text_scanner import TextReader
from lanescope.devices.levelzero.interpret.resolved import attributed

#: Letter -> what it appends. A dot is a result, a D the end of the event.
APPENDS = {
    "A": "Barrier",
    "B": "MemoryRangesBarrier",
    "C": "LaunchKernelIndirect",
    "E": "ImageCopy",
    "S": "SignalEvent",
}
LETTERS = {what: letter for letter, what in APPENDS.items()}


def play(script: Script, moves: str, event: int = 0x4000) -> Script:
    for move in moves.replace(" ", ""):
        if move == ".":
            script.result(event)
        elif move == "D":
            script.call("zeEventDestroy", hEvent=event)
        elif move == "n":
            script.result(event, 0, 0, status="ZE_RESULT_NOT_READY")
        else:
            script.append(APPENDS[move], event)
    return script


def letters(trace) -> str:
    return "".join(LETTERS[name] for name in names(trace))


@pytest.mark.parametrize(
    ("name", "moves", "expected"),
    [
        ("shared_event", "A B C E . . . .", "ABCE"),
        ("resubmit_event", "A . .", "AA"),
        ("shared_event_resubmit", "A B . . . .", "ABAB"),
        ("shared_event_xphase", "A B . . . . C . . .", "ABABCCC"),
        ("sequential_reuse", "A . B . C .", "ABC"),
        ("handle_reuse", "A B . . D C . D A .", "ABCA"),
        ("destroyed_before_its_result", "A D B .", "B"),
        ("not_ready_is_no_result", "A n . n B n .", "AB"),
        ("signal_takes_a_slot", "A S B . . .", "AB"),
        ("signals_only", "S S . . A .", "A"),
    ],
)
def test_scenarios(name: str, moves: str, expected: str, tmp_path: Path) -> None:
    trace = play(Script(), moves).open(tmp_path)
    assert letters(trace) == expected, name
    assert {row["quality"] for row in operations(trace)} <= {"estimated"}
    assert "levelzero_interleaved_duplicate" not in stats(trace)


def test_each_run_of_a_ring_has_its_number(tmp_path: Path) -> None:
    trace = play(Script(), "A B . . . . C . . .").open(tmp_path)
    assert [row["execution_index"] for row in operations(trace)] == [1, 1, 2, 2, 1, 2, 3]


def two_lists(*executed: int) -> Script:
    """Two lists that signal one event, and executions of them."""
    script = Script().regular(1).regular(2)
    script.append("Barrier", 0x4000, cl=1).append("MemoryRangesBarrier", 0x4000, cl=2)
    for cl in executed:
        script.execute(0x9, cl)
    return script


@pytest.mark.parametrize("executed", [(1, 2), (1, 2, 1, 2)])
def test_lists_that_run_in_the_order_of_their_appends_leave_no_doubt(executed: tuple[int, ...], tmp_path: Path) -> None:
    trace = play(two_lists(*executed), "." * len(executed)).open(tmp_path)
    assert letters(trace) == "AB" * (len(executed) // 2)
    assert "levelzero_interleaved_duplicate" not in stats(trace)


def test_lists_of_one_execution_leave_no_doubt(tmp_path: Path) -> None:
    trace = play(two_lists().execute(0x9, 1, 2), "..").open(tmp_path)
    assert (letters(trace), stats(trace).get("levelzero_interleaved_duplicate")) == ("AB", None)


@pytest.mark.parametrize("executed", [(2, 1), (1, 1, 2), (1, 2, 2, 1)])
def test_lists_that_run_in_another_order_leave_their_results_in_doubt(
    executed: tuple[int, ...], tmp_path: Path
) -> None:
    trace = play(two_lists(*executed), "." * len(executed)).open(tmp_path)
    assert letters(trace) == ("AB" * 2)[: len(executed)]
    assert {row["quality"] for row in operations(trace)} == {"inferred"}
    assert stats(trace)["levelzero_interleaved_duplicate"] == len(executed)
    assert [finding.severity for finding in check.run(trace, select=["LS402"])] == ["warning"]


def test_lists_of_one_execution_in_another_order_leave_their_results_in_doubt(tmp_path: Path) -> None:
    trace = play(two_lists().execute(0x9, 2, 1), "..").open(tmp_path)
    assert stats(trace)["levelzero_interleaved_duplicate"] == 2


def test_a_list_that_runs_after_a_later_append_leaves_its_result_in_doubt(tmp_path: Path) -> None:
    script = Script().regular(1).immediate(2)
    script.append("Barrier", 0x4000, cl=1).append("MemoryRangesBarrier", 0x4000, cl=2).execute(0x9, 1)
    assert stats(play(script, "..").open(tmp_path))["levelzero_interleaved_duplicate"] == 2


def test_known_hole_interleaved_drains(tmp_path: Path) -> None:
    """Two uses in flight, one drained, a third one: the ring cannot tell B from C, and says so."""
    trace = play(Script(), "A B . C . .").open(tmp_path)
    assert letters(trace) == "ACC"
    assert [row["quality"] for row in operations(trace)] == ["inferred"] * 3
    assert stats(trace)["levelzero_interleaved_duplicate"] == 3
    findings = check.run(trace, select=["LS402"])
    assert [(finding.stat, finding.severity) for finding in findings] == [
        ("levelzero_interleaved_duplicate", "warning")
    ]


def test_doubt_ends_when_all_uses_have_results(tmp_path: Path) -> None:
    trace = play(Script(), "A B . C . . A . D A B . .").open(tmp_path)
    assert [row["quality"] == "inferred" for row in operations(trace)] == [True] * 3 + [False] * 3


def test_lost_result_leaves_doubt(tmp_path: Path) -> None:
    trace = play(Script(), "A B . A .").open(tmp_path)
    assert [row["quality"] for row in operations(trace)] == ["inferred", "inferred"]


def test_events_do_not_mix(tmp_path: Path) -> None:
    script = Script()
    script.append("Barrier", 0x10).append("ImageCopy", 0x20).result(0x20).result(0x10)
    assert names(script.open(tmp_path)) == ["ImageCopy", "Barrier"]


def test_processes_do_not_mix(tmp_path: Path) -> None:
    """The same handles in two processes, in turns."""
    script = Script()
    for pid, what in ((1, "Barrier"), (2, "ImageCopy")):
        script.pid = pid
        script.append(what, 0x10)
    for pid in (2, 1):
        script.pid = pid
        script.result(0x10)
    assert names(script.open(tmp_path)) == ["ImageCopy", "Barrier"]


def test_threads_share_events(tmp_path: Path) -> None:
    """One thread appends, another waits: the operation belongs to the first, its traffic to the second."""
    script = Script()
    script.append("Barrier", 0x10)
    script.tid = 2
    script.result(0x10)
    row = operations(script.open(tmp_path))[0]
    assert (row["thread_track_id"], row["readback_track_id"]) == (2, 3)


def test_push_outside_an_append_is_ignored(tmp_path: Path) -> None:
    script = Script().entry("zeEventHostSignal", hEvent=0x1)
    script.record("lttng_ust_ze_profiling:event_profiling", hEvent=0x2).exit("zeEventHostSignal").result(0x2)
    trace = script.open(tmp_path)
    assert not operations(trace)
    assert stats(trace)["levelzero_push_ignored"] == 1
    assert [finding.stat for finding in check.run(trace)] == ["levelzero_push_ignored"]


def test_push_after_a_failed_append_is_ignored(tmp_path: Path) -> None:
    """What failed has not been given to the device, so the next push is not its own."""
    script = Script().append("Barrier", 0x4, result="ZE_RESULT_ERROR_DEVICE_LOST")
    script.call("zeEventCreate", inside=lambda: script.record("lttng_ust_ze_profiling:event_profiling", hEvent=0x4))
    script.result(0x4)
    trace = script.open(tmp_path)
    assert not operations(trace)
    assert trace.details["levelzero_calls"]["error"].tolist() == [True, False]


def test_one_push_per_append(tmp_path: Path) -> None:
    script = Script().entry("zeCommandListAppendBarrier", hCommandList=1, hSignalEvent=0)
    for event in (0x4, 0x5):
        script.record("lttng_ust_ze_profiling:event_profiling", hEvent=event)
    script.exit("zeCommandListAppendBarrier").result(0x5).result(0x4)
    assert len(operations(script.open(tmp_path))) == 1


def test_result_without_a_use_is_reported(tmp_path: Path) -> None:
    trace = Script().append("Barrier", 0x4).result(0x4).result(0x9).open(tmp_path)
    assert stats(trace)["levelzero_result_unmatched"] == 1
    assert [finding.stat for finding in check.run(trace)] == ["levelzero_unknown_device", "levelzero_result_unmatched"]


def test_operation_without_a_result_is_reported(tmp_path: Path) -> None:
    trace = Script().immediate(1).append("Barrier", 0x4).append("Barrier", 0x5).result(0x4).open(tmp_path)
    assert stats(trace)["levelzero_operation_unmatched"] == 1


def test_operation_that_never_ran_is_no_loss(tmp_path: Path) -> None:
    trace = Script().regular(1).append("Barrier", 0x4).open(tmp_path)
    found = stats(trace)
    assert found["levelzero_never_executed"] == 1
    assert "levelzero_operation_unmatched" not in found


def test_result_inside_the_append(tmp_path: Path) -> None:
    """R25: an older tracer read the timestamps before the Append returned."""
    script = Script().entry("zeCommandListAppendBarrier", hCommandList=1, hSignalEvent=0)
    script.record("lttng_ust_ze_profiling:event_profiling", hEvent=0x4).result(0x4).exit("zeCommandListAppendBarrier")
    assert names(script.open(tmp_path)) == ["Barrier"]


# --- against a ring that is written down plainly ------------------------------------------------------------------


def plain_ring(moves: list[tuple[int, str]]) -> list[tuple[int, int]]:
    """Return (which result, which use) as the definition says it: entries and a cursor per event."""
    entries: dict[int, list[int]] = {}
    cursor: dict[int, int] = {}
    found, uses, results = [], 0, 0
    for event, move in moves:
        if move == "push":
            if cursor.get(event, 0) > 0:
                entries[event], cursor[event] = [], 0
            entries.setdefault(event, []).append(uses)
            uses += 1
        elif move == "end":
            entries.pop(event, None)
            cursor.pop(event, None)
        else:
            ring = entries.get(event, [])
            if ring:
                if cursor.get(event, 0) == len(ring):
                    cursor[event] = 0
                found.append((results, ring[cursor.get(event, 0)]))
                cursor[event] = cursor.get(event, 0) + 1
            results += 1
    return found


moves = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(("push", "push", "result", "result", "result", "end"))))


@given(moves)
@example([(0, "push"), (0, "push"), (0, "result"), (0, "push"), (0, "result"), (0, "result")])
def test_equals_the_plain_ring(steps: list[tuple[int, str]]) -> None:
    script = Script()
    for event, move in steps:
        handle = 0x1000 + 0x40 * event
        if move == "push":
            script.append("Barrier", handle)
        elif move == "end":
            script.call("zeEventDestroy", hEvent=handle)
        else:
            script.result(handle)
    reader = TextReader()
    reader.feed(script.text)
    found = attributed(reader.finish()).operations
    assert list(zip(found.result.tolist(), found.append.tolist(), strict=True)) == plain_ring(steps)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans())))
def test_a_use_that_is_alone_is_never_in_doubt(steps: list[tuple[int, bool]]) -> None:
    """Uses whose results came before the next use of their event."""
    script = Script()
    for event, ends in steps:
        handle = 0x1000 + 0x40 * event
        script.append("Barrier", handle).result(handle)
        if ends:
            script.call("zeEventDestroy", hEvent=handle)
    reader = TextReader()
    reader.feed(script.text)
    assert not attributed(reader.finish()).operations.inferred.any()


def test_twelve_thousand_fills(tmp_path: Path) -> None:
    """R24: n fills on two events that are used again and again, and 4,002 signals; tools reported 16,002 fills."""
    script = Script()
    script.immediate(1, in_order=True)
    for wave in range(2001):
        for fill in range(6 if wave < 2000 else 0):
            script.append("MemoryFill", 0x10 + 0x10 * (fill % 2), ptr=0x1000, size=64)
        for event in (0x10, 0x20):
            script.append("SignalEvent", event)
        for event in (0x10, 0x20):
            for _ in range(4 if wave < 2000 else 1):
                script.result(event)
    trace = script.open(tmp_path)
    found = names(trace)
    assert len(found) == 12_000
    assert set(found) == {"MemoryFill(M)"}
    assert {finding.stat for finding in check.run(trace, ignore=["LS303"])} == {"levelzero_unknown_device"}
    assert trace.slices["name"].tolist().count("zeCommandListAppendSignalEvent") == 4002
    assert sum(name == "zeCommandListAppendMemoryFill(M)" for name in trace.slices["name"]) == 12_000
    assert SUCCESS in set(trace.details["levelzero_operations"]["query_status"])
