"""What a capture declares about itself: its level, words from closed lists, readings of clocks, durations.

Writers take these from tables of their own, or write one fact twice: a value that no writer has, and two values that
differ, are damage, or a writer that this reader does not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lanescope.common.distinct import distinct
from lanescope.devices.ascend.formats.collection import collection_of
from lanescope.devices.ascend.formats.layout import (
    AICORE,
    AICPU,
    HOST_SUBMITS,
    PHASES,
    RETAIN,
    SUBMITS,
    UPLOADS,
    V1_TASKS,
    WAIT,
)
from lanescope.devices.ascend.formats.records import Section
from lanescope.devices.ascend.interpret import graph as graphs
from lanescope.devices.ascend.interpret.clock import ANCHOR_POSITIONS
from lanescope.devices.ascend.interpret.cross_checks import Found, of_rows
from lanescope.devices.ascend.interpret.resolve import Interpreter
from lanescope.trace.column import Mask

#: Words that metadata take from closed lists.
_WORDS = {"orchestrator_source": ("host", "device"), "runtime": ("host_build_graph", "tensormap_and_ringbuffer")}
_RAW_UNITS = ("syscnt_cycles", "device_uptime_us")
#: What a host copies, and the steps of a submission; one record for all steps is newer.
UPLOAD_KINDS = ("graph_upload", "sm_h2d", "arena_h2d")
_STEPS = ("sync", "alloc", "params", "lookup", "insert", "fanin", "submit")
SUBMIT_KINDS = tuple(f"orch_{step}" for step in _STEPS)
#: Depths of queues are 16 bits wide on the device, and no queue holds less than nothing.
_DEPTHS, _MAX_DEPTH = tuple(f"{where}_at_{when}" for where in ("local", "shared") for when in ("start", "end")), 32767
#: All runtimes have a table of 1024 functions.
_MAX_FUNCTION = 1023
#: Times are written with three decimals of a microsecond, each rounded on its own.
_ROUNDED_NS = 2


def found(told: Interpreter) -> Iterator[Found]:
    """Yield what a capture declares that is unknown, or contradicts its records."""
    records = told.records
    yield "ascend_level_contradicts", int(_is_wrong_level(told)), None
    yield "ascend_unknown_value", _unknown_words(told), None
    if told.deps is not None and len(told.deps.tasks):
        listed = told.deps.tasks
        yield "ascend_unknown_value", int(np.count_nonzero(listed.has("block_num") & (listed["block_num"] < 1))), None
        no_kernel = listed["kernel_ids"].max(axis=1) < 0
        yield "ascend_unknown_value", int(np.count_nonzero(no_kernel & (listed["block_num"] > 1))), None
        no_function = listed["kernel_ids"].max(axis=1) > _MAX_FUNCTION
        yield "ascend_unknown_value", int(np.count_nonzero(no_function)), None
        yield "ascend_function_contradicts", _on_both_types(listed), None
        if told.parts.deps is not None:
            yield "ascend_task_order", _falling_tasks(listed), None
    if told.deps is not None and len(told.deps.edges):
        bits = told.deps.edges["flags"]
        yield "ascend_unknown_value", int(np.count_nonzero(bits & ~np.uint32(WAIT | RETAIN))), None
    for layout, known in ((UPLOADS, UPLOAD_KINDS), (SUBMITS, SUBMIT_KINDS)):
        rows = records[layout]
        if not set(known).issuperset(rows.texts):
            yield of_rows("ascend_unknown_kind", _is_unknown(rows, "phase", known), rows)
    phases = told.phases
    if len(phases):
        for depth in (phases[name] for name in _DEPTHS):
            if int(depth.min()) < 0 or int(depth.max()) > _MAX_DEPTH:
                yield of_rows("ascend_unknown_value", np.any((depth < 0) | (depth > _MAX_DEPTH), axis=1), phases)
    if told.epochs is not None and len(phases):
        runs = distinct(told.epochs[0])
        yield of_rows("ascend_unknown_value", ~np.isin(phases["run_epoch"], runs), phases)
    aicpu = told.aicpu
    dispatch, finish = aicpu["dispatch_cycles"], aicpu["finish_cycles"]
    if min(int(dispatch.min(initial=1)), int(finish.min(initial=1))) == 0:
        yield of_rows("ascend_missing_timestamp", (dispatch == 0) | (finish == 0), aicpu)
    yield "ascend_clock_contradicts", _wrong_readings(told), None
    yield "ascend_host_contradicts", _other_kinds(told), None
    tasks = records.as_read.get(V1_TASKS.name)
    if tasks is not None and len(tasks):
        yield from _joined(tasks)


def _on_both_types(tasks: Section) -> int:
    """Return how many functions stand in slots of both types of cores: each is compiled for one."""
    kernels = tasks["kernel_ids"]
    cube, vector = distinct(kernels[:, 0]), distinct(kernels[:, 1:].reshape(-1))
    return int(np.count_nonzero(np.isin(cube[cube >= 0], vector)))


def _falling_tasks(tasks: Section) -> int:
    """Return how many tasks are listed behind one of a higher id of their ring: they are listed as submitted."""
    ids = tasks["task_id"]
    if bool((ids[1:] > ids[:-1]).all()):
        return 0
    order = np.argsort(ids >> np.uint64(32), kind="stable")
    ring, number = (ids >> np.uint64(32))[order], ids[order]
    return int(np.count_nonzero((ring[1:] == ring[:-1]) & (number[1:] < number[:-1])))


def _other_kinds(told: Interpreter) -> int:
    """Return how many copies the host calls by another kind in the file of its phases."""
    phases, uploads = told.parts.host_file, told.records[UPLOADS]
    if phases is None or not len(uploads):
        return 0
    near = np.flatnonzero(np.isin(phases.begin, uploads["start_host_ns"]))
    times = phases.begin[near].tolist(), phases.end[near].tolist()
    kinds = {(begin, end): kind for begin, end, kind in zip(*times, phases.phase[near].tolist(), strict=True)}
    names = [uploads.texts[code] for code in uploads["phase"].tolist()]
    rows = zip(uploads["start_host_ns"].tolist(), uploads["end_host_ns"].tolist(), names, strict=True)
    return sum(kinds.get((begin, end), name) != name for begin, end, name in rows)


def _is_wrong_level(told: Interpreter) -> bool:
    """Return whether the capture has records above its level, or lacks lists that its level has."""
    records = told.records
    least = ((AICPU, 2), (PHASES, 3), (SUBMITS, 4), (HOST_SUBMITS, 4))
    if any(len(records[layout]) and records.level < level for layout, level in least):
        return True
    # A dump has the buffers of all streams of its level.
    is_dump = records.accounts is not None
    return is_dump and records.level > 2 and len(records[AICORE]) > 0 and not len(records[PHASES])


def _unknown_words(told: Interpreter) -> int:
    """Return how many values next to the lists are none that a writer has."""
    metadata, wrong = told.records.metadata, 0
    for name, known in _WORDS.items():
        # A runtime that is not known is a stat of its own.
        wrong += name != "runtime" and name in metadata and metadata[name] not in known
    anchors = metadata.get("clock_anchors")
    if isinstance(anchors, dict) and "raw_device_timestamp_unit" in anchors:
        wrong += anchors["raw_device_timestamp_unit"] not in _RAW_UNITS
    return int(wrong) + collection_of(metadata).wrong


def _is_unknown(rows: Section, name: str, known: tuple[str, ...]) -> Mask:
    codes = [code for code, text in enumerate(rows.texts) if text in known]
    unknown: Mask = rows.has(name) & ~np.isin(rows[name], codes)
    return unknown


def _joined(tasks: Section) -> Iterator[Found]:
    """Yield what rows of v1 say twice and not alike."""
    length = tasks["end_time_us"] - tasks["start_time_us"]
    wrong = tasks.has("duration_us") & (np.abs(tasks["duration_us"] - length) > _ROUNDED_NS) & (length >= 0)
    yield of_rows("ascend_duration_contradicts", wrong, tasks)
    yield of_rows("ascend_unknown_value", tasks.has("func_id") & (tasks["func_id"] != -1), tasks)
    known = [code for code, text in enumerate(tasks.texts) if text in graphs.CORE_TYPES[:-1]]
    named = np.flatnonzero(tasks.has("core_type"))
    core, kind = tasks["core_id"][named], tasks["core_type"][named]
    strange = np.zeros(len(tasks), np.bool_)
    strange[named] = ~np.isin(kind, known)
    # A core has one type.
    first = np.full(int(core.max(initial=-1)) + 1, -1, np.int64)
    first[core[::-1]] = kind[::-1]
    strange[named] |= first[core] != kind
    yield of_rows("ascend_cores_contradict", strange, tasks)


def _wrong_readings(told: Interpreter) -> int:
    """Return how many readings of both clocks, and origins of times, are invalid or contradict themselves."""
    metadata, wrong = told.records.metadata, 0
    origin = metadata.get("host_orchestration_origin_ns")
    stamps = [rows["start_host_ns"] for rows in (told.host_submits, told.uploads) if len(rows)]
    if type(origin) is int and stamps and told.records.partial.isdisjoint((HOST_SUBMITS.name, UPLOADS.name)):
        wrong += origin != min(int(values.min()) for values in stamps)
    anchors = metadata.get("clock_anchors")
    samples = anchors.get("samples") if isinstance(anchors, dict) else None
    if isinstance(samples, list) and isinstance(anchors, dict):
        is_raw = anchors.get("raw_device_timestamp_unit") == "syscnt_cycles"
        wrong += sum(not _is_sound(sample, is_raw=is_raw) for sample in samples)
    return wrong


def _is_sound(sample: Any, *, is_raw: bool) -> bool:
    """Return whether one reading of both clocks says the same each time; one that failed says so itself."""
    if not isinstance(sample, dict):
        return False
    if sample.get("error") is not None:
        return True
    before, after, cycles = (sample.get(key) for key in ("host_before_ns", "host_after_ns", "device_cycles"))
    if type(before) is not int or type(after) is not int or type(cycles) is not int:
        return False
    if sample.get("position") not in ANCHOR_POSITIONS or not 0 < before <= after or cycles <= 0:
        return False
    raw = sample.get("raw_device_timestamp")
    return sample.get("rtt_ns", after - before) == after - before and (not is_raw or raw is None or raw == cycles)
