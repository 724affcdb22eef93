"""Operations that CUDA and OpenCL launched, from THAPI's text, as its interval plugins have them."""

from __future__ import annotations

import json

import pytest

import lanescope
from devices.levelzero import thapi_ctf
from devices.levelzero.helpers import Script, operations, stats
from lanescope.devices.levelzero.analysis.tally import iprof_json
from lanescope.devices.levelzero.emit.launch_tracks import numbers_of
from lanescope.devices.levelzero.export.bt_text import blocks
from lanescope.devices.levelzero.formats.fields import BadField
from lanescope.devices.levelzero.formats.text_launches import kind_of, nanoseconds
from lanescope.devices.levelzero.interpret.launched import Device


class Launches(Script):
    """A program of CUDA and OpenCL."""

    def cuda(self, function: str, inside=lambda: None, result="CUDA_SUCCESS", out=None, **fields) -> Launches:
        self.record(f"lttng_ust_cuda:{function}_entry", **fields)
        inside()
        return self.record(f"lttng_ust_cuda:{function}_exit", cuResult=result, **(out or {}))

    def opencl(self, function: str, inside=lambda: None, result=0, out=None, **fields) -> Launches:
        self.record(f"lttng_ust_opencl:{function}_entry", **fields)
        inside()
        return self.record(f"lttng_ust_opencl:{function}_exit", errcode_ret_val=result, **(out or {}))

    def context(self, handle: int, device: int) -> Launches:
        return self.cuda("cuCtxCreate_v2", flags=0, dev=device, out={"pctx_val": handle})

    def timed(self, function: str, event: int, **fields) -> Launches:
        return self.cuda(function, lambda: self.cuda_push(event), **fields)

    def cuda_push(self, event: int) -> Launches:
        return self.record("lttng_ust_cuda_profiling:event_profiling", hStart=event, hStop=event + 1)

    def cuda_result(self, event: int, ms="1.0", status="CUDA_SUCCESS", **more) -> Launches:
        fields = {"startStatus": "CUDA_SUCCESS", "stopStatus": 0, "status": status, "milliseconds": ms, **more}
        return self.record("lttng_ust_cuda_profiling:event_profiling_results", hStart=event, hStop=event + 1, **fields)

    def enqueued(self, function: str, event: int, queue: int = 0x9, **fields) -> Launches:
        return self.opencl(function, lambda: self.opencl_push(event), command_queue=queue, **fields)

    def opencl_push(self, event: int) -> Launches:
        return self.record("lttng_ust_opencl_profiling:event_profiling", status=0, event=event)

    def opencl_result(self, event: int, queued: int = 0, start: int = 0, end: int = 10, **given) -> Launches:
        fields = {"event": event, "event_command_exec_status": 0, "queued_status": 0, "queued": queued}
        fields |= {"submit_status": 0, "submit": queued, "start_status": 0, "start": start, "end_status": 0, "end": end}
        return self.record("lttng_ust_opencl_profiling:event_profiling_results", **{**fields, **given})


def measured(trace) -> list[tuple[str, int | None, str]]:
    tracks = list(trace.tracks.rows())
    return [
        (
            row["name"],
            row["dur"],
            f"{tracks[tracks[row['track_id']]['parent_id']]['name']}/{tracks[row['track_id']]['name']}",
        )
        for row in operations(trace)
    ]


def devices(trace) -> list[str]:
    return [line for line in b"".join(blocks(trace)).decode().splitlines() if line.startswith("lttng:device")]


def test_operations_of_cuda(tmp_path) -> None:
    script = Launches().context(0xC0, 3)
    script.cuda("cuModuleGetFunction", name_val='"mma"', out={"hfunc_val": 0x70})
    script.timed("cuLaunchKernel", 0x10, f=0x70, hStream=0).timed("cuMemcpyHtoD_v2", 0x20, ByteCount=400)
    script.timed("cuMemsetD8Async", 0x30, hStream=2).timed("cuLaunchHostFunc", 0x40, hStream=1)
    script.cuda_result(0x20, "0.0123").cuda_result(0x10).cuda_result(0x30).cuda_result(0x40)
    trace = script.open(tmp_path)
    where = "CUDA device 3/default stream"
    assert [row[:2] for row in measured(trace)] == [
        ("cuMemcpyHtoD_v2", 12299),
        ("mma", 1_000_000),
        ("cuMemsetD8Async", 1_000_000),
        ("cuLaunchHostFunc", 1_000_000),
    ]
    assert measured(trace)[1][2] == where
    rows = operations(trace)
    assert [row["kind"] for row in rows] == ["copy", "kernel", "fill", "other"]
    assert [row["quality"] for row in rows] == ["estimated"] * 4
    assert [row["ts"] - row["submit_ts"] for row in rows] == [0] * 4
    assert [row["global_start"] for row in rows] == [None] * 4
    assert stats(trace)["levelzero_launch_estimated"] == 4
    assert "levelzero_unknown_record" not in stats(trace)
    lines = devices(trace)
    assert 'backend = 3 }, { name = "mma", dur = 1000000, did = 3, sdid = 3, err = false, metadata = "" }' in lines[1]
    tally = json.loads(b"".join(iprof_json(trace)))
    assert tally["device"]["mma"] == {"call": 1, "min": 1_000_000, "max": 1_000_000, "time": 1_000_000}
    # A copy is counted once, as the call that asked for it.
    assert tally["traffic"] == {"cuMemcpyHtoD_v2": {"call": 1, "min": 400, "max": 400, "time": 400}}


