"""Rows of a trace as text, one per line in order of time, to debug decoders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from lanescope.trace import Flag, Table, Trace

#: What is shown of the rows of each table, besides their time and their lane.
_FIELDS = {
    "slices": ("dur", "name", "category", "last_known_ts", "quality", "flags"),
    "instants": ("name", "category", "quality", "flags"),
    "counters": ("value",),
    "flows": ("kind", "dst_ts"),
    "gaps": ("dur", "cause", "lost_count", "first_offset"),
}
#: Rows that are made into text at a time: who looks at the first few does not wait for all.
_BLOCK = 4096


def row_lines(trace: Trace) -> Iterator[str]:
    """Yield a line for each slice, instant, sample, flow and gap: time, what it is, lane, fields; then for each stat.

    Fields are those of the row that say something, and those columns of the family's detail tables that go with the
    event into viewers. What begins at the same time comes in the order of these words, then as it was decoded.
    """
    tables = {name: trace.tables()[name] for name in _FIELDS}
    details = [(table, *_by_key(table)) for table in trace.details.values() if _arguments(table)]
    lanes = _lane_names(trace)
    times = [table.values("src_ts" if name == "flows" else "ts") for name, table in tables.items()]
    order = np.argsort(np.concatenate(times), kind="stable")
    first = np.cumsum([0, *(len(table) for table in tables.values())])
    for begin in range(0, len(order), _BLOCK):
        block = order[begin : begin + _BLOCK]
        lines = [""] * len(block)
        for number, (name, table) in enumerate(tables.items()):
            mine = np.flatnonzero((block >= first[number]) & (block < first[number + 1]))
            taken = table.take(block[mine] - first[number])
            more = _details(f"{name[:-1]}_id", taken, details)
            for at, row, further in zip(mine.tolist(), taken.rows(), more, strict=True):
                lines[at] = _line(name, row, further, lanes)
        yield from lines
    for row in trace.stats.rows():
        where = {name: row[name] for name in ("first_offset", "first_ts") if row[name] is not None}
        text = " ".join(f"{name}={value}" for name, value in ({"count": row["count"]} | where).items())
        yield f"stat  {row['name']}  {row['severity']}  {text}"


def _line(name: str, row: Mapping[str, Any], further: Mapping[str, Any], lanes: list[str]) -> str:
    if name == "flows":
        time, lane = row["src_ts"], f"{lanes[row['src_track_id']]} -> {lanes[row['dst_track_id']]}"
    else:
        time, lane = row["ts"], lanes[row["track_id"]]
    fields = {**{field: row[field] for field in _FIELDS[name]}, **further}
    if "flags" in fields:
        fields["flags"] = "+".join(str(flag.name).lower() for flag in Flag if flag & row["flags"])
    if fields.get("quality") == "exact":
        del fields["quality"]
    text = " ".join(f"{field}={value}" for field, value in fields.items() if value is not None and value != "")
    return f"{time}  {name[:-1]}  {lane}  {text}"


def _arguments(table: Table) -> list[str]:
    return [column.name for column in table.spec.columns if column.is_argument and table.spec.key]


def _by_key(table: Table) -> tuple[Any, Any]:
    """Return the order of a detail table's rows by key, and the keys in that order."""
    keys = table.values(table.spec.key)
    order = np.argsort(keys, kind="stable")
    return order, keys[order]


def _details(key: str, rows: Table, details: list[tuple[Table, Any, Any]]) -> list[dict[str, Any]]:
    """Return for each row what the detail tables of this key say of it."""
    found: list[dict[str, Any]] = [{} for _ in range(len(rows))]
    if "id" not in rows.spec.names:
        return found
    ids = rows.values("id")
    for table, order, keys in details:
        if table.spec.key != key or not len(keys):
            continue
        at = np.minimum(np.searchsorted(keys, ids), len(keys) - 1)
        has = np.flatnonzero(keys[at] == ids)
        names = _arguments(table)
        for target, row in zip(has.tolist(), table.take(order[at[has]]).rows(), strict=True):
            found[target] |= {name: row[name] for name in names}
    return found


def _lane_names(trace: Trace) -> list[str]:
    names = trace.tracks.values("name").tolist()
    parents, has_parent = trace.tracks.values("parent_id").tolist(), trace.tracks.valid("parent_id").tolist()
    return [f"{names[parents[i]]} / {name}" if has_parent[i] else name for i, name in enumerate(names)]
