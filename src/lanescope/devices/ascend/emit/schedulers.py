"""What the control processors do: scheduler phases, submits, uploads, and tasks that run on no core."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.ascend.emit.context import RecordSlices, TimelineBuilder, ToTs, below_resolution, ids_from, some
from lanescope.devices.ascend.formats.layout import GRAPH_KIND, PHASE_KINDS, QUEUES, SUBMITS
from lanescope.devices.ascend.formats.records import Section, UInt64
from lanescope.devices.ascend.interpret import names as naming
from lanescope.devices.ascend.interpret import task_kinds
from lanescope.devices.ascend.interpret.clock import Alignment
from lanescope.devices.ascend.interpret.lifecycle import NAMES
from lanescope.trace import Column, Flag
from lanescope.trace.column import Array, Mask

Int64 = npt.NDArray[np.int64]

MARKERS = tuple(kind for kind, known in PHASE_KINDS.items() if known.role == "marker")
#: v1's name of the one step that later format versions write.
_SUBMITS = {"orch_submit": "submit"}
#: Lanes of tasks that a scheduler passes without a core, by the kind of their marker.
_BARE_LANES = {"dummy_task": ("Dummy", "dummy task"), "predicated_skip": ("Predicated", "skipped task")}


def draw_phases(canvas: TimelineBuilder) -> RecordSlices | None:
    """Add the phases of the scheduler threads, including those of unknown kinds."""
    told, builder, phases = canvas.told, canvas.builder, canvas.told.phases
    if not len(phases):
        return None
    kinds = phases.texts
    named = phases.has("kind")
    codes = builder.names.codes((*kinds, "unknown"))
    kind = np.where(named, phases["kind"], len(kinds))
    roles = builder.dictionary("ascend_phases", "role").codes(told.role(kind) for kind in (*kinds, "unknown"))
    told.note("ascend_unknown_kind", named & ~told.is_kind(*PHASE_KINDS), phases)
    begin, end, count = phases["start_cycles"], phases["end_cycles"], len(phases)
    # Markers have no width, and neither has the record that only brings the last counts of pops.
    is_point = told.is_kind(*MARKERS) | ((begin == end) & (phases["tasks_processed"] == 0))
    flags = np.where(is_point, np.uint32(0), below_resolution(end - begin))
    flags |= np.where(told.marker_is_concluded, np.uint32(Flag.INFERRED_IDENTITY), np.uint32(0))
    track = canvas.lane("scheduler")[phases.group]
    device = told.times.device
    first = canvas.slices(track, begin, end, device, flags=flags, name=codes[kind], category="scheduler")
    drawn = RecordSlices(track, first, begin, end, device)
    depths = {}
    for where, when in product(("shared", "local"), ("start", "end")):
        values, valid = phases[f"{where}_at_{when}"], some(phases.has(f"{where}_at_{when}"))
        for place, queue in enumerate(QUEUES):
            depths[f"{where}_{when}_{queue.lower()}"] = _part(values, valid, place)
    builder.append(
        "ascend_phases",
        slice_id=ids_from(first, count),
        thread=phases.group,
        role=Column.derived(count, lambda: roles[kind], dictionary=builder.dictionary("ascend_phases", "role")),
        **{
            cell: _unsigned(phases[cell], some(phases.has(cell)))
            for cell in ("loop_iter", "tasks_processed", "pop_hit", "pop_miss")
        },
        task_id=_task_ids(told.graph.ids, told.marker_task),
        **depths,
    )
    return drawn


def _part(values: Array, valid: Mask | None, place: int) -> Column:
    return Column.derived(len(values), lambda: np.ascontiguousarray(values[:, place], np.int32), valid=valid)


def _unsigned(values: Array, valid: Mask | None) -> Column:
    return Column.derived(len(values), lambda: values.astype(np.uint32), valid=valid)


def _task_ids(ids: UInt64, task: Int64) -> Column:
    """Return the ids of tasks by their place in the graph, unknown where that is -1."""
    known = task >= 0
    if not known.any():
        return Column.null(len(task), np.uint64)

    def of_tasks() -> UInt64:
        return np.where(known, ids[np.maximum(task, 0)], np.uint64(0))

    return Column.derived(len(task), of_tasks, valid=some(known))


def draw_submits(canvas: TimelineBuilder) -> list[tuple[Section, RecordSlices, int | None]]:
    """Draw the submits of the orchestrators; return each list with its slices and the clock of its stamps."""
    told, times = canvas.told, canvas.told.times
    drawn: list[tuple[Section, RecordSlices, int | None]] = []
    rows = told.submits
    if len(rows):
        track = canvas.lane("orchestrator")[rows.group]
        stamps = rows["start_cycles"], rows["end_cycles"]
        drawn.append((rows, _submit_lanes(canvas, rows, track, *stamps, times.device, "exact"), canvas.clock))
    rows = told.host_submits
    if len(rows):
        track = canvas.lane("host")[rows.group]
        stamps = rows["start_host_ns"], rows["end_host_ns"]
        made = _submit_lanes(canvas, rows, track, *stamps, times.host, host_quality(canvas))
        drawn.append((rows, made, canvas.host_clock))
    return drawn


def host_quality(canvas: TimelineBuilder) -> str:
    """Return the quality of times of the host's clock: without anchors only the order of both parts is known."""
    return "estimated" if isinstance(canvas.told.times.alignment, Alignment) else "inferred"


