"""One cause is made to bound a run, for causes of each family, with fresh seeds, and named; balanced runs name none."""

from __future__ import annotations

import random

import pytest

import lanescope
from analysis import aie_core
from analysis.critical_path.test_late_causes import Profile, Queue
from effort import some
from lanescope.devices.cuda.simulate import sim_kernel

SEEDS = range(9_300, 9_300 + some(30, least=4))


def bounds(trace):
    return [row["cause"] for row in lanescope.explain(trace).rows() if row["topic"] == "bound"]


def simulated(folder, family, seed, **options):
    made = lanescope.simulate(family, seed=seed, **options)
    for name, content in made.files.items():
        (folder / name).write_bytes(content)
    return lanescope.open(folder / next(iter(made.files)))


ASCEND = {"mix": 0, "spmd": 0, "speculative": 0, "dummy": 0, "alloc": 0}
SIMULATED = {
    ("ascend", "work"): {**ASCEND, "tasks": 300, "aiv": 1, "producers": 0.0},
    ("ascend", "scheduler"): {"tasks": 400},
    ("cuda", "work"): {"blocks": 24, "sms": 8},
    ("cuda", "tail"): {"blocks": 140, "tiles": 4},
    ("levelzero", "launch"): {"threads": 1, "devices": 1, "subdevices": 0, "ops": 400, "pause_us": 2000},
    ("kineto", "work"): {},
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("family", "cause"), list(SIMULATED))
def test_what_bounds_simulated_runs(tmp_path, family, cause, seed):
    assert cause in bounds(simulated(tmp_path, family, seed, **SIMULATED[family, cause]))


@pytest.mark.parametrize("seed", SEEDS)
def test_cuda_loads(tmp_path, monkeypatch, seed):
    lengths = {**sim_kernel._LENGTHS, sim_kernel.LOAD_K: 4200, sim_kernel.LOAD_V: 4400}
    monkeypatch.setattr(sim_kernel, "_LENGTHS", lengths)
    assert bounds(simulated(tmp_path, "cuda", seed, blocks=8, sms=8))[0] == "load"


@pytest.mark.parametrize("seed", SEEDS)
def test_levelzero_work(tmp_path, seed):
    """Operations that are given in time, and take long."""
    run = Queue(seed)
    run.made.immediate(1, in_order=True)
    events = [run.append("MemoryFill", 1) for _ in range(30)]
    end = run.now
    for event in events:
        begin = end + run.random.randint(100, 400)
        end = run.ran(event, begin, begin + run.random.randint(20_000, 40_000))
    run.wait("zeCommandListHostSynchronize", end, hCommandList=1)
    assert bounds(run.made.open(tmp_path)) == ["work"]


def profile(seed, *, pause=0, length=(40_000, 60_000), nccl=0):
    """Return a profile of kernels that are launched in time, or only when the device has been idle for a while."""
    run = Profile(seed)
    end = run.now
    for _ in range(40):
        if pause:
            run.now = max(run.now, end) + pause
        end = run.work(7, run.random.randint(*length))
        if nccl:
            run.free[7] = end + nccl
            row = {"correlation": 0, "stream": 9, "device": 0}
            run.row("kernel", "ncclDevKernel_AllReduce", 9, end + 500, nccl - 1_000, **row)
    return run


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("cause", "options"), [("work", {}), ("launch", {"pause": 40_000}), ("communication", {"nccl": 30_000})]
)
def test_kineto(tmp_path, cause, options, seed):
    assert cause in bounds(profile(seed, **options).open(tmp_path))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("cause", "slot"), [("compute", 2), ("memory", 3), ("stream", 4), ("lock", 5), (None, 1)])
def test_aie(tmp_path, cause, slot, seed):
    """A core that does one thing most of its time; one that is idle names nothing."""
    draw = random.Random(seed)
    runs = []
    for _ in range(12):
        others = [(1 << other, draw.randint(3, 10)) for other in (2, 3, 4, 5) if other != slot]
        long = draw.randint(150, 400)
        runs += [(1, 1), *others, *([(1 << slot, long)] if cause else []), (2, 1)]
        runs.append((0, draw.randint(2, 9) if cause else long))
    assert bounds(aie_core.opened(tmp_path, runs)) == ([cause] if cause else [])


# --- runs that nothing bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_device_that_idles_for_no_recorded_reason_names_none(tmp_path, seed):
    """Kernels that were launched long before they begin, at half of the time."""
    run = Profile(seed)
    for number in range(40):
        run.work(7, run.random.randint(40_000, 60_000), after=2_000_000 + 100_000 * number)
    assert bounds(run.open(tmp_path)) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_levelzero_operations_that_were_given_in_time_name_none(tmp_path, seed):
    run = Queue(seed)
    run.made.immediate(1)
    events = [run.append("MemoryFill", 1) for _ in range(30)]
    for number, event in enumerate(events):
        begin = 100_000 + 40_000 * number
        end = run.ran(event, begin, begin + run.random.randint(15_000, 22_000))
    run.wait("zeCommandListHostSynchronize", end, hCommandList=1)
    assert bounds(run.made.open(tmp_path)) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_cuda_blocks_that_share_their_time_evenly_name_nothing_but_work(tmp_path, seed):
    """All begin together; where twelve of the sixteen have ended by chance for a tenth of the run, that is a tail."""
    trace = simulated(tmp_path, "cuda", seed, blocks=16, sms=16)
    begins, ends = {}, {}
    for row in trace.sql("select s.ts, s.dur, r.block from slices s join cuda_regions r on r.slice_id = s.id").rows():
        begins[row["block"]] = min(begins.get(row["block"], row["ts"]), row["ts"])
        ends[row["block"]] = max(ends.get(row["block"], 0), row["ts"] + row["dur"])
    last = sorted(ends.values())
    is_tailed = last[-1] - last[11] >= 0.1 * (last[-1] - min(begins.values()))
    assert len(last) == 16
    assert set(bounds(trace)) <= ({"work", "tail"} if is_tailed else {"work"})


@pytest.mark.parametrize("seed", SEEDS)
def test_aie_simulated_tiles_without_a_dominant_stall_name_none(tmp_path, seed):
    assert bounds(simulated(tmp_path, "aie", seed)) == []
