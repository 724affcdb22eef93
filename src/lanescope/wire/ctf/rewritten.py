"""Traces of the kind that this package reads, rewritten by another program: the same events in another layout."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.wire import tsdl
from lanescope.wire.ctf.metadata import INTEGER, LATEST_NS, SEQUENCE, TEXT, CtfError, EventClass, Field, Metadata
from lanescope.wire.ctf.streams import PACKET, U8, U64, Events

_SAME = ("offset", "begin", "end", "discarded", "sequence", "first_event", "events", "cut")
_CONTEXT = "stream.packet.context:"


class RewrittenReader:
    """Reads streams as ``Reader`` does, whatever their layout.

    Args:
        text: the description.

    Raises:
        CtfError: the trace has other kinds of fields, several streams, or no clock of nanoseconds.

    Attributes:
        about: what the description says.
    """

    def __init__(self, text: bytes) -> None:
        try:
            described = tsdl.describe(tsdl.metadata_text(text))
            self._reader = tsdl.Reader(described)
        except tsdl.TsdlError as error:
            raise CtfError(str(error)) from None
        if len(described.streams) != 1 or len(described.clocks) != 1:
            raise CtfError("several kinds of streams, or clocks")
        clock = next(iter(described.clocks.values()))
        if clock.frequency != 1_000_000_000:
            raise CtfError("unsupported clock frequency: expected 1 GHz")
        if not 0 <= clock.origin_ns < LATEST_NS:
            raise CtfError("clock offset out of range")
        self._rows = {kind.id: row for row, (_, kind) in enumerate(self._reader.events)}
        if max(self._rows, default=0) >= 1 << 16:
            raise CtfError("event numbers above 65535")
        events = {kind.id: EventClass(kind.id, kind.name, _fields(kind.fields)) for _, kind in self._reader.events}
        self.about = Metadata(described.uuid or bytes(16), dict(described.environment), clock.origin_ns, (), (), events)
        self._walks: dict[int, tsdl.Walk] = {}

    def read(self, data: U8) -> Events:
        """Walk a stream, uint8 [bytes]."""
        walk = self._reader.read(data)
        packets = np.zeros((len(walk.packets), len(PACKET)), np.uint64)
        for name in _SAME:
            packets[:, PACKET.index(name)] = walk.packet(name)
        for name in ("size", "content", "lost"):
            packets[:, PACKET.index(name)] = (walk.packet(name) + np.uint64(7)) // np.uint64(8)
        self._of_packets(walk, packets)
        ids = np.array([kind.id for _, kind in self._reader.events], np.uint16)
        events = Events(
            data,
            packets,
            walk.losses,
            ids[walk.kinds],
            walk.times,
            walk.places // np.uint64(8),
            walk.decoded,
            walk.padding,
            walk.lost,
        )
        self._walks[id(data)] = walk
        return events

    def _of_packets(self, walk: tsdl.Walk, packets: U64) -> None:
        """Fill in thread and state of each packet, which its events name."""
        names = self._reader.context_names(0)
        first = walk.packet("first_event").astype(np.int64)
        filled = np.flatnonzero(walk.packet("events") > 0)
        for name in ("thread", "complete"):
            if _CONTEXT + name in names:
                column = self._reader.contexts(walk, 0, first[filled], [_CONTEXT + name])[_CONTEXT + name]
                packets[filled, PACKET.index(name)] = column.values

    def columns(self, events: Events, number: int, rows: npt.NDArray[np.int64]) -> dict[str, U64]:
        """Return the fields of events of one kind, as ``Reader.columns`` does."""
        walk, found = self._walks[id(events.data)], {}
        for name, column in self._reader.columns(walk, self._rows[number], rows).items():
            root, _, field = name.partition(":")
            if root != "event.fields":
                continue
            kind, values = column.leaf.kind, column.values
            if isinstance(kind, tsdl.Integer):
                found[field] = np.stack([values, np.zeros_like(values)])
                continue
            begin = values // np.uint64(8) if isinstance(kind, tsdl.Array) else values
            found[field] = np.stack([begin, np.maximum(column.extents, np.uint64(1)) - np.uint64(1)])
        return found


def _fields(kind: tsdl.Struct | None) -> tuple[Field, ...]:
    found = []
    for written, member in kind.fields if kind else ():
        name = written.removeprefix("_")
        match member:
            case tsdl.Integer() if member.size in (8, 16, 32, 64):
                labels = {first: label for label, first, last in member.labels or () if first == last}
                found.append(Field(name, INTEGER, member.size // 8, member.signed, labels))
            case tsdl.Text():
                found.append(Field(name, TEXT))
            case tsdl.Array(element=tsdl.Integer(size=8 | 16 | 32 | 64) as element):
                found.append(Field(name, SEQUENCE, element.size // 8, element.signed))
            case _:
                raise CtfError(f"unsupported type of field {name!r}")
    return tuple(found)
