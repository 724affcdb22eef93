"""The simulator, held to what the runtime itself wrote: fields, kinds, orders and relations of the shared captures."""

from __future__ import annotations

import copy
import json
from collections import defaultdict

import pytest

from lanescope.analysis import check

from .as_v4 import as_v3c, as_v4
from .capture_profile import Case, features, kinds_of, orders
from .capture_rules import relations
from .helpers import decode_simulated, simulated

_CHIP = {"format_version": "v3c", "tasks": 200, "aic": 8, "aiv": 16, "truth": "totals"}
#: What is simulated of each runtime: together they have to show all that the runtime was seen to do.
SCENARIOS = {
    "tensormap": (
        {},
        {"fan_in": 80, "mix": 0.2, "spmd": 0.2, "dummy": 0.1, "alloc": 0.1, "predicated": 0.1, "speculative": 0.5},
        {"threads": 1, "spmd": 0.3, "dummy": 0.2, "speculative": 1.0},
    ),
    "host_build_graph": (
        {"host": True},
        {"host": True, "graphs": 0.1, "mix": 0.2, "spmd": 0.2, "alloc": 0.1, "predicated": 0.2, "dummy": 0.1},
        {"host": True, "graphs": 0.2, "threads": 1},
    ),
}
CLOCKS = {"a2a3": 50_000_000, "a5": 1_000_000_000}
#: What differs on the faster chip for a reason of its own.
_OF_PLATFORM = {
    "4 lists of phases": "5 lists of phases",
    "metadata.clock_freq_hz = 50000000": "metadata.clock_freq_hz = 1000000000",
}
SEEDS = 3


@pytest.fixture(scope="module")
def produced(corpus):
    """Return the cases that the runtime wrote."""
    paths = sorted((corpus / "producers" / "ascend").glob("*/*/chip_swimlane_records.json"))
    assert len(paths) >= 40
    return [Case({one.name: one.read_bytes() for one in path.parent.iterdir() if one.is_file()}) for path in paths]


@pytest.fixture(scope="module")
def rules(produced):
    """Return the relations that say something about a runtime's captures and hold in all of them, by runtime."""
    kept = rules_of(produced)
    assert set(kept) == set(SCENARIOS)
    assert min(len(names) for names in kept.values()) > 40
    return kept


@pytest.fixture(scope="module")
def produced_as_v4(produced):
    """Return the cases of graphs that the host built, with what version 4 keeps of them."""
    return [
        Case({name: json.dumps(content) for name, content in files.items()}, host=case.host)
        for case in produced
        if case.is_host_built
        for files in [files_of(*as_v3c(*as_v4(case.records, case.deps)), case.names)]
    ]


def files_of(records, deps, names):
    files = {"chip_swimlane_records.json": records, "deps.json": deps, "name_map.json": names}
    return {name: content for name, content in files.items() if content is not None}


def rules_of(cases):
    found = defaultdict(lambda: defaultdict(set))
    for case in cases:
        for name, holds in relations(case).items():
            found[case.group[0]][name].add(holds)
    return {
        runtime: {name for name, seen in names.items() if True in seen and False not in seen}
        for runtime, names in found.items()
    }


def made(runtime, platform, level):
    """Return the simulated cases of a runtime, a platform and a level."""
    options = {**_CHIP, "level": level, "clock": CLOCKS[platform]}
    return [
        Case(simulated(seed, **options, **scenario).files) for scenario in SCENARIOS[runtime] for seed in range(SEEDS)
    ]


def lacks(produced, simulated_cases, runtime, platform, level):
    """Return the features that the runtime shows at a level and the simulator never does.

    Captures of a2a3 stand for a5 as well: format and schedulers are the same, but for the number of threads.
    """
    seen = {one for case in produced if case.group[::2] == (runtime, level) for one in features(case)}
    assert seen
    if platform == "a5":
        seen = {_OF_PLATFORM.get(one, one) for one in seen}
    return seen - {one for case in simulated_cases for one in features(case)}


@pytest.mark.parametrize("platform", CLOCKS)
@pytest.mark.parametrize(
    ("runtime", "level"),
    [*(("tensormap", level) for level in range(1, 5)), *(("host_build_graph", n) for n in (1, 3, 4))],
)
def test_the_simulator_shows_all_that_the_runtime_does(produced, rules, runtime, platform, level):
    cases = made(runtime, platform, level)
    assert {case.group for case in cases} == {(runtime, platform, level)}
    assert lacks(produced, cases, runtime, platform, level) == set()
    for case in cases:
        assert [name for name, holds in relations(case).items() if holds is False and name in rules[runtime]] == []
    known = {pair for case in produced if case.group[0] == runtime for pair in orders(case)}
    met = {pair for case in cases for pair in orders(case)}
    # An order that the runtime never showed is free unless it showed the opposite one alone.
    assert {(one, other) for one, other in met - known if (other, one) in known} == set()


