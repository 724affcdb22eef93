"""Slices and points of the core as rows of the trace. Most columns are computed when they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.aie import schema
from lanescope.devices.aie.formats.layout import EVENT_PC, FLOW_KINDS, MODE2
from lanescope.devices.aie.interpret.notes import EXECUTION
from lanescope.trace import Column, Flag, ticks_to_ns

if TYPE_CHECKING:
    from fractions import Fraction

    from lanescope.devices.aie.emit.tracks import TileTracks
    from lanescope.source import Capture
    from lanescope.trace import Table, TraceBuilder
    from lanescope.trace.streams import TracePart

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]

_AFTER_GAP, _ANY_FLAG = 1 << 4, 15 << 3  # in a tag; the second: all but slot and segment
_LOOP = FLOW_KINDS.index("loop")
_LAST_WITH_PC = FLOW_KINDS.index("new_pc")


@frozen_class
class ShardRows:
    """Rows of a shard, and its state after them.

    Attributes:
        slices: begin, length and tag; None: none.
        points: tick, count, value and tag; None: none.
        segments: recording in the shard -> recording in the dump.
        may_have_flags: whether any tag of the shard so far has more than slot and segment.
    """

    slices: tuple[npt.NDArray[Any], ...] | None
    points: tuple[npt.NDArray[Any], ...] | None
    segments: I64
    may_have_flags: bool

    def has_flags(self, tag: U32) -> bool:
        """Return whether any of these tags has more than slot and segment."""
        return self.may_have_flags and bool(np.bitwise_or.reduce(tag) & _ANY_FLAG)

    def tags(self, tag: U32) -> U32:
        """Return tags with the recordings of the dump in place of those of the shard."""
        if np.array_equal(self.segments, np.arange(len(self.segments))):
            return tag
        moved: U32 = (self.segments.astype(np.uint32) << 7)[tag >> 7] | (tag & 127)
        return moved


class RowEmitter:
    """Appends slices and points to the trace.

    Args:
        builder: where to.
        tracks: the tracks of the lanes.
        frequency: of the module clock in Hz; None: times are cycles.
    """

    def __init__(self, builder: TraceBuilder, tracks: TileTracks, frequency: Fraction | None) -> None:
        self._builder = builder
        self._tracks = tracks
        self._frequency = frequency
        self.part: TracePart | None = None  # the part of the timeline whose slices are made; None: all

    def to_ts(self, ticks: I64) -> I64:
        """Return trace time for ticks since Start."""
        return ticks if self._frequency is None else ticks_to_ns(ticks, self._frequency)

    def add_slices(self, begin: I64, duration: I64, tag: U32, rows: ShardRows) -> None:
        """Append slices: int64 [n] ticks since their Start and lengths, uint32 [n] tags of the shard."""
        count, segments = len(tag), rows.segments
        begins = self._tracks.begins_of(segments)
        if begins is not None:
            begin = begin + begins[tag >> 7]
        builder, lanes, frequency = self._builder, self._tracks.lanes, self._frequency
        track, name, category = lanes.track, lanes.name, lanes.category
        first_lanes = self._tracks.lanes_of(segments)
        if self.part is not None:
            first, last = self.to_ts(begin), self.to_ts(begin + duration)
            is_near = self.part.holds(first, last)
            far = ~is_near
            self.part.leave_out(track[first_lanes[tag[far] >> 7] | tag[far] & 7], first[far], last[far])
            begin, duration, tag = begin[is_near], duration[is_near], tag[is_near]
            count = len(tag)
            if not count:
                return

        def by_lane(of: Callable[[I64], npt.NDArray[Any]]) -> Callable[[], npt.NDArray[Any]]:
            """Return what makes a column from lanes: where tags are few, by a table of them."""

            def make() -> npt.NDArray[Any]:
                if len(first_lanes) << 7 > count:
                    return of(first_lanes[tag >> 7] | tag & 7)
                tags = np.arange(len(first_lanes) << 7)
                return np.take(of(first_lanes[tags >> 7] | tags & 7), tag)

            return make

        ticks, length = Column.array(begin), Column.array(duration)
        ts, dur = ticks, length
        if frequency is not None:
            ts = start = Column.derived(count, lambda: ticks_to_ns(begin, frequency))
            dur = Column.derived(count, lambda: ticks_to_ns(begin + duration, frequency) - start.values)
        quality: Any = "exact"
        flags: Any = 0
        if rows.has_flags(tag):
            qualities = builder.dictionary("slices", "quality")
            codes = qualities.codes(schema.QUALITIES)
            bits = np.array([0, Flag.TRUNCATED, Flag.AFTER_GAP, Flag.TRUNCATED | Flag.AFTER_GAP], np.uint32)
            quality = Column.derived(count, lambda: codes[tag >> 5 & 3], dictionary=qualities)
            flags = Column.derived(count, lambda: bits[tag >> 3 & 3])
        builder.append(
            "slices",
            track_id=Column.derived(count, by_lane(lambda lane: track[lane])),
            ts=ts,
            dur=dur,
            ts_ticks=ticks,
            dur_ticks=length,
            name=Column.derived(count, by_lane(lambda lane: name[lane]), dictionary=builder.names),
            category=Column.derived(count, by_lane(lambda lane: category[lane]), dictionary=builder.categories),
            quality=quality,
            flags=flags,
        )

    def add_points(self, tick: I64, times: I64, value: U32, tag: U32, *, has_flags: bool) -> None:
        """Append what modes 1 and 2 record: its order is known, its time has a lower bound."""
        count = len(tag)
        begins = self._tracks.begins_of(None)
        if begins is not None:
            tick = tick + begins[tag >> 7]
        builder, frequency, lanes = self._builder, self._frequency, self._tracks.lanes
        track, name, category = lanes.track, lanes.name, lanes.category

        first_lanes = self._tracks.lanes_of(np.arange(len(self._tracks.members)))

        def lane() -> I64:
            lanes: I64 = first_lanes[tag >> 7] | tag & 7
            return lanes

        flags: Any = 0
        if has_flags:
            flags = Column.derived(count, lambda: np.where(tag & _AFTER_GAP, Flag.AFTER_GAP, 0).astype(np.uint32))
        first = builder.append(
            "instants",
            track_id=Column.derived(count, lambda: track[lane()]),
            ts=Column.array(tick) if frequency is None else Column.derived(count, lambda: ticks_to_ns(tick, frequency)),
            name=Column.derived(count, lambda: name[lane()], dictionary=builder.names),
            category=Column.derived(count, lambda: category[lane()], dictionary=builder.categories),
            quality="estimated",
            flags=flags,
        )
        modes = self._tracks.modes.values
        has_flow = bool((modes == EXECUTION).any())
        if has_flow and bool((modes == 1).any()):
            is_flow = modes[tag >> 7] == EXECUTION
            pc_rows, flow_rows = np.flatnonzero(~is_flow), np.flatnonzero(is_flow)
            self._add_pc_events(Column.array(first + pc_rows), times[pc_rows], value[pc_rows])
            self._add_flow(Column.array(first + flow_rows), times[flow_rows], value[flow_rows], tag[flow_rows])
        elif has_flow:
            self._add_flow(_counting(first, count), times, value, tag)
        else:
            self._add_pc_events(_counting(first, count), times, value)

    def _add_pc_events(self, instant: Column, cycles: I64, value: U32) -> None:
        count = len(instant)
        if not count:
            return
        self._builder.append(
            "aie_pc_events",
            instant_id=instant,
            pc=Column.derived(count, lambda: EVENT_PC["pc"].of(value).astype(np.int32)),
            cycles=Column.array(cycles),
            mask=Column.derived(count, lambda: EVENT_PC["mask"].of(value).astype(np.uint8)),
        )

    def _add_flow(self, instant: Column, times: I64, value: U32, tag: U32) -> None:
        count = len(instant)
        if not count:
            return
        kinds = self._builder.dictionary("aie_program_flow", "kind")
        codes = kinds.codes(FLOW_KINDS)
        kind = (tag & 7).astype(np.uint8)
        loop = MODE2["loop"]
        has_pc, is_loop = kind <= _LAST_WITH_PC, kind == _LOOP
        self._builder.append(
            "aie_program_flow",
            instant_id=instant,
            kind=Column.derived(count, lambda: codes[kind], dictionary=kinds),
            pc=Column.derived(count, lambda: np.where(has_pc, value, 0).astype(np.int32), valid=has_pc),
            count=Column.array(times),
            trips=Column.derived(
                count, lambda: np.where(is_loop, loop["count"].of(value), 0).astype(np.int64), valid=is_loop
            ),
            is_wrapped=Column.derived(count, lambda: is_loop & (loop["is_wrapped"].of(value) != 0), valid=is_loop),
        )


def _counting(first: int, count: int) -> Column:
    return Column.derived(count, lambda: np.arange(first, first + count, dtype=np.int64))


def register_records(builder: TraceBuilder, capture: Capture, header: int | None) -> None:
    """Let frames be read from the capture when somebody asks for them; ``header``: that of a stream without one."""
    reader, size = capture.main.reader(), capture.main.size

    def frames() -> Table:
        from lanescope.devices.aie.formats.raw_frames import Words, frames

        return frames(Words.of(reader.at(0, size), header))

    builder.records("aie.frame", frames)
