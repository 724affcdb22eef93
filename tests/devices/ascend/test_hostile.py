"""Bytes that nobody meant: refused in one line, or decoded and accounted for; never a crash."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.ascend.helpers import CASES, GOLDEN, NAMINGS, decode, graph, records, simulated
from lanescope.devices.ascend.layout import DEPS, RECORDS
from lanescope.errors import InputError

FIXTURES = Path(__file__).parent / "fixtures"
CONTENTS = [(GOLDEN / case / f"{naming}_swimlane_records.json").read_bytes() for case in CASES for naming in NAMINGS]
CONTENTS += [path.read_bytes() for path in sorted(FIXTURES.glob("v*/*_records.json"))]
GRAPHS = [(GOLDEN / case / "deps.json").read_bytes() for case in CASES]


def assert_sound(content, **more):
    """Decode, or be refused; what is decoded holds what every trace promises."""
    try:
        trace = decode(content, **more)
    except InputError as error:
        refused = error
        trace = None
    if trace is None:
        assert refused.exit_status == 3
        assert "\n" not in str(refused)
        return None
    slices, size = trace.slices, len(trace.tracks)
    for name, table in trace.tables().items():
        for column in table.spec.names:
            assert len(table[column]) == len(table), name
    if len(slices):
        assert slices["ts"].min() >= 0
        assert (slices["dur"][slices.valid("dur")] >= 0).all()
        assert ((slices["track_id"] >= 0) & (slices["track_id"] < size)).all()
    for side in ("src", "dst"):
        assert ((trace.flows[f"{side}_slice"] >= 0) & (trace.flows[f"{side}_slice"] < len(slices))).all()
    assert (trace.gaps.values("dur") >= 0).all()
    for row in trace.accounting.rows():
        assert row["decoded"] + row["filler"] + row["lost"] == row["total"]
        assert min(row["decoded"], row["filler"], row["lost"]) >= 0
    return trace


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: str(len(content)))
def test_every_truncation_is_refused(content):
    whole = len(content.rstrip())
    for size in range(0, whole, 7):
        assert assert_sound(content[:size]) is None
    assert assert_sound(content[:whole]) is not None


def test_truncated_neighbours_are_lost_and_nothing_else():
    for size in range(0, len(GRAPHS[2].rstrip()), 97):
        trace = assert_sound(CONTENTS[5], deps=GRAPHS[2][:size])
        assert len(trace.details["ascend_tasks"]) == 6
        lost = [row for row in trace.accounting.rows() if row["input_id"] == 1]
        assert [(row["total"], row["lost"]) for row in lost] == [(size, size)]


@given(
    st.sampled_from(range(len(CONTENTS))),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4), st.binary(max_size=6)), min_size=1, max_size=6),
    st.booleans(),
)
@settings(max_examples=400)
def test_mutations(which, edits, spoils_graph):
    parts = [CONTENTS[which], GRAPHS[which // 2 % len(GRAPHS)]]
    content = bytearray(parts[spoils_graph])
    for place, removed, inserted in edits:
        at = int(place * len(content))
        content[at : at + removed] = inserted
    parts[spoils_graph] = bytes(content)
    assert_sound(parts[0], deps=parts[1])


NUMBERS = st.sampled_from(
    [0, 1, 2, 5, 99, 100, 1000, (1 << 31) - 17, (1 << 31) - 1, (1 << 32) - 1, 1 << 40, (1 << 62) - 1]
)


@st.composite
def captures(draw):
    """Well-formed files whose numbers make no sense together."""

    def element(layout):
        values = {}
        for cell in layout.cells:
            if not cell.is_required and draw(st.booleans()):
                if layout.is_object:
                    continue
                break
            one = {
                "number": NUMBERS.map(lambda n, cell=cell: min(n, cell.limit)),
                "integer": st.integers(-9, 9),
                "token": st.integers(0, 5) | NUMBERS | st.just(2**64 - 1),
                "boolean": st.booleans(),
                "text": st.sampled_from(["complete", "dispatch", "dummy_task", "early_dispatch", "x"]),
                "words": st.lists(st.sampled_from(["wait", "retain"])),
            }[cell.kind]
            values[cell.name] = draw(one) if cell.count == 1 else [draw(one) for _ in range(cell.count)]
        return values if layout.is_object else list(values.values())

    def items(layout):
        rows = [element(layout) for _ in range(draw(st.integers(0, 6)))]
        return rows if layout.depth == 1 else [rows, [], rows[:1]][: draw(st.integers(0, 3))]

    metadata = {
        "clock_freq_hz": draw(st.sampled_from([1, 3, 50_000_000, 10**9, 1 << 62])),
        "core_types": draw(st.lists(st.sampled_from(["aic", "aiv", "x"]), max_size=3)),
        "core_to_thread": draw(st.lists(st.integers(-1, 3), max_size=3)),
    }
    key = draw(st.sampled_from(["l2_swimlane_level", "chip_swimlane_level"]))
    lists = {layout.name: items(layout) for layout in RECORDS if draw(st.booleans())}
    deps = {layout.name: items(layout) for layout in DEPS}
    return {key: draw(st.integers(1, 4)), "metadata": metadata, **lists}, deps


@given(captures())
@settings(max_examples=150)
def test_numbers_that_make_no_sense_together(capture):
    content, deps = capture
    assert_sound(content, deps=deps)


@given(st.binary(max_size=300))
def test_noise(noise):
    assert assert_sound(noise) is None


def hostile(count):
    """Captures of a size that invite loops inside loops."""
    random = np.random.default_rng(1)
    same_key = records([[0, task, 1, 100 + task, 200 + task, 1] for task in range(count)], level=2)
    cores = records([[task % 65_536, task, task, 100, 200, 1] for task in range(count)], level=1)
    wraps = records(
        [[0, task, int(n), 100 + task, 101 + task] for task, n in enumerate(random.integers(0, 1 << 32, count))]
    )
    lost = records([[0, 1, 2 * count, 5, 6, 1]], [[0, task, 10 + task, 20 + task] for task in range(count)])
    kinds = records(
        aicpu_scheduler_phases=[[{"kind": f"k{n}", "start_cycles": 5, "end_cycles": 9} for n in range(count)]]
    )
    threads = records(aicpu_scheduler_phases=[[{"start_cycles": 5, "end_cycles": 9}] for _ in range(count)])
    empty = records(aicpu_scheduler_phases=[[] for _ in range(count)])
    star = graph({}, [(0, task) for task in range(count)])
    nested = b'{"metadata": ' + b'{"a":' * 500 + b"1" + b"}" * 500 + b"," + b'"x":[1,' * count
    return {
        "same_key": (same_key, None),
        "cores": (cores, None),
        "wraps": (wraps, None),
        "lost": (lost, None),
        "kinds": (kinds, None),
        "threads": (threads, None),
        "empty": (empty, None),
        "star": (same_key, star),
        "nested": (nested, None),
    }


@pytest.mark.timeout(100)
@pytest.mark.parametrize("name", list(hostile(1)))
def test_no_input_makes_a_loop_in_a_loop(name):
    """A hundred thousand elements take seconds; every pair of them would take hours."""
    content, deps = hostile(100_000)[name]
    assert_sound(content, deps=deps)


def test_a_capture_whose_rows_lie_in_any_order_is_the_same_capture():
    simulation = simulated(9, tasks=60)
    (name, content), *beside = simulation.files.items()
    random = np.random.default_rng(3)
    listed = json.loads(content)
    for key in ("aicore_tasks", "aicpu_tasks"):
        random.shuffle(listed[key])
    columns = ("task_id", "core", "dispatch_ts", "receive_ts", "finish_ts", "ready_ts", "duration_ns", "label", "block")
    found = []
    for version in (content, listed):
        table = decode(version, name=name, beside=dict(beside)).details["ascend_tasks"]
        found.append(sorted(tuple(row[column] for column in columns) for row in table.rows()))
    assert found[0] == found[1]
