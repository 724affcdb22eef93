"""Parquet datasets: one folder per table, written and read without loss.

More than 500 lines: what is written and what is read are two halves of one format, to be compared on one page.

::

    OUT.parquet/
        metadata.json                 what the files cannot say: time base, declarations, row counts
        slices/part-00000.parquet     one part per batch that has rows, or several
        tracks/part-00000.parquet
        ...
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lanescope.declaration import as_dict, replace
from lanescope.errors import InputError, UsageError
from lanescope.io import atomic_file, connected, cursor, require_duckdb_memory
from lanescope.io.file_sink import AtomicSink, drive
from lanescope.trace import Column, ColumnSpec, Dictionary, Table, TableSpec, TimeBase, Trace
from lanescope.trace.column import DTYPES
from lanescope.trace.schema import CORE_TABLES
from lanescope.trace.streams import StreamInfo, Takes, bare
from lanescope.trace.trace import SHARED

if TYPE_CHECKING:
    import duckdb

SCHEMA = "lanescope.parquet/2"
METADATA = "metadata.json"
CORE_NAMES = frozenset(spec.name for spec in CORE_TABLES)

_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
#: So many files are written side by side: more would need more memory.
_MOST_WORKERS = 4
#: Most rows of a file: eight groups of rows, as DuckDB makes them.
_PART_ROWS = 8 * 122_880
#: Likewise, where the memory is limited: of a file that is written DuckDB keeps what it has encoded.
LIMITED_ROWS = 122_880
#: Likewise, of tables whose columns are made for each file again.
_MADE_ROWS = 3 * 122_880


@dataclass(frozen=True, slots=True)
class WriteReport:
    """Report of a written dataset: rows by table, bytes of all files."""

    rows: Mapping[str, int]
    bytes: int


def write(trace: Trace | Iterable[Trace], out: str | os.PathLike[str], *, replace: bool = False) -> WriteReport:
    """Write a trace, or batches of one decode as they come, to the folder ``out``.

    Everything is written to a folder beside it first and renamed at the end, so ``out`` is whole or not there. What is
    replaced stays until then.

    Args:
        trace: the trace, or its batches in order.
        out: a folder that does not exist, unless it may be replaced.
        replace: replace a file, or a folder that holds nothing but what ``write`` writes.

    Raises:
        UsageError: there is something else in its place.
        OSError: it cannot be written: the disk is full, for example.
    """
    batches = [trace] if isinstance(trace, Trace) else trace
    return drive(ParquetSink(out, replace=replace), batches, StreamInfo())


class ParquetSink(AtomicSink):
    """Writes each batch as it comes, a part of each table that has rows.

    Args:
        out: a folder that does not exist, unless it may be replaced.
        replace: as ``write`` takes it.
        part_rows: most rows of a file; 0: as many as are quick to read.
    """

    takes: Takes = "batches"

    def __init__(self, out: str | os.PathLike[str], *, replace: bool = False, part_rows: int = 0) -> None:
        super().__init__()
        self._part_rows = part_rows
        self._target = Path(out)
        self._replace = replace
        self._rows: dict[str, int] = {}
        self._last: Trace | None = None
        self._specs: dict[str, TableSpec] = {}

    def start(self, info: StreamInfo) -> None:
        """Make the folder, under a temporary name."""
        self._target.parent.mkdir(parents=True, exist_ok=True)
        check_room(self._target, replace=self._replace)
        self._folder = self.stack.enter_context(atomic_file.folder(self._target))
        self._writers = self.stack.enter_context(TableWriters(self._folder, self._part_rows))

    def write(self, batch: Trace) -> None:
        """Begin to write the rows of the next batch; what was begun before goes on meanwhile."""
        for name, table in batch.tables().items():
            if name not in SHARED and len(table):
                self._writers.add(name, table)
            self._rows[name] = self._rows.get(name, 0) + (0 if name in SHARED else len(table))
        self._last = bare(batch)
        self._specs = {name: table.spec for name, table in batch.tables().items()}

    def finish(self, annotations: Table | None = None) -> WriteReport:
        """Write the shared tables and the metadata; findings have no place in the format."""
        last = self._last
        if last is None:
            raise ValueError("a trace has at least one batch")
        self._writers.finish()
        for name in SHARED:
            table = last.tables()[name]
            if len(table):
                # There may be a million tracks, whose columns are made as they are written.
                self._writers.add_made(name, table)
            self._rows[name] = len(table)
        self._writers.finish()
        metadata = {
            "schema": SCHEMA,
            "time": as_dict(last.time),
            "tables": {name: {"rows": self._rows[name], **as_dict(spec)} for name, spec in self._specs.items()},
        }
        with _plain_errors(self._folder):
            (self._folder / METADATA).write_text(json.dumps(metadata, indent=1) + "\n", encoding="utf-8")
        size = sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())
        check_room(self._target, replace=self._replace)  # writing takes a while: something may have come there
        self.commit()
        return WriteReport(self._rows, size)


class TableWriters:
    """Writes tables to files ``TABLE/part-00000.parquet``, several side by side.

    Each file is written by one thread: DuckDB takes a third more time for a file that two threads write, and no less by
    the clock. Which rows are in which file does not depend on the number of threads.

    Args:
        folder: where the folders of the tables are.
        part_rows: most rows of a file; 0: as many as are quick to read.
    """

    def __init__(self, folder: Path, part_rows: int = 0) -> None:
        self._folder, self._part_rows = folder, part_rows or _PART_ROWS
        self._parts: dict[str, int] = {}
        self._pending: deque[Future[None]] = deque()
        self._workers = min(_CORES, _MOST_WORKERS)
        self._executor: ThreadPoolExecutor | None = None

    def __enter__(self) -> TableWriters:
        require_duckdb_memory()

        self._database = connected(threads=1)
        # A thread has a connection of its own: what is registered and declared there is seen by no other.
        self._all = [cursor(self._database) for _ in range(1 + self._workers)]
        self._free = list(self._all)
        return self

    def __exit__(self, *error: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            while wait(self._pending, 0.05).not_done:  # a query that has not begun is not interrupted
                for connection in self._all:
                    connection.interrupt()
            self._executor.shutdown()
        self._database.close()

    def add_made(self, name: str, table: Table) -> None:
        """Write a table whose columns are made from others: one part after the other, and nothing of it is kept."""
        for start, stop in pairwise(_bounds(len(table), _MADE_ROWS)):
            self._write(table.piece(start, stop), self._next(name))

    def _next(self, name: str) -> Path:
        """Return the next file of a table."""
        number = self._parts.get(name, 0)
        self._parts[name] = number + 1
        return self._folder / name / f"part-{number:05}.parquet"

    def add(self, name: str, table: Table) -> None:
        """Write a small table, or begin to write a large one; wait while each thread has one to write.

        Args:
            name: of the table.
            table: its next rows.
        """
        bounds = _bounds(len(table), self._part_rows)
        for start, stop in pairwise(bounds):
            path = self._next(name)
            part = table if len(bounds) == 2 else table.between(start, stop)
            if self._workers == 1 or len(part) < _MANY_ROWS:
                self._write(part, path)
                continue
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self._workers, "lanescope-parquet")
            self._wait(self._workers - 1)
            self._pending.append(self._executor.submit(self._write, part, path))

    def finish(self) -> None:
        """Wait until all is written."""
        self._wait(0)

    def _wait(self, most: int) -> None:
        while len(self._pending) > most:
            self._pending[0].result()
            self._pending.popleft()

    def _write(self, table: Table, path: Path) -> None:
        connection = self._free.pop()
        try:
            write_table(connection, table, path)
        finally:
            self._free.append(connection)


def _bounds(rows: int, most: int) -> list[int]:
    """Return where parts of a table begin and end that have no more rows than ``most``, and about as many each."""
    count = -(-rows // most)
    return [rows * part // count for part in range(count + 1)]


def check_room(target: Path, *, replace: bool) -> None:
    """Refuse what ``write`` must not replace.

    Raises:
        UsageError: the output exists, and may not be replaced, or was not written by ``write``.
    """
    if not target.exists():
        return
    if not replace:
        raise UsageError(f"{target} already exists", hint="use --force to overwrite")
    if target.is_dir():
        other = _foreign(target)
        if other == METADATA:
            raise UsageError(f"{target} is a directory not written by lanescope", hint="use another directory")
        if other is not None:
            raise UsageError(
                f"{target} contains {other}, which is not written by lanescope", hint="use another directory"
            )


def _foreign(folder: Path) -> str | None:
    """Return the name of something in a folder that ``write`` did not make, ``METADATA`` if that is not ours; or None.

    Those of earlier versions are ours as well.
    """
    try:
        metadata = json.loads((folder / METADATA).read_text(encoding="utf-8"))
        is_ours = metadata["schema"].startswith(SCHEMA.partition("/")[0] + "/")
        tables = set(metadata["tables"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        is_ours, tables = False, set[str]()
    if not is_ours:
        return METADATA
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        is_part = len(name.parts) == 2 and name.parts[0] in tables and name.match("part-*.parquet") and path.is_file()
        if not (is_part or str(name) == METADATA or (str(name) in tables and path.is_dir())):
            return str(name)
    return None


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    """Let what DuckDB raises where it cannot write to a path be what Python itself would raise there."""
    import duckdb

    try:
        yield
    except duckdb.IOException as error:
        found = re.search(r'"errno":"(\d+)"', str(error))
        number = int(found[1]) if found else errno.EIO
        raise OSError(number, os.strerror(number), str(path)) from None
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        # It swallows the exception that a handler of signals has raised.
        raise KeyboardInterrupt from None


def write_table(
    connection: duckdb.DuckDBPyConnection, table: Table, path: Path, more: Mapping[str, str] | None = None
) -> None:
    """Write the rows of a table as one file.

    Args:
        connection: of DuckDB, which writes it.
        table: the table.
        path: the file; the folder around it is made, not those above.
        more: texts of further columns in front, each the same in all rows, by name.

    Raises:
        OSError: it cannot be written.
    """
    with _plain_errors(path):
        path.parent.mkdir(exist_ok=True)
    columns = {spec.name: table.column(spec.name) for spec in table.spec.columns}
    # What is the same in all rows goes in as a literal: it costs neither memory nor a scan.
    selected = {name: _text(text) for name, text in (more or {}).items()}
    selected |= {spec.name: _literal(spec, table) or _quoted(spec.name) for spec in table.spec.columns}
    stored = [spec for spec in table.spec.columns if selected[spec.name] == _quoted(spec.name)]
    if len(table) >= _MANY_ROWS:
        for name, value in selected.items():
            if value.startswith("'"):
                selected[name] = f"{value}::{_enumeration(connection, name, [value])}"
        for at, spec in enumerate(stored):
            column = columns[spec.name]
            if spec.type == "text" and column.dictionary is not None and _are_few(column.dictionary.texts):
                texts = [_text(text) for text in column.dictionary.texts]
                listed = f"[{', '.join(texts)}]::{_enumeration(connection, spec.name, texts)}[]"
                selected[spec.name] = f"({listed})[{_quoted(spec.name)} + 1]"
                stored[at] = replace(spec, type="int32")
                columns[spec.name] = Column.array(column.values, valid=column.valid)
    rest = Table(replace(table.spec, columns=tuple(stored)), {spec.name: columns[spec.name] for spec in stored})
    listed = ", ".join(f"{value} as {_quoted(name)}" for name, value in selected.items())
    connection.register("written", rest)
    with _plain_errors(path):
        connection.execute(f"copy (select {listed} from written) to {_text(str(path))} ({_OPTIONS})")
    connection.unregister("written")


#: Version 2 stores integers as differences. Only columns of few values get a dictionary: to look up more values takes
#: longer than to store differences. Level 1 is faster than level 3 and no larger: the encodings leave little to find.
_OPTIONS = "format parquet, parquet_version v2, dictionary_size_limit 1024, compression zstd, compression_level 1"
#: Rows from which on it pays to declare the texts of a column, and to write in a thread.
_MANY_ROWS = 10_000
#: Most texts that are declared: all of them are stored with each group of rows.
_FEW_TEXTS = 256


def _are_few(texts: Sequence[str]) -> bool:
    """Return whether texts are few, and such that SQL can have them."""
    return 0 < len(texts) <= _FEW_TEXTS and all(map(_is_plain, texts))


def _is_plain(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def _enumeration(connection: duckdb.DuckDBPyConnection, column: str, texts: Iterable[str]) -> str:
    """Declare an enumeration of the texts of a column, as SQL, and return its name.

    DuckDB compares the texts of each row with those of a dictionary, unless they are an enumeration.
    """
    name = _quoted(f"texts of {column}")
    connection.execute(f"create or replace temp type {name} as enum ({', '.join(texts)})")
    return name


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_SQL_TYPES = {
    "int64": "bigint",
    "int32": "integer",
    "uint64": "ubigint",
    "uint32": "uinteger",
    "uint16": "usmallint",
    "uint8": "utinyint",
    "float64": "double",
    "bool": "boolean",
    "text": "varchar",
    "utf8": "varchar",
}


def _literal(spec: ColumnSpec, table: Table) -> str | None:
    """Return the SQL of a column that is the same in all rows, else None; the first column is always stored."""
    column = table.column(spec.name)
    if spec is table.spec.columns[0] or column.constant_value is None:
        return None
    if column.is_unknown:
        return f"null::{_SQL_TYPES[spec.type]}"
    if column.valid is not None or spec.type in ("float64", "utf8"):
        return None
    if spec.type == "text" and column.dictionary is not None:
        text = column.dictionary.texts[column.constant_value]
        return _text(text) if _is_plain(text) else None
    return f"{int(column.constant_value)}::{_SQL_TYPES[spec.type]}"


def _quoted(name: str) -> str:
    return f'"{name}"'


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether ``path`` is a folder that ``write`` made."""
    # Not pathlib's, which raises where a name is too long to exist.
    return os.path.isfile(os.path.join(path, METADATA))  # noqa: PTH113, PTH118


