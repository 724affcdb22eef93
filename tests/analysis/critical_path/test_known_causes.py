"""Captures in which one cause is made to dominate: the path names it, for each family."""

import json

import pytest

import lanescope
from analysis.critical_path.paths import checked, longest
from lanescope.devices.ascend import schema as ascend_schema
from lanescope.devices.levelzero import schema as levelzero_schema
from lanescope.trace import TimeBase, TraceBuilder

# --- Level Zero and Ascend: the tables that their decoders make -----------------------------------------------------


def levelzero(operations, calls):
    """Return a trace of one thread and one queue: operations (begin, end, index of the submitting call), calls."""
    builder = TraceBuilder(TimeBase(), details=levelzero_schema.DETAILS)
    builder.input(capture="c", path="c", size=1, sha256="", family="levelzero", format="x")
    builder.add_bytes(decoded=1)
    thread = builder.track("thread", kind="lane", role="host_thread", input_id=0, nesting="nested")
    queue = builder.track("queue", kind="lane", role="queue", input_id=0, nesting="free")
    for begin, end, name in calls:
        builder.append("slices", track_id=[thread], ts=[begin], dur=[end - begin], name=name)
    for begin, end, call, kind in operations:
        each = builder.append("slices", track_id=[queue], ts=[begin], dur=[end - begin], name=f"{kind} of {call}")
        builder.append(
            "levelzero_operations",
            slice_id=each,
            kind=kind,
            function="f",
            execution_index=1,
            thread_track_id=thread,
            readback_track_id=thread,
            append_slice_id=call,
            submit_slice_id=call,
            append_ts=calls[call][0],
            submit_ts=calls[call][0],
            readback_ts=end,
            readback_seq=each,
            command_list=1,
            query_status="",
            error=False,
        )
        builder.append(
            "flows",
            kind="dispatch",
            src_track_id=[thread],
            src_ts=[calls[call][0]],
            dst_track_id=[queue],
            dst_ts=[begin],
            src_slice_id=[call],
            dst_slice_id=[each],
        )
    return builder.finish()


APPEND, WAIT = "zeCommandListAppendLaunchKernel", "zeCommandListHostSynchronize"


def test_levelzero_a_long_kernel_is_what_its_wait_is_for():
    trace = levelzero(
        [(30, 900, 0, "kernel"), (25, 60, 1, "copy")], [(0, 10, APPEND), (10, 20, APPEND), (20, 905, WAIT)]
    )
    path = checked(trace)
    assert [(row["cause"], row["kind"], row["dur"]) for row in path.parts.rows()] == [
        ("delay beyond", "launch", 30),
        ("work", "", 870),
        ("delay beyond", "inferred sync", 5),
    ]
    assert longest(path)["name"] == "kernel of 0"


def test_levelzero_operations_wait_for_barriers_and_barriers_for_those_before():
    operations = [(30, 500, 0, "kernel"), (505, 510, 1, "barrier"), (512, 560, 2, "kernel")]
    path = checked(levelzero(operations, [(0, 5, APPEND), (5, 10, APPEND), (10, 15, APPEND), (15, 570, WAIT)]))
    kinds = {row["kind"]: row for row in path.edges.rows()}
    assert (kinds["barrier"]["count"], kinds["barrier"]["binding"]) == (2, 2)
    assert (longest(path)["name"], longest(path)["dur"]) == ("kernel of 0", 470)


def test_levelzero_a_slow_host_is_named():
    operations = [(10, 20, 0, "kernel"), (810, 820, 2, "kernel")]
    calls = [(0, 5, APPEND), (5, 800, "zeModuleCreate"), (800, 805, APPEND), (805, 825, WAIT)]
    assert longest(checked(levelzero(operations, calls)))["name"] == "zeModuleCreate"


def test_levelzero_a_wait_of_a_thread_that_gave_nothing_has_no_cause():
    path = checked(levelzero([], [(0, 5, "zeInit"), (5, 900, WAIT)]))
    assert (longest(path)["cause"], longest(path)["name"]) == ("wait without cause", WAIT)


