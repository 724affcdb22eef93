"""What follows from a whole capture: the time of cores and scheduler threads, and the run itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.devices.ascend.emit.context import TimelineBuilder, some
from lanescope.devices.ascend.formats.layout import AICORE, EARLY_KINDS, PHASE_KINDS
from lanescope.devices.ascend.formats.versions import Erratum
from lanescope.devices.ascend.interpret import attested_window, attribution, consistency
from lanescope.devices.ascend.interpret import graph as graphs
from lanescope.devices.ascend.interpret.attribution import IDLE_PARTS, CoreTimes
from lanescope.devices.ascend.interpret.clock import Alignment
from lanescope.devices.ascend.interpret.execution_table import anywhere
from lanescope.devices.ascend.interpret.resolve import Interpreter, thread_of_core
from lanescope.devices.ascend.interpret.thread_time import ThreadTimes, thread_times
from lanescope.trace import Column
from lanescope.trace.column import Array, Mask

Int64 = npt.NDArray[np.int64]

_IDLE_KINDS = ("idle",)
#: Sums of tasks processed, and the kinds of phases that they are sums of.
_COUNTED_KINDS = {
    "dispatched": ("dispatch",),
    "staged": EARLY_KINDS,
    "drained": ("drain_publish",),
    "completed": ("complete",),
    "resolved": ("resolve", "fanout", "resolve_standalone"),
}


def add_sums(canvas: TimelineBuilder) -> None:
    """Add the sums; they are computed when somebody asks for them."""
    sums = Sums(canvas.told, np.array(sorted(canvas.lanes["core"]), np.int64), canvas.steps.suspect)
    _cores(canvas, sums)
    _threads(canvas, sums)
    _run(canvas)


class Sums:
    """Sums over an interpreted capture, each made once. Until then only the columns that they need are kept of it."""

    def __init__(self, told: Interpreter, cores: Int64, suspect: Mask) -> None:
        self._runs = told.runs
        self._frequency = told.frequency
        self._suspect = suspect
        self.core_ids = cores
        self._tasks = len(told.graph)
        self._has_substeps = Erratum.SUBSTEPS in told.errata
        self._submits, self._submitted = told.submits.only("start_cycles", "end_cycles"), told.index(told.submits)
        self._lost = told.lost
        if AICORE.name in told.records.partial:
            self._lost = anywhere(cores, told.times.base_cycles, told.last_cycles)
        self._phases = told.phases.only(
            "start_cycles", "end_cycles", "loop_iter", "tasks_processed", "pop_hit", "pop_miss"
        )
        # Inner phases lie in others; in version 4 also next to them.
        roles = ("outer", "inner") if told.format_version == "v4" else ("outer",)
        no_work = [kind for kind in PHASE_KINDS if told.role(kind) not in roles]
        self._is_no_work = told.is_kind(*no_work, *_IDLE_KINDS)
        self._of_kind = {name: told.is_kind(*kinds) for name, kinds in _COUNTED_KINDS.items()}

    @cached_property
    def submitted(self) -> Int64:
        """The end of the first submit of each task on the device's clock, int64 [tasks], 0 where unknown."""
        ends = self._submits["end_cycles"]
        found = np.zeros(self._tasks, np.int64)
        if self._has_substeps:
            np.maximum.at(found, self._submitted, ends)
            return found
        found[self._submitted[::-1]] = ends[::-1]
        return found

    @property
    def _disordered(self) -> Mask:
        """Executions with stamps out of order, bool [executions]: one wrong stamp must not make cores idle."""
        return consistency.disordered(self._runs, self._frequency, self._suspect)

    @cached_property
    def attested(self) -> tuple[int, int]:
        """First and last stamp of the device that does not stand apart from all others, cycles."""
        return attested_window.of_capture(self._runs, self._phases, self._submits)

    @cached_property
    def cores(self) -> CoreTimes:
        """Time of each core by use."""
        return attribution.core_times(
            self._runs, self.submitted, self._lost, self.core_ids, self._disordered, self.attested
        )

    @cached_property
    def threads(self) -> ThreadTimes:
        """Time of each scheduler thread by use."""
        phases = self._phases
        count = phases["tasks_processed"].astype(np.int64)
        return thread_times(
            phases.group.astype(np.int64),
            phases["start_cycles"],
            phases["end_cycles"],
            ~self._is_no_work,
            phases["loop_iter"].astype(np.int64),
            {
                "pop_hit": phases["pop_hit"].astype(np.int64),
                "pop_miss": phases["pop_miss"].astype(np.int64),
                **{name: np.where(is_kind, count, 0) for name, is_kind in self._of_kind.items()},
            },
            self.attested,
        )


