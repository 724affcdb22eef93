"""What all pictures of a task graph share: boxes, ports, curves, texts."""

from __future__ import annotations

import unicodedata

from lanescope.declaration import frozen_class
from lanescope.devices.ascend.analysis.task_graph import Reason, TaskGraph
from lanescope.devices.ascend.analysis.task_times import slack_of_edges
from lanescope.devices.ascend.export.graph.layered import WIDTH, Layout, Point, layout

#: Height of the title of a box, of one port, and below the last one, in pixels; ports that a box shows at most.
HEAD, PORT, FOOT, MAX_PORTS = 40.0, 12.0, 4.0, 24
#: Kinds of which only the time is recorded at which a scheduler passed them.
MOMENTS = ("dummy", "skipped")
#: Colors of functions, distinct for all kinds of color vision, and those of tasks without one.
PALETTE = ("#8ec2fd", "#fcaa2b", "#5a947e", "#966cd7", "#d06217", "#b488a9", "#afaf7b", "#fbe1b0")
_SHOWN = 400
_UNSAFE = {"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"}
_STEPS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))


@frozen_class
class Line:
    """A line from a producer to a consumer, for one tensor or none.

    Attributes:
        edge: index of the edge.
        points: begin, points that it passes, end.
        tensor: index of the tensor, -1 without one.
    """

    edge: int
    points: list[Point]
    tensor: int


@frozen_class
class Drawing:
    """A task graph with the place of everything.

    Attributes:
        graph: the tasks.
        place: their boxes; routes of all edges.
        heights: [tasks].
        into: [tasks], arguments shown as ports on the left, in their order: places in ``graph.inputs``.
        out: [tasks], tensors shown as ports on the right.
        lines: of all edges; those that others imply are not led around tasks.
        edge_slack: [edges], None if not known.
        holds: [tasks], the edge from the producer that ended last, -1 without one.
        color: [tasks], index in ``PALETTE``, -1 for tasks without a function.
    """

    graph: TaskGraph
    place: Layout
    heights: list[float]
    into: list[list[int]]
    out: list[list[int]]
    lines: list[Line]
    edge_slack: list[int | None]
    holds: list[int]
    color: list[int]


def draw(graph: TaskGraph) -> Drawing:
    """Place a task graph."""
    into = [list(range(min(len(arguments), MAX_PORTS))) for arguments in graph.inputs]
    out = _outputs(graph)
    heights = [HEAD + PORT * max(len(left), len(right)) + FOOT for left, right in zip(into, out, strict=True)]
    needed = graph.is_needed.nonzero()[0]
    found = layout(graph.order.level, heights, graph.pred[needed], graph.succ[needed])
    routes: list[list[Point]] = [[] for _ in graph.pred]
    for edge, route in zip(needed.tolist(), found.routes, strict=True):
        routes[edge] = route
    slack = slack_of_edges(graph.times, graph.pred, graph.succ)
    return Drawing(
        graph,
        Layout(found.x, found.y, routes, found.width, found.height),
        heights,
        into,
        out,
        list(_lines(graph, found, routes, into, out)),
        slack,
        _holds(graph),
        _colors(graph),
    )


def _outputs(graph: TaskGraph) -> list[list[int]]:
    """Return the tensors that the consumers of each task take from it, in the order of the edges."""
    found: list[dict[int, None]] = [{} for _ in range(len(graph))]
    for pred, reasons in zip(graph.pred.tolist(), graph.reasons, strict=True):
        for reason in reasons:
            if reason.tensor >= 0:
                found[pred].setdefault(reason.tensor)
    return [list(tensors)[:MAX_PORTS] for tensors in found]


