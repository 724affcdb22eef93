"""Hardware counters of executions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.emit.context import RecordSlices, TimelineBuilder, some
from lanescope.devices.ascend.formats.pmu import MOST_A_SECOND, MOST_OUTSIDE, Pmu
from lanescope.devices.ascend.interpret import graph as graphs
from lanescope.devices.ascend.interpret.execution_table import Executions
from lanescope.devices.ascend.interpret.resolve import thread_of_core
from lanescope.trace import Column
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]


#: Role of the tracks, and the name of their group.
_ROLE, _GROUP = "pmu", "Hardware counters"


def add_pmu(canvas: TimelineBuilder, drawn: RecordSlices) -> None:
    """Add the counters, each joined with its execution where it is known which that is, and draw those."""
    told, builder, pmu = canvas.told, canvas.builder, canvas.told.parts.pmu
    if pmu is None or not len(pmu):
        return
    run, without = _executions(pmu, told.runs)
    told.problems.append(("ascend_pmu_unmatched", int(np.count_nonzero(run < 0)), None))
    told.problems.append(("ascend_pmu_missing", without, None))
    told.problems.append(("ascend_pmu_contradicts", int(np.count_nonzero(_contradicted(canvas, pmu, run))), None))
    width = len(pmu.counters)
    row = np.repeat(np.arange(len(pmu)), width)
    codes = builder.dictionary("ascend_pmu", "counter").codes(pmu.counters)
    slices = np.append(drawn.ids, 0)[run][row]
    builder.append(
        "ascend_pmu",
        slice_id=Column.array(slices, valid=some((run >= 0)[row])),
        core=pmu.core[row].astype(np.int32),
        task_id=pmu.task_id[row],
        event_type=pmu.event_type[row],
        counter=np.tile(codes, len(pmu)),
        value=pmu.values.reshape(-1),
    )
    if canvas.style.is_full:
        _draw(canvas, pmu, run)


def _draw(canvas: TimelineBuilder, pmu: Pmu, run: Int64) -> None:
    """Draw the counters of each core: their values during its executions, 0 between them.

    An execution without a duration has no part of the axis, so only the table has its counters.
    """
    told, builder, runs = canvas.told, canvas.builder, canvas.told.runs
    rows = np.flatnonzero(run >= 0)
    rows = rows[runs.end[run[rows]] > runs.start[run[rows]]]
    if not len(rows):
        return
    core, begin, end = (values[run[rows]] for values in (runs.core.astype(np.int64), runs.start, runs.end))
    order = np.lexsort((begin, core))
    rows, core, begin, end = rows[order], core[order], begin[order], end[order]
    follows = np.append(begin[1:], np.iinfo(np.int64).max)
    follows[:-1][core[1:] != core[:-1]] = np.iinfo(np.int64).max
    closes = np.flatnonzero(end < follows)
    # Each sample is a row of the values, the last of which holds zeros; an end lies before the begin that follows it.
    place = np.argsort(np.append(np.arange(len(rows)), closes), kind="stable")
    source = np.append(rows, np.full(len(closes), len(pmu)))[place]
    stamp, core = np.append(begin, end[closes])[place], np.append(core, core[closes])[place]
    is_first = np.append(True, core[1:] != core[:-1])
    tracks = _tracks(canvas, pmu.counters, core[is_first])
    of_core = np.cumsum(is_first) - 1
    for counter, values in enumerate(pmu.values.T):
        value = np.append(values, 0)[source]
        changes = np.flatnonzero(is_first | np.append(True, value[1:] != value[:-1]))
        at = stamp[changes]
        builder.append(
            "counters",
            track_id=tracks[of_core[changes], counter],
            ts=Column.derived(len(at), partial(told.times.device, at)),
            value=value[changes].astype(np.float64),
        )


def _tracks(canvas: TimelineBuilder, counters: Sequence[str], cores: Int64) -> Int64:
    """Make a track for each counter of each core, grouped by core; return them, int64 [cores, counters]."""
    group = canvas.group(_GROUP, _ROLE)
    found = []
    for core in cores.tolist():
        parent = canvas.group(canvas.core_names[core], _ROLE, group)
        found.append([canvas.counter(parent, name, "", _ROLE) for name in counters])
    return np.array(found, np.int64)


def _contradicted(canvas: TimelineBuilder, pmu: Pmu, run: Int64) -> Mask:
    """Return which rows something else contradicts, bool [n].

    Those with another type of core or another thread than the core, a function that is none of the task, another group
    of counters than the others, more events than any core makes, or that stand before an earlier execution of the core.
    """
    told = canvas.told
    types = np.append(told.core_types.astype(np.int64), graphs.UNKNOWN)
    known = types[np.minimum(pmu.core, len(types) - 1)]
    wrong: Mask = (pmu.core_type >= 0) & (known != graphs.UNKNOWN) & (known != pmu.core_type)
    threads = np.append(thread_of_core(told.records.metadata), -1)
    thread = threads[np.minimum(pmu.core, len(threads) - 1)]
    wrong |= (pmu.thread >= 0) & (thread >= 0) & (thread != pmu.thread)
    # The columns are those of one group, which is selected for a run.
    wrong |= pmu.event_type != np.sort(pmu.event_type)[len(pmu) // 2]
    rows = np.flatnonzero((run >= 0) & (pmu.function >= 0))
    kernels = told.graph.kernels[told.runs.task[run[rows]]]
    wrong[rows] |= (kernels >= 0).any(axis=1) & ~(kernels == pmu.function[rows, None]).any(axis=1)
    rows = np.flatnonzero(run >= 0)
    start, end = told.runs.start[run[rows]], told.runs.end[run[rows]]
    most = MOST_OUTSIDE + MOST_A_SECOND * (end - start) / told.frequency
    wrong[rows] |= (pmu.values[rows] > most[:, None]).any(axis=1)
    order = np.argsort(pmu.core[rows], kind="stable")
    same = pmu.core[rows[order]][1:] == pmu.core[rows[order]][:-1]
    wrong[rows[order][1:]] |= same & (start[order][1:] < start[order][:-1])
    return wrong


def _executions(pmu: Pmu, runs: Executions) -> tuple[Int64, int]:
    """Return the execution of each row, int64 [n], -1 where it is not known; and how many have none of their task.

    A task may run on a core several times. Rows are in the order of execution; if their number is another one, which
    ones are missing is not known.
    """
    size = len(pmu)
    core, task = np.concatenate([pmu.core, runs.core]), np.concatenate([pmu.task_id, runs.task_id])
    is_run = np.arange(len(core)) >= size
    # Equal keys stand together: first the rows in the order of the file, then the executions by their start.
    stamp = np.concatenate([np.arange(size), runs.start])
    order = np.lexsort((stamp, is_run, task, core))
    changes = (np.diff(core[order]) != 0) | (task[order][1:] != task[order][:-1])
    key = np.concatenate([np.zeros(min(1, len(order)), np.int64), np.cumsum(changes)])
    keys = int(key[-1]) + 1 if len(key) else 0
    ran = np.bincount(key[is_run[order]], minlength=keys)
    counted = np.bincount(key[~is_run[order]], minlength=keys)
    matches = (ran == counted)[key]
    found = np.full(size, -1, np.int64)
    found[order[matches & ~is_run[order]]] = order[matches & is_run[order]] - size
    return found, int(ran[counted == 0].sum())


def account_pmu(canvas: TimelineBuilder, pmu: Pmu, size: int) -> None:
    """Add the accounting of the bytes."""
    canvas.account_lines("pmu", pmu.tally, size)
