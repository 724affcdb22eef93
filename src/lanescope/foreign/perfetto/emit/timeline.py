"""Tables of the timeline from the events of a file."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.foreign.perfetto.emit import tracks
from lanescope.foreign.perfetto.emit.flow_rows import FlowRows
from lanescope.foreign.perfetto.formats.packets import Columns, Found
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
        self.clock = ClockMap(tables["clocks"], tables["snapshots"], found.primary_clock, found.used_clocks)
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
        columns = [self.ts, self.track, events["type"], events["name"], events["category"]]
        ts, track, kind, name, category = (
            np.ascontiguousarray(column if rows is None else column[rows]) for column in columns
        )
        slices = core.perfetto_pair_slices(ts, track, kind, name, category, len(self.tree.nodes))
        if rows is not None:
            for column in ("begin", "end", "instants", "unmatched"):
                slices[column] = np.where(slices[column] < 0, -1, rows[slices[column]])
        instants = slices["instants"]
        is_lane = np.zeros(len(self.tree.nodes), np.bool_)
        is_lane[slices["track"]] = True
        is_lane[self.track[instants]] = True
        has_samples = np.bincount(self.samples["track"][self.sample_known], minlength=len(self.tree.nodes))
        self.tree.make(builder, np.flatnonzero(is_lane).tolist(), np.flatnonzero(has_samples).tolist(), input_id)
        self.lanes = self.tree.lanes()
        self._names = self._codes(builder, "name")
        self._categories = self._codes(builder, "category")
        self._add_slices(builder, slices, input_id)
        self._add_instants(builder, instants)
        self._add_samples(builder, input_id)
        FlowRows(self).add(builder, input_id)
        builder.add_stat("perfetto_end_unmatched", len(slices["unmatched"]), input_id=input_id)
        builder.records("perfetto.events", self._records)

    def _kept(self) -> Mask:
        """Return the events that are drawn as they are."""
        kept = self.known
        if self.legacy is not None and self.legacy.flow_event:
            kept = kept.copy()
            kept[np.array(self.legacy.flow_event)] = False
        return kept

    def _codes(self, builder: TraceBuilder, column: str) -> npt.NDArray[np.int32]:
        """Return the builder's codes of names or categories, by code of the file; the last one is that of -1."""
        dictionary = builder.dictionary("slices", column)
        texts = self.found.texts
        is_used = np.zeros(len(texts) + 1, np.bool_)
        is_used[self.events[column]] = True
        used = np.flatnonzero(is_used)
        mapping = np.zeros(len(texts) + 1, np.int32)
        mapping[used] = dictionary.codes(texts[code] if code < len(texts) else "" for code in used.tolist())
        return mapping

    def _add_slices(self, builder: TraceBuilder, slices: Columns, input_id: int) -> None:
        if self.legacy is not None and self.legacy.complete:
            self._complete(slices)
        is_open = slices["is_open"].view(np.bool_)
        restored = np.zeros(len(is_open), np.bool_)
        columns = {
            "track_id": self.lanes[slices["track"]],
            "ts": slices["ts"] - self.zero if self.zero else slices["ts"],
            "dur": slices["dur"],
            "dur_valid": ~is_open,
            "flags": slices["crosses"].astype(np.uint32) * np.uint32(Flag.PARTIAL_OVERLAP),
            "name": self._names[slices["name"]],
            "category": self._categories[slices["category"]],
        }
        is_annotated = self.is_own and len(self.found.tables["annotated"]["event"]) > 0
        if is_annotated or is_open.any():
            columns["flags"][is_open] |= np.uint32(Flag.UNFINISHED)
            columns["quality"] = np.zeros(len(is_open), np.int32)
            columns["last_known_ts"] = np.where(is_open, slices["last"] - self.zero, 0)
            columns["last_known_ts_valid"] = is_open
        self.begin, self.end = slices["begin"], slices["end"]
        self.slice_ts, self.slice_dur = slices["ts"], slices["dur"]
        if self.is_own:
            restored = self._restore(self.begin, columns) if is_annotated else restored
            is_gap = slices["category"] == self.code_of(own_traces.GAP)
            if is_gap.any():
                self._add_gaps(builder, self.begin[is_gap], columns, is_gap, input_id)
                kept = np.flatnonzero(~is_gap)
                columns = {name: column[kept] for name, column in columns.items()}
                self.begin, self.end, is_open, restored = (
                    self.begin[kept],
                    self.end[kept],
                    is_open[kept],
                    restored[kept],
                )
                self.slice_ts, self.slice_dur = self.slice_ts[kept], self.slice_dur[kept]
        unfinished = int(np.count_nonzero(is_open & ~restored))
        builder.add_stat("perfetto_unfinished_slice", unfinished, input_id=input_id)
        if len(self.begin):
            quality = self._qualities(builder, columns.pop("quality", None))
            first = builder.append("slices", quality=quality, **columns)
            self._add_arguments(builder, "perfetto_slices", "slice_id", self.begin, self.end, first)

    def _complete(self, slices: Columns) -> None:
        """Give slices of the older form their durations."""
        assert self.legacy is not None
        given = np.full(len(self.ts), -1, np.int64)
        given[np.array(self.legacy.complete)] = np.array(self.legacy.dur, np.int64)
        known = given[slices["begin"]] >= 0
        slices["dur"] = np.where(known, np.minimum(given[slices["begin"]], clocks.LATEST), slices["dur"])
        slices["is_open"] = np.where(known, np.uint8(0), slices["is_open"])

    @cached_property
    def slice_of(self) -> Int64:
        """The slice that each event begins or ends, int64 [events], -1: none."""
        found = np.full(len(self.ts), -1, np.int64)
        ended = np.flatnonzero(self.end >= 0)
        found[self.end[ended]] = ended
        found[self.begin] = np.arange(len(self.begin))
        return found

    def _qualities(self, builder: TraceBuilder, places: npt.NDArray[np.int32] | None) -> Any:
        if places is None or not places.any():
            return QUALITIES[0]
        codes = builder.dictionary("slices", "quality").codes(QUALITIES)
        return codes[places]

    def code_of(self, text: str) -> int:
        """Return the code of a text of the file, -2 where it has none."""
        return self.found.texts.index(text) if text in self.found.texts else -2

    def is_category(self, events: Int64, text: str) -> Mask:
        """Return which events have a category, bool [n]."""
        return np.asarray(self.events["category"][events] == self.code_of(text), np.bool_)

    def _add_instants(self, builder: TraceBuilder, instants: Int64) -> None:
        if self.is_own:
            is_finding = self.is_category(instants, own_traces.FINDING)
            builder.add_stat("perfetto_drawn_finding", int(np.count_nonzero(is_finding)), input_id=0)
            instants = instants[~(is_finding | self.is_category(instants, own_traces.FLOW))]
        if not len(instants):
            return
        columns: Columns = {
            "quality": np.zeros(len(instants), np.int32),
            "flags": np.zeros(len(instants), np.uint32),
        }
        if self.is_own:
            self._restore(instants, columns)
        first = builder.append(
            "instants",
            track_id=self.lanes[self.track[instants]],
            ts=self.ts[instants] - self.zero,
            name=self._names[self.events["name"][instants]],
            category=self._categories[self.events["category"][instants]],
            quality=self._qualities(builder, columns["quality"]),
            flags=columns["flags"],
        )
        none = np.full(len(instants), -1, np.int64)
        self._add_arguments(builder, "perfetto_instants", "instant_id", instants, none, first)

    def _add_arguments(self, builder: TraceBuilder, table: str, key: str, begin: Int64, end: Int64, first: int) -> None:
        """Append the arguments of slices or instants that have any; they are rendered when they are read."""
        annotated = self.found.tables["annotated"]["event"]
        correlations = self.found.tables["correlations"]
        if not len(annotated) and not len(correlations["event"]):
            return
        row_of = self._annotation_of
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

    @cached_property
    def _annotation_of(self) -> Int64:
        """The row of the annotations of each event, int64 [events + 1], -1: none."""
        annotated = self.found.tables["annotated"]["event"]
        found = np.full(len(self.ts) + 1, -1, np.int64)
        found[annotated] = np.arange(len(annotated))
        return found

    def _restore(self, events: Int64, columns: Columns) -> Mask:
        """Put back flags, quality and last known times; return which rows have any of them, bool [n]."""
        count = len(self.found.tables["annotated"]["event"])
        restored = np.zeros(len(events), np.bool_)
        if not count or not len(events):
            return restored
        at = self._annotation_of[events]
        rows = np.flatnonzero(at >= 0)
        at = at[rows]
        reader = self.found.reader
        flags, qualities = own_traces.flags(reader, count), own_traces.qualities(reader, count)
        last = own_traces.number(reader, "last_known_ts", count)
        known = flags.known[at] | qualities.known[at] | last.known[at]
        rows, at = rows[known], at[known]
        restored[rows] = True
        columns["flags"][rows] = flags.values[at]
        columns["quality"][rows] = qualities.values[at]
        if "last_known_ts" in columns:
            columns["last_known_ts"][rows] = last.values[at]
            columns["last_known_ts_valid"] = columns["last_known_ts_valid"].copy()
            columns["last_known_ts_valid"][rows] = last.known[at]
        return restored

    def _add_gaps(self, builder: TraceBuilder, begin: Int64, columns: Columns, is_gap: Mask, input_id: int) -> None:
        count = len(self.found.tables["annotated"]["event"])
        at = self._annotation_of[begin]
        facts: dict[str, Any] = {}
        for name in ("lost_count", "first_offset"):
            found = own_traces.number(self.found.reader, name, count + 1)  # the last one is that of none
            facts[name] = np.where(at >= 0, found.values[at], 0)
            facts[f"{name}_valid"] = (at >= 0) & found.known[at]
        texts = self.found.texts
        builder.append(
            "gaps",
            **{name: columns[name][is_gap] for name in ("track_id", "ts", "dur", "dur_valid")},
            cause=[texts[code] if code >= 0 else "" for code in self.events["name"][begin].tolist()],
            input_id=input_id,
            **facts,
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
