"""From the begin of a launch's first record to the end of its last: what a kernel recorded of its own execution."""

from __future__ import annotations

import numpy as np

from lanescope.common.distinct import distinct
from lanescope.common.intervals import known_extents
from lanescope.families import KernelSpans
from lanescope.trace import Trace

#: Tables that know the launch of a slice, and how they say what its kernel is called, if they do.
_SOURCES = (("cuda_regions", ""), ("cuda_iket_ranges", "kernel"))


def launch_spans(trace: Trace) -> KernelSpans | None:
    """Return the launches of a capture; None unless all lanes count on one clock of the device.

    Only regions are looked at, as an arrow needs one: a launch without its instants is bounded less tightly, never
    wrongly.
    """
    tracks, slices = trace.tracks, trace.slices
    lanes = tracks.values("kind") == "lane"
    clocks = distinct(tracks.values("clock_id")[lanes]) if tracks.valid("clock_id")[lanes].all() else ()
    if len(clocks) != 1:
        return None
    extents = known_extents(slices)
    for source, named in _SOURCES:
        table = trace.details.get(source)
        if table is None or not len(table):
            continue
        rows, launch = table.values("slice_id"), table.values("launch").astype(np.int64)
        begin, end = extents.begin[rows], extents.end[rows]
        order = np.lexsort((begin, launch))
        starts = np.flatnonzero(np.diff(launch[order], prepend=-1))
        firsts = order[starts]
        begins, ends = begin[firsts], np.maximum.reduceat(end[order], starts)
        by_time = np.argsort(begins, kind="stable")
        firsts = firsts[by_time]
        names = table.values(named)[firsts] if named else np.full(len(firsts), "", object)
        return KernelSpans(
            rows[firsts], extents.group[rows[firsts]], begins[by_time], ends[by_time], np.asarray(names, object)
        )
    return None
