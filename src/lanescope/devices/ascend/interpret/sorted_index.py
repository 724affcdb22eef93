"""Where values stand in a rising list: by a table where the list is dense, which is ten times faster than a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.distinct import distinct
from lanescope.declaration import frozen_class

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]
Number = TypeVar("Number", bound=np.generic)

#: Entries of a table for each value of the list, beyond some that cost nothing.
_SPARSE, _FREE = 4, 1 << 16
#: Rings that are told apart by a table.
_RINGS = 1 << 16
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@frozen_class
class SortedIndex:
    """Finds ids in a list of them.

    Ids are dense where each ring counts from some number: then the table of a ring, from its first id to its last, says
    where each stands.

    Attributes:
        ids: uint64, rising.
        shift: int64, by ring: what to add to the number of an id to get its entry in the table; None: no table.
        table: int32, place of the id, -1 for none.
    """

    ids: UInt64
    shift: Int64 | None = None
    table: npt.NDArray[np.int32] | None = None

    @classmethod
    def among(cls, ids: UInt64) -> SortedIndex:
        """Return the places of ids (distinct, rising)."""
        if not len(ids):
            return cls(ids)
        ring, number = (ids >> _HALF).astype(np.int64), (ids & _LOW).astype(np.int64)
        begin = np.flatnonzero(np.diff(ring, prepend=-1))
        end = np.append(begin[1:], len(ids))
        length = number[end - 1] - number[begin] + 1
        if ring[-1] >= _RINGS or int(length.sum()) > _SPARSE * len(ids) + _FREE:
            return cls(ids)
        shift = np.full(int(ring[-1]) + 1, -1, np.int64)
        shift[ring[begin]] = np.cumsum(length) - length - number[begin]
        table = np.full(int(length.sum()), -1, np.int32)
        table[number + shift[ring]] = np.arange(len(ids), dtype=np.int32)
        return cls(ids, shift, table)

    def of(self, ids: UInt64) -> Int64:
        """Return the place of each id, int64 [n]; all of them are in the list."""
        if self.shift is None or self.table is None:
            return np.searchsorted(self.ids, ids)
        found: Int64 = core.ascend_places(np.ascontiguousarray(ids), self.shift, self.table)
        return found


def union(parts: Sequence[UInt64]) -> SortedIndex:
    """Return the places of all ids of some lists, of any order and repetition."""
    if not parts:
        return SortedIndex.among(np.empty(0, np.uint64))
    lists = [np.ascontiguousarray(part) for part in parts]
    ids = core.ascend_union(lists, _SPARSE * sum(map(len, lists)) + _FREE)
    return SortedIndex.among(distinct(np.concatenate(lists)) if ids is None else ids)
