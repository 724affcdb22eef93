"""Flows: chains of events with one id, and the slices that they leave and enter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.intervals import order as sorted_by

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

STARTS, STEPS, ENDS = range(3)
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Linked:
    """Flows, as indices of points.

    Attributes:
        source: int64 [n].
        destination: int64 [n].
        unmatched: int64 [m], points without a partner.
    """

    source: Int64
    destination: Int64
    unmatched: Int64


def link(key: Int64, ts: Int64, kind: npt.NDArray[np.uint8]) -> Linked:
    """Link each step and each end with the start or step of its key before it, in the order of time.

    Args:
        key: int64 [n], points in the order of the file.
        ts: int64 [n].
        kind: uint8 [n], ``STARTS``, ``STEPS`` or ``ENDS``.
    """
    order = sorted_by(key, ts)
    kinds, keys = kind[order], key[order]
    place = np.arange(len(order))
    last = np.maximum.accumulate(np.where(kinds != ENDS, place, -1)) if len(order) else place
    before = np.full(len(order), -1)
    before[1:] = last[:-1]
    fits = (before >= 0) & (kinds != STARTS)
    fits[fits] = keys[before[fits]] == keys[fits]
    used = fits.copy()
    used[before[fits]] = True
    return Linked(order[before[fits]], order[fits], np.sort(order[~used]))


def slices_at(lane: Int64, begin: Int64, end: Int64, point_lane: Int64, point: Int64, is_next: Mask) -> Int64:
    """Return the slice that each point is bound to, int64 [points], -1: none.

    Args:
        lane: int64 [n], of each slice.
        begin: int64 [n].
        end: int64 [n], the largest int64 where a slice has none.
        point_lane: int64 [points], the lane of each point.
        point: int64 [points], its time.
        is_next: bool [points], whether it is bound to the next slice of its lane, not to the one it lies in.
    """
    slices = sorted_by(lane, begin, end)
    points = sorted_by(point_lane, point)
    inside, following = np.empty(len(points), np.int64), np.empty(len(points), np.int64)
    core.slices_around(
        np.ascontiguousarray(lane[slices]),
        np.ascontiguousarray(begin[slices]),
        np.ascontiguousarray(end[slices]),
        np.ascontiguousarray(point_lane[points]),
        np.ascontiguousarray(point[points]),
        inside,
        following,
    )
    bound = np.empty(len(points), np.int64)
    bound[points] = np.append(slices, -1)[np.where(is_next[points], following, inside)]
    return bound
