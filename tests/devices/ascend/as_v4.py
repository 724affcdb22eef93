"""Captures of version 3c as version 4 would have them, and back: rows of 7, streams, ids in spaces, several runs."""

from __future__ import annotations

import copy

_SPACE, _RING, _NODE_BITS = 62, 32, 10


def as_v4(capture, deps=None, *, runs=1, apart=0):
    """Return records and task graph of version 4, of a capture of a host that builds graphs, or of rings.

    Args:
        capture: records of version 3c, as read from JSON.
        deps: its task graph; None without.
        runs: how often the run is in the file; the task ids are the same in each.
        apart: cycles from one run to the next.
    """
    deps = copy.deepcopy(deps)
    is_host = is_host_built(capture, deps)

    def number(task):
        task = int(task)
        if not is_host or task >> _RING != 1:
            return task
        low = task & 0xFFFFFFFF
        return 1 << _SPACE | (low >> _NODE_BITS) << _RING | low & ((1 << _NODE_BITS) - 1)

    made = {"chip_swimlane_level": capture["chip_swimlane_level"], "metadata": dict(capture["metadata"])}
    made["metadata"].pop("clock_anchors", None)
    made["metadata"]["runtime"] = "host_build_graph" if is_host else "tensormap_and_ringbuffer"
    rows, sent, submits = [], [], []
    streams = [[] for _ in capture.get("aicpu_scheduler_phases", [])]
    metrics = [[] for _ in streams]
    for run in range(runs):
        shift, epoch = run * apart, run + 1
        for core, task, counter, start, end, delta in capture["aicore_tasks"]:
            rows.append([core, number(task), counter, start + shift, end + shift, delta, epoch])
        for core, counter, dispatch, finish in capture["aicpu_tasks"]:
            sent.append([core, counter, dispatch + shift, finish + shift, epoch])
        for thread, phases in enumerate(capture.get("aicpu_scheduler_phases", [])):
            for phase in phases:
                stamps = {key: phase[key] + shift for key in ("start_cycles", "end_cycles")}
                task = number(phase["task_id"]) if "task_id" in phase else None
                metric = {"record_index": len(streams[thread])}
                metric |= {key: phase[key] for key in ("pop_hit", "pop_miss") if key in phase}
                metric |= {f"shared_at_{side}": phase[f"shared_at_{side}"] for side in ("start", "end")}
                metrics[thread].append(metric)
                values = {key: phase[key] for key in ("loop_iter", "kind", "tasks_processed")}
                streams[thread].append({**stamps, "run_epoch": epoch, **values, "task_id": task})
        for rank in capture.get("aicpu_orchestrator_phases", []):
            submits += [
                {**row, "start_cycles": row["start_cycles"] + shift, "end_cycles": row["end_cycles"] + shift}
                for row in rank
            ]
    made |= {"aicore_tasks": rows, "scheduler_tasks": {"producer": "aicpu", "records": sent}}
    if "aicpu_scheduler_phases" in capture:
        made["scheduler_records"] = {
            "streams": [
                {
                    "platform": "a2a3sim",
                    "producer": "aicpu",
                    "scheduler_id": thread,
                    "worker_id": thread,
                    "core_type": None,
                    "physical_core_id": None,
                    "records": records,
                    "metrics": counted,
                    "capture": {"committed": len(records), "dropped": 0, "truncated": False},
                }
                for thread, (records, counted) in enumerate(zip(streams, metrics, strict=True))
                if records
            ]
        }
    if submits:
        made["aicpu_orchestrator_phases"] = [submits]
    for key in ("host_orchestrator_phases", "host_device_uploads"):
        if key in capture:
            made[key] = capture[key]
    if deps is not None:
        for task in deps["tasks"]:
            task["task_id"] = str(number(task["task_id"]))
        for edge in deps["edges"]:
            edge |= {end: str(number(edge[end])) for end in ("pred", "succ")}
    return made, deps


def as_v3c(capture, deps=None):
    """Return records and task graph as version 3c would have them, of a capture of version 4 with one run.

    Lists that version 4 leaves out because they are empty stay left out.
    """
    metadata = {name: value for name, value in capture["metadata"].items() if name != "runtime"}
    made = {name: value for name, value in capture.items() if name not in ("scheduler_tasks", "scheduler_records")}
    made |= {"metadata": metadata, "aicpu_tasks": [row[:4] for row in capture["scheduler_tasks"]["records"]]}
    made["aicore_tasks"] = [[core, _of_ring(task), *row[:4]] for core, task, *row in capture["aicore_tasks"]]
    if "scheduler_records" in capture:
        made["aicpu_scheduler_phases"] = []
        streams = capture["scheduler_records"]["streams"]
        for number, stream in enumerate(sorted(streams, key=lambda one: one["scheduler_id"])):
            assert number == stream["scheduler_id"]
            counted = {one["record_index"]: one for one in stream["metrics"]}
            made["aicpu_scheduler_phases"].append(
                [
                    {
                        name: _of_ring(value) if name == "task_id" else value
                        for name, value in {**phase, **counted[at]}.items()
                        if value is not None and name not in ("record_index", "run_epoch")
                    }
                    for at, phase in enumerate(stream["records"])
                ]
            )
    if deps is not None:
        deps = copy.deepcopy(deps)
        for task in deps["tasks"]:
            task["task_id"] = str(_of_ring(int(task["task_id"])))
        for edge in deps["edges"]:
            edge |= {end: str(_of_ring(int(edge[end]))) for end in ("pred", "succ")}
    return made, deps


def _of_ring(task):
    """Return the id that version 3c gives to a task: nodes are on a ring."""
    if task >> _SPACE != 1:
        return task
    graph = task >> _RING & ((1 << 20) - 1)
    return 1 << _RING | graph << _NODE_BITS | task & ((1 << _NODE_BITS) - 1)


def is_host_built(capture, deps):
    """Return whether the host built the graph: its submissions say so, or edges without flags."""
    if "host_orchestrator_phases" in capture:
        return True
    return deps is not None and bool(deps["edges"]) and not any("flags" in edge for edge in deps["edges"])
