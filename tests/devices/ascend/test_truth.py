"""Simulated captures against their truth: every execution, every figure, every loss."""

import itertools
import json

import numpy as np
import pytest

from devices.ascend.helpers import decode_file, decode_simulated, dependencies, lane, listing, simulated, stats
from effort import some
from lanescope.analysis import check
from lanescope.devices.ascend.family import FAMILY
from lanescope.errors import UsageError
from lanescope.trace import Flag

FORMAT_VERSIONS = ("v1a", "v1b", "v1c", "v2", "v3", "v3c", "v4")
COUNTED = FORMAT_VERSIONS[3:]
LOSSES = {"drop_aicore": 3, "drop_aicpu": 4, "drop_both": 5, "duplicates": 6, "ambiguous": 2, "bad_rows": 3}
NS = 1_000_000_000
#: Stats that count dependencies without an arrow.
_NOT_DRAWN = ("ascend_edge_unmatched", "ascend_edge_undecided", "ascend_edge_no_kernel")


def scenario(seed):
    """Return different options for each seed: all format versions, levels, clocks, shapes of the chip, and faults."""
    format_version = FORMAT_VERSIONS[seed % 7]
    options = {
        "tasks": 60 + seed % 6 * 20,
        "format_version": format_version,
        "level": 1 + seed // 3 % 4,
        "clock": (50_000_000, 1_000_000_000, 33_000_000)[seed // 12 % 3],
        "aic": 1 + seed % 5,
        "aiv": 1 + seed * 3 % 11,
        "threads": 1 + seed % 4,
        "speculative": (0.0, 0.4, 1.0)[seed // 5 % 3],
        "producers": (0.5, 1.4, 3.0)[seed // 4 % 3],
        "violations": seed % 4,
        "shuffle": seed % 6 == 5,
        "wrap": seed % 8 == 3,
        "mix": 0.2,
        "spmd": 0.1,
        "predicated": 0.05,
    }
    if seed % 2:
        options |= LOSSES
        if seed % 3 == 0:
            options |= {"overflow": 2, "buffer": 8}
        if format_version.startswith("v1"):
            options |= {"duplicates": 0, "ambiguous": 0}
    if format_version == "v4":
        options["epochs"] = 1 + seed % 3
    if seed % 9 == 8:
        format_version = ("v3c", "v4")[seed // 18 % 2]
        options |= {"format_version": format_version, "host": True, "anchors": seed % 18 == 8, "epochs": 1}
        options["graphs"] = 0.1
    return options


def recorded(truth):
    """Return the true executions that the file has, by core, run and counter; of v1 by core and start."""
    rows = truth["rows"]
    names = [name for name, values in rows.items() if values is not None]
    listed = [dict(zip(names, values, strict=True)) for values in zip(*(rows[name] for name in names), strict=True)]
    if truth["format_version"].startswith("v1"):
        # Nanoseconds since the smallest reading, from 1.
        for row in listed:
            for stamp in ("dispatch", "receive", "start", "end", "finish"):
                row[stamp] = (row[stamp] - truth["base_cycles"]) * NS // truth["clock"] + 1
        return {(row["core"], row["start"]): row for row in listed if row["has_aicore"]}
    return {(row["core"], row["run_epoch"], row["reg_task_id"]): row for row in listed if row["has_aicore"]}


def key_of(row, trace, format_version):
    """Return by what the truth has an execution."""
    if format_version.startswith("v1"):
        return row["core"], int(trace.slices["ts_ticks"][row["slice_id"]])
    return row["core"], row["run_epoch"] if format_version == "v4" else 1, row["reg_task_id"]


@pytest.mark.parametrize("seed", range(some(210, 42)))
def test_every_execution_is_as_it_was(seed):
    options = scenario(seed)
    simulation = simulated(seed, **options)
    truth, trace = simulation.truth, decode_simulated(simulation)
    true = recorded(truth)
    format_version = truth["format_version"]
    knows_receive = format_version in ("v3", "v3c", "v4")
    met = []
    names = trace.slices["name"]
    for row in trace.details["ascend_tasks"].rows():
        key = key_of(row, trace, format_version)
        met.append(key)
        expected = true[key]
        if expected["is_ambiguous"]:
            assert (row["dispatch_ticks"], row["finish_ticks"]) == (None, None)
            continue
        assert row["task_id"] == expected["task_id"]
        assert trace.slices["ts_ticks"][row["slice_id"]] == expected["start"]
        assert row["duration_ticks"] == expected["end"] - expected["start"]
        assert row["receive_ticks"] == (expected["receive"] if knows_receive else None)
        is_joined = expected["has_aicpu"]
        assert row["dispatch_ticks"] == (expected["dispatch"] if is_joined else None)
        assert row["finish_ticks"] == (expected["finish"] if is_joined else None)
        propagation = expected["receive"] - expected["dispatch"]
        assert row["propagation_ticks"] == (propagation if is_joined and knows_receive else None)
        setup = expected["start"] - expected["receive"] - expected["gate"]
        assert row["local_setup_ticks"] == (setup if knows_receive else None)
        assert row["gate_wait_ticks"] == (expected["gate"] if knows_receive else None)
        assert names[row["slice_id"]] == expected["name"]
    assert sorted(met) == sorted([*true, *(key for key, row in true.items() if row["is_ambiguous"])])
    if knows_receive or format_version == "v2":
        assert trace.details["ascend_runs"]["base_ticks"].tolist() == [truth["base_cycles"]]


@pytest.mark.parametrize("seed", range(some(210, 42)))
def test_every_loss_is_reported(seed):
    simulation = simulated(seed, **scenario(seed))
    losses, counts = simulation.truth["losses"], stats(decode_simulated(simulation))
    found = {
        "aicore_unmatched": counts.get("ascend_aicore_unmatched", 0),
        "aicpu_unmatched": counts.get("ascend_aicpu_unmatched", 0),
        "holes": counts.get("ascend_missing_dispatch", 0),
        "duplicates": counts.get("ascend_row_duplicate", 0),
        "ambiguous": counts.get("ascend_key_duplicate", 0),
        "bad_rows": counts.get("ascend_invalid_row", 0),
        "dispatch_unmatched": counts.get("ascend_dispatch_unmatched", 0),
        "finish_unmatched": counts.get("ascend_finish_unmatched", 0),
    }
    assert found | {"phases": 0} == losses


def judged(trace):
    """Return the violated edges, and those of them that follow from a clock's step, as pairs of task ids."""
    edges = trace.details["ascend_edges"]
    pairs = np.stack([edges["pred_task_id"], edges["succ_task_id"]], 1)
    violated = edges.valid("is_violated") & edges["is_violated"]
    by_clock = edges["follows_clock_step"]
    return sorted(pairs[violated & ~by_clock].tolist()), sorted(pairs[by_clock].tolist())


@pytest.mark.parametrize("seed", range(some(210, 42)))
def test_edges_and_violations_are_those_of_the_graph(seed):
    options = scenario(seed)
    options["level"] = max(options["level"], 3)  # below that nothing proves that a task was not staged
    simulation = simulated(seed, **options)
    truth, trace = simulation.truth, decode_simulated(simulation)
    (run,) = trace.details["ascend_runs"].rows()
    if options.get("epochs", 1) == 1:
        assert {name: run[name] for name in truth["graph"]} == truth["graph"]
        omitted = sum(stats(trace).get(name, 0) for name in _NOT_DRAWN)
        assert len(dependencies(trace)) + omitted == truth["graph"]["edges"]
    assert judged(trace) == (sorted(truth["violations"]), [])
    assert run["violated_edges"] == len(truth["violations"])
    assert run["violated_tasks"] == len({succ for _, succ in truth["violations"]})
    assert run["violated_pairs"] >= run["violated_edges"]


@pytest.mark.parametrize("format_version", FORMAT_VERSIONS)
def test_injected_violations_are_found_and_no_others(format_version):
    found = 0
    for seed in range(10):
        options = {"format_version": format_version, "tasks": 200, "aic": 4, "aiv": 8}
        clean = decode_simulated(simulated(seed, **options))
        assert judged(clean) == ([], [])
        assert not check.run(clean, select=["LS2"])
        simulation = simulated(seed, violations=10, **options)
        violated = decode_simulated(simulation)
        assert judged(violated)[0] == sorted(simulation.truth["violations"])
        findings = check.run(violated, select=["LS201"])
        assert sum(finding.count for finding in findings) == len(simulation.truth["violations"])
        found += len(simulation.truth["violations"])
    assert found > 20


@pytest.mark.parametrize("format_version", FORMAT_VERSIONS)
def test_clocks_that_step_are_found_and_explain_what_they_break(format_version):
    broken = 0
    for seed in range(6):
        options = {
            "format_version": format_version,
            "tasks": 300,
            "aic": 4,
            "aiv": 8,
            "clock_steps": 2,
            "violations": 5,
        }
        simulation = simulated(seed, **options)
        truth, trace = simulation.truth, decode_simulated(simulation)
        (run,) = trace.details["ascend_runs"].rows()
        assert run["clock_steps"] == truth["clock_steps"]["clocks"] == 2
        suspect = (trace.slices["flags"] & Flag.CLOCK_SUSPECT) != 0
        kernels = np.flatnonzero(suspect & (trace.slices["category"] == "kernel"))
        assert len(kernels) == truth["clock_steps"]["rows"]
        assert judged(trace) == (sorted(truth["violations"]), sorted(truth["violations_by_clock"]))
        counts = {"warning": 0, "notice": 0}
        for finding in check.run(trace, select=["LS201"]):
            counts[finding.severity] += finding.count
        assert counts["warning"] == len(truth["violations"])
        assert counts["notice"] >= len(truth["violations_by_clock"])  # and arrows of tasks without a core
        clocks = check.run(trace, select=["LS304"])
        assert len(clocks) == 2
        assert sum(int(np.isin(finding.evidence.ids, kernels).sum()) for finding in clocks) == len(kernels)
        broken += len(truth["violations_by_clock"])
    assert broken > 20


def test_buffers_that_overflow_lose_runs_of_records():
    simulation = simulated(1, tasks=600, aic=2, aiv=2, overflow=3, buffer=32)
    losses, trace = simulation.truth["losses"], decode_simulated(simulation)
    lost = losses["aicore_unmatched"] + losses["aicpu_unmatched"] + losses["holes"]
    assert 32 < lost <= 96
    producer = [row for row in trace.accounting.rows() if row["scope"] == "producer"]
    assert sum(row["lost"] for row in producer) == lost + losses["holes"]
    assert trace.details["ascend_cores"]["lost_ticks"].sum() > 0


@pytest.mark.parametrize("format_version", FORMAT_VERSIONS)
@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_sums_equal_the_truth(format_version, level):
    simulation = simulated(3, format_version=format_version, level=level, tasks=500, predicated=0.05)
    trace, totals = decode_simulated(simulation), simulation.truth["totals"]
    table = trace.details["ascend_tasks"]
    assert len(table) == totals["executions"]
    for name in ("duration_ns", "propagation_ns", "local_setup_ns", "tail_ns"):
        known = table.valid(name)
        assert (table[name][known].mean() if known.any() else None) == totals[name]
    assert stats(trace).get("ascend_gate_wait", 0) == totals["gated"]


@pytest.mark.parametrize("format_version", FORMAT_VERSIONS)
def test_a_simulated_chip_keeps_the_rules_of_a_chip(format_version):
    for seed in range(6):
        rows = simulated(seed, format_version=format_version, tasks=300, aic=4, aiv=8).truth["rows"]
        columns = {name: np.array(values) for name, values in rows.items() if name != "name"}
        dispatch, receive, start, end, finish = (columns[n] for n in ("dispatch", "receive", "start", "end", "finish"))
        assert (dispatch < receive).all()
        assert (receive <= start).all()
        assert (start < end).all()
        assert (end <= finish).all()
        for core in np.unique(columns["core"]).tolist():
            mine = np.flatnonzero(columns["core"] == core)
            mine = mine[np.argsort(columns["reg_task_id"][mine])]
            assert columns["reg_task_id"][mine].tolist() == list(range(1, len(mine) + 1))
            assert (receive[mine[1:]] > end[mine[:-1]]).all()
            assert (np.diff(dispatch[mine]) >= 0).all()
            # One runs, one waits.
            assert (dispatch[mine[2:]] >= finish[mine[:-2]]).all()


@pytest.mark.parametrize("format_version", FORMAT_VERSIONS)
@pytest.mark.parametrize("clock", [50_000_000, 1_000_000_000])
def test_phases_of_a_simulated_chip(format_version, clock):
    simulation = simulated(5, format_version=format_version, clock=clock, tasks=300)
    trace = decode_simulated(simulation)
    phases, slices = trace.details["ascend_phases"], trace.slices
    begin = slices["ts_ticks"][phases["slice_id"]]
    end = begin + slices["dur_ticks"][phases["slice_id"]]
    role, thread, name = phases["role"], phases["thread"], slices["name"][phases["slice_id"]]
    for number in np.unique(thread).tolist():
        outer = np.flatnonzero((thread == number) & (role == "outer"))
        outer = outer[np.argsort(begin[outer], kind="stable")]
        assert (end[outer[:-1]] <= begin[outer[1:]]).all()
        for row in np.flatnonzero((thread == number) & (role == "inner")).tolist():
            assert ((begin[outer] <= begin[row]) & (end[row] <= end[outer])).any()
            assert name[row] != "resolve" or (end[row] - begin[row]) * 10**9 >= 1000 * clock
        assert (np.diff(phases["loop_iter"][outer].astype(np.int64)) >= 0).all()
    executions = simulation.truth["totals"]["executions"]
    count = phases["tasks_processed"]
    sending = ("dispatch", "early_dispatch", "drain_publish")
    # What a drain publishes is counted again by the next dispatch.
    assert count[np.isin(name, sending[:2])].sum() == executions
    drains, parts = (name == "drain") & (count > 0), np.isin(name, ("drain_prepare", "drain_publish"))
    assert drains.any() == (format_version in ("v3c", "v4"))
    assert parts.sum() == 2 * drains.sum()
    assert (role[parts] == "inner").all()
    assert count[name == "complete"].sum() == executions
    # Dispatch stamps lie in a dispatching phase of the core's thread, finish stamps in a complete phase.
    table = trace.details["ascend_tasks"]
    cores = table["core"]
    clusters = np.where(cores < 24, cores, (cores - 24) // 2) if format_version == "v3c" else cores
    threads = clusters % 3
    for stamps, kinds in (("dispatch_ticks", sending), ("finish_ticks", ("complete",))):
        among = np.isin(name, kinds)
        for stamp, number in zip(table[stamps].tolist(), threads.tolist(), strict=True):
            assert (among & (thread == number) & (begin <= stamp) & (stamp <= end)).any()


def test_lanes_of_a_simulated_chip_are_disjoint():
    for seed in range(12):
        options = {key: value for key, value in scenario(seed).items() if key not in LOSSES}
        trace = decode_simulated(simulated(seed, **options))
        for name in trace.tracks["name"][trace.tracks["role"] == "core"].tolist():
            bars = lane(trace, name)
            assert all(a[1] + a[2] <= b[1] for a, b in itertools.pairwise(bars))


def test_the_clock_of_the_host_is_found_within_the_stated_error():
    for seed in range(8):
        simulation = simulated(seed, format_version="v3c", host=True, tasks=80, dummy=0, alloc=0, predicated=0)
        host, trace = simulation.truth["host"], decode_simulated(simulation)
        (line,) = simulation.files["host_phase_records.jsonl"].splitlines()
        first = min(row["start_ns"] for row in json.loads(line)["records"])
        assert trace.time.epoch_ns == first <= host["first_host_ns"]
        assert stats(trace) == {}
        error = int(trace.anchors["error_ns"].max())
        assert 0 < error < 2100
        table, true = trace.details["ascend_tasks"], recorded(simulation.truth)
        keys = ((core, 1, number) for core, number in zip(table["core"], table["reg_task_id"], strict=True))
        for key, found in zip(keys, table["dispatch_ts"].tolist(), strict=True):
            ticks = true[key]["dispatch"] - host["device_zero_cycles"]
            expected = host["device_zero_host_ns"] - first + ticks * (1 + host["drift"]) * 20
            assert abs(found - expected) <= error + 2


@pytest.mark.parametrize(
    "options", [{}, {"format_version": "v3c", "host": True}, LOSSES], ids=["plain", "host", "losses"]
)
def test_the_same_seed_gives_the_same_bytes(options):
    settled = {option.name: options.get(option.name, option.default) for option in FAMILY.sim_options}
    first, second, other = FAMILY.simulate(settled, 1), FAMILY.simulate(settled, 1), FAMILY.simulate(settled, 2)
    assert first.files == second.files
    assert first.truth == second.truth
    assert first.files != other.files
    json.dumps(first.truth)


def test_truth_may_be_sums_alone():
    assert "rows" not in simulated(1, truth="totals").truth


@pytest.mark.parametrize(
    "options",
    [
        {"format_version": "v5"},
        {"epochs": 2},
        {"format_version": "v4", "host": True, "epochs": 2},
        {"format_version": "v3", "host": True},
        {"level": 5},
        {"tasks": 0},
        {"threads": 0},
        {"clock": 10},
        {"host": True},
        {"mix": 0.9, "spmd": 0.9},
        {"alloc": -0.1},
    ],
)
def test_what_no_chip_could_run_is_refused(options):
    with pytest.raises(UsageError):
        simulated(1, **options)


@pytest.mark.parametrize(
    "options", [{"mix": 0, "spmd": 0, "dummy": 0, "alloc": 1}, {"tasks": 1}, {"aic": 1, "aiv": 1, "tasks": 30}]
)
def test_small_chips_and_graphs(options):
    trace = decode_simulated(simulated(4, **options))
    assert len(trace.details["ascend_submits"]) == options.get("tasks", 400)


def test_unknown_kinds_are_kept_and_counted():
    simulation = simulated(2, tasks=200, unknown_kinds=3)
    trace = decode_simulated(simulation)
    assert simulation.truth["unknown_kinds"] == 3
    assert stats(trace) == {"ascend_unknown_kind": 3}
    assert (trace.slices["name"] == "mystery").sum() == 3
    phases = trace.details["ascend_phases"]
    assert set(phases["role"][trace.slices["name"][phases["slice_id"]] == "mystery"]) == {""}


@pytest.mark.parametrize("chunk", [100, 65_537])
def test_how_a_simulated_file_is_cut_changes_nothing(tmp_path, chunk):
    files = simulated(6, tasks=100, **LOSSES).files
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    main = tmp_path / next(iter(files))
    assert listing(decode_file(main, chunk=chunk)) == listing(decode_file(main))


INJECTED = {
    "drop_aicore": [("aicpu_unmatched", "LS401", "ascend_aicpu_unmatched")],
    "drop_aicpu": [("aicore_unmatched", "LS401", "ascend_aicore_unmatched")],
    "drop_both": [("holes", "LS002", "ascend_missing_dispatch")],
    "duplicates": [("duplicates", "LS402", "ascend_row_duplicate")],
    "ambiguous": [("ambiguous", "LS402", "ascend_key_duplicate")],
    "bad_rows": [("bad_rows", "LS002", "ascend_invalid_row")],
    "drop_phases": [
        ("dispatch_unmatched", "LS401", "ascend_dispatch_unmatched"),
        ("finish_unmatched", "LS401", "ascend_finish_unmatched"),
    ],
}


@pytest.mark.parametrize("format_version", COUNTED)
@pytest.mark.parametrize("fault", INJECTED)
def test_check_finds_injected_losses(fault, format_version):
    options = {"tasks": 150, "format_version": format_version, "aic": 3, "aiv": 6}
    simulation = simulated(14, **{fault: 4}, **options)
    for loss, code, stat in INJECTED[fault]:
        injected = simulation.truth["losses"][loss]
        assert injected > 0
        for found, expected in ((simulation, injected), (simulated(14, **options), 0)):
            findings = [f for f in check.run(decode_simulated(found)) if f.code == code and f.stat == stat]
            assert sum(finding.count for finding in findings) == expected
