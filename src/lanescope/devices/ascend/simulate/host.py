"""What a host records that orchestrates: submits before the device starts, copies, readings of both clocks."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.formats.layout import HOST_SUBMITS, LIFECYCLE, STAGES, UPLOADS
from lanescope.devices.ascend.formats.records import Section, section
from lanescope.devices.ascend.simulate.chip import Run
from lanescope.devices.ascend.simulate.phases import window
from lanescope.devices.ascend.simulate.workload import ALLOC, GRAPH

Int64 = npt.NDArray[np.int64]

_GAP_NS = 200_000  # from the last copy to the first dispatch
_TRIPS = 3
#: What a host does before it orchestrates, and how long each takes.
_READY = ("args", "arena_build", "static_arena", "gm_heap", "shared_mem", "runtime_init")
_READY_NS = 2000
_COPIES = ("graph_upload", "arena_h2d")


def host(
    run: Run,
    random: np.random.Generator,
    base: int,
    metadata: dict[str, Any],
    sections: dict[str, Section],
    pool: list[dict[str, Any]],
) -> dict[str, Any]:
    """Add the host's lists and metadata and everything it did (to ``pool``); return the truth about its clock."""
    s, n = run.scenario, len(run.tasks)
    origin = int(random.integers(1 << 40, 1 << 44))
    begin, end = (values * 20 // s.unit for values in (run.submit_start, run.submit_end))
    total = int(end[-1])
    copies = origin + total + np.array([1000, 30_000])
    lengths = np.array([20_000, 45_000])
    sections[HOST_SUBMITS.name] = section(
        HOST_SUBMITS,
        {
            "submit_idx": np.arange(n),
            "task_id": run.tasks.task_id,
            "start_host_ns": origin + begin,
            "end_host_ns": origin + end,
        },
        group=np.zeros(n, np.int64),
    )
    sections[UPLOADS.name] = section(
        UPLOADS,
        {"phase": [0, 1], "start_host_ns": copies, "end_host_ns": copies + lengths, "detail": [4096, 1 << 20]},
        texts=_COPIES,
    )
    pool += _pool(run, origin, begin, end, copies, lengths)
    device_at = origin + total + _GAP_NS
    drift = float(random.uniform(-5e-5, 5e-5))
    first_host = int(sections[HOST_SUBMITS.name]["start_host_ns"][0])
    metadata |= {
        "orchestrator_source": "host",
        "orchestrator_clock_domain": "host_monotonic_ns",
        "device_clock_domain": "device_syscnt_cycles",
        "host_timestamp_resolution_ns": 1,
        "host_timestamp_quantization_ns": 0,
        "host_orchestration_origin_ns": first_host,
        "timeline_relation": "host_orchestration_precedes_device",
        "host_capture": {
            "status": "complete",
            "expected_records": n,
            "recorded_records": n,
            "pool_records": len(pool),
            "dropped_records": 0,
            "error": None,
        },
    }
    if s.anchors and s.format_version == "v4":
        # One reading of the device, between two of the host.
        low, high = (int(random.integers(800, 4000)) for _ in range(2))
        metadata["clock_alignment"] = {
            "status": "bounded",
            "device_anchor_cycles": base,
            "host_anchor_ns": device_at,
            "host_anchor_min_ns": device_at - low,
            "host_anchor_max_ns": device_at + high,
        }
    elif s.anchors:
        moments = {
            "pre_host_orchestration": -(total + _GAP_NS + 100_000) * s.clock // 1_000_000_000,
            "post_device_execution": window(run),
        }
        samples = [
            _sample(
                position, index, ticks + index * s.unit * (50 if ticks >= 0 else -50), random, base, device_at, rate
            )
            for rate in [(1 + drift) * 1_000_000_000 / s.clock]
            for position, ticks in moments.items()
            for index in range(_TRIPS)
        ]
        metadata["clock_anchors"] = {
            "schema_version": 1,
            "provider": "simulated",
            "device_timestamp_unit": "syscnt_cycles",
            "raw_device_timestamp_unit": "syscnt_cycles",
            "samples_per_position": _TRIPS,
            "samples": samples,
        }
    return {
        "first_host_ns": first_host,
        "device_zero_host_ns": device_at,
        "device_zero_cycles": base,
        "drift": drift,
    }


def _pool(run: Run, origin: int, begin: Int64, end: Int64, copies: Int64, lengths: Int64) -> list[dict[str, Any]]:
    """Return all that the host recorded: how it got ready, its submits and what they took, its copies."""
    tasks, total = run.tasks, int(end[-1])
    found: list[dict[str, Any]] = []

    def add(phase: str, first: int, last: int, detail: int = 0, tid: int = 1000) -> None:
        found.append({"phase": phase, "start_ns": first, "end_ns": last, "detail": detail, "tid": tid})

    for number, phase in enumerate(_READY):
        first = origin - _READY_NS * (len(_READY) - number)
        add(phase, first, first + _READY_NS // 2)
    add("host_orch", origin, origin + total)
    kinds, ids = tasks.kind.tolist(), tasks.task_id.tolist()
    for number, (first, last) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
        phase = (
            "graph_submit" if kinds[number] == GRAPH else "alloc_tensors" if kinds[number] == ALLOC else "submit_task"
        )
        add(phase, origin + first, origin + last, ids[number])
        if kinds[number] == GRAPH:
            # A second thread records the nodes and puts them together.
            nodes = int(tasks.nodes[number]) + 1
            step = max((last - first) // (nodes + 1), 1)
            for node in range(nodes):
                add("record_node", origin + first + node * step, origin + first + (node + 1) * step, node + 1, 1001)
            add("build_definition", origin + first + nodes * step, origin + last, nodes, 1001)
    for phase, first, length, detail in zip(_COPIES, copies.tolist(), lengths.tolist(), (4096, 1 << 20), strict=True):
        add(phase, first, first + length, detail)
    add("host_view_close", int(copies[-1] + lengths[-1]), int(copies[-1] + lengths[-1]) + 500)
    return found


def lifecycle(run: Run, random: np.random.Generator, base: int) -> Section:
    """Return how the threads of control processors start and end a run: stages in turn, the first thread configures."""
    threads, unit = run.scenario.threads, run.scenario.unit
    stages = [begin for _, begin, _ in STAGES]
    early, first_exit = 5, stages.index("exit_signal_start_cycles")
    lengths = random.integers(1, 200, (threads, len(STAGES), 2)) * unit
    at = base - lengths.sum(axis=(1, 2)) - early * unit
    last = base + window(run)
    columns: dict[str, Any] = {"aicpu_thread_id": np.arange(threads)}
    for place, (name, begin, end) in enumerate(STAGES):
        if place == first_exit:
            at = np.maximum(at, last + early * unit)
        columns[begin] = at + lengths[:, place, 0]
        columns[end] = columns[begin] + lengths[:, place, 1]
        at = columns[end]
        if name == "configuration":
            for stamp in (begin, end):
                columns[stamp] = np.where(np.arange(threads) > 0, 0, columns[stamp])
    return section(LIFECYCLE, columns)


def host_file(pool: list[dict[str, Any]]) -> bytes:
    """Return the file of everything that the host recorded: one line for the run."""
    line = {"pid": 1000, "inv": 1, "clock": "host_monotonic_ns", "dropped": 0, "records": pool}
    return json.dumps(line).encode() + b"\n"


def _sample(
    position: str, index: int, ticks: int, random: np.random.Generator, base: int, device_at: int, rate: float
) -> dict[str, Any]:
    """Return a reading of both clocks, ``ticks`` after the device's begin."""
    trip = int(random.integers(800, 4000))
    before = device_at + round(ticks * rate) - int(random.integers(0, trip + 1))
    return {
        "position": position,
        "sample_idx": index,
        "host_before_ns": before,
        "raw_device_timestamp": base + ticks,
        "device_cycles": base + ticks,
        "host_after_ns": before + trip,
        "rtt_ns": trip,
        "uncertainty_ns": (trip + 1) // 2,
        "error": None,
    }
