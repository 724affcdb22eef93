"""Intervals of offsets contain the truth, are tight, and name the pair that contradicts."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import seeds
from lanescope.analysis.align.interval import Interval, OneBound, from_orders, offset_interval
from lanescope.analysis.align.limits import Contradiction, Limits, Pairs, RateBound
from lanescope.analysis.align.linear import Segments, StraightClock, hull_corners

PPM = Fraction(1, 1_000_000)
RATE = 100 * PPM


class Case:
    """Causes and effects on two clocks: one host, one device, delays that are exponential, and the true offset."""

    def __init__(self, seed: int, *, wander: bool = False) -> None:
        random = np.random.default_rng(seed)
        count = int(random.integers(20, 2001))
        self.offset = float(random.uniform(-10e6, 10e6))
        self.rate = float(random.uniform(-50e-6, 50e-6))
        self.sway = (float(random.uniform(0, 40e-6)), float(random.uniform(2e8, 2e9))) if wander else (0.0, 1e9)
        span = count * int(random.integers(5_000, 100_000))
        delay = float(random.uniform(2e3, 5e4))
        half = count // 2
        launched = np.sort(random.integers(0, span, half))
        begun = launched + np.ceil(random.exponential(delay, half)).astype(np.int64)
        ended = np.sort(random.integers(0, span, count - half))
        returned = ended + np.ceil(random.exponential(delay, count - half)).astype(np.int64)
        #: Width with the offset at all times known but for the delays: only a clock that stands still reaches it.
        self.best = int((begun - launched).min() + (returned - ended).min())
        self.span = span
        # A reading is rounded down after its moment was mapped: causes early, effects late, as counters show them.
        self.forward = (launched, np.ceil(begun + self.offset_at(begun)).astype(np.int64), np.arange(half))
        device_end = np.floor(ended + self.offset_at(ended)).astype(np.int64)
        self.backward = (device_end, returned, half + np.arange(count - half))
        self.pairs = from_orders(self.forward, self.backward)

    def offset_at(self, moment):
        share, period = self.sway
        wave = share * period / (2 * math.pi) * np.sin(2 * math.pi * np.asarray(moment) / period)
        return self.offset + self.rate * np.asarray(moment) + wave


def outcome(pairs: Pairs, **options) -> Interval:
    found = offset_interval(pairs, **options)
    assert isinstance(found, Interval), found
    return found


@pytest.mark.parametrize("method", ["auto", "rate"])
def test_intervals_of_straight_clocks_contain_the_truth_and_are_narrow(method):
    ratios, inside, lines = [], 0, 0
    cases = seeds(1000, 100)
    for seed in cases:
        case = Case(seed)
        found = outcome(case.pairs, method=method)
        truth = float(case.offset_at(found.at))
        inside += found.least <= truth <= found.most
        edges = np.linspace(found.begin, found.end, 17)
        line = float(found.line[0]) + float(found.line[1]) * (edges - found.begin)
        lines += bool((np.abs(line - case.offset_at(edges)) <= found.error).all())
        assert found.rate_least <= case.rate <= found.rate_most
        ratios.append((found.most - found.least) / case.best)
    assert inside == lines == len(cases)
    print(
        f"{method}: {inside} of {len(cases)} contain the truth,"
        f" median width {median(ratios):.3f} of the two shortest delays"
    )
    assert method == "rate" or median(ratios) <= 1.3


def test_the_rate_bound_contains_clocks_that_wander():
    cases, ratios = seeds(1000, 100), []
    for seed in cases:
        case = Case(seed, wander=True)
        found = outcome(case.pairs, method="rate")
        assert found.least <= float(case.offset_at(found.at)) <= found.most
        edges = np.linspace(found.begin, found.end, 33)
        line = float(found.line[0]) + float(found.line[1]) * (edges - found.begin)
        assert (np.abs(line - case.offset_at(edges)) <= found.error).all()
        ratios.append((found.most - found.least) / case.best)
    print(f"wandering: all of {len(cases)}, width {median(ratios):.3f} of the two shortest delays")


def extreme_clocks(pairs: Pairs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all moments, and the highest and lowest offset of any clock at each, in ten-thousandths: by all pairs.

    What the two show is itself a clock that satisfies all pairs, which is asserted: no method can exclude it, and the
    distance of the two is the best possible width of an interval.
    """
    (above, most, _), (below, lowered, _) = pairs
    scale = RATE.denominator // RATE.numerator
    moments = np.sort(np.concatenate([above, below]))
    high = (scale * most + np.abs(moments[:, None] - above)).min(axis=1)
    low = (-scale * lowered - np.abs(moments[:, None] - below)).max(axis=1)
    for clock in (high, low):
        assert (clock[np.searchsorted(moments, above)] <= scale * most).all()
        assert (clock[np.searchsorted(moments, below)] >= -scale * lowered).all()
        assert (np.abs(np.diff(clock)) <= np.diff(moments)).all()
    return moments, high, low


