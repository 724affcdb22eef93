"""The rows are the same on one thread and on several, whatever is wrong with the buffer."""

import math
import os

import numpy as np
import pytest

from devices.cuda.helpers import simulate
from lanescope._native import core
from lanescope.declaration import replace
from lanescope.devices.cuda.formats.lanes import STEP_BACK
from lanescope.devices.cuda.formats.ls2 import Ls2Buffer
from lanescope.devices.cuda.formats.proton import ProtonBuffer
from lanescope.devices.cuda.formats.tirx import TirxBuffer
from lanescope.trace import Flag

LANES, ROWS = 24, 9000


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
    return np.concatenate(([np.uint64(LANES | 1 << 32)], words.reshape(-1)))


def decode(words, *, is_listed):
    found = TirxBuffer.read(words)
    if is_listed:
        slots = np.flatnonzero(words[1:])
        lane = (words[1:][slots] >> np.uint64(12) & np.uint64(0xFFFFF)).astype(np.int64)
        slots, lane = slots[lane < LANES], lane[lane < LANES]
        starts = np.concatenate(([0], np.cumsum(np.bincount(lane, minlength=LANES)))).astype(np.int64)
        listed = slots[np.argsort(lane, kind="stable")]
        found = TirxBuffer(found.words, replace(found.geometry, stride=0), found.found, listed, starts)
    decoded = found.decode(split=True, step_back=STEP_BACK)
    tables = (decoded.summary, decoded.slices.columns, decoded.instants.columns, decoded.gaps)
    facts = (decoded.seen, decoded.below_resolution, decoded.resolution_ticks, decoded.slices.events())
    scan = found.found
    counted = (scan.used, scan.misplaced, scan.first_misplaced, scan.last_used)
    columns = [scan.counts, *(column for table in tables for column in table.values())]
    return (len(decoded.slices), len(decoded.instants), *facts, *counted), columns


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is only one processor to compare with")
@pytest.mark.parametrize("is_listed", [False, True])
@pytest.mark.parametrize("is_sound", [True, False])
def test_the_rows_do_not_depend_on_the_number_of_threads(is_sound, is_listed):
    words = buffer(3, is_sound=is_sound)
    several, columns = decode(words, is_listed=is_listed)
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    try:
        alone, expected = decode(words, is_listed=is_listed)
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
