"""A trace as a DuckDB database in memory: tables by their names, nothing else within reach of a query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lanescope.errors import LanescopeError, UsageError
from lanescope.io import connected, require_duckdb_memory
from lanescope.trace import ColumnSpec, LazyTable, Table, TableSpec, Trace

require_duckdb_memory()
import duckdb  # noqa: E402

Error = duckdb.Error


class _OnRequest:
    """Stands for a table in the database; makes it when a query reads it."""

    def __init__(self, lazy: LazyTable) -> None:
        self.name, self._lazy = lazy.spec.name, lazy
        self.is_registered = False
        self.refused: LanescopeError | None = None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        # DuckDB asks once for the columns when it learns the name: no rows are needed for that.
        source = self._lazy if self.is_registered else Table.empty(self._lazy.spec)
        try:
            return source.__arrow_c_stream__(requested_schema)
        except LanescopeError as error:
            self.refused = error  # DuckDB makes one of its own of it
            raise


@contextmanager
def connect(
    trace: Trace, views: Iterable[LazyTable] = (), *, is_repeatable: bool = False
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection on which every table of the trace is a view, read in place.

    Queries cannot reach files or the network. The connection is closed at the end of the block.

    Args:
        trace: the trace.
        views: further tables, each made when a query names it first; a table of the trace of the same name wins.
        is_repeatable: rows come in the same order each time, also where a query asks for none: with one thread.

    Raises:
        LanescopeError: a query reads a further table that cannot be made.

    Example:
        >>> from lanescope.trace import TimeBase, TraceBuilder
        >>> with connect(TraceBuilder(TimeBase()).finish()) as connection:
        ...     connection.execute("select count(*) from slices").fetchone()
        (0,)
    """
    with connected(enable_external_access=False) as connection:
        for name, table in trace.tables().items():
            connection.register(name, table)
        stand_ins = [_OnRequest(lazy) for lazy in views if lazy.spec.name not in trace.tables()]
        for stand_in in stand_ins:
            connection.register(stand_in.name, stand_in)
            stand_in.is_registered = True
        if is_repeatable:
            connection.execute("set threads = 1")
        connection.execute("set lock_configuration = true")
        try:
            yield connection
        except (duckdb.Error, UsageError):
            refused = next((each.refused for each in stand_ins if each.refused is not None), None)
            if refused is None:
                raise
            raise refused from None


#: Column types for those of DuckDB; all others are text.
_TYPES = {
    "BIGINT": "int64",
    "INTEGER": "int32",
    "SMALLINT": "int32",
    "TINYINT": "int32",
    "UBIGINT": "uint64",
    "UINTEGER": "uint32",
    "USMALLINT": "uint16",
    "UTINYINT": "uint8",
    "DOUBLE": "float64",
    "FLOAT": "float64",
    "BOOLEAN": "bool",
}
_WIDE = ("HUGEINT", "UHUGEINT")


def answer(trace: Trace, views: Iterable[LazyTable], query: str) -> Table:
    """Return the answer to a query as a table.

    Args:
        trace: the trace.
        views: further tables, as ``connect`` takes them.
        query: one statement.

    Raises:
        UsageError: an invalid query.
    """
    with connect(trace, views) as connection:
        try:
            found = connection.execute(query)
            description = None if found is None else found.description
            columns = [(str(name), str(type_)) for name, type_, *_ in description or ()]
            rows = found.fetchall() if columns else []
        except duckdb.Error as error:
            lines = [line for line in str(error).splitlines() if line and not line.lstrip().startswith(("LINE", "^"))]
            hint = "use the tables of trace.tables(), or of lanescope.derived_tables(trace)"
            raise UsageError(f"invalid query: {' '.join(lines)}", hint=hint) from None
    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    specs, made = [], {}
    for place, ((name, type_), column) in enumerate(zip(columns, values, strict=True)):
        unique = name if name not in made else f"{name}_{place}"
        kind = _type_of(type_, column)
        specs.append(ColumnSpec(unique, kind, type_, nullable=True))
        made[unique] = column if kind != "utf8" else [None if value is None else str(value) for value in column]
    return Table.from_arrays(TableSpec("answer", "rows of the answer to a query", tuple(specs)), made)


def _type_of(type_: str, values: Sequence[Any]) -> str:
    """Return the type of a column: integers of 128 bits (sums) that fit 64 are such."""
    if type_ in _WIDE:
        fits = all(value is None or -(1 << 63) <= value < 1 << 63 for value in values)
        return "int64" if fits else "utf8"
    return "float64" if type_.startswith("DECIMAL") else _TYPES.get(type_, "utf8")
