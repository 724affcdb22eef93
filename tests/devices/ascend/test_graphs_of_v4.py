"""Graphs whose nodes have ids of version 4: joined as those of version 3c are, run by run."""

import json
from pathlib import Path

import numpy as np
import pytest

from devices.ascend.as_v4 import as_v4
from devices.ascend.helpers import decode, interpret, read, records, simulated, stats
from lanescope.analysis import check
from lanescope.devices.ascend.analysis.report import summarize
from lanescope.devices.ascend.analysis.task_graph import task_graph
from lanescope.devices.ascend.export.swimlane import export
from lanescope.devices.ascend.interpret.host_log import extents

APART = 1 << 40


def node(graph, number):
    """Return the id of a node."""
    return 1 << 62 | (graph & 0xFFFFF) << 32 | number


def graphs(trace):
    """Return task, first and last tick, and nodes of each graph, by start."""
    slices = trace.slices
    found = []
    for row in trace.details["ascend_graphs"].rows():
        at = row["slice_id"]
        start = int(slices["ts_ticks"][at])
        found.append((row["task_id"], start, start + int(slices["dur_ticks"][at]), row["nodes"]))
    return sorted(found, key=lambda row: row[1:])


def edges(trace):
    table = trace.details["ascend_edges"]
    known = table.valid("is_violated")
    columns = (table[name].tolist() for name in ("pred_task_id", "succ_task_id", "slack_ticks", "is_violated"))
    return sorted(zip(*columns, known.tolist(), strict=True))


def both(capture, deps, **more):
    """Decode a capture as version 3c and as version 4."""
    beside = {} if deps is None else {"deps.json": deps}
    made, changed = as_v4(capture, deps, **more)
    return decode(capture, beside=beside), decode(made, beside={} if changed is None else {"deps.json": changed})


def bars(trace):
    """Return the slices of graphs of the runtime's own format."""
    events = json.loads(b"".join(export(trace)))["traceEvents"]
    return [event for event in events if event.get("cat") == "graph_execution"]


def load(simulation):
    files = {name: content for name, content in simulation.files.items() if name.endswith(".json")}
    (capture,) = (json.loads(content) for name, content in files.items() if name.startswith("chip_"))
    return capture, json.loads(files["deps.json"])


def producers(corpus, *names):
    for name in names:
        for path in sorted(Path(corpus, "producers/ascend", name).iterdir()):
            capture = json.loads((path / "chip_swimlane_records.json").read_text())
            del capture["metadata"]["clock_anchors"]  # version 4 has none
            yield (
                capture,
                json.loads((path / "deps.json").read_text()),
            )


def compare(capture, deps):
    old, new = both(capture, deps)
    assert graphs(new) == graphs(old)
    assert len(graphs(new)) > 0
    assert edges(new) == edges(old)
    for table in (old, new):
        kinds = table.details["ascend_graph_tasks"]
        of_node = kinds.column("kind").texts == "node"
        assert (kinds.valid("graph_task_id") == of_node).all()
    nodes = [summarize("round", trace).column("series").texts.tolist() for trace in (old, new)]
    assert [text.startswith("graph") for text in nodes[0]] == [text.startswith("graph") for text in nodes[1]] or nodes[
        1
    ][0] == "run"
    if len(old.details["ascend_edges"]):
        one, other = task_graph(old), task_graph(new)
        assert [len(listed) for listed in one.nodes] == [len(listed) for listed in other.nodes]
        assert (one.slack, one.violated.tolist()) == (other.slack, other.violated.tolist())
    assert [row["name"] for row in bars(new)] == [row["name"].replace("nodes", "sub-tasks") for row in bars(old)]
    assert [row["dur"] for row in bars(new)] == pytest.approx([row["dur"] for row in bars(old)])
    assert {finding.severity for finding in check.run(new)} <= {"notice"}
    return new


@pytest.mark.parametrize("seed", range(4))
def test_simulated_graphs_are_those_of_version_3c(seed):
    compare(*load(simulated(seed, format_version="v3c", host=True, graphs=0.2, tasks=120, anchors=False)))


def test_graphs_of_the_producer_are_those_of_version_3c(corpus):
    for capture, deps in producers(corpus, "graph_l4"):
        trace = compare(capture, deps)
        assert {str(text)[0] for text in trace.details["ascend_tasks"]["task"]} == {"t", "g"}


def test_each_run_has_its_graphs(corpus):
    for capture, deps in producers(corpus, "graph_l4"):
        one, several = both(capture, deps, runs=3, apart=APART)
        found = graphs(several)
        expected = [
            (task, start + APART * run, end + APART * run, nodes)
            for run in range(3)
            for task, start, end, nodes in graphs(one)
        ]
        assert found == expected
        assert [bar["name"] for bar in bars(several)] == 3 * [
            bar["name"].replace("nodes", "sub-tasks") for bar in bars(one)
        ]
        table = several.details["ascend_edges"]
        assert not table["is_violated"].any()
        assert "ascend_nodes_apart" not in stats(several)


