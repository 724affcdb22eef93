"""The join of the two streams, against loops over dicts."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.ascend.helpers import decode, gaps, interpret, lane, records, stats, tasks
from effort import some
from lanescope.common.key_join import match_unique
from lanescope.common.missing_records import sequence_gaps
from lanescope.devices.ascend.formats.keyed_rows import keyed
from lanescope.devices.ascend.formats.layout import AICORE, AICPU, REG_TASK_IDS
from lanescope.devices.ascend.formats.records import section
from lanescope.trace import Flag

SMALL = st.integers(0, 3)
AICORE_ROWS = st.lists(st.tuples(SMALL, SMALL, SMALL, st.integers(1, 2), st.integers(5, 6)), max_size=14)
AICPU_ROWS = st.lists(st.tuples(SMALL, SMALL, st.integers(1, 2), st.integers(5, 6)), max_size=14)


def columns(layout, rows):
    names = [cell.name for cell in layout.cells if cell.is_required]
    return section(layout, {name: [row[i] for row in rows] for i, name in enumerate(names)})


def by_hand(aicore, aicpu):
    """Return per distinct AICore row its partner's stamps, and the AICPU rows without execution."""
    cores = list(dict.fromkeys(aicore))
    cpus = list(dict.fromkeys(aicpu))
    core_keys = [(row[0], row[2]) for row in cores]
    cpu_keys = [row[:2] for row in cpus]
    joined = []
    for key in core_keys:
        found = [row for row in cpus if row[:2] == key]
        joined.append(found[0][2:] if len(found) == 1 and core_keys.count(key) == 1 else None)
    lost = [row for row, key in zip(cpus, cpu_keys, strict=True) if key not in core_keys and cpu_keys.count(key) == 1]
    ambiguous = {key for key in core_keys if core_keys.count(key) > 1}
    return cores, joined, lost, ambiguous


@given(AICORE_ROWS, AICPU_ROWS)
def test_join_by_hand(aicore, aicpu):
    cores, joined, lost, ambiguous = by_hand(aicore, aicpu)
    left, right = keyed(columns(AICORE, aicore)), keyed(columns(AICPU, aicpu))
    assert left.section["task_token_raw"].tolist() == [row[1] for row in cores]
    assert left.section["start_cycles"].tolist() == [row[3] for row in cores]
    assert left.duplicates == len(aicore) - len(cores)
    assert left.ambiguous == len(ambiguous)
    match = match_unique(left.keys, right.keys)
    partner, orphans = match.partner, match.right_only
    stamps = zip(right.section["dispatch_cycles"].tolist(), right.section["finish_cycles"].tolist(), strict=True)
    stamps = list(stamps)
    assert [None if at < 0 else stamps[at] for at in partner.tolist()] == joined
    required = [cell.name for cell in AICPU.cells if cell.is_required]
    rows = zip(*(right.section[name].tolist() for name in required), strict=True)
    rows = list(rows)
    assert [rows[at] for at in orphans.tolist()] == lost


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40)), unique=True, max_size=30),
    st.integers(0, 40),
    st.randoms(use_true_random=False),
)
def test_holes_by_hand(dispatches, wrap_at, random):
    """Counters that start anywhere near the wrap, rows in any order."""
    random.shuffle(dispatches)
    core = np.array([c for c, _ in dispatches], np.int64)
    ordinal = np.array([n for _, n in dispatches], np.int64)
    counter = (ordinal + REG_TASK_IDS - wrap_at) % REG_TASK_IDS
    found = sequence_gaps(counter, period=REG_TASK_IDS, group=core, order=ordinal * 1000 + 1)
    expected = {}
    for lane_ in range(3):
        mine = sorted(n for c, n in dispatches if c == lane_)
        for before, after in pairwise(mine):
            if after - before > 1:
                expected[lane_, before, after] = after - before - 1
    places = zip(
        core[found.before].tolist(), ordinal[found.before].tolist(), ordinal[found.after].tolist(), strict=True
    )
    assert dict(zip(places, found.count.tolist(), strict=True)) == expected


def row(core, task, counter, start, end, delta=2):
    return [core, task, counter, start, end, delta]


