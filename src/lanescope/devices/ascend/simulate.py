"""A chip that runs a task graph: orchestrator, scheduler threads, cores, the way between them, and their recorders.

Time runs forward. The rows (subtasks) of the graph go to the cores in waves, each core at most once a wave; inside a
wave everything is arrays. A scheduler thread turns around in iterations of fixed length, in which each kind of work has
its window, so phases are disjoint by construction:

    complete (finishes are observed, consumers resolved) | dummies | early dispatch | dispatch | release

A row is dispatched in the first window after its task is ready and one of the two places of its core is free; rows of
one window share the stamp. The core takes it when the register write has crossed the chip and the previous kernel is
over, sets up (long when the function changed), runs, and is observed at the begin of a later iteration. A task that is
staged early waits on its core for the doorbell; where that wait shows depends on the generation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.encode import encode_deps, encode_names, encode_records
from lanescope.devices.ascend.layout import (
    AICORE,
    AICPU,
    DEPS_EDGES,
    DEPS_TASKS,
    HOST_SUBMITS,
    LEVEL_KEYS,
    PHASES,
    REG_TASK_IDS,
    SUBMITS,
    UPLOADS,
    WAIT,
)
from lanescope.devices.ascend.names import function_name
from lanescope.devices.ascend.records import Deps, Records, Section, section
from lanescope.devices.base import Simulation
from lanescope.errors import UsageError
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: The clock of the small chip; constants below are its ticks of 20 ns, scaled to faster clocks.
_SLOW_CLOCK = 50_000_000
_LOOP = 250
#: Begin and end of the windows of an iteration.
_COMPLETE, _DUMMY, _EARLY, _DISPATCH, _RELEASE = (0, 100), (105, 125), (130, 150), (160, 230), (234, 246)
_FIRST_FINISH, _LAST_FINISH, _RESOLVE = 5, 35, 36
_STAMP = 3  # from the begin of a dispatch window to its stamp
_MIN_RESOLVE_NS = 1000  # shorter ones are not recorded

_SINGLE, _MIX, _SPMD, _DUMMY_TASK, _ALLOC = range(5)
_AIC, _AIV = 0, 1
#: Functions 0 to 9 run on AIC, 10 to 19 on AIV.
_FUNCTIONS = 10
_NAMES = ("matmul", "proj", "qk", "pv", "gate_up", "softmax", "norm", "rope", "silu", "add", "spmd_copy")


@dataclass(frozen=True)
class Scenario:
    """What to simulate; the options of the simulator."""

    tasks: int = 400
    generation: str = "v3"
    level: int = 4
    aic: int = 24
    aiv: int = 48
    threads: int = 3
    clock: int = _SLOW_CLOCK
    mix: float = 0.05
    spmd: float = 0.03
    dummy: float = 0.02
    alloc: float = 0.02
    early: float = 0.4
    producers: float = 1.4
    violations: int = 0
    host: bool = False
    anchors: bool = True
    deps: bool = True
    names: bool = True
    drop_aicore: int = 0
    drop_aicpu: int = 0
    drop_both: int = 0
    duplicates: int = 0
    ambiguous: int = 0
    bad_rows: int = 0
    unknown_kinds: int = 0
    wrap: bool = False
    shuffle: bool = False
    truth: str = "rows"

    def __post_init__(self) -> None:
        """Refuse what no chip could run."""
        if self.generation not in ("v2", "v3", "v3c"):
            raise UsageError(f"generation {self.generation!r} cannot be simulated", hint="say v2, v3 or v3c")
        if not 1 <= self.level <= 4:
            raise UsageError(f"level {self.level} is not between 1 and 4", hint="4 records everything")
        if min(self.tasks, self.aic, self.aiv, self.threads) < 1 or self.clock < 1_000_000:
            raise UsageError("tasks, aic, aiv and threads must be at least 1, clock at least 1000000")
        if self.host and self.generation != "v3c":
            raise UsageError("only v3c has orchestrators on the host", hint="say generation=v3c")


@dataclass
class _Tasks:
    """The graph: tasks in submit order."""

    kind: Int64
    task_id: npt.NDArray[np.uint64]
    kernels: Int64  # [tasks, 3]
    blocks: Int64
    flagged: Mask  # consumers may be staged early
    staged: Mask  # will be staged early where that helps
    ignores: Mask  # does not wait for its producers: planted violations
    first_wave: Int64
    pred: Int64  # edges by consumer
    succ: Int64
    first_edge: Int64  # [tasks + 1]


@dataclass
class _Rows:
    """Subtasks in dispatch order; stamps in ticks since the begin of the run."""

    task: Int64
    engine: Int64
    function: Int64
    core: Int64
    counter: Int64
    dispatch: Int64
    receive: Int64
    start: Int64
    end: Int64
    finish: Int64
    staged: Mask


def simulate(options: Mapping[str, Any], seed: int) -> Simulation:
    """Simulate a capture; the same options and seed give the same bytes.

    Args:
        options: values of ``Scenario``.
        seed: seed of the PCG64 generator.

    Returns:
        The records file, ``deps.json`` and a name map; the truth holds ``totals`` and ``losses``, and in ``rows`` each
        execution with its true stamps (option ``truth`` = ``rows``).

    Raises:
        UsageError: the options contradict themselves.
    """
    known = {field.name for field in fields(Scenario)}
    scenario = Scenario(**{name: value for name, value in options.items() if name in known})
    return _Run(scenario, np.random.Generator(np.random.PCG64(seed))).simulation()


class _Run:
    def __init__(self, scenario: Scenario, random: np.random.Generator) -> None:
        self.scenario = scenario
        self.random = random
        self.unit = max(scenario.clock // _SLOW_CLOCK, 1)
        self.base = int(random.integers(1 << 30, 1 << 42))
        cores = scenario.aic + scenario.aiv
        self.thread_of = np.arange(cores) % scenario.threads
        self.shift = random.integers(0, _LOOP * self.unit, scenario.threads)
        scalar, vector = _NAMES[:5], _NAMES[5:]
        self.names = dict(enumerate(scalar)) | dict(enumerate(vector, _FUNCTIONS))
        self.rows = self._subtasks()
        self._go()

    # --- the graph -----------------------------------------------------------------------------------------------

    def _subtasks(self) -> _Rows:
        s, random = self.scenario, self.random
        n = s.tasks
        kind = random.choice(5, n, p=_shares(s))
        function = random.integers(0, _FUNCTIONS, (n, 2))
        on_vector = random.random(n) < s.aiv / (s.aic + s.aiv)
        second = random.random(n) < 0.3  # a MIX task with two vector halves
        most = np.maximum(np.where(on_vector, s.aiv, s.aic), 2)
        blocks = np.where(kind == _SPMD, random.integers(2, np.minimum(most, 16) + 1), 1)
        aic_rows = np.select([kind == _MIX, kind <= _SPMD], [1, np.where(on_vector, 0, blocks)], 0)
        aiv_rows = np.select([kind == _MIX, kind <= _SPMD], [1 + second, np.where(on_vector, blocks, 0)], 0)

        count = aic_rows + aiv_rows
        task = np.repeat(np.arange(n), count)
        ordinal = np.arange(len(task)) - np.repeat(np.cumsum(count) - count, count)
        engine = np.where(ordinal < aic_rows[task], _AIC, _AIV)

        kernels = np.full((n, 3), -1)
        kernels[aic_rows > 0, 0] = function[aic_rows > 0, 0]
        slot = np.where(random.random(n) < 0.1, 2, 1)
        slot[kind == _MIX] = 1
        has_vector = np.flatnonzero(aiv_rows > 0)
        kernels[has_vector, slot[has_vector]] = _FUNCTIONS + function[has_vector, 1]
        both = np.flatnonzero((kind == _MIX) & second)
        kernels[both, 2] = _FUNCTIONS + function[both, 0]
        run = np.where(
            engine == _AIC, kernels[task, 0], np.where(kernels[task, 1] >= 0, kernels[task, 1], kernels[task, 2])
        )

        ring = np.arange(n) // 512 % 4
        self.wave_start = _waves(engine, (s.aic, s.aiv))
        wave = np.searchsorted(self.wave_start, np.arange(len(task)), side="right") - 1
        self.tasks = self._graph(kind, kernels, blocks, ring, count, wave)
        core, counter, dispatch, receive, start, end, finish = np.zeros((7, len(task)), np.int64)
        staged = np.zeros(len(task), np.bool_)
        return _Rows(task, engine, run, core, counter, dispatch, receive, start, end, finish, staged)

    def _graph(self, kind: Int64, kernels: Int64, blocks: Int64, ring: Int64, count: Int64, wave: Int64) -> _Tasks:
        s, random = self.scenario, self.random
        n = len(kind)
        after = np.cumsum(count)
        waves = np.append(wave, len(self.wave_start) - 2 if len(self.wave_start) > 1 else 0)
        first_wave = waves[np.minimum(after - count, len(wave))]
        last_wave = np.maximum(waves[np.maximum(after - 1, 0)] if len(wave) else first_wave, first_wave)
        # Producers come from earlier waves, near the task.
        degree = np.where(kind == _ALLOC, 0, random.poisson(s.producers, n))
        high = np.searchsorted(last_wave, first_wave, side="left")
        low = np.maximum(high - 3 * (s.aic + s.aiv), 0)
        degree = np.where(high > 0, degree, 0)
        succ = np.repeat(np.arange(n), degree)
        pred = (low[succ] + random.random(len(succ)) * (high - low)[succ]).astype(np.int64)
        keep = np.unique(succ * n + pred, return_index=True)[1]
        keep.sort()
        succ, pred = succ[keep], pred[keep]
        order = np.argsort(succ, kind="stable")
        succ, pred = succ[order], pred[order]
        first_edge = np.searchsorted(succ, np.arange(n + 1))

        flagged = random.random(n) < s.early
        is_open = flagged | (kind == _ALLOC)
        allowed = np.ones(n, np.bool_)
        allowed[succ[~is_open[pred]]] = False
        waits = np.zeros(n, np.bool_)
        waits[succ[kind[pred] <= _SPMD]] = True
        staged = allowed & waits & (kind <= _SPMD)
        ignores = np.zeros(n, np.bool_)
        # Somebody must be able to tell that these were not staged: a producer that does not allow it, with rows.
        forbids = np.zeros(n, np.bool_)
        forbids[succ[~flagged[pred] & (kind[pred] <= _SPMD)]] = True
        candidates = np.flatnonzero(forbids & (kind <= _SPMD))
        picked = random.permutation(candidates)[: s.violations]
        ignores[picked] = True
        return _Tasks(
            kind=kind,
            task_id=(ring.astype(np.uint64) << np.uint64(32)) | np.arange(n, dtype=np.uint64),
            kernels=kernels,
            blocks=blocks,
            flagged=flagged,
            staged=staged,
            ignores=ignores,
            first_wave=first_wave,
            pred=pred,
            succ=succ,
            first_edge=first_edge,
        )

    # --- the run -------------------------------------------------------------------------------------------------

    def _iteration(self, thread: Int64, time: Int64, window: int) -> Int64:
        """Return the first iteration of a thread whose window begins at or after a time."""
        loop = _LOOP * self.unit
        found: Int64 = np.maximum(-((self.shift[thread] + window * self.unit - time) // loop), 0)
        return found

    def _begin(self, thread: Int64, iteration: Int64) -> Int64:
        return self.shift[thread] + iteration * _LOOP * self.unit

    def _go(self) -> None:
        """Run the graph, wave by wave."""
        s, u, random, tasks, rows = self.scenario, self.unit, self.random, self.tasks, self.rows
        n, m = len(tasks.kind), len(rows.task)
        # The orchestrator; on the host it is done before the device begins.
        length, pause = random.integers(10, 50, n) * u, random.integers(2, 12, n) * u
        self.submit_end = np.cumsum(length + pause)
        self.submit_start = self.submit_end - length
        submitted = np.zeros(n, np.int64) if s.host else self.submit_end

        typical = random.lognormal(np.log(1500), 0.7, 2 * _FUNCTIONS)
        duration = np.maximum((typical[rows.function] * random.lognormal(0, 0.1, m)).astype(np.int64), 20) * u
        crossing = random.integers(10, 30, m) * u
        warm, cold = random.integers(0, 6, m), random.integers(35, 181, m)
        cleanup = random.integers(2, 6, m) * u
        bell = random.integers(10, 30, m) * u

        cores = s.aic + s.aiv
        free = np.zeros(cores, np.int64)
        running = np.full(cores, -1)  # function of the last kernel
        place = np.zeros((2, cores), np.int64)  # when the two places of a core are free again
        latest = np.zeros(cores, np.int64)  # last dispatch to a core: they come in order
        dispatches = np.zeros(cores, np.int64)
        engines = (np.arange(s.aic), s.aic + np.arange(s.aiv))
        retired = np.where(tasks.kind == _ALLOC, submitted, 0)
        sent = np.zeros(n, np.int64)  # last dispatch of a task
        self.dummy_thread = random.integers(0, s.threads, n)
        self.dummy_iteration = np.zeros(n, np.int64)
        self.iteration = np.zeros(m, np.int64)
        self.finish_iteration = np.zeros(m, np.int64)
        ready, going = submitted.copy(), submitted.copy()
        dummies = np.flatnonzero(tasks.kind == _DUMMY_TASK)
        dummy_wave = tasks.first_wave[dummies]
        stamp_at = (_DISPATCH[0] + _STAMP) * u

        waves = np.arange(len(self.wave_start))
        task_bound = np.searchsorted(tasks.first_wave, waves).tolist()
        dummy_bound = np.searchsorted(dummy_wave, waves).tolist()
        task_bound[-1], dummy_bound[-1] = n, len(dummies)
        row_bound = self.wave_start.tolist()
        for w in range(len(row_bound) - 1):
            begin, end = row_bound[w], row_bound[w + 1]
            first, last = tasks.first_edge[task_bound[w]], tasks.first_edge[task_bound[w + 1]]
            succ, pred = tasks.succ[first:last], tasks.pred[first:last]
            np.maximum.at(ready, succ, retired[pred])
            np.maximum.at(going, succ, sent[pred])
            here = slice(task_bound[w], task_bound[w + 1])
            ready[here] = np.where(tasks.ignores[here], submitted[here], ready[here])
            passing = dummies[dummy_bound[w] : dummy_bound[w + 1]]
            if len(passing):
                thread = self.dummy_thread[passing]
                at = self._iteration(thread, ready[passing], _DUMMY[0])
                self.dummy_iteration[passing] = at
                retired[passing] = self._begin(thread, at) + _DUMMY[1] * u
            if begin == end:
                continue

            task = rows.task[begin:end]
            core = np.empty(end - begin, np.int64)
            for engine, members in enumerate(engines):
                mine = np.flatnonzero(rows.engine[begin:end] == engine)
                core[mine] = members[np.argsort(free[members], kind="stable")[: len(mine)]]
            thread = self.thread_of[core]
            dispatches[core] += 1
            slot = dispatches[core] & 1
            open_ = np.maximum(place[slot, core], latest[core])

            # Normal dispatch, or early where the producers are on their way but not over.
            iteration = self._iteration(thread, np.maximum(ready[task], open_), _DISPATCH[0])
            dispatch = self._begin(thread, iteration) + stamp_at
            early = self._iteration(thread, np.maximum(going[task], open_), _EARLY[0])
            early_stamp = self._begin(thread, early) + (_EARLY[0] + _STAMP) * u
            staged = tasks.staged[task] & (early_stamp < ready[task])
            iteration = np.where(staged, early, iteration)
            dispatch = np.where(staged, early_stamp, dispatch)

            # Register writes follow one another; then the way across the chip, and the core has to be free.
            arrival = dispatch + _rank(thread, iteration) * u + crossing[begin:end]
            pickup = np.maximum(arrival, free[core] + 1)
            is_cold = running[core] != rows.function[begin:end]
            setup = np.where(is_cold, cold[begin:end], warm[begin:end]) * u
            doorbell = ready[task] + bell[begin:end]
            gated = staged & (doorbell > pickup)
            if self._stamps_again:
                receive = np.where(gated, doorbell, pickup)
                # Most of the setup was done while it waited.
                start = receive + np.where(gated, np.minimum(setup, 3 * u), setup)
            else:
                receive = pickup
                start = np.where(gated, np.maximum(doorbell + 2 * u, pickup + setup), pickup + setup)
            stop = start + duration[begin:end]
            seen = self._iteration(thread, stop, _COMPLETE[0])
            finish = self._begin(thread, seen) + np.minimum((_FIRST_FINISH + _rank(thread, seen)) * u, _LAST_FINISH * u)

            free[core] = stop + cleanup[begin:end]
            running[core] = rows.function[begin:end]
            place[slot, core], latest[core] = finish, dispatch
            np.maximum.at(retired, task, self._begin(thread, seen) + _COMPLETE[1] * u)
            np.maximum.at(sent, task, dispatch)
            rows.core[begin:end], rows.counter[begin:end] = core, dispatches[core]
            rows.dispatch[begin:end], rows.receive[begin:end] = dispatch, receive
            rows.start[begin:end], rows.end[begin:end], rows.finish[begin:end] = start, stop, finish
            rows.staged[begin:end] = staged
            self.iteration[begin:end], self.finish_iteration[begin:end] = iteration, seen
        self.retired = retired

    @property
    def _stamps_again(self) -> bool:
        return self.scenario.generation != "v3c" or self.scenario.host

    # --- what is recorded ----------------------------------------------------------------------------------------

    def simulation(self) -> Simulation:
        """Write the files, with the losses that were asked for."""
        s = self.scenario
        aicore, aicpu, losses = self._streams()
        sections = {AICORE.name: aicore, AICPU.name: aicpu}
        if s.level >= 3:
            sections[PHASES.name] = self._phases()
        if s.level >= 4 and not s.host:
            sections[SUBMITS.name] = self._submits()
        metadata: dict[str, Any] = {
            "clock_freq_hz": s.clock,
            "num_cores": s.aic + s.aiv,
            "core_types": ["aic"] * s.aic + ["aiv"] * s.aiv,
        }
        if s.level >= 3:
            metadata["core_to_thread"] = self.thread_of.tolist()
        host_truth = self._host(metadata, sections) if s.host else None
        key = "chip_swimlane_level" if s.generation == "v3c" else "l2_swimlane_level"
        deps = self._deps()
        content = encode_records(Records(key, s.level, metadata, sections))
        if s.bad_rows:
            at = content.index(b"[\n", content.index(AICORE.name.encode())) + 2
            bad = b"".join(b'    ["no row", %d],\n' % number for number in range(s.bad_rows))
            content = content[:at] + bad + content[at:]
        files = {LEVEL_KEYS[key]: content}
        if s.deps:
            files["deps.json"] = encode_deps(deps)
        if s.names:
            files["name_map_simulated.json"] = encode_names(self.names, "Simulated")
        truth = self._truth(sections, losses, host_truth)
        return Simulation(files, truth)

    def _streams(self) -> tuple[Section, Section, dict[str, Any]]:
        """Return the rows of both streams, with drops and repetitions, and what a reader should find of those."""
        s, random, rows, base = self.scenario, self.random, self.rows, self.base
        m = len(rows.task)
        counter = rows.counter
        if s.wrap:
            counter = (counter + REG_TASK_IDS - 8) % REG_TASK_IDS
        self.counter = counter
        order = np.lexsort((rows.counter, rows.core))
        picks = random.permutation(m)
        first, second = s.drop_aicore, s.drop_aicore + s.drop_aicpu
        self.has_aicore, self.has_aicpu = np.ones(m, np.bool_), np.full(m, s.level > 1)
        self.has_aicore[picks[:first]] = False
        self.has_aicpu[picks[first:second]] = False
        both = picks[second : second + s.drop_both]
        self.has_aicore[both] = self.has_aicpu[both] = False

        kept = order[self.has_aicore[order]]
        columns: dict[str, Any] = {
            "core_id": rows.core[kept],
            "task_token_raw": self.tasks.task_id[rows.task[kept]],
            "reg_task_id": counter[kept],
            "start_cycles": base + rows.start[kept],
            "end_cycles": base + rows.end[kept],
        }
        if s.generation != "v2":
            columns["receive_to_start_cycles"] = (rows.start - rows.receive)[kept]
        aicore = section(AICORE, columns)
        kept = order[self.has_aicpu[order]]
        aicpu = section(
            AICPU,
            {
                "core_id": rows.core[kept],
                "reg_task_id": counter[kept],
                "dispatch_cycles": base + rows.dispatch[kept],
                "finish_cycles": base + rows.finish[kept],
            },
        )
        aicore = self._repeat(aicore)
        if s.shuffle:
            aicore = aicore.take(random.permutation(len(aicore)))
            aicpu = aicpu.take(random.permutation(len(aicpu)))
        return aicore, aicpu, self._expected_losses()

    def _repeat(self, aicore: Section) -> Section:
        """Add rows that repeat others, and rows that contradict others."""
        s, random = self.scenario, self.random
        count = len(aicore)
        picks = random.permutation(count)
        again = picks[: s.duplicates]
        contradicted = picks[s.duplicates : s.duplicates + s.ambiguous]
        self.contradicted = np.zeros(len(self.rows.task), np.bool_)
        if len(contradicted):
            keys = set(
                zip(aicore["core_id"][contradicted].tolist(), aicore["reg_task_id"][contradicted].tolist(), strict=True)
            )
            mine = zip(self.rows.core.tolist(), self.counter.tolist(), strict=True)
            self.contradicted = np.array([key in keys for key in mine], np.bool_)
        rows = np.sort(np.concatenate([np.arange(count), again, contradicted]))
        made = aicore.take(rows)
        if len(contradicted):
            changed = np.isin(rows, contradicted)
            changed[1:] &= rows[1:] == rows[:-1]
            changed[0] = False
            made.columns["end_cycles"][changed] -= 1
        return made

    def _expected_losses(self) -> dict[str, Any]:
        s, rows = self.scenario, self.rows
        either = self.has_aicore | self.has_aicpu
        holes = 0
        for core in np.unique(rows.core[either]).tolist():
            # Numbers before the wrap: the truth does not depend on how they are written.
            numbers = rows.counter[either & (rows.core == core)]
            holes += int(numbers.max() - numbers.min()) + 1 - len(numbers)
        joined_level = s.level > 1
        return {
            "aicore_unmatched": int((self.has_aicore & ~self.has_aicpu & ~self.contradicted).sum())
            if joined_level
            else 0,
            "aicpu_unmatched": int((self.has_aicpu & ~self.has_aicore).sum()),
            "holes": holes,
            "duplicates": min(s.duplicates, int(self.has_aicore.sum())),
            "ambiguous": int(self.contradicted.sum()),
            "bad_rows": s.bad_rows,
        }

    def _phases(self) -> Section:
        """Return the phases: one record for each window in which something was done."""
        s, u, random, rows, tasks = self.scenario, self.unit, self.random, self.rows, self.tasks
        thread = self.thread_of[rows.core]
        parts: list[dict[str, Any]] = []

        def part(kind: str, lane: Int64, iteration: Int64, begin: Any, end: Any, count: Any, **more: Any) -> None:
            at = self.base + self._begin(lane, iteration)
            parts.append(
                {
                    "kind": kind,
                    "lane": lane,
                    "start": at + begin,
                    "end": at + end,
                    "iteration": iteration + 1,
                    "count": np.broadcast_to(np.asarray(count, np.int64), len(lane)),
                    **more,
                }
            )

        # Consumers are visited when the last row of their producer is seen.
        degree = np.bincount(tasks.pred, minlength=len(tasks.kind))
        last = np.full(len(tasks.kind), -1)
        by_finish = np.argsort(rows.finish, kind="stable")
        last[rows.task[by_finish]] = by_finish
        visits = np.zeros(len(rows.task), np.int64)
        visits[last[last >= 0]] = degree[last >= 0]
        lane, iteration, count, visited = _groups(thread, self.finish_iteration, visits)
        length = np.where(visited > 0, np.minimum(10 + 7 * visited, 58) * u, 0)
        depth = random.integers(0, 4, (len(lane), 3))
        grown = depth + random.integers(0, 3, depth.shape) if s.generation == "v3c" else depth
        part("complete", lane, iteration, 0, (_RESOLVE + 2) * u + length, count, depth=(depth, grown))
        seen = length * 1_000_000_000 // s.clock >= _MIN_RESOLVE_NS
        part("resolve", lane[seen], iteration[seen], _RESOLVE * u, _RESOLVE * u + length[seen], visited[seen])
        idle = random.random(len(lane)) < 0.1
        part(
            "release", lane[idle], iteration[idle], _RELEASE[0] * u, _RELEASE[1] * u, 0 if s.generation != "v3c" else 1
        )

        passing = np.flatnonzero(tasks.kind == _DUMMY_TASK)
        if len(passing) and s.generation != "v2":
            lane, iteration = self.dummy_thread[passing], self.dummy_iteration[passing]
            at = (_DUMMY[0] + 1 + np.minimum(_rank(lane, iteration), 15)) * u
            low = (tasks.task_id[passing] & np.uint64(0xFFFFFFFF)).astype(np.int64)
            is_full = s.generation == "v3c"
            more = {"task_id": tasks.task_id[passing]} if is_full else {}
            part("dummy_task", lane, iteration, at, at, 1 if is_full else low, **more)
            if is_full:
                lane, iteration, count, _ = _groups(lane, iteration)
                depth = random.integers(0, 4, (len(lane), 3))
                part("dummy", lane, iteration, _DUMMY[0] * u, _DUMMY[1] * u, count, depth=(depth, depth + 1))

        lane, iteration, count, _ = _groups(thread[rows.staged], self.iteration[rows.staged])
        part("early_dispatch", lane, iteration, _EARLY[0] * u, np.minimum(_EARLY[0] + 4 + count, _EARLY[1]) * u, count)
        normal = ~rows.staged
        lane, iteration, count, _ = _groups(thread[normal], self.iteration[normal])
        depth = random.integers(0, 4, (len(lane), 3))
        popped = np.stack([count, np.zeros_like(count), np.zeros_like(count)], 1)
        part(
            "dispatch",
            lane,
            iteration,
            _DISPATCH[0] * u,
            np.minimum(_DISPATCH[0] + 5 + count, _DISPATCH[1]) * u,
            count,
            pops=(count, random.integers(0, 10, len(lane))),
            depth=(depth + popped, depth),
        )
        end = max((int(p["iteration"].max()) for p in parts if len(p["lane"])), default=1)
        lane = np.arange(s.threads)
        zero = np.zeros(s.threads, np.int64)
        at = np.full(s.threads, _DISPATCH[0] * u)
        part(
            "dispatch",
            lane,
            zero + end + 1,
            at,
            at,
            0,
            pops=(zero, zero + 4),
            depth=(np.zeros((s.threads, 3), int),) * 2,
        )
        return self._phase_section(parts)

    def _phase_section(self, parts: list[dict[str, Any]]) -> Section:
        s = self.scenario
        parts = [p for p in parts if len(p["lane"])]
        kinds = list(dict.fromkeys(p["kind"] for p in parts))
        sizes = [len(p["lane"]) for p in parts]

        def joined(name: str, default: Any, width: int = 0, place: int | None = None) -> tuple[Any, Mask]:
            values, there = [], []
            for p, size in zip(parts, sizes, strict=True):
                given = p.get(name)
                if given is not None and place is not None:
                    given = given[place]
                shape = (size, width) if width else (size,)
                values.append(np.full(shape, default) if given is None else np.asarray(given).reshape(shape))
                there.append(np.full(size, given is not None))
            return np.concatenate(values), np.concatenate(there)

        lane, _ = joined("lane", 0)
        start, end = joined("start", 0)[0], joined("end", 0)[0]
        kind = np.repeat([kinds.index(p["kind"]) for p in parts], sizes)
        is_outer = ~np.isin(kind, [kinds.index(k) for k in ("resolve", "dummy_task") if k in kinds])
        # Written when they end, inner ones before the outer.
        order = np.lexsort((is_outer, end, lane))
        columns: dict[str, Any] = {
            "kind": kind,
            "start_cycles": start,
            "end_cycles": end,
            "loop_iter": joined("iteration", 0)[0],
            "tasks_processed": joined("count", 0)[0],
        }
        for place, name in enumerate(("pop_hit", "pop_miss")):
            columns[name], columns[f"{name}_valid"] = joined("pops", 0, place=place)
        columns["task_id"], columns["task_id_valid"] = joined("task_id", np.uint64(0))
        for place, when in enumerate(("start", "end")):
            columns[f"shared_at_{when}"] = joined("depth", 0, 3, place)[0]
            if s.generation != "v3c":
                columns[f"local_at_{when}"] = columns[f"shared_at_{when}"][:, ::-1]
        texts = [*kinds, "mystery"]
        if s.unknown_kinds:
            releases = np.flatnonzero(kind == (kinds.index("release") if "release" in kinds else -1))
            columns["kind"] = kind.copy()
            columns["kind"][releases[: s.unknown_kinds]] = len(kinds)
            self.renamed = min(s.unknown_kinds, len(releases))
        else:
            self.renamed = 0
        sorted_columns = {name: np.asarray(values)[order] for name, values in columns.items()}
        made = section(PHASES, sorted_columns, group=lane[order], texts=texts)
        return Section(**{**made.__dict__, "groups": s.threads})

    def _submits(self) -> Section:
        n = len(self.tasks.kind)
        return section(
            SUBMITS,
            {
                "submit_idx": np.arange(n),
                "task_id": self.tasks.task_id,
                "start_cycles": self.base + self.submit_start,
                "end_cycles": self.base + self.submit_end,
            },
            group=np.zeros(n, np.int64),
        )

    def _host(self, metadata: dict[str, Any], sections: dict[str, Section]) -> dict[str, Any]:
        """Add what a host records that orchestrates: submits before the device starts, copies, clock readings."""
        s, random = self.scenario, self.random
        n = len(self.tasks.kind)
        origin = int(random.integers(1 << 40, 1 << 44))
        begin, end = (values * 20 // self.unit for values in (self.submit_start, self.submit_end))
        total = int(end[-1])
        gap = 200_000  # from the last copy to the first dispatch
        copies = origin + total + np.array([1000, 30_000])
        lengths = np.array([20_000, 45_000])
        sections[HOST_SUBMITS.name] = section(
            HOST_SUBMITS,
            {
                "submit_idx": np.arange(n),
                "task_id": self.tasks.task_id,
                "start_host_ns": origin + begin,
                "end_host_ns": origin + end,
            },
            group=np.zeros(n, np.int64),
        )
        sections[UPLOADS.name] = section(
            UPLOADS,
            {"phase": [0, 1], "start_host_ns": copies, "end_host_ns": copies + lengths, "detail": [4096, 1 << 20]},
            texts=("graph_upload", "arena_h2d"),
        )
        device_at = origin + total + gap
        drift = float(random.uniform(-5e-5, 5e-5))

        def host_of(ticks: int) -> int:
            """Return the true host time of ticks since the device's begin."""
            return device_at + round(ticks * (1 + drift) * 1_000_000_000 / s.clock)

        first_host = int(sections[HOST_SUBMITS.name]["start_host_ns"][0])
        metadata |= {
            "orchestrator_source": "host",
            "orchestrator_clock_domain": "host_monotonic_ns",
            "device_clock_domain": "device_syscnt_cycles",
            "host_orchestration_origin_ns": first_host,
            "timeline_relation": "host_orchestration_precedes_device",
            "host_capture": {"status": "complete", "expected_records": n, "recorded_records": n, "dropped_records": 0},
        }
        if s.anchors:
            last = int(self.rows.finish.max(initial=0)) + _LOOP * self.unit * 8
            moments = {
                "pre_host_orchestration": -(total + gap + 100_000) * s.clock // 1_000_000_000,
                "post_device_execution": last,
            }
            samples = []
            for position, ticks in moments.items():
                for index in range(3):
                    at = ticks + index * self.unit * (50 if ticks >= 0 else -50)
                    trip = int(random.integers(800, 4000))
                    before = host_of(at) - int(random.integers(0, trip + 1))
                    samples.append(
                        {
                            "position": position,
                            "sample_idx": index,
                            "host_before_ns": before,
                            "raw_device_timestamp": self.base + at,
                            "device_cycles": self.base + at,
                            "host_after_ns": before + trip,
                            "rtt_ns": trip,
                            "uncertainty_ns": (trip + 1) // 2,
                            "error": None,
                        }
                    )
            metadata["clock_anchors"] = {
                "schema_version": 1,
                "raw_device_timestamp_unit": "syscnt_cycles",
                "samples_per_position": 3,
                "samples": samples,
            }
        return {
            "first_host_ns": first_host,
            "device_zero_host_ns": device_at,
            "device_zero_cycles": self.base,
            "drift": drift,
        }

    def _deps(self) -> Deps:
        """Return the task graph as the runtime writes it: repeated edges, and edges that order nothing."""
        s, random, tasks = self.scenario, self.random, self.tasks
        n = len(tasks.kind)
        is_new = s.generation == "v3c"
        task_columns: dict[str, Any] = {
            "task_id": tasks.task_id,
            "kernel_ids": tasks.kernels,
            "block_num": tasks.blocks,
        }
        if is_new:
            task_columns["early_dispatch"] = tasks.flagged
        again = np.flatnonzero(random.random(len(tasks.pred)) < 0.1)
        edges = np.sort(np.concatenate([np.arange(len(tasks.pred)), again]), kind="stable")
        pred, succ = tasks.pred[edges], tasks.succ[edges]
        flags = np.full(len(edges), WAIT)
        # Backwards, so that anybody who takes them for an order sees an effect before its cause.
        extra = min(4, n - 1) if is_new else 0
        pred = np.concatenate([pred, np.arange(n - extra, n), [0]])
        succ = np.concatenate([succ, np.arange(extra), [0]])
        flags = np.concatenate([flags, np.full(extra, 2), [WAIT]])
        edge_columns: dict[str, Any] = {"pred": tasks.task_id[pred], "succ": tasks.task_id[succ]}
        if is_new:
            edge_columns["flags"] = flags
        self.edge_counts = {
            "edges": len(tasks.pred),
            "edges_repeated": len(again),
            "edges_to_self": 1,
            "edges_retain_only": extra,
        }
        return Deps(section(DEPS_TASKS, task_columns), section(DEPS_EDGES, edge_columns))

    # --- the truth -----------------------------------------------------------------------------------------------

    def _truth(
        self, sections: dict[str, Section], losses: dict[str, Any], host: dict[str, Any] | None
    ) -> dict[str, Any]:
        s, rows, tasks = self.scenario, self.rows, self.tasks
        n = len(tasks.kind)
        here = self.has_aicore
        last_end = np.zeros(n, np.int64)
        np.maximum.at(last_end, rows.task[here], rows.end[here])
        ready = np.zeros(n, np.int64)
        if s.deps:
            np.maximum.at(ready, tasks.succ, last_end[tasks.pred])
        ready = ready[rows.task]
        stays = rows.staged & (not self._stamps_again)
        gate = np.where(stays & (rows.receive < ready) & (ready <= rows.start), ready - rows.receive, 0)
        begun = rows.start if s.generation == "v2" else np.where(stays, rows.start, rows.receive)
        first_begun = np.full(n, np.iinfo(np.int64).max)
        np.minimum.at(first_begun, rows.task[here], begun[here])
        broken = (last_end[tasks.pred] > first_begun[tasks.succ]) & (last_end[tasks.pred] > 0)
        joined = here & self.has_aicpu & ~self.contradicted
        knows_receive = s.generation != "v2"

        def mean(ticks: Int64, where: Mask) -> float | None:
            lengths = ticks[where] * 1_000_000_000 // s.clock
            return float(lengths.sum()) / len(lengths) if len(lengths) else None

        setup = rows.start - rows.receive - gate
        once = here & ~self.contradicted
        is_spmd = tasks.blocks > 1
        truth: dict[str, Any] = {
            "generation": s.generation,
            "level": s.level,
            "clock": s.clock,
            "base_cycles": self._smallest(sections),
            "tasks": n,
            "totals": {
                "executions": int(here.sum()),
                "duration_ns": mean(rows.end - rows.start, once),
                "propagation_ns": mean(rows.receive - rows.dispatch, joined) if knows_receive else None,
                "local_setup_ns": mean(setup, once) if knows_receive else None,
                "tail_ns": mean(rows.finish - rows.end, joined),
                "gated": int((gate > 0)[here].sum()),
            },
            "graph": self.edge_counts,
            "violations": [
                [int(tasks.task_id[p]), int(tasks.task_id[c])]
                for p, c in zip(tasks.pred[broken].tolist(), tasks.succ[broken].tolist(), strict=True)
            ],
            "losses": losses,
            "host": host,
        }
        if s.level >= 3:
            truth["unknown_kinds"] = self.renamed
        if s.truth == "rows":
            names = [
                function_name(f, self.names if s.names else {}, is_spmd=spmd)
                for f, spmd in zip(rows.function.tolist(), is_spmd[rows.task].tolist(), strict=True)
            ]
            truth["rows"] = {
                "core": rows.core.tolist(),
                "reg_task_id": self.counter.tolist(),
                "task_id": tasks.task_id[rows.task].tolist(),
                "name": names if s.deps else None,
                "has_aicore": here.tolist(),
                "has_aicpu": self.has_aicpu.tolist(),
                "is_ambiguous": self.contradicted.tolist(),
                "staged": rows.staged.tolist(),
                "gate": gate.tolist(),
                **{
                    stamp: (self.base + getattr(rows, stamp)).tolist()
                    for stamp in ("dispatch", "receive", "start", "end", "finish")
                },
            }
        return truth

    def _smallest(self, sections: dict[str, Section]) -> int:
        stamps = [
            values
            for name in (AICORE.name, AICPU.name, PHASES.name, SUBMITS.name)
            if name in sections
            for column, values in sections[name].columns.items()
            if column.endswith("_cycles") and column != "receive_to_start_cycles"
        ]
        aicore = sections[AICORE.name]
        if self.scenario.generation != "v2":
            stamps.append(aicore["start_cycles"] - aicore["receive_to_start_cycles"])
        return min((int(values.min()) for values in stamps if len(values)), default=0)


