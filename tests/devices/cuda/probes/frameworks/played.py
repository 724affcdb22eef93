"""Programs of markers that a kernel plays, and the buffer that the encoder makes of the same program."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.encode import ls2
from lanescope.devices.cuda.probes import sim_clock
from lanescope.devices.cuda.probes.buffer import BufferPlan

#: What an operation of a program is: kind, event, token, payload or value, the time it happens.
BEGIN, END, INSTANT, COUNTER, ASYNC_BEGIN, ASYNC_END, FLOW_OUT, FLOW_IN = range(8)
FLOAT = 8
NUMBERS = ["event", "other"]


@dataclass
class Program:
    """What the lanes of a launch do.

    Attributes:
        options: of the plan.
        ops: int64 [lanes, n, 5]: kind, event, token, payload, time; FLOAT has its value as 64 bits.
        counts: how many of them each lane does, int64 [lanes].
        finished: which lanes finalize, int64 [lanes].
        every: of the blocks only every so many-th records.
        fence: whether there are fences.
        groups: of a block of the kernel; the plan may have more or fewer, and of blocks too.
    """

    options: dict
    ops: np.ndarray
    counts: np.ndarray
    finished: np.ndarray
    every: int
    fence: bool
    groups: int
    plan: BufferPlan = field(init=False)

    def __post_init__(self):
        self.plan = BufferPlan.of(events=NUMBERS, **self.options)

    @property
    def blocks(self):
        return len(self.ops) // self.groups

    def readings(self, lane):
        """Return what the lane's clock shows, reading after reading."""
        start = int(self.ops[lane, 0, 4]) - 100
        times = self.ops[lane, : self.counts[lane], 4].tolist()
        return [start, start, *times, (end := (times or [start])[-1] + 64), end]

    def expected(self, *, sms=4, warp=lambda _group: 0):
        """Return the buffer that the encoder makes of it, uint64 [n]."""
        plan = self.plan
        rows, heads = [], np.zeros((plan.lanes, layout.LS2_LANE_WORDS), np.uint64)
        begun = []
        for number in range(len(self.ops)):
            block, group = divmod(number, self.groups)
            if block % self.every:
                continue
            begun.append((block, group))
            if block >= plan.blocks or group >= len(plan.groups):
                continue
            lane = block * len(plan.groups) + group
            start, *_, end = self.readings(number)
            done = bool(self.finished[number])
            heads[lane] = ls2.lane_heads(
                1,
                state=3 if done else 1,
                begin_ns=start,
                begin_cycles=start * sim_clock.CYCLES_PER_NS,
                end_ns=end if done else 0,
                end_cycles=end * sim_clock.CYCLES_PER_NS if done else 0,
                sm=block % sms,
                warp=warp(group),
                grid_id=1,
            )[0]
            rate = sim_clock.CYCLES_PER_NS if plan.clock == "clock64" else 1
            for kind, event, token, payload, time in self.ops[number, : self.counts[number]].tolist():
                if kind in (COUNTER, FLOAT):
                    rows.append((lane, event, COUNTER, time * rate, int(kind == FLOAT), payload))
                else:
                    rows.append((lane, event, kind, time * rate, token, payload))
        columns = list(np.array(rows, np.int64).reshape(-1, 6).T)
        records = ls2.Ls2Records(*columns[:5], columns[5].view(np.uint64))
        setup = ls2.refuse(plan._setup(0, 0, ()), self.blocks, *np.array(begun, np.int64).reshape(-1, 2).T)
        return ls2.encode(records, setup, heads)[0]


@st.composite
def programs(draw, *, groups):
    """Draw programs; ``groups`` is a strategy, of the kernel's and of the buffer's."""
    options = {
        "blocks": draw(st.integers(1, 4)),
        "groups": draw(groups),
        "records_per_lane": draw(st.sampled_from([1, 2, 4, 16, 64, 128])),
        "payload": draw(st.booleans()),
        "ring": draw(st.booleans()),
        "clock": draw(st.sampled_from(["globaltimer", "clock64"])),
    }
    of_kernel = draw(groups)
    lanes = draw(st.sampled_from([options["blocks"], options["blocks"], 1, 3, 6])) * of_kernel
    # Beyond 64 positions a running lane's count is written.
    most = draw(st.sampled_from([0, 3, 20, 140]))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    ops = np.zeros((lanes, max(most, 1), 5), np.int64)
    ops[:, :, 0] = random.integers(0, 9, ops.shape[:2])
    ops[:, :, 1] = random.choice([0, 1, 65535], ops.shape[:2])
    ops[:, :, 2] = random.choice([0, 1, 7, 4095], ops.shape[:2])
    ops[:, :, 3] = random.integers(-(2**61), 2**61, ops.shape[:2])
    is_float = ops[:, :, 0] == FLOAT
    ops[is_float, 3] = [struct.unpack("<q", struct.pack("<d", x))[0] for x in random.normal(0, 1e6, is_float.sum())]
    # Stamps run through zero in some programs.
    first = draw(st.sampled_from([1_000_000, (1 << 32) - 500, (1 << 45) + 17]))
    ops[:, :, 4] = first + np.cumsum(random.choice([0, 32, 32, 64, 4096], ops.shape[:2]), axis=1)
    return Program(
        options,
        ops,
        random.integers(0, most + 1, lanes),
        random.integers(0, 4, lanes) > 0,
        draw(st.integers(1, 3)),
        draw(st.booleans()),
        of_kernel,
    )
