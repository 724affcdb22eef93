import gzip
import io
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from analysis.test_check_streaming import cut
from chrome_whole import drawn, whole_events
from effort import TRACES, some
from lanescope import testing
from lanescope.analysis import check
from lanescope.errors import UsageError
from lanescope.io import chrome
from lanescope.testing import strategies
from lanescope.trace import ColumnSpec, TableSpec, TimeBase, Trace, TraceBuilder

TASKS = TableSpec(
    "toy_tasks",
    "one task",
    (
        ColumnSpec("slice_id", "int64", "the slice", references="slices"),
        ColumnSpec("task", "uint64", "task id", is_argument=True),
        ColumnSpec("wait", "int64", "wait", nullable=True, is_argument=True),
        ColumnSpec("share", "float64", "share", is_argument=True),
        ColumnSpec("note", "utf8", "note", is_argument=True),
        ColumnSpec("is_cold", "bool", "cold", is_argument=True),
        ColumnSpec("hidden", "int64", "no argument"),
    ),
    key="slice_id",
)


def written(trace, **options):
    out = io.BytesIO()
    report = chrome.write(trace, out, **options)
    assert report.bytes == len(out.getvalue())
    return json.loads(out.getvalue()), report


def readable(text):
    """Lone surrogates cannot be written as UTF-8."""
    return text.encode("utf-8", "replace").decode()


def nanos(micros):
    return round(micros * 1000)


@given(strategies.traces(**TRACES))
def test_what_was_written_is_what_the_model_says(trace):
    document, report = written(trace)
    events = document["traceEvents"]
    base = int(document["metadata"]["base_ns"])
    spans = Counter(
        (e["name"], nanos(e["ts"]) + base, nanos(e["dur"]) if e["ph"] == "X" else None)
        for e in events
        if e["ph"] in "XB" and e.get("cat") != "lanescope.gap"
    )
    assert spans == Counter((readable(row["name"]), row["ts"], row["dur"]) for row in trace.slices.rows())
    gaps = [e for e in events if e.get("cat") == "lanescope.gap"]
    assert len(gaps) == len(trace.gaps) == report.gaps
    samples = Counter((nanos(e["ts"]) + base, e["args"]["value"]) for e in events if e["ph"] == "C")
    assert samples == Counter((row["ts"], row["value"]) for row in trace.counters.rows())
    assert report.flows + report.flows_undrawn == len(trace.flows)
    assert sum(e["ph"] == "s" for e in events) == sum(e["ph"] == "f" for e in events) == report.flows


@given(strategies.traces(**TRACES))
def test_a_whole_trace_has_the_events_of_the_writer_for_whole_traces(trace):
    findings = check.to_table(check.run(trace))
    document, report = written(trace, findings=findings)
    events, base = whole_events(trace, findings)
    assert drawn(document["traceEvents"], report.base_ns) == drawn(events, base)
    assert report.base_ns == base


def in_parts(batches, **options):
    return written(iter(batches), in_parts=True, **options)


def test_a_decode_in_parts_has_the_events_of_the_whole(decoded):
    whole = Trace.concat(decoded)
    findings = check.to_table(check.run(whole))
    document, report = in_parts(decoded, findings=lambda: findings)
    events, base = whole_events(whole, findings)
    assert drawn(document["traceEvents"], report.base_ns) == drawn(events, base)
    at_once = written(whole, findings=findings)[1]
    assert report == replace(at_once, bytes=report.bytes)
    assert len(events) > 1000


@given(testing.traces(**TRACES), st.lists(st.floats(0, 1), max_size=4))
@settings(max_examples=some(100))
def test_any_rows_in_parts_are_all_written(trace, cuts):
    """Whatever the order of rows: what crosses a part goes to a row where it fits. Flows are another matter."""
    bare = Trace(trace.time, {name: table for name, table in trace.tables().items() if name != "flows"})
    document, report = in_parts(cut(bare, cuts))
    events, base = whole_events(bare)
    assert drawn(document["traceEvents"], report.base_ns, has_rows=False) == drawn(events, base, has_rows=False)
    assert_no_overlap(document["traceEvents"])


def test_flows_of_several_parts_have_ids_of_their_own():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core", kind="lane", role="core")
    batches = []
    for start in (0, 100):
        first = builder.append("slices", track_id=lane, ts=[start, start + 20], dur=[10, 10], name=["a", "b"])
        builder.append(
            "flows",
            kind="signal",
            src_track_id=lane,
            src_ts=start,
            dst_track_id=lane,
            dst_ts=start + 20,
            src_slice_id=first,
            dst_slice_id=first + 1,
        )
        batches.append(builder.batch())
    builder.append("slices", track_id=lane, ts=200, dur=1, name="c")
    document, report = in_parts([*batches, builder.finish()])
    ends = [(event["ph"], event["id"]) for event in document["traceEvents"] if event["ph"] in "sf"]
    assert sorted(ends) == [("f", 1), ("f", 2), ("s", 1), ("s", 2)]
    assert report.flows == 2


