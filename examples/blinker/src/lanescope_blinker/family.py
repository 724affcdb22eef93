"""What lanescope asks of a family, as data: what does the work is named, and imported when it is needed."""

from __future__ import annotations

from lanescope.families import Family, Format, Option, Simulator
from lanescope.source import Detection, FileHead


def detect(head: FileHead) -> Detection:
    """Magic and version decide."""
    if head.data[:6] == b"BLNK\x01\x00":
        return Detection(95, "blinker-1", "begins with BLNK, version 1")
    return Detection(0)


FAMILY = Family(
    name="blinker",
    title="Lamp controller of the documentation's recipe",
    formats=(
        Format(
            "blinker-1",
            detect=detect,
            decode="lanescope_blinker.decode:BlinkerDecoder",
            layouts="lanescope_blinker.layout:LAYOUTS",
            bytes_per_row=200,
        ),
    ),
    options=(Option("lamps", lambda text: text.split(","), "names of the lamps, in order", metavar="A,B,..."),),
    tables="lanescope_blinker.decode:TABLES",
    stats="lanescope_blinker.decode:STATS",
    simulator=Simulator(
        "lanescope_blinker.simulate:simulate",
        options=(
            Option("changes", int, "number of changes", default=1000),
            Option("lamps", int, "number of lamps", default=4),
            Option("drop", float, "share of records that get lost", default=0.0),
        ),
        demo={"changes": 200},
    ),
)
