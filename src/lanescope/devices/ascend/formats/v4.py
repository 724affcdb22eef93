"""The reader of v4: the schedulers' rows and phases stand in objects that say who wrote them.

A stream without records is not in the file, so its place says nothing: ``scheduler_id`` says which scheduler it belongs
to. What a phase counted stands apart from it, in ``metrics``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lanescope.declaration import replace
from lanescope.devices.ascend.formats.json_reader import File, Reader
from lanescope.devices.ascend.formats.layout import (
    AICORE,
    AICPU,
    MAX_CORE,
    MAX_STREAMS,
    PHASES,
    RECORDS,
    V4_AICPU,
    V4_METRICS,
    V4_PHASES,
)
from lanescope.devices.ascend.formats.records import Records, Section, Stream, concat, empty, section

#: What a producer tells about its stream.
_TOLD = ("platform", "runtime", "producer", "scheduler_id", "worker_id", "core_type", "physical_core_id", "capture")
_COUNTED = ("pop_hit", "pop_miss", "shared_at_start", "shared_at_end")
_MAX_COUNT = 1 << 62
#: What ``schema_version`` says in all files that writers have made.
_SCHEMA = 1
#: Words that producers have for where a stream comes from.
_WORDS = {"platform": ("a2a3", "a5", "a2a3sim", "a5sim"), "producer": ("aicpu", "aicore")}


def read_streams(reader: Reader, file: File) -> None:
    """Read ``scheduler_records``, the value that comes next."""
    try:
        for name in reader.fields():
            if name == "schema_version":
                file.schema_versions.append(reader.value())
                continue
            if name != "streams" or not reader.is_list():
                file.unknown.append((f"scheduler_records.{name}", *reader.skip()))
                continue
            for _ in reader.items():
                if reader.is_object() and len(file.streams) < MAX_STREAMS:
                    _read_stream(reader, file)
                else:
                    file.unknown.append(("scheduler_records.streams", *reader.skip()))
    finally:  # a file may be cut off in here
        file.lists[V4_PHASES.name] = concat(V4_PHASES, [(0, phases) for _, phases, _ in file.streams])
        file.lists[V4_METRICS.name] = concat(V4_METRICS, [(0, metrics) for _, _, metrics in file.streams])
    if reader.cut is None:
        file.whole.add(V4_PHASES.name)


def _read_stream(reader: Reader, file: File) -> None:
    told: dict[str, Any] = {}
    phases, metrics = empty(V4_PHASES), empty(V4_METRICS)
    try:
        for name in reader.fields():
            if name == V4_PHASES.key and reader.is_list():
                phases = reader.section(V4_PHASES)
            elif name == V4_METRICS.key and reader.is_list():
                metrics = reader.section(V4_METRICS)
            elif name in _TOLD:
                told[name] = reader.value()
            else:
                file.unknown.append((f"scheduler_records.streams.{name}", *reader.skip()))
    finally:
        file.streams.append((told, phases, metrics))


def records(file: File, level: tuple[str, int]) -> Records:
    """Return the records of a file; arguments and errors as ``files.read_records``."""
    sections = {layout.name: file.lists[layout.name] for layout in RECORDS if layout.name in file.lists}
    if V4_AICPU.name in file.lists:
        sections[AICPU.name] = replace(file.lists[V4_AICPU.name], layout=AICPU)
    sections.setdefault(AICORE.name, empty(AICORE))
    streams, unplaced, strange = [], 0, _strange(file)
    if file.streams:
        parts = []
        for number, (told, phases, metrics) in zip(_numbers(file), file.streams, strict=True):
            joined, left = _joined(phases, metrics)
            unplaced += left
            if told.get("producer") == "aicpu" and V4_PHASES.name in file.whole:
                unplaced += _without_metrics(phases, metrics)
            parts.append((number, joined))
            streams.append(_stream(told, number, len(phases)))
        parts.sort(key=lambda part: part[0])
        sections[PHASES.name] = concat(PHASES, parts)
    return Records(
        *level,
        file.counted(),
        sections,
        tuple(file.unknown),
        file.size,
        format_version="v4",
        lists={name: rows for name, rows in file.lists.items() if name != PHASES.name or len(rows)},
        streams=tuple(streams),
        problems=tuple(
            (name, count, None)
            for name, count in (("ascend_metric_unmatched", unplaced), ("ascend_unknown_value", strange))
            if count
        ),
    )


def _numbers(file: File) -> list[int]:
    """Return the scheduler of each stream.

    Streams of one scheduler and producer belong together; what another producer calls by a number that is taken, or
    has no number, goes behind all others.
    """
    names: dict[int, str] = {}
    numbers: list[int] = []
    for told, _, _ in file.streams:
        number, producer = told.get("scheduler_id"), str(told.get("producer"))
        if type(number) is not int or not 0 <= number <= MAX_CORE or names.setdefault(number, producer) != producer:
            number = -1
        numbers.append(number)
    behind = max(names, default=-1)
    for place, number in enumerate(numbers):
        if number < 0:
            behind += 1
            numbers[place] = behind
    return numbers


def _joined(phases: Section, metrics: Section) -> tuple[Section, int]:
    """Return the phases of a stream with what they counted, and how many counts belong to none of them.

    A count names its record by the place in the list; where elements of that list were not understood, the places of
    the others are not known.
    """
    count = len(phases)
    which = metrics["record_index"].astype(np.int64)
    fits = (which < count) & (phases.tally.bad_count == 0)
    rows = np.flatnonzero(fits)[::-1]  # of several for one record the first holds
    from_row = np.full(count, -1, np.int64)
    from_row[which[rows]] = rows
    has = from_row >= 0
    columns: dict[str, Any] = {}
    for cell in V4_PHASES.cells:
        columns[cell.name] = phases[cell.name]
        columns[f"{cell.name}_valid"] = phases.has(cell.name)
    for name in _COUNTED:
        valid = np.zeros(count, np.bool_)
        valid[has] = metrics.has(name)[from_row[has]]
        values = np.zeros((count, *metrics[name].shape[1:]), np.int64)
        values[has] = metrics[name][from_row[has]]
        columns |= {name: values, f"{name}_valid": valid}
    if not count:
        return empty(PHASES), len(metrics)
    made = section(PHASES, columns, texts=phases.texts)
    placed = Section(
        PHASES, made.columns, made.present, phases.group, made.groups, phases.begin, phases.end, made.texts
    )
    return placed, len(metrics) - int(np.count_nonzero(has))


def _without_metrics(phases: Section, metrics: Section) -> int:
    """Return how many records have no metrics, or have them out of turn: control CPUs write them for each, in order."""
    which = metrics["record_index"].astype(np.int64)
    if not len(which) or phases.tally.bad_count or metrics.tally.bad_count:
        return 0
    has = np.zeros(len(phases), np.bool_)
    has[which[which < len(phases)]] = True
    if has.all() and len(which) == len(phases):
        return int(np.count_nonzero(which[1:] < which[:-1]))
    return int(np.count_nonzero(~has))


def _stream(told: dict[str, Any], number: int, collected: int) -> Stream:
    capture = told.get("capture")
    capture = capture if isinstance(capture, dict) else {}
    committed, dropped = (_count(capture.get(name)) for name in ("committed", "dropped"))
    truncated = capture.get("truncated")
    return Stream(
        "sched_phase",
        number,
        None if committed is None or dropped is None else committed + dropped,
        dropped,
        collected,
        producer=str(told.get("producer") or ""),
        platform=str(told.get("platform") or ""),
        is_truncated=bool(truncated) if isinstance(truncated, bool | int) else None,
    )


def _strange(file: File) -> int:
    """Return how many values are none that a producer writes: counts below zero, numbers that are taken, schemas."""
    wrong = int(file.producer is not None and file.producer not in _WORDS["producer"])
    wrong += sum(bool(version != _SCHEMA) for version in file.schema_versions)
    taken: set[tuple[Any, str]] = set()
    for told, _, _ in file.streams:
        capture = told.get("capture")
        counts = (
            [capture[name] for name in ("committed", "dropped") if name in capture] if isinstance(capture, dict) else []
        )
        wrong += sum(_count(value) is None for value in counts)
        wrong += sum(told.get(name) is not None and told[name] not in known for name, known in _WORDS.items())
        for name in ("scheduler_id", "worker_id"):
            value = told.get(name)
            wrong += value is not None and (type(value) is not int or not 0 <= value <= MAX_CORE)
        key = told.get("scheduler_id"), str(told.get("producer"))
        wrong += type(key[0]) is int and key in taken
        taken.add((key[0] if type(key[0]) is int else -1, key[1]))
    return wrong


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= _MAX_COUNT else None
