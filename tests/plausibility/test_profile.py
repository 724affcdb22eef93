"""The profile of a trace is what plain loops over its rows give, however the trace comes in batches."""

from math import gcd

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import TRACES, some
from lanescope import testing
from lanescope._native import core
from lanescope.analysis.plausibility.profiler import Profiler
from lanescope.analysis.plausibility.stamps import Stamps, _Thinned, outside
from lanescope.common.intervals import known_extents
from lanescope.trace import TimeBase, Trace, TraceBuilder
from passes import cut

ARRAYS = (
    *("count", "closed", "empty", "start", "end", "total", "hash", "instants", "first_instant", "last_instant"),
    *("is_ordered", "starts", "distinct", "run", "run_at", "gap", "gap_start", "gap_end", "shape", "device", "parent"),
    *("is_lane", "is_host", "is_free", "judged", "tick", "step", "repeated"),
)


def profile_of(batches):
    """The profile of batches, with the slices of all at hand."""
    profiler = Profiler()
    for batch in batches:
        profiler.add(batch)
    slices = Trace.concat(batches).slices
    return profiler.profile(np.arange(len(slices)), slices)


def same(found, expected):
    for name in ARRAYS:
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
    assert found.quantum == expected.quantum
    for part in ("pairs", "longest"):
        for name in vars(getattr(found, part)):
            mine, other = (getattr(getattr(one, part), name) for one in (found, expected))
            if name == "name":
                mine, other = ([one.names[code] for code in codes] for one, codes in ((found, mine), (expected, other)))
            assert np.array_equal(mine, other), (part, name)
    mine, other = found.stamps.sample(), expected.stamps.sample()
    assert all(np.array_equal(*columns) for columns in zip(mine, other, strict=True))
    assert (found.stamps.first, found.stamps.last) == (expected.stamps.first, expected.stamps.last)


def by_lane(trace):
    """(start, end, is closed, name, row) of the slices of each track, in order of time."""
    tracks, begin, end = (column.tolist() for column in known_extents(trace.slices))
    names, closed = trace.slices.values("name").tolist(), trace.slices.valid("dur").tolist()
    lanes = {track: [] for track in range(len(trace.tracks))}
    for row, track in enumerate(tracks):
        if track in lanes:
            lanes[track].append((begin[row], end[row], closed[row], names[row], row))
    return {track: sorted(rows, key=lambda one: (one[0], -one[1], one[4])) for track, rows in lanes.items()}


@given(testing.traces(**TRACES))
def test_the_sums_are_those_of_plain_loops(trace):
    profile = profile_of([trace])
    stamps = [ts for track, ts in zip(*instants(trace), strict=True) if 0 <= track < len(trace.tracks)]
    for track, rows in by_lane(trace).items():
        closed = [one for one in rows if one[2]]
        stamps += [one[0] for one in rows] + [one[1] for one in closed]
        assert (profile.count[track], profile.closed[track]) == (len(rows), len(closed))
        assert profile.empty[track] == sum(one[0] == one[1] for one in closed)
        assert profile.start[track] == min((one[0] for one in rows), default=0)
        assert profile.end[track] == max((one[1] for one in rows), default=0)
        assert profile.total[track] == sum(one[1] - one[0] for one in closed)
        assert profile.starts[track] == len({one[0] for one in rows})
        standing = [one[0] for one in closed if one[0] == one[1]]
        assert profile.run[track] == max((standing.count(ts) for ts in standing), default=0)
        if not len(trace.gaps):
            assert profile.gap[track] == largest_gap(rows)
    assert profile.quantum == gcd(*(ts - stamps[0] for ts in stamps)) if stamps else profile.quantum == 0


@given(
    st.integers(-(2**62), 2**62),
    st.one_of(st.sampled_from([1, 2, 3, 20, 3 << 20, 2**40, 2**62]), st.integers(1, 2**50)),
    st.data(),
)
def test_the_quantum_divides_all_distances_of_any_size(first, tick, data):
    most = 2**62 // tick
    stamps = [first + tick * data.draw(st.integers(-most, most)) for _ in range(data.draw(st.integers(1, 8)))]
    stamps += data.draw(st.lists(st.integers(first - 99, first + 99), max_size=1))
    sweep = core.TraceProfile()
    sweep.add_lanes(np.zeros(1, np.int32))
    sweep.instants(np.zeros(len(stamps), np.int64), np.array(stamps, np.int64))
    assert sweep.step == gcd(*(ts - stamps[0] for ts in stamps))


def instants(trace):
    return trace.instants.values("track_id").tolist(), trace.instants.values("ts").tolist()


def largest_gap(rows):
    reach, largest = None, 0
    for begin, end, *_ in rows:
        if reach is not None:
            largest = max(largest, begin - reach)
        reach = end if reach is None else max(reach, end)
    return largest


@given(testing.traces(**TRACES))
def test_pairs_longest_and_repeated_are_those_of_plain_loops(trace):
    profile = profile_of([trace])
    sums, repeated = {}, set()
    for track, rows in by_lane(trace).items():
        seen = set()
        for begin, end, closed, name, row in sorted(rows, key=lambda one: (one[0], -one[1], one[4])):
            count, total = sums.get((track, name), (0, 0))
            sums[track, name] = count + 1, total + (end - begin if closed else 0)
            if closed and end - begin >= 8:
                if (begin, end, name) in seen:
                    repeated.add(row)
                seen.add((begin, end, name))
    pairs = profile.pairs
    names = [profile.names[code] for code in pairs.name]
    keys = zip(pairs.track.tolist(), names, strict=True)
    found = dict(zip(keys, zip(pairs.count.tolist(), pairs.total.tolist(), strict=True), strict=True))
    assert found == sums
    assert set(profile.repeated[:, 0].tolist()) == repeated
    longest, durations = profile.longest, trace.slices.values("dur")
    assert longest.length.tolist() == [max(int(durations[row]), 0) for row in longest.row.tolist()]


