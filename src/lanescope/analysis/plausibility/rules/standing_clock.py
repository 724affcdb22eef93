"""LS503: a clock that stops, or ticks too coarsely."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanescope.analysis.plausibility.context import PlausibilityContext
from lanescope.analysis.plausibility.profile import Profile
from lanescope.analysis.plausibility.shapes import siblings
from lanescope.analysis.plausibility.siblings import median
from lanescope.analysis.plausibility.suspicion import LaneRange, Suspicion
from lanescope.analysis.plausibility.thresholds import StandingClockThresholds
from lanescope.common.intervals import Ints
from lanescope.trace.column import Mask

_CODE = "LS503"


def constant(context: PlausibilityContext) -> Iterator[Suspicion]:
    """Yield lanes of which all timestamps are the same; all together where hardly another one has slices."""
    profile, limits = context.profile, context.thresholds.standing_clock
    lanes = np.flatnonzero(_is_constant(profile, limits))
    closed, total = int(profile.closed[lanes].sum()), int(profile.closed.sum())
    if len(lanes) and closed >= 0.9 * total and total >= limits.min_trace_slices:
        what = f"all timestamps of {len(lanes)} lanes are the same" if len(lanes) > 1 else "all timestamps are the same"
        ranges = tuple(LaneRange(lane) for lane in lanes.tolist())
        yield Suspicion(_CODE, f"{what}: the clock stopped", "error", ranges=ranges)
        return
    for lane in lanes.tolist():
        detail = f"all {2 * profile.closed[lane]} timestamps of the lane are the same: its clock stopped"
        yield Suspicion(_CODE, detail, "warning", track_id=lane, ranges=(LaneRange(lane),))


def _is_constant(profile: Profile, limits: StandingClockThresholds) -> Mask:
    """Return which lanes have one timestamp, bool [tracks]."""
    found: Mask = profile.is_lane & (profile.closed >= limits.min_slices) & (profile.start == profile.end)
    return found


def stuck_or_coarse(context: PlausibilityContext) -> Iterator[Suspicion]:
    """Yield lanes whose clock stops for a while, and lanes whose clock takes few values."""
    profile, limits = context.profile, context.thresholds.standing_clock
    is_other = ~_is_constant(profile, limits)
    lanes = profile.lanes()
    is_filled = profile.closed >= limits.coarse_slices
    is_coarse = is_filled & _is_coarse(profile, limits) & profile.judged & ~profile.is_host
    is_widespread = int(np.count_nonzero(is_coarse)) >= 0.5 * np.count_nonzero(is_filled & profile.judged)
    for group in siblings(profile.shape, lanes):
        told = set()
        for lane in group[is_other[group] & (profile.run[group] >= limits.run)].tolist():
            others = group[group != lane]
            if len(others) and profile.run[lane] < limits.run_ratio * median(profile.run[others]):
                continue
            told.add(lane)
            detail = f"{profile.run[lane]} slices in a row have one timestamp and no length: the clock stopped"
            at = int(profile.run_at[lane])
            yield Suspicion(
                _CODE, detail, "warning", track_id=lane, ranges=(LaneRange(lane, at, at, longest=0),), ts=at
            )
        for lane in group[is_other[group] & is_coarse[group]].tolist():
            if lane not in told:
                others = group[is_filled[group] & (group != lane)]
                is_alone = len(others) >= 2 and _empty_share(profile, others) < limits.sibling_share
                yield _coarse(profile, lane, "warning" if is_alone or is_widespread else "notice")


def _is_coarse(profile: Profile, limits: StandingClockThresholds) -> Mask:
    """Return which lanes have many slices of no length and few different timestamps, bool [tracks]."""
    closed, distinct = profile.closed, profile.distinct
    is_few: Mask = (distinct >= 2) & (distinct * limits.coarse_values <= 2 * closed)
    return is_few & (profile.empty >= limits.coarse_empty * closed)


def _empty_share(profile: Profile, lanes: Ints) -> float:
    """Return the usual share of slices of no length on some lanes."""
    return median(profile.empty[lanes] / profile.closed[lanes])


def _coarse(profile: Profile, lane: int, severity: str) -> Suspicion:
    closed = int(profile.closed[lane])
    detail = (
        f"{2 * closed} timestamps take {profile.distinct[lane]} values, "
        f"{profile.empty[lane]} of {closed} slices have no length"
    )
    return Suspicion(_CODE, detail, severity, track_id=lane, ranges=(LaneRange(lane),))
