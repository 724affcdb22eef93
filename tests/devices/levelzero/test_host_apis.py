"""Calls of the other APIs that THAPI traces, as texts of our own: no real file of theirs is at hand."""

from __future__ import annotations

import json

import pytest

from devices.levelzero.helpers import Script, opened, stats
from lanescope.analysis import check
from lanescope.devices.levelzero.analysis.tally import iprof_json
from lanescope.devices.levelzero.export.bt_text import blocks
from lanescope.devices.levelzero.formats.detect import detect_text
from lanescope.devices.levelzero.formats.host_apis import HOST_APIS
from lanescope.source.detection import FileHead

#: Provider, function, its result field, a success, a failure as it is written and shown, and the backend's number.
CALLS = [
    ("lttng_ust_opencl", "clFinish", "errcode_ret_val", 0, -36, "OpenCL -36", 2),
    ("lttng_ust_cuda", "cuCtxSynchronize", "cuResult", "CUDA_SUCCESS", "CUDA_ERROR_UNKNOWN", "CUDA_ERROR_UNKNOWN", 3),
    ("lttng_ust_cuda_exports", "cuexpCtx", "cuResult", "CUDA_ERROR_NOT_READY", 700, "CUDA 700", 3),
    ("lttng_ust_cudart", "cudaMalloc", "cudaResult", "cudaSuccess", "cudaErrorUnknown", "cudaErrorUnknown", 3),
    ("lttng_ust_hip", "hipMalloc", "hipResult", "hipErrorNotReady", "hipErrorUnknown", "hipErrorUnknown", 6),
    ("lttng_ust_mpi", "MPI_Send", "mpiResult", 0, 15, "MPI 15", 7),
    *(
        (f"lttng_ust_{part}", f"{part}Thing", "zeResult", "ZE_RESULT_NOT_READY", 0x78000004, "0x78000004", 1)
        for part in ("zet", "zes", "zel", "zex")
    ),
]


def call(script: Script, provider: str, function: str, inside=lambda: None, **exit_fields) -> Script:
    script.record(f"{provider}:{function}_entry", handle="0x10")
    inside()
    return script.record(f"{provider}:{function}_exit", **exit_fields)


@pytest.mark.parametrize(("provider", "function", "field", "good", "bad", "shown", "backend"), CALLS)
def test_calls_of_every_api(provider, function, field, good, bad, shown, backend, tmp_path) -> None:
    script = Script()
    call(script, provider, function, lambda: call(script, provider, f"{function}In", **{field: good}), **{field: bad})
    call(script, provider, function)
    trace = script.open(tmp_path)
    slices = list(trace.slices.rows())
    assert [(row["name"], row["dur"], row["category"]) for row in slices] == [
        (function, 3000, "api"),
        (f"{function}In", 1000, "api"),
        (function, 1000, "api"),
    ]
    details = list(trace.details["levelzero_calls"].rows())
    assert [row["error"] for row in details] == [True, False, False]
    assert (details[0]["result"], details[2]["result"]) == (shown, None)
    row = next(trace.accounting.rows())
    assert (row["lost"], row["padding"], row["decoded"]) == (0, 0, len(script.text))
    written = b"".join(blocks(trace)).decode()
    assert written.count(f"backend = {backend}") == 3
    assert "levelzero_unknown_result" not in stats(trace)
    assert not [found for found in check.run(trace) if found.code == "LS002"]


def test_every_provider_is_shown() -> None:
    assert set(HOST_APIS) <= {provider for provider, *_ in CALLS}


def test_nested_apis_on_one_thread(tmp_path) -> None:
    script = Script()
    call(
        script,
        "lttng_ust_mpi",
        "MPI_Allreduce",
        lambda: call(
            script,
            "lttng_ust_cudart",
            "cudaMemcpy",
            lambda: call(script, "lttng_ust_cuda", "cuMemcpyDtoH_v2", cuResult="CUDA_SUCCESS"),
            cudaResult="cudaSuccess",
        ),
        mpiResult=0,
    )
    trace = script.open(tmp_path)
    assert [(row["name"], row["dur"]) for row in trace.slices.rows()] == [
        ("MPI_Allreduce", 5000),
        ("cudaMemcpy", 3000),
        ("cuMemcpyDtoH_v2", 1000),
    ]
    assert list(json.loads(b"".join(iprof_json(trace)))["host"]) == ["1", "3"]


