"""Totals without suspect rows are those of the trace in which these rows never were."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from effort import some
from lanescope.analysis import check, idle_causes, occupancy, overlap, region_stats
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.partition import BUSY, IDLE, LOST
from lanescope.analysis.plausibility.without_suspects import SuspectRows, changes, suspect_rows, without_suspects
from lanescope.cli import main
from lanescope.devices.ascend.analysis.overhead_report import core_idle
from lanescope.devices.ascend.analysis.report import cores, schedulers
from lanescope.pipeline.session import derived_tables
from lanescope.trace import Column, ColumnSpec, Table, TableSpec, TimeBase, Trace, TraceBuilder

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
        idle_causes.causes(shared),
        occupancy.occupancy_stats(shared, levels),
        occupancy.utilization(shared, "block"),
    ]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(10**7, 10**9), st.integers(1, 10**6)), min_size=1, max_size=2))
@settings(max_examples=some(30))
def test_analyses_are_those_of_the_trace_without_the_strays(strays):
    trace, sound = made(strays), made()
    [suspect] = suspect_rows(trace, codes=["LS501"])
    assert np.count_nonzero(suspect.slices) == len(strays)
    rest = without_suspects(trace, suspect)
    for table, wanted in zip(answers(rest), answers(sound), strict=True):
        assert list(table.rows()) == list(wanted.rows())
    details = [(row["slice_id"], row["task"]) for row in rest.details["demo_tasks"].rows()]
    assert sorted(details) == [(row, row) for row in range(160)]


def test_changed_totals_have_both_values_and_the_row():
    trace, sound = made([(1, 10**7, 5000)]), made()
    tables = [region_stats.regions(AnalysisCache(one)) for one in (trace, sound)]
    [with_, without] = [next(row for row in table.rows() if row["region"] == "work") for table in tables]
    found = {one.column: one for one in changes(*tables, "ns", ("LS501",)) if one.row == {"region": "work"}}
    assert (found["total_ns"].total, found["total_ns"].without) == (with_["total_ns"], without["total_ns"])
    assert with_["total_ns"] == without["total_ns"] + 5000
    assert not {"max_ns", "p99_ns", "count"} & set(found)
    assert changes(tables[1], tables[1], "ns", ("LS501",)) == []


def test_a_row_that_is_gone_has_no_total():
    tables = [region_stats.regions(AnalysisCache(one)) for one in (made(), made())]
    names = [row["region"] for row in tables[0].rows()]
    other = tables[1].take(np.array([names.index("wait")]))
    assert {(one.row["region"], one.without) for one in changes(tables[0], other, "ns", ("LS501",))} == {("work", None)}


@pytest.mark.parametrize("by", ["phase", "occupancy", "overlap", "region", "idle", "scheduler"])
def test_every_summary_of_the_86_s_phase_speaks_of_it(by, corpus, capsys):
    capture = str(corpus / "repro/ascend/phase_86s")
    main(["summary", "--by", by, capture])
    assert "(LS501)" in capsys.readouterr().err
    main(["summary", "--by", by, "--json", capture])
    found = json.loads(capsys.readouterr().out).get("suspects", [])
    if by in ("phase", "region", "occupancy"):
        key = {"phase": "group", "region": "region", "occupancy": "counted"}[by]
        mine = [one for one in found if one["rules"] == ["LS501"] and one[key] == "complete"]
        [total] = [one for one in mine if one["column"].startswith("total")]
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


def repeated(lane, rows):
    """The trace of ``made`` with some slices of a lane twice, and where those stand that were added."""
    trace = made()
    slices = trace.slices
    mine = np.flatnonzero(slices.values("track_id") == np.unique(slices.values("track_id"))[lane])
    again = mine[rows]
    where = np.sort(np.concatenate([np.arange(len(slices)), again]), kind="stable")
    table = slices.take(where)
    columns = {name: table.column(name) for name in table.spec.names} | {"id": Column.array(np.arange(len(table)))}
    tables = {name: one for name, one in trace.tables().items() if name not in trace.details}
    details = {name: one.take(np.arange(0)) for name, one in trace.details.items()}
    return Trace(trace.time, tables | {"slices": Table(table.spec, columns)}, details, trace.records)


@given(st.integers(0, 3), st.sets(st.integers(0, 39), min_size=1, max_size=5))
@settings(max_examples=some(20))
def test_analyses_are_those_of_the_trace_without_duplicates(lane, rows):
    trace, sound = repeated(lane, sorted(rows)), made()
    found = {one.rules: one for one in suspect_rows(trace)}
    suspect = found.get(("LS505",))
    if suspect is None:  # shorter than eight steps
        return
    rest = without_suspects(trace, suspect)
    if np.count_nonzero(suspect.slices) == len(rows):
        assert len(rest.gaps) == 0
        for table, wanted in zip(answers(rest), answers(sound), strict=True):
            assert list(table.rows()) == list(wanted.rows())


def test_a_lane_all_of_whose_slices_are_suspect_is_unknown_and_not_idle():
    trace = made()
    lane = int(trace.slices.values("track_id")[0])
    slices = trace.slices.values("track_id") == lane
    none = np.zeros(len(trace.instants), np.bool_)
    rest = without_suspects(trace, SuspectRows(("LS507",), slices, none, np.zeros_like(slices), None))
    [gap] = list(rest.gaps.rows())
    ts, end = trace.slices.values("ts")[slices], (trace.slices.values("ts") + trace.slices.values("dur"))[slices]
    assert (gap["track_id"], gap["ts"], gap["dur"], gap["cause"]) == (lane, ts.min(), end.max() - ts.min(), "suspect")
    assert AnalysisCache(rest).lane_states[lane][[BUSY, LOST, IDLE]].tolist() == [0, gap["dur"], 0]


@pytest.mark.parametrize("lane", ["ascend_cores", "ascend_threads"])
def test_time_of_suspect_slices_of_an_ascend_lane_is_unknown(tmp_path, lane):
    files = lanescope.simulate("ascend", seed=3, tasks=300, aic=4, aiv=8).files
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    trace = lanescope.open(tmp_path / next(iter(files)))
    track = int(trace.details[lane].values("track_id")[0])
    mine = trace.slices.values("track_id") == track
    suspect = mine & (np.cumsum(mine) > 20)
    none = np.zeros(len(trace.instants), np.bool_)
    rest = without_suspects(trace, SuspectRows(("LS507",), suspect, none, np.zeros_like(mine), None))
    make = cores if lane == "ascend_cores" else schedulers
    for number, (before, after) in enumerate(zip(make(trace).rows(), make(rest).rows(), strict=True)):
        assert before["window"] == after["window"]
        assert before["busy"] + before["unknown"] == after["busy"] + after["unknown"]
        is_mine = str(trace.tracks.values("name")[track]) == before["group"]
        assert (after["busy"] < before["busy"]) == (is_mine or (lane == "ascend_cores" and number == 0))
    if lane == "ascend_cores":
        before, after = (list(core_idle(one).rows()) for one in (trace, rest))
        [lost] = [
            one["busy"] - other["busy"] for one, other in zip(before, after, strict=True) if one["group"] == "AIC_0"
        ]
        [more] = [
            other["unknown"] - one["unknown"]
            for one, other in zip(before, after, strict=True)
            if one["group"] == "AIC_0"
        ]
        assert more > lost > 0
