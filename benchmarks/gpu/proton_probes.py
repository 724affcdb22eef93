"""A Triton kernel with Proton's probes, compiled and exported by Proton itself, for ``make gpu``; needs no PyTorch.

``proton_probes.py compile FOLDER CHIP`` leaves the kernel's machine code in the folder, and what a launch has to know.
``proton_probes.py export FOLDER DRIVER`` hands the buffer of the launch to Proton's library, which writes its trace.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import triton
import triton.language as tl
import triton.profiler.language as pl
from triton._C.libproton import proton as library
from triton._C.libtriton import ir, nvidia
from triton._C.libtriton import proton as dialect
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.profiler.hooks.instrumentation import InstrumentationHook
from triton.profiler.mode import Default

TILES, WIDTH = 4, 256
#: Shared memory of a block without being asked for more; Proton's part of it is measured against that.
SHARED_BYTES = 48 << 10


@triton.jit
def proton_stages(source, target, TILES: tl.constexpr, WIDTH: tl.constexpr):
    """Double [programs * TILES * WIDTH] float32, tile after tile."""
    at = tl.arange(0, WIDTH)
    whole = pl.allocate_event("whole")
    for tile in range(TILES):
        first = (tl.program_id(0) * TILES + tile) * WIDTH
        with pl.scope("tile"):
            pl.start_event(whole)
            with pl.scope("load"):
                value = tl.load(source + first + at)
            with pl.scope("scale"):
                tl.store(target + first + at, value * 2)
            pl.end_event(whole)


def compile_(folder: Path, chip: int) -> None:
    """Compile with Proton's passes; its hook asks the active driver for a chip, so there need not be any."""
    target = GPUTarget("cuda", chip, 32)
    utilities = SimpleNamespace(get_device_properties=lambda _: {"max_shared_mem": SHARED_BYTES, "arch": f"sm_{chip}"})
    named = {"get_current_target": lambda: target, "get_current_device": lambda: 0, "utils": utilities}
    triton.runtime.driver.set_active(SimpleNamespace(**named))
    pl.enable_semantic("triton")
    hook = InstrumentationHook(Default())
    hook.activate()
    try:
        signature = {"source": "*fp32", "target": "*fp32", "TILES": "constexpr", "WIDTH": "constexpr"}
        made = triton.compile(ASTSource(proton_stages, signature, {"TILES": TILES, "WIDTH": WIDTH}), target=target)
    finally:
        hook.deactivate()
    (folder / "proton.cubin").write_bytes(made.asm["cubin"])
    (folder / "proton.ttgir").write_text(made.asm["ttgir"])
    context = ir.context()
    for load in (ir.load_dialects, nvidia.load_dialects, dialect.load_dialects):
        load(context)
    module = ir.parse_mlir_module(str(folder / "proton.ttgir"), context)
    metadata = made.metadata
    known = {
        "name": metadata.name,
        "num_warps": metadata.num_warps,
        "shared": metadata.shared,
        "profile_scratch_size": metadata.profile_scratch_size,
        "target": {"backend": "cuda", "arch": chip, "warp_size": 32},
        "mode": str(Default()),
        "names": dialect.get_scope_id_names(module),
        "parents": dialect.get_scope_id_parents(module),
        "triton": triton.__version__,
        "tiles": TILES,
        "width": WIDTH,
    }
    (folder / "proton.json").write_text(json.dumps(known) + "\n")


def export(folder: Path, driver: str) -> None:
    """Give Proton's library the buffer as a launch would have: in memory of the GPU."""
    from driver import Gpu

    known: dict[str, Any] = json.loads((folder / "proton.json").read_text())
    raw = np.fromfile(folder / "proton.bin", np.uint8)
    payload = raw[int(raw[12:16].view("<u4")[0]) :]
    gpu = Gpu(driver)
    memory = gpu.array(payload)
    session = library.start(str(folder / "proton"), "shadow", "trace", "instrumentation", f"cuda:{known['mode']}")
    function = 1  # any number: the library only looks it up
    names, parents = ([tuple(pair) for pair in known[key]] for key in ("names", "parents"))
    library.init_function_metadata(function, known["name"], names, parents, str(folder / "proton.json"))
    library.enter_instrumented_op(0, function, memory.pointer.value, len(payload))
    library.exit_instrumented_op(0, function, memory.pointer.value, len(payload))
    library.finalize(session, "chrome_trace")


if __name__ == "__main__":
    if sys.argv[1] == "compile":
        compile_(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        export(Path(sys.argv[2]), sys.argv[3])
