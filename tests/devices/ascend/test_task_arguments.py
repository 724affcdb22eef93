"""What viewers show of the task of an execution: its short ID, how many tasks it waits for, how many wait for it."""

import json
import re
from collections import Counter
from pathlib import Path

from devices.ascend.helpers import decode, decode_file, graph, records
from lanescope.io.chrome import write

#: Tasks 0, 1 and 2 of ring 2.
A, B, C = (2 << 32 | number for number in range(3))
HINT = re.compile(r"(\d+): ")


def rows(*ids):
    """Return one execution of each task."""
    return [[0, task, number + 1, 100 * number + 100, 100 * number + 150, 0] for number, task in enumerate(ids)]


def fans(trace):
    """Return (task, fan-in, fan-out) of the executions."""
    return [(row["task"], row["fan_in"], row["fan_out"]) for row in trace.details["ascend_tasks"].rows()]


def test_each_pair_of_tasks_counts_once_and_edges_that_order_nothing_do_not():
    edges = [(A, B), (A, B, ["wait"]), (A, C), (B, C), (C, C), (B, A, ["retain"])]
    deps = graph(dict.fromkeys((A, B, C), (0, -1, -1)), edges)
    trace = decode(records(rows(A, B, C), level=1), deps=deps)
    assert fans(trace) == [("r2t0", 0, 2), ("r2t1", 1, 1), ("r2t2", 2, 0)]


def test_without_an_entry_in_the_task_graph_they_are_unknown():
    assert fans(decode(records(rows(A, B), level=1))) == [("r2t0", None, None), ("r2t1", None, None)]
    trace = decode(records(rows(A, B, C), level=1), deps=graph({A: (0, -1, -1)}, [(A, B)]))
    assert fans(trace) == [("r2t0", 0, 1), ("r2t1", 1, 0), ("r2t2", None, None)]


def test_arguments_in_a_viewer(tmp_path):
    deps = graph({A: (0, -1, -1), B: (0, -1, -1)}, [(A, B)])
    write(decode(records(rows(A, B), level=1), deps=deps), tmp_path / "a.json")
    events = json.loads((tmp_path / "a.json").read_text())["traceEvents"]
    found = [event["args"] for event in events if event.get("cat") == "kernel"]
    assert [(args["task"], args["fan_in"], args["fan_out"]) for args in found] == [("r2t0", 0, 1), ("r2t1", 1, 0)]


def test_the_producer_counts_the_same(corpus):
    folders = sorted(path.parent for path in Path(corpus, "producers/ascend").glob("*_l4/*/deps.json"))
    assert len(folders) >= 15
    some_fans = 0
    for folder in folders:
        events = json.loads((folder / "merged_swimlane.json").read_text())["traceEvents"]
        expected = Counter()
        for event in events:
            args = event.get("args", {})
            if event.get("pid") == 4 and "fanin-hint" in args:
                numbers = [int(HINT.match(args[f"fan{side}-hint"])[1]) for side in ("in", "out")]
                expected[event["name"].partition("(")[2].rstrip(")"), *numbers] += 1
        found = Counter(
            (task, a or 0, b or 0) for task, a, b in fans(decode_file(folder / "chip_swimlane_records.json"))
        )
        assert found == expected, folder.name
        some_fans += sum(a + b for _, a, b in found)
    assert some_fans
