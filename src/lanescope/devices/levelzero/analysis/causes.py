"""Causes of host and device records: events, launches, recording, barriers, and what synchronizing calls waited for."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.common.intervals import Intervals, Ints, known_extents
from lanescope.families import CauseEdges, CauseKind, Causes
from lanescope.trace import Trace

_SIGNAL = CauseKind("signal", 1)
_LAUNCH = CauseKind("launch", 3)
_APPEND = CauseKind("append", 9)
_BARRIER = CauseKind("barrier", 2)
_SYNC = CauseKind("sync", 0)
_GUESSED = CauseKind("inferred sync", 0, is_inferred=True)
#: Calls that wait for work on devices.
_WAITS = re.compile(r"ze(?:CommandQueue|CommandListHost|EventHost|FenceHost|Device)Synchronize$")
_NOTHING = np.empty(0, np.int64)


def causes(trace: Trace, *, infer: bool) -> Causes:
    """Return what a trace shows of causes.

    A call that waits names its queue, list, event, fence or device. Where a record lacks that, the call counts as
    waiting for the last operation that ended before it and that its thread had submitted, which is inferred.

    Args:
        trace: the trace.
        infer: nothing can be added.
    """
    extents = known_extents(trace.slices)
    kinds = {"signal": _SIGNAL, "dispatch": _LAUNCH, "dependency": _APPEND}
    edges = [CauseEdges.of_flows(kind, trace, name) for name, kind in kinds.items()]
    edges[-1] = _unlaunched(edges[-1], launched=edges[-2].target)
    operations = trace.details.get("levelzero_operations")
    if operations is not None and len(operations):
        guessed = _guessed(trace, extents)
        edges += [_synchronized(trace, extents), *([guessed] if len(guessed.source) else []), _barriers(trace, extents)]
    return Causes(tuple(edges))


def _unlaunched(appends: CauseEdges, launched: Ints) -> CauseEdges:
    """Return the recordings of operations whose launch is not known: a launch comes after what it launches."""
    kept = ~np.isin(appends.target, launched)
    return CauseEdges(
        appends.kind,
        appends.source[kept],
        appends.source_ts[kept],
        appends.target[kept],
        appends.target_ts[kept],
        appends.unplaced,
    )


def _synchronized(trace: Trace, extents: Intervals) -> CauseEdges:
    """Return for each call that waited the operation that ended last of what it names, and the others that had to end.

    Operations of a lane on which they run one after the other are told by its last one.
    """
    waits = trace.details.get("levelzero_waits")
    if waits is None:
        return CauseEdges(_SYNC, _NOTHING, _NOTHING, _NOTHING, _NOTHING)
    rows = np.flatnonzero(waits.valid("operation_slice_id"))
    source, target = waits.values("operation_slice_id")[rows], waits.values("slice_id")[rows]
    more = _others(trace, extents, source, target, waits.column("target").texts[rows])
    source, target = (np.concatenate([one, *found]) for one, found in zip((source, target), more, strict=True))
    return CauseEdges(_SYNC, source, extents.end[source], target, extents.end[target])


def _others(
    trace: Trace, extents: Intervals, last: Ints, calls: Ints, kinds: npt.NDArray[Any]
) -> tuple[list[Ints], list[Ints]]:
    """Return operations that ended earlier than the last one a call waited for, and these calls.

    What a call of the same thread waited for before is left out: it had ended by then.

    Args:
        trace: the trace.
        extents: of its slices.
        last: the operations that ended last, int64 [n].
        calls: the calls, int64 [n].
        kinds: what they name, text [n].
    """
    operations, tracks = trace.details["levelzero_operations"], trace.tracks
    slices, submit = operations.values("slice_id"), operations.values("submit_slice_id")
    given = np.where(operations.valid("submit_slice_id"), extents.begin[submit], operations.values("submit_ts"))
    done = np.flatnonzero(trace.slices.valid("dur")[slices] & ~operations.values("error"))
    done = done[np.lexsort((given[done], extents.group[slices[done]]))]
    of_lane = _pieces(extents.group[slices[done]])
    parent, is_free = tracks.values("parent_id"), tracks.values("nesting") == "free"
    beside: dict[int, list[int]] = {}
    for lane in of_lane:
        beside.setdefault(int(parent[lane]), []).append(lane)
    sources: list[Ints] = []
    targets: list[Ints] = []
    seen: dict[tuple[int, int], tuple[int, Ints]] = {}  # by lane and thread: how many are known, those left to end
    for at in np.argsort(extents.begin[calls], kind="stable").tolist():
        call, own = int(calls[at]), int(extents.group[last[at]])
        if kinds[at] not in ("queue", "list", "device"):
            continue
        for lane in beside.get(int(parent[own]), [own]) if kinds[at] == "device" else [own]:
            if lane not in of_lane or (lane == own and not is_free[lane]):
                continue
            mine = done[of_lane[lane]]
            known, left = seen.get((lane, int(extents.group[call])), (0, _NOTHING))
            count = max(known, int(np.searchsorted(given[mine], extents.begin[call], "right")))
            rows = np.concatenate([left, mine[known:count]])
            has_ended = extents.end[slices[rows]] <= extents.end[call]
            seen[lane, int(extents.group[call])] = count, rows[~has_ended]
            found = slices[rows[has_ended]]
            if not is_free[lane] and len(found):
                found = found[extents.end[found].argmax()][np.newaxis]
            found = found[found != last[at]]
            sources.append(found)
            targets.append(np.full(len(found), call, np.int64))
    return sources, targets


def _pieces(groups: Ints) -> dict[int, slice]:
    """Return where each group lies in sorted numbers."""
    bounds = [*np.flatnonzero(np.diff(groups, prepend=-1)).tolist(), len(groups)]
    return {int(groups[low]): slice(low, high) for low, high in pairwise(bounds)}


def _guessed(trace: Trace, extents: Intervals) -> CauseEdges:
    """Return for each call that waits for what is not recorded the last operation to end before it, of its thread's."""
    operations, dictionary = trace.details["levelzero_operations"], trace.slices.column("name").dictionary
    texts = dictionary.texts if dictionary is not None else []
    waits = np.array([*(bool(_WAITS.match(text)) for text in texts), False], bool)[trace.slices.codes("name")]
    waits = waits & trace.slices.valid("dur")
    told = trace.details.get("levelzero_waits")
    if told is not None:
        waits[told.values("slice_id")] = False
    calls = np.flatnonzero(waits)
    if not len(calls):
        return CauseEdges(_GUESSED, _NOTHING, _NOTHING, _NOTHING, _NOTHING)
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
    return CauseEdges(_GUESSED, source, extents.end[source], target, extents.end[target])


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
