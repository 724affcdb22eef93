"""The Perfetto writer, read back by the official bindings and by Perfetto itself."""

from __future__ import annotations

import gc
import io
import weakref
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackDescriptor

import lanescope
from effort import TRACES, some
from lanescope import testing
from lanescope._native import core
from lanescope.errors import InternalError, UsageError
from lanescope.io import perfetto, perfetto_packets
from lanescope.testing.strategies import DETAILS, STATS
from lanescope.trace import Column, ColumnSpec, Table, TableSpec, TimeBase, Trace, TraceBuilder
from lanescope.trace.streams import StreamInfo
from track_events import (
    SQL,
    assert_drawn,
    by_bindings,
    by_perfetto,
    expected,
    packets,
    table_with,
)


def written(trace, **options) -> tuple[bytes, perfetto.WriteReport]:
    out = io.BytesIO()
    report = perfetto.write(trace, out, **options)
    assert report.bytes == len(out.getvalue())
    return out.getvalue(), report


def lane(builder: TraceBuilder, name: str = "core 0", **options: Any) -> int:
    return builder.track(name, kind="lane", role="core", **options)


# --- bytes ---------------------------------------------------------------------------------------------------------


def two_slices() -> TraceBuilder:
    builder = TraceBuilder(TimeBase())
    track = lane(builder, "MTE2", parent=builder.track("AIC_0", kind="group", role="core"))
    builder.append("slices", track_id=track, ts=[1000500, 1000800], dur=[300, 1000], name=["load", "mma"])
    return builder


def test_golden_bytes():
    data, report = written(two_slices().finish(), compress=False)
    epoch = b"time unit: ns; 0 is 0 ns on the device clock"
    golden = (
        bytes.fromhex("0a 42 50 01 e2 03 3d 08 01 12 05 41 49 43 5f 30 72 2c") + epoch
        + bytes.fromhex(
            "60 00 78 02 58 03"  # explicit order of children
            # lane: uuid 2, name, parent 1, rank 0, never merged
            "0a 13 50 01 e2 03 0e 08 02 12 04 4d 54 45 32 28 01 60 00 78 02"
            # sequence 2: starts afresh; its clock 64 (incremental) is clock 6 at 1000500
            "0a 1b 50 02 68 01 b8 05 01 32 12 0a 08 08 40 10 b4 88 3d 18 01 0a 06 08 06 10 b4 88 3d"
            # at once: nothing is interned yet, default clock 64, default track 2
            "0a 10 40 00 50 02 68 01 da 03 07 d0 03 40 5a 02 58 02"
        )
        + bytes.fromhex(
            "0a 16 40 00 50 02 62 0a 12 08 08 01 12 04 6c 6f 61 64 5a 04 48 01 50 01"  # load, a new name
            "0a 09 40 ac 02 50 02 5a 02 48 02"
            "0a 15 40 00 50 02 62 09 12 07 08 02 12 03 6d 6d 61 5a 04 48 01 50 02"  # mma
            "0a 09 40 e8 07 50 02 5a 02 48 02"
          # what only lanescope reads, and others keep as notes
          "0a 75 50 01 2a 71 12 6f 0a 10"
        )
        + b"lanescope.tracks\x12\x5b"
        + b'{"first":1,"tracks":[0,1],"kinds":[["group","core","disjoint"],["lane","core","disjoint"]]}'
    )  # fmt: skip
    assert data.hex(" ") == golden.hex(" ")
    assert_drawn(two_slices().finish(), by_bindings(data), 0)
    assert report.raw_bytes == report.bytes == len(golden)
    assert (report.slices, report.rows, report.overflow_rows) == (2, 1, 0)


def test_plain_slices_cost_their_few_bytes():
    # Beyond the first of a name: length, delta of two bytes, sequence, event; and the same for its end.
    trace = testing.large_trace(20_000, lanes=20, names=5)
    _, report = written(trace, compress=False)
    assert report.raw_bytes <= 24 * len(trace.slices)
    data, smaller = written(trace)
    assert smaller.raw_bytes == report.raw_bytes
    assert smaller.bytes < report.bytes / 2
    assert by_bindings(data).slices.total() == len(trace.slices)


def many_lanes(lanes):
    """Lanes that begin in falling order, so that the clock goes back between any two."""
    builder = TraceBuilder(TimeBase())
    group = builder.track("device", kind="group", role="device")
    tracks = [lane(builder, f"lane {i}", parent=group) for i in range(lanes)]
    for begin in (0, 50):
        ts = lanes - np.arange(lanes) + begin
        builder.append("slices", track_id=np.array(tracks), ts=ts, dur=np.full(lanes, 10), name="load")
    return builder.finish()


