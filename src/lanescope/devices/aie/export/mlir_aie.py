"""What mlir-aie's own tools write: the JSON of its trace parser, and the text of its trace summary.

The JSON is one array of Chrome events: a process for each traced unit, a thread for each slot, begin and end of each
stretch of cycles in which a slot is asserted; of mode 1 a point for each cycle, numbered in order. What their format
has no place for is left out: times at which tiles started, gaps, unknown ends, execution traces.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.errors import UsageError
from lanescope.trace import Trace

I64 = npt.NDArray[np.int64]

SLOTS = 8
_TYPES = ("core", "mem", "shim", "memtile")
_EVENT_PC, _EXECUTION = 1, 2
#: Recordings that a message names.
_NAMED = 4
#: Events that are formatted together.
_BLOCK = 1 << 14


@dataclass(slots=True)
class _Unit:
    """A process of their timeline.

    Attributes:
        name: as they call it.
        segments: rows of ``aie_segments``, in order of the file.
        threads: what each slot watches.
    """

    name: str
    segments: list[dict[str, Any]] = field(default_factory=list)
    threads: list[str] = field(default_factory=lambda: ["NONE"] * SLOTS)


class _Timeline:
    """The units of a trace, and which lane is whose slot."""

    def __init__(self, trace: Trace) -> None:
        if "aie_segments" not in trace.details:
            raise UsageError("trace contains no AI Engine data", hint="use another --format")
        self.trace = trace
        inputs = trace.tracks.values("input_id").tolist()
        units: dict[tuple[int, int, int, int], _Unit] = {}
        owner: dict[int, _Unit] = {}
        for row in trace.details["aie_segments"].rows():
            # They read two bits of the type.
            key = (row["packet_type"] & 3, inputs[row["track_id"]], row["row"], row["col"])
            name = f"{_TYPES[key[0]]}_trace for tile{row['row']},{row['col']}"
            unit = units.setdefault(key, _Unit(name))
            unit.segments.append(row)
            owner[row["track_id"]] = unit
        self.units = [unit for kind in range(len(_TYPES)) for key, unit in units.items() if key[0] == kind]
        self.slot = np.full(len(trace.tracks), -1, np.int64)
        self.group = np.where(trace.tracks.valid("parent_id"), trace.tracks.values("parent_id"), -1)
        names = trace.tracks.values("name").tolist()
        for row in trace.details["aie_slots"].rows():
            lane, slot = row["track_id"], row["slot"]
            self.slot[lane] = slot
            owner[int(self.group[lane])].threads[slot] = row["event_name"] or names[lane]


def blocks(trace: Trace) -> Iterator[bytes]:
    """Yield the JSON that mlir-aie's parser writes.

    Raises:
        UsageError: the trace holds nothing of this family.
    """
    timeline = _Timeline(trace)
    lines: list[str] = []
    for pid, unit in enumerate(timeline.units):
        lines.append(json.dumps({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": unit.name}}))
        lines += [
            json.dumps({"name": "thread_name", "ph": "M", "pid": pid, "tid": slot, "args": {"name": name}})
            for slot, name in enumerate(unit.threads)
        ]
    yield ("[" + ",\n".join(lines)).encode()
    slices, points = _Slices(timeline), _Points(timeline)
    for pid, unit in enumerate(timeline.units):
        names = [json.dumps(name) for name in unit.threads]
        # Everything but the time is the same for all ends, or begins, of a slot.
        heads = [f',\n{{"name": {name}, "ts": ' for name in names for _ in "EB"]
        tails = [f', "ph": "{ph}", "pid": {pid}, "tid": {slot}, "args": {{}}}}' for slot in range(SLOTS) for ph in "EB"]
        for ts, is_begin, slot in slices.of(unit):
            kinds = (2 * slot + is_begin).tolist()
            yield "".join([f"{heads[k]}{t}{tails[k]}" for t, k in zip(ts.tolist(), kinds, strict=True)]).encode()
        tails = [f', "ph": "i", "s": "t", "pid": {pid}, "tid": {slot}, "args": {{"pc": ' for slot in range(SLOTS)]
        for ts, slot, pc in points.of(unit):
            triples = zip(ts.tolist(), slot.tolist(), pc.tolist(), strict=True)
            yield "".join([f"{heads[2 * s]}{t}{tails[s]}{at}}}}}" for t, s, at in triples]).encode()
    yield b"]\n"


def events_left_out(trace: Trace) -> Iterator[str]:
    """Yield notes on the segments that the format of ``blocks`` cannot represent: execution traces."""
    tracks, listed = _recordings(trace, _EXECUTION)
    if tracks:
        flow = trace.instants.values("track_id")[trace.details["aie_program_flow"].values("instant_id")]
        count = int(np.isin(trace.tracks.values("parent_id")[flow], tracks).sum())
        yield (
            f"the mlir-aie format cannot represent execution traces (mode 2): {count} events of {listed} omitted; "
            "use -o FILE.pftrace to export them"
        )


def summary_left_out(trace: Trace) -> Iterator[str]:
    """Yield notes on the segments that the summary cannot represent: those without times."""
    for mode, what in ((_EVENT_PC, "event-PC traces (mode 1)"), (_EXECUTION, "execution traces (mode 2)")):
        tracks, listed = _recordings(trace, mode)
        if tracks:
            yield f"invocations are counted where the time is recorded, not in {what}: {listed}"


def _recordings(trace: Trace, mode: int) -> tuple[list[int], str]:
    """Return the tracks of a mode's recordings, and the names of the first ones as text."""
    if "aie_segments" not in trace.details:
        return [], ""
    names = trace.tracks.values("name").tolist()
    tracks = [row["track_id"] for row in trace.details["aie_segments"].rows() if row["mode"] == mode]
    return tracks, ", ".join(names[track] for track in tracks[:_NAMED]) + (", ..." if len(tracks) > _NAMED else "")


