"""Verdict, idle causes, switches, heads, tails and rounds: against loops over every tick and every row."""

import json
import os
import statistics
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from devices.ascend.helpers import decode, decode_simulated, golden, graph, records, simulated
from devices.ascend.test_attribution import captures, rows_of, understand
from effort import some
from lanescope.analysis.plausibility.attested import attested
from lanescope.analysis.track_tree import Tree
from lanescope.cli import main
from lanescope.common.islands import attested_window
from lanescope.devices.ascend.analysis.executions import covered, union
from lanescope.devices.ascend.emit.aggregates import Sums
from lanescope.devices.ascend.family import FAMILY
from lanescope.devices.ascend.interpret.attribution import core_times

TICK = 20
CAUSES = ("busy", "launch", "scheduler_late", "no_ready_task", "unknown")


def rows(trace, by):
    return list(FAMILY.summarise(by, trace).rows())


def remarks(trace, by):
    return FAMILY.remarks(by, FAMILY.summarise(by, trace))


def executions(trace):
    """Return the executions as dicts, stamps in ticks, 0 where unknown, and the window."""
    slices = list(trace.slices.rows())
    found = []
    for row in trace.details["ascend_tasks"].rows():
        piece = slices[row["slice_id"]]
        start, end = piece["ts_ticks"], piece["ts_ticks"] + piece["dur_ticks"]
        stamps = {name: row[f"{name}_ticks"] or 0 for name in ("dispatch", "finish", "ready")}
        found.append({**row, **stamps, "start": start, "end": end, "name": piece["name"]})
    core = next(iter(trace.details["ascend_cores"].rows()), None)
    low = core["window_start_ticks"] if core else 0
    return found, (low, low + core["window_ticks"]) if core else (0, 0)


def waits(executed, window):
    """Return (types, from, to) of each task that was ready and not dispatched."""
    found = []
    for task in {row["task_id"] for row in executed}:
        mine = [row for row in executed if row["task_id"] == task]
        sent = [row["dispatch"] for row in mine if row["dispatch"]]
        ready = max(row["ready"] for row in mine)
        if sent and 0 < ready < min(sent):
            found.append(({row["core_type"] for row in mine}, *np.clip([ready, min(sent)], *window).tolist()))
    return found


def undispatched(executed, window, content, deps):
    """Return (types, from, to, whether it is known) of each task that was, or may have been, ready and not dispatched.

    The rules: after its producers ended and its submission ended; unknown if one of the two is not recorded, unless a
    producer with an execution proves the one.
    """
    submits = {}
    for row in (row for part in content.get("aicpu_orchestrator_phases", []) for row in part):
        submits[row["task_id"]] = max(row["end_cycles"], submits.get(row["task_id"], 0))
    ran, found = {row["task_id"] for row in executed}, []
    for task in ran:
        mine = [row for row in executed if row["task_id"] == task]
        sent = [row["dispatch"] for row in mine if row["dispatch"]]
        producers = {
            int(edge["pred"]) for edge in deps["edges"] if int(edge["succ"]) == task and edge["pred"] != edge["succ"]
        }
        ready, submitted = max(row["ready"] for row in mine), submits.get(task, 0)
        known = producers <= ran if producers else task in submits
        start = max(ready, submitted, window[0])
        if sent and start < min(sent):
            types = {row["core_type"] for row in mine}
            found.append((types, *np.clip([start, min(sent)], *window).tolist(), known))
    return found


def cause(core_rows, kind, x, waiting):
    if any(low <= x < high for low, high, _ in core_rows):
        return "busy"
    following = [(low, high, sent) for low, high, sent in core_rows if low > x]
    if following:
        sent = min(following, key=lambda row: row[:2])[2]
        if not sent:
            return "unknown"
        if x >= sent:
            return "launch"
    states = {known for types, a, b, known in waiting if kind in types and a <= x < b}
    return "scheduler_late" if True in states else "unknown" if states else "no_ready_task"


