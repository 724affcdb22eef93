"""A trace as the peer's converter looks at it: executions, phases, submits in microseconds, as columns."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.common.intervals import order as in_order
from lanescope.devices.ascend.export.swimlane.event_rows import Words
from lanescope.devices.ascend.interpret.sorted_index import union
from lanescope.trace import Table, Trace
from lanescope.trace.column import Array, Mask

Int64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ORCHESTRATOR, SCHEDULER, SCHEDULER_VIEW, WORKER_VIEW = 1, 2, 3, 4
#: Format versions of the newer naming.
CHIP = ("v3c", "v4")
#: Lanes of a core in the view of the schedulers.
_LANES = 10


class Rows:
    """A detail table and the slices that it tells of, [n].

    Attributes:
        table: the table.
        begin, end, length: float64 microseconds.
        ticks, ns: int64, where they begin on their counter, and on the axis; dur_ticks, dur: how long they are.
        name: names of the slices.
        track: int64, their lanes.
    """

    def __init__(self, content: Content, name: str) -> None:
        trace = content.trace
        self.table: Table = trace.details[name]
        at = self.table.values("slice_id")
        ticks, ns = trace.slices.values("ts_ticks")[at], trace.slices.values("ts")[at]
        self.ticks: Int64 = ticks
        self.ns: Int64 = ns
        self.dur_ticks: Int64 = trace.slices.values("dur_ticks")[at]
        self.dur: Int64 = trace.slices.values("dur")[at]
        self.begin, self.length = content.us(ticks, ns), content.us_of(self.dur_ticks, self.dur)
        self.end = content.us(ticks + self.dur_ticks, ns + self.dur)
        names = trace.slices.column("name")
        self.name = Words(names.dictionary.texts if names.dictionary else [], names.values[at].astype(np.int64))
        self.track: Int64 = trace.slices.values("track_id")[at]

    def __len__(self) -> int:
        return len(self.table)

    def integers(self, name: str) -> Int64:
        """Return a column as int64 [n]."""
        return self.table.values(name).astype(np.int64)

    def is_named(self, *names: str) -> Mask:
        """Return which slices have one of these names, bool [n]."""
        codes = [code for code, text in enumerate(self.name.texts) if text in names]
        return np.isin(self.name.index, codes)


class Content:
    """A trace of one capture.

    Columns are of the executions, [n], if nothing else is said; times are float64 microseconds, 0 where unknown.

    Attributes:
        trace: the trace.
        is_chip: it has the newer naming.
        on_host: the host orchestrates: all times are those of the host's clock.
        orchestrators: numbers of the orchestrators that submitted, rising.
        tasks, phases, submits, uploads, bare: the rows.
        start, end, receive, dispatch, finish: times.
        setup, latency: lengths from receive to start, from dispatch to finish.
        bar, bar_length: where the bar of each begins, with the newer naming at the receive, and how long it is.
        judged: when each counts as begun for its producers.
        is_joined: bool, whether dispatch and finish are known.
        core, function: int64, -1 where unknown.
        ids, texts: uint64 and object, all task ids, rising, and how they are written.
        place: int64, index into ``known`` of each of ``ids``, -1 for tasks that did not run.
        known: uint64 [tasks], the ids of the tasks that ran, rising.
        task: int64, index of each execution's task in it.
        text: how the ids are written.
        thread_of: int64 [cores], scheduler thread of each core, -1 where it cannot be told.
        flight_tid: int64, lane of each execution in the view of the schedulers.
        anchors: rows with arrows that were found so far, by what was asked for.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.anchors: dict[tuple[bool, bool], tuple[Int64, Int64]] = {}
        (self.run,) = trace.details["ascend_runs"].rows()
        self.orchestrators = distinct(trace.details["ascend_submits"].values("orchestrator").astype(np.int64)).tolist()
        clock = trace.clocks
        mine = np.flatnonzero(clock.values("name") == "syscnt")
        known = mine[clock.valid("frequency_num")[mine]]
        rates = clock.values("frequency_num")[known] / np.maximum(clock.values("frequency_den")[known], 1)
        self._frequency = float(rates[0]) if len(rates) else 1e9
        # The converter does not know the host's phases, which may begin earlier than what it does.
        others = np.ones(len(trace.slices), np.bool_)
        others[trace.details["ascend_host_phases"].values("slice_id")] = False
        self._origin = int(trace.slices.values("ts")[others].min(initial=np.iinfo(np.int64).max)) if others.any() else 0
        self.is_chip = self.run["format_version"] in CHIP
        self.on_host = bool(self.run["orchestrator_on_host"])
        self.tasks, self.phases = Rows(self, "ascend_tasks"), Rows(self, "ascend_phases")
        self.submits, self.bare = Rows(self, "ascend_submits"), Rows(self, "ascend_coreless_tasks")
        self.uploads = Rows(self, "ascend_uploads")
        self._executions()
        self.thread_of = self._threads()
        self.flight_tid = self._flights()

    def us(self, ticks: Array, ns: Array) -> Floats:
        """Return microseconds since the smallest stamp, float64 [n], from stamps and times; 0 without a stamp."""
        if self.on_host:
            return np.where(ticks > 0, (ns - self._origin) / 1000, 0.0)
        return np.where(ticks > 0, (ticks - self.run["base_ticks"]) * 1e6 / self._frequency, 0.0)

    def us_of(self, ticks: Array, ns: Array) -> Floats:
        """Return lengths in microseconds, float64 [n]; the difference of two times would be a little off."""
        return ns / 1000 if self.on_host else ticks * 1e6 / self._frequency

    @cached_property
    def edges(self) -> tuple[Int64, Int64]:
        """Producer and consumer of each edge as indices into ``ids``, int64 [edges] each."""
        table = self.trace.details["ascend_edges"]
        pred, succ = (self._index.of(table.values(f"{end}_task_id")) for end in ("pred", "succ"))
        return pred, succ

    def _executions(self) -> None:
        tasks, table = self.tasks, self.tasks.table
        stamps = {
            name: self.us(table.values(f"{name}_ticks"), table.values(f"{name}_ts"))
            for name in ("receive", "dispatch", "finish")
        }
        self.start, self.end = tasks.begin, tasks.end
        self.receive = np.where(table.valid("receive_ticks"), stamps["receive"], tasks.begin)
        self.dispatch, self.finish = stamps["dispatch"], stamps["finish"]
        # From the difference of the stamps: one of times would be a little off.
        delta = np.where(table.valid("receive_ticks"), tasks.ticks - table.values("receive_ticks"), 0)
        self.setup = delta * 1e6 / self._frequency
        self.latency = self.us_of(
            table.values("finish_ticks") - table.values("dispatch_ticks"),
            table.values("finish_ts") - table.values("dispatch_ts"),
        )
        self.bar = self.receive if self.is_chip else self.start
        self.bar_length = tasks.length
        if self.is_chip:
            before = np.where(table.valid("receive_ticks"), tasks.ns - table.values("receive_ts"), 0)
            self.bar_length = self.us_of(tasks.dur_ticks + delta, tasks.dur + before)
        source = table.column("effective_start_source")
        at_receive = [code for code, text in enumerate(source.dictionary.texts) if text == "receive"]  # type: ignore[union-attr]
        self.judged = np.where(np.isin(source.values, at_receive), self.receive, tasks.begin)
        self.is_joined: Mask = table.valid("dispatch_ticks") & table.valid("finish_ticks")
        self.core = tasks.integers("core")
        self.function = np.where(table.valid("function"), table.values("function"), -1).astype(np.int64)
        listed = self.trace.details["ascend_graph_tasks"]
        ends = [self.trace.details["ascend_edges"].values(f"{end}_task_id") for end in ("pred", "succ")]
        self._index = union([listed.values("task_id"), table.values("task_id"), *ends])
        self.ids = self._index.ids
        self.texts = np.full(len(self.ids), "", object)
        self.texts[self._index.of(listed.values("task_id"))] = listed.values("task")
        of_task = self._index.of(table.values("task_id"))
        ran = np.zeros(len(self.ids), np.bool_)
        ran[of_task] = True
        self.place = np.where(ran, np.cumsum(ran) - 1, -1)
        self.known: npt.NDArray[np.uint64] = self.ids[ran]
        self.task: Int64 = self.place[of_task]
        self.text = Words(self.texts[ran].tolist(), self.task)

    def _threads(self) -> Int64:
        """Find the thread of each core: as recorded, else the one whose dispatch phases hold most of its dispatches."""
        cores, phases = self.trace.details["ascend_cores"], self.phases
        mine = np.flatnonzero(phases.is_named("dispatch", "early_dispatch", "prestage"))
        thread = phases.integers("thread")
        rows = np.flatnonzero(self.is_joined)
        core, stamp = self.core[rows], self.dispatch[rows]
        count = int(self.core.max(initial=-1)) + 1
        most, found = np.zeros(count, np.int64), np.full(count, -1, np.int64)
        recorded = np.flatnonzero(cores.valid("thread") & (cores.values("core") < count))
        is_told = np.zeros(count, np.bool_)
        is_told[cores.values("core")[recorded]] = True
        asked = ~is_told[core]
        core, stamp = core[asked], stamp[asked]
        for number in distinct(thread[mine]).tolist() if len(core) else ():
            some = mine[thread[mine] == number]
            some = some[np.argsort(phases.begin[some], kind="stable")]
            at = np.searchsorted(phases.begin[some], stamp, side="right") - 1
            inside = (at >= 0) & (stamp <= phases.end[some[np.maximum(at, 0)]])
            votes = np.bincount(core[inside], minlength=count)
            found[votes > most] = number
            most = np.maximum(most, votes)
        found[cores.values("core")[recorded]] = cores.values("thread")[recorded]
        return found

    def _flights(self) -> Int64:
        """Return the lane of each execution in the view of the schedulers: the first of its core that is free."""
        rows = np.flatnonzero(self.is_joined)
        order = rows[by_group(self.core[rows], self.dispatch[rows])]
        core, begin, end = self.core[order], self.dispatch[order], self.finish[order]
        reach = _running_end(core, end)
        is_free = np.append(True, (core[1:] != core[:-1]) | (reach[:-1] <= begin[1:]))[: len(order)]
        # Where each dispatch overlaps at most the one before, they take turns on two lanes.
        number = np.cumsum(is_free) - 1
        place = np.arange(len(order)) - np.flatnonzero(is_free)[number]
        is_odd = np.zeros(len(order), np.bool_)
        is_odd[2:] = (place[2:] > 1) & (begin[2:] < end[:-2])
        crowded = np.flatnonzero((np.bincount(number[is_odd], minlength=len(order)) > 0)[number])
        found = worker_tid(self.core)
        found[order] += place % 2
        found[order[crowded]] = worker_tid(self.core[order[crowded]])
        lanes: list[int] = []
        ends: list[float] = []
        columns = (values[crowded].tolist() for values in (is_free, begin, end))
        for frees, first, last in zip(*columns, strict=True):
            if frees:
                ends = []
            lane = 0
            # A core has numbers for ten lanes; it never holds more than two tasks at once.
            while lane < min(len(ends), _LANES - 1) and ends[lane] > first:
                lane += 1
            ends[lane : lane + 1] = [last]
            lanes.append(lane)
        found[order[crowded]] += np.array(lanes, np.int64)
        return found


