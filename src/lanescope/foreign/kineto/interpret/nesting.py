"""How strictly the rows of each lane nest: those of device work may not overlap, others may not cross.

Files list the operators of a thread before its calls, and buffers of a device in any order: whether the rows of a lane
share time is known when all of them are. Until then lane, start and end are kept, 16 bytes for each row.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lanescope._native.core import LaneNesting
from lanescope.foreign.kineto.formats import layout

#: A lane is its place times this, plus its class; rows of categories that are not known have a class of their own.
STRIDE, UNKNOWN = 16, 15


class Nesting:
    """Takes rows part by part."""

    def __init__(self) -> None:
        self._lanes = LaneNesting()

    def add(self, lane: npt.NDArray[np.int32], begin: npt.NDArray[np.int64], dur: npt.NDArray[np.int64]) -> None:
        """Add rows; lanes below 0 are none, and rows without a length only tell that there is the lane."""
        self._lanes.add(lane, begin, dur)

    def result(self, renamed: Mapping[int, int]) -> dict[int, bool]:
        """Return whether rows of each lane overlap (of device work) or cross (others), in order of lanes; asked once.

        Args:
            renamed: lanes that belong to others, which they are to be taken for.
        """
        lanes, is_clash = self._lanes.result(dict(renamed), STRIDE, layout.WORK)
        return dict(zip(lanes.tolist(), is_clash.view(np.bool_).tolist(), strict=True))
