"""A part of the timeline holds what shares time with it."""

import numpy as np

from lanescope.trace.streams import TracePart


def test_a_part_holds_what_shares_time_with_it():
    part = TracePart(10, 20)
    intervals = {
        (0, 10): False, (0, 11): True, (12, 15): True, (5, 30): True, (19, 25): True, (20, 25): False,
        (9, 9): False, (10, 10): True, (19, 19): True, (20, 20): False,
    }  # fmt: skip
    begin, end = np.array(list(intervals), np.int64).T
    assert part.holds(begin, end).tolist() == list(intervals.values())
