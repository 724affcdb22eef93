"""Tables: aligned text that fits a terminal, the same text in full elsewhere, and CSV for programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

from lanescope.view.formatting import escape
from lanescope.view.tables.cells import Measured
from lanescope.view.tables.columns import Col, columns_of, settled
from lanescope.view.tables.layout import Layout, Room, wrapped

if TYPE_CHECKING:
    from lanescope.trace import ColumnSpec

    Columns = Sequence[str | Col | ColumnSpec]

#: Rows that tell how wide columns are. Those after them are shown piece by piece, so that no table is held as a whole.
_TELLING = 10_000
#: Widths of a terminal that says nothing useful.
_USUAL_WIDTH, _LEAST_WIDTH = 80, 20
#: What ``--color`` may be.
COLORS = ("auto", "always", "never")


class Look:
    """How tables are shown, as a user asks for it.

    Args:
        color: one of ``COLORS``.
        is_wide: nothing is shortened or hidden, whatever the width of the terminal.
        unit: unit of all durations: ``ns``, ``us``, ``ms``, ``s``; empty: each has its own.
    """

    def __init__(self, color: str = "auto", *, is_wide: bool = False, unit: str = "") -> None:
        self.color, self.is_wide, self.unit = color, is_wide, unit

    def has_color(self, stream: IO[str]) -> bool:
        """Return whether a stream is shown bold text and colors: not with ``NO_COLOR``, and only a terminal."""
        if self.color != "auto":
            return self.color == "always"
        return is_terminal(stream) and not os.environ.get("NO_COLOR")

    def room(self, stream: IO[str]) -> Room:
        """Return the room that a stream has."""
        encoding = (getattr(stream, "encoding", None) or "").lower()
        # A stream without an encoding takes text as it is.
        is_ascii = bool(encoding) and not encoding.startswith("utf")
        width = terminal_width(stream) if is_terminal(stream) else 0
        return Room(width, is_wide=self.is_wide, is_bold=self.has_color(stream), is_ascii=is_ascii, unit=self.unit)


def is_terminal(stream: IO[str]) -> bool:
    """Return whether a stream is a terminal."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def terminal_width(stream: IO[str]) -> int:
    """Return the columns of a line of a terminal; ``COLUMNS`` overrides what it says."""
    stated = os.environ.get("COLUMNS", "")
    width = int(stated) if stated.isdecimal() and len(stated) < 6 else 0
    if not width:
        try:
            width = os.get_terminal_size(stream.fileno()).columns
        except (OSError, ValueError, AttributeError):  # closed, or no file of the system's
            width = 0
    return max(width or _USUAL_WIDTH, _LEAST_WIDTH)


def show(
    columns: Columns,
    rows: Iterable[Sequence[Any]],
    *,
    about: str = "",
    title: str = "",
    file: IO[str] | None = None,
    look: Look | None = None,
    notes: Iterable[str] = (),
) -> None:
    """Print a table: what fits on a terminal, with the names of columns that are hidden; everything elsewhere.

    Args:
        columns: the columns; of one that is only a name its values tell what it is.
        rows: values in their order; None is unknown, texts are escaped.
        about: a line of context above all, and an empty one.
        title: a line above it.
        file: standard output by default.
        look: how it is shown.
        notes: lines below it, asked for when all rows were shown.

    Raises:
        UsageError: ``look`` has a unit that values do not have.
    """
    stream = file or sys.stdout
    look = look or Look()
    room = look.room(stream)
    coming = iter(rows)
    first = list(islice(coming, _TELLING))
    layout = Layout(settled(columns_of(columns), first), first, room)
    for text in (about, title):
        for line in wrapped(escape(text), 0 if room.is_wide else room.width) if text else ():
            print(_shown(line, room), file=stream)
        if text and text is about:
            print(file=stream)
    for line in layout.head():
        print(line, file=stream)
    for line in layout.lines(first):
        print(line, file=stream)
    while more := list(islice(coming, _TELLING)):
        for line in layout.lines(more, is_first=False):
            print(line, file=stream)
    hidden = [f"hidden: {', '.join(layout.hidden)} (--wide)"] if layout.hidden else []
    for note in (*notes, *hidden):
        for line in wrapped(escape(note), 0 if room.is_wide else room.width):
            print(_shown(line, room), file=stream)


def _shown(line: str, room: Room) -> str:
    return line.encode("ascii", "backslashreplace").decode() if room.is_ascii else line


def csv_lines(columns: Columns, rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield a table as CSV (RFC 4180), a record each: all digits, the unit in the name, nothing for unknown values.

    Args:
        columns: the columns; bars are left out.
        rows: values, [rows][columns].
    """
    import csv
    import io

    listed = columns_of(columns)
    kept = [at for at, column in enumerate(listed) if column.kind != "bar"]
    made = io.StringIO(newline="")
    writer = csv.writer(made)

    def record(values: Sequence[Any]) -> str:
        made.seek(0)
        made.truncate()
        writer.writerow(values)
        return made.getvalue()

    yield record([listed[at].csv_name for at in kept])
    for row in rows:
        yield record([_exact(row[at]) for at in kept])


def _exact(value: Any) -> Any:
    if isinstance(value, Measured):
        value = value.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return value


def print_csv(columns: Columns, rows: Iterable[Sequence[Any]], file: IO[str] | None = None) -> None:
    """Print a table as CSV; texts are escaped on a terminal, and exact elsewhere."""
    stream = file or sys.stdout
    is_seen = stream.isatty()
    for line in csv_lines(columns, rows):
        stream.write(f"{escape(line[:-2])}\n" if is_seen else line)
