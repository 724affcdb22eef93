"""Sums in the manner of iprof."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.levelzero.helpers import Script
from lanescope.devices.levelzero.analysis import tally
from lanescope.devices.levelzero.analysis.tally import entries, size_text, time_text, union_length
from lanescope.devices.levelzero.family import FAMILY
from lanescope.errors import UsageError


def program() -> Script:
    script = Script(step=10).device().immediate(1)
    script.call("zeKernelCreate", desc_val={"pKernelName": '"mma"'}, out_phKernel_val=0x70)
    script.pair(0)
    for number in range(3):
        script.append("LaunchKernel", 0x4, hKernel=0x70).result(0x4, 100 * number, 100 * number + 10 * (number + 1))
    script.append("MemoryCopy", 0x5, dstptr="0x10", srcptr="0x20", size=1000).result(0x5, 400, 410)
    script.tid = 2
    script.append("MemoryCopy", 0x5, dstptr="0x10", srcptr="0x20", size=500).result(0x5, 500, 520)
    return script


def test_errors_count_and_add_nothing(tmp_path) -> None:
    """Lengths 10, 100 and 10 with an error: count 3, errors 1, total 110, min 10, max 100."""
    script = Script(step=10).call("zeInit")
    script.entry("zeInit")
    script.now += 90
    script.exit("zeInit").call("zeInit", "ZE_RESULT_ERROR_UNKNOWN")
    row = next(FAMILY.summarise("tally", script.open(tmp_path)).rows())
    assert (row["count"], row["errors"], row["total"], row["min"], row["max"], row["average"]) == (
        3,
        1,
        110,
        10,
        100,
        55,
    )


def test_only_errors(tmp_path) -> None:
    trace = Script().call("zeInit", "ZE_RESULT_ERROR_UNKNOWN").open(tmp_path)
    row = next(FAMILY.summarise("tally", trace).rows())
    assert (row["count"], row["errors"], row["total"], row["min"], row["max"], row["average"], row["share"]) == (
        1, 1, 0, None, None, None, None
    )  # fmt: skip


def test_sections(tmp_path) -> None:
    rows = list(FAMILY.summarise("tally", program().open(tmp_path)).rows())
    device = [(row["name"], row["count"], row["total"]) for row in rows if row["section"] == "device"]
    assert device == [("mma", 3, 60 * 80), ("zeCommandListAppendMemoryCopy(M2M)", 2, 30 * 80)]
    traffic = [(row["name"], row["count"], row["total"], row["max"]) for row in rows if row["section"] == "traffic"]
    assert traffic == [("zeCommandListAppendMemoryCopy(M2M)", 2, 1500, 1000)]
    host = {row["name"]: row["count"] for row in rows if row["section"] == "host"}
    assert host["zeCommandListAppendLaunchKernel"] == 3
    assert abs(sum(row["share"] for row in rows if row["section"] == "host") - 1) < 1e-9


def test_each_thread_and_device(tmp_path) -> None:
    rows = list(FAMILY.summarise("tally-each", program().open(tmp_path)).rows())
    copies = [row for row in rows if row["name"].endswith("(M2M)") and row["section"] == "device"]
    assert [(row["hostname"], row["process"], row["thread"], row["total"]) for row in copies] == [
        ("testhost", 10, 1, 800),
        ("testhost", 10, 2, 1600),
    ]
    assert {row["device"] for row in copies} == {"868000000000000000000000000000ab"}
    assert {row["device"] for row in rows if row["section"] == "host"} == {None}


def test_iprof_json(tmp_path) -> None:
    trace = program().open(tmp_path)
    found = json.loads(b"".join(tally.iprof_json(trace)))
    assert found["units"] == {"time": "ns", "size": "bytes"}
    assert found["device"]["mma"] == {"call": 3, "min": 800, "max": 2400, "time": 4800}
    assert found["traffic"] == {
        "zeCommandListAppendMemoryCopy(M2M)": {"call": 2, "min": 500, "max": 1000, "time": 1500}
    }
    assert found["host"]["1"]["zeCommandListAppendLaunchKernel"]["call"] == 3


def test_iprof_json_each(tmp_path) -> None:
    found = json.loads(b"".join(tally.iprof_json_each(program().open(tmp_path))))
    assert [sorted(part) for part in found["device"]] == [
        ["Device pointer", "Hostname", "Process", "Subdevice pointer", "Thread", "data"]
    ] * 2
    assert [part["Thread"] for part in found["traffic"]] == [1, 2]
    assert [sorted(part) for part in found["host"]["1"]] == [["Hostname", "Process", "Thread", "data"]] * 2


def test_iprof_text(tmp_path) -> None:
    lines = b"".join(tally.iprof_text(program().open(tmp_path))).decode().splitlines()
    titles = [line for line in lines if "Hostnames" in line]
    assert titles == [
        "BACKEND_ZE | 1 Hostnames | 1 Processes | 2 Threads | ",
        "Device profiling | 1 Hostnames | 1 Processes | 2 Threads | 1 Devices | 0 Subdevices | ",
        "Explicit memory traffic (BACKEND_ZE) | 1 Hostnames | 1 Processes | 2 Threads | ",
    ]
    mma = next(line for line in lines if line.strip().startswith("mma"))
    assert [cell.strip() for cell in mma.split("|")][:-1] == [
        "mma",
        "4.80us",
        "66.67%",
        "3",
        "1.60us",
        "800.00ns",
        "2.40us",
    ]
    assert sum(line.strip().startswith("Total") for line in lines) == 3


def test_units() -> None:
    assert [time_text(ns) for ns in (0, 1, 999, 1000, 10**6, 10**9, 6 * 10**10, 36 * 10**11)] == [
        "0ns", "1.00ns", "999.00ns", "1.00us", "1.00ms", "1.00s", "1.00min", "1.00h"
    ]  # fmt: skip
    assert [size_text(size) for size in (0, 5, 1000, 10**6, 10**9)] == ["0B", "5.00B", "1.00kB", "1.00MB", "1.00GB"]


def test_sums_beyond_64_bits(tmp_path) -> None:
    script = Script()
    for _ in range(3):
        script.call("zeContextMakeMemoryResident", ptr="0x10", size=(1 << 63) - 1)
    trace = script.open(tmp_path)
    assert [entry.total for entry in entries(trace) if entry.section == "traffic"] == [3 * ((1 << 63) - 1)]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=20))
def test_union_length(spans) -> None:
    covered = {moment for begin, length in spans for moment in range(begin, begin + length)}
    begin = np.array([begin for begin, _ in spans], np.int64)
    assert union_length(begin, begin + np.array([length for _, length in spans], np.int64)) == len(covered)


def test_command_line(tmp_path) -> None:
    (tmp_path / "run.thapi_text").write_bytes(program().text)

    def run(*arguments: str) -> bytes:
        command = [sys.executable, "-m", "lanescope", *arguments]
        return subprocess.run(command, check=True, capture_output=True, cwd=tmp_path).stdout

    found = json.loads(run("summary", "run.thapi_text", "--by", "tally", "--json"))
    assert (found["schema"], found["by"], found["rows"][0]["section"]) == ("lanescope.summary/1", "tally", "host")
    plain = json.loads(run("summary", "run.thapi_text", "--json"))
    assert [row["count"] for row in plain["rows"] if row["name"] == "mma"] == [3]
    assert (
        json.loads(run("convert", "run.thapi_text", "--format", "iprof_json", "-o", "-"))["device"]["mma"]["call"] == 3
    )


def test_other_families_are_refused() -> None:
    from lanescope.trace import TimeBase, TraceBuilder

    for by in [summary.name for summary in FAMILY.summaries]:
        with pytest.raises(UsageError):
            FAMILY.summarise(by, TraceBuilder(TimeBase()).finish())
