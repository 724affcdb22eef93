"""Event state -> frames -> words -> packets -> dumps: the exact inverse of decoding.

A *run* is a stretch of cycles in which the same events are asserted: run-length coding of the 8-bit event state, which
is what mode 0 encodes without loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.aie.layout import FILLER_WORD, HEADER, PACKET_WORDS, PAYLOAD_WORDS, START

if TYPE_CHECKING:
    from lanescope.devices.aie.records import Items

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]
U8 = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """Frames in order, as bits.

    Attributes:
        raw: uint64 [n], the bits of each, prefix included.
        bits: uint8 [n], its size: 8, 16, 24, 32 or 64.
    """

    raw: U64
    bits: U8

    @classmethod
    def of(cls, items: Items, *, fillers: bool = True) -> Frames:
        """Take the frames of a decoded stream; without fillers they are laid into words anew."""
        from lanescope.devices.aie.layout import FRAMES

        keep = slice(None) if fillers else items.frame != FRAMES.index("filler")
        return cls(items.raw[keep], items.bits[keep])

    @classmethod
    def join(cls, parts: Sequence[Frames]) -> Frames:
        """Return the frames of several, one after the other."""
        return cls(np.concatenate([part.raw for part in parts]), np.concatenate([part.bits for part in parts]))


def start(timer: int, *, restart: bool = False, mode: int = 0) -> Frames:
    """Return a Start frame of a mode with a timer."""
    raw = START.encode({"restart": int(restart), "mode": mode, "timer": timer})
    return Frames(np.array([raw], np.uint64), np.array([START.bits], np.uint8))


def encode_runs(mask: U8, length: I64, *, stop: bool = True, idle: int = 0) -> Frames:
    """Encode the event state behind a Start, as the hardware does.

    Each cycle with events is either "the state goes on" (Repeat) or a frame of its own; quiet cycles are counted in the
    frame behind them, 2**18 at a time in a Sync.

    Args:
        mask: uint8 [n], events asserted in the run, bit i for slot i.
        length: int64 [n], cycles of the run, >= 0. The first one begins in the cycle after Start.
        stop: whether a Stop ends the recording.
        idle: quiet cycles before Stop.

    Returns:
        The frames, Start not among them.

    Raises:
        ValueError: a length is negative.
    """
    mask, length = np.ascontiguousarray(mask, np.uint8), np.ascontiguousarray(length, np.int64)
    room = core.aie_encode_runs_bound(mask, length, idle)
    raw, bits = np.empty(room, np.uint64), np.empty(room, np.uint8)
    count = core.aie_encode_runs(mask, length, stop, idle, raw, bits)
    return Frames(raw[:count], bits[:count])


def pack(frames: Frames, *, aligned: bool = True) -> U32:
    """Lay frames into payload words.

    Args:
        frames: the frames, with or without fillers.
        aligned: as the hardware does: Start begins a packet's payload, and the last payload is filled up. Off, the
            words of ``Frames.of(Items.of(words))`` come out as they were, whatever they were.

    Returns:
        uint32 [words].
    """
    room = len(frames.raw) + 8 + 9 * int(np.count_nonzero(frames.bits == START.bits))
    words = np.empty(room, np.uint32)
    count = core.aie_pack_records(np.ascontiguousarray(frames.raw), np.ascontiguousarray(frames.bits), aligned, words)
    return words[:count]


def header(packet_type: int, column: int, row: int, packet_id: int) -> int:
    """Return the header word of a source, parity included."""
    fields = {"parity": 0, "column": column, "row": row, "type": packet_type, "id": packet_id}
    word = HEADER.encode(fields)
    return HEADER.encode({**fields, "parity": 1 - word.bit_count() % 2})


def packets(header_word: int, payload: U32) -> U32:
    """Put a header in front of every seven payload words.

    Args:
        header_word: header of the source.
        payload: uint32 [words]; filler is added up to whole packets.

    Returns:
        uint32 [packets, 8].
    """
    count = -(-len(payload) // PAYLOAD_WORDS)
    made = np.full((count, PACKET_WORDS), FILLER_WORD, np.uint32)
    made[:, 0] = header_word
    rows = made[:, 1:]
    filled = np.full(count * PAYLOAD_WORDS, FILLER_WORD, np.uint32)
    filled[: len(payload)] = payload
    rows[:] = filled.reshape(count, PAYLOAD_WORDS)
    return made


def text(words: U32) -> bytes:
    """Return words as hex text, one a line."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    nibbles = words[:, None] >> np.arange(28, -4, -4, dtype=np.uint32) & 15
    lines = np.full((len(words), 9), ord("\n"), np.uint8)
    lines[:, :8] = digits[nibbles]
    return lines.tobytes()