def _cores(canvas: TimelineBuilder, sums: Sums) -> None:
    told, times = canvas.told, canvas.told.times
    ids, count = sums.core_ids, len(sums.core_ids)
    if not count:
        return
    types = np.full(int(ids.max()) + 1, graphs.UNKNOWN, np.uint8)
    types[: len(told.core_types)] = told.core_types[: len(types)]

    def tiles() -> Int64:
        """Busy and the idle parts, int64 [cores, 8]."""
        return np.column_stack([sums.cores.busy, sums.cores.idle])

    def column(place: int, *, in_ns: bool) -> Column:
        if not in_ns:
            return Column.derived(count, lambda: tiles()[:, place])
        # Differences of rounded sums, so that they add up to the window in ns as well.
        return Column.derived(
            count,
            lambda: np.diff(times.length(np.cumsum(tiles(), 1).reshape(-1)).reshape(count, -1), prepend=0)[:, place],
        )

    def whole(make: Callable[[CoreTimes], Array | int]) -> Column:
        return Column.derived(count, lambda: np.broadcast_to(np.asarray(make(sums.cores), np.int64), count))

    threads = np.full(count, -1, np.int64)
    recorded = thread_of_core(told.records.metadata)
    known = ids < len(recorded)
    threads[known] = recorded[ids[known]]
    parts = {}
    for place, name in enumerate(("busy", *IDLE_PARTS)):
        parts[f"{name}_ns"] = column(place, in_ns=True)
        parts[f"{name}_ticks"] = column(place, in_ns=False)
    canvas.builder.append(
        "ascend_cores",
        track_id=canvas.lane("core")[ids],
        core=ids.astype(np.int32),
        core_type=canvas.builder.dictionary("ascend_cores", "core_type").codes(graphs.CORE_TYPES)[types[ids]],
        thread=Column.array(threads.astype(np.int32), valid=some(threads >= 0)),
        executions=whole(lambda cores: cores.rows),
        window_ns=whole(lambda cores: times.length(np.array([cores.end - cores.begin]))),
        window_ticks=whole(lambda cores: cores.end - cores.begin),
        window_start_ticks=whole(lambda cores: cores.begin),
        **parts,
        overlap_ticks=whole(lambda cores: cores.overlap),
        lost_ticks=whole(lambda cores: cores.lost),
        suspect_executions=whole(lambda cores: cores.suspects),
        suspect_ns=whole(lambda cores: times.length(cores.suspect)),
        suspect_ticks=whole(lambda cores: cores.suspect),
    )


