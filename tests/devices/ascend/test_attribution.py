"""Attribution against loops: every cycle of every core, every pair of blocks, every change of a counter."""

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from devices.ascend.helpers import decode, dependencies, golden, graph, lane, read, records, stats, text
from effort import some
from lanescope.analysis import check
from lanescope.devices.ascend.emit.aggregates import Sums
from lanescope.devices.ascend.formats.files import read_deps
from lanescope.devices.ascend.interpret import attribution, consistency, thread_time
from lanescope.devices.ascend.interpret.attribution import IDLE_PARTS
from lanescope.devices.ascend.interpret.clock_steps import clock_steps
from lanescope.devices.ascend.interpret.resolve import Interpreter
from lanescope.devices.ascend.interpret.scheduler_overhead import COUNTERS, overhead
from lanescope.devices.ascend.interpret.sidecars import Sidecars
from lanescope.devices.ascend.interpret.thread_time import thread_times

CORES = ("aic", "aiv", "aiv")


@st.composite
def captures(draw):
    """Return a small capture and its graph: stamps in any order, rows lost on either side, some tasks in blocks."""
    stamp = st.integers(1, 60)
    tasks = draw(st.integers(1, 6))
    is_new, has_receive = draw(st.booleans()), draw(st.booleans())
    aicore, aicpu = [], []
    for counter in range(1, draw(st.integers(1, 9)) + 1):
        core, task = draw(st.integers(0, 2)), draw(st.integers(1, tasks))
        start = draw(st.integers(20, 60))
        row = [core, task, counter, start, start + draw(st.integers(0, 15))]
        kept = draw(st.sampled_from(["both", "both", "both", "core", "scheduler"]))
        if kept != "scheduler":
            aicore.append([*row, draw(st.integers(0, 15))] if has_receive else row)
        if kept != "core":
            aicpu.append([core, counter, draw(stamp), draw(stamp)])
    submits = [
        {"submit_idx": n, "task_id": task, "start_cycles": 1, "end_cycles": draw(stamp)}
        for n, task in enumerate(draw(st.lists(st.integers(1, tasks), max_size=tasks)))
    ]
    pairs = draw(st.lists(st.tuples(st.integers(1, tasks), st.integers(1, tasks)), max_size=8))
    content = records(
        aicore,
        aicpu,
        level=4,
        key="chip_swimlane_level" if is_new else "l2_swimlane_level",
        cores=CORES,
        aicpu_orchestrator_phases=[submits],
    )
    return content, graph(dict.fromkeys(range(1, tasks + 1), (0, 0, -1)), pairs)


def understand(content, deps):
    """Interpret a capture with its graph."""
    parts = Sidecars(read_deps(text(json.dumps(deps).encode()), "deps.json"))
    return Interpreter(read(content), parts)


def rows_of(runs):
    """Return the executions as dicts, with the place of each."""
    names = ("core", "core_type", "task", "dispatch", "receive", "start", "end", "ready", "judged")
    columns = {name: getattr(runs, name).tolist() for name in names}
    return [{"at": at, **{name: columns[name][at] for name in names}} for at in range(len(runs))]


def what_for(row, submitted, free, x):
    """Return what a core that is free since ``free`` waits for at ``x``, when ``row`` is next: by the definition."""

    def clamped(stamp, least=free):
        return min(max(stamp, least), row["start"]) if stamp > 0 else least

    ready = clamped(row["ready"])
    if x < ready:
        return "dependency"
    go = max(ready, clamped(submitted))
    if x < go:
        return "submit"
    if not row["dispatch"]:
        return "unknown"
    if x < max(go, clamped(row["dispatch"])):
        return "dispatch" if row["ready"] or submitted else "unknown"
    if not row["receive"] or x < clamped(row["receive"]):
        return "propagation"
    return "setup"