def read(path: str | os.PathLike[str]) -> Trace:
    """Read a folder that ``write`` made.

    Raises:
        InputError: the folder is not ours, is of a later version, or a file of it is missing or broken.
    """
    folder = Path(path)
    time, specs, counts = declared(folder)
    tables = {name: read_folder(folder / name, spec, counts[name]) for name, spec in specs.items()}
    return Trace(time, tables, {name: table for name, table in tables.items() if name not in CORE_NAMES})


def declared(folder: Path) -> tuple[TimeBase, dict[str, TableSpec], dict[str, int]]:
    """Return what the metadata of a folder says: its time base, and declarations and numbers of rows by table.

    Raises:
        InputError: the folder is not ours, or is of a later version.
    """
    try:
        metadata = json.loads((folder / METADATA).read_text(encoding="utf-8"))
        if metadata["schema"] != SCHEMA:
            raise InputError(
                f"{folder}: unsupported schema {metadata['schema']!r}", hint=f"use a dataset with schema {SCHEMA}"
            )
        time = TimeBase(**metadata["time"])
        specs = {spec.name: spec for spec in map(spec_of, metadata["tables"].values())}
        return time, specs, {name: int(metadata["tables"][name]["rows"]) for name in specs}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{folder}: cannot read {METADATA}: {error}", hint="write the dataset again") from None


