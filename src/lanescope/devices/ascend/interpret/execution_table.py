"""Executions: the rows of the cores with everything that is known of them, and what is known to be missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.missing_records import Gaps, sequence_gaps
from lanescope.declaration import frozen_class, replace
from lanescope.devices.ascend.formats.keyed_rows import KeyedRows
from lanescope.devices.ascend.formats.layout import REG_TASK_IDS
from lanescope.devices.ascend.formats.records import Section, UInt64
from lanescope.devices.ascend.interpret import graph as graphs
from lanescope.devices.ascend.interpret.graph import Graph, Intervals
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]


def receives(aicore: Section) -> tuple[Int64, Mask]:
    """Return the receive stamps of rows, int64 [n] cycles, and where there is one, bool [n]."""
    known = aicore.has("receive_to_start_cycles")
    stamp = aicore["start_cycles"] - aicore["receive_to_start_cycles"]
    known = known & (stamp > 0)
    return np.where(known, stamp, 0), known


@frozen_class
class Executions:
    """The executions of a capture, as columns of [n].

    Stamps are int64 cycles, 0 where unknown.

    Attributes:
        core: int64, index of the core.
        core_type: uint8, ``graph.AIC``, ``AIV`` or ``UNKNOWN``.
        counter: int64, ``reg_task_id``.
        task: int64, index in the graph.
        task_id: uint64.
        dispatch, receive, start, end, finish: stamps; every row has a start.
        ready: stamp, the last producer with rows had ended.
        judged: stamp, when the row counts as begun for its producers.
        may_be_staged: bool; None where the question does not arise.
        gate: int64 cycles from receive to ready that were no setup, an estimate; 0 else.
        function: int64, -1 where unknown.
        block: int64, ordinal among the rows of its task on cores of one type.
        is_spmd: bool.
        epoch: int64, run of the file; None: there is one.
        has_counter: whether ``counter`` is the core's; else it only tells rows apart.
    """

    core: Int64
    core_type: UInt8
    counter: Int64
    task: Int64
    task_id: UInt64
    dispatch: Int64
    receive: Int64
    start: Int64
    end: Int64
    finish: Int64
    ready: Int64
    judged: Int64
    may_be_staged: Mask | None
    gate: Int64
    function: Int64
    block: Int64
    is_spmd: Mask
    epoch: Int64 | None = None
    has_counter: bool = True

    def __len__(self) -> int:
        return len(self.core)

    @property
    def judged_at_receive(self) -> Mask:
        """Bool [n], whether ``judged`` is the receive stamp; else it is the start."""
        staged = self.may_be_staged
        return self.receive > 0 if staged is None else (self.receive > 0) & ~staged

    @property
    def setup(self) -> Int64:
        """int64 [n] cycles from receive to start without the gate; 0 where receive is unknown."""
        return np.where(self.receive > 0, self.start - self.receive - self.gate, 0)


def executions(
    aicore: KeyedRows,
    aicpu: KeyedRows,
    partner: Int64,
    graph: Graph,
    core_types: UInt8,
    epoch: Int64 | None = None,
) -> Executions:
    """Put together what is known of each execution, where the receive stamp is taken after the wait for producers.

    Args:
        aicore: rows of the cores, all of which have a start.
        aicpu: rows of the schedulers.
        partner: int64 [n], the AICPU row of each execution, -1 without.
        graph: the task graph; it has the ids of all rows.
        core_types: uint8 [cores], type of each core; cores beyond are of unknown type.
        epoch: int64 [n], run of each row; None: there is one.
    """
    rows = aicore.section
    core = rows["core_id"].astype(np.int64)
    types = np.full(int(core.max(initial=-1)) + 1, graphs.UNKNOWN, np.uint8)
    types[: len(core_types)] = core_types[: len(types)]
    core_type = types[core]
    halves = np.full(len(types), -1, np.int8)
    halves[: len(core_types)] = graphs.vector_halves(core_types)[: len(types)]
    task = graph.index(rows["task_token_raw"], epoch)
    start, end = rows["start_cycles"], rows["end_cycles"]
    receive, has_receive = receives(rows)
    dispatch, finish = (_joined(aicpu.section[name], partner) for name in ("dispatch_cycles", "finish_cycles"))

    last_end, _ = graphs.extreme(task, end, len(graph), largest=True)
    ready = graphs.ready(graph, last_end)[task]
    slot = graphs.slots(graph, task, core_type, halves[core])
    return Executions(
        core=core,
        core_type=core_type,
        counter=rows["reg_task_id"],
        task=task,
        task_id=rows["task_token_raw"],
        dispatch=dispatch,
        receive=receive,
        start=start,
        end=end,
        finish=finish,
        ready=ready,
        judged=np.where(has_receive, receive, start),
        may_be_staged=None,
        gate=np.zeros(len(rows), np.int64),
        function=graphs.functions(graph, task, slot),
        block=graphs.blocks(task, slot, start),
        is_spmd=graphs.is_spmd(graph, task, core_type)[task],
        epoch=epoch,
        has_counter=not len(rows) or bool(rows.has("reg_task_id").any()),
    )


def _joined(values: Int64, partner: Int64) -> Int64:
    if not len(values):
        return np.zeros(len(partner), np.int64)
    return np.where(partner >= 0, values[partner], 0)


@frozen_class
class Staging:
    """Records of tasks that were sent to a core before their producers had ended.

    Attributes:
        forbids: bool [tasks], no consumer of the task may be staged while it runs.
        ended: int64 [tasks], cycles, when the task had ended; 0 where unknown.
        submitted: int64 [tasks], cycles, when its submission began; 0 where unknown.
        thread_of_core: int64 [cores], -1 where unknown.
        early, normal: the phases that dispatch early, and those that do not.
    """

    forbids: Mask
    ended: Int64
    submitted: Int64
    thread_of_core: Int64
    early: Intervals
    normal: Intervals

    def possible(self, graph: Graph, task: Int64, core: Int64, dispatch: Int64) -> Mask:
        """Return which rows may have been staged, bool [n]: neither graph nor phases exclude it."""
        maybe = graphs.may_be_staged(graph, self.forbids, self.ended, self.submitted)[task]
        threads = np.append(self.thread_of_core, -1)
        thread = threads[np.minimum(core, len(threads) - 1)]
        rows = np.flatnonzero(maybe & (thread >= 0) & (dispatch > 0))
        # A stamp in no phase or in both proves nothing.
        proven = self.normal.contain(thread[rows], dispatch[rows]) & ~self.early.contain(thread[rows], dispatch[rows])
        maybe[rows[proven]] = False
        return maybe


def staged(runs: Executions, graph: Graph, staging: Staging) -> Executions:
    """Return executions whose receive stamp was taken at pickup: those that may have been staged count from the start.

    Args:
        runs: as ``executions`` returns them.
        graph: the task graph.
        staging: what is known about early dispatch.
    """
    maybe = (runs.receive > 0) & staging.possible(graph, runs.task, runs.core, runs.dispatch)
    waits = maybe & (runs.receive < runs.ready) & (runs.ready <= runs.start)
    return replace(
        runs,
        judged=np.where(maybe, runs.start, runs.judged),
        may_be_staged=maybe,
        gate=np.where(waits, runs.ready - runs.receive, 0),
    )


@frozen_class
class LossSummary:
    """Executions that are missing from the capture, and where on their cores.

    Attributes:
        lost: rows of the schedulers whose execution is missing.
        holes: how many dispatches neither stream has; a lower bound.
        core: int64 [places].
        begin, end: int64 [places], cycles between which the core's state is unknown; begin < end.
        count: int64 [places], executions missing there.
        after: int64 [places], the execution that ends the place, -1 without.
    """

    lost: int
    holes: int
    core: Int64
    begin: Int64
    end: Int64
    count: Int64
    after: Int64


def anywhere(cores: Int64, begin: int, end: int) -> LossSummary:
    """Return a loss of unknown size: executions may be missing on some cores at any time between two timestamps."""
    count = len(cores)
    first, last = np.full(count, begin, np.int64), np.full(count, end, np.int64)
    return LossSummary(0, 0, cores, first, last, np.zeros(count, np.int64), np.full(count, -1, np.int64))


def losses(runs: Executions, aicpu: KeyedRows, orphans: Int64) -> LossSummary:
    """Find what is missing.

    Args:
        runs: the executions.
        aicpu: rows of the schedulers.
        orphans: int64 [m], those of its rows whose execution is missing.
    """
    rows = aicpu.section
    # All dispatches that are known, executions first.
    core = np.concatenate([runs.core, rows["core_id"][orphans].astype(np.int64)])
    counter = np.concatenate([runs.counter, rows["reg_task_id"][orphans]])
    dispatch, finish = rows["dispatch_cycles"][orphans], rows["finish_cycles"][orphans]
    took = np.where(runs.receive > 0, runs.receive, runs.start)
    begin = np.concatenate([took, dispatch])
    end = np.concatenate([np.maximum(runs.end, runs.start), finish])
    # Counters that restart with each run are counters of their own.
    lane, lanes = core, int(core.max(initial=0)) + 1
    if runs.epoch is not None:
        epoch = np.concatenate([runs.epoch, rows["run_epoch"][orphans]])
        lane = np.unique(epoch, return_inverse=True)[1].reshape(-1) * lanes + core
    shown = slice(None) if runs.has_counter else slice(0)
    times = np.concatenate([runs.start, dispatch])
    found = sequence_gaps(counter[shown], period=REG_TASK_IDS, group=lane[shown], order=times[shown])
    places = [_between(found, lane, begin, end, len(runs))]
    if len(orphans):
        places.append(_orphans(runs, took, lane, counter, dispatch, finish))
    joined = {name: np.concatenate([place[name] for place in places]) for name in places[0]}
    joined["core"] %= lanes
    is_place = joined["begin"] < joined["end"]
    return LossSummary(len(orphans), found.total, **{name: value[is_place] for name, value in joined.items()})


def _between(found: Gaps, lane: Int64, begin: Int64, end: Int64, runs: int) -> dict[str, Any]:
    """Place dispatches that neither stream has between their neighbours by the core's counter."""
    known = (end[found.before] > 0) & (begin[found.after] > 0)
    return {
        "core": lane[found.before][known],
        "begin": end[found.before][known],
        "end": begin[found.after][known],
        "count": found.count[known],
        "after": np.where(found.after < runs, found.after, -1)[known],
    }


