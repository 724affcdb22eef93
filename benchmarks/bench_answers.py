"""CUDA markers: what analyses of an open trace cost, and what a window saves of a whole ``summary``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import lanescope
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.idle import idle
from lanescope.trace import Trace
from measure import Row

TILES = 1_350
#: Goals of the analyses in processor seconds for a million slices. Source: the project's goals for answers.
ANALYSES: dict[str, tuple[float, Callable[[Trace], object]]] = {
    "phases": (0.5, lambda trace: trace.phases()),
    "gaps": (0.5, lambda trace: trace.longest_gaps()),
    "idle": (0.68, lambda trace: idle(AnalysisCache(trace))),
}

#: What a fresh process runs: VmHWM is its own, and so is its processor time.
_SUMMARY = """
import sys, time
from lanescope.cli import main
main(["summary", *sys.argv[1:]])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(time.process_time(), int(peak.split()[1]) / 1024, file=sys.stderr)
"""


def _summary(*words: str) -> tuple[float, float]:
    done = subprocess.run([sys.executable, "-c", _SUMMARY, *words], check=True, capture_output=True, text=True)
    taken, peak = map(float, done.stderr.splitlines()[-1].split())
    return taken, peak


def run() -> list[Row]:
    """Measure: each analysis on a trace of its own, since a trace keeps what analyses share."""
    rows = []
    simulation = lanescope.simulate("cuda", tiles=TILES)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in simulation.files.items():
            (Path(folder) / name).write_bytes(content)
        path = Path(folder) / next(iter(simulation.files))
        count = len(lanescope.open(path).slices)
        for name, (goal, analyse) in ANALYSES.items():
            least = float("inf")
            for _ in range(3):
                trace = lanescope.open(path)
                for column in trace.slices.spec.names:  # what columns are made from is the decode's cost
                    trace.slices.values(column)
                begin = time.process_time()
                analyse(trace)
                least = min(least, time.process_time() - begin)
            note = f"{count / 1e6:.1f} M slices, {least:.2f} s, without the decode"
            rows.append(Row(f"{name}, open trace", least * 1_000_000 / count, "s for 1 M", goal, note=note))
        whole, most = _summary(str(path))
        part, least_peak = _summary(str(path), "--start", "50us", "--end", "150us")
        rows += [
            Row("summary of a window of 100 us", part, "s", note=f"of the whole capture {whole:.2f} s"),
            Row("its peak memory", least_peak, "MiB", note=f"of the whole capture {most:.0f} MiB"),
        ]
    return rows
