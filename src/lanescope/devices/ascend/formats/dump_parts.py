"""Takes a dump of device memory apart: header and pools, ready entries, buffers, and what is none of these.

A dump is one of these:

* the shared memory (header and pools), with or without buffers behind it;
* buffers, each behind the ready entry with which it was handed over: stream, core or thread, and sequence;
* bare buffers of one stream, one behind the other: core or thread are those of the option ``index``.

Only what a producer writes is judged. It never initialises buffers of phases and submits, and buffers of every stream
are used again: padding, and slots behind the count, contain anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class, replace
from lanescope.devices.ascend.formats.device_structs import (
    AICORE_BUFFER,
    AICPU_BUFFER,
    KIND_NUMBERS_V3C,
    PHASE_BUFFER_V3,
    PHASE_BUFFER_V3C,
    POOL,
    QUEUE_ENTRY,
    REGIONS,
    STREAMS,
    SUBMIT_BUFFER,
    Region,
)
from lanescope.devices.ascend.formats.layout import MAX_CYCLES
from lanescope.devices.ascend.formats.records import Bytes
from lanescope.trace.column import Mask
from lanescope.wire import Struct

Rows = npt.NDArray[Any]

#: Cores and threads beyond are not believed where entries are looked for.
_MAX_INDEX = 255
#: One pool, queue entry or stamp of so many may be wrong; where more are, it is something else.
_DAMAGE = 8
#: Cycles that nothing takes: more than an hour of any clock.
_LONGEST = 1 << 42
#: Records of a buffer that are looked at to judge it.
_LOOKED_AT = 64
#: Entries that are looked at together in a search for the next one.
_AT_ONCE = 1 << 15


@frozen_class
class Piece:
    """A part of a dump.

    Attributes:
        what: ``header``, ``pools``, ``entry``, ``buffer``, ``lost``, or ``cut``: an entry whose buffer is cut off.
        begin, end: bytes.
        stream: of entries and buffers.
        index: core or thread.
        seq: of the buffer among those of its stream.
        count: records of a buffer that is cut off before its own count; -1: that counts.
    """

    what: str
    begin: int
    end: int
    stream: str = ""
    index: int = 0
    seq: int = 0
    count: int = -1


@frozen_class
class Dump:
    """A dump taken apart.

    Attributes:
        pieces: its parts in order; they cover every byte.
        region: the layout of header and pools, None without them.
        cores: cores in use, which have pools; 0 without a header.
        level: that of the header; 0 without one.
        totals: by core: dispatches that the pool of its records counted.
        is_bare: whether the buffers have no ready entries.
    """

    pieces: tuple[Piece, ...]
    region: Region | None = None
    cores: int = 0
    level: int = 0
    totals: Mapping[int, int] | None = None
    is_bare: bool = False

    @property
    def format_version(self) -> str:
        """v3 or v3c: whose phases the buffers hold; empty: nothing but the phases says so."""
        return "" if self.region is None else self.region.format_version

    @property
    def buffers(self) -> Iterator[Piece]:
        """The buffers, in order."""
        return (piece for piece in self.pieces if piece.what == "buffer")


@cache
def buffer_of(stream: str, format_version: str) -> Struct:
    """Return the struct of the buffers of a stream."""
    phases = PHASE_BUFFER_V3 if format_version == "v3" else PHASE_BUFFER_V3C
    buffers = {"aicpu_task": AICPU_BUFFER, "aicore_task": AICORE_BUFFER, "orch_phase": SUBMIT_BUFFER}
    return {**buffers, "sched_phase": phases}[stream]


@cache
def record_dtype(stream: str, format_version: str) -> tuple[np.dtype[Any], int, int]:
    """Return the numpy type of a stream's records, how many a buffer holds, and the bytes of a buffer."""
    struct = buffer_of(stream, format_version)
    records = struct["records"]
    assert isinstance(records.type, Struct)
    assert records.count is not None
    return records.type.dtype, records.count, struct.size


def stamps(rows: Rows, stream: str) -> tuple[Rows, Rows]:
    """Return both stamps of the records of a stream, uint64 [n] each."""
    names = ("dispatch_time", "finish_time") if stream == "aicpu_task" else ("start_time", "end_time")
    return rows[names[0]], rows[names[1]]


