"""The overhead of the schedulers: cores that idle while tasks are ready and not dispatched."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.devices.ascend.interpret import graph as graphs
from lanescope.devices.ascend.interpret.execution_table import Executions
from lanescope.devices.ascend.interpret.graph import Graph
from lanescope.trace.column import Array

Int64 = npt.NDArray[np.int64]

#: The counters and their units; ``overhead`` is 1 where it holds.
COUNTERS = {
    **{f"oh_{kind}_idle": "cores" for kind in ("aic", "aiv")},
    **{f"oh_{kind}_ready": "tasks" for kind in ("aic", "aiv")},
    **{f"oh_{kind}_overhead": "1" for kind in ("aic", "aiv")},
    "oh_all_overhead": "1",
    "oh_has_overhead": "1",
}


def overhead(runs: Executions, graph: Graph) -> dict[str, tuple[Int64, Int64]]:
    """Return the counters of the types of cores that occur: (cycles, value) where the value changes, [n] each.

    Only rows of both streams count. ``idle``: cores of a type that run nothing; ``ready``: tasks with rows of that type
    whose producers have all ended and that are not dispatched; ``overhead``: both are above 0. ``all``: overhead of
    every type that occurs; ``has``: some type has ready tasks, and every such type has idle cores.

    Args:
        runs: the executions.
        graph: the task graph.
    """
    rows = np.flatnonzero((runs.dispatch > 0) & (runs.end >= runs.start) & (runs.core_type != graphs.UNKNOWN))
    if not len(rows):
        return {}
    task, kind = runs.task[rows], runs.core_type[rows]
    start, end = runs.start[rows], runs.end[rows]
    low, high = int(start.min()), int(end.max())
    last_end, _ = graphs.extreme(task, end, len(graph), largest=True)
    dispatch, row = graphs.extreme(task, runs.dispatch[rows], len(graph), largest=False)
    ready = graphs.ready(graph, last_end)
    waiting = (row >= 0) & (ready > 0) & (dispatch > ready)
    present = [code for code in (graphs.AIC, graphs.AIV) if (kind == code).any()]
    changes: list[tuple[Int64, Int64]] = []  # instants and steps of each curve
    for code in present:
        mine = kind == code
        changes.append((np.concatenate([start[mine], end[mine]]), _steps(int(mine.sum()), -1)))
        has_rows = np.zeros(len(graph), np.bool_)
        has_rows[task[mine]] = True
        tasks = np.flatnonzero(waiting & has_rows)
        changes.append((np.concatenate([ready[tasks], dispatch[tasks]]), _steps(len(tasks), 1)))
    instants = np.sort(np.clip(np.concatenate([[low, high], *(at for at, _ in changes)]), low, high))
    instants = instants[np.diff(instants, prepend=low - 1) > 0]
    levels = []
    for at, step in changes:
        curve = np.zeros(len(instants), np.int64)
        np.add.at(curve, np.searchsorted(instants, np.clip(at, low, high)), step)
        levels.append(np.cumsum(curve))
    idle = [len(distinct(runs.core[rows][kind == code])) + levels[2 * i] for i, code in enumerate(present)]
    waits = [levels[2 * i + 1] for i in range(len(present))]
    both = [(free > 0) & (some > 0) for free, some in zip(idle, waits, strict=True)]
    held = np.logical_and.reduce([(free > 0) | (some == 0) for free, some in zip(idle, waits, strict=True)])
    found = {
        "all": np.logical_and.reduce(both),
        "has": held & np.logical_or.reduce([some > 0 for some in waits]),
    }
    curves: dict[str, Array] = {}
    for i, code in enumerate(present):
        name = graphs.CORE_TYPES[code]
        curves |= {f"oh_{name}_idle": idle[i], f"oh_{name}_ready": waits[i], f"oh_{name}_overhead": both[i]}
    curves |= {f"oh_{name}_overhead": values for name, values in found.items()}
    return {name: _changes(instants, curves[name].astype(np.int64)) for name in COUNTERS if name in curves}


def _steps(count: int, sign: int) -> Int64:
    """Return the steps of ``count`` intervals whose begins stand before all their ends."""
    return np.repeat([sign, -sign], count)


def _changes(instants: Int64, value: Int64) -> tuple[Int64, Int64]:
    at = np.flatnonzero(np.diff(value, prepend=value[:1] - 1))
    return instants[at], value[at]
