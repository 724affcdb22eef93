"""LS501: few records far from everything else."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lanescope.analysis.plausibility.stamps import NO_POINTS, Points, Stamps, joined
from lanescope.analysis.plausibility.suspicion import Suspicion
from lanescope.analysis.plausibility.thresholds import IslandThresholds
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Ints, bounds, group_starts
from lanescope.trace.column import Mask

if TYPE_CHECKING:
    from lanescope.analysis.plausibility.profile import Profile

_ROUNDS = 64
#: Powers of two of ticks that a counter of usual width wraps at.
_WRAPS = (31, 32, 40, 48)


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


def sampled_islands(
    stamps: Stamps, witnesses: Witnesses, limits: IslandThresholds
) -> tuple[Islands, tuple[int, int] | None]:
    """Return what stands apart as far as the sample tells.

    Returns:
        The islands; and None where they are exact, else the window outside which every timestamp has to be looked at.
    """
    window = (stamps.first, stamps.last) if stamps.count else (0, 0)
    nothing = Islands(window, NO_POINTS)
    if stamps.count < limits.min_stamps or stamps.is_spread():
        return nothing, None
    sample = stamps.sample()
    islands = find_islands(sample, witnesses, limits)
    if stamps.is_complete:
        return islands, None
    low, high = islands.window
    farthest = max(low - window[0], window[1] - high)
    if not len(islands.far.row) and farthest <= min(limits.gap_rests, limits.core_spans) * (high - low):
        return nothing, None
    return nothing, (low, high)


def exact_islands(
    stamps: Stamps, core: tuple[int, int], outside: Points, witnesses: Witnesses, limits: IslandThresholds
) -> Islands:
    """Return what stands apart, from the sample within the ``core`` and every timestamp outside it."""
    sample = stamps.sample()
    inside = sample.take((sample.time >= core[0]) & (sample.time <= core[1]))
    return find_islands(joined(inside, outside), witnesses, limits, core)


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


def island_suspicions(islands: Islands, profile: Profile, limits: IslandThresholds) -> Iterator[Suspicion]:
    """Yield what stands apart, lane by lane."""
    far = islands.far
    for table in ("slices", "instants"):
        mine = far.take(far.is_instant == (table == "instants"))
        mine = mine.take(np.argsort(mine.track, kind="stable"))
        for first, last in pairwise(bounds(mine.track)):
            part = mine.take(np.arange(first, last))
            if 0 <= int(part.track[0]) < len(profile.tree):
                yield _suspicion(islands.window, table, part, profile, limits)


def _suspicion(
    window: tuple[int, int], table: str, far: Points, profile: Profile, limits: IslandThresholds
) -> Suspicion:
    """Return what the far timestamps of one lane mean."""
    lane = int(far.track[0])
    low, high = window
    core = max(high - low, 1)
    distance = max(int(far.time.max()) - high, low - int(far.time.min()))
    rows = distinct(far.row)
    total = int(profile.count[lane] if table == "slices" else profile.instants[lane])
    spans = distance / core
    is_reaching = len(rows) == len(far.row) and (bool(far.is_end.all()) or _is_all_closed(table, lane, profile))
    wrap = _wrap(distance, core, float(profile.tick[lane]))
    away = f"{distance} {profile.time_unit}"
    times = f"{spans:.3g} times its length"
    if is_reaching:
        detail = (
            f"{len(rows)} of {total} {table} {_verb(len(rows), 'reach')} {away} beyond the rest of the trace, {times}"
        )
    elif len(rows) == total:
        detail = f"the whole lane is {away} away from the rest of the trace, {times}"
    else:
        verb = "is" if len(rows) == 1 else "are"
        what = "a clock step, or stray records"
        detail = f"{len(rows)} of {total} {table} {verb} {away} away from the rest of the trace, {times}: {what}"
    if wrap:
        detail += f"; about 2^{wrap} ticks: a missed wrap"
    is_grave = spans > limits.warning_spans or wrap
    severity = "warning" if is_grave and not profile.is_host[lane] else "notice"
    return Suspicion("LS501", detail, severity, track_id=lane, rows=rows, table=table)


def _is_all_closed(table: str, lane: int, profile: Profile) -> bool:
    """Tell whether each row of a lane has a start and an end."""
    return table == "slices" and bool(profile.closed[lane] == profile.count[lane])


def _verb(count: int, verb: str) -> str:
    return verb if count != 1 else f"{verb}es" if verb.endswith("ch") else f"{verb}s"


def _wrap(distance: int, core: int, tick: float) -> int:
    """Return the width of a counter whose wrap explains the distance; 0 without one."""
    for bits in _WRAPS:
        if distance > 8 * core and abs(distance - tick * 2.0**bits) < 2 * core:
            return bits
    return 0


def far_lanes(islands: Islands, tracks: int) -> Mask:
    """Return which tracks have far timestamps, bool [tracks]."""
    found: Mask = np.zeros(tracks, np.bool_)
    track = islands.far.track
    found[track[(track >= 0) & (track < tracks)]] = True
    return found