def test_memory_of_copies(tmp_path) -> None:
    script = Script()
    script.record("lttng_ust_cuda:cuMemcpyHtoD_v2_entry", ByteCount=4096)
    script.record("lttng_ust_cuda:cuMemcpyHtoD_v2_exit", cuResult="CUDA_SUCCESS")
    script.record("lttng_ust_opencl:clEnqueueWriteBuffer_entry", size=64)
    script.record("lttng_ust_opencl:clEnqueueWriteBuffer_exit", errcode_ret_val=0)
    script.record("lttng_ust_opencl:clCreateBuffer_entry", size=64)
    script.record("lttng_ust_opencl:clCreateBuffer_exit", errcode_ret_val=0)
    assert [row["bytes"] for row in script.open(tmp_path).details["levelzero_calls"].rows()] == [4096, 64, None]


def test_results_that_are_none_are_lost(tmp_path) -> None:
    script = Script()
    for result in ("[ 1 ]", "a b", "9" * 30, "--1"):
        script.record("lttng_ust_mpi:MPI_Send_exit", mpiResult=result)
    assert stats(opened(script.text, tmp_path))["levelzero_invalid_field"] == 4


def test_a_text_without_level_zero_is_recognised() -> None:
    script = call(Script(), "lttng_ust_hip", "hipInit", hipResult="hipSuccess")
    head = FileHead(script.text, len(script.text), "run.txt")
    assert detect_text(head).score == 95


def openmp(script: Script, event: str, end: str, **fields) -> Script:
    return script.record(f"lttng_ust_ompt:ompt_callback_{event}", endpoint=end, **fields)


def test_scopes_of_openmp_are_calls(tmp_path) -> None:
    script = Script()
    openmp(script, "target_emi", "ompt_scope_begin", kind="ompt_target_enter_data")
    operation = {"optype": "ompt_target_data_transfer_to_device", "bytes": 64}
    openmp(script, "target_data_op_emi", "ompt_scope_begin", **operation)
    openmp(script, "target_data_op_emi", "ompt_scope_end", **operation)
    openmp(script, "target_emi", "ompt_scope_end", kind="ompt_target_enter_data")
    openmp(script, "target", "1", kind="ompt_target")
    openmp(script, "target_submit", "ompt_scope_beginend")
    openmp(script, "target", "2", kind="ompt_target")
    openmp(script, "sync_region", "ompt_scope_beginend", kind="ompt_sync_region_barrier_explicit")
    trace = script.open(tmp_path)
    assert [(row["name"], row["dur"]) for row in trace.slices.rows()] == [
        ("ompt_callback_target_emi:enter_data", 3000),
        ("ompt_callback_target_data_op_emi:transfer_to_device", 1000),
        ("ompt_callback_target:target", 2000),
        ("ompt_callback_target_submit", 0),
        ("ompt_callback_sync_region:barrier_explicit", 0),
    ]
    assert [row["bytes"] for row in trace.details["levelzero_calls"].rows()] == [None, 64, None, None, None]
    assert b"backend = 5" in b"".join(blocks(trace))
    assert list(json.loads(b"".join(iprof_json(trace)))["host"]) == ["1", "2"]
    assert not [found for found in check.run(trace) if found.code in ("LS002", "LS401")]


def test_callbacks_that_are_no_scopes_are_lost_and_named(tmp_path) -> None:
    script = openmp(Script(), "target", "ompt_scope_begin", kind="ompt_target")
    script.record("lttng_ust_ompt:ompt_callback_thread_begin", thread_type="ompt_thread_initial")
    openmp(script, "target", "ompt_scope_middle", kind="ompt_target")
    openmp(script, "target", "ompt_scope_end", kind="[ 1 ]")
    trace = script.open(tmp_path)
    assert {name: stats(trace)[name] for name in stats(trace) if name.endswith(("_field", "_record"))} == {
        "levelzero_unknown_record": 1,
        "levelzero_invalid_field": 2,
    }
    assert "lttng_ust_ompt:ompt_callback_thread_begin" in trace.tracks["name"].tolist()
