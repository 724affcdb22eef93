"""Readers of FlashInfer's two layouts.

The first is TIRx v1 without finalize. The second keeps the slots, but its tag names the block and the SM and not the
group, and block numbers beyond 4095 run into the SM; so the lane is taken from the slot, and the tag has to agree with
what it does say.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.cuda.formats.layout import FINALIZE, TIRX_RECORD
from lanescope.devices.cuda.formats.tirx import header
from lanescope.devices.cuda.formats.word_source import Words, WordStore, store_of

#: What the core says of a lane whose records name different SMs.
SEVERAL_SMS = -2
_NO_SM = -1


class Rewritten(WordStore):
    """A buffer of the second layout, rewritten as the first.

    A record that names another block than that of its slot names another lane.

    Args:
        words: the buffer; rewritten piece by piece where it is not in memory.

    Raises:
        InputError: the header is missing, or no kernel writes it.

    Attributes:
        sm: int64 [lanes], the SM of each lane, -1 where none is known, ``SEVERAL_SMS``.
        agree: how many records name the block of their slot.
    """

    def __init__(self, words: Words | WordStore) -> None:
        store = store_of(words)
        geometry = header(store)
        self.is_in_memory = store.is_in_memory
        self._store, self._lanes, self._groups = store, geometry.lanes, geometry.num_groups
        sm = np.full(self._lanes, _NO_SM, np.int16)
        self.agree = 0
        for first, piece in store.pieces(0, len(store), 1):
            self._made, agree = self._rewrite(first, piece, sm)
            self.agree += agree
        self.sm = sm.astype(np.int64)
        if not self.is_in_memory:
            self._made = np.empty(0, np.uint64)

    def _rewrite(self, first: int, piece: Words, sm: npt.NDArray[np.int16]) -> tuple[Words, int]:
        made = np.empty_like(piece)
        return made, core.cuda_flashinfer_to_tirx(piece, first, self._groups, made, sm)

    def __len__(self) -> int:
        return len(self._store)

    def window(self, first: int, last: int) -> Words:
        """Return the words from ``first`` to before ``last``, or to the end, uint64 [m]."""
        if self.is_in_memory:
            return self._made[first:last]
        return self._rewrite(first, self._store.window(first, last), np.full(self._lanes, _NO_SM, np.int16))[0]


class WithoutFinalize(WordStore):
    """Words in which finalize records, which no FlashInfer probe writes, are of no lane.

    Args:
        words: in the tags of TIRx v1; copied only if there are any.
    """

    def __init__(self, words: WordStore) -> None:
        self._store = words
        self.is_in_memory = words.is_in_memory
        if self.is_in_memory:
            self._made = _without_finalize(0, words.whole())

    def __len__(self) -> int:
        return len(self._store)

    def window(self, first: int, last: int) -> Words:
        """Return the words from ``first`` to before ``last``, or to the end, uint64 [m]."""
        if self.is_in_memory:
            return self._made[first:last]
        return _without_finalize(first, self._store.window(first, last))


def _without_finalize(first: int, words: Words) -> Words:
    """Return words, the first of them of slot ``first``; copied only if there are any finalize records."""
    wrong = words & np.uint64(TIRX_RECORD["kind"].mask) == FINALIZE
    if first == 0:
        wrong[:1] = False
    if not wrong.any():
        return words
    found = words.copy()
    found[wrong] ^= np.uint64(1 << TIRX_RECORD["lane"].lsb)
    return found
