"""Traces of all device families, written by our writer and read back: the rows of the timeline are equal.

What the format has no place for is not compared: clocks and ticks, coverage, detail tables, stats; flows whose effect
comes before its cause, which the writer counts; of a flow that reaches a slice in its middle, the slice; and of one
that leaves or reaches a slice elsewhere but at its start and its end, the moment.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from effort import TRACES, some
from lanescope.analysis import check
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.foreign.perfetto.formats import messages
from lanescope.io import perfetto
from lanescope.testing import assert_accounted, assert_consistent, strategies
from lanescope.trace import TimeBase, Trace, TraceBuilder

#: Losses, drops and wraps: rows with flags, gaps and unknown ends.
DEVICES = {
    "aie": [{"tiles": 2, "records": 3000, "overruns": 2, "bad_headers": 0.01, "zeros": 40}],
    "ascend": [{}],
    "cuda": [{}],
    "levelzero": [{"lost": 0.05}],
}


def simulated(name: str, options: dict[str, Any], folder) -> Trace:
    family = registry.family(name)
    files = family.simulate(resolve_options(family.sim_options, options, what=name), 3).files
    for file, content in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)
    return lanescope.open(folder / next(iter(files)), family=name)


def paths(trace: Trace) -> dict[int, tuple[str, ...]]:
    rows = {row["id"]: row for row in trace.tracks.rows()}

    def path(row) -> tuple[str, ...]:
        above = () if row["parent_id"] is None else path(rows[row["parent_id"]])
        return (*above, text(row["name"]))

    return {track: path(row) for track, row in rows.items()}


def rows_of(trace: Trace, table: str, columns: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
    where = paths(trace)
    return Counter((where[row["track_id"]], *(row[name] for name in columns)) for row in getattr(trace, table).rows())


SLICE = ("ts", "dur", "name", "category", "quality", "flags", "last_known_ts")
INSTANT = ("ts", "name", "category", "quality", "flags")
GAP = ("ts", "dur", "cause", "lost_count", "first_offset")


def flows_of(trace: Trace) -> Counter[Any]:
    where = paths(trace)
    slices = {row["id"]: row for row in trace.slices.rows()}

    def end(row, side) -> Any:
        slice_ = slices.get(row[f"{side}_slice_id"])
        if slice_ is None:
            return (where[row[f"{side}_track_id"]], row[f"{side}_ts"])
        return (where[slice_["track_id"]], slice_["ts"], slice_["dur"], text(slice_["name"]))

    return Counter((row["kind"], end(row, "src"), end(row, "dst")) for row in trace.flows.rows())


def tracks_of(trace: Trace) -> Iterator[tuple[Any, ...]]:
    columns = ("id", "parent_id", "kind", "role", "name", "sort_key", "nesting", "unit")
    return (tuple(text(row[name]) for name in columns) for row in trace.tracks.rows())


def text(value: Any) -> Any:
    """Return a value as it is in UTF-8, which has no halves of characters."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def moments_of(trace: Trace) -> Counter[Any]:
    """Return kind, lanes and times of all flows; those that lie inside of a slice are held to be at its start."""
    slices = {row["id"]: row for row in trace.slices.rows()}

    def moment(row: dict[str, Any], side: str, after: int) -> int:
        ts, slice_ = row[f"{side}_ts"], slices.get(row[f"{side}_slice_id"])
        if slice_ is None or slice_["ts"] < after:  # it reaches a slice in its middle: that is drawn at its time
            return ts
        is_end = slice_["dur"] is not None and ts == slice_["ts"] + slice_["dur"]
        return ts if is_end else slice_["ts"]

    found = Counter[Any]()
    for row in trace.flows.rows():
        source = slices.get(row["src_slice_id"], {"ts": row["src_ts"]})["ts"]
        times = moment(row, "src", source), moment(row, "dst", source)
        found[row["kind"], row["src_track_id"], row["dst_track_id"], *times] += 1
    return found


