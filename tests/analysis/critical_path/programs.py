"""Rows and causes whose truth is known: task graphs on lanes, threads with queues, and hostile ones."""

import random
from collections import deque
from types import MappingProxyType

import numpy as np

from analysis.critical_path.reference import Reference
from lanescope.analysis.critical_path.event_graph import EventGraph, GraphEdges, GraphRows
from lanescope.families.causes import CauseKind

END, BEGIN = "end", "begin"


def kinds(names, blocking=()):
    return tuple(CauseKind(name, rank, is_blocking=name in blocking) for rank, name in enumerate(names))


def event_graph(rows, causes, nestings, names, **options):
    """Return the graph of rows (lane, begin, end, name, waits) and causes (row, ts, row, ts, kind)."""
    blocking = options.pop("blocking", ())
    texts = sorted({row[3] for row in rows})
    lane, begin, end = (np.array([row[k] for row in rows], np.int64) for k in range(3))
    name = np.array([texts.index(row[3]) for row in rows], np.int64)
    columns = [np.array([cause[k] for cause in causes], np.int64) for k in range(4)]
    kind = np.array([names.index(cause[4]) for cause in causes], np.int64)
    return EventGraph(
        GraphRows(lane, begin, end, name, np.array([row[4] for row in rows], bool)),
        GraphEdges(*columns, kind, np.zeros(len(causes), np.int64)),
        kinds(names, blocking),
        nestings,
        **options,
    )


def both(rows, causes, nestings, names, **options):
    """Return the graph and the reference of the same rows and causes."""
    return event_graph(rows, causes, nestings, names, **options), Reference(rows, causes, nestings, names, **options)


class Tasks:
    """Tasks that wait for others, put on lanes by a greedy scheduler."""

    def __init__(self, seed, count, lanes, *, links=0.25, empty=0.15, longest=9, lags=None, own_lags=False):
        rnd = random.Random(f"tasks {seed}")
        self.lanes, self.lags = lanes, lags or {"after": 0}
        self.lengths = [0 if rnd.random() < empty else rnd.randint(1, longest) for _ in range(count)]
        self.needs = [[j for j in range(i) if rnd.random() < links] for i in range(count)]
        self.kind = {(j, i): rnd.choice(list(self.lags)) for i in range(count) for j in self.needs[i]}
        self.lag = {pair: rnd.randint(0, 6) if own_lags else self.lags[kind] for pair, kind in self.kind.items()}
        self.place, self.order = self.schedule()

    def schedule(self):
        """Give the task that can begin first to the lane that is free first, again and again."""
        left, free, end, place, order = set(range(len(self.lengths))), [0] * self.lanes, {}, {}, []
        while left:
            choices = []
            for task in left:
                if all(need in end for need in self.needs[task]):
                    ready = max([end[need] + self.lag[need, task] for need in self.needs[task]], default=0)
                    lane = min(range(self.lanes), key=lambda at: (max(free[at], ready), at))
                    choices.append((max(free[lane], ready), task, lane))
            begin, task, lane = min(choices)
            end[task] = free[lane] = begin + self.lengths[task]
            place[task] = lane
            order.append(task)
            left.remove(task)
        return place, order

    def run(self, lengths=None):
        """Run on the same lanes in the same order; return begins and ends."""
        lengths, free = lengths or self.lengths, [0] * self.lanes
        begin, end = {}, {}
        for task in self.order:
            ready = max([end[need] + self.lag[need, task] for need in self.needs[task]], default=0)
            begin[task] = max(free[self.place[task]], ready)
            end[task] = free[self.place[task]] = begin[task] + lengths[task]
        return begin, end

    def rows(self):
        """Return rows and causes; the row of a task is its place in ``order``."""
        begin, end = self.run()
        at = {task: row for row, task in enumerate(self.order)}
        rows = [(self.place[task], begin[task], end[task], str(task), False) for task in self.order]
        causes = [
            (at[need], end[need], at[task], begin[task], self.kind[need, task])
            for task in self.order
            for need in self.needs[task]
        ]
        return rows, causes, at


COSTS = {"sync": 5, "signal": 2, "launch": 7}
CALL, POLL = 3, 1


