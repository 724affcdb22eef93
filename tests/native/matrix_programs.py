"""Random programs against Level Zero, and a small model of a device that says which of them are legal.

A program is a text that ``fake_ze_matrix --program`` runs. The model knows what Level Zero promises, and no more: it
runs a program under many schedules, and where one of them breaks a rule or comes to no end the program is not used.
What each operation's runs are follows from the text alone.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from native.matrix_run import Bench, Quirks, Verdict, examine, fresh

Step = tuple[str, ...]
#: What a thread waits for; asked until it is true.
Condition = Callable[[], bool]


@dataclass(frozen=True)
class Program:
    """A program.

    Attributes:
        lists: name -> kind, order, engine.
        queues: name -> engine.
        events: name -> whether it has timestamps.
        threads: the steps of each thread. All steps of one list are in one thread.
    """

    lists: dict[str, tuple[str, str, str]]
    queues: dict[str, str]
    events: dict[str, bool]
    threads: tuple[tuple[Step, ...], ...]

    def text(self) -> str:
        """Return what the interpreter reads."""
        lines = [f"list {name} {' '.join(spec)}" for name, spec in self.lists.items()]
        lines += [f"queue {name} {engine}" for name, engine in self.queues.items()]
        lines += [f"event {name} {'ticks' if ticks else 'plain'}" for name, ticks in self.events.items()]
        for thread in self.threads:
            lines += ["thread", *(" ".join(step) for step in thread)]
        return "\n".join(lines) + "\n"

    def runs(self) -> Counter[str]:
        """Return how often each operation runs."""
        found: Counter[str] = Counter()
        for thread in self.threads:
            body: dict[str, list[str]] = {}
            for what, *words in thread:
                if what in ("op", "barrier"):
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

    def output(self) -> str:
        """Return what the program prints: how often each kernel ran, and which copies did."""
        engine = {
            words[1]: self.lists[words[0]][2] for thread in self.threads for what, *words in thread if what == "op"
        }
        runs = self.runs()
        counts = {mark: runs[mark] if of == "compute" else min(1, runs[mark]) for mark, of in engine.items()}
        return "".join(f"{mark} ran {counts[mark]}\n" for mark in sorted(counts))


# --- the model ----------------------------------------------------------------------------------------------------


class IllegalError(Exception):
    """The program breaks a rule of Level Zero."""


@dataclass(eq=False)
class _Command:
    role: str  # plain, barrier, wait
    signal: str | None
    waits: tuple[str, ...]
    resets: bool = False

    def uses(self, event: str) -> bool:
        return event == self.signal or event in self.waits


@dataclass(eq=False)
class _Instance:
    command: _Command
    owner: str
    sequence: int
    started: bool = False


@dataclass(eq=False)
class _List:
    in_order: bool
    immediate: bool
    engine: str
    open: bool = True
    alive: bool = True
    body: list[_Command] = field(default_factory=list)


class Model:
    """A device, and the threads of one program.

    Args:
        program: the program.
        quirks: the driver's: ``order`` and ``host_reset`` count.
        seed: of the schedule.
    """

    def __init__(self, program: Program, quirks: Quirks, seed: int) -> None:
        self.program, self.random = program, random.Random(seed)
        self.order = str(quirks.get("order", "list"))
        self.resets = str(quirks.get("host_reset", "works"))
        self.signalled = dict.fromkeys(program.events, False)
        #: The host sees these signalled although the device does not.
        self.stuck = dict.fromkeys(program.events, False)
        self.lists = {
            name: _List(order == "in-order", kind == "immediate", engine)
            for name, (kind, order, engine) in program.lists.items()
        }
        self.streams: dict[str, list[_Instance]] = {name: [] for name in (*program.lists, *program.queues)}
        self.engine_of = {**{name: spec[2] for name, spec in program.lists.items()}, **program.queues}
        self.fences: dict[str, list[_Instance]] = {}
        self.sequence = 0
        self.over: set[_Instance] = set()

    def ends(self) -> bool:
        """Run the program once; return whether it comes to an end.

        Raises:
            IllegalError: it breaks a rule.
        """
        waiting: list[tuple[float, Iterator[Condition], Condition]] = [
            (self.random.random(), self._thread(steps), lambda: True) for steps in self.program.threads
        ]
        # Real schedules are unfair: one thread goes as far as it can before another one begins, or the device is slow.
        is_fair, speed = self.random.random() < 0.5, self.random.choice((0.0, 0.2, 0.5, 0.9, 1.0))
        while waiting:
            moves = [entry for entry in waiting if entry[2]()]
            acts = self._acts()
            if not moves and not acts:
                return False
            if moves and (not acts or self.random.random() < speed):
                entry = self.random.choice(moves) if is_fair else min(moves, key=lambda move: move[0])
                waiting.remove(entry)
                following = next(entry[1], None)
                if following is not None:
                    waiting.append((*entry[:2], following))
            else:
                self._act(*self.random.choice(acts))
        while acts := self._acts():
            self._act(*self.random.choice(acts))
        return not any(self.streams.values())

    # --- the device

    def _acts(self) -> list[tuple[str, _Instance]]:
        found = []
        for name, stream in self.streams.items():
            for place, instance in enumerate(stream):
                if instance.started or self._may_start(name, place, instance):
                    found.append((name, instance))
        return found

    def _may_start(self, name: str, place: int, instance: _Instance) -> bool:
        stream = self.streams[name]
        if not all(self.signalled[event] for event in instance.command.waits):
            return False
        in_order = self.lists[instance.owner].in_order
        for earlier in stream[:place]:
            if in_order and earlier.owner == instance.owner:
                return False
            if earlier.command.role != "plain":
                return False
            if instance.command.role == "barrier" and not instance.command.waits:
                return False
            if self.order != "free" and not earlier.started:
                return False
        if self.order == "engine":
            engine = self.engine_of[name]
            return not any(
                other.sequence < instance.sequence and not other.started
                for each, others in self.streams.items()
                if self.engine_of[each] == engine
                for other in others
            )
        return True

    def _act(self, name: str, instance: _Instance) -> None:
        if not instance.started:
            instance.started = True
            return
        self.streams[name].remove(instance)
        self.over.add(instance)
        if instance.command.signal is not None:
            self.signalled[instance.command.signal] = True

    def _submit(self, stream: str, owner: str, command: _Command) -> _Instance:
        self.sequence += 1
        instance = _Instance(command, owner, self.sequence)
        self.streams[stream].append(instance)
        return instance

    # --- the program

    def _is_queued(self, event: str) -> bool:
        return any(i.command.uses(event) for stream in self.streams.values() for i in stream)

    def _require_idle(self, name: str) -> None:
        if any(i.owner == name for stream in self.streams.values() for i in stream):
            raise IllegalError(f"{name} still runs")

    def _append(self, name: str, command: _Command) -> None:
        target = self.lists[name]
        if not target.alive or not target.open:
            raise IllegalError(f"{name} is closed")
        if target.immediate:
            self._submit(name, name, command)
        else:
            target.body.append(command)

    def _reset(self, event: str, *, is_new: bool) -> None:
        has_ticks = self.program.events[event] and not is_new
        if has_ticks and self.resets == "sticky":
            return
        self.stuck[event] = has_ticks and self.resets == "view" and (self.signalled[event] or self.stuck[event])
        self.signalled[event] = False

    def _thread(self, steps: tuple[Step, ...]) -> Iterator[Condition]:
        def always() -> bool:
            return True

        def ended(instances: list[_Instance]) -> Condition:
            return lambda: all(instance in self.over for instance in instances)

        for what, *words in steps:
            if what in ("op", "barrier"):
                signal = None if words[2] == "-" else words[2]
                waits = () if words[3] == "-" else tuple(words[3].split(","))
                self._append(words[0], _Command("barrier" if what == "barrier" else "plain", signal, waits))
            elif what == "signal":
                self._append(words[0], _Command("plain", words[1], ()))
            elif what == "wait":
                self._append(words[0], _Command("wait", None, tuple(words[1].split(","))))
            elif what == "close":
                self.lists[words[0]].open = False
            elif what == "reset":
                self._require_idle(words[0])
                self.lists[words[0]].body, self.lists[words[0]].open = [], True
            elif what == "destroy":
                self._require_idle(words[0])
                self.lists[words[0]].body, self.lists[words[0]].alive = [], False
            elif what == "execute":
                queue, *names = words
                submitted: list[_Instance] = []
                for name in names:
                    executed = self.lists[name]
                    if executed.open or not executed.alive:
                        raise IllegalError(f"{name} is open")
                    self._require_idle(name)
                for name in names:
                    submitted += [self._submit(queue, name, command) for command in self.lists[name].body]
                self.fences[names[0]] = submitted
            elif what == "sync_list" or what == "sync_queue":
                yield ended(list(self.streams[words[0]]))
            elif what == "sync_fence":
                yield ended(self.fences[words[0]])
            elif what in ("sync_event", "poll"):
                event = words[0]
                yield lambda event=event: self.signalled[event] or self.stuck[event]
            elif what == "host_signal":
                self.signalled[words[0]] = True
            elif what in ("host_reset", "renew"):
                if self._is_queued(words[0]):
                    raise IllegalError(f"{words[0]} is in use")
                if what == "renew" and any(
                    command.uses(words[0]) for each in self.lists.values() for command in each.body
                ):
                    raise IllegalError(f"{words[0]} is recorded")
                self._reset(words[0], is_new=what == "renew")
            yield always


def is_legal(program: Program, quirks: Quirks, schedules: int = 24) -> bool:
    """Whether a program keeps the rules and comes to an end, under each of that many schedules."""
    try:
        return all(Model(program, quirks, seed).ends() for seed in range(schedules))
    except IllegalError:
        return False


# --- random programs ----------------------------------------------------------------------------------------------


class _Writer:
    """Writes the steps of one list."""

    def __init__(self, chance: random.Random, number: int, events: dict[str, bool], names: Iterator[str]) -> None:
        self.chance, self.names = chance, names
        self.name = f"L{number}"
        self.spec = (
            "immediate" if chance.random() < 0.5 else "regular",
            "in-order" if chance.random() < 0.4 else "out-of-order",
            "compute" if chance.random() < 0.6 else "copy",
        )
        self.own = [f"p{number}", f"q{number}"]
        self.last = f"t{number}"
        events.update({self.own[0]: True, self.own[1]: False, self.last: chance.random() < 0.5})
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
    events, names = {"s0": True, "s1": False, "g": False}, iter(f"o{number}" for number in range(1000))
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
    events = {"g": False, "h": False}
    names, steps = iter(f"o{number}" for number in range(1000)), []
    regular = [f"L{number}" for number in range(chance.randint(1, 3))]
    immediate = [f"M{number}" for number in range(chance.choice((0, 0, 1, 1, 2)))]
    for name in (*regular, *immediate):
        order = "in-order" if chance.random() < (0.15 if name in regular else 0.4) else "out-of-order"
        engine = "compute" if chance.random() < 0.6 else "copy"
        lists[name] = ("regular" if name in regular else "immediate", order, engine)
        events.update({f"{name}x": chance.random() < 0.3, f"{name}y": False})
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


def random_quirks(seed: int, world: str = "") -> Quirks:
    """Choose the driver's ways for a program; ``world``: what its host resets do, else by chance too."""
    chance = random.Random(seed)
    quirks: Quirks = {"order": chance.choice(("free", "list", "engine")), "seed": seed + 1}
    if chance.random() < 0.5:
        quirks["host_reset"] = "sticky"
    if world:
        quirks["host_reset"] = world
    if chance.random() < 0.3:
        quirks["workers"] = 2
    if chance.random() < 0.2:
        quirks["late"] = chance.choice((20, 200))
    if chance.random() < 0.2:
        quirks["recycle"] = 0
    if chance.random() < 0.1:
        quirks["unsignalled"] = "not_ready"
    if chance.random() < 0.1:
        quirks["start"] = -200
    if chance.random() < 0.15:
        quirks["torn"] = 30
    return quirks


