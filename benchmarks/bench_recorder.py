"""The recorder of Level Zero: what it adds to a call of a driver that does nothing, and what a recording weighs.

Operations are not timed on the device here. Times are those of the processor, the best of five rounds; each thread has
a list of its own. Ways are run in turn, and the best of some runs of each counts: what else the machine does hits all
of them alike, and with eight threads the cost of writing to the disk's cache varies.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Row

ROOT = Path(__file__).resolve().parents[1]
#: A call that is not written takes some ten cycles: the clock of the processor's time wants many of them.
CALLS, UNWRITTEN_CALLS = 100_000, 1_000_000
THREADS = 8
RUNS = 5
#: How the program runs -> options of ``lanescope record``; None: without it.
WAYS: dict[str, list[str] | None] = {
    "untraced": None,
    "paused": ["--start-paused"],
    "without host calls": ["--no-host-calls"],
    "recorded": [],
}


def run() -> list[Row]:
    """Measure."""
    levelzero = ROOT / ".tools/levelzero"
    if not (levelzero / "include/level_zero/ze_api.h").exists():
        return [Row("cost of a call", None, "ns", note="needs Level Zero: make test-tools")]
    sys.path.insert(0, str(ROOT / "tests"))
    from native.recorder_build import build

    programs = build(levelzero)
    with tempfile.TemporaryDirectory() as scratch:
        kinds = [(way, threads) for way in WAYS for threads in (1, THREADS)]
        runs = [[_cost(programs, levelzero, *kind, scratch) for kind in kinds] for _ in range(RUNS)]
        costs = {
            kind: tuple(map(min, zip(*found, strict=True)))
            for kind, found in zip(kinds, zip(*runs, strict=True), strict=True)
        }
        weight = _weight(Path(scratch) / "recording")
    rows = [
        Row(f"{what}, {way}", costs[way, 1][index], "ns")
        for index, what in enumerate(("AppendBarrier", "EventQueryStatus", "EventHostReset"))
        for way in WAYS
    ]
    append, status, reset = zip(*(costs[way, 1] for way in WAYS), strict=True)
    many = costs["recorded", THREADS][0]
    return [
        *rows,
        Row("untimed call through the recorder, nothing written", reset[1] / reset[0], "x", 1.3),
        Row("EventQueryStatus through the recorder, nothing written", status[1] / status[0], "x", 1.2),
        Row("added to an AppendBarrier, all written", append[3] - append[0], "ns", 150),
        Row(
            f"rate of {THREADS} threads, by processor time",
            append[3] / many,
            "x",
            0.95,
            higher_is_better=True,
            note=f"{many:.0f} ns a call, {append[3]:.0f} ns alone",
        ),
        Row("an event on disk", weight, "bytes", 40),
    ]


def _cost(programs: Path, levelzero: Path, way: str, threads: int, scratch: str) -> tuple[float, ...]:
    """Return ns of an AppendBarrier, of an EventQueryStatus and of an EventHostReset."""
    environment = {
        **os.environ,
        "ZE_ENABLE_ALT_DRIVERS": str(programs / "librecorder_stub.so"),
        "LD_LIBRARY_PATH": str(levelzero / "lib"),
    }
    calls = UNWRITTEN_CALLS if way in ("untraced", "paused") else CALLS
    command = [str(programs / "recorder_cost"), str(threads), str(calls)]
    options = WAYS[way]
    if options is not None:
        output = str(Path(scratch) / "recording")
        record = [
            sys.executable,
            "-m",
            "lanescope",
            "record",
            "--force",
            "--no-summary",
            "--no-device-timestamps",
            "-o",
            output,
        ]
        command = [*record, *options, "--", *command]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return tuple(map(float, done.stdout.split()))


def _weight(folder: Path) -> float:
    """Return bytes of an event in a recording."""
    from lanescope.devices.levelzero.formats import ctf_reader
    from lanescope.source import Capture

    with Capture(folder) as capture:
        streams = ctf_reader.read(capture).streams
    return sum(stream.source.size for stream in streams) / sum(len(stream.events.classes) for stream in streams)
