"""Sessions: launches and GPUs on one timeline, whatever allocates. The GPUs are pretended: nothing here needs one."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import lanescope
from devices.cuda.helpers import accounts, lanes
from lanescope import cuda
from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.encode import ls2
from lanescope.devices.cuda.formats.ls2 import Ls2Header
from lanescope.devices.cuda.probes.backends import choose
from lanescope.devices.cuda.probes.buffer import BufferPlan
from lanescope.devices.cuda.probes.session import PROBES, DroppedRecordsWarning, Session
from lanescope.errors import MergeError, MissingDependencyError, UsageError

EVENTS = ["load", "store"]


class Gpu:
    """A GPU whose timer is the host's clock, moved by its own offset; kernels are Python functions."""

    name, is_simulated = "pretended", False

    def __init__(self, ordinal, offset, *, has_timer=True):
        self.ordinal, self.offset, self.has_timer = ordinal, offset, has_timer

    def is_available(self):
        return nullcontext()

    def allocate(self, words, header):
        array = np.zeros(words, np.uint64)
        array[: len(header)] = header
        return array

    def fetch(self, array):
        return array.copy()

    def timer(self):
        return time.time_ns() + self.offset if self.has_timer else None

    def elapsed_ns(self, run):
        before = time.perf_counter_ns()
        run()
        return float(time.perf_counter_ns() - before)

    def describe(self):
        return f"pretended {self.ordinal}"

    def kernel(self, records, plan):
        """Return a kernel of that many records a lane."""

        def run(words):
            begin = self.timer()
            count = plan.lanes * records
            lane = np.repeat(np.arange(plan.lanes), records)
            time_ = begin + 100 + np.tile(32 * np.arange(records), plan.lanes)
            kind, zeros = np.tile(np.arange(records) % 2, plan.lanes), np.zeros(count, np.int64)
            heads = ls2.lane_heads(plan.lanes, state=3, begin_ns=begin, end_ns=begin + 100 + 32 * records)
            row = ls2.Ls2Records(lane, zeros, kind, time_, zeros, zeros.astype(np.uint64))
            setup = plan._setup(0, 0, ())
            words[layout.LS2_FILE_WORDS :] = ls2.encode(row, setup, heads)[0][layout.LS2_FILE_WORDS :]

        return run


def pretended(*gpus, **options):
    plan = BufferPlan.of(**{"events": EVENTS, "blocks": 2, "records_per_lane": 16} | options)
    return Session(plan, gpus), plan


def test_several_gpus_are_on_one_timeline():
    gpus = [Gpu(0, 5_000_000_000_000), Gpu(3, -9_000_000_000)]
    session, plan = pretended(*gpus)
    started, ended = [], []
    with session as s:
        for number in (0, 1, 0, 1):
            started.append(time.time_ns())
            gpus[number].kernel(6, plan)(s.launch(f"on {number}", gpu=number))
            ended.append(time.time_ns())
            time.sleep(0.002)
    trace = s.trace()
    assert trace.inputs["capture"].tolist() == [f"on {n} launch {k}" for k, n in enumerate((0, 1, 0, 1))]
    run = trace.tracks["input_id"][trace.slices["track_id"]]
    first = [int(trace.slices["ts"][run == n].min()) for n in range(4)]
    # A launch began between two readings of the host's clock, however long the machine took in between.
    errors = trace.anchors["error_ns"][trace.anchors.valid("error_ns")]
    allowed = 2 * int(errors.max())
    for k in range(3):
        between = first[k + 1] - first[k]
        assert started[k + 1] - ended[k] - allowed <= between <= ended[k + 1] - started[k] + allowed
    assert {row["device"] for row in trace.clocks.rows() if row["name"] == "globaltimer"} == {"GPU 0", "GPU 3"}
    assert trace.details["cuda_buffers"]["ordinal"].tolist() == [0, 3, 0, 3]
    assert trace.details["cuda_buffers"]["launch_id"].tolist() == [0, 1, 2, 3]


def test_gpus_without_timers_are_not_put_together_by_guess():
    gpus = [Gpu(0, 0, has_timer=False), Gpu(1, 0, has_timer=False)]
    session, plan = pretended(*gpus)
    with session as s:
        for number, gpu in enumerate(gpus):
            gpu.timer = lambda: time.time_ns()  # its kernels can read it, the host cannot
            gpu.kernel(4, plan)(s.launch(gpu=number))
            gpu.timer = lambda: None
    assert s.advice() == []
    with pytest.raises(MergeError, match="no common clock"):
        s.trace()


