"""Slices, instants, counters and flows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lanescope.common.intervals import Intervals, clash, order, overlapping, partially_overlapping
from lanescope.foreign.kineto.emit.tracks import Tracks
from lanescope.foreign.kineto.formats import layout
from lanescope.foreign.kineto.interpret.classes import Classes
from lanescope.foreign.kineto.interpret.joins import Launches, Pairs
from lanescope.trace import Flag, TraceBuilder
from lanescope.wire.trace_events import TraceEvents

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_CLASSES = len(layout.CLASSES)
#: Types of devices in memory instants. Source: PyTorch, c10/core/DeviceType.h.
_CPU_TYPE = 0


@dataclass(slots=True)
class Rows:
    """Rows of the trace by event.

    Attributes:
        ts: int64 [n], time of each event on the trace's axis.
        slices: int64 [slices], the event of each slice.
        slice_of: int64 [n], the slice of each event; -1: none.
        track_of: int64 [n], the lane of each event with a slice or instant; -1: none.
    """

    ts: Int64
    slices: Int64
    slice_of: Int64
    track_of: Int64


def lanes_of(events: TraceEvents, classes: Classes, tracks: Tracks, rows: Int64, ts: Int64) -> Int64:
    """Return the lane of each of ``rows`` (slices), and make those that there are not yet, int64 [n].

    A lane has the strictest nesting that its rows keep: of device work none overlap, of others they are a stack.
    """
    key = events.place[rows].astype(np.int64) * _CLASSES + classes.of[rows]
    present = np.flatnonzero(np.bincount(key, minlength=1))
    compact = np.zeros(int(key.max(initial=0)) + 1, np.int64)
    compact[present] = np.arange(len(present))
    lane = compact[key]
    begin = ts[rows]
    end = begin + np.maximum(events.dur[rows], 0)
    filled = np.flatnonzero(end > begin)
    sort = filled[order(lane[filled], begin[filled], end[filled])]
    is_work = (present % _CLASSES) == layout.WORK
    clashing = _clashing(Intervals(lane, begin, end), sort, is_work)
    free = np.zeros(len(present), np.bool_)
    free[lane[classes.is_free[rows]]] = True
    made = []
    for number, (each, is_clash) in enumerate(zip(present.tolist(), clashing.tolist(), strict=True)):
        place, of = divmod(each, _CLASSES)
        strict = "disjoint" if of == layout.WORK else "nested"
        made.append(tracks.lane(place, of, "free" if is_clash or free[number] else strict))
    return np.array(made, np.int64)[lane] if made else np.empty(0, np.int64)


def _clashing(intervals: Intervals, sort: Int64, is_work: Mask) -> Mask:
    """Return the lanes with rows that overlap (of device work) or cross (others), bool [lanes].

    Args:
        intervals: the rows by lane.
        sort: those with a length, in order.
        is_work: which lanes have device work.
    """
    found = np.zeros(len(is_work), np.bool_)
    promises = np.where(is_work, np.uint8(1), np.uint8(2))
    if not clash(intervals, sort, promises):
        return found
    ordered = intervals.take(sort)
    shared = np.zeros(len(is_work), np.bool_)
    shared[ordered.group[overlapping(ordered)]] = True
    found[is_work] = shared[is_work]
    others = ordered.take(~is_work[ordered.group])
    found[others.group[partially_overlapping(others)]] = True
    return found


def place_slices(events: TraceEvents, classes: Classes, tracks: Tracks, rows: Int64, ts: Int64) -> Rows:
    """Return the lane and the number of the slice of each complete event of ``rows``; the first slice has number 0."""
    lane = lanes_of(events, classes, tracks, rows, ts)
    slice_of = np.full(len(events), -1, np.int64)
    slice_of[rows] = np.arange(len(rows))
    track_of = np.full(len(events), -1, np.int64)
    track_of[rows] = lane
    return Rows(ts, rows, slice_of, track_of)


def add_slices(builder: TraceBuilder, events: TraceEvents, made: Rows, rows: Int64) -> None:
    """Add a slice for each complete event of ``rows``, the next ones of ``made.slices``."""
    dur, ts = events.dur[rows], made.ts[rows]
    has_dur = events.has_dur[rows]
    known = has_dur & (dur >= 0)
    flags = np.zeros(len(rows), np.uint32)
    if not known.all():
        flags[~has_dur] = int(Flag.UNFINISHED)
        flags[has_dur & (dur < 0)] = int(Flag.NEGATIVE_DURATION)
    unfinished = flags == int(Flag.UNFINISHED)
    first = builder.append(
        "slices",
        track_id=made.track_of[rows],
        ts=ts,
        dur=dur,
        dur_valid=known,
        name=_codes(builder.names.codes([*events.names, "(no name)"]), events.name[rows]),
        category=_codes(builder.categories.codes([*events.categories, ""]), events.category[rows]),
        flags=flags if flags.any() else 0,
        last_known_ts=ts if unfinished.any() else None,
        **({"last_known_ts_valid": unfinished} if unfinished.any() else {}),
    )
    assert not len(rows) or first == made.slice_of[rows[0]]


def _codes(table: npt.NDArray[np.int32], codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return codes of the trace for codes of the file, of which -1 is the last of the table."""
    found: npt.NDArray[np.int32] = table[codes]
    return found