def _orphans(
    runs: Executions, took: Int64, lanes: Int64, counters: Int64, dispatch: Int64, finish: Int64
) -> dict[str, Any]:
    """Place missing executions between dispatch and finish, and between their neighbours by the core's counter."""
    own, core, counter = lanes[: len(runs)], lanes[len(runs) :], counters[len(runs) :]
    order = np.lexsort((runs.counter, own))
    keys = (own << 32 | runs.counter)[order]
    at = np.searchsorted(keys, core << 32 | counter)
    begin, end = dispatch, finish
    after = np.full(len(core), -1, np.int64)
    if len(order):
        previous, following = order[np.maximum(at - 1, 0)], order[np.minimum(at, len(order) - 1)]
        has_previous = (at > 0) & (own[previous] == core)
        has_following = (at < len(order)) & (own[following] == core)
        low = np.where(has_previous, np.maximum(dispatch, runs.end[previous]), dispatch)
        high = np.where(has_following, np.minimum(finish, took[following]), finish)
        # Neighbours that leave no room prove that counters and stamps do not belong together: the stamps stand.
        fits = low < high
        begin, end = np.where(fits, low, dispatch), np.where(fits, high, finish)
        after[has_following & fits] = following[has_following & fits]
    # Without both timestamps the extent is unknown.
    end = np.where((dispatch > 0) & (finish > 0), end, begin)
    return {"core": core, "begin": begin, "end": end, "count": np.ones(len(core), np.int64), "after": after}
