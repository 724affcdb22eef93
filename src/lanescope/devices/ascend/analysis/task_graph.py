"""The task graph of a capture with what happened: kinds, times, slack, tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class, replace
from lanescope.devices.ascend.analysis.graph_order import Order, order, transitive_reduction
from lanescope.devices.ascend.analysis.task_times import TaskTimes, ready_of_graphs, slack_of_tasks, task_times
from lanescope.devices.ascend.formats.graph_file import GraphFile, number
from lanescope.errors import UsageError
from lanescope.trace import Trace
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]


@frozen_class
class Argument:
    """An argument of a task that names its tensor.

    Attributes:
        index: place among the arguments; -1 where only edges name the tensor.
        type: ``INPUT``, ``INOUT``, ``OUTPUT_EXISTING``, ...
        tensor: index of the tensor.
        shape: text such as ``FLOAT32[16x16]``, empty if not known.
    """

    index: int
    type: str
    tensor: int
    shape: str


@frozen_class
class Reason:
    """Why one task needs another.

    Attributes:
        source: ``explicit``, ``creator``, ``tensormap``; empty if not recorded.
        argument: index of the consumer's argument, -1 without one.
        tensor: index of the tensor, -1 without one.
    """

    source: str
    argument: int
    tensor: int


@frozen_class
class TaskGraph:
    """The tasks of a capture and their dependencies. Tasks have the order of their ids; nodes of graphs are in these.

    Attributes:
        ids: uint64 [tasks].
        names: [tasks], short ids (``r2t5``).
        kinds, records: [tasks], see the table ``ascend_graph_tasks``.
        functions: [tasks], empty if not known.
        blocks: [tasks], 0 if not known.
        allows_early: [tasks], whether consumers may be dispatched before the task ends; None if not recorded.
        nodes: [tasks], of graphs: names and ids of their recorded nodes.
        pred, succ: int64 [edges], indices of tasks.
        order: levels.
        is_needed: bool [edges], the edge is in the transitive reduction.
        violated: bool [edges], the consumer started before its producer had ended.
        times: when tasks ran.
        slack: [tasks], see ``slack_of_tasks``; None if not known.
        inputs: [tasks], arguments with their tensors.
        tensors: [tensors], text of each tensor, empty if nothing but its id is known.
        reasons: [edges].
        unit: ``ns``, or ``cycles`` where the frequency of the counter is not known.
        several_runs: the capture has several runs of these tasks, so no times.
    """

    ids: npt.NDArray[np.uint64]
    names: list[str]
    kinds: list[str]
    records: list[str]
    functions: list[str]
    blocks: list[int]
    allows_early: list[bool | None]
    nodes: list[list[tuple[str, int]]]
    pred: Int64
    succ: Int64
    order: Order
    is_needed: Mask
    violated: Mask
    times: TaskTimes
    slack: list[int | None]
    inputs: list[list[Argument]]
    tensors: list[str]
    reasons: list[list[Reason]]
    unit: str
    several_runs: bool

    def __len__(self) -> int:
        return len(self.ids)

    def title(self, task: int) -> str:
        """Return what a task is called: its functions, or its kind."""
        return self.functions[task] or self.kinds[task]


def task_graph(trace: Trace, file: GraphFile | None = None) -> TaskGraph:
    """Return the task graph of a capture.

    Args:
        trace: a trace of one capture.
        file: its task graph file, for tensors and reasons.

    Raises:
        UsageError: the trace is of no Ascend capture, of several, or has no dependencies.
    """
    if "ascend_graph_tasks" not in trace.details:
        raise UsageError("trace contains no Ascend tasks", hint="pass an Ascend capture")
    if len(trace.details["ascend_runs"]) > 1:
        raise UsageError("trace contains several captures", hint="open one capture: task ids differ between captures")
    edges = trace.details["ascend_edges"]
    if not len(edges) and file is None:
        raise UsageError("capture has no task graph", hint="pass the deps.json of the run: --deps FILE")
    listed = trace.details["ascend_graph_tasks"]
    every, first = np.unique(listed.values("task_id"), return_index=True)
    kinds = listed.column("kind").texts[first].tolist()
    names = listed.values("task")[first].tolist()
    owned = listed.valid("graph_task_id")[first]
    owners = np.searchsorted(every, listed.values("graph_task_id")[first])
    outer = np.where(owned, np.minimum(owners, len(every) - 1), -1)
    shown = np.flatnonzero(outer < 0)
    rows, ids = first[shown], every[shown]
    place = np.full(len(every), -1, np.int64)
    place[shown] = np.arange(len(shown))

    pairs, violated = _pairs(trace, ids)
    pred, succ = pairs[:, 0], pairs[:, 1]
    found = order(pred, succ, len(ids))
    nodes: list[list[tuple[str, int]]] = [[] for _ in ids]
    for node in np.flatnonzero(outer >= 0).tolist():
        nodes[int(place[outer[node]])].append((names[node], int(every[node])))
    several = bool(listed.valid("run_epoch").any())
    belongs = np.where(outer >= 0, place[np.maximum(outer, 0)], place)
    times = task_times(trace, every, belongs, len(ids), np.array(kinds, object) == "alloc")
    is_graph = np.array(kinds, object)[shown] == "graph"
    times = replace(times, ready=ready_of_graphs(times, pred, succ, is_graph))
    is_early, knows_early = listed.values("is_early")[rows].tolist(), listed.valid("is_early")[rows].tolist()
    inputs, tensors, reasons = _tensors(file, ids, pairs)
    return TaskGraph(
        ids=ids,
        names=[names[at] for at in shown.tolist()],
        kinds=[kinds[at] for at in shown.tolist()],
        records=listed.column("record").texts[rows].tolist(),
        functions=listed.values("functions")[rows].tolist(),
        blocks=listed.values("blocks")[rows].tolist(),
        allows_early=[value if known else None for value, known in zip(is_early, knows_early, strict=True)],
        nodes=nodes,
        pred=pred,
        succ=succ,
        order=found,
        is_needed=transitive_reduction(pred, succ, found),
        violated=violated,
        times=times,
        slack=slack_of_tasks(times, pred, succ),
        inputs=inputs,
        tensors=tensors,
        reasons=reasons,
        unit=trace.time.time_unit,
        several_runs=several,
    )


def _pairs(trace: Trace, ids: npt.NDArray[np.uint64]) -> tuple[Int64, Mask]:
    """Return producer and consumer of each edge once, int64 [edges, 2], and whether it is violated, bool [edges]."""
    edges = trace.details["ascend_edges"]
    both = np.column_stack([np.searchsorted(ids, edges.values(f"{end}_task_id")) for end in ("pred", "succ")])
    both = both.astype(np.int64).reshape(-1, 2)
    pairs, which = np.unique(both, axis=0, return_inverse=True)
    violated = np.zeros(len(pairs), np.bool_)
    np.logical_or.at(violated, which.reshape(-1), edges.values("is_violated").astype(np.bool_))
    return pairs, violated


def _tensors(
    file: GraphFile | None, ids: npt.NDArray[np.uint64], pairs: Int64
) -> tuple[list[list[Argument]], list[str], list[list[Reason]]]:
    inputs: list[list[Argument]] = [[] for _ in ids]
    reasons: list[list[Reason]] = [[] for _ in pairs]
    if file is None:
        return inputs, [], reasons
    index: dict[int, int] = {}
    place = {task: at for at, task in enumerate(ids.tolist())}
    edge_of = {pair: at for at, pair in enumerate(map(tuple, pairs.tolist()))}

    def tensor(value: Any) -> int:
        known = number(value)
        return -1 if known is None else index.setdefault(known, len(index))

    for task in file.tasks:
        at = place.get(number(task.task_id) or 0)
        if at is None:
            continue
        for argument in task.args:
            if argument.tensor_id is not None:
                shape = _shape(argument.dtype, argument.shape)
                inputs[at].append(Argument(argument.idx, argument.type, tensor(argument.tensor_id), shape))
    for edge in file.edges:
        ends = place.get(number(edge.pred) or 0, -1), place.get(number(edge.succ) or 0, -1)
        if ends in edge_of:
            reasons[edge_of[ends]].append(Reason(edge.source, edge.arg, tensor(edge.tensor_id)))
    texts = [""] * len(index)
    for version in file.tensors:
        known = number(version.tensor_id)
        if known in index:
            size = number(version.buffer_numel)
            elements = "" if size is None else f"[{size}]"
            texts[index[known]] = f"{version.dtype}{elements} version {version.version}"
    return inputs, texts, reasons


def _shape(dtype: str, shape: list[int]) -> str:
    return f"{dtype}[{'x'.join(map(str, shape))}]" if dtype or shape else ""
