"""The Kineto family: JSON that the PyTorch profiler exports."""

from __future__ import annotations

from lanescope.families.family import Family, Format, Simulator, Summary
from lanescope.families.options import Option, non_negative_int, positive_int

_HERE = "lanescope.foreign.kineto."

FAMILY = Family(
    name="kineto",
    title="PyTorch profiler (Kineto) JSON: operators, runtime calls, kernels, copies, collectives",
    formats=(
        Format(
            "kineto",
            detect=_HERE + "formats.detect:detect",
            decode=_HERE + "decoder:KinetoDecoder",
            fields=_HERE + "formats.field_map:field_map",
            stages={"packet": _HERE + "dump:packet_lines", "record": _HERE + "dump:record_lines"},
            is_streaming=True,
            bytes_per_row=400,
        ),
    ),
    tables=_HERE + "schema:TABLES",
    stats=_HERE + "schema:STATS",
    rules=_HERE + "analysis.rules:RULES",
    limits=_HERE + "analysis.limits:LIMITS",
    summaries=(
        Summary("breakdown", "time of each device by kind of work", _HERE + "analysis.breakdown:breakdown"),
        Summary(
            "breakdown-before-last-step",
            "the same of work launched before the last ProfilerStep",
            _HERE + "analysis.breakdown:breakdown_before_last_step",
        ),
        Summary(
            "combinations",
            "time of each device by what ran at the same time",
            _HERE + "analysis.breakdown:combinations",
        ),
        Summary(
            "combinations-before-last-step",
            "the same of work launched before the last ProfilerStep",
            _HERE + "analysis.breakdown:combinations_before_last_step",
        ),
    ),
    bounds=_HERE + "analysis.bounds:bounds",
    kernels=_HERE + "analysis.kernel_spans:kernel_spans",
    causes=_HERE + "analysis.causes:causes",
    clock_pairs=_HERE + "analysis.clock_pairs:clock_pairs",
    views=_HERE + "analysis.causes:views",
    simulator=Simulator(
        _HERE + "simulate.simulator:simulate",
        options=(
            Option("steps", positive_int, "steps of training", 2),
            Option("kernels", positive_int, "kernels of a step, besides graphs and collectives", 40),
            Option("streams", positive_int, "streams of the device", 2),
            Option("ranks", positive_int, "ranks of the run: collectives from 2 on", 2),
            Option("rank", non_negative_int, "rank that is recorded", 0),
            Option("python", bool, "record Python calls", default=True),
            Option("device", bool, "record the device", default=True),
            Option("absolute", bool, "write absolute times, as before 2024", default=False),
            Option("base", bool, "write the time that times count from", default=True),
            Option("overlaps", non_negative_int, "rows of a stream that are far too long", 0),
            Option("clamped", non_negative_int, "kernels of no length", 0),
            Option("early", non_negative_int, "rows that start before their call", 0),
            Option("fast_copies", non_negative_int, "copies of impossible bandwidth", 0),
            Option("unexecuted", non_negative_int, "launches at the start without a device row", 0),
            Option("unlaunched", non_negative_int, "device rows without a launch", 0),
            Option("unreadable", non_negative_int, "events with a syntax error", 0),
            Option("log_error", bool, "write an error into the log of the profiler", default=False),
            Option("torn", bool, "cut the file after two thirds", default=False),
        ),
        demo={"steps": 1},
    ),
)
