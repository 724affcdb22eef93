"""The description of a CTF 2 trace, fragments of JSON, -> what TSDL becomes too. Source: CTF2-SPEC-2.0."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lanescope.wire.tsdl.trace_kinds import MOST_EVENTS, Clock, Description, EventKind, StreamKind
from lanescope.wire.tsdl.types import Array, Integer, Path, Real, Struct, Text, TsdlError, Type, Variant

#: Begins each fragment. Source: RFC 7464.
SEPARATOR = "\x1e"
_MOST_FRAGMENTS = 1 << 17
#: Types in types, at most.
_DEEPEST = 32
_MOST_LABELS = 1 << 16
#: Where references begin -> the root as references of CTF 1.8 call it.
_ORIGINS = {
    "packet-header": ("trace", "packet", "header"),
    "packet-context": ("stream", "packet", "context"),
    "event-record-header": ("stream", "event", "header"),
    "event-record-common-context": ("stream", "event", "context"),
    "event-record-specific-context": ("event", "context"),
    "event-record-payload": ("event", "fields"),
}
#: Roles of fields -> what they mean, by the part that they are in.
_ROLES = {
    "packet-header": {
        "packet-magic-number": "magic",
        "metadata-stream-uuid": "uuid",
        "data-stream-class-id": "stream_id",
        "data-stream-id": "stream_instance_id",
    },
    "packet-context": {
        "packet-total-length": "packet_size",
        "packet-content-length": "content_size",
        "packet-end-default-clock-timestamp": "timestamp_end",
        "discarded-event-record-counter-snapshot": "events_discarded",
        "packet-sequence-number": "packet_seq_num",
    },
    "event-record-header": {"event-record-class-id": "id"},
}
_TIMES = ("default-clock-timestamp", "packet-end-default-clock-timestamp")
_ORDERS = {"big-endian": True, "little-endian": False}
_NATURAL = {True: "last-to-first", False: "first-to-last"}
_BITS = ("fixed-length-bit-array", "fixed-length-bit-map", "fixed-length-boolean")

Json = dict[str, Any]


def is_fragments(text: str) -> bool:
    """Return whether a description is of CTF 2."""
    return text.startswith(SEPARATOR)


def describe_fragments(text: str) -> Description:
    """Read the description of a CTF 2 trace.

    Raises:
        TsdlError: with the number of the fragment.
    """
    parts = text.split(SEPARATOR)[1:]
    if len(parts) > _MOST_FRAGMENTS:
        raise TsdlError(f"more than {_MOST_FRAGMENTS} fragments")
    maker = _Maker()
    for number, part in enumerate(parts, 1):
        try:
            maker.take(number, json.loads(part))
        except (ValueError, RecursionError):
            raise TsdlError(f"fragment {number} is not JSON") from None
    return maker.made()


class _Maker:
    def __init__(self) -> None:
        self._number = 0
        self._aliases: dict[str, Any] = {}
        self._uuid: bytes | None = None
        self._environment: dict[str, int | str] = {}
        self._clocks: dict[str, Clock] = {}
        self._header: Struct | None = None
        self._has_trace = False
        self._streams: dict[int, StreamKind] = {}
        self._events: dict[int, dict[int, EventKind]] = {}
        #: What is being read: its part, the clock of its stream, names of the open structures.
        self._origin, self._clock = "", ""
        self._open: list[Path] = []

    def _error(self, what: str) -> TsdlError:
        return TsdlError(f"fragment {self._number}: {what}")

    def take(self, number: int, fragment: Any) -> None:
        """Take one fragment."""
        self._number = number
        if not isinstance(fragment, dict):
            raise self._error("not an object")
        kind = fragment.get("type")
        if (number == 1) != (kind == "preamble"):
            raise self._error("the first fragment has to be the preamble, and no other one")
        takers: dict[str, Callable[[Json], None]] = {
            "preamble": self._preamble,
            "field-class-alias": self._alias,
            "trace-class": self._trace,
            "clock-class": self._clock_class,
            "data-stream-class": self._stream,
            "event-record-class": self._event,
        }
        if not isinstance(kind, str) or kind not in takers:
            raise self._error(f"unknown type {kind!r}")
        takers[kind](fragment)

    def made(self) -> Description:
        """Return the description."""
        if not self._number:
            raise TsdlError("without a preamble")
        # Each field has a byte order of its own.
        return Description(
            uuid=self._uuid,
            big=False,
            environment=self._environment,
            clocks=self._clocks,
            packet_header=self._header,
            streams=self._streams,
        )

    # --- values ----------------------------------------------------------------------------------------------------

    def _whole(
        self, of: Json, name: str, default: int | None = None, *, least: int = 0, most: int = (1 << 64) - 1
    ) -> int:
        value = of.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self._error(f"{name}: {value!r} is not a whole number from {least} to {most}")
        return value

    def _string(self, of: Json, name: str, default: str | None = None) -> str:
        value = of.get(name, default)
        if not isinstance(value, str):
            raise self._error(f"{name}: {value!r} is not a text")
        return value

    def _list(self, of: Json, name: str, default: Any = None) -> list[Any]:
        value = of.get(name, default)
        if not isinstance(value, list):
            raise self._error(f"{name} is not an array")
        return value

    def _object(self, of: Json, name: str) -> Json:
        value = of.get(name, {})
        if not isinstance(value, dict):
            raise self._error(f"{name} is not an object")
        return value

    # --- fragments -------------------------------------------------------------------------------------------------

    def _preamble(self, fragment: Json) -> None:
        version = fragment.get("version")
        if version != 2:
            raise self._error(f"unsupported version {version}")
        # Extensions may change how streams are read.
        extensions = self._object(fragment, "extensions")
        names = [f"{space}: {name}" for space in extensions for name in self._object(extensions, space)]
        if names:
            raise self._error(f"unsupported extensions {', '.join(names)}")
        if "uuid" in fragment:
            try:
                self._uuid = bytes(self._list(fragment, "uuid"))
            except (TypeError, ValueError):
                self._uuid = b""
            if len(self._uuid) != 16:
                raise self._error("invalid UUID")

    def _alias(self, fragment: Json) -> None:
        name = self._string(fragment, "name")
        if name in self._aliases:
            raise self._error(f"alias {name!r} occurs twice")
        self._aliases[name] = self._resolved(fragment.get("field-class"))

    def _resolved(self, kind: Any) -> Json:
        """Return a field class, by its name too."""
        if isinstance(kind, str):
            if kind not in self._aliases:
                raise self._error(f"unknown field class {kind!r}")
            kind = self._aliases[kind]
        if not isinstance(kind, dict):
            raise self._error("a field class is not an object")
        return kind

    def _trace(self, fragment: Json) -> None:
        if self._has_trace or self._streams:
            raise self._error("a second trace class, or one behind a class of data streams")
        self._has_trace = True
        for name, value in self._object(fragment, "environment").items():
            if not isinstance(value, int | str):
                raise self._error(f"environment: {name} is neither a number nor a text")
            self._environment[name] = value
        self._clock = ""
        self._header = self._part(fragment, "packet-header-field-class", "packet-header")

    def _clock_class(self, fragment: Json) -> None:
        name = self._string(fragment, "id")
        if name in self._clocks:
            raise self._error(f"clock {name!r} occurs twice")
        offset = self._object(fragment, "offset-from-origin")
        origin = fragment.get("origin")
        # Clocks with one origin, or of one identity, can be compared.
        identity = [fragment.get(key) for key in ("namespace", "name", "uid")]
        uid = json.dumps(origin if isinstance(origin, dict) else identity, sort_keys=True)
        self._clocks[name] = Clock(
            name,
            self._whole(fragment, "frequency", least=1),
            self._whole(offset, "seconds", 0, least=-(1 << 62) + 1, most=(1 << 62) - 1),
            self._whole(offset, "cycles", 0),
            origin == "unix-epoch",
            uid if isinstance(origin, dict) or None not in identity[1:] else "",
            self._string(fragment, "description", ""),
        )

    def _stream(self, fragment: Json) -> None:
        number = self._whole(fragment, "id", 0)
        if number in self._streams:
            raise self._error(f"stream {number} occurs twice")
        self._clock = self._string(fragment, "default-clock-class-id", "")
        if self._clock and self._clock not in self._clocks:
            raise self._error(f"unknown clock {self._clock!r}")
        events = self._events[number] = {}
        self._streams[number] = StreamKind(
            number,
            self._part(fragment, "packet-context-field-class", "packet-context"),
            self._part(fragment, "event-record-header-field-class", "event-record-header"),
            self._part(fragment, "event-record-common-context-field-class", "event-record-common-context"),
            events,
            self._clock,
        )

    def _event(self, fragment: Json) -> None:
        number, stream = self._whole(fragment, "id", 0), self._whole(fragment, "data-stream-class-id", 0)
        if stream not in self._streams:
            raise self._error(f"event {number} of an unknown stream {stream}")
        events = self._events[stream]
        if number in events:
            raise self._error(f"event {number} of stream {stream} occurs twice")
        if len(events) >= MOST_EVENTS:
            raise self._error(f"more than {MOST_EVENTS} kinds of events")
        self._clock = self._streams[stream].clock
        events[number] = EventKind(
            number,
            self._string(fragment, "name", "") or str(number),
            self._part(fragment, "specific-context-field-class", "event-record-specific-context"),
            self._part(fragment, "payload-field-class", "event-record-payload"),
            {},
        )

    def _part(self, fragment: Json, name: str, origin: str) -> Struct | None:
        if name not in fragment:
            return None
        self._origin, self._open = origin, []
        kind = self._type(fragment[name], (), 0)
        if not isinstance(kind, Struct):
            raise self._error(f"{name} is not a structure")
        return kind

    # --- field classes ---------------------------------------------------------------------------------------------

    def _type(self, given: Any, path: Path, depth: int) -> Type:
        """Return a type; ``path`` is where it is, names only."""
        kind = self._resolved(given)
        if depth > _DEEPEST:
            raise self._error(f"types in types, more than {_DEEPEST} deep")
        what = self._string(kind, "type")
        match what:
            case "fixed-length-unsigned-integer" | "fixed-length-signed-integer":
                return self._integer(kind, signed=what == "fixed-length-signed-integer")
            case _ if what in _BITS:
                return self._integer(kind, signed=False)
            case "fixed-length-floating-point-number":
                size, align, big = self._bits(kind)
                if size not in (32, 64):
                    raise self._error(f"unsupported: floating point numbers of {size} bits")
                return Real(size, align, big)
            case "null-terminated-string":
                self._encoding(kind)
                return Text()
            case "static-length-string":
                self._encoding(kind)
                return Array(_CHARACTER, self._length(kind), meaning="")
            case "dynamic-length-string":
                self._encoding(kind)
                return Array(_CHARACTER, self._location(kind, "length-field-location"), meaning="")
            case "static-length-blob":
                return Array(_BYTE, self._length(kind), meaning=self._meaning(kind))
            case "dynamic-length-blob":
                return Array(_BYTE, self._location(kind, "length-field-location"), meaning="")
            case "structure":
                return self._struct(kind, path, depth)
            case "static-length-array" | "dynamic-length-array":
                is_static = what == "static-length-array"
                length = self._length(kind) if is_static else self._location(kind, "length-field-location")
                element = self._type(kind.get("element-field-class"), path, depth + 1)
                if isinstance(element, Integer) and element.clock:
                    raise self._error("an array of timestamps")
                return Array(element, length, align=self._align(kind, "minimum-alignment"), meaning="")
            case "optional":
                return self._optional(kind, path, depth)
            case "variant":
                return self._variant(kind, path, depth)
        raise self._error(f"unsupported: fields of type {what!r}")

    def _align(self, kind: Json, name: str) -> int:
        align = self._whole(kind, name, 1, least=1, most=1 << 30)
        if align & (align - 1):
            raise self._error(f"alignment {align} is not a power of two")
        return align

    def _bits(self, kind: Json) -> tuple[int, int, bool]:
        """Return size, alignment and byte order of bits of a known length."""
        size, order = self._whole(kind, "length", least=1), _ORDERS.get(self._string(kind, "byte-order"))
        if order is None:
            raise self._error(f"unknown byte order {kind['byte-order']!r}")
        if self._string(kind, "bit-order", _NATURAL[order]) != _NATURAL[order]:
            raise self._error("unsupported: bits in the other order than their bytes")
        return size, self._align(kind, "alignment"), order

    def _integer(self, kind: Json, *, signed: bool) -> Integer:
        size, align, big = self._bits(kind)
        if size > 64:
            raise self._error(f"unsupported: fields of {size} bits")
        base = self._whole(kind, "preferred-display-base", 10)
        if base not in (2, 8, 10, 16):
            raise self._error(f"unknown base {base}")
        labels = [
            (label, first, last)
            for label, ranges in self._object(kind, "mappings").items()
            for first, last in self._ranges(ranges, label)
        ]
        if len(labels) > _MOST_LABELS:
            raise self._error(f"more than {_MOST_LABELS} labels")
        roles = self._list(kind, "roles", [])
        clock = self._clock if self._origin in _ROLES and any(role in _TIMES for role in roles) else ""
        return Integer(
            size,
            align,
            signed,
            big,
            base,
            clock=clock,
            labels=tuple(labels) or None,
            meaning=self._meaning(kind),
        )

    def _meaning(self, kind: Json) -> str:
        known: Mapping[str, str] = _ROLES.get(self._origin, {})
        return next(
            (known[role] for role in self._list(kind, "roles", []) if isinstance(role, str) and role in known), ""
        )

    def _ranges(self, ranges: Any, of: str) -> list[tuple[int, int]]:
        found = []
        for pair in ranges if isinstance(ranges, list) else [None]:
            if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(number, int) for number in pair)):
                raise self._error(f"{of}: invalid range {pair!r}")
            first, last = pair
            if not -(1 << 63) <= first <= last < 1 << 64:
                raise self._error(f"{of}: invalid range {pair!r}")
            found.append((first, last))
        return found

    def _encoding(self, kind: Json) -> None:
        encoding = self._string(kind, "encoding", "utf-8")
        if encoding != "utf-8":
            raise self._error(f"unsupported: text in {encoding}")

    def _length(self, kind: Json) -> int:
        return self._whole(kind, "length", most=(1 << 31) - 1)

    def _struct(self, kind: Json, path: Path, depth: int) -> Struct:
        members: list[tuple[str, Type]] = []
        seen: set[str] = set()
        self._open.append(path)
        for member in self._list(kind, "member-classes", []):
            if not isinstance(member, dict):
                raise self._error("a member of a structure is not an object")
            name = self._string(member, "name")
            if name in seen:
                raise self._error(f"member {name!r} occurs twice")
            seen.add(name)
            members.append((_written(name), self._type(member.get("field-class"), (*path, name), depth + 1)))
        self._open.pop()
        return Struct(tuple(members), self._align(kind, "minimum-alignment"))

    def _optional(self, kind: Json, path: Path, depth: int) -> Variant:
        tag = self._location(kind, "selector-field-location")
        # A boolean selects by any bit that is set.
        ranges = self._ranges(kind.get("selector-field-ranges", [[1, (1 << 64) - 1]]), "selector-field-ranges")
        inner = self._type(kind.get("field-class"), path, depth + 1)
        choices = tuple(("", first, last) for first, last in ranges)
        return Variant(tag, (("", inner),), choices=choices, is_optional=True)

    def _variant(self, kind: Json, path: Path, depth: int) -> Variant:
        tag = self._location(kind, "selector-field-location")
        options: list[tuple[str, Type]] = []
        choices: list[tuple[str, int, int]] = []
        for number, option in enumerate(self._list(kind, "options")):
            if not isinstance(option, dict):
                raise self._error("an option of a variant is not an object")
            name = _written(self._string(option, "name", str(number)))
            if any(name == other for other, _ in options):
                raise self._error(f"option {name[1:]!r} occurs twice")
            options.append((name, self._type(option.get("field-class"), path, depth + 1)))
            ranges = self._ranges(option.get("selector-field-ranges"), "selector-field-ranges")
            choices += [(name, first, last) for first, last in ranges]
        if not options or len(choices) > _MOST_LABELS:
            raise self._error(f"a variant of {len(options)} options with {len(choices)} ranges")
        return Variant(tag, tuple(options), choices=tuple(choices))

    def _location(self, kind: Json, name: str) -> Path:
        """Return where a field is: a root, and names as they are written in structures."""
        location = self._object(kind, name)
        steps: Sequence[Any] = self._list(location, "path")
        if "origin" in location:
            origin, names = self._string(location, "origin"), Path()
            if origin not in _ORIGINS:
                raise self._error(f"unknown origin {origin!r}")
        else:
            origin, names = self._origin, self._open[-1] if self._open else ()
        around = len(self._open) - 1
        for step in steps:
            if step is None and around > 0 and "origin" not in location:
                around -= 1
                names = self._open[around]
            elif isinstance(step, str):
                names = (*names, step)
            else:
                raise self._error(f"{name}: invalid path {steps!r}")
        if not steps or steps[-1] is None:
            raise self._error(f"{name}: invalid path {steps!r}")
        return (*_ORIGINS[origin], *map(_written, names))


def _written(name: str) -> str:
    """Return a name as TSDL writes it: the underscore before it is not part of it."""
    return "_" + name


_BYTE = Integer(8, 8, big=False, meaning="")
_CHARACTER = Integer(8, 8, big=False, encoded=True, meaning="")
