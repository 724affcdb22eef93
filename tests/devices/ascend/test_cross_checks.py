"""What two parts of a capture say about one thing: each contradiction is counted, and sound captures have none."""

import json

import pytest

from devices.ascend.helpers import decode, decode_file, dependencies, edges, graph, records, simulated, stats
from lanescope.analysis import check
from lanescope.devices.ascend import schema

SPECS = {spec.name: spec for spec in schema.STATS}
SMALL = {"tasks": 60, "aic": 3, "aiv": 6, "mix": 0.2, "spmd": 0.2}


def parts(**options):
    """Return the records and the task graph of a simulated capture, as Python objects."""
    files = list(simulated(4, **{**SMALL, **options}).files.values())
    return json.loads(files[0]), json.loads(files[1])


def listed(deps, *, has_kernel=True):
    return next(task for task in deps["tasks"] if (max(task["kernel_ids"]) >= 0) == has_kernel)


def phase(content, kind, key="tasks_processed", at=0):
    rows = [row for thread in content["aicpu_scheduler_phases"] for row in thread if row["kind"] == kind and key in row]
    return rows[at]


def submits(content):
    return content["aicpu_orchestrator_phases"][0]


def more_blocks(content, deps):
    listed(deps)["block_num"] += 1


def another_slot(content, deps):
    kernels = listed(deps)["kernel_ids"]
    kernels[kernels.index(-1)] = 3


def core_missing(content, deps):
    core = max(row[0] for row in content["aicore_tasks"])
    for name in ("aicore_tasks", "aicpu_tasks"):
        content[name] = [row for row in content[name] if row[0] != core]


def listed_twice(content, deps):
    deps["tasks"].append(listed(deps))


def not_listed(content, deps):
    deps["tasks"].remove(listed(deps))


def another_marker(content, deps):
    phase(content, "dummy_task", "task_id")["task_id"] = int(listed(deps)["task_id"])


def no_submit(content, deps):
    del submits(content)[7]


def submit_number(content, deps):
    submits(content)[5]["submit_idx"] = 4


def submits_exchanged(content, deps):
    one, other = submits(content)[5:7]
    one["task_id"], other["task_id"] = other["task_id"], one["task_id"]


def submits_overlap(content, deps):
    submits(content)[6]["start_cycles"] = submits(content)[5]["start_cycles"]


def phases_overlap(content, deps):
    rows = [row for row in content["aicpu_scheduler_phases"][0] if row["kind"] == "complete"]
    rows[-1]["start_cycles"] = rows[0]["start_cycles"]


def iteration_falls(content, deps):
    content["aicpu_scheduler_phases"][0][-2]["loop_iter"] = 0


def counts_one_more(content, deps):
    phase(content, "complete")["tasks_processed"] += 1


def level_below(content, deps):
    content["chip_swimlane_level"] = 3


def unknown_word(content, deps):
    deps["edges"][3]["flags"] = ["wiat"]


def negative_depth(content, deps):
    phase(content, "complete")["shared_at_end"][1] = -1


def no_dispatch_stamp(content, deps):
    content["aicpu_tasks"][3][2] = 0


def unknown_type(content, deps):
    content["metadata"]["core_types"][0] = "xic"


def impossible_thread(content, deps):
    content["metadata"]["core_to_thread"][1] = 1 << 63


LIES = {
    more_blocks: "ascend_blocks_contradict",
    another_slot: "ascend_blocks_contradict",
    core_missing: "ascend_blocks_contradict",
    listed_twice: "ascend_task_duplicate",
    not_listed: "ascend_task_unlisted",
    another_marker: "ascend_marker_contradicts",
    no_submit: "ascend_submit_unmatched",
    submit_number: "ascend_submit_gap",
    submits_exchanged: "ascend_submit_sequence",
    submits_overlap: "ascend_overlap",
    phases_overlap: "ascend_overlap",
    iteration_falls: "ascend_loop_order",
    counts_one_more: "ascend_count_contradicts",
    level_below: "ascend_level_contradicts",
    unknown_word: "ascend_unknown_value",
    negative_depth: "ascend_unknown_value",
    no_dispatch_stamp: "ascend_missing_timestamp",
    unknown_type: "ascend_cores_contradict",
    impossible_thread: "ascend_cores_contradict",
}


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_a_contradiction_is_counted_and_found(lie):
    content, deps = parts(format_version="v3c")
    lie(content, deps)
    trace, name = decode(content, deps=deps), LIES[lie]
    assert stats(trace)[name] >= 1
    assert name in {finding.stat for finding in check.run(trace, select=[SPECS[name].rule])}


@pytest.mark.parametrize("version", ["v2", "v3", "v3c", "v4"])
def test_a_sound_capture_contradicts_nothing(version):
    content, deps = parts(format_version=version)
    assert {name for name in stats(decode(content, deps=deps)) if name not in ("unverified_encoding",)} <= {
        "ascend_gate_wait",
        "ascend_edge_no_kernel",
    }


