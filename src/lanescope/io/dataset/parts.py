"""Sink that writes the rows of one capture as files of a dataset."""

from __future__ import annotations

import functools
import hashlib
import json
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lanescope._native import core
from lanescope.declaration import as_dict, replace
from lanescope.io import connected, cursor, parquet
from lanescope.io.dataset.records import SCHEMAS, File
from lanescope.io.file_sink import AtomicSink
from lanescope.trace import Table, TableSpec, Trace
from lanescope.trace.streams import StreamInfo, Takes, bare
from lanescope.trace.trace import SHARED

if TYPE_CHECKING:
    import duckdb

#: Rows of events that are written at once: batches are joined up to here, as small files cost more to read.
FILE_ROWS = 2_000_000
#: Names that columns of files cannot have.
PARTITIONS = ("table", "capture", "run", "rank")
_EVENTS = ("slices", "instants", "counters", "flows")


class WrittenParts(msgspec.Struct, frozen=True):
    """Report of the written files.

    Attributes:
        size: size of all files, bytes.
        rows: number of rows by table.
        files: the files, whose names are those in the folder.
        schema: name of the declarations.
        declarations: JSON of the declarations.
    """

    size: int
    rows: dict[str, int]
    files: list[File]
    schema: str
    declarations: str

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return self.size


def stored(table: Table) -> Table:
    """Return a table with the columns of its files: none has the name of a partition."""
    spec = stored_spec(table.spec)
    names = zip(spec.names, table.spec.names, strict=True)
    return Table(spec, {name: table.column(own) for name, own in names})


def unstored(table: Table, spec: TableSpec) -> Table:
    """Return a table of files with the columns of its own declaration: the reverse of ``stored``."""
    names = zip(spec.names, table.spec.names, strict=True)
    return Table(spec, {own: table.column(name) for own, name in names})


def stored_spec(spec: TableSpec) -> TableSpec:
    """Return the declaration of a table's files: ``rank`` of a row is ``rank_of_row``."""
    columns = tuple(replace(each, name=stored_name(each.name)) for each in spec.columns)
    return replace(spec, columns=columns)


def stored_name(name: str) -> str:
    """Return the name of a column in files."""
    return f"{name}_of_row" if name in PARTITIONS else name


@functools.cache
def _database(*, is_on_one_core: bool) -> duckdb.DuckDBPyConnection:
    """Return the database that writes the files of all captures of this process, one after the other.

    A new one for each would have its memory cleared by the system again: a tenth of all time. It has one thread, as
    captures run side by side, not the writers of one; on one core it writes with that one, too.
    """
    import duckdb

    database = connected(threads=1)
    if is_on_one_core:
        with suppress(duckdb.CatalogException):  # before version 2 it has no others
            database.execute("set async_threads = 0")
    return database


class PartsSink(AtomicSink):
    """Writes the tables of a capture to files ``TABLE-00000.parquet`` in a folder of the caller.

    Args:
        folder: the folder.
        capture: id of the capture, a column of every file.
        file_rows: rows of events per file, about.
        memory: most bytes that DuckDB may take; None: its default.
    """

    takes: Takes = "batches"

    def __init__(self, folder: Path, capture: str, *, file_rows: int = FILE_ROWS, memory: int | None = None) -> None:
        super().__init__()
        self._folder, self._file_rows, self._memory = folder, file_rows, memory
        self._more = {"capture": capture}
        self._kept: list[Trace] = []
        self._kept_rows = 0
        self._last: Trace | None = None
        self._specs: dict[str, TableSpec] = {}
        self._parts: dict[str, int] = {}
        self._files: list[File] = []
        self._rows: dict[str, int] = {}

    def start(self, info: StreamInfo) -> None:
        """Open the writer."""
        if self._memory is None:
            database = _database(is_on_one_core=core.allowed_threads() == 1)
            self._connection = self.stack.enter_context(closing(cursor(database)))
            return
        self._connection = self.stack.enter_context(connected(threads=1))
        self._connection.execute(f"set memory_limit = '{self._memory}B'")

    def abort(self) -> None:
        """Close what is open; the next sink writes with another database, as this one may be the cause."""
        super().abort()
        _database.cache_clear()

    def write(self, batch: Trace) -> None:
        """Take the rows of the next batch."""
        self._last = bare(batch)
        self._specs = {name: table.spec for name, table in batch.tables().items()}
        self._kept.append(batch)
        self._kept_rows += sum(len(batch.tables()[name]) for name in _EVENTS)
        if self._kept_rows >= self._file_rows:
            self._flush()

    def finish(self, annotations: Table | None = None) -> WrittenParts:
        """Write the rest; the files stay in the folder."""
        self._flush()
        last = self._last
        if last is None:
            raise ValueError("a trace has at least one batch")
        for name in SHARED:
            self._write(name, last.tables()[name])
        self.commit()
        specs = {name: as_dict(spec) for name, spec in self._specs.items()}
        declarations = json.dumps(specs, indent=1) + "\n"
        schema = hashlib.sha256(declarations.encode()).hexdigest()
        size = sum(file.bytes for file in self._files)
        return WrittenParts(size, self._rows, self._files, f"{SCHEMAS}/{schema}.json", declarations)

    def _flush(self) -> None:
        if not self._kept:
            return
        joined = self._kept[0] if len(self._kept) == 1 else Trace.concat(self._kept)
        self._kept.clear()
        self._kept_rows = 0
        for name, table in joined.tables().items():
            if name not in SHARED:
                self._write(name, table)

    def _write(self, name: str, table: Table) -> None:
        self._rows[name] = self._rows.get(name, 0) + len(table)
        if not len(table):
            return
        number = self._parts.get(name, 0)
        self._parts[name] = number + 1
        path = self._folder / f"{name}-{number:05}.parquet"
        parquet.write_table(self._connection, stored(table), path, self._more)
        self._files.append(File(name, path.name, len(table), path.stat().st_size))
