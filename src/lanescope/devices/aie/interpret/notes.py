"""Layout of what the native core notes while it decodes, besides slices and points.

A note is a row of int64 (``core.AIE_EVENT_COLUMNS``): kind, recording, tick, value, detail, lost frames, byte offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

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


def recording_notes(noted: Sequence[I64]) -> list[list[int]]:
    """Return the notes of all shards that begin or end recordings, in the order of the dump.

    Each has the number of its shard and its own among the notes of that behind its columns.
    """
    parts = []
    for number, notes in enumerate(noted):
        index = np.flatnonzero((notes[:, KIND] == SEGMENT) | (notes[:, KIND] == END))
        parts.append(np.column_stack([notes[index], np.full(len(index), number), index]))
    joined = np.concatenate(parts) if parts else np.empty((0, OFFSET + 3), np.int64)
    rows: list[list[int]] = joined[np.argsort(joined[:, OFFSET], kind="stable")].tolist()
    return rows


class SlotNotes:
    """The notes of a shard that assert a slot for the first time in a recording.

    Args:
        notes: those of the shard, int64 [n, columns].

    Attributes:
        masks: recording -> bits of the slots that are noted of it.
    """

    def __init__(self, notes: I64) -> None:
        index = np.flatnonzero(notes[:, KIND] == SLOT)
        index = index[np.argsort(notes[index, RECORDING], kind="stable")]
        self._notes, self._index = notes, index
        recordings, starts = np.unique(notes[index, RECORDING], return_index=True)
        known = recordings.tolist()
        bits = np.bitwise_or.reduceat(1 << notes[index, VALUE], starts).tolist() if known else []
        self.masks: dict[int, int] = dict(zip(known, bits, strict=True))
        self._bounds = dict(zip(known, pairwise([*starts.tolist(), len(index)]), strict=True))

    def of(self, recording: int) -> list[tuple[int, int, int]]:
        """Return offset, number among the notes, and slot of the notes of a recording."""
        index = self._index[slice(*self._bounds[recording])]
        return list(
            zip(self._notes[index, OFFSET].tolist(), index.tolist(), self._notes[index, VALUE].tolist(), strict=True)
        )


def is_gap(notes: I64) -> npt.NDArray[np.bool_]:
    """Return which notes are gaps, with or without an end: bool [notes]."""
    result: npt.NDArray[np.bool_] = (notes[:, KIND] == GAP) | (notes[:, KIND] == OPEN_GAP)
    return result
