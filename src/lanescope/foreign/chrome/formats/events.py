"""Events as columns, and their texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.foreign.chrome.formats.layout import HAS_TIME, METADATA, MOST_CHARACTERS
from lanescope.source import Source
from lanescope.wire.trace_events import Bit, TraceEventReader, TraceEvents, decoded

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]

#: Bytes that are read at a time: larger only where one event is.
WINDOW = 4 << 20


class Events:
    """Events of a file, a column by name.

    Args:
        read: what the file holds.
        file: its text.

    Attributes:
        offset, size: int64 and uint32 [n], place in the file.
        flags: uint32 [n], the phase and bits of ``lanescope.wire.trace_events.Bit``.
        ts, dur: int64 [n], ns; 0 where ``flags`` say that there is none.
        lane: int32 [n], of ``lanes``.
        name, category: int32 [n], codes of ``names`` and ``categories``; -1: none.
        args_begin, args_size: uint32 [n], place of the arguments from ``offset``; a size of 0: none are kept.
        id_row, id_value, id_kind: int64, uint64, uint8 [ids], ids of events, and likewise ``bind_``.
        series_row, series_name, series_value: int64, int32, float64 [samples], values of counters.
        phase: uint8 [n].
        by_phase: int64 [256], how many events there are of each phase.
        names, categories, texts: by code; the last is "", so that code -1 has one.
        bad_texts: how many are not UTF-8, or hold halves of characters or unknown escapes: replaced.
        long_texts: how many are cut.
        lanes: process and thread as texts, empty if not given.
        entries: key, begin and end of the other values of the outermost object.
        read: the same as they were read, with what became of bytes outside of events.
        first: number of the first event in the file, where all from there on are here.
        number: int64 [n], numbers of the events in the file.
    """

    def __init__(self, read: TraceEvents, file: FileText, first: int = 0) -> None:
        self.read, self.first = read, first
        self.offset, self.size, self.flags, self.phase = read.begin, read.size, read.flags, read.phase
        self.ts, self.dur, self.lane = read.ts, read.dur, read.place
        self.name, self.category = read.name, read.category
        deep = read.has(Bit.TOO_DEEP)
        self.args_begin = read.args_begin
        self.args_size = np.where(deep, np.uint32(0), read.args_size) if deep.any() else read.args_size
        self.id_row, self.id_value, self.id_kind = read.ids.event, read.ids.value, read.ids.kind
        self.bind_row, self.bind_value, self.bind_kind = read.bind_ids.event, read.bind_ids.value, read.bind_ids.kind
        self.series_row, self.series_name, self.series_value = read.series
        self.long_texts = 0
        self.names, self.categories, self.texts = map(self._cut, (read.names, read.categories, read.texts))
        self.lanes = [(process[:MOST_CHARACTERS], thread[:MOST_CHARACTERS]) for process, thread in read.place_texts]
        self.bad_texts = read.damaged_texts
        self.entries: list[tuple[str, int, int]] = []
        for key_begin, key_end, begin, end in read.member_places:
            key, is_sound = decoded(file.read(key_begin, min(key_end - key_begin, WINDOW)))
            self.bad_texts += not is_sound
            self.entries.append((key[:MOST_CHARACTERS], begin, end))
        self.by_phase = read.by_phase

    def _cut(self, texts: list[str]) -> list[str]:
        long = [number for number, text in enumerate(texts) if len(text) > MOST_CHARACTERS]
        self.long_texts += len(long)
        found = [*texts, ""]
        for number in long:
            found[number] = texts[number][:MOST_CHARACTERS]
        return found

    def __len__(self) -> int:
        return len(self.offset)

    @cached_property
    def number(self) -> Int64:  # noqa: D102
        return np.arange(self.first, self.first + len(self))

    def taken(self, rows: Int64) -> Events:
        """Return some of the events, without values of counters and ``read``, which has the columns of all.

        Args:
            rows: int64 [n], ascending.
        """
        found = copy(self)
        del found.read
        place = np.full(len(self), -1, np.int64)
        place[rows] = np.arange(len(rows))
        for name in _COLUMNS:
            setattr(found, name, getattr(self, name)[rows])
        for name in ("id", "bind"):
            at = place[getattr(self, f"{name}_row")]
            setattr(found, f"{name}_row", at[at >= 0])
            for part in ("value", "kind"):
                setattr(found, f"{name}_{part}", getattr(self, f"{name}_{part}")[at >= 0])
        found.series_row, found.series_name, found.series_value = (
            self.series_row[:0].copy(),
            self.series_name[:0].copy(),
            self.series_value[:0].copy(),
        )
        found.__dict__["number"] = self.number[rows]
        found._forget()
        return found

    @staticmethod
    def joined(parts: Sequence[Events], last: Events) -> Events:
        """Return the events of several parts of one file, as ``taken`` returns them; ``last``: of its end."""
        found = copy(last)
        firsts = np.cumsum([0, *map(len, parts)])[:-1].tolist()
        for name in (*_COLUMNS, "number"):
            found.__dict__[name] = np.concatenate([getattr(part, name) for part in parts])
        for name in ("id", "bind"):
            rows = [getattr(part, f"{name}_row") + first for part, first in zip(parts, firsts, strict=True)]
            setattr(found, f"{name}_row", np.concatenate(rows))
            for column in (f"{name}_value", f"{name}_kind"):
                setattr(found, column, np.concatenate([getattr(part, column) for part in parts]))
        found._forget()
        return found

    def _forget(self) -> None:
        self.by_phase = np.bincount(self.phase, minlength=256)
        for derived in ("has_times", "metadata_has_no_time"):
            self.__dict__.pop(derived, None)

    def of_phase(self, *phases: int) -> Int64:
        """Return the rows of some phases."""
        there = [phase for phase in phases if self.by_phase[phase]]
        if not there:
            return np.empty(0, np.int64)
        wanted = self.phase == there[0]
        for phase in there[1:]:
            wanted |= self.phase == phase
        return np.flatnonzero(wanted)

    @cached_property
    def has_times(self) -> bool:
        """Whether all events but metadata have a time."""
        timed = int(np.count_nonzero(self.flags & HAS_TIME))
        return timed == len(self) - int(self.by_phase[METADATA]) and self.metadata_has_no_time

    @cached_property
    def metadata_has_no_time(self) -> bool:
        """Whether no metadata event has a time."""
        return not bool((self.flags[self.of_phase(METADATA)] & HAS_TIME).any())

    def arguments(self, rows: Int64, file: FileText) -> Iterator[bytes]:
        """Yield the arguments of events as they stand in the file; empty where none are kept."""
        return file.at(self.offset[rows] + self.args_begin[rows], self.args_size[rows].astype(np.int64))


class FileText:
    """The text of a file, read again where something in it is asked for.

    Args:
        source: the file; it may be closed later.
    """

    def __init__(self, source: Source) -> None:
        self._reader, self.size = source.reader(), source.size

    def at(self, begin: Int64, size: Int64) -> Iterator[bytes]:
        """Yield pieces of the file, which is read in large blocks where they follow one another.

        Args:
            begin: int64 [n].
            size: int64 [n], bytes; 0: an empty piece, whatever its begin.
        """
        at, block = 0, b""
        for where, length in zip(begin.tolist(), size.tolist(), strict=True):
            if not length:
                yield b""
                continue
            if where < at or where + length > at + len(block):
                at, block = where, self.read(where, max(length, WINDOW))
            yield block[where - at : where - at + length]

    def read(self, begin: int, size: int) -> bytes:
        """Return bytes of the file, fewer at its end."""
        return self._reader.at(begin, min(size, self.size - begin)).tobytes()

    def read_view(self, begin: int, size: int) -> memoryview:
        """Return bytes of the file without a copy of them."""
        return memoryview(self._reader.at(begin, min(size, self.size - begin)).data)

    def chunks(self) -> Iterator[memoryview]:
        """Yield all of it."""
        for begin in range(0, self.size, WINDOW):
            yield memoryview(self.read(begin, WINDOW))


#: Columns with a value for each event.
_COLUMNS = (
    "offset", "size", "flags", "phase", "ts", "dur", "lane", "name", "category", "args_begin", "args_size",
)  # fmt: skip


def read_events(file: FileText) -> Events:
    """Return the events of a file."""
    reader = TraceEventReader(expected=file.size)
    for chunk in file.chunks():
        reader.feed(chunk)
    return Events(reader.finish(), file)