def spec_of(entry: Mapping[str, Any]) -> TableSpec:
    """Return the declaration of a table that ``as_dict`` made a dictionary of.

    Raises:
        ValueError: a name of it could not be that of a column.
    """
    columns = tuple(ColumnSpec(**column) for column in entry["columns"])
    if not all(name.isidentifier() for name in (entry["name"], *(column.name for column in columns))):
        raise ValueError(f"table {entry['name']!r} has a name that is none")  # names become paths and SQL
    return TableSpec(entry["name"], entry["doc"], columns, entry["key"])


def read_folder(folder: Path, spec: TableSpec, rows: int) -> Table:
    """Return the table in a folder; errors as ``read_table``."""
    require_duckdb_memory()

    parts = sorted(folder.glob("part-*.parquet"))
    if not parts and not rows:
        return Table.empty(spec)
    with connected() as connection:
        return read_table(connection, spec, rows, [str(part) for part in parts], str(folder))


def read_table(
    connection: duckdb.DuckDBPyConnection,
    spec: TableSpec,
    rows: int | None,
    parts: list[str],
    name: str,
    where: str = "",
    *,
    is_joined: bool = False,
) -> Table:
    """Read a table from its files.

    Args:
        connection: of DuckDB, which reads them.
        spec: declaration of the table.
        rows: number of its rows; None: it may have any.
        parts: the files, in order.
        name: what errors call them.
        where: SQL condition on the rows that belong to the table; empty: all do.
        is_joined: the condition asks for rows of other tables, which leaves the order of rows to chance: they are put
            back into that of the files.

    Raises:
        InputError: a file is missing or broken, or has other rows.
    """
    import duckdb

    try:
        columns, texts = _fetch(connection, spec, parts, f" where {where}" if where else "", is_joined=is_joined)
    except duckdb.Error as error:
        raise cannot_read(name, error) from None
    table = Table(spec, {c.name: _column(c, columns[c.name], texts.get(c.name)) for c in spec.columns})
    if rows is not None and len(table) != rows:
        raise InputError(f"{name}: expected {rows} rows, found {len(table)}", hint="write the dataset again")
    return table


