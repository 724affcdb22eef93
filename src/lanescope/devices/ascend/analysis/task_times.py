"""When the tasks of a graph ran: from executions, markers and submissions to one time per task."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.trace import Table, Trace
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

_LATEST, _EARLIEST = np.iinfo(np.int64).max, np.iinfo(np.int64).min


@frozen_class
class TaskTimes:
    """Times of tasks, [tasks], None where not known; in the unit of the trace.

    Attributes:
        begin: first start of an execution, or the marker; of an allocation the begin of its submission.
        begun: when the task counts as started for its producers: see ``ascend_tasks.effective_start_ts``.
        end: last end.
        ready: end of the last producer.
        early: by how much the task was dispatched before its last producer ended; None if it was not.
        bars: place of the lane, begin and end of each execution, by task.
        cores: names of the lanes of executions.
        last_end: last end of all tasks, None without any.
    """

    begin: list[int | None]
    begun: list[int | None]
    end: list[int | None]
    ready: list[int | None]
    early: list[int | None]
    bars: list[list[tuple[int, int, int]]]
    cores: list[str]

    @property
    def last_end(self) -> int | None:
        """The last end of all tasks, None without any."""
        return max((end for end in self.end if end is not None), default=None)


def task_times(trace: Trace, ids: npt.NDArray[np.uint64], place: Int64, tasks: int, allocs: Mask) -> TaskTimes:
    """Return when tasks ran; of a file with several runs nothing, as ids mean other tasks in other runs.

    Args:
        trace: a trace of one capture.
        ids: uint64 [m], ids of all tasks, rising.
        place: int64 [m], the task that the times of each id belong to.
        tasks: number of tasks.
        allocs: bool [m], which of the ids are allocations: they have ended when they were submitted.
    """
    sums = _Sums(tasks)
    bars: list[list[tuple[int, int, int]]] = [[] for _ in range(tasks)]
    cores: list[str] = []
    if not trace.details["ascend_graph_tasks"].valid("run_epoch").any():
        executions = trace.details["ascend_tasks"]
        at = place[np.searchsorted(ids, executions.values("task_id"))]
        ts, end, has_end = _spans(trace, executions.values("slice_id"))
        sums.add(at, ts, end, has_end, executions.values("effective_start_ts"))
        sums.dispatched(at, executions)
        cores = _add_bars(trace, executions.values("slice_id"), at, ts, np.where(has_end, end, ts), bars)
        for table, is_shown in (("ascend_coreless_tasks", np.ones(len(ids), np.bool_)), ("ascend_submits", allocs)):
            _add_coreless(trace, table, ids, np.where(is_shown, place, -1), sums)
    return TaskTimes(**sums.lists(), bars=bars, cores=cores)


class _Sums:
    """First and last times of tasks."""

    def __init__(self, tasks: int) -> None:
        self.begin, self.begun, self.ready = (np.full(tasks, _LATEST, np.int64) for _ in range(3))
        self.end, self.early = np.full(tasks, _EARLIEST, np.int64), np.zeros(tasks, np.int64)
        self.ready[:] = _EARLIEST
        self.is_open = np.zeros(tasks, np.bool_)

    def add(
        self, at: Int64, begin: Int64, end: Int64, has_end: Mask, begun: Int64, *, are_executions: bool = True
    ) -> None:
        """Add spans to the tasks ``at``; a task with a span that has no end has none."""
        np.minimum.at(self.begin, at, begin)
        np.minimum.at(self.begun, at, begun)
        np.maximum.at(self.end, at[has_end], end[has_end])
        self.is_open[at[~has_end]] = True

    def dispatched(self, at: Int64, executions: Table) -> None:
        """Add when producers ended, and what was dispatched before."""
        ready, dispatch = executions.values("ready_ts"), executions.values("dispatch_ts")
        known = executions.valid("ready_ts")
        np.maximum.at(self.ready, at[known], ready[known])
        known = known & executions.valid("dispatch_ts")
        np.maximum.at(self.early, at[known], (ready - dispatch)[known])

    @property
    def is_empty(self) -> Mask:
        """Tasks without any time, bool [tasks]."""
        found: Mask = self.begin == _LATEST
        return found

    def lists(self) -> dict[str, list[int | None]]:
        """Return the columns of ``TaskTimes`` that are times."""

        def known(values: Int64, mask: Mask) -> list[int | None]:
            return [value if has else None for value, has in zip(values.tolist(), mask.tolist(), strict=True)]

        return {
            "begin": known(self.begin, self.begin != _LATEST),
            "begun": known(self.begun, self.begun != _LATEST),
            "end": known(self.end, (self.end != _EARLIEST) & ~self.is_open),
            "ready": known(self.ready, self.ready != _EARLIEST),
            "early": known(self.early, self.early > 0),
        }


def _spans(trace: Trace, slices: Int64) -> tuple[Int64, Int64, Mask]:
    """Return begin and end of slices, int64 [n], and which have an end, bool [n]."""
    ts, dur = trace.slices.values("ts")[slices], trace.slices.values("dur")[slices]
    return ts, ts + dur, trace.slices.valid("dur")[slices]


def _add_bars(
    trace: Trace, slices: Int64, at: Int64, begin: Int64, end: Int64, bars: list[list[tuple[int, int, int]]]
) -> list[str]:
    """Add the executions of each task, (lane, begin, end), and return the names of the lanes."""
    tracks, lane = np.unique(trace.slices.values("track_id")[slices], return_inverse=True)
    for task, *bar in zip(at.tolist(), lane.reshape(-1).tolist(), begin.tolist(), end.tolist(), strict=True):
        bars[task].append((bar[0], bar[1], bar[2]))
    names: list[str] = trace.tracks.column("name").texts[tracks].tolist()
    return names


def _add_coreless(trace: Trace, table: str, ids: npt.NDArray[np.uint64], place: Int64, sums: _Sums) -> None:
    """Add the slices of tasks that run on no core and have no time yet."""
    rows = trace.details[table]
    known = np.flatnonzero(rows.valid("task_id") & _is_on_axis(trace, rows.values("slice_id")))
    at = place[np.searchsorted(ids, rows.values("task_id")[known])]
    missing = (at >= 0) & sums.is_empty[at]
    begin, end, has_end = _spans(trace, rows.values("slice_id")[known[missing]])
    sums.add(at[missing], begin, end, has_end, begin)


def _is_on_axis(trace: Trace, slices: Int64) -> Mask:
    """Return which slices are of a clock that is aligned with that of the device, bool [n]."""
    clocks = trace.details["ascend_runs"].values("clocks").tolist()
    if set(clocks) <= {"", "aligned"}:
        return np.ones(len(slices), np.bool_)
    on_host = trace.clocks.column("device").texts == "host"
    clock = trace.tracks.values("clock_id")[trace.slices.values("track_id")[slices]]
    found: Mask = ~np.append(on_host, False)[clock]
    return found


def slack_of_edges(times: TaskTimes, pred: Int64, succ: Int64) -> list[int | None]:
    """Return the time from the end of each producer to the start of its consumer, [edges], None if not known."""
    return [
        None if (end := times.end[first]) is None or (begun := times.begun[second]) is None else begun - end
        for first, second in zip(pred.tolist(), succ.tolist(), strict=True)
    ]


def slack_of_tasks(times: TaskTimes, pred: Int64, succ: Int64) -> list[int | None]:
    """Return by how much each task could have ended later before a consumer would have started later, [tasks].

    It is the smallest slack of the edges to its consumers; without consumers, the time to the last end of all tasks.
    It is None where an end, or the start of all consumers, is not known.
    """
    last = times.last_end
    has_consumer = np.zeros(len(times.end), np.bool_)
    has_consumer[pred] = True
    found = [
        None if end is None or last is None or used else last - end
        for end, used in zip(times.end, has_consumer.tolist(), strict=True)
    ]
    for task, slack in zip(pred.tolist(), slack_of_edges(times, pred, succ), strict=True):
        known = found[task]
        if slack is not None and (known is None or slack < known):
            found[task] = slack
    return found


def ready_of_graphs(times: TaskTimes, pred: Int64, succ: Int64, graphs: Mask) -> list[int | None]:
    """Return when tasks were ready, [tasks]: graphs when their last producer ended, as their nodes have no edges.

    A graph of which the end of a producer is not known keeps None.
    """
    found = list(times.ready)
    producers: dict[int, list[int | None]] = {}
    for first, second in zip(pred.tolist(), succ.tolist(), strict=True):
        if graphs[second]:
            producers.setdefault(second, []).append(times.end[first])
    for task, ends in producers.items():
        known = [end for end in ends if end is not None]
        found[task] = max(known) if len(known) == len(ends) else None
    return found
