"""When tasks were ready and not dispatched, as far as a capture proves it, and when they may have been.

A task is ready when its producers have ended and it was submitted. What is recorded of both differs:

| task | ready from | otherwise |
| --- | --- | --- |
| all producers have executions, submission recorded | the later of both | |
| all producers have executions, submission not recorded | end of the producers | |
| some producers have executions | | may be ready from the end of these on |
| without producers, submission recorded, or submitted by the host before the run | its submission | |
| without producers, submission not recorded | | may be ready from the first start on |
| no producer has executions, or not in the task graph | | may be ready from its submission on |
| first dispatched nodes of a graph | like a task, with the producers of the graph | |
| other nodes of a graph: their order is in no file | | may be ready when the graph is |

Allocations end when they are submitted, which is before their consumers are: they do not count as producers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.ascend.analysis.executions import TYPES, Executions
from lanescope.trace import Table, Trace
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]

_LATE, _NEVER = np.iinfo(np.int64).max, np.iinfo(np.int64).min


@frozen_class
class Waiting:
    """Intervals in which tasks were ready and not dispatched, by type of core: (first, last tick), int64 [m] each.

    Attributes:
        known: it is known that they were ready.
        possible: it is not known whether they were ready.
    """

    known: list[tuple[Int64, Int64]]
    possible: list[tuple[Int64, Int64]]


def waiting(trace: Trace, runs: Executions) -> Waiting:
    """Return when tasks of a file were ready and not dispatched; linear but for sorting."""
    first = np.flatnonzero(np.diff(np.sort(runs.task), prepend=-1))
    order = np.argsort(runs.task, kind="stable")
    ids = runs.ids[order[first]]
    count = len(ids)
    sent, ready = np.full(count, _LATE, np.int64), np.zeros(count, np.int64)
    has_dispatch = runs.dispatch > 0
    np.minimum.at(sent, runs.task[has_dispatch], runs.dispatch[has_dispatch])
    np.maximum.at(ready, runs.task, runs.ready)
    uses = np.zeros((len(TYPES), count), np.bool_)
    for code in range(len(TYPES)):
        uses[code, runs.task[runs.kind == code]] = True
    facts = _Facts(trace, runs)
    submitted = facts.submitted(ids)
    is_exact = np.ones(count, np.bool_)
    is_exact[runs.task[~runs.ready_is_exact]] = False
    is_settled = ((ready > 0) & is_exact) | (facts.is_root(ids) & (submitted > _NEVER))
    start = np.maximum(np.maximum(ready, submitted), runs.window[0])
    graph = facts.graph_of(ids)
    if (graph >= 0).any():
        _nodes(facts, runs, ids, graph, sent, uses, (start, is_settled))
    known = sent < _LATE
    return Waiting(
        *(
            [_clipped(runs, start[mine & uses[code]], sent[mine & uses[code]]) for code in range(len(TYPES))]
            for mine in (known & is_settled, known & ~is_settled)
        )
    )


def _nodes(
    facts: _Facts, runs: Executions, ids: UInt64, graph: Int64, sent: Int64, uses: Mask, found: tuple[Int64, Mask]
) -> None:
    """Set in place from when nodes may be ready; the first of each graph is known to be ready with the graph."""
    start, is_settled = found
    node = np.flatnonzero(graph >= 0)
    outer, member = np.unique(graph[node], return_inverse=True)
    first = np.full(len(outer), _LATE, np.int64)
    np.minimum.at(first, member.reshape(-1), sent[node])
    outer_ids = outer.astype(np.uint64)
    (ready, is_exact), submitted = facts.ended_producers(outer_ids), facts.submitted(outer_ids)
    begin = np.maximum(np.maximum(ready, submitted), runs.window[0])
    is_known = ((ready > 0) & is_exact) | (facts.is_root(outer_ids) & (submitted > _NEVER))
    is_first = sent[node] == first[member.reshape(-1)]
    start[node] = begin[member]
    is_settled[node] = is_first & is_known[member]


def _clipped(runs: Executions, low: Int64, high: Int64) -> tuple[Int64, Int64]:
    low, high = np.clip(low, *runs.window), np.clip(high, *runs.window)
    kept = high > low
    return low[kept], high[kept]


class _Facts:
    """What a trace records of the tasks of one file."""

    def __init__(self, trace: Trace, runs: Executions) -> None:
        self._trace, self._runs = trace, runs
        tasks = trace.details["ascend_graph_tasks"]
        self._tasks: Table = tasks.where(tasks.values("input_id") == runs.file)
        (self._run,) = (row for row in trace.details["ascend_runs"].rows() if row["input_id"] == runs.file)
        self._has_edges = runs.has_graph
        edges = trace.details["ascend_edges"]
        edges = edges.where(edges.values("input_id") == runs.file)
        pred, succ = edges.values("pred_task_id"), edges.values("succ_task_id")
        kind = self._tasks.column("kind").texts
        waits = ~np.isin(pred, self._of_kind(kind, "alloc"))
        self._pred, self._succ = pred[waits], succ[waits]
        is_node = self._tasks.valid("graph_task_id") & (not runs.has_epochs)
        nodes, graphs = (self._tasks.values(name)[is_node] for name in ("task_id", "graph_task_id"))
        order = np.argsort(nodes)
        self._nodes, self._graphs = nodes[order], graphs[order].astype(np.int64)
        self._listed = self._tasks.values("task_id")[self._tasks.valid("functions") | (kind == "graph")]

    def _of_kind(self, kind: npt.NDArray[np.object_], *names: str) -> UInt64:
        ids: UInt64 = self._tasks.values("task_id")[np.isin(kind.astype(str), names)]
        return ids

    def is_root(self, ids: UInt64) -> Mask:
        """Return which tasks wait for no other task, bool [n]; without a task graph none."""
        if not self._has_edges:
            return np.zeros(len(ids), np.bool_)
        found: Mask = np.isin(ids, self._listed) & ~np.isin(ids, self._succ)
        return found

    def graph_of(self, ids: UInt64) -> Int64:
        """Return the graph that tasks are nodes of, int64 [n], -1 for other tasks."""
        if not len(self._nodes):
            return np.full(len(ids), -1, np.int64)
        at = np.minimum(np.searchsorted(self._nodes, ids), len(self._nodes) - 1)
        return np.where(self._nodes[at] == ids, self._graphs[at], -1)

    def submitted(self, ids: UInt64) -> Int64:
        """Return the tick at which tasks were submitted, int64 [n]: the window's first if before, else the least."""
        if self._run["orchestrator_on_host"]:
            return np.full(len(ids), self._runs.window[0], np.int64)
        found = np.full(len(ids), _NEVER, np.int64)
        if self._runs.has_epochs:
            return found
        submits, slices, tracks = self._trace.details["ascend_submits"], self._trace.slices, self._trace.tracks
        at = submits.values("slice_id")
        mine = tracks.values("input_id")[slices.values("track_id")[at]] == self._runs.file
        mine &= slices.valid("dur_ticks")[at]
        at, sent = at[mine], submits.values("task_id")[mine]
        if not len(at):
            return found
        end = slices.values("ts_ticks")[at] + slices.values("dur_ticks")[at]
        known, place = np.unique(sent, return_inverse=True)
        last = np.full(len(known), _NEVER, np.int64)
        np.maximum.at(last, place.reshape(-1), end)
        where = np.minimum(np.searchsorted(known, ids), len(known) - 1)
        return np.where(known[where] == ids, last[where], _NEVER)

    def ended_producers(self, ids: UInt64) -> tuple[Int64, Mask]:
        """Return the last end of the producers that have executions, int64 [n], 0 without, and whether all have."""
        found, is_exact = np.zeros(len(ids), np.int64), np.ones(len(ids), np.bool_)
        if not self._has_edges or not len(ids):
            return found, is_exact
        graph = self.graph_of(self._runs.ids)
        owner = np.where(graph >= 0, graph.astype(np.uint64), self._runs.ids)
        known, place = np.unique(owner, return_inverse=True)
        last = np.zeros(len(known), np.int64)
        np.maximum.at(last, place.reshape(-1), self._runs.end)
        at = np.minimum(np.searchsorted(known, self._pred), len(known) - 1)
        end = np.where(known[at] == self._pred, last[at], 0)
        order = np.argsort(ids)
        to = np.minimum(np.searchsorted(ids[order], self._succ), len(ids) - 1)
        fits = ids[order][to] == self._succ
        np.maximum.at(found, order[to[fits]], end[fits])
        is_exact[order[to[fits & (end == 0)]]] = False
        return found, is_exact
