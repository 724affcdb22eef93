"""What producers of buffers store, step by step, as their code does it: for tests of the declarations.

Each writer keeps the state that the device keeps (a cursor, a count, a table), and stores words as the producer's
source stores them. Nothing here reads a declaration. A writer returns the file, the options to decode it, and the
truth: the closed regions and marks that are in the file, and how many records had no room.
"""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

BASE = 1_761_000_000_123_456_789


@dataclass
class Shape:
    """What is varied.

    Attributes:
        blocks: of the grid.
        groups: writers of a block.
        capacity: records of a writer, where the layout has a limit.
        regions: regions that each writer records; None: a different number for each, 0 included.
        top: whether numbers are as large as their fields.
        wrap: whether the counter passes a multiple of 2^32 in the middle.
        seed: of times and order.
    """

    blocks: int = 2
    groups: int = 2
    capacity: int = 64
    regions: int | None = 6
    top: bool = True
    wrap: bool = False
    seed: int = 1

    def __str__(self) -> str:
        return (
            f"{self.blocks}x{self.groups} capacity={self.capacity} regions={self.regions}"
            f"{' top' if self.top else ''}{' wrap' if self.wrap else ''}"
        )


@dataclass
class Made:
    """A file and its truth.

    Attributes:
        arrays: content by array; ``buffer`` alone is a plain file.
        params: parameters of the layout.
        spans: (block, group, sm, event, begin, end, payload); a mark has no end.
        lost: records without room; None: the file does not tell.
        options: further options of the decoder.
    """

    arrays: dict[str, np.ndarray]
    params: dict[str, int] = field(default_factory=dict)
    spans: list[tuple[Any, ...]] = field(default_factory=list)
    lost: int | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def file(self, *, compress: bool = False) -> bytes:
        """The file as a user saves it."""
        if len(self.arrays) == 1:
            return next(iter(self.arrays.values())).tobytes()
        out = io.BytesIO()
        (np.savez_compressed if compress else np.savez)(out, **self.arrays)
        return out.getvalue()


@dataclass
class Op:
    """One call of the kernel: begin ``b``, end ``e`` or mark ``m`` of an event."""

    kind: str
    event: int
    time: int
    payload: int = 0


def program(shape: Shape, lane: int, events: list[int], *, start: int, marks: bool = True) -> list[Op]:
    """The calls of one writer: nested regions, some of them left open, at rising times."""
    bits = random.Random(shape.seed * 1000 + lane)
    regions = (lane * 3) % 7 if shape.regions is None else shape.regions
    ops: list[Op] = []
    stack: list[int] = []
    time = start + bits.randrange(1, 40)
    for _ in range(regions):
        while stack and bits.random() < 0.5:
            ops.append(Op("e", stack.pop(), time, bits.getrandbits(31)))
            time += bits.randrange(1, 600)
        event = bits.choice([event for event in events if event not in stack] or events)
        ops.append(Op("b", event, time, bits.getrandbits(31)))
        time += bits.randrange(1, 600)
        stack.append(event)
        if marks and bits.random() < 0.3:
            ops.append(Op("m", bits.choice(events), time, bits.getrandbits(31)))
            time += bits.randrange(1, 600)
    while stack:
        ops.append(Op("e", stack.pop(), time, bits.getrandbits(31)))
        time += bits.randrange(1, 600)
    return ops


def start_of(shape: Shape) -> int:
    """The first time of a launch: shortly before a multiple of 2^32 where the counter is to wrap."""
    return ((BASE >> 32) << 32) - 900 if shape.wrap else BASE


def paired(ops: list[Op], *, payload: bool = False) -> Iterator[tuple[int, int, int | None, int]]:
    """Regions and marks of what one writer has kept: an end closes the latest open begin of its event."""
    stacks: dict[int, list[Op]] = {}
    for op in ops:
        if op.kind == "b":
            stacks.setdefault(op.event, []).append(op)
        elif op.kind == "m":
            yield op.event, op.time, None, 0
        elif stacks.get(op.event):
            begin = stacks[op.event].pop()
            yield op.event, begin.time, op.time, begin.payload if payload else 0


def spans_of(ops: list[Op]) -> list[tuple[int, int, int, int]]:
    """Regions in the order of their ends, as a producer of whole regions stores them."""
    stacks: dict[int, list[Op]] = {}
    found = []
    for op in ops:
        if op.kind == "b":
            stacks.setdefault(op.event, []).append(op)
        elif op.kind == "e" and stacks.get(op.event):
            begin = stacks[op.event].pop()
            found.append((op.event, begin.time, op.time, begin.payload))
    return found


