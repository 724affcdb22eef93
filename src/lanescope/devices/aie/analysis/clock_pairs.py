"""What joins the counters of tiles: broadcasts that started them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from lanescope.common.intervals import Ints
from lanescope.common.time_domains import TrackRoots, without_place
from lanescope.families.clock_pairs import ClockPairs, Orders, TimeDomain
from lanescope.trace import Table, Trace, ticks_to_ns

_LACKS = "use --reading-error: how far apart a broadcast reaches two tiles is not recorded"
_UNKNOWN = "decode with the configuration of the design: nothing else shows that one broadcast started both tiles"


def clock_pairs(trace: Trace) -> Iterator[ClockPairs]:
    """Yield for each tile the broadcasts that started it together with the reference of its run.

    Each unit counts from its own Start, so all of them show the same time then. A broadcast reaches tiles some cycles
    apart, which no record shows: the error of these readings is not known.
    """
    rows, segments = trace.details.get("aie_alignment"), trace.details.get("aie_segments")
    if rows is None or segments is None or not len(rows):
        return
    tracks = trace.tracks
    groups = rows.values("track_id")
    name_of = TrackRoots(tracks).run_name
    began = {
        (int(track), int(index)): int(cycles)
        for track, index, cycles in zip(
            segments.values("track_id"), segments.values("segment_index"), segments.values("begin_cycles"), strict=True
        )
    }
    references: dict[tuple[int, str, str], int] = {}
    found: dict[tuple[int, int], list[int]] = {}
    # The reference of a run need not be its first row.
    for at in np.flatnonzero(rows.values("is_reference")).tolist():
        references.setdefault(_run(rows, at), int(groups[at]))
    aligned = rows.valid("is_aligned") & rows.values("is_aligned")
    for at in range(len(rows)):
        group, index = int(groups[at]), int(rows.values("segment_index")[at])
        reference = references.get(_run(rows, at), int(groups[0]))
        if reference != group:
            moments = found.setdefault((reference, group), [])
            if aligned[at] and (group, index) in began:
                moments.append(began[group, index])
    lanes = tracks.values("kind") == "lane"
    for (reference, group), moments in found.items():
        clocks = []
        for track in (reference, group):
            mine = lanes & tracks.valid("parent_id") & (tracks.values("parent_id") == track)
            clocks.append(
                TimeDomain(f"{name_of(track)}{without_place(str(tracks.values('name')[track]))}", np.flatnonzero(mine))
            )
        times = _on_axis(trace, np.array(moments, np.int64), group)
        lacks = _LACKS if moments else _UNKNOWN
        yield ClockPairs(clocks[0], clocks[1], Orders.none(), Orders.none(), lacks, readings=(times, times))


def _run(rows: Table, at: int) -> tuple[int, str, str]:
    names = ("segment_index", "start_event", "stop_event")
    index, start, stop = (rows.values(name)[at] for name in names)
    return int(index), str(start), str(stop)


def _on_axis(trace: Trace, cycles: Ints, track: int) -> Ints:
    """Return cycles of a tile's counter on the axis of the trace, by the anchor of its clock."""
    clock = int(trace.tracks.values("clock_id")[track])
    at = np.flatnonzero(trace.anchors.values("clock_id") == clock)
    zero, ts = (int(trace.anchors.values(name)[at[0]]) if len(at) else 0 for name in ("ticks", "ts"))
    clocks = trace.clocks
    if trace.time.time_unit == "ns" and clocks.valid("frequency_num")[clock] and clocks.valid("frequency_den")[clock]:
        hertz = Fraction(int(clocks.values("frequency_num")[clock]), int(clocks.values("frequency_den")[clock]))
        return ticks_to_ns(cycles - zero, hertz) + ts
    return cycles - zero + ts
