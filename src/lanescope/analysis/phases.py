"""Phases of lanes: busy by name, waiting by cause, idle, not recorded; they add up to the window exactly."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lanescope.analysis import idle
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.instances import PARENT
from lanescope.analysis.lane_parts import of_parts
from lanescope.analysis.partition import BUSY, IDLE, LOST, UNRECORDED, WAITING, Partition
from lanescope.common.intervals import INT64_MAX, Ints, exact_sum, sums
from lanescope.errors import UsageError
from lanescope.trace import Column, ColumnSpec, Dictionary, Table, TableSpec, ref

if TYPE_CHECKING:
    from lanescope.trace.column import Mask

#: What the time of lanes is added up for.
BY = ("lane", "group", "device", "all")
STATE_NAMES = ("busy", "waiting", "idle", "not recorded")
_STATE_OF = {BUSY: 0, WAITING: 1, IDLE: 2, LOST: 3, UNRECORDED: 3}
#: Why time is not recorded.
_IN_GAP, _NOT_COVERED = "gap or unfinished slice", "not covered"
QUALITIES = ("exact", "inferred")
#: Codes of that many values are counted in a table; more are sorted.
_TABLE = 1 << 22


def phases_spec(unit: str) -> TableSpec:
    """Return the declaration of phases for a time unit."""
    return TableSpec(
        "phases",
        "time that the lanes of one owner spent in one state; the totals of an owner add up to window times lanes",
        (
            ColumnSpec("id", "int64", "dense, by owner, then the longest total first"),
            ref("track_id", "tracks", "owner: lane, group or device; NULL for all lanes together", nullable=True),
            ColumnSpec("track", "text", "path of the owner; empty for all lanes together"),
            ColumnSpec("state", "text", "busy, waiting, idle, not recorded"),
            ColumnSpec("name", "text", "region that the lanes were busy with, or waited in; empty else"),
            ColumnSpec(
                "cause",
                "text",
                "region that was waited for; not recorded: why; NULL for busy lanes and unknown causes",
                nullable=True,
            ),
            ColumnSpec("quality", "text", "exact: a flow names the cause; inferred; NULL without cause", nullable=True),
            ColumnSpec("count", "int64", "stretches"),
            ColumnSpec("total", "int64", "sum of their durations", unit=unit),
            ColumnSpec("share", "float64", "share of the time of all lanes of the owner", unit="1"),
        ),
    )


def longest_spec(unit: str) -> TableSpec:
    """Return the declaration of the longest stretches without work for a time unit."""
    return TableSpec(
        "longest_gaps",
        "a stretch in which a lane waited or was idle, with what ended it",
        (
            ColumnSpec("id", "int64", "dense, the longest first"),
            ref("track_id", "tracks", "lane"),
            ColumnSpec("track", "text", "path of the lane"),
            ColumnSpec("ts", "int64", "start", unit=unit, is_time=True),
            ColumnSpec("dur", "int64", "duration", unit=unit),
            ColumnSpec("state", "text", "waiting, idle"),
            ColumnSpec("name", "text", "region that waits, or between which regions"),
            ColumnSpec(
                "ended_by", "text", "last region to end that the lane waited for; NULL if unknown", nullable=True
            ),
            ref("ended_by_slice_id", "slices", "slice of that region; NULL if unknown", nullable=True),
            ColumnSpec("ended_by_track", "text", "path of the lane of that region; NULL if unknown", nullable=True),
            ColumnSpec(
                "latency",
                "int64",
                "time from its end until the lane went on; NULL if unknown",
                nullable=True,
                unit=unit,
            ),
            ColumnSpec("quality", "text", "exact: a flow names it; inferred; NULL if unknown", nullable=True),
        ),
    )


class _Stretches(NamedTuple):
    """Stretches of lanes, and what the attribution of idle time says about them.

    Attributes:
        parts: of lanes only.
        state: index into ``STATE_NAMES``, int64 [n].
        cause: row of ``slices`` that was waited for, int64 [n]; -1 if unknown, or if the lane worked.
        is_exact: bool [n], whether a flow names it.
    """

    parts: Partition
    state: Ints
    cause: Ints
    is_exact: Mask

    def take(self, rows: Mask) -> _Stretches:
        """Return some of them."""
        return _Stretches(self.parts.take(rows), self.state[rows], self.cause[rows], self.is_exact[rows])


def _stretches(shared: AnalysisCache) -> _Stretches:
    """Return the stretches of lanes."""
    parts = shared.lane_partition
    code_of = np.array([_STATE_OF.get(state, 3) for state in range(max(_STATE_OF) + 1)])
    _, charge = idle.attributed(shared, PARENT)
    rows = np.flatnonzero((parts.state == IDLE) | (parts.state == WAITING))  # those, in their order
    cause, is_exact = np.full(len(parts.lane), -1, np.int64), np.zeros(len(parts.lane), np.bool_)
    cause[rows], is_exact[rows] = charge.row, charge.flow >= 0
    return _Stretches(parts, code_of[parts.state], cause, is_exact)


def phases(shared: AnalysisCache, by: str = "lane") -> Table:
    """Return where the time of lanes went, to the last unit of it.

    Each moment between the first and the last time of the trace is of one state on each lane: busy with the innermost
    region that works; waiting, in a region or a call that waits; idle, recorded and empty; or not recorded, in a gap,
    behind the last known time of an unfinished slice, or where nothing was recorded. For whom a lane waited is what
    ``idle`` finds: the source of the last flow that ends in the stretch, else the last region to end on another lane.
    Lanes that show what others show (annotations, Python calls, tasks in flight) are no lanes of an owner.

    Where a window selects slices, the states are still those of all of them. What is shown is the time that lanes spend
    in selected ones: shares stay those of all time, so they add up to the part that the selected ones have.

    Args:
        shared: the trace.
        by: ``lane``; ``group``: the group right above lanes; ``device``; or ``all``.

    Raises:
        UsageError: ``by`` is something else, or the time of all lanes of an owner takes more than 63 bits.

    Complexity: O(n log n) in slices.

    Example:
        >>> from lanescope.trace import TimeBase, TraceBuilder
        >>> builder = TraceBuilder(TimeBase())
        >>> block = builder.track("block 0", kind="group", role="block")
        >>> a, b = (builder.track(name, kind="lane", role="group", parent=block) for name in ("load", "compute"))
        >>> names = ["tma", "wait", "mma"]
        >>> _ = builder.append("slices", track_id=[a, b, b], ts=[0, 0, 60], dur=[50, 60, 50], name=names)
        >>> for row in phases(AnalysisCache(builder.finish())):
        ...     print(row["track"], row["state"], row["name"], row["cause"], row["total"])
        block 0/load not recorded  not covered 60
        block 0/load busy tma None 50
        block 0/compute waiting wait tma 60
        block 0/compute busy mma None 50
    """
    if by not in BY:
        raise UsageError(f"unknown --by {by!r} (choose from {', '.join(BY)})")
    lanes = np.bincount(_owners(shared, by)[shared.lanes])
    if int(lanes.max(initial=0)) * shared.window > INT64_MAX:
        raise UsageError(f"times of lanes, summed by {by}, take more than 63 bits", hint="use --start and --end")
    tree, unit = shared.time.tree, shared.unit
    texts = Dictionary(["", *shared.names.texts])
    causes = Dictionary(["", _IN_GAP, _NOT_COVERED, *shared.names.texts])
    owner_of = _owners(shared, by)
    summed = of_parts(shared, partial(_summed, owner_of=owner_of, texts=texts, causes=causes))
    *keys, total, count = (np.concatenate(columns) for columns in zip(*summed, strict=True))
    if len(summed) > 1:
        first, inverse = _grouped(keys)
        keys = [key[first] for key in keys]
        total, count = (sums(inverse, column, len(first)) for column in (total, count))
    owner, state, name, cause, quality = keys
    lanes = np.bincount(owner_of[shared.lanes], minlength=len(tree) + 1)
    rank = np.full(len(tree) + 1, len(tree))
    rank[tree.order] = np.arange(len(tree))
    sort = np.lexsort((cause, name, state, -total, rank[owner]))
    has_owner, has_cause, has_quality = owner[sort] < len(tree), cause[sort] > 0, quality[sort] > 0
    whole = lanes[owner[sort]] * shared.window
    return Table(
        phases_spec(unit),
        {
            "id": Column.array(np.arange(len(sort))),
            "track_id": _nullable(owner[sort], has_owner),
            "track": _paths(shared, owner[sort]),
            "state": Column.array(state[sort].astype(np.int32), dictionary=Dictionary(STATE_NAMES)),
            "name": Column.array(name[sort].astype(np.int32), dictionary=texts),
            "cause": _nullable_text(cause[sort], has_cause, causes),
            "quality": _nullable_text(quality[sort] - 1, has_quality, Dictionary(QUALITIES)),
            "count": Column.array(count[sort]),
            "total": Column.array(total[sort]),
            "share": Column.array(total[sort] / np.maximum(whole, 1)),
        },
    )


def selected_time(shared: AnalysisCache, table: Table) -> tuple[int, int]:
    """Return the time of a table of phases, and all the time that its lanes have."""
    return exact_sum(table.values("total")), len(shared.lanes) * shared.window


def _summed(shared: AnalysisCache, owner_of: Ints, texts: Dictionary, causes: Dictionary) -> tuple[Ints, ...]:
    """Return the time of lanes by owner, state, name, cause and quality: these as codes, their time and stretches."""
    found = _stretches(shared)
    if shared.selected is not None:
        found = found.take(shared.selected.at(found.parts.row))
    parts, state = found.parts, found.state
    name = np.where(parts.row >= 0, shared.name_codes(texts)[parts.row], 0) if len(shared.name_of) else parts.row * 0
    cause = _causes(shared, found, causes)
    quality = np.where(found.cause >= 0, np.where(found.is_exact, 1, 2), 0)
    keys = [owner_of[parts.lane], state, name, cause, quality]
    first, inverse = _grouped(keys)
    total = sums(inverse, parts.end - parts.start, len(first))
    count = np.bincount(inverse, minlength=len(first)).astype(np.int64)
    return *(key[first] for key in keys), total, count


def longest_gaps(shared: AnalysisCache, limit: int = 20) -> Table:
    """Return the longest stretches in which lanes waited or were idle, each with the last arriver that ended it.

    Time that was not recorded is neither; ``phases`` has it. Where a window selects slices, the stretches are those of
    all of them; shown are those that a selected one is part of, see ``idle``.

    Args:
        shared: the trace.
        limit: how many.

    Raises:
        UsageError: the limit is negative.
    """
    return gaps(shared, limit).table


class Gaps(NamedTuple):
    """Stretches in which lanes waited or were idle.

    Attributes:
        table: the longest of them, as ``longest_gaps`` returns it.
        stretches: how many there are; where slices are selected, that these are part of.
        total: sum of their durations.
        whole_stretches: how many there are, whatever is selected.
        whole_total: sum of their durations.
    """

    table: Table
    stretches: int
    total: int
    whole_stretches: int
    whole_total: int


def gaps(shared: AnalysisCache, limit: int) -> Gaps:
    """Return what ``longest_gaps`` does, how many such stretches there are, and how long they are; errors as there."""
    if limit < 0:
        raise UsageError(f"invalid limit {limit}: expected 0 or more")
    unit = shared.unit

    def of_part(part: AnalysisCache) -> tuple[Table, int, int, int, int]:
        table = idle.idle(part, PARENT)
        every, _ = idle.attributed(part, PARENT)
        whole = exact_sum(every.end - every.start)
        return _longest(table, limit), len(table), exact_sum(table.values("dur")), len(every.lane), whole

    kept, *numbers = zip(*of_parts(shared, of_part), strict=True)
    found = kept[0] if len(kept) == 1 else _longest(Table.concat(kept), limit)
    is_bubble = found.values("kind") == "bubble"
    state = np.where(is_bubble, STATE_NAMES.index("idle"), STATE_NAMES.index("waiting"))
    producer = found.column("producer_track_id")
    columns = {
        "id": Column.array(np.arange(len(found))),
        "track_id": found.column("track_id"),
        "track": _paths(shared, found.values("track_id")),
        "ts": found.column("ts"),
        "dur": found.column("dur"),
        "state": Column.array(state.astype(np.int32), dictionary=Dictionary(STATE_NAMES)),
        "name": found.column("name"),
        "ended_by": found.column("waits_for"),
        "ended_by_slice_id": found.column("producer_slice_id"),
        "ended_by_track": _paths(shared, producer.values, producer.valid),
        "latency": found.column(f"latency_{unit}"),
        "quality": found.column("quality"),
    }
    return Gaps(Table(longest_spec(unit), columns), *map(sum, numbers))


def _longest(table: Table, limit: int) -> Table:
    """Return the longest rows of ``idle``, those of one length by lane and time."""
    length = table.values("dur")
    rows = np.arange(len(table))
    if len(rows) > limit > 0:  # the longest, and all as long as the last of them
        least = np.partition(length, len(rows) - limit)[len(rows) - limit]
        rows = np.flatnonzero(length >= least)
    sort = np.lexsort((table.values("ts")[rows], table.values("track_id")[rows], -length[rows]))
    return table.take(rows[sort][:limit])


# --- parts of the answers -----------------------------------------------------------------------------------------


def _owners(shared: AnalysisCache, by: str) -> Ints:
    """Return the owner of each track, int64 [tracks + 1]; all lanes together have the number of tracks."""
    tree = shared.time.tree
    tracks = np.arange(len(tree) + 1)
    if by == "all":
        return np.full(len(tree) + 1, len(tree))
    if by == "lane" or not len(tree):
        return tracks
    parents = np.array([*tree.parents, -1])
    if by == "group":
        return np.where(parents >= 0, parents, tracks)
    tracks[tree.lanes] = [tree.device(lane) for lane in tree.lanes.tolist()]
    return tracks


def _causes(shared: AnalysisCache, found: _Stretches, texts: Dictionary) -> Ints:
    """Return the cause of each stretch, codes int64 [n], 0 where there is none."""
    cause = np.zeros(len(found.state), np.int64)
    cause[found.parts.state == LOST] = texts.code(_IN_GAP)
    cause[found.parts.state == UNRECORDED] = texts.code(_NOT_COVERED)
    rows = np.flatnonzero(found.cause >= 0)
    if len(rows):
        cause[rows] = shared.name_codes(texts)[found.cause[rows]]
    return cause


def _grouped(keys: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return one row of each group of rows that agree in all keys, and the group of each row, int64 [n]."""
    code = np.zeros(len(keys[0]), np.int64)
    span = 1
    for key in keys:
        width = int(key.max(initial=0)) + 1
        if span > 1 and span * width > _TABLE:  # few values by now, whatever their range
            code, span = _renumbered(code, span)
        code = code * width + key
        span *= width
    if span > _TABLE:
        _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
        return first, inverse
    row = np.full(span, -1, np.int64)
    row[code] = np.arange(len(code))
    used = np.flatnonzero(row >= 0)
    number = np.empty(span, np.int64)
    number[used] = np.arange(len(used))
    return row[used], number[code]


def _renumbered(code: Ints, span: int) -> tuple[Ints, int]:
    """Return numbers below ``span`` as numbers without any left out, in their order, and how many there are."""
    if span > _TABLE:
        values, dense = np.unique(code, return_inverse=True)
        return dense, len(values)
    used = np.zeros(span, np.bool_)
    used[code] = True
    number = np.cumsum(used) - 1
    return number[code], int(number[-1]) + 1


def _paths(shared: AnalysisCache, tracks: Ints, valid: Mask | None = None) -> Column:
    """Return the paths of tracks; empty for numbers of none."""
    texts = Dictionary()
    known = {track: texts.code(shared.time.tree.path(track)) for track in sorted(set(tracks.tolist()))}
    codes = np.array([known[track] for track in tracks.tolist()], np.int32)
    return Column.array(codes if valid is None else np.where(valid, codes, 0), valid=valid, dictionary=texts)


def _nullable(values: Ints, known: Mask) -> Column:
    return Column.array(np.where(known, values, 0), valid=None if known.all() else known)


def _nullable_text(codes: Ints, known: Mask, texts: Dictionary) -> Column:
    return Column.array(
        np.where(known, codes, 0).astype(np.int32), valid=None if known.all() else known, dictionary=texts
    )
