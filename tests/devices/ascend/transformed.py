"""Captures of version 3c as the same producer would write them otherwise: levels, chips, order, missing files."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path

RECORDS = "chip_swimlane_records.json"
SIDECARS = ("deps.json", "host_phase_records.jsonl", "pmu.csv", "scope_stats.jsonl")
_HOST_LISTS = ("host_orchestrator_phases", "host_device_uploads")
_HOST_WORDS = ("orchestrator_", "host_", "clock_anchors", "timeline_relation", "device_clock_domain")
_CYCLES = ("start_cycles", "end_cycles")


def read(folder):
    """Return the files of a capture by name, JSON as objects."""
    folder = Path(folder)
    found = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    return {name: json.loads(content) if name.endswith(".json") else content for name, content in found.items()}


def write(files, folder):
    """Write the files of a capture."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


def at_level(files, level):
    """Return a capture at a lower level: host records exist at level 4, phases from 3 on, dispatches from 2 on."""
    files = copy.deepcopy(files)
    capture = files[RECORDS]
    if capture["chip_swimlane_level"] <= level:
        return files
    capture["chip_swimlane_level"] = level
    for key in ("aicpu_orchestrator_phases", *_HOST_LISTS):
        capture.pop(key, None)
    capture["metadata"] = {key: value for key, value in capture["metadata"].items() if not key.startswith(_HOST_WORDS)}
    files.pop("host_phase_records.jsonl", None)
    if level < 3:
        capture.pop("aicpu_scheduler_phases", None)
        capture["metadata"].pop("core_to_thread", None)
    if level < 2:
        capture["aicpu_tasks"] = []
    return files


def without(files, *names):
    """Return a capture without some of its files."""
    return {name: content for name, content in copy.deepcopy(files).items() if name not in names}


def on_fast_chip(files):
    """Return a capture of the chip with a counter of 1 GHz and five threads; names of threads stay."""
    files = stretched(files, 20)
    capture = files[RECORDS]
    capture["metadata"]["clock_freq_hz"] = 1_000_000_000
    for key in ("aicpu_scheduler_phases",):
        if key in capture:
            capture[key].append([])
    return files


def stretched(files, factor, shift=0):
    """Return a capture whose counter is another one: stamps times a factor, and then later."""
    files = copy.deepcopy(files)
    capture = files[RECORDS]

    def at(stamp):
        return stamp * factor + shift if stamp else stamp

    capture["aicore_tasks"] = [
        [core, task, number, at(start), at(end), delta * factor]
        for core, task, number, start, end, delta in capture["aicore_tasks"]
    ]
    capture["aicpu_tasks"] = [[*row[:2], at(row[2]), at(row[3])] for row in capture["aicpu_tasks"]]
    for key in ("aicpu_scheduler_phases", "aicpu_orchestrator_phases"):
        for part in capture.get(key, []):
            for row in part:
                row |= {name: at(row[name]) for name in _CYCLES}
    for sample in capture["metadata"].get("clock_anchors", {}).get("samples", []):
        for key in ("device_cycles", "raw_device_timestamp"):
            if sample[key] is not None:
                sample[key] = at(sample[key])
    return files


def shuffled(files, seed):
    """Return a capture from several collectors: rows of cores in pieces of any order, those of a piece as they were."""
    files = copy.deepcopy(files)
    dice = random.Random(seed)
    for key in ("aicore_tasks", "aicpu_tasks"):
        rows, pieces = files[RECORDS][key], []
        while rows:
            size = dice.randint(1, 4)
            pieces.append(rows[:size])
            rows = rows[size:]
        dice.shuffle(pieces)
        files[RECORDS][key] = [row for piece in pieces for row in piece]
    return files


def later_tasks(files, counts):
    """Return a capture whose cores had run so many tasks before: their counters go on."""
    files = copy.deepcopy(files)
    for rows, place in ((files[RECORDS]["aicore_tasks"], 2), (files[RECORDS]["aicpu_tasks"], 1)):
        for row in rows:
            row[place] += counts
    return files


