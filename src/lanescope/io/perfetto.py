"""Perfetto: a trace as TrackEvent protobuf, for ui.perfetto.dev and the trace processor.

What becomes of the model:

* A track is a track of the same place; siblings are ordered by ``sort_key``, hosts stand above devices. A number takes
  the place of an address in its name (``viewer_names``), and the description has the whole name. A lane whose slices
  overlap gets further rows of the same name that the viewer draws stacked, as ``trace.row_packing`` assigned them.
* A slice is a slice; one without an end stays open. A gap is a slice of category ``lanescope.gap``, named after its
  cause. An instant is an instant, a counter's sample a sample.
* Columns of detail tables that are declared as arguments go with their slice or instant, unknown values left out;
  ``quality`` where it is not exact, ``flags`` where any is set, ``last_known_ts`` where it is known.
* A slice or an instant that a plausibility rule suspects has the argument ``suspect``: the codes of those rules.
* A flow is an arrow from slice to slice. Where an end of it has no slice, or reaches one that was running before the
  cause began, it ends at an instant of category ``lanescope.flow``. The format orders the ends by time, so an effect
  that comes before its cause begins cannot be drawn: those are counted in the report.
* Stats of severity ``data_loss`` light the viewer's own data-loss warning, with their sum.

Times are the trace's: ns since its epoch, which the descriptions of the top tracks name. A trace in cycles is drawn
with one cycle as 1 ns; the names of its top tracks and the trace's metadata have that.

Source: google/perfetto, protos/perfetto/trace/ (messages) and docs/reference/synthetic-track-event.md (semantics).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np

from lanescope._native import core
from lanescope.errors import InternalError, UsageError
from lanescope.io import perfetto_packets
from lanescope.io.atomic_file import Output, is_regular
from lanescope.io.event_args import drawn_events, drawn_samples, with_arguments
from lanescope.io.event_stream import EventStream, Int64, encode_utf8
from lanescope.io.file_sink import FileSink, drive_trace
from lanescope.io.part_rows import PartRows
from lanescope.io.perfetto_packets import FlowIds, Rows, WriteReport, blocks, descriptors, id_offset, snapshot, uuids
from lanescope.trace import Table, Trace
from lanescope.trace.streams import StreamInfo, Takes, bare
from lanescope.trace.trace import SHARED

#: Bytes that are encoded, compressed and written at a time; upstream advises compressed packets below 512 kB.
BLOCK = 384 << 10

_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
#: Blocks are compressed by at most so many threads, and so many blocks wait to be written.
_MOST_WORKERS, _MOST_WAITING = 4, 16
#: Of a file in parts so many may be encoded, or wait to be written.
_MOST_PARTS = 2
#: Parts that are encoded side by side have at least so many events; those of more are encoded block by block.
_PART_EVENTS, _MOST_PART_EVENTS = 1 << 16, 1 << 19
#: So many parts are being encoded, or wait to be written.
_MOST_ENCODED = 6

#: Of parts that are not compressed: room for what one takes as a rule, and how many wait to be written.
_PLAIN_BLOCK, _MOST_PLAIN = (2 << 20) - (64 << 10), 3

#: Rows that are no tracks of the trace are called from here on, in a file of parts.
_FURTHER_ROWS = 1 << 31

_T = TypeVar("_T")
_drawing = partial(EventStream, groups_flows=True)


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
        InternalError: the trace breaks a promise of the model: a row on a track that is not there or not of its kind.
        UsageError: a time before 0, or a slice of negative length, or that ends later than 64 bits count.
    """
    return drive_trace(PerfettoSink(out, compress=compress), trace, findings, in_parts=in_parts)


class PerfettoSink(FileSink):
    """Writes a Perfetto trace: sorted batches in parts, as they come, a whole trace at once.

    Args:
        out: a path, written under a temporary name and renamed; or a binary file object.
        compress: as ``write`` takes it.
    """

    takes: Takes = "sorted"

    def __init__(self, out: Output, *, compress: bool = True) -> None:
        super().__init__(out)
        self._compress = compress
        self._parts: _Parts | None = None
        self._whole: Trace | None = None

    def start(self, info: StreamInfo) -> None:
        """Open the file."""
        self._whole = None
        self._packets = self.stack.enter_context(_Packets(self.open(), compress=self._compress))
        if info.is_sorted:
            self._parts = self.stack.enter_context(_Parts(self._packets))

    def write(self, batch: Trace) -> None:
        """Write the next batch, or keep the one there is until the findings are known."""
        if self._parts is not None:
            self._parts.write(batch)
        elif self._whole is not None:
            raise ValueError("a stream that is not sorted is written as one batch")
        else:
            self._whole = with_arguments(batch)

    def finish(self, annotations: Table | None) -> WriteReport:
        """Write the findings and what the tracks are."""
        if self._parts is not None:
            report = self._parts.finish(annotations)
        else:
            assert self._whole is not None
            report = _at_once(self._whole, annotations, self._packets)
            self._whole = None
        self.commit()
        return report


