"""Simulated dumps and what really happened: levels and pulses in a few tiles, and what goes wrong on the way out.

The truth is computed from the event state itself, not from what is encoded of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie import encode
from lanescope.devices.aie.encode import Frames
from lanescope.devices.aie.layout import FRAMES, HEADER, PACKET_WORDS, PAYLOAD_WORDS, SYNC_CYCLES
from lanescope.devices.aie.records import Items
from lanescope.devices.base import Simulation
from lanescope.trace import Flag

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
U8 = npt.NDArray[np.uint8]

SLOTS = 8
_START = 0b111100  # highest bits of a Start that is no restart
#: (packet type, column, row) of the traced units, the first ones first; further ones lie in the next columns.
_UNITS = ((0, 0, 2), (3, 0, 1), (1, 0, 2), (0, 0, 3), (2, 0, 0), (0, 0, 4), (1, 0, 3), (0, 0, 5))
#: Frames that a run of the event state needs on average.
_FRAMES_PER_RUN = 1.5

# How long the state stays as it is: (share, least, most) in cycles, for quiet and for busy state. The steps are those
# of the frames' fields: 4, 10 and 18 bits, Syncs beyond; Repeats of 4 and 10 bits, several beyond.
_QUIET = ((0.55, 1, 15), (0.35, 16, 1023), (0.09, 1024, SYNC_CYCLES), (0.01, SYNC_CYCLES, 3 * SYNC_CYCLES))
_BUSY = ((0.50, 1, 1), (0.30, 2, 17), (0.17, 18, 1025), (0.03, 1026, 5000))


@dataclass(frozen=True, slots=True, eq=False)
class _Recording:
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

    @property
    def packets(self) -> int:
        return len(self.payload) // PAYLOAD_WORDS


def simulate(options: Mapping[str, Any], seed: int) -> Simulation:
    """Make a dump.

    Args:
        options: the family's ``sim_options``, all of them.
        seed: the same options and seed give the same bytes.

    Returns:
        The file, and a truth of: ``recordings`` (who, and the columns of its ``slices`` and ``gaps``, in cycles), and
        ``bad_headers``, the file offsets of packets with a damaged header. The truth of a recording that loses packets
        that way is what could be found with them.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    headers = [_header(unit) for unit in range(options["tiles"])]
    words: list[U32] = []
    recordings: list[dict[str, Any]] = []
    for run in range(options["runs"]):
        made = [_record(rng, options["records"], options["overruns"]) for _ in headers]
        order = _interleave(rng, [recording.packets for recording in made])
        if run == options["runs"] - 1 and options["lost_tail"]:
            order = order[: max(len(order) - options["lost_tail"], 0)]
        _emit(headers, made, order, words, recordings)
    if options["stale"]:
        made = [_record(rng, options["records"], 0) for _ in headers]
        order = _interleave(rng, [recording.packets for recording in made])[: options["stale"]]
        _emit(headers, made, order, words, recordings)
    dump = np.concatenate([*words, np.empty(0, np.uint32)])
    bad = _flip(rng, dump, options["bad_headers"])
    dump = np.concatenate([dump, np.zeros(options["zeros"], np.uint32)])
    unit_bytes = 9 if options["text"] else 4
    truth = {
        "family": "aie",
        "seed": seed,
        "recordings": recordings,
        "bad_headers": (bad * unit_bytes).tolist(),
    }
    if options["text"]:
        return Simulation({"trace.txt": encode.text(dump)}, truth)
    return Simulation({"trace.bin": dump.astype("<u4").tobytes()}, truth)


