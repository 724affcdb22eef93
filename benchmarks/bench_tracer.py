"""Timed operations of Level Zero: what the recorder adds to an Append, by a driver whose commands end at once.

Costs are processor time, the median of the hundreds of operations between two waits, harvest included. The calls of the
driver that timing adds cost next to nothing there, so what remains is the recorder's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Row

ROOT = Path(__file__).resolve().parents[1]
OPERATIONS = 1_000_000
THREADS = 8
#: What is compared is run in turn, and the best counts: what else the machine does hits both alike.
RUNS = 5
#: What is appended -> as `timed.cpp` calls it.
WHAT = {"AppendBarrier": "barrier", "AppendLaunchKernel": "kernel", "AppendMemoryCopy": "copy"}
#: How the program runs -> options of ``lanescope record``; None: without it.
WAYS: dict[str, list[str] | None] = {
    "untraced": None,
    "not timed": ["--no-device-timestamps"],
    "timed": [],
    "timed, read by the host": ["--host-timestamps"],
}


def run() -> list[Row]:
    """Measure."""
    levelzero = ROOT / ".tools/levelzero"
    if not (levelzero / "include/level_zero/ze_api.h").exists():
        return [Row("cost of a timed operation", None, "ns", note="needs Level Zero: make test-tools")]
    sys.path.insert(0, str(ROOT / "tests"))
    from native.recorder_build import build

    programs = build(levelzero)
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, what in WHAT.items():
            found = {way: _run(programs, levelzero, way, what, 1, scratch) for way in WAYS}
            rows += [Row(f"{name}, {way}", cost, "ns") for way, (cost, *_) in found.items()]
            rows.append(Row(f"{name}, a timed one on disk", found["timed"][-1] / OPERATIONS, "bytes", 100))
            if what == "kernel":
                kernels = found
        alone, untraced = kernels["timed"], kernels["untraced"]
        both = [
            [_run(programs, levelzero, "timed", "kernel", threads, scratch) for threads in (1, THREADS)]
            for _ in range(RUNS)
        ]
        single, many = (tuple(map(max, zip(*runs, strict=True))) for runs in zip(*both, strict=True))
        plain = _run(programs, levelzero, "untraced", "kernel", THREADS, scratch)
    cores = min(len(os.sched_getaffinity(0)), THREADS)
    return [
        *rows,
        Row("added to a timed AppendLaunchKernel", alone[0] - untraced[0], "ns", 80),
        Row("memory that a million of them take beyond the first ten thousand", alone[4] - alone[3], "KiB", 256),
        Row(
            f"rate of {THREADS} threads by processor time, to that of one",
            many[1] / single[1],
            "x",
            0.95,
            higher_is_better=True,
        ),
        Row(
            f"rate of {THREADS} threads per core by the clock, to that of one",
            many[2] / cores / single[2],
            "x",
            0.6,
            higher_is_better=True,
            note=f"untraced {plain[2] / cores / untraced[2]:.2f}x; wants {cores} idle cores",
        ),
    ]


def _run(programs: Path, levelzero: Path, way: str, what: str, threads: int, scratch: str) -> tuple[float, ...]:
    """Return what ``timed`` printed, and the bytes of the recording."""
    environment = {
        **os.environ,
        "ZE_ENABLE_ALT_DRIVERS": str(programs / "librecorder_timed_stub.so"),
        "LD_LIBRARY_PATH": str(levelzero / "lib"),
    }
    command = [str(programs / "recorder_timed"), what, str(threads), str(OPERATIONS // threads)]
    folder = Path(scratch) / "recording"
    options = WAYS[way]
    if options is not None:
        record = [sys.executable, "-m", "lanescope", "record", "--force", "--no-summary", "-o", str(folder)]
        command = [*record, *options, "--", *command]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if options is not None else 0
    return (*map(float, done.stdout.split()), size)
