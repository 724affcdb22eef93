"""Readers of FlashInfer's two layouts.

The first is TIRx v1 without finalize. The second keeps the slots, but its tag names the block and the SM and not the
group, and block numbers beyond 4095 run into the SM; so the lane is taken from the slot, and the tag has to agree with
what it does say.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.cuda.layout import FINALIZE, TIRX_RECORD
from lanescope.devices.cuda.tirx import Words, header

I64 = npt.NDArray[np.int64]

#: What the core says of a lane whose records name different SMs.
SEVERAL_SMS = -2


def as_tirx(words: Words) -> tuple[Words, I64, int]:
    """Rewrite a buffer of the second layout as the first.

    Args:
        words: uint64 [n], the whole buffer.

    Returns:
        Words in which a record that names another block than that of its slot names another lane; the SM of each lane,
        int64 [lanes], -1 where none is known, ``SEVERAL_SMS``; and how many records name the block of their slot.

    Raises:
        InputError: there is no header, or one that no kernel writes.
    """
    geometry = header(words)
    made = np.empty_like(words)
    sm = np.empty(geometry.lanes, np.int16)
    agree = core.cuda_flashinfer_to_tirx(words, geometry.lanes, geometry.num_groups, made, sm)
    return made, sm.astype(np.int64), agree


def without_finalize(words: Words) -> Words:
    """Return words in which finalize records, which no FlashInfer probe writes, are of no lane.

    Args:
        words: uint64 [n] in the tags of TIRx v1; copied only if there are any.
    """
    kinds = words & np.uint64(TIRX_RECORD["kind"].mask)
    wrong = kinds == FINALIZE
    wrong[:1] = False
    if not wrong.any():
        return words
    found = words.copy()
    found[wrong] ^= np.uint64(1 << TIRX_RECORD["lane"].lsb)
    return found