@given(captures())
@settings(max_examples=some(300))
def test_every_cycle_of_every_core(capture):
    told = understand(*capture)
    # Suspect rows are not judged by the order of their stamps: all of them make the window.
    sums = Sums(told, np.arange(len(CORES)), np.ones(len(told.runs), np.bool_))
    found = sums.cores
    rows = rows_of(told.runs)
    if not rows:
        assert not found.busy.any()
        assert not found.idle.any()
        return
    begin, end = min(row["start"] for row in rows), max(row["end"] for row in rows)
    assert (found.begin, found.end) == (begin, end)
    lost = list(zip(told.lost.core.tolist(), told.lost.begin.tolist(), told.lost.end.tolist(), strict=True))
    for core in range(len(CORES)):
        mine = [row for row in rows if row["core"] == core]
        counts = dict.fromkeys(("busy", *IDLE_PARTS), 0)
        gone = 0
        for x in range(begin, end):
            if any(row["start"] <= x < row["end"] for row in mine):
                counts["busy"] += 1
                continue
            following = [row for row in mine if row["start"] > x]
            gone += any(c == core and low <= x < high for c, low, high in lost)
            if not following:
                counts["trailing_idle"] += 1
            else:
                row = min(following, key=lambda row: (row["start"], row["end"], row["at"]))
                free = max([begin, *(other["end"] for other in mine if other["start"] <= x)])
                counts[what_for(row, int(sums.submitted[row["task"]]), free, x)] += 1
        assert dict(zip(IDLE_PARTS, found.idle[core].tolist(), strict=True)) | {"busy": int(found.busy[core])} == counts
        assert found.lost[core] == gone
        assert found.overlap[core] == sum(row["end"] - row["start"] for row in mine) - counts["busy"]
        assert found.busy[core] + found.idle[core].sum() == end - begin


#: Every execution ends after it was seen to, so none is left that no step of a clock makes suspect.
ALL_SUSPECT = (
    records(
        [[0, 1, n, 20, 20] for n in (1, 2, 3)],
        [[0, n, 1, 1] for n in (1, 2, 3)],
        level=4,
        cores=CORES,
        aicpu_orchestrator_phases=[[]],
    ),
    graph({1: (0, 1, -1)}, []),
)


@given(captures(), st.sampled_from([50_000_000, 33_000_000, 1_000_000_000]))
@settings(max_examples=some(60))
@example(ALL_SUSPECT, 50_000_000)
def test_the_parts_add_up_in_nanoseconds_too(capture, clock):
    content, deps = capture
    content["metadata"]["clock_freq_hz"] = clock
    cores = decode(content, deps=deps).details["ascend_cores"]
    for unit in ("ns", "ticks"):
        parts = sum(cores[f"{name}_{unit}"] for name in ("busy", *IDLE_PARTS))
        assert parts.tolist() == cores[f"window_{unit}"].tolist()
        assert all((cores[f"{name}_{unit}"] >= 0).all() for name in IDLE_PARTS)


def test_executions_that_are_all_suspect_leave_no_sound_ends():
    content, deps = ALL_SUSPECT
    told = understand(content, deps)
    suspect = clock_steps(told.runs).suspect
    assert suspect.all()
    kept = attribution.check_dependencies(told.graph, told.runs, suspect)
    assert (kept.sound.last.tolist(), kept.sound.first.tolist()) == ([-1], [-1])
    assert (kept.ends.last.tolist(), kept.ends.first.tolist()) == ([0], [0])
    assert stats(decode(content, deps=deps)) == {"ascend_clock_step": 1}


@given(captures())
@settings(max_examples=some(200))
def test_every_edge_and_every_pair_of_blocks(capture):
    told = understand(*capture)
    kept = attribution.check_dependencies(told.graph, told.runs, np.zeros(len(told.runs), np.bool_))
    rows = rows_of(told.runs)
    for edge, (pred, succ) in enumerate(zip(told.graph.pred.tolist(), told.graph.succ.tolist(), strict=True)):
        ends = [row["end"] for row in rows if row["task"] == pred]
        begins = [row["judged"] for row in rows if row["task"] == succ]
        assert kept.judged[edge] == bool(ends and begins)
        pairs = sum(end > begin for end in ends for begin in begins)
        assert kept.violated[edge] == (pairs > 0)
        assert kept.pairs[edge] == pairs
        assert kept.slack[edge] == (min(begins) - max(ends) if ends and begins else 0)


