"""LS502: a gap that no sibling has."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanescope.analysis.plausibility.context import PlausibilityContext
from lanescope.analysis.plausibility.shapes import siblings
from lanescope.analysis.plausibility.siblings import deviation, median
from lanescope.analysis.plausibility.suspicion import LaneRange, Suspicion, exact, times_text
from lanescope.common.intervals import Ints

CODE = "LS502"


def lone_gaps(context: PlausibilityContext) -> Iterator[Suspicion]:
    """Find lanes whose clock seems to have stepped: one gap, and all slices after it are late by as much."""
    profile, limits = context.profile, context.thresholds.lone_gaps
    lanes = profile.lanes()
    lanes = lanes[(profile.count[lanes] >= limits.min_slices) & ~context.stray_lanes[lanes]]
    for group in siblings(profile.shape, lanes):
        if len(group) >= limits.min_lanes:
            yield from _of_siblings(context, group)


def _of_siblings(context: PlausibilityContext, group: Ints) -> Iterator[Suspicion]:
    """Judge the sibling with the largest gap."""
    profile, limits = context.profile, context.thresholds.lone_gaps
    at = int(np.argmax(profile.gap[group]))
    lane, others = int(group[at]), np.delete(group, at)
    gap, gaps = float(profile.gap[lane]), np.maximum(profile.gap[others], max(2.0 * profile.quantum, 1.0))
    second, extent = float(gaps.max()), median(profile.extent[others])
    # Where gaps have a heavy tail, the largest ones of the siblings differ much among themselves.
    logarithms = np.log(gaps)
    spread = max(float(logarithms.std()), deviation(logarithms, 0.0)[1])
    far = max(np.log(limits.ratio), limits.deviations * spread)
    if gap <= limits.min_extent * extent or np.log(gap) <= np.log(second) + far:
        return
    late = int(profile.end[lane]) - int(profile.end[others].max())
    early = int(profile.start[others].min()) - int(profile.start[lane])
    shift = max(late, early)
    if shift <= limits.min_shift * gap:
        return
    is_late = late >= early
    way = "ends late" if is_late else "starts early"
    wide, times = exact(gap, profile.time_unit), times_text(gap / second)
    detail = (
        f"gap of {wide}, {times} times the largest gap of {len(others):,} siblings: "
        f"the lane {way} by {shift / gap:.2f} of it"
    )
    start, end = int(profile.gap_start[lane]), int(profile.gap_end[lane])
    affected = LaneRange(lane, first=end) if is_late else LaneRange(lane, last=max(start - 1, int(profile.start[lane])))
    # Next to a gap at the very end, it is one late record rather than a step.
    side = int(profile.end[lane]) - end if is_late else start - int(profile.start[lane])
    is_step = side >= limits.min_side * (float(profile.extent[lane]) - gap)
    is_warning = gap > limits.warning_extent * extent and is_step and not profile.is_host[lane]
    yield Suspicion(
        CODE,
        detail,
        "warning" if is_warning else "notice",
        track_id=lane,
        ranges=(affected,),
        count=1,
        ts=start,
    )
