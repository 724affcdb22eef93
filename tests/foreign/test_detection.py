"""Files of trace events are given to one reader, whatever their beginning holds."""

import json

import pytest

import lanescope
from lanescope.errors import InputError
from lanescope.pipeline import detection

NAMES = {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "main"}}
SLICE = {"ph": "X", "pid": 1, "tid": 1, "name": "f", "ts": 1, "dur": 2}
OPERATOR = {**SLICE, "cat": "cpu_op", "args": {"External id": 3}}


def chosen(path):
    with detection.capture(path) as opened:
        return detection.detect_family(opened)[0].name


@pytest.mark.parametrize(
    ("content", "family"),
    [
        ([SLICE], "chrome"),
        ({"traceEvents": [SLICE]}, "chrome"),
        ({"traceEvents": []}, "chrome"),
        ({"otherData": {"x": "y" * 70_000}, "traceEvents": [SLICE]}, None),
        ({"schemaVersion": 1, "deviceProperties": [], "traceEvents": [OPERATOR]}, "kineto"),
        ({"schemaVersion": 1, "traceEvents": [NAMES] * 2000 + [OPERATOR]}, "kineto"),
        ({"traceEvents": [OPERATOR]}, "kineto"),
        ({"traceEvents": [NAMES] * 2000 + [SLICE]}, "chrome"),
        ([OPERATOR], "kineto"),
        ([{**SLICE, "cat": "cpu_op"}], "chrome"),
        ([1, 2, 3], None),
        ([{"ph": 1, "name": "a list of something else"}], None),
    ],
)
def test_one_reader_takes_a_file(tmp_path, content, family):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(content))
    if family is None:
        with pytest.raises(InputError):
            chosen(path)
    else:
        assert chosen(path) == family


@pytest.mark.parametrize("family", ["chrome", "kineto", "perfetto", "ascend"])
def test_simulated_files_are_recognized(tmp_path, family):
    for name, content in lanescope.simulate(family, 1).files.items():
        (tmp_path / name).write_bytes(content)
    assert chosen(tmp_path) == family


def test_what_lanescope_draws_is_read_by_the_readers_of_its_formats(tmp_path):
    for name, content in lanescope.simulate("cuda", 1).files.items():
        (tmp_path / name).write_bytes(content)
    trace = lanescope.open(tmp_path)
    for suffix, family in ((".json", "chrome"), (".json.gz", "chrome"), (".pftrace", "perfetto")):
        out = tmp_path / "drawn" / f"run{suffix}"
        out.parent.mkdir(exist_ok=True)
        lanescope.write(trace, out)
        assert chosen(out) == family


@pytest.mark.parametrize("content", [[SLICE], {"schemaVersion": 1, "traceEvents": [OPERATOR]}])
def test_trace_events_in_memory_are_read_with_their_arguments(content):
    trace = lanescope.open(json.dumps(content).encode())
    assert len(trace.slices) == 1
    assert all(len(table) >= 0 for table in trace.details.values())
