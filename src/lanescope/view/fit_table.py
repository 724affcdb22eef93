"""Make a table fit the width of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: Characters between columns.
_BETWEEN = 3
#: Rows of a table that becomes one column each, at most.
_ROWS = 6


def fitted(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int
) -> tuple[list[str], list[list[Any]], list[str]]:
    """Return a table that is too wide without columns that are 0 or empty in all rows, and turned if still too wide.

    Args:
        columns: names; the first tells rows apart and stays.
        rows: values, [rows][columns].
        width: characters of a line.

    Returns:
        Columns and rows, and names of columns left out. A turned table has a row per column, if it has few rows.
    """
    names, values = list(columns), [list(row) for row in rows]
    left_out: list[str] = []
    if _width(names, values) > width:
        kept = [at for at, name in enumerate(names) if at == 0 or any(row[at] not in (0, None, "") for row in values)]
        left_out = [name for at, name in enumerate(names) if at not in kept and name]
        names, values = [names[at] for at in kept], [[row[at] for at in kept] for row in values]
    if _width(names, values) > width and 0 < len(values) <= _ROWS:
        turned = [[name, *(row[at] for row in values)] for at, name in enumerate(names) if at and name]
        names, values = ["", *(str(row[0]) for row in values)], turned
    return names, values, left_out


def _width(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
    cells = [max([len(name), *(_length(row[at]) for row in rows)]) for at, name in enumerate(names)]
    return sum(cells) + _BETWEEN * len(cells)


def _length(value: Any) -> int:
    if isinstance(value, float):
        return len(f"{value:.4g}")
    if isinstance(value, int):
        return len(f"{value:,}")
    return len(str(value or ""))
