"""How long a user waits for ``lanescope view`` of a hundred thousand slices, in headless Chromium."""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Row
from table import make

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / ".tools"
DRIVER = ROOT / "tests" / "tools" / "open_viewer.js"
SLICES = 100_000
GOAL_SECONDS = 5
TURNS = 3
#: A lane of the simulated capture whose name says that the page shows it.
AWAITED = {"aie": "core (1, 2)", "ascend": "Sched_0"}
#: What the page takes for almost nothing: the viewer's own start.
FEW, TRIED = 300, "aie"


def tool(name: str) -> str | None:
    """Return a program's path."""
    fetched = TOOLS / "bin" / name
    return str(fetched) if fetched.exists() else shutil.which(name)


def opened(capture: Path, awaited: str, node: str, chromium: str) -> tuple[float, float, float]:
    """Return the seconds until the server gives its address, from there until the lane is there, and of processor.

    The last are those of the browser up to there: the figure to compare where the machine has other work.
    """
    begin = time.perf_counter()
    command = [sys.executable, "-m", "lanescope", "view", "--no-browser", str(capture)]
    environment = {**os.environ, "TMPDIR": str(capture.parent)}  # so that whatever it leaves goes with the capture
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        served = time.perf_counter() - begin
        try:
            done = subprocess.run(
                [node, str(DRIVER), address, "", awaited],
                env={**os.environ, "NODE_PATH": str(TOOLS / "browser/node_modules"), "CHROMIUM": chromium},
                capture_output=True,
                text=True,
                timeout=150,
                check=False,
            )
        finally:
            server.send_signal(signal.SIGINT)
            try:
                server.communicate(timeout=10)
            except subprocess.TimeoutExpired:  # a shell that runs us in the background has it ignore interrupts
                server.kill()
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no word of why"])[-1][:200])
    seen = json.loads(done.stdout)
    if not seen["found"]:
        raise RuntimeError(f"{awaited!r} did not come")
    return served, seen["seconds"], seen["cpu"]


def case(family: str, slices: int, goal: float | None) -> Row:
    """Measure one capture."""
    node, chromium = tool("node"), tool("chromium")
    name = f"{slices} slices until the lanes are there, {family}"
    if node is None or chromium is None or not (TOOLS / "browser/node_modules/puppeteer-core").is_dir():
        return Row(name, None, "s", goal, note="no Chromium here: make browser-tools")
    with tempfile.TemporaryDirectory() as folder:
        capture = make(family, slices, Path(folder))
        try:
            turns = [opened(capture, AWAITED[family], node, chromium) for _ in range(TURNS)]
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            return Row(name, None, "s", goal, note=str(error)[:200])
    served, shown, cpu = (statistics.median(turn) for turn in zip(*turns, strict=True))
    note = f"median of {TURNS}: served after {served:.2f} s, page {shown:.2f} s, wall time; the browser {cpu:.1f} CPU s"
    return Row(name, served + shown, "s", goal, note=note)


def run() -> list[Row]:
    """Measure."""
    return [*(case(family, SLICES, GOAL_SECONDS) for family in AWAITED), case(TRIED, FEW, None)]