def _lines(
    graph: TaskGraph, found: Layout, routes: list[list[Point]], into: list[list[int]], out: list[list[int]]
) -> list[Line]:
    """Return the lines of each edge: one for each tensor, or one between the titles."""
    lines = []
    x, y = found.x.tolist(), found.y.tolist()
    right = [{tensor: at for at, tensor in enumerate(tensors)} for tensors in out]
    for edge, (pred, succ) in enumerate(zip(graph.pred.tolist(), graph.succ.tolist(), strict=True)):
        seen: dict[tuple[float, float], int] = {}
        reasons: list[Reason | None] = [*graph.reasons[edge]]
        for reason in reasons or [None]:
            begin = end = HEAD / 2
            if reason is not None and reason.tensor in right[pred]:
                begin = port_height(right[pred][reason.tensor])
            if reason is not None:
                end = _input_height(graph, succ, reason.argument, into[succ])
            seen.setdefault((begin, end), -1 if reason is None else reason.tensor)
        for (begin, end), tensor in seen.items():
            first, last = (x[pred] + WIDTH, y[pred] + begin), (x[succ], y[succ] + end)
            lines.append(Line(edge, [first, *routes[edge], last], tensor))
    return lines


def port_height(place: int) -> float:
    """Return the height of a port in its box."""
    return HEAD + PORT * (place + 0.5)


def _input_height(graph: TaskGraph, task: int, argument: int, shown: list[int]) -> float:
    for place in shown:
        if graph.inputs[task][place].index == argument:
            return port_height(place)
    return HEAD / 2


def _holds(graph: TaskGraph) -> list[int]:
    """Return for each task the edge from the producer that ended last, -1 without one."""
    found, latest = [-1] * len(graph), [0] * len(graph)
    for edge, (pred, succ) in enumerate(zip(graph.pred.tolist(), graph.succ.tolist(), strict=True)):
        end = graph.times.end[pred]
        if end is not None and (found[succ] < 0 or end > latest[succ]):
            found[succ], latest[succ] = edge, end
    return found


def _colors(graph: TaskGraph) -> list[int]:
    """Return a color for each function: the most frequent ones get one of their own."""
    count: dict[str, int] = {}
    for name in graph.functions:
        count[name] = count.get(name, 0) + 1
    by_frequency = sorted((name for name in count if name), key=lambda name: (-count[name], name))
    color = {name: at % len(PALETTE) for at, name in enumerate(by_frequency)}
    return [color.get(name, -1) for name in graph.functions]


def curve(points: list[Point]) -> str:
    """Return the path of a line as SVG writes it."""
    parts = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for place, (x, y) in enumerate(points[1:]):
        left, up = points[place]
        if place % 2:  # along a column, between tasks
            parts.append(f"L{x:.1f} {y:.1f}")
            continue
        bend = max(abs(x - left) / 2, 30.0) if x >= left else 60.0
        parts.append(f"C{left + bend:.1f} {up:.1f} {x - bend:.1f} {y:.1f} {x:.1f} {y:.1f}")
    return "".join(parts)


def plain(text: str) -> str:
    """Return a name of a capture without characters that are invisible or turn text around, cut to 400."""
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    if shown.isprintable() and shown.isascii():
        return shown
    return "".join(c if unicodedata.category(c) not in _UNSAFE else f"\\u{ord(c):04x}" for c in shown)


def duration(value: int, unit: str) -> str:
    """Return a time of three digits with a unit that fits; cycles stay cycles."""
    if unit != "ns":
        return f"{value} {unit}"
    for size, name in _STEPS:
        if abs(value) * 2000 >= size * 1999:
            scaled = value / size
            return f"{scaled:.3g} {name}" if abs(scaled) < 999.5 else f"{scaled:.0f} {name}"
    return f"{value} ns"


def time_text(graph: TaskGraph, task: int) -> str:
    """Return the second line of a box: how long the task ran, and its slack."""
    begin, end, slack = graph.times.begin[task], graph.times.end[task], graph.slack[task]
    if begin is None:
        return {"none": "no record by design", "lost": "record lost", "undecidable": "no record"}.get(
            graph.records[task], "no time"
        )
    parts = ["no end" if end is None else duration(end - begin, graph.unit)]
    if graph.kinds[task] in MOMENTS and end == begin:
        parts = []  # a marker has no width
    if slack is not None:
        parts.append(f"slack {duration(slack, graph.unit)}")
    return ", ".join(parts) or "passed"
