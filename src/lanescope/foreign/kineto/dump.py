"""Lines for people who look at a file event by event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lanescope.foreign.kineto.decoder import KinetoDecoder, event_table
from lanescope.source import Capture
from lanescope.wire.trace_events import TraceEvents

#: No more of an event is shown.
_LONGEST = 400


def _events(capture: Capture, options: Mapping[str, Any]) -> TraceEvents:
    decoder = KinetoDecoder(capture, options)
    for chunk in capture.main.chunks():
        decoder.feed(chunk)
    return decoder.events()


def packet_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the text of each event and of each place that cannot be read, with its offset."""
    events, reader = _events(capture, options), capture.main.reader()
    places = [*zip(events.begin.tolist(), events.size.tolist(), strict=True)]
    lost = {run.begin: run.end - run.begin for run in events.lost}
    for offset, size in sorted([*places, *lost.items()]):
        text = " ".join(reader.at(offset, min(size, _LONGEST)).tobytes().decode(errors="replace").split())
        yield f"{offset:#010x}  {'lost' if offset in lost else 'event'}  {text}"


def record_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of each event, in the order of the file."""
    for row in event_table(_events(capture, options)).rows():
        shown = {key: value for key, value in row.items() if key not in ("offset", "size") and value not in (None, "")}
        fields = " ".join(f"{key}={value}" for key, value in shown.items())
        yield f"{row['offset']:#010x}  {fields}"