@pytest.mark.parametrize(("lanes", "shared"), [(126, 1), (127, 2), (300, 3), (8_064, 64), (8_100, 64)])
def test_many_lanes_share_texts_and_one_clock(lanes, shared):
    trace = many_lanes(lanes)
    data, _ = written(trace)
    picture = by_bindings(data)
    assert (picture.slices, picture.snapshots) == (expected(trace)[0].slices, 1)
    turns = [0]
    for packet in packets(data):
        assert packet.trusted_packet_sequence_id in (1, core.PerfettoEncoder.SEQUENCE)
        if packet.HasField("trace_packet_defaults"):
            turns += [0] if packet.sequence_flags else []
            turns[-1] += 1
    assert (sum(turns), max(turns)) == (lanes, shared)


def same_packets_side_by_side(trace: Trace) -> None:
    """Compressed in as many parts as there can be, a trace has the packets of the file that is written in one go."""
    whole, report = written(trace, compress=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(perfetto, "_PART_EVENTS", 1)
        patch.setattr(perfetto, "_CORES", 2)
        for most in (0, perfetto._MOST_PART_EVENTS):  # none beside another; all
            patch.setattr(perfetto, "_MOST_PART_EVENTS", most)
            parts, of_parts = written(trace)
            assert packets(parts) == packets(whole)
            assert of_parts.raw_bytes == report.raw_bytes == len(whole)


@pytest.mark.parametrize("lanes", [1, 127, 300])
def test_lanes_are_encoded_side_by_side(lanes):
    same_packets_side_by_side(many_lanes(lanes))


@given(testing.traces(**TRACES))
def test_parts_of_any_trace_are_encoded_side_by_side(trace):
    same_packets_side_by_side(trace)


def test_what_cannot_be_drawn_is_refused_by_a_part_too(monkeypatch):
    monkeypatch.setattr(perfetto, "_PART_EVENTS", 1)
    with pytest.raises(UsageError, match="times before 0"):
        perfetto.write(broken("slice before the epoch"), io.BytesIO())


@pytest.mark.parametrize("in_parts", [False, True])
def test_the_viewer_marks_one_clock_snapshot_and_not_one_a_lane(in_parts, trace_processor, tmp_path):
    """It marks each row of the table ``clock_snapshot``: there were two for each of hundreds of lanes."""
    path = tmp_path / "lanes.pftrace"
    traces = [many_lanes(200), many_lanes(200)] if in_parts else many_lanes(200)
    perfetto.write(traces, path, in_parts=in_parts)
    snapshots, slices = trace_processor(
        path, "select ts, snapshot_id from clock_snapshot", "select count(*) as count, min(ts) as first from slice"
    )
    assert snapshots == [{"ts": 1, "snapshot_id": 0}] * 2  # our clock and the viewer's
    assert slices == [{"count": 800 if in_parts else 400, "first": 1}]


def test_blocks_hold_whole_packets_even_if_one_is_larger_than_a_block():
    builder = TraceBuilder(TimeBase())
    name = "n" * (3 * perfetto.BLOCK)
    builder.append("slices", track_id=lane(builder), ts=[0, 5], dur=[1, 1], name=[name, "short"])
    trace = builder.finish()
    data, report = written(trace)
    assert by_bindings(data).slices == expected(trace)[0].slices
    assert report.raw_bytes > 3 * perfetto.BLOCK


@pytest.mark.parametrize("target", [1, 40, 1000])
def test_where_blocks_end_changes_nothing(target, monkeypatch):
    trace = testing.large_trace(400, lanes=3, names=5, nested=True)
    whole, _ = written(trace, compress=False)
    monkeypatch.setattr(perfetto, "BLOCK", target)
    assert written(trace, compress=False)[0] == whole
    assert by_bindings(written(trace)[0]).slices == expected(trace)[0].slices


def test_long_pauses_take_long_deltas():
    builder = TraceBuilder(TimeBase())
    ts = np.array([0, 1, 1 << 28, (1 << 35) + 5, 1 << 56, (1 << 62) + 3])
    builder.append("slices", track_id=lane(builder), ts=ts, dur=np.ones(6, np.int64), name="load")
    trace = builder.finish()
    assert by_bindings(written(trace)[0]).slices == expected(trace)[0].slices


# --- what the model can hold ---------------------------------------------------------------------------------------


@given(testing.batches(**TRACES), st.booleans())
@settings(max_examples=some(100))
def test_everything_reaches_the_official_bindings(batches, compress):
    trace = Trace.concat(batches)
    data, report = written(batches, compress=compress)
    assert_drawn(trace, by_bindings(data), report.flows)
    assert report.flows + report.flows_undrawn == len(trace.flows)
    assert report.lost == expected(trace)[0].lost


def side_by_side(traces: list[Trace]) -> Trace:
    """Join traces that have nothing to do with each other; every second one under a group of its own."""
    builder = TraceBuilder(TimeBase(), details=(DETAILS,), stats=STATS)
    counts = dict.fromkeys(("tracks", "slices", "instants", "flows"), 0)
    for number, trace in enumerate(traces):
        shift = dict(counts)
        root = builder.track(f"trace {number}", kind="group", role="device") if number % 2 else None
        shift["tracks"] += root is not None
        for row in trace.tracks.rows():
            row.pop("id")
            top = row["parent_id"] is None
            row["parent"] = root if top else row["parent_id"] + shift["tracks"]
            row["name"] = f"{number} {row['name']}" if top and root is None else row["name"]
            for name in ("parent_id", "input_id", "clock_id"):
                row.pop(name)
            builder.track(row.pop("name"), **row)
        for name in ("slices", "instants", "counters", "flows", "gaps", "test_tasks"):
            table = trace.tables()[name]
            if not len(table):
                continue
            shifted = {
                column.name: table.values(column.name) + shift[column.references]
                for column in table.spec.columns
                if column.references in shift
            }
            builder.append(name, **table_with(table, **shifted))
        for row in trace.stats.rows():
            builder.add_stat(row["name"], row["count"])
        for name in counts:
            counts[name] = shift[name] + len(trace.tables()[name])
    return builder.finish()


def test_everything_reaches_perfetto(trace_processor, tmp_path):
    # A start of the trace processor is dear, so many small traces go into one file.
    found = []

    @given(testing.traces(max_lanes=4))
    @settings(max_examples=100, database=None)
    def collect(trace):
        found.append(trace)

    collect()
    trace = side_by_side(found)
    assert len(trace.slices) > 300
    assert len(trace.flows) > 30
    path = tmp_path / "all.pftrace"
    report = perfetto.write(trace, path)
    assert report.overflow_rows > 20
    assert_drawn(trace, by_bindings(path.read_bytes()), report.flows)
    assert_drawn(trace, by_perfetto(trace_processor(path, *SQL)), report.flows)


def kinds(trace: Trace) -> str:
    """Return what the events of a trace are, in the order of the file: ( begin, ) end, . instant."""
    events = [packet.track_event for packet in packets(written(trace)[0]) if packet.HasField("track_event")]
    return "".join(" ()."[event.type] for event in events)


def test_at_one_time_ends_come_first_then_begins_then_instants():
    builder = TraceBuilder(TimeBase())
    track = lane(builder)
    builder.append("instants", track_id=track, ts=[9, 5, 0, 7], name="tick")
    builder.append("slices", track_id=track, ts=[5, 0, 5], dur=[4, 5, 0], name=["second", "first", "moment"])
    assert kinds(builder.finish()) == "(.)()(..)."


def test_a_crowd_of_instants_does_not_stack_up():
    builder = TraceBuilder(TimeBase())
    builder.append("instants", track_id=lane(builder), ts=[*[3] * 18, *[4] * 2], name="tick")
    assert kinds(builder.finish()) == 16 * "." + "()()" + ".."


# --- flows ---------------------------------------------------------------------------------------------------------


class FlowCase:
    """Two or more lanes of slices and edges between them, given as (lane, ts, dur) and pairs of their places."""

    def __init__(self, slices, edges, *, with_slices=True, with_source=True, arrives=None) -> None:
        builder = TraceBuilder(TimeBase(), details=(DETAILS,))
        count = max(lane for lane, _, _ in slices) + 1
        tracks = [lane(builder, f"lane {i}", nesting="nested") for i in range(count)]
        for number, (where, ts, dur) in enumerate(slices):
            builder.append("slices", track_id=tracks[where], ts=ts, dur=dur, name=f"s{number}")
        for source, destination in edges:
            (src, src_ts, src_dur), (dst, dst_ts, _) = slices[source], slices[destination]
            builder.append(
                "flows", kind="dependency",
                src_track_id=tracks[src], src_ts=src_ts + (src_dur or 0),
                dst_track_id=tracks[dst], dst_ts=dst_ts if arrives is None else arrives,
                src_slice_id=source if with_slices and with_source else None,
                dst_slice_id=destination if with_slices else None,
            )  # fmt: skip
        self.trace = builder.finish()

    def check(self, drawn: int, undrawn: int = 0) -> None:
        data, report = written(self.trace)
        assert (report.flows, report.flows_undrawn) == (drawn, undrawn)
        assert_drawn(self.trace, by_bindings(data), drawn)


FLOW_CASES = {
    "one to many": (FlowCase([(0, 0, 5), (1, 5, 5), (2, 7, 5), (3, 9, 1)], [(0, 1), (0, 2), (0, 3)]), 3, 0),
    "many to one": (FlowCase([(0, 0, 5), (1, 1, 5), (2, 2, 5), (3, 9, 1)], [(0, 3), (1, 3), (2, 3)]), 3, 0),
    "twice the same": (FlowCase([(0, 0, 5), (1, 5, 5)], [(0, 1), (0, 1)]), 2, 0),
    "effect at the cause's end": (FlowCase([(1, 0, 5), (0, 5, 5)], [(0, 1)]), 1, 0),
    "begin together, effect written first": (FlowCase([(1, 3, 5), (0, 3, 5)], [(0, 1)]), 1, 0),
    "effect was running, signal before its end": (FlowCase([(1, 3, 5), (0, 1, 9)], [(0, 1)], arrives=8), 1, 0),
    "effect was running, signal before the cause's end": (FlowCase([(1, 3, 5), (0, 1, 9)], [(0, 1)], arrives=4), 1, 0),
    "effect was running, signal before its cause": (FlowCase([(1, 3, 5), (0, 1, 9)], [(0, 1)]), 0, 1),
    "effect was running, no slice of the cause": (
        FlowCase([(1, 3, 5), (0, 1, 9)], [(0, 1)], arrives=8, with_source=False), 1, 0,
    ),
    "effect of no length, lane written first": (FlowCase([(1, 3, 0), (0, 3, 0)], [(0, 1)]), 1, 0),
    "effect open, lane written first": (FlowCase([(1, 3, 2), (0, 3, None)], [(0, 1)]), 1, 0),
    "moments that wait for each other": (
        FlowCase([(1, 3, 0), (0, 3, 0), (0, 9, 0), (1, 9, 0)], [(0, 1), (2, 3)]), 1, 1,
    ),
    "effect over before its cause": (FlowCase([(0, 5, 5), (1, 0, 5)], [(0, 1)]), 0, 1),
    "one lane, outer to inner": (FlowCase([(0, 0, 9), (0, 0, 5)], [(0, 1)]), 1, 0),
    "onto itself": (FlowCase([(0, 0, 9)], [(0, 0)]), 1, 0),
    "onto itself, no length": (FlowCase([(0, 0, 0)], [(0, 0)]), 0, 1),
    "without slices": (FlowCase([(0, 0, 5), (1, 7, 5)], [(0, 1)], with_slices=False), 1, 0),
    "without slices, one moment": (FlowCase([(1, 0, 5), (0, 5, 5)], [(0, 1)], with_slices=False), 1, 0),
    "without slices, against time": (FlowCase([(0, 3, 5), (1, 0, 5)], [(0, 1)], with_slices=False), 0, 1),
}  # fmt: skip


@pytest.mark.parametrize("case", FLOW_CASES)
def test_flows(case):
    flows, drawn, undrawn = FLOW_CASES[case]
    flows.check(drawn, undrawn)


def test_perfetto_draws_the_same_flows(trace_processor, tmp_path):
    trace = side_by_side([flows.trace for flows, _, _ in FLOW_CASES.values()])
    path = tmp_path / "flows.pftrace"
    report = perfetto.write(trace, path)
    assert report.flows >= sum(drawn for _, drawn, _ in FLOW_CASES.values()) - 1  # lanes now wait across cases
    assert_drawn(trace, by_perfetto(trace_processor(path, *SQL)), report.flows)


# --- what goes with events -----------------------------------------------------------------------------------------

FINDINGS = TableSpec(
    "findings",
    "what a check found",
    (
        ColumnSpec("code", "text", "rule"),
        ColumnSpec("severity", "text", "how bad"),
        ColumnSpec("title", "text", "what"),
        ColumnSpec("detail", "utf8", "what exactly"),
        ColumnSpec("track_id", "int64", "where", nullable=True),
        ColumnSpec("ts", "int64", "when", nullable=True),
        ColumnSpec("count", "int64", "how many"),
    ),
)


def only(trace: Trace, name: str, **options: Any):
    """Return what the file says of the one slice or instant of that name."""
    data, _ = written(trace, **options)
    (found,) = [shape for shape in by_bindings(data).slices if shape.name == name]
    return found


def test_arguments_come_from_declared_columns_whatever_their_order():
    spec = TableSpec(
        "test_many",
        "several rows for some slices",
        (
            ColumnSpec("slice_id", "int64", "key", references="slices"),
            ColumnSpec("big", "uint64", "an identity", is_argument=True),
            ColumnSpec("small", "int32", "a number", nullable=True, is_argument=True),
            ColumnSpec("byte", "uint8", "a number", is_argument=True),
            ColumnSpec("word", "uint16", "a number", is_argument=True),
            ColumnSpec("count", "uint32", "a number", is_argument=True),
            ColumnSpec("free", "utf8", "a text", is_argument=True),
            ColumnSpec("hidden", "int64", "no argument"),
        ),
        key="slice_id",
    )
    builder = TraceBuilder(TimeBase(), details=(spec,))
    builder.append("slices", track_id=lane(builder), ts=[0, 5, 9], dur=[2, 2, 2], name=["none", "one", "two"])
    builder.append(
        "test_many",
        slice_id=[2, 1, 2, 77],
        big=np.array([1, (1 << 64) - 1, 3, 4], np.uint64),
        small=np.array([-1, -(1 << 31), 0, 4]),
        small_valid=np.array([True, True, False, True]),
        byte=[255, 0, 1, 4],
        word=[65535, 0, 1, 4],
        count=[(1 << 32) - 1, 0, 1, 4],
        free=["first", "", "second", "of no slice"],
        hidden=[1, 2, 3, 4],
    )
    trace = builder.finish()
    assert only(trace, "none").args == ()
    assert dict(only(trace, "one").args) == {
        "big": (1 << 64) - 1, "small": (1 << 64) - (1 << 31), "byte": 0, "word": 0, "count": 0, "free": "",
    }  # fmt: skip
    assert dict(only(trace, "two").args) == {
        "big[0]": 1, "big[1]": 3, "small[0]": (1 << 64) - 1, "byte[0]": 255, "byte[1]": 1, "word[0]": 65535,
        "word[1]": 1, "count[0]": (1 << 32) - 1, "count[1]": 1, "free[0]": "first", "free[1]": "second",
    }  # fmt: skip


def test_flags_of_no_name_are_kept_as_a_number():
    builder = TraceBuilder(TimeBase())
    builder.append("slices", track_id=lane(builder), ts=3, dur=1, name="odd", flags=(1 << 31) | 2)
    assert only(builder.finish(), "odd").args == (("flags", "truncated|0x80000000"),)


def test_flags_that_all_rows_have_are_on_each():
    builder = TraceBuilder(TimeBase())
    builder.append("slices", track_id=[lane(builder)] * 3, ts=[3, 5, 7], dur=1, name="odd", flags=2)
    trace = builder.finish()
    assert trace.slices.column("flags").constant_value == 2
    drawn = by_bindings(written(trace)[0]).slices
    assert [shape.args for shape in drawn if shape.name == "odd"] == [(("flags", "truncated"),)] * 3


def test_what_is_ordinary_costs_nothing():
    plain, _ = written(two_slices().finish(), compress=False)
    builder = two_slices()
    builder.append("slices", track_id=1, ts=5_000_000, dur=1, name="mma", quality="inferred")
    marked, _ = written(builder.finish(), compress=False)
    notes = b"lanescope.tracks"
    before = plain.rindex(b"\x0a", 0, plain.index(notes) - 2)
    assert marked.startswith(plain[:before])
    assert marked[marked.index(notes) :] == plain[plain.index(notes) :]
    assert b"quality" in marked
    assert b"quality" not in plain


def test_a_filtered_trace_keeps_its_arguments_and_flows():
    trace = FLOW_CASES["one to many"][0].trace
    kept = Trace(trace.time, trace.tables() | {"slices": trace.slices.take(np.array([3, 0]))}, trace.details)
    data, report = written(kept)
    assert (report.slices, report.flows) == (2, 3)
    assert_drawn(kept, by_bindings(data), report.flows)


def test_findings_with_a_time_are_instants():
    trace = two_slices().finish()
    findings = Table.from_arrays(
        FINDINGS,
        {
            "code": ["LS101", "LS001", "LS302"],
            "severity": ["error", "warning", "notice"],
            "title": ["slices overlap", "bytes are lost", "clock drifts"],
            "detail": ["load and mma", "", "by 3 ns"],
            "track_id": [1, None, 99],
            "ts": [1000700, None, 5],
            "count": [1, 2, 3],
        },
    )
    data, report = written(trace, findings=findings)
    assert report.findings == 2  # what has no time has no place in a drawing
    marks = (shape for shape in by_bindings(data).slices if shape.category == "lanescope.finding")
    found = {shape.name.rstrip(): shape for shape in marks}
    assert (found["error LS101: slices overlap"].path, found["error LS101: slices overlap"].ts) == (
        ("AIC_0", "MTE2"),
        1000700,
    )
    assert dict(found["error LS101: slices overlap"].args) == {
        "severity": "error",
        "detail": "load and mma",
        "count": 1,
    }
    assert (found["notice LS302: clock drifts"].path, found["notice LS302: clock drifts"].ts) == (("findings",), 5)
    assert len(found) == 2
    assert dict(found["notice LS302: clock drifts"].args) == {"severity": "notice", "detail": "by 3 ns", "count": 3}


def test_tracks_are_ordered_and_told_apart():
    builder = TraceBuilder(TimeBase(0, "unix", "cycles"))
    root = builder.track("device", kind="group", role="device")
    last = lane(builder, "core", parent=root, sort_key=7)
    first = lane(builder, "core", parent=root, sort_key=-7)
    counters = {
        unit: builder.track("load", kind="counter", role="core", parent=root, unit=unit)
        for unit in ("ns", "bytes", "1", "W", "")
    }
    builder.append("slices", track_id=[first, first, last], ts=[0, 1, 0], dur=[5, 5, 5], name="a")
    data, report = written(builder.finish())
    assert (report.rows, report.overflow_rows) == (3, 1)
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in packets(data) if p.HasField("track_descriptor")}
    assert tracks[1].name == "device [cycles: 1 cycle as 1 ns]"
    assert (
        tracks[1].description == "time unit: cycles, 1 cycle drawn as 1 ns; 0 is 0 ns on the unix clock; name: device"
    )
    assert tracks[1].child_ordering == TrackDescriptor.EXPLICIT
    ranks = [tracks[1 + track].sibling_order_rank for track in (first, last, *counters.values())]
    assert ranks == [0, 5, 1, 2, 3, 4, 6]
    none, by_key = (
        TrackDescriptor.SIBLING_MERGE_BEHAVIOR_NONE,
        TrackDescriptor.SIBLING_MERGE_BEHAVIOR_BY_SIBLING_MERGE_KEY,
    )
    assert tracks[1 + last].sibling_merge_behavior == none
    (overflow,) = tracks.keys() - set(range(1, 9))
    for uuid in (1 + first, overflow):
        assert tracks[uuid].name == "core"
        assert tracks[uuid].parent_uuid == 1
        assert tracks[uuid].sibling_merge_behavior == by_key
        assert tracks[uuid].sibling_merge_key_int == 1 + first
        assert tracks[uuid].sibling_order_rank == ranks[0]
    units = {unit: tracks[1 + track].counter for unit, track in counters.items()}
    assert [units["ns"].unit, units["1"].unit, units["bytes"].unit] == [1, 2, 3]
    assert (units["W"].unit, units["W"].unit_name) == (0, "W")


