"""Detail tables and stats of Perfetto traces, and the raw records."""

from __future__ import annotations

from lanescope.trace import ColumnSpec, StatSpec, TableSpec
from lanescope.trace.schema import argument, ref

SLICE_DETAILS = TableSpec(
    "perfetto_slices",
    "arguments of a slice",
    (
        ref("slice_id", "slices", "the slice"),
        argument("correlation", "utf8", "correlation ID of the slice; empty without one"),
        argument("arguments", "utf8", "debug annotations of its start and its end, as JSON"),
    ),
    key="slice_id",
)
INSTANT_DETAILS = TableSpec(
    "perfetto_instants",
    "arguments of an instant",
    (
        ref("instant_id", "instants", "the instant"),
        argument("correlation", "utf8", "correlation ID of the instant; empty without one"),
        argument("arguments", "utf8", "debug annotations, as JSON"),
    ),
    key="instant_id",
)
TRACK_DETAILS = TableSpec(
    "perfetto_tracks",
    "details of a track",
    (
        ref("track_id", "tracks", "the track"),
        ColumnSpec("uuid", "uint64", "number of the track in the file; 0 if it has none"),
        ColumnSpec("pid", "int64", "process ID; NULL if unknown", nullable=True),
        ColumnSpec("tid", "int64", "thread ID; NULL if it is not a thread", nullable=True),
        ColumnSpec("description", "utf8", "description of the track; empty without one"),
    ),
    key="track_id",
)
PACKET_DETAILS = TableSpec(
    "perfetto_packets",
    "packets of one data source that is not read",
    (
        ref("input_id", "inputs", "file with the packets"),
        ColumnSpec("field", "int64", "number of the field that holds the data"),
        ColumnSpec("source", "text", "data source, by the name of the field"),
        ColumnSpec("packets", "int64", "number of packets"),
        ColumnSpec("size", "int64", "size of the packets after decompression", unit="bytes"),
    ),
    key="input_id",
)
DETAILS: tuple[TableSpec, ...] = (SLICE_DETAILS, INSTANT_DETAILS, TRACK_DETAILS, PACKET_DETAILS)

EVENTS = TableSpec(
    "perfetto_events",
    "an event as recorded, in the order of the file",
    (
        ColumnSpec("ts", "int64", "time on the clock of the trace", unit="ns"),
        ColumnSpec("track", "int32", "number of the track, by first use"),
        ColumnSpec("type", "uint8", "type: 1 start, 2 end, 3 instant, 5 state, 6 slice with a duration"),
        ColumnSpec("name", "text", "name; empty without one"),
    ),
)

# --- stats --------------------------------------------------------------------------------------------------------

STATS: tuple[StatSpec, ...] = (
    StatSpec("perfetto_bad_bytes", "data_loss", "bytes that are not packets: lost"),
    StatSpec("perfetto_invalid_packet", "data_loss", "packets with invalid contents: lost"),
    StatSpec("perfetto_unreadable_packet", "data_loss", "compressed packets that cannot be decompressed: lost"),
    StatSpec(
        "perfetto_zstd_packet",
        "data_loss",
        "packets compressed by zstd, which requires the package zstandard (extra `zstd`): lost",
    ),
    StatSpec("perfetto_missing_state", "data_loss", "packets that refer to a lost earlier packet: lost"),
    StatSpec("perfetto_producer_dropped", "data_loss", "times that the producer dropped packets before the recording"),
    StatSpec("perfetto_recorder_dropped", "data_loss", "packets or chunks of packets that the recorder dropped"),
    StatSpec("perfetto_missing_sequence", "data_loss", "packets without the ID of their sequence: lost"),
    StatSpec("perfetto_unknown_type", "data_loss", "events of an unknown type: lost"),
    StatSpec("perfetto_missing_time", "data_loss", "events without a timestamp: lost"),
    StatSpec(
        "perfetto_unknown_clock", "data_loss", "events on a clock without a reading on the clock of the trace: lost"
    ),
    StatSpec("perfetto_invalid_time", "data_loss", "events with times before 0 or after the year 2116: lost"),
    StatSpec("perfetto_missing_value", "data_loss", "counter samples without a value or a track: lost"),
    StatSpec("perfetto_rejected_texts", "data_loss", "lists of texts before the start of their sequence: lost"),
    StatSpec("perfetto_unknown_text", "data_loss", "names, categories or arguments with an unknown ID: empty"),
    StatSpec("perfetto_redefined_text", "error", "IDs of texts that are defined twice: the first text is used"),
    StatSpec("perfetto_invalid_descriptor", "data_loss", "descriptors of tracks with invalid contents: lost"),
    StatSpec(
        "perfetto_track_cycle",
        "error",
        "tracks with themselves or more than 64 others above them: drawn at the top",
    ),
    StatSpec(
        "perfetto_damaged_text",
        "notice",
        "texts with NUL or bytes that are not UTF-8: what cannot be read is shown as U+FFFD",
        finding="LS404 notice",
    ),
    StatSpec(
        "perfetto_repeated_clock",
        "error",
        "snapshots with two readings of one clock: the last one is used",
    ),
    StatSpec(
        "perfetto_backward_clock",
        "error",
        "times that a clock which places events was set back: events on it around that moment may be misplaced",
    ),
    StatSpec(
        "perfetto_undescribed_track",
        "notice",
        "tracks with events and without a descriptor: named after their first event",
        finding="LS404 notice",
    ),
    StatSpec(
        "perfetto_unknown_parent",
        "notice",
        "tracks below a track without a descriptor: drawn at the top",
        finding="LS404 notice",
    ),
    StatSpec(
        "perfetto_assumed_clock",
        "info",
        "traces whose only clock is not related to any other",
        silent="all times count on this clock, so they fit each other",
    ),
    StatSpec("perfetto_end_unmatched", "notice", "ends without a start: not on the timeline", finding="LS401"),
    StatSpec("perfetto_unfinished_slice", "info", "slices without an end", finding="LS105 notice"),
    StatSpec(
        "perfetto_flow_unmatched",
        "notice",
        "flows with one end: not on the timeline",
        finding="LS401 notice",
    ),
    StatSpec(
        "perfetto_other_packet",
        "info",
        "packets of other data sources: see the table perfetto_packets",
        silent="they are not events of tracks",
    ),
    StatSpec(
        "perfetto_unread_field",
        "info",
        "fields of events that are not read: source locations, call stacks and others",
        silent="they have no place in the tables",
    ),
    StatSpec(
        "perfetto_rounded_value",
        "info",
        "integer counter values above 2^53: rounded",
        silent="values of counters are floating-point numbers",
    ),
    StatSpec(
        "perfetto_drawn_finding",
        "info",
        "findings that lanescope drew: excluded",
        silent="the rules find them again in the trace itself",
    ),
)
