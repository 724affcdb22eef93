"""Triton kernels with probes in Triton's interpreter; run by ``test_frameworks.py``."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.runtime import interpreter

from devices.cuda.helpers import lanes, spans
from devices.cuda.probes.frameworks.played import programs
from effort import some
from lanescope.cuda import PROBES, DroppedRecordsWarning, session
from lanescope.cuda import triton_probes as ls
from lanescope.devices.cuda.probes import sim_clock
from lanescope.devices.cuda.probes.triton_interp import HostArray
from lanescope.errors import MissingDependencyError


@triton.jit
def play(ops, values, counts, finished, probes, n, every, leader, FENCE: tl.constexpr):
    number = tl.program_id(0)
    lane = ls.init(probes, 0, leader, every, FENCE)
    for k in range(tl.load(counts + number)):
        at = ops + (number * n + k) * 5
        kind, event, token, payload = tl.load(at), tl.load(at + 1), tl.load(at + 2), tl.load(at + 3)
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
            lane = ls.value(lane, event, tl.load(values + number * n + k))
    if tl.load(finished + number):
        ls.finalize(lane)


def run(program, words, *, leader=True, clock=None):
    """Play a program; programs of a grid run one after the other, so their clock is a list."""
    n = program.ops.shape[1]
    readings = []
    for lane in range(len(program.ops)):
        times = program.readings(lane)
        readings += times if program.finished[lane] else times[:-2]
    values = program.ops[:, :, 3].copy().view(np.float64)
    arrays = [HostArray(a) for a in (program.ops, values, program.counts, program.finished, words)]
    with ls.interpreted(), sim_clock.using(clock or iter(readings).__next__):
        fence = "cta" if program.fence else "none"
        play[(program.blocks,)](*arrays, n, program.every, leader, FENCE=fence)


@settings(max_examples=some(12))
@given(programs(groups=st.just(1)))
def test_a_kernel_writes_what_the_encoder_writes(program):
    words = program.plan.new()
    run(program, words)
    assert words.tolist() == program.expected().tolist()
    program.plan.decode(words)


@settings(max_examples=some(4))
@given(programs(groups=st.just(1)))
def test_nothing_is_written_beyond_what_the_header_says(program):
    plan = program.plan
    guard = np.uint64(0xDEAD)
    words = np.concatenate([plan.new(), np.full(1000, guard)])
    program.ops, program.counts, program.finished = (
        np.repeat(a, 4, axis=0) for a in (program.ops, program.counts, program.finished)
    )
    run(program, words, clock=lambda: 1_000_000)
    assert (words[plan.words :] == guard).all()
    sampled = np.arange(program.blocks) % program.every == 0
    used = np.zeros(program.blocks, np.bool_)
    used[: plan.blocks] = words[16 : plan.words].reshape(plan.lanes, -1)[: program.blocks, 0] > 0
    has_room = np.arange(program.blocks) < plan.blocks
    assert used.tolist() == (sampled & has_room).tolist()
    refused = np.count_nonzero(sampled & ~has_room)
    assert words[12:16].tolist() == [refused, program.blocks if refused else 0, 0, 0]


def test_a_program_that_is_no_leader_and_a_buffer_without_header_are_left_alone():
    plan = session(events=["a"], blocks=2, backend="triton").plan

    @triton.jit
    def kernel(probes, leader):
        lane = ls.begin(ls.init(probes, 0, leader), 0)
        lane = ls.value(ls.end(lane, 0), 0, 5)
        ls.finalize(lane)

    ring = plan.new()
    ring[1], ring[3] = 4 | 1 << 8 | 1 << 24, 0
    odd = plan.new()
    odd[3] = 3
    first = plan.new()
    first[1] = 1 | 1 << 8
    bare = np.zeros(plan.words, np.uint64)
    for words, leader in ((plan.new(), False), (bare, True), (ring, True), (odd, True), (first, True)):
        before = words.copy()
        with ls.interpreted():
            kernel[(3,)](HostArray(words), leader)
        assert (words == before).all()
    with ls.interpreted():
        kernel[(2,)](HostArray(words := plan.new()), True)
    assert words[16:].any()


EVENTS = ["load", "compute", "tile", "copy", "sum", "mean"]
LOAD, COMPUTE, TILE, COPY, SUM, MEAN = (tl.constexpr(n) for n in range(6))


@triton.jit
def scale(x, out, probes, TILES: tl.constexpr, BLOCK: tl.constexpr):
    """Load, compute, store, tile after tile; the copy of a tile is in flight over the next one's load."""
    lane = ls.init(probes)
    first = tl.program_id(0) * TILES * BLOCK
    for tile in range(TILES):
        at = first + tile * BLOCK + tl.arange(0, BLOCK)
        lane = ls.begin(lane, TILE, tile + 1)
        lane = ls.async_begin(lane, COPY, tile + 1)
        lane = ls.begin(lane, LOAD)
        value = tl.load(x + at)
        ls.consume(lane, value)
        lane = ls.end(lane, LOAD)
        if tile > 0:
            lane = ls.async_end(lane, COPY, tile)
        lane = ls.begin(lane, COMPUTE)
        total = tl.sum(value, axis=0)
        tl.store(out + at, value * 2)
        lane = ls.end(lane, COMPUTE)
        lane = ls.value(lane, SUM, total.to(tl.int32))
        lane = ls.value(lane, MEAN, total / BLOCK)
        lane = ls.end(lane, TILE)
    lane = ls.async_end(lane, COPY, TILES)
    ls.finalize(lane)


