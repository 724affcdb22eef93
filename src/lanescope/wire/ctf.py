"""CTF 1.8, the trace format of LTTng and babeltrace2: what a trace says of itself, and its streams of events.

Read is the part of the format whose fields are whole little-endian bytes without gaps: integers, enumerations, texts
and sequences of integers; all streams of a trace are of one kind. The description (the file ``metadata``, written in
TSDL) says which fields packets and events have. ``Reader`` walks streams natively; ``ReferenceReader`` does the same
in Python, one field after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lanescope.errors import InputError

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U64 = npt.NDArray[np.uint64]

MAGIC = 0xC1FC1FC1
#: How every description in text begins. Source: CTF 1.8.3, section 7.
SIGNATURE = b"/* CTF 1.8"
#: Larger descriptions are refused.
MOST_TEXT = 16 << 20
_MOST_FIELDS = 64
_MOST_CLASSES = 1 << 16
_LATEST_NS = 1 << 62
INTEGER, TEXT, SEQUENCE = range(3)


class CtfError(InputError):
    """A description that cannot be read."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the description of the trace: {what}", hint="babeltrace2 reads all of CTF")


# --- what a trace says of itself ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an event or of a header.

    Attributes:
        name: its name, without the underscore that may stand before it.
        kind: ``INTEGER``, ``TEXT`` or ``SEQUENCE``.
        size: bytes of an integer, or of one element.
        signed: whether integers have a sign.
        labels: names of values of an enumeration.
        length: the field before it that says how many elements there are.
        count: how many integers follow one another where their number is fixed (headers only).
    """

    name: str
    kind: int = INTEGER
    size: int = 1
    signed: bool = False
    labels: Mapping[int, str] = field(default_factory=dict)
    length: int = 0
    count: int = 1


@dataclass(frozen=True, slots=True)
class EventClass:
    """One kind of event.

    Attributes:
        id: its number in the trace.
        name: its name.
        fields: its fields, in order.
    """

    id: int
    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a trace says of itself.

    Attributes:
        uuid: 16 bytes that stand in every packet.
        environment: facts by name.
        epoch_ns: Unix time at which the trace's clock stood at 0.
        packet: fields of a packet's header and context.
        header: fields of an event's header.
        events: kinds of events by number.
    """

    uuid: bytes
    environment: Mapping[str, str | int]
    epoch_ns: int
    packet: tuple[Field, ...]
    header: tuple[Field, ...]
    events: Mapping[int, EventClass]


