"""Which rows of a stream overlap others that they cannot have overlapped, and which of them is to blame."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.common.intervals import Intervals, bounds, order, overlapping
from lanescope.foreign.kineto.analysis import device_rows
from lanescope.foreign.kineto.formats import layout
from lanescope.trace import Trace

Ints = npt.NDArray[np.int64]

#: Rows of a stream overlap by so much for reasons of their clocks, and where the next kernel may start early.
FLOOR_NS = 5000


class StreamOverlap(NamedTuple):
    """Rows of one stream that run into those after them.

    Attributes:
        track_id: the lane.
        rows: int64 [n], slices to blame, by time.
        excess_ns: time by which they run into the next row, all together.
        lane_ns: summed durations of the lane, those of ``rows`` included.
    """

    track_id: int
    rows: Ints
    excess_ns: int
    lane_ns: int


def stream_overlaps(trace: Trace) -> Iterator[StreamOverlap]:
    """Yield the overlaps of each stream that no property of its work explains.

    Rows of one launch (nodes of a graph) may overlap; on devices of compute capability 9 and above the next kernel of a
    stream may start early; and clocks jitter: overlaps of up to 5 us are no fault. Else the row that reaches into the
    one after it is to blame.
    """
    slices = trace.slices
    lanes = _stream_lanes(trace)
    if not len(lanes):
        return
    rows = np.flatnonzero(np.isin(slices.values("track_id"), lanes) & slices.valid("dur") & (slices.values("dur") > 0))
    ts = slices.values("ts")[rows]
    extents = Intervals(slices.values("track_id")[rows], ts, ts + slices.values("dur")[rows])
    sort = order(*extents)
    rows, extents = rows[sort], extents.take(sort)
    some = np.flatnonzero(overlapping(extents))
    if not len(some):
        return
    correlation = correlations(trace)
    rows, extents = rows[some], extents.take(some)
    for first, last in pairwise(bounds(extents.group)):
        lane = int(extents.group[first])
        blamed, excess = _blamed(extents.begin[first:last], extents.end[first:last], correlation[rows[first:last]])
        if len(blamed):
            mine = slices.values("track_id") == lane
            total = int(slices.values("dur")[mine & slices.valid("dur")].sum())
            yield StreamOverlap(lane, rows[first:last][blamed], excess, total)


def _stream_lanes(trace: Trace) -> Ints:
    """Return the streams with rows that overlap: their lanes are free."""
    tracks = trace.tracks
    is_free = (tracks.values("role") == "stream") & (tracks.values("nesting") == "free")
    lanes = np.flatnonzero(is_free)
    mine = device_rows.rows_of(trace, layout.KERNELS | layout.COPIES)
    return lanes[np.isin(lanes, trace.slices.values("track_id")[mine])]


def correlations(trace: Trace) -> Ints:
    """Return the correlation of each slice, int64 [slices]; -1: none."""
    found = np.full(len(trace.slices), -1, np.int64)
    ops = trace.details.get("kineto_ops")
    if ops is not None and len(ops):
        found[ops.values("slice_id")] = np.where(ops.valid("correlation"), ops.values("correlation"), -1)
    return found


def _blamed(begin: Ints, end: Ints, correlation: Ints) -> tuple[Ints, int]:
    """Return which of the rows of a lane, by begin, run into others, and by how much all together."""
    found: dict[int, int] = {}
    top = 0
    starts, ends, numbers = begin.tolist(), end.tolist(), correlation.tolist()
    for row in range(1, len(starts)):
        excess = ends[top] - starts[row]
        is_graph = numbers[top] >= 0 and numbers[top] == numbers[row]
        if excess <= FLOOR_NS or is_graph or (starts[top], ends[top]) == (starts[row], ends[row]):
            if ends[row] >= ends[top]:
                top = row
            continue
        found.setdefault(top, excess)
        top = row
    return np.array(sorted(found), np.int64), sum(found.values())