def ids_of(sha256, *, name: str = "a", start: int = 0, size: int = 0) -> set[int]:
    """Return the ids of tracks and flows in the file of a capture with two slices."""
    builder = TraceBuilder(TimeBase())
    source = builder.input(capture="run", path="run.bin", size=size, sha256=sha256, family="test", format="words")
    builder.add_accounting(input_id=source, layer=0, unit="byte", unit_bytes=1, total=size, decoded=size)
    builder.append("slices", track_id=lane(builder), ts=[0, start + 1], dur=[5, 5], name=name)
    builder.append(
        "flows",
        kind="signal",
        src_track_id=0,
        src_ts=1,
        dst_track_id=0,
        dst_ts=start + 1,
        src_slice_id=0,
        dst_slice_id=1,
    )
    found = packets(written(builder.finish())[0])
    uuids = {packet.track_descriptor.uuid for packet in found if packet.HasField("track_descriptor")}
    assert len(uuids) == 2
    return uuids | {flow for packet in found for flow in packet.track_event.flow_ids}


def test_ids_of_different_captures_differ():
    assert not ids_of("0" * 64) & ids_of("1" * 64)
    assert ids_of("0" * 64) == ids_of("0" * 64)
    assert max(ids_of("0" * 64)) < 1 << 63


def test_ids_of_captures_that_were_not_hashed_follow_from_their_events():
    def asked() -> str:
        raise AssertionError("hashing takes as long as reading")

    first = ids_of(asked)
    assert first == ids_of(asked)
    for other in (ids_of(asked, start=1), ids_of(asked, name="b"), ids_of(asked, size=1)):
        assert not first & other
    assert min(first) >= 1 << 32
    assert max(first) < 1 << 63


