"""LS505: the same records twice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanescope.analysis.plausibility.context import PlausibilityContext
from lanescope.analysis.plausibility.shapes import siblings
from lanescope.analysis.plausibility.suspicion import LaneRange, Suspicion
from lanescope.common.distinct import distinct

_CODE = "LS505"


def repeated(context: PlausibilityContext) -> Iterator[Suspicion]:
    """Yield lanes with slices that have lane, start, end and name of an earlier one."""
    profile, limits = context.profile, context.thresholds.duplicates
    row, track, length = profile.repeated.T
    is_long = ~profile.is_host[track] & (length >= limits.min_steps * profile.step[track])
    row, track, length = row[is_long], track[is_long], length[is_long]
    for lane in distinct(track).tolist():
        on_lane = track == lane
        rows, severity = np.sort(row[on_lane]), "warning"
        if profile.is_free[lane] and len(rows) < limits.free_slices:
            rows = np.sort(row[on_lane & (length >= limits.free_steps * profile.step[lane])])
            severity = "notice"
        if len(rows):
            verb = "repeats" if len(rows) == 1 else "repeat"
            detail = f"{len(rows)} of {profile.count[lane]} slices {verb} another one: same start, end and name"
            yield Suspicion(_CODE, detail, severity, track_id=lane, rows=rows)


def copied_lanes(context: PlausibilityContext) -> Iterator[Suspicion]:
    """Yield lanes with the slices of a sibling."""
    profile, limits = context.profile, context.thresholds.duplicates
    lanes = profile.lanes()
    is_wide = (profile.count >= limits.lane_slices) & (profile.starts >= limits.lane_slices)
    is_wide &= profile.extent >= limits.lane_steps * max(profile.quantum, 1)
    # Lanes of the shortest slices only agree by chance.
    is_wide &= profile.total >= limits.min_steps * max(profile.quantum, 1)
    for group in siblings(profile.shape, lanes[is_wide[lanes]]):
        first: dict[tuple[int, int], int] = {}
        for lane in group.tolist():
            other = first.setdefault((int(profile.count[lane]), int(profile.hash[lane])), lane)
            if other != lane:
                detail = f"has the same {profile.count[lane]} slices at the same times as {profile.path(other)}"
                yield Suspicion(_CODE, detail, "warning", track_id=lane, ranges=(LaneRange(lane),))