@given(captures())
@settings(max_examples=some(200))
def test_every_cycle_of_every_core_by_what_it_could_have_run(capture):
    content, deps = capture
    trace = decode(content, deps=deps)
    executed, window = executions(trace)
    executed = [row for row in executed if row["start"] <= window[1] and row["end"] >= window[0]]
    waiting = undispatched(executed, window, content, deps)
    found = {row["group"]: row for row in rows(trace, "core-idle")}
    if not executed:
        assert not found
        return
    names = trace.tracks["name"]
    sums = {}
    for core in trace.details["ascend_cores"].rows():
        mine = [row for row in executed if row["core"] == core["core"]]
        clipped = [(*np.clip([row["start"], row["end"]], *window).tolist(), row["dispatch"]) for row in mine]
        counts = dict.fromkeys(CAUSES, 0)
        for x in range(*window):
            counts[cause(clipped, core["core_type"], x, waiting)] += 1
        line = found[names[core["track_id"]]]
        assert {name: line[name] for name in CAUSES} == {name: TICK * ticks for name, ticks in counts.items()}
        assert line["busy"] == core["busy_ns"]
        assert sum(line[name] for name in CAUSES) == line["window"] == core["window_ns"]
        for name in CAUSES:
            sums[core["core_type"], name] = sums.get((core["core_type"], name), 0) + line[name]
    for (kind, name), total in sums.items():
        assert found[f"all {kind}"][name] == total


@given(captures())
@settings(max_examples=some(200))
def test_the_verdict_at_every_cycle(capture):
    content, deps = capture
    trace = decode(content, deps=deps)
    executed, window = executions(trace)
    executed = [row for row in executed if row["start"] <= window[1] and row["end"] >= window[0]]
    found = {row["group"]: row for row in rows(trace, "overhead")}
    if not any(row["dispatch"] for row in executed) or window[0] == window[1]:
        assert all(not row["overhead"] for row in found.values())
        return
    waiting, types = waits(executed, window), sorted({row["core_type"] for row in executed})
    possible = undispatched(executed, window, content, deps)
    counts = dict.fromkeys((*types, "all types", "any type"), 0)
    most = dict.fromkeys(counts, 0)
    for x in range(*window):
        holds, may = {}, {}
        for kind in types:
            cores = {row["core"] for row in executed if row["core_type"] == kind}
            running = sum(row["core_type"] == kind and row["start"] <= x < row["end"] for row in executed)
            holds[kind] = running < len(cores), any(kind in some_ and a <= x < b for some_, a, b in waiting)
            may[kind] = holds[kind][1] or any(kind in some_ and a <= x < b for some_, a, b, _ in possible)
            counts[kind] += all(holds[kind])
            most[kind] += holds[kind][0] and may[kind]
        counts["all types"] += all(all(pair) for pair in holds.values())
        has_ready = [kind for kind in types if holds[kind][1]]
        counts["any type"] += bool(has_ready) and all(holds[kind][0] for kind in has_ready)
        # Of the tasks that may be ready, those that would help the condition are.
        held = all(holds[kind][0] for kind in has_ready)
        most["all types"] += held and all(holds[kind][0] and may[kind] for kind in types)
        most["any type"] += held and any(holds[kind][0] and may[kind] for kind in types)
    assert {group: row["overhead"] for group, row in found.items()} == {k: TICK * n for k, n in counts.items()}
    assert {group: row["at_most"] for group, row in found.items()} == {k: TICK * n for k, n in most.items()}
    share = counts["any type"] / (window[1] - window[0])
    word = ": scheduler-bound" if share >= 0.25 else "partly" if share >= 0.08 else "computation or dependencies"
    assert word in remarks(trace, "overhead")[0]


@pytest.fixture(scope="module")
def trace():
    return decode_simulated(simulated(3, tasks=200, format_version="v3c", speculative=0.3))


def test_overhead_equals_the_counters(trace):
    drawn = decode_simulated(simulated(3, tasks=200, format_version="v3c", speculative=0.3), overhead=True)
    tracks, counters = drawn.tracks["name"], drawn.counters
    found = {row["group"]: row for row in rows(trace, "overhead")}
    _, window = executions(trace)
    assert found["any type"]["window"] == TICK * (window[1] - window[0])
    for group, name in (("aic", "oh_aic_overhead"), ("all types", "oh_all_overhead"), ("any type", "oh_has_overhead")):
        mine = tracks[counters["track_id"]] == name
        at, value = counters["ts"][mine], counters["value"][mine]
        held = [b - a for a, b, v in zip(at[:-1].tolist(), at[1:].tolist(), value[:-1].tolist(), strict=True) if v]
        assert found[group]["overhead"] == sum(held) > 0


