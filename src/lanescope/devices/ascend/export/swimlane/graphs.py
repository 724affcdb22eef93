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
    c, phases, kinds = content, content.phases, content.trace.details["ascend_graph_tasks"]
    prepared = np.flatnonzero(phases.is_named(GRAPH_KIND) & phases.table.valid("task_id"))
    if not len(prepared):
        return
    node_ids = kinds.values("task_id")[kinds.values("kind") == "node"]
    nodes = np.flatnonzero(np.isin(c.known, node_ids)[c.task])
    number = (c.known[c.task[nodes]] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    outer = phases.table.values("task_id")[prepared].astype(np.int64)
    found = []
    for graph in dict.fromkeys(outer.tolist()):
        slices = prepared[outer == graph]
        mine = number >> _BITS == graph
        rows, index = nodes[mine], number[mine] & ((1 << _BITS) - 1)
        if len(rows):
            start = float(np.where(c.is_joined, c.dispatch, c.bar)[rows].min())
            begin, end = float(phases.begin[slices].min()), float(np.where(c.is_joined, c.finish, c.end)[rows].max())
            args = {
                "outer_task_id": graph,
                "visible_node_count": len(rows),
                "visible_node_index_min": int(index.min()),
                "visible_node_index_max": int(index.max()),
                "prepare_slice_count": len(slices),
                "prepare_duration_us": float((phases.end - phases.begin)[slices].sum()),
                "execution_start_us": start,
                "execution_duration_us": end - start,
                "synthetic_id_layout": f"ring1:(outer_task_id << {_BITS}) | node_index",
            }
            found.append((begin, max(end - begin, 0.0), f"GraphExecution(t{graph}, {len(rows)} visible nodes)", args))
    if not found:
        return
    yield meta("process_name", _PROCESS, {"name": "Graph Execution"})
    yield meta("process_sort_index", _PROCESS, {"sort_index": 1})
    ends: list[float] = []
    for begin, length, name, args in sorted(found, key=lambda bar: bar[:3]):
        lane = next((place for place, busy in enumerate(ends) if busy <= begin), len(ends))
        if lane == len(ends):
            yield meta("thread_name", _PROCESS, {"name": f"Graph_{lane}"}, _FIRST_LANE + lane)
        ends[lane : lane + 1] = [begin + length]
        event = {"args": args, "cat": "graph_execution", "cname": "rail_animation", "name": name, "ph": "X"}
        yield json.dumps(event | {"pid": _PROCESS, "tid": _FIRST_LANE + lane, "ts": begin, "dur": length})
