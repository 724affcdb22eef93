"""Sums of the calls of CTF traces of any size: window after window, in memory that does not grow with the trace."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64, group
from lanescope.common.pairing import pair_stack
from lanescope.devices.levelzero.analysis.sums import Sums, sums_of
from lanescope.devices.levelzero.formats.foreign import events, streams
from lanescope.devices.levelzero.formats.foreign.packet_counters import PacketCounters
from lanescope.devices.levelzero.formats.host_apis import plain_name
from lanescope.devices.levelzero.interpret.call_matching import is_error

#: Events of one file that are looked at together.
WINDOW = 1 << 18


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
    """One stream, read from packet to packet."""

    def __init__(self, path: Path, trace: streams.Trace, number: int, window: int) -> None:
        self.trace, self.number, self._window = trace, number, window
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self._data = np.frombuffer(self._map, np.uint8)
        self._at = self._clock = 0
        self._freed = 0
        #: Time of the last event that was read.
        self.latest = -(1 << 63)
        self.is_done = False
        self.lost = 0
        self.counters = PacketCounters()
        #: Events that are read and not summed: time, thread, function, whether they end it, whether they failed.
        self.waiting: list[tuple[Int64, ...]] = []

    def stream(self) -> streams.Stream:
        """Read the next window."""
        walk = self.trace.reader.read(self._data, begin=self._at, clock=self._clock, most=self._window)
        self._at, self._clock = walk.end, walk.clock
        self.is_done = self._at >= len(self._data)
        self.lost += walk.lost
        ts, timed = streams.times_of(self.trace, walk)
        made = streams.Stream(self.trace.source, "", self.trace, self.number, walk, ts, timed)
        self.counters.add(made)
        return made

    def free(self) -> None:
        """Give pages back that were read."""
        end = self._at & -mmap.PAGESIZE
        if end > self._freed:
            self._map.madvise(mmap.MADV_DONTNEED, self._freed, end - self._freed)
            self._freed = end


class _Windows:
    def __init__(self, root: Path, window: int) -> None:
        self._functions: dict[str, int] = {}
        self._sums: list[Sums] = []
        self._made = Tally()
        self._processes: dict[tuple[str, int], int] = {}
        self._threads: dict[tuple[int, int], int] = {}
        self._codes: dict[int, tuple[Any, ...]] = {}
        self._files: list[_File] = []
        for trace, paths in streams.traces(root):
            for path in paths:
                self._files.append(_File(path, trace, len(self._files), window))
        #: Calls that are open at the end of a window: time, thread, function.
        self._open: tuple[Int64, Int64, Int64] = (np.empty(0, np.int64),) * 3

    def tally(self) -> Tally:
        while any(not file.is_done or file.waiting for file in self._files):
            for file in self._files:
                if not file.is_done and not file.waiting:
                    self._fill(file)
            # What is later than the last event read of a file may still be preceded by others of that file.
            ends = [int(file.waiting[-1][0][-1]) for file in self._files if file.waiting and not file.is_done]
            self._sum(self._taken(min(ends, default=None)))
        made = self._made
        for name, number in self._functions.items():
            made.calls[name] = self._sums[number]
        for function in self._open[2].tolist():
            self._sums[function].count += 1
            self._sums[function].open += 1
        made.lost = sum(file.lost for file in self._files)
        made.discarded, made.missing_packets = PacketCounters.joined(file.counters for file in self._files)
        return made

    def _fill(self, file: _File) -> None:
        """Read a window of a file."""
        stream = file.stream()
        stream.thread = streams.threads_of(stream, self._processes, self._threads)
        walk = stream.walk
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
        failed = np.zeros(len(rows), np.int64)
        for row, provider in results:
            here = np.flatnonzero(kinds == row)
            if len(here):
                failed[here] = self._failed(stream, row, provider, rows[here])
        if len(rows):
            # A clock that steps back within a stream must not change the order of its events.
            ts = np.maximum.accumulate(np.append(file.latest, stream.ts[rows]))[1:]
            self._made.backwards += int(np.count_nonzero(ts != stream.ts[rows]))
            file.latest = int(ts[-1])
            file.waiting.append(
                (ts, stream.thread[rows].astype(np.int64), of_event[rows].astype(np.int64), ends[kinds], failed)
            )
        file.free()

    def _kinds(self, stream: streams.Stream) -> tuple[Any, ...]:
        """Return function and end of each kind of events, kinds that have a result, and their names."""
        reader = stream.trace.reader
        known = self._codes.get(id(reader))
        if known is None:
            names = [kind.name for _, kind in reader.events]
            codes, ends = np.full(len(names), -1, np.int64), np.zeros(len(names), np.int64)
            results = []
            for row, found in enumerate(events.functions_of(names)):
                if found is None:
                    continue
                function, is_end, provider = found
                codes[row], ends[row] = self._code(function), is_end
                if is_end and provider:
                    results.append((row, provider))
            known = self._codes[id(reader)] = codes, ends, results, names
        return known

    def _code(self, function: str) -> int:
        code = self._functions.setdefault(function, len(self._functions))
        if code == len(self._sums):
            self._sums.append(Sums())
        return code

    @staticmethod
    def _failed(stream: streams.Stream, row: int, provider: str, rows: Int64) -> npt.NDArray[np.bool_]:
        found = events.result_texts(stream, row, provider, rows)
        if found is None:
            return np.zeros(len(rows), np.bool_)
        texts, which = found
        failed: npt.NDArray[np.bool_] = is_error(texts)[which]
        return failed

    def _taken(self, until: int | None) -> Iterator[tuple[Int64, ...]]:
        """Take the events of all files up to a time; None: all."""
        for file in self._files:
            kept = []
            for part in file.waiting:
                end = len(part[0]) if until is None else int(np.searchsorted(part[0], until, side="right"))
                if end:
                    yield tuple(column[:end] for column in part)
                if end < len(part[0]):
                    kept.append(tuple(column[end:].copy() for column in part))
            file.waiting = kept

    def _sum(self, parts: Iterator[tuple[Int64, ...]]) -> None:
        """Pair the events of a window, with the calls that are open since those before."""
        before = self._open
        zeros = np.zeros(len(before[0]), np.int64)
        whole = [(*before, zeros, zeros), *parts]
        ts, thread, function, ends, failed = (np.concatenate(columns) for columns in zip(*whole, strict=True))
        if not len(ts):
            return
        order = np.argsort(ts, kind="stable")
        ts, thread, function, ends, failed = (column[order] for column in (ts, thread, function, ends, failed))
        pairs = pair_stack(thread, function, ends.astype(np.bool_))
        self._made.unmatched += len(pairs.unmatched)
        closed = pairs.end >= 0
        start, end = pairs.start[closed], pairs.end[closed]
        self._add(function[start], ts[end] - ts[start], failed[end] != 0)
        # A call that ends around another one leaves that one without a return, for ever.
        open_ = pairs.start[~closed]
        reach = np.full(len(ts), -1, np.int64)
        reach[start] = end
        by = np.argsort(thread, kind="stable")
        step = np.cumsum(np.diff(thread[by], prepend=thread[by[:1]]) != 0) * (len(ts) + 1)
        latest = np.maximum.accumulate(reach[by] + step)
        furthest = np.empty(len(ts), np.int64)
        furthest[by] = latest - step
        left = furthest[open_] > open_
        for number, count in enumerate(np.bincount(function[open_[left]], minlength=1).tolist()):
            if count:
                self._sums[number].count += count
                self._sums[number].open += count
        kept = open_[~left]
        self._open = ts[kept], thread[kept], function[kept]

    def _add(self, function: Int64, length: Int64, failed: npt.NDArray[np.bool_]) -> None:
        if not len(function):
            return
        groups = group([function], np.arange(len(function)))
        order, starts = groups.order, np.flatnonzero(groups.first)
        known = np.ones(len(order), np.bool_)
        for number, made in zip(
            function[order[starts]].tolist(), sums_of(starts, length[order], known, failed[order]), strict=True
        ):
            self._sums[number].add(made)


def rows_of(found: Tally) -> list[tuple[Any, ...]]:
    """Return a row for each function, the largest total first: name, calls, errors, open, total, average, min, max."""
    made = []
    for name, sums in sorted(found.calls.items(), key=lambda item: (-item[1].total, item[0])):
        if sums.count:
            parts = sums.count, sums.errors, sums.open, sums.total, sums.average, sums.min, sums.max
            made.append((plain_name(name), *parts))
    return made
