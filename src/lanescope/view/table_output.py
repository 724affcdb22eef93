"""Tables: formatted on a terminal, tab-separated with full precision otherwise."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import IO, Any

from lanescope.view.formatting import escape

#: From here on, digits after the point are not shown, nor powers of ten.
_WHOLE = 1000


def is_terminal(stream: IO[str]) -> bool:
    """Return whether a stream is a terminal."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def show(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "", file: IO[str] | None = None
) -> None:
    """Print a table.

    Args:
        columns: names of the columns.
        rows: values in their order; None is shown as nothing, texts are escaped.
        title: what stands above it on a terminal.
        file: standard output by default.
    """
    stream = file or sys.stdout
    if not is_terminal(stream):
        print("\t".join(map(escape, columns)), file=stream)
        for row in rows:
            print("\t".join(_plain(value) for value in row), file=stream)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    listed = [list(row) for row in rows]
    # Text everywhere: a name from a trace is not markup.
    table = Table(
        title=Text(escape(title), "bold") if title else None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    encoding = (getattr(stream, "encoding", None) or "").lower()
    separator = "\u202f" if encoding.startswith("utf") else ""  # narrow no-break space
    for index, name in enumerate(columns):
        values = [row[index] for row in listed if row[index] is not None]
        is_number = bool(values) and all(isinstance(value, int | float) for value in values)
        table.add_column(Text(escape(name)), justify="right" if is_number else "left", overflow="fold")
    for row in listed:
        table.add_row(*(Text(pretty(value, separator)) for value in row))
    Console(file=stream, highlight=False).print(table)


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else escape(str(value))


def pretty(value: Any, separator: str) -> str:
    """Return a value as a terminal shows it, with a separator between thousands."""
    if isinstance(value, float):
        text = f"{value:,.0f}" if abs(value) >= _WHOLE else f"{value:.4g}"
        return text.replace(",", separator)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}".replace(",", separator)
    return _plain(value)
