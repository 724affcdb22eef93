"""Where the time went: slices grouped by name, lane, device or category."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.track_tree import text_column
from lanescope.common.intervals import INT64_MAX, Intervals, Ints, union
from lanescope.errors import UsageError
from lanescope.trace import Column, ColumnSpec, Table, TableSpec, Trace

#: What slices can be grouped by.
GROUPS = ("name", "lane", "device", "category")


def spec(unit: str) -> TableSpec:
    """Return the declaration of the summary for a time unit."""
    return TableSpec(
        "summary",
        "slices of one group",
        (
            ColumnSpec("id", "int64", "dense, the largest total first"),
            ColumnSpec("group", "utf8", "the name, lane, device or category"),
            ColumnSpec("count", "int64", "slices of known length"),
            ColumnSpec("open", "int64", "slices of unknown length; no other column but share counts them"),
            ColumnSpec("total", "int64", "sum of the lengths", unit=unit),
            ColumnSpec("min", "int64", "the shortest", nullable=True, unit=unit),
            ColumnSpec("median", "int64", "no shorter than half of them", nullable=True, unit=unit),
            ColumnSpec("p99", "int64", "no shorter than 99 of 100", nullable=True, unit=unit),
            ColumnSpec("max", "int64", "the longest", nullable=True, unit=unit),
            ColumnSpec(
                "share",
                "float64",
                "time that the group covers on its lanes, as a share of the time that all slices cover; where slices "
                "nest, shares add up to more than 1",
                nullable=True,
                unit="1",
            ),
        ),
    )


def summary(trace: Trace, by: str = "name", time: LaneTime | None = None) -> Table:
    """Return count, total, spread and share of the slices of each group, the largest total first.

    Medians and percentiles are lengths that occurred: the smallest that at least that part of the group does not
    exceed. Open slices are counted in a column of their own and never as zero.

    Args:
        trace: the trace.
        by: ``name``, ``lane`` (path of the lane), ``device`` (path of the nearest track of role ``device``, else of the
            topmost above the lane) or ``category``.
        time: the trace's ``LaneTime``, when the caller has one already.

    Raises:
        UsageError: ``by`` is something else.

    Example:
        >>> from lanescope.trace import TimeBase, TraceBuilder
        >>> builder = TraceBuilder(TimeBase())
        >>> lane = builder.track("core 0", kind="lane", role="core")
        >>> _ = builder.append("slices", track_id=lane, ts=[0, 60, 70], dur=[30, 10, 20], name=["mma", "load", "mma"])
        >>> for row in summary(builder.finish()).rows():
        ...     print(row["group"], row["count"], row["total"], row["max"], round(row["share"], 2))
        mma 2 50 30 0.83
        load 1 10 10 0.17
    """
    if by not in GROUPS:
        raise UsageError(f"unknown grouping {by!r} (choose from {', '.join(GROUPS)})")
    time = time or LaneTime(trace)
    slices = trace.slices
    group, texts = _groups(trace, time, by)
    groups = len(texts)
    closed = slices.valid("dur")
    everything = bool(closed.all())
    lengths = slices.values("dur") if everything else slices.values("dur")[closed]
    of = group if everything else group[closed]
    members = np.bincount(group, minlength=groups)
    count = np.bincount(of, minlength=groups)
    total = np.zeros(groups, np.int64)
    edges = np.concatenate([[0], np.cumsum(count)])
    sorted_lengths = sorted_within(of, lengths)
    filled = np.flatnonzero(count)
    if len(filled):
        total[filled] = np.add.reduceat(sorted_lengths, edges[filled])
    busy = int((time.slice_union.end - time.slice_union.begin).sum())
    share = covered_by(time, group, groups) / (busy or 1)
    shown = np.lexsort((-members, -total))
    shown = shown[members[shown] > 0]
    known = count[shown] > 0

    def rank(part: int, of_parts: int) -> Column:
        """The length that at least ``part / of_parts`` of a group do not exceed."""
        steps = np.maximum(-(-count[shown] * part // of_parts), 1) - 1
        values = np.zeros(len(shown), np.int64)
        values[known] = sorted_lengths[(edges[shown] + steps)[known]]
        return Column.array(values, valid=None if known.all() else known)

    return Table(
        spec(trace.time.time_unit),
        {
            "id": Column.array(np.arange(len(shown))),
            "group": text_column([texts[g] for g in shown.tolist()]),
            "count": Column.array(count[shown]),
            "open": Column.array((members - count)[shown]),
            "total": Column.array(total[shown]),
            "min": rank(0, 1),
            "median": rank(1, 2),
            "p99": rank(99, 100),
            "max": rank(1, 1),
            "share": Column.array(share[shown], valid=None if busy else np.zeros(len(shown), np.bool_)),
        },
    )


def _groups(trace: Trace, time: LaneTime, by: str) -> tuple[Ints, list[str]]:
    """Return the group of each slice, int64 [n], and the text of each group."""
    slices, tree = trace.slices, time.tree
    if by in ("name", "category"):
        column = slices.column(by)
        return column.values.astype(np.int64), list(column.dictionary.texts) if column.dictionary else []
    # Slices on tracks that do not exist share one group at the end.
    nowhere = len(tree)
    track = slices.values("track_id")
    if len(track) and not 0 <= int(track.min()) <= int(track.max()) < nowhere:
        track = np.where((track >= 0) & (track < nowhere), track, nowhere)
    if by == "lane":
        used = np.bincount(track, minlength=nowhere + 1)
        return track, [tree.path(lane) if used[lane] else "" for lane in range(nowhere + 1)]
    used = np.flatnonzero(np.bincount(track, minlength=nowhere + 1))
    device = np.full(nowhere + 1, nowhere, np.int64)
    for lane in used[used < nowhere].tolist():
        device[lane] = tree.device(lane)
    mine = set(device.tolist())
    return device[track], [tree.path(step) if step in mine else "" for step in range(nowhere + 1)]


def sorted_within(group: Ints, lengths: Ints) -> Ints:
    """Return the lengths sorted by group, then length."""
    if not len(lengths):
        return lengths
    low, high = int(lengths.min()), int(lengths.max())
    span = high - low + 1
    if (int(group.max()) + 1) * span <= INT64_MAX:
        # One sort of plain numbers is several times faster than one of pairs.
        key = np.sort(group * span + (lengths - low))
        found: Ints = key % span + low
        return found
    return lengths[np.lexsort((lengths, group))]


def covered_by(time: LaneTime, group: Ints, groups: int) -> npt.NDArray[np.float64]:
    """Return how much time the slices of each group cover, lane by lane, float64 [groups]."""
    track, begin, end = time.extents
    length = end - begin
    if int(length.sum()) == int((time.slice_union.end - time.slice_union.begin).sum()):
        # Nothing shares time, so nothing can be counted twice.
        return np.bincount(group, length, groups).astype(np.float64)
    first = int(track.min())
    lanes = int(track.max()) - first + 1
    disjoint = union(Intervals(group * lanes + (track - first), begin, end))
    time_of = np.bincount(disjoint.group // lanes, disjoint.end - disjoint.begin, groups)
    return time_of.astype(np.float64)
