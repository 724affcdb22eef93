"""The Kineto family: JSON that the PyTorch profiler exports."""

from __future__ import annotations

from lanescope.families.family import Family, Format

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
)
