"""What limits each tile, as far as its traced events tell: compute, memory, streams or locks."""

from __future__ import annotations

from collections.abc import Iterator

from lanescope.devices.aie.analysis.tile_time import summarize
from lanescope.families.bounds import COMPUTE, LOCK, MEMORY, STREAM, Bound
from lanescope.trace import Trace


def bounds(trace: Trace) -> Iterator[Bound]:
    """Yield the limit of each kind, of all tiles that have it; nothing without events of cores."""
    if "aie_segments" not in trace.details:
        return
    rows = list(summarize(trace).rows())
    for cause in (COMPUTE, MEMORY, STREAM, LOCK):
        mine = [row for row in rows if row["bound"] == cause]
        if not mine:
            continue
        names = ", ".join(row["group"] for row in mine[:3]) + (f" and {len(mine) - 3} more" if len(mine) > 3 else "")
        dur = sum(round(row["share"] * row["window"]) for row in mine)
        yield Bound(cause, f"tile {names}", dur, sum(row["window"] for row in mine), dur, "summary --by tile")
