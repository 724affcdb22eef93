"""Tables about the file as a whole, coverage, and stats."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.foreign.kineto.emit.rows import Rows
from lanescope.foreign.kineto.emit.tracks import Tracks
from lanescope.foreign.kineto.formats import layout
from lanescope.foreign.kineto.formats.metadata import Metadata
from lanescope.foreign.kineto.interpret.classes import Classes
from lanescope.trace import TraceBuilder
from lanescope.trace.column import look_up
from lanescope.wire.trace_events import Bit, TraceEvents

Int64 = npt.NDArray[np.int64]

_KNOWN_PHASES = "XiIRCMsftN"
#: Stamps of Unix time begin here: September 2001. What counts from a base never gets so far.
_UNIX_NS = 10**18
#: Below it neighbours of float64 are less than a nanosecond apart, when they are microseconds.
_EXACT_NS = (1 << 42) * 1000


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62 else None


def add_metadata(builder: TraceBuilder, metadata: Metadata) -> None:
    """Add the tables about devices, the run, its groups and the profiler's log."""

    def append(table: str, rows: list[dict[str, Any]]) -> None:
        if not rows:
            return
        columns: dict[str, Any] = {}
        for name in rows[0]:
            values = [row[name] for row in rows]
            if any(value is None for value in values):
                columns[f"{name}_valid"] = [value is not None for value in values]
                values = [0 if value is None else value for value in values]
            columns[name] = np.array(values, object) if isinstance(values[0], str) and name != "level" else values
        builder.append(table, input_id=np.zeros(len(rows), np.int64), **columns)

    append(
        "kineto_devices",
        [
            {
                "device": int(each["id"]),
                "name": str(each.get("name", "")),
                "memory": _whole(each.get("totalGlobalMem")),
                "capability_major": _whole(each.get("computeMajor")),
                "capability_minor": _whole(each.get("computeMinor")),
                "sms": _whole(each.get("numSms")),
                "warp": _whole(each.get("warpSize")),
                "properties": json.dumps(each, default=str),
            }
            for each in metadata.devices
            if abs(each["id"]) < 1 << 62
        ],
    )
    run = metadata.distributed
    append(
        "kineto_runs",
        [
            {
                "rank": _whole(run.get("rank")),
                "world_size": _whole(run.get("world_size")),
                "backend": str(run.get("backend", "")),
                "schema_version": _whole(metadata.values.get("schemaVersion")),
                "base_ns": metadata.base_ns,
                "trace_name": str(metadata.values.get("traceName", "")),
            }
        ],
    )
    append(
        "kineto_groups",
        [
            {
                "name": str(each.get("pg_name", "")),
                "description": str(each.get("pg_desc", "")),
                "backend": str(each.get("backend_config", "")),
                "size": _whole(each.get("pg_size", each.get("group_size"))),
                "ranks": json.dumps(each.get("ranks", []), default=str),
            }
            for each in metadata.groups
        ],
    )
    append("kineto_metadata", [{"key": key, "value": text} for key, text in metadata.texts.items()])
    append("kineto_log", [{"level": level, "message": text} for level, text in metadata.log()])


def recorded_window(events: TraceEvents, classes: Classes, made: Rows) -> tuple[int, int] | None:
    """Return begin and end of what was recorded, by the profiler's own span and the end that it marks; None without.

    The mark may precede the end of the span by some microseconds: the later of both counts.
    """
    spans = made.slices[classes.of[made.slices] == layout.SPAN]
    if not len(spans):
        return None
    begin = int(made.ts[spans].min())
    ends = [int((made.ts[spans] + np.maximum(events.dur[spans], 0)).max())]
    marks = [number for number, name in enumerate(events.names) if name == layout.RECORD_END]
    for mark in marks:
        rows = np.flatnonzero(events.name == mark)
        ends += made.ts[rows[events.has_ts[rows] & (events.phase[rows] != ord("M"))]].tolist()
    return begin, max(ends)


def add_coverage(builder: TraceBuilder, tracks: Tracks, window: tuple[int, int] | None) -> None:
    """Add the recorded time of all lanes."""
    lanes = np.array(sorted(set(tracks.lanes.values())), np.int64)
    if window is not None and window[0] < window[1] and len(lanes):
        builder.add_coverage(lanes, window[0], window[1])


