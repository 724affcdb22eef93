"""Records back to files: the exact inverse of reading, in the writer's own arrangement.

JSON files are written element by element; ``encode_dump`` writes dumps of device memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.ascend.formats.layout import (
    AICPU,
    DEPS_EDGES,
    DEPS_TASKS,
    PHASES,
    RECORDS,
    V1,
    V1_TASKS,
    V4_METRICS,
    V4_PHASES,
    JsonField,
    Layout,
)
from lanescope.devices.ascend.formats.records import Deps, Records, Section
from lanescope.devices.ascend.formats.records import section as make_section

Int64 = npt.NDArray[np.int64]
#: Texts at the ends of elements, and which of them each element has.
Tails = tuple[Sequence[str], Int64]

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
    parts: list[bytes] = [f'{{\n  "{records.level_key}": {records.level}'.encode()]
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


def _scheduler_tasks(section: Section) -> Iterator[bytes]:
    yield b',\n  "scheduler_tasks": {"producer": "aicpu", "records": '
    yield from _flat(section, 0, len(section), "    ")
    yield b"}"


def _scheduler_records(records: Records, section: Section) -> Iterator[bytes]:
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


@dataclass
class Annotations:
    """What a task graph file tells beside its tasks and edges.

    Attributes:
        tasks, edges: texts of further members of tasks and edges.
        of_task, of_edge: int64 [tasks], [edges], which text each has.
        tensors: text of the list of tensors.
    """

    tasks: Sequence[str]
    of_task: Int64
    edges: Sequence[str]
    of_edge: Int64
    tensors: str


def encode_deps(deps: Deps, annotations: Annotations | None = None, *, is_annotated: bool = True) -> bytes:
    """Return a task graph file, on one line.

    Args:
        deps: what to write; ``size`` is not used.
        annotations: what to write beside; None takes one use of one tensor for all.
        is_annotated: with the tensors behind the edges, as the runtime writes them.
    """
    argument, use = (f',"args":[{_ARGUMENT}]', _TENSOR_USE + _PRODUCER_USE) if is_annotated else ("", "")
    if annotations is None:
        annotations = Annotations(
            [argument], np.zeros(len(deps.tasks), np.int64), [use], np.zeros(len(deps.edges), np.int64), "[]"
        )
    told = annotations
    return b"".join(
        [
            f'{{"{DEPS_TASKS.name}":['.encode(),
            *_elements(deps.tasks, 0, len(deps.tasks), ",", compact=True, tails=(told.tasks, told.of_task)),
            f'],"tensors":{told.tensors},"{DEPS_EDGES.name}":['.encode(),
            *_elements(deps.edges, 0, len(deps.edges), ",", compact=True, tails=(told.edges, told.of_edge)),
            b"]}",
        ]
    )


def encode_names(names: Mapping[int, str], orchestrator: str | None, level: int = 2) -> bytes:
    """Return a name map."""
    table = {str(number): name for number, name in names.items()}
    given = {"level": level, "orchestrator_name": orchestrator, "callable_id_to_name": table}
    return json.dumps(given, indent=2).encode() + b"\n"


def _nested(section: Section) -> Iterator[bytes]:
    bounds = np.searchsorted(section.group, np.arange(section.groups + 1)).tolist()
    yield b"["
    for number, (begin, end) in enumerate(pairwise(bounds)):
        yield b",\n    " if number else b"\n    "
        yield from _flat(section, begin, end, "      ")
    yield b"\n  ]" if section.groups else b"]"


def _flat(section: Section, begin: int, end: int, indent: str) -> Iterator[bytes]:
    if begin == end:
        yield b"[]"
        return
    yield f"[\n{indent}".encode()
    yield from _elements(section, begin, end, f",\n{indent}", compact=False)
    yield f"\n{indent[:-2]}]".encode()


def _elements(
    section: Section, begin: int, end: int, separator: str, *, compact: bool, tails: Tails | None = None
) -> Iterator[bytes]:
    """Yield the text of elements, some thousand at a time: the buffers between stay small."""
    for first in range(begin, end, _ROWS_AT_ONCE):
        if first > begin:
            yield separator.encode()
        rows = slice(first, min(first + _ROWS_AT_ONCE, end))
        mine = None if tails is None else (tails[0], tails[1][rows])
        yield _lines(section.take(rows), separator, compact=compact, tails=mine)


def _lines(section: Section, separator: str, *, compact: bool, tails: Tails | None) -> bytes:
    """Write elements: one pattern for each set of cells that are there, numbers filled in natively."""
    count = len(section)
    columns: list[Any] = []
    at: dict[str, int] = {}
    variant = section.present.astype(np.int64)
    texts, of_row = ([""], np.zeros(count, np.int64)) if tails is None else tails
    variant = variant * len(texts) + of_row
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
    patterns = [_pattern(section, int(row), at, compact=compact, tail=texts[int(of_row[row])]) for row in first]
    values = np.array(columns, np.uint64).reshape(len(columns), count)
    return core.RowWriter(patterns, []).format(which.astype(np.uint32).reshape(-1), values, separator)


def _pattern(
    section: Section, row: int, at: Mapping[str, int], *, compact: bool, tail: str
) -> tuple[list[str], list[int], str]:
    """Return the texts around the numbers of elements like ``row``, the columns of the numbers, and their kinds."""
    layout, colon, comma = section.layout, (":" if compact else ": "), ("," if compact else ", ")
    texts, used, kinds = ["{" if layout.is_object else "["], list[int](), ""
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
            kinds += "uuuu"
            texts += [".", "", "", ""]
            continue
        # In the task graph ids are texts: they do not fit the numbers of every JSON reader.
        quote = '"' if compact and cell.kind == "token" else ""
        texts[-1] += quote if cell.count == 1 else "["
        for place in range(cell.count):
            used.append(at[cell.name] + place)
            kinds += "u" if cell.kind == "token" else "i"
            texts.append("" if place == cell.count - 1 else comma)
        texts[-1] += quote if cell.count == 1 else "]"
    texts[-1] += tail + ("}" if layout.is_object else "]")
    return texts, used, kinds


def _words(section: Section, cell: JsonField, row: int) -> list[str]:
    bits = int(section[cell.name][row])
    return [word for place, word in enumerate((*cell.words, "other")) if bits >> place & 1]


_WRITERS: Mapping[str, Callable[[Section, JsonField, int], Any]] = {
    "text": lambda section, cell, row: section.texts[section[cell.name][row]],
    "boolean": lambda section, cell, row: bool(section[cell.name][row]),
    "words": _words,
}
