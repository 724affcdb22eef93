"""What one rule finds on many lanes of a shape, as one finding."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lanescope.analysis.plausibility.profile import Profile
from lanescope.analysis.plausibility.suspicion import Suspicion
from lanescope.common.distinct import distinct
from lanescope.declaration import replace
from lanescope.families.rules import SEVERITIES

#: More lanes of one shape than this are one finding.
MOST = 8


def folded(found: Iterable[Suspicion], profile: Profile) -> list[Suspicion]:
    """Return suspicions, those of one rule on more than ``MOST`` lanes of a shape as one at the group above them."""
    groups: dict[tuple[str, str, int], list[Suspicion]] = {}
    for number, one in enumerate(found):
        is_of_lane = one.track_id is not None
        shape = int(profile.shape[one.track_id]) if is_of_lane else -1 - number
        groups.setdefault((one.code, one.table, shape), []).append(one)
    result = []
    for alike in groups.values():
        lanes = {one.track_id for one in alike}
        result += [_one(alike, profile)] if len(lanes) > MOST else alike
    return result


def _one(alike: list[Suspicion], profile: Profile) -> Suspicion:
    """Return several suspicions of lanes as one."""
    worst = max(alike, key=lambda one: SEVERITIES.index(one.severity))
    lanes = list(dict.fromkeys(one.track_id for one in alike if one.track_id is not None))
    rows = [one.rows for one in alike if one.rows is not None]
    shape = profile.shapes[int(profile.shape[lanes[0]])]
    times = [one.ts for one in alike if one.ts is not None]
    counts = [one.count for one in alike if one.count is not None]
    return replace(
        worst,
        detail=f"{len(lanes)} lanes like {shape}; {profile.path(worst.track_id or 0)}: {worst.detail}",
        track_id=_above(lanes, profile),
        rows=distinct(np.concatenate(rows)) if rows else None,
        ranges=tuple(part for one in alike for part in one.ranges),
        ts=min(times, default=None),
        count=sum(counts) if len(counts) == len(alike) else None,
    )


def _above(lanes: list[int], profile: Profile) -> int | None:
    """Return the lowest group above all lanes; None without one."""
    shared = profile.tree.ancestors(lanes[0])[:-1]
    for lane in lanes[1:]:
        chain = set(profile.tree.ancestors(lane))
        shared = [step for step in shared if step in chain]
    return shared[-1] if shared else None
