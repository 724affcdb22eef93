"""Phases of the host on the timeline of a capture."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.ascend.helpers import decode, decode_file, records, stats
from effort import some
from lanescope.devices.ascend.formats.host_phases import read_host_phases
from lanescope.errors import InputError

NAME = "host_phase_records.jsonl"
#: Device counter and host clock advance together: cycle 1000 is host time 100000, a cycle takes 20 ns.
ANCHORS = {
    "samples": [
        {"position": position, "host_before_ns": host - 10, "device_cycles": cycles, "host_after_ns": host + 10}
        for position, host, cycles in (
            ("pre_host_orchestration", 100_000, 1000),
            ("post_device_execution", 200_000, 6000),
        )
    ]
}


def row(phase="args", start=95_000, end=96_000, **more):
    """Return one record."""
    return {"phase": phase, "start_ns": start, "end_ns": end, "detail": 0, "tid": 7, **more}


def line(*rows, **more):
    """Return a line of the file."""
    return json.dumps({"pid": 7, "inv": 1, "clock": "host_monotonic_ns", "dropped": 0, "records": rows, **more})


def capture(text, anchors=ANCHORS, **options):
    """Decode one execution of cycles 2000 to 3000 beside a file of phases."""
    metadata = {} if anchors is None else {"clock_anchors": anchors}
    content = records([[0, 1, 1, 2000, 3000, 0]], [[0, 1, 1990, 3010]], metadata=metadata)
    return decode(content, beside={NAME: text.encode()}, **options)


def phases(trace):
    """Return (name, begin, length) of the phases."""
    at = trace.details["ascend_host_phases"]["slice_id"].tolist()
    slices = trace.slices
    return [(str(slices["name"][i]), int(slices["ts"][i]), int(slices["dur"][i])) for i in at]


def test_host_and_core_are_on_one_axis():
    trace = capture(line(row(), row("submit_task", 99_000, 99_500, detail=1)))
    # Cycle 2000 is host time 120000; the first phase of the host is time 0.
    kernel = trace.details["ascend_tasks"]["slice_id"][0]
    assert (trace.slices["ts"][kernel], trace.slices["dur"][kernel]) == (25_000, 20_000)
    assert phases(trace) == [("args", 0, 1000), ("submit_task", 4000, 500)]
    details = trace.details["ascend_host_phases"]
    assert details.valid("task_id").tolist() == [False, True]
    assert stats(trace) == {}


def test_without_anchors_only_the_order_is_known_and_says_so():
    trace = capture(line(row()), anchors=None)
    assert stats(trace)["ascend_host_clock_unaligned"] == 1
    kernel = trace.details["ascend_tasks"]["slice_id"][0]
    assert trace.slices["ts"][kernel] >= 1000


def test_lines_that_are_not_valid_are_lost_and_counted():
    good, bad = line(row()), line({**row(), "start_ns": "soon"})
    trace = capture(f"{bad}\n{good}\n{{\n")
    assert len(phases(trace)) == 1
    assert stats(trace) == {"ascend_invalid_row": 2}
    part = trace.inputs["role"].tolist().index("host_phases")
    (account,) = (entry for entry in trace.accounting.rows() if entry["input_id"] == part)
    assert (account["total"], account["decoded"]) == (len(bad) + len(good) + 4, len(good))
    assert account["lost"] == len(bad) + 1


def test_dropped_and_distant_phases_are_reported():
    far = (1 << 62) - 1
    trace = capture(line(row(), row(start=far - 1, end=far), dropped=3))
    assert stats(trace) == {"ascend_host_phases_dropped": 3, "ascend_host_phases_unplaced": 1}
    assert len(phases(trace)) == 1


def test_a_file_without_a_valid_line_is_lost():
    assert stats(capture("no\n")) == {"ascend_unreadable_sidecar": 1}


def test_phases_that_are_not_wanted():
    trace = capture(line(row()), host_phases="none")
    assert trace.inputs["role"].tolist() == ["main"]
    assert phases(trace) == []


@given(st.binary(max_size=200) | st.text('{}[]":,0123456789 recodspidnv', max_size=120).map(str.encode))
@settings(max_examples=some(300))
def test_any_bytes_are_read_or_refused(content):
    try:
        found = read_host_phases(np.frombuffer(content, np.uint8), "a")
    except InputError:
        return
    assert found.tally.good_bytes + found.tally.bad_bytes <= len(content)


def test_phases_of_the_producer_keep_their_places(corpus):
    folders = sorted(path.parent for path in Path(corpus, "producers/ascend").glob(f"*/*/{NAME}"))
    assert len(folders) >= 4
    for folder in folders:
        (run,) = (json.loads(text) for text in (folder / NAME).read_text().splitlines())
        trace = decode_file(folder / "chip_swimlane_records.json")
        content = json.loads((folder / "chip_swimlane_records.json").read_text())
        zero = min(entry["start_ns"] for entry in run["records"])
        expected = [
            (entry["phase"], entry["start_ns"] - zero, entry["end_ns"] - entry["start_ns"]) for entry in run["records"]
        ]
        assert phases(trace) == expected
        # The same submissions in both files are at the same time.
        submits = trace.details["ascend_submits"]["slice_id"]
        begins = [entry["start_host_ns"] - zero for entry in content["host_orchestrator_phases"][0]]
        assert trace.slices["ts"][submits].tolist() == begins
        device = trace.slices["ts"][trace.details["ascend_tasks"]["slice_id"]]
        assert device.min() > max(begins)


@pytest.mark.parametrize("level", [1, 2])
def test_captures_without_host_records_have_no_phases(level):
    trace = decode(records([[0, 1, 1, 2000, 3000, 0]], level=level))
    assert phases(trace) == []
