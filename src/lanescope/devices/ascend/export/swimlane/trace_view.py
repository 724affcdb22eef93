"""A trace as the peer's converter looks at it: executions, phases, submits in microseconds, as plain lists."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.trace import Table, Trace
from lanescope.trace.column import Array

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ORCHESTRATOR, SCHEDULER, SCHEDULER_VIEW, WORKER_VIEW = 1, 2, 3, 4
#: Format versions of the newer naming.
CHIP = ("v3c", "v4")


class Rows:
    """A detail table and the slices that it tells of, [n].

    Attributes:
        table: the table.
        begin, end: microseconds, as lists; ``begin_at`` and ``end_at`` as arrays.
        ticks: int64, where they begin on their counter.
        name: names of the slices.
        track: int64, their lanes.
    """

    def __init__(self, content: Content, name: str) -> None:
        trace = content.trace
        self.table: Table = trace.details[name]
        at = self.table.values("slice_id")
        ticks, ns = trace.slices.values("ts_ticks")[at], trace.slices.values("ts")[at]
        self.ticks: Int64 = ticks
        self.begin_at = content.us(ticks, ns)
        self.end_at = content.us(ticks + trace.slices.values("dur_ticks")[at], ns + trace.slices.values("dur")[at])
        self.begin: list[float] = self.begin_at.tolist()
        self.end: list[float] = self.end_at.tolist()
        self.name: list[str] = trace.slices.values("name")[at].tolist()
        self.track: Int64 = trace.slices.values("track_id")[at]

    def __len__(self) -> int:
        return len(self.table)

    def list(self, name: str) -> list[int]:
        """Return a column as Python values."""
        values: list[int] = self.table.values(name).tolist()
        return values


class Content:
    """A trace of one capture.

    Attributes:
        trace: the trace.
        is_chip: it has the newer naming.
        on_host: the host orchestrates: all times are those of the host's clock.
        tasks, phases, submits, bare: the rows.
        start, end, receive, dispatch, finish: microseconds of the executions, lists; 0 where unknown.
        setup: microseconds from receive to start.
        bar: where the bar of each begins: with the newer naming at the receive.
        judged: when each counts as begun for its producers.
        is_joined: whether dispatch and finish are known.
        core, ids, text, label: of the executions, lists.
        known: the ids of the tasks that ran, rising.
        task: index of each execution's task in it.
        place: that index by id.
        thread_of: scheduler thread of each core, where it can be told.
        flight_tid: lane of each execution in the view of the schedulers.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        (self.run,) = trace.details["ascend_runs"].rows()
        clock = trace.clocks
        mine = np.flatnonzero(clock.values("name") == "syscnt")
        known = mine[clock.valid("frequency_num")[mine]]
        rates = clock.values("frequency_num")[known] / np.maximum(clock.values("frequency_den")[known], 1)
        self._frequency = float(rates[0]) if len(rates) else 1e9
        self.is_chip = self.run["format_version"] in CHIP
        self.on_host = bool(self.run["orchestrator_on_host"])
        self.tasks, self.phases = Rows(self, "ascend_tasks"), Rows(self, "ascend_phases")
        self.submits, self.bare = Rows(self, "ascend_submits"), Rows(self, "ascend_coreless_tasks")
        self._executions()
        self.thread_of = self._threads()
        self.flight_tid = self._flights()

    def us(self, ticks: Array, ns: Array) -> Floats:
        """Return microseconds since the smallest stamp, float64 [n], from stamps and times; 0 without a stamp."""
        if self.on_host:
            return np.where(ticks > 0, ns / 1000, 0.0)
        return np.where(ticks > 0, (ticks - self.run["base_ticks"]) * 1e6 / self._frequency, 0.0)

    def _executions(self) -> None:
        tasks, table = self.tasks, self.tasks.table
        stamps = {
            name: self.us(table.values(f"{name}_ticks"), table.values(f"{name}_ts"))
            for name in ("receive", "dispatch", "finish")
        }
        receive = np.where(table.valid("receive_ticks"), stamps["receive"], tasks.begin_at)
        self.start, self.end = tasks.begin, tasks.end
        self.receive: list[float] = receive.tolist()
        self.dispatch: list[float] = stamps["dispatch"].tolist()
        self.finish: list[float] = stamps["finish"].tolist()
        # From the difference of the stamps: one of times would be a little off.
        delta = np.where(table.valid("receive_ticks"), tasks.ticks - table.values("receive_ticks"), 0)
        self.setup: list[float] = (delta * 1e6 / self._frequency).tolist()
        self.bar = self.receive if self.is_chip else self.start
        at_receive = np.array(table.values("effective_start_source").tolist(), object) == "receive"
        self.judged: list[float] = np.where(at_receive, receive, tasks.begin_at).tolist()
        self.is_joined: list[bool] = (table.valid("dispatch_ticks") & table.valid("finish_ticks")).tolist()
        self.core, self.ids, self.text = tasks.list("core"), tasks.list("task_id"), list(map(str, table.values("task")))
        self.functions = np.where(table.valid("function"), table.values("function"), -1).tolist()
        # As the inside of a JSON text: names come from the capture.
        inner = {name: json.dumps(name)[1:-1] for name in set(tasks.name)}
        self.label = [f"{inner[name]}({task})" for name, task in zip(tasks.name, self.text, strict=True)]
        known, task = np.unique(table.values("task_id"), return_inverse=True)
        self.known: list[int] = known.tolist()
        self.task: Int64 = task.reshape(-1)
        self.place = {task_id: place for place, task_id in enumerate(self.known)}

    def _threads(self) -> dict[int, int]:
        """Find the scheduler thread of each core: the one whose dispatch phases hold most of its dispatch stamps."""
        phases = self.phases
        mine = np.flatnonzero(np.isin(np.array(phases.name, object), ("dispatch", "early_dispatch", "prestage")))
        thread = phases.table.values("thread").astype(np.int64)
        rows = np.flatnonzero(self.is_joined)
        core, stamp = np.array(self.core, np.int64)[rows], np.array(self.dispatch)[rows]
        best: dict[int, tuple[int, int]] = {}
        for number in distinct(thread[mine]).tolist():
            some = mine[thread[mine] == number]
            some = some[np.argsort(phases.begin_at[some], kind="stable")]
            at = np.searchsorted(phases.begin_at[some], stamp, side="right") - 1
            inside = (at >= 0) & (stamp <= phases.end_at[some[np.maximum(at, 0)]])
            for index, votes in enumerate(np.bincount(core[inside]).tolist()):
                if votes > best.get(index, (0, 0))[0]:
                    best[index] = votes, number
        return {index: number for index, (_, number) in best.items()}

    def _flights(self) -> list[int]:
        """Return the lane of each execution in the view of the schedulers: the first of its core that is free."""
        found = [worker_tid(core) for core in self.core]
        rows = np.flatnonzero(self.is_joined)
        order = rows[np.lexsort((np.array(self.dispatch)[rows], np.array(self.core, np.int64)[rows]))]
        ends: list[float] = []
        last = -1
        for row in order.tolist():
            if self.core[row] != last:
                ends, last = [], self.core[row]
            lane = next((place for place, busy in enumerate(ends) if busy <= self.dispatch[row]), len(ends))
            # A core has numbers for ten lanes; it never holds more than two tasks at once.
            lane = min(lane, 9)
            ends[lane : lane + 1] = [self.finish[row]]
            found[row] += lane
        return found


def worker_tid(core: int) -> int:
    """Return the lane of a core, in both views."""
    return 10_000 + 10 * core


def scheduler_tid(content: Content, thread: int, kind: str = "") -> int:
    """Return the lane of a scheduler thread; the newer naming has one of its own for what resolves."""
    if not content.is_chip:
        return 3000 + thread
    return 30_000 + 10 * thread + (kind == "resolve")
