"""A trace unit in execution mode: which decisions of a program it tells, and what of that can be known."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.encode import Frames
from lanescope.devices.aie.formats.layout import FLOW_KINDS, FRAMES, MODE2, PAYLOAD_WORDS, WRAPPED_TRIPS
from lanescope.devices.aie.formats.raw_frames import Items
from lanescope.devices.aie.simulate.ref_mode0 import pieces_of
from lanescope.trace import Flag

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
U8 = npt.NDArray[np.uint8]

START, RESTART, NEW_PC, TAKEN, NOT_TAKEN, LOOP, STOP = range(len(FLOW_KINDS))
PC_MASK = MODE2["new_pc"]["pc"].mask


class Retired(enum.IntEnum):
    """Effect of a retired instruction; nothing else is traced in this mode."""

    BRANCH = 0  # a conditional branch, direct or indirect; value: whether it was taken
    DIRECT = 1  # an unconditional jump or call to an address that stands in the program
    TARGET = 2  # a return, or an indirect jump or call; value: where it went
    LOOP = 3  # a zero-overhead loop began; value: its trips


def flow_of(kind: U8, value: I64) -> tuple[U8, I64, I64]:
    """Return what the unit tells of retired instructions: atoms in runs, targets, loops.

    Args:
        kind: uint8 [n], of ``Retired``.
        value: int64 [n], what each kind says.

    Returns:
        Kinds (index into ``FLOW_KINDS``), values as frames hold them, and counts, [m] each.
    """
    told = kind != Retired.DIRECT
    kind, value = kind[told], value[told]
    wrapped = np.where(value >= WRAPPED_TRIPS, WRAPPED_TRIPS, 0) | value % WRAPPED_TRIPS
    made = np.select(
        [kind == Retired.BRANCH, kind == Retired.TARGET], [np.where(value != 0, TAKEN, NOT_TAKEN), NEW_PC], LOOP
    )
    values = np.select([kind == Retired.BRANCH, kind == Retired.TARGET], [0, value & PC_MASK], wrapped)
    is_new = np.ones(len(made), np.bool_)
    is_new[1:] = (made[1:] != made[:-1]) | (kind[1:] != Retired.BRANCH)
    first = np.flatnonzero(is_new)
    return made[first].astype(np.uint8), values[first], np.diff(first, append=len(made))


@dataclass(frozen=True, slots=True, eq=False)
class FlowRecording:
    """One unit from Start to Stop.

    Attributes:
        kind: uint8 [rows], index into ``FLOW_KINDS``.
        value: int64 [rows], as its frame holds it.
        count: int64 [rows], how often in a row.
        pieces: stretches of rows (first, last + 1) that were recorded; between two the unit overran.
        anchors: address that was fetched at the begin of each piece.
        payload: uint32 [words], whole packets.
    """

    kind: U8
    value: I64
    count: I64
    pieces: tuple[tuple[int, int], ...]
    anchors: tuple[int, ...]
    payload: U32

    def truth(self, packets: int) -> dict[str, Any]:
        """Return what can be known of a recording when only its first packets are in the file."""
        is_whole = packets == len(self.payload) // PAYLOAD_WORDS
        frames, last_count, restarts = _count_frames(self.payload[: packets * PAYLOAD_WORDS])
        rows: list[tuple[int, ...]] = []
        gaps: list[list[int]] = []
        now = 0
        for (first, last), anchor in zip(self.pieces[: restarts + 1], self.anchors, strict=False):
            if first:
                now += 1
                gaps.append([now, now])
            rows.append((RESTART if first else START, now, anchor, 1, int(Flag.AFTER_GAP) if first else 0))
            for row in range(first, min(last, first + frames)):
                frames -= 1
                count = int(self.count[row])
                if frames == 0 and not is_whole:
                    count = min(count, last_count)
                rows.append((int(self.kind[row]), now + 1, int(self.value[row]), count, 0))
                now += count
        if is_whole:
            rows.append((STOP, now + 1, 0, 1, 0))
        names = ("kind", "ts", "value", "count", "flags")
        flow: dict[str, list[Any]] = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        flow["kind"] = [FLOW_KINDS[kind] for kind in flow["kind"]]
        return {
            "start_timer": None,
            "stop": now + 1 if is_whole else None,
            "cycles": None,
            "restarts": len(gaps),
            "flow": flow,
            "gaps": gaps,
        }


def record(rng: np.random.Generator, frames: int, overruns: int) -> FlowRecording:
    """Make a recording of about so many frames: kernels that call each other, loop and branch."""
    events = 2 * frames
    kind = rng.choice(len(Retired), size=events, p=[0.55, 0.10, 0.28, 0.07]).astype(np.uint8)
    addresses = 16 * np.arange(10, 1000)
    trips = np.where(rng.random(events) < 0.9, rng.integers(1, 5000, events), rng.integers(1, 1 << 31, events))
    polarity = rng.random(events) < np.repeat(rng.random(-(-events // 50)), 50)[:events]
    value = np.select(
        [kind == Retired.BRANCH, kind == Retired.LOOP],
        [polarity.astype(np.int64), trips],
        rng.choice(addresses, events),
    )
    # A hot loop now and then: many branches the same way.
    hot = rng.random(events) < 0.01
    repeated = np.where(hot & (kind == Retired.BRANCH), rng.integers(2, 3000, events), 1)
    all_kinds, all_values, all_counts = flow_of(np.repeat(kind, repeated), np.repeat(value, repeated))
    made_kind, made_value, made_count = all_kinds[:frames], all_values[:frames], all_counts[:frames]
    pieces = pieces_of(rng, len(made_kind), overruns) if len(made_kind) else ((0, 0),)
    anchors = tuple(rng.choice(addresses, len(pieces)).tolist())
    parts = []
    for (first, last), anchor in zip(pieces, anchors, strict=True):
        parts.append(encode.start_flow(anchor, restart=first > 0))
        piece = slice(first, last)
        parts.append(encode.encode_flow(made_kind[piece], made_value[piece], made_count[piece]))
    parts.append(encode.encode_flow(np.array([STOP], np.uint8), np.zeros(1, np.int64), np.ones(1, np.int64)))
    return FlowRecording(made_kind, made_value, made_count, pieces, anchors, encode.pack(Frames.join(parts)))


def _count_frames(payload: U32) -> tuple[int, int, int]:
    """Return how many atoms, targets and loops a payload holds, how often the last one is there, and the restarts."""
    items = Items.of(payload)
    rows = np.flatnonzero(
        np.isin(items.frame, [FRAMES.index(name) for name in ("taken", "not_taken", "new_pc", "loop")])
    )
    count = 1
    if len(rows):
        frame, raw = items.frame[rows[-1] :], items.raw[rows[-1] :].astype(np.int64)
        for name, bits in (("repeat0", 4), ("repeat1", 10)):
            count += int((raw[frame == FRAMES.index(name)] & (1 << bits) - 1).sum())
    return len(rows), count, int(np.count_nonzero(items.frame == FRAMES.index("start"))) - 1
