"""Causes that in-kernel records show: signals between groups, asynchronous regions, blocks that wait for an SM."""

from __future__ import annotations

import numpy as np

from lanescope.common.intervals import Ints, known_extents
from lanescope.families import CauseEdges, CauseKind, Causes, NaturalWindow
from lanescope.trace import Trace

_SIGNAL = CauseKind("signal", 1, ends_wait=True)
_ISSUE = CauseKind("issue", 3)
_SM_FREE = CauseKind("sm free", 5, is_resource=True)
_ASYNC = "async"
_NOTHING = np.empty(0, np.int64)


def causes(trace: Trace, *, infer: bool) -> Causes:
    """Return what a trace shows of causes; regions whose names have a word for it wait.

    Args:
        trace: the trace.
        infer: nothing can be added.
    """
    edges = [_signals(trace)]
    regions = trace.details.get("cuda_regions")
    windows: tuple[NaturalWindow, ...] = ()
    if regions is not None and len(regions):
        edges += [_issues(trace), _freed(trace)]
        windows = _launches(trace)
    return Causes(tuple(edges), word_waits=True, windows=windows)


def _is_async(trace: Trace, slices: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which slices are asynchronous regions, which lanes of their own show."""
    is_async: np.ndarray[tuple[int], np.dtype[np.bool_]] = trace.tracks.values("role") == _ASYNC
    return is_async[trace.slices.values("track_id")[slices]]


def _signals(trace: Trace) -> CauseEdges:
    """Return the flows; of an asynchronous region its end, which ends the slice of the other lane that ends then."""
    flows, extents = trace.flows, known_extents(trace.slices)
    known = flows.valid("src_slice_id") & flows.valid("dst_slice_id")
    rows = np.flatnonzero(known)
    source, target = flows.values("src_slice_id")[rows], flows.values("dst_slice_id")[rows].copy()
    source_ts, target_ts = flows.values("src_ts")[rows].copy(), flows.values("dst_ts")[rows]
    is_async = _is_async(trace, source)
    if is_async.any():
        source_ts[is_async] = extents.end[source[is_async]]
        # Among the slices of the lane that end at that moment the innermost begins last.
        order = np.lexsort((extents.begin, extents.end, extents.group))
        wanted = np.flatnonzero(is_async)
        lanes, ends = flows.values("dst_track_id")[rows][wanted], target_ts[wanted]
        place = _last_of(extents.group[order], extents.end[order], lanes, ends)
        found = order[place]
        fits = (place >= 0) & (extents.group[found] == lanes) & (extents.end[found] == ends)
        target[wanted[fits]] = found[fits]
    return CauseEdges(_SIGNAL, source, source_ts, target, target_ts, len(flows) - len(rows))


def _issues(trace: Trace) -> CauseEdges:
    """Return what began asynchronous regions: the group that recorded their starts, at that moment."""
    regions, lanes, extents = (
        trace.details["cuda_regions"],
        trace.details.get("cuda_lanes"),
        known_extents(trace.slices),
    )
    slices = regions.values("slice_id")
    mine = np.flatnonzero(_is_async(trace, slices))
    if not len(mine) or lanes is None or not len(lanes):
        return CauseEdges(_ISSUE, _NOTHING, _NOTHING, _NOTHING, _NOTHING)
    # A block and group have one lane; of several inputs none can be told apart.
    width = int(max(lanes.values("group").max(), regions.values("group")[mine].max())) + 1
    keys = lanes.values("block") * width + lanes.values("group")
    order = np.argsort(keys, kind="stable")
    wanted = regions.values("block")[mine] * width + regions.values("group")[mine]
    place = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    is_there = (keys[order][place] == wanted) & (np.diff(keys[order], append=keys.max() + 1)[place] != 0)
    track = lanes.values("track_id")[order[place]]
    target = slices[mine]
    begin = extents.begin[target]
    by_lane = np.lexsort((extents.begin, extents.group))
    at = _last_of(extents.group[by_lane], extents.begin[by_lane], track, begin)
    source = by_lane[at]
    is_there &= (at >= 0) & (extents.group[source] == track)
    unplaced = int(np.count_nonzero(~is_there))
    return CauseEdges(_ISSUE, source[is_there], begin[is_there], target[is_there], begin[is_there], unplaced)


def _last_of(lanes: Ints, values: Ints, wanted_lanes: Ints, wanted: Ints) -> Ints:
    """Return the last place of each wanted lane whose value does not exceed the wanted one; -1 before all.

    Lanes and values are sorted together, int64 [n].
    """
    merged = np.lexsort(
        (
            np.concatenate([np.zeros(len(lanes), np.int8), np.ones(len(wanted), np.int8)]),
            np.concatenate([values, wanted]),
            np.concatenate([lanes, wanted_lanes]),
        )
    )
    is_wanted = merged >= len(lanes)
    before = np.cumsum(~is_wanted) - 1
    found = np.empty(len(wanted), np.int64)
    found[merged[is_wanted] - len(lanes)] = before[is_wanted]
    return found


def _freed(trace: Trace) -> CauseEdges:
    """Return for each block that it waited for the block of its SM that ended last before: for all of its lanes."""
    regions, extents = trace.details["cuda_regions"], known_extents(trace.slices)
    nestings, slices = trace.tracks.values("nesting"), regions.values("slice_id")
    rows = np.flatnonzero(regions.valid("sm") & (nestings[trace.slices.values("track_id")[slices]] != "free"))
    if not len(rows):
        return CauseEdges(_SM_FREE, _NOTHING, _NOTHING, _NOTHING, _NOTHING)
    slices = slices[rows]
    begin, end, lane = extents.begin[slices], extents.end[slices], extents.group[slices]
    source_input = trace.tracks.values("input_id")[lane]
    sm = regions.values("sm")[rows]
    key = (source_input, sm, regions.values("launch")[rows].astype(np.int64), regions.values("block")[rows])
    order = np.lexsort((begin, *key[::-1]))
    is_first = np.ones(len(order), bool)
    is_first[1:] = np.any([np.diff(part[order]) != 0 for part in key], axis=0)
    starts = np.flatnonzero(is_first)
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(is_first) - 1
    begins, ends = begin[order][starts], np.maximum.reduceat(end[order], starts)
    # The slice that ends last in each block, and the first of each lane of it.
    by_end = np.lexsort((end, number))
    last = by_end[np.append(np.flatnonzero(np.diff(number[by_end])), len(by_end) - 1)]
    by_lane = np.lexsort((-end, begin, lane, number))
    opens = np.ones(len(by_lane), bool)
    opens[1:] = (np.diff(number[by_lane]) != 0) | (np.diff(lane[by_lane]) != 0)
    firsts = by_lane[opens]
    # On each SM: the block that ended last before another began.
    device = source_input[order][starts] * (int(sm.max()) + 1) + sm[order][starts]
    ended = np.lexsort((ends, device))
    place = _last_of(device[ended], ends[ended], device, begins)
    before = ended[place]
    is_there = (place >= 0) & (device[before] == device)
    mine = firsts[is_there[number[firsts]]]
    cause = last[before[number[mine]]]
    return CauseEdges(_SM_FREE, slices[cause], end[cause], slices[mine], begin[mine])


def _launches(trace: Trace) -> tuple[NaturalWindow, ...]:
    """Return a window for each launch, if there are several."""
    regions, extents = trace.details["cuda_regions"], known_extents(trace.slices)
    slices, launch = regions.values("slice_id"), regions.values("launch").astype(np.int64)
    source_input = trace.tracks.values("input_id")[extents.group[slices]]
    order = np.lexsort((extents.end[slices], launch, source_input))
    is_last = np.ones(len(order), bool)
    is_last[:-1] = (np.diff(launch[order]) != 0) | (np.diff(source_input[order]) != 0)
    lasts = np.flatnonzero(is_last)
    if len(lasts) < 2:
        return ()
    starts = np.append(0, lasts[:-1] + 1)
    begins = np.minimum.reduceat(extents.begin[slices[order]], starts)
    several = len(np.flatnonzero(np.diff(source_input[order]))) > 0
    found = []
    for at, begin in zip(order[lasts].tolist(), begins.tolist(), strict=True):
        prefix = f"input {source_input[at]} " if several else ""
        found.append(
            NaturalWindow(f"{prefix}launch {launch[at]}", begin, int(extents.end[slices[at]]), int(slices[at]))
        )
    return tuple(sorted(found, key=lambda window: window.begin))
