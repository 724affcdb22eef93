"""Lists of a capture against each other: the task graph, the executions, the submissions, the scheduler phases.

All of them tell of the same tasks. Where records are known to be missing, two lists may differ for that reason, and
counts are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.devices.ascend.formats.layout import (
    AICORE,
    AICPU,
    EARLY_KINDS,
    GRAPH_KIND,
    HOST_SUBMITS,
    PHASE_KINDS,
    PHASES,
    SUBMITS,
)
from lanescope.devices.ascend.formats.records import Section
from lanescope.devices.ascend.formats.versions import Erratum
from lanescope.devices.ascend.interpret import graph as graphs
from lanescope.devices.ascend.interpret import task_kinds
from lanescope.devices.ascend.interpret.resolve import Interpreter
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]
#: Stat, count, byte offset of the first in the records file.
Found = tuple[str, int, int | None]

#: Kinds of phases that schedulers on cores write, and what they count is not known; the others count each subtask once.
_ON_CORES = ("bootstrap", "state_probe", "worksteal", "refill", "resolve_standalone", "ready_claim", "ready_steal")
_COUNTED_KINDS = frozenset(PHASE_KINDS).difference(_ON_CORES, ("direct_refill", "unknown"))
#: Kinds of phases of one thread that follow one another.
_SUCCESSIVE = tuple(kind for kind, known in PHASE_KINDS.items() if known.role == "outer" and kind != "idle")
#: Slots of a task.
_SLOTS = 3
#: Bits of a task id below its ring.
_HALF = np.uint64(32)


def found(told: Interpreter) -> Iterator[Found]:
    """Yield what lists of a capture contradict in each other."""
    node, ran = told.is_task_kind(task_kinds.NODE), executed(told)
    if told.format_version != "v4":
        node &= ~graphs.are_in_node_space(told.graph.ids)  # ids had no space
    if told.deps is not None and len(told.deps.tasks):
        tasks = told.deps.tasks["task_id"]
        # The graph of several runs has a task for each of them.
        listed = np.count_nonzero(told.graph.is_listed) if told.graph.runs is None else len(distinct(tasks))
        yield "ascend_task_duplicate", len(tasks) - int(listed), None
        yield "ascend_task_unlisted", int(np.count_nonzero(ran & ~told.graph.is_listed & ~node)), None
        yield "ascend_blocks_contradict", int(np.count_nonzero(wrong_blocks(told))), None
        yield of_rows("ascend_marker_contradicts", wrong_markers(told, ran), told.phases)
    yield "ascend_submit_unmatched", int(np.count_nonzero(never_submitted(told, node, ran))), None
    for rows in (told.submits, told.host_submits):
        yield "ascend_submit_gap", submit_gaps(told, rows), None
        yield of_rows("ascend_submit_sequence", falling_ids(told, rows), rows)
    yield from _order(told)
    yield "ascend_count_contradicts", wrong_counts(told), None


def of_rows(name: str, where: Mask, rows: Section) -> Found:
    """Return a stat of the rows (bool [n]) of a list."""
    count = int(np.count_nonzero(where))
    return name, count, int(rows.begin[where].min()) if count else None


def _order(told: Interpreter) -> Iterator[Found]:
    phases, submits, host = told.phases, told.submits, told.host_submits
    if len(phases):
        work = np.flatnonzero(told.is_kind(*_SUCCESSIVE))
        again = np.zeros(len(phases), np.bool_)
        again[work] = overlapping(phases.group[work], phases["start_cycles"][work], phases["end_cycles"][work])
        yield of_rows("ascend_overlap", again, phases)
        yield of_rows("ascend_loop_order", falling_loops(told), phases)
    for rows, begin, end in (
        (submits, "start_cycles", "end_cycles"),
        (host, "start_host_ns", "end_host_ns"),
    ):
        if len(rows):
            yield of_rows("ascend_overlap", overlapping(rows.group, rows[begin], rows[end]), rows)


def executed(told: Interpreter) -> Mask:
    """Return which tasks have executions, bool [tasks]."""
    has = np.zeros(len(told.graph), np.bool_)
    has[told.runs.task] = True
    return has


def wrong_blocks(told: Interpreter) -> Mask:
    """Return which tasks have not one execution for each of their kernels and blocks, bool [tasks].

    Tasks without any execution do not count: their predicate may have been false.
    """
    graph, runs = told.graph, told.runs
    wrong = np.zeros(len(graph), np.bool_)
    if not graph.blocks.any() or not told.is_whole(AICORE, AICPU):
        return wrong
    first, second, third = (graph.kernels[:, slot] >= 0 for slot in range(_SLOTS))
    cube, vector = first * graph.blocks, (second.astype(np.int64) + third) * graph.blocks
    count = np.bincount(runs.task, minlength=len(graph))
    wrong = count != cube + vector
    # Executions on cores without a kernel for them are a contradiction of their own.
    on_cube = np.bincount(runs.task, runs.core_type == graphs.AIC, len(graph))
    wrong |= (on_cube > cube) & (cube > 0)
    if graphs.UNKNOWN not in runs.core_type:
        wrong |= (count - on_cube > vector) & (vector > 0)
    found: Mask = wrong & (count > 0) & graph.is_listed & (first | second | third)
    return found


def wrong_markers(told: Interpreter, executed: Mask) -> Mask:
    """Return which markers name a task that cannot be of their kind, or one that was named before, bool [phases].

    Args:
        told: the capture.
        executed: bool [tasks], tasks with executions.
    """
    graph, task = told.graph, told.marker_task
    wrong = np.zeros(len(task), np.bool_)
    if not (task >= 0).any():
        return wrong
    barrier, skip, graphed = (
        told.is_kind(kind) & (task >= 0) for kind in ("dummy_task", "predicated_skip", GRAPH_KIND)
    )
    has_none = np.append(graph.has_no_kernel, False)
    is_listed = np.append(graph.is_listed, False)
    ran = np.append(executed, False)
    wrong |= (barrier | graphed) & ~has_none[task]
    wrong |= skip & (~is_listed[task] | has_none[task] | ran[task])
    for kind in (barrier, skip):
        rows = np.flatnonzero(kind)
        if len(rows):
            first = np.unique(task[rows], return_index=True)[1]
            wrong[np.delete(rows, first)] = True
    return wrong


def never_submitted(told: Interpreter, node: Mask, executed: Mask) -> Mask:
    """Return which tasks that ran, or that the task graph lists, were not submitted, bool [tasks].

    Args:
        told: the capture.
        node: bool [tasks], nodes of graphs: those are submitted as a whole.
        executed: bool [tasks], tasks with executions.
    """
    lists = [rows for rows in (told.submits, told.host_submits) if len(rows)]
    submitted = np.zeros(len(told.graph), np.bool_)
    if not lists or not told.is_whole(SUBMITS, HOST_SUBMITS):
        return submitted
    for rows in lists:
        submitted[told.index(rows)] = True
    wanted = executed
    if told.graph.runs is None:
        wanted = wanted | told.graph.is_listed
    missing: Mask = wanted & ~submitted & ~node
    return missing


def submit_gaps(told: Interpreter, rows: Section) -> int:
    """Return at how many places the numbers of submissions do not rise by one, or do not begin with 0."""
    if not len(rows) or told.epochs is not None or Erratum.SUBSTEPS in told.errata or not rows.has("submit_idx").all():
        return 0
    if not told.is_whole(rows.layout):
        return 0
    wrong = 0
    if np.array_equal(rows["submit_idx"], np.arange(len(rows))) and not rows.group[-1]:
        return 0
    for group in distinct(rows.group).tolist():
        number = np.sort(rows["submit_idx"][rows.group == group])
        wrong += int(number[0] != 0) + int(np.count_nonzero(np.diff(number) != 1))
    return wrong


def falling_ids(told: Interpreter, rows: Section) -> Mask:
    """Return which submissions have a lower task id than an earlier one of their ring, bool [n]: ids are counted up."""
    wrong = np.zeros(len(rows), np.bool_)
    if len(rows) < 2 or told.epochs is not None or Erratum.SUBSTEPS in told.errata:
        return wrong
    ids = rows["task_id"]
    if bool((ids[1:] > ids[:-1]).all()) and bool((rows["submit_idx"][1:] > rows["submit_idx"][:-1]).all()):
        return wrong
    order = np.lexsort((rows["submit_idx"], ids >> _HALF))
    ring, number = (ids >> _HALF)[order], ids[order]
    wrong[order[1:]] = (ring[1:] == ring[:-1]) & (number[1:] < number[:-1])
    return wrong


def overlapping(lane: npt.NDArray[np.int32], begin: Int64, end: Int64) -> Mask:
    """Return which rows begin before an earlier row of their lane has ended, bool [n]."""
    found = np.zeros(len(begin), np.bool_)
    if len(begin) < 2:
        return found
    if bool((lane[1:] >= lane[:-1]).all()) and bool(((begin[1:] >= end[:-1]) | (lane[1:] != lane[:-1])).all()):
        return found  # the usual order
    for number in distinct(lane).tolist():
        mine = np.flatnonzero(lane == number)
        mine = mine[np.lexsort((end[mine], begin[mine]))]
        found[mine[1:]] = begin[mine[1:]] < np.maximum.accumulate(end[mine])[:-1]
    return found


def falling_loops(told: Interpreter) -> Mask:
    """Return which phases have a lower iteration than one of their thread that ended earlier, bool [phases]."""
    phases = told.phases
    wrong = np.zeros(len(phases), np.bool_)
    loops, group = phases["loop_iter"], phases.group
    if not bool(((loops[1:] < loops[:-1]) & (group[1:] == group[:-1])).any()):
        return wrong
    rows = np.flatnonzero(phases.has("loop_iter"))
    epoch = np.unique(phases["run_epoch"][rows], return_inverse=True)[1].reshape(-1)
    lane = phases.group[rows].astype(np.int64) << 32 | epoch
    end, number = phases["end_cycles"][rows], phases["loop_iter"][rows]
    same = lane[1:] == lane[:-1]
    if not bool(((end[1:] >= end[:-1]) | ~same).all()) or not bool((lane[1:] >= lane[:-1]).all()):
        order = np.lexsort((end, lane))
        rows, lane, number = rows[order], lane[order], number[order]
        same = lane[1:] == lane[:-1]
    wrong[rows[1:]] = same & (number[1:] < number[:-1])
    return wrong


def _are_counted(phases: Section) -> bool:
    return set(phases.texts).issubset(_COUNTED_KINDS) and bool(phases.has("kind").all())


def wrong_counts(told: Interpreter) -> int:
    """Return how many counts differ from the records that they count.

    Phases count the subtasks that they publish and retire: each execution once. What was staged early is counted in
    blocks, so that a task with several kernels is counted once or several times, and what ends by itself is polled.
    What a drain publishes is counted by the dispatch phase behind it, too: drains do not count here. Of v4 that is not
    known.
    """
    wrong = 0
    host = told.records.metadata.get("host_capture")
    if isinstance(host, dict) and HOST_SUBMITS.name not in told.records.partial:
        recorded = host.get("recorded_records")
        wrong += type(recorded) is int and recorded != len(told.records[HOST_SUBMITS])
    phases = told.phases
    if not len(phases) or not _are_counted(phases) or not told.is_whole(AICORE, AICPU, PHASES):
        return int(wrong)
    count, ran = phases["tasks_processed"], len(told.runs)
    sums = dict(zip(phases.texts, np.bincount(phases["kind"], count, len(phases.texts)).tolist(), strict=False))
    published, retired, polled = (sums.get(kind, 0) for kind in ("dispatch", "complete", "async_poll"))
    drained = sums.get("drain_publish", 0) if told.records.format_version == "v4" else 0
    early = sum(sums.get(kind, 0) for kind in EARLY_KINDS)
    wrong += not published + early <= ran <= published + _SLOTS * early + drained
    wrong += not retired <= ran <= retired + polled
    if Erratum.HALF_IDS not in told.errata:
        markers = told.is_kind("dummy_task", "predicated_skip") & phases.has("task_id")
        wrong += int(np.count_nonzero(count[markers] != 1))
        if told.is_kind("dummy").any():
            wrong += int(count[told.is_kind("dummy")].sum()) != int(np.count_nonzero(markers))
    return int(wrong)
