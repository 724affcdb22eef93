"""What a trace has: clocks, streams and their kinds of events, whatever language describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lanescope.wire.tsdl.types import Struct

#: What a setting may be: a number, a text, or a word.
Value = int | str
MOST_EVENTS = 1 << 16
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock.

    Attributes:
        name: its name.
        frequency: Hz.
        offset_s: Unix time of its value 0, whole seconds, if ``offset`` is added.
        offset: cycles.
        is_absolute: whether it can be compared with all other absolute ones.
        uid: UUID, empty if it has none.
        description: text.
    """

    name: str
    frequency: int = _NS
    offset_s: int = 0
    offset: int = 0
    is_absolute: bool = False
    uid: str = ""
    description: str = ""

    @property
    def origin_ns(self) -> int:
        """Unix time of its value 0, ns, rounded down."""
        return self.ns(0)

    def ns(self, cycles: int) -> int:
        """Return the Unix time of a value, ns, rounded down."""
        return self.offset_s * _NS + (self.offset + cycles) * _NS // self.frequency


@dataclass(frozen=True, slots=True)
class EventKind:
    """One kind of event of a stream.

    Attributes:
        id: its number.
        name: its name; the number where it has none.
        context: type of its own context, None if it has none.
        fields: type of its fields, None if it has none.
        values: other settings: ``loglevel``, ``model.emf.uri``.
    """

    id: int
    name: str
    context: Struct | None
    fields: Struct | None
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class StreamKind:
    """One kind of stream.

    Attributes:
        id: its number.
        packet_context: what follows the header of a packet.
        event_header: what begins an event.
        event_context: context of all events.
        events: kinds of events by number.
        clock: name of the clock of its events, empty without one.
    """

    id: int
    packet_context: Struct | None
    event_header: Struct | None
    event_context: Struct | None
    events: Mapping[int, EventKind]
    clock: str


@dataclass(frozen=True, slots=True)
class Description:
    """A trace.

    Attributes:
        uuid: 16 bytes that all packets have, None if it has none.
        big: whether integers are big-endian unless they say otherwise.
        environment: facts by name.
        clocks: clocks by name.
        packet_header: what begins a packet.
        streams: kinds of streams by number.
    """

    uuid: bytes | None
    big: bool
    environment: Mapping[str, Value]
    clocks: Mapping[str, Clock]
    packet_header: Struct | None
    streams: Mapping[int, StreamKind]
