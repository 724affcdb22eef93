"""LS506: a lane shifted as a whole against its brothers, or its siblings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanescope.analysis.plausibility.context import PlausibilityContext
from lanescope.analysis.plausibility.shapes import siblings
from lanescope.analysis.plausibility.siblings import Floats, deviation, group_sizes, median, median_of_others
from lanescope.analysis.plausibility.suspicion import LaneRange, Suspicion
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Ints

CODE = "LS506"


def shifted_lanes(context: PlausibilityContext) -> Iterator[Suspicion]:
    """Find lanes that start and end early, or late, by the same amount."""
    profile, limits = context.profile, context.thresholds.shifts
    lanes = profile.lanes()
    lanes = lanes[~context.stray_lanes[lanes]]
    if not len(lanes):
        return
    base = int(profile.start[lanes].min())
    start, end = profile.start - base, profile.end - base
    references = _brothers(context, lanes, start, end)
    found: list[tuple[float, Suspicion]] = []
    for group in siblings(profile.shape, lanes):
        many = group[profile.count[group] >= limits.min_slices]
        if len(many) >= limits.min_lanes:
            found += _of_siblings(context, many, start[many], end[many], references[:, many])
    # A shifted lane is part of what its brothers are compared with: of those under one parent the worst is reported.
    worst: dict[int, float] = {}
    for shift, one in found:
        parent = int(profile.parent[one.track_id])
        worst[parent] = max(worst.get(parent, 0.0), shift)
    for shift, one in found:
        parent = int(profile.parent[one.track_id])
        if np.isnan(references[0, one.track_id]) or shift == worst[parent]:
            yield one


def _brothers(context: PlausibilityContext, lanes: Ints, start: Ints, end: Ints) -> Floats:
    """Return the median start and end of the brothers of each lane, float64 [2, tracks].

    NaN where brothers do not all have different shapes, as load, compute and store of one block have.
    """
    profile = context.profile
    parents, shapes = profile.parent[lanes], profile.shape[lanes].astype(np.int64)
    is_only = group_sizes(parents * (int(shapes.max()) + 1) + shapes) == 1
    repeated = distinct(parents[~is_only])
    is_alike = np.isin(parents, repeated)
    found = np.full((2, len(start)), np.nan)
    for reference, times in zip(found, (start, end), strict=True):
        reference[lanes] = np.where(is_alike, np.nan, median_of_others(times[lanes], parents))
    return found


def _of_siblings(
    context: PlausibilityContext, group: Ints, start: Ints, end: Ints, brothers: Floats
) -> Iterator[tuple[float, Suspicion]]:
    """Yield shifts of siblings by where they start and end (int64 [n]), next to their brothers (float64 [2, n])."""
    profile, limits = context.profile, context.thresholds.shifts
    has_brothers = ~np.isnan(brothers[0])
    extent = median(end - start)
    least = max(0.01 * extent + profile.quantum, 1e-9)
    shifts, scores = [], []
    for times, reference in zip((start, end), brothers, strict=True):
        off = times - np.where(has_brothers, reference, median(times))
        middle, spread = deviation(off, least)
        shifts.append(off - middle)
        scores.append((off - middle) / spread)
    first, last = shifts
    shift = np.minimum(np.abs(first), np.abs(last))
    is_off = (
        (np.sign(first) == np.sign(last))
        & (np.minimum(np.abs(scores[0]), np.abs(scores[1])) > limits.deviations)
        & (shift > limits.min_extent * extent)
        & (np.abs(first - last) < limits.max_stretch * shift)
    )
    if not is_off.any() or np.count_nonzero(is_off) > limits.max_lanes * len(group):
        return
    worst = float(np.maximum(np.abs(first), np.abs(last))[~is_off].max())
    for at in np.flatnonzero(is_off & (shift >= limits.ratio * worst)).tolist():
        # Next to siblings alone, a larger shift may as well be the next wave of blocks.
        if not has_brothers[at] and shift[at] > limits.next_wave * extent:
            continue
        lane = int(group[at])
        others = "the lanes next to it" if has_brothers[at] else "its siblings"
        detail = (
            f"starts {first[at]:+,.0f} and ends {last[at]:+,.0f} {profile.time_unit} off {others}: "
            f"{len(group) - 1:,} siblings differ by {worst:,.0f} at most"
        )
        is_warning = has_brothers[at] and not profile.is_host[lane]
        severity = "warning" if is_warning else "notice"
        yield float(shift[at]), Suspicion(CODE, detail, severity, track_id=lane, ranges=(LaneRange(lane),), count=1)
