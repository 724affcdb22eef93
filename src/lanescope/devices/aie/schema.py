"""Detail tables, raw records and stats of the AIE family."""

from __future__ import annotations

from lanescope.trace.schema import ColumnSpec, TableSpec, argument, ref, ticks
from lanescope.trace.stats import CORE_STATS, StatSpec

#: Options that name a file which tells the program; each is an input of the trace, too.
PROGRAM_FILES = ("listing", "elf", "xclbin")

SEGMENTS = TableSpec(
    "aie_segments",
    "one segment of a trace unit, from Start to Stop. Its cycles count from its Start: units that start on the same "
    "broadcast differ by a few constant cycles. Segments of a unit share its tracks, one after the other",
    (
        ref("track_id", "tracks", "group track of the tile and segment"),
        ColumnSpec("module", "text", "module by packet type, as mlir-aie numbers them: core, mem, shim, memtile"),
        ColumnSpec("col", "int32", "physical column, from the packet header"),
        ColumnSpec("row", "int32", "row, from the packet header"),
        ColumnSpec("packet_type", "uint8", "packet type"),
        ColumnSpec("packet_id", "uint8", "packet ID"),
        ColumnSpec("segment_index", "int64", "index of the segment among those of its unit in the file, from 1"),
        ColumnSpec(
            "run",
            "int64",
            "number of the run whose slice of the dump it is in, see `aie_runs`; NULL if the dump has no slices",
            nullable=True,
        ),
        ticks("begin_cycles", "cycles from the start of the trace to the Start frame, as drawn"),
        ColumnSpec(
            "distance",
            "text",
            "evidence for begin_cycles: first (of the first run), recorded (by the timer in the Start), at_least (the "
            "distance from the run before is not recorded: drawn as near as can be), apart (drawn from 0 on tracks of "
            "its own)",
        ),
        ColumnSpec("mode", "uint8", "trace mode: 0 event-time, 1 event-PC, 2 execution, 3 reserved (not decoded)"),
        ticks(
            "start_timer",
            "timer of the unit in the Start frame before it is reset; NULL in modes 2 and 3",
            nullable=True,
        ),
        ColumnSpec(
            "start_pc",
            "int32",
            "mode 2: fetch address at the start, which is ahead of a stalled instruction; NULL in other modes",
            nullable=True,
            unit="bytes",
        ),
        ColumnSpec("start_offset", "int64", "byte offset of the Start frame", unit="bytes"),
        ColumnSpec(
            "has_start",
            "bool",
            "whether the Start frame is in the file; if not, the first frame is a restart after lost frames",
        ),
        ColumnSpec("has_stop", "bool", "whether the Stop frame is in the file; if not, the tail may be lost"),
        ColumnSpec("end_reason", "text", "end reason: stop, restarted (a second Start), end_of_data, time_overflow"),
        ticks(
            "dur_cycles",
            "cycles from Start to Stop or to the last known cycle; NULL in modes without timestamps",
            nullable=True,
        ),
        ColumnSpec(
            "is_lossless", "bool", "whether no data is lost within the segment; in mode 0, all times are then exact"
        ),
        ColumnSpec("packets", "int64", "number of packets"),
        ColumnSpec("frames", "int64", "number of decoded frames including Start and Stop, without padding"),
        ColumnSpec("restarts", "int64", "number of reported buffer overruns of the unit"),
    ),
    key="track_id",
)
PC_EVENTS = TableSpec(
    "aie_pc_events",
    "one event of a segment in mode 1, asserted in a number of cycles at one program address. Its "
    "`ts` is a lower bound of the cycles since Start: cycles without events are not recorded",
    (
        ref("instant_id", "instants", "instant on the lane of its slot"),
        argument("pc", "int32", "fetch address, up to four bundles ahead of the event", unit="bytes"),
        ticks("cycles", "cycles in which the event was asserted at this address", is_argument=True),
        ColumnSpec("mask", "uint8", "all events of these cycles, bit i for slot i"),
    ),
    key="instant_id",
)
PROGRAM_FLOW = TableSpec(
    "aie_program_flow",
    "one control flow decision of a segment in mode 2, in order. Its `ts` counts decisions since "
    "Start, a lower bound of the elapsed cycles: timestamps are not recorded",
    (
        ref("instant_id", "instants", "instant on the lane `flow` of its tile"),
        ColumnSpec(
            "kind",
            "text",
            "start, restart (after lost frames), taken and not_taken (conditional branches), new_pc "
            "(target of a return or of an indirect jump or call), loop (start of a zero-overhead loop), "
            "stop",
        ),
        argument(
            "pc",
            "int32",
            "start and restart: fetch address; new_pc: target address; NULL for other kinds",
            nullable=True,
            unit="bytes",
        ),
        argument("count", "int64", "number of consecutive occurrences, from Repeat frames"),
        argument("trips", "int64", "loop: trip count modulo 2**28; NULL for other kinds", nullable=True),
        argument(
            "is_wrapped",
            "bool",
            "loop: whether the trip count is 2**28 or more, by an unknown multiple; NULL for other kinds",
            nullable=True,
        ),
    ),
    key="instant_id",
)
LABELS = TableSpec(
    "aie_slots",
    "event of the slot of a lane, from the configuration",
    (
        ref("track_id", "tracks", "lane"),
        ColumnSpec("slot", "uint8", "slot number, 0 to 7"),
        ColumnSpec("event", "uint8", "event number; NULL without a configuration", nullable=True),
        ColumnSpec("event_name", "text", "event name; empty without a configuration"),
        ColumnSpec(
            "kind",
            "text",
            "level: asserted while the condition holds; pulse: one cycle per occurrence, so count cycles "
            "(`sum(dur_ticks)`), not slices; unknown",
        ),
        ColumnSpec("port", "text", "selected port of a PORT event, e.g. `DMA:0 master`; empty for other events"),
    ),
    key="track_id",
)
INVOCATIONS = TableSpec(
    "aie_invocations",
    "one kernel invocation: from a cycle with INSTR_EVENT_0 to the next cycle with INSTR_EVENT_1, "
    "on a core that traces both",
    (
        ref("slice_id", "slices", "slice on the lane `kernel` of its tile"),
        ColumnSpec("ordinal", "int64", "index within its segment, from 1"),
        ticks(
            "cycles",
            "duration; NULL if the end was not recorded: the slice then ends at the last known state",
            nullable=True,
            is_argument=True,
        ),
        ticks(
            "vector_cycles",
            "cycles with an issued vector instruction; NULL if INSTR_VECTOR is not traced",
            nullable=True,
            is_argument=True,
        ),
        argument("vector_share", "float64", "vector cycles as a fraction of the duration", nullable=True, unit="1"),
        ColumnSpec("is_complete", "bool", "whether the end was recorded"),
    ),
    key="slice_id",
)
ALIGNMENT = TableSpec(
    "aie_alignment",
    "alignment of a segment with the first one of its run. Each segment is drawn from its own "
    "Start. Two Starts on one broadcast differ by the propagation delay through the array, a few "
    "cycles that a trace does not record",
    (
        ref("track_id", "tracks", "group track of the segment"),
        ColumnSpec(
            "segment_index", "int64", "index of the segment within its unit; segments with the same index are compared"
        ),
        ColumnSpec("start_event", "text", "event that started the segment, from the configuration; empty if unknown"),
        ColumnSpec("stop_event", "text", "event that stopped the segment, from the configuration; empty if unknown"),
        ColumnSpec(
            "is_reference",
            "bool",
            "whether the segments of its run with the same start and stop are compared with this one",
        ),
        ColumnSpec(
            "is_aligned",
            "bool",
            "whether start, stop and timer reset are those of the reference, so that times are "
            "comparable; NULL without a configuration",
            nullable=True,
        ),
        ticks(
            "start_skew_cycles",
            "timer at Start minus that of the reference: the residual skew if both timers were reset together",
            nullable=True,
        ),
        ticks(
            "dur_skew_cycles",
            "cycles from Start to Stop minus those of the reference, 0 if both received the same "
            "broadcasts; NULL if one of them is not exact",
            nullable=True,
        ),
    ),
    key="track_id",
)
RUNS = TableSpec(
    "aie_runs",
    "one run of a dump that several runs share, each with a slice of it, by the MLIR text of the build",
    (
        ref("track_id", "tracks", "group track of the design that ran"),
        ColumnSpec("run", "int64", "number of the run, from 1, in the order of the dump"),
        ColumnSpec("design", "text", "device:sequence that ran; empty if the text does not name it"),
        ColumnSpec("offset", "int64", "byte offset of its slice in the trace buffer", unit="bytes"),
        ColumnSpec("size", "int64", "size of its slice", unit="bytes"),
        ColumnSpec("segment_count", "int64", "segments in its slice; 0: no packet reached memory"),
        ticks("begin_cycles", "cycles from the start of the trace to its first Start, as drawn", nullable=True),
        ColumnSpec("distance", "text", "evidence for begin_cycles, as in `aie_segments`; empty without segments"),
    ),
    key="track_id",
)
TABLES = (SEGMENTS, RUNS, PC_EVENTS, PROGRAM_FLOW, LABELS, INVOCATIONS, ALIGNMENT)


