"""What all drawing shares: the inputs, the clocks, the lanes, and how stamps become slices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.common.intervals import pack_sort_key
from lanescope.declaration import frozen_class
from lanescope.devices.ascend.formats.layout import LEVEL_KEYS, QUEUES
from lanescope.devices.ascend.formats.records import Section, Tally
from lanescope.devices.ascend.formats.versions import Erratum
from lanescope.devices.ascend.interpret import attribution
from lanescope.devices.ascend.interpret import graph as graphs
from lanescope.devices.ascend.interpret.attribution import Kept
from lanescope.devices.ascend.interpret.clock import Alignment
from lanescope.devices.ascend.interpret.clock_steps import Steps, clock_steps
from lanescope.devices.ascend.interpret.resolve import Interpreter
from lanescope.devices.ascend.interpret.scheduler_overhead import COUNTERS, overhead
from lanescope.devices.ascend.interpret.sidecars import folders_of, rank_and_device
from lanescope.trace import Column, Flag, TraceBuilder
from lanescope.trace.column import Array, Mask

if TYPE_CHECKING:
    from lanescope.devices.ascend.formats.host_phases import HostPhases
    from lanescope.source import Capture

Int64 = npt.NDArray[np.int64]
ToTs = Callable[[Int64], Int64]

#: Lists that give every inner list a lane, even an empty one; above that only those with records get one.
_MAX_EMPTY_LANES = 256
#: Steps of the counter below which the true length may be half or double.
_RESOLVED = 2
#: Codes of the qualities.
EXACT, ESTIMATED = 0, 1

#: Values of the options ``detail`` and ``arrows``.
DETAILS, ARROWS = ("low", "full"), ("edge", "block")


@frozen_class
class Style:
    """Rows added besides executions, phases and submits.

    Attributes:
        is_full: setups, waits at the gate, the view of the schedulers, depths of the queues.
        has_blocks: an arrow for each pair of blocks that an edge joins, not one an edge.
        has_overhead: the eight counters of idle cores and ready tasks.
    """

    is_full: bool = True
    has_blocks: bool = False
    has_overhead: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Style:
        """Return what decode options ask for."""
        return cls(options.get("detail") != "low", options.get("arrows") == "block", bool(options.get("overhead")))


@frozen_class
class RecordSlices:
    """Slices that stand for records of one list: their lanes, the first of their ids, stamps, and their clock."""

    track: Int64
    first: int
    begin: Int64
    end: Int64
    to_ts: ToTs
    places: Int64 | None = None  # of each slice behind the first, where they do not follow one another

    @property
    def ids(self) -> Int64:
        """int64 [n], the slices."""
        return self.first + (np.arange(len(self.begin)) if self.places is None else self.places)

    def ids_of(self, rows: Int64 | slice) -> Int64:
        """Return the slices of some rows, int64 [m]."""
        if isinstance(rows, slice):
            return self.ids[rows]
        return self.first + (rows if self.places is None else self.places[rows])


class TimelineBuilder:
    """A builder with the lanes of a capture.

    Args:
        told: what its records mean.
        builder: takes the rows.
        capture: its files.
        options: decode options that were given.

    Attributes:
        main: id of the records file; ``input_of`` has all parts.
        style: what to draw.
        clock, host_clock: ids; the host's is None without host records.
        lanes: lanes, by role and index: ``orchestrator``, ``host``, ``scheduler``, ``lifecycle``, ``core``, ``flight``
            (a core as the schedulers see it).
        core_names: name of each core.
        queues: counters of the depths.
        overhead: counters of the overhead: track, cycles at which it changes, values.
        steps: cores whose clock stepped.
        kept: how the edges were kept.
    """

    def __init__(self, told: Interpreter, builder: TraceBuilder, capture: Capture, options: Mapping[str, Any]) -> None:
        self.told = told
        self.builder = builder
        self.capture = capture
        self.style = Style.of(options)
        self.lanes: dict[str, dict[int, int]] = {}
        self.queues: list[int] = []
        self.overhead: list[tuple[int, Int64, Int64]] = []
        said, self.device = rank_and_device(capture.main.path)
        self.rank: int | None = said if options.get("rank") is None else options["rank"]
        self._inputs(options)
        self._clocks(str(options.get("device") or ""))
        self._tracks()
        self.steps: Steps = clock_steps(told.runs)
        self.kept: Kept = attribution.check_dependencies(told.graph, told.runs, self.steps.suspect, told.graph_of)

    # --- inputs and clocks ---------------------------------------------------------------------------------------

    def _inputs(self, options: Mapping[str, Any]) -> None:
        told, builder = self.told, self.builder
        formats = {
            "main": told.format_version,
            "deps": "deps",
            "names": "name_map",
            "host_phases": "host_phase_records",
            "pmu": "pmu",
            "scope_stats": "scope_stats",
            "log": "host_log",
        }
        sources = {"main": self.capture.main, **told.parts.sources}
        self.input_of = {
            part: builder.input(
                capture=self._name(),
                role=part,
                path=source.path,
                size=source.size,
                sha256=source.content_hash,
                family="ascend",
                format=formats[part.partition(" ")[0]],
                options=options,
            )
            for part, source in sources.items()
        }
        self.main = self.input_of["main"]

    def _name(self) -> str:
        """Return the name of the run: all records files have the same names, their folders tell them apart."""
        outer, inner = ["", "", *folders_of(self.capture.main.path)][-2:]
        folder = inner if self.device is None else f"{outer}/{inner}"
        return folder if self.capture.main.name in LEVEL_KEYS.values() and folder else self.capture.name

    def _clocks(self, device: str) -> None:
        told, builder, times = self.told, self.builder, self.told.times
        # A clock without a device joins no captures: all chips of a kind have a counter of this name.
        name, bits = ("collector_ns", None) if Erratum.MICROSECONDS in told.errata else ("syscnt", 64)
        frequency = None if times.base.time_unit == "cycles" else told.frequency
        self.clock = builder.clock(name=name, device=device, frequency=frequency, counter_bits=bits)
        self.host_clock = None
        if times.alignment is not None:
            self.host_clock = builder.clock(name="host_monotonic", device="host", frequency=1_000_000_000)
            builder.anchor(clock_id=self.host_clock, ticks=times.base_host_ns, ts=0, error_ns=0)
        if isinstance(times.alignment, Alignment):
            for reading in times.alignment.readings:
                builder.anchor(
                    clock_id=self.clock,
                    ticks=reading.cycles,
                    ts=reading.host_ns - times.base_host_ns,
                    error_ns=reading.error_ns,
                )
        elif told.has_device:
            # Exact by definition of the axis; if a host part comes first, the error is unknown.
            error = 0 if times.alignment is None else None
            builder.anchor(clock_id=self.clock, ticks=times.base_cycles, ts=times.shift, error_ns=error)

    # --- lanes ---------------------------------------------------------------------------------------------------

    def _tracks(self) -> None:
        """Make the lanes that follow from the capture's lists, groups in the order of the pipeline."""
        told = self.told
        self._root = self.builder.track("Ascend", kind="group", role="device", input_id=self.main)
        host: dict[str, Any] = {"clock_id": self.host_clock}
        self._host_threads: dict[tuple[int, int], int] = {}
        phases = told.host_phases
        has_walls = told.walls is not None and bool(len(told.walls.row))
        if len(told.host_submits) or len(told.uploads) or (phases is not None and len(phases)) or has_walls:
            parent = self.group("Host", "host")
            if phases is not None:
                self._host_thread_tracks(parent, phases, host)
            self._add("host", parent, "host_thread", numbered(told.host_submits, "Host"), nesting="nested", **host)
            if told.parts.placed_log is not None and len(told.parts.placed_log.messages):
                self._add("log", parent, "host_log", [(0, "Log")], **host)
            if has_walls:  # what the host knows of the device: around all that the device recorded itself
                self._add("wall", parent, "host_thread", [(0, "Device")], nesting="free")
            if len(told.uploads):
                self._add("upload", parent, "queue", [(0, "H2D")], nesting="free", **host)
        if told.submits.groups:
            parent = self.group("Orchestrator", "orchestrator")
            self._add("orchestrator", parent, "orchestrator", numbered(told.submits, "Orch"), nesting="nested")
        self._scheduler_tracks()
        if told.stages.lanes:
            parent = self.group("AICPU Lifecycle", "lifecycle")
            self._add("lifecycle", parent, "lifecycle", enumerate(told.stages.lanes), nesting="nested")
        seen = set(distinct(told.runs.core).tolist()) | set(told.orphans["core_id"].tolist())
        types = dict(enumerate(told.core_types.tolist()))
        self.core_names = {
            core: f"{(graphs.CORE_TYPES[types.get(core, graphs.UNKNOWN)] or 'core').upper()}_{core}"
            for core in sorted(seen | set(types))
        }
        cores = list(self.core_names.items())
        if self.style.is_full and (told.runs.dispatch > 0).any():
            self._add("flight", self.group("Scheduler View", "flight"), "flight", cores, nesting="free")
        self._workers = -1
        if cores:
            self._add("core", self.workers, "core", cores)
        self.lanes.setdefault("core", {})

    def _host_thread_tracks(self, parent: int, phases: HostPhases, given: Mapping[str, Any]) -> None:
        for process, thread in _pairs(phases.process, phases.thread)[0]:
            self._host_threads[process, thread] = self.builder.track(
                f"Thread {thread}" if thread == process else f"Thread {thread} of {process}",
                kind="lane",
                role="host_thread",
                parent=parent,
                input_id=self.input_of.get("host_phases", self.input_of.get("log", self.main)),
                nesting="nested",
                **given,
            )

    def host_thread_lanes(self, process: Int64, thread: Int64) -> Int64:
        """Return the lanes of threads of the host, int64 [n]."""
        pairs, which = _pairs(process, thread)
        return np.array([self._host_threads[pair] for pair in pairs], np.int64)[which]

    def _scheduler_tracks(self) -> None:
        told = self.told
        has_graph = self.style.has_overhead and told.deps is not None
        curves = overhead(told.runs, told.graph) if has_graph else {}
        if not told.phases.groups and not curves:
            return
        parent = self.group("Scheduler", "scheduler")
        orchestrators = set(told.threads_without_cores.tolist())
        lanes = [(index, name) for index, name in numbered(told.phases, "Sched") if index not in orchestrators]
        self._add("scheduler", parent, "scheduler", lanes, nesting="nested")
        if len(told.phases) and self.style.is_full:
            self.queues = [self.counter(parent, f"shared_ready_queue {queue}", "tasks") for queue in QUEUES]
        for name, (at, value) in curves.items():
            self.overhead.append((self.counter(parent, name, COUNTERS[name]), at, value))

    @property
    def workers(self) -> int:
        """The group of the cores and of the lanes next to them."""
        if self._workers < 0:
            self._workers = self.group("Worker View", "worker")
        return self._workers

    def group(self, name: str, role: str, parent: int | None = None) -> int:
        """Add a group, below the device without a parent, and return its track."""
        parent = self._root if parent is None else parent
        return self.builder.track(name, kind="group", role=role, parent=parent, input_id=self.main)

    def counter(self, parent: int, name: str, unit: str, role: str = "queue") -> int:
        """Add a counter on the clock of the device and return its track."""
        return self.builder.track(
            name, kind="counter", role=role, parent=parent, input_id=self.main, unit=unit, clock_id=self.clock
        )

    def _add(self, key: str, parent: int, role: str, names: Iterable[tuple[int, str]], **more: Any) -> None:
        given = {"clock_id": self.clock, **more}
        self.lanes[key] = {
            index: self.builder.track(
                name, kind="lane", role=role, parent=parent, input_id=self.main, sort_key=index, **given
            )
            for index, name in names
        }

    def side_lanes(self, name: str, role: str, indices: Int64, clock: int | None) -> Int64:
        """Add lanes behind the cores, one for each distinct index, and return the lane of each, int64 [n]."""
        used = distinct(indices).tolist()
        made = {
            index: self.builder.track(
                f"{name}_{index}",
                kind="lane",
                role=role,
                parent=self.workers,
                input_id=self.main,
                nesting="free",
                clock_id=clock,
            )
            for index in used
        }
        return table(made)[indices]

    def lane(self, key: str) -> Int64:
        """Return the lanes of a role by index, int64, -1 where there is none."""
        return table(self.lanes.get(key, {}))

    def account_lines(self, part: str, tally: Tally, size: int) -> None:
        """Add the accounting of a file of lines by its role; what neither was read nor is invalid is padding."""
        input_id, lost = self.input_of[part], tally.bad_bytes
        padding = size - tally.good_bytes - lost
        self.builder.add_bytes(decoded=tally.good_bytes, padding=padding, lost=lost, input_id=input_id)
        self.builder.add_stat("ascend_invalid_row", tally.bad_count, input_id=input_id, first_offset=tally.bad_first)

    # --- slices --------------------------------------------------------------------------------------------------

    def slices(self, track: Array, begin: Int64, end: Int64, to_ts: ToTs, *, flags: Any = 0, **columns: Any) -> int:
        """Append slices from stamps and return the first id; an end of 0 is open, one before the begin negative."""
        count = len(begin)
        stop, valid = end, None
        flags = np.asarray(flags, np.uint32)
        if count and (int(end.min()) <= 0 or not (begin <= end).all()):
            is_open, is_negative = end == 0, (end != 0) & (end < begin)
            valid = some(~(is_open | is_negative))
            stop = end if valid is None else np.where(valid, end, begin)
        if valid is not None:
            flags = flags | np.where(is_open, np.uint32(Flag.UNFINISHED), np.uint32(0))
            flags = flags | np.where(is_negative, np.uint32(Flag.NEGATIVE_DURATION), np.uint32(0))
            columns |= {
                "last_known_ts": Column.derived(count, lambda: np.where(is_open, to_ts(begin), 0), valid=is_open)
            }
        ts = Column.derived(count, lambda: to_ts(begin))
        return self.builder.append(
            "slices",
            track_id=track,
            ts=ts,
            dur=Column.derived(count, lambda: to_ts(stop) - ts.values, valid=valid),
            ts_ticks=Column.array(begin),
            dur_ticks=Column.derived(count, lambda: stop - begin, valid=valid),
            flags=flags if flags.ndim else int(flags),
            **columns,
        )


