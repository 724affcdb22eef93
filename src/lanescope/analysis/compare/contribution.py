"""Contribution of each group to the change of the total, in whole units of time whose sum is exactly the change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import log
from typing import NamedTuple

from lanescope.analysis.compare.grouping import Key


class Contribution(NamedTuple):
    """What a group adds to the change of the total; time units of the runs, ``change`` is the sum of the effects.

    Attributes:
        change: change of the group's mean total.
        count_effect: the part due to more or fewer slices.
        per_slice_effect: the part due to longer or shorter slices.
    """

    change: int
    count_effect: int
    per_slice_effect: int


class Side(NamedTuple):
    """A group on one side, summed over its runs."""

    slices: int
    total: int


def contributions(
    a: Mapping[Key, Side], b: Mapping[Key, Side], runs: tuple[int, int]
) -> tuple[int, dict[Key, Contribution]]:
    """Split the change of the mean total per run by group, and each group's part by cause.

    The causes are told apart by the logarithmic mean (Divisia) split: with L the logarithmic mean of the totals, the
    count effect is L times the logarithm of the ratio of the counts. A group that appeared or vanished has a count
    effect only. Parts are rounded so that the sum is exact: each group's down, and the units that are left go to the
    groups that lost most; the per-slice effect is what the count effect leaves of its group.

    Args:
        a: sums over the runs of the first side, by group.
        b: sums over those of the second side.
        runs: number of runs of either side.

    Returns:
        The change of the mean total, rounded, and the contributions, in the order of the keys.

    Example:
        >>> contributions({("load",): Side(10, 1000)}, {("load",): Side(11, 1320)}, (1, 1))
        (320, {('load',): Contribution(change=320, count_effect=110, per_slice_effect=210)})
    """
    keys = sorted({*a, *b})
    nothing = Side(0, 0)
    pairs = [(a.get(key, nothing), b.get(key, nothing)) for key in keys]
    exact = [Fraction(other.total, runs[1]) - Fraction(one.total, runs[0]) for one, other in pairs]
    change = round(sum(exact, Fraction(0)))
    found = {}
    for key, (one, other), part in zip(keys, pairs, _rounded(exact, change), strict=True):
        by_count = _count_effect(one, other, runs, part)
        found[key] = Contribution(part, by_count, part - by_count)
    return change, found


def _rounded(exact: Sequence[Fraction], total: int) -> list[int]:
    """Return integers near the exact parts whose sum is ``total``, which is within half of their sum."""
    parts = [part.__floor__() for part in exact]
    left = total - sum(parts)
    by_loss = sorted(range(len(exact)), key=lambda at: (parts[at] - exact[at], at))
    for at in by_loss[:left]:
        parts[at] += 1
    return parts


def _count_effect(one: Side, other: Side, runs: tuple[int, int], change: int) -> int:
    """Return the part of the change of a group that is due to its count."""
    if one.slices * runs[1] == other.slices * runs[0]:
        return 0
    if not one.slices or not other.slices:
        return change
    more = log(other.slices * runs[0] / (one.slices * runs[1]))
    was, now = one.total / runs[0], other.total / runs[1]
    if was <= 0 or now <= 0:
        return 0  # slices without time: their number explains nothing
    # log1p would not help: totals that differ by less than the precision of a ratio have their own value as mean.
    growth = log(now / was)
    mean = (now - was) / growth if abs(growth) > 1e-9 else was
    return round(mean * more)
