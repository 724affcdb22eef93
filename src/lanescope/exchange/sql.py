"""A trace as a DuckDB database in memory: tables by their names, nothing else within reach of a query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from lanescope.trace import Trace

Error = duckdb.Error


@contextmanager
def connect(trace: Trace) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a connection on which every table of the trace is a view, read in place.

    Queries cannot reach files or the network. The connection is closed at the end of the block.

    Example:
        >>> from lanescope.trace import TimeBase, TraceBuilder
        >>> with connect(TraceBuilder(TimeBase()).finish()) as connection:
        ...     connection.execute("select count(*) from slices").fetchone()
        (0,)
    """
    with duckdb.connect(config={"enable_external_access": False}) as connection:
        for name, table in trace.tables().items():
            connection.register(name, table)
        connection.execute("set lock_configuration = true")
        yield connection
