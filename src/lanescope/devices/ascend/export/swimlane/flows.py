"""Arrows, as the peer's converter draws them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanescope.common.distinct import distinct
from lanescope.declaration import frozen_class
from lanescope.devices.ascend.export.swimlane.event_rows import SEPARATOR, Numbers, Words, write
from lanescope.devices.ascend.export.swimlane.trace_view import (
    ORCHESTRATOR,
    SCHEDULER,
    SCHEDULER_VIEW,
    WORKER_VIEW,
    Content,
    Floats,
    Int64,
    bare_tids,
    by_group,
    passes,
    scheduler_tid,
    worker_tid,
)
from lanescope.devices.ascend.interpret.graph import extreme

#: An arrow leaves a bar so much before its end: exactly at the end it would belong to no bar.
_INSIDE_US = 0.01
_NAMES = ("dependency", "hb_violation", "complete", "complete→ready", "dispatch", "submit→dispatch")
_DEPENDENCY, _VIOLATION, _COMPLETE, _READY, _DISPATCH, _SUBMIT = range(len(_NAMES))
_ARROW = SEPARATOR.join(
    (
        '{"cat":"flow","id":$number,"name":"$name","ph":"s","pid":$src_pid,"tid":$src_tid,"ts":$src_ts}',
        '{"cat":"flow","id":$number,"name":"$name","ph":"f","pid":$dst_pid,"tid":$dst_tid,"ts":$dst_ts,"bp":"e"}',
    )
)


@frozen_class
class Ends:
    """One end of arrows of one kind.

    Attributes:
        pid: process.
        tid: int64 [n], lane.
        ts: float64 [n], microseconds.
    """

    pid: int
    tid: Int64
    ts: Floats


@frozen_class
class Arrows:
    """Arrows between two processes.

    Attributes:
        name: int64 [n], index into ``_NAMES``.
        src, dst: their ends.
    """

    name: Int64
    src: Ends
    dst: Ends


def arrows(content: Content, numbers: Numbers) -> Iterator[bytes]:
    """Yield all arrows, as parts of the list of events; ``numbers`` gives them their ids."""
    for some in (*_dependencies(content), *_completes(content), *_dispatches(content)):
        count = len(some.name)
        yield from write(
            _ARROW,
            number=numbers.take(np.ones(count, np.int64)),
            name=Words(_NAMES, some.name),
            **{
                f"{end}_{name}": np.broadcast_to(np.asarray(getattr(getattr(some, end), name)), count)
                for end in ("src", "dst")
                for name in ("pid", "tid", "ts")
            },
        )


def _edges(content: Content) -> tuple[Int64, Int64]:
    """Return the edges between tasks that ran, as indices of both, int64 [edges]."""
    pred, succ = (content.place[end] for end in content.edges)
    ran = (pred >= 0) & (succ >= 0)
    return pred[ran], succ[ran]


def _pairs(first: tuple[Int64, Int64], second: tuple[Int64, Int64]) -> tuple[Int64, Int64]:
    """Return all pairs of rows, int64 [pairs] each, when edge n joins each of some rows with each of some others.

    Args:
        first: begin and number of the rows of one end of the edges, int64 [edges] each.
        second: the same of the other end.
    """
    counts = first[1] * second[1]
    edge = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(edge)) - np.repeat(np.cumsum(counts) - counts, counts)
    width = second[1][edge]
    return first[0][edge] + number // width, second[0][edge] + number % width


def _dependencies(content: Content) -> Iterator[Arrows]:
    """Join executions of tasks that depend on each other, in both views."""
    c = content
    p, s = _joined_rows(c, _anchor_rows(c))
    name = np.where(c.end[p] > c.judged[s], _VIOLATION, _DEPENDENCY)
    # The newer converter joins the begins of bars: an arrow backwards could not be drawn.
    begin, end = (c.bar[p], c.bar[s]) if c.is_chip else (c.end[p] - _INSIDE_US, c.receive[s])
    yield Arrows(name, Ends(WORKER_VIEW, worker_tid(c.core[p]), begin), Ends(WORKER_VIEW, worker_tid(c.core[s]), end))
    if c.is_chip:
        p, s = _joined_rows(c, _anchor_rows(c, by_dispatch=True, joined=True))
    joined = c.is_joined[p] & c.is_joined[s]
    p, s = p[joined], s[joined]
    yield Arrows(
        np.where(c.end[p] > c.judged[s], _VIOLATION, _DEPENDENCY),
        Ends(SCHEDULER_VIEW, c.flight_tid[p], c.dispatch[p] if c.is_chip else c.finish[p] - _INSIDE_US),
        Ends(SCHEDULER_VIEW, c.flight_tid[s], c.dispatch[s]),
    )
    if c.is_chip:
        yield from _around_bare(c)


def _around_bare(content: Content) -> Iterator[Arrows]:
    """Join the tasks that run on no core with those that they wait for, and that wait for them."""
    c, bare = content, content.bare
    known = np.flatnonzero(bare.table.valid("task_id"))
    order, _ = _anchor_rows(c)
    # The anchors of all tasks: executions, and bars of tasks without.
    ids = np.concatenate([c.known[c.task[order]], bare.table.values("task_id")[known]])
    tid = np.concatenate([worker_tid(c.core[order]), bare_tids(c)[known]])
    begin = np.concatenate([c.bar[order], bare.begin[known]])
    end = np.concatenate([c.end[order], bare.end[known]])
    judged = np.concatenate([c.judged[order], bare.begin[known]])
    is_bare = np.arange(len(ids)) >= len(order)
    by_id = np.argsort(ids, kind="stable")
    # Few edges end at a task without executions.
    is_end = np.zeros(len(c.ids), np.bool_)
    of_bare = distinct(bare.table.values("task_id")[known])
    at = np.searchsorted(c.ids, of_bare)
    is_end[at[np.append(c.ids, 0)[at] == of_bare]] = True
    pred, succ = c.edges
    touching = np.flatnonzero(is_end[pred] | is_end[succ])
    spans = []
    for tasks in (pred, succ):
        wanted = c.ids[tasks[touching]]
        first, last = (np.searchsorted(ids[by_id], wanted, side=side) for side in ("left", "right"))
        spans.append((first, last - first))
    p, s = (by_id[at] for at in _pairs(*spans))
    drawn = is_bare[p] | is_bare[s]
    p, s = p[drawn], s[drawn]
    name = np.where(end[p] > judged[s], _VIOLATION, _DEPENDENCY)
    yield Arrows(name, Ends(WORKER_VIEW, tid[p], begin[p]), Ends(WORKER_VIEW, tid[s], begin[s]))


def _joined_rows(content: Content, anchors: tuple[Int64, Int64]) -> tuple[Int64, Int64]:
    """Return the pairs of rows that the edges join: anchors of producers and of consumers, int64 [pairs] each."""
    order, bounds = anchors
    sizes = np.diff(bounds)
    p, s = _pairs(*((bounds[task], sizes[task]) for task in _edges(content)))
    return order[p], order[s]


def _anchor_rows(content: Content, *, by_dispatch: bool = False, joined: bool = False) -> tuple[Int64, Int64]:
    """Return the rows that have arrows by task, and where each task begins among them, int64 [tasks + 1].

    Of a task of many blocks it is the first on each type of core.

    Args:
        content: the trace.
        by_dispatch: the first is the one that was dispatched first; else the one whose bar begins first.
        joined: only of the rows with dispatch and finish.
    """
    c = content
    joined = joined and not c.is_joined.all()
    found = c.anchors.get((by_dispatch, joined))
    if found is None:
        found = c.anchors[by_dispatch, joined] = _found_anchors(c, c.dispatch if by_dispatch else c.bar, joined=joined)
    return found


def _found_anchors(content: Content, begin: Floats, *, joined: bool) -> tuple[Int64, Int64]:
    task = content.task
    order = by_group(task, begin)
    if joined:
        order = order[content.is_joined[order]]
    sorted_task = task[order]
    blocks = content.tasks.integers("blocks")[order]
    firsts = np.flatnonzero(np.diff(sorted_task, prepend=-1))
    has_many = np.repeat(blocks[firsts] > 1, np.diff(np.append(firsts, len(order))))
    kept = ~has_many
    many = np.flatnonzero(has_many)
    if len(many):
        # Rows of a task stand together, so of each pair of task and type the first is found among few rows.
        kind = content.tasks.table.codes("core_type")[order[many]].astype(np.int64)
        key = sorted_task[many].astype(np.int64) * (int(kind.max()) + 1) + kind
        _, first = np.unique(key, return_index=True)
        kept[many[first]] = True
    order = order[kept]
    count = np.bincount(sorted_task[kept], minlength=len(content.known))
    return order, np.concatenate([[0], np.cumsum(count)])


def _completes(content: Content) -> Iterator[Arrows]:
    """Join tasks with the pass that retired them, and that pass with what it made ready."""
    c, phases = content, content.phases
    last, first = _extremes(c)
    retired = _retired(c, last)
    yield from _seen(c, last, retired)
    # The latest of the passes that retired producers made the consumer ready.
    thread = phases.integers("thread")
    pred, succ = _edges(c)
    known = (retired[pred] >= 0) & (first[succ] >= 0)
    if c.is_chip:
        # Only where all producers were retired by such passes.
        producer, consumer = (c.place[end] for end in c.edges)
        unknown = (producer < 0) | (np.append(retired, -1)[producer] < 0)
        held = np.zeros(len(c.known) + 1, np.bool_)
        held[consumer[unknown]] = True
        known &= ~held[succ]
    phase, succ = retired[pred[known]], succ[known]
    order = np.lexsort((-thread[phase], -phases.end[phase], succ))
    order = order[np.flatnonzero(np.diff(succ[order], prepend=-1))]
    phase, rows = phase[order], first[succ[order]]
    target = c.thread_of[c.core[rows]]
    drawn = (target >= 0) & (c.dispatch[rows] >= phases.end[phase])
    phase, rows, target = phase[drawn], rows[drawn], target[drawn]
    yield Arrows(
        np.full(len(rows), _READY),
        Ends(SCHEDULER, scheduler_tid(c, thread[phase]), phases.end[phase] - _INSIDE_US),
        Ends(SCHEDULER, scheduler_tid(c, target), c.dispatch[rows]),
    )


def _seen(content: Content, last: Int64, retired: Int64) -> Iterator[Arrows]:
    """Join executions with the pass that retired their task."""
    c = content
    if not c.is_chip:
        tasks = np.flatnonzero(retired >= 0)
        rows = last[tasks]
        yield Arrows(
            np.full(len(rows), _COMPLETE),
            Ends(WORKER_VIEW, worker_tid(c.core[rows]), c.end[rows] - _INSIDE_US),
            Ends(SCHEDULER, scheduler_tid(c, c.thread_of[c.core[rows]]), c.phases.begin[retired[tasks]]),
        )
        return
    # From the executions that have arrows, in both views, to where the last one of the task was seen.
    for by_dispatch, pid, tid, end in (
        (False, WORKER_VIEW, worker_tid(c.core), c.end),
        (True, SCHEDULER_VIEW, c.flight_tid, c.finish),
    ):
        rows, _ = _anchor_rows(c, by_dispatch=by_dispatch, joined=True)
        rows = rows[retired[c.task[rows]] >= 0]
        to = last[c.task[rows]]
        yield Arrows(
            np.full(len(rows), _COMPLETE),
            Ends(pid, tid[rows], end[rows] - _INSIDE_US),
            Ends(SCHEDULER, scheduler_tid(c, c.thread_of[c.core[to]]), c.finish[to]),
        )


def _extremes(content: Content) -> tuple[Int64, Int64]:
    """Return the row of each task that finished last, and the one dispatched first, int64 [tasks], -1 without."""
    rows = np.flatnonzero(content.is_joined)
    task = content.task[rows]
    found = []
    for stamps, largest in ((content.finish[rows], True), (content.dispatch[rows], False)):
        if len(stamps) and not float(stamps.min()) >= 0:
            first = np.lexsort((-stamps if largest else stamps, task))
            first = first[np.flatnonzero(np.diff(task[first], prepend=-1))]
            row = np.full(len(content.known), -1, np.int64)
            row[task[first]] = first
        else:
            _, row = extreme(task, (stamps + 0.0).view(np.int64), len(content.known), largest=largest)
        found.append(np.append(rows, -1)[row])
    return found[0], found[1]


def _retired(content: Content, last: Int64) -> Int64:
    """Return the complete phase that retired each task, int64 [tasks], -1 where none can be told."""
    found = np.full(len(content.known), -1, np.int64)
    tasks = np.flatnonzero(last >= 0)
    found[tasks] = passes(content, last[tasks])
    return found


def _dispatches(content: Content) -> Iterator[Arrows]:
    """Join each dispatch with its execution, in both views, and with the submit of its task."""
    c = content
    rows = np.flatnonzero(c.is_joined)
    rows = rows[np.argsort(c.dispatch[rows], kind="stable")]
    rows = rows[c.thread_of[c.core[rows]] >= 0]
    lane = Ends(SCHEDULER, scheduler_tid(c, c.thread_of[c.core[rows]]), c.dispatch[rows])
    names = np.full(len(rows), _DISPATCH)
    yield Arrows(names, lane, Ends(WORKER_VIEW, worker_tid(c.core[rows]), c.start[rows]))
    yield Arrows(names, lane, Ends(SCHEDULER_VIEW, c.flight_tid[rows], c.dispatch[rows]))
    if not len(c.submits) or (c.on_host and not c.is_chip):
        return
    # The first submit of a task and its dispatches: with the newer naming all of them.
    ids = c.submits.table.values("task_id")
    first = np.arange(len(ids))
    if not bool((ids[1:] > ids[:-1]).all()):
        ids, first = np.unique(ids, return_index=True)
    of_task = c.task[rows]
    at = np.arange(len(rows)) if c.is_chip else np.unique(of_task, return_index=True)[1]
    place = np.minimum(np.searchsorted(ids, c.known[of_task[at]]), len(ids) - 1)
    has_submit = ids[place] == c.known[of_task[at]]
    submit, at = first[place[has_submit]], at[has_submit]
    yield Arrows(
        np.full(len(at), _SUBMIT),
        Ends(ORCHESTRATOR, 4000 + c.submits.integers("orchestrator")[submit], c.submits.end[submit]),
        Ends(SCHEDULER, lane.tid[at], lane.ts[at]),
    )
