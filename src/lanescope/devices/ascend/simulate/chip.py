"""A chip that runs a graph: orchestrator, scheduler threads, cores, and the way between them.

Time runs forward. The rows (subtasks) of the graph go to the cores in waves, each core at most once a wave; inside a
wave everything is arrays, and the episodes of the run, which do not overlap, are simulated side by side. A scheduler
thread turns around in iterations of fixed length, in which each kind of work has its window, so phases are disjoint by
construction:

    complete (finishes are observed, consumers resolved) | dummies | early dispatch | dispatch | release

(v3c: dispatch before early dispatch.)

A row is dispatched in the first window after its task is ready and one of the two places of its core is free; rows of
one window share the stamp. The core takes it when the register write has crossed the chip and the previous kernel is
over, sets up (long when the function changed), runs, and is observed at the begin of a later iteration. A task that is
staged early waits on its core for the doorbell; where that wait shows depends on the format version.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.simulate.scenario import Scenario
from lanescope.devices.ascend.simulate.workload import AIC, ALLOC, FUNCTIONS, GRAPH, NODE_BITS, Subtasks, Tasks
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

LOOP = 250
#: Begin and end of the windows of an iteration.
COMPLETE, DUMMY, RELEASE = (0, 100), (105, 125), (234, 246)
_EARLY, _DISPATCH = (130, 150), (160, 230)
#: v3c stages tasks after it has dispatched others.
_DISPATCH_FIRST, _EARLY_LAST = (130, 200), (205, 230)
_FIRST_FINISH, _LAST_FINISH = 5, 35
#: A graph is prepared in so many slices, in each iteration at most so many of them.
SLICES, WINDOWS = 2, 10
_STAMP = 3  # from the begin of a dispatch window to its stamp


@dataclass
class Run:
    """Events of a run. Timestamps are ticks since its start.

    Attributes:
        scenario, tasks: what was run.
        task, engine, function: [rows], as the workload has them.
        core, counter: [rows], where each ran; the core's dispatches are counted from 1.
        epoch: [rows], in which run of a file with several, from 1.
        first_iterations: [episodes], where each begins.
        dispatch, receive, start, end, finish: [rows].
        staged: bool [rows], sent before its producers had ended.
        iteration, finish_iteration: [rows], of its scheduler thread.
        thread_of: [cores].
        shift: [threads], where the first iteration of each begins.
        submit_start, submit_end: [tasks].
        bare_thread, bare_iteration: [tasks], who passed a task that runs on no core, and when.
    """

    scenario: Scenario
    tasks: Tasks
    task: Int64
    engine: Int64
    function: Int64
    core: Int64
    counter: Int64
    epoch: Int64
    first_iterations: Int64
    dispatch: Int64
    receive: Int64
    start: Int64
    end: Int64
    finish: Int64
    staged: Mask
    iteration: Int64
    finish_iteration: Int64
    thread_of: Int64
    shift: Int64
    submit_start: Int64
    submit_end: Int64
    bare_thread: Int64
    bare_iteration: Int64

    def __len__(self) -> int:
        return len(self.task)

    @property
    def is_node(self) -> Mask:
        """Rows that are nodes of a graph, bool [rows]."""
        found: Mask = self.tasks.kind[self.task] == GRAPH
        return found

    @property
    def token(self) -> npt.NDArray[np.uint64]:
        """Task ids as cores record them, uint64 [rows]: nodes have ids of their own."""
        found = self.tasks.task_id[self.task]
        rows = np.flatnonzero(self.is_node)
        rows = rows[np.argsort(self.task[rows], kind="stable")]
        # One node of a graph has no kernel: its number is not used.
        node = rank(self.task[rows])
        node += node > 0
        number = node.astype(np.uint64)
        if self.scenario.format_version == "v4":
            # A space of their own, with the lowest bits of the number of their graph.
            found[rows] = (1 << 62) | (found[rows] & np.uint64(0xFFFFF)) << np.uint64(32) | number
        else:
            found[rows] = (1 << 32) | (found[rows] << np.uint64(NODE_BITS)) | number
        return found

    def begin(self, thread: Int64, iteration: Int64) -> Int64:
        """Return when iterations of threads begin."""
        found: Int64 = self.shift[thread] + iteration * LOOP * self.scenario.unit
        return found


def run(scenario: Scenario, tasks: Tasks, rows: Subtasks, random: np.random.Generator) -> Run:
    """Run a graph."""
    return _Chip(scenario, tasks, rows, random).run()


class _Chip:
    def __init__(self, scenario: Scenario, tasks: Tasks, rows: Subtasks, random: np.random.Generator) -> None:
        self.s, self.tasks, self.rows, self.random = scenario, tasks, rows, random
        self.u = scenario.unit
        self.thread_of = _threads(scenario)
        self.shift = random.integers(0, LOOP * self.u, scenario.threads)

    def iteration(self, thread: Int64, time: Int64, window: int) -> Int64:
        """Return the first iteration of a thread whose window begins at or after a time."""
        found: Int64 = np.maximum(-((self.shift[thread] + window * self.u - time) // (LOOP * self.u)), 0)
        return found

    def begin(self, thread: Int64, iteration: Int64) -> Int64:
        found: Int64 = self.shift[thread] + iteration * (LOOP * self.u)
        return found

    def run(self) -> Run:
        s, u, random, tasks, rows = self.s, self.u, self.random, self.tasks, self.rows
        n, m = len(tasks), len(rows.task)
        length, pause = random.integers(10, 50, n) * u, random.integers(2, 12, n) * u
        self.submit_end = np.cumsum(length + pause)
        if not s.host:
            # Each episode has its own zero; a host that orchestrates is done with all before the device begins.
            before = (self.submit_end - length - pause)[np.searchsorted(tasks.episode, np.arange(s.episodes))]
            self.submit_end -= before[tasks.episode]
        self.submit_start = self.submit_end - length
        # A graph is prepared before its first node goes out.
        submitted = np.full(n, lead(s, tasks) * LOOP * u) if s.host else self.submit_end

        typical = random.lognormal(np.log(1500), 0.7, 2 * FUNCTIONS)
        duration = np.maximum((typical[rows.function] * random.lognormal(0, 0.1, m)).astype(np.int64), 20) * u
        crossing = random.integers(10, 30, m) * u
        warm, cold = random.integers(0, 6, m) * u, random.integers(35, 181, m) * u
        cleanup = random.integers(2, 6, m) * u
        bell = random.integers(10, 30, m) * u

        self.episode = tasks.episode[rows.task]
        self.core = np.zeros(m, np.int64)
        self.counter, self.dispatch, self.receive, self.start, self.end, self.finish = np.zeros((6, m), np.int64)
        self.at, self.seen = np.zeros((2, m), np.int64)
        self.staged = np.zeros(m, np.bool_)
        places = s.episodes * s.cores
        free, latest, dispatches, observed = np.zeros((4, places), np.int64)
        running = np.full(places, -1)  # function of the last kernel
        place = np.zeros((2, places), np.int64)  # when the two places of a core are free again
        self.retired = np.where(tasks.kind == ALLOC, submitted, 0)
        sent = np.zeros(n, np.int64)  # last dispatch of a task
        self.bare_thread = random.integers(0, s.threads, n)
        self.bare_iteration = np.zeros(n, np.int64)
        ready, going = submitted.copy(), submitted.copy()

        waves = len(rows.wave_bounds) - 1
        row_bound = rows.wave_bounds.tolist()
        waits = np.flatnonzero(~tasks.ignores[tasks.succ])
        succ, pred, edge_bound = _by_wave(
            tasks.first_wave[tasks.succ[waits]], waves, tasks.succ[waits], tasks.pred[waits]
        )
        bare = np.flatnonzero(tasks.is_bare)
        passing, _, bare_bound = _by_wave(tasks.first_wave[bare], waves, bare, bare)
        engines = (np.arange(s.aic), s.aic + np.arange(s.aiv))
        early_window, window_of_dispatch = windows(s)
        stamp_at, early_at = (window_of_dispatch[0] + _STAMP) * u, (early_window[0] + _STAMP) * u
        for w in range(max(waves, 1)):
            first, last = edge_bound[w], edge_bound[w + 1]
            here, before_ = succ[first:last], pred[first:last]
            np.maximum.at(ready, here, self.retired[before_])
            np.maximum.at(going, here, sent[before_])
            self._pass(passing[bare_bound[w] : bare_bound[w + 1]], ready)
            if w >= waves:
                break
            now = slice(row_bound[w], row_bound[w + 1])
            task, episode = rows.task[now], self.episode[now]
            core = self._choose(free, engines, now)
            on = episode * s.cores + core
            thread = self.thread_of[core]
            dispatches[on] += 1
            slot = dispatches[on] & 1
            open_ = np.maximum(place[slot, on], latest[on])

            # Normal dispatch, or early where the producers are on their way but not over.
            at = self.iteration(thread, np.maximum(ready[task], open_), window_of_dispatch[0])
            dispatch = self.begin(thread, at) + stamp_at
            if s.has_staging:
                early = self.iteration(thread, np.maximum(going[task], open_), early_window[0])
                early_stamp = self.begin(thread, early) + early_at
                staged = tasks.staged[task] & (early_stamp < ready[task])
                at, dispatch = np.where(staged, early, at), np.where(staged, early_stamp, dispatch)
            else:
                staged = np.zeros(len(task), np.bool_)

            # Register writes follow one another; then the way across the chip, and the core has to be free.
            lane = episode * s.threads + thread
            pickup = np.maximum(dispatch + _rank(lane, at) * u + crossing[now], free[on] + 1)
            setup = np.where(running[on] != rows.function[now], cold[now], warm[now])
            doorbell = ready[task] + bell[now]
            gated = staged & (doorbell > pickup)
            if s.stamps_again:
                receive = np.where(gated, doorbell, pickup)
                # Most of the setup was done while it waited.
                start = receive + np.where(gated, np.minimum(setup, 3 * u), setup)
            else:
                receive = pickup
                start = np.where(gated, np.maximum(doorbell + 2 * u, pickup + setup), pickup + setup)
            stop = start + duration[now]
            seen = self.iteration(thread, stop, COMPLETE[0])
            window = self.begin(thread, seen)
            finish = window + np.minimum(_FIRST_FINISH + _rank(lane, seen), _LAST_FINISH) * u
            # Of a core, the end that came first is seen first.
            finish = observed[on] = np.maximum(finish, observed[on])

            free[on] = stop + cleanup[now]
            running[on] = rows.function[now]
            place[slot, on], latest[on] = finish, dispatch
            np.maximum.at(self.retired, task, window + COMPLETE[1] * u)
            np.maximum.at(sent, task, dispatch)
            self.core[now], self.counter[now] = core, dispatches[on]
            self.dispatch[now], self.receive[now] = dispatch, receive
            self.start[now], self.end[now], self.finish[now] = start, stop, finish
            self.staged[now], self.at[now], self.seen[now] = staged, at, seen
        return self._joined(dispatches.reshape(s.episodes, s.cores))

    def _pass(self, passing: Int64, ready: Int64) -> None:
        """Pass tasks that run on no core."""
        if len(passing):
            thread = self.bare_thread[passing]
            at = self.iteration(thread, ready[passing], DUMMY[0])
            self.bare_iteration[passing] = at
            self.retired[passing] = self.begin(thread, at) + DUMMY[1] * self.u

    def _choose(self, free: Int64, engines: tuple[Int64, Int64], now: slice) -> Int64:
        """Return the core of each row of a wave: those of its engine that are free first; blocks take a cluster."""
        by_episode = free.reshape(self.s.episodes, self.s.cores)
        episode, ordinal = self.episode[now], self.rows.ordinal[now]
        on_aic = self.rows.engine[now] == AIC
        core = np.empty(len(episode), np.int64)
        single = np.ones(len(episode), np.bool_)
        if self.s.has_clusters and (self.rows.block[now] >= 0).any():
            mixed = np.flatnonzero(self.rows.block[now] >= 0)
            core[mixed] = self._cluster_cores(by_episode, episode[mixed], now.start + mixed)
            single[mixed] = False
            by_episode = by_episode.copy()
            by_episode[episode[mixed], core[mixed]] = np.iinfo(np.int64).max
            ordinal = np.zeros(len(episode), np.int64)
            ordinal[single] = _rank(episode[single], on_aic[single])
        for mine, members in ((on_aic & single, engines[0]), (~on_aic & single, engines[1])):
            order = members[np.argsort(by_episode[:, members], axis=1, kind="stable")]
            core[mine] = order[episode[mine], ordinal[mine]]
        return core

    def _cluster_cores(self, free: Int64, episode: Int64, rows: Int64) -> Int64:
        """Return the cores of rows of MIX tasks: their blocks take the clusters that are free first."""
        aic = self.s.aic
        by_cluster = np.maximum(free[:, :aic], free[:, aic:].reshape(-1, aic, 2).max(axis=2))
        order = np.argsort(by_cluster, axis=1, kind="stable")
        block, is_cube = self.rows.block[rows], self.rows.engine[rows] == AIC
        number = np.zeros(int(block.max()) + 1, np.int64)
        number[block[is_cube]] = rank(episode[is_cube])
        cluster = order[episode, number[block]]
        return np.where(is_cube, cluster, aic + 2 * cluster + self.rows.half[rows])

    def _joined(self, dispatches: Int64) -> Run:
        """Put the episodes behind one another, each when the one before it is over."""
        s, loop, tasks = self.s, LOOP * self.u, self.tasks
        ends = np.zeros(s.episodes, np.int64)
        np.maximum.at(ends, self.episode, (self.seen + 1) * loop + loop)
        submitted = 0 if s.host else self.submit_end
        np.maximum.at(ends, tasks.episode, np.maximum(submitted, self.retired) + loop)
        loops = np.cumsum(-(-ends // loop) + 2)
        first = np.concatenate([[0], loops[:-1]])
        shift, task_shift = (first * loop)[self.episode], (first * loop)[tasks.episode]
        submit_shift = 0 if s.host else task_shift
        counter = self.counter
        if s.epochs == 1:
            done = np.cumsum(dispatches, axis=0) - dispatches
            counter = counter + done[self.episode, self.core]
        return Run(
            scenario=s,
            tasks=tasks,
            task=self.rows.task,
            engine=self.rows.engine,
            function=self.rows.function,
            core=self.core,
            counter=counter,
            epoch=self.episode + 1 if s.epochs > 1 else np.ones(len(self.episode), np.int64),
            first_iterations=first,
            dispatch=self.dispatch + shift,
            receive=self.receive + shift,
            start=self.start + shift,
            end=self.end + shift,
            finish=self.finish + shift,
            staged=self.staged,
            iteration=self.at + first[self.episode],
            finish_iteration=self.seen + first[self.episode],
            thread_of=self.thread_of,
            shift=self.shift,
            submit_start=self.submit_start + submit_shift,
            submit_end=self.submit_end + submit_shift,
            bare_thread=self.bare_thread,
            bare_iteration=self.bare_iteration + first[tasks.episode],
        )


def _threads(s: Scenario) -> Int64:
    """Return the scheduler thread of each core, int64 [cores]: clusters of one AIC and two AIV go round, if known."""
    core = np.arange(s.cores)
    cluster = np.where(core < s.aic, core, (core - s.aic) // 2) if s.is_observed else core
    return cluster % s.threads


def windows(s: Scenario) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the windows of early dispatch and of dispatch."""
    return (_EARLY_LAST, _DISPATCH_FIRST) if s.is_observed else (_EARLY, _DISPATCH)


def lead(s: Scenario, tasks: Tasks) -> int:
    """Return iterations that pass before the first task is ready, so that all graphs can be prepared."""
    return 3 - -int((tasks.nodes > 0).sum()) * SLICES // WINDOWS if s.graphs else 0


def _by_wave(wave: Int64, waves: int, first: Int64, second: Int64) -> tuple[Int64, Int64, list[int]]:
    """Return two columns in the order of their waves, and where each wave begins; the last one takes what is behind."""
    order = np.argsort(wave.astype(np.int32), kind="stable")
    bounds = np.searchsorted(wave[order], np.arange(max(waves, 1) + 1)).tolist()
    bounds[-1] = len(order)
    return first[order], second[order], bounds


def _rank(lane: Int64, iteration: Int64) -> Int64:
    """Return the ordinal of each pair among equal pairs, int64 [n]."""
    return rank(lane * (1 << 40) + iteration)


def rank(key: Int64) -> Int64:
    """Return the ordinal of each value among equal ones, int64 [n]."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    found = np.empty(len(key), np.int64)
    found[order] = np.arange(len(key)) - np.repeat(starts, np.diff(starts, append=len(key)))
    return found
