"""Detail tables and stats of the CUDA family."""

from __future__ import annotations

from lanescope.trace.schema import ColumnSpec, TableSpec
from lanescope.trace.stats import StatSpec

_LAUNCH = ColumnSpec(
    "launch", "uint32", "0; counts up where records follow a finalize of their lane, or are those of an earlier launch"
)
_BLOCK = ColumnSpec("block", "int64", "linear index of the block in the grid")
_GROUP = ColumnSpec("group", "int64", "group of threads in the block")
_EVENT = ColumnSpec("event_id", "int64", "event number of the record")
_SM = ColumnSpec(
    "sm", "int64", "multiprocessor that the lane ran on; NULL where the layout does not say", nullable=True
)
_PAYLOAD = ColumnSpec("payload", "uint64", "what the kernel stored with the record", nullable=True, is_argument=True)

REGIONS = TableSpec(
    "cuda_regions",
    "where a slice comes from: the begin and end records of a region",
    (
        ColumnSpec("slice_id", "int64", "the slice", references="slices"),
        _LAUNCH,
        _BLOCK,
        _GROUP,
        _SM,
        _EVENT,
        ColumnSpec("token", "int64", "small number of the begin record; NULL where it has none", nullable=True),
        _PAYLOAD,
        ColumnSpec("end_payload", "uint64", "the same of the end record", nullable=True),
        ColumnSpec(
            "resolution_ns",
            "int64",
            "the true length differs from `dur` by less than this; NULL: not known",
            nullable=True,
            unit="ns",
        ),
        ColumnSpec("begin_slot", "int64", "slot of the begin record"),
        ColumnSpec("end_slot", "int64", "slot of the end record; NULL of an open region", nullable=True),
    ),
    key="slice_id",
)
MARKS = TableSpec(
    "cuda_instants",
    "where an instant comes from",
    (
        ColumnSpec("instant_id", "int64", "the instant", references="instants"),
        _LAUNCH,
        _BLOCK,
        _GROUP,
        _SM,
        _EVENT,
        _PAYLOAD,
        ColumnSpec("slot", "int64", "slot of the record"),
    ),
    key="instant_id",
)
LANES = TableSpec(
    "cuda_lanes",
    "one writer thread: what its lane holds and how it ended",
    (
        ColumnSpec("track_id", "int64", "its lane in the trace", references="tracks"),
        _BLOCK,
        _GROUP,
        _SM,
        ColumnSpec("warp", "int64", "warp of the writer; NULL where the layout does not say", nullable=True),
        ColumnSpec("cluster_rank", "int64", "rank of its block in the cluster; NULL likewise", nullable=True),
        ColumnSpec("grid_id", "uint64", "the driver's number of the launch; NULL likewise", nullable=True),
        ColumnSpec("records", "int64", "records that were read"),
        ColumnSpec("capacity", "int64", "records that have room; NULL while the stride is unknown", nullable=True),
        ColumnSpec("attempted", "int64", "records that the kernel tried to store; NULL: not counted", nullable=True),
        ColumnSpec(
            "dropped",
            "int64",
            "records that were dropped because the lane was full, exact; NULL: not counted",
            nullable=True,
        ),
        ColumnSpec("first_ts", "int64", "its first stamp; NULL without any", nullable=True, unit="ns", is_time=True),
        ColumnSpec("last_ts", "int64", "its last stamp; NULL without any", nullable=True, unit="ns", is_time=True),
        ColumnSpec(
            "finalize_ts",
            "int64",
            "when it was finalized; NULL if it never was",
            nullable=True,
            unit="ns",
            is_time=True,
        ),
        ColumnSpec("launches", "int64", "launches that the lane's records belong to"),
        ColumnSpec("missing_slots", "int64", "positions between records that hold no readable record"),
        ColumnSpec("unreadable", "int64", "those of them that hold a word of another lane"),
        ColumnSpec("unmatched_ends", "int64", "ends that no begin precedes"),
        ColumnSpec("unfinished_regions", "int64", "begins that no end follows"),
        ColumnSpec("clock_reversals", "int64", "steps back of the clock"),
        ColumnSpec("wraps", "int64", "times the 32-bit stamp ran through zero"),
        ColumnSpec("is_full", "bool", "every position is used and the last record is no finalize: more may be lost"),
    ),
    key="track_id",
)
BUFFERS = TableSpec(
    "cuda_buffers",
    "one probe buffer: its geometry, how that was found, and its clock",
    (
        ColumnSpec("input_id", "int64", "the input", references="inputs"),
        ColumnSpec("num_blocks", "int64", "blocks, from the header"),
        ColumnSpec("num_groups", "int64", "groups per block, from the header"),
        ColumnSpec("slots", "int64", "words of the buffer, the header among them"),
        ColumnSpec("stride", "int64", "slots between two records of a lane; NULL: unknown", nullable=True),
        ColumnSpec("stride_source", "text", "given, tight, inferred, unknown"),
        ColumnSpec("t0_ticks", "int64", "unwrapped stamp of ts = 0, the earliest of the buffer", unit="ns"),
        ColumnSpec(
            "overflow_policy", "text", "what becomes of records without room: drop, ring; NULL: not said", nullable=True
        ),
        ColumnSpec("launch_id", "uint64", "the host's number of the launch; NULL where none is stored", nullable=True),
        ColumnSpec("ordinal", "int64", "the host's number of the GPU; NULL likewise", nullable=True),
        ColumnSpec(
            "unallocated_lanes",
            "int64",
            "lanes that found no room in the buffer, whose records are in none; NULL: not counted",
            nullable=True,
        ),
        ColumnSpec(
            "required_blocks",
            "int64",
            "blocks of the grid, where it is known to have more than num_blocks",
            nullable=True,
        ),
        ColumnSpec(
            "required_groups",
            "int64",
            "groups of a block, where there are known to be more than num_groups",
            nullable=True,
        ),
        ColumnSpec(
            "suggested_slots", "int64", "a buffer of so many slots would have half as much room again", nullable=True
        ),
    ),
    key="input_id",
)
LINKS = TableSpec(
    "cuda_flows",
    "where a flow comes from: its two records",
    (
        ColumnSpec("flow_id", "int64", "the flow", references="flows"),
        _BLOCK,
        _EVENT,
        ColumnSpec("token", "int64", "number that both records carry"),
        ColumnSpec("src_slot", "int64", "slot of the record of the cause"),
        ColumnSpec("dst_slot", "int64", "slot of the record of the effect"),
    ),
    key="flow_id",
)
OVERHEAD = TableSpec(
    "cuda_overhead",
    "what a kernel's probes cost, where a session measured it: with them and with them compiled out",
    (
        ColumnSpec("input_id", "int64", "the launch whose stamps were judged", references="inputs"),
        ColumnSpec("kernel", "text", "what the kernel is called"),
        ColumnSpec("runs", "int64", "how often each of the two was run"),
        ColumnSpec("instrumented_ns", "float64", "how long it took with its probes, the median", unit="ns"),
        ColumnSpec("baseline_ns", "float64", "how long it took without, the median", unit="ns"),
        ColumnSpec("instrumented_min_ns", "float64", "the shortest with probes", unit="ns"),
        ColumnSpec("baseline_min_ns", "float64", "the shortest without", unit="ns"),
        ColumnSpec("slowdown", "float64", "instrumented_ns / baseline_ns; NULL where that is none", nullable=True),
        ColumnSpec(
            "min_delta_ticks",
            "int64",
            "smallest distance of two stamps of one lane",
            nullable=True,
            unit="ticks",
        ),
        ColumnSpec("resolution_ticks", "int64", "step of the stamps' clock", nullable=True, unit="ticks"),
        ColumnSpec("clock", "text", "clock of the stamps: globaltimer (ns), clock64 (cycles)"),
        ColumnSpec("is_simulated", "bool", "there was no GPU: the times mean nothing for one"),
    ),
    key="input_id",
)
TABLES = (REGIONS, MARKS, LINKS, LANES, BUFFERS, OVERHEAD)


