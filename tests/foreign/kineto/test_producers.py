"""What writers other than those of the shared files write, by the sources of the profiler."""

import json

import pytest

import lanescope
from lanescope.analysis import check
from lanescope.foreign.kineto.analysis.breakdown import breakdown
from lanescope.foreign.kineto.analysis.kernel_spans import kernel_spans


def row(category, name, ts, dur, pid, tid, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


@pytest.fixture
def opened(tmp_path):
    def read(events, **head):
        path = tmp_path / f"{len([*tmp_path.iterdir()])}.json"
        head = head or {"schemaVersion": 1, "baseTimeNanoseconds": 7_889_238 * 10**9 * 200}
        path.write_text(json.dumps({**head, "traceEvents": events}))
        return lanescope.open(path)

    return read


def lanes(trace):
    """The lane of each slice by its name, as group and lane."""
    tracks = {each["id"]: each for each in trace.tracks.rows()}

    def path(lane):
        return tracks[tracks[lane]["parent_id"]]["name"], tracks[lane]["name"], tracks[lane]["nesting"]

    return {each["name"]: path(each["track_id"]) for each in trace.slices.rows()}


def stats(trace):
    return {each["name"]: each["count"] for each in trace.stats.rows()}


XPU = [
    row("xpu_runtime", "urEnqueueKernelLaunch", 1, 2, 100, 200, correlation=5),
    row(
        "kernel", "gemm", 10, 5, 0, 3, device=0, correlation=5, kernel_id=3, sycl_invocation_id=4, context="0x00005581",
        **{"sycl queue": 3, "l0 queue": "0x0000558", "appended": "1.000", "appended_rel_to_start": "-9.000"},
    ),
    # Counters of a kernel lie around it as a kernel of its own, and as counter events.
    row("kernel", "metrics: gemm", 9.999, 5.002, 0, 3, kernel_id=3, queue="0x55", **{"GpuTime::ns": 4999}),
    {"ph": "C", "cat": "xpu_scope_profiler", "name": "xpu", "pid": 0, "tid": 3, "ts": 9.999, "args": {"EuActive": 0.5}},
    {"ph": "C", "cat": "xpu_scope_profiler", "name": "xpu", "pid": 0, "tid": 3, "ts": 15.001, "args": {"EuActive": 0}},
    row("xpu_runtime", "urEnqueueUSMMemcpy", 15, 2, 100, 200, correlation=9),
    row(
        "gpu_memcpy", "Memcpy M2D(M -> D)", 20, 3, 0, 3, device=0, correlation=9, bytes=96, context="0x00005581",
        **{"memory bandwidth (GB/s)": 0.032, "memory opration id": 3},
    ),
    row("xpu_sync", "zeCommandQueueSynchronize", 30, 5, -1, 200, correlation=10, Type="HOST_COMMAND_QUEUE"),
    row("overhead", "BUFFER_FLUSH", 30, 5, -1, 200),
    row("collective_comm", "xccl::allreduce", 40, 5, 100, 200, Communicator_id=77),
    {"ph": "M", "name": "process_name", "pid": -1, "tid": 0, "ts": 0, "args": {"name": "Overhead"}},
    {"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "ts": 0, "args": {"name": "python"}},
    {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "ts": 0, "args": {"labels": "XPU 0"}},
]  # fmt: skip


def test_rows_of_intel_devices_lie_where_they_ran(opened):
    trace = opened(XPU)
    assert lanes(trace) == {
        "urEnqueueKernelLaunch": ("python 100", "thread 200", "nested"),
        "gemm": ("XPU 0", "stream 3", "disjoint"),
        "metrics: gemm": ("XPU 0", "stream 3 other", "nested"),
        "urEnqueueUSMMemcpy": ("python 100", "thread 200", "nested"),
        "Memcpy M2D(M -> D)": ("XPU 0", "stream 3", "disjoint"),
        "zeCommandQueueSynchronize": ("python 100", "thread 200 waits", "nested"),
        "BUFFER_FLUSH": ("overhead", "overhead 200", "nested"),
        "xccl::allreduce": ("python 100", "thread 200", "nested"),
    }
    assert [each["value"] for each in trace.counters.rows()] == [0.5, 0.0]
    assert len(trace.flows) == 2
    assert stats(trace).keys() == {"kineto_device_clock"}
    assert check.run(trace) == []


def test_rows_that_carry_counters_are_no_work(opened):
    trace = opened(XPU)
    (found,) = breakdown(trace).rows()
    assert (found["rows"], found["compute_ns"], found["memory_ns"]) == (2, 5000, 3000)
    spans = kernel_spans(trace)
    assert spans is not None
    assert [*spans.name] == ["gemm"]


def test_a_wait_of_a_thread_of_several_processes_has_none(opened):
    trace = opened([*XPU, row("cpu_op", "aten::mm", 2, 1, 101, 200)])
    assert lanes(trace)["zeCommandQueueSynchronize"][:2] == ("Overhead -1", "thread 200 waits")


@pytest.mark.parametrize(("dur", "odd"), [(0, 0), (5, 1)])
def test_a_bandwidth_that_cannot_be_computed_is_odd_only_with_a_duration(opened, dur, odd):
    args = {"device": 0, "stream": 7, "bytes": 10, "memory bandwidth (GB/s)": "N/A"}
    trace = opened([row("gpu_memcpy", "Memcpy HtoD", 1, dur, 0, 7, **args)])
    assert stats(trace).get("kineto_odd_argument", 0) == odd


def test_a_context_of_a_stream_is_a_number(opened):
    trace = opened([row("kernel", "gemm", 1, 2, 0, 7, device=0, stream=7, context="0x55")])
    assert stats(trace)["kineto_odd_argument"] == 1


def test_streams_of_files_before_2022_are_named_once(opened):
    at = 1_616_000_000_000_000
    trace = opened(
        [
            row("Runtime", "cudaLaunchKernel", at, 5, 100, 100, correlation=7),
            row("Kernel", "gemm", at + 20, 30, 0, "stream 7", device=0, stream=7, correlation=7),
        ],
        schemaVersion=1,
        deviceProperties=[],
    )
    assert lanes(trace)["gemm"] == ("device 0", "stream 7", "disjoint")
    assert len(trace.flows) == 1


def test_numbers_of_processes_and_threads_are_the_same_in_quotes(opened):
    plain = [
        row("cpu_op", "aten::mm", 1.5, 2.25, 100, 100, correlation=1),
        row("cuda_runtime", "cudaLaunchKernel", 1.6, 0.5, 100, 100, correlation=7),
        row("kernel", "gemm", 10.001, 3, 0, 7, device=0, stream=7, correlation=7),
        row("kernel", "reduce", 20.001, 3, 0, 7, device=0, stream=7, correlation=8),
        {"ph": "i", "name": "[memory]", "pid": 100, "tid": 100, "ts": 3, "args": {"Total Allocated": 7}},
        {"ph": "M", "name": "thread_name", "pid": 100, "tid": 100, "args": {"name": "main"}},
    ]
    quoted = [
        {name: str(value) if name in ("pid", "tid", "ts", "dur") and at % 2 else value for name, value in event.items()}
        for at, event in enumerate(plain)
    ]
    wanted, found = opened(plain), opened(quoted)
    for name, table in wanted.tables().items():
        if name not in ("inputs", "accounting", "stats"):
            assert [*found.tables()[name].rows()] == [*table.rows()], name


def test_a_list_of_events_alone_is_read_as_the_file_that_it_was_cut_out_of(tmp_path):
    events = [
        row("cpu_op", "aten::mm", 1.5, 20, 100, 100, **{"External id": 5}),
        row("cuda_runtime", "cudaLaunchKernel", 1.6, 0.5, 100, 100, correlation=7),
        row("kernel", "gemm", 10.001, 3, 0, 7, device=0, stream=7, correlation=7),
    ]
    path = tmp_path / "list.json"
    path.write_text(json.dumps(events))
    trace = lanescope.open(path)
    assert [each["family"] for each in trace.inputs.rows()] == ["kineto"]
    assert len(trace.flows) == 1
    assert stats(trace)["kineto_missing_base"] == 1
