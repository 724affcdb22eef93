"""The family of Perfetto traces: events of tracks as protobuf, from any tool, lanescope included."""

from __future__ import annotations

from lanescope.families.family import Family, Format, Simulator
from lanescope.families.options import Option, fraction, non_negative_int, positive_int

_HERE = "lanescope.foreign.perfetto."

FAMILY = Family(
    name="perfetto",
    title="Perfetto traces (protobuf) of other tools, and those that lanescope wrote",
    formats=(
        Format(
            "track_event",
            detect=_HERE + "formats.detect:detect",
            decode=_HERE + "decoder:PerfettoDecoder",
            stages={"packet": _HERE + "dump:packet_lines", "record": _HERE + "dump:record_lines"},
            is_streaming=True,
            bytes_per_row=120,
            fields=_HERE + "formats.field_map:field_map",
        ),
    ),
    tables=_HERE + "schema:DETAILS",
    stats=_HERE + "schema:STATS",
    causes=_HERE + "analysis.causes:causes",
    simulator=Simulator(
        _HERE + "simulate:simulate",
        options=(
            Option("style", str, "way of writing: sdk (texts by ID, incremental clock) or plain", "sdk", "STYLE"),
            Option("slices", positive_int, "slices of each thread", 400),
            Option("threads", positive_int, "threads", 4),
            Option("samples", non_negative_int, "samples of each counter", 100),
            Option("flows", fraction, "share of slices that cause one of the next thread", 0.1, "SHARE"),
            Option("lost", fraction, "share of blocks of packets that are lost", 0.0, "SHARE"),
            Option("other", non_negative_int, "packets of other data sources", 5),
            Option("compressed", bool, "compress the packets", default=False),
        ),
        demo={"slices": 200},
    ),
)
