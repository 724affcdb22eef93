"""Tasks: a row of `ascend_graph_tasks` for each, and slices around the nodes of graphs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.emit.context import TimelineBuilder, some
from lanescope.devices.ascend.interpret import task_kinds
from lanescope.devices.ascend.interpret.names import function_name
from lanescope.devices.ascend.interpret.task_kinds import KINDS, RECORD_STATES
from lanescope.trace import Column
from lanescope.trace.column import Mask

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
        task=told.task_texts.all[task],
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
    # Not the interpreter: with it all records would stay.
    is_node, parents, kinds_of = told.graph_of is not None, told.parents, told.kinds
    texts, ids, kernels, functions = told.task_texts, graph.ids, graph.kernels, told.parts.names
    says_early = graph.is_listed if graph.says_early else np.zeros(count, np.bool_)
    builder.append(
        "ascend_graph_tasks",
        input_id=Column.constant(canvas.main, count, np.int64),
        task_id=graph.ids,
        task=Column.derived(count, lambda: texts.all),
        run_epoch=None if graph.runs is None else graph.runs.epochs[graph.runs.keys // len(graph.runs.ids)],
        kind=Column.derived(count, lambda: kind_codes[kinds_of.kind], dictionary=kinds),
        record=Column.derived(count, lambda: state_codes[kinds_of.record], dictionary=states),
        functions=Column.derived(
            count, lambda: _functions(kernels, functions), valid=some(graph.is_listed & _any_slot(kernels))
        ),
        blocks=Column.array(graph.blocks, valid=some(graph.blocks > 0)),
        is_early=Column.array(graph.is_early, valid=some(says_early)),
        graph_task_id=Column.derived(count, lambda: ids[np.maximum(parents, 0)], valid=some(parents >= 0))
        if is_node
        else None,
    )


def _any_slot(kernels: npt.NDArray[np.int64]) -> Mask:
    """Return which tasks have a function in any slot, bool [tasks]."""
    first, second, third = (kernels[:, slot] >= 0 for slot in range(3))
    found: Mask = first | second | third
    return found


def _functions(kernels: npt.NDArray[np.int64], known: Mapping[int, str]) -> npt.NDArray[np.object_]:
    """Return the names of the functions of each task, object [tasks], empty without one."""
    kernels = np.maximum(kernels, -1)
    base = int(kernels.max(initial=-1)) + 2
    if base**3 <= _DENSE:  # a number for each combination, which is far quicker than sorting rows
        key = ((kernels[:, 0] + 1) * base + kernels[:, 1] + 1) * base + kernels[:, 2] + 1
        used = np.flatnonzero(np.bincount(key))
        rows = np.column_stack([used // base**2, used // base % base, used % base]) - 1
        names = np.full(base**3, "", object)
        names[used] = _names(known, rows)
    else:
        rows, key = np.unique(kernels, axis=0, return_inverse=True)
        names = np.array(_names(known, rows), object)
    found: npt.NDArray[np.object_] = names[key.reshape(-1)]
    return found


def _names(known: Mapping[int, str], rows: npt.NDArray[np.int64]) -> list[str]:
    """Return the names of the functions in the slots of each row, int64 [n, 3]."""
    texts = []
    for row in rows.tolist():
        names = [function_name(number, known, is_spmd=False) for number in row if number >= 0]
        texts.append(" + ".join(dict.fromkeys(names)))
    return texts