def order_of(trace: Trace) -> dict[tuple[str, ...], list[str]]:
    where = paths(trace)
    found: dict[tuple[str, ...], list[str]] = {}
    for row in sorted(trace.tracks.rows(), key=lambda row: (row["sort_key"], row["id"])):
        found.setdefault(where[row["id"]][:-1], []).append(row["name"])
    return found


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize(("name", "options"), [(name, each) for name, many in DEVICES.items() for each in many])
def test_a_trace_comes_back_as_it_was_written(name, options, compress, tmp_path):
    trace = simulated(name, options, tmp_path)
    file = tmp_path / "back.pftrace"
    report = perfetto.write(trace, file, compress=compress)
    back = lanescope.open(file)
    assert_consistent(back)
    assert_accounted(back, lost=0)
    assert back.time == trace.time
    assert rows_of(back, "slices", SLICE) == rows_of(trace, "slices", SLICE)
    assert rows_of(back, "instants", INSTANT) == rows_of(trace, "instants", INSTANT)
    assert rows_of(back, "counters", ("ts", "value")) == rows_of(trace, "counters", ("ts", "value"))
    assert rows_of(back, "gaps", GAP) == rows_of(trace, "gaps", GAP)
    assert order_of(back) == order_of(trace)
    wanted, found = flows_of(trace), flows_of(back)
    assert found.total() == report.flows
    for pair in found - wanted:  # reaches a slice that was running: ends at the moment of its arrival
        assert len(pair[2]) == 2, pair
    assert list(tracks_of(back)) == list(tracks_of(trace))
    assert moments_of(back) <= moments_of(trace)
    lost = sum(row["count"] for row in trace.stats.rows() if row["severity"] == "data_loss")
    assert sum(row["count"] for row in back.stats.rows() if row["severity"] == "data_loss") == lost


def test_reading_again_what_was_read_and_written_changes_nothing(tmp_path):
    trace = simulated("cuda", {}, tmp_path)
    once, twice = tmp_path / "1.pftrace", tmp_path / "2.pftrace"
    perfetto.write(trace, once)
    first = lanescope.open(once)
    perfetto.write(first, twice)
    second = lanescope.open(twice)
    assert rows_of(second, "slices", SLICE) == rows_of(first, "slices", SLICE)
    assert flows_of(second) == flows_of(first)
    assert second.time == first.time


#: Of rows: what they are numbered by, and readings of counters of the device.
NOT_HELD = {"id", "ts_ticks", "dur_ticks", "input_id", "slice_id"}


def all_of(trace: Trace, table: str) -> Counter[Any]:
    return Counter(
        tuple((name, text(value)) for name, value in row.items() if name not in NOT_HELD)
        for row in getattr(trace, table).rows()
    )


@given(strategies.batches(**TRACES), st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=some(300))
def test_any_trace_comes_back(tmp_path_factory, batches, compress, in_parts, with_findings):
    file = tmp_path_factory.getbasetemp() / "any.pftrace"
    trace = Trace.concat(batches)
    findings = check.to_table(check.run(trace)) if with_findings else None
    report = perfetto.write(batches, file, compress=compress, in_parts=in_parts, findings=findings)
    back = lanescope.open(file)
    assert_consistent(back)
    assert_accounted(back, lost=0)
    assert back.time == trace.time
    assert list(tracks_of(back)) == list(tracks_of(trace))
    for table in ("slices", "instants", "counters", "gaps"):
        assert all_of(back, table) == all_of(trace, table), table
    assert len(back.flows) == report.flows == len(trace.flows) - report.flows_undrawn
    assert moments_of(back) <= moments_of(trace)
    if not in_parts:  # where flows reach slices of earlier parts
        for kind, source, destination in flows_of(back) - flows_of(trace):  # reaches a slice in its middle
            assert len(destination) == 2, (kind, source, destination)


