"""Executions of kernels, as a tool of the host saw them or as kernels recorded themselves: what joins the two."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class KernelSpans(NamedTuple):
    """Executions of kernels in a trace, sorted by begin; arrays of one length.

    Attributes:
        slice: int64; the slice that is the execution, or the first of the slices that it recorded.
        track: int64; the lane of that slice.
        begin: int64, in the trace's time unit.
        end: int64.
        name: text; of the kernel, empty where the trace does not know it.
    """

    slice: npt.NDArray[np.int64]
    track: npt.NDArray[np.int64]
    begin: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    name: npt.NDArray[np.object_]
