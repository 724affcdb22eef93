"""Cycles of the SMs' own counters -> nanoseconds of the GPU's common timer, by readings of both.

The counters of all SMs run at one rate but start anywhere. A reading of the timer is up to one step late, so every pair
of readings bounds where a counter started; the bounds of all lanes of an SM together leave a small interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of counter and timer at some moments.

    Attributes:
        lane: int64 [n], whose reading it is.
        cycles: int64 [n], the counter.
        earliest: int64 [n], ns: the timer showed at least this then.
        latest: int64 [n], ns: and less than this; a reading with step s lies in [t, t + s).
    """

    lane: I64
    cycles: I64
    earliest: I64
    latest: I64


@dataclass(frozen=True, slots=True)
class Timeline:
    """How the ticks of each lane become nanoseconds: ``zero + (ticks - origin) * slope``, rounded down.

    Attributes:
        origin: int64 [lanes], ticks.
        zero: int64 [lanes], ns at ``origin``.
        slope: ns a cycle, the same for all.
        error_ns: int64 [lanes], by how much a time may be off at the lane's readings; -1: not known.
        slope_error: share by which a length may be off.
        frequency_hz: cycles a second, rounded.
        contradicts: bool [lanes], where the bounds leave no place for the SM's counter.
        is_estimated: the rate was concluded from bounds and not from readings.
    """

    origin: I64
    zero: I64
    slope: float
    error_ns: I64
    slope_error: float
    frequency_hz: int
    contradicts: npt.NDArray[np.bool_]
    is_estimated: bool = False

    def ns(self, lane: npt.NDArray[np.int64] | npt.NDArray[np.uint32], ticks: I64) -> I64:
        """Return the times of ticks, int64 [n] ns; monotone along each lane.

        Args:
            lane: integers [n].
            ticks: int64 [n].
        """
        distance = (ticks - self.origin[lane]).astype(np.float64) * self.slope
        found: I64 = self.zero[lane] + np.floor(distance).astype(np.int64)
        return found

    def resolution(self, dur_ns: I64) -> I64:
        """Return by less than what lengths may be off, int64 [n] ns: a cycle at each end, and the rate."""
        return 1 + np.ceil(self.slope + dur_ns * self.slope_error).astype(np.int64)  # type: ignore[no-any-return]


def fit(bounds: Bounds, unit: I64, *, slope: float | None = None) -> Timeline | None:
    """Place the counters of all SMs on the timer.

    Args:
        bounds: at least one for each lane that is to be placed.
        unit: int64 [lanes], the counter (SM) that each lane reads; lanes that share one share its place.
        slope: ns a cycle, where it is known; else it is taken from the two moments of each counter that lie furthest
            apart, over all counters.

    Returns:
        The timeline; None when nothing tells the rate.
    """
    given = slope is not None
    of = unit[bounds.lane]
    order = np.lexsort((bounds.cycles, of))
    units, first = np.unique(of[order], return_index=True)
    last = np.append(first[1:], len(order)) - 1
    one, two = order[first], order[last]
    cycles = (bounds.cycles[two] - bounds.cycles[one]).astype(np.float64)
    middle = bounds.earliest.astype(np.float64) / 2 + bounds.latest.astype(np.float64) / 2
    length = middle[two] - middle[one]
    spread = (bounds.latest - bounds.earliest).astype(np.float64)
    doubt = (spread[two] + spread[one]) / 2
    slope_error = 0.0
    if slope is None:
        usable = (cycles > 0) & (length > 0)
        if not usable.any():
            return None
        slope = float(length[usable].sum() / cycles[usable].sum())
        # Each distance is off by its doubt at most; the longest one bounds the rate best.
        slope_error = float(min((doubt[usable] / length[usable]).min(), doubt[usable].sum() / length[usable].sum()))
    # The time at cycle `origin` of each counter must lie in [low, high).
    origin = bounds.cycles[one]
    which = np.searchsorted(units, of)
    run = (bounds.cycles - origin[which]).astype(np.float64) * slope
    base = bounds.earliest[one]
    low = np.full(len(units), -np.inf)
    high = np.full(len(units), np.inf)
    drift = np.abs(run) * slope_error
    np.maximum.at(low, which, (bounds.earliest - base[which]).astype(np.float64) - run - drift)
    np.minimum.at(high, which, (bounds.latest - base[which]).astype(np.float64) - run + drift)
    place = (low + high) / 2
    width = np.maximum(high - low, 0) / 2 + np.abs(cycles) * slope * slope_error
    contradicts = low > high + 1
    row = np.minimum(np.searchsorted(units, unit), len(units) - 1)
    known = units[row] == unit
    error = np.where(known, np.ceil(width[row] + 1).astype(np.int64), -1)
    return Timeline(
        origin=np.where(known, origin[row], 0),
        zero=np.where(known, base[row] + np.floor(place[row]).astype(np.int64), 0),
        slope=slope,
        error_ns=error,
        slope_error=slope_error,
        frequency_hz=round(1e9 / slope),
        contradicts=contradicts[row] & known,
        is_estimated=not given and bool((spread > 1 << 20).any()),
    )
