"""Limits of the offset between two clocks: what causes and effects on them leave possible, at a moment, on one side.

The offset ``d(t)`` is what the second clock shows less what the first one shows, when the first one shows ``t``. A
cause on the first clock at ``s`` with its effect on the second at ``r`` leaves ``d(s) <= r - s``; a cause on the second
at ``u`` with its effect on the first at ``v`` leaves ``d(v) >= u - v``. Lower limits are kept with their sign turned,
so all that follows is written for upper ones.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.common.intervals import Ints

Mask = npt.NDArray[np.bool_]

#: Distances and readings beyond this are not compared: sums of them would leave 64 bits.
FAR = 1 << 60
#: So far apart, counted in millionths of the rate, sums stay within 64 bits.
_SAFE = 1 << 61


class Limits(NamedTuple):
    """Upper limits of an offset; arrays of one length.

    Attributes:
        at: int64, reading of the first clock, in the trace's time unit.
        most: int64, what the offset is at most at that moment.
        pair: int64, number of the pair that shows it.
    """

    at: Ints
    most: Ints
    pair: Ints

    def take(self, rows: Ints | slice) -> Limits:
        """Return some of them."""
        return Limits(self.at[rows], self.most[rows], self.pair[rows])


class Pairs(NamedTuple):
    """What is known of the offset between two clocks.

    Attributes:
        above: upper limits of the offset.
        below: upper limits of the offset with its sign turned.
    """

    above: Limits
    below: Limits


class Bound(NamedTuple):
    """A limit at one moment, and what it rests on.

    Attributes:
        value: the limit, exact.
        pairs: numbers of the pairs that bind.
    """

    value: Fraction
    pairs: tuple[int, ...]


class Contradiction(NamedTuple):
    """Two pairs that no clock within the bound of its rate can both satisfy.

    Attributes:
        above: number of the pair with the upper limit.
        below: number of the pair with the lower one.
        by: by how much they miss each other, in the trace's time unit, rounded up.
    """

    above: int
    below: int
    by: int


def lowest_by_moment(limits: Limits) -> Limits:
    """Return limits in order of time, of each moment only the lowest; O(n log n), O(n) where they are in order."""
    at = limits.at
    if len(at) > 1 and not (np.diff(at) > 0).all():
        rows = np.argsort(at, kind="stable")
        at = at[rows]
        starts = np.flatnonzero(np.diff(at, prepend=at[0] - 1))
        if len(starts) < len(at):
            lowest = np.minimum.reduceat(limits.most[rows], starts)
            moment = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(at))))
            fits = np.flatnonzero(limits.most[rows] == lowest[moment])
            rows = rows[fits[np.diff(moment[fits], prepend=-1) > 0]]
        return limits.take(rows)
    return limits


class RateBound:
    """The limits of a clock of which only is known that its rate is off by no more than ``rate``.

    Args:
        pairs: what is known of the offset; both sides have one or more.
        rate: how far the rates of the clocks may differ, >= 0.
    """

    def __init__(self, pairs: Pairs, rate: Fraction) -> None:
        self.rate = rate
        self.above, self.below = _Cones(pairs.above, rate), _Cones(pairs.below, rate)

    def most(self, moment: int) -> Bound:
        """Return what the offset is at most at a moment."""
        return self.above.at(moment)

    def least(self, moment: int) -> Bound:
        """Return what it is at least."""
        found = self.below.at(moment)
        return Bound(-found.value, found.pairs)

    def narrowest(self) -> int:
        """Return a moment at which the limits are closest: that of one of the pairs."""
        moments = np.concatenate([self.above.limits.at, self.below.limits.at])
        return int(moments[int((self.above.nearest(moments)[0] + self.below.nearest(moments)[0]).argmin())])

    def binding(self) -> int:
        """Return how many pairs limit the offset at some moment."""
        return len(self.above.limits.at) + len(self.below.limits.at)

    def contradiction(self) -> Contradiction | None:
        """Return the two pairs that contradict each other most; None where a clock satisfies all of them.

        If the limits leave nothing at some moment, two pairs show it: a clock's rate adds as much between the moment
        and each of them as it does between the two.
        """
        below, places = self.below.nearest(self.above.limits.at)
        spare = self.above.scaled + below  # the offset's upper limit, less its lower one
        if not len(spare) or spare.min() >= 0:
            return None
        worst = int(spare.argmin())
        return Contradiction(
            int(self.above.limits.pair[worst]),
            int(self.below.limits.pair[places[worst]]),
            -(int(spare[worst]) // self.rate.denominator),
        )

    def widest_error(self, first: int, last: int, line: tuple[Fraction, Fraction]) -> Fraction:
        """Return how far the true offset may be from a line between two moments, at most.

        Args:
            first: the one.
            last: the other.
            line: its value at ``first``, and its slope.
        """
        value, slope = line
        whole, found = int(value), 0.0
        part, tilt = float(value - whole), float(slope)
        for cones, sign in ((self.above, 1), (self.below, -1)):
            inside = cones.limits.at[(cones.limits.at > first) & (cones.limits.at < last)]
            moments = np.concatenate([[first], inside, [last]])
            limits, _ = cones.nearest(moments)
            limits = limits - sign * whole * self.rate.denominator
            # Between two moments a limit rises from both by the rate at most, until the two meet.
            runs = np.diff(moments)
            tops = (limits[:-1] + limits[1:] + runs * self.rate.numerator).astype(np.float64) / 2
            middles = part + tilt * ((moments[:-1] - first) + runs / 2)
            off = tops / self.rate.denominator - sign * middles + abs(tilt) * runs / 2
            found = max(found, float(off.max(initial=0.0)))
        # Floating-point numbers count differences only: what they round is far below a thousandth.
        return Fraction(found) + Fraction(1, 1000)


class _Cones:
    """Upper limits that rise with the distance in time; those that another one leaves without effect are dropped."""

    def __init__(self, limits: Limits, rate: Fraction) -> None:
        self.rate = rate
        limits = lowest_by_moment(limits)
        base, start = int(limits.most.min()), int(limits.at[0])
        span = int(limits.at[-1]) - start
        kept = limits.most - base <= int(rate * span)
        limits = limits.take(np.flatnonzero(kept))
        self._base, self._start = base, start
        fits = rate.numerator * span < _SAFE and rate.denominator * abs(base) < _SAFE
        self._kind: Any = np.int64 if fits else np.object_
        self._keep(limits)
        # Only what is the lowest limit at its own moment is so at any.
        self._keep(limits.take(np.flatnonzero(self._own())))

    def _keep(self, limits: Limits) -> None:
        self.limits = limits
        lift = (limits.most - self._base).astype(self._kind) * self.rate.denominator
        run = (limits.at - self._start).astype(self._kind) * self.rate.numerator
        self._left = np.minimum.accumulate(lift - run)
        self._right = np.minimum.accumulate((lift + run)[::-1])[::-1]
        self._left_at = _places(lift - run, self._left)
        self._right_at = len(lift) - 1 - _places((lift + run)[::-1], self._right[::-1])[::-1]

    def _own(self) -> Mask:
        """Return which of the limits are the lowest at their own moments."""
        lift = (self.limits.most - self._base).astype(self._kind) * self.rate.denominator
        run = (self.limits.at - self._start).astype(self._kind) * self.rate.numerator
        found: Mask = (self._left == lift - run) & (self._right == lift + run)
        return found

    @property
    def scaled(self) -> Ints:
        """The limits, times the rate's denominator."""
        return self.nearest(self.limits.at)[0]

    def nearest(self, moments: Ints) -> tuple[Ints, Ints]:
        """Return the limit at moments, times the rate's denominator, and the place of the one that binds."""
        count = len(self.limits.at)
        run = (moments - self._start).astype(self._kind) * self.rate.numerator
        at = np.searchsorted(self.limits.at, moments, "right")
        before, behind = np.maximum(at - 1, 0), np.minimum(at, count - 1)
        left, right = self._left[before] + run, self._right[behind] - run
        by_left = (at > 0) & ((at == count) | (left <= right))
        found = np.where(by_left, left, right) + self._base * self.rate.denominator
        return found, np.where(by_left, self._left_at[before], self._right_at[behind])

    def at(self, moment: int) -> Bound:
        """Return the limit at a moment."""
        scaled, places = self.nearest(np.array([moment], np.int64))
        pair = int(self.limits.pair[places[0]])
        return Bound(Fraction(int(scaled[0]), self.rate.denominator), (pair,))


def _places(values: Ints, lowest: Ints) -> Ints:
    """Return where each running minimum was first reached."""
    is_new = np.append(True, lowest[1:] < lowest[:-1]) if len(values) else np.empty(0, bool)
    return np.maximum.accumulate(np.where(is_new, np.arange(len(values)), 0))
