"""The task graph as the runtime writes it: repeated edges, and edges that order nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanescope.devices.ascend.formats.layout import DEPS_EDGES, DEPS_TASKS, RETAIN, WAIT
from lanescope.devices.ascend.formats.records import Deps, section
from lanescope.devices.ascend.simulate.scenario import Scenario
from lanescope.devices.ascend.simulate.workload import Tasks


def graph(scenario: Scenario, tasks: Tasks, random: np.random.Generator) -> tuple[Deps, dict[str, int]]:
    """Return the task graph file, and what a reader must count in it."""
    n, edges = len(tasks), len(tasks.pred)
    task_columns: dict[str, Any] = {
        "task_id": tasks.task_id,
        "kernel_ids": tasks.kernels,
        "block_num": tasks.blocks,
    }
    if scenario.is_chip:
        task_columns["early_dispatch"] = tasks.flagged
    again = np.flatnonzero(random.random(edges) < 0.1)
    listed = np.repeat(np.arange(edges), 1 + np.bincount(again, minlength=edges))
    # Backwards, so that anybody who takes them for an order sees an effect before its cause.
    extra = min(4, n - 1) if scenario.is_chip else 0
    pred = np.concatenate([tasks.pred[listed], np.arange(n - extra, n), [0]])
    succ = np.concatenate([tasks.succ[listed], np.arange(extra), [0]])
    edge_columns: dict[str, Any] = {"pred": tasks.task_id[pred], "succ": tasks.task_id[succ]}
    if scenario.is_chip:
        edge_columns["flags"] = np.repeat([WAIT, RETAIN, WAIT], [len(listed), extra, 1])
    counts = {
        "edges": edges,
        "edges_repeated": len(again),
        "edges_to_self": 1,
        "edges_retain_only": extra,
    }
    return Deps(section(DEPS_TASKS, task_columns), section(DEPS_EDGES, edge_columns)), counts
