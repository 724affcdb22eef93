"""The wire formats of AIE trace units, as data.

A trace unit sends packets of eight 32-bit words: a header and seven words of payload. The payloads of one source make
a stream of frames, read from the most significant bit of each word. A dump holds the packets of several sources, the
words little endian, or as text of one word a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lanescope.declaration import replace
from lanescope.wire import Field, Frame, FrameSet, Member, Record, Struct

PACKET_WORDS = 8
PAYLOAD_WORDS = 7
FILLER_WORD = 0xFEFEFEFE
SYNC_CYCLES = 1 << 18
MODES = {0: "event-time", 1: "event-pc", 2: "execution", 3: "reserved"}

#: Packet types by the convention of mlir-aie; the hardware sends whatever number was configured.
MODULES = {0: "core", 1: "mem", 2: "shim", 3: "memtile"}
#: Modules with a trace unit in the first rows; cores are in all others.
_ROWS = (("shim",), ("memtile",), ("core", "mem", "memtile"))

_AM020 = "AMD AM020, chapter 2"
_XDNA_EMU = "FIM43-Redeye/xdna-emu, trace decoder and its notes"
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
PADDING = Record(
    "padding", bits=8, prefix="11111110", doc="Nothing; fills words and packets.", source=_AM020, status="observed"
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
        PADDING,
    ),
    padding="padding",
    doc="Event-time trace: which of eight events were asserted, in every cycle.",
)


EVENT_PC = Record(
    "event_pc",
    bits=32,
    prefix="110001",
    fields=(
        Field("mask", lsb=18, width=8, doc=_MASK),
        Field("reserved", lsb=14, width=4, doc="Zero in all captures.", default=0, status="unknown"),
        Field("pc", lsb=0, width=14, doc="Byte address that was being fetched, up to four bundles ahead of the event."),
    ),
    doc="One cycle with events and where the program was. Quiet cycles are not told.",
    source="Xilinx/mlir-aie, pull request 3504; 162 frames of a hardware capture",
    status="observed",
)
#: Mode 1: one frame for each cycle in which a watched event was asserted. Only core modules have it.
MODE1 = FrameSet(
    "aie.mode1",
    (
        EVENT_PC,
        replace(MODE0["repeat0"], doc="So many cycles more with the same events at the same address."),
        replace(MODE0["repeat1"], doc="So many cycles more with the same events at the same address."),
        STOP,
        START,
        replace(SYNC, source=f"{_AM020}, for mode 0", status="published"),
        PADDING,
    ),
    padding="padding",
    doc="Event-PC trace: the order of events, and the program counter at each.",
)


def _flow(name: str, bits: int, prefix: str, doc: str, status: str, fields: tuple[Field, ...] = ()) -> Record:
    source = f"{_XDNA_EMU}; one hardware capture" if status == "observed" else _XDNA_EMU
    return Record(name, bits=bits, prefix=prefix, fields=fields, doc=doc, source=source, status=status)


_PC = Field("pc", lsb=0, width=14, doc="Byte address of a bundle.")
_REPEATS = "The last frame happened so many times more; known of atoms only."
#: Mode 2: the decisions of the program, without any time. Only core modules of AIE2 are known to have it.
MODE2 = FrameSet(
    "aie.mode2",
    (
        _flow("not_taken", 4, "0000", "N: a conditional branch was not taken.", "observed"),
        _flow("taken", 4, "0001", "E: a conditional branch was taken, direct or indirect.", "observed"),
        _flow(
            "loop",
            32,
            "010",
            "A zero-overhead loop begins.",
            "published",
            (
                Field("is_wrapped", lsb=28, width=1, doc="2**28 or more trips: the count is what is left of them."),
                Field("count", lsb=0, width=28, doc="Trips, modulo 2**28."),
            ),
        ),
        _flow("new_pc", 16, "10", "Where a return or an indirect jump or call went.", "observed", (_PC,)),
        _flow("repeat0", 8, "1110", _REPEATS, "published", (Field("repeats", lsb=0, width=4),)),
        _flow("repeat1", 16, "110110", _REPEATS, "published", (Field("repeats", lsb=0, width=10),)),
        replace(STOP, source=f"{_XDNA_EMU}; as in the other modes", status="published"),
        _flow(
            "start",
            32,
            "11110",
            "A recording begins. One word, without a timer.",
            "observed",
            (
                Field(
                    "restart",
                    lsb=26,
                    width=1,
                    doc="Recording goes on after frames were lost.",
                    values={0: "first", 1: "again"},
                    status="published",
                ),
                Field("mode", lsb=24, width=2, doc="Trace mode.", values=MODES),
                Field("reserved", lsb=14, width=10, doc="Zero in the capture.", default=0, status="unknown"),
                Field("pc", lsb=0, width=14, doc="Byte address that was being fetched: at a stall, ahead of it."),
            ),
        ),
        _flow("filler0", 4, "0010", "Nothing; fills words.", "observed"),
        _flow("filler1", 8, "11111110", "Nothing; may fill packets.", "published"),
        _flow("sync", 8, "11111111", "Unknown; mode 2 has no time.", "published"),
    ),
    padding="filler0",
    doc="Execution trace: branch outcomes, dynamic targets, loop counts, in order.",
)
#: More trips than a loop frame has room for.
WRAPPED_TRIPS = 1 << MODE2["loop"]["count"].width
FRAME_SETS = {0: MODE0, 1: MODE1, 2: MODE2}

#: Names of the native frame reader's items: frames by number, then everything else.
FRAMES = (
    *(record.name for record in MODE0.records),
    "event_pc",
    *("not_taken", "taken", "loop", "new_pc", "filler0", "filler1"),
)
NO_FRAME = ("unknown_code", "crosses_word", "misaligned", "truncated", "zero_word", "other_mode")
#: Frames that carry nothing.
FILLERS = ("padding", "filler0", "filler1")
#: What a row of mode 2 says, by the number in its native tag; the first ones with an address.
FLOW_KINDS = ("start", "restart", "new_pc", "taken", "not_taken", "loop", "stop")
#: What the native packet scanner calls its runs of words, by number.
RUNS = ("packet", "lost", "orphan", "zeros", "incomplete")
PACKET_RUN, LOST_RUN, ORPHAN_RUN, ZEROS_RUN, INCOMPLETE_RUN = range(5)


def module_name(packet_type: int) -> str:
    """Return the module that sends packets of a type, by convention."""
    return MODULES.get(packet_type, f"type {packet_type}")


def module_of(header: Mapping[str, int]) -> str:
    """Return the module that sends packets with a header: by its type, or by its row if id and type were never set."""
    if is_unset(header) and header["row"] < len(_ROWS):
        return _ROWS[header["row"]][0]
    return module_name(header["type"])


def is_unset(header: Mapping[str, int]) -> bool:
    """Return whether id and type of a unit were never set, as on a circuit-switched route, which needs none."""
    return header["type"] == header["id"] == 0


def fits_row(header: Mapping[str, int]) -> bool:
    """Return whether a row has units of the type, on any device: large arrays have two rows of memory tiles."""
    row = header["row"]
    modules = _ROWS[row] if row < len(_ROWS) else ("core", "mem")
    return is_unset(header) or module_name(header["type"]) in modules


def is_start(word: int) -> bool:
    """Return whether a word starts with a Start frame of any mode."""
    return word >> 27 == 0b11110


def mode_of(start_word: int) -> int:
    """Return the trace mode that a Start's first word names; it lies at the same place in all modes."""
    return start_word >> 24 & 3