# --- limits of the format ------------------------------------------------------------------------------------------


def chain(builder: TraceBuilder, levels: int) -> int:
    parent = None
    for level in range(levels):
        parent = builder.track(f"level {level}", kind="group", role="device", parent=parent)
    assert parent is not None
    return parent


def test_the_limits_of_perfetto_are_kept(trace_processor, tmp_path):
    """Depth of tracks, of slices, of instants of one moment; values of counters; times up to the last."""
    builder = TraceBuilder(TimeBase())
    deep = lane(builder, "deep", nesting="nested")
    steps = np.arange(1000)
    builder.append("slices", track_id=deep, ts=steps, dur=4000 - 2 * steps, name="call")
    builder.append("instants", track_id=deep, ts=np.full(700, 1000), name="at once")
    builder.append("slices", track_id=lane(builder, "far"), ts=(1 << 62) - 5, dur=10, name="late")
    below = lane(builder, "below", parent=chain(builder, perfetto_packets.MAX_ANCESTORS))
    builder.append("slices", track_id=below, ts=1, dur=1, name="low")
    counter = builder.track("values", kind="counter", role="core")
    values = [0.0, -0.0, 1.0, -1.0, 2.0**53, -(2.0**53), 1e300, 0.1, -1.5]
    builder.append("counters", track_id=counter, ts=np.arange(9), value=np.array(values))
    builder.add_stat("truncated", 41)
    trace = builder.finish()
    path = tmp_path / "limits.pftrace"
    report = perfetto.write(trace, path)
    assert (report.lost, report.overflow_rows) == (41, 2)
    picture = by_perfetto(trace_processor(path, *SQL))
    assert_drawn(trace, picture, 0)
    assert max(shape.depth for shape in picture.slices) == 479


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_values_that_are_no_numbers_are_written_as_they_are(value):
    builder = TraceBuilder(TimeBase())
    counter = builder.track("values", kind="counter", role="core")
    builder.append("counters", track_id=counter, ts=[3, 1], value=np.array([value, 7.0]))
    found = packets(written(builder.finish())[0])
    events = [packet.track_event for packet in found if packet.HasField("track_event")]
    assert [event.counter_value for event in events] == [7, 0]
    assert repr(events[1].double_counter_value) == repr(value)


