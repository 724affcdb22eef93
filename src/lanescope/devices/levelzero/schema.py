"""The event model, the detail tables and the stats of the family."""

from __future__ import annotations

from lanescope.trace import ColumnSpec, StatSpec, TableSpec

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
        ColumnSpec("execution_index", "int64", "which run of the appended operation, 1 the first", is_argument=True),
        ColumnSpec("thread_track_id", "int64", "lane of the thread that appended it", references="tracks"),
        ColumnSpec("readback_track_id", "int64", "lane of the thread that saw its end", references="tracks"),
        ColumnSpec("append_slice_id", "int64", "slice of the Append call", nullable=True, references="slices"),
        ColumnSpec(
            "submit_slice_id",
            "int64",
            "slice of the call that gave it to the device",
            nullable=True,
            references="slices",
        ),
        ColumnSpec("append_ts", "int64", "begin of the Append call", unit="ns", is_time=True),
        ColumnSpec("submit_ts", "int64", "begin of the call that gave it to the device", unit="ns", is_time=True),
        ColumnSpec("readback_ts", "int64", "when its timestamps were read", unit="ns", is_time=True),
        ColumnSpec("readback_seq", "int64", "position of that record in the stream"),
        ColumnSpec("command_list", "uint64", "handle or number of its command list"),
        ColumnSpec("ordinal", "int64", "queue group it ran on", nullable=True, is_argument=True),
        ColumnSpec("queue_index", "int64", "queue within the group", nullable=True, is_argument=True),
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
        ColumnSpec("query_status", "text", "result of asking for its end"),
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
    StatSpec("levelzero_invalid_line", "data_loss", "a line is no record; what it said is lost"),
    StatSpec(
        "levelzero_invalid_field", "data_loss", "a field of a line is missing or cannot be read; the line is lost"
    ),
    StatSpec("levelzero_invalid_event", "data_loss", "bytes of a recording are no events; what they said is lost"),
    StatSpec("levelzero_discarded", "data_loss", "the recorder had no room for an event, most often on a full disk"),
    StatSpec(
        "levelzero_abnormal_exit",
        "data_loss",
        "a process ended without its recorder: it was killed, or left by _exit. At most the event that a thread was "
        "writing is missing",
    ),
    StatSpec(
        "levelzero_recorder_contention",
        "info",
        "a thread of the program had to wait for another one in the recorder, so often; its times hold the waits",
    ),
    StatSpec("levelzero_unrelated_record", "info", "a record that says nothing about host calls or device operations"),
    StatSpec(
        "levelzero_thapi_time", "notice", "fractions of a second were divided by 10^6, as THAPI's own tests mean them"
    ),
    StatSpec("levelzero_missing_date", "info", "the text has times of the day only; the day is not known"),
    StatSpec(
        "levelzero_time_backwards", "notice", "a record is older than the one before it; the order of the file counts"
    ),
    StatSpec("levelzero_exit_unmatched", "notice", "a function returned that was never entered; it stands in no slice"),
    StatSpec(
        "levelzero_unfinished_call", "info", "a call did not return before the trace ended, or its return is missing"
    ),
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
    StatSpec("levelzero_never_executed", "info", "an operation was appended to a list that was never executed"),
    StatSpec("levelzero_push_ignored", "info", "timing was announced outside any Append; its results are ignored"),
    StatSpec("levelzero_result_not_ready", "info", "a result that says not-ready; it carries no timestamps"),
    StatSpec(
        "levelzero_result_error", "error", "an operation or the reading of its timestamps failed; its time is unknown"
    ),
    StatSpec(
        "levelzero_result_abandoned",
        "data_loss",
        "the recorder gave up a result: the device, or a call that asks it, failed",
    ),
    StatSpec(
        "levelzero_unsynchronized",
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
        "levelzero_unknown_device",
        "notice",
        "nothing is known of the device of an operation: it stands at its submission, a tick drawn as 1 ns",
    ),
    StatSpec(
        "levelzero_unanchored_clock", "notice", "no reading of both clocks: an operation stands at its submission"
    ),
    StatSpec(
        "levelzero_rounded_clock_rate",
        "notice",
        "the clock's rate is known in whole ns per tick only: an estimated time",
    ),
    StatSpec(
        "levelzero_inconsistent_clock_pair", "notice", "a reading of both clocks contradicts others; it was not used"
    ),
    StatSpec("levelzero_unnamed_kernel", "notice", "the name of a kernel is not known"),
)
