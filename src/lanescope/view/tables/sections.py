"""Tables of sections that measure different things: times of calls, sizes of what is moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lanescope.view.tables.cells import Measured
from lanescope.view.tables.columns import Col, column

#: Name of the column that names the section, and those whose unit it decides.
_SECTION, _MEASURED = "section", ("total", "average", "min", "max")
#: What sections sum if not times in ns: kind of the values, and their unit.
_SIZES = {"traffic": ("bytes", "bytes")}


def in_units(columns: Sequence[Col], rows: Iterable[Sequence[Any]]) -> tuple[list[Col], Iterator[list[Any]]]:
    """Return the columns and rows of such a table for people: each value with the unit of its section."""
    at = next(place for place, each in enumerate(columns) if each.key == _SECTION)
    measured = {place for place, each in enumerate(columns) if each.key in _MEASURED}

    def shown() -> Iterator[list[Any]]:
        for row in rows:
            kind = _SIZES.get(row[at], ("duration", ""))[0]
            yield [Measured(value, kind) if place in measured else value for place, value in enumerate(row)]

    return [column(each.key, "count") if each.key in _MEASURED else each for each in columns], shown()


def with_unit(columns: Sequence[Col], rows: Iterable[Sequence[Any]]) -> tuple[list[Col], Iterator[list[Any]]]:
    """Return them for programs: with a column that names the unit of each row."""
    at = next(place for place, each in enumerate(columns) if each.key == _SECTION)

    def told() -> Iterator[list[Any]]:
        for row in rows:
            yield [*row[: at + 1], _SIZES.get(row[at], ("", "ns"))[1], *row[at + 1 :]]

    return [*columns[: at + 1], column("unit", "plain"), *columns[at + 1 :]], told()
