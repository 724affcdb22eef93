"""Readers and writers of general formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanescope.errors import InputError

if TYPE_CHECKING:
    import duckdb

#: What DuckDB reserves of a process's address space, and each of its threads: measured. It does not fill all of it, but
#: with less it often ended in a segmentation fault.
_DUCKDB_BYTES, _THREAD_BYTES = 560 << 20, 80 << 20


def require_duckdb_memory() -> None:
    """Refuse to import DuckDB where memory is limited and too little is left: it would end the process.

    Raises:
        InputError: too little is left.
    """
    import os
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return
    try:
        with open("/proc/self/statm") as file:  # noqa: PTH123
            used = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return
    needed = _DUCKDB_BYTES + _THREAD_BYTES * (os.cpu_count() or 1)
    if limit - used < needed:
        left = max(0, limit - used) >> 20
        raise InputError(
            f"not enough memory for DuckDB: {left} MiB left, {needed >> 20} MiB required",
            hint="set a higher limit on memory (ulimit -v)",
        )


def connected(**config: Any) -> duckdb.DuckDBPyConnection:
    """Return a new database in memory, to be closed; ``config`` are options that hold from its start."""
    import duckdb

    return _silent(duckdb.connect(config=config))


def cursor(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Return another connection to a database, for a thread of its own."""
    return _silent(connection.cursor())


def _silent(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    # A statement that takes two seconds would draw a bar on standard output, in the middle of what a command prints.
    connection.execute("set enable_progress_bar = false")
    return connection
