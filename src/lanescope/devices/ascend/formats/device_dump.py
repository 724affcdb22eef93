"""Dumps of device memory to records: buffers as the producers left them, and the header and pools that say of them.

The pools say how many records their producer tried to write and how many it dropped; what arrived is held against that,
stream by stream: collected + dropped == total.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.formats.device_structs import KIND_NUMBERS_V3, KIND_NUMBERS_V3C, STREAMS
from lanescope.devices.ascend.formats.dump_parts import (
    Dump,
    Piece,
    are_of_one_lane,
    bare_streams,
    cut_region,
    pools_of,
    record_dtype,
    split_sections,
    stamps,
    valid_rows,
)
from lanescope.devices.ascend.formats.layout import AICORE, AICPU, MAX_CYCLES, PHASES, SUBMITS
from lanescope.devices.ascend.formats.newer_dumps import newer_buffers, newer_pools
from lanescope.devices.ascend.formats.records import Bytes, Records, Section, Stream, empty, section
from lanescope.errors import InputError, UsageError

Int64 = npt.NDArray[np.int64]
Rows = npt.NDArray[Any]

#: Replaces the key of the level, which a dump does not have.
LEVEL_KEY = "raw dump"
LISTS = {"aicpu_task": AICPU, "sched_phase": PHASES, "orch_phase": SUBMITS, "aicore_task": AICORE}
#: Phases that name a task in place of pops.
_NAMING = ("dummy_task", "predicated_skip", "graph_prepare")
#: Longest step between the numbers of two buffers; longer ones are damaged or have wrapped.
_MAX_HOLE = 256
#: Occupancy of a ready queue beyond which it is not one.
_MAX_DEPTH = 4096


def read_dump(content: Bytes, path: str, options: Mapping[str, Any]) -> Records:
    """Read a dump.

    Args:
        content: its bytes, uint8 [size].
        path: for messages.
        options: ``index``, core or thread of bare buffers; ``frequency`` of the counter and ``format_version``, if
            the dump contains neither.

    Raises:
        InputError: the content is not a dump, bare buffers of several streams, cores or threads, or a dump of a
            newer runtime.
    """
    dump = _taken_apart(content, path, options.get("index"))
    said = options.get("format_version")
    if said not in (None, "v2", "v3", "v3c"):
        raise UsageError(f"invalid value {said!r} for --format-version (choose from v2, v3, v3c)")
    format_version = dump.format_version or said or _format_version(content, dump)
    reader = _Dumped(content, dump, format_version or "v3c")
    header = _header(content, dump)
    sections = {layout.name: reader.section(stream, header.get("level", 0)) for stream, layout in LISTS.items()}
    seen = {LISTS[piece.stream].name for piece in dump.buffers}
    sections = {name: rows for name, rows in sections.items() if len(rows) or name == AICORE.name}
    frequency = options.get("frequency") or (None if dump.region is None else dump.region.frequency)
    metadata: dict[str, Any] = {} if frequency is None else {"clock_freq_hz": frequency}
    metadata |= {name: value for name, value in header.items() if name in ("num_cores", "core_to_thread")}
    lost = sum(piece.end - piece.begin for piece in dump.pieces if piece.what in ("cut", "lost")) + reader.bad_bytes
    cut = next((piece.begin for piece in dump.pieces if piece.what == "cut"), None)
    return Records(
        LEVEL_KEY,
        header.get("level") or _level(sections),
        metadata,
        sections,
        size=len(content),
        format_version=format_version or "v3c",
        streams=tuple(_streams(content, dump, reader.collected)),
        accounts=(reader.good_bytes, len(content) - reader.good_bytes - lost, lost),
        cut=cut,
        partial=frozenset(layout.name for layout in LISTS.values() if dump.region is None and layout.name not in seen),
        problems=(
            *_problems(dump, reader),
            ("ascend_format_version_assumed", int(not format_version), None),
            ("ascend_index_assumed", int(dump.is_bare and options.get("index") is None), None),
        ),
    )


def _taken_apart(content: Bytes, path: str, index: int | None) -> Dump:
    is_newer = newer_pools(content)
    dump = None if is_newer else split_sections(content, index or 0)
    if is_newer or (dump is not None and newer_buffers(content, dump)):
        raise InputError(
            f"{path} is device memory of a newer runtime, which keeps runs apart: the layout of its phases "
            "is not known",
            hint="pass the chip_swimlane_records.json that the collector wrote",
        )
    if dump is None:
        size = cut_region(content)
        if size is not None:
            raise InputError(
                f"{path} ends within the pools of device memory: {len(content):,} of {size:,} bytes",
                hint="pass the whole dump, or only the buffers with their ready entries",
            )
        streams = bare_streams(content)
        if streams:
            raise InputError(
                f"{path} consists of buffers of several streams ({', '.join(sorted(streams))}) without ready entries",
                hint="pass each buffer with its ready entry, or the buffers of one core or thread with --index",
            )
        raise InputError(
            f"{path} is neither a records file nor a dump of device memory",
            hint="pass a dump with header and pools, ready entries with their buffers, or buffers of one stream",
        )
    if dump.is_bare and index is None and not are_of_one_lane(content, dump):
        raise InputError(
            f"{path} consists of buffers of several cores or threads without ready entries",
            hint="pass each buffer with its ready entry, or the buffers of one core or thread with --index",
        )
    return dump


def _problems(dump: Dump, reader: _Dumped) -> Iterator[tuple[str, int, int | None]]:
    lost = [piece.begin for piece in dump.pieces if piece.what == "lost"]
    yield "ascend_bad_buffer", len(lost), lost[0] if lost else None
    yield "ascend_invalid_row", reader.bad_count, reader.bad_first
    yield "ascend_missing_start", reader.unstamped, None
    yield "ascend_slot_order", reader.out_of_order, None


def _format_version(content: Bytes, dump: Dump) -> str:
    """Return the format version that scheduler phases show; empty where there are none, or none that tells.

    Later phases have padding, which contains anything, where the first ones have their occupancies.
    """
    found = ""
    for piece in dump.buffers:
        if piece.stream != "sched_phase":
            continue
        rows = valid_rows(content, dump, piece, "v3")
        depths = np.concatenate([rows["shared_depth_at_start"], rows["shared_depth_at_end"]])
        if (rows["kind"] > max(KIND_NUMBERS_V3)).any() or (depths < 0).any() or (depths > _MAX_DEPTH).any():
            return "v3c"
        if depths.any():
            found = "v3"
    return found


def _header(content: Bytes, dump: Dump) -> dict[str, Any]:
    """Return what a header says besides its queues; the threads of cores only where they were assigned."""
    if dump.region is None:
        return {}
    head = np.frombuffer(content, dump.region.header.dtype, 1)[0]
    found = {"level": dump.level, "num_cores": dump.cores}
    assigned = head["core_to_thread"][: int(head["num_phase_cores"])].tolist()
    return {**found, "core_to_thread": assigned} if assigned else found


def _level(sections: Mapping[str, Section]) -> int:
    """Return the level that the streams which are there ask for."""
    by_list = {SUBMITS.name: 4, PHASES.name: 3, AICPU.name: 2}
    return max((by_list[name] for name in sections if name in by_list), default=1)


def _streams(content: Bytes, dump: Dump, collected: Mapping[tuple[str, int], int]) -> Iterator[Stream]:
    """Yield what pools say of their streams, against what arrived; without pools, what holes among buffers say."""
    if dump.region is None:
        yield from _with_holes(dump, collected)
        return
    pools = pools_of(content, dump.region, dump.cores)
    told = zip(pools["total_record_count"].tolist(), pools["dropped_record_count"].tolist(), strict=True)
    left = dict(collected)
    for (stream, index), (total, dropped) in zip(dump.region.pools(dump.cores), told, strict=True):
        arrived = left.pop((stream, index), 0)
        if total or dropped or arrived:
            yield Stream(stream, index, total, dropped, arrived, platform=dump.region.platform)
    # Buffers of cores or threads that have no pool.
    for (stream, index), arrived in sorted(left.items()):
        yield Stream(stream, index, 0, 0, arrived, platform=dump.region.platform)


def _with_holes(dump: Dump, collected: Mapping[tuple[str, int], int]) -> Iterator[Stream]:
    """Yield the threads of which buffers are missing between others: buffers are replaced when they are full.

    The records of cores have a counter of their own.
    """
    numbers: dict[tuple[str, int], set[int]] = {}
    for piece in dump.buffers:
        if piece.stream in ("sched_phase", "orch_phase") and not dump.is_bare:
            numbers.setdefault((piece.stream, piece.index), set()).add(piece.seq)
    for (stream, index), found in sorted(numbers.items()):
        steps = np.diff(sorted(found))
        missing = int((steps[steps <= _MAX_HOLE] - 1).sum())
        if missing:
            arrived = collected.get((stream, index), 0)
            yield Stream(stream, index, arrived + missing * record_dtype(stream, "v3")[1], 0, arrived)


class _Dumped:
    """The records of a dump, stream by stream."""

    def __init__(self, content: Bytes, dump: Dump, format_version: str) -> None:
        self._content = content
        self._format_version = format_version
        self._buffers: dict[str, list[Piece]] = {stream: [] for stream in STREAMS}
        self._dump = dump
        for piece in dump.buffers:
            self._buffers[piece.stream].append(piece)
        self.collected: dict[tuple[str, int], int] = {}
        self.good_bytes = self.bad_bytes = self.bad_count = self.unstamped = self.out_of_order = 0
        self.bad_first: int | None = None

    def section(self, stream: str, level: int) -> Section:
        """Return the records of a stream: by core or thread, and by the sequence of their buffers."""
        layout = LISTS[stream]
        # Sequences wrap; buffers of one stream lie in the order in which they were handed over.
        pieces = sorted(self._buffers[stream], key=lambda piece: piece.index)
        parts = [valid_rows(self._content, self._dump, piece, self._format_version) for piece in pieces]
        if not sum(map(len, parts)):
            return empty(layout)
        rows = np.concatenate(parts)
        index = np.repeat([piece.index for piece in pieces], [len(part) for part in parts])
        begin = np.concatenate(
            [piece.begin + np.arange(len(part)) * rows.itemsize for piece, part in zip(pieces, parts, strict=True)]
        )
        first, last = stamps(rows, stream)
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
            # A core fills the slots of a buffer one after the other.
            piece = np.repeat(np.arange(len(parts)), [len(part) for part in parts])[keep]
            falls = np.diff(first[keep].astype(np.int64)) < 0
            self.out_of_order += int(np.count_nonzero(falls & (piece[1:] == piece[:-1])))
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
