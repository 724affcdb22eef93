"""What random programs against Level Zero are, and who writes them; they need not be legal.

`random_program` writes lists of all kinds in several threads, `hard_program` lists that run again while others wait,
`query_program` lists that reset events and ask for their timestamps.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

Step = tuple[str, ...]

#: An event without timestamps; one with; one with, that is never reset and means what was last submitted to signal it.
Kind = Literal["plain", "ticks", "counter"]


@dataclass(frozen=True)
class Program:
    """A program.

    Attributes:
        lists: name -> kind, order, engine.
        queues: name -> engine.
        events: name -> its kind.
        threads: the steps of each thread. All steps of one list are in one thread.
    """

    lists: dict[str, tuple[str, str, str]]
    queues: dict[str, str]
    events: dict[str, Kind]
    threads: tuple[tuple[Step, ...], ...]

    def text(self) -> str:
        """Return what the interpreter reads."""
        lines = [f"list {name} {' '.join(spec)}" for name, spec in self.lists.items()]
        lines += [f"queue {name} {engine}" for name, engine in self.queues.items()]
        lines += [f"event {name} {kind}" for name, kind in self.events.items()]
        for thread in self.threads:
            lines += ["thread", *(" ".join(step) for step in thread)]
        return "\n".join(lines) + "\n"

    def runs(self) -> Counter[str]:
        """Return how often each operation runs."""
        found: Counter[str] = Counter()
        for thread in self.threads:
            body: dict[str, list[str]] = {}
            for what, *words in thread:
                if what in ("op", "barrier", "query"):
                    if self.lists[words[0]][0] == "immediate":
                        found[words[1]] += 1
                    else:
                        body.setdefault(words[0], []).append(words[1])
                elif what == "execute":
                    for name in words[1:]:
                        found.update(body.get(name, []))
                elif what == "reset":
                    body.pop(words[0], None)
        return found

    def renamed(self, prefix: str) -> Program:
        """Return the same program with a prefix before the names of its operations and lists."""

        def step(what: str, *words: str) -> Step:
            if what in ("op", "barrier", "query"):
                return (what, prefix + words[0], prefix + words[1], *words[2:])
            if what == "tell":
                return (what, prefix + words[0], prefix + words[1], words[2])
            if what == "ticks":
                return (what, words[0], prefix + words[1], words[2])
            if what in ("signal", "event_reset", "wait", "close", "reset", "destroy", "sync_list", "sync_fence"):
                return (what, prefix + words[0], *words[1:])
            if what == "execute":
                return (what, words[0], *(prefix + name for name in words[1:]))
            return (what, *words)

        threads = tuple(tuple(step(*each) for each in thread) for thread in self.threads)
        return replace(self, lists={prefix + name: spec for name, spec in self.lists.items()}, threads=threads)

    def answered(self, answers: Sequence[str]) -> Program:
        """Return the same program with the answers to its questions for timestamps; those that have none are left out.

        Args:
            answers: one for each ``tell`` and ``ticks``, thread by thread: ``MARK:RUN`` or ``-``.
        """
        left = iter(answers)

        def step(what: str, *words: str) -> tuple[Step, ...]:
            if what not in ("tell", "ticks"):
                return ((what, *words),)
            of, _, run = next(left).rpartition(":")
            return ((what, words[0], of, run),) if of else ()

        threads = tuple(tuple(made for each in thread for made in step(*each)) for thread in self.threads)
        return replace(self, threads=threads)

    def output(self) -> str:
        """Return what the program prints: how often each kernel ran, and which copies did."""
        engine = {
            words[1]: self.lists[words[0]][2] for thread in self.threads for what, *words in thread if what == "op"
        }
        runs = self.runs()
        counts = {mark: runs[mark] if of == "compute" else min(1, runs[mark]) for mark, of in engine.items()}
        return "".join(f"{mark} ran {counts[mark]}\n" for mark in sorted(counts))


# --- random programs ----------------------------------------------------------------------------------------------


def _ticks(chance: random.Random, share: float) -> Kind:
    return "ticks" if chance.random() < share else "plain"


class _Writer:
    """Writes the steps of one list."""

    def __init__(self, chance: random.Random, number: int, events: dict[str, Kind], names: Iterator[str]) -> None:
        self.chance, self.names = chance, names
        self.name = f"L{number}"
        self.spec = (
            "immediate" if chance.random() < 0.5 else "regular",
            "in-order" if chance.random() < 0.4 else "out-of-order",
            "compute" if chance.random() < 0.6 else "copy",
        )
        self.own = [f"p{number}", f"q{number}"]
        self.last = f"t{number}"
        events.update({self.own[0]: "ticks", self.own[1]: "plain", self.last: _ticks(chance, 0.5)})
        self.steps: list[Step] = []
        self.signalled: list[str] = []

    def append(self) -> None:
        chance = self.chance
        signal = chance.choice(["-", "-", *self.own, chance.choice(("s0", "s1"))])
        waits = "-"
        if chance.random() < 0.35:
            pool = sorted({*self.signalled, chance.choice(("s0", "s1", "g"))})
            waits = ",".join(chance.sample(pool, min(len(pool), chance.choice((1, 1, 2)))))
        what = chance.random()
        if what < 0.06 and waits != "-":
            self.steps.append(("wait", self.name, waits))
        elif what < 0.12 and signal != "-":
            self.steps.append(("signal", self.name, signal))
        else:
            kind = "barrier" if what > 0.88 else "op"
            self.steps.append((kind, self.name, next(self.names), signal, waits))
        if signal != "-":
            self.signalled.append(signal)

    def write(self) -> list[Step]:
        (self._immediate if self.spec[0] == "immediate" else self._regular)()
        return self.steps

    def _immediate(self) -> None:
        chance = self.chance
        for _ in range(chance.randint(2, 16)):
            what, own = chance.random(), [event for event in self.signalled if event in self.own]
            if what < 0.65:
                self.append()
            elif what < 0.8 and own:
                self.steps.append((chance.choice(("sync_event", "poll")), chance.choice(own)))
            elif what < 0.95:
                self.steps.append(("sync_list", self.name))
                self.steps += [(chance.choice(("host_reset", "renew")), event) for event in self.own]
                self.signalled.clear()
        if chance.random() < 0.3:
            self.steps += [("sync_list", self.name), ("destroy", self.name)]

    def _regular(self) -> None:
        chance = self.chance
        queue = "qc" if self.spec[2] == "compute" else "qk"
        for life in range(chance.randint(1, 2)):
            if life:
                self.steps.append(("reset", self.name))
            self.signalled.clear()
            for _ in range(chance.randint(1, 6)):
                self.append()
            # Behind all others: who sees its event knows that the list is over.
            self.steps += [("barrier", self.name, next(self.names), self.last, "-"), ("close", self.name)]
            for _ in range(chance.randint(1, 3)):
                self.steps += [("host_reset", event) for event in (*self.own, self.last)]
                self.steps.append(("execute", queue, self.name))
                # An event that a reset may leave signalled tells nothing.
                ways = [("sync_queue", queue), ("sync_fence", self.name)]
                self.steps.append(chance.choice([*ways, ("sync_event", self.last), ("poll", self.last)]))
        if chance.random() < 0.3:
            self.steps.append(("destroy", self.name))


def random_program(seed: int) -> Program:
    """Write a program; it need not be legal."""
    chance = random.Random(seed)
    events: dict[str, Kind] = {"s0": "ticks", "s1": "plain", "g": "plain"}
    names = iter(f"o{number}" for number in range(1000))
    writers = [_Writer(chance, number, events, names) for number in range(chance.randint(1, 3))]
    scripts = [writer.write() for writer in writers] + [[("host_signal", "g")]]
    threads: list[list[Step]] = [[] for _ in range(chance.randint(1, 3))]
    where = [chance.randrange(len(threads)) for _ in scripts]
    left = [iter(script) for script in scripts]
    places = [number for number, script in enumerate(scripts) for _ in script]
    chance.shuffle(places)
    for place in places:
        threads[where[place]].append(next(left[place]))
    lists = {writer.name: writer.spec for writer in writers}
    return Program(lists, {"qc": "compute", "qk": "copy"}, events, tuple(tuple(t) for t in threads if t))


def hard_program(seed: int) -> Program:
    """Write a program of one thread around lists that run again: it need not be legal.

    Several lists in one submission in any order, waits across lists, immediate lists and waits for the host between,
    the host's signals before or after the submissions; two to four rounds.
    """
    chance = random.Random(seed)
    lists: dict[str, tuple[str, str, str]] = {}
    events: dict[str, Kind] = {"g": "plain", "h": "plain"}
    names, steps = iter(f"o{number}" for number in range(1000)), []
    regular = [f"L{number}" for number in range(chance.randint(1, 3))]
    immediate = [f"M{number}" for number in range(chance.choice((0, 0, 1, 1, 2)))]
    for name in (*regular, *immediate):
        order = "in-order" if chance.random() < (0.15 if name in regular else 0.4) else "out-of-order"
        engine = "compute" if chance.random() < 0.6 else "copy"
        lists[name] = ("regular" if name in regular else "immediate", order, engine)
        events.update({f"{name}x": _ticks(chance, 0.3), f"{name}y": "plain"})
    foreign = {name: [f"{other}{e}" for other in regular if other != name for e in "xy"] for name in regular}
    for name in regular:
        made: list[str] = []
        for _ in range(chance.randint(1, 4)):
            signal = chance.choice(("-", f"{name}x", f"{name}y", f"{name}y"))
            waits = chance.choice([*made, *foreign[name], "g", "h"]) if chance.random() < 0.45 else "-"
            steps.append(("barrier" if chance.random() < 0.1 else "op", name, next(names), signal, waits))
            made += [signal] if signal != "-" else []
        steps.append(("close", name))
    queue_of = {name: chance.choice(("qc", "qc", "q2")) if lists[name][2] == "compute" else "qk" for name in regular}
    for _ in range(chance.randint(2, 4)):
        steps += [("host_reset", event) for event in events]
        steps += _round(chance, lists, regular, immediate, queue_of, names)
    return Program(lists, {"qc": "compute", "q2": "compute", "qk": "copy"}, events, (tuple(steps),))


def _round(
    chance: random.Random,
    lists: dict[str, tuple[str, str, str]],
    regular: list[str],
    immediate: list[str],
    queue_of: dict[str, str],
    names: Iterator[str],
) -> list[Step]:
    """One run of every list, with what happens meanwhile, and waits for all."""
    block: list[Step] = []
    left = chance.sample(regular, len(regular))
    while left:
        together = [name for name in left if queue_of[name] == queue_of[left[0]]][: chance.randint(1, 3)]
        block.append(("execute", queue_of[left[0]], *together))
        left = [name for name in left if name not in together]
    for name in immediate:
        for _ in range(chance.randint(0, 2)):
            waits = chance.choice(("g", "h")) if chance.random() < 0.6 else "-"
            step = ("op", name, next(names), chance.choice(("-", f"{name}x", f"{name}y")), waits)
            block.insert(chance.randint(0, len(block)), step)
    if chance.random() < 0.4:
        block.append((chance.choice(("sync_event", "poll")), f"{chance.choice(regular)}{chance.choice('xy')}"))
    for event in ("g", "h"):
        block.insert(chance.randint(0, len(block)), ("host_signal", event))
    waits_for_all: list[Step] = [("sync_queue", queue) for queue in ("qc", "q2", "qk")]
    return [*block, *waits_for_all, *(("sync_list", name) for name in immediate)]


@dataclass
class _Body:
    """What a list of `query_program` is made of, piece by piece."""

    chance: random.Random
    name: str
    is_in_order: bool
    computes: bool
    events: dict[str, Kind]
    own: list[str]
    foreign: list[str]
    names: Iterator[str]
    steps: list[Step] = field(default_factory=list)
    signalled: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)

    def append(self) -> None:
        """Write one more command, or a few that belong together."""
        what = self.chance.random()
        resettable = [event for event in self.signalled if self.events[event] != "counter"]
        asked = [event for event in self.signalled if self.events[event] != "plain"]
        if what < 0.2 and resettable:
            self._reset(self.chance.choice(resettable))
        elif what < 0.4 and self.computes and asked:
            self._query(self.chance.choice(asked))
        elif what < 0.5 and self.computes and self.foreign:
            self._query(self.chance.choice(self.foreign))
        elif what < 0.6:
            self._barrier()
        else:
            self._operation()

    def _waits(self) -> str:
        pool = [*self.signalled, *self.foreign, "g"]
        return self.chance.choice(pool) if self.chance.random() < 0.3 else "-"

    def _signal(self, event: str) -> str:
        if event != "-":
            self.signalled = [*(one for one in self.signalled if one != event), event]
        return event

    def _operation(self) -> None:
        waits, signal = self._waits(), self.chance.choice(("-", *self.own, *self.own))
        self.steps.append(("op", self.name, next(self.names), self._signal(signal), waits))

    def _barrier(self, signal: str = "-") -> None:
        self.steps.append(("barrier", self.name, next(self.names), self._signal(signal), "-"))

    def _reset(self, event: str) -> None:
        """Reset an event on the device, behind all that there is; then something else may signal it."""
        if not self.is_in_order:
            self._barrier()
        self.steps.append(("event_reset", self.name, event))
        self.signalled.remove(event)
        if not self.is_in_order:
            self._barrier()
        if self.computes and self.events[event] == "ticks" and self.chance.random() < 0.3:
            self._query(event)
        if self.chance.random() < 0.7:
            self.steps.append(("op", self.name, next(self.names), self._signal(event), "-"))

    def _query(self, event: str) -> None:
        mark = next(self.names)
        self.queries.append(mark)
        signal = self._signal(self.chance.choice(("-", "-", f"{self.name}y")))
        self.steps.append(("query", self.name, mark, event, signal, event))


def query_program(seed: int) -> Program:
    """Write a program around events: their resets on the device, queries of their timestamps, counters.

    Lists of all kinds, made once or anew in each of two to four rounds; a query may be appended before what it waits
    for, and may run again. At the end of a round all that was written, and what the host reads, is asked for.
    """
    chance = random.Random(seed)
    lists: dict[str, tuple[str, str, str]] = {}
    events: dict[str, Kind] = {"g": "plain"}
    names = iter(f"o{number}" for number in range(1000))
    own: dict[str, list[str]] = {}
    for number in range(chance.randint(1, 3)):
        name = f"L{number}"
        order = "in-order" if chance.random() < 0.5 else "out-of-order"
        engine = "compute" if chance.random() < 0.7 else "copy"
        lists[name] = (chance.choice(("immediate", "regular")), order, engine)
        own[name] = [f"{name}x", f"{name}y"]
        events.update({f"{name}x": "ticks", f"{name}y": "plain"})
        if order == "in-order" and chance.random() < 0.6:
            own[name].append(f"{name}c")
            events[f"{name}c"] = "counter"
    steps: list[Step] = []
    kept: dict[str, _Body] = {}
    for number in range(chance.randint(2, 4)):
        resettable = [event for event, kind in events.items() if kind != "counter"]
        steps += [("host_reset", event) for event in resettable if chance.random() < 0.8]
        steps += _query_round(chance, lists, own, events, names, kept, is_first=number == 0)
    return Program(lists, {"qc": "compute", "qk": "copy"}, events, (tuple(steps),))


def _query_round(
    chance: random.Random,
    lists: dict[str, tuple[str, str, str]],
    own: dict[str, list[str]],
    events: dict[str, Kind],
    names: Iterator[str],
    kept: dict[str, _Body],
    *,
    is_first: bool,
) -> list[Step]:
    """Append to each immediate list, execute each regular one, wait for all, and ask for all."""
    scripts: list[list[Step]] = [[("host_signal", "g")]]
    asked = [event for event, kind in events.items() if kind != "plain"]
    for name, (kind, order, engine) in lists.items():
        queue = "qc" if engine == "compute" else "qk"
        is_new = kind == "immediate" or is_first or chance.random() < 0.3
        if is_new:
            foreign = [event for event in asked if event not in own[name]]
            kept[name] = body = _Body(
                chance, name, order == "in-order", engine == "compute", events, own[name], foreign, names
            )
            for _ in range(chance.randint(2, 8)):
                body.append()
        steps = list(kept[name].steps) if is_new else []
        if kind == "regular":
            if is_new and not is_first:
                steps.insert(0, ("reset", name))
            if is_new:
                steps.append(("close", name))
            steps.append(("execute", queue, name))
        scripts.append(steps)
    left = [iter(script) for script in scripts]
    places = [number for number, script in enumerate(scripts) for _ in script]
    chance.shuffle(places)
    steps = [next(left[place]) for place in places]
    steps += [("sync_queue", queue) for queue in ("qc", "qk")]
    steps += [("sync_list", name) for name, (kind, _, _) in lists.items() if kind == "immediate"]
    steps += [("tell", query, "?", "0") for body in kept.values() for query in body.queries]
    return steps + [("ticks", event, "?", "0") for event in asked if chance.random() < 0.5]


#: Who writes a program from a seed.
WRITERS: dict[str, Callable[[int], Program]] = {
    "any": random_program,
    "hard": hard_program,
    "queries": query_program,
}
