"""Gates: instructions counted by callgrind against those that are kept in ``gates.json``.

Instructions hardly depend on the machine and not at all on its load, so these figures may fail a build. A piece of work
runs once uncounted, which pays for imports, and once counted; start-up is a whole program less one that only imports
argparse. ``python benchmarks/bench_gates.py --renew`` counts again and keeps what it finds.

Counts do depend on the builds of Python and numpy. So it is kept how much of each count those two executed, and what
two references, pieces of plain Python and plain numpy, took: where a reference takes another count than the one kept,
that part of what a gate may take changes in the same ratio. Where versions are the same, the ratios are 1 within a
thousandth.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measure import Row

ROOT = Path(__file__).resolve().parents[1]
KEPT = Path(__file__).with_name("gates.json")
#: How much a count may grow before the gate fails. Counts of the same build differ by a few in a thousand.
TOLERANCE = 0.02
#: The same where Python, numpy or the machine are not those of the kept counts: references follow that only roughly.
TOLERANCE_ELSEWHERE = 0.15
#: How often gates that fail are counted again.
_MORE_COUNTS = 2

_DECODE = """
import lanescope
from case import materialised
def work():
    materialised(lanescope.open(capture, {family!r}))
"""

#: The whole command: it decodes, checks what it decodes batch by batch, and prints.
_CHECK = """
import contextlib, io
from lanescope.cli import main
def work():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        status = main(["check", capture, *{options!r}])
    assert status in (0, 1), status
"""

#: Paths, sums and slack of a trace that is decoded already.
_CRITICAL_PATH = """
import lanescope
from case import materialised
trace = lanescope.open(capture, {family!r})
materialised(trace)
def work():
    found = lanescope.critical_path(trace)
    assert len(found.summary) and len(found.slack), found
"""

#: Causes and effects on two clocks, as many each way, sorted by time.
_ALIGN = """
import numpy as np
from lanescope.analysis.align.interval import from_orders, offset_interval
random = np.random.default_rng(1)
half = {pairs} // 2
def ordered():
    cause = np.sort(random.integers(0, 10**10, half))
    return cause, cause + 1 + random.exponential(20_000, half).astype(np.int64)
launch, begin = ordered()
end, returned = ordered()
numbers = np.arange(half)
pairs = from_orders((launch, begin + 5_000_000, numbers), (end + 5_000_000, returned, half + numbers))
def work():
    found = offset_interval(pairs)
    assert found.least <= 5_000_000 <= found.most, found
"""

#: The whole command: it decodes both runs, sums their groups, and draws resamples of their slices.
_DIFF = """
import contextlib, io
from lanescope.cli import main
def work():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main(["diff", capture, capture]) == 0
"""

_WRITE = """
from bench_perfetto import realistic
from case import Nowhere
from lanescope.io import {writer}
trace = realistic(slices={slices})
def work():
    {writer}.write(trace, Nowhere(), compress=False)
"""

#: A folder of files, written by the engine of DuckDB.
_WRITE_PARQUET = """
import itertools, tempfile
from bench_perfetto import realistic
from lanescope.io import parquet
trace = realistic(slices={slices})
folder, numbers = tempfile.TemporaryDirectory(), itertools.count()
def work():
    parquet.write(trace, f"{{folder.name}}/{{next(numbers)}}")
"""

_PYTHON_REFERENCE = """
class Thing:
    def __init__(self, number):
        self.number, self.text = number, f"t{number}"
def work():
    things = [Thing(number) for number in range(8_000)]
    by_text = {thing.text: thing for thing in things}
    assert sum(by_text[f"t{number}"].number for number in range(8_000)) > 0
    "(".join(sorted(by_text)).split("(")
"""

_NUMPY_REFERENCE = """
import numpy as np
numbers = np.random.default_rng(1).integers(0, 1 << 40, 100_000)
def work():
    order = np.argsort(numbers, kind="stable")
    rising = numbers[order]
    found = np.searchsorted(rising, numbers[:20_000])
    is_large = rising > 1 << 39
    np.where(is_large, rising, 0).cumsum()
    np.bincount(found % 1000)
    np.maximum(rising[is_large], 7).astype(np.int32)
    np.flatnonzero(np.diff(rising) > 9)
