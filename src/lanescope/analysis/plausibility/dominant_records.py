"""LS509: one record, or a few, make up most of the time of their name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanescope.analysis.plausibility.context import PlausibilityContext
from lanescope.analysis.plausibility.suspicion import Suspicion, is_listed
from lanescope.common.intervals import Ints

CODE = "LS509"

#: Lanes that must share long records so that they are no exception.
_SHARED = 3


def dominant_records(context: PlausibilityContext) -> Iterator[Suspicion]:
    """Find the longest slices of names whose sums and means they decide."""
    profile, pairs, longest = context.profile, context.profile.pairs, context.profile.longest
    if not pairs.is_complete or not len(longest.row):
        return
    is_device = profile.is_lane & ~profile.is_host
    mine = np.flatnonzero(is_device[pairs.track])
    if not len(mine):
        return
    shapes = len(profile.shapes) + 1
    key, place, having = np.unique(
        pairs.name[mine] * shapes + profile.shape[pairs.track[mine]], return_inverse=True, return_counts=True
    )
    count, total = (np.bincount(place.ravel(), weights=part[mine]) for part in (pairs.closed, pairs.total))
    edges = np.flatnonzero(np.diff(longest.name) | np.diff(longest.shape)) + 1
    rows = np.argsort(longest.row)
    is_stray = np.zeros(len(longest.row), np.bool_)
    is_stray[rows] = is_listed(longest.row[rows], context.stray_rows)
    busy = float(total.sum()) - float(longest.length[is_stray].sum())
    for group in np.split(np.arange(len(longest.row)), edges):
        number = int(longest.name[group[0]]) * shapes + int(longest.shape[group[0]])
        at = int(np.searchsorted(key, number))
        if at < len(key) and key[at] == number:
            stray = group[is_stray[group]]
            left, time = int(count[at]) - len(stray), float(total[at]) - float(longest.length[stray].sum())
            yield from _of_name(context, group[~is_stray[group]], int(having[at]), left, time, busy)


def _of_name(
    context: PlausibilityContext, group: Ints, lanes: int, count: int, total: float, busy: float
) -> Iterator[Suspicion]:
    """Judge the longest slices of a name and shape.

    Args:
        context: the context.
        group: their places in ``longest``, the longest first.
        lanes: lanes with the name.
        count: slices of the name and shape.
        total: sum of their lengths.
        busy: sum of the lengths of all slices of devices.
    """
    profile, limits = context.profile, context.thresholds.dominant_records
    most = max(1, int(count * limits.longest_share))
    if count < limits.min_slices or len(group) < 2:
        return
    length = profile.longest.length[group][: most + 1].astype(np.float64)
    ratio = length[:-1] / np.maximum(length[1:], 4.0 * max(profile.quantum, 1))
    few = 1 + int(np.argmax(ratio))
    time = float(length[:few].sum())
    if ratio[few - 1] < limits.ratio or time < limits.name_share * total or time < limits.trace_share * busy:
        return
    # What several lanes saw, and most of those with the name, is a phase of the program.
    if len(np.unique(profile.longest.track[group[:few]])) >= max(_SHARED, limits.shared_lanes * lanes):
        return
    name = profile.names[int(profile.longest.name[group[0]])]
    one = "1 record" if few == 1 else f"{few} records"
    detail = (
        f"{one} of {count} of {name!r}: {ratio[few - 1]:.3g} times as long as the next, {time / total:.0%} of its time"
    )
    yield Suspicion(CODE, detail, "notice", rows=np.sort(profile.longest.row[group[:few]]), count=few)
