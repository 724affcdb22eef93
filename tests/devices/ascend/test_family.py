"""Recognising captures, and showing what is in them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.ascend.helpers import CASES, GOLDEN, NAMINGS, decode_simulated, graph, records, simulated
from lanescope.cli.commands.dump import stage_lines
from lanescope.devices.ascend.family import FAMILY
from lanescope.errors import InputError, UsageError
from lanescope.families import registry
from lanescope.families.family import STAGES
from lanescope.pipeline import session
from lanescope.pipeline.sources import CaptureSource
from lanescope.source import CERTAIN, HEAD_BYTES, MINE, Capture, FileHead

ROW = [0, 1, 1, 10, 20, 1]


def probe(content):
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return FAMILY.detect(FileHead(data[:HEAD_BYTES], len(data), "x.json"))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("naming", NAMINGS)
def test_golden_captures_are_recognised(case, naming):
    path = GOLDEN / case / f"{naming}_swimlane_records.json"
    with Capture(path) as capture:
        family, match = session.detect_family(capture)
        assert (family.name, match.score >= CERTAIN) == ("ascend", True)
        assert f"{naming}_swimlane_level" in match.reason
    assert match.format == session.open(path).inputs["format"][0]


@pytest.mark.parametrize("naming", NAMINGS)
@pytest.mark.parametrize(("columns", "name"), [(5, "v2"), (6, "v3"), (7, "v4")])
def test_the_format_version_follows_from_the_rows(naming, columns, name):
    content = records([[0, 1, 1, 10, 20, 1, 1][:columns]], key=f"{naming}_swimlane_level")
    found = probe(content)
    assert found.score >= CERTAIN
    assert found.format == ("v3c" if (naming, columns) == ("chip", 6) else name)


def test_format_versions_without_rows_of_numbers_are_recognised():
    old = {"version": 2, "tasks": [{"task_id": 1, "ring_id": 0, "start_time_us": 1.0, "duration_us": 1.0}]}
    assert (probe(old).score, probe(old).format) == (90, "v1a")
    newer = {**old, "l2_swimlane_level": 2}
    assert probe(newer).format == "v1c"
    assert probe({**old, "l2_perf_level": 2}).format == "v1b"
    last = records(key="chip_swimlane_level", scheduler_tasks={"producer": "aicpu", "records": []})
    del last["aicore_tasks"]
    assert probe(last).format == "v4"


def test_a_level_behind_the_lists_is_recognised_by_the_lists():
    content = {
        "metadata": records()["metadata"],
        "aicore_tasks": [ROW] * 4000,
        "aicpu_tasks": [],
        "l2_swimlane_level": 1,
    }
    assert MINE <= probe(content).score < CERTAIN


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * HEAD_BYTES,
        b"[1, 2]",
        b"{}",
        b'{"traceEvents": []}',
        json.dumps(graph({1: (0, -1, -1)}, [(1, 2)])).encode(),
        b'{"version": 3, "tasks": []}',
        b'{"l2_swimlane_level": 77}x' * 0 + b'{"level": 2, "callable_id_to_name": {}}',
        b'"l2_swimlane_level": 3, "aicore_tasks": [',
    ],
)
def test_other_files_are_not(content):
    assert probe(content).score < MINE


@given(st.binary(max_size=2000))
def test_noise_is_not(noise):
    assert probe(noise).score < MINE


def test_random_heads_are_not():
    random = np.random.default_rng(5)
    for _ in range(20):
        assert probe(random.integers(0, 256, HEAD_BYTES, np.uint8).tobytes()).score < MINE


def test_no_other_family_wants_it():
    content = next(iter(simulated(1).files.values()))
    head = FileHead(content[:HEAD_BYTES], len(content), "run.json")
    assert {family.name: family.detect(head).score for family in registry.builtin() if family.name != "ascend"}
    assert all(family.detect(head).score < MINE for family in registry.builtin() if family.name != "ascend")


@pytest.mark.parametrize("format_version", ["v2", "v3", "v3c"])
def test_simulated_captures_are_recognised(format_version):
    content = next(iter(simulated(1, format_version=format_version).files.values()))
    assert (probe(content).score >= CERTAIN, probe(content).format) == (True, format_version)
    assert decode_simulated(simulated(1, format_version=format_version)).inputs["format"][0] == format_version


def test_a_graph_given_as_the_capture_says_what_is_missing():
    with pytest.raises(InputError, match=r"\*_swimlane_records.json"):
        session.open(GOLDEN / "v2_chain" / "deps.json", family="ascend")


def dump(stage, **options):
    with CaptureSource(GOLDEN / "v3_spec_dummy" / "l2_swimlane_records.json", "ascend", options) as source:
        return list(stage_lines(source, stage))


def test_dump_of_entries():
    lines = dump("packet")
    keys = [line.split("  ")[2] for line in lines]
    assert keys == [
        "l2_swimlane_level",
        "metadata",
        "aicore_tasks",
        "aicpu_tasks",
        "aicpu_scheduler_phases",
        "aicpu_orchestrator_phases",
    ]
    assert lines[0] == "0x00000019  4  l2_swimlane_level  bytes=1"


def test_dump_of_records():
    lines = dump("record")
    assert len(lines) == 6 + 6 + 19 + 7
    assert lines[1] == (
        "0x000000fe  [0, 4294967301, 1, 5002140, 5002540, 0]  aicore_tasks  core_id=0 task_token_raw=4294967301"
        " reg_task_id=1 start_cycles=5002140 end_cycles=5002540 receive_to_start_cycles=0"
    )
    phase = next(line for line in lines if "early_dispatch" in line)
    assert "aicpu_scheduler_phases[1]  kind=early_dispatch start_cycles=5000895" in phase
    assert "local_at_start=[0, 0, 0]" in phase
    assert "pop_hit" not in phase
    content = (GOLDEN / "v3_spec_dummy" / "l2_swimlane_records.json").read_bytes()
    for line in lines:
        offset, raw = line.split("  ")[:2]
        assert content[int(offset, 16) :].startswith(raw.encode())


def test_dump_of_records_says_what_was_not_understood(tmp_path):
    path = tmp_path / "l2_swimlane_records.json"
    path.write_text(json.dumps(records([ROW, "x"])))
    with CaptureSource(path, "ascend") as source:
        lines = list(stage_lines(source, "record"))
    assert lines[-1].endswith("not understood: 1 elements, 3 bytes")


def test_dump_of_rows():
    lines = dump("row")
    fields = "name=matmul category=kernel task_id=4294967297 task=r1t1 fan_in=1 fan_out=2 "
    fields += "duration_ns=12000 propagation_ns=400 local_setup_ns=3000"
    assert f"5600  slice  Worker View / AIC_0  dur=12000 {fields}" in lines
    assert "17600  flow  Worker View / AIC_0 -> Worker View / AIV_2  kind=dependency dst_ts=6400" in lines
    times = [int(line.split("  ")[0]) for line in lines]
    assert times == sorted(times)
    arrows = 7 + 6 + 6 + 6 + 1  # edges, dispatches, submissions, completions, tasks that became ready
    assert len(lines) == 37 + 6 + 2 + 5 + arrows  # records, flights, tasks without a core, samples of queues
    # The barrier has its marker, the allocation nothing that says so.
    arrows = 6 + 6 + 6  # dispatches, submissions, completions
    assert len(dump("row", deps="none", names="none")) == 37 + 6 + 1 + 5 + arrows


def test_stages():
    for stage in STAGES:
        assert dump(stage)
    with pytest.raises(UsageError, match="unknown stage"):
        dump("frame")


def test_the_family_is_listed_and_light():
    assert registry.family("ascend") is FAMILY
    (format,) = FAMILY.formats
    assert not format.is_streaming
    assert format.bytes_per_row > 0
    assert {table.name for table in FAMILY.tables} >= {
        "ascend_tasks",
        "ascend_phases",
        "ascend_submits",
        "ascend_edges",
    }
    assert FAMILY.stats
    assert format.layouts