def _pairs(first: Int64, second: Int64) -> tuple[list[tuple[int, int]], Int64]:
    """Return the distinct pairs of two columns, rising, and which of them each row has, int64 [n]."""
    key = pack_sort_key(first, second)
    if key is None:
        pairs = list(zip(first.tolist(), second.tolist(), strict=True))
        known = sorted(set(pairs))
        place = {pair: number for number, pair in enumerate(known)}
        return known, np.array([place[pair] for pair in pairs], np.int64)
    _, rows, which = np.unique(key, return_index=True, return_inverse=True)
    return list(zip(first[rows].tolist(), second[rows].tolist(), strict=True)), which.reshape(-1)


def numbered(rows: Section, name: str) -> list[tuple[int, str]]:
    """Return index and name of the lane of each inner list."""
    used = range(rows.groups) if rows.groups <= _MAX_EMPTY_LANES else distinct(rows.group).tolist()
    return [(index, f"{name}_{index}") for index in used]


def table(ids: Mapping[int, int]) -> Int64:
    """Return a dict of small numbers as an array, -1 where nothing is."""
    made = np.full(max(ids, default=-1) + 1, -1, np.int64)
    made[list(ids)] = list(ids.values())
    return made


def below_resolution(ticks: Int64) -> npt.NDArray[np.uint32]:
    """Return the flag of lengths that the clock does not resolve, uint32 [n]."""
    short = (ticks >= 0) & (ticks < _RESOLVED)
    return np.where(short, np.uint32(Flag.BELOW_RESOLUTION), np.uint32(0))


def chosen(mask: Mask) -> Int64 | slice:
    """Return the rows where a mask (bool [n]) holds: int64 [m], or a range of all rows, which copies nothing."""
    return slice(None) if mask.all() else np.flatnonzero(mask)


def counted(rows: Int64 | slice, length: int) -> int:
    """Return how many of so many rows were chosen."""
    return length if isinstance(rows, slice) else len(rows)


def ids_from(first: int, count: int) -> Column:
    """Return so many ids that follow one another, made when they are asked for."""
    return Column.derived(count, lambda: np.arange(first, first + count))


def some(mask: Mask) -> Mask | None:
    """Return a mask of what is known, None where everything is."""
    return None if mask.all() else mask
