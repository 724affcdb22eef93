"""The task graph in the language of Graphviz, for its own layouts."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from lanescope.devices.ascend.export.graph.drawing import MAX_PORTS, PALETTE, Drawing, plain, time_text

_STYLE = 'rankdir=LR nodesep=0.2 ranksep=0.9 fontname="sans-serif"'


def blocks(drawing: Drawing) -> Iterator[bytes]:
    """Yield the file; edges that others imply are dashed and do not influence the layout."""
    graph = drawing.graph
    yield (
        f"digraph tasks {{\n  graph [{_STYLE}]\n"
        '  node [shape=plain fontname="sans-serif" fontsize=10]\n  edge [arrowsize=0.6]\n'
    ).encode()
    for task in range(len(graph)):
        shown = f"tooltip={_quoted(_tip(drawing, task))} label=<{_box(drawing, task)}>"
        yield f"  {_quoted(graph.names[task])} [{shown}]\n".encode()
    for line in drawing.lines:
        yield f"  {_line(drawing, line.edge, line.tensor)}\n".encode()
    yield b"}\n"


def _tip(drawing: Drawing, task: int) -> str:
    graph = drawing.graph
    return f"{graph.names[task]}: {graph.kinds[task]}, level {graph.order.level[task]}"


def _line(drawing: Drawing, edge: int, tensor: int) -> str:
    graph = drawing.graph
    pred, succ = int(graph.pred[edge]), int(graph.succ[edge])
    begin, end = _quoted(graph.names[pred]), _quoted(graph.names[succ])
    if tensor in drawing.out[pred]:
        begin += f":o{drawing.out[pred].index(tensor)}:e"
    for place in drawing.into[succ] if tensor >= 0 else ():
        if graph.inputs[succ][place].tensor == tensor:
            end += f":i{place}:w"
            break
    style = []
    if not graph.is_needed[edge]:
        style.append("style=dashed color=gray constraint=false")
    elif graph.violated[edge]:
        style.append("color=red penwidth=2")
    elif drawing.holds[succ] == edge:
        style.append("penwidth=2")
    return f"{begin} -> {end}" + (f" [{' '.join(style)}]" if style else "")


def _box(drawing: Drawing, task: int) -> str:
    """Return the label of a task: title, time, and a row for each pair of ports."""
    graph = drawing.graph
    color = PALETTE[drawing.color[task]] if drawing.color[task] >= 0 else "#e9edf2"
    mark = " ▶▶" if graph.times.early[task] is not None else ""
    title = f"{plain(graph.title(task))} {graph.names[task]}{mark}"
    rows = [
        f'<TR><TD COLSPAN="2" BGCOLOR="{color}">{escape(title)}</TD></TR>',
        f'<TR><TD COLSPAN="2">{escape(time_text(graph, task))}</TD></TR>',
    ]
    into, out = drawing.into[task], drawing.out[task]
    for place in range(min(max(len(into), len(out)), MAX_PORTS)):
        left = right = "<TD></TD>"
        if place < len(into):
            argument = graph.inputs[task][into[place]]
            text = escape(plain(f"T{argument.tensor} {argument.shape}"))
            left = f'<TD PORT="i{place}" ALIGN="LEFT">{text}</TD>'
        if place < len(out):
            right = f'<TD PORT="o{place}" ALIGN="RIGHT">T{out[place]}</TD>'
        rows.append(f"<TR>{left}{right}</TR>")
    return f'<TABLE BORDER="1" CELLBORDER="0" CELLSPACING="0">{"".join(rows)}</TABLE>'


def _quoted(text: str) -> str:
    escaped = plain(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
