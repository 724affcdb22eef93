"""Names, functions and dependencies: what the task graph says, against loops."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.ascend.helpers import decode, dependencies, edges, graph, lane, records, stats, tasks, text
from effort import some
from lanescope import cli
from lanescope._native import core
from lanescope.analysis import check
from lanescope.devices.ascend.formats.files import read_deps
from lanescope.devices.ascend.interpret.graph import Intervals, build, extreme, parents, ready, rings
from lanescope.devices.ascend.interpret.names import TaskTexts, function_name, letters, ring_name, task_name

CPU = [[0, 1, 90, 260], [1, 1, 290, 460], [0, 2, 490, 660]]
ROWS = [[0, 1, 1, 100, 200, 4], [1, 2, 1, 300, 400, 4], [0, 3, 2, 500, 600, 4]]
KERNELS = {1: (0, -1, -1), 2: (-1, 1, -1), 3: (7, -1, -1)}


LETTERS = {0: "a", 2: "c", 25: "z", 26: "aa", 27: "ab", 51: "az", 52: "ba", 701: "zz", 702: "aaa"}
FLAGS = st.sampled_from([None, [], ["wait"], ["retain"], ["wait", "retain"]])


@pytest.mark.parametrize(("number", "text_"), LETTERS.items())
def test_letters(number, text_):
    assert letters(number) == text_


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_letters_tell_numbers_apart(first, second):
    assert (letters(first) == letters(second)) == (first == second)


@pytest.mark.parametrize(
    ("task_id", "name"),
    [(0, "t0"), (5, "t5"), ((2 << 32) | 6, "r2t6"), (0x1_00_0000_0007, "t7"), (2**64 - 1, "r255t4294967295")],
)
def test_task_names(task_id, name):
    assert task_name(task_id) == name


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 1 << 34), max_size=20))
def test_encoded_task_names_are_those_that_are_read(ids):
    texts = TaskTexts(np.array(ids, np.uint64), task_name)
    column = texts.column(np.arange(len(ids))[::-1])
    data, first = column.encode()
    assert [data[i:j].tobytes().decode() for i, j in pairwise(first.tolist())] == column.values.tolist()
    assert first[-1] == len(data)


def test_names_of_other_runtimes_are_encoded_from_their_texts():
    assert TaskTexts(np.array([7], np.uint64), ring_name).column(np.array([0])).encode is None


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=25), st.booleans())
def test_the_first_edge_of_a_pair_counts(pairs, are_by_consumer):
    if are_by_consumer:
        pairs.sort(key=lambda pair: pair[1])
    pred, succ = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    found = core.ascend_first_edges(pred, succ, 7)
    assert found.tolist() == [place for place, pair in enumerate(pairs) if pair not in pairs[:place]]


def test_first_edges_of_tasks_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="no such task"):
        core.ascend_first_edges(np.array([0]), np.array([7]), 7)
    with pytest.raises(ValueError, match="two ends"):
        core.ascend_first_edges(np.array([0, 1]), np.array([0]), 7)


@pytest.mark.parametrize(
    ("function", "is_spmd", "name"),
    [
        (-1, False, "task"),
        (-1, True, "task_spmd"),
        (0, False, "QK"),
        (0, True, "QK_spmd"),
        (1, True, "my_SpMd_copy"),
        (2, False, "func_2_c"),
        (27, True, "func_27_ab_spmd"),
    ],
)
def test_function_names(function, is_spmd, name):
    assert function_name(function, {0: "QK", 1: "my_SpMd_copy"}, is_spmd=is_spmd) == name


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), FLAGS), max_size=25))
def test_edges_by_hand(given_edges):
    listed = graph({}, [(pred, succ, *([flags] if flags is not None else [])) for pred, succ, flags in given_edges])
    made = build(read_deps(text(json.dumps(listed).encode()), "deps.json"), [])
    orders = [(pred, succ) for pred, succ, flags in given_edges if flags is None or "wait" in flags]
    expected = list(dict.fromkeys(pair for pair in orders if pair[0] != pair[1]))
    ids = made.ids.tolist()
    assert ids == sorted({task for edge in given_edges for task in edge[:2]})
    assert [(ids[p], ids[s]) for p, s in zip(made.pred, made.succ, strict=True)] == expected
    counts = (len(expected), made.repeated, made.own, made.retaining)
    assert made.own == sum(pred == succ for pred, succ, _ in given_edges)
    assert sum(counts) == len(given_edges)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=20), st.booleans())
def test_extremes_by_hand(rows, largest):
    task, value = (np.array(column, np.int64) for column in (zip(*rows, strict=True) if rows else ([], [])))
    best, row = extreme(task, value, 6, largest=largest)
    for number in range(6):
        mine = [(v, -i if largest else i) for i, (t, v) in enumerate(rows) if t == number]
        if not mine:
            assert (best[number], row[number]) == (0, -1)
            continue
        choice = max(mine) if largest else min(mine)
        assert (best[number], row[number]) == (choice[0], abs(choice[1]))


def test_producers_without_rows_say_nothing_of_readiness():
    made = build(read_deps(text(json.dumps(graph({}, [(1, 3), (2, 3), (2, 4), (1, 5)])).encode()), "deps.json"), [])
    assert made.ids.tolist() == [1, 2, 3, 4, 5]
    assert ready(made, np.array([70, 0, 0, 0, 0])).tolist() == [0, 0, 70, 0, 70]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 6)), max_size=12),
    st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 27)), max_size=20),
)
def test_intervals_by_hand(spans, stamps):
    lane_, start, length = np.array(spans, np.int64).reshape(-1, 3).T
    thread, stamp = np.array(stamps, np.int64).reshape(-1, 2).T
    found = Intervals(lane_, start, start + length).contain(thread, stamp).tolist()
    assert found == [any(t == a and b <= x <= b + n for a, b, n in spans) for t, x in stamps]


def test_names_come_from_the_slot_of_the_core():
    kernels = {1: (0, 5, -1), 2: (-1, -1, 6), 3: (-1, 7, 8)}
    rows = [[0, 1, 1, 100, 200, 0], [1, 1, 1, 100, 200, 0], [1, 2, 2, 300, 400, 0], [1, 3, 3, 500, 600, 0]]
    trace = decode(records(rows, level=1), deps=graph(kernels))
    assert [label for (label,) in tasks(trace)] == ["func_0_a(t1)", "func_5_f(t1)", "func_6_g(t2)", "func_7_h(t3)"]
    assert trace.details["ascend_tasks"]["function"].tolist() == [0, 5, 6, 7]


def test_a_slot_that_the_task_does_not_use_gives_no_name():
    trace = decode(records([[0, 2, 1, 100, 200, 0]], level=1), deps=graph({2: (-1, 1, -1)}))
    assert tasks(trace, "function") == [("task(t2)", None)]


def test_a_core_of_unknown_type_gives_no_name():
    trace = decode(records([[9, 2, 1, 100, 200, 0]], level=1), deps=graph({2: (4, 1, -1)}))
    assert tasks(trace, "core_type", "function") == [("task(t2)", "", None)]
    assert lane(trace, "CORE_9") == [("task", 0, 2000)]


def test_the_graph_decides_what_runs_as_blocks():
    rows = [[0, 1, 1, 100, 200, 0], [0, 1, 2, 300, 400, 0]]
    deps = graph({1: (0, -1, -1)})
    assert tasks(decode(records(rows, level=1), deps=deps))[0] == ("func_0_a_spmd(t1)",)
    deps["tasks"][0]["block_num"] = 1
    assert tasks(decode(records(rows, level=1), deps=deps), "blocks")[0] == ("func_0_a(t1)", 1)
    # Without a graph: several rows, but on cores of both types it is not an SPMD task.
    mixed = [[0, 1, 1, 100, 200, 0], [1, 1, 1, 300, 400, 0]]
    assert [label for (label,) in tasks(decode(records(mixed, level=1)))] == ["task(t1)"] * 2


def test_a_name_map_beside_the_capture():
    name_map = {"orchestrator_name": "O", "callable_id_to_name": {"0": "first", "1": "second"}}
    trace = decode(records(ROWS, CPU), deps=graph(KERNELS), beside={"name_map_x.json": name_map})
    assert [label for (label,) in tasks(trace)] == ["first(t1)", "second(t2)", "func_7_h(t3)"]


def test_of_two_name_maps_none_is_used(tmp_path):
    one, two = ({"callable_id_to_name": {"0": name}} for name in ("one", "two"))
    beside = {"name_map_a.json": one, "name_map_b.json": two}
    trace = decode(records(ROWS, CPU), deps=graph(KERNELS), beside=beside)
    assert tasks(trace)[0] == ("func_0_a(t1)",)
    assert stats(trace) == {"ascend_ambiguous_name_map": 1}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(two))
    trace = decode(records(ROWS, CPU), deps=graph(KERNELS), beside=beside, names=str(path))
    assert tasks(trace)[0] == ("two(t1)",)
    assert stats(trace) == {}


def test_edges_are_one_a_pair_and_order_something():
    listed = graph(KERNELS, [(1, 2), (1, 2, ["wait", "retain"]), (2, 2), (3, 1, ["retain"]), (2, 3, ["wait"])])
    trace = decode(records(ROWS, CPU), deps=listed)
    base = 90
    assert edges(trace) == [
        (1, 2, (200 - base) * 20, (296 - base) * 20),
        (2, 3, (400 - base) * 20, (496 - base) * 20),
    ]
    (run,) = trace.details["ascend_runs"].rows()
    assert (run["edges_repeated"], run["edges_to_self"], run["edges_retain_only"]) == (1, 1, 1)


def test_an_edge_of_a_task_without_rows_is_counted():
    trace = decode(records(ROWS, CPU), deps=graph({**KERNELS, 4: (-1, -1, -1)}, [(1, 2), (1, 99), (4, 3)]))
    assert [edge[:2] for edge in edges(trace)] == [(1, 2)]
    assert stats(trace) == {"ascend_edge_unmatched": 1, "ascend_edge_no_kernel": 1}
    assert [one.stat for one in check.run(trace, select=["LS401"])] == ["ascend_edge_unmatched"]


def test_an_edge_that_runs_backwards_stands_as_it_is():
    trace = decode(records(ROWS, CPU), deps=graph(KERNELS, [(3, 1)]))
    assert edges(trace) == [(3, 1, (600 - 90) * 20, (96 - 90) * 20)]
    assert tasks(trace, "ready_ts")[0] == ("func_0_a(t1)", (600 - 90) * 20)


def test_every_flow_end_lies_on_its_slice():
    rows = [*ROWS, [1, 4, 2, 700, 800, 0]]
    trace = decode(records(rows, [*CPU, [1, 2, 690, 860]]), deps=graph(KERNELS, [(1, 2), (2, 3), (3, 4)]))
    slices, tasks = trace.slices, trace.details["ascend_tasks"]
    executions = dict(zip(tasks["slice_id"].tolist(), tasks.values("local_setup_ns").tolist(), strict=True))
    for flow in trace.flows.rows():
        for side in ("src", "dst"):
            at = flow[f"{side}_slice_id"]
            assert slices["track_id"][at] == flow[f"{side}_track_id"]
            begin = slices["ts"][at]
            if side == "dst" and at in executions:  # flows reach an execution in the setup before it
                begin -= executions[at]
            assert begin <= flow[f"{side}_ts"] <= slices["ts"][at] + slices["dur"][at]


def test_without_a_graph_there_are_no_flows_and_nothing_is_made_up():
    trace = decode(records(ROWS, CPU))
    assert len(dependencies(trace)) == 0
    assert tasks(trace, "ready_ts", "blocks") == [(f"task(t{n})", None, None) for n in (1, 2, 3)]
    (run,) = trace.details["ascend_runs"].rows()
    assert run["edges"] is None


def chip(rows, aicpu, *, level=2, **more):
    return records(rows, aicpu, level=level, key="chip_swimlane_level", **more)


# t1 ends at 200; t2 is picked up at 150 on the other core and starts at 230.
STAGED = [[0, 1, 1, 100, 200, 4], [1, 2, 1, 230, 400, 80]]
STAGED_CPU = [[0, 1, 90, 260], [1, 1, 140, 460]]
PAIR = [(1, 2)]


def gate(trace):
    return tasks(
        trace, "gate_wait_ticks", "local_setup_ticks", "propagation_ticks", "effective_start_source", "may_be_staged"
    )[1][1:]


def test_a_wait_on_the_core_is_no_setup():
    trace = decode(chip(STAGED, STAGED_CPU), deps=graph(KERNELS, PAIR))
    assert gate(trace) == (50, 30, 10, "start", True)
    assert [edge[2:] for edge in edges(trace)] == [((200 - 90) * 20, (230 - 90) * 20)]


def test_older_captures_stamp_again_so_nothing_is_folded():
    trace = decode(records(STAGED, STAGED_CPU), deps=graph(KERNELS, PAIR))
    assert gate(trace) == (0, 80, 10, "receive", None)
    assert [edge[2:] for edge in edges(trace)] == [((200 - 90) * 20, (150 - 90) * 20)]


@pytest.mark.parametrize("metadata", [{"orchestrator_source": "host"}, {}])
def test_an_orchestrator_on_the_host_stamps_again_too(metadata):
    more = {"metadata": metadata} if metadata else {"host_orchestrator_phases": []}
    trace = decode(chip(STAGED, STAGED_CPU, **more), deps=graph(KERNELS, PAIR))
    assert gate(trace) == (0, 80, 10, "receive", None)


def outer(task, node):
    """Return the ID of a node of a graph on ring 1."""
    return 1 << 32 | task << 10 | node


@pytest.mark.parametrize("has_nodes", [True, False])
def test_edges_of_a_graph_are_those_of_its_nodes(has_nodes):
    """Task 2 is a graph of three nodes, the dummy one without a record: prepared before its producer, task 1, ended."""
    nodes = [[1, outer(2, 0), 1, 300, 400, 4], [0, outer(2, 2), 2, 450, 500, 4]] if has_nodes else []
    rows = [[0, 1, 1, 100, 200, 4], *nodes, [1, 3, 2, 700, 800, 4]]
    seen = [[core, counter, start - 10, end + 10] for core, _, counter, start, end, _ in rows]
    phase = {"kind": "graph_prepare", "start_cycles": 120, "end_cycles": 150, "loop_iter": 1, "tasks_processed": 3}
    more = {"metadata": {"orchestrator_source": "host"}, "aicpu_scheduler_phases": [[phase | {"task_id": 2}]]}
    deps = graph({1: (0, -1, -1), 2: (-1, -1, -1), 3: (-1, 0, -1)}, [(1, 2), (2, 3)])
    trace = decode(chip(rows, seen, level=3, **more), deps=deps)
    into, out = (1, 2, (200 - 90) * 20, (296 - 90) * 20), (2, 3, (500 - 90) * 20, (696 - 90) * 20)
    assert edges(trace) == ([into, out] if has_nodes else [])
    assert stats(trace).get("ascend_edge_no_kernel", 0) == (0 if has_nodes else 2)
    assert not [row for row in trace.slices.rows() if row["name"] in ("alloc", "dummy task")]
    assert not check.run(trace, select=["LS201"])


@given(st.sets(st.integers(0, 3)), st.sets(st.integers(0, 4 << 10)), st.sets(st.integers(0, 3)))
@settings(max_examples=some(100))
def test_nodes_of_graphs_by_hand(tasks_, nodes, outers):
    ids = np.array(sorted(tasks_ | {1 << 32 | node for node in nodes}), np.uint64)
    made = build(None, [ids])
    listed = ids.tolist()
    found = parents(made, np.array([listed.index(task) for task in outers & tasks_], np.int64))
    expected = [
        listed.index(parent) if task >> 32 == 1 and (parent := (task & 0xFFFFFFFF) >> 10) in outers & tasks_ else -1
        for task in listed
    ]
    assert found.tolist() == expected


def test_allocations_allow_early_dispatch_though_the_graph_does_not_list_them():
    # Task 9 is an allocation: it is only the producer of an edge. Task 1 is flagged, so task 2 may be staged.
    deps = graph(KERNELS, [*PAIR, (9, 2)])
    deps["tasks"][0]["early_dispatch"] = True
    assert gate(decode(chip(STAGED, STAGED_CPU), deps=deps)) == (50, 30, 10, "start", True)
    deps["tasks"].append({"task_id": "9", "kernel_ids": [0, -1, -1], "early_dispatch": False})
    assert gate(decode(chip(STAGED, STAGED_CPU), deps=deps)) == (0, 80, 10, "receive", False)


def test_a_producer_that_does_not_allow_it_proves_a_violation():
    deps = graph(KERNELS, PAIR)
    deps["tasks"][0]["early_dispatch"] = False
    assert gate(decode(chip(STAGED, STAGED_CPU), deps=deps)) == (0, 80, 10, "receive", False)
    deps["tasks"][0]["early_dispatch"] = True
    assert gate(decode(chip(STAGED, STAGED_CPU), deps=deps)) == (50, 30, 10, "start", True)


def phase(kind, start, end, **more):
    return {"kind": kind, "start_cycles": start, "end_cycles": end, "loop_iter": 1, "tasks_processed": 1, **more}


@pytest.mark.parametrize(
    ("phases", "staged"),
    [
        ([], True),
        ([phase("dispatch", 130, 140)], False),
        ([phase("dispatch", 140, 150)], False),
        ([phase("dispatch", 141, 150)], True),
        ([phase("early_dispatch", 130, 150)], True),
        ([phase("dispatch", 130, 140), phase("early_dispatch", 140, 150)], True),
        ([phase("dispatch", 130, 140), phase("prestage", 140, 150)], True),
        ([phase("drain_publish", 130, 150)], True),
    ],
)
def test_the_phase_of_the_dispatch_is_a_proof(phases, staged):
    content = chip(
        STAGED, STAGED_CPU, level=3, metadata={"core_to_thread": [0, 1]}, aicpu_scheduler_phases=[[], phases]
    )
    assert gate(decode(content, deps=graph(KERNELS, PAIR)))[-1] == staged
    # The other thread's phases say nothing.
    content["aicpu_scheduler_phases"] = [phases, []]
    assert gate(decode(content, deps=graph(KERNELS, PAIR)))[-1] is True


def test_a_barrier_is_no_allocation_when_a_marker_names_it():
    deps = graph({**KERNELS, 9: (-1, -1, -1)}, [*PAIR, (9, 2)])
    deps["tasks"][0]["early_dispatch"] = True
    marker = phase("dummy_task", 120, 120, task_id=9)
    for markers, staged in (([], True), ([marker], False)):
        content = chip(STAGED, STAGED_CPU, level=3, aicpu_scheduler_phases=[markers])
        assert gate(decode(content, deps=deps))[-1] is staged


@pytest.mark.parametrize("level", [2, 3])
def test_a_barrier_is_no_allocation_where_graphs_do_not_list_those(level):
    """Edges have flags, so the runtime has rings: what has no kernel in its graphs is a barrier, marked or not."""
    wait = ["wait", "retain"]
    deps = graph({**KERNELS, 9: (-1, -1, -1)}, [(1, 2, wait), (9, 2, wait)])
    deps["tasks"][0]["early_dispatch"] = True
    phases = {"aicpu_scheduler_phases": [[]]} if level == 3 else {}
    assert gate(decode(chip(STAGED, STAGED_CPU, level=level, **phases), deps=deps))[-2:] == ("receive", False)
    del deps["edges"][1]
    assert gate(decode(chip(STAGED, STAGED_CPU, level=level, **phases), deps=deps))[-2:] == ("start", True)


@pytest.mark.parametrize(("submitted", "staged"), [(115, False), (125, True)])
def test_a_producer_that_was_released_before_the_submission_is_not_waited_for(submitted, staged):
    """Task 3, which does not allow early dispatch, ends at 120."""
    rows = [*STAGED, [0, 3, 2, 95, 120, 4]]
    deps = graph(KERNELS, [*PAIR, (3, 2)])
    deps["tasks"][0]["early_dispatch"] = True
    submits = [
        {"submit_idx": n, "task_id": task, "start_cycles": at, "end_cycles": at + 5}
        for n, (task, at) in enumerate([(1, 10), (3, 20), (2, submitted)])
    ]
    content = chip(rows, [*STAGED_CPU, [0, 2, 80, 125]], level=4, aicpu_orchestrator_phases=[submits])
    assert gate(decode(content, deps=deps))[-1] is staged


def test_nothing_is_folded_where_it_began_before_its_producer_ended():
    rows = [STAGED[0], [1, 2, 1, 190, 400, 40]]
    trace = decode(chip(rows, STAGED_CPU), deps=graph(KERNELS, PAIR))
    assert gate(trace)[:2] == (0, 40)
    assert [edge[2:] for edge in edges(trace)] == [((200 - 90) * 20, (190 - 90) * 20)]


def test_half_an_id_that_fits_two_tasks_names_none():
    tasks_ = {4: (-1, -1, -1), (1 << 32) | 4: (-1, -1, -1), (1 << 32) | 5: (-1, -1, -1)}
    phases = [phase("dummy_task", 120, 120), phase("dummy_task", 130, 130)]
    phases[0]["tasks_processed"], phases[1]["tasks_processed"] = 4, 5
    trace = decode(records(ROWS, CPU, level=3, aicpu_scheduler_phases=[phases]), deps=graph(tasks_))
    rows = list(trace.details["ascend_phases"].rows())
    assert [row["task_id"] for row in rows] == [None, (1 << 32) | 5]
    # The task graph is of another run, and so are the phases.
    assert stats(trace) == {"ascend_task_ambiguous": 1, "ascend_task_unlisted": 3, "ascend_count_contradicts": 2}


def test_a_skipped_task_stands_at_its_marker():
    deps = graph({**KERNELS, 8: (3, -1, -1)}, [(1, 8), (8, 2)])
    content = chip(ROWS, CPU, level=3, aicpu_scheduler_phases=[[phase("predicated_skip", 270, 270, task_id=8)]])
    assert edges(decode(content, deps=deps)) == [(1, 8, 2200, 3600), (8, 2, 3600, 4200)]


@pytest.mark.parametrize(
    ("start", "delta", "expected"),
    [
        (199, 50, (0, 50)),  # began before its producer ended: a violation, nothing is folded
        (200, 50, (50, 0)),  # at the same tick: it waited, and needed no setup
        (201, 50, (49, 1)),
        (249, 50, (1, 49)),
        (250, 50, (0, 50)),  # taken when its producer had ended: no wait
        (251, 50, (0, 50)),
    ],
)
def test_the_edges_of_a_wait(start, delta, expected):
    rows = [STAGED[0], [1, 2, 1, start, 400, delta]]
    assert gate(decode(chip(rows, STAGED_CPU), deps=graph(KERNELS, PAIR)))[:2] == expected


# --- rings ------------------------------------------------------------------------------------------------------------


def built(pairs):
    return build(read_deps(text(json.dumps(graph({}, pairs)).encode()), "deps.json"), [])


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=14))
def test_rings_by_hand(pairs):
    made = built(pairs)
    reach = {task: {succ for pred, succ in pairs if pred == task and succ != task} for task in range(8)}
    for _ in range(8):
        reach = {task: near.union(*(reach[other] for other in near)) for task, near in reach.items()}
    in_ring = {task for task in range(8) if task in reach[task]}
    between = {t for t in range(8) if reach[t] & in_ring and any(t in reach[other] for other in in_ring)}
    assert set(made.ids[rings(made)].tolist()) == in_ring | between


def test_a_task_between_two_rings_counts_wherever_its_id_stands():
    made = built([(0, 1), (1, 0), (1, 2), (2, 3), (3, 4), (4, 3), (4, 5), (6, 0)])
    assert made.ids[rings(made)].tolist() == [0, 1, 2, 3, 4]


def test_edges_of_tasks_that_are_not_there_are_refused():
    found = np.zeros(3, np.bool_)
    for pred, succ in (([0], [3]), ([-1], [0]), ([0, 1], [1])):
        with pytest.raises(ValueError, match=r"no such task|two ends"):
            core.ascend_cycles(np.array(pred), np.array(succ), found)


def test_a_long_way_against_the_order_of_ids_is_no_ring_until_it_is_closed():
    count = 20_000
    back = [(task + 1, task) for task in range(count)]
    assert not rings(built(back)).any()
    assert rings(built([*back, (0, count)])).all()


def test_a_graph_that_goes_in_rings_is_told(tmp_path, capsys):
    deps = graph(KERNELS, [(1, 2), (2, 3), (3, 1)])
    trace = decode(records(ROWS, CPU), deps=deps)
    (told,) = [row for row in trace.stats.rows() if row["name"] == "ascend_graph_cycle"]
    assert (told["severity"], told["count"]) == ("error", 3)
    assert trace.inputs["role"][told["input_id"]] == "deps"
    assert len(trace.details["ascend_edges"]) == 3  # none of them is left out
    assert ("LS002", "ascend_graph_cycle") in {(found.code, found.stat) for found in check.run(trace)}
    assert "ascend_graph_cycle" not in stats(decode(records(ROWS, CPU), deps=graph(KERNELS, [(1, 2), (2, 3), (1, 3)])))
    path = tmp_path / "l2_swimlane_records.json"
    path.write_text(json.dumps(records(ROWS, CPU)))
    (tmp_path / "deps.json").write_text(json.dumps(deps))
    assert cli.main(["info", str(path)]) == 0
    said = capsys.readouterr()
    assert "tasks in a dependency cycle (3)" in said.err
    assert "tasks in a dependency cycle" in said.out
    assert cli.main(["ascend-deps", str(path), "t1", "--depth", "9"]) == 0
