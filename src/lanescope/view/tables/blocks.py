"""What is shown without a header: keys with their values, and short facts with a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lanescope.view.formatting import display_width, escape
from lanescope.view.tables.layout import wrapped

if TYPE_CHECKING:
    from lanescope.view.tables.layout import Room

#: A sentence with less room than this goes below its facts.
_LEAST_TEXT = 30


def titled(title: str, room: Room) -> str:
    """Return the line above a block."""
    line = room.encoded(escape(title))
    return f"\x1b[1m{line}\x1b[0m" if room.is_bold else line


def block(rows: Sequence[Sequence[str]], room: Room) -> Iterator[str]:
    """Yield lines: the cells of a row in columns, and its last one, a text, on as many lines as it takes.

    Args:
        rows: texts, [rows][columns]; they are escaped. Cells that are whole numbers are to the right.
        room: where they are shown.
    """
    cells = [[escape(text) for text in row] for row in rows]
    facts = range(len(rows[0]) - 1 if rows else 0)
    widths = [max(display_width(row[at]) for row in cells) for at in facts]
    is_number = [all(row[at].replace(",", "").isdecimal() for row in cells) for at in facts]
    width = 0 if room.is_wide else room.width
    left = sum(widths) + 2 * len(widths) + 2
    for row in cells:
        start = ""
        for at in facts:
            space = " " * (widths[at] - display_width(row[at]))
            start += "  " + (space + row[at] if is_number[at] else row[at] + space)
        if width and width - left < _LEAST_TEXT and len(widths) > 1:
            yield room.encoded(start.rstrip())
            lines = wrapped(f"      {row[-1]}", width, " " * 6)
        else:
            lines = wrapped(f"{start}  {row[-1]}", width, " " * left)
        for line in lines:
            yield room.encoded(line.rstrip())
