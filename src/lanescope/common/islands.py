"""Islands of time: a few timestamps that stand apart from all others, and the attested window without them.

Used by rule LS501 for whole traces, and by families for sums that one wrong timestamp must not change.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.common.intervals import Ints, group_starts
from lanescope.declaration import frozen_class
from lanescope.trace.column import Mask

_ROUNDS = 64
#: Bins of the quick test, and how many neighboring ones must hold half of the timestamps.
_BINS, _NEAR = 64, 16
#: Timestamps that the quick test takes at most.
_ENOUGH = 1 << 14

# Types of thresholds, each with the lowest and the highest value.

#: Number of lanes, slices, timestamps, nanoseconds or steps of a clock.
Count = Annotated[int, (1, 1_000_000_000)]
#: Part of a whole.
Share = Annotated[float, (0, 1)]
#: Distance, in lengths or deviations that the documentation of the threshold names.
Distance = Annotated[float, (0, 1e12)]


@frozen_class
class IslandThresholds:
    """LS501: few records far from everything else.

    Attributes:
        min_stamps: fewer timestamps are not judged.
        core_spans: timestamps further than this from the core are far, in lengths of the core.
        gap_rests: gaps longer than this split the trace, in lengths of the rest.
        lone_gap_rests: the same where more than two lanes, or 2 %, stand apart.
        max_lanes: more lanes do not stand apart, as a share of all.
        max_stamps: more timestamps of such lanes do not stand apart, as a share of all.
        warning_spans: from this distance on it is a warning, in lengths of the core.
    """

    min_stamps: Count = 32
    core_spans: Distance = 8.0
    gap_rests: Distance = 4.0
    lone_gap_rests: Distance = 8.0
    max_lanes: Share = 0.34
    max_stamps: Share = 0.10
    warning_spans: Distance = 100.0


class Points(NamedTuple):
    """Timestamps of rows of a table.

    Attributes:
        time: int64 [n].
        track: int64 [n].
        row: int64 [n], position in the whole trace.
        weight: int64 [n], how many timestamps each one represents.
        is_instant: bool [n].
        is_end: bool [n], ends of slices.
    """

    time: Ints
    track: Ints
    row: Ints
    weight: Ints
    is_instant: Mask
    is_end: Mask

    def take(self, rows: Ints | Mask) -> Points:
        """Return the points at ``rows``, indices or a mask."""
        time, track, row, weight, is_instant, is_end = self
        return Points(time[rows], track[rows], row[rows], weight[rows], is_instant[rows], is_end[rows])


_NO_INTS, _NO_MASK = np.empty(0, np.int64), np.empty(0, np.bool_)
NO_POINTS = Points(_NO_INTS, _NO_INTS, _NO_INTS, _NO_INTS, _NO_MASK, _NO_MASK)


class Witnesses(NamedTuple):
    """Who tells of time.

    Attributes:
        lanes: number of lanes with timestamps.
        device: int64 [tracks], device of each track.
        is_host: bool [tracks], lanes of host threads.
    """

    lanes: int
    device: Ints
    is_host: Mask


class Islands(NamedTuple):
    """Timestamps apart from the rest.

    Attributes:
        window: first and last of the timestamps that are not suspect: the attested window.
        far: those that are suspect.
    """

    window: tuple[int, int]
    far: Points


def attested_window(time: Ints, lane: Ints, limits: IslandThresholds | None = None) -> tuple[int, int]:
    """Return first and last timestamp of a device that does not stand apart from the rest; (0, 0) without any.

    Args:
        time: int64 [n].
        lane: int64 [n], lane of each.
        limits: thresholds; None: the default ones.
    """
    count, limits = len(time), limits or IslandThresholds()
    if not count:
        return 0, 0
    low, high = int(time.min()), int(time.max())
    every = quick_step(count)
    some = time[::every]
    if count < limits.min_stamps or is_spread(_plain(some, some), low, high, is_all=every == 1):
        return low, high
    lanes = distinct(lane)
    one_device = np.zeros(len(lanes), np.int64)
    witnesses = Witnesses(len(lanes), one_device, one_device.astype(np.bool_))
    return find_islands(_plain(time, np.searchsorted(lanes, lane)), witnesses, limits).window


def _plain(time: Ints, track: npt.NDArray[np.intp]) -> Points:
    """Return timestamps of which nothing more is known."""
    count = len(time)
    no, one = np.zeros(count, np.bool_), np.ones(count, np.int64)
    return Points(time, track, np.arange(count), one, no, no)


def quick_step(count: int) -> int:
    """Return which part of timestamps is enough for the quick test: every n-th.

    Of a gap that dwarfs the rest, one side holds more than half of the timestamps.
    """
    return max(-(-count // _ENOUGH), 1)


def is_spread(points: Points, first: int, last: int, *, is_all: bool = True) -> bool:
    """Tell whether the timestamps lie so that no gap can dwarf the rest: the normal case.

    Args:
        points: the timestamps, or a sample of them.
        first: the first of all.
        last: the last of all.
        is_all: these are all timestamps; of some, a little less than half has to lie near each other.
    """
    if last <= first:
        return True
    scale = _BINS / (float(last) - float(first) + 1.0)
    bins = np.minimum(((points.time.astype(np.float64) - float(first)) * scale).astype(np.int64), _BINS - 1)
    sums = np.concatenate([[0.0], np.cumsum(np.bincount(bins, weights=points.weight, minlength=_BINS))])
    return bool((sums[_NEAR:] - sums[:-_NEAR]).max() < (0.5 if is_all else 0.45) * sums[-1])


def joined(*parts: Points) -> Points:
    """Return points end to end."""
    return Points(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def find_islands(
    points: Points, witnesses: Witnesses, limits: IslandThresholds, core: tuple[int, int] | None = None
) -> Islands:
    """Split the time axis at gaps that dwarf everything else.

    Args:
        points: timestamps, or some of them by weight.
        witnesses: who tells of time.
        limits: thresholds.
        core: what is known not to be suspect.
    """
    points = points.take(np.argsort(points.time, kind="stable"))
    return _Axis(points, witnesses, limits, core).islands()


class _Axis:
    """Sorted timestamps, from which the far ones are cut off at both ends.

    Args:
        points: at least two, by time.
        witnesses: who tells of time.
        limits: thresholds.
        core: stays.
    """

    def __init__(
        self, points: Points, witnesses: Witnesses, limits: IslandThresholds, core: tuple[int, int] | None
    ) -> None:
        self._points, self._witnesses, self._limits = points, witnesses, limits
        self._time = points.time
        self._sum = np.concatenate([[0], np.cumsum(points.weight)])  # of the weights before each point
        self._first, self._last = 0, len(self._time)
        low, high = core or (int(self._time[-1]), int(self._time[0]))
        self._core = int(np.searchsorted(self._time, low)), int(np.searchsorted(self._time, high, "right"))

    def islands(self) -> Islands:
        self._cut_far()
        gaps = (self._time[1:].view(np.uint64) - self._time[:-1].view(np.uint64)).astype(np.float64)
        for _ in range(_ROUNDS):
            if not self._cut_at_gap(gaps):
                break
        is_far = np.ones(len(self._time), np.bool_)
        is_far[self._first : self._last] = False
        return Islands((int(self._time[self._first]), int(self._time[self._last - 1])), self._points.take(is_far))

    def _cut_far(self) -> None:
        """Cut off what is many times the length of the core away from the core."""
        total = int(self._sum[-1])
        ends = max(total // 100 if total >= 64 else 0, min(8, total // 16))
        low = int(self._time[np.searchsorted(self._sum, ends, "right") - 1])
        high = int(self._time[np.searchsorted(self._sum, total - 1 - ends, "right") - 1])
        length = max(high - low, 1)
        reach = self._limits.core_spans * length
        times = self._time.astype(np.float64)
        first = int(np.searchsorted(times, low - reach))
        last = int(np.searchsorted(times, high + reach, "right"))
        far = np.concatenate([np.arange(first), np.arange(last, len(times))])
        if len(far) and self._witnesses.lanes >= 3 and not self._is_attested(far, length):
            self._keep(first, last)

    def _cut_at_gap(self, gaps: np.ndarray) -> bool:
        """Cut off the smaller side of the largest gap; return whether that side is an island."""
        first, last, limits = self._first, self._last, self._limits
        if int(self._sum[last] - self._sum[first]) < limits.min_stamps // 2 or last - first < 2:
            return False
        at = first + int(np.argmax(gaps[first : last - 1]))
        rest = max(float(self._time[last - 1]) - float(self._time[first]) - gaps[at], 1.0)
        if gaps[at] <= limits.gap_rests * rest:
            return False
        is_left = self._sum[at + 1] - self._sum[first] < self._sum[last] - self._sum[at + 1]
        few = np.arange(first, at + 1) if is_left else np.arange(at + 1, last)
        share = float(self._points.weight[few].sum()) / float(self._sum[-1])
        if not self._is_apart(few, share, gaps[at] / rest) or self._is_attested(few, rest):
            return False
        return self._keep(at + 1, last) if is_left else self._keep(first, at + 1)

    def _is_apart(self, few: Ints, share: float, gap_rests: float) -> bool:
        """Tell whether so few timestamps are no second launch."""
        limits, all_lanes = self._limits, self._witnesses.lanes
        lanes = len(distinct(self._points.track[few]))
        is_lone = lanes <= max(2, 0.02 * all_lanes)
        if share > 0.5 or (lanes > max(2, limits.max_lanes * all_lanes) and share > 0.01):
            return False
        if not is_lone and (
            gap_rests <= limits.lone_gap_rests or (share > limits.max_stamps and lanes > 0.1 * all_lanes)
        ):
            return False
        return all_lanes >= 3 or share <= 0.02

    def _is_attested(self, far: Ints, near: float) -> bool:
        """Tell whether two devices, or host and device, have some of these timestamps near each other: true ones."""
        track = self._points.track[far]
        is_known = (track >= 0) & (track < len(self._witnesses.device))
        far, track = far[is_known], track[is_known]
        device = self._witnesses.device[track]
        # A device's host threads are a witness of their own.
        device = 2 * device + self._witnesses.is_host[track]
        if not len(device) or (device == device[0]).all():
            return False
        times = self._time[far]
        apart = (times[1:].view(np.uint64) - times[:-1].view(np.uint64)).astype(np.float64) > near
        cluster = np.concatenate([[0], np.cumsum(apart)])
        first = np.flatnonzero(group_starts(cluster))
        low, high = np.minimum.reduceat(device, first), np.maximum.reduceat(device, first)
        size = np.add.reduceat(self._points.weight[far], first)
        return bool(((low != high) & (size >= 4)).any())

    def _keep(self, first: int, last: int) -> bool:
        """Keep the points from ``first`` up to ``last``, and the core; return whether that changes anything."""
        low, high = self._core
        if low < high:
            first, last = min(first, low), max(last, high)
        is_change = (first, last) != (self._first, self._last)
        self._first, self._last = first, last
        return is_change
