"""Overlap of regions, and the share of data movement hidden by computation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.analysis.analysis_cache import AnalysisCache, instances, once
from lanescope.analysis.instances import PARENT
from lanescope.analysis.lane_time import on_tracks
from lanescope.analysis.work_classes import CLASSES, COMPUTE, OUTER
from lanescope.common.intervals import Intervals, Ints, join, order, sums
from lanescope.errors import UsageError
from lanescope.trace import Column, ColumnSpec, Dictionary, Table, TableSpec
from lanescope.trace.column import Mask

#: Regions that get a row of their own, those with most time; the rest share one. One bit of a word each, one each for
#: the kinds of work, and one for time in which the state of a lane is unknown.
MAX_REGIONS = 64 - 2 - len(CLASSES)
#: Combinations of regions that are taken apart at once.
_AT_ONCE = 1 << 14
#: Bits of a time that are multiplied at once: sums of so many are below 2^53.
_PART = 38
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
        time = sums(inverse.reshape(-1), self.time, len(mask))
        # Products of integers are a hundred times as slow as those of floating-point numbers. Parts of times that are
        # so short add up exactly.
        for first in range(0, len(mask), _AT_ONCE):
            bits, part = _bits(mask[first : first + _AT_ONCE], keys).astype(np.float64), time[first : first + _AT_ONCE]
            for shift in range(0, int(part.max(initial=0)).bit_length(), _PART):
                short = (part >> shift) & ((1 << _PART) - 1)
                found += ((bits * short[:, None]).T @ bits).astype(np.int64) << shift
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
        found = np.flatnonzero(np.bincount(key, minlength=size))
        return found, sums(key, value, size)[found]
    found, inverse = np.unique(key, return_inverse=True)
    return found, sums(inverse.reshape(-1), value, len(found))


def concurrent_time(intervals: Intervals) -> ConcurrentTime:
    """Return how long which sets of keys run at the same time in each instance.

    Args:
        intervals: ``group`` is 64 times the instance, 0 or more, plus the key, 0 to 63. A key that several intervals of
            an instance have at a time runs once.

    Raises:
        UsageError: the times of all units together do not fit 62 bits.

    Complexity:
        O(n log n), whatever overlaps.
    """
    times = Intervals(*(np.ascontiguousarray(column, np.int64) for column in intervals))
    unit, mask, total = core.lanes_together(*times, order(times.group // 64, times.begin))
    # Every sum that anybody makes of these is a part of this one.
    if float(total.sum(dtype=np.float64)) > _MOST:
        raise UsageError("cannot add up the times of all units: sum exceeds 63 bits", hint="use a shorter trace")
    return ConcurrentTime(unit, mask, total)


class Overlap:
    """Concurrent time of the regions of a trace, computed once for all users.

    Attributes:
        units: what is compared: lanes of one instance with each other, no others.
        names: the regions that are told apart, by total time, and ``(other)`` if there are more.
        kinds: int64 [names], the kind of work of each, index into ``CLASSES``.
        together: the shared times; keys are ``names``, then ``CLASSES``, then that the state of a lane is unknown.
    """

    def __init__(self, shared: AnalysisCache, role: str) -> None:
        self.units, kind_of, texts = instances(shared, role), shared.kind_of, shared.names.texts
        pieces = shared.known_pieces
        ran = pieces.time._replace(group=self.units.of[pieces.time.group])
        used = np.flatnonzero(ran.group >= 0)
        ran, code = ran.take(used), shared.name_of[pieces.row[used]]
        total = sums(code, ran.end - ran.begin, len(texts))
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
        lost = on_tracks(join(shared.time.gaps, shared.time.possibly_running), len(self.units.of))
        lost = lost._replace(group=self.units.of[lost.group])
        lost = lost.take(lost.group >= 0)
        found = concurrent_time(
            join(
                ran._replace(group=ran.group * 64 + key_of[code]),
                lost._replace(group=lost.group * 64 + len(own) + len(CLASSES)),
            )
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


@once
def shared_time(shared: AnalysisCache, role: str = PARENT) -> Overlap:
    """Return the ``Overlap`` of a role; errors as ``overlap``."""
    return Overlap(shared, role)


def overlap(shared: AnalysisCache, role: str = PARENT, *, each: bool = False) -> Table:
    """Return how long each two regions run at the same time.

    Lanes of one instance are compared with each other. A region runs in an instance while it is the innermost one of
    any lane there; two lanes in the same region count once. All numbers are exact; what is unknown counts for nothing.

    Args:
        shared: the trace.
        role: what an instance is, see ``Instances``; ``parent`` compares the lanes of one group.
        each: a row for each pair of each instance that shares time; else instances are summed and every pair has a row.

    Raises:
        UsageError: the trace has no such instances.

    Example:
        >>> from lanescope.analysis.analysis_cache import AnalysisCache
        >>> from lanescope.trace import TimeBase, TraceBuilder
        >>> builder = TraceBuilder(TimeBase())
        >>> block = builder.track("block 0", kind="group", role="block")
        >>> lanes = [builder.track(name, kind="lane", role="group", parent=block) for name in ("load", "compute")]
        >>> _ = builder.append("slices", track_id=lanes, ts=[0, 40], dur=[100, 80], name=["load", "mma"])
        >>> for row in overlap(AnalysisCache(builder.finish())).rows():
        ...     print(row["region"], row["other_region"], row["region_ns"], row["overlap_ns"])
        load load 100 100
        load mma 100 60
        mma load 80 60
        mma mma 80 80
    """
    found = shared_time(shared, role)
    regions = found.regions
    dictionary = Dictionary(found.names)
    columns: dict[str, Column] = {}
    if each:
        unit, one, other, length = found.together.pairs_by_unit(found.keys)
        used = np.flatnonzero((one < regions) & (other < regions))
        unit, one, other, length = unit[used], one[used], other[used], length[used]
        same = one == other
        keys = unit * regions + one
        whole = length[same][np.searchsorted(keys[same], keys)]
        columns["instance"] = Column.array(found.units.label_column[unit])
        columns["instance_id"] = found.units.number_column(unit)
    else:
        one, other = (part.ravel() for part in np.indices((regions, regions)))
        length = found.matrix[one, other]
        whole = found.matrix[one, one]
    unit_name = shared.unit
    return Table(
        spec(unit_name, each=each),
        {
            "id": Column.array(np.arange(len(one))),
            **columns,
            "region": Column.array(one.astype(np.int32), dictionary=dictionary),
            "other_region": Column.array(other.astype(np.int32), dictionary=dictionary),
            f"region_{unit_name}": Column.array(whole),
            f"overlap_{unit_name}": Column.array(length),
            "share": _share(length, whole),
        },
    )


def exposure(shared: AnalysisCache, role: str = PARENT) -> Table:
    """Return how much of the time of loads, stores and waits something computes in the same instance.

    Where a window selects slices, this is found of all of them; the rows are those of names of selected ones, and of
    their kinds.

    Args:
        shared: the trace.
        role: what an instance is, see ``Instances``.

    Raises:
        UsageError: the trace has no such instances, or ``given`` a kind that is none.
    """
    found = shared_time(shared, role)
    compute = found.of_class(COMPUTE)
    masks, times = found.together.mask, found.together.time
    blank = (masks & np.uint64(1 << compute) == 0) & (masks & np.uint64(1 << (found.keys - 1)) != 0)
    masks, times = masks[blank], times[blank]
    rows: list[tuple[str, str | None, int, int, int]] = []
    names = None if shared.selected is None else set(shared.trace.slices.where(shared.selected.mask)["name"].tolist())
    for number, kind in enumerate(CLASSES):
        members = np.flatnonzero(found.kinds == number).tolist()
        if names is not None:
            members = [key for key in members if found.names[key] in names]
        if kind in (COMPUTE, OUTER) or not members:
            continue
        for key in (found.of_class(kind), *members):
            name = found.names[key] if key < found.regions else None
            unknown = int(times[masks & np.uint64(1 << key) != 0].sum())
            rows.append((kind, name, int(found.matrix[key, key]), int(found.matrix[key, compute]), unknown))
    unit = shared.unit
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
