"""Overlap of regions, and the share of data movement hidden by computation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.analysis.instances import PARENT, Instances, units
from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.partition import LeafIntervals, leaf_intervals
from lanescope.analysis.work_classes import CLASSES, COMPUTE, OUTER, classes
from lanescope.common.intervals import Intervals, Ints, join, order_within, union
from lanescope.errors import UsageError
from lanescope.trace import Column, ColumnSpec, Dictionary, Table, TableSpec, Trace
from lanescope.trace.column import Mask

#: Regions that get a row of their own, those with most time; the rest share one. One bit of a word each, one each for
#: the kinds of work, and one for time in which the state of a lane is unknown.
MAX_REGIONS = 64 - 2 - len(CLASSES)
#: Combinations of regions that are taken apart at once.
_AT_ONCE = 1 << 14
#: Sums of times are exact up to here, and a little beyond.
_MOST = 2.0**62


def spec(unit: str = "ns", *, each: bool = False) -> TableSpec:
    """Return the declaration of the overlap of pairs for a time unit."""
    where = (
        (
            ColumnSpec("instance", "utf8", "instance that runs both: a block, an SM, a device"),
            ColumnSpec("instance_id", "int64", "number of the instance; NULL without a number", nullable=True),
        )
        if each
        else ()
    )
    pairs = "one pair of regions that share time" if each else "one pair of regions"
    return TableSpec(
        "overlap",
        f"{pairs} {'within one instance' if each else '(lanes of one instance are compared, all instances summed)'}; "
        "only innermost regions count as running",
        (
            ColumnSpec("id", "int64", "dense; regions with most time first"),
            *where,
            ColumnSpec("region", "text", "name of a region, or `(other)` for many regions with little time"),
            ColumnSpec("other_region", "text", "name of the other region; one row compares a region with itself"),
            ColumnSpec(f"region_{unit}", "int64", "time in which the region runs on a lane of the instance", unit=unit),
            ColumnSpec(f"overlap_{unit}", "int64", "part in which the other region also runs", unit=unit),
            ColumnSpec("share", "float64", "overlap as a fraction of the region's time", nullable=True, unit="1"),
        ),
    )


def exposure_spec(unit: str = "ns") -> TableSpec:
    """Return the declaration of what hides behind computing for a time unit."""
    return TableSpec(
        "exposure",
        "a region that does not compute, or all of one kind: in how much of its time its instance computes",
        (
            ColumnSpec("id", "int64", "dense; kinds as a whole before their regions"),
            ColumnSpec("kind", "text", "load, store, wait: by the words of the name"),
            ColumnSpec("region", "text", "name of the region; NULL for all of the kind together", nullable=True),
            ColumnSpec(f"total_{unit}", "int64", "time in which it runs on any lane, summed over instances", unit=unit),
            ColumnSpec(f"hidden_{unit}", "int64", "part of it in which a region computes there too", unit=unit),
            ColumnSpec(f"exposed_{unit}", "int64", "part of it in which nothing computes", unit=unit),
            ColumnSpec(
                f"unknown_{unit}",
                "int64",
                "the rest: nothing is known to compute; a lane of the instance is in a gap or in a region that "
                "never ended",
                unit=unit,
            ),
            ColumnSpec("hidden_share", "float64", "hidden as a share of the total", nullable=True, unit="1"),
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class ConcurrentTime:
    """Times that sets of keys share, by unit.

    Attributes:
        unit: int64 [n].
        mask: uint64 [n], a bit for each key that runs.
        time: int64 [n], how long exactly those run.
    """

    unit: Ints
    mask: npt.NDArray[np.uint64]
    time: Ints

    def pairs(self, keys: int) -> Ints:
        """Return int64 [keys, keys], how long each two run at the same time; on the diagonal, how long each runs."""
        found = np.zeros((keys, keys), np.int64)
        mask, inverse = np.unique(self.mask, return_inverse=True)
        time = np.zeros(len(mask), np.int64)
        np.add.at(time, inverse.reshape(-1), self.time)
        for first in range(0, len(mask), _AT_ONCE):
            bits = _bits(mask[first : first + _AT_ONCE], keys).astype(np.int64)
            found += (bits * time[first : first + _AT_ONCE, None]).T @ bits
        return found

    def pairs_by_unit(self, keys: int) -> tuple[Ints, Ints, Ints, Ints]:
        """Return unit, key, other key and shared time of all pairs that share any, int64 [m] each, sorted."""
        parts = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        for first in range(0, len(self.mask), _AT_ONCE):
            row, one = np.nonzero(_bits(self.mask[first : first + _AT_ONCE], keys))
            count = np.bincount(row, minlength=1)
            start = np.cumsum(count) - count
            # Each key of a set against each: repeat it as often as the set is large.
            size = count[row]
            left = np.repeat(np.arange(len(row)), size)
            right = np.arange(len(left)) - np.repeat(np.cumsum(size) - size, size) + start[row[left]]
            at = row[left] + first
            pair = (self.unit[at] * keys + one[left]) * keys + one[right]
            parts.append(_summed(pair, self.time[at]))
        key, time = _summed(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        pair, other = np.divmod(key, keys)
        unit, one = np.divmod(pair, keys)
        return unit, one, other, time


def _bits(mask: npt.NDArray[np.uint64], keys: int) -> npt.NDArray[np.uint8]:
    return ((mask[:, None] >> np.arange(keys, dtype=np.uint64)) & np.uint64(1)).astype(np.uint8)


def _summed(key: Ints, value: Ints) -> tuple[Ints, Ints]:
    """Return each key (0 or more) once, sorted, with the sum of its values."""
    size = int(key.max(initial=0)) + 1
    if size <= 4 * len(key):
        sums = np.zeros(size, np.int64)
        np.add.at(sums, key, value)
        found = np.flatnonzero(np.bincount(key, minlength=size))
        return found, sums[found]
    found, inverse = np.unique(key, return_inverse=True)
    total = np.zeros(len(found), np.int64)
    np.add.at(total, inverse.reshape(-1), value)
    return found, total


def concurrent_time(unit: Ints, key: Ints, begin: Ints, end: Ints) -> ConcurrentTime:
    """Return how long which sets of keys run at the same time in each instance.

    Args:
        unit: int64 [n], 0 or more.
        key: int64 [n], 0 to 63. A key that several intervals of a unit have at a time runs once.
        begin: int64 [n], ns.
        end: int64 [n], ns.

    Raises:
        UsageError: the times of all units together do not fit 62 bits.

    Complexity:
        O(n log n), whatever overlaps.
    """
    disjoint = union(Intervals(unit * 64 + key, begin, end))
    unit, key = np.divmod(disjoint.group, 64)
    bit = np.left_shift(np.uint64(1), key.astype(np.uint64))
    at = np.concatenate([disjoint.begin, disjoint.end])
    unit, bit = np.tile(unit, 2), np.tile(bit, 2)
    sort = order_within(unit, at)  # bits that turn at the same time may turn in any order
    at, unit = at[sort], unit[sort]
    # Intervals of one key do not touch, so each begin and each end turns its bit over.
    running = np.bitwise_xor.accumulate(bit[sort]) if len(sort) else bit
    length = np.diff(at, append=at[-1:])
    # Every sum that anybody makes of these is a part of this one.
    if np.diff(at.astype(np.float64), append=at[-1:])[running != 0].sum() > _MOST:
        raise UsageError("cannot add up the times of all units: sum exceeds 63 bits", hint="use a shorter trace")
    used = np.flatnonzero((running != 0) & (length != 0))  # behind a unit's last end nothing runs
    unit, running, length = unit[used], running[used], length[used]
    masks, number = np.unique(running, return_inverse=True)
    count = max(len(masks), 1)
    key, total = _summed(unit * count + number.reshape(-1), length)
    return ConcurrentTime(key // count, masks[key % count], total)


class Overlap:
    """Concurrent time of the regions of a trace, computed once for all users.

    Attributes:
        time: the trace's lane times.
        units: what is compared: lanes of one instance with each other, no others.
        names: the regions that are told apart, by total time, and ``(other)`` if there are more.
        kinds: int64 [names], the kind of work of each, index into ``CLASSES``.
        together: the shared times; keys are ``names``, then ``CLASSES``, then that the state of a lane is unknown.
    """

    def __init__(
        self, time: LaneTime, role: str = PARENT, given: Mapping[str, str] = {}, pieces: LeafIntervals | None = None
    ) -> None:
        self.time = time
        self.units: Instances = units(time, role)
        pieces = leaf_intervals(time) if pieces is None else pieces
        kind_of = classes(time.trace, pieces, given)
        pieces = pieces.outside(time.gaps)
        unit = self.units.of[pieces.time.group]
        used = np.flatnonzero(unit >= 0)
        unit, (_, begin, end) = unit[used], pieces.time.take(used)
        column = time.trace.slices.column("name")
        texts = column.dictionary.texts if column.dictionary is not None else []
        code = column.values[pieces.row[used]].astype(np.int64)
        total = np.zeros(len(texts), np.int64)
        np.add.at(total, code, end - begin)
        shown = np.lexsort((np.arange(len(texts)), -total))[: int(np.count_nonzero(total))]
        own = shown[:MAX_REGIONS]
        # The others are told apart by kind while they are counted.
        key_of = len(own) + kind_of
        key_of[own] = np.arange(len(own))
        self.names = [texts[number] for number in own.tolist()]
        self.kinds = kind_of[own]
        if len(shown) > len(own):
            self.names.append("(other)")
            self.kinds = np.append(self.kinds, CLASSES.index(OUTER))
        lost = join(time.gaps, time.possibly_running)
        lost = lost.take((lost.group >= 0) & (lost.group < len(time.tree)))
        lost_in = self.units.of[lost.group]
        lost = lost.take(lost_in >= 0)
        found = concurrent_time(
            np.concatenate([unit, lost_in[lost_in >= 0]]),
            np.concatenate([key_of[code], np.full(len(lost.group), len(own) + len(CLASSES))]),
            np.concatenate([begin, lost.begin]),
            np.concatenate([end, lost.end]),
        )
        self.together = self._with_classes(found, len(own))
        #: int64 [keys, keys], shared times of all units.
        self.matrix = self.together.pairs(self.keys)

    def _with_classes(self, found: ConcurrentTime, own: int) -> ConcurrentTime:
        """Add bits for the kinds of work to those of the regions; the others become one."""
        masks, inverse = np.unique(found.mask, return_inverse=True)
        bits: Mask = _bits(masks, 64).astype(np.bool_)
        members, others = bits[:, : own + len(CLASSES)], bits[:, own : own + len(CLASSES)]
        kinds = np.append(self.kinds[:own], np.arange(len(CLASSES)))
        parts = [bits[:, :own]]
        if self.regions > own:
            parts.append(np.any(others, axis=1, keepdims=True))
        parts += [np.any(members[:, kinds == kind], axis=1, keepdims=True) for kind in range(len(CLASSES))]
        parts.append(bits[:, own + len(CLASSES), None])
        keys = np.concatenate(parts, axis=1).astype(np.uint64)
        value = np.bitwise_or.reduce(keys << np.arange(keys.shape[1], dtype=np.uint64), axis=1)
        return ConcurrentTime(found.unit, value[inverse.reshape(-1)], found.time)

    @property
    def keys(self) -> int:
        """Number of keys."""
        return self.regions + len(CLASSES) + 1

    @property
    def regions(self) -> int:
        """Number of distinct regions."""
        return len(self.names)

    def of_class(self, kind: str) -> int:
        """Return where a kind of work stands in the matrix."""
        return self.regions + CLASSES.index(kind)


def overlap(
    trace: Trace,
    role: str = PARENT,
    *,
    each: bool = False,
    time: LaneTime | None = None,
    known: Overlap | None = None,
) -> Table:
    """Return how long each two regions run at the same time.

    Lanes of one instance are compared with each other. A region runs in an instance while it is the innermost one of
    any lane there; two lanes in the same region count once. All numbers are exact; what is unknown counts for nothing.

    Args:
        trace: the trace.
        role: what an instance is, see ``Instances``; ``parent`` compares the lanes of one group.
        each: a row for each pair of each instance that shares time; else instances are summed and every pair has a row.
        time: the trace's ``LaneTime``, when the caller has one already.
        known: the ``Overlap`` of the same role, when the caller has one already.

    Raises:
        UsageError: the trace has no such instances.

    Example:
        >>> from lanescope.trace import TimeBase, TraceBuilder
        >>> builder = TraceBuilder(TimeBase())
        >>> block = builder.track("block 0", kind="group", role="block")
        >>> lanes = [builder.track(name, kind="lane", role="group", parent=block) for name in ("load", "compute")]
        >>> _ = builder.append("slices", track_id=lanes, ts=[0, 40], dur=[100, 80], name=["load", "mma"])
        >>> for row in overlap(builder.finish()).rows():
        ...     print(row["region"], row["other_region"], row["region_ns"], row["overlap_ns"])
        load load 100 100
        load mma 100 60
        mma load 80 60
        mma mma 80 80
    """
    found = known or Overlap(time or LaneTime(trace), role)
    regions = found.regions
    dictionary = Dictionary(found.names)
    columns: dict[str, Column] = {}
    if each:
        unit, one, other, shared = found.together.pairs_by_unit(found.keys)
        used = np.flatnonzero((one < regions) & (other < regions))
        unit, one, other, shared = unit[used], one[used], other[used], shared[used]
        same = one == other
        keys = unit * regions + one
        whole = shared[same][np.searchsorted(keys[same], keys)]
        columns["instance"] = Column.array(found.units.label_column[unit])
        columns["instance_id"] = found.units.number_column(unit)
    else:
        one, other = (part.ravel() for part in np.indices((regions, regions)))
        shared = found.matrix[one, other]
        whole = found.matrix[one, one]
    unit_name = trace.time.time_unit
    return Table(
        spec(unit_name, each=each),
        {
            "id": Column.array(np.arange(len(one))),
            **columns,
            "region": Column.array(one.astype(np.int32), dictionary=dictionary),
            "other_region": Column.array(other.astype(np.int32), dictionary=dictionary),
            f"region_{unit_name}": Column.array(whole),
            f"overlap_{unit_name}": Column.array(shared),
            "share": _share(shared, whole),
        },
    )


def exposure(
    trace: Trace,
    role: str = PARENT,
    *,
    given: Mapping[str, str] = {},
    time: LaneTime | None = None,
    known: Overlap | None = None,
) -> Table:
    """Return how much of the time of loads, stores and waits something computes in the same instance.

    Args:
        trace: the trace.
        role: what an instance is, see ``Instances``.
        given: patterns of names by kind of work, see ``work_classes.classify``.
        time: the trace's ``LaneTime``, when the caller has one already.
        known: the ``Overlap`` of the same role and kinds, when the caller has one already.

    Raises:
        UsageError: the trace has no such instances, or ``given`` a kind that is none.
    """
    found = known or Overlap(time or LaneTime(trace), role, given)
    compute = found.of_class(COMPUTE)
    masks, times = found.together.mask, found.together.time
    blank = (masks & np.uint64(1 << compute) == 0) & (masks & np.uint64(1 << (found.keys - 1)) != 0)
    masks, times = masks[blank], times[blank]
    rows: list[tuple[str, str | None, int, int, int]] = []
    for number, kind in enumerate(CLASSES):
        members = np.flatnonzero(found.kinds == number).tolist()
        if kind in (COMPUTE, OUTER) or not members:
            continue
        for key in (found.of_class(kind), *members):
            name = found.names[key] if key < found.regions else None
            unknown = int(times[masks & np.uint64(1 << key) != 0].sum())
            rows.append((kind, name, int(found.matrix[key, key]), int(found.matrix[key, compute]), unknown))
    unit = trace.time.time_unit
    columns: dict[str, Any] = {
        "id": range(len(rows)),
        "kind": [row[0] for row in rows],
        "region": [row[1] for row in rows],
        f"total_{unit}": [row[2] for row in rows],
        f"hidden_{unit}": [row[3] for row in rows],
        f"exposed_{unit}": [row[2] - row[3] - row[4] for row in rows],
        f"unknown_{unit}": [row[4] for row in rows],
        "hidden_share": [row[3] / row[2] if row[2] else None for row in rows],
    }
    return Table.from_arrays(exposure_spec(unit), columns)


def _share(part: Ints, whole: Ints) -> Column:
    some = whole > 0
    return Column.array(part / np.where(some, whole, 1), valid=None if some.all() else some)
