"""Cutting of the batches of a trace to a window.

Slices, gaps and coverage that reach over an edge are cut there, instants and flows are in it or not, and counters keep
the value that they have at its start. Ids are counted anew, and references follow. Stats and accounting stay those of
the whole trace; further stats count what the window excluded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from lanescope.analysis.track_tree import Tree
from lanescope.analysis.windows.kept_ids import KeptIds
from lanescope.analysis.windows.lanes import SelectedNames, below, require_lanes, selected_tracks
from lanescope.analysis.windows.report import marked
from lanescope.analysis.windows.window import HIGHEST, LOWEST, Window
from lanescope.common.intervals import Intervals, Ints, hulls, known_extents
from lanescope.source.kept_batches import KeptBatches
from lanescope.trace import Column, Flag, Table, Trace
from lanescope.trace.column import Mask
from lanescope.trace.stats import CORE_STATS
from lanescope.trace.trace import SHARED

#: Tables whose rows a window may leave out, so that references to them may lead nowhere.
_EVENTS = ("slices", "instants", "flows")
_CUT, _UNFINISHED = np.uint32(Flag.CUT), np.uint32(Flag.UNFINISHED)


class Limits(NamedTuple):
    """A window with its times resolved, in the unit of the trace.

    Attributes:
        window: as asked for.
        begin: first moment; the smallest number of 64 bits without a limit.
        end: first moment after it; the largest number where there is none.
        min_dur: shortest duration of a slice.
    """

    window: Window
    begin: int = LOWEST
    end: int = HIGHEST
    min_dur: int = 0


class WindowCut:
    """Cuts the batches of one decode, in order.

    Args:
        limits: the window.
        at_once: rows of a batch refer to no later batch: each batch comes out when it has gone in. Else all come out
            together, at the end.
        keeps_filtered: slices and instants that the window leaves out by name, duration or condition stay, and
            ``selected`` tells the others.
    """

    def __init__(self, limits: Limits, *, at_once: bool, keeps_filtered: bool = False) -> None:
        self._limits = limits
        self._keeps_filtered = keeps_filtered
        self._selected: list[Mask] = []
        self._begin, self._end = np.int64(limits.begin), np.int64(limits.end)
        self._at_once = at_once
        self._names = SelectedNames(limits.window.names)
        self._ids = {name: KeptIds() for name in (*_EVENTS, "counters", "gaps", "coverage")}
        self._parts = KeptBatches()
        self._facts: list[dict[str, Table]] = []
        self._last: Trace | None = None
        self._tree: Tree | None = None
        self._chosen: Mask = np.empty(0, np.bool_)
        self._held: dict[int, tuple[int, float]] = {}
        self._hulls = np.empty(0, np.int64), np.empty(0, np.int64)
        self._beyond: Intervals | None = None
        self._covered: set[int] = set()
        self._count = {
            "window_excluded": 0,
            "window_filtered_slices": 0,
            "window_cut_slices": 0,
            "window_open_flows": 0,
        }

    @property
    def kept_slices(self) -> KeptIds:
        """New ids of the slices that the window has."""
        return self._ids["slices"]

    @property
    def selected(self) -> Mask:
        """Which slices, of those that came out, the window selects; bool [slices], in their order."""
        return np.concatenate([np.empty(0, np.bool_), *self._selected])

    def leave_out(self, rows: int, lanes: Intervals) -> None:
        """Take into account what a reader left out.

        Args:
            rows: slices and instants outside the window.
            lanes: for lanes without coverage the first and last time of their rows, with those left out.
        """
        self._count["window_excluded"] += rows
        self._beyond = lanes

    def add(self, batch: Trace, matching: Mask | None = None) -> Trace | None:
        """Cut the next batch.

        Args:
            batch: the batch.
            matching: bool [slices], the slices that meet the condition of the window; None: it has none.

        Returns:
            What is left of it; None where nothing is, or as long as batches are kept until ``finish``.
        """
        self._last = batch
        self._facts.append({name: batch.tables()[name] for name in ("stats", "accounting")})
        tree = self._tree_of(batch)
        self._extend_hulls(batch)
        tables = {name: table for name, table in batch.tables().items() if name not in ("stats", "accounting")}
        tables["slices"] = self._slices(batch.slices, matching)
        tables["instants"] = self._instants(batch.instants)
        tables["flows"] = self._flows(batch.flows)
        tables["counters"] = self._counters(batch.counters)
        tables["gaps"] = self._gaps(batch.gaps, tree)
        tables["coverage"] = self._coverage(batch.coverage, tree)
        old = {name: tables[name].values("id") for name in ("slices", "instants")}
        new = {name: self._ids[name].add(ids) for name, ids in old.items()}
        tables = {name: _with_ids(table, new[name]) if name in new else table for name, table in tables.items()}
        details = {name: tables[name] for name in batch.details}
        if not self._at_once:  # what is kept until the end is that of the window only
            for name, table in details.items():
                tables[name] = details[name] = _without_dropped(table, batch, old)
            self._parts.add(Trace(batch.time, tables, details))
            return None
        part = Trace(batch.time, tables, details, batch.records)
        done = self._refer(part)
        return done if any(len(table) for name, table in done.tables().items() if name not in SHARED) else None

    def finish(self) -> Trace:
        """Return the last batch: what is left, stats and accounting of the whole, and what the window excluded.

        Raises:
            UsageError: no lane is called as the window asks.
        """
        last = self._last
        assert last is not None, "a stream has at least one batch"
        tree = self._tree_of(last)
        require_lanes(tree, self._limits.window.lanes)
        done = [self._refer(part) for part in self._parts]
        self._parts.clear()
        rest = {name: Table.empty(table.spec) for name, table in last.tables().items() if name not in SHARED}
        held = self._held_samples(last.counters.spec.names, set(self._held))
        if self._at_once:
            rest["counters"] = held
        rest["coverage"] = self._bare_coverage(tree)
        rest |= {name: last.tables()[name] for name in SHARED}
        rest["inputs"] = marked(last.inputs, self._limits.window)
        for name in ("stats", "accounting"):
            rest[name] = Table.concat([facts[name] for facts in self._facts])
        closing = Trace(last.time, rest, {name: rest[name] for name in last.details}, last.records)
        whole = Trace.concat([*done, closing]) if done else closing
        tables = {**whole.tables(), "stats": Table.concat([rest["stats"], self._stats(len(rest["stats"]))])}
        if len(held) and not self._at_once:  # before all other samples
            counters = Table.concat([held, whole.counters])
            tables["counters"] = _with_ids(counters, np.arange(len(counters)))
        return Trace(last.time, tables, {name: tables[name] for name in last.details}, last.records)

    # --- lanes ------------------------------------------------------------------------------------------------

    def _tree_of(self, batch: Trace) -> Tree:
        """Return the tracks so far, and note which of them are chosen."""
        if self._tree is None or self._tree.tracks is not batch.tracks:
            self._tree = Tree(batch.tracks)
            self._chosen = selected_tracks(self._tree, self._limits.window.lanes)
            count, (low, high) = len(self._tree), self._hulls
            more = count - len(low)
            self._hulls = (
                np.concatenate([low, np.full(more, HIGHEST, np.int64)]),
                np.concatenate([high, np.full(more, -HIGHEST, np.int64)]),
            )
        return self._tree

    def _is_chosen(self, tracks: Ints) -> Mask:
        """Return which rows are on chosen tracks; all are where any lane is."""
        if not self._limits.window.lanes:
            return np.ones(len(tracks), np.bool_)
        known = (tracks >= 0) & (tracks < len(self._chosen))
        return known & self._chosen[np.where(known, tracks, 0)]

    def _extend_hulls(self, batch: Trace) -> None:
        """Note when the rows of each lane begin first and end last, in the window or not."""
        count = len(self._hulls[0])
        time = known_extents(batch.slices)
        points = batch.instants.values("ts")
        for group, begin, end in (time, (batch.instants.values("track_id"), points, points)):
            known = (group >= 0) & (group < count)
            part = type(time)(group[known], begin[known], end[known])
            low, high = hulls(part, count)
            self._hulls = np.minimum(self._hulls[0], low), np.maximum(self._hulls[1], high)
        self._covered.update(batch.coverage.values("track_id").tolist())

    # --- tables -----------------------------------------------------------------------------------------------

    def _inside(self, begin: Ints, end: Ints) -> Mask:
        """Return which intervals share time with the window; a point is in it from its start on, before its end."""
        return self._before_end(begin) & ((end > self._begin) | (begin >= self._begin))

    def _before_end(self, ts: Ints) -> Mask:
        """Return which times are before the end; all are if it has none."""
        return np.ones(len(ts), np.bool_) if self._limits.end == HIGHEST else ts < self._end

    def _slices(self, slices: Table, matching: Mask | None) -> Table:
        """Return what is left of slices, with their old ids."""
        track, begin, end = known_extents(slices)
        inside = self._inside(begin, end) & self._is_chosen(track)
        kept = inside.copy()
        if self._limits.window.names:
            kept &= self._names.of(slices)
        if self._limits.min_dur:
            kept &= (end - begin) >= self._limits.min_dur
        if matching is not None:
            kept &= matching
        self._count["window_excluded"] += len(slices) - int(np.count_nonzero(inside))
        self._count["window_filtered_slices"] += int(np.count_nonzero(inside)) - int(np.count_nonzero(kept))
        if self._keeps_filtered:
            self._selected.append(kept[inside])
            kept = inside
        rows = np.flatnonzero(kept)
        found = slices if len(rows) == len(slices) else slices.take(rows)
        begin, end = begin[rows], end[rows]
        closed = found.valid("dur")
        late = begin < self._begin
        # One that is known to run at the window's end, and beyond, ends there as far as the window is concerned.
        early = (end > self._end) | (~closed & (end == self._end))
        if self._limits.end == HIGHEST:
            early = np.zeros(len(rows), np.bool_)
        cut = late | early
        self._count["window_cut_slices"] += int(np.count_nonzero(cut))
        if not cut.any():
            return found
        columns = {name: found.column(name) for name in found.spec.names}
        ts = np.where(late, self._begin, begin)
        dur = np.where(closed | early, np.where(early, self._end, end) - ts, 0)
        opened = early & ~closed
        flags = np.where(cut, found.values("flags") | _CUT, found.values("flags"))
        columns["ts"] = Column.array(ts)
        columns["dur"] = _nullable(dur, closed | early)
        columns["ts_ticks"] = _known_where(columns["ts_ticks"], ~late)
        columns["dur_ticks"] = _known_where(columns["dur_ticks"], ~cut)
        columns["last_known_ts"] = _known_where(columns["last_known_ts"], ~opened)
        columns["flags"] = Column.array(np.where(opened, flags & ~_UNFINISHED, flags).astype(np.uint32))
        return Table(found.spec, columns)

    def _instants(self, instants: Table) -> Table:
        """Return the instants in the window, with their old ids."""
        ts = instants.values("ts")
        kept = self._inside(ts, ts) & self._is_chosen(instants.values("track_id"))
        self._count["window_excluded"] += len(instants) - int(np.count_nonzero(kept))
        if self._limits.window.names and not self._keeps_filtered:
            kept &= self._names.of(instants)
        return instants if kept.all() else instants.take(np.flatnonzero(kept))

    def _flows(self, flows: Table) -> Table:
        """Return the flows of which an end may be in the window, with their old ids and references."""
        if not len(flows):
            return flows
        near = np.zeros(len(flows), np.bool_)
        for side in ("src", "dst"):
            near |= self._at_or_inside(flows.values(f"{side}_ts")) & self._is_chosen(flows.values(f"{side}_track_id"))
        return flows if near.all() else flows.take(np.flatnonzero(near))

    def _at_or_inside(self, ts: Ints) -> Mask:
        return (ts >= self._begin) & (ts <= self._end)

    def _counters(self, counters: Table) -> Table:
        """Return the samples after the window's start, and before them those whose values hold at its start."""
        if not len(counters):
            return counters
        ts, track = counters.values("ts"), counters.values("track_id")
        kept = self._is_chosen(track) & self._before_end(ts)
        if self._limits.begin == LOWEST:
            return self._numbered(counters if kept.all() else counters.take(np.flatnonzero(kept)))
        old = np.flatnonzero(kept & (ts <= self._begin))
        last = old[np.argsort(ts[old], kind="stable")]  # of each track the last one stays
        for one, at, value in zip(
            track[last].tolist(), ts[last].tolist(), counters.values("value")[last].tolist(), strict=True
        ):
            if one not in self._held or at >= self._held[one][0]:
                self._held[one] = at, value
        rows = np.flatnonzero(kept & (ts > self._begin))
        following = self._held.keys() & set(track[rows].tolist()) if self._at_once else set()
        found = counters.take(rows)
        held = self._held_samples(counters.spec.names, following)
        return Table.concat([held, self._numbered(found)]) if len(held) else self._numbered(found)

    def _numbered(self, table: Table) -> Table:
        """Return a table to whose rows nothing refers with the next ids."""
        ids = self._ids[table.spec.name]
        return _with_ids(table, ids.add(np.arange(ids.count, ids.count + len(table))))

    def _held_samples(self, names: tuple[str, ...], tracks: set[int]) -> Table:
        """Return samples at the window's start with the values that these counters have then, and let go of them."""
        from lanescope.trace.schema import COUNTERS

        chosen = sorted(tracks)
        held = [self._held.pop(track)[1] for track in chosen]
        columns: dict[str, Any] = {
            "id": np.zeros(len(chosen), np.int64),
            "track_id": np.array(chosen, np.int64),
            "ts": np.full(len(chosen), self._begin),
            "value": np.array(held, np.float64),
        }
        return self._numbered(Table.from_arrays(COUNTERS, {name: columns[name] for name in names}))

    def _gaps(self, gaps: Table, tree: Tree) -> Table:
        """Return what is left of gaps; what was lost in one that is cut is not known by part."""
        if not len(gaps):
            return gaps
        closed = gaps.valid("dur")
        begin = gaps.values("ts")
        end = np.where(closed, begin + gaps.values("dur"), HIGHEST)
        track = gaps.values("track_id")
        kept = self._inside(begin, end)
        if self._limits.window.lanes:
            around = below(tree, self._chosen)
            kept &= (track >= 0) & (track < len(around)) & around[np.clip(track, 0, len(around) - 1)]
        rows = np.flatnonzero(kept)
        found, begin, end, closed = gaps.take(rows), begin[rows], end[rows], closed[rows]
        ends = closed | (self._limits.end != HIGHEST)
        ts, until = np.maximum(begin, self._begin), np.minimum(end, self._end)
        is_part = (ts != begin) | (until != end)
        columns = {name: found.column(name) for name in found.spec.names}
        columns["ts"] = Column.array(ts)
        columns["dur"] = _nullable(np.where(ends, until - ts, 0), ends)
        columns["lost_count"] = _known_where(columns["lost_count"], ~is_part)
        return self._numbered(Table(found.spec, columns))

    def _coverage(self, coverage: Table, tree: Tree) -> Table:
        """Return the time in the window that was recorded; what is said of a group, for its chosen lanes only."""
        if not len(coverage):
            return coverage
        track = coverage.values("track_id")
        if self._limits.window.lanes:
            rows, lanes = tree.spread(track)
            kept = self._is_chosen(lanes)
            coverage = coverage.take(rows[kept])
            columns = {name: coverage.column(name) for name in coverage.spec.names}
            coverage = Table(coverage.spec, {**columns, "track_id": Column.array(lanes[kept])})
        begin = coverage.values("ts")
        end = begin + coverage.values("dur")
        rows = np.flatnonzero(self._inside(begin, end))
        found = coverage.take(rows)
        ts = np.maximum(begin[rows], self._begin)
        columns = {name: found.column(name) for name in found.spec.names}
        columns["ts"] = Column.array(ts)
        columns["dur"] = Column.array(np.minimum(end[rows], self._end) - ts)
        return self._numbered(Table(found.spec, columns))

    def _bare_coverage(self, tree: Tree) -> Table:
        """Return coverage of the chosen lanes that have none: from their first to their last row, in the window or not.

        Without it such a lane would count as recorded from its first to its last row in the window.
        """
        from lanescope.trace.schema import COVERAGE

        low, high = self._hulls
        if self._beyond is not None:
            first, last = hulls(self._beyond, len(low))
            low, high = np.minimum(low, first), np.maximum(high, last)
        covered = np.zeros(len(tree), np.bool_)
        _, lanes = tree.spread(np.array(sorted(self._covered), np.int64))
        covered[lanes] = True
        begin, end = np.maximum(low, self._begin), np.minimum(high, self._end)
        bare = np.flatnonzero(self._chosen & ~covered & (low <= high) & (begin < end))
        rows: dict[str, Any] = {
            "id": np.zeros(len(bare), np.int64),
            "track_id": bare,
            "ts": begin[bare],
            "dur": end[bare] - begin[bare],
            "min_recorded_dur": [None] * len(bare),
        }
        return self._numbered(Table.from_arrays(COVERAGE, rows))

    # --- references -------------------------------------------------------------------------------------------

    def _refer(self, part: Trace) -> Trace:
        """Return a part with the new ids in all references, without rows that refer to what was excluded."""
        tables = part.tables()
        tables["inputs"] = marked(tables["inputs"], self._limits.window)
        tables["flows"] = self._closed_flows(tables["flows"])
        for name, table in part.details.items():
            tables[name] = self._referring(table, name)
        return Trace(part.time, tables, {name: tables[name] for name in part.details}, part.records)

    def _closed_flows(self, flows: Table) -> Table:
        """Return the flows with both ends in the window; count those with one."""
        if not len(flows):
            return flows
        is_in, of = {}, {}
        for side in ("src", "dst"):
            ts, known = flows.values(f"{side}_ts"), flows.valid(f"{side}_slice_id")
            of[side] = self._ids["slices"].of(flows.values(f"{side}_slice_id"), known)
            # What ends with the window is still in it.
            is_in[side] = np.where(known, of[side] >= 0, self._inside(ts, ts)) & self._at_or_inside(ts)
            is_in[side] &= self._is_chosen(flows.values(f"{side}_track_id"))
        self._count["window_open_flows"] += int(np.count_nonzero(is_in["src"] ^ is_in["dst"]))
        rows = np.flatnonzero(is_in["src"] & is_in["dst"])
        ids = self._ids["flows"].add(flows.values("id")[rows])
        found = flows.take(rows)
        columns = {name: found.column(name) for name in found.spec.names}
        columns["id"] = Column.array(ids)
        for side, new in of.items():
            name = f"{side}_slice_id"
            columns[name] = _nullable(np.maximum(new[rows], 0), found.valid(name))
        return Table(found.spec, columns)

    def _referring(self, table: Table, name: str) -> Table:
        """Return the rows of a detail table whose event is in the window."""
        columns = [column for column in table.spec.columns if column.references in _EVENTS]
        if not columns or not len(table):
            return table
        new = {
            column.name: self._ids[column.references].of(table.values(column.name), table.valid(column.name))
            for column in columns
        }
        kept = np.ones(len(table), np.bool_)
        for column in columns:
            if column.name == table.spec.key or not column.nullable:
                kept &= (new[column.name] >= 0) | ~table.valid(column.name)
        rows = np.flatnonzero(kept)
        found = table.take(rows)
        changed = {each: found.column(each) for each in found.spec.names}
        for column in columns:
            ids = new[column.name][rows]
            changed[column.name] = _nullable(np.maximum(ids, 0), ids >= 0) if column.nullable else Column.array(ids)
        return Table(found.spec, changed)

    # --- what was excluded ------------------------------------------------------------------------------------

    def _stats(self, first: int) -> Table:
        """Return the stats of the window: its edges, and what it left out."""
        from lanescope.trace.schema import STATS

        found: dict[str, tuple[int, int | None]] = {name: (count, None) for name, count in self._count.items() if count}
        if self._limits.begin != LOWEST:
            found["window_start"] = 1, self._limits.begin
        if self._limits.end != HIGHEST:
            found["window_end"] = 1, self._limits.end
        rows: list[dict[str, Any]] = []
        for spec in CORE_STATS:
            if spec.name in found:
                count, ts = found[spec.name]
                row = {"id": first + len(rows), "track_id": None, "input_id": None, "first_offset": None}
                row |= {"count": count, "first_ts": ts}
                names = ("name", "counted", "severity", "rule", "finding_severity", "share_of")
                rows.append(row | {name: getattr(spec, name) for name in names})
        return Table.from_arrays(STATS, {name: [row[name] for row in rows] for name in STATS.names})


