"""The files of a capture: records of any format version, task graphs, names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from lanescope.declaration import replace
from lanescope.devices.ascend.formats.json_reader import Cut, File, Reader
from lanescope.devices.ascend.formats.layout import (
    AICORE,
    AICPU,
    DEPS,
    HOST_SUBMITS,
    LEVEL_KEYS,
    LIFECYCLE,
    PHASES,
    RECORDS,
    SUBMITS,
    UPLOADS,
    V1_PHASES,
    V1_SUBMITS,
    V1_TASKS,
    V4_AICPU,
    V4_PHASES,
)
from lanescope.devices.ascend.formats.records import Bytes, Deps, Records, Section, empty
from lanescope.errors import InputError

#: Lists that v1 writes under the same key, in microseconds.
_DECIMAL = {PHASES.name: V1_PHASES, SUBMITS.name: V1_SUBMITS}
#: Lists that the records of each kind may stand in.
_SOURCES = {
    AICORE: (AICORE, V1_TASKS),
    AICPU: (AICPU, V4_AICPU, V1_TASKS),
    PHASES: (PHASES, V4_PHASES, V1_PHASES),
    SUBMITS: (SUBMITS, V1_SUBMITS),
    HOST_SUBMITS: (HOST_SUBMITS,),
    UPLOADS: (UPLOADS,),
    LIFECYCLE: (LIFECYCLE,),
}
_V4_KEYS = ("scheduler_tasks", "scheduler_records")


def terminated(content: Bytes) -> Bytes:
    """Return a copy of the bytes with the NUL behind them that the scanner stops at."""
    text = np.zeros(len(content) + 1, np.uint8)
    text[:-1] = content
    return text


def read_records(text: Bytes, path: str, reached: list[int] | None = None) -> Records:
    """Read a records file; one that is cut off as far as it goes.

    Args:
        text: its bytes and a NUL, uint8 [size + 1].
        path: for messages.
        reached: one number, the byte that has been read; it is kept up to date.

    Raises:
        InputError: it is not a JSON object, is not a records file of a known format version, or ends before the first
            record or before the fields that the records need.
    """
    reader = Reader(text, path, can_be_cut=True, reached=reached)
    file = File(path, len(text) - 1)
    with suppress(Cut):
        _read_entries(reader, file, text)
    if reader.cut is None:
        return _records(file, text)
    try:
        records = _records(file, text)
    except InputError:
        raise reader.cut_off() from None  # what is missing stood behind the cut
    if not any(len(section) for section in records.as_read.values()):
        raise reader.cut_off()
    partial = [kind.name for kind, lists in _SOURCES.items() if file.whole.isdisjoint(layout.name for layout in lists)]
    return replace(records, cut=reader.cut, partial=frozenset(partial))


def _read_entries(reader: Reader, file: File, text: Bytes) -> None:
    known = {layout.key: layout for layout in (*RECORDS, V1_TASKS)}
    for key in reader.entries():
        if key in known and reader.is_list():
            layout = known[key]
            if layout.name in _DECIMAL and reader.is_near(b'"start_time_us"'):
                layout = _DECIMAL[layout.name]
            file.take(layout, reader)
        elif key in LEVEL_KEYS:
            file.levels[key] = reader.value()
        elif key == "metadata":
            file.metadata = reader.value()
        elif key == "core_to_thread":
            file.core_to_thread = reader.value()
        elif key == "scheduler_tasks" and reader.is_object():
            _read_scheduler_tasks(reader, file)
        elif key == "scheduler_records" and reader.is_object():
            from lanescope.devices.ascend.formats import v4

            v4.read_streams(reader, file)
        else:
            begin, end = reader.skip()
            if (key not in known and key not in _V4_KEYS) or text[begin:end].tobytes() != b"null":
                file.unknown.append((key, begin, end))
            file.other.add(key)


def _read_scheduler_tasks(reader: Reader, file: File) -> None:
    for name in reader.fields():
        if name == V4_AICPU.key and reader.is_list():
            file.take(V4_AICPU, reader)
        elif name == "producer":
            file.producer = reader.value()
        elif name == "schema_version":
            file.schema_versions.append(reader.value())
        else:
            file.unknown.append((f"scheduler_tasks.{name}", *reader.skip()))


def _records(file: File, text: Bytes) -> Records:
    """Return a file's records, by the reader of its format version; ``InputError`` if it is none, or mixes versions."""
    shape = _shape(file)
    if shape == "v1":
        from lanescope.devices.ascend.formats import v1

        return v1.records(file, _level(file), text)
    if shape == "v4":
        from lanescope.devices.ascend.formats import v4

        return v4.records(file, _level(file))
    # v2, v3 and v3c: the lists are what they say.
    return Records(*_level(file), file.counted(), file.lists, tuple(file.unknown), file.size)


