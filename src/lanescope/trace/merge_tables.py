"""Tables of merged traces: ids and references counted on, times shifted, a group for each capture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from lanescope.errors import InternalError
from lanescope.trace.column import Column
from lanescope.trace.schema import Flag
from lanescope.trace.stats import CORE_STATS
from lanescope.trace.table import Table
from lanescope.trace.trace import Records, Trace

#: Role of the group that holds the tracks of one capture in a merged trace.
RUN_ROLE = "run"
#: Stat of the captures that are on another time axis than the first one.
UNALIGNED = "unaligned_capture"
#: Stat of the captures that are placed by the kernels around their launches.
PLACED = "kernel_placed_capture"


def moved(table: Table, offsets: dict[str, int], shift: int) -> Table:
    """Return ``table`` with its ids and references counted on and its times shifted, as its columns declare it."""
    columns = {}
    for spec in table.spec.columns:
        column = table.column(spec.name)
        if spec.is_time:
            column = _plus(column, shift)
        elif spec.references:
            if spec.references not in offsets:
                where = f"column {table.spec.name}.{spec.name}"
                raise InternalError(f"{where} references table {spec.references}, which the trace does not have")
            column = _plus(column, offsets[spec.references])
        elif spec.name == "id" and not table.spec.key:  # what a detail table calls so is the device's number
            column = _plus(column, offsets.get(table.spec.name, 0))
        columns[spec.name] = column
    return Table(table.spec, columns)


def doubted(table: Table) -> Table:
    """Return ``table`` with the flag of an ambiguous place on all rows."""
    columns = {name: table.column(name) for name in table.spec.names}
    flags, doubt = columns["flags"], np.uint32(Flag.WRAP_AMBIGUOUS)
    if flags.constant_value is not None:
        columns["flags"] = Column.constant(np.uint32(flags.constant_value) | doubt, len(flags), np.uint32)
    else:
        columns["flags"] = Column.derived(len(flags), lambda: flags.values | doubt)
    return Table(table.spec, columns)


def _plus(column: Column, delta: int) -> Column:
    """Return a column of ``values + delta``, made when it is read; nulls stay 0."""
    valid = column.valid
    if not delta or (valid is not None and not valid.any()):
        return column
    if column.constant_value is not None and valid is None:
        return Column.constant(column.constant_value + delta, len(column), np.int64)
    if valid is None:
        return Column.derived(len(column), lambda: column.values + delta)
    return Column.derived(len(column), lambda: np.where(valid, column.values + delta, 0), valid=valid)


def record_maker(part: Trace, name: str, offsets: dict[str, int], shift: int) -> Callable[[], Table]:
    """Return what makes raw records of a part, moved as its tables are."""
    return lambda: moved(part.records[name], offsets, shift)


def joined(makers: Sequence[Callable[[], Table]]) -> Callable[[], Table]:
    """Return what makes one table of several."""
    return lambda: Table.concat([make() for make in makers])


def is_merged(trace: Trace) -> bool:
    """Return whether all roots of a trace are groups of captures."""
    tracks = trace.tracks
    roots = ~tracks.valid("parent_id")
    return bool(roots.any()) and bool((tracks.values("role")[roots] == RUN_ROLE).all())


def grouped(trace: Trace) -> Trace:
    """Return ``trace`` with one more group, of id 0, above all its roots."""
    tracks = trace.tracks
    mains = [row for row in trace.inputs.rows() if row["role"] == "main"]
    group = Table.from_arrays(
        tracks.spec,
        {
            "id": [0],
            "parent_id": [None],
            "input_id": [mains[0]["id"] if mains else None],
            "kind": ["group"],
            "role": [RUN_ROLE],
            "name": [mains[0]["capture"] if mains else RUN_ROLE],
            "sort_key": [0],
            "nesting": ["disjoint"],
            "clock_id": [None],
            "unit": [""],
        },
    )
    one_more = {**dict.fromkeys(trace.tables(), 0), "tracks": 1}
    tables = {name: moved(table, one_more, 0) for name, table in trace.tables().items()}
    below = tables["tracks"]
    columns = {name: below.column(name) for name in below.spec.names}
    columns["parent_id"] = Column.array(np.where(below.valid("parent_id"), below.values("parent_id"), 0))
    tables["tracks"] = Table.concat([group, Table(below.spec, columns)])
    makers = {name: record_maker(trace, name, one_more, 0) for name in trace.records}
    return Trace(trace.time, tables, {name: tables[name] for name in trace.details}, Records(makers))


def _with_suffix(part: Trace, suffix: str) -> dict[str, Table]:
    """Return the tables of ``part`` with a text behind the names of its groups."""
    tables = dict(part.tables())
    tracks = tables["tracks"]
    columns = {name: tracks.column(name) for name in tracks.spec.names}
    names = tracks.values("name").copy()
    for root in np.flatnonzero(~tracks.valid("parent_id")).tolist():
        names[root] = f"{names[root]} ({suffix})"
    tables["tracks"] = Table(tracks.spec, {**columns, "name": Column.array(names)})
    return tables


def placed_by_clock(part: Trace, clock: str, error_ns: int | None) -> Trace:
    """Return ``part`` with its clock and the error of its place in the names of its groups, if there is an error."""
    if error_ns == 0:
        return part
    error = "unknown error" if error_ns is None else f"±{error_ns:,} ns"
    tables = _with_suffix(part, f"clock {clock}, {error}")
    return Trace(part.time, tables, {name: tables[name] for name in part.details}, part.records)


def with_placement_error(part: Trace, error_ns: int | None) -> Trace:
    """Return ``part`` with the error of its place counted for each of its captures; None: it is not known."""
    if error_ns == 0:
        return part
    tables = dict(part.tables())
    for main in [row["id"] for row in part.inputs.rows() if row["role"] == "main"]:
        name = "unknown_placement" if error_ns is None else "placement_error"
        tables["stats"] = counted(tables["stats"], name, error_ns or 1, input_id=main)
    return Trace(part.time, tables, {name: tables[name] for name in part.details}, part.records)


def on_axis(part: Trace, axis: int) -> Trace:
    """Return ``part`` with the number of its time axis in the names of its groups, and counted if that is not 0."""
    tables = _with_suffix(part, f"time axis {axis + 1}")
    if axis:
        tables["stats"] = _counted(part, UNALIGNED)
    return Trace(part.time, tables, {name: tables[name] for name in part.details}, part.records)


def contained(part: Trace, name: str) -> Trace:
    """Return ``part``, which lies inside of another trace, with its first group named ``name``, and counted."""
    tables = dict(part.tables())
    tracks = tables["tracks"]
    names = tracks.values("name").copy()
    names[np.flatnonzero(~tracks.valid("parent_id"))[0]] = name
    columns = {each: tracks.column(each) for each in tracks.spec.names}
    tables["tracks"] = Table(tracks.spec, {**columns, "name": Column.array(names)})
    tables["stats"] = _counted(part, PLACED)
    return Trace(part.time, tables, {name: tables[name] for name in part.details}, part.records)


def put_inside(
    tables: dict[str, Table],
    outer: dict[str, int],
    inner: dict[str, int],
    track: int,
    causes: npt.NDArray[np.int64],
    effects: npt.NDArray[np.int64],
) -> dict[str, Table]:
    """Return the tracks and flows of merged traces of which one lies inside of another.

    Args:
        tables: of the merged trace.
        outer: what was added to the ids of the trace that contains the other, by table.
        inner: what was added to those of the other; its first group is the track before its own.
        track: lane of the outer trace behind which the other's tracks are put.
        causes: slices of the outer trace, int64 [n].
        effects: slices of the inner one, int64 [n], one for each.
    """
    tracks, slices, flows = tables["tracks"], tables["slices"], tables["flows"]
    lane, group = track + outer["tracks"], inner["tracks"] - 1
    order = tracks.values("sort_key").copy()
    above = tracks.values("parent_id").copy()
    above[group], order[group] = above[lane], order[lane]
    known = tracks.valid("parent_id").copy()
    known[group] = True
    columns = {name: tracks.column(name) for name in tracks.spec.names}
    columns["parent_id"], columns["sort_key"] = Column.array(above, valid=known), Column.array(order)
    src, dst = causes + outer["slices"], effects + inner["slices"]
    arrows = Table.from_arrays(
        flows.spec,
        {
            "id": np.arange(len(flows), len(flows) + len(src)),
            "kind": ["dispatch"] * len(src),
            "src_track_id": slices.values("track_id")[src],
            "src_ts": slices.values("ts")[src],
            "dst_track_id": slices.values("track_id")[dst],
            "dst_ts": slices.values("ts")[dst],
            "src_slice_id": src,
            "dst_slice_id": dst,
        },
    )
    return {"tracks": Table(tracks.spec, columns), "flows": Table.concat([flows, arrows])}


def _counted(part: Trace, stat: str) -> Table:
    """Return the stats of a trace with one more, counted once."""
    main = next((row["id"] for row in part.inputs.rows() if row["role"] == "main"), None)
    return counted(part.stats, stat, 1, input_id=main)


def counted(stats: Table, stat: str, count: int, *, input_id: int | None = None, track_id: int | None = None) -> Table:
    """Return stats with one more of those that any family may count."""
    spec = next(spec for spec in CORE_STATS if spec.name == stat)
    row = {"id": len(stats), "input_id": input_id, "track_id": track_id, "count": count}
    row |= {"first_offset": None, "first_ts": 0}
    row |= {
        name: getattr(spec, name) for name in ("name", "counted", "severity", "rule", "finding_severity", "share_of")
    }
    return Table.concat([stats, Table.from_arrays(stats.spec, {name: [at] for name, at in row.items()})])


def distinct_runs(tracks: Table) -> Table:
    """Number the groups of the captures in order, and tell those of one name apart."""
    names, order = tracks.values("name").copy(), tracks.values("sort_key").copy()
    taken: set[str] = set()
    for ordinal, root in enumerate(np.flatnonzero(~tracks.valid("parent_id")).tolist()):
        names[root] = next(name for name in _variants(names[root]) if name not in taken)
        order[root] = ordinal
        taken.add(names[root])
    columns = {name: tracks.column(name) for name in tracks.spec.names}
    columns["name"], columns["sort_key"] = Column.array(names), Column.array(order)
    return Table(tracks.spec, columns)


def _variants(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name} ({number})"
        number += 1
