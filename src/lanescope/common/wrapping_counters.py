"""Unwrapping of counters: modular arithmetic on columns, exact for counters of up to 64 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct

Ints = npt.NDArray[np.integer[Any]]
Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]


def unwrap(
    raw: Ints, *, bits: int | None = None, period: int | None = None, group: Ints | None = None, step_back: int = 0
) -> Int64:
    """Return the values of a wrapping counter in record order, int64 [n], congruent to the raw ones.

    A step back of more than ``step_back`` is a wrap; so is a step forward that ends at most ``step_back`` before the
    value of the record before. No value may lie a period or more after the one before.

    Args:
        raw: integers [n].
        bits: width of the counter, 1 to 64; or
        period: values after which it wraps, at most 2**62, if that is not a power of two.
        group: integers [n], the counter of each record; None: one counter. The first record of each keeps its value.
        step_back: how far a value may lie before that of the record before, less than the period.

    Complexity:
        O(n); with groups that are not in order, one stable sort.

    Example:
        >>> unwrap(np.array([250, 3, 255, 1]), bits=8, step_back=4).tolist()
        [250, 259, 255, 257]
    """
    if group is not None and len(raw) and not (group[1:] >= group[:-1]).all():
        order = np.argsort(group, kind="stable")
        found = np.empty(len(raw), np.int64)
        found[order] = unwrap(raw[order], bits=bits, period=period, group=group[order], step_back=step_back)
        return found
    step = np.empty(len(raw), np.int64)
    step[:1] = raw[:1].astype(np.int64)
    step[1:] = _signed_steps(raw[:-1], raw[1:], bits, period, step_back)
    if group is None:
        return np.cumsum(step, dtype=np.int64)
    starts = np.flatnonzero(np.diff(group, prepend=group[:1] - 1)) if len(raw) else np.empty(0, np.int64)
    step[starts] = raw[starts].astype(np.int64)
    total = np.cumsum(step, dtype=np.int64)
    return total - np.repeat((total - step)[starts], np.diff(starts, append=len(raw)))


def at_or_after(raw: Ints, floor: Int64 | int, bits: int) -> Int64:
    """Return the smallest values congruent to ``raw`` that are not less than ``floor``, int64 [n].

    Args:
        raw: integers [n], valid in their lowest ``bits``.
        floor: int64 [n], or one for all.
        bits: width of the counter, 1 to 64.

    Raises:
        OverflowError: never; a result of 2**63 or more wraps.

    Example:
        >>> at_or_after(np.array([250, 3]), 1000, 8).tolist()
        [1018, 1027]
    """
    low = np.asarray(floor, np.int64).astype(np.uint64)
    found: Int64 = (low + _modulo(raw.astype(np.uint64) - low, bits)).view(np.int64)
    return found


def nearest(raw: Ints, expected: Int64 | int, bits: int) -> Int64:
    """Return the values congruent to ``raw`` nearest to ``expected``, int64 [n]; the lower of two as near.

    Args:
        raw: integers [n], valid in their lowest ``bits``.
        expected: int64 [n], or one for all.
        bits: width of the counter, 1 to 64; with 64 only one value of 64 bits is congruent.

    Example:
        >>> nearest(np.array([250, 3]), 1000, 8).tolist()
        [1018, 1027]
        >>> nearest(np.array([250, 3]), 900, 8).tolist()
        [1018, 771]
    """
    half = np.uint64(1 << (bits - 1))
    low = np.asarray(expected, np.int64).astype(np.uint64) - half
    found: Int64 = (low + _modulo(raw.astype(np.uint64) - low, bits)).view(np.int64)
    return found


def circular_start(raw: Ints, bits: int) -> tuple[int, bool]:
    """Return the value after the largest empty arc of the circle of 2**bits values, and whether that exceeds half.

    Counters that were read within less than half a period of one another were all read at or after that value, in the
    sense of ``at_or_after``; if the arc is not larger than half a period, others could have come first.

    Args:
        raw: integers [n] in [0, 2**bits), in any order.
        bits: width of the counter, 1 to 62.

    Example:
        >>> circular_start(np.array([250, 3, 255, 3]), 8)
        (250, True)
        >>> circular_start(np.array([], np.int64), 8)
        (0, True)
    """
    if not len(raw):
        return 0, True
    found = distinct(raw).astype(np.int64)
    arc = np.diff(found, prepend=found[-1] - (1 << bits))
    at = int(arc.argmax())
    return int(found[at]), bool(arc[at] > (1 << bits) // 2)


def _signed_steps(before: Ints, after: Ints, bits: int | None, period: int | None, step_back: int) -> Int64:
    """Return the steps between values, int64 [n]: negative where they step back by at most ``step_back``."""
    if bits is None:
        if period is None:
            raise TypeError("unwrap takes bits or period")
        step = (after.astype(np.int64) - before.astype(np.int64)) % period
        return np.where(step >= period - step_back, step - period, step) if step_back else step
    ahead = _modulo(after.astype(np.uint64) - before.astype(np.uint64), bits)
    if not step_back:
        return ahead.view(np.int64)
    lead = np.uint64(step_back)
    found: Int64 = (_modulo(ahead + lead, bits) - lead).view(np.int64)
    return found


def _modulo(values: UInt64, bits: int) -> UInt64:
    return values if bits == 64 else values & np.uint64((1 << bits) - 1)
