"""Slices, instants, counters and flows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.foreign.kineto.emit.tracks import Tracks
from lanescope.foreign.kineto.formats import layout
from lanescope.foreign.kineto.interpret.classes import Classes
from lanescope.foreign.kineto.interpret.joins import Launches, Pairs
from lanescope.trace import Dictionary, Flag, TraceBuilder
from lanescope.trace.column import look_up
from lanescope.trace.streams import TracePart
from lanescope.wire.trace_events import TraceEvents

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_CLASSES = len(layout.CLASSES)


@dataclass(slots=True)
class Rows:
    """Rows of the trace by event.

    Attributes:
        ts: int64 [n], time of each event on the trace's axis.
        slices: int64 [slices], the event of each slice.
        slice_of: int64 [n], the slice of each event; -1: none.
        track_of: int64 [n], the lane of each event with a slice or instant; -1: none.
    """

    ts: Int64
    slices: Int64
    slice_of: Int64
    track_of: Int64


class Numbers:
    """Numbers of slices where those outside of a part of the timeline are left out.

    Args:
        part: the part; None: nothing is left out.
        count: slices of the whole trace.
    """

    def __init__(self, part: TracePart | None, count: int) -> None:
        self._part, self._count = part, count
        self._kept: list[Int64] = []
        self._made = 0

    def split(self, events: TraceEvents, made: Rows) -> tuple[Rows, Rows]:
        """Return rows of the slices that are made, and those of all; what is left out has a number behind all others.

        Args:
            events: the events.
            made: their rows, by their numbers in the whole trace.
        """
        if self._part is None:
            return made, made
        slices = made.slices
        begin = made.ts[slices]
        end = begin + np.where(events.has_dur[slices], np.maximum(events.dur[slices], 0), 0)
        is_near = self._part.holds(begin, end)
        far = slices[~is_near]
        self._part.leave_out(made.track_of[far], begin[~is_near], end[~is_near])
        old = made.slice_of[slices[is_near]]
        self._kept.append(old)
        near_of, all_of = np.full(len(made.slice_of), -1, np.int64), made.slice_of.copy()
        near_of[slices[is_near]] = all_of[slices[is_near]] = np.arange(self._made, self._made + len(old))
        all_of[far] += self._count
        self._made += len(old)
        return Rows(made.ts, slices[is_near], near_of, made.track_of), Rows(made.ts, slices, all_of, made.track_of)

    def of_rows(self, made: Rows) -> Rows:
        """Return rows whose slices have the numbers that ``split`` gave, by their numbers in the whole trace."""
        if self._part is None:
            return made
        kept = np.concatenate([np.empty(0, np.int64), *self._kept])
        place = np.searchsorted(kept, made.slice_of)
        is_kept = np.append(kept, -2)[place] == made.slice_of
        slice_of = np.where(is_kept, place, np.where(made.slice_of < 0, -1, made.slice_of + self._count))
        return Rows(made.ts, made.slices, slice_of, made.track_of)


def place_slices(events: TraceEvents, classes: Classes, tracks: Tracks, ts: Int64, first: int) -> Rows:
    """Return the lane and the number of the slice of each complete event; the first slice has number ``first``."""
    rows = np.flatnonzero(events.of_phase("X") & events.has_ts)
    slice_of = np.full(len(events), -1, np.int64)
    slice_of[rows] = np.arange(first, first + len(rows))
    return Rows(ts, rows, slice_of, lanes_of(events, classes, tracks, rows))


def lanes_of(events: TraceEvents, classes: Classes, tracks: Tracks, rows: Int64) -> Int64:
    """Return the lane of each of ``rows``, of the other events -1, int64 [n]."""
    track_of = np.full(len(events), -1, np.int64)
    track_of[rows] = tracks.table()[events.place[rows].astype(np.int64) * _CLASSES + classes.of[rows]]
    return track_of


class Texts:
    """Codes of the trace for those of the file; each text is looked up once.

    Args:
        dictionary: of the trace.
        missing: the text of what has none.
    """

    def __init__(self, dictionary: Dictionary, missing: str) -> None:
        self._dictionary, self._missing = dictionary, missing
        self._codes = np.empty(0, np.int32)  # by code of the file, the last is that of no text

    def codes(self, texts: list[str], codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return codes of the trace; ``texts`` are those of before and maybe more, and code -1 is none of them."""
        known = max(len(self._codes) - 1, 0)
        if len(texts) > known or not len(self._codes):
            more = self._dictionary.codes([*texts[known:], self._missing])
            self._codes = np.concatenate([self._codes[:known], more])
        return look_up(self._codes, codes)


class Names(NamedTuple):
    """Names and categories of rows."""

    names: Texts
    categories: Texts

    @classmethod
    def of(cls, builder: TraceBuilder) -> Names:
        """Return those of a trace."""
        return cls(Texts(builder.names, "(no name)"), Texts(builder.categories, ""))


