"""Rows of any file: slices of threads and of asynchronous work, instants, counters, flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.common.stat_tally import StatTally
from lanescope.foreign.chrome.emit.tracks import Tracks
from lanescope.foreign.chrome.formats import layout
from lanescope.foreign.chrome.formats.events import Events, FileText, Int64
from lanescope.foreign.chrome.interpret import flows as flow_links
from lanescope.foreign.chrome.interpret.pairs import Paired, codes_of, pair
from lanescope.foreign.chrome.interpret.places import Places
from lanescope.trace import Column, Flag, TraceBuilder

if TYPE_CHECKING:
    from lanescope.trace import Dictionary

Int32 = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

_NONE = np.empty(0, np.int64)
_NEVER = np.iinfo(np.int64).max


class Timeline:
    """Draws the events of a file.

    Args:
        builder: of the trace.
        events: of the file.
        places: processes and threads.
        file: its text.
        stats: where faults are counted.
        zero: time of the file that is 0 in the trace, ns.
    """

    def __init__(
        self, builder: TraceBuilder, events: Events, places: Places, file: FileText, stats: StatTally, zero: int
    ) -> None:
        self.builder, self.events, self.places, self.file, self.stats = builder, events, places, file, stats
        self.zero = zero
        self.tracks = Tracks(builder, places)
        self.place = places.place[events.lane] if len(events) else _NONE
        self.names = self._codes(builder.names, events.names, events.name)
        self.categories = self._codes(builder.categories, events.categories, events.category)
        # What flows may be bound to, slices of threads: rows, tracks, durations and ids.
        self._slices: list[tuple[Int64, Int64, Int64, Int64]] = []

    def _codes(self, dictionary: Dictionary, texts: list[str], codes: Int32) -> Int32:
        """Return codes of a dictionary of the trace for codes of texts of the file."""
        mapping = np.zeros(len(texts), np.int32)  # the last one is that of no text
        if len(codes):
            found = np.flatnonzero(np.bincount(codes + 1)) - 1
            mapping[found] = dictionary.codes(texts[code] for code in found.tolist())
        return mapping[codes]

    def draw(self) -> None:
        """Append all rows."""
        self.draw_slices()
        self._draw_asynchronous()
        self.draw_instants(self._timed(self.events.of_phase(*layout.INSTANTS)))
        self.draw_counters()
        self._draw_flows()

    # --- slices of threads ------------------------------------------------------------------------------------

    def draw_slices(self) -> None:
        """Append complete events, and starts with their ends."""
        events = self.events
        rows = self._timed(events.of_phase(layout.COMPLETE))
        known = (events.flags[rows] & layout.HAS_DURATION) != 0
        dur = events.dur[rows]
        if not known.all():
            self._count("chrome_missing_duration", rows[~known])
        self._append_slices(rows, self.tracks.threads(self.place[rows]), dur, known)
        rows = self._timed(events.of_phase(layout.BEGIN, layout.END))
        if len(rows):
            names = np.where(events.name[rows] < 0, -1, self.names[rows])
            ends = events.phase[rows] == layout.END
            paired = pair(rows, self.place[rows], names, events.ts[rows], ends)
            self._append_pairs(paired, self.tracks.threads(self.place[paired.begin]))

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

    def _append_slices(self, rows: Int64, track: Int64, dur: Int64, known: Mask, *, is_thread: bool = True) -> Int64:
        """Append slices of events; return their ids, int64 [n]."""
        if not len(rows):
            return _NONE
        columns: dict[str, Any] = {"dur": dur}
        if not known.all() or int(dur.min()) < 0:
            is_negative = known & (dur < 0)
            self._count("chrome_negative_duration", rows[is_negative])
            flags = np.zeros(len(rows), np.uint32)
            flags[~known] |= np.uint32(Flag.UNFINISHED)
            flags[is_negative] |= np.uint32(Flag.NEGATIVE_DURATION)
            columns = {
                "dur": dur,
                "dur_valid": known & ~is_negative,
                "flags": flags,
                "last_known_ts": self._last_times(rows) - self.zero,
                "last_known_ts_valid": ~known,
            }
        first = self.builder.append(
            "slices",
            track_id=track,
            ts=self.events.ts[rows] - self.zero,
            name=self.names[rows],
            category=self.categories[rows],
            **columns,
        )
        ids = np.arange(first, first + len(rows))
        self._append_arguments("chrome_arguments", "slice_id", ids, rows)
        if is_thread:
            self._slices.append((rows, track, np.where(known, np.maximum(dur, 0), _NEVER), ids))
        return ids

    def _last_times(self, rows: Int64) -> Int64:
        """Return the last time at which anything is known of the thread of each event, int64 [n]."""
        events = self.events
        timed = np.flatnonzero((events.flags & layout.HAS_TIME) != 0)
        last: Int64 = np.full(len(self.places.keys), np.iinfo(np.int64).min)
        np.maximum.at(last, self.place[timed], events.ts[timed])
        found: Int64 = last[self.place[rows]]
        return found

    def _append_arguments(self, table: str, key: str, ids: Int64, rows: Int64) -> None:
        """Append the arguments of events, which stay in the file until somebody reads them."""
        size = self.events.args_size[rows]
        has = size != 0
        count = int(np.count_nonzero(has))
        if not count:
            return
        offset, begin, file = self.events.offset, self.events.args_begin, self.file

        def texts() -> npt.NDArray[np.object_]:
            kept = rows[has]
            found = np.empty(count, object)
            found[:] = [
                text.decode(errors="replace")
                for text in file.at(offset[kept] + begin[kept], size[has].astype(np.int64))
            ]
            return found

        given = {key: Column.derived(count, lambda: ids[has]), "args": Column.derived(count, texts)}
        self.builder.append(table, **given)

    # --- asynchronous slices ----------------------------------------------------------------------------------

    def _draw_asynchronous(self) -> None:
        self._draw_stacks(layout.ASYNC_BEGIN, layout.ASYNC_END, (layout.ASYNC_INSTANT,), is_named=False)
        self._draw_stacks(layout.OLD_BEGIN, layout.OLD_END, layout.OLD_STEPS, is_named=True)

    def _draw_stacks(self, begin: int, end: int, instants: tuple[int, ...], *, is_named: bool) -> None:
        """Append what events of one id begin and end; of the old kind a name is part of the id."""
        events = self.events
        rows = self._timed(events.of_phase(begin, end, *instants))
        rows, place = self._with_ids(rows)
        if not len(rows):
            return
        value, kind = events.id_value[place], events.id_kind[place]
        is_local = (kind & layout.LOCAL_ID) != 0
        processes = self._process_codes(rows)
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
        of_begin = np.searchsorted(rows, paired.begin)
        ids = self._append_pairs(paired, track[of_begin], is_thread=False)
        if len(ids):
            scopes = self.builder.dictionary("chrome_async", "id_scope")
            self.builder.append(
                "chrome_async",
                slice_id=ids,
                key=self._id_column(value[of_begin], kind[of_begin]),
                id_scope=np.where(is_local[of_begin], *(scopes.code(scope) for scope in ("local", "global"))),
            )
        self._append_instants(rows[~is_slice], track[~is_slice])

    def _with_ids(self, rows: Int64) -> tuple[Int64, Int64]:
        """Return the events that have an id, and the place of each id; count the others."""
        events = self.events
        has = (events.flags[rows] & layout.HAS_ID) != 0
        self._count("chrome_missing_id", rows[~has])
        rows = rows[has]
        return rows, np.searchsorted(events.id_row, rows)

    def _process_codes(self, rows: Int64) -> Int64:
        """Return a number for the process of each event, int64 [n]."""
        numbers: dict[str, int] = {}
        of_place = [numbers.setdefault(process, len(numbers)) for process, _ in self.places.keys]
        return np.array(of_place, np.int64)[self.place[rows]]

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
        return Column.derived(len(value), lambda: self._id_texts(value, kind))

    def _id_texts(self, value: npt.NDArray[np.uint64], kind: npt.NDArray[np.uint8]) -> npt.NDArray[np.object_]:
        texts = self.events.texts
        made = np.empty(len(value), object)
        made[:] = [
            texts[number] if what & layout.TEXT_ID else hex(number)
            for number, what in zip(value.tolist(), kind.tolist(), strict=True)
        ]
        return made

    # --- instants and counters --------------------------------------------------------------------------------

    def draw_instants(self, rows: Int64) -> None:
        """Append instants of threads, of processes, and of all."""
        if not len(rows):
            return
        flags = self.events.flags[rows]
        of_all, of_process = (flags & layout.GLOBAL_SCOPE) != 0, (flags & layout.PROCESS_SCOPE) != 0
        track = np.zeros(len(rows), np.int64)
        of_thread = ~(of_all | of_process)
        track[of_thread] = self.tracks.threads(self.place[rows[of_thread]])
        places = np.zeros(len(self.places.keys) + 1, np.int64)
        for place in distinct(self.place[rows[of_process]]).tolist():
            places[place] = self.tracks.instants_of(self.places.keys[place][0])
        track[of_process] = places[self.place[rows[of_process]]]
        if of_all.any():
            track[of_all] = self.tracks.instants_of_all()
        self._append_instants(rows, track)

    def _append_instants(self, rows: Int64, track: Int64) -> None:
        if not len(rows):
            return
        first = self.builder.append(
            "instants",
            track_id=track,
            ts=self.events.ts[rows] - self.zero,
            name=self.names[rows],
            category=self.categories[rows],
        )
        ids = first + np.arange(len(rows))
        self._append_arguments("chrome_instant_arguments", "instant_id", ids, rows)

    def draw_counters(self) -> None:
        """Append the samples of each series of each counter."""
        events = self.events
        counters = self._timed(events.of_phase(layout.COUNTER))
        self._count("chrome_bad_sample", counters[(events.flags[counters] & layout.BAD_SERIES) != 0])
        kept = (events.flags[events.series_row] & layout.HAS_TIME) != 0
        rows, series = events.series_row[kept], events.series_name[kept]
        if not len(rows):
            return
        place = np.searchsorted(events.id_row, rows)
        has_id = (events.flags[rows] & layout.HAS_ID) != 0
        place = np.where(has_id, place, len(events.id_row))
        value, kind = np.append(events.id_value, 0)[place], np.append(events.id_kind, 0)[place]
        group = codes_of(self._process_codes(rows), self.names[rows], series, value, kind)
        first = np.full(int(group.max()) + 1, len(rows))
        np.minimum.at(first, group, np.arange(len(rows)))
        track = np.zeros(len(first), np.int64)
        texts = events.texts
        for code in np.argsort(first).tolist():
            at = first[code]
            row = rows[at]
            name, line = self.builder.names.texts[self.names[row]], texts[series[at]]
            identity = f" {self._id_texts(value[at : at + 1], kind[at : at + 1])[0]}" if has_id[at] else ""
            name += identity + (f" {line}" if line and line != "value" else "")
            track[code] = self.tracks.counter(self.places.keys[self.place[row]][0], name)
        self.builder.append(
            "counters", track_id=track[group], ts=events.ts[rows] - self.zero, value=events.series_value[kept]
        )

    # --- flows ------------------------------------------------------------------------------------------------

    def _draw_flows(self) -> None:
        events = self.events
        rows = self._timed(events.of_phase(layout.FLOW_BEGIN, layout.FLOW_STEP, layout.FLOW_END))
        rows, place = self._with_ids(rows)
        bound = self._with_time(events.bind_row) if len(events.bind_row) else _NONE
        directed = (events.flags[bound] & (layout.FLOW_IN | layout.FLOW_OUT)) != 0
        bound = bound[directed & np.isin(events.phase[bound], (layout.COMPLETE, layout.BEGIN))]
        if not len(rows) and not len(bound):
            return
        bind_place = np.searchsorted(events.bind_row, bound)
        all_rows = np.concatenate([rows, bound])
        value = np.concatenate([events.id_value[place], events.bind_value[bind_place]])
        kind = np.concatenate([events.id_kind[place], events.bind_kind[bind_place]])
        is_bound = np.arange(len(all_rows)) >= len(rows)
        processes = np.where((kind & layout.LOCAL_ID) != 0, self._process_codes(all_rows), -1)
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
        slice_at = self._slices_at(track, all_rows, is_bound, is_next)
        self.append_flows(linked, all_rows, track, slice_at, "signal")
        destination = all_rows[linked.destination]
        columns = {
            name: self._codes(self.builder.dictionary("chrome_flows", name), texts, codes[destination])
            for name, texts, codes in (
                ("name", events.names, events.name),
                ("category", events.categories, events.category),
            )
        }
        ids = self._id_column(value[linked.destination], kind[linked.destination])
        self.builder.append("chrome_flows", flow_id=np.arange(len(destination)), key=ids, **columns)

    def append_flows(
        self, linked: flow_links.Linked, rows: Int64, track: Int64, slice_at: Int64, kind: str | npt.NDArray[np.int32]
    ) -> None:
        """Append flows between points; ``slice_at`` is the slice of each, -1: none."""
        ends: dict[str, Any] = {}
        for side, point in (("src", linked.source), ("dst", linked.destination)):
            ends[f"{side}_track_id"] = track[point]
            ends[f"{side}_ts"] = self.events.ts[rows[point]] - self.zero
            ends[f"{side}_slice_id"] = np.maximum(slice_at[point], 0)
            ends[f"{side}_slice_id_valid"] = slice_at[point] >= 0
        self.builder.append("flows", kind=kind, **ends)

    def _slices_at(self, track: Int64, rows: Int64, is_bound: Mask, is_next: Mask) -> Int64:
        """Return the id of the slice at each point, int64 [points], -1: none."""
        found: Int64 = np.full(len(rows), -1)
        if not self._slices:
            return found
        owner, lane, dur, ids = (np.concatenate(parts) for parts in zip(*self._slices, strict=True))
        begin = self.events.ts[owner]
        end = np.where(dur == _NEVER, _NEVER, begin + np.where(dur == _NEVER, 0, dur))
        at = flow_links.slices_at(lane, begin, end, track, self.events.ts[rows], is_next)
        found = np.asarray(np.append(ids, -1)[at], np.int64)
        if is_bound.any():  # these are events of slices themselves
            order = np.argsort(owner)
            found[is_bound] = ids[order[np.searchsorted(owner[order], rows[is_bound])]]
        return found

    # --- all of them ------------------------------------------------------------------------------------------

    def _with_time(self, rows: Int64) -> Int64:
        timed: Int64 = rows[(self.events.flags[rows] & layout.HAS_TIME) != 0]
        return timed

    def _timed(self, rows: Int64) -> Int64:
        """Return the events that have a time; count the others."""
        if self.events.has_times:
            return rows
        has = (self.events.flags[rows] & layout.HAS_TIME) != 0
        if has.all():
            return rows
        self._count("chrome_missing_time", rows[~has])
        timed: Int64 = rows[has]
        return timed

    def _count(self, stat: str, rows: Int64) -> None:
        """Count events, with the place of the first."""
        if len(rows):
            self.stats.add(stat, len(rows), offset=int(self.events.offset[rows[0]]))