STATS = (
    StatSpec("cuda_stride_inferred", "info", "the stride is larger than the number of lanes and was found by search"),
    StatSpec(
        "cuda_stride_unknown",
        "error",
        "words that fit no stride: lanes were taken from the tags, and holes and losses cannot be seen",
    ),
    StatSpec(
        "cuda_hole", "data_loss", "empty slots in front of a used one of the same lane; their records are missing"
    ),
    StatSpec("cuda_corrupt_record", "data_loss", "words that name another lane than that of their slot; left out"),
    StatSpec(
        "cuda_lane_full",
        "data_loss",
        "lanes whose last slot is used and that lack what must follow: the ends of open regions, or their finalize",
    ),
    StatSpec(
        "cuda_lane_may_be_lost",
        "notice",
        "lanes that are filled to their last slot and lack nothing: they may have dropped more, which nobody counted; "
        "a larger buffer would tell",
    ),
    StatSpec(
        "cuda_dropped_at_least",
        "data_loss",
        "records dropped behind full lanes, at least: each region that is open there lacks its end",
    ),
    StatSpec("cuda_unfinished_region", "notice", "regions that were begun and never ended"),
    StatSpec("cuda_end_unmatched", "notice", "ends that no begin precedes; kept as instants"),
    StatSpec("cuda_partial_overlap", "info", "regions that overlap another of their lane without nesting"),
    StatSpec("cuda_unfinalized_lane", "notice", "lanes without finalize, where others have one: trapped, hung or left"),
    StatSpec(
        "cuda_no_records",
        "notice",
        "lanes that the header promises, in a buffer without any record: its kernel ran without probes, or recorded "
        "nothing yet when the buffer was copied; check that probes are compiled in, and copy it after the kernel's end",
    ),
    StatSpec("cuda_empty_lane", "info", "lanes of the header's grid that hold no record"),
    StatSpec(
        "cuda_after_finalize",
        "notice",
        "records behind a finalize of their lane: a kernel that went on, or stale data of an earlier longer launch",
    ),
    StatSpec(
        "cuda_stale",
        "notice",
        "records of an earlier launch, in a buffer that was not cleared before this; left out unless `stale` is keep",
    ),
    StatSpec(
        "cuda_ignored_after_finalize",
        "data_loss",
        "records behind a finalize, left out because the caller asked for it",
    ),
    StatSpec("cuda_clock_reversal", "error", "stamps earlier than the one before in their lane"),
    StatSpec(
        "cuda_multiple_writers",
        "error",
        "lanes with several steps back or stray ends, in over 1 % of their pairs: perhaps more than one leader thread",
    ),
    StatSpec("cuda_negative_duration", "error", "regions whose end is stamped before their begin"),
    StatSpec("cuda_wrap", "info", "times a lane's 32-bit stamp ran through zero and was unwrapped"),
    StatSpec(
        "cuda_wrap_ambiguous",
        "error",
        "places where the 32-bit stamps leave open which turn of the counter they belong to",
    ),
    StatSpec("cuda_launch_exceeds_wrap", "error", "the launch was at least as long as one turn of the counter: 4.29 s"),
    StatSpec(
        "cuda_launch_duration_mismatch",
        "error",
        "the extent of the stamps and the launch's duration differ by over 2 s",
    ),
    StatSpec("cuda_below_resolution", "info", "regions shorter than two steps of the clock"),
    StatSpec("cuda_unknown_event", "notice", "event numbers that the given names do not cover"),
    StatSpec(
        "cuda_unreadable_names", "notice", "the neighbouring file of event names is not readable as such; not used"
    ),
    StatSpec("cuda_trailing_bytes", "data_loss", "bytes behind the array, or less than a word at the end"),
    StatSpec("cuda_dropped", "data_loss", "records that had no room, as the probe itself counted them"),
    StatSpec(
        "cuda_unallocated_lane",
        "data_loss",
        "lanes of blocks or groups that the buffer has no room for, as the probes counted them: none of their records "
        "is there, and how many there were nobody knows",
    ),
    StatSpec("cuda_missing_tail", "data_loss", "records that a lane counted and that are not at its end"),
    StatSpec("cuda_stale_words", "notice", "words that an earlier launch left behind the records of a lane; left out"),
    StatSpec(
        "cuda_uncounted",
        "data_loss",
        "words behind the records that their lane counts, and no older than the lane: its count may be damaged",
    ),
    StatSpec("cuda_torn_counter", "info", "values of counters that a ring has overwritten but for these"),
    StatSpec("cuda_bad_lane_header", "error", "lanes whose state is none; read like lanes that were never finalized"),
    StatSpec(
        "cuda_bad_block", "data_loss", "areas of a block without their mark, or whose sizes contradict themselves"
    ),
    StatSpec(
        "cuda_ambiguous_async_end", "notice", "asynchronous regions whose token was in use twice: ends may be swapped"
    ),
    StatSpec("cuda_flow_unmatched", "notice", "effects without a cause before them"),
    StatSpec("cuda_flow_unused", "info", "causes without any effect"),
    StatSpec(
        "cuda_instants_unreliable",
        "notice",
        "instants of a probe that overwrites each instant by the next record: only the last of a lane is left",
    ),
    StatSpec("cuda_multiple_sms", "notice", "lanes whose records name several multiprocessors; theirs is not known"),
    StatSpec("cuda_sm_unknown", "info", "lanes whose multiprocessor is spoilt by a block number beyond 4095"),
    StatSpec(
        "cuda_wrap_assumed",
        "notice",
        "wraps that were undone with no proof that each silence was shorter than a turn: give launch_ns",
    ),
    StatSpec("cuda_clock_mismatch", "error", "lanes whose counter and timer contradict those of their SM"),
    StatSpec("cuda_rate_estimated", "notice", "the rate of the counters was concluded from bounds; say clock_mhz"),
    StatSpec(
        "cuda_unaligned_sms",
        "error",
        "the counters of the multiprocessors start anywhere and nothing relates them: compare no times across SMs",
    ),
)