@given(captures())
@settings(max_examples=some(60))
def test_arrows_of_blocks_are_all_pairs(capture):
    content, deps = capture
    plain, blocks = decode(content, deps=deps), decode(content, deps=deps, arrows="block")
    edges = blocks.details["ascend_edges"]
    assert edges["arrows"].sum() == len(dependencies(blocks))
    told = understand(content, deps)
    sizes = np.bincount(told.runs.task, minlength=len(told.graph))
    pairs = sizes[told.graph.pred] * sizes[told.graph.succ]
    assert edges["arrows"][pairs > 0].tolist() == pairs[pairs > 0].tolist()
    backward = blocks.flows["dst_ts"] < blocks.flows["src_ts"]
    assert backward.sum() == edges["violated_pairs"].sum()
    for name in ("is_violated", "violated_pairs", "slack_ticks", "pred_task_id"):
        assert edges[name].tolist() == plain.details["ascend_edges"][name].tolist()
    # One arrow an edge runs backwards where the edge is violated.
    one = plain.details["ascend_edges"]
    drawn = one.valid("flow_id") & one.valid("is_violated")
    flows = one["flow_id"][drawn]
    assert (plain.flows["dst_ts"] < plain.flows["src_ts"])[flows].tolist() == one["is_violated"][drawn].tolist()


def test_too_many_pairs_are_one_arrow(monkeypatch):
    from lanescope.devices.ascend.emit import flows as arrows

    monkeypatch.setattr(arrows, "MAX_BLOCK_ARROWS", 5)
    rows = [[0, 1, n, 10 * n, 10 * n + 5, 0] for n in range(1, 4)] + [
        [1, 2, 1, 100, 110, 0],
        [1, 3, 2, 120, 130, 0],
        [1, 3, 3, 140, 150, 0],
    ]
    trace = decode(records(rows, level=1), deps=graph({}, [(1, 3), (1, 2)]), arrows="block")
    assert trace.details["ascend_edges"]["arrows"].tolist() == [1, 3]
    assert stats(trace)["ascend_flows_merged"] == 1


# --- the overhead counters ----------------------------------------------------------------------------------------


def value_at(curve, x):
    at, values = curve
    return values[np.searchsorted(at, x, side="right") - 1]


@given(captures())
@settings(max_examples=some(200))
def test_overhead_counters_at_every_cycle(capture):
    told = understand(*capture)
    curves = overhead(told.runs, told.graph)
    rows = [row for row in rows_of(told.runs) if row["dispatch"]]
    types = sorted({row["core_type"] for row in rows})
    assert (not curves) == (not rows)
    assert set(curves) <= set(COUNTERS)
    if not rows:
        return
    by_task = {}
    for row in rows:
        by_task.setdefault(row["task"], []).append(row)
    waits = []  # (types, from, to)
    for task, mine in by_task.items():
        dispatch = min(row["dispatch"] for row in mine)
        preds = told.graph.pred[told.graph.succ == task].tolist()
        ends = [row["end"] for pred in preds for row in by_task.get(pred, [])]
        if ends and dispatch > max(ends):
            waits.append(({row["core_type"] for row in mine}, max(ends), dispatch))
    for x in range(min(row["start"] for row in rows), max(row["end"] for row in rows)):
        idle, ready = {}, {}
        for kind in types:
            cores = {row["core"] for row in rows if row["core_type"] == kind}
            running = sum(row["core_type"] == kind and row["start"] <= x < row["end"] for row in rows)
            idle[kind] = len(cores) - running
            ready[kind] = sum(kind in kinds and low <= x < high for kinds, low, high in waits)
            name = ("aic", "aiv")[kind]
            assert value_at(curves[f"oh_{name}_idle"], x) == idle[kind]
            assert value_at(curves[f"oh_{name}_ready"], x) == ready[kind]
            assert value_at(curves[f"oh_{name}_overhead"], x) == (idle[kind] > 0 and ready[kind] > 0)
        some = [kind for kind in types if ready[kind]]
        assert value_at(curves["oh_all_overhead"], x) == all(idle[k] > 0 and ready[k] > 0 for k in types)
        assert value_at(curves["oh_has_overhead"], x) == (bool(some) and all(idle[k] > 0 for k in some))
    for at, values in curves.values():
        assert (np.diff(at) > 0).all()
        assert (np.diff(values) != 0).all()


