"""The event model, the detail tables and the stats of the family."""

from __future__ import annotations

from lanescope.trace import ColumnSpec, StatSpec, TableSpec

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

# --- detail tables ------------------------------------------------------------------------------------------------

CALL_DETAILS = TableSpec(
    "levelzero_calls",
    "what is known of an API call besides its times",
    (
        ColumnSpec("slice_id", "int64", "the slice of the call", references="slices"),
        ColumnSpec("exit_seq", "int64", "position of its return in the stream", nullable=True),
        ColumnSpec("result", "text", "what it returned", nullable=True, is_argument=True),
        ColumnSpec("error", "bool", "whether that is neither success nor not-ready"),
        ColumnSpec("bytes", "uint64", "memory touched, no operation", nullable=True, unit="bytes", is_argument=True),
    ),
    key="slice_id",
)
OPERATIONS = TableSpec(
    "levelzero_operations",
    "what is known of a device operation besides its times",
    (
        ColumnSpec("slice_id", "int64", "the slice of the operation", references="slices"),
        ColumnSpec("kind", "text", "kernel, copy, fill, barrier, other"),
        ColumnSpec("function", "text", "function that appended it", is_argument=True),
        ColumnSpec("op_id", "uint64", "number of the operation", nullable=True, is_argument=True),
        ColumnSpec("run", "int64", "which run of the appended operation, 1 the first", is_argument=True),
        ColumnSpec("thread_track", "int64", "lane of the thread that appended it", references="tracks"),
        ColumnSpec("harvest_track", "int64", "lane of the thread that saw its end", references="tracks"),
        ColumnSpec("append_slice", "int64", "slice of the Append call", nullable=True, references="slices"),
        ColumnSpec(
            "submit_slice", "int64", "slice of the call that gave it to the device", nullable=True, references="slices"
        ),
        ColumnSpec("append_ts", "int64", "begin of the Append call", unit="ns", is_time=True),
        ColumnSpec("submit_ts", "int64", "begin of the call that gave it to the device", unit="ns", is_time=True),
        ColumnSpec("harvest_ts", "int64", "when its timestamps were read", unit="ns", is_time=True),
        ColumnSpec("harvest_seq", "int64", "position of that record in the stream"),
        ColumnSpec("list", "uint64", "handle or number of its command list"),
        ColumnSpec("ordinal", "int64", "queue group it ran on", nullable=True, is_argument=True),
        ColumnSpec("index", "int64", "queue within the group", nullable=True, is_argument=True),
        ColumnSpec("simd", "int64", "largest sub-group of the kernel", nullable=True, is_argument=True),
        ColumnSpec("groups_x", "int64", "thread groups in x", nullable=True, is_argument=True),
        ColumnSpec("groups_y", "int64", "thread groups in y", nullable=True, is_argument=True),
        ColumnSpec("groups_z", "int64", "thread groups in z", nullable=True, is_argument=True),
        ColumnSpec("group_x", "int64", "group size in x", nullable=True, is_argument=True),
        ColumnSpec("group_y", "int64", "group size in y", nullable=True, is_argument=True),
        ColumnSpec("group_z", "int64", "group size in z", nullable=True, is_argument=True),
        ColumnSpec("bytes", "uint64", "size of a copy or fill", nullable=True, unit="bytes", is_argument=True),
        ColumnSpec(
            "dst_memory",
            "text",
            "kind of memory written: shared, device, host, system",
            nullable=True,
            is_argument=True,
        ),
        ColumnSpec("src_memory", "text", "kind of memory read", nullable=True, is_argument=True),
        ColumnSpec("status", "text", "result of asking for its end"),
        ColumnSpec("error", "bool", "whether it, or the reading of its timestamps, failed"),
        ColumnSpec("global_start", "uint64", "device clock at the begin, raw", unit="ticks"),
        ColumnSpec("global_end", "uint64", "device clock at the end, raw", unit="ticks"),
        ColumnSpec("context_start", "uint64", "context clock at the begin, raw", unit="ticks"),
        ColumnSpec("context_end", "uint64", "context clock at the end, raw", unit="ticks"),
    ),
    key="slice_id",
)
THREAD_DETAILS = TableSpec(
    "levelzero_threads",
    "whose lane it is",
    (
        ColumnSpec("track_id", "int64", "the lane of the thread", references="tracks"),
        ColumnSpec("host", "utf8", "name of the host"),
        ColumnSpec("pid", "int64", "number of the process"),
        ColumnSpec("tid", "int64", "number of the thread"),
    ),
    key="track_id",
)
QUEUE_DETAILS = TableSpec(
    "levelzero_queues",
    "whose queue it is",
    (
        ColumnSpec("track_id", "int64", "the lane of the queue", references="tracks"),
        ColumnSpec("device_uuid", "utf8", "UUID of the root device, hexadecimal; empty when unknown"),
        ColumnSpec("subdevice_uuid", "utf8", "UUID of the sub-device; empty when there is none or it is unknown"),
        ColumnSpec("subdevice", "int64", "number of the sub-device", nullable=True),
        ColumnSpec("host", "utf8", "name of the host"),
        ColumnSpec("pid", "int64", "number of the process"),
        ColumnSpec("handle", "uint64", "handle of the queue, or handle or number of the list", nullable=True),
        ColumnSpec("immediate", "bool", "whether it is the queue of an immediate list", nullable=True),
    ),
    key="track_id",
)
DETAILS: tuple[TableSpec, ...] = (CALL_DETAILS, OPERATIONS, THREAD_DETAILS, QUEUE_DETAILS)

