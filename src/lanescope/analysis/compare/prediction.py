"""One run against several: prediction intervals, simultaneous for all groups.

A further run of the same work lies within ``t(K - 1) s sqrt(1 + 1 / K)`` of the mean of K runs. What is usual for the
*largest* of all groups is learnt by leaving out one run after the other and predicting it from the others. K runs give
only K such values, so for fewer than ``1 / alpha`` of them the bound for independent groups (Sidak) applies as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt

import numpy as np
import numpy.typing as npt

from lanescope.analysis.compare.comparison import STATISTICS
from lanescope.analysis.compare.evidence import Evidence, Tests, tested_groups
from lanescope.analysis.compare.run_summary import RunSummary
from lanescope.analysis.compare.student import critical_t, two_sided_p

Floats = npt.NDArray[np.float64]

#: Least number of runs that predict another one.
FEWEST = 4
_EQUAL = 1e-12


def prediction_test(a: Sequence[RunSummary], b: Sequence[RunSummary], alpha: float) -> Tests:
    """Test in which groups one run differs from several others.

    Args:
        a: the first side.
        b: the second one; either has one run, the other ``FEWEST`` or more.
        alpha: largest chance of naming any group if the run is like the others.

    Returns:
        The evidence by group and statistic.
    """
    known, other, sign = (a, b, 1) if len(b) == 1 else (b, a, -1)
    found: Tests = {}
    for statistics in (STATISTICS[:2], *((name,) for name in STATISTICS[2:])):
        rows, values = tested_groups((*known, *other), statistics)
        if not rows:
            continue
        logs = np.array(values)
        effect, half, p = _predicted(logs[:, :-1], logs[:, -1], alpha)
        columns = ((sign * effect).tolist(), half.tolist(), p.tolist())
        found |= {row: Evidence(*values) for row, *values in zip(rows, *columns, strict=True)}
    return found


def _predicted(known: Floats, other: Floats, alpha: float) -> tuple[Floats, Floats, Floats]:
    """Return effect, half width of the interval and adjusted p of each statistic.

    Args:
        known: float64 [statistics, runs].
        other: float64 [statistics], of the run to judge.
        alpha: one minus the level of the intervals.
    """
    runs = known.shape[1]
    varying = int((np.ptp(known, axis=1) > _EQUAL).sum())
    tests = max(varying, 1)
    left_out = sorted(float(_ps(np.delete(known, run, axis=1), known[:, run]).min(initial=1.0)) for run in range(runs))
    effect = other - known.mean(axis=1)
    single = _ps(known, other)
    sidak = 1 - (1 - np.minimum(single, 1.0)) ** tests
    # Part of the runs whose worst group is at least as unlikely, the run itself among them.
    rank = (1 + np.searchsorted(left_out, single * (1 + 1e-9), side="right")) / (runs + 1)
    if runs + 1 >= 1 / alpha:
        p = rank
        bound = left_out[max(ceil(alpha * (runs + 1)) - 2, 0)]
    else:
        # Ranks of so few runs cannot reach alpha: being the most unlikely of all is required, not sufficient.
        p = np.where(rank <= 1 / (runs + 1) + 1e-9, sidak, np.maximum(sidak, rank))
        bound = min(left_out[0], 1 - (1 - alpha) ** (1 / tests))
    spread = known.std(axis=1, ddof=1) * sqrt(1 + 1 / runs)
    half = critical_t(max(bound, 1e-12), runs - 1) * spread
    return effect, half, p


def _ps(known: Floats, other: Floats) -> Floats:
    """Return the chance of a run as far from the mean of the others, by statistic."""
    runs = known.shape[1]
    error = known.std(axis=1, ddof=1) * sqrt(1 + 1 / runs)
    size = np.abs(other - known.mean(axis=1))
    size[size < _EQUAL] = 0.0
    error[error < _EQUAL] = 0.0
    t = np.divide(size, error, out=np.where(size > 0, np.inf, 0.0), where=error > 0)
    return np.array([two_sided_p(one, runs - 1) for one in t.tolist()])
