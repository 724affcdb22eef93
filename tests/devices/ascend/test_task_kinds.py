"""Kinds of tasks, against the producer's own captures and captures by hand."""

from __future__ import annotations

import json

import pytest

from lanescope.devices.ascend.formats.files import read_deps, read_records
from lanescope.devices.ascend.interpret.resolve import Interpreter
from lanescope.devices.ascend.interpret.sidecars import Sidecars
from lanescope.devices.ascend.interpret.task_kinds import KINDS, RECORD_STATES

from .helpers import decode, records, text

#: What the producer's test cases are made of, by the folder and the beginning of the case: counts by kind.
PRODUCED = {
    ("chain_l4", "TestDepGenChain_n_391"): {"kernel": 392, "dummy": 1},
    ("dummy_l1", "TestDummyTask_DenseFanoutFanin"): {"kernel": 2, "dummy": 18},
    ("dummy_l4", "TestDummyTask_DenseFanoutFanin"): {"kernel": 2, "dummy": 18},
    ("graph_l4", "TestGraphExecution"): {"kernel": 1, "graph": 3, "node": 12},
    ("hpred_l1", "TestPredicatedDispatch_PredicateFalse"): {"kernel": 3, "unknown": 1},
    ("hpred_l3", "TestPredicatedDispatch_PredicateFalse"): {"kernel": 3, "unknown": 1},
    ("hpred_l4", "TestPredicatedDispatch_PredicateFalse"): {"kernel": 3, "unknown": 1},
    ("hpred_l4", "TestPredicatedDispatch_PredicateTrue"): {"kernel": 4},
    ("pa_l3", "TestPagedAttention_CaseVarSeq4"): {"kernel": 64, "alloc": 4},
    ("pa_l4", "TestPagedAttention_CaseVarSeq4"): {"kernel": 64, "alloc": 4},
    ("pred_l4", "TestPredicatedDispatch_PredicateFalse"): {"kernel": 3, "skipped": 1},
    ("vec_l1", "TestVectorExample"): {"kernel": 5},
}


def kinds(capture, deps=None):
    """Return kind and record state of each task of a capture (Python objects), by id."""
    parts = Sidecars(None if deps is None else read_deps(text(json.dumps(deps).encode()), "deps.json"))
    told = Interpreter(read_records(text(json.dumps(capture).encode()), "run.json"), parts)
    found = told.kinds
    states = zip(found.kind.tolist(), found.record.tolist(), strict=True)
    return {
        int(task): (KINDS[kind], RECORD_STATES[state])
        for task, (kind, state) in zip(told.graph.ids.tolist(), states, strict=True)
    }


def expected(capture, deps):
    """Return the kinds of tasks of one of the producer's captures as its test cases are known to be made, by id.

    Written for these captures alone: nothing is lost in them, and all have task graphs with edges.
    """
    level = capture["chip_swimlane_level"]
    is_host_built = not any("flags" in edge for edge in deps["edges"])
    ran = {row[1] for row in capture["aicore_tasks"]}
    phases = [phase for thread in capture.get("aicpu_scheduler_phases", []) for phase in thread]
    named = {
        kind: {p["task_id"] for p in phases if p["kind"] == kind}
        for kind in ("dummy_task", "predicated_skip", "graph_prepare")
    }
    functions = {int(task["task_id"]): max(task["kernel_ids"]) for task in deps["tasks"]}
    ends = {int(edge[end]) for edge in deps["edges"] for end in ("pred", "succ")}
    creators = {int(edge["pred"]) for edge in deps["edges"] if edge["source"] == "creator"}
    found = {}
    for task in sorted(ran | set(functions) | ends):
        if task not in functions:
            assert (task in ran) != (task in creators)
            found[task] = ("node", "recorded") if task in ran else ("alloc", "none")
        elif functions[task] >= 0:
            if task in ran:
                found[task] = ("kernel", "recorded")
            else:
                is_marked = task in named["predicated_skip"]
                found[task] = ("skipped", "recorded") if is_marked else ("unknown", "undecidable")
        elif is_host_built:
            found[task] = ("graph", "recorded") if task in named["graph_prepare"] else ("dummy", "none")
        else:
            found[task] = ("dummy", "recorded" if level >= 3 else "none")
            assert (task in named["dummy_task"]) == (level >= 3)
    return found


