"""Attribution against loops: every cycle of every core, every pair of blocks, every change of a counter."""

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from devices.ascend.helpers import decode, golden, graph, lane, read, records, stats, text
from effort import some
from lanescope.analysis import check
from lanescope.devices.ascend.emit.aggregates import Sums
from lanescope.devices.ascend.formats.files import read_deps
from lanescope.devices.ascend.interpret import attribution, consistency, thread_time
from lanescope.devices.ascend.interpret.attribution import IDLE_PARTS
from lanescope.devices.ascend.interpret.resolve import Interpreter
from lanescope.devices.ascend.interpret.scheduler_overhead import COUNTERS, overhead
from lanescope.devices.ascend.interpret.sidecars import Sidecars
from lanescope.devices.ascend.interpret.thread_time import thread_times
from lanescope.trace import Flag

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
    sums = Sums(told, np.arange(len(CORES)))
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
    graph({1: (0, 0, -1)}, []),
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
    suspect = attribution.clock_steps(told.runs).suspect
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
    assert edges["arrows"].sum() == len(blocks.flows)
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


# --- clocks that step ---------------------------------------------------------------------------------------------


def chain(step, first, last, *, cores=4, length=30):
    """Return a capture in which tasks wait for tasks of other cores, and the clock of core 1 is off for a while."""
    aicore, aicpu, edges = [], [], []
    for n in range(length):
        for core in range(cores):
            off = step if core == 1 and first <= n < last else 0
            begin, task = 10_000 + 100 * n, n * cores + core
            aicore.append([core, task, n + 1, begin + 10 + off, begin + 80 + off, 4])
            aicpu.append([core, n + 1, begin, begin + 90])
            if n:
                edges.append((task - cores + (1 if core == 0 else 0), task))
    content = records(aicore, aicpu, cores=("aic",) * cores)
    return content, graph(dict.fromkeys(range(length * cores), (0, -1, -1)), edges)


@pytest.mark.parametrize("step", [-40, 40, 5000, -5000])
@pytest.mark.parametrize(("first", "last"), [(5, 20), (12, 30)])
def test_a_step_of_one_core_is_found(step, first, last):
    content, deps = chain(step, first, last)
    trace = decode(content, deps=deps)
    suspect = (trace.slices["flags"] & Flag.CLOCK_SUSPECT) != 0
    tasks = trace.details["ascend_tasks"]
    found = tasks["reg_task_id"][suspect[tasks["slice_id"]]]
    assert set(tasks["core"][suspect[tasks["slice_id"]]].tolist()) == {1}
    assert sorted(found.tolist()) == list(range(first + 1, last + 1))
    (run,) = trace.details["ascend_runs"].rows()
    assert run["clock_steps"] == 1
    assert run["violated_edges"] == run["violated_edges_by_clock"] > 0
    assert causality(trace) == {"notice": run["violated_edges"]}
    (clock,) = (finding for finding in check.run(trace) if finding.code == "LS304")
    kernels = trace.slices["category"][clock.evidence.ids] == "kernel"
    assert (clock.location.track, kernels.sum()) == ("Ascend/Worker View/AIC_1", last - first)


def causality(trace):
    """Return how many effects stand before their causes, by severity."""
    counts = {}
    for finding in check.run(trace, select=["LS201"]):
        counts[finding.severity] = counts.get(finding.severity, 0) + finding.count
    return counts


def test_a_real_violation_beside_a_step_stays_one():
    content, deps = chain(-5000, 5, 20)
    assert content["aicore_tasks"][42][:2] == [2, 42]
    content["aicore_tasks"][42][3] -= 60  # it begins while its producer 38 still runs
    deps["edges"].append({"pred": "41", "succ": "42"})  # and waits for one on the core whose clock is off
    trace = decode(content, deps=deps)
    edges = trace.details["ascend_edges"]
    real = edges["is_violated"] & ~edges["follows_clock_step"]
    assert list(zip(edges["pred_task_id"][real], edges["succ_task_id"][real], strict=True)) == [(38, 42)]
    (run,) = trace.details["ascend_runs"].rows()
    assert run["violated_edges"] - run["violated_edges_by_clock"] == 1
    assert run["violated_tasks"] - run["violated_tasks_by_clock"] == 1
    assert causality(trace) == {"warning": 1, "notice": run["violated_edges_by_clock"]}


def test_what_all_cores_show_is_no_step():
    content, deps = chain(0, 0, 0)
    for row in content["aicore_tasks"]:
        row[3], row[4] = row[3] - 40, row[4] - 40
    trace = decode(content, deps=deps)
    assert trace.details["ascend_runs"]["clock_steps"].tolist() == [0]


def test_two_odd_rows_are_no_step():
    content, deps = chain(-40, 5, 7)
    assert decode(content, deps=deps).details["ascend_runs"]["clock_steps"].tolist() == [0]


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
    sums = dict.fromkeys(("pop_hit", "pop_miss", "dispatched", "completed", "resolved"), hits)
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
    assert len(low.flows) == len(full.flows)
    for name in ("duration_ticks", "local_setup_ticks", "gate_wait_ticks"):
        assert low.details["ascend_tasks"][name].tolist() == full.details["ascend_tasks"][name].tolist()
    assert [f.code for f in check.run(low)] == [f.code for f in check.run(full)]


def test_readiness_says_how_sure_it_is():
    # Task 4 waits for a barrier, 5 for an allocation and a task, 6 for a task alone, 7 for none.
    kernels = {1: (0, -1, -1), 2: (-1, -1, -1), 3: (-1, -1, -1), **dict.fromkeys((4, 5, 6, 7), (0, -1, -1))}
    rows = [[0, n, n, 100 * n, 100 * n + 50, 4] for n in (1, 4, 5, 6, 7)]
    phases = [[{"kind": "dummy_task", "start_cycles": 120, "end_cycles": 120, "tasks_processed": 1, "task_id": 2}]]
    edges = [(1, 4), (2, 4), (1, 5), (3, 5), (1, 6)]
    content = records(rows, level=3, key="chip_swimlane_level", aicpu_scheduler_phases=phases)
    tasks = decode(content, deps=graph(kernels, edges)).details["ascend_tasks"]
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
    assert consistency.disordered(told, np.zeros(len(runs), np.bool_)).tolist() == odd
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
    assert counts == {"ascend_timestamp_order": 1, "ascend_core_overcommitted": 1, "ascend_submit_duplicate": 2}
    found = {(f.code, f.severity, f.stat): f.count for f in check.run(trace) if f.code in ("LS002", "LS402")}
    assert found == {
        ("LS002", "error", "ascend_timestamp_order"): 1,
        ("LS002", "error", "ascend_core_overcommitted"): 1,
        ("LS402", "warning", "ascend_submit_duplicate"): 2,
    }


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
