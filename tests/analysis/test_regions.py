"""Overlap, occupancy, idle time and spread of regions agree with a sweep over every moment."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analysis import oracles
from analysis.sweep import NAMES, WAITS, Sweep, runs
from effort import TRACES
from lanescope import testing
from lanescope.analysis import idle, idle_causes, occupancy, overlap, region_stats, work_classes
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.instances import roles, units
from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.partition import UNRECORDED
from lanescope.errors import UsageError
from lanescope.trace import TimeBase, TraceBuilder

TIMES = st.integers(0, 25)


@st.composite
def pipelines(draw):
    """Return a trace of a few blocks whose lanes nest, cross, wait, lose time and send signals."""
    builder = TraceBuilder(TimeBase())
    found = []
    for block in range(draw(st.integers(1, 3))):
        parent = None
        if draw(st.integers(0, 4)):
            parent = builder.track(f"block {block}", kind="group", role="block")
        for group in range(draw(st.integers(1, 3))):
            name = f"group {block}.{group}" if parent is None else f"group {group}"
            found.append(
                builder.track(
                    name,
                    kind="lane",
                    role="group",
                    parent=parent,
                    nesting=draw(st.sampled_from(["nested", "nested", "nested", "free"])),
                )
            )
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
    for _ in range(draw(st.integers(0, 2))):
        builder.append("gaps", track_id=draw(st.sampled_from(found)), ts=draw(TIMES), dur=draw(TIMES), cause="overrun")
    for _ in range(draw(st.integers(0, 6))):
        builder.append(
            "flows",
            kind="signal",
            src_track_id=draw(st.sampled_from(found)),
            src_ts=draw(TIMES),
            dst_track_id=draw(st.sampled_from(found)),
            dst_ts=draw(TIMES),
        )
    return builder.finish()


def filled(counter):
    return {key: value for key, value in counter.items() if value}


@given(pipelines())
def test_overlap_is_what_a_sweep_finds(trace):
    sweep = Sweep(trace)
    expected = sweep.overlaps()
    table = overlap.overlap(AnalysisCache(trace), each=True)
    labels = units(LaneTime(trace), "parent").labels
    tracks = {oracles.path(trace, unit): unit for unit in sweep.unit.values()}
    unit_of = {label: tracks.get(label, next(t for p, t in tracks.items() if p.endswith(label))) for label in labels}
    found = {(unit_of[row["instance"]], row["region"], row["other_region"]): row for row in table.rows()}
    assert {key: row["overlap_ns"] for key, row in found.items()} == expected
    for (unit, one, _), row in found.items():
        assert row["region_ns"] == expected[unit, one, one]
        assert math.isclose(row["share"], row["overlap_ns"] / row["region_ns"])
    summed = Counter()
    for (_, one, other), time in expected.items():
        summed[one, other] += time
    rows = list(overlap.overlap(AnalysisCache(trace)).rows())
    assert filled({(row["region"], row["other_region"]): row["overlap_ns"] for row in rows}) == summed
    assert all(row["region_ns"] == summed[row["region"], row["region"]] for row in rows)
    hidden = list(overlap.exposure(AnalysisCache(trace)).rows())
    columns = ("total_ns", "hidden_ns", "unknown_ns")
    assert {(row["kind"], row["region"]): [row[name] for name in columns] for row in hidden} == sweep.hidden()
    assert all(row["total_ns"] == row["hidden_ns"] + row["exposed_ns"] + row["unknown_ns"] for row in hidden)


@given(pipelines())
def test_occupancy_is_what_a_sweep_finds(trace):
    sweep = Sweep(trace)
    found = Counter()
    rows = list(occupancy.occupancy(AnalysisCache(trace)).rows())
    for row in rows:
        assert row["active"] > 0
        for t in range(row["ts"], row["ts"] + row["dur"]):
            found[row["counted"], t] += row["active"]
    assert found == sweep.active()
    for one, two in pairwise(rows):  # a new row only where the number changes
        if one["counted"] == two["counted"] and one["ts"] + one["dur"] == two["ts"]:
            assert one["active"] != two["active"]


@given(pipelines())
def test_the_time_of_units_adds_up(trace):
    sweep = Sweep(trace)
    states = sweep.states()
    tracks = units(LaneTime(trace), "parent").of
    rows = list(occupancy.utilization(AnalysisCache(trace)).rows())
    first, last = oracles.window(trace)
    for row in rows:
        mine = [lane for lane in sweep.lanes if tracks[lane] == row["id"]]
        unit = sweep.unit[mine[0]]
        assert row["lanes"] == len(mine)
        parts = ("busy_ns", "stalled_ns", "unknown_ns", "vacant_ns")
        assert sum(row[name] for name in parts) == row["window_ns"] == last - first
        kinds = [{sweep.kind(name) for name in sweep.names(unit, t)} for t in sweep.ticks]
        for name in ("load", "compute", "store"):
            assert row[f"{name}_ns"] == sum(name in running for running in kinds)
        assert row["busy_ns"] == sum(bool(running - {"wait"}) for running in kinds)
        times = [t for s in sweep.slices if s["track_id"] in mine for t in oracles.extent(s)]
        assert row["resident_ns"] == (max(times) - min(times) if times else 0)
        blank = [t for t, running in zip(sweep.ticks, kinds, strict=True) if not running - {"wait"}]
        there = range(min(times), max(times)) if times else range(0)
        unrecorded = {t for t in there if all(states[lane, t] == UNRECORDED for lane in mine)}
        unknown = {t for t in blank if sweep.unknown[unit, t] or t in unrecorded}
        assert row["unknown_ns"] == len(unknown)
        assert row["stalled_ns"] == sum(t in there for t in blank if t not in unknown)
        after = range(max(times, default=first), last)
        assert row["tail_ns"] == sum(not sweep.unknown[unit, t] for t in after)
        assert (row["first_ts"], row["last_ts"]) == ((min(times), max(times)) if times else (None, None))
        assert row["groups"] == bool(times)


@given(pipelines())
def test_regions_spread_as_counted(trace):
    sweep = Sweep(trace)
    own = sweep.own()
    rows = {row["region"]: row for row in region_stats.regions(AnalysisCache(trace)).rows()}
    assert set(rows) == {row["name"] for row in sweep.slices}
    for name, row in rows.items():
        lengths = sorted(s["dur"] for s in sweep.slices if s["name"] == name and s["dur"] is not None)
        assert (row["count"], row["total_ns"]) == (len(lengths), sum(lengths))
        for part in region_stats.PERCENTILES:
            at_most = [length for length in lengths if sum(x <= length for x in lengths) * 100 >= part * len(lengths)]
            assert row[f"p{part}_ns"] == min(at_most, default=None)
        mine = {unit: time for (other, unit), time in own.items() if other == name}
        assert row["self_ns"] == sum(mine.values())
        assert row["instances"] == len(mine)
        if mine:
            assert math.isclose(row["imbalance"], max(mine.values()) / (sum(mine.values()) / len(mine)))
            ends = [
                max(t for (lane, t), here in sweep.doing.items() if sweep.unit[lane] == unit
                    and any(s["name"] == name for s in here))
                for unit in mine
            ]  # fmt: skip
            assert row["tail_ns"] == max(ends) - min(ends)
        else:
            assert row["imbalance"] is None
            assert row["tail_ns"] is None


def in_a_free_lane(*slices):
    """A lane where anything goes, with slices (name, ts, dur), beside one that runs all the time."""
    builder = TraceBuilder(TimeBase())
    lanes = [builder.track(name, kind="lane", role="group", nesting="free") for name in ("a", "b")]
    for name, ts, dur in slices:
        builder.append("slices", track_id=lanes[0], ts=ts, dur=dur, name=name)
    builder.append("slices", track_id=lanes[1], ts=0, dur=30, name="tile")
    return builder.finish()


# Two slices begin together where a gap ends.
@example(in_a_free_lane(("tile", 0, 0), ("tile", 1, 1), ("load", 1, 2)))
@given(pipelines())
def test_idle_stretches_are_what_a_sweep_finds(trace):
    sweep = Sweep(trace)
    rows = list(idle.idle(AnalysisCache(trace)).rows())
    idle_of = Counter()
    waiting = {}
    for row in rows:
        assert row["dur"] > 0
        span = (row["ts"], row["ts"] + row["dur"])
        if row["kind"] == "bubble":
            idle_of[row["track_id"]] += row["dur"]
            assert not any(sweep.doing[row["track_id"], t] for t in range(*span))
            assert row["name"] == between(sweep, row["track_id"], span)
        else:
            waiting.setdefault((row["track_id"], row["name"]), []).append(span)
    assert idle_of == filled({row["track_id"]: row["idle_ns"] for row in occupancy.lanes(AnalysisCache(trace)).rows()})
    expected = {}
    for (lane, number), moments in sweep.waiting().items():
        expected.setdefault((lane, sweep.slices[number]["name"]), []).extend(runs(moments))
    assert {key: sorted(spans) for key, spans in waiting.items()} == {k: sorted(v) for k, v in expected.items()}


def between(sweep, lane, span):
    """The name of a gap: what ended last before it, of several what began last; what begins first, the longest."""
    busy = [t for (other, t), rows in sweep.doing.items() if other == lane and rows]
    before = max((t for t in busy if t < span[0]), default=None)
    after = min((t for t in busy if t >= span[1]), default=None)

    def edge(row, t, step):
        """The first moment in a direction at which a row no longer runs."""
        while any(row["id"] == other["id"] for other in sweep.doing.get((lane, t), ())):
            t += step
        return t

    if before is not None:
        rows = sweep.doing[lane, before]
        _, _, left = max((edge(row, before, -1), number, row["name"]) for number, row in enumerate(rows))
    if after is not None:
        rows = sweep.doing[lane, after]
        _, _, right = min((-edge(row, after, 1), number, row["name"]) for number, row in enumerate(rows))
    if before is None:
        return f"before {right}" if after is not None else "nothing ran"
    return f"between {left} and {right}" if after is not None else f"after {left}"


@pytest.mark.parametrize(
    ("slices", "names"),
    [
        # `load` began first and ended last: it is what stood before the gap.
        ([("load", 0, 10), ("mma", 2, 1), ("store", 20, 10)], ["between load and store"]),
        ([("mma", 2, 1), ("store", 20, 10), ("load", 0, 10)], ["between load and store"]),
        # Of two that end together the one that began last, of two that begin together the longest.
        ([("mma", 5, 5), ("load", 0, 10), ("store", 20, 10)], ["between mma and store"]),
        ([("load", 0, 10), ("mma", 20, 9), ("store", 20, 10)], ["between load and store"]),
    ],
)
def test_a_gap_is_named_by_what_ended_last_and_began_first(slices, names):
    rows = idle.idle(AnalysisCache(in_a_free_lane(*slices))).rows()
    assert [row["name"] for row in rows if row["kind"] == "bubble"] == names


@given(pipelines())
def test_stretches_are_charged_to_those_they_wait_for(trace):
    flows = list(trace.flows.rows())
    rows = list(idle.idle(AnalysisCache(trace)).rows())
    for row in rows:
        begin, end = row["ts"], row["ts"] + row["dur"]
        if row["producer_track_id"] is None:
            assert row["blocked_ns"] is row["latency_ns"] is row["quality"] is None
        else:
            assert row["blocked_ns"] + row["latency_ns"] == row["dur"]
            assert min(row["blocked_ns"], row["latency_ns"]) >= 0
        inside = [f for f in flows if f["dst_track_id"] == row["track_id"] and begin < f["dst_ts"] <= end]
        others = [r for r in rows if r["track_id"] == row["track_id"] and r is not row]
        if any(r["ts"] < end and begin < r["ts"] + r["dur"] for r in others):
            continue  # waits that cross: which of them a flow ends in has no one answer
        if not any(r["ts"] + r["dur"] == begin for r in others):
            inside += [f for f in flows if f["dst_track_id"] == row["track_id"] and f["dst_ts"] == begin]
        if inside:
            latest = max(f["src_ts"] for f in inside)
            assert row["quality"] == "exact"
            assert row["blocked_ns"] == min(max(latest, begin), end) - begin
            assert row["flow_id"] == min(f["id"] for f in inside if f["src_ts"] == latest)
        elif row["kind"] == "bubble" and row["flow_id"] is None:
            assert row["waits_for"] is None


@given(pipelines())
def test_waits_without_flows_are_charged_to_what_ended_last_or_usually_does(trace):
    sweep = Sweep(trace)
    lane_names = trace.tracks["name"].tolist()
    waits = [r for r in idle.idle(AnalysisCache(trace)).rows() if r["kind"] == "wait" and r["flow_id"] is None]
    ended, votes = {}, Counter()
    for row in waits:
        unit = sweep.unit[row["track_id"]]
        ended[row["id"]] = sorted(
            (end, begin, s["id"], s["name"])
            for s in sweep.slices
            for begin, end in [oracles.extent(s)]
            if sweep.unit[s["track_id"]] == unit and s["track_id"] != row["track_id"] and s["name"] not in WAITS
            if row["ts"] < end <= row["ts"] + row["dur"] and begin < end
        )
        if ended[row["id"]]:
            votes[lane_names[row["track_id"]], row["name"], ended[row["id"]][-1][3]] += 1
    codes = trace.slices.column("name").dictionary.texts
    for row in waits:
        mine = {name: n for (lane, wait, name), n in votes.items()
                if (lane, wait) == (lane_names[row["track_id"]], row["name"])}  # fmt: skip
        usual = min(mine, key=lambda name: (-mine[name], codes.index(name)), default=None)
        candidates = ended[row["id"]]
        best = [c for c in candidates if c[3] == usual] or candidates
        assert row["producer_slice_id"] == (best[-1][2] if best else None)
        assert row["quality"] == ("inferred" if best else None)
        assert not best or row["blocked_ns"] == best[-1][0] - row["ts"]


@given(pipelines())
def test_causes_are_the_sums_of_stretches(trace):
    rows = list(idle.idle(AnalysisCache(trace)).rows())
    names = trace.tracks["name"].tolist()
    expected = {}
    for row in rows:
        key = (names[row["track_id"]], row["kind"], row["name"], row["waits_for"])
        total = expected.setdefault(key, [0, 0, 0, 0, 0])
        parts = (1, row["dur"], row["blocked_ns"] or 0, row["latency_ns"] or 0, row["quality"] == "inferred")
        expected[key] = [a + b for a, b in zip(total, parts, strict=True)]
    columns = ("count", "total_ns", "blocked_ns", "latency_ns", "inferred")
    found = {
        (row["lane"], row["kind"], row["name"], row["waits_for"]): [row[name] for name in columns]
        for row in idle_causes.causes(AnalysisCache(trace)).rows()
    }
    assert found == expected
    lanes_apart = idle_causes.causes(AnalysisCache(trace), each=True)
    assert sum(lanes_apart["total_ns"]) == sum(row["dur"] for row in rows)


@given(testing.traces(**TRACES))
def test_any_trace_can_be_asked(trace):
    shared = AnalysisCache(trace)
    for table in (
        overlap.overlap(shared), overlap.overlap(shared, each=True), overlap.exposure(shared),
        occupancy.occupancy(shared), occupancy.occupancy(shared, "parent"), occupancy.utilization(shared),
        idle.idle(shared), idle_causes.causes(shared), region_stats.regions(shared),
    ):  # fmt: skip
        assert sum(1 for _ in table.rows()) == len(table)


def test_a_flow_that_names_the_waiting_slice_belongs_to_it():
    builder = TraceBuilder(TimeBase())
    a, b = (builder.track(name, kind="lane", role="core") for name in "ab")
    builder.append("slices", track_id=[a, b, b, b], ts=[0, 0, 10, 40], dur=[25, 10, 30, 5],
                   name=["load", "mma", "wait", "mma"])  # fmt: skip
    # Sent at 25, it arrives in the table at the begin of the wait: what it names counts.
    builder.append(
        "flows", kind="signal", src_track_id=a, src_ts=25, dst_track_id=b, dst_ts=10, src_slice_id=0, dst_slice_id=2
    )
    (wait,) = [row for row in idle.idle(AnalysisCache(builder.finish())).rows() if row["kind"] == "wait"]
    assert (wait["waits_for"], wait["producer_slice_id"], wait["blocked_ns"], wait["latency_ns"]) == ("load", 0, 15, 15)
    assert wait["quality"] == "exact"


def test_many_regions_share_a_row():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("a", kind="lane", role="core")
    count = overlap.MAX_REGIONS + 5
    builder.append("slices", track_id=lane, ts=np.arange(count) * 100, dur=np.arange(count) + 1,
                   name=[f"r{n}" for n in range(count)])  # fmt: skip
    table = overlap.overlap(AnalysisCache(builder.finish()))
    others = [row for row in table.rows() if row["region"] == row["other_region"] == "(other)"]
    assert [row["region_ns"] for row in others] == [1 + 2 + 3 + 4 + 5]
    assert len(table) == (overlap.MAX_REGIONS + 1) ** 2


def test_a_region_around_others_does_not_compute():
    builder = TraceBuilder(TimeBase())
    block = builder.track("block 0", kind="group", role="block")
    loads, issuer = (builder.track(name, kind="lane", role="group", parent=block) for name in ("async", "issuer"))
    builder.append("slices", track_id=[loads, issuer, issuer], ts=[0, 0, 60], dur=[100, 100, 30],
                   name=["load", "tile", "mma"])  # fmt: skip
    trace = builder.finish()
    (row, _) = overlap.exposure(AnalysisCache(trace)).rows()
    assert (row["kind"], row["hidden_ns"], row["exposed_ns"]) == ("load", 30, 70)
    (row, _) = overlap.exposure(AnalysisCache(trace, {"compute": "t*"})).rows()
    assert (row["hidden_ns"], row["exposed_ns"]) == (100, 0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("wait_load", "wait"), ("tma_load2", "load"), ("LDGSTS", "load"), ("prefetchNext", "load"), ("qk", "compute"),
     ("epilogue store", "store"), ("mbarrier", "compute"), ("Barrier0", "wait"), ("", "compute")],
)  # fmt: skip
def test_kinds_by_words(name, expected):
    assert work_classes.classify(name) == expected


def test_given_kinds_come_first_and_must_exist():
    assert work_classes.classify("mbarrier", {"wait": "mbar*, *poll"}) == "wait"
    with pytest.raises(UsageError, match="unknown kind of work"):
        work_classes.check({"waits": "x"})


def test_units_are_told_by_tracks_or_by_the_detail_table():
    builder = TraceBuilder(TimeBase())
    for device in range(2):
        top = builder.track(f"gpu {device}", kind="group", role="device")
        for block in range(2):
            parent = builder.track(f"block {block}", kind="group", role="block", parent=top)
            builder.track("lane", kind="lane", role="group", parent=parent)
    trace = builder.finish()
    time = LaneTime(trace)
    assert units(time, "device").labels == ["gpu 0", "gpu 1"]
    assert units(time, "block").labels == ["gpu 0/block 0", "gpu 0/block 1", "gpu 1/block 0", "gpu 1/block 1"]
    assert len(units(time, "all")) == 1
    assert roles(trace) == ["device", "block", "group"]
    with pytest.raises(UsageError, match="this trace has no sm information"):
        units(time, "sm")


def test_times_beyond_what_can_be_added_up_are_refused():
    builder = TraceBuilder(TimeBase())
    for number in range(3):
        block = builder.track(f"block {number}", kind="group", role="block")
        for lane in range(2):
            track = builder.track(f"lane {lane}", kind="lane", role="group", parent=block)
            builder.append("slices", track_id=track, ts=0, dur=(1 << 61) + lane, name=("load", "mma")[lane])
    with pytest.raises(UsageError, match="cannot add up the times"):
        overlap.overlap(AnalysisCache(builder.finish()))
