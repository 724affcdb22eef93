"""Flows between the slices and instants of a timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.foreign.perfetto.interpret import flows, own_traces
from lanescope.foreign.perfetto.interpret.legacy import LegacyEvents
from lanescope.foreign.perfetto.interpret.rows import BEGIN, END, INSTANT, EventTimes
from lanescope.trace import TraceBuilder
from lanescope.trace.schema import FLOW_KINDS

if TYPE_CHECKING:
    from lanescope.foreign.perfetto.emit.timeline import Timeline

Int64 = npt.NDArray[np.int64]

#: So many slices before a moment are looked at for the one around it.
_MOST_AROUND = 64


class FlowRows:
    """The flows of a timeline whose slices and instants are there.

    Args:
        line: the timeline.
    """

    def __init__(self, line: Timeline) -> None:
        self._line = line

    def add(self, builder: TraceBuilder, input_id: int) -> None:
        """Append them; count those with one end."""
        rows = self._line.rows
        columns = self._line.found.tables["flows"]
        own = np.flatnonzero(rows.flows >= 0)
        places = rows.flows[own]
        known = _Events(places, *rows.ends(places))
        chained = flows.chains(np.arange(len(own)), columns["id"][own], columns["role"][own], known.ts)
        sides, lone = [known.only(chained.source), known.only(chained.destination)], chained.lone
        ids = columns["id"][own][chained.source]
        legacy, events = self._line.legacy, rows.events
        if legacy is not None and events is not None:
            bound = flows.from_one([bind for bind in legacy.bind if events.known[bind[0]]], events.ts)
            older = [flows.Arrows(events.places[bound.source], events.places[bound.destination], bound.lone)]
            older.append(self._legacy_chains(legacy, events))
            source, destination = (np.concatenate(side) for side in zip(*(each[:2] for each in older), strict=True))
            is_there = (source >= 0) & (destination >= 0)
            for number, places in enumerate((source[is_there], destination[is_there])):
                sides[number] = sides[number].joined(_Events(places, *rows.ends(places)))
            ids = np.append(ids, np.zeros(np.count_nonzero(is_there), np.uint64))
            lone += sum(each.lone for each in older)
        builder.add_stat("perfetto_flow_unmatched", lone, input_id=input_id)
        told = self._line.tree.notes.flows(ids)
        ends = [
            _End(self._line, *side) for side in zip(sides, (told.at_source_end, told.at_destination_end), strict=True)
        ]
        # An end that lies on nothing that is drawn does not count.
        is_drawn = (ends[0].lane >= 0) & (ends[1].lane >= 0)
        ends = [end.only(is_drawn) for end in ends]
        if not len(ends[0].places):
            return
        src, dst = ends
        builder.append(
            "flows",
            kind=self._kinds(builder, ends, told.kind[is_drawn]),
            src_track_id=src.lane,
            src_ts=src.ts,
            dst_track_id=dst.lane,
            dst_ts=dst.ts,
            src_slice_id=np.maximum(src.slice, 0),
            src_slice_id_valid=src.slice >= 0,
            dst_slice_id=np.maximum(dst.slice, 0),
            dst_slice_id_valid=dst.slice >= 0,
        )

    def _kinds(self, builder: TraceBuilder, ends: list[_End], told: Int64) -> npt.NDArray[np.int32]:
        """Return the kinds of flows, as codes: where an end of one is drawn as an instant, that is named after it."""
        found, instants = self._line.found, self._line.rows.instants
        dictionary = builder.dictionary("flows", "kind")
        kinds = dictionary.codes(FLOW_KINDS)[told]
        if not self._line.is_own or own_traces.FLOW not in found.categories:
            return kinds
        flow = found.categories.index(own_traces.FLOW)
        for end in ends:
            rows = np.flatnonzero(end.places & 3 == INSTANT)
            at = end.places[rows] >> 2
            is_named = instants["category"][at] == flow
            for row, instant in zip(rows[is_named].tolist(), at[is_named].tolist(), strict=True):
                kinds[row] = dictionary.code(found.names[int(instants["name"][instant])])
        return kinds

    def _legacy_chains(self, legacy: LegacyEvents, events: EventTimes) -> flows.Arrows:
        """Join the ends of arrows that are events of their own, at the slices around or after them."""
        numbers: dict[tuple[str, int, int], int] = {}
        place, key, role, ts = [], [], [], []
        lone = 0
        ends = zip(legacy.flow_event, legacy.flow_key, legacy.flow_role, legacy.is_next, strict=True)
        slices = self._line.rows.slices
        order = np.lexsort((slices["ts"], slices["track"]))
        track, starts = slices["track"][order], slices["ts"][order]
        for at, name, role_, is_next in ends:
            if not events.known[at]:
                continue
            row = self._around(order, track, starts, (int(events.ts[at]), int(events.track[at])), is_next=is_next)
            if row < 0:
                lone += 1
                continue
            place.append(4 * row + BEGIN)
            key.append(numbers.setdefault(name, len(numbers)))
            role.append(role_)
            ts.append(int(events.ts[at]))
        found = flows.chains(
            np.array(place, np.int64), np.array(key, np.uint64), np.array(role, np.uint8), np.array(ts, np.int64)
        )
        return found._replace(lone=found.lone + lone)

    def _around(self, order: Int64, track: Int64, starts: Int64, event: tuple[int, int], *, is_next: bool) -> int:
        """Return the innermost slice around an event, by time and track, or the next one of its track; -1: none."""
        ts, own = event
        first, behind = np.searchsorted(track, [own, own + 1]).tolist()
        if is_next:
            place = first + int(np.searchsorted(starts[first:behind], ts, side="left"))
            return int(order[place]) if place < behind else -1
        place = first + int(np.searchsorted(starts[first:behind], ts, side="right"))
        dur = self._line.rows.slices["dur"]
        for back in range(place - 1, max(first, place - _MOST_AROUND) - 1, -1):
            row = int(order[back])
            if dur[row] < 0 or starts[back] + dur[row] >= ts:
                return row
        return -1


class _Events(NamedTuple):
    """Events by place, track and time: int64 [n] each."""

    places: Int64
    track: Int64
    ts: Int64

    def only(self, rows: Any) -> _Events:
        return _Events(*(column[rows] for column in self))

    def joined(self, other: _Events) -> _Events:
        return _Events(*map(np.concatenate, zip(self, other, strict=True)))


class _End:
    """One end of each flow.

    Args:
        line: the timeline.
        events: the event of each; all places are known.
        at_ends: whether each lies at the end of its slice, in a trace of lanescope.
    """

    def __init__(self, line: Timeline, events: _Events, at_ends: npt.NDArray[np.bool_]) -> None:
        self._line, self._at_ends, self._events, self.places, ts = line, at_ends, events, events.places, events.ts
        self.lane: Int64 = line.lanes[events.track]
        self.slice: Int64 = np.where(self.places & 3 <= END, self.places >> 2, -1)
        if line.is_own:  # there flows lie at the starts or the ends of slices, whatever events they are bound to
            rows = np.flatnonzero(self.slice >= 0)
            own = self.slice[rows]
            dur = np.where(at_ends[rows], np.maximum(line.rows.slices["dur"][own], 0), 0)
            ts = ts.copy()
            ts[rows] = line.rows.slices["ts"][own] + dur
        if line.slice_id is not None:
            self.slice = np.where(self.slice >= 0, line.slice_id[self.slice], -1)
        self.ts: Int64 = ts - line.zero

    def only(self, kept: npt.NDArray[np.bool_]) -> _End:
        """Return the ends of some of the flows."""
        return self if kept.all() else _End(self._line, self._events.only(kept), self._at_ends[kept])
