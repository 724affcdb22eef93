"""The formats of Ascend captures as data: the lists inside the JSON files.

The collector writes JSON; each list in it holds rows (arrays of integers, by position) or objects (by key). A
``Layout`` says what the elements of one list look like: it directs the native scanner, and the encoder and the raw
tables follow from it. What the lists are made of on the device is in ``structs``.

Source: hw-native-sys/simpler at 83728d2 (v3), 063e1cd and 60742ff (v2), 6ebaf77 (v3c), 129e28e (v4, single
files), pull requests 856 to 1079 (v1);
``src/a2a3/platform/include/common/l2_swimlane_profiling.h``,
``src/common/platform/include/common/chip_swimlane_profiling.h``.
"""

from __future__ import annotations

from lanescope.declaration import frozen_class
from lanescope.errors import InternalError

#: Counter readings stay below this, so that differences of two fit 64 signed bits.
MAX_CYCLES = (1 << 62) - 1
MAX_U32 = (1 << 32) - 1
MAX_I32 = (1 << 31) - 1
#: Largest index of a core that is believed; chips have some hundred.
MAX_CORE = 65535

#: ``reg_task_id`` counts dispatches of a core modulo this: 31 bits, and the highest 16 ids are never given.
REG_TASK_IDS = 0x7FFFFFF0


@frozen_class
class JsonField:
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
        since: first format version that writes it, empty: all.
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


@frozen_class
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
        unused: keys of elements that writers have and nothing here needs.
    """

    name: str
    doc: str
    cells: tuple[JsonField, ...]
    is_object: bool = True
    depth: int = 1
    status: str = "documented"
    at: str = ""
    unused: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Raise ``InternalError`` if two cells have one name: one of them could not be read."""
        names = [cell.name for cell in self.cells]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise InternalError(f"list {self.name} declares a cell twice: {', '.join(repeated)}")

    @property
    def key(self) -> str:
        """Key of the list in the object that holds it."""
        return self.at or self.name

    def __getitem__(self, name: str) -> JsonField:
        """Return the cell ``name``; ``KeyError`` if there is none."""
        for cell in self.cells:
            if cell.name == name:
                return cell
        raise KeyError(f"{self.name}.{name}")

    def bit(self, name: str) -> int:
        """Return the bit of the cell in masks of what is present."""
        for place, cell in enumerate(self.cells):
            if cell.name == name:
                return 1 << place
        raise KeyError(f"{self.name}.{name}")


def _cycles(name: str, doc: str) -> JsonField:
    return JsonField(name, doc, unit="cycles", limit=MAX_CYCLES)


def _depths(name: str, doc: str, since: str = "") -> JsonField:
    return JsonField(name, doc, kind="integer", count=3, is_required=False, since=since)


def _optional(name: str, doc: str, *, kind: str = "number", limit: int = MAX_U32, since: str = "") -> JsonField:
    return JsonField(name, doc, kind=kind, limit=limit, is_required=False, since=since)


_CORE = JsonField("core_id", "index in `metadata.core_types`", limit=MAX_CORE)
_REG = JsonField("reg_task_id", "the core's dispatch counter; with the core it is the join key", limit=MAX_U32)
_TASK = "task id: ring (or space) in the upper bits, number in the lower 32"
_EPOCH = JsonField(
    "run_epoch", "which run of the file: counters restart in each", limit=MAX_CYCLES, is_required=False, since="v4"
)

