"""Resources of scopes next to a capture."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.ascend.helpers import (
    assert_all_bytes_count,
    decode,
    decode_file,
    decode_simulated,
    graph,
    records,
    simulated,
    stats,
)
from effort import some
from lanescope.devices.ascend.formats.scope_stats import RESOURCES, encode_scope_stats, read_scope_stats
from lanescope.devices.ascend.simulate.sidecars import scope_file
from lanescope.errors import InputError

NAME = "scope_stats/scope_stats.jsonl"
RUN = {
    "version": 6,
    "fatal": False,
    "dropped": 0,
    "total": 4,
    "task_window_max": [8, 4],
    "heap_max": [1000, 2000],
    "dep_pool_max": [16, 16],
    "tensormap_max": 100,
}


def boundary(phase, depth=0, site="a.cpp:1", window=(0, 0), heap=(0, 0), pool=(1, 1), entries=0, **more):
    """Return the line of a boundary; positions are (tail, head)."""
    positions = {
        f"{name}_{side}": value
        for name, pair in (("task_window", window), ("heap", heap), ("dep_pool", pool))
        for side, value in zip(("start", "end"), pair, strict=True)
    }
    return {"site": site, "phase": phase, "depth": depth, "ring": depth, **positions, "tensormap": entries, **more}


#: An outer scope, and in it one that takes 3 tasks and 900 bytes, of which 500 are released before its end.
ROWS = (
    boundary("begin"),
    boundary("begin", 1, "a.cpp:7", (1, 2), (100, 200), (1, 1), 5),
    boundary("end", 1, "a.cpp:7", (2, 5), (600, 1100), (1, 4), 9),
    boundary("end", 0, "a.cpp:1", (0, 1), (0, 64)),
)


def capture(*rows, run=RUN, **options):
    """Decode an execution next to a file of these lines (objects or texts)."""
    lines = [line if isinstance(line, str) else json.dumps(line) for line in ([] if run is None else [run]) + [*rows]]
    text = "".join(f"{line}\n" for line in lines)
    with_scopes = {NAME: text.encode()}
    return decode(records([[0, 0, 1, 2000, 3000, 0]], level=1), beside=with_scopes, **options)


def scopes(trace, *columns):
    """Return these columns of the scopes."""
    return [tuple(row[name] for name in columns) for row in trace.details["ascend_scopes"].rows()]


def lossy(trace):
    """Return the stats of a trace but the one that every file of scopes has."""
    return {name: count for name, count in stats(trace).items() if name != "ascend_scopes_untimed"}


def test_each_scope_has_its_resources():
    trace = capture(*ROWS)
    inner = [
        row[1:]
        for row in scopes(trace, "site", "resource", "allocated", "peak_at_most", "used_at_end", "capacity")
        if row[0] == "a.cpp:7"
    ]
    assert inner == [
        ("task_window", 3, 4, 3, 4),
        ("heap", 900, 1000, 500, 2000),
        ("dep_pool", 3, 3, 3, 16),
        ("tensormap", None, None, 9, 100),
    ]
    columns = ("scope", "depth", "ring", "start_tail", "start_head", "end_tail", "end_head")
    assert [row for row in scopes(trace, "resource", *columns) if row[0] in ("heap", "tensormap")] == [
        ("heap", 0, 0, 0, 0, 0, 0, 64),
        ("tensormap", 0, 0, 0, None, 0, None, 0),
        ("heap", 1, 1, 1, 100, 200, 600, 1100),
        ("tensormap", 1, 1, 1, None, 5, None, 9),
    ]
    assert stats(trace) == {"ascend_scopes_untimed": 2}
    assert trace.inputs["role"].tolist() == ["main", "scope_stats"]


def test_every_byte_is_accounted_and_lines_that_are_not_valid_are_lost():
    bad = '{"site": 3}'
    trace = capture(ROWS[0], bad, *ROWS[1:], run={**RUN, "total": 5})
    assert lossy(trace) == {"ascend_invalid_row": 1}
    (account,) = (row for row in trace.accounting.rows() if row["input_id"] == 1 and row["scope"] == "input")
    texts = [json.dumps(line) for line in ({**RUN, "total": 5}, *ROWS)]
    assert (account["decoded"], account["padding"], account["lost"]) == (sum(map(len, texts)), 6, len(bad))


@pytest.mark.parametrize(
    ("rows", "run", "expected"),
    [
        (ROWS, {**RUN, "dropped": 3, "total": 7}, {"ascend_scopes_dropped": 3}),
        (ROWS, {**RUN, "total": 6}, {"ascend_scopes_missing": 2}),
        (ROWS, {**RUN, "dropped": 3, "total": 9}, {"ascend_scopes_dropped": 3, "ascend_scopes_missing": 2}),
        (ROWS, {**RUN, "dropped": 3, "total": 6}, {"ascend_scopes_dropped": 3, "ascend_extra_records": 1}),
        (ROWS, {**RUN, "version": "6"}, {"ascend_scopes_headless": 1, "ascend_invalid_row": 1}),
        (ROWS, {**RUN, "total": 3}, {"ascend_extra_records": 1}),
        (ROWS, {**RUN, "fatal": True}, {"ascend_scopes_fatal": 1}),
        (ROWS, {**RUN, "version": 9}, {"ascend_unknown_value": 1}),
        (ROWS, {**RUN, "more": 1}, {"ascend_unknown_key": 1}),
        ((*ROWS[:3], {**ROWS[3], "a": 1, "b": 2}), RUN, {"ascend_unknown_key": 2}),
        (ROWS[:3], {**RUN, "total": 3}, {"ascend_scope_unmatched": 1}),
        ((ROWS[0], ROWS[2], ROWS[3]), {**RUN, "total": 3}, {"ascend_scope_unmatched": 1}),
        ((ROWS[0], ROWS[1], ROWS[3]), {**RUN, "total": 3}, {"ascend_scope_unmatched": 1}),
        ((ROWS[0], ROWS[1], {**ROWS[2], "task_window_end": 1}, ROWS[3]), RUN, {"ascend_scope_contradicts": 1}),
        ((ROWS[0], ROWS[1], {**ROWS[2], "task_window_end": 7}, ROWS[3]), RUN, {"ascend_scope_contradicts": 1}),
        ((ROWS[0], ROWS[1], {**ROWS[2], "heap_start": 99}, ROWS[3]), RUN, {"ascend_scope_contradicts": 1}),
        ((*ROWS[:3], {**ROWS[3], "tensormap": 101}), RUN, {"ascend_scope_contradicts": 1}),
        (({**ROWS[0], "ring": 1}, *ROWS[1:]), RUN, {"ascend_scope_contradicts": 1, "ascend_scope_unmatched": 2}),
    ],
)
def test_losses_and_contradictions_are_counted(rows, run, expected):
    assert lossy(capture(*rows, run=run)) == expected


def test_positions_of_a_heap_that_wraps_give_no_sums():
    trace = capture(*ROWS[:3], {**ROWS[3], "heap_start": 900, "heap_end": 30}, run={**RUN, "version": 5})
    assert lossy(trace) == {"ascend_unknown_value": 1}
    found = scopes(trace, "resource", "end_head", "allocated", "peak_at_most", "used_at_end")
    assert [row[1:] for row in found if row[0] == "heap"] == [(30, None, None, None), (1100, None, None, None)]


def test_without_the_first_line_capacities_are_unknown():
    trace = capture(*ROWS, run=None)
    assert {row[0] for row in scopes(trace, "capacity")} == {None}
    assert lossy(trace) == {"ascend_scopes_headless": 1}


def test_files_that_are_not_of_scopes():
    assert stats(capture("no", run=None)) == {"ascend_unreadable_sidecar": 1}
    assert capture(*ROWS, scope_stats="none").inputs["role"].tolist() == ["main"]


@given(
    st.binary(max_size=200)
    | st.lists(st.sampled_from([*map(json.dumps, (RUN, *ROWS)), "{", '{"a": 1}']), max_size=9).map(
        lambda lines: "\n".join(lines).encode()
    )
)
@settings(max_examples=some(300))
def test_any_bytes_are_read_or_refused(content):
    try:
        found = read_scope_stats(np.frombuffer(content, np.uint8), "a")
    except InputError:
        return
    assert_all_bytes_count(content, found.tally, NAME)


@given(st.integers(0, 200), st.integers(0, 1 << 32))
@settings(max_examples=some(50))
def test_what_is_written_is_read(tasks, seed):
    random = np.random.default_rng(seed)
    content = scope_file(random.integers(0, 4, tasks), random)
    found = read_scope_stats(np.frombuffer(content, np.uint8), "a")
    assert encode_scope_stats(found) == content
    assert (found.total, found.tally.bad_count, found.unknown_keys) == (len(found), 0, 0)


def test_simulated_scopes_add_up():
    trace = decode_simulated(simulated(3, format_version="v3c", tasks=200, scopes=True))
    assert lossy(trace).keys() <= {"ascend_gate_wait"}
    found = scopes(trace, "resource", "depth", "allocated")
    assert sum(row[2] for row in found if row[0] == "task_window") == 200


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("more", [{}, {"level": 2}, {"format_version": "v4"}, {"host": True}, {"drop_aicore": 3}])
def test_simulated_scopes_agree_with_their_tasks(seed, more):
    options = {"format_version": "v3c", "tasks": 300, "scopes": True, **more}
    trace = decode_simulated(simulated(seed, **options))
    assert not any("scope" in name for name in lossy(trace))


def tasks_of(ids, *, submitted=None, level=4, run=RUN, rows=(), key="chip_swimlane_level", deps=None, **more):
    """Decode executions and submissions of tasks next to scopes."""
    tasks = [[0, task, at + 1, 2000 + 100 * at, 2050 + 100 * at, 0] for at, task in enumerate(ids)]
    sent = [[0, row[2], row[3] - 5, row[4] + 5] for row in tasks]
    submits = [
        {"submit_idx": at, "task_id": task, "start_cycles": 1000 + at, "end_cycles": 1001 + at}
        for at, task in enumerate(submitted or ())
    ]
    more |= {"aicpu_orchestrator_phases": [submits]} if submits else {}
    text = "".join(f"{json.dumps(line)}\n" for line in (run, *rows))
    return decode(records(tasks, sent, level=level, key=key, **more), deps=deps, beside={NAME: text.encode()})


#: Two tasks of the outer scope, three of the inner one.
TAKEN = (
    boundary("begin"),
    boundary("begin", 1, "a.cpp:7"),
    boundary("end", 1, "a.cpp:7", (0, 3)),
    boundary("end", 0, "a.cpp:1", (0, 2)),
)
RINGS = graph({0: (1, -1, -1), 1: (1, -1, -1)}, [(0, 1, ["wait"])])
IDS = (0, 1, 1 << 32, (1 << 32) + 1, (1 << 32) + 2)


@pytest.mark.parametrize(
    ("ids", "submitted", "more", "expected"),
    [
        (IDS, IDS, {}, {}),
        (IDS, None, {"level": 2}, {}),
        (IDS[:2], IDS, {}, {}),  # allocations have no execution
        (IDS[:2], None, {"level": 2}, {}),  # and no record at all
        ((*IDS, 2), (*IDS, 2), {}, {"ascend_scope_tasks_contradict": 1}),
        ((*IDS, (1 << 32) + 3, 2 << 32), None, {"level": 2}, {}),  # the runtime is not known
        ((*IDS, (1 << 32) + 3, 2 << 32), None, {"level": 2, "deps": RINGS}, {"ascend_scope_tasks_contradict": 2}),
        (IDS[:4], IDS[:4], {}, {"ascend_scope_tasks_missing": 1}),
        (IDS[:4], IDS[:4], {"run": {**RUN, "dropped": 1}}, {}),
        (IDS[:4], IDS[:4], {"run": {**RUN, "fatal": True}}, {}),
        ((*IDS, 2), None, {"run": {**RUN, "version": 5}, "level": 2}, {}),
        ((*IDS, 2), None, {"level": 2, "key": "l2_swimlane_level"}, {}),  # tasks of earlier versions: not known
        ((*IDS, 2), None, {"level": 2, "rows": TAKEN[:3], "run": {**RUN, "total": 3}}, {}),
    ],
)
def test_tasks_are_those_that_scopes_took(ids, submitted, more, expected):
    trace = tasks_of(ids, submitted=submitted, **{"rows": TAKEN, **more})
    assert {name: count for name, count in stats(trace).items() if "scope_tasks" in name} == expected


@pytest.mark.parametrize(
    ("second", "count"),
    [((0, 3), 0), ((0, 4), 1), ((1, 3), 0)],  # what was taken and released meanwhile
)
def test_nothing_is_taken_between_two_scopes_of_a_ring(second, count):
    again = (boundary("begin", 1, "a.cpp:9", second), boundary("end", 1, "a.cpp:9", (1, 4)))
    trace = capture(*TAKEN[:3], *again, TAKEN[3], run={**RUN, "total": 6})
    assert lossy(trace).get("ascend_scope_contradicts", 0) == count


def test_scopes_that_share_the_last_ring_take_for_those_around_them():
    rows = [
        boundary("begin"),
        boundary("begin", 1, "b"),
        boundary("begin", 2, "c", (0, 1), ring=1),
        boundary("end", 2, "c", (0, 2), ring=1),
        boundary("begin", 2, "c", (0, 3), ring=1),
        boundary("end", 2, "c", (0, 3), ring=1),
        boundary("end", 1, "b", (0, 4)),
        boundary("end"),
    ]
    assert lossy(capture(*rows, run={**RUN, "total": 8})) == {}


def test_scopes_of_the_producer_have_the_tasks_of_its_captures(corpus):
    # The same program, with records and without.
    folder = Path(corpus, "producers/ascend")
    (scopes_of,) = folder.glob("pmu_vec/*/scope_stats/scope_stats.jsonl")
    for name in ("vec_l1", "vec_l4", "raw_vec"):
        (path,) = folder.glob(f"{name}/*/chip_swimlane_records.json")
        trace = decode_file(path, scope_stats=str(scopes_of))
        assert not any("scope_tasks" in stat for stat in stats(trace)), name
    (other,) = folder.glob("mix_l4/*/chip_swimlane_records.json")
    assert stats(decode_file(other, scope_stats=str(scopes_of)))["ascend_scope_tasks_contradict"] > 0


def test_scopes_of_the_producer(corpus):
    (path,) = Path(corpus, "producers/ascend/pmu_vec").glob("*/scope_stats/scope_stats.jsonl")
    run, *rows = map(json.loads, path.read_text().splitlines())
    trace = capture(*rows, run=run)
    assert stats(trace) == {"ascend_scopes_untimed": 2}
    table = {(row["site"], row["resource"]): row for row in trace.details["ascend_scopes"].rows()}
    assert len(table) == 2 * len(RESOURCES)
    for begin, end in ((rows[0], rows[3]), (rows[1], rows[2])):
        for name in RESOURCES[:-1]:
            row = table[begin["site"], name]
            assert row["allocated"] == end[f"{name}_end"] - begin[f"{name}_end"]
            assert row["peak_at_most"] == end[f"{name}_end"] - begin[f"{name}_start"]
            assert row["used_at_end"] == end[f"{name}_end"] - end[f"{name}_start"]
            assert row["capacity"] == run[f"{name}_max"][begin["ring"]]
        assert table[begin["site"], "tensormap"]["used_at_end"] == end["tensormap"]
