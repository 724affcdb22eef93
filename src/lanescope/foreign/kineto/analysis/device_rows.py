"""Rows of devices: what ran there, without rows that only carry counters of a kernel."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from lanescope.foreign.kineto.formats import layout
from lanescope.trace import Trace

Mask = npt.NDArray[np.bool_]

#: Categories of everything that a device does.
ALL = frozenset(category for category, of in layout.CLASS_OF.items() if of == layout.WORK)


def rows_of(trace: Trace, categories: Collection[str]) -> Mask:
    """Return which slices are device work of some categories, bool [slices]."""
    found = _having(trace, "category", [text in categories for text in _texts(trace, "category")])
    found &= lanes_of_profiler(trace)[trace.slices.values("track_id")]
    carrying = [layout.carries_metrics(text) for text in _texts(trace, "name")]
    if any(carrying):
        found &= ~_having(trace, "name", carrying)
    return found


def lanes_of_profiler(trace: Trace) -> Mask:
    """Return which tracks are of files of this family: a merged trace has those of others, too; bool [tracks]."""
    families = trace.inputs.values("family")
    is_mine = np.array([family == "kineto" for family in families.tolist()], np.bool_)
    tracks = trace.tracks
    if is_mine.all():
        return np.ones(len(tracks), np.bool_)
    found: Mask = is_mine[tracks.values("input_id")] & tracks.valid("input_id")
    return found


def _texts(trace: Trace, column: str) -> list[str]:
    found = trace.slices.column(column).dictionary
    return list(found.texts) if found is not None else []


def _having(trace: Trace, column: str, fits: list[bool]) -> Mask:
    found: Mask = np.array([*fits, False], np.bool_)[trace.slices.column(column).values]
    return found
