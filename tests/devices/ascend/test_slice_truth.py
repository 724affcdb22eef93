"""Every slice, label and count of the producer's captures and dumps against a script without this package."""

import gzip
import json
from collections import Counter

import pytest

from devices.ascend.helpers import decode_file

from .slice_truth import Slices, dumped
from .test_producer_dumps import region_bytes


@pytest.fixture(scope="module")
def folders(corpus):
    """Return all folders with a capture; each has a task graph."""
    found = sorted(path.parent for path in (corpus / "producers" / "ascend").glob("*/*/chip_swimlane_records.json"))
    assert len(found) >= 40
    return found


def drawn(trace):
    """Return the slices of a trace as (lane, category, name, begin, end), in ticks of the lane's clock."""
    slices = trace.slices
    assert slices.valid("dur_ticks").all()
    lanes = trace.tracks["name"][slices["track_id"]]
    columns = (lanes, slices["category"], slices["name"], slices["ts_ticks"], slices["ts_ticks"] + slices["dur_ticks"])
    return Counter(zip(*(column.tolist() for column in columns), strict=True))


def difference(found, expected):
    """Return what is too many and what is missing."""
    return {"too many": dict(found - expected), "missing": dict(expected - found)}


def test_every_slice_and_label_of_every_capture(folders):
    met = Counter()
    for folder in folders:
        truth, trace = Slices(folder), decode_file(folder / "chip_swimlane_records.json")
        name = f"{folder.parent.name}/{folder.name}"
        found = drawn(trace)
        assert found == truth.slices, (name, difference(found, truth.slices))
        tasks = trace.details["ascend_tasks"]
        begin = trace.slices["ts_ticks"][tasks["slice_id"]]
        labels = Counter(zip(tasks["core"].tolist(), begin.tolist(), tasks["label"].tolist(), strict=True))
        assert labels == truth.labels, name
        by_lane = Counter()
        for (lane, category, *_), number in found.items():
            by_lane[lane, category] += number
        assert by_lane == truth.counts(), name
        met.update(category for _, category in by_lane)
    assert set(met) == {
        "kernel", "setup", "gate", "flight", "scheduler", "orchestrator", "bare", "graph", "host", "upload",
    }  # fmt: skip


def test_every_slice_of_every_dump(corpus):
    paths = sorted((corpus / "producers" / "ascend" / "raw").glob("*.bin.gz"))
    assert len(paths) >= 2
    for path in paths:
        content = gzip.decompress(path.read_bytes())
        (told,) = (corpus / "producers" / "ascend" / path.name.removesuffix(".bin.gz")).glob("*")
        records = json.loads((told / "chip_swimlane_records.json").read_bytes())
        expected = dumped(content, region_bytes(records))
        found = drawn(decode_file(path))
        assert found == expected, (path.name, difference(found, expected))
        # The collector's own file of the run has the same slices; a dump does not have the types of cores.
        core = {
            f"{kind.upper()}_{number}": f"CORE_{number}"
            for number, kind in enumerate(records["metadata"]["core_types"])
        }
        same = Counter()
        for (lane, category, _, begin, end), number in Slices(told).slices.items():
            same[core.get(lane, lane), category, begin, end] += number
        assert same == Counter(
            {(lane, category, begin, end): n for (lane, category, _, begin, end), n in expected.items()}
        )


def test_kinds_and_edges_of_dumps_with_their_task_graph(corpus):
    for path in sorted((corpus / "producers" / "ascend" / "raw").glob("*.bin.gz")):
        (told,) = (corpus / "producers" / "ascend" / path.name.removesuffix(".bin.gz")).glob("*")
        truth, trace = Slices(told), decode_file(path, deps=str(told / "deps.json"))
        tasks, edges = trace.details["ascend_graph_tasks"], trace.details["ascend_edges"]
        assert dict(zip(tasks["task_id"].tolist(), tasks["kind"].tolist(), strict=True)) == truth.kinds
        pairs = set(zip(edges["pred_task_id"].tolist(), edges["succ_task_id"].tolist(), strict=True))
        assert pairs == truth.waits
        assert edges.valid("flow_id").all()
        # Types of cores are not in a dump: names of functions are those of the tasks.
        functions = dict(zip(tasks["task_id"].tolist(), tasks["functions"].tolist(), strict=True))
        cores = {row[1]: row[0] for row in truth.capture["aicore_tasks"]}
        unnamed = {task: f"func_{max(row['kernel_ids'])}" for task, row in truth.task.items()}
        assert set(cores) == set(functions)
        assert all(functions[task].startswith(unnamed[task]) for task in cores)


def test_each_submission_is_joined_with_the_phases_that_dispatched_its_task(folders):
    """Tasks by their submission, executions of a graph by that of the graph; phases by thread and start."""
    graphs = 0
    for folder in folders:
        truth, trace = Slices(folder), decode_file(folder / "chip_swimlane_records.json")
        expected = set()
        for core, task, counter, *_ in truth.capture["aicore_tasks"]:
            owner = (task & 0xFFFFFFFF) >> 10 if truth.kinds[task] == "node" else task
            submitted = [row["task_id"] for part in _submits(truth.capture) for row in part]
            if owner not in submitted:
                continue
            thread, stamp = truth.capture["metadata"]["core_to_thread"][core], truth.sent[core, counter][0]
            (start,) = [
                phase["start_cycles"]
                for phase in truth.capture["aicpu_scheduler_phases"][thread]
                if phase["kind"] in ("dispatch", "early_dispatch", "drain_publish")
                and phase["start_cycles"] <= stamp <= phase["end_cycles"]
            ][-1:]
            expected.add((owner, thread, start))
            graphs += truth.kinds[owner] == "graph"
        flows, submits = trace.flows, trace.details["ascend_submits"]
        task_of = dict(zip(submits["slice_id"].tolist(), submits["task_id"].tolist(), strict=True))
        found = Counter()
        for row in flows.where(flows["kind"] == "submit").rows():
            thread = int(trace.tracks["name"][row["dst_track_id"]].rpartition("_")[2])
            found[task_of[row["src_slice_id"]], thread, int(trace.slices["ts_ticks"][row["dst_slice_id"]])] += 1
        assert set(found) == expected, folder.name
        assert set(found.values()) <= {1}
    assert graphs > 20


def _submits(capture):
    return [*capture.get("aicpu_orchestrator_phases", []), *capture.get("host_orchestrator_phases", [])]
