"""The recorder with one thing wrong at a time: the programs of the matrix must notice each.

    python -m native.matrix mutants

A gate of a prologue that is not reset is none of them: the order of the list, which the API promises, is enough for the
wait behind the signal. Each mutant is a change of one source, in a copy of all of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from native import matrix_programs
from native.matrix_run import Bench, Case, fresh

ROOT = Path(__file__).resolve().parents[2]
TRACER = "native/recorder/levelzero/tracer"


@dataclass(frozen=True)
class Mutant:
    """A wrong recorder.

    Attributes:
        name: what is wrong.
        file: the source, below the tracer.
        old: what it says there, once.
        new: what it says instead.
        resets: ``--event-resets`` that it concerns.
        cases: what is tried first: row, lists, engine, quirk, option H.
        kinds: of the random programs that are tried then, of `matrix_writers.WRITERS`.
        world: what host resets do there.
    """

    name: str
    file: str
    old: str
    new: str
    resets: str = "auto"
    cases: tuple[tuple[str, str, str, str, bool], ...] = ()
    kinds: tuple[str, ...] = ("hard", "any")
    world: str = "sticky"


MUTANTS = (
    Mutant(
        "no gate",
        "calls/prologue.cpp",
        "if (result == success) result = driver().zeCommandListAppendWaitOnEvents(made, 1, &list.gate);",
        "",
        cases=(("N6", "regular,out-of-order", "compute", "sticky, free", False),),
    ),
    Mutant(
        "prologue behind the run",
        "calls/execute.cpp",
        "execution.submitted_count = fronts + count;",
        "execution.submitted_count = fronts + count;\n"
        "    std::rotate(execution.submitted, execution.submitted + fronts, "
        "execution.submitted + fronts + count);",
        cases=(("N6", "regular,out-of-order", "compute", "sticky resets", False),),
    ),
    Mutant(
        "host reset in its place",
        "calls/execute.cpp",
        "if (list.rerun != Rerun::prologue || is_first || list.first == nullptr) continue;",
        "if (is_first || list.run != 0) continue;",
        cases=(("N6", "regular,out-of-order", "compute", "sticky resets", False),),
    ),
    Mutant(
        "no final points",
        "readback/readback.cpp",
        "if (list.reads_at_end && is_rerun(op) && !list.has_ended) return PollResult::nothing;",
        "if (list.reads_at_end && op.run == 0) return PollResult::nothing;",
    ),
    Mutant(
        "watched events that others signal",
        "readback/readback.cpp",
        "if (op.is_spoilt || !is_watched_alone(state(), op)) return PollResult::shared;",
        "",
        resets="watch",
    ),
    Mutant(
        "watched events at any time",
        "readback/readback.cpp",
        "if (!chunk_of(op).list->has_ended && !op.is_final) return PollResult::nothing;",
        "",
        resets="watch",
    ),
    Mutant(
        "runs that are taken to have ended",
        "readback/readback.cpp",
        "if (!wait_for_fence(lock, list)) note_overlap(list);",
        "list.has_ended = true;\n            if (!list.has_ended) note_overlap(list);",
        resets="watch",
        cases=(("R29", "regular,out-of-order", "compute", "sticky, torn", False),),
    ),
    Mutant(
        "lists that wait for captured ones",
        "calls/captures.cpp",
        "if (each->event == waits[i]) list->capture = each->capture;",
        "",
        cases=(("G2", "immediate,in-order", "compute", "plain", False),),
    ),
    Mutant(
        "runs of closed lists that a graph overwrites",
        "calls/captures.cpp",
        "if (list->live != 0) pending = list;",
        "",
        cases=(("G6", "immediate,in-order", "compute", "plain", False),),
    ),
    Mutant(
        "signallers that an older query reads",
        "calls/queries.cpp",
        "event->is_read = true;",
        "",
        cases=(("S22", "immediate,in-order", "compute", "plain", False),),
    ),
    Mutant(
        "a query that is kept",
        "calls/queries.cpp",
        "if (reuse_event(*kept, list)) return kept;",
        "if (reuse_event(*kept, list) && list.id == 0) return kept;",
        cases=(("S23", "immediate,in-order", "compute", "plain", False),),
    ),
    Mutant(
        "ticks of what has been collected",
        "state/timed_ops.cpp",
        "user->last = op.injected;\n        return;",
        "",
        cases=(("S24", "immediate,in-order", "compute", "plain", False),),
    ),
    Mutant(
        "an immediate query behind a reset",
        "calls/queries.cpp",
        "(event->is_reset && append.data->immediate);",
        "false;",
        cases=(("S25", "immediate,in-order", "compute", "plain", False),),
    ),
    Mutant(
        "which of two a query means",
        "calls/queries.cpp",
        "if (user->is_asked) count_false_query(all, list);",
        "",
        cases=(("S26", "regular,in-order", "compute", "plain", False),),
    ),
    Mutant(
        "a query behind a reset in its list",
        "calls/queries.cpp",
        "event->is_reset_in_list && event->reset_in == append.data->id;",
        "false;",
        kinds=("queries",),
        world="works",
    ),
    Mutant(
        "a query of one of several signallers",
        "calls/queries.cpp",
        "return op->live || op->run == 0 || is_for_next || !reader.immediate;",
        "return false;",
        kinds=("queries",),
        world="works",
    ),
    Mutant(
        "a lost device is waited for",
        "readback/readback.cpp",
        "last_moment = now + 100 * ms;",
        "last_moment = ~u64{0};",
        cases=(("L6", "immediate,in-order", "compute", "plain", False),),
    ),
)
#: Random programs that a mutant is given at most.
PROGRAMS = 600


class Workshop:
    """A copy of the recorder's sources, built anew for each mutant.

    Args:
        bench: driver and programs.
        folder: an empty folder.
    """

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.folder = folder
        for part in ("native/recorder", "tests/native/recorder"):
            shutil.copytree(ROOT / part, folder / part)
        self.build = folder / "build"
        source = folder / "tests/native/recorder"
        levelzero = bench.fake_ze.levelzero
        self._run("cmake", "-S", source, "-B", self.build, "-G", "Ninja", f"-DRECORDER_LEVELZERO={levelzero}")
        self.bench = replace(bench, recorder=self.build / "recorder")

    def _run(self, *command: str | Path) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path})
        if done.returncode != 0:
            raise RuntimeError(f"{done.stdout[-4000:]}{done.stderr[-4000:]}")

    def made(self, mutant: Mutant | None) -> Bench:
        """Build a mutant, or the recorder as it is.

        Raises:
            ValueError: its text is not there.
        """
        place = None if mutant is None else self.folder / TRACER / mutant.file
        right = "" if place is None else place.read_text()
        if mutant is not None and right.count(mutant.old) != 1:
            raise ValueError(f"{mutant.file} has {right.count(mutant.old)} of {mutant.old!r}")
        try:
            if place is not None and mutant is not None:
                place.write_text(right.replace(mutant.old, mutant.new))
            self._run("cmake", "--build", self.build, "--target", "lanescope_ze_layer")
        finally:
            if place is not None:
                place.write_text(right)
        return self.bench


def tries(bench: Bench, mutant: Mutant, folder: Path) -> Iterator[list[str]]:
    """Yield what is found wrong, try by try: the mutant's cases, then random programs."""
    rows = {row.name: row for row in bench.rows()}
    for name, lists, engine, quirk, host_read in mutant.cases:
        case = Case(rows[name], lists, engine, quirk, host_read, resets=mutant.resets)
        reference = bench.run_case(case.plain(), fresh(folder / "plain"), recorded=False)
        yield bench.verify(case, reference.out, folder / "recorded", timeout=5).failures
    for seed in range(PROGRAMS):
        kind = mutant.kinds[seed % len(mutant.kinds)]
        program, quirks = matrix_programs.legal_program(seed, mutant.world, kind=kind)
        quirks.update({"torn": 30, "workers": 2})
        verdict = matrix_programs.run_program(
            bench, program, quirks, folder / "random", host_read=seed % 4 < 2, resets=mutant.resets, timeout=5
        )
        yield [] if verdict is None else verdict.failures


def noticed(bench: Bench, mutant: Mutant, folder: Path) -> tuple[int, str]:
    """Return the try that noticed a mutant, from 1, and what it noticed; (0, "") if none did."""
    for number, failures in enumerate(tries(bench, mutant, folder), 1):
        if failures:
            return number, failures[0]
    return 0, ""
