"""A Numba kernel in which one warp loads tiles and another one adds them up."""

from collections import Counter

import numpy as np
from numba import cuda

from lanescope.cuda import PROBES, session
from lanescope.cuda import numba_probes as ls

EVENTS = ["FILL", "WAIT", "SUM", "READY", "TILE"]
FILL, WAIT, SUM, READY, TILE = range(5)
BLOCKS, TILES, WIDTH = 4, 6, 4


@cuda.jit
def pipeline(data, sums, probes):
    shared = cuda.shared.array(WIDTH, np.float32)
    warp, thread = cuda.threadIdx.x // WIDTH, cuda.threadIdx.x % WIDTH
    lane = ls.init(probes, warp, thread == 0)
    total = 0.0
    for tile in range(TILES):
        if warp == 0:
            lane = ls.async_begin(lane, FILL, tile + 1)
            shared[thread] = data[cuda.blockIdx.x, tile, thread]
            lane = ls.value(lane, TILE, tile)
            cuda.syncthreads()
            lane = ls.async_end(lane, FILL, tile + 1)
            lane = ls.flow_out(lane, READY, tile + 1)
        else:
            lane = ls.begin(lane, WAIT)
            cuda.syncthreads()
            lane = ls.end(lane, WAIT)
            lane = ls.begin(lane, SUM, tile + 1)
            for k in range(WIDTH):
                total += shared[k]
            lane = ls.end(lane, SUM)
        cuda.syncthreads()
        if warp == 1:
            lane = ls.flow_in(lane, READY, tile + 1)
    if warp == 1 and thread == 0:
        sums[cuda.blockIdx.x] = total
    ls.finalize(lane)


data = np.arange(BLOCKS * TILES * WIDTH, dtype=np.float32).reshape(BLOCKS, TILES, WIDTH)
sums = np.zeros(BLOCKS, np.float32)
launch = pipeline[BLOCKS, 2 * WIDTH]

with session(events=EVENTS, blocks=BLOCKS, groups=["load", "sum"], records_per_lane=64) as s:
    launch(data, sums, s.launch("pipeline"))
    trace = s.trace()
    cost = s.overhead(launch, (data, sums, PROBES), name="pipeline", runs=3)

assert (sums == data.sum((1, 2))).all()
regions = Counter(trace.slices.values("name")[trace.slices.values("category") == "region"].tolist())
fills = (trace.slices.values("category") == "async").sum()
values = trace.counters.values("value")
print(", ".join(f"{name} {count}" for name, count in sorted(regions.items())))
print(f"FILL {fills} asynchronous, {len(trace.flows)} flows, values {values.min():.0f} to {values.max():.0f}")
print(cost)
s.save("out")
