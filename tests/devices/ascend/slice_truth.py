"""Every slice of the producer's captures, straight from their files or the bytes of a raw dump; nothing of the package.

``Slices`` has what ``Truth`` has of tasks, and what a timeline draws: places, kinds, names and stamps. Written for
captures that lost nothing, of one run each.
"""

from __future__ import annotations

import json
import struct
from collections import Counter, defaultdict

from .producer_truth import Truth

_LETTERS = 26
_MARKERS = {"dummy_task": ("Dummy", "dummy task"), "predicated_skip": ("Predicated", "skipped task")}


def letters(number):
    """Return a number in letters: 0 a, 25 z, 26 aa."""
    text, number = "", number + 1
    while number:
        number, digit = divmod(number - 1, _LETTERS)
        text = chr(ord("a") + digit) + text
    return text


def short(task):
    """Return how a task id is written."""
    ring, number = task >> 32 & 0xFF, task & 0xFFFFFFFF
    return f"r{ring}t{number}" if ring else f"t{number}"


class Slices(Truth):
    """The slices of a folder.

    Attributes:
        slices: Counter of (lane, category, name, begin, end), in the ticks of the lane's clock.
        labels: Counter of (core, begin, label) of executions.
    """

    def __init__(self, folder):
        super().__init__(folder)
        self.capture = json.loads((folder / "chip_swimlane_records.json").read_bytes())
        self.deps = json.loads((folder / "deps.json").read_bytes()) if self.has_graph else {"tasks": []}
        names = sorted(folder.glob("name_map*.json"))
        self.names = json.loads(names[0].read_bytes())["callable_id_to_name"] if len(names) == 1 else {}
        host = folder / "host_phase_records.jsonl"
        self.host = [json.loads(line) for line in host.read_bytes().splitlines()] if host.exists() else []
        self.task = {int(task["task_id"]): task for task in self.deps["tasks"]}
        self.sent = {(row[0], row[1]): row[2:] for row in self.capture["aicpu_tasks"]}
        self.types = self.capture["metadata"]["core_types"]
        self.slices, self.labels = Counter(), Counter()
        self._executions()
        self._scheduler_lanes()
        self._host_lanes()

    def lane(self, core):
        """Return the lane of a core."""
        return f"{self.types[core].upper()}_{core}"

    def name(self, task, core):
        """Return the name of what a task runs on a core."""
        slots = self.task[task]["kernel_ids"] if task in self.task else (-1, -1, -1)
        found = [slots[0]] if self.types[core] == "aic" else slots[1:]
        if min(found) >= 0 and len(found) > 1:
            # A task of several slots goes to one cluster; the second vector core of the cluster runs AIV1.
            found = [found[self.types[:core].count("aiv") % 2]]
        number = next((slot for slot in found if slot >= 0), -1)
        if number < 0:
            # Without a task graph, several executions on cores of one type are blocks.
            cores = [row[0] for row in self.capture["aicore_tasks"] if row[1] == task]
            is_spmd = not self.has_graph and len(cores) > 1 and len({self.types[each] for each in cores}) == 1
            return "task_spmd" if is_spmd else "task"
        name = self.names.get(str(number), f"func_{number}_{letters(number)}")
        is_spmd = self.task[task].get("block_num", 1) > 1 and "spmd" not in name.lower()
        return f"{name}_spmd" if is_spmd else name

    def _executions(self):
        ends = {}
        for _, task, _, _, end, _ in self.capture["aicore_tasks"]:
            ends[task] = max(ends.get(task, 0), end)
        for core, task, counter, start, end, delta in self.capture["aicore_tasks"]:
            lane, name = self.lane(core), self.name(task, core)
            self.slices[lane, "kernel", name, start, end] += 1
            self.labels[core, start, f"{name}({short(task)})"] += 1
            gate = self._gate(core, task, counter, start, delta, ends)
            if gate:
                self.slices[lane, "gate", "gate_wait", start - delta, start - delta + gate] += 1
            if delta > gate:
                self.slices[lane, "setup", "setup", start - delta + gate, start] += 1
            if (core, counter) in self.sent:
                dispatch, finish = self.sent[core, counter]
                self.slices[lane, "flight", f"{name} in flight", dispatch, finish] += 1
        for outer, nodes in self._nodes.items():
            begin, end = min(n[0] for n in nodes), max(n[1] for n in nodes)
            assert self.kinds[outer] == "graph"
            self.slices["Graph_0", "graph", "graph", begin, end] += 1

    def _gate(self, core, task, counter, start, delta, ends):
        """Return how long an execution waited on its core for a producer."""
        producers = {pred for pred, succ in self.waits if succ == task}
        ready = max((ends[pred] for pred in producers if pred in ends), default=0)
        if self.is_host_built or not start - delta < ready <= start:
            return 0
        submitted = min((row["start_cycles"] for row in self._submits if row["task_id"] == task), default=0)
        for pred in producers:
            # The runtime flags allocations itself, and waits for nothing that ended before the submission.
            had_ended = pred in ends and ends[pred] <= submitted
            if self.kinds[pred] != "alloc" and not self.task[pred].get("early_dispatch", False) and not had_ended:
                return 0
        if (core, counter) in self.sent:
            stamp, within = self.sent[core, counter][0], set()
            owner = self.capture["metadata"].get("core_to_thread")
            for phase in self._phases[owner[core]] if owner else ():
                if phase["start_cycles"] <= stamp <= phase["end_cycles"]:
                    within.add(phase["kind"])
            if "dispatch" in within and "early_dispatch" not in within:
                return 0
        return ready - (start - delta)

    def _scheduler_lanes(self):
        orchestrators = self.capture.get("aicpu_orchestrator_phases", [])
        for thread, phases in enumerate(self._phases):
            for p in phases:
                kind, begin, end = p["kind"], p["start_cycles"], p["end_cycles"]
                self.slices[f"Sched_{thread}", "scheduler", kind, begin, end] += 1
                if kind in _MARKERS:
                    lane, name = _MARKERS[kind]
                    self.slices[f"{lane}_{thread}", "bare", name, begin, end] += 1
        for number, submits in enumerate(orchestrators):
            for row in submits:
                begin, end = row["start_cycles"], row["end_cycles"]
                self.slices[f"Orch_{number}", "orchestrator", "submit", begin, end] += 1
                if self.kinds[row["task_id"]] == "alloc":
                    self.slices[f"Alloc_{number}", "bare", "alloc", begin, end] += 1

    def _host_lanes(self):
        for number, submits in enumerate(self.capture.get("host_orchestrator_phases", [])):
            for row in submits:
                begin, end = row["start_host_ns"], row["end_host_ns"]
                self.slices[f"Host_{number}", "orchestrator", "submit", begin, end] += 1
                if self.kinds[row["task_id"]] == "alloc":
                    self.slices[f"Alloc_{number}", "bare", "alloc", begin, end] += 1
        for row in (row for part in self.capture.get("host_device_uploads", []) for row in _listed(part)):
            self.slices["H2D", "upload", row["phase"], row["start_host_ns"], row["end_host_ns"]] += 1
        for line in self.host:
            for row in line["records"]:
                thread = f"Thread {row['tid']}" + ("" if row["tid"] == line["pid"] else f" of {line['pid']}")
                self.slices[thread, "host", row["phase"], row["start_ns"], row["end_ns"]] += 1

    def counts(self):
        """Return how many slices each lane has, by category."""
        found = defaultdict(int)
        for (lane, category, *_), number in self.slices.items():
            found[lane, category] += number
        return dict(found)


