"""Relations between the parts of a capture of format version 3c (``Case``): rules that hold or do not."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

OUTER = {"complete", "dispatch", "release", "early_dispatch", "dummy", "drain", "async_poll", "graph_prepare"}
#: Inner kinds and those that contain them.
PARENTS = {
    "resolve": {"complete", "dummy"},
    "dummy_task": {"dummy"},
    "predicated_skip": {"dummy"},
    "drain_prepare": {"drain"},
    "drain_publish": {"drain"},
}


def relations(case):
    """Return rules by name: True if it holds in the case, False if it is broken, None where it says nothing."""
    found = {}

    def rule(name, values):
        values = list(values)
        found[name] = all(values) if values else None

    rows, aicpu = case.rows, {(row[0], row[1]): row for row in case.records["aicpu_tasks"]}
    cores = case.metadata["core_types"]
    by_core = defaultdict(list)
    for row in rows:
        by_core[row[0]].append(row)
    joined = [(row, aicpu[row[0], row[2]]) for row in rows if (row[0], row[2]) in aicpu]
    rule("core types are as many as cores", [len(cores) == case.metadata["num_cores"]])
    rule("core types: cube cores first", [cores == sorted(cores)])
    rule(
        "counters run from 1 without holes",
        (sorted(r[2] for r in mine) == list(range(1, len(mine) + 1)) for mine in by_core.values()),
    )
    rule("rows join one to one", [len(joined) == len(rows) == len(aicpu)] if case.level > 1 else [])
    rule("rows are in the order of cores and counters", [rows == sorted(rows, key=lambda r: (r[0], r[2]))])
    rule("dispatch <= receive", (a[2] <= r[3] - r[5] for r, a in joined))
    rule("receive <= start", (r[5] >= 0 for r in rows))
    rule("start <= end", (r[3] <= r[4] for r in rows))
    rule("end <= finish", (r[4] <= a[3] for r, a in joined))
    rule(
        "executions of a core are disjoint",
        (one[4] <= other[3] for mine in by_core.values() for one, other in pairwise(mine)),
    )
    rule(
        "finishes of a core never fall",
        (
            one[3] <= other[3]
            for mine in by_core.values()
            for one, other in pairwise([aicpu[row[0], row[2]] for row in mine if (row[0], row[2]) in aicpu])
        ),
    )
    rule("level 1 has no scheduler rows", [not aicpu] if case.level == 1 else [])
    _phase_relations(case, rule, joined)
    _graph_relations(case, rule, by_core)
    return found


def _phase_relations(case, rule, joined):
    has_phases = bool(case.phases)
    rule("lists of phases begin at level 3", [("aicpu_scheduler_phases" in case.records) == (case.level >= 3)])
    rule("core_to_thread begins at level 3", [("core_to_thread" in case.metadata) == (case.level >= 3)])
    owner = case.metadata.get("core_to_thread", [])
    if owner:
        threads, cube = max(owner) + 1, case.metadata["core_types"].count("aic")
        rule("core_to_thread is as long as the cores", [len(owner) == case.metadata["num_cores"]])
        rule(
            "clusters go round",
            (thread == ((core if core < cube else (core - cube) // 2) % threads) for core, thread in enumerate(owner)),
        )
        rule("one list of phases has no thread", [len(case.threads) > threads])
    for one, thread in enumerate(case.threads):
        if owner and thread:
            rule(f"list {one} is of a scheduler", [one <= max(owner)])
    rule("complete counts the rows", [case.count("complete") == len(case.rows)] if has_phases else [])
    rule(
        "dispatch and early dispatch count the rows",
        [case.count("dispatch", "early_dispatch") == len(case.rows)] if has_phases else [],
    )
    rule(
        "a drain publishes no more than is dispatched",
        [case.count("drain_publish") <= case.count("dispatch")] if has_phases else [],
    )
    rule(
        "a drain prepares what it publishes",
        [case.count("drain_publish") == case.count("drain_prepare")] if case.of_kind("drain_publish") else [],
    )
    rule(
        "dummies count markers",
        [case.count("dummy") == len(case.of_kind("dummy_task", "predicated_skip"))] if case.of_kind("dummy") else [],
    )
    rule("markers count 1", (p["tasks_processed"] == 1 for p in case.of_kind("dummy_task", "predicated_skip")))
    rule(
        "markers have no width",
        (p["start_cycles"] == p["end_cycles"] for p in case.of_kind("dummy_task", "predicated_skip")),
    )
    rule(
        "resolve takes 1 us",
        (
            (p["end_cycles"] - p["start_cycles"]) * 1_000_000 >= case.metadata["clock_freq_hz"]
            for p in case.of_kind("resolve")
        ),
    )
    rule("loop_iter never falls", (a["loop_iter"] <= b["loop_iter"] for t in case.threads for a, b in pairwise(t)))
    rule(
        "phases are in the order of their ends",
        (a["end_cycles"] <= b["end_cycles"] for t in case.threads for a, b in pairwise(t)),
    )
    rule("loop_iter is positive", (p["loop_iter"] > 0 for p in case.phases))
    rule(
        "the last phase of a thread is a dispatch without width or tasks",
        (
            t[-1]["kind"] == "dispatch"
            and t[-1]["tasks_processed"] == 0
            and t[-1]["start_cycles"] == t[-1]["end_cycles"]
            for t in case.threads
            if t
        ),
    )
    rule(
        "phases with counts of 0 are drains, polls, or the last",
        (
            p["tasks_processed"] > 0 or p["kind"].startswith(("drain", "async_poll")) or p is t[-1]
            for t in case.threads
            for p in t
        ),
    )
    outer = [[p for p in t if p["kind"] in OUTER] for t in case.threads]
    rule(
        "outer phases follow one another", (a["end_cycles"] <= b["start_cycles"] for t in outer for a, b in pairwise(t))
    )
    rule(
        "inner phases lie in the outer one behind them",
        (_has_parent(t, at) for t in case.threads for at, p in enumerate(t) if p["kind"] in PARENTS),
    )
    rule(
        "a drain is counted again by the next dispatch of its thread",
        (
            _is_counted_again(t, at)
            for t in case.threads
            for at, p in enumerate(t)
            if p["kind"] == "drain" and p["tasks_processed"]
        ),
    )
    spans = {
        kinds: [[p for p in t if p["kind"] in kinds] for t in case.threads]
        for kinds in (("complete",), ("dispatch", "early_dispatch", "drain_publish"))
    }
    for name, kinds, column in (
        ("finishes lie in complete phases", ("complete",), 3),
        ("dispatches lie in phases that publish", ("dispatch", "early_dispatch", "drain_publish"), 2),
    ):
        rule(
            name,
            (
                any(p["start_cycles"] <= a[column] <= p["end_cycles"] for p in spans[kinds][owner[a[0]]])
                for _, a in joined
                if owner
            ),
        )
    stages = [[p for p in t if p["kind"] == "dispatch"] for t in case.threads]
    rule(
        "pop_miss is there with pop_hit",
        (("pop_hit" in p) == ("pop_miss" in p) == (p["kind"] == "dispatch") for p in case.phases),
    )
    rule("a first dispatch has pops", (t[0]["pop_hit"] + t[0]["pop_miss"] > 0 for t in stages if t))


def _has_parent(thread, at):
    """Return whether the next outer phase contains the inner one."""
    inner = thread[at]
    outer = next((p for p in thread[at + 1 :] if p["kind"] in OUTER), None)
    return (
        outer is not None
        and outer["kind"] in PARENTS[inner["kind"]]
        and outer["loop_iter"] == inner["loop_iter"]
        and outer["start_cycles"] <= inner["start_cycles"] <= inner["end_cycles"] <= outer["end_cycles"]
    )


def _is_counted_again(thread, at):
    """Return whether the dispatch behind a drain, and behind those that follow it, counts what they published."""
    again = next((n for n in range(at + 1, len(thread)) if thread[n]["kind"] == "dispatch"), None)
    if again is None:
        return False
    before = max((n for n in range(at) if thread[n]["kind"] == "dispatch"), default=-1)
    drained = sum(p["tasks_processed"] for p in thread[before + 1 : again] if p["kind"] == "drain_publish")
    return thread[again]["tasks_processed"] >= drained


def _graph_relations(case, rule, by_core):
    ran = {row[1] for row in case.rows}
    for name, submits, begin, end in (
        ("aicpu", case.submits, "start_cycles", "end_cycles"),
        ("host", case.host_submits, "start_host_ns", "end_host_ns"),
    ):
        rule(
            f"{name} submits are numbered from 0",
            [[s["submit_idx"] for s in submits] == list(range(len(submits)))] if submits else [],
        )
        rule(f"{name} submits follow one another", (a[end] <= b[begin] for a, b in pairwise(submits)))
        rule(
            f"{name} submits name each task once",
            [len({s["task_id"] for s in submits}) == len(submits)] if submits else [],
        )
        by_ring = defaultdict(list)
        for one in submits:
            by_ring[one["task_id"] >> 32].append(one["task_id"] & 0xFFFFFFFF)
        rule(f"{name} ids count up in their ring from 0", (ids == list(range(len(ids))) for ids in by_ring.values()))
    submitted = {s["task_id"] for s in (*case.submits, *case.host_submits)}
    on_host = case.metadata.get("host_capture", {})
    if on_host:
        rule(
            "host_capture counts the submits",
            [on_host["expected_records"] == on_host["recorded_records"] == len(case.host_submits)],
        )
        rule("host_capture counts the pool", [on_host["pool_records"] >= on_host["recorded_records"]])
        rule(
            "host records begin at the origin",
            [
                min(r["start_host_ns"] for r in (*case.host_submits, *case.records["host_device_uploads"]))
                == case.metadata["host_orchestration_origin_ns"]
            ],
        )
    if case.host:
        told = Counter(r["phase"] for line in case.host for r in line["records"])
        rule("pool_records are the records of the pool", [on_host["pool_records"] == sum(told.values())])
        rule(
            "host records have each submit",
            [told["submit_task"] + told["alloc_tensors"] + told["graph_submit"] == len(case.host_submits)],
        )
    if case.deps is None:
        return
    listed = {int(task["task_id"]): task for task in case.deps["tasks"]}
    if submitted:
        rule("listed tasks were submitted", (task in submitted for task in listed))
        rule(
            "what is submitted and not listed creates tensors",
            (
                task in {int(e["pred"]) for e in case.deps["edges"] if e["source"] == "creator"}
                for task in submitted - set(listed)
            ),
        )
        order = {one["task_id"]: place for place, one in enumerate((*case.submits, *case.host_submits))}
        rule(
            "edges run forward in the order of submits",
            (order.get(int(e["pred"]), -1) < order.get(int(e["succ"]), -1) for e in case.deps["edges"]),
        )
    rule(
        "tasks that ran are listed or nodes",
        (task in listed or (task >> 32 == 1 and (task & 0xFFFFFFFF) >> 10 in listed) for task in ran),
    )
    rule("consumers are listed", (int(e["succ"]) in listed for e in case.deps["edges"]))
    count = Counter(row[1] for row in case.rows)
    rule(
        "rows are kernels times blocks",
        (
            count[number] == sum(k >= 0 for k in task["kernel_ids"]) * task["block_num"]
            for number, task in listed.items()
            if count[number]
        ),
    )
    rule(
        "rows run on cores of their kernels",
        (
            any(
                listed[row[1]]["kernel_ids"][slot] >= 0
                for slot in ((0,) if case.metadata["core_types"][row[0]] == "aic" else (1, 2))
            )
            for row in case.rows
            if row[1] in listed
        ),
    )
    types = case.metadata["core_types"]
    clusters = [Counter(), Counter(), Counter()]  # by kernel slot: executions of each task on each cluster
    for row in case.rows:
        if sum(k >= 0 for k in listed.get(row[1], {"kernel_ids": ()})["kernel_ids"]) > 1:
            place = types[: row[0]].count(types[row[0]])
            at = (0, place) if types[row[0]] == "aic" else (1 + place % 2, place // 2)
            clusters[at[0]][row[1], at[1]] += 1
    rule(
        "blocks of several kernels stay on one cluster",
        (
            clusters[slot][task, cluster] == (number if listed[task]["kernel_ids"][slot] >= 0 else 0)
            for (task, cluster), number in clusters[0].items()
            for slot in (1, 2)
        ),
    )
    rule(
        "explicit edges have no argument", ((e["arg"] == -1) == (e["source"] == "explicit") for e in case.deps["edges"])
    )
    tensors = {tensor["tensor_id"] for tensor in case.deps["tensors"]}
    rule("tensors are listed", (e["tensor_id"] in tensors for e in case.deps["edges"] if "tensor_id" in e))
    rule(
        "tensors of arguments are listed",
        (a["tensor_id"] in tensors for t in case.deps["tasks"] for a in t["args"] if "tensor_id" in a),
    )
    rule("no edge of a task to itself", (e["pred"] != e["succ"] for e in case.deps["edges"]))
    rule("edges have flags in one runtime", (("flags" in e) != case.is_host_built for e in case.deps["edges"]))
    prepared = [phase["task_id"] for phase in case.of_kind("graph_prepare")]
    rule("graph_prepare names tasks without kernels", (max(listed[task]["kernel_ids"]) < 0 for task in prepared))
    nodes = Counter((t & 0xFFFFFFFF) >> 10 for t in {row[1] for row in case.rows} - set(listed))
    if case.level >= 3 and case.is_host_built:
        patched = Counter()
        for phase in case.of_kind("graph_prepare"):
            patched[phase["task_id"]] += phase["tasks_processed"]
        rule("nodes were prepared, and no fewer than ran", (patched[task] >= number for task, number in nodes.items()))
        first = {}
        for row in case.rows:
            if row[1] not in listed:
                task = (row[1] & 0xFFFFFFFF) >> 10
                first[task] = min(first.get(task, row[3]), row[3] - row[5])
        rule(
            "graphs are prepared before their nodes are received",
            (
                any(p["task_id"] == t and p["start_cycles"] <= at for p in case.of_kind("graph_prepare"))
                for t, at in first.items()
            ),
        )
    ends = {}
    for row in case.rows:
        ends[row[1]] = max(ends.get(row[1], 0), row[4])
    starts = {}
    for row in case.rows:
        starts[row[1]] = min(starts.get(row[1], row[3]), row[3])
    rule(
        "no task starts before its producers have ended",
        (
            ends[int(e["pred"])] <= starts[int(e["succ"])]
            for e in case.deps["edges"]
            if int(e["pred"]) in ends and int(e["succ"]) in starts
        ),
    )
