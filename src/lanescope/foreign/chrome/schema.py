"""Detail tables and stats of Chrome's trace events."""

from __future__ import annotations

from lanescope.trace.schema import ColumnSpec, TableSpec, argument, ref
from lanescope.trace.stats import StatSpec

ARGUMENTS = TableSpec(
    "chrome_arguments",
    "arguments of a slice: one row per event that has some, so two where its end has its own",
    (
        ref("slice_id", "slices", "slice of the event"),
        argument("args", "utf8", "value of `args`, JSON as in the file"),
    ),
    key="slice_id",
)
INSTANT_ARGUMENTS = TableSpec(
    "chrome_instant_arguments",
    "arguments of an instant",
    (
        ref("instant_id", "instants", "instant of the event"),
        argument("args", "utf8", "value of `args`, JSON as in the file"),
    ),
    key="instant_id",
)
ASYNC = TableSpec(
    "chrome_async",
    "identity of an asynchronous slice",
    (
        ref("slice_id", "slices", "the slice"),
        argument(
            "key",
            "utf8",
            "id of the event: hexadecimal if the file gives a number, else the text; after `@` its `scope`, if any",
        ),
        ColumnSpec(
            "id_scope", "text", "scope of the id: `global` (also if the file gives none), or `local` to its process"
        ),
    ),
    key="slice_id",
)
FLOWS = TableSpec(
    "chrome_flows",
    "identity of a flow",
    (
        ref("flow_id", "flows", "the flow"),
        ColumnSpec("name", "text", "name of the events"),
        ColumnSpec("category", "text", "category of the events"),
        ColumnSpec("key", "utf8", "id of the events: hexadecimal if the file gives a number, else the text"),
    ),
    key="flow_id",
)
METADATA = TableSpec(
    "chrome_metadata",
    "a metadata event, or a value next to the list of events",
    (
        ref("input_id", "inputs", "the file"),
        ColumnSpec("process", "utf8", "`pid` of the event; NULL for a value of the file", nullable=True),
        ColumnSpec("thread", "utf8", "`tid` of the event; NULL for a value of the file", nullable=True),
        ColumnSpec("name", "utf8", "name of the event, or key of the value"),
        ColumnSpec("value", "utf8", "arguments of the event, or the value, JSON; NULL above 64 KiB", nullable=True),
    ),
    key="input_id",
)
TABLES = (ARGUMENTS, INSTANT_ARGUMENTS, ASYNC, FLOWS, METADATA)

EVENT = TableSpec(
    "chrome.event",
    "an event of the file, unchanged",
    (
        ColumnSpec("offset", "int64", "byte offset of the event", unit="bytes"),
        ColumnSpec("size", "int64", "length in the file", unit="bytes"),
        ColumnSpec("phase", "utf8", "phase of the event; empty if it does not have one of one character"),
        ColumnSpec("ts", "int64", "time of the event; NULL without a readable one", nullable=True, unit="ns"),
        ColumnSpec("dur", "int64", "duration of the event; NULL without a readable one", nullable=True, unit="ns"),
        ColumnSpec("process", "utf8", "`pid` of the event"),
        ColumnSpec("thread", "utf8", "`tid` of the event"),
        ColumnSpec("name", "text", "name of the event"),
        ColumnSpec("category", "text", "category of the event"),
    ),
)