def _words(buffer: bytearray) -> np.ndarray:
    return np.frombuffer(bytes(buffer), np.uint8)


# The tree of FlashInfer: one 64-bit word a record, slot = head + lane + k * lanes.


def _tree(
    shape: Shape,
    *,
    head: int,
    tag: Callable[[int, int, int, int, str, int], int],
    events: list[int],
    empty: int = 0,
    sms: bool = False,
    instants: bool = False,
    base: int | None = None,
    per_block: Callable[[int], int] | None = None,
) -> Made:
    lanes = shape.blocks * shape.groups
    start = start_of(shape) if base is None else base
    programs = [program(shape, lane, events, start=start, marks=False) for lane in range(lanes)]
    rows = max((len(ops) for ops in programs), default=0) + 2
    words = [empty] * (head + lanes * rows)
    words[0] = shape.blocks | shape.groups << 32
    if per_block is not None:
        for block in range(shape.blocks):
            words[1 + block] = per_block(block)
    spans = []
    for lane, ops in enumerate(programs):
        block, group = divmod(lane, shape.groups)
        cursor = head + lane
        count: dict[int, int] = {}
        for op in ops:
            number = count.get(op.event, 0)
            count[op.event] = number + (op.kind == "e")
            words[cursor] = tag(lane, block, op.event, number, op.kind, 0) | (op.time & 0xFFFFFFFF) << 32
            cursor += lanes
        kept = list(ops)
        if instants and ops:
            # An instant is stored without advancing: the next record overwrites it, and only the last one is left.
            last = Op("m", events[0], ops[-1].time + 77)
            words[cursor] = tag(lane, block, last.event, 0, "m", 0) | (last.time & 0xFFFFFFFF) << 32
            kept.append(last)
        sm = sm_of(block) if sms else None
        spans += [(block, group, sm, *found) for found in paired(kept)]
    made = Made({"buffer": np.array(words, np.uint64)}, spans=spans)
    if base is None:
        made.options["anchor"] = start
    return made


def sm_of(block: int) -> int:
    """The SM on which a block runs in these files."""
    return (255 - 7 * block) % 256


_TYPE = {"b": 0, "e": 1, "m": 2}


def mirage_mpk(shape: Shape) -> Made:
    """encode_tag ORs the unmasked lane at bit 11, the event at bit 2, the number of the task at bit 19."""

    def tag(lane: int, _block: int, event: int, number: int, kind: str, _: int) -> int:
        return ((lane << 11) | (event << 2) | _TYPE[kind] | (number << 19)) & 0xFFFFFFFF

    return _tree(shape, head=1, tag=tag, events=[511, 0, 100] if shape.top else [1, 2], instants=True)


def mirage_mpk_wide(shape: Shape) -> Made:
    """The later form: 11 bits of lane, the number of the task at bit 22."""

    def tag(lane: int, _block: int, event: int, number: int, kind: str, _: int) -> int:
        return ((lane << 11) | (event << 2) | _TYPE[kind] | (number << 22)) & 0xFFFFFFFF

    return _tree(shape, head=1, tag=tag, events=[511, 0, 302] if shape.top else [1, 2], instants=True)


def mirage_transpiler(shape: Shape) -> Made:
    """The tag of the transpiler: lane at bit 12, event at bit 2, number of the task at bit 24."""

    def tag(lane: int, _block: int, event: int, number: int, kind: str, _: int) -> int:
        return ((lane << 12) | (event << 2) | _TYPE[kind] | (number & 0xFF) << 24) & 0xFFFFFFFF

    return _tree(shape, head=1, tag=tag, events=[1023, 0, 512] if shape.top else [1, 2])


def flashinfer_v2(shape: Shape) -> Made:
    """Block in 12 bits, SM in 8; the lane is nowhere but in the slot."""

    def tag(_lane: int, block: int, event: int, _number: int, kind: str, _: int) -> int:
        return (block & 0xFFF) << 12 | sm_of(block) << 24 | event << 2 | _TYPE[kind]

    return _tree(shape, head=1, tag=tag, events=[1023, 0, 5] if shape.top else [1, 2], sms=True, instants=True)


def flashinfer_v2_clock(shape: Shape) -> Made:
    """The same words with the low half of the SM's counter."""
    made = flashinfer_v2(shape)
    words = made.arrays["buffer"].copy()
    # What the counter shows instead of the timer.
    stamped = words != 0
    stamped[0] = False
    low = (words & np.uint64(0xFFFFFFFF)) | (
        ((words >> np.uint64(32)) - np.uint64(start_of(shape) & 0xFFFFFFFF) + np.uint64(1 << 30))
        & np.uint64(0xFFFFFFFF)
    ) << np.uint64(32)
    words[stamped] = low[stamped]
    shift = (1 << 30) - start_of(shape)
    spans = [(*row[:4], row[4] + shift, None if row[5] is None else row[5] + shift, row[6]) for row in made.spans]
    return Made({"buffer": words}, spans=spans)


