"""Time beyond the attested window is not recorded; one bad timestamp makes no other lane idle."""

import numpy as np
import pytest

from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.idle import idle
from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.occupancy import lanes, utilization
from lanescope.analysis.partition import BUSY, IDLE
from lanescope.analysis.plausibility.attested import attested, beside
from lanescope.analysis.track_tree import Tree
from lanescope.common.intervals import Intervals
from plausibility import captures
from plausibility.columns import Columns
from plausibility.kernels import kernel, on
from plausibility.lies import LIES

#: Those of which the idle time of other lanes must know nothing, and how much of it a stray end may hide or add.
TOLD = (
    "one end > 120 spans off",
    "rest of a lane 2^32 ticks on",
    "one record 30 to 1e6 spans away",
    "7 ends on several",
)
TOLERANCE = 0.01


def idle_shares(trace):
    """Idle time of each lane as a share of what is known of it."""
    states = AnalysisCache(trace).lane_states
    known = states[:, IDLE] + states[:, BUSY]
    return np.divide(states[:, IDLE], known, out=np.zeros(len(known)), where=known > 0)


@pytest.mark.parametrize("family", ["aie", "cuda", "ascend", "levelzero"])
@pytest.mark.parametrize("told", TOLD)
def test_a_lie_makes_no_other_lane_idle(family, told):
    [lie] = [lie for lie in LIES if lie.name.startswith(told)]
    columns = Columns.of(captures.simulated(family, 3))
    damaged = lie.make(columns, np.random.default_rng(1))
    trace = damaged.to_trace()
    rows = LaneTime(trace).attested.rows
    assert len(rows)
    others = np.ones(len(trace.tracks), np.bool_)
    others[trace.slices.values("track_id")[rows]] = False
    before, after = idle_shares(columns.to_trace()), idle_shares(trace)
    assert np.abs(before - after)[others].max() < TOLERANCE


def late(start, end):
    end[-1] += 10**9
    return start, end


def test_the_window_is_the_hull_of_what_is_not_suspect():
    trace = kernel(change=on(3, late))
    found = attested(trace, Tree(trace.tracks))
    slices = trace.slices
    ends = slices.values("ts") + slices.values("dur")
    assert found.rows.tolist() == [159]
    assert found.window == (int(slices.values("ts").min()), int(np.delete(ends, 159).max()))
    sound = kernel()
    assert attested(sound, Tree(sound.tracks)).window is None


def test_busy_idle_and_unknown_still_add_up():
    for row in lanes(AnalysisCache(kernel(change=on(3, late)))).rows():
        assert row["busy_ns"] + row["idle_ns"] + row["unknown_ns"] == row["window_ns"]
        if row["lane"] != "gpu 0/lane 3":
            assert row["unknown_ns"] > 0.99 * 10**9


def test_gaps_next_to_a_suspect_slice_are_unknown():
    trace = kernel(change=on(3, late))
    shared, sound = AnalysisCache(trace), AnalysisCache(kernel())
    lane = trace.slices.values("track_id")[159]
    start = trace.slices.values("ts")
    gap = int(start[159] - (start[158] + trace.slices.values("dur")[158]))
    assert sound.lane_states[lane, IDLE] - shared.lane_states[lane, IDLE] == gap
    table = idle(shared)
    assert (table.values("ts") + table.values("dur") <= shared.attested[1]).all()


def test_instances_are_unknown_beyond_it():
    rows = {row["instance"]: row for row in utilization(AnalysisCache(kernel(change=on(3, late))), "core").rows()}
    for name, row in rows.items():
        assert row["busy_ns"] + row["stalled_ns"] + row["unknown_ns"] + row["vacant_ns"] == row["window_ns"]
        if name != "lane 3":
            assert row["vacant_ns"] < 10**6
            assert row["share"] > 0.3


def test_time_next_to_slices():
    covered = Intervals(
        *(np.array(column) for column in zip((1, 10, 20), (1, 30, 40), (1, 50, 60), (2, 0, 5), strict=True))
    )
    suspects = Intervals(np.array([1, 1]), np.array([32, 45]), np.array([40, 45]))
    found = beside(suspects, covered, (0, 100))
    assert list(zip(*(column.tolist() for column in found), strict=True)) == [(1, 20, 30), (1, 40, 50)]
    last = beside(Intervals(*(np.array([n]) for n in (1, 50, 60))), covered, (0, 100))
    assert list(zip(*(column.tolist() for column in last), strict=True)) == [(1, 40, 50), (1, 60, 100)]
    nothing = Intervals(*(np.empty(0, np.int64) for _ in range(3)))
    assert len(beside(nothing, covered, (0, 100)).group) == 0
