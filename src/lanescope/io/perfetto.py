"""Perfetto: a trace as TrackEvent protobuf, for ui.perfetto.dev and the trace processor.

What becomes of the model:

* A track is a track of the same name and place; siblings are ordered by ``sort_key``. A lane whose slices overlap gets
  further rows of the same name that the viewer draws stacked, as ``trace.layout.place`` assigned them.
* A slice is a slice; one without an end stays open. A gap is a slice of category ``lanescope.gap``, named after its
  cause. An instant is an instant, a counter's sample a sample.
* Columns of detail tables that are declared as arguments go with their slice or instant, unknown values left out;
  ``quality`` where it is not exact, ``flags`` where any is set, ``last_known_ts`` where it is known.
* A flow is an arrow from slice to slice. Where an end of it has no slice, or reaches one that was running before the
  cause began, it ends at an instant of category ``lanescope.flow``. The format orders the ends by time, so an effect
  that comes before its cause begins cannot be drawn: those are counted in the report.
* Stats of severity ``data_loss`` light the viewer's own data-loss warning, with their sum.

Times are the trace's: ns since its epoch, which the descriptions of the top tracks name. A trace in cycles is drawn
with one cycle as 1 ns and says so in the names of its top tracks.

Source: google/perfetto, protos/perfetto/trace/ (messages) and docs/reference/synthetic-track-event.md (semantics).
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np

from lanescope._native import core
from lanescope.errors import InternalError
from lanescope.io.atomic_file import Output, atomic_writer
from lanescope.io.event_args import drawn_events, drawn_samples
from lanescope.io.event_stream import EventStream, Int64, encode_utf8
from lanescope.trace import Table, TimeBase, Trace
from lanescope.trace.row_packing import rows_of
from lanescope.trace.trace import SHARED

#: Bytes that are encoded, compressed and written at a time; upstream advises compressed packets below 512 kB.
BLOCK = 384 << 10

#: The trace processor refuses tracks with 100 ancestors; its WebAssembly build (v52) runs out of stack at 77.
MAX_ANCESTORS = 64

#: igzip's level 1.
_LEVEL = 1

_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
#: Blocks are compressed by at most so many threads, and so many blocks wait to be written.
_MOST_WORKERS, _MOST_WAITING = 4, 16
#: Of a file in parts so many may be encoded, or wait to be written.
_MOST_PARTS = 2

#: Rows that are no tracks of the trace are called from here on, in a file of parts.
_FURTHER_ROWS = 1 << 31

#: BOOTTIME, the clock that readers fall back to.
_TRACE_CLOCK = 6
_MERGE_NOT, _MERGE_BY_KEY = 2, 3
_ORDER_EXPLICIT = 3
_COUNTER_UNITS = {"ns": 1, "1": 2, "bytes": 3}

_NO_ROWS = np.empty(0, np.int64)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class WriteReport:
    """What was written.

    Attributes:
        slices: slices of the trace.
        gaps: gaps, drawn as slices.
        instants: instants of the trace.
        samples: counter samples.
        findings: findings with a time, drawn as instants.
        flows: flows that the viewer draws.
        flows_undrawn: flows that the format cannot express: the effect comes before its cause begins.
        rows: rows that hold anything; a lane without overlap is one.
        overflow_rows: rows beyond the first of their lane.
        lost: records known to be lost, as the viewer's data-loss warning says.
        bytes: size of the file.
        raw_bytes: size before compression.
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
    bytes: int
    raw_bytes: int


