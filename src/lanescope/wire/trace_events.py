"""Trace events of JSON: columns of an object with the list ``traceEvents``, or of that list alone.

The native scanner reads the text piece by piece; here its columns get names and its texts become strings. What events
mean is up to those who read a format that is made of them.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
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
    """Properties of one event, above its phase."""

    HAS_TIME = 1 << 8
    HAS_DURATION = 1 << 9
    BAD_TIME = 1 << 10  # no number, or beyond 62 bits of nanoseconds
    BAD_DURATION = 1 << 11
    ROUNDED = 1 << 12  # a time has digits below a nanosecond
    REPEATED_KEY = 1 << 13  # a key comes twice: the last one counts
    TOO_DEEP = 1 << 14  # arguments are nested more than 100 levels deep
    ENCLOSING = 1 << 15  # ``bp`` is "e"
    FLOW_IN = 1 << 16
    FLOW_OUT = 1 << 17
    PROCESS_SCOPE = 1 << 18
    GLOBAL_SCOPE = 1 << 19
    HAS_ARGUMENTS = 1 << 20
    TEXT_TIME = 1 << 21  # the time is written as a text
    BAD_SERIES = 1 << 22  # a value of a counter is not a number
    HAS_ID = 1 << 23
    HAS_BIND_ID = 1 << 24
    HAS_STACK = 1 << 25  # refers to stack frames
    HAS_THREAD_TIME = 1 << 26
    HAS_FACTS = 1 << 27  # arguments begin with what our own writer says of an unusual event


#: Bits of the kind of an id.
NUMBER_ID, TEXT_ID, LOCAL_ID, GLOBAL_ID = 1, 2, 4, 8


class Wanted(NamedTuple):
    """A column of values of arguments.

    Attributes:
        kind: ``integer`` (also a text of digits; two's complement from 2^63 on), ``number``, ``text`` (any value, as it
            is written), ``triple`` (a list of one to three integers, missing ones are 1), ``boolean``.
        keys: names of the argument; of several in one event the last counts.
    """

    kind: str
    keys: tuple[str, ...]


class Place(NamedTuple):
    """A process and a thread: an integer, a text, or None."""

    process: int | str | None
    thread: int | str | None


class LostRun(NamedTuple):
    """Bytes that are neither an event nor a member.

    Attributes:
        begin, end: in the file.
        loss: ``broken`` and ``outside``: no JSON, in the list and outside of it; ``element``: an element of the list
            other than an event; ``cut``: the file ends in it; ``trailing``: it follows the end.
        is_in_list: whether they stand in the list.
    """

    begin: int
    end: int
    loss: str
    is_in_list: bool


@dataclass(frozen=True, slots=True)
class Ids:
    """Ids of the events that have one.

    Attributes:
        event: int64 [n], ascending numbers of events.
        value: uint64 [n], the number, also of a hexadecimal text; else the code of the text.
        kind: uint8 [n], bits: ``NUMBER_ID`` or ``TEXT_ID``, and ``LOCAL_ID`` or ``GLOBAL_ID``.
    """

    event: Int64
    value: npt.NDArray[np.uint64]
    kind: npt.NDArray[np.uint8]


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

    def find(self, events: Int64) -> tuple[Int64, Mask]:
        """Return where events have their value, int64 [n], and which of them have one, bool [n].

        Args:
            events: int64 [n], ascending.
        """
        if not len(self.event):
            return np.zeros(len(events), np.int64), np.zeros(len(events), np.bool_)
        at = np.minimum(np.searchsorted(self.event, events), len(self.event) - 1)
        return at, self.event[at] == events

    def of(self, events: Int64, missing: int) -> npt.NDArray[Any]:
        """Return the values of events, [n], and ``missing`` for those without; ``events`` as ``find`` takes them."""
        at, has = self.find(events)
        return np.where(has, self.value[at], missing) if len(self.event) else np.full(len(events), missing)


#: Columns of ``TraceEvents`` with a value for each event.
_COLUMNS = ("begin", "size", "flags", "phase", "name", "category", "ts", "dur", "place", "args_begin", "args_size")
_SIZES = ("size", "args_begin", "args_size")


class Texts:
    """Texts and places by code, as many as were read so far; more are added at the end of the same lists.

    Attributes:
        names, categories, texts, places, place_texts, damaged: as ``TraceEvents`` has them.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.categories: list[str] = []
        self.texts: list[str] = []
        self.places: list[Place] = []
        self.place_texts: list[tuple[str, str]] = []
        self.damaged = 0

    def update(self, scanner: TraceEventScanner) -> None:
        """Add what a scanner has read since."""
        for known, raw in (
            (self.names, scanner.names),
            (self.categories, scanner.categories),
            (self.texts, scanner.texts),
        ):
            for each in raw[len(known) :]:
                text, is_sound = decoded(each)
                self.damaged += not is_sound
                known.append(text)
        for parts in scanner.places[len(self.places) :]:
            first, last = ("" if code < 0 else self.texts[code] for code, _ in parts)
            self.place_texts.append((first, last))
            process, thread = (
                None if code < 0 else self.texts[code] if number is None else number for code, number in parts
            )
            self.places.append(Place(process, thread))


