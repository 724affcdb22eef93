"""Busy, idle and unknown time of each lane."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lanescope.analysis.partition import BUSY, IDLE, LOST, UNRECORDED, by_state, partition
from lanescope.analysis.track_tree import Tree, text_column
from lanescope.common.intervals import (
    INT64_MAX,
    Intervals,
    Ints,
    complement,
    join,
    known_extents,
    order,
    positions,
    subtract,
    union,
)
from lanescope.trace import Column, ColumnSpec, Table, TableSpec, Trace
from lanescope.trace.column import Mask

if TYPE_CHECKING:
    from lanescope.analysis.plausibility.attested import Attested


def spec(unit: str) -> TableSpec:
    """Return the declaration of the table of lanes for a time unit."""
    return TableSpec(
        "lanes",
        "one lane: busy + idle + unknown = window",
        (
            ColumnSpec("id", "int64", "dense, in drawing order"),
            ColumnSpec("track_id", "int64", "lane"),
            ColumnSpec("lane", "utf8", "path of the lane"),
            ColumnSpec("slices", "int64", "slices, unfinished ones included"),
            ColumnSpec("unfinished", "int64", "slices without a known end"),
            ColumnSpec(f"busy_{unit}", "int64", "time covered by slices, nested slices counted once", unit=unit),
            ColumnSpec(f"idle_{unit}", "int64", "recorded time without a slice", unit=unit),
            ColumnSpec(
                f"unknown_{unit}", "int64", "gaps, time not recorded, and time after an unfinished slice", unit=unit
            ),
            ColumnSpec(f"window_{unit}", "int64", "time from the first to the last timestamp of the trace", unit=unit),
        ),
    )


class LaneTime:
    """Time of every track, computed once from the rows of a trace.

    ``partition`` puts it together:

    * A **gap** of the lane, or of a group above it, is unknown, whatever else is recorded.
    * Else time within a slice is busy: up to the slice's end, or up to the last known time of an unfinished slice.
    * Else what follows an unfinished slice, up to the next start on its lane, is unknown: it may still have run.
    * Else time that was not recorded is unknown. ``coverage`` rows of the lane, or of the nearest group above it, tell
      what was recorded; without any, a lane counts as recorded from its first to its last row. Where timestamps are
      implausibly far from all others (rule LS501), nothing beyond the rest was recorded on any lane, nor what is next
      to a slice with such a timestamp on its lane.
    * The rest is idle.

    Attributes:
        trace: the trace.
        tree: its tracks.
    """

    def __init__(self, trace: Trace, tree: Tree | None = None) -> None:
        self.trace = trace
        self.tree = tree or Tree(trace.tracks)

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
        return union(self.extents.take(self.order))

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
        times: list[Ints] = [
            self.extents.begin,
            self.extents.end,
            trace.instants.values("ts"),
            trace.counters.values("ts"),
        ]
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
    def uncovered(self) -> Intervals:
        """Time of the window that was not recorded, by lane."""
        coverage = self.trace.coverage
        rows, tracks = self.tree.spread(coverage.values("track_id"))
        recorded = Intervals(tracks, coverage.values("ts")[rows], end_or_last_known(coverage)[rows])
        bare = np.ones(len(self.tree), np.bool_)
        bare[tracks] = False
        known = union(join(recorded, self._extents(bare)))
        if self.attested.window is not None:
            low, high = self.attested.window
            known = Intervals(known.group, np.maximum(known.begin, low), np.minimum(known.end, high))
            from lanescope.analysis.plausibility.attested import beside

            next_to = beside(self.extents.take(self.attested.rows), self.slice_union, self.window)
            known = subtract(known.take(known.begin < known.end), union(next_to))
        return complement(known, len(self.tree), *self.window)

    @cached_property
    def attested(self) -> Attested:
        """The hull of the plausible timestamps, where it is smaller than the window."""
        from lanescope.analysis.plausibility.attested import attested  # only what asks for idle time pays for it

        return attested(self.trace, self.tree)

    def _extents(self, wanted: Mask) -> Intervals:
        """Return the time from the first to the last row of the wanted tracks (bool [tracks])."""
        begin, end = self._first_and_last()
        return Intervals(np.arange(len(wanted)), begin, end).take(wanted & (begin < end))

    def _first_and_last(self, *more: Intervals) -> tuple[Ints, Ints]:
        """Return when slices, instants and ``more`` of every track begin first and end last, int64 [tracks] each."""
        begin = np.full(len(self.tree), INT64_MAX, np.int64)
        end = np.full(len(self.tree), -INT64_MAX, np.int64)
        instants = self.trace.instants
        points = Intervals(instants.values("track_id"), instants.values("ts"), instants.values("ts"))
        for part in (self.extents, points, *more):
            known = (part.group >= 0) & (part.group < len(begin))
            group, first, last = part if known.all() else part.take(known)
            np.minimum.at(begin, group, first)
            np.maximum.at(end, group, last)
        return begin, end

    @cached_property
    def bounds(self) -> tuple[Ints, Ints]:
        """First and last known time of every track, int64 [tracks] each; the last before the first where none is."""
        coverage = self.trace.coverage
        rows, tracks = self.tree.spread(coverage.values("track_id"))
        covered = Intervals(tracks, coverage.values("ts")[rows], end_or_last_known(coverage)[rows])
        return self._first_and_last(covered)

    @cached_property
    def states(self) -> Ints:
        """How long every track is in each state, int64 [tracks, states]; regions that wait count as busy."""
        return by_state(partition(self), len(self.tree))

    @property
    def busy(self) -> Ints:
        """Busy time of every track, int64 [tracks]."""
        return self.states[:, BUSY]

    @property
    def idle(self) -> Ints:
        """Idle time of every track, int64 [tracks]."""
        return self.states[:, IDLE]

    @property
    def unknown(self) -> Ints:
        """Unknown time of every track, int64 [tracks]."""
        return self.states[:, LOST] + self.states[:, UNRECORDED]


def lanes(trace: Trace, time: LaneTime | None = None) -> Table:
    """Return what became of each lane's time, one row per lane, in drawing order.

    ``busy + idle + unknown == window`` for every lane, exactly.

    Args:
        trace: the trace.
        time: its ``LaneTime``, when the caller has one already.

    Example:
        >>> from lanescope.trace import TimeBase, TraceBuilder
        >>> builder = TraceBuilder(TimeBase())
        >>> lane = builder.track("core 0", kind="lane", role="core")
        >>> _ = builder.append("slices", track_id=lane, ts=np.array([0, 60]), dur=np.array([30, 40]), name="mma")
        >>> _ = builder.append("gaps", track_id=lane, ts=40, dur=20, cause="overrun")
        >>> row = next(lanes(builder.finish()).rows())
        >>> row["busy_ns"], row["idle_ns"], row["unknown_ns"], row["window_ns"]
        (70, 10, 20, 100)
    """
    time = time or LaneTime(trace)
    tree = time.tree
    slices = trace.slices
    unit = trace.time.time_unit
    first, last = time.window
    tracks = slices.values("track_id")
    known = (tracks >= 0) & (tracks < len(tree))
    count = np.bincount(tracks[known], minlength=len(tree))
    is_open = known & ~slices.valid("dur")
    opened = np.bincount(tracks[is_open], minlength=len(tree))
    shown = tree.lanes
    return Table(
        spec(unit),
        {
            "id": Column.array(np.arange(len(shown))),
            "track_id": Column.array(shown),
            "lane": text_column([tree.path(lane) for lane in shown.tolist()]),
            "slices": Column.array(count[shown]),
            "unfinished": Column.array(opened[shown]),
            f"busy_{unit}": Column.array(time.busy[shown]),
            f"idle_{unit}": Column.array(time.idle[shown]),
            f"unknown_{unit}": Column.array(time.unknown[shown]),
            f"window_{unit}": Column.array(np.full(len(shown), last - first, np.int64)),
        },
    )


def end_or_last_known(table: Table) -> Ints:
    """Return where the rows of ``gaps`` or ``coverage`` end; one of unknown length, or a negative one, at its begin."""
    ts = table.values("ts")
    ends: Ints = ts + np.minimum(np.maximum(table.values("dur"), 0), INT64_MAX - np.maximum(ts, 0))
    return ends
