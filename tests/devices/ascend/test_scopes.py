"""Resources of scopes next to a capture."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.ascend.helpers import decode, decode_simulated, records, simulated, stats
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
    return decode(records([[0, 1, 1, 2000, 3000, 0]], level=1), beside=with_scopes, **options)


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
        (ROWS, {**RUN, "total": 6}, {"ascend_scopes_dropped": 2}),
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
    assert lossy(trace) == {}


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
    assert found.good_bytes + found.bad_bytes <= len(content)
    trace = decode(records([[0, 1, 1, 2000, 3000, 0]], level=1), beside={NAME: content})
    (account,) = (row for row in trace.accounting.rows() if row["input_id"] == 1 and row["scope"] == "input")
    assert (account["total"], account["lost"]) == (len(content), found.bad_bytes)


@given(st.integers(0, 200), st.integers(0, 1 << 32))
@settings(max_examples=some(50))
def test_what_is_written_is_read(tasks, seed):
    content = scope_file(tasks, np.random.default_rng(seed))
    found = read_scope_stats(np.frombuffer(content, np.uint8), "a")
    assert encode_scope_stats(found) == content
    assert (found.total, found.bad_lines, found.unknown_keys) == (len(found), 0, 0)


def test_simulated_scopes_add_up():
    trace = decode_simulated(simulated(3, format_version="v3c", tasks=200, scopes=True))
    assert lossy(trace).keys() <= {"ascend_gate_wait"}
    found = scopes(trace, "resource", "depth", "allocated")
    assert sum(row[2] for row in found if row[:2] == ("task_window", 1)) == 200


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