def noted(**notes: Any) -> bytes:
    """Return the packet of notes that lanescope appends, with these entries instead."""
    entries = [f"lanescope.{name}".encode() for name in notes]
    texts = [value if isinstance(value, bytes) else json.dumps(value).encode() for value in notes.values()]
    body = b"".join(field(2, field(1, name) + field(2, value)) for name, value in zip(entries, texts, strict=True))
    return field(1, field(5, body))


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def linked() -> tuple[bytes, int]:
    """Return a file with two flows, without its notes, and the least uuid of its tracks, which follows no flow."""
    builder = TraceBuilder(TimeBase(epoch_ns=5, epoch_kind="unix"))
    top = builder.track("gpu", kind="group", role="device")
    lanes = [builder.track(name, kind="lane", role="queue", parent=top, nesting="free") for name in "ab"]
    first = builder.append("slices", track_id=np.array(lanes), ts=[3, 20], dur=[4, 5], name="x")
    ends = {"src_track_id": lanes[0], "dst_track_id": lanes[1], "src_slice_id": first, "dst_slice_id": first + 1}
    builder.append("flows", kind="signal", src_ts=7, dst_ts=20, **ends)
    builder.append("flows", kind="submit", src_ts=3, dst_ts=25, **ends)
    out = io.BytesIO()
    perfetto.write(builder.finish(), out, compress=False)
    packets = [body for _, body in messages.fields(out.getvalue())]
    (first,) = re.findall(rb'"first":(\d+)', packets[-1])
    return b"".join(field(1, body) for body in packets[:-1]), int(first)


def read_back(path: Path, content: bytes) -> Trace:
    path.write_bytes(content)
    back = lanescope.open(path)
    assert_consistent(back)
    assert_accounted(back, lost=0)
    return back


KINDS = [["group", "device", "disjoint"], ["lane", "queue", "free"]]


def flow_times(trace: Trace) -> list[tuple[Any, ...]]:
    return sorted((row["kind"], row["src_ts"], row["dst_ts"]) for row in trace.flows.rows())


def test_notes_tell_what_flows_and_tracks_are(tmp_path):
    content, first = linked()
    about = {"first": first, "tracks": [0, 1, 1], "kinds": KINDS, "sort_keys": [4, -1, 9]}
    # Ids of flows begin where those of tracks do. In any order; what one says is not what another says.
    flows = [[first + 1, 1, "submit", "start", "end"], [first, 1, "signal", "end", "start"]]
    back = read_back(tmp_path / "a.pftrace", content + noted(tracks=about, flows=flows))
    assert flow_times(back) == [("signal", 7, 20), ("submit", 3, 25)]
    assert back.tracks["sort_key"].tolist() == [4, -1, 9]
    assert back.tracks["role"].tolist() == ["device", "queue", "queue"]
    assert back.tracks["nesting"].tolist() == ["disjoint", "free", "free"]


