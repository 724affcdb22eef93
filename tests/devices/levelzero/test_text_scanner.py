"""The native scanner says what the reference reader says, which judges every line, however a text is damaged or cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from devices.levelzero.helpers import SUCCESS, Script, plain, simulated
from devices.levelzero.test_launches import Launches
from effort import some
from lanescope.devices.levelzero.formats.text_reader import ReferenceTextReader
from lanescope.devices.levelzero.formats.text_scanner import TextReader
from lanescope.devices.levelzero.simulate.encode_text import encode
from lanescope.devices.levelzero.simulate.simulator import simulate_events

READERS = (TextReader, ReferenceTextReader)


def read(reader: ReferenceTextReader, pieces: Sequence[bytes]) -> tuple[object, object, object]:
    """All that a reader says of a text that comes in pieces: report, rows, texts in the order of their codes."""
    for piece in pieces:
        reader.feed(piece)
    tables = reader.finish()
    rows = {name: list(table.rows()) for name, table in tables.items()}
    texts = {
        (name, column.name): table.column(column.name).dictionary.texts
        for name, table in tables.items()
        for column in table.spec.columns
        if column.type == "text"
    }
    return plain(reader.report), rows, texts


def assert_same(content: bytes, cuts: Sequence[int] = ()) -> None:
    edges = [0, *sorted(cut % (len(content) + 1) for cut in cuts), len(content)]
    pieces = [content[begin:end] for begin, end in pairwise(edges)]
    assert read(TextReader(), pieces) == read(ReferenceTextReader(), [content])


def of_tools() -> bytes:
    """Scopes of OpenMP, events and tasks of ITT: names that come late, change, or are missing; ends of nothing."""
    script = Script()

    def itt(event: str, /, **fields) -> None:
        script.record(f"lttng_ust_itt:__itt_{event}", **fields)

    def ompt(event: str, end: object, **fields) -> None:
        script.record(f"lttng_ust_ompt:ompt_callback_{event}", endpoint=end, **fields)

    for turn in range(30):
        script.pid, script.tid = 10 + turn % 2, 1 + turn % 3
        itt("event_end", event=turn % 5)
        for number in (turn % 5, 1, turn % 3):
            itt("event_start", ittResult=0, event=number)
        if turn % 7 == 3:
            itt("event_create", ittResult=turn % 5, name_val=f'"event {turn}"')
            itt("string_handle_create", ittResult=0x90 + turn % 3, str_val=f'"task {turn}"')
        for number in (turn % 3, 1):
            itt("event_end", ittResult=0, event=number)
        itt("task_end", domain=turn % 4)
        for handle in (0x90, 0x91, 0x92, 0x93):
            itt("task_begin", domain=turn % 2, taskid="{ d1: 1, d2: 2 }", name=handle, name__strA_val='"of the record"')
        itt("task_begin", domain=1, name="x")
        itt("task_end", domain=turn % 2)
        itt("task_end", domain=turn % 2)
        for kind in ("ompt_target", "ompt_target_enter_data", "ompt_target_emi", "2"):
            ompt("target_emi", "ompt_scope_begin", kind=kind, device_num=turn)
            ompt("target_data_op_emi", "ompt_scope_beginend", optype=kind, bytes=turn, kind="ompt_target")
            ompt("target_data_op_emi", 1, optype=kind, bytes=turn if turn % 4 else -1)
            ompt("target_data_op_emi", 2, optype=kind, bytes=turn)
            ompt("target_emi", "ompt_scope_end" if turn % 5 else "9", kind=kind if turn % 6 else '""')
        ompt("sync_region", 3)
    return script.text


def of_launches() -> bytes:
    """Launches of CUDA and OpenCL, each kind of record several times, and what the scanner leaves to the reference."""
    script = Launches().context(0xC0, 3)
    for event in (0x10, 0x20, 0x30):
        script.cuda("cuModuleGetFunction", name_val=f"k{event}", out={"hfunc_val": 0x70})
        script.timed("cuLaunchKernel", event, f=0x70, hStream=event).cuda_result(event, "0.0123")
        script.timed("cuMemcpyHtoD_v2", event, ByteCount=event).cuda_result(event, "1e-05")
        script.timed("cuMemcpy2D_v2", event, pCopy_val={"WidthInBytes": 4, "Height": event})
        script.cuda_result(event, status="CUDA_ERROR_UNKNOWN").cuda_result(event, "1e13").cuda_result(event, "7")
        script.cuda("cuLaunchHostFunc").cuda("cuMemsetD8_v2", hStream="x").cuda("cuCtxSetCurrent", ctx=0xC0)
        script.cuda("cuLaunchHostFunc", result=600).cuda("cuCtxGetCurrent", result="CUDA_ERROR_NOT_READY")
        script.opencl("clCreateCommandQueue", device=0xD0, out={"command_queue": 0x9})
        script.enqueued("clEnqueueNDRangeKernel", event, kernel=0x71).opencl_result(event, 5, event, 90)
        script.enqueued("clEnqueueReadBuffer", event, size=event).opencl_result(event, end_status=-2)
        script.opencl_result(event, submit_status="CL_SUCCESS").opencl_result(event, submit_status=-9)
        script.opencl("clEnqueueMarker").opencl("clFinish", command_queue=9, result=-2)
        script.record("lttng_ust_opencl_arguments:kernel_info", kernel=0x71, function_name='"k"')
    for event in range(40):
        script.timed("cuLaunchKernel", event, f=0x70, hStream=event).cuda_result(event, "0.0123")
        script.enqueued("clEnqueueNDRangeKernel", event, kernel=0x71).opencl_result(event, 5, event, 90)
    return script.text


@cache
def of_the_simulator(style: str) -> bytes:
    events, _ = simulate_events(simulated(style=style, ops=150, processes=2, lost=0.02), 3)
    return encode(events)


def of_thapi() -> bytes:
    """Calls of all kinds as THAPI writes them, each twice: the scanner knows a kind once it was read."""
    script = Script().device().immediate(1).regular(2).pair(5)
    for event in (0x10, 0x11, 0x12):
        counts = {"groupCountX": 1, "groupCountY": 2, "groupCountZ": event}
        script.call("zeKernelCreate", desc_val={"pKernelName": f'"kernel {event}"'}, out_phKernel_val=0x70)
        script.append("LaunchKernel", event, hKernel=0x70, pLaunchFuncArgs_val=counts).result(event)
        script.append("LaunchKernel", event, hKernel=0x70, groupCounts=counts)
        script.append("MemoryCopy", event, size=event, dstptr=0x100, srcptr=0x200).result(event)
        script.append("MemoryFill", event, size=event, ptr=0x100)
        script.append("Barrier", event, phWaitEvents_vals=[1, 2])
        entry = {"hCommandList": 1, "hSignalEvent": event, "numWaitEvents": 3, "phWaitEvents_vals": [5, 0, 7, 8]}
        script.call("zeCommandListAppendMemoryRangesBarrier", **entry)
        script.call("zeCommandListAppendQueryKernelTimestamps", **entry)
        script.append("SignalEvent", event)
        script.execute(0x9, 2, 1, inside=lambda: script.call("zeMemFree", ptr=0x100))
        for fence in (event, 0):
            script.execute(0x9, 2, 1, fence=fence).call("zeFenceHostSynchronize", hFence=event)
        script.entry("zeCommandQueueExecuteCommandLists", hCommandQueue=7, phCommandLists_vals=[1, 2], hFence=event)
        for memory in ("Shared", "Device", "Host"):
            script.call(f"zeMemAlloc{memory}", size=64, out_pptr_val=event << 8)
            script.call(f"zeMemAlloc{memory}", "ZE_RESULT_ERROR", size=64, out_pptr_val=event << 8)
        script.call("zeMemFree", ptr=event << 8).call("zeMemFree", ptr=0).call("zeEventDestroy", hEvent=event)
        script.entry("zeEventDestroy", hEvent=0x7777).call("zeKernelSetGroupSize", hKernel=0x70)
        script.call("zeCommandListReset", hCommandList=2).call("zeCommandListDestroy", hCommandList=2)
        script.call("zeDeviceGetMemoryProperties", size=event).call("zeKernelDestroy", hKernel=0x70)
        script.call("zeModuleGetGlobalPointer", hModule=3, out_pptr_val=event << 16, out_pSize_val=8)
        script.call("zeModuleDestroy", hModule=3).record("other:thing", a=1)
        script.record("lanescope_ze:lost", op_id=1, run=1, reason='"why"')
        script.record("lanescope_ze:clock_pair", device=1, host_ns=event, device_ticks=9, error_ns=4).pair(event)
        script.op(event, "MemoryCopy", how='"INLINE"', bytes=9, dst='"device"', src='""', signal=5, waits=[6, 0, 7])
        script.harvest(event).list_run(1, event)
        script.tid = 3 - script.tid
    return script.text


def over_lines(content: bytes) -> bytes:
    """A field a line, as iprof prints records today."""
    lines = []
    for line in content.decode().splitlines():
        head, payload = line.split(": { ", 1)
        fields = payload.strip().removesuffix("}").strip().replace(", ", ",\n  ")
        lines.append(f"{head}: {{\n  {fields}\n}}\n")
    return "".join(lines).encode()


def of_other_apis() -> bytes:
    """Calls of the other APIs: results by name and by number, none, sizes, calls within calls, kinds that are lost."""
    script = Script()
    for number in range(4):
        for provider, function, field, results in (
            ("opencl", "clEnqueueReadBuffer", "errcode_ret_val", (0, -5, "CL_SUCCESS")),
            ("cuda", "cuMemcpyHtoD_v2", "cuResult", ("CUDA_SUCCESS", "CUDA_ERROR_NOT_READY", 700, 0)),
            ("cuda_exports", "cuexpThing", "cuResult", ("CUDA_SUCCESS",)),
            ("cudart", "cudaMalloc", "cudaResult", ("cudaSuccess", 2)),
            ("hip", "hipMemcpy", "hipResult", ("hipSuccess", 1, "hipErrorNotReady")),
            ("mpi", "MPI_Send", "mpiResult", (0, 15)),
            ("zes", "zesDeviceGetState", "zeResult", (SUCCESS, 1, 0)),
        ):
            for result in results:
                script.record(f"lttng_ust_{provider}:{function}_entry", size=number, ByteCount=64, comm="0x44")
                script.record("lttng_ust_cuda:cuInit_entry").record("lttng_ust_cuda:cuInit_exit")
                script.record(f"lttng_ust_{provider}:{function}_exit", **{field: result, "out_val": number})
        script.record("other:thing", a=1)
        for end in ("begin", "end", "beginend", "9"):
            script.record("lttng_ust_ompt:ompt_callback_target", kind="ompt_target", endpoint=f"ompt_scope_{end}")
        script.record("lttng_ust_ompt:ompt_callback_thread_begin", thread_type=1)
        script.tid = 3 - script.tid
    return script.text


def of_creations() -> bytes:
    """Lists and queues that are made: with all fields or few, in vain, within each other, with bad handles."""
    script = Script()
    flags = (0, 2, 8, 10, "ZE_COMMAND_QUEUE_FLAG_IN_ORDER", (1 << 32) - 1, 1 << 32, "[ 0x2 ]", "x-1")
    kinds = (
        ("zeCommandListCreate", "desc_val", "commandQueueGroupOrdinal", "phCommandList_val"),
        ("zeCommandListCreateImmediate", "altdesc_val", "ordinal", "phCommandList_val"),
        ("zeCommandQueueCreate", "desc_val", "ordinal", "phCommandQueue_val"),
    )
    # The second entries are taken by the scanner, the first exits by the reference.
    for function, group, ordinal, handle in kinds:
        for flag in (0, 10, 8 if "Immediate" in function else 2):
            script.entry(function, hContext=3, hDevice=4, **{group: {ordinal: 5, "index": 6, "flags": flag}})
        for number in range(3):
            script.exit(function, **{handle: number})
    for turn in range(4):
        for function, group, ordinal, handle in kinds:
            for number, flag in enumerate((*flags[:6], *flags) if turn else flags[:4]):
                about = {ordinal: number, "index": number + 1, "flags": flag}
                some = {name: about[name] for place, name in enumerate(about) if number + turn >> place & 1}
                out = {f"out_{handle}": number + 1} if number != 5 else {}
                if number == 7:
                    out["out_other"] = 1
                given = {"hContext": 7, "hDevice": 0xD0} if number % 3 else {}
                result = SUCCESS if number != 4 else "ZE_RESULT_ERROR"
                other, *_ = kinds[number % 3]
                script.call(function, result, lambda: script.call("zeInit"), **given, **{group: about}, **out)
                script.call(function, **given, **{group: some}, **out)
                script.exit(function, phCommandList_val=number, phCommandQueue_val=number)
                script.entry(other, **{group: "{ }" if turn % 2 else "x"}).entry(function, hDevice=1, hContext=2)
                script.exit(other, **{handle: 0x9000 + number}).exit(function, **{handle: "none"})
        script.tid = 3 - script.tid
    return script.text


SOURCES: dict[str, Callable[[], bytes]] = {
    "creations": cache(of_creations),
    "numbered": lambda: of_the_simulator("numbered"),
    "thapi": lambda: of_the_simulator("thapi"),
    "calls": cache(of_thapi),
    "other apis": cache(of_other_apis),
    "over lines": cache(lambda: over_lines(of_thapi())),
    "launches": cache(of_launches),
    "tools": cache(of_tools),
}


@pytest.mark.parametrize("source", SOURCES)
def test_undamaged_text(source) -> None:
    content = SOURCES[source]()
    assert_same(content)
    assert_same(content.replace(b"\n", b" \r\n"), [1000, 1001, 5000])


@pytest.mark.parametrize("source", SOURCES)
def test_most_lines_are_taken_natively(source, monkeypatch) -> None:
    """Else the comparisons here would compare the reference with itself."""
    judged = []
    judge = ReferenceTextReader._line
    monkeypatch.setattr(
        ReferenceTextReader, "_line", lambda self, line, size: (judged.append(line), judge(self, line, size))
    )
    content = SOURCES[source]() * 3
    TextReader().feed(content)
    assert len(judged) < content.count(b"\n") * 0.3


#: What damage puts into a text: parts of records where they do harm.
PARTS = [
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b": ",
    b" - ",
    b"\n",
    b"\0",
    b"\xc3\xa9",
    b"\xff",
    b" ",
    b"\t",
    b"0x",
    b"9",
]
PARTS += [b"hSignalEvent: 1, hCommandList: 2, ", b", size: 3", b"24:00:00.0 - ", b"\x7f", b"a: 1, ", b"-", b"true"]
damages = st.lists(
    st.tuples(st.integers(0, 1 << 20), st.integers(0, 3), st.one_of(st.sampled_from(PARTS), st.binary(max_size=3))),
    max_size=12,
)
cuts = st.lists(st.integers(0, 1 << 20), max_size=3)


@settings(max_examples=some(600))
@given(st.sampled_from(sorted(SOURCES)), st.integers(0, 1 << 20), damages, cuts)
def test_damaged_text(source, begin, damages, cuts) -> None:
    lines = SOURCES[source]().splitlines(keepends=True)
    begin %= len(lines)
    content = b"".join([*lines[begin : begin + 60], *lines[begin : begin + 60]])
    for place, gone, new in damages:
        place %= len(content) + 1
        content = content[:place] + new + content[place + gone :]
    assert_same(content, cuts)


HEAD = b"12:00:00.%09d - h - vpid: 1, vtid: 1 - "
fields = st.sampled_from([b"", b"hEvent: 1", b"size: 7", b"hCommandList: 2", b"a: { b: 1, b: 2 }", b"zeResult: 1"])
kinds = st.sampled_from(
    [
        b"zeEventDestroy",
        b"zeCommandListAppendMemoryCopy",
        b"zeMemAllocHost",
        b"zeInit",
        b"zeCommandListAppendWaitOnEvents",
    ]
)
records = st.tuples(
    kinds,
    st.sampled_from([b"_entry", b"_exit"]),
    st.lists(st.one_of(fields, fields, st.binary(max_size=6)), max_size=3).map(b", ".join),
)


@settings(max_examples=some(600))
@given(st.lists(records, max_size=25), cuts)
@example([(b"zeInit", b"_entry", b"")], [3])
def test_records_of_any_fields(written, cuts) -> None:
    text = b"".join(
        HEAD % place + b"lttng_ust_ze:" + name + end + b": { " + content + b" }\n"
        for place, (name, end, content) in enumerate(written)
    )
    assert_same(text * 2, cuts)


results = st.sampled_from(
    ["0", "-0", "00", "-5", "5", "MPI 5", "CUDA 5", "0x5", "CL_SUCCESS", '"0"', "", "x-1", "9" * 21]
)
other_calls = st.tuples(
    st.sampled_from(
        ["opencl:clFinish", "cuda:cuMemcpy", "cudart:cudaFree", "hip:hipFree", "mpi:MPI_Send", "ze:zeInit"]
    ),
    st.sampled_from(["errcode_ret_val", "cuResult", "cudaResult", "hipResult", "mpiResult", "zeResult"]),
    results,
)


@settings(max_examples=some(600))
@given(st.lists(other_calls, max_size=25), cuts)
def test_results_of_any_api(written, cuts) -> None:
    text = b"".join(
        HEAD % place + f"lttng_ust_{name}_exit: {{ {field}: {result} }}\n".encode()
        for place, (name, field, result) in enumerate(written)
    )
    assert_same(text * 2, cuts)


@given(st.binary(max_size=400), cuts)
def test_random_bytes(content, cuts) -> None:
    assert_same(content, cuts)
    assert_same(of_thapi_begin() + content, cuts)


@cache
def of_thapi_begin() -> bytes:
    return b"".join(SOURCES["calls"]().splitlines(keepends=True)[:20])


def test_nested_calls_are_forgotten_alike() -> None:
    """Beyond the deepest nesting the oldest call is given up, whichever reader knows of it."""
    script = Script()
    for number in range(300):
        script.entry("zeEventDestroy", hEvent=number).entry("zeKernelGetName", hKernel=number)
    for _ in range(300):
        script.exit("zeKernelGetName", pName_val='"k"').exit("zeEventDestroy")
    assert_same(script.text)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("cut", [0, 1, 1 << 19, (1 << 20) + 5])
def test_a_line_too_long_is_lost_however_it_is_cut(reader, cut) -> None:
    """It was taken if it came in one piece."""
    lines = Script().call("zeInit").text.splitlines(keepends=True)
    content = lines[0] + lines[1].replace(b"{", b"{" + b" " * (1 << 20)) + lines[0]
    read = reader()
    read.feed(content[:cut])
    read.feed(content[cut:])
    assert len(read.finish()["calls"]) == 2
    assert read.report.notes == {"levelzero_invalid_line": 1}
