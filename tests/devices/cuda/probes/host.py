"""The probe header on the CPU: threads that carry out programs of markers, and what they must leave in the buffer."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from lanescope.cuda import include_dir
from lanescope.devices.cuda.formats.encode import ls2, strided
from lanescope.devices.cuda.formats.layout import FINALIZED, RUNNING

SHIM = Path(__file__).parent / "shim"
#: Verbs by the number that the program's first column has; those before ``finalize`` are kinds of LS2.
KINDS = ("begin", "end", "instant", "value", "async_begin", "async_end", "flow_out", "flow_in")
VERBS = (*KINDS, "finalize", "consume", "jump")
NUMBER = {name: number for number, name in enumerate(VERBS)}
FINALIZE = NUMBER["finalize"]
TYPES = ("int", "unsigned", "long long", "unsigned long long", "float", "double")
SMS, GRID_ID = 4, 77


def build(source: Path, *flags: str) -> ctypes.CDLL:
    """Compile a source of the shim and load it; what is undefined in C++ ends the test."""
    target = Path(mkdtemp(prefix="lanescope-probes-")) / f"{source.stem}.so"
    sanitize = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    folders = [f"-I{SHIM}", f"-I{include_dir()}"]
    command = ["g++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *sanitize, *folders]
    done = subprocess.run([*command, *flags, "-o", target, source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(target))


@cache
def library() -> ctypes.CDLL:
    found = build(SHIM / "programs.cpp")
    found.lay_out.restype = ctypes.c_uint64
    found.position_of_last_lane.restype = ctypes.c_uint32
    found.count_fences.restype = found.count_uses.restype = ctypes.c_uint64
    return found


@dataclass
class Program:
    """Programs of all lanes of a grid.

    Attributes:
        lanes: for each lane rows of (verb, event, token, type, time, bits); the first row is its init, and a lane
            without rows never calls it.
        grid, block: sizes; a block's threads make ``groups`` groups of equal size.
        leader: which thread of a group leads.
        every: each n-th block is recorded.
    """

    lanes: list[list[tuple[int, int, int, int, int, int]]]
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (1, 1, 1)
    groups: int = 1
    leader: int = 0
    every: int = 1
    blocks: int = field(init=False)

    def __post_init__(self) -> None:
        self.blocks = int(np.prod(self.grid))

    def arguments(self):
        rows = np.array([row for lane in self.lanes for row in lane], np.int64).reshape(-1, 6)
        starts = np.cumsum([0, *(len(lane) for lane in self.lanes)], dtype=np.int64)
        sizes = np.array([*self.grid, *self.block], np.uint32)
        threads = int(np.prod(self.block)) // self.groups
        numbers = [ctypes.c_int64(number) for number in (self.groups, threads, self.leader, self.every)]
        return rows, starts, sizes, numbers


#: Guard words around a buffer.
MARGIN, PATTERN = 4096, np.uint64(0xA5A5A5A5A5A5A5A5)


def guarded(words, act) -> np.ndarray:
    """Return the buffer after ``act(pointer)``; nothing around it may have changed."""
    area = np.full(len(words) + 2 * MARGIN, PATTERN, np.uint64)
    area[MARGIN:-MARGIN] = words
    act(ctypes.c_void_p(area[MARGIN:].ctypes.data))
    assert (area[:MARGIN] == PATTERN).all()
    assert (area[-MARGIN:] == PATTERN).all()
    return area[MARGIN:-MARGIN].copy()


def run_ls2(program: Program, words, *, record_words: int, clock: int = 0) -> np.ndarray:
    rows, starts, sizes, numbers = program.arguments()

    def act(pointer):
        arrays = [ctypes.c_void_p(array.ctypes.data) for array in (rows, starts)]
        library().run_ls2(record_words, clock, ctypes.c_void_p(sizes.ctypes.data), pointer, *arrays, *numbers)

    return guarded(words, act)


def run_tirx(program: Program, slots: int) -> np.ndarray:
    rows, starts, sizes, numbers = program.arguments()

    def act(pointer):
        arrays = [ctypes.c_void_p(array.ctypes.data) for array in (rows, starts)]
        size = ctypes.c_int64(slots)
        library().run_tirx(ctypes.c_void_p(sizes.ctypes.data), pointer, size, *arrays, *numbers)

    return guarded(np.zeros(slots, np.uint64), act)


def counter(kind: int, bits: int, width: int) -> tuple[int, int]:
    """Return the type (0 integer, 1 float64) and the 64 bits that a value is stored as."""
    as_double = float(np.array([bits], np.int64).view(np.float64)[0])
    if TYPES[kind] == "float":
        with np.errstate(all="ignore"):
            value: float | int = float(np.float32(as_double))
    elif TYPES[kind] == "double":
        value = as_double
    else:
        size = 4 if kind < 2 else 8
        value = int.from_bytes((bits & (1 << 8 * size) - 1).to_bytes(size, "little"), "little", signed=kind in (0, 2))
        bound = 1 << ((64 if width == 2 else 62) - 1)
        if -bound <= value < bound:
            return 0, value & (1 << 64) - 1
    return 1, int(np.array([value], np.float64).view(np.uint64)[0])


def expected_ls2(program: Program, setup: ls2.Ls2Setup) -> np.ndarray:
    """Return the buffer as our own encoder makes it from the same programs, those that have no room counted."""
    width = setup.record_words
    columns: list[tuple[int, ...]] = []
    heads = ls2.lane_heads(setup.lanes)
    begun = []
    threads = int(np.prod(program.block)) // program.groups
    for number, ops in enumerate(program.lanes):
        block, group = divmod(number, program.groups)
        if not ops or block % program.every:
            continue
        begun.append((block, group))
        if block >= setup.num_blocks or group >= setup.num_groups:
            continue
        lane = block * setup.num_groups + group
        start, state, ended = ops[0][4], RUNNING, 0
        for verb, event, token, kind, time, bits in ops[1:]:
            if verb == FINALIZE:
                state, ended = FINALIZED, time
                break  # what comes after it is not recorded
            if verb > FINALIZE:
                continue
            payload = bits if width == 2 and kind else 0
            if VERBS[verb] == "value":
                token, payload = counter(kind, bits, width)
            columns.append((lane, event & 0xFFFF, verb, time, token & 0xFFF, payload & (1 << 64) - 1))
        x = block % program.grid[0]
        fields = {"state": state, "begin_ns": start, "begin_cycles": start, "end_ns": ended, "end_cycles": ended}
        warp = (group * threads + program.leader) // 32
        fields |= {"sm": block % SMS, "warp": warp, "cluster_rank": x % 2, "grid_id": GRID_ID}
        heads[lane] = ls2.lane_heads(1, **fields)[0]
    columns_ = list(zip(*columns, strict=True)) if columns else [()] * 6
    arrays = [np.array(column, np.int64) for column in columns_[:5]]
    found = ls2.Ls2Records(*arrays, np.array(columns_[5], np.uint64))
    after = ls2.refuse(setup, program.blocks, *np.array(begun, np.int64).reshape(-1, 2).T)
    return ls2.encode(found, after, heads)[0]


def expected_tirx(program: Program, slots: int) -> np.ndarray:
    rows = []
    for lane, ops in enumerate(program.lanes):
        if lane // program.groups % program.every:
            continue
        for verb, event, _, _, time, _ in ops[1:]:
            is_last = verb == FINALIZE
            fields = (lane, 0 if is_last else event & 0x3FF, 3 if is_last else verb)
            # A word of zeros would be no record, so the probe stores the next stamp.
            rows.append((*fields, time + (not any(fields) and not time & 0xFFFFFFFF)))
            if is_last:
                break
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    return strided.encode(strided.Records(*columns), num_blocks=program.blocks, num_groups=program.groups, slots=slots)[
        0
    ]
