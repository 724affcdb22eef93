"""Integers that come one by one and are read as an array in between."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]


class GrowingColumn:
    """A column of int64 that grows at its end.

    Appending is as cheap as to a list, and reading costs what came since the last time: a dump of many recordings is
    read batch by batch, and each batch asks for the columns of all recordings so far.
    """

    __slots__ = ("_count", "_new", "_room")

    def __init__(self) -> None:
        self._room: I64 = np.empty(64, np.int64)
        self._count = 0  # of the values that are in the room
        self._new: list[int] = []

    def append(self, value: int) -> None:
        """Add a value."""
        self._new.append(value)

    def __len__(self) -> int:
        return self._count + len(self._new)

    def __getitem__(self, index: int) -> int:
        return self._new[index - self._count] if index >= self._count else int(self._room[index])

    @property
    def values(self) -> I64:
        """All values so far, int64 [n]; they stay as they are when more are appended."""
        if self._new:
            count = len(self)
            if count > len(self._room):
                self._room = np.concatenate([self._room[: self._count], np.empty(count, np.int64)])
            self._room[self._count : count] = self._new
            self._count = count
            self._new.clear()
        return self._room[: self._count]
