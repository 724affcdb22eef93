"""The description of a trace (the file ``metadata``, written in TSDL): which fields packets and events have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from lanescope.errors import InputError

#: How every description in text begins. Source: CTF 1.8.3, section 7.
SIGNATURE = b"/* CTF 1.8"
#: Larger descriptions are refused.
MOST_TEXT = 16 << 20
#: Times beyond this are none.
LATEST_NS = 1 << 62
_MOST_FIELDS = 64
_MOST_CLASSES = 1 << 16
INTEGER, TEXT, SEQUENCE = range(3)


class CtfError(InputError):
    """A description that cannot be read."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the description of the trace: {what}", hint="babeltrace2 reads all of CTF")


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
    """Metadata of a trace.

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
        CtfError: the text is not CTF metadata, or describes a trace that is not supported here.

    Complexity:
        Linear in the length.
    """
    if not text.startswith(SIGNATURE):
        raise CtfError("CTF 1.8 signature not found")
    if len(text) > MOST_TEXT:
        raise CtfError(f"metadata is longer than {MOST_TEXT} bytes")
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
            raise CtfError(f"invalid name {token!r}")
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
            raise CtfError("unsupported byte order: big-endian")
        uuid = str(trace.get("uuid", "")).replace("-", "")
        if len(uuid) != 32 or not all(digit in "0123456789abcdefABCDEF" for digit in uuid):
            raise CtfError("trace UUID not found")
        packet = (*self._struct("trace.packet.header"), *self._struct("stream.packet.context"))
        header = self._struct("stream.event.header")
        if any(item.kind != INTEGER for item in (*packet, *header)):
            raise CtfError("unsupported header field: expected integers")
        if clock.get("freq", 1_000_000_000) != 1_000_000_000:
            raise CtfError("unsupported clock frequency: expected 1 GHz")
        epoch = _number(clock, "offset_s") * 1_000_000_000 + _number(clock, "offset")
        if not 0 <= epoch < LATEST_NS:
            raise CtfError("clock offset out of range")
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
            raise CtfError(f"invalid event number {number}")
        if "context" in structs:
            raise CtfError("unsupported event context")
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
            raise CtfError(f"unknown field {token!r}")
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
        raise CtfError(f"invalid number {token[:20]!r}") from None


def _number(values: Mapping[str, str | int], name: str) -> int:
    value = values.get(name, 0)
    if not isinstance(value, int):
        raise CtfError(f"invalid {name}: expected a number")
    return value
