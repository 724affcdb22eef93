"""What a capture of format version 3c shows: fields, kinds and orders, by the JSON files alone.

Features are texts for what occurs. Nothing of lanescope is used: the same reader profiles what the runtime wrote and
what the simulator wrote.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import combinations

#: Values that are names of a closed list, not measurements; other numbers and texts are known by their types.
_NAMED = {
    "orchestrator_source",
    "orchestrator_clock_domain",
    "device_clock_domain",
    "timeline_relation",
    "status",
    "position",
    "device_timestamp_unit",
    "raw_device_timestamp_unit",
    "phase",
    "clock",
    "scope",
    "type",
    "source",
    "overlap",
    "early_dispatch",
    "schema_version",
    "samples_per_position",
    "host_timestamp_resolution_ns",
    "host_timestamp_quantization_ns",
    "clock_freq_hz",
}


class Case:
    """The files of one test case."""

    def __init__(self, files, host=None):
        """Take the content of the files (bytes), by name, and the records of the host if they are read already."""
        self.records = json.loads(files["chip_swimlane_records.json"])
        deps = files.get("deps.json")
        self.deps = None if deps is None else json.loads(deps)
        names = [content for name, content in files.items() if name.startswith("name_map")]
        self.names = json.loads(names[0]) if names else None
        if host is None:
            host = [json.loads(line) for line in files.get("host_phase_records.jsonl", b"").splitlines()]
        self.host = host
        self.level = self.records["chip_swimlane_level"]
        self.metadata = self.records["metadata"]
        self.platform = {50_000_000: "a2a3", 1_000_000_000: "a5"}[self.metadata["clock_freq_hz"]]
        self.is_host_built = "orchestrator_source" in self.metadata or (
            self.deps is not None and not any("flags" in edge for edge in self.deps["edges"])
        )
        self.threads = self.records.get("aicpu_scheduler_phases", [])
        self.phases = [phase for thread in self.threads for phase in thread]
        self.rows = self.records["aicore_tasks"]
        self.submits = [one for rows in self.records.get("aicpu_orchestrator_phases", []) for one in rows]
        self.host_submits = [one for rows in self.records.get("host_orchestrator_phases", []) for one in rows]

    @property
    def group(self):
        """Return what captures are compared by: runtime, platform, level."""
        return ("host_build_graph" if self.is_host_built else "tensormap", self.platform, self.level)

    def of_kind(self, *kinds):
        """Return the phases of some kinds."""
        return [phase for phase in self.phases if phase["kind"] in kinds]

    def count(self, *kinds):
        """Return the sum of what phases of some kinds processed."""
        return sum(phase["tasks_processed"] for phase in self.of_kind(*kinds))


def features(case):
    """Return everything that occurs in a case, as texts."""
    found = set()
    _paths(case.metadata, "metadata", found)
    found |= {f"key {key}" for key in case.records}
    for name in ("aicore_tasks", "aicpu_tasks"):
        found |= {f"{name} of {len(row)}" for row in case.records[name]}
        if not case.records[name]:
            found.add(f"{name} empty")
    found |= {f"ring {row[1] >> 32} ran" for row in case.rows}
    _phases(case, found)
    for key in ("aicpu_orchestrator_phases", "host_orchestrator_phases", "host_device_uploads"):
        if key in case.records:
            _paths(case.records[key], key, found)
    found |= {f"ring {one['task_id'] >> 32} submitted" for one in (*case.submits, *case.host_submits)}
    if case.names is not None:
        found.add(f"name_map {{{','.join(sorted(case.names))}}}")
        _paths({key: value for key, value in case.names.items() if key != "callable_id_to_name"}, "name_map", found)
    if case.host:
        _paths(case.host, "host_phase_records", found)
    if case.deps is not None:
        _deps(case, found)
    return found


def _paths(value, path, found):
    if isinstance(value, dict):
        found.add(f"{path} {{{','.join(sorted(value))}}}")
        for key, item in value.items():
            _paths(item, f"{path}.{key}", found)
    elif isinstance(value, list):
        if not value:
            found.add(f"{path} empty list")
        for item in value:
            _paths(item, f"{path}[]", found)
    elif path.rsplit(".")[-1] in _NAMED:
        found.add(f"{path} = {value}")
    else:
        found.add(f"{path}: {type(value).__name__}")


def _phases(case, found):
    if "aicpu_scheduler_phases" in case.records:
        found.add(f"{len(case.threads)} lists of phases")
    for thread in case.threads:
        if not thread:
            found.add("empty list of phases")
        by_loop = defaultdict(set)
        for phase in thread:
            kind = phase["kind"]
            by_loop[phase["loop_iter"]].add(kind)
            found.add(f"{kind} {{{','.join(sorted(phase))}}}")
            for name in ("tasks_processed", "pop_hit", "pop_miss"):
                if name in phase:
                    found.add(f"{kind}.{name} {'0' if phase[name] == 0 else '> 0'}")
            found.add(f"{kind} {'has width' if phase['end_cycles'] > phase['start_cycles'] else 'has no width'}")
            if "task_id" in phase:
                found.add(f"{kind} of ring {phase['task_id'] >> 32}")
            for name in ("shared_at_start", "shared_at_end"):
                found |= {f"{kind}.{name}[{place}] > 0" for place, depth in enumerate(phase[name]) if depth > 0}
        for kinds in by_loop.values():
            found |= {f"{one} and {other} in one iteration" for one, other in combinations(sorted(kinds), 2)}
        if len({phase["loop_iter"] for phase in thread}) != (thread[-1]["loop_iter"] if thread else 0):
            found.add("iterations without phases")


def form(task):
    """Return which slots a task uses and whether it has several blocks."""
    slots = "+".join(
        name for name, kernel in zip(("aic", "aiv0", "aiv1"), task["kernel_ids"], strict=True) if kernel >= 0
    )
    return (slots or "none") + (" in blocks" if task["block_num"] > 1 else "")


def _deps(case, found):
    deps = case.deps
    found |= {f"deps.{key}" for key in deps}
    for task in deps["tasks"]:
        found.add(f"task of {form(task)}")
        found.add(f"task of ring {int(task['task_id']) >> 32}")
        _paths({key: value for key, value in task.items() if key != "args"}, "deps.tasks", found)
        found |= {f"{'no' if not task['args'] else 'some'} arguments"}
        for argument in task["args"]:
            found.add(f"argument {argument['type']} {{{','.join(sorted(argument))}}}")
    for tensor in deps["tensors"]:
        _paths(tensor, "deps.tensors", found)
    explicit = Counter()
    for edge in deps["edges"]:
        source = edge["source"]
        _paths(edge, f"deps.edges({source})", found)
        found.add(f"{source} flags {edge.get('flags')}")
        explicit[edge["succ"]] += source == "explicit"
    if max(explicit.values(), default=0) > 64:
        found.add("more than 64 explicit dependencies")
    pairs = Counter((edge["pred"], edge["succ"]) for edge in deps["edges"])
    if max(pairs.values(), default=0) > 1:
        found.add("several edges of one pair")
    found |= {f"a task that is {kind}" for kind in kinds_of(case).values()}


def kinds_of(case):
    """Return the kind of each task of a case with a task graph, by id; see the facts of the runtimes."""
    listed = {int(task["task_id"]): task for task in case.deps["tasks"]}
    ran = {row[1] for row in case.rows}
    marked = {
        kind: {phase["task_id"] for phase in case.of_kind(kind)}
        for kind in ("dummy_task", "predicated_skip", "graph_prepare")
    }
    found = {}
    outer_of_nodes = {(task & 0xFFFFFFFF) >> 10 for task in ran - set(listed) if task >> 32 == 1}
    for number, task in listed.items():
        if max(task["kernel_ids"]) >= 0:
            found[number] = (
                "kernel" if number in ran else "skipped" if number in marked["predicated_skip"] else "without rows"
            )
        elif number in marked["graph_prepare"] or (case.is_host_built and number in outer_of_nodes):
            found[number] = "graph"
        else:
            found[number] = "dummy with record" if number in marked["dummy_task"] else "dummy without record"
    for edge in case.deps["edges"]:
        if int(edge["pred"]) not in listed:
            found[int(edge["pred"])] = f"not listed, {edge['source']}"
    for number in ran - set(listed):
        found[number] = "node" if case.is_host_built and number >> 32 == 1 else "not listed, ran"
    return found


def orders(case):
    """Return pairs of kinds, the first before the second in the list, within an iteration of a thread."""
    found = set()
    for thread in case.threads:
        by_loop = defaultdict(list)
        for phase in thread:
            by_loop[phase["loop_iter"]].append(phase["kind"])
        for kinds in by_loop.values():
            found |= {(one, other) for one, other in combinations(kinds, 2) if one != other}
    return found
