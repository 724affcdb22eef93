"""Tables of the timeline from the events of a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.foreign.perfetto.emit import tracks
from lanescope.foreign.perfetto.emit.flow_rows import FlowRows
from lanescope.foreign.perfetto.formats.packets import Found
from lanescope.foreign.perfetto.interpret import clocks, legacy, own_traces
from lanescope.foreign.perfetto.interpret.clocks import ClockMap
from lanescope.foreign.perfetto.schema import DETAILS, EVENTS, STATS
from lanescope.trace import Table, TimeBase, TraceBuilder
from lanescope.trace.column import Column
from lanescope.trace.schema import QUALITIES, Flag

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_BEGIN, _END, _INSTANT, _COMPLETE = 1, 2, 3, 6
#: Integers beyond are rounded in a counter.
_EXACT = 1 << 53


class Timeline:
    """One file's events on their way to the tables.

    Args:
        found: what the file has.
    """

    def __init__(self, found: Found) -> None:
        self.found = found
        tables = found.tables
        self.events, self.samples = tables["events"], tables["samples"]
        used = np.union1d(self.events["clock"], self.samples["clock"]).astype(np.int64)
        self.clock = ClockMap(tables["clocks"], tables["snapshots"], found.primary_clock, used)
        self.ts, self.known = self.clock.moved(self.events["ts"], self.events["clock"])
        self.sample_ts, self.sample_known = self.clock.moved(self.samples["ts"], self.samples["clock"])
        messages = tables["messages"]
        rows = zip(*(messages[name].tolist() for name in ("field", "sequence", "offset", "size")), strict=True)
        self.described = tracks.read(rows, found.message_bytes)
        self.track = self.events["track"]
        self.legacy = self._legacy()
        self.tree = self._tree()
        self.is_own = self.tree.time is not None
        self.zero = 0 if self.is_own else self._earliest()

    # --- the parts --------------------------------------------------------------------------------------------

    def _legacy(self) -> legacy.LegacyEvents | None:
        columns = self.found.tables["legacy"]
        if not len(columns["event"]):
            return None
        sequences = self.found.tables["tracks"]["sequence"].tolist()
        uuids = self.found.tables["tracks"]["uuid"].tolist()
        pids = np.full(len(sequences), -1, np.int64)
        for number, (uuid, sequence) in enumerate(zip(uuids, sequences, strict=True)):
            key = self.described.threads.get(sequence) if not uuid else None
            described = self.described.tracks.get(uuid)
            pid = key.pid if key is not None else described.pid if described is not None else None
            pids[number] = -1 if pid is None else pid
        found = legacy.read(columns, self.events, self.found.texts, pids[self.track[columns["event"]]])
        if found.event:
            self.track = self.track.copy()
            self.track[np.array(found.event)] = np.array(found.row, np.int32) + len(sequences)
        return found

    def _tree(self) -> tracks.TrackTree:
        table = self.found.tables["tracks"]
        further = [] if self.legacy is None else list(zip(self.legacy.rows, self.legacy.names, strict=True))
        texts = self.found.texts
        return tracks.TrackTree(
            self.described,
            table["uuid"].tolist(),
            table["sequence"].tolist(),
            [(key, texts[name] if name >= 0 else "") for key, name in further],
            self._first_names(len(table["uuid"])),
        )

    def _first_names(self, count: int) -> dict[int, str]:
        """Return the name of the first named event on each track that nothing describes."""
        described = self.described.tracks
        uuids = self.found.tables["tracks"]["uuid"].tolist()
        bare = [number for number, uuid in enumerate(uuids) if uuid not in described]
        names: dict[int, str] = {}
        if not bare:
            return names
        is_bare = np.zeros(count + (0 if self.legacy is None else len(self.legacy.rows)), np.bool_)
        is_bare[bare] = True
        rows = np.flatnonzero(is_bare[self.track] & (self.events["name"] >= 0))
        numbers, first = np.unique(self.track[rows], return_index=True)
        for number, row in zip(numbers.tolist(), rows[first].tolist(), strict=True):
            names[number] = self.found.texts[int(self.events["name"][row])]
        return names

    def _earliest(self) -> int:
        firsts = [int(ts[known].min()) for ts, known in self.times() if known.any()]
        return min(firsts, default=0)

    def times(self) -> tuple[tuple[Int64, Mask], ...]:
        """Return times of events and of samples, and which of them are known."""
        return (self.ts, self.known), (self.sample_ts, self.sample_known)

    # --- the time base ----------------------------------------------------------------------------------------

    def builder(self) -> TraceBuilder:
        """Return a builder for the tables."""
        return TraceBuilder(self._time_base(), details=DETAILS, stats=STATS)

    def _time_base(self) -> TimeBase:
        if self.tree.time is not None:
            return self.tree.time
        if self.clock.trace_clock == clocks.REALTIME:
            return TimeBase(self.zero, "unix")
        if self.clock.trace_clock == clocks.MONOTONIC:
            return TimeBase(self.zero, "host_monotonic")
        return TimeBase(self.zero, "first_event")

    def add_clocks(self, builder: TraceBuilder) -> None:
        """Add the clocks that the file relates to its own, with their readings."""
        for number, reading in self.clock.readings():
            name = clocks.NAMES.get(number, f"clock {number}")
            clock = builder.clock(name=name, device="", frequency=1_000_000_000)
            for ticks, ts in zip(reading.of.tolist(), reading.to.tolist(), strict=True):
                builder.anchor(clock_id=clock, ticks=ticks, ts=ts - self.zero)

    # --- rows -------------------------------------------------------------------------------------------------

    def draw(self, builder: TraceBuilder, input_id: int) -> None:
        """Append all rows."""
        events = self.events
        kept = self._kept()
        rows = np.flatnonzero(kept) if not kept.all() else None
        event = (lambda index: index) if rows is None else (lambda index: np.where(index < 0, -1, rows[index]))
        columns = [self.ts, self.track, events["type"], events["name"], events["category"]]
        ts, track, kind, name, category = (
            np.ascontiguousarray(column if rows is None else column[rows]) for column in columns
        )
        begin, end, crosses, last, instants, unmatched = core.perfetto_pair_slices(
            ts, track, kind, name, category, len(self.tree.nodes)
        )
        begin, end, instants, unmatched = map(event, (begin, end, instants, unmatched))
        is_lane = np.zeros(len(self.tree.nodes), np.bool_)
        is_lane[self.track[begin]] = True
        is_lane[self.track[instants]] = True
        has_samples = np.bincount(self.samples["track"][self.sample_known], minlength=len(self.tree.nodes))
        self.tree.make(builder, np.flatnonzero(is_lane).tolist(), np.flatnonzero(has_samples).tolist(), input_id)
        self.lanes = self.tree.lanes()
        self._name = self._codes(builder, "name")
        self._category = self._codes(builder, "category")
        self._add_slices(builder, begin, end, crosses.view(np.bool_), last, input_id)
        self._add_instants(builder, instants)
        self._add_samples(builder, input_id)
        FlowRows(self).add(builder, input_id)
        builder.add_stat("perfetto_end_unmatched", len(unmatched), input_id=input_id)
        builder.records("perfetto.events", self._records)

    def _kept(self) -> Mask:
        """Return the events that are drawn as they are."""
        kept = self.known
        if self.legacy is not None and self.legacy.flow_event:
            kept = kept.copy()
            kept[np.array(self.legacy.flow_event)] = False
        return kept

    def _codes(self, builder: TraceBuilder, column: str) -> Any:
        """Return a function from events to codes of the builder's names or categories."""
        codes = self.events[column]
        dictionary = builder.dictionary("slices", column)
        texts = self.found.texts
        used = np.flatnonzero(np.bincount(codes + 1, minlength=1))
        mapping = np.zeros(len(texts) + 1, np.int32)
        mapping[used] = dictionary.codes(texts[code - 1] if code else "" for code in used.tolist())
        return lambda events: mapping[codes[events] + 1]

    def _add_slices(
        self, builder: TraceBuilder, begin: Int64, end: Int64, crosses: Mask, last: Int64, input_id: int
    ) -> None:
        ts = self.ts
        start = ts[begin]
        is_open = end < 0
        dur = np.where(is_open, 0, ts[end] - start) if len(ts) else start
        if self.legacy is not None and self.legacy.complete:
            given = np.full(len(ts), -1, np.int64)
            given[np.array(self.legacy.complete)] = np.array(self.legacy.dur, np.int64)
            is_complete = self.events["type"][begin] == _COMPLETE
            known = is_complete & (given[begin] >= 0)
            dur = np.where(known, np.minimum(given[begin], clocks.LATEST), dur)
            is_open = is_open & ~known
        flags = np.where(crosses, np.uint32(Flag.PARTIAL_OVERLAP), np.uint32(0))
        flags[is_open] |= np.uint32(Flag.UNFINISHED)
        quality = np.zeros(len(begin), np.int32)
        last_known = np.where(is_open, np.maximum(last, start) - self.zero, 0)
        last_valid = is_open.copy()
        drawn = np.ones(len(begin), np.bool_)
        rows_of = np.full(len(ts), -1, np.int64)  # slice of each event
        if self.is_own:
            drawn = ~self.is_category(begin, own_traces.GAP)
            self._restore(begin, flags, quality, last_known, last_valid)
            self._add_gaps(builder, begin[~drawn], dur[~drawn], is_open[~drawn], input_id)
        kept = slice(None) if drawn.all() else np.flatnonzero(drawn)
        begin, end, start = begin[kept], end[kept], start[kept]
        dur, is_open = dur[kept], is_open[kept]
        rows_of[begin] = np.arange(len(begin))
        rows_of[end[end >= 0]] = np.flatnonzero(end >= 0)
        first = 0
        if len(begin):
            first = builder.append(
                "slices",
                track_id=self.lanes[self.track[begin]],
                ts=start - self.zero if self.zero else start,
                dur=dur,
                dur_valid=~is_open,
                name=self._name(begin),
                category=self._category(begin),
                quality=self._qualities(builder, quality[kept]),
                flags=flags[kept],
                last_known_ts=last_known[kept],
                last_known_ts_valid=last_valid[kept],
            )
        self.slice_of, self.begin, self._end = rows_of, begin, end
        self.slice_ts, self.slice_dur = start, np.where(is_open, clocks.LATEST, dur)
        if not self.is_own:
            builder.add_stat("perfetto_unfinished_slice", int(np.count_nonzero(is_open)), input_id=input_id)
        self._add_arguments(builder, "perfetto_slices", "slice_id", begin, end, first)

    def _qualities(self, builder: TraceBuilder, places: npt.NDArray[np.int32]) -> Any:
        if not places.any():
            return QUALITIES[0]
        codes = builder.dictionary("slices", "quality").codes(QUALITIES)
        return codes[places]

    def is_category(self, events: Int64, text: str) -> Mask:
        """Return which events have a category, bool [n]."""
        texts = self.found.texts
        code = texts.index(text) if text in texts else -2
        return np.asarray(self.events["category"][events] == code, np.bool_)

    def _add_instants(self, builder: TraceBuilder, instants: Int64) -> None:
        self._point = np.full(len(self.ts), -1, np.int64)
        if self.is_own:
            is_finding = self.is_category(instants, own_traces.FINDING)
            builder.add_stat("perfetto_drawn_finding", int(np.count_nonzero(is_finding)), input_id=0)
            instants = instants[~(is_finding | self.is_category(instants, own_traces.FLOW))]
        if not len(instants):
            return
        flags, quality = np.zeros(len(instants), np.uint32), np.zeros(len(instants), np.int32)
        if self.is_own:
            unused = np.zeros(len(instants), np.int64), np.zeros(len(instants), np.bool_)
            self._restore(instants, flags, quality, *unused)
        first = builder.append(
            "instants",
            track_id=self.lanes[self.track[instants]],
            ts=self.ts[instants] - self.zero,
            name=self._name(instants),
            category=self._category(instants),
            quality=self._qualities(builder, quality),
            flags=flags,
        )
        none = np.full(len(instants), -1, np.int64)
        self._add_arguments(builder, "perfetto_instants", "instant_id", instants, none, first)

    def _add_arguments(self, builder: TraceBuilder, table: str, key: str, begin: Int64, end: Int64, first: int) -> None:
        """Append the arguments of slices or instants that have any; they are rendered when they are read."""
        annotated = self.found.tables["annotated"]["event"]
        correlations = self.found.tables["correlations"]
        if not len(annotated) and not len(correlations["event"]):
            return
        row_of = np.full(len(self.ts) + 1, -1, np.int64)
        row_of[annotated] = np.arange(len(annotated))
        correlated = np.full(len(self.ts) + 1, -1, np.int64)
        correlated[correlations["event"]] = np.arange(len(correlations["event"]))
        has = (row_of[begin] >= 0) | (row_of[end] >= 0) | (correlated[begin] >= 0) | (correlated[end] >= 0)
        rows = np.flatnonzero(has)
        if not len(rows):
            return
        one, other = row_of[begin[rows]], row_of[end[rows]]
        number = np.where(correlated[begin[rows]] >= 0, correlated[begin[rows]], correlated[end[rows]])
        reader = self.found.reader
        builder.append(
            table,
            **{key: first + rows},
            correlation=Column.derived(len(rows), lambda: self._correlation_texts(number)),
            arguments=Column.derived(len(rows), lambda: _objects(reader.arguments(one, other))),
        )

    def _correlation_texts(self, number: Int64) -> npt.NDArray[np.object_]:
        columns, texts = self.found.tables["correlations"], self.found.texts
        found = []
        for row in number.tolist():
            code = int(columns["text"][row]) if row >= 0 else -1
            found.append("" if row < 0 else texts[code] if code >= 0 else str(int(columns["number"][row])))
        return _objects(found)

    # --- traces of our own ------------------------------------------------------------------------------------

    def _restore(
        self,
        events: Int64,
        flags: npt.NDArray[np.uint32],
        quality: npt.NDArray[np.int32],
        last_known: Int64,
        last_valid: Mask,
    ) -> None:
        """Put back what rows say of themselves."""
        annotated = self.found.tables["annotated"]["event"]
        count = len(annotated)
        if not count or not len(events):
            return
        row_of = np.full(len(self.ts), -1, np.int64)
        row_of[annotated] = np.arange(count)
        at = row_of[events]
        has = np.flatnonzero(at >= 0)
        at = at[has]
        found = own_traces.flags(self.found.reader, count)
        flags[has] = np.where(found.known[at], found.values[at], 0)
        flags[at.size and np.flatnonzero(row_of[events] < 0)] = 0
        found = own_traces.qualities(self.found.reader, count)
        quality[has] = np.where(found.known[at], found.values[at], 0)
        found = own_traces.number(self.found.reader, "last_known_ts", count)
        last_known[has] = np.where(found.known[at], found.values[at], 0)
        last_valid[:] = False
        last_valid[has] = found.known[at]
        last_known[~last_valid] = 0

    def _add_gaps(self, builder: TraceBuilder, begin: Int64, dur: Int64, is_open: Mask, input_id: int) -> None:
        if not len(begin):
            return
        annotated = self.found.tables["annotated"]["event"]
        row_of = np.full(len(self.ts), -1, np.int64)
        row_of[annotated] = np.arange(len(annotated))
        at = row_of[begin]
        columns: dict[str, Any] = {}
        for name in ("lost_count", "first_offset"):
            found = own_traces.number(self.found.reader, name, len(annotated) + 1)
            columns[name] = np.where(at >= 0, found.values[at], 0)
            columns[f"{name}_valid"] = (at >= 0) & found.known[at]
        texts = self.found.texts
        builder.append(
            "gaps",
            track_id=self.lanes[self.track[begin]],
            ts=self.ts[begin] - self.zero,
            dur=dur,
            dur_valid=~is_open,
            cause=[texts[code] if code >= 0 else "" for code in self.events["name"][begin].tolist()],
            input_id=input_id,
            **columns,
        )

    # --- counters ---------------------------------------------------------------------------------------------

    def _add_samples(self, builder: TraceBuilder, input_id: int) -> None:
        samples = self.samples
        rows = np.flatnonzero(self.sample_known)
        if not len(rows):
            return
        bits, is_double, track = samples["bits"][rows], samples["is_double"][rows] != 0, samples["track"][rows]
        integers = bits.view(np.int64)
        values = np.where(is_double, bits.view(np.float64), integers)
        rounded = ~is_double & ((integers > _EXACT) | (integers < -_EXACT))
        builder.add_stat("perfetto_rounded_value", int(np.count_nonzero(rounded)), input_id=input_id)
        for number, node in enumerate(self.tree.nodes):
            if node.counter is None or not (node.counter.is_incremental or node.counter.multiplier != 1):
                continue
            own = np.flatnonzero(track == number)
            if node.counter.is_incremental:
                values[own] = _sums(values[own], samples["series"][rows][own])
            values[own] *= node.counter.multiplier
        ts = self.sample_ts[rows] - self.zero
        lanes = self.tree.counters()[track]
        order = np.lexsort((ts, lanes))
        builder.append("counters", track_id=lanes[order], ts=ts[order], value=values[order])

    def _records(self) -> Table:
        texts, codes = self.found.texts, self.events["name"]
        return Table.from_arrays(
            EVENTS,
            {
                "ts": self.ts,
                "track": self.track,
                "type": self.events["type"],
                "name": [texts[code] if code >= 0 else "" for code in codes.tolist()],
            },
        )


def _objects(texts: list[str]) -> npt.NDArray[np.object_]:
    found = np.empty(len(texts), object)
    found[:] = texts
    return found


def _sums(steps: npt.NDArray[np.float64], series: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """Return the sums of steps, anew for each series, in order of the file."""
    order = np.argsort(series, kind="stable")
    sums = np.cumsum(steps[order])
    starts = np.flatnonzero(np.diff(series[order], prepend=-1))
    before = np.where(starts > 0, sums[starts - 1], 0.0)
    lengths = np.diff(np.append(starts, len(order)))
    found = np.empty(len(steps), np.float64)
    found[order] = sums - np.repeat(before, lengths)
    return found