def test_overhead_is_drawn_when_it_is_asked_for():
    trace = golden("v3_spec_dummy", "l2", overhead=True)
    names = trace.tracks["name"]
    drawn = set(names[np.unique(trace.counters["track_id"])].tolist())
    assert set(COUNTERS) <= drawn
    assert not set(COUNTERS) & set(golden("v3_spec_dummy", "l2").tracks["name"].tolist())
    without = golden("v3_spec_dummy", "l2", overhead=True, deps="none")
    assert not set(COUNTERS) & set(without.tracks["name"].tolist())
    assert stats(without)["ascend_overhead_unavailable"] == 1


# --- scheduler threads --------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.integers(1, 40),
            st.integers(0, 9),
            st.booleans(),
            st.integers(0, 5),
            st.integers(0, 9),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_threads_by_hand(rows):
    thread, begin, length, work, loop, hits = (np.array(column) for column in zip(*rows, strict=True))
    sums = dict.fromkeys(("pop_hit", "pop_miss", "dispatched", "staged", "drained", "completed", "resolved"), hits)
    found = thread_times(thread, begin, begin + length, work.astype(np.bool_), loop, sums)
    for place, number in enumerate(found.thread.tolist()):
        mine = [row for row in rows if row[0] == number]
        low, high = min(row[1] for row in mine), max(row[1] + row[2] for row in mine)
        busy = {x for _, b, n, is_work, _, _ in mine if is_work for x in range(b, b + n)}
        assert (found.begin[place], found.end[place], found.busy[place]) == (low, high, len(busy))
        idle = "".join("." if x not in busy else "#" for x in range(low, high))
        # A phase without width parts a pause in two.
        if all(n for _, _, n, is_work, _, _ in mine if is_work):
            assert found.pauses[place] == sum(bool(part) for part in idle.split("#"))
            assert found.longest_idle[place] == max(map(len, idle.split("#")))
        assert found.iterations[place] == max(row[4] for row in mine)
        assert found.working[place] == len({row[4] for row in mine if row[4]})
        assert found.pop_hit[place] == sum(row[5] for row in mine)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1 << 61)), max_size=15))
def test_running_largest_values_of_any_size(pairs):
    pairs.sort(key=lambda pair: pair[0])
    lanes, values = np.array(pairs, np.int64).reshape(-1, 2).T
    expected = [max(v for lane_, v in pairs[: n + 1] if lane_ == pair[0]) for n, pair in enumerate(pairs)]
    assert thread_time._running_max(lanes, values).tolist() == expected


def test_threads_of_a_golden_capture():
    found = golden("v3_spec_dummy", "l2").details["ascend_threads"]
    assert found["pop_hit"].sum() == 5
    assert found["pop_miss"].sum() == 29
    assert (found["busy_ns"] + found["idle_ns"]).tolist() == found["window_ns"].tolist()
    assert found["dispatched"].sum() == 5
    assert found["completed"].sum() == 6


# --- what is drawn ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("naming", ["l2", "chip"])
def test_groups_follow_the_pipeline(naming):
    trace = golden("v3_spec_dummy", naming)
    tracks = trace.tracks
    groups = [row["name"] for row in sorted(tracks.rows(), key=lambda row: row["sort_key"]) if row["kind"] == "group"]
    assert groups == ["Ascend", "Orchestrator", "Scheduler", "Scheduler View", "Worker View"]
    flights = trace.slices["category"] == "flight"
    tasks = trace.details["ascend_tasks"]
    assert sorted(trace.slices["dur"][flights]) == sorted(tasks["finish_ts"] - tasks["dispatch_ts"])


