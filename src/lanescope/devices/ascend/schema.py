"""Detail tables, raw tables and stats of the Ascend family."""

from __future__ import annotations

from lanescope.devices.ascend.formats.layout import QUEUES, JsonField, Layout
from lanescope.trace.schema import ColumnSpec, TableSpec
from lanescope.trace.stats import StatSpec


def _span(name: str, doc: str, *, is_argument: bool = False) -> tuple[ColumnSpec, ColumnSpec]:
    return (
        ColumnSpec(f"{name}_ns", "int64", doc, nullable=True, unit="ns", is_argument=is_argument),
        ColumnSpec(f"{name}_ticks", "int64", f"the same on the device's counter: {doc}", nullable=True, unit="ticks"),
    )


def _total(name: str, doc: str) -> tuple[ColumnSpec, ColumnSpec]:
    return (
        ColumnSpec(f"{name}_ns", "int64", doc, unit="ns"),
        ColumnSpec(f"{name}_ticks", "int64", f"the same on the device's counter: {doc}", unit="ticks"),
    )


def _stamp(name: str, doc: str) -> tuple[ColumnSpec, ColumnSpec]:
    return (
        ColumnSpec(f"{name}_ts", "int64", doc, nullable=True, unit="ns", is_time=True),
        ColumnSpec(f"{name}_ticks", "int64", f"the same, as the device counts: {doc}", nullable=True, unit="ticks"),
    )


_TASK_ID = ColumnSpec("task_id", "uint64", "task id, 64 bits", is_argument=True)
_TASK = ColumnSpec("task", "utf8", "task id as people write it: t5, r2t5")

