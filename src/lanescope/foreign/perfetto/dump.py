"""What ``dump`` prints: packets of the file, and the events in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lanescope.foreign.perfetto.formats import layout, messages
from lanescope.foreign.perfetto.formats.packets import PacketReader
from lanescope.source import Capture

_TAG = 0x0A
#: Bytes of a packet that are shown.
_SHOWN = 24
_TYPES = {1: "start", 2: "end", 3: "instant", 5: "state", 6: "slice"}


def packet_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line per packet of the file: its fields, with the size of those that are messages."""
    data = bytes(capture.main.read().data)
    at = 0
    while at < len(data):
        end = _end(data, at)
        if end is None:
            yield _line(at, data[at : at + _SHOWN], "unread", {"bytes": len(data) - at})
            return
        start, behind = end
        try:
            fields = {
                layout.FIELDS.get(number, layout.SOURCES.get(number, f"field_{number}")): (
                    f"{len(value)}_bytes" if isinstance(value, bytes) else value
                )
                for number, value in messages.fields(data[start:behind])
            }
        except messages.BadMessageError:
            fields = {"invalid": f"{behind - start}_bytes"}
        yield _line(at, data[at : min(behind, at + _SHOWN)], "packet", fields)
        at = behind


def _line(offset: int, raw: bytes, name: str, fields: Mapping[str, Any]) -> str:
    return f"{offset:#010x}  {raw.hex(' ')}  {name}  {' '.join(f'{key}={value}' for key, value in fields.items())}"


def _end(data: bytes, at: int) -> tuple[int, int] | None:
    """Return where the content of a packet begins and ends; None where none is whole."""
    if data[at] != _TAG:
        return None
    size = shift = 0
    place = at + 1
    while place < len(data) and shift < 70:
        byte = data[place]
        place += 1
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (place, place + size) if size <= len(data) - place else None
        shift += 7
    return None


def record_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line per event, in the order of the file, with its time on its own clock."""
    reader = PacketReader(keeps_events=True)
    for data in capture.main.chunks():
        reader.feed(data)
    found = reader.finish()
    events = found.tables["events"]
    columns = zip(
        *(events[name].tolist() for name in ("ts", "clock", "track", "type", "name", "category")), strict=True
    )
    for number, (ts, clock, track, kind, name, category) in enumerate(columns):
        fields: dict[str, Any] = {"ts": ts, "clock": clock, "track": track}
        if name >= 0:
            fields["name"] = found.names[name]
        if category >= 0:
            fields["category"] = found.categories[category]
        yield f"{number:>8}  {_TYPES[kind]:7}  {' '.join(f'{key}={value}' for key, value in fields.items())}"