_UNCONFIRMED_ROW, _TRUNCATED = CORE_STATS[:2]

#: Notes of the packet scanner, in its order.
SCAN_STATS = (
    StatSpec("aie_bad_header", "data_loss", "packets with an invalid header: skipped, their source is not certain"),
    StatSpec("aie_resync", "data_loss", "places with misaligned packets: searched word by word"),
    StatSpec(
        "aie_unknown_mode_packet",
        "data_loss",
        "packets of a source without a Start in the file: the trace mode is unknown",
    ),
    StatSpec("aie_too_many_sources", "data_loss", "packets from more sources than a device has"),
    StatSpec(
        "aie_zero_run",
        "info",
        "runs of 8 or more zero words between packets: separate parts of the buffer",
        silent="parts of a buffer may lie apart, and each begins with a Start",
    ),
    StatSpec(
        "aie_resumed_after_zeros",
        "notice",
        "sources that continue without a Start after a run of zero words: packets may be missing",
        finding="LS105 warning",
    ),
    _TRUNCATED,
)
#: Notes of the timeline, in its order.
SEGMENT_STATS = (
    StatSpec("aie_unknown_code", "data_loss", "words with an invalid frame code: the rest of the word is lost"),
    StatSpec("aie_zero_word", "data_loss", "words of zeros: never written by hardware"),
    StatSpec(
        "aie_frame_straddles_word",
        "data_loss",
        "frames that extend beyond their word: written by emulators only, not by hardware",
    ),
    StatSpec("aie_misaligned_start", "data_loss", "Start frames that are not aligned to a word"),
    StatSpec("aie_truncated_start", "data_loss", "Start frames without their second word"),
    StatSpec("aie_orphan_repeat", "data_loss", "Repeat frames whose repeated frame is lost"),
    _UNCONFIRMED_ROW,
    StatSpec(
        "aie_repeat_limit", "data_loss", "slices above the limit, from Repeat frames after idle cycles: not written"
    ),
    StatSpec("aie_data_after_stop", "data_loss", "words between Stop and the next Start that are not padding"),
    StatSpec("aie_restart", "data_loss", "buffer overruns: the trace unit restarted, frames are lost"),
    StatSpec(
        "aie_restart_timer", "error", "restarts whose timer contradicts the preceding time: later times are too small"
    ),
    StatSpec(
        "aie_restart_ambiguous",
        "notice",
        "restarts whose timer is also consistent with a Start that did not reset it",
        finding="LS305 warning",
    ),
    StatSpec("aie_reserved_mode", "data_loss", "words of the reserved trace mode: the format is unknown"),
    StatSpec("aie_stop_mask", "notice", "Stop frames with a mask of unknown meaning", finding="LS404 notice"),
    StatSpec("aie_missing_start", "data_loss", "segments without a Start in the file: only a restart"),
    StatSpec("aie_time_overflow", "error", "words after an overflow of the cycle count: ignored"),
    StatSpec("aie_reserved_bits", "notice", "frames with reserved bits set", finding="LS404 notice", share_of="events"),
    StatSpec(
        "aie_repeat_target",
        "notice",
        "Repeat frames after an address or a loop: their meaning is unknown",
        finding="LS404 notice",
        share_of="events",
    ),
    StatSpec(
        "aie_noncanonical_frame",
        "error",
        "frames that a trace unit never writes where they are: bits were changed, or packets are lost, repeated or "
        "exchanged",
        finding="LS002 warning",
    ),
    StatSpec(
        "aie_unseen_frame",
        "notice",
        "frames in a form that no known capture contains where they are: bits may be changed or packets lost",
        finding="LS404 notice",
        share_of="events",
    ),
)
#: What is concluded from recordings: kernel invocations, alignment of tiles.
DERIVED_STATS = (
    StatSpec(
        "aie_unpaired_event",
        "notice",
        "INSTR_EVENT_0 and INSTR_EVENT_1 that neither start nor end an invocation",
        finding="LS404 notice",
        share_of="events",
    ),
    StatSpec("aie_truncated_invocation", "notice", "invocations without a recorded end", finding="LS105 notice"),
    StatSpec(
        "aie_start_skew",
        "info",
        "cycles between the timers of tiles that started on one broadcast: bound of the time difference between tiles",
        finding="LS305 notice",
    ),
    StatSpec(
        "aie_stop_mismatch",
        "notice",
        "segments that end apart from most others of their run, which stop together: cycles are lost or gained, or "
        "another event stopped them",
        finding="LS305 warning",
    ),
    StatSpec(
        "aie_length_mismatch",
        "notice",
        "segments that differ in length from those that started with them, by their timers: cycles are lost or "
        "gained, or another event stopped them",
        finding="LS305 warning",
    ),
    StatSpec(
        "aie_broadcast_mismatch",
        "error",
        "segments with the same start and stop as others of their run, but a different number of "
        "cycles: times of different tiles are not comparable",
    ),
)
#: What is concluded from several runs in one dump.
RUN_STATS = (
    StatSpec(
        "aie_run_distance",
        "notice",
        "runs whose distance from the run before is not recorded: drawn at the end of that run",
        finding="LS305 notice",
    ),
    StatSpec(
        "aie_run_order",
        "notice",
        "runs whose Start timer contradicts the run before: in another order, or not adjacent",
        finding="LS305 warning",
    ),
    StatSpec(
        "aie_run_timers",
        "notice",
        "segments whose Start timer differs from that of other units of their run: times are not comparable",
        finding="LS305 warning",
    ),
    StatSpec("aie_empty_run", "notice", "runs without a packet: nothing reached memory", finding="LS105 notice"),
    StatSpec("aie_missing_slice", "data_loss", "runs whose slice the file does not hold to its end"),
    StatSpec(
        "aie_outside_slices",
        "notice",
        "segments outside of the slices of all runs: no labels",
        finding="LS404 warning",
    ),
    StatSpec(
        "aie_slice_size",
        "notice",
        "runs whose slice does not hold whole packets: the text is of another build",
        finding="LS404 warning",
    ),
    StatSpec(
        "aie_repeated_start",
        "notice",
        "segments that are not the first of their unit in their slice: stale packets, or a run in place of another",
        finding="LS105 warning",
    ),
)
_CORE_NAMES = frozenset(spec.name for spec in CORE_STATS)
STATS = tuple(
    spec
    for spec in (
        *SCAN_STATS,
        *SEGMENT_STATS,
        StatSpec(
            "aie_odd_packets",
            "info",
            "1 if the number of packets is odd: a DMA that writes bursts of 64 bytes lost or repeated one",
            silent="bursts of 32 bytes, which are as common, make any number",
        ),
        StatSpec("aie_bad_line", "data_loss", "lines of a text file that are not one word of 8 hexadecimal digits"),
        StatSpec("aie_missing_stop", "data_loss", "segments without Stop: the tail may be lost"),
        StatSpec(
            "aie_overlapping_segment",
            "notice",
            "segments that start while another segment is active: a new run, or stale packets",
            finding="LS105 warning",
        ),
        StatSpec("aie_segment_limit", "data_loss", "Start frames above the limit of distinguished segments"),
        StatSpec(
            "aie_silent_unit",
            "notice",
            "units of the configuration without a recording: no packet of theirs reached memory, or another build ran",
            finding="LS105 notice",
        ),
        StatSpec("aie_unknown_tile", "notice", "units that are not in the configuration", finding="LS404 notice"),
        StatSpec(
            "aie_packet_type",
            "notice",
            "units whose packet type is of no module in their row: their module and labels may be wrong",
            finding="LS404 warning",
        ),
        StatSpec(
            "aie_packet_id",
            "notice",
            "units whose packet id is not the configured one: the capture or the configuration is of another build",
            finding="LS404 warning",
        ),
        StatSpec(
            "aie_shared_packet_id",
            "notice",
            "units with the packet id of another unit: sent on another route, or with a damaged header",
            finding="LS404 notice",
        ),
        StatSpec(
            "aie_ambiguous_config",
            "notice",
            "column shifts that fit the configuration equally well: labels may be of other tiles; use --column-shift",
            finding="LS404 warning",
        ),
        StatSpec(
            "aie_contradictory_config",
            "notice",
            "units with contradictory configurations: no labels; use --sequence with the one that was run",
            finding="LS404 warning",
        ),
        StatSpec(
            "aie_unread_config",
            "notice",
            "unsupported trace statements of the configuration: labels are "
            "incomplete; `lanescope aie-config` lists them",
            finding="LS404 warning",
        ),
        StatSpec(
            "aie_timer_reset_apart",
            "notice",
            "units that the configuration starts with one event and whose timer it resets with another: their times "
            "cannot be compared with those of other units; `lanescope aie-config` names them",
            finding="LS404 warning",
        ),
        *RUN_STATS,
        *DERIVED_STATS,
    )
    if spec.name not in _CORE_NAMES
)

DISTANCES = ("first", "recorded", "at_least", "apart")
CAUSES = ("lost_packet", "bad_bytes", "overrun", "start_lost", "repeat_limit", "truncated")
ENDINGS = ("stop", "restarted", "end_of_data", "time_overflow")
QUALITIES = ("exact", "estimated", "inferred")
