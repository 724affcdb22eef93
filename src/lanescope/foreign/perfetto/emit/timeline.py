"""Tables of the timeline from the events of a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.foreign.perfetto.emit import tracks
from lanescope.foreign.perfetto.emit.flow_rows import FlowRows
from lanescope.foreign.perfetto.formats.packets import Columns, Found
from lanescope.foreign.perfetto.interpret import clocks, legacy, own_traces
from lanescope.foreign.perfetto.interpret.clocks import ClockMap
from lanescope.foreign.perfetto.interpret.rows import BEGIN, END, INSTANT, Rows, found_on_the_way, from_events
from lanescope.foreign.perfetto.schema import DETAILS, STATS
from lanescope.trace import TimeBase, TraceBuilder
from lanescope.trace.column import Column, Dictionary, look_up
from lanescope.trace.schema import QUALITIES, Flag
from lanescope.trace.streams import TracePart

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Integers beyond are rounded in a counter.
_EXACT = 1 << 53
#: So many places are looked at at a time.
_LOOKED_AT = 1 << 14


class Timeline:
    """One file's events on their way to the tables.

    Args:
        found: what the file has.
        clock: moves times to the clock of the trace.
        rows: slices and instants; None: they are found here, from all events.
    """

    def __init__(self, found: Found, clock: ClockMap, rows: Rows | None) -> None:
        self.found = found
        tables = found.tables
        self.samples = tables["samples"]
        self.clock = clock
        self.sample_ts, self.sample_known = clock.moved(self.samples["ts"], self.samples["clock"])
        messages = tables["messages"]
        listed = zip(*(messages[name].tolist() for name in ("field", "sequence", "offset", "size")), strict=True)
        self.described = tracks.read(listed, found.message_bytes)
        self.legacy: legacy.LegacyEvents | None = None
        if rows is None:
            self.legacy, track = self._legacy()
            rows = from_events(found, clock, track, self.legacy)
        self.rows = rows
        self.tree = self._tree()
        self.is_own = self.tree.time is not None
        self.zero = 0 if self.is_own else self._earliest()
        #: The row in ``slices`` of each slice that was found; None: the same.
        self.slice_id: Int64 | None = None
        self.part: TracePart | None = None  # the part of the timeline whose slices are made; None: all
        self._kept: Int64 | None = None

    @classmethod
    def of(cls, found: Found) -> Timeline | None:
        """Return the timeline of a file; None where only all of its events together tell."""
        tables = found.tables
        clock = ClockMap(tables["clocks"], tables["snapshots"], found.primary_clock, found.used_clocks)
        if found.rows is None:
            return cls(found, clock, None)
        rows = found_on_the_way(found, clock)
        return None if rows is None else cls(found, clock, rows)

    # --- the parts --------------------------------------------------------------------------------------------

    def _legacy(self) -> tuple[legacy.LegacyEvents | None, npt.NDArray[np.int32]]:
        """Return what the older events say, and the track of each event."""
        columns, events = self.found.tables["legacy"], self.found.tables["events"]
        track = events["track"]
        if not len(columns["event"]):
            return None, track
        sequences = self.found.tables["tracks"]["sequence"].tolist()
        uuids = self.found.tables["tracks"]["uuid"].tolist()
        pids = np.full(len(sequences), -1, np.int64)
        for number, (uuid, sequence) in enumerate(zip(uuids, sequences, strict=True)):
            key = self.described.threads.get(sequence) if not uuid else None
            described = self.described.tracks.get(uuid)
            pid = key.pid if key is not None else described.pid if described is not None else None
            pids[number] = -1 if pid is None else pid
        found = legacy.read(columns, events, self.found, pids[track[columns["event"]]])
        if found.event:
            track = track.copy()
            track[np.array(found.event)] = np.array(found.row, np.int32) + len(sequences)
        return found, track

    def _tree(self) -> tracks.TrackTree:
        table = self.found.tables["tracks"]
        further = [] if self.legacy is None else list(zip(self.legacy.rows, self.legacy.names, strict=True))
        names = self.found.names
        described = self.described.tracks
        return tracks.TrackTree(
            self.described,
            table["uuid"].tolist(),
            table["sequence"].tolist(),
            [(key, names[name] if name >= 0 else "") for key, name in further],
            {
                number: names[name]
                for number, (uuid, name) in enumerate(
                    zip(table["uuid"].tolist(), self.rows.first_name.tolist(), strict=False)
                )
                if uuid not in described and name >= 0
            },
        )

    def _earliest(self) -> int:
        firsts = [] if self.rows.earliest is None else [self.rows.earliest]
        if self.sample_known.any():
            firsts.append(int(self.sample_ts[self.sample_known].min()))
        return min(firsts, default=0)

    def times(self) -> list[tuple[Int64, Mask]]:
        """Return times of samples, and of events if any may be unknown, and which of them are known."""
        events = self.rows.events
        return [(self.sample_ts, self.sample_known)] + ([] if events is None else [(events.ts, events.known)])

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
        """Add the clocks that the file relates to its own, with their readings.

        A reading is as good as the readings agree: their distances differ by how long the clocks took to read, and by
        how far they ran apart between the first one and the last. Of a single one the error is not known.
        """
        for number, reading in self.clock.readings():
            name = clocks.NAMES.get(number, f"clock {number}")
            device = "host" if number == clocks.MONOTONIC else ""
            clock = builder.clock(name=name, device=device, frequency=1_000_000_000)
            error = int(np.ptp(reading.to - reading.of)) if len(reading.of) > 1 else None
            for ticks, ts in zip(reading.of.tolist(), reading.to.tolist(), strict=True):
                builder.anchor(clock_id=clock, ticks=ticks, ts=ts - self.zero, error_ns=error)

    # --- rows -------------------------------------------------------------------------------------------------

    def draw(self, builder: TraceBuilder, input_id: int) -> None:
        """Append all rows."""
        has_samples = np.bincount(self.samples["track"][self.sample_known], minlength=len(self.tree.nodes))
        has_rows = np.flatnonzero(self.rows.has_rows).tolist()
        if self.is_own:
            has_rows = [number for number in has_rows if not self._has_only_findings(number)]
        self.tree.make(builder, has_rows, np.flatnonzero(has_samples).tolist(), input_id)
        self.lanes = self.tree.lanes()
        self._names = _codes(builder.names, self.found.names)
        self._categories = _codes(builder.categories, self.found.categories)
        self._add_slices(builder, input_id)
        self._add_instants(builder)
        self._add_samples(builder, input_id)
        FlowRows(self).add(builder, input_id)
        builder.add_stat("perfetto_end_unmatched", len(self.rows.lone["ts"]), input_id=input_id)

    def _has_only_findings(self, number: int) -> bool:
        """Return whether a number is that of the track of findings, and has nothing else."""
        if not self.tree.notes.is_of_findings(self.tree.nodes[number].uuid):
            return False
        instants = self.rows.instants
        on_it = instants["category"][instants["track"] == number]
        is_finding = on_it == _code_of(self.found.categories, own_traces.FINDING)
        return bool(is_finding.all()) and not (self.rows.slices["track"] == number).any()

    def _add_slices(self, builder: TraceBuilder, input_id: int) -> None:
        rows, zero = self.rows, self.zero
        slices = rows.slices
        count = len(slices["ts"])
        if not count:
            return
        columns: Columns = {
            "track_id": look_up(self.lanes, slices["track"]),
            "ts": slices["ts"] - zero if zero else slices["ts"],
            "dur": slices["dur"],
            "name": self._names(slices["name"]),
        }
        if len(slices["category"]):
            columns["category"] = self._categories(slices["category"])
        is_annotated = self.is_own and len(rows.annotated) > 0
        is_open: Mask = slices["dur"] < 0 if rows.open else np.zeros(0, np.bool_)
        restored = np.zeros(count if is_annotated else 0, np.bool_)
        if len(rows.crossing) or is_annotated or rows.open:
            columns["flags"] = np.zeros(count, np.uint32)
            columns["flags"][rows.crossing] = np.uint32(Flag.PARTIAL_OVERLAP)
        if is_annotated or rows.open:
            is_open = is_open if len(is_open) else np.zeros(count, np.bool_)
            columns["dur_valid"] = ~is_open
            columns["flags"][is_open] |= np.uint32(Flag.UNFINISHED)
            columns["quality"] = np.zeros(count, np.int32)
            columns["last_known_ts"] = np.where(is_open, look_up(rows.last, slices["track"]) - zero, 0)
            columns["last_known_ts_valid"] = is_open
        if is_annotated:
            restored = self._restore(self._annotations(BEGIN, count), columns)
        kept = self._keep_gaps(builder, columns, input_id) if self.is_own else None
        if kept is not None:
            columns = {name: column[kept] for name, column in columns.items()}
            is_open, restored = (each[kept] if len(each) else each for each in (is_open, restored))
            count = len(kept)
        unfinished = np.count_nonzero(is_open & ~restored) if len(restored) else np.count_nonzero(is_open)
        builder.add_stat("perfetto_unfinished_slice", int(unfinished), input_id=input_id)
        if self.part is not None and count:
            columns = self._only_near(self.part, columns)
            count = len(columns["ts"])
        if count:
            quality = self._qualities(builder, columns.pop("quality", None))
            first = builder.append("slices", quality=quality, **columns)
            self._add_arguments(builder, "perfetto_slices", "slice_id", first)

    def _only_near(self, part: TracePart, columns: Columns) -> Columns:
        """Return the columns of the slices in a part of the timeline; others are numbered behind all, for flows."""
        begin = columns["ts"]
        end = begin + np.maximum(columns["dur"], 0)
        if "last_known_ts" in columns:
            end = np.where(columns["dur_valid"], end, np.maximum(begin, columns["last_known_ts"]))
        is_near = part.holds(begin, end)
        part.leave_out(columns["track_id"][~is_near], begin[~is_near], end[~is_near])
        count, total = len(begin), len(self.rows.slices["ts"])
        rows = np.arange(count) if self._kept is None else self._kept
        near = rows[is_near]
        self.slice_id = np.full(total, -1, np.int64)
        self.slice_id[rows] = total + rows
        self.slice_id[near] = np.arange(len(near))
        self._kept = near
        return {name: column[is_near] for name, column in columns.items()}

    def _keep_gaps(self, builder: TraceBuilder, columns: Columns, input_id: int) -> Int64 | None:
        """Append the gaps that lanescope drew; return the slices that are none, None: all."""
        category = self.rows.slices["category"]
        is_gap = category == _code_of(self.found.categories, own_traces.GAP)
        if not len(category) or not is_gap.any():
            return None
        self._add_gaps(builder, columns, is_gap, input_id)
        kept = np.flatnonzero(~is_gap)
        self.slice_id = np.full(len(is_gap), -1, np.int64)
        self.slice_id[kept] = np.arange(len(kept))
        self._kept = kept
        return kept

    def _qualities(self, builder: TraceBuilder, places: npt.NDArray[np.int32] | None) -> Any:
        if places is None or not places.any():
            return QUALITIES[0]
        codes = builder.dictionary("slices", "quality").codes(QUALITIES)
        return codes[places]

    def _add_instants(self, builder: TraceBuilder) -> None:
        instants = self.rows.instants
        kept: Any = slice(None)
        if self.is_own:
            categories = self.found.categories
            is_finding = instants["category"] == _code_of(categories, own_traces.FINDING)
            builder.add_stat("perfetto_drawn_finding", int(np.count_nonzero(is_finding)), input_id=0)
            kept = np.flatnonzero(~(is_finding | (instants["category"] == _code_of(categories, own_traces.FLOW))))
        count = len(instants["ts"][kept])
        if not count:
            return
        columns: Columns = {"quality": np.zeros(count, np.int32), "flags": np.zeros(count, np.uint32)}
        if self.is_own and len(self.rows.annotated):
            self._restore(self._annotations(INSTANT, len(instants["ts"]))[kept], columns)
        first = builder.append(
            "instants",
            track_id=look_up(self.lanes, instants["track"][kept]),
            ts=instants["ts"][kept] - self.zero,
            name=self._names(instants["name"][kept]),
            category=self._categories(instants["category"][kept]),
            quality=self._qualities(builder, columns["quality"]),
            flags=columns["flags"],
        )
        self._add_arguments(builder, "perfetto_instants", "instant_id", first, kept)

    def _add_arguments(self, builder: TraceBuilder, table: str, key: str, first: int, kept: Any = None) -> None:
        """Append the arguments of slices or instants that have any; they are rendered when they are read."""
        rows = self.rows
        if not len(rows.annotated) and not len(rows.correlated):
            return
        if table == "perfetto_slices":
            count, kept = len(rows.slices["ts"]), self._kept
            roles = (BEGIN, END)
        else:
            count, roles = len(rows.instants["ts"]), (INSTANT, INSTANT)
            kept = kept if isinstance(kept, np.ndarray) else None
        alone = _alone(rows.annotated, rows.correlated, roles[0]) if kept is None else None
        one = other = number = None  # the same as the rows; none at all
        has_arguments, has_correlation = len(rows.annotated) > 0, len(rows.correlated) > 0
        if alone is not None:
            own = alone >> 2
        else:
            places = [rows.annotated, rows.correlated]
            if not any(_has_role(column, role) for column in places for role in set(roles)):
                return
            owners = [_by_row(rows.annotated, role, count) for role in roles]
            numbers = [_by_row(rows.correlated, role, count) for role in roles]
            if kept is not None:
                owners, numbers = ([column[kept] for column in columns] for columns in (owners, numbers))
            number = np.where(numbers[0] >= 0, *numbers)
            own = np.flatnonzero((owners[0] >= 0) | (owners[1] >= 0) | (number >= 0))
            one, number = owners[0][own].astype(np.int64), number[own].astype(np.int64)
            other = None if roles[0] == roles[1] else owners[1][own].astype(np.int64)
        if not len(own):
            return
        size = len(own)
        builder.append(
            table,
            **{key: first + own if first else own},
            correlation=Column.derived(size, lambda: self._correlation_texts(size, number)) if has_correlation else "",
            arguments=Column.derived(size, lambda: self._argument_texts(size, one, other)) if has_arguments else "{}",
        )

    def _argument_texts(self, size: int, one: Int64 | None, other: Int64 | None) -> npt.NDArray[np.object_]:
        one = np.arange(size) if one is None else one
        other = np.full(size, -1, np.int64) if other is None else other
        return _objects(self.found.reader.arguments(one, other))

    def _correlation_texts(self, size: int, number: Int64 | None) -> npt.NDArray[np.object_]:
        columns, texts = self.found.tables["correlations"], self.found.texts
        found = []
        for row in range(size) if number is None else number.tolist():
            code = int(columns["text"][row]) if row >= 0 else -1
            found.append("" if row < 0 else texts[code] if code >= 0 else str(int(columns["number"][row])))
        return _objects(found)

    # --- traces of our own ------------------------------------------------------------------------------------

    def _annotations(self, role: int, count: int) -> Int64:
        """Return the annotations of slices or instants, int64 [count], -1: none."""
        return _by_row(self.rows.annotated, role, count).astype(np.int64)

    def _restore(self, at: Int64, columns: Columns) -> Mask:
        """Put back flags, quality and last known times; return which rows have any of them, bool [n].

        Args:
            at: int64 [n], annotations of each row, -1: none.
            columns: those of the rows.
        """
        count = len(self.rows.annotated)
        restored = np.zeros(len(at), np.bool_)
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

    def _add_gaps(self, builder: TraceBuilder, columns: Columns, is_gap: Mask, input_id: int) -> None:
        count = len(self.rows.annotated)
        at = self._annotations(BEGIN, len(is_gap))[is_gap]
        facts: dict[str, Any] = {}
        for name in ("lost_count", "first_offset"):
            found = own_traces.number(self.found.reader, name, count + 1)  # the last one is that of none
            facts[name] = np.where(at >= 0, found.values[at], 0)
            facts[f"{name}_valid"] = (at >= 0) & found.known[at]
        names = self.found.names
        given = {name: columns[name][is_gap] for name in ("track_id", "ts", "dur", "dur_valid") if name in columns}
        causes = [names[code] if code >= 0 else "" for code in self.rows.slices["name"][is_gap].tolist()]
        builder.append("gaps", **given, cause=causes, input_id=input_id, **facts)

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


def _by_row(places: Int64, role: int, count: int) -> npt.NDArray[np.int32]:
    """Return which of the places is that of each row in a role, int32 [count], -1: none."""
    found = np.full(count, -1, np.int32)
    own = np.flatnonzero((places >= 0) & (places & 3 == role))
    found[places[own] >> 2] = own
    return found


def _has_role(places: Int64, role: int) -> bool:
    """Return whether any of the places is one of a role."""
    pieces = (places[at : at + _LOOKED_AT] for at in range(0, len(places), _LOOKED_AT))
    return any(bool(((piece >= 0) & (piece & 3 == role)).any()) for piece in pieces)


def _alone(annotated: Int64, correlated: Int64, role: int) -> Int64 | None:
    """Return the places of annotations and correlation IDs if they are the same, in order of the rows; else None."""
    if len(annotated) and len(correlated) and not np.array_equal(annotated, correlated):
        return None
    places = annotated if len(annotated) else correlated
    before = -1
    for at in range(0, len(places), _LOOKED_AT):  # in the processor's caches
        piece = places[at : at + _LOOKED_AT]
        # Of rows without a place, and of those in another role, the last bits differ.
        is_alone = piece[0] > before and (piece & 3 == role).all() and (piece[1:] > piece[:-1]).all()
        if not is_alone:
            return None
        before = int(piece[-1])
    return places


def _code_of(texts: list[str], text: str) -> int:
    """Return the code of a text, -2 where there is none."""
    return texts.index(text) if text in texts else -2


def _codes(dictionary: Dictionary, texts: list[str]) -> Callable[[npt.NDArray[np.int32]], npt.NDArray[np.int32]]:
    """Return what turns codes of the file, -1 for none, into those of a dictionary."""
    mapping = dictionary.codes(texts)
    is_same = bool((mapping == np.arange(len(mapping))).all())

    def translate(codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        if len(codes) and int(codes.min()) < 0:
            return look_up(np.append(mapping, np.int32(dictionary.code(""))), codes)
        return codes if is_same else look_up(mapping, codes)

    return translate


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