def test_kinds_in_captures_of_the_producer(corpus):
    captures = sorted((corpus / "producers" / "ascend").glob("*/*/chip_swimlane_records.json"))
    cases = [path.with_name("deps.json") for path in captures if path.with_name("deps.json").exists()]
    assert len(cases) >= 40
    met = set()
    for path in cases:
        capture = json.loads((path.parent / "chip_swimlane_records.json").read_bytes())
        deps = json.loads(path.read_bytes())
        truth = expected(capture, deps)
        found = kinds(capture, deps)
        assert found == truth, path
        for (folder, case), counts in PRODUCED.items():
            if path.parent.parent.name == folder and path.parent.name.startswith(case):
                made = [kind for kind, _ in found.values()]
                assert {kind: made.count(kind) for kind in made} == counts, path
                met.add((folder, case))
    assert met == set(PRODUCED)


def edge(pred, succ, source="tensormap", **more):
    return {"pred": str(pred), "succ": str(succ), "arg": 0, "source": source, "flags": ["wait"], **more}


def task(number, *kernels):
    return {"task_id": str(number), "kernel_ids": list(kernels or (-1, -1, -1))}


def graph(tasks, edges):
    return {"tasks": tasks, "tensors": [], "edges": edges}


def capture(level, ran, **more):
    """Return a capture of version 3c in which tasks ran on core 0, one after the other."""
    rows = [[0, number, place + 1, 100 * place + 100, 100 * place + 150, 10] for place, number in enumerate(ran)]
    aicpu = [[0, place + 1, 100 * place + 80, 100 * place + 160] for place in range(len(ran))] if level > 1 else []
    return records(rows, aicpu, level=level, key="chip_swimlane_level", **more)


def phase(kind, number=None, at=50):
    made = {"kind": kind, "start_cycles": at, "end_cycles": at, "loop_iter": 1, "tasks_processed": 1}
    return made if number is None else {**made, "task_id": number}


def submit(number, at=10):
    return {"submit_idx": number, "task_id": number, "start_cycles": at, "end_cycles": at + 1}


@pytest.mark.parametrize(
    ("level", "state"), [(1, ("unknown", "undecidable")), (2, ("unknown", "undecidable")), (3, ("kernel", "lost"))]
)
def test_a_task_with_a_function_and_no_execution(level, state):
    deps = graph([task(1, 0, -1, -1), task(2, 0, -1, -1)], [edge(1, 2)])
    phases = {"aicpu_scheduler_phases": [[phase("complete")]]} if level > 2 else {}
    assert kinds(capture(level, [1], **phases), deps)[2] == state


def test_the_same_with_a_host_that_builds_the_graph_may_have_been_skipped():
    edges = [{name: value for name, value in edge(1, 2).items() if name != "flags"}]
    deps = graph([task(1, 0, -1, -1), task(2, 0, -1, -1)], edges)
    assert kinds(capture(3, [1]), deps)[2] == ("unknown", "undecidable")


@pytest.mark.parametrize(("level", "state"), [(2, "none"), (3, "lost")])
def test_a_dummy_without_marker(level, state):
    deps = graph([task(1, 0, -1, -1), task(2)], [edge(1, 2)])
    assert kinds(capture(level, [1]), deps)[2] == ("dummy", state)


def test_in_a_graph_built_by_the_host_a_task_without_function_is_a_dummy_or_a_graph():
    edges = [{"pred": "1", "succ": "2", "arg": 0, "source": "tensormap"}]
    deps = graph([task(1, 0, -1, -1), task(2)], edges)
    assert kinds(capture(2, [1]), deps)[2] == ("unknown", "undecidable")
    assert kinds(capture(3, [1], aicpu_scheduler_phases=[[phase("complete")]]), deps)[2] == ("dummy", "none")
    prepared = {"aicpu_scheduler_phases": [[phase("graph_prepare", 2)]]}
    assert kinds(capture(3, [1], **prepared), deps)[2] == ("graph", "recorded")
    # Nodes prove it below level 3.
    node = 1 << 32 | 2 << 10 | 3
    found = kinds(capture(2, [1, node]), deps)
    assert (found[2], found[node]) == (("graph", "none"), ("node", "recorded"))


def test_nodes_prove_the_runtime_where_nothing_else_does():
    node = 1 << 32 | 2 << 10
    found = kinds(capture(1, [1, node]), graph([task(1, 0, -1, -1), task(2)], []))
    assert found == {1: ("kernel", "recorded"), 2: ("graph", "none"), node: ("node", "recorded")}


def test_ring_1_alone_makes_no_node():
    other = 1 << 32 | 2 << 10
    found = kinds(capture(1, [1, other]), graph([task(1, 0, -1, -1), task(2)], [edge(1, 2)]))
    assert (found[2], found[other]) == (("dummy", "none"), ("kernel", "recorded"))


