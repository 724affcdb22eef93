"""The family of Chrome's trace events."""

from __future__ import annotations

from lanescope.families.family import Family, Format, Simulator
from lanescope.families.options import Option, non_negative_int

_HERE = "lanescope.foreign.chrome."

FAMILY = Family(
    name="chrome",
    title="Chrome trace events in JSON, of any writer; those of lanescope come back as the trace that was written",
    formats=(
        Format(
            "chrome-json",
            detect=_HERE + "formats.detect:detect",
            decode=_HERE + "decoder:ChromeDecoder",
            fields=_HERE + "formats.field_map:field_map",
            stages={"packet": _HERE + "dump:packet_lines", "record": _HERE + "dump:record_lines"},
            is_streaming=True,
            # Columns of an event, its row, and what it takes to make one of the other.
            bytes_per_row=250,
        ),
    ),
    tables=_HERE + "schema:TABLES",
    stats=_HERE + "schema:STATS",
    simulator=Simulator(
        _HERE + "simulate:simulate",
        options=(
            Option("events", non_negative_int, "complete events", 200),
            Option("processes", non_negative_int, "processes", 2),
            Option("threads", non_negative_int, "threads of a process", 3),
            Option("pairs", non_negative_int, "slices written as start and end events", 20),
            Option("asynchronous", non_negative_int, "asynchronous slices", 10),
            Option("instants", non_negative_int, "instants", 12),
            Option("counters", non_negative_int, "samples of a counter of two series", 20),
            Option("flows", non_negative_int, "flows", 10),
            Option("array", bool, "write a bare array", default=False),
            Option("unfinished", non_negative_int, "start events without an end", 0),
            Option("unmatched", non_negative_int, "end events without a start", 0),
            Option("timeless", non_negative_int, "events without a time", 0),
            Option("broken", non_negative_int, "events that are not JSON", 0),
            Option("objects", non_negative_int, "object events, which are not drawn", 0),
            Option("cut", bool, "end the file inside its last event", default=False),
        ),
    ),
)
