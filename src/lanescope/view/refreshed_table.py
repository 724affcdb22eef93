"""A table that is shown again and again: in one place of a terminal, or as one line each time."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from lanescope.view.formatting import duration, escape, format_bytes
from lanescope.view.table_output import is_terminal
from lanescope.view.tables.cells import cell
from lanescope.view.tables.columns import Col, column
from lanescope.view.tables.sections import in_units

#: Rows of a table in one place.
_MOST_ROWS = 12


class RefreshedTable:
    """Shows a table each time it has changed.

    Args:
        file: where to.
        columns: columns that are shown, where there is room.
        in_place: whether a terminal's lines are written over; not where another program writes to the same terminal.
    """

    def __init__(self, file: TextIO, columns: Sequence[str], *, in_place: bool = True) -> None:
        self._file, self._columns = file, columns
        self._in_place = in_place and is_terminal(file)
        self._begin = time.monotonic()
        self._drawn = 0
        self._last: Sequence[Mapping[str, Any]] | None = None

    def show(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Show the newest state, the most important row first."""
        if rows == self._last:
            return
        self._last = list(rows)
        elapsed = time.monotonic() - self._begin
        if not self._in_place:
            # One write a line: it comes between the lines of other writers, not into them.
            self._file.write(f"{line_of(rows, elapsed)}\n")
            self._file.flush()
            return
        width, height = shutil.get_terminal_size()
        shown = rows[: max(min(_MOST_ROWS, height - 3), 1)]
        cells = [list(self._columns), *_cells(self._columns, shown)]
        widths = [max(len(line[place]) for line in cells) for place in range(len(self._columns))]
        lines = [f"after {elapsed:.1f} s, {len(rows) - len(shown)} more rows"]
        lines += ["  ".join(cell.rjust(size) for cell, size in zip(line, widths, strict=True)) for line in cells]
        self.clear()
        self._file.write("".join(f"{line[: width - 1]}\n" for line in lines))
        self._file.flush()
        self._drawn = len(lines)

    def clear(self) -> None:
        """Take the table away from a terminal."""
        if self._drawn:
            self._file.write(f"\x1b[{self._drawn}A\x1b[J")
            self._drawn = 0


def line_of(rows: Sequence[Mapping[str, Any]], elapsed: float) -> str:
    """Return one line: the sums of each section, and the row of each that takes most.

    Args:
        rows: rows with ``section``, ``name``, ``count``, ``total``, by descending total. A name in brackets is not of
            the program: its time stands apart.
        elapsed: s.
    """
    parts = []
    apart = [row for row in rows if str(row["name"]).startswith("(")]
    of_program = [row for row in rows if row not in apart]
    for section in dict.fromkeys(row["section"] for row in of_program):
        mine = [row for row in of_program if row["section"] == section]
        count, total = sum(row["count"] for row in mine), sum(row["total"] for row in mine)
        most, shown = mine[0], format_bytes if section == "traffic" else duration
        parts.append(
            f"{section} {count:,} in {shown(total)} "
            f"(most: {escape(str(most['name']))} {most['count']:,} in {shown(most['total'])})"
        )
    parts += [f"{escape(str(row['name']))} {duration(row['total'])}" for row in apart]
    return f"live {elapsed:.1f} s: {'; '.join(parts) or 'nothing yet'}"


def _cells(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the cells of rows as other tables show them: sums with the unit of their section."""
    listed: list[Col] = [column(name) for name in ("section", *names)]
    columns, values = in_units(listed, ([row["section"], *(row[name] for name in names)] for row in rows))
    return [
        ["" if value is None else cell(value, each) for value, each in zip(row[1:], columns[1:], strict=True)]
        for row in values
    ]
