"""Arithmetic on half-open intervals of many groups (lanes).

Everything here sorts at most once and is vectorised; nothing depends on how the intervals lie.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.distinct import distinct
from lanescope.declaration import frozen_class, replace
from lanescope.trace import Table
from lanescope.trace.column import Array, Mask

Ints = npt.NDArray[np.int64]
INT64_MAX = (1 << 63) - 1


class Intervals(NamedTuple):
    """Intervals [begin, end) in groups; int64 [n] each."""

    group: Ints
    begin: Ints
    end: Ints

    def take(self, rows: Array) -> Intervals:
        """Return the intervals at ``rows`` (indices or a mask)."""
        return Intervals(self.group[rows], self.begin[rows], self.end[rows])


_NO_INTS = np.empty(0, np.int64)


def _ints(values: Array) -> Ints:
    """Return values as native functions take them."""
    return np.ascontiguousarray(values, np.int64)


def known_extents(slices: Table) -> Intervals:
    """Return the time that each slice is known to have run, by lane.

    Up to its end; an open slice up to ``last_known_ts``, or not at all. Never negative, never beyond 63 bits.
    """
    ts = _ints(slices.values("ts"))
    end = np.empty(len(ts), np.int64)
    core.lanes_known_ends(ts, *slices.nullable("dur"), *slices.nullable("last_known_ts"), end)
    return Intervals(slices.values("track_id"), ts, end)


def order(group: Ints, begin: Ints, end: Ints | None = None) -> Ints:
    """Return the indices that sort by group, then begin, then end from the longest, then row.

    Args:
        group: [n] any integers.
        begin: [n].
        end: [n]; None: equal begins stay in row order.
    """
    found = np.empty(len(group), np.int64)
    if core.lanes_order(_ints(group), _ints(begin), _NO_INTS if end is None else _ints(end), found):
        return found
    # Groups that are too far apart for a table.
    keys = (begin, group) if end is None else (-end, begin, group)
    return np.lexsort(keys).astype(np.int64, copy=False)


def order_within(group: Ints, value: Ints) -> Ints:
    """Return the indices that sort by group, then value; equal ones in any order, which is faster than ``order``."""
    key = pack_sort_key(group, value)
    return np.lexsort((value, group)) if key is None else np.argsort(key, kind="stable")


def pack_sort_key(group: Ints, value: Ints) -> Ints | None:
    """Return one int64 [n] that sorts as (group, value); None when it would not fit."""
    if not len(group):
        return np.empty(0, np.int64)
    low, high = int(value.min()), int(value.max())
    first, last = int(group.min()), int(group.max())
    span = high - low + 1
    if (last - first + 1) * span <= INT64_MAX:
        return (group - first) * span + (value - low)
    return None


def falls_in(group: Ints, pieces: Iterable[Ints], rows: Ints) -> bool:
    """Return whether a value, of all pieces, falls from one of ``rows`` (int64 [m], sorted by group) to the next."""
    return core.lanes_fall(_ints(group), [_ints(piece) for piece in pieces], rows)


def group_starts(group: npt.NDArray[Any]) -> Mask:
    """Return bool [n], True where a group of the sorted ``group`` begins."""
    found = np.ones(len(group), np.bool_)
    np.not_equal(group[1:], group[:-1], out=found[1:])
    return found


def bounds(group: Ints) -> list[int]:
    """Return where the groups of the sorted ``group`` begin, and its length at the end."""
    return [*np.flatnonzero(group_starts(group)).tolist(), len(group)]


def highest_before(group: Ints, value: Ints) -> tuple[Ints, Mask]:
    """Return the largest value of the rows before each row within its group.

    Args:
        group: [n] sorted.
        value: [n].

    Returns:
        int64 [n], meaningless where the second, bool [n], says that no row comes before.
    """
    first = group_starts(group)
    found = np.empty(len(value), np.int64)
    if not len(value):
        return found, first
    lift: Ints = np.cumsum(first, dtype=np.int64)
    lift -= 1
    low, high = int(value.min()), int(value.max())
    span = high - low + 1
    if (int(lift[-1]) + 1) * span <= INT64_MAX:
        # Lifting each group above the one before it lets one pass serve all groups. Done in place: arrays of this size
        # cost more to make than to fill.
        lift *= span
        lift -= low
        found[0] = 0
        np.add(value[:-1], lift[:-1], out=found[1:])
        np.maximum.accumulate(found[1:], out=found[1:])
        found -= lift
    else:
        for begin, end in pairwise(bounds(group)):
            found[begin + 1 : end] = np.maximum.accumulate(value[begin : end - 1])
    return found, first


def union(intervals: Intervals) -> Intervals:
    """Return the time covered by the intervals of each group: disjoint, not touching, sorted."""
    return merged(intervals, order(*intervals))


def merged(intervals: Intervals, rows: Ints) -> Intervals:
    """Return what ``union`` does of intervals that ``rows`` (int64 [n], all of them) sorts by group and begin."""
    group, begin, end = map(_ints, intervals)
    out = [np.empty(len(rows), np.int64) for _ in range(3)]
    count = core.lanes_covered(group, begin, end, rows, *out)
    return Intervals(*(column[:count] for column in out))


def clash(intervals: Intervals, rows: Ints, promises: npt.NDArray[np.uint8]) -> bool:
    """Return whether intervals share time in groups that promise they do not, or cross in groups that nest.

    Args:
        intervals: any intervals.
        rows: their ``order``, int64 [n].
        promises: uint8 [groups]: 1 no shared time, 2 none that cross, 0 nothing, as for all groups beyond.
    """
    group, begin, end = map(_ints, intervals)
    return core.lanes_clash(group, begin, end, rows, promises)


def join(*parts: Intervals) -> Intervals:
    """Return all intervals of ``parts``, one after another."""
    return Intervals(
        np.concatenate([part.group for part in parts]),
        np.concatenate([part.begin for part in parts]),
        np.concatenate([part.end for part in parts]),
    )


def complement(disjoint: Intervals, groups: int, low: int, high: int) -> Intervals:
    """Return the time between ``low`` and ``high`` that no interval covers: disjoint, sorted, none empty.

    Args:
        disjoint: sorted by group and begin, groups 0 to ``groups`` - 1, all within the bounds; they may touch.
        groups: how many groups there are; one without intervals is wholly outside.
        low: lower bound.
        high: upper bound.
    """
    group, rows = disjoint.group, np.arange(len(disjoint.group))
    count = np.bincount(group, minlength=groups)
    # The rest of a group with k intervals is before, between and after them: k + 1 stretches.
    begin, end = np.full(len(rows) + groups, low, np.int64), np.full(len(rows) + groups, high, np.int64)
    begin[rows + group + 1] = disjoint.end
    end[rows + group] = disjoint.begin
    rest = Intervals(np.repeat(np.arange(groups), count + 1), begin, end)
    return rest.take(rest.end > rest.begin)


@frozen_class
class Split:
    """Intervals cut where others start and end; none of the parts is empty.

    Attributes:
        inside: the parts that the others cover.
        inside_row: int64, the row of each in the intervals that were cut.
        outside: the parts that they do not cover.
        outside_row: int64, likewise.
    """

    inside: Intervals
    inside_row: Ints
    outside: Intervals
    outside_row: Ints


def split(intervals: Intervals, by: Intervals) -> Split:
    """Cut each interval into what ``by`` covers and what it does not; intervals may overlap each other.

    Args:
        intervals: any intervals; parts keep their order, those of one interval are in order of time.
        by: disjoint intervals, sorted by group and begin, none empty.

    Complexity:
        O(n log m); intervals of groups that ``by`` does not name cost nothing but the check.
    """
    every = np.flatnonzero(intervals.end > intervals.begin)
    if len(every) < len(intervals.group):
        found = split(intervals.take(every), by)
        return replace(found, inside_row=every[found.inside_row], outside_row=every[found.outside_row])
    nothing = Split(intervals.take(every[:0]), every[:0], intervals, every)
    if not len(by.group) or not len(every):
        return nothing
    named = by.group[group_starts(by.group)]
    at = np.minimum(np.searchsorted(named, intervals.group), len(named) - 1)
    asked = np.flatnonzero(named[at] == intervals.group)
    group, begin, end = intervals.take(asked)
    # The intervals of ``by`` from the first that ends after the begin to the last that begins before the end.
    first = np.maximum(last_before(by.group, by.begin, group, begin), np.searchsorted(by.group, group))
    first += by.end[first] <= begin
    last = last_before(by.group, by.begin, group, end, "left")
    is_cut = last >= first
    if not is_cut.any():
        return nothing
    asked, first, count = asked[is_cut], first[is_cut], (last - first + 1)[is_cut]
    cut = intervals.take(asked)
    # Of k intervals of ``by``, k parts are inside, and between and around them k + 1 parts outside.
    row = np.repeat(np.arange(len(asked)), count)
    other = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + first[row]
    inside = Intervals(
        cut.group[row], np.maximum(cut.begin[row], by.begin[other]), np.minimum(cut.end[row], by.end[other])
    )
    gap_row = np.repeat(np.arange(len(asked)), count + 1)
    starts, stops = np.empty(len(gap_row), np.int64), np.empty(len(gap_row), np.int64)
    is_first = group_starts(gap_row)
    is_last = np.append(is_first[1:], True)
    starts[is_first], starts[~is_first] = cut.begin, inside.end
    stops[is_last], stops[~is_last] = cut.end, inside.begin
    whole = np.ones(len(every), np.bool_)
    whole[asked] = False
    outside = join(intervals.take(whole), Intervals(cut.group[gap_row], starts, stops))
    outside_row = np.concatenate([every[whole], asked[gap_row]])
    filled = np.flatnonzero(outside.end > outside.begin)
    sort = filled[np.argsort(outside_row[filled], kind="stable")]
    return Split(inside, asked[row], outside.take(sort), outside_row[sort])


def intersect(one: Intervals, other: Intervals) -> Intervals:
    """Return the time that both cover, by group: disjoint, not touching, sorted. Both may be any intervals."""
    return split(union(one), union(other)).inside


def subtract(one: Intervals, other: Intervals) -> Intervals:
    """Return the time that ``one`` covers and ``other`` does not, as ``intersect`` does."""
    return split(union(one), union(other)).outside


def depth(intervals: Intervals) -> tuple[Intervals, Ints]:
    """Return how many intervals of each group run at each moment.

    Returns:
        The stretches in which the number does not change and is not 0, by group and time; and the number of each,
        int64. The sum of length times number is the length of all intervals.
    """
    group, begin, end = intervals.take(intervals.end > intervals.begin)
    at, of = np.concatenate([begin, end]), np.tile(group, 2)
    sort = order_within(of, at)
    running = np.cumsum(np.repeat(np.array([1, -1]), len(group))[sort])
    at, of = at[sort], of[sort]
    # Of several changes at one moment only what they lead to counts; a group ends at 0, so none reaches the next one.
    last = np.ones(len(at), np.bool_)
    last[:-1] = (at[1:] != at[:-1]) | (of[1:] != of[:-1])
    at, of, running = at[last], of[last], running[last]
    changed = np.ones(len(at), np.bool_)
    changed[1:] = (running[1:] != running[:-1]) | (of[1:] != of[:-1])
    at, of, running = at[changed], of[changed], running[changed]
    used = np.flatnonzero(running > 0)  # the last change of a group leads to 0: there always is a next one
    return Intervals(of[used], at[used], at[used + 1]), running[used]


def total_length(disjoint: Intervals, groups: int) -> Ints:
    """Return the length of all intervals of each group, int64 [groups]; exact, overlaps counted as often as they are.

    Args:
        disjoint: intervals in groups 0 to ``groups`` - 1, sorted by group.
        groups: how many groups there are.
    """
    total = np.zeros(len(disjoint.group) + 1, np.int64)
    np.cumsum(disjoint.end - disjoint.begin, out=total[1:])
    edges = np.searchsorted(disjoint.group, np.arange(groups + 1))
    return np.diff(total[edges])


def sums(group: Ints, value: Ints, groups: int) -> Ints:
    """Return the sum of the values of each group, int64 [groups]; exact, in any order."""
    found = np.zeros(groups, np.int64)
    core.lanes_sums(_ints(group), _ints(value), found)
    return found


def exact_sum(value: Ints) -> int:
    """Return the sum of numbers, which may take more than 64 bits."""
    return (int((value >> 32).sum()) << 32) + int((value & 0xFFFFFFFF).sum())


def hulls(intervals: Intervals, groups: int) -> tuple[Ints, Ints]:
    """Return the first begin and the last end of each group, int64 [groups] each.

    A group without intervals begins at the largest value of 63 bits and ends at the smallest.
    """
    begin, end = np.full(groups, INT64_MAX, np.int64), np.full(groups, -INT64_MAX, np.int64)
    np.minimum.at(begin, intervals.group, intervals.begin)
    np.maximum.at(end, intervals.group, intervals.end)
    return begin, end


def concurrent_keys(intervals: Intervals, keys: int) -> tuple[Intervals, npt.NDArray[np.uint64]]:
    """Return which keys of each group run at each moment.

    Args:
        intervals: any; ``group`` is ``keys`` times the group, plus the key. A key that several intervals of a group
            have at a time runs once.
        keys: how many keys there are, at most 64.

    Returns:
        The stretches in which a key runs and none starts or ends, by group and time; and the keys of each, uint64 with
        a bit for each.
    """
    disjoint = union(intervals)
    group, key = np.divmod(disjoint.group, keys)
    bit = np.left_shift(np.uint64(1), key.astype(np.uint64))
    at = np.concatenate([disjoint.begin, disjoint.end])
    group, bit = np.tile(group, 2), np.tile(bit, 2)
    sort = order_within(group, at)  # bits that turn at the same time may turn in any order
    at, group = at[sort], group[sort]
    # Intervals of one key do not touch, so each begin and each end turns its bit over; none is set after a group's end.
    running = np.bitwise_xor.accumulate(bit[sort])
    used = np.flatnonzero((running[:-1] != 0) & (at[1:] != at[:-1]))
    return Intervals(group[used], at[used], at[used + 1]), running[used]


def covered_length(intervals: Intervals, groups: int) -> Ints:
    """Return how much time the intervals of each group cover, int64 [groups]; time shared by several counts once."""
    return total_length(union(intervals), groups)


class RangeExtrema:
    """Largest or smallest value of any range of an array, for many ranges at once.

    Doubling windows, one level in memory at a time: O(n log n) time, O(n) memory, whatever the values.
    """

    def __init__(self, values: Ints) -> None:
        self._values = values

    def highest(self, first: Ints, last: Ints) -> Ints:
        """Return the largest of ``values[first:last]`` for each range, int64 [m]; the ranges are not empty."""
        found = np.empty(len(first), np.int64)
        level = np.frexp((last - first).astype(np.float64))[1] - 1  # floor(log2(length)), exact below 2**53
        window = self._values
        for step in range(int(level.max(initial=-1)) + 1):
            if step:
                half = 1 << (step - 1)
                window = np.maximum(window[:-half], window[half:])
            mine = np.flatnonzero(level == step)
            if len(mine):
                found[mine] = np.maximum(window[first[mine]], window[last[mine] - (1 << step)])
        return found


def overlapping(sorted_intervals: Intervals) -> Mask:
    """Return bool [n]: which intervals share time with another of their group.

    Args:
        sorted_intervals: in the order of ``order``, none empty.
    """
    group, begin, end = sorted_intervals
    reach, first = highest_before(group, end)
    late = ~first & (begin < reach)
    early = np.zeros(len(group), np.bool_)
    early[:-1] = ~first[1:] & (begin[1:] < end[:-1])
    return late | early


def partially_overlapping(sorted_intervals: Intervals) -> Mask:
    """Return bool [n]: which intervals overlap another of their group without one holding the other.

    An interval crosses a later one when something that begins inside it reaches beyond it; by mirroring time it
    crosses an earlier one when something that ends inside it began before it.

    Args:
        sorted_intervals: in the order of ``order``, none empty.
    """
    found = np.zeros(len(sorted_intervals.group), np.bool_)
    # Only what shares time can cross; on a sound trace with little nesting that leaves little to do.
    rows = np.flatnonzero(overlapping(sorted_intervals))
    if len(rows):
        group, begin, end = sorted_intervals.take(rows)
        mirrored = order(group, -end, -begin)
        found[rows] = _overreached(group, begin, end)
        found[rows[mirrored]] |= _overreached(group[mirrored], -end[mirrored], -begin[mirrored])
    return found


def _overreached(group: Ints, begin: Ints, end: Ints) -> Mask:
    """Return which of the sorted intervals hold the begin, but not the end, of another of their group."""
    first, last = _inside(group, begin, end)
    found = np.zeros(len(group), np.bool_)
    some = np.flatnonzero(last > first)
    if len(some):
        found[some] = RangeExtrema(end).highest(first[some], last[some]) > end[some]
    return found


def _inside(group: Ints, begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return for each sorted interval the range of rows that begin after it begins and before it ends."""
    rows = np.arange(len(group))
    return positions(group, begin, rows, begin, "right"), positions(group, begin, rows, end, "left")


