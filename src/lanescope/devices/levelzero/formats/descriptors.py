"""Structures that functions are given, as the recorder writes them into entries -> rows of ``arguments``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.levelzero.formats.ctf_rows import Process, RecordRows, Records, Stream

_SCOPES = ("SUBDEVICE", "DEVICE", "HOST")
#: Bits of flags, from bit 0, by function and parameter. Source: ze_api.h of API 1.17.
FLAGS: Mapping[tuple[str, str], Sequence[str]] = {
    ("zeCommandListCreate", "desc_flags"): (
        "RELAXED_ORDERING",
        "MAXIMIZE_THROUGHPUT",
        "EXPLICIT_ONLY",
        "IN_ORDER",
        "EXP_CLONEABLE",
        "COPY_OFFLOAD_HINT",
    ),
    ("zeCommandListCreateImmediate", "altdesc_flags"): ("EXPLICIT_ONLY", "IN_ORDER", "COPY_OFFLOAD_HINT"),
    ("zeCommandQueueCreate", "desc_flags"): ("EXPLICIT_ONLY", "IN_ORDER", "COPY_OFFLOAD_HINT"),
    ("zeEventPoolCreate", "desc_flags"): ("HOST_VISIBLE", "IPC", "KERNEL_TIMESTAMP", "KERNEL_MAPPED_TIMESTAMP"),
    ("zeKernelCreate", "desc_flags"): ("FORCE_RESIDENCY", "EXPLICIT_RESIDENCY"),
    **{
        (function, "device_desc_flags"): ("BIAS_CACHED", "BIAS_UNCACHED", "BIAS_INITIAL_PLACEMENT")
        for function in ("zeMemAllocShared", "zeMemAllocDevice")
    },
    **{
        (function, "host_desc_flags"): (
            "BIAS_CACHED",
            "BIAS_UNCACHED",
            "BIAS_WRITE_COMBINED",
            "BIAS_INITIAL_PLACEMENT",
            "MEM_READ_ONLY",
        )
        for function in ("zeMemAllocShared", "zeMemAllocHost")
    },
}
_MODES = ("DEFAULT", "SYNCHRONOUS", "ASYNCHRONOUS")
_PRIORITIES = ("NORMAL", "PRIORITY_LOW", "PRIORITY_HIGH")
_FORMATS = ("IL_SPIRV", "NATIVE")
#: Columns of ``arguments`` by field, without the parameter before it: column, and what its numbers are called.
_ENUMS = {"mode": ("mode", _MODES), "priority": ("priority", _PRIORITIES), "format": ("format", _FORMATS)}
_NUMBERS = {"ordinal": "ordinal", "index": "index", "count": "count", "inputSize": "bytes"}
_ENTRY = "_entry"


def add_arguments(rows: RecordRows, stream: Stream, process: Process, names: Mapping[int, str]) -> None:
    """Add the structures of the calls of a stream; ``names`` are those of the classes that occur."""
    for number, name in names.items():
        if not name.endswith(_ENTRY):
            continue
        fields = process.reader.about.events[number].fields
        parameters = [item.name.removesuffix("_state") for item in fields if item.name.endswith("_state")]
        if parameters:
            records = Records(stream, process, number, np.flatnonzero(stream.events.classes == number))
            _add(rows, records, name.removesuffix(_ENTRY), parameters)


def _add(rows: RecordRows, records: Records, function: str, parameters: Sequence[str]) -> None:
    columns: dict[str, Any] = {}
    states, chains = [], []
    for parameter in parameters:
        states.append(records.integers(f"{parameter}_state"))
        known = states[-1] == 1
        chains.append(_chains(records, parameter))
        for field in (
            item.removeprefix(f"{parameter}_") for item in records.fields if item.startswith(f"{parameter}_")
        ):
            values = records.integers(f"{parameter}_{field}")
            if field == "flags":
                column = "host_flags" if parameter == "host_desc" else "flags"
                texts = FLAGS.get((function, f"{parameter}_flags"), ())
                columns[column] = (_codes(rows, column, values, lambda value, texts=texts: flags(value, texts)), known)
            elif field in ("signal", "wait"):
                columns[field] = (_codes(rows, field, values, lambda value: flags(value, _SCOPES)), known)
            elif field in _ENUMS:
                column, words = _ENUMS[field]
                columns[column] = (_codes(rows, column, values, lambda value, words=words: _word(value, words)), known)
            elif field in _NUMBERS:
                columns[_NUMBERS[field]] = (values, known)
            elif field == "pBuildFlags":
                texts = records.texts(f"{parameter}_{field}")
                columns["build_flags"] = (rows.codes("arguments", "build_flags").codes(texts), known)
    for name in ("size", "alignment"):
        if name in records.fields:
            columns["bytes" if name == "size" else name] = records.integers(name)
    extensions = [", ".join(filter(None, parts)) for parts in zip(*chains, strict=True)]
    state = np.maximum.reduce(states)
    rows.put(
        "arguments",
        records,
        extensions=(rows.codes("arguments", "extensions").codes(extensions), np.array([bool(e) for e in extensions])),
        state=_codes(rows, "state", state, lambda value: _word(value, ("null", "read", "unreadable"))),
        **columns,
    )


def _codes(rows: RecordRows, column: str, values: npt.NDArray[np.uint64], text_of: Any) -> npt.NDArray[np.int32]:
    unique, inverse = np.unique(values, return_inverse=True)
    found: npt.NDArray[np.int32] = rows.codes("arguments", column).codes([text_of(v) for v in unique.tolist()])[inverse]
    return found


def _chains(records: Records, parameter: str) -> list[str]:
    """Return the types of the structures behind each pNext, in their order."""
    owner, stypes = records.sequences(f"{parameter}_next")
    kind = records.fields.get(f"{parameter}_stype")
    labels = kind.labels if kind is not None else {}
    found: list[list[str]] = [[] for _ in range(len(records.rows))]
    for row, stype in zip(owner.tolist(), stypes.tolist(), strict=True):
        found[row].append(labels.get(stype, f"0x{stype:x}"))
    return [", ".join(names) for names in found]


def flags(value: int, names: Sequence[str]) -> str:
    """Return flags as text: names with bars between, unknown bits as a number, 0 as it is.

    Example:
        >>> flags(5, ("A", "B")), flags(0, ("A",))
        ('A|0x4', '0')
    """
    found = [name for bit, name in enumerate(names) if value >> bit & 1]
    rest = value >> len(names) << len(names)
    return "|".join(found + ([f"0x{rest:x}"] if rest else [])) or "0"


def _word(value: int, words: Sequence[str]) -> str:
    return words[value] if value < len(words) else f"{value}"
