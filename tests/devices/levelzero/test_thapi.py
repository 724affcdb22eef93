"""THAPI's text in, THAPI's intervals out: its published pairs byte for byte, and our own."""

from __future__ import annotations

import subprocess
import sys

import pytest

import lanescope
from devices.levelzero.helpers import Script
from lanescope.devices.levelzero.export.bt_text import blocks, device_hash
from lanescope.devices.levelzero.family import FAMILY
from lanescope.errors import UsageError

PAIRS = ("API_call", "ignore", "normal")


def converted(path) -> bytes:
    command = [sys.executable, "-m", "lanescope", "convert", str(path), "--format", "bt_text_pretty", "-o", "-"]
    return subprocess.run(command, check=True, capture_output=True).stdout


@pytest.mark.parametrize("pair", PAIRS)
def test_published_pairs(pair, corpus) -> None:
    path = corpus / "thapi" / f"interval_profiling_{pair}.thapi_text_pretty"
    wanted = path.with_suffix(".bt_text_pretty").read_bytes()
    assert converted(path) == wanted
    assert b"".join(blocks(lanescope.open(path))) == wanted


def intervals(script: Script, tmp_path, name="run.thapi_text_pretty") -> list[str]:
    return b"".join(blocks(script.open(tmp_path, name))).decode().splitlines()


def host(name: str, ts: int, dur: int, error: str = "false", tid: int = 1) -> str:
    context = f'hostname = "testhost", vpid = 10, vtid = {tid}, ts = {1704110400000000000 + ts}, backend = 1'
    return f'lttng:host: {{ {context} }}, {{ name = "{name}", dur = {dur}, err = {error} }}'


def device(name: str, ts: int, dur: int, metadata: str = "{ordinal: 0, index: 0}", ids=(0, 0), error="false") -> str:
    context = f'hostname = "testhost", vpid = 10, vtid = 1, ts = {1704110400000000000 + ts}, backend = 1'
    content = f'name = "{name}", dur = {dur}, did = {ids[0]}, sdid = {ids[1]}, err = {error}, metadata = "{metadata}"'
    return f"lttng:device: {{ {context} }}, {{ {content} }}"


def test_resubmission_keeps_the_time_of_the_append(tmp_path) -> None:
    """One Append, two results, no execution seen: both stand at the Append, each with its own length."""
    script = Script(step=10_000_000).append("Barrier", 0x4).result(0x4, 0, 10).result(0x4, 100, 130)
    barrier = "zeCommandListAppendBarrier"
    assert intervals(script, tmp_path) == [host(barrier, 0, 20), device(barrier, 0, 10), device(barrier, 0, 30)]


def test_two_phases_of_one_event(tmp_path) -> None:
    script = Script(step=10_000_000)
    script.append("Barrier", 0x4).append("Barrier", 0x4)
    for length in (10, 30, 40, 50):
        script.result(0x4, 0, length)
    script.append("Barrier", 0x4).result(0x4, 0, 7).result(0x4, 0, 8)
    barrier = "zeCommandListAppendBarrier"
    assert intervals(script, tmp_path) == [
        host(barrier, 0, 20),
        host(barrier, 30, 20),
        *(device(barrier, ts, dur) for ts, dur in ((0, 10), (30, 30), (0, 40), (30, 50))),
        host(barrier, 100, 20),
        device(barrier, 100, 7),
        device(barrier, 100, 8),
    ]


def test_result_before_the_return(tmp_path) -> None:
    script = Script(step=10_000_000).entry("zeCommandListAppendBarrier", hCommandList=1, hSignalEvent=0)
    script.record("lttng_ust_ze_profiling:event_profiling", hEvent=4).result(4, 0, 10).exit(
        "zeCommandListAppendBarrier"
    )
    barrier = "zeCommandListAppendBarrier"
    assert intervals(script, tmp_path) == [device(barrier, 0, 10), host(barrier, 0, 30)]


