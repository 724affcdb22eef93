"""How long the page of a report takes to open and to draw, for a hundred thousand slices, in headless Chromium."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_view import TOOLS, tool
from measure import Row
from table import make

DRIVER = Path(__file__).parent / "report_page.cjs"
SLICES = 100_000
TURNS = 3
#: Milliseconds: of a frame the script's part; until the first paint; until the timeline is drawn.
GOALS = {"p95": 8, "paint": 400, "drawn": 800}
#: Frames a second, by the browser's own trace.
FRAMES = 55
NAMES = {
    "p95": "script's part of a frame, 95 of 100, panning and zooming",
    "paint": "first contentful paint",
    "drawn": "timeline drawn",
}


def opened(page: Path, node: str, chromium: str) -> dict[str, float]:
    """Return what the page took, once."""
    done = subprocess.run(
        [node, str(DRIVER), str(page)],
        env={**os.environ, "NODE_PATH": str(TOOLS / "browser/node_modules"), "CHROMIUM": chromium},
        capture_output=True, text=True, timeout=150, check=True,
    )  # fmt: skip
    seen: dict[str, float] = json.loads(done.stdout)
    return seen


def run() -> list[Row]:
    """Measure: the best of some runs, as wall time is noisy."""
    node, chromium = tool("node"), tool("chromium")
    if node is None or chromium is None or not (TOOLS / "browser/node_modules/puppeteer-core").is_dir():
        return [Row(NAMES[key], None, "ms", goal, note="make browser-tools") for key, goal in GOALS.items()]
    with tempfile.TemporaryDirectory() as folder:
        capture, page = make("cuda", SLICES, Path(folder)), Path(folder) / "report.html"
        command = [sys.executable, "-m", "lanescope", "report", str(capture), "-o", str(page)]
        subprocess.run(command, check=True, capture_output=True)
        turns = [opened(page, node, chromium) for _ in range(TURNS)]
        size = page.stat().st_size
    rows = []
    for key, goal in GOALS.items():
        values = [turn[key] for turn in turns]
        others = ", ".join(f"{value:.1f}" for value in sorted(values)[1:])
        rows.append(Row(NAMES[key], min(values), "ms", goal, note=f"others {others}; {SLICES} slices, {size} bytes"))
    rates = sorted((turn["fps"] for turn in turns if turn["fps"] is not None), reverse=True)
    others = ", ".join(f"{value:.1f}" for value in rates[1:])
    name = "frames while zooming and panning, by the browser's trace"
    note = f"others {others}; {SLICES} slices" if rates else "this browser traces no frames"
    rows.append(Row(name, rates[0] if rates else None, "1/s", FRAMES, higher_is_better=True, note=note))
    return rows