def test_switches_heads_and_tails_by_hand(trace):
    executed, _ = executions(trace)
    executed.sort(key=lambda row: (row["core"], row["start"], row["end"]))
    pieces, heads, tails = {}, {}, {}
    waiting = [(types, a, b) for types, a, b in waits(executed, executions(trace)[1])]
    during = 0
    for before, row in zip([None, *executed], executed, strict=False):
        head = row["start"] - row["dispatch"]
        if before and before["core"] == row["core"]:
            head = min(head, row["start"] - before["end"])
            if row["dispatch"] < before["end"]:
                pieces.setdefault(row["core_type"], []).append(row["start"] - before["end"])
                busy = {x for types, a, b in waiting if row["core_type"] in types for x in range(a, b)}
                during += len(busy & set(range(before["end"], row["start"])))
        heads.setdefault(row["name"], []).append(max(head, 0) * TICK)
        tails.setdefault(row["name"], []).append(max(row["finish"] - row["end"], 0) * TICK)
    found = {row["group"]: row for row in rows(trace, "switch")}
    for kind, lengths in pieces.items():
        line = found[f"all {kind}"]
        assert (line["count"], line["total"]) == (len(lengths), TICK * sum(lengths))
        assert (line["min"], line["max"]) == (TICK * min(lengths), TICK * max(lengths))
        assert line["median"] == TICK * statistics.median_low(lengths)
        assert line["with_ready_task"] + line["without_ready_task"] == line["total"]
    assert sum(row["with_ready_task"] for name, row in found.items() if name.startswith("all ")) == TICK * during > 0
    for by, parts in (("head", heads), ("tail", tails)):
        listed = {row["group"]: row for row in rows(trace, by)}
        everything = [value for values in parts.values() for value in values]
        for name, values in {"(all)": everything, **parts}.items():
            values.sort()
            line = listed.pop(name)
            assert (line["count"], line["total"], line["max"]) == (len(values), sum(values), values[-1])
            for part in (10, 25, 50, 75, 90, 95, 99):
                assert line[f"p{part}"] == values[len(values) * part // 100]
        assert not listed
    loop = {row["thread"]: row["mean_iteration_ns"] for row in trace.details["ascend_threads"].rows()}
    thread = {row["core"]: row["thread"] for row in trace.details["ascend_cores"].rows()}
    each = [max(row["finish"] - row["end"], 0) * TICK / loop[thread[row["core"]]] for row in executed]
    assert rows(trace, "tail")[0]["loops"] == pytest.approx(sum(each) / len(each))


def test_rounds_by_hand():
    made = decode_simulated(simulated(3, tasks=60, format_version="v4", epochs=3))
    executed, _ = executions(made)
    found = rows(made, "round")
    before = None
    for line, number in zip(found, sorted({row["run_epoch"] for row in executed}), strict=True):
        mine = [row for row in executed if row["run_epoch"] == number]
        first, last = min(row["start"] for row in mine), max(row["end"] for row in mine)
        assert (line["group"], line["executions"], line["length"]) == (str(number), len(mine), TICK * (last - first))
        assert line["tasks"] == len({row["task_id"] for row in mine})
        assert line["busy"] == TICK * sum(row["end"] - row["start"] for row in mine)
        assert line["period"] == (None if before is None else TICK * (first - before[0]))
        assert line["pause"] == (None if before is None else TICK * (first - before[1]))
        before = first, last
    assert "of 2" in remarks(made, "round")[0]
    assert [row["series"] for row in found] == ["run"] * 3
    assert "no rounds are recorded" in remarks(golden("v2_chain", "l2"), "round")[0]


def test_nothing_is_concluded_without_a_graph_or_dispatches():
    made = decode(records([[0, 1, 1, 100, 150, 1], [0, 2, 2, 160, 190, 1]], [[0, 1, 90, 155], [0, 2, 155, 195]]))
    assert rows(made, "overhead") == []
    assert "no verdict" in remarks(made, "overhead")[0]
    (line,) = [row for row in rows(made, "core-idle") if row["group"] == "all aic"]
    # From 150 to 155 the next execution was not dispatched, and why is not known.
    assert (line["unknown"], line["launch"], line["no_ready_task"]) == (5 * TICK, 5 * TICK, 0)
    first = decode(records([[0, 1, 1, 100, 150, 1]], level=1), deps=graph({1: (0, -1, -1)}, []))
    assert [rows(first, by) for by in ("overhead", "head", "tail")] == [[], [], []]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=8), st.integers(0, 40))
