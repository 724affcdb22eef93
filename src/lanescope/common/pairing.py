"""Pair starts and ends of equal keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Asynchronous regions, as indices of records.

    Attributes:
        begin: int64 [n], records that begin a region, in the order of the records.
        end: int64 [n], the record that ends it; -1: none does.
        unmatched: int64 [m], ends that no begin precedes.
        doubtful: bool [n], where a further region of the same key was open: which end is whose was concluded.
    """

    begin: I64
    end: I64
    unmatched: I64
    doubtful: Mask


def pair(key: I64, is_end: Mask) -> Pairs:
    """Pair begins and ends of equal keys in the order of their begins.

    Args:
        key: int64 [n], what a pair has in common, its lane included; records of one key in write order.
        is_end: bool [n].

    Complexity:
        O(n log n), whatever the keys.
    """
    count = len(key)
    order = np.argsort(key, kind="stable")
    ends = is_end[order]
    ordered = key[order]
    group = np.cumsum(np.diff(ordered, prepend=ordered[:1]) != 0)
    step = np.where(ends, -1, 1)
    total = np.cumsum(step)
    first = np.searchsorted(group, group)
    open_before = total - step - (total - step)[first]  # in this group, were no end ever without a begin
    # An end without a begin leaves nothing open: the lowest point so far is the new floor. One array for all groups:
    # each lies so far below the one before that the lowest of that cannot reach into it.
    room = 2 * count + 2
    shifted = open_before + step - group * room
    start = -group * room
    floor = np.minimum(np.minimum.accumulate(np.minimum(shifted, start)), start)
    before = np.empty_like(floor)
    before[:1], before[1:] = start[:1], np.where(group[1:] == group[:-1], floor[:-1], start[1:])
    stray = ends & (floor < before)
    depth = shifted - step - before  # how many of the key are open before each record
    begins, matched = np.flatnonzero(~ends), np.flatnonzero(ends & ~stray)
    # The k-th end of a key that finds one open ends its k-th begin.
    begin_count = np.bincount(group[begins], minlength=int(group[-1]) + 1 if count else 0)
    base = np.cumsum(begin_count) - begin_count
    before_match = np.cumsum(ends & ~stray) - (ends & ~stray)
    number = before_match[matched] - before_match[first[matched]]
    end_of = np.full(len(begins), -1, np.int64)
    which = base[group[matched]] + number
    end_of[which] = order[matched]
    # Where a key is begun while it is open, the region that began before is open too.
    crowded = depth[begins] > 0
    doubtful = crowded.copy()
    doubtful[:-1] |= crowded[1:]
    back = np.argsort(order[begins], kind="stable")
    return Pairs(order[begins][back], end_of[back], np.sort(order[stray]), doubtful[back])
