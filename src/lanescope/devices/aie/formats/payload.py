"""Streams without packet headers: the payload of one trace unit, as a switch leaves it that drops headers.

A unit always sends packets. On a circuit-switched route they arrive as they are; a packet-switched route without
``keep_pkt_header`` takes the first word of each. What is left has no place in it, and what several units sent cannot be
told apart. To be read, the stream gets a header again, in front of every seven words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie.formats.canonical import NEVER, departures
from lanescope.devices.aie.formats.layout import FILLERS, PACKET_WORDS, decode_stream, is_start

U32 = npt.NDArray[np.uint32]
I64 = npt.NDArray[np.int64]

#: Words of a packet without its header.
GROUP = PACKET_WORDS - 1
#: Groups that decide whether a stream is one of this kind.
_LOOKED_AT = 512


def is_one_stream(words: Sequence[int]) -> bool:
    """Return whether words, from the begin of a file, are what exactly one unit writes.

    A unit has one encoding for what it saw, begins a recording at the begin of a packet, and fills the last packet.
    """
    groups = [list(words[at : at + GROUP]) for at in range(0, len(words) - GROUP + 1, GROUP)][:_LOOKED_AT]
    while groups and not any(groups[-1]):
        groups.pop()
    if not groups or any(not any(group) for group in groups) or not is_start(groups[0][0]):
        return False
    frames = list(decode_stream([word for group in groups for word in group]))
    if any(frame.record is None for _, frame in frames):
        return False
    is_open = is_stopped = False
    for _, frame in frames:
        name = frame.record.name if frame.record is not None else ""
        if name == "start":
            # Another unit's Start, whose packets lie between: the next one may be of either.
            if frame.word % GROUP or (is_open and not frame.values["restart"]):
                return False
            is_open, is_stopped = True, False
        elif is_stopped and name not in FILLERS:
            return False
        elif name == "stop":
            is_open, is_stopped = False, True
    return all(grade != NEVER for _, grade in departures(frames))


def with_headers(words: U32, offsets: I64, header: int) -> tuple[U32, I64, int]:
    """Put a header in front of every seven words, but for those of zeros, which no unit writes.

    Args:
        words: uint32 [n], from the begin of a packet on.
        offsets: int64 [n], where each lies; a header lies where the word behind it does.
        header: the header.

    Returns:
        Words, their offsets, and how many headers there are.
    """
    groups = -(-len(words) // GROUP)
    first = GROUP * np.arange(groups)
    is_filled = np.bitwise_or.reduceat(words, first) != 0 if groups else np.zeros(0, np.bool_)
    places = first[is_filled]
    return (
        np.insert(words, places, np.uint32(header)),
        np.insert(offsets, places, offsets[places]),
        len(places),
    )
