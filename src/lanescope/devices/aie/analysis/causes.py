"""Causes of AIE captures: their records have none."""

from __future__ import annotations

from lanescope.families import Causes
from lanescope.trace import Trace


def causes(trace: Trace, *, infer: bool) -> Causes:
    """Return what answers instead: event traces show states of tiles, and no record joins one tile with another.

    Args:
        trace: the trace.
        infer: nothing can be added.
    """
    return Causes(hint="use 'lanescope phases CAPTURE': how long each lane works, waits and is idle")
