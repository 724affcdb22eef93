"""Detail tables and stats of the CUDA family."""

from __future__ import annotations

from lanescope.trace.schema import ColumnSpec, TableSpec, argument, ref, ticks, time
from lanescope.trace.stats import StatSpec

_LAUNCH = ColumnSpec(
    "launch",
    "uint32",
    "launch number within the buffer, from 0: increases after a finalize, and for records of an earlier launch",
)
_BLOCK = ColumnSpec("block", "int64", "linear index of the block in the grid")
_GROUP = ColumnSpec("group", "int64", "thread group in the block")
_EVENT = ColumnSpec("event_id", "int64", "event number of the record")
_SM = ColumnSpec("sm", "int64", "SM of the lane; NULL if the layout does not record it", nullable=True)
_PAYLOAD = argument(
    "payload", "uint64", "value that the kernel stored with the record; NULL without a payload", nullable=True
)

REGIONS = TableSpec(
    "cuda_regions",
    "source of a slice: the start and end records of a region",
    (
        ref("slice_id", "slices", "slice of the region"),
        _LAUNCH,
        _BLOCK,
        _GROUP,
        _SM,
        _EVENT,
        ColumnSpec("token", "int64", "token of the start record; NULL without a token", nullable=True),
        _PAYLOAD,
        ColumnSpec(
            "end_payload",
            "uint64",
            "value that the kernel stored with the end record; NULL without a payload",
            nullable=True,
        ),
        ColumnSpec(
            "resolution_ns",
            "int64",
            "maximum difference between `dur` and the true duration; NULL if unknown",
            nullable=True,
            unit="ns",
        ),
        ColumnSpec("begin_slot", "int64", "slot of the start record"),
        ColumnSpec("end_slot", "int64", "slot of the end record; NULL for an unfinished region", nullable=True),
        ColumnSpec(
            "end_group",
            "int64",
            "thread group of the end record of an asynchronous region; NULL if it is that of the start",
            nullable=True,
        ),
    ),
    key="slice_id",
)
MARKS = TableSpec(
    "cuda_instants",
    "source of an instant: its record",
    (
        ref("instant_id", "instants", "instant of the record"),
        _LAUNCH,
        _BLOCK,
        _GROUP,
        _SM,
        _EVENT,
        _PAYLOAD,
        argument("payload2", "uint64", "second value of the record; NULL without one", nullable=True),
        ColumnSpec("slot", "int64", "slot of the record"),
    ),
    key="instant_id",
)
LANES = TableSpec(
    "cuda_lanes",
    "one lane of a probe buffer: content and final state",
    (
        ref("track_id", "tracks", "lane in the trace"),
        _BLOCK,
        _GROUP,
        _SM,
        ColumnSpec("warp", "int64", "warp of the writer; NULL if the layout does not record it", nullable=True),
        ColumnSpec(
            "cluster_rank",
            "int64",
            "rank of the block in its cluster; NULL if the layout does not record it",
            nullable=True,
        ),
        ColumnSpec(
            "grid_id", "uint64", "launch number of the driver; NULL if the layout does not record it", nullable=True
        ),
        ColumnSpec("records", "int64", "number of decoded records"),
        ColumnSpec("capacity", "int64", "maximum number of records; NULL if the stride is unknown", nullable=True),
        ColumnSpec(
            "attempted", "int64", "records that the kernel attempted to store; NULL if not counted", nullable=True
        ),
        ColumnSpec(
            "dropped",
            "int64",
            "exact number of records dropped because the lane was full; NULL if not counted",
            nullable=True,
        ),
        ColumnSpec(
            "dropped_at_least",
            "int64",
            "minimum number of records dropped because the lane was full: `dropped`, or if that is not counted, "
            "what the probe counted last, the missing ends of unfinished regions, or what all complete lanes of the "
            "group have more",
        ),
        time("first_ts", "first timestamp; NULL without records", nullable=True),
        time("last_ts", "last timestamp; NULL without records", nullable=True),
        time("finalize_ts", "time of the finalize record; NULL without one", nullable=True),
        ColumnSpec("launches", "int64", "number of launches in the lane"),
        ColumnSpec("missing_slots", "int64", "slots before the last record without a readable record"),
        ColumnSpec("unreadable", "int64", "missing slots that contain a word of another lane"),
        ColumnSpec("unmatched_ends", "int64", "ends without a start"),
        ColumnSpec("unfinished_regions", "int64", "starts without an end"),
        ColumnSpec("clock_reversals", "int64", "decreases of the timestamp"),
        ColumnSpec("wraps", "int64", "wraps of the timestamp"),
        ColumnSpec(
            "is_full",
            "bool",
            "whether all slots are used and the last record is not a finalize: records may have been dropped",
        ),
    ),
    key="track_id",
)
BUFFERS = TableSpec(
    "cuda_buffers",
    "one probe buffer: geometry, source of the geometry, and clock",
    (
        ref("input_id", "inputs", "input"),
        ColumnSpec("num_blocks", "int64", "number of blocks from the header"),
        ColumnSpec("num_groups", "int64", "groups per block from the header"),
        ColumnSpec("slots", "int64", "number of words of the buffer, including the header"),
        ColumnSpec("stride", "int64", "slots between two records of a lane; NULL if unknown", nullable=True),
        ColumnSpec("stride_source", "text", "source of the stride: given, tight, inferred, declared, unknown"),
        ColumnSpec("t0_ticks", "int64", "unwrapped timestamp of ts = 0, the earliest of the buffer", unit="ns"),
        ColumnSpec(
            "overflow_policy", "text", "behavior when a lane is full: drop, ring; NULL if not recorded", nullable=True
        ),
        ColumnSpec("launch_id", "uint64", "launch number of the host; NULL if not recorded", nullable=True),
        ColumnSpec("ordinal", "int64", "GPU number of the host; NULL if not recorded", nullable=True),
        ColumnSpec(
            "unallocated_lanes",
            "int64",
            "lanes without space in the buffer, whose records are missing; NULL if not counted",
            nullable=True,
        ),
        ColumnSpec(
            "required_blocks",
            "int64",
            "blocks of the grid if more than num_blocks; NULL if unknown or not more",
            nullable=True,
        ),
        ColumnSpec(
            "required_groups",
            "int64",
            "groups per block if more than num_groups; NULL if unknown or not more",
            nullable=True,
        ),
        ColumnSpec(
            "suggested_slots",
            "int64",
            "suggested buffer size with 50% reserve; NULL if the buffer is large enough",
            nullable=True,
        ),
    ),
    key="input_id",
)
LINKS = TableSpec(
    "cuda_flows",
    "source of a flow: its two records",
    (
        ref("flow_id", "flows", "flow between the records"),
        _BLOCK,
        _EVENT,
        ColumnSpec("token", "int64", "token of both records; 0 without a token"),
        ColumnSpec("src_slot", "int64", "slot of the record of the cause"),
        ColumnSpec("dst_slot", "int64", "slot of the record of the effect"),
    ),
    key="flow_id",
)
OVERHEAD = TableSpec(
    "cuda_overhead",
    "overhead of the probes of a kernel, measured by a session with probes and with probes compiled out",
    (
        ref("input_id", "inputs", "measured launch"),
        ColumnSpec("kernel", "text", "kernel name"),
        ColumnSpec("runs", "int64", "number of runs of each variant"),
        ColumnSpec("instrumented_ns", "float64", "median duration with probes", unit="ns"),
        ColumnSpec("baseline_ns", "float64", "median duration without probes", unit="ns"),
        ColumnSpec("instrumented_min_ns", "float64", "minimum duration with probes", unit="ns"),
        ColumnSpec("baseline_min_ns", "float64", "minimum duration without probes", unit="ns"),
        ColumnSpec("slowdown", "float64", "instrumented_ns / baseline_ns; NULL if undefined", nullable=True),
        ticks("min_delta_ticks", "minimum difference of two timestamps of a lane; NULL if unknown", nullable=True),
        ticks("resolution_ticks", "resolution of the clock; NULL if unknown", nullable=True),
        ColumnSpec("clock", "text", "clock of the timestamps: globaltimer (ns), clock64 (cycles)"),
        ColumnSpec("is_simulated", "bool", "whether the run was simulated: the times are not those of a GPU"),
    ),
    key="input_id",
)
_IKET_COLUMNS = (
    ColumnSpec("launch", "uint32", "launch number in the file, those of graphs last"),
    ColumnSpec("kernel", "text", "name of the kernel"),
    ColumnSpec("graph", "text", "key of the CUDA graph that launched the kernel; empty without a graph"),
    ColumnSpec("grid", "int64", "launch number of the driver; NULL if not recorded", nullable=True),
    _BLOCK,
    ColumnSpec("warp", "int64", "warp in the block"),
    ColumnSpec("sm", "int64", "SM; NULL if not recorded", nullable=True),
    ColumnSpec("tpc", "int64", "texture processing cluster; NULL if not recorded", nullable=True),
    ColumnSpec("gpc", "int64", "graphics processing cluster; NULL if not recorded", nullable=True),
    ColumnSpec("payload", "text", "value of the event as the file has it; empty without a payload"),
    ColumnSpec("payload_type", "text", "type of the value: `int32`, `float32`, ...; empty without a payload"),
)
IKET_RANGES = TableSpec(
    "cuda_iket_ranges",
    "source of a slice: a range of a file of IKET or FlyDSL",
    (
        ref("slice_id", "slices", "slice of the range"),
        *_IKET_COLUMNS,
        ColumnSpec(
            "end_block", "int64", "block in which the range ended; NULL if it is that of its start", nullable=True
        ),
        ColumnSpec(
            "end_warp", "int64", "warp in which the range ended; NULL if it is that of its start", nullable=True
        ),
    ),
    key="slice_id",
)
IKET_MARKS = TableSpec(
    "cuda_iket_marks",
    "source of an instant: a marker of a file of IKET or FlyDSL, or an event within a range",
    (ref("instant_id", "instants", "instant of the marker"), *_IKET_COLUMNS),
    key="instant_id",
)
TABLES = (REGIONS, MARKS, LINKS, LANES, BUFFERS, OVERHEAD, IKET_RANGES, IKET_MARKS)