@pytest.mark.parametrize("wander", [False, True])
def test_the_rate_bound_is_as_narrow_as_any_method_can_be(wander):
    ratios, scale = [], RATE.denominator // RATE.numerator
    for seed in seeds(200, 40):
        case = Case(seed, wander=wander)
        found = outcome(case.pairs, method="rate")
        moments, high, low = extreme_clocks(case.pairs)
        at = np.searchsorted(moments, found.at)
        assert (found.least, found.most) == (low[at] // scale, -(-high[at] // scale))
        best = int((high - low).min())
        # Both limits are rounded to whole units.
        assert scale * (found.most - found.least) <= best + 2 * scale
        ratios.append(scale * (found.most - found.least) / best)
    print(f"median width {median(ratios):.4f} of the best possible")
    assert median(ratios) <= 1.01


def enumerated(pairs: Pairs, moment: int, rate: Fraction) -> tuple[Fraction, Fraction] | None:
    """Return the lowest and highest value at a moment over all lines that satisfy the pairs: vertices, one by one."""
    above = list(zip(pairs.above.at.tolist(), pairs.above.most.tolist(), strict=True))
    below = [(x, -y) for x, y in zip(pairs.below.at.tolist(), pairs.below.most.tolist(), strict=True)]
    points = above + below
    lines = [(Fraction(y) - slope * x, slope) for x, y in points for slope in (rate, -rate)]
    for (x1, y1), (x2, y2) in combinations(points, 2):
        if x1 != x2:
            slope = Fraction(y2 - y1, x2 - x1)
            lines.append((y1 - slope * x1, slope))
    values = [
        base + slope * moment
        for base, slope in lines
        if abs(slope) <= rate
        and all(base + slope * x <= y for x, y in above)
        and all(base + slope * x >= y for x, y in below)
    ]
    return (min(values), max(values)) if values else None


def limits(points) -> Limits:
    at, most = np.array(points, np.int64).reshape(-1, 2).T
    return Limits(at, most, np.arange(len(at)))


points = st.lists(st.tuples(st.integers(0, 40), st.integers(-6, 20)), min_size=1, max_size=7)


@given(points, points, st.integers(-20, 60), st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1), Fraction(20)]))
def test_straight_clocks_are_those_of_the_enumeration(above, below, moment, rate):
    pairs = Pairs(limits(above), limits(below))
    expected = enumerated(pairs, moment, rate)
    clock = StraightClock.of(pairs, rate)
    if expected is None:
        assert clock is None
        return
    assert clock is not None
    assert (clock.least(moment).value, clock.most(moment).value) == expected


@given(points, points, st.integers(-20, 60), st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1), Fraction(20)]))
def test_the_rate_bound_is_that_of_all_pairs(above, below, moment, rate):
    pairs = Pairs(limits(above), limits(below))
    swept = RateBound(pairs, rate)
    most = min(y + rate * abs(moment - x) for x, y in above)
    least = max(-y - rate * abs(moment - x) for x, y in below)
    assert (swept.least(moment).value, swept.most(moment).value) == (least, most)
    misses = {(i, j): -y - rate * abs(x - u) - v for i, (u, v) in enumerate(above) for j, (x, y) in enumerate(below)}
    worst = max(misses.values())
    found = swept.contradiction()
    assert (found is None) == (worst <= 0)
    if found is not None:
        assert misses[found.above, found.below] == worst
        assert found.by == math.ceil(worst)


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(-50, 50)), min_size=1, max_size=300))
def test_corners_of_the_hull_are_those_of_all_points(points):
    lowest = {}
    for x, y in points:
        lowest[x] = min(y, lowest.get(x, y))
    at = np.array(sorted(lowest), np.int64)
    most = np.array([lowest[x] for x in at.tolist()], np.int64)
    found = hull_corners(at, most)
    line = np.interp(at, at[found], most[found])
    assert (line <= most + 1e-9).all()
    assert found[0] == 0
    assert found[-1] == len(at) - 1
    slopes = np.diff(most[found]) / np.diff(at[found])
    assert (np.diff(slopes) > 0).all()


@pytest.mark.parametrize("reversed_pair", ["forward", "backward"])
def test_a_reversed_pair_is_named(reversed_pair):
    for seed in seeds(200, 40):
        case = Case(seed)
        columns = {"forward": case.forward, "backward": case.backward}
        cause, effect, number = columns[reversed_pair]
        wrong = len(cause) // 3
        effect = effect.copy()
        effect[wrong] -= 10 * case.best + 2 * int(RATE * case.span) + 3_000_000
        columns[reversed_pair] = cause, effect, number
        found = offset_interval(from_orders(columns["forward"], columns["backward"]))
        assert isinstance(found, Contradiction)
        assert number[wrong] == (found.above if reversed_pair == "forward" else found.below)
        assert found.by > 0