TASKS = TableSpec(
    "ascend_tasks",
    "one dispatch of a task (a block, a half of a MIX task) on a core; its slice is the execution",
    (
        ColumnSpec("slice_id", "int64", "the slice of the execution", references="slices"),
        _TASK_ID,
        _TASK,
        ColumnSpec("label", "utf8", "name and task, as in matmul(r2t5)"),
        ColumnSpec("function", "int64", "number of the function", nullable=True),
        ColumnSpec("core", "int32", "index of the core"),
        ColumnSpec("core_type", "text", "aic, aiv; empty: the capture does not say"),
        ColumnSpec("run_epoch", "int64", "run of the file; v4 only", nullable=True),
        ColumnSpec("rank", "int32", "rank of the process, from --rank or a folder rankN", nullable=True),
        ColumnSpec("reg_task_id", "uint32", "the core's dispatch counter; NULL in v1", nullable=True),
        ColumnSpec("block", "int32", "ordinal among the rows of its task on cores of this type, by start; concluded"),
        ColumnSpec("blocks", "int64", "blocks that the task runs as, from the task graph", nullable=True),
        *_stamp("dispatch", "just before the dispatch registers of its batch were written"),
        *_stamp("receive", "the core took it; v3c: before a wait for its producers, v3: after it"),
        *_stamp("finish", "the scheduler observed the end"),
        *_stamp("ready", "the last of its producers had ended; only those with rows count"),
        ColumnSpec(
            "ready_quality",
            "text",
            "exact: every producer that can hold it up has rows; estimated: barriers or lost producers may be later",
            nullable=True,
        ),
        *_span("duration", "execution: start to end", is_argument=True),
        *_span("propagation", "dispatch to receive; negative ones stand as measured", is_argument=True),
        *_span("local_setup", "receive to start, without the wait for producers", is_argument=True),
        *_span("gate_wait", "receive to ready of a task that was staged early; an estimate"),
        *_span("head", "dispatch to start"),
        *_span("tail", "end to finish; negative ones stand as measured"),
        ColumnSpec("effective_start_ts", "int64", "when it counts as begun for its producers", unit="ns", is_time=True),
        ColumnSpec(
            "effective_start_source", "text", "receive, or start where the receive stamp is missing or no proof"
        ),
        ColumnSpec("may_be_staged", "bool", "may have been staged before its producers ended; v3c only", nullable=True),
    ),
    key="slice_id",
)
PHASES = TableSpec(
    "ascend_phases",
    "one piece of work of a scheduler thread; its kind is the slice's name",
    (
        ColumnSpec("slice_id", "int64", "the slice", references="slices"),
        ColumnSpec("thread", "int32", "scheduler thread"),
        ColumnSpec("role", "text", "outer, inner, marker; empty: unknown kind"),
        ColumnSpec("loop_iter", "uint32", "iteration of the thread's loop", nullable=True),
        ColumnSpec(
            "tasks_processed",
            "uint32",
            "what was counted; its meaning depends on the kind",
            nullable=True,
            is_argument=True,
        ),
        ColumnSpec("pop_hit", "uint32", "pops that yielded a task since the last dispatch record", nullable=True),
        ColumnSpec("pop_miss", "uint32", "pops that did not", nullable=True),
        ColumnSpec("task_id", "uint64", "task id, markers only; v3 has its lower half alone", nullable=True),
        *(
            ColumnSpec(
                f"{where}_{when}_{queue.lower()}",
                "int32",
                f"tasks in the {'shared ready queue' if where == 'shared' else 'own ready buffer'}"
                f" for {queue} at the {when}",
                nullable=True,
            )
            for where in ("shared", "local")
            for when in ("start", "end")
            for queue in QUEUES
        ),
    ),
    key="slice_id",
)
SUBMITS = TableSpec(
    "ascend_submits",
    "one task submitted by an orchestrator",
    (
        ColumnSpec("slice_id", "int64", "the slice", references="slices"),
        ColumnSpec("orchestrator", "int32", "which of the orchestrators"),
        ColumnSpec("submit_idx", "uint32", "running number of the submit", nullable=True),
        _TASK_ID,
        _TASK,
    ),
    key="slice_id",
)
UPLOADS = TableSpec(
    "ascend_uploads",
    "one copy from host to device",
    (
        ColumnSpec("slice_id", "int64", "the slice", references="slices"),
        ColumnSpec("bytes", "int64", "bytes copied", nullable=True, unit="bytes", is_argument=True),
    ),
    key="slice_id",
)
FLIGHTS = TableSpec(
    "ascend_in_flight",
    "one dispatch as its scheduler saw it, from the dispatch to the moment it saw the end",
    (
        ColumnSpec("slice_id", "int64", "the slice", references="slices"),
        _TASK_ID,
        ColumnSpec("core", "int32", "index of the core"),
        ColumnSpec("reg_task_id", "uint32", "the core's dispatch counter; NULL in v1", nullable=True),
    ),
    key="slice_id",
)
BARE_TASKS = TableSpec(
    "ascend_coreless_tasks",
    "a task that ran on no core: a barrier, a skipped task, an allocation",
    (
        ColumnSpec("slice_id", "int64", "the slice", references="slices"),
        ColumnSpec("task_id", "uint64", "task id; NULL: the marker does not tell", nullable=True, is_argument=True),
        ColumnSpec("task", "utf8", "task id as people write it", nullable=True),
    ),
    key="slice_id",
)
EDGES = TableSpec(
    "ascend_edges",
    "a pair of tasks of which the second waits for the first, and how that was kept",
    (
        ColumnSpec(
            "flow_id", "int64", "the first of its flows; NULL: a task has no place", nullable=True, references="flows"
        ),
        ColumnSpec("pred_task_id", "uint64", "producer"),
        ColumnSpec("succ_task_id", "uint64", "consumer"),
        ColumnSpec("arrows", "int32", "how many flows it has"),
        ColumnSpec(
            "slack_ticks",
            "int64",
            "from the last end of the producer to the first effective start of the consumer; NULL: one has no rows",
            nullable=True,
            unit="ticks",
        ),
        ColumnSpec("is_violated", "bool", "the consumer began first; NULL: not judged", nullable=True),
        ColumnSpec("follows_clock_step", "bool", "violated, but only by rows of a core whose clock stepped"),
        ColumnSpec("violated_pairs", "int64", "pairs of executions, one of each task, that began too early"),
    ),
    key="flow_id",
)
_IDLE = {
    "dependency": "a producer had not ended",
    "submit": "producers had ended, the submit was not over",
    "dispatch": "ready, and not dispatched",
    "propagation": "dispatched, and not received",
    "setup": "received, and not started",
    "unknown": "nobody can tell: stamps are missing",
    "trailing_idle": "nothing came any more",
}
CORES = TableSpec(
    "ascend_cores",
    "where the time of a core went: busy and the seven idle parts add up to the window",
    (
        ColumnSpec("track_id", "int64", "its lane", references="tracks"),
        ColumnSpec("core", "int32", "index of the core"),
        ColumnSpec("core_type", "text", "aic, aiv; empty: the capture does not say"),
        ColumnSpec("executions", "int64", "executions"),
        *_total("window", "from the first start to the last end of all cores"),
        *_total("busy", "something ran"),
        *(column for name, doc in _IDLE.items() for column in _total(name, doc)),
        ColumnSpec("overlap_ticks", "int64", "what executions claim beyond busy: they share time", unit="ticks"),
        ColumnSpec(
            "lost_ticks",
            "int64",
            "of the idle parts, time in which executions are known to be missing: perhaps it was busy",
            unit="ticks",
        ),
    ),
    key="track_id",
)
THREADS = TableSpec(
    "ascend_threads",
    "where the time of a scheduler thread went, from its first record to its last",
    (
        ColumnSpec("track_id", "int64", "its lane", references="tracks"),
        ColumnSpec("thread", "int32", "scheduler thread"),
        ColumnSpec("records", "int64", "phases recorded"),
        *_total("window", "from its first record to the end of its last"),
        *_total("busy", "phases ran, whatever their kind"),
        *_total("idle", "between phases; a loop that does nothing records nothing"),
        ColumnSpec("pauses", "int64", "pauses between phases"),
        ColumnSpec("longest_pause_ns", "int64", "the longest of them", unit="ns"),
        ColumnSpec("iterations", "int64", "iterations of its loop, by the highest number", nullable=True),
        ColumnSpec("working_iterations", "int64", "iterations that recorded something", nullable=True),
        ColumnSpec(
            "mean_iteration_ns", "int64", "window by iterations: an iteration on average", nullable=True, unit="ns"
        ),
        ColumnSpec("pop_hit", "int64", "pops of ready queues that yielded a task"),
        ColumnSpec("pop_miss", "int64", "pops that did not"),
        ColumnSpec("dispatched", "int64", "subtasks published by dispatch"),
        ColumnSpec("completed", "int64", "finished subtasks seen by complete"),
        ColumnSpec(
            "resolved_at_least", "int64", "consumers visited; walks shorter than 1 us are not recorded by the device"
        ),
    ),
    key="track_id",
)
RUNS = TableSpec(
    "ascend_runs",
    "one records file: what it is and what it was put together with",
    (
        ColumnSpec("input_id", "int64", "the input", references="inputs"),
        ColumnSpec("format_version", "text", "v1a, v1b, v1c, v2, v3, v3c, v4"),
        ColumnSpec("errata", "utf8", "what holds in this generation and not in all, by name"),
        ColumnSpec("rank", "int32", "rank of the process, from --rank or a folder rankN", nullable=True),
        ColumnSpec("device", "int32", "device of the rank, from a folder dN", nullable=True),
        ColumnSpec("epochs", "int64", "runs in the file"),
        ColumnSpec("level_key", "text", "key of the level in the file"),
        ColumnSpec("level", "int32", "1 core timing, 2 and dispatch, 3 and scheduler phases, 4 and submits"),
        ColumnSpec("orchestrator", "utf8", "name of the orchestrator, from the name map", nullable=True),
        ColumnSpec("orchestrator_on_host", "bool", "submits were made by the host"),
        ColumnSpec("clocks", "utf8", "host and device: aligned, or why not; NULL without host records", nullable=True),
        ColumnSpec("base_ticks", "int64", "smallest stamp of the device", unit="ticks"),
        ColumnSpec("tasks", "int64", "tasks that the capture knows"),
        ColumnSpec(
            "edges", "int64", "pairs of tasks that wait for one another; NULL without a task graph", nullable=True
        ),
        ColumnSpec("edges_repeated", "int64", "further reasons of the same pairs", nullable=True),
        ColumnSpec("edges_to_self", "int64", "edges from a task to itself, ignored", nullable=True),
        ColumnSpec("edges_retain_only", "int64", "edges that keep memory alive and order nothing", nullable=True),
        ColumnSpec(
            "dependency_reference",
            "text",
            "instant at which edges were judged: receive, start, both; empty without executions",
        ),
        ColumnSpec("violated_edges", "int64", "edges whose consumer began before its producer ended", nullable=True),
        ColumnSpec("violated_tasks", "int64", "consumers of such edges", nullable=True),
        ColumnSpec("violated_pairs", "int64", "pairs of their executions", nullable=True),
        ColumnSpec(
            "violated_edges_by_clock",
            "int64",
            "of the edges, those that follow from a stepped clock",
            nullable=True,
        ),
        ColumnSpec("violated_tasks_by_clock", "int64", "of the consumers, those of such edges alone", nullable=True),
        ColumnSpec("clock_steps", "int64", "steps of the clocks of single cores"),
    ),
    key="input_id",
)
STREAMS = TableSpec(
    "ascend_record_streams",
    "what the producer of a stream of records tells about it, against what arrived: v4 and raw dumps",
    (
        ColumnSpec("input_id", "int64", "the input", references="inputs"),
        ColumnSpec("stream", "text", "aicore_task, aicpu_task, sched_phase, orch_phase"),
        ColumnSpec("index", "int32", "core or thread"),
        ColumnSpec("producer", "text", "processor that wrote it; empty: not told"),
        ColumnSpec("platform", "text", "chip; empty: not told"),
        ColumnSpec("attempted", "int64", "attempts to write a record", nullable=True),
        ColumnSpec("dropped", "int64", "attempts that the producer knows to have failed", nullable=True),
        ColumnSpec("collected", "int64", "records that arrived"),
        ColumnSpec(
            "unaccounted", "int64", "attempted - dropped - collected; negative: more than were written", nullable=True
        ),
        ColumnSpec("is_truncated", "bool", "the producer stopped early", nullable=True),
    ),
    key="input_id",
)
TABLES = (TASKS, FLIGHTS, PHASES, SUBMITS, UPLOADS, BARE_TASKS, EDGES, CORES, THREADS, RUNS, STREAMS)