def inexact_floats(absolute_us: npt.NDArray[np.int64], is_whole: npt.NDArray[np.bool_]) -> int:
    """Return how many times, in ns, are not found again when they are read as float64 microseconds.

    Args:
        absolute_us: int64 [n], times as they stand in the file, in ns.
        is_whole: which of them to look at.
    """
    if not len(absolute_us) or max(abs(int(absolute_us.min())), abs(int(absolute_us.max()))) < _EXACT_NS:
        return 0
    times = absolute_us[is_whole]
    whole, rest = np.divmod(times, 1000)
    # Of numbers this large the nearest float is that of the sum: both parts are exact.
    read = whole.astype(np.float64) + rest.astype(np.float64) / 1000
    back = np.rint((read - whole.astype(np.float64)) * 1000).astype(np.int64)
    return int(np.count_nonzero(back != rest))


class Tally:
    """Counts what events lack, and what had to be changed; part by part.

    Attributes:
        sizes: bytes of all events, and of those without a place on the timeline.
        has_slices: whether there are complete events.
        has_times: whether there are events of the timeline with a time.
    """

    def __init__(self) -> None:
        self.sizes = [0, 0]
        self.has_slices = self.has_times = False
        self._inexact = 0
        self._found: dict[str, tuple[int, int | None]] = {}

    def count(self, name: str) -> tuple[int, int | None]:
        """Return how often a stat was counted, and the offset of the first event."""
        return self._found.get(name, (0, None))

    def _add(self, name: str, events: TraceEvents, rows: Int64) -> None:
        if len(rows):
            count, first = self.count(name)
            self._found[name] = count + len(rows), int(events.begin[rows[0]]) if first is None else first

    def add(self, events: TraceEvents, classes: Classes) -> None:
        """Count the next events."""

        def stat(name: str, mask: npt.NDArray[np.bool_]) -> None:
            self._add(name, events, np.flatnonzero(mask))

        # Of healthy events nothing is counted, which their flags tell together.
        any_of, all_of = np.bitwise_or.reduce(events.flags, initial=0), np.bitwise_and.reduce(events.flags)
        phases = set(np.flatnonzero(events.by_phase).tolist())
        unknown = phases.difference(map(ord, _KNOWN_PHASES))
        is_known = ~np.isin(events.phase, [*unknown]) if unknown else np.ones(len(events), np.bool_)
        is_row = events.of_phase("X")
        timed = is_known & ~events.of_phase("M") & ~events.of_phase("N")
        is_slice = is_row & events.has_ts
        if not all_of & Bit.HAS_TIME:
            stat("kineto_missing_time", timed & ~events.has_ts)
        if unknown:
            stat("kineto_unknown_phase", ~is_known)
        stat("kineto_unfinished", is_slice & ~events.has_dur)
        if int(events.dur.min(initial=0)) < 0:
            stat("kineto_negative_duration", is_slice & events.has_dur & (events.dur < 0))
        if any_of & Bit.ROUNDED:
            stat("kineto_rounded_time", events.has(Bit.ROUNDED))
        stat("kineto_odd_duration", is_known & ~is_row & events.has_dur)
        self._add("kineto_other_lane", events, _on_another_lane(events, is_slice))
        stat("kineto_unknown_category", classes.is_unknown & is_slice)
        if any_of & Bit.REPEATED_KEY:
            stat("kineto_repeated_key", events.has(Bit.REPEATED_KEY))
        # Operators of other libraries have arguments of these names with a meaning of their own.
        rows = np.concatenate([_odd(events, name) for name in events.values] or [np.empty(0, np.int64)])
        self._add("kineto_odd_argument", events, np.sort(rows[classes.is_work[rows] & is_slice[rows]]))
        flows = np.flatnonzero(events.of_phase("s") | events.of_phase("f") | events.of_phase("t"))
        backward = np.array([*(name in layout.BACKWARD_FLOWS for name in events.categories), False], np.bool_)
        self._add("kineto_replaced_flow", events, flows[~look_up(backward, events.category[flows])])
        self._inexact += inexact_floats(events.ts, timed & events.has_ts)
        self.has_slices |= bool(is_slice.any())
        self.has_times |= bool((timed & events.has_ts).any())
        self.sizes[0] += int(events.size.sum(dtype=np.int64))
        dropped = ~is_known | (timed & ~events.has_ts)
        self.sizes[1] += int(events.size[dropped].sum(dtype=np.int64)) if dropped.any() else 0

    @property
    def inexact(self) -> int:
        """How many times are not found again when they are read as float64 microseconds."""
        return self._inexact


def _odd(events: TraceEvents, argument: str) -> Int64:
    """Return the events whose argument is of a type that no writer gives it, int64 [n]."""
    odd: Int64 = events.values[argument].odd
    if argument == "bandwidth":  # "N/A" of copies without a duration
        odd = odd[events.dur[odd] != 0]
    if argument == "context" and len(odd):  # a handle of Level Zero as a text, on rows of queues: they have no stream
        odd = odd[events.values["stream"].find(odd)[1]]
    return odd


