"""What a plausibility rule reports, and the rows that it suspects."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import numpy as np

from lanescope.common.distinct import distinct
from lanescope.common.intervals import INT64_MAX, Ints, known_extents
from lanescope.declaration import frozen_class, replace
from lanescope.trace import Table
from lanescope.trace.column import Mask

if TYPE_CHECKING:
    from lanescope.analysis.plausibility.profile import Profile

#: Positions per row, and per row looked for, up to which a table of them all is made.
_DENSE = 16


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
    """Return which of the rising ``positions`` are among ``rows``, bool [n]."""
    found: Mask = np.zeros(len(positions), np.bool_)
    if not len(positions) or not len(rows):
        return found
    first, last = int(positions[0]), int(positions[-1])
    if last - first < _DENSE * (len(positions) + len(rows)):
        # A table costs far less than a search for each row.
        table = np.zeros(last - first + 1, np.bool_)
        table[rows[(rows >= first) & (rows <= last)] - first] = True
        return table[positions - first]
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


class Suspects:
    """The slices and instants that plausibility rules suspect.

    They are the evidence of the findings. A finding about a clock has none among slices: it suspects all slices of the
    lanes with that clock, as ``check`` does for its totals.

    Args:
        suspicions: what the rules found.
        profile: of the trace.
        codes: rules that count; None: all.

    Attributes:
        codes: those of them that suspect slices or instants, rising.
    """

    def __init__(self, suspicions: Iterable[Suspicion], profile: Profile, codes: Collection[str] | None = None) -> None:
        by_code: dict[str, list[Suspicion]] = {}
        for one in suspicions:
            if codes is None or one.code in codes:
                one = _of_lanes(one, profile)
                if one.ranges or (one.rows is not None and one.table in ("slices", "instants")):
                    by_code.setdefault(one.code, []).append(one)
        self.codes = tuple(sorted(by_code))
        self._joined = [[_joined(by_code[code], table) for code in self.codes] for table in ("slices", "instants")]

    def among(self, table: str, positions: Ints, rows: Table) -> Ints:
        """Return which rules suspect each row, int64 [n]: bit k for ``codes[k]``.

        Args:
            table: ``slices`` or ``instants``.
            positions: where the rows stand in the whole trace, int64 [n] rising.
            rows: the rows, all or some of them.
        """
        found = np.zeros(len(positions), np.int64)
        for bit, one in enumerate(self._joined[table == "instants"]):
            if one.ranges or one.rows is not None:
                found[one.among(table, positions, rows)] |= 1 << bit
        return found

    def sets(self, seen: Iterable[int]) -> list[tuple[tuple[str, ...], int]]:
        """Return each rule among some sets of rules, with its bit, then all of them where they are several."""
        every = 0
        for one in seen:
            every |= one
        single: list[tuple[tuple[str, ...], int]] = [
            ((code,), 1 << bit) for bit, code in enumerate(self.codes) if every >> bit & 1
        ]
        return single if len(single) < 2 else [*single, (tuple(codes[0] for codes, _ in single), every)]


def _of_lanes(one: Suspicion, profile: Profile) -> Suspicion:
    """Return a suspicion of clocks or anchors as one of the slices of their lanes, others as they are."""
    if one.table not in ("clocks", "anchors") or one.rows is None:
        return one
    clocks = one.rows if one.table == "clocks" else profile.anchors.values("clock_id")[one.rows]
    return replace(one, rows=None, ranges=tuple(map(LaneRange, profile.tree.on_clocks(clocks).tolist())))


def _joined(found: list[Suspicion], table: str) -> Suspicion:
    """Return what suspicions of one rule name of a table as one."""
    rows = [one.rows for one in found if one.rows is not None and one.table == table]
    ranges = tuple(part for one in found for part in one.ranges) if table == "slices" else ()
    return replace(found[0], table=table, rows=distinct(np.concatenate(rows)) if rows else None, ranges=ranges)


def exact(value: float, unit: str) -> str:
    """Return a time, or a distance of two, with all its digits.

    Example:
        >>> exact(1_999_999_264, "ns")
        '1,999,999,264 ns'
    """
    return f"{round(value):,} {unit}"


def times_text(value: float) -> str:
    """Return how many times something is as large as something else, with three digits and no exponent.

    Example:
        >>> times_text(2.8176), times_text(281_760.3), times_text(1500.0)
        ('2.82', '282,000', '1,500')
    """
    if value < 1000 or not math.isfinite(value):
        return f"{value:.3g}"
    step = 10 ** (math.floor(math.log10(value)) - 2)
    return f"{round(value / step) * step:,}"
