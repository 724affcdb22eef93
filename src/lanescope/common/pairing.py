"""Pairing of start and end records: in order of their starts, or nested."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common import asof_join
from lanescope.declaration import frozen_class

Ints = npt.NDArray[np.integer[Any]]
Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Rounds in which pairs without pairs in them are taken out; what is nested deeper is matched by level.
_PEELS = 3


@frozen_class
class Pairs:
    """Pairs of records, as indices of records.

    Attributes:
        start: int64 [n], records that start something, in record order.
        end: int64 [n], the record that ends it; of one that is cut the last record before the cut; -1: still open
            after the last record, or left open by an end around it.
        unmatched: int64 [m], records without a partner: ends that no start precedes, and starts of what is open
            already where it can be open only once.
        is_ambiguous: bool [n], where something else of the same key was open at the same time, so that which end
            belongs to which start is a conclusion.
        is_cut: bool [n], where ``end`` is the last record before a cut.
    """

    start: Int64
    end: Int64
    unmatched: Int64
    is_ambiguous: Mask
    is_cut: Mask


def pair_fifo(key: Ints, is_end: Mask, *, is_open_once: bool = False, cut_before: Mask | None = None) -> Pairs:
    """Pair starts and ends of equal keys in order of their starts.

    Args:
        key: integers [n], what a pair has in common, its lane included; records of one key in the order of time.
        is_end: bool [n].
        is_open_once: a start of what is open already starts nothing.
        cut_before: bool [n], where records are missing before a record: what is open there ends at the record before,
            whatever its key, because its end may be among the missing ones. None: nowhere.

    Complexity:
        O(n log n), whatever the keys.

    Example:
        >>> pairs = pair_fifo(np.array([7, 7, 8, 7, 7]), np.array([False, False, True, True, True]))
        >>> pairs.start.tolist(), pairs.end.tolist(), pairs.unmatched.tolist()
        ([0, 1], [3, 4], [2])
    """
    count = len(key)
    order = np.argsort(key, kind="stable")
    changes = np.diff(key[order], prepend=key[order[:1]]) != 0
    segment = None
    if cut_before is not None and cut_before.any():
        segment = np.cumsum(cut_before)
        changes |= np.diff(segment[order], prepend=segment[order[:1]]) != 0
    group = np.cumsum(changes)
    match = _match_once if is_open_once else _match_in_order
    starts, ends, unmatched, ambiguous = match(group, is_end[order])
    end = np.append(order, -1)[ends]
    back = np.argsort(order[starts], kind="stable")
    start, end = order[starts][back], end[back]
    is_cut = np.zeros(len(start), np.bool_)
    if segment is not None:
        last = np.searchsorted(segment, segment[start], side="right") - 1
        is_cut = (end < 0) & (last < count - 1)
        end = np.where(is_cut, last, end)
    return Pairs(start, end, np.sort(order[unmatched]), ambiguous[back], is_cut)


def _match_once(group: Int64, is_end: Mask) -> tuple[Int64, Int64, Int64, Mask]:
    """Match records sorted by group of which one is open at a time; see ``_match_in_order``."""
    # Whatever came before, a group is open after a start and closed after an end.
    was_open = np.zeros(len(group), np.bool_)
    was_open[1:] = ~is_end[:-1] & (group[1:] == group[:-1])
    starts, ends = np.flatnonzero(~is_end & ~was_open), np.flatnonzero(is_end & was_open)
    # What opens and what closes alternate in each group: an end before the next start closes this one.
    following = np.append(ends, len(group))[np.searchsorted(ends, starts)]
    is_closed = following < np.append(starts[1:], len(group))
    unmatched = np.flatnonzero(is_end != was_open)
    return starts, np.where(is_closed, following, -1), unmatched, np.zeros(len(starts), np.bool_)


def _match_in_order(group: Int64, is_end: Mask) -> tuple[Int64, Int64, Int64, Mask]:
    """Match records sorted by group: the k-th end of a group that finds one open ends its k-th start.

    Returns:
        int64 [pairs] starts; int64 [pairs] their ends, -1: none; int64 [m] records without a partner; bool [pairs],
        where another of the group was open.
    """
    count = len(group)
    step = np.where(is_end, -1, 1)
    total = np.cumsum(step)
    first = np.searchsorted(group, group)
    open_before = total - step - (total - step)[first]  # in this group, were no end ever without a start
    # An end without a start leaves nothing open: the lowest point so far is the new floor. One array for all groups:
    # each lies so far below the one before that the lowest of that cannot reach into it.
    room = 2 * count + 2
    shifted = open_before + step - group * room
    base_level = -group * room
    floor = np.minimum(np.minimum.accumulate(np.minimum(shifted, base_level)), base_level)
    before = np.empty_like(floor)
    before[:1], before[1:] = base_level[:1], np.where(group[1:] == group[:-1], floor[:-1], base_level[1:])
    is_stray = is_end & (floor < before)
    depth = shifted - step - before  # how many of the group are open before each record
    starts, matched = np.flatnonzero(~is_end), np.flatnonzero(is_end & ~is_stray)
    start_count = np.bincount(group[starts], minlength=int(group[-1]) + 1 if count else 0)
    base = np.cumsum(start_count) - start_count
    before_match: Int64 = np.cumsum(is_end & ~is_stray) - (is_end & ~is_stray)
    number: Int64 = before_match[matched] - before_match[first[matched]]
    ends = np.full(len(starts), -1, np.int64)
    ends[base[group[matched]] + number] = matched
    # Where one is started while another of its group is open, that one is open at the same time too.
    crowded = depth[starts] > 0
    ambiguous = crowded.copy()
    ambiguous[:-1] |= crowded[1:]
    return starts, ends, np.flatnonzero(is_stray), ambiguous


def pair_stack(group: Ints, name: Ints, is_end: Mask) -> Pairs:
    """Pair starts and ends by a stack per group: an end closes the innermost open start of its name.

    Where the records of a group are complete this is two sorts. Where some are missing, an end leaves open what was
    started inside of what it closes, and an end of a name that is not open is unmatched.

    Args:
        group: integers [n] >= 0, the stack (a thread) of each record; records of one group in the order of time.
        name: integers [n], what is started or ended.
        is_end: bool [n].

    Example:
        >>> pairs = pair_stack(np.zeros(4, int), np.array([1, 2, 2, 1]), np.array([False, False, True, True]))
        >>> pairs.start.tolist(), pairs.end.tolist()
        ([0, 1], [3, 2])
    """
    partner = np.full(len(group), -1, np.int64)
    rows = asof_join.group([group], np.arange(len(group))).order
    # Most hold no other: take those that lie side by side, then those that held only such, and so on.
    for _ in range(_PEELS):
        rows = _peel(rows, group, is_end, name, partner)
    _match_levels(rows, group, is_end, name, partner)
    start = np.flatnonzero(~is_end)
    none = np.zeros(len(start), np.bool_)
    return Pairs(start, partner[start], np.flatnonzero(is_end & (partner < 0)), none, none)


def _peel(rows: Int64, group: Ints, is_end: Mask, name: Ints, partner: Int64) -> Int64:
    """Pair each start with the record of its group that follows, if that ends it; return the rest."""
    if len(rows) < 2:
        return rows
    ends, of, names = is_end[rows], group[rows], name[rows]
    pair = np.flatnonzero(~ends[:-1] & ends[1:] & (of[:-1] == of[1:]) & (names[:-1] == names[1:]))
    partner[rows[pair]], partner[rows[pair + 1]] = rows[pair + 1], rows[pair]
    left = np.ones(len(rows), np.bool_)
    left[pair] = left[pair + 1] = False
    return rows[left]


def _match_levels(rows: Int64, group: Ints, is_end: Mask, name: Ints, partner: Int64) -> None:
    """Pair the records at ``rows``, sorted by group and time: on each level of a complete group they alternate."""
    if not len(rows):
        return
    ends, of = is_end[rows], group[rows]
    first = np.ones(len(rows), np.bool_)
    first[1:] = of[1:] != of[:-1]
    step = np.where(ends, -1, 1)
    depth = np.cumsum(step)
    origin = np.maximum.accumulate(np.where(first, np.arange(len(rows)), 0))
    # How many are open around each one: the same number at its start and at its end.
    level = depth - (depth - step)[origin] - ~ends
    levels = asof_join.group([of, np.maximum(level, 0)], np.arange(len(rows)))
    starts = ~ends[levels.order]
    here = np.flatnonzero(~levels.first[1:] & starts[:-1] & ~starts[1:])
    start, end = rows[levels.order[here]], rows[levels.order[here + 1]]
    partner[start], partner[end] = end, start
    broken = np.zeros(int(of.max()) + 1, np.bool_)
    broken[of[level < 0]] = True
    broken[group[start[name[start] != name[end]]]] = True
    broken[of[ends & (partner[rows] < 0)]] = True
    if broken.any():
        mine = rows[broken[of]]
        partner[mine] = -1
        _match_broken(mine, group, is_end, name, partner)


def _match_broken(rows: Int64, group: Ints, is_end: Mask, name: Ints, partner: Int64) -> None:
    """Pair the records of groups where some are missing; linear, as each is opened and closed once."""
    stack: list[tuple[int, int]] = []
    open_names: dict[int, int] = {}
    last = -1
    for row, of, ends, ended in zip(
        rows.tolist(), group[rows].tolist(), is_end[rows].tolist(), name[rows].tolist(), strict=True
    ):
        if of != last:
            stack, open_names, last = [], {}, of
        if not ends:
            stack.append((row, ended))
            open_names[ended] = open_names.get(ended, 0) + 1
        elif open_names.get(ended, 0):
            while True:
                start, started = stack.pop()
                open_names[started] -= 1
                if started == ended:
                    partner[start], partner[row] = row, start
                    break
