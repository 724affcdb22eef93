"""Who a task waits for and who waits for it, to a depth."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.devices.ascend.analysis.executions import frequency_of
from lanescope.devices.ascend.interpret.names import task_name
from lanescope.errors import UsageError
from lanescope.trace import ColumnSpec, Table, TableSpec, Trace, ticks_to_ns

Int64 = npt.NDArray[np.int64]

DIRECTIONS = ("in", "out", "both")
_NAME = re.compile(r"(?:r(\d{1,10}))?t(\d{1,10})\Z")

FAN = TableSpec(
    "ascend_fan",
    "a task that another one waits for, or that waits for it, over one or more edges",
    (
        ColumnSpec("id", "int64", "row number, dense, producers first, then by depth"),
        ColumnSpec("direction", "utf8", "in: a producer of the task; out: a consumer of the task"),
        ColumnSpec("depth", "int64", "minimum number of edges to the task"),
        ColumnSpec("task_id", "uint64", "64-bit task ID"),
        ColumnSpec("task", "utf8", "short task ID, e.g. t5, r2t5"),
        ColumnSpec("kind", "utf8", "see `ascend_graph_tasks.kind`; NULL if not known", nullable=True),
        ColumnSpec("label", "utf8", "name and task; NULL without an execution", nullable=True),
        ColumnSpec("via", "utf8", "adjacent task on the first path found"),
        ColumnSpec("violated", "bool", "whether the edge to that task is violated; NULL if not checked", nullable=True),
        ColumnSpec(
            "slack_ns",
            "int64",
            "slack of the edge to that task: from the end of its producer to the start of its consumer; NULL if not "
            "checked",
            nullable=True,
            unit="ns",
        ),
        ColumnSpec("slack_ticks", "int64", "the same in ticks; NULL if not checked", nullable=True, unit="ticks"),
    ),
)


def fan(trace: Trace, task: str, depth: int = 1, direction: str = "both") -> Table:
    """Return the tasks around one task.

    Args:
        trace: a trace of one capture.
        task: task id: a number, or as people write it (``r2t5``).
        depth: how many edges away, 1 or more.
        direction: ``in``: its producers, ``out``: its consumers, ``both``.

    Raises:
        UsageError: the capture does not know the task, or the trace holds nothing of this family.
    """
    if "ascend_edges" not in trace.details:
        raise UsageError("trace contains no Ascend tasks", hint="pass an Ascend capture")
    if len(trace.details["ascend_runs"]) > 1:
        raise UsageError("trace contains several captures", hint="open one capture: task ids differ between captures")
    edges, tasks = trace.details["ascend_edges"], trace.details["ascend_tasks"]
    pred, succ = edges.values("pred_task_id"), edges.values("succ_task_id")
    ids = distinct(np.concatenate([pred, succ, tasks.values("task_id")]))
    # Executions know how their capture writes task ids.
    written = dict(zip(tasks.values("task_id").tolist(), tasks.values("task").tolist(), strict=True))
    number = next((task_id for task_id, text in written.items() if text == task), None)
    number = _task_id(task) if number is None else number
    at = int(np.searchsorted(ids, np.uint64(number)))
    if at == len(ids) or int(ids[at]) != number:
        raise UsageError(f"task {task} not found", hint="use a task id from `lanescope sql`, e.g. r2t5 or t5")
    first = {value: row for row, value in reversed(list(enumerate(tasks.values("task_id").tolist())))}
    listed_tasks = trace.details["ascend_graph_tasks"]
    kinds = dict(zip(listed_tasks.values("task_id").tolist(), listed_tasks.column("kind").texts.tolist(), strict=True))
    slack_ns = ticks_to_ns(edges.values("slack_ticks"), frequency_of(trace))
    ends = np.searchsorted(ids, pred), np.searchsorted(ids, succ)
    listed: list[dict[str, Any]] = []
    for way, (near, far) in {"in": ends[::-1], "out": ends}.items():
        if direction not in (way, "both"):
            continue
        for level, other, via, edge in _walk(near, far, at, depth, len(ids)):
            known = bool(edges.valid("is_violated")[edge])
            row = first.get(int(ids[other]))
            listed.append(
                {
                    "id": len(listed),
                    "direction": way,
                    "depth": level,
                    "task_id": int(ids[other]),
                    "task": written.get(int(ids[other]), task_name(int(ids[other]))),
                    "kind": kinds.get(int(ids[other])),
                    "label": None if row is None else tasks.take(np.array([row])).values("label")[0],
                    "via": written.get(int(ids[via]), task_name(int(ids[via]))),
                    "violated": bool(edges.values("is_violated")[edge]) if known else None,
                    "slack_ns": int(slack_ns[edge]) if known else None,
                    "slack_ticks": int(edges.values("slack_ticks")[edge]) if known else None,
                }
            )
    return Table.from_arrays(FAN, {name: [row[name] for row in listed] for name in FAN.names})


def _task_id(text: str) -> int:
    if text.isdecimal() and len(text) <= 20:
        return min(int(text), (1 << 64) - 1)
    match = _NAME.match(text)
    if match is None:
        raise UsageError(
            f"invalid task {text!r}: expected a number or an id such as r2t5", hint="use r2t5 for task 5 of ring 2"
        )
    return min(int(match[1] or 0), (1 << 32) - 1) << 32 | min(int(match[2]), (1 << 32) - 1)


def _walk(near: Int64, far: Int64, start: int, depth: int, tasks: int) -> list[tuple[int, int, int, int]]:
    """Return (depth, task, nearer task, edge) of the tasks around ``start``, each once, by depth."""
    order = np.argsort(near, kind="stable")
    bounds = np.searchsorted(near[order], np.arange(tasks + 1))
    seen = np.zeros(tasks, np.bool_)
    seen[start] = True
    front, found = [start], []
    for level in range(1, depth + 1):
        following = []
        for task in front:
            for edge in order[bounds[task] : bounds[task + 1]].tolist():
                other = int(far[edge])
                if not seen[other]:
                    seen[other] = True
                    following.append(other)
                    found.append((level, other, task, edge))
        front = following
        if not front:
            break
    return found