def by_group(group: Int64, time: Floats) -> Int64:
    """Return the indices that sort by group, then time, int64 [n]; equal times stay as they are."""
    if len(time) and not float(time.min()) >= 0:
        return np.lexsort((time, group))
    return in_order(group, (time + 0.0).view(np.int64))  # bits of numbers above 0 rise with them


def _running_end(core: Int64, end: Floats) -> Floats:
    """Return the latest end so far of each core, float64 [n]; cores rise."""
    found = end.copy()
    for part in np.split(np.arange(len(core)), np.flatnonzero(np.diff(core)) + 1):
        found[part] = np.maximum.accumulate(end[part])
    return found


def worker_tid(core: Int64) -> Int64:
    """Return the lanes of cores, in both views, int64 [n]."""
    return 10_000 + 10 * core


def scheduler_tid(content: Content, thread: Int64, is_resolving: Mask | None = None) -> Int64:
    """Return the lanes of scheduler threads, int64 [n]; the newer naming has one of its own for what resolves."""
    if not content.is_chip:
        return 3000 + thread
    tids: Int64 = 30_000 + 10 * thread
    return tids if is_resolving is None else tids + is_resolving


def bare_lanes(content: Content) -> dict[tuple[int, int], tuple[int, str]]:
    """Return number and name of the lanes of tasks that run on no core, by code of their name and track."""
    bare, names = content.bare, content.trace.tracks.values("name")
    found = {}
    for key in distinct(_bare_keys(content)).tolist():
        code, track = divmod(key, len(names))
        number, is_alloc = int(str(names[track]).rpartition("_")[2]), bare.name.texts[code] == "alloc"
        if content.is_chip:
            # Schedulers first, then orchestrators.
            index = number + (len(content.trace.details["ascend_threads"]) if is_alloc else 0)
            found[code, track] = 19_000 + index, f"AICPU_{index}"
        else:
            first, word = (18_000, "ALLOC") if is_alloc else (19_000, "DUMMY")
            found[code, track] = first + number, f"{word}_T{number}"
    return found


