"""A trace unit in event-time mode: levels and pulses, what it makes of them, and what of that can be known.

The truth is computed from the event state itself, not from what is encoded of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.encode import Frames
from lanescope.devices.aie.formats.layout import FRAMES, PAYLOAD_WORDS, SYNC_CYCLES
from lanescope.devices.aie.formats.raw_frames import Items
from lanescope.trace import Flag

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
U8 = npt.NDArray[np.uint8]

SLOTS = 8
#: Frames that a run of the event state needs on average.
_FRAMES_PER_RUN = 1.5

# How long the state stays as it is: (share, least, most) in cycles, for quiet and for busy state. The steps are those
# of the frames' fields: 4, 10 and 18 bits, Syncs beyond; Repeats of 4 and 10 bits, several beyond.
QUIET = ((0.55, 1, 15), (0.35, 16, 1023), (0.09, 1024, SYNC_CYCLES), (0.01, SYNC_CYCLES, 3 * SYNC_CYCLES))
_BUSY = ((0.50, 1, 1), (0.30, 2, 17), (0.17, 18, 1025), (0.03, 1026, 5000))


@dataclass(frozen=True, slots=True, eq=False)
class EventTimeRecording:
    """One unit from Start to Stop.

    Attributes:
        mask: uint8 [runs], the event state.
        begin: int64 [runs + 1], first cycle of each run, and the cycle after the last.
        pieces: stretches of runs (first, last + 1) that were recorded; between two the unit overran.
        stop: cycle of Stop.
        timer: what Start says.
        payload: uint32 [words], whole packets.
    """

    mask: U8
    begin: I64
    pieces: tuple[tuple[int, int], ...]
    stop: int
    timer: int
    payload: U32

    def stopped_at(self, stop: int) -> EventTimeRecording:
        """Return the recording as it is when its Stop comes in cycle ``stop``, no later than its own."""
        runs = int(np.searchsorted(self.begin[:-1], stop))  # those that begin before it
        mask, begin = self.mask[:runs], np.append(self.begin[:runs], min(stop, int(self.begin[-1])))
        kept = [(first, min(last, runs)) for first, last in self.pieces if first < runs]
        kept[-1] = kept[-1][0], runs  # a unit that overran has caught up by then
        return _recording(mask, begin, tuple(kept), self.timer, stop - int(begin[-1]))

    def truth(self, packets: int) -> dict[str, Any]:
        """Return what can be known of a recording when only its first packets are in the file."""
        begin, mask = self.begin, self.mask
        is_whole = packets == len(self.payload) // PAYLOAD_WORDS
        known_end = self.stop if is_whole else 1 + _last_cycle(self.payload[: packets * PAYLOAD_WORDS])
        columns: list[tuple[I64, ...]] = []
        gaps: list[tuple[int, int]] = []
        end = 0
        for first, last in self.pieces:
            edge = int(begin[first]) - 1  # cycle of Start or restart
            if edge >= known_end:
                break
            if first:
                gaps.append((end, edge))
            busy = np.flatnonzero(mask[first:last])
            # Before an overrun the last busy cycle is the last thing known.
            end = int(begin[first + busy[-1] + 1]) if len(busy) else edge + 1
            end = known_end if last == len(mask) else min(end, known_end)
            columns.append(_slices(mask[first:last], begin[first : last + 1], end, after_gap=first > 0))
        joined = (np.concatenate(parts) for parts in zip(*columns, strict=True))
        return {
            "start_timer": self.timer,
            "stop": self.stop if is_whole else None,
            "cycles": known_end,
            "restarts": len(gaps),
            "slices": dict(zip(("slot", "start", "dur", "flags"), (column.tolist() for column in joined), strict=True)),
            "gaps": [list(gap) for gap in gaps],
        }


def lengths(rng: np.random.Generator, classes: Sequence[tuple[float, int, int]], count: int) -> I64:
    """Return int64 [count] lengths of the classes (share, least, most)."""
    chosen = rng.choice(len(classes), size=count, p=[share for share, _, _ in classes])
    least = np.array([low for _, low, _ in classes])[chosen]
    most = np.array([high for _, _, high in classes])[chosen]
    drawn: I64 = rng.integers(least, most, endpoint=True)
    return drawn


def event_state(rng: np.random.Generator, runs: int) -> tuple[U8, I64]:
    """Return masks and lengths: pulses, levels that begin and end one by one, quiet stretches of all lengths."""
    one, other = 1 << rng.integers(0, SLOTS, (2, runs))
    several = rng.integers(1, 256, runs)
    kind = rng.random(runs)
    mask = np.select([kind < 0.40, kind < 0.85, kind < 0.97], [0, one, one | other], several).astype(np.uint8)
    return mask, np.where(mask == 0, lengths(rng, QUIET, runs), lengths(rng, _BUSY, runs))


def pieces_of(rng: np.random.Generator, rows: int, overruns: int) -> tuple[tuple[int, int], ...]:
    """Return what is recorded of ``rows``, as (first, last + 1); an overrun loses the rows between two of them."""
    most = min(2 * overruns, (rows - 1) // 2 * 2)
    cuts = np.sort(rng.choice(np.arange(1, rows), size=most, replace=False)).tolist() if rows > 1 else []
    edges = [0, *cuts, rows]
    return tuple(zip(edges[::2], edges[1::2], strict=True))


def record(rng: np.random.Generator, frames: int, overruns: int) -> EventTimeRecording:
    """Make a recording of about so many frames."""
    runs = max(int(frames / _FRAMES_PER_RUN), 1)
    mask, length = event_state(rng, runs)
    begin = np.concatenate([[1], 1 + np.cumsum(length)])
    pieces = pieces_of(rng, runs, overruns)
    timer = int(rng.integers(0, 1 << 40))
    idle = int(lengths(rng, QUIET, 1)[0]) - 1
    return _recording(mask, begin, pieces, timer, idle)


def _recording(mask: U8, begin: I64, pieces: tuple[tuple[int, int], ...], timer: int, idle: int) -> EventTimeRecording:
    """Encode a recording that stops ``idle`` cycles behind the last run."""
    length = np.diff(begin)
    parts = [encode.start(timer)]
    for first, last in pieces:
        if first:
            parts.append(encode.start(int(begin[first]) - 1, restart=True))
        parts.append(encode.encode_runs(mask[first:last], length[first:last], stop=last == len(mask), idle=idle))
    return EventTimeRecording(mask, begin, pieces, int(begin[-1]) + idle, timer, encode.pack(Frames.join(parts)))


def _slices(mask: U8, begin: I64, end: int, *, after_gap: bool) -> tuple[I64, I64, I64, I64]:
    """Return slot, begin, length and flags of the stretches in which each event is asserted, before cycle ``end``.

    What touches ``end``, or the first cycle of a recorded piece, may go on beyond it.
    """
    rows = []
    for slot in range(SLOTS):
        on = np.zeros(len(mask) + 2, np.int8)
        on[1:-1] = mask >> slot & 1
        turns = np.diff(on)
        first, last = begin[np.flatnonzero(turns == 1)], begin[np.flatnonzero(turns == -1)]
        known = first < end
        first, last = first[known], last[known]
        flags = np.where((last >= end) | (first == begin[0]), int(Flag.TRUNCATED), 0)
        if after_gap:
            flags[:1] |= int(Flag.AFTER_GAP)
        rows.append((np.full(len(first), slot), first, np.minimum(last, end) - first, flags))
    slots, firsts, durations, flags = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    return slots, firsts, durations, flags


def _last_cycle(payload: U32) -> int:
    """Return the cycle up to which frames tell the state."""
    items = Items.of(payload)
    now = 0
    last_restart = np.flatnonzero(items.frame == FRAMES.index("start"))[-1]
    if last_restart:
        now = int(items.raw[last_restart]) & (1 << 56) - 1
    frame, raw = items.frame[last_restart + 1 :], items.raw[last_restart + 1 :].astype(np.int64)
    cycles = np.zeros(len(frame), np.int64)
    for name, bits, extra in (
        ("single0", 4, 1),
        ("single1", 10, 1),
        ("single2", 18, 1),
        ("multiple0", 4, 1),
        ("multiple1", 10, 1),
        ("multiple2", 18, 1),
        ("repeat0", 4, 0),
        ("repeat1", 10, 0),
    ):
        chosen = frame == FRAMES.index(name)
        cycles[chosen] = (raw[chosen] & (1 << bits) - 1) + extra
    cycles[frame == FRAMES.index("sync")] = SYNC_CYCLES
    return now + int(cycles.sum())