def test_shifting_and_scaling_clocks_changes_nothing_but_that():
    for seed in seeds(100, 20):
        case = Case(seed)
        (s, r, i), (u, v, j) = case.forward, case.backward
        for method in ("auto", "rate"):
            found = outcome(case.pairs, method=method, at=case.span // 3)
            a, b = 7_000_000_123, -1_000_000_000_007
            shifted = outcome(from_orders((s + a, r + b, i), (u + b, v + a, j)), method=method, at=case.span // 3 + a)
            assert (shifted.least - b + a, shifted.most - b + a) == (found.least, found.most)
            assert shifted[5:10] == found[5:10]
            scaled = outcome(from_orders((3 * s, 3 * r, i), (3 * u, 3 * v, j)), method=method, at=3 * (case.span // 3))
            assert 3 * found.least <= scaled.least <= scaled.most <= 3 * found.most
            assert (scaled.least_by, scaled.most_by) == (found.least_by, found.most_by)


def test_swapping_the_clocks_turns_the_interval_around():
    """The offset of the first against the second, at the moment that the second shows."""
    for seed in seeds(100, 20):
        case = Case(seed)
        found = outcome(case.pairs)
        middle = found.at + round(found.offset)
        swapped = outcome(from_orders(case.backward, case.forward), at=middle)
        assert abs(swapped.offset + found.offset) <= found.half_width / 100 + 2


def test_one_side_gives_the_one_bound_that_is_known():
    none = (np.empty(0, np.int64),) * 3
    forward = (np.array([0, 100]), np.array([50, 120]), np.array([4, 5]))
    assert offset_interval(from_orders(forward, none)) == OneBound(100, None, 20, 5)
    assert offset_interval(from_orders(none, forward)) == OneBound(120, -20, None, 5)
    assert offset_interval(from_orders(none, none)) == OneBound(0, None, None, -1)


def test_a_clock_with_two_rates_is_cut_into_segments_of_which_each_contains_its_clock():
    moments = np.arange(0, 2_000_000, 1000)
    offset = np.where(moments < 1_000_000, moments // 10, 100_000 - (moments - 1_000_000) // 10)
    pairs = Pairs(
        Limits(moments, offset + 3, np.arange(len(moments))), Limits(moments, 3 - offset, np.arange(len(moments)))
    )
    assert StraightClock.of(pairs, Fraction(1)) is None
    found = Segments(pairs, Fraction(1))
    # One more moment still fits the first line.
    assert found.bounds == [(0, 1_000_000), (1_001_000, moments[-1])]
    for number, (first, last) in enumerate(found.bounds):
        clock = found.clock(number)
        for moment in (first, (first + last) // 2, last):
            truth = moment / 10 if moment < 1_000_000 else 100_000 - (moment - 1_000_000) / 10
            assert clock.least(moment).value - 1 <= truth <= clock.most(moment).value + 1
    answer = outcome(pairs, rate=Fraction(1), method="segments", at=400_000)
    assert answer.segments == 2
    assert answer.least <= 40_000 <= answer.most


def test_times_far_from_zero_are_exact():
    """Unix time in nanoseconds is beyond what floating-point numbers hold."""
    base = 1_790_000_000_000_000_001
    pairs = from_orders(
        (np.array([base, base + 10**9]), np.array([5, 10**9 + 5]), np.array([0, 1])),
        (np.array([2, 10**9 + 2]), np.array([base, base + 10**9]), np.array([2, 3])),
    )
    with pytest.raises(ValueError, match="beyond"):
        offset_interval(pairs)
    base //= 4
    pairs = from_orders(
        (np.array([base, base + 10**9]), np.array([5, 10**9 + 5]), np.array([0, 1])),
        (np.array([2, 10**9 + 2]), np.array([base, base + 10**9]), np.array([2, 3])),
    )
    for method in ("auto", "rate"):
        found = outcome(pairs, method=method)
        if method == "auto":
            assert (found.least, found.most) == (2 - base, 5 - base)
        assert abs(found.line[0] - (Fraction(7, 2) - base)) < 1
        assert found.error <= (2 if method == "auto" else 2 + 100_000)


def test_corners_of_long_and_slanted_hulls_are_those_that_are_looked_for_one_by_one():
    for seed in seeds(60, 20):
        random = np.random.default_rng(seed)
        at = np.cumsum(random.integers(1, 1000, 400))
        most = random.integers(0, 3000, 400) + at * int(random.integers(-5, 6)) + (at - at[200]) ** 2 // 10**5
        expected: list[int] = []
        for place in range(len(at)):
            while len(expected) > 1:
                first, second = expected[-2:]
                before = (most[second] - most[first]) * (at[place] - at[second])
                if before < (most[place] - most[second]) * (at[second] - at[first]):
                    break
                expected.pop()
            expected.append(place)
        assert hull_corners(at, most).tolist() == expected


def test_of_several_contradictions_the_worst_is_named():
    for seed in seeds(300, 100):
        random = np.random.default_rng(seed)
        above = [(int(x), int(y)) for x, y in random.integers((0, -5), (1000, 5), (6, 2))]
        below = [(int(x), int(y)) for x, y in random.integers((0, -30), (1000, 5), (6, 2))]
        rate = Fraction(1, 50)
        misses = {
            (i, j): -y - rate * abs(x - u) - v for i, (u, v) in enumerate(above) for j, (x, y) in enumerate(below)
        }
        found = RateBound(Pairs(limits(above), limits(below)), rate).contradiction()
        assert found is not None
        assert misses[found.above, found.below] == max(misses.values())