AICORE = Layout(
    "aicore_tasks",
    "one dispatch as its core saw it",
    (
        _CORE,
        JsonField("task_token_raw", f"{_TASK}; identity, not a join key", kind="token"),
        _REG,
        _cycles("start_cycles", "the kernel begins"),
        _cycles("end_cycles", "the kernel has ended; v3: after the FIN register write, v3c: before it"),
        JsonField(
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
        JsonField("task_id", _TASK, kind="token"),
        _cycles("start_cycles", "begin"),
        _cycles("end_cycles", "end"),
        _optional("phase", "which step of the submit; v1 only", kind="text"),
        _EPOCH,
    ),
    depth=2,
)
HOST_SUBMITS = Layout(
    "host_orchestrator_phases",
    "one task submitted by an orchestrator on the host; the outer list is by thread",
    (
        _optional("submit_idx", "running number of the submit"),
        JsonField("task_id", _TASK, kind="token"),
        JsonField("start_host_ns", "begin, on the host's monotonic clock", unit="ns", limit=MAX_CYCLES, since="v3c"),
        JsonField("end_host_ns", "end", unit="ns", limit=MAX_CYCLES, since="v3c"),
    ),
    depth=2,
)
UPLOADS = Layout(
    "host_device_uploads",
    "one copy from the host to the device",
    (
        _optional("phase", "what was copied: graph_upload, sm_h2d, arena_h2d", kind="text", since="v3c"),
        JsonField("start_host_ns", "begin, on the host's monotonic clock", unit="ns", limit=MAX_CYCLES, since="v3c"),
        JsonField("end_host_ns", "end", unit="ns", limit=MAX_CYCLES, since="v3c"),
        JsonField("detail", "bytes copied", unit="bytes", limit=MAX_CYCLES, is_required=False, since="v3c"),
    ),
)
#: What a control processor does around a run whose cores schedule themselves: a name, and the stamps of begin and end.
STAGES = (
    ("handshake", "handshake_start_cycles", "handshake_complete_cycles"),
    ("configuration", "config_start_cycles", "topology_complete_cycles"),
    ("context_publish", "context_publish_start_cycles", "context_publish_complete_cycles"),
    ("bootstrap_wait", "bootstrap_wait_start_cycles", "bootstrap_complete_cycles"),
    ("register_release", "register_release_start_cycles", "register_release_end_cycles"),
    ("exit_signal", "exit_signal_start_cycles", "exit_signal_end_cycles"),
    ("exit_wait", "exit_wait_start_cycles", "exit_wait_end_cycles"),
)
#: The same of older writers, which have one element a core. What they stamp once begins and ends with that stamp.
CORE_STAGES = (
    ("handshake", "handshake_observed_cycles", "handshake_partition_complete_cycles"),
    ("configuration", "config_start_cycles", "topology_complete_cycles"),
    ("context_publish", "context_publish_complete_cycles", "context_publish_complete_cycles"),
    ("bootstrap_wait", "bootstrap_wait_start_cycles", "bootstrap_complete_cycles"),
    ("register_release", "register_release_cycles", "register_release_cycles"),
    ("exit", "exit_signal_cycles", "exit_ack_cycles"),
)


def _stamp(name: str, doc: str) -> JsonField:
    return JsonField(name, doc, unit="cycles", limit=MAX_CYCLES, is_required=False, since="v4")


LIFECYCLE = Layout(
    "aicpu_lifecycle_records",
    "how a control processor starts and ends a run that cores schedule themselves; 0: it has no part in a stage",
    (
        JsonField("aicpu_thread_id", "thread of the control processor, from 0 on", limit=MAX_CORE, since="v4"),
        *(
            _stamp(stamp, f"{name.replace('_', ' ')} {word}")
            for name, begin, end in STAGES
            for stamp, word in ((begin, "begins"), (end, "has ended"))
        ),
        _optional("worker_id", "the core that the element is of; older writers only", limit=MAX_CORE, since="v4"),
        _stamp("handshake_observed_cycles", "the thread saw that the core was there; older writers only"),
        _stamp("handshake_partition_complete_cycles", "it had seen all of its cores; older writers only"),
        _stamp("register_release_cycles", "it lets the core begin; older writers only"),
        _stamp("exit_signal_cycles", "it tells the core to end; older writers only"),
        _stamp("exit_ack_cycles", "it saw that the core had ended; older writers only"),
    ),
    status="published",
    unused=frozenset(("core_type", "physical_core_id")),
)
#: The lists of a records file, in the order in which they are written. Readers of all format versions arrive at these.
RECORDS = (AICORE, AICPU, PHASES, SUBMITS, HOST_SUBMITS, UPLOADS, LIFECYCLE)


def _micros(name: str, doc: str, *, is_required: bool = True) -> JsonField:
    return JsonField(name, doc, kind="micros", unit="ns", limit=MAX_CYCLES >> 1, is_required=is_required)


#: v1: one object an execution, joined by the collector, in microseconds since the smallest stamp.
V1_TASKS = Layout(
    "v1_tasks",
    "one execution, both streams already joined",
    (
        JsonField("task_id", _TASK, kind="token"),
        JsonField("func_id", "always -1", kind="integer", is_required=False),
        _CORE,
        JsonField("core_type", "aic or aiv", kind="text", is_required=False),
        _optional("ring_id", "upper bits of the task id"),
        _micros("start_time_us", "the kernel begins"),
        _micros("end_time_us", "the kernel has ended"),
        _micros("duration_us", "the difference of both", is_required=False),
        _micros("dispatch_time_us", "the scheduler dispatched it; 0 at level 1", is_required=False),
        _micros("finish_time_us", "the scheduler observed the end; 0 at level 1", is_required=False),
        JsonField(
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
        JsonField("task_id", _TASK, kind="token"),
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
        JsonField("record_index", "place of the record in its stream"),
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
        JsonField("task_id", _TASK, kind="token"),
        _optional("early_dispatch", "its consumers may be staged before it ends", kind="boolean", since="v3c"),
        JsonField("kernel_ids", "functions of the slots AIC, AIV0, AIV1; -1: slot not used", kind="integer", count=3),
        _optional("block_num", "blocks that it runs as; absent: 1"),
    ),
    unused=frozenset(("scope", "args")),
)
WAIT, RETAIN = 1, 2
DEPS_EDGES = Layout(
    "edges",
    "one reason why a task needs another; several may join the same pair",
    (
        JsonField("pred", "the producer's task id", kind="token"),
        JsonField("succ", "the consumer's task id", kind="token"),
        JsonField(
            "source",
            "why: explicit, creator (of a tensor that the consumer uses), tensormap (regions that overlap)",
            kind="text",
            is_required=False,
        ),
        JsonField(
            "flags",
            "`wait`: the consumer must not run before it; `retain`: memory stays alive; absent: `wait`",
            kind="words",
            is_required=False,
            words=("wait", "retain"),
        ),
    ),
    unused=frozenset(
        (
            *("arg", "overlap", "tensor_id", "consumer_dtype"),
            *(f"{side}_{what}" for side in ("consumer", "producer") for what in ("shape", "start_offset", "strides")),
        )
    ),
)
DEPS = (DEPS_TASKS, DEPS_EDGES)
#: All lists that the scanner reads.
LISTS = (*RECORDS, *V1, *V4, *DEPS)

#: Source of the edges from the task that created a tensor.
CREATOR = "creator"

#: The phase that makes the nodes of a task that is a graph; it names the task.
GRAPH_KIND = "graph_prepare"
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


@frozen_class
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

#: Bytes of a record on the device, by the list that it becomes.
RECORD_BYTES = {AICORE.name: 32, AICPU.name: 32, PHASES.name: 64, SUBMITS.name: 32, HOST_SUBMITS.name: 40}
