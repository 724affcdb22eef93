"""The graph that a simulated chip runs: tasks, their subtasks, who waits for whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.simulate.scenario import Scenario
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

SINGLE, MIX, SPMD, DUMMY, ALLOC, PREDICATED, GRAPH = range(7)
#: A graph has 2 to 6 nodes; the ids of nodes have the number of the graph above these bits.
_FEWEST, _MOST, NODE_BITS = 2, 6, 10
#: Tasks in a scope, and rings that nested scopes use.
_SCOPE, _RINGS = 8, 3
AIC, AIV = 0, 1
#: Functions 0 to 9 run on AIC, 10 to 19 on AIV.
FUNCTIONS = 10
_NAMES = ("matmul", "proj", "qk", "pv", "gate_up", "softmax", "norm", "rope", "silu", "add", "spmd_copy")
#: The names that are known; other functions have none.
NAMES = dict(enumerate(_NAMES[:5])) | dict(enumerate(_NAMES[5:], FUNCTIONS))


@dataclass
class Tasks:
    """The graph: tasks in submit order, [tasks] each; a run is a sequence of episodes that do not overlap.

    Attributes:
        kind: ``SINGLE`` to ``GRAPH``.
        task_id: uint64.
        kernels: [tasks, 3], -1 where a slot is not used.
        blocks: as which a task runs.
        nodes: of a graph; 0 of other tasks.
        flagged: bool, its consumers may be staged early.
        staged: bool, it will be staged early where that helps.
        ignores: bool, it does not wait for its producers: an injected violation.
        episode: which it belongs to.
        first_wave: wave, within its episode, in which its subtasks begin.
        pred, succ: [edges], by consumer.
    """

    kind: Int64
    task_id: npt.NDArray[np.uint64]
    kernels: Int64
    blocks: Int64
    nodes: Int64
    flagged: Mask
    staged: Mask
    ignores: Mask
    episode: Int64
    first_wave: Int64
    pred: Int64
    succ: Int64

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def is_bare(self) -> Mask:
        """Tasks that a scheduler passes without a core, bool [tasks]."""
        return np.isin(self.kind, (DUMMY, PREDICATED))


@dataclass
class Subtasks:
    """What goes to the cores, in waves: in each an episode uses every core at most once. [rows], wave by wave.

    Attributes:
        task: index.
        engine: ``AIC`` or ``AIV``.
        function: that it runs.
        ordinal: among the rows of its episode, wave and engine.
        block: of a MIX task, counted over all tasks; -1 of other rows.
        half: 1 for the second vector row of its block, else 0.
        wave_bounds: [waves + 1], where each wave begins.
    """

    task: Int64
    engine: Int64
    function: Int64
    ordinal: Int64
    block: Int64
    half: Int64
    wave_bounds: Int64


def build(scenario: Scenario, random: np.random.Generator) -> tuple[Tasks, Subtasks]:
    """Draw a graph."""
    s = scenario
    n = s.tasks
    episode = np.arange(n) * s.episodes // n
    kind = random.choice(7, n, p=[max(1 - sum(s.shares), 0), *s.shares])
    if s.is_observed:
        # Somebody uses what is allocated: the last task of an episode allocates nothing.
        last = np.flatnonzero(np.diff(episode, append=s.episodes))
        kind[last[kind[last] == ALLOC]] = SINGLE
    function = random.integers(0, FUNCTIONS, (n, 2))
    on_vector = random.random(n) < s.aiv / s.cores
    second = random.random(n) < 0.3  # a MIX task with two vector halves
    second &= s.has_clusters
    most = np.maximum(np.where(on_vector, s.aiv, s.aic), 2)
    blocks = np.where(kind == SPMD, random.integers(2, np.minimum(most, 16) + 1), 1)
    if s.is_observed:
        blocks[(kind == MIX) & second & (random.random(n) < 0.5)] = min(2, s.aic)
    blocks[kind == GRAPH] = random.integers(_FEWEST, _MOST + 1, int((kind == GRAPH).sum()))
    is_plain = (kind == SINGLE) | (kind == SPMD) | (kind == PREDICATED) | (kind == GRAPH)
    aic_rows = np.select([kind == MIX, is_plain], [blocks, np.where(on_vector, 0, blocks)], 0)
    aiv_rows = np.select([kind == MIX, is_plain], [blocks * (1 + second), np.where(on_vector, blocks, 0)], 0)
    kernels = np.full((n, 3), -1)
    kernels[aic_rows > 0, 0] = function[aic_rows > 0, 0]
    slot = np.where(random.random(n) < 0.1, 2, 1)
    slot[kind == MIX] = 1
    has_vector = np.flatnonzero(aiv_rows > 0)
    kernels[has_vector, slot[has_vector]] = FUNCTIONS + function[has_vector, 1]
    both = np.flatnonzero((kind == MIX) & second)
    kernels[both, 2] = FUNCTIONS + function[both, 0]
    aic_rows[kind == PREDICATED] = aiv_rows[kind == PREDICATED] = 0

    count = aic_rows + aiv_rows
    after = np.cumsum(count)
    task = np.repeat(np.arange(n), count)
    engine = np.where(np.arange(len(task)) - (after - count)[task] < aic_rows[task], AIC, AIV)
    block, half = _blocks(kind, blocks, task, np.arange(len(task)) - (after - count)[task], aic_rows)
    vector = np.where((kernels[:, 1] >= 0)[task] & (half == 0), kernels[task, 1], kernels[task, 2])
    run = np.where(engine == AIC, kernels[task, 0], vector)
    # A block goes to the cores of one cluster at once.
    whole = np.where((block >= 0) & s.has_clusters, (after - count)[task], np.arange(len(task)))
    bounds = np.searchsorted(episode[task], np.arange(s.episodes + 1))
    wave, ordinal = _waves(engine, whole, bounds, (s.aic, s.aiv))
    first_wave, last_wave = _task_waves(wave, after, count, episode, s.episodes)
    pred, succ = _edges(s, random, kind, episode, first_wave, last_wave)
    flagged, staged, ignores = _roles(s, random, kind, pred, succ)
    # A graph is one task without a kernel; its nodes are known from their executions alone.
    kernels[kind == GRAPH] = -1
    parts = np.where(kind == GRAPH, blocks, 0)
    blocks[kind == GRAPH] = 1
    tasks = Tasks(
        kind=kind,
        task_id=_task_ids(s, n),
        kernels=kernels,
        blocks=blocks,
        nodes=parts,
        flagged=flagged,
        staged=staged,
        ignores=ignores,
        episode=episode,
        first_wave=first_wave,
        pred=pred,
        succ=succ,
    )
    waves = int(wave.max(initial=-1)) + 1
    order = np.argsort(wave.astype(np.int32), kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(wave, minlength=waves))])
    return tasks, Subtasks(task[order], engine[order], run[order], ordinal[order], block[order], half[order], bounds)


def _task_ids(s: Scenario, n: int) -> npt.NDArray[np.uint64]:
    """Return the ids of tasks: a ring, and a number that counts up within it where that is known."""
    number = np.arange(n)
    if not s.is_observed:
        ring, local = number // 512 % 4, number // 2048 * 512 + number % 512 if s.is_chip else number
    elif s.host:
        ring, local = np.zeros_like(number), number
    else:
        ring = number // _SCOPE % _RINGS
        local = number // (_SCOPE * _RINGS) * _SCOPE + number % _SCOPE
    return (ring.astype(np.uint64) << np.uint64(32)) | local.astype(np.uint64)


def _blocks(kind: Int64, blocks: Int64, task: Int64, place: Int64, cubes: Int64) -> tuple[Int64, Int64]:
    """Return of each row its block, counted over all MIX tasks, and whether it is the second vector row there.

    Args:
        kind: [tasks].
        blocks: [tasks].
        task: [rows].
        place: [rows], the ordinal within the task.
        cubes: [tasks], rows on cube cores, which come first.
    """
    is_mix = (kind == MIX)[task]
    first = np.cumsum(np.where(kind == MIX, blocks, 0)) - blocks
    vector = place - cubes[task]
    halves = np.maximum(np.bincount(task[vector >= 0], minlength=len(kind)) // np.maximum(blocks, 1), 1)[task]
    ordinal = np.where(vector < 0, place, vector // halves)
    return np.where(is_mix, first[task] + ordinal, -1), np.where(is_mix & (vector >= 0), vector % halves, 0)


def _waves(engine: Int64, whole: Int64, bounds: Int64, capacity: tuple[int, int]) -> tuple[Int64, Int64]:
    """Cut the rows of each episode into waves in which no engine has more rows than cores.

    Args:
        engine: [rows].
        whole: [rows], before which row a cut has to be that would come before this one.
        bounds: [episodes + 1], where their rows begin.
        capacity: cores of both engines.

    Returns:
        int64 [rows], the wave within the episode; int64 [rows], the ordinal among the rows of wave and engine.
    """
    counts = [np.concatenate([[0], np.cumsum(engine == kind)]) for kind in (AIC, AIV)]
    at, last = bounds[:-1].copy(), bounds[1:]
    begins = np.zeros(len(engine) + 1, np.bool_)
    starts = []
    while (at < last).any():
        here = at[at < last]
        starts.append(here)
        ends = [
            np.searchsorted(count, count[at] + most, side="right") - 1
            for count, most in zip(counts, capacity, strict=True)
        ]
        end = np.minimum(np.minimum(*ends), last)
        before = np.append(whole, 0)[end]
        at = np.where((end < last) & (before > at), before, end)
    begin = np.sort(np.concatenate(starts)) if starts else np.empty(0, np.int64)
    begins[begin] = True
    number = np.cumsum(begins[:-1])
    # Waves are counted within their episode.
    first = np.append(number, 0)[np.minimum(bounds[:-1], len(number))]
    wave = number - np.repeat(first, np.diff(bounds))
    origin = begin[number - 1] if len(begin) else number
    ordinal = np.where(
        engine == AIC,
        counts[AIC][:-1] - counts[AIC][origin],
        counts[AIV][:-1] - counts[AIV][origin],
    )
    return wave, ordinal


def _task_waves(wave: Int64, after: Int64, count: Int64, episode: Int64, episodes: int) -> tuple[Int64, Int64]:
    """Return the first and the last wave of each task; one without rows stands at the next row of its episode."""
    ends = np.zeros(episodes, np.int64)
    np.maximum.at(ends, episode, after)
    begins = np.concatenate([[0], ends[:-1]])
    has_rows = (ends > begins)[episode]
    if not len(wave):
        return np.zeros(len(after), np.int64), np.zeros(len(after), np.int64)
    first = np.where(has_rows, wave[np.clip(np.minimum(after - count, ends[episode] - 1), 0, None)], 0)
    last = np.where(has_rows & (count > 0), wave[np.maximum(after - 1, 0)], first)
    return first, last


def _edges(
    s: Scenario, random: np.random.Generator, kind: Int64, episode: Int64, first_wave: Int64, last_wave: Int64
) -> tuple[Int64, Int64]:
    """Draw the producers of each task: from earlier waves of its episode, near the task."""
    n = len(kind)
    waves = int(last_wave.max(initial=0)) + 1
    high = np.searchsorted(episode * waves + last_wave, episode * waves + first_wave, side="left")
    low = np.maximum(high - 3 * s.cores, np.searchsorted(episode, episode))
    degree = np.where((kind == ALLOC) | (high <= low), 0, random.poisson(s.producers, n))
    succ = np.repeat(np.arange(n), degree)
    pred = (low[succ] + random.random(len(succ)) * (high - low)[succ]).astype(np.int64)
    if s.is_observed:
        more = [_consumers(kind), _fan_in(s, kind, low, high)]
        pred, succ = (np.concatenate([mine, *(part[at] for part in more)]) for at, mine in enumerate((pred, succ)))
    pairs = np.sort(succ * n + pred)  # sorted nearly already: several times faster than np.unique
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    return pairs % n, pairs // n


def _consumers(kind: Int64) -> tuple[Int64, Int64]:
    """Return an edge from each allocation to the next task that is none: (producers, consumers)."""
    pred, others = np.flatnonzero(kind == ALLOC), np.flatnonzero(kind != ALLOC)
    return pred, others[np.searchsorted(others, pred)] if len(others) else pred


def _fan_in(s: Scenario, kind: Int64, low: Int64, high: Int64) -> tuple[Int64, Int64]:
    """Return the edges to the task that waits for the most others, as many as are asked for: (producers, consumers)."""
    widest = int(np.argmax(np.where(kind == ALLOC, 0, high - low)))
    pred = np.arange(low[widest], high[widest])
    pred = pred[kind[pred] != ALLOC][: s.fan_in]
    return pred, np.full(len(pred), widest)


def _roles(s: Scenario, random: np.random.Generator, kind: Int64, pred: Int64, succ: Int64) -> tuple[Mask, Mask, Mask]:
    """Draw which tasks allow early dispatch, which are staged so, and which do not wait."""
    n = len(kind)
    runs = kind <= SPMD
    waits = np.zeros(n, np.bool_)
    waits[succ[runs[pred]]] = True
    flagged, staged = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    if s.has_staging and s.speculative > 0:
        staged = runs & waits & (random.random(n) < s.speculative)
        # A task may be staged only if all its producers allow it; many allow it without any effect.
        flagged[pred[staged[succ]]] = True
        flagged |= random.random(n) < s.speculative / 2
    # Somebody must be able to tell that a violating task was not staged: a producer with rows does not allow it.
    forbids = np.zeros(n, np.bool_)
    forbids[succ[~flagged[pred] & runs[pred]]] = True
    ignores = np.zeros(n, np.bool_)
    ignores[random.permutation(np.flatnonzero(forbids & runs))[: s.violations]] = True
    return flagged, staged, ignores
