"""The bytes of some lanes at a time: of a buffer in a file, no more has to be in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.formats.declared.arrays import Arrays
from lanescope.devices.cuda.formats.declared.declaration import MAIN
from lanescope.devices.cuda.formats.declared.geometry import Geometry, Window
from lanescope.devices.cuda.formats.word_source import FileBytes, LaneMajorStore

I64 = npt.NDArray[np.int64]
Part = tuple[int, int]

_WORD = 8
#: Lanes are read in one piece if they make up this share of it.
_DENSE = 0.5


def cut(counts: I64, limit: int) -> list[Part]:
    """Cut lanes, first and last + 1, such that no part has more than ``limit`` records unless one lane has.

    Args:
        counts: int64 [lanes], records of each lane.
        limit: the most records of a part.
    """
    ends = np.cumsum(counts)
    parts, first, done = [], 0, 0
    while first < len(counts):
        last = max(first + 1, int(np.searchsorted(ends, done + limit, side="right")))
        parts.append((first, last))
        first, done = last, int(ends[last - 1])
    return parts or [(0, len(counts))]


class Windows:
    """What gives the bytes of lanes.

    Args:
        arrays: the content of the buffer.
        geometry: where its records are.
        size: bytes of a record.
        parts: the lanes that will be asked for together.
    """

    def __init__(self, arrays: Arrays, geometry: Geometry, size: int, parts: Sequence[Part]) -> None:
        self._main, self._geometry, self._size = arrays.data[MAIN], geometry, size
        self._rows: LaneMajorStore | None = None
        self._whole: npt.NDArray[np.uint8] | None = None
        self._unit = 0
        if not isinstance(self._main, FileBytes):
            self._whole = np.ascontiguousarray(self._main)
        elif any(self._extent(part) is None for part in parts) and not self._is_apart:
            self._take_turns(self._main, parts)

    @property
    def is_whole(self) -> bool:
        """Whether a file had to be read whole."""
        return self._whole is not None and isinstance(self._main, FileBytes)

    @property
    def _is_apart(self) -> bool:
        """Whether the records of each lane end before those of the next one begin."""
        base, count, stride = self._geometry.base, self._geometry.room, self._geometry.stride
        used = count > 0
        ends = base[used] + (count[used] - 1) * stride + self._size
        return stride > 0 and bool((ends[:-1] <= base[used][1:]).all())

    def of(self, part: Part) -> Window:
        """Return the bytes of a part."""
        first, last = part
        geometry = self._geometry
        if self._whole is not None:
            return Window(self._whole, geometry.base[first:last], geometry.stride)
        if self._rows is not None:
            words = self._rows.rows(first * self._unit // _WORD, last * self._unit // _WORD)
            at = np.arange(last - first, dtype=np.int64) * self._unit
            return Window(words.view(np.uint8), at, (last - first) * self._unit)
        extent = self._extent(part)
        if extent is None:
            return self._lane_by_lane(first, last)
        low, high = extent
        return Window(self._main[low:high], geometry.base[first:last] - low, geometry.stride)

    def _lane_by_lane(self, first: int, last: int) -> Window:
        """Return the bytes of lanes of which most are not used, without those."""
        geometry = self._geometry
        count = geometry.room[first:last]
        sizes = np.where(count > 0, (count - 1) * geometry.stride + self._size, 0)
        ends = np.cumsum(sizes)
        data = np.empty(int(ends[-1]), np.uint8)
        for base, size, end in zip(geometry.base[first:last].tolist(), sizes.tolist(), ends.tolist(), strict=True):
            data[end - size : end] = self._main[base : base + size]
        return Window(data, ends - sizes, geometry.stride)

    def _extent(self, part: Part) -> Part | None:
        """Return the bytes from the first record of a part to its last, None if most of them are of other lanes."""
        lanes = slice(*part)
        count, base = self._geometry.room[lanes], self._geometry.base[lanes]
        used = count > 0
        if not used.any():
            return 0, 0
        ends = base[used] + (count[used] - 1) * self._geometry.stride
        low = int(min(base[used].min(), ends.min()))
        high = int(max(base[used].max(), ends.max())) + self._size
        return (low, high) if int(count.sum()) * self._size >= _DENSE * (high - low) else None

    def _take_turns(self, file: FileBytes, parts: Sequence[Part]) -> None:
        """Write the records of lanes that take turns to a temporary file, part by part; else read all bytes."""
        base, stride = self._geometry.base, self._geometry.stride
        lanes = len(base)
        unit = int(base[1] - base[0]) if lanes > 1 else stride
        is_even = unit >= self._size and bool((np.diff(base) == unit).all()) and stride >= lanes * unit
        if not is_even or (int(base[0]) | unit | stride) % _WORD:
            self._whole = file[0 : len(file)]
            return
        self._unit = unit
        words = [(first * unit // _WORD, last * unit // _WORD) for first, last in parts]
        rows = int(self._geometry.room.max(initial=0))
        self._rows = LaneMajorStore(file.words(), stride // _WORD, rows, words, first=int(base[0]) // _WORD)
