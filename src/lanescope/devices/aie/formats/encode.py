"""Event state -> frames -> words -> packets -> dumps: the exact inverse of decoding.

A *run* is a stretch of cycles in which the same events are asserted: run-length coding of the 8-bit event state, which
is what mode 0 encodes without loss. Mode 1 encodes such runs without the time between them, mode 2 the decisions of the
program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.aie.formats.layout import (
    EVENT_PC,
    FILLER_WORD,
    FILLERS,
    FLOW_KINDS,
    FRAMES,
    HEADER,
    MODE0,
    MODE2,
    PACKET_WORDS,
    PAYLOAD_WORDS,
    START,
    STOP,
    SYNC,
    SYNC_CYCLES,
)

if TYPE_CHECKING:
    from lanescope.devices.aie.formats.raw_frames import Items

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
U32 = npt.NDArray[np.uint32]
U8 = npt.NDArray[np.uint8]

_START = int(START.prefix, 2)
_MOST_REPEATS = MODE0["repeat1"]["repeats"].mask


def _flow_frames() -> tuple[U64, U8]:
    """Return prefix and size of the frame that says each of ``FLOW_KINDS``."""
    frames = [MODE2["start" if kind == "restart" else kind] for kind in FLOW_KINDS]
    modes = {"start": 2 << 24, "restart": 2 << 24 | 1 << 26}
    prefixes = [frame.prefix_bits | modes.get(kind, 0) for frame, kind in zip(frames, FLOW_KINDS, strict=True)]
    return np.array(prefixes, np.uint64), np.array([frame.bits for frame in frames], np.uint8)


_FLOW_PREFIX, _FLOW_BITS = _flow_frames()


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """Frames in order, as bits.

    Attributes:
        raw: uint64 [n], the bits of each, prefix included.
        bits: uint8 [n], its size: 4, 8, 16, 24, 32 or 64.
    """

    raw: U64
    bits: U8

    @classmethod
    def of(cls, items: Items, *, padding: bool = True) -> Frames:
        """Take the frames of a decoded stream; without padding they are laid into words anew."""
        keep = slice(None) if padding else ~np.isin(items.frame, [FRAMES.index(name) for name in FILLERS])
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


def encode_pc_runs(mask: U8, pc: I64, length: I64, *, stop: bool = True, idle: int = 0) -> Frames:
    """Encode events and program counter behind a Start of mode 1, as the hardware does.

    A frame for the first cycle of each run, Repeats for the others. Quiet runs leave nothing behind but that the same
    events at the same address make a frame of their own after them.

    Args:
        mask: uint8 [n], events asserted in the run, bit i for slot i.
        pc: int64 [n], byte address that is fetched in its cycles.
        length: int64 [n], cycles of the run, >= 0.
        stop: whether a Stop ends the recording.
        idle: quiet cycles before Stop, those of quiet runs at the end not among them.

    Returns:
        The frames, Start not among them.
    """
    mask, pc, length = np.asarray(mask, np.uint8), np.asarray(pc, np.int64), np.asarray(length, np.int64)
    kept = length > 0
    mask, pc, length = mask[kept], pc[kept], length[kept]
    key = np.where(mask == 0, -1, mask.astype(np.int64) << 18 | pc)
    first = np.flatnonzero(np.diff(key, prepend=-2))
    length = np.add.reduceat(length, first) if len(first) else length
    mask, pc = mask[first], pc[first]
    idle += int(length[-1]) if len(mask) and mask[-1] == 0 else 0
    busy = mask != 0
    raw = EVENT_PC.prefix_bits | mask[busy].astype(np.uint64) << np.uint64(18) | pc[busy].astype(np.uint64)
    frames = with_repeats(Frames(raw, np.full(len(raw), EVENT_PC.bits, np.uint8)), length[busy] - 1)
    return Frames.join([frames, _stop(idle)]) if stop else frames


def start_flow(pc: int, *, restart: bool = False) -> Frames:
    """Return a Start frame of mode 2."""
    start = MODE2["start"]
    raw = start.encode({"restart": int(restart), "mode": 2, "pc": pc})
    return Frames(np.array([raw], np.uint64), np.array([start.bits], np.uint8))


def encode_flow(kind: npt.NDArray[np.integer[Any]], value: I64, count: I64) -> Frames:
    """Encode rows of mode 2: what a decoder gives, in its words.

    Args:
        kind: uint8 [n], index into ``FLOW_KINDS``.
        value: int64 [n], program counter (start, restart, new_pc), or a loop's flag and count as its frame has them.
        count: int64 [n], how often in a row, >= 1: one frame and Repeats. Start, restart and Stop have no Repeats.

    Returns:
        The frames.
    """
    kind = np.asarray(kind, np.uint8)
    raw = _FLOW_PREFIX[kind] | np.asarray(value, np.int64).astype(np.uint64)
    return with_repeats(Frames(raw, _FLOW_BITS[kind]), np.asarray(count, np.int64) - 1)


def with_repeats(frames: Frames, repeats: I64) -> Frames:
    """Put Repeats behind frames: 1023 at a time, then the rest in the shortest form.

    Args:
        frames: the frames.
        repeats: int64 [n], how many times each happens again, >= 0.
    """
    whole, rest = np.divmod(repeats, _MOST_REPEATS)
    sizes = 1 + whole + (rest > 0)
    first = np.cumsum(sizes) - sizes
    total = int(sizes.sum())
    raw = np.full(total, MODE0["repeat1"].prefix_bits | _MOST_REPEATS, np.uint64)
    bits = np.full(total, MODE0["repeat1"].bits, np.uint8)
    raw[first], bits[first] = frames.raw, frames.bits
    has_rest = rest > 0
    last, rest = (first + sizes - 1)[has_rest], rest[has_rest]
    is_short = rest < 16
    prefixes = [MODE0[name].prefix_bits for name in ("repeat0", "repeat1")]
    raw[last] = np.where(is_short, *prefixes).astype(np.uint64) | rest.astype(np.uint64)
    bits[last] = np.where(is_short, MODE0["repeat0"].bits, MODE0["repeat1"].bits)
    return Frames(raw, bits)


def _stop(idle: int) -> Frames:
    """Return Stop, behind a Sync for every 2**18 of its idle cycles."""
    syncs, rest = divmod(idle, SYNC_CYCLES)
    raw = [SYNC.prefix_bits] * syncs + [STOP.encode({"mask": 0, "cycles": rest})]
    return Frames(np.array(raw, np.uint64), np.array([SYNC.bits] * syncs + [STOP.bits], np.uint8))


def pack(frames: Frames, *, aligned: bool = True, mode: int = 0) -> U32:
    """Lay frames into payload words.

    Args:
        frames: the frames, with or without padding.
        aligned: as the hardware does: Start begins a packet's payload, and the last payload is filled up. Off, the
            words of ``Frames.of(Items.of(words))`` come out as they were, whatever they were.
        mode: the mode, whose padding is used, before the first Start.

    Returns:
        uint32 [words].
    """
    is_large = frames.bits >= 32
    first = np.where(frames.bits == START.bits, frames.raw >> np.uint64(32), frames.raw)
    room = len(frames.raw) + 9 + 9 * int(np.count_nonzero(is_large & (first >> np.uint64(27) == _START)))
    words = np.empty(room, np.uint32)
    raw, bits = np.ascontiguousarray(frames.raw), np.ascontiguousarray(frames.bits)
    count = core.aie_pack_records(raw, bits, mode, aligned, words)
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
        payload: uint32 [words], whole packets as ``pack`` makes them; else padding of modes 0 and 1 is added.

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
