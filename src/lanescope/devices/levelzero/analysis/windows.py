"""Sums of the calls of CTF traces of any size: window after window, in memory that does not grow with the trace.

Files are read, not mapped: a file that shrinks meanwhile is an error, not the end of the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64
from lanescope.devices.levelzero.analysis.running_calls import CallEvents, RunningCalls
from lanescope.devices.levelzero.analysis.sums import Sums
from lanescope.devices.levelzero.analysis.tally import HOST
from lanescope.devices.levelzero.formats.foreign import events, streams
from lanescope.devices.levelzero.formats.foreign.packet_counters import PacketCounters
from lanescope.devices.levelzero.formats.host_apis import plain_name
from lanescope.devices.levelzero.interpret.call_matching import is_error
from lanescope.errors import InputError
from lanescope.trace import Dictionary
from lanescope.wire import tsdl

#: Events of one file that are looked at together.
WINDOW = 1 << 18
#: Bytes of all files that are in memory, if there are few; bytes of one file that are read at a time.
_BYTES, _LEAST_PIECE, _MOST_PIECE = 256 << 20, 1 << 20, 64 << 20
_COLUMNS = ("ts", "thread", "name", "is_exit", "failed")


@dataclass(slots=True)
class Tally:
    """Sums of a folder.

    Attributes:
        calls: by function.
        others: events that neither start nor end a call, by name.
        events: events in all.
        untimed: starts and ends of calls that have no time, so that they are in no sum.
        backwards: those earlier than the one before in their file: they count from its time.
        unmatched: returns without a call.
        lost: bytes that are no events.
        discarded: events that the producer discarded.
        missing_packets: packets that are missing by their numbers.
        unknown_counts: packets whose counter jumps impossibly far.
        wide: events whose process or thread has an impossible number.
    """

    calls: dict[str, Sums] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)
    events: int = 0
    untimed: int = 0
    backwards: int = 0
    unmatched: int = 0
    lost: int = 0
    discarded: int = 0
    missing_packets: int = 0
    unknown_counts: int = 0
    wide: int = 0


def tally(root: Path, *, window: int = WINDOW) -> Tally:
    """Sum the calls of all traces below a folder.

    Args:
        root: the folder.
        window: events of one file that are looked at together.

    Raises:
        InputError: a description cannot be read.

    Complexity:
        Linear in the events; memory for one window of each file, open calls and names.
    """
    return _Windows(root, window).tally()


class _File:
    """One stream, read from packet to packet.

    Args:
        path: the file.
        trace: its trace.
        number: its place among all files.
        window: events that are looked at together.
        piece: bytes that are read at a time; more where a packet is longer.
    """

    def __init__(self, path: Path, trace: streams.Trace, number: int, window: int, piece: int) -> None:
        self.trace, self.number, self._window = trace, number, window
        self._path, self._size = path, path.stat().st_size
        self._data = np.empty(0, np.uint8)
        #: Where ``_data`` begins in the file, and how much is read at a time.
        self._base, self._piece = 0, piece
        self._at = self._clock = self._step = 0
        #: Time of the last event that was read.
        self.latest = -(1 << 63)
        self.is_done = not self._size
        self.lost = 0
        self.counters = PacketCounters()
        #: Events that are read and not summed.
        self.waiting: list[CallEvents] = []

    def stream(self) -> streams.Stream:
        """Read the next window.

        Raises:
            InputError: the file has become shorter.
        """
        end = self._base + len(self._data)
        if end < self._size and self._at + self._step >= end:
            self._load()
        while True:
            begin = self._at - self._base
            walk = self.trace.reader.read(self._data, begin=begin, clock=self._clock, most=self._window)
            if self._base + len(self._data) >= self._size or self._is_whole(walk):
                break
            if not begin:
                self._piece *= 2
            self._load()
        # The next window has about as many bytes.
        self._step = (walk.end - begin) * 5 // 4
        self._at, self._clock = self._base + walk.end, walk.clock
        self.is_done = self._at >= self._size
        self.lost += walk.lost
        ts, timed = streams.times_of(self.trace, walk)
        made = streams.Stream(self.trace.source, "", self.trace, self.number, walk, ts, timed)
        self.counters.add(made)
        return made

    def _load(self) -> None:
        """Read on from where the next packet begins."""
        wanted = min(self._piece, self._size - self._at)
        data = np.empty(wanted, np.uint8)
        with self._path.open("rb") as file:
            file.seek(self._at)
            got = file.readinto(data.data)
        if got < wanted:
            raise InputError(
                f"{self._path}: became shorter while it was read",
                hint="pass a trace whose producer has ended, or a copy",
            )
        self._data, self._base = data, self._at

    def _is_whole(self, walk: tsdl.Walk) -> bool:
        """Return whether a window that more bytes follow ends with a packet that is complete."""
        if not len(walk.packets) or walk.packet("cut").any():
            return False
        end = int(walk.packet("offset")[-1]) + int(walk.packet("size")[-1]) // 8
        return walk.end < len(self._data) or end == walk.end


class _Windows:
    def __init__(self, root: Path, window: int) -> None:
        self._names = Dictionary()
        self._running = RunningCalls(self._names)
        self._made = Tally()
        self._processes: dict[tuple[str, int], int] = {}
        self._threads: dict[tuple[int, int], int] = {}
        self._codes: dict[int, tuple[Any, ...]] = {}
        found = [(trace, path) for trace, paths in streams.traces(root) for path in paths]
        piece = min(max(_BYTES // max(len(found), 1), _LEAST_PIECE), _MOST_PIECE)
        self._files = [_File(path, trace, number, window, piece) for number, (trace, path) in enumerate(found)]

    def tally(self) -> Tally:
        while any(not file.is_done or file.waiting for file in self._files):
            for file in self._files:
                if not file.is_done and not file.waiting:
                    self._fill(file)
            # What is later than the last event read of a file may still be preceded by others of that file.
            ends = [int(file.waiting[-1].ts[-1]) for file in self._files if file.waiting and not file.is_done]
            self._sum(list(self._taken(min(ends, default=None))))
        made = self._made
        texts = self._names.texts
        made.calls = {texts[code]: sums for (_, code), sums in self._running.now().items()}
        made.unmatched = self._running.unmatched
        made.lost = sum(file.lost for file in self._files)
        counters = PacketCounters.joined(file.counters for file in self._files)
        made.discarded, made.missing_packets, made.unknown_counts = counters
        return made

    def _fill(self, file: _File) -> None:
        """Read a window of a file."""
        stream = file.stream()
        stream.thread = streams.threads_of(stream, self._processes, self._threads)
        walk = stream.walk
        self._made.wide += stream.wide
        self._made.events += len(walk.kinds)
        codes, ends, results, names = self._kinds(stream)
        counts = np.bincount(walk.kinds, minlength=len(names))
        for row in np.flatnonzero((codes < 0) & (counts > 0)).tolist():
            self._made.others[names[row]] = self._made.others.get(names[row], 0) + int(counts[row])
        of_event = codes[walk.kinds]
        is_call = of_event >= 0
        rows = np.flatnonzero(is_call & stream.timed)
        self._made.untimed += int(np.count_nonzero(is_call)) - len(rows)
        kinds = walk.kinds[rows]
        failed = np.zeros(len(rows), np.bool_)
        for row, provider in results:
            here = np.flatnonzero(kinds == row)
            if len(here):
                failed[here] = self._failed(stream, row, provider, rows[here])
        if len(rows):
            # A clock that steps back within a stream must not change the order of its events.
            ts = np.maximum.accumulate(np.append(file.latest, stream.ts[rows]))[1:]
            self._made.backwards += int(np.count_nonzero(ts != stream.ts[rows]))
            file.latest = int(ts[-1])
            thread, function = stream.thread[rows].astype(np.int64), of_event[rows].astype(np.int64)
            file.waiting.append(CallEvents(ts, thread, function, ends[kinds], failed))

    def _kinds(self, stream: streams.Stream) -> tuple[Any, ...]:
        """Return function and end of each kind of events, kinds that have a result, and their names."""
        reader = stream.trace.reader
        known = self._codes.get(id(reader))
        if known is None:
            names = [kind.name for _, kind in reader.events]
            codes, ends = np.full(len(names), -1, np.int64), np.zeros(len(names), np.bool_)
            results = []
            for row, found in enumerate(events.functions_of(names)):
                if found is None:
                    continue
                function, is_end, provider = found
                codes[row], ends[row] = self._names.code(function), is_end
                if is_end and provider:
                    results.append((row, provider))
            known = self._codes[id(reader)] = codes, ends, results, names
        return known

    @staticmethod
    def _failed(stream: streams.Stream, row: int, provider: str, rows: Int64) -> npt.NDArray[np.bool_]:
        found = events.result_texts(stream, row, provider, rows)
        if found is None:
            return np.zeros(len(rows), np.bool_)
        texts, which = found
        failed: npt.NDArray[np.bool_] = is_error(texts)[which]
        return failed

    def _taken(self, until: int | None) -> Iterator[CallEvents]:
        """Take the events of all files up to a time; None: all."""
        for file in self._files:
            kept = []
            for part in file.waiting:
                end = len(part.ts) if until is None else int(np.searchsorted(part.ts, until, side="right"))
                if end:
                    yield _columns(part, slice(0, end))
                if end < len(part.ts):
                    kept.append(_columns(part, slice(end, None)))
            file.waiting = kept

    def _sum(self, parts: list[CallEvents]) -> None:
        """Sum the events of a window of all files, by time."""
        if not parts:
            return
        joined = CallEvents(*(np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS))
        if len(parts) > 1:
            joined = _columns(joined, np.argsort(joined.ts, kind="stable"))
        self._running.add(joined)


def _columns(events: CallEvents, rows: slice | Int64) -> CallEvents:
    return CallEvents(*(getattr(events, name)[rows] for name in _COLUMNS))


def rows_of(found: Tally) -> list[tuple[Any, ...]]:
    """Return a row for each function, the largest total first.

    It is section, name, calls, errors, open, total, average, min, max.
    """
    made = []
    for name, sums in sorted(found.calls.items(), key=lambda item: (-item[1].total, item[0])):
        if sums.count:
            parts = sums.count, sums.errors, sums.open, sums.total, sums.average, sums.min, sums.max
            made.append((HOST, plain_name(name), *parts))
    return made
