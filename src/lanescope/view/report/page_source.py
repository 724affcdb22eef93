"""The page of a report: template, style and script, as they are written into the file.

The script is made of plain modules under ``page/``. A page has one module script, so they are put one behind the other,
without their imports and exports: no two of them have a top-level name in common.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "page"
#: The modules in the order in which they are put together: what is used at once comes before what uses it.
MODULES = (
    "types.js", "decode.js", "format.js", "dom.js", "lod.js", "model.js", "stage.js", "theme.js", "draw_lanes.js",
    "draw_time.js", "draw_marks.js", "lanes.js", "selection.js", "search.js", "findings.js", "tables.js", "details.js",
    "drawer.js", "pointer.js", "keys.js", "print.js", "main.js",
)  # fmt: skip

_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|let|function|class|async)\b)", re.MULTILINE)
_EMPTY_EXPORT = re.compile(r"^export \{\};\n", re.MULTILINE)


class PageSource(NamedTuple):
    """What a page is made of.

    Attributes:
        template: HTML with the placeholders ``{{csp}} {{style}} {{title}} {{header}} {{columns}} {{script}}``.
        style: the style sheet; its bytes as written are what the policy has the hash of.
        script: the module script; the same.
    """

    template: str
    style: str
    script: str


def assemble() -> PageSource:
    """Return the page's source; the same bytes each time."""
    template, style = ((FOLDER / name).read_text(encoding="utf-8") for name in ("page.html", "style.css"))
    return PageSource(template, "\n" + style, "\n" + "\n".join(_module(name) for name in MODULES))


def _module(name: str) -> str:
    text = (FOLDER / name).read_text(encoding="utf-8")
    text = _EMPTY_EXPORT.sub("", _EXPORT.sub("", _IMPORT.sub("", text)))
    return f"// ---- {name} ----\n{text.strip()}\n"
