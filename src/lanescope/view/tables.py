"""Tables: drawn for people on a terminal, tab-separated with full precision for everything else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import IO, Any

from lanescope.view.text import escape


def is_terminal(stream: IO[str]) -> bool:
    """Tell whether people look at the stream."""
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
        print("\t".join(columns), file=stream)
        for row in rows:
            print("\t".join(_plain(value) for value in row), file=stream)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    listed = [list(row) for row in rows]
    table = Table(title=title or None, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(columns):
        values = [row[index] for row in listed if row[index] is not None]
        is_number = bool(values) and all(isinstance(value, int | float) for value in values)
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in listed:
        table.add_row(*(Text(_pretty(value)) for value in row))
    Console(file=stream, highlight=False).print(table)


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return escape(value) if isinstance(value, str) else repr(value) if isinstance(value, float) else str(value)


def _pretty(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}".replace(",", "\u202f")  # narrow no-break space
    return _plain(value)
