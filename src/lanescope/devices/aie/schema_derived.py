"""Tables and stats of what is concluded from recordings: labels, kernel invocations, alignment of tiles."""

from __future__ import annotations

from lanescope.trace.schema import ColumnSpec, TableSpec
from lanescope.trace.stats import StatSpec

LABELS = TableSpec(
    "aie_slots",
    "event of the slot of a lane, from the configuration",
    (
        ColumnSpec("track_id", "int64", "lane", references="tracks"),
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
        ColumnSpec("slice_id", "int64", "slice on the lane `kernel` of its tile", references="slices"),
        ColumnSpec("ordinal", "int64", "index within its segment, from 1"),
        ColumnSpec(
            "cycles",
            "int64",
            "duration; NULL if the end was not recorded: the slice then ends at the last known state",
            nullable=True,
            unit="ticks",
            is_argument=True,
        ),
        ColumnSpec(
            "vector_cycles",
            "int64",
            "cycles with an issued vector instruction; NULL if INSTR_VECTOR is not traced",
            nullable=True,
            unit="ticks",
            is_argument=True,
        ),
        ColumnSpec(
            "vector_share",
            "float64",
            "vector cycles as a fraction of the duration",
            nullable=True,
            unit="1",
            is_argument=True,
        ),
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
        ColumnSpec("track_id", "int64", "group track of the segment", references="tracks"),
        ColumnSpec("run", "int64", "index of the segment within its unit; segments with the same index are compared"),
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
        ColumnSpec(
            "start_skew_cycles",
            "int64",
            "timer at Start minus that of the reference: the residual skew if both timers were reset together",
            nullable=True,
            unit="ticks",
        ),
        ColumnSpec(
            "dur_skew_cycles",
            "int64",
            "cycles from Start to Stop minus those of the reference, 0 if both received the same "
            "broadcasts; NULL if one of them is not exact",
            nullable=True,
            unit="ticks",
        ),
    ),
    key="track_id",
)

DERIVED_TABLES = (LABELS, INVOCATIONS, ALIGNMENT)
DERIVED_STATS = (
    StatSpec(
        "aie_unpaired_event", "notice", "INSTR_EVENT_0 and INSTR_EVENT_1 that neither start nor end an invocation"
    ),
    StatSpec("aie_truncated_invocation", "notice", "invocations without a recorded end"),
    StatSpec(
        "aie_start_skew",
        "info",
        "cycles between the timers of tiles that started on one broadcast: bound of the time difference between tiles",
    ),
    StatSpec(
        "aie_broadcast_mismatch",
        "error",
        "segments with the same start and stop as others of their run, but a different number of "
        "cycles: times of different tiles are not comparable",
    ),
)
