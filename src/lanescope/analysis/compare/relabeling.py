"""Significance by relabeling runs: Welch's t per statistic, and the largest of all under every other labeling.

If nothing changed, each way to call so many of the runs A and the others B is as likely as the true one. The adjusted p
of a statistic is the part of the labelings whose *largest* |t| over all statistics reaches its own (Westfall and Young,
Resampling-Based Multiple Testing, 1993). It bounds the chance of naming anything at all if nothing changed, and makes
use of what the statistics have in common. Slices of one run are no independent samples, so runs are the unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: Up to so many labelings all are tried: 7 runs per side.
EXACT = comb(14, 7)
#: Of more, so many are drawn, with a fixed seed.
DRAWN = 5_000
_SEED = 20_241
#: Logarithms that differ by less are equal: rounding of a mean of equal values.
_EQUAL = 1e-12


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a test of several statistics.

    Attributes:
        effect: mean of the second side minus mean of the first, float64 [n].
        error: standard error of the effect, float64 [n].
        p: adjusted p, float64 [n].
        half_width: of the simultaneous interval around the effect, float64 [n]; inf if nothing bounds it.
        labelings: how many labelings were tried, the true one among them.
        is_exact: whether they are all there are.
    """

    effect: Floats
    error: Floats
    p: Floats
    half_width: Floats
    labelings: int
    is_exact: bool


def smallest_p(a: int, b: int) -> float:
    """Return the smallest p that so many runs can reach: with equal sides a labeling and its mirror are the same."""
    return (2 if a == b else 1) / comb(a + b, a)


def runs_needed(alpha: float) -> int:
    """Return the least number of runs per side with which a p of ``alpha`` can be reached."""
    runs = 2
    while smallest_p(runs, runs) > alpha:
        runs += 1
    return runs


def relabeling_test(values: Floats, a: int, alpha: float) -> Outcome:
    """Test which statistics differ between two sides.

    Args:
        values: float64 [statistics, runs], runs of the first side first; no NaN.
        a: runs of the first side; at least two on either side.
        alpha: one minus the level of the simultaneous intervals.

    Returns:
        Effects, adjusted p and intervals.

    Complexity: O(labelings * statistics * runs), as matrix products.

    Example:
        >>> values = np.log([[100, 101, 99, 100, 110, 111, 109, 110], [70, 72, 74, 71, 73, 70, 74, 71]])
        >>> tested = relabeling_test(values, 4, 0.05)
        >>> [round(float(p), 3) for p in tested.p], tested.labelings
        ([0.029, 0.971], 70)
    """
    labels, is_exact = _labelings(values.shape[1], a)
    # Differences of values near 20 of 1e-3: the overall mean would eat the digits of the squares.
    centered = values - values.mean(axis=1, keepdims=True)
    effect, error = _differences(centered, labels)
    t = _ratio(effect, error)
    largest = t.max(axis=1, initial=0.0)
    observed = t[0]
    reached = largest[None, :] >= observed[:, None] * (1 - 1e-9)
    at = int(np.ceil((1 - alpha) * len(largest))) - 1
    critical = float(np.sort(largest)[at])
    half = np.where(error[0] > 0, critical * error[0], 0.0 if np.isfinite(critical) else np.inf)
    return Outcome(effect[0], error[0], reached.mean(axis=1), half, len(labels), is_exact)


def _labelings(runs: int, a: int) -> tuple[Floats, bool]:
    """Return labelings, 1.0 for runs of the second side, float64 [labelings, runs], the true one first."""
    if comb(runs, a) <= EXACT:
        firsts = np.array(list(combinations(range(runs), a)), np.int64)
        labels = np.ones((len(firsts), runs))
        np.put_along_axis(labels, firsts, 0.0, axis=1)
        return labels, True  # the first combination is the first ``a`` runs
    random = np.random.Generator(np.random.PCG64(_SEED))
    order = np.argsort(random.random((DRAWN, runs)), axis=1)
    labels = (order >= a).astype(np.float64)
    labels[0] = np.arange(runs) >= a
    return labels, False


def _differences(values: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """Return differences of means and their standard errors, float64 [labelings, statistics] each."""
    sides = []
    for side in (1 - labels, labels):
        count = side.sum(axis=1)[:, None]
        mean = side @ values.T / count
        square = side @ np.square(values).T / count
        variance = np.maximum(square - np.square(mean), 0.0) * count / (count - 1)
        sides.append((mean, variance / count))
    (one, of_one), (other, of_other) = sides
    error = np.sqrt(of_one + of_other)
    effect = other - one
    # What is left of squares that cancel is not a spread.
    error[error < _EQUAL] = 0.0
    effect[np.abs(effect) < _EQUAL] = 0.0
    return effect, error


def _ratio(effect: Floats, error: Floats) -> Floats:
    """Return |t|; 0 for equal values, inf for sides that differ without any spread."""
    size = np.abs(effect)
    infinite = np.where(size > 0, np.inf, 0.0)
    found: Floats = np.divide(size, error, out=infinite, where=error > 0)
    return found
