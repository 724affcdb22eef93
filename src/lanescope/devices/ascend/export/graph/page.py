"""The task graph as a page to explore: one HTML file that works offline, names in it are never markup."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from lanescope.devices.ascend.analysis.task_graph import Reason, TaskGraph
from lanescope.devices.ascend.export.graph.drawing import HEAD, PALETTE, PORT, Drawing, plain
from lanescope.devices.ascend.export.graph.layered import WIDTH

_HERE = Path(__file__).parent
_WORDS = {
    "none": "This runtime writes no record of such a task at this level.",
    "lost": "A record was due and is missing.",
    "undecidable": "It has no record; the capture contains no proof whether one was due.",
    "recorded": "",
}
#: Reasons of an edge that the page lists.
_REASONS = 8


def blocks(drawing: Drawing, name: str, selected: int = -1) -> Iterator[bytes]:
    """Yield the page.

    Args:
        drawing: the placed graph.
        name: name of the capture.
        selected: index of the task with which it opens, -1 for none.
    """
    style = (_HERE / "page.css").read_text("utf-8")
    script = "".join((_HERE / part).read_text("utf-8") for part in ("page.js", "selection.js", "times.js"))
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'; form-action 'none'"
    )
    title = escape(plain(name))
    yield (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Task graph of {title}</title><style>{style}</style></head>"
        f'<body><header><h1 title="{title}">{title}</h1><div class="facts" id="facts"></div>'
        '<input type="search" id="search" placeholder="task, function, kind (/)" aria-label="Search tasks">'
        '<span id="hits" role="status"></span>'
        '<button type="button" id="all">All</button>'
        '<button type="button" id="implied" aria-pressed="false">Implied edges</button>'
        '<button type="button" id="strip">Timeline</button><button type="button" id="theme">Theme</button></header>'
        '<main id="stage"><canvas id="graph" tabindex="0" role="application" aria-label="Task graph: '
        'arrows follow what held a task and its tightest consumer, slash searches"></canvas>'
        '<canvas id="map" aria-hidden="true"></canvas>'
        '<div id="tip"></div></main><aside id="panel" aria-label="Selection"></aside>'
        '<section id="times" aria-label="Timeline"><canvas id="bars" aria-hidden="true"></canvas></section>'
        '<div class="sr" id="said" aria-live="polite"></div>'
        '<script type="application/json" id="data">'
    ).encode()
    # A script element ends at the first tag of that name, whatever it contains.
    yield json.dumps(_data(drawing, selected), separators=(",", ":")).replace("<", "\\u003c").encode()
    yield f"</script><script>{script}</script></body></html>\n".encode()


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _data(drawing: Drawing, selected: int) -> dict[str, Any]:
    graph, times = drawing.graph, drawing.graph.times
    texts = _Texts()
    begins = [begin for begin in times.begin if begin is not None]
    functions = _Texts()
    kinds, records = _Texts(), _Texts()
    columns = {
        "name": graph.names,
        "fn": [functions.code(plain(name)) if name else -1 for name in graph.functions],
        "kind": [kinds.code(kind) for kind in graph.kinds],
        "record": [records.code(record) for record in graph.records],
        "color": drawing.color,
        "level": graph.order.level.tolist(),
        "x": [round(x) for x in drawing.place.x.tolist()],
        "y": [round(y) for y in drawing.place.y.tolist()],
        "h": [round(height) for height in drawing.heights],
        "begin": times.begin,
        "begun": times.begun,
        "end": times.end,
        "ready": times.ready,
        "early": times.early,
        "slack": graph.slack,
        "allows": [bool(allows) for allows in graph.allows_early],
        "blocks": graph.blocks,
        "holds": drawing.holds,
        "nodes": [[name for name, _ in nodes] or None for nodes in graph.nodes],
        # As texts: numbers of a script have 53 bits.
        "ids": [
            [str(number) for number in (task, *(node for _, node in nodes))]
            for task, nodes in zip(graph.ids.tolist(), graph.nodes, strict=True)
        ],
        "into": _inputs(drawing, texts),
        "out": drawing.out,
        "bars": times.bars,
    }
    colors = {code: color for code, color in zip(columns["fn"], drawing.color, strict=True) if code >= 0}
    return {
        "unit": graph.unit,
        "selected": selected,
        "width": WIDTH,
        "head": HEAD,
        "port": PORT,
        "palette": PALETTE,
        "size": [drawing.place.width, drawing.place.height],
        "begin": min(begins, default=0),
        "end": times.last_end or 0,
        "words": _WORDS,
        "functions": functions.all,
        "colors": [colors[code] for code in range(len(functions.all))],
        "kinds": kinds.all,
        "records": records.all,
        "tensors": [plain(text) for text in graph.tensors],
        "cores": [plain(core) for core in times.cores],
        "tasks": columns,
        "edges": _edges(drawing),
        "lines": {
            "edge": [line.edge for line in drawing.lines],
            "points": [[round(value) for point in line.points for value in point] for line in drawing.lines],
        },
        "texts": texts.all,
    }


def _inputs(drawing: Drawing, texts: _Texts) -> list[list[tuple[int, str, int, int]]]:
    """Return the ports on the left of each task: argument, type, tensor, shape."""
    return [
        [
            (argument.index, plain(argument.type), argument.tensor, texts.code(plain(argument.shape)))
            for argument in (arguments[place] for place in shown)
        ]
        for arguments, shown in zip(drawing.graph.inputs, drawing.into, strict=True)
    ]


def _edges(drawing: Drawing) -> dict[str, Any]:
    graph = drawing.graph
    return {
        "pred": graph.pred.tolist(),
        "succ": graph.succ.tolist(),
        "needed": [int(needed) for needed in graph.is_needed.tolist()],
        "violated": [int(violated) for violated in graph.violated.tolist()],
        "slack": drawing.edge_slack,
        "why": [_why(graph, reasons) for reasons in graph.reasons],
    }


def _why(graph: TaskGraph, reasons: list[Reason]) -> str:
    """Return the reasons of an edge, a line each."""
    lines = []
    for reason in reasons[:_REASONS]:
        tensor = f" T{reason.tensor} {graph.tensors[reason.tensor]}" if reason.tensor >= 0 else ""
        lines.append(plain(f"{reason.source or 'no source'}{tensor}"))
    return "\n".join(dict.fromkeys(lines))


class _Texts:
    """Texts that occur often, each written once."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        """Return the place of a text."""
        return self._codes.setdefault(text, len(self._codes))

    @property
    def all(self) -> list[str]:
        """The texts in the order of their codes."""
        return list(self._codes)
