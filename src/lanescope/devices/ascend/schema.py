"""Detail tables, raw tables and stats of the Ascend family. More than 500 lines: every column has its text here."""

from __future__ import annotations

from lanescope.devices.ascend.formats.layout import QUEUES, JsonField, Layout
from lanescope.trace.schema import ColumnSpec, TableSpec, argument, ref, ticks, time
from lanescope.trace.stats import StatSpec


def _span(name: str, doc: str, *, is_argument: bool = False, nullable: bool = True) -> tuple[ColumnSpec, ColumnSpec]:
    return (
        ColumnSpec(f"{name}_ns", "int64", doc, nullable=nullable, unit="ns", is_argument=is_argument),
        ticks(f"{name}_ticks", f"{doc}, on the device counter", nullable=nullable),
    )


def _stamp(name: str, doc: str) -> tuple[ColumnSpec, ColumnSpec]:
    return (
        time(f"{name}_ts", doc, nullable=True),
        ticks(f"{name}_ticks", f"{doc}, on the device counter", nullable=True),
    )


_TASK_ID = argument("task_id", "uint64", "64-bit task ID")
_TASK = argument("task", "utf8", "short task ID, e.g. t5, r2t5")

TASKS = TableSpec(
    "ascend_tasks",
    "one dispatch of a task (a block, or one half of a MIX task) on a core; its slice is the execution",
    (
        ref("slice_id", "slices", "slice of the execution"),
        _TASK_ID,
        _TASK,
        ColumnSpec("label", "utf8", "name and task, e.g. matmul(r2t5)"),
        ColumnSpec("function", "int64", "function number; NULL if not recorded", nullable=True),
        ColumnSpec("core", "int32", "core index"),
        ColumnSpec("core_type", "text", "aic, aiv; empty if not recorded"),
        ColumnSpec("run_epoch", "int64", "run within the file; NULL except in v4", nullable=True),
        ColumnSpec(
            "rank", "int32", "rank of the process, from --rank or a directory rankN; NULL if unknown", nullable=True
        ),
        ColumnSpec("reg_task_id", "uint32", "dispatch counter of the core; NULL in v1", nullable=True),
        ColumnSpec("block", "int32", "inferred index among the rows of the task on cores of this type, by start"),
        ColumnSpec(
            "blocks",
            "int64",
            "number of blocks of the task, from the task graph; NULL without a task graph",
            nullable=True,
        ),
        argument("fan_in", "int32", "tasks that the task waits for; NULL if not in the task graph", nullable=True),
        argument("fan_out", "int32", "tasks that wait for the task; NULL if not in the task graph", nullable=True),
        *_stamp("dispatch", "time before the dispatch registers of the batch were written"),
        *_stamp("receive", "time of reception by the core, before (v3c) or after (v3) the wait for producers"),
        *_stamp("finish", "time at which the scheduler observed the end"),
        *_stamp("ready", "end of the last producer with rows"),
        ColumnSpec(
            "ready_quality",
            "text",
            "exact: all relevant producers have rows; estimated: barriers or lost producers may be later",
            nullable=True,
        ),
        *_span("duration", "time from start to end", is_argument=True),
        *_span("propagation", "time from dispatch to receive, as measured if negative", is_argument=True),
        *_span("local_setup", "time from receive to start without the wait for producers", is_argument=True),
        *_span("gate_wait", "estimated time from receive to ready of a task that was staged early"),
        *_span("head", "time from dispatch to start"),
        *_span("tail", "time from end to finish, as measured if negative"),
        time("effective_start_ts", "effective start for dependency checks"),
        ColumnSpec(
            "effective_start_source",
            "text",
            "source of the effective start: receive, or start if the receive timestamp is missing or not reliable",
        ),
        ColumnSpec(
            "may_be_staged",
            "bool",
            "whether the task may have been staged before its producers ended; NULL except in v3c",
            nullable=True,
        ),
    ),
    key="slice_id",
)
PHASES = TableSpec(
    "ascend_phases",
    "one work phase of a scheduler thread; the name of its slice is the kind",
    (
        ref("slice_id", "slices", "slice of the phase"),
        ColumnSpec("thread", "int32", "scheduler thread"),
        ColumnSpec("role", "text", "outer, inner, marker; empty for an unknown kind"),
        ColumnSpec("loop_iter", "uint32", "iteration of the thread's loop; NULL if not recorded", nullable=True),
        argument(
            "tasks_processed", "uint32", "counter with a kind-specific meaning; NULL if not recorded", nullable=True
        ),
        ColumnSpec(
            "pop_hit",
            "uint32",
            "pops that returned a task since the last dispatch record; NULL if not recorded",
            nullable=True,
        ),
        ColumnSpec(
            "pop_miss",
            "uint32",
            "pops that returned no task since the last dispatch record; NULL if not recorded",
            nullable=True,
        ),
        ColumnSpec(
            "task_id", "uint64", "task ID of a marker, in v3 the lower half only; NULL for other phases", nullable=True
        ),
        *(
            ColumnSpec(
                f"{where}_{when}_{queue.lower()}",
                "int32",
                f"tasks in the {'shared ready queue' if where == 'shared' else 'local ready buffer'}"
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
        ref("slice_id", "slices", "slice of the submission"),
        ColumnSpec("orchestrator", "int32", "index of the orchestrator"),
        ColumnSpec("submit_idx", "uint32", "sequence number of the submission; NULL if not recorded", nullable=True),
        _TASK_ID,
        _TASK,
    ),
    key="slice_id",
)
UPLOADS = TableSpec(
    "ascend_uploads",
    "one copy from host to device",
    (
        ref("slice_id", "slices", "slice of the copy"),
        argument("bytes", "int64", "copied bytes; NULL if not recorded", nullable=True, unit="bytes"),
    ),
    key="slice_id",
)
HOST_PHASES = TableSpec(
    "ascend_host_phases",
    "one phase of the host: building arenas and the graph, submitting, copying; the name of its slice is the kind",
    (
        ref("slice_id", "slices", "slice of the phase"),
        ColumnSpec("process", "int64", "process ID"),
        ColumnSpec("thread", "int64", "thread ID"),
        ColumnSpec("run", "int64", "sequence number of the run in the process"),
        argument("task_id", "uint64", "submitted task; NULL for other phases", nullable=True),
        argument("detail", "int64", "number with a kind-specific meaning; NULL for submissions", nullable=True),
    ),
    key="slice_id",
)
HOST_SPANS = TableSpec(
    "ascend_host_spans",
    "one span of the log of the host; on the timeline if it belongs to the run of the capture and its clock is known",
    (
        ref("slice_id", "slices", "slice of the span; NULL if not on the timeline", nullable=True),
        ref("input_id", "inputs", "records file of the capture"),
        ColumnSpec("name", "text", "name of the span with its parents, separated by dots"),
        ColumnSpec("process", "int64", "process ID"),
        argument("thread", "int64", "thread ID"),
        argument("run", "int64", "sequence number of the run in the process; 0 for spans of no run"),
        ColumnSpec("depth", "int32", "number of enclosing spans of the thread"),
        ColumnSpec("clock", "text", "host: its monotonic clock; device: time since a point of the run"),
        ColumnSpec("start_ns", "int64", "start as recorded, on that clock", unit="ns"),
        ColumnSpec("duration_ns", "int64", "duration as recorded", unit="ns"),
        argument("function", "text", "hash of the called function, hexadecimal"),
        argument("attributes", "utf8", "further attributes as key=value; NULL without", nullable=True),
    ),
    key="slice_id",
)
LOG_MESSAGES = TableSpec(
    "ascend_log_messages",
    "one line of the log of the host that is not a span",
    (
        ref("instant_id", "instants", "instant of the message; NULL if not on the timeline", nullable=True),
        ColumnSpec("at_ns", "int64", "time as recorded, on the monotonic clock of the host", unit="ns"),
        argument("level", "text", "severity"),
        argument("thread", "text", "address of the thread, hexadecimal"),
        ColumnSpec("source", "text", "function that wrote it"),
        argument("text", "utf8", "message"),
    ),
    key="instant_id",
)
PMU = TableSpec(
    "ascend_pmu",
    "one hardware counter of one execution",
    (
        ref("slice_id", "slices", "slice of the execution; NULL if not known which one", nullable=True),
        ColumnSpec("core", "int32", "core index"),
        ColumnSpec("task_id", "uint64", "64-bit task ID"),
        ColumnSpec("event_type", "int64", "number of the selected group of counters; 0 if not recorded"),
        ColumnSpec("counter", "text", "name of the counter"),
        ColumnSpec("value", "int64", "value of the counter"),
    ),
    key="slice_id",
)
_BOUNDARY = "{} at the {} of the scope; NULL if that record is missing"
SCOPES = TableSpec(
    "ascend_scopes",
    "one resource of one scope of the orchestration, at its start and end, which have no timestamps",
    (
        ref("input_id", "inputs", "input"),
        ColumnSpec("scope", "int64", "sequence number of the scope"),
        ColumnSpec("site", "text", "file and line of the scope"),
        ColumnSpec("depth", "int32", "nesting depth, 0 for the outermost scope"),
        ColumnSpec("ring", "int32", "ring of the scope"),
        ColumnSpec("resource", "text", "task_window, heap (in bytes), dep_pool; tensormap, which all rings share"),
        ColumnSpec("start_tail", "int64", _BOUNDARY.format("end of what was released", "start"), nullable=True),
        ColumnSpec("start_head", "int64", _BOUNDARY.format("end of what was allocated", "start"), nullable=True),
        ColumnSpec("end_tail", "int64", _BOUNDARY.format("end of what was released", "end"), nullable=True),
        ColumnSpec("end_head", "int64", _BOUNDARY.format("end of what was allocated", "end"), nullable=True),
        ColumnSpec("allocated", "int64", "allocated during the scope; NULL if unknown", nullable=True),
        ColumnSpec(
            "peak_at_most",
            "int64",
            "upper bound of the use during the scope: releases before its end are not subtracted; NULL if unknown",
            nullable=True,
        ),
        ColumnSpec("used_at_end", "int64", "in use at the end of the scope; NULL if unknown", nullable=True),
        ColumnSpec("capacity", "int64", "capacity of the resource; NULL if not recorded", nullable=True),
    ),
    key="input_id",
)
FLIGHTS = TableSpec(
    "ascend_in_flight",
    "one dispatch as observed by its scheduler, from the dispatch to the observed end",
    (
        ref("slice_id", "slices", "slice of the dispatch"),
        _TASK_ID,
        ColumnSpec("core", "int32", "core index"),
        ColumnSpec("reg_task_id", "uint32", "dispatch counter of the core; NULL in v1", nullable=True),
    ),
    key="slice_id",
)
BARE_TASKS = TableSpec(
    "ascend_coreless_tasks",
    "a task without execution on a core: a barrier, a skipped task, an allocation",
    (
        ref("slice_id", "slices", "slice of the task"),
        argument("task_id", "uint64", "task ID; NULL if the marker does not record it", nullable=True),
        argument("task", "utf8", "short task ID; NULL if the marker does not record it", nullable=True),
    ),
    key="slice_id",
)
GRAPHS = TableSpec(
    "ascend_graphs",
    "a task that is a graph, from the first receive of its nodes to their last end",
    (
        ref("slice_id", "slices", "slice around the nodes"),
        argument("task_id", "uint64", "task ID"),
        _TASK,
        argument("nodes", "int64", "executions of its nodes"),
    ),
    key="slice_id",
)
EDGES = TableSpec(
    "ascend_edges",
    "one dependency between two tasks and whether it was observed",
    (
        ref("flow_id", "flows", "first flow of the edge; NULL if a task is not on the timeline", nullable=True),
        ref("input_id", "inputs", "records file of both tasks"),
        ColumnSpec("pred_task_id", "uint64", "producer"),
        ColumnSpec("succ_task_id", "uint64", "consumer"),
        ColumnSpec("arrows", "int32", "number of flows of the edge"),
        ticks(
            "slack_ticks",
            "time from the last end of the producer to the first effective start of the consumer; NULL if "
            "one of them has no rows",
            nullable=True,
        ),
        ColumnSpec(
            "is_violated",
            "bool",
            "whether the consumer started before the producer ended; NULL if not checked",
            nullable=True,
        ),
        ColumnSpec("follows_clock_step", "bool", "whether all violations come from rows of a core with a clock step"),
        ColumnSpec("violated_pairs", "int64", "violating pairs of executions, one of each task"),
    ),
    key="flow_id",
)
_IDLE = {
    "dependency": "idle time before the last producer ended",
    "submit": "idle time before the submission ended",
    "dispatch": "idle time from ready to dispatch",
    "propagation": "idle time from dispatch to receive",
    "setup": "idle time from receive to start",
    "unknown": "idle time without a known cause: timestamps are missing",
    "trailing_idle": "idle time after the last execution",
}
CORES = TableSpec(
    "ascend_cores",
    "time of a core: busy and the seven idle parts add up to the window",
    (
        ref("track_id", "tracks", "lane of the core"),
        ColumnSpec("core", "int32", "core index"),
        ColumnSpec("core_type", "text", "aic, aiv; empty if not recorded"),
        ColumnSpec("thread", "int32", "scheduler thread at the end of the run; NULL if not recorded", nullable=True),
        ColumnSpec("executions", "int64", "number of executions"),
        *_span(
            "window",
            "time from the first start to the last end of all cores, without timestamps out of order or far from all "
            "others",
            nullable=False,
        ),
        ticks("window_start_ticks", "start of the window, on the device counter"),
        *_span("busy", "time with an execution", nullable=False),
        *(column for name, doc in _IDLE.items() for column in _span(name, doc, nullable=False)),
        ColumnSpec("overlap_ticks", "int64", "time of overlapping executions beyond busy", unit="ticks"),
        ColumnSpec(
            "lost_ticks",
            "int64",
            "part of the idle time in which executions are known to be missing",
            unit="ticks",
        ),
        ColumnSpec(
            "suspect_executions",
            "int64",
            "executions with a timestamp far from all others (LS501): not in busy, idle time next to them is unknown",
        ),
        *_span("suspect", "time that those executions claim", nullable=False),
    ),
    key="track_id",
)
THREADS = TableSpec(
    "ascend_threads",
    "time of a scheduler thread from its first to its last record: busy, idle and unknown add up to the window",
    (
        ref("track_id", "tracks", "lane of the thread"),
        ColumnSpec("thread", "int32", "scheduler thread"),
        ColumnSpec("records", "int64", "number of recorded phases"),
        *_span("window", "time from the first record to the end of the last", nullable=False),
        *_span("busy", "time in phases of any kind", nullable=False),
        *_span("idle", "time between phases: iterations without work are not recorded", nullable=False),
        *_span("unknown", "time next to phases with a timestamp far from all others", nullable=False),
        ColumnSpec("suspect_records", "int64", "phases with a timestamp far from all others (LS501): not in busy"),
        *_span("suspect", "time that those phases claim", nullable=False),
        ColumnSpec("pauses", "int64", "number of pauses between phases"),
        ColumnSpec("longest_pause_ns", "int64", "longest pause", unit="ns"),
        ColumnSpec(
            "iterations",
            "int64",
            "iterations of the loop, from the highest number; NULL if not recorded",
            nullable=True,
        ),
        ColumnSpec("working_iterations", "int64", "iterations with records; NULL if not recorded", nullable=True),
        ColumnSpec(
            "mean_iteration_ns",
            "int64",
            "mean duration of an iteration: window divided by iterations; NULL without iterations",
            nullable=True,
            unit="ns",
        ),
        ColumnSpec("pop_hit", "int64", "pops of ready queues that returned a task"),
        ColumnSpec("pop_miss", "int64", "pops of ready queues that returned no task"),
        ColumnSpec("dispatched", "int64", "subtasks published by dispatch phases"),
        ColumnSpec(
            "staged_early",
            "int64",
            "subtasks staged by early_dispatch phases before their producers ended; with dispatched, all subtasks",
        ),
        ColumnSpec("drained", "int64", "subtasks published while draining: counted in dispatched or staged_early, too"),
        ColumnSpec("completed", "int64", "finished subtasks observed by complete phases"),
        ColumnSpec(
            "resolved_at_least",
            "int64",
            "minimum number of visited consumers: the device does not record walks shorter than 1 us",
        ),
    ),
    key="track_id",
)
RUNS = TableSpec(
    "ascend_runs",
    "one records file with its properties and its sidecar files",
    (
        ref("input_id", "inputs", "input"),
        ColumnSpec("format_version", "text", "format version: v1a, v1b, v1c, v2, v3, v3c, v4"),
        ColumnSpec("errata", "utf8", "names of the special rules of this format version"),
        ColumnSpec(
            "rank", "int32", "rank of the process, from --rank or a directory rankN; NULL if unknown", nullable=True
        ),
        ColumnSpec("device", "int32", "device of the rank, from a directory dN; NULL if unknown", nullable=True),
        ColumnSpec("epochs", "int64", "number of runs in the file"),
        ColumnSpec("level_key", "text", "key of the level in the file"),
        ColumnSpec(
            "level",
            "int32",
            "recording level: 1 core timing, 2 dispatch, 3 scheduler phases, 4 submissions; each includes "
            "the lower ones",
        ),
        ColumnSpec(
            "orchestrator",
            "utf8",
            "name of the orchestrator, from the name map; NULL without a name map",
            nullable=True,
        ),
        ColumnSpec("orchestrator_on_host", "bool", "whether submissions are made by the host"),
        ColumnSpec(
            "clocks",
            "utf8",
            "alignment of host and device clocks, or why there is none; NULL without host records",
            nullable=True,
        ),
        ticks("base_ticks", "smallest timestamp of the device"),
        ColumnSpec("tasks", "int64", "number of tasks in the capture"),
        ColumnSpec("edges", "int64", "number of dependencies; NULL without a task graph", nullable=True),
        ColumnSpec(
            "edges_repeated",
            "int64",
            "additional reasons for the same dependencies; NULL without a task graph",
            nullable=True,
        ),
        ColumnSpec(
            "edges_to_self", "int64", "ignored edges from a task to itself; NULL without a task graph", nullable=True
        ),
        ColumnSpec(
            "edges_retain_only",
            "int64",
            "edges that extend memory lifetime only; NULL without a task graph",
            nullable=True,
        ),
        ColumnSpec(
            "dependency_reference",
            "text",
            "reference time of dependency checks: receive, start, both; empty without executions",
        ),
        ColumnSpec(
            "violated_edges",
            "int64",
            "edges whose consumer started before its producer ended; NULL without a task graph",
            nullable=True,
        ),
        ColumnSpec("violated_tasks", "int64", "consumers of violated edges; NULL without a task graph", nullable=True),
        ColumnSpec(
            "violated_pairs", "int64", "violating pairs of executions; NULL without a task graph", nullable=True
        ),
        ColumnSpec(
            "violated_edges_by_clock",
            "int64",
            "violated edges caused by a clock step; NULL without a task graph",
            nullable=True,
        ),
        ColumnSpec(
            "violated_tasks_by_clock",
            "int64",
            "consumers whose violated edges are all caused by a clock step; NULL without a task graph",
            nullable=True,
        ),
        ColumnSpec("clock_steps", "int64", "clock steps of single cores"),
    ),
    key="input_id",
)
CLOCK_STEPS = TableSpec(
    "ascend_clock_steps",
    "a step of the clock of one core; the slices that it concerns are flagged CLOCK_SUSPECT",
    (
        ref("track_id", "tracks", "lane of the core"),
        ColumnSpec("core", "int32", "core index"),
        ColumnSpec("ts", "int64", "start of the first execution that shows it", unit="ns", is_time=True),
        ColumnSpec(
            "size_ticks",
            "int64",
            "by how much timestamps of the core are off from there on, estimated; negative: the clock stepped back",
            unit="ticks",
        ),
    ),
)
STREAMS = TableSpec(
    "ascend_record_streams",
    "records that a producer reports for a stream, and the records that arrived: v4 and raw dumps",
    (
        ref("input_id", "inputs", "input"),
        ColumnSpec("stream", "text", "aicore_task, aicpu_task, sched_phase, orch_phase"),
        ColumnSpec("index", "int32", "core or thread index"),
        ColumnSpec("producer", "text", "processor that wrote the stream; empty if not recorded"),
        ColumnSpec("platform", "text", "chip; empty if not recorded"),
        ColumnSpec("attempted", "int64", "attempts to write a record; NULL if not counted", nullable=True),
        ColumnSpec("dropped", "int64", "dropped records: counted by the producer; NULL if not counted", nullable=True),
        ColumnSpec("collected", "int64", "records that arrived"),
        ColumnSpec(
            "unaccounted",
            "int64",
            "attempted - dropped - collected; negative if more records arrived than were written; NULL if not counted",
            nullable=True,
        ),
        ColumnSpec("is_truncated", "bool", "whether the producer stopped early; NULL if not recorded", nullable=True),
    ),
    key="input_id",
)
GRAPH_TASKS = TableSpec(
    "ascend_graph_tasks",
    "one task that the capture or its task graph names, once however often it ran",
    (
        ref("input_id", "inputs", "input"),
        ColumnSpec("task_id", "uint64", "64-bit task ID"),
        ColumnSpec("task", _TASK.type, _TASK.doc),
        ColumnSpec("run_epoch", "int64", "run within the file; NULL where there is one run", nullable=True),
        ColumnSpec(
            "kind", "text", "kernel, dummy, alloc, skipped, graph, node; unknown: the capture contains no proof"
        ),
        ColumnSpec(
            "record",
            "text",
            "recorded; none: this runtime writes no record at this level; lost: one was due; undecidable: the capture "
            "contains no proof",
        ),
        ColumnSpec(
            "functions", "utf8", "functions of its slots (AIC, AIV0, AIV1), each once; NULL if not known", nullable=True
        ),
        ColumnSpec("blocks", "int64", "number of blocks, from the task graph; NULL if not recorded", nullable=True),
        ColumnSpec(
            "is_early",
            "bool",
            "whether its consumers may be dispatched before it ends; NULL if not recorded",
            nullable=True,
        ),
        ColumnSpec(
            "graph_task_id",
            "uint64",
            "graph that the task is a node of; NULL for other tasks, or not known",
            nullable=True,
        ),
    ),
    key="input_id",
)
TABLES = (
    *(
        TASKS,
        FLIGHTS,
        PHASES,
        SUBMITS,
        UPLOADS,
        HOST_PHASES,
        HOST_SPANS,
        LOG_MESSAGES,
        PMU,
        SCOPES,
        BARE_TASKS,
        GRAPHS,
        EDGES,
        GRAPH_TASKS,
    ),
    *(CORES, CLOCK_STEPS, THREADS, RUNS, STREAMS),
)

STATS = (
    StatSpec("ascend_invalid_row", "data_loss", "list elements with an invalid shape: their bytes are lost"),
    StatSpec("ascend_bad_section", "data_loss", "known keys whose value is not a list: their bytes are lost"),
    StatSpec(
        "ascend_unknown_section", "notice", "unknown top-level keys: their bytes are lost", finding="LS003 notice"
    ),
    StatSpec(
        "ascend_mixed_rows",
        "notice",
        "rows without a receive timestamp among rows with one",
        finding="LS404 warning",
        share_of="events",
    ),
    StatSpec(
        "ascend_unknown_kind",
        "notice",
        "scheduler phases, submission steps and copies of an unknown kind: kept",
        finding="LS404 notice",
        share_of="events",
    ),
    StatSpec(
        "ascend_missing_start",
        "data_loss",
        "records without a start, reserved and never written: not on the timeline",
        dropped_units=("aicore_tasks record",),
    ),
    StatSpec(
        "ascend_timestamp_out_of_range",
        "error",
        "records with a timestamp too far from the smallest one: excluded",
    ),
    StatSpec(
        "ascend_bad_delta",
        "error",
        "intervals from receive to start that are longer than the start timestamp: receive is unknown",
    ),
    StatSpec(
        "ascend_aicore_unmatched",
        "data_loss",
        "executions without a dispatch record: dispatch and finish are unknown",
        finding="LS401",
    ),
    StatSpec(
        "ascend_aicpu_unmatched",
        "data_loss",
        "dispatches without an execution record: the record of the core is lost",
        finding="LS401",
    ),
    StatSpec(
        "ascend_missing_dispatch",
        "data_loss",
        "dispatches missing in both streams: at least as many, from the counters of the cores",
        dropped_units=("aicore_tasks record", "aicpu_tasks record"),
    ),
    StatSpec("ascend_row_duplicate", "notice", "repeated rows: counted once", finding="LS402"),
    StatSpec(
        "ascend_key_duplicate", "error", "different rows with the same core and counter: not joined", finding="LS402"
    ),
    StatSpec(
        "ascend_gate_wait",
        "info",
        "waits for producers that were subtracted from the setup: estimated",
        silent="the slices have the quality estimated, and LS305 reports a device where such are most of the time",
    ),
    StatSpec(
        "ascend_edge_unmatched",
        "info",
        "dependencies of tasks whose records are missing: not drawn",
        finding="LS401",
    ),
    StatSpec(
        "ascend_edge_undecided",
        "info",
        "dependencies of tasks that were skipped or lost, which the capture does not distinguish: not drawn",
        finding="LS404 notice",
    ),
    StatSpec(
        "ascend_edge_no_kernel",
        "info",
        "dependencies of tasks that this recording level and runtime do not record: not drawn",
        silent="allocations, dummy tasks and graphs run on no core, and only some phases name them: no record is lost",
    ),
    StatSpec(
        "ascend_graph_cycle",
        "error",
        "tasks in a dependency cycle: the task graph may belong to another run",
    ),
    StatSpec(
        "ascend_flows_merged",
        "notice",
        "edges with too many pairs of blocks: drawn as one flow",
        finding="LS003 notice",
    ),
    StatSpec(
        "ascend_timestamp_order",
        "error",
        "executions whose dispatch, receive, start, end and finish are out of order by more than 1 us",
    ),
    StatSpec(
        "ascend_core_overcommitted",
        "error",
        "dispatches to a core with two active tasks: counters and timestamps are inconsistent",
    ),
    StatSpec(
        "ascend_kind_contradicts",
        "error",
        "executions on a type of core for which the task graph has no kernel: core types or task IDs are wrong, or the "
        "task graph belongs to another run",
    ),
    StatSpec(
        "ascend_submit_order",
        "error",
        "executions over 1 us older than the submission of their task: task IDs or timestamps are wrong",
    ),
    StatSpec(
        "ascend_lifecycle_contradicts",
        "error",
        "records of control processors whose stages are out of turn, or whose thread is another's: timestamps or "
        "threads are wrong",
    ),
    StatSpec(
        "ascend_cores_contradict",
        "error",
        "cores whose number, type or scheduler thread contradicts the rest of the file: types, names and threads of "
        "cores may be wrong",
    ),
    StatSpec(
        "ascend_task_duplicate",
        "error",
        "tasks listed more than once in the task graph: the first entry is used",
        finding="LS402",
    ),
    StatSpec(
        "ascend_task_unlisted",
        "error",
        "executed tasks missing in the task graph: task IDs are wrong, or the task graph belongs to another run",
    ),
    StatSpec(
        "ascend_blocks_contradict",
        "error",
        "tasks without one execution per kernel and block of the task graph: executions are missing or extra, or the "
        "task graph belongs to another run",
    ),
    StatSpec(
        "ascend_marker_contradicts",
        "error",
        "markers that name a task which cannot pass without a core, or one that passed before: task IDs are wrong, or "
        "the task graph belongs to another run",
    ),
    StatSpec(
        "ascend_submit_unmatched",
        "data_loss",
        "executed or listed tasks without a submission: submissions are missing, or task IDs are wrong",
        finding="LS401",
    ),
    StatSpec(
        "ascend_submit_gap",
        "data_loss",
        "interruptions of the sequence of submissions: submissions are missing or repeated",
    ),
    StatSpec(
        "ascend_submit_sequence",
        "error",
        "submissions with a lower task ID than an earlier one of their ring: task IDs or sequence numbers are wrong",
    ),
    StatSpec(
        "ascend_overlap",
        "error",
        "scheduler phases and submissions that overlap another of their thread: timestamps or threads are wrong",
    ),
    StatSpec(
        "ascend_loop_order",
        "error",
        "phases with a lower loop iteration than an earlier one of their thread: order or counters are wrong",
    ),
    StatSpec(
        "ascend_count_contradicts",
        "notice",
        "counters that differ from the number of counted records: records are missing or extra, or counters are wrong",
        finding="LS404 notice",
    ),
    StatSpec(
        "ascend_missing_flush",
        "notice",
        "threads without the last record of a scheduler, or with records after it: phases are missing",
        finding="LS105 notice",
    ),
    StatSpec(
        "ascend_loop_contradicts",
        "notice",
        "phases repeated within an iteration, or more iterations than cycles: iterations are wrong",
        finding="LS404 warning",
    ),
    StatSpec(
        "ascend_dispatch_order",
        "notice",
        "tasks dispatched or passed before a producer finished: task IDs or dependencies are wrong",
        finding="LS404 warning",
    ),
    StatSpec(
        "ascend_receive_order",
        "error",
        "executions received before their core ended the previous one: timestamps are wrong",
    ),
    StatSpec(
        "ascend_level_contradicts",
        "error",
        "captures whose level does not fit their lists: the level is wrong, or lists are missing",
    ),
    StatSpec(
        "ascend_unknown_value",
        "notice",
        "values that no known writer has: ignored, or kept as they are",
        finding="LS404 notice",
    ),
    StatSpec(
        "ascend_function_contradicts",
        "notice",
        "functions in slots of both core types: names of executions may be wrong",
        finding="LS404 warning",
    ),
    StatSpec(
        "ascend_task_order",
        "notice",
        "tasks listed after one with a higher ID of their ring: task IDs of the task graph are wrong",
        finding="LS404 warning",
    ),
    StatSpec(
        "ascend_slot_order",
        "notice",
        "slots of a device buffer older than the slot before them: slots were exchanged, or a clock stepped",
        finding="LS404 notice",
    ),
    StatSpec(
        "ascend_marker_missing",
        "notice",
        "tasks without a kernel and with producers that no marker names: task IDs of markers are wrong",
        finding="LS401 notice",
    ),
    StatSpec(
        "ascend_host_contradicts",
        "notice",
        "copies of the host that its two files call by different kinds: one of both is wrong",
        finding="LS404 warning",
    ),
    StatSpec(
        "ascend_missing_timestamp",
        "data_loss",
        "dispatch records without a dispatch or a finish timestamp: unknown",
    ),
    StatSpec(
        "ascend_duration_contradicts",
        "error",
        "executions whose recorded duration differs from the time between start and end",
    ),
    StatSpec(
        "ascend_clock_contradicts",
        "notice",
        "clock readings and origins that are invalid or contradict the records: host times may be wrong",
        finding="LS305 warning",
    ),
    StatSpec(
        "ascend_dispatch_unmatched",
        "notice",
        "dispatches outside all phases of their thread: phases are missing",
        finding="LS401",
    ),
    StatSpec(
        "ascend_finish_unmatched",
        "notice",
        "observed ends outside all phases of their thread: phases are missing",
        finding="LS401",
    ),
    StatSpec(
        "ascend_submit_duplicate", "notice", "repeated submissions of a task: the first one is used", finding="LS402"
    ),
    StatSpec(
        "ascend_overhead_unavailable",
        "notice",
        "captures without a task graph: no scheduling overhead counters",
        silent="a table is absent, and no number is wrong",
    ),
    StatSpec(
        "ascend_clock_step",
        "notice",
        "rows with a clock step of their core: received before dispatch, ended after the observed end, or seen late",
        finding="LS305 warning",
        share_of="events",
    ),
    StatSpec(
        "ascend_task_ambiguous",
        "notice",
        "markers with half of a task ID that matches several tasks or none",
        finding="LS404 warning",
        share_of="events",
    ),
    StatSpec(
        "ascend_ambiguous_name_map",
        "notice",
        "several name maps next to the capture: none is used; use --names",
        finding="LS003 notice",
    ),
    StatSpec("ascend_unreadable_sidecar", "error", "unreadable sidecar files: counted as lost"),
    StatSpec(
        "ascend_host_clock_unaligned",
        "notice",
        "host and device clocks without alignment: only the order of the two parts is known",
        finding="LS305 notice",
    ),
    StatSpec("ascend_bad_buffer", "data_loss", "bytes of a raw dump that are not a valid buffer: lost"),
    StatSpec(
        "ascend_format_version_assumed",
        "notice",
        "raw dumps without a format version: v3c is assumed",
        finding="LS404 notice",
    ),
    StatSpec(
        "ascend_index_assumed",
        "notice",
        "bare buffers of a raw dump without --index: core or thread 0 is assumed",
        finding="LS404 notice",
    ),
    StatSpec(
        "ascend_metric_unmatched",
        "notice",
        "phase metrics without a record in their stream, and records without metrics: ignored",
        finding="LS401",
    ),
    StatSpec(
        "ascend_unknown_runtime",
        "notice",
        "captures without a runtime name: the layout of task IDs is assumed",
        finding="LS404 notice",
    ),
    StatSpec(
        "ascend_edges_omitted",
        "data_loss",
        "dependencies above the limit for the size of the capture: those of the last runs are omitted",
    ),
    StatSpec(
        "ascend_dropped",
        "data_loss",
        "dropped records: counted by the producer",
        dropped_units=("* [0-9]* record",),
    ),
    StatSpec(
        "ascend_unaccounted_records",
        "data_loss",
        "records that were written, not dropped, and did not arrive",
        dropped_units=("* [0-9]* record",),
    ),
    StatSpec(
        "ascend_records_cut",
        "data_loss",
        "records that their producers did not drop and the truncated file does not contain",
    ),
    StatSpec("ascend_extra_records", "error", "records that arrived beyond the number of write attempts"),
    StatSpec(
        "ascend_pmu_unmatched",
        "notice",
        "hardware counters whose execution is unknown: counters and executions of a task on a core differ in number",
        finding="LS401",
    ),
    StatSpec(
        "ascend_unknown_key",
        "notice",
        "unknown keys of records, of the task graph and of sidecar files: ignored",
        finding="LS003 notice",
    ),
    StatSpec(
        "ascend_nodes_apart",
        "notice",
        "nodes whose graph no record or task graph names, or of several graphs: without a slice around them",
        finding="LS404 notice",
    ),
    StatSpec(
        "ascend_scopes_untimed",
        "info",
        "scopes of the orchestration: they have no timestamps and are not on the timeline",
        silent="the recorder writes no timestamps, so none is missing; the table ascend_scopes has all scopes",
    ),
    StatSpec(
        "ascend_scopes_fatal",
        "notice",
        "runs that failed while scopes were recorded: later scopes may be wrong",
        finding="LS404 warning",
    ),
    StatSpec(
        "ascend_scope_unmatched",
        "data_loss",
        "scopes with one boundary: the record of the other one is missing",
    ),
    StatSpec(
        "ascend_scope_contradicts",
        "error",
        "boundaries of scopes with falling positions, a wrong ring, more in use than fits, or taken outside",
    ),
    StatSpec(
        "ascend_scope_tasks_contradict",
        "error",
        "tasks with a number that no scope took from its ring: the files are of two runs, or wrong",
    ),
    StatSpec(
        "ascend_scope_tasks_missing",
        "data_loss",
        "tasks that scopes took from their ring and no submission names: their records are missing",
    ),
    StatSpec(
        "ascend_scopes_dropped",
        "data_loss",
        "boundaries of scopes that the recorder dropped",
        dropped_units=("scope_stats record",),
    ),
    StatSpec(
        "ascend_scopes_missing",
        "data_loss",
        "boundaries of scopes that the recorder did not drop and the file does not contain",
    ),
    StatSpec(
        "ascend_scopes_headless",
        "notice",
        "scope files without a valid first line: version, capacities and the number of records are unknown",
        finding="LS003 notice",
    ),
    StatSpec(
        "ascend_host_spans_unplaced",
        "notice",
        "spans of the host: no common clock with the capture is proven, so they are not on the timeline",
        finding="LS305 notice",
    ),
    StatSpec(
        "ascend_host_spans_of_others",
        "info",
        "spans of the host from other runs than the capture: not on the timeline",
        silent="they belong to other captures, and the table ascend_host_spans has all of them",
    ),
    StatSpec(
        "ascend_host_spans_of_device",
        "info",
        "spans of the device in a log of the host without a known origin: not on the timeline",
        silent="the log does not record the origin; the table ascend_host_spans has their durations",
    ),
    StatSpec(
        "ascend_log_dropped",
        "data_loss",
        "records that the writers of a log of the host dropped",
        dropped_units=("host_log record",),
    ),
    StatSpec(
        "ascend_pmu_missing",
        "data_loss",
        "executions without hardware counters, while others have some: their records are missing",
    ),
    StatSpec(
        "ascend_pmu_contradicts",
        "error",
        "hardware counters whose core, thread, function, group, order or size contradicts their execution",
    ),
    StatSpec(
        "ascend_host_phases_contradict",
        "error",
        "submissions and copies that the two files of the host record differently: times or tasks are wrong",
    ),
    StatSpec(
        "ascend_host_phases_unordered",
        "notice",
        "phases of the host that start before the previous one of their thread: times or order are wrong",
        finding="LS404 warning",
    ),
    StatSpec(
        "ascend_host_span_unmatched",
        "data_loss",
        "spans of the host whose enclosing span is missing: the log is incomplete",
    ),
    StatSpec(
        "ascend_host_spans_contradict",
        "error",
        "spans of a log whose time, counter, depth, run, function or line contradicts spans or records",
    ),
    StatSpec(
        "ascend_host_phases_dropped",
        "data_loss",
        "phases that the recorder on the host dropped",
        dropped_units=("host_phase_records record",),
    ),
    StatSpec(
        "ascend_host_phases_unplaced",
        "error",
        "phases of the host that are too far from the other records, or that no clock joins with them: excluded",
    ),
    StatSpec(
        "ascend_collection_lost",
        "data_loss",
        "records of the device that the collector did not get, by its own count: they are missing from every list",
        dropped_units=("collected record",),
    ),
    StatSpec(
        "ascend_collection_buffers_lost",
        "data_loss",
        "buffers that the collector did not get, by its own count, at least: each holds up to 1,024 records of a core",
    ),
    StatSpec(
        "ascend_collection_incomplete",
        "data_loss",
        "statements of the collector that its file may be incomplete: records may be missing anywhere",
    ),
    StatSpec(
        "ascend_host_dropped",
        "data_loss",
        "submission records dropped by the recorder on the host",
        dropped_units=("host_orchestrator_phases record",),
    ),
)


def raw(layout: Layout) -> TableSpec:
    """Return the declaration of the raw table of a list: one row per element, one column per number."""
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
    """Return the raw columns of a field: one, or one per number of a list."""
    if cell.kind == "span":
        return [f"{cell.name}_begin", f"{cell.name}_end"]
    return [cell.name] if cell.count == 1 else [f"{cell.name}_{i}" for i in range(cell.count)]


_TYPES = {"token": "uint64", "boolean": "bool", "text": "text", "words": "uint32"}
