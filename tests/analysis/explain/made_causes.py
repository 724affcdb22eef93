"""Captures of runs that one cause bounds, for each cause and family that can have it; reasons for the others.

The causes are made before the simulators write bytes: in the graph that a chip runs and in how long its tasks take,
in the stamps of a kernel, in the calls of a program. ``MADE`` has for each pair of family and cause what makes its
trace from a folder and a seed.
"""

from __future__ import annotations

import random
from functools import partial
from unittest import mock

import numpy as np

import lanescope
from analysis import aie_core
from analysis.critical_path.test_late_causes import Profile, Queue
from lanescope.devices.ascend import simulate as ascend_simulator
from lanescope.devices.ascend.simulate import chip
from lanescope.devices.ascend.simulate.workload import AIC, Subtasks
from lanescope.devices.cuda.simulate import sim_kernel, sim_ls2
from lanescope.families.bounds import CAUSES, COMPUTE, DEPENDENCY, LOCK, MEMORY, SCHEDULER, STREAM

FAMILIES = ("aie", "ascend", "chrome", "cuda", "kineto", "levelzero", "perfetto")
#: What schedulers and cores record: of Ascend and of AIE.
SCHEDULING, STALLS = (SCHEDULER, DEPENDENCY), (COMPUTE, MEMORY, STREAM, LOCK)
#: All causes: those that rules find in every family, and those that families report.
ALL = ("work", "lane", "launch", "load", "imbalance", "tail", *CAUSES)


def simulated(folder, family, seed, **options):
    """Simulate a capture; return its trace."""
    made = lanescope.simulate(family, seed=seed, **options)
    for name, content in made.files.items():
        (folder / name).write_bytes(content)
    return lanescope.open(folder / next(iter(made.files)))


# --- Ascend: what depends on what, and how long it takes -------------------------------------------------------------

PLAIN = {"mix": 0, "spmd": 0, "speculative": 0, "dummy": 0, "alloc": 0, "predicated": 0, "producers": 0.0}
PLAIN |= {"aic": 4, "aiv": 8, "threads": 3}


class Lengths:
    """The random numbers of a chip whose tasks take as long as they are told, and whose submits take longer."""

    def __init__(self, random, weights, submit):
        self.random, self.weights, self.submit = random, weights, submit

    def lognormal(self, mean, sigma, size):
        """Return the same typical length for all functions, and the factor of each row."""
        drawn = self.random.lognormal(0, 0.05, size)
        return drawn * self.weights if size == len(self.weights) else np.full(size, np.exp(mean))

    def integers(self, low, high, size):
        """Return random integers; those from 10 to 50 are the lengths of submits."""
        is_submit = self.submit and (low, high) == (10, 50)
        return self.random.integers(low + self.submit * is_submit, high + self.submit * is_submit, size)

    def __getattr__(self, name):
        return getattr(self.random, name)


def on_chip(folder, seed, shape, *, submit=0, **options):
    """Run tasks of one subtask each on a chip.

    Args:
        folder: where the capture is written.
        seed: of the simulation.
        shape: from the number of rows and of cores of each engine to the wave of each row, the edges as pairs of rows
            (producers and consumers), and how long each takes, in typical lengths.
        submit: ticks that the orchestrator takes for each task; 0: as it is drawn.
        options: of the simulator.
    """
    plain, run = ascend_simulator.build, chip.run
    weights = []

    def build(scenario, random):
        tasks, rows = plain(scenario, random)
        wave, (pred, succ), weight = shape(len(tasks), rows.engine, scenario)
        counts = np.bincount(wave, minlength=int(wave.max()) + 1)
        # Among the rows of a wave and engine.
        ordinal = chip.rank(wave * 2 + (rows.engine == AIC))
        order = np.argsort(wave, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(counts)])
        weights.append(weight[order])
        tasks.pred, tasks.succ, tasks.first_wave = pred, succ, wave
        columns = (rows.task, rows.engine, rows.function, ordinal, rows.block, rows.half)
        return tasks, Subtasks(*(column[order] for column in columns), bounds)

    def slowly(scenario, tasks, rows, random):
        return run(scenario, tasks, rows, Lengths(random, weights[-1], submit))

    with mock.patch.object(ascend_simulator, "build", build), mock.patch.object(chip, "run", slowly):
        return simulated(folder, "ascend", seed, **{**PLAIN, "tasks": 300, **options})


NO_EDGES = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def full_waves(engine, scenario):
    """Return the wave of each row: each has as many of an engine as it has cores."""
    place = chip.rank(engine.astype(np.int64))
    return place // np.where(engine == AIC, scenario.aic, scenario.aiv)