@given(testing.traces(**TRACES), st.lists(st.floats(0, 1), max_size=4))
def test_any_division_into_batches_gives_the_same_profile(trace, cuts):
    same(profile_of(cut(trace, cuts)), profile_of([trace]))


def lane_of(ts, dur, **more):
    builder = TraceBuilder(TimeBase())
    lane = builder.track("lane", kind="lane", role="core", **more)
    builder.append("slices", track_id=lane, ts=ts, dur=dur, name="a")
    return builder


def test_known_gaps_are_no_inner_gaps():
    builder = lane_of([0, 500, 900], [100, 100, 10])
    same(profile_of([builder.batch()]), profile_of([lane_of([0, 500, 900], [100, 100, 10]).finish()]))
    builder = lane_of([0, 500, 900], [100, 100, 10])
    builder.append("gaps", track_id=0, ts=120, dur=300, cause="overrun")
    profile = profile_of([builder.finish()])
    assert (profile.gap[0], profile.gap_start[0], profile.gap_end[0]) == (300, 600, 900)


def test_lanes_out_of_order_are_swept_again_sorted():
    order = np.array([3, 0, 2, 1, 4])
    ts, dur = np.array([0, 20, 20, 90, 91]), np.array([10, 0, 0, 0, 9])
    found, expected = (profile_of([lane_of(ts[by], dur[by]).finish()]) for by in (order, np.arange(5)))
    assert (bool(found.is_ordered[0]), bool(expected.is_ordered[0])) == (False, True)
    for name in ("starts", "run", "run_at", "gap", "gap_start", "gap_end", "hash", "start", "end"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    without = Profiler()
    without.add(lane_of(ts[order], dur[order]).finish())
    assert not without.profile().judged[0]


def test_step_is_a_tick_of_the_clock_of_the_lane():
    builder = TraceBuilder(TimeBase())
    slow = builder.clock(name="slow", device="", frequency=10_000_000)
    builder.clock(name="fast", device="", frequency=2_000_000_000)
    group = builder.track("core", kind="group", role="core", clock_id=slow)
    lane = builder.track("lane", kind="lane", role="core", parent=group)
    builder.append("slices", track_id=lane, ts=[0, 1000], dur=[100, 7], name="a")
    profile = profile_of([builder.finish()])
    assert (profile.quantum, profile.step[lane], profile.tick[lane]) == (1, 100, 100.0)


def test_siblings_differ_in_numbers_only():
    builder = TraceBuilder(TimeBase())
    paths = {}
    for device in ("gpu 0", "gpu 1"):
        top = builder.track(device, kind="group", role="device")
        for block in ("block 3", "block 0x1f"):
            parent = builder.track(block, kind="group", role="block", parent=top)
            for lane in ("load", "store"):
                paths[device, block, lane] = builder.track(lane, kind="lane", role="warp", parent=parent)
    profile = profile_of([builder.finish()])
    shape = {path: int(profile.shape[track]) for path, track in paths.items()}
    assert len({*shape.values()}) == 4
    assert shape["gpu 0", "block 3", "load"] == shape["gpu 0", "block 0x1f", "load"]
    assert {profile.shapes[one] for one in shape.values()} == {"gpu #/block #/load", "gpu #/block #/store"}


@given(st.lists(st.integers(0, 40), max_size=12), st.integers(1, 32))
def test_a_thinned_table_is_every_nth_row(lengths, most):
    thinned, rows = _Thinned(most), np.arange(sum(lengths))
    at = 0
    for length in lengths:
        part = rows[at : at + length]
        thinned.add(lane_of(part, np.zeros(length, np.int64)).finish().slices)
        at += length
    points = thinned.points(is_instant=False)
    assert points.row.tolist() == 2 * rows[:: thinned.every].tolist()
    assert points.time.tolist() == 2 * rows[:: thinned.every].tolist()
    assert len(rows[:: thinned.every]) <= most or thinned.every == 1


@given(testing.traces(**TRACES), st.lists(st.floats(0, 1), max_size=4))
def test_all_timestamps_are_counted(trace, cuts):
    stamps = Stamps()
    for part in cut(trace, cuts):
        stamps.add(part.slices, part.instants)
    _, begins, ends = known_extents(trace.slices)
    times = [*begins.tolist(), *ends[trace.slices.valid("dur")].tolist(), *trace.instants.values("ts").tolist()]
    assert stamps.count == len(times)
    assert not times or (stamps.first, stamps.last) == (min(times), max(times))


@given(testing.traces(**TRACES), st.integers(-50, 200), st.integers(0, 200))
@settings(max_examples=some(50))
def test_points_outside_a_window_and_those_inside_are_all(trace, low, length):
    stamps, window = Stamps(), (low, low + length)
    stamps.add(trace.slices, trace.instants)
    everything = stamps.sample()
    apart = [outside(window, np.arange(len(t)), t, is_instant=k) for t, k in ((trace.slices, 0), (trace.instants, 1))]
    is_far = (everything.time < window[0]) | (everything.time > window[1])
    expected = everything.take(is_far)
    assert sum(len(part.time) for part in apart) == len(expected.time)
    found = sorted(zip(*(np.concatenate(c).tolist() for c in zip(*apart, strict=True)), strict=True))
    assert found == sorted(zip(*(column.tolist() for column in expected), strict=True))


def test_a_profile_needs_a_batch():
    with pytest.raises(ValueError, match="no batch"):
        Profiler().profile()
