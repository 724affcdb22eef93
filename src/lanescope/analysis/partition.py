"""Partition of the window of a trace by lane into states: busy by region, waiting, idle, unknown.

Every moment of every lane has exactly one state, so times of states add up to the window and none is negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.analysis.lane_time import LaneTime, on_tracks
from lanescope.common.distinct import distinct
from lanescope.common.intervals import (
    Intervals,
    Ints,
    clash,
    group_starts,
    highest_before,
    join,
    order,
    partially_overlapping,
    split,
    subtract,
    sums,
    union,
)
from lanescope.trace.column import Array, Mask

#: States of a lane, or of an instance: in a region that works; in a gap or after the last known time of an unfinished
#: region; in a region that waits; recorded, but in no region; not recorded; (instances only) not resident. An instance
#: is in the first of those that its lanes are in.
BUSY, LOST, WAITING, IDLE, UNRECORDED, VACANT = range(6)
STATES = 6
States = npt.NDArray[np.uint8]
#: The row of a stretch that is of no region.
NO_ROW = -1


class Partition(NamedTuple):
    """Stretches of time in one state each, sorted by lane and start; [n] each, int64 but for the state, uint8.

    The stretches of a lane start at the window's start, end at its end, and each begins where the one before it ends;
    none is empty.

    Attributes:
        lane: the track; of ``combine`` the instance.
        start: first moment, in the trace's time unit.
        end: first moment after it.
        state: one of the states of this module.
        row: row of the slices table of the region, for BUSY and WAITING; -1 else, or where regions are not told apart.
    """

    lane: Ints
    start: Ints
    end: Ints
    state: States
    row: Ints

    def take(self, rows: Array) -> Partition:
        """Return the stretches at ``rows`` (indices or a mask)."""
        return Partition(self.lane[rows], self.start[rows], self.end[rows], self.state[rows], self.row[rows])

    @property
    def time(self) -> Intervals:
        """The stretches as intervals."""
        return Intervals(self.lane, self.start, self.end)

    def merged(self) -> Partition:
        """Return stretches of one lane and state that follow each other as one, of the row of the first."""
        heads = np.flatnonzero(group_starts(self.lane) | group_starts(self.state))
        return self.take(heads)._replace(end=np.append(self.end[heads[1:] - 1], self.end[-1:]))


@dataclass(frozen=True, slots=True, eq=False)
class LeafIntervals:
    """Time that lanes spend in regions, each moment of a stack counted for the innermost region only.

    Attributes:
        time: intervals by lane; on a lane whose slices nest no two share time. Sorted by lane and begin, none empty.
        row: int64 [m], row of the slices table.
        encloses: int64 [k], rows of slices that another one is nested in.
    """

    time: Intervals
    row: Ints
    encloses: Ints

    def __len__(self) -> int:
        return len(self.row)

    def outside(self, gaps: Intervals) -> LeafIntervals:
        """Return the parts outside gaps (disjoint, sorted): in a gap the state of a lane is unknown."""
        if not len(gaps.group):
            return self
        found = split(self.time, gaps)
        return LeafIntervals(found.outside, self.row[found.outside_row], self.encloses)


# --- the innermost region -----------------------------------------------------------------------------------------


def leaf_intervals(time: LaneTime) -> LeafIntervals:
    """Return which region each lane is in at each moment.

    A slice counts while nothing that is nested in it on its lane does. Slices that overlap another one of their lane
    partially, and all slices of lanes of nesting ``free``, are in no stack: they count from start to end, whatever else
    does. An unfinished slice counts up to its last known time.

    Args:
        time: the trace's lane times.
    """
    is_free = time.tree.tracks.values("nesting") == "free"
    nests = np.where(is_free, 0, 2).astype(np.uint8)
    if not is_free.any() and not clash(time.extents, time.order, nests):
        return _stacked(time.extents, time.order, len(time.tree))
    track, begin, end = time.extents
    rows = time.order
    usable = (end[rows] > begin[rows]) & (track[rows] >= 0) & (track[rows] < len(time.tree))
    rows = rows[usable]
    sorted_time = time.extents.take(rows)
    alone = is_free[sorted_time.group] if len(rows) else np.empty(0, np.bool_)
    if clash(sorted_time, np.arange(len(rows)), nests):  # rarely; looking for which ones takes a while
        stacked = np.flatnonzero(~alone)
        alone[stacked] = partially_overlapping(sorted_time.take(stacked))
    stacked = np.flatnonzero(~alone)
    found = _stacked(sorted_time, stacked, len(time.tree))
    found = LeafIntervals(found.time, rows[found.row], distinct(rows[found.encloses]))
    if not alone.any():
        return found
    joined = join(found.time, sorted_time.take(alone))
    owner = np.concatenate([found.row, rows[alone]])
    sort = order(*joined)
    return LeafIntervals(joined.take(sort), owner[sort], found.encloses)


def _stacked(time: Intervals, rows: Ints, lanes: int) -> LeafIntervals:
    """Return the innermost pieces of the slices at ``rows``, in the order of ``order``, that nest properly."""
    track, begin, end = (_ints(column) for column in time)
    *pieces, row, encloses = core.lanes_leaves(track, begin, end, rows, lanes)
    return LeafIntervals(Intervals(*pieces), row, distinct(encloses))


def _ints(values: Ints) -> Ints:
    """Return values as native functions take them."""
    return np.ascontiguousarray(values, np.int64)


# --- lanes --------------------------------------------------------------------------------------------------------


def partition(time: LaneTime, waits: Mask | None = None, pieces: LeafIntervals | None = None) -> Partition:
    """Divide the window of every track into states.

    Of several states that fit, the first of these:

    1. LOST: in a gap of the lane or of a group above it.
    2. BUSY: in a region that works. Regions that run at the same time count once, for the one that started first.
    3. LOST: after the last known time of an unfinished region, up to the next start on its lane.
    4. WAITING: in a region that waits. What encloses an unfinished region gives way to it (3): it may not have waited.
    5. UNRECORDED: not recorded (``LaneTime.uncovered``).
    6. IDLE: recorded, and nothing ran.

    Args:
        time: the trace's lane times.
        waits: bool [names], which names of slices are of regions that wait; None: every region is BUSY, and regions are
            not told apart (all rows -1).
        pieces: what ``leaf_intervals`` returned, when the caller has it already.

    Returns:
        The states of all tracks: a track that is not a lane is not recorded.
    """
    count = len(time.tree)
    gaps = on_tracks(time.gaps, count)
    ran, state, row = _ran(time, gaps, waits, pieces)
    tails = on_tracks(time.possibly_running, count)
    if len(tails.group):  # rarely, so what is busy is picked out only then
        busy = ran if waits is None else ran.take(state == BUSY)
        tails = _beyond(tails, gaps, busy)
    if len(tails.group):
        waiting = np.flatnonzero(state == WAITING)
        cut = split(ran.take(waiting), tails)
        left = waiting[cut.outside_row]
        ran = join(busy, cut.outside)
        state, row = (np.concatenate([column[state == BUSY], column[left]]) for column in (state, row))
    row = _ints(row)
    known, states = ran, state
    if len(gaps.group) or len(tails.group):
        known = join(gaps, ran, tails)
        lost, blank = (np.full(len(part.group), LOST, np.uint8) for part in (gaps, tails))
        states = np.concatenate([lost, states, blank])
        row = np.concatenate([np.full(len(lost), NO_ROW), row, np.full(len(blank), NO_ROW)])
    if not _is_sorted(known):  # alone, what ran mostly is in order already
        sort = order(known.group, known.begin)
        known, states, row = known.take(sort), states[sort], row[sort]
    group, begin, end = (_ints(column) for column in known)
    rest = Intervals(*(_ints(column) for column in time.uncovered))
    first, last = time.window
    filled = core.lanes_fill(
        group, begin, end, states, row, rest.group, rest.begin, rest.end, UNRECORDED, IDLE, count, first, last
    )
    return Partition(*filled)


def _is_sorted(some: Intervals) -> bool:
    group, begin = some.group, some.begin
    return bool(((group[1:] > group[:-1]) | ((group[1:] == group[:-1]) & (begin[1:] >= begin[:-1]))).all())


def _ran(
    time: LaneTime, gaps: Intervals, waits: Mask | None, pieces: LeafIntervals | None
) -> tuple[Intervals, States, Ints]:
    """Return disjoint time in regions outside gaps, BUSY or WAITING (uint8 [n]), and the row of each (int64 [n])."""
    if waits is None:
        ran = split(on_tracks(time.slice_union, len(time.tree)), gaps).outside
        return ran, np.full(len(ran.group), BUSY, np.uint8), np.full(len(ran.group), NO_ROW)
    pieces = (leaf_intervals(time) if pieces is None else pieces).outside(gaps)
    ran, row = pieces.time, pieces.row
    does_wait = waits[time.trace.slices.codes("name")[row]] if len(row) else np.empty(0, np.bool_)
    if ((ran.group[1:] != ran.group[:-1]) | (ran.begin[1:] >= ran.end[:-1])).all():
        return ran, np.where(does_wait, np.uint8(WAITING), np.uint8(BUSY)), row
    busy, busy_row = _once(ran.take(~does_wait), row[~does_wait])
    waiting, waiting_row = _once(ran.take(does_wait), row[does_wait])
    cut = split(waiting, union(busy))
    state = np.repeat(np.array([BUSY, WAITING], np.uint8), [len(busy_row), len(cut.outside_row)])
    return join(busy, cut.outside), state, np.concatenate([busy_row, waiting_row[cut.outside_row]])


def _once(pieces: Intervals, row: Ints) -> tuple[Intervals, Ints]:
    """Return the sorted pieces, each without the time of those that started before it."""
    reach, first = highest_before(pieces.group, pieces.end)
    begin = np.where(first, pieces.begin, np.maximum(pieces.begin, reach))
    filled = np.flatnonzero(pieces.end > begin)
    return Intervals(pieces.group, begin, pieces.end).take(filled), row[filled]


def _beyond(some: Intervals, *others: Intervals) -> Intervals:
    """Return ``some`` without the time of ``others``; cheap where there is little of it."""
    if not len(some.group):
        return some
    asked = np.zeros(int(some.group.max()) + 1, np.bool_)
    asked[some.group] = True
    near = (part.take(part.group < len(asked)) for part in others)
    return subtract(some, join(*(part.take(asked[part.group]) for part in near)))


def by_state(parts: Partition, groups: int) -> Ints:
    """Return how long each lane, or instance, is in each state: int64 [groups, states]; rows add up to the window."""
    return sums(parts.lane * STATES + parts.state, parts.end - parts.start, groups * STATES).reshape(-1, STATES)