def test_lost_records_are_not_counted_a_second_time():
    content, deps = parts(format_version="v3c")
    del content["aicore_tasks"][5]
    found = stats(decode(content, deps=deps))
    assert found["ascend_aicpu_unmatched"] == 1
    assert not {"ascend_blocks_contradict", "ascend_count_contradicts", "ascend_submit_gap"} & set(found)


def test_what_a_drain_published_is_counted_by_the_next_dispatch():
    content, deps = parts(format_version="v3c", spmd=0.3, speculative=0.0)
    threads = content["aicpu_scheduler_phases"]
    thread, at = next((rows, n) for rows in threads for n, row in enumerate(rows) if row["kind"] == "drain_publish")
    again = next(row for row in thread[at:] if row["kind"] == "dispatch")
    assert again["tasks_processed"] >= thread[at]["tasks_processed"]
    assert "ascend_count_contradicts" not in stats(decode(content, deps=deps))
    again["tasks_processed"] -= thread[at]["tasks_processed"]
    # The sum of the capture, and the phase.
    assert stats(decode(content, deps=deps))["ascend_count_contradicts"] == 2


def host_word(metadata):
    metadata["orchestrator_source"] = "hots"


def clock_unit(metadata):
    metadata["clock_anchors"]["raw_device_timestamp_unit"] = "syscnt"


def position(metadata):
    metadata["clock_anchors"]["samples"][2]["position"] = "post_device"


def before(metadata):
    metadata["clock_anchors"]["samples"][0]["host_before_ns"] -= 1


def cycles(metadata):
    metadata["clock_anchors"]["samples"][4]["device_cycles"] += 1


def origin(metadata):
    metadata["host_orchestration_origin_ns"] += 1


def recorded(metadata):
    metadata["host_capture"]["recorded_records"] -= 1


@pytest.mark.parametrize(
    ("lie", "name"),
    [
        (host_word, "ascend_unknown_value"),
        (clock_unit, "ascend_unknown_value"),
        (position, "ascend_clock_contradicts"),
        (before, "ascend_clock_contradicts"),
        (cycles, "ascend_clock_contradicts"),
        (origin, "ascend_clock_contradicts"),
        (recorded, "ascend_count_contradicts"),
    ],
)
def test_a_contradiction_of_the_host_is_found(lie, name):
    content, deps = parts(format_version="v3c", host=True)
    assert name not in stats(decode(content, deps=deps))
    lie(content["metadata"])
    trace = decode(content, deps=deps)
    assert stats(trace)[name] == 1
    assert name in {finding.stat for finding in check.run(trace, select=[SPECS[name].rule])}


@pytest.mark.parametrize(
    ("key", "value", "name"),
    [
        ("duration_us", 1e6, "ascend_duration_contradicts"),
        ("func_id", 3, "ascend_unknown_value"),
        ("core_type", "xiv", "ascend_cores_contradict"),
    ],
)
def test_rows_that_were_joined_say_the_same_twice(key, value, name):
    content, deps = parts(format_version="v1b")
    assert name not in stats(decode(content, deps=deps))
    content["tasks"][4][key] = value
    assert stats(decode(content, deps=deps))[name] == 1


@pytest.mark.parametrize(
    "change",
    [{"platform": "aa3"}, {"producer": "acpu"}, {"worker_id": -1}, {"capture": {"committed": 9, "dropped": -1}}],
)
def test_a_stream_that_no_producer_writes_is_counted(change):
    content, deps = parts(format_version="v4")
    assert "ascend_unknown_value" not in stats(decode(content, deps=deps))
    content["scheduler_records"]["streams"][0].update(change)
    assert stats(decode(content, deps=deps))["ascend_unknown_value"] >= 1


@pytest.mark.parametrize(
    ("source", "submitted", "name"),
    [
        ("creator", None, "ascend_edge_no_kernel"),
        ("creator", True, None),  # drawn at its submission, and the edge with it
        ("creator", False, "ascend_edge_unmatched"),
        ("tensormap", None, "ascend_edge_unmatched"),
        (None, None, "ascend_edge_unmatched"),
    ],
)
def test_an_allocation_is_not_listed_and_is_no_loss(source, submitted, name):
    deps = graph({1: (0, -1, -1)}, [(7, 1)])
    deps["edges"][0].update({} if source is None else {"source": source})
    ids = {None: [], True: [7, 1], False: [1]}[submitted]
    submit = [
        {"submit_idx": n, "task_id": task, "start_cycles": 20 + 9 * n, "end_cycles": 25 + 9 * n}
        for n, task in enumerate(ids)
    ]
    more = {"aicpu_orchestrator_phases": [submit]} if submit else {}
    content = records([[0, 1, 1, 110, 200, 10]], [[0, 1, 90, 210]], level=4 if submit else 2, **more)
    assert {key for key in stats(decode(content, deps=deps)) if key.startswith("ascend_edge")} == ({name} - {None})


