"""Summary of one run: statistics of each group of slices, and the conditions under which it was recorded.

A comparison reads nothing else of a run, so a summary can be kept where the capture is not (``summary_file``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from lanescope.analysis.compare.conditions import Conditions, conditions_of
from lanescope.analysis.compare.grouping import Key, group_slices
from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.partition import leaf_intervals
from lanescope.analysis.summary import sorted_within
from lanescope.common.intervals import Ints, sums
from lanescope.trace import Trace

#: Columns by which slices are grouped unless others are asked for.
DEFAULT_BY = ("name", "lane_kind")


class GroupStatistics(NamedTuple):
    """Statistics of the slices of one group in one run; times in the time unit of the run.

    Attributes:
        slices: number of finished slices.
        unfinished: slices without an end; in none of the times.
        total: self time of the finished slices: each moment of a lane counts for the innermost slice only.
        median: median duration of the finished slices; None without any.
        p99: duration that 99 % of them do not exceed; None without any.
    """

    slices: int
    unfinished: int
    total: int
    median: int | None
    p99: int | None


class Sequences(NamedTuple):
    """Self times of the finished slices, by group, then by path of the lane, then by start; int64 [n] each.

    Attributes:
        bounds: where the rows of each group begin, and where the last ones end; int64 [groups + 1].
        lane: number of the lane among the sorted paths of lanes.
        time: self time.
    """

    bounds: Ints
    lane: Ints
    time: Ints

    def of(self, group: int) -> tuple[Ints, Ints]:
        """Return lane and self time of the slices of one group."""
        rows = slice(int(self.bounds[group]), int(self.bounds[group + 1]))
        return self.lane[rows], self.time[rows]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What a comparison reads of one run.

    Attributes:
        name: name of the run, for people.
        sha256: hash of the content of its main file; empty if it is not known.
        by: columns by which its slices are grouped.
        unit: time unit, ``ns`` or ``cycles``.
        span: from the first to the last time that its rows name.
        groups: statistics by key; a key has one text per column of ``by``.
        conditions: coverage, losses, clocks and configuration.
        sequences: durations one by one, groups in the order of ``groups``; None of a summary that was read from a file.
        lanes: paths of the lanes that ``sequences`` numbers.
    """

    name: str
    sha256: str
    by: tuple[str, ...]
    unit: str
    span: int
    groups: Mapping[Key, GroupStatistics]
    conditions: Conditions
    sequences: Sequences | None = field(default=None, compare=False, repr=False)
    lanes: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def total(self) -> int:
        """Self time of all finished slices."""
        return sum(group.total for group in self.groups.values())


def summarize_run(
    trace: Trace,
    name: str,
    by: Sequence[str] = DEFAULT_BY,
    losses: Mapping[str, int] = {},
    *,
    has_sequences: bool = False,
) -> RunSummary:
    """Return the summary of a run.

    Args:
        trace: the trace.
        name: name of the run, for people.
        by: columns that make the identity of a group, as ``grouping.group_slices`` takes them.
        losses: what the run lost, by name.
        has_sequences: keep the durations one by one, which a comparison of one run with one other needs.

    Raises:
        UsageError: an unknown column.

    Complexity: O(n log n) for n slices.
    """
    slices = trace.slices
    time = LaneTime(trace)
    keys, group = group_slices(trace, time.tree, by)
    pieces = leaf_intervals(time)
    own = sums(pieces.row, pieces.time.end - pieces.time.begin, len(slices))
    finished = slices.valid("dur")
    unfinished = np.bincount(group[~finished], minlength=len(keys)).tolist()
    rows = np.flatnonzero(finished)
    counts = np.bincount(group[rows], minlength=len(keys))
    totals = sums(group[rows], own[rows], len(keys)).tolist()
    lengths = sorted_within(group[rows], slices.values("dur")[rows])
    edges = np.concatenate([[0], np.cumsum(counts)]).tolist()
    groups = {
        key: GroupStatistics(
            int(counts[at]),
            unfinished[at],
            totals[at],
            _rank(lengths, edges[at], edges[at + 1], 1, 2),
            _rank(lengths, edges[at], edges[at + 1], 99, 100),
        )
        for at, key in enumerate(keys)
    }
    hashes = [row["sha256"] for row in trace.inputs.rows("sha256", "role") if row["role"] == "main"]
    begin, end = time.window
    sequences, lanes = (None, ()) if not has_sequences else _sequences(time, group, own, len(keys))
    return RunSummary(
        name,
        hashes[0] if hashes else "",
        tuple(by),
        trace.time.time_unit,
        end - begin,
        groups,
        conditions_of(trace, time, losses),
        sequences,
        lanes,
    )


def _rank(lengths: Ints, begin: int, end: int, part: int, whole: int) -> int | None:
    """Return the smallest of the sorted lengths that ``part`` of ``whole`` of them do not exceed."""
    count = end - begin
    return int(lengths[begin + max(-(-count * part // whole), 1) - 1]) if count else None


def _sequences(time: LaneTime, group: Ints, own: Ints, groups: int) -> tuple[Sequences, tuple[str, ...]]:
    slices = time.trace.slices
    track = slices.values("track_id")
    paths = [time.tree.path(each) for each in range(len(time.tree))]
    by_path = sorted(range(len(paths)), key=paths.__getitem__)
    place = np.zeros(len(paths) + 1, np.int64)  # the last one is that of unknown tracks
    place[by_path] = np.arange(len(paths))
    rows = time.order[slices.valid("dur")[time.order]]
    lane = place[np.where((track >= 0) & (track < len(paths)), track, len(paths))][rows]
    # ``time.order`` is by track and start, and both sorts are stable.
    rows = rows[np.argsort(lane, kind="stable")] if (np.diff(lane) < 0).any() else rows
    # Sorting numbers of 16 bits takes a fraction of the time.
    small = group.astype(np.int16) if groups <= np.iinfo(np.int16).max else group
    rows = rows[np.argsort(small[rows], kind="stable")]
    bounds = np.searchsorted(group[rows], np.arange(groups + 1))
    lane = place[np.where((track >= 0) & (track < len(paths)), track, len(paths))][rows]
    return Sequences(bounds, lane, own[rows]), tuple(paths[each] for each in by_path)
