"""Flows between records, and the regions around them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.cuda.formats.lanes import U32, Rows

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def join(group: I64, key: I64, ts: I64, is_effect: Mask) -> tuple[I64, I64, I64, I64]:
    """Find the cause of each effect: the latest record of its key that is not later.

    Args:
        group: int64 [n], not falling: cause and effect lie in one group.
        key: int64 [n], what cause and effect have in common besides.
        ts: int64 [n].
        is_effect: bool [n]; the others are causes. Of causes at one time the last one counts.

    Returns:
        Effects that have a cause, and their causes, int64 [m] each; effects without a cause; causes without any effect.
    """
    start = np.flatnonzero(np.diff(group, prepend=group[:1] - 1, append=group[-1:] + 1)) if len(group) else [0, 0]
    found = np.empty(len(key), np.int64)
    core.cuda_causes(
        np.asarray(start, np.int64), key.view(np.uint64), np.ascontiguousarray(ts), is_effect.view(np.uint8), found
    )
    effects = np.flatnonzero(found >= 0)
    causes = found[effects]
    used = np.zeros(len(key), np.bool_)
    used[causes] = True
    return effects, causes, np.flatnonzero(is_effect & (found < 0)), np.flatnonzero(~is_effect & ~used)


def enclosing(rows: Rows, lane: U32, index: U32) -> I64:
    """Find the innermost region around each record.

    Args:
        rows: regions as the rules make them, lane after lane, by begin record.
        lane: uint32 [n], lanes of the records, not falling.
        index: uint32 [n], their positions, rising along a lane.

    Returns:
        int64 [n], row of the region, -1 where none is around the record.
    """
    start = np.zeros(len(rows.counts) + 1, np.int64)
    np.cumsum(rows.counts, out=start[1:])
    found = np.empty(len(lane), np.int64)
    core.cuda_enclosing(start, rows["begin_index"], rows["end_index"], lane - np.uint32(rows.base), index, found)
    return found