def test_loss_is_said_once_and_only_if_there_is_any():
    for lost in (0, 3):
        builder = two_slices()
        builder.add_stat("truncated", lost)
        builder.add_stat("truncated", lost, track_id=1)
        builder.add_stat("unverified_encoding", 5)
        data, report = written(builder.finish())
        assert report.lost == by_bindings(data).lost == 2 * lost
        assert sum(packet.HasField("trace_stats") for packet in packets(data)) == bool(lost)


# --- broken promises -----------------------------------------------------------------------------------------------


def broken(what: str) -> Trace:
    builder = two_slices()
    counter = builder.track("counter", kind="counter", role="core")
    if what == "no such track":
        builder.append("slices", track_id=17, ts=0, dur=1, name="a")
    elif what == "slice before the epoch":
        builder.append("slices", track_id=1, ts=-1, dur=1, name="a")
    elif what == "instant before the epoch":
        builder.append("instants", track_id=0, ts=-1, name="a")
    elif what == "sample before the epoch":
        builder.append("counters", track_id=counter, ts=-1, value=1.0)
    elif what == "negative length":
        builder.append("slices", track_id=1, ts=5, dur=-1, name="a")
    elif what == "end after the last time":
        builder.append("slices", track_id=1, ts=(1 << 63) - 2, dur=5, name="a")
    elif what == "open at the last time":
        builder.append("slices", track_id=1, ts=(1 << 63) - 1, name="a")
    elif what == "slice on a counter":
        builder.append("slices", track_id=counter, ts=0, dur=1, name="a")
    elif what == "instant on a counter":
        builder.append("instants", track_id=counter, ts=0, name="a")
    elif what == "instant on no track":
        builder.append("instants", track_id=-1, ts=0, name="a")
    elif what == "sample on a lane":
        builder.append("counters", track_id=1, ts=0, value=1.0)
    elif what == "flow from a counter":
        builder.append("flows", kind="signal", src_track_id=counter, src_ts=0, dst_track_id=1, dst_ts=1)
    elif what == "tracks too deep":
        chain(builder, perfetto_packets.MAX_ANCESTORS + 2)
    else:
        assert what == "tracks in a ring"
        lane(builder, "a", parent=4)
        lane(builder, "b", parent=3)
    return builder.finish()