def test_contexts_are_a_stack_of_their_thread(tmp_path) -> None:
    script = Launches().context(0xC0, 3).context(0xC1, 4)
    script.timed("cuLaunchHostFunc", 0x10).cuda_result(0x10)
    script.cuda("cuCtxPopCurrent_v2", out={"pctx_val": 0xC1}).timed("cuLaunchHostFunc", 0x10).cuda_result(0x10)
    script.cuda("cuCtxPushCurrent_v2", ctx=0xC1).timed("cuLaunchHostFunc", 0x10).cuda_result(0x10)
    script.cuda("cuCtxSetCurrent", ctx=0).timed("cuLaunchHostFunc", 0x10).cuda_result(0x10)
    script.cuda("cuCtxSetCurrent", result="CUDA_ERROR_INVALID_CONTEXT", ctx=0xC1)
    script.timed("cuLaunchHostFunc", 0x10).cuda_result(0x10)
    script.cuda("cuDevicePrimaryCtxRetain", dev=5, out={"pctx_val": 0xC5})
    script.tid = 2
    script.timed("cuLaunchHostFunc", 0x10).cuda_result(0x10)
    script.cuda("cuCtxSetCurrent", ctx=0xC5).timed("cuLaunchHostFunc", 0x10).cuda_result(0x10)
    script.cuda("cuCtxDestroy_v2", ctx=0xC5).timed("cuLaunchHostFunc", 0x10).cuda_result(0x10)
    trace = script.open(tmp_path)
    unknown = "CUDA, unknown device"
    assert [where.partition("/")[0] for *_, where in measured(trace)] == [
        *("CUDA device 4", "CUDA device 3", "CUDA device 4", "CUDA device 3", "CUDA device 3"),
        *(unknown, "CUDA device 5", unknown),
    ]
    assert stats(trace)["levelzero_launch_device"] == 2


def test_a_stream_belongs_to_the_context_that_it_was_made_in(tmp_path) -> None:
    script = Launches().context(0xC0, 3).cuda("cuStreamCreateWithPriority", out={"phStream_val": 0x55})
    script.context(0xC1, 4).timed("cuLaunchHostFunc", 0x10, hStream=0x55).cuda_result(0x10)
    script.tid = 2
    script.timed("cuMemcpyAsync", 0x10, hStream=0x55).cuda_result(0x10)
    script.timed("cuMemcpyAsync", 0x10, hStream=0x56).cuda_result(0x10)
    script.record("lttng_ust_cuda_properties:device", ordinal=0, device=3, name='"H200"', uuid="00" * 15 + "07")
    trace = script.open(tmp_path)
    assert [where for *_, where in measured(trace)] == [
        *["H200/stream 0x55"] * 2,
        "CUDA, unknown device/stream 0x56",
    ]
    assert [row["device_number"] for row in trace.details["levelzero_queues"].rows()] == [3, None]


def test_sizes_of_shaped_copies(tmp_path) -> None:
    shape = {"WidthInBytes": 16, "Height": 4}
    script = Launches().context(0xC0, 3).cuda("cuMemcpy2DAsync_v2", pCopy_val=shape, hStream=0)
    script.cuda("cuMemcpy3D_v2", pCopy_val={**shape, "Depth": 2})
    script.cuda("cuMemcpy3D_v2", pCopy_val={**shape, "Depth": 1 << 60})
    trace = script.open(tmp_path)
    assert [row["bytes"] for row in trace.details["levelzero_calls"].rows()] == [None, 64, 128]
    assert stats(trace)["levelzero_invalid_field"] == 1
    assert stats(trace)["levelzero_untimed"] == 2


