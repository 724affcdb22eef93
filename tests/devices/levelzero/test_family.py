"""The family object: probe, options, dump."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lanescope
from devices.levelzero.helpers import Script
from lanescope.cli.commands.dump import stage_lines
from lanescope.devices.levelzero.family import FAMILY
from lanescope.errors import UsageError
from lanescope.pipeline.sources import CaptureSource
from lanescope.source import FileHead
from lanescope.testing import assert_consistent


def head(content: bytes) -> FileHead:
    return FileHead(content[:65536], len(content), "x")


def test_probe_knows_its_own(tmp_path) -> None:
    script = Script()
    for _ in range(2000):
        script.call("zeInit")
    match = FAMILY.detect(head(script.text))
    assert (match.score, match.format) == (95, "thapi_text")
    assert "Level Zero" in match.reason
    (tmp_path / "run").write_bytes(script.text)
    assert lanescope.open(tmp_path / "run").inputs["family"].tolist() == ["levelzero"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 4096,
        b"hello\nworld\n" * 100,
        b"12:00:00.000000000 - h - vpid: 1, vtid: 1 - lttng_ust_other:cuInit_entry: { Flags: 0 }\n" * 20,
        b'{"traceEvents": []}',
    ],
)
def test_probe_refuses_others(content) -> None:
    assert FAMILY.detect(head(content)).score < 50


@given(st.binary(max_size=4096))
def test_probe_refuses_noise(content) -> None:
    assume(not content.startswith(b"/* CTF 1.8"))  # so does the text of each CTF trace
    assert FAMILY.detect(head(content)).score < 50


def test_probe_doubts_a_mixture() -> None:
    record = Script().call("zeInit").text
    assert FAMILY.detect(head(record + b"noise\n" * 50)).score < 50
    assert FAMILY.detect(head(record * 10 + b"noise\n" * 3)).score >= 50


def test_family_costs_nothing_to_import() -> None:
    code = "import sys; import lanescope.devices.levelzero.family; print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "False\n"


def test_dump(tmp_path) -> None:
    path = tmp_path / "run.thapi_text"
    path.write_bytes(Script().append("Barrier", 0x4).result(0x4).text)

    def dumped(stage: str) -> list[str]:
        with CaptureSource(path, "levelzero") as source:
            return list(stage_lines(source, stage))

    packets = dumped("packet")
    assert packets[0].startswith("0x00000000  ")
    assert [line[12:] for line in packets] == path.read_text().splitlines()
    records = dumped("record")
    assert [line.split()[1] for line in records] == ["appends", "calls", "pushes", "calls", "results"]
    rows = dumped("row")
    assert [line.split()[0] for line in rows[:2]] == ["0", "0"]
    with pytest.raises(UsageError):
        dumped("frame")


def test_captures_merge(tmp_path) -> None:
    """With a date they share a clock; tracks and slices of the details move along."""
    script = Script().append("Barrier", 0x4).result(0x4)
    one = script.open(tmp_path, "one.thapi_text", start_date="2026-03-01")
    script.call("zeInit")
    other = script.open(tmp_path, "other.thapi_text", start_date="2026-03-02")
    merged = lanescope.merge([one, other])
    assert_consistent(merged)
    first, second = merged.details["levelzero_operations"].rows()
    names = merged.slices["name"].tolist()
    assert {names[row["append_slice_id"]] for row in (first, second)} == {"zeCommandListAppendBarrier"}
    assert second["append_slice_id"] > first["slice_id"]
    assert second["append_ts"] - first["append_ts"] == 86_400_000_000_000
    assert merged.tracks["name"][second["thread_track_id"]] == "thread 1"


def test_records_are_reachable(tmp_path) -> None:
    trace = Script().append("Barrier", 0x4).result(0x4).open(tmp_path)
    assert trace.records["levelzero.results"]["event"].tolist() == [4]
    assert trace.records["levelzero.appends"]["kind"].tolist() == ["barrier"]


def test_empty_text_of_this_family(tmp_path) -> None:
    """Only records of other kinds: a trace without rows, and every byte accounted for."""
    trace = Script().record("lttng_ust_ze_sampling:gpu_energy", hDevice=1).open(tmp_path)
    assert len(trace.slices) == 0
    assert next(trace.accounting.rows())["lost"] == next(trace.accounting.rows())["total"]
