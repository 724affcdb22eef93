"""The tables of a dataset as a DuckDB database: views on the files of the selected captures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import msgspec

from lanescope.declaration import replace
from lanescope.errors import InputError, UsageError
from lanescope.io import connected, parquet
from lanescope.io.dataset.parts import stored_spec, unstored
from lanescope.io.dataset.records import CaptureRecord, Catalog, File
from lanescope.trace import ColumnSpec, Table, TableSpec, TimeBase, Trace
from lanescope.trace.schema import CORE_TABLES

CAPTURES = TableSpec(
    "captures",
    "one capture of a dataset",
    (
        ColumnSpec("capture", "utf8", "id of the capture: SHA-256 of its content"),
        ColumnSpec("run", "utf8", "run of the capture"),
        ColumnSpec("rank", "int64", "rank of the process; NULL if unknown", nullable=True),
        ColumnSpec("rank_from", "text", "source of the rank: content, name; empty if unknown"),
        ColumnSpec("path", "utf8", "path as specified"),
        ColumnSpec("family", "text", "device family that decoded the capture"),
        ColumnSpec("format", "text", "format name within the family"),
        ColumnSpec("time_unit", "text", "unit of its times: ns, cycles"),
        ColumnSpec("epoch_kind", "text", "kind of its epoch: times of captures without a common one do not compare"),
        ColumnSpec("epoch_ns", "int64", "moment of its time 0 on the clock of the epoch", unit="ns"),
        ColumnSpec("start_ts", "int64", "earliest time; NULL without events", nullable=True),
        ColumnSpec("end_ts", "int64", "latest time; NULL without events", nullable=True),
        ColumnSpec("slices", "int64", "number of slices"),
        ColumnSpec("lost", "int64", "number of lost records and other losses"),
        ColumnSpec("bytes", "int64", "size of its Parquet files", unit="bytes"),
    ),
)
FAILURES = TableSpec(
    "failures",
    "file that could not be ingested",
    (
        ColumnSpec("path", "utf8", "path as specified"),
        ColumnSpec("reason", "utf8", "error"),
        ColumnSpec("hint", "utf8", "remedy"),
        ColumnSpec("exit_status", "int64", "status with which a command on this file alone ends"),
    ),
)
#: Tables without the shared columns.
OF_CATALOG = (CAPTURES, FAILURES)
#: Statements that change nothing.
_READING = ("SELECT", "EXPLAIN")


#: Columns that all tables of a dataset have in front of their own.
SHARED_COLUMNS = (
    ColumnSpec("capture", "utf8", "capture of the row"),
    ColumnSpec("run", "utf8", "run of the capture"),
    ColumnSpec("rank", "int64", "rank of the capture; NULL if unknown", nullable=True),
)


def declarations(catalog: Catalog, records: Sequence[CaptureRecord]) -> dict[str, TableSpec]:
    """Return the declarations of all tables of some captures, by name, with the columns that their files have.

    Raises:
        InputError: declarations are missing or broken.
    """
    found = {spec.name: spec for spec in CORE_TABLES}
    for name in dict.fromkeys(record.schema for record in records):
        found.update(declared(catalog, name))
    return {name: stored_spec(spec) for name, spec in found.items()}


def declared(catalog: Catalog, name: str) -> dict[str, TableSpec]:
    """Return the declarations of one name; errors as ``declarations``."""
    content = catalog.store.get(name)
    try:
        return {key: parquet.spec_of(entry) for key, entry in msgspec.json.decode(content or b"").items()}
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{catalog.store.url}: cannot read {name}: {error}", hint="run 'lanescope ingest' again into a new dataset"
        ) from None


@contextmanager
def connect(
    catalog: Catalog,
    records: Sequence[CaptureRecord],
    query: str = "",
    *,
    is_repeatable: bool = False,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection on which each table of the captures is a view with the columns ``capture``, ``run``, ``rank``.

    A condition on ``run`` and ``rank`` opens only the files of those. Queries reach the dataset, and nothing else.

    Args:
        catalog: the dataset.
        records: the captures.
        query: only tables that it names are there; empty, or naming none: all.
        is_repeatable: rows come in the same order each time.

    Raises:
        UsageError: ``query`` does more than read.
    """
    specs = declarations(catalog, records)
    words = {word.lower() for word in re.findall(r"\w+", query)}
    names = [name for name in (*specs, "captures", "failures") if name.lower() in words]
    names = names or [*specs, "captures", "failures"]
    with connected() as connection:
        if query:
            _require_reading(connection, query)
        catalog.store.prepare(connection)
        if is_repeatable:
            connection.execute("set threads = 1")
        connection.execute("set enable_external_access = false")
        single, shared = catalog.files(records)
        for name in names:
            if name == "captures":
                connection.register(name, captures(records))
            elif name == "failures":
                connection.register(name, failures(catalog))
            else:
                _view(connection, catalog, specs[name], single.get(name, []), shared.get(name, []), records)
        connection.execute("set lock_configuration = true")
        yield connection


