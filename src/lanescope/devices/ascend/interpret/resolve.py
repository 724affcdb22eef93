"""What the records of a capture mean: joined, named, on one time axis, with what is missing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lanescope.common.key_join import match_unique
from lanescope.declaration import replace
from lanescope.devices.ascend.formats import versions
from lanescope.devices.ascend.formats.keyed_rows import KeyedRows, keyed, keys, repeated
from lanescope.devices.ascend.formats.layout import (
    AICORE,
    AICPU,
    EARLY_KINDS,
    HOST_SUBMITS,
    PHASE_KINDS,
    RECORDS,
    SUBMITS,
    UPLOADS,
    Layout,
)
from lanescope.devices.ascend.formats.records import Records, Section
from lanescope.devices.ascend.formats.versions import FORMAT_VERSIONS, Erratum
from lanescope.devices.ascend.interpret import completeness, task_kinds
from lanescope.devices.ascend.interpret import graph as graphs
from lanescope.devices.ascend.interpret import names as naming
from lanescope.devices.ascend.interpret.attribution import Ends, Parts
from lanescope.devices.ascend.interpret.clock import Alignment, Times, longest, times
from lanescope.devices.ascend.interpret.execution_table import (
    Executions,
    LossSummary,
    Staging,
    executions,
    losses,
    receives,
    staged,
)
from lanescope.devices.ascend.interpret.graph import Graph, Intervals
from lanescope.devices.ascend.interpret.lifecycle import Stages, stages
from lanescope.devices.ascend.interpret.sidecars import Sidecars
from lanescope.devices.ascend.interpret.stamps import device_stamps, host_stamps, range_of, within
from lanescope.devices.ascend.interpret.task_kinds import Evidence, TaskKinds
from lanescope.trace.column import Mask

if TYPE_CHECKING:
    from lanescope.devices.ascend.formats.host_phases import HostPhases
    from lanescope.devices.ascend.interpret.host_log import Walls

Int64 = npt.NDArray[np.int64]


class Interpreter:
    """Finds out what one capture says.

    Args:
        records: the records file.
        parts: its neighbours.

    Attributes:
        format_version: its name, see ``format_versions``.
        runtime: ``versions.HOST_BUILT``, ``versions.RINGS``; empty: not known.
        errata: what holds in it.
        deps: the task graph, from its file or from the records.
        frequency: of the device's counter, Hz.
        problems: stats counted so far: name, count, byte offset of the first in the records file.
        aicore, aicpu, phases, submits, host_submits, uploads: the lists without what has no place in time.
        stages: what control processors did before and after their cores scheduled, likewise.
        times: the time axis.
        last_cycles: the latest stamp of the device.
        has_device: whether the device stamped anything.
        streams: rows of cores and of schedulers, without repetitions.
        unmatched: the executions that should have a dispatch record and have none.
        orphans: the dispatch records whose execution is missing.
        graph: the task graph.
        in_rings: tasks of it that wait for each other in a ring.
        core_types: type of each core.
        marker_task: int64 [phases], the task that a phase names, -1 without.
        marker_is_concluded: bool [phases], only half of that id was recorded.
        epochs: the runs of a file with several: int64 [executions], [phases], [submits], [host submits]; else None.
        host_phases: records of the host that have a place on the time axis; None without such a file.
        walls: spans of the device in a log of the host that have a place on the time axis; None without any.
        runs: the executions.
        lost: what is missing.
        graph_of: int64 [executions], the graph that each is a node of, -1 without; None where there are no nodes.
        run_names, name_of: names, and which of them each execution has.
    """

    def __init__(self, records: Records, parts: Sidecars) -> None:
        self.records = records
        self.parts = parts
        self.format_version = versions.of(records)
        # Of the stamps of a task more is known with the runtime, and that only with the lists in place.
        self.errata = FORMAT_VERSIONS[self.format_version].errata
        self.deps = parts.deps if parts.deps is not None else records.fanout
        # Without a frequency the time axis counts cycles: one is drawn as 1 ns.
        known = records.metadata.get("clock_freq_hz")
        self.frequency: int = 1_000_000_000 if known is None else known
        self.problems: list[tuple[str, int, int | None]] = []
        self._submitted: dict[str, Int64] = {}
        self._of_kind: dict[tuple[str, ...], Mask] = {}
        self._place()
        kinds = (kind for kind in task_kinds.MARKERS if self.is_kind(kind).any())
        self.runtime = task_kinds.runtime(
            records, self.format_version, kinds, self.deps, has_submits=bool(len(self.submits))
        )
        self.errata = versions.errata(records, self.runtime)
        self._join()
        self._name()

    @property
    def task_naming(self) -> Callable[[int], str]:
        """Layout of task ids: v4 has one for each runtime."""
        if self.format_version != "v4":
            return naming.task_name
        return naming.space_name if self.records.metadata.get("runtime") == versions.HOST_BUILT else naming.ring_name

    @cached_property
    def task_texts(self) -> naming.TaskTexts:
        """The id of each task of the graph as it is written."""
        return naming.TaskTexts(self.graph.ids, self.task_naming)

    def index(self, submits: Section) -> Int64:
        """Return the tasks of submits in the graph, int64 [n]; those of a whole list are looked up once."""
        if submits is self.submits or submits is self.host_submits:
            if submits.layout.name not in self._submitted:
                self._submitted[submits.layout.name] = self._index(submits)
            return self._submitted[submits.layout.name]
        return self._index(submits)

    def _index(self, submits: Section) -> Int64:
        return self.graph.index(submits["task_id"], self.epoch_of(3 if submits.layout is HOST_SUBMITS else 2))

    # --- what there is -------------------------------------------------------------------------------------------

    def _place(self) -> None:
        """Find the time axis, and leave out what has no place on it."""
        records = self.records
        device = list(device_stamps(records))
        host = [values for name in (HOST_SUBMITS, UPLOADS) for values in host_stamps(records[name])]
        parts_host = self.parts.host_phases
        first, _ = range_of(device) or (0, 0)
        base_host = range_of(host)
        if base_host is None and parts_host is not None and len(parts_host):
            base_host = int(parts_host.begin.min()), int(parts_host.begin.min())
        limit = first + longest(self.frequency)
        host_limit = (base_host[0] if base_host else 0) + longest(1_000_000_000) // 2
        aicore, aicpu, phases, submits, host_submits, uploads, lifecycle = (records[layout] for layout in RECORDS)
        self.aicore = self._placed(aicore, ("start_cycles", "end_cycles"), limit)
        self.aicpu = self._placed(aicpu, ("dispatch_cycles", "finish_cycles"), limit, begins=False)
        self.phases = self._once(self._placed(phases, ("start_cycles", "end_cycles"), limit))
        self.submits = self._placed(submits, ("start_cycles", "end_cycles"), limit)
        self.host_submits = self._placed(host_submits, ("start_host_ns", "end_host_ns"), host_limit)
        self.uploads = self._placed(uploads, ("start_host_ns", "end_host_ns"), host_limit)
        self.stages: Stages = stages(lifecycle, limit)
        self.problems += self.stages.problems
        kept, kept_host = within(device, limit), within(host, host_limit)
        # Of a clock that is not on the axis, nothing can be placed.
        has_axis = records.metadata.get("clock_freq_hz") is not None and Erratum.MICROSECONDS not in self.errata
        self.host_phases: HostPhases | None = None
        self.walls: Walls | None = None
        if parts_host is not None:
            near = (np.maximum(parts_host.begin, parts_host.end) <= host_limit) & has_axis
            near &= parts_host.begin >= (base_host[0] if base_host else 0) - longest(1_000_000_000) // 2
            self.host_phases = parts_host.take(near)
            self.problems.append(("ascend_host_phases_unplaced", int(np.count_nonzero(~near)), None))
            kept_host += [self.host_phases.begin, self.host_phases.end[self.host_phases.end > 0]]
        # Spans of the device in a log enclose what it recorded.
        log = self.parts.placed_log if has_axis else None
        if log is not None and len(log.walls.row) and kept:
            self.walls = log.walls.take(log.walls.end <= limit)
            kept += [self.walls.begin, self.walls.end]
        self.times: Times = times(
            records.metadata,
            records.metadata.get("clock_freq_hz"),
            range_of(kept),
            range_of(kept_host),
            has_counter=Erratum.MICROSECONDS not in self.errata,
        )
        self.last_cycles = max((int(values.max(initial=first)) for values in kept), default=0)
        self.has_device = bool(device) and first > 0
        wrong = aicore.has("receive_to_start_cycles") & ~receives(aicore)[1] & (aicore["start_cycles"] > 0)
        self.note("ascend_bad_delta", wrong, aicore)
        without = ~aicore.has("receive_to_start_cycles")
        if not without.all():
            self.note("ascend_mixed_rows", without, aicore)
        self.problems += records.problems
        if FORMAT_VERSIONS[self.format_version].status == "published":
            self.problems.append(("unverified_encoding", sum(len(rows) for rows in records.as_read.values()), None))
        if self.format_version == "v4" and records.metadata.get("runtime") not in (
            versions.HOST_BUILT,
            versions.RINGS,
        ):
            self.problems.append(("ascend_unknown_runtime", 1, None))

    def _placed(self, rows: Section, stamps: tuple[str, str], limit: int, *, begins: bool = True) -> Section:
        begin, end = (rows[name] for name in stamps)
        far = (begin > limit) | (end > limit)
        unstamped = (begin == 0) & ~far if begins else np.zeros(len(rows), np.bool_)
        self.note("ascend_timestamp_out_of_range", far, rows)
        self.note("ascend_missing_start", unstamped, rows)
        dropped = far | unstamped
        return rows.take(~dropped) if dropped.any() else rows

    def _once(self, phases: Section) -> Section:
        """Leave out phases that repeat another: a thread cannot be in the same phase twice at one time."""
        again = repeated(phases, phases["start_cycles"], phases["end_cycles"])
        if not len(again):
            return phases
        is_repeated = np.zeros(len(phases), np.bool_)
        is_repeated[again] = True
        self.note("ascend_row_duplicate", is_repeated, phases)
        return phases.take(~is_repeated)

    def note(self, stat: str, where: Mask, rows: Section) -> None:
        """Count a fact about rows of a list, where a mask (bool [n]) says so."""
        count = int(np.count_nonzero(where))
        if count:
            self.problems.append((stat, count, int(rows.begin[where].min())))

    def _join(self) -> None:
        """Join the two streams, build the graph, and put the executions together."""
        metadata = self.records.metadata
        aicore, aicpu = (
            keyed(*pair) for pair in zip((self.aicore, self.aicpu), keys(self.aicore, self.aicpu), strict=True)
        )
        for stream in (aicore, aicpu):
            self.problems.append(("ascend_row_duplicate", stream.duplicates, stream.duplicate_offset))
            self.problems.append(("ascend_key_duplicate", stream.ambiguous, stream.ambiguous_offset))
        match = match_unique(aicore.keys, aicpu.keys)
        partner, orphans = match.partner, match.right_only
        if AICORE.name in self.records.absent:
            orphans = orphans[:0]
        self.has_dispatches = self.records.level > 1 and AICPU.name not in self.records.absent
        if self.has_dispatches:
            self.unmatched = aicore.section.take(match.left_only)
        else:
            self.unmatched = aicore.section.take(slice(0))
        self.orphans = aicpu.section.take(orphans)

        with_id = self.phases.has("task_id")
        ids = (
            aicore.section["task_token_raw"],
            self.phases["task_id"][with_id],
            self.submits["task_id"],
            self.host_submits["task_id"],
        )
        self.graph: Graph = graphs.build(self.deps, ids)
        self.in_rings = int(np.count_nonzero(graphs.rings(self.graph)))
        self.epochs = self._epochs(aicore.section)
        if self.epochs is not None:
            executed, phases, *submitted = self.epochs
            self.graph = graphs.by_run(self.graph, ids, (executed, phases[with_id], *submitted))
            if self.graph.runs is not None and self.graph.runs.left_out:
                self.problems.append(("ascend_edges_omitted", self.graph.runs.left_out, None))
        self.core_types = _core_types(metadata)
        self.marker_task, self.marker_is_concluded = self._markers(with_id)
        self.runs: Executions = executions(aicore, aicpu, partner, self.graph, self.core_types, self.epoch_of(0))
        self.lost: LossSummary = losses(self.runs, aicpu, orphans)
        self.streams: tuple[KeyedRows, KeyedRows] = (aicore, aicpu)
        self.graph_of = self._graph_of()
        if self.graph_of is not None:
            ended = Ends.of(Parts.of(self.runs, self.graph_of), len(self.graph)).end
            self.runs = replace(self.runs, ready=graphs.ready(self.graph, ended)[self.runs.task])
        if Erratum.RECEIVE_AT_PICKUP in self.errata:
            self.runs = staged(self.runs, self.graph, self._staging())

    def _graph_of(self) -> Int64 | None:
        """Return the graph that each execution is a node of, int64 [executions], -1 without; None: there are none."""
        if self.runtime == versions.RINGS:
            return None
        found = self.parents[self.runs.task]
        return found if (found >= 0).any() else None

    @cached_property
    def run_thread(self) -> Int64:
        """The scheduler thread of each execution, int64 [executions], -1 where it is not known."""
        threads = np.append(thread_of_core(self.records.metadata), -1)
        return np.take(threads, self.runs.core, mode="clip")

    @cached_property
    def parents(self) -> Int64:
        """The graph that each task is a node of, int64 [tasks], -1 for tasks that are not."""
        return graphs.parents(self.graph, np.flatnonzero(self.is_task_kind(task_kinds.GRAPH)))

    def _markers(self, with_id: Mask) -> tuple[Int64, Mask]:
        """Return the task that each phase names, int64 [phases], -1 without one, and whether that was concluded.

        v3 writes only the lower half of a dummy's id, as ``tasks_processed``: the one task without a kernel that has
        this half is meant.
        """
        phases, graph = self.phases, self.graph
        task = np.full(len(phases), -1, np.int64)
        epoch = self.epoch_of(1)
        task[with_id] = graph.index(phases["task_id"][with_id], None if epoch is None else epoch[with_id])
        halves = np.flatnonzero(self.is_kind("dummy_task") & ~with_id)
        concluded = np.zeros(len(phases), np.bool_)
        if len(halves):
            candidates = np.flatnonzero(graph.has_no_kernel)
            lower = (graph.ids[candidates] & np.uint64(0xFFFFFFFF)).astype(np.int64)
            order = np.argsort(lower, kind="stable")
            half = phases["tasks_processed"][halves]
            low, high = (np.searchsorted(lower[order], half, side=side) for side in ("left", "right"))
            fits = high - low == 1
            task[halves[fits]] = candidates[order[low[fits]]]
            concluded[halves[fits]] = True
            if self.deps is not None:
                self.note("ascend_task_ambiguous", ~fits, phases.take(halves))
        return task, concluded

    @cached_property
    def threads_without_cores(self) -> Int64:
        """Threads with an empty list of phases and without a core, int64, rising: the orchestrator's, or not started.

        Collectors write a list for each thread that the platform may have; each scheduler thread has cores.
        """
        of_core = thread_of_core(self.records.metadata)
        if not (of_core >= 0).any():
            return np.empty(0, np.int64)
        is_used = np.bincount(self.phases.group, minlength=self.phases.groups) > 0
        is_used[of_core[(of_core >= 0) & (of_core < len(is_used))]] = True
        return np.flatnonzero(~is_used)

    def is_kind(self, *kinds: str) -> Mask:
        """Return which phases are of one of these kinds, bool [phases], to read only."""
        phases = self.phases
        if kinds not in self._of_kind:
            found = np.zeros(len(phases), np.bool_)
            for code, text in enumerate(phases.texts):
                if text in kinds:
                    found |= phases["kind"] == code
            if found.any():
                found &= phases.has("kind")  # the code of what is missing is that of the first kind
            found.flags.writeable = False
            self._of_kind[kinds] = found
        return self._of_kind[kinds]

    def role(self, kind: str) -> str:
        """Return the role of phases of a kind, empty if it is unknown.

        Schedulers on cores resolve outside of other phases; so do threads of version 4 that do nothing else.
        """
        if kind == "resolve" and self.format_version == "v4" and self.on_host:
            return "outer"
        return PHASE_KINDS[kind].role if kind in PHASE_KINDS else ""

    def _staging(self) -> Staging:
        """Return what is known about early dispatch."""
        phases, graph, kinds = self.phases, self.graph, self.kinds
        # The runtime flags allocations itself, no barrier; what is not listed, or may be an allocation, may be flagged.
        is_barrier = graph.has_no_kernel & (kinds.kind == task_kinds.DUMMY) & (kinds.record != task_kinds.UNDECIDABLE)
        forbids = graph.is_listed & ~graph.is_early & (is_barrier | ~graph.has_no_kernel)
        ended, _ = graphs.extreme(self.runs.task, self.runs.end, len(graph), largest=True)
        passed = np.flatnonzero(self.is_kind("dummy_task", "predicated_skip") & (self.marker_task >= 0))
        np.maximum.at(ended, self.marker_task[passed], phases["end_cycles"][passed])
        submitted = np.zeros(len(graph), np.int64)
        submitted[self.index(self.submits)[::-1]] = self.submits["start_cycles"][::-1]
        thread = phases.group.astype(np.int64)

        def intervals(*kinds: str) -> Intervals:
            rows = np.flatnonzero(self.is_kind(*kinds))
            return Intervals(thread[rows], phases["start_cycles"][rows], phases["end_cycles"][rows])

        threads = thread_of_core(self.records.metadata)
        return Staging(forbids, ended, submitted, threads, intervals(*EARLY_KINDS), intervals("dispatch"))

    @property
    def on_host(self) -> bool:
        """True if the orchestrator runs on the host."""
        return self.runtime == versions.HOST_BUILT

    @cached_property
    def kinds(self) -> TaskKinds:
        """What each task of the graph is."""
        evidence = Evidence.of(
            self.graph,
            self.runs.task,
            {kind: self.marker_task[self.is_kind(kind)] for kind in task_kinds.MARKERS},
            [self.index(rows) for rows in (self.submits, self.host_submits)],
            format_version=self.format_version,
            level=self.records.level,
            runtime=self.runtime,
            has_deps=self.deps is not None and bool(len(self.deps.tasks)),
            is_complete=not self.lost.lost and not self.lost.holes and self.records.cut is None,
            has_all_submits=bool(len(self.submits) or len(self.host_submits)) and self.is_whole(SUBMITS, HOST_SUBMITS),
        )
        return task_kinds.decide(evidence)

    def is_whole(self, *layouts: Layout) -> bool:
        """Return whether nothing says that records of some lists are missing or left out."""
        return completeness.is_whole(self.records, self.lost, len(self.unmatched), self.problems, layouts)

    def is_task_kind(self, *kinds: int) -> Mask:
        """Return which tasks are of one of these kinds (codes of ``task_kinds.KINDS``), bool [tasks]."""
        found: Mask = np.isin(self.kinds.kind, kinds)
        return found

    def _epochs(self, aicore: Section) -> tuple[Int64, ...] | None:
        """Return the runs of executions, phases, submits and host submits of a file that holds several.

        Where submits do not say theirs, it is the first run that ends behind them.
        """
        epoch = aicore["run_epoch"].astype(np.int64)
        told = self.submits.has("run_epoch")
        every = np.concatenate(
            [epoch, self.phases["run_epoch"], self.aicpu["run_epoch"], self.submits["run_epoch"][told]]
        )
        if not len(every) or every.min() == every.max():
            return None
        distinct, which = np.unique(epoch, return_inverse=True)
        last = np.zeros(len(distinct), np.int64)
        np.maximum.at(last, which.reshape(-1), np.maximum(aicore["start_cycles"], aicore["end_cycles"]))
        order = np.argsort(last, kind="stable")

        def of(stamps: Int64, last: Int64) -> Int64:
            if not len(distinct):
                return np.full(len(stamps), every.min())
            return distinct[order[np.minimum(np.searchsorted(last[order], stamps), len(order) - 1)]]

        # Host stamps are of another clock: where both are not joined, all are taken for those of the first run.
        joined = self.times.alignment
        on_host = joined.host_ns(last) if isinstance(joined, Alignment) else np.full(len(last), np.iinfo(np.int64).max)
        return (
            epoch,
            self.phases["run_epoch"].astype(np.int64),
            np.where(told, self.submits["run_epoch"], of(self.submits["start_cycles"], last)),
            of(self.host_submits["start_host_ns"], on_host),
        )

    def epoch_of(self, place: int) -> Int64 | None:
        """Return one of ``epochs``; None where there is one run."""
        return None if self.epochs is None else self.epochs[place]

    def _name(self) -> None:
        """Find the name of each execution: few names, so by function."""
        runs = self.runs
        key = (runs.function + 1) * 2 + runs.is_spmd
        keys, self.name_of = _distinct(key)
        self.run_names = [
            naming.function_name(key // 2 - 1, self.parts.names, is_spmd=bool(key % 2)) for key in keys.tolist()
        ]


def _core_types(metadata: dict[str, Any]) -> npt.NDArray[np.uint8]:
    listed = metadata.get("core_types")
    codes = {text: code for code, text in enumerate(graphs.CORE_TYPES)}
    if not isinstance(listed, list):
        return np.empty(0, np.uint8)
    return np.array(
        [codes.get(kind, graphs.UNKNOWN) if isinstance(kind, str) else graphs.UNKNOWN for kind in listed], np.uint8
    )


def thread_of_core(metadata: dict[str, Any]) -> Int64:
    """Return the scheduler thread of each core, int64 [cores], -1 where it is not known."""
    listed = metadata.get("core_to_thread")
    if not isinstance(listed, list):
        return np.empty(0, np.int64)
    return np.array([t if type(t) is int and 0 <= t < 1 << 31 else -1 for t in listed], np.int64)


def _distinct(values: Int64) -> tuple[Int64, Int64]:
    """Return the distinct values, rising, and the place of each value among them."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if high - low <= 1 << 20:
        used = np.flatnonzero(np.bincount(values - low, minlength=1))
        places = np.zeros(high - low + 1, np.int64)
        places[used] = np.arange(len(used))
        return used + low, places[values - low]
    distinct, inverse = np.unique(values, return_inverse=True)
    return distinct, inverse
