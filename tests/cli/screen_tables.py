"""Tables as they stand on a terminal, taken apart again: titles, cells, and where each is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lanescope.view.formatting import display_width

_RULE = re.compile(r"─+(  ─+)*")
#: A value that is a number: with its unit, or its sign.
_NUMBER = re.compile(r"[-+]?(0x[\da-f]+|<?[\d,]*\.?\d+(e[-+]?\d+)?( ?([nµm]?s|B|[KMGT]iB|%))?)")


@dataclass
class Screened:
    """One table of a text: its titles, its rows as cells with the spaces that fill them, and the columns left out."""

    titles: list[str]
    rows: list[list[str]]
    hidden: list[str]


def screened(text: str) -> Iterator[Screened]:
    """Yield the tables of what a terminal shows; each row is on one line."""
    lines = text.splitlines()
    for at in rules(lines):
        spans = [found.span() for found in re.finditer("─+", lines[at])]
        titles = _cells(lines[at - 1], spans)
        assert titles is not None, f"titles that are not above their columns:\n{lines[at - 1]}\n{lines[at]}"
        rows, end = [], at + 1
        while end < len(lines) and lines[end].strip():
            cells = _cells(lines[end], spans)
            if cells is None or lines[end].startswith("hidden: "):
                break
            rows.append(cells)
            end += 1
        notes = []
        while end < len(lines) and lines[end].strip():
            notes.append(lines[end].strip())
            end += 1
        found = re.search(r"hidden: (.*?) \(--wide\)", " ".join(notes))
        yield Screened([title.strip() for title in titles], rows, found[1].split(", ") if found else [])


def rules(lines: list[str]) -> list[int]:
    """Return the numbers of the lines below titles."""
    return [at for at, line in enumerate(lines) if at and _RULE.fullmatch(line)]


def parts(line: str) -> list[str]:
    """Return the cells of a line of any width."""
    return [text for text in re.split(r"  +", line.strip()) if text]


def is_number(cell: str) -> bool:
    """Return whether a cell is a number, with its unit if it has one."""
    return _NUMBER.fullmatch(cell.strip()) is not None


def _cells(line: str, spans: list[tuple[int, int]]) -> list[str] | None:
    """Return the cells of a line; None if something stands between the columns."""
    columns = []
    for character in line:
        columns += [character, *[""] * (display_width(character) - 1)]
    cells, before = [], 0
    for at, (low, high) in enumerate(spans):
        if any(text.strip() for text in columns[before:low]):
            return None
        cells.append("".join(columns[low : len(columns) if at == len(spans) - 1 else high]))
        before = high
    return cells
