"""Records of a dataset: what is known of each capture without opening its files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from lanescope.errors import InputError, UsageError
from lanescope.io.dataset.store import STAGING, Store, is_url

MARKER = "lanescope-dataset.json"
SCHEMA = "lanescope.dataset/1"
CAPTURES, FAILED, SCHEMAS, COMPACTED = "_captures", "_failed", "_schemas", "_compacted"
#: How hive partitions name an unknown value.
_UNKNOWN = "__HIVE_DEFAULT_PARTITION__"


class File(msgspec.Struct, frozen=True):
    """One Parquet file.

    Attributes:
        table: name of its table.
        name: name in the dataset.
        rows: number of its rows.
        bytes: size.
    """

    table: str
    name: str
    rows: int
    bytes: int


class CaptureRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One capture.

    Attributes:
        capture: its id: SHA-256 of the content of its main file, or of all files of a folder, hexadecimal.
        path: path as specified.
        family: device family.
        format: format name within the family.
        options: decode options as given.
        run: name of the run that it belongs to.
        run_from: source of ``run``: ``option``, ``folder``.
        rank: rank of the process; None if unknown.
        rank_from: source of ``rank``: ``content``, ``name``; empty if unknown.
        inputs: rows of the table ``inputs``, without their ids.
        time: time base.
        start: earliest time in it; None without events.
        end: latest time in it.
        schema: name of the declarations of its tables.
        rows: number of rows by table.
        losses: what was lost, by name.
        accounting: rows of the table ``accounting``.
        files: its Parquet files.
    """

    capture: str
    path: str
    family: str
    format: str
    options: dict[str, str]
    run: str
    run_from: str
    rank: int | None
    rank_from: str
    inputs: list[dict[str, Any]]
    time: dict[str, Any]
    start: int | None
    end: int | None
    schema: str
    rows: dict[str, int]
    losses: dict[str, int]
    accounting: list[dict[str, Any]]
    files: list[File]


class FailedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A file that could not be ingested.

    Attributes:
        path: path as specified.
        reason: error, one line.
        hint: what to do next.
        exit_status: status with which a command on this file alone ends.
    """

    path: str
    reason: str
    hint: str
    exit_status: int


class CompactedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Files that took the place of those of several captures.

    Attributes:
        captures: ids of the captures.
        files: the files.
        replaces: names of the files that they replace.
    """

    captures: list[str]
    files: list[File]
    replaces: list[str]


def encode(record: msgspec.Struct) -> bytes:
    """Return a record as JSON."""
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"


def is_dataset(path: str) -> bool:
    """Return whether a path names a dataset; of URLs it is assumed."""
    import os

    return is_url(path) or os.path.isfile(os.path.join(path, MARKER))  # noqa: PTH113, PTH118


def mark(store: Store, *, is_new_allowed: bool = True) -> None:
    """Make sure that a store holds a dataset of this version.

    Raises:
        UsageError: the folder holds something else.
        InputError: the dataset has another version; or there is none, and none may be made.
    """
    content = store.get(MARKER)
    if content is None and not is_new_allowed:
        raise InputError(f"{store.url} is not a dataset", hint="run 'lanescope ingest CAPTURES -o DATASET' first")
    if content is None:
        # The marker is the first file of a dataset: where a folder holds others of another process, it is there by now.
        if set(store.names("")) - {STAGING} and store.get(MARKER) is None:
            raise UsageError(f"{store.url} is not empty and not a dataset", hint="use another directory")
        store.put_new(MARKER, json.dumps({"schema": SCHEMA}).encode() + b"\n")
        content = store.get(MARKER) or b""
    try:
        found = json.loads(content)["schema"]
    except (ValueError, KeyError, TypeError):
        found = "unknown"
    if found != SCHEMA:
        raise InputError(f"{store.url}: unsupported schema {found!r}", hint=f"use a dataset with schema {SCHEMA}")


def partition(table: str, run: str, rank: int | None) -> str:
    """Return the folder of the files of a table for a run and a rank."""
    return f"table={quote(table, safe='')}/run={_part(run)}/rank={_UNKNOWN if rank is None else rank}"


def compacted_partition(table: str, run: str) -> str:
    """Return the folder of the files of a table that hold many captures of a run."""
    return f"table={quote(table, safe='')}/run={_part(run)}/compacted"


def _part(text: str) -> str:
    return quote(text, safe="").replace(".", "%2E") if text else _UNKNOWN


class Catalog:
    """All records of a dataset.

    Args:
        store: the dataset.

    Attributes:
        store: the dataset.
        captures: the records, by run, rank and id.
        failed: what could not be ingested, by path.
        compacted: what took the place of files of captures, in order.

    Raises:
        InputError: a record is broken; or it is not a dataset.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        mark(store, is_new_allowed=False)
        self.compacted = [record for _, record in _all(store, COMPACTED, CompactedRecord)]
        captures = [record for _, record in _all(store, CAPTURES, CaptureRecord)]
        self.captures = sorted(captures, key=_order)
        self.failed = sorted((record for _, record in _all(store, FAILED, FailedRecord)), key=lambda each: each.path)

    def selected(self, runs: Sequence[str] = (), ranks: Sequence[range] = ()) -> list[CaptureRecord]:
        """Return the captures of runs (globs) and ranks; empty: of all.

        Raises:
            UsageError: there are none.
        """
        from fnmatch import fnmatchcase

        found = [
            record
            for record in self.captures
            if (not runs or any(fnmatchcase(record.run, glob) for glob in runs))
            and (not ranks or any(record.rank in each for each in ranks))
        ]
        if self.captures and not found:
            raise UsageError(
                "no capture of this run and rank", hint=f"run 'lanescope info {self.store.url}' to list runs and ranks"
            )
        return found

    def files(self, records: Sequence[CaptureRecord]) -> tuple[dict[str, list[File]], dict[str, list[File]]]:
        """Return the files of captures by table: those of one capture each, and those of many.

        The latter may hold rows of other captures, too.
        """
        wanted = {record.capture for record in records}
        moved: set[str] = set()
        single: dict[str, list[File]] = {}
        shared: dict[str, list[File]] = {}
        for each in self.compacted:
            if wanted.intersection(each.captures):
                moved.update(each.captures)
                for file in each.files:
                    shared.setdefault(file.table, []).append(file)
        for record in records:
            for file in () if record.capture in moved else record.files:
                single.setdefault(file.table, []).append(file)
        return single, shared


def _order(record: CaptureRecord) -> tuple[Any, ...]:
    return record.run, record.rank is None, record.rank or 0, record.capture


def _all(store: Store, folder: str, kind: type[Any]) -> list[tuple[str, Any]]:
    """Return the records of a folder by name."""
    names = [name for name in store.names(folder) if name.endswith(".json")]
    found = []
    for name, content in zip(names, store.get_all([f"{folder}/{name}" for name in names]), strict=True):
        if content is None:  # it went in between
            continue
        try:
            found.append((name.removesuffix(".json"), msgspec.json.decode(content, type=kind)))
        except msgspec.MsgspecError as error:
            raise InputError(
                f"{store.url}: cannot read {folder}/{name}: {error}", hint="remove the file and ingest again"
            ) from None
    return found


def record_of(store: Store, capture: str) -> CaptureRecord | None:
    """Return the record of one capture; None if it is not in the dataset."""
    content = store.get(f"{CAPTURES}/{capture}.json")
    return None if content is None else msgspec.json.decode(content, type=CaptureRecord)


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with values that JSON has."""
    return {name: value.item() if hasattr(value, "item") else value for name, value in values.items()}
