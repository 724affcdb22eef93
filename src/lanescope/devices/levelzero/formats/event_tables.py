"""Tables of the event model: what readers of texts and recordings have in common."""

from __future__ import annotations

from lanescope.trace.schema import ColumnSpec, TableSpec

_SEQ = ColumnSpec("seq", "int64", "position in the stream, the same numbers for all kinds of records")
_TS = ColumnSpec("ts", "int64", "host time, ns since the Unix epoch where the date is known", unit="ns")
_THREAD = ColumnSpec("thread_id", "int32", "row of `threads`")
_PROCESS = ColumnSpec("process_id", "int32", "row of `processes`")
_OP = ColumnSpec("op_id", "uint64", "number of the operation, unique in its process", nullable=True)
_RUN = ColumnSpec("run", "int64", "which execution of its list, 1 the first", nullable=True)
_EVENT = ColumnSpec(
    "event", "uint64", "handle of the event, or its number where operations have numbers", nullable=True
)
_LIST = ColumnSpec("list", "uint64", "handle of the command list, or its number where operations have numbers")
_DEVICE = ColumnSpec("device", "uint64", "handle of the device or sub-device")

# --- the event model: what any recorder of Level Zero has to tell -------------------------------------------------

PROCESSES = TableSpec(
    "processes",
    "a traced process",
    (ColumnSpec("host", "utf8", "name of its host"), ColumnSpec("pid", "int64", "its number")),
)
THREADS = TableSpec(
    "threads",
    "a thread that called the API",
    (_PROCESS, ColumnSpec("tid", "int64", "its number")),
)
CALLS = TableSpec(
    "calls",
    "entry or exit of an API function",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("function", "text", "name of the function"),
        ColumnSpec("is_exit", "bool", "whether it returns"),
        ColumnSpec("result", "text", "what it returned; exits only", nullable=True),
        ColumnSpec(
            "bytes", "uint64", "memory that a call without a device operation touches", nullable=True, unit="bytes"
        ),
    ),
)
APPENDS = TableSpec(
    "appends",
    "an operation was appended to a command list",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("function", "text", "name of the function that appended it"),
        ColumnSpec("kind", "text", "kernel, copy, fill, barrier, signal, other"),
        _OP,
        _LIST,
        _EVENT,
        ColumnSpec("waits", "int64", "number of events that it waits for"),
        ColumnSpec("kernel", "uint64", "handle or number of the kernel", nullable=True),
        ColumnSpec("groups_x", "int64", "thread groups in x", nullable=True),
        ColumnSpec("groups_y", "int64", "thread groups in y", nullable=True),
        ColumnSpec("groups_z", "int64", "thread groups in z", nullable=True),
        ColumnSpec("bytes", "uint64", "size of a copy or fill", nullable=True, unit="bytes"),
        ColumnSpec("dst", "uint64", "address that is written", nullable=True),
        ColumnSpec("src", "uint64", "address that is read", nullable=True),
        ColumnSpec("dst_memory", "text", "kind of memory written, where the record says it", nullable=True),
        ColumnSpec("src_memory", "text", "kind of memory read, where the record says it", nullable=True),
        ColumnSpec("how", "text", "how its timestamps come, or UNTIMED", nullable=True),
        ColumnSpec("reason", "text", "why it is not timed", nullable=True),
    ),
)
WAITS = TableSpec(
    "waits",
    "an event that an appended operation waits for",
    (ColumnSpec("append", "int64", "row of `appends`"), ColumnSpec("event", "uint64", "handle or number of the event")),
)
PUSHES = TableSpec(
    "pushes",
    "the Append that is under way in this thread will be timed through an event",
    (_SEQ, _TS, _THREAD, ColumnSpec("event", "uint64", "handle of the event")),
)
RESULTS = TableSpec(
    "results",
    "the timestamps of one run of an operation were read",
    (
        _SEQ,
        _TS,
        _THREAD,
        _OP,
        _RUN,
        _EVENT,
        ColumnSpec("status", "text", "result of asking for the event's status"),
        ColumnSpec("timestamp_status", "text", "result of asking for its timestamps"),
        ColumnSpec("global_start", "uint64", "device clock at the begin", unit="ticks"),
        ColumnSpec("global_end", "uint64", "device clock at the end", unit="ticks"),
        ColumnSpec("context_start", "uint64", "context clock at the begin", unit="ticks"),
        ColumnSpec("context_end", "uint64", "context clock at the end", unit="ticks"),
    ),
)
RUNS = TableSpec(
    "runs",
    "a regular command list was executed",
    (
        _SEQ,
        _TS,
        _THREAD,
        _LIST,
        ColumnSpec("queue", "uint64", "handle of the queue, or of the immediate list that took it"),
        _RUN,
        ColumnSpec("exit_ts", "int64", "when the call returned", nullable=True, unit="ns"),
        ColumnSpec("quiet", "bool", "whether results were not asked for"),
    ),
)
LISTS = TableSpec(
    "lists",
    "a command list was created, emptied or destroyed",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("action", "text", "create, reset, destroy"),
        _LIST,
        ColumnSpec("handle", "uint64", "handle, where `list` is a number", nullable=True),
        ColumnSpec("context", "uint64", "handle of the context", nullable=True),
        ColumnSpec("device", "uint64", "handle of the device", nullable=True),
        ColumnSpec("ordinal", "int64", "queue group", nullable=True),
        ColumnSpec("index", "int64", "queue within its group; immediate lists", nullable=True),
        ColumnSpec("immediate", "bool", "whether it executes what is appended at once", nullable=True),
        ColumnSpec("in_order", "bool", "whether operations run one after the other", nullable=True),
        ColumnSpec("compute", "bool", "whether its queue group can run kernels", nullable=True),
        ColumnSpec("reason", "text", "why its operations are not timed", nullable=True),
    ),
)
QUEUES = TableSpec(
    "queues",
    "a command queue was created",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("queue", "uint64", "handle of the queue"),
        ColumnSpec("device", "uint64", "handle of the device", nullable=True),
        ColumnSpec("ordinal", "int64", "queue group", nullable=True),
        ColumnSpec("index", "int64", "queue within its group", nullable=True),
    ),
)
EVENT_ENDS = TableSpec(
    "event_ends",
    "an event was destroyed: its handle may come back as another one",
    (_SEQ, _TS, _THREAD, ColumnSpec("event", "uint64", "handle of the event")),
)
KERNELS = TableSpec(
    "kernels",
    "something became known of a kernel",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("action", "text", "create (forgets what was known), update, destroy"),
        ColumnSpec("kernel", "uint64", "handle or number of the kernel"),
        ColumnSpec("name", "text", "its name", nullable=True),
        ColumnSpec("simd", "int64", "largest sub-group", nullable=True),
        ColumnSpec("group_x", "int64", "group size in x", nullable=True),
        ColumnSpec("group_y", "int64", "group size in y", nullable=True),
        ColumnSpec("group_z", "int64", "group size in z", nullable=True),
    ),
)
ALLOCATIONS = TableSpec(
    "allocations",
    "memory was allocated or freed",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("action", "text", "alloc, free"),
        ColumnSpec("base", "uint64", "its address"),
        ColumnSpec("bytes", "uint64", "its size; 0 when freed", unit="bytes"),
        ColumnSpec("memory", "text", "shared, device, host; empty when freed"),
    ),
)
DEVICES = TableSpec(
    "devices",
    "a device or sub-device as its driver describes it",
    (
        _SEQ,
        _TS,
        _THREAD,
        _DEVICE,
        ColumnSpec("parent", "uint64", "handle of the root device; sub-devices only", nullable=True),
        ColumnSpec("uuid", "utf8", "hexadecimal, as the driver orders the bytes; empty when unknown"),
        ColumnSpec("name", "utf8", "name of the model"),
        ColumnSpec("subdevice", "int64", "number within its root device", nullable=True),
        ColumnSpec("ticks_per_second_num", "int64", "frequency of its clock, numerator", nullable=True, unit="Hz"),
        ColumnSpec("ticks_per_second_den", "int64", "frequency of its clock, denominator", nullable=True),
        ColumnSpec("is_rounded", "bool", "whether the driver gave whole nanoseconds per tick only"),
        ColumnSpec("timestamp_bits", "int64", "valid bits of readings of its clock"),
        ColumnSpec("kernel_timestamp_bits", "int64", "valid bits of the timestamps of operations"),
    ),
)
CLOCK_PAIRS = TableSpec(
    "clock_pairs",
    "host and device clock, read together",
    (
        _SEQ,
        _TS,
        _THREAD,
        _DEVICE,
        ColumnSpec("host_ns", "int64", "host time", unit="ns"),
        ColumnSpec("device_ticks", "uint64", "device clock", unit="ticks"),
        ColumnSpec("error_ns", "int64", "how far the two may lie apart", nullable=True, unit="ns"),
    ),
)
LOSSES = TableSpec(
    "losses",
    "a run of an operation that will have no result",
    (_SEQ, _TS, _THREAD, _OP, _RUN, ColumnSpec("reason", "text", "why")),
)
DEGRADATIONS = TableSpec(
    "degradations",
    "something that the recorder gave up",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("scope", "text", "process, context, list, op, event"),
        ColumnSpec("number", "uint64", "which one"),
        ColumnSpec("reason", "text", "why"),
        ColumnSpec("code", "uint64", "what the driver said"),
        ColumnSpec("count", "int64", "how often"),
    ),
)

#: The event model, by name. Tables with ``seq`` are in its order.
EVENTS: tuple[TableSpec, ...] = (
    PROCESSES,
    THREADS,
    CALLS,
    APPENDS,
    WAITS,
    PUSHES,
    RESULTS,
    RUNS,
    LISTS,
    QUEUES,
    EVENT_ENDS,
    KERNELS,
    ALLOCATIONS,
    DEVICES,
    CLOCK_PAIRS,
    LOSSES,
    DEGRADATIONS,
)