def add_slices(builder: TraceBuilder, events: TraceEvents, made: Rows, rows: Int64, named: Names) -> None:
    """Add a slice for each complete event of ``rows``, the next ones of ``made.slices``."""
    dur, ts = events.dur[rows], made.ts[rows]
    has_dur = events.has_dur[rows]
    known = has_dur & (dur >= 0)
    flags = np.zeros(len(rows), np.uint32)
    if not known.all():
        flags[~has_dur] = int(Flag.UNFINISHED)
        flags[has_dur & (dur < 0)] = int(Flag.NEGATIVE_DURATION)
    unfinished = flags == int(Flag.UNFINISHED)
    first = builder.append(
        "slices",
        track_id=made.track_of[rows],
        ts=ts,
        dur=dur,
        dur_valid=known,
        name=named.names.codes(events.names, events.name[rows]),
        category=named.categories.codes(events.categories, events.category[rows]),
        flags=flags if flags.any() else 0,
        last_known_ts=ts if unfinished.any() else None,
        **({"last_known_ts_valid": unfinished} if unfinished.any() else {}),
    )
    assert not len(rows) or first == made.slice_of[rows[0]]


def instant_lanes(events: TraceEvents, classes: Classes) -> tuple[Int64, Int64]:
    """Return the instants, int64 [n], and the lane of each: place times the number of classes, plus class."""
    is_instant = events.of_phase("i") | events.of_phase("I") | events.of_phase("R")
    rows = np.flatnonzero(is_instant & events.has_ts)
    # What has no number for a thread comes from the profiler itself.
    named = np.array([isinstance(place.process, str) or place.process is None for place in events.places], np.bool_)
    of = np.where(look_up(named, events.place[rows]), layout.SPAN, classes.of[rows]) if len(rows) else rows
    return rows, events.place[rows].astype(np.int64) * _CLASSES + of


def add_instants(
    builder: TraceBuilder, events: TraceEvents, classes: Classes, tracks: Tracks, made: Rows, named: Names
) -> None:
    """Add the instants, each on the lane of operators of its thread or that of the profiler."""
    rows, lane = instant_lanes(events, classes)
    if not len(rows):
        return
    builder.append(
        "instants",
        track_id=tracks.table()[lane],
        ts=made.ts[rows],
        name=named.names.codes(events.names, events.name[rows]),
        category=named.categories.codes(events.categories, events.category[rows]),
    )


def add_flows(builder: TraceBuilder, launches: Launches, made: Rows) -> None:
    """Add a flow from each call to the device work that it started."""
    keep = (made.slice_of[launches.call] >= 0) & (made.slice_of[launches.work] >= 0)
    call, work = launches.call[keep], launches.work[keep]
    if len(call):
        builder.append(
            "flows",
            kind="submit",
            src_track_id=made.track_of[call],
            src_ts=made.ts[call],
            dst_track_id=made.track_of[work],
            dst_ts=made.ts[work],
            src_slice_id=made.slice_of[call],
            dst_slice_id=made.slice_of[work],
        )


class Operators:
    """Operators that start where flows between forward and backward have their ends.

    Args:
        times: int64 [n], where they have them.
    """

    def __init__(self, times: Int64) -> None:
        self._times = distinct(times)
        self._found: list[tuple[Int64, ...]] = []

    def add(self, events: TraceEvents, classes: Classes, made: Rows) -> None:
        """Look at more slices."""
        if not len(self._times):
            return
        rows = made.slices[classes.of[made.slices] == layout.OP]
        at = np.minimum(np.searchsorted(self._times, made.ts[rows]), len(self._times) - 1)
        rows = rows[self._times[at] == made.ts[rows]]
        self._found.append((events.place[rows].astype(np.int64), made.ts[rows], events.dur[rows], made.slice_of[rows]))

    def starting_at(self, place: Int64, ts: Int64) -> Int64:
        """Return the innermost slice that starts on each place at each time; -1: none, int64 [n]."""
        if not self._found:
            return np.full(len(place), -1, np.int64)
        of, begin, dur, slices = (np.concatenate(column) for column in zip(*self._found, strict=True))
        sort = np.lexsort((-dur, begin, of))
        keys = zip(of[sort].tolist(), begin[sort].tolist(), strict=True)
        known = dict(zip(keys, slices[sort].tolist(), strict=True))
        wanted = zip(place.tolist(), ts.tolist(), strict=True)
        return np.array([known.get(each, -1) for each in wanted], np.int64)


def add_backward(
    builder: TraceBuilder, events: TraceEvents, tracks: Tracks, pairs: Pairs, ts: Int64, operators: Operators
) -> int:
    """Add a flow from each operator to its backward one; return how many ends no row starts at."""
    if not len(pairs.start):
        return 0
    ends = []
    for rows in (pairs.start, pairs.end):
        found = operators.starting_at(events.place[rows].astype(np.int64), ts[rows])
        lane = np.array([tracks.lane(place, layout.OP, "nested") for place in events.place[rows].tolist()], np.int64)
        ends.append((rows, found, lane))
    (start, first, src), (end, last, dst) = ends
    builder.append(
        "flows",
        kind="dependency",
        src_track_id=src,
        src_ts=ts[start],
        dst_track_id=dst,
        dst_ts=ts[end],
        src_slice_id=first,
        src_slice_id_valid=first >= 0,
        dst_slice_id=last,
        dst_slice_id_valid=last >= 0,
    )
    return int(np.count_nonzero(first < 0) + np.count_nonzero(last < 0))
