"""LS508: records on a lane of another kind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanescope.analysis.plausibility.context import PlausibilityContext
from lanescope.analysis.plausibility.suspicion import LaneRange, Suspicion
from lanescope.common.intervals import Ints
from lanescope.trace.column import Mask

CODE = "LS508"


def foreign_names(context: PlausibilityContext) -> Iterator[Suspicion]:
    """Find slices with names that nearly all lanes of one shape have, and hardly any lane of another."""
    profile, pairs = context.profile, context.profile.pairs
    is_judged = profile.judged & profile.is_lane & ~profile.is_host
    mine = np.flatnonzero(is_judged[pairs.track])
    if not pairs.is_complete or not len(mine):
        return
    lane, name, count = pairs.track[mine], pairs.name[mine], pairs.count[mine]
    shape = profile.shape[lane].astype(np.int64)
    home, is_foreign = _homes(context, name, shape, count)
    foreign = np.flatnonzero(is_foreign)
    foreign = foreign[np.argsort(lane[foreign], kind="stable")]
    for rows in np.split(foreign, np.flatnonzero(np.diff(lane[foreign])) + 1):
        if not len(rows):
            continue
        track = int(lane[rows[0]])
        most = rows[np.argmax(count[rows])]
        where = profile.shapes[int(home[name[most]])]
        number = int(count[rows].sum())
        detail = (
            f"{number} of {profile.count[track]} records have names that elsewhere only lanes like {where} have: "
            f"{profile.names[int(name[most])]}"
        )
        names = tuple(sorted(profile.names[int(one)] for one in name[rows]))
        yield Suspicion(CODE, detail, "warning", track_id=track, ranges=(LaneRange(track, names=names),), count=number)


def _homes(context: PlausibilityContext, name: Ints, shape: Ints, count: Ints) -> tuple[Ints, Mask]:
    """Return the shape at which each name is at home, int64 [names], -1 for none, and the pairs that are elsewhere.

    Args:
        context: the context.
        name: int64 [n], of each pair of a name and a lane.
        shape: int64 [n], of the lane.
        count: int64 [n], slices.
    """
    profile, limits = context.profile, context.thresholds.foreign_names
    shapes = int(shape.max()) + 1
    used = profile.lanes(with_host=False)
    lanes = np.bincount(profile.shape[used], minlength=shapes)
    key, place, having = np.unique(name * shapes + shape, return_inverse=True, return_counts=True)
    key_name, key_shape = key // shapes, key % shapes
    slices = np.bincount(place.ravel(), weights=count)
    total = lanes[key_shape]
    home = np.full(len(profile.names), -1, np.int64)
    is_home = (having >= limits.home_share * total) & (total >= limits.min_lanes)
    is_home &= slices >= limits.home_slices * having
    home[key_name[is_home]] = key_shape[is_home]
    is_common = having > np.maximum(1, limits.rare_share * total)
    home[np.bincount(key_name[is_common], minlength=len(home)) > 1] = -1
    # Of shapes whose own names say little, a strange name says nothing.
    at_home = np.bincount(shape, weights=count * (home[name] == shape), minlength=shapes)
    own = at_home / np.maximum(np.bincount(shape, weights=count, minlength=shapes), 1)
    is_foreign = (
        ~is_common[place.ravel()]
        & (lanes[shape] >= limits.min_lanes)
        & (home[name] >= 0)
        & (home[name] != shape)
        & (own[shape] >= limits.own_share)
    )
    return home, is_foreign
