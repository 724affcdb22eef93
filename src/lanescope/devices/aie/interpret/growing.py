"""Integers that come one by one and are read as an array in between."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]


class GrowingColumn(list[int]):
    """A list of 64 bits each to which is only appended, and its values as an array.

    Reading the array costs what came since the last time: a dump of many recordings is read batch by batch, and each
    batch asks for the columns of all recordings so far.
    """

    __slots__ = ("_read", "_room")

    def __init__(self) -> None:
        super().__init__()
        self._room: I64 = np.empty(64, np.int64)
        self._read = 0  # how many of the values are in the room

    @property
    def values(self) -> I64:
        """All values so far, int64 [n]; they stay as they are when more are appended."""
        count = len(self)
        if count > len(self._room):
            self._room = np.concatenate([self._room[: self._read], np.empty(count, np.int64)])
        if count > self._read:
            self._room[self._read : count] = self[self._read :]
            self._read = count
        return self._room[:count]
