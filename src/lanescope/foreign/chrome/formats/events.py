"""Events as columns, read window by window, and their texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.foreign.chrome.formats.layout import HAS_TIME, METADATA, MOST_CHARACTERS, PADDING
from lanescope.source import Source

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]

#: Bytes that are read at a time: larger only where one event, or what a key holds, is.
WINDOW = 4 << 20

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class Texts:
    """Texts of a file by code.

    Attributes:
        texts: as they read; the last is "", so that code -1 has one.
        bad: how many are not UTF-8, or hold halves of characters or unknown escapes: replaced.
        long: how many are cut.
    """

    texts: list[str] = field(default_factory=list)
    bad: int = 0
    long: int = 0

    @classmethod
    def of(cls, raw: Iterable[bytes]) -> Texts:
        """Decode texts, whose escapes stand as in the file."""
        made = cls()
        for text in raw:
            made.texts.append(made.decoded(text))
        made.texts.append("")
        return made

    def decoded(self, raw: bytes) -> str:
        """Return a text as it reads."""
        is_bad = False
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text, is_bad = raw.decode(errors="replace"), True
        if "\\" in text:
            try:
                text = json.loads(f'"{text}"', strict=False)
            except ValueError:
                is_bad = True
            if _SURROGATE.search(text):
                text, is_bad = _SURROGATE.sub("�", text), True
        self.bad += is_bad
        if len(text) > MOST_CHARACTERS:
            self.long += 1
            text = text[:MOST_CHARACTERS]
        return text


class EventFile:
    """Reads a file piece by piece; memory is bounded by its events and by the largest of them."""

    def __init__(self) -> None:
        self._reader = core.TraceEventReader()
        self._window = np.zeros(WINDOW + PADDING, np.uint8)
        self._filled = 0
        self._parts: list[dict[str, Array]] = []

    def feed(self, data: memoryview) -> None:
        """Take the next bytes."""
        piece = np.frombuffer(data, np.uint8)
        while len(piece):
            room = len(self._window) - PADDING - self._filled
            taken = piece[:room]
            self._window[self._filled : self._filled + len(taken)] = taken
            self._filled += len(taken)
            piece = piece[len(taken) :]
            if self._filled == len(self._window) - PADDING:
                self._read(is_last=False)

    def finish(self) -> Events:
        """Return what the file holds."""
        self._window[self._filled : self._filled + PADDING] = 0
        self._read(is_last=True)
        reader, self._window = self._reader, np.zeros(0, np.uint8)
        columns: dict[str, Array] = {}
        for name in list(self._parts[0]):
            columns[name] = np.concatenate([part.pop(name) for part in self._parts])
        texts = Texts.of(reader.texts())
        return Events(columns, texts, reader.lanes(), reader.entries(), reader.tally())

    def _read(self, *, is_last: bool) -> None:
        done = self._reader.feed(self._window, self._filled, is_last)
        self._parts.append(self._reader.take())
        left = self._filled - done
        if not done and not is_last:  # one event is larger than all of it
            grown = np.zeros(2 * self._filled + PADDING, np.uint8)
            grown[:left] = self._window[:left]
            self._window = grown
        else:
            self._window[:left] = self._window[done : self._filled].copy()
        self._filled = left


class Events:
    """Events of a file, a column by name.

    Attributes:
        offset, size: int64 and uint32 [n], place in the file.
        flags: uint32 [n], the phase and bits of ``layout``.
        ts, dur: int64 [n], ns; 0 where ``flags`` say that there is none.
        lane: int32 [n], of ``lanes``.
        name, category: int32 [n], codes of ``texts``; -1: none.
        args_begin, args_size: uint32 [n], place of the arguments from ``offset``; a size of 0: none are kept.
        id_row, id_value, id_kind: int64, uint64, uint8 [ids], ids of events, and likewise ``bind_``.
        series_row, series_name, series_value: int64, int32, float64 [samples], values of counters.
        phase: uint8 [n].
        by_phase: int64 [256], how many events there are of each phase.
        texts: by code.
        lanes: codes of process and thread.
        entries: key, begin and end of the other values of the outermost object.
        tally: what became of bytes outside of events.
    """

    def __init__(
        self,
        columns: dict[str, Array],
        texts: Texts,
        lanes: list[tuple[int, int]],
        entries: list[tuple[bytes, int, int]],
        tally: dict[str, int],
    ) -> None:
        self.offset, self.size, self.flags = (columns[name] for name in ("offset", "size", "flags"))
        self.ts, self.dur, self.lane = (columns[name] for name in ("ts", "dur", "lane"))
        self.name, self.category = columns["name"], columns["category"]
        self.args_begin, self.args_size = columns["args_begin"], columns["args_size"]
        self.id_row, self.id_value, self.id_kind = (columns[f"id_{name}"] for name in ("row", "value", "kind"))
        self.bind_row, self.bind_value, self.bind_kind = (columns[f"bind_{name}"] for name in ("row", "value", "kind"))
        self.series_row, self.series_name = columns["series_row"], columns["series_name"]
        self.series_value = columns["series_value"]
        self.texts, self.lanes, self.entries, self.tally = texts, lanes, entries, tally
        self.phase: npt.NDArray[np.uint8] = self.flags.astype(np.uint8)  # its low byte
        self.by_phase = np.bincount(self.phase, minlength=256)

    def __len__(self) -> int:
        return len(self.offset)

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

    def chunks(self) -> Iterator[memoryview]:
        """Yield all of it."""
        for begin in range(0, self.size, WINDOW):
            yield memoryview(self.read(begin, WINDOW))
