"""The task graph as one SVG file, without scripts and references to other files."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from lanescope.devices.ascend.export.graph.drawing import (
    PALETTE,
    Drawing,
    curve,
    duration,
    plain,
    port_height,
    time_text,
)
from lanescope.devices.ascend.export.graph.layered import WIDTH

_MARGIN = 24
_STYLE = """
text{font:11px Inter,system-ui,sans-serif;fill:#10151c}
.s{font-size:10px;fill:#5a6675}.p{font-size:7px;fill:#5a6675}.n{font-weight:600}.e{text-anchor:end}
.b{fill:#fff;stroke:#8a95a3}.dummy,.alloc{stroke-dasharray:4 3}.alloc{rx:16}.graph{stroke-width:3}
.skipped,.unknown{stroke-dasharray:2 3;fill:#f4f6f9}.lost{stroke:#b42318;stroke-width:2}
path{fill:none;stroke:#9aa7b6;stroke-width:1.2}.h{stroke:#3a4757;stroke-width:2.2}.v{stroke:#b42318;stroke-width:2.2}
.d{fill:#5a6675}.m{fill:#1a66dd;font-weight:600}
"""
#: Letters of this width fit a box; a title that is longer is cut in the middle, where names differ least.
_LETTERS = 24


def blocks(drawing: Drawing) -> Iterator[bytes]:
    """Yield the file: edges of the transitive reduction, then the tasks."""
    place, graph = drawing.place, drawing.graph
    width, height = place.width + 2 * _MARGIN, place.height + 2 * _MARGIN
    box = f"{-_MARGIN} {-_MARGIN} {width:.0f} {height:.0f}"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="{box}">'
        f"<style>{_STYLE}</style>"
        f'<rect x="{-_MARGIN}" y="{-_MARGIN}" width="{width:.0f}" height="{height:.0f}" fill="#fff"/>\n'
    ).encode()
    for line in drawing.lines:
        if graph.is_needed[line.edge]:
            yield f'<path{_edge_class(drawing, line.edge)} d="{curve(line.points)}"/>\n'.encode()
    for task in range(len(graph)):
        yield _box(drawing, task).encode()
    yield b"</svg>\n"


def _edge_class(drawing: Drawing, edge: int) -> str:
    if drawing.graph.violated[edge]:
        return ' class="v"'
    return ' class="h"' if drawing.holds[int(drawing.graph.succ[edge])] == edge else ""


def _box(drawing: Drawing, task: int) -> str:
    graph, place = drawing.graph, drawing.place
    kind, height = graph.kinds[task], drawing.heights[task]
    lost = " lost" if graph.records[task] == "lost" else ""
    fill = f'fill="{PALETTE[drawing.color[task]]}"' if drawing.color[task] >= 0 else 'fill="#e9edf2"'
    parts = [
        f'<g id="{escape(graph.names[task])}" transform="translate({place.x[task]:.1f} {place.y[task]:.1f})">',
        f"<title>{escape(title_text(drawing, task))}</title>",
        f'<rect class="b {kind}{lost}" width="{WIDTH:g}" height="{height:g}" rx="4"/>',
        f'<rect width="6" height="{height:g}" rx="3" {fill}/>',
        f'<text class="n" x="12" y="15">{escape(shortened(graph.title(task)))}</text>',
        f'<text class="s e" x="{WIDTH - 6:g}" y="15">{escape(graph.names[task])}</text>',
        f'<text class="s" x="12" y="30">{escape(time_text(graph, task))}</text>',
    ]
    if graph.times.early[task] is not None:
        parts.append(f'<text class="m e" x="{WIDTH - 6:g}" y="30">▶▶</text>')
    for at, port in enumerate(drawing.into[task]):
        argument = graph.inputs[task][port]
        text = escape(plain(f"T{argument.tensor} {argument.shape}"))
        parts.append(_port(0, port_height(at), f'<text class="p" x="11" y="{port_height(at) + 2.5:g}">{text}</text>'))
    for at, tensor in enumerate(drawing.out[task]):
        text = f'<text class="p e" x="{WIDTH - 6:g}" y="{port_height(at) + 2.5:g}">T{tensor}</text>'
        parts.append(_port(WIDTH, port_height(at), text))
    return "".join(parts) + "</g>\n"


def _port(x: float, y: float, text: str) -> str:
    return f'<circle class="d" cx="{x:g}" cy="{y:g}" r="2.5"/>{text}'


def title_text(drawing: Drawing, task: int) -> str:
    """Return all that is known of a task, a line each."""
    graph = drawing.graph
    lines = [f"{plain(graph.title(task))} ({graph.names[task]})", f"kind {graph.kinds[task]}, {time_text(graph, task)}"]
    if (early := graph.times.early[task]) is not None:
        lines.append(f"dispatched {duration(early, graph.unit)} before its last producer ended")
    if graph.allows_early[task]:
        lines.append("allows its consumers to be dispatched before it ends")
    if (edge := drawing.holds[task]) >= 0:
        lines.append(f"last producer to end: {graph.names[int(graph.pred[edge])]}")
    if graph.nodes[task]:
        lines.append("nodes " + ", ".join(name for name, _ in graph.nodes[task]))
    return "\n".join(lines)


def shortened(text: str) -> str:
    """Return a title cut in the middle to what fits a box."""
    shown = plain(text)
    half = (_LETTERS - 1) // 2
    return shown if len(shown) <= _LETTERS else f"{shown[:half]}…{shown[-half:]}"
