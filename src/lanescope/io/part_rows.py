"""Rows of a drawing that is written batch by batch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.io.event_stream import EventStream, Int64

Mask = npt.NDArray[np.bool_]

_NEVER = np.iinfo(np.int64).min


class PartRows:
    """The rows of each track so far, and until when each is taken.

    Nearly all tracks have one row, of which a time is kept; there may be a million of them.
    """

    def __init__(self) -> None:
        self._end = np.empty(0, np.int64)  # of row 0, by track
        self._ends: dict[int, list[int]] = {}  # of all rows, of tracks that have several

    def place(self, drawing: EventStream) -> tuple[Int64, Int64]:
        """Return the track and the row of each row of a part's drawing, and remember until when it is taken.

        A part that begins on a row before an earlier one ends there goes to the first row that is free by then.
        """
        lanes, placed = drawing.lanes, drawing.placement
        track, row = lanes.track, lanes.row.copy()
        if drawing.tracks >= len(self._end):
            grown = np.full(drawing.tracks + 1, _NEVER)
            grown[: len(self._end)] = self._end
            self._end = grown
        holds = np.flatnonzero(lanes.ranges[:, 0] < lanes.ranges[:, 1])
        begin, end = np.full(len(track), _NEVER), np.full(len(track), _NEVER)
        if len(holds):
            first = lanes.ranges[holds, 0]  # one behind the other
            begin[holds] = placed.begin[first]
            end[holds] = placed.latest_ends(first)
        is_alone = np.bincount(track, minlength=len(self._end))[track] == 1
        is_alone[holds] &= self._end[track[holds]] <= begin[holds]
        for several in self._ends:
            is_alone[track == several] = False
        simple = holds[is_alone[holds]]
        self._end[track[simple]] = end[simple]
        used: set[tuple[int, int]] = set()
        for lane in np.flatnonzero(~is_alone).tolist():
            of = int(track[lane])
            known = int(self._end[of])
            ends = self._ends.setdefault(of, [] if known == _NEVER else [known])
            if end[lane] != _NEVER:
                free = (i for i, taken in enumerate(ends) if taken <= begin[lane] and (of, i) not in used)
                row[lane] = next(free, len(ends))
                ends[row[lane] : row[lane] + 1] = [int(end[lane])]
            used.add((of, int(row[lane])))
        return track, row