def test_allocations_are_not_listed_but_create_tensors():
    deps = graph([task(1, 0, -1, -1)], [edge(9, 1, "creator"), edge(8, 1)])
    found = kinds(capture(2, [1]), deps)
    assert (found[9], found[8]) == (("alloc", "none"), ("unknown", "undecidable"))


def test_allocations_without_consumers_are_submitted():
    deps = graph([task(1, 0, -1, -1)], [edge(1, 1)])
    found = kinds(capture(4, [1], aicpu_orchestrator_phases=[[submit(9), submit(1, 20)]]), deps)
    assert found[9] == ("alloc", "none")


def test_where_submissions_are_recorded_each_allocation_has_one():
    deps = graph([task(1, 0, -1, -1)], [edge(8, 1, "creator"), edge(9, 1, "creator")])
    submitted = capture(4, [1], aicpu_orchestrator_phases=[[submit(9), submit(1, 20)]])
    found = kinds(submitted, deps)
    assert (found[8], found[9]) == (("unknown", "undecidable"), ("alloc", "none"))
    # Where one record is missing, another may be.
    submitted["aicpu_tasks"].append([1, 1, 90, 200])
    assert kinds(submitted, deps)[8] == ("alloc", "none")


def test_only_edges_that_say_it_create_tensors():
    unsaid = {name: value for name, value in edge(9, 1).items() if name != "source"}
    assert kinds(capture(2, [1]), graph([task(1, 0, -1, -1)], [unsaid]))[9] == ("unknown", "undecidable")


def test_without_a_graph_submissions_tell_allocations_unless_records_are_missing():
    orchestrator = {"aicpu_orchestrator_phases": [[submit(1), submit(9, 20)]]}
    assert kinds(capture(4, [1], **orchestrator)) == {1: ("kernel", "recorded"), 9: ("alloc", "none")}
    lossy = capture(4, [1], **orchestrator)
    lossy["aicpu_tasks"].append([1, 1, 90, 200])
    assert kinds(lossy)[9] == ("unknown", "undecidable")
    on_host = {
        "host_orchestrator_phases": [
            [{"submit_idx": 0, "task_id": number, "start_host_ns": 5, "end_host_ns": 6} for number in (1, 9)]
        ]
    }
    assert kinds(capture(4, [1], **on_host))[9] == ("unknown", "undecidable")


def test_executions_outweigh_markers():
    deps = graph([task(1, 0, -1, -1)], [edge(1, 1)])
    skipped = {"aicpu_scheduler_phases": [[phase("predicated_skip", 1)]]}
    assert kinds(capture(3, [1], **skipped), deps)[1] == ("kernel", "recorded")
    assert kinds(capture(3, [], **skipped), deps)[1] == ("skipped", "recorded")


def test_before_predicates_a_task_without_executions_is_lost():
    rows = [[0, 1, 1, 100, 150]]
    found = kinds(records(rows, level=1), graph([task(1, 0, -1, -1), task(2, 0, -1, -1)], [edge(1, 2)]))
    assert found[2] == ("kernel", "lost")


def test_a_capture_without_tasks():
    assert kinds(records(level=1, key="chip_swimlane_level", aicpu_scheduler_phases=[[phase("complete")]])) == {}


def test_the_table_has_each_task_once_with_its_functions():
    deps = graph([task(1, 0, 1, 1), task(2)], [edge(1, 2), edge(9, 1, "creator")])
    names = {"callable_id_to_name": {"0": "qk"}}
    trace = decode(capture(1, [1]), deps=deps, beside={"name_map.json": names})
    rows = [tuple(row[name] for name in ("task", "kind", "record", "functions", "blocks", "is_early")) for row in
            trace.details["ascend_graph_tasks"].rows()]  # fmt: skip
    assert rows == [
        ("t1", "kernel", "recorded", "qk + func_1_b", None, None),
        ("t2", "dummy", "none", None, None, None),
        ("t9", "alloc", "none", None, None, None),
    ]


def test_numbers_of_functions_may_be_any():
    deps = graph([task(1, 2**31 - 1, 1 - 2**31, 3), task(2, -5, -5, -5), task(3, 2, 2, -1)], [edge(1, 2), edge(2, 3)])
    table = decode(capture(1, [1]), deps=deps).details["ascend_graph_tasks"]
    assert [row["functions"] for row in table.rows()] == [f"func_{2**31 - 1}_fxshrxx + func_3_d", None, "func_2_c"]