def _submit_lanes(
    canvas: TimelineBuilder, rows: Section, track: Int64, begin: Int64, end: Int64, to_ts: ToTs, quality: str
) -> RecordSlices:
    name: str | npt.NDArray[np.int32] = "submit"
    if rows.layout is SUBMITS and rows.has("phase").any():
        steps = canvas.builder.names.codes([_SUBMITS.get(text, text) for text in (*rows.texts, "submit")])
        name = steps[np.where(rows.has("phase"), rows["phase"], len(rows.texts))]
    first = canvas.slices(track, begin, end, to_ts, name=name, category="orchestrator", quality=quality)
    drawn = RecordSlices(track, first, begin, end, to_ts)
    ids, count = rows["task_id"], len(rows)
    task, texts = canvas.told.index(rows), canvas.told.task_texts
    canvas.builder.append(
        "ascend_submits",
        slice_id=ids_from(first, count),
        orchestrator=rows.group,
        submit_idx=_unsigned(rows["submit_idx"], some(rows.has("submit_idx"))),
        task_id=ids,
        task=texts.column(task),
    )
    return drawn


def draw_stages(canvas: TimelineBuilder) -> None:
    """Draw what control processors do before and after their cores schedule themselves."""
    stages = canvas.told.stages
    if not len(stages):
        return
    names = canvas.builder.names.codes(NAMES)
    canvas.slices(
        canvas.lane("lifecycle")[stages.lane],
        stages.begin,
        stages.end,
        canvas.told.times.device,
        name=names[stages.stage],
        category="lifecycle",
    )


def draw_uploads(canvas: TimelineBuilder) -> None:
    """Draw the copies from the host."""
    told, builder, uploads = canvas.told, canvas.builder, canvas.told.uploads
    if not len(uploads):
        return
    kinds = (*uploads.texts, "upload")
    code = np.where(uploads.has("phase"), uploads["phase"], len(uploads.texts))
    first = canvas.slices(
        np.full(len(uploads), canvas.lanes["upload"][0]),
        uploads["start_host_ns"],
        uploads["end_host_ns"],
        told.times.host,
        name=builder.names.codes(kinds)[code],
        category="upload",
        quality=host_quality(canvas),
    )
    builder.append(
        "ascend_uploads",
        slice_id=np.arange(first, first + len(uploads)),
        bytes=uploads["detail"],
        bytes_valid=uploads.has("detail"),
    )


@frozen_class
class CorelessTasks:
    """Slices that stand for tasks without executions: barriers, skipped tasks, allocations.

    Attributes:
        task: int64 [n], index in the graph.
        drawn: the slices, [n].
    """

    task: Int64
    drawn: RecordSlices


