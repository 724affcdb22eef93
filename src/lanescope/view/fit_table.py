"""Make a table fit the width of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lanescope.view.table_output import pretty

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


def blocks(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int
) -> list[tuple[list[str], list[list[Any]]]]:
    """Return a table in parts with some of its columns each, so that no part is wider than a line and no cell folds.

    Args:
        columns: names; the leading ones whose values are texts tell rows apart and are in each part. One without a name
            is a drawing of others: it is left out of a table that does not fit.
        rows: values, [rows][columns].
        width: characters of a line.
    """
    if _width(columns, rows) <= width or not rows:
        return [(list(columns), [list(row) for row in rows])]
    named = [at for at, name in enumerate(columns) if name or at == 0]
    is_text = [all(isinstance(row[at], str) for row in rows) for at in named]
    lead = named[: max(is_text.index(False) if False in is_text else 1, 1)]
    if _width([columns[at] for at in lead], [[row[at] for at in lead] for row in rows]) > width // 2:
        lead = named[:1]

    def part(places: Sequence[int]) -> tuple[list[str], list[list[Any]]]:
        return [columns[at] for at in places], [[row[at] for at in places] for row in rows]

    found, places = [], list(lead)
    for at in (at for at in named if at not in lead):
        if len(places) > len(lead) and _width(*part([*places, at])) > width:
            found.append(part(places))
            places = list(lead)
        places.append(at)
    return [*found, part(places)]


def _width(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
    cells = [max([len(name), *(_length(row[at]) for row in rows)]) for at, name in enumerate(names)]
    return sum(cells) + _BETWEEN * len(cells)


def _length(value: Any) -> int:
    return len(pretty(value, ","))
