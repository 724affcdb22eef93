"""Layout of what the native core notes while it decodes, besides slices and points.

A note is a row of int64 (``core.AIE_EVENT_COLUMNS``): kind, recording, tick, value, detail, lost frames, byte offset.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]

# Kinds of notes.
SEGMENT, SLOT, RESTART, GAP, OPEN_GAP, END = range(6)
_CONCERNS_TRACKS = np.array([kind in (SEGMENT, SLOT, END) for kind in range(6)])
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


def in_order(noted: Sequence[I64]) -> tuple[I64, I64]:
    """Return the notes of all shards that make tracks, or end recordings, in the order of the dump.

    Args:
        noted: the notes of each shard, int64 [n, columns].

    Returns:
        The notes, int64 [n, columns], and which of ``noted`` each is from, int64 [n].
    """
    chosen = [notes[_CONCERNS_TRACKS[notes[:, KIND]]] for notes in noted]
    if not chosen:
        return np.empty((0, OFFSET + 1), np.int64), np.empty(0, np.int64)
    rows, number = np.concatenate(chosen), np.repeat(np.arange(len(chosen)), [len(notes) for notes in chosen])
    order = np.argsort(rows[:, OFFSET], kind="stable")
    return rows[order], number[order]


def is_gap(notes: I64) -> npt.NDArray[np.bool_]:
    """Return which notes are gaps, with or without an end: bool [notes]."""
    result: npt.NDArray[np.bool_] = (notes[:, KIND] == GAP) | (notes[:, KIND] == OPEN_GAP)
    return result
