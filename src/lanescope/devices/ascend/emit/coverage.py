"""For which time the lanes were recorded."""

from __future__ import annotations

import numpy as np

from lanescope.common.coverage import evidence_spans
from lanescope.devices.ascend.emit.context import TimelineBuilder, ToTs
from lanescope.devices.ascend.emit.stream_stats import LIST_OF
from lanescope.devices.ascend.formats.layout import (
    AICORE,
    AICPU,
    HOST_SUBMITS,
    LIFECYCLE,
    PHASES,
    SUBMITS,
    UPLOADS,
    Layout,
)
from lanescope.devices.ascend.formats.records import Int64, Section
from lanescope.devices.ascend.interpret.lifecycle import Stages
from lanescope.trace.column import Array, Mask

#: The list that the lanes of each role show.
_LISTS = {
    "core": AICORE,
    "flight": AICPU,
    "scheduler": PHASES,
    "lifecycle": LIFECYCLE,
    "orchestrator": SUBMITS,
    "host": HOST_SUBMITS,
    "upload": UPLOADS,
}


def draw_coverage(canvas: TimelineBuilder) -> None:
    """Add the time for which the lanes were recorded.

    Evidence for a core are the stamps of its executions and of its dispatches, for a scheduler or an orchestrator the
    ends of its phases or submits. A lane was recorded to the end of the capture where its producer counted its records
    and all of them arrived, and a core where the producer does not tell, but both streams end with the same dispatch.

    If the file is truncated in or before a list, the missing records of that list are unknown: its lanes count as
    recorded while the available records ran, and not between them.
    """
    told = canvas.told
    cores = _core_evidence(canvas)
    spans = []
    for role, layout in _LISTS.items():
        if role not in canvas.lanes:
            continue
        if layout.name in told.records.partial:
            _add_partial(canvas, role)
        elif role in ("core", "flight") and told.has_device:
            spans.append(_whole(canvas, role, layout, cores))
        elif role in ("scheduler", "orchestrator") and told.has_device:
            rows = told.phases if role == "scheduler" else told.submits
            spans.append(_whole(canvas, role, layout, _row_evidence(rows)))
        elif role == "lifecycle":
            spans.append(_whole(canvas, role, layout, _stage_evidence(told.stages)))
    if spans:
        track, begin, end = (np.concatenate(column) for column in zip(*spans, strict=True))
        begin, end = np.split(told.times.device(np.concatenate([begin, end])), 2)
        canvas.builder.add_coverage(track, begin, end)


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
    if role == "lifecycle":
        return told.stages.lane, told.stages.begin, told.stages.end, times.device
    rows = told.host_submits if role == "host" else told.uploads
    index = rows.group if role == "host" else np.zeros(len(rows), np.int64)
    return index, rows["start_host_ns"], rows["end_host_ns"], times.host


def _whole(
    canvas: TimelineBuilder, role: str, layout: Layout, evidence: tuple[Int64, Int64, Mask]
) -> tuple[Int64, Int64, Int64]:
    """Return the tracks of a role, and between which stamps they were recorded.

    Args:
        canvas: where its lanes are.
        role: the role.
        layout: the list that it shows.
        evidence: lane numbers and stamps, [n] each, and which lanes are complete if their producers do not tell.
    """
    numbers = np.array(list(canvas.lanes[role]), np.int64)
    index, seen, is_complete = evidence
    complete = np.append(is_complete, False)[np.minimum(numbers, len(is_complete))]
    start, end = canvas.told.times.base_cycles, canvas.told.last_cycles
    is_complete = _told_complete(canvas, layout, numbers, complete)
    number, begin, until = evidence_spans(numbers, index, seen, start=start, end=end, is_complete=is_complete)
    return canvas.lane(role)[number], begin, until


def _core_evidence(canvas: TimelineBuilder) -> tuple[Int64, Int64, Mask]:
    """Return the cores, the last stamp of an execution or a dispatch of each, and which cores are complete.

    Those are complete on which both streams end with the same dispatch, or that neither stream names.
    """
    told, runs, orphans = canvas.told, canvas.told.runs, canvas.told.orphans
    cores = orphans["core_id"].astype(np.int64)
    room = max(int(max(runs.core.max(initial=-1), cores.max(initial=-1))), *canvas.lanes["core"], -1) + 1
    dispatch = np.maximum(runs.finish, runs.dispatch)
    last = np.maximum(dispatch, np.maximum(runs.end, runs.start))
    latest = _latest(runs.core, last, room)
    is_complete = np.zeros(room, np.bool_)
    if told.has_dispatches and not told.records.partial & {AICORE.name, AICPU.name}:
        agreed = latest if dispatch.all() else _latest(runs.core, np.where(dispatch > 0, last, 0), room)
        alone = _latest(cores, np.maximum(orphans["dispatch_cycles"], orphans["finish_cycles"]), room)
        latest = np.maximum(latest, alone)
        is_complete = agreed == latest
    seen = np.flatnonzero(latest)
    return seen, latest[seen], is_complete


def _row_evidence(rows: Section) -> tuple[Int64, Int64, Mask]:
    """Return the threads, the last stamp of a phase or submit of each; without a count none is complete."""
    # Inner lists follow one another.
    start = np.flatnonzero(np.diff(rows.group, prepend=-1))
    stamps = np.maximum(rows["start_cycles"], rows["end_cycles"])
    latest = np.maximum.reduceat(stamps, start) if len(start) else stamps
    return rows.group[start[latest > 0]].astype(np.int64), latest[latest > 0], np.zeros(0, np.bool_)


def _stage_evidence(stages: Stages) -> tuple[Int64, Int64, Mask]:
    """Return the same of the stages of control processors."""
    latest = _latest(stages.lane, np.maximum(stages.begin, stages.end), len(stages.lanes))
    seen = np.flatnonzero(latest)
    return seen, latest[seen], np.zeros(0, np.bool_)


def _latest(index: Array, seen: Int64, room: int) -> Int64:
    """Return the last stamp of each lane number, int64 [room], 0 where there is none."""
    found = np.zeros(room, np.int64)
    np.maximum.at(found, index, seen)
    return found


def _told_complete(canvas: TimelineBuilder, layout: Layout, numbers: Int64, otherwise: Mask) -> Mask:
    """Return of which lanes all records arrived, by their producers' count; ``otherwise`` where that is not told."""
    found = otherwise.copy()
    for stream in canvas.told.records.streams:
        if LIST_OF[stream.kind] == layout.name and stream.total is not None:
            has_all = not (stream.unaccounted or stream.dropped or stream.is_truncated)
            found[numbers == stream.index] = has_all
    return found