def test_a_row_that_stands_twice_counts_once():
    trace = decode(records([row(0, 5, 1, 100, 200), row(0, 5, 1, 100, 200)], [[0, 1, 90, 210], [0, 1, 90, 210]]))
    assert tasks(trace, "dispatch_ticks") == [("task(t5)", 90)]
    assert stats(trace) == {"ascend_row_duplicate": 2}


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(1, 4), st.integers(1, 4), st.integers(0, 1), st.booleans()), max_size=9
    )
)
@settings(max_examples=some(100))
def test_phases_that_stand_twice_by_hand(drawn):
    """Equal in every cell, of one thread, and of some length: the first counts."""
    lists, expected, repeated = [[], []], [], 0
    for thread, begin, end, number, has_pops in sorted(drawn, key=lambda one: one[0]):
        phase = {
            "kind": "dispatch",
            "start_cycles": begin,
            "end_cycles": end,
            "loop_iter": 1,
            "tasks_processed": number,
        }
        phase |= {"pop_hit": 1, "pop_miss": 0} if has_pops else {}
        if end > begin and phase in lists[thread]:
            repeated += 1
        else:
            expected.append((thread, begin, end, number, has_pops))
        lists[thread].append(phase)
    content = records([row(0, 5, 1, 100, 200)], level=3, aicpu_scheduler_phases=lists)
    phases = interpret(content).phases
    cells = [phases[name].tolist() for name in ("start_cycles", "end_cycles", "tasks_processed")]
    assert list(zip(phases.group.tolist(), *cells, phases.has("pop_hit").tolist(), strict=True)) == expected
    assert stats(decode(content)).get("ascend_row_duplicate", 0) == repeated


def test_rows_that_contradict_one_another_stay_and_join_nothing():
    trace = decode(
        records(
            [row(0, 5, 1, 100, 200), row(0, 6, 1, 300, 400), row(0, 7, 2, 500, 600)],
            [[0, 1, 90, 210], [0, 2, 490, 610]],
        )
    )
    assert tasks(trace, "dispatch_ticks", "receive_ticks", "finish_ticks", "propagation_ns", "tail_ns") == [
        ("task(t5)", None, 98, None, None, None),
        ("task(t6)", None, 298, None, None, None),
        ("task(t7)", 490, 498, 610, 160, 200),
    ]
    # The dispatch belongs to one of the two: it is not lost, and neither is theirs.
    assert stats(trace) == {"ascend_key_duplicate": 1}


def test_what_the_device_wrote_counts_each_key_once():
    rows = [row(0, 5, 1, 100, 200), row(0, 6, 1, 300, 400), row(0, 7, 3, 500, 600), row(0, 7, 3, 500, 600)]
    trace = decode(records(rows, level=1))
    (producer,) = [r for r in trace.accounting.rows() if r["scope"] == "producer"]
    assert (producer["total"], producer["decoded"], producer["lost"]) == (3, 2, 1)


def test_a_task_may_go_to_one_core_more_than_once():
    trace = decode(records([row(0, 5, 1, 100, 200), row(0, 5, 2, 300, 400)], [[0, 1, 90, 210], [0, 2, 190, 410]]))
    assert tasks(trace, "dispatch_ticks", "block") == [("task_spmd(t5)", 90, 0), ("task_spmd(t5)", 190, 1)]


def test_an_execution_without_its_dispatch():
    content = records([row(0, 5, 1, 100, 200), row(1, 6, 1, 300, 400)], [[0, 1, 90, 210]])
    trace = decode(content)
    assert tasks(trace, "dispatch_ts", "finish_ts", "propagation_ns", "local_setup_ns")[1] == (
        "task(t6)", None, None, None, 40,
    )  # fmt: skip
    assert stats(trace) == {"ascend_aicore_unmatched": 1}
    (stat,) = trace.stats.rows()
    assert trace.tracks["name"][stat["track_id"]] == "AIV_1"
    assert stat["first_offset"] == json.dumps(content).index("[1, 6, 1, 300")
    producer = [r for r in trace.accounting.rows() if r["scope"] == "producer"]
    assert [(r["unit"], r["total"], r["decoded"], r["lost"]) for r in producer] == [("aicpu_tasks record", 2, 1, 1)]


