"""Slices that a window selects by name, duration or condition, among all that run in it.

Time in which a lane is busy, waits or is idle is told by all of its slices: those that a window does not select were
there. So analyses of lanes look at all slices, and what they show is that of the selected ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lanescope.analysis.windows.cut import Limits, WindowCut
from lanescope.analysis.windows.report import require_all_slices
from lanescope.analysis.windows.window import HIGHEST, LOWEST, Window
from lanescope.common.intervals import Ints
from lanescope.trace import Trace
from lanescope.trace.column import Mask
from lanescope.trace.row_packing import rows_of


class SelectedSlices(NamedTuple):
    """Which slices are selected.

    Attributes:
        mask: bool [slices].
        ids: int [slices], the id that each has where only they are there; -1 for others.
    """

    mask: Mask
    ids: Ints

    @classmethod
    def of(cls, mask: Mask) -> SelectedSlices:
        """Return them; ids count the selected ones, in their order."""
        count = np.cumsum(mask, dtype=np.int32 if len(mask) < 1 << 31 else np.int64)
        return cls(mask, np.where(mask, count - 1, -1))

    def take(self, rows: Ints) -> SelectedSlices:
        """Return what they are of the slices at ``rows``."""
        return SelectedSlices(self.mask[rows], self.ids[rows])

    def where(self, kept: Mask) -> SelectedSlices:
        """Return what they are of the slices that stay, bool [slices]."""
        return self.of(self.mask[kept])

    def at(self, rows: Ints) -> Mask:
        """Return whether the slice at each row is selected, bool [n]; that at -1, which is none, is not."""
        if not len(self.mask):
            return np.zeros(len(rows), np.bool_)
        found: Mask = (rows >= 0) & self.mask[np.maximum(rows, 0)]
        return found


def over_all_slices(trace: Trace) -> tuple[Trace, SelectedSlices] | None:
    """Return all slices of a window, and which of them it selects; None where it selects all.

    Raises:
        UsageError: slices were left out, and are not in memory.
    """
    found = _unfiltered(trace)
    if found is None:
        require_all_slices(trace)
        return None
    whole, mask = found
    require_all_slices(whole)
    return whole, SelectedSlices.of(mask)


def _unfiltered(trace: Trace) -> tuple[Trace, Mask] | None:
    """Return the window without its filters, and which of its slices the trace has; None where it has no filter."""
    origin = trace.origin
    if origin is None:
        return None
    outer = _unfiltered(origin.whole)
    if outer is None and not origin.has_filter:
        return None
    above, has = (origin.whole, None) if outer is None else outer
    start, end = LOWEST if origin.start is None else origin.start, HIGHEST if origin.end is None else origin.end
    cut = WindowCut(Limits(Window(lanes=origin.lanes), start, end), at_once=False)
    cut.add(above)
    found = cut.finish()
    ids = above.slices.values("id")
    own, is_own = ids, np.ones(len(ids), np.bool_)
    if has is not None:  # ids of the window in between, which counts those that it has
        own, is_own = origin.whole.slices.values("id")[np.maximum(np.cumsum(has) - 1, 0)] if has.any() else ids, has
    kept = origin.kept.of(own, is_own) >= 0
    mask = np.zeros(len(found.slices), np.bool_)
    row = rows_of(found.slices.values("id"), cut.kept_slices.of(ids, np.ones(len(ids), np.bool_)))
    mask[row[kept & (row >= 0)]] = True
    return found, mask