def test_headers_hold_both_readings(tmp_path):
    gpu = Gpu(2, 10**15)
    session, plan = pretended(gpu)
    with session as s:
        gpu.kernel(4, plan)(s.launch("k/1"))
    s.trace()
    (path,) = s.save(tmp_path / "new")
    header = Ls2Header.read(np.load(path))
    assert (header.ordinal, header.launch, len(header.anchors)) == (2, 0, 2)
    for ticks, unix, error in header.anchors:
        assert abs(ticks - unix - 10**15) <= error
    assert header.anchors[0][0] < header.anchors[1][0]
    assert path.name == "0000-k-1.npy"
    again = lanescope.open(path)
    assert again.slices["name"].tolist() == s.trace().slices["name"].tolist() == ["load"] * 4


def test_what_was_saved_before_the_trace_has_the_readings_too(tmp_path):
    gpu = Gpu(0, 7)
    session, plan = pretended(gpu)
    with session as s:
        gpu.kernel(2, plan)(s.launch())
    (path,) = s.save(tmp_path)
    assert len(Ls2Header.read(np.load(path)).anchors) == 2


def test_losses_of_all_launches_of_a_kernel_are_one_line():
    gpu = Gpu(0, 0)
    session, plan = pretended(gpu)

    def run():
        with session as s:
            for records, kernel in ((10, "small"), (20, "large"), (40, "large")):
                gpu.kernel(records, plan)(s.launch(kernel))

    with pytest.warns(DroppedRecordsWarning) as warned:
        run()
    text = "4 of 4 lanes overflowed in 2 launches: 56 records dropped; set records_per_lane=64"
    assert [str(w.message) for w in warned] == session.advice() == [f"large: {text}"]
    assert cuda.advice(session.trace()) == [
        "large launch 1: 2 of 2 lanes overflowed: 8 records dropped; set records_per_lane=32",
        "large launch 2: 2 of 2 lanes overflowed: 48 records dropped; set records_per_lane=64",
    ]
    assert [lane["attempted"] for lane in lanes(session.trace()).values()] == [40, 40]


def test_lanes_without_room_of_all_launches_of_a_kernel_are_one_line(tmp_path):
    gpu = Gpu(0, 5_000_000_000_000)
    session, plan = pretended(gpu)

    def kernel(words, blocks, records):
        """Run with that many blocks."""
        if records:
            gpu.kernel(records, plan)(words)
        block = np.arange(blocks)
        after = ls2.refuse(plan._setup(0, 0, ()), blocks, block, 0 * block)
        words[12:15] = ls2.header_words(after)[12:15]

    def run():
        with session as s:
            for blocks, records, name in ((2, 6, "small"), (5, 6, "large"), (3, 40, "large"), (4, 0, "lost")):
                kernel(s.launch(name), blocks, records)

    with pytest.warns(DroppedRecordsWarning) as warned:
        run()
    assert [str(w.message) for w in warned] == session.advice() == [
        "large: 2 of 2 lanes overflowed: 48 records dropped; set records_per_lane=64",
        "large: buffer holds 2 of 5 blocks: 4 lanes without records; set blocks=5",
        "lost: buffer holds 2 of 4 blocks: 2 lanes without records; set blocks=4",
    ]  # fmt: skip
    trace = session.trace()
    assert cuda.advice(trace)[1:] == [
        "large launch 1: buffer holds 2 of 5 blocks: 3 lanes without records; set blocks=5",
        "large launch 2: buffer holds 2 of 3 blocks: 1 lane without records; set blocks=3",
        "lost launch 3: buffer holds 2 of 4 blocks: 2 lanes without records; set blocks=4",
    ]
    assert trace.details["cuda_buffers"]["unallocated_lanes"].tolist() == [0, 3, 1, 2]
    # The launch of which nothing is left but its count stands where the host read the clocks, and moves no other.
    alone = [lanescope.open(path) for path in session.save(tmp_path)]
    assert len(alone[3].slices) == 0
    moved = trace.slices["ts"] - lanescope.merge(alone[:3]).slices["ts"]
    assert 0 <= moved.min() == moved.max() < 10**10


@pytest.mark.parametrize("clock", ["globaltimer", "clock64"])
def test_a_launch_of_which_only_the_count_is_left(clock):
    session, _ = pretended(Gpu(0, 0), clock=clock)
    with pytest.warns(DroppedRecordsWarning, match="3 lanes without records"), session as s:
        s.launch()[12:14] = 3, 5
    trace = session.trace()
    assert (trace.time.time_unit, len(trace.tracks)) == ("ns", 1)
    assert accounts(trace)["lane"]["lost"] == 3


