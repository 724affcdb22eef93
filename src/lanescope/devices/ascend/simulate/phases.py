"""What scheduler threads record: one phase for each window in which something was done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.devices.ascend.formats.layout import PHASES
from lanescope.devices.ascend.formats.records import Section, section
from lanescope.devices.ascend.simulate.chip import (
    COMPLETE,
    DUMMY,
    LOOP,
    RELEASE,
    SLICES,
    WINDOWS,
    Run,
    rank,
    windows,
)
from lanescope.devices.ascend.simulate.workload import GRAPH, PREDICATED
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

_RESOLVE = 36
#: Ticks of each of two walks in one phase, and the consumers that take so long.
_HALF, _MANY = 50, 6
_MIN_RESOLVE_NS = 1000  # shorter ones are not recorded
#: Kinds that a format version writes; those that are not named here write all.
_KINDS = {
    **dict.fromkeys(("v1a", "v1b", "v1c", "v2"), ("complete", "dispatch")),
    # A graph that the host builds: what runs on no core leaves no record, and slots are not given back.
    "host": ("complete", "dispatch", "early_dispatch", "drain", "drain_prepare", "drain_publish", "graph_prepare"),
    "v3": ("complete", "dispatch", "release", "resolve", "early_dispatch", "dummy_task"),
}
_INNER = ("resolve", "dummy_task", "predicated_skip", "drain_prepare", "drain_publish")
#: Ticks from the begin of a drain until it publishes.
_PREPARE = 2
#: Name of an unknown kind.
UNKNOWN_KIND = "mystery"


@dataclass
class Phases:
    """The phases of all threads.

    Attributes:
        section: those that were kept.
        unknown: how many of them have an unknown kind.
        dropped: how many of each thread were lost, int64 [threads].
        lonely_dispatches, lonely_finishes: executions whose dispatch, or whose end, lies in a phase that was lost.
    """

    section: Section
    unknown: int
    dropped: Int64
    lonely_dispatches: int
    lonely_finishes: int


def phases(run: Run, random: np.random.Generator, base: int) -> Phases:
    """Return the phases of all threads."""
    return _Phases(run, random, base).made()


class _Phases:
    def __init__(self, run: Run, random: np.random.Generator, base: int) -> None:
        self.run, self.random, self.base = run, random, base
        self.early, self.dispatch = windows(run.scenario)
        none = np.empty(0, np.int64)
        self.released = none, none
        self.parts: list[dict[str, Any]] = []
        self._completes()
        if self.run.scenario.host:
            self._graphs()
        else:
            self._bare()
        self._dispatches()

    def part(self, kind: str, lane: Int64, iteration: Int64, begin: Any, end: Any, count: Any, **more: Any) -> None:
        """Add phases of a kind unless the format version omits it; times are ticks within their iterations."""
        format_version = self.run.scenario.format_version
        if not len(lane) or kind not in _KINDS.get("host" if self.run.scenario.host else format_version, (kind,)):
            return
        at = self.base + self.run.begin(lane, iteration)
        self.parts.append(
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

    def _completes(self) -> None:
        """Finishes are seen, and the consumers of what is over are visited."""
        run, random = self.run, self.random
        s, u, tasks = run.scenario, run.scenario.unit, run.tasks
        # Consumers are visited when the last row of their producer is seen.
        degree = np.bincount(tasks.pred, minlength=len(tasks))
        last = np.full(len(tasks), -1)
        finish = np.zeros(len(tasks), np.int64)
        np.maximum.at(finish, run.task, run.finish)
        is_last = np.flatnonzero(run.finish == finish[run.task])
        last[run.task[is_last]] = is_last
        visits = np.zeros(len(run), np.int64)
        visits[last[last >= 0]] = degree[last >= 0]
        lane, iteration, count, visited = self._groups(run.thread_of[run.core], run.finish_iteration, visits)
        length = np.where(visited > 0, np.minimum(10 + 7 * visited, 58) * u, 0)
        depth = random.integers(0, 4, (len(lane), 3))
        grown = depth + random.integers(0, 3, depth.shape) if s.is_chip else depth
        first = self._first_of_two(lane, iteration, visits)
        two = first > 0
        until = np.where(two, 2 * _HALF + 2, _RESOLVE + 2) * u + np.where(two, 0, length)
        self.part("complete", lane, iteration, COMPLETE[0], until, count, depth=(depth, grown))
        self.part("resolve", lane[two], iteration[two], COMPLETE[0], _HALF * u, first[two])
        rest = (visited - first)[two]
        self.part("resolve", lane[two], iteration[two], _HALF * u, 2 * _HALF * u, rest)
        seen = ~two & (length * 1_000_000_000 // s.clock >= _MIN_RESOLVE_NS)
        begin = _RESOLVE * u
        self.part("resolve", lane[seen], iteration[seen], begin, begin + length[seen], visited[seen])
        idle = random.random(len(lane)) < 0.1
        begin, end = RELEASE[0] * u, RELEASE[1] * u
        if s.is_observed:
            # Only where nothing has been done before.
            self.released = lane[idle], iteration[idle] + 1
        else:
            self.part("release", lane[idle], iteration[idle], begin, end, 1 if s.is_chip else 0)
        if s.is_chip:
            # Nothing ends by itself: each end is counted by a completion.
            some = ~idle & (random.random(len(lane)) < 0.05)
            self.part("async_poll", lane[some], iteration[some], begin, end, 0, depth=(grown[some], grown[some]))

    def _first_of_two(self, lane: Int64, iteration: Int64, visits: Int64) -> Int64:
        """Return the visits of the first task of each group (int64 [groups]); 0 unless two take long enough to be seen.

        Args:
            lane: int64 [groups], threads of the groups, not falling.
            iteration: int64 [groups], rising within a thread.
            visits: int64 [rows], consumers that are visited when a row is seen.
        """
        run = self.run
        found = np.zeros(len(lane), np.int64)
        if _HALF * run.scenario.unit * 1_000_000_000 // run.scenario.clock < _MIN_RESOLVE_NS:
            return found
        many = np.flatnonzero(visits >= _MANY)
        width = int(run.finish_iteration.max(initial=0)) + 1
        key = run.thread_of[run.core[many]] * width + run.finish_iteration[many]
        group, at, times = np.unique(
            np.searchsorted(lane * width + iteration, key), return_index=True, return_counts=True
        )
        found[group[times > 1]] = visits[many[at[times > 1]]]
        return found

    def _bare(self) -> None:
        """Tasks without a kernel, and those whose predicate is false, pass."""
        run, random, tasks = self.run, self.random, self.run.tasks
        s, u = run.scenario, run.scenario.unit
        passing = np.flatnonzero(tasks.is_bare)
        if not len(passing):
            return
        lane, iteration = run.bare_thread[passing], run.bare_iteration[passing]
        at = (DUMMY[0] + 1 + np.minimum(rank(lane * (1 << 40) + iteration), 15)) * u
        low = (tasks.task_id[passing] & np.uint64(0xFFFFFFFF)).astype(np.int64)
        skipped = tasks.kind[passing] == PREDICATED
        for kind, mine in (("dummy_task", ~skipped), ("predicated_skip", skipped)):
            # v3 has no place for the id and writes its lower half as the count.
            more = {"task_id": tasks.task_id[passing[mine]]} if s.is_chip else {}
            count = 1 if s.is_chip else low[mine]
            self.part(kind, lane[mine], iteration[mine], at[mine], at[mine], count, **more)
        lane, iteration, count, _ = self._groups(lane, iteration)
        depth = random.integers(0, 4, (len(lane), 3))
        self.part("dummy", lane, iteration, DUMMY[0] * u, DUMMY[1] * u, count, depth=(depth, depth + 1))

    def _dispatches(self) -> None:
        run, random = self.run, self.random
        s, u = run.scenario, run.scenario.unit
        thread = run.thread_of[run.core]
        lane, iteration, count, _ = self._groups(thread[run.staged], run.iteration[run.staged])
        end = np.minimum(self.early[0] + 4 + count, self.early[1]) * u
        self.part("early_dispatch", lane, iteration, self.early[0] * u, end, count)
        normal = ~run.staged
        many = run.tasks.blocks[run.task] > 1
        lane, iteration, count, blocks = self._groups(
            thread[normal], run.iteration[normal], many[normal].astype(np.int64)
        )
        # Where nothing but blocks of one task goes out, they go out together.
        drains = (blocks == count) & s.is_chip
        drained = lane[drains], iteration[drains], count[drains]
        self._drains(*drained)
        lane, iteration, popped, count = self._counted_again(lane[~drains], iteration[~drains], count[~drains], drained)
        self._joined_drains(lane, iteration, *drained[:2])
        hits = popped
        depth = random.integers(0, 4, (len(lane), 3))
        popped = np.stack([hits, np.zeros_like(hits), np.zeros_like(hits)], 1)
        self.part(
            "dispatch",
            lane,
            iteration,
            self.dispatch[0] * u,
            np.minimum(self.dispatch[0] + 5 + count, self.dispatch[1]) * u,
            count,
            pops=(hits, random.integers(0, 10, len(lane))),
            depth=(depth + popped, depth),
        )
        self._releases()
        # The last one has no width: it brings the counts that are left.
        last = max((int(p["iteration"].max()) for p in self.parts), default=1)
        lane = np.arange(s.threads)
        zero, at = np.zeros(s.threads, np.int64), np.full(s.threads, self.dispatch[0] * u)
        none = np.zeros((s.threads, 3), np.int64)
        self.part("dispatch", lane, zero + last + 1, at, at, 0, pops=(zero, zero + 4), depth=(none, none))

    def _drains(self, lane: Int64, iteration: Int64, count: Int64) -> None:
        u = self.run.scenario.unit
        begin, publish = self.dispatch[0] * u, (self.dispatch[0] + _PREPARE) * u
        end = np.minimum(self.dispatch[0] + 5 + count, self.dispatch[1]) * u
        self.part("drain_prepare", lane, iteration, begin, publish, count)
        self.part("drain_publish", lane, iteration, publish, end, count)
        self.part("drain", lane, iteration, begin, end, count)

    def _counted_again(
        self, lane: Int64, iteration: Int64, count: Int64, drained: tuple[Int64, Int64, Int64]
    ) -> tuple[Int64, Int64, Int64, Int64]:
        """Return the dispatch phases: lane, iteration, tasks popped, tasks counted.

        What a drain publishes is counted by the next dispatch phase of its thread, which need not pop anything.

        Args:
            lane: int64 [n], threads that pop tasks.
            iteration: int64 [n], when.
            count: int64 [n], how many.
            drained: lane, iteration and count of the drains.
        """
        most = int(max(iteration.max(initial=0), drained[1].max(initial=0))) + 2 + len(drained[1])
        at, taken = drained[0] * most + drained[1] + 1, drained[0] * most + drained[1]
        while (busy := np.isin(at, taken)).any():
            at[busy] += 1
        key, where = np.unique(np.concatenate([lane * most + iteration, at]), return_inverse=True)
        popped, counted = np.zeros((2, len(key)), np.int64)
        np.add.at(popped, where[: len(lane)], count)
        np.add.at(counted, where, np.concatenate([count, drained[2]]))
        return key // most, key % most, popped, counted

    def _releases(self) -> None:
        """Give back slots in iterations in which nothing else is done, or nothing but dispatching afterwards."""
        lane, iteration = self.released
        if not len(lane):
            return
        work = [part for part in self.parts if part["kind"] != "dispatch"]
        lanes, others = (np.concatenate([part[name] for part in work]) for name in ("lane", "iteration"))
        width = int(max(others.max(initial=0), iteration.max(initial=0))) + 2
        alone = ~np.isin(lane * width + iteration + 1, lanes * width + others)
        begin, end = (ticks * self.run.scenario.unit for ticks in (DUMMY[1] + 1, DUMMY[1] + 4))
        self.part("release", lane[alone], iteration[alone], begin, end, 1)

    def _joined_drains(self, lane: Int64, iteration: Int64, drained: Int64, when: Int64) -> None:
        """Let the next thread take part in drains, without a block of its own, where it dispatches nothing else."""
        s = self.run.scenario
        if s.threads < 2:
            return
        most = int(max(iteration.max(initial=0), when.max(initial=0))) + 1
        busy = np.concatenate([lane * most + iteration, drained * most + when])
        key = distinct((drained + 1) % s.threads * most + when)
        key = key[~np.isin(key, busy)]
        begin = self.dispatch[0] * s.unit
        self.part("drain", key // most, key % most, begin, begin + 4 * s.unit, 0)

    def _graphs(self) -> None:
        """Prepare graphs in slices, each graph before its first node goes out and as late as that allows."""
        run, u = self.run, self.run.scenario.unit
        graphs = np.flatnonzero(run.tasks.kind == GRAPH)
        if not len(graphs):
            return
        first = np.full(len(run.tasks), np.iinfo(np.int64).max)
        np.minimum.at(first, run.task, run.iteration)
        width = (DUMMY[1] - DUMMY[0]) // WINDOWS
        for thread in range(run.scenario.threads):
            mine = graphs[run.bare_thread[graphs] == thread]
            mine = np.repeat(mine[np.argsort(first[mine], kind="stable")], SLICES)
            # Iterations of two threads may be shifted by one.
            place, number = (first[mine] - 2) * WINDOWS, np.arange(len(mine))
            place = np.minimum.accumulate((place - number)[::-1])[::-1] + number
            nodes = run.tasks.nodes[mine] + 1
            patched = np.where(number % SLICES == 0, nodes - 1, 1)
            begin = (DUMMY[0] + place % WINDOWS * width) * u
            lane = np.full(len(mine), thread)
            ids = run.tasks.task_id[mine]
            self.part("graph_prepare", lane, place // WINDOWS, begin, begin + u, patched, task_id=ids)

    def _groups(self, lane: Int64, iteration: Int64, weight: Int64 | None = None) -> tuple[Int64, ...]:
        """Return the distinct pairs of lane and iteration, how often each occurs, and the sum of its weights."""
        width = int(iteration.max(initial=0)) + 1
        key = lane * width + iteration
        count = np.bincount(key)
        used = np.flatnonzero(count)
        total = np.bincount(key, weight).astype(np.int64)[used] if weight is not None else np.zeros(len(used), np.int64)
        return used // width, used % width, count[used], total

    def made(self) -> Phases:
        """Put the phases together, as they are written: when they end, inner ones before the outer."""
        s, parts = self.run.scenario, self.parts
        kinds = list(dict.fromkeys(p["kind"] for p in parts))
        sizes = [len(p["lane"]) for p in parts]

        def joined(name: str, width: int = 0, place: int | None = None) -> tuple[Any, Mask]:
            values, there = [], []
            for p, size in zip(parts, sizes, strict=True):
                given = p.get(name)
                if given is not None and place is not None:
                    given = given[place]
                shape = (size, width) if width else (size,)
                kind = np.uint64 if name == "task_id" else np.int64
                values.append(np.zeros(shape, kind) if given is None else np.asarray(given).reshape(shape))
                there.append(np.full(size, given is not None))
            return np.concatenate(values), np.concatenate(there)

        lane, start, end = (joined(name)[0] for name in ("lane", "start", "end"))
        kind = np.repeat([kinds.index(p["kind"]) for p in parts], sizes)
        is_outer = ~np.isin(kind, [kinds.index(k) for k in _INNER if k in kinds])
        span = int(end.max()) - self.base + 1
        order = np.argsort((lane * span + (end - self.base)) * 2 + is_outer, kind="stable")
        columns: dict[str, Any] = {
            "kind": kind,
            "start_cycles": start,
            "end_cycles": end,
            "loop_iter": joined("iteration")[0],
            "tasks_processed": joined("count")[0],
        }
        for place, name in enumerate(("pop_hit", "pop_miss")):
            columns[name], columns[f"{name}_valid"] = joined("pops", place=place)
        columns["task_id"], columns["task_id_valid"] = joined("task_id")
        if not s.is_v1:
            for place, when in enumerate(("start", "end")):
                columns[f"shared_at_{when}"] = joined("depth", 3, place)[0]
                if not s.is_chip:
                    columns[f"local_at_{when}"] = columns[f"shared_at_{when}"][:, ::-1]
        if s.format_version == "v4":
            at = np.searchsorted(self.run.first_iterations, columns["loop_iter"] - 1, side="right")
            columns["run_epoch"] = at if s.epochs > 1 else np.ones_like(at)
        renamed = self._rename(columns, kinds)
        lost = self._drop(kind, [kinds.index(name) for name in ("complete", "dispatch") if name in kinds])
        order = order[~lost[order]]
        made = section(
            PHASES,
            {name: np.asarray(values)[order] for name, values in columns.items()},
            group=lane[order],
            texts=[*kinds, UNKNOWN_KIND],
        )
        sent = seen = 0
        if lost.any():
            key, kinds_of = lane << 32 | columns["loop_iter"], np.array(kinds, object)[kind]
            thread = self.run.thread_of[self.run.core] << 32
            sent_in, seen_in = (key[lost & (kinds_of == name)] for name in ("dispatch", "complete"))
            is_lonely = np.isin(thread + self.run.iteration + 1, sent_in) & ~self.run.staged
            sent, seen = int(is_lonely.sum()), int(np.isin(thread + self.run.finish_iteration + 1, seen_in).sum())
        return Phases(
            Section(**{**made.__dict__, "groups": s.phase_lists}),
            renamed,
            np.bincount(lane[lost], minlength=s.threads),
            sent,
            seen,
        )

    def _drop(self, kind: Int64, kinds: list[int]) -> Mask:
        """Return which phases are lost, bool [n]: of those that say when cores were served."""
        lost = np.zeros(len(kind), np.bool_)
        if self.run.scenario.drop_phases:
            victims = self.random.permutation(np.flatnonzero(np.isin(kind, kinds)))
            lost[victims[: self.run.scenario.drop_phases]] = True
        return lost

    def _rename(self, columns: dict[str, Any], kinds: list[str]) -> int:
        """Give some phases an unknown kind; phases with counts keep theirs."""
        wanted = self.run.scenario.unknown_kinds
        victims = np.flatnonzero(columns["kind"] == (kinds.index("release") if "release" in kinds else -1))[:wanted]
        columns["kind"] = columns["kind"].copy()
        columns["kind"][victims] = len(kinds)
        return len(victims)


def window(run: Run) -> int:
    """Return ticks after which nothing happens any more."""
    return int(run.finish.max(initial=0)) + LOOP * run.scenario.unit * 8
