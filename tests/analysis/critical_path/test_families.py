"""Families name causes that are known: simulated captures fill their windows, and made ones have one dominant cause."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import lanescope
from lanescope.analysis.critical_path.answer import CriticalPath
from lanescope.analysis.critical_path.event_graph import CAUSES
from lanescope.analysis.critical_path.windows import WindowChoice
from lanescope.devices.cuda.schema import TABLES
from lanescope.trace import TimeBase, TraceBuilder


def simulated(folder, family, **options):
    simulation = lanescope.simulate(family, seed=3, **options)
    for name, content in simulation.files.items():
        (folder / name).write_bytes(content)
    return lanescope.open(folder / next(iter(simulation.files)))


def checked(trace, **options):
    """Return the path of a trace, whose parts fill its windows and whose replay is the trace."""
    path = CriticalPath(trace, **options)
    for each in path.paths:
        parts = each.parts
        assert int((parts.end - parts.begin).sum()) == each.length
        assert (parts.begin[1:] == parts.end[:-1]).all()
        assert len(parts.begin) == 0 or parts.begin[0] == each.window.begin
    graph = path.made.graph
    for bound in ("low", "nominal", "high"):
        assert graph.replay(bound=bound).tolist() == graph.time.tolist()
    assert min(graph.slack().tolist()) >= 0
    return path


def shares(path):
    return {cause: share for cause, share in zip(CAUSES, path.longest.shares, strict=True) if share}


SIMULATED = {
    "kineto": [{}, {"steps": 3, "overlaps": 3, "early": 4, "clamped": 3, "unlaunched": 5, "unexecuted": 4}],
    "cuda": [
        {"layout": "ls2", "across": True, "blocks": 12, "sms": 3},
        {"layout": "ls2", "across": True, "blocks": 8, "sms": 4, "holes": 3, "unfinished": 2},
        {"layout": "tirx", "blocks": 8, "crossing": 2, "clock_step": 2, "unfinished": 2},
        {"layout": "tirx", "blocks": 6, "overflow": True},
        {"layout": "tirx", "blocks": 4, "stale": 3, "launches": 2},
    ],
    "ascend": [
        {"tasks": 150},
        {"tasks": 150, "format_version": "v4", "epochs": 3},
        {"tasks": 150, "clock_steps": 2, "drop_aicore": 5, "drop_phases": 5, "violations": 4},
        {"tasks": 150, "format_version": "v1a"},
    ],
    "levelzero": [{"ops": 500}, {"ops": 500, "processes": 2, "lost": 0.05}],
}


@pytest.mark.parametrize(
    ("family", "options"), [(family, options) for family, several in SIMULATED.items() for options in several]
)
def test_parts_fill_windows_of_simulated_captures(tmp_path, family, options):
    checked(simulated(tmp_path, family, **options))


# --- CUDA -----------------------------------------------------------------------------------------------------------


def test_cuda_blocks_wait_for_their_sm(tmp_path):
    trace = simulated(tmp_path, "cuda", layout="ls2", blocks=24, sms=2)
    found = shares(checked(trace))
    assert found.get("no known cause", 0) < 0.01
    assert found["resource"] > 0
    bare = lanescope.Trace(trace.time, trace.tables(), {})  # nothing says which SM a lane is of
    assert shares(checked(bare))["no known cause"] > 0.5


def test_cuda_an_asynchronous_load_is_what_computing_waits_for(tmp_path):
    path = checked(simulated(tmp_path, "cuda", layout="ls2", across=True, blocks=2, sms=1, tiles=20))
    rows = list(path.summary.rows())
    assert (rows[0]["cause"], rows[0]["name"], rows[0]["role"]) == ("work", "fetch", "async")
    kinds = {row["kind"]: row for row in path.edges.rows()}
    assert kinds["signal"]["binding"] > 0
    assert kinds["issue"]["count"] == 40
    assert kinds["issue"]["unplaced"] == 0


def test_cuda_each_launch_has_a_path_and_blocks_of_one_sm_follow_each_other():
    builder = TraceBuilder(TimeBase(), details=TABLES)
    builder.input(capture="c", path="c", size=1, sha256="", family="cuda", format="x")
    builder.add_bytes(decoded=1)
    lanes = [builder.track(f"{n}", kind="lane", role="group", input_id=0, nesting="nested") for n in range(2)]
    rows = [(0, 0, 0, 0, 10), (0, 0, 0, 10, 14), (1, 0, 1, 16, 30), (0, 1, 0, 100, 120), (1, 1, 1, 121, 150)]
    for lane, launch, block, begin, end in rows:
        each = builder.append("slices", track_id=[lanes[lane]], ts=[begin], dur=[end - begin], name=f"{launch}.{block}")
        builder.append(
            "cuda_regions",
            slice_id=[each],
            launch=launch,
            block=block,
            group=0,
            sm=7,
            event_id=0,
            begin_slot=0,
            end_slot=0,
        )
    path = checked(builder.finish())
    assert [(w.window.name, w.window.begin, w.window.end) for w in path.paths] == [
        ("launch 0", 0, 30),
        ("launch 1", 100, 150),
    ]
    assert [(row["window"], row["cause"], row["dur"]) for row in path.parts.rows()] == [
        ("launch 0", "work", 10),
        ("launch 0", "work", 4),
        ("launch 0", "resource", 2),
        ("launch 0", "work", 14),
        ("launch 1", "work", 20),
        ("launch 1", "resource", 1),
        ("launch 1", "work", 29),
    ]
    chosen = CriticalPath(path.trace, WindowChoice(name="launch 1"))
    assert chosen.paths[0].window == path.paths[1].window


# --- Ascend ---------------------------------------------------------------------------------------------------------


def test_ascend_each_epoch_has_a_path_and_idle_time_between_them_is_none_of_it(tmp_path):
    path = checked(simulated(tmp_path, "ascend", tasks=150, format_version="v4", epochs=3))
    assert [each.window.name for each in path.paths] == ["epoch 1", "epoch 2", "epoch 3"]
    whole = checked(path.trace, choice=WindowChoice(begin=0))
    assert shares(path).get("lane idle", 0) < shares(whole).get("lane idle", 1)


def test_ascend_executions_in_flight_are_views_and_schedulers_wait_for_what_they_complete(tmp_path):
    path = checked(simulated(tmp_path, "ascend", tasks=200))
    roles = path.trace.tracks["role"][path.parts["track_id"]]
    assert "flight" not in roles
    kinds = {row["kind"]: row for row in path.edges.rows()}
    assert set(kinds) >= {"dependency", "dispatch", "complete", "submit"}
    assert min(kinds[kind]["binding"] for kind in ("dependency", "dispatch", "complete")) > 0
    assert path.longest.explained > 0.5


def test_ascend_a_serial_chain_of_tasks_is_on_its_path(tmp_path):
    # Each task waits for several before it: cores are free, so what the path shows is work on cores and hand-overs.
    options = {"producers": 6.0, "spmd": 0, "mix": 0, "speculative": 0}
    path = checked(simulated(tmp_path, "ascend", tasks=120, **options))
    by_role = {}
    for row in path.summary.rows():
        by_role[row["role"]] = by_role.get(row["role"], 0) + (row["dur"] if row["cause"] == "work" else 0)
    assert by_role["core"] > sum(by_role.values()) / 2


# --- Level Zero -----------------------------------------------------------------------------------------------------


def test_levelzero_waiting_calls_end_with_operations_that_their_thread_gave(tmp_path):
    path = checked(simulated(tmp_path, "levelzero", ops=600, threads=2))
    kinds = {row["kind"]: row for row in path.edges.rows()}
    assert kinds["sync"]["binding"] == kinds["sync"]["count"] > 0
    assert kinds["sync"]["quality"] == "inferred"
    assert kinds["launch"]["count"] > 0
    assert kinds["barrier"]["count"] > 0
    graph = path.made.graph
    edges, rows = graph.edges, graph.rows
    mine = edges["kind"] == [kind.name for kind in graph.kinds].index("sync")
    sources = graph.nodes["row"][edges["source"][mine]]
    operations = path.trace.details["levelzero_operations"]
    thread = np.full(len(path.trace.slices), -1)
    submits = operations["submit_slice_id"]
    owners = path.trace.slices["track_id"][np.ma.filled(submits, 0)]
    thread[operations["slice_id"]] = np.where(np.ma.getmaskarray(submits), operations["thread_track_id"], owners)
    targets = graph.nodes["row"][edges["target"][mine]]
    assert (thread[path.made.slice_of[sources]] == rows.lane[targets]).all()
    assert "wait without cause" not in shares(path)


# --- Kineto ---------------------------------------------------------------------------------------------------------


def kineto(folder, *events):
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
    (folder / "made.json").write_text(json.dumps(content))
    return lanescope.open(folder / "made.json")


def call(name, ts, dur, correlation, tid=1):
    return "cuda_runtime", name, tid, ts, dur, {"correlation": correlation, "cbid": 1}


def gpu(name, stream, ts, dur, correlation, cat="kernel"):
    return cat, name, 100 + stream, ts, dur, {"correlation": correlation, "stream": stream, "device": 0}


def longest(path):
    return max(path.summary.rows(), key=lambda row: row["dur"])


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


# --- files of others ------------------------------------------------------------------------------------------------


def corpus(*names):
    folder = os.environ.get("LANESCOPE_CORPUS")
    if not folder:
        pytest.skip("LANESCOPE_CORPUS names no captures")
    found = Path(folder).joinpath("foreign", *names)
    if not found.exists():
        pytest.skip(f"no {found.name} in LANESCOPE_CORPUS")
    return found


def test_profiles_of_others_are_filled():
    for path in sorted(corpus("hta").parent.glob("*/*.json.gz")):
        try:
            trace = lanescope.open(path)
        except lanescope.LanescopeError:
            continue  # no profile: the folders hold other files, too
        if len(trace.slices):
            checked(trace)


def test_the_second_forward_pass_of_simple_add():
    trace = lanescope.open(corpus("hta", "critical_path_simple_add.json.gz"))
    names = trace.slices["name"]
    annotation = [row for row, name in enumerate(names) if "measure|forward" in name][1]
    begin, end = trace.slices["ts"][annotation], trace.slices["ts"][annotation] + trace.slices["dur"][annotation]
    whole = CriticalPath(trace)
    rows = whole.made.graph.rows
    inside = (rows.begin >= begin) & (rows.begin < end)
    first, last = int(rows.begin[inside].min()), int(rows.end[inside].max())
    assert last - first == 242_881_000
    path = checked(trace, choice=WindowChoice(begin=first, end=last))
    top = longest(path)
    assert (top["cause"], top["name"], top["dur"]) == ("work", "cudaMalloc", 235_418_000)
    assert round(top["share"], 3) == 0.969
    relu = next(row for row in np.flatnonzero(inside).tolist() if names[path.made.slice_of[row]] == "aten::relu_")
    own = [
        (names[row["slice_id"]], row["dur"])
        for row in path.parts.rows()
        if rows.begin[relu] <= row["ts"] < rows.end[relu]
    ]
    assert own == [
        ("aten::relu_", 15_000),
        ("aten::clamp_min_", 14_000),
        ("cudaLaunchKernel", 17_000),
        ("aten::clamp_min_", 15_000),
        ("aten::relu_", 32_000),
    ]