def legal_program(seed: int, world: str = "", *, hard: bool = False) -> tuple[Program, Quirks]:
    """Return the first legal program from this seed on, and the driver's ways for it."""
    write = hard_program if hard else random_program
    for attempt in range(1000):
        quirks = random_quirks(seed, world)
        program = write(seed * 1000 + attempt)
        if is_legal(program, quirks):
            return program, quirks
    raise AssertionError(f"no legal program from seed {seed} on")


def run_program(
    bench: Bench,
    program: Program,
    quirks: Quirks,
    folder: Path,
    *,
    host_read: bool,
    resets: str = "auto",
    timeline: bool = False,
    timeout: float = 30,
) -> Verdict | None:
    """Run a program recorded, and hold the recording against the truth and against what the model says.

    Args:
        bench: what to run it with.
        program: a legal program.
        quirks: the driver's.
        folder: where to; it is emptied.
        host_read: option H.
        resets: ``--event-resets``.
        timeline: whether to look at the timeline too.
        timeout: seconds after which it hangs.

    Returns:
        What was found; None when the program hangs by itself or breaks a rule, under a schedule that the model had not
        tried when it was taken for a legal one.
    """
    file = fresh(folder) / "program"
    file.write_text(program.text())
    arguments = ["--program", str(file)]
    ran = bench.run(arguments, quirks, folder, host_read=host_read, resets=resets, timeout=timeout)
    verdict = examine(ran, quirks, host_read=host_read, resets=resets, timeline=timeline)
    if ran.status is None and not _ends_by_itself(bench, program, quirks, folder, timeout):
        return None
    if ran.status == 0:
        if ran.out != program.output():
            verdict.failures.append(f"its output is another one:\n{ran.out}instead of\n{program.output()}")
        runs = Counter(op["mark"] for op in ran.truth if op["mark"].startswith("o"))
        if runs != program.runs():
            verdict.failures.append(f"runs {dict(runs - program.runs())} instead of {dict(program.runs() - runs)}")
    if verdict.failures and not is_legal(program, quirks, schedules=150):
        return None
    return verdict


