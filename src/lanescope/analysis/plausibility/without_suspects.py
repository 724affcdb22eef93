"""A trace without the rows that LS501 suspects, and what they make of the times in a table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from lanescope.analysis.plausibility.attested import Attested
from lanescope.common.intervals import Ints
from lanescope.trace import Column, Table, Trace
from lanescope.trace.column import Mask

#: From this change on a total is worth a line.
WORTH_TELLING = 0.01
#: Columns of times that are no totals: of single slices, or points in time.
_NO_TOTAL = re.compile(r"(min|max|mean|median|longest|p\d+|first|last|loop)(_|$)")


class Change(NamedTuple):
    """A total that differs by more than 1 % without the suspect rows.

    Attributes:
        row: texts and numbers by which the row of the table is known, by column.
        column: the column.
        total: with all rows.
        without: without the suspect ones; None if the row of the table is gone.
    """

    row: dict[str, Any]
    column: str
    total: int
    without: int | None


def without_suspects(trace: Trace, attested: Attested) -> Trace:
    """Return the trace without the slices and instants that are not attested; time beyond the window is left out.

    Slices have other ids, and what refers to them follows; references to slices that are gone are NULL.
    """
    window = attested.window
    if window is None:
        return trace
    keep = {name: np.ones(len(trace.tables()[name]), np.bool_) for name in ("slices", "instants")}
    keep["slices"][attested.rows] = False
    keep["instants"] = _within(trace.instants, window)
    new = {name: np.where(kept, np.cumsum(kept) - 1, -1) for name, kept in keep.items()}
    core: dict[str, Table] = {}
    for name, table in trace.tables().items():
        if name in keep:
            table = _renumbered(table.where(keep[name]))
        elif name == "counters":
            table = _renumbered(table.where(_within(table, window)))
        elif name in ("coverage", "gaps"):
            table = _renumbered(_clipped(table, window))
        else:
            table = _referring(table, new)
        core[name] = table
    details = {name: core.pop(name) for name in trace.details}
    return Trace(trace.time, core, details, trace.records)


def changes(table: Table, other: Table, unit: str) -> list[Change]:
    """Return the totals of a table that are others in one of the same kind by more than 1 %, row by row.

    Args:
        table: with all rows.
        other: without the suspect ones.
        unit: time unit of the trace.
    """
    totals = [
        spec.name
        for spec in table.spec.columns
        if spec.unit == unit and spec.type == "int64" and not spec.is_time and not _NO_TOTAL.match(spec.name)
    ]
    columns = [spec for spec in table.spec.columns if spec.name != "id"]
    keys = [spec.name for spec in takewhile(lambda spec: spec.type in ("text", "utf8") or spec.references, columns)]
    rest = {_key(row, keys): row for row in other.rows()}
    found = []
    for row in table.rows():
        left = rest.get(_key(row, keys))
        for name in totals:
            total, without = row[name] or 0, None if left is None else left[name] or 0
            if abs(total - (without or 0)) > WORTH_TELLING * max(abs(total), abs(without or 0)):
                found.append(Change({key: row[key] for key in keys}, name, total, without))
    return found


def left_out(table: Table) -> list[Change]:
    """Return the changes of a table that leaves suspect rows out of its column ``busy``, with their time in another.

    Args:
        table: with columns ``busy`` and ``suspect``.
    """
    columns = [spec for spec in table.spec.columns if spec.name != "id"]
    keys = [spec.name for spec in takewhile(lambda spec: spec.type in ("text", "utf8") or spec.references, columns)]
    return [
        Change({key: row[key] for key in keys}, "busy", row["busy"] + row["suspect"], row["busy"])
        for row in table.rows()
        if row["suspect"] > WORTH_TELLING * (row["busy"] + row["suspect"])
    ]


def _key(row: dict[str, Any], keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[key] for key in keys)


def _within(table: Table, window: tuple[int, int]) -> Mask:
    """Return which rows are in a window, bool [n]."""
    ts = table.values("ts")
    found: Mask = (ts >= window[0]) & (ts <= window[1])
    return found


def _renumbered(table: Table) -> Table:
    """Return the table with dense ids."""
    if "id" not in table.spec.names:
        return table
    return _with(table, {"id": Column.array(np.arange(len(table)))})


def _with(table: Table, columns: dict[str, Column]) -> Table:
    return Table(table.spec, {name: columns.get(name, table.column(name)) for name in table.spec.names})


def _clipped(table: Table, window: tuple[int, int]) -> Table:
    """Return what of gaps or coverage lies in a window."""
    ts, dur = table.values("ts"), np.maximum(table.values("dur"), 0)
    start, end = np.clip(ts, *window), np.clip(ts + dur, *window)
    valid = table.column("dur").valid
    length = np.where(table.valid("dur"), end - start, 0)
    clipped = _with(table, {"ts": Column.array(start), "dur": Column.array(length, valid=valid)})
    return clipped.where((ts <= window[1]) & (ts + dur >= window[0]))


def _referring(table: Table, new: Mapping[str, Ints]) -> Table:
    """Return a table whose references to rows are the new ids of those; rows whose key is gone are gone."""
    names = [spec.name for spec in table.spec.columns if spec.references in new]
    if not names or not len(table):
        return table
    columns = {}
    keep = np.ones(len(table), np.bool_)
    for name in names:
        # One more for references to nothing.
        ids, moved_to = table.values(name), np.append(new[table.spec.column(name).references], -1)
        is_known = (ids >= 0) & (ids < len(moved_to)) & table.valid(name)
        moved = moved_to[np.where(is_known, ids, -1)]
        if table.spec.column(name).nullable:
            columns[name] = Column.array(np.maximum(moved, 0), valid=moved >= 0)
        else:
            keep &= moved >= 0
            columns[name] = Column.array(moved)
    return _with(table, columns).where(keep)
