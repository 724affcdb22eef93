"""Lines for people who look at a file event by event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lanescope.foreign.kineto.decoder import event_table, read_events
from lanescope.source import Capture

#: No more of an event is shown.
_LONGEST = 400


def packet_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the text of each event and of each place that cannot be read, with its offset."""
    reader = capture.main.reader()
    events = read_events(reader, capture.main.size)
    places = [*zip(events.begin.tolist(), events.size.tolist(), strict=True)]
    lost = {run.begin: run.end - run.begin for run in events.lost}
    for offset, size in sorted([*places, *lost.items()]):
        text = " ".join(reader.at(offset, min(size, _LONGEST)).tobytes().decode(errors="replace").split())
        yield f"{offset:#010x}  {'lost' if offset in lost else 'event'}  {text}"


def record_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of each event, in the order of the file."""
    for row in event_table(read_events(capture.main.reader(), capture.main.size)).rows():
        shown = {key: value for key, value in row.items() if key not in ("offset", "size") and value not in (None, "")}
        fields = " ".join(f"{key}={value}" for key, value in shown.items())
        yield f"{row['offset']:#010x}  {fields}"
