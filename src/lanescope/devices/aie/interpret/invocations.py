"""Kernel invocations: from a cycle with INSTR_EVENT_0 to the next one with INSTR_EVENT_1.

The slices of the slots that matter are picked out as they go by. Slices of one slot come in order, those of different
slots as they end, so what a slot does at some cycle is known once it has ended a later slice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie.config import SLOTS, Config, Unit
from lanescope.devices.aie.formats import events
from lanescope.trace import Flag
from lanescope.trace.schema import QUALITIES

if TYPE_CHECKING:
    from lanescope.trace import TraceBuilder

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]

#: Slices of one recording that wait for others to be known. No pulse is asserted while that many others pass by.
_WAITING = 1 << 20
_NEVER = np.iinfo(np.int64).max
_EVENTS = ("INSTR_EVENT_0", "INSTR_EVENT_1", "INSTR_VECTOR")
_BEGIN, _END, _VECTOR = range(3)
# Kinds of moments in the order in which they count within one cycle.
_CLOSES, _GAP, _OPENS = range(3)
_NO_ROWS = np.empty((0, 3), np.int64)


def watched(known: Config, unit: Unit | None) -> tuple[int, ...] | None:
    """Return the slots of INSTR_EVENT_0, INSTR_EVENT_1 and INSTR_VECTOR (-1: not watched), None without the first two.

    Args:
        known: the configuration.
        unit: the unit; None: nothing is known of it.
    """
    if unit is None or unit.module != "core":
        return None
    numbers = [events.number(known.device, "core", name) for name in _EVENTS]
    slots = tuple(unit.slots.index(number) if number in unit.slots else -1 for number in numbers)
    return None if min(slots[:2]) < 0 else slots


class Lane(NamedTuple):
    """Where the invocations of a recording go: their track, its group, the tick at which the recording begins."""

    track: int
    group: int
    begin: int


class _Recording:
    """State of one segment so far.

    Attributes:
        lane: where its invocations go.
        end: the cycle with which it ends; None: it runs.
        has_vector: whether INSTR_VECTOR is watched.
        rows: for each event, slices that are not used up yet, int64 [n, 3]: begin, end, quality.
        ends: for each event, where its last slice ended: later ones begin there or after.
        gaps: begins of gaps that are not used up yet.
        settled: up to here all is used up.
        opened: begin of the invocation that runs, and its quality; None: none runs.
        vector: vector cycles of that invocation before ``settled``.
        made: invocations so far.
        unpaired: events that begin or end none.
        first_unpaired: cycle of the first of them.
        cut: invocations whose end was not recorded.
        first_cut: cycle with which the first of them begins.
    """

    def __init__(self, lane: Lane, *, has_vector: bool) -> None:
        self.lane = lane
        self.end: int | None = None
        self.has_vector = has_vector
        self.rows: list[list[I64]] = [[], [], []]
        self.ends = [0, 0, 0]
        self.gaps: list[int] = []
        self.settled = 0
        self.opened: tuple[int, int] | None = None
        self.vector = 0
        self.made = 0
        self.unpaired = 0
        self.first_unpaired: int | None = None
        self.cut = 0
        self.first_cut: int | None = None

    def waiting(self) -> int:
        return sum(len(part) for parts in self.rows for part in parts)


class Invocations:
    """Finds the invocations of all recordings, and appends them to the trace as far as they are known.

    Args:
        builder: where to.
        to_ts: from ticks to trace time.
        input_id: the input.
    """

    def __init__(self, builder: TraceBuilder, to_ts: Callable[[I64], I64], input_id: int) -> None:
        self._builder = builder
        self._to_ts = to_ts
        self._input = input_id
        self._recordings: dict[int, _Recording] = {}
        self._touched: set[int] = set()
        self._events = np.full(1, -1, np.int8)  # event of a lane, -1: none that matters

    @property
    def is_active(self) -> bool:
        """Whether there is a recording to look into."""
        return bool(self._recordings)

    def add_recording(self, segment: int, slots: Sequence[int], lane: Lane) -> None:
        """Look for invocations in a recording; ``slots`` as ``watched`` gives them, ``lane`` is where they go."""
        self._recordings[segment] = _Recording(lane, has_vector=slots[_VECTOR] >= 0)
        room = SLOTS * (segment + 1) + 1
        if room > len(self._events):
            more = np.full(max(room, 2 * len(self._events)) - len(self._events), -1, np.int8)
            self._events = np.concatenate([self._events, more])
        for event, slot in enumerate(slots):
            if slot >= 0:
                self._events[SLOTS * segment + slot] = event

    def end_recording(self, segment: int, tick: int) -> None:
        """Note the cycle with which a recording ends, before the last of its slices are taken."""
        if segment in self._recordings:
            self._recordings[segment].end = tick

    def add_gaps(self, gaps: Iterable[tuple[int, int]]) -> None:
        """Note gaps, recording and begin of each, before the slices that follow them are taken."""
        for segment, at in gaps:
            if segment in self._recordings:
                self._recordings[segment].gaps.append(at)

    def take(self, begin: I64, duration: I64, tag: U32) -> None:
        """Take slices as the core writes them; ``settle`` uses them.

        Args:
            begin: int64 [n], first cycle.
            duration: int64 [n], cycles.
            tag: uint32 [n]: recording << 7 | quality << 5 | flags << 3 | slot.
        """
        # The last element, -1, represents all lanes after the relevant ones.
        events = np.take(self._events, tag >> 7 << 3 | tag & 7, mode="clip")
        for number in range(len(_EVENTS)):
            rows = np.flatnonzero(events == number)
            for segment, own in _split(rows, tag[rows] >> 7):
                part = np.empty((len(own), 3), np.int64)
                part[:, 0] = begin[own]
                part[:, 1] = part[:, 0] + duration[own]
                part[:, 2] = tag[own] >> 5 & 3
                recording = self._recordings[segment]
                recording.rows[number].append(part)
                recording.ends[number] = int(part[-1, 1])
                self._touched.add(segment)

    def settle(self) -> None:
        """Append what is known for certain by the slices so far: all there are of the recordings that ended.

        Recordings of one unit share a lane, so each is finished before the next one is looked at.
        """
        ended = {number for number, recording in self._recordings.items() if recording.end is not None}
        for segment in sorted(self._touched | ended):
            if segment in ended:
                self._finish(self._recordings.pop(segment))
            else:
                self._finalize(self._recordings[segment])
        self._touched.clear()

    def finish(self) -> None:
        """Append what is left."""
        for recording in self._recordings.values():
            self._finish(recording)
        self._recordings.clear()

    def _finish(self, recording: _Recording) -> None:
        self._finalize(recording, up_to=_NEVER)
        if recording.opened is not None:
            end = np.array([max(recording.end or 0, recording.opened[0])])
            self._append(recording, np.array([recording.opened]), end, None, is_complete=np.zeros(1, np.bool_))
        for name, count, first in (
            ("aie_unpaired_event", recording.unpaired, recording.first_unpaired),
            ("aie_truncated_invocation", recording.cut, recording.first_cut),
        ):
            if count:
                ts = None if first is None else int(self._to_ts(np.array([first + recording.lane.begin]))[0])
                self._builder.add_stat(name, count, track_id=recording.lane.group, input_id=self._input, first_ts=ts)

    def _finalize(self, recording: _Recording, up_to: int | None = None) -> None:
        """Use what is known for certain, and keep the rest."""
        if up_to is None:
            relevant = recording.ends if recording.has_vector else recording.ends[:2]
            up_to = min(relevant) if recording.waiting() < _WAITING else max(relevant)
        if up_to <= recording.settled:
            return
        all_rows = [np.concatenate(parts) if parts else _NO_ROWS for parts in recording.rows]
        rows = [part[: np.searchsorted(part[:, 0], up_to)] for part in all_rows]
        vector = rows[_VECTOR]
        self._pair(recording, rows[_BEGIN], rows[_END], [gap for gap in recording.gaps if gap < up_to], vector, up_to)
        # A vector slice that goes on is looked at again, from here.
        recording.rows = [[all_rows[_BEGIN][len(rows[_BEGIN]) :]], [all_rows[_END][len(rows[_END]) :]]]
        recording.rows.append([all_rows[_VECTOR][np.searchsorted(all_rows[_VECTOR][:, 1], up_to, side="right") :]])
        recording.gaps = [gap for gap in recording.gaps if gap >= up_to]
        recording.settled = up_to

    def _pair(
        self, recording: _Recording, begins: I64, ends: I64, gaps: Sequence[int], vector: I64, up_to: int
    ) -> None:
        at = np.concatenate([ends[:, 0], np.array(gaps, np.int64), begins[:, 0]])
        kind = np.repeat([_CLOSES, _GAP, _OPENS], [len(ends), len(gaps), len(begins)])
        quality = np.concatenate([ends[:, 2], np.zeros(len(gaps), np.int64), begins[:, 2]])
        order = np.lexsort((kind, at))
        at, kind, quality = at[order], kind[order], quality[order]
        before = np.concatenate([[_CLOSES if recording.opened is None else _OPENS], kind[:-1]])
        opens = (kind == _OPENS) & (before != _OPENS)
        closes = (kind != _OPENS) & (before == _OPENS)
        # Several cycles in a row are several pulses, of which one counts.
        extra = int((ends[:, 1] - ends[:, 0]).sum() + (begins[:, 1] - begins[:, 0]).sum()) - len(begins) - len(ends)
        odd = np.flatnonzero(~opens & ~closes & (kind != _GAP))
        recording.unpaired += extra + len(odd)
        if len(odd) and recording.first_unpaired is None:
            recording.first_unpaired = int(at[odd[0]])
        first = np.stack([at[opens], quality[opens]], axis=1)
        if recording.opened is not None:
            first = np.concatenate([np.array([recording.opened]), first])
        count = int(np.count_nonzero(closes))
        busy = _Busy(vector, recording.settled)
        if count:
            cycles = None
            if recording.has_vector:
                cycles = busy.before(at[closes]) - busy.before(first[:count, 0])
                cycles[0] += recording.vector
            begun = np.stack([first[:count, 0], np.maximum(first[:count, 1], quality[closes])], axis=1)
            self._append(recording, begun, at[closes], cycles, is_complete=kind[closes] == _CLOSES)
            recording.vector = 0
        recording.opened = None if len(first) == count else (int(first[-1, 0]), int(first[-1, 1]))
        if recording.opened is not None and recording.has_vector and up_to != _NEVER:
            edges = busy.before(np.array([recording.opened[0], up_to]))
            recording.vector += int(edges[1] - edges[0])

    def _append(
        self, recording: _Recording, begun: I64, end: I64, vector: I64 | None, *, is_complete: npt.NDArray[np.bool_]
    ) -> None:
        builder, count = self._builder, len(end)
        begin, end = begun[:, 0] + recording.lane.begin, end + recording.lane.begin
        ts, stop = self._to_ts(begin), self._to_ts(end)
        qualities = builder.dictionary("slices", "quality").codes(QUALITIES)
        first = builder.append(
            "slices",
            track_id=recording.lane.track,
            ts=ts,
            dur=stop - ts,
            ts_ticks=begin,
            dur_ticks=end - begin,
            name="kernel",
            category="invocation",
            quality=qualities[begun[:, 1]],
            flags=np.where(is_complete, 0, Flag.TRUNCATED).astype(np.uint32),
        )
        cycles = np.where(is_complete, end - begin, 0)
        has_vector = is_complete & (vector is not None)
        vector = np.zeros(count, np.int64) if vector is None else vector
        builder.append(
            "aie_invocations",
            slice_id=first + np.arange(count),
            ordinal=recording.made + 1 + np.arange(count),
            cycles=cycles,
            cycles_valid=is_complete,
            vector_cycles=vector,
            vector_cycles_valid=has_vector,
            vector_share=vector / np.maximum(cycles, 1),
            vector_share_valid=has_vector,
            is_complete=is_complete,
        )
        recording.made += count
        cut = np.flatnonzero(~is_complete)
        recording.cut += len(cut)
        if len(cut) and recording.first_cut is None:
            recording.first_cut = int(begun[cut[0], 0])


def _split(rows: I64, segments: npt.NDArray[np.integer[Any]]) -> list[tuple[int, I64]]:
    """Return the rows of each recording, in order."""
    if not len(rows):
        return []
    if segments[0] == segments.min() == segments.max():
        return [(int(segments[0]), rows)]
    order = np.argsort(segments, kind="stable")
    found, first = np.unique(segments[order], return_index=True)
    return list(zip(found.tolist(), np.split(rows[order], first[1:]), strict=True))


class _Busy:
    """Asserted time of an event, from its ordered slices, int64 [n, 3]; time before ``after`` does not count."""

    def __init__(self, rows: I64, after: int) -> None:
        self._begin = np.maximum(rows[:, 0], after)
        self._end = np.maximum(rows[:, 1], after)
        self._sum = np.concatenate([[0], np.cumsum(self._end - self._begin)])

    def before(self, at: I64) -> I64:
        """Return the cycles before each of some cycles, int64 [n]."""
        count = np.searchsorted(self._begin, at)
        over = np.zeros(len(at), np.int64)
        has_any = count > 0
        over[has_any] = np.maximum(self._end[count[has_any] - 1] - at[has_any], 0)
        result: I64 = self._sum[count] - over
        return result
