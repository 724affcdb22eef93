"""A Triton kernel that takes rows through a softmax."""

import os
from collections import Counter

import numpy as np
import triton
import triton.language as tl

from lanescope.cuda import PROBES, session
from lanescope.cuda import triton_probes as ls

EVENTS = ["LOAD", "MAX", "SUM", "STORE"]
LOAD, MAX, SUM, STORE = (tl.constexpr(number) for number in range(4))
PROGRAMS, ROWS, WIDTH = 8, 4, 64


@triton.jit
def softmax(rows, out, probes, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    lane = ls.init(probes)
    for row in range(ROWS):
        at = (tl.program_id(0) * ROWS + row) * WIDTH + tl.arange(0, WIDTH)
        lane = ls.begin(lane, LOAD, row + 1)
        values = tl.load(rows + at)
        ls.consume(lane, values)
        lane = ls.end(lane, LOAD)
        lane = ls.begin(lane, MAX, row + 1)
        powers = tl.exp(values - tl.max(values, axis=0))
        lane = ls.end(lane, MAX)
        lane = ls.begin(lane, SUM, row + 1)
        result = powers / tl.sum(powers, axis=0)
        lane = ls.end(lane, SUM)
        lane = ls.begin(lane, STORE, row + 1)
        tl.store(out + at, result)
        lane = ls.end(lane, STORE)
    ls.finalize(lane)


def tensor(array):
    """Bring an array to where kernels run: the GPU, or the interpreter."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        return ls.HostArray(array)
    import torch

    return torch.from_numpy(array).cuda()


rows = np.random.default_rng(1).normal(size=(PROGRAMS * ROWS, WIDTH)).astype(np.float32)
given, out = tensor(rows), tensor(np.zeros_like(rows))
launch = softmax[(PROGRAMS,)]
sizes = {"ROWS": ROWS, "WIDTH": WIDTH}

with session(events=EVENTS, blocks=PROGRAMS, records_per_lane=32) as s:
    launch(given, out, s.launch("softmax"), **sizes)
    trace = s.trace()
    cost = s.overhead(launch, (given, out, PROBES), sizes, name="softmax", runs=3)

print(", ".join(f"{name} {count}" for name, count in sorted(Counter(trace.slices.values("name").tolist()).items())))
print(cost)
s.save("out")
