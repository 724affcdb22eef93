"""Draw the pictures of the architecture page: the rooms by floor, and the way of one buffer through them.

Usage: draw_rooms.py [FOLDER]. Floors come from the import contract in pyproject.toml, so the picture cannot claim an
order that imports do not keep. Writes rooms.svg and way-of-a-buffer.svg into FOLDER (docs/images).
"""

from __future__ import annotations

import sys
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Room -> what is in it.
CONTENT = {
    "cli": "one module per command",
    "view": "terminal tables, local viewer",
    "testing": "helpers for tests",
    "cuda": "probes in a program",
    "levelzero": "recording a program",
    "pipeline": "source, decode, transforms, observers, sink",
    "devices": "one folder per device family",
    "foreign": "traces of other tools",
    "io": "Perfetto, Chrome, Parquet, VCD, SQL",
    "analysis": "checks, summaries, lane time",
    "common": "unwrapping, pairing, gaps, joins",
    "families": "what a device family declares",
    "source": "files, pipes, containers",
    "trace": "the one event model",
    "wire": "binary layouts as data",
    "declaration": "immutable classes of named values",
    "errors": "one exit status each",
}
#: Rooms that hold words and data which all others use; no batch is passed to them.
VOCABULARY = {"declaration", "errors", "wire", "trace", "common", "families"}

_FONT = 'font-family="system-ui, sans-serif"'
_INK, _LINE, _PLAIN, _SOFT, _STRONG = "#1f2933", "#7b8794", "#ffffff", "#eef2f6", "#dbe9f6"


def floors() -> list[list[str]]:
    """Return the rooms of each floor, from the top, as the import contract orders them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["containers"] == ["lanescope"])
    found = [[room.strip(" ()") for room in layer.split("|")] for layer in layers]
    return [floor for floor in found if floor != ["__main__"]]


class Picture:
    """An SVG in the making."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width}" height="{height}" fill="{_PLAIN}"/>',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="{_LINE}"/></marker></defs>',
        ]

    def box(self, x: int, y: int, width: int, height: int, name: str, text: str, fill: str) -> None:
        """Draw a room with its name and one line of content."""
        middle = x + width // 2
        self.parts += [
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="{_LINE}"/>',
            f'<text x="{middle}" y="{y + height // 2 - 3}" text-anchor="middle" {_FONT} font-size="15" '
            f'font-weight="600" fill="{_INK}">{escape(name)}</text>',
            f'<text x="{middle}" y="{y + height // 2 + 15}" text-anchor="middle" {_FONT} font-size="11.5" '
            f'fill="{_INK}">{escape(text)}</text>',
        ]

    def text(self, x: int, y: int, text: str, *, anchor: str = "middle") -> None:
        """Write a small line."""
        self.parts.append(
            f'<text x="{x}" y="{y}" text-anchor="{anchor}" {_FONT} font-size="11.5" fill="{_INK}">{escape(text)}</text>'
        )

    def arrow(self, *points: tuple[int, int], label: str = "") -> None:
        """Draw an arrow along points, its label at the middle of the first stretch."""
        path = " ".join(f"{'L' if i else 'M'}{x} {y}" for i, (x, y) in enumerate(points))
        self.parts.append(f'<path d="{path}" fill="none" stroke="{_LINE}" stroke-width="1.6" marker-end="url(#tip)"/>')
        if label:
            (x0, y0), (x1, y1) = points[:2]
            self.text((x0 + x1) // 2, (y0 + y1) // 2 - 6, label)

    def svg(self) -> str:
        """Return the text of the file."""
        return "\n".join([*self.parts, "</svg>", ""])


def rooms() -> str:
    """Return the picture of the rooms: each may import those on the floors below it, and none beside or above it."""
    width, height, gap = 900, 48, 12
    all_floors = floors()
    picture = Picture(width + 40, len(all_floors) * (height + gap) + 50, "Rooms of lanescope by floor")
    for number, floor in enumerate(all_floors):
        each = (width - gap * (len(floor) - 1)) // len(floor)
        for place, room in enumerate(floor):
            fill = _SOFT if room in VOCABULARY else _STRONG
            x, y = 20 + place * (each + gap), 20 + number * (height + gap)
            picture.box(x, y, each, height, room, CONTENT[room], fill)
    last = 20 + len(all_floors) * (height + gap)
    picture.text(
        20, last + 10, "A room imports from floors below it only. Light rooms: vocabulary of all.", anchor="start"
    )
    return picture.svg()


def way() -> str:
    """Return the picture of the way of one buffer, from a file to a file and to what is printed."""
    picture = Picture(940, 380, "The way of one buffer")
    wide, high = 190, 52
    picture.box(375, 20, wide, high, "cli", "assembles a pipeline, prints", _STRONG)
    picture.box(375, 130, wide, high, "pipeline", "pulls one batch at a time", _STRONG)
    picture.box(40, 130, wide, high, "source", "bytes of the capture", _STRONG)
    picture.box(40, 250, wide, high, "devices", "bytes to batches of a trace", _STRONG)
    picture.box(375, 250, wide, high, "analysis", "observers: checks, summaries", _STRONG)
    picture.box(710, 130, wide, high, "io", "sinks: one file per format", _STRONG)
    picture.box(710, 20, wide, high, "view", "what the terminal shows", _STRONG)
    picture.arrow((470, 72), (470, 130))
    picture.arrow((375, 148), (230, 148), label="asks for bytes")
    picture.arrow((135, 182), (135, 250))
    picture.text(141, 222, "chunks", anchor="start")
    picture.arrow((230, 285), (340, 285), (340, 172), (375, 172))
    picture.text(344, 240, "batches", anchor="start")
    picture.arrow((470, 182), (470, 250), label="")
    picture.text(476, 222, "each batch", anchor="start")
    picture.arrow((565, 156), (710, 156), label="each batch")
    picture.arrow((565, 276), (640, 276), (640, 172), (710, 172))
    picture.text(646, 232, "findings to annotate", anchor="start")
    picture.arrow((565, 46), (710, 46), label="results")
    picture.text(
        20,
        350,
        "Calls go down or to the side, never up; batches come back as results. At most two are alive.",
        anchor="start",
    )
    return picture.svg()


def main() -> int:
    """Write both pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    (folder / "rooms.svg").write_text(rooms())
    (folder / "way-of-a-buffer.svg").write_text(way())
    return 0


if __name__ == "__main__":
    sys.exit(main())
