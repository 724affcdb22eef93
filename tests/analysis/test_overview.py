"""Overviews against one moment at a time: the time of each name on each lane and in each bucket is exact."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanescope
from lanescope import TimeBase, TraceBuilder, UsageError
from lanescope.analysis import lane_parts, lanes_on_disk
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.lanes_on_disk import LanesOnDisk
from lanescope.analysis.overview import overview
from lanescope.analysis.phases import phases
from lanescope.testing import strategies


def made(trace, buckets):
    return overview(AnalysisCache(trace), buckets)


def rows(trace):
    return list(trace.slices.rows("track_id", "ts", "dur", "name"))


def by_lane(trace):
    """Time of regions that work or wait by lane and name, as phases tell it."""
    found = Counter()
    for row in phases(AnalysisCache(trace), "lane").rows():
        if row["state"] in ("busy", "waiting"):
            found[row["track_id"], row["name"]] += row["total"]
    return found


def summed(trace):
    found = Counter()
    for row in rows(trace):
        found[row["track_id"], row["name"]] += row["dur"]
    return found


def innermost(trace, lane, now):
    """Name of the region of a lane that nests, at a moment."""
    runs = [row for row in trace.slices.rows() if row["track_id"] == lane and row["ts"] <= now < row["ts"] + row["dur"]]
    return min(runs, key=lambda row: (-row["ts"], row["dur"], -row["id"]))["name"] if runs else None


@given(strategies.traces(), st.integers(1, 40))
def test_times_by_lane_and_name_are_those_of_the_trace(trace, buckets):
    found = made(trace, buckets)
    assert summed(found.trace) == by_lane(trace)
    last = {}
    for row in rows(found.trace):
        assert row["dur"] > 0
        assert row["ts"] >= last.get(row["track_id"], row["ts"])
        last[row["track_id"]] = row["ts"] + row["dur"]
    ids = found.trace.details["overview_parts"]
    assert ids.values("slice_id").tolist() == found.trace.slices.values("id").tolist()
    assert int(ids.values("stretches").sum()) == found.stretches


@given(strategies.valid_traces(max_slices=12, max_lanes=2), st.integers(1, 9))
def test_each_bucket_has_its_own_time(trace, buckets):
    """No time leaves its bucket: a plain look at each moment, lane by lane, without gaps and free lanes."""
    tracks = trace.tracks
    trace = lanescope.Trace(trace.time, {**trace.tables(), "gaps": trace.gaps.take(np.empty(0, np.int64))})
    found = made(trace, buckets)
    first, last = AnalysisCache(trace).time.window
    count = found.buckets
    edges = [first + at * (last - first) // count for at in range(count + 1)]
    drawn = rows(found.trace)
    for lane in range(len(tracks)):
        if tracks["nesting"][lane] == "free":
            continue
        for begin, end in pairwise(edges):
            wanted = Counter(name for now in range(begin, end) if (name := innermost(trace, lane, now)) is not None)
            there = Counter()
            for row in drawn:
                if row["track_id"] == lane:
                    there[row["name"]] += max(0, min(row["ts"] + row["dur"], end) - max(row["ts"], begin))
            assert +there == wanted


@given(strategies.traces(), st.integers(1, 40), st.sampled_from([1, 2, 5]), st.booleans())
def test_parts_of_lanes_on_disk_give_the_same(trace, buckets, most, is_on_disk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes_on_disk, "IN_MEMORY", 0 if is_on_disk else 1 << 62)
        patch.setattr(lane_parts, "MOST", most)
        patch.setattr(lane_parts, "PER_TRACK", 0)
        lanes = LanesOnDisk()
        lanes.add(trace)
        found = overview(lanes.result(), buckets)
    whole = made(trace, buckets)
    assert rows(found.trace) == rows(whole.trace)
    assert (found.buckets, found.width, found.stretches) == (whole.buckets, whole.width, whole.stretches)


def core(starts, lengths, names, **more):
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core 0", kind="lane", role="core", **more)
    builder.append("slices", track_id=lane, ts=np.array(starts), dur=np.array(lengths), name=names)
    return builder.finish()


def test_few_stretches_of_a_bucket_stay_where_they_were():
    starts, names = [0, 40, 80, 100, 130, 160, 190], ["a", "b", "c", "a", "b", "a", "b"]
    found = made(core(starts, [10] * 7, names), 2)
    assert [tuple(row.values())[1:] for row in rows(found.trace)] == [
        (0, 10, "a"), (40, 10, "b"), (80, 10, "c"), (100, 20, "a"), (120, 20, "b"),
    ]  # fmt: skip
    parts = found.trace.details["overview_parts"]
    assert parts.values("is_sum").tolist() == [False] * 3 + [True] * 2
    assert parts.values("stretches").tolist() == [1, 1, 1, 2, 2]
    assert found.trace.slices["quality"].tolist() == ["exact"] * 3 + ["estimated"] * 2


def test_a_long_stretch_is_one_slice_through_all_that_it_fills():
    starts, lengths = [0, 300, 302, 304, 306, 308], [300, 1, 1, 1, 1, 692]
    found = made(core(starts, lengths, ["a", "b", "c", "b", "c", "a"]), 100)
    assert [tuple(row.values())[1:] for row in rows(found.trace)] == [
        (0, 300, "a"), (300, 2, "b"), (302, 2, "c"), (304, 2, "a"), (310, 690, "a"),
    ]  # fmt: skip


def test_slices_do_not_grow_with_those_of_the_trace():
    count = 20_000
    trace = core(np.arange(count) * 10, np.full(count, 7), ["load", "mma"] * (count // 2))
    found = made(trace, 50)
    assert len(found.trace.slices) <= 50 * 2
    assert found.stretches == count
    assert summed(found.trace) == by_lane(trace)


def test_the_names_of_top_tracks_say_what_it_is():
    builder = TraceBuilder(TimeBase())
    device = builder.track("GPU", kind="group", role="device")
    lane = builder.track("sm 0", kind="lane", role="sm", parent=device)
    builder.append("slices", track_id=lane, ts=[0, 20], dur=[9, 9], name="a")
    trace = builder.finish()
    assert made(trace, 3).trace.tracks["name"].tolist() == ["GPU (overview, 3 buckets)", "sm 0"]
    assert trace.tracks["name"].tolist() == ["GPU", "sm 0"]


def test_only_the_selected_part_is_drawn():
    trace = core([0, 10, 20, 30], [10] * 4, ["a", "b", "a", "b"])
    found = overview(AnalysisCache(trace.window(name="a")).over_all_slices, 2)
    assert [tuple(row.values())[1:] for row in rows(found.trace)] == [(0, 10, "a"), (20, 10, "a")]


def test_an_empty_trace_and_no_buckets():
    found = made(TraceBuilder(TimeBase()).finish(), 7)
    assert (len(found.trace.slices), found.buckets, found.stretches) == (0, 1, 0)
    with pytest.raises(UsageError, match="invalid number of buckets -1"):
        made(core([0], [1], ["a"]), -1)
