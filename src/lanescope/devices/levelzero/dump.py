"""Lines for people who look at a trace record by record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import merge
from typing import Any

from lanescope.devices.levelzero.formats import ctf_reader
from lanescope.devices.levelzero.formats.event_model import Events
from lanescope.devices.levelzero.text_decoder import LevelZeroDecoder
from lanescope.errors import InputError
from lanescope.source import Capture
from lanescope.trace import Table
from lanescope.wire import ctf

#: Longer lines are shown in pieces.
_LONGEST = 1 << 20


def text_record_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each row of the event model of a text, in the order of the stream."""
    decoder = LevelZeroDecoder(capture, options)
    for chunk in capture.main.chunks():
        decoder.feed(chunk)
    yield from _event_lines(decoder.events())


def text_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a text, with their offsets."""
    offset, rest = 0, b""
    for chunk in capture.main.chunks():
        *lines, rest = (rest + bytes(chunk)).split(b"\n")
        for line in lines:
            yield f"{offset:#010x}  {line.decode(errors='replace')}"
            offset += len(line) + 1
        if len(rest) > _LONGEST:
            yield f"{offset:#010x}  {rest.decode(errors='replace')}"
            offset, rest = offset + len(rest), b""
    if rest:
        yield f"{offset:#010x}  {rest.decode(errors='replace')}"


def _event_lines(events: Events) -> Iterator[str]:
    """Yield a line for each row of the event model, in its order."""

    def of(name: str, table: Table) -> Iterator[tuple[int, str]]:
        for row in table.rows():
            fields = " ".join(f"{key}={value}" for key, value in row.items() if key != "seq" and value is not None)
            yield row["seq"], f"{row['seq']:>8}  {name:12}  {fields}"

    tables = [of(name, table) for name, table in events.items() if "seq" in table.spec.names]
    for _, line in merge(*tables):
        yield line


def ctf_packet_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each packet of a recording, and one for each of its events as it stands."""
    recording = ctf_reader.read(capture)
    for stream in recording.streams:
        reader = recording.processes[stream.process].reader
        if not isinstance(reader, ctf.Reader):
            raise InputError(
                f"{stream.source.path}: rewritten by another program", hint="use babeltrace2 to inspect it"
            )
        yield from _packets(stream, reader)


def ctf_record_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each row of the event model of a recording, in the order of time."""
    yield from _event_lines(ctf_reader.read(capture).events)


def _packets(stream: ctf_reader.Stream, reader: ctf.Reader) -> Iterator[str]:
    found, reference = stream.events, ctf.ReferenceReader(reader.about)
    data = found.data.tobytes()
    yield f"{stream.part}: {len(data)} bytes, {len(found.packets)} packets, {len(found.classes)} events"
    for row in found.packets.tolist():
        packet = dict(zip(ctf.PACKET, row, strict=True))
        state = "complete" if packet["complete"] else "open"
        yield (
            f"{packet['offset']:#010x}  packet {packet['sequence']} of thread {packet['thread']}: "
            f"{packet['size']} bytes, {packet['content']} used, {packet['events']} events, "
            f"{packet['discarded']} discarded, {state}"
        )
        for event in range(packet["first_event"], packet["first_event"] + packet["events"]):
            number, payload = int(found.classes[event]), int(found.payloads[event])
            known = reader.about.events[number]
            values = reference.values(data, number, payload) or []
            fields = " ".join(
                f"{item.name}={_field_text(item, value)}" for item, value in zip(known.fields, values, strict=True)
            )
            offset = payload - reader.layout.event_header
            yield f"{offset:#010x}  {int(found.times[event])}  {known.name}  {fields}".rstrip()
    for offset, size in found.losses.tolist():
        yield f"{offset:#010x}  {size} bytes are no packet"


def _field_text(item: ctf.Field, value: int | bytes | list[int]) -> str:
    if isinstance(value, bytes):
        return repr(value.decode(errors="replace"))
    return item.labels.get(value, str(value)) if isinstance(value, int) else str(value)
