"""Detail tables and stats of the family."""

from __future__ import annotations

from lanescope.trace import ColumnSpec, StatSpec, TableSpec, argument, ref

OPS = TableSpec(
    "kineto_ops",
    "links of a row to others: slices with a correlation, an external ID, a stream or a device",
    (
        ref("slice_id", "slices", "slice"),
        argument("correlation", "int64", "number shared by a call and the device work that it launched", nullable=True),
        argument("external_id", "int64", "number shared by an operator and what it led to", nullable=True),
        argument("stream", "int64", "stream or queue; NULL without one", nullable=True),
        argument("device", "int64", "device; NULL without one", nullable=True),
        argument("context", "int64", "context of the device; NULL without one", nullable=True),
        argument("sequence", "int64", "autograd sequence number; NULL without one", nullable=True),
        argument("forward_thread", "int64", "autograd thread of the forward pass; NULL without one", nullable=True),
    ),
    key="slice_id",
)
KERNELS = TableSpec(
    "kineto_kernels",
    "launch configuration of a kernel",
    (
        ref("slice_id", "slices", "slice of the kernel"),
        argument("grid_x", "int64", "blocks in x", nullable=True),
        argument("grid_y", "int64", "blocks in y", nullable=True),
        argument("grid_z", "int64", "blocks in z", nullable=True),
        argument("block_x", "int64", "threads of a block in x", nullable=True),
        argument("block_y", "int64", "threads of a block in y", nullable=True),
        argument("block_z", "int64", "threads of a block in z", nullable=True),
        argument("registers", "int64", "registers of a thread", nullable=True),
        argument("shared_memory", "int64", "shared memory of a block", nullable=True, unit="bytes"),
        argument("blocks_per_sm", "float64", "blocks on an SM", nullable=True),
        argument("warps_per_sm", "float64", "warps on an SM", nullable=True),
        argument("occupancy", "float64", "estimated occupancy in percent", nullable=True),
        argument("queued", "int64", "time of queueing in the unit of the producer; 0 if not recorded", nullable=True),
        argument("priority", "int64", "priority of the stream", nullable=True),
        argument("graph", "int64", "graph that the kernel is a node of", nullable=True),
        argument("graph_node", "int64", "node of the graph", nullable=True),
    ),
    key="slice_id",
)
COPIES = TableSpec(
    "kineto_copies",
    "amount of data of a row that names one",
    (
        ref("slice_id", "slices", "slice of the copy or fill, or of the call"),
        argument("bytes", "int64", "size", nullable=True, unit="bytes"),
        argument("bandwidth", "float64", "bandwidth as the producer gives it, GB/s", nullable=True),
        argument("kind", "text", "direction or kind as the producer names it", nullable=True),
    ),
    key="slice_id",
)
COLLECTIVES = TableSpec(
    "kineto_collectives",
    "communication between ranks that a row is part of",
    (
        ref("slice_id", "slices", "slice of the kernel or operator"),
        argument("collective", "text", "operation: allreduce, ...", nullable=True),
        argument("in_elements", "int64", "elements that go in", nullable=True),
        argument("out_elements", "int64", "elements that come out", nullable=True),
        argument("dtype", "text", "type of the elements", nullable=True),
        argument("in_split", "text", "split sizes of the input", nullable=True),
        argument("out_split", "text", "split sizes of the output", nullable=True),
        argument("group_size", "int64", "ranks in the process group", nullable=True),
        argument("group_name", "text", "name of the process group", nullable=True),
        argument("group_description", "text", "description of the process group", nullable=True),
        argument(
            "group_ranks", "text", "ranks of the process group as text; the producer may shorten it", nullable=True
        ),
        argument("sequence", "int64", "number of the operation in its group: equal on all ranks", nullable=True),
        argument("source_rank", "int64", "rank that sends", nullable=True),
        argument("destination_rank", "int64", "rank that receives", nullable=True),
        argument("communicator", "text", "communicator", nullable=True),
        argument("rank", "int64", "rank of the row", nullable=True),
    ),
    key="slice_id",
)
SYNCS = TableSpec(
    "kineto_syncs",
    "what a wait on the device waits for",
    (
        ref("slice_id", "slices", "slice of the wait"),
        argument("sync_kind", "text", "kind of wait", nullable=True),
        argument("wait_stream", "int64", "stream of the event; NULL for none", nullable=True),
        argument("wait_correlation", "int64", "correlation of the call that recorded the event", nullable=True),
        argument("wait_event", "int64", "event; NULL for none", nullable=True),
    ),
    key="slice_id",
)
PYTHON = TableSpec(
    "kineto_python",
    "call of a Python function",
    (
        ref("slice_id", "slices", "slice of the call"),
        argument("call", "int64", "number of the call", nullable=True),
        argument("parent_call", "int64", "number of the calling one; NULL at the root", nullable=True),
        argument("module", "int64", "number of the module object; NULL without one", nullable=True),
    ),
    key="slice_id",
)
ARGUMENTS = TableSpec(
    "kineto_args",
    "all arguments of a slice",
    (
        ref("slice_id", "slices", "slice"),
        ColumnSpec("args", "utf8", "JSON text of the file, read when it is asked for"),
    ),
    key="slice_id",
)
DEVICES = TableSpec(
    "kineto_devices",
    "device of the run",
    (
        ref("input_id", "inputs", "file"),
        ColumnSpec("device", "int64", "number"),
        ColumnSpec("name", "utf8", "product name; empty if the producer gives none"),
        ColumnSpec("memory", "int64", "global memory", nullable=True, unit="bytes"),
        ColumnSpec("capability_major", "int64", "compute capability before the point", nullable=True),
        ColumnSpec("capability_minor", "int64", "compute capability after the point", nullable=True),
        ColumnSpec("sms", "int64", "multiprocessors", nullable=True),
        ColumnSpec("warp", "int64", "threads of a warp", nullable=True),
        ColumnSpec("properties", "utf8", "all properties as JSON"),
    ),
    key="input_id",
)
RUNS = TableSpec(
    "kineto_runs",
    "place of the file in its run",
    (
        ref("input_id", "inputs", "file"),
        ColumnSpec("rank", "int64", "rank; NULL if not distributed", nullable=True),
        ColumnSpec("world_size", "int64", "number of ranks", nullable=True),
        ColumnSpec("backend", "utf8", "communication library; empty if not distributed"),
        ColumnSpec("schema_version", "int64", "version of the format; NULL if not given", nullable=True),
        ColumnSpec(
            "base_ns", "int64", "start of the relative times in Unix time; NULL if they are absolute", nullable=True
        ),
        ColumnSpec("trace_name", "utf8", "name that the producer gave the file"),
    ),
    key="input_id",
)
GROUPS = TableSpec(
    "kineto_groups",
    "process group of the run",
    (
        ref("input_id", "inputs", "file"),
        ColumnSpec("name", "utf8", "name"),
        ColumnSpec("description", "utf8", "description"),
        ColumnSpec("backend", "utf8", "communication libraries"),
        ColumnSpec("size", "int64", "number of ranks", nullable=True),
        ColumnSpec("ranks", "utf8", "ranks as JSON"),
    ),
    key="input_id",
)
METADATA = TableSpec(
    "kineto_metadata",
    "member of the file besides the events",
    (
        ref("input_id", "inputs", "file"),
        ColumnSpec("key", "utf8", "name"),
        ColumnSpec("value", "utf8", "JSON text of the file"),
    ),
    key="input_id",
)
LOG = TableSpec(
    "kineto_log",
    "entry of the log of the profiler",
    (
        ref("input_id", "inputs", "file"),
        ColumnSpec("level", "text", "level: ERROR, WARNING, INFO"),
        ColumnSpec("message", "utf8", "text"),
    ),
    key="input_id",
)
TABLES: tuple[TableSpec, ...] = (
    OPS, KERNELS, COPIES, COLLECTIVES, SYNCS, PYTHON, ARGUMENTS, DEVICES, RUNS, GROUPS, METADATA, LOG,
)  # fmt: skip