def test_what_is_missing_is_counted(tmp_path) -> None:
    script = Launches().cuda_push(0x90).cuda_result(0x10).context(0xC0, 3)
    script.timed("cuLaunchKernel", 0x10, f=0x70).cuda_push(0x30).timed("cuLaunchHostFunc", 0x20)
    script.cuda("cuLaunchHostFunc", result="CUDA_ERROR_UNKNOWN").cuda("cuMemsetD8_v2")
    script.cuda_result(0x20, "0", status="CUDA_ERROR_UNKNOWN")
    trace = script.open(tmp_path)
    found = stats(trace)
    assert {
        name: found[name] for name in found if name not in ("levelzero_missing_date", "levelzero_launch_estimated")
    } == {
        "levelzero_push_ignored": 2,
        "levelzero_result_unmatched": 1,
        "levelzero_operation_unmatched": 1,
        "levelzero_untimed": 1,
        "levelzero_result_error": 1,
    }
    [row] = operations(trace)
    assert (row["name"], row["dur"], row["error"]) == ("cuLaunchHostFunc", None, True)
    assert "dur = 0, did = 3, sdid = 3, err = true" in devices(trace)[0]


def test_a_kernel_without_a_name_is_called_after_its_function(tmp_path) -> None:
    script = Launches().context(0xC0, 3).timed("cuLaunchKernel", 0x10, f=0x70).cuda_result(0x10)
    script.cuda("cuLibraryGetKernel", name_val="late", out={"pKernel_val": 0x70})
    script.timed("cuLaunchKernelEx", 0x10, f=0x70).cuda_result(0x10)
    trace = script.open(tmp_path)
    assert [row[0] for row in measured(trace)] == ["cuLaunchKernel", "late"]
    assert stats(trace)["levelzero_unnamed_kernel"] == 1


@pytest.mark.parametrize("text", ["", "-1.0", "nan", "inf", "1e13", "1_0", "0x1", ".5", "1.0ms", "\u0661"])
def test_lengths_that_are_none(text, tmp_path) -> None:
    with pytest.raises(BadField):
        nanoseconds(text)
    script = Launches().context(0xC0, 3).timed("cuLaunchHostFunc", 0x10).cuda_result(0x10, text)
    assert stats(script.open(tmp_path))["levelzero_invalid_field"] == 1


# --- OpenCL -------------------------------------------------------------------------------------------------------


def test_operations_of_opencl(tmp_path) -> None:
    script = Launches().opencl("clGetDeviceIDs", out={"num_devices_val": 1, "devices_vals": [0xD0]})
    script.opencl(
        "clCreateSubDevices", in_device=0xD0, out={"num_devices_ret_val": 2, "out_devices_vals": [0xD1, 0xD2]}
    )
    script.opencl("clCreateSubDevices", in_device=0xD1, out={"num_devices_ret_val": 1, "out_devices_vals": [0xD3]})
    for queue, device in ((0x9, 0xD0), (0xA, 0xD3), (0xB, 0xE0)):
        script.opencl("clCreateCommandQueueWithProperties", device=device, out={"command_queue": queue})
    script.record("lttng_ust_opencl_arguments:kernel_info", kernel=0x70, function_name='"mma"', num_args=0)
    script.enqueued("clEnqueueNDRangeKernel", 0x10, kernel=0x70).enqueued("clEnqueueReadBuffer", 0x11, 0xA, size=64)
    script.enqueued("clEnqueueFillBuffer", 0x12, 0xB, size=8).enqueued("clEnqueueBarrier", 0x13, 0xC)
    for event in (0x10, 0x11, 0x12, 0x13):
        script.opencl_result(event, 100, 150, 175)
    trace = script.open(tmp_path)
    assert measured(trace) == [
        ("mma", 25, "OpenCL device 0xd0/queue 0x9"),
        ("clEnqueueReadBuffer", 25, "sub-device 0xd3/queue 0xa"),
        ("clEnqueueFillBuffer", 25, "OpenCL device 0xe0/queue 0xb"),
        ("clEnqueueBarrier", 25, "OpenCL, unknown device/queue 0xc"),
    ]
    rows = operations(trace)
    assert [row["kind"] for row in rows] == ["kernel", "copy", "fill", "other"]
    assert [row["ts"] - row["submit_ts"] for row in rows] == [50] * 4
    assert (rows[0]["global_start"], rows[0]["global_end"], rows[0]["context_start"]) == (150, 175, None)
    numbers = [line.partition("did = ")[2].partition(", err")[0] for line in devices(trace)]
    assert numbers == ["208, sdid = 208", "208, sdid = 211", "224, sdid = 0", "0, sdid = 0"]


def test_results_may_come_before_the_announcement(tmp_path) -> None:
    """As fast drivers do: again and again with one handle, and with an ordinary one in between."""
    script = Launches()

    def fast(event: int, length: int) -> None:
        script.opencl("clEnqueueMarker", lambda: script.opencl_result(event, 0, 0, length), command_queue=9)
        script.opencl_push(event)

    fast(0x10, 1)
    fast(0x10, 2)
    script.enqueued("clEnqueueMarker", 0x10).opencl_result(0x10, 0, 0, 3).enqueued("clEnqueueMarker", 0x11)
    fast(0x10, 4)
    script.opencl_result(0x11, 0, 0, 5)
    trace = script.open(tmp_path)
    assert [row["dur"] for row in operations(trace)] == [1, 2, 3, 4, 5]
    assert not {"levelzero_result_unmatched", "levelzero_operation_unmatched"} & set(stats(trace))


