"""What a file of the PyTorch profiler cannot prove."""

from __future__ import annotations

from collections.abc import Iterator

from lanescope.families.limit import Limit
from lanescope.trace import Trace


def _always(trace: Trace) -> Iterator[str]:
    yield from (str(path) for path in trace.inputs.values("path").tolist())


def _device_clock(trace: Trace) -> Iterator[str]:
    if (trace.clocks.values("name") == "device clock").any():
        yield "all devices"


LIMITS = (
    Limit(
        "lost-activities",
        "How many activities the profiler dropped: it does not write it into the file.",
        "check launches without execution (KINETO202)",
        _always,
    ),
    Limit(
        "device-clock",
        "How well the clock of a device was converted to the time of the host.",
        "synchronize the device before the record ends: launches and waits then bound the error (KINETO201)",
        _device_clock,
    ),
)
