"""The core's state of some sources, the arrays that it writes, and what there is to do of a block for each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.aie.interpret.growing import GrowingColumn

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
U8 = npt.NDArray[np.uint8]
I32 = npt.NDArray[np.int32]

_EVENTS = 1 << 12
#: Packets of a shard that a thread decodes at a time: few, so that shards end together.
_STEP = 1 << 9
#: More than any block has.
_ALL = 1 << 40
#: Points for which there is room before there are any.
_FEW = 1 << 12
#: Most memory of released batches that is kept for reuse, in bytes.
_KEPT_BYTES = 64 << 20
_LARGE_BYTES = 1 << 20
_FREE: list[npt.NDArray[np.uint8]] = []


class _PooledMemory:
    """Memory that goes back to where it came from when the last array on it is gone."""

    __slots__ = ("__array_interface__", "_memory")

    def __init__(self, memory: U8) -> None:
        self._memory = memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        if sum(len(memory) for memory in _FREE) + len(self._memory) <= _KEPT_BYTES:
            _FREE.append(self._memory)


def _take_from_pool(size: int) -> U8:
    """Return memory, uint8 [size]: what was used before if there is any, since the first touch of a page is dear."""
    if size < _LARGE_BYTES:
        return np.empty(size, np.uint8)
    for number, memory in enumerate(_FREE):
        if len(memory) == size:
            try:
                return np.asarray(_PooledMemory(_FREE.pop(number)))
            except IndexError:  # another thread was faster
                break
    return np.asarray(_PooledMemory(np.empty(size, np.uint8)))


class Arena:
    """Rows as the core writes them, one array a column, filled over several calls.

    Attributes:
        columns: what is left of the arrays since rows were given away.
        used: rows of them that are written.
        given: rows that were given away.
        recent: rows that the last block brought: as many as the next one is likely to bring.
    """

    __slots__ = ("columns", "given", "recent", "used")

    def __init__(self, columns: tuple[npt.NDArray[Any], ...]) -> None:
        self.columns = columns
        self.used = 0
        self.given = 0
        self.recent = 0

    @classmethod
    def of(cls, rows: int, *dtypes: npt.DTypeLike) -> Arena:
        """Return one with room for so many rows."""
        sizes = [rows * np.dtype(dtype).itemsize for dtype in dtypes]
        return cls(tuple(_take_from_pool(size).view(dtype) for size, dtype in zip(sizes, dtypes, strict=True)))

    @property
    def capacity(self) -> int:
        """Rows that may still be written."""
        return len(self.columns[0]) - self.used

    def add(self, rows: int) -> None:
        """Count rows that were written."""
        self.used += rows
        self.recent += rows

    def rest(self) -> tuple[npt.NDArray[Any], ...]:
        """Return the free part of each array."""
        return tuple(column[self.used :] for column in self.columns)

    def take(self) -> tuple[npt.NDArray[Any], ...]:
        """Give away the rows so far; what is left of the arrays is filled next."""
        taken = tuple(column[: self.used] for column in self.columns)
        self.columns, self.given, self.used = self.rest(), self.given + self.used, 0
        return taken


class Shard:
    """Some of the sources: their state in the core, and what it writes.

    Attributes:
        number: of the shard; source ``n`` of it is source ``n * core.AIE_PARTS + number`` of the dump.
        timeline: the state.
        slices: begin, length and tag of slices.
        points: tick, count, value and tag of points.
        events: what the core notes.
        segments: recording in the shard -> recording in the dump.
    """

    __slots__ = ("events", "number", "points", "segments", "slices", "timeline")

    def __init__(self, number: int, timeline: core.AieTimeline) -> None:
        self.number = number
        self.timeline = timeline
        self.events = np.empty((_EVENTS, core.AIE_EVENT_COLUMNS), np.int64)
        self.segments = GrowingColumn()
        self.slices, self.points = Arena(()), Arena(())

    def reserve(self, rows: int) -> None:
        """Begin new arrays of so many rows; few for points as long as there were none."""
        had_points = self.points.used or self.points.given
        self.slices = Arena.of(rows, np.int64, np.int64, np.uint32)
        self.points = Arena.of(rows if had_points else _FEW, np.int64, np.int64, np.uint32, np.uint32)

    @property
    def is_full(self) -> bool:
        """Whether the core would write nothing more: new arrays have to be reserved."""
        return not self._has_room(0, 0)

    @property
    def has_room(self) -> bool:
        """Whether a block like the last one fits; else new arrays are better reserved before it than amid it."""
        return self._has_room(self.slices.recent, self.points.recent)

    def _has_room(self, slices: int, points: int) -> bool:
        timeline = self.timeline
        return (
            self.slices.capacity >= timeline.SLICE_ROOM + slices
            and self.points.capacity >= timeline.POINT_ROOM + points
        )

    def outputs(self) -> tuple[npt.NDArray[Any], ...]:
        """Return what the core writes to, in its order."""
        return (*self.slices.rest(), *self.points.rest(), self.events)

    def take(self, slices: int, points: int, events: int) -> I64:
        """Count what was written; return a copy of what was noted."""
        self.slices.add(slices)
        self.points.add(points)
        return self.events[:events].copy()


class Decoding:
    """Work of a shard on one block.

    Args:
        shard: the sources that it concerns.
        words: uint32 [n], the block.
        entries: int32 [m, 4], where in it their packets lie.
        base: offset of the block in a binary dump.
        offsets: int64 [n], of each word in text; empty else.
    """

    __slots__ = ("_base", "_done", "_entries", "_offsets", "_words", "shard")

    def __init__(self, shard: Shard, words: U32, entries: I32, base: int, offsets: I64) -> None:
        self.shard = shard
        self._words, self._entries, self._base, self._offsets = words, entries, base, offsets
        self._done = 0

    def task(self) -> core.AieTask:
        """Return it as a task of the core, which writes to the arrays that the shard has now."""
        shard = self.shard
        return core.AieTask(shard.timeline, self._words, self._entries, self._base, self._offsets, *shard.outputs())

    def take(self, task: core.AieTask) -> I64:
        """Count what the core wrote; return what it noted, int64 [n, columns of an event]."""
        noted = np.empty((task.event_count, core.AIE_EVENT_COLUMNS), np.int64)
        task.events(noted)
        self.shard.slices.add(task.slices)
        self.shard.points.add(task.points)
        self._done = task.entries
        return noted

    @property
    def left(self) -> int:
        """Entries that are not decoded."""
        return len(self._entries) - self._done

    def rest(self) -> Decoding:
        """Return what is left to do."""
        return Decoding(self.shard, self._words, self._entries[self._done :], self._base, self._offsets)


class Work:
    """Work of all shards on one block, taken by any free thread: what a shard writes to must not change meanwhile."""

    def __init__(self, decodings: list[Decoding]) -> None:
        self.decodings = decodings
        self._tasks = [decoding.task() for decoding in decodings]
        self._helping: list[Future[None]] = []
        self._step = _ALL

    def begin(self, helpers: ThreadPoolExecutor, count: int) -> None:
        """Have others begin with it."""
        self._step = _STEP
        helping = min(count, len(self._tasks) - 1)
        self._helping = [helpers.submit(core.aie_work, self._tasks, _STEP) for _ in range(helping)]

    def finish(self) -> list[tuple[Shard, I64]]:
        """Do what is left, and wait for the others; return what the core noted, by shard."""
        if self._tasks:
            core.aie_work(self._tasks, self._step)
        for helping in self._helping:
            helping.result()
        pairs = zip(self.decodings, self._tasks, strict=True)
        return [(decoding.shard, decoding.take(task)) for decoding, task in pairs]