class Threads:
    """Threads with nested regions that launch into queues in order, wait for them, and for posts of each other."""

    def __init__(self, seed, jitter=0):
        rnd = random.Random(f"threads {seed}")
        self.seed, self.jitter = seed, jitter
        self.threads, self.queues = rnd.randint(1, 3), rnd.randint(1, 3)
        self.programs = [[] for _ in range(self.threads)]
        posts = []
        for _ in range(rnd.randint(20, 60)):
            thread, pick = rnd.randrange(self.threads), rnd.random()
            program, others = self.programs[thread], [post for post in posts if post[0] != thread]
            if pick < 0.35:
                program.append(("work", rnd.choice("abc"), rnd.randint(1, 30)))
            elif pick < 0.6:
                program.append(("launch", rnd.randrange(self.queues), rnd.choice("kl"), rnd.randint(1, 60)))
            elif pick < 0.72:
                program.append(("sync", rnd.randrange(self.queues)))
            elif pick < 0.8:
                posts.append((thread, len(posts)))
                program.append(("post", len(posts) - 1))
            elif pick < 0.9 and others:
                program.append(("wait", rnd.choice(others)[1]))
            elif pick < 0.95:
                program.append(("open", f"r{rnd.randint(0, 2)}"))
            else:
                program.append(("close",))

    def late(self, *key):
        """Return by how much a lag is longer than it costs at least."""
        return random.Random(repr((self.seed, key))).randint(0, self.jitter) if self.jitter else 0

    def run(self, percent=MappingProxyType({}), longer=MappingProxyType({})):
        """Return rows and causes; ``percent``: of lengths by name; ``longer``: of works by (thread, place)."""
        rows, causes, opened = [], [], [[] for _ in range(self.threads)]
        now, at, last, posted = [0] * self.threads, [0] * self.threads, {}, {}

        def scaled(name, length):
            return length * percent.get(name, 100) // 100

        def put(lane, begin, end, name, waits=False):
            rows.append([lane, begin, end, name, waits])
            return len(rows) - 1

        while True:
            ready = deque(
                sorted(
                    (now[t], t)
                    for t in range(self.threads)
                    if at[t] < len(self.programs[t])
                    and not (self.programs[t][at[t]][0] == "wait" and self.programs[t][at[t]][1] not in posted)
                )
            )
            if not ready:
                break
            begin, thread = ready[0]
            step = self.programs[thread][at[thread]]
            key, at[thread] = (thread, at[thread]), at[thread] + 1
            end = begin
            if step[0] == "work":
                end = begin + scaled(step[1], step[2] + longer.get(key, 0))
                put(thread, begin, end, step[1])
            elif step[0] == "launch":
                end = begin + CALL
                call = put(thread, begin, end, "call")
                start = max(begin + COSTS["launch"] + self.late("launch", *key), last.get(step[1], (0,))[0])
                row = put(self.threads + step[1], start, start + scaled(step[2], step[3]), step[2])
                last[step[1]] = rows[row][2], row
                causes.append((call, begin, row, start, "launch"))
            elif step[0] == "sync":
                done, row = last.get(step[1], (None, None))
                end = (
                    begin + POLL if done is None else max(begin + POLL, done + COSTS["sync"] + self.late("sync", *key))
                )
                call = put(thread, begin, end, "sync", True)
                if done is not None:
                    causes.append((row, done, call, end, "sync"))
            elif step[0] == "post":
                end = begin + 2
                posted[step[1]] = end, put(thread, begin, end, "post")
            elif step[0] == "wait":
                done, row = posted[step[1]]
                end = max(begin + POLL, done + COSTS["signal"] + self.late("signal", *key))
                causes.append((row, done, put(thread, begin, end, "wait", True), end, "signal"))
            elif step[0] == "open":
                end = begin + scaled(step[1], 1)
                opened[thread].append(put(thread, begin, None, step[1]))
            elif step[0] == "close" and opened[thread]:
                row = opened[thread].pop()
                end = begin + scaled(rows[row][3], 1)
                rows[row][2] = end
            now[thread] = end
        for thread in range(self.threads):
            for row in opened[thread]:
                rows[row][2] = now[thread]
        return rows, causes

    @property
    def nestings(self):
        return ["nested"] * self.threads + ["disjoint"] * self.queues


def shape(rows, causes):
    """Return what must not change for lanes and orders to be the same."""
    seen, named = {}, []
    for lane, _, _, name, _ in rows:
        seen[lane] = seen.get(lane, 0) + 1
        named.append((lane, seen[lane], name))
    return sorted(named), sorted((named[cause[0]], named[cause[2]], cause[4]) for cause in causes)


def hostile(seed):
    """Return rows that cross and are empty, causes that run backward and in circles, lanes of all kinds."""
    rnd = random.Random(f"hostile {seed}")
    count, lanes, span = rnd.randint(1, 25), rnd.randint(1, 5), rnd.choice([2, 6, 30])
    rows = []
    for _ in range(count):
        begin = rnd.randint(0, span)
        rows.append(
            (rnd.randrange(lanes), begin, begin + rnd.choice([0, 0, 1, 3, 9]), rnd.choice("abc"), rnd.random() < 0.3)
        )
    causes = set()
    for _ in range(rnd.randint(0, 2 * count)):
        u, v = rnd.randrange(count), rnd.randrange(count)
        inside = [rnd.randint(*rows[row][1:3]) for row in (u, v)]
        moments = rnd.choice([(rows[u][2], rows[v][1]), (rows[u][1], rows[v][1]), (rows[u][2], rows[v][2]), inside])
        if u != v:
            causes.add((u, moments[0], v, moments[1], rnd.choice("xyz")))
    nestings = [rnd.choice(["free", "nested", "nested", "disjoint", "disjoint"]) for _ in range(lanes)]
    return rows, sorted(causes), nestings