def test_a_result_of_an_earlier_program_is_not_taken(tmp_path) -> None:
    script = Launches().opencl_result(0x10, 0, 0, 7).enqueued("clEnqueueMarker", 0x10).opencl_result(0x10, 0, 0, 8)
    trace = script.open(tmp_path)
    assert [row["dur"] for row in operations(trace)] == [8]
    assert stats(trace)["levelzero_result_unmatched"] == 1


def test_failures_and_impossible_times_of_opencl(tmp_path) -> None:
    script = Launches()
    script.enqueued("clEnqueueMarker", 0x10).opencl_result(0x10, queued_status=-58)
    script.enqueued("clEnqueueMarker", 0x11).opencl_result(0x11, queued_status=-2)
    script.enqueued("clEnqueueMarker", 0x12).opencl_result(0x12, 0, 9, 8)
    script.enqueued("clEnqueueMarker", 0x13).opencl_result(0x13, 9, 8, 10)
    script.enqueued("clEnqueueMarker", 0x14).opencl_result(0x14, 0, 10, 10**9)
    trace = script.open(tmp_path)
    rows = operations(trace)
    assert [(row["error"], row["dur"]) for row in rows] == [
        *((True, None), (False, 10), (False, None), (False, None), (False, 10**9 - 10)),
    ]
    assert rows[0]["query_status"] == "OpenCL -58"
    # The end of the last one is after its result was read.
    assert (stats(trace)["levelzero_launch_time"], stats(trace)["levelzero_result_error"]) == (3, 1)


def test_launches_by_ctf_are_those_by_text(tmp_path) -> None:
    script = Launches().context(0xC0, 3).cuda("cuModuleGetFunction", name_val='"mma"', out={"hfunc_val": 0x70})
    script.timed("cuLaunchKernel", 0x10, f=0x70, hStream=0).cuda_result(0x10, "2")
    script.timed("cuMemcpy2D_v2", 0x20, pCopy_val={"WidthInBytes": 16, "Height": 4}).cuda_result(0x20, "1")
    script.cuda("cuMemcpy3DPeer", pCopy_val={"WidthInBytes": 16, "Height": 4, "Depth": 2})
    script.cuda("cuMemcpy2D", pCopy_val=[1, 2, 3])
    script.opencl("clGetDeviceIDs", out={"num_devices_val": 1, "devices_vals": [0xD0]})
    script.opencl("clCreateCommandQueue", device=0xD0, out={"command_queue": 9})
    script.record("lttng_ust_opencl_arguments:kernel_info", kernel=0x70, function_name='"k"')
    script.enqueued("clEnqueueNDRangeKernel", 0x10, kernel=0x70).opencl_result(0x10, 100, 150, 175)
    thapi_ctf.write(script.text, tmp_path / "ctf")
    text, ctf = script.open(tmp_path), lanescope.open(tmp_path / "ctf")
    assert measured(ctf) == measured(text)
    assert len(measured(ctf)) == 3
    assert devices(ctf) == devices(text)
    sizes = [[row["bytes"] for row in trace.details["levelzero_calls"].rows()] for trace in (text, ctf)]
    assert sizes[0] == sizes[1]
    assert sizes[0][3:6] == [64, 128, None]
    assert "levelzero_invalid_field" not in stats(ctf)


def test_two_processes_share_nothing(tmp_path) -> None:
    script = Launches()
    for pid, device in ((10, 1), (20, 2)):
        script.pid = pid
        script.context(0xC0, device).cuda("cuModuleGetFunction", name_val=f"k{pid}", out={"hfunc_val": 0x70})
    for pid in (10, 20):
        script.pid = pid
        script.timed("cuLaunchKernel", 0x10, f=0x70)
    for pid in (20, 10):
        script.pid = pid
        script.cuda_result(0x10, str(pid))
    assert measured(script.open(tmp_path)) == [
        ("k20", 20_000_000, "CUDA device 2/default stream"),
        ("k10", 10_000_000, "CUDA device 1/default stream"),
    ]


def test_kinds_of_functions() -> None:
    kinds = {"clEnqueueTask": "kernel", "clEnqueueNativeKernel": "other", "clEnqueueSVMMigrateMem": "copy"}
    kinds |= {"cuMemPrefetchAsync": "copy", "clEnqueueMemsetINTEL": "fill", "clEnqueueMemcpyINTEL": "copy"}
    assert {name: kind_of(name) for name in kinds} == kinds


def test_numbers_of_devices() -> None:
    assert numbers_of(Device(process=0, api=1, number=None, parent=None)) == (0, 0)
