"""The recorder under the programs of the scenario matrix, and under random ones; a sample of ``make matrix``.

Each program is run with and without the recorder. What was recorded must be what the driver did: every run of every
operation once, with its ticks and its kernel; the program's own results, events and timestamps must be what they were.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

import lanescope
from effort import EFFORT
from lanescope.analysis import check
from native import matrix_mutants, matrix_programs
from native.matrix_programs import answered, is_legal
from native.matrix_run import FAULTS, QUIRKS, THREADED, Bench, Case, examine, fresh, own_results
from native.matrix_writers import Program

# The first test of a session compiles the driver, the recorder and the programs.
pytestmark = pytest.mark.timeout(1200)

#: R26 of the table of regressions is not a program.
ROWS = [
    *(f"R{i}" for i in range(1, 34) if i != 26),
    *(f"N{i}" for i in range(1, 10)),
    *(f"S{i}" for i in range(1, 27)),
    *(f"T{i}" for i in range(1, 8)),
    *(f"L{i}" for i in range(1, 10)),
    *(f"G{i}" for i in range(1, 7)),
    "D1",
    "D2",
    "M1",
]
#: Runs of a row in the suite; `make matrix` runs all.
RUNS_A_ROW = 4


@pytest.fixture(scope="session")
def bench(levelzero):
    return Bench.build(levelzero)


@pytest.fixture(scope="session", params=["address,undefined", "thread"])
def sanitized(request, levelzero):
    return Bench.build(levelzero, request.param), request.param == "thread"


def sample(rows, name):
    """Some cases of a row: its kinds of lists in turn, quirks in turn, with and without option H.

    Over all rows every quirk comes many times; those of one row are spread as far as they can.
    """
    number = ROWS.index(name)
    row = next(row for row in rows if row.name == name)
    quirks = [quirk for quirk in QUIRKS if row.can_run(QUIRKS[quirk])]
    variants = row.variants()
    step = max(1, len(variants) // RUNS_A_ROW)
    chosen = variants[number % step :: step][:RUNS_A_ROW]
    return [
        Case(row, lists, engine, quirks[(5 * number + 7 * place) % len(quirks)], host_read=(number + place) % 2 == 1)
        for place, (lists, engine) in enumerate(chosen)
    ]


def verified(bench, case, folder):
    """Run a case, recorded and not; return what is wrong."""
    reference = bench.run_case(case.plain(), fresh(folder / "plain"), recorded=False)
    assert reference.status == 0, f"{case.plain()}, not recorded: {reference.out}{reference.err}"
    assert own_results(reference, 32) == []
    verdict = bench.verify(case, reference.out, folder / "recorded")
    return verdict, [f"{case}: {failure}" for failure in verdict.failures[:5]]


def test_every_row_is_here(bench):
    assert sorted(row.name for row in bench.rows()) == sorted(ROWS)
    used = Counter(case.quirk for name in ROWS for case in sample(bench.rows(), name))
    assert used.keys() == QUIRKS.keys()


@pytest.mark.parametrize("name", ROWS)
def test_rows(bench, tmp_path, name):
    failures, timed, untimed = [], 0, 0
    for case in sample(bench.rows(), name):
        verdict, wrong = verified(bench, case, tmp_path)
        failures += wrong
        timed += verdict.timed
        untimed += verdict.untimed.total()
    assert failures == []
    assert untimed if name == "S13" else timed


@pytest.mark.parametrize("name", ["R29", "S16"])
def test_runs_that_overlap_are_right_or_given_up(bench, tmp_path, name):
    """Lists submitted again while they run, and ticks that the host sees part by part of events that stay signalled."""
    row = next(row for row in bench.rows() if row.name == name)
    failures, results, given_up, runs = [], 0, 0, 0
    for lists, engine in row.variants():
        for host_read in (False, True):
            verdict, wrong = verified(bench, Case(row, lists, engine, "sticky, torn", host_read), tmp_path)
            failures += wrong
            results, given_up, runs = results + verdict.results, given_up + verdict.lost, runs + verdict.runs
    assert failures == []
    assert results > 40
    assert results + given_up == runs


@pytest.mark.parametrize("name", ["R12", "R27"])
def test_calls_of_the_recorders_that_fail(bench, tmp_path, name):
    """The program does not notice; what could not be timed is said, all else is exact."""
    row = next(row for row in bench.rows() if row.name == name)
    failures, hits, untimed = [], Counter(), 0
    for number, fault in enumerate(FAULTS):
        lists, engine = row.variants()[number % len(row.variants())]
        verdict, wrong = verified(bench, Case(row, lists, engine, "plain", number % 3 == 1, fault=fault), tmp_path)
        failures += wrong
        hits[fault[0]] += verdict.hit
        untimed += verdict.untimed.total()
    assert failures == []
    assert {"zeMemAllocHost", "zeEventPoolCreate", "zeEventCreate"} <= {name for name, count in hits.items() if count}
    assert untimed > 50


@pytest.mark.parametrize("resets", ["works", "sticky"])
@pytest.mark.parametrize("lists", ["immediate,in-order", "regular,out-of-order"])
def test_operations_are_on_the_timelines_of_their_devices(bench, tmp_path, lists, resets):
    """Of devices whose clocks are ten seconds apart, and of their parts: each by the clock of its own device."""
    row = next(row for row in bench.rows() if row.name == "D1")
    quirks = Case(row, lists, "compute", "plain").quirks() | {"host_reset": resets, "skew": 125_000_000}
    ran = bench.run(["D1", lists, "compute"], quirks, tmp_path)
    assert ran.status == 0
    trace = lanescope.open(ran.folder)
    queues = {
        row["track_id"]: row["subdevice_uuid"] or row["device_uuid"] for row in trace.details["levelzero_queues"].rows()
    }
    slices = {row["id"]: row for row in trace.slices.rows()}
    truth = {("op_" + op["mark"], op["run"]): op for op in ran.truth}
    ahead, found = [], Counter()
    for row in trace.details["levelzero_operations"].rows():
        drawn = slices[row["slice_id"]]
        op = truth[drawn["name"], row["execution_index"]]
        assert queues[drawn["track_id"]][:6] == f"5f{op['device'] + 1:02x}{op['subdevice']:02x}"
        ahead.append(drawn["ts"] - op["host_start_ns"])
        found[op["device"], op["subdevice"]] += 1
    assert found == dict.fromkeys(((d, s) for d in range(2) for s in range(3)), 2 if "immediate" in lists else 6)
    assert max(ahead) - min(ahead) < 1_000_000_000


@pytest.mark.parametrize(
    ("name", "lists", "stats"),
    [
        ("L6", "regular,out-of-order", {"levelzero_result_abandoned": 2, "levelzero_prologue": 2}),
        ("L9", "immediate,in-order", {"levelzero_unsynchronized": 2}),
        ("G2", "immediate,in-order", {"levelzero_degraded": 5}),
        ("G5", "regular,in-order", {"levelzero_degraded": 2}),
        ("G6", "immediate,in-order", {"levelzero_degraded": 4}),
    ],
)
def test_what_has_no_timestamps_is_said(bench, tmp_path, name, lists, stats):
    row = next(row for row in bench.rows() if row.name == name)
    ran = bench.run_case(Case(row, lists, "compute", "sticky resets"), tmp_path)
    assert ran.status == 0
    assert ("the device is lost" in ran.err) == (name == "L6")
    trace = lanescope.open(ran.folder)
    found = {row["name"]: row["count"] for row in trace.stats.rows()}
    assert {name: found.get(name) for name in stats} == stats
    assert {"LS002", "LS403", "LS404", "LS405"} & {finding.code for finding in check.run(trace)}


def test_sanitizers_find_nothing(sanitized, tmp_path):
    """Rows with threads and some of all others under the race checker, some of all under the others."""
    bench, is_thread = sanitized
    failures = []
    rows = bench.rows()
    for number, name in enumerate(ROWS):
        row = next(row for row in rows if row.name == name)
        if number % 3 and not (is_thread and row.traits & THREADED):
            continue
        case = sample(rows, name)[-1]
        if "API 1.4" not in case.quirk:
            failures += verified(bench, replace(case, quirk="overlap"), tmp_path)[1]
    for seed in range(1000, 1005):
        program, quirks = matrix_programs.legal_program(seed)
        verdict = matrix_programs.run_program(bench, program, quirks, tmp_path / "random", host_read=bool(seed % 2))
        failures += [] if verdict is None else verdict.failures
    assert failures == []


# --- random programs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", range(0, 80, 10))
@pytest.mark.parametrize("kind", ["any", "hard"])
@pytest.mark.parametrize("world", ["works", "sticky", "view"])
def test_random_programs(bench, tmp_path, world, kind, first):
    """Every run is timed, whatever host resets do, and whatever waits for the host meanwhile."""
    group = matrix_programs.run_group(
        bench, range(first, first + 10), world, tmp_path, kind=kind, timeline=first % 40 == 0
    )
    assert group.failures == {}
    assert group.verdict.results == group.verdict.runs
    assert group.illegal or group.verdict.runs > 50


def test_a_program_that_fails_is_found_in_its_group(bench, tmp_path, monkeypatch):
    """By its seed: each is run alone."""
    right = matrix_programs.examine

    def examine(ran, *arguments, **options):
        verdict = right(ran, *arguments, **options)
        wanted = matrix_programs.legal_program(3, quirks=matrix_programs.random_quirks(2, "works"))[0].output()
        if ran.out.replace("p3", "").find(wanted) >= 0:
            verdict.failures.append("this one")
        return verdict

    monkeypatch.setattr(matrix_programs, "examine", examine)
    group = matrix_programs.run_group(bench, range(2, 5), "works", tmp_path)
    assert group.alone
    assert group.failures == {3: ["this one"]}
    assert group.verdict.runs > 10


@pytest.mark.parametrize("first", range(0, 80, 20))
@pytest.mark.parametrize("world", ["works", "sticky", "view"])
def test_random_programs_that_query_and_reset_events(bench, tmp_path, world, first):
    """What queries in lists and the host read is right, or said to be that of another operation; the rest is timed."""
    group = matrix_programs.run_group(bench, range(first, first + 20), world, tmp_path, kind="queries")
    assert group.failures == {}
    assert group.verdict.results + group.verdict.untimed["read_by_device"] <= group.verdict.runs
    assert group.verdict.results > 0.9 * group.verdict.runs
    assert group.verdict.readings - group.verdict.false_readings > 20


#: Programs of which a query was wrong once: their lists, and what the device says of their query.
QUERIES = {
    "behind a reset in its own list": (
        {"L": ("regular", "out-of-order", "compute")},
        ["op L A a -", "barrier L B - -", "event_reset L a", "barrier L C - -", "query L Q a - a", "op L D a -"],
        ["close L", "execute qc L", "sync_queue qc", "tell Q ? 0"],
    ),
    "of the first of two that are not over": (
        {"L": ("immediate", "out-of-order", "copy"), "M": ("immediate", "in-order", "compute")},
        ["op L A a -", "op L B a b", "query M Q a - a", "op M C b -"],
        ["sync_list L", "sync_list M", "tell Q ? 0"],
    ),
    "of a list that was executed, and has got another operation": (
        {"L": ("immediate", "in-order", "compute"), "M": ("regular", "in-order", "copy")},
        ["op M A a -", "close M", "execute qk M", "sync_queue qk", "reset M", "op M B a b", "query L Q a - a"],
        ["op L C b -", "close M", "execute qk M", "sync_queue qk", "tell Q ? 0"],
    ),
    "of the first of two of a list that runs again": (
        {"L": ("regular", "in-order", "copy"), "M": ("immediate", "in-order", "compute")},
        ["op L A a -", "op L B a b", "close L", "execute qk L", "op M C b -", "sync_queue qk", "sync_list M"],
        [
            "host_reset a",
            "host_reset b",
            "query M Q a - a",
            "op M D b -",
            "execute qk L",
            "sync_queue qk",
            "tell Q ? 0",
        ],
    ),
    "of the first of two of a list that resets the event in between": (
        {"L": ("regular", "out-of-order", "compute"), "M": ("regular", "in-order", "compute")},
        ["op L A a -", "barrier L B - -", "event_reset L a", "op L C a -", "close L", "query M Q a - a", "close M"],
        ["execute qc M", "execute qc L", "sync_queue qc", "tell Q ? 0"],
    ),
    "of a list that gets a second signaller while it waits": (
        {"L": ("regular", "out-of-order", "compute"), "M": ("immediate", "in-order", "compute")},
        ["op L A a b", "query M Q a - a", "op L B a -", "close L", "op M C b -"],
        ["execute qc L", "sync_queue qc", "tell Q ? 0"],
    ),
    "of a list that is reset before it runs, and signals the event anew": (
        {"L": ("regular", "out-of-order", "compute"), "M": ("immediate", "out-of-order", "compute")},
        ["op L A a -", "query M Q a - a", "reset L", "op L B a -", "close L"],
        ["execute qc L", "sync_list M", "sync_queue qc", "tell Q ? 0"],
    ),
    "of the next run of a list that is reset instead": (
        {"L": ("regular", "out-of-order", "copy"), "M": ("immediate", "out-of-order", "compute")},
        ["op L A a -", "close L", "execute qk L", "sync_queue qk", "host_reset a", "query M Q a - a", "reset L"],
        ["op L B a -", "close L", "execute qk L", "sync_list M", "sync_queue qk", "tell Q ? 0"],
    ),
    "between two of its own list that has no order": (
        {"L": ("regular", "out-of-order", "compute")},
        ["op L A a b", "query L Q a g a", "op L B a -", "close L"],
        ["execute qc L", "sync_event g", "host_signal b", "sync_queue qc", "tell Q ? 0"],
    ),
    "that has not run when what it reads runs again": (
        {"L": ("regular", "out-of-order", "copy"), "M": ("immediate", "in-order", "compute")},
        ["op L A a b", "close L", "host_signal b", "execute qk L", "sync_queue qk", "host_reset b", "wait M g"],
        ["query M Q a b a", "execute qk L", "host_signal g", "sync_queue qk", "tell Q ? 0"],
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_reads_what_it_would_or_is_said_not_to(bench, tmp_path, name):
    lists, *steps = QUERIES[name]
    events = {"a": "ticks", "b": "plain", "g": "plain"}
    quirks = {"order": "free", "reset_clears": 1}
    program = one_thread(*steps[0], *steps[1], lists=lists, events=events).renamed("o")
    program = answered(program, quirks)
    assert program is not None
    assert [step[0] for step in program.threads[0]].count("tell") == 1
    for host_read in (False, True):
        verdict = matrix_programs.run_program(bench, program, quirks, tmp_path, host_read=host_read)
        assert verdict.failures == []
        assert verdict.said or verdict.untimed["read_by_device"]


def test_a_query_reads_what_the_list_signals_that_was_executed_last(bench, tmp_path):
    lists = dict.fromkeys("LM", ("regular", "in-order", "copy")) | {"N": ("immediate", "in-order", "compute")}
    appended = ["op L A a -", "host_reset a", "op M B a -", "close L", "close M"]
    runs = [
        (
            f"execute qk {name}",
            "sync_queue qk",
            f"query N {mark} a - a",
            "sync_list N",
            f"tell {mark} ? 0",
            "host_reset a",
        )
        for name, mark in (("L", "P"), ("M", "Q"), ("L", "R"))
    ]
    program = one_thread(*appended, *(step for run in runs for step in run), lists=lists).renamed("o")
    program = answered(program, {})
    assert program is not None
    assert [step[2:] for step in program.threads[0] if step[0] == "tell"] == [("oA", "1"), ("oB", "1"), ("oA", "2")]
    for host_read in (False, True):
        verdict = matrix_programs.run_program(bench, program, {}, tmp_path, host_read=host_read)
        assert (verdict.failures, verdict.said, verdict.untimed) == ([], 0, Counter())


@pytest.mark.parametrize("resets", ["watch", "off"])
def test_random_programs_where_nothing_may_be_added(bench, tmp_path, resets):
    """What is timed is right, what is not is said."""
    failures, results, runs = [], 0, 0
    for seed in range(16):
        program, quirks = matrix_programs.legal_program(seed, "sticky", kind="hard" if seed % 2 == 0 else "any")
        verdict = matrix_programs.run_program(
            bench, program, quirks, tmp_path, host_read=bool(seed % 4 < 2), resets=resets
        )
        if verdict is not None:
            failures += [f"seed {seed}: {failure}" for failure in verdict.failures]
            results, runs = results + verdict.results, runs + verdict.runs
    assert failures == []
    assert 0 < results < runs


@pytest.mark.skipif(EFFORT != "full", reason="builds the recorder once for each mutant: LANESCOPE_EFFORT=full")
def test_the_programs_notice_every_mutant(bench, tmp_path):
    (tmp_path / "runs").mkdir()
    workshop = matrix_mutants.Workshop(bench, tmp_path)
    missed = [
        mutant.name
        for mutant in matrix_mutants.MUTANTS
        if not matrix_mutants.noticed(workshop.made(mutant), mutant, tmp_path / "runs")[0]
    ]
    assert missed == []


def one_thread(*steps, lists=None, events=None):
    return Program(
        lists or {"L": ("immediate", "out-of-order", "compute"), "M": ("regular", "in-order", "copy")},
        {"qc": "compute", "qk": "copy"},
        events or {"a": "ticks", "g": "plain"},
        (tuple(tuple(step.split()) for step in steps),),
    )


@pytest.mark.parametrize(
    "steps",
    [
        ["op L A a -", "sync_event a", "host_reset a"],
        ["op L A a g", "host_signal g", "sync_list L", "renew a"],
        ["op M A - -", "close M", "execute qk M", "sync_fence M", "execute qk M", "sync_queue qk", "reset M"],
    ],
)
def test_the_model_takes_legal_programs(steps):
    assert is_legal(one_thread(*steps), {})


@pytest.mark.parametrize(
    "steps",
    [
        ["op L A a g", "sync_event a", "host_signal g"],  # hangs
        ["op L A a g", "renew a", "host_signal g"],  # destroyed in use
        ["op L A a g", "host_reset g"],  # reset in use, and never signalled
        ["op M A - -", "execute qk M"],  # open
        ["op M A - g", "close M", "execute qk M", "execute qk M", "host_signal g"],  # still runs
        ["op M A - g", "close M", "execute qk M", "reset M", "host_signal g"],
        ["op M A a -", "close M", "renew a"],  # recorded
        ["op M A - -", "destroy M", "op M B - -"],
        ["wait L g", "op L A a -", "sync_event a", "host_signal g"],  # nothing passes a wait
    ],
)
def test_the_model_knows_what_is_illegal(steps):
    assert not is_legal(one_thread(*steps), {})


def test_the_model_knows_orders():
    """What an unordered list lets pass, a front end that starts in order does not."""
    program = one_thread("op L A - g", "op L B a -", "sync_event a", "host_signal g")
    assert is_legal(program, {"order": "free"})
    assert not is_legal(program, {"order": "list"})
    other = one_thread(
        *("op L A - g", "op N B a -", "sync_event a", "host_signal g"),
        lists=dict.fromkeys("LN", ("immediate", "out-of-order", "compute")),
    )
    assert is_legal(other, {"order": "list"})
    assert not is_legal(other, {"order": "engine"})


def test_programs_run_as_the_model_says(bench, tmp_path):
    """The same programs without the recorder: they end, complain of nothing, and run what the text says."""
    for seed in range(20):
        program, quirks = matrix_programs.legal_program(seed)
        file = fresh(tmp_path / "run") / "program"
        file.write_text(program.text())
        ran = bench.run(["--program", str(file)], quirks, tmp_path / "run", recorded=False)
        assert (ran.status, ran.out, ran.said) == (0, program.output(), [])
        assert Counter(op["mark"] for op in ran.truth if op["mark"].startswith("o")) == program.runs()


# --- the checks themselves ----------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def ran(bench, tmp_path_factory):
    """A row that has all that is checked."""
    rows = {row.name: row for row in bench.rows()}
    found = {}
    for name in ("R31", "R4", "S9"):
        case = Case(rows[name], "regular,in-order", "compute", "plain")
        found[name] = bench.run_case(case, tmp_path_factory.mktemp(name))
        assert examine(found[name], {}, host_read=False, row=case.row).failures == []
    return found


def changed(ran, **to):
    """The same run with a truth of which one operation differs."""
    truth = [dict(op) for op in ran.truth]
    mark = next(op for op in truth if op["mark"])
    mark.update(to)
    return replace(ran, truth=truth)


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ({"end": 5}, "instead of"),
        ({"context_start": 5}, "instead of"),
        ({"run": 77}, "no result"),
        ({"mark": ""}, "belongs to no operation"),
        ({"host_end_ns": 1 << 62}, "handed on before it has ended"),
    ],
    ids=str,
)
def test_a_difference_is_found(ran, to, words):
    failures = examine(changed(ran["R4"], **to), {}, host_read=False).failures
    assert any(words in failure for failure in failures), failures


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        ("R4", "op 1 ghost L 0 compute 0 zeCommandListAppendBarrier - 0", "appended"),
        ("R4", "lock zeCommandListAppendBarrier", "with a lock of the recorder's held"),
        ("R4", "locks 0", "the check is blind"),
        ("R4", "due 1 0 ghost 1", "calls are missing"),
        ("R31", "ticks A 1 1 2 3 4", "are right"),
        ("S9", "level end memory.host 1000000000", "memory.host grew"),
    ],
)
def test_a_note_that_does_not_fit_is_found(ran, name, line, words):
    told = replace(ran[name], journal=[*ran[name].journal, line.split(" ")])
    failures = examine(told, {}, host_read=False).failures
    assert any(words in failure for failure in failures), failures


def test_what_is_left_behind_is_found(ran):
    told = replace(ran["R4"], stats={**ran["R4"].stats, "live.event": 1}, said=["event reset while the device uses it"])
    failures = examine(told, {}, host_read=True).failures
    assert any("left behind: {'live.event': 1}" in failure for failure in failures)
    assert any("the driver complains" in failure for failure in failures)
    assert any("is timed by INLINE" in failure for failure in failures)