def test_an_error_in_the_kernel_comes_through_and_nothing_else():
    gpu = Gpu(0, 0)
    session, plan = pretended(gpu)

    def run():
        with session as s:
            gpu.kernel(40, plan)(s.launch())
            raise KeyError("of the kernel")

    with pytest.raises(KeyError, match="of the kernel"):
        run()


def test_overhead_calls_the_kernel_in_turn_and_keeps_the_last_buffer():
    gpu = Gpu(0, 0)
    session, plan = pretended(gpu)
    calls = []

    def kernel(number, probes, *, name):
        calls.append((number, probes is None, name))
        if probes is not None:
            gpu.kernel(8, plan)(probes)

    with session as s:
        found = s.overhead(kernel, (7, PROBES), {"name": "x"}, name="k", runs=2)
        assert calls == [(7, True, "x"), (7, False, "x")] * 3
        assert s.launches == 1
        with pytest.raises(UsageError, match="invalid runs 0"):
            s.overhead(kernel, (7, PROBES), runs=0)
    assert found.slowdown == found.instrumented_ns / found.baseline_ns > 1
    assert found.instrumented_min_ns <= found.instrumented_ns
    assert (found.min_delta_ticks, found.is_simulated) == (32, False)
    (row,) = s.trace().details["cuda_overhead"].rows()
    assert (row["slowdown"], row["kernel"], row["input_id"]) == (found.slowdown, "k", 0)
    assert set(s.trace().slices["dur"].tolist()) == {32}


def test_a_trace_of_nothing_is_refused():
    session, _ = pretended(Gpu(0, 0))
    with pytest.raises(UsageError, match="no records in 0 launches"):
        session.trace()
    with pytest.raises(UsageError, match="invalid gpu 1: the session has 1"):
        session.launch(gpu=1)


@pytest.fixture
def cupy(monkeypatch):
    """As much of CuPy as sessions call, as its manual has it, on arrays of NumPy."""

    class Array(np.ndarray):
        def get(self):
            return np.array(self)

    class Device:
        current = 1

        def __init__(self, id_=None):
            self.id = Device.current if id_ is None else id_

        def __enter__(self):
            self.before, Device.current = Device.current, self.id
            return self

        def __exit__(self, *_):
            Device.current = self.before

        def synchronize(self):
            pass

    class Event:
        def record(self):
            self.at = time.perf_counter()

        def synchronize(self):
            pass

    class RawKernel:
        def __init__(self, code, name):
            assert f"void {name}(" in code
            assert "%%globaltimer" in code

        def __call__(self, grid, block, arguments):
            assert (grid, block) == ((1,), (1,))
            arguments[0][0] = time.time_ns() + 1000 * Device.current

    module = ModuleType("cupy")
    module.zeros = lambda n, dtype: np.zeros(n, dtype).view(Array)
    module.asarray = lambda a: np.array(a).view(Array)
    module.RawKernel = RawKernel
    module.cuda = SimpleNamespace(
        Device=Device,
        Event=Event,
        get_elapsed_time=lambda a, b: (b.at - a.at) * 1000,
        runtime=SimpleNamespace(getDeviceProperties=lambda n: {"name": f"pretended {n}".encode()}),
    )
    monkeypatch.setitem(sys.modules, "cupy", module)


@pytest.mark.usefixtures("cupy")
def test_cupy_allocates():
    with cuda.session(events=EVENTS, blocks=2, records_per_lane=16, backend="cupy", gpus=[0, 1]) as s:
        for number in (0, 1):
            Gpu(number, 1000 * number).kernel(4, s.plan)(s.launch(gpu=number))
        assert s.device == "pretended 0"
        assert s.overhead(lambda p: p is None or Gpu(0, 0).kernel(4, s.plan)(p), (PROBES,), runs=1).instrumented_ns > 0
    assert [row["sm"] for row in s.trace().details["cuda_lanes"].rows()] == [0] * 6
    assert choose("cupy").ordinal == 1  # the current one


def test_a_package_without_a_gpu_says_so(monkeypatch):
    module = ModuleType("cupy")

    def no_device():
        raise RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected\nand more")

    module.cuda = SimpleNamespace(Device=no_device)
    monkeypatch.setitem(sys.modules, "cupy", module)
    with pytest.raises(
        MissingDependencyError, match="cupy found no GPU: cudaErrorNoDevice: no CUDA-capable device is detected;"
    ):
        cuda.session(events=EVENTS, blocks=1, backend="cupy")
