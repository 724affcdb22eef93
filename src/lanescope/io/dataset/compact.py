"""Join the files of small captures of a run: many small files cost more to open than to read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lanescope.io import connected
from lanescope.io.dataset import records
from lanescope.io.dataset.parts import stored_spec
from lanescope.io.dataset.records import CaptureRecord, Catalog, CompactedRecord, File
from lanescope.io.dataset.tables import declared

#: Captures of at least so many bytes keep their files.
LARGE = 64 << 20
#: Joined files hold captures of so many bytes, about.
TARGET = 256 << 20


class Group(NamedTuple):
    """Captures whose files become one per table.

    Attributes:
        run: run of the captures.
        schema: name of the declarations of their tables.
        captures: the captures, by rank.
    """

    run: str
    schema: str
    captures: list[CaptureRecord]


def plan(catalog: Catalog, target: int = TARGET) -> list[Group]:
    """Return the groups of small captures that share a run and declarations, and are not joined so far.

    Args:
        catalog: the dataset.
        target: size of the captures of a group, bytes, about.
    """
    done = {capture for each in catalog.compacted for capture in each.captures}
    by_run: dict[tuple[str, str], list[CaptureRecord]] = {}
    for record in catalog.captures:
        if record.capture not in done and _size(record) < min(LARGE, target):
            by_run.setdefault((record.run, record.schema), []).append(record)
    return [
        Group(run, schema, captures)
        for (run, schema), found in by_run.items()
        for captures in _filled(found, target)
        if len(captures) > 1
    ]


def _filled(found: Sequence[CaptureRecord], target: int) -> Iterator[list[CaptureRecord]]:
    group: list[CaptureRecord] = []
    size = 0
    for record in found:
        if group and size + _size(record) > target:
            yield group
            group, size = [], 0
        group.append(record)
        size += _size(record)
    yield group


def _size(record: CaptureRecord) -> int:
    return sum(file.bytes for file in record.files)


def compact(catalog: Catalog, group: Group, memory: int | None = None) -> CompactedRecord | None:
    """Write the joined files of a group, and the record that puts them in place of the others: it is the commit.

    Args:
        catalog: the dataset.
        group: the captures.
        memory: most bytes that DuckDB may take; None: its default.

    Returns:
        None if another process was first with one of the captures.
    """
    store = catalog.store
    captures = [record.capture for record in group.captures]
    key = hashlib.sha256("\n".join(captures).encode()).hexdigest()
    by_table: dict[str, list[File]] = {}
    for record in group.captures:
        for file in record.files:
            by_table.setdefault(file.table, []).append(file)
    made = []
    with store.staging() as folder, connected() as connection:
        store.prepare(connection)
        if memory is not None:
            connection.execute(f"set memory_limit = '{memory}B'")
        for table, spec in declared(catalog, group.schema).items():
            files = by_table.get(table)
            if not files:
                continue
            path = folder / f"{table}.parquet"
            names = ", ".join("'" + store.sql_path(file.name).replace("'", "''") + "'" for file in files)
            own = ", ".join(f'"{name}"' for name in stored_spec(spec).names)
            scan = f"read_parquet([{names}], hive_partitioning = true, hive_types = {{'rank': bigint}})"
            connection.execute(
                f"copy (select capture, rank, {own} from {scan}) to '{str(path).replace(chr(39), chr(39) * 2)}' "
                "(format parquet, compression zstd, compression_level 1)"
            )
            name = f"{records.compacted_partition(table, group.run)}/{key}-00000.parquet"
            made.append(File(table, name, sum(file.rows for file in files), path.stat().st_size))
        for file in made:
            store.put_file(file.name, folder / f"{file.table}.parquet")
    replaces = [file.name for files in by_table.values() for file in files]
    return _committed(catalog, CompactedRecord(captures=captures, files=made, replaces=replaces))


def _committed(catalog: Catalog, record: CompactedRecord) -> CompactedRecord | None:
    """Write the record under the next number: whoever is second sees what the first has joined."""
    number = len(catalog.compacted) + 1
    while not catalog.store.put_new(f"{records.COMPACTED}/{number:08}.json", records.encode(record)):
        known = Catalog(catalog.store).compacted
        if {capture for each in known for capture in each.captures}.intersection(record.captures):
            kept = {file.name for each in known for file in each.files}
            for file in record.files:
                if file.name not in kept:
                    catalog.store.delete(file.name)
            return None
        number = len(known) + 1
    return record


def clean(catalog: Catalog) -> int:
    """Remove files that joined ones have replaced, and return how many; queries that run meanwhile may miss them."""
    names = [name for each in catalog.compacted for name in each.replaces]
    there = {
        f"{folder}/{name}"
        for folder in {name.rpartition("/")[0] for name in names}
        for name in catalog.store.names(folder)
    }
    found = [name for name in names if name in there]
    for name in found:
        catalog.store.delete(name)
    return len(found)
