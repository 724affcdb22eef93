"""Dispatches that neither stream has, from the dispatch counters of the cores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.formats.layout import REG_TASK_IDS
from lanescope.families.declaration import frozen_class

Int64 = npt.NDArray[np.int64]


@frozen_class
class MissingDispatches:
    """Dispatches that neither stream has, known from the counters of the cores.

    A lower bound: what follows the last record of a core, or comes before its first, leaves no hole.

    Attributes:
        core: int64 [holes].
        count: int64 [holes], dispatches missing in it.
        after: int64 [holes], the row (of those given) before the hole.
        before: int64 [holes], the row behind it.
    """

    core: Int64
    count: Int64
    after: Int64
    before: Int64


def holes(core: Int64, counter: Int64, time: Int64) -> MissingDispatches:
    """Find the holes in the dispatch counters.

    Args:
        core: int64 [n].
        counter: int64 [n], ``reg_task_id``; wraps at ``REG_TASK_IDS``.
        time: int64 [n], a stamp of the dispatch: it tells a wrap from disorder.
    """
    none = np.empty(0, np.int64)
    if _is_dense(core, counter):
        return MissingDispatches(none, none, none, none)
    order = np.lexsort((time, core))
    step = np.diff(counter[order], prepend=0)
    inside = np.diff(core[order], prepend=-1) == 0
    half = REG_TASK_IDS // 2
    wraps = np.where(inside, (step < -half).astype(np.int64) - (step > half), 0)
    total = np.cumsum(wraps)
    # Each core counts its own wraps.
    starts = np.flatnonzero(~inside)
    total -= np.repeat(total[starts], np.diff(starts, append=len(order)))
    unwrapped = np.empty(len(order), np.int64)
    unwrapped[order] = counter[order] + total * REG_TASK_IDS
    order = np.lexsort((unwrapped, core))
    step = np.diff(unwrapped[order], prepend=0)
    open_ = (np.diff(core[order], prepend=-1) == 0) & (step > 1)
    at = np.flatnonzero(open_)
    return MissingDispatches(core[order[at]], step[at] - 1, order[at - 1], order[at])


def _is_dense(core: Int64, counter: Int64) -> bool:
    """Tell whether rows stand by core and count up one by one: what a collector writes that lost nothing."""
    same = core[1:] == core[:-1]
    return bool(((core[1:] > core[:-1]) | (same & (counter[1:] == counter[:-1] + 1))).all())