"""

#: Around the work: once to warm up, once counted, and nothing that happens now and then.
_COUNTED = """
import sys
sys.path.insert(0, {here!r})
capture = {capture!r}
{work}
import ctypes, gc
work()
switch = ctypes.CDLL({switch!r})
gc.collect()
gc.disable()
switch.start()
work()
switch.stop()
"""

_ARGPARSE = "import argparse"
_HELP = "import sys; sys.argv[1:] = ['--help']; from lanescope.cli import main; main()"


@dataclass(frozen=True, slots=True)
class Gate:
    """A piece of work whose instructions are counted.

    Attributes:
        name: unique; its key in the file.
        program: Python that defines ``work()``; or, for a start, a whole program.
        capture: family and slices of the simulated capture whose path is ``capture`` in the program.
        is_start: whether all of the program is counted, less the import of argparse.
    """

    name: str
    program: str
    capture: tuple[str, int] | None = None
    is_start: bool = False


@dataclass(frozen=True, slots=True)
class Count:
    """Instructions.

    Attributes:
        total: all of them.
        parts: those that the code of ``python`` and ``numpy`` executed, as shares of the total.
    """

    total: int
    parts: dict[str, float] = field(default_factory=dict)


def _decode(family: str, slices: int) -> Gate:
    return Gate(f"decode {slices} slices, {family}", _DECODE.format(family=family), (family, slices))


def _check(family: str, slices: int, *options: str) -> Gate:
    name = " ".join((f"check {slices} slices, {family}", *options))
    return Gate(name, _CHECK.format(options=options), (family, slices))


def _write(writer: str, slices: int) -> Gate:
    return Gate(f"write {slices} slices, {writer}", _WRITE.format(writer=writer, slices=slices))


def _critical_path(family: str, slices: int) -> Gate:
    return Gate(f"critical path of {slices} slices, {family}", _CRITICAL_PATH.format(family=family), (family, slices))


#: What simulated captures are asked for: so many slices that a count takes seconds under callgrind.
SLICES = {
    "aie": 100_000,
    "ascend": 20_000,
    "cuda": 100_000,
    "levelzero": 3_000,
    "chrome": 20_000,
    "kineto": 5_000,
    "perfetto": 20_000,
}

GATES = (
    Gate("start, --help beyond argparse", _HELP, is_start=True),
    *(_decode(*pair) for pair in SLICES.items()),
    *(_check(*pair, *options) for pair in SLICES.items() for options in ((), ("--json",))),
    _write("perfetto", 100_000),
    _write("chrome", 100_000),
    *(_critical_path(family, SLICES[family]) for family in ("cuda", "ascend", "levelzero", "kineto")),
    Gate("align 1000000 pairs", _ALIGN.format(pairs=1_000_000)),
    Gate("diff of 2 runs of 100000 slices, cuda", _DIFF, ("cuda", SLICES["cuda"])),
    Gate("write 100000 slices, parquet", _WRITE_PARQUET.format(slices=100_000)),
)

#: What counts of Python and numpy are compared by, of the parts of these names.
REFERENCES = {"python": Gate("python", _PYTHON_REFERENCE), "numpy": Gate("numpy", _NUMPY_REFERENCE)}


def valgrind() -> str:
    """Return the program."""
    fetched = ROOT / ".tools" / "bin" / "valgrind"
    return str(fetched) if fetched.exists() else "valgrind"


def environment() -> dict[str, str]:
    """Return an environment in which a program does the same each time: nobody's PYTHON variables, one hash."""
    chosen = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**chosen, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def switch() -> Path:
    """Return the library that switches counting on and off, compiled when it is not there.

    Raises:
        RuntimeError: there is no compiler, or there are no headers of valgrind.
    """
    built = ROOT / "build" / "bench" / "switch.so"
    source = Path(__file__).with_name("switch.c")
    if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
        built.parent.mkdir(parents=True, exist_ok=True)
        fetched = ROOT / ".tools" / "debian" / "usr" / "include"
        # Under another name first: two gates may build it at once.
        fresh = built.with_suffix(f".{threading.get_ident()}.so")
        command = [os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", f"-I{fetched}", str(source), "-o", str(fresh)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            raise RuntimeError("cannot build the switch of callgrind: a C compiler and valgrind's headers") from None
        fresh.replace(built)
    return built


def instructions(program: str, *, is_counting: bool) -> dict[str, int]:
    """Return how many instructions a Python program takes, by part: ``python``, ``numpy`` and ``other``.

    Args:
        program: what to run.
        is_counting: count from its start, else from its switch.

    Raises:
        RuntimeError: there is no callgrind, or the program fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        options = [f"--callgrind-out-file={out}", f"--instr-atstart={'yes' if is_counting else 'no'}"]
        # In turn: else a thread that waits busily for another may keep it from running for minutes, and be counted.
        command = [valgrind(), "--tool=callgrind", "--fair-sched=try", *options, sys.executable, "-c", program]
        try:
            done = subprocess.run(command, env=environment(), cwd=ROOT, capture_output=True, text=True, check=False)
        except OSError as error:
            raise RuntimeError(f"no callgrind: {error.strerror}; make test-tools") from None
        found = re.search(r"Collected : (\d+)", done.stderr)
        if done.returncode or found is None or not out.exists():
            last = [line for line in done.stderr.splitlines() if not line.startswith("==")][-1:]
            raise RuntimeError((last or ["callgrind says nothing of what it counted"])[0][:200])
        with out.open() as lines:
            parts = by_part(lines)
    total = int(found[1])
    if abs(sum(parts.values()) - total) > total // 1000:
        raise RuntimeError("the parts of what callgrind counted are not the whole")
    return {**parts, "other": total - parts["python"] - parts["numpy"]}


def by_part(lines: Iterable[str]) -> dict[str, int]:
    """Return the instructions in a file of callgrind by whose code they are: ``python``, ``numpy`` and ``other``."""
    found = dict.fromkeys(("python", "numpy", "other"), 0)
    parts: dict[str, str] = {}  # by the file's number for a binary, which is named once
    part, is_of_callee = "other", False
    for line in lines:
        if line.startswith("ob="):
            number, _, path = line[3:].strip().partition(" ")
            part = parts.setdefault(number, _part(path))
        elif line.startswith("calls="):
            is_of_callee = True  # what the callee took stands there, too
        elif line.startswith("cob="):
            number, _, path = line[4:].strip().partition(" ")
            parts.setdefault(number, _part(path))
        elif line[:1] in "0123456789+-*" and line[:1]:
            if not is_of_callee:
                found[part] += int(line.split()[-1])
            is_of_callee = False
    return found


def _part(path: str) -> str:
    """Return whose code a binary is."""
    if Path(path).name.startswith(("libpython", "python")):
        return "python"
    return "numpy" if "/numpy/" in path or "/numpy.libs/" in path else "other"


def count(gate: Gate, capture: Path | None = None) -> Count:
    """Return the instructions of one run of the work.

    Raises:
        RuntimeError: as ``instructions``.
    """
    if gate.is_start:
        for program in (gate.program, _ARGPARSE):  # not counted: it may compile modules
            subprocess.run([sys.executable, "-c", program], env=environment(), capture_output=True, check=False)
        found, without = (instructions(program, is_counting=True) for program in (gate.program, _ARGPARSE))
        found = {part: value - without[part] for part, value in found.items()}
    else:
        here = str(Path(__file__).resolve().parent)
        words = {"here": here, "capture": str(capture), "work": gate.program, "switch": str(switch())}
        found = instructions(_COUNTED.format(**words), is_counting=False)
    total = sum(found.values())
    return Count(total, {part: round(found[part] / total, 3) for part in REFERENCES})


def counts(gates: Iterable[Gate]) -> dict[str, Count | str]:
    """Return the count of each gate, or why there is none; two at a time, their counts do not disturb each other."""
    from table import make

    chosen = list(gates)
    with tempfile.TemporaryDirectory() as folder:
        captures: dict[tuple[str, int], Path] = {}
        for pair in {gate.capture for gate in chosen if gate.capture is not None}:
            place = Path(folder) / "-".join(map(str, pair))
            place.mkdir()
            captures[pair] = make(*pair, place)

        def one(gate: Gate) -> Count | str:
            try:
                return count(gate, None if gate.capture is None else captures[gate.capture])
            except RuntimeError as error:
                return str(error)

        with ThreadPoolExecutor(2) as pool:
            return dict(zip((gate.name for gate in chosen), pool.map(one, chosen), strict=True))


def versions() -> dict[str, str]:
    """Return what counts depend on besides our code."""
    import numpy as np

    return {"python": platform.python_version(), "numpy": np.__version__, "machine": platform.machine()}


def expected(kept: dict[str, Any], name: str, references: dict[str, Count | str]) -> float | None:
    """Return what a gate would take here if our code were that of the kept count; None: it is not kept.

    Args:
        kept: the content of the file.
        name: of the gate.
        references: what the references take here; without one of them its part is taken as it was kept.
    """
    gate = kept["instructions"].get(name)
    if gate is None:
        return None
    value = float(gate["total"])
    for part, share in gate["parts"].items():
        here = references.get(part)
        if isinstance(here, Count):
            value += gate["total"] * share * (here.total / kept["references"][part] - 1)
    return value


def judged(found: dict[str, Count | str], kept: dict[str, Any], references: dict[str, Count | str]) -> list[Row]:
    """Return one row for each gate: its count in millions against what is expected and the tolerance.

    A gate that is not kept, or that nobody could count, fails: its row has a goal and no figure that meets it. So does
    every gate where a reference could not be counted.
    """
    differing = [f"{name} {kept['counted_with'].get(name)}" for name, value in versions().items()
                 if kept["counted_with"].get(name) != value]  # fmt: skip
    tolerance = TOLERANCE_ELSEWHERE if differing else TOLERANCE
    aside = f"; kept with {', '.join(differing)}, so it may differ by {tolerance:.0%}" if differing else ""
    missing = [f"reference {name}: {value}" for name, value in references.items() if isinstance(value, str)]
    rows = []
    for name, value in found.items():
        before = expected(kept, name, references)
        if isinstance(value, str) or before is None or missing:
            note = value if isinstance(value, str) else "not kept: benchmarks/bench_gates.py --renew"
            rows.append(Row(name, None, "M instructions", (before or 0) / 1e6, note=missing[0] if missing else note))
            continue
        change = value.total / before - 1
        note = f"expected {before / 1e6:.1f}, {change:+.1%}{aside}"
        if change < -tolerance and not differing:
            note += "; keep it: benchmarks/bench_gates.py --renew"
        rows.append(Row(name, value.total / 1e6, "M instructions", before * (1 + tolerance) / 1e6, note=note))
    return rows


def run(kept: Path | None = None, gates: Iterable[Gate] | None = None) -> list[Row]:
    """Count and judge; all gates against the committed file if nothing else is said.

    Gates that fail are counted again, and their least count is judged: waiting for each other adds to what threads
    take, and nothing takes away from it.
    """
    content = json.loads((kept or KEPT).read_text())
    references = counts(REFERENCES.values())
    chosen = {gate.name: gate for gate in (GATES if gates is None else gates)}
    found = counts(chosen.values())
    for _ in range(_MORE_COUNTS):
        failed = [chosen[row.name] for row in judged(found, content, references) if row.fails]
        for name, value in counts(failed).items():
            found[name] = _less(found[name], value)
    return judged(found, content, references)


def _less(first: Count | str, second: Count | str) -> Count | str:
    """Return the smaller of two counts, or the one that there is."""
    if isinstance(first, str) or isinstance(second, str):
        return second if isinstance(first, str) else first
    return min(first, second, key=lambda count: count.total)


def keep(path: Path, gates: Iterable[Gate]) -> list[str]:
    """Count and write the file; return why not.

    Other gates of the file stay as they are; with other versions, their counts are brought to today's references.
    """
    references = counts(REFERENCES.values())
    found = counts(gates)
    lacking = [f"{name}: {value}" for name, value in (*references.items(), *found.items()) if isinstance(value, str)]
    if lacking:
        return lacking
    before = json.loads(path.read_text()) if path.exists() else {"instructions": {}}
    taken = {name: value.total for name, value in references.items() if isinstance(value, Count)}
    if before.get("counted_with") == versions():
        taken, references = before["references"], {}
    known = {}
    for gate in GATES:
        count = found.get(gate.name)
        if isinstance(count, Count):
            known[gate.name] = {"total": count.total, "parts": count.parts}
        elif (value := expected(before, gate.name, references)) is not None:
            known[gate.name] = {**before["instructions"][gate.name], "total": round(value)}
    content = {
        "counted_with": versions(),
        "references": taken,
        "instructions": known,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    return []


def main() -> int:
    """Judge, or keep what is counted."""
    parser = argparse.ArgumentParser(description="Count instructions.")
    parser.add_argument("--renew", action="store_true", help="keep what is counted")
    parser.add_argument("--only", metavar="TEXT", default="", help="gates whose name contains it")
    parser.add_argument("--kept", metavar="FILE", type=Path, default=KEPT, help="default: benchmarks/gates.json")
    args = parser.parse_args()
    chosen = [gate for gate in GATES if args.only in gate.name]
    if args.renew:
        lacking = keep(args.kept, chosen)
        print(*lacking, sep="\n", end="\n" if lacking else "", file=sys.stderr)
        return int(bool(lacking))
    rows = run(args.kept, chosen)
    for row in rows:
        print(f"{row.verdict:12}  {row.name}: {row.note}")
    return int(any(row.fails for row in rows))


if __name__ == "__main__":
    sys.exit(main())
