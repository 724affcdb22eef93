"""The wire formats of in-kernel CUDA probes, as data.

All of them are arrays of little-endian 64-bit words. A *lane* is the stream of one writer thread: one (block, group).
"""

from __future__ import annotations

from lanescope.wire import Field, Record

WORD_BYTES = 8

#: What a record says. The readers of all layouts translate their own codes into these.
BEGIN, END, INSTANT, FINALIZE = range(4)
KINDS = {BEGIN: "begin", END: "end", INSTANT: "instant", FINALIZE: "finalize"}

#: Width of the stamps' counter: ``%globaltimer_lo`` counts nanoseconds and wraps every 4.294967296 s.
STAMP_BITS = 32
STAMP_WRAP = 1 << STAMP_BITS
#: No counter is faster.
MAX_MHZ = 100_000
#: A block has at most 1024 threads.
MOST_WARPS = 32
#: No GPU has so many SMs: the largest have about 150.
MOST_SMS = 1024

_TIRX = "apache/tvm at 5d4dc87: python/tvm/tirx/bench.py, python/tvm/backend/cuda/cpp/instrument.py"

TIRX_V1 = "tirx-v1"
TIRX_HEADER = Record(
    "cuda.tirx_v1.header",
    bits=64,
    fields=(
        Field("num_blocks", lsb=0, width=32, doc="Blocks of the grid, all three dimensions multiplied."),
        Field("num_groups", lsb=32, width=32, doc="Groups of threads per block that have a lane each."),
    ),
    doc="Slot 0, stored by block 0. Never written when that block did not run.",
    source=_TIRX,
)
TIRX_RECORD = Record(
    "cuda.tirx_v1.record",
    bits=64,
    fields=(
        Field("kind", lsb=0, width=2, doc="What is marked.", values=KINDS),
        Field("event", lsb=2, width=10, doc="Index into the caller's list of names; 0 in a finalize."),
        Field("lane", lsb=12, width=20, doc="block * num_groups + group"),
        Field("time", lsb=32, width=STAMP_BITS, doc="%globaltimer_lo, wraps.", unit="ns"),
    ),
    doc="Record k of a lane stands in slot 1 + lane + k * stride; a word of zeros is an empty slot. "
    "The stride is a constant of the kernel and is not stored.",
    source=_TIRX,
)
#: The tag holds the lane in this many values; a kernel with more lanes corrupts its own stamps.
TIRX_MAX_LANES = 1 << TIRX_RECORD["lane"].width

_FLASHINFER = "flashinfer-ai/flashinfer at fb28d72: include/flashinfer/profiler.cuh"

#: As TIRx v1, without finalize.
FLASHINFER_V1 = "flashinfer-v1"
FLASHINFER_V2 = "flashinfer-v2"
FLASHINFER_V2_RECORD = Record(
    "cuda.flashinfer_v2.record",
    bits=64,
    fields=(
        Field("kind", lsb=0, width=2, doc="Kind of marker; this format has no finalize marker.", values=KINDS),
        Field("event", lsb=2, width=10, doc="Index into the caller's list of names."),
        Field("block", lsb=12, width=12, doc="Block; the group is not stored, and larger numbers run into the SM."),
        Field("sm", lsb=24, width=8, doc="%smid"),
        Field("time", lsb=32, width=STAMP_BITS, doc="%globaltimer_lo, wraps.", unit="ns"),
    ),
    doc="Header and slots as in TIRx v1; the stride is the number of lanes.",
    source=_FLASHINFER,
)
#: The same words as TIRx v1; a probe with a limit drops what comes after it.
WARPSCOPE = "warpscope"

