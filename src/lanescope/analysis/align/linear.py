"""Limits of a clock that runs straight against another: hulls of the limits, and the steepest lines between them.

A clock of one offset and one rate is a line under all upper limits and over all lower ones. Only corners of the two
hulls matter: the line is steepest, or flattest, where it touches one corner of each, and at a moment it is highest on
the hull itself or on one of those two lines. All comparisons that decide are made with integers of any size.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lanescope._native import core
from lanescope.analysis.align.limits import Bound, Limits, Pairs, lowest_by_moment
from lanescope.common.intervals import Ints

#: Rates of more digits are rounded up to parts of this.
_FINEST = 1 << 60


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
    """Return the corners of the lower hull of points, indices in order; O(n).

    Args:
        at: int64 [n], rising without repeats.
        most: int64 [n].
    """
    return core.align_lower_hull(np.ascontiguousarray(at, np.int64), np.ascontiguousarray(most, np.int64))


class Segments:
    """Time cut where no line satisfies all pairs: each segment is the longest that one does from where it begins.

    Segments with pairs of one side only are left out, as are moments whose own pairs contradict each other.

    Attributes:
        bounds: the first and the last moment with a pair of each segment.

    Args:
        pairs: what is known of the offset.
        rate: how far the rates of the clocks may differ.

    Complexity: O(n log n) for n pairs, O(n) where they are in order.
    """

    def __init__(self, pairs: Pairs, rate: Fraction) -> None:
        self._pairs = Pairs(*(lowest_by_moment(side) for side in pairs))
        self._rate = rate if max(rate.as_integer_ratio()) < _FINEST else Fraction(math.ceil(rate * _FINEST), _FINEST)
        above, below = (
            (np.ascontiguousarray(side.at, np.int64), np.ascontiguousarray(side.most, np.int64)) for side in self._pairs
        )
        begin, end = core.align_segments(*above, *below, self._rate.numerator, self._rate.denominator)
        self.bounds: list[tuple[int, int]] = list(zip(begin.tolist(), end.tolist(), strict=True))

    def clock(self, number: int) -> StraightClock:
        """Return the lines that satisfy the pairs of a segment."""
        first, last = self.bounds[number]
        parts = (side.take(slice(*np.searchsorted(side.at, [first, last + 1]).tolist())) for side in self._pairs)
        found = StraightClock.of(Pairs(*parts), self._rate)
        assert found is not None, "a segment has a line"
        return found

    def around(self, moment: int) -> int | None:
        """Return the number of the segment around a moment, else of the nearest one; None without segments."""
        away = [max(first - moment, moment - last, 0) for first, last in self.bounds]
        return away.index(min(away)) if away else None
