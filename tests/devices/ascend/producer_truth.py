"""Tasks, bars and arrows of the producer's captures, straight from their files; nothing of the package.

Written for captures that lost nothing, of one run each. Without a task graph file, kinds are those that records prove.
``compare_captures.py`` compares any folder with the package.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

#: Nodes of graphs: ids on ring 1, whose lowest ten bits count within the graph.
_RING, _NODE_BITS = 32, 10
_DISPATCHES = "dispatch", "early_dispatch"
#: Level from which on phases are recorded.
_PHASES = 3


def _is_host_built(capture, deps):
    """Return whether the host built the graph, None if nothing says it: a phase, a list, or edges with flags do."""
    kinds = {phase["kind"] for phases in capture.get("aicpu_scheduler_phases", []) for phase in phases}
    if "host_orchestrator_phases" in capture or "graph_prepare" in kinds:
        return True
    if any(capture.get("aicpu_orchestrator_phases", [])) or kinds & {"dummy_task", "predicated_skip"}:
        return False
    return not any("flags" in edge for edge in deps["edges"]) if deps["edges"] else None


class Truth:
    """What a folder says, in cycles of the device; host times of submissions are left to the caller.

    Attributes:
        level, is_host_built: recording level, and whether the host builds the graph; None: nothing says it.
        has_graph: whether there is a task graph file.
        folder: where the files are.
        kinds: what each task is.
        recorded: tasks that a record other than the task graph names.
        bars: Counter of (kind, task, begin, end): executions as "kernel", markers, allocations, envelopes of graphs.
        arrows: set of (producer, consumer) between tasks that have a bar.
        dispatched: dispatches by thread, and how many of them were early.
        threads: threads that schedule.
    """

    def __init__(self, folder: Path) -> None:
        capture = json.loads((folder / "chip_swimlane_records.json").read_bytes())
        self.has_graph = (folder / "deps.json").exists()
        deps = json.loads((folder / "deps.json").read_bytes()) if self.has_graph else {"tasks": [], "edges": []}
        self.folder = folder
        self.level = capture["chip_swimlane_level"]
        self.is_host_built = _is_host_built(capture, deps)
        self._functions = {int(task["task_id"]): max(task["kernel_ids"]) for task in deps["tasks"]}
        self._edges = [(int(edge["pred"]), int(edge["succ"]), edge["source"]) for edge in deps["edges"]]
        self._rows = [(row[1], row[3] - row[5], row[3], row[4]) for row in capture["aicore_tasks"]]
        self._phases = capture.get("aicpu_scheduler_phases", [])
        self._on_host = {row["task_id"] for part in capture.get("host_orchestrator_phases", []) for row in part}
        self._submits = [row for part in capture.get("aicpu_orchestrator_phases", []) for row in part]
        self.is_aligned = "clock_anchors" in capture["metadata"]
        self.threads = sorted(set(capture["metadata"].get("core_to_thread", [])))
        self._nodes = self._node_rows()
        self.kinds = self._kinds()
        self.bars = self._bars()
        self.recorded = {row[0] for row in self._rows} | {row["task_id"] for row in self._submits}
        self.recorded |= self._on_host
        self.recorded |= {p["task_id"] for phases in self._phases for p in phases if "task_id" in p}
        self.dispatched = {
            thread: tuple(sum(p["tasks_processed"] for p in phases if p["kind"] == kind) for kind in _DISPATCHES)
            for thread, phases in enumerate(self._phases)
            if phases
        }
        self.waits = {(pred, succ) for pred, succ, _ in self._edges if pred != succ}

    def _node_rows(self):
        """Return receive and end of the nodes of each graph."""
        nodes = defaultdict(list)
        prepared = self._named("graph_prepare")
        for task, receive, _, end in self._rows:
            outer = (task & 0xFFFFFFFF) >> _NODE_BITS
            is_node = self.is_host_built and task >> _RING == 1 and task not in self._functions
            # Without a task graph only the phase that prepared it tells of a graph.
            if is_node and (outer in prepared or outer in self._functions):
                nodes[outer].append((receive, end))
        return nodes

    def _named(self, kind):
        return {p["task_id"]: p for phases in self._phases for p in phases if p["kind"] == kind}

    def _kinds(self):
        ran = {row[0] for row in self._rows}
        skipped, dummies, graphs = map(self._named, ("predicated_skip", "dummy_task", "graph_prepare"))
        kinds = dict.fromkeys(ran, "kernel")
        if self.is_host_built:
            kinds |= {task: "node" for task in ran if task >> _RING == 1 and task not in self._functions}
        kinds |= dict.fromkeys(graphs, "graph") | dict.fromkeys(dummies, "dummy") | dict.fromkeys(skipped, "skipped")
        for task, function in self._functions.items():
            if function < 0:
                is_sure = self.is_host_built is False or self.level >= _PHASES
                kinds.setdefault(task, "graph" if task in self._nodes else "dummy" if is_sure else "unknown")
            elif task not in ran:
                kinds.setdefault(task, "unknown")
        submitted = {row["task_id"] for row in self._submits} | self._on_host
        creators = {pred for pred, _, source in self._edges if source == "creator"}
        others = (creators | submitted) - set(kinds)
        # A host that builds the graph submits dummies and skipped tasks that leave no record.
        kinds |= dict.fromkeys(others, "alloc" if self.has_graph or self.is_host_built is False else "unknown")
        return kinds

    def _bars(self):
        bars = Counter(("kernel", task, start, end) for task, _, start, end in self._rows)
        for kind in ("dummy_task", "predicated_skip"):
            bars.update((kind, task, p["start_cycles"], p["end_cycles"]) for task, p in self._named(kind).items())
        for row in self._submits:
            if self.kinds[row["task_id"]] == "alloc":
                bars["alloc", row["task_id"], row["start_cycles"], row["end_cycles"]] += 1
        for task, nodes in self._nodes.items():
            bars["graph", task, min(begin for begin, _ in nodes), max(end for _, end in nodes)] += 1
        return bars

    def begins(self):
        """Return the stamps at which arrows may enter each task: the receive or start of its first execution."""
        begins = defaultdict(set)
        first = {}
        for task, receive, start, _ in self._rows:
            owners = [task, (task & 0xFFFFFFFF) >> _NODE_BITS] if self.kinds[task] == "node" else [task]
            for owner in owners:
                known = first.get(owner, (receive, start))
                first[owner] = min(known[0], receive), min(known[1], start)
        for task, stamps in first.items():
            begins[task] = set(stamps)
        for kind, task, begin, _ in self.bars:
            if kind not in ("kernel", "graph"):
                begins[task].add(begin)
        return begins

    def ends(self):
        """Return the stamp at which arrows leave each task: its last end."""
        ends = {}
        for _, task, _, end in self.bars:
            ends[task] = max(ends.get(task, 0), end)
        return ends
