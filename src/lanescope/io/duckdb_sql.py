"""A trace as a DuckDB database in memory: tables by their names, nothing else within reach of a query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import duckdb

from lanescope.trace import LazyTable, Table, Trace

Error = duckdb.Error


class _OnRequest:
    """Stands for a table in the database; makes it when a query reads it."""

    def __init__(self, lazy: LazyTable) -> None:
        self._lazy = lazy
        self.is_registered = False

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        # DuckDB asks once for the columns when it learns the name: no rows are needed for that.
        source = self._lazy if self.is_registered else Table.empty(self._lazy.spec)
        return source.__arrow_c_stream__(requested_schema)


@contextmanager
def connect(trace: Trace, views: Iterable[LazyTable] = ()) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection on which every table of the trace is a view, read in place.

    Queries cannot reach files or the network. The connection is closed at the end of the block.

    Args:
        trace: the trace.
        views: further tables, each made when a query names it first; a table of the trace of the same name wins.

    Example:
        >>> from lanescope.trace import TimeBase, TraceBuilder
        >>> with connect(TraceBuilder(TimeBase()).finish()) as connection:
        ...     connection.execute("select count(*) from slices").fetchone()
        (0,)
    """
    with duckdb.connect(config={"enable_external_access": False}) as connection:
        for name, table in trace.tables().items():
            connection.register(name, table)
        for lazy in views:
            if lazy.spec.name not in trace.tables():
                stand_in = _OnRequest(lazy)
                connection.register(lazy.spec.name, stand_in)
                stand_in.is_registered = True
        connection.execute("set lock_configuration = true")
        yield connection
