"""For which time the lanes were recorded."""

from __future__ import annotations

import numpy as np

from lanescope.common.coverage import evidence_spans
from lanescope.devices.ascend.emit.context import TimelineBuilder, ToTs
from lanescope.devices.ascend.emit.stream_stats import LIST_OF
from lanescope.devices.ascend.formats.layout import AICORE, AICPU, HOST_SUBMITS, PHASES, SUBMITS, UPLOADS, Layout
from lanescope.devices.ascend.formats.records import Int64
from lanescope.trace.column import Array, Mask

#: The list that the lanes of each role show.
_LISTS = {
    "core": AICORE,
    "flight": AICPU,
    "scheduler": PHASES,
    "orchestrator": SUBMITS,
    "host": HOST_SUBMITS,
    "upload": UPLOADS,
}


def draw_coverage(canvas: TimelineBuilder) -> None:
    """Add the time for which the lanes were recorded.

    Evidence for a core are the stamps of its executions and of its dispatches, for a scheduler or an orchestrator the
    ends of its phases or submits. A lane was recorded to the end of the capture where its producer counted its records
    and all of them arrived, and a core where the producer does not tell, but both streams end with the same dispatch.

    Of a list that the file is cut off in, or before, nobody knows which records are missing: its lanes were recorded
    while those that are there ran, and not between them.
    """
    for role, layout in _LISTS.items():
        if role not in canvas.lanes:
            continue
        if layout.name in canvas.told.records.partial:
            _add_partial(canvas, role)
        elif role not in ("host", "upload") and canvas.told.has_device:
            _add_whole(canvas, role, layout)


def _add_partial(canvas: TimelineBuilder, role: str) -> None:
    index, begin, end, to_ts = _rows(canvas, role)
    known = np.flatnonzero((begin > 0) & (end > begin))
    canvas.builder.add_coverage(canvas.lane(role)[index[known]], to_ts(begin[known]), to_ts(end[known]))


def _rows(canvas: TimelineBuilder, role: str) -> tuple[Array, Int64, Int64, ToTs]:
    """Return lane number, begin and end of the rows of a role, and what makes times of their stamps."""
    told, runs, times = canvas.told, canvas.told.runs, canvas.told.times
    if role == "core":
        return runs.core, runs.start, runs.end, times.device
    if role == "flight":
        return runs.core, runs.dispatch, runs.finish, times.device
    if role in ("scheduler", "orchestrator"):
        rows = told.phases if role == "scheduler" else told.submits
        return rows.group, rows["start_cycles"], rows["end_cycles"], times.device
    rows = told.host_submits if role == "host" else told.uploads
    index = rows.group if role == "host" else np.zeros(len(rows), np.int64)
    return index, rows["start_host_ns"], rows["end_host_ns"], times.host


def _add_whole(canvas: TimelineBuilder, role: str, layout: Layout) -> None:
    told, times = canvas.told, canvas.told.times
    lanes = canvas.lanes[role]
    numbers = np.array(list(lanes), np.int64)
    if role in ("core", "flight"):
        index, seen = _core_evidence(canvas)
        is_complete = _complete_cores(canvas, numbers, index, seen)
    else:
        group, begin, end, _ = _rows(canvas, role)
        index, seen = np.concatenate([group, group]).astype(np.int64), np.concatenate([begin, end])
        is_complete = np.zeros(len(numbers), np.bool_)
    is_complete = _told_complete(canvas, layout, numbers, is_complete)
    is_stamp = seen > 0
    spans = evidence_spans(
        numbers,
        index[is_stamp],
        seen[is_stamp],
        start=times.base_cycles,
        end=told.last_cycles,
        is_complete=is_complete,
    )
    track, begin, end = spans
    canvas.builder.add_coverage(canvas.lane(role)[track], times.device(begin), times.device(end))


def _core_evidence(canvas: TimelineBuilder) -> tuple[Int64, Int64]:
    """Return the cores and the stamps of all executions and dispatches, int64 [n] each."""
    runs, orphans = canvas.told.runs, canvas.told.orphans
    alone = orphans["core_id"].astype(np.int64)
    index = np.concatenate([runs.core, runs.core, runs.core, runs.core, alone, alone])
    stamps = [runs.dispatch, runs.start, runs.end, runs.finish, orphans["dispatch_cycles"], orphans["finish_cycles"]]
    return index, np.concatenate(stamps)


def _complete_cores(canvas: TimelineBuilder, cores: Int64, index: Int64, seen: Int64) -> Mask:
    """Return of which cores both streams end with the same dispatch, or have none, bool [cores]."""
    told, runs = canvas.told, canvas.told.runs
    if not told.has_dispatches or told.records.partial & {AICORE.name, AICPU.name}:
        return np.zeros(len(cores), np.bool_)
    room = int(max(cores.max(initial=0), index.max(initial=0))) + 1
    last, joined = np.zeros(room, np.int64), np.zeros(room, np.int64)
    np.maximum.at(last, index, seen)
    both = (runs.dispatch > 0) | (runs.finish > 0)
    np.maximum.at(joined, runs.core[both], np.maximum(runs.finish, np.maximum(runs.end, runs.start))[both])
    found: Mask = (joined == last)[cores]
    return found


def _told_complete(canvas: TimelineBuilder, layout: Layout, numbers: Int64, otherwise: Mask) -> Mask:
    """Return of which lanes all records arrived, by their producers' count; ``otherwise`` where that is not told."""
    found = otherwise.copy()
    for stream in canvas.told.records.streams:
        if LIST_OF[stream.kind] == layout.name and stream.total is not None:
            has_all = not (stream.unaccounted or stream.dropped or stream.is_truncated)
            found[numbers == stream.index] = has_all
    return found
