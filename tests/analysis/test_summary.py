"""Summaries equal the naive ones, to the last unit of time."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis import oracles
from analysis.test_check_streaming import cut
from effort import TRACES, some
from lanescope import UsageError, testing
from lanescope.analysis.groupings import SLICES
from lanescope.analysis.summary import Summary, summary
from lanescope.pipeline.run import run
from lanescope.trace import TimeBase, Trace, TraceBuilder
from passes import Passes


def naive(trace, by):
    """The summary, from lists."""
    tracks = list(trace.tracks.rows())

    def device(track):
        chain = list(oracles.ancestors(trace, track))
        return next((step for step in chain if tracks[step]["role"] == "device"), chain[-1])

    groups = {}
    for row in trace.slices.rows():
        key = {
            "name": row["name"],
            "category": row["category"],
            "lane": row["track_id"],
            "device": device(row["track_id"]),
        }[by]
        groups.setdefault(key, []).append(row)
    everything = oracles.covered(trace.slices.rows())
    found = []
    for key, rows in groups.items():
        lengths = sorted(row["dur"] for row in rows if row["dur"] is not None)

        def rank(part, lengths=lengths):
            return lengths[max(math.ceil(len(lengths) * part / 100), 1) - 1] if lengths else None

        found.append(
            {
                by: key if isinstance(key, str) else oracles.path(trace, key),
                "count": len(lengths),
                "unfinished": len(rows) - len(lengths),
                "total": sum(lengths),
                "min": rank(0),
                "median": rank(50),
                "p99": rank(99),
                "max": rank(100),
                "share": oracles.covered(rows) / everything if everything else None,
            }
        )
    return found


@pytest.mark.parametrize("by", SLICES)
@given(data=st.data())
def test_summary_equals_the_naive_one(by, data):
    trace = data.draw(testing.traces(**TRACES))
    rows = [{name: value for name, value in row.items() if name != "id"} for row in summary(trace, by).rows()]
    assert [row["total"] for row in rows] == sorted((row["total"] for row in rows), reverse=True)

    def key(row):
        return repr(sorted(row.items()))

    assert sorted(rows, key=key) == sorted(naive(trace, by), key=key)


@pytest.mark.parametrize("by", SLICES)
@settings(max_examples=some(100))
@given(trace=testing.traces(**TRACES), cuts=st.lists(st.floats(0, 1), max_size=4))
def test_any_batches_have_the_summary_of_the_whole(by, trace, cuts):
    """Whatever order the lanes are in, a second pass repairs what one does not tell."""
    found = Summary(by)
    run(Passes(cut(trace, cuts)), observers=[found])
    assert list(found.result().rows()) == list(summary(trace, by).rows())


@pytest.mark.parametrize("by", SLICES)
@settings(max_examples=some(100))
@given(batches=testing.batches(**TRACES))
def test_any_decode_has_the_summary_of_the_whole(by, batches):
    found = Summary(by)
    run(Passes(batches), observers=[found])
    assert list(found.result().rows()) == list(summary(Trace.concat(batches), by).rows())


def test_a_lane_whose_batches_come_in_order_takes_one_pass_and_others_two():
    def batches(*starts):
        builder = TraceBuilder(TimeBase())
        lane = builder.track("core", kind="lane", role="core", nesting="nested")
        for start in starts:
            builder.append("slices", track_id=lane, ts=[start, start + 2], dur=[30, 4], name=["a", "b"])
            yield builder.batch()
        yield builder.finish()

    for starts, passes, covered in (((0, 20, 100), 1, 80), ((20, 0, 100), 2, 80)):
        source, found = Passes(list(batches(*starts))), Summary()
        assert run(source, observers=[found]).passes == passes
        shares = {row["name"]: row["share"] for row in found.result().rows()}
        assert shares == {"a": 1.0, "b": 12 / covered}


@given(testing.traces(**TRACES))
def test_every_grouping_has_the_same_sum(trace):
    columns = ("total", "count", "unfinished")
    assert len({tuple(int(table[name].sum()) for name in columns) for table in map_all(trace)}) == 1


def map_all(trace):
    return [summary(trace, by) for by in SLICES]


def test_percentiles_of_many():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("lane", kind="lane", role="core")
    builder.append("slices", track_id=lane, ts=[1000 * i for i in range(200)], dur=list(range(200, 0, -1)), name="x")
    (row,) = summary(builder.finish()).rows()
    assert (row["min"], row["median"], row["p99"], row["max"], row["count"]) == (1, 100, 198, 200, 200)


def test_lengths_that_fill_63_bits_are_ranked_and_summed_exactly():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("lane", kind="lane", role="core", nesting="free")
    lengths = [(1 << 61) + 1, 3, (1 << 61) - 1]
    builder.append("slices", track_id=lane, ts=[0, 0, 0], dur=lengths, name=["x", "y", "x"])
    rows = list(summary(builder.finish()).rows())
    assert [(row["name"], row["total"], row["min"], row["max"]) for row in rows] == [
        ("x", 1 << 62, (1 << 61) - 1, (1 << 61) + 1),
        ("y", 3, 3, 3),
    ]


def test_open_slices_count_on_their_own():
    builder = TraceBuilder(TimeBase(time_unit="cycles"))
    lane = builder.track("lane", kind="lane", role="core")
    builder.append("slices", track_id=lane, ts=0, dur=None, last_known_ts=5, name="hang")
    table = summary(builder.finish())
    (row,) = table.rows()
    assert (row["count"], row["unfinished"], row["total"], row["median"], row["share"]) == (0, 1, 0, None, 1.0)
    assert table.spec.column("total").unit == "cycles"


def test_a_trace_without_slices_sums_to_nothing():
    for by in SLICES:
        assert len(summary(TraceBuilder(TimeBase()).finish(), by)) == 0


def test_other_groupings_are_refused():
    with pytest.raises(UsageError, match="colour"):
        summary(TraceBuilder(TimeBase()).finish(), "colour")


def test_many_names_take_little_memory_each():
    """They took 1,800 bytes each, besides their slices."""
    count = 10_000
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core 0", kind="lane", role="core")
    names = [f"name {number}" for number in range(count)]
    builder.append("slices", track_id=lane, ts=10 * np.arange(count), dur=np.full(count, 5), name=names)
    trace = builder.finish()
    tracemalloc.start()
    try:
        assert len(summary(trace)) == count
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_300 * count
