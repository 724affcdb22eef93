"""Numba kernels with probes in Numba's simulator; run by ``test_frameworks.py``."""

from __future__ import annotations

import threading
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import cuda

from devices.cuda.helpers import lanes, spans, stats
from devices.cuda.probes.frameworks.played import programs
from effort import some
from lanescope import cuda as ls_cuda
from lanescope.cuda import PROBES, DroppedRecordsWarning, session
from lanescope.cuda import numba_probes as ls
from lanescope.devices.cuda.probes import sim_clock

#: Threads of a group; the second one leads.
WIDTH = 2


def test_it_is_the_simulator():
    assert ls.SIMULATED


@cuda.jit
def play(ops, values, counts, finished, probes, every, fence):
    group = cuda.threadIdx.x // WIDTH
    number = cuda.blockIdx.x * (cuda.blockDim.x // WIDTH) + group
    lane = ls.init(probes, group, cuda.threadIdx.x % WIDTH == 1, every, fence)
    for k in range(counts[number]):
        kind, event, token, payload = ops[number, k, 0], ops[number, k, 1], ops[number, k, 2], ops[number, k, 3]
        if kind == 0:
            lane = ls.begin(lane, event, token, payload)
        elif kind == 1:
            lane = ls.end(lane, event, token, payload)
        elif kind == 2:
            lane = ls.instant(lane, event, token, payload)
        elif kind == 3:
            lane = ls.value(lane, event, payload)
        elif kind == 4:
            lane = ls.async_begin(lane, event, token, payload)
        elif kind == 5:
            lane = ls.async_end(lane, event, token, payload)
        elif kind == 6:
            lane = ls.flow_out(lane, event, token, payload)
        elif kind == 7:
            lane = ls.flow_in(lane, event, token, payload)
        else:
            lane = ls.value_float(lane, event, values[number, k])
    if finished[number]:
        ls.finalize(lane)


class LaneClocks:
    """A clock for each thread of the simulated grid, which shows what it is told."""

    def __init__(self, program):
        readings = [program.readings(lane) for lane in range(len(program.ops))]
        self.groups = program.groups
        self.left = [iter(times) for times in readings]

    def __call__(self):
        thread = threading.current_thread()
        return next(self.left[thread.blockIdx.x * self.groups + thread.threadIdx.x // WIDTH])


@settings(max_examples=some(60))
@given(programs(groups=st.integers(1, 3)))
def test_a_kernel_writes_what_the_encoder_writes(program):
    words = program.plan.new()
    values = program.ops[:, :, 3].copy().view(np.float64)
    with sim_clock.using(LaneClocks(program)):
        play[program.blocks, WIDTH * program.groups](
            program.ops, values, program.counts, program.finished, words, program.every, program.fence
        )
    expected = program.expected()
    assert words.tolist() == expected.tolist()
    program.plan.decode(words)  # whose accounting must add up


@settings(max_examples=some(20))
@given(programs(groups=st.just(2)))
def test_nothing_is_written_beyond_what_the_header_says(program):
    """A kernel with more blocks and groups than the buffer has lanes leaves the words of others alone."""
    plan = program.plan
    guard = np.uint64(0xDEAD)
    words = np.concatenate([plan.new(), np.full(1000, guard)])
    kernel_blocks = 2 * plan.blocks
    ops, values, counts, finished = (
        np.resize(a, (kernel_blocks * 6, *a.shape[1:]))
        for a in (program.ops, program.ops[:, :, 3].copy().view(np.float64), program.counts, program.finished)
    )
    play[kernel_blocks, 3 * WIDTH * 2](ops, values, counts, finished, words, program.every, program.fence)
    assert (words[plan.words :] == guard).all()
    sampled = -(-kernel_blocks // program.every)
    inside = -(-plan.blocks // program.every)
    required_blocks = kernel_blocks if sampled > inside else 0
    assert words[12:16].tolist() == [sampled * 6 - inside * 2, required_blocks, 6, 0]
    used = words[16 : plan.words].reshape(plan.lanes, -1)[:, 0] > 0
    blocks = np.arange(plan.lanes) // 2
    assert used.tolist() == (blocks % program.every == 0).tolist()


@cuda.jit
def one_region(group, probes):
    lane = ls.begin(ls.init(probes, group=group), 0, payload=7)
    ls.finalize(ls.end(lane, 0))


#: Words of the header that no host writes, the group, how many words the array lacks, and what is counted.
BROKEN = {
    "no header": ({0: 0}, 0, 0, [0, 0, 0]),
    "not ours": ({0: 1}, 0, 0, [0, 0, 0]),
    "first version": ({1: 1 | 1 << 8}, 1, 0, [0, 0, 0]),
    "no room": ({3: 0}, 0, 0, [0, 0, 0]),
    "no room in a ring": ({1: 4 | 1 << 8 | 1 << 24, 3: 0}, 0, 0, [0, 0, 0]),
    "no power of two": ({3: 3}, 0, 0, [0, 0, 0]),
    "cut": ({}, 0, 1, [1, 0, 0]),
    "cut in the header": ({}, 0, 64 + 8 + 1, [0, 0, 0]),
    "group too large": ({}, 1, 0, [1, 0, 2]),
    "group below 0": ({}, -1, 0, [1, 0, 0]),
}


@pytest.mark.parametrize(("header", "group", "lacks", "counted"), BROKEN.values(), ids=BROKEN)
def test_a_buffer_that_cannot_be_is_left_alone(header, group, lacks, counted):
    words = ls_cuda.session(events=["a"], blocks=1).plan.new()
    words = words[: len(words) - lacks]
    for at, word in header.items():
        words[at] = word
    before = words.copy()
    before[12:15] += np.array(counted, np.uint64)[: len(words) - 12]
    one_region[1, 1](group, words)
    assert (words == before).all()


def test_the_first_thread_is_the_default_leader():
    with session(events=["a"], blocks=2) as s:
        one_region[2, (3, 2, 2)](0, s.launch())
    found = lanes(s.trace())
    assert [(lane["records"], lane["unfinished_regions"], lane["clock_reversals"]) for lane in found.values()] == [
        (2, 0, 0)
    ] * 2


EVENTS = ["load", "compute", "wait", "copy", "tile", "depth", "flight"]
LOAD, COMPUTE, WAIT, COPY, TILE, DEPTH, FLIGHT = range(7)
_times = defaultdict(int)


def work(ns):
    """Let time pass for one thread."""
    thread = threading.current_thread()
    _times[thread.blockIdx.x, thread.threadIdx.x] += ns


def own_time():
    thread = threading.current_thread()
    if not hasattr(thread, "blockIdx"):
        return 1_000_000  # the host
    return 1_000_000 + 10_000 * thread.blockIdx.x + _times[thread.blockIdx.x, thread.threadIdx.x]


@cuda.jit
def pipeline(x, out, tiles, probes):
    """Two groups of two threads: the first loads, the second computes."""
    shared = cuda.shared.array(2, np.float32)
    group = cuda.threadIdx.x // 2
    lane = ls.init(probes, group, cuda.threadIdx.x % 2 == 0)
    for tile in range(tiles):
        if group == 0:
            lane = ls.async_begin(lane, COPY, tile + 1)
            lane = ls.begin(lane, LOAD, 0, 1000 + tile)
            shared[cuda.threadIdx.x] = x[tile * 2 + cuda.threadIdx.x]
            work(320)
            ls.consume(lane, shared[cuda.threadIdx.x])
            lane = ls.end(lane, LOAD)
            work(32)
            lane = ls.async_end(lane, COPY, tile + 1)
            lane = ls.flow_out(lane, TILE, tile + 1)
            lane = ls.value(lane, DEPTH, tile)
            lane = ls.async_begin(lane, FLIGHT, tile + 1)
            cuda.syncthreads()
        else:
            lane = ls.begin(lane, WAIT)
            cuda.syncthreads()
            work(400)
            lane = ls.end(lane, WAIT)
            lane = ls.flow_in(lane, TILE, tile + 1)
            lane = ls.async_end(lane, FLIGHT, tile + 1)
            lane = ls.begin(lane, COMPUTE)
            out[tile * 2 + cuda.threadIdx.x - 2] = shared[cuda.threadIdx.x - 2] * 2
            work(640 * (tile + 1))
            lane = ls.end(lane, COMPUTE)
        cuda.syncthreads()
    ls.finalize(lane)


@pytest.mark.parametrize("payload", [False, True])
def test_a_pipeline_decodes_to_its_regions(payload):
    _times.clear()
    x, out = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    options = {"groups": ["producer", "consumer"], "records_per_lane": 64, "payload": payload}
    with sim_clock.using(own_time), session(events=EVENTS, blocks=3, **options) as s:
        pipeline[3, 4](x, out, 3, s.launch("pipeline"))
    assert (out == 2 * x).all()
    trace = s.trace()
    found = [(*span[:4], span[6]) for span in spans(trace)]
    for block in range(3):
        mine = sorted(
            (group, name, dur) for b, group, _, name, dur in found if b == block and name not in ("copy", "flight")
        )
        assert mine == sorted(
            [(0, "load", 320)] * 3 + [(1, "wait", 400)] * 3 + [(1, "compute", 640 * k) for k in (1, 2, 3)]
        )
    copies = [row for row in trace.slices.rows() if row["category"] == "async"]
    assert [row["dur"] for row in copies if row["name"] == "copy"] == [352] * 9
    # The producer begins it, the consumer ends it.
    flights = [(row["block"], row["group"], row["end_group"]) for row in trace.details["cuda_regions"].rows()
               if row["event_id"] == FLIGHT]  # fmt: skip
    assert flights == [(block, 0, 1) for block in range(3) for _ in range(3)]
    assert [row["dur"] for row in copies if row["name"] == "flight"] == [48, 736, 2064] * 3
    assert len(trace.flows) == 9 + 9
    assert sorted(trace.counters["value"].tolist()) == [0.0] * 3 + [1.0] * 3 + [2.0] * 3
    loads = [row["payload"] for row in trace.details["cuda_regions"].rows() if row["event_id"] == LOAD]
    assert loads == ([1000, 1001, 1002] * 3 if payload else [None] * 9)
    assert {row["warp"] for row in lanes(trace).values()} == {0}
    assert set(trace.tracks["name"].tolist()) >= {"producer", "consumer"}
    assert not trace.accounting["lost"].any()


def test_without_probes_nothing_is_read_or_written():
    def fail():
        raise AssertionError("the timer was read")

    x, out = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    with sim_clock.using(fail):
        pipeline[1, 4](x, out, 3, None)
    assert (out == 2 * x).all()


@cuda.jit
def burst(n, probes):
    lane = ls.init(probes, 0, True, 2)
    for _ in range(n):
        lane = ls.begin(lane, 0)
        lane = ls.end(lane, 0)
    ls.finalize(lane)


def test_a_session_counts_launches_and_says_what_was_lost(tmp_path):
    s = session(events=["e"], blocks=4, records_per_lane=8)

    def run():
        with s:
            for n in (3, 4, 5, 9):
                burst[4, 1](n, s.launch("burst"))
            s.launch("unused")

    with pytest.warns(DroppedRecordsWarning) as warned:
        run()
    assert [str(w.message) for w in warned] == s.advice()
    assert s.advice() == [
        # Lanes of the two blocks that were sampled: 10 and 18 records, and room for 8.
        "burst: 4 of 4 lanes overflowed in 2 launches: 24 records dropped; set records_per_lane=32",
        "unused: no records in 1 launch; pass the buffer to the kernel and call init, within 4 blocks of 1 groups",
    ]
    assert s.launches == 5
    trace = s.trace()
    assert trace.inputs["capture"].tolist() == [f"burst launch {n}" for n in range(4)]
    assert len(trace.slices) == 2 * (3 + 4 + 4 + 4)
    assert stats(trace)["cuda_empty_lane"] == 2 * 4  # blocks 1 and 3 of four launches were not sampled
    # The launches follow each other on one timeline.
    run = np.array([trace.tracks["input_id"][track] for track in trace.slices["track_id"]])
    firsts = [int(trace.slices["ts"][run == n].min()) for n in range(4)]
    lasts = [int(trace.slices["ts"][run == n].max()) for n in range(4)]
    assert all(last < first for last, first in zip(lasts, firsts[1:], strict=False))
    host = trace.clocks["id"][trace.clocks["name"] == "unix"]
    assert np.isin(trace.anchors["clock_id"], host).sum() == 2 * 4
    import lanescope

    again = lanescope.merge([lanescope.open(path) for path in s.save(tmp_path)[:4]])
    assert again.slices["ts"].tolist() == trace.slices["ts"].tolist()
    assert again.slices["name"].tolist() == ["e"] * len(trace.slices)


@cuda.jit
def brief(probes):
    lane = ls.init(probes, cuda.threadIdx.x, True)
    ls.finalize(ls.instant(lane, 0))


def test_a_session_says_when_the_grid_or_the_block_was_larger():
    s = session(events=["e"], blocks=(2, 2), groups=2)

    def run():
        with s:
            brief[(4, 2), 3](s.launch("brief"))
            brief[(2, 2), 2](s.launch("fits"))

    with pytest.warns(DroppedRecordsWarning) as warned:
        run()
    assert [str(w.message) for w in warned] == [
        # Four blocks of three lanes, and one lane of each of the four blocks that are there.
        "brief: buffer holds 4 of 8 blocks, buffer holds 2 of 3 groups: "
        "16 lanes without records; set blocks=8, groups=3"
    ]
    assert stats(s.trace())["cuda_unallocated_lane"] == 16
    assert len(s.trace().instants) == 2 * 4 * 2


def test_buffers_are_fetched_when_they_take_too_much_of_the_gpu():
    with session(events=["e"], blocks=4, records_per_lane=8, device_bytes=2048) as s:
        for n in range(9):
            burst[4, 1](n % 3, s.launch())
            assert sum(launch.array is not None for launch in s._launches) <= 2048 // (8 * s.plan.words)
    assert len(s.trace().slices) == 2 * (0 + 1 + 2) * 3


def test_the_ring_keeps_the_newest():
    with session(events=["e"], blocks=1, records_per_lane=8, ring=True) as s:
        burst[1, 1](20, s.launch())
        trace = s.trace()
        (advice,) = s.advice()
        assert "32 records dropped; set records_per_lane=64" in advice
        s._launches.clear()  # so that leaving it has nothing to warn of
    (lane,) = lanes(trace).values()
    assert (lane["attempted"], lane["dropped"], lane["records"]) == (40, 32, 8)


def test_overhead_is_measured_and_kept():
    with session(events=["e"], blocks=4, records_per_lane=64) as s:
        found = s.overhead(burst[4, 1], (10, PROBES), name="burst", runs=3)
        burst[4, 1](1, s.launch("burst"))
    # Two of four blocks read the clock 2 + 20 + 2 times; without probes only the host reads it.
    tick = sim_clock.TICK_NS
    assert (found.instrumented_ns, found.baseline_ns, found.slowdown) == ((2 * 24 + 1) * tick, tick, 49.0)
    assert (found.min_delta_ticks, found.resolution_ticks, found.is_simulated) == (tick, tick, True)
    assert "x 49.0000" in str(found)
    assert "simulated" in str(found)
    trace = s.trace()
    (row,) = trace.details["cuda_overhead"].rows()
    assert (row["kernel"], row["runs"], row["slowdown"], row["is_simulated"]) == ("burst", 3, 49.0, True)
    assert trace.inputs["capture"][row["input_id"]] == "burst launch 0"
    assert s.launches == 2
    # Nothing was taken off: two stamps in a row are a tick apart, as the clock had it.
    assert set(trace.slices["dur"].tolist()) == {tick}


def test_overhead_needs_a_place_for_the_buffer():
    from lanescope.errors import UsageError

    with session(events=["e"], blocks=4) as s, pytest.raises(UsageError, match="PROBES"):
        s.overhead(burst[4, 1], (10, None))


def test_buffers_of_tirx_are_read_in_the_same_session():
    plan_words = 1 + 2 * 3

    @cuda.jit
    def tirx(words):
        """What TIRx's probes do: the header from block 0, records a stride apart, a finalize."""
        block = cuda.blockIdx.x
        if block == 0:
            words[0] = np.uint64(1 << 32 | cuda.gridDim.x)
        for k, kind in enumerate((0, 1, 3)):
            words[1 + block + k * cuda.gridDim.x] = np.uint64((5000 + 100 * block + 64 * k) << 32 | block << 12 | kind)

    with session(events=["load"], blocks=2, records_per_lane=2, layout="tirx") as s:
        assert (s.plan.words, s.plan.stride) == (plan_words, 2)
        tirx[2, 1](s.launch("ours"))
        theirs = np.zeros(plan_words + 50, np.uint64)
        tirx[2, 1](theirs)
        s.add(theirs, "theirs")
    trace = s.trace()
    assert trace.slices["dur"].tolist() == [64] * 4
    assert trace.inputs["capture"].tolist() == ["ours launch 0", "theirs launch 1"]
