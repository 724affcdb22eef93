"""Causes that in-kernel records show: signals between groups, asynchronous regions, blocks that wait for an SM."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.common.intervals import Intervals, Ints, known_extents, order
from lanescope.families import CauseEdges, CauseKind, Causes, NaturalWindow
from lanescope.trace import Table, Trace

_SIGNAL = CauseKind("signal", 1, ends_wait=True)
_ISSUE = CauseKind("issue", 3)
_SM_FREE = CauseKind("sm free", 5, is_resource=True)
_ASYNC = "async"
_NOTHING = np.empty(0, np.int64)


#: An asynchronous region may end inside so many slices that begin earlier and have ended before.
_DEEPEST = 8


class _Lanes:
    """Slices by lane and begin, and what is looked up in them; int64 arrays."""

    def __init__(self, trace: Trace) -> None:
        self.extents = known_extents(trace.slices)

    @cached_property
    def order(self) -> Ints:
        """Slices by lane and begin, the longest first."""
        return order(*self.extents)

    @cached_property
    def _sorted(self) -> tuple[Ints, Ints, int, int]:
        """Lanes along that order, keys that rise with it, the least begin, and the distance between lanes."""
        lanes = self.extents.group[self.order]
        return lanes, *_packed(lanes, self.extents.begin[self.order])

    def last_begun(self, lanes: Ints, times: Ints, *, before: bool = False) -> Ints:
        """Return the place in ``order`` of the last slice of each lane that begins at or before a time; else -1.

        Args:
            lanes: the lanes.
            times: the times.
            before: only slices that begin before them.
        """
        if not len(self.order):
            return np.full(len(lanes), -1, np.int64)
        sorted_lanes, keys, least, span = self._sorted
        wanted = lanes * span + np.clip(times - least, -1, span - 1)
        place = np.searchsorted(keys, wanted, "left" if before else "right") - 1
        return np.where((place >= 0) & (sorted_lanes[place] == lanes), place, -1)


def _packed(group: Ints, value: Ints) -> tuple[Ints, int, int]:
    """Return keys that sort by group and value, the least value, and the distance between groups."""
    least = int(value.min(initial=0))
    span = int(value.max(initial=0)) - least + 2
    return group * span + (value - least), least, span


class _Runs(NamedTuple):
    """Slices of one lane and launch that follow each other in the table of regions; int64 arrays [runs].

    Attributes:
        lane, launch, block, sm, input: what they have in common; SM -1 where it is not known.
        begin, end: the first begin and the last end.
        first, last: the slice that begins first, the longest of several, and the one that ends last.
    """

    lane: Ints
    launch: Ints
    block: Ints
    sm: Ints
    input: Ints
    begin: Ints
    end: Ints
    first: Ints
    last: Ints

    @classmethod
    def of(cls, trace: Trace, regions: Table, extents: Intervals) -> _Runs:
        """Return those of all lanes whose slices do not overlap freely."""
        slices = regions.values("slice_id")
        is_free = trace.tracks.values("nesting") == "free"
        rows = np.flatnonzero(~is_free[extents.group[slices]])
        slices = slices[rows]
        lane, launch = extents.group[slices], regions.values("launch")[rows].astype(np.int64)
        begin, end = extents.begin[slices], extents.end[slices]
        is_new = np.ones(len(rows), bool)
        is_new[1:] = (lane[1:] != lane[:-1]) | (launch[1:] != launch[:-1])
        starts = np.flatnonzero(is_new)
        if not len(starts):
            return cls(*[_NOTHING] * 9)
        run = np.cumsum(is_new) - 1
        begins, ends = np.minimum.reduceat(begin, starts), np.maximum.reduceat(end, starts)
        longest = np.maximum.reduceat(np.where(begin == begins[run], end, np.iinfo(np.int64).min), starts)
        first, last = np.empty(len(starts), np.int64), np.empty(len(starts), np.int64)
        opens = np.flatnonzero((begin == begins[run]) & (end == longest[run]))[::-1]
        first[run[opens]] = slices[opens]
        closes = np.flatnonzero(end == ends[run])
        last[run[closes]] = slices[closes]
        sm = np.where(regions.valid("sm")[rows[starts]], regions.values("sm")[rows[starts]], -1)
        source = trace.tracks.values("input_id")[lane[starts]]
        block = regions.values("block")[rows[starts]]
        return cls(lane[starts], launch[starts], block, sm, source, begins, ends, first, last)


def causes(trace: Trace, *, infer: bool) -> Causes:
    """Return what a trace shows of causes; regions whose names have a word for it wait.

    Args:
        trace: the trace.
        infer: nothing can be added.
    """
    lanes = _Lanes(trace)
    edges = [_signals(trace, lanes)]
    regions = trace.details.get("cuda_regions")
    windows: tuple[NaturalWindow, ...] = ()
    if regions is not None and len(regions):
        runs = _Runs.of(trace, regions, lanes.extents)
        edges += [_issues(trace, regions, lanes), _freed(runs)]
        windows = _launches(runs)
    return Causes(tuple(edges), word_waits=True, windows=windows)


def _is_async(trace: Trace, slices: Ints) -> npt.NDArray[np.bool_]:
    """Return which slices are asynchronous regions, which lanes of their own show."""
    is_async: npt.NDArray[np.bool_] = trace.tracks.values("role") == _ASYNC
    return is_async[trace.slices.values("track_id")[slices]]


def _signals(trace: Trace, lanes: _Lanes) -> CauseEdges:
    """Return the flows; of an asynchronous region its end, which ends the slice of the other lane that ends then."""
    found, extents = CauseEdges.of_flows(_SIGNAL, trace, "signal"), lanes.extents
    wanted = np.flatnonzero(_is_async(trace, found.source))
    if not len(wanted):
        return found
    source_ts, target = found.source_ts.copy(), found.target.copy()
    source_ts[wanted] = extents.end[found.source[wanted]]
    track, end = extents.group[target[wanted]], found.target_ts[wanted]
    place = lanes.last_begun(track, end, before=True)
    for _ in range(_DEEPEST):
        each = lanes.order[np.maximum(place, 0)]
        fits = (place >= 0) & (extents.end[each] == end) & (extents.group[each] == track)
        target[wanted[fits]] = each[fits]
        place = np.where(fits, -1, place - 1)
    return found._replace(source_ts=source_ts, target=target)


def _issues(trace: Trace, regions: Table, lanes: _Lanes) -> CauseEdges:
    """Return what began asynchronous regions: the group that recorded their starts, at that moment."""
    owners, extents = trace.details.get("cuda_lanes"), lanes.extents
    slices = regions.values("slice_id")
    mine = np.flatnonzero(_is_async(trace, slices))
    if not len(mine) or owners is None or not len(owners):
        return CauseEdges(_ISSUE, _NOTHING, _NOTHING, _NOTHING, _NOTHING)
    # A block and group have one lane; of several inputs none can be told apart.
    width = int(max(owners.values("group").max(), regions.values("group")[mine].max())) + 1
    keys = owners.values("block") * width + owners.values("group")
    by_key = np.argsort(keys, kind="stable")
    keys = keys[by_key]
    wanted = regions.values("block")[mine] * width + regions.values("group")[mine]
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    is_there = (keys[place] == wanted) & (np.diff(keys, append=keys[-1] + 1)[place] != 0)
    target, begin = slices[mine], extents.begin[slices[mine]]
    at = lanes.last_begun(owners.values("track_id")[by_key[place]], begin)
    is_there &= at >= 0
    source = lanes.order[at[is_there]]
    unplaced = int(np.count_nonzero(~is_there))
    return CauseEdges(_ISSUE, source, begin[is_there], target[is_there], begin[is_there], unplaced)


def _freed(runs: _Runs) -> CauseEdges:
    """Return for each block that it waited for the block of its SM that ended last before: for all of its lanes."""
    known = np.flatnonzero(runs.sm >= 0)
    if not len(known):
        return CauseEdges(_SM_FREE, _NOTHING, _NOTHING, _NOTHING, _NOTHING)
    runs = _Runs(*(column[known] for column in runs))
    key = (runs.input, runs.sm, runs.launch, runs.block)
    by_block = np.lexsort(key[::-1])
    is_first = np.ones(len(by_block), bool)
    is_first[1:] = np.any([np.diff(part[by_block]) != 0 for part in key], axis=0)
    starts = np.flatnonzero(is_first)
    block = np.empty(len(by_block), np.int64)
    block[by_block] = np.cumsum(is_first) - 1
    begins = np.minimum.reduceat(runs.begin[by_block], starts)
    by_end = np.lexsort((runs.end, block))
    lasts = by_end[np.append(np.flatnonzero(np.diff(block[by_end])), len(by_end) - 1)]
    # The first run of each lane of a block.
    by_lane = np.lexsort((runs.begin, runs.lane, block))
    opens = np.ones(len(by_lane), bool)
    opens[1:] = (np.diff(block[by_lane]) != 0) | (np.diff(runs.lane[by_lane]) != 0)
    firsts = by_lane[opens]
    # On each SM: the block that ended last before another began.
    sm = (runs.input * (int(runs.sm.max()) + 1) + runs.sm)[lasts]
    ended = np.lexsort((runs.end[lasts], sm))
    keys, least, span = _packed(sm[ended], runs.end[lasts][ended])
    place = np.searchsorted(keys, sm * span + np.clip(begins - least, -1, span - 1), "right") - 1
    before = lasts[ended[place]]
    is_there = (place >= 0) & (sm[ended[place]] == sm)
    mine = firsts[is_there[block[firsts]]]
    cause = before[block[mine]]
    return CauseEdges(_SM_FREE, runs.last[cause], runs.end[cause], runs.first[mine], runs.begin[mine])


def _launches(runs: _Runs) -> tuple[NaturalWindow, ...]:
    """Return a window for each launch, if there are several."""
    found: dict[tuple[int, int], list[int]] = {}
    for at, each in enumerate(zip(runs.input.tolist(), runs.launch.tolist(), strict=True)):
        found.setdefault(each, []).append(at)
    if len(found) < 2:
        return ()
    several = len({source for source, _ in found}) > 1
    windows = []
    for (source, launch), members in found.items():
        last = members[int(runs.end[members].argmax())]
        name = f"input {source} launch {launch}" if several else f"launch {launch}"
        begin = int(runs.begin[members].min())
        windows.append(NaturalWindow(name, begin, int(runs.end[last]), int(runs.last[last])))
    return tuple(sorted(windows, key=lambda window: window.begin))
