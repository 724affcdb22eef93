"""What findings do to totals: sums with and without their evidence."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.analysis.plausibility.profile import WORTH_TELLING, Profile
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Intervals, Ints, group_starts
from lanescope.source.disk_arrays import in_pieces

#: How many of the largest names and lanes have to keep their order, and how many are compared.
_LARGEST, _COMPARED = 5, 16
#: Findings times tracks up to which a table of both is cheaper than sorting the evidence.
_MOST_CELLS = 1 << 22


class Impact(NamedTuple):
    """Sums over all slices, and over those that are not concerned by a finding.

    If ``basis`` is ``slices``, those concerned are the evidence. If it is ``lanes``, they are all slices of the lanes
    concerned, which is at most what the finding affects. If it is ``count``, none is known, and the sums are the same.

    Attributes:
        slices_fraction: slices concerned, as a fraction of the slices of the trace.
        total: sum of the lengths of all slices, in the trace's unit; the same as ``Totals.total``.
        total_without: of those that are not concerned.
        total_clipped: with each overlapping slice up to the next start only; None unless slices overlap on a disjoint
            lane.
        window: time from the first start to the last end of all slices.
        window_without: of those that are not concerned.
        changes_order: whether the order of the five largest names or lanes differs without the evidence; False unless
            ``basis`` is ``slices``.
        basis: ``slices``, ``lanes`` or ``count``.
        lanes: number of lanes concerned.
        busy_fraction: time that the slices concerned cover, as a fraction of what all slices do; None if that is 0, or
            ``basis`` is ``count``.
        counted_fraction: the count as a fraction of the units, events or lanes that were counted; None if unknown. At
            least so much is concerned.
    """

    slices_fraction: float
    total: int
    total_without: int
    total_clipped: int | None
    window: int
    window_without: int
    changes_order: bool
    basis: str = "slices"
    lanes: int = 0
    busy_fraction: float | None = None
    counted_fraction: float | None = None

    @property
    def is_large(self) -> bool:
        """Whether a total or the window differs by more than 1 %, or more than that is known to be concerned."""
        if self.basis == "count":
            return (self.counted_fraction or 0.0) > WORTH_TELLING
        pairs = (self.total, self.total_without), (self.window, self.window_without)
        return any(abs(one - other) > WORTH_TELLING * max(one, other) for one, other in pairs)


def impacts(
    profile: Profile, number: Ints, count: int, positions: Ints, names: Ints, extents: Intervals, clipped: Ints
) -> list[Impact]:
    """Return what each of several findings does.

    Args:
        profile: sums over the trace.
        number: int64 [n] rising, the finding of each slice of evidence.
        count: number of findings.
        positions: int64 [n], where it stands in the whole trace.
        names: int64 [n], its name as the profile numbers it.
        extents: its lane and time; closed slices have their length, others none.
        clipped: int64 [findings], time beyond the next start; -1 where nothing is shortened.
    """
    is_known = (extents.group >= 0) & (extents.group < len(profile.tree))
    number, positions, names = number[is_known], positions[is_known], names[is_known]
    extents = extents.take(is_known)
    length = np.empty(len(number), np.int64)
    for piece in in_pieces(len(number)):
        np.subtract(extents.end[piece], extents.begin[piece], out=length[piece])
    slices = max(int(profile.count.sum()), 1)
    rows = np.bincount(number, minlength=count)
    total = int(profile.total.sum())
    lost = np.zeros(count, np.int64)
    np.add.at(lost, number, length)
    pairs = profile.pairs
    by_name = np.zeros(len(profile.names), np.int64)
    np.add.at(by_name, pairs.name, pairs.total)
    changes = _changes_order(profile.total, number, extents.group, length, count)
    if pairs.is_complete:
        changes |= _changes_order(by_name, number, names, length, count)
    window, without = _windows(profile, number, count, positions, extents.group)
    lanes = _lanes(number, count, extents.group, len(profile.tree))
    return [
        Impact(
            slices_fraction=here / slices,
            total=total,
            total_without=total - gone,
            total_clipped=None if beyond < 0 else total - beyond,
            window=window,
            window_without=window_without,
            changes_order=is_changed,
            lanes=on,
        )
        for here, gone, beyond, window_without, is_changed, on in zip(
            rows.tolist(), lost.tolist(), clipped.tolist(), without, changes.tolist(), lanes.tolist(), strict=True
        )
    ]


def _lanes(number: Ints, count: int, track: Ints, tracks: int) -> Ints:
    """Return on how many lanes the evidence of each finding is, int64 [findings]."""
    keys = number * tracks + track
    if count * tracks > _MOST_CELLS:
        return np.bincount(distinct(keys) // tracks, minlength=count)
    there = np.zeros((count, tracks), np.bool_)
    there.reshape(-1)[keys] = True
    lanes: Ints = there.sum(axis=1)
    return lanes


def beyond_next_start(number: Ints, extents: Intervals, count: int) -> Ints:
    """Return how much of the slices of each finding lies after the next start of a slice of it, int64 [findings]."""
    sort = np.lexsort((-extents.end, extents.begin, number))
    begin, end, of = extents.begin[sort], extents.end[sort], number[sort]
    following = np.append(begin[1:], 0)
    is_last = np.append(group_starts(of)[1:], True) if len(of) else np.empty(0, np.bool_)
    beyond = np.where(is_last, 0, np.maximum(end - np.maximum(following, begin), 0))
    found = np.zeros(count, np.int64)
    np.add.at(found, of, beyond)
    return found


def _changes_order(totals: Ints, number: Ints, key: Ints, length: Ints, count: int) -> npt.NDArray[np.bool_]:
    """Return for each finding whether the order of the largest totals differs without it, bool [findings]."""
    largest = np.argsort(-totals, kind="stable")[:_COMPARED]
    largest = largest[totals[largest] > 0]
    place = np.full(len(totals), -1)
    place[largest] = np.arange(len(largest))
    at = place[key]
    left = np.repeat(totals[largest][None, :], count, axis=0)
    np.subtract.at(left, (number[at >= 0], at[at >= 0]), length[at >= 0])
    order = np.argsort(-left, axis=1, kind="stable")[:, :_LARGEST]
    changed: npt.NDArray[np.bool_] = (order != np.arange(order.shape[1])).any(axis=1)
    return changed


def _windows(profile: Profile, number: Ints, count: int, positions: Ints, lanes: Ints) -> tuple[int, list[int]]:
    """Return the time from the first start to the last end, of all slices and without each finding's."""
    kind, time, row = profile.outermost.T
    edges = []
    for which, sign in ((0, 1), (1, -1)):
        mine = kind == which
        sort = np.lexsort((row[mine], sign * time[mine]))
        edges.append((time[mine][sort], row[mine][sort]))
    if not len(edges[0][0]):
        return 0, [0] * count
    (starts, first_rows), (ends, last_rows) = edges
    whole = int(ends[0]) - int(starts[0])
    without = [whole] * count
    outer = np.isin(positions, [first_rows[0], last_rows[0]])
    for one in distinct(number[outer]).tolist():
        first, last = np.searchsorted(number, [one, one + 1])
        evidence, on = positions[first:last], lanes[first:last]
        start = _rest(starts, first_rows, evidence, profile.start, profile.count, on, np.min)
        end = _rest(ends, last_rows, evidence, profile.end, profile.count, on, np.max)
        without[one] = 0 if start is None or end is None else max(end - start, 0)
    return whole, without


def _rest(
    times: Ints, rows: Ints, evidence: Ints, of_lane: Ints, count: Ints, lanes: Ints, choose: Callable[[Ints], np.int64]
) -> int | None:
    """Return the outermost time of slices that are not evidence; None without one.

    Where all outermost slices are evidence, it is that of the lanes without evidence.
    """
    left = times[~np.isin(rows, evidence)]
    if len(left):
        return int(left[0])
    others = count > 0
    others[lanes] = False
    return int(choose(of_lane[others])) if others.any() else None
