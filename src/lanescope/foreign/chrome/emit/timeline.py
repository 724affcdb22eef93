"""Rows that need no other event: complete slices, instants, samples of counters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.common.stat_tally import StatTally
from lanescope.foreign.chrome.emit.tracks import Tracks
from lanescope.foreign.chrome.formats import layout
from lanescope.foreign.chrome.formats.events import Events, FileText, Int64
from lanescope.foreign.chrome.interpret import flows as flow_links
from lanescope.foreign.chrome.interpret.counters import counters_of
from lanescope.foreign.chrome.interpret.places import Places
from lanescope.foreign.chrome.survey import Survey, scopes, with_time
from lanescope.trace import Column, Flag, TraceBuilder

if TYPE_CHECKING:
    from lanescope.trace import Dictionary

Int32 = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

_NONE = np.empty(0, np.int64)
NEVER = np.iinfo(np.int64).max


class DrawnSlices:
    """Slices of threads that flows may be bound to.

    Args:
        wanted: int64, tracks that have an end of a flow.
    """

    def __init__(self, wanted: Int64) -> None:
        self._wanted = wanted
        self._parts: list[tuple[Int64, ...]] = []

    @property
    def are_wanted(self) -> bool:
        """Whether there is a flow."""
        return len(self._wanted) > 0

    def add(self, *columns: Int64) -> None:
        """Add slices: numbers of their events, tracks, begins, ends and ids, int64 [n]."""
        keep = np.isin(columns[1], self._wanted)
        self._parts.append(tuple(column[keep] for column in columns))

    def columns(self) -> tuple[Int64, ...] | None:
        """Return all of them as ``add`` takes them; None if there are none."""
        return tuple(np.concatenate(parts) for parts in zip(*self._parts, strict=True)) if self._parts else None


@dataclass(slots=True)
class Drawing:
    """What all parts of a file are drawn with.

    Attributes:
        builder: of the trace.
        places: processes and threads.
        file: its text.
        stats: where faults are counted.
        zero: time of the file that is 0 in the trace, ns.
        tracks: made so far.
        slices: what flows may be bound to.
        last_times: returns the last time at which anything is known of each place, int64 [places].
    """

    builder: TraceBuilder
    places: Places
    file: FileText
    stats: StatTally
    zero: int
    tracks: Tracks
    slices: DrawnSlices = field(default_factory=lambda: DrawnSlices(_NONE))
    last_times: Callable[[], Int64] = lambda: _NONE


def make_tracks(tracks: Tracks, places: Places, survey: Survey) -> None:
    """Make the tracks of instants and counters that a file needs."""
    of_threads, of_processes = survey.instants
    for place in sorted(of_threads):
        tracks.thread(*places.keys[place])
    for place in sorted(of_processes):
        tracks.instants_of(places.keys[place][0])
    if survey.has_global_instants:
        tracks.instants_of_all()
    for process, name in survey.counters:
        tracks.counter(process, name)


class Timeline:
    """Draws some events of a file.

    Args:
        drawing: what all parts of the file are drawn with.
        events: of the file.
    """

    def __init__(self, drawing: Drawing, events: Events) -> None:
        self.drawing, self.events = drawing, events
        self.builder, self.places, self.file, self.stats = (
            drawing.builder, drawing.places, drawing.file, drawing.stats,
        )  # fmt: skip
        self.zero, self.tracks = drawing.zero, drawing.tracks
        self.place = drawing.places.place[events.lane] if len(events) else _NONE
        self.names = self._codes(self.builder.names, events.names, events.name)
        self.categories = self._codes(self.builder.categories, events.categories, events.category)

    def _codes(self, dictionary: Dictionary, texts: list[str], codes: Int32) -> Int32:
        """Return codes of a dictionary of the trace for codes of texts of the file."""
        mapping = np.zeros(len(texts), np.int32)  # the last one is that of no text
        if len(codes):
            found = np.flatnonzero(np.bincount(codes + 1)) - 1
            mapping[found] = dictionary.codes(texts[code] for code in found.tolist())
        return mapping[codes]

    def draw(self) -> None:
        """Append the rows of all events that need no other one."""
        self._draw_slices()
        self._draw_instants()
        self._draw_counters()

    def _draw_slices(self) -> None:
        events = self.events
        rows = with_time(events, events.of_phase(layout.COMPLETE))
        known = (events.flags[rows] & layout.HAS_DURATION) != 0
        dur = events.dur[rows]
        if not known.all():
            self._count("chrome_missing_duration", rows[~known])
        self._append_slices(rows, self.tracks.threads(self.place[rows]), dur, known)

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
        if is_thread and self.drawing.slices.are_wanted:
            begin = self.events.ts[rows]
            end = np.where(known, begin + np.maximum(dur, 0), NEVER)
            self.drawing.slices.add(self.events.number[rows], track, begin, end, ids)
        return ids

    def _last_times(self, rows: Int64) -> Int64:
        """Return the last time at which anything is known of the thread of each event, int64 [n]."""
        found: Int64 = self.drawing.last_times()[self.place[rows]]
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

    def _draw_instants(self) -> None:
        """Append instants of threads, of processes, and of all."""
        rows = with_time(self.events, self.events.of_phase(*layout.INSTANTS))
        if not len(rows):
            return
        of_all, of_process = scopes(self.events, rows)
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

    def _draw_counters(self) -> None:
        """Append the samples of each series of each counter."""
        events = self.events
        counters = with_time(events, events.of_phase(layout.COUNTER))
        self._count("chrome_bad_sample", counters[(events.flags[counters] & layout.BAD_SERIES) != 0])
        number, found = counters_of(events, self.places)
        if not len(number):
            return
        kept = (events.flags[events.series_row] & layout.HAS_TIME) != 0
        track = np.array([self.tracks.counter(*counter) for counter in found], np.int64)
        ts = events.ts[events.series_row[kept]] - self.zero
        self.builder.append("counters", track_id=track[number], ts=ts, value=events.series_value[kept])

    # --- flows ------------------------------------------------------------------------------------------------

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

    # --- all of them ------------------------------------------------------------------------------------------

    def with_ids(self, rows: Int64) -> tuple[Int64, Int64]:
        """Return the events that have an id, and the place of each id; count the others."""
        events = self.events
        has = (events.flags[rows] & layout.HAS_ID) != 0
        self._count("chrome_missing_id", rows[~has])
        rows = rows[has]
        return rows, np.searchsorted(events.id_row, rows)

    def _count(self, stat: str, rows: Int64) -> None:
        """Count events, with the place of the first."""
        if len(rows):
            self.stats.add(stat, len(rows), offset=int(self.events.offset[rows[0]]))
