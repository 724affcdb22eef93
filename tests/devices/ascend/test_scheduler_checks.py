"""What schedulers record against what they did: each contradiction is counted, and sound captures have none."""

import json

import pytest

from devices.ascend.helpers import decode, graph, records, simulated, stats
from lanescope.analysis import check
from lanescope.devices.ascend import schema
from lanescope.devices.ascend.formats.field_map.device_dumps import dump_map

SPECS = {spec.name: spec for spec in schema.STATS}
SMALL = {"tasks": 60, "aic": 3, "aiv": 6, "mix": 0.2, "spmd": 0.2, "format_version": "v3c"}
VERSIONS = ("v1b", "v2", "v3", "v3c", "v4")


def parts(**options):
    """Return the records and the task graph of a simulated capture, as Python objects."""
    files = list(simulated(4, **{**SMALL, **options}).files.values())
    return json.loads(files[0]), json.loads(files[1])


def threads(content):
    return content["aicpu_scheduler_phases"]


def two_of(content, kind):
    """Return two phases of a kind that one thread wrote and that count differently."""
    for rows in threads(content):
        mine = [row for row in rows if row["kind"] == kind and row["tasks_processed"]]
        other = next((row for row in mine if row["tasks_processed"] != mine[0]["tasks_processed"]), None)
        if other is not None:
            return mine[0], other
    raise AssertionError(kind)


def completions_exchanged(content):
    one, other = two_of(content, "complete")
    one["tasks_processed"], other["tasks_processed"] = other["tasks_processed"], one["tasks_processed"]


def dispatches_exchanged(content):
    one, other = two_of(content, "dispatch")
    one["tasks_processed"], other["tasks_processed"] = other["tasks_processed"], one["tasks_processed"]


def core_of_another_thread(content):
    of_core = content["metadata"]["core_to_thread"]
    of_core[0] = (of_core[0] + 1) % 3


def staged_nothing(content):
    next(row for rows in threads(content) for row in rows if row["kind"] == "early_dispatch")["tasks_processed"] = 0


def published_more(content):
    next(row for rows in threads(content) for row in rows if row["kind"] == "drain_publish")["tasks_processed"] += 1


def last_record_missing(content):
    del threads(content)[1][-1]


def record_after_the_last(content):
    rows = threads(content)[1]
    rows[-1]["start_cycles"] -= 40
    rows[-1]["end_cycles"] -= 40
    rows.append({**rows[-1], "start_cycles": rows[-1]["end_cycles"] + 20, "end_cycles": rows[-1]["end_cycles"] + 30})
    rows[-1]["loop_iter"] += 1
    rows[-1]["kind"] = "release"


def same_iteration(content):
    rows = threads(content)[0]
    mine = [row for row in rows if row["kind"] == "complete"]
    at = rows.index(mine[1])
    # All between both would be in order.
    for row in rows[rows.index(mine[0]) : at + 1]:
        row["loop_iter"] = mine[1]["loop_iter"]


def too_many_iterations(content):
    threads(content)[2][-1]["loop_iter"] = 1 << 31


LIES = {
    completions_exchanged: "ascend_count_contradicts",
    dispatches_exchanged: "ascend_count_contradicts",
    core_of_another_thread: "ascend_count_contradicts",
    staged_nothing: "ascend_count_contradicts",
    published_more: "ascend_count_contradicts",
    last_record_missing: "ascend_missing_flush",
    record_after_the_last: "ascend_missing_flush",
    same_iteration: "ascend_loop_contradicts",
    too_many_iterations: "ascend_loop_contradicts",
}


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_a_contradiction_is_counted_and_found(lie):
    content, deps = parts()
    name = LIES[lie]
    assert name not in stats(decode(content, deps=deps))
    lie(content)
    trace = decode(content, deps=deps)
    assert stats(trace)[name] >= 1
    assert name in {finding.stat for finding in check.run(trace, select=[SPECS[name].rule])}


@pytest.mark.parametrize(
    "options",
    [
        *({"format_version": version, **more} for version in VERSIONS for more in ({}, {"level": 2})),
        *({"format_version": "v3c", **more} for more in ({"host": True}, {"speculative": 0.0})),
    ],
    ids=str,
)
def test_sound_captures_contradict_nothing(options):
    content, deps = parts(**options)
    names = {*LIES.values(), "ascend_dispatch_order", "ascend_receive_order"}
    assert not names & set(stats(decode(content, deps=deps)))


