"""Summaries of schedulers, cores, functions and setups, and the tasks around a task: against loops over the rows."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.ascend.helpers import decode, golden, graph, records, simulated
from devices.ascend.helpers import decode_simulated as decode_
from effort import some
from lanescope.cli import main
from lanescope.devices.ascend.analysis.dependency_walk import fan
from lanescope.devices.ascend.family import FAMILY
from lanescope.errors import UsageError
from lanescope.trace import TimeBase, TraceBuilder


@pytest.fixture(scope="module")
def trace():
    return decode_(simulated(3, tasks=200, format_version="v3c", speculative=0.3))


def rows(trace, by):
    return list(FAMILY.summarise(by, trace).rows())


def ranks(values):
    """Return median and 99th percentile: the smallest value that so many do not exceed."""
    values = sorted(values)
    return values[math.ceil(len(values) / 2) - 1], values[math.ceil(len(values) * 0.99) - 1]


@pytest.mark.parametrize("by", ["phase", "thread-phase"])
def test_phases_against_their_rows(trace, by):
    details = list(trace.details["ascend_phases"].rows())
    slices = list(trace.slices.rows())
    lanes = trace.tracks["name"]
    seen = {}
    for row in details:
        piece = slices[row["slice_id"]]
        key = (lanes[piece["track_id"]] if by == "thread-phase" else piece["name"], piece["name"])
        seen.setdefault(key, []).append((piece["dur"], row["tasks_processed"], row["role"]))
    found = rows(trace, by)
    for row in found:
        kind = row["kind"] if by == "thread-phase" else row["group"]
        if row["role"] == "idle":
            continue
        mine = seen.pop((row["group"], kind))
        lengths = [dur for dur, _, _ in mine]
        assert (row["count"], row["total"]) == (len(mine), sum(lengths))
        assert (row["min"], row["max"]) == (min(lengths), max(lengths))
        assert (row["median"], row["p99"]) == ranks(lengths)
        assert row["tasks"] == (None if kind == "dummy_task" else sum(tasks for _, tasks, _ in mine))
        assert {role for _, _, role in mine} == {row["role"]}
        assert row["at_least"] == (kind == "resolve")
    assert not seen
    # What the outer phases and the pauses take is the window of the threads.
    for group in {row["group"] for row in found} if by == "thread-phase" else {None}:
        share = sum(row["share"] for row in found if row["role"] in ("outer", "idle") and group in (None, row["group"]))
        assert share == pytest.approx(1, abs=1e-6)


def test_a_scheduler_line_is_its_thread(trace):
    threads = {row["track_id"]: row for row in trace.details["ascend_threads"].rows()}
    names = trace.tracks["name"]
    by_name = {names[track]: row for track, row in threads.items()}
    for row in rows(trace, "scheduler"):
        thread = by_name.pop(row["group"])
        assert row["busy"] + row["idle"] == row["window"] == thread["window_ns"]
        assert row["hit_rate"] == thread["pop_hit"] / (thread["pop_hit"] + thread["pop_miss"])
        assert row["loop"] * row["iterations"] <= row["window"] < (row["loop"] + 20) * row["iterations"]
        assert 0 < row["working"] <= row["iterations"]
    assert not by_name


def test_cores_add_up(trace):
    found = rows(trace, "core")
    parts = ("busy", "dependency", "submit", "dispatch", "propagation", "setup", "unknown", "trailing_idle")
    for row in found:
        assert sum(row[part] for part in parts) == row["window"]
    types = [row for row in found if row["group"].startswith("all ")]
    single = [row for row in found if not row["group"].startswith("all ")]
    for column in (*parts, "executions"):
        assert sum(row[column] for row in types) == sum(row[column] for row in single)
    assert sum(row["executions"] for row in types) == len(trace.details["ascend_tasks"])


def test_functions_and_setups(trace):
    names = trace.slices["name"]
    by_name = {}
    for row in trace.details["ascend_tasks"].rows():
        by_name.setdefault(names[row["slice_id"]], []).append(row)
    for row in rows(trace, "function"):
        mine = by_name[row["group"]]
        assert row["count"] == len(mine)
        for column in ("duration", "head", "propagation", "local_setup", "gate_wait", "tail"):
            assert row[column] == pytest.approx(sum(task[f"{column}_ns"] for task in mine) / len(mine))
        latency = [task["finish_ts"] - task["dispatch_ts"] for task in mine]
        assert row["exec_share"] == pytest.approx(row["total"] / sum(latency))
    found = rows(trace, "setup")
    assert [row["total"] for row in found] == sorted((row["total"] for row in found), reverse=True)
    for row in found:
        mine = by_name[row["group"]]
        setups = [task["local_setup_ns"] for task in mine]
        assert (row["count"], row["total"], row["min"], row["max"]) == (
            len(mine),
            sum(setups),
            min(setups),
            max(setups),
        )
        assert (row["median"], row["p99"]) == ranks(setups)
        # Blocks of one task share a label.
        assert row["max"] in {task["local_setup_ns"] for task in mine if task["label"] == row["longest"]}
        assert row["of_head"] == pytest.approx(sum(setups) / sum(task["head_ns"] for task in mine))
        on_core = sum(setups) + sum(task["duration_ns"] for task in mine)
        assert row["of_core"] == pytest.approx(sum(setups) / on_core)
    assert sum(row["share"] for row in found) == pytest.approx(1)


@pytest.mark.parametrize("by", [summary.name for summary in FAMILY.summaries])
@pytest.mark.parametrize("case", ["v2_chain", "v3_cold_first", "v3_spec_dummy"])
def test_summaries_of_captures_that_lack_things(by, case):
    found = rows(golden(case, "l2"), by)
    if case == "v2_chain" and by == "setup":
        assert found == []
    if case == "v3_cold_first" and by == "function":
        assert {row["latency"] for row in found} == {None}


def test_a_trace_of_another_family_is_refused():
    other = TraceBuilder(TimeBase()).finish()
    with pytest.raises(UsageError, match="no Ascend tasks"):
        FAMILY.summarise("phase", other)
    with pytest.raises(UsageError, match="no Ascend tasks"):
        fan(other, "t1")


# --- the tasks around a task --------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=20),
    st.integers(0, 8),
    st.integers(0, 4),
)
@settings(max_examples=some(100))
def test_the_tasks_around_a_task_by_hand(pairs, task, depth):
    ids = list(range(9))
    rows_ = [[0, n, n + 1, 100 * n + 10, 100 * n + 60, 1] for n in ids]
    made = decode(records(rows_, level=1), deps=graph(dict.fromkeys(ids, (0, -1, -1)), pairs))
    edges = {(p, s) for p, s in pairs if p != s}
    for direction in ("in", "out"):
        distance = {task: 0}
        for step in range(1, depth + 1):
            near = [t for t, d in distance.items() if d == step - 1]
            for pred, succ in edges:
                one, other = (succ, pred) if direction == "in" else (pred, succ)
                if one in near:
                    distance.setdefault(other, step)
        found = list(fan(made, f"t{task}", depth, direction).rows())
        assert {row["task_id"]: row["depth"] for row in found} == {t: d for t, d in distance.items() if d}
        for row in found:
            via = int(row["via"][1:])
            assert distance[via] == row["depth"] - 1
            pair = (row["task_id"], via) if direction == "in" else (via, row["task_id"])
            assert pair in edges
            assert row["violated"] == (100 * pair[0] + 60 > 100 * pair[1] + 9)


def test_edges_without_a_place_are_followed():
    # The barrier 2 has no marker: it stands nowhere, and still joins 1 and 3.
    rows_ = [[0, 1, 1, 100, 150, 1], [0, 3, 2, 200, 250, 1]]
    made = decode(
        records(rows_, level=1), deps=graph({1: (0, -1, -1), 2: (-1, -1, -1), 3: (0, -1, -1)}, [(1, 2), (2, 3)])
    )
    assert len(made.flows) == 0
    found = [(row["task"], row["depth"], row["label"], row["violated"]) for row in fan(made, "3", 2, "in").rows()]
    assert found == [("t2", 1, None, None), ("t1", 2, "func_0_a(t1)", None)]


@pytest.mark.parametrize("task", ["t99", "x", "r1", "-1", "9" * 30, "t", "r99999999999t1"])
def test_a_task_that_is_none(task):
    with pytest.raises(UsageError):
        fan(golden("v3_spec_dummy", "l2"), task)


def test_the_verb(capsys, tmp_path):
    (tmp_path / "l2_swimlane_records.json").write_text(json.dumps(records([[0, 1, 1, 100, 150], [0, 2, 2, 160, 190]])))
    (tmp_path / "deps.json").write_text(json.dumps(graph({1: (0, -1, -1), 2: (0, -1, -1)}, [(1, 2)])))
    assert main(["ascend-deps", str(tmp_path / "l2_swimlane_records.json"), "t2", "--json"]) == 0
    given = json.loads(capsys.readouterr().out)
    assert given["schema"] == "lanescope.ascend-deps/1"
    assert [(row["task_id"], row["direction"], row["slack_ticks"]) for row in given["rows"]] == [("1", "in", 10)]
    assert [(row["kind"], row["slack_ns"]) for row in given["rows"]] == [("kernel", 200)]
    assert main(["ascend-deps", str(tmp_path / "l2_swimlane_records.json"), "t2", "--csv"]) == 0
    names, line = (text.split(",") for text in capsys.readouterr().out.splitlines())
    assert dict(zip(names, line, strict=True))["slack_ns"] == "200"
    assert "slack_ticks" not in names
    assert main(["summary", str(tmp_path / "l2_swimlane_records.json"), "--by", "phase"]) == 0
