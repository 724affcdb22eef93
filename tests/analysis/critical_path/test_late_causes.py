"""One cause of each kind and family is made late, in bytes that the decoders read: the path names it.

Each program runs twice with the same seed, once as it is and once with a pause in one place. The generators know what
the pause holds up, the path does not. With the pause, its longest part is of that kind and at least as long; without
it, no part of that kind is.
"""

from __future__ import annotations

import dataclasses
import json
import random

import numpy as np
import pytest

import lanescope
from analysis import aie_core
from analysis.critical_path.paths import checked, longest
from devices.levelzero.helpers import Script
from effort import seeds
from lanescope.analysis.critical_path.windows import WindowChoice
from lanescope.devices.ascend.simulate import chip
from lanescope.devices.ascend.simulate.phases import _Phases
from lanescope.devices.cuda.simulate import sim_kernel, sim_ls2

SEEDS = seeds(40, first=7_100)


def part_of(trace, **options):
    """Return kind, cause and length of the longest part of the path."""
    rows = list(checked(trace, **options).parts.rows())
    top = max(rows, key=lambda row: row["dur"])
    return top["kind"], top["cause"], top["dur"], rows


def is_named(plant, kind, pause, *, causes=("delay beyond", "latency"), **options):
    """Assert that the pause of a program is named, and that nothing is without one."""
    found, cause, dur, _ = part_of(plant(pause), **options)
    assert (found, cause in causes) == (kind, True), (found, cause)
    assert dur >= 0.95 * pause  # the rest is the latency of the kind, a part of its own
    rows = part_of(plant(0), **options)[3]
    assert max((row["dur"] for row in rows if row["kind"] == kind), default=0) < pause / 2


# --- Kineto: a host thread, streams, and calls that wait ------------------------------------------------------------


