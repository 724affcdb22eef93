"""The time of units, of every role and every family, agrees with a sweep over every moment; none of it is negative."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.sweep import NAMES, Sweep
from lanescope import devices
from lanescope.analysis import idle, lane_time, occupancy, overlap, region_stats
from lanescope.analysis.instances import ALL, LANE, PARENT, roles, units
from lanescope.analysis.lane_time import LaneTime
from lanescope.pipeline import session
from lanescope.trace import ColumnSpec, TableSpec, TimeBase, TraceBuilder

TIMES = st.integers(0, 25)
#: Which core each lane is; other lanes may stand beside them.
CORES = TableSpec(
    "test_cores",
    "lanes that are cores",
    (
        ColumnSpec("track_id", "int64", "the lane", references="tracks"),
        ColumnSpec("core", "int64", "its number", nullable=True),
    ),
    key="track_id",
)


@st.composite
def crowds(draw):
    """Return a trace in whose groups lanes of several roles and cores stand side by side, at any depth."""
    builder = TraceBuilder(TimeBase(), details=[CORES])
    found, parents = [], [None]
    for number in range(draw(st.integers(1, 3))):
        role = draw(st.sampled_from(["device", "block", "worker"]))
        parents.append(
            builder.track(f"{role} {number}", kind="group", role=role, parent=draw(st.sampled_from(parents)))
        )
    for number in range(draw(st.integers(1, 5))):
        lane = builder.track(
            f"lane {number}",
            kind="lane",
            role=draw(st.sampled_from(["core", "queue", "group"])),
            parent=draw(st.sampled_from(parents)),
            nesting=draw(st.sampled_from(["nested", "free"])),
        )
        found.append(lane)
        core = draw(st.one_of(st.none(), st.integers(0, 2)))
        if core is not None:
            builder.append("test_cores", track_id=lane, core=core, core_valid=np.array([draw(st.integers(0, 3)) > 0]))
    for _ in range(draw(st.integers(0, 10))):
        length = draw(st.one_of(st.none(), st.integers(0, 12), st.integers(0, 12)))
        begin = draw(TIMES)
        builder.append(
            "slices",
            track_id=draw(st.sampled_from(found)),
            ts=begin,
            dur=0 if length is None else length,
            dur_valid=np.array([length is not None]),
            last_known_ts=begin + draw(st.integers(0, 5)),
            name=draw(st.sampled_from(NAMES)),
        )
    anywhere = [*found, *(parent for parent in parents if parent is not None)]
    for _ in range(draw(st.integers(0, 2))):
        builder.append("gaps", track_id=draw(st.sampled_from(anywhere)), ts=draw(TIMES), dur=draw(TIMES), cause="hole")
    for _ in range(draw(st.integers(0, 2))):
        builder.append("coverage", track_id=draw(st.sampled_from(anywhere)), ts=draw(TIMES), dur=draw(TIMES))
    for _ in range(draw(st.integers(0, 2))):
        builder.append("instants", track_id=draw(st.sampled_from(found)), ts=draw(TIMES), name="x")
    return builder.finish()


def every_role(trace):
    return dict.fromkeys([*roles(trace), ALL, PARENT, LANE])


def judged(trace, role):
    """Compare the table of units of a role with the sweep, number by number."""
    of = units(LaneTime(trace), role).of.tolist()
    sweep = Sweep(trace, {n: None if unit < 0 else unit for n, unit in enumerate(of)}, whole=True)
    expected = sweep.units()
    rows = list(occupancy.utilization(trace, role).rows())
    assert {row["id"]: {name: row[name] for name in expected[row["id"]]} for row in rows} == expected
    unit = trace.time.time_unit
    for row in rows:
        parts = ("work", "stalled", "unknown", "empty")
        assert sum(row[f"{name}_{unit}"] for name in parts) == row[f"window_{unit}"]


def durations(trace, role):
    """Yield every duration that the analyses of regions print for a role: table, column, values."""
    time = LaneTime(trace)
    for table in (
        occupancy.utilization(trace, role, time=time),
        occupancy.residence(trace, role, time=time),
        occupancy.occupancy(trace, role, time=time),
        occupancy.occupancy_stats(trace, occupancy.occupancy(trace, role, time=time), time),
        overlap.overlap(trace, role, each=True, time=time),
        overlap.exposure(trace, role, time=time),
        idle.idle(trace, role, time=time),
        idle.causes(trace, role, time=time),
        region_stats.regions(trace, role, time=time),
        lane_time.lanes(trace, time),
    ):
        for column in table.spec.columns:
            if column.unit == trace.time.time_unit and not column.name.endswith("ts"):
                yield table.spec.name, column.name, table[column.name]


@given(crowds())
def test_units_of_any_role_are_what_a_sweep_finds(trace):
    for role in every_role(trace):
        judged(trace, role)
        assert [(table, name) for table, name, values in durations(trace, role) if (values < 0).any()] == []


#: Captures small enough to be swept, of each family: seeds and options of its simulator.
SMALL = {
    "aie": {"tiles": 3, "records": 40, "overruns": 1},
    "ascend": {
        "tasks": 14, "aic": 2, "aiv": 2, "threads": 2, "dummy": 0.3, "alloc": 0.2, "drop_aicore": 2, "drop_both": 1,
    },
    "cuda": {"blocks": 4, "tiles": 2, "sms": 2, "layout": "ls2", "unfinished": 1, "instants": True},
    "levelzero": {"ops": 12},
}  # fmt: skip


@pytest.mark.parametrize("seed", [3, 7])
@pytest.mark.parametrize("family", devices.builtin(), ids=lambda family: family.name)
def test_units_of_every_role_of_a_family_are_what_a_sweep_finds(tmp_path, family, seed):
    options = {option.name: option.default for option in family.sim_options} | SMALL[family.name]
    files = family.simulate(options, seed).files
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    trace = session.open(tmp_path / next(iter(files)))
    assert 20 < len(trace.slices) < 600  # enough to say something, and little enough to be swept
    for role in every_role(trace):
        judged(trace, role)
        assert [(table, name) for table, name, values in durations(trace, role) if (values < 0).any()] == []


def test_lanes_of_one_group_are_there_each_for_itself():
    builder = TraceBuilder(TimeBase())
    group = builder.track("queues", kind="group", role="device")
    early, late = (builder.track(name, kind="lane", role="queue", parent=group) for name in ("early", "late"))
    builder.append("slices", track_id=[early, late], ts=[0, 60], dur=[20, 40], name="mma")
    rows = list(occupancy.utilization(builder.finish(), "queue").rows())
    columns = ("unit", "groups", "first_ts", "last_ts", "resident_ns", "work_ns", "stalled_ns", "empty_ns", "tail_ns")
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
    assert [row["lanes"] for row in occupancy.utilization(trace, "core").rows()] == [1, 1, 2]
