"""What a plausibility rule reports, and the slices that it concerns."""

from __future__ import annotations

import numpy as np

from lanescope.common.intervals import INT64_MAX, Ints, known_extents
from lanescope.trace import Table
from lanescope.trace.column import Mask
from lanescope.trace.declaration import frozen_class


@frozen_class
class LaneRange:
    """Slices of a lane by when they start; the default is all of them.

    Attributes:
        track_id: the lane.
        first: the first start.
        last: the last start, inclusive.
        longest: longer slices are left out.
        names: slices with other names are left out; empty: none is.
    """

    track_id: int
    first: int = -INT64_MAX
    last: int = INT64_MAX
    longest: int = INT64_MAX
    names: tuple[str, ...] = ()


@frozen_class
class Suspicion:
    """One implausible thing.

    Attributes:
        code: the rule.
        detail: one line, measured values with units.
        severity: ``notice``, ``warning`` or ``error``.
        track_id: the lane, or the group that it concerns; None: the whole trace.
        rows: suspect rows by their positions in the whole trace, int64 [n] rising; None: those in ``ranges``.
        ranges: suspect slices by lane and time.
        table: the table of ``rows``; ``ranges`` are of ``slices``.
        count: how many things are implausible; None: as many as suspect rows, at least 1.
        ts: when; None: the first suspect row.
    """

    code: str
    detail: str
    severity: str
    track_id: int | None = None
    rows: Ints | None = None
    ranges: tuple[LaneRange, ...] = ()
    table: str = "slices"
    count: int | None = None
    ts: int | None = None

    def among(self, table: str, positions: Ints, rows: Table) -> Mask:
        """Return which rows are suspect, bool [n].

        Args:
            table: ``slices`` or ``instants``.
            positions: where the rows stand in the whole trace, int64 [n] rising.
            rows: the rows, all or some of them.
        """
        found: Mask = np.zeros(len(positions), np.bool_)
        if self.rows is not None and self.table == table:
            found |= is_listed(positions, self.rows)
        if self.ranges and table == "slices":
            found |= _in_ranges(self.ranges, rows)
        return found


def is_listed(positions: Ints, rows: Ints) -> Mask:
    """Return which of the rising ``positions`` are among the rising ``rows``, bool [n]."""
    found: Mask = np.zeros(len(positions), np.bool_)
    at = np.searchsorted(positions, rows)
    there = at < len(positions)
    at = at[there]
    found[at[positions[at] == rows[there]]] = True
    return found


def _in_ranges(ranges: tuple[LaneRange, ...], slices: Table) -> Mask:
    """Return which slices lie in some range, bool [n]."""
    track, begin, end = known_extents(slices)
    found: Mask = np.zeros(len(track), np.bool_)
    size = 1 + max(one.track_id for one in ranges)
    wanted = np.zeros(size, np.bool_)
    wanted[[one.track_id for one in ranges]] = True
    rows = np.flatnonzero((track >= 0) & (track < size))
    rows = rows[wanted[track[rows]]]
    rows = rows[np.argsort(track[rows], kind="stable")]
    tracks = track[rows]
    for one in ranges:
        first, last = np.searchsorted(tracks, [one.track_id, one.track_id + 1])
        mine = rows[first:last]
        is_in = (begin[mine] >= one.first) & (begin[mine] <= one.last)
        if one.longest < INT64_MAX:
            is_in &= end[mine] - begin[mine] <= one.longest
        if one.names:
            is_in &= np.isin(slices.values("name")[mine], one.names)
        found[mine[is_in]] = True
    return found