def capture(*tasks, prepared=(), level=4, epochs=None, deps=None):
    """Return a trace of executions of 100 cycles, one after the other on one core, of a host that builds graphs."""
    epochs = epochs or [1] * len(tasks)
    rows = [
        [0, task, at + 1, 1000 + 200 * at, 1100 + 200 * at, 0, epoch]
        for at, (task, epoch) in enumerate(zip(tasks, epochs, strict=True))
    ]
    phases = [
        {
            "start_cycles": 500 + at,
            "end_cycles": 501 + at,
            "run_epoch": epoch,
            "loop_iter": at,
            "kind": "graph_prepare",
            "tasks_processed": 1,
            "task_id": task,
        }
        for at, (task, epoch) in enumerate(prepared)
    ]
    stream = {"platform": "a2a3", "producer": "aicpu", "scheduler_id": 0, "records": phases, "metrics": []}
    content = records(rows, level=level, key="chip_swimlane_level", metadata={"runtime": "host_build_graph"})
    if prepared:
        content["scheduler_records"] = {"streams": [stream]}
    return decode(content, deps=deps)


def listed(*tasks):
    return {"tasks": [{"task_id": str(task), "kernel_ids": [-1, -1, -1]} for task in tasks], "edges": []}


def test_a_graph_that_is_prepared_has_its_nodes():
    trace = capture(node(5, 0), node(5, 3), node(6, 0), prepared=[(5, 1)])
    assert graphs(trace) == [(5, 1000, 1300, 2)]
    assert stats(trace)["ascend_nodes_apart"] == 1


def test_a_graph_that_the_task_graph_lists_has_its_nodes():
    trace = capture(node(5, 0), node(5, 3), level=2, deps=listed(5, 6))
    assert graphs(trace) == [(5, 1000, 1300, 2)]
    assert "ascend_nodes_apart" not in stats(trace)


def test_without_a_record_of_the_graph_its_nodes_are_apart():
    trace = capture(node(5, 0), node(5, 3), level=1)
    assert graphs(trace) == []
    assert stats(trace)["ascend_nodes_apart"] == 2
    assert any(finding.stat == "ascend_nodes_apart" and finding.severity == "notice" for finding in check.run(trace))


def test_ids_of_nodes_have_20_bits_of_their_graph():
    large = (1 << 20) + 5
    assert graphs(capture(node(large, 0), prepared=[(large, 1)])) == [(large, 1000, 1100, 1)]
    # Which of two graphs is meant is not known.
    trace = capture(node(large, 0), node(7, 0), prepared=[(large, 1), (5, 1), (7, 1)])
    assert [row[0] for row in graphs(trace)] == [7]
    assert stats(trace)["ascend_nodes_apart"] == 1


def test_the_same_number_is_another_graph_in_another_run():
    trace = capture(node(5, 0), node(5, 0), node(5, 1), prepared=[(5, 1), (5, 2)], epochs=[1, 2, 2])
    assert graphs(trace) == [(5, 1000, 1100, 1), (5, 1200, 1500, 2)]
    trace = capture(node(5, 0), node(5, 0), prepared=[(5, 2)], epochs=[1, 2])
    assert [row[1] for row in graphs(trace)] == [1200]


def test_schedulers_on_cores_prepare_no_graphs():
    # Level 4 without a phase graph_prepare: no record is lost.
    trace = capture(node(5, 0), deps=listed(5))
    tasks = trace.details["ascend_graph_tasks"]
    assert dict(zip(tasks["task_id"].tolist(), tasks.column("record").texts, strict=True))[5] == "none"


@pytest.mark.parametrize("seed", range(3))
def test_rings_have_no_graphs(seed):
    made = simulated(seed, format_version="v3c", tasks=100)
    old, new = both(*load(made), runs=2, apart=APART)
    assert graphs(old) == graphs(new) == []
    assert not np.isin("node", new.details["ascend_graph_tasks"].column("kind").texts)


def test_submits_that_name_their_run_belong_to_it():
    # The second run is submitted while the first one still executes; the time of a submit would place it in the first.
    content = records(
        [[0, 1, 1, 2000, 2900, 5, 7], [0, 1, 1, 3100, 3200, 5, 9]],
        level=4,
        key="chip_swimlane_level",
        metadata={"runtime": "tensormap_and_ringbuffer"},
        aicpu_orchestrator_phases=[
            [
                {"submit_idx": 0, "task_id": 1, "start_cycles": 1000, "end_cycles": 1100, "run_epoch": 7},
                {"submit_idx": 0, "task_id": 1, "start_cycles": 2500, "end_cycles": 2600, "run_epoch": 9},
            ]
        ],
    )
    del content["aicpu_tasks"]
    content["scheduler_tasks"] = {"producer": "aicpu", "records": [[0, 1, 1900, 2950, 7], [0, 1, 3000, 3300, 9]]}
    told = interpret(content)
    assert told.epochs is not None
    assert told.epochs[2].tolist() == [7, 9]
    for row in content["aicpu_orchestrator_phases"][0]:
        del row["run_epoch"]
    told = interpret(content)
    assert told.epochs is not None
    assert told.epochs[2].tolist() == [7, 7]


@pytest.mark.parametrize("is_told", [False, True])
def test_submits_without_a_run_are_no_run_of_their_own(is_told):
    content = records([[0, 1, 1, 2000, 2900, 5, 7]], level=4, key="chip_swimlane_level")
    submit = {"submit_idx": 0, "task_id": 1, "start_cycles": 1000, "end_cycles": 1100}
    content["aicpu_orchestrator_phases"] = [[submit | ({"run_epoch": 7} if is_told else {})]]
    assert extents(read(content)) == [(7, 1000, 2900)]
