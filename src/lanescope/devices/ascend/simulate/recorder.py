"""What cores and schedulers record of a run: what gets lost, what is repeated, whose clock stepped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.devices.ascend.formats.layout import AICORE, AICPU, REG_TASK_IDS, SUBMITS
from lanescope.devices.ascend.formats.records import Section, section
from lanescope.devices.ascend.simulate.chip import Run
from lanescope.devices.ascend.simulate.scenario import Scenario
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: Ticks by which a clock steps: more than any way to a core takes.
_STEP = (1 << 20, 1 << 21)
#: Rows that show it, at least.
_STEP_ROWS = 12


@dataclass
class Recorded:
    """The streams of a run, and what became of each row.

    Attributes:
        base: reading of the counter at the begin of the run.
        reg_task_id: [rows], the counter as it is written.
        order: [rows], by core and counter.
        has_aicore, has_aicpu: bool [rows], the row's records were kept.
        contradicted: bool [rows], another record has its key and says something else.
        stepped: bool [rows], the clock of its core was off.
        steps: clocks that stepped.
        aicore, aicpu: the streams.
    """

    base: int
    reg_task_id: Int64
    order: Int64
    has_aicore: Mask
    has_aicpu: Mask
    contradicted: Mask
    stepped: Mask
    steps: int
    aicore: Section
    aicpu: Section


def step_clocks(run: Run, random: np.random.Generator) -> tuple[Run, Mask, int]:
    """Let the clocks of some cores step, for the rest of the run or for a while.

    Returns:
        The run as it is stamped, bool [rows] which rows that concerns, and how many clocks stepped.
    """
    stepped = np.zeros(len(run), np.bool_)
    count = np.bincount(run.core, minlength=run.scenario.cores)
    # Few of the cores: a shift of many is not a clock fault.
    cores = random.permutation(np.flatnonzero(count >= 8))[: run.scenario.clock_steps]
    cores = cores[: max(int((count > 0).sum()) // 4, 1)]
    off = np.zeros(len(run), np.int64)
    least = run.scenario.clock_step_ns * run.scenario.clock // 1_000_000_000
    low, high = (least, 2 * least) if least else (ticks * run.scenario.unit for ticks in _STEP)
    for core in cores.tolist():
        mine = np.flatnonzero(run.core == core)
        first = int(random.integers(0, len(mine) - 5))
        # A clock that steps back again does so well before the end: otherwise the second step is undetectable.
        lasts = len(mine) - first < 2 * _STEP_ROWS or random.random() < 0.5
        last = len(mine) if lasts else int(random.integers(first + 4, len(mine) - _STEP_ROWS))
        rows = mine[first:last]
        off[rows] = int(random.integers(low, high)) * (1 if random.random() < 0.5 else -1)
        stepped[rows] = True
    if not len(cores):
        return run, stepped, 0
    moved = {name: getattr(run, name) + off for name in ("receive", "start", "end")}
    return replace(run, **moved), stepped, len(cores)


def record(run: Run, random: np.random.Generator, base: int, stepped: Mask, steps: int) -> Recorded:
    """Write the streams of cores and schedulers, with the losses that were asked for."""
    s, rows = run.scenario, len(run)
    reg_task_id = (run.counter + REG_TASK_IDS - 8) % REG_TASK_IDS if s.wrap else run.counter
    order = _by_core(run)
    has_aicore, has_aicpu = np.ones(rows, np.bool_), np.full(rows, s.level > 1)
    picks = random.permutation(rows)
    first, second = s.drop_aicore, s.drop_aicore + s.drop_aicpu
    has_aicore[picks[:first]] = False
    has_aicpu[picks[first:second]] = False
    both = picks[second : second + s.drop_both]
    has_aicore[both] = has_aicpu[both] = False
    _overflow(run, random, order, has_aicore, has_aicpu)
    if s.is_v1 and s.level > 1:
        # The collector joins: what has no partner is not in the file.
        has_aicore &= has_aicpu
        has_aicpu = has_aicore.copy()

    kept = order[has_aicore[order]]
    columns: dict[str, Any] = {
        "core_id": run.core[kept],
        "task_token_raw": run.token[kept],
        "reg_task_id": reg_task_id[kept],
        "start_cycles": base + run.start[kept],
        "end_cycles": base + run.end[kept],
    }
    if s.has_receive:
        columns["receive_to_start_cycles"] = (run.start - run.receive)[kept]
    if s.format_version == "v4":
        columns["run_epoch"] = run.epoch[kept]
    aicore, contradicted = _repeated(section(AICORE, columns), run, reg_task_id, random)
    kept = order[has_aicpu[order]]
    columns = {
        "core_id": run.core[kept],
        "reg_task_id": reg_task_id[kept],
        "dispatch_cycles": base + run.dispatch[kept],
        "finish_cycles": base + run.finish[kept],
    }
    if s.format_version == "v4":
        columns["run_epoch"] = run.epoch[kept]
    aicpu = section(AICPU, columns)
    if s.shuffle:
        aicore = aicore.take(random.permutation(len(aicore)))
        aicpu = aicpu.take(random.permutation(len(aicpu)))
    return Recorded(base, reg_task_id, order, has_aicore, has_aicpu, contradicted, stepped, steps, aicore, aicpu)


def _by_core(run: Run) -> Int64:
    """Return the rows by core and dispatch, int64 [rows]: the dispatches of a core are numbered, no sort is needed."""
    counter = run.counter
    if run.scenario.epochs > 1:
        return np.lexsort((counter, run.epoch, run.core))
    count = np.bincount(run.core, minlength=run.scenario.cores)
    order = np.empty(len(run), np.int64)
    order[(np.cumsum(count) - count)[run.core] + counter - 1] = np.arange(len(run))
    return order


def _overflow(run: Run, random: np.random.Generator, order: Int64, has_aicore: Mask, has_aicpu: Mask) -> None:
    """Lose whole buffers of single cores: the free queue was empty when they had to be handed over."""
    s = run.scenario
    if not s.overflow or not len(run):
        return
    count = np.bincount(run.core, minlength=s.cores)
    place = np.empty(len(run), np.int64)
    place[order] = np.arange(len(run))
    buffer = (place - (np.cumsum(count) - count)[run.core]) // s.buffer
    key = run.core * (int(buffer.max()) + 1) + buffer
    used = distinct(key)
    streams = [has_aicore, has_aicpu] if s.level > 1 else [has_aicore]
    for pick in random.permutation(len(used) * len(streams))[: s.overflow].tolist():
        streams[pick % len(streams)][key == used[pick // len(streams)]] = False


def _repeated(aicore: Section, run: Run, reg_task_id: Int64, random: np.random.Generator) -> tuple[Section, Mask]:
    """Add rows that repeat others, and rows that contradict others; return the keys' rows that are contradicted."""
    s: Scenario = run.scenario
    contradicted = np.zeros(len(run), np.bool_)
    if not s.duplicates and not s.ambiguous:
        return aicore, contradicted
    count = len(aicore)
    picks = random.permutation(count)
    again = picks[: s.duplicates]
    against = picks[s.duplicates : s.duplicates + s.ambiguous]
    rows = np.sort(np.concatenate([np.arange(count), again, against]))
    made = aicore.take(rows)
    if len(against):

        def keys(core: Any, number: Any, epoch: Any) -> Int64:
            found: Int64 = (np.asarray(epoch, np.int64) * 65536 + core) << 31 | number
            return found

        mine = keys(run.core, reg_task_id, run.epoch if s.format_version == "v4" else 0)
        rows_of = {name: aicore[name][against].astype(np.int64) for name in ("core_id", "reg_task_id", "run_epoch")}
        theirs = keys(rows_of["core_id"], rows_of["reg_task_id"], rows_of["run_epoch"])
        contradicted = np.isin(mine, theirs)
        changed = np.isin(rows, against)
        changed[1:] &= rows[1:] == rows[:-1]
        changed[0] = False
        made.columns["end_cycles"][changed] -= 1
    return made, contradicted


def submits(run: Run, base: int) -> Section:
    """Return what the orchestrator records."""
    n = len(run.tasks)
    columns: dict[str, Any] = {
        "submit_idx": np.arange(n),
        "task_id": run.tasks.task_id,
        "start_cycles": base + run.submit_start,
        "end_cycles": base + run.submit_end,
    }
    if run.scenario.format_version == "v4":
        columns["run_epoch"] = run.tasks.episode + 1 if run.scenario.epochs > 1 else np.ones(n, np.int64)
    return section(SUBMITS, columns, group=np.zeros(n, np.int64))
