"""What the producers' own exporters make of their buffers: their rules, as their host code has them, for comparison.

Each function takes the words of a buffer and returns rows (block, group, event, begin, end) in ticks; an end of None is
a mark. The rules are those of the commits that the layouts name.
"""

from __future__ import annotations

import itertools
import struct
from typing import Any

import numpy as np

Row = tuple[int, int, int, int, int | None]


def nuggets_legacy(data: bytes, max_events: int) -> list[Row]:
    """All slots but those whose start and duration are 0."""
    words = np.frombuffer(data, np.int64).reshape(-1, 1 + 4 * max_events)
    found: list[Row] = []
    for unit, row in enumerate(words.tolist()):
        for at in range(1, 1 + 4 * max_events, 4):
            start, dur, tag, tid = row[at : at + 4]
            if start or dur:
                found.append((unit, tid, tag, start, start + dur))
    return found


def nuggets_compact(data: bytes, max_events: int) -> list[Row]:
    """A stamp that is below the low half of the anchor is 2^32 later, and never more than that."""
    words = np.frombuffer(data, np.uint64).reshape(-1, 1 + max_events)
    found: list[Row] = []
    for unit, (anchor, *row) in enumerate(words.tolist()):
        for word in row:
            if word and anchor:
                low = word & 0xFFFFFFFF
                start = (anchor >> 32 << 32) + ((low < anchor & 0xFFFFFFFF) << 32) + low
                found.append((unit, 0, word >> 56, start, start + (word >> 32 & 0xFFFFFF)))
    return found


def quack(data: bytes, max_events: int) -> list[Row]:
    """All lanes' events in order of time; a lane is the 16 bits of its block and the 6 bits of its warp."""
    size, events = 40 + 8 * max_events, []
    for at in range(0, len(data), size):
        _, c0, _, _, info, count = struct.unpack_from("<QQQQII", data, at)
        first = count & (max_events - 1) if count > max_events else 0
        for number in range(min(count, max_events)):
            entry = at + 40 + 8 * ((first + number) & (max_events - 1))
            clock, event, kind = struct.unpack_from("<IHH", data, entry)
            tick = c0 + ((clock - c0) & 0xFFFFFFFF)
            events.append((tick, info & 0xFFFF, info >> 16 & 0x3F, (0, 2, 1)[kind], event))
    stacks: dict[Any, list[int]] = {}
    found: list[Row] = []
    for tick, block, warp, kind, event in sorted(events):
        stack = stacks.setdefault((block, warp, event), [])
        if kind == 0:
            stack.append(tick)
        elif kind == 1:
            found.append((block, warp, event, tick, None))
        elif stack:
            found.append((block, warp, event, stack.pop(), tick))
    return found


def sm_profiler(data: bytes) -> list[Row]:
    """Every stored record; a range that is open ends at 0."""
    groups, blocks, _, capacity = struct.unpack_from("<IIII", data)
    lanes = groups * blocks
    begin = 16 + (4 * lanes + 7) // 8 * 8 + 128 * lanes
    found: list[Row] = []
    for lane in range(lanes):
        (count,) = struct.unpack_from("<I", data, 16 + 4 * lane)
        for number in range(min(count, capacity)):
            fields = struct.unpack_from("<IIIIIIQQ", data, begin + 40 * (lane * capacity + number))
            _, event, block, group, _, kind, start, end = fields
            found.append((block, group, event, start, None if kind else end))
    return found


def tileops(data: bytes, max_events: int, groups: int) -> list[Row]:
    """Regions within a block, group and track; an end closes the latest open begin of its event."""
    rows = np.frombuffer(data, np.uint64).reshape(-1, groups, max_events + 2, 2).tolist()
    found: list[Row] = []
    for block, of_block in enumerate(rows):
        for group, row in enumerate(of_block):
            stacks: dict[int, list[tuple[int, int]]] = {}
            for tick, word in row[1 : 1 + min(row[0][0], max_events)]:
                event, kind, stack = word & 0xFFFFFF, word >> 24 & 15, stacks.setdefault(word >> 28 & 15, [])
                if kind == 0:
                    stack.append((event, tick))
                elif kind == 2:
                    found.append((block, group, event, tick, None))
                elif at := [number for number, (open_, _) in enumerate(stack) if open_ == event]:
                    found.append((block, group, event, stack.pop(at[-1])[1], tick))
    return found