def add_instants(builder: TraceBuilder, events: TraceEvents, classes: Classes, tracks: Tracks, made: Rows) -> Int64:
    """Add the instants, each on the lane of operators of its thread or that of the profiler; return their events."""
    is_instant = events.of_phase("i") | events.of_phase("I") | events.of_phase("R")
    rows = np.flatnonzero(is_instant & events.has_ts)
    if not len(rows):
        return rows
    # What has no number for a thread comes from the profiler itself.
    named = np.array([isinstance(place.process, str) or place.process is None for place in events.places], np.bool_)
    of = np.where(named[events.place[rows]], layout.SPAN, classes.of[rows])
    lane = np.array(
        [
            tracks.lane(place, each, "nested")
            for place, each in zip(events.place[rows].tolist(), of.tolist(), strict=True)
        ],
        np.int64,
    )
    builder.append(
        "instants",
        track_id=lane,
        ts=made.ts[rows],
        name=_codes(builder.names.codes([*events.names, "(no name)"]), events.name[rows]),
        category=_codes(builder.categories.codes([*events.categories, ""]), events.category[rows]),
    )
    made.track_of[rows] = lane
    return rows


def add_memory(builder: TraceBuilder, events: TraceEvents, tracks: Tracks, made: Rows) -> None:
    """Add two counters for each device that memory instants are about: allocated and reserved."""
    kinds, numbers = (_of_events(events, name) for name in ("device_type", "device_number"))
    for column, name in (("allocated", "allocated memory"), ("reserved", "reserved memory")):
        values = events.values[column]
        keep = events.has_ts[values.event] & (events.phase[values.event] == ord("i"))
        event, value = values.event[keep], values.value[keep]
        groups: dict[tuple[int, int, int], int] = {}
        track = np.empty(len(event), np.int64)
        for row, each in enumerate(event.tolist()):
            key = kinds.get(each, -1), numbers.get(each, -1), int(events.place[each])
            if key not in groups:
                process = events.places[key[2]].process
                on_device = key[0] != _CPU_TYPE and key[1] >= 0
                # Without rows of that device the counters belong to the process that allocates.
                parent = tracks.device_group(key[1]) if on_device else None
                if parent is None:
                    parent = tracks.group(process, on_device=False)
                    label = f"{name} of device {key[1]}" if on_device else name
                else:
                    label = name
                groups[key] = tracks.counter(parent, label, "bytes")
            track[row] = groups[key]
        if len(event):
            builder.append("counters", track_id=track, ts=made.ts[event], value=value.astype(np.float64))


