"""The span that ``info`` prints is the attested one, with as many rows beyond it as LS501 suspects."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from effort import TRACES, some
from lanescope import testing
from lanescope.analysis import check
from lanescope.analysis.plausibility.attested import attested
from lanescope.analysis.plausibility.attested_span import AttestedSpan
from lanescope.analysis.track_tree import Tree
from lanescope.cli import main
from lanescope.pipeline.run import run
from lanescope.trace import TimeBase, TraceBuilder
from passes import Passes, cut


def found(batches):
    """Return what the observer finds in batches, and how many passes that took."""
    span = AttestedSpan()
    passes = run(Passes(batches), observers=[span]).passes
    return span.result(), passes


def slices(count, strays=(), lanes=8, seed=1):
    """Slices at random times on many lanes; strays are (lane, start, length)."""
    builder, random = TraceBuilder(TimeBase()), np.random.default_rng(seed)
    tracks = [builder.track(f"core {number}", kind="lane", role="core") for number in range(lanes)]
    for track in tracks:
        starts = np.sort(random.integers(0, 1000 * count, count))
        builder.append("slices", track_id=track, ts=starts, dur=random.integers(1, 900, count), name="work")
    for lane, ts, dur in strays:
        builder.append("slices", track_id=tracks[lane], ts=[ts], dur=[dur], name="stray")
    return builder.finish()


@given(testing.traces(**TRACES))
@settings(max_examples=some(60))
def test_any_trace_has_the_window_and_the_slices_of_the_whole_judgement(trace):
    window, rows = attested(trace, Tree(trace.tracks))
    result, _ = found([trace])
    assert (result is None) == (window is None)
    if result is not None:
        assert (result.start, result.end) == window
        assert result.rows >= len(rows)


@given(st.data())
@settings(max_examples=some(30))
def test_strays_are_found_however_a_long_trace_is_cut(data):
    places = st.tuples(st.integers(0, 7), st.integers(10**8, 10**12), st.integers(1, 10**6))
    strays = data.draw(st.lists(places, max_size=4))
    trace = slices(2000, strays)
    batches = cut(trace, data.draw(st.lists(st.floats(0, 1), max_size=3)))
    window, rows = attested(trace, Tree(trace.tracks))
    result, passes = found(batches)
    if not strays:
        assert (result, passes) == (None, 1)
    assert (None if result is None else (result.start, result.end, result.rows)) == (
        None if window is None else (*window, len(rows))
    )


@pytest.mark.parametrize("kind", ["even", "two launches"])
def test_plausible_rows_have_no_other_span(kind):
    trace = slices(500)
    if kind == "two launches":
        builder = TraceBuilder(TimeBase())
        lanes = [builder.track(f"core {number}", kind="lane", role="core") for number in range(8)]
        for lane in lanes:
            for start in (0, 10**9):
                builder.append("slices", track_id=lane, ts=start + 10 * np.arange(200) + lane, dur=[5] * 200, name="a")
        trace = builder.finish()
    assert found([trace])[0] is None


@pytest.mark.parametrize("name", ["ascend/phase_86s", "cuda/cuda_clockstep_2s.npy"])
def test_info_has_the_attested_span(name, corpus, capsys):
    capture = corpus / "repro" / name
    main(["info", str(capture)])
    lines = capsys.readouterr().out
    main(["info", "--json", str(capture)])
    document = json.loads(capsys.readouterr().out)["time"]["attested"]
    suspects = sum(finding.count for finding in check.run(lanescope.open(capture), select=["LS501"]))
    assert document["rows"] == suspects
    assert f"{document['rows']} row" in lines
    assert f"from {document['start']:,} to {document['end']:,} ns; run 'lanescope check'" in lines
