"""Layouts of the kinds that lanescope meets, declared here for the tests of the codecs alone."""

from lanescope.wire import Field, FrameSet, Member, Record, Struct

AM020 = "AMD AM020 chapter 2"
SLOT = "Number of the watched event."
IDLE = "Cycles without an event before the one in which it is asserted."


def event(name, prefix, who, who_bits, cycle_bits):
    bits = len(prefix) + who_bits + cycle_bits
    fields = (
        Field(who, lsb=cycle_bits, width=who_bits, doc=SLOT),
        Field("cycles", lsb=0, width=cycle_bits, doc=IDLE, unit="cycles"),
    )
    return Record(name, bits=bits, prefix=prefix, fields=fields, source=AM020)


def one(name, prefix, field_name, width, **more):
    return Record(
        name, bits=len(prefix) + width, prefix=prefix, fields=(Field(field_name, lsb=0, width=width),), **more
    )


STOP = event("stop", "110111", "mask", 8, 18)
REPEAT1 = one("repeat1", "110110", "times", 10)
REPEAT0 = one("repeat0", "1110", "times", 4)
PADDING = Record("padding", bits=8, prefix="11111110")
SYNC = Record("sync", bits=8, prefix="11111111", doc="2^18 cycles have passed.")


def start(mode):
    timer = Field("timer", lsb=0, width=56, doc="Timer of the module.", unit="cycles")
    return tuple(
        Record(name, bits=64, prefix=f"11110{restart}{mode:02b}", fields=(timer,), source=AM020)
        for restart, name in enumerate(("start", "restart"))
    )


MODE0 = FrameSet(
    "aie.mode0",
    (
        event("single0", "0", "slot", 3, 4),
        event("single1", "100", "slot", 3, 10),
        event("single2", "101", "slot", 3, 18),
        event("multiple0", "1100", "mask", 8, 4),
        event("multiple1", "110100", "mask", 8, 10),
        event("multiple2", "110101", "mask", 8, 18),
        REPEAT1,
        STOP,
        REPEAT0,
        *start(0),
        PADDING,
        SYNC,
    ),
    padding="padding",
)

EVENT_PC = Record(
    "event_pc",
    bits=32,
    prefix="110001",
    fields=(
        Field("mask", lsb=18, width=8, doc="Events asserted in this cycle, bit i is slot i."),
        Field("reserved", lsb=14, width=4, default=0, status="observed"),
        Field("pc", lsb=0, width=14, doc="Program counter of the fetch stage.", unit="bytes"),
    ),
    status="observed",
)
MODE1 = FrameSet("aie.mode1", (EVENT_PC, REPEAT1, STOP, REPEAT0, *start(1), PADDING, SYNC), padding="padding")

START2 = Record(
    "start",
    bits=32,
    prefix="11110",
    fields=(
        Field("restart", lsb=26, width=1),
        Field("mode", lsb=24, width=2, values={2: "execution"}),
        Field("reserved", lsb=14, width=10, default=0),
        Field("pc", lsb=0, width=14),
    ),
    status="observed",
)
LOOP_COUNT = Record(
    "loop_count",
    bits=32,
    prefix="010",
    fields=(Field("overflow", lsb=28, width=1), Field("count", lsb=0, width=28)),
    status="published",
)
MODE2 = FrameSet(
    "aie.mode2",
    (
        Record("not_taken", bits=4, prefix="0000", status="observed"),
        Record("taken", bits=4, prefix="0001", status="observed"),
        Record("filler0", bits=4, prefix="0010", status="observed"),
        LOOP_COUNT,
        one("new_pc", "10", "pc", 14, status="observed"),
        REPEAT0,
        REPEAT1,
        STOP,
        START2,
        Record("filler1", bits=8, prefix="11111110", status="published"),
        SYNC,
    ),
    padding="filler0",
)
FRAME_SETS = (MODE0, MODE1, MODE2)

HEADER = Record(
    "header",
    bits=32,
    fields=(
        Field("packet_id", lsb=0, width=5),
        Field("reserved_low", lsb=5, width=7, default=0),
        Field("type", lsb=12, width=3, values={0: "core", 1: "mem", 2: "shim", 3: "memtile"}),
        Field("reserved_15", lsb=15, width=1, default=0),
        Field("row", lsb=16, width=5),
        Field("column", lsb=21, width=7),
        Field("reserved_high", lsb=28, width=3, default=0),
        Field("parity", lsb=31, width=1),
    ),
    source=AM020,
)
PACKET = Struct("packet", size=32, members=(Member("header", 0, HEADER), Member("payload", 4, "u32", count=7)))

MARKER = Record(
    "marker",
    bits=64,
    fields=(
        Field("kind", lsb=0, width=2, values={0: "begin", 1: "end", 2: "instant", 3: "finalize"}),
        Field("event", lsb=2, width=10, doc="Index into the caller's names."),
        Field("lane", lsb=12, width=20, doc="block * num_groups + group"),
        Field("time", lsb=32, width=32, unit="ns", doc="Low half of the timer; wraps each 2^32 ns."),
    ),
)
DELTA = Record("delta", bits=16, fields=(Field("low", lsb=0, width=5), Field("step", lsb=5, width=11, signed=True)))

PHASE = Struct(
    "phase",
    size=64,
    members=(
        Member("start_time", 0, "u64", unit="cycles"),
        Member("end_time", 8, "u64", unit="cycles"),
        Member("loop_iter", 16, "u32"),
        Member("kind", 20, "u32", values={0: "complete", 1: "dispatch"}),
        Member("tasks_processed", 24, "u32"),
        Member("pop_hit", 28, "u32"),
        Member("pop_miss", 32, "u32"),
        Member("local_depth_at_start", 36, "i16", count=3, doc="Ready tasks: AIC, AIV, MIX."),
        Member("local_depth_at_end", 42, "i16", count=3),
        Member("shared_depth_at_start", 48, "i16", count=3),
        Member("shared_depth_at_end", 54, "i16", count=3),
        Member("padding", 60, "u8", count=4, default=0),
    ),
    source="simpler, l2_swimlane_profiling.h",
)
#: The same bytes as a later version means them: a union by ``kind``.
PHASE_OF_TASK = Struct(
    "phase_of_task",
    size=64,
    members=(
        *PHASE.members[:5],
        Member("task_local_id", 28, "u32"),
        Member("task_ring_id", 32, "u32"),
        Member("shared_depth_at_start", 36, "i16", count=3),
        Member("shared_depth_at_end", 42, "i16", count=3),
        Member("padding", 48, "u8", count=16, default=0),
    ),
)
BUFFER = Struct(
    "buffer",
    size=192,
    members=(
        Member("records", 0, PHASE, count=2),
        Member("count", 128, "u32"),
        Member("tags", 132, MARKER, count=2),
        Member("padding", 148, "u32", count=11, default=0),
    ),
)
STRUCTS = (PACKET, PHASE, PHASE_OF_TASK, BUFFER)