def ascend(kernels, phases, flows):
    """Return a trace of cores and schedulers; flows are (kind, row, ts, row, ts)."""
    builder = TraceBuilder(TimeBase(), details=ascend_schema.TABLES)
    builder.input(capture="c", path="c", size=1, sha256="", family="ascend", format="x")
    builder.add_bytes(decoded=1)
    rows, lanes = [], {}
    for name, begin, end, lane in [*kernels, *phases]:
        if lane not in lanes:
            role = "scheduler" if lane.startswith("s") else "core"
            lanes[lane] = builder.track(lane, kind="lane", role=role, input_id=0)
        builder.append("slices", track_id=[lanes[lane]], ts=[begin], dur=[end - begin], name=name)
        rows.append(lanes[lane])
    for kind, source, source_ts, target, target_ts in flows:
        builder.append(
            "flows",
            kind=kind,
            src_track_id=[rows[source]],
            src_ts=[source_ts],
            dst_track_id=[rows[target]],
            dst_ts=[target_ts],
            src_slice_id=[source],
            dst_slice_id=[target],
        )
    return builder.finish()


def test_ascend_a_long_kernel_between_dispatch_and_completion():
    kernels = [("matmul", 20, 800, "core 0"), ("add", 820, 850, "core 1")]
    phases = [
        ("dispatch", 0, 10, "s0"),
        ("complete", 803, 808, "s0"),
        ("dispatch", 808, 815, "s0"),
        ("complete", 853, 860, "s0"),
    ]
    flows = [
        ("dispatch", 2, 5, 0, 20),
        ("complete", 0, 800, 3, 805),
        ("dispatch", 4, 812, 1, 820),
        ("complete", 1, 850, 5, 856),
    ]
    path = checked(ascend(kernels, phases, flows))
    assert (longest(path)["cause"], longest(path)["name"], longest(path)["dur"]) == ("work", "matmul", 780)
    kinds = {row["kind"] for row in path.parts.rows()}
    assert kinds == {"", "dispatch", "complete"}


def test_ascend_a_slow_scheduler_between_short_kernels():
    kernels = [("matmul", 20, 30, "core 0"), ("add", 720, 730, "core 1")]
    phases = [
        ("dispatch", 0, 10, "s0"),
        ("complete", 32, 35, "s0"),
        ("resolve", 35, 700, "s0"),
        ("dispatch", 700, 710, "s0"),
    ]
    flows = [("dispatch", 2, 5, 0, 20), ("complete", 0, 30, 3, 33), ("dispatch", 5, 705, 1, 720)]
    path = checked(ascend(kernels, phases, flows))
    assert (longest(path)["name"], longest(path)["role"]) == ("resolve", "scheduler")


def test_ascend_a_completion_seen_late_by_a_scheduler_that_was_at_work_is_that_work():
    kernels = [("matmul", 20, 30, "core 0")]
    phases = [("dispatch", 0, 10, "s0"), ("complete", 25, 500, "s0")]
    path = checked(ascend(kernels, phases, [("dispatch", 1, 5, 0, 20), ("complete", 0, 30, 2, 490)]))
    assert (longest(path)["name"], longest(path)["dur"]) == ("complete", 475)


# --- Kineto ---------------------------------------------------------------------------------------------------------


def kineto(folder, *events, base=None):
    """Write and open a profile of rows (category, name, tid, ts, dur, args) in us."""
    found = [
        {
            "ph": "X",
            "cat": cat,
            "name": name,
            "pid": int(tid < 100),
            "tid": tid,
            "ts": ts,
            "dur": dur,
            "args": args,
        }
        for cat, name, tid, ts, dur, args in events
    ]
    content = {"schemaVersion": 1, "deviceProperties": [], "traceEvents": found, "traceName": "made.json"}
    if base is not None:
        content["baseTimeNanoseconds"] = base
    (folder / "made.json").write_text(json.dumps(content))
    return lanescope.open(folder / "made.json")


