"""The rows are the same on one thread and on several, whatever is wrong with the buffer."""

import math
import os

import numpy as np
import pytest

from devices.cuda.helpers import simulate
from lanescope._native import core
from lanescope.devices.cuda.formats.lanes import STEP_BACK, Outputs
from lanescope.devices.cuda.formats.ls2 import Ls2Buffer
from lanescope.devices.cuda.formats.proton import ProtonBuffer
from lanescope.trace import Flag

LANES, ROWS = 24, 9000
SLOTS = 1 + LANES * ROWS


def buffer(seed, *, is_sound):
    """Return a large buffer: nested regions in time order, or anything at all."""
    rng = np.random.default_rng(seed)
    stamp = np.cumsum(rng.integers(0, 50, (ROWS, LANES)), axis=0) * 32
    kind = np.tile(np.arange(ROWS)[:, None] % 2, (1, LANES))
    event = np.tile(np.arange(ROWS)[:, None] // 2 % 5, (1, LANES))
    if not is_sound:
        kind = rng.choice(4, (ROWS, LANES), p=[0.45, 0.44, 0.1, 0.01])
        event = rng.integers(0, 7, (ROWS, LANES))
        stamp = np.where(rng.random((ROWS, LANES)) < 0.001, rng.integers(0, 1 << 32, (ROWS, LANES)), stamp)
    lane = np.tile(np.arange(LANES), (ROWS, 1))
    words = (stamp % (1 << 32)).astype(np.uint64) << np.uint64(32)
    words |= (lane << 12 | event << 2 | kind).astype(np.uint64)
    if not is_sound:
        words[rng.random((ROWS, LANES)) < 0.01] = 0
        words[rng.random((ROWS, LANES)) < 0.001] ^= np.uint64(1 << 13)
    return np.concatenate(([np.uint64(LANES)], words.reshape(-1)))


def decode(words, slots, starts, stride):
    counts = np.empty((LANES, 2), np.uint32)
    found = ()
    if stride:
        found = core.cuda_tirx_scan(words[1:], 1, LANES, counts)
    else:
        core.cuda_tirx_count(words[1:], slots, starts, counts)
    used, begins = counts.sum(axis=0, dtype=np.int64).tolist()
    out = Outputs(LANES, slices=begins, instants=used - begins, gaps=used + LANES)
    no_cuts = np.empty(0, np.int64)
    result = core.cuda_tirx_decode(
        words[1:], 0, stride, slots, starts, counts, no_cuts, False, True, STEP_BACK, *out.arguments()
    )
    slices, instants, gaps, *_ = result
    result = (*result, *found)
    columns = [out.summary, out.used, counts]
    for table, count in ((out.slices, slices), (out.instants, instants), (out.gaps, gaps)):
        columns += [column[:count] for column in table.values()]
    return result, columns


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is only one processor to compare with")
@pytest.mark.parametrize("is_listed", [False, True])
@pytest.mark.parametrize("is_sound", [True, False])
def test_the_rows_do_not_depend_on_the_number_of_threads(is_sound, is_listed):
    words = buffer(3, is_sound=is_sound)
    slots, starts, stride = np.empty(0, np.int64), np.empty(0, np.int64), LANES
    if is_listed:
        used = np.flatnonzero(words[1:])
        lane = (words[1:][used] >> np.uint64(12) & np.uint64(0xFFFFF)).astype(np.int64)
        used, lane = used[lane < LANES], lane[lane < LANES]
        slots = used[np.argsort(lane, kind="stable")]
        starts = np.concatenate(([0], np.cumsum(np.bincount(lane, minlength=LANES)))).astype(np.int64)
        stride = 0
    several, columns = decode(words, slots, starts, stride)
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    try:
        alone, expected = decode(words, slots, starts, stride)
    finally:
        os.sched_setaffinity(0, processors)
    assert several == alone
    assert several[0] > ROWS * LANES // 3
    for column, same in zip(columns, expected, strict=True):
        assert np.array_equal(column, same)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is only one processor to compare with")
@pytest.mark.parametrize("layout", ["ls2", "proton"])
def test_other_layouts_on_several_threads(layout):
    """A few hundred thousand records on as many threads as there may be, against each lane's alone."""
    simulation = simulate(3, layout=layout, blocks=40, tiles=360, overflow=True, instants=True)
    (data, *_) = simulation.files.values()
    if layout == "ls2":
        buffer = Ls2Buffer(np.frombuffer(data[128:], "<u8"))
        whole = buffer.decode((0, 120), split=True, step_back=STEP_BACK)
        parts = [buffer.decode((lane, lane + 1), split=True, step_back=STEP_BACK) for lane in range(120)]
        for name in whole.summary:
            assert whole.summary[name].tolist() == [int(part.summary[name][0]) for part in parts]
    else:
        words = np.frombuffer(data, "<u4")
        whole = ProtonBuffer(words).decode((0, 120), split=True, step_back=STEP_BACK)
        parts = []
        for lane in range(120):
            alone = ProtonBuffer(words)
            rings = alone._rings[lane : lane + 1].copy()
            alone._rings, (alone._begins, alone._marks, *_) = rings, core.cuda_proton_count(words, rings)
            parts.append(alone.decode((0, 1), split=True, step_back=STEP_BACK))
    assert len(whole.slices) + len(whole.instants) > 100_000
    short = np.uint32(Flag.BELOW_RESOLUTION)  # one lane's stamps may have a larger step than all
    for rows in ("slices", "instants"):
        for name in getattr(whole, rows).columns:
            found = np.concatenate([getattr(part, rows)[name] for part in parts])
            same = getattr(whole, rows)[name]
            assert np.array_equal(same & ~short, found & ~short) if name == "flags" else np.array_equal(same, found)
    assert np.array_equal(whole.gaps["tick"], np.concatenate([part.gaps["tick"] for part in parts]))
    assert whole.resolution_ticks == math.gcd(*(part.resolution_ticks for part in parts if part.resolution_ticks))
