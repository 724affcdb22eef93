"""Small even traces for tests of plausibility rules."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lanescope.analysis import check
from lanescope.trace import TimeBase, Trace, TraceBuilder

#: Changes start and end of the slices of a lane, float64 [n] each, given the number of the lane.
Change = Callable[[int, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def kernel(
    lanes: int = 6,
    slices: int = 40,
    change: Change | None = None,
    *,
    role: str = "core",
    nesting: str = "disjoint",
    seed: int = 0,
) -> Trace:
    """Return lanes of one device with about the same slices, after a change of some.

    Args:
        lanes: number of lanes.
        slices: slices on each.
        change: applied to each lane.
        role: role of the lanes.
        nesting: nesting of the lanes.
        seed: of the lengths.
    """
    rng = np.random.default_rng(seed)
    builder = TraceBuilder(TimeBase())
    device = builder.track("gpu 0", kind="group", role="device")
    for number in range(lanes):
        lane = builder.track(f"lane {number}", kind="lane", role=role, nesting=nesting, parent=device)
        start = np.cumsum(rng.integers(900, 1100, slices)) + rng.integers(0, 50)
        end = start + rng.integers(300, 800, slices)
        if change is not None:
            start, end = change(number, start, end)
        names = ["ab"[n % 2] for n in range(len(start))]
        builder.append(
            "slices", track_id=lane, ts=start.astype(np.int64), dur=(end - start).astype(np.int64), name=names
        )
    return builder.finish()


def on(lane: int, change: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]) -> Change:
    """Return a change of one lane."""
    return lambda number, start, end: change(start, end) if number == lane else (start, end)


def found(trace: Trace, code: str) -> list[tuple[str, str, list[int]]]:
    """Return severity, lane and evidence of what a rule finds."""
    return [
        (finding.severity, finding.location.track, finding.evidence.ids.tolist())
        for finding in check.run(trace, select=[code])
    ]
