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
    one of the block. If that leaves ends of a key without a start, something is missing: then lanes are paired one by
    one first, and only what is left of them is joined, unless ``by_event`` is set. A start and an end that
    are the only records of their key, in two lanes that lost nothing, belong together even if the end is earlier: both
    lanes read the clock of one SM, so reading it cannot explain that.

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
    if not by_event:
        start_at, end_at = _reversed(block, key, lane, is_end, partner, across & ~is_lossy)
        partner[start_at], partner[end_at] = end_at, start_at
    begin = np.flatnonzero(~is_end & ~is_repeated)
    end = partner[begin]
    is_doubtful = (end >= 0) & (lane[begin] != lane[end]) & (is_lossy[begin] | is_lossy[end])
    unmatched = np.flatnonzero((is_end & (partner < 0)) | is_repeated)
    pairs = Pairs(begin, end, unmatched, (ambiguous[begin] != 0) | is_doubtful, np.zeros(len(begin), np.bool_))
    return pairs, np.flatnonzero(is_repeated)


def _reversed(block: I64, key: I64, lane: U32, is_end: Mask, partner: I64, usable: Mask) -> tuple[I64, I64]:
    """Return starts and ends without partner that are the only records of their key in a block, and in two lanes."""
    if not ((partner < 0) & usable).any():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.lexsort((is_end, key, block))
    changes = (np.diff(block[order]) != 0) | (np.diff(key[order]) != 0)
    first = np.concatenate(([0], np.flatnonzero(changes) + 1))
    counts = np.diff(np.append(first, len(order)))
    first = first[counts == 2]
    start, end = order[first], order[first + 1]
    found = ~is_end[start] & is_end[end] & (partner[start] < 0) & (partner[end] < 0) & (lane[start] != lane[end])
    found &= usable[start] & usable[end]
    return start[found], end[found]
