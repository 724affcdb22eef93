"""Streams of events: where the parts of packets lie, and a reader that walks them natively."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lanescope.wire.ctf.metadata import CtfError, Field, Metadata

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U64 = npt.NDArray[np.uint64]

MAGIC = 0xC1FC1FC1
#: Columns of ``Events.packets``: bytes, ns on the trace's clock, counts.
PACKET = (
    "offset",
    "size",
    "content",
    "begin",
    "end",
    "discarded",
    "sequence",
    "thread",
    "complete",
    "first_event",
    "events",
    "lost",
    "cut",
)
#: Parts of a packet's header and context that are looked at: name in the description, bytes, whether it may be missing.
_PACKET_PARTS = (
    ("magic", 4, False),
    ("uuid", 16, False),
    ("timestamp_begin", 8, True),
    ("timestamp_end", 8, True),
    ("content_size", 8, True),
    ("packet_size", 8, True),
    ("events_discarded", 8, True),
    ("packet_seq_num", 8, True),
    ("thread", 4, True),
    ("complete", 4, True),
)
#: Offset of a part that headers lack.
ABSENT = 0xFFFF


@dataclass(frozen=True, slots=True)
class Layout:
    """Offsets of header fields from the start of their header; ``ABSENT`` for missing fields."""

    packet_header: int
    parts: Mapping[str, int]
    event_header: int
    id: int
    id_size: int
    time: int
    time_size: int

    @classmethod
    def of(cls, about: Metadata) -> Layout:
        """Find the parts.

        Raises:
            CtfError: one is missing, or has another size.
        """
        packet, packet_size = _offsets(about.packet)
        parts = {}
        for name, size, may_lack in _PACKET_PARTS:
            offset, found = packet.get(name, (ABSENT, size))
            if found != size or (offset == ABSENT and not may_lack):
                raise CtfError(f"packets have no {name} of {size} bytes")
            parts[name] = offset
        event, event_size = _offsets(about.header)
        if "id" not in event or "timestamp" not in event or event["id"][1] > 2 or not event_size:
            raise CtfError("events have no number of one or two bytes, or no time")
        (id_, id_size), (time, time_size) = event["id"], event["timestamp"]
        return cls(packet_size, parts, event_size, id_, id_size, time, time_size)

    def cells(self) -> U16:
        """Return it as the native core takes it, uint16 [16]."""
        parts = [self.parts[name] for name, _, _ in _PACKET_PARTS]
        event = (self.event_header, self.id, self.id_size, self.time, self.time_size)
        return np.array([self.packet_header, *parts, *event], np.uint16)


def _offsets(fields: Sequence[Field]) -> tuple[dict[str, tuple[int, int]], int]:
    found, at = {}, 0
    for item in fields:
        found[item.name] = at, item.size * item.count
        at += item.size * item.count
    return found, at


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """The events of a stream.

    Attributes:
        data: the stream, uint8 [bytes].
        packets: uint64 [packets, len(PACKET)].
        losses: uint64 [losses, 2], offset and size of bytes between packets that are none.
        classes: uint16 [events], number of the kind of each event.
        times: uint64 [events], ns on the trace's clock.
        payloads: uint64 [events], offset of its fields.
        decoded: bytes of headers and events.
        padding: bytes of padding.
        lost: bytes that mean nothing; the three add up to the size.
    """

    data: U8
    packets: U64
    losses: U64
    classes: U16
    times: U64
    payloads: U64
    decoded: int
    padding: int
    lost: int

    def packet(self, column: str) -> U64:
        """Return a column of ``packets``."""
        return self.packets[:, PACKET.index(column)]

    def drop_last_packet(self) -> Events:
        """Return them without the last packet, which stands elsewhere as well: its bytes become padding."""
        row = dict(zip(PACKET, self.packets[-1].tolist(), strict=True))
        kept = row["first_event"]
        used = row["content"] - row["lost"]
        return Events(
            self.data,
            self.packets[:-1],
            self.losses,
            self.classes[:kept],
            self.times[:kept],
            self.payloads[:kept],
            self.decoded - used,
            self.padding + used + row["lost"],
            self.lost - row["lost"],
        )


#: Stands for a number that no event has.
_UNREADABLE = [(3, 1, 0)]


class Reader:
    """Reads streams of a trace natively.

    Args:
        about: the description of the trace.

    Raises:
        CtfError: headers lack a part that is needed, or a kind of event is beyond what is read.
    """

    def __init__(self, about: Metadata) -> None:
        self.about = about
        self.layout = Layout.of(about)
        rows: list[tuple[int, int, int]] = []
        first = [0]
        for number in range(max(about.events, default=-1) + 1):
            known = about.events.get(number)
            rows += _UNREADABLE if known is None else _native(known.fields)
            first.append(len(rows))
        self._fields = np.array(rows, np.uint16).reshape(-1, 3)
        self._first = np.array(first, np.uint32)

    def read(self, data: U8) -> Events:
        """Walk a stream, uint8 [bytes]."""
        from lanescope._native import core

        about = self.layout.cells(), np.frombuffer(self.about.uuid, np.uint8), self._fields, self._first
        packets, events, losses, decoded, padding, lost = core.ctf_count(data, *about)
        made = Events(
            data,
            np.empty((packets, len(PACKET)), np.uint64),
            np.empty((losses, 2), np.uint64),
            np.empty(events, np.uint16),
            np.empty(events, np.uint64),
            np.empty(events, np.uint64),
            decoded,
            padding,
            lost,
        )
        core.ctf_scan(data, *about, made.packets, made.losses, made.classes, made.times, made.payloads)
        return made

    def columns(self, events: Events, number: int, rows: npt.NDArray[np.int64]) -> dict[str, U64]:
        """Return the fields of events of one kind.

        Args:
            events: as ``read`` returned them.
            number: of the kind.
            rows: which events, int64 [n]; all of that kind.

        Returns:
            By name uint64 [2, n]: the values of an integer (two's complement) and zeros, or for a text and a sequence
            offset and length.
        """
        from lanescope._native import core

        fields = self.about.events[number].fields
        values = np.zeros((2 * len(fields), len(rows)), np.uint64)
        core.ctf_columns(
            events.data, np.array(_native(fields), np.uint16).reshape(-1, 3), events.payloads[rows], values
        )
        return {item.name: values[2 * at : 2 * at + 2] for at, item in enumerate(fields)}


def _native(fields: Sequence[Field]) -> list[tuple[int, int, int]]:
    return [(item.kind, item.size, item.length) for item in fields]


def texts(data: U8, columns: U64) -> list[str]:
    """Return the texts of a text field; bytes that are no UTF-8 are replaced.

    Args:
        data: the stream.
        columns: uint64 [2, n], offset and length as ``Reader.columns`` returns them.
    """
    known: dict[bytes, str] = {}
    found = []
    for at, length in zip(*columns.tolist(), strict=True):
        raw = data[at : at + length].tobytes()
        text = known.get(raw)
        if text is None:
            text = known[raw] = raw.decode(errors="replace")
        found.append(text)
    return found


def sequences(data: U8, columns: U64, size: int) -> tuple[npt.NDArray[np.int64], U64]:
    """Return the elements of all sequences of a field, end to end.

    Args:
        data: the stream.
        columns: uint64 [2, n], offset and length as ``Reader.columns`` returns them.
        size: bytes of an element.

    Returns:
        int64 [m], which of the n sequences an element is from; uint64 [m], the elements.
    """
    count = columns[1].astype(np.int64)
    owner = np.repeat(np.arange(len(count)), count)
    begin = np.cumsum(count) - count
    place = np.arange(len(owner)) - begin[owner]
    at = columns[0].astype(np.int64)[owner] + place * size
    made = np.zeros((len(owner), 8), np.uint8)
    for byte in range(size):
        made[:, byte] = data[at + byte]
    return owner, made.view(np.uint64).reshape(-1)