class TraceEvents:
    """Events of a text, in the order of the text: all of them, or those of a part of it.

    Attributes:
        begin: int64 [n], offset of the event in the file.
        size: uint32 [n], its bytes.
        flags: uint32 [n], the phase in the low byte, see ``Bit``.
        phase: uint8 [n], the character of its phase; 0: none.
        by_phase: int64 [256], how many events there are of each phase.
        name, category: int32 [n], codes of ``names`` and ``categories``; -1: none.
        ts, dur: int64 [n], ns: 1000 times the number in the file, rounded half up; 0 without.
        place: int32 [n], index of ``places``.
        args_begin, args_size: uint32 [n], place of the arguments from ``begin`` on; 0 without.
        ids, bind_ids: of the events that have some.
        values: values of arguments by name of the column.
        series: event (int64), code of ``texts`` (int32) and value (float64) of the values of counters.
        names, categories, texts: by code; of parts of a text they are the same lists, and grow with each part.
        damaged_texts: how many of them have bytes or escapes that no text has; they hold U+FFFD instead.
        places: process and thread of each place; whole numbers without quotes are numbers.
        place_texts: the same as texts, empty without one.
        lost: bytes that cannot be read; this and what follows is of the text so far.
        ending: ``open``: there is more of it; ``whole``; ``unterminated``: the list or the object has no end;
            ``foreign``: it is other text.
        file_size, decoded: bytes, all and those that are not lost.
        is_bare: it is a list alone.
        has_list: there is a list of events.
        extra_commas: how many commas are too many.
        missing_commas, missing_member_commas: how many are missing between elements of the list, and between members.
        lists: how many lists of events there are.
        has_trailing_comma: the list ends with one.
        odd_series: values of counters that are not numbers.
    """

    def __init__(self, scanner: TraceEventScanner, columns: Sequence[str], texts: Texts) -> None:
        events: dict[str, Any] = scanner.take()
        self.begin: Int64 = events["begin"]
        self.size: npt.NDArray[np.uint32] = events["size"]
        self.flags: npt.NDArray[np.uint32] = events["flags"]
        self.phase: npt.NDArray[np.uint8] = self.flags.astype(np.uint8)
        self.by_phase: Int64 = events["by_phase"]
        self.name: npt.NDArray[np.int32] = events["name"]
        self.category: npt.NDArray[np.int32] = events["category"]
        self.ts: Int64 = events["ts"]
        self.dur: Int64 = events["dur"]
        self.place: npt.NDArray[np.int32] = events["place"]
        self.args_begin: npt.NDArray[np.uint32] = events["args_begin"]
        self.args_size: npt.NDArray[np.uint32] = events["args_size"]
        self.ids, self.bind_ids = Ids(*events["ids"]), Ids(*events["bind_ids"])
        self.values = {name: ArgValues(*found) for name, found in zip(columns, events["values"], strict=True)}
        self.series: tuple[Int64, npt.NDArray[np.int32], npt.NDArray[np.float64]] = events["series"]
        texts.update(scanner)
        self.names, self.categories, self.texts = texts.names, texts.categories, texts.texts
        self.places, self.place_texts = texts.places, texts.place_texts
        self.damaged_texts = texts.damaged
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
        self.missing_member_commas: int = facts["missing_member_commas"]
        self.lists: int = facts["lists"]
        self.has_trailing_comma: bool = facts["has_trailing_comma"]
        self.odd_series: int = facts["odd_series"]

    def __len__(self) -> int:
        return len(self.begin)

    def taken(self, rows: Int64, values: Sequence[str]) -> TraceEvents:
        """Return some of the events alone, without sizes, places of arguments, values of counters and ids of bindings.

        Args:
            rows: int64 [n], ascending.
            values: the columns of arguments that are taken along.
        """
        found = copy(self)
        for derived in ("has_dur", "has_ts"):
            found.__dict__.pop(derived, None)
        for name in _COLUMNS:
            setattr(found, name, getattr(self, name)[rows[:0] if name in _SIZES else rows])
        found.by_phase = np.bincount(found.phase, minlength=256)
        number = np.full(len(self), -1, np.int64)
        number[rows] = np.arange(len(rows))

        def mine(event: Int64) -> tuple[Mask, Int64]:
            there = number[event]
            return there >= 0, there[there >= 0]

        has_id, event = mine(self.ids.event)
        found.ids = Ids(event, self.ids.value[has_id], self.ids.kind[has_id])
        found.bind_ids = Ids(self.ids.event[:0], self.ids.value[:0], self.ids.kind[:0])
        found.series = self.series[0][:0].copy(), self.series[1][:0].copy(), self.series[2][:0].copy()
        found.values = {}
        for name in values:
            given = self.values[name]
            has, event = mine(given.event)
            found.values[name] = ArgValues(event, given.value[has], mine(given.odd)[1])
        return found

    @staticmethod
    def joined(parts: Sequence[TraceEvents]) -> TraceEvents:
        """Return the events of several parts of one text, with what is known at the last; the parts lose their columns.

        Args:
            parts: as ``taken`` returns them.
        """
        if len(parts) == 1:
            return parts[0]
        counts = [*map(len, parts)]
        found = copy(parts[-1])
        for derived in ("has_dur", "has_ts"):
            found.__dict__.pop(derived, None)
        for name in _COLUMNS:
            setattr(found, name, np.concatenate([part.__dict__.pop(name) for part in parts]))
        found.by_phase = np.sum([part.by_phase for part in parts], axis=0)
        firsts = np.cumsum([0, *counts])[:-1].tolist()

        def numbered(events: Sequence[Int64]) -> Int64:
            return np.concatenate([event + first for event, first in zip(events, firsts, strict=True)])

        ids = [part.ids for part in parts]
        found.ids = Ids(
            numbered([each.event for each in ids]),
            np.concatenate([each.value for each in ids]),
            np.concatenate([each.kind for each in ids]),
        )
        found.values = {}
        for name in [*parts[-1].values]:
            of = [part.values.pop(name) for part in parts]
            value = np.concatenate([each.value for each in of])
            found.values[name] = ArgValues(
                numbered([each.event for each in of]), value, numbered([each.odd for each in of])
            )
        return found

    @property
    def member_places(self) -> list[tuple[int, int, int, int]]:
        """Of each other member of the outermost object begin and end of its key and of its value, in the file."""
        return self._members

    @cached_property
    def has_dur(self) -> Mask:
        """Which events have a duration, bool [n]."""
        return self.has(Bit.HAS_DURATION)

    @cached_property
    def has_ts(self) -> Mask:
        """Which events have a time, bool [n]."""
        return self.has(Bit.HAS_TIME)

    def has(self, bit: Bit) -> Mask:
        """Return which events have a property, bool [n]."""
        found: Mask = (self.flags & np.uint32(bit)) != 0
        return found

    def of_phase(self, phase: str) -> Mask:
        """Return which events have a phase, bool [n]."""
        found: Mask = self.phase == ord(phase)
        return found


