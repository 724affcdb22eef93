"""The time of units, of every role and every family, agrees with a sweep over every moment; none of it is negative."""

import pytest
from hypothesis import given

from analysis.crowds import CORES, SCENARIOS, crowds, every_role, simulated
from analysis.sweep import Sweep
from lanescope.analysis import idle, idle_causes, occupancy, overlap, region_stats
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.instances import units
from lanescope.analysis.lane_time import LaneTime
from lanescope.trace import TimeBase, TraceBuilder


def judged(trace, role):
    """Compare the table of units of a role with the sweep, number by number."""
    of = units(LaneTime(trace), role).of.tolist()
    sweep = Sweep(trace, {n: None if unit < 0 else unit for n, unit in enumerate(of)}, whole=True)
    expected = sweep.units()
    rows = list(occupancy.utilization(AnalysisCache(trace), role).rows())
    assert {row["id"]: {name: row[name] for name in expected[row["id"]]} for row in rows} == expected
    unit = trace.time.time_unit
    labels = units(LaneTime(trace), role).labels
    pairs = {
        (labels.index(row["instance"]), row["region"], row["other_region"]): row[f"overlap_{trace.time.time_unit}"]
        for row in overlap.overlap(AnalysisCache(trace), role, each=True).rows()
    }
    assert pairs == sweep.overlaps()
    columns = [f"{name}_{trace.time.time_unit}" for name in ("total", "hidden", "unknown")]
    rows = overlap.exposure(AnalysisCache(trace), role).rows()
    exposed = {(row["kind"], row["region"]): [row[c] for c in columns] for row in rows}
    assert exposed == sweep.hidden()
    for row in rows:
        parts = ("busy", "stalled", "unknown", "vacant")
        assert sum(row[f"{name}_{unit}"] for name in parts) == row[f"window_{unit}"]


def durations(trace, role):
    """Yield every duration that the analyses of regions print for a role: table, column, values."""
    shared = AnalysisCache(trace)
    for table in (
        occupancy.utilization(shared, role),
        occupancy.residency_steps(shared, role),
        occupancy.occupancy(shared, role),
        occupancy.occupancy_stats(shared, occupancy.occupancy(shared, role)),
        overlap.overlap(shared, role, each=True),
        overlap.exposure(shared, role),
        idle.idle(shared, role),
        idle_causes.causes(shared, role),
        region_stats.regions(shared, role),
        occupancy.lanes(shared),
    ):
        for column in table.spec.columns:
            if column.unit == trace.time.time_unit and not column.name.endswith("ts"):
                yield table.spec.name, column.name, table[column.name]


@given(crowds())
def test_units_of_any_role_are_what_a_sweep_finds(trace):
    for role in every_role(trace):
        judged(trace, role)
        assert [(table, name) for table, name, values in durations(trace, role) if (values < 0).any()] == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_units_of_every_role_of_a_family_are_what_a_sweep_finds(tmp_path, name):
    trace = simulated(name, tmp_path)
    for role in every_role(trace):
        judged(trace, role)
        assert [(table, name) for table, name, values in durations(trace, role) if (values < 0).any()] == []


def test_lanes_of_one_group_are_there_each_for_itself():
    builder = TraceBuilder(TimeBase())
    group = builder.track("queues", kind="group", role="device")
    early, late = (builder.track(name, kind="lane", role="queue", parent=group) for name in ("early", "late"))
    builder.append("slices", track_id=[early, late], ts=[0, 60], dur=[20, 40], name="mma")
    rows = list(occupancy.utilization(AnalysisCache(builder.finish()), "queue").rows())
    columns = (
        "instance",
        "groups",
        "first_ts",
        "last_ts",
        "resident_ns",
        "busy_ns",
        "stalled_ns",
        "vacant_ns",
        "tail_ns",
    )
    assert [tuple(row[name] for name in columns) for row in rows] == [
        ("early", 1, 0, 20, 20, 20, 0, 80, 80),
        ("late", 1, 60, 100, 40, 40, 0, 60, 0),
    ]


def test_a_lane_without_a_number_beside_several_cores_is_none_of_them():
    builder = TraceBuilder(TimeBase(), details=[CORES])
    crowd, alone = (builder.track(name, kind="group", role="worker") for name in ("crowd", "alone"))
    one, two, barrier = (builder.track(n, kind="lane", role="x", parent=crowd) for n in ("one", "two", "barrier"))
    three, loads = (builder.track(n, kind="lane", role="x", parent=alone) for n in ("three", "loads"))
    builder.append("test_cores", track_id=[one, two, three], core=[0, 1, 2])
    builder.append("slices", track_id=[one, two, barrier, three, loads], ts=0, dur=10, name="mma")
    trace = builder.finish()
    of = units(LaneTime(trace), "core").of
    # One group tells where its other lane is; in the other one nothing does.
    assert of[[one, two, barrier, three, loads]].tolist() == [0, 1, -1, 2, 2]
    assert [row["lanes"] for row in occupancy.utilization(AnalysisCache(trace), "core").rows()] == [1, 1, 2]


def test_time_that_no_lane_of_a_resident_block_recorded_is_unknown():
    builder = TraceBuilder(TimeBase())
    block = builder.track("block 0", kind="group", role="block")
    a, b = (builder.track(name, kind="lane", role="group", parent=block) for name in "ab")
    # Without coverage a lane is recorded from its first row to its last: a until 40, b from 70 on.
    builder.append("slices", track_id=[a, a, b], ts=[0, 30, 70], dur=[20, 10, 30], name=["mma", "mma", "mma"])
    (row,) = occupancy.utilization(AnalysisCache(builder.finish()), "block").rows()
    columns = ("resident_ns", "busy_ns", "stalled_ns", "unknown_ns", "vacant_ns")
    assert [row[name] for name in columns] == [100, 60, 10, 30, 0]
