"""The part of a folder of Parquet files that is near a window."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.errors import InputError
from lanescope.io import connected, require_duckdb_memory
from lanescope.io.parquet import CORE_NAMES, SCAN, cannot_read, declared, read_folder, read_table
from lanescope.trace import Table, Trace

if TYPE_CHECKING:
    import duckdb

Ints = npt.NDArray[np.int64]


class LeftOut(NamedTuple):
    """What was not read of a folder, and what a window has to know of it.

    Attributes:
        rows: how many slices and instants were not read.
        track: lanes without coverage, int64 [n].
        first: their first times, of all rows, int64 [n].
        last: their last times.
    """

    rows: int
    track: Ints
    first: Ints
    last: Ints


class ParquetFolder:
    """A folder that ``write`` made, read as a whole or in part.

    Attributes:
        time: the time base of the trace.

    Raises:
        InputError: the folder is not ours, or is of a later version.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._folder = Path(path)
        self.time, self._specs, self._counts = declared(self._folder)

    def table(self, name: str) -> Table:
        """Return one table.

        Raises:
            InputError: a file is missing or broken.
        """
        return read_folder(self._folder / name, self._specs[name], self._counts[name])

    def span(self) -> tuple[int, int] | None:
        """Return the first and the last time of any row; None without rows. Errors as ``table``."""
        found = []
        with self._connected() as connection:
            for name in ("slices", "instants", "counters", "coverage", "gaps"):
                if not self._counts.get(name):
                    continue
                columns = self._specs[name].names
                end = "max(ts + coalesce(dur, 0))" if "dur" in columns else "max(ts)"
                if "last_known_ts" in columns:
                    end = f"greatest({end}, max(coalesce(last_known_ts, 0)))"
                found.append(self._query(connection, name, f"select min(ts), {end} from {SCAN}").fetchall()[0])
        if not found:
            return None
        return min(int(begin) for begin, _ in found), max(int(end) for _, end in found)

    def between(self, begin: int | None, end: int | None) -> tuple[Trace, LeftOut]:
        """Return the rows that may have a part in ``[begin, end)``, by their old ids, and what was left out.

        Files are searched by the times of slices, instants, flows and samples; details come with their slices. Other
        tables are read as a whole.

        Args:
            begin: first moment; None: from the first row on.
            end: first moment after it; None: up to the last.

        Raises:
            InputError: a file is missing or broken.
        """
        after = "" if begin is None else f"(ts >= {begin} or dur is null or ts::hugeint + dur > {begin})"
        before = "" if end is None else f"ts < {end}"
        near = [
            " and ".join([f"{side}_ts >= {begin}"] * (begin is not None) + [f"{side}_ts <= {end}"] * (end is not None))
            for side in ("src", "dst")
        ]
        conditions = {
            "slices": _all_of(before, after),
            "instants": _all_of(before, "" if begin is None else f"ts >= {begin}"),
            "flows": f"({near[0]}) or ({near[1]})",
            "counters": before,
        }
        tables: dict[str, Table] = {}
        with self._connected() as connection:
            for name, spec in self._specs.items():
                where = conditions.get(name, "") if self._counts[name] else ""
                if where and name in _REFERRED:
                    self._query(
                        connection, name, f"create temp table kept_{name} as select id from {SCAN} where {where}"
                    )
                is_joined = name not in CORE_NAMES
                if is_joined:
                    kept = [
                        f"({column.name} is null or {column.name} in (select id from kept_{column.references}))"
                        for column in spec.columns
                        if (column.name == spec.key or not column.nullable)
                        and conditions.get(column.references)
                        and self._counts.get(column.references)
                        and column.references in _REFERRED
                    ]
                    where = _all_of(*kept)
                tables[name] = self._some(connection, name, where, is_joined=is_joined)
            left_out = sum(
                self._counts[name] - len(tables[name]) for name in ("slices", "instants") if name in self._specs
            )
            bare = _without_coverage(tables["tracks"], tables["coverage"])
            hulls = self._hulls(connection, bare)
        return self._trace(tables), LeftOut(left_out, *hulls)

    def _trace(self, tables: dict[str, Table]) -> Trace:
        return Trace(self.time, tables, {name: table for name, table in tables.items() if name not in CORE_NAMES})

    @contextmanager
    def _connected(self) -> Iterator[duckdb.DuckDBPyConnection]:
        require_duckdb_memory()

        with connected() as connection:
            yield connection

    def _parts(self, name: str) -> list[str]:
        return [str(part) for part in sorted((self._folder / name).glob("part-*.parquet"))]

    def _query(self, connection: duckdb.DuckDBPyConnection, name: str, query: str) -> duckdb.DuckDBPyConnection:
        import duckdb

        try:
            return connection.execute(query, [self._parts(name)])
        except duckdb.Error as error:
            raise cannot_read(str(self._folder / name), error) from None

    def _some(self, connection: duckdb.DuckDBPyConnection, name: str, where: str, *, is_joined: bool) -> Table:
        """Return the rows of a table that meet a condition, all without one."""
        spec, rows, folder = self._specs[name], self._counts[name], str(self._folder / name)
        parts = self._parts(name)
        if not parts and not rows:
            return Table.empty(spec)
        if where:
            (there,) = self._query(connection, name, f"select count(*) from {SCAN}").fetchall()[0]
            if there != rows:
                raise InputError(f"{folder}: expected {rows} rows, found {there}", hint="write the dataset again")
        return read_table(
            connection, spec, None if where else rows, parts, folder, where, is_joined=is_joined and bool(where)
        )

    def _hulls(self, connection: duckdb.DuckDBPyConnection, lanes: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the lanes that have slices or instants, and their first and last times, int64 [n] each."""
        found: list[tuple[int, int, int]] = []
        for name, until in (("slices", _UNTIL), ("instants", "ts")):
            if not len(lanes) or not self._counts.get(name):
                continue
            connection.execute(f"create or replace temp table bare as select unnest({lanes.tolist()}) as track_id")
            query = f"select track_id, min(ts), max({until})::bigint from {SCAN} join bare using (track_id) group by 1"
            found += self._query(connection, name, query).fetchall()
        track, first, last = np.array(found, np.int64).reshape(-1, 3).T
        return track, first, last


#: Tables whose rows details refer to.
_REFERRED = ("slices", "instants", "flows")
#: Up to when a slice is known to have run, as ``common.intervals.known_extents`` has it.
_UNTIL = (
    "case when dur is null then greatest(coalesce(last_known_ts, ts), ts) "
    f"else least(ts::hugeint + greatest(dur, 0), {(1 << 63) - 1}) end"
)


def _all_of(*conditions: str) -> str:
    return " and ".join(condition for condition in conditions if condition)


def _without_coverage(tracks: Table, coverage: Table) -> Ints:
    """Return the lanes that have no coverage, and no group above them has, int64 [n]."""
    parents = np.where(tracks.valid("parent_id"), tracks.values("parent_id"), -1).tolist()
    covered = set(coverage.values("track_id").tolist())
    bare = []
    for lane in np.flatnonzero(tracks.values("kind") == "lane").tolist():
        above = lane
        while above >= 0 and above not in covered:
            above = parents[above]
        if above < 0:
            bare.append(lane)
    return np.array(bare, np.int64)
