"""A Perfetto file written batch by batch shows what one that is written at once shows."""

from __future__ import annotations

import io
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import TRACES, some
from lanescope import testing
from lanescope.analysis import check
from lanescope.io import perfetto
from lanescope.trace import TimeBase, Trace, TraceBuilder
from track_events import SQL, assert_drawn, by_bindings, by_perfetto, packets


def written(batches, **options) -> tuple[bytes, perfetto.WriteReport]:
    out = io.BytesIO()
    report = perfetto.write(batches, out, **options)
    assert report.bytes == len(out.getvalue())
    return out.getvalue(), report


def test_a_decode_in_parts_shows_the_same(decoded, trace_processor, tmp_path):
    whole = Trace.concat(decoded)
    findings = check.to_table(check.run(whole))
    assert len(findings)
    path = tmp_path / "parts.pftrace"
    report = perfetto.write(iter(decoded), path, in_parts=True, findings=lambda: findings)
    at_once, plain = written(whole, findings=findings)
    picture = by_perfetto(trace_processor(path, *SQL))
    assert picture == by_bindings(at_once)
    assert by_bindings(path.read_bytes()) == picture
    same = ("slices", "gaps", "instants", "samples", "findings", "rows", "overflow_rows", "lost")
    assert [getattr(report, name) for name in same] == [getattr(plain, name) for name in same]


def test_threads_change_no_packet(decoded, monkeypatch):
    """What igzip makes of a block may differ by a byte from time to time; what is in it may not."""
    several, _ = written(iter(decoded), in_parts=True)
    monkeypatch.setattr(perfetto, "BLOCK", 1 << 10)
    monkeypatch.setattr(perfetto, "_MOST_WAITING", 2)
    found = []
    for cores in (1, 4):
        monkeypatch.setattr(perfetto, "_CORES", cores)
        data, report = written(iter(decoded), in_parts=True)
        raw, _ = written(iter(decoded), in_parts=True, compress=False)
        found.append(([str(packet) for packet in packets(data)], report.raw_bytes, raw))
    assert found[0] == found[1]
    assert found[0][0] == [str(packet) for packet in packets(several)]


@given(st.data(), testing.traces(**TRACES))
@settings(max_examples=some(60))
def test_any_rows_in_parts_are_all_drawn(data, trace):
    """Whatever the order of rows: what crosses a part goes to a row where it fits. Flows are another matter."""
    count = len(trace.slices)
    cuts = sorted(data.draw(st.lists(st.integers(0, count), max_size=3)))
    edges = [0, *cuts, count]
    names = ("instants", "counters", "gaps", "coverage", "stats", "accounting")
    shared = {name: getattr(trace, name) for name in ("inputs", "tracks", "clocks", "anchors")}
    batches = [
        Trace(trace.time, {**shared, "slices": trace.slices.take(np.arange(first, last))})
        for first, last in pairwise(edges)
    ]
    rest = {name: getattr(trace, name) for name in names}
    batches.append(Trace(trace.time, {**shared, **rest}))
    bare = Trace(trace.time, {**shared, **rest, "slices": trace.slices})
    drawn, _ = written(iter(batches), in_parts=True)
    picture, model = by_bindings(drawn), by_bindings(written(bare)[0])

    def without_level(shapes):
        return sorted((s.path, s.name, s.category, s.ts, s.dur, s.args) for s in shapes.elements())

    assert without_level(picture.slices) == without_level(model.slices)
    assert picture.samples == model.samples
    assert picture.lost == model.lost


def test_a_slice_below_one_that_goes_on_gets_a_row_of_its_own():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core", kind="lane", role="core")
    builder.append("slices", track_id=lane, ts=[0, 100], dur=[50, 900], name=["a", "b"])
    batches = [builder.batch()]
    builder.append("slices", track_id=lane, ts=[500, 1000], dur=[10, 10], name=["c", "d"])
    batches.append(builder.finish())
    data, report = written(iter(batches), in_parts=True)
    assert (report.rows, report.overflow_rows) == (2, 1)
    picture = by_bindings(data)
    assert_drawn(Trace.concat(batches), picture, 0)
    assert {shape.depth for shape in picture.slices} == {0}


def test_findings_without_a_time_are_not_drawn(decoded):
    """They stood at the first slice, as if that had been the place."""
    whole = Trace.concat(decoded)
    findings = check.run(whole)
    timed = [finding for finding in findings if finding.location.ts is not None]
    assert len(timed) < len(findings)
    for batches, in_parts in ((whole, False), (iter(decoded), True)):
        data, report = written(batches, in_parts=in_parts, findings=check.to_table(findings))
        drawn = [s for s in by_bindings(data).slices.elements() if s.category == "lanescope.finding"]
        assert report.findings == len(drawn) == len(timed)
        assert sorted(shape.ts for shape in drawn) == sorted(finding.location.ts for finding in timed)
