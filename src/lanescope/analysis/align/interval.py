"""What is known of the offset between two clocks: an interval that contains it, one bound, or a contradiction."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from lanescope.analysis.align.limits import FAR, Contradiction, Limits, Pairs, RateBound, lowest_by_moment
from lanescope.analysis.align.linear import Segments, StraightClock

#: How far the rates of two free-running clocks may differ, in parts per million, where it is not stated.
RATE_PPM = 100
METHODS = ("auto", "segments", "rate")


class Interval(NamedTuple):
    """What an offset can be at a moment.

    Attributes:
        method: ``straight``: one offset and one rate; ``segments``: one of each in the segment of the moment; ``rate``:
            any clock within the bound of the rate.
        at: the moment, on the first clock.
        least: the offset at least, in whole units, rounded down.
        most: at most, rounded up.
        rate_least: how much faster the second clock runs, at least, as a share.
        rate_most: at most.
        least_by: numbers of the pairs that limit it from below.
        most_by: from above.
        binding: how many pairs limit it at some moment.
        segments: how many segments there are; 1 where it was not cut.
        begin: first moment that a pair is known of.
        end: last moment.
        line: offset at ``begin`` and slope of the line to place the second clock by.
        error: how far the true offset is from that line between ``begin`` and ``end``, at most, rounded up.
        zero_error: how far it is from 0.
    """

    method: str
    at: int
    least: int
    most: int
    rate_least: Fraction
    rate_most: Fraction
    least_by: tuple[int, ...]
    most_by: tuple[int, ...]
    binding: int
    segments: int
    begin: int
    end: int
    line: tuple[Fraction, Fraction]
    error: int
    zero_error: int

    @property
    def offset(self) -> Fraction:
        """The middle of the interval."""
        return Fraction(self.least + self.most, 2)

    @property
    def half_width(self) -> Fraction:
        """How far the middle may be off."""
        return Fraction(self.most - self.least, 2)


class OneBound(NamedTuple):
    """The only side on which something limits an offset, or neither.

    Attributes:
        at: the moment of the tightest limit.
        least: the offset at least at that moment; None where nothing limits it.
        most: at most; None likewise.
        by: number of the pair that limits it; -1 for none.
    """

    at: int
    least: int | None
    most: int | None
    by: int


def offset_interval(
    pairs: Pairs, *, rate: Fraction = Fraction(RATE_PPM, 1_000_000), at: int | None = None, method: str = "auto"
) -> Interval | OneBound | Contradiction:
    """Return what causes and effects on two clocks leave of the offset between them.

    Args:
        pairs: upper and lower limits; see ``Limits``.
        rate: how far the rates of the clocks may differ.
        at: the moment that is asked for; None: one at which the interval is narrowest.
        method: one of ``METHODS``; ``auto`` is a straight clock where one satisfies all pairs, else the rate's bound.
            ``segments`` assumes that the clock runs straight but for the cuts.

    Returns:
        The interval; one bound where nothing limits the other side; or the two pairs that contradict each other.

    Raises:
        ValueError: a reading is beyond 2**60.
    """
    above, below = pairs
    for side in pairs:
        for values in (side.at, side.most):
            if len(values) and (int(values.min()) < -FAR or int(values.max()) > FAR):
                raise ValueError("a time or distance is beyond 2**60")
    if not len(above.at) or not len(below.at):
        return _one_bound(above, below)
    pairs = above, below = Pairs(lowest_by_moment(above), lowest_by_moment(below))
    begin = min(int(above.at.min()), int(below.at.min()))
    end = max(int(above.at.max()), int(below.at.max()))
    clock = None if method == "rate" else StraightClock.of(pairs, rate)
    if clock is not None:
        return _straight(clock, at, begin, end)
    swept = RateBound(pairs, rate)
    contradiction = swept.contradiction()
    if contradiction is not None:
        return contradiction
    if method == "segments":
        found = Segments(pairs, rate)
        moment = swept.narrowest() if at is None else at
        number = found.around(moment)
        if number is not None:
            first, last = found.bounds[number]
            inner = _straight(found.clock(number), min(max(moment, first), last), first, last)
            whole = _swept(swept, at, begin, end)
            # One line for all segments is only as good as the bound of the rate.
            inner = inner._replace(method="segments", segments=len(found.bounds), begin=begin, end=end)
            return inner._replace(line=whole.line, error=whole.error, zero_error=whole.zero_error)
    return _swept(swept, at, begin, end)


def _one_bound(above: Limits, below: Limits) -> OneBound:
    if len(above.at):
        place = int(above.most.argmin())
        return OneBound(int(above.at[place]), None, int(above.most[place]), int(above.pair[place]))
    if len(below.at):
        place = int(below.most.argmin())
        return OneBound(int(below.at[place]), -int(below.most[place]), None, int(below.pair[place]))
    return OneBound(0, None, None, -1)


def _straight(clock: StraightClock, at: int | None, begin: int, end: int) -> Interval:
    moment = clock.narrowest if at is None else at
    least, most = clock.least(moment), clock.most(moment)
    middles, errors, edges = [], [], []
    for edge in (begin, end):
        low, high = clock.least(edge).value, clock.most(edge).value
        middles.append((low + high) / 2)
        errors.append((high - low) / 2)
        edges += [high, -low]
    slope = (middles[1] - middles[0]) / (end - begin) if end > begin else Fraction(0)
    # What limits lines from above is convex and what limits them from below concave: both are furthest off at an edge.
    return Interval(
        method="straight",
        at=moment,
        least=math.floor(least.value),
        most=math.ceil(most.value),
        rate_least=clock.flattest.rate,
        rate_most=clock.steepest.rate,
        least_by=least.pairs,
        most_by=most.pairs,
        binding=len(clock.binding),
        segments=1,
        begin=begin,
        end=end,
        line=(middles[0], slope),
        error=math.ceil(max(errors)),
        zero_error=math.ceil(max(edges)),
    )


def _swept(swept: RateBound, at: int | None, begin: int, end: int) -> Interval:
    moment = swept.narrowest() if at is None else at
    least, most = swept.least(moment), swept.most(moment)
    middles = [(swept.least(edge).value + swept.most(edge).value) / 2 for edge in (begin, end)]
    slope = (middles[1] - middles[0]) / (end - begin) if end > begin else Fraction(0)
    line = (middles[0], slope)
    return Interval(
        method="rate",
        at=moment,
        least=math.floor(least.value),
        most=math.ceil(most.value),
        rate_least=-swept.rate,
        rate_most=swept.rate,
        least_by=least.pairs,
        most_by=most.pairs,
        binding=swept.binding(),
        segments=1,
        begin=begin,
        end=end,
        line=line,
        error=math.ceil(swept.widest_error(begin, end, line)),
        zero_error=math.ceil(swept.widest_error(begin, end, (Fraction(0), Fraction(0)))),
    )


def from_orders(
    forward: tuple[np.ndarray, np.ndarray, np.ndarray], backward: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> Pairs:
    """Return the limits that causes and effects set.

    Args:
        forward: causes on the first clock: their times, those of their effects on the second, and numbers; int64 [n].
        backward: causes on the second clock: their times, those of their effects on the first, and numbers; int64 [m].
    """
    cause, effect, number = forward
    above = Limits(cause, effect - cause, number)
    cause, effect, number = backward
    return Pairs(above, Limits(effect, effect - cause, number))