def call(name, ts, dur, correlation, tid=1):
    return "cuda_runtime", name, tid, ts, dur, {"correlation": correlation, "cbid": 1}


def gpu(name, stream, ts, dur, correlation, cat="kernel"):
    return cat, name, 100 + stream, ts, dur, {"correlation": correlation, "stream": stream, "device": 0}


def test_kineto_a_long_kernel_before_a_sync(tmp_path):
    path = checked(
        kineto(
            tmp_path,
            ("cpu_op", "aten::mm", 1, 0, 30, {}),
            call("cudaLaunchKernel", 10, 10, 7),
            gpu("big", 7, 25, 900, 7),
            call("cudaDeviceSynchronize", 40, 890, 8),
            ("cpu_op", "aten::item", 1, 935, 20, {}),
        )
    )
    top = longest(path)
    assert (top["cause"], top["name"], top["dur"]) == ("work", "big", 900_000)
    parts = [(row["cause"], row["kind"], row["dur"]) for row in path.parts.rows()]
    assert parts == [
        ("work", "", 10_000),
        ("delay beyond", "launch", 15_000),
        ("work", "", 900_000),
        ("delay beyond", "sync", 5_000),
        ("lane idle", "", 5_000),
        ("work", "", 20_000),
    ]


def test_kineto_a_slow_host_keeps_the_device_waiting(tmp_path):
    path = checked(
        kineto(
            tmp_path,
            call("cudaLaunchKernel", 0, 5, 1),
            gpu("small", 7, 10, 20, 1),
            ("cpu_op", "slow_python", 1, 5, 700, {}),
            call("cudaLaunchKernel", 705, 5, 2),
            gpu("small", 7, 715, 20, 2),
        )
    )
    assert (longest(path)["cause"], longest(path)["name"]) == ("work", "slow_python")


def test_kineto_a_call_that_copies_to_the_host_waits_in_itself(tmp_path):
    path = checked(
        kineto(
            tmp_path,
            call("cudaLaunchKernel", 0, 5, 1),
            gpu("before", 7, 10, 400, 1),
            call("cudaMemcpyAsync", 20, 480, 2),
            gpu("Memcpy DtoH (Device -> Pageable)", 7, 410, 50, 2, cat="gpu_memcpy"),
            ("cpu_op", "after", 1, 500, 5, {}),
        )
    )
    kinds = {row["kind"]: row for row in path.edges.rows()}
    assert kinds["copy return"]["binding"] == 1
    assert (longest(path)["name"], longest(path)["dur"]) == ("before", 400_000)


def test_kineto_streams_wait_for_recorded_events_of_others(tmp_path):
    waits = {"stream": 20, "device": 0, "correlation": 5, "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": 4}
    trace = kineto(
        tmp_path,
        call("cudaLaunchKernel", 0, 3, 1),
        gpu("producer", 7, 10, 500, 1),
        call("cudaEventRecord", 5, 1, 4),
        call("cudaStreamWaitEvent", 7, 1, 5),
        ("cuda_sync", "Stream Wait Event", 100 + 20, 7, 1, {**waits, "cuda_sync_kind": "Stream Wait Event"}),
        call("cudaLaunchKernel", 9, 3, 6),
        gpu("consumer", 20, 520, 10, 6),
    )
    path = checked(trace)
    kinds = {row["kind"]: row for row in path.edges.rows()}
    assert (kinds["stream wait"]["count"], kinds["stream wait"]["binding"]) == (1, 1)
    assert (longest(path)["cause"], longest(path)["name"]) == ("work", "producer")


def test_kineto_unrecorded_waits_only_where_they_are_asked_for(tmp_path):
    rows = [
        call("cudaLaunchKernel", 0, 3, 1),
        gpu("producer", 7, 10, 500, 1),
        call("cudaLaunchKernel", 9, 3, 6),
        gpu("consumer", 20, 512, 10, 6),
        gpu("begun", 20, 5, 1, 0),
    ]
    trace = kineto(tmp_path, *rows)
    assert "inferred stream wait" not in {row["kind"] for row in checked(trace).edges.rows()}
    path = checked(trace, infer=True)
    assert path.made.chance["inferred stream wait"][0] == 1
    assert (longest(path)["name"], longest(path)["dur"]) == ("producer", 500_000)
    assert path.longest.inferred > 0


