"""Arrows of the pipeline: from a submission to its dispatch, to the core, back to the scheduler, to the next dispatch.

Each joins two recorded stamps. Where a stamp is missing, or where the effect would precede its cause, there is no
arrow: stats report such stamps.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.common.intervals import last_before
from lanescope.devices.ascend.emit.context import RecordSlices, TimelineBuilder
from lanescope.devices.ascend.formats.layout import EARLY_KINDS
from lanescope.devices.ascend.formats.records import Section
from lanescope.devices.ascend.interpret import graph as graphs
from lanescope.devices.ascend.interpret.clock import Alignment
from lanescope.devices.ascend.interpret.resolve import thread_of_core
from lanescope.trace import Column
from lanescope.trace.declaration import frozen_class

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
        known = flights >= 0
        track[known] = canvas.lane("flight")[runs.core[known]]
        seen = np.full(len(runs), -1, np.int64)
        threads = thread_of_core(told.records.metadata)
        if phases is None or not len(threads):
            return cls(slice_id, track, seen)
        thread = np.append(threads, -1)[np.minimum(runs.core, len(threads))]
        group = told.phases.group.astype(np.int64)
        rows = np.flatnonzero(told.is_kind(*_PUBLISHING))
        rows = rows[np.lexsort((phases.begin[rows], group[rows]))]
        at = last_before(group[rows], phases.begin[rows], thread, runs.dispatch)
        inside = np.flatnonzero((at >= 0) & (runs.dispatch > 0))
        inside = inside[runs.dispatch[inside] <= phases.end[rows[at[inside]]]]
        found = rows[at[inside]]
        slice_id[inside], track[inside] = phases.ids[found], phases.track[found]
        # The first that ends at the finish stamp or behind it.
        rows = np.flatnonzero(told.is_kind("complete"))
        rows = rows[np.lexsort((-phases.end[rows], group[rows]))]
        at = last_before(group[rows], -phases.end[rows], thread, -runs.finish)
        inside = np.flatnonzero((at >= 0) & (runs.finish > 0))
        seen[inside] = rows[at[inside]]
        return cls(slice_id, track, seen)


def _draw_dispatches(canvas: TimelineBuilder, runs: RecordSlices, places: _Places) -> None:
    told = canvas.told.runs
    arrival = np.where(told.receive > 0, told.receive, told.start)
    rows = np.flatnonzero((places.slice_id >= 0) & (told.dispatch > 0) & (arrival >= told.dispatch))
    _draw(
        canvas,
        "dispatch",
        (places.track[rows], canvas.told.times.device(told.dispatch[rows]), places.slice_id[rows]),
        (runs.track[rows], canvas.told.times.device(arrival[rows]), runs.ids[rows]),
    )


def _draw_submits(canvas: TimelineBuilder, rows: Section, drawn: RecordSlices, places: _Places) -> None:
    """Join the first submission of each task with the phases that dispatched it.

    A task may be dispatched before its submission returns: then the arrow begins at that moment.
    """
    told = canvas.told
    runs, task = told.runs, told.index(rows)
    first = np.full(len(told.graph), -1, np.int64)
    first[task[::-1]] = np.arange(len(rows))[::-1]
    submit = first[runs.task]
    mine = np.flatnonzero((submit >= 0) & (places.slice_id >= 0) & (runs.dispatch > 0))
    mine = mine[np.lexsort((runs.dispatch[mine], places.slice_id[mine], submit[mine]))]
    # Blocks that one phase dispatched share an arrow.
    is_first = np.ones(len(mine), np.bool_)
    is_first[1:] = (np.diff(submit[mine]) != 0) | (np.diff(places.slice_id[mine]) != 0)
    mine = mine[is_first]
    submit = submit[mine]
    begin, end = drawn.to_ts(drawn.begin[submit]), drawn.to_ts(np.maximum(drawn.begin, drawn.end)[submit])
    dispatch = told.times.device(runs.dispatch[mine])
    ordered = begin <= dispatch
    mine, submit = mine[ordered], submit[ordered]
    _draw(
        canvas,
        "submit",
        (drawn.track[submit], np.minimum(end, dispatch)[ordered], drawn.ids[submit]),
        (places.track[mine], dispatch[ordered], places.slice_id[mine]),
    )


def _draw_completes(canvas: TimelineBuilder, runs: RecordSlices, phases: RecordSlices, places: _Places) -> None:
    told = canvas.told.runs
    rows = np.flatnonzero((places.seen >= 0) & (told.end >= told.start) & (told.finish >= told.end))
    phase, to_ts = places.seen[rows], canvas.told.times.device
    _draw(
        canvas,
        "complete",
        (runs.track[rows], to_ts(told.end[rows]), runs.ids[rows]),
        (phases.track[phase], to_ts(told.finish[rows]), phases.ids[phase]),
    )


def _draw_ready(canvas: TimelineBuilder, phases: RecordSlices, places: _Places) -> None:
    """Join the phase that retired the last producer of each task with the phase that dispatched the task first.

    Only where all producers are known to be retired by phases: else one that is not known may have been later.
    """
    graph, runs = canvas.told.graph, canvas.told.runs
    tasks = len(graph)
    rows = np.flatnonzero(runs.finish > 0)
    _, last = graphs.extreme(runs.task[rows], runs.finish[rows], tasks, largest=True)
    retired = np.where(last >= 0, np.append(places.seen[rows], -1)[last], -1)
    rows = np.flatnonzero((runs.dispatch > 0) & (places.slice_id >= 0))
    _, first = graphs.extreme(runs.task[rows], runs.dispatch[rows], tasks, largest=False)
    run = np.where(first >= 0, np.append(rows, -1)[first], -1)
    end = np.append(np.maximum(phases.begin, phases.end), 0)[retired[graph.pred]]
    ended, edge = graphs.extreme(graph.succ, end, tasks, largest=True)
    drawn = (edge >= 0) & (run >= 0)
    drawn[graph.succ[retired[graph.pred] < 0]] = False
    drawn &= np.append(runs.dispatch, 0)[run] >= ended
    mine = np.flatnonzero(drawn)
    phase, run = retired[graph.pred[edge[mine]]], run[mine]
    to_ts = canvas.told.times.device
    _draw(
        canvas,
        "ready",
        (phases.track[phase], to_ts(ended[mine]), phases.ids[phase]),
        (places.track[run], to_ts(runs.dispatch[run]), places.slice_id[run]),
    )


def _draw(
    canvas: TimelineBuilder, kind: str, source: tuple[Int64, Int64, Int64], target: tuple[Int64, Int64, Int64]
) -> None:
    """Append arrows; both ends are lane, time and slice, int64 [n] each."""
    if not len(source[0]):
        return
    canvas.builder.append(
        "flows",
        kind=kind,
        src_track_id=source[0],
        src_ts=source[1],
        dst_track_id=target[0],
        dst_ts=target[1],
        src_slice_id=Column.array(source[2]),
        dst_slice_id=Column.array(target[2]),
    )
