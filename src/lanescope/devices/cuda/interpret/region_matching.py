"""Asynchronous regions: their starts and ends, in one lane or in several of a block."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.pairing import Pairs

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
Mask = npt.NDArray[np.bool_]

#: What the core gives for a start of what its lane has open already.
_REPEATED = -2


def pair(
    block: I64,
    key: I64,
    ts: I64,
    lane: U32,
    launch: U32,
    is_end: Mask,
    *,
    across: Mask,
    is_lossy: Mask,
    by_event: bool,
) -> tuple[Pairs, I64]:
    """Pair starts and ends of equal keys in the lanes of a block.

    An end takes the oldest open start of its own lane. Where there is none and ``across`` is set, it takes the oldest
    one of the block; unless ``by_event`` is set, of those that no end of their own lane closes.

    Args:
        block: int64 [n], not falling.
        key: int64 [n], what a start and its end have in common, the launch included.
        ts: int64 [n], of one clock within a block.
        lane: uint32 [n], not falling; the records of a lane in write order.
        launch: uint32 [n].
        is_end: bool [n].
        across: bool [n], equal for equal keys.
        is_lossy: bool [n], where the record's lane lost records, or may have.
        by_event: the rules of Proton, whose records have no token: a lane has a key open once, a further start of it
            is without partner; records of two lanes at one time are in the order of their lanes. Otherwise starts come
            first.

    Returns:
        The pairs, ambiguous where another start was open that the end could have closed, and where a lane that lost
        records has one of two that are in different lanes; and starts without partner, int64 [m], which
        ``Pairs.unmatched`` has as well.

    Complexity:
        O(n log n), whatever the keys.
    """
    start = np.flatnonzero(np.diff(block, prepend=block[:1] - 1, append=block[-1:] + 1)) if len(block) else np.zeros(1)
    partner, ambiguous = np.empty(len(key), np.int64), np.zeros(len(key), np.uint8)
    core.cuda_pair_regions(
        np.asarray(start, np.int64),
        np.ascontiguousarray(key).view(np.uint64),
        np.ascontiguousarray(ts),
        np.ascontiguousarray(lane),
        np.ascontiguousarray(launch),
        np.ascontiguousarray(is_end).view(np.uint8),
        np.ascontiguousarray(across).view(np.uint8),
        by_event,
        not by_event,
        partner,
        ambiguous,
    )
    is_repeated = partner == _REPEATED
    begin = np.flatnonzero(~is_end & ~is_repeated)
    end = partner[begin]
    is_doubtful = (end >= 0) & (lane[begin] != lane[end]) & (is_lossy[begin] | is_lossy[end])
    unmatched = np.flatnonzero((is_end & (partner < 0)) | is_repeated)
    pairs = Pairs(begin, end, unmatched, (ambiguous[begin] != 0) | is_doubtful, np.zeros(len(begin), np.bool_))
    return pairs, np.flatnonzero(is_repeated)
