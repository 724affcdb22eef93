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


def test_what_was_left_out_of_a_lane_reaches_from_its_first_begin_to_its_last_end():
    part = TracePart(10, 20)
    assert [column.tolist() for column in part.hulls()] == [[], [], []]
    part.leave_out(*np.zeros((3, 0), np.int64))
    assert (part.rows, [column.tolist() for column in part.hulls()]) == (0, [[], [], []])
    part.leave_out(*np.array([[5, 0, 5], [30, 2, 24], [31, 3, 40]]))
    part.leave_out(*np.array([[5], [1], [2]]))
    assert part.rows == 4
    assert [column.tolist() for column in part.hulls()] == [[0, 5, 5], [2, 24, 1], [3, 40, 2]]
