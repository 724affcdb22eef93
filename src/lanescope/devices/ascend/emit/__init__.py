"""An interpreted capture as a trace: lanes, slices, counters, flows, details, stats, accounting.

More than 14 modules: one for each kind of rows that a capture and its sidecar files become.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lanescope.devices.ascend import schema
from lanescope.devices.ascend.emit import (
    aggregates,
    counters,
    coverage,
    executions,
    flows,
    gaps,
    graph_tasks,
    pipeline,
    schedulers,
)
from lanescope.devices.ascend.emit.context import Style, TimelineBuilder
from lanescope.devices.ascend.interpret.resolve import Interpreter
from lanescope.trace import Trace, TraceBuilder

if TYPE_CHECKING:
    from lanescope.source import Capture

__all__ = ["Style", "draw"]


def draw(told: Interpreter, capture: Capture, options: Mapping[str, Any]) -> Trace:
    """Return the trace of an interpreted capture.

    Args:
        told: what its records mean.
        capture: its files, for names and sizes.
        options: decode options that were given, for the record and for what is drawn.
    """
    if told.parts.has_more:
        from lanescope.devices.ascend.emit import sidecar_files
    builder = TraceBuilder(told.times.base, details=schema.TABLES, stats=schema.STATS)
    canvas = TimelineBuilder(told, builder, capture, options)
    runs = executions.draw_executions(canvas)
    executions.draw_setups(canvas, runs)
    if told.parts.has_more:
        sidecar_files.add_counters(canvas, runs)
    flights = executions.draw_flights(canvas)
    work = schedulers.draw_phases(canvas)
    submits = schedulers.draw_submits(canvas)
    schedulers.draw_stages(canvas)
    schedulers.draw_uploads(canvas)
    if told.parts.has_more:
        sidecar_files.draw_host(canvas)
    bare = schedulers.draw_bare_tasks(canvas, work, submits)
    graph_tasks.draw_graphs(canvas)
    counters.draw_queues(canvas)
    counters.draw_overhead(canvas)
    flows.draw_edges(canvas, runs, bare)
    pipeline.draw_pipeline(canvas, runs, flights, work, submits)
    graph_tasks.add_graph_tasks(canvas)
    aggregates.add_sums(canvas)
    coverage.draw_coverage(canvas)
    gaps.draw_gaps(canvas)
    gaps.note(canvas)
    gaps.account(canvas)
    gaps.keep_records(canvas)
    return builder.finish()
