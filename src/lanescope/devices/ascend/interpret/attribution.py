"""What the stamps add up to: edges that were not kept, and where the time of each core went.

Everything is in whole cycles, so that sums are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.declaration import frozen_class
from lanescope.devices.ascend.interpret import graph as graphs
from lanescope.devices.ascend.interpret.execution_table import Executions, LossSummary
from lanescope.devices.ascend.interpret.graph import Graph
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: Pairs of rows that are looked at in one go.
_PAIRS_AT_ONCE = 1 << 22

#: Why a core ran nothing.
IDLE_PARTS = ("dependency", "submit", "dispatch", "propagation", "setup", "unknown", "trailing_idle")


# --- edges ------------------------------------------------------------------------------------------------------------


@frozen_class
class Parts:
    """The rows that each task consists of: its own, and those of the nodes of a graph, which count for both.

    Attributes:
        row: int64 [n], the row.
        task: int64 [n], the task that it is a part of.
        end, judged: int64 [n], end of the row, and when it counts as begun.
    """

    row: Int64
    task: Int64
    end: Int64
    judged: Int64

    @classmethod
    def of(cls, runs: Executions, graph_of: Int64 | None = None) -> Parts:
        """Return the parts of all tasks.

        Args:
            runs: the executions.
            graph_of: int64 [rows], the graph that each row is a node of, -1 for others; None: there are no nodes.
        """
        nodes = np.empty(0, np.int64) if graph_of is None else np.flatnonzero(graph_of >= 0)
        if graph_of is None or not len(nodes):
            return cls(np.arange(len(runs)), runs.task, runs.end, runs.judged)
        row = np.append(np.arange(len(runs)), nodes)
        return cls(row, np.append(runs.task, graph_of[nodes]), runs.end[row], runs.judged[row])


@frozen_class
class Ends:
    """End and start of each task as seen by its neighbors.

    Attributes:
        end: int64 [tasks], its last end; 0 without rows.
        last: int64 [tasks], the row that ends last, -1 without rows.
        begun: int64 [tasks], the first instant at which one of its rows counts as begun; 0 without rows.
        first: int64 [tasks], that row, -1 without rows.
    """

    end: Int64
    last: Int64
    begun: Int64
    first: Int64

    @classmethod
    def of(cls, parts: Parts, tasks: int, rows: Mask | None = None) -> Ends:
        """Return them for all rows, or for some (bool [rows])."""
        row, task, end, judged = parts.row, parts.task, parts.end, parts.judged
        if rows is not None:
            kept = rows[row]
            row, task, end, judged = row[kept], task[kept], end[kept], judged[kept]
        last_end, last = graphs.extreme(task, end, tasks, largest=True)
        begun, first = graphs.extreme(task, judged, tasks, largest=False)
        # A -1 picks the last element, which is not a row: there may be no rows.
        last, first = (np.append(row, -1)[at] for at in (last, first))
        return cls(last_end, last, begun, first)


@frozen_class
class Kept:
    """Result of each edge of the graph. Edges whose tasks do not both have rows are not checked.

    Attributes:
        slack: int64 [edges], cycles from the last end of the producer to the first begin of the consumer; 0 where the
            edge is not judged.
        judged: bool [edges].
        violated: bool [edges], the consumer began before the producer had ended.
        by_clock: bool [edges], it would not be violated without rows of a clock that stepped.
        pairs: int64 [edges], pairs of rows of both tasks of which the second began before the first had ended.
        ends: where tasks end and begin.
        sound: the same without rows of a clock that stepped.
    """

    slack: Int64
    judged: Mask
    violated: Mask
    by_clock: Mask
    pairs: Int64
    ends: Ends
    sound: Ends


def check_dependencies(graph: Graph, runs: Executions, suspect: Mask, graph_of: Int64 | None = None) -> Kept:
    """Judge every edge at the instant that the format version of the capture allows.

    Args:
        graph: the task graph.
        runs: the executions.
        suspect: bool [rows], rows of a clock that stepped.
        graph_of: see ``Parts.of``: a graph begins with the first of its nodes, and ends with the last.
    """
    parts = Parts.of(runs, graph_of)
    ends = Ends.of(parts, len(graph))
    sound = Ends.of(parts, len(graph), ~suspect) if suspect.any() else ends
    pred, succ = graph.pred, graph.succ
    judged = (ends.last[pred] >= 0) & (ends.first[succ] >= 0)
    slack = np.where(judged, ends.begun[succ] - ends.end[pred], 0)
    violated = judged & (slack < 0)
    by_clock = violated & ~_breaks(sound, pred, succ)
    pairs = np.zeros(len(pred), np.int64)
    broken = np.flatnonzero(violated)
    if len(broken):
        pairs[broken] = violating_pairs(parts, pred[broken], succ[broken])
    return Kept(slack, judged, violated, by_clock, pairs, ends, sound)


def _breaks(ends: Ends, pred: Int64, succ: Int64) -> Mask:
    broken: Mask = (ends.last[pred] >= 0) & (ends.first[succ] >= 0) & (ends.end[pred] > ends.begun[succ])
    return broken


def violating_pairs(runs: Parts, pred: Int64, succ: Int64) -> Int64:
    """Return for each edge how many pairs of rows (one of each task) break it, int64 [edges]."""
    found = np.zeros(len(pred), np.int64)
    # Stamps as ranks, so that a task and one of them fit one number.
    values, rank = np.unique(np.concatenate([runs.end, runs.judged]), return_inverse=True)
    end, begun = rank[: len(runs.row)], rank[len(runs.row) :]
    width = len(values)
    ends, begins = np.sort(runs.task * width + end), np.sort(runs.task * width + begun)
    for edges, row, other, is_pred in _expanded(runs, pred, succ):
        low = other * width
        if is_pred:  # rows of the consumer that had begun before this one ended
            hits = np.searchsorted(begins, low + end[row]) - np.searchsorted(begins, low)
        else:  # rows of the producer that ended after this one had begun
            hits = np.searchsorted(ends, low + width) - np.searchsorted(ends, low + begun[row], side="right")
        np.add.at(found, edges, hits)
    return found


def _expanded(runs: Parts, pred: Int64, succ: Int64) -> Iterator[tuple[Int64, Int64, Int64, bool]]:
    """Yield (edge, row, other task, whether the row is of the producer): for each edge the rows of its smaller task."""
    tasks = int(max(pred.max(), succ.max())) + 1
    order, bounds = rows_by_task(runs.task, tasks)
    sizes = np.diff(bounds)
    smaller = sizes[pred] <= sizes[succ]
    for is_pred in (True, False):
        edges = np.flatnonzero(smaller == is_pred)
        mine, other = (pred, succ) if is_pred else (succ, pred)
        count = sizes[mine[edges]]
        parts = np.cumsum(count) // _PAIRS_AT_ONCE
        for chunk in np.split(np.arange(len(edges)), np.flatnonzero(np.diff(parts)) + 1):
            some = edges[chunk]
            at = np.repeat(np.arange(len(some)), count[chunk])
            offset = np.arange(len(at)) - np.repeat(np.cumsum(count[chunk]) - count[chunk], count[chunk])
            yield some[at], order[bounds[mine[some]][at] + offset], other[some][at], is_pred


def rows_by_task(task: Int64, tasks: int) -> tuple[Int64, Int64]:
    """Return the rows in the order of their tasks, int64 [n], and where each task begins, int64 [tasks + 1]."""
    order = np.argsort(task, kind="stable")
    return order, np.concatenate([[0], np.cumsum(np.bincount(task, minlength=tasks)[:tasks])])


def ready_is_exact(graph: Graph, has_rows: Mask, is_allocation: Mask) -> Mask:
    """Return for which tasks all producers that can hold them up have rows, bool [tasks].

    Allocations delay no task longer than their submit. Barriers and producers with missing rows may: readiness is no
    earlier than the other producers allow.

    Args:
        graph: the task graph.
        has_rows: bool [tasks], the task or one of its nodes has rows.
        is_allocation: bool [tasks].
    """
    exact = np.ones(len(graph), np.bool_)
    is_harmless = has_rows | is_allocation
    exact[graph.succ[~is_harmless[graph.pred]]] = False
    return exact


# --- cores ------------------------------------------------------------------------------------------------------------


@frozen_class
class CoreTimes:
    """Time of each core by use: busy and the idle parts add up to the window.

    Attributes:
        core: int64 [cores], rising.
        rows: int64 [cores], executions.
        begin, end: the window: the first start and the last end of all cores, cycles, without stamps that contradict
            the others of their execution, and without those beyond the attested window.
        busy: int64 [cores], cycles in which something ran.
        overlap: int64 [cores], cycles that executions claim beyond that.
        idle: int64 [cores, 7], cycles of ``IDLE_PARTS``.
        lost: int64 [cores], cycles of them in which executions are known to be missing: perhaps the core was busy.
        suspects: int64 [cores], executions with a stamp beyond the attested window: not in busy, and the gaps in which
            they lie are of unknown cause.
        suspect: int64 [cores], cycles that those claim.
    """

    core: Int64
    rows: Int64
    begin: int
    end: int
    busy: Int64
    overlap: Int64
    idle: Int64
    lost: Int64
    suspects: Int64
    suspect: Int64


def core_times(
    runs: Executions,
    submitted: Int64,
    lost: LossSummary,
    cores: Int64,
    disordered: Mask | None = None,
    attested: tuple[int, int] | None = None,
) -> CoreTimes:
    """Split the time of each core.

    A gap before an execution goes to what that execution waited for, one thing after the other: its producers, its
    submit, its dispatch, the way to the core, the setup there.

    Args:
        runs: the executions.
        submitted: int64 [tasks], end of the first submit of each task, 0 where unknown.
        lost: what is missing.
        cores: int64, the cores to report, rising; those of all rows are among them.
        disordered: bool [rows], executions whose stamps contradict each other: they do not widen the window, and count
            as far as they lie in it. None: there are none.
        attested: first and last stamp that is attested; None: all are.
    """
    count = len(cores)
    busy, overlap, gone, suspects, claimed = np.zeros((5, count), np.int64)
    idle = np.zeros((count, len(IDLE_PARTS)), np.int64)
    rows = np.bincount(np.searchsorted(cores, runs.core), minlength=count)
    if not len(runs):
        return CoreTimes(cores, rows, 0, 0, busy, overlap, idle, gone, suspects, claimed)
    stop = np.maximum(runs.end, runs.start)
    earliest, latest = attested or (int(runs.start.min()), int(stop.max()))
    is_far = (runs.start < earliest) | (runs.start > latest) | (stop > latest)
    if is_far.all():
        is_far = np.zeros(len(runs), np.bool_)
    is_told = ~is_far if disordered is None else ~(is_far | disordered)
    told = is_told if is_told.any() else ~is_far
    begin, end = int(runs.start[told].min()), int(stop[told].max())
    far_core = np.searchsorted(cores, runs.core[is_far])
    np.add.at(suspects, far_core, 1)
    np.add.at(claimed, far_core, (stop - runs.start)[is_far])
    starts, stop = (np.clip(stamps, begin, end) for stamps in (runs.start, stop))
    order = np.lexsort((stop, starts, runs.core))
    bounds = np.concatenate([[0], np.cumsum(rows)]).tolist()
    missing = _Missing(lost)
    for place, (first, last) in enumerate(pairwise(bounds)):
        mine = order[first:last]
        far = mine[is_far[mine]]
        mine = mine[~is_far[mine]]
        start, finish = starts[mine], stop[mine]
        # The end of the last gap is that of the window.
        free = np.append(begin, np.maximum.accumulate(finish))
        free = np.maximum(free, begin)
        gap = free[:-1]
        is_gap = start > gap
        busy[place] = int((np.maximum(finish, free[:-1]) - np.maximum(start, free[:-1])).sum())
        overlap[place] = int((finish - start).sum()) - busy[place]
        mine, gap, start = mine[is_gap], gap[is_gap], start[is_gap]
        unseen = missing.within(int(cores[place]))
        gone[place] = (unseen(start) - unseen(gap)).sum() + np.diff(unseen(np.array([free[-1], end])))[0]
        trailing = _AFTER_LAST
        if len(far):
            # What a core did around an execution at an unknown time is unknown.
            at = np.where(runs.start[far] < begin, stop[far], starts[far])
            is_near = np.searchsorted(np.sort(at), gap) < np.searchsorted(np.sort(at), start, "right")
            idle[place, _UNKNOWN] += int((start - gap)[is_near].sum())
            mine, gap, start = mine[~is_near], gap[~is_near], start[~is_near]
            trailing = _UNKNOWN if int(at.max()) >= int(free[-1]) else _AFTER_LAST
        for part, low, high in _milestones(runs, submitted[runs.task[mine]], mine, gap, start):
            idle[place, part] += int((high - low).sum())
        idle[place, trailing] += end - int(free[-1])
    return CoreTimes(cores, rows, begin, end, busy, overlap, idle, gone, suspects, claimed)


_DEPENDENCY, _SUBMIT, _DISPATCH, _PROPAGATION, _SETUP, _UNKNOWN, _AFTER_LAST = range(len(IDLE_PARTS))


def _milestones(
    runs: Executions, submitted: Int64, rows: Int64, gap: Int64, start: Int64
) -> Iterator[tuple[int, Int64, Int64]]:
    """Yield (part, from, to) for the gaps before rows; together they are the gaps."""

    def clamped(stamp: Int64, least: Int64) -> Int64:
        return np.where(stamp > 0, np.minimum(np.maximum(stamp, least), start), least)

    dispatch, receive = runs.dispatch[rows], runs.receive[rows]
    ready = clamped(runs.ready[rows], gap)
    free_to_go = clamped(submitted, ready)
    sent = clamped(dispatch, free_to_go)
    taken = np.where(receive > 0, clamped(receive, sent), start)
    yield _DEPENDENCY, gap, ready
    yield _SUBMIT, ready, free_to_go
    # Without a record of readiness, the cause of the wait before the dispatch is unknown.
    knows = (runs.ready[rows] > 0) | (submitted > 0)
    yield _DISPATCH, free_to_go[knows], sent[knows]
    yield _UNKNOWN, free_to_go[~knows], sent[~knows]
    is_sent = dispatch > 0
    yield _PROPAGATION, sent[is_sent], taken[is_sent]
    yield _SETUP, taken[is_sent], start[is_sent]
    yield _UNKNOWN, sent[~is_sent], start[~is_sent]


class _Missing:
    """The places where executions are known to be lost, as a measure by core."""

    def __init__(self, lost: LossSummary) -> None:
        self._by_core: dict[int, tuple[Int64, Int64, Int64]] = {}
        for core in distinct(lost.core).tolist():
            mine = lost.core == core
            order = np.argsort(lost.begin[mine], kind="stable")
            begin = lost.begin[mine][order]
            reach = np.maximum.accumulate(lost.end[mine][order])
            # What earlier places cover already is not counted again.
            begin = np.maximum(begin, np.append(begin[:1], reach[:-1]))
            self._by_core[core] = begin, reach, np.append(0, np.cumsum(reach - begin))

    def within(self, core: int) -> _Measure:
        """Return how many cycles before a stamp are in such places of a core."""
        return _Measure(*self._by_core.get(core, (np.zeros(0, np.int64),) * 3))


@frozen_class
class _Measure:
    begin: Int64
    end: Int64
    total: Int64

    def __call__(self, stamp: Int64) -> Int64:
        """Return the total length before each timestamp, int64 [n]."""
        if not len(self.begin):
            return np.zeros(len(stamp), np.int64)
        at = np.searchsorted(self.begin, stamp, side="right")
        inside = np.where(at > 0, np.minimum(stamp, self.end[at - 1]) - self.begin[at - 1], 0)
        return self.total[np.maximum(at - 1, 0)] + inside
