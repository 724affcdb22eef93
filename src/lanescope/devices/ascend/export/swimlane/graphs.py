"""Bars of tasks that contain a graph: from the first time that the graph was prepared to the end of its last node."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from lanescope.devices.ascend.export.swimlane.event_rows import meta
from lanescope.devices.ascend.export.swimlane.trace_view import Content
from lanescope.devices.ascend.formats.layout import GRAPH_KIND
from lanescope.devices.ascend.interpret.graph import NODE_BITS

_PROCESS, _FIRST_LANE = 5, 5000
_BITS = int(NODE_BITS)


def graph_bars(content: Content) -> Iterator[str]:
    """Yield the events of the graphs that the schedulers prepared, with the names of process and lanes."""
    c, phases, graphs = content, content.phases, content.trace.details["ascend_graphs"]
    prepared = np.flatnonzero(phases.is_named(GRAPH_KIND) & phases.table.valid("task_id"))
    outer = phases.table.values("task_id")[prepared]
    ids = graphs.values("task_id")
    if not np.isin(ids, outer).any():
        return
    # The executions of each graph: those of the ids that follow from its own.
    first = np.uint64(1 << 32) | (ids << NODE_BITS)
    ran = c.known[c.task]
    order = np.argsort(ran, kind="stable")
    low, high = (np.searchsorted(ran[order], edge).tolist() for edge in (first, first + np.uint64(1 << _BITS)))
    by_outer = np.argsort(outer, kind="stable")
    begins, ends = (np.searchsorted(outer[by_outer], ids, side=side).tolist() for side in ("left", "right"))
    dispatch, finish = np.where(c.is_joined, c.dispatch, c.bar), np.where(c.is_joined, c.finish, c.end)
    found = []
    for graph, number, nodes in zip(range(len(ids)), ids.tolist(), graphs.values("nodes").tolist(), strict=True):
        slices, rows = prepared[by_outer[begins[graph] : ends[graph]]], order[low[graph] : high[graph]]
        if not len(slices):
            continue
        index = ran[rows] & np.uint64((1 << _BITS) - 1)
        start, begin, end = float(dispatch[rows].min()), float(phases.begin[slices].min()), float(finish[rows].max())
        args = {
            "outer_task_id": number,
            "visible_node_count": nodes,
            "visible_node_index_min": int(index.min()),
            "visible_node_index_max": int(index.max()),
            "prepare_slice_count": len(slices),
            "prepare_duration_us": float(phases.length[slices].sum()),
            "execution_start_us": start,
            "execution_duration_us": end - start,
            "synthetic_id_layout": f"ring1:(outer_task_id << {_BITS}) | node_index",
        }
        found.append((begin, max(end - begin, 0.0), f"GraphExecution(t{number}, {nodes} visible nodes)", args))
    yield meta("process_name", _PROCESS, {"name": "Graph Execution"})
    yield meta("process_sort_index", _PROCESS, {"sort_index": 1})
    busy: list[float] = []
    for begin, length, name, args in sorted(found, key=lambda bar: bar[:3]):
        lane = next((place for place, until in enumerate(busy) if until <= begin), len(busy))
        if lane == len(busy):
            yield meta("thread_name", _PROCESS, {"name": f"Graph_{lane}"}, _FIRST_LANE + lane)
        busy[lane : lane + 1] = [begin + length]
        event = {"args": args, "cat": "graph_execution", "cname": "rail_animation", "name": name, "ph": "X"}
        yield json.dumps(event | {"pid": _PROCESS, "tid": _FIRST_LANE + lane, "ts": begin, "dur": length})
