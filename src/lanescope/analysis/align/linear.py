"""Limits of a clock that runs straight against another: hulls of the limits, and the steepest lines between them.

A clock of one offset and one rate is a line under all upper limits and over all lower ones. Only corners of the two
hulls matter: the line is steepest, or flattest, where it touches one corner of each, and at a moment it is highest on
the hull itself or on one of those two lines. All comparisons that decide are made with integers of any size.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lanescope.analysis.align.limits import Bound, Limits, Pairs, lowest_by_moment
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Ints
from lanescope.trace.column import Mask

#: Rounds in which points above the line between their neighbors are dropped before corners are looked for one by one.
_ROUNDS = 64
#: Limits of a block, and rounds in which such points are dropped inside of blocks.
_BLOCK, _THINNED = 1024, 8
#: So few points are looked at one by one.
_FEW = 64
#: Products of differences are exact as floating-point numbers below this.
_EXACT = float(1 << 53)


class Tangent(NamedTuple):
    """The steepest, or flattest, line between the hulls.

    Attributes:
        rate: its slope.
        pairs: the pairs that it touches; none where the bound of the rate decides.
    """

    rate: Fraction
    pairs: tuple[int, ...]


class StraightClock:
    """All lines that satisfy pairs; ``None`` comes from ``of`` where there is not one.

    Attributes:
        flattest: the line of the lowest rate.
        steepest: that of the highest one.
    """

    def __init__(self, above: _Hull, below: _Hull, flattest: Tangent, steepest: Tangent) -> None:
        self._above, self._below = above, below
        self.flattest, self.steepest = flattest, steepest

    @classmethod
    def of(cls, pairs: Pairs, rate: Fraction) -> StraightClock | None:
        """Return the lines whose rates are off by no more than ``rate``; O(n log n) for n pairs."""
        above, below = _Hull(pairs.above), _Hull(pairs.below)
        steepest = _tangent(above, below, rate)
        if steepest is None:
            return None
        flattest = _tangent(above.mirrored, below.mirrored, rate)
        if flattest is None:
            return None
        return cls(above, below, Tangent(-flattest.rate, flattest.pairs), steepest)

    def most(self, moment: int) -> Bound:
        """Return what the offset is at most at a moment."""
        return self._above.highest(moment, self.flattest, self.steepest)

    def least(self, moment: int) -> Bound:
        """Return what it is at least."""
        flattest = Tangent(-self.steepest.rate, self.steepest.pairs)
        found = self._below.highest(moment, flattest, Tangent(-self.flattest.rate, self.flattest.pairs))
        return Bound(-found.value, found.pairs)

    @cached_property
    def narrowest(self) -> int:
        """A moment at which the limits are closest: their distance is convex, so it is at a corner of one of them."""
        moments = sorted({*self._above.at, *self._below.at})

        def width(place: int) -> Fraction:
            return self.most(moments[place]).value - self.least(moments[place]).value

        low, high = 0, len(moments) - 1
        while low < high:
            middle = (low + high) // 2
            if width(middle) <= width(middle + 1):
                high = middle
            else:
                low = middle + 1
        return moments[low]

    @cached_property
    def binding(self) -> tuple[int, ...]:
        """Pairs that limit the offset at some moment."""
        low, high = self.flattest.rate, self.steepest.rate
        found = [*self.flattest.pairs, *self.steepest.pairs]
        found += [*self._above.corners(low, high), *self._below.corners(-high, -low)]
        return tuple(dict.fromkeys(found))


class _Hull:
    """Corners of the lower hull of upper limits, in order of time."""

    def __init__(self, limits: Limits) -> None:
        limits = lowest_by_moment(limits)
        limits = limits.take(hull_corners(limits.at, limits.most))
        self.at: list[int] = limits.at.tolist()
        self.most: list[int] = limits.most.tolist()
        self.pair: list[int] = limits.pair.tolist()

    @cached_property
    def slopes(self) -> list[Fraction]:
        """Slopes between the corners, rising."""
        return [
            Fraction(high - low, end - begin)
            for begin, end, low, high in zip(self.at, self.at[1:], self.most, self.most[1:], strict=False)
        ]

    @cached_property
    def mirrored(self) -> _Hull:
        """The hull with time turned around."""
        found = _Hull.__new__(_Hull)
        found.at = [-moment for moment in reversed(self.at)]
        found.most, found.pair = self.most[::-1], self.pair[::-1]
        return found

    def touched(self, slope: Fraction) -> int:
        """Return the corner that a line of a slope touches from below."""
        return bisect_left(self.slopes, slope)

    def highest(self, moment: int, flattest: Tangent, steepest: Tangent) -> Bound:
        """Return the highest value at a moment of lines below the hull whose slopes lie between two."""
        place = bisect_left(self.at, moment)
        if place == 0:
            bound = flattest
        elif place == len(self.at):
            bound = steepest
        else:
            slope = self.slopes[place - 1]
            if flattest.rate <= slope <= steepest.rate:
                value = self.most[place] - slope * (self.at[place] - moment)
                pairs = (self.pair[place],) if self.at[place] == moment else (self.pair[place - 1], self.pair[place])
                return Bound(value, pairs)
            bound = flattest if slope < flattest.rate else steepest
        corner = self.touched(bound.rate)
        value = self.most[corner] + bound.rate * (moment - self.at[corner])
        return Bound(value, tuple(dict.fromkeys((self.pair[corner], *bound.pairs))))

    def corners(self, low: Fraction, high: Fraction) -> list[int]:
        """Return the pairs of the corners that lines of slopes between two touch."""
        return self.pair[self.touched(low) : self.touched(high) + 1]


def _tangent(above: _Hull, below: _Hull, rate: Fraction) -> Tangent | None:
    """Return the steepest line of a rate of at most ``rate`` over one hull and under the other; None: there is not one.

    ``below`` is the hull of the lower limits with their sign turned. The room between two parallel lines that touch the
    hulls is a concave function of their slope, so Newton's steps from the right never pass the root.
    """
    slope = rate
    found: tuple[int, ...] = ()
    while slope >= -rate:
        upper, lower = above.touched(slope), below.touched(-slope)
        rise, run = above.most[upper] + below.most[lower], above.at[upper] - below.at[lower]
        if rise >= slope * run:
            return Tangent(slope, found)
        if run <= 0:
            return None
        slope, found = Fraction(rise, run), (above.pair[upper], below.pair[lower])
    return None


def hull_corners(at: Ints, most: Ints) -> Ints:
    """Return the corners of the lower hull of points, indices in order.

    Args:
        at: int64 [n], rising without repeats.
        most: int64 [n].
    """
    rows = np.arange(len(at))
    for _ in range(_ROUNDS):
        if len(rows) <= _FEW:
            break
        keep = np.ones(len(rows), bool)
        keep[1:-1] = ~_is_above(at[rows], most[rows])
        if keep.all():
            break
        rows = rows[keep]
    corners: list[int] = []
    moments, limits = at[rows].tolist(), most[rows].tolist()
    for place in range(len(moments)):
        while len(corners) > 1:
            first, second = corners[-2], corners[-1]
            rise = (limits[second] - limits[first]) * (moments[place] - moments[second])
            if rise < (limits[place] - limits[second]) * (moments[second] - moments[first]):
                break
            corners.pop()
        corners.append(place)
    return rows[np.array(corners, np.int64)]


def _is_above(at: Ints, most: Ints) -> Mask:
    """Return which points but the first and the last are not below the line between their neighbors, bool [n - 2].

    A point on that line is not a corner; where rounding leaves open on which side it is, it counts as below.
    """
    runs, rises = np.diff(at).astype(np.float64), np.diff(most).astype(np.float64)
    before, behind = rises[:-1] * runs[1:], rises[1:] * runs[:-1]
    size = np.abs(before) + np.abs(behind)
    above = before - behind
    found: Mask = (above > size * 1e-15) | ((above >= 0) & (size < _EXACT))
    return found


def straight_segments(pairs: Pairs, rate: Fraction) -> list[tuple[int, int, StraightClock]]:
    """Cut time where no line satisfies all pairs: each segment is the longest that one does from where it begins.

    Args:
        pairs: what is known of the offset.
        rate: how far the rates of the clocks may differ.

    Returns:
        The first and last moment of each segment, and its clock. Segments with pairs of one side only are left out, as
        are moments whose own pairs contradict each other.
    """
    lowest = [lowest_by_moment(side) for side in pairs]
    moments = distinct(np.concatenate([side.at for side in lowest]))
    above, below = (_Blocks(side) for side in lowest)
    found: list[tuple[int, int, StraightClock]] = []
    begin = 0
    while begin < len(moments):
        fits, clock = _longest(above, below, moments, begin, rate)
        if clock is not None:
            found.append((int(moments[begin]), int(moments[fits - 1]), clock))
        begin = max(fits, begin + 1)
    return found


def _longest(
    above: _Blocks, below: _Blocks, moments: Ints, begin: int, rate: Fraction
) -> tuple[int, StraightClock | None]:
    """Return how far a line from a moment on satisfies all pairs, and the lines that do."""

    def clock_until(end: int) -> tuple[bool, StraightClock | None]:
        first, last = moments[begin], moments[end - 1]
        some = Pairs(*(side.between(int(first), int(last)) for side in (above, below)))
        if not len(some.above.at) or not len(some.below.at):
            return True, None
        clock = StraightClock.of(some, rate)
        return clock is not None, clock

    good, best = begin, None
    step = 1
    while good < len(moments):  # as far as doubling steps fit
        end = min(good + step, len(moments))
        fits, clock = clock_until(end)
        if not fits:
            break
        good, best, step = end, clock, step * 2
    else:
        return good, best
    bad = end
    while bad - good > 1:
        middle = (good + bad) // 2
        fits, clock = clock_until(middle)
        if fits:
            good, best = middle, clock
        else:
            bad = middle
    return good, best


class _Blocks:
    """Limits of which those that are on no hull of a whole block are left out where all of the block is asked for."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        rows, at, most = np.arange(len(limits.at)), limits.at, limits.most
        for _ in range(_THINNED if len(rows) > _BLOCK else 0):
            keep = np.ones(len(rows), bool)
            is_end = (rows % _BLOCK == 0) | (rows % _BLOCK == _BLOCK - 1)
            keep[1:-1] = ~_is_above(at[rows], most[rows]) | is_end[1:-1]
            rows = rows[keep]
        self._rows = rows

    def between(self, first: int, last: int) -> Limits:
        """Return the limits of moments from ``first`` to ``last`` that may be corners of their hull."""
        low, high = np.searchsorted(self._limits.at, [first, last + 1]).tolist()
        begin, end = -(-low // _BLOCK) * _BLOCK, high // _BLOCK * _BLOCK
        if begin >= end:
            return self._limits.take(np.arange(low, high))
        inner = self._rows[slice(*np.searchsorted(self._rows, [begin, end]).tolist())]
        return self._limits.take(np.concatenate([np.arange(low, begin), inner, np.arange(end, high)]))
