"""Statistics of regions: durations, balance between instances, tail."""

from __future__ import annotations

import numpy as np

from lanescope.analysis.analysis_cache import AnalysisCache, instances
from lanescope.analysis.instances import PARENT
from lanescope.analysis.summary import sorted_within
from lanescope.common.intervals import Intervals, hulls, sums
from lanescope.trace import Column, ColumnSpec, Table, TableSpec

#: Percentiles that are shown.
PERCENTILES = (1, 10, 50, 90, 99)


def spec(unit: str = "ns") -> TableSpec:
    """Return the declaration of regions' lengths for a time unit."""
    percentiles = tuple(
        ColumnSpec(f"p{part}_{unit}", "int64", f"{part}th percentile of durations", nullable=True, unit=unit)
        for part in PERCENTILES
    )
    return TableSpec(
        "region_stats",
        "durations of all slices of one name, and their distribution over instances",
        (
            ColumnSpec("id", "int64", "dense, the largest total first"),
            ColumnSpec("region", "text", "region name"),
            ColumnSpec("count", "int64", "slices with a known duration"),
            ColumnSpec(
                "unfinished", "int64", "slices without a known end, included only in self time and later columns"
            ),
            ColumnSpec(f"total_{unit}", "int64", "sum of durations", unit=unit),
            ColumnSpec(f"self_{unit}", "int64", "self time: total without nested regions", unit=unit),
            ColumnSpec(f"min_{unit}", "int64", "shortest duration", nullable=True, unit=unit),
            *percentiles,
            ColumnSpec(f"max_{unit}", "int64", "longest duration", nullable=True, unit=unit),
            ColumnSpec("instances", "int64", "instances that ran the region as the innermost one of a lane"),
            ColumnSpec(
                "imbalance",
                "float64",
                "self time of the slowest instance as a multiple of the mean of all instances that ran the region",
                nullable=True,
                unit="1",
            ),
            ColumnSpec("slowest_instance", "utf8", "instance with the largest self time"),
            ColumnSpec(
                f"tail_{unit}",
                "int64",
                "time from the first instance finishing its last slice until the last instance does",
                nullable=True,
                unit=unit,
            ),
        ),
    )


def regions(shared: AnalysisCache, role: str = PARENT) -> Table:
    """Return the duration of each region, and its balance between instances.

    Percentiles are lengths that occurred: the smallest that at least that part of the slices does not exceed.

    Args:
        shared: the trace.
        role: what an instance is, see ``Instances``.

    Raises:
        UsageError: the trace has no such instances.

    Example:
        >>> from lanescope.analysis.analysis_cache import AnalysisCache
        >>> from lanescope.trace import TimeBase, TraceBuilder
        >>> builder = TraceBuilder(TimeBase())
        >>> blocks = [builder.track(f"block {n}", kind="group", role="block") for n in range(2)]
        >>> lanes = [builder.track("group 0", kind="lane", role="group", parent=block) for block in blocks]
        >>> where = [lanes[0], lanes[1], lanes[1]]
        >>> _ = builder.append("slices", track_id=where, ts=[0, 0, 50], dur=[40, 50, 70], name="mma")
        >>> row = next(regions(AnalysisCache(builder.finish())).rows())
        >>> row["p50_ns"], row["p99_ns"], row["imbalance"], row["slowest_instance"], row["tail_ns"]
        (50, 70, 1.5, 'block 1', 80)
    """
    slices, pieces, code, unit = shared.trace.slices, shared.pieces, shared.name_of, shared.unit
    names = len(shared.names)
    closed = slices.valid("dur")
    lengths, of = slices.values("dur")[closed], code[closed]
    members, count = np.bincount(code, minlength=names), np.bincount(of, minlength=names)
    sorted_lengths = sorted_within(of, lengths)
    edges = np.concatenate([[0], np.cumsum(count)])
    total = sums(of, lengths, names)
    own = sums(code[pieces.row], pieces.time.end - pieces.time.begin, names)
    spread = _Spread(shared, role)
    shown = np.lexsort((-members, -total))
    shown = shown[members[shown] > 0]
    known = count[shown] > 0

    def rank(part: int) -> Column:
        steps = np.maximum(-(-count[shown] * part // 100), 1) - 1
        values = np.zeros(len(shown), np.int64)
        values[known] = sorted_lengths[(edges[shown] + steps)[known]]
        return Column.array(values, valid=None if known.all() else known)

    in_units = spread.units[shown]
    placed = in_units > 0
    mean = own[shown] / np.where(placed, in_units, 1)
    slowest = np.empty(len(shown), object)
    slowest[:] = [spread.labels[number] if number >= 0 else "" for number in spread.slowest[shown].tolist()]
    return Table(
        spec(unit),
        {
            "id": Column.array(np.arange(len(shown))),
            "region": Column.array(shown.astype(np.int32), dictionary=shared.names),
            "count": Column.array(count[shown]),
            "unfinished": Column.array((members - count)[shown]),
            f"total_{unit}": Column.array(total[shown]),
            f"self_{unit}": Column.array(own[shown]),
            f"min_{unit}": rank(0),
            **{f"p{part}_{unit}": rank(part) for part in PERCENTILES},
            f"max_{unit}": rank(100),
            "instances": Column.array(in_units),
            "imbalance": Column.array(spread.most[shown] / np.where(mean > 0, mean, 1.0), valid=placed & (mean > 0)),
            "slowest_instance": Column.array(slowest),
            f"tail_{unit}": Column.array(spread.tail[shown], valid=placed),
        },
    )


class _Spread:
    """Distribution of the self time of each region over the instances.

    Attributes:
        labels: the units.
        units: int64 [names], units where it ran.
        most: int64 [names], its time on the unit with most of it.
        slowest: int64 [names], that unit, -1 for none.
        tail: int64 [names], between the first and the last unit's last end.
    """

    def __init__(self, shared: AnalysisCache, role: str) -> None:
        found, pieces, names = instances(shared, role), shared.pieces, len(shared.names)
        self.labels = found.labels
        unit = found.of[pieces.time.group]
        used = np.flatnonzero(unit >= 0)
        count = max(len(found), 1)
        time = pieces.time.take(used)
        pair, inverse = np.unique(shared.name_of[pieces.row[used]] * count + unit[used], return_inverse=True)
        inverse = inverse.reshape(-1)
        spent = sums(inverse, time.end - time.begin, len(pair))
        _, last = hulls(time._replace(group=inverse), len(pair))
        name, unit = np.divmod(pair, count)
        self.units = np.bincount(name, minlength=names)
        self.most = np.zeros(names, np.int64)
        np.maximum.at(self.most, name, spent)
        self.slowest = np.full(names, -1, np.int64)
        top = np.flatnonzero(spent == self.most[name])[::-1]  # of equals the first unit stays
        self.slowest[name[top]] = unit[top]
        earliest, latest = hulls(Intervals(name, last, last), names)
        self.tail = np.where(self.units > 0, latest - np.minimum(earliest, latest), 0)
