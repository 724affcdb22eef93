"""Records back to dumps of device memory: the exact inverse of reading, or as a device that was in use leaves them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.declaration import frozen_class
from lanescope.devices.ascend.formats.device_dump import LISTS
from lanescope.devices.ascend.formats.device_structs import (
    AICORE_RECORD,
    KIND_NUMBERS_V3,
    KIND_NUMBERS_V3C,
    POOL,
    QUEUE_ENTRY,
    REGIONS,
    STREAMS,
    Region,
)
from lanescope.devices.ascend.formats.dump_parts import buffer_of, record_dtype, stamps
from lanescope.devices.ascend.formats.layout import PHASES, SUBMITS
from lanescope.devices.ascend.formats.records import Bytes, Records, Section

Rows = npt.NDArray[Any]
Lane = tuple[str, int]

#: Distance of buffers in memory, and where their memory begins.
_APART, _HEAP = 1 << 21, 0x5570_0000_0000
#: Share of buffers in memory that was never used.
_FRESH = 0.3
#: Buffers that wait in a pool.
_FREE = 4


@frozen_class
class _Buffer:
    """A buffer to write: whose it is, its place among those of its lane, its ready entry and its bytes."""

    lane: Lane
    seq: int
    entry: bytes
    content: bytes


def encode_dump(
    records: Records,
    region: Region | None = REGIONS[0],
    *,
    format_version: str = "",
    losses: Mapping[Lane, tuple[int, int]] | None = None,
    used: np.random.Generator | None = None,
) -> bytes:
    """Return a dump: the exact inverse of reading, as far as records of the device hold what is asked for.

    Args:
        records: what to write.
        region: the chip whose header and pools come first; None: entries and buffers alone.
        format_version: v3 or v3c, whose phases to write; empty: that of the region.
        losses: by stream and index: records dropped with notice, and without.
        used: the device was in use before: padding, slots behind the counts and pools hold what this generator leaves
            there, and buffers are handed over in any order that keeps those of a lane; None: all of that is zero.
    """
    format_version = format_version or ("v3c" if region is None else region.format_version)
    buffers, written = list[_Buffer](), dict[Lane, int]()
    for stream, layout in LISTS.items():
        rows = records[layout]
        index = rows["core_id"].astype(np.int64) if layout.depth == 1 else rows.group.astype(np.int64)
        raw = _UNREAD[stream](rows, format_version)
        for number in distinct(index).tolist():
            mine = raw[index == number]
            written[stream, number] = len(mine)
            buffers += _filled(mine, (stream, number), format_version, records.level, used)
    if used is not None:
        if records.level == 1:
            buffers += _idle(written, _cores(records, region), format_version)
        buffers = _handed_over(buffers, used)
    head = b"" if region is None else _region(records, region, buffers, written, losses or {}, used)
    return head + b"".join(buffer.entry + buffer.content for buffer in buffers)


# --- buffers ----------------------------------------------------------------------------------------------------------


def _filled(
    rows: Rows, lane: Lane, format_version: str, level: int, used: np.random.Generator | None
) -> Iterator[_Buffer]:
    stream, _ = lane
    dtype, most, size = record_dtype(stream, format_version)
    for seq, first in enumerate(range(0, len(rows), most)):
        part = rows[first : first + most]
        content = np.zeros(size, np.uint8) if used is None else _left(stream, rows, part, size, used)
        slots = content[: most * dtype.itemsize].view(dtype)
        for name in dtype.names or ():
            # Padding is not written.
            if "padding" not in name:
                slots[name][: len(part)] = part[name]
        # At level 1 the scheduler does not know what a core has written.
        is_counted = stream != "aicore_task" or level > 1
        yield _buffer(lane, seq, content, len(part) if is_counted else most, format_version)


def _buffer(lane: Lane, seq: int, content: Bytes, count: int, format_version: str) -> _Buffer:
    stream, index = lane
    entry = {
        "core_index": index,
        "kind": STREAMS.index(stream),
        "buffer_ptr": _HEAP + _APART * (256 * (4 * index + STREAMS.index(stream)) + seq % 256),
        "buffer_seq": seq,
    }
    content[buffer_of(stream, format_version)["count"].offset :][:4] = np.array([count], "<u4").view(np.uint8)
    return _Buffer(lane, seq, QUEUE_ENTRY.encode(entry), content.tobytes())


def _left(stream: str, rows: Rows, part: Rows, size: int, used: np.random.Generator) -> Bytes:
    """Return what the memory of a buffer held before ``part`` is written to it, uint8 [size].

    Buffers of tasks are cleared when they are made, others hold what the heap held. Every second one was used before,
    perhaps by another core or thread: it is full of records that are older than its first one.
    """
    is_cleared = stream in ("aicpu_task", "aicore_task")
    content = np.zeros(size, np.uint8) if is_cleared or used.random() < _FRESH else _heap(size, used)
    if used.random() < 0.5:
        return content
    slots = content[: size - 64].view(rows.dtype)
    old = rows[used.integers(len(rows)) - np.arange(len(slots))[::-1] % len(rows)]
    begin, end = stamps(part, stream)
    first, latest = int(begin[begin > 0].min(initial=np.iinfo(np.int64).max)), int(max(begin.max(), end.max()))
    ago = np.uint64(min(latest - min(first, latest) + 1, first - 1))
    for name in rows.dtype.names or ():
        values = old[name]
        if "padding" in name:
            continue
        if values.dtype == np.uint64 and name.endswith("_time"):
            values = np.where(values > ago, values - ago, values)
        slots[name] = values
    return content


def _heap(size: int, used: np.random.Generator) -> Bytes:
    """Return memory that somebody else has used, uint8 [size]: zeros, addresses, text, counts and noise."""
    lines = -(-size // 32)
    kinds = np.zeros((5, lines, 32), np.uint8)
    addresses = (used.integers(_HEAP, _HEAP + (1 << 32), (lines, 4)) & ~15).astype("<u8")
    kinds[1] = addresses.view(np.uint8).reshape(lines, 32)
    kinds[2] = used.integers(32, 127, (lines, 32))
    kinds[3] = used.integers(0, 64, (lines, 8)).astype("<u4").view(np.uint8).reshape(lines, 32)
    kinds[4] = used.integers(0, 256, (lines, 32))
    # What was there before changes seldom from line to line.
    which = np.repeat(used.integers(0, len(kinds), -(-lines // 8)), 8)[:lines]
    return kinds[which, np.arange(lines)].reshape(-1)[:size].copy()


def _idle(written: Mapping[Lane, int], cores: int, format_version: str) -> Iterator[_Buffer]:
    """Yield the buffers of cores that executed nothing: at level 1 they are handed over too."""
    _, most, size = record_dtype("aicore_task", format_version)
    for core in range(cores):
        if not written.get(("aicore_task", core)):
            yield _buffer(("aicore_task", core), 0, np.zeros(size, np.uint8), most, format_version)


def _handed_over(buffers: Iterable[_Buffer], used: np.random.Generator) -> list[_Buffer]:
    """Return buffers in an order in which several threads hand them over: those of a lane follow one another."""
    by_lane: dict[Lane, list[_Buffer]] = {}
    for buffer in buffers:
        by_lane.setdefault(buffer.lane, []).append(buffer)
    lanes = list(by_lane)
    turns = used.permutation(np.repeat(np.arange(len(lanes)), [len(by_lane[lane]) for lane in lanes]))
    waiting = [iter(by_lane[lane]) for lane in lanes]
    return [next(waiting[turn]) for turn in turns.tolist()]


# --- header and pools -------------------------------------------------------------------------------------------------


def _cores(records: Records, region: Region | None) -> int:
    room = REGIONS[0].cores if region is None else region.cores
    return min(max(int(records.metadata.get("num_cores") or 1), 1), room)


def _region(
    records: Records,
    region: Region,
    buffers: list[_Buffer],
    written: Mapping[Lane, int],
    losses: Mapping[Lane, tuple[int, int]],
    used: np.random.Generator | None,
) -> bytes:
    head = np.zeros(1, region.header.dtype)[0]
    cores = _cores(records, region)
    threads = (records.metadata.get("core_to_thread") or [])[:cores]
    _queue(head, region, buffers, threads)
    head["num_cores"] = cores
    head["level"] = records.level
    head["num_sched_phase_threads"] = min(records[PHASES].groups, region.threads)
    head["num_orch_phase_threads"] = min(records[SUBMITS].groups, region.threads)
    head["num_phase_cores"] = len(threads)
    head["core_to_thread"] = -1
    head["core_to_thread"][: len(threads)] = threads
    keys = region.pools(cores)
    pools = np.zeros(len(keys), POOL.dtype)
    for place, (pool, lane) in enumerate(zip(pools, keys, strict=True)):
        dropped, silent = losses.get(lane, (0, 0))
        total = written.get(lane, 0) + dropped + silent
        pool["total_record_count"] = total
        pool["dropped_record_count"] = dropped
        if used is not None:
            _use(pool, lane, total, place, used)
    return bytes(head.tobytes()) + pools.tobytes()


def _queue(head: Any, region: Region, buffers: list[_Buffer], threads: list[int]) -> None:
    """Fill the ready queues: each thread has handed over its own buffers, and the host has taken them all."""
    by_thread: dict[int, list[bytes]] = {}
    for buffer in buffers:
        by_thread.setdefault(_thread_of(buffer.lane, region, threads), []).append(buffer.entry)
    for thread, entries in by_thread.items():
        for number, entry in enumerate(entries[-region.entries :], len(entries) - len(entries[-region.entries :])):
            place = thread * region.entries + number % region.entries
            head["queues"][place] = np.frombuffer(entry, QUEUE_ENTRY.dtype)[0]
        head["queue_heads"][thread] = head["queue_tails"][thread] = len(entries) % region.entries


def _thread_of(lane: Lane, region: Region, threads: list[int]) -> int:
    """Return the thread that hands over the buffers of a lane: the scheduler of a core, the last one orchestrates."""
    stream, index = lane
    if stream == "orch_phase":
        return region.threads - 1
    if stream == "sched_phase":
        return index % region.threads
    return max(threads[index], 0) % region.threads if index < len(threads) else 0


def _use(pool: Any, lane: Lane, total: int, place: int, used: np.random.Generator) -> None:
    """Let a pool look used: with buffers that wait, and one in use where none was handed over."""
    stream, _ = lane
    if stream == "orch_phase" and not total:
        # One thread orchestrates: the pools of the others are never filled.
        return
    most = record_dtype(stream, "v3")[1]
    # Schedulers take the next buffer behind the last record of one, all others before the first record of the next.
    turns = total // most if stream == "aicpu_task" else max(total - 1, 0) // most
    pool["current_buf_seq"] = turns
    pool["free_ptrs"] = _HEAP + _APART * (1 << 14) + 4096 * (place * _FREE + used.permutation(_FREE))
    pool["free_head"] = turns + 1
    pool["free_tail"] = turns + _FREE + 1
    if not total:
        # Threads without records do not even take a first buffer.
        is_idle = stream in ("aicpu_task", "aicore_task")
        pool["free_head"], pool["free_tail"] = int(is_idle), _FREE
        pool["current_buf_ptr"] = pool["free_ptrs"][0] if is_idle else 0


# --- records ----------------------------------------------------------------------------------------------------------


def _raw(struct_rows: int, dtype: np.dtype[Any], columns: Mapping[str, Any]) -> Rows:
    made = np.zeros(struct_rows, dtype)
    for name, values in columns.items():
        made[name] = values
    return made


def _raw_aicore(rows: Section, _: str) -> Rows:
    return _raw(
        len(rows),
        AICORE_RECORD.dtype,
        {
            "start_time": rows["start_cycles"],
            "end_time": rows["end_cycles"],
            "task_token_raw": rows["task_token_raw"],
            "reg_task_id": rows["reg_task_id"],
            "receive_to_start_cycles": rows["receive_to_start_cycles"],
        },
    )


def _raw_aicpu(rows: Section, format_version: str) -> Rows:
    columns = {"dispatch_time": "dispatch_cycles", "finish_time": "finish_cycles", "reg_task_id": "reg_task_id"}
    return _raw(
        len(rows), record_dtype("aicpu_task", format_version)[0], {name: rows[cell] for name, cell in columns.items()}
    )


def _kind_number(text: str, numbers: Mapping[str, int]) -> int:
    """Return the number of a kind: a text without one has it in its name, or gets the first that is free."""
    if text.startswith("kind_") and text[5:].isdecimal() and int(text[5:]) < 1 << 32:
        return int(text[5:])
    return numbers.get(text, len(numbers))


def _raw_phases(rows: Section, format_version: str) -> Rows:
    names = KIND_NUMBERS_V3C if format_version == "v3c" else KIND_NUMBERS_V3
    numbers = {name: number for number, name in names.items()}
    codes = [_kind_number(text, numbers) for text in rows.texts]
    columns: dict[str, Any] = {
        "start_time": rows["start_cycles"],
        "end_time": rows["end_cycles"],
        "loop_iter": rows["loop_iter"],
        "kind": np.array(codes or [0], np.uint32)[rows["kind"]],
        "tasks_processed": rows["tasks_processed"],
        "shared_depth_at_start": rows["shared_at_start"],
        "shared_depth_at_end": rows["shared_at_end"],
    }
    if format_version == "v3c":
        has_task = rows.has("task_id")
        task = rows["task_id"]
        low, high = (task & np.uint64(0xFFFFFFFF)).astype(np.int64), (task >> np.uint64(32)).astype(np.int64)
        columns["pop_hit_or_local_id"] = np.where(has_task, low, rows["pop_hit"])
        columns["pop_miss_or_ring_id"] = np.where(has_task, high, rows["pop_miss"])
    else:
        columns |= {"pop_hit": rows["pop_hit"], "pop_miss": rows["pop_miss"]}
        columns |= {"local_depth_at_start": rows["local_at_start"], "local_depth_at_end": rows["local_at_end"]}
    return _raw(len(rows), record_dtype("sched_phase", format_version)[0], columns)


def _raw_submits(rows: Section, format_version: str) -> Rows:
    columns = {"start_time": "start_cycles", "end_time": "end_cycles", "task_id": "task_id", "submit_idx": "submit_idx"}
    return _raw(
        len(rows), record_dtype("orch_phase", format_version)[0], {name: rows[cell] for name, cell in columns.items()}
    )


_UNREAD = {"aicore_task": _raw_aicore, "aicpu_task": _raw_aicpu, "sched_phase": _raw_phases, "orch_phase": _raw_submits}