def draw_bare_tasks(
    canvas: TimelineBuilder, phases: RecordSlices | None, submits: list[tuple[Section, RecordSlices, int | None]]
) -> list[CorelessTasks]:
    """Add the tasks that run on no core, on lanes of their own next to the cores."""
    told = canvas.told
    found: list[CorelessTasks] = []
    if phases is not None:
        for kind, (lane, name) in _BARE_LANES.items():
            rows = np.flatnonzero(told.is_kind(kind))
            if len(rows):
                found.append(_passed(canvas, rows, lane, name))
        # Other phases may name a task as well: they stand for it themselves. A graph is prepared before its producers
        # have ended, so that phase is neither its start nor its end.
        rows = np.flatnonzero((told.marker_task >= 0) & ~told.is_kind(*_BARE_LANES, GRAPH_KIND))
        if len(rows):
            begin, end = phases.begin[rows], phases.end[rows]
            named = RecordSlices(phases.track[rows], phases.first, begin, end, phases.to_ts, rows)
            found.append(CorelessTasks(told.marker_task[rows], named))
    # An allocation ends with its submit. A dummy without marker ends at a time that is not recorded.
    is_allocation = told.is_task_kind(task_kinds.ALLOC)
    for rows_, drawn, clock in submits:
        made = _allocations(canvas, is_allocation, rows_, drawn, clock)
        # Without anchors the offset between host and device is unknown.
        if made is not None and (clock == canvas.clock or isinstance(told.times.alignment, Alignment)):
            found.append(made)
    return found


def _passed(canvas: TimelineBuilder, rows: Int64, lane: str, name: str) -> CorelessTasks:
    """Draw tasks that a scheduler thread passed, at their markers."""
    told, phases = canvas.told, canvas.told.phases
    begin, end = phases["start_cycles"][rows], phases["end_cycles"][rows]
    task = told.marker_task[rows]
    track = canvas.side_lanes(lane, "scheduler", phases.group[rows].astype(np.int64), canvas.clock)
    concluded = told.marker_is_concluded[rows]
    first = canvas.slices(
        track,
        begin,
        end,
        told.times.device,
        flags=np.where(concluded, np.uint32(Flag.INFERRED_IDENTITY), np.uint32(0)),
        name=name,
        category="bare",
    )
    drawn = RecordSlices(track, first, begin, end, told.times.device)
    _bare_details(canvas, drawn, task)
    return CorelessTasks(task, drawn)


def _allocations(
    canvas: TimelineBuilder, is_allocation: Mask, rows: Section, submits: RecordSlices, clock: int | None
) -> CorelessTasks | None:
    """Draw allocations at the first of their submits."""
    graph = canvas.told.graph
    task = canvas.told.index(rows)
    first_row = np.full(len(graph), -1, np.int64)
    first_row[task[::-1]] = np.arange(len(rows))[::-1]
    at = np.sort(first_row[is_allocation & (first_row >= 0)])
    if not len(at):
        return None
    task = task[at]
    begin, end = submits.begin[at], submits.end[at]
    track = canvas.side_lanes("Alloc", "orchestrator", rows.group[at].astype(np.int64), clock)
    first = canvas.slices(
        track,
        begin,
        end,
        submits.to_ts,
        flags=int(Flag.INFERRED_IDENTITY),
        name="alloc",
        category="bare",
        quality="inferred",
    )
    drawn = RecordSlices(track, first, begin, end, submits.to_ts)
    _bare_details(canvas, drawn, task)
    return CorelessTasks(task, drawn)


def _bare_details(canvas: TimelineBuilder, drawn: RecordSlices, task: Int64) -> None:
    ids = canvas.told.graph.ids[np.maximum(task, 0)] if len(canvas.told.graph) else np.zeros(len(task), np.uint64)
    known = task >= 0
    names = np.where(known, naming.task_names(ids, canvas.told.task_naming), "")
    canvas.builder.append(
        "ascend_coreless_tasks",
        slice_id=drawn.ids,
        task_id=ids,
        task_id_valid=known,
        task=names,
        task_valid=known,
    )
