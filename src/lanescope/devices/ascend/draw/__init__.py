"""An interpreted capture as a trace: lanes, slices, counters, flows, details, stats, accounting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lanescope.devices.ascend import schema
from lanescope.devices.ascend.draw import arrows, control, cores, counters, missing, sums
from lanescope.devices.ascend.draw.canvas import Canvas, Style
from lanescope.devices.ascend.interpret import Interpreter
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
    builder = TraceBuilder(told.times.base, details=schema.TABLES, stats=schema.STATS)
    canvas = Canvas(told, builder, capture, options)
    runs = cores.draw_executions(canvas)
    setups = cores.draw_setups(canvas, runs)
    cores.draw_flights(canvas)
    work = control.draw_phases(canvas)
    submits = control.draw_submits(canvas)
    control.draw_uploads(canvas)
    bare = control.draw_bare_tasks(canvas, work, submits)
    counters.draw_queues(canvas)
    counters.draw_overhead(canvas)
    arrows.draw_edges(canvas, runs, setups, bare)
    sums.add_sums(canvas)
    missing.draw_coverage(canvas)
    missing.draw_gaps(canvas)
    missing.note(canvas)
    missing.account(canvas)
    missing.keep_records(canvas)
    return builder.finish()
