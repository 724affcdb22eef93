"""Trace events of JSON: columns of an object with the list ``traceEvents``, or of that list alone.

The native scanner reads the text piece by piece; here its columns get names and its texts become strings. What events
mean is up to those who read a format that is made of them.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope._native.core import TraceEventScanner

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: What a wanted value may be: see ``Wanted``.
KINDS = ("integer", "number", "text", "triple", "boolean")


class Bit(enum.IntFlag):
    """Properties of one event."""

    HAS_TS = 1 << 0
    HAS_DUR = 1 << 1
    ROUNDED = 1 << 2  # a time has digits below a nanosecond
    BAD_TS = 1 << 3  # no number, or beyond 62 bits of nanoseconds
    BAD_DUR = 1 << 4
    TEXT_TIME = 1 << 5  # a time is written as a text
    HAS_ID = 1 << 6
    TEXT_ID = 1 << 7  # ``id`` is the code of a text
    HAS_ARGS = 1 << 8
    OTHER_KEYS = 1 << 9  # keys besides the wanted ones
    REPEATED_KEY = 1 << 10  # a key comes twice: the last one counts


class Wanted(NamedTuple):
    """A column of values of arguments.

    Attributes:
        kind: ``integer`` (also a text of digits; two's complement from 2^63 on), ``number``, ``text`` (any value, as it
            is written), ``triple`` (a list of one to three integers, missing ones are 1), ``boolean``.
        keys: names of the argument; of several in one event the last counts.
    """

    kind: str
    keys: tuple[str, ...]


class PlaceKind(enum.IntEnum):
    """What a process or a thread is given as."""

    NONE = 0
    INTEGER = 1
    TEXT = 2


class Place(NamedTuple):
    """A process and a thread: an integer, a text, or None."""

    process: int | str | None
    thread: int | str | None


class Member(NamedTuple):
    """A member of the outermost object besides the list.

    Attributes:
        key: its name.
        begin, end: bytes of its value in the file.
    """

    key: str
    begin: int
    end: int


class LostRun(NamedTuple):
    """Bytes that are neither an event nor a member.

    Attributes:
        begin, end: in the file.
        is_event: whether they stand in the list.
    """

    begin: int
    end: int
    is_event: bool


@dataclass(frozen=True, slots=True)
class ArgValues:
    """Values of one ``Wanted``, of the events that have it.

    Attributes:
        event: int64 [n], ascending numbers of events.
        value: int64 [n], float64 [n] of numbers, int64 [n, 3] of triples, codes of ``texts`` of texts.
        odd: int64 [m], events whose value is of another type; not among ``event``.
    """

    event: Int64
    value: npt.NDArray[Any]
    odd: Int64


class TraceEvents:
    """All events of a text, in the order of the text.

    Attributes:
        begin: int64 [n], offset of the event in the file.
        size: uint32 [n], its bytes.
        phase: uint8 [n], the character of its phase; 0: none.
        bits: uint16 [n], see ``Bit``.
        name, category: int32 [n], codes of ``names`` and ``categories``; -1: none.
        ts, dur: int64 [n], ns: 1000 times the number in the file, rounded half up.
        place: int32 [n], index of ``places``.
        id: int64 [n], see ``Bit.HAS_ID`` and ``Bit.TEXT_ID``.
        args_begin, args_size: uint32 [n], place of the arguments from ``begin`` on.
        values: values of arguments by name of the column.
        series: event (int64), code of ``texts`` (int32) and value (float64) of the values of counters.
        members: the other members of the outermost object, in order; a key may come twice.
        lost: bytes that cannot be read.
        ending: ``whole``; ``unterminated``: the list or the object has no end; ``foreign``: it is not a such text.
        file_size, decoded: bytes, all and those that are not lost.
        is_bare: it is a list alone.
        has_list: there is a list of events.
        extra_commas, missing_commas: how many commas are too many, or missing, between elements.
        odd_series: values of counters that are not numbers.
        damaged_texts: texts with bytes or escapes that no text has; they hold U+FFFD instead.
    """

    def __init__(self, scanner: TraceEventScanner, columns: Sequence[str]) -> None:
        events: dict[str, Any] = scanner.take_events()
        self.begin: Int64 = events["begin"]
        self.size: npt.NDArray[np.uint32] = events["size"]
        self.phase: npt.NDArray[np.uint8] = events["phase"]
        self.bits: npt.NDArray[np.uint16] = events["bits"]
        self.name: npt.NDArray[np.int32] = events["name"]
        self.category: npt.NDArray[np.int32] = events["category"]
        self.ts: Int64 = events["ts"]
        self.dur: Int64 = events["dur"]
        self.place: npt.NDArray[np.int32] = events["place"]
        self.id: Int64 = events["id"]
        self.args_begin: npt.NDArray[np.uint32] = events["args_begin"]
        self.args_size: npt.NDArray[np.uint32] = events["args_size"]
        self.values = {name: ArgValues(*found) for name, found in zip(columns, scanner.take_values(), strict=True)}
        self.series: tuple[Int64, npt.NDArray[np.int32], npt.NDArray[np.float64]] = scanner.take_series()
        self.damaged_texts = 0
        self.names = self._decoded(scanner.names)
        self.categories = self._decoded(scanner.categories)
        self.texts = self._decoded(scanner.texts)
        self.places = [
            Place(self._part(first, process), self._part(second, thread))
            for first, process, second, thread in scanner.places
        ]
        facts: dict[str, Any] = scanner.facts
        self._members: list[tuple[int, int, int, int]] = facts["members"]
        self.lost = [LostRun(*run) for run in facts["lost"]]
        self.ending: str = facts["ending"]
        self.file_size: int = facts["size"]
        self.decoded: int = facts["decoded"]
        self.is_bare: bool = facts["is_bare"]
        self.has_list: bool = facts["has_list"]
        self.extra_commas: int = facts["extra_commas"]
        self.missing_commas: int = facts["missing_commas"]
        self.odd_series: int = facts["odd_series"]

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def member_places(self) -> list[tuple[int, int, int, int]]:
        """Of each other member of the outermost object begin and end of its key and of its value, in the file."""
        return self._members

    @cached_property
    def has_dur(self) -> Mask:
        """Which events have a duration, bool [n]."""
        found: Mask = (self.bits & Bit.HAS_DUR) != 0
        return found

    @cached_property
    def has_ts(self) -> Mask:
        """Which events have a time, bool [n]."""
        found: Mask = (self.bits & Bit.HAS_TS) != 0
        return found

    def of_phase(self, phase: str) -> Mask:
        """Return which events have a phase, bool [n]."""
        found: Mask = self.phase == ord(phase)
        return found

    def _decoded(self, texts: Sequence[bytes]) -> list[str]:
        found = []
        for raw in texts:
            text, is_sound = decoded(raw)
            self.damaged_texts += not is_sound
            found.append(text)
        return found

    def _part(self, kind: int, value: int) -> int | str | None:
        if kind == PlaceKind.NONE:
            return None
        return value if kind == PlaceKind.INTEGER else self.texts[value]


class TraceEventReader:
    """Takes a text piece by piece.

    Args:
        args: columns of arguments by name.
        members: columns of other keys of events by name.

    Example:
        >>> reader = TraceEventReader({"bytes": Wanted("integer", ("bytes",))})
        >>> reader.feed(b'[{"ph": "X", "name": "copy", "ts": 1.5, "dur": 2, "args": {"bytes": 8}}]')
        >>> events = reader.finish()
        >>> events.ts.tolist(), events.dur.tolist(), events.names, events.values["bytes"].value.tolist()
        ([1500], [2000], ['copy'], [8])
    """

    def __init__(self, args: Mapping[str, Wanted], members: Mapping[str, Wanted] = {}) -> None:
        self._columns = [*args, *members]
        kinds = [wanted.kind for wanted in (*args.values(), *members.values())]
        keys = [(key.encode(), number) for number, wanted in enumerate(args.values()) for key in wanted.keys]
        of_events = [
            (key.encode(), number) for number, wanted in enumerate(members.values(), len(args)) for key in wanted.keys
        ]
        self._scanner = TraceEventScanner(kinds, of_events, keys)

    def feed(self, data: bytes | memoryview) -> None:
        """Take the next bytes; they are copied."""
        if len(data):
            self._scanner.feed(np.frombuffer(data, np.uint8))

    def finish(self) -> TraceEvents:
        """End of the text: return what is in it."""
        self._scanner.finish()
        return TraceEvents(self._scanner, self._columns)


def decoded(raw: bytes) -> tuple[str, bool]:
    r"""Return a text of JSON, given without its quotes, and whether it is sound.

    Half a surrogate pair, bytes that are not UTF-8 and unknown escapes are not: what cannot be read is U+FFFD.

    Example:
        >>> decoded(rb"a\u00e4\n"), decoded(rb"\ud800")
        (('aä\n', True), ('\ufffd', False))
    """
    try:
        text = raw.decode()
        if "\\" not in text:
            return text, True
        text = json.loads(f'"{text}"', strict=False)
        text.encode()
    except UnicodeDecodeError:
        text = raw.decode(errors="replace")
        if "\\" in text:
            text, _ = decoded(text.encode())
        return text, False
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), False
    except ValueError:
        return text, False
    return text, True