@settings(max_examples=some(200))
def test_unions_by_hand(pieces, at):
    low, length = np.array(pieces, np.int64).reshape(-1, 2).T
    cells = {x for a, n in pieces for x in range(a, a + n)}
    begin, end = union(low, low + length)
    assert [x for a, b in zip(begin, end, strict=True) for x in range(a, b)] == sorted(cells)
    assert covered((begin, end), np.array([at])).tolist() == [sum(x < at for x in cells)]


@given(captures(), st.integers(15, 40), st.integers(10, 40))
@settings(max_examples=some(200))
def test_every_cycle_of_every_core_within_an_attested_window(capture, first, length):
    told, cores = understand(*capture), np.arange(3)
    submitted, limits = Sums(told, cores, np.ones(len(told.runs), np.bool_)).submitted, (first, first + length)
    found = core_times(told.runs, submitted, told.lost, cores, None, limits)
    all_rows = rows_of(told.runs)
    sound = [row for row in all_rows if limits[0] <= row["start"] and row["end"] <= limits[1]]
    if not sound:  # nothing is attested: the whole capture is as good as any part of it
        sound = all_rows
    assert found.suspects.sum() == len(all_rows) - len(sound)
    if not sound:
        return
    begin, end = min(row["start"] for row in sound), max(row["end"] for row in sound)
    assert (found.begin, found.end) == (begin, end)
    for core in range(3):
        busy = {x for row in sound if row["core"] == core for x in range(row["start"], row["end"])}
        assert found.busy[core] == len(busy)
        assert found.busy[core] + found.idle[core].sum() == end - begin
        far = [row for row in all_rows if row["core"] == core and row not in sound]
        assert found.suspect[core] == sum(row["end"] - row["start"] for row in far)
        # Gaps that hold an execution from elsewhere are of unknown cause, whole.
        unknown = 0
        for row in far:
            at = row["end"] if row["start"] < begin else row["start"]
            at = min(max(at, begin), end)
            if at not in busy and begin <= at < end:
                while at > begin and at - 1 not in busy:
                    at -= 1
                while at < end and at not in busy:
                    unknown, at = unknown + 1, at + 1
        assert found.idle[core][IDLE.index("unknown")] >= unknown / max(len(far), 1)


# --- one bad timestamp --------------------------------------------------------------------------------------------


