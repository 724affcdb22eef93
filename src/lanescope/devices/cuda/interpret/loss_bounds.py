"""What full lanes lost, as far as a buffer can show it: one rule for all layouts, counted or not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.cuda.formats.buffer import Grid
from lanescope.devices.cuda.formats.lane_columns import shared

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: So many lanes of a group have to be complete, and equally long, before a shorter full one is compared with them.
_FEWEST_SIBLINGS = 3


@frozen_class
class LossBounds:
    """Lost records of each lane.

    Attributes:
        has_lost: bool [lanes], True if the lane certainly lacks records for which it had no room.
        may_have_lost: bool [lanes], True if it is full and nothing shows that a record is missing: it lost 0 or more.
        is_exact: bool [lanes], True if ``at_least`` is the exact number.
        at_least: int64 [lanes], the least number of lost records.
    """

    has_lost: Mask
    may_have_lost: Mask
    is_exact: Mask
    at_least: I64


def bounds(grid: Grid, summary: Mapping[str, I64], *, is_ring: bool) -> LossBounds:
    """Return what lanes lost.

    A count of the probe is exact, and of a lane that was killed while full it is the least. Without a count, a lane
    that is not full lost nothing. One that is full and keeps its oldest records lacks the end of each unfinished
    region; one that keeps its newest, the start of each unmatched end. Where all complete lanes of a group have the
    same number of records, a full lane of it that has fewer lacks the difference. A missing finalize shows that
    something may be missing and adds nothing: a kernel that stops at its last slot leaves the same records.

    Args:
        grid: the lanes, and what they count.
        summary: of all lanes, int64 [lanes] each.
        is_ring: full lanes keep their newest records.
    """
    full = summary["full"] != 0
    if grid.lost is None:
        lost, counted, is_blind = np.zeros(len(full), np.int64), np.zeros(len(full), np.bool_), full
    else:
        lost = grid.lost
        counted = np.ones(len(full), np.bool_) if grid.counted is None else grid.counted
        is_blind = (full if grid.at_capacity is None else full | grid.at_capacity) & ~counted
    partners = summary["unmatched"] if is_ring else summary["open"]
    if grid.lost is not None and not is_ring:
        # A lane that did not count to its end was killed, which leaves regions unfinished as well.
        partners = np.zeros(len(full), np.int64)
    shown = np.where(is_blind, np.maximum(partners, _shorter_by(grid, summary, is_blind)), 0)
    at_least = np.maximum(lost, shown)
    # Lanes of a layout with counts have no finalize record that others could have.
    lacks_finalize = grid.lost is None and bool(summary["finalizes"].any())
    has_lost = (at_least > 0) | (is_blind & lacks_finalize)
    return LossBounds(has_lost, is_blind & ~has_lost, counted, shared(at_least))


def _shorter_by(grid: Grid, summary: Mapping[str, I64], full: Mask) -> I64:
    """Return how many records lanes have less than the complete lanes of their group, int64 [lanes]."""
    found = np.zeros(len(full), np.int64)
    records = summary["records"]
    is_sound = (summary["missing"] == 0) & (summary["launches"] <= 1) & (summary["unmatched"] == 0)
    complete = (records > 0) & ~full & is_sound & (summary["open"] == 0)
    if summary["finalizes"].any():
        complete &= summary["finalizes"] > 0
    if not complete.any() or not full.any():
        return found
    # Numbers of groups may be any that records have.
    groups, group = np.unique(grid.group, return_inverse=True)
    width = len(groups)
    count = np.bincount(group[complete], minlength=width)
    longest, shortest = np.zeros(width, np.int64), np.full(width, np.iinfo(np.int64).max)
    np.maximum.at(longest, group[complete], records[complete])
    np.minimum.at(shortest, group[complete], records[complete])
    length = np.where((count >= _FEWEST_SIBLINGS) & (longest == shortest), longest, 0)
    comparable = full & is_sound
    found[comparable] = np.maximum(length[group[comparable]] - records[comparable], 0)
    return found