def cannot_read(name: str, error: duckdb.Error) -> InputError:
    """Return the error for what DuckDB cannot read."""
    return InputError(f"cannot read {name}: {str(error).splitlines()[0]}", hint="write the dataset again")


#: Names of folders are not columns.
SCAN = "read_parquet(?, hive_partitioning = false)"
#: Place of a row in its files; no column is called so.
_PLACE = '"place in the files"'


def _fetch(
    connection: duckdb.DuckDBPyConnection, spec: TableSpec, parts: list[str], where: str, *, is_joined: bool
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return the columns as arrays, text columns as codes, and the texts behind the codes."""
    texts: dict[str, list[str]] = {}
    selected = []
    for column in spec.columns:
        name = _quoted(column.name)
        if column.type == "text":
            found = connection.execute(f"select distinct {name} from {SCAN}{where}", [parts])
            # DuckDB's order is another one in each run.
            texts[column.name] = sorted(text for (text,) in found.fetchall() if text is not None)
        if texts.get(column.name):
            # An enumeration gives the codes without making a Python string of each row.
            name = (
                f"enum_code({name}::{_enumeration(connection, column.name, map(_text, texts[column.name]))}) as {name}"
            )
        selected.append(name)
    rows = f"{SCAN}{where}"
    if is_joined:
        rows = f"(select *, row_number() over () as {_PLACE} from {SCAN}){where} order by {_PLACE}"
    found = connection.execute(f"select {', '.join(selected)} from {rows}", [parts])
    return found.fetchnumpy(), texts


def _column(spec: ColumnSpec, values: Any, texts: list[str] | None) -> Column:
    valid = None
    if isinstance(values, np.ma.MaskedArray):
        valid = None if not np.ma.is_masked(values) else ~np.ma.getmaskarray(values)
        values = values.filled("" if spec.type == "utf8" else 0)
    if spec.type == "text":
        if not texts:
            return Column.null(len(values), np.int32, dictionary=Dictionary([""]))
        return Column.array(values.astype(np.int32), valid=valid, dictionary=Dictionary(texts))
    return Column.array(np.asarray(values, DTYPES[spec.type]), valid=valid)
