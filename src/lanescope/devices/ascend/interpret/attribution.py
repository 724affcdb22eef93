"""What the stamps add up to: edges that were not kept, clocks that stepped, and where the time of each core went.

Everything is in whole cycles, so that sums are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.interpret import graph as graphs
from lanescope.devices.ascend.interpret.execution_table import Executions, LossSummary
from lanescope.devices.ascend.interpret.graph import Graph
from lanescope.devices.ascend.interpret.sorted_index import distinct
from lanescope.families.declaration import frozen_class
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: Stamps out of order that make a step of a core's clock, and how many sound rows may lie between two of them: where
#: the step is not much longer than the way to the core, some rows look sound.
_STEP_ROWS, _STEP_PAUSE = 3, 8
#: Pairs of rows that are looked at in one go.
_PAIRS_AT_ONCE = 1 << 22

#: Why a core ran nothing.
IDLE_PARTS = ("dependency", "submit", "dispatch", "propagation", "setup", "unknown", "trailing_idle")


# --- clocks -----------------------------------------------------------------------------------------------------------


@frozen_class
class Steps:
    """Steps of the clocks of single cores.

    Attributes:
        suspect: bool [rows], the stamps of the core are off.
        core: int64 [steps].
        row: int64 [steps], the first row that shows it.
    """

    suspect: Mask
    core: Int64
    row: Int64


def clock_steps(runs: Executions) -> Steps:
    """Find cores whose clock stepped.

    Several rows of such a core are received before their dispatch (the clock stepped back), or end after the scheduler
    saw them finish (ahead), while other cores show nothing of that kind.

    Args:
        runs: the executions.
    """
    suspect = np.zeros(len(runs), np.bool_)
    took = np.where(runs.receive > 0, runs.receive, runs.start)
    back = took < runs.dispatch
    ahead = (runs.finish > 0) & (runs.end > runs.finish) & (runs.dispatch > 0)
    none = np.empty(0, np.int64)
    if max(np.count_nonzero(back), np.count_nonzero(ahead)) < _STEP_ROWS:
        return Steps(suspect, none, none)
    joined = np.flatnonzero(runs.dispatch > 0)
    # The schedulers' stamps are of another clock: their order stands.
    joined = joined[np.lexsort((runs.dispatch[joined], runs.core[joined]))]
    core = runs.core[joined]
    found: list[tuple[int, int]] = []
    for odd in (back[joined], ahead[joined]):
        at = np.flatnonzero(odd)
        if len(at) < _STEP_ROWS:
            continue
        breaks = (np.diff(at) > _STEP_PAUSE) | (np.diff(core[at]) != 0)
        edges = np.concatenate([[0], np.flatnonzero(breaks) + 1, [len(at)]])
        runs_of = [(int(at[a]), int(at[b - 1])) for a, b in pairwise(edges.tolist()) if b - a >= _STEP_ROWS]
        stepped = {int(core[first]) for first, _ in runs_of}
        if len(stepped) > max(1, len(distinct(core)) // 2):
            continue  # not the clock of a core: this chip stamps so
        found += runs_of
    if not found:
        return Steps(suspect, none, none)
    ends = np.append(np.flatnonzero(np.diff(core)) + 1, len(core))
    for first, last in found:
        end = int(ends[np.searchsorted(ends, last, side="right")])
        # What follows to the end of the core's rows is not far enough to prove that the clock stepped back again.
        last = end - 1 if end - 1 - last <= _STEP_PAUSE else last
        suspect[joined[first : last + 1]] = True
        counters = runs.counter[joined[[first, last]]]
        between = (runs.core == core[first]) & (runs.counter >= counters[0]) & (runs.counter <= counters[1])
        suspect |= between & (runs.dispatch == 0)
    found.sort()
    firsts = np.array([first for first, _ in found], np.int64)
    return Steps(suspect, core[firsts], joined[firsts])


# --- edges ------------------------------------------------------------------------------------------------------------


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
    def of(cls, runs: Executions, tasks: int, rows: Int64 | None = None) -> Ends:
        """Return them for all rows, or for some (int64 [m])."""
        task, end, judged = runs.task, runs.end, runs.judged
        if rows is not None:
            task, end, judged = task[rows], end[rows], judged[rows]
        last_end, last = graphs.extreme(task, end, tasks, largest=True)
        begun, first = graphs.extreme(task, judged, tasks, largest=False)
        if rows is not None:
            # A -1 picks the last element, which is not a row: there may be no rows.
            last, first = (np.append(rows, -1)[row] for row in (last, first))
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


def check_dependencies(graph: Graph, runs: Executions, suspect: Mask) -> Kept:
    """Judge every edge at the instant that the format version of the capture allows.

    Args:
        graph: the task graph.
        runs: the executions.
        suspect: bool [rows], rows of a clock that stepped.
    """
    ends = Ends.of(runs, len(graph))
    sound = Ends.of(runs, len(graph), np.flatnonzero(~suspect)) if suspect.any() else ends
    pred, succ = graph.pred, graph.succ
    judged = (ends.last[pred] >= 0) & (ends.first[succ] >= 0)
    slack = np.where(judged, ends.begun[succ] - ends.end[pred], 0)
    violated = judged & (slack < 0)
    by_clock = violated & ~_breaks(sound, pred, succ)
    pairs = np.zeros(len(pred), np.int64)
    broken = np.flatnonzero(violated)
    if len(broken):
        pairs[broken] = violating_pairs(runs, pred[broken], succ[broken])
    return Kept(slack, judged, violated, by_clock, pairs, ends, sound)


def _breaks(ends: Ends, pred: Int64, succ: Int64) -> Mask:
    broken: Mask = (ends.last[pred] >= 0) & (ends.first[succ] >= 0) & (ends.end[pred] > ends.begun[succ])
    return broken


def violating_pairs(runs: Executions, pred: Int64, succ: Int64) -> Int64:
    """Return for each edge how many pairs of rows (one of each task) break it, int64 [edges]."""
    found = np.zeros(len(pred), np.int64)
    # Stamps as ranks, so that a task and one of them fit one number.
    values, rank = np.unique(np.concatenate([runs.end, runs.judged]), return_inverse=True)
    end, begun = rank[: len(runs)], rank[len(runs) :]
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


def _expanded(runs: Executions, pred: Int64, succ: Int64) -> Iterator[tuple[Int64, Int64, Int64, bool]]:
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


def ready_is_exact(graph: Graph, has_rows: Mask, is_barrier: Mask) -> Mask:
    """Return for which tasks all producers that can hold them up have rows, bool [tasks].

    Allocations delay no task longer than their submit. Barriers and producers with missing rows may: readiness is no
    earlier than the other producers allow.

    Args:
        graph: the task graph.
        has_rows: bool [tasks].
        is_barrier: bool [tasks], a marker names the task.
    """
    exact = np.ones(len(graph), np.bool_)
    is_harmless = has_rows | (graph.has_no_kernel & ~is_barrier)
    exact[graph.succ[~is_harmless[graph.pred]]] = False
    return exact


# --- cores ------------------------------------------------------------------------------------------------------------


@frozen_class
class CoreTimes:
    """Time of each core by use: busy and the idle parts add up to the window.

    Attributes:
        core: int64 [cores], rising.
        rows: int64 [cores], executions.
        begin, end: the window: the first start and the last end of all cores, cycles.
        busy: int64 [cores], cycles in which something ran.
        overlap: int64 [cores], cycles that executions claim beyond that.
        idle: int64 [cores, 7], cycles of ``IDLE_PARTS``.
        lost: int64 [cores], cycles of them in which executions are known to be missing: perhaps the core was busy.
    """

    core: Int64
    rows: Int64
    begin: int
    end: int
    busy: Int64
    overlap: Int64
    idle: Int64
    lost: Int64


def core_times(runs: Executions, submitted: Int64, lost: LossSummary, cores: Int64) -> CoreTimes:
    """Split the time of each core.

    A gap before an execution goes to what that execution waited for, one thing after the other: its producers, its
    submit, its dispatch, the way to the core, the setup there.

    Args:
        runs: the executions.
        submitted: int64 [tasks], end of the first submit of each task, 0 where unknown.
        lost: what is missing.
        cores: int64, the cores to report, rising; those of all rows are among them.
    """
    count = len(cores)
    busy, overlap, gone = np.zeros((3, count), np.int64)
    idle = np.zeros((count, len(IDLE_PARTS)), np.int64)
    rows = np.bincount(np.searchsorted(cores, runs.core), minlength=count)
    if not len(runs):
        return CoreTimes(cores, rows, 0, 0, busy, overlap, idle, gone)
    stop = np.maximum(runs.end, runs.start)
    begin, end = int(runs.start.min()), int(stop.max())
    order = np.lexsort((stop, runs.start, runs.core))
    bounds = np.concatenate([[0], np.cumsum(rows)]).tolist()
    missing = _Missing(lost)
    for place, (first, last) in enumerate(pairwise(bounds)):
        mine = order[first:last]
        start, finish = runs.start[mine], stop[mine]
        # The end of the last gap is that of the window.
        free = np.append(begin, np.maximum.accumulate(finish))
        free = np.maximum(free, begin)
        gap = free[:-1]
        is_gap = start > gap
        busy[place] = int((np.maximum(finish, free[:-1]) - np.maximum(start, free[:-1])).sum())
        overlap[place] = int((finish - start).sum()) - busy[place]
        mine, gap, start = mine[is_gap], gap[is_gap], start[is_gap]
        for part, low, high in _milestones(runs, submitted[runs.task[mine]], mine, gap, start):
            idle[place, part] += int((high - low).sum())
        idle[place, _AFTER_LAST] = end - int(free[-1])
        unseen = missing.within(int(cores[place]))
        gone[place] = (unseen(start) - unseen(gap)).sum() + np.diff(unseen(np.array([free[-1], end])))[0]
    return CoreTimes(cores, rows, begin, end, busy, overlap, idle, gone)


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
