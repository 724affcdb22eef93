"""Suspect rows are marked where they are drawn."""

from __future__ import annotations

import io
import json

import pytest

import lanescope
from lanescope.analysis import check
from lanescope.analysis.check.suspect_marks import SuspectMarks
from lanescope.io import perfetto
from lanescope.io.chrome import ChromeSink
from lanescope.io.perfetto import PerfettoSink
from lanescope.pipeline.observers import Annotations
from lanescope.pipeline.run import run
from lanescope.trace import TimeBase, Trace, TraceBuilder
from lanescope.trace.streams import StreamInfo
from passes import Passes

FAR = 5_000_000
MARKED = """
select s.name as name, s.ts as ts, s.dur as dur, a.string_value as suspect
from slice s join args a using (arg_set_id) where a.key = 'debug.suspect' order by ts, s.id
"""


def batches(*, is_stray=True, count=3):
    """Slices of four lanes in several batches; one in the last batch, and an instant, are far from all others."""
    builder = TraceBuilder(TimeBase())
    lanes = [builder.track(f"core {number}", kind="lane", role="core") for number in range(4)]
    found = []
    for number in range(count):
        for lane in lanes:  # no two of them at the same times
            ts = [number * 100 + at + lane for at in range(0, 100, 10)]
            builder.append("slices", track_id=lane, ts=ts, dur=[5] * 10, name=["work"] * 10)
        if is_stray and number == count - 1:
            builder.append("slices", track_id=lanes[2], ts=[FAR], dur=[5], name=["stray"])
            builder.append("instants", track_id=lanes[2], ts=[FAR + 1], name=["stray instant"])
        found.append(builder.batch())
    return [*found, builder.finish()]


def converted(path, given, *, is_sorted=True):
    sink = (ChromeSink if path.suffix == ".json" else PerfettoSink)(path)
    info = StreamInfo(is_sorted=is_sorted)
    return run(Passes(given, info=info), sink=sink, annotate=Annotations())


def events(path):
    return [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] in "Xi"]


@pytest.mark.parametrize("is_sorted", [False, True])
def test_suspect_rows_of_a_stream_have_the_codes_as_an_argument(is_sorted, tmp_path):
    given = batches()
    report = converted(tmp_path / "out.json", given, is_sorted=is_sorted)
    assert report.passes == (3 if is_sorted else 1)
    assert report.unmarked == 0
    drawn = events(tmp_path / "out.json")
    assert len([event for event in drawn if event["ph"] == "X"]) == 121
    marked = {event["name"]: event["args"]["suspect"] for event in drawn if "suspect" in event.get("args", {})}
    assert marked == {"stray": "LS501", "stray instant": "LS501"}


def test_a_perfetto_file_written_again_is_that_of_a_stream_whose_rows_are_marked_at_once(tmp_path):
    given, path, wanted = batches(), tmp_path / "out.pftrace", tmp_path / "wanted.pftrace"
    source, annotate = Passes(given, info=StreamInfo(is_sorted=True)), Annotations()
    report = run(source, sink=PerfettoSink(path, compress=False), annotate=annotate)
    marks = SuspectMarks(check.run(Trace.concat(given)))
    perfetto.write(map(marks.apply, given), wanted, compress=False, in_parts=True, findings=annotate.result())
    assert report.passes == 3
    assert path.read_bytes() == wanted.read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.pftrace", "wanted.pftrace"]


def test_sound_rows_take_one_pass_and_have_no_marks(tmp_path):
    report = converted(tmp_path / "out.json", batches(is_stray=False))
    assert (report.passes, report.unmarked) == (1, 0)
    assert [event.get("args", {}) for event in events(tmp_path / "out.json")] == [{}] * 120


def test_what_cannot_be_written_twice_has_no_marks_and_says_how_many_are_missing():
    out = io.BytesIO()
    report = run(Passes(batches(), info=StreamInfo(is_sorted=True)), sink=ChromeSink(out), annotate=Annotations())
    assert (report.passes, report.unmarked) == (2, 2)
    assert b'"suspect"' not in out.getvalue()
    assert len(json.loads(out.getvalue())["traceEvents"]) > 121


def test_a_row_that_several_rules_suspect_has_all_codes():
    builder = TraceBuilder(TimeBase())
    lanes = [builder.track(f"core {number}", kind="lane", role="core") for number in range(4)]
    for lane in lanes:
        builder.append("slices", track_id=lane, ts=[*range(0, 400, 10)], dur=[5] * 40, name=["work"] * 40)
    builder.append("slices", track_id=lanes[1], ts=[FAR, FAR], dur=[200, 200], name=["stray", "stray"])
    trace = builder.finish()
    findings = check.run(trace, select=["LS5"])
    assert {"LS501", "LS505"} <= {finding.code for finding in findings}
    marks = SuspectMarks(findings)
    [table] = [marks.apply(trace).details["suspect_slices"]]
    by_id = dict(zip(table.values("slice_id").tolist(), table.values("suspect").tolist(), strict=True))
    for finding in findings:
        for row in finding.evidence.ids.tolist():
            assert finding.code in by_id[row].split(",")
    assert any("," in codes for codes in by_id.values())
    assert marks.count == len(by_id)


@pytest.mark.parametrize("name", ["ascend/phase_86s", "cuda/cuda_clockstep_2s.npy"])
def test_the_trace_processor_finds_the_marks(name, corpus, trace_processor, tmp_path):
    capture, path = corpus / "repro" / name, tmp_path / "out.pftrace"
    lanescope.convert(capture, path)
    trace = lanescope.open(capture)
    wanted = []
    for finding in check.run(trace, select=["LS5"]):
        slices = trace.slices.take(finding.evidence.ids)
        names, starts, lengths = (slices.values(column).tolist() for column in ("name", "ts", "dur"))
        wanted += [
            {"name": name, "ts": ts, "dur": dur, "suspect": finding.code}
            for name, ts, dur in zip(names, starts, lengths, strict=True)
        ]
    assert wanted
    marked, [total] = trace_processor(path, MARKED, "select count(*) as n from slice where dur > 0")
    key = lambda row: (int(row["ts"]), row["name"], int(row["dur"]))  # noqa: E731
    assert sorted(map(key, marked)) == sorted(map(key, wanted))
    assert {row["suspect"] for row in marked} == {row["suspect"] for row in wanted}
    assert len(marked) < int(total["n"])
