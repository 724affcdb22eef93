"""Packets of a Perfetto trace that are few, so that Python writes them: descriptors of tracks, the clock, the loss.

Source: google/perfetto, protos/perfetto/trace/ (messages).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import chain
from typing import Any

import numpy as np

from lanescope._native import core
from lanescope.declaration import frozen_class
from lanescope.errors import InternalError
from lanescope.io.event_stream import EventStream, FlowGroup, Int64
from lanescope.io.viewer_names import WHOLE, shown_names
from lanescope.trace import Table, TimeBase, Trace
from lanescope.trace.row_packing import rows_of

#: The trace processor refuses tracks with 100 ancestors; its WebAssembly build (v52) runs out of stack at 77.
MAX_ANCESTORS = 64

#: BOOTTIME, the clock that readers fall back to.
_TRACE_CLOCK = 6
_MERGE_NOT, _MERGE_BY_KEY = 2, 3
_ORDER_EXPLICIT = 3
_COUNTER_UNITS = {"ns": 1, "1": 2, "bytes": 3}

#: igzip's level 1.
_LEVEL = 1

_NO_ROWS = np.empty(0, np.int64)
#: Tracks that are described at a time.
_TRACKS = 1 << 12


@frozen_class
class Rows:
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


@frozen_class
class WriteReport:
    """Report of a written file.

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


def compress_block(block: bytes | memoryview) -> bytes:
    """Return the zlib stream of a block."""
    from isal import isal_zlib

    stream: bytes = isal_zlib.compress(block, _LEVEL)
    return stream


def compressed_head(size: int) -> bytes:
    """Return the head of a packet that holds only the field compressed_packets, of ``size`` bytes."""
    body = _tag(50, 2) + _varint(size)
    return _tag(1, 2) + _varint(len(body) + size) + body


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
_PACKET, _TRACK = _tag(1, 2), _tag(60, 2)


def _packet(field: bytes, body: bytes) -> bytes:
    """A packet of sequence 1, which carries no events, with one message in it; ``field`` is the tag of that."""
    size = _varint(len(body))
    return b"".join(
        (_PACKET, _varint(len(_SEQUENCE) + len(field) + len(size) + len(body)), _SEQUENCE, field, size, body)
    )


def blocks(packets: Iterable[bytes], lost: int, size: int, time: TimeBase | None = None) -> Iterator[bytes]:
    """Yield the unit of time, descriptors and the loss as packets, joined to blocks of about ``size`` bytes."""
    block = bytearray(b"" if time is None else _metadata(time))
    for descriptor in packets:
        block += _packet(_TRACK, descriptor)
        if len(block) >= size:
            yield bytes(block)
            block.clear()
    if lost:
        # TraceStats of a recorder that dropped packets: every viewer shows it.
        block += _packet(_tag(35, 2), _message((1, _message((19, lost))), (7, 1)))
    if block:
        yield bytes(block)


def snapshot(origin: int) -> bytes:
    """Return the packet that begins the sequence of the events: its clock, which counts on from packet to packet.

    There is one for all lanes, as the viewer marks each snapshot on a track of its own.
    """
    clock = _message((1, core.PerfettoEncoder.CLOCK), (2, origin), (3, 1))
    readings = _message((1, clock), (1, _message((1, _TRACE_CLOCK), (2, origin))))
    return _message((1, _message((10, core.PerfettoEncoder.SEQUENCE), (13, 1), (87, 1), (6, readings))))


def id_offset(trace: Trace) -> int:
    """Return what is added to ids, so that files of different captures can be opened as one timeline; 0 or >= 2^32.

    It follows from the hashes of the inputs. Where they are still to be made, which takes as long as reading the files,
    it follows from the times of all events, the anchors of the clocks, and names: no two recordings share those.
    """
    if not len(trace.inputs):
        return 0
    known = trace.inputs.column("sha256")
    content = hashlib.sha256("".join(known.values.tolist()).encode() if known.is_made else b"")
    if not known.is_made:
        for values in (trace.inputs.values("size"), trace.anchors.values("ticks"), trace.anchors.values("ts")):
            content.update(np.ascontiguousarray(values).data)
        names = trace.slices.column("name").dictionary
        content.update("\0".join([*trace.tracks.values("name").tolist(), *(names.texts if names else ())]).encode())
        from isal import isal_zlib

        for table in (trace.slices, trace.instants, trace.counters):  # many, of which the offset keeps 31 bits
            times = np.ascontiguousarray(table.values("ts")).data
            content.update(isal_zlib.crc32(times).to_bytes(4, "little"))
    return (int.from_bytes(content.digest()[:4], "little") >> 1) << 32


def uuids(drawing: EventStream, salt: int) -> Int64:
    """Return the track id of every row: a track's own for row 0, others behind those of all tracks."""
    overflow = drawing.lanes.row > 0
    uuids = drawing.lanes.track + (salt + 1)
    uuids[overflow] = salt + drawing.tracks + 2 + np.arange(np.count_nonzero(overflow))
    return uuids


