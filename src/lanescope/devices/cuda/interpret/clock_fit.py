"""Cycles of the SMs' own counters -> nanoseconds of the GPU's common timer, by readings of both.

The counters of all SMs run at one rate but start anywhere. A reading of the timer is up to one step late, so every pair
of readings bounds where a counter started; the bounds of all lanes of an SM together leave a small interval.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.cuda.formats.buffer import Bounds

#: No counter runs faster or slower, in ns a cycle; what looks so is damaged.
FASTEST, SLOWEST = 0.01, 1000.0
#: Eighteen years in ns. What damaged readings lead to stays within, so that no sum overflows.
_FAR = float(1 << 59)
#: A rate that may be off by more than this is worth a word.
DOUBTFUL_RATE = 0.01

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


@frozen_class
class Timeline:
    """Conversion of the ticks of each lane to nanoseconds: ``zero + (ticks - origin) * slope``, rounded down.

    Attributes:
        origin: int64 [lanes], ticks.
        zero: int64 [lanes], ns at ``origin``.
        slope: ns a cycle, the same for all.
        error_ns: int64 [lanes], by how much a time may be off at the lane's readings; -1: not known.
        slope_error: share by which a length may be off; None: not known.
        frequency_hz: cycles a second, rounded.
        contradicts: bool [lanes], where the bounds leave no place for the SM's counter.
        is_estimated: the rate may be off by more than ``DOUBTFUL_RATE``.
        is_declared: the rate is part of the layout, and one counter is common to all lanes.
    """

    origin: I64
    zero: I64
    slope: float
    error_ns: I64
    slope_error: float | None
    frequency_hz: int
    contradicts: npt.NDArray[np.bool_]
    is_estimated: bool = False
    is_declared: bool = False

    def ns(self, lane: npt.NDArray[np.int64] | npt.NDArray[np.uint32], ticks: I64) -> I64:
        """Return the times of ticks, int64 [n] ns; monotone along each lane.

        Args:
            lane: integers [n].
            ticks: int64 [n].
        """
        distance = (ticks - self.origin[lane]).astype(np.float64) * self.slope
        found: I64 = self.zero[lane] + _whole(np.floor(distance))
        return found

    def resolution(self, dur_ns: I64) -> I64:
        """Return by less than what lengths may be off, int64 [n] ns: a cycle at each end, and the rate."""
        return 1 + _whole(np.ceil(self.slope + dur_ns * (self.slope_error or 0.0)))


#: Two hundred years.
_MOST_NS = 1 << 62


def at_rate(frequency_hz: int, first: I64, lanes: int) -> Timeline:
    """Return the timeline of a counter that all lanes share and whose rate is declared.

    Args:
        frequency_hz: its rate.
        first: int64, any readings; the smallest one is where distances are counted from.
        lanes: number of lanes.
    """
    origin = int(first.min()) if len(first) else 0
    zeros = np.zeros(lanes, np.int64)
    return Timeline(
        origin=zeros + origin,
        # A reading that damage has made larger than any counter shows has no time since its start.
        zero=zeros + max(-_MOST_NS, min(origin * 10**9 // frequency_hz, _MOST_NS)),
        slope=1e9 / frequency_hz,
        error_ns=zeros,
        slope_error=0.0,
        frequency_hz=frequency_hz,
        contradicts=np.zeros(lanes, np.bool_),
        is_declared=True,
    )


def fit_clock(bounds: Bounds, unit: I64, *, slope: float | None = None) -> Timeline | None:
    """Place the counters of all SMs on the timer.

    Args:
        bounds: at least one for each lane that is to be placed.
        unit: int64 [lanes], the counter (SM) that each lane reads; lanes that share one share its place.
        slope: ns a cycle, where it is known; else it must agree with the two moments of each counter, and of each lane,
            that lie furthest apart.

    Returns:
        The timeline; None when nothing tells the rate.
    """
    of = unit[bounds.lane]
    order = np.lexsort((bounds.cycles, of))
    units, first = np.unique(of[order], return_index=True)
    last = np.append(first[1:], len(order)) - 1
    one, two = order[first], order[last]
    cycles = (bounds.cycles[two] - bounds.cycles[one]).astype(np.float64)
    error: float | None = 0.0
    if slope is None:
        by_lane = np.lexsort((bounds.cycles, bounds.lane))
        _, start = np.unique(bounds.lane[by_lane], return_index=True)
        near = by_lane[start], by_lane[np.append(start[1:], len(by_lane)) - 1]
        early, late = (np.concatenate(pair) for pair in ((one, near[0]), (two, near[1])))
        found = _slope(
            (bounds.cycles[late] - bounds.cycles[early]).astype(np.float64),
            (bounds.earliest[late] - bounds.latest[early]).astype(np.float64),
            (bounds.latest[late] - bounds.earliest[early]).astype(np.float64),
        )
        if found is None:
            return None
        slope, error = found
    if not FASTEST <= slope <= SLOWEST:
        return None
    slope_error = error or 0.0
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
    usable = known if error is not None else np.zeros(len(known), np.bool_)
    return Timeline(
        origin=np.where(known, origin[row], 0),
        zero=np.where(known, base[row] + _whole(np.floor(place[row])), 0),
        slope=slope,
        error_ns=np.where(usable, _whole(np.ceil(width[row] + 1)), -1),
        slope_error=error,
        frequency_hz=round(1e9 / slope),
        contradicts=contradicts[row] & known,
        is_estimated=error is None or error > DOUBTFUL_RATE,
    )


def _slope(cycles: F64, shortest: F64, longest: F64) -> tuple[float, float | None] | None:
    """Return the rate in ns a cycle, and by which share it may be off; None when nothing tells it.

    Args:
        cycles: float64 [n], between two moments of a counter.
        shortest: float64 [n], ns that lie between them at least; negative: nothing is known.
        longest: float64 [n], ns that lie between them at most.
    """
    usable = (cycles > 0) & (longest > 0)
    if not usable.any():
        return None
    low, high = _most_agreed(shortest[usable] / cycles[usable], longest[usable] / cycles[usable])
    if low <= 0:
        return high, None
    return (low + high) / 2, (high - low) / (low + high)


def _most_agreed(low: F64, high: F64) -> tuple[float, float]:
    """Return the stretch that lies in most intervals, the first of several; all of them where no counter is wrong.

    Source: K. Marzullo, Maintaining the Time in a Distributed System, 1984: the algorithm that NTP took up.
    """
    edges = np.concatenate([low, high])
    step = np.repeat([1, -1], len(low))
    order = np.lexsort((-step, edges))
    depth = np.cumsum(step[order])
    at = int(depth.argmax())
    return float(edges[order[at]]), float(edges[order[min(at + 1, len(order) - 1)]])


def _whole(ns: F64) -> I64:
    """Return whole nanoseconds, int64 [n], within bounds that sums stay within."""
    found: I64 = np.clip(ns, -_FAR, _FAR).astype(np.int64)
    return found
