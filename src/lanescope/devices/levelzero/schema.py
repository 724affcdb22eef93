"""Event model, detail tables and stats of the family. More than 500 lines: every column has its text here."""

from __future__ import annotations

from lanescope.trace import ColumnSpec, StatSpec, TableSpec, argument, ref, time

CALL_DETAILS = TableSpec(
    "levelzero_calls",
    "details of an API call",
    (
        ref("slice_id", "slices", "slice of the call"),
        ColumnSpec("exit_seq", "int64", "position of the return in the stream; NULL without a return", nullable=True),
        argument("result", "text", "return value; NULL without a return", nullable=True),
        ColumnSpec("error", "bool", "whether the result is neither success nor not-ready"),
        argument(
            "bytes",
            "uint64",
            "memory accessed without a device operation; NULL for other calls",
            nullable=True,
            unit="bytes",
        ),
        argument(
            "recorder_ns",
            "int64",
            "time of the recorder within the call; NULL if it was not measured",
            nullable=True,
            unit="ns",
        ),
    ),
    key="slice_id",
)
OPERATIONS = TableSpec(
    "levelzero_operations",
    "details of a device operation",
    (
        ref("slice_id", "slices", "slice of the operation"),
        ColumnSpec("kind", "text", "operation kind: kernel, copy, fill, barrier, other"),
        argument("function", "text", "function that appended the operation"),
        argument("op_id", "uint64", "operation number; NULL if the recorder has none", nullable=True),
        argument("execution_index", "int64", "index of the execution of the appended operation, from 1"),
        ref("thread_track_id", "tracks", "lane of the thread that appended the operation"),
        ref("readback_track_id", "tracks", "lane of the thread that read the result"),
        ref("append_slice_id", "slices", "slice of the Append call; NULL if not recorded", nullable=True),
        ref("submit_slice_id", "slices", "slice of the submitting call; NULL if not recorded", nullable=True),
        time("append_ts", "start of the Append call", of_host=True),
        time("submit_ts", "start of the submitting call", of_host=True),
        time("readback_ts", "time at which the timestamps were read", of_host=True),
        ColumnSpec("readback_seq", "int64", "position of the readback record in the stream"),
        ColumnSpec("command_list", "uint64", "handle or number of the command list, stream or queue"),
        argument("ordinal", "int64", "queue group of the operation; NULL if unknown", nullable=True),
        argument("queue_index", "int64", "queue within the group; NULL if unknown", nullable=True),
        argument("simd", "int64", "largest sub-group of the kernel; NULL if unknown", nullable=True),
        argument("groups_x", "int64", "thread groups in x", nullable=True),
        argument("groups_y", "int64", "thread groups in y", nullable=True),
        argument("groups_z", "int64", "thread groups in z", nullable=True),
        argument("group_x", "int64", "group size in x", nullable=True),
        argument("group_y", "int64", "group size in y", nullable=True),
        argument("group_z", "int64", "group size in z", nullable=True),
        argument("bytes", "uint64", "size of a copy or fill; NULL for other operations", nullable=True, unit="bytes"),
        argument(
            "dst_memory",
            "text",
            "destination memory kind: shared, device, host, system; NULL if unknown",
            nullable=True,
        ),
        argument(
            "src_memory", "text", "source memory kind: shared, device, host, system; NULL if unknown", nullable=True
        ),
        ColumnSpec("query_status", "text", "result of the completion query"),
        ColumnSpec("error", "bool", "whether the operation or the readback of its timestamps failed"),
        ColumnSpec(
            "global_start", "uint64", "raw device clock at the start; NULL for CUDA", nullable=True, unit="ticks"
        ),
        ColumnSpec("global_end", "uint64", "raw device clock at the end; NULL for CUDA", nullable=True, unit="ticks"),
        ColumnSpec(
            "context_start",
            "uint64",
            "raw context clock at the start; NULL for other APIs",
            nullable=True,
            unit="ticks",
        ),
        ColumnSpec(
            "context_end",
            "uint64",
            "raw context clock at the end; NULL for other APIs",
            nullable=True,
            unit="ticks",
        ),
    ),
    key="slice_id",
)
THREAD_DETAILS = TableSpec(
    "levelzero_threads",
    "details of the lane of a thread",
    (
        ref("track_id", "tracks", "lane of the thread"),
        ColumnSpec("host", "utf8", "host name"),
        ColumnSpec("pid", "int64", "process ID"),
        ColumnSpec("tid", "int64", "thread ID; below 0 for lanes of a CPU or stream instead of a thread"),
        ColumnSpec("rank", "int64", "rank in a parallel program; NULL without one", nullable=True),
    ),
    key="track_id",
)
QUEUE_DETAILS = TableSpec(
    "levelzero_queues",
    "details of the lane of a queue",
    (
        ref("track_id", "tracks", "lane of the queue"),
        ColumnSpec("device_uuid", "utf8", "UUID of the root device, hexadecimal; empty if unknown"),
        ColumnSpec(
            "subdevice_uuid", "utf8", "UUID of the sub-device, hexadecimal; empty if unknown or without a sub-device"
        ),
        ColumnSpec("subdevice", "int64", "sub-device number; NULL without a sub-device", nullable=True),
        ColumnSpec("host", "utf8", "host name"),
        ColumnSpec("pid", "int64", "process ID"),
        ColumnSpec(
            "handle",
            "uint64",
            "handle of the queue, or handle or number of the command list; NULL if unknown",
            nullable=True,
        ),
        ColumnSpec(
            "immediate", "bool", "whether the queue belongs to an immediate list; NULL if unknown", nullable=True
        ),
        ColumnSpec("api", "utf8", "API: Level Zero, CUDA, OpenCL"),
        ColumnSpec(
            "device_number",
            "uint64",
            "number of the device of CUDA, handle of the root device of OpenCL; NULL if unknown",
            nullable=True,
        ),
        ColumnSpec(
            "subdevice_number",
            "uint64",
            "number of the device of CUDA, handle of the device of OpenCL; 0 if its root is unknown; NULL if unknown",
            nullable=True,
        ),
    ),
    key="track_id",
)
ARGUMENT_DETAILS = TableSpec(
    "levelzero_arguments",
    "structures that an API call was given",
    (
        ref("slice_id", "slices", "slice of the call"),
        argument("flags", "text", "flags of the descriptor; NULL without them", nullable=True),
        argument("host_flags", "text", "flags of the host part of an allocation; NULL without them", nullable=True),
        argument("ordinal", "int64", "queue group, or memory; NULL without one", nullable=True),
        argument("index", "int64", "queue in the group, or event in the pool; NULL without one", nullable=True),
        argument("mode", "text", "mode of a queue; NULL without one", nullable=True),
        argument("priority", "text", "priority of a queue; NULL without one", nullable=True),
        argument("count", "int64", "events of a pool; NULL without one", nullable=True),
        argument("signal", "text", "signal scope of an event; NULL without one", nullable=True),
        argument("wait", "text", "wait scope of an event; NULL without one", nullable=True),
        argument("bytes", "uint64", "size of memory or of a module; NULL without one", nullable=True, unit="bytes"),
        argument("alignment", "uint64", "alignment of memory; NULL without one", nullable=True, unit="bytes"),
        argument("format", "text", "format of a module; NULL without one", nullable=True),
        argument("build_flags", "text", "build flags of a module; NULL without one", nullable=True),
        argument("extensions", "text", "structure types of the pNext chains; NULL without any", nullable=True),
        argument("state", "text", "state of the structures: read, null, unreadable"),
    ),
    key="slice_id",
)
WAIT_DETAILS = TableSpec(
    "levelzero_waits",
    "what an API call waited for on devices",
    (
        ref("slice_id", "slices", "slice of the call"),
        argument("target", "text", "kind of object: queue, list, event, fence, device"),
        argument("handle", "uint64", "handle of the object"),
        ref(
            "operation_slice_id",
            "slices",
            "operation that ended last of those it waited for; NULL if not recorded or if the call did not succeed",
            nullable=True,
        ),
    ),
    key="slice_id",
)
SENSOR_DETAILS = TableSpec(
    "levelzero_sensors",
    "details of the counter of a sensor",
    (
        ref("track_id", "tracks", "counter of the sensor"),
        ColumnSpec("kind", "text", "sensor kind: power, frequency, engine, memory, temperature"),
        ColumnSpec("part", "text", "part of the device; empty for all of it"),
        ColumnSpec("device_uuid", "utf8", "UUID of the root device, hexadecimal; empty if unknown"),
        ColumnSpec("subdevice", "int64", "sub-device number; NULL without a sub-device", nullable=True),
        ColumnSpec("interval", "int64", "requested time between samples; NULL if unknown", nullable=True, unit="ns"),
    ),
    key="track_id",
)
SAMPLE_DETAILS = TableSpec(
    "levelzero_samples",
    "details of a value of a sensor",
    (
        ref("track_id", "tracks", "counter of the sensor"),
        time("ts", "start of the time that the value represents"),
        ColumnSpec("value", "float64", "value in the unit of the counter"),
        ColumnSpec("interval", "int64", "time that the value represents; 0 for the last value of a state", unit="ns"),
    ),
    key="track_id",
)
EVENT_DETAILS = TableSpec(
    "levelzero_events",
    "details of an event of another producer; empty unless requested by --fields",
    (
        ref("instant_id", "instants", "the event"),
        argument("fields", "utf8", "fields and contexts as text"),
    ),
    key="instant_id",
)
DETAILS: tuple[TableSpec, ...] = (
    CALL_DETAILS,
    OPERATIONS,
    THREAD_DETAILS,
    QUEUE_DETAILS,
    ARGUMENT_DETAILS,
    WAIT_DETAILS,
    SENSOR_DETAILS,
    SAMPLE_DETAILS,
    EVENT_DETAILS,
)

