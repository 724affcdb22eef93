"""One capture into a dataset."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from lanescope._native import core
from lanescope.declaration import as_dict
from lanescope.errors import InputError, LanescopeError, UsageError, os_reason
from lanescope.families import registry
from lanescope.io.dataset import records
from lanescope.io.dataset.parts import FILE_ROWS, PartsSink, WrittenParts
from lanescope.io.dataset.records import CaptureRecord, FailedRecord, File
from lanescope.io.dataset.store import Store, is_url, open_store
from lanescope.pipeline.detection import capture as open_capture
from lanescope.pipeline.diagnostics import losses
from lanescope.pipeline.observers import Counts, Overview
from lanescope.pipeline.readable import Readable
from lanescope.pipeline.run import run
from lanescope.pipeline.sources import CaptureSource
from lanescope.source import Capture, Source
from lanescope.trace import Trace

#: Of so many bytes of allowed memory one row of events may wait to be written.
_ROW_BYTES = 1024
#: How ranks are written in names of files and folders.
_RANK = re.compile(r"(?:^|[^a-z0-9])rank[-_=]?(\d{1,9})(?![0-9a-z])", re.IGNORECASE)


class Work(NamedTuple):
    """What one file is ingested with; small, as it goes to other processes and machines.

    Attributes:
        path: the capture, a path or a URL.
        dataset: path or URL of the dataset.
        family: device family; None: detected.
        options: decode options of the family as given.
        run: name of the run; None: that of the folder of the capture.
        memory: most bytes of memory to take; None: no limit.
        is_beside_others: whether other captures are ingested on the same cores meanwhile: this one takes one core.
    """

    path: str
    dataset: str
    family: str | None = None
    options: Mapping[str, str] = {}
    run: str | None = None
    memory: int | None = None
    is_beside_others: bool = False


class Outcome(NamedTuple):
    """What became of one file.

    Attributes:
        path: the file as specified.
        status: ``ingested``, ``present`` (it is in the dataset already), ``failed``.
        capture: id of the capture; empty if its content could not be read.
        slices: number of slices.
        bytes: size of its Parquet files.
        lost: what was lost, by name.
        reason: error, one line; of captures that are present, a difference worth a warning.
        hint: what to do next.
        exit_status: status with which a command on this file alone ends.
    """

    path: str
    status: str
    capture: str = ""
    slices: int = 0
    bytes: int = 0
    lost: Mapping[str, int] = {}
    reason: str = ""
    hint: str = ""
    exit_status: int = 0


def ingest_one(work: Work) -> Outcome:
    """Ingest one capture; an error in it is an outcome, and listed in the dataset.

    The Parquet files come first, under names that follow from the content. The record comes last, and only if there is
    none: it is the commit. So work that was cut short, or done twice, changes nothing that readers see.

    Raises:
        OSError: the dataset cannot be written.
        LanescopeError: the dataset cannot be opened.
    """
    store = open_store(work.dataset)
    try:
        with _local(work.path) as path, _one_core() if work.is_beside_others else nullcontext():
            outcome = _ingest(work, path, store)
    except _DatasetError as error:
        raise error.cause from None
    except Exception as error:
        outcome = failed(work.path, error)
    if outcome.status == "failed":
        list_failure(store, outcome)
    else:
        store.delete(_failure_name(work.path))
    return outcome


@contextmanager
def _one_core() -> Iterator[None]:
    """Let no work of this thread take further threads."""
    before = core.allow_threads(1)
    try:
        yield
    finally:
        core.allow_threads(before)


def list_failure(store: Store, outcome: Outcome) -> None:
    """List a file that could not be ingested; it is taken from the list when it is."""
    record = FailedRecord(
        path=_text(outcome.path), reason=outcome.reason, hint=outcome.hint, exit_status=outcome.exit_status
    )
    store.put(_failure_name(outcome.path), records.encode(record))


def _failure_name(path: str) -> str:
    return f"{records.FAILED}/{hashlib.sha256(path.encode('utf-8', 'surrogateescape')).hexdigest()}.json"


def failed(path: str, error: BaseException) -> Outcome:
    """Return the outcome for an error."""
    reason, hint, status = f"{type(error).__name__}: {error}", "rerun with LANESCOPE_DEBUG=1 and report the error", 70
    if isinstance(error, LanescopeError):
        reason, hint, status = error.message, error.hint, error.exit_status
    elif isinstance(error, MemoryError):
        reason, hint, status = "not enough memory for this capture", "use --jobs 1, or more memory", 3
    elif isinstance(error, OSError) and error.strerror:
        reason, hint, status = os_reason(error), "check the file and its permissions", 3
    return Outcome(
        path, "failed", reason=_text(" ".join(reason.split())), hint=_text(" ".join(hint.split())), exit_status=status
    )


class _DatasetError(Exception):
    """The dataset cannot be written: every other capture would fail, too."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _local:
    """A capture as a path: an object of a store is copied to the temporary folder, and removed at the end."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> str:
        if not is_url(self._path):
            return self._path
        above, _, name = self._path.rpartition("/")
        content = open_store(above).get(name)
        if content is None:
            raise InputError(f"{self._path} not found", hint="check the URL")
        self._folder = tempfile.TemporaryDirectory(prefix="lanescope-")
        copy = Path(self._folder.name) / name
        copy.write_bytes(content)
        return str(copy)

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()


def capture_id(opened: Capture) -> str:
    """Return the SHA-256 of the content of a capture's main file, or of the names and contents of a folder's files."""
    if opened.folder is None:
        return opened.main.sha256
    whole = hashlib.sha256()
    for path in sorted(path for path in opened.folder.rglob("*") if path.is_file()):
        whole.update(os.fsencode(path.relative_to(opened.folder)) + b"\0")
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()


def _ingest(work: Work, path: str, store: Store) -> Outcome:
    with open_capture(path) as opened:
        if not opened.main.head().size:
            raise InputError(f"{work.path!r} is empty (0 bytes)", hint="check that the capture completed")
        capture = capture_id(opened)
        known = records.record_of(store, capture)
        if known is not None:
            _refuse_other_sidecars(work, opened, known)
            return _present(work, known)
    counts, overview = Counts(), Overview()
    with CaptureSource(path, work.family, dict(work.options)) as source:
        if source.family is None:
            raise UsageError(f"{work.path} is decoded already", hint="pass the capture that it was made of")
        with _staged(store) as folder:
            rows = FILE_ROWS if work.memory is None else max(100_000, work.memory // _ROW_BYTES)
            sink = PartsSink(folder, capture, file_rows=min(rows, FILE_ROWS), memory=work.memory and work.memory // 4)
            report = run(Readable(source, path), sink=sink, observers=[counts, overview])
            written = report.written
            assert isinstance(written, WrittenParts)
            counted, trace = counts.result(), overview.result()
            rank, rank_from = _rank(work.path, trace)
            run_name, run_from = _run_name(work)
            record = CaptureRecord(
                capture=capture,
                path=_text(work.path),
                family=str(source.family.name),
                format=next(iter(trace.inputs.values("format").tolist()), ""),
                options=dict(work.options),
                run=run_name,
                run_from=run_from,
                rank=rank,
                rank_from=rank_from,
                inputs=[_named(records.plain(row)) for row in trace.inputs.rows()],
                time=as_dict(trace.time),
                start=counted.begin,
                end=counted.end,
                schema=written.schema,
                rows={name: count for name, count in report.rows.items() if count},
                losses=losses(report.last),
                accounting=[records.plain(row) for row in report.last.accounting.rows()],
                files=[_placed(file, capture, run_name, rank) for file in written.files],
            )
            try:
                store.put_new(written.schema, written.declarations.encode())
                for file, made in zip(record.files, written.files, strict=True):
                    store.put_file(file.name, folder / made.name)
                is_first = store.put_new(f"{records.CAPTURES}/{capture}.json", records.encode(record))
            except OSError as error:
                raise _DatasetError(error) from error
    slices = record.rows.get("slices", 0)
    status = "ingested" if is_first else "present"
    return Outcome(work.path, status, capture, slices, written.bytes, record.losses)


def _refuse_other_sidecars(work: Work, opened: Capture, known: CaptureRecord) -> None:
    """Refuse a capture of which the dataset has the main file's content with other sidecar files.

    The id is that of the main file: which sidecars a decoder takes only decoding shows. So those that it took are
    compared with what is there now, and those that a family names are looked for.

    Raises:
        InputError: a sidecar file has other content, is gone, or is new.
    """
    if opened.folder is not None:
        return
    beside = Path(opened.main.path).parent
    taken: set[str] = set()
    for row in known.inputs:
        if row["role"] == "main":
            continue
        name, named_after = Path(row["path"]).name, row["capture"]
        if name.startswith(named_after):  # the main file may have another name now
            name = opened.name + name.removeprefix(named_after)
        taken.add(name)
        places = [path for path in (beside / name, Path(row["path"])) if path.is_file()]
        if not places:
            raise _other_sidecar(work, f"without its sidecar file {name!r}")
        with closing(Source(places[0])) as source:
            if source.sha256 != row["sha256"]:
                raise _other_sidecar(work, f"with another sidecar file {name!r}")
    for family in registry.builtin():
        for ending in family.sidecars if family.name == known.family else ():
            for path in opened.find_sidecar(opened.name_pattern + ending):
                if path.name not in taken:
                    raise _other_sidecar(work, f"with a new sidecar file {path.name!r}")


def _other_sidecar(work: Work, what: str) -> InputError:
    return InputError(f"{work.path} is in the dataset, but now comes {what}", hint="use another dataset to have both")


def _present(work: Work, known: CaptureRecord) -> Outcome:
    """Return the outcome of a capture that is in the dataset already."""
    reason = ""
    if dict(work.options) != known.options or work.family not in (None, known.family):
        reason = "was ingested with other options, which stay"
    elif known.path != _text(work.path) and Path(known.path).name != Path(work.path).name:
        reason = f"has the content of {known.path}"
    size = sum(file.bytes for file in known.files)
    return Outcome(
        work.path, "present", known.capture, known.rows.get("slices", 0), size, known.losses, reason=_text(reason)
    )


class _staged:
    """The folder for unfinished files of a dataset; errors in making it are those of the dataset."""

    def __init__(self, store: Store) -> None:
        self._staging: Any = store.staging()

    def __enter__(self) -> Path:
        try:
            made: Path = self._staging.__enter__()
        except OSError as error:
            raise _DatasetError(error) from error
        return made

    def __exit__(self, *error: Any) -> Any:
        return self._staging.__exit__(*error)


def _placed(file: File, capture: str, run_name: str, rank: int | None) -> File:
    number = file.name.removesuffix(".parquet").rpartition("-")[2]
    name = f"{records.partition(file.table, run_name, rank)}/{capture}-{number}.parquet"
    return File(file.table, name, file.rows, file.bytes)


def _rank(path: str, trace: Trace) -> tuple[int | None, str]:
    """Return the rank that the content of a capture states, else that of its name, and which of them it is."""
    for table in trace.details.values():
        if table.spec.key == "input_id" and "rank" in table.spec.names and len(table):
            stated = table.values("rank")[table.valid("rank")].tolist()
            if stated:
                return int(stated[0]), "content"
    for part in reversed(path.split("/")):
        if found := _RANK.search(part):
            return int(found[1]), "name"
    return None, ""


def _run_name(work: Work) -> tuple[str, str]:
    """Return the run of a capture: as given, else the folder around it that is not one of a rank."""
    if work.run is not None:
        return work.run, "option"
    path = work.path if is_url(work.path) else str(Path(work.path).absolute())
    above = [part for part in path.split("/")[:-1] if part and not _RANK.fullmatch(part)]
    return _text(above[-1]) if above else "", "folder"


def _named(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _text(value) if isinstance(value, str) else value for name, value in row.items() if name != "id"}


def _text(text: str) -> str:
    """Return a text as JSON can hold it: bytes of a path that are not UTF-8 become escapes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
