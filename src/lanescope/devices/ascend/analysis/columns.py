"""Columns that several reports have, and tables from rows."""

from __future__ import annotations

from typing import Any

from lanescope.trace import ColumnSpec, Table, TableSpec


def time_column(name: str, doc: str, *, nullable: bool = False) -> ColumnSpec:
    """Return a column of durations in nanoseconds."""
    return ColumnSpec(name, "int64", doc, unit="ns", nullable=nullable)


def share_column(doc: str, name: str = "share") -> ColumnSpec:
    """Return a column of fractions; NULL without a whole."""
    return ColumnSpec(name, "float64", doc, nullable=True, unit="1")


def table_of(spec: TableSpec, listed: list[dict[str, Any]]) -> Table:
    """Return rows as a table; their numbers become ``id``."""
    rows = [{"id": number, **row} for number, row in enumerate(listed)]
    return Table.from_arrays(spec, {name: [row[name] for row in rows] for name in spec.names})
