"""The part of a task graph that a window has: times and slack are those of the whole."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.declaration import replace
from lanescope.devices.ascend.analysis.graph_order import order, transitive_reduction
from lanescope.devices.ascend.analysis.task_graph import TaskGraph
from lanescope.trace import Trace
from lanescope.trace.column import Mask


def whole_of(trace: Trace) -> Trace:
    """Return what a trace is the window of; the trace itself where it is that of none."""
    while trace.origin is not None:
        trace = trace.origin.whole
    return trace


def executed_in(part: Trace) -> npt.NDArray[np.uint64]:
    """Return the ids of the tasks that have an execution among the slices of a window, uint64 [n]."""
    return distinct(part.details["ascend_tasks"].values("task_id"))


def tasks_in(graph: TaskGraph, part: Trace) -> Mask:
    """Return which tasks a window has, bool [tasks].

    They are those with an execution in it, of graphs one of a node; and where it selects times only, tasks without any
    execution that begin in it.
    """
    executed = set(executed_in(part).tolist())
    found = np.array(
        [
            task in executed or any(node in executed for _, node in nodes)
            for task, nodes in zip(graph.ids.tolist(), graph.nodes, strict=True)
        ],
        np.bool_,
    )
    origin = part.origin
    if origin is None or origin.has_filter or origin.lanes:
        return found
    for task, (bars, begin) in enumerate(zip(graph.times.bars, graph.times.begin, strict=True)):
        if not bars and begin is not None:
            is_late = origin.start is None or begin >= origin.start
            found[task] = is_late and (origin.end is None or begin < origin.end)
    return found


def windowed_graph(graph: TaskGraph, chosen: Mask) -> TaskGraph:
    """Return the graph of some tasks: the edges between them, with levels and implied edges among themselves.

    Args:
        graph: the graph.
        chosen: bool [tasks].
    """
    kept = np.flatnonzero(chosen)
    place = np.full(len(graph), -1, np.int64)
    place[kept] = np.arange(len(kept))
    edges = np.flatnonzero(chosen[graph.pred] & chosen[graph.succ])
    pred, succ = place[graph.pred[edges]], place[graph.succ[edges]]
    found = order(pred, succ, len(kept))
    tasks = kept.tolist()
    listed = {
        name: [getattr(graph, name)[task] for task in tasks]
        for name in ("names", "kinds", "records", "functions", "blocks", "allows_early", "nodes", "slack", "inputs")
    }
    times = {
        name: [getattr(graph.times, name)[task] for task in tasks]
        for name in ("begin", "begun", "end", "ready", "early", "bars")
    }
    return replace(
        graph,
        **listed,
        ids=graph.ids[kept],
        pred=pred,
        succ=succ,
        order=found,
        is_needed=transitive_reduction(pred, succ, found),
        violated=graph.violated[edges],
        times=replace(graph.times, **times),
        reasons=[graph.reasons[edge] for edge in edges.tolist()],
    )