def _ends_by_itself(bench: Bench, program: Program, quirks: Quirks, folder: Path, timeout: float) -> bool:
    """Whether a program that hangs ends when it is not recorded: in the model, under many schedules, and in truth."""
    if not is_legal(program, quirks, schedules=150):
        return False
    for _ in range(5):
        file = fresh(folder / "alone") / "program"
        file.write_text(program.text())
        ran = bench.run(["--program", str(file)], quirks, folder / "alone", recorded=False, timeout=timeout / 3)
        if ran.status is None:
            return False
    return True


def minimise(program: Program, quirks: Quirks, fails: Callable[[Program], bool]) -> Program:
    """Leave steps out as long as the program is legal and fails."""
    shrunk = True
    while shrunk:
        shrunk = False
        for number, thread in enumerate(program.threads):
            for place in reversed(range(len(thread))):
                threads = list(program.threads)
                if place >= len(threads[number]):
                    continue
                threads[number] = threads[number][:place] + threads[number][place + 1 :]
                smaller = replace(program, threads=tuple(threads))
                if _is_whole(smaller) and is_legal(smaller, quirks) and fails(smaller):
                    program, shrunk = smaller, True
    used = {word for thread in program.threads for step in thread for word in step[1:]}
    return replace(program, lists={name: spec for name, spec in program.lists.items() if name in used})


def _is_whole(program: Program) -> bool:
    """Whether each thread still has steps, and each fence that is waited for a run before it."""
    for thread in program.threads:
        executed = set()
        for step in thread:
            if step[0] == "execute":
                executed.add(step[2])
            if step[0] == "sync_fence" and step[1] not in executed:
                return False
    return all(program.threads)
