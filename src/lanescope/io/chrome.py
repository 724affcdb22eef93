"""Chrome trace events: JSON for chrome://tracing, browsers' developer tools and whatever else reads it.

What becomes of the model: a top track is a process; a lane, and each further row of a lane whose slices overlap, is a
thread of its own, since readers drop what overlaps on one thread. Slices are complete events (``X``), open ones begins
without an end, gaps slices of category ``lanescope.gap``, instants instants, samples counters, flows ``s`` and ``f``
events with one id an edge. Times are microseconds with three decimals.

The format can say less than Perfetto's own: no groups below a process, no data-loss warning (``metadata`` carries the
count), and readers hold numbers as doubles, so 64-bit ids are texts.

Source: google/perfetto, docs/getting-started/other-formats.md, and its importer's behaviour.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from lanescope._native import core
from lanescope.errors import InternalError
from lanescope.io.atomic_file import Output, atomic_writer
from lanescope.io.event_args import drawn_events, drawn_samples
from lanescope.io.event_stream import EventStream, encode_utf8
from lanescope.trace import Dictionary, Table, Trace
from lanescope.trace.row_packing import rows_of

#: Bytes that are encoded and written at a time.
BLOCK = 1 << 20

#: Doubles hold every integer up to here: beyond, a base is taken off all times.
_EXACT_NS = 1 << 53


@dataclass(frozen=True, slots=True)
class WriteReport:
    """What was written.

    Attributes:
        slices: slices of the trace.
        gaps: gaps, written as slices.
        instants: instants of the trace.
        samples: counter samples.
        findings: findings with a time, written as instants.
        flows: flows that a reader draws.
        flows_undrawn: flows that the format cannot express: the effect is over before its cause begins.
        rows: threads that hold anything.
        overflow_rows: those beyond the first of their lane.
        lost: records known to be lost, as ``metadata`` says.
        base_ns: what was taken off all times.
        bytes: size of the file.
    """

    slices: int
    gaps: int
    instants: int
    samples: int
    findings: int
    flows: int
    flows_undrawn: int
    rows: int
    overflow_rows: int
    lost: int
    base_ns: int
    bytes: int


def write(
    trace: Trace | Iterable[Trace], out: Output, *, compress: bool = False, findings: Table | None = None
) -> WriteReport:
    """Write a trace, or the batches of one decode, as Chrome trace events.

    Args:
        trace: the trace, or its batches; they are joined first.
        out: a path, written under a temporary name and renamed; or a binary file object.
        compress: gzip, which readers of the format unpack themselves.
        findings: judgements to write as instants, a table as ``exchange.perfetto.write`` takes it.

    Raises:
        InternalError: the trace breaks a promise of the model.
    """
    whole = trace if isinstance(trace, Trace) else Trace.concat(trace)
    drawing = EventStream(whole, findings, 0)
    lost = int(whole.stats.values("count")[whole.stats.values("severity") == "data_loss"].sum())
    base = _base(drawing, whole)
    with atomic_writer(out) as file, _sink(file, compress=compress) as sink:
        sink.write(_head(whole, lost, base))
        sink.write(b",\n".join(_descriptors(whole, drawing)))
        encoder = _encoder(whole, drawing, base)
        try:
            while block := encoder.fill(BLOCK):
                sink.write(block)
        except ValueError as error:
            raise InternalError(f"the trace cannot be drawn: {error}") from error
        sink.write(b"\n]}\n")
    return WriteReport(
        slices=len(whole.slices),
        gaps=len(whole.gaps),
        instants=len(whole.instants),
        samples=len(whole.counters),
        findings=drawing.findings,
        flows=drawing.flows_drawn,
        flows_undrawn=len(whole.flows) - drawing.flows_drawn,
        rows=len(drawing.lanes.track),
        overflow_rows=int(np.count_nonzero(drawing.lanes.row)),
        lost=lost,
        base_ns=base,
        bytes=sink.bytes,
    )


class _Counting:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.bytes = 0

    def write(self, block: bytes | memoryview) -> int:
        self._file.write(block)
        self.bytes += len(block)
        return len(block)

    def flush(self) -> None:
        self._file.flush()


class _Sink:
    """Where the text goes; ``bytes`` counts what reached the file, once it is closed."""

    def __init__(self, counting: _Counting, target: Any) -> None:
        self._counting = counting
        self.write = target.write

    @property
    def bytes(self) -> int:
        return self._counting.bytes


@contextmanager
def _sink(file: BinaryIO, *, compress: bool) -> Iterator[_Sink]:
    counting = _Counting(file)
    if not compress:
        yield _Sink(counting, counting)
        return
    from isal import igzip

    # mtime 0: the same trace gives the same bytes.
    with igzip.IGzipFile(fileobj=counting, mode="wb", compresslevel=1, mtime=0) as packed_file:  # type: ignore[no-untyped-call]
        yield _Sink(counting, packed_file)


def _base(drawing: EventStream, trace: Trace) -> int:
    times = [drawing.spans.begin, drawing.points.ts, trace.counters.values("ts")]
    filled = [column for column in times if len(column)]
    latest = max((int(column.max()) for column in filled), default=0)
    return min(int(column.min()) for column in filled) if latest > _EXACT_NS else 0


def _head(trace: Trace, lost: int, base: int) -> bytes:
    metadata = {
        "producer": "lanescope",
        "time_unit": trace.time.time_unit,
        "epoch_kind": trace.time.epoch_kind,
        "epoch_ns": str(trace.time.epoch_ns),
        "base_ns": str(base),
        "lost_records": lost,
    }
    return b'{"displayTimeUnit":"ns","metadata":' + json.dumps(metadata).encode() + b',"traceEvents":[\n'


@dataclass(frozen=True, slots=True)
class _Threads:
    """Process and thread of each row of the drawing, and the path of its track below the process."""

    process: Any
    thread: Any
    name: list[str]


def _names(trace: Trace) -> list[str]:
    """Return the names of the tracks; what UTF-8 cannot hold is replaced."""
    return [name.encode("utf-8", "replace").decode() for name in trace.tracks.values("name").tolist()]


def _threads(trace: Trace, drawing: EventStream) -> _Threads:
    tracks = trace.tracks
    parents = np.where(tracks.valid("parent_id"), rows_of(tracks.values("id"), tracks.values("parent_id")), -1).tolist()
    names = _names(trace)
    roots: list[int] = []
    paths: list[str] = []
    for row in range(len(tracks)):
        path, at = [names[row]], row
        while parents[at] >= 0:
            at = parents[at]
            path.append(names[at])
        roots.append(at)
        paths.append(" / ".join(reversed(path[:-1] or path)))
    process = [root + 1 for root in roots] + [len(tracks) + 1]
    paths.append("findings")
    track = drawing.lanes.track.tolist()
    label = [paths[t] + (f" #{row}" if row else "") for t, row in zip(track, drawing.lanes.row.tolist(), strict=True)]
    return _Threads(
        np.array([process[t] for t in track], np.uint32),
        np.arange(1, len(track) + 1, dtype=np.uint32) + len(tracks) + 1,  # no thread has the id of a process
        label,
    )


def _descriptors(trace: Trace, drawing: EventStream) -> Iterator[bytes]:
    """Yield the names of processes and threads, and their order."""
    threads = _threads(trace, drawing)
    names = _names(trace)
    suffix = " [cycles]" if trace.time.time_unit == "cycles" else ""
    sort_keys = trace.tracks.values("sort_key").tolist()
    # There is always one: what follows begins with a comma.
    yield _metadata("trace_name", 0, 0, name="lanescope")
    for process in dict.fromkeys(threads.process.tolist()):
        is_track = process <= len(names)
        yield _metadata("process_name", process, 0, name=names[process - 1] + suffix if is_track else "findings")
        yield _metadata("process_sort_index", process, 0, sort_index=sort_keys[process - 1] if is_track else len(names))
    order = np.lexsort((drawing.lanes.row, _tree_order(trace)[drawing.lanes.track]))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    for row, (process, thread) in enumerate(zip(threads.process.tolist(), threads.thread.tolist(), strict=True)):
        yield _metadata("thread_name", process, thread, name=threads.name[row])
        yield _metadata("thread_sort_index", process, thread, sort_index=int(rank[row]))


def _tree_order(trace: Trace) -> Any:
    """Return the place of each track when the tree is read from top to bottom; one more for findings."""
    tracks = trace.tracks
    children: dict[int, list[int]] = {}
    parents = np.where(tracks.valid("parent_id"), rows_of(tracks.values("id"), tracks.values("parent_id")), -1).tolist()
    for row in np.lexsort((np.arange(len(tracks)), tracks.values("sort_key"))).tolist():
        children.setdefault(parents[row], []).append(row)
    places = np.zeros(len(tracks) + 1, np.int64)
    places[-1] = len(tracks)
    stack, place = children.get(-1, [])[::-1], 0
    while stack:
        row = stack.pop()
        places[row] = place
        place += 1
        stack += children.get(row, [])[::-1]
    return places


def _metadata(kind: str, process: int, thread: int, **arguments: Any) -> bytes:
    return json.dumps(
        {"ph": "M", "pid": process, "tid": thread, "name": kind, "args": arguments}, separators=(",", ":")
    ).encode()


def _encoder(trace: Trace, drawing: EventStream, base: int) -> core.ChromeEncoder:
    spans, points = drawn_events(trace, drawing)
    threads = _threads(trace, drawing)
    lanes, order = drawing.lanes, drawing.lanes.file_order
    kinds = trace.flows.column("kind")
    dictionary = kinds.dictionary or Dictionary()
    return core.ChromeEncoder(
        spans,
        points,
        drawn_samples(trace, drawing),
        encode_utf8(drawing.names.texts),
        encode_utf8(drawing.categories.texts),
        encode_utf8(dictionary.texts),
        np.concatenate([np.zeros(1, np.int32), kinds.values]),  # ids of flows begin at 1
        threads.process[order],
        threads.thread[order],
        [threads.name[row] for row in order.tolist()],
        lanes.ranges[order],
        base,
    )
