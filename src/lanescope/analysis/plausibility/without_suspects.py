"""A trace without the rows that plausibility rules suspect, and what they make of the times in a table."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lanescope.analysis.plausibility.layer import Plausibility
from lanescope.analysis.plausibility.profile import WORTH_TELLING
from lanescope.analysis.plausibility.suspicion import Suspects
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Intervals, Ints, hulls, known_extents, subtract, union
from lanescope.trace import Column, Table, Trace
from lanescope.trace.column import Mask
from lanescope.trace.schema import GAPS

if TYPE_CHECKING:
    from lanescope.analysis.plausibility.thresholds import Thresholds

#: Columns of times that are no totals: of single slices, or points in time.
_NO_TOTAL = re.compile(r"(min|max|mean|median|longest|p\d+|first|last|loop)(_|$)")


class Change(NamedTuple):
    """A total that differs by more than 1 % without the suspect rows.

    Attributes:
        rules: codes of the rules that suspect the rows.
        row: texts and numbers by which the row of the table is known, by column.
        column: the column.
        total: with all rows.
        without: without the suspect ones; None if the row of the table is gone.
        slices: how many slices of the row are suspect; None where that is not counted.
    """

    rules: tuple[str, ...]
    row: dict[str, Any]
    column: str
    total: int
    without: int | None
    slices: int | None = None


class SuspectRows(NamedTuple):
    """Rows of a whole trace that plausibility rules suspect.

    Attributes:
        rules: codes of the rules.
        slices: bool [slices], which are suspect.
        instants: bool [instants].
        far: bool [slices], those that LS501 suspects.
        window: first and last timestamp that LS501 does not suspect; None if it suspects none.
    """

    rules: tuple[str, ...]
    slices: Mask
    instants: Mask
    far: Mask
    window: tuple[int, int] | None


def suspect_rows(
    trace: Trace, thresholds: Thresholds | None = None, codes: Collection[str] | None = None
) -> list[SuspectRows]:
    """Return what each rule suspects in a whole trace, then all of them together where they are several.

    Args:
        trace: the trace.
        thresholds: of the rules; None: the defaults.
        codes: rules that count; None: all.
    """
    plausibility = Plausibility.of_trace(trace, thresholds)
    suspects = Suspects(plausibility.suspicions, plausibility.profile, codes)
    slices, instants = (
        suspects.among(name, np.arange(len(table)), table)
        for name, table in (("slices", trace.slices), ("instants", trace.instants))
    )
    found = []
    for rules, bits in suspects.sets(distinct(np.concatenate([slices, instants])).tolist()):
        is_far = "LS501" in rules
        far = (slices & 1 << suspects.codes.index("LS501") if is_far else np.zeros_like(slices)) != 0
        window = plausibility.window if is_far else None
        found.append(SuspectRows(rules, slices & bits != 0, instants & bits != 0, far, window))
    return found


def without_suspects(trace: Trace, suspect: SuspectRows) -> Trace:
    """Return the trace without suspect slices and instants; time beyond the window of LS501 is left out.

    Time that only other suspect slices cover is a gap: a lane whose slices are wrong was not idle. Slices have other
    ids, and what refers to them follows; references to slices that are gone are NULL.
    """
    window = suspect.window
    keep = {"slices": ~suspect.slices, "instants": ~suspect.instants}
    if window is not None:
        keep["instants"] &= _within(trace.instants, window)
    new = {name: np.where(kept, np.cumsum(kept) - 1, -1) for name, kept in keep.items()}
    core: dict[str, Table] = {}
    for name, table in trace.tables().items():
        if name in keep:
            table = table.where(keep[name]).numbered()
        elif name == "counters" and window is not None:
            table = table.where(_within(table, window)).numbered()
        elif name in ("coverage", "gaps") and window is not None:
            table = _clipped(table, window)
        else:
            table = _referring(table, new)
        core[name] = table
    core["gaps"] = Table.concat([core["gaps"], _gaps(trace, suspect)]).numbered()
    core["coverage"] = core["coverage"].numbered()
    details = {name: core.pop(name) for name in trace.details}
    return Trace(trace.time, core, details, trace.records)


def _gaps(trace: Trace, suspect: SuspectRows) -> Table:
    """Return the time that only suspect slices cover as gaps, but for those that LS501 suspects.

    Lanes all of whose slices are suspect are unknown from their first start to their last end.
    """
    extents, wrong = known_extents(trace.slices), suspect.slices & ~suspect.far
    wrong &= (extents.group >= 0) & (extents.group < len(trace.tracks))
    group, begin, end = subtract(union(extents.take(wrong)), union(extents.take(~suspect.slices)))
    lanes = distinct(extents.group[wrong])
    lanes = lanes[~np.isin(lanes, extents.group[~wrong])]
    mine = np.isin(group, lanes)
    if mine.any():
        first, last = hulls(Intervals(group[mine], begin[mine], end[mine]), int(lanes[-1]) + 1)
        group = np.concatenate([group[~mine], lanes])
        begin, end = np.concatenate([begin[~mine], first[lanes]]), np.concatenate([end[~mine], last[lanes]])
    columns = {"id": range(len(group)), "track_id": group, "ts": begin, "dur": end - begin}
    unknown = dict.fromkeys(("lost_count", "input_id", "first_offset"), [None] * len(group))
    return Table.from_arrays(GAPS, {**columns, **unknown, "cause": ["suspect"] * len(group)})


def changes(table: Table, other: Table, unit: str, rules: tuple[str, ...]) -> list[Change]:
    """Return the totals of a table that are others in one of the same kind by more than 1 %, row by row.

    Args:
        table: with all rows.
        other: without the suspect ones.
        unit: time unit of the trace.
        rules: codes of the rules that suspect them.
    """
    totals = [
        spec.name
        for spec in table.spec.columns
        if spec.unit == unit and spec.type == "int64" and not spec.is_time and not _NO_TOTAL.match(spec.name)
    ]
    keys = _keys(table)
    rest = {_key(row, keys): row for row in other.rows()}
    found = []
    for row in table.rows():
        left = rest.get(_key(row, keys))
        for name in totals:
            total, without = row[name] or 0, None if left is None else left[name] or 0
            if abs(total - (without or 0)) > WORTH_TELLING * max(abs(total), abs(without or 0)):
                found.append(Change(rules, {key: row[key] for key in keys}, name, total, without))
    return found


def busy_changes(table: Table, other: Table, rules: tuple[str, ...]) -> list[Change]:
    """Return the changes of ``busy`` of a table that has the time of what LS501 suspects in ``suspect`` instead.

    Args:
        table: with columns ``busy`` and ``suspect``, of the whole trace.
        other: one of the trace without the rows that ``rules`` suspect.
        rules: codes.
    """
    keys = _keys(table)
    rest = {_key(row, keys): row["busy"] for row in other.rows()}
    found = []
    for row in table.rows():
        total = row["busy"] + (row["suspect"] if "LS501" in rules else 0)
        without = rest.get(_key(row, keys))
        if total - (without or 0) > WORTH_TELLING * total:
            found.append(Change(rules, {key: row[key] for key in keys}, "busy", total, without))
    return found


def _keys(table: Table) -> list[str]:
    """Return the first columns, up to the first that is neither a text nor a reference."""
    columns = [spec for spec in table.spec.columns if spec.name != "id"]
    return [spec.name for spec in takewhile(lambda spec: spec.type in ("text", "utf8") or spec.references, columns)]


def _key(row: dict[str, Any], keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[key] for key in keys)


def _within(table: Table, window: tuple[int, int]) -> Mask:
    """Return which rows are in a window, bool [n]."""
    ts = table.values("ts")
    found: Mask = (ts >= window[0]) & (ts <= window[1])
    return found


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