class Profile:
    """A profile that is made as time passes; all times are ns. Kernels of a stream run in order."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.now = 1_000_000
        self.number = 0
        self.free = {}
        self.events = []

    def row(self, category, name, tid, ts, dur, **args):
        on_device = category in ("kernel", "gpu_memcpy", "cuda_sync")
        self.events.append(
            {"ph": "X", "cat": category, "name": name, "pid": 0 if on_device else 77, "tid": tid, "ts": ts / 1000}
            | {"dur": dur / 1000, "args": args}
        )

    def call(self, name, dur):
        """Let the thread call the runtime; return its correlation."""
        self.number += 1
        self.row("cuda_runtime", name, 77, self.now, dur, correlation=self.number, cbid=1)
        self.now += dur
        return self.number

    def work(self, stream, length, *, latency=None, after=0, name="gemm", category="kernel", call="cudaLaunchKernel"):
        """Launch work: it begins when its launch has arrived and its stream is free, after a time; return its end."""
        launched = self.now
        number = self.call(call, self.random.randint(3_000, 5_000))
        latency = self.random.randint(5_500, 7_500) if latency is None else latency
        begin = max(launched + latency, self.free.get(stream, 0) + self.random.randint(500, 900), after)
        self.row(category, name, stream, begin, length, correlation=number, stream=stream, device=0)
        self.free[stream] = begin + length
        return begin + length

    def host(self):
        dur = self.random.randint(2_000, 9_000)
        self.row("cpu_op", f"aten::op{self.random.randint(0, 4)}", 77, self.now, dur)
        self.now += dur + self.random.randint(0, 500)

    def kernel(self, **more):
        return self.work(7, self.random.randint(10_000, 30_000), **more)

    def sync(self, end, *, late=0, name="cudaDeviceSynchronize"):
        """Wait until a moment."""
        self.call(name, max(end - self.now, 0) + 2_000 + self.random.randint(0, 400) + late)

    def open(self, tmp_path, **head):
        path = tmp_path / "made.json"
        content = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": self.events}
        path.write_text(json.dumps(content | head))
        return lanescope.open(path)


#: So many rounds has a program; one of them has the pause.
ROUNDS = 30
PAUSE = 900_000


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["launch", "sync", "copy return", "stream wait", "inferred stream wait"])
def test_kineto(tmp_path, kind, seed):
    def plant(pause):
        run = Profile(seed)
        chosen = run.random.randrange(ROUNDS)
        for number in range(ROUNDS):
            late = pause if number == chosen else 0
            run.host()
            first = run.kernel(latency=6_000 + late if kind == "launch" else None)
            if kind == "copy return":
                copied = run.now
                end = run.work(
                    7, 4_000, name="Memcpy DtoH (Device -> Pageable)", category="gpu_memcpy", call="cudaMemcpyAsync"
                )
                run.now = end + 1_500 + late
                run.events[-2]["dur"] = (run.now - copied) / 1000
            elif kind == "stream wait":
                event = run.call("cudaEventRecord", 800)
                waiting = run.call("cudaStreamWaitEvent", 700)
                args = {"stream": 20, "device": 0, "correlation": waiting, "wait_on_stream": 7}
                args |= {"wait_on_cuda_event_record_corr_id": event, "cuda_sync_kind": "Stream Wait Event"}
                run.row("cuda_sync", "Stream Wait Event", 20, run.now - 700, 700, **args)
                run.sync(run.work(20, 12_000, after=first + 1_000 + late))
            elif kind == "inferred stream wait":
                begun = max(first, run.now + 40_000)
                run.events[-1]["dur"] += (begun - first) / 1000  # long enough for the other stream to wait
                run.free[7] = begun
                run.sync(run.work(20, 12_000, after=begun + 3_000))
            else:
                run.sync(first, late=late if kind == "sync" else 0)
        return run.open(tmp_path)

    if kind != "inferred stream wait":
        is_named(plant, kind, PAUSE)
        return
    # What is inferred lies near: it binds, is marked as inferred, and only where it is asked for.
    trace = plant(0)
    counts = {row["kind"]: row for row in checked(trace, infer=True).edges.rows()}
    assert counts[kind]["count"] == counts[kind]["binding"] == ROUNDS - 1  # the first has nothing before it
    assert kind not in {row["kind"] for row in checked(trace).edges.rows()}


@pytest.mark.parametrize("seed", SEEDS)
def test_kineto_collectives_wait_for_the_rank_that_is_late(tmp_path, seed):
    draw = random.Random(seed)
    late, ranks = draw.randrange(3), []
    last = 300_000
    for number in range(3):
        run = Profile(seed + number)
        run.now = 100_000
        length = last if number == late else draw.randint(20_000, 60_000)
        end = run.work(7, length, name=f"compute of {number}", latency=6_000)
        begin = end + 1_000
        groups = {"Collective name": "allreduce", "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2]"}
        shared = {"correlation": 2, "stream": 7, "device": 0, "Rank": number, "Seq": 4, **groups}
        run.call("cudaLaunchKernel", 3_000)
        until = 100_000 + 6_000 + last + 1_000 + 30_000
        run.row("kernel", "ncclDevKernel_AllReduce", 7, begin, until - begin, **shared)
        run.free[7] = until
        run.work(7, 20_000 + draw.randint(0, 5_000), name=f"next of {number}")
        folder = tmp_path / str(number)
        folder.mkdir()
        ranks.append(run.open(folder, baseTimeNanoseconds=200 * 7_889_238 * 10**9))
    path = checked(lanescope.merge(ranks))
    assert longest(path)["name"] == f"compute of {late}"
    assert not {f"compute of {number}" for number in range(3) if number != late} & {
        row["name"] for row in path.summary.rows() if row["cause"] == "work"
    }


# --- Level Zero: lists, queues, events and barriers in THAPI's text -------------------------------------------------


class Queue:
    """A program of one thread, and a device whose counter counts ns."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.made = Script(step=0)
        self.made.device(resolution=1, bits=64, kernel_bits=64).pair(0)
        self.zero = self.made.now
        self.event = 0x4000
        self.pass_time(20_000)
        self.results = []

    def pass_time(self, ns):
        self.made.now += ns

    @property
    def now(self):
        return self.made.now - self.zero

    def append(self, what, cl, *waits):
        """Append an operation that waits for events; return its event."""
        self.event += 0x40
        name = f"zeCommandListAppend{what}"
        fields = {"numWaitEvents": len(waits)} | ({"phWaitEvents_vals": list(waits)} if waits else {})
        self.made.entry(name, hCommandList=cl, hSignalEvent=self.event, **fields)
        self.pass_time(300)
        self.made.record("lttng_ust_ze_profiling:event_profiling", hEvent=self.event)
        self.pass_time(self.random.randint(300, 700))
        self.made.exit(name)
        self.pass_time(self.random.randint(300, 900))
        return self.event

    def ran(self, event, begin, end):
        """Note when the operation of an event ran; return its end."""
        self.results.append((event, begin, end))
        return end

    def length(self):
        return self.random.randint(5_000, 20_000)

    def wait(self, function, end, late=0, **handle):
        """Wait until a moment; results are read before the call returns."""
        self.made.entry(function, **handle, timeout=(1 << 64) - 1)
        self.made.now = max(self.made.now + 500, self.zero + end + self.random.randint(700, 1_500)) + late
        for event, begin, until in self.results:
            self.made.result(event, begin, until)
        self.results.clear()
        self.made.exit(function)
        self.pass_time(self.random.randint(500, 2_000))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["launch", "execute", "sync", "inferred sync", "barrier", "signal"])