def split_sections(content: Bytes, index: int = 0) -> Dump | None:
    """Find the parts of a dump.

    Args:
        content: its bytes, uint8 [size].
        index: core or thread of bare buffers.

    Returns:
        None if it is nothing of this kind.
    """
    found = _region(content)
    if found is not None:
        region, cores = found
        at = region.size(cores)
        pieces = [Piece("header", 0, region.header.size), Piece("pools", region.header.size, at)]
        level = int(np.frombuffer(content, region.header.dtype, 1)[0]["level"])
        total = pools_of(content, region, cores)["total_record_count"]
        totals = {core: int(total[cores + core]) for core in range(cores)}
        dump = Dump((*pieces, *_entries(content, at)), region, cores, level, totals)
        return replace(dump, pieces=(*dump.pieces[:-1], *_recovered(content, dump)))
    stream = _bare_stream(content)
    if stream is not None:
        size = record_dtype(stream, "v3")[2]
        places = range(0, len(content), size)
        bare = tuple(Piece("buffer", at, at + size, stream, index, seq) for seq, at in enumerate(places))
        return Dump(bare, is_bare=True)
    if _buffer_behind(content, 0) is None and bare_streams(content):
        return None
    pieces = list(_entries(content, 0))
    return Dump(tuple(pieces)) if any(piece.what == "buffer" for piece in pieces) else None


# --- header and pools -------------------------------------------------------------------------------------------------


def pools_of(content: Bytes, region: Region, cores: int) -> Rows:
    """Return the pools of a dump with ``cores`` cores in use."""
    return np.frombuffer(content, POOL.dtype, 2 * (cores + region.threads), region.header.size)


def _region(content: Bytes) -> tuple[Region, int] | None:
    """Return the layout of header and pools that bytes start with, and how many cores are in use."""
    found = [
        (bad, number, cores)
        for number, region in enumerate(REGIONS)
        for cores in _cores(content, region)
        for bad in _damage(content, region, cores)
    ]
    if not found:
        return None
    _, number, cores = min(found)
    return REGIONS[number], cores


def _cores(content: Bytes, region: Region) -> Iterator[int]:
    """Yield how many cores a header says are in use, if it is one of this layout and its pools are there."""
    yield from (cores for cores in stated_cores(content, region) if len(content) >= region.size(cores))


def cut_region(content: Bytes) -> int | None:
    """Return the bytes of header and pools of a dump that ends within the pools; None: it does not."""
    sizes = (region.size(cores) for region in REGIONS for cores in stated_cores(content, region))
    return next((size for size in sizes if len(content) < size), None)


def stated_cores(content: Bytes, region: Region) -> Iterator[int]:
    """Yield how many cores a header says are in use, if it is one of this layout."""
    if len(content) < region.header.size:
        return
    head = np.frombuffer(content, region.header.dtype, 1)[0]
    cores = int(head["num_cores"])
    threads = max(head["num_sched_phase_threads"], head["num_orch_phase_threads"])
    assigned = head["core_to_thread"]
    if (
        1 <= cores <= region.cores
        and 1 <= head["level"] <= 4
        and head["num_phase_cores"] <= cores
        and threads <= region.threads
        and max(head["queue_heads"].max(), head["queue_tails"].max()) < region.entries
        and -1 <= assigned.min() <= assigned.max() < region.threads
    ):
        yield cores


def _damage(content: Bytes, region: Region, cores: int) -> Iterator[int]:
    """Yield how many pools and entries are not of a layout, if it is few: the host clears this memory first."""
    pools = pools_of(content, region, cores)
    fill = pools["free_tail"] - pools["free_head"]
    bad_pool = (
        pools["head_padding"].any(axis=1)
        | pools["padding"].any(axis=1)
        | (fill > POOL["free_ptrs"].count)
        | (pools["dropped_record_count"] > pools["total_record_count"])
    )
    queues = np.frombuffer(content, region.header.dtype, 1)[0]["queues"]
    bad_entry = (queues["kind"] >= len(STREAMS)) | queues["padding"].any(axis=1)
    found = 0
    for bad, raw in ((bad_pool, pools), (bad_entry, queues)):
        used = int(np.count_nonzero(raw.view(np.uint8).reshape(len(raw), -1).any(axis=1)))
        if int(np.count_nonzero(bad)) * _DAMAGE > used:
            return
        found += int(np.count_nonzero(bad))
    yield found


# --- entries and buffers ----------------------------------------------------------------------------------------------


def _entries(content: Bytes, at: int) -> Iterator[Piece]:
    """Yield entries with their buffers from a place on; what fits to none is lost up to the next one that does."""
    while at < len(content):
        buffer = _buffer_behind(content, at)
        # Nothing before the first byte says that an entry follows.
        is_found = at or (buffer and (_is_sound(content, buffer) or _is_continued(content, buffer.end)))
        if buffer is None or not is_found:
            following = next(_following(content, at), len(content))
            cut = _cut_stream(content, at) if at and following == len(content) else ""
            yield Piece("cut" if cut else "lost", at, following, cut)
            at = following
            continue
        yield Piece("entry", at, buffer.begin, buffer.stream, buffer.index, buffer.seq)
        yield buffer
        at = buffer.end