@pytest.mark.parametrize("payload", [False, True])
def test_a_kernel_decodes_to_its_regions(payload):
    x, out = np.arange(96, dtype=np.float32), np.zeros(96, np.float32)
    with session(events=EVENTS, blocks=3, records_per_lane=64, payload=payload) as s:
        scale[(3,)](HostArray(x), HostArray(out), s.launch("scale"), TILES=2, BLOCK=16)
    assert (out == 2 * x).all()
    trace = s.trace()
    assert "Triton's interpreter" in s.device
    # The clock goes on by a tick with every reading.
    tick = sim_clock.TICK_NS
    found = sorted((block, name, dur // tick) for block, _, _, name, _, _, dur, _ in spans(trace))
    # What a program does, begins and ends by the first letter of what they mark, samples as a point.
    order = ["t0", "c0", "l", "l", "m", "m", ".", ".", "t0", "t1", "c1", "l", "l", "c0", "m", "m", ".", ".", "t1", "c1"]
    at = {word: [n for n, other in enumerate(order) if other == word] for word in order}
    lengths = [("tile", at["t0"]), ("tile", at["t1"]), ("copy", at["c0"]), ("copy", at["c1"])]
    one = sorted([("load", 1)] * 2 + [("compute", 1)] * 2 + [(name, last - first) for name, (first, last) in lengths])
    for block in range(3):
        assert [row[1:] for row in found if row[0] == block] == one
    values = dict(zip(trace.tracks["id"].tolist(), trace.tracks["name"].tolist(), strict=True))
    sums = [row["value"] for row in trace.counters.rows() if "sum" in values[row["track_id"]]]
    means = [row["value"] for row in trace.counters.rows() if "mean" in values[row["track_id"]]]
    expected = x.reshape(6, 16)
    assert sorted(sums) == sorted(expected.sum(1).tolist())
    assert sorted(means) == sorted(expected.mean(1).tolist())
    assert [lane["sm"] for lane in lanes(trace).values()] == [0, 1, 2]


@triton.jit
def hand_over(x, out, probes, TILES: tl.constexpr, BLOCK: tl.constexpr):
    """One lane issues the copies, two ahead; another one of the block ends them where they are awaited."""
    loads = ls.init(probes, group=0)
    math = ls.init(probes, group=1)
    first = tl.program_id(0) * TILES * BLOCK
    for tile in range(TILES + 2):
        if tile < TILES:
            loads = ls.async_begin(loads, COPY, tile % 2 + 1)
        if tile >= 2:
            at = first + (tile - 2) * BLOCK + tl.arange(0, BLOCK)
            value = tl.load(x + at)
            ls.consume(math, value)
            math = ls.async_end(math, COPY, tile % 2 + 1)
            tl.store(out + at, value * 2)
    ls.finalize(loads)
    ls.finalize(math)


def test_a_region_ends_in_another_lane_by_the_token_of_the_caller():
    x, out = np.arange(96, dtype=np.float32), np.zeros(96, np.float32)
    with session(events=EVENTS, blocks=3, groups=["load", "math"], records_per_lane=16) as s:
        hand_over[(3,)](HostArray(x), HostArray(out), s.launch("hand over"), TILES=2, BLOCK=16)
    trace = s.trace()
    rows = [(of["block"], of["group"], of["end_group"], of["token"]) for of in trace.details["cuda_regions"].rows()]
    assert rows == [(block, 0, 1, token) for block in range(3) for token in (1, 2)]
    # Begun at once, ended one after the other.
    assert [row["dur"] // sim_clock.TICK_NS for row in trace.slices.rows()] == [2, 2] * 3
    assert len(trace.flows) == 6
    assert not [row["name"] for row in trace.stats.rows() if row["name"].startswith("cuda_") and "async" in row["name"]]


def test_without_probes_nothing_is_read():
    def fail():
        raise AssertionError("the timer was read")

    x, out = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    with sim_clock.using(fail):  # and without the interpreter's assembly
        scale[(1,)](HostArray(x), HostArray(out), None, TILES=2, BLOCK=16)
    assert (out == 2 * x).all()


def test_overhead_and_losses():
    x, out = np.arange(96, dtype=np.float32), np.zeros(96, np.float32)
    s = session(events=EVENTS, blocks=3, records_per_lane=8)
    kwargs = {"probes": PROBES, "TILES": 2, "BLOCK": 16}

    def measured():
        with s:
            return s.overhead(scale[(3,)], (HostArray(x), HostArray(out)), kwargs, name="scale", runs=2)

    with pytest.warns(DroppedRecordsWarning, match="set records_per_lane=32"):
        found = measured()
    # 4 + 20 readings a program, and one of the host
    assert found.instrumented_ns / sim_clock.TICK_NS == 3 * 24 + 1
    assert found.baseline_ns == sim_clock.TICK_NS
    assert s.trace().details["cuda_overhead"]["is_simulated"].tolist() == [True]


def test_the_matrix_product_of_make_gpu():
    from devices.cuda.probes.frameworks.benchmark import triton_matmul

    matmul = triton_matmul()
    random = np.random.default_rng(1)
    a, b = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((32, 64), (64, 48)))
    c = np.zeros((32, 48), np.float32)
    grid = matmul.grid_of(32, 48, 16)
    with session(events=matmul.EVENTS, blocks=grid, records_per_lane=matmul.records_of(64, 16)) as s:
        arrays = (HostArray(a), HostArray(b), HostArray(c))
        matmul.matmul[grid](*arrays, s.launch("matmul"), n=48, depth=64, TILE=16, STEP=16)
    assert (c == a @ b).all()

    def examined(count, steps):
        checks = {}
        found = matmul.examine(
            s.trace(), lambda name, *, holds, seen: checks.update({name: (holds, seen)}), programs=count, steps=steps
        )
        return found, [name for name, (holds, _) in checks.items() if not holds]

    every = "triton: every program has every region"
    medians = dict.fromkeys(("median_load_ns", "median_dot_ns", "median_store_ns"), sim_clock.TICK_NS)
    assert examined(6, 4) == (medians, [])
    assert examined(6, 5)[1] == examined(7, 4)[1] == [every]
    assert s.advice() == []


def test_an_interpreter_without_the_hook_says_so(monkeypatch):
    monkeypatch.delattr(interpreter.InterpreterBuilder, "create_inline_asm")
    with pytest.raises(MissingDependencyError, match="unsupported interpreter of Triton"), ls.interpreted():
        pass
