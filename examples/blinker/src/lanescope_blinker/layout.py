"""The wire format as data: a header, then records in the order in which the controller wrote them."""

from lanescope.wire import Field, Member, Record, Struct

MAGIC = 0x4B4E4C42  # the bytes "BLNK"

HEADER = Struct(
    "blinker.header",
    size=16,
    members=(
        Member("magic", 0, "u32", "the bytes BLNK", default=MAGIC),
        Member("version", 4, "u16", "version of the format", default=1),
        Member("lamps", 6, "u16", "number of lamps"),
        Member("tick_hz", 8, "u32", "frequency of the time stamps", unit="Hz"),
        Member("reserved", 12, "u32", "zero", default=0),
    ),
    doc="once, at the begin of the file",
    source="made up for this example",
)

RECORD = Record(
    "blinker.record",
    bits=64,
    fields=(
        Field("time", lsb=0, width=32, doc="time stamp; wraps", unit="ticks"),
        Field("lamp", lsb=32, width=8, doc="which lamp"),
        Field("state", lsb=40, width=1, values={0: "off", 1: "on"}, doc="what it turned to"),
        Field("reserved", lsb=41, width=7, doc="zero", default=0),
        Field("sequence", lsb=48, width=16, doc="counts all records of the controller; a hole is a loss"),
    ),
    doc="a lamp changed",
    source="made up for this example",
)
LAYOUTS = (HEADER, RECORD)
RECORD_BYTES = RECORD.bits // 8