# --- stats --------------------------------------------------------------------------------------------------------

STATS: tuple[StatSpec, ...] = (
    StatSpec("levelzero_bad_line", "data_loss", "a line is no record; what it said is lost"),
    StatSpec("levelzero_bad_field", "data_loss", "a field of a line is missing or cannot be read; the line is lost"),
    StatSpec("levelzero_bad_bytes", "data_loss", "bytes of a recording are no events; what they said is lost"),
    StatSpec("levelzero_discarded", "data_loss", "the recorder had no room for an event, most often on a full disk"),
    StatSpec(
        "levelzero_cut_short",
        "data_loss",
        "a process ended without its recorder: it was killed, or left by _exit. At most the event that a thread was "
        "writing is missing",
    ),
    StatSpec(
        "levelzero_recorder_waited",
        "info",
        "a thread of the program had to wait for another one in the recorder, so often; its times hold the waits",
    ),
    StatSpec("levelzero_foreign_record", "info", "a record that says nothing about host calls or device operations"),
    StatSpec(
        "levelzero_thapi_time", "notice", "fractions of a second were divided by 10^6, as THAPI's own tests mean them"
    ),
    StatSpec("levelzero_no_date", "info", "the text has times of the day only; the day is not known"),
    StatSpec(
        "levelzero_time_backwards", "notice", "a record is older than the one before it; the order of the file counts"
    ),
    StatSpec("levelzero_exit_unmatched", "notice", "a function returned that was never entered; it stands in no slice"),
    StatSpec("levelzero_call_open", "info", "a call did not return before the trace ended, or its return is missing"),
    StatSpec("levelzero_result_unmatched", "data_loss", "a result of no known operation; it stands in no slice"),
    StatSpec("levelzero_operation_unmatched", "data_loss", "an operation was given to the device and has no result"),
    StatSpec("levelzero_result_duplicate", "error", "a second result for one run of an operation; the first was kept"),
    StatSpec("levelzero_append_duplicate", "error", "two operations of a process have one number; the first was kept"),
    StatSpec(
        "levelzero_interleaved_duplicate",
        "notice",
        "an event was used again while results of earlier uses were missing, so whose result this is cannot be known: "
        "the slice is marked inferred",
    ),
    StatSpec("levelzero_untimed", "info", "an operation was not timed; it stands in no slice of a device"),
    StatSpec("levelzero_never_run", "info", "an operation was appended to a list that was never executed"),
    StatSpec("levelzero_push_ignored", "info", "timing was announced outside any Append; its results are ignored"),
    StatSpec("levelzero_result_not_ready", "info", "a result that says not-ready; it carries no timestamps"),
    StatSpec(
        "levelzero_result_error", "error", "an operation or the reading of its timestamps failed; its time is unknown"
    ),
    StatSpec(
        "levelzero_lost", "data_loss", "the recorder gave up a result: the device, or a call that asks it, failed"
    ),
    StatSpec(
        "levelzero_undrained",
        "data_loss",
        "a context or the process ended before the program had seen the end of an operation; when it ran is not known",
    ),
    StatSpec(
        "levelzero_degraded",
        "notice",
        "an operation of a command list is not timed, or its ticks came in another way than usual: the recorder's lane "
        "says which list, and why",
    ),
    StatSpec(
        "levelzero_device_unknown",
        "notice",
        "nothing is known of the device of an operation: it stands at its submission, a tick drawn as 1 ns",
    ),
    StatSpec(
        "levelzero_clock_unanchored", "notice", "no reading of both clocks: an operation stands at its submission"
    ),
    StatSpec(
        "levelzero_clock_rounded", "notice", "the clock's rate is known in whole ns per tick only: an estimated time"
    ),
    StatSpec("levelzero_clock_pair_suspect", "notice", "a reading of both clocks contradicts others; it was not used"),
    StatSpec("levelzero_kernel_unnamed", "notice", "the name of a kernel is not known"),
)
