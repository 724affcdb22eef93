"""TIRx's own probes: the source that TVM makes of a kernel, run on the host, and its buffer in a session."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from devices.cuda.helpers import lanes, spans
from lanescope.cuda import decode
from lanescope.devices.cuda.probes.buffer import BufferPlan
from lanescope.devices.cuda.probes.session import Session

GPU = Path(__file__).parents[4] / "benchmarks" / "gpu"
BLOCKS, GROUPS, TILES, STEP = 3, 2, 4, 32

#: What the source needs of CUDA; threads of a block run one after the other, which is right without barriers.
BEFORE = """
#include <cstdint>
#include <type_traits>
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(n)
static struct { int x = 0, y = 0, z = 0; } blockIdx, threadIdx;
static struct { int x, y = 1, z = 1; } gridDim;
static inline void __threadfence_block() {}
static uint32_t now = 0xFFFFFF00u;  // runs through zero
static uint32_t read_timer() { return now += 32; }
"""
AFTER = """
extern "C" void launch(int blocks, float *source, float *target, uint64_t *probes) {
    gridDim.x = blocks;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < 32; ++threadIdx.x) CALL;
}
"""


def source(require_tool, mode):
    command = [str(require_tool("probes")), str(GPU / "tirx_source.py"), mode, "90"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=200).stdout


@pytest.fixture(scope="module")
def buffer(require_tool, tmp_path_factory):
    """The buffer that the kernel leaves, uint64 [n]."""
    text, count = re.subn(
        r"asm volatile\([^;]*%globaltimer_lo[^;]*;[^;]*;", "ret = read_timer();", source(require_tool, "on")
    )
    assert count == 1
    text = text.replace("#include <cuda.h>", "")
    # TVM puts the parameters into an order of its own.
    name, parameters = re.findall(r"__global__ void __launch_bounds__\(\d+\) (\w+)\(([^)]*)\)", text)[-1]
    call = f"{name}({', '.join(re.findall(r'([a-z]+)_ptr', parameters))})"
    folder = tmp_path_factory.mktemp("tirx")
    (folder / "kernel.cpp").write_text(BEFORE + text + AFTER.replace("CALL", call))
    library = folder / "kernel.so"
    command = ["g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-o", str(library), str(folder / "kernel.cpp")]
    subprocess.run(command, check=True, timeout=100)
    values = np.arange(BLOCKS * TILES * 32, dtype=np.float32)
    out = np.zeros_like(values)
    words = np.zeros(1 + BLOCKS * GROUPS * (4 * TILES + 1), np.uint64)
    ctypes.CDLL(str(library)).launch(BLOCKS, *(ctypes.c_void_p(a.ctypes.data) for a in (values, out, words)))
    assert (out == 2 * values).all()
    return words


def test_its_buffer_decodes_to_what_the_kernel_did(buffer):
    plan = BufferPlan.of(
        events=["load", "scale"], blocks=BLOCKS, groups=["low", "high"], records_per_lane=4 * TILES, layout="tirx"
    )
    assert plan.words == len(buffer)

    class Host:
        """What a session asks of a GPU when it is only given buffers."""

        name, ordinal, is_simulated = "host", 0, False

    session = Session(plan, [Host()])
    session.add(buffer, "scaled")
    trace = session.trace()
    assert session.advice() == []
    found = [(block, group, name, dur) for block, group, _, name, _, _, dur, _ in spans(trace)]
    # One leader a group, and a tick from each reading to the next.
    wanted = [(b, g, name, STEP) for b in range(BLOCKS) for g in range(GROUPS) for name in ("load", "scale") * TILES]
    assert sorted(found) == sorted(wanted)
    assert all(lane["finalize_ts"] is not None for lane in lanes(trace).values())
    assert sum(lane["wraps"] for lane in lanes(trace).values()) == 1
    # Without the plan, the stride is found.
    assert decode(buffer, events=["load", "scale"]).slices["dur"].tolist() == trace.slices["dur"].tolist()


def test_of_disabled_probes_nothing_is_left(require_tool):
    text = source(require_tool, "off")
    assert "scaled" in text
    assert "globaltimer" not in text
    assert "timer_" not in text
