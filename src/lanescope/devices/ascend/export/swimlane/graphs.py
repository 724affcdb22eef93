"""Bars of tasks that contain a graph: from the first time that the graph was prepared to the end of its last node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.declaration import frozen_class
from lanescope.devices.ascend.export.swimlane.event_rows import SEPARATOR, meta, write
from lanescope.devices.ascend.export.swimlane.trace_view import Content, Floats, Int64
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


def graph_bars(content: Content) -> Iterator[bytes]:
    """Yield the events of the graphs that the schedulers prepared, with the names of process and lanes, in parts."""
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
    low, high = (np.searchsorted(owner[order], ids, side=side) for side in ("left", "right"))
    by_outer = np.argsort(outer, kind="stable")
    begins, ends = (np.searchsorted(outer[by_outer], ids, side=side) for side in ("left", "right"))
    dispatch, finish = np.where(c.is_joined, c.dispatch, c.bar), np.where(c.is_joined, c.finish, c.end)
    slices_of = content.trace.slices
    first = slices_of.values("ts_ticks")[graphs.values("slice_id")]
    last = first + slices_of.values("dur_ticks")[graphs.values("slice_id")]
    rows, slices = _Parts(order, low, high), _Parts(prepared[by_outer], begins, ends)
    if len(ids) > len(distinct(ids)):
        rows, slices = _of_runs(content, rows, slices, ids, first, last)
    there = np.flatnonzero((rows.begin < rows.end) & (slices.begin < slices.end))
    rows, slices = rows.take(there), slices.take(there)
    yield SEPARATOR.join(
        (
            meta("process_name", _PROCESS, {"name": "Graph Execution"}),
            meta("process_sort_index", _PROCESS, {"sort_index": 1}),
        )
    ).encode()
    if not len(there):
        return
    naming = _SPACES if c.run["format_version"] == "v4" else _RINGS
    index = ran & number_mask(ran)
    start, until = rows.reduced(np.minimum, dispatch), rows.reduced(np.maximum, finish)
    begin = slices.reduced(np.minimum, phases.begin)
    columns = {
        "outer": ids[there],
        "nodes": graphs.values("nodes")[there],
        "least": rows.reduced(np.minimum, index),
        "most": rows.reduced(np.maximum, index),
        "slices": slices.end - slices.begin,
        "prepared": slices.sums(phases.length),
        "start": start,
        "ran": until - start,
        "begin": begin,
        "length": np.maximum(until - begin, 0.0),
    }
    yield from _drawn(columns, naming)


def _drawn(columns: dict[str, npt.NDArray[Any]], naming: _Naming) -> Iterator[bytes]:
    """Yield the bars on the first lane that is free, with the names of the lanes before the first bar of each."""
    names = [
        f"GraphExecution(t{number}, {nodes} {naming.noun})"
        for number, nodes in zip(columns["outer"].tolist(), columns["nodes"].tolist(), strict=True)
    ]
    keys = list(zip(columns["begin"].tolist(), columns["length"].tolist(), names, strict=True))
    order = sorted(range(len(keys)), key=keys.__getitem__)
    busy: list[float] = []
    lanes, new = [], []
    for place, (begin, length, _) in enumerate(keys[row] for row in order):
        lane = next((number for number, until in enumerate(busy) if until <= begin), len(busy))
        if lane == len(busy):
            new.append(place)
        busy[lane : lane + 1] = [begin + length]
        lanes.append(lane)
    columns = {name: values[order] for name, values in columns.items()}
    columns["lane"] = _FIRST_LANE + np.array(lanes, np.int64)
    template = (
        '{"args": {"outer_task_id": $outer, "' + f"{naming.key}_count" + '": $nodes, "'
        f'{naming.key}_{naming.number}_min": $least, "{naming.key}_{naming.number}_max": $most, '
        '"prepare_slice_count": $slices, "prepare_duration_us": $prepared, "execution_start_us": $start, '
        f'"execution_duration_us": $ran, "synthetic_id_layout": {json.dumps(naming.layout)}}}, '
        '"cat": "graph_execution", "cname": "rail_animation", '
        f'"name": "GraphExecution(t$outer, $nodes {naming.noun})", "ph": "X", "pid": {_PROCESS}, "tid": $lane, '
        '"ts": $begin, "dur": $length}'
    )
    for number, (first, last) in enumerate(pairwise([*new, len(order)])):
        yield meta("thread_name", _PROCESS, {"name": f"Graph_{number}"}, _FIRST_LANE + number).encode()
        yield from write(template, **{name: values[first:last] for name, values in columns.items()})


@frozen_class
class _Parts:
    """The rows that belong to each graph: ``rows[begin[i]:end[i]]``, int64 each."""

    rows: Int64
    begin: Int64
    end: Int64

    def take(self, graphs: Int64) -> _Parts:
        """Return the parts of some graphs."""
        return _Parts(self.rows, self.begin[graphs], self.end[graphs])

    def reduced(self, ufunc: np.ufunc, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what a ufunc makes of the values of each graph, each of which has rows."""
        given = values[self.rows]
        at = np.column_stack([self.begin, self.end]).reshape(-1)
        found: npt.NDArray[Any] = ufunc.reduceat(np.append(given, given[:1]), at)[::2]
        return found

    def sums(self, values: Floats) -> Floats:
        """Return the sum of the values of each graph, rounded as a sum of them alone would be."""
        given, count = values[self.rows], self.end - self.begin
        found = np.zeros(len(count))
        for size in distinct(count).tolist():
            graphs = np.flatnonzero(count == size)
            found[graphs] = given[self.begin[graphs][:, None] + np.arange(size)].sum(axis=1)
        return found


def _of_runs(
    content: Content, rows: _Parts, slices: _Parts, ids: UInt64, first: Int64, last: Int64
) -> tuple[_Parts, _Parts]:
    """Return of the executions and phases of each graph those of its run, where several runs have the same graphs.

    Args:
        content: the trace.
        rows: executions by id of their graph.
        slices: phases that prepared it, by the same.
        ids: uint64 [graphs].
        first: int64 [graphs], begin of the slice around the executions, ticks.
        last: int64 [graphs], its end.
    """
    phases, ticks = content.phases.ticks, content.tasks.ticks
    found: tuple[list[Int64], list[Int64]] = ([], [])
    for graph in range(len(ids)):
        mine = rows.rows[rows.begin[graph] : rows.end[graph]]
        found[0].append(mine[(ticks[mine] >= first[graph]) & (ticks[mine] <= last[graph])])
        before = last[(ids == ids[graph]) & (last < first[graph])].max(initial=0)
        mine = slices.rows[slices.begin[graph] : slices.end[graph]]
        found[1].append(mine[(phases[mine] > before) & (phases[mine] <= last[graph])])
    return _joined(found[0]), _joined(found[1])


def _joined(parts: list[Int64]) -> _Parts:
    lengths = np.array([len(part) for part in parts], np.int64)
    end = np.cumsum(lengths)
    return _Parts(np.concatenate(parts), end - lengths, end)


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
