"""Arrows: the edges of the task graph, from the last end of a producer to the first begin of its consumer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.emit.context import RecordSlices, TimelineBuilder, ToTs, some
from lanescope.devices.ascend.emit.schedulers import CorelessTasks
from lanescope.devices.ascend.formats.layout import AICORE, AICPU
from lanescope.devices.ascend.interpret import task_kinds
from lanescope.devices.ascend.interpret.attribution import Ends, rows_by_task
from lanescope.trace import Column
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: Arrows of blocks that are drawn at most; edges beyond have one arrow.
MAX_BLOCK_ARROWS = 1 << 22


def draw_edges(canvas: TimelineBuilder, runs: RecordSlices, bare: Sequence[CorelessTasks]) -> None:
    """Draw the edges, and say how each was kept.

    An arrow ends where the consumer counts as begun: at its receive, or at its start where the receive is unknown or no
    proof. Its slice is the execution, also where it ends in the setup before that: whoever looks at an execution finds
    what held it. With ``arrows=block`` each pair of executions has its own.

    Args:
        canvas: what to draw on.
        runs: the executions.
        bare: tasks that run on no core.
    """
    graph = canvas.told.graph
    edges = len(graph.pred)
    if not edges:
        return
    source, target = _anchors(canvas, runs, bare, canvas.kept.ends)
    placed = (source.stamp[graph.pred] > 0) & (target.stamp[graph.succ] > 0)
    if not placed.all():
        _note_missing(canvas, np.flatnonzero(~placed), source, target)
    flow = np.full(edges, -1, np.int64)
    count = np.where(placed, 1, 0)
    single = placed.copy()
    if canvas.style.has_blocks:
        by_block = _pairs_of(canvas)
        flow[by_block], count[by_block] = _draw_blocks(canvas, runs, by_block)
        single[by_block] = False
    # An edge that sound rows break is drawn between those, not between rows of a clock that stepped.
    kept = canvas.kept
    real = kept.violated & ~kept.by_clock
    plain = np.flatnonzero(single & ~real) if kept.sound is not kept.ends else np.flatnonzero(single)
    flow[plain] = _draw(canvas, source, target, plain)
    if kept.sound is not kept.ends:
        broken = np.flatnonzero(single & real)
        flow[broken] = _draw(canvas, *_anchors(canvas, runs, bare, kept.sound), broken)
    _count(canvas, flow, count)


def _note_missing(canvas: TimelineBuilder, edges: Int64, source: _Anchors, target: _Anchors) -> None:
    """Count edges that are not drawn, by what is known of their tasks: lost, perhaps lost, or never recorded."""
    told, graph = canvas.told, canvas.told.graph
    kinds = told.kinds
    is_open = kinds.record == task_kinds.UNDECIDABLE
    # A function that was to run, and did not: whether it was skipped is not recorded.
    may_be_skipped = is_open & graph.is_listed & ~graph.has_no_kernel
    is_lost = (kinds.record == task_kinds.LOST) | (~graph.is_listed & ~told.is_task_kind(task_kinds.ALLOC))
    if not told.is_whole(AICORE, AICPU):
        is_lost, may_be_skipped = is_lost | may_be_skipped, np.zeros(len(graph), np.bool_)

    def misses(where: Mask) -> Mask:
        found: Mask = (where & (source.stamp == 0))[graph.pred[edges]] | (where & (target.stamp == 0))[
            graph.succ[edges]
        ]
        return found

    unmatched, undecided = misses(is_lost), misses(may_be_skipped)
    undecided &= ~unmatched
    for name, where in (
        ("ascend_edge_unmatched", unmatched),
        ("ascend_edge_undecided", undecided),
        ("ascend_edge_no_kernel", ~unmatched & ~undecided),
    ):
        told.problems.append((name, int(np.count_nonzero(where)), None))


def _draw(canvas: TimelineBuilder, source: _Anchors, target: _Anchors, edges: Int64) -> Int64:
    """Draw one arrow for each edge, and return their ids."""
    graph = canvas.told.graph
    count = len(edges)
    if not count:
        return edges
    pred, succ = (graph.pred, graph.succ) if count == len(graph.pred) else (graph.pred[edges], graph.succ[edges])
    first = canvas.builder.append(
        "flows",
        kind="dependency",
        src_track_id=Column.derived(count, lambda: source.track[pred]),
        src_ts=Column.derived(count, lambda: source.ts(pred)),
        dst_track_id=Column.derived(count, lambda: target.track[succ]),
        dst_ts=Column.derived(count, lambda: target.ts(succ)),
        src_slice_id=Column.derived(count, lambda: source.slice_id[pred]),
        dst_slice_id=Column.derived(count, lambda: target.slice_id[succ]),
    )
    return first + np.arange(count)


def _pairs_of(canvas: TimelineBuilder) -> Int64:
    """Return the edges that are drawn block by block: as many as there may be arrows, those with few pairs first."""
    told, graph = canvas.told, canvas.told.graph
    rows = np.bincount(told.runs.task, minlength=len(graph)).astype(np.float64)
    pairs = rows[graph.pred] * rows[graph.succ]
    edges = np.flatnonzero(pairs > 0)
    edges = edges[np.argsort(pairs[edges], kind="stable")]
    fits = np.cumsum(pairs[edges]) <= MAX_BLOCK_ARROWS
    told.problems.append(("ascend_flows_merged", int(np.count_nonzero(~fits)), None))
    return np.sort(edges[fits])


def _draw_blocks(canvas: TimelineBuilder, drawn: RecordSlices, edges: Int64) -> tuple[Int64, Int64]:
    """Draw an arrow for each pair of executions of edges; return the first arrow of each edge, and how many."""
    told, graph, runs = canvas.told, canvas.told.graph, canvas.told.runs
    if not len(edges):
        return edges, edges
    order, bounds = rows_by_task(runs.task, len(graph))
    sizes = np.diff(bounds)
    pred, succ = graph.pred[edges], graph.succ[edges]
    count = sizes[pred] * sizes[succ]
    edge = np.repeat(np.arange(len(edges)), count)
    place = np.arange(len(edge)) - np.repeat(np.cumsum(count) - count, count)
    src = order[bounds[pred][edge] + place // sizes[succ][edge]]
    dst = order[bounds[succ][edge] + place % sizes[succ][edge]]
    to_ts = told.times.device
    first = canvas.builder.append(
        "flows",
        kind="dependency",
        src_track_id=drawn.track[src],
        src_ts=to_ts(np.maximum(runs.end, runs.start)[src]),
        dst_track_id=drawn.track[dst],
        dst_ts=to_ts(runs.judged[dst]),
        src_slice_id=drawn.ids[src],
        dst_slice_id=drawn.ids[dst],
    )
    return first + np.cumsum(count) - count, count


def _count(canvas: TimelineBuilder, flow: Int64, arrows: Int64) -> None:
    graph, kept = canvas.told.graph, canvas.kept
    count = len(flow)
    canvas.builder.append(
        "ascend_edges",
        flow_id=Column.derived(count, lambda: np.maximum(flow, 0), valid=some(flow >= 0)),
        input_id=Column.constant(canvas.main, count, np.int64),
        pred_task_id=Column.derived(count, lambda: graph.ids[graph.pred]),
        succ_task_id=Column.derived(count, lambda: graph.ids[graph.succ]),
        arrows=arrows.astype(np.int32),
        slack_ticks=Column.array(kept.slack, valid=some(kept.judged)),
        is_violated=Column.array(kept.violated, valid=some(kept.judged)),
        follows_clock_step=kept.by_clock,
        violated_pairs=kept.pairs,
    )


def _anchors(
    canvas: TimelineBuilder, drawn: RecordSlices, bare: Sequence[CorelessTasks], ends: Ends
) -> tuple[_Anchors, _Anchors]:
    """Return where edges leave each task and where they enter it; allocations wait for nothing, none enters there."""
    told = canvas.told
    waits = ~told.is_task_kind(task_kinds.ALLOC)
    tasks = len(told.graph)
    source, target = _Anchors(tasks), _Anchors(tasks)
    source.put(ends.end, ends.last, drawn.track, drawn.ids, drawn.to_ts)
    target.put(ends.begun, ends.first, drawn.track, drawn.ids, drawn.to_ts)
    is_bare = (canvas.kept.ends.last < 0) & (canvas.kept.ends.first < 0)
    for part in bare:
        row = np.full(tasks, -1, np.int64)
        at = np.flatnonzero(part.task >= 0)[::-1]
        row[part.task[at]] = at
        row[~is_bare] = -1
        found = row >= 0
        for anchors, values, has_end in (
            (source, np.maximum(part.drawn.begin, part.drawn.end), found),
            (target, part.drawn.begin, found & waits),
        ):
            stamp = np.zeros(tasks, np.int64)
            stamp[has_end] = values[row[has_end]]
            anchors.put(stamp, row, part.drawn.track, part.drawn.ids, part.drawn.to_ts)
        is_bare &= ~found
    return source, target


class _Anchors:
    """End points of edges, by task: a timestamp (0: none), its lane, its slice, its clock."""

    def __init__(self, tasks: int) -> None:
        self.stamp = np.zeros(tasks, np.int64)
        self.track = np.zeros(tasks, np.int64)
        self.slice_id = np.zeros(tasks, np.int64)
        self._time: list[ToTs] = []
        self._clock = np.zeros(tasks, np.int8)

    def put(self, stamp: Int64, row: Int64, track: Int64, slice_id: Int64, to_ts: ToTs) -> None:
        """Set the tasks that have a row (not -1) and a stamp."""
        found = np.flatnonzero((row >= 0) & (stamp > 0))
        if len(found) == len(row):
            self.stamp, self.track, self.slice_id = stamp.copy(), track[row], slice_id[row]
        else:
            rows = row[found]
            self.stamp[found] = stamp[found]
            self.track[found] = track[rows]
            self.slice_id[found] = slice_id[rows]
        self._clock[found] = len(self._time)
        self._time.append(to_ts)

    def ts(self, tasks: Int64) -> Int64:
        """Return the trace times of the stamps of tasks that have one."""
        clock, stamp = self._clock[tasks], self.stamp[tasks]
        times = np.zeros(len(tasks), np.int64)
        for index, to_ts in enumerate(self._time):
            mine = clock == index
            if mine.all():
                return to_ts(stamp)
            times[mine] = to_ts(stamp[mine])
        return times