def test_levelzero(tmp_path, kind, seed):
    def plant(pause):
        run = Queue(seed)
        run.made.immediate(1).immediate(2).regular(3)
        chosen = run.random.randrange(ROUNDS)
        for number in range(ROUNDS):
            late = pause if number == chosen else 0
            called = run.now
            list_of = 3 if kind == "execute" else 1
            event = run.append("MemoryFill", list_of)
            if kind == "execute":
                called = run.now
                run.made.call("zeCommandListClose", hCommandList=3)
                run.made.execute(9, 3, inside=lambda run=run: run.pass_time(1_000))
            begin = called + run.random.randint(2_000, 3_000) + (late if kind in ("launch", "execute") else 0)
            end = begin + run.length()
            run.ran(event, begin, end)
            if kind == "barrier":
                barrier, behind = run.append("Barrier", 1), run.append("MemoryFill", 1)
                stop = run.ran(barrier, end + 150, end + 300)
                begin = stop + 400 + late
                end = run.ran(behind, begin, begin + run.length())
            if kind == "signal":
                waiting = run.append("MemoryFill", 2, event)
                begin = end + 600 + late
                end = run.ran(waiting, begin, begin + run.length())
            if kind == "execute":
                run.wait("zeCommandQueueSynchronize", end, hCommandQueue=9)
                run.made.call("zeCommandListReset", hCommandList=3)
            else:
                handle = {} if kind == "inferred sync" else {"hCommandList": 2 if kind == "signal" else 1}
                run.wait("zeCommandListHostSynchronize", end, late * kind.endswith("sync"), **handle)
        return run.made.open(tmp_path)

    is_named(plant, "launch" if kind == "execute" else kind, PAUSE)


# --- Ascend and CUDA: a pause between two events of the simulators ---------------------------------------------------


def simulated(tmp_path, family, seed, **options):
    simulation = lanescope.simulate(family, seed=seed, **options)
    for name, content in simulation.files.items():
        (tmp_path / name).write_bytes(content)
    return lanescope.open(tmp_path / next(iter(simulation.files)))


def paused(run, at, turns):
    """Return a run of the chip in which nothing happens for so many iterations of the schedulers from a moment on."""
    loop = chip.LOOP * run.scenario.unit
    changed = {}
    for name in ("dispatch", "receive", "start", "end", "finish", "submit_start", "submit_end"):
        times = getattr(run, name)
        changed[name] = times + (times > at) * turns * loop
    threads = run.thread_of[run.core]
    for name, of in (("iteration", threads), ("finish_iteration", threads), ("bare_iteration", run.bare_thread)):
        numbers = getattr(run, name)
        changed[name] = numbers + (run.begin(of, numbers) > at) * turns
    return dataclasses.replace(run, **changed)


#: What an execution waits for between two of its moments, and whether its task was sent before its producers had ended.
STAGES = {
    "dispatch": ("dispatch", "receive", False),
    "complete": ("end", "finish", False),
    "ready": ("before", "dispatch", False),
    "dependency": ("before_end", "start", True),
    "submit": ("submitted", "dispatch", False),
}


