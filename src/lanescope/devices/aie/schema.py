"""Detail tables, raw records and stats of the AIE family."""

from __future__ import annotations

from lanescope.trace.schema import ColumnSpec, TableSpec
from lanescope.trace.stats import CORE_STATS, StatSpec

#: Options that name a file which tells the program; each is an input of the trace, too.
PROGRAM_FILES = ("listing", "elf")

SEGMENTS = TableSpec(
    "aie_segments",
    "one recording of one trace unit, from Start to Stop. Each counts its cycles from its own Start: units that start "
    "on the same broadcast are a fixed few cycles apart at most",
    (
        ColumnSpec("track_id", "int64", "group track of the tile and recording", references="tracks"),
        ColumnSpec("module", "text", "core, mem, shim, memtile: by the packet type, as mlir-aie numbers them"),
        ColumnSpec("col", "int32", "physical column, from the packet header"),
        ColumnSpec("row", "int32", "row, from the packet header"),
        ColumnSpec("packet_type", "uint8", "type of its packets"),
        ColumnSpec("packet_id", "uint8", "id of its packets"),
        ColumnSpec("segment_index", "int64", "1 for the first segment of the unit in the file"),
        ColumnSpec("mode", "uint8", "0 event-time, 1 event-PC, 2 execution; 3 is reserved and not decoded"),
        ColumnSpec(
            "start_timer",
            "int64",
            "the unit's timer in its Start frame, before that resets it; NULL in modes 2 and 3",
            nullable=True,
            unit="ticks",
        ),
        ColumnSpec(
            "start_pc",
            "int32",
            "mode 2: the address that was being fetched at the start; at a stall, ahead of it",
            nullable=True,
            unit="bytes",
        ),
        ColumnSpec("start_offset", "int64", "byte offset of its Start frame", unit="bytes"),
        ColumnSpec("has_start", "bool", "False: the first frame in the file is a restart, what was before is lost"),
        ColumnSpec("has_stop", "bool", "False: the tail may be lost"),
        ColumnSpec("end_reason", "text", "stop, restarted (a second Start), end_of_data, time_overflow"),
        ColumnSpec(
            "dur_cycles",
            "int64",
            "from Start to Stop, or to the last known cycle; NULL in the modes that tell no time",
            nullable=True,
            unit="ticks",
        ),
        ColumnSpec(
            "is_lossless", "bool", "nothing was lost in between; in mode 0 `dur_cycles` and all times are exact then"
        ),
        ColumnSpec("packets", "int64", "packets"),
        ColumnSpec("frames", "int64", "frames that were understood, Start and Stop included, padding not"),
        ColumnSpec("restarts", "int64", "overruns of the unit's buffer that it reported"),
    ),
    key="track_id",
)
PC_EVENTS = TableSpec(
    "aie_pc_events",
    "an event of a recording in mode 1: asserted in so many cycles with the program at one address. Its `ts` is the "
    "least number of cycles since Start: all cycles with events, the quiet ones between them were not recorded",
    (
        ColumnSpec("instant_id", "int64", "the instant, on the lane of its slot", references="instants"),
        ColumnSpec(
            "pc",
            "int32",
            "address that was being fetched, up to four bundles ahead of the event",
            unit="bytes",
            is_argument=True,
        ),
        ColumnSpec("cycles", "int64", "cycles in which it was asserted there", unit="ticks", is_argument=True),
        ColumnSpec("mask", "uint8", "all events of those cycles, bit i for slot i"),
    ),
    key="instant_id",
)
PROGRAM_FLOW = TableSpec(
    "aie_program_flow",
    "a decision of the program in a recording in mode 2, in order. Its `ts` counts decisions since Start: the least "
    "number of cycles that have passed, since no time is recorded",
    (
        ColumnSpec("instant_id", "int64", "the instant, on the lane `flow` of its tile", references="instants"),
        ColumnSpec(
            "kind",
            "text",
            "start, restart (after lost frames), taken and not_taken (conditional branches), new_pc (where a return or "
            "an indirect jump or call went), loop (a zero-overhead loop begins), stop",
        ),
        ColumnSpec(
            "pc",
            "int32",
            "start and restart: address that was being fetched; new_pc: the target",
            nullable=True,
            unit="bytes",
            is_argument=True,
        ),
        ColumnSpec("count", "int64", "how often in a row, by Repeat frames", is_argument=True),
        ColumnSpec("trips", "int64", "loop: trips, modulo 2**28", nullable=True, is_argument=True),
        ColumnSpec(
            "is_wrapped",
            "bool",
            "loop: 2**28 trips or more, and nobody knows how many times 2**28",
            nullable=True,
            is_argument=True,
        ),
    ),
    key="instant_id",
)
LABELS = TableSpec(
    "aie_slots",
    "what the slot of a lane watches, by the configuration",
    (
        ColumnSpec("track_id", "int64", "the lane", references="tracks"),
        ColumnSpec("slot", "uint8", "number of the slot, 0 to 7"),
        ColumnSpec("event", "uint8", "number of the event; NULL without a configuration", nullable=True),
        ColumnSpec("event_name", "text", "its name, empty without a configuration"),
        ColumnSpec(
            "kind",
            "text",
            "level: asserted as long as it holds; pulse: one cycle each time, so count cycles (`sum(dur_ticks)`), not "
            "slices; unknown",
        ),
        ColumnSpec(
            "port", "text", "PORT events: the port that is selected for them, such as `DMA:0 master`; else empty"
        ),
    ),
    key="track_id",
)
INVOCATIONS = TableSpec(
    "aie_invocations",
    "one call of a kernel: from a cycle with INSTR_EVENT_0 to the next one with INSTR_EVENT_1, on a core that watches "
    "both",
    (
        ColumnSpec("slice_id", "int64", "the slice on the lane `kernel` of its tile", references="slices"),
        ColumnSpec("ordinal", "int64", "1 for the first of its recording"),
        ColumnSpec(
            "cycles",
            "int64",
            "its length; NULL if its end was not recorded, the slice then ends where its state is not known any more",
            nullable=True,
            unit="ticks",
            is_argument=True,
        ),
        ColumnSpec(
            "vector_cycles",
            "int64",
            "cycles of these in which a vector instruction was issued; NULL if INSTR_VECTOR is not watched",
            nullable=True,
            unit="ticks",
            is_argument=True,
        ),
        ColumnSpec("vector_share", "float64", "share of these cycles", nullable=True, unit="1", is_argument=True),
        ColumnSpec("is_complete", "bool", "its end was recorded"),
    ),
    key="slice_id",
)
ALIGNMENT = TableSpec(
    "aie_alignment",
    "how a recording lies to the first one of its run. Each is drawn from its own Start; what is between two Starts "
    "on one broadcast is its way through the array, a few cycles that a trace alone does not tell",
    (
        ColumnSpec("track_id", "int64", "group track of the recording", references="tracks"),
        ColumnSpec("segment_index", "int64", "which segment of its unit it is; those of one number are compared"),
        ColumnSpec("start_event", "text", "what started it, by the configuration; empty if that does not say"),
        ColumnSpec("stop_event", "text", "what stopped it; the same"),
        ColumnSpec("is_reference", "bool", "the others of its run with its start and stop are compared with it"),
        ColumnSpec(
            "is_aligned",
            "bool",
            "it has start, stop and timer reset in common with the reference, so their times compare; NULL if the "
            "configuration does not say",
            nullable=True,
        ),
        ColumnSpec(
            "start_skew_cycles",
            "int64",
            "its timer at Start minus that of the reference: the residual skew, if both were reset together before",
            nullable=True,
            unit="ticks",
        ),
        ColumnSpec(
            "dur_skew_cycles",
            "int64",
            "its cycles from Start to Stop minus those of the reference: 0 if both saw the same broadcasts; NULL if "
            "one of them is not known exactly",
            nullable=True,
            unit="ticks",
        ),
    ),
    key="track_id",
)
TABLES = (SEGMENTS, PC_EVENTS, PROGRAM_FLOW, LABELS, INVOCATIONS, ALIGNMENT)


