"""The Kineto family: JSON that the PyTorch profiler exports."""

from __future__ import annotations

from lanescope.families.family import Family, Format, Summary

_HERE = "lanescope.foreign.kineto."

FAMILY = Family(
    name="kineto",
    title="PyTorch profiler (Kineto) JSON: operators, runtime calls, kernels, copies, collectives",
    formats=(
        Format(
            "kineto",
            detect=_HERE + "formats.detect:detect",
            decode=_HERE + "decoder:KinetoDecoder",
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
)