def _of_events(events: TraceEvents, column: str) -> dict[int, int]:
    values = events.values[column]
    return dict(zip(values.event.tolist(), values.value.tolist(), strict=True))


def add_counters(builder: TraceBuilder, events: TraceEvents, tracks: Tracks, classes: Classes, made: Rows) -> None:
    """Add the values of counter events: a track for each name and series of a process."""
    event, key, value = events.series
    keep = events.has_ts[event]
    event, key, value = event[keep], key[keep], value[keep]
    if not len(event):
        return
    found: dict[tuple[int, int, int], int] = {}
    track = np.empty(len(event), np.int64)
    for row, (each, series) in enumerate(zip(event.tolist(), key.tolist(), strict=True)):
        of = int(events.place[each]), int(events.name[each]), series
        if of not in found:
            on_device = bool(classes.device_places[of[0]])
            parent = tracks.group(events.places[of[0]].process, on_device=on_device)
            name = events.names[of[1]] if of[1] >= 0 else "counter"
            text = events.texts[series]
            found[of] = tracks.counter(parent, f"{name} {text}".strip(), "")
        track[row] = found[of]
    builder.append("counters", track_id=track, ts=made.ts[event], value=value)


def add_flows(builder: TraceBuilder, launches: Launches, made: Rows) -> None:
    """Add a flow from each call to the device work that it started."""
    keep = (made.slice_of[launches.call] >= 0) & (made.slice_of[launches.work] >= 0)
    call, work = launches.call[keep], launches.work[keep]
    if len(call):
        builder.append(
            "flows",
            kind="submit",
            src_track_id=made.track_of[call],
            src_ts=made.ts[call],
            dst_track_id=made.track_of[work],
            dst_ts=made.ts[work],
            src_slice_id=made.slice_of[call],
            dst_slice_id=made.slice_of[work],
        )


def add_backward(
    builder: TraceBuilder, events: TraceEvents, classes: Classes, tracks: Tracks, pairs: Pairs, made: Rows
) -> int:
    """Add a flow from each operator to its backward one; return how many ends no row starts at."""
    if not len(pairs.start):
        return 0
    ends = []
    for rows in (pairs.start, pairs.end):
        found = _starting_at(events, classes, made, rows)
        lane = np.array([tracks.lane(place, layout.OP, "nested") for place in events.place[rows].tolist()], np.int64)
        ends.append((rows, found, lane))
    (start, first, src), (end, last, dst) = ends
    builder.append(
        "flows",
        kind="dependency",
        src_track_id=src,
        src_ts=made.ts[start],
        dst_track_id=dst,
        dst_ts=made.ts[end],
        src_slice_id=first,
        src_slice_id_valid=first >= 0,
        dst_slice_id=last,
        dst_slice_id_valid=last >= 0,
    )
    return int(np.count_nonzero(first < 0) + np.count_nonzero(last < 0))


def _starting_at(events: TraceEvents, classes: Classes, made: Rows, rows: Int64) -> Int64:
    """Return the innermost operator that starts where each event lies, its slice; -1: none, int64 [n]."""
    operators = made.slices[classes.of[made.slices] == layout.OP]
    operators = operators[np.isin(made.ts[operators], made.ts[rows])]
    sort = np.lexsort((-events.dur[operators], made.ts[operators], events.place[operators]))
    operators = operators[sort]
    place, ts = events.place[operators].astype(np.int64), made.ts[operators]
    known = dict(zip(zip(place.tolist(), ts.tolist(), strict=True), operators.tolist(), strict=True))
    wanted = zip(events.place[rows].tolist(), made.ts[rows].tolist(), strict=True)
    found = np.array([known.get(each, -1) for each in wanted], np.int64)
    return np.where(found >= 0, made.slice_of[found], -1)