@pytest.mark.parametrize(
    "flows",
    [
        None, 7, "x", {}, [], [[]], [7], [None], b"[", b"\xff", b"[" * 100_000, b"[[1" + b"0" * 9999 + b",1]]",
        [[0, 1, "signal", "end", "end"]],  # of no flow here
        [["first", -2, "signal", "end", "end"], [-1, 1 << 62, "signal", "end", "end"]],
        [["first", 1 << 70, "signal", "end", "end"]],
        [["first", 2.0, "signal", "end", "end"], ["first", True, "signal", "end", "end"]],
        [["first", 2, "signal", "end"], ["first", 2, "signal", "end", "end", ""]],
        [["first", 2, "moon", "end", "end"], ["first", 2, ["signal"], "end", "end"], ["first", 2, 0, "end", "end"]],
        [["first", 2, "dependency", ["end"], {}]],
    ],
)  # fmt: skip
def test_notes_that_make_no_sense_leave_plain_dependencies(tmp_path, flows):
    content, first = linked()
    if isinstance(flows, list) and any(isinstance(group, list) and "first" in group[:1] for group in flows):
        flows = [[first, *group[1:]] if group[0] == "first" else group for group in flows]
    back = read_back(tmp_path / "a.pftrace", content + noted(flows=flows))
    assert flow_times(back) == [("dependency", 3, 20)] * 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"first": "x"}, {"first": -1}, {"first": 1 << 80}, {"first": 12345}, {"first": None},
        {"tracks": [0, 1]}, {"tracks": [0, 1, 2]}, {"tracks": [0, 1, -1]}, {"tracks": [0, 1, "1"]}, {"tracks": None},
        {"tracks": {}, "sort_keys": []}, {"tracks": 7}, {"tracks": [0, 1, True]},
        {"kinds": []}, {"kinds": None}, {"kinds": [["group", "device"], ["lane", "queue", "free"]]},
        {"kinds": [["line", "device", "free"], ["lane", "queue", "free"]]},
        {"kinds": [["group", 7, "free"], ["lane", "queue", "free"]]},
        {"kinds": [["group", "device", "wild"], ["lane", "queue", "free"]]},
        {"kinds": [["group", "device", []], ["lane", "queue", "free"]]},
        {"sort_keys": [0, 1, 1 << 62]}, {"sort_keys": [0, 1, 0.5]}, {"sort_keys": "012"},
        {"kinds": [["counter", "device", "free"], ["counter", "queue", "free"]]},  # but they have slices
    ],
)  # fmt: skip
def test_notes_on_tracks_that_make_no_sense_are_not_believed(tmp_path, wrong):
    content, first = linked()
    about = {"first": first, "tracks": [0, 1, 1], "kinds": KINDS, "sort_keys": [4, -1, 9], **wrong}
    back = read_back(tmp_path / "a.pftrace", content + noted(tracks=about))
    assert back.tracks["role"].tolist() == ["track"] * 3
    assert back.tracks["name"].tolist() == ["gpu", "a", "b"]
    assert len(back.slices) == len(back.flows) == 2


def test_halves_of_characters_in_notes_are_replaced(tmp_path):
    content, first = linked()
    kinds = [["group", "\ud800", "disjoint"], KINDS[1]]
    about = {"first": first, "tracks": [0, 1, 1], "kinds": kinds, "sort_keys": [0, 1, 2]}
    back = read_back(tmp_path / "a.pftrace", content + noted(tracks=about))
    assert back.tracks["role"].tolist() == ["?", "queue", "queue"]


def test_notes_in_a_file_of_another_tool_are_not_believed(tmp_path):
    content, first = linked()
    other = content.replace(b"time unit", b"time_unit")
    about = {"first": first, "tracks": [0, 1, 1], "kinds": KINDS, "sort_keys": [4, -1, 9]}
    back = read_back(tmp_path / "a.pftrace", other + noted(tracks=about, flows=[[first, 2, "signal", "end", "end"]]))
    assert {row["kind"] for row in back.flows.rows()} == {"dependency"}
    assert "device" not in back.tracks["role"].tolist()
    # What another tool notes there is counted as packets of another data source.
    other = read_back(tmp_path / "b.pftrace", content + field(1, field(5, field(2, field(1, b"os") + field(2, b"x")))))
    assert [row["source"] for row in other.details["perfetto_packets"].rows()] == ["chrome_events"]


def test_two_files_end_to_end_keep_what_each_says(tmp_path):
    files, kinds = [], Counter[str]()
    for name in ("levelzero", "ascend"):
        (tmp_path / name).mkdir()
        perfetto.write(simulated(name, {}, tmp_path / name), tmp_path / f"{name}.pftrace")
        files.append(tmp_path / f"{name}.pftrace")
        kinds += Counter(lanescope.open(files[-1]).flows["kind"].tolist())
    both = read_back(tmp_path / "both.pftrace", b"".join(file.read_bytes() for file in files))
    assert len(kinds) > 1
    assert Counter(both.flows["kind"].tolist()) == kinds
