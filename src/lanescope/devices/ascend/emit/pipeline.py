"""Arrows of the pipeline: from a submission to its dispatch, to the core, back to the scheduler, to the next dispatch.

Each joins two recorded stamps. Where a stamp is missing, or where the effect would precede its cause, there is no
arrow: stats report such stamps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.declaration import frozen_class
from lanescope.devices.ascend.emit.context import RecordSlices, TimelineBuilder, chosen, counted
from lanescope.devices.ascend.formats.layout import EARLY_KINDS
from lanescope.devices.ascend.formats.records import Section
from lanescope.devices.ascend.interpret import graph as graphs
from lanescope.devices.ascend.interpret.clock import Alignment
from lanescope.devices.ascend.interpret.resolve import thread_of_core
from lanescope.trace import Column

Int64 = npt.NDArray[np.int64]

#: Phases in which dispatch registers are written.
_PUBLISHING = ("dispatch", *EARLY_KINDS, "drain_publish")


def draw_pipeline(
    canvas: TimelineBuilder,
    runs: RecordSlices,
    flights: Int64,
    phases: RecordSlices | None,
    submits: list[tuple[Section, RecordSlices, int | None]],
) -> None:
    """Draw the arrows of kinds ``submit``, ``dispatch``, ``complete`` and ``ready``.

    Args:
        canvas: what to draw on.
        runs: the executions.
        flights: int64 [executions], slices of the dispatches as the schedulers see them, -1 without one.
        phases: those of the schedulers.
        submits: lists of submissions, their slices and their clocks.
    """
    told = canvas.told
    if not canvas.style.is_full or not len(told.runs):
        return
    places = _Places.of(canvas, flights, phases)
    _draw_dispatches(canvas, runs, places)
    for rows, drawn, clock in submits:
        # Without anchors the offset between host and device is unknown.
        if clock == canvas.clock or isinstance(told.times.alignment, Alignment):
            _draw_submits(canvas, rows, drawn, places)
    if phases is not None:
        _draw_completes(canvas, runs, phases, places)
        _draw_ready(canvas, phases, places)


@frozen_class
class _Places:
    """Where schedulers handled each execution.

    Attributes:
        slice_id, track: int64 [executions], the phase that dispatched it, or its flight where no phase is known; -1
            without either.
        seen: int64 [executions], row of the phase in which its end was seen, -1 where it is not known.
    """

    slice_id: Int64
    track: Int64
    seen: Int64

    @classmethod
    def of(cls, canvas: TimelineBuilder, flights: Int64, phases: RecordSlices | None) -> _Places:
        """Find them."""
        runs, told = canvas.told.runs, canvas.told
        slice_id, track = flights.copy(), np.full(len(runs), -1, np.int64)
        known = chosen(flights >= 0)
        track[known] = canvas.lane("flight")[runs.core[known]]
        seen = np.full(len(runs), -1, np.int64)
        threads = thread_of_core(told.records.metadata)
        if phases is None or not len(threads):
            return cls(slice_id, track, seen)
        thread = told.run_thread
        group = told.phases.group.astype(np.int64)
        at = _last(np.flatnonzero(told.is_kind(*_PUBLISHING)), group, phases.begin, thread, runs.dispatch)
        inside = np.flatnonzero((at >= 0) & (runs.dispatch > 0))
        found = at[inside]
        is_open = runs.dispatch[inside] <= phases.end[found]
        inside, found = inside[is_open], found[is_open]
        slice_id[inside], track[inside] = phases.ids_of(found), phases.track[found]
        # The first that ends at the finish stamp or behind it.
        seen = _last(np.flatnonzero(told.is_kind("complete")), group, -phases.end, thread, -runs.finish)
        # A pass that began behind that is not the one: its own record is missing.
        seen[(runs.finish <= 0) | (np.append(phases.begin, 0)[seen] > runs.finish)] = -1
        return cls(slice_id, track, seen)


def _last(rows: Int64, lane: Int64, value: Int64, wanted_lane: Int64, wanted: Int64) -> Int64:
    """Return the last of some rows of each wanted lane whose value does not exceed the wanted one, int64 [m], or -1."""
    lanes, values = lane[rows], value[rows]
    if not bool(((lanes[1:] > lanes[:-1]) | ((lanes[1:] == lanes[:-1]) & (values[1:] >= values[:-1]))).all()):
        order = np.lexsort((values, lanes))
        rows, lanes, values = rows[order], lanes[order], values[order]
    return np.append(rows, -1)[core.ascend_last_of_lane(lanes, values, wanted_lane, wanted)]


def _draw_dispatches(canvas: TimelineBuilder, runs: RecordSlices, places: _Places) -> None:
    told, to_ts = canvas.told.runs, canvas.told.times.device
    arrival = np.where(told.receive > 0, told.receive, told.start)
    dispatch = told.dispatch
    rows = chosen((places.slice_id >= 0) & (dispatch > 0) & (arrival >= dispatch))
    _draw(
        canvas,
        "dispatch",
        counted(rows, len(told)),
        (lambda: places.track[rows], lambda: to_ts(dispatch[rows]), lambda: places.slice_id[rows]),
        (lambda: runs.track[rows], lambda: to_ts(arrival[rows]), lambda: runs.ids_of(rows)),
    )


def _draw_submits(canvas: TimelineBuilder, rows: Section, drawn: RecordSlices, places: _Places) -> None:
    """Join the first submission of each task with the phases that dispatched it.

    A task may be dispatched before its submission returns: then the arrow begins at that moment.
    """
    told = canvas.told
    runs, task = told.runs, told.index(rows)
    first = np.full(len(told.graph), -1, np.int64)
    first[task[::-1]] = np.arange(len(rows))[::-1]
    # Nodes of a graph were submitted with it.
    owner = runs.task if told.graph_of is None else np.where(told.graph_of >= 0, told.graph_of, runs.task)
    submit = first[owner]
    # Blocks that one phase dispatched share an arrow.
    mine = core.ascend_first_of_pairs(submit, places.slice_id, runs.dispatch, len(rows))
    submit = submit[mine]
    dispatch = told.times.device(runs.dispatch[mine])
    ordered = chosen(drawn.to_ts(drawn.begin[submit]) <= dispatch)
    mine, submit, dispatch = mine[ordered], submit[ordered], dispatch[ordered]

    def left() -> Int64:
        return np.minimum(drawn.to_ts(np.maximum(drawn.begin, drawn.end)[submit]), dispatch)

    _draw(
        canvas,
        "submit",
        len(mine),
        (lambda: drawn.track[submit], left, lambda: drawn.ids_of(submit)),
        (lambda: places.track[mine], lambda: dispatch, lambda: places.slice_id[mine]),
    )


def _draw_completes(canvas: TimelineBuilder, runs: RecordSlices, phases: RecordSlices, places: _Places) -> None:
    told, to_ts = canvas.told.runs, canvas.told.times.device
    end, finish = told.end, told.finish
    rows = chosen((places.seen >= 0) & (end >= told.start) & (finish >= end))
    _draw(
        canvas,
        "complete",
        counted(rows, len(told)),
        (lambda: runs.track[rows], lambda: to_ts(end[rows]), lambda: runs.ids_of(rows)),
        (
            lambda: phases.track[places.seen[rows]],
            lambda: to_ts(finish[rows]),
            lambda: phases.ids_of(places.seen[rows]),
        ),
    )


def _draw_ready(canvas: TimelineBuilder, phases: RecordSlices, places: _Places) -> None:
    """Join the phase that retired the last producer of each task with the phase that dispatched the task first.

    Only where all producers are known to be retired by phases: else one that is not known may have been later.
    """
    graph, runs = canvas.told.graph, canvas.told.runs
    tasks = len(graph)
    rows = chosen(runs.finish > 0)
    _, last = graphs.extreme(runs.task[rows], runs.finish[rows], tasks, largest=True)
    retired = np.append(places.seen[rows], -1)[last]
    rows = chosen((runs.dispatch > 0) & (places.slice_id >= 0))
    _, run = graphs.extreme(runs.task[rows], runs.dispatch[rows], tasks, largest=False)
    if not isinstance(rows, slice):
        run = np.append(rows, -1)[run]
    retiring = retired[graph.pred]
    end = np.append(np.maximum(phases.begin, phases.end), 0)[retiring]
    ended, edge = graphs.extreme(graph.succ, end, tasks, largest=True)
    drawn = (edge >= 0) & (run >= 0)
    drawn[graph.succ[retiring < 0]] = False
    drawn &= np.append(runs.dispatch, 0)[run] >= ended
    mine = np.flatnonzero(drawn)
    phase, run, ended = retiring[edge[mine]], run[mine], ended[mine]
    to_ts, dispatch = canvas.told.times.device, runs.dispatch
    _draw(
        canvas,
        "ready",
        len(mine),
        (lambda: phases.track[phase], lambda: to_ts(ended), lambda: phases.ids_of(phase)),
        (lambda: places.track[run], lambda: to_ts(dispatch[run]), lambda: places.slice_id[run]),
    )


#: Lane, time and slice at one end of arrows: what returns int64 [n], at the first read.
_End = tuple[Callable[[], Int64], Callable[[], Int64], Callable[[], Int64]]


def _draw(canvas: TimelineBuilder, kind: str, count: int, source: _End, target: _End) -> None:
    """Append so many arrows: most readers need only some columns of their ends."""
    if not count:
        return
    ends = {
        f"{side}_{name}": Column.derived(count, make)
        for side, makers in (("src", source), ("dst", target))
        for name, make in zip(("track_id", "ts", "slice_id"), makers, strict=True)
    }
    canvas.builder.append("flows", kind=kind, **ends)