def _at_once(trace: Trace, findings: Table | None, sink: _Packets) -> WriteReport:
    """Write a whole trace: what the tracks are, then all events."""
    salt = id_offset(trace)
    drawing = _drawing(trace, findings)
    lanes = drawing.lanes
    row_uuids = uuids(drawing, salt)
    lost = perfetto_packets.lost_records(trace)
    rows = Rows(lanes.track, lanes.row, row_uuids, drawing.extra_track)
    origin = drawing.start()
    encoder = _encoder(trace, drawing, row_uuids, origin=origin or 0, flow_base=salt)
    clock = [] if origin is None else [snapshot(origin)]
    sink.write_events(encoder, chain(blocks(descriptors(trace, rows, salt), lost, BLOCK, trace.time), clock))
    return _report(
        sink,
        trace,
        salt,
        FlowIds().add(salt, drawing.flow_groups),
        slices=len(trace.slices),
        gaps=len(trace.gaps),
        instants=len(trace.instants),
        samples=len(trace.counters),
        findings=drawing.findings,
        flows=drawing.flows_drawn,
        flows_undrawn=len(trace.flows) - drawing.flows_drawn,
        rows=len(lanes.track),
        overflow_rows=int(np.count_nonzero(lanes.row)),
        lost=lost,
    )


def _report(sink: _Packets, trace: Trace, salt: int, ids: FlowIds, **counts: int) -> WriteReport:
    sink.write(ids.facts(trace, salt, is_empty=not len(trace.tracks) and not counts["findings"]))
    sink.flush()
    return WriteReport(**counts, bytes=sink.bytes, raw_bytes=sink.raw_bytes)


def _filled(encoder: core.PerfettoEncoder, *, keeps_last: bool = False) -> Iterator[memoryview]:
    """Yield blocks of whole packets; each is valid until the next is asked for, or the one after (``keeps_last``)."""
    # Those that are handed to another thread are fewer.
    size = 2 * BLOCK if keeps_last else BLOCK
    while block := _filled_block(encoder, size, keeps_last=keeps_last):
        yield block


def _filled_block(encoder: core.PerfettoEncoder, size: int, *, keeps_last: bool = False) -> memoryview:
    try:
        return encoder.fill(size, keeps_last)
    except OverflowError:
        hint = "use --start 0, or write .json or .parquet"
        raise UsageError("cannot write times before 0: Perfetto has none", hint=hint) from None
    except ValueError as error:
        raise InternalError(f"the trace cannot be drawn: {error}") from error


class _Compressed(NamedTuple):
    """A block on its way to the file, and its size before it was compressed."""

    stream: bytes
    raw_bytes: int


class _Plain(NamedTuple):
    """What an encoder has made, in its memory."""

    encoder: core.PerfettoEncoder
    blocks: list[bytes | memoryview]


_Blocks = list[_Compressed] | _Plain


