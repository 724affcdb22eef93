"""What schedulers record against what they did: each contradiction is counted, and sound captures have none."""

import json

import pytest

from devices.ascend.helpers import decode, graph, records, simulated, stats
from lanescope.analysis import check
from lanescope.devices.ascend import schema

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
