"""AIE: ten million frames of a simulated core to its path: counts alone, and with the path itself."""

from __future__ import annotations

import numpy as np

from lanescope.devices.aie.path.program import program
from lanescope.devices.aie.path.walk.walker import LOOP, NEW_PC, NOT_TAKEN, START, TAKEN, Stream, Walker
from lanescope.devices.aie.simulate import program_runs
from lanescope.devices.aie.simulate.ref_mode2 import Retired
from measure import Row, seconds

FRAMES = 10_000_000
NOPS = ["nop"] * 5
#: A loop of calls, one of which loops in hardware and branches in that loop, for ever.
MAIN = ["movxm p7, #0x10", "nop", "nop", "nop", "jl #0x80", *NOPS, "jl #0x100", *NOPS, "jnzd r17, r17, p7", *NOPS]
MAIN += ["j #0x0", *NOPS]
SCALE = ["add.nc lc, r0, #0", "movxm ls, #0x90", "movxm le, #0x98", "nop", "vldb", "vmac", "vst", "jz r2, #0xc0", *NOPS]
SCALE += ["nop", "nop", "nop", "ret lr", *NOPS]
SEARCH = [
    "add.nc lc, r0, #0",
    "movxm ls, #0x110",
    "movxm le, #0x130",
    "nop",
    "jz r3, #0x12c",
    *NOPS,
    "nop",
    "nop",
    "nop",
]
SEARCH += ["ret lr", *NOPS]


def listing() -> program.Program:
    """The program."""
    lines = []
    for name, base, texts in (("main", 0, MAIN), ("scale", 0x80, SCALE), ("search", 0x100, SEARCH)):
        lines.append(f"{base:08x} <{name}>:")
        lines += [f"{base + 4 * i:8x}: 00 00 00 00 \t{text}" for i, text in enumerate(texts)]
    return program.parse("\n".join(lines))


def stream(known: program.Program) -> Stream:
    """So many frames: the same passes through the program, again and again."""
    longest = program_runs.run(known, seed=1, bundles=200_000)
    # Where it begins anew it knows nothing of before, so passes may be strung together.
    whole = max(i for i, address in enumerate(longest.path) if address == 0)
    retired = [row for row in program_runs.run(known, seed=1, bundles=whole).retired if row[0] != Retired.DIRECT]
    kinds = {Retired.BRANCH: None, Retired.TARGET: NEW_PC, Retired.LOOP: LOOP}
    kind = [kinds[what] if kinds[what] is not None else TAKEN if value else NOT_TAKEN for what, value in retired]
    value = [0 if what == Retired.BRANCH else value for what, value in retired]
    times = -(-FRAMES // len(retired))
    rows = np.concatenate([np.array([START], np.uint8), np.tile(np.array(kind, np.uint8), times)])
    values = np.concatenate([np.zeros(1, np.int64), np.tile(np.array(value, np.int64), times)])
    return Stream(rows, values, np.ones(len(rows), np.int64), np.zeros(len(rows), np.bool_))


def run() -> list[Row]:
    """Measure."""
    known = listing()
    frames = stream(known)
    count = len(frames.kind)
    checked = Walker(known).walk(frames).counts.frames
    counting, keeping = seconds(
        lambda: Walker(known).walk(frames), lambda: Walker(known, keeps_path=True).walk(frames), repeats=3
    )
    share = checked["certain"] / checked.total()
    return [
        Row(
            "frames to counts",
            counting.least * 10_000_000 / count,
            "s for 10 M",
            5,
            note=f"{count / 1e6:.1f} M frames, {count / 1e6 / counting.least:.1f} M/s; {share:.1%} with one path",
        ),
        Row("frames to the path", keeping.least * 10_000_000 / count, "s for 10 M"),
    ]
