"""LS510: recorders that stop on one signal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from lanescope.analysis.plausibility.context import PlausibilityContext
from lanescope.analysis.plausibility.suspicion import LaneRange, Suspicion
from lanescope.common.intervals import Ints

CODE = "LS510"


def shared_stops(context: PlausibilityContext) -> Iterator[Suspicion]:
    """Find lanes that end elsewhere than nearly all others: they lost or gained time on the way."""
    profile, limits = context.profile, context.thresholds.shared_stops
    tracks = profile.tree.tracks
    roles, names = tracks.values("role"), tracks.values("name")
    recorders: dict[tuple[str, str], list[int]] = defaultdict(list)
    for lane in np.flatnonzero(profile.judged & (profile.instants > 0) & profile.is_exact).tolist():
        recorders[str(roles[lane]), str(names[lane])].append(lane)
    for lanes in recorders.values():
        parents = {int(profile.parent[lane]) for lane in lanes}
        if len(lanes) >= limits.min_lanes and len(parents) == len(lanes):
            yield from _of_recorders(context, np.array(lanes))


def _of_recorders(context: PlausibilityContext, lanes: Ints) -> Iterator[Suspicion]:
    """Judge lanes of one role and name under different parents."""
    profile, limits = context.profile, context.thresholds.shared_stops
    stop = profile.last_instant[lanes]
    near = limits.near_steps * int(profile.step[lanes[0]])
    ordered = np.sort(stop)
    agreeing = np.searchsorted(ordered, stop + near, "right") - np.searchsorted(ordered, stop - near, "left")
    at = int(np.argmax(agreeing))
    together, shared = int(agreeing[at]), int(stop[at])
    if together < max(2, limits.agreeing * len(lanes)) or shared < limits.from_start * near:
        return
    for lane, mine in zip(lanes.tolist(), stop.tolist(), strict=True):
        if abs(mine - shared) <= near:
            continue
        way = "after" if mine > shared else "before"
        detail = (
            f"ends {abs(mine - shared)} {profile.time_unit} {way} the common stop of "
            f"{together} of {len(lanes)} recorders"
        )
        parent = int(profile.parent[lane])
        brothers = np.flatnonzero((profile.parent == parent) & (profile.count > 0)) if parent >= 0 else np.array([lane])
        yield Suspicion(
            CODE,
            detail,
            "warning" if together >= limits.warning_lanes else "notice",
            track_id=lane,
            ranges=tuple(LaneRange(int(one)) for one in brothers),
            count=1,
            ts=mine,
        )
