"""Hardware counters next to a capture."""

from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.ascend.helpers import decode, records, stats
from effort import some
from lanescope.devices.ascend.formats.pmu import read_pmu
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
    assert stats(trace) == {"ascend_invalid_row": 2}
    (account,) = (row for row in trace.accounting.rows() if row["input_id"] == 1)
    assert (account["decoded"], account["padding"], account["lost"]) == (len(HEADER) + 18, 3, 23)


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
    assert pmu.good_bytes + pmu.bad_bytes <= len(content)


def test_counters_of_the_producer(corpus):
    (path,) = Path(corpus, "producers/ascend/pmu_vec").glob("*/pmu.csv")
    pmu = read_pmu(np.frombuffer(path.read_bytes(), np.uint8), str(path))
    names = path.read_text().splitlines()[0].split(",")
    assert list(pmu.counters) == names[5:-1]
    assert pmu.core.tolist() == [8, 8, 8, 8, 9]
    assert pmu.task_id.tolist() == [0, 1 << 32 | 1, 1 << 32 | 2, 1 << 32 | 3, 1 << 32]
    assert pmu.bad_lines == 0