_UNCONFIRMED_ROW, _TRUNCATED = CORE_STATS

#: Notes of the packet scanner, in its order.
SCAN_STATS = (
    StatSpec("aie_bad_header", "data_loss", "packets with a damaged header, skipped; who lost them is not sure"),
    StatSpec("aie_resync", "data_loss", "places where the packets are out of step and were looked for word by word"),
    StatSpec(
        "aie_unknown_mode_packet",
        "data_loss",
        "packets of a source whose Start is not in the file: its mode is unknown",
    ),
    StatSpec("aie_too_many_sources", "data_loss", "packets of more sources than any device has"),
    StatSpec("aie_zero_run", "info", "runs of 8 and more zero words between packets: parts of the buffer"),
    StatSpec(
        "aie_resumed_after_zeros",
        "notice",
        "sources that go on after such a run without a Start: packets may be missing",
    ),
    _TRUNCATED,
)
#: Notes of the timeline, in its order.
SEGMENT_STATS = (
    StatSpec("aie_unknown_code", "data_loss", "words that hold a code of no frame; the rest of the word is lost"),
    StatSpec("aie_zero_word", "data_loss", "words of zeros, which the hardware never writes"),
    StatSpec(
        "aie_frame_straddles_word",
        "data_loss",
        "frames that do not fit into their word; emulators write them, hardware never",
    ),
    StatSpec("aie_misaligned_start", "data_loss", "Start frames in the middle of a word"),
    StatSpec("aie_truncated_start", "data_loss", "Start frames whose second word is missing"),
    StatSpec("aie_orphan_repeat", "data_loss", "Repeat frames whose repeated frame is lost"),
    _UNCONFIRMED_ROW,
    StatSpec(
        "aie_repeat_limit", "data_loss", "slices that Repeat frames after idle cycles stand for, too many to write"
    ),
    StatSpec("aie_data_after_stop", "data_loss", "words between Stop and the next Start that are no padding"),
    StatSpec("aie_restart", "data_loss", "restarts: the unit's buffer ran over and frames are lost"),
    StatSpec(
        "aie_restart_timer", "error", "restarts whose timer contradicts the time before; times after it are too small"
    ),
    StatSpec("aie_restart_ambiguous", "notice", "restarts whose timer would also fit if Start did not reset it"),
    StatSpec("aie_reserved_mode", "data_loss", "words of the reserved trace mode, whose format is unknown"),
    StatSpec("aie_stop_mask", "notice", "Stop frames with a mask, whose meaning is unknown"),
    StatSpec("aie_missing_start", "data_loss", "recordings of which the file has no Start, only a restart"),
    StatSpec("aie_time_overflow", "error", "words after the time ran beyond what can be counted"),
    StatSpec("aie_reserved_bits", "notice", "frames with reserved bits set: perhaps a wider program counter"),
    StatSpec("aie_repeat_target", "notice", "Repeat frames behind an address or a loop, whose meaning is not known"),
)
#: What is concluded from recordings: kernel invocations, alignment of tiles.
DERIVED_STATS = (
    StatSpec("aie_unpaired_event", "notice", "INSTR_EVENT_0 and INSTR_EVENT_1 that begin or end no invocation"),
    StatSpec("aie_truncated_invocation", "notice", "invocations whose end was not recorded"),
    StatSpec(
        "aie_start_skew",
        "info",
        "cycles between the timers of tiles that started on one broadcast: how far their times may be off each other",
    ),
    StatSpec(
        "aie_broadcast_mismatch",
        "error",
        "recordings that share start and stop with others of their run and still took another number of cycles: times "
        "of different tiles do not compare",
    ),
)
STATS = tuple(
    spec
    for spec in (
        *SCAN_STATS,
        *SEGMENT_STATS,
        StatSpec("aie_bad_line", "data_loss", "lines of a text file that are not one word of 8 hexadecimal digits"),
        StatSpec("aie_missing_stop", "data_loss", "recordings without Stop: their tail may be lost"),
        StatSpec(
            "aie_overlapping_segment", "notice", "recordings that begin while another runs: a new run, or stale packets"
        ),
        StatSpec("aie_segment_limit", "data_loss", "Starts beyond the number of recordings that are kept apart"),
        StatSpec("aie_unknown_tile", "notice", "recordings of a tile that the configuration does not know"),
        StatSpec(
            "aie_ambiguous_config",
            "notice",
            "column shifts under which the configuration fits equally well, so labels may be those of other tiles: "
            "--colshift gives the right one",
        ),
        StatSpec(
            "aie_contradictory_config",
            "notice",
            "recordings of a unit that designs or runtime sequences of the configuration set up differently: it has no "
            "labels; --config or --mlir gives the configuration of one of them",
        ),
        StatSpec(
            "aie_unread_config",
            "notice",
            "statements of the configuration that concern the trace and are not read, such as combo and edge events: "
            "labels lack what they mean; `lanescope aie-config` lists them",
        ),
        *DERIVED_STATS,
    )
    if spec not in CORE_STATS
)

CAUSES = ("lost_packet", "bad_bytes", "overrun", "start_lost", "repeat_limit", "truncated")
ENDINGS = ("stop", "restarted", "end_of_data", "time_overflow")
QUALITIES = ("exact", "estimated", "inferred")