def triton_distributed(shape: Shape) -> Made:
    """One bit of type, 1 for a begin; a word (pid, SM) for each block; unused slots hold the largest int64."""

    def tag(lane: int, _block: int, event: int, _number: int, kind: str, _: int) -> int:
        return lane << 12 | event << 1 | (kind == "b")

    return _tree(
        shape,
        head=1 + shape.blocks,
        tag=tag,
        events=[2047, 0, 7] if shape.top else [1, 2],
        empty=0x7FFFFFFFFFFFFFFF,
        sms=True,
        per_block=lambda block: block | sm_of(block) << 32,
    )


# Lanes one after the other.


def nuggets_legacy(shape: Shape) -> Made:
    """An atomic count in front of each unit; four words a region."""
    capacity = shape.capacity
    unit = 1 + 4 * capacity
    words = np.zeros(shape.blocks * unit, np.int64)
    spans, lost = [], 0
    tags = [(1 << 62) + 5, 0, 3] if shape.top else [1, 2]
    for block in range(shape.blocks):
        for tag, begin, end, _ in spans_of(program(shape, block, tags, start=start_of(shape))):
            slot = int(words[block * unit])
            words[block * unit] += 1
            if slot >= capacity:
                lost += 1
                continue
            at = block * unit + 1 + 4 * slot
            words[at : at + 4] = begin, end - begin, tag, 9 + block
            spans.append((block, 9 + block, None, tag, begin, end, 0))
    return Made({"buffer": words}, {"max_events": capacity}, spans, lost)


def nuggets_compact(shape: Shape) -> Made:
    """A 64-bit anchor in front of each unit, one word a region; the caller numbers the slots, outer regions first."""
    capacity = max(shape.capacity, 2 * (shape.regions or 8))
    words = np.zeros(shape.blocks * (1 + capacity), np.uint64)
    tags = [255, 0, 17] if shape.top else [1, 2]
    spans = []
    for block in range(shape.blocks):
        start = start_of(shape) + 31 * block
        regions = sorted(spans_of(program(shape, block, tags, start=start)), key=lambda one: one[1])
        at = block * (1 + capacity)
        if shape.regions is None and not regions:
            continue  # the block has not run: no anchor either
        words[at] = start
        for slot, (tag, begin, end, _) in enumerate(regions):
            words[at + 1 + slot] = (begin & 0xFFFFFFFF) | ((end - begin) & 0xFFFFFF) << 32 | tag << 56
            spans.append((block, 0, None, tag, begin, end, 0))
    return Made({"buffer": words}, {"max_events": capacity}, spans)


def sm_profiler(shape: Shape) -> Made:
    """Counts, a table of what is active, and packed structures of 40 bytes; one region of an event at a time."""
    lanes = shape.blocks * shape.groups
    counts = [0] * (lanes + lanes % 2)
    active = [[0] * 32 for _ in range(lanes)]
    events = bytearray(40 * lanes * shape.capacity)
    spans, lost = [], 0
    numbers = [31, 0, 7] if shape.top else [1, 2]
    for lane in range(lanes):
        block, group = divmod(lane, shape.groups)
        for op in program(shape, lane, numbers, start=start_of(shape)):
            if op.kind == "e":
                if active[lane][op.event]:
                    number = active[lane][op.event] - 1
                    struct.pack_into("<Q", events, 40 * (lane * shape.capacity + number) + 32, op.time)
                    active[lane][op.event] = 0
                continue
            if op.kind == "b" and active[lane][op.event]:
                continue
            number = counts[lane]
            counts[lane] += 1
            if number >= shape.capacity:
                lost += 1
                continue
            fields = number, op.event, block, group, sm_of(block), int(op.kind == "m"), op.time, 0
            struct.pack_into("<IIIIIIQQ", events, 40 * (lane * shape.capacity + number), *fields)
            if op.kind == "b":
                active[lane][op.event] = number + 1
        for number in range(min(counts[lane], shape.capacity)):
            at = 40 * (lane * shape.capacity + number)
            _, event, _, _, sm, kind, begin, end = struct.unpack_from("<IIIIIIQQ", events, at)
            if kind or end:
                spans.append((block, group, sm, event, begin, None if kind else end, 0))
    header = struct.pack("<IIII", shape.groups, shape.blocks, 1, shape.capacity)
    tables = struct.pack(f"<{len(counts)}I", *counts) + np.array(active, np.uint32).tobytes()
    return Made({"buffer": np.frombuffer(header + tables + bytes(events), np.uint8)}, {}, spans, lost)