class _Packets:
    """Writes blocks of whole packets, each as it is or as one compressed packet; some are compressed meanwhile."""

    def __init__(self, file: BinaryIO, *, compress: bool) -> None:
        self._file = file
        self.compress = compress
        self._workers: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[bytes]] = deque()
        self.bytes = 0
        self.raw_bytes = 0

    def __enter__(self) -> _Packets:
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
            self._put_compressed(perfetto_packets.compress_block(block))
            return
        # The block is the encoder's, which goes on meanwhile.
        self._waiting.append(self._workers.submit(perfetto_packets.compress_block, bytes(block)))
        while len(self._waiting) > _MOST_WAITING or (self._waiting and self._waiting[0].done()):
            self._put_compressed(self._waiting.popleft().result())

    def write_events(self, encoder: core.PerfettoEncoder, before: Iterable[bytes] = ()) -> None:
        """Write what comes ``before`` the events of an encoder, and all of those; parts are encoded side by side."""
        parts = encoder.parts(_PART_EVENTS) if self.compress or _CORES > 1 else [encoder]
        if _CORES == 1 or len(parts) == 1:
            for packets in before:
                self.write(packets)
            for part in parts:
                self._write_blocks(part)
            return
        encode, most = (_compressed_blocks, _MOST_ENCODED) if self.compress else (_plain_blocks, _MOST_PLAIN)
        encoded: deque[Future[_Blocks]] = deque()
        with ThreadPoolExecutor(min(_CORES, _MOST_WORKERS), "lanescope-encode") as workers:
            try:
                waiting = deque(parts)
                while waiting and len(encoded) < most and not _is_large(waiting[0]):
                    encoded.append(workers.submit(encode, waiting.popleft()))
                for packets in before:
                    self.write(packets)
                while encoded or waiting:
                    if encoded:
                        self._put_all(encoded.popleft().result())
                    else:
                        self._write_blocks(waiting.popleft())
                    while waiting and len(encoded) < most and not _is_large(waiting[0]):
                        encoded.append(workers.submit(encode, waiting.popleft()))
            except BaseException:
                workers.shutdown(cancel_futures=True)
                raise

    def _write_blocks(self, encoder: core.PerfettoEncoder) -> None:
        if self.compress or _CORES == 1 or not is_regular(self._file):
            for block in _filled(encoder):
                self.write(block)
            return
        # The system copies a block while the next one is encoded.
        writing: Future[None] | None = None
        with ThreadPoolExecutor(1, "lanescope-write") as writer:
            for block in _filled(encoder, keeps_last=True):
                if writing is not None:
                    writing.result()
                elif len(block) < 2 * BLOCK:  # the only one
                    self.write(block)
                    continue
                self.raw_bytes += len(block)
                writing = writer.submit(self._put, block)
            if writing is not None:
                writing.result()

    def _put_all(self, blocks: _Blocks) -> None:
        if isinstance(blocks, _Plain):
            for block in blocks.blocks:
                self.write(block)
            return
        for compressed in blocks:
            self.put(compressed)

    def put(self, compressed: _Compressed) -> None:
        """Write a block that is compressed already, behind those that wait."""
        self.flush()
        self.raw_bytes += compressed.raw_bytes
        self._put_compressed(compressed.stream)

    def flush(self) -> None:
        """Write what waits."""
        while self._waiting:
            self._put_compressed(self._waiting.popleft().result())

    def _put_compressed(self, stream: bytes) -> None:
        self._put(perfetto_packets.compressed_head(len(stream)))
        self._put(stream)

    def _put(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self.bytes += len(data)


def _is_large(part: core.PerfettoEncoder) -> bool:
    return part.events > _MOST_PART_EVENTS


def _plain_blocks(encoder: core.PerfettoEncoder) -> _Plain:
    """Return all blocks of an encoder; as a rule that is one, which is not copied."""
    blocks: list[bytes | memoryview] = []
    while not encoder.is_at_end:
        if blocks:
            blocks[-1] = bytes(blocks[-1])
        blocks.append(_filled_block(encoder, _PLAIN_BLOCK))
    return _Plain(encoder, blocks)


def _compressed_blocks(encoder: core.PerfettoEncoder) -> list[_Compressed]:
    return [_Compressed(perfetto_packets.compress_block(block), len(block)) for block in _filled(encoder)]


# --- parts: each batch as it comes ---------------------------------------------------------------------------------


class _Parts:
    """Writes the events of every batch, then the descriptors of all tracks; those of counters before their samples.

    Batches are laid out and compressed side by side, also while the next ones are decoded, and written in their order.
    The packets do not depend on the number of threads.
    """

    def __init__(self, sink: _Packets) -> None:
        self._sink = sink
        self._workers = ThreadPoolExecutor(min(_CORES, _MOST_WORKERS), "lanescope-encode") if _CORES > 1 else None
        self._drawn: deque[tuple[Trace, Future[EventStream], int]] = deque()  # and what goes on the ids of flows
        self._encoded: deque[Future[list[_Compressed]]] = deque()
        self._rows_seen: PartRows | None = None
        self._seen = np.empty(0, np.bool_)  # tracks of which a row 0 is drawn
        self._further: dict[tuple[int, int], int] = {}  # uuids by track and row, of all other rows
        self._described: set[int] = set()  # counters
        self._last: Trace | None = None
        self._salt = 0
        self._flows = 0
        self._flow_ids = FlowIds()
        self._origin: int | None = None
        self._counts = dict.fromkeys(("slices", "gaps", "instants", "samples", "findings", "flows", "flows_undrawn"), 0)

    def __enter__(self) -> _Parts:
        return self

    def __exit__(self, *error: object) -> None:
        if self._workers is not None:
            self._workers.shutdown(cancel_futures=True)

    def write(self, batch: Trace) -> None:
        """Begin to write a batch."""
        self._last = bare(batch)
        self._draw(batch, None)

    def finish(self, findings: Table | None) -> WriteReport:
        """Write what is begun; then the findings, then what the tracks are."""
        last = self._last
        if last is None:
            raise ValueError("a decode has at least one batch")
        self._encode(keep=0)
        extra_track = False
        if findings is not None and len(findings):
            self._draw(Trace(last.time, {name: getattr(last, name) for name in SHARED}), findings)
            extra_track = self._drawn[-1][1].result().extra_track
            self._encode(keep=0)
        while self._encoded:
            self._put()
        rows = self._rows(extra_track=extra_track)
        lost = perfetto_packets.lost_records(last)
        all_tracks = enumerate(descriptors(last, rows, self._salt))
        for packets in blocks((each for row, each in all_tracks if row not in self._described), lost, BLOCK, last.time):
            self._sink.write(packets)
        more = {"rows": len(rows.track), "overflow_rows": int(np.count_nonzero(rows.row)), "lost": lost}
        return _report(self._sink, last, self._salt, self._flow_ids, **self._counts, **more)

    def _draw(self, part: Trace, table: Table | None) -> None:
        """Begin to lay a part out; go on with those before it."""
        if self._rows_seen is None:
            self._rows_seen = PartRows()
            self._salt = id_offset(part)
        # Readers join the ends of flows by their ids, over all batches.
        self._drawn.append((part, self._submit(_drawing, part, table), self._salt + self._flows))
        self._flows += len(part.flows)
        self._encode(keep=1)

    def _uuids(self, drawing: EventStream) -> Int64:
        """Return what packets call each row of a part's drawing, int64 [rows]."""
        assert self._rows_seen is not None
        track, row = self._rows_seen.place(drawing)
        if drawing.tracks >= len(self._seen):
            self._seen = np.append(self._seen, np.zeros(drawing.tracks + 1 - len(self._seen), np.bool_))
        self._seen[track[row == 0]] = True
        found: Int64 = track + (self._salt + 1)
        for lane in np.flatnonzero(row).tolist():
            place = int(track[lane]), int(row[lane])
            found[lane] = self._further.setdefault(place, self._salt + _FURTHER_ROWS + len(self._further))
        return found

    def _rows(self, *, extra_track: bool) -> Rows:
        """Return all rows by track and number."""
        first = np.flatnonzero(self._seen)
        places = np.array(list(self._further), np.int64).reshape(-1, 2)
        track, row = np.append(first, places[:, 0]), np.append(np.zeros(len(first), np.int64), places[:, 1])
        uuid = np.append(first + (self._salt + 1), np.array(list(self._further.values()), np.int64))
        order = np.lexsort((row, track))
        return Rows(track[order], row[order], uuid[order], extra_track)

    def _encode(self, *, keep: int) -> None:
        """Begin to encode what is laid out, all but the last few; write what is done."""
        while len(self._drawn) > keep:
            part, drawn, flow_base = self._drawn.popleft()
            drawing = drawn.result()
            if self._origin is None and (origin := drawing.start()) is not None:
                self._origin = origin
                self._sink.write(snapshot(origin))
            for packets in blocks(perfetto_packets.counter_descriptors(part, self._salt, self._described), 0, BLOCK):
                while self._encoded:  # what is written does not depend on how fast others were
                    self._put()
                self._sink.write(packets)
            self._flow_ids.add(flow_base, drawing.flow_groups)
            row_uuids, start = self._uuids(drawing), self._origin or 0
            encoder = _encoder(part, drawing, row_uuids, is_part=True, origin=start, flow_base=flow_base)
            self._count(part, drawing)
            if not self._sink.compress:
                self._sink.write_events(encoder)
            for some in encoder.parts(_PART_EVENTS) if self._sink.compress else ():
                self._encoded.append(self._submit(_compressed_blocks, some))
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