def with_more_cores(files, chip=(24, 48)):
    """Return a capture of a full chip: cores that ran nothing, numbered behind those of their type."""
    files = copy.deepcopy(files)
    capture = files[RECORDS]
    types = capture["metadata"]["core_types"]
    cubes = types.count("aic")
    place = {core: core if core < cubes else core - cubes + chip[0] for core in range(len(types))}
    capture["metadata"] |= {"num_cores": sum(chip), "core_types": ["aic"] * chip[0] + ["aiv"] * chip[1]}
    threads = capture["metadata"].get("core_to_thread")
    if threads is not None:
        used = max(threads) + 1
        changed = [core % used for core in range(chip[0])] + [core // 2 % used for core in range(chip[1])]
        for core, thread in enumerate(threads):
            changed[place[core]] = thread
        capture["metadata"]["core_to_thread"] = changed
    for rows in (capture["aicore_tasks"], capture["aicpu_tasks"]):
        for row in rows:
            row[0] = place[row[0]]
    return files


def without_edges(files):
    """Return a capture whose tasks depend on nothing that the task graph knows."""
    files = copy.deepcopy(files)
    if "deps.json" in files:
        files["deps.json"]["edges"] = []
    return files


def of_host(files):
    """Return a capture of rings as one of a host that builds the graph: one ring, fewer phases, edges without flags.

    Captures with tasks that were staged early stay as they are: cores stamp the receive of those otherwise.
    """
    files = copy.deepcopy(files)
    capture, deps = files[RECORDS], files.get("deps.json")
    phases = capture.get("aicpu_scheduler_phases", [])
    is_ring = any(capture.get("aicpu_orchestrator_phases", []))
    if not is_ring or deps is None or any(task.get("early_dispatch") for task in deps["tasks"]):
        return files
    submits = [row for part in capture.pop("aicpu_orchestrator_phases") for row in part]
    number = {row["task_id"]: at for at, row in enumerate(submits)}
    for row in capture["aicore_tasks"]:
        row[1] = number[row[1]]
    kept = ("complete", "dispatch", "drain", "drain_prepare", "drain_publish")
    for part in phases:
        part[:] = [row for row in part if row["kind"] in kept]
    first = submits[0]["start_cycles"]
    capture["host_orchestrator_phases"] = [
        [
            {
                "submit_idx": at,
                "task_id": at,
                **{f"{side}_host_ns": 10**12 + 20 * (row[f"{side}_cycles"] - first) for side in ("start", "end")},
            }
            for at, row in enumerate(submits)
        ]
    ]
    capture["metadata"] |= {"orchestrator_source": "host", "orchestrator_clock_domain": "host_monotonic_ns"}
    for task in deps["tasks"]:
        task["task_id"] = str(number[int(task["task_id"])])
    for edge in deps["edges"]:
        edge |= {end: str(number[int(edge[end])]) for end in ("pred", "succ")}
        edge.pop("flags", None)
    return files


#: By name: what makes the files of a capture those of another one.
TRANSFORMS = {
    **{f"level {level}": lambda files, level=level: at_level(files, level) for level in (1, 2, 3)},
    "no task graph": lambda files: without(files, "deps.json"),
    "no host phases": lambda files: without(files, "host_phase_records.jsonl"),
    "no names": lambda files: without(files, *(name for name in files if name.startswith("name_map"))),
    "level 1, no task graph": lambda files: without(at_level(files, 1), "deps.json"),
    "level 2, no task graph": lambda files: without(at_level(files, 2), "deps.json"),
    "level 3, no task graph": lambda files: without(at_level(files, 3), "deps.json"),
    "fast chip": on_fast_chip,
    "fast chip, level 2": lambda files: at_level(on_fast_chip(files), 2),
    "years after the start": lambda files: stretched(files, 1, 1 << 56),
    "several collectors": lambda files: shuffled(files, 1),
    "later tasks": lambda files: later_tasks(files, 5000),
    "full chip": with_more_cores,
    "full fast chip": lambda files: with_more_cores(on_fast_chip(files), (36, 72)),
    "fast chip, no task graph": lambda files: without(on_fast_chip(files), "deps.json"),
    "host": of_host,
    "host, no task graph": lambda files: without(of_host(files), "deps.json"),
    **{f"host, level {level}": lambda files, level=level: at_level(of_host(files), level) for level in (1, 2, 3)},
    "no edges": without_edges,
}
