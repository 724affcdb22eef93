"""Executions on the cores: their slices and details, setups and waits before them, and the way there and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.emit.context import (
    ESTIMATED,
    EXACT,
    RecordSlices,
    TimelineBuilder,
    below_resolution,
    chosen,
    counted,
    ids_from,
    some,
)
from lanescope.devices.ascend.interpret import attribution, task_kinds
from lanescope.devices.ascend.interpret import graph as graphs
from lanescope.devices.ascend.interpret import names as naming
from lanescope.trace import Column, Flag
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]


def draw_executions(canvas: TimelineBuilder) -> RecordSlices:
    """Draw the executions and tell their details."""
    told, runs = canvas.told, canvas.told.runs
    track = canvas.lane("core")[runs.core] if len(runs) else np.empty(0, np.int64)
    flags = below_resolution(runs.end - runs.start)
    flags[told.lost.after[told.lost.after >= 0]] |= np.uint32(Flag.AFTER_GAP)
    flags[canvas.steps.suspect] |= np.uint32(Flag.CLOCK_SUSPECT)
    codes = canvas.builder.names.codes(told.run_names)
    first = canvas.slices(
        track,
        runs.start,
        runs.end,
        told.times.device,
        flags=flags,
        name=codes[told.name_of] if len(runs) else codes,
        category="kernel",
    )
    drawn = RecordSlices(track, first, runs.start, runs.end, told.times.device)
    if len(runs):
        _details(canvas, drawn)
    return drawn


def draw_setups(canvas: TimelineBuilder, drawn: RecordSlices) -> None:
    """Draw what a core did before it started: waiting for producers, then setting up; less than a tick is nothing."""
    told, runs = canvas.told, canvas.told.runs
    setup, gate = runs.setup, runs.gate
    waits = np.flatnonzero(gate > 0)
    if len(waits):
        told.problems.append(("ascend_gate_wait", len(waits), None))
    if not canvas.style.is_full:
        return
    rows = np.flatnonzero(setup > 0)
    estimated = gate[rows] > 0
    canvas.slices(
        drawn.track[rows],
        (runs.start - setup)[rows],
        runs.start[rows],
        told.times.device,
        flags=below_resolution(setup[rows]) | _suspect(canvas, rows),
        name="setup",
        category="setup",
        quality=np.where(estimated, np.int32(ESTIMATED), np.int32(EXACT)) if estimated.any() else "exact",
    )
    canvas.slices(
        drawn.track[waits],
        runs.receive[waits],
        runs.ready[waits],
        told.times.device,
        flags=_suspect(canvas, waits),
        name="gate_wait",
        category="gate",
        quality="estimated",
    )


def _suspect(canvas: TimelineBuilder, rows: Int64) -> npt.NDArray[np.uint32]:
    return np.where(canvas.steps.suspect[rows], np.uint32(Flag.CLOCK_SUSPECT), np.uint32(0))


def draw_flights(canvas: TimelineBuilder) -> Int64:
    """Draw the dispatches as the schedulers see them: from the dispatch to the moment they saw the end.

    Returns:
        int64 [executions], the slices of the flights, -1 without one.
    """
    told, runs = canvas.told, canvas.told.runs
    flight_of = np.full(len(runs), -1, np.int64)
    if "flight" not in canvas.lanes:
        return flight_of
    rows = chosen(runs.dispatch > 0)
    # A name of their own: sums by name keep executions and flights apart.
    codes = canvas.builder.names.codes([f"{name} in flight" for name in told.run_names])
    first = canvas.slices(
        canvas.lane("flight")[runs.core[rows]],
        runs.dispatch[rows],
        runs.finish[rows],
        told.times.device,
        name=codes[told.name_of[rows]],
        category="flight",
    )
    count, ids, core, counter = counted(rows, len(runs)), runs.task_id, runs.core, runs.counter
    flight_of[rows] = np.arange(first, first + count)
    canvas.builder.append(
        "ascend_in_flight",
        slice_id=ids_from(first, count),
        task_id=Column.derived(count, lambda: ids[rows]),
        core=Column.derived(count, lambda: core[rows].astype(np.int32)),
        reg_task_id=Column.derived(
            count,
            lambda: counter[rows].astype(np.uint32),
            valid=None if runs.has_counter else np.zeros(count, np.bool_),
        ),
    )
    return flight_of


def _details(canvas: TimelineBuilder, drawn: RecordSlices) -> None:
    """Add the details: most are made when they are asked for, from columns that are there anyway."""
    told, builder, runs, times = canvas.told, canvas.builder, canvas.told.runs, canvas.told.times
    count, rows = len(runs), told.streams[0].section
    task, core, counter, block, function = runs.task, runs.core, runs.counter, runs.block, runs.function

    def stamp(name: str, cycles: Int64) -> dict[str, Column]:
        valid = some(cycles > 0)

        def ts() -> Int64:
            if valid is None:
                return times.device(cycles)
            return np.where(valid, times.device(np.where(valid, cycles, times.base_cycles)), 0)

        return {
            f"{name}_ts": Column.derived(count, ts, valid=valid),
            f"{name}_ticks": Column.array(cycles, valid=valid),
        }

    def length(name: str, valid: Mask | None, make: Callable[[], Int64]) -> dict[str, Column]:
        return {
            f"{name}_ns": Column.derived(count, lambda: times.length(make()), valid=valid),
            f"{name}_ticks": Column.derived(count, make, valid=valid),
        }

    def span(name: str, begin: Int64, end: Int64, without: Int64 | None = None) -> dict[str, Column]:
        valid = some((begin > 0) & (end > 0))

        def cycles() -> Int64:
            passed = end - begin if without is None else end - begin - without
            return passed if valid is None else np.where(valid, passed, 0)

        return length(name, valid, cycles)

    texts, name_of, task_texts = np.array(told.run_names, object), told.name_of, told.task_texts
    at_receive, gate = runs.judged_at_receive, runs.gate
    blocks = told.graph.blocks
    types, type_of = builder.dictionary("ascend_tasks", "core_type").codes(graphs.CORE_TYPES), runs.core_type
    sources = builder.dictionary("ascend_tasks", "effective_start_source").codes(("receive", "start"))
    builder.append(
        "ascend_tasks",
        slice_id=ids_from(drawn.first, count),
        task_id=runs.task_id,
        task=task_texts.column(task),
        label=Column.derived(count, lambda: naming.labels(texts[name_of], task_texts.all[task])),
        function=Column.derived(count, lambda: np.maximum(function, 0), valid=some(function >= 0)),
        core=Column.derived(count, lambda: core.astype(np.int32)),
        core_type=Column.derived(
            count, lambda: types[type_of], dictionary=builder.dictionary("ascend_tasks", "core_type")
        ),
        run_epoch=_if_any(rows["run_epoch"], rows.has("run_epoch")),
        rank=canvas.rank,
        reg_task_id=Column.derived(count, lambda: counter.astype(np.uint32), valid=some(rows.has("reg_task_id"))),
        block=Column.derived(count, lambda: block.astype(np.int32)),
        blocks=Column.derived(count, lambda: blocks[task], valid=some((blocks > 0)[task])),
        **_fans(canvas),
        **stamp("dispatch", runs.dispatch),
        **stamp("receive", runs.receive),
        **stamp("finish", runs.finish),
        **stamp("ready", runs.ready),
        ready_quality=_ready_quality(canvas),
        **span("duration", runs.start, runs.end),
        **span("propagation", runs.dispatch, runs.receive),
        **span("local_setup", runs.receive, runs.start, gate),
        **length("gate_wait", some(runs.receive > 0), lambda: gate),
        **span("head", runs.dispatch, runs.start),
        **span("tail", runs.end, runs.finish),
        effective_start_ts=Column.derived(count, partial(times.device, runs.judged)),
        effective_start_source=Column.derived(
            count,
            lambda: np.where(at_receive, sources[0], sources[1]),
            dictionary=builder.dictionary("ascend_tasks", "effective_start_source"),
        ),
        may_be_staged=runs.may_be_staged,
    )


def _if_any(values: Int64, valid: Mask) -> Column | None:
    """Return a column of values where they were recorded; None: nowhere."""
    return Column.array(values, valid=some(valid)) if valid.any() else None


def _ready_quality(canvas: TimelineBuilder) -> Column:
    """Return whether each ready stamp is exact."""
    told, dictionary = canvas.told, canvas.builder.dictionary("ascend_tasks", "ready_quality")
    graph, task, ready, last = told.graph, told.runs.task, told.runs.ready, canvas.kept.ends.last
    exact, estimated = dictionary.codes(("exact", "estimated"))
    kind = told.kinds.kind

    def codes() -> npt.NDArray[np.int32]:
        is_exact = attribution.ready_is_exact(graph, last >= 0, kind == task_kinds.ALLOC)
        found: npt.NDArray[np.int32] = np.where(is_exact[task] | (ready == 0), exact, estimated)
        return found

    return Column.derived(len(task), codes, valid=some(ready > 0), dictionary=dictionary)


def _fans(canvas: TimelineBuilder) -> dict[str, Column]:
    """Return how many tasks each execution waits for, and how many wait for it, counted when they are asked for."""
    graph, task = canvas.told.graph, canvas.told.runs.task
    tasks = len(graph)
    is_known = graph.is_listed.copy()
    is_known[graph.pred] = is_known[graph.succ] = True
    valid = some(is_known[task])

    def fan(ends: Int64) -> Column:
        return Column.derived(len(task), lambda: np.bincount(ends, minlength=tasks).astype(np.int32)[task], valid=valid)

    return {"fan_in": fan(graph.succ), "fan_out": fan(graph.pred)}