def descriptors(trace: Trace, rows: Rows, salt: int) -> Iterator[bytes]:
    """Yield the descriptor of every track, then those of overflow rows, then that of the track of findings."""
    tracks = trace.tracks
    parents = _parents(tracks)
    has_children = np.bincount(parents[parents >= 0], minlength=len(tracks))
    ranks = _ranks(tracks.values("sort_key"), parents)
    overflow = np.flatnonzero(rows.row)
    many = set(rows.track[overflow].tolist())
    shown = shown_names(tracks, trace.time)
    columns = (*(tracks.values(name) for name in ("name", "kind", "unit")), parents, ranks, has_children)
    # Of a million tracks not all are wanted as Python objects at a time.
    pieces = (
        zip(*(column[at : at + _TRACKS].tolist() for column in columns), strict=True)
        for at in range(0, len(tracks), _TRACKS)
    )
    again: dict[int, bytes] = {}
    for row, (name, kind, unit, parent, rank, children) in enumerate(chain.from_iterable(pieces)):
        uuid = _UUID + _varint(salt + 1 + row)
        text = shown.get(row, name).encode("utf-8", "replace")
        if parent < 0:
            above = _message((14, _epoch(trace.time, name if row in shown else "")))
        else:
            above = _PARENT + _varint(salt + 1 + parent)
            if row in shown:
                above += _message((14, WHOLE + name))
        parts = [_NAME, _varint(len(text)), text, above, _RANK, _varint(rank)]
        if row in many:
            parts.append(_message((15, _MERGE_BY_KEY), (17, salt + 1 + row)))
            again[row] = b"".join(parts)
        else:
            parts.append(_MERGES_NOT)
        if children:
            parts.append(_message((11, _ORDER_EXPLICIT)))
        if kind == "counter":
            known = _COUNTER_UNITS.get(unit)
            parts.append(_message((8, _message((3, known) if known else (6, unit)))))
        yield b"".join((uuid, *parts))
    for lane in overflow.tolist():
        yield _message((1, int(rows.uuid[lane]))) + again[int(rows.track[lane])]
    if rows.extra_track:
        # That of the tracks tells the epoch, where there are any.
        epoch = b"" if len(tracks) else _message((14, _epoch(trace.time, "")))
        yield _message((1, salt + 1 + len(tracks)), (2, "findings")) + epoch + _MERGES_NOT


def counter_descriptors(trace: Trace, salt: int, known: set[int]) -> Iterator[bytes]:
    """Yield the descriptors of counters but those of known tracks, and make them known.

    A reader drops samples that come before the descriptor of their track.
    """
    if not len(trace.counters):
        return
    is_counter = (trace.tracks.values("kind") == "counter").tolist()
    for row, descriptor in enumerate(descriptors(trace, Rows(_NO_ROWS, _NO_ROWS, _NO_ROWS, extra_track=False), salt)):
        if is_counter[row] and row not in known:
            known.add(row)
            yield descriptor


# What nearly every descriptor has.
_UUID, _NAME, _PARENT, _RANK = _tag(1, 0), _tag(2, 2), _tag(5, 0), _tag(12, 0)
_MERGES_NOT = _message((15, _MERGE_NOT))


def _metadata(time: TimeBase) -> bytes:
    """Return the packet whose entries the trace processor lists in its table ``metadata``; empty for a trace in ns."""
    if time.time_unit == "ns":
        return b""
    entries = (("lanescope.time_unit", time.time_unit), ("lanescope.drawn", "1 cycle as 1 ns"))
    bundle = _message(*((2, _message((1, name), (2, value))) for name, value in entries))
    return _packet(_tag(5, 2), bundle)


class FlowIds:
    """What the flows of a file are by their ids: first id, how many, kind, and where their ends lie in their slices."""

    def __init__(self) -> None:
        self.groups: list[tuple[int, int, str, str, str]] = []

    def add(self, base: int, groups: Iterable[FlowGroup]) -> FlowIds:
        """Add flows whose ids begin behind ``base``."""
        first = base + 1
        for kind, source, destination, flows in groups:
            place = (kind, source, destination)
            last = self.groups[-1] if self.groups else None
            if last is not None and last[2:] == place and last[0] + last[1] == first:
                self.groups[-1] = (last[0], last[1] + flows, *place)
            else:
                self.groups.append((first, flows, *place))
            first += flows
        return self

    def facts(self, trace: Trace, salt: int, *, is_empty: bool) -> bytes:
        """Return the packet with what only lanescope reads of a trace; if it ``is_empty``, a track that says so.

        A file of no bytes would be none.
        """
        tracks = trace.tracks
        if is_empty:
            return _packet(_TRACK, _message((1, 1), (2, "no events"), (14, _epoch(trace.time, ""))))
        kinds: dict[tuple[str, str, str], int] = {}
        columns = [tracks.column(name).texts.tolist() for name in ("kind", "role", "nesting")]
        about: dict[str, Any] = {
            "first": salt + 1,
            "tracks": [kinds.setdefault(each, len(kinds)) for each in zip(*columns, strict=True)],
            "kinds": list(kinds),
        }
        sort_keys = tracks.values("sort_key").tolist()
        if sort_keys != list(range(len(tracks))):
            about["sort_keys"] = sort_keys
        entries = (("lanescope.tracks", about), ("lanescope.flows", self.groups))
        texts = ((name, json.dumps(value, separators=(",", ":"))) for name, value in entries if value)
        return _packet(_tag(5, 2), _message(*((2, _message((1, name), (2, text))) for name, text in texts)))


def lost_records(trace: Trace) -> int:
    """Return how many records are known to be lost."""
    stats = trace.stats
    return int(stats.values("count")[stats.values("severity") == "data_loss"].sum())


def _epoch(time: TimeBase, name: str) -> str:
    unit = "time unit: cycles, 1 cycle drawn as 1 ns" if time.time_unit == "cycles" else "time unit: ns"
    whole = f"; {WHOLE}{name}" if name else ""
    return f"{unit}; 0 is {time.epoch_ns} ns on the {time.epoch_kind} clock{whole}"


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
