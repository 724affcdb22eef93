"""Arrows, as the peer's converter draws them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, pairwise

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.devices.ascend.export.swimlane.trace_view import (
    ORCHESTRATOR,
    SCHEDULER,
    SCHEDULER_VIEW,
    WORKER_VIEW,
    Content,
    scheduler_tid,
    worker_tid,
)

Int64 = npt.NDArray[np.int64]
#: Process, lane, microseconds.
Point = tuple[int, int, float]

#: An arrow leaves a bar so much before its end: exactly at the end it would belong to no bar.
_INSIDE_US = 0.01


def arrows(content: Content, numbers: count[int]) -> Iterator[str]:
    """Yield all arrows; ``numbers`` gives them their ids."""
    for name, src, dst in _all(content):
        number = next(numbers)
        pid, tid, ts = src
        yield f'{{"cat":"flow","id":{number},"name":"{name}","ph":"s","pid":{pid},"tid":{tid},"ts":{ts!r}}}'
        pid, tid, ts = dst
        yield f'{{"cat":"flow","id":{number},"name":"{name}","ph":"f","pid":{pid},"tid":{tid},"ts":{ts!r},"bp":"e"}}'


def _all(content: Content) -> Iterator[tuple[str, Point, Point]]:
    yield from _dependencies(content)
    yield from _completes(content)
    yield from _dispatches(content)


def _edges(content: Content) -> Iterator[tuple[int, int]]:
    """Yield the edges between tasks that ran, as indices of both."""
    edges = content.trace.details["ascend_edges"]
    for pred, succ in zip(edges.values("pred_task_id").tolist(), edges.values("succ_task_id").tolist(), strict=True):
        if pred in content.place and succ in content.place:
            yield content.place[pred], content.place[succ]


def _dependencies(content: Content) -> Iterator[tuple[str, Point, Point]]:
    c = content
    rows_of = _anchor_rows(c)
    for pred, succ in _edges(c):
        for p in rows_of[pred]:
            for s in rows_of[succ]:
                name = "hb_violation" if c.end[p] > c.judged[s] else "dependency"
                # The newer converter joins the begins of bars: an arrow backwards could not be drawn.
                begin, end = (c.bar[p], c.bar[s]) if c.is_chip else (c.end[p] - _INSIDE_US, c.receive[s])
                tids = worker_tid(c.core[p]), worker_tid(c.core[s])
                yield name, (WORKER_VIEW, tids[0], begin), (WORKER_VIEW, tids[1], end)
                if c.is_joined[p] and c.is_joined[s]:
                    begin = c.dispatch[p] if c.is_chip else c.finish[p] - _INSIDE_US
                    source = SCHEDULER_VIEW, c.flight_tid[p], begin
                    yield name, source, (SCHEDULER_VIEW, c.flight_tid[s], c.dispatch[s])


def _anchor_rows(content: Content) -> list[list[int]]:
    """Return the rows of each task that have arrows: of a task of many blocks the first of each function."""
    task = content.task
    order = np.lexsort((content.tasks.begin_at, task))
    bounds = np.searchsorted(task[order], np.arange(len(content.known) + 1)).tolist()
    blocks, listed = content.tasks.list("blocks"), order.tolist()
    found = []
    for first, last in pairwise(bounds):
        mine = listed[first:last]
        if blocks[mine[0]] > 1:
            firsts: dict[int, int] = {}
            for row in mine:
                firsts.setdefault(content.functions[row], row)
            mine = list(firsts.values())
        found.append(mine)
    return found


def _completes(content: Content) -> Iterator[tuple[str, Point, Point]]:
    """Join tasks with the pass that retired them, and that pass with what it made ready."""
    c, phases = content, content.phases
    last, first = _extremes(c)
    passes = _passes(c)
    retired: dict[int, int] = {}
    for task, row in last.items():
        thread = c.thread_of.get(c.core[row], -1)
        mine, ends = passes.get(thread, ([], np.empty(0)))
        at = int(np.searchsorted(ends, c.finish[row]))
        if at == len(mine):
            continue
        phase = retired[task] = mine[at]
        stamp = c.finish[row] if c.is_chip else phases.begin[phase]
        source = WORKER_VIEW, worker_tid(c.core[row]), c.end[row] - _INSIDE_US
        yield "complete", source, (SCHEDULER, scheduler_tid(c, thread), stamp)
    threads = phases.list("thread")
    latest: dict[int, int] = {}
    for pred, succ in _edges(c):
        done = retired.get(pred)
        if done is not None and succ in first:
            before = latest.get(succ)
            if before is None or (phases.end[done], threads[done]) > (phases.end[before], threads[before]):
                latest[succ] = done
    for task, phase in latest.items():
        row = first[task]
        thread = c.thread_of.get(c.core[row], -1)
        if thread >= 0 and c.dispatch[row] >= phases.end[phase]:
            source = SCHEDULER, scheduler_tid(c, threads[phase]), phases.end[phase] - _INSIDE_US
            yield "complete→ready", source, (SCHEDULER, scheduler_tid(c, thread), c.dispatch[row])


def _extremes(content: Content) -> tuple[dict[int, int], dict[int, int]]:
    """Return the row of each task that finished last, and the one that was dispatched first."""
    rows = np.flatnonzero(content.is_joined)
    task = content.task[rows]
    finish, dispatch = (np.array(values)[rows] for values in (content.finish, content.dispatch))
    late, early = rows[np.lexsort((-rows, finish))], rows[np.lexsort((-rows, -dispatch))]
    if not len(task):
        return {}, {}
    # Of several pairs with one key the last one stays.
    return (
        dict(zip(content.task[late].tolist(), late.tolist(), strict=True)),
        dict(zip(content.task[early].tolist(), early.tolist(), strict=True)),
    )


def _passes(content: Content) -> dict[int, tuple[list[int], npt.NDArray[np.float64]]]:
    """Return the complete phases of each thread by their ends, and those ends."""
    phases = content.phases
    complete = np.flatnonzero(np.array(phases.name, object) == "complete")
    thread = phases.table.values("thread").astype(np.int64)[complete]
    found = {}
    for number in distinct(thread).tolist():
        mine = complete[thread == number]
        mine = mine[np.argsort(phases.end_at[mine], kind="stable")]
        found[number] = mine.tolist(), phases.end_at[mine]
    return found


def _dispatches(content: Content) -> Iterator[tuple[str, Point, Point]]:
    c = content
    submitted: dict[int, tuple[int, float]] = {}
    if not c.on_host:
        rows = zip(c.submits.list("task_id"), c.submits.list("orchestrator"), c.submits.end, strict=True)
        for task_id, number, end in rows:
            submitted.setdefault(task_id, (4000 + number, end))
    by_dispatch = np.flatnonzero(c.is_joined)
    by_dispatch = by_dispatch[np.argsort(np.array(c.dispatch)[by_dispatch], kind="stable")]
    for row in by_dispatch.tolist():
        thread = c.thread_of.get(c.core[row])
        if thread is None:
            continue
        lane = SCHEDULER, scheduler_tid(c, thread), c.dispatch[row]
        yield "dispatch", lane, (WORKER_VIEW, worker_tid(c.core[row]), c.bar[row])
        yield "dispatch", lane, (SCHEDULER_VIEW, c.flight_tid[row], c.dispatch[row])
        # Only the first dispatch of a task has its submit.
        source = submitted.pop(c.ids[row], None)
        if source is not None:
            yield "submit→dispatch", (ORCHESTRATOR, *source), lane