@pytest.mark.parametrize("platform", CLOCKS)
@pytest.mark.parametrize("level", [1, 3, 4])
def test_the_simulator_shows_the_same_of_graphs_of_the_host_in_version_4(produced_as_v4, level, platform):
    runtime, cases = "host_build_graph", []
    for scenario in SCENARIOS[runtime]:
        for seed in range(SEEDS):
            options = {**_CHIP, "format_version": "v4", "anchors": False, "level": level, "clock": CLOCKS[platform]}
            files = simulated(seed, **options, **scenario).files
            records, deps, names = (
                json.loads(files[name])
                for name in ("chip_swimlane_records.json", "deps.json", "name_map_simulated.json")
            )
            assert records["metadata"]["runtime"] == runtime
            assert all(len(row) == 7 for row in records["aicore_tasks"])
            assert {row[1] >> 62 for row in records["aicore_tasks"]} <= {0, 1}
            host = [json.loads(line) for line in files.get("host_phase_records.jsonl", b"").splitlines()]
            made = files_of(*as_v3c(records, deps), names)
            cases.append(Case({name: json.dumps(content) for name, content in made.items()}, host=host))
    assert {case.group for case in cases} == {(runtime, platform, level)}
    assert any("node" in kinds_of(case).values() for case in cases)
    assert lacks(produced_as_v4, cases, runtime, platform, level) == set()
    rules = rules_of(produced_as_v4)[runtime]
    assert len(rules) > 40
    for case in cases:
        assert [name for name, holds in relations(case).items() if holds is False and name in rules] == []
    known = {pair for case in produced_as_v4 for pair in orders(case)}
    met = {pair for case in cases for pair in orders(case)}
    assert {(one, other) for one, other in met - known if (other, one) in known} == set()


@pytest.mark.parametrize("level", [1, 2, 3, 4])
@pytest.mark.parametrize("format_version", ["v3c", "v4"])
@pytest.mark.parametrize("runtime", SCENARIOS)
def test_what_is_simulated_has_no_finding(runtime, format_version, level):
    for scenario in SCENARIOS[runtime]:
        simulation = simulated(1, **{**_CHIP, "format_version": format_version}, level=level, **scenario)
        trace = decode_simulated(simulation)
        assert [found for found in check.run(trace) if found.severity in ("warning", "error")] == []
        assert len(trace.details["ascend_tasks"]) == simulation.truth["totals"]["executions"]


def test_a_full_chip_with_one_scheduler_keeps_the_rules(rules):
    # It sees so many ends in one look that several are of one core.
    options = {"format_version": "v3c", "tasks": 300, "aic": 36, "aiv": 72, "threads": 1, "clock": CLOCKS["a5"]}
    shares = {"mix": 0.3, "spmd": 0.3, "dummy": 0, "alloc": 0.1, "predicated": 0.1, "speculative": 1.0}
    case = Case(simulated(848_105, level=4, **options, **shares).files)
    assert "finishes of a core never fall" in rules["tensormap"]
    assert [name for name, holds in relations(case).items() if holds is False and name in rules["tensormap"]] == []


@pytest.mark.parametrize("format_version", ["v3c", "v4"])
def test_few_tasks_with_graphs_keep_the_rules(format_version):
    for seed in range(30):
        options = {"tasks": 1 + seed % 5, "graphs": 0.6, "host": True, "threads": 1 + seed % 3, "predicated": 0.2}
        simulation = simulated(seed, **{**_CHIP, "format_version": format_version, **options})
        records, deps = (json.loads(simulation.files[name]) for name in ("chip_swimlane_records.json", "deps.json"))
        if format_version == "v4":
            records, deps = as_v3c(records, deps)
        case = Case({name: json.dumps(content) for name, content in files_of(records, deps, None).items()}, host=[])
        assert [phase for phase in case.phases if phase["loop_iter"] < 1] == []
        trace = decode_simulated(simulation)
        assert [found for found in check.run(trace) if found.severity != "notice"] == []


def test_a_runtime_that_did_more_would_be_missed(produced):
    cases = made("tensormap", "a2a3", 4)
    case = copy.deepcopy(next(case for case in produced if case.group == ("tensormap", "a2a3", 4) and case.phases))
    phase = case.phases[0]
    phase["kind"], phase["more"] = "worksteal", 1
    case.metadata["provider"] = "other"
    missing = lacks([case], cases, "tensormap", "a2a3", 4)
    assert any(one.startswith("worksteal {") and "more" in one for one in missing)
    assert "metadata.provider: str" in missing


def _first(content, key):
    """Return the first phase of a kind."""
    return next(phase for thread in content["aicpu_scheduler_phases"] for phase in thread if phase["kind"] == key)


def _raise(key):
    def change(content):
        _first(content, key)["tasks_processed"] += 1

    return change


def _swap(content):
    thread = content["aicpu_scheduler_phases"][0]
    at = next(n for n, phase in enumerate(thread) if phase["kind"] == "drain_prepare")
    thread[at], thread[at + 2] = thread[at + 2], thread[at]


def _late(content):
    content["aicpu_tasks"][0][2] = content["aicore_tasks"][0][3] + 1


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (_raise("dispatch"), "dispatch and early dispatch count the rows"),
        (_raise("complete"), "complete counts the rows"),
        (_raise("drain_publish"), "a drain prepares what it publishes"),
        (_raise("dummy"), "dummies count markers"),
        (_swap, "inner phases lie in the outer one behind them"),
        (_late, "dispatch <= receive"),
        (lambda content: content["metadata"]["core_to_thread"].reverse(), "clusters go round"),
        (lambda content: content["aicore_tasks"].pop(), "rows join one to one"),
        (lambda content: content["aicpu_orchestrator_phases"][0].pop(3), "aicpu submits are numbered from 0"),
        (
            lambda content: content["aicpu_scheduler_phases"][0].pop(),
            "the last phase of a thread is a dispatch without width or tasks",
        ),
    ],
)
def test_a_simulator_that_broke_a_rule_would_be_caught(rules, change, broken):
    files = simulated(0, **_CHIP, level=4, **SCENARIOS["tensormap"][1]).files
    content = json.loads(files["chip_swimlane_records.json"])
    assert relations(Case(files))[broken] is True
    change(content)
    found = relations(Case({**files, "chip_swimlane_records.json": json.dumps(content)}))
    assert found[broken] is False
    assert broken in rules["tensormap"]
