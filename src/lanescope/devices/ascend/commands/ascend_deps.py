"""Show who waits for whom: the whole task graph, or the tasks around one task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanescope.errors import InputError, UsageError
from lanescope.families.command import Argument, CommandContext, Values
from lanescope.families.options import non_negative_int

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lanescope.devices.ascend.analysis.task_graph import TaskGraph
    from lanescope.devices.ascend.formats.graph_file import GraphFile
    from lanescope.trace import ColumnSpec, Trace

_SUFFIXES = (".html", ".svg", ".dot")


def run(context: CommandContext, values: Values) -> int:
    """Show the dependencies of Ascend tasks: of all tasks, or those around one task.

    With -o, write the task graph as a page to explore (.html), a picture (.svg) or for Graphviz (.dot). Levels count
    the edges on the longest way to a task; edges that others imply are left out. Slack is the time by which a task
    could have ended later without delaying a consumer. Of a window the tasks are those with an execution in it, and the
    edges those between them; their times and slack are those of the whole capture.
    """
    target, task = values["output"], values["task"]
    if target is not None:
        _check_target(context, values)
    trace = context.open(values["input"])
    if target is None and task is not None:
        return _around(context, trace, values)
    from lanescope.devices.ascend.analysis.graph_window import tasks_in, whole_of, windowed_graph
    from lanescope.devices.ascend.analysis.task_graph import task_graph

    graph = task_graph(whole_of(trace), _graph_file(context, trace))
    if trace.origin is not None:
        graph = windowed_graph(graph, tasks_in(graph, trace))
    if graph.several_runs:
        context.warn("capture has several runs with the same task ids: the graph shows no times")
    if target is not None:
        _write(context, graph, values, str(trace.inputs.column("capture").texts[0]))
    elif values["json"]:
        context.json("lanescope.ascend-graph/1", unit=graph.unit, tasks=list(_tasks(graph)), edges=list(_edges(graph)))
    else:
        rows = [[_text(value) for value in row.values()] for row in _tasks(graph)]
        title = f"{len(graph)} tasks, {len(graph.pred)} edges, {int(graph.is_needed.sum())} not implied by others"
        context.show(_columns(graph.unit), rows, title=title, is_long=True)
    return 0


def _around(context: CommandContext, trace: Trace, values: Values) -> int:
    from lanescope.devices.ascend.analysis.dependency_walk import fan
    from lanescope.devices.ascend.analysis.graph_window import executed_in, whole_of

    task = values["task"]
    table = fan(whole_of(trace), task, values["depth"], values["direction"])
    rows = list(table.rows())
    if trace.origin is not None:
        shown = set(executed_in(trace).tolist())
        rows = [row for row in rows if row["task_id"] in shown]
    rows = [{**row, "task_id": str(row["task_id"])} for row in rows]
    columns = [name for name in table.spec.names if name != "id"]
    if values["json"]:
        context.json("lanescope.ascend-deps/1", task=task, rows=rows)
    else:
        columns.remove("slack_ticks")
        specs = [column for column in table.spec.columns if column.name in columns]
        listed = [[row[name] for name in columns] for row in rows]
        context.show(specs, listed, title=f"tasks around {task}", is_long=True)
    return 0


def _check_target(context: CommandContext, values: Values) -> None:
    """Refuse, before the capture is read, a target of no known suffix, or that may not be written."""
    suffix = Path(values["output"]).suffix
    if suffix not in _SUFFIXES:
        raise UsageError(f"cannot infer the format from {suffix!r}", hint="use .html, .svg or .dot")
    if values["task"] is not None and suffix != ".html":
        raise UsageError(f"{suffix} shows all tasks", hint="pass no task, or write .html: it opens at the task")
    deps = context.option("deps")
    context.check_target(values["output"], [values["input"], *([deps] if deps else [])])


def _graph_file(context: CommandContext, trace: Trace) -> GraphFile | None:
    """Return the task graph file that the capture was decoded with, for tensors.

    Raises:
        InputError: it is unreadable, and nothing else tells of dependencies.
    """
    from lanescope.devices.ascend.formats.graph_file import parse

    roles = trace.inputs.column("role").texts.tolist()
    if "deps" not in roles:
        return None
    path = str(trace.inputs.column("path").texts[roles.index("deps")])
    try:
        return parse(Path(path).read_bytes(), path)
    except (InputError, OSError) as error:
        if not len(trace.details["ascend_edges"]):
            hint = "pass the deps.json as the runtime wrote it: --deps FILE"
            raise InputError(f"capture has no task graph: {error}", hint=hint) from None
        context.warn(f"graph shows no tensors: {error}")
        return None


def _write(context: CommandContext, graph: TaskGraph, values: Values, name: str) -> None:
    from lanescope.devices.ascend.export.graph import dot, page, svg
    from lanescope.devices.ascend.export.graph.drawing import draw

    target = values["output"]
    drawing = draw(graph)
    made: Iterable[bytes]
    if target.endswith(".html"):
        made = page.blocks(drawing, name, _selected(graph, values["task"]))
    else:
        made = svg.blocks(drawing) if target.endswith(".svg") else dot.blocks(drawing)
    size = context.write(target, made, inputs=[values["input"]])
    context.wrote(target, f"{len(graph)} tasks", f"{len(graph.pred)} edges", size=size)


def _selected(graph: TaskGraph, task: str | None) -> int:
    """Return the task with which the page opens, -1 for none."""
    if task is None:
        return -1
    if task not in graph.names:
        raise UsageError(f"task {task} not found", hint="use a task id such as r2t5 or t5")
    return graph.names.index(task)


_COLUMNS = (
    "task", "level", "kind", "name", "record", "executions", "begin", "duration", "slack", "dispatched_early",
    "allows_early", "waits_for",
)  # fmt: skip
_TIMES = ("begin", "duration", "slack")


def _columns(unit: str) -> list[str | ColumnSpec]:
    """Return the columns, those of times with their unit."""
    from lanescope.trace import ColumnSpec

    return [
        ColumnSpec(name, "int64", "time", unit=unit, is_time=name == "begin") if name in _TIMES else name
        for name in _COLUMNS
    ]


def _tasks(graph: TaskGraph) -> Iterable[dict[str, Any]]:
    """Yield the tasks by level; ``waits_for`` has the producers that others do not imply."""
    waits: list[list[str]] = [[] for _ in range(len(graph))]
    for pred, succ, needed in zip(graph.pred.tolist(), graph.succ.tolist(), graph.is_needed.tolist(), strict=True):
        if needed:
            waits[succ].append(graph.names[pred])
    levels, times = graph.order.level.tolist(), graph.times
    for task in sorted(range(len(graph)), key=lambda task: (levels[task], task)):
        begin, end = times.begin[task], times.end[task]
        values = (
            graph.names[task], levels[task], graph.kinds[task], graph.functions[task] or None, graph.records[task],
            len(times.bars[task]), begin, None if begin is None or end is None else end - begin, graph.slack[task],
            times.early[task], graph.allows_early[task], waits[task],
        )  # fmt: skip
        yield dict(zip(_COLUMNS, values, strict=True))


def _edges(graph: TaskGraph) -> Iterable[dict[str, Any]]:
    """Yield all edges with what is known of them."""
    from lanescope.devices.ascend.analysis.task_times import slack_of_edges

    slack = slack_of_edges(graph.times, graph.pred, graph.succ)
    for edge, (pred, succ) in enumerate(zip(graph.pred.tolist(), graph.succ.tolist(), strict=True)):
        yield {
            "producer": graph.names[pred],
            "consumer": graph.names[succ],
            "is_implied": not graph.is_needed[edge],
            "is_violated": bool(graph.violated[edge]),
            "slack": slack[edge],
            "sources": sorted({reason.source for reason in graph.reasons[edge] if reason.source}),
        }


def _text(value: Any) -> Any:
    return " ".join(value) if isinstance(value, list) else value


ARGUMENTS = (
    Argument("task", "task id: a number, or r2t5 for task 5 of ring 2 (default: all tasks)", is_optional=True),
    Argument("--output", "write the graph of all tasks: .html, .svg, .dot", metavar="FILE", short="-o"),
    Argument("--depth", "how many edges away", non_negative_int, 1, "N"),
    Argument("--direction", "producers, consumers, both", default="both", choices=("in", "out", "both")),
    Argument("--json", "one JSON document, schema lanescope.ascend-deps/1; all tasks: lanescope.ascend-graph/1", bool),
)