def _without_dropped(table: Table, batch: Trace, kept: Mapping[str, Ints]) -> Table:
    """Return the rows of a detail table but those of events of the same batch that the window excludes.

    Whether rows that refer to other batches stay is only known after these.

    Args:
        table: the detail table.
        batch: the batch before it is cut.
        kept: int64 [n], ids of the slices and instants of the batch that the window has.
    """
    stays = np.ones(len(table), np.bool_)
    for column in table.spec.columns:
        if column.references not in kept or (column.nullable and column.name != table.spec.key):
            continue
        ids = batch.tables()[column.references].values("id")
        if not len(ids) or (np.diff(ids) != 1).any():
            continue  # ids with holes, which no decoder makes
        is_kept = np.zeros(len(ids), np.bool_)
        is_kept[kept[column.references] - ids[0]] = True
        place = table.values(column.name) - ids[0]
        here = np.flatnonzero(table.valid(column.name) & (place >= 0) & (place < len(ids)))
        stays[here] &= is_kept[place[here]]
    return table if stays.all() else table.take(np.flatnonzero(stays))


def _with_ids(table: Table, ids: Ints) -> Table:
    """Return a table with other ids."""
    return Table(
        table.spec, {name: Column.array(ids) if name == "id" else table.column(name) for name in table.spec.names}
    )


def _nullable(values: Ints, known: Mask) -> Column:
    """Return a column of values, 0 where they are not known."""
    return Column.array(values) if known.all() else Column.array(np.where(known, values, 0), valid=np.array(known))


def _known_where(column: Column, kept: Mask) -> Column:
    """Return a column whose values are unknown where ``kept`` does not hold."""
    if kept.all() or column.is_unknown:
        return column
    valid = kept if column.valid is None else kept & column.valid
    return _nullable(column.values, valid)
