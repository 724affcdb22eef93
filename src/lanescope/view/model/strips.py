"""Strips: slices in the order in which they are drawn, disjoint within one strip."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.analysis.lane_time import LaneTime
from lanescope.trace import row_packing

Ints = npt.NDArray[np.int64]


class Strips:
    """The slices of a trace by drawing row and stack level.

    An open slice lasts until it was last seen.

    Args:
        time: times of the lanes.

    Attributes:
        order: int64 [n], rows of the slices table by strip, in time order within each.
        begin, end: int64 [n], times along ``order``; within a strip none begins before the one before it ends.
        start: int64 [strips + 1], where each strip begins along ``order``, and n at the end.
        row: int64 [strips], its drawing row; ``level``: int64 [strips], stack level in it, 0 outermost.
        row_track: int64 [rows], the track of each drawing row; ``rows``: int64 [tracks], drawing rows of each.
    """

    def __init__(self, time: LaneTime) -> None:
        group, begin, end = (np.ascontiguousarray(part, np.int64) for part in time.extents)
        tracks = time.trace.tracks
        length = np.minimum(end, row_packing.FOREVER - 1) - begin
        intervals = row_packing.Intervals(
            row_packing.rows_of(tracks.values("id"), group), begin, length, np.empty(0, np.uint8)
        )
        placed = row_packing.place_intervals(intervals, tracks)
        self.row_track = np.asarray(placed.row_track, np.int64)
        self.rows = placed.rows.astype(np.int64)
        drawn = np.repeat(np.arange(len(placed.row_start) - 1), np.diff(placed.row_start))
        level = row_packing.depth(placed)[placed.order].astype(np.int64)
        levels = int(level.max(initial=0)) + 1
        key = drawn * levels + level
        by = np.argsort(key, kind="stable") if levels > 1 else slice(None)
        self.order = placed.order[by]
        key = key[by]
        self.begin, self.end = begin[self.order], (begin + length)[self.order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        self.start = np.append(first, len(key)).astype(np.int64)
        self.row, self.level = key[first] // levels, key[first] % levels

    def __len__(self) -> int:
        """Number of strips."""
        return len(self.row)

    @property
    def track(self) -> Ints:
        """int64 [strips], the track of each strip."""
        found: Ints = self.row_track[self.row]
        return found

    @property
    def where(self) -> Ints:
        """int64 [n], where each row of the slices table stands along ``order``."""
        found = np.empty(len(self.order), np.int64)
        found[self.order] = np.arange(len(self.order))
        return found
