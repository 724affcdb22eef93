"""The reader of v1: executions that the collector had joined, in microseconds, as the rows that both streams had.

The format has no counter: readings are nanoseconds since the collector's base, counted from 1, because 0 means that no
timestamp was taken. It has no receive timestamp and no dispatch counter either; the trace has NULL for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.key_join import first_equal, match_unique
from lanescope.declaration import replace
from lanescope.devices.ascend.formats.json_reader import File
from lanescope.devices.ascend.formats.keyed_rows import keyed
from lanescope.devices.ascend.formats.layout import (
    AICORE,
    AICPU,
    DEPS_EDGES,
    DEPS_TASKS,
    PHASES,
    SUBMITS,
    V1_PHASES,
    V1_SUBMITS,
    V1_TASKS,
    Layout,
)
from lanescope.devices.ascend.formats.records import Bytes, Deps, Records, Section, empty, section
from lanescope.errors import InputError
from lanescope.trace import ticks_to_ns

Int64 = npt.NDArray[np.int64]

#: Names of the format versions by the key of the level.
_NAMES = {"version": "v1a", "l2_perf_level": "v1b"}
#: What the "counter" of this format version is: nanoseconds.
FREQUENCY = 1_000_000_000
#: The reading at the collector's base.
ORIGIN = 1


def records(file: File, level: tuple[str, int], text: Bytes) -> Records:
    """Return the records of a file; arguments and errors as ``files.read_records``."""
    tasks = file.lists.get(V1_TASKS.name, empty(V1_TASKS))
    aicore, aicpu = _streams(tasks, level[1])
    sections = {AICORE.name: aicore, AICPU.name: aicpu}
    for old, new, convert in ((V1_PHASES, PHASES, _phases), (V1_SUBMITS, SUBMITS, _submits)):
        # An empty list has no units: it may have been read as one of a later format version.
        if old.name in file.lists:
            sections[new.name] = convert(file.lists[old.name])
        elif new.name in file.lists:
            sections[new.name] = file.lists[new.name]
    metadata: dict[str, Any] = {
        "clock_freq_hz": FREQUENCY,
        "core_types": _core_types(tasks),
        "core_to_thread": file.core_to_thread,
    }
    return Records(
        *level,
        metadata,
        sections,
        tuple(file.unknown),
        file.size,
        format_version=_NAMES.get(level[0], "v1c"),
        lists=file.lists,
        fanout=_fanout(tasks, aicore["task_token_raw"], text, file.path),
    )


def _streams(tasks: Section, level: int) -> tuple[Section, Section]:
    """Return the rows of the cores, and those of the schedulers where there is a dispatch."""
    start, end, finish = (tasks[name] for name in ("start_time_us", "end_time_us", "finish_time_us"))
    number = _numbers(tasks)
    aicore = section(
        AICORE,
        {
            "core_id": tasks["core_id"],
            "task_token_raw": _ids(tasks),
            "start_cycles": start + ORIGIN,
            "end_cycles": np.where((end == 0) & (start > 0), 0, end + ORIGIN),
        },
    )
    # A stamp of 0 is the base or none; of a dispatch that was finished it is the base.
    has_dispatch = (finish > 0) & (level > 1)
    aicpu = section(
        AICPU,
        {
            "core_id": tasks["core_id"],
            "dispatch_cycles": np.where(tasks.has("dispatch_time_us"), tasks["dispatch_time_us"] + ORIGIN, 0),
            "finish_cycles": finish + ORIGIN,
        },
    )
    # The number joins the rows, but no counter was written: it is not there.
    aicore.columns["reg_task_id"] = aicpu.columns["reg_task_id"] = number
    return _placed(aicore, tasks), _placed(aicpu, tasks).take(has_dispatch)


def _placed(made: Section, origin: Section) -> Section:
    """Return a section with the places in the file that another one has."""
    return Section(
        made.layout, made.columns, made.present, origin.group, origin.groups, origin.begin, origin.end, made.texts
    )


def _ids(tasks: Section) -> npt.NDArray[np.uint64]:
    """Return full task ids: the ring is in their upper half or in a field of its own."""
    ids = tasks["task_id"]
    bare = ids >> np.uint64(32) == 0
    found: npt.NDArray[np.uint64] = np.where(bare, ids | tasks["ring_id"].astype(np.uint64) << np.uint64(32), ids)
    return found


def _numbers(tasks: Section) -> Int64:
    """Return the dispatch of each row as a number: the index of the first row of the same dispatch."""
    if not len(tasks):
        return np.empty(0, np.int64)
    names = ("core_id", "task_id", "ring_id", "start_time_us", "end_time_us", "dispatch_time_us", "finish_time_us")
    return first_equal([tasks[name].astype(np.int64) for name in names])


def _core_types(tasks: Section) -> list[str | None]:
    """Return the type of each core, as its first row says it."""
    known = np.flatnonzero(tasks.has("core_type"))[::-1]
    cores = tasks["core_id"][known]
    found = np.full(int(cores.max(initial=-1)) + 1, -1, np.int64)
    found[cores] = tasks["core_type"][known]
    return [None if code < 0 else tasks.texts[code] for code in found.tolist()]


def _phases(rows: Section) -> Section:
    made = section(
        PHASES,
        {
            **_span(rows),
            **{name: rows[name] for name in ("loop_iter", "tasks_processed", "pop_hit", "pop_miss")},
            **{f"{name}_valid": rows.has(name) for name in ("loop_iter", "tasks_processed", "pop_hit", "pop_miss")},
            "kind": rows["phase"],
            "kind_valid": rows.has("phase"),
        },
        texts=rows.texts,
    )
    return _placed(made, rows)


def _submits(rows: Section) -> Section:
    made = section(
        SUBMITS,
        {
            **_span(rows),
            "submit_idx": rows["submit_idx"],
            "submit_idx_valid": rows.has("submit_idx"),
            "task_id": rows["task_id"],
            "phase": rows["phase"],
            "phase_valid": rows.has("phase"),
        },
        texts=rows.texts,
    )
    return _placed(made, rows)


# --- the way back -----------------------------------------------------------------------------------------------------


def as_v1(records: Records, level_key: str) -> Records:
    """Return records of a counter as a collector of v1 would have written them.

    Args:
        records: of v2 or later, joined one to one by core and counter; what has no partner is left out.
        level_key: ``version``, ``l2_perf_level`` or ``l2_swimlane_level``.
    """
    aicore, aicpu = records[AICORE], records[AICPU]
    phases, submits = records[PHASES], records[SUBMITS]
    stamps = [aicore["start_cycles"] - aicore["receive_to_start_cycles"], aicore["start_cycles"], aicore["end_cycles"]]
    stamps += [aicpu["dispatch_cycles"], aicpu["finish_cycles"]]
    stamps += [rows[name] for rows in (phases, submits) for name in ("start_cycles", "end_cycles")]
    taken = [values[values > 0] for values in stamps]
    base = min((int(values.min()) for values in taken if len(values)), default=0)
    frequency = records.metadata["clock_freq_hz"]

    def ns(section: Section) -> Section:
        columns = dict(section.columns)
        for name, values in columns.items():
            if name.endswith("_cycles") and name != "receive_to_start_cycles":
                columns[name] = np.where(values > 0, ticks_to_ns(values - base, frequency) + ORIGIN, 0)
        present = section.present
        for cell in section.layout.cells:
            if cell.name in ("receive_to_start_cycles", "run_epoch", "task_id") and section.layout is not SUBMITS:
                present = present & ~np.uint32(section.layout.bit(cell.name))
        return replace(section, columns=columns, present=present)

    first, second = ns(aicore), ns(aicpu)
    if records.level > 1:
        left, right = keyed(first), keyed(second)
        partner = match_unique(left.keys, right.keys).partner
        first, second = left.section.take(partner >= 0), right.section.take(partner[partner >= 0])
    sections = {AICORE.name: first, AICPU.name: second}
    sections |= {layout.name: ns(records[layout]) for layout in (PHASES, SUBMITS) if layout.name in records.sections}
    metadata = {**records.metadata, "clock_freq_hz": FREQUENCY}
    name = _NAMES.get(level_key, "v1c")
    return replace(records, level_key=level_key, metadata=metadata, sections=sections, format_version=name)


def sections_of(records: Records) -> dict[str, Section]:
    """Return the lists of a file: the inverse of ``records``; executions without a dispatch have no dispatch."""
    aicore, aicpu = records[AICORE], records[AICPU]
    first, second = keyed(aicore), keyed(aicpu)
    partner = match_unique(first.keys, second.keys).partner
    has = partner >= 0
    rows, found = first.section, second.section

    def joined(name: str) -> Int64:
        values = np.full(len(rows), ORIGIN, np.int64)
        values[has] = found[name][partner[has]]
        return np.maximum(values - ORIGIN, 0)

    types = records.metadata.get("core_types") or []
    texts = list(dict.fromkeys(kind for kind in types if kind is not None)) or [""]
    codes = np.array([-1 if kind is None else texts.index(kind) for kind in types] or [-1], np.int64)
    cores = rows["core_id"].astype(np.int64)
    code = np.where(cores < len(codes), codes[np.minimum(cores, len(codes) - 1)], -1)
    start, end = rows["start_cycles"], rows["end_cycles"]
    tasks = section(
        V1_TASKS,
        {
            "task_id": rows["task_token_raw"],
            "func_id": np.full(len(rows), -1),
            "core_id": cores,
            "core_type": np.maximum(code, 0),
            "core_type_valid": code >= 0,
            "ring_id": (rows["task_token_raw"] >> np.uint64(32)).astype(np.int64),
            "start_time_us": start - ORIGIN,
            "end_time_us": np.maximum(end - ORIGIN, 0),
            "duration_us": np.maximum(end - start, 0),
            "dispatch_time_us": joined("dispatch_cycles"),
            "finish_time_us": joined("finish_cycles"),
        },
        texts=texts,
    )
    made = {V1_TASKS.name: tasks}
    for old, new, name in ((V1_PHASES, PHASES, "kind"), (V1_SUBMITS, SUBMITS, "phase")):
        if new.name in records.sections:
            made[old.name] = _old(old, records[new], name)
    return made


def _old(layout: Layout, rows: Section, text: str) -> Section:
    columns: dict[str, Any] = {}
    for cell in layout.cells:
        name = {"phase": text, "start_time_us": "start_cycles", "end_time_us": "end_cycles"}.get(cell.name, cell.name)
        values = rows[name] - ORIGIN if cell.kind == "micros" else rows[name]
        columns |= {cell.name: values, f"{cell.name}_valid": rows.has(name)}
    texts = rows.texts
    if layout is V1_SUBMITS:
        # The step that has no name in later format versions.
        texts = (*rows.texts, "orch_submit")
        columns["phase"] = np.where(rows.has("phase"), rows["phase"], len(rows.texts))
        columns["phase_valid"] = True
    return _placed(section(layout, columns, texts=texts), rows)


def _span(rows: Section) -> dict[str, Any]:
    return {"start_cycles": rows["start_time_us"] + ORIGIN, "end_cycles": rows["end_time_us"] + ORIGIN}


def _fanout(tasks: Section, ids: npt.NDArray[np.uint64], text: Bytes, path: str) -> Deps | None:
    """Return the edges that the rows hold themselves; None without any list of them."""
    rows = np.flatnonzero(tasks.has("fanout"))
    if not len(rows):
        return None
    import msgspec

    spans = tasks["fanout"][rows].tolist()
    joined = b"[" + b",".join(text[begin:end].tobytes() for begin, end in spans) + b"]"
    try:
        lists = msgspec.json.decode(joined, type=list[list[int]])
    except msgspec.ValidationError:
        raise InputError(
            f"{path}: invalid `fanout`: expected a list of task ids", hint="pass the file as the collector wrote it"
        ) from None
    lengths = [len(one) for one in lists]
    succ = np.array([value & (1 << 64) - 1 for one in lists for value in one], np.uint64)
    pred = np.repeat(ids[rows], lengths)
    edges = section(DEPS_EDGES, {"pred": pred, "succ": succ}) if len(succ) else empty(DEPS_EDGES)
    return Deps(empty(DEPS_TASKS), edges)
