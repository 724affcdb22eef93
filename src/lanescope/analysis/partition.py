"""Partition of the window of a trace by lane into states: busy by region, waiting, idle, unknown.

Every moment of every lane has exactly one state, so times of states add up to the window and none is negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lanescope._native import core
from lanescope.analysis.lane_time import LaneTime, on_tracks
from lanescope.common.distinct import distinct
from lanescope.common.intervals import (
    Intervals,
    Ints,
    clash,
    complement,
    group_starts,
    highest_before,
    join,
    order,
    order_within,
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
#: The row of a stretch that is of no region.
NO_ROW = -1


class Partition(NamedTuple):
    """Stretches of time in one state each, sorted by lane and start; int64 [n] each.

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
    state: Ints
    row: Ints

    def take(self, rows: Array) -> Partition:
        """Return the stretches at ``rows`` (indices or a mask)."""
        return Partition(*(column[rows] for column in self))

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
    track, begin, end = time.extents
    rows = time.order
    usable = (end[rows] > begin[rows]) & (track[rows] >= 0) & (track[rows] < len(time.tree))
    rows = rows[usable]
    sorted_time = time.extents.take(rows)
    alone = (time.tree.tracks.values("nesting") == "free")[sorted_time.group] if len(rows) else np.empty(0, np.bool_)
    nests = np.where(time.tree.tracks.values("nesting") == "free", 0, 2).astype(np.uint8)
    if clash(sorted_time, np.arange(len(rows)), nests):  # rarely; looking for which ones takes a while
        stacked = np.flatnonzero(~alone)
        alone[stacked] = partially_overlapping(sorted_time.take(stacked))
    if not alone.any():
        return _stacked(sorted_time, rows)
    found = _stacked(sorted_time.take(~alone), rows[~alone])
    joined = join(found.time, sorted_time.take(alone))
    owner = np.concatenate([found.row, rows[alone]])
    sort = order(*joined)
    return LeafIntervals(joined.take(sort), owner[sort], found.encloses)


def _stacked(stack: Intervals, rows: Ints) -> LeafIntervals:
    """Return the innermost pieces of slices that nest properly; they come in the order of ``order``."""
    group, begin, end, owner, encloses = core.lanes_leaves(*map(_ints, stack))
    return LeafIntervals(Intervals(group, begin, end), rows[owner], distinct(rows[encloses]))


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
    # Alone, what ran mostly is in order already.
    known = join(gaps, ran, tails) if len(gaps.group) or len(tails.group) else ran
    if known is not ran or not _is_sorted(ran):
        known = known.take(order(known.group, known.begin))
    rest = complement(known, count, *time.window)
    unrecorded = split(rest, time.uncovered)
    sources = (gaps, ran, tails, unrecorded.inside, unrecorded.outside)
    whole = join(*sources)
    sort = order_within(whole.group, whole.begin)

    def column(*values: Ints | int) -> Ints:
        """One value for all of a source, or one for each interval of it."""
        parts = [np.broadcast_to(value, len(part.group)) for value, part in zip(values, sources, strict=True)]
        return np.concatenate(parts)[sort]

    return Partition(
        *whole.take(sort), column(LOST, state, LOST, UNRECORDED, IDLE), column(NO_ROW, row, NO_ROW, NO_ROW, NO_ROW)
    )


def _is_sorted(some: Intervals) -> bool:
    group, begin = some.group, some.begin
    return bool(((group[1:] > group[:-1]) | ((group[1:] == group[:-1]) & (begin[1:] >= begin[:-1]))).all())


def _ran(
    time: LaneTime, gaps: Intervals, waits: Mask | None, pieces: LeafIntervals | None
) -> tuple[Intervals, Ints, Ints]:
    """Return disjoint time in regions outside gaps, BUSY or WAITING (int64 [n]), and the row of each (int64 [n])."""
    if waits is None:
        ran = split(on_tracks(time.slice_union, len(time.tree)), gaps).outside
        return ran, np.full(len(ran.group), BUSY), np.full(len(ran.group), NO_ROW)
    pieces = (leaf_intervals(time) if pieces is None else pieces).outside(gaps)
    ran, row = pieces.time, pieces.row
    does_wait = waits[time.trace.slices.codes("name")[row]] if len(row) else np.empty(0, np.bool_)
    if ((ran.group[1:] != ran.group[:-1]) | (ran.begin[1:] >= ran.end[:-1])).all():
        return ran, np.where(does_wait, WAITING, BUSY), row
    busy, busy_row = _once(ran.take(~does_wait), row[~does_wait])
    waiting, waiting_row = _once(ran.take(does_wait), row[does_wait])
    cut = split(waiting, union(busy))
    state = np.repeat([BUSY, WAITING], [len(busy_row), len(cut.outside_row)])
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
