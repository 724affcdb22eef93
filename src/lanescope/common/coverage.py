"""Coverage of lanes: recorded time, up to the last evidence."""

from __future__ import annotations

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