LS2 = "ls2"
_ADR = "docs/adr/0004, 0007 and 0013"
#: The bytes ``LSPROBE2``.
LS2_MAGIC = int.from_bytes(b"LSPROBE2", "little")
#: What hosts write now: a region may end in another lane than it began. Since version 2 probes count the lanes that
#: found no room. No version is one wrong bit away from another.
LS2_VERSION = 4
LS2_VERSIONS = (1, 2, LS2_VERSION)
LS2_FILE_WORDS = 16
LS2_LANE_WORDS = 8
LS2_MAX_CAPACITY = 1 << 30
GLOBALTIMER, CLOCK64 = 0, 1
DROP, RING = 0, 1
UNUSED, RUNNING, FINALIZED = 0, 1, 3
COUNTER, ASYNC_BEGIN, ASYNC_END, FLOW_OUT, FLOW_IN = range(3, 8)
LS2_KINDS = {
    BEGIN: "begin",
    END: "end",
    INSTANT: "instant",
    COUNTER: "counter",
    ASYNC_BEGIN: "async_begin",
    ASYNC_END: "async_end",
    FLOW_OUT: "flow_out",
    FLOW_IN: "flow_in",
}
#: Token of a counter whose value is a float64.
LS2_FLOAT = 1
LS2_HEADER = Record(
    "cuda.ls2.header",
    bits=64 * LS2_FILE_WORDS,
    fields=(
        Field("magic", lsb=0, width=64, doc="LSPROBE2"),
        Field("version", lsb=64, width=8, doc="4; 1: probes did not count what is in the words 12 to 14."),
        Field("record_words", lsb=72, width=8, doc="1, or 2 with a payload."),
        Field(
            "clock",
            lsb=80,
            width=8,
            doc="Clock of the stamps.",
            values={GLOBALTIMER: "globaltimer", CLOCK64: "clock64"},
        ),
        Field(
            "policy", lsb=88, width=8, doc="What becomes of records without room.", values={DROP: "drop", RING: "ring"}
        ),
        Field("flags", lsb=96, width=32, doc="0"),
        Field("num_blocks", lsb=128, width=32, doc="Blocks of the grid, all three dimensions multiplied."),
        Field("num_groups", lsb=160, width=32, doc="Groups of threads per block that have a lane each."),
        Field("capacity", lsb=192, width=64, doc="Positions of a lane, a power of two."),
        Field("launch", lsb=256, width=64, doc="The host's number of the launch."),
        Field("ordinal", lsb=320, width=64, doc="The host's number of the GPU."),
        Field("anchor_ticks", lsb=384, width=64, doc="First host anchor: globaltimer.", unit="ns"),
        Field("anchor_unix", lsb=448, width=64, doc="The Unix time then; 0: no anchor.", unit="ns"),
        Field("anchor_error", lsb=512, width=64, doc="Bound of the error of the pair.", unit="ns"),
        Field("anchor2_ticks", lsb=576, width=64, doc="Second host anchor.", unit="ns"),
        Field("anchor2_unix", lsb=640, width=64, doc="Likewise.", unit="ns"),
        Field("anchor2_error", lsb=704, width=64, doc="Likewise.", unit="ns"),
        Field(
            "refused", lsb=768, width=64, doc="Lanes that found no room in the buffer; each adds 1 when it is begun."
        ),
        Field("required_blocks", lsb=832, width=64, doc="Blocks of a grid that had more than num_blocks; 0: none had."),
        Field(
            "required_groups",
            lsb=896,
            width=64,
            doc="One more than the largest group that was not below num_groups; 0: all were.",
        ),
        Field("reserved", lsb=960, width=64, doc="0"),
    ),
    doc="Written by the host before the launch, the second anchor after it; words 12 to 14 by the kernel.",
    source=_ADR,
)
LS2_LANE = Record(
    "cuda.ls2.lane",
    bits=64 * LS2_LANE_WORDS,
    fields=(
        Field(
            "state",
            lsb=0,
            width=64,
            doc="How far the writer came.",
            values={UNUSED: "unused", RUNNING: "running", FINALIZED: "finalized"},
        ),
        Field("offered", lsb=64, width=64, doc="Positions that the writer wanted; not capped."),
        Field("begin_ns", lsb=128, width=64, doc="%globaltimer when the lane was begun.", unit="ns"),
        Field("begin_cycles", lsb=192, width=64, doc="%clock64 then."),
        Field("end_ns", lsb=256, width=64, doc="%globaltimer when it was finalized.", unit="ns"),
        Field("end_cycles", lsb=320, width=64, doc="%clock64 then."),
        Field("sm", lsb=384, width=16, doc="%smid"),
        Field("warp", lsb=400, width=16, doc="Warp of the writer in its block."),
        Field("cluster_rank", lsb=416, width=32, doc="%cluster_ctarank"),
        Field("grid_id", lsb=448, width=64, doc="%gridid"),
    ),
    source=_ADR,
)
LS2_RECORD = Record(
    "cuda.ls2.record",
    bits=64,
    fields=(
        Field("is_record", lsb=0, width=1, doc="Always 1: a record is never 0, nor the value of a counter."),
        Field(
            "token", lsb=1, width=12, doc="Joins the two records of an asynchronous region or flow; type of a counter."
        ),
        Field("kind", lsb=13, width=3, doc="What is marked.", values=LS2_KINDS),
        Field("event", lsb=16, width=16, doc="Index into the caller's list of names."),
        Field("time", lsb=32, width=STAMP_BITS, doc="Low half of the clock, wraps.", unit="ns"),
    ),
    doc="With two words a record, its payload follows. With one, only a counter's value: 62 bits above the bits 10.",
    source=_ADR,
)

