"""Gates: instructions counted by callgrind against those that are kept in ``gates.json``.

Instructions hardly depend on the machine and not at all on its load, so these figures may fail a build. A piece of work
runs once uncounted, which pays for imports and the making of its input, and once counted; start-up is a whole program
less one that only imports argparse. ``python benchmarks/bench_gates.py --renew`` counts again and keeps what it finds.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import Row

ROOT = Path(__file__).resolve().parents[1]
KEPT = Path(__file__).with_name("gates.json")
#: How much a count may grow before the gate fails. Counts of the same build differ by a few in a thousand.
TOLERANCE = 0.05

_DECODE = """
from pathlib import Path
import lanescope
from case import materialised
from table import make
path = make({family!r}, {slices}, Path(folder))
def work():
    materialised(lanescope.open(path, {family!r}))
"""

_WRITE = """
from bench_perfetto import realistic
from case import Nowhere
from lanescope.io import {writer}
trace = realistic(slices={slices})
def work():
    {writer}.write(trace, Nowhere(), compress=False)
"""

#: Around the work: once to warm up, once counted, and nothing that happens now and then.
_COUNTED = """
import sys
sys.path.insert(0, {here!r})
folder = {folder!r}
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
        program: Python that defines ``work()``, with ``folder`` to write into; or, for a start, a whole program.
        is_start: whether all of the program is counted, less the import of argparse.
    """

    name: str
    program: str
    is_start: bool = False


def _decode(family: str, slices: int) -> Gate:
    return Gate(f"decode {slices} slices, {family}", _DECODE.format(family=family, slices=slices))


def _write(writer: str, slices: int) -> Gate:
    return Gate(f"write {slices} slices, {writer}", _WRITE.format(writer=writer, slices=slices))


GATES = (
    Gate("start, --help beyond argparse", _HELP, is_start=True),
    _decode("aie", 100_000),
    _decode("ascend", 20_000),
    _decode("cuda", 100_000),
    _decode("levelzero", 3_000),
    _write("perfetto", 100_000),
    _write("chrome", 100_000),
)


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


def instructions(program: str, *, is_counting: bool) -> int:
    """Return how many instructions a Python program takes, ``is_counting``: from its start, else from its switch.

    Raises:
        RuntimeError: there is no callgrind, or the program fails.
    """
    options = ["--callgrind-out-file=/dev/null", f"--instr-atstart={'yes' if is_counting else 'no'}"]
    command = [valgrind(), "--tool=callgrind", *options, sys.executable, "-c", program]
    try:
        done = subprocess.run(command, env=environment(), cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError as error:
        raise RuntimeError(f"no callgrind: {error.strerror}; make test-tools") from None
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or found is None:
        last = [line for line in done.stderr.splitlines() if not line.startswith("==")][-1:]
        raise RuntimeError((last or ["callgrind says nothing of what it counted"])[0][:200])
    return int(found[1])


def count(gate: Gate) -> int:
    """Return the instructions of one run of the work.

    Raises:
        RuntimeError: as ``instructions``.
    """
    if gate.is_start:
        for program in (gate.program, _ARGPARSE):  # not counted: it may compile modules
            subprocess.run([sys.executable, "-c", program], env=environment(), capture_output=True, check=False)
        return instructions(gate.program, is_counting=True) - instructions(_ARGPARSE, is_counting=True)
    with tempfile.TemporaryDirectory() as folder:
        here = str(Path(__file__).resolve().parent)
        program = _COUNTED.format(here=here, folder=folder, work=gate.program, switch=str(switch()))
        return instructions(program, is_counting=False)


def counts(gates: Iterable[Gate]) -> dict[str, int | str]:
    """Return the count of each gate, or why there is none; two at a time, their counts do not disturb each other."""

    def one(gate: Gate) -> int | str:
        try:
            return count(gate)
        except RuntimeError as error:
            return str(error)

    chosen = list(gates)
    with ThreadPoolExecutor(2) as pool:
        return dict(zip((gate.name for gate in chosen), pool.map(one, chosen), strict=True))


def versions() -> dict[str, str]:
    """Return what counts depend on besides our code."""
    import numpy as np

    return {"python": platform.python_version(), "numpy": np.__version__, "machine": platform.machine()}


def judged(found: dict[str, int | str], kept: dict[str, Any]) -> list[Row]:
    """Return one row for each gate: its count in millions against what is kept and the tolerance.

    A gate that is not kept, or that nobody could count, fails: its row has a goal and no figure that meets it.
    """
    tolerance = kept["tolerance"]
    differing = [f"{name} {kept['counted_with'].get(name)}" for name, value in versions().items()
                 if kept["counted_with"].get(name) != value]  # fmt: skip
    aside = f"; kept with {', '.join(differing)}" if differing else ""
    rows = []
    for name, value in found.items():
        before = kept["instructions"].get(name)
        if isinstance(value, str) or before is None:
            note = value if isinstance(value, str) else "not kept: benchmarks/bench_gates.py --renew"
            rows.append(Row(name, None, "M instructions", (before or 0) / 1e6, note=note))
            continue
        change = value / before - 1
        note = f"kept {before / 1e6:.1f}, {change:+.1%}{aside}"
        if change < -tolerance:
            note += "; keep it: benchmarks/bench_gates.py --renew"
        rows.append(Row(name, value / 1e6, "M instructions", before * (1 + tolerance) / 1e6, note=note))
    return rows


def run(kept: Path | None = None, gates: Iterable[Gate] | None = None) -> list[Row]:
    """Count and judge; all gates against the committed file if nothing else is said."""
    return judged(counts(GATES if gates is None else gates), json.loads((kept or KEPT).read_text()))


def main() -> int:
    """Judge, or keep what is counted."""
    parser = argparse.ArgumentParser(description="Count instructions.")
    parser.add_argument("--renew", action="store_true", help="keep what is counted")
    parser.add_argument("--only", metavar="TEXT", default="", help="gates whose name contains it")
    parser.add_argument("--kept", metavar="FILE", type=Path, default=KEPT, help="default: benchmarks/gates.json")
    args = parser.parse_args()
    chosen = [gate for gate in GATES if args.only in gate.name]
    if not args.renew:
        rows = run(args.kept, chosen)
        for row in rows:
            print(f"{row.verdict:12}  {row.name}: {row.note}")
        return int(any(row.fails for row in rows))
    found = counts(chosen)
    lacking = [f"{name}: {value}" for name, value in found.items() if isinstance(value, str)]
    if lacking:
        print(*lacking, sep="\n", file=sys.stderr)
        return 1
    before = json.loads(args.kept.read_text())["instructions"] if args.kept.exists() else {}
    known = {**before, **found}
    content = {
        "tolerance": TOLERANCE,
        "counted_with": versions(),
        "instructions": {gate.name: known[gate.name] for gate in GATES if gate.name in known},
    }
    args.kept.write_text(json.dumps(content, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
