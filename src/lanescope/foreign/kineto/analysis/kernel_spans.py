"""Executions of kernels on streams: what kernels recorded themselves may lie inside of them."""

from __future__ import annotations

import numpy as np

from lanescope.common.intervals import known_extents
from lanescope.families import KernelSpans
from lanescope.foreign.kineto.analysis import device_rows
from lanescope.trace import Trace

#: Categories of kernels, of newer and older producers.
_KERNELS = ("kernel", "Kernel")
_STREAM = "stream"


def kernel_spans(trace: Trace) -> KernelSpans | None:
    """Return the kernels of all devices, in order of time; None without any."""
    tracks, slices = trace.tracks, trace.slices
    is_stream = tracks.values("role") == _STREAM
    rows = np.flatnonzero(device_rows.rows_of(trace, _KERNELS) & is_stream[slices.values("track_id")])
    if not len(rows):
        return None
    extents = known_extents(slices).take(rows)
    order = np.argsort(extents.begin, kind="stable")
    rows = rows[order]
    return KernelSpans(
        rows, extents.group[order], extents.begin[order], extents.end[order], slices.values("name")[rows]
    )