@pytest.mark.parametrize(
    "what",
    [
        "no such track", "slice on a counter", "instant on a counter", "instant on no track", "sample on a lane",
        "flow from a counter", "tracks too deep", "tracks in a ring",
    ],
)  # fmt: skip
def test_a_broken_promise_of_the_model_is_a_bug_of_ours_and_leaves_the_old_file(what, tmp_path):
    path = tmp_path / "out.pftrace"
    path.write_bytes(b"before")
    with pytest.raises(InternalError):
        perfetto.write(broken(what), path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("slice before the epoch", "cannot write times before 0"),
        ("instant before the epoch", "cannot write times before 0"),
        ("sample before the epoch", "cannot write times before 0"),
        ("negative length", "has a negative length, or ends later than 64 bits count"),
        ("end after the last time", "has a negative length, or ends later than 64 bits count"),
        ("open at the last time", "has a negative length, or ends later than 64 bits count"),
    ],
)
def test_times_that_perfetto_cannot_hold_are_refused_and_leave_the_old_file(what, message, tmp_path):
    path = tmp_path / "out.pftrace"
    path.write_bytes(b"before")
    with pytest.raises(UsageError, match=message):
        broken(what).save(path, replace=True)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_the_native_encoder_refuses_what_was_not_placed():
    """Whatever order it is given, it never writes slices that cross."""
    none, no_ids, no_bytes = np.empty(0, np.int64), np.empty(0, np.uint32), np.empty(0, np.uint8)
    no_codes = np.empty(0, np.int32)

    def encode(begin, end, *, order=(0, 1), name=(0, 0), ranges=(0, 2, 0, 0, 0, 0), lengths=False) -> bytes:
        slices = core.PerfettoEvents(
            np.array(order, np.int64),
            np.array(begin),
            np.array(end),
            np.array(name, np.int32),
            no_codes,
            no_ids,
            no_ids,
            no_bytes,
            lengths,
        )
        instants = core.PerfettoEvents(none, none, none, no_codes, no_codes, no_ids, no_ids, no_bytes)
        samples = core.PerfettoSamples(none, none, np.empty(0))
        texts = core.PerfettoTexts(np.frombuffer(b"ab", np.uint8), np.array([0, 2]))
        uuid = np.array([1], np.uint64)
        encoder = core.PerfettoEncoder(slices, instants, samples, texts, texts, uuid, np.array([ranges]))
        return bytes(encoder.fill(1000))

    assert encode([1, 3], [3, 4])
    assert encode([1, 3], [5, 4])
    assert encode([1, 3], [4, 1], order=(), lengths=True) == encode([1, 3], [5, 4], order=())
    assert encode([1, 1], [1, 4], order=(1, 0), lengths=True) == encode([1, 1], [5, 2], order=(0, 1))
    for arguments in (
        {"begin": [1, 3], "end": [4, 5]},  # cross
        {"begin": [3, 1], "end": [4, 2]},  # back in time
        {"begin": [3, 4], "end": [5, 3]},  # ends before it begins
        {"begin": [1, 3], "end": [3, 4], "order": (0, 2)},
        {"begin": [1, 3], "end": [3, 4], "order": (-1, 0)},
        {"begin": [1, 3], "end": [3, 4], "order": (0, 2), "lengths": True},
        {"begin": [1, 3], "end": [3, 4], "order": (-1, 0), "lengths": True},
        {"begin": [1, 3], "end": [3, -1], "order": (), "lengths": True},
        {"begin": [1, 3], "end": [3, 4], "order": (), "lengths": True},  # cross
        {"begin": [1, 3], "end": [3, 4], "name": (0, 1)},
        {"begin": [1, 3], "end": [3, 4], "name": (-1, 0)},
        {"begin": [1, 3], "end": [3, 4], "ranges": (0, 3, 0, 0, 0, 0)},
        {"begin": [1, 3], "end": [3, 4], "ranges": (2, 0, 0, 0, 0, 0)},
        {"begin": [1, 3], "end": [3, 4], "ranges": (0, 2, 0, 1, 0, 0)},
    ):
        with pytest.raises(ValueError, match=r"cross|outside"):
            encode(**arguments)
    with pytest.raises(OverflowError, match="epoch"):
        encode([-1, 4], [5, 5])


