"""Messages that are few: descriptors of tracks, processes and threads, statistics of the recorder.

Source: google/perfetto, protos/perfetto/trace/ (messages).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

#: Fields of a packet that hold them; ``NOTES``: what lanescope says of its own traces.
NOTES, TRACE_STATS, PROCESS, THREAD, TRACK = 5, 35, 43, 44, 60


class BadMessageError(ValueError):
    """Bytes that are not a message."""


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message: number, and an integer or bytes.

    Raises:
        BadMessageError: the bytes are not a message.
    """
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        value: int | bytes
        if not number:
            raise BadMessageError
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 2:
            size, at = _varint(data, at)
            if size > len(data) - at:
                raise BadMessageError
            value, at = data[at : at + size], at + size
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            if size > len(data) - at:
                raise BadMessageError
            value, at = int.from_bytes(data[at : at + size], "little"), at + size
        else:
            raise BadMessageError
        yield number, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
    raise BadMessageError


def _text(value: int | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _signed(value: int | bytes) -> int:
    """Return an int32 or int64 field."""
    number = value if isinstance(value, int) else 0
    return number - (1 << 64) if number >> 63 else number


def _number(value: int | bytes) -> int:
    return value if isinstance(value, int) else 0


def _body(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise BadMessageError
    return value


@dataclass(slots=True)
class Counter:
    """A counter: its unit, what its values are multiplied by, and whether they are steps."""

    unit: str = ""
    multiplier: int = 1
    is_incremental: bool = False


#: Source: protos/perfetto/trace/track_event/counter_descriptor.proto; the names are those of our own tables.
_UNITS = {1: "ns", 2: "1", 3: "bytes"}
_TYPE_UNITS = {1: "ns", 2: "1"}


def counter(data: bytes) -> Counter:
    """Read a ``CounterDescriptor``."""
    found = Counter()
    for number, value in fields(data):
        if number == 1 and not found.unit:
            found.unit = _TYPE_UNITS.get(_number(value), "")
        elif number == 3 and not found.unit:
            found.unit = _UNITS.get(_number(value), "")
        elif number == 6:
            found.unit = _text(value)
        elif number == 4:
            found.multiplier = _signed(value) or 1
        elif number == 5:
            found.is_incremental = bool(value)
    return found


@dataclass(slots=True)
class Descriptor:
    """What a packet tells of a track."""

    uuid: int = 0
    parent: int = 0
    name: str = ""
    description: str = ""
    pid: int | None = None
    tid: int | None = None
    process_name: str = ""
    thread_name: str = ""
    counter: Counter | None = None
    ordering: int = 0
    rank: int = 0
    merging: int = 0
    merge_key: Any = None
    has_thread: bool = False
    sort_index: int | None = None
    labels: list[str] = field(default_factory=list)

    def texts(self) -> tuple[str, ...]:
        """Return all names and other texts."""
        return (self.name, self.description, self.process_name, self.thread_name, *self.labels)


def is_damaged(text: str) -> bool:
    """Return whether a text has NUL, or had bytes that are not UTF-8."""
    return "\0" in text or "\ufffd" in text


def process(data: bytes, found: Descriptor) -> Descriptor:
    """Read a ``ProcessDescriptor``."""
    for number, value in fields(data):
        if number == 1:
            found.pid = _signed(value)
        elif number == 6 or (number == 2 and not found.process_name):
            found.process_name = _text(value)
        elif number == 3:
            found.sort_index = _signed(value)
        elif number == 8:
            found.labels.append(_text(value))
    return found


def thread(data: bytes, found: Descriptor) -> Descriptor:
    """Read a ``ThreadDescriptor``."""
    found.has_thread = True
    found.pid, found.tid = found.pid or 0, 0
    for number, value in fields(data):
        if number == 1:
            found.pid = _signed(value)
        elif number == 2:
            found.tid = _signed(value)
        elif number == 5:
            found.thread_name = _text(value)
        elif number == 3:
            found.sort_index = _signed(value)
    return found


def track(data: bytes) -> Descriptor:
    """Read a ``TrackDescriptor``.

    Raises:
        BadMessageError: it is not one.
    """
    found = Descriptor()
    for number, value in fields(data):
        if number == 1:
            found.uuid = _number(value)
        elif number == 5:
            found.parent = _number(value)
        elif number in (2, 10, 13):
            found.name = _text(value)
        elif number == 14:
            found.description = _text(value)
        elif number == 3:
            process(_body(value), found)
        elif number == 4:
            thread(_body(value), found)
        elif number == 8:
            found.counter = counter(_body(value))
        elif number == 11:
            found.ordering = _number(value)
        elif number == 12:
            found.rank = _signed(value)
        elif number == 15:
            found.merging = _number(value)
        elif number in (16, 17):
            found.merge_key = _text(value) if isinstance(value, bytes) else value
    return found


#: Counts of ``TraceStats.BufferStats`` that are lost packets or chunks of them, by field.
_LOST_IN_BUFFERS = {3: "chunks overwritten", 18: "chunks discarded", 19: "packets lost", 22: "packets too large"}


def lost_packets(data: bytes) -> int:
    """Return how many packets, or chunks of packets, the recorder counts as lost.

    Raises:
        BadMessageError: it is not a ``TraceStats``.
    """
    lost = 0
    for number, value in fields(data):
        if number == 1:
            lost += sum(_number(count) for at, count in fields(_body(value)) if at in _LOST_IN_BUFFERS)
        elif number in (8, 9, 10):  # chunks and patches discarded, invalid packets
            lost += _number(value)
    return min(lost, (1 << 62))