def test_an_allocation_waits_for_nothing():
    """Task 2 is allocated before task 1, which the graph lists as its producer, has ended: the orchestrator does it."""
    deps = graph({1: (0, -1, -1), 3: (0, -1, -1)}, [(1, 2), (2, 3)])
    deps["edges"][0]["source"], deps["edges"][1]["source"] = "tensormap", "creator"
    submits = [
        {"submit_idx": n, "task_id": task, "start_cycles": 20 + 9 * n, "end_cycles": 25 + 9 * n}
        for n, task in enumerate([1, 2, 3])
    ]
    content = records(
        [[0, 1, 1, 110, 200, 10], [0, 3, 2, 310, 400, 10]],
        [[0, 1, 90, 210], [0, 2, 290, 410]],
        level=4,
        aicpu_orchestrator_phases=[submits],
    )
    trace = decode(content, deps=deps)
    assert edges(trace) == [(2, 3, (34 - 20) * 20, (300 - 20) * 20)]
    assert stats(trace) == {"ascend_edge_no_kernel": 1}
    assert not check.run(trace, select=["LS201"])


def test_edges_into_allocations_of_a_capture_are_not_drawn(corpus):
    folder = corpus / "repro" / "ascend" / "alloc_false_violation"
    trace = decode_file(folder / "chip_swimlane_records.json")
    kinds = {row["task_id"]: row["kind"] for row in trace.details["ascend_graph_tasks"].rows()}
    listed = {
        (int(edge["pred"]), int(edge["succ"])) for edge in json.loads((folder / "deps.json").read_bytes())["edges"]
    }
    into = sum(kinds[succ] == "alloc" for _, succ in listed)
    assert stats(trace)["ascend_edge_no_kernel"] == into == 19
    assert len(dependencies(trace)) == len(listed) - into
    assert not check.run(trace, select=["LS201"])


def test_a_ring_is_no_graph():
    """Task 0 has no kernel, and the number of the task on ring 1 is one that node 0 of a graph 0 would have."""
    deps = graph({0: (-1, -1, -1), 1: (0, -1, -1)}, [(0, 1, ["wait"])])
    assert "ascend_task_unlisted" not in stats(decode(records([[0, 1, 1, 110, 200, 10]], [[0, 1, 90, 210]]), deps=deps))
    content = records([[0, 1, 1, 110, 200, 10], [0, 1 << 32, 2, 310, 400, 10]], [[0, 1, 90, 210], [0, 2, 290, 410]])
    assert stats(decode(content, deps=deps))["ascend_task_unlisted"] == 1


@pytest.mark.parametrize(("row", "column", "shift"), [(9, 4, 1 << 34), (9, 3, -(1 << 34))], ids=["end", "start"])
def test_one_wrong_stamp_makes_no_core_idle(row, column, shift):
    content, deps = parts(format_version="v3c")
    parted = ("track_id", "busy_ticks", "dependency_ticks", "submit_ticks", "dispatch_ticks", "unknown_ticks")
    names = (*parted, "propagation_ticks", "setup_ticks", "trailing_idle_ticks", "window_ticks")
    before = [[row[name] for name in names] for row in decode(content, deps=deps).details["ascend_cores"].rows()]
    lying = content["aicore_tasks"][row][0]
    content["aicore_tasks"][row][column] += shift
    trace = decode(content, deps=deps)
    assert stats(trace)["ascend_timestamp_order"] == 1
    rows = list(trace.details["ascend_cores"].rows())
    for old, new in zip(before, rows, strict=True):
        assert sum(new[name] for name in names[1:-1]) == new["window_ticks"]
        if new["core"] != lying:
            assert abs(new["window_ticks"] - old[-1]) <= old[-1] // 20
            assert abs(new["busy_ticks"] - old[1]) <= old[1] // 20


def test_phases_that_repeat_another_are_counted():
    content, deps = parts(format_version="v3c")
    thread = content["aicpu_scheduler_phases"][0]
    twice = [row for row in thread if row["end_cycles"] > row["start_cycles"]][:3]
    thread.extend(twice)
    trace = decode(content, deps=deps)
    recorded = sum(map(len, content["aicpu_scheduler_phases"]))
    assert stats(trace)["ascend_row_duplicate"] == 3
    assert len(trace.details["ascend_phases"]) + 3 == recorded
    assert len(trace.records["ascend.aicpu_scheduler_phases"]) == recorded
    for row in trace.accounting.rows():
        assert row["total"] == row["decoded"] + row["padding"] + row["lost"]