def alike(count, engine, scenario):
    """Return tasks that wait for nothing and take equally long."""
    return full_waves(engine, scenario), NO_EDGES, np.full(count, 8.0)


def short_tasks(count, engine, scenario):
    """Return tasks that wait for nothing and take less time than an iteration of the schedulers."""
    wave, edges, weight = alike(count, engine, scenario)
    return wave, edges, weight / 80


def short_rounds(count, engine, scenario):
    """Return rounds with a barrier whose tasks take less time than an iteration of the schedulers."""
    wave, edges, weight = even_rounds(count, engine, scenario)
    return wave, edges, weight / 400


def even_rounds(count, engine, scenario):
    """Return rounds with a barrier: all tasks of a round wait for all of the round before."""
    wave = full_waves(engine, scenario)
    pairs = [
        np.array(np.meshgrid(np.flatnonzero(wave == number), np.flatnonzero(wave == number + 1))).reshape(2, -1)
        for number in range(int(wave.max()))
    ]
    pred, succ = np.concatenate(pairs, axis=1)
    return wave, (pred, succ), np.full(count, 40.0)


def rounds_by_chance(count, engine, scenario):
    """Return rounds with a barrier whose tasks take different times: cores wait for a quarter of the time."""
    wave, edges, weight = even_rounds(count, engine, scenario)
    whole = min(int(wave[engine == AIC].max()), int(wave[engine != AIC].max()))  # then one engine has no more to do
    weight[wave >= whole] = 0.05
    return wave, edges, np.random.Generator(np.random.PCG64(count)).uniform(0.4, 1, count) * weight


def one_after_the_other(count, engine, scenario):
    """Return a chain: each task waits for the one before it."""
    return np.arange(count), (np.arange(count - 1), np.arange(1, count)), np.full(count, 4.0)


def one_long_task(count, engine, scenario):
    """Return tasks that take equally long, but for the last."""
    wave, edges, weight = alike(count, engine, scenario)
    longest = int(np.flatnonzero(wave == wave.max())[0])
    weight[longest] *= 10
    return wave, edges, weight


def one_heavy_core(count, engine, scenario):
    """Return rounds with a barrier: in each, one task takes five times as long, and all of the next wait for it.

    It is the last for a vector core, which gets the core that was free last, so that it is always the same.
    """
    wave = full_waves(engine, scenario)
    ordinal = chip.rank(wave * 2 + (engine == AIC))
    is_heavy = (engine != AIC) & (ordinal == scenario.aiv - 1)
    heavy_of = np.full(int(wave.max()) + 1, -1)
    heavy_of[wave[is_heavy]] = np.flatnonzero(is_heavy)
    succ = np.flatnonzero(wave > 0)
    # Behind the last of them all wait for that one: a task without a producer would be ready from the start.
    pred = np.maximum.accumulate(heavy_of)[wave[succ] - 1]
    return wave, (pred[pred >= 0], succ[pred >= 0]), np.where(is_heavy, 40.0, 8.0)


# --- CUDA: when the regions of a kernel begin and end ----------------------------------------------------------------


def slow_loads(folder, seed):
    """Simulate a kernel whose loads take ten times as long as usual."""
    lengths = {**sim_kernel._LENGTHS, sim_kernel.LOAD_K: 4200, sim_kernel.LOAD_V: 4400}
    with mock.patch.object(sim_kernel, "_LENGTHS", lengths):
        return simulated(folder, "cuda", seed, blocks=8, sms=8)


