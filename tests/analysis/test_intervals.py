"""Arithmetic on intervals agrees with a bitmap of every moment, whatever the order of the input."""

from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from lanescope.analysis.check.totals import near
from lanescope.common.intervals import (
    Intervals,
    clash,
    complement,
    concurrent_keys,
    covered_length,
    depth,
    falls_in,
    highest_before,
    hulls,
    intersect,
    join,
    order,
    overlapping,
    partially_overlapping,
    split,
    subtract,
    sums,
    total_length,
    union,
)

BIG = (1 << 62) - 100
TIMES = st.integers(-20, 20) | st.integers(BIG, BIG + 20) | st.integers(-BIG, -BIG + 20)


@st.composite
def some_intervals(draw, groups=3, times=TIMES):
    rows = draw(st.lists(st.tuples(st.integers(0, groups), times, st.integers(0, 12)), max_size=14))
    columns = np.array(rows, np.int64).reshape(-1, 3)
    return Intervals(columns[:, 0], columns[:, 1], columns[:, 1] + columns[:, 2])


#: Intervals that often touch, nest and share ends.
NEAR = some_intervals(1, st.integers(0, 9) | st.integers(BIG, BIG + 9))


def _rows(intervals):
    return list(zip(*(column.tolist() for column in intervals), strict=True))


@given(some_intervals())
def test_order_is_by_group_begin_and_longest_first_and_stable(intervals):
    rows = _rows(intervals)
    assert order(*intervals).tolist() == sorted(
        range(len(rows)), key=lambda i: (rows[i][0], rows[i][1], -rows[i][2], i)
    )
    assert order(intervals.group, intervals.begin).tolist() == sorted(range(len(rows)), key=lambda i: (*rows[i][:2], i))


def test_order_of_groups_that_are_too_far_apart_for_a_table():
    group = np.array([1 << 40, 0, 1 << 40, 0])
    assert order(group, np.array([5, 7, 4, 6])).tolist() == [3, 1, 2, 0]
    assert order(group, np.array([5, 7, 5, 6]), np.array([9, 9, 10, 9])).tolist() == [3, 1, 2, 0]


@given(NEAR, st.lists(st.integers(0, 2), max_size=3))
def test_intervals_clash_where_some_overlap_as_their_group_does_not_allow(intervals, promises):
    rows = _rows(intervals)
    pairs = [
        (promises[one[0]], one, other)
        for one in rows
        for other in rows
        if one[0] == other[0] < len(promises) and one[1] < one[2] and other[1] < other[2]
    ]
    crosses = any(promise == 2 and one[1] < other[1] < one[2] < other[2] for promise, one, other in pairs)
    counts = Counter(row for row in rows if row[1] < row[2])
    shares = any(
        promise == 1 and (one != other or counts[one] > 1) and one[1] < other[2] and other[1] < one[2]
        for promise, one, other in pairs
    )
    assert clash(intervals, order(*intervals), np.array(promises, np.uint8)) == (crosses or shares)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=9), st.lists(st.integers(0, 9), max_size=4))
def test_values_fall_from_a_row_to_the_next_of_its_group(rows, cuts):
    group, value = np.array(rows, np.int64).reshape(-1, 2).T
    by_group = np.argsort(group, kind="stable")
    falls = any(group[a] == group[b] and value[b] < value[a] for a, b in pairwise(by_group.tolist()))
    assert falls_in(group, np.split(value, sorted(min(cut, len(rows)) for cut in cuts)), by_group) == falls


@given(some_intervals())
def test_union_covers_the_same_time_without_touching(intervals):
    def units(rows):
        return {(group, time) for group, begin, end in rows for time in range(begin, end)}

    found = _rows(union(intervals))
    assert units(found) == units(_rows(intervals))
    assert sum(end - begin for _, begin, end in found) == len(units(found))
    assert found == sorted(found)
    assert all(one[0] < other[0] or one[2] < other[1] for one, other in pairwise(found))


@given(st.lists(st.tuples(st.integers(0, 3), TIMES), max_size=12).map(sorted))
def test_highest_before_looks_at_its_own_group_only(rows):
    rows = sorted(rows, key=lambda row: row[0])
    columns = np.array(rows, np.int64).reshape(-1, 2)
    highest, first = highest_before(columns[:, 0], columns[:, 1])
    for index, (group, _) in enumerate(rows):
        before = [value for other, value in rows[:index] if other == group]
        assert first[index] == (not before)
        if before:
            assert highest[index] == max(before)


@given(some_intervals())
def test_sharing_and_crossing_equal_trying_every_pair(intervals):
    intervals = intervals.take(intervals.end > intervals.begin)
    intervals = intervals.take(order(*intervals))
    rows = _rows(intervals)
    shares, crosses = set(), set()
    for i, (group, a, b) in enumerate(rows):
        for j, (other, c, d) in enumerate(rows):
            if i != j and group == other:
                if max(a, c) < min(b, d):
                    shares.add(i)
                if a < c < b < d or c < a < d < b:
                    crosses.add(i)
    assert set(np.flatnonzero(overlapping(intervals)).tolist()) == shares
    assert set(np.flatnonzero(partially_overlapping(intervals)).tolist()) == crosses


