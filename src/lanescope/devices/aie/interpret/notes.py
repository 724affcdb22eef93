"""Layout of what the native core notes while it decodes, besides slices and points.

A note is a row of int64 (``core.AIE_EVENT_COLUMNS``): kind, recording, tick, value, detail, lost frames, byte offset.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]

# Kinds of notes.
SEGMENT, SLOT, RESTART, GAP, OPEN_GAP, END = range(6)
# Columns of a note.
KIND, RECORDING, TICK, VALUE, DETAIL, LOST, OFFSET = range(7)
#: Columns of a recording in the core; pairs of count and first offset follow, one for each of ``SEGMENT_STATS``.
SEGMENT_COLUMNS = (
    "source",
    "ordinal",
    "mode",
    "timer",
    "offset",
    "begin",
    "packets",
    "frames",
    "restarts",
    "end",
    "ending",
    "is_exact",
)
#: Trace modes with rules of their own: execution trace, and the mode that is reserved.
EXECUTION, RESERVED = 2, 3


def track_notes(notes: I64) -> list[list[int]]:
    """Return the notes that begin or end recordings, or assert a slot for the first time."""
    rows: list[list[int]] = notes[(notes[:, KIND] <= SLOT) | (notes[:, KIND] == END)].tolist()
    return rows


def is_gap(notes: I64) -> npt.NDArray[np.bool_]:
    """Return which notes are gaps, with or without an end: bool [notes]."""
    result: npt.NDArray[np.bool_] = (notes[:, KIND] == GAP) | (notes[:, KIND] == OPEN_GAP)
    return result