def test_counts_prove_nothing_where_records_are_missing():
    content, deps = parts()
    del content["aicore_tasks"][5]
    completions_exchanged(content)
    assert "ascend_count_contradicts" not in stats(decode(content, deps=deps))


# --- markers ------------------------------------------------------------------------------------------------------


def waiting_marker(content, deps):
    """Return the marker of a task without a kernel that waits for another."""
    waits = {edge["succ"] for edge in deps["edges"]}
    rows = [row for thread in threads(content) for row in thread if row["kind"] == "dummy_task"]
    return next(row for row in rows if str(row["task_id"]) in waits)


def marker_missing(content, deps):
    marker = waiting_marker(content, deps)
    bare = [int(task["task_id"]) for task in deps["tasks"] if max(task["kernel_ids"]) < 0]
    marker["task_id"] = next(task for task in bare if task != marker["task_id"])


def marker_early(content, deps):
    marker = waiting_marker(content, deps)
    marker["start_cycles"] = marker["end_cycles"] = min(row[3] for row in content["aicpu_tasks"]) - 1


def marker_wide(content, deps):
    waiting_marker(content, deps)["end_cycles"] += 1


@pytest.mark.parametrize(
    ("lie", "name"),
    [
        (marker_missing, "ascend_marker_missing"),
        (marker_early, "ascend_dispatch_order"),
        (marker_wide, "ascend_unknown_value"),
    ],
)
def test_a_contradiction_of_a_marker_is_found(lie, name):
    content, deps = parts(dummy=0.2)
    assert name not in stats(decode(content, deps=deps))
    lie(content, deps)
    assert stats(decode(content, deps=deps))[name] >= 1


# --- executions ---------------------------------------------------------------------------------------------------


def dispatched(at, *, kind="dispatch", end=300):
    """Return a capture of two tasks on two cores, the second sent at some cycle; the first is seen to end at 310."""
    phases = [
        {"kind": "dispatch", "start_cycles": 80, "end_cycles": 100, "loop_iter": 1, "tasks_processed": 1},
        {"kind": kind, "start_cycles": at - 5, "end_cycles": at + 2, "loop_iter": 2, "tasks_processed": 1},
    ]
    content = records(
        [[0, 1, 1, 110, end, 10], [1, 2, 1, 330, 400, 5]], [[0, 1, 90, 310], [1, 1, at, 410]], level=3,
        aicpu_scheduler_phases=[phases],
    )  # fmt: skip
    content["metadata"]["core_to_thread"] = [0, 0]
    return content


@pytest.mark.parametrize(
    ("at", "kind", "count"),
    [(320, "dispatch", 0), (310, "dispatch", 0), (309, "dispatch", 1), (309, "early_dispatch", 0), (309, "drain", 0)],
)
def test_a_task_is_sent_when_its_producer_was_seen_to_end(at, kind, count):
    deps = graph({1: (0, -1, -1), 2: (0, -1, -1)}, [(1, 2)])
    assert stats(decode(dispatched(at, kind=kind), deps=deps)).get("ascend_dispatch_order", 0) == count


def test_what_began_before_its_producer_ended_is_one_finding():
    deps = graph({1: (0, -1, -1), 2: (0, -1, -1)}, [(1, 2)])
    trace = decode(dispatched(309, end=335), deps=deps)
    assert "ascend_dispatch_order" not in stats(trace)
    assert "LS201" in {finding.code for finding in check.run(trace)}


@pytest.mark.parametrize(("delta", "count"), [(10, 0), (30, 0), (31, 1)])
def test_a_core_receives_when_it_has_ended(delta, count):
    """The first ends at 200, the second starts at 230."""
    content = records([[0, 1, 1, 110, 200, 10], [0, 2, 2, 230, 300, delta]], [[0, 1, 90, 210], [0, 2, 95, 310]])
    assert stats(decode(content)).get("ascend_receive_order", 0) == count


# --- the other files, and dumps -----------------------------------------------------------------------------------


def host_parts():
    """Return the records, the task graph and the host's phases of a run whose graph the host builds."""
    files = list(simulated(4, **{**SMALL, "host": True}).files.items())
    by_name = {name: json.loads(content) for name, content in files if name.endswith("l") or content[:1] == b"{"}
    return json.loads(files[0][1]), by_name["deps.json"], by_name["host_phase_records.jsonl"]


