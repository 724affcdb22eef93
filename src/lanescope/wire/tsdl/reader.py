"""The native reader of one trace: bytes of a stream -> packets and events as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lanescope.wire.tsdl.program import (
    CLOCK,
    INTEGER,
    MEANINGS,
    NONE,
    ROOTS,
    Compiler,
    Leaf,
    event_parts,
    rows_of,
    shortened,
)
from lanescope.wire.tsdl.trace_kinds import Description, EventKind, StreamKind
from lanescope.wire.tsdl.types import Array, Integer, Real, Struct, Text, plain

if TYPE_CHECKING:
    from lanescope._native import core

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]

#: Columns of a table of packets. Source: ``native/core/wire/ctf/program.hpp``.
PACKET = (
    "offset",
    "size",
    "content",
    "context",
    "begin",
    "end",
    "discarded",
    "sequence",
    "instance",
    "known",
    "stream",
    "first_event",
    "events",
    "lost",
    "unknown",
    "cut",
)
_MAGIC = 0xC1FC1FC1
#: Value of a carried field that an event lacks.
ABSENT = -(1 << 63)
_ALL = (1 << 64) - 1


@dataclass(slots=True, eq=False)
class Walk:
    """What a stream holds, or a window of it.

    Attributes:
        data: the stream, uint8 [bytes].
        packets: uint64 [packets, columns], columns as ``PACKET``.
        losses: uint64 [m, 2], offset and size of bytes between packets that are lost.
        kinds: uint32 [events], row of ``Reader.events``.
        times: uint64 [events], values of the clock.
        places: uint64 [events], bit at which its header begins.
        contexts: uint32 [events], row of ``carried``; of no event if nothing is carried.
        carried: int64 [m, n], each combination of values once, in the order in which they come; columns as
            ``Reader.carried``; ``ABSENT`` where events have no such field.
        decoded: bytes of packets and events.
        padding: bytes that are zeros between packets, or behind the content of one.
        lost: all others.
        end: byte at which reading goes on.
        clock: value of the clock there.
    """

    data: U8
    packets: U64
    losses: U64
    kinds: npt.NDArray[np.uint32]
    times: U64
    places: U64
    contexts: npt.NDArray[np.uint32]
    carried: Int64
    decoded: int
    padding: int
    lost: int
    end: int
    clock: int

    def packet(self, column: str) -> U64:
        """Return a column of the packets, uint64 [packets]."""
        found: U64 = self.packets[:, PACKET.index(column)]
        return found

    def has(self, meaning: str) -> npt.NDArray[np.bool_]:
        """Return which packets have a field of one of ``MEANINGS``, bool [packets]."""
        bit = np.uint64(1 << MEANINGS.index(meaning))
        found: npt.NDArray[np.bool_] = self.packet("known") & bit != 0
        return found

    def begins(self) -> U64:
        """Return the first bit of the packet of each event, uint64 [events]."""
        return np.repeat(self.packet("offset") * np.uint64(8), self.packet("events").astype(np.int64))


class Reader:
    """Reads the streams of one trace.

    Args:
        about: the trace.
        carried: integers of packets and of the context of all events that ``read`` takes along, if there are any.

    Raises:
        TsdlError: types that contradict each other: a tag that is not there, a length with a sign.

    Attributes:
        about: the trace.
        carried: those of the integers that are there.
        streams: its kinds of streams, in the order of ``Walk.packet("stream")``.
        events: stream and kind of each row that ``Walk.kinds`` names.
    """

    def __init__(self, about: Description, carried: Sequence[str] = ()) -> None:
        from lanescope._native import core

        self.about, self.carried = about, tuple(carried)
        self.streams: list[StreamKind] = list(about.streams.values())
        self.events: list[tuple[StreamKind, EventKind]] = []
        self._extractions: dict[tuple[int, tuple[str, ...]], Extraction] = {}
        compiler = Compiler(about)
        leaves: list[Leaf] = []
        entries = [compiler.program([(ROOTS[0], about.packet_header)])]
        for stream in self.streams:
            entries.append(compiler.program([(ROOTS[1], stream.packet_context)], leaves))
            entries.append(compiler.program([(ROOTS[2], stream.event_header)]))
            for kind in stream.events.values():
                self.events.append((stream, kind))
                entries.append(compiler.program(event_parts(stream, kind), leaves))
        wanted = self._carry(compiler, leaves)
        made, choices, entries = shortened(compiler.steps, compiler.choices, entries, wanted)
        given = iter(entries)
        header = next(given)
        streams: list[tuple[int, ...]] = []
        events: list[tuple[int, int]] = []
        for stream in self.streams:
            context, head = next(given), next(given)
            streams.append((stream.id & _ALL, context, head, len(events), len(stream.events)))
            events += [(kind.id & _ALL, next(given)) for kind in stream.events.values()]
        self._native: core.CtfTrace = core.CtfTrace(
            rows_of(made),
            np.array(choices, np.uint64).reshape(-1, 3),
            compiler.slot_count,
            header,
            np.array(streams, np.uint64).reshape(-1, 5),
            np.array(events, np.uint64).reshape(-1, 2),
            about.uuid or b"",
            self._magic(),
            len(self.carried),
        )

    def _carry(self, compiler: Compiler, leaves: Sequence[Leaf]) -> frozenset[int]:
        """Make the leaves that are carried columns, and all others none; return the columns."""
        known = [leaf.root in (ROOTS[1], ROOTS[3]) and isinstance(leaf.kind, Integer) for leaf in leaves]
        names = {leaf.name for leaf, is_known in zip(leaves, known, strict=True) if is_known}
        self.carried = tuple(name for name in self.carried if name in names)
        for step in compiler.steps:
            if step.leaf != NONE:
                name = leaves[step.leaf].name
                is_carried = known[step.leaf] and name in self.carried
                step.leaf = self.carried.index(name) if is_carried else NONE
        return frozenset(range(len(self.carried)))

    def _magic(self) -> bytes:
        """Return the bytes by which packets begin, empty if they begin otherwise."""
        fields = self.about.packet_header.fields if self.about.packet_header else ()
        if not fields:
            return b""
        name, kind = fields[0]
        if not isinstance(kind, Integer) or kind.size != 32:
            return b""
        if (plain(name) if kind.meaning is None else kind.meaning) != "magic":
            return b""
        big = self.about.big if kind.big is None else kind.big
        return _MAGIC.to_bytes(4, "big" if big else "little")

    def read(self, data: U8, *, begin: int = 0, clock: int = 0, most: int = _ALL) -> Walk:
        """Walk a stream.

        Args:
            data: the stream, uint8 [bytes].
            begin: byte of a packet to begin at.
            clock: value of the clock there.
            most: end behind the packet that reaches so many events.
        """
        packets, losses, kinds, times, places, contexts, carried, *rest = self._native.walk(data, begin, clock, most)
        return Walk(data, packets, losses, kinds, times, places, contexts, carried.view(np.int64), *rest)

    def leaves(self, row: int) -> list[Leaf]:
        """Return all fields of events of one kind that columns can be made of: of packets, headers and events."""
        return list(self._extraction(row, ()).leaves)

    def extraction(self, row: int, root: str) -> Extraction:
        """Return a program that takes out the fields that events of one kind have below one of ``ROOTS``."""
        return self._extraction(row, (f"{root}:",))

    def columns(self, walk: Walk, row: int, rows: Int64, names: Sequence[str] = ()) -> dict[str, Columns]:
        """Return fields of events of one kind.

        Args:
            walk: as ``read`` returned it.
            row: the kind, a row of ``events``.
            rows: which events, int64 [n]; all of that kind.
            names: which leaves, as ``ROOT:NAME``; none: all.

        Returns:
            By ``ROOT:NAME``.
        """
        return self._taken(self._extraction(row, tuple(names)), walk, rows, names)

    def _taken(self, wanted: Extraction, walk: Walk, rows: Int64, names: Sequence[str]) -> dict[str, Columns]:
        from lanescope._native import core

        values = np.zeros((2 * len(wanted.leaves), len(rows)), np.uint64)
        begins = walk.begins()[rows]
        core.ctf_leaves(
            walk.data,
            wanted.steps,
            wanted.choices,
            wanted.slots,
            wanted.packet,
            wanted.event,
            walk.places[rows],
            begins,
            values,
        )
        found = {}
        for at, leaf in enumerate(wanted.leaves):
            name = f"{leaf.root}:{leaf.name}"
            if not names or name in names:
                found[name] = Columns(self.about, leaf, walk.data, values[2 * at], values[2 * at + 1])
        return found

    def context_names(self, stream: int) -> frozenset[str]:
        """Return the fields that all events of a kind of streams have, as ``ROOT:NAME``: of packets and contexts."""
        return frozenset(f"{leaf.root}:{leaf.name}" for leaf in self._context(stream, ()).leaves)

    def contexts(self, walk: Walk, stream: int, rows: Int64, names: Sequence[str]) -> dict[str, Columns]:
        """Return fields that all events of a kind of streams have.

        Args:
            walk: as ``read`` returned it.
            stream: the kind, a row of ``streams``.
            rows: which events, int64 [n]; all of that kind of streams.
            names: which fields, as ``context_names`` returns them.
        """
        return self._taken(self._context(stream, tuple(names)), walk, rows, names)

    def _context(self, stream: int, names: tuple[str, ...]) -> Extraction:
        known = self._extractions.get((-1 - stream, names))
        if known is None:
            kind = self.streams[stream]
            known = self._extractions[-1 - stream, names] = Extraction.of(self.about, kind, None, names)
        return known

    def _extraction(self, row: int, names: tuple[str, ...]) -> Extraction:
        known = self._extractions.get((row, names))
        if known is None:
            stream, kind = self.events[row]
            known = self._extractions[row, names] = Extraction.of(self.about, stream, kind, names)
        return known


@dataclass(frozen=True, slots=True, eq=False)
class Extraction:
    """A program that takes leaves out of the events of one kind.

    Attributes:
        leaves: the leaves, by the numbers that the program has for them; it takes some out.
        steps: int64 [steps, 8].
        choices: uint64 [choices, 3].
        slots: how many numbers it keeps.
        packet: first step for header and context of a packet.
        event: first step for an event.
    """

    leaves: Sequence[Leaf]
    steps: npt.NDArray[np.int64]
    choices: U64
    slots: int
    packet: int
    event: int

    @classmethod
    def of(cls, about: Description, stream: StreamKind, kind: EventKind | None, names: Sequence[str]) -> Extraction:
        """Compile it.

        Args:
            about: the trace.
            stream: the kind of stream.
            kind: the kind of events; None: what all have.
            names: leaves that are taken out, as ``ROOT:NAME``, or ``ROOT:`` for all below one; none: all.
        """
        compiler = Compiler(about)
        leaves: list[Leaf] = []
        packet = compiler.program([(ROOTS[0], about.packet_header), (ROOTS[1], stream.packet_context)], leaves)
        parts = [(ROOTS[3], stream.event_context)] if kind is None else event_parts(stream, kind)
        event = compiler.program([(ROOTS[2], stream.event_header), *parts], leaves)
        wanted = frozenset(
            at
            for at, leaf in enumerate(leaves)
            if not names or f"{leaf.root}:{leaf.name}" in names or f"{leaf.root}:" in names
        )
        # Numbers of events, clocks and counters are of no interest here: they are passed over like other fields.
        for step in compiler.steps:
            step.meaning = NONE
            if step.op == INTEGER:
                step.flags &= ~CLOCK
        made, choices, (packet, event) = shortened(compiler.steps, compiler.choices, (packet, event), wanted)
        return cls(
            leaves, rows_of(made), np.array(choices, np.uint64).reshape(-1, 3), compiler.slot_count, packet, event
        )


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """One field of many events.

    Attributes:
        about: the trace.
        leaf: the field.
        data: the stream.
        values: uint64 [n]: an integer (two's complement), the bits of a real number, the first byte of a text, the
            first bit of an array.
        extents: uint64 [n]: 0 where the event has no such field; 1, or bytes or elements plus 1.
    """

    about: Description
    leaf: Leaf
    data: U8
    values: U64
    extents: U64

    @property
    def is_there(self) -> npt.NDArray[np.bool_]:
        """Which events have the field, bool [n]."""
        there: npt.NDArray[np.bool_] = self.extents != 0
        return there

    def python(self) -> list[Any]:
        """Return the field of each event: int, float, bytes of a text, list of an array; None where it is missing."""
        kind = self.leaf.kind
        match kind:
            case Integer():
                values = self.values.view(np.int64) if kind.signed else self.values
                found = values.tolist()
            case Real():
                found = _reals(self.values, kind.size).tolist()
            case Text():
                raw = self.data.tobytes() if len(self.values) > 64 else None
                found = [
                    (self.data[at : at + n - 1].tobytes() if raw is None else raw[at : at + n - 1]) if n else None
                    for at, n in zip(self.values.tolist(), self.extents.tolist(), strict=True)
                ]
            case Array():
                found = [
                    self._array(at, n - 1) if n else None
                    for at, n in zip(self.values.tolist(), self.extents.tolist(), strict=True)
                ]
        return [value if there else None for value, there in zip(found, self.is_there.tolist(), strict=True)]

    def _array(self, at: int, count: int) -> Any:
        kind = self.leaf.kind
        assert isinstance(kind, Array)
        element = kind.element
        if not isinstance(element, Integer | Real):
            return count
        big = self.about.big if element.big is None else element.big
        # Each element begins at its alignment.
        stride = element.size + -element.size % element.align
        end = at + count * stride
        raw = self.data[at // 8 : (end + 7) // 8].tobytes()
        if kind.is_text and at % 8 == 0 and stride == 8:
            return raw.split(b"\0")[0]
        values = []
        for place in range(at % 8, at % 8 + count * stride, stride):
            part = raw[place // 8 : (place + element.size + 7) // 8]
            number = int.from_bytes(part, "big" if big else "little")
            number >>= (8 * len(part) - place % 8 - element.size) if big else place % 8
            number &= (1 << element.size) - 1
            if isinstance(element, Integer) and element.signed and number >> (element.size - 1):
                number -= 1 << element.size
            values.append(number)
        if isinstance(element, Real):
            return _reals(np.array(values, np.uint64), element.size).tolist()
        return bytes(values).split(b"\0")[0] if kind.is_text else values


def _reals(values: U64, size: int) -> npt.NDArray[np.float64]:
    if size == 32:
        return values.astype(np.uint32).view(np.float32).astype(np.float64)
    return values.view(np.float64)


def names_of(kind: Struct | None) -> Mapping[str, Any]:
    """Return the fields of a structure by their names without underscores."""
    return {plain(name): member for name, member in kind.fields} if kind else {}
