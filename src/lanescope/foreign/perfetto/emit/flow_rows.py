"""Flows between the slices and instants of a timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lanescope.foreign.perfetto.interpret import flows, own_traces
from lanescope.trace import TraceBuilder

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
        columns = self._line.found.tables["flows"]
        rows = np.flatnonzero(self._line.known[columns["event"]])
        event = columns["event"][rows]
        found = [flows.chains(event, columns["id"][rows], columns["role"][rows], self._line.ts[event])]
        if self._line.legacy is not None:
            found.append(
                flows.from_one([bind for bind in self._line.legacy.bind if self._line.known[bind[0]]], self._line.ts)
            )
            found.append(self._legacy_chains())
        source = np.concatenate([each.source for each in found])
        destination = np.concatenate([each.destination for each in found])
        builder.add_stat("perfetto_flow_unmatched", sum(each.lone for each in found), input_id=input_id)
        # An end that lies on nothing that is drawn does not count.
        is_drawn = (self._lane_of(source) >= 0) & (self._lane_of(destination) >= 0)
        source, destination = source[is_drawn], destination[is_drawn]
        if not len(source):
            return
        src, dst = self._line.slice_of[source], self._line.slice_of[destination]
        builder.append(
            "flows",
            kind=self._kinds(source, destination),
            src_track_id=self._lane_of(source),
            src_ts=self._end_ts(source, src),
            dst_track_id=self._lane_of(destination),
            dst_ts=self._end_ts(destination, dst),
            src_slice_id=np.maximum(src, 0),
            src_slice_id_valid=src >= 0,
            dst_slice_id=np.maximum(dst, 0),
            dst_slice_id_valid=dst >= 0,
        )

    def _lane_of(self, event: Int64) -> Int64:
        return self._line.lanes[self._line.track[event]]

    def _end_ts(self, event: Int64, row: Int64) -> Int64:
        """Return the time of an end of a flow: that of its event, in a trace of our own that of its slice's start."""
        ts = self._line.ts[event]
        if self._line.is_own and len(self._line.slice_ts):
            ts = np.where(row >= 0, self._line.slice_ts[row], ts)
        return np.asarray(ts - self._line.zero, np.int64)

    def _kinds(self, source: Int64, destination: Int64) -> Any:
        """Return the kinds of flows: where an end of one is drawn as an instant, that is named after it."""
        if not self._line.is_own:
            return "dependency"
        texts = self._line.found.texts
        kinds = np.full(len(source), "dependency", object)
        for end in (source, destination):
            for row in np.flatnonzero(self._line.is_category(end, own_traces.FLOW)).tolist():
                kinds[row] = texts[int(self._line.events["name"][end[row]])]
        return kinds.tolist()

    def _legacy_chains(self) -> flows.Arrows:
        """Join the ends of arrows that are events of their own, at the slices around or after them."""
        assert self._line.legacy is not None
        numbers: dict[tuple[str, int, int], int] = {}
        event, key, role, ts = [], [], [], []
        lone = 0
        ends = zip(
            self._line.legacy.flow_event,
            self._line.legacy.flow_key,
            self._line.legacy.flow_role,
            self._line.legacy.is_next,
            strict=True,
        )
        order = (
            np.lexsort((self._line.slice_ts, self._line.track[self._line.begin]))
            if len(self._line.begin)
            else self._line.begin
        )
        track, starts = self._line.track[self._line.begin][order], self._line.slice_ts[order]
        for at, name, role_, is_next in ends:
            if not self._line.known[at]:
                continue
            row = self._around(order, track, starts, at, is_next=is_next)
            if row < 0:
                lone += 1
                continue
            event.append(int(self._line.begin[row]))
            key.append(numbers.setdefault(name, len(numbers)))
            role.append(role_)
            ts.append(int(self._line.ts[at]))
        found = flows.chains(
            np.array(event, np.int64), np.array(key, np.uint64), np.array(role, np.uint8), np.array(ts, np.int64)
        )
        return found._replace(lone=found.lone + lone)

    def _around(self, order: Int64, track: Int64, starts: Int64, event: int, *, is_next: bool) -> int:
        """Return the innermost slice around an event, or the next one of its track; -1: none."""
        ts, own = int(self._line.ts[event]), int(self._line.track[event])
        first, behind = np.searchsorted(track, [own, own + 1]).tolist()
        if is_next:
            place = first + int(np.searchsorted(starts[first:behind], ts, side="left"))
            return int(order[place]) if place < behind else -1
        place = first + int(np.searchsorted(starts[first:behind], ts, side="right"))
        for back in range(place - 1, max(first, place - _MOST_AROUND) - 1, -1):
            row = int(order[back])
            if starts[back] + self._line.slice_dur[row] >= ts:
                return row
        return -1
