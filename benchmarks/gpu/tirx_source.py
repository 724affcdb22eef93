"""Print the CUDA source that TIRx makes of a kernel with its own probes, for ``make gpu``.

Arguments: ``on`` or ``off``, and the chip (``90``: compute capability 9.0). The kernel has two groups of 16 threads a
block; each loads, multiplies and stores. What TIRx offers to its users, ``CudaProfiler``, is a wrapper around these
calls and cannot be imported without PyTorch.
"""

from __future__ import annotations

import sys
from enum import Enum

import tvm
from tvm.script import tirx as T

BLOCKS, GROUPS, WIDTH, TILES = 3, 2, 16, 4
STRIDE = BLOCKS * GROUPS
SIZE = 1 + STRIDE * (4 * TILES + 1)


class Event(Enum):
    LOAD = 0
    SCALE = 1


def kernel(*, enabled: bool):
    @T.prim_func
    def scaled(
        source: T.Buffer((BLOCKS * TILES * 32,), "float32"),
        target: T.Buffer((BLOCKS * TILES * 32,), "float32"),
        probes: T.Buffer((SIZE,), "uint64"),
    ):
        T.func_attr({"global_symbol": "scaled"})
        for block in T.thread_binding(BLOCKS, thread="blockIdx.x"):
            for thread in T.thread_binding(32, thread="threadIdx.x"):
                tag = T.alloc_buffer((1,), "uint64", scope="local")
                offset = T.alloc_buffer((1,), "uint32", scope="local")
                value = T.alloc_buffer((1,), "float32", scope="local")
                if enabled:
                    T.cuda.timer_init(probes.data, tag.data, offset.data, GROUPS, thread // WIDTH)
                for tile in range(TILES):
                    if enabled:
                        T.cuda.timer_start(Event.LOAD, probes.data, tag.data, offset.data, STRIDE, thread % WIDTH == 0)
                    value[0] = source[(block * TILES + tile) * 32 + thread]
                    if enabled:
                        T.cuda.timer_end(Event.LOAD, probes.data, tag.data, offset.data, STRIDE, thread % WIDTH == 0)
                        T.cuda.timer_start(Event.SCALE, probes.data, tag.data, offset.data, STRIDE, thread % WIDTH == 0)
                    target[(block * TILES + tile) * 32 + thread] = value[0] * 2.0
                    if enabled:
                        T.cuda.timer_end(Event.SCALE, probes.data, tag.data, offset.data, STRIDE, thread % WIDTH == 0)
                if enabled:
                    T.cuda.timer_finalize(probes.data, tag.data, offset.data, STRIDE, thread % WIDTH == 0)

    return scaled


module = tvm.IRModule({"main": kernel(enabled=sys.argv[1] == "on")})
target = tvm.target.Target({"kind": "cuda", "arch": f"sm_{sys.argv[2]}"})
print(tvm.compile(module, target=target, tir_pipeline="tirx").mod.imports[0].inspect_source())