def decode_stream(words: Sequence[int], mode: int = 0) -> Iterator[tuple[int, Frame]]:
    """Split one source's payload words by the declared layouts: slow, obvious, the measure of the native codec.

    Args:
        words: payload words in order.
        mode: the mode before the first Start.

    Yields:
        (mode, frame), in order; ``Frame.word`` counts from the first of ``words``. Words of mode 3, whose format is
        unknown, come as errors ``other_mode``, words of zeros where the hardware writes none as ``zero_word``.
    """
    at = 0
    while at < len(words):
        end = at
        if is_start(words[at]):
            mode = mode_of(words[at])
            end = min(at + (2 if mode < 2 else 1), len(words))
        while end < len(words) and not is_start(words[end]) and not _is_odd(words[end], mode):
            end += 1
        if end > at and mode in FRAME_SETS:
            for frame in FRAME_SETS[mode].decode(words[at:end]):
                yield mode, frame._replace(word=at + frame.word)
        elif end > at:
            start = FRAME_SETS[2]["start"]
            yield mode, Frame(at, 0, 32, start, words[at], start.unpack(words[at]))
        at = end
        while at < len(words) and not is_start(words[at]) and _is_odd(words[at], mode):
            yield mode, Frame(at, 0, 32, None, words[at], {}, "zero_word" if mode in FRAME_SETS else "other_mode")
            at += 1


def _is_odd(word: int, mode: int) -> bool:
    return mode not in FRAME_SETS or (word == 0 and mode != 2)
