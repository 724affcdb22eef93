"""Random programs against Level Zero, of which a small model of a device says which are legal.

A program is a text that ``fake_ze_matrix --program`` runs. The model (matrix_legal.cpp) knows what Level Zero promises,
and no more: it runs a program under many schedules, and where one of them breaks a rule or comes to no end the program
is not used. What each operation's runs are follows from the text alone.
"""

from __future__ import annotations

import atexit
import os
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from native import fake_ze_build
from native.matrix_run import Bench, Quirks, Verdict, examine, fresh
from native.matrix_writers import WRITERS, Program

# --- the model ----------------------------------------------------------------------------------------------------


class _Model:
    """The process that says which programs are legal, and its pipes."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        program = fake_ze_build.build_model()
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        atexit.register(self.end)

    def end(self) -> None:
        """Close its pipes, which ends it; a forked process has no part in that."""
        if self.owner == os.getpid():
            self.process.communicate()

    def ask(self, question: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(question)
        self.process.stdin.flush()
        return self.process.stdout.readline()


_model: _Model | None = None


def answered(program: Program, quirks: Quirks, schedules: int = 100) -> Program | None:
    """Have the model run a program under that many schedules; see matrix_legal.cpp.

    Args:
        program: the program.
        quirks: the driver's: ``order`` and ``host_reset`` count.
        schedules: how many are tried.

    Returns:
        The program, with those of its questions for timestamps that have one answer under all schedules; None when it
        breaks a rule or comes to no end under one of them.
    """
    global _model
    if _model is None or _model.owner != os.getpid():  # a forked process needs one of its own
        _model = _Model()
    order, resets = quirks.get("order", "list"), quirks.get("host_reset", "works")
    answer = _model.ask(f"program {order} {resets} {schedules}\n{program.text()}end\n")
    verdict, *answers = answer.split() or [""]
    if verdict not in ("0", "1"):
        raise RuntimeError("the model of legal programs has ended")
    return program.answered(answers) if verdict == "1" else None


def is_legal(program: Program, quirks: Quirks, schedules: int = 100) -> bool:
    """Whether a program keeps the rules and comes to an end, and all that it asks has the answer that it expects."""
    return answered(program, quirks, schedules) == program


# --- random programs ----------------------------------------------------------------------------------------------


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
    if chance.random() < 0.5:
        quirks["reset_clears"] = 1
    return quirks


def legal_program(
    seed: int, world: str = "", *, kind: str = "any", quirks: Quirks | None = None
) -> tuple[Program, Quirks]:
    """Return the first legal program from this seed on, and the driver's ways for it, which may be given.

    Args:
        seed: of the program.
        world: what host resets do; "" leaves it to chance.
        kind: who writes it, of `WRITERS`.
        quirks: the driver's.
    """
    quirks = random_quirks(seed, world) if quirks is None else quirks
    for attempt in range(1000):
        program = answered(WRITERS[kind](seed * 1000 + attempt), quirks)
        if program is not None:
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
RARE = 10_000


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
    kind: str = "any",
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
        kind: who writes them, of `WRITERS`.
        resets: ``--event-resets``.
        timeline: whether to look at the timeline too.
        timeout: seconds after which the process hangs.
    """
    quirks, host_read = random_quirks(seeds[0], world), is_host_read(seeds[0])
    programs = [legal_program(seed, kind=kind, quirks=quirks)[0].renamed(f"p{seed}") for seed in seeds]
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
    # Which program's reading it is that may be false is not known.
    if not verdict.failures and not verdict.false_readings:
        return Group(verdict, {})
    group = Group(Verdict(), {}, alone=True)
    for seed in seeds:
        program, _ = legal_program(seed, kind=kind, quirks=quirks)
        found = run_program(
            bench, program, quirks, folder, host_read=host_read, resets=resets, timeline=timeline, timeout=timeout / 2
        )
        if found is None:
            group.illegal += 1
            continue
        group.verdict.add(found)
        if found.failures:
            group.failures[seed] = found.failures
    if verdict.failures and not group.failures and not group.illegal:
        programs = [legal_program(seed, kind=kind, quirks=quirks)[0] for seed in seeds]
        group.illegal = sum(not is_legal(program, quirks, schedules=RARE) for program in programs)
    if verdict.failures and not group.failures and not group.illegal:
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
                legal = answered(smaller, quirks) if _is_whole(smaller) else None
                if legal is not None and fails(legal):
                    program, shrunk = legal, True
    used = {word for thread in program.threads for step in thread for word in step[1:]}
    return replace(program, lists={name: spec for name, spec in program.lists.items() if name in used})


def _is_whole(program: Program) -> bool:
    """Whether each thread still has steps, each fence that is waited for a run before it, each question a query."""
    queries = {step[2] for thread in program.threads for step in thread if step[0] == "query"}
    for thread in program.threads:
        executed = set()
        for step in thread:
            if step[0] == "tell" and step[1] not in queries:
                return False
            if step[0] == "execute":
                executed.add(step[2])
            if step[0] == "sync_fence" and step[1] not in executed:
                return False
    return all(program.threads)