# --- files ---------------------------------------------------------------------------------------------------------


def test_a_path_and_a_file_object_get_the_same_bytes(tmp_path):
    trace = two_slices().finish()
    data, report = written(trace)
    path = tmp_path / "a.pftrace"
    path.write_bytes(b"before")
    assert perfetto.write(trace, path) == report
    assert perfetto.write(trace, str(path)) == report
    assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]
    fresh = tmp_path / "b.pftrace"
    perfetto.write(trace, fresh)
    other = tmp_path / "c"
    other.write_bytes(b"")
    assert fresh.stat().st_mode == other.stat().st_mode


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("in_parts", [True, False])
@pytest.mark.parametrize("time", [TimeBase(), TimeBase(10**18 + 7, "unix"), TimeBase(0, "first_event", "cycles")])
def test_an_empty_trace_is_a_trace(tmp_path, time, in_parts, compress):
    path = tmp_path / "a.pftrace"
    report = perfetto.write(TraceBuilder(time).finish(), path, compress=compress, in_parts=in_parts)
    assert report.rows == 0
    assert report.bytes == path.stat().st_size > 0
    read = lanescope.open(path)
    assert read.time == time
    assert not any(map(len, (read.tracks, read.slices, read.instants, read.counters, read.flows)))
    assert next((row["total"], row["lost"]) for row in read.accounting.rows()) == (report.bytes, 0)


