"""Malformed bytes: refused in one line, or decoded and accounted for; never a crash."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.ascend.helpers import CASES, GOLDEN, NAMINGS, decode, graph, records, simulated
from effort import cuts, some
from lanescope import cli
from lanescope.analysis import check, occupancy
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.devices.ascend.formats.layout import DEPS, RECORDS
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
        assert ((trace.flows[f"{side}_slice_id"] >= 0) & (trace.flows[f"{side}_slice_id"] < len(slices))).all()
    assert (trace.gaps.values("dur") >= 0).all()
    for row in trace.accounting.rows():
        assert row["decoded"] + row["padding"] + row["lost"] == row["total"]
        assert min(row["decoded"], row["padding"], row["lost"]) >= 0
    return trace


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: str(len(content)))
def test_every_truncation_is_refused_or_told(content):
    whole = len(content.rstrip())
    decoded = 0
    for size in (*cuts(whole, 41), whole - 1):
        trace = assert_sound(content[:size])
        if trace is not None:
            decoded += 1
            cut = {row["name"]: (row["severity"], row["first_offset"]) for row in trace.stats.rows()}["truncated"]
            assert cut[0] == "data_loss"
            account = next(row for row in trace.accounting.rows() if row["scope"] == "input")
            assert account["lost"] >= size - cut[1]
            assert all(finding.severity != "error" for finding in check.run(trace) if finding.code == "LS001")
    assert decoded > 3
    trace = assert_sound(content[:whole])
    assert "truncated" not in set(trace.stats["name"].tolist())


def small_run():
    """Return a simulated records file of four lists, and where the list of each key begins."""
    (content, *_) = simulated(seed=5, tasks=40, aic=2, aiv=2, threads=2).files.values()
    keys = ("aicore_tasks", "aicpu_tasks", "aicpu_scheduler_phases", "aicpu_orchestrator_phases")
    return content, {key: content.index(f'"{key}"'.encode()) for key in keys}


def test_time_that_a_cut_leaves_open_is_unknown_and_not_idle():
    content, begin = small_run()
    whole = {row["lane"]: row for row in occupancy.lanes(AnalysisCache(decode(content))).rows()}
    assert all(whole[f"Ascend/{lane}"]["idle_ns"] for lane in ("Worker View/AIC_0", "Scheduler/Sched_0"))
    for key, end, partial in (
        ("aicore_tasks", "aicpu_tasks", ("Worker View/AIC", "Worker View/AIV", "Scheduler/")),
        ("aicpu_scheduler_phases", "aicpu_orchestrator_phases", ("Scheduler/", "Orchestrator/")),
    ):
        trace = decode(content[: (begin[key] + begin[end]) // 2])
        found = {row["lane"].removeprefix("Ascend/"): row for row in occupancy.lanes(AnalysisCache(trace)).rows()}
        cut = [row for lane, row in found.items() if lane.startswith(partial)]
        assert sum(row["busy_ns"] for row in cut)
        for row in cut:
            assert row["idle_ns"] == 0
            assert row["busy_ns"] + row["unknown_ns"] == row["window_ns"]
        sound = [row for lane, row in found.items() if lane.startswith(("Worker View/AI", "Scheduler View/"))]
        assert all(row["idle_ns"] for row in sound if row not in cut)
        cores = trace.details["ascend_cores"]
        if key == "aicore_tasks":
            assert (cores["lost_ticks"] + cores["busy_ticks"]).tolist() == cores["window_ticks"].tolist()
        else:
            assert not cores["lost_ticks"].any()
        # Nobody can tell what was dropped before it came to the file from what was cut off.
        assert {row["scope"] for row in trace.accounting.rows()} == {"input"}


def test_a_cut_capture_is_read_and_says_so(tmp_path, capsys):
    content, begin = small_run()
    path = tmp_path / "l2_swimlane_records.json"
    path.write_bytes(content[: begin["aicpu_scheduler_phases"] + 5000])
    for status, command in (
        (0, ["info"]), (4, ["info", "--strict"]), (1, ["check"]), (0, ["check", "--fail-on", "never"]),
        (0, ["summary", "--by", "phase"]), (0, ["convert", "-o", str(tmp_path / "cut.pftrace")]),
    ):  # fmt: skip
        assert cli.main([*command, str(path)]) == status, command
        assert command[0] == "check" or "data loss: truncated inputs (1), bytes lost (" in capsys.readouterr().err
    capsys.readouterr()
    for stage, said in (("packet", "(cut off)  bytes="), ("record", "cut off: ")):
        assert cli.main(["dump", "--stage", stage, str(path)]) == 0
        assert said in capsys.readouterr().out.splitlines()[-1]
    path.write_bytes(content[: begin["aicore_tasks"] + 20])
    assert cli.main(["info", str(path)]) == 3
    assert f"file is truncated after byte {begin['aicore_tasks'] + 20} inside `aicore_tasks`" in capsys.readouterr().err


def test_truncated_neighbours_are_lost_and_nothing_else():
    for size in cuts(len(GRAPHS[2].rstrip()), 97):
        trace = assert_sound(CONTENTS[5], deps=GRAPHS[2][:size])
        assert len(trace.details["ascend_tasks"]) == 6
        lost = [row for row in trace.accounting.rows() if row["input_id"] == 1]
        assert [(row["total"], row["lost"]) for row in lost] == [(size, size)]


@given(
    st.sampled_from(range(len(CONTENTS))),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4), st.binary(max_size=6)), min_size=1, max_size=6),
    st.booleans(),
)
@settings(max_examples=some(400))
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
@settings(max_examples=some(150))
def test_numbers_that_make_no_sense_together(capture):
    content, deps = capture
    assert_sound(content, deps=deps)


@given(st.binary(max_size=300))
def test_noise(noise):
    assert assert_sound(noise) is None


def same_key(count):
    return records([[0, task, 1, 100 + task, 200 + task, 1] for task in range(count)], level=2)


def wraps(count):
    random = np.random.default_rng(1)
    return records(
        [[0, task, int(n), 100 + task, 101 + task] for task, n in enumerate(random.integers(0, 1 << 32, count))]
    )


def phases(rows):
    return records(aicpu_scheduler_phases=list(rows))


#: Captures of a size that invite loops inside loops, as functions of that size.
HOSTILE = {
    "same_key": same_key,
    "cores": lambda count: records([[task % 65_536, task, task, 100, 200, 1] for task in range(count)], level=1),
    "wraps": wraps,
    "lost": lambda count: records(
        [[0, 1, 2 * count, 5, 6, 1]], [[0, task, 10 + task, 20 + task] for task in range(count)]
    ),
    "kinds": lambda count: phases([[{"kind": f"k{n}", "start_cycles": 5, "end_cycles": 9} for n in range(count)]]),
    "threads": lambda count: phases([{"start_cycles": 5, "end_cycles": 9}] for _ in range(count)),
    "empty": lambda count: phases([] for _ in range(count)),
    "star": same_key,
    "nested": lambda count: b'{"metadata": ' + b'{"a":' * 500 + b"1" + b"}" * 500 + b"," + b'"x":[1,' * count,
}


@pytest.mark.timeout(100)
@pytest.mark.parametrize("name", HOSTILE)
def test_no_input_makes_a_loop_in_a_loop(name):
    """A hundred thousand elements take seconds; every pair of them would take hours."""
    count = some(100_000)
    deps = graph({}, [(0, task) for task in range(count)]) if name == "star" else None
    assert_sound(HOSTILE[name](count), deps=deps)


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