def one_far(level):
    """Return 40 executions on 4 cores; the last of core 0 ends 20 s late."""
    cores, aicore, aicpu = ("aic", "aic", "aiv", "aiv"), [], []
    for n in range(40):
        core, start = n % 4, 1000 + 100 * (n // 4)
        aicore.append([core, n + 1, n // 4 + 1, start, start + 60, 2])
        aicpu.append([core, n // 4 + 1, start - 10, start + 70])
    sound = records(aicore, aicpu if level > 1 else [], level=level, cores=cores)
    bad = json.loads(json.dumps(sound))
    bad["aicore_tasks"][36][4] += 1_000_000_000
    return sound, bad


@pytest.mark.parametrize("level", [1, 2])
def test_one_bad_timestamp_makes_no_other_core_idle(level):
    sound, bad = (decode(content, deps=graph({}, [])).details["ascend_cores"] for content in one_far(level))
    good, wrong = list(sound.rows()), list(bad.rows())
    assert good[1:] == wrong[1:]
    line = wrong[0]
    assert (line["suspect_executions"], line["suspect_ticks"]) == (1, 1_000_000_060)
    assert line["window_ticks"] == good[0]["window_ticks"] == 960
    # The gap that holds it, 40 ticks before and 60 of itself, is of unknown cause; nothing else changes.
    assert line["unknown_ticks"] - good[0]["unknown_ticks"] >= 60
    assert line["busy_ticks"] == good[0]["busy_ticks"] - 60
    parts = [name for name in line if name.endswith("_ticks") and name[:-6] in IDLE]
    assert line["busy_ticks"] + sum(line[name] for name in parts) == line["window_ticks"]


IDLE = ("dependency", "submit", "dispatch", "propagation", "setup", "unknown", "trailing_idle")


def test_totals_are_printed_with_and_without_it(tmp_path, capsys):
    path = tmp_path / "l2_swimlane_records.json"
    path.write_text(json.dumps(one_far(2)[1]))
    for by, group in (("core", "AIC_0"), ("function", None), ("setup", None), ("head", None)):
        main(["summary", str(path), "--by", by, "--json"])
        document = json.loads(capsys.readouterr().out)
        assert document["suspect_slices"] >= 1
        main(["summary", str(path), "--by", by])
        text = capsys.readouterr().err
        if group:
            (found,) = [row for row in document["suspects"] if row["group"] == group and row["rules"] == ["LS501"]]
            assert (found["column"], found["total"], found["total_without"]) == (
                "busy",
                20_000_000_000 + 12_000,
                10_800,
            )
            assert f"{group}: without suspect rows (LS501) busy 20.0 s -> 10.8" in text
        assert "no totals" not in text


def test_a_far_phase_makes_no_idle_thread():
    phases = [
        [
            {"kind": "complete", "start_cycles": 1000 + 50 * n, "end_cycles": 1020 + 50 * n, "loop_iter": n + 1}
            for n in range(20)
        ]
        for _ in range(3)
    ]
    sound = records(*[[], []], level=3, cores=("aic",), aicpu_scheduler_phases=phases)
    for row in (row for thread in phases for row in thread):
        row["tasks_processed"] = 1
    bad = json.loads(json.dumps(sound))
    bad["aicpu_scheduler_phases"][0][10]["end_cycles"] += 1 << 32
    one, other = (list(decode(content).details["ascend_threads"].rows()) for content in (sound, bad))
    assert one[1:] == other[1:]
    line = other[0]
    assert (line["suspect_records"], line["suspect_ticks"]) == (1, (1 << 32) + 20)
    assert (line["window_ticks"], line["busy_ticks"]) == (one[0]["window_ticks"], one[0]["busy_ticks"] - 20)
    assert (line["unknown_ticks"], line["idle_ticks"]) == (30 + 20 + 30, one[0]["idle_ticks"] - 60)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 2000)), min_size=1, max_size=80),
    st.lists(st.tuples(st.integers(0, 4), st.integers(100_000, 10_000_000)), max_size=2),
)
@settings(max_examples=some(200))
def test_the_window_is_that_of_ls501(near, far):
    rows_, counters = [], [0] * 5
    for core, start in sorted({*near}, key=lambda row: row[1]) + far:
        counters[core] += 1
        rows_.append([core, len(rows_) + 1, counters[core], start + 5000, start + 5003])
    content = records(rows_, level=1, key="l2_swimlane_level", cores=("aic",) * 2 + ("aiv",) * 3)
    made = decode(content)
    found = attested(made, Tree(made.tracks))
    stamps = np.array([[row[3], row[4]] for row in rows_]).reshape(-1)
    window = attested_window(stamps, np.repeat([row[0] for row in rows_], 2))
    expected = found.window or ((stamps.min() - stamps.min()) * TICK, (stamps.max() - stamps.min()) * TICK)
    assert tuple((stamp - int(stamps.min())) * TICK for stamp in window) == tuple(map(int, expected))


# --- the producer's captures --------------------------------------------------------------------------------------

CORPUS = Path(os.environ.get("LANESCOPE_CORPUS", ".")) / "producers" / "ascend"


@pytest.mark.skipif(not CORPUS.is_dir(), reason="LANESCOPE_CORPUS is not set, or has no captures of the producer")
def test_parts_add_up_in_captures_of_the_producer():
    paths = sorted(CORPUS.glob("*/*/chip_swimlane_records.json"))
    assert len(paths) > 30
    for path in paths:
        made = lanescope.open(path)
        for row in rows(made, "core-idle"):
            assert sum(row[name] for name in CAUSES) == row["window"]
        same = {row["group"]: row["busy"] for row in rows(made, "core")}
        assert same == {row["group"]: row["busy"] for row in rows(made, "core-idle")}
        content = json.loads(path.read_text())
        sent = sum(row["dispatched"] + row["staged_early"] for row in rows(made, "scheduler"))
        if content.get("aicpu_scheduler_phases"):
            assert sent == len(content["aicore_tasks"])
        for by in ("overhead", "switch", "head", "tail", "round"):
            remarks(made, by)