def add_stats(
    builder: TraceBuilder,
    events: TraceEvents,
    tally: Tally,
    metadata: Metadata,
    *,
    is_absolute: bool,
    has_work: bool,
) -> None:
    """Count what the file lacks, and what had to be changed.

    Args:
        builder: takes the stats.
        events: of which only what is known of the whole file is looked at.
        tally: of all events.
        metadata: what the file says of itself.
        is_absolute: times are Unix time.
        has_work: a device has rows.
    """

    def stat(name: str, count: int, offset: int | None = None) -> None:
        builder.add_stat(name, count, input_id=0, first_offset=offset)

    in_list = [run for run in events.lost if run.is_in_list]
    outside = [run for run in events.lost if not run.is_in_list]
    is_cut = events.ending == "unterminated"
    if is_cut:
        stat("truncated", 1, events.file_size)
        # What the file ends in is not one more fault.
        in_list = [run for run in in_list if run.end != events.file_size]
    stat("kineto_unreadable_event", len(in_list), in_list[0].begin if in_list else None)
    stat("kineto_unreadable_bytes", sum(run.end - run.begin for run in outside), outside[0].begin if outside else None)
    stat("kineto_unreadable_metadata", len(metadata.unreadable), min(metadata.unreadable.values(), default=None))
    stat("kineto_missing_time", *tally.count("kineto_missing_time"))
    stat("kineto_unknown_phase", *tally.count("kineto_unknown_phase"))
    stat("kineto_odd_counter", events.odd_series)
    stat("kineto_unfinished", *tally.count("kineto_unfinished"))
    stat("kineto_negative_duration", *tally.count("kineto_negative_duration"))
    stat("kineto_rounded_time", *tally.count("kineto_rounded_time"))
    stat("kineto_inexact_float", tally.inexact)
    if metadata.base_ns is None and not is_absolute and tally.has_slices:
        stat("kineto_missing_base", 1)
    if metadata.base_ns is not None and metadata.base_ns % layout.BASE_STEP:
        stat("kineto_irregular_base", 1)
    if has_work:
        stat("kineto_device_clock", 1)
    stat("kineto_odd_duration", *tally.count("kineto_odd_duration"))
    stat("kineto_other_lane", *tally.count("kineto_other_lane"))
    stat("kineto_unknown_category", *tally.count("kineto_unknown_category"))
    stat("kineto_odd_argument", *tally.count("kineto_odd_argument"))
    stat("kineto_damaged_text", events.damaged_texts)
    count, offset = tally.count("kineto_repeated_key")
    stat("kineto_repeated_key", count + metadata.repeated, offset)
    stat("kineto_comma", events.extra_commas + events.missing_commas + events.missing_member_commas)
    stat("kineto_repeated_list", max(events.lists - 1, 0))
    if not tally.has_times:
        stat("kineto_empty", 1)


def _on_another_lane(events: TraceEvents, is_slice: npt.NDArray[np.bool_]) -> Int64:
    """Return the kernels and copies that lie on another stream or device than their arguments name, ascending."""
    table = np.array([*(name in layout.KERNELS | layout.COPIES for name in events.categories), False], np.bool_)
    found = []
    for part, argument in enumerate(("device", "stream")):
        numbers = [place[part] for place in events.places]
        is_number = np.array([isinstance(number, int) for number in numbers], np.bool_)
        of_place = np.array([number if isinstance(number, int) else 0 for number in numbers], np.int64)
        values = events.values[argument]
        # Few are on another one; what those are is asked of no others.
        event = values.event[look_up(of_place, events.place[values.event]) != values.value]
        is_work = is_number[events.place[event]] & table[events.category[event]]
        found.append(event[is_work & is_slice[event]])
    return distinct(np.concatenate(found))


def add_accounting(builder: TraceBuilder, decoded: int, tally: Tally) -> None:
    """Add which bytes were read; of those the ones of events that are on the timeline, and of those that are not."""
    builder.add_bytes(decoded=decoded)
    every, dropped = tally.sizes
    builder.add_accounting(
        input_id=0,
        layer=1,
        unit="event byte",
        unit_bytes=1,
        total=decoded,
        decoded=every - dropped,
        padding=decoded - every,
        lost=dropped,
    )


def is_unix(smallest_ns: int) -> bool:
    """Return whether times without a base are Unix time: they were before spring 2024."""
    return smallest_ns >= _UNIX_NS