def quiet_moment(run, kind, draw):
    """Return a moment at which one execution waits for something of a kind, and nothing else goes on; None: none.

    What the schedulers do is not cut: no turn that has begun still has something to do.
    """
    first, last, is_staged = STAGES[kind]
    thread = run.thread_of[run.core]
    turns = [(run.begin(thread, run.iteration), run.dispatch), (run.begin(thread, run.finish_iteration), run.finish)]
    found = []
    for row in np.flatnonzero(run.staged == is_staged).tolist():
        producers = run.tasks.pred[run.tasks.succ == run.task[row]]
        mine = np.isin(run.task, producers)
        known = {
            "before": int(run.finish[mine].max(initial=-1)),
            "before_end": int(run.end[mine].max(initial=-1)),
            "submitted": int(run.submit_end[run.task[row]]),
        }
        low = known[first] if first in known else int(getattr(run, first)[row])
        high = int(getattr(run, last)[row])
        others = np.arange(len(run)) != row
        # Its producer is still to be seen by its scheduler.
        others &= ~mine if kind == "dependency" else True
        stop = {"ready": run.dispatch, "submit": run.dispatch}.get(kind, run.finish)[row]
        for at in {low, *(int(begin[row]) - 1 for begin, _ in turns)}:
            if low < 0 or not low <= at < high:
                continue
            is_cut = any(((begin <= at) & (at < done)).any() for begin, done in turns)
            is_cut |= bool(((run.submit_start <= at) & (at < run.submit_end)).any())
            runs = (others & (run.dispatch <= at) & (at < run.finish)).any()
            held = (others & (run.dispatch > at) & (run.dispatch < stop)).any()
            if not is_cut and not runs and not held:
                found.append(at)
    return draw.choice(sorted(found)) if found else None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", list(STAGES))
