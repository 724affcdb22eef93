"""Dumps of device memory: buffers of records as the producers left them, and the header and pools that say of them.

A dump is one of these:

* the shared memory (header and pools), with or without buffers behind it;
* buffers, each behind the ready entry with which it was handed over: stream, core or thread, and sequence;
* bare buffers of one stream, one behind the other: core or thread are those of the option ``index``.

The pools say how many records their producer tried to write and how many it dropped; what arrived is held against that,
stream by stream: collected + dropped == total.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.formats.device_structs import (
    AICORE_BUFFER,
    AICPU_BUFFER,
    KIND_NUMBERS_V3,
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
from lanescope.devices.ascend.formats.layout import AICORE, AICPU, MAX_CYCLES, PHASES, SUBMITS
from lanescope.devices.ascend.formats.records import Bytes, Records, Section, Stream, empty, section
from lanescope.errors import InputError, UsageError
from lanescope.families.declaration import frozen_class
from lanescope.wire import Struct

Int64 = npt.NDArray[np.int64]
Rows = npt.NDArray[Any]

#: Replaces the key of the level, which a dump does not have.
LEVEL_KEY = "raw dump"
LISTS = {"aicpu_task": AICPU, "sched_phase": PHASES, "orch_phase": SUBMITS, "aicore_task": AICORE}
#: Phases that name a task in place of pops.
_NAMING = ("dummy_task", "predicated_skip", "graph_prepare")
#: Cores and threads beyond are not believed where entries are looked for.
_MAX_INDEX = 255


@frozen_class
class Piece:
    """A part of a dump.

    Attributes:
        what: ``header``, ``pools``, ``entry``, ``buffer`` or ``lost``.
        begin, end: bytes.
        stream: of entries and buffers.
        index: core or thread.
        seq: of the buffer among those of its stream.
    """

    what: str
    begin: int
    end: int
    stream: str = ""
    index: int = 0
    seq: int = 0


@frozen_class
class Dump:
    """A dump taken apart.

    Attributes:
        pieces: its parts in order; they cover every byte.
        region: the layout of header and pools, None without them.
        format_version: v3 or v3c: whose phases the buffers hold; empty: nothing in it says so.
    """

    pieces: tuple[Piece, ...]
    region: Region | None
    format_version: str


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


# --- taking apart -----------------------------------------------------------------------------------------------------


def split_sections(content: Bytes, index: int = 0) -> Dump | None:
    """Find the parts of a dump.

    Args:
        content: its bytes, uint8 [size].
        index: core or thread of bare buffers.

    Returns:
        None if it is nothing of this kind.
    """
    region = next((region for region in REGIONS if _fits(content, region)), None)
    pieces: list[Piece] = []
    at = 0
    if region is not None:
        pieces = [Piece("header", 0, region.header.size), Piece("pools", region.header.size, region.size)]
        at = region.size
    else:
        bare = _headerless(content)
        if bare is not None:
            return _whole(content, bare, index)
    found = list(_entries(content, at))
    if region is None and not any(piece.what == "buffer" for piece in found):
        return None
    pieces += found
    return Dump(tuple(pieces), region, "" if region is None else region.format_version)


def _fits(content: Bytes, region: Region) -> bool:
    """Return whether bytes start with a header and pools of a layout."""
    if len(content) < region.size:
        return False
    head = np.frombuffer(content, region.header.dtype, 1)[0]
    threads = max(head["num_sched_phase_threads"], head["num_orch_phase_threads"])
    assigned = head["core_to_thread"]
    if not (
        1 <= head["num_cores"] <= region.cores
        and 1 <= head["level"] <= 4
        and head["num_phase_cores"] <= region.cores
        and threads <= region.threads
        and max(head["queue_heads"].max(), head["queue_tails"].max()) < region.entries
        and -1 <= assigned.min() <= assigned.max() < region.threads
        and not head["padding"].any()
    ):
        return False
    pools = np.frombuffer(content, POOL.dtype, len(region.pools), region.header.size)
    fill = pools["free_tail"] - pools["free_head"]
    return bool(
        (head["queues"]["kind"] < len(STREAMS)).all()
        and not pools["head_padding"].any()
        and not pools["padding"].any()
        and (fill <= POOL["free_ptrs"].count).all()
        and (pools["dropped_record_count"] <= pools["total_record_count"]).all()
    )


def _headerless(content: Bytes) -> str | None:
    """Return the stream whose buffers a file consists of."""
    for stream in STREAMS:
        _, most, size = record_dtype(stream, "v3")
        if not len(content) or len(content) % size:
            continue
        counts = content.reshape(-1, size)[:, size - 64 :].copy().view("<u4").reshape(len(content) // size, -1)
        at = (buffer_of(stream, "v3")["count"].offset - (size - 64)) // 4
        others = np.delete(counts, at, axis=1) if at == 0 else counts[:, at + 1 :]
        if counts[:, at].max() <= most and counts[:, at].any() and not others.any() and _is_plausible(content, stream):
            return stream
    return None


def _is_plausible(content: Bytes, stream: str) -> bool:
    """Return whether the first records of a buffer may belong to a stream."""
    dtype, most, _ = record_dtype(stream, "v3c")
    rows = np.frombuffer(content[: len(content) // dtype.itemsize * dtype.itemsize], dtype)[: min(most, 64)]
    begin, end = _stamps(rows, stream)
    used = (begin > 0) | (end > 0)
    in_order = (end == 0) | (begin <= end)
    if not (used.any() and (begin <= MAX_CYCLES).all() and (end <= MAX_CYCLES).all() and in_order.all()):
        return False
    if stream == "sched_phase":
        return bool((rows["kind"] <= max(KIND_NUMBERS_V3C)).all())
    if stream == "aicore_task":
        return bool((rows["receive_to_start_cycles"] <= begin).all())
    return not rows["padding"].any()


def _stamps(rows: Rows, stream: str) -> tuple[Rows, Rows]:
    names = ("dispatch_time", "finish_time") if stream == "aicpu_task" else ("start_time", "end_time")
    return rows[names[0]], rows[names[1]]


def _whole(content: Bytes, stream: str, index: int) -> Dump:
    size = record_dtype(stream, "v3")[2]
    begins = range(0, len(content), size)
    pieces = tuple(Piece("buffer", at, at + size, stream, index, seq) for seq, at in enumerate(begins))
    return Dump(pieces, None, "")


def _entries(content: Bytes, at: int) -> Iterator[Piece]:
    """Yield entries with their buffers from a place on; what fits to none is lost up to the next one that does."""
    rest = len(content) - at
    unit = QUEUE_ENTRY.size
    entries = np.frombuffer(content, QUEUE_ENTRY.dtype, rest // unit, at)
    looks = (entries["kind"] < len(STREAMS)) & (entries["core_index"] <= _MAX_INDEX) & (entries["buffer_ptr"] != 0)
    looks &= ~entries["padding"].any(axis=1)
    candidates = np.flatnonzero(looks).tolist()
    done = 0
    for place in candidates:
        if place * unit < done:
            continue
        stream = STREAMS[int(entries["kind"][place])]
        _, most, size = record_dtype(stream, "v3")
        first = at + place * unit + unit
        struct = buffer_of(stream, "v3")
        if first + size > len(content) or _count(content, first, struct) > most:
            continue
        padding = struct["padding"]
        if content[first + padding.offset : first + padding.offset + padding.size].any():
            continue
        if done < place * unit:
            yield Piece("lost", at + done, at + place * unit)
        index, seq = int(entries["core_index"][place]), int(entries["buffer_seq"][place])
        yield Piece("entry", first - unit, first, stream, index, seq)
        yield Piece("buffer", first, first + size, stream, index, seq)
        done = place * unit + unit + size
    if done < rest:
        yield Piece("lost", at + done, len(content))


def _count(content: Bytes, first: int, struct: Struct) -> int:
    at = first + struct["count"].offset
    return int.from_bytes(content[at : at + 4].tobytes(), "little")


# --- reading ----------------------------------------------------------------------------------------------------------


def read_dump(content: Bytes, path: str, options: Mapping[str, Any]) -> Records:
    """Read a dump.

    Args:
        content: its bytes, uint8 [size].
        path: for messages.
        options: ``index``, core or thread of bare buffers; ``frequency`` of the counter and ``format_version``, if
            the dump contains neither.

    Raises:
        InputError: the content is not a dump.
    """
    dump = split_sections(content, options.get("index") or 0)
    if dump is None:
        raise InputError(
            f"{path} is neither a records file nor a dump of device memory",
            hint="pass a dump with header and pools, ready entries with their buffers, or buffers of one stream",
        )
    said = options.get("format_version")
    if said not in (None, "v2", "v3", "v3c"):
        raise UsageError(f"invalid value {said!r} for --format-version (choose from v2, v3, v3c)")
    format_version = dump.format_version or said or _format_version(content, dump)
    reader = _Dumped(content, dump, format_version or "v3c")
    header = {} if dump.region is None else _header(content, dump.region)
    sections = {layout.name: reader.section(stream, header.get("level", 0)) for stream, layout in LISTS.items()}
    sections = {name: rows for name, rows in sections.items() if len(rows) or name == AICORE.name}
    frequency = options.get("frequency") or (None if dump.region is None else dump.region.frequency)
    metadata: dict[str, Any] = {} if frequency is None else {"clock_freq_hz": frequency}
    metadata |= {name: value for name, value in header.items() if name in ("num_cores", "core_to_thread")}
    lost = sum(piece.end - piece.begin for piece in dump.pieces if piece.what == "lost") + reader.bad_bytes
    return Records(
        LEVEL_KEY,
        header.get("level") or _level(sections),
        metadata,
        sections,
        size=len(content),
        format_version=format_version or "v3c",
        streams=tuple(_streams(content, dump, reader.collected)),
        accounts=(reader.good_bytes, len(content) - reader.good_bytes - lost, lost),
        problems=tuple(_problems(dump, reader, is_assumed=not format_version)),
    )


def _problems(dump: Dump, reader: _Dumped, *, is_assumed: bool) -> Iterator[tuple[str, int, int | None]]:
    lost = [piece.begin for piece in dump.pieces if piece.what == "lost"]
    yield "ascend_bad_buffer", len(lost), lost[0] if lost else None
    yield "ascend_invalid_row", reader.bad_count, reader.bad_first
    yield "ascend_missing_start", reader.unstamped, None
    if is_assumed:
        yield "ascend_format_version_assumed", 1, None


def _format_version(content: Bytes, dump: Dump) -> str:
    """Return the format version that scheduler phases show; empty where there are none, or none that tells."""
    for piece in dump.pieces:
        if piece.what != "buffer" or piece.stream != "sched_phase":
            continue
        rows = _rows(content, piece, "v3c")
        # Later phases have padding where the first ones have their depths.
        if rows["padding"].any():
            return "v3"
        if (rows["kind"] > max(KIND_NUMBERS_V3)).any():
            return "v3c"
    return ""


def _rows(content: Bytes, piece: Piece, format_version: str) -> Rows:
    """Return the records of a buffer that are valid by its count."""
    dtype, most, _ = record_dtype(piece.stream, format_version)
    count = _count(content, piece.begin, buffer_of(piece.stream, format_version))
    return np.frombuffer(content, dtype, min(count, most), piece.begin)


def _header(content: Bytes, region: Region) -> dict[str, Any]:
    """Return what a header says besides its queues."""
    head = np.frombuffer(content, region.header.dtype, 1)[0]
    found = {member.name: head[member.name].tolist() for member in region.header.members[3:]}
    found["core_to_thread"] = found["core_to_thread"][: found["num_cores"]]
    return found


def _level(sections: Mapping[str, Section]) -> int:
    """Return the level that the streams which are there ask for."""
    by_list = {SUBMITS.name: 4, PHASES.name: 3, AICPU.name: 2}
    return max((by_list[name] for name in sections if name in by_list), default=1)


def _streams(content: Bytes, dump: Dump, collected: Mapping[tuple[str, int], int]) -> Iterator[Stream]:
    """Yield what pools say of their streams, against what arrived."""
    if dump.region is None:
        return
    pools = np.frombuffer(content, POOL.dtype, len(dump.region.pools), dump.region.header.size)
    told = zip(pools["total_record_count"].tolist(), pools["dropped_record_count"].tolist(), strict=True)
    left = dict(collected)
    for (stream, index), (total, dropped) in zip(dump.region.pools, told, strict=True):
        arrived = left.pop((stream, index), 0)
        if total or dropped or arrived:
            yield Stream(stream, index, total, dropped, arrived, platform=dump.region.platform)
    # Buffers of cores or threads that have no pool.
    for (stream, index), arrived in sorted(left.items()):
        yield Stream(stream, index, 0, 0, arrived, platform=dump.region.platform)


class _Dumped:
    """The records of a dump, stream by stream."""

    def __init__(self, content: Bytes, dump: Dump, format_version: str) -> None:
        self._content = content
        self._format_version = format_version
        self._buffers: dict[str, list[Piece]] = {stream: [] for stream in STREAMS}
        for piece in dump.pieces:
            if piece.what == "buffer":
                self._buffers[piece.stream].append(piece)
        self.collected: dict[tuple[str, int], int] = {}
        self.good_bytes = self.bad_bytes = self.bad_count = self.unstamped = 0
        self.bad_first: int | None = None

    def section(self, stream: str, level: int) -> Section:
        """Return the records of a stream: by core or thread, and by the sequence of their buffers."""
        layout = LISTS[stream]
        # Sequences wrap; buffers of one stream lie in the order in which they were handed over.
        pieces = sorted(self._buffers[stream], key=lambda piece: piece.index)
        parts = [_rows(self._content, piece, self._format_version) for piece in pieces]
        if not sum(map(len, parts)):
            return empty(layout)
        rows = np.concatenate(parts)
        index = np.repeat([piece.index for piece in pieces], [len(part) for part in parts])
        begin = np.concatenate(
            [piece.begin + np.arange(len(part)) * rows.itemsize for piece, part in zip(pieces, parts, strict=True)]
        )
        first, last = _stamps(rows, stream)
        keep = (first <= MAX_CYCLES) & (last <= MAX_CYCLES)
        bad = np.flatnonzero(~keep)
        if len(bad):
            self.bad_count += len(bad)
            self.bad_bytes += len(bad) * rows.itemsize
            first_bad = int(begin[bad].min())
            self.bad_first = first_bad if self.bad_first is None else min(first_bad, self.bad_first)
        if stream == "aicore_task":
            # At level 1 the count is that of the slots: those without a start were never written.
            written = first > 0
            if level > 1:
                self.unstamped += int(np.count_nonzero(~written))
            keep &= written
        rows, index, begin = rows[keep], index[keep], begin[keep]
        self.good_bytes += len(rows) * rows.itemsize
        for number, count in zip(*np.unique(index, return_counts=True), strict=True):
            self.collected[stream, int(number)] = int(count)
        if not len(rows):
            return empty(layout)
        columns = _COLUMNS[stream](rows, index, self._format_version)
        texts = columns.pop("texts", ())
        made = section(layout, columns, group=index if layout.depth == 2 else None, texts=texts)
        return Section(
            layout, made.columns, made.present, made.group, made.groups, begin, begin + rows.itemsize, made.texts
        )


def _aicore(rows: Rows, index: Int64, format_version: str) -> dict[str, Any]:
    columns = {
        "core_id": index,
        "task_token_raw": rows["task_token_raw"],
        "reg_task_id": rows["reg_task_id"],
        "start_cycles": rows["start_time"],
        "end_cycles": rows["end_time"],
    }
    return (
        columns if format_version == "v2" else {**columns, "receive_to_start_cycles": rows["receive_to_start_cycles"]}
    )


def _aicpu(rows: Rows, index: Int64, _: str) -> dict[str, Any]:
    return {
        "core_id": index,
        "reg_task_id": rows["reg_task_id"],
        "dispatch_cycles": rows["dispatch_time"],
        "finish_cycles": rows["finish_time"],
    }


def _phases(rows: Rows, _: Int64, format_version: str) -> dict[str, Any]:
    is_first = format_version != "v3c"
    names = KIND_NUMBERS_V3 if is_first else KIND_NUMBERS_V3C
    numbers, code = np.unique(rows["kind"], return_inverse=True)
    texts = tuple(names.get(number, f"kind_{number}") for number in numbers.tolist())
    code = code.reshape(-1)

    def is_kind(*kinds: str) -> npt.NDArray[np.bool_]:
        return np.array([text in kinds for text in texts], np.bool_)[code]

    columns: dict[str, Any] = {
        "kind": code,
        "texts": texts,
        "start_cycles": rows["start_time"],
        "end_cycles": rows["end_time"],
        "loop_iter": rows["loop_iter"],
        "tasks_processed": rows["tasks_processed"],
        "pop_hit_valid": is_kind("dispatch"),
        "pop_miss_valid": is_kind("dispatch"),
        "shared_at_start": rows["shared_depth_at_start"],
        "shared_at_end": rows["shared_depth_at_end"],
    }
    if is_first:
        columns |= {"pop_hit": rows["pop_hit"], "pop_miss": rows["pop_miss"]}
        columns |= {"local_at_start": rows["local_depth_at_start"], "local_at_end": rows["local_depth_at_end"]}
        return columns
    low, high = rows["pop_hit_or_local_id"], rows["pop_miss_or_ring_id"]
    task = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
    return {**columns, "pop_hit": low, "pop_miss": high, "task_id": task, "task_id_valid": is_kind(*_NAMING)}


def _submits(rows: Rows, _: Int64, __: str) -> dict[str, Any]:
    return {
        "submit_idx": rows["submit_idx"],
        "task_id": rows["task_id"],
        "start_cycles": rows["start_time"],
        "end_cycles": rows["end_time"],
    }


_COLUMNS = {"aicore_task": _aicore, "aicpu_task": _aicpu, "sched_phase": _phases, "orch_phase": _submits}
