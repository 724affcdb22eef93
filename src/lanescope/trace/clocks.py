"""Exact conversion of ticks to nanoseconds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from fractions import Fraction

_NS = 1_000_000_000
_INT64_MAX = (1 << 63) - 1


def as_ratio(frequency: Fraction | int) -> tuple[int, int]:
    """Return numerator and denominator of a frequency, in lowest terms."""
    if isinstance(frequency, int):
        return frequency, 1
    from fractions import Fraction  # with what it imports, as dear as reading a small capture

    return Fraction(frequency).as_integer_ratio()


def usable_frequency(frequency: Fraction | int | None, ticks: npt.NDArray[np.int64]) -> Fraction | int | None:
    """Return a frequency that a file states if ``ticks_to_ns`` can convert the ticks with it; otherwise None.

    Args:
        frequency: in Hz; None, 0 and negative numbers are not usable.
        ticks: int64 [n], unwrapped; those of a damaged file may span more nanoseconds than 63 bits hold.

    Example:
        >>> usable_frequency(1_000_000, np.array([0, 1 << 40])), usable_frequency(1, np.array([0, 1 << 40]))
        (1000000, None)
    """
    if not frequency or frequency < 0:
        return None
    try:
        ticks_to_ns(np.array([ticks.min(initial=0), ticks.max(initial=0)], np.int64), frequency)
    except OverflowError:
        return None
    return frequency


def ticks_to_ns(ticks: npt.NDArray[np.int64], frequency: Fraction | int) -> npt.NDArray[np.int64]:
    """Convert ticks to nanoseconds: floor(ticks * 1e9 / frequency), without rounding on the way.

    One monotone function for begins and ends alike, so what nests in ticks nests in nanoseconds.

    Args:
        ticks: int64 [n], unwrapped; negative ones floor too.
        frequency: ticks a second, > 0, an exact ratio.

    Returns:
        int64 [n] nanoseconds.

    Raises:
        OverflowError: a result does not fit 63 bits.

    Example:
        >>> from fractions import Fraction
        >>> ticks_to_ns(np.array([0, 1, 2, 3]), Fraction(1_800_000_000)).tolist()
        [0, 0, 1, 1]
    """
    counts, seconds = as_ratio(frequency)
    shared = math.gcd(_NS * seconds, counts)
    num, den = _NS * seconds // shared, counts // shared
    if not len(ticks):
        return ticks
    extremes = (int(ticks.min()), int(ticks.max()))
    if max(abs(value * num // den) for value in extremes) > _INT64_MAX:
        raise OverflowError(f"{extremes} ticks at {frequency} Hz exceed 63 bits of nanoseconds")
    if num == den:
        return ticks
    if max(num, den) <= _INT64_MAX and max(abs(value) for value in extremes) * num <= _INT64_MAX:
        return ticks * num // den if den > 1 else ticks * num
    if num * den <= _INT64_MAX:
        whole, rest = np.divmod(ticks, den)
        result: npt.NDArray[np.int64] = whole * num + rest * num // den
        return result
    return np.array([value * num // den for value in ticks.tolist()], np.int64)