def positions(group: Ints, value: Ints, rows: Ints, wanted: Ints, side: Literal["left", "right"]) -> Ints:
    """Return where each wanted value would stand among the values of a row's group.

    Args:
        group: [n] sorted.
        value: [n], sorted within each group.
        rows: [m], whose groups to look in.
        wanted: [m].
        side: before (``left``) or behind (``right``) equal values.

    Returns:
        int64 [m], indices into ``value``; where all values of the group come before, where the next group begins.
    """
    if not len(rows):
        return np.empty(0, np.int64)
    numbers = np.cumsum(group_starts(group)) - 1
    low, high = min(int(value.min()), int(wanted.min())), max(int(value.max()), int(wanted.max()))
    span = high - low + 1
    if (int(numbers[-1]) + 1) * span <= INT64_MAX:
        return np.searchsorted(numbers * span + (value - low), numbers[rows] * span + (wanted - low), side)
    found = np.empty(len(rows), np.int64)
    starts = np.array(bounds(group))
    for number in distinct(numbers[rows]).tolist():
        mine = np.flatnonzero(numbers[rows] == number)
        first, last = starts[number : number + 2]
        found[mine] = first + np.searchsorted(value[first:last], wanted[mine], side)
    return found


def _first_rows(group: Ints, wanted: Ints) -> Ints:
    """Return where each wanted group begins, or would, in a sorted column that is not empty; int64 [m]."""
    low, count = int(group[0]), int(group[-1]) - int(group[0]) + 2
    if count > len(wanted):
        return np.searchsorted(group, wanted)
    return np.searchsorted(group, np.arange(low, low + count))[np.clip(wanted - low, 0, count - 1)]


def last_before(
    group: Ints, value: Ints, wanted_group: Ints, wanted: Ints, side: Literal["left", "right"] = "right"
) -> Ints:
    """Return the last row of each wanted group whose value does not exceed the wanted one.

    Args:
        group: [n] sorted.
        value: [n], sorted within each group.
        wanted_group: [m].
        wanted: [m].
        side: ``left`` looks for values below the wanted one only.

    Returns:
        int64 [m], row; -1 where the group has none.
    """
    found = np.full(len(wanted), -1, np.int64)
    if not len(group):
        return found
    first = _first_rows(group, wanted_group)
    there = np.flatnonzero(group[np.minimum(first, len(group) - 1)] == wanted_group)
    at = positions(group, value, first[there], wanted[there], side) - 1
    found[there] = np.where(at >= first[there], at, -1)
    return found