def one_heavy_sm(folder, seed):
    """Simulate blocks that meet after each tile; on one SM a tile takes three times as long as on the others."""
    plain, heavy, factor = sim_kernel.run, seed % 8, 3

    def run(setup, draw):
        kernel = plain(setup, draw)
        others = np.arange(setup.blocks) != heavy
        start = min(int(times[0].min()) for times in kernel.times)
        size = [(len(times) - 1) // setup.tiles for times in kernel.times]
        begins = np.min([times[: setup.tiles * n : n] for times, n in zip(kernel.times, size, strict=True)], axis=0)
        for times, n in zip(kernel.times, size, strict=True):
            later = start + factor * (begins[:, [heavy]] - start) - begins  # [tiles, blocks]
            later = np.concatenate([np.repeat(later, n, axis=0), later[-1:]])
            times[:, heavy] += (factor - 1) * (times[:, heavy] - start)
            times[:, others] += later[:, others]
        return kernel

    with mock.patch.object(sim_ls2, "run", run):
        return simulated(folder, "cuda", seed, layout="ls2", blocks=8, sms=8, tiles=24, groups=3)


# --- Level Zero: programs of one thread ------------------------------------------------------------------------------


class Devices(Queue):
    """Two devices, each with a list of its own: 1 and 2."""

    def __init__(self, seed):
        super().__init__(seed)
        other = {"uuid": "86800000-0000-0000-0000-0000000000ac"}
        self.made.device(0xD1, resolution=1, bits=64, kernel_bits=64, **other).pair(self.made.now - self.zero, 0xD1)
        self.made.immediate(1, in_order=True).immediate(2, 0xD1, in_order=True)


def level_zero(folder, seed, lengths, *, given_late=0, host=0):
    """Write a program that gives each device its operations and waits for them.

    Args:
        folder: where the capture is written.
        seed: of the random numbers.
        lengths: of the operations of each device, lists of pairs of how long it is idle before and how long it works.
        given_late: until so long after the end of the one before, an operation is not given to the device; 0: all are
            given before the first begins.
        host: for so long the host works before it gives an operation.
    """
    run = Devices(seed)
    events, last = [], 0
    for number, mine in enumerate(lengths):
        end = run.now + 200_000
        for before, length in mine:
            if given_late or host:
                run.pass_time(max(last - run.now, 0) + given_late)
                if host:
                    run.made.call("zeModuleCreate", inside=partial(run.pass_time, host))
            event = run.append("MemoryFill", number + 1)
            begin = max(run.now + 3_000, last) if given_late or host else end + before
            last = end = run.ran(event, begin, begin + length)
        events.append(end)
    if given_late or host:
        run.pass_time(max(last - run.now, 0))
    for number, end in enumerate(events):
        run.wait("zeCommandListHostSynchronize", end, hCommandList=number + 1)
    return run.made.open(folder)


def rounds(run, before, length, count=40):
    """Return ``count`` pairs of about so many ns."""
    return [
        (run.randint(before, before + before // 4 + 1), run.randint(length, length + length // 4)) for _ in range(count)
    ]


# --- Kineto: a host and two devices ----------------------------------------------------------------------------------


class TwoDevices(Profile):
    """Streams from 100 on are those of the second device."""

    def row(self, category, name, tid, ts, dur, **args):
        super().row(category, name, tid, ts, dur, **args)
        if args.get("stream", 0) >= 100:
            self.events[-1]["pid"] = args["device"] = 1

    def open(self, tmp_path, **head):
        return super().open(tmp_path, deviceProperties=[{"id": 0, "name": "GPU"}, {"id": 1, "name": "GPU"}], **head)


def profile(seed, *, pause=0, length=(40_000, 60_000), nccl=0, host=False):
    """Return a profile of kernels that are launched in time, or only when the device has been idle for a while."""
    run = Profile(seed)
    end = run.now
    for _ in range(40):
        if pause:
            until = max(run.now, end) + pause
            if host:
                run.row("cpu_op", "aten::item", 77, run.now, until - run.now)
            run.now = until
        end = run.work(7, run.random.randint(*length))
        if nccl:
            run.free[7] = end + nccl
            row = {"correlation": 0, "stream": 9, "device": 0}
            run.row("kernel", "ncclDevKernel_AllReduce", 9, end + 500, nccl - 1_000, **row)
    return run


def two_devices(seed, other, *, first=60_000, count=40, last=0):
    """Return a profile of two devices: kernels of ``other`` ns on the second while the first has its own, all 70 us."""
    run = TwoDevices(seed)
    for number in range(count):
        begin = 2_000_000 + 70_000 * number
        for stream, length in ((7, first), (107, other)):
            if number < count - (last if stream == 107 else 0):
                run.work(stream, length - run.random.randint(0, length // 8), after=begin)
    return run


# --- AIE: one core ---------------------------------------------------------------------------------------------------


def tile(folder, seed, slot=None):
    """Write a capture of a core that does one thing most of its time; without a slot it is idle."""
    draw = np.random.Generator(np.random.PCG64(seed))

    def length(low, high):
        return int(draw.integers(low, high))

    runs = []
    for _ in range(12):
        others = [(1 << other, length(3, 10)) for other in (2, 3, 4, 5) if other != slot]
        long = length(150, 400)
        runs += [(1, 1), *others, *([(1 << slot, long)] if slot else []), (2, 1)]
        runs.append((0, length(2, 9) if slot else long))
    return aie_core.opened(folder, runs)


# --- all of them -----------------------------------------------------------------------------------------------------


def draw(seed):
    """Return random numbers of a capture."""
    return random.Random(seed)


MADE = {
    ("aie", "compute"): partial(tile, slot=2),
    ("aie", "memory"): partial(tile, slot=3),
    ("aie", "stream"): partial(tile, slot=4),
    ("aie", "lock"): partial(tile, slot=5),
    ("ascend", "work"): partial(on_chip, shape=alike),
    ("ascend", "lane"): partial(on_chip, shape=alike, submit=30_000),
    ("ascend", "imbalance"): partial(on_chip, shape=one_heavy_core),
    ("ascend", "tail"): partial(on_chip, shape=one_long_task),
    ("ascend", "scheduler"): partial(on_chip, shape=short_rounds),
    ("ascend", "dependency"): partial(on_chip, shape=one_after_the_other, tasks=100),
    ("cuda", "work"): partial(simulated, family="cuda", blocks=24, sms=8),
    ("cuda", "load"): slow_loads,
    ("cuda", "imbalance"): one_heavy_sm,
    ("cuda", "tail"): partial(simulated, family="cuda", blocks=140, tiles=4),
    ("kineto", "work"): lambda folder, seed: profile(seed).open(folder),
    ("kineto", "lane"): lambda folder, seed: profile(seed, pause=40_000, length=(3_000, 5_000), host=True).open(folder),
    ("kineto", "launch"): lambda folder, seed: profile(seed, pause=40_000).open(folder),
    ("kineto", "communication"): lambda folder, seed: profile(seed, nccl=30_000).open(folder),
    ("kineto", "imbalance"): lambda folder, seed: two_devices(seed, 12_000).open(folder),
    ("kineto", "tail"): lambda folder, seed: two_devices(seed, 60_000, last=20).open(folder),
    ("levelzero", "work"): lambda folder, seed: level_zero(folder, seed, [rounds(draw(seed), 200, 30_000)]),
    ("levelzero", "lane"): lambda folder, seed: level_zero(folder, seed, [rounds(draw(seed), 0, 2_000)], host=90_000),
    ("levelzero", "launch"): lambda folder, seed: level_zero(
        folder, seed, [rounds(draw(seed), 0, 30_000)], given_late=30_000
    ),
    ("levelzero", "imbalance"): lambda folder, seed: level_zero(
        folder, seed, [rounds(draw(seed), 500, 30_000), rounds(draw(seed), 26_000, 5_000)]
    ),
    ("levelzero", "tail"): lambda folder, seed: level_zero(
        folder, seed, [rounds(draw(seed), 200, 30_000), rounds(draw(seed), 200, 30_000, 20)]
    ),
}

_NO_ROLES = "the format names lanes, and does not say what works and what waits"
_TILES = "each tile is judged by itself: their clocks meet only where a broadcast starts them"
_IN_KERNEL = "what happens on the host is not recorded beside a buffer of a kernel"
_ONE_LANE = "every lane belongs to a block"
_ASCEND_ONLY = "no other family records tasks that are ready and not dispatched"
_AIE_ONLY = "no other family records why a core stalls"
_OPAQUE = "operations are recorded from outside: what they load is not"

#: Why a family cannot have a cause.
REASONS = {
    **{(family, cause): _NO_ROLES for family in ("chrome", "perfetto") for cause in ALL},
    **{(family, cause): _ASCEND_ONLY for family in ("aie", "cuda", "kineto", "levelzero") for cause in SCHEDULING},
    **{(family, cause): _AIE_ONLY for family in ("ascend", "cuda", "kineto", "levelzero") for cause in STALLS},
    **{(family, "load"): _OPAQUE for family in ("ascend", "kineto", "levelzero")},
    ("aie", "work"): "named as compute",
    ("aie", "load"): "named as memory or stream",
    ("aie", "lane"): "every lane belongs to a tile",
    ("aie", "launch"): _IN_KERNEL,
    ("aie", "imbalance"): _TILES,
    ("aie", "tail"): _TILES,
    ("aie", "communication"): "named as stream",
    ("ascend", "launch"): "schedulers on the chip dispatch: named as scheduler, or as the lane of the orchestrator",
    ("ascend", "communication"): "tasks that communicate are tasks as others are",
    ("cuda", "lane"): _ONE_LANE,
    ("cuda", "launch"): _IN_KERNEL,
    ("cuda", "communication"): "regions that communicate are work or waits by their names",
    ("levelzero", "communication"): "no names of collectives are known",
}
