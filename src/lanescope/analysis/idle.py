"""Idle time of lanes: duration, adjacent regions, and causes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lanescope.analysis.analysis_cache import AnalysisCache, instances, once
from lanescope.analysis.instances import PARENT
from lanescope.analysis.partition import IDLE, WAITING, LeafIntervals, Partition
from lanescope.analysis.producer_votes import ProducerVotes
from lanescope.analysis.work_classes import CLASSES, WAIT
from lanescope.common.intervals import Intervals, Ints, last_before, order
from lanescope.trace import Column, ColumnSpec, Dictionary, Table, TableSpec, Trace
from lanescope.trace.column import Mask
from lanescope.trace.row_packing import rows_of

KINDS = ("wait", "bubble")
QUALITIES = ("exact", "inferred")


def spec(unit: str = "ns") -> TableSpec:
    """Return the declaration of idle intervals for a time unit."""
    return TableSpec(
        "idle",
        "one idle interval of a lane: a region that waits, or time between regions",
        (
            ColumnSpec("id", "int64", "dense, by lane and time"),
            ColumnSpec("track_id", "int64", "lane"),
            ColumnSpec("ts", "int64", "start", unit=unit),
            ColumnSpec("dur", "int64", "duration", unit=unit),
            ColumnSpec("kind", "text", "`wait` (inside a region classified as waiting) or `bubble` (between regions)"),
            ColumnSpec(
                "name",
                "text",
                "waiting region, or `between A and B` for a bubble: A is the last region to end before it (of several "
                "the last to start), B the first to start after it (of several the longest)",
            ),
            ColumnSpec("waits_for", "text", "region that the lane waits for; NULL if unknown", nullable=True),
            ColumnSpec("producer_track_id", "int64", "lane of that region; NULL if unknown", nullable=True),
            ColumnSpec("producer_slice_id", "int64", "slice of that region; NULL if unknown", nullable=True),
            ColumnSpec("flow_id", "int64", "flow that names the producer; NULL if inferred", nullable=True),
            ColumnSpec(
                f"blocked_{unit}",
                "int64",
                "time until the producer ended; NULL without producer",
                nullable=True,
                unit=unit,
            ),
            ColumnSpec(
                f"latency_{unit}",
                "int64",
                "time from the end of the producer until the lane continued; NULL without producer",
                nullable=True,
                unit=unit,
            ),
            ColumnSpec(
                "quality",
                "text",
                "`exact` (a flow names the producer) or `inferred` (the last region to end on another lane of the "
                "instance before the wait, or the most common producer of waits of this name); NULL if unknown",
                nullable=True,
            ),
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """Causes of idle stretches; int64 [n] each, -1 if unknown."""

    row: Ints  # row of the slices table
    track: Ints
    done: Ints  # when the producer was done
    flow: Ints

    @classmethod
    def unknown(cls, count: int) -> Attribution:
        """Return the causes of ``count`` stretches of which none is known."""
        return cls(*np.full((4, count), -1, np.int64))


@once
def attributed(shared: AnalysisCache, role: str = PARENT) -> tuple[Partition, Attribution]:
    """Return the stretches of lanes that wait or are idle, by lane and time, and their causes; errors as ``idle``."""
    parts = shared.partition
    is_lane = np.zeros(len(shared.time.tree), np.bool_)
    is_lane[shared.lanes] = True
    stretches = parts.take(((parts.state == IDLE) | (parts.state == WAITING)) & is_lane[parts.lane])
    charge = _by_flow(shared.trace, stretches, shared.pieces)
    _charge_last_ends(shared, role, stretches, charge)
    return stretches, charge


@once
def idle(shared: AnalysisCache, role: str = PARENT) -> Table:
    """Return every stretch in which a lane does no work, and for whom it waits.

    They are the stretches of ``partition`` in which a lane waits or is idle; unknown time is neither. The producer is
    the source of the latest flow that ends in the stretch; a wait that no flow ends in is charged to the last region
    that works and ends, on another lane of the instance, within it; or, if that is not the one that waits of this name
    are mostly charged to, to the last of those, if there is one.

    Where a window selects slices, this is found of all slices. The rows are the stretches that a selected slice is part
    of: that it waits in, between it and the slice before or after it, or for whose end the lane waits.

    Args:
        shared: the trace.
        role: what an instance is, see ``Instances``.

    Raises:
        UsageError: the trace has no such instances, or ``given`` a kind that is none.

    Example:
        >>> from lanescope.analysis.analysis_cache import AnalysisCache
        >>> from lanescope.trace import TimeBase, TraceBuilder
        >>> builder = TraceBuilder(TimeBase())
        >>> block = builder.track("block 0", kind="group", role="block")
        >>> a, b = (builder.track(name, kind="lane", role="group", parent=block) for name in ("load", "compute"))
        >>> names = ["tma", "wait", "mma"]
        >>> _ = builder.append("slices", track_id=[a, b, b], ts=[0, 0, 120], dur=[100, 120, 9], name=names)
        >>> row = next(idle(AnalysisCache(builder.finish())).rows())
        >>> row["name"], row["waits_for"], row["blocked_ns"], row["latency_ns"], row["quality"]
        ('wait', 'tma', 100, 20, 'inferred')
    """
    trace, unit = shared.trace, shared.unit
    stretches, charge = attributed(shared, role)
    start, end = stretches.start, stretches.end
    is_exact, has_row = charge.flow >= 0, charge.row >= 0
    has_producer = is_exact | has_row
    done = np.clip(charge.done, start, end)
    name, names, beside = _names(stretches, shared)
    row = np.where(has_row, charge.row, 0)
    producer = Column.array(_at(trace.slices.values("id"), row, has_row), valid=has_row)
    selected = shared.selected
    if selected is not None:
        # Ids are those of a trace that has the selected ones only.
        known = selected.at(charge.row)
        producer = Column.array(np.where(known, _at(selected.ids, row, has_row), 0).astype(np.int64), valid=known)
    table = Table(
        spec(unit),
        {
            "id": Column.array(np.arange(len(start))),
            "track_id": Column.array(stretches.lane),
            "ts": Column.array(start),
            "dur": Column.array(end - start),
            "kind": Column.array((stretches.row < 0).astype(np.int32), dictionary=Dictionary(KINDS)),
            "name": Column.array(name.astype(np.int32), dictionary=names),
            "waits_for": Column.array(
                _at(shared.name_of, row, has_row).astype(np.int32),
                valid=has_row,
                dictionary=Dictionary(shared.names.texts),
            ),
            "producer_track_id": Column.array(np.where(has_producer, charge.track, 0), valid=has_producer),
            "producer_slice_id": producer,
            "flow_id": Column.array(np.where(is_exact, charge.flow, 0), valid=is_exact),
            f"blocked_{unit}": Column.array(np.where(has_producer, done - start, 0), valid=has_producer),
            f"latency_{unit}": Column.array(np.where(has_producer, end - done, 0), valid=has_producer),
            "quality": Column.array(
                (has_producer & ~is_exact).astype(np.int32), valid=has_producer, dictionary=Dictionary(QUALITIES)
            ),
        },
    )
    if selected is None:
        return table
    shown = selected.at(stretches.row) | selected.at(charge.row)
    for rows in beside:
        shown |= selected.at(rows)
    return table.where(shown).numbered()


def _at(values: Ints, rows: Ints, known: Mask) -> Ints:
    """Return ``values[rows]`` where known, 0 else; there may be no values at all."""
    return np.where(known, values[rows], 0) if len(values) else np.zeros(len(rows), np.int64)


def _names(stretches: Partition, shared: AnalysisCache) -> tuple[Ints, Dictionary, tuple[Ints, Ints]]:
    """Return the name of each stretch, codes int64 [n], their texts, and the rows of the slices beside it.

    These are -1 where there is none, or the stretch itself is in a slice.
    """
    pieces, code, texts = shared.pieces, shared.name_of, shared.names.texts
    gaps = np.flatnonzero(stretches.row < 0)
    track, begin, end = stretches.time.take(gaps)
    of, since, until = pieces.time
    # In a lane where pieces overlap, the one that began last need not be the one that ended last.
    by_end = order(of, until)
    before = last_before(of, until[by_end], track, begin)
    before[before >= 0] = by_end[before[before >= 0]]
    # The first piece that begins no earlier than the gap ends is the one behind the last that begins before.
    last = last_before(of, since, track, end, "left")
    after = np.where(last >= 0, last + 1, np.searchsorted(of, track))
    there = after < len(of)
    there[there] = of[after[there]] == track[there]
    none = len(texts)
    piece_code = np.append(code[pieces.row], none)
    left = piece_code[np.where(before >= 0, before, len(pieces))]
    right = piece_code[np.where(there, after, len(pieces))]
    pairs, inverse = np.unique(left * (none + 1) + right, return_inverse=True)
    names = Dictionary(texts)
    codes = [names.code(_between(pair // (none + 1), pair % (none + 1), texts)) for pair in pairs.tolist()]
    found = code[stretches.row] if len(code) else np.zeros(len(stretches.row), np.int64)
    found[gaps] = np.array(codes, np.int64).reshape(-1)[inverse.reshape(-1)]
    beside = np.full((2, len(stretches.row)), -1, np.int64)
    piece_row = np.append(pieces.row, -1)
    beside[0, gaps] = piece_row[np.where(before >= 0, before, len(pieces))]
    beside[1, gaps] = piece_row[np.where(there, after, len(pieces))]
    return found, names, (beside[0], beside[1])


def _between(before: int, after: int, texts: list[str]) -> str:
    has_before, has_after = before < len(texts), after < len(texts)
    if has_before and has_after:
        return f"between {texts[before]} and {texts[after]}"
    if has_before:
        return f"after {texts[before]}"
    return f"before {texts[after]}" if has_after else "nothing ran"


# --- producers ----------------------------------------------------------------------------------------------------


def _by_flow(trace: Trace, stretches: Partition, pieces: LeafIntervals) -> Attribution:
    """Charge stretches to the source of the latest flow that ends in each."""
    flows, slices = trace.flows, trace.slices
    found = Attribution.unknown(len(stretches.row))
    if not len(flows) or not len(stretches.row):
        return found
    ends_in = _target(flows, slices, stretches)
    used = np.flatnonzero(ends_in >= 0)
    # The last of each stretch in this order is the latest; of several at once the first in the table.
    used = used[np.lexsort((-used, flows.values("src_ts")[used], ends_in[used]))]
    if not len(used):
        return found
    last = np.append(ends_in[used][1:] != ends_in[used][:-1], True)
    flow = used[last]
    at = ends_in[flow]
    source = np.where(flows.valid("src_slice_id")[flow], flows.values("src_slice_id")[flow], -1)
    row = rows_of(slices.values("id"), source) if len(slices) else np.full(len(flow), -1)
    # A flow without a slice comes from what ran, or had just ended, on its lane.
    guess = last_before(
        pieces.time.group, pieces.time.begin, flows.values("src_track_id")[flow], flows.values("src_ts")[flow], "left"
    )
    if len(pieces):
        row = np.where((row < 0) & (guess >= 0), pieces.row[guess], row)
    found.row[at], found.track[at], found.done[at] = (
        row,
        flows.values("src_track_id")[flow],
        flows.values("src_ts")[flow],
    )
    found.flow[at] = flows.values("id")[flow]
    return found


def _target(flows: Table, slices: Table, stretches: Partition) -> Ints:
    """Return the stretch that each flow ends in, int64 [flows], -1 for none."""
    track, begin, end = stretches.time
    dst, ts = flows.values("dst_track_id"), flows.values("dst_ts")
    # Stretches of a lane do not overlap: that before the one that begins at a time is the row before.
    at_begin = last_before(track, begin, dst, ts)
    arrives = (at_begin >= 0) & (begin[at_begin] == ts)
    found = at_begin - arrives
    kept = (found >= 0) & (track[found] == dst)
    found = np.where(kept & (end[found] >= ts), found, -1)
    # One that arrives as a stretch begins has not kept it waiting, but belongs to it if to any.
    found = np.where((found < 0) & arrives, at_begin, found)
    # A flow that names a slice that waits belongs to that one, whatever ended at the same time.
    named = np.flatnonzero(flows.valid("dst_slice_id"))
    waiting = np.flatnonzero(stretches.row >= 0)
    if len(named) and len(waiting):
        row = rows_of(slices.values("id"), flows.values("dst_slice_id")[named])
        waits = np.zeros(len(slices) + 1, np.bool_)  # one more for rows that are none
        waits[stretches.row[waiting]] = True
        named, row = named[waits[row]], row[waits[row]]
        by_row = waiting[np.argsort(stretches.row[waiting], kind="stable")]
        key = stretches.row[by_row]
        piece = last_before(key, begin[by_row], row, ts[named])
        first = np.searchsorted(key, row)
        is_there = first < len(key)
        is_there[is_there] = key[first[is_there]] == row[is_there]
        piece = np.where(piece >= 0, piece, first)[is_there]
        found[named[is_there]] = by_row[piece]
    return found


class _Waits(NamedTuple):
    """Waits that no flow ends in, and what may have ended them.

    Attributes:
        asked: int64 [n], the stretches.
        unit: int64 [n], instance of each.
        alike: int64 [n], waits of one name on lanes of one name have the same number.
        row: int64 [n], slice on another lane of the instance that ends last within each, -1 for none.
        rows: int64 [m], slices that work.
        rows_unit: int64 [m], instance of each.
    """

    asked: Ints
    unit: Ints
    alike: Ints
    row: Ints
    rows: Ints
    rows_unit: Ints


def _waits(shared: AnalysisCache, role: str, stretches: Partition, charge: Attribution) -> _Waits | None:
    # What a view shows is not what others wait for.
    instance_of = np.where(shared.views, -1, shared.whole_instances(instances(shared, role).of))
    asked = np.flatnonzero((stretches.state == WAITING) & (charge.flow < 0))
    asked = asked[instance_of[stretches.lane[asked]] >= 0]
    if not len(asked):
        return None
    ends, name = shared.time.extents, shared.name_of
    track, begin, end = ends
    known = (end > begin) & (track >= 0) & (track < len(instance_of))
    known &= (shared.kind_of != CLASSES.index(WAIT))[name]
    known[known] = instance_of[track[known]] >= 0
    rows = np.flatnonzero(known)
    if not len(rows):
        return None
    unit, rows_unit = instance_of[stretches.lane[asked]], instance_of[track[rows]]
    lane_name = Dictionary().codes(shared.time.tree.names).astype(np.int64)
    alike = lane_name[stretches.lane[asked]] * len(shared.names) + name[stretches.row[asked]]
    row = _last_end(ends, rows, rows_unit, unit, stretches.time.take(asked))
    return _Waits(asked, unit, alike, row, rows, rows_unit)


def _charge_last_ends(shared: AnalysisCache, role: str, stretches: Partition, charge: Attribution) -> None:
    """Charge waits that no flow ends in to what ended last, within them, on another lane of their instance.

    A barrier mostly waits for the same region. Where something else happened to end between that region and the wait,
    the region that most waits of this name, on lanes of this name, were charged to first gets this one too.
    """
    waits = _waits(shared, role, stretches, charge)
    if waits is None:
        return
    ends, name = shared.time.extents, shared.name_of
    asked, unit, alike, row, rows, rows_unit = waits
    charged = np.flatnonzero(row >= 0)
    shared.own_votes = ProducerVotes.of(alike[charged], name[row[charged]])
    usual = (shared.votes or shared.own_votes).usual(alike)
    # Once more, looking for the usual region only.
    names = len(shared.names)
    again = np.flatnonzero((usual >= 0) & (row >= 0))
    again = again[name[row[again]] != usual[again]]
    if len(again):
        wanted = unit[again] * names + usual[again]
        time = stretches.time.take(asked[again])
        better = _last_end(ends, rows, rows_unit * names + name[rows], wanted, time)
        row[again] = np.where(better >= 0, better, row[again])
    hit = row >= 0
    to, row = asked[hit], row[hit]
    charge.row[to], charge.track[to], charge.done[to] = row, ends.group[row], ends.end[row]


def _last_end(ends: Intervals, rows: Ints, group: Ints, wanted: Ints, waiting: Intervals) -> Ints:
    """Return the slice of a group that ends last within each wait and is on another lane, -1 for none.

    Args:
        ends: when slices run, by row of the slices table.
        rows: int64 [n], the slices to look among.
        group: int64 [n], the group of each.
        wanted: int64 [m], the group to look in.
        waiting: the waits, [m]; their groups are lanes.
    """
    # By end; of those that end together the innermost last.
    sort = order(group, ends.end[rows], -ends.begin[rows])
    rows, group = rows[sort], group[sort]
    track, end = ends.group[rows], ends.end[rows]
    at = last_before(group, end, wanted, waiting.end)
    own = (at >= 0) & (track[at] == waiting.group)
    at[own] = _last_of_another_lane(track, group)[at[own]]
    return np.where((at >= 0) & (end[at] > waiting.begin), rows[at], -1)


def _last_of_another_lane(track: Ints, group: Ints) -> Ints:
    """Return for each row the last row before it that is of another lane of its group, -1 for none."""
    count = len(track)
    changes = np.ones(count, np.bool_)
    changes[1:] = (track[1:] != track[:-1]) | (group[1:] != group[:-1])
    run = np.maximum.accumulate(np.where(changes, np.arange(count), 0)) - 1
    same = run >= 0
    same[same] = group[run[same]] == group[same]
    return np.where(same, run, -1)