#: A base of times as the profiler chooses them: profiles that have one share a clock.
BASE = 200 * 7_889_238 * 10**9


def rank(folder, number, begin, sequence=5, collective="allreduce"):
    """Return the profile of a rank that computes until a moment in us, and then takes part in a collective to 500."""
    folder = folder / str(number)
    folder.mkdir()
    shared = {"correlation": 2, "stream": 9, "device": 0}
    named = {"Collective name": collective, "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Rank": number}
    return kineto(
        folder,
        call("cudaLaunchKernel", 2, 3, 1),
        gpu(f"compute of {number}", 7, 10, begin - 20, 1),
        call("cudaLaunchKernel", begin - 12, 3, 2),
        ("kernel", "ncclDevKernel_AllReduce", 109, begin, 500 - begin, {**shared, **named, "Seq": sequence}),
        call("cudaLaunchKernel", 490, 3, 3),
        gpu(f"next of {number}", 9, 510, 100 - 10 * number, 3),
        base=BASE,
    )


def test_kineto_a_collective_waits_for_the_rank_that_begins_it_last(tmp_path):
    path = checked(lanescope.merge([rank(tmp_path, 0, 100), rank(tmp_path, 1, 420)]))
    names = path.trace.slices["name"]
    ((window,),) = [{row["window"] for row in path.parts.rows()}]
    assert window == ""
    work = {}
    for row in path.parts.rows():
        if row["cause"] == "work":
            work[names[row["slice_id"]]] = work.get(names[row["slice_id"]], 0) + row["dur"]
    # Rank 0 ends last; from 100 to 420 it waits inside its row, and what it waits for is the other rank.
    assert work["ncclDevKernel_AllReduce"] == 80_000
    assert "compute of 0" not in work
    (kind,) = [row for row in path.edges.rows() if row["kind"] == "collective"]
    assert (kind["count"], kind["binding"], kind["quality"]) == (1, 1, "exact")
    # Streams of the other rank with the same numbers are another device's.
    assert {row["kind"]: row["count"] for row in path.edges.rows()}["launch"] == 6


def test_kineto_collectives_of_other_numbers_are_not_joined(tmp_path):
    path = checked(lanescope.merge([rank(tmp_path, 0, 100), rank(tmp_path, 1, 420, sequence=6)]))
    assert {row["kind"]: row["count"] for row in path.edges.rows()}.get("collective", 0) == 0


@pytest.mark.parametrize(("collective", "count"), [("_allgather_base", 1), ("broadcast", 0), ("reduce", 0)])
def test_kineto_only_collectives_of_all_ranks_join_them(tmp_path, collective, count):
    """The root of a broadcast may be done before another rank begins: it did not wait for it."""
    ranks = [rank(tmp_path, number, begin, collective=collective) for number, begin in ((0, 100), (1, 420))]
    path = checked(lanescope.merge(ranks))
    assert {row["kind"]: row["count"] for row in path.edges.rows()}.get("collective", 0) == count


def test_kineto_a_call_of_one_rank_waits_for_nothing_of_another(tmp_path):
    def profile(number, length):
        folder = tmp_path / str(number)
        folder.mkdir()
        return kineto(
            folder,
            call("cudaLaunchKernel", 10, 10, 7),
            gpu(f"kernel of {number}", 7, 25, length, 7),
            call("cudaDeviceSynchronize", 40, 500, 8),
            base=BASE,
        )

    path = checked(lanescope.merge([profile(0, 100), profile(1, 400)]))
    graph, names = path.made.graph, path.trace.slices["name"]
    mine = graph.edges["kind"] == [kind.name for kind in graph.kinds].index("sync")
    sources = graph.nodes["row"][graph.edges["source"][mine]]
    assert sorted(names[path.made.slice_of[each]] for each in sources) == ["kernel of 0", "kernel of 1"]