_TOKEN = re.compile(
    r"""\s+|/\*.*?\*/|//[^\n]*|(?P<text>"(?:[^"\\]|\\.)*")|(?P<number>0[xX][0-9a-fA-F]+|\d+)
    |(?P<word>[A-Za-z_]\w*)|(?P<mark>:=|\.\.\.|[{}\[\]();:=,.<>+-])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
#: What may stand after a backslash in a text.
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t", "r": "\r"}


def describe(text: bytes) -> Metadata:
    """Read a description.

    Args:
        text: the file ``metadata``.

    Raises:
        CtfError: it is no description, or of a trace that is not read here.

    Complexity:
        Linear in the length.
    """
    if not text.startswith(SIGNATURE):
        raise CtfError("it does not begin as one of CTF 1.8 does")
    if len(text) > MOST_TEXT:
        raise CtfError(f"it is longer than {MOST_TEXT} bytes")
    head, events, rest = text.decode(errors="replace").partition("\nevent {")
    parser = _Parser(head)
    parser.declarations()
    # Processes of one program say the same of their events.
    parser.parse(_declared(" ".join(parser.aliases) + events + rest))
    return parser.description()


@lru_cache(maxsize=4)
def _declared(text: str) -> _Parser:
    """Read declarations."""
    parser = _Parser(text)
    parser.declarations()
    return parser


class _Parser:
    """Reads TSDL, as far as the module's text says."""

    def __init__(self, text: str) -> None:
        self._tokens = list(self._split(text))
        self._at = 0
        self.aliases: list[str] = []
        self._types: dict[str, Field] = {}
        self._attributes: dict[str, dict[str, str | int]] = {}
        self._structs: dict[str, tuple[Field, ...]] = {}
        self._events: dict[int, EventClass] = {}

    @staticmethod
    def _split(text: str) -> Iterator[str]:
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise CtfError(f"{text[at : at + 20]!r} is not understood")
            at = match.end()
            if match.lastgroup:
                yield match[0]

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        if not token:
            raise CtfError("it ends too early")
        return token

    def _expect(self, wanted: str) -> None:
        token = self._next()
        if token != wanted:
            raise CtfError(f"{wanted} is missing before {token!r}")

    def _word(self) -> str:
        token = self._next()
        if not (token[0].isalpha() or token[0] == "_"):
            raise CtfError(f"{token!r} is no name")
        return token

    def declarations(self) -> None:
        """Read to the end."""
        while self._peek():
            self._declaration(self._word())
            while self._peek() == ";":
                self._next()
        self._tokens = []

    def parse(self, other: _Parser) -> None:
        """Take over what another one has read."""
        self._events.update(other._events)
        self._structs.update(other._structs)
        for what, values in other._attributes.items():
            self._attributes.setdefault(what, {}).update(values)

    def description(self) -> Metadata:
        """Return what was read."""
        trace, clock = self._attributes.get("trace", {}), self._attributes.get("clock", {})
        if trace.get("byte_order", "le") != "le":
            raise CtfError("its bytes are big-endian")
        uuid = str(trace.get("uuid", "")).replace("-", "")
        if len(uuid) != 32 or not all(digit in "0123456789abcdefABCDEF" for digit in uuid):
            raise CtfError("there is no UUID")
        packet = (*self._struct("trace.packet.header"), *self._struct("stream.packet.context"))
        header = self._struct("stream.event.header")
        if any(item.kind != INTEGER for item in (*packet, *header)):
            raise CtfError("a header holds more than integers")
        if clock.get("freq", 1_000_000_000) != 1_000_000_000:
            raise CtfError("its clock does not count nanoseconds")
        epoch = _number(clock, "offset_s") * 1_000_000_000 + _number(clock, "offset")
        if not 0 <= epoch < _LATEST_NS:
            raise CtfError("its clock begins beyond all times")
        environment = dict(self._attributes.get("env", {}))
        return Metadata(bytes.fromhex(uuid), environment, epoch, packet, header, self._events)

    def _struct(self, name: str) -> tuple[Field, ...]:
        return self._structs.get(name, ())

    def _declaration(self, what: str) -> None:
        if what == "typealias":
            self._alias()
        elif what in ("trace", "stream", "env", "clock", "event"):
            self._block(what)
        else:
            raise CtfError(f"{what} is not understood")

    def _alias(self) -> None:
        begin = self._at - 1
        kind = self._type()
        self._expect(":=")
        self._types[self._word()] = kind
        self.aliases += [*self._tokens[begin : self._at], ";"]

    def _block(self, what: str) -> None:
        """Read ``what { name = value; name.name := struct { ... }; }``."""
        values: dict[str, str | int] = {}
        structs: dict[str, tuple[Field, ...]] = {}
        self._expect("{")
        while self._peek() != "}":
            name = self._dotted()
            if self._peek() == ":=":
                self._next()
                self._expect("struct")
                structs[name] = self._members()
            else:
                self._expect("=")
                _set(values, name, self._value())
            self._expect(";")
        self._expect("}")
        if what != "event":
            self._attributes.setdefault(what, {}).update(values)
            self._structs.update({f"{what}.{name}": members for name, members in structs.items()})
            return
        number = _number(values, "id")
        if not 0 <= number < _MOST_CLASSES or number in self._events:
            raise CtfError(f"there is no place for an event of number {number}")
        if "context" in structs:
            raise CtfError("an event has a context")
        self._events[number] = EventClass(number, str(values.get("name", number)), structs.get("fields", ()))

    def _dotted(self) -> str:
        name = self._word()
        while self._peek() == ".":
            self._next()
            name += "." + self._word()
        return name

    def _value(self) -> str | int:
        token = self._next()
        if token == "-":
            return -_integer(self._next())
        if token[0] == '"':
            return _unescaped(token)
        if token[0].isdigit():
            return _integer(token)
        name = token
        while self._peek() == ".":
            self._next()
            name += "." + self._word()
        return name

    def _members(self) -> tuple[Field, ...]:
        found: list[Field] = []
        self._expect("{")
        while self._peek() != "}":
            kind = self._type()
            name = self._word().removeprefix("_")
            if self._peek() == "[":
                kind = self._repeated(kind, found)
            self._expect(";")
            found.append(Field(name, kind.kind, kind.size, kind.signed, kind.labels, kind.length, kind.count))
            if len(found) > _MOST_FIELDS:
                raise CtfError(f"there are more than {_MOST_FIELDS} fields in a structure")
        self._expect("}")
        if len({item.name for item in found}) < len(found):
            raise CtfError("two fields of a structure have one name")
        self._align()
        return tuple(found)

    def _repeated(self, kind: Field, before: Sequence[Field]) -> Field:
        self._expect("[")
        token = self._next()
        self._expect("]")
        if kind.kind != INTEGER:
            raise CtfError("only integers may follow one another")
        if token[0].isdigit():
            count = _integer(token)
            if not 0 < count <= 64:
                raise CtfError(f"{token} integers follow one another")
            return Field("", INTEGER, kind.size, kind.signed, count=count)
        names = [item.name for item in before]
        if token.removeprefix("_") not in names:
            raise CtfError(f"there is no field {token!r}")
        length = names.index(token.removeprefix("_"))
        if before[length].kind != INTEGER or before[length].signed:
            raise CtfError(f"field {token!r} counts nothing")
        return Field("", SEQUENCE, kind.size, kind.signed, length=length)

    def _align(self) -> None:
        if self._peek() == "align":
            raise CtfError("a structure is aligned")

    def _type(self) -> Field:
        word = self._word()
        if word == "integer":
            return self._integer()
        if word == "string":
            if self._peek() == "{":
                self._settings()
            return Field("", TEXT)
        if word == "enum":
            return self._enum()
        if word not in self._types:
            raise CtfError(f"type {word!r} is not understood")
        return self._types[word]

    def _settings(self) -> dict[str, str | int]:
        values: dict[str, str | int] = {}
        self._expect("{")
        while self._peek() != "}":
            name = self._dotted()
            self._expect("=")
            _set(values, name, self._value())
            self._expect(";")
        self._expect("}")
        return values

    def _integer(self) -> Field:
        values = self._settings()
        bits = _number(values, "size")
        if bits not in (8, 16, 32, 64) or values.get("align", 1) != 8:
            raise CtfError(f"an integer of {bits} bits, aligned to {values.get('align', 1)}")
        if values.get("byte_order", "native") not in ("native", "le"):
            raise CtfError("an integer is big-endian")
        return Field("", INTEGER, bits // 8, str(values.get("signed", "false")) in ("true", "1", "TRUE"))

    def _enum(self) -> Field:
        if self._peek() != ":":
            raise CtfError("an enumeration has a name, or no integer")
        self._next()
        if self._peek() == "enum":
            raise CtfError("an enumeration of an enumeration")
        base = self._type()
        if base.kind != INTEGER:
            raise CtfError("an enumeration of no integers")
        labels: dict[int, str] = {}
        value = 0
        self._expect("{")
        while self._peek() != "}":
            token = self._next()
            if self._peek() == "=":
                self._next()
                given = self._value()
                if not isinstance(given, int) or self._peek() == "...":
                    raise CtfError("an enumeration has ranges")
                value = given
            labels.setdefault(value, _unescaped(token) if token[0] == '"' else token)
            value += 1
            if self._peek() != "}":
                self._expect(",")
        self._expect("}")
        return Field("", INTEGER, base.size, base.signed, labels)


def _set(values: dict[str, str | int], name: str, value: str | int) -> None:
    if name in values:
        raise CtfError(f"{name} is said twice")
    values[name] = value


def _unescaped(token: str) -> str:
    """Return the text of a token in quotes."""

    def character(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise CtfError(f"{match[0]!r} is not understood")
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", character, token[1:-1], flags=re.DOTALL)


def _integer(token: str) -> int:
    try:
        return int(token, 8 if len(token) > 1 and token[0] == "0" and token.isdigit() else 0)
    except ValueError:
        raise CtfError(f"{token[:20]!r} is no number") from None


def _number(values: Mapping[str, str | int], name: str) -> int:
    value = values.get(name, 0)
    if not isinstance(value, int):
        raise CtfError(f"{name} is no number")
    return value


# --- its streams --------------------------------------------------------------------------------------------------

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
_ABSENT = 0xFFFF


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts of headers lie, as offsets from their begin; ``_ABSENT`` where there is none."""

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
            offset, found = packet.get(name, (_ABSENT, size))
            if found != size or (offset == _ABSENT and not may_lack):
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


# --- the reference ------------------------------------------------------------------------------------------------


class ReferenceReader:
    """Reads streams as ``Reader`` does, one field after the other, in Python.

    Args:
        about: the description of the trace.
    """

    def __init__(self, about: Metadata) -> None:
        self.about = about
        self.layout = Layout.of(about)

    def read(self, data: bytes) -> Events:
        """Walk a stream."""
        return _Walk(self.about, self.layout, data).events()

    def values(self, data: bytes, number: int, payload: int) -> list[int | bytes | list[int]] | None:
        """Return the fields of the event whose fields begin at ``payload``; None if they are not whole."""
        found: list[int | bytes | list[int]] = []
        end = _fields(data, self.about.events[number].fields, payload, len(data), found)
        return None if end is None else found


def _fields(
    data: bytes, fields: Sequence[Field], at: int, end: int, found: list[int | bytes | list[int]]
) -> int | None:
    """Read the fields that begin at ``at``; return where they end, None if that is beyond ``end``."""
    for item in fields:
        if item.kind == TEXT:
            zero = data.find(b"\0", at, end)
            if zero < 0:
                return None
            found.append(data[at:zero])
            at = zero + 1
            continue
        count = 1
        if item.kind == SEQUENCE:
            length = found[item.length]
            assert isinstance(length, int)
            count = length
        if count * item.size > end - at:
            return None
        elements = [
            int.from_bytes(data[at + i * item.size : at + (i + 1) * item.size], "little", signed=item.signed)
            for i in range(count)
        ]
        found.append(elements if item.kind == SEQUENCE else elements[0])
        at += count * item.size
    return at


class _Walk:
    def __init__(self, about: Metadata, layout: Layout, data: bytes) -> None:
        self.about, self.layout, self.data = about, layout, data
        self.packets: list[list[int]] = []
        self.losses: list[tuple[int, int]] = []
        self.found: list[tuple[int, int, int]] = []
        self.decoded = self.padding = self.lost = 0

    def events(self) -> Events:
        at = unread = 0
        while at < len(self.data):
            end = self._packet(at) if self._is_packet(at) else None
            if end is None:
                at += 1
                continue
            self._leave(unread, at)
            at = unread = end
        self._leave(unread, len(self.data))
        classes, times, payloads = zip(*self.found, strict=True) if self.found else ((), (), ())
        return Events(
            np.frombuffer(self.data, np.uint8),
            np.array(self.packets, np.uint64).reshape(-1, len(PACKET)),
            np.array(self.losses, np.uint64).reshape(-1, 2),
            np.array(classes, np.uint16),
            np.array(times, np.uint64),
            np.array(payloads, np.uint64),
            self.decoded,
            self.padding,
            self.lost,
        )

    def _part(self, at: int, name: str, otherwise: int, size: int = 8) -> int:
        offset = self.layout.parts[name]
        if offset == _ABSENT:
            return otherwise
        return int.from_bytes(self.data[at + offset : at + offset + size], "little")

    def _is_packet(self, at: int) -> bool:
        if len(self.data) - at < self.layout.packet_header:
            return False
        uuid = at + self.layout.parts["uuid"]
        return self._part(at, "magic", 0, 4) == MAGIC and self.data[uuid : uuid + 16] == self.about.uuid

    def _leave(self, begin: int, end: int) -> None:
        if not any(self.data[begin:end]):
            self.padding += end - begin
        else:
            self.losses.append((begin, end - begin))
            self.lost += end - begin

    def _packet(self, at: int) -> int | None:
        left = len(self.data) - at
        size_bits = self._part(at, "packet_size", 8 * left)
        content_bits = self._part(at, "content_size", size_bits)
        begin = self._part(at, "timestamp_begin", 0)
        size, content = size_bits // 8, content_bits // 8
        if size_bits % 8 or content_bits % 8 or not self.layout.packet_header <= content <= size or begin >= _LATEST_NS:
            return None
        end = at + min(size, left)
        cut = size > left
        if size > left or (end < len(self.data) and not self._is_packet(end)):
            # Another packet inside of this one: this one's size is wrong.
            inside = range(at + self.layout.packet_header, end)
            following = next((place for place in inside if self._is_packet(place)), end)
            cut |= following != end
            end = following
        content_end = min(end, at + content)
        first = len(self.found)
        events_end = self._events(at + self.layout.packet_header, content_end, begin)
        lost = content_end - events_end
        self.packets.append(
            [
                at,
                end - at,
                content_end - at,
                begin,
                self._part(at, "timestamp_end", 0),
                self._part(at, "events_discarded", 0),
                self._part(at, "packet_seq_num", 0),
                self._part(at, "thread", 0, 4),
                self._part(at, "complete", 1, 4),
                first,
                len(self.found) - first,
                lost,
                cut,
            ]
        )
        self.decoded += events_end - at
        self.lost += lost
        self.padding += end - content_end
        return end

    def _events(self, at: int, end: int, time: int) -> int:
        layout, data = self.layout, self.data
        modulus = 1 << (8 * layout.time_size)
        while end - at >= layout.event_header:
            number = int.from_bytes(data[at + layout.id : at + layout.id + layout.id_size], "little")
            known = self.about.events.get(number)
            if known is None:
                break
            payload = at + layout.event_header
            after = _fields(data, known.fields, payload, end, [])
            if after is None:
                break
            low = int.from_bytes(data[at + layout.time : at + layout.time + layout.time_size], "little")
            time = (time + (low - time) % modulus) % (1 << 64)
            self.found.append((number, time, payload))
            at = after
        return at
