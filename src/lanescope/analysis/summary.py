"""Summary of slices by name, lane, device or category."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.analysis.covered_time import CoveredTime, KeyedIntervals, united_by_key
from lanescope.analysis.groupings import SLICES
from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.track_tree import Tree
from lanescope.common.intervals import INT64_MAX, Ints, known_extents
from lanescope.errors import UsageError
from lanescope.trace import Column, ColumnSpec, Dictionary, Table, TableSpec, TimeBase, Trace
from lanescope.trace.streams import StreamInfo, bare

Int32 = npt.NDArray[np.int32]


def spec(by: str, unit: str) -> TableSpec:
    """Return the declaration of the summary by one of ``groupings.SLICES``, for a time unit."""
    return TableSpec(
        "summary",
        "slices of one group",
        (
            ColumnSpec("id", "int64", "dense, the largest total first"),
            ColumnSpec(by, "utf8", f"the {by} of the slices" if by in ("name", "category") else f"path of the {by}"),
            ColumnSpec("count", "int64", "slices of known length"),
            ColumnSpec("unfinished", "int64", "slices of unknown length; no other column but share counts them"),
            ColumnSpec("total", "int64", "sum of the lengths", unit=unit),
            ColumnSpec("min", "int64", "the shortest", nullable=True, unit=unit),
            ColumnSpec("median", "int64", "no shorter than half of them", nullable=True, unit=unit),
            ColumnSpec("p99", "int64", "no shorter than 99 of 100", nullable=True, unit=unit),
            ColumnSpec("max", "int64", "the longest", nullable=True, unit=unit),
            ColumnSpec(
                "share",
                "float64",
                "time that the group covers on its lanes, as a share of the time that all slices cover; where slices "
                "nest, shares add up to more than 1",
                nullable=True,
                unit="1",
            ),
        ),
    )


def summary(trace: Trace, by: str = "name") -> Table:
    """Return count, total, spread and share of the slices of each group, the largest total first.

    Medians and percentiles are lengths that occurred: the smallest that at least that part of the group does not
    exceed. Unfinished slices are counted in a column of their own and never as zero.

    Args:
        trace: the trace.
        by: ``name``, ``lane`` (path of the lane), ``device`` (path of the nearest track of role ``device``, else of the
            topmost above the lane) or ``category``.

    Raises:
        UsageError: ``by`` is something else.

    Example:
        >>> from lanescope.trace import TimeBase, TraceBuilder
        >>> builder = TraceBuilder(TimeBase())
        >>> lane = builder.track("core 0", kind="lane", role="core")
        >>> _ = builder.append("slices", track_id=lane, ts=[0, 60, 70], dur=[30, 10, 20], name=["mma", "load", "mma"])
        >>> for row in summary(builder.finish()).rows():
        ...     print(row["name"], row["count"], row["total"], row["max"], round(row["share"], 2))
        mma 2 50 30 0.83
        load 1 10 10 0.17
    """
    found = Summary(by)
    found.add(trace)
    return found.result()


class Summary:
    """An observer whose result is the ``summary`` of the batches joined.

    It keeps the lengths of the slices by key, 8 bytes each, or 16 for each different one where they repeat. Of the
    covered time it keeps sums where lanes come in order; where they turn out not to, it takes a second pass and keeps
    the covered time itself.

    Args:
        by: as ``summary`` takes it.

    Raises:
        UsageError: ``by`` is something else.
    """

    def __init__(self, by: str = "name") -> None:
        if by not in SLICES:
            raise UsageError(f"unknown grouping {by!r} (choose from {', '.join(SLICES)})")
        self._by = by
        self._is_text = by in ("name", "category")
        self._texts = Dictionary()
        self._codes: list[tuple[Dictionary, Int32]] = []
        self._strays: dict[int, int] = {}  # lanes that are no track, or none so far, and their numbers
        self._lengths: dict[int, _Lengths] = {}
        self._unfinished: Counter[int] = Counter()
        self._last = Trace(TimeBase(), {})
        self._begin(is_sorted=True)

    def _begin(self, *, is_sorted: bool) -> None:
        self._lane_time = CoveredTime(is_sorted=is_sorted)
        self._key_time = CoveredTime(is_sorted=is_sorted) if self._is_text else self._lane_time

    def start(self, info: StreamInfo) -> None:
        """Begin; whatever is promised of the order, most lanes keep it."""

    def add(self, batch: Trace) -> None:
        """Take in the slices of the next batch."""
        self._last = bare(batch)
        slices = batch.slices
        if not len(slices):
            return
        key = self._cover(slices)
        closed = slices.valid("dur")
        lengths = slices.values("dur")
        if not closed.all():
            keys, counts = np.unique(key[~closed], return_counts=True)
            self._unfinished.update(dict(zip(keys.tolist(), counts.tolist(), strict=True)))
            key, lengths = key[closed], lengths[closed]
        if not len(key):
            return
        counts = np.bincount(key)
        edges = np.cumsum(counts)
        lengths = sorted_within(key, lengths)
        for one in np.flatnonzero(counts).tolist():
            part = lengths[edges[one] - counts[one] : edges[one]]
            self._lengths.setdefault(one, _Lengths()).add(part)

    def wants_replay(self) -> bool:
        """Return whether lanes were out of order, or came before their tracks."""
        is_late = any(0 <= track < len(self._last.tracks) for track in self._strays)
        if not (is_late or self._lane_time.is_wrong or self._key_time.is_wrong):
            return False
        self._begin(is_sorted=False)
        return True

    def replay(self, batch: Trace) -> None:
        """Take in what the slices of the next batch cover."""
        if len(batch.slices):
            self._cover(batch.slices)

    def result(self) -> Table:
        """Return the summary."""
        lane_time = self._lane_time.result()
        key_time = lane_time if self._key_time is self._lane_time else self._key_time.result()
        texts, group_of = self._groups()
        keys: dict[int, list[int]] = {}
        for key in sorted({*self._lengths, *self._unfinished}):
            keys.setdefault(group_of(key), []).append(key)
        groups = {group: self._group(some, key_time) for group, some in keys.items()}
        busy = int(lane_time.sum())
        shown = sorted(groups, key=lambda group: (-groups[group].total, -groups[group].slices, group))
        rows = [groups[group] for group in shown]
        return Table.from_arrays(
            spec(self._by, self._last.time.time_unit),
            {
                "id": range(len(rows)),
                self._by: [texts(group) for group in shown],
                "count": [row.closed for row in rows],
                "unfinished": [row.unfinished for row in rows],
                "total": [row.total for row in rows],
                **{name: [row.ranks[at] for row in rows] for at, name in enumerate(_RANKS)},
                "share": [row.covered / busy if busy else None for row in rows],
            },
        )

    def _group(self, keys: list[int], key_time: Ints) -> _Group:
        """Return the statistics of the slices of some keys; ``key_time``: time that each covers, int64."""
        lengths = [self._lengths[key].counted() for key in keys if key in self._lengths]
        count = sum(int(counts.sum()) for _, counts in lengths)
        total = sum(int((values * counts).sum()) for values, counts in lengths)
        unfinished = sum(self._unfinished[key] for key in keys)
        covered = sum(int(key_time[key]) for key in keys if key < len(key_time))
        return _Group(count, total, unfinished, covered, _ranks(lengths, count))

    def _groups(self) -> tuple[Callable[[int], str], Callable[[int], int]]:
        """Return what gives a group its text, and what tells the group of a key."""
        if self._is_text:
            return self._texts.texts.__getitem__, lambda key: key
        tree = Tree(self._last.tracks)
        known = len(tree)  # slices on tracks that do not exist share one group at the end
        strays = {2 * number + 1: track for track, number in self._strays.items()}

        def group_of(key: int) -> int:
            track = strays[key] if key % 2 else key // 2
            if not 0 <= track < known:
                return known
            return tree.device(track) if self._by == "device" else track

        return tree.path, group_of

    def _cover(self, slices: Table) -> Ints:
        """Add what slices cover, and return the key of each, int64 [n]."""
        track, begin, end = known_extents(slices)
        lane = self._lanes(track)
        nowhere = np.zeros(len(lane), np.int64)
        self._lane_time.add(KeyedIntervals(lane, nowhere, begin, end))
        if not self._is_text:
            return lane
        key = self._text_codes(slices.column(self._by))
        self._key_time.add(KeyedIntervals(key, lane, begin, end))
        return key

    def _lanes(self, track: Ints) -> Ints:
        """Return a number for the lane of each slice, int64 [n]: even for tracks that are known by now."""
        known = len(self._last.tracks)
        if int(track.min()) >= 0 and int(track.max()) < known:
            return 2 * track
        found = 2 * track
        stray = np.flatnonzero((track < 0) | (track >= known))
        found[stray] = [2 * self._strays.setdefault(one, len(self._strays)) + 1 for one in track[stray].tolist()]
        return found

    def _text_codes(self, column: Column) -> Ints:
        """Return the code of each text in the dictionary of all batches, int64 [n]."""
        dictionary = column.dictionary or Dictionary([""])
        for at, (known, codes) in enumerate(self._codes):
            if known is dictionary:
                if len(codes) < len(dictionary):
                    more = self._texts.codes(dictionary.texts[len(codes) :])
                    self._codes[at] = known, np.concatenate([codes, more])
                return self._codes[at][1][column.values].astype(np.int64)
        self._codes.append((dictionary, self._texts.codes(dictionary.texts)))
        return self._codes[-1][1][column.values].astype(np.int64)


#: Columns that are lengths which so large a part of a group do not exceed.
_RANKS = {"min": (0, 1), "median": (1, 2), "p99": (99, 100), "max": (1, 1)}


_NONE = np.zeros(0, np.int64)


class _Lengths:
    """Lengths of slices; where they repeat, each is kept once, with a count."""

    __slots__ = ("_counts", "_listed", "_most_listed", "_values")  # there may be as many as names

    def __init__(self) -> None:
        self._listed: array[int] = array("q")
        self._values = self._counts = _NONE
        self._most_listed = _LISTED

    def add(self, lengths: Ints) -> None:
        """Take in some lengths, int64 [n]."""
        self._listed.frombytes(lengths.view(np.uint8).data)
        if len(self._listed) < self._most_listed:
            return
        values, counts = _counted(np.frombuffer(self._listed, np.int64), None)
        if _REPEATED * len(values) > len(self._listed):
            self._most_listed = 2 * len(self._listed)
            return
        self._listed = array("q")
        self._values, self._counts = _counted(*_joined([(self._values, self._counts), (values, counts)]))
        self._most_listed = max(_LISTED, _REPEATED * len(self._values))

    def counted(self) -> tuple[Ints, Ints]:
        """Return the lengths, int64 [m] in any order, and how often each occurred there, int64 [m]."""
        listed = np.frombuffer(self._listed, np.int64)
        if not len(self._values):
            return listed, np.broadcast_to(np.int64(1), len(listed))
        return _joined([(self._values, self._counts), _counted(listed, None)])


#: Lengths that are listed before it is looked whether they repeat, and how often they then have to.
_LISTED, _REPEATED = 1 << 18, 4


def _joined(some: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    if len(some) == 1:
        return some[0]
    return np.concatenate([values for values, _ in some]), np.concatenate([counts for _, counts in some])


def _counted(values: Ints, counts: Ints | None) -> tuple[Ints, Ints]:
    """Return different values, rising, and how often each occurs; ``counts``: how often each does that is given."""
    if not len(values):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if counts is None:
        values = np.sort(values)
        first = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
        return values[first], np.diff(np.append(first, len(values)))
    order = np.argsort(values, kind="stable")
    values, counts = values[order], counts[order]
    first = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    return values[first], np.add.reduceat(counts, first)


class _Group(NamedTuple):
    """Statistics of the slices of one group.

    Attributes:
        closed, total: of slices of known length: how many, and the sum.
        unfinished: slices of unknown length.
        covered: time that they cover on their lanes.
        ranks: the lengths that ``_RANKS`` names; None where no length is known.
    """

    closed: int
    total: int
    unfinished: int
    covered: int
    ranks: list[int | None]

    @property
    def slices(self) -> int:
        return self.closed + self.unfinished


def _ranks(some: list[tuple[Ints, Ints]], count: int) -> list[int | None]:
    """Return the lengths that ``_RANKS`` names among so many, given with how often each occurs."""
    if not count:
        return [None] * len(_RANKS)
    steps = [max(-(-count * part // whole), 1) - 1 for part, whole in _RANKS.values()]
    lengths, counts = _joined(some)
    if len(lengths) == count:
        lengths.partition(steps)
        return [int(lengths[step]) for step in steps]
    lengths, counts = _counted(lengths, counts)
    ends = np.cumsum(counts)
    return [int(lengths[np.searchsorted(ends, step, side="right")]) for step in steps]


def sorted_within(group: Ints, lengths: Ints) -> Ints:
    """Return the lengths sorted by group, then length."""
    if not len(lengths):
        return lengths
    low, high = int(lengths.min()), int(lengths.max())
    span = high - low + 1
    if (int(group.max()) + 1) * span <= INT64_MAX:
        # One sort of plain numbers is several times faster than one of pairs.
        key = np.sort(group * span + (lengths - low))
        found: Ints = key % span + low
        return found
    return lengths[np.lexsort((lengths, group))]


def covered_by(time: LaneTime, group: Ints, groups: int) -> npt.NDArray[np.float64]:
    """Return how much time the slices of each group cover, lane by lane, float64 [groups]."""
    track, begin, end = time.extents
    length = end - begin
    if int(length.sum()) == int((time.slice_union.end - time.slice_union.begin).sum()):
        # Nothing shares time, so nothing can be counted twice.
        return np.bincount(group, length, groups).astype(np.float64)
    disjoint = united_by_key([KeyedIntervals(group, track, begin, end)])
    return np.bincount(disjoint.key, disjoint.end - disjoint.begin, groups).astype(np.float64)
