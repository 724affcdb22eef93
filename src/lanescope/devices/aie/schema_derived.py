"""Tables and stats of what is concluded from recordings: labels, kernel invocations, alignment of tiles."""

from __future__ import annotations

from lanescope.trace.schema import ColumnSpec, TableSpec
from lanescope.trace.stats import StatSpec

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
        ColumnSpec("run", "int64", "which recording of its unit it is; those of one number are compared"),
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

DERIVED_TABLES = (LABELS, INVOCATIONS, ALIGNMENT)
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