def test_times_before_those_of_the_first_part_stay_above_zero():
    builder = TraceBuilder(TimeBase())
    lanes = [builder.track(f"core {n}", kind="lane", role="core") for n in range(2)]
    start = 1_700_000_000_000_000_123
    batches = []
    for lane, ts in zip(lanes, (start, start - 1_000_000), strict=True):
        builder.append("slices", track_id=lane, ts=ts, dur=3, name="a")
        batches.append(builder.batch())
    document, report = in_parts([*batches, builder.finish()])
    times = [nanos(event["ts"]) for event in document["traceEvents"] if event["ph"] == "X"]
    assert [time + report.base_ns for time in times] == [start, start - 1_000_000]
    assert all(0 <= time <= 2**53 for time in times)


@pytest.mark.parametrize("first", [-1, -7_003, -(1 << 60)])
def test_times_before_zero_are_taken_off_and_read_back(first, tmp_path):
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core", kind="lane", role="core")
    counter = builder.track("power", kind="counter", role="device", unit="W")
    builder.append("slices", track_id=lane, ts=[first, 40], dur=[30, 50], name=["a", "b"])
    builder.append("instants", track_id=lane, ts=first + 5, name="c")
    builder.append("counters", track_id=counter, ts=first + 2, value=3.0)
    trace = builder.finish()
    document, report = written(trace)
    assert report.base_ns == first
    assert min(event["ts"] for event in document["traceEvents"] if "ts" in event) == 0
    trace.save(tmp_path / "a.json")
    again = lanescope.open(tmp_path / "a.json")
    assert [(row["ts"], row["dur"], row["name"]) for row in again.slices.rows()] == [(first, 30, "a"), (40, 50, "b")]
    assert again.instants["ts"].tolist() == [first + 5]
    assert again.counters["ts"].tolist() == [first + 2]


def test_parts_with_times_before_zero_leave_room_for_earlier_ones():
    builder = TraceBuilder(TimeBase())
    lanes = [builder.track(f"core {n}", kind="lane", role="core") for n in range(2)]
    batches = []
    for lane, ts in zip(lanes, (-5, -1_000_000), strict=True):
        builder.append("slices", track_id=lane, ts=ts, dur=3, name="a")
        batches.append(builder.batch())
    document, report = in_parts([*batches, builder.finish()])
    times = [nanos(event["ts"]) for event in document["traceEvents"] if event["ph"] == "X"]
    assert [time + report.base_ns for time in times] == [-5, -1_000_000]
    assert all(time >= 0 for time in times)


def test_times_that_are_too_far_apart_are_refused():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core", kind="lane", role="core")
    builder.append("slices", track_id=lane, ts=[-(1 << 62), 1 << 62], dur=3, name="a")
    with pytest.raises(UsageError, match="too far apart"):
        written(builder.finish())


def test_times_too_far_before_those_of_the_first_part_are_refused(tmp_path):
    builder = TraceBuilder(TimeBase())
    lanes = [builder.track(f"core {n}", kind="lane", role="core") for n in range(2)]
    start, days = 1_700_000_000_000_000_123, 24 * 3600 * 10**9
    batches = []
    for lane, ts in zip(lanes, (start, start - 53 * days), strict=True):
        builder.append("slices", track_id=lane, ts=ts, dur=3, name="a")
        batches.append(builder.batch())
    last = builder.finish()
    with pytest.raises(UsageError, match=f"starts {53 * days - 2**52} ns before the earliest time") as caught:
        chrome.write(iter([*batches, last]), tmp_path / "run.json", in_parts=True)
    assert "pftrace" in caught.value.hint
    assert list(tmp_path.iterdir()) == []
    document, report = written(iter([*batches, last]))
    assert report.base_ns == start - 53 * days
    assert sorted(nanos(e["ts"]) for e in document["traceEvents"] if e["ph"] == "X") == [0, 53 * days]


@given(strategies.traces(**TRACES))
def test_no_thread_holds_what_a_reader_would_drop(trace):
    assert_no_overlap(written(trace)[0]["traceEvents"])