@given(some_intervals())
def test_outside_is_the_rest(intervals):
    intervals = Intervals(intervals.group, np.clip(intervals.begin, 0, 30), np.clip(intervals.end, 0, 30))
    inside = union(intervals)
    rest = complement(inside, 5, 0, 30)
    both = sorted(row for row in _rows(inside) + _rows(rest) if row[1] < row[2])
    for group in range(5):
        edges = [row[1:] for row in both if row[0] == group]
        assert edges[0][0] == 0
        assert edges[-1][1] == 30
        assert all(one[1] == other[0] for one, other in pairwise(edges))


def moments(intervals):
    """(group, moment) -> how many intervals run then."""
    return Counter((group, time) for group, begin, end in _rows(intervals) for time in range(begin, end))


def is_canonical(intervals):
    """Whether intervals are sorted, not empty, disjoint and do not touch."""
    rows = _rows(intervals)
    return all(begin < end for _, begin, end in rows) and all(
        one[0] < other[0] or (one[0] == other[0] and one[2] < other[1]) for one, other in pairwise(rows)
    )


@settings(max_examples=some(400))
@given(NEAR | some_intervals(), NEAR | some_intervals())
def test_what_two_cover_is_what_a_bitmap_says(one, other):
    both, rest = intersect(one, other), subtract(one, other)
    assert moments(both) == Counter(moments(one).keys() & moments(other).keys())
    assert moments(rest) == Counter(moments(one).keys() - moments(other).keys())
    assert is_canonical(both)
    assert is_canonical(rest)
    assert (covered_length(one, 4) == total_length(both, 4) + total_length(rest, 4)).all()
    assert (total_length(rest, 4) >= 0).all()
    assert _rows(intersect(other, one)) == _rows(both)
    together = covered_length(join(one, other), 4)
    assert (together == covered_length(one, 4) + covered_length(other, 4) - total_length(both, 4)).all()


@settings(max_examples=some(400))
@given(some_intervals(2, st.integers(-20, 20)) | NEAR, some_intervals(2, st.integers(-20, 20)) | NEAR)
def test_near_are_those_that_meet_another_and_where_times_are_too_far_apart_to_tell_all(one, other):
    other = union(other)
    meets = [
        any(mine == group and begin < last and first < end for mine, first, last in _rows(other))
        for group, begin, end in _rows(one)
    ]
    found = near(one, other).tolist()
    times = [abs(time) for part in (one, other) for time in [*part.begin.tolist(), *part.end.tolist()]]
    assert found == meets or (max(times) > 1 << 60 and all(found))


@settings(max_examples=some(400))
@given(NEAR, NEAR)
def test_parts_of_intervals_keep_their_row_and_their_time(one, other):
    by = union(other)
    found = split(one, by)
    inside, outside = Counter(), Counter()
    for parts, rows, time in ((found.inside, found.inside_row, inside), (found.outside, found.outside_row, outside)):
        assert (parts.end > parts.begin).all()
        assert (parts.group == one.group[rows]).all()
        assert rows.tolist() == sorted(rows.tolist())
        for row, (_, begin, end) in zip(rows.tolist(), _rows(parts), strict=True):
            time.update((row, moment) for moment in range(begin, end))
    covered = moments(by).keys()
    expected = {(row, t): (group, t) for row, (group, a, b) in enumerate(_rows(one)) for t in range(a, b)}
    assert inside == Counter(key for key, moment in expected.items() if moment in covered)
    assert outside == Counter(key for key, moment in expected.items() if moment not in covered)


@settings(max_examples=some(400))
@given(NEAR | some_intervals())
def test_depth_counts_what_runs_at_each_moment(intervals):
    stretches, number = depth(intervals)
    found = Counter()
    for (group, begin, end), active in zip(_rows(stretches), number.tolist(), strict=True):
        assert begin < end
        assert active > 0
        found.update({(group, time): active for time in range(begin, end)})
    assert found == moments(intervals)
    length = (stretches.end - stretches.begin) * number
    sums = np.zeros(4, np.int64)
    np.add.at(sums, stretches.group, length)
    assert (sums == total_length(intervals.take(order(*intervals)), 4)).all()
    ends = _rows(stretches)
    rows = list(zip(ends, number.tolist(), strict=True))
    assert all(a[:1] != b[:1] or a[2] != b[1] or m != n for (a, m), (b, n) in pairwise(rows))


@settings(max_examples=some(200))
@given(some_intervals(groups=7))
def test_concurrent_keys_are_those_that_cover_each_moment(intervals):
    keys = 4
    running = {}
    for number, begin, end in _rows(intervals):
        for time in range(begin, end):
            running.setdefault((number // keys, time), set()).add(number % keys)
    stretches, found = concurrent_keys(intervals, keys)
    rows = _rows(stretches)
    assert rows == sorted(rows)
    masks = dict(zip(rows, found.tolist(), strict=True))
    covered = [((group, time), mask) for (group, begin, end), mask in masks.items() for time in range(begin, end)]
    assert len(covered) == len(running)
    assert all(mask == sum(1 << key for key in running[moment]) for moment, mask in covered)


@given(some_intervals())
def test_hulls_and_sums_are_those_of_the_rows_of_each_group(intervals):
    begin, end = hulls(intervals, 5)
    total = sums(intervals.group, intervals.end - intervals.begin, 5)
    rows = _rows(intervals)
    for group in range(5):
        mine = [row[1:] for row in rows if row[0] == group]
        assert total[group] == sum(last - first for first, last in mine)
        if mine:
            assert (begin[group], end[group]) == (min(row[0] for row in mine), max(row[1] for row in mine))
        else:
            assert begin[group] > end[group]
