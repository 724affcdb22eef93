"""Clocks of single cores that step by less than executions wait: found, as far as they reach, and nowhere else."""

import json

import numpy as np
import pytest

from devices.ascend.helpers import decode, decode_file, decode_simulated, graph, records, simulated
from effort import some
from lanescope.analysis import check
from lanescope.trace import Flag

SIZES = {"clock_steps": 2, "tasks": 600, "aic": 4, "aiv": 8}


def suspects(trace):
    """Return (core, counter) of each execution that is drawn as suspect."""
    tasks = trace.details["ascend_tasks"]
    mine = (trace.slices["flags"][tasks["slice_id"]] & Flag.CLOCK_SUSPECT) != 0
    return set(zip(tasks["core"][mine].tolist(), tasks["reg_task_id"][mine].tolist(), strict=True))


@pytest.mark.parametrize(("step_ns", "least_found", "most_false"), [(2000, 0.8, 0.05), (5000, 0.95, 0.01)])
def test_short_steps_are_found_and_marked_from_end_to_end(step_ns, least_found, most_false):
    """Rates over seeds: a quick run tries the first few, which are known to come out right."""
    rows = hit = false = clocks = found = 0
    for seed in range(60, 60 + some(60, 12)):
        for version in ("v2", "v3", "v3c", "v4"):
            simulation = simulated(seed, format_version=version, clock_step_ns=step_ns, **SIZES)
            truth, trace = simulation.truth, decode_simulated(simulation)
            columns = (truth["rows"][name] for name in ("core", "reg_task_id", "is_stepped"))
            off = {(core, counter) for core, counter, is_off in zip(*columns, strict=True) if is_off}
            marked = suspects(trace)
            steps = trace.details["ascend_clock_steps"]
            assert set(steps["core"].tolist()) == {core for core, _ in marked} <= {core for core, _ in off}
            sizes = np.abs(steps["size_ticks"]) * 20
            assert (sizes > step_ns // 3).all()
            assert (sizes < 4 * step_ns).all()
            clocks += truth["clock_steps"]["clocks"]
            found += len(steps)
            rows, hit, false = rows + len(off), hit + len(off & marked), false + len(marked - off)
    assert found >= least_found * clocks
    assert hit >= least_found * rows
    assert false <= most_false * rows


@pytest.mark.parametrize("capture", ["clock_step_back_5us", "clock_step_back_10us"])
def test_what_follows_from_a_step_is_no_finding_of_its_own(corpus, capture):
    folder = corpus / "repro/ascend" / capture
    step = json.loads((folder / "truth.json").read_text())["faults"]["clock_step"]
    trace = decode_file(folder / "l2_swimlane_records.json")
    first = step["first_reg_task_id"]
    assert suspects(trace) == {(step["core"], first + n) for n in range(step["rows"])}
    (size,) = trace.details["ascend_clock_steps"]["size_ticks"].tolist()
    assert abs(size - step["cycles"]) < 20
    assert {finding.code for finding in check.run(trace) if finding.severity != "notice"} <= {"LS304", "LS305", "LS404"}


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


def test_what_is_hardly_late_is_no_step():
    content, deps = chain(-5, 5, 20)
    trace = decode(content, deps=deps)
    assert not suspects(trace)
    assert not len(trace.details["ascend_clock_steps"])


def late(cores, first, last, *, by=60, length=200):
    """Return a capture in which ends of some cores are seen late for a while, and no stamp is impossible."""
    aicore, aicpu = [], []
    for n in range(length):
        for core in range(12):
            begin, tail = 10_000 + 300 * n, 10 + (7 * n + core) % 5
            off = by if core in cores and first <= n < last else 0
            aicore.append([core, n * 12 + core, n + 1, begin + 100 - off, begin + 180 - off, 4])
            aicpu.append([core, n + 1, begin, begin + 180 + tail])
    content = records(aicore, aicpu, cores=("aic",) * 12)
    return decode(content, deps=graph(dict.fromkeys(range(length * 12), (0, -1, -1)), []))


@pytest.mark.parametrize(("first", "last"), [(40, 100), (150, 200), (0, 30)])
def test_a_step_without_an_impossible_stamp_is_found_where_one_core_alone_is_late(first, last):
    trace = late({3}, first, last)
    assert suspects(trace) == {(3, n + 1) for n in range(first, last)}
    (size,) = trace.details["ascend_clock_steps"]["size_ticks"].tolist()
    assert abs(size + 60) <= 4


@pytest.mark.parametrize(
    ("cores", "first", "last"),
    [
        ({3, 4, 5}, 40, 100),  # a scheduler that is late
        ({3}, 0, 200),  # a core whose ends are always seen late
        ({3}, 40, 46),  # a few
    ],
)
def test_lateness_that_may_be_a_schedulers_is_no_step(cores, first, last):
    assert not suspects(late(cores, first, last))


def test_short_steps_of_any_core_are_found(corpus, tmp_path):
    """Steps back by 2 to 9 us, also those that leave no impossible stamp: no consequence is a real violation."""
    folder = corpus / "repro/ascend/clock_step_back_5us"
    content = json.loads((folder / "l2_swimlane_records.json").read_text())
    step = json.loads((folder / "truth.json").read_text())["faults"]["clock_step"]
    (tmp_path / "deps.json").write_bytes((folder / "deps.json").read_bytes())

    def shifted(rows, core, first, cycles):
        return [
            [*row[:3], row[3] + cycles, row[4] + cycles, *row[5:]] if row[0] == core and row[2] >= first else row
            for row in rows
        ]

    sound = shifted(content["aicore_tasks"], step["core"], step["first_reg_task_id"], -step["cycles"])
    for core, first, us in ((5, 30, 2), (2, 34, 2), (5, 30, 3), (5, 30, 9), (None, 0, 0)):
        content["aicore_tasks"] = shifted(sound, core, first, -50 * us)
        path = tmp_path / "l2_swimlane_records.json"
        path.write_text(json.dumps(content))
        trace = decode_file(path)
        assert trace.details["ascend_clock_steps"]["core"].tolist() == ([] if core is None else [core])
        edges = trace.details["ascend_edges"]
        assert not (edges["is_violated"] & ~edges["follows_clock_step"]).any()
