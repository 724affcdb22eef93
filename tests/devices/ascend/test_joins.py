"""Native joins between lists of a capture, against the same by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from lanescope._native import core

SMALL = st.integers(0, 5)


def int64(values):
    return np.array(list(values), np.int64)


@given(st.lists(st.tuples(SMALL, SMALL)), st.booleans())
@settings(max_examples=some(300))
def test_extremes(rows, largest):
    best, row = core.ascend_extremes(int64(r[0] for r in rows), int64(r[1] for r in rows), 6, largest)
    for task in range(6):
        mine = [(value, -n if largest else n) for n, (number, value) in enumerate(rows) if number == task]
        expected = (max if largest else min)(mine, default=None)
        found = (int(best[task]), int(row[task]))
        assert found == ((0, -1) if expected is None else (expected[0], abs(expected[1])))


@given(st.lists(st.tuples(SMALL, st.integers(-20, 20)), max_size=40), st.lists(st.tuples(SMALL, st.integers(-22, 22))))
@settings(max_examples=some(500))
def test_last_of_lane(rows, wanted):
    rows = sorted(rows)
    found = core.ascend_last_of_lane(
        int64(r[0] for r in rows), int64(r[1] for r in rows), int64(w[0] for w in wanted), int64(w[1] for w in wanted)
    )
    assert found.tolist() == [
        max((n for n, (number, value) in enumerate(rows) if number == lane and value <= most), default=-1)
        for lane, most in wanted
    ]


@given(st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 3), st.integers(-1, 3)), max_size=40))
@settings(max_examples=some(500))
def test_first_of_pairs(rows):
    found = core.ascend_first_of_pairs(*(int64(r[column] for r in rows) for column in range(3)), 5)
    first = {}
    for n, (key, other, stamp) in enumerate(rows):
        if key >= 0 and other >= 0 and stamp > 0:
            first[key, other] = min(first.get((key, other), (stamp, n)), (stamp, n))
    assert found.tolist() == [first[pair][1] for pair in sorted(first)]


def test_places_that_do_not_exist_are_refused():
    one, none = int64([1]), int64([])
    for task in (one, int64([-1])):
        with pytest.raises(ValueError, match="no such task"):
            core.ascend_extremes(task, one, 1, True)
    with pytest.raises(ValueError, match="no such key"):
        core.ascend_first_of_pairs(one, one, one, 1)
    for function in (core.ascend_last_of_lane, core.ascend_first_of_pairs):
        with pytest.raises(ValueError, match="different lengths"):
            function(one, none, one, *((one,) if function is core.ascend_last_of_lane else (1,)))
