"""Tables of the event model: what readers of texts and recordings have in common."""

from __future__ import annotations

from lanescope.trace.schema import ColumnSpec, TableSpec

_SEQ = ColumnSpec("seq", "int64", "position in the stream, one sequence for all kinds of records")
_TS = ColumnSpec("ts", "int64", "host time, ns since the Unix epoch if the date is known", unit="ns")
_THREAD = ColumnSpec("thread_id", "int32", "row of `threads`")
_PROCESS = ColumnSpec("process_id", "int32", "row of `processes`")
_OP = ColumnSpec(
    "op_id", "uint64", "operation number, unique in its process; NULL if the recorder has none", nullable=True
)
_RUN = ColumnSpec("run", "int64", "execution index of its list, from 1; NULL if not recorded", nullable=True)
_EVENT = ColumnSpec("event", "uint64", "handle of the event, or its number if operations have numbers", nullable=True)
_LIST = ColumnSpec("list", "uint64", "handle of the command list, or its number if operations have numbers")
_DEVICE = ColumnSpec("device", "uint64", "handle of the device or sub-device")

# --- the event model of all recorders of Level Zero ----------------------------------------------------------------

PROCESSES = TableSpec(
    "processes",
    "a traced process",
    (ColumnSpec("host", "utf8", "host name"), ColumnSpec("pid", "int64", "process ID")),
)
RANKS = TableSpec(
    "ranks",
    "the rank that a process has in a parallel program",
    (
        _PROCESS,
        ColumnSpec("rank", "int64", "rank of the process"),
        ColumnSpec("ranks", "int64", "number of ranks; 0 if unknown"),
    ),
)
THREADS = TableSpec(
    "threads",
    "a thread that called the API",
    (_PROCESS, ColumnSpec("tid", "int64", "thread ID")),
)
CALLS = TableSpec(
    "calls",
    "entry or exit of an API function",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("function", "text", "function name"),
        ColumnSpec("is_exit", "bool", "whether the record is a return"),
        ColumnSpec("result", "text", "return value; NULL for entries", nullable=True),
        ColumnSpec(
            "bytes",
            "uint64",
            "memory accessed without a device operation; NULL for other calls",
            nullable=True,
            unit="bytes",
        ),
    ),
)
RECORDER_TIMES = TableSpec(
    "recorder_times",
    "time of the recorder within a call; absent if it was not measured",
    (
        ColumnSpec("seq", "int64", "position of the return in the stream"),
        _TS,
        _THREAD,
        ColumnSpec("dur", "int64", "time of the call outside the driver's function", unit="ns"),
    ),
)
APPENDS = TableSpec(
    "appends",
    "an operation that was appended to a command list",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("function", "text", "function that appended the operation"),
        ColumnSpec("kind", "text", "operation kind: kernel, copy, fill, barrier, signal, other"),
        _OP,
        _LIST,
        _EVENT,
        ColumnSpec("waits", "int64", "number of events that the operation waits for"),
        ColumnSpec("kernel", "uint64", "handle or number of the kernel; NULL for other operations", nullable=True),
        ColumnSpec("groups_x", "int64", "thread groups in x; NULL for other operations", nullable=True),
        ColumnSpec("groups_y", "int64", "thread groups in y; NULL for other operations", nullable=True),
        ColumnSpec("groups_z", "int64", "thread groups in z; NULL for other operations", nullable=True),
        ColumnSpec("bytes", "uint64", "size of a copy or fill; NULL for other operations", nullable=True, unit="bytes"),
        ColumnSpec("dst", "uint64", "destination address; NULL for other operations", nullable=True),
        ColumnSpec("src", "uint64", "source address; NULL for other operations", nullable=True),
        ColumnSpec("dst_memory", "text", "destination memory kind; NULL if not recorded", nullable=True),
        ColumnSpec("src_memory", "text", "source memory kind; NULL if not recorded", nullable=True),
        ColumnSpec("how", "text", "source of its timestamps, or UNTIMED; NULL if not recorded", nullable=True),
        ColumnSpec("reason", "text", "reason for missing timestamps; NULL if not recorded", nullable=True),
    ),
)
WAITS = TableSpec(
    "waits",
    "an event that an appended operation waits for",
    (ColumnSpec("append", "int64", "row of `appends`"), ColumnSpec("event", "uint64", "handle or number of the event")),
)
PUSHES = TableSpec(
    "pushes",
    "an announcement that the current Append of this thread is measured through an event",
    (_SEQ, _TS, _THREAD, ColumnSpec("event", "uint64", "handle of the event")),
)
RESULTS = TableSpec(
    "results",
    "the timestamps of one execution of an operation",
    (
        _SEQ,
        _TS,
        _THREAD,
        _OP,
        _RUN,
        _EVENT,
        ColumnSpec("status", "text", "result of the status query of the event"),
        ColumnSpec("timestamp_status", "text", "result of the timestamp query"),
        ColumnSpec("global_start", "uint64", "device clock at the start", unit="ticks"),
        ColumnSpec("global_end", "uint64", "device clock at the end", unit="ticks"),
        ColumnSpec("context_start", "uint64", "context clock at the start", unit="ticks"),
        ColumnSpec("context_end", "uint64", "context clock at the end", unit="ticks"),
    ),
)
RUNS = TableSpec(
    "runs",
    "an execution of a regular command list",
    (
        _SEQ,
        _TS,
        _THREAD,
        _LIST,
        ColumnSpec("queue", "uint64", "handle of the queue, or of the immediate list that executed it"),
        _RUN,
        ColumnSpec("exit_ts", "int64", "time of the return; NULL if not recorded", nullable=True, unit="ns"),
        ColumnSpec("quiet", "bool", "whether results were not requested"),
    ),
)
LISTS = TableSpec(
    "lists",
    "creation, reset or destruction of a command list",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("action", "text", "action: create, reset, destroy"),
        _LIST,
        ColumnSpec("handle", "uint64", "handle if `list` is a number; NULL otherwise", nullable=True),
        ColumnSpec("context", "uint64", "handle of the context; NULL if not recorded", nullable=True),
        ColumnSpec("device", "uint64", "handle of the device; NULL if not recorded", nullable=True),
        ColumnSpec("ordinal", "int64", "queue group; NULL if not recorded", nullable=True),
        ColumnSpec("index", "int64", "queue within its group; NULL for regular lists", nullable=True),
        ColumnSpec(
            "immediate", "bool", "whether appended operations execute immediately; NULL if not recorded", nullable=True
        ),
        ColumnSpec("in_order", "bool", "whether operations execute in order; NULL if not recorded", nullable=True),
        ColumnSpec(
            "compute", "bool", "whether the queue group can execute kernels; NULL if not recorded", nullable=True
        ),
        ColumnSpec(
            "reason", "text", "reason for missing timestamps of its operations; NULL if not recorded", nullable=True
        ),
    ),
)
QUEUES = TableSpec(
    "queues",
    "the creation of a command queue",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("queue", "uint64", "handle of the queue"),
        ColumnSpec("device", "uint64", "handle of the device; NULL if not recorded", nullable=True),
        ColumnSpec("ordinal", "int64", "queue group; NULL if not recorded", nullable=True),
        ColumnSpec("index", "int64", "queue within its group; NULL if not recorded", nullable=True),
    ),
)
HOST_WAITS = TableSpec(
    "host_waits",
    "a call that waits for work on devices",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("target", "text", "kind of object: queue, list, event, fence, device"),
        ColumnSpec("handle", "uint64", "handle of the object"),
    ),
)
FENCES = TableSpec(
    "fences",
    "an execution of command lists that signals a fence",
    (_SEQ, _TS, _THREAD, ColumnSpec("fence", "uint64", "handle of the fence")),
)
EVENT_ENDS = TableSpec(
    "event_ends",
    "the destruction of an event: its handle may be reused",
    (_SEQ, _TS, _THREAD, ColumnSpec("event", "uint64", "handle of the event")),
)
KERNELS = TableSpec(
    "kernels",
    "a property of a kernel",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("action", "text", "create (discards earlier properties), update, destroy"),
        ColumnSpec("kernel", "uint64", "handle or number of the kernel"),
        ColumnSpec("name", "text", "kernel name; NULL if not recorded", nullable=True),
        ColumnSpec("simd", "int64", "largest sub-group; NULL if not recorded", nullable=True),
        ColumnSpec("group_x", "int64", "group size in x; NULL if not recorded", nullable=True),
        ColumnSpec("group_y", "int64", "group size in y; NULL if not recorded", nullable=True),
        ColumnSpec("group_z", "int64", "group size in z; NULL if not recorded", nullable=True),
    ),
)
ALLOCATIONS = TableSpec(
    "allocations",
    "an allocation or deallocation of memory",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("action", "text", "action: alloc, free"),
        ColumnSpec("base", "uint64", "address"),
        ColumnSpec("bytes", "uint64", "size; 0 for a deallocation", unit="bytes"),
        ColumnSpec("memory", "text", "memory kind: shared, device, host; empty for a deallocation"),
    ),
)
DEVICES = TableSpec(
    "devices",
    "a device or sub-device with its properties from the driver",
    (
        _SEQ,
        _TS,
        _THREAD,
        _DEVICE,
        ColumnSpec("parent", "uint64", "handle of the root device; NULL for a root device", nullable=True),
        ColumnSpec("uuid", "utf8", "UUID, hexadecimal in the byte order of the driver; empty if unknown"),
        ColumnSpec("name", "utf8", "model name"),
        ColumnSpec("subdevice", "int64", "number within its root device; NULL for a root device", nullable=True),
        ColumnSpec(
            "ticks_per_second_num", "int64", "clock frequency, numerator; NULL if unknown", nullable=True, unit="Hz"
        ),
        ColumnSpec("ticks_per_second_den", "int64", "clock frequency, denominator; NULL if unknown", nullable=True),
        ColumnSpec("is_rounded", "bool", "whether the driver reports whole nanoseconds per tick only"),
        ColumnSpec("timestamp_bits", "int64", "valid bits of clock readings; 0 if not known"),
        ColumnSpec("kernel_timestamp_bits", "int64", "valid bits of operation timestamps; 0 if not known"),
    ),
)
CLOCK_PAIRS = TableSpec(
    "clock_pairs",
    "a simultaneous reading of host and device clock",
    (
        _SEQ,
        _TS,
        _THREAD,
        _DEVICE,
        ColumnSpec("host_ns", "int64", "host time", unit="ns"),
        ColumnSpec("device_ticks", "uint64", "device clock", unit="ticks"),
        ColumnSpec(
            "error_ns",
            "int64",
            "maximum difference between the two readings; NULL if unknown",
            nullable=True,
            unit="ns",
        ),
    ),
)
LOSSES = TableSpec(
    "losses",
    "an execution of an operation that has no result",
    (_SEQ, _TS, _THREAD, _OP, _RUN, ColumnSpec("reason", "text", "reason")),
)
DEGRADATIONS = TableSpec(
    "degradations",
    "a degradation of the recording",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("scope", "text", "affected object: process, context, list, op, event"),
        ColumnSpec("number", "uint64", "number of the affected object"),
        ColumnSpec("reason", "text", "reason"),
        ColumnSpec("code", "uint64", "result code of the driver"),
        ColumnSpec("count", "int64", "number of occurrences"),
    ),
)
ARGUMENTS = TableSpec(
    "arguments",
    "the structures that a call was given",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("flags", "text", "flags of the descriptor; NULL without them", nullable=True),
        ColumnSpec("host_flags", "text", "flags of the host part of an allocation; NULL without them", nullable=True),
        ColumnSpec("ordinal", "int64", "queue group, or memory; NULL without one", nullable=True),
        ColumnSpec("index", "int64", "queue in the group, or event in the pool; NULL without one", nullable=True),
        ColumnSpec("mode", "text", "mode of a queue; NULL without one", nullable=True),
        ColumnSpec("priority", "text", "priority of a queue; NULL without one", nullable=True),
        ColumnSpec("count", "int64", "events of a pool; NULL without one", nullable=True),
        ColumnSpec("signal", "text", "signal scope of an event; NULL without one", nullable=True),
        ColumnSpec("wait", "text", "wait scope of an event; NULL without one", nullable=True),
        ColumnSpec("bytes", "uint64", "size of memory or of a module; NULL without one", nullable=True, unit="bytes"),
        ColumnSpec("alignment", "uint64", "alignment of memory; NULL without one", nullable=True, unit="bytes"),
        ColumnSpec("format", "text", "format of a module; NULL without one", nullable=True),
        ColumnSpec("build_flags", "text", "build flags of a module; NULL without one", nullable=True),
        ColumnSpec("extensions", "text", "structure types of the pNext chains; NULL without any", nullable=True),
        ColumnSpec("state", "text", "state of the structures: read, null, unreadable"),
    ),
)
SAMPLINGS = TableSpec(
    "samplings",
    "start or end of the sampling of sensors in a process",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("interval", "int64", "time between samples as requested; NULL at the end", nullable=True, unit="ns"),
        ColumnSpec("reason", "text", "reason for sampling nothing; empty otherwise"),
        ColumnSpec("missed", "int64", "samples that were skipped; NULL at the start", nullable=True),
        ColumnSpec("failed", "int64", "failed readings; NULL at the start", nullable=True),
        ColumnSpec("busy", "int64", "time for reading; NULL at the start", nullable=True, unit="ns"),
    ),
)
SENSOR_KINDS = TableSpec(
    "sensor_kinds",
    "number of sensors of one kind of a device",
    (
        _SEQ,
        _TS,
        _THREAD,
        _DEVICE,
        ColumnSpec("uuid", "utf8", "UUID of the device, hexadecimal; empty if unknown"),
        ColumnSpec("name", "utf8", "model name"),
        ColumnSpec("kind", "text", "sensor kind: power, frequency, engine, memory, temperature"),
        ColumnSpec("count", "int64", "number of sensors"),
        ColumnSpec("result", "text", "result of the query"),
    ),
)
SENSORS = TableSpec(
    "sensors",
    "a sensor of a device",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("sensor", "int64", "number of the sensor in its process"),
        _DEVICE,
        ColumnSpec("kind", "text", "sensor kind: power, frequency, engine, memory, temperature"),
        ColumnSpec("part", "text", "part of the device; empty for all of it"),
        ColumnSpec("subdevice", "int64", "sub-device number; NULL without a sub-device", nullable=True),
    ),
)
SAMPLES = TableSpec(
    "samples",
    "a reading of a sensor",
    (
        _SEQ,
        _TS,
        _THREAD,
        ColumnSpec("sensor", "int64", "number of the sensor in its process"),
        ColumnSpec("value", "uint64", "uJ, kHz, us of activity, bytes, mK"),
        ColumnSpec("reference", "uint64", "clock of a counter in us, or size of a memory; 0 otherwise"),
    ),
)
_API = ColumnSpec("api", "text", "API: CUDA, OpenCL")
LAUNCHES = TableSpec(
    "launches",
    "a call of CUDA or OpenCL that gives an operation to a device",
    (
        _SEQ,
        _TS,
        _THREAD,
        _API,
        ColumnSpec("function", "text", "function that launched the operation"),
        ColumnSpec("queue", "uint64", "handle of the queue or stream; NULL if the call has none", nullable=True),
        ColumnSpec("kernel", "uint64", "handle of the kernel; NULL for other operations", nullable=True),
    ),
)
LAUNCH_EVENTS = TableSpec(
    "launch_events",
    "an announcement that the last launch of this thread is measured through events",
    (
        _SEQ,
        _TS,
        _THREAD,
        _API,
        ColumnSpec("event", "uint64", "handle of the event; of CUDA's the one at the start"),
        ColumnSpec("stop", "uint64", "handle of the event at the end; 0 for OpenCL"),
    ),
)
LAUNCH_RESULTS = TableSpec(
    "launch_results",
    "the times of an operation that CUDA or OpenCL launched",
    (
        _SEQ,
        _TS,
        _THREAD,
        _API,
        ColumnSpec("event", "uint64", "handle of the event; of CUDA's the one at the start"),
        ColumnSpec("stop", "uint64", "handle of the event at the end; 0 for OpenCL"),
        ColumnSpec("status", "text", "first result of the queries that is a failure, else success"),
        ColumnSpec("queued", "uint64", "device clock when the operation was queued", nullable=True, unit="ns"),
        ColumnSpec("start", "uint64", "device clock at the start; NULL for CUDA", nullable=True, unit="ns"),
        ColumnSpec("end", "uint64", "device clock at the end; NULL for CUDA", nullable=True, unit="ns"),
        ColumnSpec("dur", "int64", "length as CUDA measured it; NULL for OpenCL", nullable=True, unit="ns"),
    ),
)
LAUNCH_OBJECTS = TableSpec(
    "launch_objects",
    "what became known of a context, queue, stream, kernel or device of CUDA or OpenCL",
    (
        _SEQ,
        _TS,
        _THREAD,
        _API,
        ColumnSpec("action", "text", "context, current, push, pop, destroy, stream, queue, kernel, device, about"),
        ColumnSpec("object", "uint64", "handle or number"),
        ColumnSpec("parent", "uint64", "device of a context or queue, root of a device; NULL if none", nullable=True),
        ColumnSpec("name", "utf8", "name of a kernel or device; empty otherwise"),
        ColumnSpec("uuid", "utf8", "UUID of a device, hexadecimal; empty if unknown"),
    ),
)

#: The event model, by name. Tables with ``seq`` are in its order.
EVENTS: tuple[TableSpec, ...] = (
    PROCESSES,
    RANKS,
    THREADS,
    CALLS,
    RECORDER_TIMES,
    APPENDS,
    WAITS,
    PUSHES,
    RESULTS,
    RUNS,
    LISTS,
    QUEUES,
    HOST_WAITS,
    FENCES,
    EVENT_ENDS,
    KERNELS,
    ALLOCATIONS,
    DEVICES,
    CLOCK_PAIRS,
    LOSSES,
    DEGRADATIONS,
    ARGUMENTS,
    SAMPLINGS,
    SENSOR_KINDS,
    SENSORS,
    SAMPLES,
    LAUNCHES,
    LAUNCH_EVENTS,
    LAUNCH_RESULTS,
    LAUNCH_OBJECTS,
)