def _header(unit: int) -> int:
    packet_type, column, row = _UNITS[unit % len(_UNITS)]
    return encode.header(packet_type, column + 1 + unit // len(_UNITS), row, 1 + unit % 31)


# --- event state ----------------------------------------------------------------------------------------------


def _lengths(rng: np.random.Generator, classes: Sequence[tuple[float, int, int]], count: int) -> I64:
    chosen = rng.choice(len(classes), size=count, p=[share for share, _, _ in classes])
    least = np.array([low for _, low, _ in classes])[chosen]
    most = np.array([high for _, _, high in classes])[chosen]
    lengths: I64 = rng.integers(least, most, endpoint=True)
    return lengths


def _state(rng: np.random.Generator, runs: int) -> tuple[U8, I64]:
    """Return masks and lengths: pulses, levels that begin and end one by one, quiet stretches of all lengths."""
    one, other = 1 << rng.integers(0, SLOTS, (2, runs))
    several = rng.integers(1, 256, runs)
    kind = rng.random(runs)
    mask = np.select([kind < 0.40, kind < 0.85, kind < 0.97], [0, one, one | other], several).astype(np.uint8)
    return mask, np.where(mask == 0, _lengths(rng, _QUIET, runs), _lengths(rng, _BUSY, runs))


def _record(rng: np.random.Generator, frames: int, overruns: int) -> _Recording:
    runs = max(int(frames / _FRAMES_PER_RUN), 1)
    mask, length = _state(rng, runs)
    begin = np.concatenate([[1], 1 + np.cumsum(length)])
    # An overrun loses the runs between two cuts.
    cuts = np.sort(rng.choice(np.arange(1, runs), size=min(2 * overruns, (runs - 1) // 2 * 2), replace=False)).tolist()
    edges = [0, *cuts, runs]
    pieces = tuple(zip(edges[::2], edges[1::2], strict=True))
    timer = int(rng.integers(0, 1 << 40))
    idle = int(_lengths(rng, _QUIET, 1)[0]) - 1
    parts = [encode.start(timer)]
    for first, last in pieces:
        if first:
            parts.append(encode.start(int(begin[first]) - 1, restart=True))
        parts.append(encode.encode_runs(mask[first:last], length[first:last], stop=last == runs, idle=idle))
    return _Recording(mask, begin, pieces, int(begin[-1]) + idle, timer, encode.pack(Frames.join(parts)))


# --- truth ----------------------------------------------------------------------------------------------------


def _truth(recording: _Recording, packets: int) -> dict[str, Any]:
    """Return what can be known of a recording when only its first packets are in the file."""
    begin, mask = recording.begin, recording.mask
    is_whole = packets == recording.packets
    known_end = recording.stop if is_whole else 1 + _last_cycle(recording.payload[: packets * PAYLOAD_WORDS])
    columns: list[tuple[I64, ...]] = []
    gaps: list[tuple[int, int]] = []
    end = 0
    for first, last in recording.pieces:
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
        "start_timer": recording.timer,
        "stop": recording.stop if is_whole else None,
        "cycles": known_end,
        "restarts": len(gaps),
        "slices": dict(zip(("slot", "begin", "dur", "flags"), (column.tolist() for column in joined), strict=True)),
        "gaps": [list(gap) for gap in gaps],
    }


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
    slots, firsts, lengths, flags = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    return slots, firsts, lengths, flags


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


# --- the way out ----------------------------------------------------------------------------------------------


def _interleave(rng: np.random.Generator, packets: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return whose packet comes next, int64 [packets]: all orders are possible, those of one unit stay in order."""
    order = np.repeat(np.arange(len(packets)), packets)
    rng.shuffle(order)
    return order


def _emit(
    headers: Sequence[int],
    made: Sequence[_Recording],
    order: npt.NDArray[np.int64],
    words: list[U32],
    recordings: list[dict[str, Any]],
) -> None:
    """Append the packets that reach the file, and the truth about them."""
    out = np.empty((len(order), PACKET_WORDS), np.uint32)
    for unit, (header, recording) in enumerate(zip(headers, made, strict=True)):
        mine = order == unit
        count = int(np.count_nonzero(mine))
        if not count:
            continue
        out[mine] = encode.packets(header, recording.payload)[:count]
        fields = HEADER.decode(header)
        ordinal = 1 + sum(other["header"] == header for other in recordings)
        who = {name: fields[name] for name in ("type", "column", "row", "id")}
        recordings.append({"header": header, **who, "ordinal": ordinal, "packets": count, **_truth(recording, count)})
    words.append(out.ravel())


def _flip(rng: np.random.Generator, dump: U32, share: float) -> npt.NDArray[np.int64]:
    """Flip a bit in the headers of some packets, not of those that begin a recording; return where, in words."""
    candidates = np.arange(0, len(dump), PACKET_WORDS)
    candidates = candidates[dump[candidates + 1] >> 26 != _START] if len(candidates) else candidates
    chosen = candidates[rng.random(len(candidates)) < share]
    dump[chosen] ^= (1 << rng.integers(0, 32, len(chosen))).astype(np.uint32)
    return chosen
