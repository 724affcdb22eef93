"""Causes of host and device records: launches, recording, barriers, and what synchronising calls waited for."""

from __future__ import annotations

import re

import numpy as np

from lanescope.common.distinct import distinct
from lanescope.common.intervals import Intervals, Ints, known_extents
from lanescope.families import CauseEdges, CauseKind, Causes
from lanescope.trace import Trace

_LAUNCH = CauseKind("launch", 3)
_APPEND = CauseKind("append", 9)
_BARRIER = CauseKind("barrier", 2)
_SYNC = CauseKind("sync", 0, is_inferred=True)
#: Calls that wait for work on devices.
_WAITS = re.compile(r"ze(?:CommandQueue|CommandListHost|EventHost|FenceHost)Synchronize$")
_NOTHING = np.empty(0, np.int64)


def causes(trace: Trace, *, infer: bool) -> Causes:
    """Return what a trace shows of causes.

    The record does not say what a call waits for: it counts as waiting for the last operation that ended before it and
    that its thread had submitted, which is inferred.

    Args:
        trace: the trace.
        infer: nothing can be added.
    """
    extents = known_extents(trace.slices)
    edges = [CauseEdges.of_flows(_LAUNCH, trace, "dispatch"), CauseEdges.of_flows(_APPEND, trace, "dependency")]
    operations = trace.details.get("levelzero_operations")
    if operations is not None and len(operations):
        edges += [_synchronized(trace, extents), _barriers(trace, extents)]
    return Causes(tuple(edges))


def _synchronized(trace: Trace, extents: Intervals) -> CauseEdges:
    """Return for each call that waits the last operation to end before it, of those its thread submitted before."""
    operations, dictionary = trace.details["levelzero_operations"], trace.slices.column("name").dictionary
    texts = dictionary.texts if dictionary is not None else []
    waits = np.array([*(bool(_WAITS.match(text)) for text in texts), False], bool)[trace.slices.codes("name")]
    calls = np.flatnonzero(waits & trace.slices.valid("dur"))
    slices, submit = operations.values("slice_id"), operations.values("submit_slice_id")
    submitted = operations.valid("submit_slice_id")
    thread = np.where(submitted, extents.group[submit], operations.values("thread_track_id"))
    given = np.where(submitted, extents.begin[submit], operations.values("submit_ts"))
    done = np.flatnonzero(trace.slices.valid("dur")[slices])
    sources, targets = [_NOTHING], [_NOTHING]
    for lane in distinct(thread[done]).tolist():
        mine = done[thread[done] == lane]
        mine = mine[np.argsort(given[mine], kind="stable")]
        waiting = calls[extents.group[calls] == lane]
        ends = extents.end[slices[mine]]
        count = np.searchsorted(given[mine], extents.begin[waiting], "right")
        # Mostly all that was submitted before has ended: the latest of it is known from sums over the order.
        latest = np.maximum.accumulate(ends)
        place = np.maximum.accumulate(np.where(ends == latest, np.arange(len(ends)), 0))
        for call, before in zip(waiting.tolist(), count.tolist(), strict=True):
            if not before:
                continue
            at = int(place[before - 1])
            if ends[at] > extents.end[call]:
                fits = np.flatnonzero(ends[:before] <= extents.end[call])
                if not len(fits):
                    continue
                at = int(fits[ends[fits].argmax()])
            sources.append(slices[mine[at : at + 1]])
            targets.append(np.array([call], np.int64))
    source, target = np.concatenate(sources), np.concatenate(targets)
    return CauseEdges(_SYNC, source, extents.end[source], target, extents.end[target])


def _barriers(trace: Trace, extents: Intervals) -> CauseEdges:
    """Return what barriers waited for, and what waited for them, on lanes whose operations may overlap."""
    operations = trace.details["levelzero_operations"]
    slices = operations.values("slice_id")
    free = trace.tracks.values("nesting")[extents.group[slices]] == "free"
    is_barrier = operations.values("kind") == "barrier"
    sources, targets = [_NOTHING], [_NOTHING]
    lanes: Ints = distinct(extents.group[slices[free & is_barrier]])
    for lane in lanes.tolist():
        mine = np.flatnonzero(extents.group[slices] == lane)
        mine = mine[np.argsort(extents.begin[slices[mine]], kind="stable")]
        rows, barrier = slices[mine], is_barrier[mine]
        begin, end = extents.begin[rows], extents.end[rows]
        latest = np.maximum.accumulate(end)
        place = np.maximum.accumulate(np.where(end == latest, np.arange(len(end)), 0))
        at = np.flatnonzero(barrier)
        at = at[at > 0]
        before = place[at - 1]
        fits = end[before] <= begin[at]
        sources.append(rows[before[fits]])
        targets.append(rows[at[fits]])
        # What begins behind a barrier waited for the last of them.
        last = np.maximum.accumulate(np.where(barrier, np.arange(len(rows)), -1))
        at = np.flatnonzero(~barrier & (last >= 0))
        before = last[at]
        fits = end[before] <= begin[at]
        sources.append(rows[before[fits]])
        targets.append(rows[at[fits]])
    source, target = np.concatenate(sources), np.concatenate(targets)
    return CauseEdges(_BARRIER, source, extents.end[source], target, extents.begin[target])
