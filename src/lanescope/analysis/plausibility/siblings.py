"""Statistics that compare a lane with the others of its group."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.intervals import Ints

Floats = npt.NDArray[np.float64]

#: Scales a median absolute deviation to the standard deviation of a normal distribution.
_NORMAL = 1.4826


def median(values: npt.NDArray[Any]) -> float:
    """Return what ``np.median`` does, at less cost for the few values of a group; NaN of no values.

    Args:
        values: [n] integers or floats.
    """
    count = len(values)
    if not count:
        return float("nan")
    ordered = np.sort(values)
    low, high, last = float(ordered[(count - 1) // 2]), float(ordered[count // 2]), float(ordered[-1])
    return last if last != last else (low + high) / 2  # NaNs are sorted to the end


def deviation(values: npt.NDArray[Any], least: float) -> tuple[float, float]:
    """Return the median of values and their median absolute deviation, scaled and at least ``least``.

    Args:
        values: [n], n > 0.
        least: lower bound of the deviation.
    """
    middle = median(values)
    return middle, max(_NORMAL * median(np.abs(values - middle)), least)


def median_of_others(values: Ints, key: Ints) -> Floats:
    """Return for each value the median of the other values with the same key, float64 [n]; NaN without any.

    Args:
        values: int64 [n], times relative to some moment of the trace: they must be exact as float64.
        key: int64 [n].
    """
    count = len(values)
    found = np.full(count, np.nan)
    if not count:
        return found
    order = np.lexsort((values, key))
    ordered, keys = values[order].astype(np.float64), key[order]
    is_first = np.concatenate(([True], keys[1:] != keys[:-1]))
    start = np.flatnonzero(is_first)
    size = np.diff(np.append(start, count))
    group = np.cumsum(is_first) - 1
    rank, others = np.arange(count) - start[group], size[group] - 1
    has_others = others > 0
    low, high = (others - 1) // 2, others // 2
    # Positions in the group once the value itself is taken out.
    low, high = (np.where(has_others, start[group] + at + (at >= rank), 0) for at in (low, high))
    found[order] = np.where(has_others, (ordered[low] + ordered[high]) / 2, np.nan)
    return found


def group_sizes(key: Ints) -> Ints:
    """Return for each value how often its key occurs, int64 [n]."""
    _, inverse, count = np.unique(key, return_inverse=True, return_counts=True)
    sizes: Ints = count[inverse.ravel()]
    return sizes
