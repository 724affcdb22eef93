"""Every moment of every lane and instance has one state, that which a sweep over the moments finds."""

from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from analysis import oracles
from analysis.crowds import SCENARIOS, crowds, every_role, simulated
from analysis.sweep import Sweep
from effort import some
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.instances import combine, residency, units
from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.occupancy import lanes
from lanescope.analysis.partition import (
    BUSY,
    IDLE,
    LOST,
    UNRECORDED,
    VACANT,
    WAITING,
    by_state,
    partition,
)
from lanescope.trace import TimeBase, TraceBuilder


def assert_divides(parts, groups, window):
    """Every lane (or instance) is divided from the window's first moment to its last, without empty stretches."""
    first, last = window
    assert (by_state(parts, groups).sum(axis=1) == last - first).all()
    assert (by_state(parts, groups) >= 0).all()
    rows = list(zip(parts.lane.tolist(), parts.start.tolist(), parts.end.tolist(), strict=True))
    found = {lane: [row[1:] for row in mine] for lane, mine in groupby(rows, key=lambda row: row[0])}
    assert list(found) == (list(range(groups)) if last > first else [])
    for mine in found.values():
        assert mine[0][0] == first
        assert mine[-1][1] == last
        assert all(start < end for start, end in mine)
        assert all(one[1] == other[0] for one, other in pairwise(mine))


def judged(trace):
    """Compare the states of all lanes with those that a sweep finds, and their rows with what runs then."""
    cache = AnalysisCache(trace)
    time, parts = cache.time, cache.partition
    assert_divides(parts, len(time.tree), time.window)
    sweep = Sweep(trace, whole=True)
    expected = sweep.states()
    at = {lane: np.flatnonzero(parts.lane == lane) for lane in sweep.lanes}
    for (lane, t), state in expected.items():
        rows = at[lane]
        row = rows[np.searchsorted(parts.start[rows], t, "right") - 1]
        assert parts.state[row] == state
        running = [slice_["id"] for slice_ in sweep.known(lane, t)]
        if state in (BUSY, WAITING):
            assert trace.slices["id"][parts.row[row]] in running
        else:
            assert parts.row[row] == -1
    coarse = partition(time)
    assert_divides(coarse, len(time.tree), time.window)
    unit = trace.time.time_unit
    spent = by_state(coarse, len(time.tree))
    for row in lanes(cache).rows():
        mine = spent[row["track_id"]]
        expected_time = oracles.split(trace, row["track_id"]) if row[f"window_{unit}"] < 1000 else None
        found = {"busy": mine[BUSY], "idle": mine[IDLE], "unknown": mine[LOST] + mine[UNRECORDED]}
        assert found == {name: row[f"{name}_{unit}"] for name in found}
        assert expected_time in (None, found)
    for role in every_role(trace):
        instances = units(time, role)
        resident = residency(time, instances)
        assert_divides(combine(parts, instances, resident, time.window), len(instances), time.window)


@settings(max_examples=some(300))
@given(crowds())
def test_states_of_lanes_are_what_a_sweep_finds(trace):
    judged(trace)


@pytest.mark.parametrize("name", SCENARIOS)
def test_states_of_the_lanes_of_a_family_are_what_a_sweep_finds(tmp_path, name):
    judged(simulated(name, tmp_path))


def stretches(builder):
    """State, start, end and name of the stretches of the first lane."""
    trace = builder.finish()
    parts = AnalysisCache(trace).partition
    names = trace.slices["name"]
    return [
        (state, start, end, None if row < 0 else names[row])
        for lane, start, end, state, row in zip(*(column.tolist() for column in parts), strict=True)
        if lane == 0
    ]


def a_lane(**options):
    builder = TraceBuilder(TimeBase())
    builder.track("core 0", kind="lane", role="core", **options)
    return builder


def test_a_lane_goes_through_all_states():
    builder = a_lane()
    builder.append("slices", track_id=0, ts=[10, 20, 60], dur=[30, 10, 10], name=["tile", "wait_full", "mma"])
    builder.append("slices", track_id=0, ts=75, dur=None, last_known_ts=80, name="mma")
    builder.append("coverage", track_id=0, ts=5, dur=90)
    builder.append("gaps", track_id=0, ts=35, dur=10, cause="overrun")
    builder.append("instants", track_id=0, ts=0, name="boot")
    assert stretches(builder) == [
        (UNRECORDED, 0, 5, None),
        (IDLE, 5, 10, None),
        (BUSY, 10, 20, "tile"),
        (WAITING, 20, 30, "wait_full"),
        (BUSY, 30, 35, "tile"),
        (LOST, 35, 45, None),
        (IDLE, 45, 60, None),
        (BUSY, 60, 70, "mma"),
        (IDLE, 70, 75, None),
        (BUSY, 75, 80, "mma"),
        (LOST, 80, 95, None),
    ]


def test_a_gap_in_what_follows_an_unfinished_region_is_lost_once():
    builder = a_lane()
    builder.append("slices", track_id=0, ts=0, dur=None, last_known_ts=10, name="mma")
    builder.append("slices", track_id=0, ts=90, dur=10, name="mma")
    builder.append("gaps", track_id=0, ts=20, dur=10, cause="overrun")
    found = stretches(builder)
    assert found == [
        (BUSY, 0, 10, "mma"),
        (LOST, 10, 20, None),
        (LOST, 20, 30, None),
        (LOST, 30, 90, None),
        (BUSY, 90, 100, "mma"),
    ]


def test_a_wait_around_an_unfinished_region_is_not_known_to_wait():
    builder = a_lane()
    builder.append("slices", track_id=0, ts=0, dur=100, name="wait_full")
    builder.append("slices", track_id=0, ts=30, dur=None, last_known_ts=40, name="mma")
    assert stretches(builder) == [(WAITING, 0, 30, "wait_full"), (BUSY, 30, 40, "mma"), (LOST, 40, 100, None)]


def test_a_queue_does_not_wait_while_anything_on_it_works():
    builder = a_lane(nesting="free")
    builder.append("slices", track_id=0, ts=[0, 20, 30], dur=[50, 30, 30], name=["barrier", "gemm", "copy"])
    assert stretches(builder) == [
        (WAITING, 0, 20, "barrier"),
        (BUSY, 20, 50, "gemm"),
        (BUSY, 50, 60, "copy"),
    ]


def test_an_instance_is_what_the_most_telling_of_its_lanes_is():
    builder = TraceBuilder(TimeBase())
    block = builder.track("block", kind="group", role="block")
    a, b = (builder.track(name, kind="lane", role="group", parent=block) for name in "ab")
    builder.append("coverage", track_id=[a, b], ts=[10, 10], dur=[60, 60])
    builder.append("slices", track_id=[a, a, b], ts=[10, 20, 30], dur=[10, 30, 10], name=["mma", "wait", "mma"])
    builder.append("gaps", track_id=b, ts=15, dur=10, cause="overrun")
    builder.append("counters", track_id=builder.track("c", kind="counter", role="clock"), ts=[0, 100], value=[0, 0])
    time = LaneTime(builder.finish())
    cache = AnalysisCache(time.trace)
    found = units(time, "block")
    parts = combine(cache.partition, found, residency(time, found), time.window)
    assert list(zip(parts.state.tolist(), parts.start.tolist(), parts.end.tolist(), strict=True)) == [
        (VACANT, 0, 10),
        (BUSY, 10, 20),
        (LOST, 20, 25),
        (WAITING, 25, 30),
        (BUSY, 30, 40),
        (WAITING, 40, 50),
        (IDLE, 50, 70),
        (VACANT, 70, 100),
    ]
