"""How strictly the rows of each lane nest: those of device work may not overlap, others may not cross.

Files list the operators of a thread before its calls, and buffers of a device in any order: whether the rows of a lane
share time is known when all of them are. Until then lane, start and length are kept, 16 bytes for each row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.common.intervals import Intervals, clash, order, overlapping, partially_overlapping
from lanescope.foreign.kineto.formats import layout

Int64 = npt.NDArray[np.int64]

#: A lane is its place times this, plus its class; rows of categories that are not known have a class of their own.
STRIDE, UNKNOWN = 16, 15
#: Rows that are looked at together, but for lanes with more.
_TOGETHER = 1 << 19
_NARROW = np.iinfo(np.uint32)


class _Rows(NamedTuple):
    """Rows that have a length; arrays [n].

    Attributes:
        lane: int32.
        begin: int64.
        dur: uint32, or int64 where one is longer.
    """

    lane: npt.NDArray[np.int32]
    begin: Int64
    dur: npt.NDArray[np.uint32] | Int64


class Nesting:
    """Takes rows part by part."""

    def __init__(self) -> None:
        self._counts = np.zeros(0, np.int64)  # rows by lane, those without a length as well
        self._parts: list[_Rows] = []

    def add(self, rows: Intervals) -> None:
        """Add rows by lane; those without a length only tell that there is the lane."""
        counts = np.bincount(rows.group, minlength=len(self._counts))
        counts[: len(self._counts)] += self._counts
        self._counts = counts
        dur = rows.end - rows.begin
        has = np.flatnonzero(dur > 0)
        dur = dur[has]
        is_narrow = int(dur.max(initial=0)) <= _NARROW.max
        lane = rows.group[has].astype(np.int32)
        self._parts.append(_Rows(lane, rows.begin[has], dur.astype(np.uint32) if is_narrow else dur))

    def result(self, renamed: Mapping[int, int]) -> dict[int, bool]:
        """Return whether rows of each lane overlap (of device work) or cross (others), in order of lanes; asked once.

        Args:
            renamed: lanes that belong to others, which they are to be taken for.
        """
        names = np.arange(len(self._counts))
        for lane, other in renamed.items():
            if lane < len(names):
                names[lane] = other
        present = np.flatnonzero(self._counts)
        found = dict.fromkeys(sorted(set(names[present].tolist())), False)
        waiting: list[int] = []
        count = 0
        for lane in [*found]:
            mine = int(self._counts[names == lane].sum())
            if waiting and count + mine > _TOGETHER:
                found.update(self._clashing(names, waiting))
                waiting, count = [], 0
            waiting.append(lane)
            count += mine
        found.update(self._clashing(names, waiting))
        self._parts = []
        return found

    def _clashing(self, names: Int64, lanes: list[int]) -> dict[int, bool]:
        """Return those of some lanes whose rows overlap or cross."""
        number = np.full(int(names.max(initial=0)) + 1, -1, np.int64)
        number[lanes] = np.arange(len(lanes))
        number = number[names]
        mine = [np.flatnonzero(number[part.lane] >= 0) for part in self._parts]
        count = sum(map(len, mine))
        rows = Intervals(*(np.empty(count, np.int64) for _ in range(3)))
        first = 0
        for part, chosen in zip(self._parts, mine, strict=True):
            last = first + len(chosen)
            rows.group[first:last] = number[part.lane[chosen]]
            rows.begin[first:last] = part.begin[chosen]
            rows.end[first:last] = rows.begin[first:last] + part.dur[chosen]
            first = last
        del mine
        is_work = np.array([lane % STRIDE == layout.WORK for lane in lanes], np.bool_)
        sort = order(*rows)
        if not clash(rows, sort, np.where(is_work, np.uint8(1), np.uint8(2))):
            return {}
        rows = rows.take(sort)
        found = np.zeros(len(lanes), np.bool_)
        found[rows.group[overlapping(rows)]] = True
        found &= is_work
        others = rows.take(~is_work[rows.group])
        found[others.group[partially_overlapping(others)]] = True
        return {lanes[at]: True for at in np.flatnonzero(found).tolist()}
