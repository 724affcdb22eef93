"""Bars of tasks that contain a graph: from the first time that the graph was prepared to the end of its last node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lanescope.common.distinct import distinct
from lanescope.devices.ascend.export.swimlane.event_rows import meta
from lanescope.devices.ascend.export.swimlane.trace_view import Content
from lanescope.devices.ascend.formats.layout import GRAPH_KIND
from lanescope.devices.ascend.formats.records import UInt64
from lanescope.devices.ascend.interpret.graph import NODE_BITS, number_mask
from lanescope.trace.column import Mask

_PROCESS, _FIRST_LANE = 5, 5000


class _Naming(NamedTuple):
    """What the converter of a version calls the nodes of a graph, and how it describes their ids."""

    noun: str
    key: str
    number: str
    layout: str


_RINGS = _Naming("visible nodes", "visible_node", "index", f"ring1:(outer_task_id << {NODE_BITS}) | node_index")
_SPACES = _Naming(
    "visible sub-tasks",
    "visible_sub_task",
    "local_id",
    "space1:(outer_task_id << 32) | sub_task_local_id",
)


def graph_bars(content: Content) -> Iterator[str]:
    """Yield the events of the graphs that the schedulers prepared, with the names of process and lanes."""
    c, phases, graphs = content, content.phases, content.trace.details["ascend_graphs"]
    prepared = np.flatnonzero(phases.is_named(GRAPH_KIND) & phases.table.valid("task_id"))
    outer = phases.table.values("task_id")[prepared]
    ids = graphs.values("task_id")
    if not np.isin(ids, outer).any():
        return
    # The executions of each graph: of a file of several runs those in the slice around them.
    ran = c.known[c.task]
    owner, is_node = _owners(content, ran)
    order = np.flatnonzero(is_node)
    order = order[np.argsort(owner[order], kind="stable")]
    low, high = (np.searchsorted(owner[order], ids, side=side).tolist() for side in ("left", "right"))
    by_outer = np.argsort(outer, kind="stable")
    begins, ends = (np.searchsorted(outer[by_outer], ids, side=side).tolist() for side in ("left", "right"))
    dispatch, finish = np.where(c.is_joined, c.dispatch, c.bar), np.where(c.is_joined, c.finish, c.end)
    slices_of = content.trace.slices
    first = slices_of.values("ts_ticks")[graphs.values("slice_id")]
    last = first + slices_of.values("dur_ticks")[graphs.values("slice_id")]
    is_again = len(ids) > len(distinct(ids))
    naming = _SPACES if c.run["format_version"] == "v4" else _RINGS
    found = []
    for graph, number, nodes in zip(range(len(ids)), ids.tolist(), graphs.values("nodes").tolist(), strict=True):
        slices, rows = prepared[by_outer[begins[graph] : ends[graph]]], order[low[graph] : high[graph]]
        if is_again:
            rows = rows[(c.tasks.ticks[rows] >= first[graph]) & (c.tasks.ticks[rows] <= last[graph])]
            before = last[(ids == ids[graph]) & (last < first[graph])].max(initial=0)
            slices = slices[(phases.ticks[slices] > before) & (phases.ticks[slices] <= last[graph])]
        if not len(slices) or not len(rows):
            continue
        index = ran[rows] & number_mask(ran[rows])
        start, begin, end = float(dispatch[rows].min()), float(phases.begin[slices].min()), float(finish[rows].max())
        args = {
            "outer_task_id": number,
            f"{naming.key}_count": nodes,
            f"{naming.key}_{naming.number}_min": int(index.min()),
            f"{naming.key}_{naming.number}_max": int(index.max()),
            "prepare_slice_count": len(slices),
            "prepare_duration_us": float(phases.length[slices].sum()),
            "execution_start_us": start,
            "execution_duration_us": end - start,
            "synthetic_id_layout": naming.layout,
        }
        found.append((begin, max(end - begin, 0.0), f"GraphExecution(t{number}, {nodes} {naming.noun})", args))
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


def _owners(content: Content, ran: UInt64) -> tuple[UInt64, Mask]:
    """Return the graph that each execution is a node of, uint64 [n], and whether it is one, bool [n]."""
    tasks = content.trace.details["ascend_graph_tasks"]
    known = np.flatnonzero(tasks.valid("graph_task_id"))
    if not len(known):
        return ran, np.zeros(len(ran), np.bool_)
    known = known[np.argsort(tasks.values("task_id")[known])]
    nodes = tasks.values("task_id")[known]
    at = np.minimum(np.searchsorted(nodes, ran), len(nodes) - 1)
    return tasks.values("graph_task_id")[known[at]], nodes[at] == ran