class TraceEventReader:
    """Takes a text piece by piece.

    Args:
        args: columns of arguments by name.
        expected: about how many bytes of text there will be until their events are taken, for which room is made.

    Example:
        >>> reader = TraceEventReader({"bytes": Wanted("integer", ("bytes",))})
        >>> reader.feed(b'[{"ph": "X", "name": "copy", "ts": 1.5, "dur": 2, "args": {"bytes": 8}}]')
        >>> events = reader.finish()
        >>> events.ts.tolist(), events.dur.tolist(), events.names, events.values["bytes"].value.tolist()
        ([1500], [2000], ['copy'], [8])
    """

    def __init__(self, args: Mapping[str, Wanted] = {}, *, expected: int = 0) -> None:
        self._columns = [*args]
        kinds = [wanted.kind for wanted in args.values()]
        keys = [(key.encode(), number) for number, wanted in enumerate(args.values()) for key in wanted.keys]
        self._scanner = TraceEventScanner(kinds, keys)
        self._scanner.expect(expected)
        self._texts = Texts()

    def feed(self, data: bytes | memoryview) -> None:
        """Take the next bytes; they are copied."""
        if len(data):
            self._scanner.feed(np.frombuffer(data, np.uint8))

    def take(self) -> TraceEvents:
        """Return the events that were read since this was asked last."""
        return TraceEvents(self._scanner, self._columns, self._texts)

    def finish(self) -> TraceEvents:
        """End of the text: return what is in it and was not taken yet."""
        self._scanner.finish()
        return self.take()


class WindowReader:
    """Takes a text piece by piece, and hands its events over when so many bytes of it were read.

    Args:
        args: columns of arguments by name.
        size: bytes of the whole text.
        whole: up to this size all events are handed over at the end.
        window: bytes of text of a part of a larger text; events are never cut.
    """

    def __init__(self, args: Mapping[str, Wanted], size: int, whole: int, window: int) -> None:
        self._window = window if size > whole else max(size, whole) + 1
        self._reader = TraceEventReader(args, expected=min(size, self._window))
        self._fed = 0

    def feed(self, data: bytes | memoryview) -> TraceEvents | None:
        """Read the next bytes; return the events of the part that they complete."""
        self._reader.feed(data)
        self._fed += len(data)
        if self._fed < self._window:
            return None
        self._fed = 0
        return self._reader.take()

    def finish(self) -> TraceEvents:
        """Return the events of the last part."""
        return self._reader.finish()


def read_windows(
    read: Callable[[int, int], bytes | memoryview], size: int, window: int, args: Mapping[str, Wanted], piece: int
) -> Iterator[TraceEvents]:
    """Yield the events of a text by windows of so many bytes of it.

    Args:
        read: returns bytes of the text from an offset on.
        size: of the text.
        window: bytes.
        args: columns of arguments by name.
        piece: bytes that are read at a time.
    """
    reader = WindowReader(args, size, 0, window)
    for begin in range(0, size, piece):
        events = reader.feed(read(begin, min(piece, size - begin)))
        if events is not None:
            yield events
    yield reader.finish()


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
