"""Rows of a trace from the JSON of IKET and FlyDSL: ranges, markers, and the lifetimes of warps."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.cuda.formats import flytrace, iket
from lanescope.devices.cuda.formats.iket_records import Event, Launch, Place
from lanescope.devices.cuda.schema import IKET_MARKS, IKET_RANGES
from lanescope.families.whole_file import DecodeContext
from lanescope.trace import Flag, TraceBuilder

_HZ = 1_000_000_000


def decode(data: memoryview, context: DecodeContext) -> TraceBuilder:
    """Decode a file.

    Raises:
        InputError: it is not a file of IKET.
    """
    launches, bad, wrong = iket.read(data)
    builder = context.builder(frequency=_HZ)
    builder.add_bytes(decoded=len(data))
    builder.add_stat("cuda_iket_unreadable", bad, input_id=0)
    builder.add_stat("cuda_iket_contradicts", wrong, input_id=0)
    making = _Making(builder, context.options["device"] or "GPU", launches, _IKET)
    making.add_all()
    return builder


def decode_flytrace(data: memoryview, context: DecodeContext) -> TraceBuilder:
    """Decode a file of FlyDSL.

    Raises:
        InputError: it is not a file of FlyDSL.
    """
    found = flytrace.read(data)
    builder = context.builder(frequency=_HZ)
    builder.add_bytes(decoded=len(data) - found.bad_bytes)
    builder.add_dropped(unit="record", unit_bytes=1, recorded=found.recorded, dropped=found.dropped)
    for name, count in (
        ("cuda_corrupt_record", found.bad),
        ("cuda_end_unmatched", found.unmatched),
        ("cuda_dropped", found.dropped),
        ("cuda_iket_contradicts", found.wrong),
    ):
        builder.add_stat(name, count, input_id=0)
    clock = _Clock("s_memrealtime", found.hz, 1, "wave")
    making = _Making(builder, context.options["device"] or "GPU", found.launches, clock)
    making.add_all()
    return builder


@frozen_class
class _Clock:
    """The clock of a file, and the word for what has it.

    Attributes:
        name: of the counter.
        hz: its rate.
        step: ticks between two readings that differ.
        lane: warp or wave.
    """

    name: str
    hz: int
    step: int
    lane: str


#: The origin is the file's own: its times are not comparable with those of another file.
_IKET = _Clock("iket", _HZ, iket.RESOLUTION_NS, "warp")


class _Making:
    """The tracks and rows of a file."""

    def __init__(self, builder: TraceBuilder, device: str, launches: list[Launch], clock: _Clock) -> None:
        self._builder, self._launches, self._of = builder, launches, clock
        times = [event.begin for launch in launches for event in (*launch.ranges, *launch.markers, *launch.lifetimes)]
        self._t0 = min(times, default=0)
        self._clock = builder.clock(
            name=clock.name, device=device, frequency=clock.hz, counter_bits=64, resolution_ticks=clock.step
        )
        self._root = builder.track(device, kind="group", role="device", input_id=0)
        self._tracks: dict[Any, int] = {}
        self._ends: dict[int, int] = {}
        self._slices: list[tuple[Any, ...]] = []
        self._marks: list[tuple[Any, ...]] = []
        self._lives: list[tuple[int, int, int]] = []

    def add_all(self) -> None:
        """Take all launches, and add the rows."""
        for number, launch in enumerate(self._launches):
            self._add(number, launch)
        self._finish()

    def _ns(self, ticks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return readings as ns from the first one on, int64 [n]."""
        seconds, rest = np.divmod(ticks - self._t0, self._of.hz)
        found: npt.NDArray[np.int64] = seconds * _HZ + rest * _HZ // self._of.hz
        return found

    def _add(self, number: int, launch: Launch) -> None:
        """Take the events of a launch."""
        events = (*launch.ranges, *launch.markers, *launch.lifetimes)
        title = launch.kernel if launch.grid_id is None else f"{launch.kernel} (grid {launch.grid_id})"
        top = self._track((number,), self._root, title, kind="group", role="launch", sort_key=number)
        for place in sorted(
            {place for event in events for place in (event.place, event.end_place)},
            key=lambda place: (place.sm or 0, place.block, place.warp),
        ):
            self._lane(number, top, place)
        for event in events:
            lane = self._lane(number, top, event.place)
            last = event.begin if event.end is None else max(event.begin, event.end)
            self._ends[lane] = max(self._ends.get(lane, last), last)
        for event in launch.lifetimes:
            assert event.end is not None
            self._lives.append((self._lane(number, top, event.place), event.begin, event.end))
        for event in launch.markers:
            self._marks.append((self._lane(number, top, event.place), event.begin, event.name, number, launch, event))
        for event in launch.ranges:
            lane = self._lane(number, top, event.place)
            is_nested = event.type == iket.PUSH_POP and event.place == event.end_place
            track = lane if is_nested else self._free(number, top, event.place)
            end_lane = None if event.place == event.end_place else self._lane(number, top, event.end_place)
            self._slices.append((track, event, number, launch, lane, end_lane, is_nested))
            self._marks += [(lane, time, event.name, number, launch, event) for time in event.inner]

    def _track(self, key: Any, parent: int, name: str, **of: Any) -> int:
        if key not in self._tracks:
            self._tracks[key] = self._builder.track(name, parent=parent, input_id=0, **of)
        return self._tracks[key]

    def _block(self, number: int, top: int, place: Place) -> int:
        if place.sm is not None:
            name = f"SM {place.sm}"
            top = self._track((number, "sm", place.sm), top, name, kind="group", role="sm", sort_key=place.sm)
        key = (number, "block", place.sm, place.block)
        return self._track(key, top, f"block {place.block}", kind="group", role="block", sort_key=place.block)

    def _lane(self, number: int, top: int, place: Place) -> int:
        if (number, place) in self._tracks:
            return self._tracks[number, place]
        of = {"kind": "lane", "role": "group", "nesting": "nested", "clock_id": self._clock, "sort_key": place.warp}
        return self._track((number, place), self._block(number, top, place), f"{self._of.lane} {place.warp}", **of)

    def _free(self, number: int, top: int, place: Place) -> int:
        of = {"kind": "lane", "role": "async", "nesting": "free", "clock_id": self._clock, "sort_key": place.warp}
        name = f"{self._of.lane} {place.warp} async"
        return self._track((number, place, "async"), self._block(number, top, place), name, **of)

    def _finish(self) -> None:
        """Add the rows."""
        self._add_ranges()
        self._add_marks()
        if self._lives:
            lives = np.array(sorted(self._lives), np.int64)
            self._builder.add_coverage(lives[:, 0], self._ns(lives[:, 1]), self._ns(lives[:, 2]))

    def _add_ranges(self) -> None:
        rows = sorted(self._slices, key=lambda row: (row[0], row[1].begin, -(row[1].end or 0)))
        if not rows:
            return
        events = [row[1] for row in rows]
        begin = np.array([event.begin for event in events], np.int64)
        closed = np.array([event.end is not None for event in events], np.bool_)
        end = np.array([event.begin if event.end is None else event.end for event in events], np.int64)
        dur = end - begin
        is_negative = dur < 0
        last = np.array([self._ends[row[4]] for row in rows], np.int64)
        flags = np.where(closed, 0, int(Flag.UNFINISHED))
        flags |= np.where(is_negative, int(Flag.NEGATIVE_DURATION), 0)
        flags |= np.where(closed & ~is_negative & (dur < 2 * self._of.step), int(Flag.BELOW_RESOLUTION), 0)
        valid = closed & ~is_negative
        first = self._builder.append(
            "slices",
            track_id=np.array([row[0] for row in rows], np.int64),
            ts=self._ns(begin),
            dur=np.where(valid, self._ns(end) - self._ns(begin), 0),
            dur_valid=valid,
            ts_ticks=begin,
            dur_ticks=np.where(valid, dur, 0),
            dur_ticks_valid=valid,
            name=[event.name for event in events],
            category=["region" if row[6] else "async" for row in rows],
            flags=flags.astype(np.uint32),
            last_known_ts=np.where(closed, 0, self._ns(np.maximum(last, begin))),
            last_known_ts_valid=~closed,
        )
        self._builder.append(
            IKET_RANGES.name,
            slice_id=first + np.arange(len(rows), dtype=np.int64),
            **_identity([(row[2], row[3], row[1]) for row in rows]),
            **_optional("end_block", [row[1].end_place.block if row[5] is not None else None for row in rows]),
            **_optional("end_warp", [row[1].end_place.warp if row[5] is not None else None for row in rows]),
        )
        for stat, mask in (
            ("cuda_unfinished_region", ~closed),
            ("cuda_negative_duration", is_negative),
            ("cuda_below_resolution", flags & int(Flag.BELOW_RESOLUTION) != 0),
        ):
            self._builder.add_stat(stat, int(np.count_nonzero(mask)), input_id=0)
        moved = [(first + at, row) for at, row in enumerate(rows) if row[5] is not None and valid[at]]
        if moved:
            self._builder.append(
                "flows",
                kind="signal",
                src_track_id=np.array([row[0] for _, row in moved], np.int64),
                src_ts=self._ns(np.array([row[1].begin for _, row in moved], np.int64)),
                dst_track_id=np.array([row[5] for _, row in moved], np.int64),
                dst_ts=self._ns(np.array([row[1].end for _, row in moved], np.int64)),
                src_slice_id=np.array([slice_id for slice_id, _ in moved], np.int64),
            )

    def _add_marks(self) -> None:
        rows = sorted(self._marks, key=lambda row: (row[0], row[1]))
        if not rows:
            return
        time = np.array([row[1] for row in rows], np.int64)
        first = self._builder.append(
            "instants",
            track_id=np.array([row[0] for row in rows], np.int64),
            ts=self._ns(time),
            ts_ticks=time,
            name=[row[2] for row in rows],
            category="mark",
        )
        self._builder.append(
            IKET_MARKS.name,
            instant_id=first + np.arange(len(rows), dtype=np.int64),
            **_identity([row[3:6] for row in rows]),
        )


def _identity(rows: list[tuple[int, Launch, Event]]) -> dict[str, Any]:
    """Return the columns that ranges and markers have in common, of launch number, launch and event."""
    found: dict[str, Any] = {
        "launch": np.array([number for number, _, _ in rows], np.uint32),
        "kernel": [launch.kernel for _, launch, _ in rows],
        "graph": [launch.graph or "" for _, launch, _ in rows],
        "block": np.array([event.place.block for _, _, event in rows], np.int64),
        "warp": np.array([event.place.warp for _, _, event in rows], np.int64),
        "payload": [event.payload or "" for _, _, event in rows],
        "payload_type": [event.payload_type or "" for _, _, event in rows],
    }
    found |= _optional("grid", [launch.grid_id for _, launch, _ in rows])
    for name in ("sm", "tpc", "gpc"):
        found |= _optional(name, [getattr(event.place, name) for _, _, event in rows])
    return found


def _optional(name: str, values: list[int | None]) -> dict[str, Any]:
    return {
        name: np.array([value or 0 for value in values], np.int64),
        f"{name}_valid": np.array([value is not None for value in values], np.bool_),
    }
