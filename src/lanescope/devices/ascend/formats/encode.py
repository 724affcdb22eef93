"""Records back to files: the exact inverse of reading, in the writer's own arrangement.

JSON files are written element by element, dumps of device memory buffer by buffer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.distinct import distinct
from lanescope.devices.ascend.formats.device_dump import LISTS, buffer_of, record_dtype
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
from lanescope.devices.ascend.formats.layout import (
    AICPU,
    DEPS_EDGES,
    DEPS_TASKS,
    PHASES,
    RECORDS,
    SUBMITS,
    V1,
    V1_TASKS,
    V4_METRICS,
    V4_PHASES,
    JsonField,
    Layout,
)
from lanescope.devices.ascend.formats.records import Deps, Records, Section
from lanescope.devices.ascend.formats.records import section as make_section

Text = bytes | memoryview
Rows = npt.NDArray[Any]

_MAX_DIGITS = 20
_ROWS_AT_ONCE = 8192
#: Parts of edges that readers of dependencies have no use for; real files are long because of them.
_TENSOR_USE = (
    ',"tensor_id":"9514117477438350967","consumer_dtype":"FLOAT16","consumer_shape":[128,128]'
    ',"consumer_start_offset":"0","consumer_strides":[128,1]'
)
_PRODUCER_USE = ',"overlap":"covered","producer_shape":[128,128],"producer_start_offset":"0","producer_strides":[128,1]'
_ARGUMENT = (
    '{"idx":0,"type":"INPUT","tensor_id":"9514117477438350967","dtype":"FLOAT16","shape":[128,128]'
    ',"start_offset":"0","strides":[128,1]}'
)


def encode_records(records: Records) -> bytes:
    """Return a records file, of the format version that ``records.format_version`` names (v2, v3 and v3c need none).

    Args:
        records: what to write; ``unknown`` and ``size`` are not used. A cell that is not present is left out. v1 writes
            nanoseconds: see ``as_v1`` for records of a counter; its edges go to the task graph, not into the rows.
    """
    parts: list[Text] = [f'{{\n  "{records.level_key}": {records.level}'.encode()]
    sections = records.sections
    if records.format_version in ("v1a", "v1b", "v1c"):
        from lanescope.devices.ascend.formats import v1

        sections = v1.sections_of(records)
    else:
        parts.append(f',\n  "metadata": {json.dumps(records.metadata)}'.encode())
    for layout in (*V1, *RECORDS):
        if layout.name in sections:
            section = sections[layout.name]
            if records.format_version == "v4" and layout in (AICPU, PHASES):
                parts += _scheduler_tasks(section) if layout is AICPU else _scheduler_records(records, section)
                continue
            parts.append(f',\n  "{layout.key}": '.encode())
            parts += _nested(section) if layout.depth == 2 else _flat(section, 0, len(section), "    ")
    if V1_TASKS.name in sections and records.metadata.get("core_to_thread") is not None:
        parts.append(f',\n  "core_to_thread": {json.dumps(records.metadata["core_to_thread"])}'.encode())
    parts.append(b"\n}\n")
    return b"".join(parts)


def _scheduler_tasks(section: Section) -> Iterator[Text]:
    yield b',\n  "scheduler_tasks": {"producer": "aicpu", "records": '
    yield from _flat(section, 0, len(section), "    ")
    yield b"}"


def _scheduler_records(records: Records, section: Section) -> Iterator[Text]:
    """Write a stream, with the counts of its phases, for each scheduler that has records or is declared."""
    told = {stream.index: stream for stream in records.streams if stream.kind == "sched_phase"}
    bounds = np.searchsorted(section.group, np.arange(section.groups + 1)).tolist()
    yield b',\n  "scheduler_records": {"streams": ['
    comma = b""
    for number in sorted({*told, *(n for n in range(section.groups) if bounds[n] < bounds[n + 1])}):
        rows = section.take(slice(bounds[number], bounds[number + 1]) if number < section.groups else slice(0))
        stream = told.get(number)
        dropped = 0 if stream is None or stream.dropped is None else stream.dropped
        total = len(rows) + dropped if stream is None or stream.total is None else stream.total
        head = {
            "platform": "a2a3" if stream is None else stream.platform,
            "producer": "aicpu" if stream is None else stream.producer,
            "scheduler_id": number,
            "worker_id": number,
            "core_type": None,
            "physical_core_id": None,
            "capture": {
                "committed": total - dropped,
                "dropped": dropped,
                "truncated": bool(stream is not None and stream.is_truncated),
            },
        }
        yield comma + b"\n    " + json.dumps(head)[:-1].encode() + b', "records": '
        comma = b","
        yield from _flat(_as(V4_PHASES, rows), 0, len(rows), "      ")
        yield b', "metrics": '
        metrics = _metrics(rows)
        yield from _flat(metrics, 0, len(metrics), "      ")
        yield b"}"
    yield b"]}"


def _as(layout: Layout, rows: Section) -> Section:
    """Return rows as those of a layout with other cells of the same names."""
    columns: dict[str, Any] = {}
    for cell in layout.cells:
        columns |= {cell.name: rows[cell.name], f"{cell.name}_valid": rows.has(cell.name)}
    return make_section(layout, columns, texts=rows.texts)


def _metrics(rows: Section) -> Section:
    counted = [cell.name for cell in V4_METRICS.cells[1:]]
    at = np.flatnonzero(np.logical_or.reduce([rows.has(name) for name in counted]))
    columns: dict[str, Any] = {"record_index": at}
    for name in counted:
        columns |= {name: rows[name][at], f"{name}_valid": rows.has(name)[at]}
    return make_section(V4_METRICS, columns)


def encode_deps(deps: Deps, *, is_annotated: bool = True) -> bytes:
    """Return a task graph file, on one line.

    Args:
        deps: what to write; ``size`` is not used.
        is_annotated: with the tensors behind the edges, as the runtime writes them.
    """
    argument, use = (f',"args":[{_ARGUMENT}]', _TENSOR_USE + _PRODUCER_USE) if is_annotated else ("", "")
    return b"".join(
        [
            f'{{"{DEPS_TASKS.name}":['.encode(),
            *_elements(deps.tasks, 0, len(deps.tasks), ",", compact=True, tail=argument),
            f'],"tensors":[],"{DEPS_EDGES.name}":['.encode(),
            *_elements(deps.edges, 0, len(deps.edges), ",", compact=True, tail=use),
            b"]}",
        ]
    )


def encode_names(names: Mapping[int, str], orchestrator: str | None, level: int = 2) -> bytes:
    """Return a name map."""
    table = {str(number): name for number, name in names.items()}
    given = {"level": level, "orchestrator_name": orchestrator, "callable_id_to_name": table}
    return json.dumps(given, indent=2).encode() + b"\n"


def _nested(section: Section) -> Iterator[Text]:
    bounds = np.searchsorted(section.group, np.arange(section.groups + 1)).tolist()
    yield b"["
    for number, (begin, end) in enumerate(pairwise(bounds)):
        yield b",\n    " if number else b"\n    "
        yield from _flat(section, begin, end, "      ")
    yield b"\n  ]" if section.groups else b"]"


def _flat(section: Section, begin: int, end: int, indent: str) -> Iterator[Text]:
    if begin == end:
        yield b"[]"
        return
    yield f"[\n{indent}".encode()
    yield from _elements(section, begin, end, f",\n{indent}", compact=False)
    yield f"\n{indent[:-2]}]".encode()


def _elements(
    section: Section, begin: int, end: int, separator: str, *, compact: bool, tail: str = ""
) -> Iterator[Text]:
    """Yield the text of elements, some thousand at a time: the buffers between stay small."""
    for first in range(begin, end, _ROWS_AT_ONCE):
        if first > begin:
            yield separator.encode()
        rows = slice(first, min(first + _ROWS_AT_ONCE, end))
        yield _lines(section.take(rows), separator, compact=compact, tail=tail)


def _lines(section: Section, separator: str, *, compact: bool, tail: str) -> memoryview:
    """Write elements: one pattern for each set of cells that are there, numbers filled in natively."""
    count = len(section)
    columns: list[Any] = []
    at: dict[str, int] = {}
    variant = section.present.astype(np.int64)
    for cell in section.layout.cells:
        values = section[cell.name]
        if cell.kind in _WRITERS:
            variant = variant * (int(values.max(initial=0)) + 1) + values
            continue
        at[cell.name] = len(columns)
        parts = [values] if cell.count == 1 else [values[:, place] for place in range(cell.count)]
        if cell.kind == "micros":
            parts = [values // 1000, values // 100 % 10, values // 10 % 10, values % 10]
        columns += [part.astype(np.int64).view(np.uint64) if part.dtype != np.uint64 else part for part in parts]
    _, first, which = np.unique(variant, return_index=True, return_inverse=True)
    patterns = [_pattern(section, int(row), at, compact=compact, tail=tail) for row in first]
    values = np.array(columns, np.uint64).reshape(len(columns), count)
    largest = max(sum(map(len, texts)) + _MAX_DIGITS * len(used) for texts, used, _ in patterns)
    out = np.empty(count * (largest + len(separator)), np.uint8)
    size = core.ascend_format(patterns, which.astype(np.uint32).reshape(-1), values, separator, out)
    return out[:size].data


def _pattern(
    section: Section, row: int, at: Mapping[str, int], *, compact: bool, tail: str
) -> tuple[list[str], list[int], list[bool]]:
    """Return the texts around the numbers of elements like ``row``, the columns of the numbers, and their signs."""
    layout, colon, comma = section.layout, (":" if compact else ": "), ("," if compact else ", ")
    texts, used, signed = ["{" if layout.is_object else "["], list[int](), list[bool]()
    is_first = True
    for cell in layout.cells:
        if not section.present[row] & layout.bit(cell.name):
            continue
        texts[-1] += "" if is_first else comma
        is_first = False
        if layout.is_object:
            texts[-1] += json.dumps(cell.name) + colon
        if cell.name not in at:
            texts[-1] += json.dumps(_WRITERS[cell.kind](section, cell, row))
            continue
        if cell.kind == "micros":
            used += range(at[cell.name], at[cell.name] + 4)
            signed += [False] * 4
            texts += [".", "", "", ""]
            continue
        # In the task graph ids are texts: they do not fit the numbers of every JSON reader.
        quote = '"' if compact and cell.kind == "token" else ""
        texts[-1] += quote if cell.count == 1 else "["
        for place in range(cell.count):
            used.append(at[cell.name] + place)
            signed.append(cell.kind != "token")
            texts.append("" if place == cell.count - 1 else comma)
        texts[-1] += quote if cell.count == 1 else "]"
    texts[-1] += tail + ("}" if layout.is_object else "]")
    return texts, used, signed


def _words(section: Section, cell: JsonField, row: int) -> list[str]:
    bits = int(section[cell.name][row])
    return [word for place, word in enumerate((*cell.words, "other")) if bits >> place & 1]


_WRITERS: Mapping[str, Callable[[Section, JsonField, int], Any]] = {
    "text": lambda section, cell, row: section.texts[section[cell.name][row]],
    "boolean": lambda section, cell, row: bool(section[cell.name][row]),
    "words": _words,
}


# --- dumps of device memory -------------------------------------------------------------------------------------------


def encode_dump(
    records: Records,
    region: Region | None = REGIONS[0],
    *,
    format_version: str = "",
    losses: Mapping[tuple[str, int], tuple[int, int]] | None = None,
) -> bytes:
    """Return a dump: the exact inverse of reading, as far as records of the device hold what is asked for.

    Args:
        records: what to write.
        region: the chip whose header and pools come first; None: entries and buffers alone.
        format_version: v3 or v3c, whose phases to write; empty: that of the region.
        losses: by stream and index: records dropped with notice, and without.
    """
    format_version = format_version or ("v3c" if region is None else region.format_version)
    buffers, written = list[bytes](), dict[tuple[str, int], int]()
    for stream, layout in LISTS.items():
        rows = records[layout]
        index = rows["core_id"].astype(np.int64) if layout.depth == 1 else rows.group.astype(np.int64)
        raw = _UNREAD[stream](rows, format_version)
        for number in distinct(index).tolist():
            mine = raw[index == number]
            written[stream, number] = len(mine)
            buffers += _filled(mine, stream, number, format_version)
    head = b"" if region is None else _region(records, region, buffers[::2], written, losses or {})
    return head + b"".join(buffers)


def _filled(rows: Rows, stream: str, index: int, format_version: str) -> Iterable[bytes]:
    _, most, size = record_dtype(stream, format_version)
    struct = buffer_of(stream, format_version)
    for seq, first in enumerate(range(0, len(rows), most)):
        part = rows[first : first + most]
        entry = {"core_index": index, "kind": STREAMS.index(stream), "buffer_ptr": 4096 * (seq + 1), "buffer_seq": seq}
        yield QUEUE_ENTRY.encode(entry)
        content = np.zeros(size, np.uint8)
        content[: part.nbytes] = part.view(np.uint8).reshape(-1)
        content[struct["count"].offset :][:4] = np.frombuffer(len(part).to_bytes(4, "little"), np.uint8)
        yield content.tobytes()


def _region(
    records: Records,
    region: Region,
    entries: list[bytes],
    written: Mapping[tuple[str, int], int],
    losses: Mapping[tuple[str, int], Any],
) -> bytes:
    head = np.zeros(1, region.header.dtype)[0]
    # All were handed over by the first thread, and taken.
    kept = entries[-region.entries :]
    head["queues"][: len(kept)] = np.frombuffer(b"".join(kept), QUEUE_ENTRY.dtype)
    head["queue_heads"][0] = head["queue_tails"][0] = len(kept) % region.entries
    head["num_cores"] = min(max(int(records.metadata.get("num_cores") or 1), 1), region.cores)
    head["level"] = records.level
    head["num_sched_phase_threads"] = min(records[PHASES].groups, region.threads)
    head["num_orch_phase_threads"] = min(records[SUBMITS].groups, region.threads)
    threads = records.metadata.get("core_to_thread") or []
    head["core_to_thread"] = -1
    head["core_to_thread"][: len(threads)] = threads[: region.cores]
    pools = np.zeros(len(region.pools), POOL.dtype)
    for pool, key in zip(pools, region.pools, strict=True):
        dropped, silent = losses.get(key, (0, 0))
        pool["total_record_count"] = written.get(key, 0) + dropped + silent
        pool["dropped_record_count"] = dropped
    return bytes(head.tobytes()) + pools.tobytes()


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
