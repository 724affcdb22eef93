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

#: Every layout by the name that ``inputs.format`` shows.
LAYOUTS: dict[str, tuple[Record, ...]] = {TIRX_V1: (TIRX_HEADER, TIRX_RECORD)}
