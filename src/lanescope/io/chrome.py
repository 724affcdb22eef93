"""Chrome trace events: JSON for chrome://tracing, browsers' developer tools and other readers.

What becomes of the model: a top track is a process; a lane, and each further row of a lane whose slices overlap, is a
thread of its own, since readers drop what overlaps on one thread. Slices are complete events (``X``), open ones begins
without an end, gaps slices of category ``lanescope.gap``, instants instants, samples counters, flows ``s`` and ``f``
events with one id an edge. Times are microseconds with three decimals.

Batches are written as they come: processes and threads are named when they first appear, and put in order at the end,
where ``metadata`` stands as well.

The format can say less than Perfetto's own: no groups below a process, no data-loss warning (``metadata`` carries the
count), and readers hold numbers as doubles, so 64-bit ids are texts.

Source: google/perfetto, docs/getting-started/other-formats.md, and its importer's behaviour.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from lanescope._native import core
from lanescope.errors import InternalError, UsageError
from lanescope.io.atomic_file import Output
from lanescope.io.event_args import drawn_events, drawn_samples
from lanescope.io.event_stream import EventStream, encode_utf8
from lanescope.io.file_sink import FileSink, drive_trace
from lanescope.io.part_rows import PartRows
from lanescope.trace import Dictionary, Table, Trace
from lanescope.trace.row_packing import rows_of
from lanescope.trace.streams import StreamInfo, Takes, bare
from lanescope.trace.trace import SHARED

#: Bytes that are encoded and written at a time.
BLOCK = 1 << 20

#: Doubles hold every integer up to here: beyond, a base is taken off all times.
_EXACT_NS = 1 << 53
#: A later batch may hold times before those of the first one, and readers drop what is below 0: room for those.
_EARLIER_NS = 1 << 52
#: Times have 64 bits.
_LATEST_NS = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class WriteReport:
    """Report of a written file.

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
    trace: Trace | Iterable[Trace],
    out: Output,
    *,
    compress: bool = False,
    findings: Table | Callable[[], Table] | None = None,
    in_parts: bool = False,
) -> WriteReport:
    """Write a trace, or the batches of one decode, as Chrome trace events.

    Args:
        trace: the trace, or its batches; they are joined first, since a slice may come batches after those it encloses.
        out: a path, written under a temporary name and renamed; or a binary file object.
        compress: gzip, which readers of the format unpack themselves.
        findings: judgements to write as instants, as ``io.perfetto.write`` takes them.
        in_parts: write each batch as it comes and let go of it, as ``io.perfetto.write`` does.

    Raises:
        InternalError: the trace breaks a promise of the model.
        UsageError: times are too far apart, or a part has earlier ones than the first part left room for.
    """
    return drive_trace(ChromeSink(out, compress=compress), trace, findings, in_parts=in_parts)


