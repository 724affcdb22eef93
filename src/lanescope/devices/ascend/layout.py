"""The formats of Ascend captures as data: the lists inside the JSON files, and the device records behind them.

The collector writes JSON; each list in it holds rows (arrays of integers, by position) or objects (by key). A
``Layout`` says what the elements of one list look like: it directs the native scanner, and the encoder and the raw
tables follow from it. The binary records that the cores and control processors store, their buffers and the memory that
holds them are declared as ``Struct``: they are what the JSON is made of, and ``binary`` reads dumps of them.

Source: hw-native-sys/simpler at 83728d2 (generation v3), 063e1cd and 60742ff (v2), 6ebaf77 (v3c), 129e28e (v4, single
files), pull requests 856 to 1079 (v1);
``src/a2a3/platform/include/common/l2_swimlane_profiling.h``,
``src/common/platform/include/common/chip_swimlane_profiling.h``.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanescope.wire import Member, Struct

#: Counter readings stay below this, so that differences of two fit 64 signed bits.
MAX_CYCLES = (1 << 62) - 1
MAX_U32 = (1 << 32) - 1
MAX_I32 = (1 << 31) - 1
#: Largest index of a core that is believed; chips have some hundred.
MAX_CORE = 65535

#: ``reg_task_id`` counts dispatches of a core modulo this: 31 bits, and the highest 16 ids are never given.
REG_TASK_IDS = 0x7FFFFFF0

KINDS_OF_CELL = ("number", "integer", "token", "boolean", "text", "words", "micros", "span")


@dataclass(frozen=True, slots=True)
class Cell:
    """One number (or text) of an element.

    Attributes:
        name: its key in an object; our name for its position in a row.
        doc: one line, what a value means.
        kind: ``number`` (0 to ``limit``), ``integer`` (-limit to ``limit``), ``token`` (a 64-bit id, as a number or as
            a text of digits), ``boolean``, ``text``, ``words`` (a list of texts, as bits of ``words``), ``micros``
            (microseconds with at most three decimals, kept as nanoseconds, 0 to ``limit``), ``span`` (anything; where
            it begins and ends in the file).
        unit: ``cycles``, ``ns``, ``bytes`` or empty.
        limit: largest value that is believed; an element with a larger one is reported as not understood.
        count: length of a list of numbers; 1 is a plain number.
        is_required: False: the element is complete without it.
        words: the texts that are told apart.
        since: first generation that writes it, empty: all.
    """

    name: str
    doc: str
    kind: str = "number"
    unit: str = ""
    limit: int = MAX_I32
    count: int = 1
    is_required: bool = True
    words: tuple[str, ...] = ()
    since: str = ""

    def __post_init__(self) -> None:
        """Refuse a kind that the scanner would not know."""
        if self.kind not in KINDS_OF_CELL:
            raise ValueError(f"cell {self.name}: unknown kind {self.kind!r}")


@dataclass(frozen=True)
class Layout:
    """The elements of one list of a file.

    Attributes:
        name: what the list is called; unique.
        doc: one line, what an element is.
        cells: in order; of a row's cells the last ones may be missing.
        is_object: elements have keys; else they are rows of numbers.
        depth: 2 when the elements stand in lists by thread, 1 when there is one list.
        status: as in ``lanescope.wire``.
        at: key of the list in the object that holds it; empty: ``name``.
    """

    name: str
    doc: str
    cells: tuple[Cell, ...]
    is_object: bool = True
    depth: int = 1
    status: str = "documented"
    at: str = ""

    @property
    def key(self) -> str:
        """Key of the list in the object that holds it."""
        return self.at or self.name

    def __getitem__(self, name: str) -> Cell:
        """Return the cell ``name``; ``KeyError`` if there is none."""
        for cell in self.cells:
            if cell.name == name:
                return cell
        raise KeyError(f"{self.name}.{name}")

    def bit(self, name: str) -> int:
        """Return the bit of the cell in masks of what is present."""
        return 1 << self.cells.index(self[name])


def _cycles(name: str, doc: str) -> Cell:
    return Cell(name, doc, unit="cycles", limit=MAX_CYCLES)


def _depths(name: str, doc: str, since: str = "") -> Cell:
    return Cell(name, doc, kind="integer", count=3, is_required=False, since=since)


def _optional(name: str, doc: str, *, kind: str = "number", limit: int = MAX_U32, since: str = "") -> Cell:
    return Cell(name, doc, kind=kind, limit=limit, is_required=False, since=since)


_CORE = Cell("core_id", "index in `metadata.core_types`", limit=MAX_CORE)
_REG = Cell("reg_task_id", "the core's dispatch counter; with the core it is the join key", limit=MAX_U32)
_TASK = "task id: ring (or space) in the upper bits, number in the lower 32"
_EPOCH = Cell(
    "run_epoch", "which run of the file: counters restart in each", limit=MAX_U32, is_required=False, since="v4"
)

AICORE = Layout(
    "aicore_tasks",
    "one dispatch as its core saw it",
    (
        _CORE,
        Cell("task_token_raw", f"{_TASK}; identity, not a join key", kind="token"),
        _REG,
        _cycles("start_cycles", "the kernel begins"),
        _cycles("end_cycles", "the kernel has ended; v3: after the FIN register write, v3c: before it"),
        Cell(
            "receive_to_start_cycles",
            "from the receive stamp to the start",
            unit="cycles",
            limit=MAX_U32,
            is_required=False,
            since="v3",
        ),
        _EPOCH,
    ),
    is_object=False,
)
AICPU = Layout(
    "aicpu_tasks",
    "one dispatch as its scheduler saw it",
    (
        _CORE,
        _REG,
        _cycles("dispatch_cycles", "just before the register writes of its batch: a batch shares the stamp"),
        _cycles("finish_cycles", "the scheduler observed the end"),
        _EPOCH,
    ),
    is_object=False,
)
PHASES = Layout(
    "aicpu_scheduler_phases",
    "one piece of work of a scheduler thread; the outer list is by thread",
    (
        _optional("kind", "what was done", kind="text"),
        _cycles("start_cycles", "begin"),
        _cycles("end_cycles", "end"),
        _optional("loop_iter", "iteration of the thread's loop"),
        _optional("tasks_processed", "see the kinds; v3 `dummy_task`: low 32 bits of the task id"),
        _optional("pop_hit", "ready-queue pops that yielded a task since the last dispatch record"),
        _optional("pop_miss", "pops that did not"),
        _optional("task_id", f"{_TASK}; markers only", kind="token", since="v3c"),
        _depths("local_at_start", "tasks in the thread's own ready buffers: AIC, AIV, MIX; not after v3"),
        _depths("shared_at_start", "tasks in the shared ready queues: AIC, AIV, MIX"),
        _depths("local_at_end", "the same at the end; not after v3"),
        _depths("shared_at_end", "the same at the end; v3 `complete`: a copy of the start"),
        _EPOCH,
    ),
    depth=2,
)
SUBMITS = Layout(
    "aicpu_orchestrator_phases",
    "one task submitted by the orchestrator; the outer list is by orchestrator",
    (
        _optional("submit_idx", "running number of the submit"),
        Cell("task_id", _TASK, kind="token"),
        _cycles("start_cycles", "begin"),
        _cycles("end_cycles", "end"),
        _optional("phase", "which step of the submit; v1 only", kind="text"),
    ),
    depth=2,
)
HOST_SUBMITS = Layout(
    "host_orchestrator_phases",
    "one task submitted by an orchestrator on the host; the outer list is by thread",
    (
        _optional("submit_idx", "running number of the submit"),
        Cell("task_id", _TASK, kind="token"),
        Cell("start_host_ns", "begin, on the host's monotonic clock", unit="ns", limit=MAX_CYCLES, since="v3c"),
        Cell("end_host_ns", "end", unit="ns", limit=MAX_CYCLES, since="v3c"),
    ),
    depth=2,
)
UPLOADS = Layout(
    "host_device_uploads",
    "one copy from the host to the device",
    (
        _optional("phase", "what was copied: graph_upload, sm_h2d, arena_h2d", kind="text", since="v3c"),
        Cell("start_host_ns", "begin, on the host's monotonic clock", unit="ns", limit=MAX_CYCLES, since="v3c"),
        Cell("end_host_ns", "end", unit="ns", limit=MAX_CYCLES, since="v3c"),
        Cell("detail", "bytes copied", unit="bytes", limit=MAX_CYCLES, is_required=False, since="v3c"),
    ),
)
#: The lists of a records file, in the order in which they are written. Readers of all generations arrive at these.
RECORDS = (AICORE, AICPU, PHASES, SUBMITS, HOST_SUBMITS, UPLOADS)


def _micros(name: str, doc: str, *, is_required: bool = True) -> Cell:
    return Cell(name, doc, kind="micros", unit="ns", limit=MAX_CYCLES >> 1, is_required=is_required)


#: v1: one object an execution, joined by the collector, in microseconds since the smallest stamp.
V1_TASKS = Layout(
    "v1_tasks",
    "one execution, both streams already joined",
    (
        Cell("task_id", _TASK, kind="token"),
        Cell("func_id", "always -1", kind="integer", is_required=False),
        _CORE,
        Cell("core_type", "aic or aiv", kind="text", is_required=False),
        _optional("ring_id", "upper bits of the task id"),
        _micros("start_time_us", "the kernel begins"),
        _micros("end_time_us", "the kernel has ended"),
        _micros("duration_us", "the difference of both", is_required=False),
        _micros("dispatch_time_us", "the scheduler dispatched it; 0 at level 1", is_required=False),
        _micros("finish_time_us", "the scheduler observed the end; 0 at level 1", is_required=False),
        Cell(
            "fanout",
            "ids of its consumers; only in the first weeks",
            kind="span",
            count=2,
            limit=MAX_CYCLES,
            is_required=False,
        ),
    ),
    status="published",
    at="tasks",
)
V1_PHASES = Layout(
    "v1_scheduler_phases",
    "one piece of work of a scheduler thread; the outer list is by thread",
    (
        _micros("start_time_us", "begin"),
        _micros("end_time_us", "end"),
        _optional("phase", "what was done", kind="text"),
        _optional("loop_iter", "iteration of the thread's loop"),
        _optional("tasks_processed", "see the kinds"),
        _optional("pop_hit", "ready-queue pops that yielded a task since the last dispatch record"),
        _optional("pop_miss", "pops that did not"),
    ),
    depth=2,
    status="published",
    at=PHASES.name,
)
V1_SUBMITS = Layout(
    "v1_orchestrator_phases",
    "one step of a submit; the outer list is by orchestrator",
    (
        _optional("phase", "orch_submit; before the steps were joined: orch_sync, orch_alloc, ...", kind="text"),
        _optional("submit_idx", "running number of the submit"),
        Cell("task_id", _TASK, kind="token"),
        _micros("start_time_us", "begin"),
        _micros("end_time_us", "end"),
    ),
    depth=2,
    status="published",
    at=SUBMITS.name,
)
V1 = (V1_TASKS, V1_PHASES, V1_SUBMITS)

#: v4: the scheduler's rows inside of `scheduler_tasks`, the phases of each stream inside of `scheduler_records`.
V4_AICPU = Layout("v4_scheduler_tasks", AICPU.doc, AICPU.cells, is_object=False, status="published", at="records")
V4_PHASES = Layout(
    "v4_scheduler_records",
    "one piece of work of a scheduler; the stream says of which",
    (
        _cycles("start_cycles", "begin"),
        _cycles("end_cycles", "end"),
        _EPOCH,
        _optional("loop_iter", "iteration of the scheduler's loop"),
        _optional("kind", "what was done", kind="text"),
        _optional("tasks_processed", "see the kinds"),
        _optional("task_id", f"{_TASK}; markers only", kind="token"),
    ),
    status="published",
    at="records",
)
V4_METRICS = Layout(
    "v4_scheduler_metrics",
    "what a phase counted besides; by the place of its record in the stream",
    (
        Cell("record_index", "place of the record in its stream"),
        _optional("pop_hit", "ready-queue pops that yielded a task since the last dispatch record"),
        _optional("pop_miss", "pops that did not"),
        _depths("shared_at_start", "tasks in the shared ready queues: AIC, AIV, MIX"),
        _depths("shared_at_end", "the same at the end"),
    ),
    status="published",
    at="metrics",
)
V4 = (V4_AICPU, V4_PHASES, V4_METRICS)
#: Streams of schedulers that are believed; a chip has a handful.
MAX_STREAMS = 4096

DEPS_TASKS = Layout(
    "tasks",
    "one task of the graph",
    (
        Cell("task_id", _TASK, kind="token"),
        _optional("early_dispatch", "its consumers may be staged before it ends", kind="boolean", since="v3c"),
        Cell("kernel_ids", "functions of the slots AIC, AIV0, AIV1; -1: slot not used", kind="integer", count=3),
        _optional("block_num", "blocks that it runs as; absent: 1"),
    ),
)
WAIT, RETAIN = 1, 2
DEPS_EDGES = Layout(
    "edges",
    "one reason why a task needs another; several may join the same pair",
    (
        Cell("pred", "the producer's task id", kind="token"),
        Cell("succ", "the consumer's task id", kind="token"),
        Cell(
            "flags",
            "`wait`: the consumer must not run before it; `retain`: memory stays alive; absent: `wait`",
            kind="words",
            is_required=False,
            words=("wait", "retain"),
        ),
    ),
)
DEPS = (DEPS_TASKS, DEPS_EDGES)
#: All lists that the scanner reads.
LISTS = (*RECORDS, *V1, *V4, *DEPS)

#: Engines of a task: the order of queue depths; ``kernel_ids`` has AIC and two slots AIV.
QUEUES = ("AIC", "AIV", "MIX")

#: Keys that hold the level, newest first, and the name of the records file of their time.
LEVEL_KEYS = {
    "chip_swimlane_level": "chip_swimlane_records.json",
    "l2_swimlane_level": "l2_swimlane_records.json",
    "l2_perf_level": "l2_perf_records.json",
    "version": "l2_perf_records.json",
}
LEVELS = {1: "core timing", 2: "and dispatch timing", 3: "and scheduler phases", 4: "and submits"}


@dataclass(frozen=True, slots=True)
class PhaseKind:
    """A kind of scheduler phase.

    Attributes:
        role: ``outer`` (phases of a thread never overlap), ``inner`` (inside an outer one, written before it),
            ``marker`` (no width).
        has_depths: whether its queue depths were sampled; they are zero else.
        doc: what it is, and what its ``tasks_processed`` counts.
    """

    role: str
    doc: str
    has_depths: bool = False


#: The text in the file is what counts; unknown ones are kept and counted.
PHASE_KINDS = {
    "complete": PhaseKind("outer", "retires finished subtasks; counts them", has_depths=True),
    "dispatch": PhaseKind("outer", "publishes subtasks to cores; counts them, carries the pops", has_depths=True),
    "release": PhaseKind("outer", "gives back slots; v3: only without progress, counts nothing"),
    "resolve": PhaseKind("inner", "visits consumers; counts them; shorter than 1 us it is not written"),
    "early_dispatch": PhaseKind("outer", "stages tasks before their producers end; counts blocks"),
    "dummy_task": PhaseKind("marker", "a task without a kernel passes"),
    "dummy": PhaseKind("outer", "one pass over tasks without a kernel; counts them", has_depths=True),
    "wire": PhaseKind("outer", "wires tasks; counts them"),
    "drain": PhaseKind("outer", "drains a queue; counts blocks"),
    "drain_prepare": PhaseKind("inner", "first half of a drain"),
    "drain_publish": PhaseKind("inner", "second half of a drain; counts subtasks"),
    "async_poll": PhaseKind("outer", "polls asynchronous work; counts completions", has_depths=True),
    "predicated_skip": PhaseKind("marker", "a task is skipped because its predicate is false"),
    "graph_prepare": PhaseKind("outer", "patches the nodes of a graph; counts them"),
    "idle": PhaseKind("outer", "waits"),
    "scan": PhaseKind("outer", "scans cores"),
    "poll": PhaseKind("outer", "polls cores"),
    "fanout": PhaseKind("inner", "older name of resolve"),
    "prestage": PhaseKind("outer", "older name of early_dispatch"),
    "bootstrap": PhaseKind("outer", "starts the scheduler"),
    "state_probe": PhaseKind("outer", "looks at cores"),
    "worksteal": PhaseKind("outer", "takes tasks from another scheduler"),
    "refill": PhaseKind("outer", "refills its queue"),
    "resolve_standalone": PhaseKind("outer", "resolves outside of complete"),
    "ready_claim": PhaseKind("outer", "claims ready tasks"),
    "ready_steal": PhaseKind("outer", "steals ready tasks"),
    "direct_refill": PhaseKind("outer", "refills without the queue"),
    "unknown": PhaseKind("outer", "the writer had no name for it"),
}
#: Phases that stage tasks before their producers end, under the names of all times.
EARLY_KINDS = ("early_dispatch", "prestage")

# --- device records ---------------------------------------------------------------------------------------------------

_V3_SOURCE = "simpler 83728d2, l2_swimlane_profiling.h; sizes and offsets checked by compiling"
_V3C_SOURCE = "simpler 6ebaf77, chip_swimlane_profiling.h; sizes and offsets checked by compiling"
KIND_NUMBERS_V3 = dict(enumerate(("complete", "dispatch", "release", "resolve", "early_dispatch", "dummy_task")))
KIND_NUMBERS_V3C = dict(
    enumerate(
        (
            *("complete", "dispatch", "release", "wire", "dummy", "early_dispatch", "resolve", "dummy_task", "drain"),
            *("drain_prepare", "drain_publish", "async_poll", "predicated_skip", "graph_prepare"),
        )
    )
)

AICORE_RECORD = Struct(
    "ascend.aicore_task",
    size=32,
    doc="Written by the core itself, once a dispatch, two to a cache line.",
    source=_V3_SOURCE,
    members=(
        Member("start_time", 0, "u64", unit="cycles"),
        Member("end_time", 8, "u64", unit="cycles"),
        Member("task_token_raw", 16, "u64", "Task id."),
        Member("reg_task_id", 24, "u32", "The core's dispatch counter."),
        Member("receive_to_start_cycles", 28, "u32", "v2: padding.", unit="cycles"),
    ),
)
AICPU_RECORD = Struct(
    "ascend.aicpu_task",
    size=32,
    doc="Written by the scheduler, once a dispatch.",
    source=_V3_SOURCE,
    members=(
        Member("dispatch_time", 0, "u64", unit="cycles"),
        Member("finish_time", 8, "u64", unit="cycles"),
        Member("reg_task_id", 16, "u32"),
        Member("padding", 20, "u8", count=12, default=0),
    ),
)


def _phase_head(kinds: dict[int, str]) -> tuple[Member, ...]:
    return (
        Member("start_time", 0, "u64", unit="cycles"),
        Member("end_time", 8, "u64", unit="cycles"),
        Member("loop_iter", 16, "u32"),
        Member("kind", 20, "u32", values=kinds),
        Member("tasks_processed", 24, "u32"),
    )


PHASE_RECORD_V3 = Struct(
    "ascend.sched_phase_v3",
    size=64,
    doc="One scheduler phase; the thread is that of the buffer.",
    source=_V3_SOURCE,
    members=(
        *_phase_head(KIND_NUMBERS_V3),
        Member("pop_hit", 28, "u32"),
        Member("pop_miss", 32, "u32"),
        Member("local_depth_at_start", 36, "i16", "AIC, AIV, MIX.", count=3),
        Member("local_depth_at_end", 42, "i16", count=3),
        Member("shared_depth_at_start", 48, "i16", count=3),
        Member("shared_depth_at_end", 54, "i16", count=3),
        Member("padding", 60, "u8", count=4, default=0),
    ),
)
PHASE_RECORD_V3C = Struct(
    "ascend.sched_phase_v3c",
    size=64,
    doc="One scheduler phase; the thread is that of the buffer.",
    source=_V3C_SOURCE,
    members=(
        *_phase_head(KIND_NUMBERS_V3C),
        Member("pop_hit_or_local_id", 28, "u32", "dispatch: pops that hit; markers: low half of the task id."),
        Member("pop_miss_or_ring_id", 32, "u32", "dispatch: pops that missed; markers: high half of the task id."),
        Member("shared_depth_at_start", 36, "i16", "AIC, AIV, MIX.", count=3),
        Member("shared_depth_at_end", 42, "i16", count=3),
        Member("padding", 48, "u8", count=16, default=0),
    ),
)
SUBMIT_RECORD = Struct(
    "ascend.orch_phase",
    size=32,
    doc="One submit of the orchestrator.",
    source=_V3_SOURCE,
    members=(
        Member("start_time", 0, "u64", unit="cycles"),
        Member("end_time", 8, "u64", unit="cycles"),
        Member("task_id", 16, "u64"),
        Member("submit_idx", 24, "u32"),
        Member("padding", 28, "u8", count=4, default=0),
    ),
)
_HOST_KINDS = (
    *("args", "arena_build", "static_arena", "gm_heap", "shared_mem", "runtime_init", "host_orch", "graph_upload"),
    *("relocate", "sm_h2d", "arena_h2d", "host_view_close", "submit_task", "alloc_tensors", "record_node"),
    *("graph_submit", "build_definition"),
)
HOST_RECORD = Struct(
    "ascend.host_phase",
    size=40,
    doc="One phase of a host that orchestrates.",
    source=_V3C_SOURCE,
    members=(
        Member("start_ns", 0, "u64", unit="ns"),
        Member("end_ns", 8, "u64", unit="ns"),
        Member("payload", 16, "u64", "submit_task, alloc_tensors, graph_submit: task id; uploads: bytes."),
        Member("kind", 24, "u32", values=dict(enumerate(_HOST_KINDS))),
        Member("index", 28, "u32"),
        Member("thread_id", 32, "u32"),
        Member("padding", 36, "u8", count=4, default=0),
    ),
)
QUEUE_ENTRY = Struct(
    "ascend.ready_entry",
    size=32,
    doc="A full buffer, handed to the host.",
    source=_V3_SOURCE,
    members=(
        Member("core_index", 0, "u32", "Core, or number of the thread's pool."),
        Member("kind", 4, "u32", values={0: "aicpu_task", 1: "sched_phase", 2: "orch_phase", 3: "aicore_task"}),
        Member("buffer_ptr", 8, "u64"),
        Member("buffer_seq", 16, "u32"),
        Member("padding", 20, "u8", count=12, default=0),
    ),
)
POOL = Struct(
    "ascend.pool",
    size=192,
    doc="The buffers of one stream of one core or thread.",
    source=_V3_SOURCE,
    members=(
        Member("current_buf_ptr", 0, "u64"),
        Member("current_buf_seq", 8, "u32"),
        Member("total_record_count", 12, "u32", "Every attempt to write a record; AICore: every dispatch."),
        Member("dropped_record_count", 16, "u32", "Attempts that found no buffer."),
        Member("head_padding", 20, "u8", count=44, default=0),
        Member("free_ptrs", 64, "u64", count=4),
        Member("free_head", 96, "u32"),
        Member("free_tail", 100, "u32"),
        Member("padding", 104, "u8", count=88, default=0),
    ),
)
#: Streams of records on the device, by the kind of their ready entries.
STREAMS = ("aicpu_task", "sched_phase", "orch_phase", "aicore_task")


def _buffer(name: str, record: Struct, count: int) -> Struct:
    end = record.size * count
    size = -(-(end + 4) // 64) * 64
    return Struct(
        f"ascend.{name}_buffer",
        size=size,
        doc="What a producer fills before it hands it over; the whole struct is aligned to 64 bytes.",
        source=record.source,
        members=(
            Member("records", 0, record, count=count),
            Member("count", end, "u32", "Records that are valid; AICore at level 1: all, empty ones have no start."),
            Member("padding", end + 4, "u8", count=size - end - 4, default=0),
        ),
    )


AICPU_BUFFER = _buffer("aicpu_task", AICPU_RECORD, 1000)
AICORE_BUFFER = _buffer("aicore_task", AICORE_RECORD, 1024)
PHASE_BUFFER_V3 = _buffer("sched_phase_v3", PHASE_RECORD_V3, 16384)
PHASE_BUFFER_V3C = _buffer("sched_phase_v3c", PHASE_RECORD_V3C, 16384)
SUBMIT_BUFFER = _buffer("orch_phase", SUBMIT_RECORD, 16384)


@dataclass(frozen=True, slots=True)
class Region:
    """The memory that a chip shares with its host: a header, and the pools behind it.

    Attributes:
        platform: the chip.
        generation: v3 or v3c.
        threads, cores, entries: how many the header has room for: scheduler threads, cores, ready entries a thread.
        header: its struct.
        frequency: of the chip's counter, Hz.
    """

    platform: str
    generation: str
    threads: int
    cores: int
    entries: int
    header: Struct
    frequency: int

    @property
    def pools(self) -> tuple[tuple[str, int], ...]:
        """Stream and core (or thread) of each pool, in order."""
        counts = {"aicpu_task": self.cores, "aicore_task": self.cores, "sched_phase": self.threads}
        counts["orch_phase"] = self.threads
        return tuple((stream, index) for stream, count in counts.items() for index in range(count))

    @property
    def size(self) -> int:
        """Bytes of header and pools."""
        return self.header.size + len(self.pools) * POOL.size


def _region(platform: str, generation: str, threads: int, cores: int, entries: int, frequency: int) -> Region:
    at = threads * entries * QUEUE_ENTRY.size
    members = [
        Member("queues", 0, QUEUE_ENTRY, "Ready entries, by thread.", count=threads * entries),
        Member("queue_heads", at, "u32", "Next entry that the host takes, by thread.", count=threads),
        Member("queue_tails", at + 4 * threads, "u32", "Next free entry, by thread.", count=threads),
    ]
    at += 8 * threads
    for name in ("num_cores", "level", "num_sched_phase_threads", "num_orch_phase_threads", "num_phase_cores"):
        members.append(Member(name, at, "u32"))
        at += 4
    members.append(Member("core_to_thread", at, "i8", "-1: not assigned.", count=cores))
    at += cores
    if generation == "v3c":
        for name in ("rq_freeze_active", "rq_contended", "fq_freeze_active", "fq_contended"):
            members.append(Member(name, at, "u32", "Back pressure."))
            at += 4
    size = -(-at // 64) * 64
    if size > at:
        members.append(Member("padding", at, "u8", count=size - at, default=0))
    header = Struct(
        f"ascend.header_{platform}_{generation}",
        size=size,
        doc="Begin of the shared memory; pools follow: AICPU tasks, AICore tasks, scheduler phases, orchestrator.",
        source=_V3_SOURCE if generation == "v3" else _V3C_SOURCE,
        members=tuple(members),
    )
    return Region(platform, generation, threads, cores, entries, header, frequency)


REGIONS = (
    _region("a2a3", "v3c", 4, 72, 992, 50_000_000),
    _region("a2a3", "v3", 4, 72, 992, 50_000_000),
    _region("a5", "v3c", 5, 108, 1456, 1_000_000_000),
    _region("a5", "v3", 7, 108, 1520, 1_000_000_000),
)

DEVICE_RECORDS = (
    *(AICORE_RECORD, AICPU_RECORD, PHASE_RECORD_V3, PHASE_RECORD_V3C, SUBMIT_RECORD, HOST_RECORD),
    *(AICORE_BUFFER, AICPU_BUFFER, PHASE_BUFFER_V3, PHASE_BUFFER_V3C, SUBMIT_BUFFER),
    *(QUEUE_ENTRY, POOL, *(region.header for region in REGIONS)),
)
#: Bytes of a record on the device, by the list that it becomes.
RECORD_BYTES = {AICORE.name: 32, AICPU.name: 32, PHASES.name: 64, SUBMITS.name: 32, HOST_SUBMITS.name: 40}