def write(
    trace: Trace | Iterable[Trace],
    out: Output,
    *,
    compress: bool = True,
    findings: Table | Callable[[], Table] | None = None,
    in_parts: bool = False,
) -> WriteReport:
    """Write a trace, or the batches of one decode, as a Perfetto trace.

    Args:
        trace: the trace, or its batches; they are joined first, since a slice may come batches after those it encloses.
        out: a path, written under a temporary name and renamed; or a binary file object.
        compress: zlib packets inside the file, which every version of the viewer reads.
        findings: judgements to draw as instants: a table with the columns ``code``, ``title``, ``severity``,
            ``detail``, ``count``, ``track_id`` and ``ts``; those without a lane go to a track of their own, those
            without a time are not drawn. Or what returns the table, called when the last batch has come.
        in_parts: write each batch as it comes and let go of it, which is faster and takes no more memory for a longer
            capture. Readers see the same events on the same tracks; the bytes differ, and what would have gone below a
            slice of an earlier batch that goes on goes to a further row. Flows must stay within a batch.

    Returns:
        What was written and what could not be.

    Raises:
        InternalError: the trace breaks a promise of the model: a time before the epoch, or a row on a track that is
            not there or not of its kind.
    """
    with atomic_writer(out) as file, _Sink(file, compress=compress) as sink:
        if in_parts and not isinstance(trace, Trace):
            with _Parts(sink) as parts:
                return parts.write(trace, findings)
        whole = trace if isinstance(trace, Trace) else Trace.concat(trace)
        table = findings() if callable(findings) else findings
        salt = _id_offset(whole)
        drawing = EventStream(whole, table, salt)
        lanes = drawing.lanes
        uuids = _uuids(drawing, salt)
        lost = _lost(whole)
        descriptors = _descriptors(whole, _Rows(lanes.track, lanes.row, uuids, drawing.extra_track), salt)
        for packets in _blocks(descriptors, lost):
            sink.write(packets)
        origin = drawing.start()
        if origin is not None:
            sink.write(_snapshot(origin))
        for block in _filled(_encoder(whole, drawing, uuids, origin=origin or 0)):
            sink.write(block)
        return _report(
            sink,
            slices=len(whole.slices),
            gaps=len(whole.gaps),
            instants=len(whole.instants),
            samples=len(whole.counters),
            findings=drawing.findings,
            flows=drawing.flows_drawn,
            flows_undrawn=len(whole.flows) - drawing.flows_drawn,
            rows=len(lanes.track),
            overflow_rows=int(np.count_nonzero(lanes.row)),
            lost=lost,
        )


def _report(sink: _Sink, **counts: int) -> WriteReport:
    sink.flush()
    return WriteReport(**counts, bytes=sink.bytes, raw_bytes=sink.raw_bytes)


def _lost(trace: Trace) -> int:
    stats = trace.stats
    return int(stats.values("count")[stats.values("severity") == "data_loss"].sum())


def _filled(encoder: core.PerfettoEncoder) -> Iterator[memoryview]:
    """Yield blocks of whole packets; each is valid until the next one is asked for."""
    try:
        while block := encoder.fill(BLOCK):
            yield block
    except ValueError as error:
        raise InternalError(f"the trace cannot be drawn: {error}") from error


class _Compressed(NamedTuple):
    """A block on its way to the file.

    Attributes:
        stream: it compressed.
        raw_bytes: its size before.
    """

    stream: bytes
    raw_bytes: int