def _listed(part):
    return part if isinstance(part, list) else [part]


# --- raw dumps --------------------------------------------------------------------------------------------------------

_ENTRY = 32
_BUFFER = (32064, 1048640, 524352, 32832)
_COUNT_AT = (32000, 1048576, 524288, 32768)
_RECORD = (32, 64, 32, 32)
_KINDS = (
    "complete", "dispatch", "release", "wire", "dummy", "early_dispatch", "resolve", "dummy_task", "drain",
    "drain_prepare", "drain_publish", "async_poll", "predicated_skip", "graph_prepare",
)  # fmt: skip


def dumped(content, begin):
    """Return (lane, category, begin, end) of the slices of a raw dump, from its buffers alone; no names of functions.

    Args:
        content: the bytes.
        begin: where header and pools end.
    """
    sent, ran, found = {}, [], Counter()
    while begin < len(content):
        index, stream = content[begin], content[begin + 4]
        buffer = content[begin + _ENTRY : begin + _ENTRY + _BUFFER[stream]]
        begin += _ENTRY + _BUFFER[stream]
        (count,) = struct.unpack_from("<I", buffer, _COUNT_AT[stream])
        for at in range(0, count * _RECORD[stream], _RECORD[stream]):
            if stream == 0:
                dispatch, finish, counter = struct.unpack_from("<QQI", buffer, at)
                sent[index, counter] = dispatch, finish
            elif stream == 1:
                first, last, _, kind = struct.unpack_from("<QQII", buffer, at)
                found[f"Sched_{index}", "scheduler", _KINDS[kind], first, last] += 1
            elif stream == 2:
                first, last = struct.unpack_from("<QQ", buffer, at)
                found[f"Orch_{index}", "orchestrator", "submit", first, last] += 1
            else:
                start, end, _, counter, delta = struct.unpack_from("<QQQII", buffer, at)
                ran.append((index, counter, start, end, delta))
    for core, counter, start, end, delta in ran:
        found[f"CORE_{core}", "kernel", "task", start, end] += 1
        if delta:
            found[f"CORE_{core}", "setup", "setup", start - delta, start] += 1
        found[f"CORE_{core}", "flight", "task in flight", *sent.pop((core, counter))] += 1
    assert not sent
    return found
