"""Rows of the native scanner, as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.trace.column import Array

UInt64 = npt.NDArray[np.uint64]
#: Values, and which of them are known; None: all.
Values = tuple[Array, Any]


def filled(values: Values) -> npt.NDArray[np.int64]:
    """Return a cell of a sheet as numbers, 0 where they are missing, int64 [n]."""
    return values[0].view(np.int64)


def cleared(values: Array, known: npt.NDArray[np.bool_]) -> Values:
    """Return values, 0 where they are not known, and whether they are."""
    return np.where(known, values, values.dtype.type(0)), known


class Sheet:
    """Rows of one layout.

    Args:
        columns: [rows] each: uint64 position and time; uint32 thread, constant, bits of the cells that are present, the
            highest that of exits; uint64 cells, 0 where they are not present.
        lists: uint64 [n], items of the cells that are lists, row by row.

    Attributes:
        seq: int64 [rows], position in the stream.
        ts: int64 [rows], time, ns.
        constant: int32 [rows].
        lists: as given.
    """

    def __init__(self, columns: list[Array], lists: UInt64) -> None:
        seq, ts, thread, constant, self._present, *self._cells = columns
        self.seq, self.ts, self.lists = seq.view(np.int64), ts.view(np.int64), lists
        self._thread, self.constant = thread.view(np.int32), constant.view(np.int32)
        # Where all rows have the same cells, nothing needs to be looked at for each.
        self._all, self._any = (
            (int(np.bitwise_and.reduce(self._present)), int(np.bitwise_or.reduce(self._present)))
            if len(seq)
            else (0, 0)
        )

    def __len__(self) -> int:
        return len(self.seq)

    def head(self) -> dict[str, Values]:
        """Return position, time and thread as columns of a table of events."""
        return {"seq": (self.seq, None), "ts": (self.ts, None), "thread_id": (self._thread, None)}

    def is_exit(self) -> npt.NDArray[np.bool_]:
        """Return which rows are of exits, bool [rows]."""
        found: npt.NDArray[np.bool_] = self._present.view(np.int32) < 0
        return found

    def has(self, cell: int) -> npt.NDArray[np.bool_]:
        """Return which rows have a cell, bool [rows]."""
        bit = 1 << cell
        if self._all & bit or not self._any & bit:
            return np.full(len(self), bool(self._all & bit))
        present: npt.NDArray[np.bool_] = (self._present & np.uint32(bit)) != 0
        return present

    def cell(self, cell: int) -> Values:
        """Return a cell of each row, 0 where it is not present, and whether it is."""
        return self._cells[cell], self.has(cell)
