"""A capture of one AIE core, from how long each of its eight event slots was asserted."""

from __future__ import annotations

import json

import numpy as np

import lanescope
from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.encode import Frames

#: Slots 0 and 1 begin and end a kernel; 2 computes, and 3, 4 and 5 stall on memory, streams and locks.
EVENTS = ["INSTR_EVENT_0", "INSTR_EVENT_1", "INSTR_VECTOR", "MEMORY_STALL", "STREAM_STALL", "LOCK_STALL"]


def opened(folder, runs):
    """Write ``run.bin`` with its configuration into a folder; return its trace.

    Args:
        folder: the folder.
        runs: pairs of the slots that are asserted, a bit each, and for how many cycles.
    """
    mask, cycles = zip(*runs, strict=True)
    frames = encode.encode_runs(np.array(mask, np.uint8), np.array(cycles, np.int64), stop=True, idle=3)
    data = encode.packets(encode.header(0, 1, 2, 1), encode.pack(Frames.join([encode.start(100), frames]))).ravel()
    tile = {"type": "core", "col": 1, "row": 2, "events": EVENTS, "start": "BROADCAST_15", "reset": "BROADCAST_15"}
    (folder / "run.config.json").write_text(json.dumps({"tiles": [tile]}))
    (folder / "run.bin").write_bytes(data.astype("<u4").tobytes())
    return lanescope.open(folder / "run.bin")
