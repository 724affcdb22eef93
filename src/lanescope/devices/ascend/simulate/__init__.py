"""The simulator: a scenario and a seed become the files of a capture of any version, and the truth they hide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lanescope.devices.ascend.formats.encode import encode_deps, encode_names, encode_records
from lanescope.devices.ascend.formats.layout import AICORE, AICPU, LEVEL_KEYS, LIFECYCLE, PHASES, SUBMITS, V1_TASKS
from lanescope.devices.ascend.formats.records import Records, Section, Stream
from lanescope.devices.ascend.formats.versions import HOST_BUILT, RINGS
from lanescope.devices.ascend.simulate import chip, recorder
from lanescope.devices.ascend.simulate.arguments import annotate
from lanescope.devices.ascend.simulate.device_memory import DUMP_NAME, device_memory
from lanescope.devices.ascend.simulate.graph import graph
from lanescope.devices.ascend.simulate.host import host, host_file, lifecycle
from lanescope.devices.ascend.simulate.phases import Phases, phases
from lanescope.devices.ascend.simulate.scenario import FAST_CLOCK, Scenario
from lanescope.devices.ascend.simulate.sidecars import log_file, pmu_file, scope_file
from lanescope.devices.ascend.simulate.truth import truth
from lanescope.devices.ascend.simulate.workload import NAMES, build
from lanescope.families.family import Simulation

__all__ = ["Scenario", "simulate"]

#: Keys of the level by format version, where it is not that of v3.
_LEVEL_KEYS = {"v1a": "version", "v1b": "l2_perf_level", "v3c": "chip_swimlane_level", "v4": "chip_swimlane_level"}


def simulate(options: Mapping[str, Any], seed: int) -> Simulation:
    """Simulate a capture; the same options and seed give the same bytes.

    Args:
        options: values of ``Scenario``.
        seed: seed of the PCG64 generator.

    Returns:
        The records file or a dump of device memory, ``deps.json``, a name map and the other sidecar files. The truth
        holds ``totals`` and ``losses``, and in ``rows`` each execution with its true stamps (option ``truth`` =
        ``rows``).

    Raises:
        UsageError: the options contradict themselves.
    """
    s = Scenario.of(options)
    random = np.random.Generator(np.random.PCG64(seed))
    base = int(random.integers(1 << 32, 1 << 42)) * s.unit
    tasks, subtasks = build(s, random)
    run, stepped, steps = recorder.step_clocks(chip.run(s, tasks, subtasks, random), random)
    found = recorder.record(run, random, base, stepped, steps)
    sections = {AICORE.name: found.aicore, AICPU.name: found.aicpu}
    metadata: dict[str, Any] = {
        "clock_freq_hz": s.clock,
        "num_cores": s.cores,
        "core_types": ["aic"] * s.aic + ["aiv"] * s.aiv,
    }
    work = phases(run, random, base) if s.level >= 3 else None
    if work is not None:
        sections[PHASES.name] = work.section
        metadata["core_to_thread"] = run.thread_of.tolist()
    if s.level >= 4 and not s.host:
        sections[SUBMITS.name] = recorder.submits(run, base)
    pool: list[dict[str, Any]] = []
    host_truth = host(run, random, base, metadata, sections, pool) if s.host and s.level >= 4 else None
    if s.has_lifecycle:
        numbers = np.random.Generator(np.random.PCG64([seed, 5]))
        sections[LIFECYCLE.name] = lifecycle(run, numbers, base)
    deps, edge_counts = graph(s, tasks, random)
    made = truth(run, found, sections) | {"graph": edge_counts, "host": host_truth}
    made["losses"] |= {
        "phases": 0 if work is None else int(work.dropped.sum()),
        "dispatch_unmatched": 0 if work is None else work.lonely_dispatches,
        "finish_unmatched": 0 if work is None else work.lonely_finishes,
    }
    if work is not None:
        made["unknown_kinds"] = work.unknown
    key = _LEVEL_KEYS.get(s.format_version, "l2_swimlane_level")
    if s.dump:
        records = Records(key, s.level, metadata, sections)
        files = {DUMP_NAME: device_memory(run, found, work, records, np.random.Generator(np.random.PCG64([seed, 1])))}
    else:
        files = {LEVEL_KEYS.get(key, "l2_perf_records.json"): _content(s, key, metadata, sections, work)}
    if s.deps:
        files["deps.json"] = encode_deps(deps, annotate(s, tasks, deps) if s.is_observed else None)
    if s.names:
        files["name_map_simulated.json"] = encode_names(NAMES, None if s.is_observed else "Simulated")
    if pool:
        files["host_phase_records.jsonl"] = host_file(pool)
    # Numbers of their own: a capture is the same with and without these files.
    if s.pmu:
        files["pmu.csv"] = pmu_file(run, np.random.Generator(np.random.PCG64([seed, 2])))
    if s.scopes:
        rings = (tasks.task_id >> np.uint64(32)).astype(np.int64)
        content = scope_file(rings, np.random.Generator(np.random.PCG64([seed, 3])))
        files["scope_stats/scope_stats.jsonl"] = content
    if s.log:
        random = np.random.Generator(np.random.PCG64([seed, 4]))
        files["host.1000.log"] = log_file(run, pool, host_truth, random, base)
    return Simulation(files, made)


def _content(
    s: Scenario, key: str, metadata: dict[str, Any], sections: dict[str, Section], work: Phases | None
) -> bytes:
    records = Records(key, s.level, metadata, sections)
    if s.format_version == "v4":
        metadata["runtime"] = HOST_BUILT if s.host else RINGS
        records = Records(key, s.level, metadata, sections, format_version="v4", streams=_streams(s, work))
    if s.is_v1:
        from lanescope.devices.ascend.formats.v1 import as_v1

        records = as_v1(records, key)
    content = encode_records(records)
    if s.bad_rows:
        name = V1_TASKS.key if s.is_v1 else AICORE.key
        at = content.index(b"[\n", content.index(f'"{name}"'.encode())) + 2
        bad = b"".join(b'    ["no row", %d],\n' % number for number in range(s.bad_rows))
        content = content[:at] + bad + content[at:]
    return content


def _streams(s: Scenario, work: Phases | None) -> tuple[Stream, ...]:
    """Return what schedulers tell of their streams."""
    if work is None:
        return ()
    platform = "a5" if s.clock >= FAST_CLOCK else "a2a3"
    kept = np.bincount(work.section.group, minlength=len(work.dropped)).tolist()
    return tuple(
        Stream("sched_phase", thread, collected + dropped, dropped, collected, "aicpu", platform)
        for thread, (collected, dropped) in enumerate(zip(kept, work.dropped.tolist(), strict=True))
    )
