"""Records back to files: the exact inverse of reading, element by element, in the writer's own arrangement."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from lanescope._native import core
from lanescope.devices.ascend.layout import DEPS_EDGES, DEPS_TASKS, RECORDS, Cell
from lanescope.devices.ascend.records import Deps, Records, Section

_MAX_DIGITS = 20
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
    """Return a records file.

    Args:
        records: what to write; ``unknown`` and ``size`` are not used. A cell that is not present is left out.
    """
    parts = [f'{{\n  "{records.level_key}": {records.level},\n  "metadata": {json.dumps(records.metadata)}'.encode()]
    for layout in RECORDS:
        if layout.name in records.sections:
            section = records.sections[layout.name]
            body = _nested(section) if layout.depth == 2 else _flat(section, range(len(section)), b"    ")
            parts.append(f',\n  "{layout.name}": '.encode() + body)
    parts.append(b"\n}\n")
    return b"".join(parts)


def encode_deps(deps: Deps, *, is_annotated: bool = True) -> bytes:
    """Return a task graph file, on one line.

    Args:
        deps: what to write; ``size`` is not used.
        is_annotated: with the tensors behind the edges, as the runtime writes them.
    """
    parts = []
    for layout, section in ((DEPS_TASKS, deps.tasks), (DEPS_EDGES, deps.edges)):
        end = ""
        if is_annotated:
            end = _TENSOR_USE + _PRODUCER_USE if layout is DEPS_EDGES else f',"args":[{_ARGUMENT}]'
        parts.append(f'"{layout.name}":['.encode() + _objects(section, ",", compact=True, end=end) + b"]")
    return b"{" + b',"tensors":[],'.join(parts) + b"}"


def encode_names(names: Mapping[int, str], orchestrator: str | None, level: int = 2) -> bytes:
    """Return a name map."""
    table = {str(number): name for number, name in names.items()}
    given = {"level": level, "orchestrator_name": orchestrator, "callable_id_to_name": table}
    return json.dumps(given, indent=2).encode() + b"\n"


def _nested(section: Section) -> bytes:
    bounds = np.searchsorted(section.group, np.arange(section.groups + 1)).tolist()
    inner = [b"    " + _flat(section, range(low, high), b"      ") for low, high in pairwise(bounds)]
    return b"[\n" + b",\n".join(inner) + b"\n  ]" if inner else b"[]"


def _flat(section: Section, rows: range, indent: bytes) -> bytes:
    if not rows:
        return b"[]"
    part = section.take(slice(rows.start, rows.stop))  # type: ignore[arg-type]
    separator = ",\n" + indent.decode()
    return b"[\n" + indent + _objects(part, separator, compact=False) + b"\n" + indent[:-2] + b"]"


def _objects(section: Section, separator: str, *, compact: bool, end: str = "") -> bytes:
    """Write elements end to end: one line for each set of cells that are there, numbers filled in natively."""
    count = len(section)
    if not count:
        return b""
    columns: list[Any] = []
    at: dict[str, int] = {}
    variant = section.present.astype(np.int64)
    spread: list[Cell] = []
    for cell in section.layout.cells:
        values = section[cell.name]
        if cell.kind in ("text", "words", "boolean"):
            spread.append(cell)
            variant = variant * (int(values.max(initial=0)) + 1) + values
            continue
        at[cell.name] = len(columns)
        parts = [values] if cell.count == 1 else [values[:, place] for place in range(cell.count)]
        columns += [part.astype(np.int64).view(np.uint64) if part.dtype != np.uint64 else part for part in parts]
    _, first, which = np.unique(variant, return_index=True, return_inverse=True)
    lines = [_line(section, int(row), at, compact=compact, end=end) for row in first]
    values = np.ascontiguousarray(columns, np.uint64) if columns else np.empty((0, count), np.uint64)
    largest = max(sum(map(len, texts)) + _MAX_DIGITS * len(used) for texts, used, _ in lines)
    out = np.empty(count * (largest + len(separator)), np.uint8)
    size = core.ascend_format(lines, which.astype(np.uint32).reshape(-1), values, separator, out)
    return out[:size].tobytes()


def _line(
    section: Section, row: int, at: Mapping[str, int], *, compact: bool, end: str
) -> tuple[list[str], list[int], list[bool]]:
    """Return the texts around the numbers of elements like ``row``, the columns of the numbers, and their signs."""
    layout, colon, comma = section.layout, (":" if compact else ": "), ("," if compact else ", ")
    texts, used, signed = ["{" if layout.is_object else "["], [], []
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
        # In the task graph ids are texts: they do not fit the numbers of every JSON reader.
        quote = '"' if compact and cell.kind == "token" else ""
        texts[-1] += quote if cell.count == 1 else "["
        for place in range(cell.count):
            used.append(at[cell.name] + place)
            signed.append(cell.kind != "token")
            texts.append("" if place == cell.count - 1 else comma)
        texts[-1] += quote if cell.count == 1 else "]"
    texts[-1] += end + ("}" if layout.is_object else "]")
    return texts, used, signed


def _words(section: Section, cell: Cell, row: int) -> list[str]:
    bits = int(section[cell.name][row])
    return [word for place, word in enumerate((*cell.words, "other")) if bits >> place & 1]


_WRITERS: Mapping[str, Callable[[Section, Cell, int], Any]] = {
    "text": lambda section, cell, row: section.texts[section[cell.name][row]],
    "boolean": lambda section, cell, row: bool(section[cell.name][row]),
    "words": _words,
}
