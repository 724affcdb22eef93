"""Rows that need several events: starts with their ends, asynchronous slices, flows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.foreign.chrome.emit.timeline import Drawing, DrawnSlices, Mask, Timeline
from lanescope.foreign.chrome.formats import layout
from lanescope.foreign.chrome.formats.events import Events, Int64
from lanescope.foreign.chrome.interpret import flows as flow_links
from lanescope.foreign.chrome.interpret.counters import id_texts, process_codes
from lanescope.foreign.chrome.interpret.pairs import Paired, codes_of, pair
from lanescope.foreign.chrome.survey import with_time
from lanescope.trace import Column

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Stacks:
    """Asynchronous events of one kind.

    Attributes:
        rows: int64 [n], those with an id.
        place: int64 [n], where the id of each stands.
        is_local: bool [n], ids of one process.
        is_slice: bool [n], starts and ends.
        track: int64 [n].
        paired: of starts and ends.
    """

    rows: Int64
    place: Int64
    is_local: Mask
    is_slice: Mask
    track: Int64
    paired: Paired


@dataclass(frozen=True, slots=True)
class _Flows:
    """Flows and their points.

    Attributes:
        linked: which points belong together.
        rows: int64 [points], events.
        value, kind: [points], ids.
        is_bound: bool [points], events of slices themselves.
        is_next: bool [points], bound to the next slice.
        track: int64 [points].
    """

    linked: flow_links.Linked
    rows: Int64
    value: npt.NDArray[np.uint64]
    kind: npt.NDArray[np.uint8]
    is_bound: Mask
    is_next: Mask
    track: Int64


class LinkedEvents(Timeline):
    """Draws what several events of a file make together.

    Args:
        drawing: what all parts of the file are drawn with.
        events: all of the file that are starts, ends, asynchronous, of flows, or bound to flows.
    """

    def __init__(self, drawing: Drawing, events: Events) -> None:
        super().__init__(drawing, events)
        self._pairs: tuple[Paired, Int64] | None = None
        self._stacks: list[_Stacks] = []
        self._flows: _Flows | None = None

    def plan_slices(self) -> None:
        """Find out what belongs together, and make the tracks of it."""
        events = self.events
        rows = with_time(events, events.of_phase(layout.BEGIN, layout.END))
        if len(rows):
            names = np.where(events.name[rows] < 0, -1, self.names[rows])
            ends = events.phase[rows] == layout.END
            paired = pair(rows, self.place[rows], names, events.ts[rows], ends)
            self._pairs = paired, self.tracks.threads(self.place[paired.begin])
        self._plan_stacks(layout.ASYNC_BEGIN, layout.ASYNC_END, (layout.ASYNC_INSTANT,), is_named=False)
        self._plan_stacks(layout.OLD_BEGIN, layout.OLD_END, layout.OLD_STEPS, is_named=True)

    def draw(self) -> None:
        """Append the rows of all that was planned."""
        if self._pairs is not None:
            self._append_pairs(*self._pairs)
        for stacks in self._stacks:
            self._draw_stacks(stacks)
        if self._flows is not None:
            self._draw_flows(self._flows)

    def _append_pairs(self, paired: Paired, track: Int64, *, is_thread: bool = True) -> Int64:
        events = self.events
        self._count("chrome_end_unmatched", paired.unmatched)
        self.stats.add("chrome_crossing_end", int(np.count_nonzero(paired.crosses)))
        self.stats.add("chrome_time_order", paired.disordered)
        known = paired.end >= 0
        self._count("chrome_unfinished", paired.begin[~known])
        dur = np.where(known, events.ts[paired.end] - events.ts[paired.begin], 0)
        ids = self._append_slices(paired.begin, track, dur, known, is_thread=is_thread)
        if known.any():
            self._append_arguments("chrome_arguments", "slice_id", ids[known], paired.end[known])
        return ids

    # --- asynchronous slices ----------------------------------------------------------------------------------

    def _plan_stacks(self, begin: int, end: int, instants: tuple[int, ...], *, is_named: bool) -> None:
        """Pair what events of one id begin and end; of the old kind a name is part of the id."""
        events = self.events
        rows = with_time(events, events.of_phase(begin, end, *instants))
        rows, place = self.with_ids(rows)
        if not len(rows):
            return
        value, kind = events.id_value[place], events.id_kind[place]
        is_local = (kind & layout.LOCAL_ID) != 0
        processes = process_codes(self.places)[self.place[rows]]
        scope = np.where(is_local, processes, -1)
        columns: list[npt.NDArray[Any]] = [self.categories[rows], value, kind & layout.TEXT_ID, scope]
        if is_named:
            columns.append(self.names[rows])
        stack = codes_of(*columns)
        phase = events.phase[rows]
        is_slice = (phase == begin) | (phase == end)
        track = self._asynchronous_tracks(rows, processes)
        names = np.where(events.name[rows] < 0, -1, self.names[rows])
        paired = pair(
            rows[is_slice], stack[is_slice], names[is_slice], events.ts[rows[is_slice]], phase[is_slice] == end
        )
        self._stacks.append(_Stacks(rows, place, is_local, is_slice, track, paired))

    def _draw_stacks(self, stacks: _Stacks) -> None:
        of_begin = np.searchsorted(stacks.rows, stacks.paired.begin)
        ids = self._append_pairs(stacks.paired, stacks.track[of_begin], is_thread=False)
        if len(ids):
            place = stacks.place[of_begin]
            scopes = self.builder.dictionary("chrome_async", "id_scope")
            self.builder.append(
                "chrome_async",
                slice_id=ids,
                key=self._id_column(self.events.id_value[place], self.events.id_kind[place]),
                id_scope=np.where(stacks.is_local[of_begin], *(scopes.code(scope) for scope in ("local", "global"))),
            )
        self._append_instants(stacks.rows[~stacks.is_slice], stacks.track[~stacks.is_slice])

    def _asynchronous_tracks(self, rows: Int64, processes: Int64) -> Int64:
        categories = self.builder.categories.texts
        group = codes_of(processes, self.categories[rows])
        first = np.full(int(group.max()) + 1, len(rows))
        np.minimum.at(first, group, np.arange(len(rows)))
        track = np.zeros(len(first), np.int64)
        for code in np.argsort(first).tolist():  # in the order of the file
            row = rows[first[code]]
            process = self.places.keys[self.place[row]][0]
            track[code] = self.tracks.asynchronous(process, categories[self.categories[row]])
        return track[group]

    def _id_column(self, value: npt.NDArray[np.uint64], kind: npt.NDArray[np.uint8]) -> Column:
        return Column.derived(len(value), lambda: id_texts(self.events, value, kind))

    # --- flows ------------------------------------------------------------------------------------------------

    def plan_flows(self) -> None:
        """Link the events of flows, and make the tracks of their ends; slices of these are kept."""
        events = self.events
        rows = with_time(events, events.of_phase(layout.FLOW_BEGIN, layout.FLOW_STEP, layout.FLOW_END))
        rows, place = self.with_ids(rows)
        bound = with_time(events, events.bind_row) if len(events.bind_row) else _NONE
        directed = (events.flags[bound] & (layout.FLOW_IN | layout.FLOW_OUT)) != 0
        bound = bound[directed & np.isin(events.phase[bound], (layout.COMPLETE, layout.BEGIN))]
        if not len(rows) and not len(bound):
            return
        bind_place = np.searchsorted(events.bind_row, bound)
        all_rows = np.concatenate([rows, bound])
        value = np.concatenate([events.id_value[place], events.bind_value[bind_place]])
        kind = np.concatenate([events.id_kind[place], events.bind_kind[bind_place]])
        is_bound = np.arange(len(all_rows)) >= len(rows)
        processes = np.where((kind & layout.LOCAL_ID) != 0, process_codes(self.places)[self.place[all_rows]], -1)
        key = codes_of(
            np.where(is_bound, -1, self.categories[all_rows]),
            np.where(is_bound, -1, self.names[all_rows]),
            value,
            kind & layout.TEXT_ID,
            processes,
            is_bound,
        )
        role = np.full(len(all_rows), flow_links.STEPS, np.uint8)
        phase, flags = events.phase[all_rows], events.flags[all_rows]
        role[phase == layout.FLOW_BEGIN] = flow_links.STARTS
        role[phase == layout.FLOW_END] = flow_links.ENDS
        role[is_bound & ((flags & layout.FLOW_IN) == 0)] = flow_links.STARTS
        role[is_bound & ((flags & layout.FLOW_OUT) == 0)] = flow_links.ENDS
        linked = flow_links.link(key, events.ts[all_rows], role)
        self._count("chrome_flow_unmatched", np.sort(all_rows[linked.unmatched]))
        if not len(linked.source):
            return
        track = self.tracks.threads(self.place[all_rows])
        is_next = (phase == layout.FLOW_END) & ((flags & layout.ENCLOSING) == 0)
        self._flows = _Flows(linked, all_rows, value, kind, is_bound, is_next, track)
        self.drawing.slices = DrawnSlices(distinct(track))

    def _draw_flows(self, flows: _Flows) -> None:
        events, linked = self.events, flows.linked
        slice_at = self._slices_at(flows.track, flows.rows, flows.is_bound, flows.is_next)
        self.append_flows(linked, flows.rows, flows.track, slice_at, "signal")
        destination = flows.rows[linked.destination]
        columns = {
            name: self._codes(self.builder.dictionary("chrome_flows", name), texts, codes[destination])
            for name, texts, codes in (
                ("name", events.names, events.name),
                ("category", events.categories, events.category),
            )
        }
        ids = self._id_column(flows.value[linked.destination], flows.kind[linked.destination])
        self.builder.append("chrome_flows", flow_id=np.arange(len(destination)), key=ids, **columns)

    def _slices_at(self, track: Int64, rows: Int64, is_bound: Mask, is_next: Mask) -> Int64:
        """Return the id of the slice at each point, int64 [points], -1: none."""
        found: Int64 = np.full(len(rows), -1)
        drawn = self.drawing.slices.columns()
        if drawn is None:
            return found
        owner, lane, begin, end, ids = drawn
        at = flow_links.slices_at(lane, begin, end, track, self.events.ts[rows], is_next)
        found = np.asarray(np.append(ids, -1)[at], np.int64)
        if is_bound.any():  # these are events of slices themselves
            order = np.argsort(owner)
            found[is_bound] = ids[order[np.searchsorted(owner[order], self.events.number[rows[is_bound]])]]
        return found
