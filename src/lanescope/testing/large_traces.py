"""Traces of any size, made at once."""

from __future__ import annotations

import numpy as np

from lanescope.trace import TimeBase, Trace, TraceBuilder


def large_trace(
    slices: int = 1_000_000, *, lanes: int = 72, names: int = 50, nested: bool = False, seed: int = 0
) -> Trace:
    """Return a sound trace of about ``slices`` slices, in the order in which they end, as devices write them.

    Args:
        slices: how many; rounded down to a multiple of ``lanes``, and of four times that where they nest.
        lanes: lanes of one device.
        names: different names.
        nested: each fourth slice holds the three that follow it.
        seed: the same arguments give the same trace.

    Example:
        >>> trace = large_trace(1000, lanes=10, nested=True)
        >>> len(trace.slices), len(trace.tracks)
        (1000, 11)
    """
    random = np.random.default_rng(seed)
    builder = TraceBuilder(TimeBase(epoch_kind="first_event"))
    device = builder.track("device 0", kind="group", role="device")
    nesting = "nested" if nested else "disjoint"
    tracks = [
        builder.track(f"core {lane}", kind="lane", role="core", parent=device, nesting=nesting) for lane in range(lanes)
    ]
    each = slices // lanes
    if nested:
        each -= each % 4
        inner = random.integers(1, 1000, (lanes, each // 4, 3))
        pauses = random.integers(0, 300, (lanes, each // 4, 3))
        ends = np.cumsum(inner + pauses, axis=2)
        outer = ends[:, :, -1:] + random.integers(0, 200, (lanes, each // 4, 1))
        begins = np.cumsum(outer + random.integers(0, 500, outer.shape), axis=1) - outer
        ts = np.concatenate([begins, begins + ends - inner], axis=2).reshape(-1)
        dur = np.concatenate([outer, inner], axis=2).reshape(-1)
    else:
        lengths = random.integers(1, 1000, (lanes, each))
        ts = (np.cumsum(lengths + random.integers(0, 500, (lanes, each)), axis=1) - lengths).reshape(-1)
        dur = lengths.reshape(-1)
    written = np.argsort(ts + dur, kind="stable")
    codes = builder.names.codes(f"kernel {number}" for number in range(names))
    builder.append(
        "slices",
        track_id=np.repeat(np.array(tracks, np.int64), each)[written],
        ts=ts[written],
        dur=dur[written],
        name=codes[random.integers(0, names, len(ts))],
    )
    return builder.finish()