def test_ascend(tmp_path, monkeypatch, kind, seed):
    """A chain of tasks on a chip of two cores; schedulers do nothing for a hundred turns while one of them waits."""
    options = {"tasks": 1 if kind == "submit" else 25, "aic": 1, "aiv": 1, "threads": 2, "producers": 3.0, "fan_in": 0}
    options |= {"spmd": 0, "mix": 0, "dummy": 0, "alloc": 0, "predicated": 0}
    options["speculative"] = 1.0 if kind == "dependency" else 0
    plain, done = chip.run, []
    # A scheduler that gives back slots in a turn that does nothing else idles since then, which is as true.
    part = _Phases.part
    monkeypatch.setattr(
        _Phases, "part", lambda self, name, *more, **a: name == "release" or part(self, name, *more, **a)
    )

    def plant(turns, seed=seed):
        def run(*arguments):
            found = plain(*arguments)
            at = quiet_moment(found, kind, random.Random(seed))
            done.append((at, chip.LOOP * found.scenario.unit * 1_000_000_000 // found.scenario.clock))
            return paused(found, at, turns) if at is not None else found

        monkeypatch.setattr(chip, "run", run)
        return simulated(tmp_path, "ascend", seed, **options)

    # Not in every run there is a moment at which one execution waits and nothing else goes on.
    for fresh in range(seed * 100, seed * 100 + 100):
        plant(0, fresh)
        at, turn = done[-1]
        if at is not None:
            break
    assert at is not None
    is_named(lambda pause: plant(pause // turn, fresh), kind, 100 * turn)


@pytest.mark.parametrize("seed", SEEDS)
def test_cuda_blocks_that_wait_for_their_sm(tmp_path, monkeypatch, seed):
    """One SM: between the end of a block and the begin of the next nothing runs, and that takes long once."""
    plain = sim_kernel.run

    def plant(pause):
        def run(setup, draw):
            kernel = plain(setup, draw)
            chosen = random.Random(seed).randrange(1, setup.blocks)
            begin = min(int(times[0, chosen]) for times in kernel.times)
            for times in kernel.times:
                times[times >= begin] += pause
            return kernel

        monkeypatch.setattr(sim_ls2, "run", run)
        return simulated(tmp_path, "cuda", seed, layout="ls2", blocks=6, sms=1, tiles=4)

    is_named(plant, "sm free", 400_000, causes=("resource",))


@pytest.fixture
def slow_loads(monkeypatch):
    """Loads that take so long that computing waits for each of them."""
    lengths = {**sim_kernel._LENGTHS, sim_kernel.LOAD_K: 4200, sim_kernel.LOAD_V: 4400}
    monkeypatch.setattr(sim_kernel, "_LENGTHS", lengths)


def late_to_see(kernel, pause):
    """Return a kernel whose second group sees late that the last load has ended; nothing else goes on by then."""
    is_wait = (kernel.events[1] == sim_kernel.WAIT_FULL) & (kernel.kinds[1] == sim_kernel.END)
    end = int(kernel.times[1][np.flatnonzero(is_wait)[-1], 0])
    for times in kernel.times:
        times[times >= end] += pause
    return kernel


def late_kernel(folder, monkeypatch, seed, **options):
    """Return what makes the trace of a kernel of one block whose second group sees late that its loads have ended."""
    plain = sim_kernel.run

    def plant(pause):
        monkeypatch.setattr(sim_ls2, "run", lambda setup, draw: late_to_see(plain(setup, draw), pause))
        return simulated(folder, "cuda", seed, layout="ls2", blocks=1, sms=1, groups=2, tick=1, **options)

    return plant


@pytest.mark.usefixtures("slow_loads")
@pytest.mark.parametrize("seed", SEEDS)
def test_cuda_groups_that_wait_for_a_signal(tmp_path, monkeypatch, seed):
    """A group sees late that a stage is full: the load has ended, and nothing else goes on."""
    plant = late_kernel(tmp_path, monkeypatch, seed, tiles=2 + seed % 5)

    is_named(plant, "signal", 400_000)


@pytest.mark.usefixtures("slow_loads")
@pytest.mark.parametrize("seed", SEEDS)
def test_cuda_asynchronous_regions_begin_with_their_issue_and_end_the_wait_for_them(tmp_path, monkeypatch, seed):
    """A load that is under way for long: its region is the longest work of the path, entered by its issue."""
    plant = late_kernel(tmp_path, monkeypatch, seed, tiles=6, across=True)

    path = checked(plant(400_000))
    names = path.trace.slices["name"]
    top = max(path.parts.rows(), key=lambda row: row["dur"])
    assert (top["cause"], names[top["slice_id"]]) == ("work", "fetch")
    assert top["dur"] >= 400_000
    counts = {row["kind"]: row for row in path.edges.rows()}
    assert (counts["issue"]["count"], counts["issue"]["unplaced"]) == (6, 0)
    assert counts["issue"]["binding"] == 6
    rows = part_of(plant(0))[3]
    assert max(row["dur"] for row in rows) < 200_000


# --- AIE: no causes are recorded; phases have what a core waited for --------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("slot", [3, 4, 5])
def test_aie_phases_name_the_stall(tmp_path, slot, seed):
    draw = random.Random(seed)
    runs, spent = [], 0
    for _ in range(20):
        stall = draw.randint(300, 900)
        spent += stall
        others = [(1 << other, draw.randint(3, 12)) for other in (2, 3, 4, 5) if other != slot]
        runs += [(1, 1), *others, (1 << slot, stall), (2, 1), (0, draw.randint(2, 9))]
    trace = aie_core.opened(tmp_path, runs)
    waits = [row for row in trace.phases().rows() if row["state"] == "waiting"]
    top = max(waits, key=lambda row: row["total"])
    assert aie_core.EVENTS[slot] in (top["name"], top["cause"])
    assert top["total"] == spent
    with pytest.raises(lanescope.LanescopeError, match="records no causes"):
        trace.critical_path()


def test_a_window_that_begins_in_a_pause_is_named_by_its_cause(tmp_path):
    """It has the rest of the lag, and what it ends with."""
    run = Profile(1)
    run.kernel(latency=500_000)
    trace = run.open(tmp_path)
    begin, kernel = int(trace.slices["ts"].min()) + 100_000, int(trace.slices["ts"].max())
    path = checked(trace, choice=WindowChoice(begin=begin, end=kernel + 10))
    found = [(row["kind"], row["cause"], row["dur"]) for row in path.parts.rows()]
    assert found == [("launch", "delay beyond", kernel - begin), ("", "work", 10)]
