"""Reports whose figures depend on what a capture proves: rounds, iterations of the loop, nodes of graphs, bounds."""

import json
from collections import Counter

import pytest

from devices.ascend.helpers import decode, decode_file, graph, records
from lanescope.devices.ascend.family import FAMILY

TICK = 20
ON_HOST = {"orchestrator_source": "host"}


def rows(trace, by):
    return list(FAMILY.summarise(by, trace).rows())


def remarks(trace, by):
    return list(FAMILY.remarks(by, FAMILY.summarise(by, trace)))


def node(outer, number):
    """Return the id of a node of a graph."""
    return (1 << 32) | (outer << 10) | number


def run(tasks, **more):
    """Return a capture in which tasks (id, core, dispatch, start, end) ran, of format version 3c."""
    counters, aicore, aicpu = Counter(), [], []
    for task, core, dispatch, start, end in tasks:
        counters[core] += 1
        aicore.append([core, task, counters[core], start, end, 1])
        aicpu.append([core, counters[core], dispatch, end + 3])
    return records(aicore, aicpu, key="chip_swimlane_level", **more)


# --- rounds -----------------------------------------------------------------------------------------------------------


def graphs(third=(0, 2)):
    """Return a capture of a host that built three graphs, the nodes of the third of which are given, and its graph."""
    tasks = [(9, 0, 50, 100, 200)]
    for outer, begin, nodes in ((1, 300, (0, 2)), (2, 500, (0, 2)), (3, 750, third)):
        tasks += [(node(outer, n), n // 2, begin - 10, begin + 5 * n, begin + 100 + 5 * n) for n in nodes]
    deps = graph({9: (0, -1, -1), **dict.fromkeys((1, 2, 3), (-1, -1, -1))}, [(9, 1), (9, 2), (9, 3)])
    return run(tasks, metadata=ON_HOST), deps


def test_executions_of_the_same_graph_are_rounds():
    content, deps = graphs()
    made = decode(content, deps=deps)
    found = [
        (row["group"], row["executions"], row["start"], row["length"], row["period"]) for row in rows(made, "round")
    ]
    assert {row["series"] for row in rows(made, "round")} == {"graph of 2 nodes"}
    assert found == [
        ("t1", 2, 200 * TICK, 110 * TICK, None),
        ("t2", 2, 400 * TICK, 110 * TICK, 200 * TICK),
        ("t3", 2, 650 * TICK, 110 * TICK, 250 * TICK),
    ]
    assert remarks(made, "round") == [
        "time per round, from start to start: median 4,000 ns, 90th percentile 5,000 ns, of 2 (graph of 2 nodes)"
    ]


def test_graphs_of_other_nodes_are_not_the_same():
    content, deps = graphs(third=(0, 3))
    made = decode(content, deps=deps)
    assert [row["group"] for row in rows(made, "round")] == ["t1", "t2"]


def repeated(functions, *, submits=None, rings=0):
    """Return a capture of one task after the other, of given functions, and its graph."""
    ids = [(rings and n % 2) << 32 | n for n in range(len(functions))]
    tasks = [(task, 0, 100 * n + 90, 100 * n + 100, 100 * n + 150) for n, task in enumerate(ids)]
    more = {}
    if submits is not None:
        listed = [
            {"submit_idx": n, "task_id": ids[task], "start_cycles": n + 1, "end_cycles": n + 1}
            for n, task in enumerate(submits)
        ]
        more = {"level": 4, "aicpu_orchestrator_phases": [listed]}
    return run(tasks, **more), graph({task: (kind, -1, -1) for task, kind in zip(ids, functions, strict=True)})


@pytest.mark.parametrize(
    ("functions", "options", "expected"),
    [
        ((0, 1, 0, 1, 0, 1), {}, "order func_0_a, func_1_b"),
        # Not as a whole, of one function, or in an order that is not known.
        ((0, 1, 0, 1, 0), {}, "file"),
        ((0, 0, 0, 0), {}, "file"),
        ((0, 1, 0, 1), {"rings": 1}, "file"),
        # The order is that of the submits, not of the numbers.
        ((0, 0, 1, 1), {"submits": (0, 2, 1, 3)}, "order func_0_a, func_1_b"),
        ((0, 1, 0, 1), {"submits": (0, 2, 1, 3)}, "file"),
        ((0, 1, 2, 3, 4, 5, 6) * 2, {}, "order func_0_a, func_1_b, func_2_c, func_3_d, func_4_e, func_5_f, ..."),
    ],
)
def test_repetitions_of_the_order_of_submission(functions, options, expected):
    content, deps = repeated(functions, **options)
    made = decode(content, deps=deps)
    found = rows(made, "round")
    assert {row["series"] for row in found} == {expected}
    told = remarks(made, "round")
    if expected == "file":
        assert (len(found), "no rounds are recorded" in told[0]) == (1, True)
    else:
        assert "inferred" in told[-1]
        assert sum(row["executions"] for row in found) == len(functions)


def test_rounds_of_the_producer(corpus):
    root = corpus / "producers" / "ascend"
    for path in sorted(root.glob("pa_l*/*/chip_swimlane_records.json")):
        content = json.loads(path.read_text())
        made = rows(decode_file(path), "round")
        assert {row["series"] for row in made} == {"order QK, SF, PV, UP"}
        # Tasks count up on ring 2, four to a round.
        expected = Counter((row[1] & 0xFFFFFFFF) // 4 for row in content["aicore_tasks"])
        assert {int(row["group"]): row["executions"] for row in made} == expected
    for path in sorted(root.glob("graph_l4/*/chip_swimlane_records.json")):
        content = json.loads(path.read_text())
        expected = Counter((row[1] & 0xFFFFFFFF) >> 10 for row in content["aicore_tasks"] if row[1] >> 32)
        made = rows(decode_file(path), "round")
        assert {int(row["group"][1:]): row["executions"] for row in made} == expected
        assert {row["series"] for row in made} == {"graph of 4 nodes"}


# --- nodes of graphs --------------------------------------------------------------------------------------------------


def test_the_order_of_nodes_is_not_known():
    content, deps = graphs()
    made = decode(content, deps=deps)
    # The graphs are ready at 200, their first nodes are dispatched at 290, 490 and 740, all at once.
    found = {row["group"]: row for row in rows(made, "core-idle")}
    # Core 1, from 100 to 860: it runs from 310 on for 100, and so on; each time the next is on its way for 20.
    line = found["AIV_1"]
    assert (line["busy"], line["launch"]) == (300 * TICK, 60 * TICK)
    assert (line["scheduler_late"], line["no_ready_task"], line["unknown"]) == (300 * TICK, 100 * TICK, 0)
    # Of the third graph the node on core 1 comes later than the other: it may have been ready with the graph or not.
    late = json.loads(json.dumps(content))
    late["aicpu_tasks"][-1][2] += 15
    line = {row["group"]: row for row in rows(decode(late, deps=deps), "core-idle")}["AIV_1"]
    assert (line["busy"], line["launch"], line["no_ready_task"]) == (300 * TICK, 45 * TICK, 100 * TICK)
    # Known until the first node of the second graph is dispatched, and from the end of that one unknown.
    assert (line["scheduler_late"], line["unknown"]) == (170 * TICK, 145 * TICK)


def test_graphs_of_the_producer_are_not_called_bound_by_computation(corpus):
    for path in sorted((corpus / "producers" / "ascend").glob("graph_l4/*/chip_swimlane_records.json")):
        content = json.loads(path.read_text())
        made = decode_file(path)
        deps = json.loads(path.with_name("deps.json").read_text())
        ends = {row[1]: row[4] for row in content["aicore_tasks"]}
        sent = {(row[0], row[1]): row[2] for row in content["aicpu_tasks"]}
        first = {}
        for row in content["aicore_tasks"]:
            if row[1] >> 32:
                outer = (row[1] & 0xFFFFFFFF) >> 10
                first[outer] = min(first.get(outer, 1 << 62), sent[row[0], row[2]])
        ready = {int(edge["succ"]): ends[int(edge["pred"])] for edge in deps["edges"]}
        assert set(ready) == set(first)
        # Some core is idle all the time; from then on a node was ready, known until the first of its graph was sent.
        (line,) = [row for row in rows(made, "overhead") if row["group"] == "any type"]
        least = max(first.values()) - min(ready.values())
        assert line["at_most"] >= TICK * least > 0 == line["overhead"]
        assert "which would be scheduler-bound" in remarks(made, "overhead")[1]
        assert sum(row["unknown"] for row in rows(made, "core-idle")) > 0


# --- iterations of the loop -------------------------------------------------------------------------------------------


def phases(*rows_):
    """Return the phases of one thread from (kind, start, end, iteration)."""
    return [
        {"kind": kind, "start_cycles": start, "end_cycles": end, "loop_iter": number, "tasks_processed": 1}
        for kind, start, end, number in rows_
    ]


@pytest.mark.parametrize(
    ("end", "finish", "expected"),
    [
        # In iteration 2, between those with records: 2 to 5 when it ended, seen in 6.
        (125, 162, (1, 4)),
        # While iteration 2 was recorded, which settles it.
        (115, 162, (4, 4)),
        # Before all records.
        (95, 162, (4, 5)),
        # Seen in the iteration in which it ended, or not in a phase that sees ends.
        (161, 162, (0, 0)),
        (125, 140, (None, None)),
        (125, 152, (None, None)),
    ],
)
def test_iterations_that_a_tail_lasts(end, finish, expected):
    thread = phases(
        ("dispatch", 110, 120, 2), ("release", 150, 155, 5), ("complete", 160, 165, 6), ("dispatch", 170, 170, 6)
    )
    content = records(
        [[0, 1, 1, 90, end, 1]],
        [[0, 1, 80, finish]],
        key="chip_swimlane_level",
        level=3,
        cores=("aic",),
        aicpu_scheduler_phases=[thread],
        metadata={"core_to_thread": [0]},
    )
    made = decode(content, deps=graph({1: (0, -1, -1)}))
    line = rows(made, "tail")[0]
    assert (line["loops_min"], line["loops_max"]) == expected
    assert ("by the recorded numbers" in remarks(made, "tail")[-1]) == (expected != (None, None))


def test_without_phases_no_tail_has_iterations():
    content = records([[0, 1, 1, 90, 95, 1]], [[0, 1, 80, 99]], key="chip_swimlane_level")
    assert remarks(decode(content), "tail") == [
        "no tail in iterations: phases of the schedulers are not recorded (level 3)"
    ]


# --- early dispatch ---------------------------------------------------------------------------------------------------


def test_what_schedulers_staged_early_and_how_long_it_took(corpus):
    staged = 0
    for path in sorted((corpus / "producers" / "ascend").glob("*/*/chip_swimlane_records.json")):
        content = json.loads(path.read_text())
        lists = content.get("aicpu_scheduler_phases", [])
        tick = 10**9 // content["metadata"]["clock_freq_hz"]
        for row in rows(decode_file(path), "scheduler"):
            mine = [p for p in lists[int(row["group"].rpartition("_")[2])] if p["kind"] == "early_dispatch"]
            assert row["staged_early"] == sum(p["tasks_processed"] for p in mine)
            assert row["staging"] == tick * sum(p["end_cycles"] - p["start_cycles"] for p in mine)
            staged += row["staged_early"]
    assert staged >= 20


# --- switches ---------------------------------------------------------------------------------------------------------


def test_what_switches_add_at_least_and_at_most():
    # Core 0 switches for 2 ticks, core 1 for 7 and 1, both cube cores; core 2 runs once; core 3 never runs.
    tasks = [(1, 0, 1, 10, 20), (2, 0, 8, 22, 30), (3, 1, 1, 10, 20), (4, 1, 8, 27, 30), (5, 1, 8, 31, 40)]
    made = decode(run([*tasks, (6, 2, 1, 10, 20)], cores=("aic", "aic", "aiv", "aiv")), deps=graph())
    found = {row["group"]: row["least_core"] for row in rows(made, "switch")}
    assert found == {
        "all aic": 2 * TICK, "all aiv": 0, "AIC_0": 2 * TICK, "AIC_1": 8 * TICK, "AIV_2": 0, "AIV_3": None,
    }  # fmt: skip
    assert remarks(made, "switch")[1].startswith("switches lengthen the run by 0 to 40 ns:")
