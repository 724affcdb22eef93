"""Lines for people who look at a file event by event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from lanescope.foreign.chrome.decoder import event_table
from lanescope.foreign.chrome.formats.events import FileText, read_events
from lanescope.source import Capture

#: Longer events are shown in part.
_LONGEST = 1 << 12


def packet_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each event as it stands in the file, with its offset."""
    text = FileText(capture.main)
    events = read_events(text)
    size = np.minimum(events.size, _LONGEST).astype(np.int64)
    for offset, length, shown in zip(
        events.offset.tolist(), events.size.tolist(), text.at(events.offset, size), strict=True
    ):
        rest = f" ... ({length:,} bytes)" if length > _LONGEST else ""
        yield f"{offset:#010x}  {shown.decode(errors='replace')}{rest}"


def record_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each event with what is read of it."""
    for row in event_table(FileText(capture.main)).rows():
        fields = " ".join(
            f"{name}={value}"
            for name, value in row.items()
            if name not in ("offset", "phase") and value not in (None, "")
        )
        yield f"{row['offset']:#010x}  {row['phase'] or '?'}  {fields}"
