"""Records that belong together over other records: asynchronous regions, flows, and the regions around them."""

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


def join(key: I64, ts: I64, is_effect: Mask) -> tuple[I64, I64, I64, I64]:
    """Find the cause of each effect: the latest record of its key that is not later.

    Args:
        key: int64 [n], what cause and effect have in common.
        ts: int64 [n].
        is_effect: bool [n]; the others are causes. Of causes at one time the last one counts.

    Returns:
        Effects that have a cause, and their causes, int64 [m] each; effects without a cause; causes without any effect.
    """
    order = np.lexsort((np.arange(len(key)), is_effect, ts, key))
    effect = is_effect[order]
    at = np.where(effect, -1, np.arange(len(order)))
    latest = np.maximum.accumulate(at) if len(at) else at
    ordered = key[order]
    found = effect & (latest >= 0)
    found[found] = ordered[latest[found]] == ordered[found]
    effects, causes = order[found], order[latest[found]]
    back = np.argsort(effects, kind="stable")
    used = np.zeros(len(key), np.bool_)
    used[causes] = True
    return effects[back], causes[back], np.sort(order[effect & ~found]), np.flatnonzero(~is_effect & ~used)


def enclosing(lane: I64, begin: I64, end: I64, at_lane: I64, at: I64, *, longest: int) -> I64:
    """Find the innermost region around each record.

    Args:
        lane: int64 [n], lanes of the regions, rising.
        begin: int64 [n], positions of their begin records, rising along a lane.
        end: int64 [n], positions of their end records; of open regions beyond all others.
        at_lane: int64 [m], lanes of the records.
        at: int64 [m], their positions.
        longest: more than any position.

    Returns:
        int64 [m], index of the region, -1 where none is around the record, or where regions cross there.
    """
    if not len(lane) or not len(at):
        return np.full(len(at), -1, np.int64)
    start, stop = lane * (longest + 1) + begin, lane * (longest + 1) + np.minimum(end, longest)
    where = at_lane * (longest + 1) + at
    # Depth of each begin: how many are open when it comes. Open ends of one lane lie before the next lane's begins.
    ends = np.sort(stop)
    depth = np.arange(len(start)) - np.searchsorted(ends, start)
    opened = np.searchsorted(start, where)
    level = opened - np.searchsorted(ends, where) - 1
    # The innermost region is the last one that began at that depth.
    count = len(start) + 1
    by_depth = np.argsort(depth, kind="stable")
    keys = depth[by_depth] * count + by_depth
    at_key = np.searchsorted(keys, level * count + opened - 1, side="right") - 1
    found = np.where((level >= 0) & (at_key >= 0), by_depth[np.maximum(at_key, 0)], -1)
    inside = found >= 0
    inside[inside] = (start[found[inside]] < where[inside]) & (stop[found[inside]] > where[inside])
    return np.where(inside, found, -1)
