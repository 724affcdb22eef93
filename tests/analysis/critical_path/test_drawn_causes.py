"""Arrows that others drew are causes: one of them is made late, in files that the readers read, and the path names it.

Two threads hand work to each other. With a pause between the end of one piece of work and the begin of the next, the
longest part of the path is that arrow; without one it is work.
"""

import json
import random

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceProto

import lanescope
from analysis.critical_path.test_late_causes import is_named, part_of
from effort import seeds
from lanescope import TimeBase, TraceBuilder
from lanescope.cli import main
from track_events import packets

SEEDS = seeds(30, least=3, first=8_200)


def handed_over(seed, pause):
    """Return thread, name, begin and end of each piece of work; each waits for the one before."""
    draw = random.Random(seed)
    late, found, time = draw.randrange(5, 30), [], 1_000
    for number in range(40):
        time += draw.randint(1_000, 4_000) + (pause if number == late else 0)
        length = draw.randint(20_000, 60_000)
        found.append((number % 2, f"step {number % 4}", time, time + length))
        time += length
    return found


def chrome(folder, work):
    """Write trace events as others do, in microseconds, each flow from within a slice to where the next one begins."""
    events = []
    for number, (thread, name, begin, end) in enumerate(work):
        place = {"pid": 7, "tid": 10 + thread}
        events.append(
            {"ph": "X", "name": name, "cat": "step", **place, "ts": begin / 1000, "dur": (end - begin) / 1000}
        )
        flow = {"name": "hand over", "cat": "sync", **place}
        if number:
            events.append({"ph": "f", "bp": "e", "id": number, **flow, "ts": begin / 1000})
        events.append({"ph": "s", "id": number + 1, **flow, "ts": (end - 1) / 1000})
    path = folder / "run.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return lanescope.open(path)


def perfetto(folder, work):
    """Write packets as others do: without what lanescope notes of kinds and moments of flows."""
    path = folder / "run.pftrace"
    written_by_us(folder, work)
    kept = [packet for packet in packets(path.read_bytes()) if not packet.HasField("chrome_events")]
    path.write_bytes(TraceProto(packet=kept).SerializeToString())
    return lanescope.open(path)


def written_by_us(folder, work):
    builder = TraceBuilder(TimeBase())
    lanes = [builder.track(f"thread {number}", kind="lane", role="host_thread") for number in range(2)]
    thread, name, begin, end = zip(*work, strict=True)
    track = [lanes[number] for number in thread]
    length = [b - a for a, b in zip(begin, end, strict=True)]
    first = builder.append("slices", track_id=track, ts=begin, dur=length, name=name)
    builder.append(
        "flows",
        kind=["signal"] * (len(work) - 1),
        src_track_id=track[:-1],
        src_ts=end[:-1],
        dst_track_id=track[1:],
        dst_ts=begin[1:],
        src_slice_id=range(first, first + len(work) - 1),
        dst_slice_id=range(first + 1, first + len(work)),
    )
    path = folder / "run.pftrace"
    builder.finish().save(path, replace=True)
    return lanescope.open(path)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("made", [chrome, perfetto, written_by_us])
def test_an_arrow_that_is_late_is_named(tmp_path, made, seed):
    def plant(pause):
        return made(tmp_path, handed_over(seed, pause))

    (kind,) = set(plant(0).flows["kind"].tolist())
    if made is perfetto:  # whose files say when a slice begins that lets a flow go, not when in it that is
        kind += " from end"
    is_named(plant, kind, 400_000)
    _, cause, dur, rows = part_of(plant(0))
    assert cause == "work"
    assert dur <= 60_000
    assert sum(row["dur"] for row in rows if row["kind"] == kind) <= 40 * 4_001


def test_a_moment_that_is_not_recorded_is_no_exact_one(tmp_path, capsys):
    """A flow of Perfetto counts from the end of its slice: paths say so, wherever it is on them."""
    work = handed_over(1, 0)
    path = perfetto(tmp_path, work).critical_path()
    handed = [row for row in path.parts.rows() if row["kind"] == "dependency from end"]
    assert {row["quality"] for row in handed} == {"estimated"}
    assert {row["quality"] for row in path.parts.rows() if not row["kind"]} == {"exact"}
    assert path.longest.at_ends == {"dependency from end": len(work) - 1}
    assert [(row["kind"], row["quality"]) for row in path.edges.rows()] == [("dependency from end", "estimated")]
    assert main(["critical-path", str(tmp_path / "run.pftrace")]) == 0
    assert "estimated: 39 times on the path a cause of kind 'dependency from end'" in capsys.readouterr().err
    for made in (chrome, written_by_us):
        recorded = made(tmp_path, work).critical_path()
        assert recorded.longest.at_ends == {}
        assert set(recorded.parts["quality"].tolist()) == {"exact"}
