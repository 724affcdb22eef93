"""Ascend swimlanes: 300,000 executions with phases and task graph read, and read and written, beside JSON readers."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np

import lanescope
from lanescope.devices.ascend.formats.files import read_deps, read_records
from measure import Row, seconds

#: Tasks of the graph; each has 1.27 executions.
TASKS = 237_000
RECORDS, DEPS = "l2_swimlane_records.json", "deps.json"
MIB = 1 << 20


class Phase(msgspec.Struct, gc=False):
    """A scheduler phase as a typed reader wants it declared."""

    start_cycles: int
    end_cycles: int
    kind: str = ""
    loop_iter: int = 0
    tasks_processed: int = 0
    pop_hit: int = 0
    pop_miss: int = 0
    shared_at_start: tuple[int, int, int] = (0, 0, 0)
    shared_at_end: tuple[int, int, int] = (0, 0, 0)


class Submit(msgspec.Struct, gc=False):
    """A submit."""

    submit_idx: int
    task_id: int
    start_cycles: int
    end_cycles: int


class File(msgspec.Struct, gc=False):
    """A records file."""

    aicore_tasks: list[tuple[int, int, int, int, int, int]]
    aicpu_tasks: list[tuple[int, int, int, int]]
    aicpu_scheduler_phases: list[list[Phase]]
    aicpu_orchestrator_phases: list[list[Submit]]


class Task(msgspec.Struct, gc=False):
    """A task of the graph."""

    task_id: str
    kernel_ids: tuple[int, int, int]
    block_num: int = 1


class Edge(msgspec.Struct, gc=False):
    """An edge of the graph."""

    pred: str
    succ: str


class Graph(msgspec.Struct, gc=False):
    """A task graph file."""

    tasks: list[Task]
    edges: list[Edge]


def simulate(folder: Path, tasks: int) -> int:
    """Write a capture and return how many executions it has."""
    simulation = lanescope.simulate("ascend", tasks=tasks, truth="totals")
    for name, content in simulation.files.items():
        (folder / name).write_bytes(content)
    executions: int = simulation.truth["totals"]["executions"]
    return executions


def ours(folder: Path) -> None:
    """Read both files into columns."""
    for name, reader in ((RECORDS, read_records), (DEPS, read_deps)):
        text = np.empty((folder / name).stat().st_size + 1, np.uint8)
        with (folder / name).open("rb") as file:
            file.readinto(memoryview(text))
        text[-1] = 0
        reader(text, name)


def typed(folder: Path) -> None:
    """Read both files into typed objects, with the cycle collector out of the way."""
    gc.disable()
    msgspec.json.decode((folder / RECORDS).read_bytes(), type=File)
    msgspec.json.decode((folder / DEPS).read_bytes(), type=Graph)
    gc.enable()


def plain(folder: Path) -> None:
    """Read both files into dicts, as converters begin."""
    for name in (RECORDS, DEPS):
        json.loads((folder / name).read_bytes())


def convert(capture: Path, out: Path) -> None:
    """Decode and write, in a process of its own: print its processor seconds and its largest memory in kB."""
    from lanescope.io import perfetto

    perfetto.write(lanescope.open(capture, "ascend"), out)
    _spent()


def command(*arguments: str) -> None:
    """Do the same with a command, without its output."""
    from lanescope.cli import main

    told = sys.stdout
    with Path(os.devnull).open("w") as nowhere:
        sys.stdout = nowhere
        status = main(list(arguments))
    sys.stdout = told
    if status not in (0, 1):
        raise RuntimeError(f"lanescope {arguments[0]} ended with status {status}")
    _spent()


def _spent() -> None:
    peak = next(
        line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    print(time.process_time(), peak)


def spent(code: str, *arguments: str) -> tuple[float, float]:
    """Return processor seconds and peak memory in MiB of a whole process, imports and all: the better of two."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    program = [sys.executable, "-c", f"import sys, bench_ascend; from pathlib import Path; {code}", *arguments]
    runs = []
    for _ in range(2):
        done = subprocess.run(program, check=True, capture_output=True, text=True, env=environment)
        cpu, peak = done.stdout.split()
        runs.append((float(cpu), int(peak) / 1024))
    return min(runs)


def commands(folder: Path) -> list[Row]:
    """Measure what users run."""
    run = "bench_ascend.command(*sys.argv[1:])"
    capture, out = str(folder / RECORDS), str(folder / "out")
    rows = []
    for shown, goal, most, *arguments in (
        ("convert", 1.5, 500, "convert", "--force", capture, "-o", f"{out}.pftrace"),
        ("check --json", 1.2, None, "check", "--json", capture),
        ("convert --format swimlane", 4, None, "convert", "--format", "swimlane", capture, "-o", f"{out}.json"),
    ):
        cpu, memory = spent(f"Path({out!r} + '.json').unlink(missing_ok=True); {run}", *arguments)
        rows.append(Row(f"lanescope {shown}", cpu, "CPU s", goal, note=f"{memory:.0f} MiB at most"))
        if most is not None:
            rows.append(Row(f"its peak memory, lanescope {shown}", memory, "MiB", most))
    return rows


def run() -> list[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begin = time.process_time()
        executions = simulate(folder, TASKS)
        simulated = time.process_time() - begin
        size = sum((folder / file).stat().st_size for file in (RECORDS, DEPS))
        read, objects, dicts = seconds(lambda: ours(folder), lambda: typed(folder), lambda: plain(folder), repeats=2)
        cpu, memory = spent(
            "bench_ascend.convert(*map(Path, sys.argv[1:]))", str(folder / RECORDS), str(folder / "out.pftrace")
        )
        whole = commands(folder)
    shape = f"{executions} executions, {size / MIB:.0f} MiB of JSON"
    return [
        Row(
            "read into columns, beside json.loads",
            dicts.least / read.least,
            "x",
            5,
            higher_is_better=True,
            note=f"{shape}: {read.least:.2f} s, json.loads {dicts.least:.1f} s",
        ),
        Row(
            "read into columns, beside typed msgspec",
            objects.least / read.least,
            "x",
            1,
            higher_is_better=True,
            note=f"msgspec {msgspec.__version__}: {objects.least:.2f} s, objects and no columns",
        ),
        Row("JSON to Perfetto file, whole process", cpu, "CPU s", 3, note=shape),
        Row("its peak memory", memory, "MiB", 700, note=f"{memory * MIB / executions:.0f} bytes an execution"),
        *whole,
        Row(
            "simulate with truth",
            executions / simulated / 1e6,
            "M executions/CPU s",
            higher_is_better=True,
            note="each is two records, and one or two phases, submits and edges",
        ),
    ]