def cutedsl_trace(data: bytes, row: int, lanes: int) -> list[Row]:
    """As many events as the offset tells, the row's end or not; lengths of at least 32 ns."""
    found: list[Row] = []
    for lane, base in enumerate(range(0, len(data), row)):
        (end,) = struct.unpack_from("<I", data, base + 4)
        for number in range(max(0, end - base - 32) // 32 if end else 0):
            at = base + 32 + 32 * number
            if at + 32 <= len(data):
                start, stop, event = struct.unpack_from("<III", data, at)
                found.append((*divmod(lane, lanes), event, start, start + max(stop - start, 32)))
    return found


def iris(arrays: dict[str, np.ndarray]) -> list[Row]:
    """Every stored record; one without an end is a mark."""
    count = min(int(arrays["counter"][0]), len(arrays["buffer"]))
    found: list[Row] = []
    for at in range(count):
        begin, end = int(arrays["buffer"][at]), int(arrays["duration_cycles"][at])
        is_region = end > begin
        place = int(arrays["pid"][at]), int(arrays["xcc_id"][at])
        found.append((*place, int(arrays["event_id"][at]), begin, end if is_region else None))
    return found


def mirage_mpk(data: bytes) -> list[Row]:
    """The lane is the eight bits of the tag."""
    words = np.frombuffer(data, np.uint64).tolist()
    groups = words[0] >> 32
    stacks: dict[Any, list[int]] = {}
    found: list[Row] = []
    for word in words[1:]:
        if word:
            lane, event, kind = word >> 11 & 0xFF, word >> 2 & 0x1FF, word & 3
            stack = stacks.setdefault((lane, event), [])
            if kind == 0:
                stack.append(word >> 32)
            elif kind == 1 and stack:
                found.append((*divmod(lane, groups), event, stack.pop(), word >> 32))
    return found


def mosaic_gpu(data: bytes, words: int, groups: int) -> list[Row]:
    """Cycles from the first record of a lane on, less an overhead for each pair, as nanoseconds after its start.

    All of them are numbers of 32 bits, which wrap.
    """
    rows, low = np.frombuffer(data, np.uint32).reshape(-1, words).tolist(), 0xFFFFFFFF
    # The shortest distance of two records that follow each other, of all lanes, but not more than 12.
    steps = [12]
    for row in rows:
        clocks = row[4 : 3 + row[2] : 2]
        steps += [later - earlier & low for earlier, later in itertools.pairwise(clocks)]
    overhead = max(0, min(steps) - 1)
    found: list[Row] = []
    for lane, row in enumerate(rows):
        stacks: dict[int, list[int]] = {}
        last = None
        for number in range(row[2] // 2):
            tag, clock = row[3 + 2 * number : 5 + 2 * number]
            time = clock - row[4] - number * overhead & low
            if last is not None and last >= time:
                time = last + 1
            last = time
            stack = stacks.setdefault(tag & 0x7FFFFFFF, [])
            if tag >> 31 and stack:
                begin, end = row[0] + stack.pop() & low, row[0] + time & low
                found.append((*divmod(lane, groups), tag & 0x7FFFFFFF, begin, end))
            elif not tag >> 31:
                stack.append(time)
    return found


def open_cuprof(data: bytes, max_events: int, max_warps: int, clock_mhz: int) -> list[Row]:
    """As many regions of each warp as it counted, those beyond the room from what follows; only used blocks."""
    events = 32 * max_events * max_warps
    size = (events + 4 * max_warps + 8 + 7) // 8 * 8
    found: list[Row] = []
    for block in range(len(data) // size):
        *counts, _, is_used = struct.unpack_from(f"<{max_warps}iIi", data, size * block + events)
        for warp, count in enumerate(counts if is_used else ()):
            for number in range(count):
                at = size * block + 32 * (warp * max_events + number)
                if at + 32 <= len(data):
                    start, c0, c1, name = struct.unpack_from("<QQQQ", data, at)
                    found.append((block, warp, name, start, start + (c1 - c0) * 1000 // clock_mhz))
    return found
