"""Time covered by intervals, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lanescope.common.intervals import Intervals, Ints, group_starts, sums, union

_NOTHING = np.empty(0, np.int64)
#: Kept intervals are united again once there are so many times as many as after the last time.
_GROWTH = 2
_LEAST = 1 << 18


class KeyedIntervals(NamedTuple):
    """Intervals [begin, end) of lanes, each for a key; int64 [n] each. Neither keys nor lanes are sparse."""

    key: Ints
    lane: Ints
    begin: Ints
    end: Ints

    def take(self, rows: slice | Ints | np.typing.NDArray[np.bool_]) -> KeyedIntervals:
        """Return the intervals at ``rows``."""
        return KeyedIntervals(*(column[rows] for column in self))


_NONE = KeyedIntervals(_NOTHING, _NOTHING, _NOTHING, _NOTHING)


class CoveredTime:
    """Time covered by the intervals of each key, per lane; shared time counts once.

    Where the intervals of a key on a lane come in order of their starts, all but the last stretch of them is summed up
    and let go.

    Args:
        is_sorted: whether to rely on that; ``is_wrong`` tells afterwards whether it held.

    Attributes:
        is_wrong: an interval came before a stretch that had been let go; the sums do not hold.
    """

    def __init__(self, *, is_sorted: bool) -> None:
        self._is_sorted = is_sorted
        self._lengths = _NOTHING  # by key
        self._pending = _NONE  # disjoint, by key and lane
        self._more: list[KeyedIntervals] = []
        self._count = 0
        self.is_wrong = False

    def add(self, intervals: KeyedIntervals) -> None:
        """Take in the intervals of the next batch."""
        if not len(intervals.key):
            return
        if not self._is_sorted:
            united = united_by_key([intervals])
            self._more.append(united)
            self._count += len(united.key)
            if self._count > max(_GROWTH * len(self._pending.key), _LEAST):
                self._unite()
            return
        pending = self._pending
        united = united_by_key([pending, intervals])
        if not len(united.key):
            return
        is_first = group_starts(united.key) | group_starts(united.lane)
        is_last = np.append(is_first[1:], True)
        if len(pending.key):
            # The first stretch of a key on a lane begins where the pending one did, unless something came before it.
            first = united.take(is_first)
            at = _positions(first, pending)
            self.is_wrong |= bool((first.begin[at] != pending.begin).any())
        self._sum(united.take(~is_last))
        self._pending = united.take(is_last)

    def result(self) -> Ints:
        """Return the time that the intervals of each key cover, int64 [keys]; keys beyond have none."""
        self._unite()
        self._sum(self._pending)
        self._pending = _NONE
        return self._lengths

    def _unite(self) -> None:
        if self._more:
            self._pending = united_by_key([self._pending, *self._more])
            self._more, self._count = [], 0

    def _sum(self, disjoint: KeyedIntervals) -> None:
        """Add the lengths of disjoint intervals to those of their keys."""
        if not len(disjoint.key):
            return
        lengths = sums(
            disjoint.key, disjoint.end - disjoint.begin, max(len(self._lengths), int(disjoint.key.max()) + 1)
        )
        lengths[: len(self._lengths)] += self._lengths
        self._lengths = lengths


def united_by_key(parts: Sequence[KeyedIntervals]) -> KeyedIntervals:
    """Return the time covered, by key and lane: disjoint, not touching, sorted."""
    key, lane, begin, end = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    if not len(key):
        return _NONE
    first = int(lane.min())
    lanes = int(lane.max()) - first + 1
    time = union(Intervals(key * lanes + (lane - first), begin, end))
    return KeyedIntervals(time.group // lanes, time.group % lanes + first, time.begin, time.end)


def _positions(known: KeyedIntervals, wanted: KeyedIntervals) -> Ints:
    """Return where each key and lane of ``wanted`` is in ``known``; both sorted by them, and all are there."""
    first = min(int(known.lane.min()), int(wanted.lane.min()))
    lanes = max(int(known.lane.max()), int(wanted.lane.max())) - first + 1
    found: Ints = np.searchsorted(known.key * lanes + (known.lane - first), wanted.key * lanes + (wanted.lane - first))
    return found
