"""LS509: one record, or a few, make up most of the time of their name, or one makes its lane end after all others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanescope.analysis.plausibility.context import PlausibilityContext
from lanescope.analysis.plausibility.siblings import median
from lanescope.analysis.plausibility.suspicion import Suspicion, exact, is_listed, times_text
from lanescope.common.distinct import distinct
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
    told: set[int] = set()
    late: dict[int, Suspicion] = {}
    for group in np.split(np.arange(len(longest.row)), edges):
        number = int(longest.name[group[0]]) * shapes + int(longest.shape[group[0]])
        at = int(np.searchsorted(key, number))
        if at < len(key) and key[at] == number:
            stray = group[is_stray[group]]
            left, time = int(count[at]) - len(stray), float(total[at]) - float(longest.length[stray].sum())
            group = group[~is_stray[group]]
            if found := _of_name(context, group, int(having[at]), left, time, busy):
                told.update(longest.track[group[: found.count]].tolist())
                yield found
            elif (found := _late_end(context, group)) and found.track_id is not None:
                late.setdefault(found.track_id, found)
    yield from (one for lane, one in late.items() if lane not in told)


def _of_name(
    context: PlausibilityContext, group: Ints, lanes: int, count: int, total: float, busy: float
) -> Suspicion | None:
    """Judge the longest slices of a name and shape by their share of its time.

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
        return None
    length = profile.longest.length[group][: most + 1].astype(np.float64)
    ratio = length[:-1] / np.maximum(length[1:], 4.0 * max(profile.quantum, 1))
    few = 1 + int(np.argmax(ratio))
    time = float(length[:few].sum())
    if ratio[few - 1] < limits.ratio or time < limits.name_share * total or time < limits.trace_share * busy:
        return None
    # What several lanes saw, and most of those with the name, is a phase of the program.
    if len(distinct(profile.longest.track[group[:few]])) >= max(_SHARED, limits.shared_lanes * lanes):
        return None
    name = profile.names[int(profile.longest.name[group[0]])]
    one, times = "1 record" if few == 1 else f"{few} records", times_text(ratio[few - 1])
    detail = f"{one} of {count:,} of {name!r}: {times} times as long as the next, {time / total:.0%} of its time"
    return Suspicion(CODE, detail, "notice", rows=np.sort(profile.longest.row[group[:few]]), count=few)


def _late_end(context: PlausibilityContext, group: Ints) -> Suspicion | None:
    """Judge the longest slice of a name and shape by what it does to its lane: no sibling may end as late.

    Args:
        context: the context.
        group: places in ``longest`` of the longest ones, the longest first.
    """
    profile, limits, longest = context.profile, context.thresholds.dominant_records, context.profile.longest
    if len(group) < 2:
        return None
    lane, length = int(longest.track[group[0]]), int(longest.length[group[0]])
    others = group[longest.track[group] != lane]
    second = max(int(longest.length[others[0] if len(others) else group[-1]]), 4 * profile.quantum, 1)
    _, first = np.unique(longest.track[others], return_index=True)
    spread = float(np.log(np.maximum(longest.length[others[first]], 1)).std()) if len(others) else 0.0
    # Where lengths have a heavy tail, the longest ones of the siblings differ much among themselves.
    if np.log(max(length, 1) / second) <= max(np.log(limits.late_ratio), limits.late_deviations * spread):
        return None
    alike = (profile.shape == profile.shape[lane]) & profile.judged & ~context.stray_lanes
    alike &= profile.count >= limits.late_slices
    if not alike[lane]:
        return None
    alike[lane] = False
    siblings = np.flatnonzero(alike)
    if len(siblings) < limits.late_siblings or length <= limits.late_extent * median(profile.extent[siblings]):
        return None
    late = int(profile.end[lane]) - int(profile.end[siblings].max())
    early = int(profile.start[siblings].min()) - int(profile.start[lane])
    shift = max(late, early)
    if not limits.late_shift * length < shift <= length / limits.late_shift:
        return None
    way = "end late" if late >= early else "start early"
    name, times = profile.names[int(longest.name[group[0]])], times_text(length / second)
    detail = (
        f"{name!r} of {exact(length, profile.time_unit)}, {times} times as long as on {len(siblings):,} siblings, "
        f"makes the lane {way} by {shift / length:.2f} of it"
    )
    return Suspicion(CODE, detail, "notice", track_id=lane, rows=longest.row[group[:1]], count=1)
