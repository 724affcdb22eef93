"""Slices and instants on the clock of the trace: found on the way, or from all events of a file together.

What belongs to an event (annotations, ends of flows, correlation IDs) names it by its place: 4 times the row that it
has become, plus 0 for the start of a slice, 1 for its end, 2 for an instant, 3 for an end without a start. -1: none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.foreign.perfetto.formats.packets import Columns, Found
from lanescope.foreign.perfetto.interpret.clocks import LATEST, ClockMap
from lanescope.foreign.perfetto.interpret.legacy import LegacyEvents
from lanescope.trace.column import look_up

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

BEGIN, END, INSTANT, LONE = range(4)


@dataclass(slots=True)
class EventTimes:
    """All events, where they were kept.

    Attributes:
        ts: int64 [n], ns on the clock of the trace.
        known: bool [n], which times are known.
        track: int32 [n], number of the track.
        places: int64 [n], what each has become.
    """

    ts: Int64
    known: Mask
    track: npt.NDArray[np.int32]
    places: Int64


@dataclass(slots=True)
class Rows:
    """What the events of a file have become, on the clock of the trace.

    Attributes:
        slices: ``ts``, ``dur`` (-1: no end), ``track``, ``name``, ``category`` (-1: none; empty: none has any).
        instants: ``ts``, ``track``, ``name``, ``category``.
        lone: ``ts`` and ``track`` of ends without a start.
        last: int64 [tracks], time of the last event on each.
        first_name: int32 [tracks], code of the first name on each, -1: none.
        has_rows: bool [tracks], which have slices or instants.
        crossing: int64 [k], slices that overlap others partially.
        open: number of slices without an end.
        earliest: first time of all events, None without any.
        annotated, correlated, flows: int64 [..], places of what belongs to an event, in order of the file.
        events: all events, where they were kept.
    """

    slices: Columns
    instants: Columns
    lone: Columns
    last: Int64
    first_name: npt.NDArray[np.int32]
    has_rows: Mask
    crossing: Int64
    open: int
    earliest: int | None
    annotated: Int64
    correlated: Int64
    flows: Int64
    events: EventTimes | None = None

    def ends(self, places: Int64) -> tuple[Int64, Int64]:
        """Return the track and the time of each place, int64 [n] each; places below 0 are not allowed."""
        row, role = places >> 2, places & 3
        if bool((role == BEGIN).all()):  # as most of them are
            return np.asarray(self.slices["track"][row], np.int64), self.slices["ts"][row]
        track, ts = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
        for columns, roles in ((self.slices, (BEGIN, END)), (self.instants, (INSTANT,)), (self.lone, (LONE,))):
            own = np.flatnonzero((role == roles[0]) | (role == roles[-1]))
            track[own], ts[own] = columns["track"][row[own]], columns["ts"][row[own]]
        ended = np.flatnonzero(role == END)
        ts[ended] += self.slices["dur"][row[ended]]
        return track, ts


def found_on_the_way(found: Found, clock: ClockMap) -> Rows | None:
    """Return the rows that the reader made; None where their order is another one on the clock of the trace."""
    rows = found.rows
    assert rows is not None
    facts = rows["tracks"]
    used = np.flatnonzero(facts["clock"] >= 0)
    last = np.zeros(len(facts["last"]), np.int64)
    first, known = clock.moved(facts["first"][used], facts["clock"][used])
    last[used], also = clock.moved(facts["last"][used], facts["clock"][used])
    if not (known.all() and also.all() and clock.keeps_order()):
        return None
    if not clock.is_same():
        for columns in (rows["slices"], rows["instants"], rows["lone"]):
            _move(columns, clock, facts["clock"])
    tables = found.tables
    return Rows(
        rows["slices"],
        rows["instants"],
        rows["lone"],
        last,
        facts["first_name"],
        facts["has_rows"] != 0,
        rows["crossing"],
        rows["open"],
        int(first.min()) if len(first) else None,
        tables["annotated"]["event"],
        tables["correlations"]["event"],
        tables["flows"]["event"],
    )


def _move(columns: Columns, clock: ClockMap, clocks: npt.NDArray[np.int32]) -> None:
    """Move the times of rows to the clock of the trace."""
    ts = columns["ts"]
    own = look_up(clocks, columns["track"])
    columns["ts"] = clock.moved(ts, own)[0]
    if "dur" in columns and not clock.is_constant():
        dur = columns["dur"]
        ends = clock.moved(ts + np.maximum(dur, 0), own)[0]
        columns["dur"] = np.where(dur < 0, -1, ends - columns["ts"])


def from_events(found: Found, clock: ClockMap, track: npt.NDArray[np.int32], legacy: LegacyEvents | None) -> Rows:
    """Return the rows of all events together, in order of time.

    Args:
        found: what the file has, with its events.
        clock: moves their times.
        track: int32 [events], their tracks, with those that older events have to themselves.
        legacy: what older events say beyond their type.
    """
    tables = found.tables
    events = tables["events"]
    ts, known = clock.moved(events["ts"], events["clock"])
    kept = known
    if legacy is not None and legacy.flow_event:
        kept = kept.copy()
        kept[np.array(legacy.flow_event)] = False
    rows = np.flatnonzero(kept) if not kept.all() else None
    kind, name, category = (events[column] for column in ("type", "name", "category"))
    if rows is not None:
        kind, name, category = kind[rows], name[rows], category[rows]
    count = len(tables["tracks"]["uuid"]) + (0 if legacy is None else len(legacy.rows))
    drawn_ts, drawn_track = (ts, track) if rows is None else (ts[rows], track[rows])
    made, some = core.perfetto_pair_slices(
        np.ascontiguousarray(drawn_ts), np.ascontiguousarray(drawn_track), kind, name, category, count
    )
    places = some
    if rows is not None:
        places = np.full(len(ts), -1, np.int64)
        places[rows] = some
    facts = made["tracks"]
    if legacy is not None and legacy.complete:
        _complete(made, places[np.array(legacy.complete)], np.array(legacy.dur, np.int64))

    def place_of(table: str) -> Int64:
        event: Int64 = tables[table]["event"]
        return places[event] if len(places) else event

    return Rows(
        made["slices"],
        made["instants"],
        made["lone"],
        facts["last"],
        facts["first_name"],
        facts["has_rows"] != 0,
        made["crossing"],
        made["open"],
        int(ts[known].min()) if known.any() else None,
        place_of("annotated"),
        place_of("correlations"),
        place_of("flows"),
        EventTimes(ts, known, track, places),
    )


def _complete(made: dict[str, Any], places: Int64, dur: Int64) -> None:
    """Give slices of the older form their durations."""
    known = np.flatnonzero((places >= 0) & (dur >= 0))
    made["slices"]["dur"][places[known] >> 2] = np.minimum(dur[known], LATEST)
    made["open"] -= len(known)