def test_tasks_without_a_core_have_lanes():
    trace = golden("v3_spec_dummy", "l2")
    bare = trace.details["ascend_coreless_tasks"]
    names = trace.slices["name"][bare["slice_id"]]
    assert dict(zip(names, bare["task"], strict=True)) == {"dummy task": "r1t4", "alloc": "r1t0"}
    lanes = trace.tracks["name"][trace.slices["track_id"][bare["slice_id"]]]
    assert set(lanes) == {"Dummy_1", "Alloc_0"}


def test_little_detail_is_less_and_not_other():
    full, low = golden("v3_spec_dummy", "chip"), golden("v3_spec_dummy", "chip", detail="low")
    assert {"setup", "gate", "flight"} == set(full.slices["category"]) - set(low.slices["category"])
    assert len(low.counters) == 0
    assert len(low.flows) == len(dependencies(full))
    for name in ("duration_ticks", "local_setup_ticks", "gate_wait_ticks"):
        assert low.details["ascend_tasks"][name].tolist() == full.details["ascend_tasks"][name].tolist()
    assert [f.code for f in check.run(low)] == [f.code for f in check.run(full)]


def test_readiness_says_how_sure_it_is():
    # Task 4 waits for a barrier, 5 for an allocation and a task, 6 for a task alone, 7 for none.
    kernels = {1: (0, -1, -1), 2: (-1, -1, -1), **dict.fromkeys((4, 5, 6, 7), (0, -1, -1))}
    rows = [[0, n, n, 100 * n, 100 * n + 50, 4] for n in (1, 4, 5, 6, 7)]
    phases = [[{"kind": "dummy_task", "start_cycles": 120, "end_cycles": 120, "tasks_processed": 1, "task_id": 2}]]
    edges = [(1, 4), (2, 4), (1, 5), (3, 5), (1, 6)]
    content = records(rows, level=3, key="chip_swimlane_level", aicpu_scheduler_phases=phases)
    deps = graph(kernels, edges)
    deps["edges"][3]["source"] = "creator"
    tasks = decode(content, deps=deps).details["ascend_tasks"]
    found = {row["task_id"]: (row["ready_ticks"], row["ready_quality"]) for row in tasks.rows()}
    assert found == {1: (None, None), 4: (150, "estimated"), 5: (150, "exact"), 6: (150, "exact"), 7: (None, None)}


# --- what every chip keeps ----------------------------------------------------------------------------------------


@given(captures())
@settings(max_examples=some(200))
def test_invariants_by_hand(capture):
    content, deps = capture
    content["metadata"]["clock_freq_hz"] = 1_000_000  # a microsecond is one cycle
    told = understand(content, deps)
    runs = rows_of(told.runs)
    finish, counter = told.runs.finish.tolist(), told.runs.counter.tolist()
    odd = []
    for row in runs:
        stamps = [row["dispatch"], row["receive"], row["start"], row["end"], finish[row["at"]]]
        known = [stamp for stamp in stamps if stamp]
        odd.append(any(later + 1 < earlier for n, earlier in enumerate(known) for later in known[n + 1 :]))
    assert consistency.disordered(told.runs, told.frequency, np.zeros(len(runs), np.bool_)).tolist() == odd
    crowded = [False] * len(runs)
    for row in runs:
        for other in runs:
            is_second = other["core"] == row["core"] and counter[other["at"]] == counter[row["at"]] - 2
            between = any(
                o["core"] == row["core"] and counter[o["at"]] == counter[row["at"]] - 1 and o["dispatch"] for o in runs
            )
            if (
                is_second
                and between
                and row["dispatch"]
                and other["dispatch"]
                and row["dispatch"] < finish[other["at"]]
            ):
                crowded[row["at"]] = True
    assert consistency.overcommitted_cores(told.runs).tolist() == crowded


