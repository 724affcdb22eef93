"""New ids of the rows that a window keeps."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from lanescope.common.intervals import Ints
from lanescope.source.disk_arrays import is_memory_limited, kept_on_disk
from lanescope.trace.column import Mask

_NONE = np.empty(0, np.int64)


class KeptIds:
    """Ids of the rows of one table that are kept, batch by batch; each gets the next free id.

    Attributes:
        count: how many there are so far.
    """

    def __init__(self) -> None:
        self.count = 0
        # Smallest and largest old id of each batch, its first new id, and, if they are not all between these two in
        # order, its old ids sorted and the place of each in the batch.
        self._parts: list[tuple[int, int, int, tuple[Ints, Ints] | None]] = []

    def add(self, ids: Ints) -> Ints:
        """Keep the rows of the next batch with these ids (int64 [n], each once); return their new ids."""
        new = np.arange(self.count, self.count + len(ids))
        if len(ids):
            is_rising = bool((ids[1:] > ids[:-1]).all())
            first, last = (int(ids[0]), int(ids[-1])) if is_rising else (int(ids.min()), int(ids.max()))
            if is_rising and last - first + 1 == len(ids):
                self._parts.append((first, last, self.count, None))
            else:
                with kept_on_disk() if is_memory_limited() else nullcontext():
                    order = np.argsort(ids, kind="stable")
                    self._parts.append((first, last, self.count, (ids[order], order)))
        self.count += len(ids)
        return new

    def of(self, ids: Ints, valid: Mask) -> Ints:
        """Return the new id of each old one, int64 [n]; -1 where its row is not kept, or not valid."""
        found = np.full(len(ids), -1, np.int64)
        if not len(ids):
            return found
        low, high = int(ids.min()), int(ids.max())
        for first, last, new, kept in self._parts:
            if first > high or last < low:
                continue
            inside = np.flatnonzero(valid & (ids >= first) & (ids <= last))
            if kept is None:
                found[inside] = ids[inside] - first + new
                continue
            at = np.searchsorted(kept[0], ids[inside])
            hit = kept[0][at] == ids[inside]
            found[inside[hit]] = kept[1][at[hit]] + new
        return found
