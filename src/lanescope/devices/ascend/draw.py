"""An interpreted capture as a trace: lanes, slices, counters, flows, details, stats, accounting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend import graph as graphs
from lanescope.devices.ascend import names as naming
from lanescope.devices.ascend import schema
from lanescope.devices.ascend.clock import Alignment
from lanescope.devices.ascend.interpret import Interpreter
from lanescope.devices.ascend.layout import (
    AICORE,
    AICPU,
    HOST_SUBMITS,
    LEVEL_KEYS,
    PHASE_KINDS,
    QUEUES,
    RECORD_BYTES,
    RECORDS,
)
from lanescope.devices.ascend.records import Section
from lanescope.trace import Column, Dictionary, Flag, Table, Trace, TraceBuilder
from lanescope.trace.column import Array, Mask

if TYPE_CHECKING:
    from lanescope.source import Capture

Int64 = npt.NDArray[np.int64]

#: Lists that give every inner list a lane, even an empty one; above that only those with records get one.
_MAX_EMPTY_LANES = 256
#: Steps of the counter below which the true length may be half or double.
_RESOLVED = 2
#: Codes of the qualities.
_EXACT, _ESTIMATED = 0, 1


def draw(told: Interpreter, capture: Capture, options: Mapping[str, Any]) -> Trace:
    """Return the trace of an interpreted capture.

    Args:
        told: what its records mean.
        capture: its files, for names and sizes.
        options: decode options that were given, for the record.
    """
    builder = TraceBuilder(told.times.base, details=schema.TABLES, stats=schema.STATS)
    _Drawing(told, builder, capture, options).draw()
    return builder.finish()


class _Drawing:
    """Puts an interpreted capture into a builder."""

    def __init__(self, told: Interpreter, builder: TraceBuilder, capture: Capture, options: Mapping[str, Any]) -> None:
        self.told = told
        self.builder = builder
        self.capture = capture
        self.options = options
        self.drawn_phases: _Drawn | None = None
        self.drawn_submits: _Drawn | None = None
        self.drawn_host_submits: _Drawn | None = None
        self.main = self._inputs()
        self._clocks()
        self._tracks()

    def draw(self) -> None:
        self._executions()
        self._phases()
        self._submits()
        self._uploads()
        self._queues()
        self._dependencies()
        self._coverage()
        self._losses()
        self._account()
        self._raw()

    # --- inputs, clocks, lanes -----------------------------------------------------------------------------------

    def _inputs(self) -> int:
        told, builder = self.told, self.builder
        formats = {"main": told.generation, "deps": "deps", "names": "name_map"}
        sources = {"main": self.capture.main, **told.parts.sources}
        self.input_of = {
            part: builder.input(
                capture=self._name(),
                part=part,
                path=source.path,
                size=source.size,
                sha256=source.sha256,
                family="ascend",
                format=formats[part],
                options=self.options,
            )
            for part, source in sources.items()
        }
        return self.input_of["main"]

    def _name(self) -> str:
        """Return the name of the run: all records files have the same names, their folders tell them apart."""
        folder = Path(self.capture.main.path).absolute().parent.name
        return folder if self.capture.main.name in LEVEL_KEYS.values() and folder else self.capture.name

    def _clocks(self) -> None:
        told, builder, times = self.told, self.builder, self.told.times
        self.clock = builder.clock(name="syscnt", device="ascend", frequency=told.frequency, counter_bits=64)
        self.host_clock = None
        if times.alignment is not None:
            self.host_clock = builder.clock(name="host_monotonic", device="host", frequency=1_000_000_000)
            builder.anchor(clock_id=self.host_clock, ticks=times.base_host_ns, ts=0, error_ns=0)
        if isinstance(times.alignment, Alignment):
            for reading in (times.alignment.first, times.alignment.last):
                builder.anchor(
                    clock_id=self.clock,
                    ticks=reading.cycles,
                    ts=reading.host_ns - times.base_host_ns,
                    error_ns=reading.error_ns,
                )
        elif told.has_device:
            # By definition of the axis; where a host part comes first, nobody knows how far off it is.
            error = 0 if times.alignment is None else None
            builder.anchor(clock_id=self.clock, ticks=times.base_cycles, ts=times.shift, error_ns=error)

    def _tracks(self) -> None:
        told, builder = self.told, self.builder
        root = builder.track("Ascend", kind="group", role="device", input_id=self.main)

        def group(name: str, role: str) -> int:
            return builder.track(name, kind="group", role=role, parent=root, input_id=self.main)

        def lanes(parent: int, role: str, names: Iterable[tuple[int, str]], **more: Any) -> dict[int, int]:
            return {
                index: builder.track(
                    name, kind="lane", role=role, parent=parent, input_id=self.main, sort_key=index, **more
                )
                for index, name in names
            }

        device: dict[str, Any] = {"clock_id": self.clock}
        host: dict[str, Any] = {"clock_id": self.host_clock}
        self.orchestrators: dict[int, int] = {}
        self.hosts: dict[int, int] = {}
        self.uploader = -1
        if len(told.host_submits) or len(told.uploads):
            parent = group("Host", "host")
            self.hosts = lanes(parent, "host_thread", _numbered(told.host_submits, "Host"), discipline="nested", **host)
            if len(told.uploads):
                self.uploader = builder.track(
                    "H2D", kind="lane", role="queue", parent=parent, input_id=self.main, discipline="free", **host
                )
        if told.submits.groups:
            self.orchestrators = lanes(
                group("Orchestrator", "orchestrator"),
                "orchestrator",
                _numbered(told.submits, "Orch"),
                discipline="nested",
                **device,
            )
        self.schedulers: dict[int, int] = {}
        self.queues: list[int] = []
        if told.phases.groups:
            parent = group("Scheduler", "scheduler")
            self.schedulers = lanes(parent, "scheduler", _numbered(told.phases, "Sched"), discipline="nested", **device)
            if len(told.phases):
                self.queues = [
                    builder.track(
                        f"shared_ready_queue {queue}",
                        kind="counter",
                        role="queue",
                        parent=parent,
                        input_id=self.main,
                        unit="tasks",
                        clock_id=self.clock,
                    )
                    for queue in QUEUES
                ]
        seen = set(told.runs.core.tolist()) | set(told.orphans["core_id"].tolist())
        types = dict(enumerate(told.core_types.tolist()))
        cores = [
            (core, f"{(graphs.CORE_TYPES[types.get(core, graphs.UNKNOWN)] or 'core').upper()}_{core}")
            for core in sorted(seen | set(types))
        ]
        self.cores = lanes(group("Worker", "worker"), "core", cores, **device) if cores else {}
        self.lane_of_core = _table(self.cores)

    # --- slices --------------------------------------------------------------------------------------------------

    def _slices(
        self,
        track: Array,
        begin: Int64,
        end: Int64,
        to_ts: Callable[[Int64], Int64],
        *,
        flags: Any = 0,
        ticks: bool = True,
        **columns: Any,
    ) -> int:
        """Append slices from stamps; an end of 0 is open, one before the begin is negative."""
        count = len(begin)
        is_open, is_negative = end == 0, (end != 0) & (end < begin)
        known = ~(is_open | is_negative)
        has_all = bool(known.all())
        stop = end if has_all else np.where(known, end, begin)
        flags = np.asarray(flags, np.uint32)
        if not has_all:
            flags = flags | np.where(is_open, np.uint32(Flag.OPEN_END), np.uint32(0))
            flags = flags | np.where(is_negative, np.uint32(Flag.NEGATIVE), np.uint32(0))
            columns |= {
                "last_seen_ts": Column.derived(count, lambda: np.where(is_open, to_ts(begin), 0), valid=is_open)
            }
        valid = None if has_all else known
        ts = Column.derived(count, lambda: to_ts(begin))
        return self.builder.append(
            "slices",
            track_id=track,
            ts=ts,
            dur=Column.derived(count, lambda: to_ts(stop) - ts.values, valid=valid),
            ts_ticks=Column.array(begin) if ticks else None,
            dur_ticks=Column.derived(count, lambda: stop - begin, valid=valid) if ticks else None,
            flags=flags if flags.ndim else int(flags),
            **columns,
        )

    def _executions(self) -> None:
        told, builder, runs, device = self.told, self.builder, self.told.runs, self.told.times.device
        self.track_of_run = self.lane_of_core[runs.core] if len(runs) else np.empty(0, np.int64)
        flags = _below_resolution(runs.end - runs.start)
        flags[told.lost.after[told.lost.after >= 0]] |= np.uint32(Flag.AFTER_GAP)
        codes = builder.names.codes(told.run_names)
        self.first_run = self._slices(
            self.track_of_run,
            runs.start,
            runs.end,
            device,
            flags=flags,
            name=codes[told.name_of] if len(runs) else codes,
            category="kernel",
        )
        self._task_details(codes)

        setup, gate = runs.setup, runs.gate
        self.setup_of_run = np.full(len(runs), -1, np.int64)
        rows = np.flatnonzero(setup > 0)
        estimated = gate[rows] > 0
        first = self._slices(
            self.track_of_run[rows],
            (runs.start - setup)[rows],
            runs.start[rows],
            device,
            flags=_below_resolution(setup[rows]),
            name="setup",
            category="setup",
            quality=np.where(estimated, np.int32(_ESTIMATED), np.int32(_EXACT)) if estimated.any() else "exact",
        )
        self.setup_of_run[rows] = first + np.arange(len(rows))
        rows = np.flatnonzero(gate > 0)
        self._slices(
            self.track_of_run[rows],
            runs.receive[rows],
            runs.ready[rows],
            device,
            name="gate_wait",
            category="gate",
            quality="estimated",
        )
        if len(rows):
            told.problems.append(("ascend_gate_wait", len(rows), None))

    def _task_details(self, codes: npt.NDArray[np.int32]) -> None:
        told, builder, runs, times = self.told, self.builder, self.told.runs, self.told.times
        count = len(runs)
        if not count:
            return

        def stamp(name: str, cycles: Int64) -> dict[str, Column]:
            valid = cycles > 0
            return {
                f"{name}_ts": Column.derived(
                    count,
                    lambda: np.where(valid, times.device(np.where(valid, cycles, times.base_cycles)), 0),
                    valid=valid,
                ),
                f"{name}_ticks": Column.array(cycles, valid=valid),
            }

        def span(name: str, begin: Int64, end: Int64, take: Int64 | None = None) -> dict[str, Column]:
            valid = (begin > 0) & (end > 0)
            cycles = np.where(valid, end - begin if take is None else end - begin - take, 0)
            return {
                f"{name}_ns": Column.derived(count, lambda: times.length(cycles), valid=valid),
                f"{name}_ticks": Column.array(cycles, valid=valid),
            }

        texts = np.array(told.run_names, object)
        staged = runs.may_be_staged
        at_receive = runs.judged == runs.receive
        builder.append(
            "ascend_tasks",
            slice_id=Column.derived(count, lambda: self.first_run + np.arange(count)),
            task_id=runs.task_id,
            task=Column.derived(count, lambda: naming.task_names(runs.task_id)),
            label=Column.derived(count, lambda: naming.labels(texts[told.name_of], runs.task_id)),
            function=np.maximum(runs.function, 0),
            function_valid=runs.function >= 0,
            core=runs.core,
            core_type=builder.dictionary("ascend_tasks", "core_type").codes(graphs.CORE_TYPES)[runs.core_type],
            reg_task_id=runs.counter,
            block=runs.block,
            blocks=told.graph.blocks[runs.task],
            blocks_valid=told.graph.blocks[runs.task] > 0,
            **stamp("dispatch", runs.dispatch),
            **stamp("receive", runs.receive),
            **stamp("finish", runs.finish),
            **stamp("ready", runs.ready),
            **span("duration", runs.start, runs.end),
            **span("propagation", runs.dispatch, runs.receive),
            **span("local_setup", runs.receive, runs.start, runs.gate),
            **span("gate_wait", runs.receive, runs.receive + runs.gate * (runs.receive > 0)),
            **span("head", runs.dispatch, runs.start),
            **span("tail", runs.end, runs.finish),
            judged_ts=Column.derived(count, lambda: times.device(runs.judged)),
            judged_at=builder.dictionary("ascend_tasks", "judged_at").codes(("receive", "start"))[
                np.where(at_receive, 0, 1)
            ],
            may_be_staged=staged,
        )

    def _phases(self) -> None:
        told, builder, phases = self.told, self.builder, self.told.phases
        if not len(phases):
            return
        kinds = phases.texts
        named = phases.has("kind")
        codes = builder.names.codes((*kinds, "unknown"))
        name = codes[np.where(named, phases["kind"], len(kinds))]
        roles = [PHASE_KINDS[kind].role if kind in PHASE_KINDS else "" for kind in (*kinds, "unknown")]
        role = builder.dictionary("ascend_phases", "role").codes(roles)[np.where(named, phases["kind"], len(kinds))]
        told.note("ascend_unknown_kind", named & ~told.is_kind(*PHASE_KINDS), phases)
        begin, end = phases["start_cycles"], phases["end_cycles"]
        # Markers have no width, and neither has the record that only brings the last counts of pops.
        is_point = told.is_kind(*(kind for kind, known in PHASE_KINDS.items() if known.role == "marker"))
        is_point |= (begin == end) & (phases["tasks_processed"] == 0)
        flags = np.where(is_point, np.uint32(0), _below_resolution(end - begin))
        flags |= np.where(told.marker_is_concluded, np.uint32(Flag.INFERRED_IDENTITY), np.uint32(0))
        track = _table(self.schedulers)[phases.group]
        first = self._slices(track, begin, end, told.times.device, flags=flags, name=name, category="scheduler")
        self.drawn_phases = _Drawn(track, first, begin, end, told.times.device)
        task = told.marker_task
        depths = {
            f"{where}_{when}_{queue.lower()}": _part(phases, f"{where}_at_{when}", place)
            for where in ("shared", "local")
            for when in ("start", "end")
            for place, queue in enumerate(QUEUES)
        }
        builder.append(
            "ascend_phases",
            slice_id=np.arange(first, first + len(phases)),
            thread=phases.group,
            role=role,
            **{
                cell: Column.array(phases[cell].astype(np.uint32), valid=_some(phases.has(cell)))
                for cell in ("loop_iter", "tasks_processed", "pop_hit", "pop_miss")
            },
            task_id=told.graph.ids[np.maximum(task, 0)] if len(told.graph) else np.zeros(len(phases), np.uint64),
            task_id_valid=task >= 0,
            **depths,
        )

    def _submits(self) -> None:
        told, times = self.told, self.told.times
        rows = told.submits
        if len(rows):
            track = _table(self.orchestrators)[rows.group]
            self.drawn_submits = self._submit_lanes(
                rows, track, rows["start_cycles"], rows["end_cycles"], times.device, "exact"
            )
        rows = told.host_submits
        if len(rows):
            track = _table(self.hosts)[rows.group]
            self.drawn_host_submits = self._submit_lanes(
                rows, track, rows["start_host_ns"], rows["end_host_ns"], times.host, self._host_quality
            )

    @property
    def _host_quality(self) -> str:
        return "estimated" if isinstance(self.told.times.alignment, Alignment) else "inferred"

    def _submit_lanes(
        self, rows: Section, track: Int64, begin: Int64, end: Int64, to_ts: Callable[[Int64], Int64], quality: str
    ) -> _Drawn:
        first = self._slices(track, begin, end, to_ts, name="submit", category="orchestrator", quality=quality)
        ids = rows["task_id"]
        self.builder.append(
            "ascend_submits",
            slice_id=np.arange(first, first + len(rows)),
            orchestrator=rows.group,
            submit_idx=Column.array(rows["submit_idx"].astype(np.uint32), valid=_some(rows.has("submit_idx"))),
            task_id=ids,
            task=Column.derived(len(rows), lambda: naming.task_names(ids)),
        )
        return _Drawn(track, first, begin, end, to_ts)

    def _uploads(self) -> None:
        told, builder, uploads = self.told, self.builder, self.told.uploads
        if not len(uploads):
            return
        kinds = (*uploads.texts, "upload")
        code = np.where(uploads.has("phase"), uploads["phase"], len(uploads.texts))
        first = self._slices(
            np.full(len(uploads), self.uploader),
            uploads["start_host_ns"],
            uploads["end_host_ns"],
            told.times.host,
            name=builder.names.codes(kinds)[code],
            category="upload",
            quality=self._host_quality,
        )
        builder.append(
            "ascend_uploads",
            slice_id=np.arange(first, first + len(uploads)),
            bytes=uploads["detail"],
            bytes_valid=uploads.has("detail"),
        )

    def _queues(self) -> None:
        """Draw the depths of the shared ready queues, where they change.

        Each phase that samples them says them at its end. v3 copies the start there for ``complete``: where both are
        the same, the sample belongs to the start.
        """
        told, phases = self.told, self.told.phases
        sampling = [kind for kind, known in PHASE_KINDS.items() if known.has_depths]
        rows = np.flatnonzero(told.is_kind(*sampling) & phases.has("shared_at_end"))
        if not len(rows):
            return
        stamp = phases["end_cycles"][rows]
        if told.generation != "v3c":
            copied = (phases["shared_at_end"][rows] == phases["shared_at_start"][rows]).all(axis=1)
            at_start = told.is_kind("complete")[rows] & phases.has("shared_at_start")[rows] & copied
            stamp = np.where(at_start, phases["start_cycles"][rows], stamp)
        order = np.argsort(stamp, kind="stable")
        stamp, depth = stamp[order], phases["shared_at_end"][rows[order]]
        rows = np.flatnonzero(stamp > 0)
        stamp, depth = stamp[rows], depth[rows]
        for place, track in enumerate(self.queues):
            value = depth[:, place]
            changes = np.flatnonzero(np.diff(value, prepend=value[:1] - 1) != 0)
            at = stamp[changes]
            self.builder.append(
                "counters",
                track_id=Column.constant(track, len(at), np.int64),
                ts=Column.derived(len(at), partial(told.times.device, at)),
                value=value[changes].astype(np.float64),
            )

    # --- flows ---------------------------------------------------------------------------------------------------

    def _dependencies(self) -> None:
        """Draw the edges of the task graph: from the last end of the producer to the first begin of the consumer."""
        told, graph = self.told, self.told.graph
        if not len(graph.pred):
            return
        source, target = self._anchors()
        drawn = (source.stamp[graph.pred] > 0) & (target.stamp[graph.succ] > 0)
        told.problems.append(("ascend_edge_without_place", int(np.count_nonzero(~drawn)), None))
        pred, succ = graph.pred[drawn], graph.succ[drawn]
        count = len(pred)
        if not count:
            return
        source_ts, target_ts = source.ts(pred), target.ts(succ)
        first = self.builder.append(
            "flows",
            kind="dependency",
            src_track=source.track[pred],
            src_ts=source_ts,
            dst_track=target.track[succ],
            dst_ts=target_ts,
            src_slice=source.slice_id[pred],
            dst_slice=target.slice_id[succ],
        )
        self.builder.append(
            "ascend_edges",
            flow_id=Column.derived(count, lambda: first + np.arange(count)),
            pred_task_id=Column.derived(count, lambda: graph.ids[pred]),
            succ_task_id=Column.derived(count, lambda: graph.ids[succ]),
        )

    def _anchors(self) -> tuple[_Anchors, _Anchors]:
        """Return where edges leave each task and where they enter it."""
        told, runs, graph = self.told, self.told.runs, self.told.graph
        source, target = _Anchors(len(graph)), _Anchors(len(graph))
        device = told.times.device
        if len(runs):
            stamp, row = graphs.extreme(runs.task, runs.end, len(graph), largest=True)
            source.put(stamp, row, self.track_of_run, self.first_run + np.arange(len(runs)), device)
            stamp, row = graphs.extreme(runs.task, runs.judged, len(graph), largest=False)
            at_start = (runs.judged == runs.start) | (self.setup_of_run < 0)
            slice_id = np.where(at_start, self.first_run + np.arange(len(runs)), self.setup_of_run)
            target.put(stamp, row, self.track_of_run, slice_id, device)
        bare = (source.stamp == 0) & (target.stamp == 0)
        markers = np.flatnonzero(told.marker_task >= 0)
        if self.drawn_phases is not None and len(markers):
            self._add(source, target, bare, told.marker_task[markers], markers, self.drawn_phases)
        # A task without a kernel, a marker or producers is an allocation, or a barrier that nothing holds up: it is
        # over with its submit. One with producers passes at a time that nobody recorded.
        waits = np.zeros(len(graph), np.bool_)
        waits[graph.succ] = True
        bare &= graph.has_no_kernel & ~waits
        lists = [(told.submits, self.drawn_submits)]
        if isinstance(told.times.alignment, Alignment):
            lists.append((told.host_submits, self.drawn_host_submits))
        for rows, drawn in lists:
            if drawn is not None:
                self._add(source, target, bare, graph.index(rows["task_id"]), np.arange(len(rows)), drawn)
        return source, target

    @staticmethod
    def _add(source: _Anchors, target: _Anchors, bare: Mask, task: Int64, at: Int64, drawn: _Drawn) -> None:
        """Anchor tasks without executions (``bare``) at the first of their records, and mark them as anchored."""
        row = np.full(len(bare), -1, np.int64)
        row[task[::-1]] = at[::-1]
        row[~bare] = -1
        found = row >= 0
        slice_id = drawn.first + np.arange(len(drawn.begin))
        for anchors, values in ((source, np.maximum(drawn.begin, drawn.end)), (target, drawn.begin)):
            stamp = np.zeros(len(bare), np.int64)
            stamp[found] = values[row[found]]
            anchors.put(stamp, row, drawn.track, slice_id, drawn.to_ts)
        bare &= ~found

    # --- what is known to be missing -----------------------------------------------------------------------------

    def _coverage(self) -> None:
        told = self.told
        lanes = [*self.cores.values(), *self.schedulers.values(), *self.orchestrators.values()]
        if not told.has_device or not lanes:
            return
        window = told.times.device(np.array([told.times.base_cycles, told.last_cycles]))
        self.builder.append("coverage", track_id=np.array(lanes), ts=int(window[0]), dur=int(window[1] - window[0]))

    def _losses(self) -> None:
        told, builder, lost = self.told, self.builder, self.told.lost
        if len(lost.core):
            begin = told.times.device(lost.begin)
            builder.append(
                "gaps",
                track_id=self.lane_of_core[lost.core],
                ts=begin,
                dur=told.times.device(lost.end) - begin,
                cause="lost_records",
                lost_count=lost.count,
                input_id=self.main,
            )
        for name, rows in (("ascend_aicore_unmatched", told.unmatched), ("ascend_aicpu_unmatched", told.orphans)):
            offsets = np.sort(rows.begin)
            by_offset = rows["core_id"][np.argsort(rows.begin)]
            cores, places, counts = np.unique(by_offset, return_index=True, return_counts=True)
            listed = zip(cores.tolist(), counts.tolist(), offsets[places].tolist(), strict=True)
            for core, count, offset in listed:
                builder.stat(name, count, track_id=self.cores[core], input_id=self.main, first_offset=offset)
        builder.stat("ascend_hole", lost.holes, input_id=self.main)
        parts = told.parts
        if parts.is_ambiguous:
            builder.stat("ascend_no_names", input_id=self.main)
        for part in sorted(parts.broken):
            builder.stat("ascend_bad_neighbour", input_id=self.input_of[part])
        if isinstance(told.times.alignment, str):
            builder.stat("ascend_host_apart", input_id=self.main)
        lists = {layout.name for layout in RECORDS}
        for key, at, _ in told.records.unknown:
            name = "ascend_bad_section" if key in lists else "ascend_unknown_section"
            builder.stat(name, input_id=self.main, first_offset=at)
        for name, count, first in told.problems:
            builder.stat(name, count, input_id=self.main, first_offset=first)

    def _account(self) -> None:
        told, builder, records = self.told, self.builder, self.told.records
        unknown = sum(end - begin for _, begin, end in records.unknown)
        self._account_file("main", records.size, records.sections.values(), unknown)
        deps = told.parts.deps
        if deps is not None:
            self._account_file("deps", deps.size, (deps.tasks, deps.edges), 0)
        if "names" in told.parts.sources and "names" not in told.parts.broken:
            size = told.parts.sources["names"].size
            builder.account(
                input_id=self.input_of["names"], layer=0, unit="byte", unit_bytes=1, total=size, decoded=size
            )
        for part in told.parts.broken:
            size = told.parts.sources[part].size
            builder.account(
                input_id=self.input_of[part], layer=0, unit="byte", unit_bytes=1, total=size, lost=size, decoded=0
            )
        missing = told.lost.lost + told.lost.holes
        lacking = len(told.unmatched) + told.lost.holes if told.has_dispatches else 0
        for layout, stream, lost in ((AICORE, told.streams[0], missing), (AICPU, told.streams[1], lacking)):
            if lost:
                self._producer(layout.name, len(stream.by_key) + stream.ambiguous, lost)
        host = records.metadata.get("host_capture")
        if isinstance(host, dict):
            expected, recorded = (host.get(key) for key in ("expected_records", "recorded_records"))
            if type(expected) is int and type(recorded) is int and 0 <= recorded < expected <= 1 << 62:
                builder.stat("ascend_host_dropped", expected - recorded, input_id=self.main)
                self._producer(HOST_SUBMITS.name, recorded, expected - recorded)
        clocks = told.times.alignment
        graph = told.graph if deps is not None else None
        builder.append(
            "ascend_runs",
            input_id=self.main,
            generation=told.generation,
            level_key=records.level_key,
            level=records.level,
            orchestrator=np.array([told.parts.orchestrator or ""], object),
            orchestrator_valid=[told.parts.orchestrator is not None],
            orchestrator_on_host=told.on_host,
            clocks=np.array(["aligned" if isinstance(clocks, Alignment) else clocks or ""], object),
            clocks_valid=[clocks is not None],
            base_ticks=told.times.base_cycles,
            tasks=len(told.graph),
            edges=None if graph is None else [len(graph.pred)],
            edges_repeated=None if graph is None else [graph.repeated],
            edges_to_self=None if graph is None else [graph.own],
            edges_retain_only=None if graph is None else [graph.retaining],
        )

    def _account_file(self, part: str, size: int, sections: Iterable[Section], other: int) -> None:
        sections = list(sections)
        decoded = sum(section.tally.good_bytes for section in sections)
        lost = other + sum(section.tally.bad_bytes for section in sections)
        self.builder.account(
            input_id=self.input_of[part],
            layer=0,
            unit="byte",
            unit_bytes=1,
            total=size,
            decoded=decoded,
            filler=size - decoded - lost,
            lost=lost,
        )
        for section in sections:
            tally = section.tally
            self.builder.stat(
                "ascend_bad_row", tally.bad_count, input_id=self.input_of[part], first_offset=tally.bad_first
            )

    def _producer(self, unit: str, recorded: int, lost: int) -> None:
        self.builder.account(
            input_id=self.main,
            layer=0,
            scope="producer",
            unit=f"{unit} record",
            unit_bytes=RECORD_BYTES[unit],
            total=recorded + lost,
            decoded=recorded,
            lost=lost,
        )

    def _raw(self) -> None:
        for name, section in self.told.records.sections.items():
            self.builder.records(f"ascend.{name}", partial(raw_table, section))


@dataclass(frozen=True)
class _Drawn:
    """Slices that stand for the records of a list: their lanes, the first of their ids, stamps, and their clock."""

    track: Int64
    first: int
    begin: Int64
    end: Int64
    to_ts: Callable[[Int64], Int64]


class _Anchors:
    """Where edges meet tasks, by task: a stamp (0: nowhere), its lane, its slice, its clock."""

    def __init__(self, tasks: int) -> None:
        self.stamp = np.zeros(tasks, np.int64)
        self.track = np.zeros(tasks, np.int64)
        self.slice_id = np.zeros(tasks, np.int64)
        self._time: list[Callable[[Int64], Int64]] = []
        self._clock = np.zeros(tasks, np.int8)

    def put(self, stamp: Int64, row: Int64, track: Int64, slice_id: Int64, to_ts: Callable[[Int64], Int64]) -> None:
        """Set the tasks that have a row (not -1) and a stamp."""
        found = np.flatnonzero((row >= 0) & (stamp > 0))
        rows = row[found]
        self.stamp[found] = stamp[found]
        self.track[found] = track[rows]
        self.slice_id[found] = slice_id[rows]
        self._clock[found] = len(self._time)
        self._time.append(to_ts)

    def ts(self, tasks: Int64) -> Int64:
        """Return the trace times of the stamps of tasks that have one."""
        clock, stamp = self._clock[tasks], self.stamp[tasks]
        times = np.zeros(len(tasks), np.int64)
        for index, to_ts in enumerate(self._time):
            mine = clock == index
            if mine.all():
                return to_ts(stamp)
            times[mine] = to_ts(stamp[mine])
        return times


def raw_table(section: Section) -> Table:
    """Return the elements of a list as they stand."""
    columns: dict[str, Column] = {
        "offset": Column.array(section.begin),
        "group": Column.array(section.group),
    }
    spec = schema.RAW[section.layout.name]
    for cell in section.layout.cells:
        valid = None if cell.is_required else _some(section.has(cell.name))
        values = section[cell.name]
        for place, name in enumerate(schema.column_names(cell)):
            array = values if cell.count == 1 else np.ascontiguousarray(values[:, place])
            if cell.kind == "text":
                dictionary = Dictionary(section.texts)
                columns[name] = Column.array(dictionary.codes(section.texts)[array], valid=valid, dictionary=dictionary)
            else:
                kind = spec.column(name).type
                columns[name] = Column.array(array.astype(kind), valid=valid)
    return Table(spec, columns)


def _numbered(rows: Section, name: str) -> list[tuple[int, str]]:
    used = range(rows.groups) if rows.groups <= _MAX_EMPTY_LANES else np.unique(rows.group).tolist()
    return [(index, f"{name}_{index}") for index in used]


def _table(ids: Mapping[int, int]) -> Int64:
    """Return a dict of small numbers as an array, -1 where nothing is."""
    table = np.full(max(ids, default=-1) + 1, -1, np.int64)
    table[list(ids)] = list(ids.values())
    return table


def _below_resolution(ticks: Int64) -> npt.NDArray[np.uint32]:
    short = (ticks >= 0) & (ticks < _RESOLVED)
    return np.where(short, np.uint32(Flag.BELOW_RESOLUTION), np.uint32(0))


def _some(mask: Mask) -> Mask | None:
    return None if mask.all() else mask


def _part(phases: Section, cell: str, place: int) -> Column:
    return Column.derived(
        len(phases),
        lambda: np.ascontiguousarray(phases[cell][:, place]).astype(np.int32),
        valid=_some(phases.has(cell)),
    )
