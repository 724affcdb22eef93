"""What a kernel stores with Proton, record by record, and what that means: for tests of its reader.

Each warp keeps its write index in words and stores two words at its remainder by the size of its segment, whether or
not that is free (``lowerCircularEvent`` of triton-lang/triton at 2ea2a63). Nothing here reads a buffer.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field

SCOPE, ASYNC, MARK, METRIC, ASYNC_39 = range(5)
_WORD = (1 << 32) - 1
#: (kind, number, is end, cycles or value)
Op = tuple[int, int, int, int]


@dataclass
class Launch:
    """A file and its truth.

    Attributes:
        data: the host file.
        bits: of the counter.
        spans: (block, warp, SM, number, begin, length), of scopes; begins modulo the counter, no length: open.
        regions: the same and the warp of the end, of asynchronous events.
        marks: (block, warp, number, category, time).
        lost: entries that were overwritten, by block and warp.
    """

    data: bytes = b""
    bits: int = 43
    spans: list[tuple[int | None, ...]] = field(default_factory=list)
    regions: list[tuple[int | None, ...]] = field(default_factory=list)
    marks: list[tuple[int, int, int, str, int]] = field(default_factory=list)
    lost: dict[tuple[int, int], int] = field(default_factory=dict)


def launch(seed: int, *, is_released: bool) -> Launch:
    """Run a random kernel.

    Args:
        seed: of everything.
        is_released: only what Triton 3.9.0 stores: no marks, no metrics, always times in the header.
    """
    bits = random.Random(seed)
    found = Launch(bits=32 if bits.random() < 0.3 else 43)
    warps, blocks = bits.choice([1, 2, 4, 8]), bits.choice([1, 2, 5])
    uids = list(range(warps)) if bits.random() < 0.6 else sorted(bits.sample(range(warps), bits.randint(1, warps)))
    entries = bits.choice([1, 2, 4, 16, 128])
    head = 4 if not is_released and bits.random() < 0.3 else 10
    size, meta = 2 * entries * len(uids), head + warps
    scratch = -(-(meta + size) // 32) * 32
    wrap = 1 << found.bits
    clocks = [bits.choice([bits.randrange(wrap), wrap - bits.randrange(1, 2000), 0]) for _ in range(3)]
    numbers = bits.sample(range(256), 6)
    areas: list[int] = []
    for block in range(blocks):
        sm = bits.randrange(len(clocks))
        begin = clocks[sm] + bits.randrange(1000)
        programs = {warp: _program(bits, numbers, begin, is_released=is_released) for warp in uids}
        area = [bits.getrandbits(32) for _ in range(scratch)]  # what is not stored is not cleared
        area[:4] = 0xDEADBEEF, block, sm, 4 * size
        if head == 10:
            ran = max([begin, *(op[3] for ops in programs.values() for op in ops if op[0] != METRIC)]) - begin
            for at, ns in ((4, 10**18), (6, 10**18 + ran + 100), (8, 10**18 + ran + 900)):
                area[at : at + 2] = ns & _WORD, ns >> 32
        area[head:meta] = [0] * warps
        for warp, ops in programs.items():
            for op in ops:
                at = meta + 2 * entries * uids.index(warp) + area[head + warp] % (2 * entries)
                area[at : at + 2] = _entry(op, wrap)
                area[head + warp] += 2
        areas += area
        kept = {warp: ops[max(0, len(ops) - entries) :] for warp, ops in programs.items()}
        found.lost |= {(block, warp): len(ops) - entries for warp, ops in programs.items() if len(ops) > entries}
        for warp, ops in kept.items():
            _scopes(found, (block, warp, sm), ops)
        _events(found, block, sm, kept)
    payload = struct.pack(f"<{len(areas)}I", *areas)
    count = len(uids)
    header = (1, 4, 40 + 4 * count, 40 + 4 * count, len(payload), 1, blocks, warps, 4 * scratch, count, *uids)
    found.data = struct.pack(f"<{len(header)}I", *header) + payload
    return found


def _program(bits: random.Random, numbers: list[int], now: int, *, is_released: bool) -> list[Op]:
    """The records of a warp: scopes that nest or not, events, and what newer trees have besides."""
    ops: list[Op] = []
    opened: list[int] = []
    for _ in range(bits.choice([0, 1, 3, 20, 60])):
        now += bits.choice([0, 0, 1, 7, bits.randrange(900)])
        what = bits.random()
        if what < 0.5:
            is_end = bool(opened) and bits.random() < 0.55
            number = opened.pop() if is_end else bits.choice(numbers[:3])
            is_end = is_end or bits.random() < 0.1
            if not is_end:
                opened.append(number)
            ops.append((SCOPE, number, int(is_end), now))
            if not is_released and bits.random() < 0.2:
                ops.append((METRIC, number, 0, bits.getrandbits(32)))
        elif what < 0.9 or is_released:
            kind = ASYNC_39 if is_released else bits.choice([ASYNC, ASYNC_39])
            ops.append((kind, bits.choice(numbers[3:]), bits.getrandbits(1), now))
        else:
            ops.append((MARK, numbers[0], 0, now))
    return ops


def _entry(op: Op, wrap: int) -> tuple[int, int]:
    kind, number, is_end, value = op
    tag = number << 23 | kind << 20 | is_end << 31
    return (tag | 10 << 16, value) if kind == METRIC else (tag | value % wrap >> 32, value % wrap & _WORD)


def _scopes(found: Launch, lane: tuple[int, int, int], ops: list[Op]) -> None:
    """Pair scopes within a warp: an end closes the latest open start of its number."""
    wrap, opened = 1 << found.bits, dict[int, list[int]]()
    for kind, number, is_end, time in ops:
        if kind == MARK:
            found.marks.append((*lane[:2], number, "mark", time % wrap))
        elif kind == SCOPE and not is_end:
            opened.setdefault(number, []).append(time)
        elif kind == SCOPE and opened.get(number):
            begin = opened[number].pop()
            found.spans.append((*lane, number, begin % wrap, time - begin))
        elif kind == SCOPE:
            found.marks.append((*lane[:2], number, "unmatched_end", time % wrap))
    for number, begins in opened.items():
        found.spans += [(*lane, number, begin % wrap, None) for begin in begins]


def _events(found: Launch, block: int, sm: int, kept: dict[int, list[Op]]) -> None:
    """Pair events within a block, as the library of Triton 3.9.0 does where no counter wraps.

    In the order of time, of one time in that of the warps. A warp has a number open once. An end takes the open start
    of its own warp, or else the oldest one of the block.
    """
    wrap = 1 << found.bits
    records = [
        (time, warp, at, number, is_end)
        for warp, ops in kept.items()
        for at, (kind, number, is_end, time) in enumerate(ops)
        if kind in (ASYNC, ASYNC_39)
    ]
    opened: dict[int, list[tuple[int, int]]] = {}
    for time, warp, _, number, is_end in sorted(records):
        starts = opened.setdefault(number, [])
        own = [start for start in starts if start[1] == warp]
        if not is_end and own:
            found.marks.append((block, warp, number, "unmatched_start", time % wrap))
        elif not is_end:
            starts.append((time, warp))
        elif not starts:
            found.marks.append((block, warp, number, "unmatched_end", time % wrap))
        else:
            start = (own or starts)[0]
            starts.remove(start)
            found.regions.append((block, start[1], sm, number, start[0] % wrap, time - start[0], warp))
    for number, starts in opened.items():
        found.regions += [(block, warp, sm, number, time % wrap, None, None) for time, warp in starts]
