"""A Triton matrix product with probes, for ``make gpu``: its tiles load, multiply and store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import triton
import triton.language as tl

from lanescope import MissingDependencyError, Trace
from lanescope.cuda import PROBES, session
from lanescope.cuda import triton_probes as ls

EVENTS = ["LOAD", "DOT", "STORE"]
LOAD, DOT, STORE = (tl.constexpr(number) for number in range(3))
#: Sizes of the matrices and of a program's tile.
SIZE, DEPTH, TILE, STEP = 1024, 512, 64, 32


@triton.jit
def matmul(a, b, c, probes, n, depth, TILE: tl.constexpr, STEP: tl.constexpr):
    """Multiply a [m, depth] by b [depth, n] into c [m, n], float32; all sizes are multiples of the tile's."""
    lane = ls.init(probes)
    rows = tl.program_id(1) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(0) * TILE + tl.arange(0, TILE)
    steps = tl.arange(0, STEP)
    total = tl.zeros((TILE, TILE), tl.float32)
    for k in range(0, depth, STEP):
        lane = ls.begin(lane, LOAD, k // STEP + 1)
        left = tl.load(a + rows[:, None] * depth + (k + steps)[None, :])
        right = tl.load(b + (k + steps)[:, None] * n + columns[None, :])
        # Without these the region would end when the loads were issued.
        ls.consume(lane, left)
        ls.consume(lane, right)
        lane = ls.end(lane, LOAD)
        lane = ls.begin(lane, DOT, k // STEP + 1)
        total = tl.dot(left, right, total, input_precision="ieee")
        ls.consume(lane, total)
        lane = ls.end(lane, DOT)
    lane = ls.begin(lane, STORE)
    tl.store(c + rows[:, None] * n + columns[None, :], total)
    lane = ls.end(lane, STORE)
    ls.finalize(lane)


def grid_of(m: int, n: int, tile: int = TILE) -> tuple[int, int]:
    """Return the programs that a product of m rows and n columns takes."""
    return n // tile, m // tile


def records_of(depth: int, step: int = STEP) -> int:
    """Return the records that a program leaves."""
    return 4 * (depth // step) + 2


def examine(trace: Trace, check: Callable[..., None], *, programs: int, steps: int) -> dict[str, float]:
    """Check that a launch left what the kernel is known to do; return the median lengths of its regions in ns.

    Args:
        trace: of one launch.
        check: is called with a name, ``holds`` and what was ``seen``.
        programs: of the grid.
        steps: that each program goes through.
    """
    per_lane = Counter(zip(trace.slices.values("track_id").tolist(), trace.slices.values("name").tolist(), strict=True))
    wanted = {"LOAD": steps, "DOT": steps, "STORE": 1}
    lanes = {track for track, _ in per_lane}
    right = len(lanes) == programs and all(per_lane[lane, name] == n for lane in lanes for name, n in wanted.items())
    check("triton: every program has every region", holds=right, seen=len(per_lane))
    errors = [row["name"] for row in trace.stats.rows() if row["severity"] in ("error", "data_loss")]
    check("triton: no error, nothing lost", holds=not errors, seen=errors)
    # Regions follow each other: none begins before the one before it in the program has ended.
    order = np.lexsort((trace.details["cuda_regions"].values("begin_slot"), trace.slices.values("track_id")))
    tracks, begin, dur = (trace.slices.values(name)[order] for name in ("track_id", "ts", "dur"))
    late = int(((begin + dur)[:-1] > begin[1:])[tracks[:-1] == tracks[1:]].sum())
    check("triton: regions follow each other", holds=late == 0, seen=late)
    return {
        f"median_{n.lower()}_ns": float(np.median(trace.slices.values("dur")[trace.slices.values("name") == n]))
        for n in EVENTS
    }


def measure(check: Callable[..., None], out: Path, *, rounds: int) -> dict[str, Any]:
    """Run the product on the GPU, with probes and without.

    Args:
        check: is called with a name, ``holds`` and what was ``seen``.
        out: folder; the buffers go into ``triton`` below it.
        rounds: how often each is run.

    Returns:
        The figures, JSON-able.

    Raises:
        MissingDependencyError: PyTorch is not there or sees no GPU.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError(
            f"Triton kernels are run with PyTorch: {error}", hint="pip install torch"
        ) from None
    if not torch.cuda.is_available():
        raise MissingDependencyError("PyTorch sees no GPU", hint="install a build of it for CUDA")
    generator = torch.Generator(device="cuda").manual_seed(1)
    # Small integers: float32 sums of their products are exact, whatever the order.
    a = torch.randint(-4, 5, (SIZE, DEPTH), device="cuda", generator=generator).to(torch.float32)
    b = torch.randint(-4, 5, (DEPTH, SIZE), device="cuda", generator=generator).to(torch.float32)
    c = torch.zeros((SIZE, SIZE), device="cuda")
    grid = grid_of(SIZE, SIZE)
    sizes = {"n": SIZE, "depth": DEPTH, "TILE": TILE, "STEP": STEP}
    # One stage: a pipelined loop issues its loads tiles ahead of their markers.
    in_place = {**sizes, "num_stages": 1}
    with session(events=EVENTS, blocks=grid, records_per_lane=records_of(DEPTH), backend="torch") as s:
        matmul[grid](a, b, c, s.launch("matmul"), **in_place)
        torch.cuda.synchronize()
        exact = (a.double() @ b.double()).float()
        check("triton: computes what it must", holds=bool((c == exact).all()), seen=float((c - exact).abs().max()))
        examined = examine(s.trace(), check, programs=grid[0] * grid[1], steps=DEPTH // STEP)
        found = {
            name: s.overhead(matmul[grid], (a, b, c, PROBES), options, name=name, runs=rounds)
            for name, options in (("matmul", in_place), ("matmul pipelined", sizes))
        }
    s.save(out / "triton")
    versions = {"triton": triton.__version__, "torch": torch.__version__}
    figures = {name: {**asdict(cost), "slowdown": cost.slowdown} for name, cost in found.items()}
    return {**figures["matmul"], **examined, "pipelined": figures["matmul pipelined"], **versions}
