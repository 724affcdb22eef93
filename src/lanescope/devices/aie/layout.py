"""The wire formats of AIE trace units, as data.

A trace unit sends packets of eight 32-bit words: a header and seven words of payload. The payloads of one source make
a stream of frames, read from the most significant bit of each word. A dump holds the packets of several sources, the
words little endian, or as text of one word a line.
"""

from __future__ import annotations

from lanescope.wire import Field, FrameSet, Member, Record, Struct

PACKET_WORDS = 8
PAYLOAD_WORDS = 7
FILLER_WORD = 0xFEFEFEFE
SYNC_CYCLES = 1 << 18
MODES = {0: "event-time", 1: "event-pc", 2: "execution", 3: "reserved"}

#: Packet types by the convention of mlir-aie; the hardware sends whatever number was configured.
MODULES = {0: "core", 1: "mem", 2: "shim", 3: "memtile"}

_AM020 = "AMD AM020, chapter 2"
_MLIR_AIE = "Xilinx/mlir-aie, python/utils/trace"

HEADER = Record(
    "aie.header",
    bits=32,
    fields=(
        Field("parity", lsb=31, width=1, doc="Makes the number of ones in the word odd."),
        Field("reserved_28", lsb=28, width=3, doc="Zero in sound headers.", default=0),
        Field("column", lsb=21, width=7, doc="Physical column of the tile."),
        Field("row", lsb=16, width=5, doc="Row of the tile: 0 shim, 1 memory tile, then cores on NPUs."),
        Field("reserved_15", lsb=15, width=1, doc="Zero in sound headers.", default=0),
        Field("type", lsb=12, width=3, doc="Module, as configured.", values=MODULES),
        Field("reserved_5", lsb=5, width=7, doc="Zero in sound headers.", default=0),
        Field("id", lsb=0, width=5, doc="Packet id that routes it."),
    ),
    doc="First word of a packet: who sent it.",
    source=f"{_MLIR_AIE}; all 46 headers of four hardware captures",
    status="observed",
)
PACKET = Struct(
    "aie.packet",
    size=4 * PACKET_WORDS,
    members=(
        Member("header", 0, HEADER),
        Member("payload", 4, "u32", doc="Seven words of the source's frame stream.", count=PAYLOAD_WORDS),
    ),
    doc="What a trace unit sends at a time; packets of several sources come interleaved, never split.",
    source=_AM020,
)

_MASK = "Events asserted in one cycle, bit i for slot i."
_IDLE = "Cycles without any event before it."


def _event(name: str, bits: int, prefix: str, cycles: int, who: str, status: str) -> Record:
    width = bits - len(prefix) - cycles
    doc = "Slot of the asserted event." if who == "slot" else _MASK
    return Record(
        name,
        bits=bits,
        prefix=prefix,
        fields=(
            Field(who, lsb=cycles, width=width, doc=doc),
            Field("cycles", lsb=0, width=cycles, doc=_IDLE, unit="cycles"),
        ),
        doc=f"Idle cycles, then one cycle with {'one event' if who == 'slot' else 'several events'}.",
        source=_MLIR_AIE,
        status=status,
    )


def _repeat(name: str, bits: int, prefix: str) -> Record:
    return Record(
        name,
        bits=bits,
        prefix=prefix,
        fields=(Field("repeats", lsb=0, width=bits - len(prefix), doc="How many times more."),),
        doc="The last event frame happens again, its idle cycles included.",
        source=_MLIR_AIE,
        status="observed",
    )


START = Record(
    "start",
    bits=64,
    prefix="11110",
    fields=(
        Field(
            "restart", lsb=58, width=1, doc="Recording goes on after frames were lost.", values={0: "first", 1: "again"}
        ),
        Field("mode", lsb=56, width=2, doc="Trace mode. In mode 2 Start is one word without a timer.", values=MODES),
        Field("timer", lsb=0, width=56, doc="The module's timer, before the start event resets it.", unit="cycles"),
    ),
    doc="A recording begins. Two whole words.",
    source="hardware captures; restart seen in mode 1 only",
    status="observed",
)
STOP = Record(
    "stop",
    bits=32,
    prefix="110111",
    fields=(
        Field("mask", lsb=18, width=8, doc="Zero in all captures; its meaning is unknown.", status="unknown"),
        Field("cycles", lsb=0, width=18, doc=_IDLE, unit="cycles"),
    ),
    doc="The recording ends in the cycle after its idle cycles.",
    source=f"{_MLIR_AIE}; hardware captures",
    status="observed",
)
SYNC = Record(
    "sync",
    bits=8,
    prefix="11111111",
    doc=f"{SYNC_CYCLES} idle cycles before the next frame's own.",
    source="Xilinx/mlir-aie, pull request 3668",
    status="observed",
)
FILLER = Record(
    "filler", bits=8, prefix="11111110", doc="Nothing; fills words and packets.", source=_AM020, status="observed"
)

#: Mode 0. The order is that of the native codec's frame numbers.
MODE0 = FrameSet(
    "aie.mode0",
    (
        _event("single0", 8, "0", 4, "slot", "observed"),
        _event("single1", 16, "100", 10, "slot", "observed"),
        _event("single2", 24, "101", 18, "slot", "observed"),
        _event("multiple0", 16, "1100", 4, "mask", "observed"),
        _event("multiple1", 24, "110100", 10, "mask", "documented"),
        _event("multiple2", 32, "110101", 18, "mask", "documented"),
        _repeat("repeat0", 8, "1110"),
        _repeat("repeat1", 16, "110110"),
        STOP,
        START,
        SYNC,
        FILLER,
    ),
    filler="filler",
    doc="Event-time trace: which of eight events were asserted, in every cycle.",
)

#: What the native frame reader calls its items: frames by number, then what is no frame.
FRAMES = tuple(record.name for record in MODE0.records)
NO_FRAME = ("unknown_code", "crosses_word", "misaligned", "truncated", "zero_word", "other_mode")
#: What the native packet scanner calls its runs of words, by number.
RUNS = ("packet", "lost", "orphan", "zeros", "incomplete")
PACKET_RUN, LOST_RUN, ORPHAN_RUN, ZEROS_RUN, INCOMPLETE_RUN = range(5)


def module_name(packet_type: int) -> str:
    """Return the module that sends packets of a type, by convention."""
    return MODULES.get(packet_type, f"type {packet_type}")