class Source:
    """What details are made from."""

    def values(self, count: int) -> np.ndarray:
        return np.full(count, 7)


def test_what_details_that_are_not_drawn_are_made_from_is_let_go_before_writing():
    spec = TableSpec(
        "t_details",
        "details",
        (
            ColumnSpec("slice_id", "int64", "the slice", references="slices"),
            ColumnSpec("drawn", "int64", "an argument", is_argument=True),
            ColumnSpec("other", "int64", "none"),
        ),
        key="slice_id",
    )
    drawn, other = Source(), Source()
    kept = weakref.ref(drawn), weakref.ref(other)
    columns = {
        "slice_id": Column.array(np.arange(2)),
        "drawn": Column.derived(2, partial(drawn.values, 2)),
        "other": Column.derived(2, partial(other.values, 2)),
    }
    trace = two_slices().finish()
    trace = Trace(trace.time, trace.tables(), {"t_details": Table(spec, columns)})
    out = io.BytesIO()
    sink = perfetto.PerfettoSink(out)
    sink.start(StreamInfo())
    sink.write(trace)
    del trace, columns, drawn, other
    gc.collect()
    assert [one() is None for one in kept] == [False, True]
    sink.finish(None)
    assert [event.args for event in by_bindings(out.getvalue()).slices] == [(("drawn", 7),)] * 2