STATS = (
    StatSpec("cuda_layout_assumed", "notice", "buffers taken for TIRx: use --layout", finding="LS404 notice"),
    StatSpec("cuda_read_whole", "info", "large files that are read whole", silent="the trace is the same"),
    StatSpec(
        "cuda_stride_inferred",
        "info",
        "strides larger than the number of lanes: found by search",
        finding="LS404 notice",
    ),
    StatSpec(
        "cuda_stride_unknown",
        "error",
        "words that match no stride: lanes are taken from the tags, holes and losses are not detected",
    ),
    StatSpec("cuda_hole", "data_loss", "empty slots before a used slot of the same lane: their records are missing"),
    StatSpec(
        "cuda_corrupt_record",
        "data_loss",
        "records of an unknown kind, or that name another lane than that of their slot: skipped",
    ),
    StatSpec(
        "cuda_lane_full",
        "data_loss",
        "full lanes without expected records: ends of regions, the finalize, or what the rest of their group has",
    ),
    StatSpec(
        "cuda_lane_may_be_lost",
        "notice",
        "full lanes without a count: they dropped at least 0 records, possibly more; use a larger buffer",
        finding="LS005 notice",
    ),
    StatSpec(
        "cuda_dropped_at_least",
        "data_loss",
        "records dropped by full lanes, at least: overwritten ones of a ring, ends of regions, or what the "
        "rest of their group has",
    ),
    StatSpec("cuda_unfinished_region", "notice", "regions without an end", silent="LS103 reports the regions"),
    StatSpec("cuda_end_unmatched", "notice", "ends without a start: kept as instants", finding="LS401"),
    StatSpec(
        "cuda_start_repeated",
        "notice",
        "starts of an asynchronous event that its warp has open already, which the producer ignores: kept as instants",
        finding="LS401",
    ),
    StatSpec(
        "cuda_reserved_bits",
        "notice",
        "entries with bits that no known producer sets: read without them",
        finding="LS404 warning",
        share_of="events",
    ),
    StatSpec(
        "cuda_partial_overlap",
        "info",
        "regions that partially overlap another region of their lane",
        silent="LS101 reports the regions",
    ),
    StatSpec(
        "cuda_unfinalized_lane",
        "notice",
        "lanes without finalize while other lanes have one: trapped, hung or exited",
        finding="LS105 warning",
        share_of="lanes",
    ),
    StatSpec(
        "cuda_no_records",
        "notice",
        "lanes of a buffer without any record: check that probes are compiled in and that the buffer "
        "was copied after the kernel finished",
        finding="LS004",
    ),
    StatSpec("cuda_empty_lane", "info", "lanes of the grid without records", finding="LS105 notice"),
    StatSpec(
        "cuda_after_finalize",
        "notice",
        "records after a finalize of their lane: a kernel that continued, or stale data of a longer launch",
        finding="LS105 warning",
    ),
    StatSpec(
        "cuda_stale",
        "notice",
        "records of an earlier launch in a buffer that was not cleared: excluded unless `stale` is keep",
        finding="LS006",
    ),
    StatSpec("cuda_ignored_after_finalize", "data_loss", "records after a finalize: excluded by option"),
    StatSpec("cuda_clock_reversal", "error", "timestamps smaller than the preceding one of their lane"),
    StatSpec(
        "cuda_multiple_writers",
        "error",
        "lanes with clock reversals or unmatched ends in over 1% of their pairs: probably several writer threads",
    ),
    StatSpec("cuda_negative_duration", "error", "regions with an end timestamp before the start timestamp"),
    StatSpec(
        "cuda_wrap",
        "info",
        "wraps of the timestamp of a lane: unwrapped",
        silent="undone, and proven by the order of the records",
    ),
    StatSpec(
        "cuda_wrap_ambiguous",
        "error",
        "records whose number of 32-bit wraps is not certain",
    ),
    StatSpec(
        "cuda_launch_exceeds_wrap", "error", "launches at least as long as one wrap period of the counter: 4.29 s"
    ),
    StatSpec(
        "cuda_launch_duration_mismatch",
        "error",
        "launches whose duration differs by over 2 s from the time span of the timestamps",
    ),
    StatSpec(
        "cuda_below_resolution",
        "info",
        "regions shorter than twice the clock resolution",
        silent="LS303 reports the regions",
    ),
    StatSpec(
        "cuda_unknown_event",
        "notice",
        "event numbers without a name in the specified names",
        finding="LS404 notice",
        share_of="events",
    ),
    StatSpec(
        "cuda_unreadable_names", "notice", "unreadable sidecar files of event names: ignored", finding="LS003 notice"
    ),
    StatSpec(
        "cuda_trailing_bytes", "data_loss", "trailing bytes: after the array, or of an incomplete word at the end"
    ),
    StatSpec("cuda_dropped", "data_loss", "dropped records: counted by the probe", dropped_units=("record",)),
    StatSpec(
        "cuda_unallocated_lane",
        "data_loss",
        "lanes without space in the buffer: counted by the probes, all of their records are lost, "
        "their number is unknown",
        dropped_units=("lane",),
    ),
    StatSpec("cuda_missing_tail", "data_loss", "records that a lane counted and that are missing at its end"),
    StatSpec(
        "cuda_stale_words",
        "notice",
        "words of an earlier launch after the records of a lane: excluded",
        finding="LS006",
    ),
    StatSpec(
        "cuda_uncounted",
        "data_loss",
        "words after the counted records of their lane, and not older than the lane: the count may be damaged",
    ),
    StatSpec(
        "cuda_torn_counter",
        "info",
        "counter values that a ring has partially overwritten",
        silent="the ring overwrites the oldest records, and `cuda_dropped` counts them",
    ),
    StatSpec(
        "cuda_iket_contradicts",
        "notice",
        "places, times, counts and payloads of IKET and FlyDSL files that contradict other values of the file",
        finding="LS404 warning",
    ),
    StatSpec("cuda_iket_unreadable", "data_loss", "entries of an IKET file without a name, time or place: skipped"),
    StatSpec(
        "cuda_bad_count",
        "error",
        "lanes that counted more records than their probe can count: read to their capacity",
    ),
    StatSpec("cuda_bad_lane_header", "error", "lanes with an invalid state: decoded as lanes without finalize"),
    StatSpec(
        "cuda_contradictory_header",
        "error",
        "words of the file header that contradict others: required sizes without a lane that lacked space, or host "
        "anchors that no clock can show",
    ),
    StatSpec(
        "cuda_contradictory_lane",
        "error",
        "lanes with times or places that are impossible: before their own start, after their end, outside of the host "
        "anchors, or in another cluster rank than their block",
    ),
    StatSpec(
        "cuda_lane_elsewhere",
        "notice",
        "lanes with another SM than their block, or with the launch number of another launch",
        finding="LS404 warning",
        share_of="lanes",
    ),
    StatSpec(
        "cuda_other_warp",
        "notice",
        "lanes with another warp than the same group has in the other blocks",
        finding="LS404 notice",
        share_of="lanes",
    ),
    StatSpec(
        "cuda_contradictory_block",
        "error",
        "block areas with an impossible number, SM or rate, or without an end before their copy",
    ),
    StatSpec(
        "cuda_contradictory_counter",
        "error",
        "counter values of an unknown type",
    ),
    StatSpec("cuda_bad_block", "data_loss", "block areas without their marker, or with contradictory sizes"),
    StatSpec(
        "cuda_ambiguous_async_end",
        "notice",
        "asynchronous regions with several possible starts, or ended by another lane where records were lost: ends may "
        "be swapped",
        finding="LS404 warning",
        share_of="events",
    ),
    StatSpec("cuda_flow_unmatched", "notice", "effects without a preceding cause", finding="LS401"),
    StatSpec("cuda_flow_unused", "info", "causes without an effect", silent="a cause need not have an effect"),
    StatSpec(
        "cuda_instants_unreliable",
        "notice",
        "instants of a probe that overwrites each instant by the next record: only the last one of a lane is recorded",
        finding="LS404 notice",
        share_of="events",
    ),
    StatSpec(
        "cuda_multiple_sms",
        "notice",
        "lanes with records of several SMs: their SM is unknown",
        finding="LS404 warning",
        share_of="lanes",
    ),
    StatSpec(
        "cuda_sm_unknown",
        "info",
        "lanes whose SM is overwritten by a block number above 4095",
        silent="the format has no room for it, and nothing rests on it",
    ),
    StatSpec(
        "cuda_wrap_assumed",
        "notice",
        "unwrapped timestamps with the assumption of at most one wrap between records: use --launch-ns",
        finding="LS305 notice",
        share_of="events",
    ),
    StatSpec(
        "cuda_length_assumed",
        "notice",
        "regions assumed to be shorter than the wrap period of their stored length: use --launch-ns",
        finding="LS305 notice",
    ),
    StatSpec("cuda_clock_mismatch", "error", "lanes whose counter and timer contradict those of their SM"),
    StatSpec(
        "cuda_rate_estimated", "notice", "clock rates estimated from bounds: use --clock-mhz", finding="LS305 notice"
    ),
    StatSpec(
        "cuda_unaligned_sms",
        "error",
        "SM counters without a common start: times are not comparable across SMs",
    ),
)
