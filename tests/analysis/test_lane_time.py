"""Busy, idle and unknown: they add up, and agree with counting one unit of time after another."""

import numpy as np
import pytest
from hypothesis import given

from analysis import oracles
from effort import TRACES
from lanescope import testing
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.occupancy import lanes
from lanescope.analysis.track_tree import Tree
from lanescope.trace import Column, Table, TimeBase, TraceBuilder


@given(testing.traces(**TRACES))
def test_time_is_split_as_by_hand(trace):
    testing.assert_consistent(trace)
    table = lanes(AnalysisCache(trace))
    assert sorted(table["track_id"]) == [row["id"] for row in trace.tracks.rows() if row["kind"] == "lane"]
    first, last = oracles.window(trace)
    unit = trace.time.time_unit
    for row in table.rows():
        busy, idle, unknown, window = (row[f"{name}_{unit}"] for name in ("busy", "idle", "unknown", "window"))
        assert window == last - first
        assert busy + idle + unknown == window
        assert {"busy": busy, "idle": idle, "unknown": unknown} == oracles.split(trace, row["track_id"])
        mine = [slice_ for slice_ in trace.slices.rows() if slice_["track_id"] == row["track_id"]]
        assert row["slices"] == len(mine)
        assert row["unfinished"] == sum(slice_["dur"] is None for slice_ in mine)
        assert row["lane"] == oracles.path(trace, row["track_id"])


def _lane(builder, name="lane", **options):
    return builder.track(name, kind="lane", role="core", **options)


def _split(builder):
    rows = lanes(AnalysisCache(builder.finish())).rows()
    return [(row["busy_ns"], row["idle_ns"], row["unknown_ns"]) for row in rows]


def test_a_lane_without_coverage_counts_as_recorded_between_its_rows():
    builder = TraceBuilder(TimeBase())
    early, late = _lane(builder, "early"), _lane(builder, "late")
    builder.append("slices", track_id=[early, early, late], ts=[0, 30, 90], dur=[10, 10, 10], name="x")
    assert _split(builder) == [(20, 20, 60), (10, 0, 90)]


def test_coverage_of_a_group_holds_for_the_lanes_beneath():
    builder = TraceBuilder(TimeBase())
    device = builder.track("device", kind="group", role="device")
    _lane(builder, "in", parent=device)
    _lane(builder, "out")
    builder.append("coverage", track_id=device, ts=0, dur=50)
    assert _split(builder) == [(0, 50, 0), (0, 0, 50)]


def test_a_gap_is_unknown_even_within_a_slice():
    builder = TraceBuilder(TimeBase())
    lane = _lane(builder)
    builder.append("slices", track_id=lane, ts=0, dur=100, name="x")
    builder.append("gaps", track_id=lane, ts=40, dur=20, cause="overrun")
    assert _split(builder) == [(80, 0, 20)]


def test_what_follows_an_open_slice_is_never_idle():
    builder = TraceBuilder(TimeBase())
    lane = _lane(builder)
    builder.append("slices", track_id=lane, ts=0, dur=None, last_known_ts=10, name="x")
    builder.append("slices", track_id=lane, ts=40, dur=10, name="x")
    builder.append("coverage", track_id=lane, ts=0, dur=60)
    assert _split(builder) == [(20, 10, 30)]


def test_a_trace_of_nothing_has_no_window():
    builder = TraceBuilder(TimeBase())
    _lane(builder)
    assert _split(builder) == [(0, 0, 0)]
    assert len(lanes(AnalysisCache(TraceBuilder(TimeBase()).finish()))) == 0


def test_the_table_carries_the_unit_of_the_trace():
    table = lanes(AnalysisCache(TraceBuilder(TimeBase(time_unit="cycles")).finish()))
    assert table.spec.column("busy_cycles").unit == "cycles"


# --- the tree of tracks -----------------------------------------------------------------------------------------------


def test_tracks_are_drawn_depth_first_by_sort_key_then_age():
    builder = TraceBuilder(TimeBase())
    top = builder.track("top", kind="group", role="device", sort_key=5)
    late = _lane(builder, "late", parent=top, sort_key=9)
    soon = _lane(builder, "soon", parent=top, sort_key=1)
    also = _lane(builder, "also", parent=top, sort_key=1)
    first = _lane(builder, "first", sort_key=0)
    tree = Tree(builder.finish().tracks)
    assert tree.order.tolist() == [first, top, soon, also, late]
    assert tree.lanes.tolist() == [first, soon, also, late]
    assert tree.path(late) == "top/late"
    assert tree.depths == [0, 1, 1, 1, 0]
    assert (tree.device(late), tree.device(first)) == (top, first)
    assert tree.path(99) == ""


@pytest.mark.parametrize(
    ("parents", "cut"),
    [([1, 0], [-1, 0]), ([0], [-1]), ([2, None, 1], [2, -1, 1]), ([7], [-1]), ([1, 2, 1], [1, -1, 1])],
)
def test_rings_and_unknown_parents_are_cut(parents, cut):
    builder = TraceBuilder(TimeBase())
    for _ in parents:
        builder.track("x", kind="group", role="device")
    tracks = builder.finish().tracks
    columns = {name: tracks.column(name) for name in tracks.spec.names}
    known = np.array([parent is not None for parent in parents])
    columns["parent_id"] = Column.array(np.array([parent or 0 for parent in parents]), valid=known)
    tree = Tree(Table(tracks.spec, columns))
    assert tree.parents == cut
    assert sorted(tree.order) == list(range(len(parents)))
