"""The reference reader: one bit after the other, in Python. Slow, and what the native core is compared with."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lanescope.wire.tsdl.program import ROOTS, event_parts
from lanescope.wire.tsdl.trace_kinds import Description, EventKind, StreamKind
from lanescope.wire.tsdl.types import (
    ELEMENT,
    MARK,
    Array,
    Integer,
    Path,
    Real,
    Struct,
    Text,
    Type,
    Variant,
    alignment,
    plain,
    without_marks,
)

MAGIC = 0xC1FC1FC1


class Damaged(ValueError):
    """Bytes that are not what the description says."""


@dataclass(slots=True)
class Packet:
    """One packet.

    Attributes:
        offset: its first byte.
        size: bits.
        content: bits of them that are used.
        stream: its kind.
        header: fields of its header.
        context: fields of its context.
        begin: value of the clock behind its context.
        events: its events.
        lost: bits at the end of its content that are no event.
    """

    offset: int
    size: int
    content: int
    stream: StreamKind
    header: dict[str, Any]
    context: dict[str, Any]
    begin: int
    events: list[Event] = field(default_factory=list)
    lost: int = 0


@dataclass(slots=True)
class Event:
    """One event.

    Attributes:
        kind: its kind.
        time: value of the clock.
        at: bit at which its header begins.
        roots: fields by root.
    """

    kind: EventKind
    time: int
    at: int
    roots: dict[str, Any]


class ReferenceReader:
    """Reads streams of one trace.

    Args:
        description: the trace.
    """

    def __init__(self, description: Description) -> None:
        self._about = description

    def packets(self, data: bytes) -> Iterator[Packet]:
        """Yield the packets of an undamaged stream.

        Raises:
            Damaged: at the first that is damaged.
        """
        at, clock = 0, _Clock()
        while at < len(data):
            reader = _Bits(data, 8 * at, 8 * len(data), self._about, clock)
            header = reader.root(ROOTS[0], self._about.packet_header)
            if reader.last.get("magic", MAGIC) != MAGIC:
                raise Damaged("magic")
            if self._about.uuid is not None and reader.uuid not in (None, self._about.uuid):
                raise Damaged("uuid")
            number = reader.last.get("stream_id", next(iter(self._about.streams), 0))
            stream = self._about.streams.get(number)
            if stream is None:
                raise Damaged("stream")
            context = reader.root(ROOTS[1], stream.packet_context)
            size, content = reader.last.get("packet_size"), reader.last.get("content_size")
            rest = 8 * (len(data) - at)
            size = size if size is not None else content if content is not None else rest
            content = size if content is None else content
            if content > size or size > rest or size % 8 or content < reader.at - 8 * at or not size:
                raise Damaged("size")
            packet = Packet(at, size, content, stream, header, context, clock.value)
            reader.limit = 8 * at + content
            while reader.at < reader.limit:
                packet.events.append(self._event(reader, stream, clock))
            yield packet
            at += size // 8

    def _event(self, reader: _Bits, stream: StreamKind, clock: _Clock) -> Event:
        reader.last.pop("id", None)
        at = reader.at
        head = reader.root(ROOTS[2], stream.event_header)
        number = reader.last.get("id", next(iter(stream.events), 0))
        kind = stream.events.get(number)
        if kind is None:
            raise Damaged("event")
        time = clock.value
        roots = {ROOTS[2]: head, **{root: reader.root(root, part) for root, part in event_parts(stream, kind)}}
        return Event(kind, time, at, roots)


class _Clock:
    """A clock whose values may be stored in fewer bits than it has."""

    def __init__(self) -> None:
        self.value = 0

    def move(self, value: int, size: int) -> None:
        value &= (1 << 64) - 1
        mask = (1 << size) - 1
        moved = self.value & ~mask | value
        if moved < self.value and size < 64:
            moved += mask + 1
        self.value = moved & (1 << 64) - 1


_NAMED = {
    ROOTS[0]: ("magic", "stream_id"),
    ROOTS[1]: ("content_size", "packet_size", "timestamp_end"),
    ROOTS[2]: ("id",),
}


class _Bits:
    def __init__(self, data: bytes, at: int, limit: int, about: Description, clock: _Clock) -> None:
        self._data, self._begin, self.at, self.limit = data, at, at, limit
        self._about, self._clock = about, clock
        self.last: dict[str, int] = {}
        self.uuid: bytes | None = None
        self._values: dict[Path, Any] = {}
        self._labels: dict[Path, Integer] = {}
        self._root = ""
        self._scopes: list[Path] = []

    def root(self, root: str, kind: Type | None) -> dict[str, Any]:
        self._root, self._scopes = root, []
        if kind is None:
            return {}
        found: dict[str, Any] = self._read(kind, (root,))
        return found

    def _align(self, bits: int) -> None:
        self.at += -(self.at - self._begin) % bits

    def _take(self, kind: Integer | Real) -> int:
        size, big = kind.size, kind.big
        if self.at + size > self.limit:
            raise Damaged("cut")
        begin, end = self.at // 8, (self.at + size + 7) // 8
        raw = self._data[begin:end]
        if self._about.big if big is None else big:
            value = int.from_bytes(raw, "big") >> (8 * end - self.at - size)
        else:
            value = int.from_bytes(raw, "little") >> (self.at % 8)
        self.at += size
        return value & (1 << size) - 1

    def _read(self, kind: Type, path: Path) -> Any:
        match kind:
            case Integer():
                return self._integer(kind, path)
            case Real():
                self._align(kind.align)
                value = self._take(kind)
                return struct.unpack("<f" if kind.size == 32 else "<d", value.to_bytes(kind.size // 8, "little"))[0]
            case Text():
                self._align(8)
                end = self._data.find(b"\0", self.at // 8, self.limit // 8)
                if end < 0:
                    raise Damaged("text")
                text = self._data[self.at // 8 : end]
                self.at = 8 * end + 8
                return text
            case Struct():
                self._align(alignment(kind))
                self._scopes.append(path)
                found = {plain(name): self._read(member, (*path, plain(name))) for name, member in kind.fields}
                self._scopes.pop()
                return found
            case Variant():
                return self._variant(kind, path)
            case Array():
                return self._array(kind, path)

    def _integer(self, kind: Integer, path: Path) -> int:
        self._align(kind.align)
        raw = self._take(kind)
        value = raw - (1 << kind.size) if kind.signed and raw >> (kind.size - 1) else raw
        meaning = path[-1].removeprefix(MARK) if kind.meaning is None else kind.meaning
        if kind.clock and not (meaning == "timestamp_end" and self._root == ROOTS[1]):
            self._clock.move(value, kind.size)
        self._values[path], self._labels[path] = value, kind
        if meaning in _NAMED.get(self._root, ()):
            self.last[meaning] = raw
        return value

    def _variant(self, kind: Variant, path: Path) -> Any:
        where = self._find(kind.tag)
        value = self._values[where]
        labels = (self._labels[where].labels or ()) if kind.choices is None else kind.choices
        options = {plain(name): option for name, option in kind.options}
        for label, first, last in labels:
            if first <= value <= last and plain(label) in options:
                found = self._read(options[plain(label)], (*path, MARK + plain(label)))
                return found if kind.is_optional else {plain(label): found}
        if kind.is_optional:
            return None
        raise Damaged("variant")

    def _array(self, kind: Array, path: Path) -> Any:
        count = kind.length if isinstance(kind.length, int) else self._values[self._find(kind.length)]
        self._align(alignment(kind))
        found: list[Any] = []
        before = -1
        for _ in range(count):
            if self.at == before and len(found) > 64:
                # Elements without bits are all the same; a number of 64 bits of them would never end.
                break
            before = self.at
            found.append(self._read(kind.element, (*path, ELEMENT)))
        if self._root == ROOTS[0] and (path[-1].removeprefix(MARK) if kind.meaning is None else kind.meaning) == "uuid":
            self.uuid = bytes(found)
        return bytes(found).split(b"\0")[0] if kind.is_text else found

    def _find(self, path: Path) -> Path:
        names = tuple(map(plain, path))
        for root in ROOTS:
            parts = tuple(root.split("."))
            if path[: len(parts)] == parts:
                for scope in reversed(self._scopes):
                    around = without_marks(scope)
                    if around == (root, *names[len(parts) :])[: len(around)]:
                        where = (*scope, *names[len(parts) + len(around) - 1 :])
                        if where in self._values:
                            return where
                where = (root, *names[len(parts) :])
                if where in self._values:
                    return where
        for scope in reversed(self._scopes):
            if (*scope, *names) in self._values:
                return (*scope, *names)
        for root in reversed(ROOTS):
            if (root, *names) in self._values:
                return (root, *names)
        raise Damaged("reference")