STATS = (
    StatSpec(
        "ascend_invalid_row", "data_loss", "an element of a list is not of the list's shape; its bytes count as lost"
    ),
    StatSpec("ascend_bad_section", "data_loss", "a list of the format is no list; its bytes count as lost"),
    StatSpec("ascend_unknown_section", "notice", "a key at the top is not of the format; its bytes count as lost"),
    StatSpec("ascend_mixed_rows", "notice", "rows without a receive stamp stand among rows with one"),
    StatSpec("ascend_unknown_kind", "notice", "a scheduler phase has a kind that is not in the format; it is kept"),
    StatSpec(
        "ascend_missing_start", "data_loss", "a record has no begin: it was reserved and never written; it has no place"
    ),
    StatSpec(
        "ascend_timestamp_out_of_range",
        "error",
        "a stamp is too far from the smallest one to have a time; the record is left out",
    ),
    StatSpec("ascend_bad_delta", "error", "receive to start is longer than the start is old; receive is unknown"),
    StatSpec(
        "ascend_aicore_unmatched",
        "data_loss",
        "an execution without its dispatch record: dispatch and finish are unknown",
    ),
    StatSpec(
        "ascend_aicpu_unmatched", "data_loss", "a dispatch without its execution record: the core's record was lost"
    ),
    StatSpec(
        "ascend_missing_dispatch",
        "data_loss",
        "dispatches that neither stream has, by the cores' counters; at least so many",
    ),
    StatSpec("ascend_row_duplicate", "notice", "a row stands in the file more than once; it counts once"),
    StatSpec("ascend_key_duplicate", "error", "rows that differ share core and counter: none of them is joined"),
    StatSpec("ascend_gate_wait", "info", "a wait for producers was taken out of the setup: an estimate"),
    StatSpec(
        "ascend_edge_unmatched", "info", "a dependency of a task that stands nowhere on the timeline is not drawn"
    ),
    StatSpec(
        "ascend_graph_cycle",
        "error",
        "tasks that wait for each other in a ring: no order keeps all their dependencies; is it the graph of this run?",
    ),
    StatSpec(
        "ascend_flows_merged", "notice", "an edge joins too many pairs of blocks: it is drawn as one arrow after all"
    ),
    StatSpec(
        "ascend_timestamp_order",
        "error",
        "dispatch, receive, start, end, finish of an execution contradict this order by more than 1 us",
    ),
    StatSpec(
        "ascend_core_overcommitted",
        "error",
        "a task was dispatched to a core that held two already: counters and stamps do not belong together",
    ),
    StatSpec("ascend_dispatch_unmatched", "notice", "a dispatch while no phase of its thread ran: phases are missing"),
    StatSpec("ascend_finish_unmatched", "notice", "an end seen while no phase of its thread ran: phases are missing"),
    StatSpec("ascend_submit_duplicate", "notice", "a task was submitted more than once; the first submit holds"),
    StatSpec(
        "ascend_overhead_unavailable",
        "notice",
        "without a task graph nobody knows what was ready: no overhead counters",
    ),
    StatSpec(
        "ascend_clock_step",
        "notice",
        "the clock of one core stepped: its rows are received before their dispatch, or end after they were seen to",
    ),
    StatSpec("ascend_task_ambiguous", "notice", "a marker names only half of its task id, and not one task fits"),
    StatSpec(
        "ascend_ambiguous_name_map", "notice", "several name maps lie beside the capture: none is used, say --names"
    ),
    StatSpec("ascend_unreadable_sidecar", "error", "a file beside the capture cannot be read; it counts as lost"),
    StatSpec(
        "ascend_host_clock_unaligned",
        "notice",
        "host and device clocks are not joined: only the order of the two parts is known",
    ),
    StatSpec("ascend_bad_buffer", "data_loss", "bytes of a raw dump that are no buffer with its entry; they are lost"),
    StatSpec(
        "ascend_generation_assumed", "notice", "a raw dump does not say which generation wrote it: v3c is assumed"
    ),
    StatSpec("ascend_metric_unmatched", "notice", "what a phase counted names no record of its stream; it is not used"),
    StatSpec(
        "ascend_unknown_runtime", "notice", "the capture does not name its runtime: task ids may be of another layout"
    ),
    StatSpec(
        "ascend_edges_omitted",
        "data_loss",
        "a capture of many runs would have more dependencies than its size allows: those of the last runs are left out",
    ),
    StatSpec("ascend_dropped", "data_loss", "the producer dropped records, by its own count"),
    StatSpec(
        "ascend_unaccounted_records",
        "data_loss",
        "records that the producer wrote, did not drop, and that did not arrive",
    ),
    StatSpec("ascend_extra_records", "error", "more records arrived than the producer tried to write"),
    StatSpec("ascend_host_dropped", "data_loss", "the host's recorder dropped records of submits"),
)


def raw(layout: Layout) -> TableSpec:
    """Return the declaration of the raw table of a list: one row an element, one column a number."""
    columns = [
        ColumnSpec("offset", "int64", "byte offset in the file", unit="bytes"),
        ColumnSpec("group", "int32", "index of the inner list"),
    ]
    for cell in layout.cells:
        columns += [
            ColumnSpec(name, _TYPES.get(cell.kind, "int64"), cell.doc, nullable=not cell.is_required, unit=cell.unit)
            for name in column_names(cell)
        ]
    return TableSpec(f"ascend.{layout.name}", layout.doc, tuple(columns))


def column_names(cell: JsonField) -> list[str]:
    """Return the raw columns of a cell: one, or one for each number of a list."""
    if cell.kind == "span":
        return [f"{cell.name}_begin", f"{cell.name}_end"]
    return [cell.name] if cell.count == 1 else [f"{cell.name}_{i}" for i in range(cell.count)]


_TYPES = {"token": "uint64", "boolean": "bool", "text": "text", "words": "uint32"}
