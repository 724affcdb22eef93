"""Times of lanes, as the rows of a trace give them: slices, gaps, what was recorded."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lanescope.analysis.track_tree import Tree
from lanescope.common.intervals import (
    INT64_MAX,
    Intervals,
    Ints,
    complement,
    hulls,
    join,
    known_extents,
    merged,
    order,
    positions,
    subtract,
    union,
)
from lanescope.trace import Table, Trace

if TYPE_CHECKING:
    from lanescope.analysis.plausibility.attested import Attested
    from lanescope.common.islands import IslandThresholds


#: Slices whose first and last time are looked for at once.
_BLOCK = 1 << 18


class LaneTime:
    """Time of every track, computed once from the rows of a trace.

    ``partition`` puts it together.

    Attributes:
        trace: the trace.
        tree: its tracks.
        islands: thresholds of timestamps apart from all others; None: the defaults.
    """

    def __init__(self, trace: Trace, tree: Tree | None = None, islands: IslandThresholds | None = None) -> None:
        self.trace = trace
        self.tree = tree or Tree(trace.tracks)
        self.islands = islands

    @cached_property
    def extents(self) -> Intervals:
        """The time that each slice is known to have run."""
        return known_extents(self.trace.slices)

    @cached_property
    def order(self) -> Ints:
        """Rows of ``slices`` by lane, begin, and end from the longest."""
        return order(*self.extents)

    @cached_property
    def slice_union(self) -> Intervals:
        """Time covered by slices, by lane; gaps make no difference here."""
        return merged(self.extents, self.order)

    @cached_property
    def window(self) -> tuple[int, int]:
        """The first and the last time that any row of the trace names; (0, 0) in a trace without times."""
        filled = [column for column in self.times() if len(column)]
        if not filled:
            return 0, 0
        return min(int(column.min()) for column in filled), max(int(column.max()) for column in filled)

    def times(self) -> list[Ints]:
        """Return the times that the rows of the trace name, or enough of them to know the first and the last."""
        trace = self.trace
        times: list[Ints] = [trace.instants.values("ts"), trace.counters.values("ts")]
        slices = trace.slices.only(("track_id", "ts", "dur", "last_known_ts"))
        for first in range(0, len(slices), _BLOCK):
            begin, end = known_extents(slices.between(first, min(first + _BLOCK, len(slices))))[1:]
            times.append(np.array([begin.min(), end.max()]))
        for table in (trace.gaps, trace.coverage):
            times += [table.values("ts"), end_or_last_known(table)]
        return times

    @cached_property
    def gaps(self) -> Intervals:
        """Time in which the state of a lane is unknown, by lane; a gap that never ended lasts to the window's end."""
        gaps = self.trace.gaps
        rows, tracks = self.tree.spread(gaps.values("track_id"))
        ends = np.where(gaps.valid("dur")[rows], end_or_last_known(gaps)[rows], self.window[1])
        return union(Intervals(tracks, gaps.values("ts")[rows], ends))

    @cached_property
    def possibly_running(self) -> Intervals:
        """Time in which an open slice may still have run: from where it was last seen to the next begin on its lane."""
        slices = self.trace.slices
        nothing = np.empty(0, np.int64)
        if slices.valid("dur").all():
            return Intervals(nothing, nothing, nothing)
        group, begin, end = self.extents.take(self.order)
        rows = np.flatnonzero(~slices.valid("dur")[self.order])
        # A slice of no known length must not take its own begin for the next one.
        following = np.where(
            end[rows] > begin[rows],
            positions(group, begin, rows, end[rows], "left"),
            positions(group, begin, rows, end[rows], "right"),
        )
        there = np.minimum(following, len(group) - 1)
        is_same = (following < len(group)) & (group[there] == group[rows])
        until = np.where(is_same, begin[there], self.window[1])
        return union(Intervals(group[rows], end[rows], until))

    @cached_property
    def _coverage(self) -> Intervals:
        """Time that ``coverage`` gives as recorded, by lane."""
        coverage = self.trace.coverage
        rows, tracks = self.tree.spread(coverage.values("track_id"))
        return Intervals(tracks, coverage.values("ts")[rows], end_or_last_known(coverage)[rows])

    @cached_property
    def uncovered(self) -> Intervals:
        """Time of the window that was not recorded, by lane.

        ``coverage`` rows of the lane, or of a group above it, tell what was recorded; without any, a lane counts as
        recorded from its first to its last row. Where timestamps are implausibly far from all others (rule LS501),
        nothing beyond the rest was recorded on any lane, nor what is next to a slice with such a timestamp on its lane.
        """
        begin, end = self._hulls(self.extents, self._points)
        is_bare = begin < end
        is_bare[self._coverage.group] = False
        bare = Intervals(np.arange(len(begin)), begin, end).take(is_bare)
        recorded = union(join(self._coverage, bare))
        if self.attested.window is not None:
            from lanescope.analysis.plausibility.attested import beside

            low, high = self.attested.window
            cut = Intervals(recorded.group, np.maximum(recorded.begin, low), np.minimum(recorded.end, high))
            next_to = beside(self.extents.take(self.attested.rows), self.slice_union, self.window)
            recorded = subtract(cut.take(cut.begin < cut.end), next_to)
        return complement(recorded, len(self.tree), *self.window)

    @cached_property
    def attested(self) -> Attested:
        """The hull of the plausible timestamps, where it is smaller than the window."""
        from lanescope.analysis.plausibility.attested import attested  # only what asks for idle time pays for it

        return attested(self.trace, self.tree, self.islands)

    @cached_property
    def bounds(self) -> tuple[Ints, Ints]:
        """First and last known time of every track, int64 [tracks] each; the last before the first where none is."""
        return self._hulls(self.extents, self._points, self._coverage)

    @property
    def _points(self) -> Intervals:
        """The instants."""
        instants = self.trace.instants
        return Intervals(instants.values("track_id"), instants.values("ts"), instants.values("ts"))

    def _hulls(self, *parts: Intervals) -> tuple[Ints, Ints]:
        """Return when ``parts`` of every track begin first and end last, int64 [tracks] each."""
        found = [hulls(on_tracks(part, len(self.tree)), len(self.tree)) for part in parts]
        begin, end = zip(*found, strict=True)
        return np.minimum.reduce(begin), np.maximum.reduce(end)


def on_tracks(intervals: Intervals, count: int) -> Intervals:
    """Return the intervals on tracks that exist, those from 0 to ``count`` - 1."""
    known = (intervals.group >= 0) & (intervals.group < count)
    return intervals if known.all() else intervals.take(known)


def end_or_last_known(table: Table) -> Ints:
    """Return where the rows of ``gaps`` or ``coverage`` end; one of unknown length, or a negative one, at its begin."""
    ts = table.values("ts")
    ends: Ints = ts + np.minimum(np.maximum(table.values("dur"), 0), INT64_MAX - np.maximum(ts, 0))
    return ends
