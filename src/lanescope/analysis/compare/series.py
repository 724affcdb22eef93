"""Many runs in order: the groups whose level changed, and the run at which it did.

For each statistic the split of the series with the largest pooled t is its candidate. If nothing changed, any order of
the runs is as likely as the true one, so the adjusted p is the part of the orders whose largest t, over all statistics
and splits, reaches it. Further changes of the same statistic are searched on either side of one that was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, exp, log1p
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.analysis.compare.comparison import ALPHA, FLOOR, check_numbers
from lanescope.analysis.compare.evidence import tested_groups
from lanescope.analysis.compare.grouping import Key
from lanescope.analysis.compare.run_summary import RunSummary
from lanescope.common.intervals import Ints
from lanescope.errors import UsageError

Floats = npt.NDArray[np.float64]

#: Orders of the runs that are tried, the true one among them.
ORDERS = 5_000
#: A level is that of two runs at least.
_LEAST = 2
_SEED = 20_243
_EQUAL = 1e-12
#: Values handled at once: statistics times orders times runs.
_BLOCK = 4_000_000


class ChangePoint(NamedTuple):
    """A change of the level of a statistic of a group.

    Attributes:
        key: the group.
        statistic: ``total`` or ``count``.
        at: index of the first run on the new level.
        run: name of that run.
        change: new level over the old one, minus 1.
        p: adjusted p.
    """

    key: Key
    statistic: str
    at: int
    run: str
    change: float
    p: float


@dataclass(frozen=True, slots=True)
class SeriesResult:
    """Result of a search for changes in a series of runs.

    Attributes:
        by: columns of the identity of groups.
        unit: time unit.
        alpha: share of series without any change in which one is named, at most.
        floor: smallest change that is named.
        runs: names of the runs in order.
        changes: by run, then by size.
        tested: number of groups that all runs have.
        untested: groups that some runs lack; nothing is known of their changes.
        needed: runs that a verdict needs; 0 if there are enough.
    """

    by: tuple[str, ...]
    unit: str
    alpha: float
    floor: float
    runs: tuple[str, ...]
    changes: tuple[ChangePoint, ...]
    tested: int
    untested: tuple[Key, ...]
    needed: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the JSON document ``lanescope.diff_series/1``."""
        return {
            "by": list(self.by),
            "unit": self.unit,
            "alpha": self.alpha,
            "floor": self.floor,
            "runs": list(self.runs),
            "runs_needed": self.needed or None,
            "tested": self.tested,
            "untested": [dict(zip(self.by, key, strict=True)) for key in self.untested],
            "changes": [{**one._asdict(), "key": dict(zip(self.by, one.key, strict=True))} for one in self.changes],
        }


def find_changes(runs: Sequence[RunSummary], *, alpha: float = ALPHA, floor: float = FLOOR) -> SeriesResult:
    """Return the changes of level in a series of runs.

    Args:
        runs: the runs in order.
        alpha: share of series without any change in which one may be named.
        floor: smallest change that is named, 0.01 for 1 %.

    Raises:
        UsageError: a number out of range, fewer than two runs, or runs of different time units or groupings.

    Complexity: O(orders * statistics * runs).
    """
    check_numbers(alpha, floor)
    if len(runs) < 2:
        raise UsageError("a series requires two runs or more", hint="pass the captures in order")
    if len({(run.unit, run.by) for run in runs}) > 1:
        raise UsageError("runs of a series have different time units or --by", hint="use the same options for all runs")
    rows, values = tested_groups(runs, ("total", "count"))
    keys = {key for key, _ in rows}
    untested = tuple(sorted({key for run in runs for key in run.groups} - keys))
    needed = runs_needed(alpha)
    found: list[ChangePoint] = []
    if len(runs) >= needed and rows:
        logs = np.array(values)
        p, splits = _searched(logs, len(runs))
        for row in np.flatnonzero(p <= alpha).tolist():
            found += _changes(runs, *rows[row], logs[row], float(p[row]), int(splits[row]), alpha / len(rows), floor)
    return SeriesResult(
        runs[0].by,
        runs[0].unit,
        alpha,
        floor,
        tuple(run.name for run in runs),
        tuple(sorted(found, key=lambda one: (one.at, -abs(one.change), one.key, one.statistic))),
        len(keys),
        untested,
        0 if len(runs) >= needed else needed,
    )


