from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanescope.trace import ticks_to_ns, usable_frequency

frequencies = st.one_of(
    st.sampled_from([Fraction(50_000_000), Fraction(19_200_000), Fraction(1_800_000_000), Fraction(10**9)]),
    st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(10**11)),
)


@given(st.lists(st.integers(-(2**56), 2**56), max_size=20), frequencies)
def test_equals_exact_arithmetic(ticks, frequency):
    exact = [tick * 10**9 * frequency.denominator // frequency.numerator for tick in ticks]
    array = np.array(ticks, np.int64)
    if any(abs(value) >= 2**63 for value in exact):
        with pytest.raises(OverflowError):
            ticks_to_ns(array, frequency)
    else:
        assert ticks_to_ns(array, frequency).tolist() == exact


@given(st.lists(st.integers(0, 2**40), min_size=2, max_size=20), frequencies.filter(lambda f: f > 1_000_000))
def test_is_monotone_so_nesting_survives(ticks, frequency):
    times = ticks_to_ns(np.array(sorted(ticks), np.int64), frequency)
    assert (np.diff(times) >= 0).all()


@pytest.mark.parametrize("frequency", [Fraction(1222017555865782271, 14056719000), Fraction(2**63 + 1, 10**9)])
def test_a_ratio_of_numbers_beyond_63_bits_converts_exactly(frequency):
    exact = [tick * 10**9 * frequency.denominator // frequency.numerator for tick in (0, 1, 10**6)]
    assert ticks_to_ns(np.array([0, 0]), frequency).tolist() == [0, 0]
    assert ticks_to_ns(np.array([0, 1, 10**6]), frequency).tolist() == exact


@given(st.lists(st.integers(-(2**62), 2**62), max_size=20), frequencies)
def test_a_usable_frequency_is_one_that_converts(ticks, frequency):
    array = np.array(ticks, np.int64)
    if usable_frequency(frequency, array) is None:
        with pytest.raises(OverflowError):
            ticks_to_ns(array, frequency)
    else:
        ticks_to_ns(array, frequency)


@pytest.mark.parametrize("frequency", [None, 0, -5])
def test_what_is_no_frequency_is_not_usable(frequency):
    assert usable_frequency(frequency, np.array([1])) is None


def test_the_latest_moment_of_64_bits_is_a_time():
    ticks = np.array([(1 << 63) - 1])
    assert ticks_to_ns(ticks, 1_000_000_000).tolist() == ticks.tolist()
    with pytest.raises(OverflowError):
        ticks_to_ns(ticks, 999_999_999)


@pytest.mark.parametrize("ticks", [[1 << 62, 0], [0, -(1 << 62)], [0, 1 << 62, 5]])
def test_one_moment_beyond_64_bits_is_enough_to_refuse_all(ticks):
    with pytest.raises(OverflowError, match="exceed 63 bits"):
        ticks_to_ns(np.array(ticks), 400_000_000)
    assert ticks_to_ns(np.array(ticks), 800_000_000).tolist() == [value * 10 // 8 for value in ticks]
