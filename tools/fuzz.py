"""Fuzz the native codecs and the readers in Python with libFuzzer, and say how far each target came.

Usage: fuzz.py MINUTES [TARGET...]; the minutes are shared out evenly. Each target prints its executions, how many edges
and features its seeds reach and how many all inputs that were found so far, its slowest input and most memory. Inputs
are kept in build/fuzz/corpus, so that a later run goes on from them. Exits 1 where an input is a fault, and where a
target stands still: it executes next to nothing, or has found nothing that its seeds do not reach.

``--write`` adds the executions to native/fuzz/figures.json and writes the table of docs/explain/fuzzing.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/fuzz"
#: The share of the time, and the most bytes of an input: programs that report comparisons to libFuzzer, which finds
#: constants by them, and programs that do not and take shorter inputs, several times as many in the same time.
WAYS = {"comparing": (0.25, 4096), "fast": (0.75, 1024)}
SOURCES = ROOT / "native/fuzz"
READERS = ROOT / "tests/fuzz/readers.py"
FIGURES = SOURCES / "figures.json"
PAGE = ROOT / "docs/explain/fuzzing.md"
#: A target that executes fewer inputs is stuck, or so slow that it finds nothing; a reader in Python.
FEWEST, FEWEST_OF_READER = 1000, 100
#: An input that takes longer, or more memory, is a fault: inputs are of 4 KiB.
MOST_SECONDS, MOST_MIB, MOST_ALLOCATED_MIB = 10, 2048, 512


@dataclass
class Figures:
    """What one target did: executions and seconds of all runs; edges and features of its seeds, and of all it found."""

    executions: int = 0
    seconds: int = 0
    seed_edges: int = 0
    edges: int = 0
    seed_features: int = 0
    features: int = 0
    slowest_s: int = 0
    peak_mib: int = 0

    def reach(self) -> str:
        """Return the figures of coverage in words."""
        return f"edges {self.seed_edges:,} to {self.edges:,}, features {self.seed_features:,} to {self.features:,}"


def compiler() -> str:
    """Return the clang++ of `tools/fetch_tools clang`, else that of the system."""
    fetched = ROOT / ".tools/bin/clang++"
    found = str(fetched) if fetched.exists() else shutil.which("clang++")
    if found is None:
        sys.exit("lanescope: missing clang: tools/fetch_tools clang")
    return found


def targets() -> dict[str, Path]:
    """Return the source of each target by its name: programs in C++, functions in Python."""
    found = {path.stem: path for path in sorted(SOURCES.glob("fuzz_*.cpp"))}
    if READERS.exists():
        text = READERS.read_text()
        found |= dict.fromkeys(re.findall(r"^def (read_\w+)\(data", text, re.MULTILINE), READERS)
    return found


def purpose(name: str, source: Path) -> str:
    """Return what a target holds, as its first comment or its docstring says."""
    text = source.read_text()
    if source.suffix == ".py":
        found = re.search(rf'^def {name}\(.*\n    """(.+?)"""', text, re.MULTILINE | re.DOTALL)
        return " ".join(found.group(1).split()) if found else ""
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line.removeprefix("//").strip())
    return " ".join(lines)


def build(names: list[str]) -> None:
    """Compile the targets in C++ under AddressSanitizer and UBSan, in both ways, and make seeds for all."""
    BUILD.mkdir(parents=True, exist_ok=True)
    programs = ROOT / ".venv/bin"
    native = [name for name in names if name.startswith("fuzz_")]
    for way in WAYS if native else ():
        configure = [programs / "cmake", "-S", ROOT, "-B", BUILD / way, "-G", "Ninja"]
        configure += [f"-DCMAKE_MAKE_PROGRAM={programs / 'ninja'}", f"-DCMAKE_CXX_COMPILER={compiler()}"]
        configure += ["-DCMAKE_BUILD_TYPE=Release", "-DLANESCOPE_FUZZ=ON"]
        configure += [f"-DLANESCOPE_FUZZ_COMPARISONS={'ON' if way == 'comparing' else 'OFF'}"]
        for command in (configure, [programs / "cmake", "--build", BUILD / way, "--target", *native]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(done.stdout[-8000:] + done.stderr[-8000:])
    subprocess.run([sys.executable, ROOT / "tools/make_fuzz_seeds", BUILD / "seeds"], check=True)
    subprocess.run([sys.executable, READERS, "--seeds", BUILD / "seeds"], check=True)


def command_of(name: str, way: str = "comparing") -> list[str]:
    """Return what runs a target."""
    if name.startswith("fuzz_"):
        return [str(BUILD / way / "native/fuzz" / name)]
    return [sys.executable, str(READERS), name]


def run(name: str, *arguments: str, way: str = "comparing") -> tuple[str, int]:
    """Run a target; return what libFuzzer printed, and the exit status."""
    symbolizer = ROOT / ".tools/bin/llvm-symbolizer"
    environment = {**os.environ, "UBSAN_OPTIONS": "print_stacktrace=1", "RUST_BACKTRACE": "0"}
    if way == "fast":  # what was freed is kept for some hundred inputs instead of some ten thousand
        environment |= {"ASAN_OPTIONS": "malloc_context_size=2:quarantine_size_mb=16"}
    if symbolizer.exists():
        environment |= {"ASAN_SYMBOLIZER_PATH": str(symbolizer), "UBSAN_SYMBOLIZER_PATH": str(symbolizer)}
    command = [*command_of(name, way), *arguments]
    done = subprocess.run(command, capture_output=True, check=False, cwd=BUILD, env=environment)
    return (done.stdout + done.stderr).decode(errors="replace"), done.returncode


def reached(log: str, what: str) -> tuple[int, int]:
    """Return edges and features of the last line of a kind in a log: INITED, DONE."""
    found = re.findall(rf"#\d+\s+{what}\s+(?:cov: (\d+) )?(?:ft: (\d+))?", log)
    return (int(found[-1][0] or 0), int(found[-1][1] or 0)) if found else (0, 0)


def statistic(log: str, name: str) -> int:
    """Return one of the final statistics."""
    found = re.findall(rf"stat::{name}:\s+(\d+)", log)
    return int(found[-1]) if found else 0


def fuzz(name: str, seconds: float) -> tuple[Figures, str]:
    """Run a target; return its figures, and what is wrong: nothing where all is well."""
    seeds, corpus = BUILD / "seeds" / name, BUILD / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    log, status = run(name, "-runs=0", str(seeds))
    if status:
        return Figures(), f"a seed is a fault:\n{log[-6000:]}"
    figures = Figures()
    figures.seed_edges, figures.seed_features = reached(log, "(?:DONE|INITED)")
    limits = [f"-timeout={MOST_SECONDS}", f"-rss_limit_mb={MOST_MIB}", f"-malloc_limit_mb={MOST_ALLOCATED_MIB}"]
    words = [f"-dict={seeds}.dict"] if seeds.with_suffix(".dict").exists() else []
    for way, (share, most) in WAYS.items() if name.startswith("fuzz_") else [("comparing", (1, 4096))]:
        begin = time.monotonic()
        log, status = run(
            name, f"-max_total_time={max(1, round(share * seconds))}", "-print_final_stats=1", *limits, *words,
            f"-max_len={most}", f"-artifact_prefix={BUILD / name}-", str(corpus), str(seeds), way=way,
        )  # fmt: skip
        figures.seconds += round(time.monotonic() - begin)
        (BUILD / f"{name}-{way}.log").write_text(log)
        edges, features = reached(log, "DONE")
        figures.executions += statistic(log, "number_of_executed_units")
        figures.slowest_s = max(figures.slowest_s, statistic(log, "slowest_unit_time_sec"))
        figures.peak_mib = max(figures.peak_mib, statistic(log, "peak_rss_mb"))
        if status and not is_stall(name, log):
            return figures, f"a fault:\n{log[-6000:]}"
        if status:  # it ended at the stall, and prints no last line
            edges, features = reached(log, r"[A-Za-z]+")
        figures.edges, figures.features = max(figures.edges, edges), max(figures.features, features)
    if figures.executions < (FEWEST if name.startswith("fuzz_") else FEWEST_OF_READER):
        return figures, f"stands still: {figures.executions} executions in {figures.seconds} s"
    if figures.features <= figures.seed_features:
        return figures, "stands still: nothing was found that the seeds do not reach"
    return figures, ""


def is_stall(name: str, log: str) -> bool:
    """Return whether a run ended for an input that takes no time when it is run again, so that the machine stood still.

    The time that libFuzzer limits is not that of the processor.
    """
    found = re.search(r"Test unit written to (.+-timeout-\w+)", log)
    return found is not None and run(name, f"-timeout={MOST_SECONDS}", found[1])[1] == 0


def kept() -> dict[str, Figures]:
    """Return the figures of former runs."""
    rows = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    return {name: Figures(**row) for name, row in rows.items()}


def write(found: dict[str, Figures]) -> None:
    """Add runs to the figures that are kept, and write the table of the page."""
    all_figures = kept()
    for name, new in found.items():
        old = all_figures.get(name, Figures())
        new.executions += old.executions
        new.seconds += old.seconds
        new.slowest_s, new.peak_mib = max(new.slowest_s, old.slowest_s), max(new.peak_mib, old.peak_mib)
        all_figures[name] = new
    all_figures = dict(sorted(all_figures.items()))
    FIGURES.write_text(json.dumps({name: asdict(row) for name, row in all_figures.items()}, indent=1) + "\n")
    rows = ["| Target | Executions | Minutes | Edges: seeds, all | Features: seeds, all | Most memory |"]
    rows += ["|---|--:|--:|--:|--:|--:|"]
    rows += [
        f"| `{name}` | {row.executions:,} | {row.seconds / 60:.1f} | {row.seed_edges:,}, {row.edges:,} "
        f"| {row.seed_features:,}, {row.features:,} | {row.peak_mib} MiB |"
        for name, row in all_figures.items()
    ]
    total = sum(row.executions for row in all_figures.values())
    rows.append(f"| **all** | **{total:,}** | {sum(row.seconds for row in all_figures.values()) / 60:.1f} | | | |")
    text = PAGE.read_text()
    head, _, rest = text.partition("<!-- figures -->\n")
    _, _, tail = rest.partition("<!-- end of figures -->\n")
    PAGE.write_text(f"{head}<!-- figures -->\n" + "\n".join(rows) + f"\n<!-- end of figures -->\n{tail}")


def main() -> int:
    """Fuzz as the command line says; return the exit status."""
    known = targets()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("minutes", type=float, nargs="?", help="minutes of all targets together")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="only these")
    parser.add_argument("--write", action="store_true", help="keep the figures")
    parser.add_argument("--list", action="store_true", help="print the targets and what each holds")
    given = parser.parse_args()
    if given.list:
        for name, source in known.items():
            print(f"{name}: {purpose(name, source)}")
        return 0
    if given.minutes is None or given.minutes <= 0:
        parser.error("give the minutes, a number above 0")
    if strange := set(given.targets) - set(known):
        parser.error(f"unknown target {', '.join(sorted(strange))} (choose from {', '.join(known)})")
    names = given.targets or list(known)
    build(names)
    failed = 0
    for name in names:
        figures, fault = fuzz(name, 60 * given.minutes / len(names))
        rate = figures.executions // max(1, figures.seconds)
        print(f"{name}: {figures.executions:,} executions, {rate:,} per second, {figures.reach()}, ", end="")
        print(f"slowest {figures.slowest_s} s, {figures.peak_mib} MiB, {fault or 'no fault'}", flush=True)
        failed += bool(fault)
        if given.write and not fault:
            write({name: figures})
    print(f"{len(names)} targets, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
