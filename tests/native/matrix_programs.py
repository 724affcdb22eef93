"""Random programs against Level Zero, of which a small model of a device says which are legal.

A program is a text that ``fake_ze_matrix --program`` runs. The model (matrix_legal.cpp) knows what Level Zero promises,
and no more: it runs a program under many schedules, and where one of them breaks a rule or comes to no end the program
is not used. What each operation's runs are follows from the text alone.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from native import fake_ze_build
from native.matrix_run import Bench, Quirks, Verdict, examine, fresh

Step = tuple[str, ...]


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

    def renamed(self, prefix: str) -> Program:
        """Return the same program with a prefix before the names of its operations and lists."""

        def step(what: str, *words: str) -> Step:
            if what in ("op", "barrier"):
                return (what, prefix + words[0], prefix + words[1], *words[2:])
            if what in ("signal", "wait", "close", "reset", "destroy", "sync_list", "sync_fence"):
                return (what, prefix + words[0], *words[1:])
            if what == "execute":
                return (what, words[0], *(prefix + name for name in words[1:]))
            return (what, *words)

        threads = tuple(tuple(step(*each) for each in thread) for thread in self.threads)
        return replace(self, lists={prefix + name: spec for name, spec in self.lists.items()}, threads=threads)

    def output(self) -> str:
        """Return what the program prints: how often each kernel ran, and which copies did."""
        engine = {
            words[1]: self.lists[words[0]][2] for thread in self.threads for what, *words in thread if what == "op"
        }
        runs = self.runs()
        counts = {mark: runs[mark] if of == "compute" else min(1, runs[mark]) for mark, of in engine.items()}
        return "".join(f"{mark} ran {counts[mark]}\n" for mark in sorted(counts))


# --- the model ----------------------------------------------------------------------------------------------------


class _Model:
    """The process that says which programs are legal, and its pipes."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        program = fake_ze_build.build_model()
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, question: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(question)
        self.process.stdin.flush()
        return self.process.stdout.readline()


_model: _Model | None = None


def is_legal(program: Program, quirks: Quirks, schedules: int = 100) -> bool:
    """Whether a program keeps the rules and comes to an end, under each of that many schedules; see matrix_legal.cpp.

    Args:
        program: the program.
        quirks: the driver's: ``order`` and ``host_reset`` count.
        schedules: how many are tried.
    """
    global _model
    if _model is None or _model.owner != os.getpid():  # a forked process needs one of its own
        _model = _Model()
    order, resets = quirks.get("order", "list"), quirks.get("host_reset", "works")
    answer = _model.ask(f"program {order} {resets} {schedules}\n{program.text()}end\n")
    if answer not in ("1\n", "0\n"):
        raise RuntimeError("the model of legal programs has ended")
    return answer == "1\n"


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


def legal_program(
    seed: int, world: str = "", *, hard: bool = False, quirks: Quirks | None = None
) -> tuple[Program, Quirks]:
    """Return the first legal program from this seed on, and the driver's ways for it, which may be given."""
    write = hard_program if hard else random_program
    quirks = random_quirks(seed, world) if quirks is None else quirks
    for attempt in range(1000):
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
    if verdict.failures and not is_legal(program, quirks, schedules=RARE):
        return None
    return verdict


#: Schedules for a program that fails.
RARE = 3000


@dataclass
class Group:
    """What became of programs that one process ran one after the other.

    Attributes:
        verdict: of all of them; of those that ended when the process did not.
        failures: of each seed whose program fails.
        illegal: programs that hang or break a rule by themselves.
        alone: whether each was run in a process of its own, because something was wrong.
    """

    verdict: Verdict
    failures: dict[int, list[str]]
    illegal: int = 0
    alone: bool = False


def run_group(
    bench: Bench,
    seeds: Sequence[int],
    world: str,
    folder: Path,
    *,
    hard: bool,
    resets: str = "auto",
    timeline: bool = False,
    timeout: float = 60,
) -> Group:
    """Run programs one after the other in one process, under the ways of the driver of the first seed.

    One recording is read for all of them, which costs a tenth of one for each. Where something is wrong each is run
    alone.

    Args:
        bench: what to run them with.
        seeds: of the programs.
        world: what host resets do; "" leaves it to chance.
        folder: where to; it is emptied.
        hard: see `hard_program`.
        resets: ``--event-resets``.
        timeline: whether to look at the timeline too.
        timeout: seconds after which the process hangs.
    """
    quirks, host_read = random_quirks(seeds[0], world), is_host_read(seeds[0])
    programs = [legal_program(seed, hard=hard, quirks=quirks)[0].renamed(f"p{seed}") for seed in seeds]
    file = fresh(folder) / "program"
    file.write_text("next\n".join(program.text() for program in programs))
    ran = bench.run(["--program", str(file)], quirks, folder, host_read=host_read, resets=resets, timeout=timeout)
    verdict = examine(ran, quirks, host_read=host_read, resets=resets, timeline=timeline)
    if ran.status == 0:
        if ran.out != "".join(program.output() for program in programs):
            verdict.failures.append("the output is another one")
        runs = Counter(op["mark"] for op in ran.truth if op["mark"].startswith("p"))
        if runs != sum((program.runs() for program in programs), Counter()):
            verdict.failures.append("what ran is not what the programs say")
    if not verdict.failures:
        return Group(verdict, {})
    group = Group(Verdict(), {}, alone=True)
    for seed in seeds:
        program, _ = legal_program(seed, hard=hard, quirks=quirks)
        found = run_program(
            bench, program, quirks, folder, host_read=host_read, resets=resets, timeline=timeline, timeout=timeout / 2
        )
        if found is None:
            group.illegal += 1
            continue
        group.verdict.add(found)
        if found.failures:
            group.failures[seed] = found.failures
    if not group.failures and not group.illegal:
        group.failures[seeds[0]] = ["together only", *verdict.failures]
    return group


def is_host_read(seed: int) -> bool:
    """Whether programs from this seed on are run with option H."""
    return random.Random(seed + 77).random() < 0.5


def _ends_by_itself(bench: Bench, program: Program, quirks: Quirks, folder: Path, timeout: float) -> bool:
    """Whether a program that hangs ends when it is not recorded: in the model, under many schedules, and in truth."""
    if not is_legal(program, quirks, schedules=RARE):
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
