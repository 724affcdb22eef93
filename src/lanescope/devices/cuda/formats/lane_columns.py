"""Columns of lanes in as few bytes as their values need: a buffer may have a million lanes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]
T = TypeVar("T", bound=np.generic)

_NARROW = (np.uint8, np.uint16, np.uint32)


def shared(column: I64) -> I64:
    """Return a column; one whose values are all equal takes no memory, and cannot be written to."""
    if len(column) > 1 and bool((column == column[0]).all()):
        return np.broadcast_to(column[0].copy(), len(column))
    return column


def end_to_end(parts: Sequence[npt.NDArray[T]]) -> npt.NDArray[T]:
    """Return the parts of a column as one of their type, as ``shared`` does."""
    firsts = [part[0] for part in parts if len(part)]
    if firsts and all(bool((part == firsts[0]).all()) for part in parts):
        return np.broadcast_to(firsts[0], sum(map(len, parts)))
    return np.concatenate(parts)


class LaneColumns(MutableMapping[str, I64]):
    """Columns by name, int64 [lanes] each, stored as distances from their least value.

    What is read is a copy: to change a column, store another one.

    Args:
        columns: the columns.
    """

    def __init__(self, columns: Mapping[str, I64]) -> None:
        self._stored: dict[str, tuple[int, npt.NDArray[Any]]] = {}
        self.update(columns)

    def __getitem__(self, name: str) -> I64:
        least, distances = self._stored[name]
        if not distances.strides[0]:
            return np.broadcast_to(np.int64(least), len(distances))
        found = distances.astype(np.int64)
        found += least
        return found

    def __setitem__(self, name: str, column: I64) -> None:
        self._stored[name] = _narrowed(column)

    def __delitem__(self, name: str) -> None:
        del self._stored[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)


def _narrowed(column: I64) -> tuple[int, npt.NDArray[Any]]:
    least, most = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    if least == most:
        return least, np.broadcast_to(np.uint8(0), len(column))
    for dtype in _NARROW:
        if most - least <= np.iinfo(dtype).max:
            return least, (column - np.int64(least)).astype(dtype)
    return 0, np.array(column)
