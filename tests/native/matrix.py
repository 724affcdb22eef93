"""Run the whole scenario matrix, or a campaign of random programs.

    python -m native.matrix rows [--rows R1,R2] [--quirks "plain;overlap"] [--every N] [--sanitize ...] [-j N]
    python -m native.matrix rows --round R [--sanitize ...]
    python -m native.matrix random --number N [--first SEED] [--sanitize address|thread] [-j N]

Prints a line for each row, its lists and quirks, and ends with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from native import matrix_mutants, matrix_programs, matrix_run
from native.matrix_run import FAULTS, QUIRKS, Bench, Case, Verdict
from native.matrix_writers import WRITERS, Program

ROOT = Path(__file__).resolve().parents[2]
LEVELZERO = ROOT / ".tools/levelzero"
#: Random programs that share a process.
GROUP = 16


def cases(bench: Bench, rows: set[str], quirks: set[str]) -> Iterator[Case]:
    """All cases: every row with every kind of list, under every quirk, with and without option H."""
    for row in bench.rows():
        if rows and row.name not in rows:
            continue
        for quirk in QUIRKS:
            if (quirks and quirk not in quirks) or not row.can_run(QUIRKS[quirk]):
                continue
            for lists, engine in row.variants():
                yield from (Case(row, lists, engine, quirk, host_read) for host_read in (False, True))
                is_watched = QUIRKS[quirk].get("host_reset", "works") != "works" and lists == "regular,out-of-order"
                if is_watched:
                    watch = Case(row, lists, engine, quirk, resets="watch")
                    yield from (watch, replace(watch, host_read=True))
        if row.name in ("R12", "R27"):
            for quirk in ("plain", "sticky, free"):
                if quirks and quirk not in quirks:
                    continue
                for lists, engine in row.variants():
                    for fault in FAULTS:
                        yield from (
                            Case(row, lists, engine, quirk, host_read, fault=fault) for host_read in (False, True)
                        )


def in_rounds(all_of: Iterable[Case]) -> list[list[Case]]:
    """Divide cases into rounds: each holds every row under every quirk and fault once, in another way than the others.

    The kinds of lists, engines and options of a row under one quirk are 20 ways at most; there are as many rounds.
    """
    ways: dict[tuple[str, str, object], list[Case]] = defaultdict(list)
    for case in all_of:
        ways[case.row.name, case.quirk, case.fault].append(case)
    made: list[list[Case]] = [[] for _ in range(max(map(len, ways.values()), default=0))]
    for place, those in enumerate(ways.values()):
        # Neighbours begin with different ways, so that one round has all of them.
        for number in range(len(those)):
            made[number].append(those[(number + place) % len(those)])
    return made


def _work_folder() -> Path:
    return Path(tempfile.gettempdir()) / f"lanescope-matrix-{os.getppid()}-{os.getpid()}"


def _verify(bench: Bench, references: dict[Case, str], case: Case) -> tuple[Case, Verdict]:
    return case, bench.verify(case, references[case.plain()], _work_folder())


def _reference(bench: Bench, case: Case) -> tuple[Case, str]:
    ran = bench.run_case(case, matrix_run.fresh(_work_folder()), recorded=False)
    if ran.status != 0:
        raise RuntimeError(f"{case} fails without the recorder: {ran.out}{ran.err}")
    return case, ran.out


def rows(bench: Bench, arguments: argparse.Namespace) -> int:
    """Run the matrix; print it as a table."""
    wanted = list(cases(bench, arguments.rows, arguments.quirks))
    if arguments.round is not None:
        wanted = dict(enumerate(in_rounds(wanted))).get(arguments.round, [])
    wanted = wanted[arguments.first :: arguments.every]
    found: dict[tuple[str, str, str], list[tuple[Case, Verdict]]] = defaultdict(list)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        plain = dict.fromkeys(case.plain() for case in wanted)
        references = dict(pool.map(partial(_reference, bench), plain))
        for done, (case, verdict) in enumerate(pool.map(partial(_verify, bench, references), wanted, chunksize=4), 1):
            if done % 100 == 0:
                print(f"{done} of {len(wanted)} cases", flush=True)
            found[case.row.name, case.lists, case.engine].append((case, verdict))
            if verdict.failures:
                print(f"FAILED {case}", *(f"    {text}" for text in verdict.failures[:5]), sep="\n", flush=True)
    failed = _table(found)
    print(f"{len(wanted)} cases, {failed} failed")
    return 1 if failed else 0


def _table(found: dict[tuple[str, str, str], list[tuple[Case, Verdict]]]) -> int:
    print(f"{'row':<5}{'what':<46}{'lists':<25}{'engine':<9}{'quirks':<12}{'timed':>8}{'results':>9}  result")
    failed = 0
    for (name, lists, engine), verdicts in found.items():
        bad = [case for case, verdict in verdicts if verdict.failures]
        failed += len(bad)
        untimed: Counter[str] = sum((verdict.untimed for _, verdict in verdicts), Counter())
        timed = sum(verdict.timed for _, verdict in verdicts)
        results = sum(verdict.results for _, verdict in verdicts)
        quirks = len({case.quirk for case, _ in verdicts})
        ways = f"{quirks} x H on, off"
        result = "clean" if not bad else f"{len(bad)} of {len(verdicts)} FAILED: {', '.join(map(str, bad[:3]))}"
        faults = [(case, verdict) for case, verdict in verdicts if case.fault is not None]
        if faults:
            result += f"; calls failed in {sum(verdict.hit for _, verdict in faults)} of {len(faults)} further runs"
        if untimed:
            result += "; untimed: " + ", ".join(f"{reason} {count}" for reason, count in sorted(untimed.items()))
        title = verdicts[0][0].row.title
        print(f"{name:<5}{title:<46}{lists:<25}{engine:<9}{ways:<12}{timed:>8}{results:>9}  {result}")
    return failed


def _random(bench: Bench, arguments: argparse.Namespace, first: int) -> tuple[int, matrix_programs.Group]:
    seeds = range(first, min(first + GROUP, arguments.first + arguments.number))
    timeline = first // GROUP % 8 == 0
    return len(seeds), matrix_programs.run_group(
        bench,
        seeds,
        arguments.world,
        _work_folder(),
        kind=arguments.kind,
        resets=arguments.resets,
        timeline=timeline,
        timeout=60 if not arguments.sanitize else 300,
    )


def random_programs(bench: Bench, arguments: argparse.Namespace) -> int:
    """Run random programs; print what became of them, and the smallest program for each of the first failures."""
    begin = time.monotonic()
    all_of, done, illegal, alone = Verdict(), 0, 0, 0
    failed: list[tuple[int, int]] = []
    firsts = range(arguments.first, arguments.first + arguments.number, GROUP)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for first, (number, group) in zip(
            firsts, pool.map(partial(_random, bench, arguments), firsts, chunksize=2), strict=True
        ):
            before, done = done, done + number
            all_of.add(group.verdict)
            illegal += group.illegal
            alone += group.alone
            for seed, failures in group.failures.items():
                failed.append((first, seed))
                print(f"FAILED seed {seed} of {first}", *(f"    {text}" for text in failures[:5]), sep="\n", flush=True)
            if before // 512 != done // 512:
                print(f"{done} programs, {len(failed)} failed, {time.monotonic() - begin:.0f} s", flush=True)
    for first, seed in failed[:3]:
        _show_smallest(bench, arguments, first, seed)
    cost = sum(sum(resource.getrusage(whose)[:2]) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(
        f"{arguments.number} programs: {all_of.timed} timed operations, {all_of.results} results of {all_of.runs} runs "
        f"({all_of.results / max(1, all_of.runs):.1%}), {all_of.lost} lost, untimed {dict(all_of.untimed)}, "
        f"{all_of.readings} readings, {all_of.false_readings} of them of another operation ({all_of.said} said to be), "
        f"{illegal} that hang or break a rule by themselves, {alone} groups run one by one, {len(failed)} failed, "
        f"{cost / arguments.number * 1000:.1f} CPU ms each, {time.monotonic() - begin:.0f} s"
    )
    return 1 if failed else 0


def _show_smallest(bench: Bench, arguments: argparse.Namespace, first: int, seed: int) -> None:
    quirks, host_read = matrix_programs.random_quirks(first, arguments.world), matrix_programs.is_host_read(first)
    program, _ = matrix_programs.legal_program(seed, kind=arguments.kind, quirks=quirks)

    def fails(smaller: Program) -> bool:
        for _ in range(3):
            verdict = matrix_programs.run_program(
                bench,
                smaller,
                quirks,
                _work_folder(),
                host_read=host_read,
                resets=arguments.resets,
                timeout=5,
            )
            if verdict is not None and verdict.failures:
                return True
        return False

    smallest = matrix_programs.minimise(program, quirks, fails)
    print(f"smallest program of seed {seed}, {quirks}, option H {'on' if host_read else 'off'}:\n{smallest.text()}")


def mutants(bench: Bench, arguments: argparse.Namespace) -> int:
    """Build each mutant of the recorder; print which try noticed it."""
    missed = 0
    with tempfile.TemporaryDirectory(prefix="lanescope-mutants-") as folder:
        workshop = matrix_mutants.Workshop(bench, Path(folder))
        for mutant in matrix_mutants.MUTANTS:
            number, what = matrix_mutants.noticed(workshop.made(mutant), mutant, Path(folder) / "runs")
            missed += number == 0
            print(f"{mutant.name}: {f'noticed by try {number}: {what}' if number else 'NOT NOTICED'}", flush=True)
    return 1 if missed else 0


def _names(text: str) -> set[str]:
    return {name.strip() for name in text.split(",") if name.strip()}


def main(given: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description="the scenario matrix of the Level Zero recorder")
    parser.add_argument("what", choices=("rows", "random", "mutants"))
    parser.add_argument("--sanitize", default="", choices=("", "address", "thread"), help="build with sanitizers")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--rows", type=_names, default=set())
    parser.add_argument("--quirks", type=lambda text: {name.strip() for name in text.split(";") if name}, default=set())
    parser.add_argument("--number", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the first random program, or case")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="one of N cases")
    parser.add_argument("--round", type=int, metavar="R", help="every row under every quirk, in the Rth way of each")
    parser.add_argument("--world", default="", choices=("", "works", "sticky", "view"), help="what host resets do")
    parser.add_argument("--kind", default="any", choices=tuple(WRITERS), help="of random programs: matrix_writers.py")
    parser.add_argument("--resets", default="auto", choices=("auto", "watch", "off"), help="--event-resets")
    arguments = parser.parse_args(given)
    # Detecting undefined behavior costs little compared with the address checks of gcc.
    sanitize = "address,undefined" if arguments.sanitize == "address" else arguments.sanitize
    built = Bench.build(LEVELZERO, sanitize)
    try:
        with tempfile.TemporaryDirectory(prefix="lanescope-bench-") as folder:
            bench = built.copied(Path(folder))
            return {"rows": rows, "random": random_programs, "mutants": mutants}[arguments.what](bench, arguments)
    finally:
        for folder in Path(tempfile.gettempdir()).glob(f"lanescope-matrix-{os.getpid()}-*"):
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
