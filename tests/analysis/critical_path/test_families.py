"""Families bring their causes: parts of simulated captures and of profiles of others fill their windows."""

import os
from pathlib import Path

import numpy as np
import pytest

import lanescope
from analysis.critical_path.paths import checked, longest, shares, simulated
from lanescope.analysis.critical_path.answer import CriticalPath
from lanescope.analysis.critical_path.event_graph import CAUSES
from lanescope.analysis.critical_path.windows import WindowChoice
from lanescope.devices.cuda.schema import TABLES
from lanescope.trace import TimeBase, TraceBuilder

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
    roles = path.trace.tracks["role"]
    assert "flight" in set(roles[path.trace.slices["track_id"]].tolist())
    assert "flight" not in set(roles[path.made.graph.rows.lane].tolist())
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


def test_ascend_the_only_core_of_a_kind_is_what_the_run_waits_for(tmp_path):
    options = {"mix": 0, "spmd": 0, "speculative": 0, "dummy": 0, "alloc": 0, "producers": 0.0}
    path = checked(simulated(tmp_path, "ascend", tasks=200, aic=24, aiv=1, **options))
    tree = path.made.cache.time.tree
    work = {}
    for row in path.parts.rows():
        if row["cause"] == "work":
            work[row["track_id"]] = work.get(row["track_id"], 0) + row["dur"]
    lane = max(work, key=work.get)
    assert tree.names[lane] == "AIV_24"
    assert work[lane] > 0.8 * path.longest.length


def test_ascend_hand_overs_are_those_that_were_simulated(tmp_path):
    options = {"tasks": 150, "speculative": 0}
    truth = lanescope.simulate("ascend", seed=3, **options).truth
    path = checked(simulated(tmp_path, "ascend", **options))
    graph = path.made.graph
    ns = 1_000_000_000 // truth["clock"]
    rows = truth["rows"]
    wanted = {
        "dispatch": {(each - truth["base_cycles"]) * ns for each in rows["dispatch"]},
        "complete": {(each - truth["base_cycles"]) * ns for each in rows["end"]},
    }
    names = [kind.name for kind in graph.kinds]
    for kind, times in wanted.items():
        mine = np.flatnonzero(graph.edges["kind"] == names.index(kind))
        found = graph.time[graph.edges["source"][mine]].tolist()
        assert len(found) > 150
        assert set(found) <= times


# --- Level Zero -----------------------------------------------------------------------------------------------------


def test_levelzero_a_host_that_pauses_is_what_its_device_waits_for(tmp_path):
    found = {}
    for pause in (0, 5_000):
        folder = tmp_path / str(pause)
        folder.mkdir()
        found[pause] = checked(simulated(folder, "levelzero", ops=400, threads=1, pause_us=pause))
    assert shares(found[0])["lane idle"] < 0.05
    (first, *_) = found[5_000].summary.rows()
    assert (first["cause"], first["role"]) == ("lane idle", "host_thread")
    assert first["share"] > 0.8


def test_levelzero_a_call_waits_for_what_ended_last_before_it_returned(tmp_path):
    options = {"ops": 400, "threads": 1}
    truth = lanescope.simulate("levelzero", seed=3, **options).truth
    path = checked(simulated(tmp_path, "levelzero", **options))
    graph, epoch = path.made.graph, path.trace.time.epoch_ns - truth["start_ns"]
    ends = np.sort(np.array(truth["operations"]["end"]))
    mine = np.flatnonzero(graph.edges["kind"] == [kind.name for kind in graph.kinds].index("sync"))
    # Others had to end, too: the last of them counts.
    mine = mine[np.lexsort((graph.time[graph.edges["source"][mine]], graph.edges["target"][mine]))]
    mine = mine[np.diff(graph.edges["target"][mine], append=-1) != 0]
    returned = graph.time[graph.edges["target"][mine]] + epoch
    source = graph.time[graph.edges["source"][mine]] + epoch
    last = ends[np.searchsorted(ends, returned) - 1]
    assert len(mine) > 5
    assert np.abs(source - last).max() < 1_000  # times of the device are fitted to those of the host


def test_levelzero_waiting_calls_end_with_operations_that_their_thread_gave(tmp_path):
    path = checked(simulated(tmp_path, "levelzero", ops=600, threads=2))
    kinds = {row["kind"]: row for row in path.edges.rows()}
    (waited,) = path.trace.sql("select count(operation_slice_id) n from levelzero_waits").rows()
    assert kinds["sync"]["count"] >= kinds["sync"]["binding"] == waited["n"] > 0
    assert kinds["sync"]["quality"] == "exact"
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


# --- files of others ------------------------------------------------------------------------------------------------


def corpus(*names):
    return producers("..", "foreign", *names)


def producers(*names):
    folder = os.environ.get("LANESCOPE_CORPUS")
    if not folder:
        pytest.skip("LANESCOPE_CORPUS names no captures")
    found = Path(folder).joinpath("producers", *names)
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


@pytest.mark.parametrize("of", ["vec_l4", "pa_l3"])
def test_paths_of_the_producer_s_captures_do_not_end_in_closing_records(of):
    found = sorted(producers("ascend", of).glob("*/chip_swimlane_records.json"))
    assert found
    for capture in found:
        path = checked(lanescope.open(capture))
        assert path.longest.window.passed_over == 3
        assert path.longest.shares[CAUSES.index("no known cause")] < 0.05
        assert path.longest.explained > 0.1
