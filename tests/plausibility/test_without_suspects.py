"""Totals without suspect rows are those of the trace in which these rows never were."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from lanescope.analysis import check, idle, occupancy, overlap, region_stats
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.plausibility.without_suspects import changes, without_suspects
from lanescope.cli import main
from lanescope.pipeline.session import derived_tables
from lanescope.trace import ColumnSpec, TableSpec, TimeBase, TraceBuilder

DETAILS = TableSpec(
    "demo_tasks",
    "task of a slice",
    (ColumnSpec("slice_id", "int64", "slice", references="slices"), ColumnSpec("task", "int64", "task")),
    key="slice_id",
)


def made(strays=(), *, seed=1):
    """Two blocks with two lanes of work each; strays are (lane, start, length), each before all other slices of it."""
    builder, random = TraceBuilder(TimeBase(), details=(DETAILS,)), np.random.default_rng(seed)
    tasks = 0
    end = 100 * 40 + 90
    for block in range(2):
        parent = builder.track(f"block {block}", kind="group", role="block")
        for lane in range(2):
            track = builder.track(("load", "compute")[lane], kind="lane", role="group", parent=parent)
            for number, ts, dur in strays:
                if number == 2 * block + lane:
                    first = builder.append("slices", track_id=track, ts=[ts], dur=[dur], name=["work"])
                    builder.append("demo_tasks", slice_id=[first], task=[-1])
            starts = 100 * np.arange(40) + random.integers(0, 30, 40)
            starts[0], lengths = 0, random.integers(1, 60, 40)
            lengths[-1] = end - starts[-1]
            first = builder.append("slices", track_id=track, ts=starts, dur=lengths, name=["work", "wait"] * 20)
            builder.append("demo_tasks", slice_id=first + np.arange(40), task=tasks + np.arange(40))
            tasks += 40
            covered = max([end, *(ts + dur for number, ts, dur in strays if number == 2 * block + lane)])
            builder.append("coverage", track_id=track, ts=[0], dur=[covered])
    return builder.finish()


def answers(trace):
    shared = AnalysisCache(trace)
    levels = occupancy.occupancy(shared)
    return [
        region_stats.regions(shared),
        overlap.overlap(shared),
        idle.causes(shared),
        occupancy.occupancy_stats(shared, levels),
        occupancy.utilization(shared, "block"),
    ]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(10**7, 10**9), st.integers(1, 10**6)), min_size=1, max_size=2))
@settings(max_examples=some(30))
def test_analyses_are_those_of_the_trace_without_the_strays(strays):
    trace, sound = made(strays), made()
    attested = AnalysisCache(trace).time.attested
    assert len(attested.rows) == len(strays)
    rest = without_suspects(trace, attested)
    for table, wanted in zip(answers(rest), answers(sound), strict=True):
        assert list(table.rows()) == list(wanted.rows())
    details = [(row["slice_id"], row["task"]) for row in rest.details["demo_tasks"].rows()]
    assert sorted(details) == [(row, row) for row in range(160)]


def test_changed_totals_have_both_values_and_the_row():
    trace, sound = made([(1, 10**7, 5000)]), made()
    tables = [region_stats.regions(AnalysisCache(one)) for one in (trace, sound)]
    [with_, without] = [next(row for row in table.rows() if row["region"] == "work") for table in tables]
    found = {one.column: one for one in changes(*tables, "ns") if one.row == {"region": "work"}}
    assert (found["total_ns"].total, found["total_ns"].without) == (with_["total_ns"], without["total_ns"])
    assert with_["total_ns"] == without["total_ns"] + 5000
    assert not {"max_ns", "p99_ns", "count"} & set(found)
    assert changes(tables[1], tables[1], "ns") == []


def test_a_row_that_is_gone_has_no_total():
    tables = [region_stats.regions(AnalysisCache(one)) for one in (made(), made())]
    names = [row["region"] for row in tables[0].rows()]
    other = tables[1].take(np.array([names.index("wait")]))
    assert {(one.row["region"], one.without) for one in changes(tables[0], other, "ns")} == {("work", None)}


@pytest.mark.parametrize("by", ["phase", "occupancy", "overlap", "region", "idle", "scheduler"])
def test_every_summary_of_the_86_s_phase_speaks_of_it(by, corpus, capsys):
    capture = str(corpus / "repro/ascend/phase_86s")
    main(["summary", "--by", by, capture])
    assert "implausible timestamps (LS501)" in capsys.readouterr().err
    main(["summary", "--by", by, "--json", capture])
    found = json.loads(capsys.readouterr().out).get("suspects", [])
    if by in ("phase", "region", "occupancy"):
        key = {"phase": "group", "region": "region", "occupancy": "counted"}[by]
        [total] = [one for one in found if one[key] == "complete" and one["column"].startswith("total")]
        assert total["total"] > 85_000_000_000
        assert 0 < total["total_without"] < 100_000


def test_the_table_of_suspects_has_the_slices_of_the_findings():
    trace = made([(1, 10**7, 5000)])
    table = derived_tables(trace)["suspects"].table
    found = [(row["code"], row["slice_id"]) for row in table.rows()]
    wanted = [
        (finding.code, row)
        for finding in check.run(trace, select=["LS5"])
        for row in finding.evidence.ids.tolist()
        if finding.evidence.table == "slices"
    ]
    assert found == wanted
    assert "LS501" in [code for code, _ in found]
    assert len(derived_tables(made())["suspects"].table) == 0
