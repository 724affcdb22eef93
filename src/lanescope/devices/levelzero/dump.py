"""Lines for people who look at a trace record by record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import merge
from typing import Any

from lanescope.devices.base import STAGES
from lanescope.devices.levelzero.ctf_decoder import RecordingDecoder
from lanescope.devices.levelzero.formats import ctf_reader
from lanescope.devices.levelzero.formats.event_model import Events
from lanescope.devices.levelzero.text_decoder import LevelZeroDecoder
from lanescope.errors import UsageError
from lanescope.source import Capture
from lanescope.trace import Table, Trace
from lanescope.wire import ctf

#: Longer lines are shown in pieces.
_LONGEST = 1 << 20


def dump(capture: Capture, stage: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a stage.

    Args:
        capture: the opened capture.
        stage: ``packet``: the lines of the text, with their offsets; ``record``: the rows of the event model in the
            order of the stream; ``row``: the calls and operations of the timeline.
        options: decode options.
    """
    if stage not in STAGES:
        raise UsageError(f"there is no stage {stage!r}", hint="there are " + ", ".join(STAGES))
    if stage == "packet":
        yield from _lines(capture)
        return
    decoder = LevelZeroDecoder(capture, options)
    for chunk in capture.main.chunks():
        decoder.feed(chunk)
    if stage == "record":
        yield from records(decoder.events())
    else:
        yield from rows(decoder.finish()[0])


def _lines(capture: Capture) -> Iterator[str]:
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


def records(events: Events) -> Iterator[str]:
    """Yield a line for each row of the event model, in its order."""

    def of(name: str, table: Table) -> Iterator[tuple[int, str]]:
        for row in table.rows():
            fields = " ".join(f"{key}={value}" for key, value in row.items() if key != "seq" and value is not None)
            yield row["seq"], f"{row['seq']:>8}  {name:12}  {fields}"

    tables = [of(name, table) for name, table in events.items() if "seq" in table.spec.names]
    for _, line in merge(*tables):
        yield line


def rows(trace: Trace) -> Iterator[str]:
    """Yield a line for each slice of the timeline, in order of time, and for each stat."""
    names = trace.tracks.values("name").tolist()
    slices = sorted(trace.slices.rows(), key=lambda row: (row["ts"], row["id"]))
    for row in slices:
        length = "open" if row["dur"] is None else row["dur"]
        yield f"{row['ts']:>14}  {length:>12}  {names[row['track_id']]}  {row['name']}  {row['quality']}"
    for row in trace.stats.rows():
        yield f"{row['name']}  {row['severity']}  {row['count']}"


def dump_recording(capture: Capture, stage: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a stage.

    Args:
        capture: the opened capture.
        stage: ``packet``: packets and their events as they stand; ``record``: the rows of the event model in the order
            of time; ``row``: the calls and operations of the timeline.
        options: decode options.
    """
    if stage not in STAGES:
        raise UsageError(f"there is no stage {stage!r}", hint="there are " + ", ".join(STAGES))
    decoder = RecordingDecoder(capture, options)
    if stage == "row":
        yield from rows(decoder.finish()[0])
        return
    recording = ctf_reader.read(capture)
    if stage == "record":
        yield from records(recording.events)
        return
    for stream in recording.streams:
        yield from _packets(stream, recording.processes[stream.process].reader)


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