def _shares(s: Scenario) -> list[float]:
    shares = [s.mix, s.spmd, s.dummy, s.alloc]
    if min(shares) < 0 or sum(shares) > 1:
        raise UsageError("mix, spmd, dummy and alloc are shares: they must not be negative or exceed 1 together")
    return [max(1 - sum(shares), 0), *shares]


def _waves(engine: Int64, capacity: tuple[int, int]) -> Int64:
    """Cut rows into waves in which no engine has more rows than cores; return where each begins, and the end."""
    counts = [np.concatenate([[0], np.cumsum(engine == kind)]) for kind in (_AIC, _AIV)]
    bounds = [0]
    while bounds[-1] < len(engine):
        at = bounds[-1]
        ends = [
            int(np.searchsorted(count, count[at] + most, side="right")) - 1
            for count, most in zip(counts, capacity, strict=True)
        ]
        bounds.append(min(*ends, len(engine)))
    return np.array(bounds if len(bounds) > 1 else [0, 0])


def _rank(first: Int64, second: Int64) -> Int64:
    """Return the ordinal of each pair among equal pairs, int64 [n]."""
    key = first * (1 << 40) + second
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    rank = np.empty(len(key), np.int64)
    rank[order] = np.arange(len(key)) - np.repeat(starts, np.diff(starts, append=len(key)))
    return rank


def _groups(lane: Int64, iteration: Int64, weight: Int64 | None = None) -> tuple[Int64, Int64, Int64, Int64]:
    """Return the distinct pairs, how often each occurs, and the sum of its weights."""
    key, inverse, count = np.unique(lane * (1 << 40) + iteration, return_inverse=True, return_counts=True)
    total = np.zeros(len(key), np.int64)
    if weight is not None:
        np.add.at(total, inverse, weight)
    return key >> 40, key & ((1 << 40) - 1), count, total