def open_cuprof(shape: Shape) -> Made:
    """Structures of a block: regions of all warps, counts, SM, a flag; the exporter would read beyond the room."""
    mhz = 1500
    size = (32 * shape.capacity * shape.groups + 4 * shape.groups + 8 + 7) // 8 * 8
    data = bytearray(size * shape.blocks)
    spans, lost = [], 0
    names = [(1 << 47) - 64, 139_637_976_727_552] if shape.top else [4096, 8192]
    for block in range(shape.blocks):
        counts = [0] * shape.groups
        for warp in range(shape.groups):
            for name, begin, end, _ in spans_of(program(shape, block * shape.groups + warp, names, start=BASE)):
                number = counts[warp]
                counts[warp] += 1
                if number >= shape.capacity:
                    lost += 1
                    continue
                cycles = (end - begin) * 3 // 2 + 1
                first = (1 << 50) + begin - BASE
                at = size * block + 32 * (warp * shape.capacity + number)
                struct.pack_into("<QQQQ", data, at, begin, first, first + cycles, name)
                spans.append((block, warp, sm_of(block), name, begin, begin + cycles * 1000 // mhz, 0))
        at = size * block + 32 * shape.capacity * shape.groups
        struct.pack_into(f"<{shape.groups}III", data, at, *counts, sm_of(block), 1)
    params = {"max_events": shape.capacity, "max_warps": shape.groups, "clock_mhz": mhz}
    return Made({"buffer": _words(data)}, params, spans, lost)


def _kept(ops: list[Op], capacity: int) -> tuple[list[Op], int]:
    """The latest records of a ring, and how many it has overwritten."""
    return ops[max(0, len(ops) - capacity) :], max(0, len(ops) - capacity)


def ikp(shape: Shape) -> Made:
    """A ring of 16-byte records for each warp, its length a power of two; counts in an array of their own."""
    capacity = 1 << max(2, shape.capacity.bit_length() - 1)
    lanes = shape.blocks * shape.groups
    data, counts = bytearray(16 * capacity * lanes), np.zeros(lanes, np.uint32)
    spans, lost = [], 0
    ids = [65535, 0, 9] if shape.top else [1, 2]
    for lane in range(lanes):
        block, warp = divmod(lane, shape.groups)
        ops = program(shape, lane, ids, start=BASE)
        for op in ops:
            at = 16 * (lane * capacity + (int(counts[lane]) & (capacity - 1)))
            place = (warp & 0x3F) | (sm_of(block) & 0x3FF) << 6
            struct.pack_into("<QHHHH", data, at, op.time, op.event, _TYPE[op.kind], block & 0xFFFF, place)
            counts[lane] += 1
        kept, gone = _kept(ops, capacity)
        lost += gone
        spans += [(block, warp, sm_of(block), *found) for found in paired(kept)]
    return Made(
        {"buffer": _words(data), "counters": counts}, {"max_events": capacity, "warps": shape.groups}, spans, lost
    )


def mosaic_gpu(shape: Shape) -> Made:
    """Start, SM and words used; then pairs (tag, %clock). A buffer without room is rejected by the host."""
    lanes = shape.blocks * shape.groups
    ids = [(1 << 31) - 1, 0, 2] if shape.top else [1, 2]
    programs = [program(shape, lane, ids, start=0, marks=False) for lane in range(lanes)]
    words = 3 + 2 * (max((len(ops) for ops in programs), default=0) + 1)
    data = np.zeros(lanes * words, np.uint32)
    spans = []
    for lane, ops in enumerate(programs):
        block, group = divmod(lane, shape.groups)
        clock = ((1 << 32) - 700 if shape.wrap else 1 << 30) + (block << 20)
        at = lane * words
        for op in ops:
            op.time += clock
        data[at : at + 3] = (BASE + lane) & 0xFFFFFFFF, sm_of(block), 2 * len(ops)
        for number, op in enumerate(ops):
            data[at + 3 + 2 * number] = op.event | (op.kind == "e") << 31
            data[at + 4 + 2 * number] = op.time & 0xFFFFFFFF
        spans += [(block, group, sm_of(block), *found) for found in paired(ops)]
    return Made({"buffer": data}, {"words": words, "groups": shape.groups}, spans, options={"fold": 32})


def tileops(shape: Shape, spare: int = 1) -> Made:
    """A count that stops at the room, then 16-byte records; the same event may be open on several tracks at a time."""
    rows = shape.capacity + 1 + spare
    data = np.zeros((shape.blocks, shape.groups, rows, 2), np.uint64)
    data[:, :, 0, 1] = 0xDEAD_BEEF_DEAD_BEEF  # torch.empty
    spans = []
    ids = [(1 << 24) - 1, 0, 5] if shape.top else [1, 2]
    for block in range(shape.blocks):
        for group in range(shape.groups):
            lane, start = block * shape.groups + group, (1 << 40) + (block << 30)
            tracks = [(track, op) for track in (0, 15) for op in program(shape, 2 * lane + track, ids, start=start)]
            kept = sorted(tracks, key=lambda one: one[1].time)[: shape.capacity]
            for number, (track, op) in enumerate(kept):
                word = op.event | _TYPE[op.kind] << 24 | track << 28 | op.payload << 32
                data[block, group, 1 + number] = op.time, word
            data[block, group, 0, 0] = min(len(tracks), shape.capacity)
            for track in (0, 15):
                mine = [op for of, op in kept if of == track]
                spans += [(block, group, None, *found) for found in paired(mine, payload=True)]
    params = {"max_events": shape.capacity, "groups": shape.groups} | ({} if spare == 1 else {"spare": spare})
    return Made({"buffer": data}, params, spans)


def tileops_without_spare(shape: Shape) -> Made:
    """The form whose rows have no room after the last record."""
    return tileops(shape, spare=0)


def _rows(shape: Shape, *, header: int, width: int, dynamic: bool, anchor: bool) -> Made:
    """Rows of nanotrace and cutedsl-trace: whole regions, an end offset that goes on without room."""
    row = header + width * shape.capacity
    lanes = shape.blocks * shape.groups
    data = bytearray(row * lanes)
    spans, lost = [], 0
    ids = [65535, 0, 3] if shape.top else [1, 2]
    for lane in range(lanes):
        block, group = divmod(lane, shape.groups)
        base = row * lane
        write = base + header
        last = start_of(shape)
        for event, begin, end, payload in spans_of(program(shape, lane, ids, start=start_of(shape))):
            last = max(last, end)
            if write < base + row:
                if dynamic:
                    struct.pack_into("<IIII", data, write, begin & 0xFFFFFFFF, end & 0xFFFFFFFF, event, payload)
                else:
                    values = [begin & 0xFFFFFFFF, end & 0xFFFFFFFF, payload, 0, 0, 0, 0, 0][: width // 4]
                    struct.pack_into(f"<{width // 4}I", data, write, *values)
                spans.append(
                    (
                        block,
                        group,
                        sm_of(block),
                        event if dynamic else group,
                        begin,
                        end,
                        payload if dynamic or width > 8 else 0,
                    )
                )
            else:
                lost += 1
            write += width
        if shape.regions is None and not lane:
            continue  # a lane that is not enabled writes no header
        struct.pack_into("<II", data, base, sm_of(block), write & 0xFFFFFFFF)
        if anchor:
            struct.pack_into("<Q", data, base + 8, last + 500)
    made = Made({"buffer": _words(data)}, {"row": row, "lanes": shape.groups}, spans, lost)
    if not anchor:
        made.options["anchor"] = start_of(shape)
    return made


def nanotrace(shape: Shape) -> Made:
    """Dynamic lanes: events of 8 words, a 16-byte header with an anchor that is later than all stamps."""
    return _rows(shape, header=16, width=32, dynamic=True, anchor=True)


def nanotrace_static(shape: Shape) -> Made:
    """Static lanes with events of two words."""
    made = _rows(shape, header=16, width=8, dynamic=False, anchor=True)
    made.params["words"] = 2
    return made


def nanotrace_static_wide(shape: Shape) -> Made:
    """Static lanes with events of eight words."""
    made = _rows(shape, header=16, width=32, dynamic=False, anchor=True)
    made.params["words"] = 8
    return made


def cutedsl_trace(shape: Shape) -> Made:
    """Dynamic lanes: the header is as large as an event, without an anchor."""
    return _rows(shape, header=32, width=32, dynamic=True, anchor=False)


def cutedsl_trace_static(shape: Shape) -> Made:
    """Static lanes: the header is as large as an event of the widest type."""
    made = _rows(shape, header=16, width=16, dynamic=False, anchor=False)
    made.params["words"] = 4
    return made


def quack(shape: Shape) -> Made:
    """40 bytes of readings of both clocks, place and count, then a ring of (u32 clock, u16 event, u16 type)."""
    capacity = 1 << max(2, shape.capacity.bit_length() - 1)
    size = 40 + 8 * capacity
    data = bytearray(size * shape.blocks * shape.groups)
    spans, lost = [], 0
    ids = [65535, 0, 9] if shape.top else [1, 2]
    for block in range(shape.blocks):
        for warp in range(shape.groups):
            lane = block * shape.groups + warp
            if shape.regions is None and lane % 3 == 2:
                continue  # warp_ids leaves this warp out: its slot stays zero
            clock = (5 << 32) - 900 if shape.wrap else 5_000_000_000 + (block << 33)
            ops = program(shape, lane, ids, start=clock)
            at = size * lane
            info = block | ((warp & 0x3F) | (sm_of(block) & 0x3FF) << 6) << 16
            last = ops[-1].time + 90 if ops else clock + 90
            struct.pack_into("<QQ", data, at, BASE, clock)
            struct.pack_into("<I", data, at + 32, info & 0xFFFFFFFF)
            for number, op in enumerate(ops):
                entry = at + 40 + 8 * (number & (capacity - 1))
                struct.pack_into("<IHH", data, entry, op.time & 0xFFFFFFFF, op.event, _TYPE[op.kind])
            struct.pack_into("<QQ", data, at + 16, BASE + (last - clock) * 2 // 3, last)
            struct.pack_into("<I", data, at + 36, len(ops))
            kept, gone = _kept(ops, capacity)
            lost += gone
            spans += [(block, warp, sm_of(block), *found) for found in paired(kept)]
    return Made({"buffer": _words(data)}, {"max_events": capacity, "warps": shape.groups}, spans, lost)


def cutez(shape: Shape) -> Made:
    """Rings of words: low half %clock, high half 11 bits of clock, scope from bit 23, end in bit 31; scopes from 1."""
    lanes = shape.blocks * shape.groups
    data = np.zeros((lanes, shape.capacity, 2), np.uint32)
    spans = []
    ids = [255, 1, 9] if shape.top else [1, 2]
    for lane in range(lanes):
        block, warp = divmod(lane, shape.groups)
        clock = (1 << 32) - 900 if shape.wrap else (1 << 42) + (block << 30)
        ops = program(shape, lane, ids, start=clock, marks=False)
        for number, op in enumerate(ops):
            high = (op.time >> 32 & 0x7FF) | (op.event & 0xFF) << 23 | (op.kind == "e") << 31
            data[lane, number % shape.capacity] = op.time & 0xFFFFFFFF, high
        spans += [(block, warp, None, *found) for found in paired(_kept(ops, shape.capacity)[0])]
    return Made({"buffer": data}, {"segment": shape.capacity, "warps": shape.groups}, spans)


def mori(shape: Shape) -> Made:
    """A ring of two 64-bit words a record for each warp; the offset, in words, is that of the whole ring."""
    lanes = shape.blocks * shape.groups
    capacity = shape.capacity
    data, offsets = np.zeros((lanes, capacity, 2), np.uint64), np.zeros(lanes, np.uint32)
    spans = []
    ids = [(1 << 14) - 1, 0, 9] if shape.top else [1, 2]
    for warp in range(lanes):
        ops = program(shape, warp, ids, start=1_000_000_000_000)
        for op in ops:
            index = int(offsets[warp]) % (2 * capacity)
            data[warp, index // 2] = op.time, _TYPE[op.kind] | op.event << 2 | warp << 16
            offsets[warp] = (index + 2) % (2 * capacity)
        spans += [(warp, 0, None, *found) for found in paired(_kept(ops, capacity)[0])]
    return Made({"buffer": data, "offsets": offsets}, {"max_events": capacity}, spans)


def flydsl(shape: Shape, *, regions: bool = False) -> Made:
    """Dynamic recording: a header of 16 words, an atomic cursor, three words a record; unused waves are zero."""
    stride = (16 + 3 * shape.capacity + 15) // 16 * 16
    grid = (2, 2, (shape.blocks + 3) // 4)
    waves = shape.blocks * shape.groups
    words = np.zeros(waves * stride, np.uint32)
    spans, lost = [], 0
    sites = [(1 << 32) - 1, 0, 7] if shape.top else [1, 2]
    for index in range(waves):
        block, wave = divmod(index, shape.groups)
        epoch = (7 << 32) - 900 if shape.wrap else 1 << 52
        ops = program(shape, index, [0, 1, 2] if regions else sites, start=epoch)
        if shape.regions is None and not ops:
            continue
        at = index * stride
        kept: list[Op] = []
        place = block % grid[0], block // grid[0] % grid[1], block // (grid[0] * grid[1])
        end = ops[-1].time + 5 if ops else epoch + 5
        words[at : at + 4] = epoch & 0xFFFFFFFF, epoch >> 32, end & 0xFFFFFFFF, end >> 32
        words[at + 5 : at + 9] = *place, wave
        for op in ops:
            number = int(words[at + 4])
            words[at + 4] += 1
            if number >= shape.capacity:
                lost += 1
                continue
            record = at + 16 + 3 * number
            # Each start, end and mark of the code is a site of its own.
            site = 3 * op.event + _TYPE[op.kind] if regions else op.event
            words[record : record + 3] = op.time & 0xFFFFFFFF, site, op.payload
            kept.append(op)
        if regions:
            spans += [(block, wave, None, *found) for found in paired(kept, payload=True)]
        else:
            spans += [(block, wave, None, op.event, op.time, None, 0) for op in kept]
    params = {"max_events": shape.capacity, "grid_x": grid[0], "grid_y": grid[1]}
    return Made({"buffer": words}, params, spans, lost)


def flydsl_static(shape: Shape) -> Made:
    """Static recording: epoch and end, then one tick for each execution of a site, in program order."""
    sites = 2 * max(1, shape.regions or 5) - 1
    stride = (4 + sites + 15) // 16 * 16
    words = np.zeros(shape.blocks * shape.groups * stride, np.uint32)
    spans = []
    for index in range(shape.blocks * shape.groups):
        block, wave = divmod(index, shape.groups)
        epoch = (7 << 32) - 300 if shape.wrap else (1 << 60) + index
        at, tick = index * stride, epoch + 3
        for ordinal in range(sites):
            words[at + 4 + ordinal] = tick & 0xFFFFFFFF
            spans.append((block, wave, None, ordinal, tick, None, 0))
            tick += 41 + ordinal
        words[at : at + 4] = epoch & 0xFFFFFFFF, epoch >> 32, tick & 0xFFFFFFFF, tick >> 32
    params = {"sites": sites, "waves_per_block": shape.groups}
    return Made({"buffer": words}, params, spans)


def iris(shape: Shape) -> Made:
    """Columns and one atomic counter for all programs; the column of durations holds the end, 0 while it is open."""
    names = ["event_id", "pid", "pid_m", "pid_n", "cur_rank", "target_rank", "xcc_id", "cu_id"]
    room = shape.capacity * shape.blocks
    columns = {name: np.zeros(room, np.int32) for name in names}
    wide = {name: np.zeros(room, np.int64) for name in ("timestamp", "address", "duration_cycles")}
    ids = [(1 << 31) - 1, 0, 5] if shape.top else [1, 2]
    calls = sorted(
        (
            (begin, end, event, block)
            for block in range(shape.blocks)
            for event, begin, end, _ in spans_of(program(shape, block, ids, start=1 << 52))
        ),
    )
    spans, count = [], 0
    for begin, end, event, block in calls:
        slot, count = count, count + 1
        if slot >= room:
            continue
        is_open = slot % 5 == 4
        for name, value in (("event_id", event), ("pid", block), ("xcc_id", block % 8), ("cu_id", block % 38)):
            columns[name][slot] = value
        wide["timestamp"][slot], wide["duration_cycles"][slot] = begin, 0 if is_open else end
        if not is_open:
            spans.append((block, block % 8, None, event, begin, end, 0))
    arrays = {"buffer": wide.pop("timestamp"), **columns, **wide, "counter": np.array([count], np.int32)}
    return Made(arrays, {}, spans, max(0, count - room))


def npkit(shape: Shape) -> Made:
    """Pairs of host and GPU time, then events in pairs of types; the volume is the payload."""
    gpu, cpu = 2000, 1000
    data = bytearray()
    host, device = 100_000_000_000_000, 5_497_558_138_880
    data += struct.pack("<QQ", 1, host) + struct.pack("<QQ", 2, device)
    spans = []
    events = [119, 0, 3] if shape.top else [1, 2]
    ops = program(Shape(regions=shape.regions or 3, seed=shape.seed), 0, events, start=0, marks=False)
    for number, op in enumerate(ops):
        if number and number % 5 == 0:
            # The kernel stores both clocks again: the GPU's may have changed its rate in between.
            host, device = host + 7777, device + 2 * 7777
            data += struct.pack("<QQ", 1, host) + struct.pack("<QQ", 2, device)
        stamp = device + 2 * op.time
        op.time = host * 1000 // cpu + (stamp - device) * 1000 // gpu
        data += struct.pack("<QQ", (16 + 2 * op.event + (op.kind == "e")) | op.payload << 8, stamp)
    spans = [(0, 0, None, *found) for found in paired(ops, payload=True)]
    data += bytes(16 * 3)
    return Made({"buffer": _words(data)}, {"gpu_mhz": gpu, "cpu_mhz": cpu}, spans)


def thunderkittens(shape: Shape) -> Made:
    """Slots are events: nanoseconds since the block's start, 0 where nothing happened."""
    width = 32
    data = np.zeros((shape.blocks, shape.groups, width), np.uint32)
    bits = random.Random(shape.seed)
    spans = []
    for block in range(shape.blocks):
        for row in range(shape.groups):
            for slot in bits.sample(range(width), min(width, shape.regions or 0)):
                value = bits.randrange(1, (1 << 31) - 1 if shape.top else 5000)
                data[block, row, slot] = value
                spans.append((block, row, None, slot, value, None, 0))
    return Made({"buffer": data}, {"rows": shape.groups, "width": width}, spans)


def megakernels(shape: Shape) -> Made:
    """Slots are events: cycles since the kernel's start on the SM, of an int; 0 where nothing happened."""
    made = thunderkittens(Shape(shape.blocks, shape.groups, shape.capacity, shape.regions, shape.top, seed=7))
    spans = [(block, row, block, *rest) for block, row, _, *rest in made.spans]
    return Made(made.arrays, {"instructions": shape.groups, "slots": 32}, spans)


def tt_metal(shape: Shape) -> Made:
    """Pushes of each processor: a header of four words, four guaranteed markers, then markers, some with data."""
    riscs, words, control_words = shape.groups, 40 + 8 * shape.capacity, 32
    data = np.zeros((shape.blocks, riscs, words), np.uint32)
    control = np.zeros((shape.blocks, control_words), np.uint32)
    numbers = [65535, 1, 0x7FFF] if shape.top else [3, 4]
    spans = []
    for core in range(shape.blocks):
        for risc in range(riscs):
            clock = ((1 << 44) - 900 if shape.top else 1 << 33) - 60_000
            ops = program(shape, core * riscs + risc, numbers, start=clock)
            kept: list[Op] = []
            for first in range(0, max(1, len(ops)), 9):
                push = [0, 0, (first + 1) << 11 | (core & 0xFF) << 3 | risc, 0xABCD_0000 + first]
                push += [0x8000_0000, 0] * 4  # guaranteed markers that were not written
                for op in ops[first : first + 9]:
                    kind = {"b": 0, "e": 1, "m": 3 if op.payload % 2 else 4}[op.kind]
                    push += [1 << 31 | (op.event | kind << 16) << 12 | op.time >> 32 & 0xFFF, op.time & 0xFFFFFFFF]
                    if kind == 3:
                        push += [0x8000_5000 | op.payload & 0xFFF, op.payload]  # data that looks like a marker
                while len(push) % 4:
                    push += [0x8000_0000, 0]
                end = int(control[core, risc])
                if end + len(push) <= words:
                    data[core, risc, end : end + len(push)] = push
                    control[core, risc] += len(push)
                    kept += ops[first : first + 9]
                elif end + 12 <= words:
                    data[core, risc, end : end + 12] = push[:12]
                    control[core, risc] += 12
                    control[core, 18] |= 1 << risc
                else:
                    control[core, 18] |= 1 << risc
            spans += [(core, risc, None, *found) for found in paired(kept)]
    params = {"words": words, "riscs": riscs}
    return Made({"buffer": data, "control": control}, params, spans)


#: Layout -> writers of it.
WRITERS: dict[str, tuple[Callable[[Shape], Made], ...]] = {
    "mirage-mpk": (mirage_mpk, mirage_mpk_wide),
    "mirage-transpiler": (mirage_transpiler,),
    "flashinfer-v2": (flashinfer_v2,),
    "flashinfer-v2-clock": (flashinfer_v2_clock,),
    "triton-distributed": (triton_distributed,),
    "nuggets-legacy": (nuggets_legacy,),
    "nuggets-compact": (nuggets_compact,),
    "sm-profiler": (sm_profiler,),
    "open-cuprof": (open_cuprof,),
    "ikp": (ikp,),
    "mosaic-gpu": (mosaic_gpu,),
    "tileops": (tileops, tileops_without_spare),
    "nanotrace": (nanotrace,),
    "nanotrace-static": (nanotrace_static, nanotrace_static_wide),
    "cutedsl-trace": (cutedsl_trace,),
    "quack": (quack,),
    "cutez": (cutez,),
    "mori": (mori,),
    "flydsl": (flydsl,),
    "flydsl-static": (flydsl_static,),
    "cutedsl-trace-static": (cutedsl_trace_static,),
    "tt-metal": (tt_metal,),
    "iris": (iris,),
    "npkit": (npkit,),
    "thunderkittens": (thunderkittens,),
    "megakernels": (megakernels,),
}
