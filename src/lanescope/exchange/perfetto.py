"""Perfetto: a trace as TrackEvent protobuf, for ui.perfetto.dev and the trace processor.

What becomes of the model:

* A track is a track of the same name and place; siblings are ordered by ``sort_key``. A lane whose slices overlap gets
  further rows of the same name that the viewer draws stacked, as ``trace.layout.place`` assigned them.
* A slice is a slice; one without an end stays open. A gap is a slice of category ``lanescope.gap``, named after its
  cause. An instant is an instant, a counter's sample a sample.
* Columns of detail tables that are declared as arguments go with their slice or instant, unknown values left out;
  ``quality`` where it is not exact, ``flags`` where any is set, ``last_seen_ts`` where it is known.
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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import BinaryIO

import numpy as np

from lanescope._native import core
from lanescope.errors import InternalError
from lanescope.exchange.arguments import drawn_events, drawn_samples
from lanescope.exchange.drawing import Drawing, Int64, packed
from lanescope.exchange.output import Output, opened
from lanescope.trace import Table, TimeBase, Trace
from lanescope.trace.layout import rows_of

#: Bytes that are encoded, compressed and written at a time; upstream advises compressed packets below 512 kB.
BLOCK = 384 << 10

#: The trace processor refuses tracks with 100 ancestors; its WebAssembly build (v52) runs out of stack at 77.
MAX_ANCESTORS = 64

#: igzip's level 1.
_LEVEL = 1

_MERGE_NOT, _MERGE_BY_KEY = 2, 3
_ORDER_EXPLICIT = 3
_COUNTER_UNITS = {"ns": 1, "1": 2, "bytes": 3}

_NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class WriteReport:
    """What was written.

    Attributes:
        slices: slices of the trace.
        gaps: gaps, drawn as slices.
        instants: instants of the trace.
        samples: counter samples.
        findings: findings, drawn as instants.
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
    trace: Trace | Iterable[Trace], out: Output, *, compress: bool = True, findings: Table | None = None
) -> WriteReport:
    """Write a trace, or the batches of one decode, as a Perfetto trace.

    Args:
        trace: the trace, or its batches; they are joined first, since a slice may come batches after those it encloses.
        out: a path, written under a temporary name and renamed; or a binary file object.
        compress: zlib packets inside the file, which every version of the viewer reads.
        findings: judgements to draw as instants: a table with the columns ``code``, ``title``, ``severity``,
            ``detail``, ``count``, ``track_id`` and ``ts``; those without a lane or a time go to a track of their own.

    Returns:
        What was written and what could not be.

    Raises:
        InternalError: the trace breaks a promise of the model: a time before the epoch, or a row on a track that is
            not there or not of its kind.
    """
    whole = trace if isinstance(trace, Trace) else Trace.concat(trace)
    salt = _salt(whole)
    drawing = Drawing(whole, findings, salt)
    stats = whole.stats
    lost = int(stats["count"][stats["severity"] == "data_loss"].sum())
    with opened(out) as file:
        sink = _Sink(file, compress=compress)
        uuids = _uuids(drawing, salt)
        for packets in _blocks(_descriptors(whole, drawing, uuids, salt), lost):
            sink.write(packets)
        encoder = _encoder(whole, drawing, findings, uuids)
        try:
            while block := encoder.fill(BLOCK):
                sink.write(block)
        except ValueError as error:
            raise InternalError(f"the trace cannot be drawn: {error}") from error
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
        bytes=sink.bytes,
        raw_bytes=sink.raw_bytes,
    )


class _Sink:
    """Writes blocks of whole packets, each as it is or as one compressed packet."""

    def __init__(self, file: BinaryIO, *, compress: bool) -> None:
        self._file = file
        self._compress = compress
        self.bytes = 0
        self.raw_bytes = 0

    def write(self, block: bytes | memoryview) -> None:
        self.raw_bytes += len(block)
        if self._compress:
            from isal import isal_zlib

            # The head of a packet that holds only the field compressed_packets.
            stream = isal_zlib.compress(block, _LEVEL)
            body = _tag(50, 2) + _varint(len(stream))
            head = _tag(1, 2) + _varint(len(body) + len(stream)) + body
            self._file.write(head)
            self.bytes += len(head)
            block = stream
        self._file.write(block)
        self.bytes += len(block)


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


def _salt(trace: Trace) -> int:
    """Return what is added to ids, so that files of different captures can be opened as one timeline; 0 or >= 2^32."""
    if not len(trace.inputs):
        return 0
    digest = hashlib.sha256("".join(trace.inputs["sha256"].tolist()).encode()).digest()
    return (int.from_bytes(digest[:4], "little") >> 1) << 32


def _uuids(drawing: Drawing, salt: int) -> Int64:
    """Return the track id of every row: a track's own for row 0, others behind those of all tracks."""
    overflow = drawing.lanes.row > 0
    uuids = drawing.lanes.track + (salt + 1)
    uuids[overflow] = salt + drawing.tracks + 2 + np.arange(np.count_nonzero(overflow))
    return uuids


def _descriptors(trace: Trace, drawing: Drawing, uuids: Int64, salt: int) -> Iterator[bytes]:
    """Yield the descriptor of every track, then those of overflow rows, then that of the track of findings."""
    tracks = trace.tracks
    parents = _parents(tracks)
    has_children = np.bincount(parents[parents >= 0], minlength=len(tracks)).tolist()
    ranks = _ranks(tracks["sort_key"], parents).tolist()
    overflow = np.flatnonzero(drawing.lanes.row)
    many = set(drawing.lanes.track[overflow].tolist())
    columns = (tracks["name"].tolist(), tracks["kind"].tolist(), tracks["unit"].tolist(), parents.tolist())
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
        yield _message((1, int(uuids[lane])), *again[int(drawing.lanes.track[lane])])
    if drawing.extra_track:
        yield _message((1, salt + 1 + drawing.tracks), (2, "findings"), (15, _MERGE_NOT))


def _title(name: str, time: TimeBase) -> str:
    return f"{name} [cycles]" if time.time_unit == "cycles" else name


def _epoch(time: TimeBase) -> str:
    unit = "time unit: cycles, 1 cycle drawn as 1 ns" if time.time_unit == "cycles" else "time unit: ns"
    return f"{unit}; 0 is {time.epoch_ns} ns on the {time.epoch_kind} clock"


def _parents(tracks: Table) -> Int64:
    """Return the row of each track's parent, -1 for top tracks; ``InternalError`` if the tree is too deep or a ring."""
    parents = np.where(tracks.valid("parent_id"), rows_of(tracks["id"], tracks["parent_id"]), -1)
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


def _encoder(trace: Trace, drawing: Drawing, findings: Table | None, uuids: Int64) -> core.PerfettoEncoder:
    lanes = drawing.lanes
    slices, instants = drawn_events(trace, drawing, findings)
    return core.PerfettoEncoder(
        slices,
        instants,
        drawn_samples(trace, drawing),
        packed(drawing.names.texts),
        packed(drawing.categories.texts),
        uuids[lanes.file_order].astype(np.uint64),
        lanes.ranges[lanes.file_order],
    )