class _Sink:
    """Writes blocks of whole packets, each as it is or as one compressed packet; some are compressed meanwhile."""

    def __init__(self, file: BinaryIO, *, compress: bool) -> None:
        self._file = file
        self.compress = compress
        self._workers: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[bytes]] = deque()
        self.bytes = 0
        self.raw_bytes = 0

    def __enter__(self) -> _Sink:
        return self

    def __exit__(self, *error: object) -> None:
        for waiting in self._waiting:
            waiting.cancel()
        if self._workers is not None:
            self._workers.shutdown()

    def write(self, block: bytes | memoryview) -> None:
        self.raw_bytes += len(block)
        if not self.compress:
            self._put(block)
            return
        if self._workers is None and _CORES > 1 and len(block) >= BLOCK:
            self._workers = ThreadPoolExecutor(min(_CORES, _MOST_WORKERS), "lanescope-compress")
        if self._workers is None:
            self._put_compressed(_compressed(block))
            return
        # The block is the encoder's, which goes on meanwhile.
        self._waiting.append(self._workers.submit(_compressed, bytes(block)))
        while len(self._waiting) > _MOST_WAITING or (self._waiting and self._waiting[0].done()):
            self._put_compressed(self._waiting.popleft().result())

    def put(self, compressed: _Compressed) -> None:
        """Write a block that is compressed already."""
        self.raw_bytes += compressed.raw_bytes
        self._put_compressed(compressed.stream)

    def flush(self) -> None:
        """Write what waits."""
        while self._waiting:
            self._put_compressed(self._waiting.popleft().result())

    def _put_compressed(self, stream: bytes) -> None:
        # The head of a packet that holds only the field compressed_packets.
        body = _tag(50, 2) + _varint(len(stream))
        self._put(_tag(1, 2) + _varint(len(body) + len(stream)) + body)
        self._put(stream)

    def _put(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self.bytes += len(data)


def _compressed(block: bytes | memoryview) -> bytes:
    from isal import isal_zlib

    stream: bytes = isal_zlib.compress(block, _LEVEL)
    return stream


def _compressed_blocks(encoder: core.PerfettoEncoder) -> list[_Compressed]:
    return [_Compressed(_compressed(block), len(block)) for block in _filled(encoder)]


# --- parts: each batch as it comes ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a drawing, in the order of their descriptors.

    Attributes:
        track: int64 [rows], the track of each.
        row: int64 [rows], its number within the track; 0 is the track itself.
        uuid: int64 [rows], what packets call it.
        extra_track: whether anything lies on the track of findings.
    """

    track: Int64
    row: Int64
    uuid: Int64
    extra_track: bool


class _Places:
    """The rows of a file that is written in parts, and until when each is taken."""

    def __init__(self, salt: int) -> None:
        self._salt = salt
        self._ends: dict[int, list[int]] = {}  # by track
        self._further = 0
        self.uuids: dict[tuple[int, int], int] = {}  # by track and row

    def of(self, drawing: EventStream) -> Int64:
        """Return the uuid of each row of a part's drawing, and remember until when it is taken.

        A part that begins on a row before an earlier one ends there goes to the first row that is free by then.
        """
        lanes, placed = drawing.lanes, drawing.placement
        uuids = np.empty(len(lanes.track), np.int64)
        used: set[tuple[int, int]] = set()
        for lane, (track, row) in enumerate(zip(lanes.track.tolist(), lanes.row.tolist(), strict=True)):
            first, last = lanes.ranges[lane, :2].tolist()
            ends = self._ends.setdefault(track, [])
            if first < last:
                begin, end = int(placed.begin[first]), int(placed.end[first:last].max())
                row = next((i for i, free in enumerate(ends) if free <= begin and (track, i) not in used), len(ends))
                ends[row : row + 1] = [end]
            used.add((track, row))
            uuids[lane] = self._uuid(track, row)
        return uuids

    def _uuid(self, track: int, row: int) -> int:
        known = self.uuids.get((track, row))
        if known is None:
            known = self._salt + 1 + track
            if row:
                known = self._salt + _FURTHER_ROWS + self._further
                self._further += 1
            self.uuids[track, row] = known
        return known

    def rows(self, *, extra_track: bool) -> _Rows:
        """Return all rows by track and number."""
        known = sorted(self.uuids.items())
        track, row = np.array([key for key, _ in known], np.int64).reshape(-1, 2).T
        return _Rows(track, row, np.array([uuid for _, uuid in known], np.int64), extra_track)


class _Parts:
    """Writes the events of every batch, then the descriptors of all tracks.

    Batches are laid out and compressed side by side, also while the next ones are decoded, and written in their order.
    The packets do not depend on the number of threads.
    """

    def __init__(self, sink: _Sink) -> None:
        self._sink = sink
        self._workers = ThreadPoolExecutor(min(_CORES, _MOST_WORKERS), "lanescope-encode") if _CORES > 1 else None
        self._drawn: deque[tuple[Trace, Future[EventStream]]] = deque()
        self._encoded: deque[Future[list[_Compressed]]] = deque()
        self._places: _Places | None = None
        self._salt = 0
        self._origin: int | None = None
        self._counts = dict.fromkeys(("slices", "gaps", "instants", "samples", "findings", "flows", "flows_undrawn"), 0)

    def __enter__(self) -> _Parts:
        return self

    def __exit__(self, *error: object) -> None:
        if self._workers is not None:
            self._workers.shutdown(cancel_futures=True)

    def write(self, batches: Iterable[Trace], findings: Table | Callable[[], Table] | None) -> WriteReport:
        """Write all batches; then the findings, which may be known only by then; then what the tracks are."""
        last: Trace | None = None
        for batch in batches:
            last = batch
            self._draw(batch, None)
            del batch  # the decoder writes the next one where it lies
        if last is None:
            raise ValueError("a decode has at least one batch")
        self._encode(keep=0)
        table = findings() if callable(findings) else findings
        extra_track = False
        if table is not None and len(table):
            bare = Trace(last.time, {name: getattr(last, name) for name in SHARED})
            self._draw(bare, table)
            extra_track = self._drawn[-1][1].result().extra_track
            self._encode(keep=0)
        while self._encoded:
            self._put()
        assert self._places is not None
        rows = self._places.rows(extra_track=extra_track)
        lost = _lost(last)
        for packets in _blocks(_descriptors(last, rows, self._salt), lost):
            self._sink.write(packets)
        return _report(
            self._sink, **self._counts, rows=len(rows.track), overflow_rows=int(np.count_nonzero(rows.row)), lost=lost
        )

    def _draw(self, part: Trace, table: Table | None) -> None:
        """Begin to lay a part out; go on with those before it."""
        if self._places is None:
            self._salt = _id_offset(part)
            self._places = _Places(self._salt)
        self._drawn.append((part, self._submit(EventStream, part, table, self._salt)))
        self._encode(keep=1)

    def _encode(self, *, keep: int) -> None:
        """Begin to encode what is laid out, all but the last few; write what is done."""
        while len(self._drawn) > keep:
            part, drawn = self._drawn.popleft()
            drawing = drawn.result()
            assert self._places is not None
            if self._origin is None and (origin := drawing.start()) is not None:
                self._origin = origin
                self._sink.write(_snapshot(origin))
            encoder = _encoder(part, drawing, self._places.of(drawing), is_part=True, origin=self._origin or 0)
            self._count(part, drawing)
            if self._sink.compress:
                self._encoded.append(self._submit(_compressed_blocks, encoder))
            else:  # what is written at once is still in the processor's caches
                for block in _filled(encoder):
                    self._sink.write(block)
            while len(self._encoded) > _MOST_PARTS or (self._encoded and self._encoded[0].done()):
                self._put()

    def _count(self, part: Trace, drawing: EventStream) -> None:
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

    def _put(self) -> None:
        for block in self._encoded.popleft().result():
            self._sink.put(block)

    def _submit(self, function: Callable[..., _T], *arguments: Any) -> Future[_T]:
        if self._workers is not None:
            return self._workers.submit(function, *arguments)
        done: Future[_T] = Future()
        done.set_result(function(*arguments))
        return done


# --- descriptors: a few packets a track, so Python writes them ---------------------------------------------------


_SHORT = [bytes((value,)) for value in range(0x80)]


@lru_cache(maxsize=1 << 12)
def _varint(value: int) -> bytes:
    if value < len(_SHORT):
        return _SHORT[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@cache
def _tag(number: int, wire: int) -> bytes:
    return _varint(number << 3 | wire)


def _message(*fields: tuple[int, int | str | bytes]) -> bytes:
    """Encode (field number, value): integers as varints, texts and messages with their length in front."""
    out: list[bytes] = []
    for number, value in fields:
        if isinstance(value, int):
            out += (_tag(number, 0), _varint(value))
        else:
            body = value.encode("utf-8", "replace") if isinstance(value, str) else value
            out += (_tag(number, 2), _varint(len(body)), body)
    return b"".join(out)


_SEQUENCE = _message((10, 1))


def _packet(*fields: tuple[int, int | str | bytes]) -> bytes:
    """A packet of sequence 1, which carries no events."""
    return _message((1, _SEQUENCE + _message(*fields)))


def _blocks(descriptors: Iterable[bytes], lost: int) -> Iterator[bytes]:
    block = bytearray()
    for descriptor in descriptors:
        block += _packet((60, descriptor))
        if len(block) >= BLOCK:
            yield bytes(block)
            block.clear()
    if lost:
        # TraceStats of a recorder that dropped packets: every viewer shows it.
        block += _packet((35, _message((1, _message((19, lost))), (7, 1))))
    if block:
        yield bytes(block)


def _snapshot(origin: int) -> bytes:
    """Return the packet that begins the sequence of the events: its clock, which counts on from packet to packet.

    There is one for all lanes, as the viewer marks each snapshot on a track of its own.
    """
    clock = _message((1, core.PerfettoEncoder.CLOCK), (2, origin), (3, 1))
    readings = _message((1, clock), (1, _message((1, _TRACE_CLOCK), (2, origin))))
    return _message((1, _message((10, core.PerfettoEncoder.SEQUENCE), (13, 1), (87, 1), (6, readings))))


def _id_offset(trace: Trace) -> int:
    """Return what is added to ids, so that files of different captures can be opened as one timeline; 0 or >= 2^32."""
    if not len(trace.inputs):
        return 0
    digest = hashlib.sha256("".join(trace.inputs.values("sha256").tolist()).encode()).digest()
    return (int.from_bytes(digest[:4], "little") >> 1) << 32


def _uuids(drawing: EventStream, salt: int) -> Int64:
    """Return the track id of every row: a track's own for row 0, others behind those of all tracks."""
    overflow = drawing.lanes.row > 0
    uuids = drawing.lanes.track + (salt + 1)
    uuids[overflow] = salt + drawing.tracks + 2 + np.arange(np.count_nonzero(overflow))
    return uuids


def _descriptors(trace: Trace, rows: _Rows, salt: int) -> Iterator[bytes]:
    """Yield the descriptor of every track, then those of overflow rows, then that of the track of findings."""
    tracks = trace.tracks
    parents = _parents(tracks)
    has_children = np.bincount(parents[parents >= 0], minlength=len(tracks)).tolist()
    ranks = _ranks(tracks.values("sort_key"), parents).tolist()
    overflow = np.flatnonzero(rows.row)
    many = set(rows.track[overflow].tolist())
    columns = (
        tracks.values("name").tolist(),
        tracks.values("kind").tolist(),
        tracks.values("unit").tolist(),
        parents.tolist(),
    )
    again: dict[int, list[tuple[int, int | str | bytes]]] = {}
    for row, (name, kind, unit, parent) in enumerate(zip(*columns, strict=True)):
        uuid = salt + 1 + row
        fields: list[tuple[int, int | str | bytes]] = []
        if parent >= 0:
            fields += [(2, name), (5, salt + 1 + parent)]
        else:
            fields += [(2, _title(name, trace.time)), (14, _epoch(trace.time))]
        fields.append((12, ranks[row]))
        if row in many:
            fields += [(15, _MERGE_BY_KEY), (17, uuid)]
            again[row] = list(fields)
        else:
            fields.append((15, _MERGE_NOT))
        if has_children[row]:
            fields.append((11, _ORDER_EXPLICIT))
        if kind == "counter":
            known = _COUNTER_UNITS.get(unit)
            fields.append((8, _message((3, known) if known else (6, unit))))
        yield _message((1, uuid), *fields)
    for lane in overflow.tolist():
        yield _message((1, int(rows.uuid[lane])), *again[int(rows.track[lane])])
    if rows.extra_track:
        yield _message((1, salt + 1 + len(tracks)), (2, "findings"), (15, _MERGE_NOT))


def _title(name: str, time: TimeBase) -> str:
    return f"{name} [cycles]" if time.time_unit == "cycles" else name


def _epoch(time: TimeBase) -> str:
    unit = "time unit: cycles, 1 cycle drawn as 1 ns" if time.time_unit == "cycles" else "time unit: ns"
    return f"{unit}; 0 is {time.epoch_ns} ns on the {time.epoch_kind} clock"


def _parents(tracks: Table) -> Int64:
    """Return the row of each track's parent, -1 for top tracks; ``InternalError`` if the tree is too deep or a ring."""
    parents = np.where(tracks.valid("parent_id"), rows_of(tracks.values("id"), tracks.values("parent_id")), -1)
    ancestors = parents
    for _ in range(MAX_ANCESTORS + 1):
        if (ancestors < 0).all():
            return parents
        ancestors = np.where(ancestors >= 0, parents[ancestors], -1)
    raise InternalError(f"tracks have more than {MAX_ANCESTORS} others above them, or in a ring")


def _ranks(sort_key: Int64, parents: Int64) -> Int64:
    """Return the place of each track among its siblings, from 0."""
    order = np.lexsort((np.arange(len(parents)), sort_key, parents))
    family = parents[order]
    starts = np.flatnonzero(np.diff(family, prepend=-2)) if len(family) else _NO_ROWS
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return ranks


# --- events: the native encoder writes them ------------------------------------------------------------------------


def _encoder(trace: Trace, drawing: EventStream, uuids: Int64, **options: Any) -> core.PerfettoEncoder:
    lanes = drawing.lanes
    slices, instants = drawn_events(trace, drawing)
    return core.PerfettoEncoder(
        slices,
        instants,
        drawn_samples(trace, drawing),
        encode_utf8(drawing.names.texts),
        encode_utf8(drawing.categories.texts),
        uuids[lanes.file_order].astype(np.uint64),
        lanes.ranges[lanes.file_order],
        **options,
    )
