"""What the producers of streams tell of them, against what arrived."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanescope.devices.ascend.emit.context import TimelineBuilder
from lanescope.devices.ascend.formats.layout import AICORE, AICPU, PHASES, RECORD_BYTES, SUBMITS
from lanescope.trace import Column

#: Streams of the device, and the lists that they become.
LIST_OF = {
    "aicore_task": AICORE.name,
    "aicpu_task": AICPU.name,
    "sched_phase": PHASES.name,
    "orch_phase": SUBMITS.name,
}


def add_stream_stats(canvas: TimelineBuilder) -> set[str]:
    """Reconcile each stream: collected + dropped == total; return the lists whose streams were told of."""
    records, builder = canvas.told.records, canvas.builder
    streams = records.streams
    # What is missing of a dump that is cut off may have been in any of its buffers.
    is_dump = records.accounts is not None
    known = [stream for stream in streams if stream.total is not None]
    for stream in known:
        total, dropped, collected = stream.total or 0, stream.dropped or 0, stream.collected
        silent = total - dropped - collected
        unit = LIST_OF[stream.kind]
        is_cut = records.cut is not None and (is_dump or unit in records.partial)
        for name, count in (
            ("ascend_dropped", dropped),
            ("ascend_records_cut" if is_cut else "ascend_unaccounted_records", silent),
            ("ascend_extra_records", -silent),
        ):
            builder.add_stat(name, max(count, 0), input_id=canvas.main)
        lost = dropped if is_cut else max(total - collected, dropped)
        if collected or lost:
            builder.add_dropped(
                unit=f"{unit} {stream.index} record",
                unit_bytes=RECORD_BYTES[unit],
                recorded=collected,
                dropped=lost,
                input_id=canvas.main,
            )
    if streams:
        builder.append(
            "ascend_record_streams",
            input_id=Column.constant(canvas.main, len(streams), np.int64),
            stream=[stream.kind for stream in streams],
            index=np.array([stream.index for stream in streams], np.int32),
            producer=[stream.producer for stream in streams],
            platform=[stream.platform for stream in streams],
            collected=np.array([stream.collected for stream in streams], np.int64),
            **_nullable("attempted", [stream.total for stream in streams]),
            **_nullable("dropped", [stream.dropped for stream in streams]),
            **_nullable("unaccounted", [stream.unaccounted for stream in streams]),
            **_nullable("is_truncated", [stream.is_truncated for stream in streams], np.bool_),
        )
    return {LIST_OF[stream.kind] for stream in known}


def _nullable(name: str, values: list[Any], dtype: Any = np.int64) -> dict[str, Any]:
    return {
        name: np.array([0 if value is None else value for value in values], dtype),
        f"{name}_valid": np.array([value is not None for value in values], np.bool_),
    }
