"""Occupancy over time, and utilization of instances."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lanescope.analysis.instances import PARENT, combine, residency, units
from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.partition import (
    BUSY,
    IDLE,
    LOST,
    UNRECORDED,
    VACANT,
    WAITING,
    LeafIntervals,
    Partition,
    by_state,
    leaf_intervals,
    partition,
)
from lanescope.analysis.work_classes import CLASSES, COMPUTE, LOAD, STORE, WAIT, classes
from lanescope.common.intervals import INT64_MAX, Ints, covered_length, depth
from lanescope.trace import Column, ColumnSpec, Dictionary, Table, TableSpec, Trace


def spec(unit: str = "ns") -> TableSpec:
    """Return the declaration of steps of activity for a time unit."""
    return TableSpec(
        "occupancy",
        "one interval with a constant count; no rows while the count is 0",
        (
            ColumnSpec("id", "int64", "dense, by what is counted, then time"),
            ColumnSpec(
                "counted", "text", "region whose lanes are counted (innermost regions), or role in angle brackets"
            ),
            ColumnSpec("ts", "int64", "start", unit=unit),
            ColumnSpec("dur", "int64", "duration", unit=unit),
            ColumnSpec("active", "int64", "count in the interval"),
        ),
    )


def utilization_spec(unit: str = "ns") -> TableSpec:
    """Return the declaration of the time of instances for a time unit."""
    return TableSpec(
        "utilization",
        "one instance (an SM, a block, a core): busy + stalled + unknown + vacant = window",
        (
            ColumnSpec("id", "int64", "dense, in drawing order or by number"),
            ColumnSpec("instance", "utf8", "name of the instance"),
            ColumnSpec("instance_id", "int64", "number of the instance; NULL without a number", nullable=True),
            ColumnSpec("groups", "int64", "groups of lanes that ran on it: blocks on an SM"),
            ColumnSpec("lanes", "int64", "lanes that ran on it"),
            ColumnSpec("first_ts", "int64", "first timestamp; NULL without records", nullable=True, unit=unit),
            ColumnSpec("last_ts", "int64", "last timestamp; NULL without records", nullable=True, unit=unit),
            ColumnSpec(f"resident_{unit}", "int64", "time with a resident group", unit=unit),
            ColumnSpec(f"busy_{unit}", "int64", "time in which a lane worked (a region that does not wait)", unit=unit),
            ColumnSpec(f"compute_{unit}", "int64", "time in which a lane computed", unit=unit),
            ColumnSpec(f"load_{unit}", "int64", "time in which a lane loaded", unit=unit),
            ColumnSpec(f"store_{unit}", "int64", "time in which a lane stored", unit=unit),
            ColumnSpec(
                f"stalled_{unit}", "int64", "recorded time with a resident group in which no lane worked", unit=unit
            ),
            ColumnSpec(
                f"unknown_{unit}",
                "int64",
                "time in which no lane is known to have worked, and one is in a gap, unfinished or not recorded",
                unit=unit,
            ),
            ColumnSpec(f"vacant_{unit}", "int64", "time without a resident group", unit=unit),
            ColumnSpec(
                f"tail_{unit}",
                "int64",
                "part of the vacant time after the last group, while other instances continued",
                unit=unit,
            ),
            ColumnSpec(f"window_{unit}", "int64", "time from the first to the last timestamp of the trace", unit=unit),
            ColumnSpec("mean_resident", "float64", "resident groups, averaged over the window", nullable=True),
            ColumnSpec("share", "float64", "busy time as a fraction of the window", nullable=True, unit="1"),
        ),
    )


def residency_spec(unit: str = "ns") -> TableSpec:
    """Return the declaration of groups on each instance over time for a time unit."""
    return TableSpec(
        "residency",
        "one interval with a constant number of groups of lanes on an instance; no rows while the number is 0",
        (
            ColumnSpec("id", "int64", "dense, by instance, then time"),
            ColumnSpec("instance", "utf8", "name of the instance"),
            ColumnSpec("instance_id", "int64", "number of the instance; NULL without a number", nullable=True),
            ColumnSpec("ts", "int64", "start", unit=unit),
            ColumnSpec("dur", "int64", "duration", unit=unit),
            ColumnSpec("active", "int64", "resident groups"),
        ),
    )


def occupancy_stats_spec(unit: str = "ns") -> TableSpec:
    """Return the declaration of average and highest activity for a time unit."""
    return TableSpec(
        "occupancy_stats",
        "average and maximum of one count over time",
        (
            ColumnSpec("id", "int64", "dense, the largest total first"),
            ColumnSpec("counted", "text", "as in `occupancy`"),
            ColumnSpec(f"total_{unit}", "int64", "time spent by all of them", unit=unit),
            ColumnSpec("mean", "float64", "average count over the window", nullable=True),
            ColumnSpec("max", "int64", "maximum count"),
            ColumnSpec(f"time_at_max_{unit}", "int64", "time at the maximum", unit=unit),
            ColumnSpec("first_ts", "int64", "start of the first one", unit=unit),
            ColumnSpec("last_ts", "int64", "end of the last one", unit=unit),
        ),
    )


def occupancy(
    trace: Trace,
    role: str | None = None,
    *,
    time: LaneTime | None = None,
    pieces: LeafIntervals | None = None,
) -> Table:
    """Return how many are at work over time: lanes by region, or resident instances.

    The sum of ``dur * active`` is the time that all of them spent.

    Args:
        trace: the trace.
        role: count instances of this role (see ``Instances``), each from the first to the last thing known of it;
            None: count lanes by the region that they are in.
        time: the trace's ``LaneTime``, when the caller has one already.
        pieces: what ``leaf_intervals`` returned, when the caller has it already.

    Raises:
        UsageError: the trace has no such instances.

    Example:
        >>> from lanescope.trace import TimeBase, TraceBuilder
        >>> builder = TraceBuilder(TimeBase())
        >>> lanes = [builder.track(name, kind="lane", role="group") for name in ("a", "b")]
        >>> _ = builder.append("slices", track_id=lanes, ts=[0, 40], dur=[100, 80], name="mma")
        >>> [(row["ts"], row["dur"], row["active"]) for row in occupancy(builder.finish()).rows()]
        [(0, 40, 1), (40, 60, 2), (100, 20, 1)]
    """
    time = time or LaneTime(trace)
    if role is None:
        pieces = leaf_intervals(time) if pieces is None else pieces
        column = trace.slices.column("name")
        dictionary = column.dictionary or Dictionary()
        key = column.values[pieces.row].astype(np.int64)
        counted = pieces.time._replace(group=key)
    else:
        found = units(time, role)
        dictionary = Dictionary([f"<{role}>"])
        counted = residency(time, found)
        counted = counted._replace(group=np.zeros(len(counted.group), np.int64))
    (what, ts, end), active = depth(counted)
    unit_name = trace.time.time_unit
    return Table(
        spec(unit_name),
        {
            "id": Column.array(np.arange(len(ts))),
            "counted": Column.array(what.astype(np.int32), dictionary=dictionary),
            "ts": Column.array(ts),
            "dur": Column.array(end - ts),
            "active": Column.array(active),
        },
    )


def residency_steps(trace: Trace, role: str = PARENT, *, time: LaneTime | None = None) -> Table:
    """Return how many groups of lanes, blocks of a kernel, are resident on each instance over time.

    Args:
        trace: the trace.
        role: what an instance is, see ``Instances``.
        time: the trace's ``LaneTime``, when the caller has one already.

    Raises:
        UsageError: the trace has no such instances.
    """
    time = time or LaneTime(trace)
    found = units(time, role)
    (unit, ts, end), active = depth(residency(time, found))
    name = trace.time.time_unit
    return Table(
        residency_spec(name),
        {
            "id": Column.array(np.arange(len(ts))),
            "instance": Column.array(found.label_column[unit]),
            "instance_id": found.number_column(unit),
            "ts": Column.array(ts),
            "dur": Column.array(end - ts),
            "active": Column.array(active),
        },
    )


def utilization(
    trace: Trace,
    role: str = PARENT,
    *,
    given: Mapping[str, str] = {},
    time: LaneTime | None = None,
    pieces: LeafIntervals | None = None,
    parts: Partition | None = None,
) -> Table:
    """Return what became of the time of each instance: busy, stalled, unknown, vacant, tail.

    ``busy + stalled + unknown + vacant == window`` for every instance, exactly.

    Args:
        trace: the trace.
        role: what an instance is, see ``Instances``.
        given: patterns of names by kind of work, see ``work_classes.classify``.
        time: the trace's ``LaneTime``, when the caller has one already.
        pieces: what ``leaf_intervals`` returned, when the caller has it already.
        parts: what ``partition`` returned for the same kinds, when the caller has it already.

    Raises:
        UsageError: the trace has no such instances, or ``given`` a kind that is none.
    """
    time = time or LaneTime(trace)
    pieces = leaf_intervals(time) if pieces is None else pieces
    found = units(time, role)
    count = len(found)
    kind_of = classes(trace, pieces, given)
    parts = partition(time, kind_of == CLASSES.index(WAIT), pieces) if parts is None else parts
    hull = residency(time, found)
    combined = combine(parts, found, hull, time.window)
    spent = by_state(combined, count)
    pieces = pieces.outside(time.gaps)
    unit = found.of[pieces.time.group]
    ran = pieces.time._replace(group=unit).take(unit >= 0)
    kind = kind_of[trace.slices.codes("name")[pieces.row]][unit >= 0] if len(pieces) else unit

    def runs(kind_name: str) -> Ints:
        return covered_length(ran.take(kind == CLASSES.index(kind_name)), count)

    groups = np.bincount(hull.group, minlength=count)
    lanes = np.bincount(found.of[found.of >= 0], minlength=count)
    first_ts, last_ts = np.full(count, INT64_MAX, np.int64), np.full(count, -INT64_MAX, np.int64)
    np.minimum.at(first_ts, hull.group, hull.begin)
    np.maximum.at(last_ts, hull.group, hull.end)
    seen = groups > 0
    vacant = combined.take(combined.state == VACANT)
    tail = np.zeros(count, np.int64)
    np.add.at(tail, vacant.lane, np.maximum(vacant.end - np.maximum(vacant.start, last_ts[vacant.lane]), 0))
    resident, present = covered_length(hull, count), np.zeros(count, np.int64)
    np.add.at(present, hull.group, hull.end - hull.begin)
    window = time.window[1] - time.window[0]
    name = trace.time.time_unit
    some = None if window else np.zeros(count, np.bool_)
    return Table(
        utilization_spec(name),
        {
            "id": Column.array(np.arange(count)),
            "instance": Column.array(found.label_column),
            "instance_id": found.number_column(np.arange(count)),
            "groups": Column.array(groups),
            "lanes": Column.array(lanes),
            "first_ts": Column.array(np.where(seen, first_ts, 0), valid=seen),
            "last_ts": Column.array(np.where(seen, last_ts, 0), valid=seen),
            f"resident_{name}": Column.array(resident),
            f"busy_{name}": Column.array(spent[:, BUSY]),
            f"compute_{name}": Column.array(runs(COMPUTE)),
            f"load_{name}": Column.array(runs(LOAD)),
            f"store_{name}": Column.array(runs(STORE)),
            f"stalled_{name}": Column.array(spent[:, WAITING] + spent[:, IDLE]),
            f"unknown_{name}": Column.array(spent[:, LOST] + spent[:, UNRECORDED]),
            f"vacant_{name}": Column.array(spent[:, VACANT]),
            f"tail_{name}": Column.array(tail),
            f"window_{name}": Column.array(np.full(count, window, np.int64)),
            "mean_resident": Column.array(present / (window or 1), valid=some),
            "share": Column.array(spent[:, BUSY] / (window or 1), valid=some),
        },
    )


def occupancy_stats(trace: Trace, table: Table, time: LaneTime | None = None) -> Table:
    """Return what a table of ``occupancy`` amounts to, a row for each thing that is counted.

    Args:
        trace: the trace.
        table: what ``occupancy`` returned for it.
        time: the trace's ``LaneTime``, when the caller has one already.
    """
    first, last = (time or LaneTime(trace)).window
    unit = trace.time.time_unit
    what, active, ts, dur = table.codes("counted"), table.values("active"), table.values("ts"), table.values("dur")
    names = int(what.max(initial=-1)) + 1
    total, most, at_most = (np.zeros(names, np.int64) for _ in range(3))
    begin, end = np.full(names, INT64_MAX, np.int64), np.full(names, -INT64_MAX, np.int64)
    np.add.at(total, what, dur * active)
    np.maximum.at(most, what, active)
    np.add.at(at_most, what, np.where(active == most[what], dur, 0))
    np.minimum.at(begin, what, ts)
    np.maximum.at(end, what, ts + dur)
    shown = np.lexsort((np.arange(names), -total))
    shown = shown[most[shown] > 0]
    window = last - first
    return Table(
        occupancy_stats_spec(unit),
        {
            "id": Column.array(np.arange(len(shown))),
            "counted": Column.array(shown.astype(np.int32), dictionary=table.column("counted").dictionary),
            f"total_{unit}": Column.array(total[shown]),
            "mean": Column.array(
                total[shown] / (window or 1), valid=None if window else np.zeros(len(shown), np.bool_)
            ),
            "max": Column.array(most[shown]),
            f"time_at_max_{unit}": Column.array(at_most[shown]),
            "first_ts": Column.array(begin[shown]),
            "last_ts": Column.array(end[shown]),
        },
    )


def binned(table: Table, code: int, edges: Ints) -> npt.NDArray[np.float64]:
    """Return how many were active on average between each two edges.

    Args:
        table: what ``occupancy`` returned.
        code: code of ``counted``.
        edges: int64 [bins + 1], rising.

    Returns:
        float64 [bins].
    """
    rows = np.flatnonzero(table.codes("counted") == code)
    ts, dur, active = table.values("ts")[rows], table.values("dur")[rows], table.values("active")[rows]
    # The area up to each edge: all stretches that ended, and the part of the one that has not.
    spent = np.concatenate([[0], np.cumsum(dur * active)])
    at = np.searchsorted(ts, edges, "right")
    area = spent[at].astype(np.float64)
    inside = at > 0
    last = at[inside] - 1
    area[inside] -= np.maximum(ts[last] + dur[last] - edges[inside], 0) * active[last]
    found: npt.NDArray[np.float64] = np.diff(area) / np.maximum(np.diff(edges), 1)
    return found
