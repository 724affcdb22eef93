"""LS503: clocks that stand, or tick too coarsely."""

import numpy as np
import pytest

from lanescope.analysis import check
from plausibility.kernels import found, kernel, on


def at_once(start, end):
    return np.full(len(start), start[0]), np.full(len(start), start[0])


def in_steps(step):
    return lambda start, end: (start // step * step, end // step * step)


def test_a_clock_that_ticks_has_no_finding():
    assert found(kernel(), "LS503") == []


def test_a_lane_with_one_timestamp():
    trace = kernel(change=on(4, at_once), nesting="nested")
    assert found(trace, "LS503") == [("warning", "gpu 0/lane 4", list(range(160, 200)))]
    [finding] = check.run(trace, select=["LS503"])
    assert finding.detail == "all 80 timestamps of the lane are the same: its clock stopped"


def test_all_lanes_with_one_timestamp_are_one_error():
    trace = kernel(change=lambda number, start, end: at_once(start, end), nesting="nested")
    [finding] = check.run(trace, select=["LS503"])
    assert (finding.severity, finding.count, finding.location.track_id) == ("error", 240, None)
    assert finding.impact.total == 0


@pytest.mark.parametrize(("slices", "expected"), [(3, []), (4, ["warning"])])
def test_few_slices_at_one_time_are_chance(slices, expected):
    trace = kernel(slices=40, change=on(0, lambda s, e: at_once(s[:slices], e[:slices])), nesting="nested")
    assert [severity for severity, _, _ in found(trace, "LS503")] == expected


def test_a_clock_that_stands_for_a_while():
    def stand(start, end):
        start[10:30], end[10:30] = start[10], start[10]
        return start, end

    trace = kernel(change=on(2, stand), nesting="nested")
    assert found(trace, "LS503") == [("warning", "gpu 0/lane 2", list(range(90, 110)))]
    assert check.run(trace, select=["LS503"])[0].location.ts is not None
    # Where all lanes have such runs, work without length is usual.
    assert found(kernel(change=lambda number, s, e: stand(s, e), nesting="nested"), "LS503") == []


def test_a_lane_in_steps_stands_out_among_its_siblings():
    trace = kernel(change=on(1, in_steps(8000)), nesting="nested")
    [(severity, lane, rows)] = found(trace, "LS503")
    assert (severity, lane, rows) == ("warning", "gpu 0/lane 1", list(range(40, 80)))
    assert " timestamps take " in check.run(trace, select=["LS503"])[0].detail


def test_all_lanes_in_steps_are_warned_of_and_folded():
    trace = kernel(lanes=12, change=lambda number, s, e: in_steps(8000)(s, e), nesting="nested")
    [finding] = check.run(trace, select=["LS503"])
    assert (finding.severity, finding.location.track, finding.count) == ("warning", "gpu 0", 480)


def test_host_threads_may_be_coarse():
    trace = kernel(change=on(1, in_steps(8000)), nesting="nested", role="host_thread")
    assert found(trace, "LS503") == []


def test_thresholds():
    trace = kernel(change=on(0, lambda s, e: at_once(s[:3], e[:3])), nesting="nested")
    limits = check.Thresholds()
    fewer = check.Thresholds(standing_clock=type(limits.standing_clock)(min_slices=3))
    assert [finding.code for finding in check.run(trace, select=["LS503"], thresholds=fewer)] == ["LS503"]
