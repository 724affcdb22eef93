"""Which other task ids the executions of a capture could have: what binds a task to its execution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lanescope.families.field_sites import Possible, Value

_FITS = "another task that fits the core, the dispatch and all dependencies"
#: Slots of a task's kernels, by type of core.
_SLOTS = {"aic": (0,), "aiv": (1, 2)}
_MARKERS = ("dummy_task", "predicated_skip")


class Execution(NamedTuple):
    """One execution: its task, the type of its core, when it was dispatched and seen to finish."""

    task: int
    core_type: str
    dispatch: float
    finish: float


class TaskGraph:
    """What a task graph and markers say of the order of tasks.

    Args:
        deps: the task graph file.
        records: the records file.
    """

    def __init__(self, deps: Mapping[str, Any], records: Mapping[str, Any]) -> None:
        self.tasks = {int(task["task_id"]): task for task in deps["tasks"]}
        self.edges = {
            (int(edge["pred"]), int(edge["succ"])) for edge in deps["edges"] if "wait" in edge.get("flags", ["wait"])
        }
        self.passed: dict[int, float] = {}
        self.submitted: dict[int, float] = {}
        for thread in records.get("aicpu_scheduler_phases") or ():
            self._add_markers(thread)
        for stream in (records.get("scheduler_records") or {}).get("streams", ()):
            self._add_markers(stream["records"])
        for orchestrator in records.get("aicpu_orchestrator_phases") or ():
            for row in orchestrator:
                self.submitted[row["task_id"]] = row.get("start_cycles", row.get("start_time_us", 0))

    def _add_markers(self, phases: Sequence[Mapping[str, Any]]) -> None:
        for row in phases:
            if row.get("kind") in _MARKERS:
                # Before v3c the lower half of the id is the count; the small captures have no other half.
                self.passed[row.get("task_id", row["tasks_processed"])] = row["start_cycles"]

    def fits(self, runs: Sequence[Execution], tasks: set[int]) -> bool:
        """Return whether these can be the executions of some tasks: sent after their producers were seen to end."""
        begun, ended = dict(self.passed), dict(self.passed)
        for run in runs:
            begun[run.task] = min(begun.get(run.task, run.dispatch), run.dispatch)
            ended[run.task] = max(ended.get(run.task, run.finish), run.finish)
        for run in runs:
            if run.task not in tasks:
                continue
            task = self.tasks.get(run.task)
            if task is None or self.submitted.get(run.task, run.dispatch) > run.dispatch:
                return False
            if all(task["kernel_ids"][slot] < 0 for slot in _SLOTS[run.core_type]):
                return False
        return all(
            ended[pred] <= begun[succ]
            for pred, succ in self.edges
            if (pred in tasks or succ in tasks) and pred in ended and succ in begun and pred != succ
        )


def _counts(runs: Sequence[Execution]) -> Counter[tuple[int, str]]:
    return Counter((run.task, run.core_type) for run in runs)


def possible_tasks(graph: TaskGraph | None, runs: Sequence[Execution], rows: Sequence[int]) -> Possible:
    """Return which tasks are possible for executions.

    Args:
        graph: the task graph; None without one.
        runs: the executions as recorded.
        rows: the execution of each site.
    """

    def possible(values: Mapping[int, Value]) -> str:
        made, tasks = list(runs), set[int]()
        for index, value in values.items():
            if not isinstance(value, int):
                return ""
            made[rows[index]] = made[rows[index]]._replace(task=value)
            tasks.add(value)
        # As many on each type of core as there were.
        is_same = _counts(made) == _counts(runs)
        return _FITS if is_same and graph is not None and graph.fits(made, tasks) else ""

    return possible