def runs_needed(alpha: float) -> int:
    """Return the least number of runs in which a change in the middle can reach a p of ``alpha``.

    Example:
        >>> runs_needed(0.05)
        8
    """
    runs = 2 * _LEAST
    while 2 / comb(runs, runs // 2) > alpha:
        runs += 1
    return runs


def _changes(
    runs: Sequence[RunSummary],
    key: Key,
    statistic: str,
    logs: Floats,
    p: float,
    split: int,
    level: float,
    floor: float,
) -> list[ChangePoint]:
    """Return a change that was found, and those on either side of it, each on a stricter level: one of many series."""
    edges, parts = {split: p}, [(0, split), (split, len(logs))]
    while parts:
        first, last = parts.pop()
        if last - first < 2 * _LEAST or 2 / comb(last - first, (last - first) // 2) > level:
            continue
        more, splits = _searched(logs[None, first:last], last - first)
        if more[0] <= level:
            inner = first + int(splits[0])
            edges[inner] = float(more[0])
            parts += [(first, inner), (inner, last)]
    bounds = [0, *sorted(edges), len(logs)]
    found = []
    for before, at, after in zip(bounds, bounds[1:], bounds[2:], strict=False):
        size = float(logs[at:after].mean() - logs[before:at].mean())
        if abs(size) >= log1p(floor):
            found.append(ChangePoint(key, statistic, at, runs[at].name, exp(size) - 1, edges[at]))
    return found


def _searched(logs: Floats, runs: int) -> tuple[Floats, Ints]:
    """Return adjusted p, float64 [statistics], and the split with the largest t of each, int64 [statistics]."""
    random = np.random.Generator(np.random.PCG64(_SEED))
    orders = np.argsort(random.random((ORDERS, runs)), axis=1)
    orders[0] = np.arange(runs)
    centered = logs - logs.mean(axis=1, keepdims=True)
    at_once = max(_BLOCK // (ORDERS * runs), 1)
    largest = np.zeros(ORDERS)
    observed = np.zeros(len(logs))
    splits = np.zeros(len(logs), np.int64)
    for first in range(0, len(logs), at_once):
        part = slice(first, first + at_once)
        t = _split_t(centered[part][:, orders])
        largest = np.maximum(largest, t.max(axis=(0, 2)))
        observed[part] = t[:, 0].max(axis=1)
        splits[part] = t[:, 0].argmax(axis=1) + _LEAST
    p = (largest[None, :] >= observed[:, None] * (1 - 1e-9)).mean(axis=1)
    return p, splits


def _split_t(values: Floats) -> Floats:
    """Return the pooled |t| of each split of [statistics, orders, runs] values: [statistics, orders, splits]."""
    runs = values.shape[2]
    size = np.arange(_LEAST, runs - _LEAST + 1)
    sums = np.cumsum(values, axis=2)[:, :, _LEAST - 1 : runs - _LEAST]
    total = values.sum(axis=2, keepdims=True)
    squares = np.square(values).sum(axis=2, keepdims=True)
    one, other = sums / size, (total - sums) / (runs - size)
    inside = squares - size * one**2 - (runs - size) * other**2
    error = np.sqrt(np.maximum(inside, 0.0) / (runs - 2) * (1 / size + 1 / (runs - size)))
    effect = np.abs(one - other)
    error[error < _EQUAL] = 0.0
    effect[effect < _EQUAL] = 0.0
    found: Floats = np.divide(effect, error, out=np.where(effect > 0, np.inf, 0.0), where=error > 0)
    return found