def _threads(canvas: TimelineBuilder, sums: Sums) -> None:
    times, phases = canvas.told.times, canvas.told.phases
    ids = distinct(phases.group)
    count = len(ids)
    if not count:
        return

    def sum_of(make: Callable[[ThreadTimes], Int64]) -> Column:
        return Column.derived(count, lambda: make(sums.threads))

    knows_loops = np.zeros(count, np.bool_)
    knows_loops[np.searchsorted(ids, phases.group[phases["loop_iter"] > 0])] = True
    canvas.builder.append(
        "ascend_threads",
        track_id=canvas.lane("scheduler")[ids],
        thread=ids.astype(np.int32),
        records=sum_of(lambda t: t.records),
        window_ns=sum_of(lambda t: times.length(t.end - t.begin)),
        busy_ns=sum_of(lambda t: times.length(t.busy)),
        idle_ns=sum_of(lambda t: times.length(t.end - t.begin) - times.length(t.busy) - times.length(t.unknown)),
        unknown_ns=sum_of(lambda t: times.length(t.unknown)),
        window_ticks=sum_of(lambda t: t.end - t.begin),
        busy_ticks=sum_of(lambda t: t.busy),
        idle_ticks=sum_of(lambda t: t.end - t.begin - t.busy - t.unknown),
        unknown_ticks=sum_of(lambda t: t.unknown),
        suspect_records=sum_of(lambda t: t.suspects),
        suspect_ns=sum_of(lambda t: times.length(t.suspect)),
        suspect_ticks=sum_of(lambda t: t.suspect),
        pauses=sum_of(lambda t: t.pauses),
        longest_pause_ns=sum_of(lambda t: times.length(t.longest_idle)),
        iterations=Column.derived(count, lambda: sums.threads.iterations, valid=knows_loops),
        working_iterations=Column.derived(count, lambda: sums.threads.working, valid=knows_loops),
        mean_iteration_ns=Column.derived(
            count,
            lambda: times.length(
                (sums.threads.end - sums.threads.begin) // np.maximum(sums.threads.iterations, 1) * knows_loops
            ),
            valid=knows_loops,
        ),
        pop_hit=sum_of(lambda t: t.pop_hit),
        pop_miss=sum_of(lambda t: t.pop_miss),
        dispatched=sum_of(lambda t: t.dispatched),
        staged_early=sum_of(lambda t: t.staged),
        drained=sum_of(lambda t: t.drained),
        completed=sum_of(lambda t: t.completed),
        resolved_at_least=sum_of(lambda t: t.resolved),
    )


def _run(canvas: TimelineBuilder) -> None:
    told, records, kept = canvas.told, canvas.told.records, canvas.kept
    clocks = told.times.alignment
    graph = told.graph if told.deps is not None else None
    real = kept.violated & ~kept.by_clock

    def tasks(edges: npt.NDArray[np.bool_]) -> list[int] | None:
        return None if graph is None else [len(distinct(graph.succ[edges]))]

    def of_edges(value: int) -> list[int] | None:
        return None if graph is None else [value]

    at = told.runs.judged_at_receive
    judged = "" if not len(at) else "receive" if at.all() else "both" if at.any() else "start"
    canvas.builder.append(
        "ascend_runs",
        input_id=canvas.main,
        format_version=told.format_version,
        errata=np.array([" ".join(sorted(erratum.name.lower() for erratum in told.errata))], object),
        rank=None if canvas.rank is None else [canvas.rank],
        device=None if canvas.device is None else [canvas.device],
        epochs=1 if told.epochs is None else len(distinct(told.epochs[0])),
        level_key=records.level_key,
        level=records.level,
        orchestrator=np.array([told.parts.orchestrator or ""], object),
        orchestrator_valid=[told.parts.orchestrator is not None],
        orchestrator_on_host=told.on_host,
        clocks=np.array(["aligned" if isinstance(clocks, Alignment) else clocks or ""], object),
        clocks_valid=[clocks is not None],
        base_ticks=told.times.base_cycles,
        tasks=len(told.graph),
        edges=of_edges(len(told.graph.pred)),
        edges_repeated=of_edges(told.graph.repeated),
        edges_to_self=of_edges(told.graph.own),
        edges_retain_only=of_edges(told.graph.retaining),
        dependency_reference=judged,
        violated_edges=of_edges(int(kept.violated.sum())),
        violated_tasks=tasks(kept.violated),
        violated_pairs=of_edges(int(kept.pairs.sum())),
        violated_edges_by_clock=of_edges(int(kept.by_clock.sum())),
        violated_tasks_by_clock=None if graph is None else [(tasks(kept.violated) or [0])[0] - (tasks(real) or [0])[0]],
        clock_steps=len(canvas.steps.core),
    )
