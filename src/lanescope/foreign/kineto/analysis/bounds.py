"""What limits each device: communication that no kernel hides."""

from __future__ import annotations

from collections.abc import Iterator

from lanescope.errors import UsageError
from lanescope.families.bounds import COMMUNICATION, Bound
from lanescope.foreign.kineto.analysis.breakdown import breakdown
from lanescope.trace import Trace


def bounds(trace: Trace) -> Iterator[Bound]:
    """Yield the exposed communication of each device; nothing where no device was recorded."""
    try:
        devices = breakdown(trace)
    except UsageError:
        return
    for row in devices.rows():
        exposed = row["communication_ns"] - row["hidden_ns"]
        yield Bound(COMMUNICATION, row["device"], exposed, row["window_ns"], exposed, "summary --by breakdown")
