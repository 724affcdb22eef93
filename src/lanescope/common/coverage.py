"""Coverage of lanes: recorded time, up to the last evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.intervals import Intervals

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def evidence_spans(
    lanes: Int64, track: Int64, seen: Int64, *, start: int, end: int, is_complete: Mask | None = None
) -> Intervals:
    """Return for which time lanes were recorded: from the start of the capture to the last evidence of each lane.

    Evidence is every time at which a record shows that the producer of the lane was still recording it: the end of a
    slice, an instant, the start of an open slice, a reading by whoever writes the lane's records. The silence after it
    is not idle time, because the producer may have stopped, died, or lost what it wrote last; unless the producer
    guarantees that nothing is missing at the end (it closed its stream, wrote a final record, or counted its records
    and all of them arrived): such a lane was recorded to the end of the capture. A lane without evidence and without
    such a guarantee was not recorded at all.

    Args:
        lanes: int64 [lanes], the lanes, each once.
        track: int64 [n], the lane that a piece of evidence is about; others than ``lanes`` do not count.
        seen: int64 [n], its time.
        start: when the recording of all lanes began; evidence before it extends a lane to there.
        end: end of the capture.
        is_complete: bool [lanes], where the producer guarantees that nothing is missing at the end; None: nowhere.

    Returns:
        One interval per recorded lane, in the order of ``lanes``.

    Example:
        >>> spans = evidence_spans(np.array([7, 8, 9]), np.array([7, 8, 7]), np.array([40, 20, 50]), start=0, end=90,
        ...                        is_complete=np.array([False, True, False]))
        >>> spans.group.tolist(), spans.end.tolist()
        ([7, 8], [50, 90])
    """
    none = np.iinfo(np.int64).min
    complete = np.zeros(len(lanes), np.bool_) if is_complete is None else is_complete
    order = np.argsort(lanes)
    place = np.searchsorted(lanes[order], track)
    known = np.append(lanes[order], none)[place] == track
    row = np.append(order, -1)[place[known]]
    first, last = np.full(len(lanes), start, np.int64), np.full(len(lanes), none)
    np.maximum.at(last, row, seen[known])
    if seen.min(initial=start) < start:
        np.minimum.at(first, row, seen[known])
    last[complete] = np.maximum(last[complete], end)
    recorded = last > none
    return Intervals(lanes[recorded], first[recorded], np.maximum(last, first)[recorded])


def extremes(count: int, records: Sequence[tuple[npt.NDArray[Any], Int64]]) -> tuple[Int64, Int64]:
    """Return the first and the last time at which something has a record: int64 [n] which, int64 [n] times.

    Args:
        count: of how many things.
        records: integers [n], which thing each record is of, and int64 [n], its time; fast where times rise.

    Example:
        >>> which, times = extremes(3, [(np.array([2, 0, 2]), np.array([4, 5, 7])), (np.array([2]), np.array([1]))])
        >>> which.tolist(), times.tolist()
        ([0, 2, 0, 2], [5, 1, 5, 7])
    """
    least, most = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    first, last = np.full(count, most), np.full(count, least)
    for which, ts in records:
        if bool((ts[1:] >= ts[:-1]).all()):
            # Of values that are given to one place the last one stays.
            earliest, latest = np.full(count, most), np.full(count, least)
            earliest[which[::-1]], latest[which] = ts[::-1], ts
            np.minimum(first, earliest, out=first)
            np.maximum(last, latest, out=last)
        else:
            np.minimum.at(first, which, ts)
            np.maximum.at(last, which, ts)
    known = np.flatnonzero(first <= last)
    return np.concatenate([known, known]), np.concatenate([first[known], last[known]])
