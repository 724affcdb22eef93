"""Segments of a clock are the longest that one line satisfies, as looking for that line for each length tells."""

from fractions import Fraction

import numpy as np
import pytest

from effort import seeds
from lanescope._native import core
from lanescope.analysis.align.interval import Interval, from_orders, offset_interval
from lanescope.analysis.align.limits import FAR, Limits, Pairs
from lanescope.analysis.align.linear import Segments, StraightClock

RATE = Fraction(1, 10_000)


def pairs_of(seed, most=200):
    """Return pairs on a clock whose rate, and sometimes its offset, jumps; with some on one line and at one time."""
    rng = np.random.default_rng(seed)
    count, cuts = int(rng.integers(5, most)), int(rng.integers(1, 8))
    at = np.sort(rng.integers(0, 10**9, count))
    if seed % 3 == 0:
        at = at // 10**7 * 10**7
    part = at * cuts // 10**9
    offset = rng.integers(-2000, 2000, cuts)[part] + rng.integers(-60, 60, cuts)[part] * at // 10**6
    delay = rng.exponential(3000, count).astype(np.int64) * (rng.random(count) < 0.8)
    is_above = rng.random(count) < 0.5
    sides = []
    for sign, mine in ((1, is_above), (-1, ~is_above)):
        rows = np.flatnonzero(mine)
        sides.append(Limits(at[rows], sign * offset[rows] + 100 + delay[rows], rows))
    return Pairs(*sides)


def one_by_one(pairs, rate):
    """Return the bounds of segments: each moment is added as long as a line satisfies all pairs since the first."""
    moments = sorted({*pairs.above.at.tolist(), *pairs.below.at.tolist()})
    found, begin = [], 0
    while begin < len(moments):
        end, has_both = begin, False
        while end < len(moments):
            parts = [
                side.take(np.flatnonzero((side.at >= moments[begin]) & (side.at <= moments[end]))) for side in pairs
            ]
            both = all(len(part.at) for part in parts)
            if both and StraightClock.of(Pairs(*parts), rate) is None:
                break
            end, has_both = end + 1, both
        if end > begin and has_both:
            found.append((moments[begin], moments[end - 1]))
        begin = max(end, begin + 1)
    return found


@pytest.mark.parametrize("rate", [RATE, Fraction(0), Fraction(1, 10**6), Fraction(7)])
def test_segments_are_the_longest_ones(rate):
    cut = 0
    for seed in seeds(150, 50):
        pairs = pairs_of(seed)
        found = Segments(pairs, rate)
        assert found.bounds == one_by_one(pairs, rate), seed
        cut += len(found.bounds) > 1
        for number, (first, last) in enumerate(found.bounds):
            clock = found.clock(number)
            for moment in (first, last):
                assert clock.least(moment).value <= clock.most(moment).value
    assert cut > 10


def test_the_segment_of_a_moment_is_the_one_around_it_or_the_nearest():
    pairs = pairs_of(5, most=2000)
    found = Segments(pairs, RATE)
    assert len(found.bounds) > 2
    for number, (first, last) in enumerate(found.bounds):
        assert {found.around(first), found.around(last), found.around((first + last) // 2)} == {number}
    assert found.around(-(10**12)) == 0
    assert found.around(10**12) == len(found.bounds) - 1
    nothing = Limits(*[np.empty(0, np.int64)] * 3)
    assert Segments(Pairs(pairs.above, nothing), RATE).around(0) is None


def test_moments_and_limits_of_any_size_are_exact():
    """At the limits of what is compared, where products take 124 bits."""
    at = np.array([-FAR, 0, FAR], np.int64)
    for bend, room, count in ((0, 0, 1), (1, 0, 2), (2, 1, 1), (3, 1, 2), (0, -1, 0)):
        middle = np.array([4 - FAR, bend, FAR - 4], np.int64)
        pairs = Pairs(Limits(at, middle + room, np.arange(3)), Limits(at, room - middle, np.arange(3)))
        assert len(Segments(pairs, Fraction(2)).bounds) == count, (bend, room)


def test_a_rate_of_many_digits_is_no_lower_than_given():
    rate = Fraction(10**40 + 1, 10**44)
    case = pairs_of(5, most=2000)
    assert Segments(case, rate).bounds == Segments(case, RATE).bounds
    found = Segments(case, rate)
    for number in range(len(found.bounds)):
        assert found.clock(number).steepest.rate >= -rate


def test_a_whole_clock_of_segments_is_that_of_the_segment_asked_for():
    random = np.random.default_rng(4)
    cause = np.sort(random.integers(0, 10**10, 4000))
    bends = np.interp(cause, [0, 5 * 10**9, 10**10], [0, 3 * 10**5, 0]).astype(np.int64)
    effect = cause + bends + random.exponential(2000, 4000).astype(np.int64)
    back = np.sort(random.integers(0, 10**10, 4000))
    bends = np.interp(back, [0, 5 * 10**9, 10**10], [0, 3 * 10**5, 0]).astype(np.int64)
    later = back + random.exponential(2000, 4000).astype(np.int64)
    pairs = from_orders((cause, effect, np.arange(4000)), (back + bends, later, 4000 + np.arange(4000)))
    for moment in (10**9, 9 * 10**9):
        found = offset_interval(pairs, rate=RATE, at=moment, method="segments")
        assert isinstance(found, Interval)
        assert found.method == "segments"
        assert found.segments >= 2
        truth = np.interp(moment, [0, 5 * 10**9, 10**10], [0, 3 * 10**5, 0])
        assert found.least <= truth <= found.most
        assert found.most - found.least < 1000


@pytest.mark.parametrize(
    ("arrays", "rate", "message"),
    [
        (([1, 1], [0, 0], [], []), (1, 2), "do not rise"),
        (([1, 2], [0], [], []), (1, 2), "different lengths"),
        (([1], [FAR + 1], [], []), (1, 2), "beyond"),
        (([1], [0], [1], [0]), (1, 0), "rate"),
        (([1], [0], [1], [0]), (-1, 1), "rate"),
    ],
)
def test_what_the_native_part_cannot_take_is_refused(arrays, rate, message):
    with pytest.raises(ValueError, match=message):
        core.align_segments(*(np.array(values, np.int64) for values in arrays), *rate)
