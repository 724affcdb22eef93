"""The task graph as the runtime writes it: repeated edges, and edges that order nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.formats.layout import DEPS_EDGES, DEPS_TASKS, RETAIN, WAIT
from lanescope.devices.ascend.formats.records import Deps, section
from lanescope.devices.ascend.simulate.chip import rank
from lanescope.devices.ascend.simulate.scenario import Scenario
from lanescope.devices.ascend.simulate.workload import ALLOC, Tasks

Int64 = npt.NDArray[np.int64]

#: Who may know of an edge.
SOURCES = ("explicit", "creator", "tensormap")
#: A task with more producers than that declares them all.
_DECLARED = 16


def graph(scenario: Scenario, tasks: Tasks, random: np.random.Generator) -> tuple[Deps, dict[str, int]]:
    """Return the task graph file, and what a reader must count in it."""
    n, edges = len(tasks), len(tasks.pred)
    listed_tasks = tasks.kind != ALLOC if scenario.is_observed else np.ones(n, np.bool_)
    task_columns: dict[str, Any] = {
        "task_id": tasks.task_id,
        "kernel_ids": tasks.kernels,
        "block_num": tasks.blocks,
    }
    if scenario.is_chip:
        task_columns["early_dispatch"] = tasks.flagged
    task_columns = {name: values[listed_tasks] for name, values in task_columns.items()}
    again = np.flatnonzero(random.random(edges) < 0.1)
    listed = np.repeat(np.arange(edges), 1 + np.bincount(again, minlength=edges))
    # Backwards, so that anybody who takes them for an order sees an effect before its cause.
    # No known runtime writes those, nor edges of a task to itself: the captures of v3c have none.
    traps = not scenario.is_observed
    extra = min(4, n - 1) if scenario.is_chip and traps else 0
    selves = np.zeros(int(traps), np.int64)
    pred = np.concatenate([tasks.pred[listed], np.arange(n - extra, n), selves])
    succ = np.concatenate([tasks.succ[listed], np.arange(extra), selves])
    edge_columns: dict[str, Any] = {"pred": tasks.task_id[pred], "succ": tasks.task_id[succ]}
    sources: tuple[str, ...] = ()
    if scenario.is_observed:
        sources = SOURCES
        edge_columns["source"] = source = _sources(tasks, listed, rank(listed))
        if not scenario.host:
            edge_columns["flags"] = np.where(source == SOURCES.index("tensormap"), WAIT, WAIT | RETAIN)
    elif scenario.is_chip:
        edge_columns["flags"] = np.repeat([WAIT, RETAIN, WAIT], [len(listed), extra, 1])
    counts = {
        "edges": edges,
        "edges_repeated": len(again),
        "edges_to_self": len(selves),
        "edges_retain_only": extra,
    }
    found = Deps(section(DEPS_TASKS, task_columns), section(DEPS_EDGES, edge_columns, texts=sources))
    return found, counts


def _sources(tasks: Tasks, listed: Int64, again: Int64) -> Int64:
    """Return who knew of each edge, int64 [listed]: allocations create, the others are of every source.

    Args:
        tasks: the graph.
        listed: int64 [listed], the pair of each edge.
        again: int64 [listed], how many edges of the pair are listed before.
    """
    pred, succ = tasks.pred[listed], tasks.succ[listed]
    degree = np.bincount(tasks.succ, minlength=len(tasks))
    chosen = np.where(degree[succ] > _DECLARED, 0, (pred + succ + again) % len(SOURCES))
    return np.where(tasks.kind[pred] == ALLOC, SOURCES.index("creator"), chosen)
