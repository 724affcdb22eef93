"""Hardware counters next to a capture."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.ascend.helpers import decode, decode_simulated, graph, records, simulated, stats
from effort import some
from lanescope.devices.ascend.formats.pmu import encode_pmu, read_pmu
from lanescope.errors import InputError

HEADER = "thread_id,core_id,task_id,func_id,core_type,pmu_total_cycles,icache_miss,event_type"
#: A task that runs twice on core 0, and one on core 1.
ROWS = [[0, 5, 1, 100, 200, 0], [0, 5, 2, 300, 400, 0], [1, 6, 1, 100, 300, 0]]


def capture(*lines, **options):
    """Decode the executions next to the lines of a file."""
    return decode(records(ROWS, level=1), beside={"pmu.csv": "\n".join(lines).encode()}, **options)


def found(trace):
    """Return (begin of the execution, counter, value), None without an execution."""
    begin = trace.slices["ts_ticks"].tolist()
    return [
        (None if row["slice_id"] is None else begin[row["slice_id"]], row["counter"], row["value"])
        for row in trace.details["ascend_pmu"].rows()
    ]


def drawn(trace):
    """Return (core, counter, [(ts, value)]) of the tracks."""
    names, parents = trace.tracks.values("name"), trace.tracks["parent_id"]
    samples = [(row["track_id"], (row["ts"], row["value"])) for row in trace.counters.rows()]
    return [
        (str(names[parents[track]]), str(names[track]), [sample for owner, sample in samples if owner == track])
        for track in dict.fromkeys(track for track, _ in samples)
    ]


def test_counters_are_drawn_at_their_executions():
    # Cycles of 20 ns from cycle 100 on: the second execution of core 0 begins when the first has ended.
    rows = [[0, 5, 1, 100, 200, 0], [0, 5, 2, 200, 400, 0], [0, 7, 3, 500, 600, 0], [1, 6, 1, 100, 300, 0]]
    lines = (HEADER, "0,0,0x5,1,0,11,1,2", "0,0,0x5,1,0,22,1,2", "0,0,0x7,1,0,33,0,2", "0,1,0x6,1,1,44,4,2")
    beside = {"pmu.csv": "\n".join(lines).encode()}
    trace = decode(records(rows, level=1), beside=beside)
    assert drawn(trace) == [
        ("AIC_0", "pmu_total_cycles", [(0, 11), (2000, 22), (6000, 0), (8000, 33), (10000, 0)]),
        ("AIV_1", "pmu_total_cycles", [(0, 44), (4000, 0)]),
        ("AIC_0", "icache_miss", [(0, 1), (6000, 0)]),
        ("AIV_1", "icache_miss", [(0, 4), (4000, 0)]),
    ]
    assert drawn(decode(records(rows, level=1), beside=beside, detail="low")) == []


def test_executions_that_overlap_or_have_no_length_draw_no_false_value():
    rows = [[0, 5, 1, 100, 300, 0], [0, 6, 2, 200, 400, 0], [0, 7, 3, 450, 450, 0], [0, 8, 4, 500, 600, 0]]
    lines = (HEADER, *(f"0,0,{task:#x},1,0,{task},0,2" for task in (5, 6, 7, 9)))
    trace = decode(records(rows, level=1), beside={"pmu.csv": "\n".join(lines).encode()})
    assert drawn(trace) == [
        ("AIC_0", "pmu_total_cycles", [(0, 5), (2000, 6), (6000, 0)]),
        ("AIC_0", "icache_miss", [(0, 0)]),
    ]


def test_counters_belong_to_executions():
    trace = capture(HEADER, "0,0,0x5,1,0,11,1,2", "0,1,0x6,1,1,33,3,2", "0,0,0x5,1,0,22,2,2", "")
    pairs = [(100, 11, 1), (100, 33, 3), (300, 22, 2)]
    assert found(trace) == [
        (begin, counter, value)
        for begin, total, miss in pairs
        for counter, value in (("pmu_total_cycles", total), ("icache_miss", miss))
    ]
    assert stats(trace) == {}
    assert trace.inputs["role"].tolist() == ["main", "pmu"]


def test_a_missing_row_leaves_those_of_its_task_without_an_execution():
    trace = capture(HEADER, "0,0,0x5,1,0,11,1,2", "0,1,0x6,1,1,33,3,2", "0,1,0x7,1,1,44,4,2")
    assert [row[0] for row in found(trace)] == [None, None, 100, 100, None, None]
    assert stats(trace) == {"ascend_pmu_unmatched": 2}


def test_lines_that_are_not_valid_are_lost_and_counted():
    trace = capture(HEADER, "0,0,x,1,0,11,1,2", "0,1,0x6", "0,1,0x6,1,1,33,3,2")
    assert stats(trace) == {"ascend_invalid_row": 2, "ascend_pmu_missing": 2}
    (account,) = (row for row in trace.accounting.rows() if row["input_id"] == 1)
    assert (account["decoded"], account["padding"], account["lost"]) == (len(HEADER) + 18, 3, 23)


def test_rows_of_another_core_or_function_contradict():
    lines = ("0,0,0x5,1,0,11,1,2", "0,0,0x5,1,0,22,2,2", "0,1,0x6,3,1,33,3,2")
    deps = graph({5: (1, -1, -1), 6: (-1, 3, -1)})
    content, text = records(ROWS, level=1), "\n".join((HEADER, *lines))
    for old, new, count in (("", "", 0), (",1,0,22", ",2,0,22", 1), (",3,1,33", ",3,0,33", 1), ("0x6,3", "0x6,-1", 0)):
        trace = decode(content, deps=deps, beside={"pmu.csv": text.replace(old, new).encode()})
        assert stats(trace) == ({"ascend_pmu_contradicts": count} if count else {}), new


def test_a_file_without_names_of_columns_is_lost():
    assert stats(capture("a,b", "1,2")) == {"ascend_unreadable_sidecar": 1}
    assert capture("a,b", pmu="none").inputs["role"].tolist() == ["main"]


@given(st.binary(max_size=80) | st.text("0x1,\n-\r9a", max_size=80).map(lambda text: f"{HEADER}\n{text}".encode()))
@settings(max_examples=some(300))
def test_any_bytes_are_read_or_refused(content):
    try:
        pmu = read_pmu(np.frombuffer(content, np.uint8), "a")
    except InputError:
        return
    assert pmu.tally.good_bytes + pmu.tally.bad_bytes <= len(content)


#: A number and how it may be written.
NUMBERS = st.one_of(st.integers(0, 99), st.integers(0, (1 << 63) - 1)).flatmap(
    lambda value: st.tuples(st.just(value), st.sampled_from([f"{value}", f"{value:#x}", f"0x{value:016X}"]))
)
CORES, TASKS = (
    st.integers(0, most).map(lambda value: (value, f"{value:#x}" if value % 2 else f"{value:010}"))
    for most in ((1 << 31) - 1, (1 << 63) - 1)
)
LINES = st.tuples(NUMBERS, CORES, TASKS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.sampled_from(["", "\r"]))


@given(st.lists(LINES, max_size=5))
@settings(max_examples=some(200))
def test_numbers_are_read_however_they_are_written(lines):
    texts = [HEADER, *(",".join(text for _, text in line[:-1]) + line[-1] for line in lines)]
    pmu = read_pmu(np.frombuffer("\n".join(texts).encode(), np.uint8), "a")
    assert (len(pmu), pmu.tally.bad_count) == (len(lines), 0)
    assert pmu.core.tolist() == [line[1][0] for line in lines]
    assert pmu.task_id.tolist() == [line[2][0] for line in lines]
    assert pmu.values.tolist() == [[line[5][0], line[6][0]] for line in lines]
    assert pmu.event_type.tolist() == [line[7][0] for line in lines]
    assert pmu.tally.good_bytes == sum(map(len, texts))


def test_numbers_that_do_not_fit_are_not_valid():
    rows = [
        "0,2147483648,0x5,1,0,11,1,2",
        "0,0,0x5,1,0,9223372036854775808,1,2",
        "0,0,0x5,1,0,11,1_0,2",
        "0,0,,1,0,1,1,2",
    ]
    for row in rows:
        assert read_pmu(np.frombuffer(f"{HEADER}\n{row}".encode(), np.uint8), "a").tally.bad_count == 1, row


@pytest.mark.parametrize("options", [{}, {"format_version": "v3c", "host": True, "graphs": 0.1}, {"drop_aicore": 3}])
def test_simulated_counters_are_those_of_their_executions(options):
    simulation = simulated(2, tasks=80, pmu=True, **options)
    pmu = read_pmu(np.frombuffer(simulation.files["pmu.csv"], np.uint8), "a")
    assert encode_pmu(pmu) == simulation.files["pmu.csv"]
    trace = decode_simulated(simulation)
    lost = options.get("drop_aicore", 0)
    assert {name: count for name, count in stats(trace).items() if "pmu" in name} == (
        {"ascend_pmu_unmatched": lost} if lost else {}
    )
    table = trace.details["ascend_pmu"]
    rows = table.valid("slice_id") & (table["counter"] == "pmu_total_cycles")
    assert rows.sum() == len(trace.details["ascend_tasks"])
    assert (trace.slices["dur_ticks"][table["slice_id"][rows]] == table["value"][rows]).all()


def test_counters_of_the_producer(corpus):
    (path,) = Path(corpus, "producers/ascend/pmu_vec").glob("*/pmu.csv")
    pmu = read_pmu(np.frombuffer(path.read_bytes(), np.uint8), str(path))
    names = path.read_text().splitlines()[0].split(",")
    assert list(pmu.counters) == names[5:-1]
    assert pmu.core.tolist() == [8, 8, 8, 8, 9]
    assert pmu.task_id.tolist() == [0, 1 << 32 | 1, 1 << 32 | 2, 1 << 32 | 3, 1 << 32]
    assert pmu.tally.bad_count == 0


def test_simulated_counters_are_in_the_order_of_each_core():
    # One thread sees so many ends at once that several of a core have one timestamp.
    options = {"format_version": "v3c", "aic": 36, "aiv": 72, "threads": 1, "level": 1, "clock": 1_000_000_000}
    shares = {"mix": 0.3, "spmd": 0.3, "alloc": 0.1, "predicated": 0.1, "speculative": 1.0}
    simulation = simulated(848_105, tasks=300, dummy=0, pmu=True, scopes=True, truth="totals", **options, **shares)
    trace = decode_simulated(simulation)
    assert "ascend_pmu_contradicts" not in stats(trace)
    assert len(trace.details["ascend_pmu"]) > 0
