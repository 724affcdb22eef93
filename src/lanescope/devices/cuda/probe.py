"""Tell whether the beginning of a file is a probe buffer."""

from __future__ import annotations

import numpy as np

from lanescope.devices.cuda import npy
from lanescope.devices.cuda.decode import words_of
from lanescope.devices.cuda.lanes import STEP_BACK
from lanescope.devices.cuda.layout import TIRX_V1, WORD_BYTES
from lanescope.devices.cuda.tirx import TirxBuffer, Words, find_stride, header
from lanescope.errors import InputError
from lanescope.source import Head, Match

#: From so many records on, checks that all hold are no coincidence.
ENOUGH_RECORDS = 8
#: The least share of words that must stand where their lane says, and of records that must make sense.
_MOST = 0.9


def probe(head: Head) -> Match:
    """Judge by the header word, by how many words name the lane of their slot, and by their order."""
    data = np.frombuffer(head.data, np.uint8)
    try:
        content = words_of(data)
        geometry = header(content.words)
    except InputError as error:
        return Match(0, "", error.message)
    is_npy = head.data.startswith(npy.MAGIC)
    slots = (head.size - content.before) // WORD_BYTES
    if geometry.lanes > slots - 1:
        return Match(0, "", f"{geometry.lanes} lanes do not fit in {slots} slots")
    words = content.words
    if len(words) <= geometry.lanes:
        # The head ends inside the first row: nothing can tell the stride there, and nothing needs it.
        words = np.concatenate([words, np.zeros(geometry.lanes + 1 - len(words), np.uint64)])
    return _judge(words, is_npy=is_npy)


def _judge(words: Words, *, is_npy: bool) -> Match:
    geometry, found = find_stride(words, header(words))
    grid = f"{geometry.num_blocks} blocks of {geometry.num_groups} groups"
    if not found.used:
        return Match(60 if is_npy else 40, TIRX_V1, f"a header of {grid} and no record")
    placed = found.used - found.misplaced
    reason = f"a header of {grid}, {placed} of {found.used} words name the lane of their slot"
    if not geometry.stride or placed < _MOST * found.used:
        return Match(45 if is_npy else 30, TIRX_V1, reason)
    summary = TirxBuffer(words, geometry, found).decode(split=True, step_back=STEP_BACK).summary
    odd = int((summary["unmatched"] + summary["backward"] + summary["after_finalize"]).sum())
    reason += f", {odd} of them out of order" if odd else ""
    if odd > (1 - _MOST) * placed:
        return Match(70 if is_npy else 40, TIRX_V1, reason)
    if placed < ENOUGH_RECORDS:
        return Match(85 if is_npy else 55, TIRX_V1, reason)
    return Match(95 if placed == found.used and not odd else 85, TIRX_V1, reason)