def _shape(file: File) -> str:
    """Return the family of format versions that a file belongs to: ``v1``, ``raw`` (v2, v3, v3c) or ``v4``."""
    lists = {name for name, section in file.lists.items() if len(section)}
    given = {*file.lists, *file.other, *(name for name, _, _ in file.unknown)}
    is_v1 = V1_TASKS.name in file.lists and given.isdisjoint(("edges", "tensors"))
    # An empty list proves little, but a file with it is not a deps file.
    is_v1 |= "l2_perf_level" in file.levels or not lists.isdisjoint(("v1_scheduler_phases", "v1_orchestrator_phases"))
    rows = file.lists.get(AICORE.name)
    is_v4 = not given.isdisjoint((V4_AICPU.name, "v4_scheduler_records")) or bool(file.streams)
    is_v4 |= rows is not None and bool(rows.has("run_epoch").any())
    raw = {AICORE.name, AICPU.name} & given
    phases = {PHASES.name, SUBMITS.name} & lists
    found = [
        name for name, is_it in (("v1", is_v1), ("v4", is_v4), ("raw", bool(raw or phases) and not is_v4)) if is_it
    ]
    is_double = {AICPU.name, V4_AICPU.name} <= lists or {PHASES.name, "v4_scheduler_records"} <= lists
    if len(found) > 1 or is_double:
        raise InputError(
            f"{file.path}: lists of more than one format version", hint="pass the file as the collector wrote it"
        )
    return found[0] if found else "raw"


def _level(file: File) -> tuple[str, int]:
    """Return the key of the level and the level; ``InputError`` without a usable one."""
    levels = dict(file.levels)
    if len(levels) > 1 or V1_TASKS.name not in file.lists:
        levels.pop("version", None)
    if len(levels) != 1 or not {"edges", "tensors"}.isdisjoint({*file.other, *(name for name, _, _ in file.unknown)}):
        raise InputError(
            f"{file.path}: {'no' if not levels or len(levels) == 1 else 'more than one'} swimlane level found",
            hint="pass the records file *_swimlane_records.json",
        )
    key, level = next(iter(levels.items()))
    if type(level) is not int or not 1 <= level <= 4:
        raise InputError(
            f"{file.path}: invalid level {level!r}: must be 1 to 4", hint="pass the file as the collector wrote it"
        )
    return key, level


def entries(text: Bytes, path: str) -> Iterator[tuple[str, int, int]]:
    """Yield the keys at the top of a file, and where the value of each begins and ends; arguments as ``read_records``.

    The last one of a file that is cut off is ``(cut off)``, with the bytes behind the last whole value.

    Raises:
        InputError: it is not a JSON object.
    """
    reader = Reader(text, path, can_be_cut=True)
    with suppress(Cut):
        for key in reader.entries():
            yield key, *reader.skip()
    if reader.cut is not None:
        yield "(cut off)", reader.cut, len(text) - 1


def read_deps(text: Bytes, path: str) -> Deps:
    """Read a task graph file; arguments as ``read_records``.

    Raises:
        InputError: it is not a JSON object, is truncated, or has neither tasks nor edges.
    """
    reader = Reader(text, path)
    known = {layout.name: layout for layout in DEPS}
    found: dict[str, Section] = {}
    for key in reader.entries():
        if key in known and reader.is_list():
            found[key] = reader.section(known[key])
        else:
            reader.skip()
    if not found:
        raise InputError(f"{path}: invalid task graph: neither tasks nor edges", hint="pass the deps.json of the run")
    tasks, edges = (found[layout.name] if layout.name in found else empty(layout) for layout in DEPS)
    return Deps(tasks, edges, len(text) - 1)


def read_names(content: bytes, path: str) -> tuple[dict[int, str], str | None]:
    """Read a name map: function names by number, and the orchestrator's name.

    Raises:
        InputError: it is not a name map.
    """
    try:
        given = json.loads(content)
        names = given["callable_id_to_name"]
        orchestrator = given.get("orchestrator_name")
        return {int(number): str(name) for number, name in names.items()}, None if orchestrator is None else str(
            orchestrator
        )
    except (RecursionError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f"{path}: invalid name map: {error!r}", hint='write {"callable_id_to_name": {"0": "name", ...}}'
        ) from None