# --- stats --------------------------------------------------------------------------------------------------------

STATS: tuple[StatSpec, ...] = (
    StatSpec("levelzero_invalid_line", "data_loss", "lines that are not a record: lost"),
    StatSpec("levelzero_invalid_time", "data_loss", "lines after the year 2261, which no timeline holds: lost"),
    StatSpec("levelzero_invalid_field", "data_loss", "lines with a missing or invalid field: lost"),
    StatSpec("levelzero_invalid_event", "data_loss", "bytes of a recording that are not events: lost"),
    StatSpec(
        "levelzero_discarded",
        "data_loss",
        "events that the recorder could not store: usually because the disk was full",
        dropped_units=("event",),
    ),
    StatSpec(
        "levelzero_untimed_event",
        "data_loss",
        "events without a clock, or after the year 2261: not on the timeline",
    ),
    StatSpec(
        "levelzero_foreign_clocks",
        "notice",
        "streams whose clock is not comparable with that of the first one: their times may be off",
        finding="LS305 warning",
    ),
    StatSpec(
        "levelzero_wide_thread",
        "notice",
        "events whose process or thread is below 0 or above 31 bits: on a lane that such events share",
        finding="LS404 notice",
        share_of="events",
    ),
    StatSpec(
        "levelzero_packet_counter",
        "error",
        "packets whose counter of events or packets jumps impossibly far: what is missing is unknown",
    ),
    StatSpec("levelzero_late_event", "error", "packets of a recording that do not end with their last event"),
    StatSpec("levelzero_missing_packet", "data_loss", "packets of a recording that are missing, by their numbers"),
    StatSpec(
        "levelzero_abnormal_exit",
        "data_loss",
        "processes that ended without their recorder: by a signal or _exit, at most one event per thread is missing",
    ),
    StatSpec(
        "levelzero_unrecorded_process",
        "data_loss",
        "processes that used Level Zero, but were started without the environment of the recorder",
    ),
    StatSpec(
        "levelzero_recorder_unmeasured",
        "info",
        "processes whose recorder did not measure its own time: it is included in the times of calls",
        silent="the times are those that the program saw",
    ),
    StatSpec(
        "levelzero_recorder_time",
        "error",
        "calls that are shorter than the time of the recorder within them: one of the times is wrong",
    ),
    StatSpec(
        "levelzero_recorder_contention",
        "info",
        "waits of a program thread for another thread in the recorder: included in its times",
        silent="the program did wait, and its times say so",
    ),
    StatSpec(
        "levelzero_unknown_record",
        "data_loss",
        "lines of records of an unknown kind: lost, on a lane named after the kind",
    ),
    StatSpec(
        "levelzero_thapi_time",
        "notice",
        "timestamps whose fraction of a second was divided by 10^6, the convention of THAPI's own tests",
        finding="LS305 notice",
    ),
    StatSpec(
        "levelzero_missing_date",
        "info",
        "text logs with the time of day only: the date is unknown",
        silent="times count from the first record, and need no date",
    ),
    StatSpec(
        "levelzero_time_backwards",
        "notice",
        "records older than the preceding record: the order of the file is used",
        finding="LS305 warning",
        share_of="events",
    ),
    StatSpec("levelzero_exit_unmatched", "notice", "returns without a call: not on the timeline", finding="LS401"),
    StatSpec(
        "levelzero_unfinished_call",
        "info",
        "calls without a return before the end of the trace",
        finding="LS105 notice",
    ),
    StatSpec(
        "levelzero_result_unmatched",
        "data_loss",
        "results of an unknown operation: not on the timeline",
        finding="LS401",
    ),
    StatSpec("levelzero_operation_unmatched", "data_loss", "submitted operations without a result", finding="LS401"),
    StatSpec(
        "levelzero_result_duplicate",
        "error",
        "repeated results for one execution of an operation: the first one is used",
        finding="LS402",
    ),
    StatSpec(
        "levelzero_append_duplicate",
        "error",
        "operations of one process with the same number: the first one is used",
        finding="LS402",
    ),
    StatSpec(
        "levelzero_interleaved_duplicate",
        "notice",
        "results of a shared event that may be those of another of its operations: the slice is marked as inferred",
        finding="LS402",
    ),
    StatSpec(
        "levelzero_untimed",
        "info",
        "operations without timestamps: not on the timeline of the device",
        finding="LS003 notice",
        share_of="events",
    ),
    StatSpec(
        "levelzero_untimed_resets",
        "notice",
        "operations of out-of-order lists without timestamps, as event resets of the driver do not work",
        finding="LS403",
        share_of="events",
    ),
    StatSpec(
        "levelzero_never_executed",
        "info",
        "operations appended to a command list that was not executed",
        silent="a command list need not be executed",
    ),
    StatSpec(
        "levelzero_push_ignored",
        "info",
        "timing announcements outside an Append: their results are ignored",
        finding="LS003 notice",
        share_of="events",
    ),
    StatSpec(
        "levelzero_result_not_ready",
        "info",
        "results with status not-ready: without timestamps",
        silent="a program may ask too early, and asks again",
    ),
    StatSpec("levelzero_result_error", "error", "failed operations or failed readbacks: the time is unknown"),
    StatSpec(
        "levelzero_result_abandoned",
        "data_loss",
        "results abandoned by the recorder after a failure of the device or of a query",
        dropped_units=("result",),
    ),
    StatSpec(
        "levelzero_unsynchronized",
        "data_loss",
        "operations whose end the program did not wait for before the context or process ended: the time is unknown",
        dropped_units=("result",),
    ),
    StatSpec(
        "levelzero_result_ambiguous",
        "data_loss",
        "results that may be of another operation or run, or whose event was destroyed: the time is unknown",
        dropped_units=("result",),
    ),
    StatSpec(
        "levelzero_prologue",
        "notice",
        "executions that started later, after resets of events by the recorder: those of the driver do not work",
        finding="LS403 notice",
    ),
    StatSpec(
        "levelzero_degraded",
        "notice",
        "operations of a command list without timestamps or with an alternative timestamp source: the "
        "lane of the recorder gives the list and the reason",
        finding="LS403",
    ),
    StatSpec(
        "levelzero_unknown_device",
        "notice",
        "operations of an unknown device: drawn at their submission, one tick as 1 ns",
        finding="LS305 warning",
        share_of="events",
    ),
    StatSpec(
        "levelzero_unanchored_clock",
        "notice",
        "operations without a reading of both clocks: drawn at their submission",
        finding="LS305 warning",
        share_of="events",
    ),
    StatSpec(
        "levelzero_rounded_clock_rate",
        "notice",
        "clock rates in whole ns per tick: times are estimated",
        finding="LS305 notice",
    ),
    StatSpec(
        "levelzero_inconsistent_clock_pair",
        "notice",
        "readings of both clocks that contradict others: ignored",
        finding="LS305 warning",
    ),
    StatSpec(
        "levelzero_host_clock_error",
        "notice",
        "ns by which the clocks of two hosts of the recording may differ, as both systems report it",
        finding="LS305 notice",
    ),
    StatSpec(
        "levelzero_host_clock_unknown",
        "notice",
        "hosts whose clock has an unknown error: their times are not comparable with those of other hosts",
        finding="LS305 warning",
    ),
    StatSpec(
        "levelzero_sensor_absent",
        "info",
        "kinds of sensors that a device does not have, or processes without access to sensors",
        silent="a device need not have every kind of sensor",
    ),
    StatSpec(
        "levelzero_samples_missed",
        "notice",
        "samples that were skipped, as reading the sensors took longer than the interval",
        finding="LS003 notice",
    ),
    StatSpec(
        "levelzero_sample_failed",
        "notice",
        "readings of sensors that failed or gave an unknown value",
        finding="LS003 notice",
    ),
    StatSpec(
        "levelzero_counter_reset",
        "notice",
        "intervals in which a counter of energy or activity was reset: without a value",
        finding="LS003 notice",
    ),
    StatSpec(
        "levelzero_launch_estimated",
        "notice",
        "operations of CUDA and OpenCL: drawn at their launch, as no reading of both clocks is recorded",
        finding="LS305 notice",
        share_of="events",
    ),
    StatSpec(
        "levelzero_launch_time",
        "error",
        "operations of CUDA and OpenCL whose times are impossible: end before start, or after their readback",
    ),
    StatSpec(
        "levelzero_launch_device",
        "notice",
        "operations of CUDA and OpenCL whose context, stream or queue was not seen: the device is unknown",
        finding="LS404 notice",
    ),
    StatSpec("levelzero_unnamed_kernel", "notice", "kernels without a name", finding="LS404 notice"),
    StatSpec(
        "levelzero_incomplete_kernel",
        "info",
        "kernels without the properties that other kernels have: their records may be missing",
        finding="LS404 notice",
    ),
    StatSpec(
        "levelzero_unknown_handle",
        "notice",
        "records about a kernel, device, sensor, queue or list that was neither created nor described: not used",
        finding="LS404 notice",
    ),
    StatSpec(
        "levelzero_handle_duplicate",
        "notice",
        "kernels created with the handle of an existing one: names of kernels may be wrong",
        finding="LS402",
    ),
    StatSpec(
        "levelzero_inconsistent_readings",
        "notice",
        "successive readings of a device clock that contradict its rate: times may be off by as much",
        finding="LS305 notice",
    ),
    StatSpec(
        "levelzero_missing_result",
        "notice",
        "returns without a result where others have one: names of calls may be wrong",
        finding="LS404 notice",
    ),
    StatSpec(
        "levelzero_unfinished_line",
        "notice",
        "texts whose last line has no line end: its last value may be cut",
        finding="LS105 notice",
    ),
    StatSpec(
        "levelzero_unknown_result",
        "notice",
        "results that Level Zero 1.17 does not define: counted as failures",
        finding="LS404 notice",
    ),
    StatSpec(
        "levelzero_impossible_value",
        "error",
        "values that Level Zero cannot hold: counts above 32 bits, memory beyond the end of the address space, "
        "unknown words",
    ),
    StatSpec(
        "levelzero_inconsistent_device",
        "notice",
        "devices with a contradictory or incomplete description",
        finding="LS305 notice",
    ),
    StatSpec(
        "levelzero_wide_timestamp",
        "notice",
        "operations whose timestamps have more bits than the device declares: the other bits are ignored",
        finding="LS305 notice",
    ),
    StatSpec(
        "levelzero_context_time",
        "notice",
        "operations that were active in their context for longer than they ran: one of the clocks is wrong",
        finding="LS305 notice",
    ),
    StatSpec(
        "levelzero_execution_unmatched",
        "notice",
        "results of an execution that was not recorded: drawn at the Append",
        finding="LS401",
    ),
    StatSpec(
        "levelzero_execution_time",
        "error",
        "executions that began at another time than the call that submitted them: their submission time is wrong",
    ),
    StatSpec(
        "levelzero_out_of_order",
        "error",
        "operations of an in-order list that started before a preceding one: times or names are wrong",
    ),
    StatSpec(
        "levelzero_number_order",
        "error",
        "operations with a lower number than a preceding one of the thread: results may belong to other operations",
    ),
    StatSpec(
        "levelzero_argument_mismatch",
        "error",
        "command lists that contradict the descriptor of the call that created them",
    ),
    StatSpec(
        "levelzero_append_mismatch",
        "error",
        "operations that contradict the surrounding call or their command list: their name or lane may be wrong",
    ),
)
