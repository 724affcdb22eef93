"""Which parts of paths are shown."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lanescope.analysis.windows.report import described
from lanescope.common.intervals import Ints
from lanescope.trace import Trace
from lanescope.trace.column import Mask


def is_alone(trace: Trace) -> bool:
    """Return whether a trace is that of a window that was read without the rest.

    Causes outside of the window are then not known, nor followed.
    """
    return trace.origin is None and described(trace) is not None


class Selection(NamedTuple):
    """What a window has of the trace whose paths are found.

    Attributes:
        trace: the window, whose slices the tables of the paths refer to.
        tracks: bool [tracks], the lanes that it has.
        slices: bool [slices of the whole], those that it selects by name, duration or condition; None: all.
        ids: int64 [slices of the whole], their ids in the window; -1 for those that it lacks.
        asked: the window in words.
    """

    trace: Trace
    tracks: Mask
    slices: Mask | None
    ids: Ints
    asked: str

    def of_parts(self, lane: Ints, slices: Ints, is_named: Mask) -> Mask:
        """Return which parts are shown, bool [parts].

        Args:
            lane: int64 [parts], the lane of each.
            slices: int64 [parts], the slice of each, by its id in the whole.
            is_named: bool [parts], whether a part belongs to its slice: time in which a lane is idle belongs to none.
        """
        found: Mask = self.tracks[lane]
        if self.slices is not None:
            found = found & is_named & self.slices[slices]
        return found

    def of_slices(self, lane: Ints, slices: Ints) -> Mask:
        """Return which slices of the whole are shown, bool [n]; arguments as ``of_parts``."""
        return self.of_parts(lane, slices, np.ones(len(slices), np.bool_)) & (self.ids[slices] >= 0)
