"""Assignment of overlapping slices to drawing rows, so that every row nests properly.

Writers and views draw a lane as one or more rows. ``place`` decides which slice goes to which row and in which order
the slices of a row are drawn; it never moves a slice in time. Row 0 is the lane itself, the others are overflow.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.errors import InternalError, UsageError
from lanescope.trace.table import Table

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]

#: The end of a slice that is still open, in a placement only: later than any time.
FOREVER = (1 << 63) - 1


class Intervals:
    """Intervals to place: the slices of a trace, followed by its gaps.

    Args:
        track: int64 [n], row of the tracks table, -1 for an unknown track; or that of each run of intervals.
        begin: as the attribute.
        length: as the attribute.
        known: as the attribute.
        counts: int64 [runs], how many intervals follow one another on one track; None: ``track`` is that of each.

    Attributes:
        begin: int64 [n], ns.
        length: int64 [n], ns, 0 where it is unknown.
        known: uint8 [n], 0 where the end is unknown; empty when all ends are known.
        by_run: the track of each run, and its number of intervals; or of each interval, and nothing.
    """

    def __init__(
        self, track: Int64, begin: Int64, length: Int64, known: npt.NDArray[np.uint8], counts: Int64 | None = None
    ) -> None:
        self.begin, self.length, self.known = begin, length, known
        self.by_run = (track, np.empty(0, np.int64) if counts is None else counts)

    @cached_property
    def track(self) -> Int64:
        """int64 [n], row of the tracks table; -1 for an unknown track."""
        track, counts = self.by_run
        return np.repeat(track, counts) if len(counts) else track

    @classmethod
    def of(cls, tracks: Table, *tables: Table) -> Intervals:
        """Join ``tables`` (slices, gaps; int64 ``ts`` and nullable ``dur``) end to end."""
        ids = tracks.values("id")
        masks = [table.column("dur").valid for table in tables]
        known = np.empty(0, np.uint8)
        if any(mask is not None and not mask.all() for mask in masks):
            known = _join([table.valid("dur") for table in tables]).view(np.uint8)
        filled = [table.column("track_id") for table in tables if len(table)]
        runs = filled[0].runs if len(filled) == 1 else None
        track = _join([column.read_once() for column in filled]) if runs is None else np.ascontiguousarray(runs[0])
        return cls(
            rows_of(ids, track),
            _join([table.column("ts").read_once() for table in tables]),
            _join([table.column("dur").read_once() for table in tables]),
            known,
            None if runs is None else np.ascontiguousarray(runs[1]),
        )

    def __len__(self) -> int:
        return len(self.begin)


class RowPacking:
    """Rows and drawing order of the intervals of a trace.

    An interval is a slice (its row of the slices table) or a gap (its row of the gaps table plus the number of slices).

    Args:
        intervals: what is placed.
        rows: as the attribute.
        row_start: as the attribute.
        moved: as the attribute.
        placed: row and times; None where intervals come lane after lane.

    Attributes:
        comes_by_lane: whether intervals come lane after lane in order of their begins, each lane on one row, all ends
            known; then ``order``, ``row`` and ``end`` are made when they are first read.
        length: int64 [n], ns, of each interval; only where they come by lane.
        moved: int64 [n], the order, which moves only intervals that begin together where they come by lane; empty there
            if it moves none.
        order: int64 [n], a permutation of the intervals: by track, row, then drawing order. Begins do not fall along a
            row; an interval that ends where another begins ends first; where two begin together the outer one is first.
        row: int32 [n], the row of each interval within its lane.
        begin: int64 [n], ns, along ``order``.
        end: int64 [n], ns, along ``order``; ``FOREVER`` where it is unknown.
        rows: int32 [tracks], how many rows each track needs; 0 where nothing lies on it.
        row_start: int64 [rows + 1], where each row of each track begins in ``order``, and n at the end.
    """

    def __init__(
        self,
        intervals: Intervals,
        rows: Int32,
        row_start: Int64,
        moved: Int64,
        placed: tuple[Int32, Int64, Int64] | None = None,
    ) -> None:
        self.rows, self.row_start, self.moved = rows, row_start, moved
        self.comes_by_lane = placed is None
        self._count = len(intervals)
        if placed is None:
            self.begin, self.length = intervals.begin, intervals.length
        else:
            self.row, self.begin, self.end = placed

    @cached_property
    def order(self) -> Int64:  # noqa: D102 (the class says what it is)
        return np.arange(self._count) if self.comes_by_lane and not len(self.moved) else self.moved

    @cached_property
    def row(self) -> Int32:  # noqa: D102
        return np.zeros(self._count, np.int32)

    @cached_property
    def end(self) -> Int64:  # noqa: D102
        return self.begin + self.length[self.order]

    def latest_ends(self, first: Int64) -> Int64:
        """Return the largest end of the intervals of rows, int64 [rows], by where each begins along ``order``.

        Args:
            first: int64 [rows], rising; each row reaches to the next one, the last one to the end.
        """
        found: Int64 = np.maximum.reduceat(self.begin + self.length if self.comes_by_lane else self.end, first)
        return found

    @property
    def row_track(self) -> Int64:
        """int64 [rows], the track of each row of ``row_start``."""
        return np.repeat(np.arange(len(self.rows)), self.rows)


def pack_rows(slices: Table, tracks: Table, gaps: Table | None = None) -> RowPacking:
    """Assign every slice to a row of its lane on which it can be drawn.

    On a lane of nesting ``nested`` a row holds a stack of at most 480 levels; slices that cross go to the next row,
    and those that fit on none of eight rows each take one for themselves as long as they last. On any other lane a row
    holds only slices that share no time, so that no hierarchy is drawn that the model does not know; a slice of no
    length shares time with the slice it lies strictly inside. The lowest row that fits is taken. A slice whose end is
    unknown lasts for ever. Ties keep the order of the table.

    Args:
        slices: the slices table, in any order.
        tracks: the tracks table that its ``track_id`` refers to.
        gaps: also place the gaps of the lanes, behind the slices where both begin together.

    Returns:
        The placement; see there for how intervals are numbered.

    Raises:
        InternalError: a slice lies on no track.
        UsageError: the length of a slice is negative or leads past the last time.

    Complexity:
        O(n + tracks) when the slices of each lane come flat and in time order, O(n log n) else.
    """
    tables = (slices,) if gaps is None else (slices, gaps)
    return place_intervals(Intervals.of(tracks, *tables), tracks)


def place_intervals(intervals: Intervals, tracks: Table) -> RowPacking:
    """Do the work of ``place`` for intervals that are at hand already."""
    count = len(intervals)
    times = (intervals.begin, intervals.length, intervals.known)
    track, counts = intervals.by_run
    nested = np.ascontiguousarray(tracks.values("nesting") == "nested").view(np.uint8)
    rows = np.empty(len(tracks), np.int32)
    if (found := core.layout_lane_after_lane(track, *times, nested, rows, counts)) is not None:
        moved, start = found
        return RowPacking(intervals, rows, start, moved)
    order, begin, end = np.empty((3, count), np.int64)
    row = np.empty(count, np.int32)
    try:
        start = core.layout_place(intervals.track, *times, nested, order, row, begin, end, rows)
    except OverflowError:  # what a trace that users made themselves may have
        raise UsageError(
            "cannot draw the trace: a slice has a negative length, or ends later than 64 bits count"
        ) from None
    except ValueError as error:
        raise InternalError(f"cannot pack slices into rows: {error}") from error
    return RowPacking(intervals, rows, start, order, (row, begin, end))


def depth(placement: RowPacking) -> Int32:
    """Return how many intervals are open around each one on its row, int32 [n]; 0 on lanes that are not nested."""
    depths = np.empty(len(placement.order), np.int32)
    core.layout_depths(placement.begin, placement.end, placement.order, placement.row_start, depths)
    return depths


class RowsById:
    """Rows of a table by their ids, for those who look up more than once.

    Args:
        ids: int64 [n], the id column of a table; dense as the builder makes it (from any first id), or with holes after
            a filter.
    """

    def __init__(self, ids: Int64) -> None:
        self._count = count = len(ids)
        self._first = first = int(ids[0]) if count else 0
        self._ids: Int64 | None = ids
        if count == 0 or (ids[-1] - first == count - 1 and bool((ids == np.arange(first, first + count)).all())):
            self._ids = None  # dense

    def find(self, wanted: Int64) -> Int64:
        """Return the row of each of the ``wanted`` ids, int64 [m], -1 where there is none."""
        ids, count = self._ids, self._count
        if ids is None:
            wanted = wanted - self._first if self._first else wanted
            if len(wanted) == 0 or (
                count and int(wanted.view(np.uint64).max()) < count
            ):  # negative ones are the largest
                return wanted
            return np.where((wanted >= 0) & (wanted < count), wanted, -1)
        by_id = np.argsort(ids, kind="stable")
        at = np.minimum(np.searchsorted(ids, wanted, sorter=by_id), count - 1)
        rows = by_id[at]
        return np.where(ids[rows] == wanted, rows, -1)


def rows_of(ids: Int64, wanted: Int64) -> Int64:
    """Return the row of each of the ``wanted`` ids, int64 [m], -1 where there is none; for one look-up."""
    return RowsById(ids).find(wanted)


def _join(columns: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    filled = [column for column in columns if len(column)]
    return np.ascontiguousarray(filled[0] if len(filled) == 1 else np.concatenate(columns or [np.empty(0, np.int64)]))
