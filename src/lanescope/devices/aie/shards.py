"""The core's state of some sources, and the arrays that it writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]

_EVENTS = 1 << 12


class Arena:
    """Rows as the core writes them, one array a column, filled over several calls."""

    __slots__ = ("columns", "used")

    def __init__(self, columns: tuple[npt.NDArray[Any], ...]) -> None:
        self.columns = columns
        self.used = 0

    @classmethod
    def of(cls, rows: int, *dtypes: npt.DTypeLike) -> Arena:
        """Return one with room for so many rows."""
        return cls(tuple(np.empty(rows, dtype) for dtype in dtypes))

    @property
    def room(self) -> int:
        """Rows that may still be written."""
        return len(self.columns[0]) - self.used

    def rest(self) -> tuple[npt.NDArray[Any], ...]:
        """Return the free part of each array."""
        return tuple(column[self.used :] for column in self.columns)

    def take(self) -> tuple[npt.NDArray[Any], ...]:
        """Give away the rows so far; what is left of the arrays is filled next."""
        taken = tuple(column[: self.used] for column in self.columns)
        self.columns, self.used = self.rest(), 0
        return taken


class Shard:
    """Some of the sources: their state in the core, and what it writes.

    Attributes:
        timeline: the state.
        slices: begin, length and tag of slices.
        points: tick, count, value and tag of points.
        events: what the core notes.
        segments: recording in the shard -> recording in the dump.
    """

    __slots__ = ("events", "points", "segments", "slices", "timeline")

    def __init__(self, timeline: core.AieTimeline) -> None:
        self.timeline = timeline
        self.events = np.empty((_EVENTS, core.AIE_EVENT_COLUMNS), np.int64)
        self.segments = np.empty(0, np.int64)

    def reserve(self, rows: int) -> None:
        """Begin new arrays of so many rows."""
        self.slices = Arena.of(rows, np.int64, np.int64, np.uint32)
        self.points = Arena.of(rows, np.int64, np.int64, np.uint32, np.uint32)

    @property
    def has_room(self) -> bool:
        """Whether the core would write anything; else new arrays have to be reserved."""
        return self.slices.room >= self.timeline.SLICE_ROOM and self.points.room >= self.timeline.POINT_ROOM

    def outputs(self) -> tuple[npt.NDArray[Any], ...]:
        """Return what the core writes to, in its order."""
        return (*self.slices.rest(), *self.points.rest(), self.events)

    def take(self, slices: int, points: int, events: int) -> I64:
        """Count what was written; return a copy of what was noted."""
        self.slices.used += slices
        self.points.used += points
        return self.events[:events].copy()

    def tags(self, tag: U32) -> U32:
        """Return tags with the recordings of the dump in place of those of the shard."""
        if np.array_equal(self.segments, np.arange(len(self.segments))):
            return tag
        moved: U32 = (self.segments.astype(np.uint32) << 7)[tag >> 7] | (tag & 127)
        return moved
