"""Occupancy over time, and utilization of lanes and instances."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.analysis.analysis_cache import AnalysisCache, clipped, instance_states, instances, once, resident
from lanescope.analysis.instances import PARENT
from lanescope.analysis.partition import BUSY, IDLE, LOST, UNRECORDED, VACANT, WAITING, by_state
from lanescope.analysis.track_tree import text_column
from lanescope.analysis.work_classes import CLASSES, COMPUTE, LOAD, STORE
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Intervals, Ints, covered_length, depth, hulls, sums
from lanescope.trace import Column, ColumnSpec, Dictionary, Table, TableSpec


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


def lanes_spec(unit: str = "ns") -> TableSpec:
    """Return the declaration of the table of lanes for a time unit."""
    return TableSpec(
        "lanes",
        "one lane: busy + idle + unknown = window",
        (
            ColumnSpec("id", "int64", "dense, in drawing order"),
            ColumnSpec("track_id", "int64", "lane"),
            ColumnSpec("lane", "utf8", "path of the lane"),
            ColumnSpec("slices", "int64", "slices, unfinished ones included"),
            ColumnSpec("unfinished", "int64", "slices without a known end"),
            ColumnSpec(f"busy_{unit}", "int64", "time covered by slices, nested slices counted once", unit=unit),
            ColumnSpec(f"idle_{unit}", "int64", "recorded time without a slice", unit=unit),
            ColumnSpec(
                f"unknown_{unit}", "int64", "gaps, time not recorded, and time after an unfinished slice", unit=unit
            ),
            ColumnSpec(f"window_{unit}", "int64", "time from the first to the last timestamp of the trace", unit=unit),
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
            ColumnSpec("mean_resident", "float64", "resident groups, averaged over the attested window", nullable=True),
            ColumnSpec(
                "share", "float64", "busy time within the attested window as a fraction of it", nullable=True, unit="1"
            ),
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
            ColumnSpec("mean", "float64", "average count over the attested window", nullable=True),
            ColumnSpec("max", "int64", "maximum count"),
            ColumnSpec(f"time_at_max_{unit}", "int64", "time at the maximum", unit=unit),
            ColumnSpec("first_ts", "int64", "start of the first one", unit=unit),
            ColumnSpec("last_ts", "int64", "end of the last one", unit=unit),
        ),
    )


def occupancy(shared: AnalysisCache, role: str | None = None) -> Table:
    """Return how many are at work over time: lanes by region, or resident instances.

    The sum of ``dur * active`` is the time that all of them spent.

    Args:
        shared: the trace.
        role: count instances of this role (see ``Instances``), each from the first to the last thing known of it,
            whatever slices a window selects; None: count lanes by the region that they are in, a selected one.

    Raises:
        UsageError: the trace has no such instances.

    Example:
        >>> from lanescope.analysis.analysis_cache import AnalysisCache
        >>> from lanescope.trace import TimeBase, TraceBuilder
        >>> builder = TraceBuilder(TimeBase())
        >>> lanes = [builder.track(name, kind="lane", role="group") for name in ("a", "b")]
        >>> _ = builder.append("slices", track_id=lanes, ts=[0, 40], dur=[100, 80], name="mma")
        >>> [(row["ts"], row["dur"], row["active"]) for row in occupancy(AnalysisCache(builder.finish())).rows()]
        [(0, 40, 1), (40, 60, 2), (100, 20, 1)]
    """
    if role is None:
        names, pieces = shared.names, shared.pieces
        counted = pieces.time._replace(group=shared.name_of[pieces.row])
        if shared.selected is not None:
            counted = counted.take(shared.selected.at(pieces.row))
    else:
        names, counted = Dictionary([f"<{role}>"]), resident(shared, role)
        counted = counted._replace(group=np.zeros(len(counted.group), np.int64))
    (what, ts, end), active = depth(counted)
    return Table(
        spec(shared.unit),
        {
            "id": Column.array(np.arange(len(ts))),
            "counted": Column.array(what.astype(np.int32), dictionary=names),
            "ts": Column.array(ts),
            "dur": Column.array(end - ts),
            "active": Column.array(active),
        },
    )


def residency_steps(shared: AnalysisCache, role: str = PARENT) -> Table:
    """Return how many groups of lanes, blocks of a kernel, are resident on each instance over time.

    Args:
        shared: the trace.
        role: what an instance is, see ``Instances``.

    Raises:
        UsageError: the trace has no such instances.
    """
    found = instances(shared, role)
    (unit, ts, end), active = depth(resident(shared, role))
    return Table(
        residency_spec(shared.unit),
        {
            "id": Column.array(np.arange(len(ts))),
            "instance": Column.array(found.label_column[unit]),
            "instance_id": found.number_column(unit),
            "ts": Column.array(ts),
            "dur": Column.array(end - ts),
            "active": Column.array(active),
        },
    )


def lanes(shared: AnalysisCache) -> Table:
    """Return what became of each lane's time, one row per lane, in drawing order.

    ``busy + idle + unknown == window`` for every lane, exactly.

    Args:
        shared: the trace.

    Example:
        >>> from lanescope.analysis.analysis_cache import AnalysisCache
        >>> from lanescope.trace import TimeBase, TraceBuilder
        >>> builder = TraceBuilder(TimeBase())
        >>> lane = builder.track("core 0", kind="lane", role="core")
        >>> _ = builder.append("slices", track_id=lane, ts=[0, 60], dur=[30, 40], name="mma")
        >>> _ = builder.append("gaps", track_id=lane, ts=40, dur=20, cause="overrun")
        >>> row = next(lanes(AnalysisCache(builder.finish())).rows())
        >>> row["busy_ns"], row["idle_ns"], row["unknown_ns"], row["window_ns"]
        (70, 10, 20, 100)
    """
    tree, slices, unit = shared.time.tree, shared.trace.slices, shared.unit
    tracks = slices.values("track_id")
    known = (tracks >= 0) & (tracks < len(tree))
    shown = tree.lanes
    spent = shared.lane_states[shown]
    return Table(
        lanes_spec(unit),
        {
            "id": Column.array(np.arange(len(shown))),
            "track_id": Column.array(shown),
            "lane": text_column([tree.path(lane) for lane in shown.tolist()]),
            "slices": Column.array(np.bincount(tracks[known], minlength=len(tree))[shown]),
            "unfinished": Column.array(np.bincount(tracks[known & ~slices.valid("dur")], minlength=len(tree))[shown]),
            f"busy_{unit}": Column.array(spent[:, BUSY]),
            f"idle_{unit}": Column.array(spent[:, IDLE]),
            f"unknown_{unit}": Column.array(spent[:, LOST] + spent[:, UNRECORDED]),
            f"window_{unit}": Column.array(np.full(len(shown), shared.window, np.int64)),
        },
    )


@once
def utilization(shared: AnalysisCache, role: str = PARENT) -> Table:
    """Return what became of the time of each instance: busy, stalled, unknown, vacant, tail.

    ``busy + stalled + unknown + vacant == window`` for every instance, exactly. Where a window selects slices, this is
    the time of all of them, of those instances in which a selected one runs.

    Args:
        shared: the trace.
        role: what an instance is, see ``Instances``.

    Raises:
        UsageError: the trace has no such instances, or ``given`` a kind that is none.
    """
    found, hull, parts = instances(shared, role), resident(shared, role), instance_states(shared, role)
    count, name, window = len(found), shared.unit, shared.window
    attested = shared.attested[1] - shared.attested[0]
    spent = by_state(parts, count)
    pieces = shared.known_pieces
    ran = pieces.time._replace(group=found.of[pieces.time.group])
    kind = np.where(ran.group >= 0, shared.kind_of[shared.name_of[pieces.row]], -1)

    def runs(kind_name: str) -> Ints:
        return covered_length(ran.take(kind == CLASSES.index(kind_name)), count)

    groups = np.bincount(hull.group, minlength=count)
    first_ts, last_ts = hulls(hull, count)
    seen = groups > 0
    vacant = parts.take(parts.state == VACANT)
    after_last = np.maximum(vacant.end - np.maximum(vacant.start, last_ts[vacant.lane]), 0)
    there, ran_there = clipped(shared, hull), clipped(shared, parts.take(parts.state == BUSY).time)
    present = sums(there.group, there.end - there.begin, count)
    busy = sums(ran_there.group, ran_there.end - ran_there.begin, count)
    some = None if attested else np.zeros(count, np.bool_)
    table = Table(
        utilization_spec(name),
        {
            "id": Column.array(np.arange(count)),
            "instance": Column.array(found.label_column),
            "instance_id": found.number_column(np.arange(count)),
            "groups": Column.array(groups),
            "lanes": Column.array(np.bincount(found.of[found.of >= 0], minlength=count)),
            "first_ts": Column.array(np.where(seen, first_ts, 0), valid=seen),
            "last_ts": Column.array(np.where(seen, last_ts, 0), valid=seen),
            f"resident_{name}": Column.array(covered_length(hull, count)),
            f"busy_{name}": Column.array(spent[:, BUSY]),
            f"compute_{name}": Column.array(runs(COMPUTE)),
            f"load_{name}": Column.array(runs(LOAD)),
            f"store_{name}": Column.array(runs(STORE)),
            f"stalled_{name}": Column.array(spent[:, WAITING] + spent[:, IDLE]),
            f"unknown_{name}": Column.array(spent[:, LOST] + spent[:, UNRECORDED]),
            f"vacant_{name}": Column.array(spent[:, VACANT]),
            f"tail_{name}": Column.array(sums(vacant.lane, after_last, count)),
            f"window_{name}": Column.array(np.full(count, window, np.int64)),
            "mean_resident": Column.array(present / (attested or 1), valid=some),
            "share": Column.array(busy / (attested or 1), valid=some),
        },
    )
    if shared.selected is None:
        return table
    track = shared.trace.slices.values("track_id")[shared.selected.mask]
    of = found.of[track[(track >= 0) & (track < len(found.of))]]
    return table.take(distinct(of[of >= 0])).numbered()


def occupancy_stats(shared: AnalysisCache, table: Table) -> Table:
    """Return what a table of ``occupancy`` amounts to, a row for each thing that is counted.

    Args:
        shared: the trace.
        table: what ``occupancy`` returned for it.
    """
    unit, window = shared.unit, shared.attested[1] - shared.attested[0]
    active, ts, dur = table.values("active"), table.values("ts"), table.values("dur")
    what = table.codes("counted").astype(np.int64)
    names = int(what.max(initial=-1)) + 1
    total, most = sums(what, dur * active, names), np.zeros(names, np.int64)
    np.maximum.at(most, what, active)
    at_most = sums(what, np.where(active == most[what], dur, 0), names)
    begin, end = hulls(Intervals(what, ts, ts + dur), names)
    within = clipped(shared, Intervals(what, ts, ts + dur))
    mean = sums(what, (within.end - within.begin) * active, names)
    shown = np.lexsort((np.arange(names), -total))
    shown = shown[most[shown] > 0]
    return Table(
        occupancy_stats_spec(unit),
        {
            "id": Column.array(np.arange(len(shown))),
            "counted": Column.array(shown.astype(np.int32), dictionary=table.column("counted").dictionary),
            f"total_{unit}": Column.array(total[shown]),
            "mean": Column.array(mean[shown] / (window or 1), valid=None if window else np.zeros(len(shown), np.bool_)),
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
