"""One capture against one other: how much the times of a group vary within the captures.

A stationary block bootstrap (Politis and Romano, 1994) of the slices of each group, in the order of their lanes. Where
both captures have the same slices on the same lanes, the Kth of a lane is compared with the Kth, and pairs are drawn.
Nothing here knows what is usual between runs: what is found differs in these two captures.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.analysis.compare.evidence import Evidence, Tests
from lanescope.analysis.compare.grouping import Key
from lanescope.analysis.compare.run_summary import RunSummary
from lanescope.common.intervals import Ints

Floats = npt.NDArray[np.float64]

#: Resamples; the smallest p is one in as many.
RESAMPLES = 1_000
#: Groups with fewer slices on a side are not tested.
FEWEST_SLICES = 16
#: Longer sequences are cut into so many cells of slices that follow one another.
_CELLS = 256
#: Slices further apart than the first lag with less autocorrelation count as independent.
_INDEPENDENT = 0.1
#: Fewer lanes do not show how lanes differ.
_FEWEST_LANES = 4
_SEED = 20_242


class _Cells(NamedTuple):
    """Sums over slices that follow one another, float64 [cells] each."""

    time: Floats
    slices: Floats


class _CommonLanes(NamedTuple):
    """One numbering of the lanes of two captures, by path: the numbers of the lanes of each (the last one: unknown)."""

    a: Ints
    b: Ints
    lanes: int


def pair_test(a: RunSummary, b: RunSummary, alpha: float) -> tuple[Tests, int]:
    """Test in which groups the time per slice differs between two captures.

    Args:
        a: the first run, with sequences.
        b: the second one, with sequences.
        alpha: one minus the level of the simultaneous intervals.

    Returns:
        The evidence, of the statistics ``mean`` and ``total`` (as if the counts were fixed), and the number of
        resamples.
    """
    random = np.random.Generator(np.random.PCG64(_SEED))
    effects: dict[Key, float] = {}
    spreads: list[Floats] = []
    places = {key: at for at, key in enumerate(b.groups)}
    common = _common_lanes(a, b)
    for at, key in enumerate(a.groups):
        if key not in places:
            continue
        found = _resampled(a, at, b, places[key], common, random)
        if found is not None:
            effects[key], spread = found
            spreads.append(spread)
    if not effects:
        return {}, 0
    spread = np.array(spreads)
    error = spread.std(axis=1)
    size = np.abs(np.array(list(effects.values())))
    t = np.divide(size, error, out=np.where(size > 1e-12, np.inf, 0.0), where=error > 0)
    largest = np.divide(np.abs(spread), error[:, None], out=np.zeros_like(spread), where=error[:, None] > 0).max(axis=0)
    # The captures themselves are one more resample.
    p = (1 + (largest[None, :] >= t[:, None]).sum(axis=1)) / (1 + RESAMPLES)
    critical = float(np.quantile(largest, 1 - alpha))
    tests: Tests = {}
    for row, (key, effect) in enumerate(effects.items()):
        half = critical * float(error[row])
        tests[key, "mean"] = Evidence(effect, half, float(p[row]))
    return tests, RESAMPLES


def _resampled(
    a: RunSummary, at: int, b: RunSummary, place: int, common: _CommonLanes, random: np.random.Generator
) -> tuple[float, Floats] | None:
    """Return the logarithm of the ratio of the times per slice, and its differences from it in resamples."""
    assert a.sequences is not None
    assert b.sequences is not None
    (lanes, times), (others, other_times) = a.sequences.of(at), b.sequences.of(place)
    if min(len(times), len(other_times)) < FEWEST_SLICES or not times.any() or not other_times.any():
        return None
    effect = float(np.log(other_times.mean() / times.mean()))
    one, other = _cells(times), _cells(other_times)
    if len(lanes) == len(others) and bool((common.a[lanes] == common.b[others]).all()):
        starts = _blocks(random, _length(one.time / one.slices, other.time / other.slices), len(one.time))
        spread = np.log(_means(other, starts)) - np.log(_means(one, starts))
    else:
        spread = np.zeros(RESAMPLES)
        for sign, cells in ((-1, one), (1, other)):
            starts = _blocks(random, _length(cells.time / cells.slices), len(cells.time))
            spread += sign * np.log(_means(cells, starts))
    spread -= effect
    between = _between_lanes(common, lanes, times, others, other_times)
    within = float(spread.std())
    # Lanes that differ as a whole show too little in the autocorrelation of noisy slices.
    return effect, spread * (between / within if 0 < within < between else 1.0)


def _common_lanes(a: RunSummary, b: RunSummary) -> _CommonLanes:
    place = {path: at for at, path in enumerate(sorted({*a.lanes, *b.lanes, ""}))}
    one, other = (np.array([place[path] for path in (*run.lanes, "")], np.int64) for run in (a, b))
    return _CommonLanes(one, other, len(place))


def _between_lanes(common: _CommonLanes, lanes: Ints, times: Ints, others: Ints, other_times: Ints) -> float:
    """Return the standard error of the effect if lanes, not slices, are independent; 0 of few lanes."""
    parts = []
    for numbers, lane, time in ((common.a, lanes, times), (common.b, others, other_times)):
        known = numbers[lane]
        excess = np.bincount(known, time - time.mean(), common.lanes) / time.sum()
        parts.append((excess, np.bincount(known, minlength=common.lanes) > 0))
    (one, of_one), (other, of_other) = parts
    count = int(min(of_one.sum(), of_other.sum()))
    if count < _FEWEST_LANES:
        return 0.0
    if (of_one == of_other).all():
        one, other = other - one, np.zeros(1)
    return float(np.sqrt(count / (count - 1) * (np.square(one).sum() + np.square(other).sum())))


def _cells(times: Ints) -> _Cells:
    """Return a sequence as cells, as even as can be."""
    edges = np.linspace(0, len(times), min(_CELLS, len(times)) + 1).astype(np.int64)
    total = np.concatenate([[0], np.cumsum(times)])
    return _Cells(np.diff(total[edges]).astype(np.float64), np.diff(edges).astype(np.float64))


def _length(*series: Floats) -> int:
    """Return the mean length of blocks: twice the first lag at which no series has much autocorrelation."""
    longest = 1
    for values in series:
        centered = values - values.mean()
        power = float(centered @ centered)
        if power <= 0:
            continue
        # Circular correlation by Fourier transform; zeros at the end keep the ends apart.
        spectrum = np.fft.rfft(centered, 2 * len(values))
        correlation = np.fft.irfft(np.abs(spectrum) ** 2)[: len(values) // 2] / power
        below = np.flatnonzero(correlation < _INDEPENDENT)
        longest = max(longest, int(below[0]) if len(below) else len(values) // 2)
    return min(2 * longest, max(len(series[0]) // 4, 1))


def _blocks(random: np.random.Generator, length: int, cells: int) -> Ints:
    """Return indices of cells of each resample, int64 [resamples, cells]: blocks of geometric length, on a ring."""
    is_start = random.random((RESAMPLES, cells)) < 1 / length
    is_start[:, 0] = True
    starts = random.integers(0, cells, (RESAMPLES, cells))
    steps = np.arange(cells)
    last = np.maximum.accumulate(np.where(is_start, steps, 0), axis=1)
    found: Ints = (np.take_along_axis(starts, last, axis=1) + steps - last) % cells
    return found


def _means(cells: _Cells, rows: Ints) -> Floats:
    """Return the time per slice of each resample, float64 [resamples], never 0."""
    time = np.maximum(cells.time[rows].sum(axis=1), 1e-3)
    found: Floats = time / cells.slices[rows].sum(axis=1)
    return found
