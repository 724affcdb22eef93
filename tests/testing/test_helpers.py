"""The public test helpers: what they draw is what they say, and what they assert can fail."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import TRACES
from lanescope import testing
from lanescope.analysis import check
from lanescope.trace import Column, Flag, Table, TimeBase, Trace, TraceBuilder


@given(testing.traces(**TRACES))
def test_drawn_traces_are_consistent_and_accounted_for(trace):
    testing.assert_consistent(trace)
    testing.assert_accounted(trace)


@given(testing.batches(**TRACES))
def test_batches_share_what_batches_share(batches):
    whole = Trace.concat(batches)
    testing.assert_consistent(whole)
    filled = [batch for batch in batches if len(batch.slices)]
    for batch in filled:
        assert batch.slices.column("name").dictionary is filled[0].slices.column("name").dictionary
    assert sum(len(batch.slices) for batch in batches) == len(whole.slices)


@pytest.mark.parametrize("nesting", ["disjoint", "nested", "free"])
@given(data=st.data())
def test_intervals_keep_their_discipline(nesting, data):
    builder = TraceBuilder(TimeBase())
    lane = builder.track("lane", kind="lane", role="core", nesting=nesting)
    drawn = data.draw(testing.intervals(nesting))
    assert drawn == sorted(drawn, key=lambda pair: pair[0])
    for ts, dur in drawn:
        builder.append("slices", track_id=lane, ts=ts, dur=dur, name="x")
    assert check.run(builder.finish()) == []


@pytest.mark.full
def test_what_can_be_drawn_has_every_feature():
    """Among a hundred and more draws there is each flag, each rule's fault, and each table."""
    flags, codes, tables = set(), set(), set()

    @settings(max_examples=150)
    @given(testing.traces())
    def look(trace):
        flags.update(flag for row in trace.slices["flags"].tolist() for flag in Flag if row & flag)
        codes.update(finding.code for finding in check.run(trace))
        tables.update(name for name, table in trace.tables().items() if len(table))

    look()
    assert flags == set(Flag)
    # The accounting always adds up: a builder sees to it. Plausibility needs more slices than are drawn.
    assert {code for code in codes if not code.startswith("LS5")} == {
        rule.code for rule in check.RULES if rule.code != "LS001" and not rule.code.startswith("LS5")
    }
    builder = TraceBuilder(TimeBase())
    assert tables == {*builder.finish().tables(), "test_tasks"}


@pytest.mark.parametrize("nested", [False, True])
def test_large_traces_are_sound_and_repeatable(nested):
    trace = testing.large_trace(6000, lanes=5, names=3, nested=nested)
    assert (len(trace.slices), len(trace.tracks), len(set(trace.slices["name"]))) == (6000, 6, 3)
    testing.assert_consistent(trace)
    assert check.run(trace) == []
    ends = trace.slices["ts"] + trace.slices["dur"]
    assert (np.diff(ends) >= 0).all()
    testing.assert_same(trace, testing.large_trace(6000, lanes=5, names=3, nested=nested))
    if nested:
        disjoint = testing.large_trace(6000, lanes=5, names=3)
        with pytest.raises(AssertionError, match=r"tracks\.nesting"):
            testing.assert_same(trace, disjoint)


def _trace():
    builder = TraceBuilder(TimeBase())
    run = builder.input(capture="r", path="r.bin", size=16, sha256="", family="t", format="t")
    builder.add_accounting(input_id=run, layer=0, unit="word", unit_bytes=8, total=2, decoded=1, lost=1)
    lane = builder.track("lane", kind="lane", role="core", input_id=run)
    builder.append("slices", track_id=lane, ts=[0, 5], dur=[5, 0], dur_valid=[True, False], name="x")
    return builder.finish()


def _with(trace, table, name, values, **column):
    old = trace.tables()[table]
    made = {n: old.column(n) for n in old.spec.names}
    made[name] = Column.array(np.array(values), **column)
    return Trace(trace.time, {**trace.tables(), table: Table(old.spec, made)}, trace.details)


def test_a_sound_trace_passes():
    testing.assert_consistent(_trace())
    testing.assert_accounted(_trace(), lost=8)
    testing.assert_same(_trace(), _trace())


@pytest.mark.parametrize(
    ("table", "column", "values", "options", "words"),
    [
        ("slices", "id", [0, 2], {}, "ids are not dense"),
        ("slices", "track_id", [0, 1], {}, "slices.track_id: refers to rows that do not exist"),
        ("slices", "track_id", [0, -1], {}, "slices.track_id: refers to rows that do not exist"),
        ("slices", "dur", [5, 7], {"valid": np.array([True, False])}, "slices.dur: values under nulls"),
        ("slices", "ts", [0, 0], {"valid": np.array([True, False])}, "slices.ts: nulls where none are declared"),
    ],
)
def test_inconsistent_traces_are_told(table, column, values, options, words):
    with pytest.raises(AssertionError, match=words):
        testing.assert_consistent(_with(_trace(), table, column, values, **options))


def test_unknown_words_are_told():
    builder = TraceBuilder(TimeBase())
    builder.track("x", kind="thing", role="core")
    with pytest.raises(AssertionError, match="thing"):
        testing.assert_consistent(builder.finish())


def test_wrong_sums_and_unexpected_loss_are_told():
    with pytest.raises(AssertionError, match="2 words, but 1 decoded"):
        testing.assert_accounted(_with(_trace(), "accounting", "lost", [0]))
    with pytest.raises(AssertionError, match="8 bytes were lost, not 0"):
        testing.assert_accounted(_trace(), lost=0)


def test_differences_are_told_with_their_row():
    with pytest.raises(AssertionError, match=r"slices\.ts, row 1"):
        testing.assert_same(_trace(), _with(_trace(), "slices", "ts", [0, 6]))
    with pytest.raises(AssertionError, match=r"slices\.dur, row 1"):
        testing.assert_same(_trace(), _with(_trace(), "slices", "dur", [5, 0]))
    with pytest.raises(AssertionError, match="time bases"):
        testing.assert_same(_trace(), TraceBuilder(TimeBase(time_unit="cycles")).finish())


def test_hypothesis_is_imported_with_the_first_strategy():
    code = (
        "import sys, lanescope.testing as t; t.large_trace(10, lanes=1); assert 'hypothesis' not in sys.modules;"
        " t.traces; assert 'hypothesis' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    with pytest.raises(AttributeError, match="nothing"):
        testing.nothing  # noqa: B018 (the access is the test)
