"""Tasks: a row of `ascend_graph_tasks` for each, and slices around the nodes of graphs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.emit.context import TimelineBuilder, some
from lanescope.devices.ascend.interpret import task_kinds
from lanescope.devices.ascend.interpret.names import function_name
from lanescope.devices.ascend.interpret.resolve import Interpreter
from lanescope.devices.ascend.interpret.task_kinds import KINDS, RECORD_STATES
from lanescope.trace import Column

#: Combinations of functions that get a number each.
_DENSE = 1 << 20


def draw_graphs(canvas: TimelineBuilder) -> None:
    """Draw each graph around its nodes: from the first receive to the last end.

    Its preparation is not its begin: it may come long before the producers of the graph have ended.
    """
    told = canvas.told
    apart = np.flatnonzero(told.is_task_kind(task_kinds.NODE) & (told.parents < 0))
    told.problems.append(("ascend_nodes_apart", len(apart), None))
    if told.graph_of is None:
        return
    ends = canvas.kept.ends
    nodes = np.bincount(told.graph_of[told.graph_of >= 0], minlength=len(told.graph))
    task = np.flatnonzero(nodes)
    begin, end = ends.begun[task], ends.end[task]
    track = canvas.side_lanes("Graph", "graph", np.zeros(len(task), np.int64), canvas.clock)
    first = canvas.slices(track, begin, end, told.times.device, name="graph", category="graph")
    canvas.builder.append(
        "ascend_graphs",
        slice_id=first + np.arange(len(task)),
        task_id=told.graph.ids[task],
        task=told.task_texts[task],
        nodes=nodes[task],
    )


def add_graph_tasks(canvas: TimelineBuilder) -> None:
    """Add a row for each task of the graph; texts and codes are made on request."""
    told, builder = canvas.told, canvas.builder
    graph = told.graph
    count = len(graph)
    if not count:
        return
    kinds = builder.dictionary("ascend_graph_tasks", "kind")
    states = builder.dictionary("ascend_graph_tasks", "record")
    kind_codes, state_codes = kinds.codes(KINDS), states.codes(RECORD_STATES)
    says_early = graph.is_listed if graph.says_early else np.zeros(count, np.bool_)
    builder.append(
        "ascend_graph_tasks",
        input_id=Column.constant(canvas.main, count, np.int64),
        task_id=graph.ids,
        task=Column.derived(count, lambda: told.task_texts),
        run_epoch=None if graph.runs is None else graph.runs.epochs[graph.runs.keys // len(graph.runs.ids)],
        kind=Column.derived(count, lambda: kind_codes[told.kinds.kind], dictionary=kinds),
        record=Column.derived(count, lambda: state_codes[told.kinds.record], dictionary=states),
        functions=Column.derived(
            count, lambda: _functions(told), valid=some(graph.is_listed & (graph.kernels >= 0).any(axis=1))
        ),
        blocks=Column.array(graph.blocks, valid=some(graph.blocks > 0)),
        is_early=Column.array(graph.is_early, valid=some(says_early)),
        graph_task_id=None if told.graph_of is None else _graphs(told),
    )


def _graphs(told: Interpreter) -> Column:
    """Return the graph that each task is a node of."""
    return Column.derived(
        len(told.graph), lambda: told.graph.ids[np.maximum(told.parents, 0)], valid=some(told.parents >= 0)
    )


def _functions(told: Interpreter) -> npt.NDArray[np.object_]:
    """Return the names of the functions of each task, object [tasks], empty without one."""
    kernels = np.maximum(told.graph.kernels, -1)
    base = int(kernels.max(initial=-1)) + 2
    if base**3 <= _DENSE:  # a number for each combination, which is far quicker than sorting rows
        key = ((kernels[:, 0] + 1) * base + kernels[:, 1] + 1) * base + kernels[:, 2] + 1
        used = np.flatnonzero(np.bincount(key))
        rows = np.column_stack([used // base**2, used // base % base, used % base]) - 1
        names = np.full(base**3, "", object)
        names[used] = _names(told, rows)
    else:
        rows, key = np.unique(kernels, axis=0, return_inverse=True)
        names = np.array(_names(told, rows), object)
    found: npt.NDArray[np.object_] = names[key.reshape(-1)]
    return found


def _names(told: Interpreter, rows: npt.NDArray[np.int64]) -> list[str]:
    """Return the names of the functions in the slots of each row, int64 [n, 3]."""
    texts = []
    for row in rows.tolist():
        names = [function_name(number, told.parts.names, is_spmd=False) for number in row if number >= 0]
        texts.append(" + ".join(dict.fromkeys(names)))
    return texts
