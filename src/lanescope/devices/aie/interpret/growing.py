"""Integers that come in pieces and are read as an array in between."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]


class GrowingColumn:
    """64 bits each, all read again and again while more come: a dump of many recordings is read batch by batch."""

    __slots__ = ("_count", "_room")

    def __init__(self) -> None:
        self._room: I64 = np.empty(64, np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def extend(self, values: I64) -> None:
        """Append values, int64 [n]."""
        first, self._count = self._count, self._count + len(values)
        if self._count > len(self._room):
            self._room = np.concatenate([self._room[:first], np.empty(2 * self._count, np.int64)])
        self._room[first : self._count] = values

    @property
    def values(self) -> I64:
        """All values so far, int64 [n]; they stay as they are when more are appended."""
        return self._room[: self._count]


def ordinals(keys: I64, counts: GrowingColumn) -> I64:
    """Return the number of each key among those of its kind, from 1, int64 [n].

    Args:
        keys: int64 [n], from 0.
        counts: how many of each key there were before; those of this call are added.
    """
    if not len(keys):
        return keys
    counts.extend(np.zeros(max(0, int(keys.max()) + 1 - len(counts)), np.int64))
    order = np.argsort(keys, kind="stable")
    first = np.flatnonzero(np.diff(keys[order], prepend=-1))
    size = np.diff(first, append=len(keys))
    found = np.empty(len(keys), np.int64)
    found[order] = np.arange(len(keys)) - np.repeat(first, size) + 1
    found += counts.values[keys]
    counts.values[keys[order[first]]] += size
    return found
