"""What the host did around a run: building arenas and graphs, submitting, copying."""

from __future__ import annotations

import numpy as np

from lanescope.devices.ascend.emit.context import TimelineBuilder
from lanescope.devices.ascend.emit.schedulers import host_quality
from lanescope.devices.ascend.formats.host_phases import SUBMITTING, HostPhases
from lanescope.trace import Column


def draw_host_phases(canvas: TimelineBuilder) -> None:
    """Draw them on one lane a thread, at the times of the host's clock."""
    rows = canvas.told.host_phases
    if rows is None or not len(rows):
        return
    builder = canvas.builder
    track = canvas.host_thread_lanes(rows.process, rows.thread)
    kinds, code = np.unique(rows.phase.astype(str), return_inverse=True)
    first = canvas.slices(
        track,
        rows.begin,
        rows.end,
        canvas.told.times.host,
        name=builder.names.codes(kinds.tolist())[code.reshape(-1)],
        category="host",
        quality=host_quality(canvas),
    )
    is_task = np.isin(kinds, SUBMITTING)[code.reshape(-1)]
    builder.append(
        "ascend_host_phases",
        slice_id=np.arange(first, first + len(rows)),
        process=rows.process,
        thread=rows.thread,
        run=rows.run,
        task_id=Column.array(rows.detail, valid=is_task),
        detail=Column.array(rows.detail.astype(np.int64), valid=~is_task),
    )


def account_host_phases(canvas: TimelineBuilder, rows: HostPhases, size: int) -> None:
    """Add the accounting of the bytes, and of the records that never reached the file."""
    builder, part = canvas.builder, canvas.input_of["host_phases"]
    builder.add_bytes(
        decoded=rows.good_bytes, padding=size - rows.good_bytes - rows.bad_bytes, lost=rows.bad_bytes, input_id=part
    )
    builder.add_stat("ascend_invalid_row", rows.bad_lines, input_id=part, first_offset=rows.bad_first)
    if rows.dropped:
        builder.add_stat("ascend_host_phases_dropped", rows.dropped, input_id=part)
        builder.add_dropped(
            unit="host_phase_records record", unit_bytes=40, recorded=len(rows), dropped=rows.dropped, input_id=part
        )
