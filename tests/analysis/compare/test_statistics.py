"""Statistics of comparisons against slow, obvious versions, and against numbers in print."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations
from math import isclose, sqrt
from statistics import fmean, variance

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from lanescope.analysis.compare.contribution import Side, contributions
from lanescope.analysis.compare.prediction import _predicted
from lanescope.analysis.compare.relabeling import relabeling_test, runs_needed, smallest_p
from lanescope.analysis.compare.series import _split_t
from lanescope.analysis.compare.student import critical_t, two_sided_p


def plain_t(values: list[float], second: set[int]) -> float:
    """Welch's t as in any textbook."""
    one = [value for at, value in enumerate(values) if at not in second]
    other = [value for at, value in enumerate(values) if at in second]
    error = sqrt(variance(one) / len(one) + variance(other) / len(other))
    return abs(fmean(other) - fmean(one)) / error


@pytest.mark.parametrize("sides", [(3, 4), (4, 4), (5, 3)])
def test_relabeling_is_that_of_the_textbook(sides: tuple[int, int]) -> None:
    drawn = random.Random(sum(sides))
    rows = [[drawn.gauss(5, 0.1) + (at >= sides[0]) * shift for at in range(sum(sides))] for shift in (0, 0.05, 0.4)]
    found = relabeling_test(np.array(rows), sides[0], 0.05)
    runs = range(sum(sides))
    true = set(range(sides[0], sum(sides)))
    observed = [plain_t(row, true) for row in rows]
    largest = [max(plain_t(row, set(second)) for row in rows) for second in combinations(runs, sides[1])]
    expected = [sum(most >= t - 1e-9 for most in largest) / len(largest) for t in observed]
    assert found.p.tolist() == expected
    assert found.is_exact
    assert found.labelings == len(largest)
    assert [isclose(t, e / s, rel_tol=1e-9) for t, e, s in zip(observed, found.effect, found.error, strict=True)]


def test_equal_values_without_spread_differ_or_not() -> None:
    found = relabeling_test(np.array([[1.0] * 5 + [2.0] * 5, [3.0] * 10]), 5, 0.05)
    assert found.p.tolist() == [2 / 252, 1.0]
    assert found.effect.tolist() == [1.0, 0.0]


def test_so_many_runs_are_needed() -> None:
    assert smallest_p(3, 3) == 2 / 20
    assert runs_needed(0.05) == 4
    assert runs_needed(0.005) == 6


def test_many_runs_are_drawn_and_the_true_labeling_counts() -> None:
    drawn = np.random.default_rng(1).normal(0, 1, (1, 20)) + np.repeat([0, 10], 10)
    found = relabeling_test(drawn, 10, 0.05)
    assert not found.is_exact
    assert found.p[0] >= 1 / found.labelings > 0


@pytest.mark.parametrize(
    ("p", "freedom", "t"),
    # Fisher and Yates, Statistical Tables, table III.
    [(0.05, 1, 12.706), (0.05, 3, 3.182), (0.01, 4, 4.604), (0.05, 5, 2.571), (0.001, 10, 4.587), (0.1, 30, 1.697)],
)
def test_student_is_that_of_the_tables(p: float, freedom: int, t: float) -> None:
    assert round(critical_t(p, freedom), 3) == t
    assert isclose(two_sided_p(t, freedom), p, rel_tol=2e-3)


SIDES = st.dictionaries(
    st.tuples(st.sampled_from("abcdef")),
    st.builds(Side, st.integers(0, 10**6), st.integers(0, 2**55)).map(lambda side: side if side.slices else Side(0, 0)),
)


@settings(max_examples=some(300))
@given(SIDES, SIDES, st.integers(1, 9), st.integers(1, 9))
def test_contributions_add_up_exactly(a: dict, b: dict, runs_a: int, runs_b: int) -> None:
    change, parts = contributions(a, b, (runs_a, runs_b))
    nothing = Side(0, 0)
    exact = {
        key: Fraction(b.get(key, nothing).total, runs_b) - Fraction(a.get(key, nothing).total, runs_a)
        for key in {*a, *b}
    }
    assert abs(change - sum(exact.values())) <= Fraction(1, 2)
    assert sum(part.change for part in parts.values()) == change
    for key, part in parts.items():
        assert abs(part.change - exact[key]) < 1
        assert part.count_effect + part.per_slice_effect == part.change


@settings(max_examples=some(100))
@given(st.integers(1, 10**4), st.integers(1, 10**4), st.integers(1, 10**6), st.integers(1, 10**6))
def test_the_split_is_symmetric(slices: int, more: int, each: int, other: int) -> None:
    key = ("k",)
    one, two = {key: Side(slices, slices * each)}, {key: Side(more, more * other)}
    _, there = contributions(one, two, (1, 1))
    _, back = contributions(two, one, (1, 1))
    assert abs(there[key].count_effect + back[key].count_effect) <= 1 + 1e-9 * abs(there[key].count_effect)
    if each == other:
        assert there[key].per_slice_effect in (-1, 0, 1)


def test_split_t_is_the_pooled_t() -> None:
    values = np.random.default_rng(3).normal(0, 1, 9)
    found = _split_t(values[None, None, :])[0, 0]
    for at, t in enumerate(found.tolist(), 2):
        one, other = values[:at], values[at:]
        pooled = (one.var() * len(one) + other.var() * len(other)) / 7
        assert isclose(t, abs(one.mean() - other.mean()) / sqrt(pooled * (1 / len(one) + 1 / len(other))))


def test_a_single_statistic_has_the_prediction_interval_of_the_textbook() -> None:
    known = np.array([[1.0, 1.2, 0.9, 1.1, 1.05]])
    error = known.std(ddof=1) * sqrt(1 + 1 / 5)
    effect, _, p = _predicted(known, np.array([1.6]), 0.05)
    assert effect[0] == pytest.approx(1.6 - known.mean())
    assert p[0] == pytest.approx(two_sided_p(effect[0] / error, 4))
    assert p[0] < 0.05