class _Slices:
    """Slices of slots, by recording."""

    def __init__(self, timeline: _Timeline) -> None:
        table = timeline.trace.slices
        track = table.values("track_id")
        rows = np.flatnonzero(timeline.slot[track] >= 0)
        self._slot = timeline.slot[track[rows]]
        self._begin = table.values("ts_ticks")[rows]
        self._end = self._begin + table.values("dur_ticks")[rows]
        self._rows = _by_group(timeline.group[track[rows]])

    def of(self, unit: _Unit) -> Iterator[tuple[I64, npt.NDArray[np.bool_], I64]]:
        """Yield time, is it a begin, slot: in their order."""
        base = 0
        for segment, rows in self._by_segment(unit):
            begin, end, slot = self._begin[rows], self._end[rows], self._slot[rows]
            begin, end = begin - segment["begin_cycles"], end - segment["begin_cycles"]
            last = int(end.max())
            # What is still asserted at the end of the stream has no end there.
            ends = end < last if segment is unit.segments[-1] else np.ones(len(end), np.bool_)
            ts = np.concatenate([end[ends], begin]) + base
            is_begin = np.repeat([False, True], [int(ends.sum()), len(begin)])
            slots = np.concatenate([slot[ends], slot])
            order = np.lexsort((slots, is_begin, ts))
            for first in range(0, len(order), _BLOCK):
                part = order[first : first + _BLOCK]
                yield ts[part], is_begin[part], slots[part]
            # They ignore a second Start: time goes on from the last frame.
            base += last - 1

    def _by_segment(self, unit: _Unit) -> Iterator[tuple[dict[str, Any], I64]]:
        """Yield the segments that have slices, with their rows: those of one track lie one after the other."""
        shared: dict[int, list[dict[str, Any]]] = {}
        for segment in unit.segments:
            shared.setdefault(segment["track_id"], []).append(segment)
        for track, segments in shared.items():
            rows = self._rows.get(track)
            if rows is None:
                continue
            edges = np.array([segment["begin_cycles"] for segment in segments[1:]], np.int64)
            of = np.searchsorted(edges, self._begin[rows], side="right")
            order = np.argsort(of, kind="stable")
            bounds = np.searchsorted(of[order], np.arange(1, len(segments)))
            for segment, own in zip(segments, np.split(rows[order], bounds), strict=True):
                if len(own):
                    yield segment, own


class _Points:
    """Events of mode 1, by recording."""

    def __init__(self, timeline: _Timeline) -> None:
        details = timeline.trace.details["aie_pc_events"]
        instants = timeline.trace.instants
        at = details.values("instant_id")
        self._slot = timeline.slot[instants.values("track_id")[at]]
        self._ts = (
            instants.values("ts_ticks")[at] if instants.valid("ts_ticks")[at].all() else instants.values("ts")[at]
        )
        self._pc, self._cycles = details.values("pc"), details.values("cycles")
        self._rows = _by_group(timeline.group[instants.values("track_id")[at]])

    def of(self, unit: _Unit) -> Iterator[tuple[I64, I64, I64]]:
        """Yield number, slot, address: a row for each cycle and slot."""
        base = 0
        for track in dict.fromkeys(segment["track_id"] for segment in unit.segments):
            rows = self._rows.get(track)
            if rows is None:
                continue
            # Rows of one frame share their time.
            is_first = np.concatenate([[True], np.diff(self._ts[rows]) != 0])
            cycles = self._cycles[rows][is_first]
            begin = base + np.cumsum(cycles) - cycles
            base += int(cycles.sum())
            bounds = np.append(np.flatnonzero(is_first), len(rows))
            for index, length in enumerate(cycles.tolist()):
                members = rows[bounds[index] : bounds[index + 1]]
                members = members[np.argsort(self._slot[members], kind="stable")]
                step = max(_BLOCK // len(members), 1)
                for first in range(0, length, step):
                    count = min(step, length - first)
                    ts = np.repeat(begin[index] + first + np.arange(count), len(members))
                    yield ts, np.tile(self._slot[members], count), np.tile(self._pc[members], count)


def _by_group(groups: I64) -> dict[int, I64]:
    """Return the rows of each group, in order."""
    if not len(groups):
        return {}
    order = np.argsort(groups, kind="stable")
    found, first = np.unique(groups[order], return_index=True)
    return dict(zip(found.tolist(), np.split(order, first[1:]), strict=True))


def summary(trace: Trace) -> Iterator[bytes]:
    """Yield the text of mlir-aie's summary: how often each unit's kernel was called, and how long that took.

    Raises:
        UsageError: the trace holds nothing of this family.
    """
    timeline = _Timeline(trace)
    table = trace.details["aie_invocations"]
    group = timeline.group[trace.slices.values("track_id")[table.values("slice_id")]]
    for unit in timeline.units:
        own = np.isin(group, [segment["track_id"] for segment in unit.segments]) & table.values("is_complete")
        cycles = table.values("cycles")[own].tolist()
        lines = [unit.name, f"Total number of full kernel invocations is {len(cycles)}"]
        if cycles:
            average = sum(cycles) / len(cycles)
            lines.append(f"First/Min/Avg/Max cycles is {cycles[0]}/ {min(cycles)}/ {average}/ {max(cycles)}")
        yield ("\n".join(lines) + "\n").encode()
