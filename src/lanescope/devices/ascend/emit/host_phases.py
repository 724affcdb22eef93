"""What the host did around a run: building arenas and graphs, submitting, copying; and the spans of its log."""

from __future__ import annotations

import numpy as np

from lanescope.devices.ascend.emit.context import TimelineBuilder
from lanescope.devices.ascend.emit.schedulers import host_quality
from lanescope.devices.ascend.formats.host_phases import SUBMITTING, HostPhases
from lanescope.trace import Column


def draw_host_phases(canvas: TimelineBuilder) -> dict[int, int]:
    """Draw them on one lane a thread, at the times of the host's clock.

    Returns:
        The slices of the spans of a log, by their rows there.
    """
    rows = canvas.told.host_phases
    if rows is None or not len(rows):
        return {}
    builder = canvas.builder
    track = canvas.host_thread_lanes(rows.process, rows.thread)
    kinds, code = rows.kinds
    first = canvas.slices(
        track,
        rows.begin,
        rows.end,
        canvas.told.times.host,
        name=builder.names.codes(kinds)[code],
        category="host",
        quality=host_quality(canvas),
    )
    is_task = rows.are(*SUBMITTING)
    slices = first + np.arange(len(rows))
    is_phase = rows.span < 0
    phases = rows.take(is_phase)
    is_task = is_task[is_phase]
    if len(phases):
        builder.append(
            "ascend_host_phases",
            slice_id=slices[is_phase],
            process=phases.process,
            thread=phases.thread,
            run=phases.run,
            task_id=Column.array(phases.detail, valid=is_task),
            detail=Column.array(phases.detail.astype(np.int64), valid=~is_task),
        )
    return dict(zip(rows.span[~is_phase].tolist(), slices[~is_phase].tolist(), strict=True))


def account_host_phases(canvas: TimelineBuilder, rows: HostPhases, size: int) -> None:
    """Add the accounting of the bytes, and of the records that never reached the file."""
    builder, part = canvas.builder, canvas.input_of["host_phases"]
    canvas.account_lines("host_phases", rows.tally, size)
    builder.add_stat("ascend_unknown_key", rows.unknown_keys, input_id=part)
    builder.add_stat("ascend_unknown_value", rows.unknown_values, input_id=part)
    if rows.dropped:
        builder.add_stat("ascend_host_phases_dropped", rows.dropped, input_id=part)
        builder.add_dropped(
            unit="host_phase_records record", unit_bytes=40, recorded=len(rows), dropped=rows.dropped, input_id=part
        )