class ChromeSink(FileSink):
    """Writes Chrome trace events, batch by batch.

    Args:
        out: a path, written under a temporary name and renamed; or a binary file object.
        compress: gzip.
    """

    takes: Takes = "sorted"

    def __init__(self, out: Output, *, compress: bool = False) -> None:
        super().__init__(out)
        self._compress = compress
        self._begin()

    def _begin(self) -> None:
        """Forget all that was written."""
        self._threads = _Threads()
        self._is_alone = False
        self._last: Trace | None = None
        self._base: int | None = None  # None while nothing has had a time
        self._flows = 0
        self._counts = dict.fromkeys(("slices", "gaps", "instants", "samples", "findings", "flows", "flows_undrawn"), 0)

    def start(self, info: StreamInfo) -> None:
        """Open the file and write its head."""
        self._begin()
        self._is_alone = info.is_whole or not info.is_sorted
        self._counting = _Counting(self.open())
        self._file = self.stack.enter_context(_text(self._counting, compress=self._compress))
        self._file.write(b'{"displayTimeUnit":"ns","traceEvents":[\n')
        # There is always one: what follows begins with a comma.
        self._file.write(_metadata("trace_name", 0, 0, name="lanescope"))

    def write(self, batch: Trace) -> None:
        """Write the events of the next batch."""
        self._last = bare(batch)
        self._draw(batch, None)

    def finish(self, annotations: Table | None) -> WriteReport:
        """Write the findings, the order of the threads and what the file is."""
        last = self._last
        if last is None:
            raise ValueError("a decode has at least one batch")
        if annotations is not None and len(annotations):
            self._draw(Trace(last.time, {name: getattr(last, name) for name in SHARED}), annotations)
        for event in self._threads.order(last):
            self._file.write(b",\n" + event)
        lost = int(last.stats.values("count")[last.stats.values("severity") == "data_loss"].sum())
        about = _about(last, lost, self._base or 0, self._counts["flows_undrawn"], self._threads)
        self._file.write(b'\n],"metadata":' + about + b"}\n")
        self.commit()
        return WriteReport(
            **self._counts,
            rows=len(self._threads.ids),
            overflow_rows=sum(row > 0 for _, row in self._threads.ids),
            lost=lost,
            base_ns=self._base or 0,
            bytes=self._counting.bytes,
        )

    def _draw(self, part: Trace, findings: Table | None) -> None:
        """Write a part: names of threads that are new, then its events."""
        drawing = EventStream(part, findings)
        self._settle_base(drawing, part)
        processes, threads, names, events = self._threads.place(part, drawing)
        for event in events:
            self._file.write(b",\n" + event)
        encoder = _encoder(part, drawing, processes, threads, names, self._base or 0, self._flows)
        try:
            while block := encoder.fill(BLOCK):
                self._file.write(block)
        except ValueError as error:
            raise InternalError(f"the trace cannot be drawn: {error}") from error
        self._flows += len(part.flows)
        for name, count in (
            ("slices", len(part.slices)),
            ("gaps", len(part.gaps)),
            ("instants", len(part.instants)),
            ("samples", len(part.counters)),
            ("findings", drawing.findings),
            ("flows", drawing.flows_drawn),
            ("flows_undrawn", len(part.flows) - drawing.flows_drawn),
        ):
            self._counts[name] += count

    def _settle_base(self, drawing: EventStream, part: Trace) -> None:
        """Decide with the first times what to take off all of them; refuse later ones that would be below 0."""
        times = [drawing.placement.begin, drawing.points.ts, part.counters.values("ts")]
        filled = [column for column in times if len(column)]
        if not filled:
            return
        first, last = min(int(column.min()) for column in filled), max(int(column.max()) for column in filled)
        if self._base is None:
            if first >= 0 and last <= _EXACT_NS:
                self._base = 0
            elif self._is_alone:
                self._base = first
            else:
                self._base = first - _EARLIER_NS if first < 0 else max(first - _EARLIER_NS, 0)
        if last - self._base > _LATEST_NS or self._base < -_LATEST_NS:
            raise UsageError(
                f"cannot write times from {first:,} to {last:,} as Chrome JSON: they are too far apart",
                hint="use --start and --end, or write .parquet",
            )
        if first < self._base:
            raise UsageError(
                f"cannot write this trace as Chrome JSON: a later part starts {self._base - first} "
                f"{part.time.time_unit} before the earliest time that the first part left room for",
                hint="convert to .pftrace or .parquet",
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


@contextmanager
def _text(counting: _Counting, *, compress: bool) -> Iterator[Any]:
    """Yield the stream that receives the text."""
    if not compress:
        yield counting
        return
    from isal import igzip

    # mtime 0: the same trace gives the same bytes.
    with igzip.IGzipFile(fileobj=counting, mode="wb", compresslevel=1, mtime=0) as packed_file:  # type: ignore[no-untyped-call]
        yield packed_file


def _about(trace: Trace, lost: int, base: int, flows_undrawn: int, threads: _Threads) -> bytes:
    """Return what a reader needs to make the trace of the events again: its tracks, and which of them a thread is."""
    tracks = trace.tracks
    names = ("kind", "role", "name", "sort_key", "nesting", "unit")
    columns = (tracks.column(name).texts.tolist() for name in names)
    metadata = {
        "producer": "lanescope",
        "time_unit": trace.time.time_unit,
        "epoch_kind": trace.time.epoch_kind,
        "epoch_ns": str(trace.time.epoch_ns),
        "base_ns": str(base),
        "lost_records": lost,
        "flows_undrawn": flows_undrawn,
        "tracks": list(zip(_parents(tracks).tolist(), *columns, strict=True)),
        "threads": [track if track < len(tracks) else -1 for track, _ in threads.ids],
    }
    return json.dumps(metadata, separators=(",", ":")).encode()


class _Threads:
    """Processes and threads of the file: top tracks, and rows of tracks.

    Ids of processes are odd, those of threads even, so that none is both.

    Attributes:
        ids: the thread of each row, by track and row, in order of first sight.
    """

    def __init__(self) -> None:
        self.ids: dict[tuple[int, int], int] = {}
        self._rows = PartRows()
        self._processes: dict[int, int] = {}  # of each top track
        self._roots: dict[int, int] = {}
        self._paths: dict[int, str] = {}

    def place(self, trace: Trace, drawing: EventStream) -> tuple[list[int], list[int], list[str], list[bytes]]:
        """Return process, thread and name of each row of a drawing, and the events that name those that are new."""
        events: list[bytes] = []
        track_of, row_of = self._rows.place(drawing)
        places = list(zip(track_of.tolist(), row_of.tolist(), strict=True))
        self._find(trace, [track for track, _ in places if track not in self._roots])
        suffix = " [cycles]" if trace.time.time_unit == "cycles" else ""
        names = [self._paths[track] + (f" #{row}" if row else "") for track, row in places]
        for (track, row), name in zip(places, names, strict=True):
            root = self._roots[track]
            if root not in self._processes:
                self._processes[root] = process = 2 * root + 1
                is_track = root < len(trace.tracks)
                title = _readable(trace.tracks.values("name")[root]) + suffix if is_track else "findings"
                events.append(_metadata("process_name", process, 0, name=title))
            if (track, row) not in self.ids:
                self.ids[track, row] = thread = 2 * len(self.ids) + 2
                events.append(_metadata("thread_name", self._processes[root], thread, name=name))
        processes = [self._processes[self._roots[track]] for track, _ in places]
        return processes, [self.ids[place] for place in places], names, events

    def order(self, last: Trace) -> Iterator[bytes]:
        """Yield the order of all processes and threads; ``last`` has all tracks."""
        sort_keys = last.tracks.values("sort_key").tolist()
        for root, process in self._processes.items():
            sort_index = sort_keys[root] if root < len(sort_keys) else len(sort_keys)
            yield _metadata("process_sort_index", process, 0, sort_index=sort_index)
        position = _tree_order(last)
        ranked = sorted(self.ids, key=lambda place: (position[place[0]], place[1]))
        for rank, (track, row) in enumerate(ranked):
            process = self._processes[self._roots[track]]
            yield _metadata("thread_sort_index", process, self.ids[track, row], sort_index=rank)

    def _find(self, trace: Trace, tracks: list[int]) -> None:
        """Find the process of each track, and its path below it."""
        if not tracks:
            return
        parents = _parents(trace.tracks).tolist()
        names = trace.tracks.values("name").tolist()
        for track in tracks:
            if track == len(parents):  # findings without a lane
                self._roots[track], self._paths[track] = track, "findings"
                continue
            path, at = [_readable(names[track])], track
            while parents[at] >= 0:
                at = parents[at]
                path.append(_readable(names[at]))
            self._roots[track] = at
            self._paths[track] = " / ".join(reversed(path[:-1] or path))


def _readable(name: str) -> str:
    """Return a name; what UTF-8 cannot hold is replaced."""
    return name.encode("utf-8", "replace").decode()


def _parents(tracks: Table) -> Any:
    """Return the row of each track's parent, -1 for top tracks."""
    return np.where(tracks.valid("parent_id"), rows_of(tracks.values("id"), tracks.values("parent_id")), -1)


def _tree_order(trace: Trace) -> list[int]:
    """Return the place of each track when the tree is read from top to bottom; one more for findings."""
    tracks = trace.tracks
    children: dict[int, list[int]] = {}
    parents = _parents(tracks).tolist()
    for row in np.lexsort((np.arange(len(tracks)), tracks.values("sort_key"))).tolist():
        children.setdefault(parents[row], []).append(row)
    places = [0] * len(tracks) + [len(tracks)]
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


def _encoder(
    trace: Trace,
    drawing: EventStream,
    processes: list[int],
    threads: list[int],
    names: list[str],
    base: int,
    flows: int,
) -> core.ChromeEncoder:
    """Return the encoder of a part's events; ids of its flows follow the ``flows`` of earlier parts."""
    spans, points = drawn_events(trace, drawing)
    order = drawing.lanes.file_order
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
        np.array(processes, np.uint32)[order],
        np.array(threads, np.uint32)[order],
        [names[row] for row in order.tolist()],
        drawing.lanes.ranges[order],
        base,
        flows,
    )
