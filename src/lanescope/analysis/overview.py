"""A trace small enough for any viewer: exact sums of short stretches in place of the stretches.

The time axis is divided into buckets. A lane that changes its state only a few times within one is drawn as it was.
Where it changes more often, what it did there is put together by name: each name once, in the order in which they
began, for as long as all its stretches in the bucket took together. So nothing moves by more than a bucket, and any
viewer that adds up durations by name, lane or time finds the exact times of the whole trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.lane_parts import of_parts
from lanescope.analysis.partition import BUSY, WAITING
from lanescope.analysis.windows.report import with_options
from lanescope.common.intervals import Ints, group_starts, sums
from lanescope.errors import UsageError
from lanescope.trace import Column, Dictionary, Table, TableSpec, Trace, argument, ref
from lanescope.trace.column import Mask
from lanescope.trace.schema import FLOWS, INSTANTS, SLICES

#: Slices that an overview has about, where the user does not say how many buckets; and the buckets that makes, at least
#: and at most.
SLICES_WANTED, LEAST_BUCKETS, MOST_BUCKETS = 1_000_000, 50, 2_000
#: Names that a lane usually has in a bucket.
_NAMES_EACH = 4
#: Stretches of a lane within a bucket that are drawn as they were.
_FEW = 3

#: What the slices of an overview are sums of.
PARTS = TableSpec(
    "overview_parts",
    "what a slice of an overview is a sum of",
    (
        ref("slice_id", "slices", "the slice"),
        argument("stretches", "int64", "stretches of the lane that start in it; 0: one from before continues"),
        argument("is_sum", "bool", "whether its duration is a sum, and its start a place within the bucket"),
    ),
    key="slice_id",
)


class Overview(NamedTuple):
    """An overview.

    Attributes:
        trace: lanes of the whole trace, with the slices of the overview.
        buckets: how many the time axis has.
        width: longest of them, in the unit of the trace.
        stretches: how many there were: each moment of a lane is of the innermost region.
        unfinished: slices without a known end: they are drawn up to where they were last seen.
    """

    trace: Trace
    buckets: int
    width: int
    stretches: int
    unfinished: int


class _Pieces(NamedTuple):
    """Parts of stretches within one bucket each, by lane and begin; [n] each, int64.

    Attributes:
        lane: the track.
        begin: first moment.
        end: first moment after it.
        name: code of the name.
        stretches: how many begin in it.
        is_sum: bool, whether it is a sum.
        goes_on: bool, whether it begins with the rest of what the one before it is of.
    """

    lane: Ints
    begin: Ints
    end: Ints
    name: Ints
    stretches: Ints
    is_sum: Mask
    goes_on: Mask

    def take(self, rows: Ints | Mask) -> _Pieces:
        """Return some of them."""
        numbers = (self.lane[rows], self.begin[rows], self.end[rows], self.name[rows], self.stretches[rows])
        return _Pieces(*numbers, self.is_sum[rows], self.goes_on[rows])


def _concatenated(some: Sequence[_Pieces]) -> _Pieces:
    """Return several as one."""
    lane, begin, end, name, stretches, is_sum, goes_on = (
        np.concatenate(columns) for columns in zip(*some, strict=True)
    )
    return _Pieces(lane, begin, end, name, stretches, is_sum, goes_on)


def usual_buckets(lanes: int) -> int:
    """Return how many buckets an overview of so many lanes has where the user does not say.

    Example:
        >>> usual_buckets(16), usual_buckets(400), usual_buckets(1_000_000)
        (2000, 625, 50)
    """
    return min(max(SLICES_WANTED // (_NAMES_EACH * max(lanes, 1)), LEAST_BUCKETS), MOST_BUCKETS)


def overview(shared: AnalysisCache, buckets: int = 0) -> Overview:
    """Return the overview of a trace.

    Args:
        shared: the trace. Where a window selects slices, the time in selected ones is drawn.
        buckets: into how many the time axis is divided, at most one for each unit of it; 0: ``usual_buckets``.

    Returns:
        Slices have the names of innermost regions; their times by lane and name add up to those of ``phases``,
        exactly.
        Gaps and coverage are those of the trace; instants, samples of counters and flows are left out.

    Raises:
        UsageError: the number of buckets is negative.

    Complexity: O(n log n) in slices; memory O(lanes * buckets * names in one).

    Example:
        >>> from lanescope.trace import TimeBase, TraceBuilder
        >>> builder = TraceBuilder(TimeBase())
        >>> core = builder.track("core 0", kind="lane", role="core")
        >>> starts, lengths, names = [0, 10, 20, 30, 40, 60], [5, 5, 5, 5, 5, 40], ["a", "b", "a", "b", "a", "c"]
        >>> _ = builder.append("slices", track_id=core, ts=starts, dur=lengths, name=names)
        >>> found = overview(AnalysisCache(builder.finish()), 2)
        >>> for row in found.trace.slices.rows("ts", "dur", "name"):
        ...     print(*row.values())
        0 15 a
        15 10 b
        60 40 c
    """
    if buckets < 0:
        raise UsageError(f"invalid number of buckets {buckets}: expected one or more")
    first, last = shared.time.window
    count = max(min(buckets or usual_buckets(len(shared.lanes)), last - first), 1)
    edges = np.array([first + at * (last - first) // count for at in range(count + 1)], np.int64)
    texts = Dictionary(["", *shared.names.texts])
    made = of_parts(shared, partial(_drawn, edges=edges, texts=texts))
    found = _concatenated([pieces for pieces, _ in made])
    sort = np.argsort(found.lane, kind="stable")
    return Overview(
        _trace(shared, found.take(sort), texts, count),
        count,
        int(np.diff(edges).max(initial=0)),
        int(found.stretches.sum()),
        sum(unfinished for _, unfinished in made),
    )


def _drawn(shared: AnalysisCache, edges: Ints, texts: Dictionary) -> tuple[_Pieces, int]:
    """Return what is drawn of the lanes of a part, and how many of its slices are unfinished."""
    parts = shared.lane_partition
    works = ((parts.state == BUSY) | (parts.state == WAITING)) & (parts.row >= 0)
    if shared.selected is not None:
        works &= shared.selected.at(parts.row)
    parts = parts.take(np.flatnonzero(works))
    name = shared.name_codes(texts)[parts.row] if len(parts.row) else parts.row
    whole = _Pieces(
        parts.lane, parts.start, parts.end, name, np.ones(len(name), np.int64), np.zeros(len(name), np.bool_),
        np.zeros(len(name), np.bool_),
    )  # fmt: skip
    unfinished = int(np.count_nonzero(~shared.trace.slices.valid("dur")))
    return _joined(_summed(*_cut(whole, edges), edges)), unfinished


def _cut(whole: _Pieces, edges: Ints) -> tuple[_Pieces, Ints]:
    """Return the pieces cut at the edges of buckets, and the bucket of each, int64 [n]."""
    first = np.searchsorted(edges, whole.begin, "right") - 1
    count = np.searchsorted(edges, whole.end, "left") - first
    row = np.repeat(np.arange(len(first)), count)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    bucket, cut = first[row] + nth, whole.take(row)
    begin, end = np.maximum(cut.begin, edges[bucket]), np.minimum(cut.end, edges[bucket + 1])
    begins_here = nth == 0
    return cut._replace(begin=begin, end=end, stretches=begins_here.astype(np.int64), goes_on=~begins_here), bucket


def _summed(cut: _Pieces, bucket: Ints, edges: Ints) -> _Pieces:
    """Return the pieces with sums where a lane has many in a bucket, by lane and begin."""
    if not len(bucket):
        return cut
    place = group_starts(cut.lane) | group_starts(bucket)
    group = np.cumsum(place) - 1
    many = np.bincount(group)[group] > _FEW
    rows = np.flatnonzero(many)
    width = int(cut.name.max()) + 1
    _, first, inverse = np.unique(group[rows] * width + cut.name[rows], return_index=True, return_inverse=True)
    sort = np.argsort(first)  # in the order in which they began: of groups, and within each
    number = np.empty(len(sort), np.int64)
    number[sort] = np.arange(len(sort))
    inverse, source = number[inverse], rows[first[sort]]
    length = sums(inverse, (cut.end - cut.begin)[rows], len(source))
    stretches = sums(inverse, cut.stretches[rows], len(source))
    begins = np.cumsum(length) - length
    heads = np.maximum.accumulate(np.where(group_starts(group[source]), np.arange(len(source)), 0))
    begin = edges[bucket[source]] + begins - begins[heads] if len(source) else source
    added = cut.take(source)._replace(
        begin=begin, end=begin + length, stretches=stretches, is_sum=np.ones(len(source), np.bool_)
    )
    kept = np.flatnonzero(~many)
    merged = _concatenated([cut.take(kept), added])
    return merged.take(np.lexsort((merged.begin, merged.lane)))


def _joined(found: _Pieces) -> _Pieces:
    """Return pieces of one name that touch as one: the rest of a stretch in the next bucket, and sums of neighbours."""
    if not len(found.lane):
        return found
    before = np.concatenate([[False], found.is_sum[:-1]])
    touches = ~group_starts(found.lane) & ~group_starts(found.name) & (found.goes_on | found.is_sum | before)
    touches[1:] &= found.begin[1:] == found.end[:-1]
    heads = np.flatnonzero(~touches)
    last = np.append(heads[1:], len(touches)) - 1
    return found.take(heads)._replace(
        end=found.end[last],
        stretches=np.add.reduceat(found.stretches, heads),
        is_sum=np.logical_or.reduceat(found.is_sum, heads),
    )


def _trace(shared: AnalysisCache, found: _Pieces, texts: Dictionary, buckets: int) -> Trace:
    """Return the trace whose slices are the pieces."""
    count, rest = len(found.lane), shared.trace
    empty = Table.empty(SLICES)
    columns = {name: Column.null(count, empty.column(name).values.dtype) for name in SLICES.names}
    columns |= {
        "id": Column.array(np.arange(count)),
        "track_id": Column.array(found.lane),
        "ts": Column.array(found.begin),
        "dur": Column.array(found.end - found.begin),
        "name": Column.array(found.name.astype(np.int32), dictionary=texts),
        "category": Column.constant(0, count, np.int32, dictionary=Dictionary(("overview",))),
        "quality": Column.array(found.is_sum.astype(np.int32), dictionary=Dictionary(("exact", "estimated"))),
        "flags": Column.array(np.zeros(count, np.uint32)),
    }
    parts = {
        "slice_id": columns["id"],
        "stretches": Column.array(found.stretches),
        "is_sum": Column.array(found.is_sum),
    }
    tables = {**rest.tables(), "slices": Table(SLICES, columns)}
    tables["inputs"] = with_options(rest.inputs, lambda known: {"overview": buckets})
    tables["tracks"] = _named(rest.tracks, buckets)
    for spec in (INSTANTS, FLOWS, rest.counters.spec):
        tables[spec.name] = Table.empty(spec)
    details = {name: table for name, table in rest.details.items() if table.spec.key == "track_id"}
    return Trace(rest.time, tables, {**details, PARTS.name: Table(PARTS, parts)})


def _named(tracks: Table, buckets: int) -> Table:
    """Return the tracks with what they are in the names of the top ones, which every viewer shows."""
    names = tracks.values("name").astype(object)
    top = ~tracks.valid("parent_id")
    names[top] = [f"{name} (overview, {buckets:,} buckets)" for name in names[top].tolist()]
    columns = {name: tracks.column(name) for name in tracks.spec.names}
    return Table(tracks.spec, {**columns, "name": Column.array(names)})