def test_what_contradicts_itself_is_a_finding():
    # The third is dispatched before the first has finished; the fourth ends after it was seen to.
    rows = [[0, n, n, 1000 * n, 1000 * n + 900, 4] for n in range(1, 4)] + [[0, 4, 4, 4000, 9000, 4]]
    seen = [[0, 1, 900, 2500], [0, 2, 1900, 2950], [0, 3, 2400, 3950], [0, 4, 3960, 5000]]
    submits = [{"submit_idx": n, "task_id": 1 + n // 2, "start_cycles": 10 + n, "end_cycles": 12 + n} for n in range(4)]
    trace = decode(records(rows, seen, level=4, aicpu_orchestrator_phases=[submits]))
    counts = stats(trace)
    assert counts == {
        "ascend_timestamp_order": 1,
        "ascend_core_overcommitted": 1,
        "ascend_submit_duplicate": 2,
        "ascend_submit_unmatched": 2,  # tasks 3 and 4
        "ascend_overlap": 3,  # each submission begins before the last one has ended
    }
    found = {(f.code, f.severity, f.stat): f.count for f in check.run(trace) if f.code in ("LS002", "LS402")}
    assert found == {
        ("LS002", "error", "ascend_timestamp_order"): 1,
        ("LS002", "error", "ascend_core_overcommitted"): 1,
        ("LS402", "warning", "ascend_submit_duplicate"): 2,
        ("LS002", "error", "ascend_overlap"): 3,
    }


@given(captures(), st.data())
@settings(max_examples=some(200))
def test_kernels_and_types_of_cores_by_hand(capture, data):
    content, deps = capture
    slot = st.sampled_from([-1, 0, 3])
    for task in deps["tasks"]:
        task["kernel_ids"] = [data.draw(slot) for _ in range(3)]
    deps["tasks"] = deps["tasks"][data.draw(st.integers(0, 2)) :]
    content["metadata"]["core_types"] = [data.draw(st.sampled_from(["aic", "aiv"])) for _ in CORES][
        : data.draw(st.integers(2, 3))
    ]
    told = understand(content, deps)
    types = dict(enumerate(content["metadata"]["core_types"]))
    kernels = {int(task["task_id"]): task["kernel_ids"] for task in deps["tasks"]}
    wrong = []
    for core, task in zip(told.runs.core.tolist(), told.runs.task_id.tolist(), strict=True):
        slots = {"aic": slice(0, 1), "aiv": slice(1, 3)}.get(types.get(core))
        wrong.append(slots is not None and task in kernels and max(kernels[task][slots]) < 0)
    assert consistency.on_wrong_kind(told).tolist() == wrong


@given(captures())
@settings(max_examples=some(200))
def test_submissions_before_executions_by_hand(capture):
    content, deps = capture
    content["metadata"]["clock_freq_hz"] = 1_000_000  # a microsecond is one cycle
    for submit in content["aicpu_orchestrator_phases"][0]:
        submit["start_cycles"] = submit["end_cycles"]
    told = understand(content, deps)
    first = {}
    for submit in content["aicpu_orchestrator_phases"][0]:
        first.setdefault(submit["task_id"], submit["start_cycles"])
    found, suspect = [], clock_steps(told.runs).suspect
    for row, is_suspect, task in zip(rows_of(told.runs), suspect.tolist(), told.runs.task_id.tolist(), strict=True):
        seen = row["dispatch"] or (0 if is_suspect else row["receive"] or row["start"])
        found.append(0 < seen < first.get(task, 0) - 1)
    assert consistency.before_submit(told, suspect).tolist() == found


def test_exchanged_tasks_are_found_by_their_submissions():
    rows = [[0, 1, 1, 1000, 1900, 4], [0, 2, 2, 9000, 9900, 4]]
    seen = [[0, 1, 900, 2000], [0, 2, 8900, 10000]]
    submits = [
        {"submit_idx": n, "task_id": n + 1, "start_cycles": 100 + 8000 * n, "end_cycles": 200 + 8000 * n}
        for n in (0, 1)
    ]
    content = records(rows, seen, level=4, aicpu_orchestrator_phases=[submits])
    assert "ascend_submit_order" not in stats(decode(content))
    rows[0][1], rows[1][1] = rows[1][1], rows[0][1]
    trace = decode(content)
    assert stats(trace)["ascend_submit_order"] == 1
    (found,) = [finding for finding in check.run(trace) if finding.stat == "ascend_submit_order"]
    assert (found.code, found.severity, found.location.ts) == ("LS002", "error", (1000 - 100) * 20)


ONE_PHASE = [{"kind": "dispatch", "start_cycles": 80, "end_cycles": 95, "loop_iter": 1, "tasks_processed": 1}]


@pytest.mark.parametrize(
    ("metadata", "phases", "wrong"),
    [
        ({}, None, []),
        ({"num_cores": 3}, None, [2]),
        ({"num_cores": 1}, None, [1]),
        ({"core_types": []}, None, [0, 1]),
        ({"core_types": ["aic", "aiv", "aiv"]}, None, [2]),
        ({"num_cores": 1, "core_types": ["aic"]}, None, [1]),  # core 1 has a record
        ({"num_cores": 1 << 40}, None, [65535]),
        ({"num_cores": None, "core_types": "aic"}, None, []),
        ({"core_to_thread": [0, 1]}, None, []),  # a capture without phases
        ({"core_to_thread": [0, 1]}, [ONE_PHASE, []], []),
        ({"core_to_thread": [0, 1]}, [ONE_PHASE], [1]),
        ({"core_to_thread": [0, -1]}, [ONE_PHASE], [1]),
        ({"core_to_thread": [0, 0, 0]}, [ONE_PHASE], [2]),
    ],
)
def test_cores_that_contradict_the_file(metadata, phases, wrong):
    rows, seen = [[0, 1, 1, 100, 200, 4], [1, 2, 1, 100, 200, 4]], [[0, 1, 90, 210], [1, 1, 90, 210]]
    more = {} if phases is None else {"aicpu_scheduler_phases": phases}
    content = records(rows, seen, level=3 if phases else 2, metadata=metadata, **more)
    assert consistency.contradicted_cores(Interpreter(read(content), Sidecars())) == wrong
    assert stats(decode(content)).get("ascend_cores_contradict", 0) == len(wrong)


def test_phases_nest_as_they_were_written():
    phases = [
        {"kind": "drain_prepare", "start_cycles": 110, "end_cycles": 130},
        {"kind": "drain_publish", "start_cycles": 130, "end_cycles": 150},
        {"kind": "drain", "start_cycles": 105, "end_cycles": 160},
        {"kind": "resolve", "start_cycles": 210, "end_cycles": 280},
        {"kind": "complete", "start_cycles": 200, "end_cycles": 290},
        {"kind": "predicated_skip", "start_cycles": 300, "end_cycles": 300, "task_id": 9},
        {"kind": "brand_new", "start_cycles": 310, "end_cycles": 320},
    ]
    rows = [{**phase, "loop_iter": 1, "tasks_processed": 1} for phase in phases]
    content = records([[0, 1, 1, 100, 150, 2]], [[0, 1, 90, 160]], level=3, key="chip_swimlane_level")
    trace = decode({**content, "aicpu_scheduler_phases": [rows]})
    assert not check.run(trace, select=["LS1"])
    (line,) = trace.details["ascend_threads"].rows()
    # Outer ones: 55 + 90 + 10 cycles, the unknown kind among them; the window ends with the last record.
    assert (line["busy_ticks"], line["window_ticks"], line["pauses"]) == (155, 320 - 105, 2)
    assert lane(trace, "Predicated_0") == [("skipped task", (300 - 90) * 20, 0)]
    assert ("brand_new", (310 - 90) * 20, 200) in lane(trace, "Sched_0")
