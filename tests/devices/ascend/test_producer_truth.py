"""Captures of the producer against what a script without this package reads in their files.

Mistakes that these captures once led to, and the tests that find each:

* pools by the number of cores in use, and losses that were none: ``test_producer_dumps``, all of it
* padding of records that is not zero: ``test_entries_and_buffers_without_the_header_hold_the_same_rows``
* allocations without slices or arrows: ``test_kinds_counts_and_bars``, ``test_arrows``
* the preparation of a graph as its start (LS201), tasks without records as losses (LS401):
  ``test_nothing_is_reported_above_notice``
* the runtime of captures below level 4, a lane of a thread that does not schedule, dispatches without those that were
  staged early: ``test_lanes_dialects_and_dispatches_of_schedulers``
* nodes of graphs as tasks that are never ready: ``test_report_evidence``
"""

from __future__ import annotations

from collections import Counter

import pytest

from lanescope.analysis import check

from .helpers import decode_file, stats
from .producer_truth import Truth

BARS = {"dummy task": "dummy_task", "skipped task": "predicated_skip", "alloc": "alloc"}


@pytest.fixture(scope="module")
def cases(corpus):
    """Return truth and trace of each capture with a task graph, by folder and case."""
    files = sorted((corpus / "producers" / "ascend").glob("*/*/chip_swimlane_records.json"))
    found = {
        f"{path.parent.parent.name}/{path.parent.name}": (Truth(path.parent), decode_file(path))
        for path in files
        if path.with_name("deps.json").exists()
    }
    assert len(found) >= 40
    return found


def bars(trace, host):
    """Return the bars of tasks as (kind, task, begin, end) in cycles, without those of the host's clock."""
    slices = trace.slices
    names, begin = slices["name"].tolist(), slices["ts_ticks"].tolist()
    length, clock = slices["dur_ticks"].tolist(), trace.tracks["clock_id"][slices["track_id"]].tolist()
    found = Counter()
    for table, kind in (("ascend_tasks", "kernel"), ("ascend_graphs", "graph"), ("ascend_coreless_tasks", None)):
        rows = trace.details[table]
        for place, task in zip(rows["slice_id"].tolist(), rows["task_id"].tolist(), strict=True):
            if clock[place] not in host:
                name = kind or BARS[names[place]]
                found[name, task, begin[place], begin[place] + length[place]] += 1
    return found


def host_clocks(trace):
    return {row["id"] for row in trace.clocks.rows() if row["device"] == "host"}


def test_kinds_counts_and_bars(cases):
    met = Counter()
    for case, (truth, trace) in cases.items():
        tasks = trace.details["ascend_graph_tasks"]
        kinds = dict(zip(tasks["task_id"].tolist(), tasks["kind"].tolist(), strict=True))
        assert kinds == truth.kinds, case
        assert bars(trace, host_clocks(trace)) == truth.bars, case
        met.update(kind for kind, *_ in truth.bars)
    assert set(met) == {"kernel", "graph", *BARS.values()}


def test_arrows(cases):
    drawn = 0
    for case, (truth, trace) in cases.items():
        edges, ends, begins = trace.details["ascend_edges"], truth.ends(), truth.begins()
        pairs = list(zip(edges["pred_task_id"].tolist(), edges["succ_task_id"].tolist(), strict=True))
        assert sorted(pairs) == sorted(truth.waits), case
        host = host_clocks(trace)
        clock = trace.tracks["clock_id"]
        for row, pair in zip(edges.rows(), pairs, strict=True):
            pred, succ = pair
            if row["flow_id"] is None:
                assert (
                    truth.kinds[pred] in ("alloc", "unknown")
                    or truth.kinds[succ] == "unknown"
                    or ({truth.kinds[pred], truth.kinds[succ]} & {"dummy", "skipped"} and truth.level < 3)
                ), (case, pair)
                assert pred not in ends or succ not in ends, (case, pair)
                continue
            drawn += 1
            flow = {name: trace.flows[name][row["flow_id"]] for name in ("src_slice_id", "dst_slice_id")}
            src, dst = int(flow["src_slice_id"]), int(flow["dst_slice_id"])
            begin, length = trace.slices["ts_ticks"], trace.slices["dur_ticks"]
            if clock[trace.slices["track_id"][src]] in host:
                assert truth.kinds[pred] == "alloc", (case, pair)
            else:
                assert begin[src] + length[src] == ends[pred], (case, pair)
            assert begin[dst] in begins[succ], (case, pair)
    assert drawn > 1000


def test_nothing_is_reported_above_notice(cases):
    for case, (truth, trace) in cases.items():
        found = check.run(trace)
        assert {finding.severity for finding in found} <= {"notice", "info"}, case
        counted = stats(trace)
        is_undecided = "unknown" in truth.kinds.values()
        assert ("ascend_edge_undecided" in counted) == is_undecided, case
        assert not {"ascend_edge_unmatched", "ascend_aicpu_unmatched"} & set(counted), case
        assert not [finding for finding in found if finding.code in ("LS401", "LS201", "LS504")], case


def test_lanes_dialects_and_dispatches_of_schedulers(cases):
    for case, (truth, trace) in cases.items():
        lanes = {name for name in trace.tracks["name"].tolist() if name.startswith("Sched_")}
        assert lanes == {f"Sched_{thread}" for thread in truth.threads if thread >= 0}, case
        (run,) = trace.details["ascend_runs"].rows()
        assert run["orchestrator_on_host"] == truth.is_host_built, case
        stamped = "receive_at_doorbell" if truth.is_host_built else "receive_at_pickup"
        assert [word for word in run["errata"].split() if word.startswith("receive")] == [stamped], case
        threads = trace.details["ascend_threads"]
        counts = zip(threads["dispatched"].tolist(), threads["staged_early"].tolist(), strict=True)
        assert dict(zip(threads["thread"].tolist(), counts, strict=True)) == truth.dispatched, case
        if truth.level >= 3:
            assert sum(map(sum, truth.dispatched.values())) == len(trace.details["ascend_tasks"]), case


def test_without_a_task_graph_kinds_follow_from_records_alone(cases):
    for case, (truth, _) in cases.items():
        trace = decode_file(truth.folder / "chip_swimlane_records.json", deps="none")
        tasks = trace.details["ascend_graph_tasks"]
        kinds = dict(zip(tasks["task_id"].tolist(), tasks["kind"].tolist(), strict=True))
        assert kinds == {task: truth.kinds[task] for task in truth.recorded}, case
        assert {finding.severity for finding in check.run(trace)} <= {"notice"}, case
        assert not len(trace.details["ascend_edges"])


def test_tasks_are_ready_when_their_last_producer_with_executions_ended(cases):
    allocs = 0
    for case, (truth, trace) in cases.items():
        tasks, ends = trace.details["ascend_tasks"], truth.ends()
        for task, ready in zip(tasks["task_id"].tolist(), tasks["ready_ticks"].tolist(), strict=True):
            before = [pred for pred, succ in truth.waits if succ == task and truth.kinds[pred] in ("kernel", "graph")]
            assert ready == max((ends[pred] for pred in before), default=None), (case, task)
        for pred, succ in truth.waits:
            # Allocations have ended before their consumers are submitted: they delay none.
            if truth.kinds[pred] == "alloc" and pred in ends:
                assert ends[pred] <= min(truth.begins()[succ]), (case, pred, succ)
                allocs += 1
    assert allocs > 10