EVENTS = TableSpec(
    "kineto.events",
    "event of the file",
    (
        ColumnSpec("offset", "int64", "place in the file", unit="bytes"),
        ColumnSpec("size", "int64", "size in the file", unit="bytes"),
        ColumnSpec("phase", "utf8", "phase; empty without one"),
        ColumnSpec("name", "utf8", "name"),
        ColumnSpec("category", "utf8", "category; empty without one"),
        ColumnSpec("process", "utf8", "process as written"),
        ColumnSpec("thread", "utf8", "thread as written"),
        ColumnSpec("time_ns", "int64", "time as written, in ns", nullable=True, unit="ns"),
        ColumnSpec("dur_ns", "int64", "duration as written, in ns", nullable=True, unit="ns"),
    ),
)

# --- stats --------------------------------------------------------------------------------------------------------

STATS: tuple[StatSpec, ...] = (
    StatSpec("kineto_unreadable_event", "data_loss", "places in the list of events with something else: lost"),
    StatSpec(
        "kineto_unreadable_bytes",
        "data_loss",
        "unreadable bytes outside of the list of events: lost",
        lost_units=("byte",),
    ),
    StatSpec(
        "kineto_unreadable_metadata", "data_loss", "members besides the events whose value is not JSON: kept as text"
    ),
    StatSpec("kineto_missing_time", "data_loss", "events without a time, or after the year 2116: not on the timeline"),
    StatSpec("kineto_unknown_phase", "data_loss", "events of a phase that the profiler does not write: lost"),
    StatSpec("kineto_odd_counter", "data_loss", "values of counters that are not numbers: lost"),
    StatSpec(
        "kineto_unfinished",
        "notice",
        "rows without a duration: their end is unknown",
        finding="LS105 notice",
        share_of="events",
    ),
    StatSpec(
        "kineto_negative_duration",
        "error",
        "rows with a duration below 0, which the producer never writes: no end",
    ),
    StatSpec(
        "kineto_rounded_time",
        "notice",
        "events whose times have digits below 1 ns: rounded half up",
        finding="LS305 notice",
        share_of="events",
    ),
    StatSpec(
        "kineto_inexact_float",
        "notice",
        "times that a float64 of microseconds cannot hold to 1 ns: other tools read them wrong",
        finding="LS305 notice",
    ),
    StatSpec(
        "kineto_missing_base",
        "notice",
        "files with relative times and without the time that they count from: the date is unknown",
        finding="LS305 warning",
    ),
    StatSpec(
        "kineto_irregular_base",
        "notice",
        "bases that are not a multiple of three months, as the producer makes them: the date may be wrong",
        finding="LS305 warning",
    ),
    StatSpec(
        "kineto_device_clock",
        "info",
        "device clocks that the producer converted to host time: how well is not in the file",
        silent="holds for all files of this format: `lanescope doctor` has it as a limit",
    ),
    StatSpec(
        "kineto_missing_names",
        "notice",
        "files without names of processes and threads: numbers are shown",
        finding="LS404 notice",
    ),
    StatSpec(
        "kineto_repeated_metadata",
        "info",
        "names of processes and threads that come again: the last one is used",
        silent="files of the producer contain each of them several times",
    ),
    StatSpec(
        "kineto_replaced_flow",
        "info",
        "launch flows of the file: flows are made from correlations instead",
        silent="the producer also writes ends for calls that launched nothing",
    ),
    StatSpec(
        "kineto_unmatched_backward",
        "notice",
        "flows from forward to backward with one end only: not on the timeline",
        finding="LS401 notice",
    ),
    StatSpec(
        "kineto_unplaced_flow",
        "notice",
        "ends of flows from forward to backward that no row starts at: drawn without a row",
        finding="LS401 notice",
    ),
    StatSpec(
        "kineto_unlaunched",
        "notice",
        "rows of device work without a call: launched before the record or by an unrecorded thread",
        finding="LS401 notice",
    ),
    StatSpec(
        "kineto_repeated_call",
        "notice",
        "calls with a correlation that an earlier call has: the first one is used",
        finding="LS402 warning",
    ),
    StatSpec(
        "kineto_unknown_category",
        "notice",
        "rows of an unknown category: on a lane of their thread or stream",
        finding="LS404 notice",
        share_of="events",
    ),
    StatSpec(
        "kineto_other_lane",
        "notice",
        "kernels and copies whose arguments name another stream or device than that of their row",
        finding="LS404 warning",
    ),
    StatSpec(
        "kineto_odd_duration",
        "notice",
        "events of a phase without a duration that have one: their phase may be wrong",
        finding="LS404 warning",
    ),
    StatSpec(
        "kineto_odd_argument",
        "notice",
        "arguments of another type than the producer writes: only in `kineto_args`",
        finding="LS404 notice",
    ),
    StatSpec(
        "kineto_damaged_text",
        "notice",
        "distinct texts that are not valid: what cannot be read is shown as U+FFFD",
        finding="LS404 notice",
    ),
    StatSpec(
        "kineto_repeated_key",
        "notice",
        "events and files with a key twice: the last value is used",
        finding="LS404 notice",
    ),
    StatSpec(
        "kineto_comma",
        "notice",
        "commas that are missing or too many: the file was changed after it was written",
        finding="LS404 notice",
    ),
    StatSpec(
        "kineto_repeated_list",
        "notice",
        "further lists of events in one file: all are read, where other readers may read one alone",
        finding="LS404 notice",
    ),
    StatSpec("kineto_empty", "notice", "files without a row of any kind", finding="LS004 warning"),
)