def assert_no_overlap(events):
    """Slices of a thread nest."""
    stacks = {}
    slices = [event for event in events if event["ph"] in "XB"]
    slices.sort(key=lambda e: (e["ts"], -e["dur"] if e["ph"] == "X" else -float("inf")))
    for event in slices:
        begin = nanos(event["ts"])
        end = begin + nanos(event["dur"]) if event["ph"] == "X" else float("inf")
        stack = stacks.setdefault((event["pid"], event["tid"]), [])
        while stack and stack[-1] <= begin:
            stack.pop()
        assert not stack or end <= stack[-1], "overlap on one thread"
        stack.append(end)


def toy(**slices):
    builder = TraceBuilder(TimeBase(), details=(TASKS,))
    device = builder.track('device "0"', kind="group", role="device")
    lane = builder.track("lane 0", kind="lane", role="core", parent=device)
    other = builder.track("lane 1", kind="lane", role="core", parent=device)
    first = builder.append(
        "slices", **{"track_id": lane, "ts": [0, 1500], "dur": [1001, 7], "name": "a\\b\x1f", **slices}
    )
    return builder, first, lane, other


def test_arguments_keep_their_types():
    builder, first, *_ = toy()
    builder.append(
        "toy_tasks",
        slice_id=[first, first + 1],
        task=[2**64 - 1, 3],
        wait=[5, 0],
        wait_valid=[True, False],
        share=[0.1, np.inf],
        note=['"', "é"],
        is_cold=[True, False],
        hidden=[1, 2],
    )
    events = [e for e in written(builder.finish())[0]["traceEvents"] if e["ph"] == "X"]
    assert [e["args"] for e in events] == [
        {"task": str(2**64 - 1), "wait": 5, "share": 0.1, "note": '"', "is_cold": True},
        {"task": "3", "share": "inf", "note": "é", "is_cold": False},
    ]
    assert events[0]["name"] == "a\\b\x1f"


def test_times_are_exact_far_from_zero():
    start = 1_700_000_000_000_000_123
    builder, *_ = toy(ts=[start, start + 2**53])
    document, report = written(builder.finish())
    assert report.base_ns == start
    assert [nanos(e["ts"]) for e in document["traceEvents"] if e["ph"] == "X"] == [0, 2**53]


def test_gzip_holds_the_same_and_does_not_depend_on_the_clock(tmp_path):
    builder, *_ = toy()
    trace = builder.finish()
    report = chrome.write(trace, tmp_path / "a.json.gz", compress=True)
    chrome.write(trace, tmp_path / "b.json.gz", compress=True)
    content = (tmp_path / "a.json.gz").read_bytes()
    assert content == (tmp_path / "b.json.gz").read_bytes()
    assert len(content) == report.bytes
    assert json.loads(gzip.decompress(content)) == written(trace)[0]


@pytest.fixture
def full(tmp_path):
    """One of everything, in a file."""
    builder, first, lane, other = toy(ts=[1000, 5000, 6000], dur=[1001, 3000, 0], dur_valid=[1, 1, 0], name="load")
    ids = builder.append("slices", track_id=other, ts=[3000, 4000], dur=[2000, 5000], name="late")
    for source, destination in ((first, ids), (first, ids + 1), (first + 1, ids + 1)):
        builder.append(
            "flows",
            kind="dependency",
            src_track_id=lane,
            src_ts=1000,
            dst_track_id=other,
            dst_ts=3000,
            src_slice_id=source,
            dst_slice_id=destination,
        )
    counter = builder.track("depth", kind="counter", role="queue")
    builder.append("counters", track_id=counter, ts=[1000, 2000], value=[1.5, -2.0])
    builder.append("instants", track_id=lane, ts=1500, name="mark")
    builder.append("gaps", track_id=other, ts=20_000, dur=500, cause="overrun", lost_count=3)
    chrome.write(builder.finish(), tmp_path / "full.json")
    return tmp_path / "full.json"


def test_the_trace_processor_reads_all_of_it(full, trace_processor):
    spans, flows, samples, threads, faults = trace_processor(
        full,
        "select name, ts, dur from slice order by ts, name",
        "select count(*) n from flow",
        "select ts, value from counter order by ts",
        "select name from thread where name is not null order by 1",
        "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
    )
    assert [(row["name"], row["ts"], row["dur"]) for row in spans] == [
        ("load", 1000, 1001),
        ("mark", 1500, 0),
        ("late", 3000, 2000),
        ("late", 4000, 5000),
        ("load", 5000, 3000),
        ("load", 6000, -1),
        ("overrun", 20_000, 500),
    ]
    assert flows == [{"n": 2}]  # the third comes before its cause begins
    assert [(row["ts"], row["value"]) for row in samples] == [(1000, 1.5), (2000, -2.0)]
    assert {"lane 0", "lane 0 #1", "lane 1", "lane 1 #1"} <= {row["name"] for row in threads}
    assert faults == []