def _cut_stream(content: Bytes, at: int) -> str:
    """Return the stream of the entry at a place whose buffer the file ends in; empty without one."""
    if at + QUEUE_ENTRY.size > len(content):
        return ""
    entry = np.frombuffer(content, QUEUE_ENTRY.dtype, 1, at)
    if not _look_right(entry)[0]:
        return ""
    stream = STREAMS[int(entry["kind"][0])]
    return stream if at + QUEUE_ENTRY.size + record_dtype(stream, "v3")[2] > len(content) else ""


def _recovered(content: Bytes, dump: Dump) -> Iterator[Piece]:
    """Yield the last piece of a dump with pools; of a buffer that the file ends in, the records that they count.

    The count of a buffer is behind its records. That of the pool, less what other buffers hold, is the same number.
    """
    last, region = dump.pieces[-1], dump.region
    assert region is not None
    if last.what != "cut":
        yield last
        return
    entry = np.frombuffer(content, QUEUE_ENTRY.dtype, 1, last.begin)[0]
    lane, begin = (last.stream, int(entry["core_index"])), last.begin + QUEUE_ENTRY.size
    dtype, most, _ = record_dtype(last.stream, "v3c")
    pools = dict(zip(region.pools(dump.cores), pools_of(content, region, dump.cores), strict=True))
    missing = 0
    if lane in pools:
        missing = int(pools[lane]["total_record_count"]) - int(pools[lane]["dropped_record_count"])
        others = (piece for piece in dump.buffers if (piece.stream, piece.index) == lane)
        missing -= sum(valid_count(content, dump, piece) for piece in others)
    count = min(missing, most, (len(content) - begin) // dtype.itemsize)
    end = len(content) if count == missing else begin + count * dtype.itemsize
    buffer = Piece("buffer", begin, end, *lane, int(entry["buffer_seq"]), count)
    if count < 1 or missing > most or not _fit(content, buffer, count):
        yield last
        return
    yield Piece("entry", last.begin, begin, *lane, buffer.seq)
    yield buffer
    if end < len(content):
        yield Piece("cut", end, len(content), last.stream)


def _following(content: Bytes, at: int) -> Iterator[int]:
    """Yield the places behind ``at`` with an entry and a buffer whose records fit too, and with another one behind.

    Padding and old slots contain much that looks like an entry.
    """
    unit = QUEUE_ENTRY.size
    for first in range(at + unit, len(content) - unit + 1, _AT_ONCE * unit):
        entries = np.frombuffer(content, QUEUE_ENTRY.dtype, min(_AT_ONCE, (len(content) - first) // unit), first)
        for place in np.flatnonzero(_look_right(entries)).tolist():
            buffer = _buffer_behind(content, first + place * unit)
            if buffer is not None and _has_records(content, buffer) and _is_continued(content, buffer.end):
                yield first + place * unit


def _is_continued(content: Bytes, at: int) -> bool:
    """Return whether the file ends at a place, or goes on with an entry whose buffer has records or is cut off."""
    if at == len(content):
        return True
    if at + QUEUE_ENTRY.size > len(content) or not _look_right(np.frombuffer(content, QUEUE_ENTRY.dtype, 1, at))[0]:
        return False
    buffer = _buffer_behind(content, at)
    if buffer is not None:
        return _is_sound(content, buffer)
    kind = int(np.frombuffer(content, QUEUE_ENTRY.dtype, 1, at)["kind"][0])
    return at + QUEUE_ENTRY.size + record_dtype(STREAMS[kind], "v3")[2] > len(content)


def _look_right(entries: Rows) -> Mask:
    looks = (entries["kind"] < len(STREAMS)) & (entries["core_index"] <= _MAX_INDEX) & (entries["buffer_ptr"] != 0)
    found: Mask = looks & ~entries["padding"].any(axis=1)
    return found


def _buffer_behind(content: Bytes, at: int) -> Piece | None:
    """Return the buffer behind the entry at a place; None without an entry or a buffer."""
    first = at + QUEUE_ENTRY.size
    if first > len(content):
        return None
    entry = np.frombuffer(content, QUEUE_ENTRY.dtype, 1, at)
    if not _look_right(entry)[0]:
        return None
    stream = STREAMS[int(entry["kind"][0])]
    _, most, size = record_dtype(stream, "v3")
    # Empty buffers are not handed over.
    if first + size > len(content) or not 1 <= _count(content, first, stream) <= most:
        return None
    return Piece("buffer", first, first + size, stream, int(entry["core_index"][0]), int(entry["buffer_seq"][0]))


def _count(content: Bytes, first: int, stream: str) -> int:
    at = first + buffer_of(stream, "v3")["count"].offset
    return int.from_bytes(content[at : at + 4].tobytes(), "little")


def _has_records(content: Bytes, piece: Piece) -> bool:
    """Return whether a buffer has valid records, and the first ones may belong to its stream."""
    _, most, _ = record_dtype(piece.stream, "v3c")
    count = _count(content, piece.begin, piece.stream)
    if not 1 <= count <= most:
        return False
    if piece.stream == "aicore_task" and count == most:
        count = _newest(content, piece)
    return _fit(content, piece, count)


def _fit(content: Bytes, piece: Piece, count: int) -> bool:
    """Return whether the first records of a buffer may belong to its stream."""
    dtype = record_dtype(piece.stream, "v3c")[0]
    rows = np.frombuffer(content, dtype, min(count, _LOOKED_AT), piece.begin)
    begin, end = stamps(rows, piece.stream)
    fits = (begin <= MAX_CYCLES) & (end <= MAX_CYCLES) & ((end == 0) | (begin <= end) & (end - begin < _LONGEST))
    if piece.stream == "sched_phase":
        fits &= rows["kind"] <= max(KIND_NUMBERS_V3C)
    elif piece.stream == "aicore_task":
        # Slots are handed over that no execution reached.
        fits &= rows["receive_to_start_cycles"] <= begin
    if piece.stream != "aicore_task":
        fits &= begin > 0
    # Records are written when what they are about has ended; a clock may step back now and then.
    falls = np.count_nonzero(np.diff(end[end > 0].astype(np.int64)) < 0)
    return bool(fits.all() and begin.any() and falls * _DAMAGE <= len(rows))


def _is_sound(content: Bytes, piece: Piece) -> bool:
    """Return whether a buffer has records, or is one of a core that executed nothing: handed over at level 1 too."""
    if _has_records(content, piece):
        return True
    dtype, most, _ = record_dtype(piece.stream, "v3c")
    if piece.stream != "aicore_task" or _count(content, piece.begin, piece.stream) != most:
        return False
    return not np.frombuffer(content, dtype, most, piece.begin)["start_time"].any()


# --- bare buffers -----------------------------------------------------------------------------------------------------


def _bare_stream(content: Bytes) -> str | None:
    """Return the stream whose buffers a file consists of."""
    for stream in STREAMS:
        size = record_dtype(stream, "v3")[2]
        if not len(content) or len(content) % size:
            continue
        if all(_has_records(content, Piece("buffer", at, at + size, stream)) for at in range(0, len(content), size)):
            return stream
    return None


def bare_streams(content: Bytes) -> set[str]:
    """Return the streams of a file that begins with bare buffers; empty: it does not, or ends in none."""
    found, at = set(), 0
    while at < len(content):
        pieces = (Piece("buffer", at, at + record_dtype(stream, "v3")[2], stream) for stream in STREAMS)
        fitting = [piece for piece in pieces if piece.end <= len(content) and _has_records(content, piece)]
        if not fitting:
            return set()
        found.add(fitting[0].stream)
        at = fitting[0].end
    return found


def are_of_one_lane(content: Bytes, dump: Dump) -> bool:
    """Return whether the buffers may be those of one core or thread: each begins where the one before it ended."""
    latest = 0
    for piece in dump.buffers:
        rows = valid_rows(content, dump, piece, "v3c")
        begin = stamps(rows, piece.stream)[0]
        begin = begin[begin > 0]
        if len(begin):
            if int(begin[0]) < latest:
                return False
            latest = int(begin[-1])
    return True


# --- valid records ----------------------------------------------------------------------------------------------------


def valid_count(content: Bytes, dump: Dump, piece: Piece) -> int:
    """Return how many records of a buffer are valid; the slots behind them are old or were never written.

    That is its count. At level 1 buffers of cores are handed over as full, whatever was written: the pool has counted
    the dispatches, and all slots behind the last one that is not older than the first one are old.
    """
    if piece.count >= 0:
        return piece.count
    _, most, _ = record_dtype(piece.stream, "v3")
    count = min(_count(content, piece.begin, piece.stream), most)
    if piece.stream != "aicore_task" or count < most or dump.level > 1:
        return count
    count = _newest(content, piece)
    dispatched = (dump.totals or {}).get(piece.index, 0) - piece.seq * most
    return min(count, dispatched) if dispatched > 0 else count


def _newest(content: Bytes, piece: Piece) -> int:
    """Return how many slots a buffer of a core has up to the last one that is not older than the first record."""
    dtype, most, _ = record_dtype(piece.stream, "v3")
    start = np.frombuffer(content, dtype, most, piece.begin)["start_time"]
    used = start[start > 0]
    return int(np.flatnonzero(start >= used[0])[-1]) + 1 if len(used) else 0


def valid_rows(content: Bytes, dump: Dump, piece: Piece, format_version: str) -> Rows:
    """Return the valid records of a buffer."""
    dtype, _, _ = record_dtype(piece.stream, format_version)
    return np.frombuffer(content, dtype, valid_count(content, dump, piece), piece.begin)
