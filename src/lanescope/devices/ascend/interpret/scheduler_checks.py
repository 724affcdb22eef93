"""What schedulers record against what they did: each phase counts the subtasks that it publishes or retires.

The rules hold in all captures of the producer (hw-native-sys/simpler at 6ebaf77), of both runtimes and on all levels.
Where records are known to be missing, nothing is counted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.intervals import group_starts, pack_sort_key
from lanescope.common.intervals import order as in_order
from lanescope.devices.ascend.formats.layout import AICORE, AICPU, EARLY_KINDS, GRAPH_KIND, PHASE_KINDS, PHASES
from lanescope.devices.ascend.formats.versions import Erratum
from lanescope.devices.ascend.interpret import graph as graphs
from lanescope.devices.ascend.interpret.cross_checks import Found, of_rows
from lanescope.devices.ascend.interpret.graph import Intervals, by_lane_and_time, reach
from lanescope.devices.ascend.interpret.resolve import Interpreter
from lanescope.trace.column import Mask

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

#: Sums of one bit for each kind stay below 63 bits in an iteration of any length that fits into memory.
_KINDS_A_WORD = 24
#: Subtasks of one block: a cube core and two vector cores.
_SLOTS = 3
#: Threads that show that a run ended in the usual way.
_WITNESSES = 2
#: Kinds that a thread records at most once in an iteration. Graphs are prepared in several slices.
_ONCE = tuple(
    kind for kind, known in PHASE_KINDS.items() if known.role == "outer" and kind not in ("idle", "scan", GRAPH_KIND)
)


def found(told: Interpreter) -> Iterator[Found]:
    """Yield what phases contradict."""
    phases = told.phases
    if not len(phases):
        return
    if told.is_whole(AICORE, AICPU, PHASES):
        yield of_rows("ascend_count_contradicts", wrong_counts(told), phases)
        yield "ascend_missing_flush", threads_without_flush(told), None
        yield "ascend_marker_missing", int(np.count_nonzero(unmarked(told))), None
    yield of_rows("ascend_unknown_value", wide_markers(told), phases)
    yield of_rows("ascend_dispatch_order", passed_early(told), phases)
    yield of_rows("ascend_loop_contradicts", repeated_kinds(told) | fast_loops(told), phases)


# --- counts of phases ---------------------------------------------------------------------------------------------


def wrong_counts(told: Interpreter) -> Mask:
    """Return which phases count other subtasks than their thread published or saw finish in them, bool [phases].

    Early dispatch counts blocks of one to three subtasks. What a drain publishes is counted once more by the next
    dispatch phase of the thread; of v4 it is not known whether it is. Of what ends by itself, the last subtask is
    counted when it is polled. A completion without a count is not recorded.
    """
    runs, phases = told.runs, told.phases
    wrong = np.zeros(len(phases), np.bool_)
    thread = told.run_thread
    if not len(runs) or (thread < 0).any():
        return wrong
    count = phases["tasks_processed"]
    polled = int(count[told.is_kind("async_poll")].sum())
    for kind, stamps in (
        *(("complete", runs.finish), ("dispatch", runs.dispatch), ("drain_publish", runs.dispatch)),
        *((early, runs.dispatch) for early in EARLY_KINDS),
    ):
        rows = np.flatnonzero(told.is_kind(kind))
        if not len(rows):
            continue
        seen, is_sure = _stamps_in(
            phases.group[rows], phases["start_cycles"][rows], phases["end_cycles"][rows], thread, stamps
        )
        low = high = seen
        if kind == "complete":
            low = np.maximum(seen - polled, 1)
        elif kind == "dispatch":
            drained = _drained(told, rows)
            low, high = (low if told.format_version == "v4" else low + drained), high + drained
        elif kind in EARLY_KINDS:
            low = -(-seen // _SLOTS)
        wrong[rows] = is_sure & ((count[rows] < low) | (count[rows] > high))
    return wrong


def _stamps_in(group: Int32, begin: Int64, end: Int64, thread: Int64, stamps: Int64) -> tuple[Int64, Mask]:
    """Return how many stamps lie in each phase of their thread, int64 [n], and where that is certain, bool [n].

    Args:
        group: int32 [n], thread of each phase.
        begin: int64 [n].
        end: int64 [n]; phases are closed. Those that touch or overlap another are not certain.
        thread: int64 [m], thread of each stamp.
        stamps: int64 [m].
    """
    lane, first, last = group.astype(np.int64), begin, end
    order = None
    if not by_lane_and_time(lane, first):
        order = in_order(lane, first)
        lane, first, last = lane[order], first[order], last[order]
    touches = (lane[1:] == lane[:-1]) & (first[1:] <= reach(lane, last)[:-1])
    is_sure = np.ones(len(group), np.bool_)
    is_sure[1:] &= ~touches
    is_sure[:-1] &= ~touches
    at = core.ascend_last_of_lane(lane, first, thread, stamps)
    seen = np.bincount(at[(at >= 0) & (stamps <= np.append(last, 0)[at])], minlength=len(group))
    if order is None:
        return seen, is_sure
    found, is_found = np.empty(len(group), np.int64), np.empty(len(group), np.bool_)
    found[order], is_found[order] = seen, is_sure
    return found, is_found


def _drained(told: Interpreter, dispatches: Int64) -> Int64:
    """Return what drains published since the dispatch phase before, for each dispatch phase, int64 [dispatches]."""
    phases, found = told.phases, np.zeros(len(dispatches), np.int64)
    drains = np.flatnonzero(told.is_kind("drain_publish"))
    for lane in np.flatnonzero(np.bincount(phases.group[drains], minlength=1)).tolist():
        mine = np.flatnonzero(phases.group[dispatches] == lane)
        mine = mine[np.argsort(phases["start_cycles"][dispatches[mine]], kind="stable")]
        drain = drains[phases.group[drains] == lane]
        at = np.searchsorted(phases["start_cycles"][dispatches[mine]], phases["start_cycles"][drain], side="right")
        total = np.bincount(at, phases["tasks_processed"][drain], len(mine) + 1).astype(np.int64)
        found[mine] = total[:-1]
    return found


# --- iterations ---------------------------------------------------------------------------------------------------


def threads_without_flush(told: Interpreter) -> int:
    """Return how many threads do not end with the record that others end with, or have it before their end.

    At the end of a run a scheduler thread writes a dispatch phase without width or tasks, for the counters that are
    left. A single thread that ends so proves nothing of the others.
    """
    phases = told.phases
    if told.epochs is not None:
        return 0
    is_flush = told.is_kind("dispatch") & (phases["start_cycles"] == phases["end_cycles"])
    is_flush &= phases["tasks_processed"] == 0
    last = np.zeros(len(phases), np.bool_)
    group, start = phases.group.astype(np.int64), phases["start_cycles"]
    latest = np.zeros(int(group.max(initial=0)) + 1, np.int64)
    np.maximum.at(latest, group, start)
    rows = np.flatnonzero(start == latest[group])  # several may begin last
    rows = rows[in_order(group[rows], start[rows], -phases["end_cycles"][rows])]
    last[rows[np.append(group[rows][1:] != group[rows][:-1], True)]] = True
    if np.count_nonzero(last & is_flush) < _WITNESSES:
        return 0
    return int(np.count_nonzero(last != is_flush))


def repeated_kinds(told: Interpreter) -> Mask:
    """Return which phases are the second of their kind in one iteration of their thread, bool [phases].

    The record that brings the last counts of pops is written behind the loop, with the number of its last iteration.
    """
    phases = told.phases
    wrong = np.zeros(len(phases), np.bool_)
    is_flush = (phases["start_cycles"] == phases["end_cycles"]) & (phases["tasks_processed"] == 0)
    rows = np.flatnonzero(told.is_kind(*_ONCE) & phases.has("loop_iter") & ~(is_flush & told.is_kind("dispatch")))
    kind, lane, loop = phases["kind"][rows], phases.group[rows], phases["loop_iter"][rows]
    epoch = phases["run_epoch"][rows]
    if not len(rows):
        return wrong
    key = None if epoch.any() else pack_sort_key(lane.astype(np.int64), loop.astype(np.int64))
    if key is not None and bool((key[1:] >= key[:-1]).all()) and int(kind.max()) < _KINDS_A_WORD:
        # The rows of an iteration follow one another: if all are of different kinds, so are their bits.
        first, bits = np.flatnonzero(group_starts(key)), np.left_shift(np.int64(1), kind.astype(np.int64))
        if bool((np.add.reduceat(bits, first) == np.bitwise_or.reduceat(bits, first)).all()):
            return wrong
    key = None if key is None else pack_sort_key(key, kind.astype(np.int64))
    if key is not None:
        rising = np.sort(key)
        if not (rising[1:] == rising[:-1]).any():
            return wrong
    order = np.lexsort((phases["end_cycles"][rows], kind, loop, epoch, lane))
    same = np.ones(max(len(rows) - 1, 0), np.bool_)
    for values in (kind, lane, loop, epoch):
        same &= values[order][1:] == values[order][:-1]
    wrong[rows[order[1:][same]]] = True
    return wrong


def fast_loops(told: Interpreter) -> Mask:
    """Return which phases are more iterations behind the one before them than the counter counted, bool [phases]."""
    phases = told.phases
    wrong = np.zeros(len(phases), np.bool_)
    rows = np.flatnonzero(told.is_kind(*_ONCE) & phases.has("loop_iter"))
    lane, epoch = phases.group[rows].astype(np.int64), phases["run_epoch"][rows]
    if epoch.any():
        lane = lane << 32 | epoch
    end = phases["end_cycles"][rows]
    if not by_lane_and_time(lane, end):
        order = in_order(lane, end)
        rows, lane, end = rows[order], lane[order], end[order]
    loop = phases["loop_iter"][rows]
    wrong[rows[1:]] = (lane[1:] == lane[:-1]) & (loop[1:] - loop[:-1] > np.maximum(end[1:] - end[:-1], 1))
    return wrong


# --- markers ------------------------------------------------------------------------------------------------------


def wide_markers(told: Interpreter) -> Mask:
    """Return which markers have a duration, bool [phases]: they are written with one timestamp."""
    phases = told.phases
    found: Mask = told.is_kind("dummy_task", "predicated_skip") & (phases["end_cycles"] != phases["start_cycles"])
    return found


def unmarked(told: Interpreter) -> Mask:
    """Return which tasks without a kernel no marker names, bool [tasks].

    Only those that wait for a task: allocations do not. Where the host builds graphs there are no markers.
    """
    graph, markers = told.graph, told.is_kind("dummy_task")
    found = np.zeros(len(graph), np.bool_)
    if not markers.any() or told.on_host or Erratum.HALF_IDS in told.errata or told.deps is None:
        return found
    found[graph.succ] = True
    found &= graph.has_no_kernel & graph.is_listed
    found[told.marker_task[told.marker_task >= 0]] = False
    return found


# --- executions ---------------------------------------------------------------------------------------------------


def dispatched_early(told: Interpreter) -> Mask:
    """Return which executions were dispatched before schedulers saw the end of what they wait for, bool [executions].

    Only those that were not staged early: of v1, which had no such thing, and those whose dispatch lies in a dispatch
    phase of their thread and in no other. Those that also began early are effects before their causes, and not counted.
    """
    runs = told.runs
    if not len(runs) or not len(told.graph.pred):
        return np.zeros(len(runs), np.bool_)
    early: Mask = (runs.dispatch > 0) & (runs.dispatch < graphs.ready(told.graph, _passed(told))[runs.task])
    early &= runs.judged >= runs.ready
    if not early.any() or Erratum.MICROSECONDS in told.errata:
        return early
    phases, rows, thread = told.phases, np.flatnonzero(early), told.run_thread
    normal = told.is_kind("dispatch")
    other = told.is_kind(*EARLY_KINDS, "drain", "drain_prepare", "drain_publish")

    def contain(which: Mask) -> Mask:
        mine = Intervals(
            phases.group[which].astype(np.int64), phases["start_cycles"][which], phases["end_cycles"][which]
        )
        return mine.contain(thread[rows], runs.dispatch[rows])

    early[rows] = contain(normal) & ~contain(other)
    return early


def passed_early(told: Interpreter) -> Mask:
    """Return which markers were written before schedulers saw the end of what their task waits for, bool [phases]."""
    task = told.marker_task
    rows = np.flatnonzero(_names_passed(told))
    wrong = np.zeros(len(task), np.bool_)
    if len(rows):
        wrong[rows] = told.phases["start_cycles"][rows] < graphs.ready(told.graph, _passed(told))[task[rows]]
    return wrong


def _names_passed(told: Interpreter) -> Mask:
    """Return which phases are markers of a task that passes without a core, bool [phases]."""
    found: Mask = told.is_kind("dummy_task", "predicated_skip") & (told.marker_task >= 0)
    return found


def _passed(told: Interpreter) -> Int64:
    """Return when schedulers saw the last of each task, int64 [tasks] cycles; 0: not known."""
    runs = told.runs
    seen, _ = graphs.extreme(runs.task, runs.finish, len(told.graph), largest=True)
    seen[runs.task[runs.finish == 0]] = 0
    rows = np.flatnonzero(_names_passed(told))
    np.maximum.at(seen, told.marker_task[rows], told.phases["start_cycles"][rows])
    return seen


def received_early(told: Interpreter, suspect: Mask) -> Mask:
    """Return which executions their core received before it had ended the one before, bool [executions].

    A core reads its register between two kernels, and all its stamps are of one counter.

    Args:
        told: the capture.
        suspect: bool [executions], rows of a clock that stepped.
    """
    runs = told.runs
    wrong = np.zeros(len(runs), np.bool_)
    if len(runs) < 2 or not (runs.receive > 0).any():
        return wrong
    order = in_order(runs.core, runs.start)
    core, receive, start, end = (values[order] for values in (runs.core, runs.receive, runs.start, runs.end))
    same = core[1:] == core[:-1]
    # Kernels that overlap are a finding of their own.
    wrong[order[1:]] = same & (receive[1:] > 0) & (receive[1:] < end[:-1]) & (end[:-1] <= start[1:])
    return wrong & ~suspect
