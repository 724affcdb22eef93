"""The part of a capture of a dataset that is near a window."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lanescope.io.dataset.parquet_folder import ParquetFolder
from lanescope.io.dataset.parts import stored_spec, unstored
from lanescope.io.dataset.records import CaptureRecord, Catalog
from lanescope.io.dataset.tables import declared
from lanescope.trace import Table, TimeBase, Trace

if TYPE_CHECKING:
    import duckdb


class CaptureFolder(ParquetFolder):
    """The files of one capture that shares them with no other, read in part.

    Args:
        catalog: the dataset.
        record: the capture.

    Raises:
        InputError: its declarations are missing or broken.
    """

    def __init__(self, catalog: Catalog, record: CaptureRecord) -> None:
        self.time = TimeBase(**record.time)
        self._folder = Path(record.path)
        self._own = declared(catalog, record.schema)
        self._specs = {name: stored_spec(spec) for name, spec in self._own.items()}
        self._counts = {name: record.rows.get(name, 0) for name in self._specs}
        self._store = catalog.store
        self._files = catalog.files([record])[0]

    @contextmanager
    def _connected(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with super()._connected() as connection:
            connection.execute("set threads = 1")  # each table of a rank is small
            self._store.prepare(connection)
            yield connection

    def _parts(self, name: str) -> list[str]:
        return [self._store.sql_path(file.name) for file in self._files.get(name, [])]

    def _trace(self, tables: dict[str, Table]) -> Trace:
        return super()._trace({name: unstored(tables[name], own) for name, own in self._own.items()})