def test_kernels_traffic_and_errors(tmp_path) -> None:
    script = Script(step=10_000_000)
    script.immediate(1, ordinal=2, index=1)
    script.call("zeKernelCreate", desc_val={"pKernelName": '"mma, 8"'}, out_phKernel_val=0x70)
    script.record("lttng_ust_ze_properties:kernel", hKernel=0x70, pKernelProperties_val={"maxSubgroupSize": 16})
    script.call("zeKernelSetGroupSize", hKernel=0x70, groupSizeX=4, groupSizeY=2, groupSizeZ=1)
    counts = {"groupCountX": 7, "groupCountY": 8, "groupCountZ": 9}
    script.append("LaunchKernel", 0x4, hKernel=0x70, pLaunchFuncArgs_val=counts).result(0x4, 0, 10)
    script.append("MemoryFill", 0x5, ptr="0x1000", size=64).result(0x5, 0, 11)
    script.append("Barrier", 0x6).result(0x6, 5, 9, status="ZE_RESULT_ERROR_DEVICE_LOST")
    engine = "{ordinal: 2, index: 1}"
    lines = intervals(script, tmp_path)
    assert lines[3:] == [
        host("zeCommandListAppendLaunchKernel", 70, 20),
        device("mma, 8", 70, 10, f"SIMD16, {{7,8,9}}, {{4,2,1}}, {engine}"),
        host("zeCommandListAppendMemoryFill", 110, 20),
        'lttng:traffic: { hostname = "testhost", vpid = 10, vtid = 1, ts = 1704110400000000110, backend = 1 }, '
        f'{{ name = "zeCommandListAppendMemoryFill(M)", size = 64, metadata = "{engine}" }}',
        device("zeCommandListAppendMemoryFill(M)", 110, 11, engine),
        host("zeCommandListAppendBarrier", 150, 20),
        device("zeCommandListAppendBarrier", 150, 4, engine, error="true"),
    ]


def test_signals_make_no_device_record(tmp_path) -> None:
    script = Script(step=10_000_000).append("SignalEvent", 0x4).result(0x4)
    assert intervals(script, tmp_path) == [host("zeCommandListAppendSignalEvent", 0, 20)]


def test_memory_calls_make_traffic(tmp_path) -> None:
    script = Script(step=10_000_000).call("zeContextMakeMemoryResident", ptr="0x1000", size=4096)
    context = 'hostname = "testhost", vpid = 10, vtid = 1, ts = 1704110400000000000, backend = 1'
    assert intervals(script, tmp_path)[1] == (
        f'lttng:traffic: {{ {context} }}, {{ name = "zeContextMakeMemoryResident", size = 4096, metadata = "" }}'
    )


def test_numbers_of_devices(tmp_path) -> None:
    """Of a sub-device its own number, then its root's: the names of the fields suggest the opposite."""
    script = Script(step=10_000_000).device(0xD0)
    about = {"timerResolution": 80, "timestampValidBits": 64, "kernelTimestampValidBits": 32, "subdeviceId": 1}
    about["uuid"] = "01000000-0000-0000-0200-000000000000"
    script.record("lttng_ust_ze_properties:subdevice", hDevice=0xD0, hSubDevice=0xD1, pDeviceProperties_val=about)
    script.immediate(1, 0xD0).immediate(2, 0xD1)
    script.append("Barrier", 0x4, cl=1).result(0x4, 0, 10).append("Barrier", 0x5, cl=2).result(0x5, 0, 10)
    lines = [line for line in intervals(script, tmp_path) if line.startswith("lttng:device")]
    root = device_hash("868000000000000000000000000000ab")
    assert [f"did = {root}, sdid = 0" in lines[0], f"did = 3, sdid = {root}" in lines[1]] == [True, True]


# --- the time of THAPI's tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "time", "expected"),
    [
        ("run.thapi_text_pretty", "auto", 10),
        ("run.thapi_text", "auto", 10_000_000),
        ("run.thapi_text_pretty", "exact", 10_000_000),
        ("run.thapi_text", "thapi", 10),
    ],
)
def test_when_fractions_shrink(name, time, expected, tmp_path) -> None:
    trace = Script(step=10_000_000).call("zeInit").open(tmp_path, name, time_format=time)
    assert trace.slices["dur"].tolist() == [expected]
    assert ("levelzero_thapi_time" in trace.stats["name"].tolist()) == (expected == 10)


def test_real_times_under_a_test_name_do_not_shrink(tmp_path) -> None:
    """Fractions that are no whole milliseconds are real times, whatever the file is called."""
    trace = Script(step=10_000_001).call("zeInit").open(tmp_path, "run.thapi_text_pretty")
    assert trace.slices["dur"].tolist() == [10_000_001]


def test_unknown_ways_are_refused(tmp_path) -> None:
    script = Script().call("zeInit")
    for option, value in (("time_format", "fast"), ("clock_tolerance_ms", -1.0), ("start_date", "yesterday")):
        with pytest.raises(UsageError, match=f"for --{option.replace('_', '-')}"):
            script.open(tmp_path, **{option: value})


def test_a_date_makes_the_time_absolute(tmp_path) -> None:
    trace = Script().call("zeInit").open(tmp_path, start_date="2026-03-01")
    assert (trace.time.epoch_kind, trace.time.epoch_ns) == ("unix", 1_772_323_200_000_000_000 + 12 * 3600 * 10**9)
    assert Script().call("zeInit").open(tmp_path).time.epoch_kind == "first_event"


def test_only_traces_of_this_family(tmp_path) -> None:
    from lanescope.trace import TimeBase, TraceBuilder

    foreign = TraceBuilder(TimeBase()).finish()
    for export in FAMILY.exports:
        with pytest.raises(UsageError):
            list(export.blocks(foreign))
