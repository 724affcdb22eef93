"""PyTorch profiler: memory of each command on a large file, read in windows and as a whole.

``LANESCOPE_BENCH_MIB`` is the length of the text, 320 if it is not set: files above 256 MiB are read in windows.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import foreign_files
from measure import Row

MIB = int(os.environ.get("LANESCOPE_BENCH_MIB", "320"))
#: What is run, by name; `convert` writes a file of the ending beside the source.
COMMANDS = {
    "info": ("info",),
    "summary": ("summary",),
    "check": ("check",),
    "convert -o out.parquet": ("convert", "out.parquet"),
    "convert -o out.pftrace": ("convert", "out.pftrace"),
}
#: What a fresh process runs: VmHWM is its own, what getrusage says includes the process that started it.
_RUN = """
import io, sys, time
from contextlib import redirect_stdout
from lanescope.cli import main
from lanescope.foreign.chrome import decoder as chrome
from lanescope.foreign.kineto import decoder as kineto
chrome.WHOLE = kineto.WHOLE = int(sys.argv[1])
with redirect_stdout(io.StringIO()):
    status = main(sys.argv[2:])
assert not status, status
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) / 1024, time.process_time(), file=sys.stderr)
"""
_IN_WINDOWS, _AS_A_WHOLE = 0, 1 << 62


def run() -> list[Row]:
    """Measure: one training step, again and again."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "run.json"
        steps = foreign_files.kineto(source, MIB << 20)
        return measure(source, f"{steps} steps")


def measure(source: Path, what: str) -> list[Row]:
    """Measure the commands on a file."""
    with tempfile.TemporaryDirectory() as folder:
        text = source.stat().st_size / 2**20
        rows = []
        for name, (verb, *target) in COMMANDS.items():
            words = [verb, str(source)]
            if target:
                words = [verb, "--force", str(source), "-o", str(Path(folder) / target[0])]
            (peak, taken), (whole, taken_whole) = (_peak(limit, words) for limit in (_IN_WINDOWS, _AS_A_WHOLE))
            note = f"{text:.0f} MiB of text, {what}, {taken:.1f} processor s; "
            rows.append(
                Row(
                    f"peak memory, {name}",
                    peak,
                    "MiB",
                    note=note + f"read as a whole {whole:.0f} MiB, {taken_whole:.1f} processor s",
                )
            )
    return rows


def _peak(limit: int, words: list[str]) -> tuple[float, float]:
    """Return the most memory of a command in MiB, and its processor seconds; larger files are read in windows."""
    command = [sys.executable, "-c", _RUN, str(limit), *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    # Standard output is not only ours: DuckDB draws progress into it where a program has no file.
    peak, taken = map(float, done.stderr.splitlines()[-1].split())
    return peak, taken
