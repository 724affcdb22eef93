"""A trace unit in event-PC mode: which events at which address, in order; cycles without events leave no trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.encode import Frames
from lanescope.devices.aie.formats.layout import FRAMES, PAYLOAD_WORDS
from lanescope.devices.aie.formats.raw_frames import Items
from lanescope.devices.aie.simulate.ref_mode0 import QUIET, SLOTS, event_state, lengths, pieces_of
from lanescope.trace import Flag

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
U8 = npt.NDArray[np.uint8]

_MODE = 1
_FRAMES_PER_RUN = 1.2
#: Addresses of the bundles that are fetched: a small program.
_ADDRESSES = 4 * np.arange(40, 400)


@dataclass(frozen=True, slots=True, eq=False)
class EventPcRecording:
    """One unit from Start to Stop.

    Attributes:
        mask: uint8 [runs], the event state; no two runs in a row are the same.
        pc: int64 [runs], address that is fetched.
        begin: int64 [runs + 1], first cycle of each run, and the cycle after the last.
        pieces: stretches of runs (first, last + 1) that were recorded; between two the unit overran.
        idle: quiet cycles before Stop.
        timer: what Start says.
        payload: uint32 [words], whole packets.
    """

    mask: U8
    pc: I64
    begin: I64
    pieces: tuple[tuple[int, int], ...]
    idle: int
    timer: int
    payload: U32

    def truth(self, packets: int) -> dict[str, Any]:
        """Return what can be known of a recording when only its first packets are in the file."""
        is_whole = packets == len(self.payload) // PAYLOAD_WORDS
        frames, last_cycles, restarts = _count_frames(self.payload[: packets * PAYLOAD_WORDS])
        rows: list[tuple[int, ...]] = []
        gaps: list[list[int]] = []
        now = 0
        for first, last in self.pieces[: restarts + 1]:
            if first:
                timer = int(self.begin[first]) - 1
                gaps.append([now + 1, timer])
                now = timer
            unseen = 255 if first else 0
            for run in np.flatnonzero(self.mask[first:last])[:frames].tolist():
                frames -= 1
                mask, pc = int(self.mask[first + run]), int(self.pc[first + run])
                cycles = int(self.begin[first + run + 1] - self.begin[first + run])
                if frames == 0 and not is_whole:
                    cycles = min(cycles, last_cycles)
                for slot in range(SLOTS):
                    if mask >> slot & 1:
                        flags = int(Flag.AFTER_GAP) if unseen >> slot & 1 else 0
                        rows.append((slot, now + 1, pc, cycles, mask, flags))
                unseen &= ~mask
                now += cycles
        quiet = 0 if self.mask[-1] else int(self.begin[-1] - self.begin[-2])
        return {
            "start_timer": self.timer,
            "stop": now + quiet + self.idle + 1 if is_whole else None,
            "cycles": None,
            "restarts": len(gaps),
            "events": _columns(("slot", "ts", "pc", "cycles", "mask", "flags"), rows),
            "gaps": gaps,
        }


def record(rng: np.random.Generator, frames: int, overruns: int) -> EventPcRecording:
    """Make a recording of about so many frames."""
    mask, length = event_state(rng, max(int(frames / _FRAMES_PER_RUN), 1))
    pc = rng.choice(_ADDRESSES, len(mask))
    # The program stands still while it stalls, and repeats itself.
    pc = np.where(rng.random(len(mask)) < 0.3, pc[0], pc)
    turns = np.flatnonzero(np.diff(np.where(mask == 0, -1, mask.astype(np.int64) << 18 | pc), prepend=-2))
    mask, pc, length = mask[turns], pc[turns], np.add.reduceat(length, turns)
    runs = len(mask)
    begin = np.concatenate([[1], 1 + np.cumsum(length)])
    pieces = pieces_of(rng, runs, overruns)
    timer, idle = int(rng.integers(0, 1 << 40)), int(lengths(rng, QUIET, 1)[0]) - 1
    parts = [encode.start(timer, mode=_MODE)]
    for first, last in pieces:
        if first:
            parts.append(encode.start(int(begin[first]) - 1, restart=True, mode=_MODE))
        piece = slice(first, last)
        parts.append(encode.encode_pc_runs(mask[piece], pc[piece], length[piece], stop=last == runs, idle=idle))
    return EventPcRecording(mask, pc, begin, pieces, idle, timer, encode.pack(Frames.join(parts)))


def _count_frames(payload: U32) -> tuple[int, int, int]:
    """Return how many event frames a payload holds, the cycles of the last one, and the restarts."""
    items = Items.of(payload)
    events = np.flatnonzero(items.frame == FRAMES.index("event_pc"))
    frame, raw = items.frame, items.raw.astype(np.int64)
    cycles = 1
    if len(events):
        for name, bits in (("repeat0", 4), ("repeat1", 10)):
            behind = raw[events[-1] :][frame[events[-1] :] == FRAMES.index(name)]
            cycles += int((behind & (1 << bits) - 1).sum())
    return len(events), cycles, int(np.count_nonzero(frame == FRAMES.index("start"))) - 1


def _columns(names: tuple[str, ...], rows: list[tuple[int, ...]]) -> dict[str, list[int]]:
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}
