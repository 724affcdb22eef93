"""Timestamps of a trace: a sample that grows no further, and the exact ones outside a window."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lanescope._native import core
from lanescope.common.intervals import INT64_MAX, Ints, known_extents
from lanescope.common.islands import Points, is_spread, joined, quick_step
from lanescope.trace import Table
from lanescope.trace.column import Mask

#: Timestamps of slices, and of instants, kept at most; up to there the sample is everything.
SAMPLE = 1 << 18

_EXTENT = ("track_id", "ts", "dur", "last_known_ts")


class Stamps:
    """Every m-th slice and instant of a trace, where m doubles so that a bounded number is kept.

    Attributes:
        count: number of timestamps seen.
        first: the first of all; ``last``: the last. The first is the later one where there are none.
    """

    def __init__(self) -> None:
        self._slices = _Thinned(SAMPLE // 2)
        self._instants = _Thinned(SAMPLE)
        self.count = 0
        self.first, self.last = INT64_MAX, -INT64_MAX

    def add(self, slices: Table, instants: Table) -> None:
        """Add the timestamps of the next batch."""
        if len(slices):
            length, known = slices.nullable("dur")
            begin = np.ascontiguousarray(slices.values("ts"))
            closed, first, last = core.lanes_hull(begin, length, known)
            self.count += len(slices) + closed
            self.first, self.last = min(self.first, first), max(self.last, last)
            self._slices.add(slices)
        if len(instants):
            time = instants.values("ts")
            self.count += len(instants)
            self.first, self.last = min(self.first, int(time.min())), max(self.last, int(time.max()))
            self._instants.add(instants)

    @property
    def is_complete(self) -> bool:
        """Whether the sample holds every timestamp."""
        return self._slices.every == self._instants.every == 1

    def sample(self, every: int = 1) -> Points:
        """Return the sample, or every n-th row of it: starts, ends of closed slices, instants."""
        return joined(
            self._slices.points(is_instant=False, every=every), self._instants.points(is_instant=True, every=every)
        )

    def is_spread(self) -> bool:
        """Tell whether the timestamps lie so that no gap can dwarf the rest: the normal case."""
        if not self.count:
            return True
        every = quick_step(2 * self._slices.kept + self._instants.kept)
        return is_spread(self.sample(every), self.first, self.last, is_all=every == 1)


def outside(window: tuple[int, int], positions: Ints, rows: Table, *, is_instant: bool) -> Points:
    """Return the timestamps outside a window of slices or instants that stand at ``positions`` in the whole trace."""
    low, high = window
    if is_instant:
        track, begin, end = rows.values("track_id"), rows.values("ts"), rows.values("ts")
        is_closed: Mask = np.zeros(len(rows), np.bool_)
    else:
        (track, begin, end), is_closed = known_extents(rows), rows.valid("dur")
    early = np.flatnonzero((begin < low) | (begin > high))
    late = np.flatnonzero(is_closed & ((end < low) | (end > high)))
    at = np.concatenate([early, late])
    ones, instant = np.ones(len(at), np.int64), np.full(len(at), is_instant)
    is_end = np.arange(len(at)) >= len(early)
    return Points(np.concatenate([begin[early], end[late]]), track[at], positions[at], ones, instant, is_end)


class _Rows(NamedTuple):
    """Some rows of a table: where they stand in it, their lanes and times."""

    row: Ints
    track: Ints
    begin: Ints
    end: Ints
    is_closed: Mask

    def take(self, rows: Mask) -> _Rows:
        return _Rows(self.row[rows], self.track[rows], self.begin[rows], self.end[rows], self.is_closed[rows])


_NO_INTS, _NO_MASK = np.empty(0, np.int64), np.empty(0, np.bool_)
_NO_ROWS = _Rows(_NO_INTS, _NO_INTS, _NO_INTS, _NO_INTS, _NO_MASK)


class _Thinned:
    """Every ``every``-th row of a table, at most ``most`` of them."""

    def __init__(self, most: int) -> None:
        self.every = 1
        self._most = most
        self._seen = 0
        self._parts: list[_Rows] = []

    def add(self, table: Table) -> None:
        """Add copies of every n-th of the next slices or instants."""
        count = len(table)
        self._make_room(count)
        some = np.arange(-self._seen % self.every, count, self.every)
        if "dur" in table.spec.names:
            rows = table.only(_EXTENT).take(some)
            (track, begin, end), is_closed = known_extents(rows), rows.valid("dur")
        else:
            track, begin = (table.values(name)[some] for name in ("track_id", "ts"))
            end, is_closed = begin, np.zeros(len(some), np.bool_)
        self._parts.append(_Rows(self._seen + some, track, begin, end, is_closed))
        self._seen += count

    def _make_room(self, count: int) -> None:
        """Keep fewer of the rows, where ``count`` more would be too many."""
        doubled = self.every
        while -(-(self._seen + count) // doubled) > self._most:
            doubled *= 2
        if doubled > self.every:
            self.every = doubled
            kept = self._joined()
            self._parts = [kept.take(kept.row % doubled == 0)]

    def _joined(self) -> _Rows:
        if len(self._parts) > 1:
            self._parts = [_Rows(*(np.concatenate(column) for column in zip(*self._parts, strict=True)))]
        return self._parts[0] if self._parts else _NO_ROWS

    @property
    def kept(self) -> int:
        """Number of rows kept."""
        return -(-self._seen // self.every)

    def points(self, *, is_instant: bool, every: int = 1) -> Points:
        """Return the timestamps of every n-th kept row: starts, then ends of closed ones."""
        rows, track, begin, end, is_closed = (column[::every] for column in self._joined())
        time = np.concatenate([begin, end[is_closed]])
        at = np.concatenate([np.arange(len(rows)), np.flatnonzero(is_closed)])
        weight, instant = np.full(len(at), self.every, np.int64), np.full(len(at), is_instant)
        return Points(time, track[at], rows[at], weight, instant, np.arange(len(at)) >= len(rows))