PROTON = "proton"
_PROTON = "triton-lang/triton at 9b17d85: third_party/proton/common/lib/TraceDataIO"
PROTON_PREAMBLE = 0xDEADBEEF
PROTON_STAMP_BITS = 43
#: What an entry is: Triton 3.9 tells asynchronous events by the highest bit of the field, trees with typed entries have
#: the values between; older ones leave the field 0.
SCOPE, ASYNC, MARK, METRIC, ASYNC_39 = range(5)
PROTON_HEADER = Record(
    "cuda.proton.header",
    bits=320,
    fields=(
        Field("version", lsb=0, width=32, doc="1"),
        Field("header_offset", lsb=32, width=32, doc="4", unit="bytes"),
        Field("header_size", lsb=64, width=32, doc="40 + 4 * uid_num", unit="bytes"),
        Field("payload_offset", lsb=96, width=32, doc="Where the scratch areas begin in the file.", unit="bytes"),
        Field("payload_size", lsb=128, width=32, doc="All of them.", unit="bytes"),
        Field("device", lsb=160, width=32, doc="Kind of device.", values={1: "cuda", 2: "hip"}),
        Field("blocks", lsb=192, width=32, doc="CTAs of the grid."),
        Field("units", lsb=224, width=32, doc="Warps of a CTA."),
        Field("scratch", lsb=256, width=32, doc="Scratch area of a CTA.", unit="bytes"),
        Field("uids", lsb=288, width=32, doc="Warps that were recorded; their numbers follow."),
    ),
    source=_PROTON,
)
PROTON_BLOCK = Record(
    "cuda.proton.block",
    bits=320,
    fields=(
        Field("preamble", lsb=0, width=32, doc="0xDEADBEEF"),
        Field("block", lsb=32, width=32, doc="Linear program id."),
        Field("sm", lsb=64, width=32, doc="%smid"),
        Field("size", lsb=96, width=32, doc="Bytes of data, the same for each recorded warp.", unit="bytes"),
        Field("begin_ns", lsb=128, width=64, doc="%globaltimer at entry; missing in older versions.", unit="ns"),
        Field("end_ns", lsb=192, width=64, doc="%globaltimer before the buffer is copied out.", unit="ns"),
        Field("done_ns", lsb=256, width=64, doc="%globaltimer after that.", unit="ns"),
    ),
    doc="Then a write index for each warp, in 32-bit words, then the data.",
    source=_PROTON,
)
PROTON_ENTRY = Record(
    "cuda.proton.entry",
    bits=64,
    fields=(
        Field("time_high", lsb=0, width=11, doc="Clock bits 42..32; 0 with a 32-bit clock."),
        Field("reserved", lsb=11, width=5, doc="0"),
        Field("value_type", lsb=16, width=4, doc="Type of a metric's value."),
        Field(
            "type",
            lsb=20,
            width=3,
            doc="What it is.",
            values={SCOPE: "scope", ASYNC: "async", MARK: "mark", METRIC: "metric", ASYNC_39: "async"},
        ),
        Field("scope", lsb=23, width=8, doc="Number of the scope."),
        Field("is_end", lsb=31, width=1, doc="1: end."),
        Field("time", lsb=32, width=32, doc="Clock bits 31..0; a metric's value."),
    ),
    doc="The tag comes first, so it is the low half of the word.",
    source=_PROTON,
)

#: Every layout by the name that ``inputs.format`` shows.
LAYOUTS: dict[str, tuple[Record, ...]] = {
    TIRX_V1: (TIRX_HEADER, TIRX_RECORD),
    FLASHINFER_V2: (FLASHINFER_V2_RECORD,),
    LS2: (LS2_HEADER, LS2_LANE, LS2_RECORD),
    PROTON: (PROTON_HEADER, PROTON_BLOCK, PROTON_ENTRY),
}
#: All of them, for the reference pages.
RECORDS = tuple(record for records in LAYOUTS.values() for record in records)
#: The names by which the ``layout`` options take them.
SHORT_NAMES = {
    "tirx": TIRX_V1,
    "flashinfer1": FLASHINFER_V1,
    "flashinfer2": FLASHINFER_V2,
    "warpscope": WARPSCOPE,
    "ls2": LS2,
    "proton": PROTON,
}