_UNREAD = "the kind is not drawn"
STATS = (
    StatSpec("chrome_broken", "data_loss", "passages that are not JSON: skipped up to the next event"),
    StatSpec("chrome_trailing", "data_loss", "files with content after their end: it is not read"),
    StatSpec(
        "chrome_not_an_event",
        "data_loss",
        "elements of the event list that are not events: not an object, or without a phase",
    ),
    StatSpec("chrome_missing_time", "data_loss", "events without a readable time: not drawn"),
    StatSpec("chrome_missing_id", "data_loss", "events without the id that their phase requires: not drawn"),
    StatSpec("chrome_deep_arguments", "data_loss", "arguments nested more than 100 levels deep: not kept"),
    StatSpec(
        "chrome_bad_sample", "data_loss", "counter events with a value that is not a finite number: it is skipped"
    ),
    StatSpec("chrome_negative_duration", "error", "slices with a negative duration"),
    StatSpec(
        "chrome_end_unmatched",
        "data_loss",
        "end events without an open start of their name: not drawn",
        finding="LS401",
    ),
    StatSpec(
        "chrome_flow_unmatched",
        "notice",
        "flow events without a partner: not drawn",
        finding="LS401 notice",
    ),
    StatSpec(
        "chrome_unterminated",
        "notice",
        "files that end before their list of events does: the writer may have been interrupted",
        finding="LS005 notice",
    ),
    StatSpec(
        "chrome_no_events",
        "notice",
        "files without a list of events",
        finding="LS004",
    ),
    StatSpec(
        "chrome_repeated_list",
        "notice",
        "further lists of events in one file: all are read, where other readers may read one alone",
        finding="LS404 notice",
    ),
    StatSpec(
        "chrome_missing_comma",
        "notice",
        "events that no comma separates: read all the same",
        silent="a fault of the writer without a consequence here",
    ),
    StatSpec(
        "chrome_missing_duration",
        "notice",
        "complete events without a readable duration: unfinished slices",
        silent="rule LS103 reports unfinished slices",
    ),
    StatSpec(
        "chrome_unfinished",
        "notice",
        "start events without an end: unfinished slices",
        silent="rule LS103 reports unfinished slices",
    ),
    StatSpec(
        "chrome_crossing_end",
        "info",
        "slices that end while a slice that started inside is open",
        silent="rule LS101 reports partial overlap",
    ),
    StatSpec(
        "chrome_time_order",
        "info",
        "start and end events before an earlier one of their thread: paired in the order of time",
        silent="the format has no order",
    ),
    StatSpec("chrome_rounded", "notice", "events with times finer than 1 ns: rounded", finding="LS305 notice"),
    StatSpec(
        "chrome_text_time", "info", "events whose time is a text: read as a number", silent="nothing is lost by it"
    ),
    StatSpec(
        "chrome_repeated_key",
        "notice",
        "events with a repeated key: its last value is used",
        silent="as all readers of JSON do",
    ),
    StatSpec(
        "chrome_bad_text",
        "notice",
        "texts that are not valid Unicode: replaced in part",
        finding="LS404 notice",
    ),
    StatSpec("chrome_long_text", "notice", "texts above 65,536 characters: cut there", finding="LS404 notice"),
    StatSpec("chrome_objects", "notice", f"object events (N, O, D): {_UNREAD}", finding="LS003 notice"),
    StatSpec("chrome_memory_dumps", "notice", f"memory dump events (V, v): {_UNREAD}", finding="LS003 notice"),
    StatSpec("chrome_samples", "notice", f"sample events (P): {_UNREAD}", finding="LS003 notice"),
    StatSpec("chrome_contexts", "notice", f"context and link events: {_UNREAD}", finding="LS003 notice"),
    StatSpec("chrome_clock_syncs", "notice", f"clock synchronization events (c): {_UNREAD}", finding="LS003 notice"),
    StatSpec("chrome_unknown_phase", "data_loss", f"events of an unknown phase: {_UNREAD}"),
    StatSpec("chrome_stack_frames", "notice", "lists of stack frames: not read", finding="LS003 notice"),
    StatSpec("chrome_sample_lists", "notice", "lists of samples: not read", finding="LS003 notice"),
    StatSpec("chrome_system_traces", "notice", "texts of a system trace: not read", finding="LS003 notice"),
    StatSpec("chrome_stacks", "notice", "events with stacks: drawn without them", finding="LS003 notice"),
    StatSpec(
        "chrome_thread_time", "notice", "events with thread clock times: drawn without them", finding="LS003 notice"
    ),
    StatSpec(
        "chrome_findings",
        "info",
        "findings drawn by lanescope: not read back",
        silent="`check` finds them again",
    ),
    StatSpec(
        "chrome_undrawn_flows",
        "data_loss",
        "flows of the written trace that the format cannot express: not in the file",
    ),
    StatSpec(
        "chrome_written_loss",
        "data_loss",
        "records that were lost when the written trace was decoded",
    ),
)