def another_kind(content, host):
    one, other = (content["host_device_uploads"][at] for at in (0, 1))
    one["phase"], other["phase"] = other["phase"], one["phase"]


def test_copies_have_one_kind_in_both_files():
    content, deps, host = host_parts()
    beside, name = {"host_phase_records.jsonl": host}, "ascend_host_contradicts"
    assert name not in stats(decode(content, deps=deps, beside=beside))
    another_kind(content, host)
    assert stats(decode(content, deps=deps, beside=beside))[name] == 2
    assert name not in stats(decode(content, deps=deps))


def listed_out_of_turn(deps):
    one, other = deps["tasks"][5:7]
    one["task_id"], other["task_id"] = other["task_id"], one["task_id"]


def barrier_of_blocks(deps):
    next(task for task in deps["tasks"] if max(task["kernel_ids"]) < 0)["block_num"] = 2


def unknown_function(deps):
    kernels = next(task for task in deps["tasks"] if max(task["kernel_ids"]) >= 0)["kernel_ids"]
    kernels[next(slot for slot, kernel in enumerate(kernels) if kernel >= 0)] = 1024


@pytest.mark.parametrize(
    ("lie", "name"),
    [
        (listed_out_of_turn, "ascend_task_order"),
        (barrier_of_blocks, "ascend_unknown_value"),
        (unknown_function, "ascend_unknown_value"),
    ],
)
def test_a_task_graph_that_no_producer_writes(lie, name):
    content, deps = parts()
    assert name not in stats(decode(content, deps=deps))
    lie(deps)
    assert stats(decode(content, deps=deps))[name] == 1


def test_an_id_of_no_task_is_none_of_a_space_before_there_were_spaces():
    content, deps = parts()
    content["aicore_tasks"][4][1] = (1 << 63) - 1
    assert stats(decode(content, deps=deps))["ascend_task_unlisted"] == 1


def metrics_of(content):
    return content["scheduler_records"]["streams"][1]["metrics"]


def test_control_cpus_write_metrics_for_each_record_in_order():
    content, deps = parts(format_version="v4")
    name = "ascend_metric_unmatched"
    assert name not in stats(decode(content, deps=deps))
    one, other = metrics_of(content)[3:5]
    one["record_index"], other["record_index"] = other["record_index"], one["record_index"]
    assert stats(decode(content, deps=deps))[name] == 1
    del metrics_of(content)[4]
    assert stats(decode(content, deps=deps))[name] == 1
    content["scheduler_records"]["streams"][1]["producer"] = "aicore"
    assert name not in stats(decode(content, deps=deps))


def test_slots_of_a_core_are_filled_one_after_the_other(tmp_path):
    options = {"tasks": 40, "aic": 1, "aiv": 2, "level": 2, "format_version": "v3c", "dump": "a2a3"}
    name, content = next(iter(simulated(4, **options).files.items()))
    sites = dump_map(name, content)
    (rows,) = (records for records in sites.records if records.record == "ascend.aicore_task")
    first, second = ((rows.begin[at], rows.end[at]) for at in (2, 3))
    assert rows.lane[2] == rows.lane[3]
    exchanged = content[: first[0]] + content[slice(*second)] + content[slice(*first)] + content[second[1] :]
    assert "ascend_slot_order" not in stats(decode(content, name=name))
    assert stats(decode(exchanged, name=name))["ascend_slot_order"] == 1


def test_the_last_counts_of_pops_may_come_in_the_last_iteration():
    phases = [
        {"kind": kind, "start_cycles": start, "end_cycles": end, "loop_iter": 3, "tasks_processed": count}
        for kind, start, end, count in (
            ("dispatch", 1980, 1995, 1),
            ("complete", 3005, 3020, 1),
            ("dispatch", 3030, 3030, 0),
        )
    ]
    more = {"metadata": {"core_to_thread": [0, 0]}, "aicpu_scheduler_phases": [phases]}
    rows = [[0, 1, 1, 2000, 3000, 0]], [[0, 1, 1990, 3010]]
    assert "ascend_loop_contradicts" not in stats(decode(records(*rows, level=3, **more)))
    # Two passes of an iteration have a duration, or dispatch something.
    phases[2] |= {"end_cycles": 3031}
    assert stats(decode(records(*rows, level=3, **more)))["ascend_loop_contradicts"] == 1