def _bare_keys(content: Content) -> Int64:
    """Return code of the name and track of each task that runs on no core as one number, int64 [n]."""
    bare = content.bare
    return bare.name.index * len(content.trace.tracks) + bare.track


def bare_tids(content: Content) -> Int64:
    """Return the lanes of tasks that run on no core, int64 [n]."""
    lanes = bare_lanes(content)
    keys = np.array([code * len(content.trace.tracks) + track for code, track in lanes], np.int64)
    numbers = np.array([number for number, _ in lanes.values()], np.int64)
    return numbers[np.searchsorted(keys, _bare_keys(content))]


def passes(content: Content, rows: Int64) -> Int64:
    """Return the complete phase that saw each execution end, int64 [rows], -1 where none can be told.

    It is the first one of the core's thread to end when the execution was seen to finish, or later.

    Args:
        content: the trace.
        rows: int64 [rows], executions that were seen to finish.
    """
    c, phases = content, content.phases
    found = np.full(len(rows), -1, np.int64)
    complete = np.flatnonzero(phases.is_named("complete"))
    thread, thread_of = phases.integers("thread")[complete], c.thread_of[c.core[rows]]
    for number in distinct(thread).tolist():
        mine = complete[thread == number]
        mine = mine[np.argsort(phases.end[mine], kind="stable")]
        some = np.flatnonzero(thread_of == number)
        at = np.searchsorted(phases.end[mine], c.finish[rows[some]])
        inside = at < len(mine)
        found[some[inside]] = mine[at[inside]]
    return found
