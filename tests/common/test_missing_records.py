"""Gaps in sequence numbers against sets of Python's integers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from lanescope.common.missing_records import drop_gaps, sequence_gaps
from lanescope.trace import StatSpec, TimeBase, TraceBuilder

NUMBERS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60)), unique=True, max_size=40)


def by_hand(numbers):
    """Return {(group, number before, number after): missing}."""
    found = {}
    for group in {group for group, _ in numbers}:
        mine = sorted(number for of, number in numbers if of == group)
        found |= {(group, low, high): high - low - 1 for low, high in pairwise(mine) if high - low > 1}
    return found


def as_numbers(gaps, numbers):
    rows = zip(gaps.before.tolist(), gaps.after.tolist(), gaps.count.tolist(), strict=True)
    return {(numbers[before][0], numbers[before][1], numbers[after][1]): count for before, after, count in rows}


@settings(max_examples=some(600))
@given(NUMBERS, st.integers(0, 300), st.sampled_from([{"bits": 8}, {"bits": 16}, {"period": 251}]), st.data())
def test_gaps_of_shuffled_records_that_have_times(numbers, start, width, data):
    """Counters that start anywhere, so that they wrap anywhere."""
    numbers = data.draw(st.permutations(numbers))
    group = np.array([group for group, _ in numbers], np.int64)
    number = np.array([number for _, number in numbers], np.int64)
    period = width.get("period") or 1 << width["bits"]
    gaps = sequence_gaps((number + start) % period, **width, group=group, order=number * 10 + 3)
    assert as_numbers(gaps, numbers) == by_hand(numbers)
    assert gaps.total == sum(by_hand(numbers).values())


@given(st.lists(st.integers(0, 60), unique=True, max_size=40), st.integers(0, 255), st.integers(0, 3))
def test_gaps_in_record_order_with_some_disorder(numbers, start, apart):
    """Each record at most so many places from where its number belongs."""
    numbers = sorted(numbers, key=lambda number: (number // (apart + 1), -number))
    gaps = sequence_gaps((np.array(numbers, np.int64) + start) % 256, bits=8)
    listed = [(0, number) for number in numbers]
    assert as_numbers(gaps, listed) == by_hand(listed)


def test_numbers_that_occur_twice_leave_no_gap():
    assert len(sequence_gaps(np.array([3, 3, 4, 4, 5]), bits=8)) == 0


@given(st.lists(st.integers(0, 60), unique=True, min_size=1, max_size=40).map(sorted), st.data())
def test_rows_with_a_gap_before_them(numbers, data):
    gaps = sequence_gaps(np.array(numbers, np.int64), bits=8)
    rows = data.draw(st.lists(st.sampled_from(range(len(numbers))), unique=True).map(sorted))
    found = gaps.between(np.array(rows, np.int64))
    for place, row in enumerate(rows):
        since = 0 if place == 0 else rows[place - 1]
        assert found[place] == (numbers[row] - numbers[since] > row - since)


def test_gaps_on_every_lane_that_they_may_concern():
    lost = StatSpec("lamp_dropped", "data_loss", "dropped")
    builder = TraceBuilder(TimeBase(), stats=(lost,))
    builder.input(capture="a", path="a", size=80, sha256="", family="lamp", format="lamp")
    lanes = np.array([builder.track(name, kind="lane", role="lamp") for name in "ab"])
    gaps = sequence_gaps(np.array([9, 10, 13, 14, 16]), bits=8)
    gaps.add_gaps(builder, lanes, np.arange(5) * 100, np.arange(5) * 16, cause="dropped", stat=lost.name)
    builder.add_accounting(input_id=0, layer=0, unit="byte", unit_bytes=1, total=80, decoded=80)
    trace = builder.finish()
    columns = ("track_id", "ts", "dur", "lost_count", "first_offset")
    assert [tuple(row[name] for name in columns) for row in trace.gaps.rows()] == [
        (0, 100, 100, 2, 32),
        (1, 100, 100, 2, 32),
        (0, 300, 100, 1, 64),
        (1, 300, 100, 1, 64),
    ]
    (stat,) = trace.stats.rows()
    assert (stat["name"], stat["count"], stat["first_offset"], stat["first_ts"]) == ("lamp_dropped", 3, 32, 100)


@given(
    dropped=st.lists(st.integers(0, 200), min_size=1, max_size=30), start=st.integers(0, 255), is_narrow=st.booleans()
)
@settings(max_examples=some(50))
def test_drop_gaps_are_what_was_dropped_between_two_records(dropped, start, is_narrow):
    total = start + np.cumsum(dropped)
    gaps = drop_gaps(total & 255, bits=8) if is_narrow else drop_gaps(total % 251, period=251)
    expected = [(row - 1, row, count) for row, count in enumerate(dropped) if row and count]
    assert list(zip(gaps.before.tolist(), gaps.after.tolist(), gaps.count.tolist(), strict=True)) == expected
    assert gaps.total == sum(dropped[1:])


def test_no_records_drop_nothing():
    assert len(drop_gaps(np.empty(0, np.int64), bits=8)) == 0