def _require_reading(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    try:
        statements = connection.extract_statements(query)
    except duckdb.Error:
        return  # what runs it tells what is wrong
    if any(statement.type.name not in _READING for statement in statements):
        raise UsageError("a dataset cannot be changed by a query", hint="use one SELECT statement")


def _view(
    connection: duckdb.DuckDBPyConnection,
    catalog: Catalog,
    spec: TableSpec,
    single: Sequence[File],
    shared: Sequence[File],
    records: Sequence[CaptureRecord],
) -> None:
    parts = []
    own = ", ".join(f'"{name}"' for name in spec.names)
    if single:
        types = "{'table': varchar, 'run': varchar, 'rank': bigint}"
        parts.append(f"select capture, run, rank, {own} from {_scan(catalog, single, types)}")
    if shared:
        types = "{'table': varchar, 'run': varchar}"
        part = f"select capture, run, rank, {own} from {_scan(catalog, shared, types)}"
        if len(records) < len(catalog.captures):
            wanted = ", ".join(f"'{record.capture}'" for record in records)
            part += f" where capture in ({wanted})"
        parts.append(part)
    if not parts:
        connection.register(spec.name, Table.empty(TableSpec(spec.name, spec.doc, (*SHARED_COLUMNS, *spec.columns))))
        return
    connection.execute(f'create view "{spec.name}" as {" union all ".join(parts)}')


def _scan(catalog: Catalog, files: Sequence[File], types: str) -> str:
    paths = ", ".join("'" + catalog.store.sql_path(file.name).replace("'", "''") + "'" for file in files)
    return f"read_parquet([{paths}], hive_partitioning = true, hive_types = {types})"


def captures(records: Sequence[CaptureRecord]) -> Table:
    """Return the captures as a table."""
    rows: dict[str, list[Any]] = {
        "capture": [each.capture for each in records],
        "run": [each.run for each in records],
        "rank": [each.rank for each in records],
        "rank_from": [each.rank_from for each in records],
        "path": [each.path for each in records],
        "family": [each.family for each in records],
        "format": [each.format for each in records],
        "time_unit": [each.time["time_unit"] for each in records],
        "epoch_kind": [each.time["epoch_kind"] for each in records],
        "epoch_ns": [each.time["epoch_ns"] for each in records],
        "start_ts": [each.start for each in records],
        "end_ts": [each.end for each in records],
        "slices": [each.rows.get("slices", 0) for each in records],
        "lost": [sum(each.losses.values()) for each in records],
        "bytes": [sum(file.bytes for file in each.files) for each in records],
    }
    return Table.from_arrays(CAPTURES, rows)


def failures(catalog: Catalog) -> Table:
    """Return what could not be ingested as a table."""
    rows = {name: [getattr(each, name) for each in catalog.failed] for name in FAILURES.names}
    return Table.from_arrays(FAILURES, rows)


def read_tracks(catalog: Catalog, record: CaptureRecord) -> Table:
    """Return the tracks of one capture; errors as ``read_capture``."""
    return read_capture(catalog, record, ("tracks",)).tracks


def read_capture(
    catalog: Catalog, record: CaptureRecord, names: Sequence[str] = (), columns: Sequence[str] = ()
) -> Trace:
    """Return one capture as a trace, as it was decoded.

    Args:
        catalog: the dataset.
        record: the capture.
        names: tables to read; empty: all. Others have no rows.
        columns: columns of slices to read; empty: all. Their table has no others.

    Raises:
        InputError: a file of it is missing or broken.
    """
    specs = declared(catalog, record.schema)
    single, shared = catalog.files([record])
    core = {spec.name for spec in CORE_TABLES}
    tables = {}
    with connected() as connection:
        catalog.store.prepare(connection)
        for name, spec in specs.items():
            files, where = (shared, f"capture = '{record.capture}'") if shared else (single, "")
            rows = record.rows.get(name, 0)
            if not rows or (names and name not in names):
                tables[name] = Table.empty(spec)
                continue
            paths = [catalog.store.sql_path(file.name) for file in files.get(name, [])]
            found = [each for each in spec.columns if not columns or name != "slices" or each.name in columns]
            of_table = replace(spec, columns=tuple(found))
            read = parquet.read_table(connection, stored_spec(of_table), rows, paths, f"{name} of {record.path}", where)
            tables[name] = unstored(read, of_table)
    return Trace(TimeBase(**record.time), tables, {name: each for name, each in tables.items() if name not in core})