def test_a_dispatch_without_its_execution_leaves_a_gap():
    trace = decode(
        records(
            [row(0, 5, 1, 100, 200), row(0, 7, 3, 600, 700, delta=20)],
            [[0, 1, 90, 210], [0, 2, 150, 560], [0, 3, 500, 710]],
        )
    )
    # Between dispatch and finish, but not before the execution before it was over: 200 to 560, base is 90.
    assert gaps(trace) == [("AIC_0", (200 - 90) * 20, (560 - 200) * 20, 1)]
    assert stats(trace) == {"ascend_aicpu_unmatched": 1}
    flags = dict(zip(trace.slices["ts_ticks"].tolist(), trace.slices["flags"].tolist(), strict=True))
    assert flags[600] & Flag.AFTER_GAP
    assert not flags[100] & Flag.AFTER_GAP
    producer = [r for r in trace.accounting.rows() if r["scope"] == "producer"]
    assert [(r["unit"], r["total"], r["decoded"], r["lost"]) for r in producer] == [("aicore_tasks record", 3, 2, 1)]


def test_a_core_whose_executions_are_all_lost_has_a_lane():
    trace = decode(records([row(0, 5, 1, 100, 200)], [[0, 1, 90, 210], [1, 1, 300, 400]]))
    assert lane(trace, "AIV_1") == []
    assert gaps(trace) == [("AIV_1", (300 - 90) * 20, 100 * 20, 1)]


@pytest.mark.parametrize("level", [1, 2])
def test_holes_of_a_counter(level):
    aicpu = [] if level == 1 else [[0, 1, 90, 210], [0, 5, 590, 710]]
    trace = decode(records([row(0, 5, 1, 100, 200), row(0, 7, 5, 600, 700, delta=20)], aicpu, level=level))
    base = 98 if level == 1 else 90
    assert stats(trace) == {"ascend_missing_dispatch": 3}
    assert gaps(trace) == [("AIC_0", (200 - base) * 20, (580 - 200) * 20, 3)]


def test_holes_across_the_end_of_the_counter():
    last = REG_TASK_IDS - 1
    rows = [row(0, 5, last, 100, 200), row(0, 6, 0, 300, 400), row(0, 7, 2, 500, 600)]
    trace = decode(records(rows, level=1))
    assert stats(trace) == {"ascend_missing_dispatch": 1}
    assert gaps(trace) == [("AIC_0", (400 - 98) * 20, (498 - 400) * 20, 1)]


def test_a_counter_may_start_anywhere():
    assert stats(decode(records([row(0, 5, 900, 100, 200), row(1, 6, 17, 300, 400)], level=1))) == {}


def test_an_empty_aicpu_stream_is_a_loss_from_level_2_on():
    told = interpret(records([row(0, 5, 1, 100, 200)], level=2))
    assert len(told.unmatched) == 1
    assert len(interpret(records([row(0, 5, 1, 100, 200)], level=1)).unmatched) == 0


def test_the_order_of_the_rows_changes_no_value():
    rows = [row(core, core * 10 + n, n, 1000 * n + 10, 1000 * n + 500) for core in range(2) for n in range(1, 6)]
    aicpu = [[core, n, 1000 * n, 1000 * n + 600] for core in range(2) for n in range(1, 6)]
    plain = decode(records(rows, aicpu))
    turned = decode(records(rows[::-1], aicpu[3:] + aicpu[:3]))
    shown = ("slice_id", "task_id", "dispatch_ts", "receive_ts", "finish_ts", "tail_ns")
    assert [r[2:] for r in sorted(tasks(plain, *shown))] == [r[2:] for r in sorted(tasks(turned, *shown))]
    assert stats(turned) == {}


def test_neighbours_that_leave_no_room_do_not_move_a_gap():
    rows = [row(0, 5, 1, 500, 600), row(0, 7, 3, 100, 140)]
    trace = decode(records(rows, [[0, 1, 490, 610], [0, 2, 150, 250], [0, 3, 90, 145]]))
    assert gaps(trace) == [("AIC_0", (150 - 90) * 20, 100 * 20, 1)]


def test_a_lost_execution_without_stamps_has_no_place():
    trace = decode(records([row(0, 5, 1, 100, 200)], [[0, 1, 90, 210], [0, 2, 220, 0], [0, 3, 0, 0]]))
    assert gaps(trace) == []
    assert stats(trace) == {"ascend_aicpu_unmatched": 2, "ascend_missing_timestamp": 2}
