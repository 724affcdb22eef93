"""Executions on the cores: their slices and details, setups and waits before them, and the way there and back."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.emit.context import (
    ESTIMATED,
    EXACT,
    RecordSlices,
    TimelineBuilder,
    below_resolution,
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
    rows = np.flatnonzero(runs.dispatch > 0)
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
    count, ids = len(rows), runs.task_id
    flight_of[rows] = first + np.arange(count)
    canvas.builder.append(
        "ascend_in_flight",
        slice_id=Column.derived(count, lambda: first + np.arange(count)),
        task_id=Column.derived(count, lambda: ids[rows]),
        core=Column.derived(count, lambda: runs.core[rows].astype(np.int32)),
        reg_task_id=Column.derived(
            count,
            lambda: runs.counter[rows].astype(np.uint32),
            valid=None if runs.has_counter else np.zeros(count, np.bool_),
        ),
    )
    return flight_of


def _details(canvas: TimelineBuilder, drawn: RecordSlices) -> None:
    told, builder, runs, times = canvas.told, canvas.builder, canvas.told.runs, canvas.told.times
    count, rows = len(runs), told.streams[0].section

    def stamp(name: str, cycles: Int64) -> dict[str, Column]:
        valid = cycles > 0
        return {
            f"{name}_ts": Column.derived(
                count,
                lambda: np.where(valid, times.device(np.where(valid, cycles, times.base_cycles)), 0),
                valid=valid,
            ),
            f"{name}_ticks": Column.array(cycles, valid=valid),
        }

    def span(name: str, begin: Int64, end: Int64, take: Int64 | None = None) -> dict[str, Column]:
        valid = (begin > 0) & (end > 0)
        cycles = np.where(valid, end - begin if take is None else end - begin - take, 0)
        return {
            f"{name}_ns": Column.derived(count, lambda: times.length(cycles), valid=valid),
            f"{name}_ticks": Column.array(cycles, valid=valid),
        }

    texts = np.array(told.run_names, object)
    at_receive = runs.judged_at_receive
    quality = builder.dictionary("ascend_tasks", "ready_quality").codes(("exact", "estimated"))
    builder.append(
        "ascend_tasks",
        slice_id=Column.derived(count, lambda: drawn.ids),
        task_id=runs.task_id,
        task=Column.derived(count, lambda: told.task_texts[runs.task]),
        label=Column.derived(count, lambda: naming.labels(texts[told.name_of], told.task_texts[runs.task])),
        function=np.maximum(runs.function, 0),
        function_valid=runs.function >= 0,
        core=runs.core,
        core_type=builder.dictionary("ascend_tasks", "core_type").codes(graphs.CORE_TYPES)[runs.core_type],
        run_epoch=rows["run_epoch"],
        run_epoch_valid=rows.has("run_epoch"),
        rank=canvas.rank,
        reg_task_id=runs.counter,
        reg_task_id_valid=some(rows.has("reg_task_id")),
        block=runs.block,
        blocks=told.graph.blocks[runs.task],
        blocks_valid=told.graph.blocks[runs.task] > 0,
        **_fans(canvas),
        **stamp("dispatch", runs.dispatch),
        **stamp("receive", runs.receive),
        **stamp("finish", runs.finish),
        **stamp("ready", runs.ready),
        ready_quality=Column.derived(
            count,
            lambda: np.where(_ready_is_exact(canvas)[runs.task] | (runs.ready == 0), quality[0], quality[1]),
            valid=some(runs.ready > 0),
            dictionary=builder.dictionary("ascend_tasks", "ready_quality"),
        ),
        **span("duration", runs.start, runs.end),
        **span("propagation", runs.dispatch, runs.receive),
        **span("local_setup", runs.receive, runs.start, runs.gate),
        **span("gate_wait", runs.receive, runs.receive + runs.gate * (runs.receive > 0)),
        **span("head", runs.dispatch, runs.start),
        **span("tail", runs.end, runs.finish),
        effective_start_ts=Column.derived(count, partial(times.device, runs.judged)),
        effective_start_source=builder.dictionary("ascend_tasks", "effective_start_source").codes(("receive", "start"))[
            np.where(at_receive, 0, 1)
        ],
        may_be_staged=runs.may_be_staged,
    )


def _fans(canvas: TimelineBuilder) -> dict[str, Column]:
    """Return how many tasks each execution waits for, and how many wait for it, counted when they are asked for."""
    graph, task = canvas.told.graph, canvas.told.runs.task
    is_known = graph.is_listed.copy()
    is_known[graph.pred] = is_known[graph.succ] = True
    valid = some(is_known[task])

    def fan(ends: Int64) -> Column:
        return Column.derived(
            len(task), lambda: np.bincount(ends, minlength=len(graph)).astype(np.int32)[task], valid=valid
        )

    return {"fan_in": fan(graph.succ), "fan_out": fan(graph.pred)}


def _ready_is_exact(canvas: TimelineBuilder) -> Mask:
    told = canvas.told
    return attribution.ready_is_exact(told.graph, canvas.kept.ends.last >= 0, told.is_task_kind(task_kinds.ALLOC))
