"""The suite itself: how much it tries, what it holds a quick test to, and that its surroundings decide nothing."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import effort

ROOT = Path(__file__).resolve().parents[1]

#: Tests of a suite that shares the conftest of this one.
SUITE = """
import conftest, pytest, time
from hypothesis import given, strategies as st

conftest.CPU_SECONDS = 0.2
conftest.SLOW_MACHINE = 1.2

def test_cheap():
    pass

def test_dear():
    begin = time.process_time()
    while time.process_time() < begin + 0.3:
        pass

@pytest.mark.full
def test_marked():
    pass

def test_with_a_tool(trace_processor):
    pass

def test_with_a_tool_unseen(request):
    request.getfixturevalue("require_tool")

def test_without_captures(corpus):
    pass

@given(st.integers())
def test_property(number):
    assert number < 1000
"""


@pytest.fixture
def suite(tmp_path):
    """Return a function that runs pytest on such tests; it returns the exit status and what was said."""
    (tmp_path / "test_suite.py").write_text(SUITE)

    def run(*arguments, env=(), **options):
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LANESCOPE_")},
            "PYTHONPATH": str(ROOT / "tests"),
            **dict(env),
        }
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--config-file={ROOT / 'pyproject.toml'}"]
        done = subprocess.run(
            [*command, *map(str, arguments)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
            **options,
        )
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.parametrize(
    ("name", "counts", "places"),
    [
        ("quick", [50, 12, 6, 5], [0, 5, 10, 15, *range(20, 60)]),
        ("ci", [125, 25, 6, 5], list(range(60))),
        ("full", [500, 100, 25, 5], list(range(60))),
    ],
)
def test_less_is_tried_in_quick_runs(monkeypatch, name, counts, places):
    monkeypatch.setattr(effort, "EFFORT", name)
    monkeypatch.setattr(effort, "QUICK", name == "quick")
    assert [effort.some(500), effort.some(100), effort.some(25, 6), effort.some(5)] == counts
    assert effort.cuts(60) == places


def test_a_quick_run_leaves_out_what_needs_tools_and_fails_what_is_dear(suite, tmp_path):
    status, said = suite("-q", "-p", "conftest", tmp_path)
    assert status == 1
    assert "test_dear took 0.3 CPU seconds, a quick test may take 0.2" in said
    assert "a tool was asked for unseen by the collection: mark the test full" in said
    assert re.search(r"more than 0.2 CPU seconds each: test_suite.py::test_dear \(0\.\d\)", said)
    assert "FAILED" in said
    failed = {line.split("::")[1].split()[0] for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))}
    assert failed == {"test_dear", "test_with_a_tool_unseen", "test_property"}
    assert "SKIPPED [1] LANESCOPE_CORPUS is not set" in said
    assert said.splitlines()[-1].startswith("3 failed, 1 passed, 1 skipped, 2 deselected in ")
    assert "effort quick: the same on every run" in said


def test_examples_do_not_depend_on_what_else_was_imported(suite, tmp_path):
    (tmp_path / "numbers_of_ours.py").write_text(f"NUMBERS = {list(range(10**9, 10**9 + 40))}")
    (tmp_path / "test_suite.py").write_text(
        "import sys\n"
        "from hypothesis import given, strategies as st\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "def test_that_imports():\n"
        "    import numbers_of_ours\n"
        "@given(st.lists(st.integers(), min_size=50))\n"
        "def test_property(numbers):\n"
        "    print('drawn', numbers)\n"
    )
    drawn = []
    for chosen in ("property", "property or imports"):
        status, said = suite("-s", "-p", "conftest", tmp_path, "-k", chosen)
        assert status == 0, said
        drawn.append(re.findall(r"drawn (.*)", said))
    assert len(drawn[0]) > 5
    assert drawn[0] == drawn[1]


@pytest.mark.full
def test_a_full_run_prints_the_seed_that_repeats_it(suite, tmp_path):
    status, said = suite("-q", "-p", "conftest", tmp_path, "-k", "marked or property", env={"LANESCOPE_EFFORT": "full"})
    assert (status, "1 failed, 1 passed" in said) == (1, True)
    (seed,) = {word for word in said.split() if word.startswith("--hypothesis-seed=")}
    falsifying = said.split("Failing test case: ")[1].split(")")[0]
    _, again = suite("-q", "-p", "conftest", tmp_path, "-k", "property", seed, env={"LANESCOPE_EFFORT": "full"})
    assert falsifying in again


@pytest.mark.full
def test_a_hunt_keeps_what_it_finds(tmp_path):
    path = tmp_path / "test_found.py"
    path.write_text(SUITE)
    command = [sys.executable, str(ROOT / "tools/hunt.py"), "0.01"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "tests"),
        "PYTEST": f"-p conftest --config-file='{ROOT}/pyproject.toml' {path}",
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    first, *_ = done.stdout.splitlines()
    assert first.startswith("seed ")
    assert ": 1 tests, 1 failed, " in first
    seed = first.split()[1].rstrip(":")
    log = ROOT / f"build/hunt/{seed}.log"
    assert "Failing test case: test_property(" in log.read_text()
    log.unlink()


def test_what_surrounds_a_run_does_not_decide_how_it_ends(suite):
    """A narrow terminal, colours, Python's variables, and a shell whose background jobs ignore Ctrl-C."""
    surroundings = {
        "COLUMNS": "40",
        "FORCE_COLOR": "1",
        "NO_COLOR": "1",
        "PYTHONWARNINGS": "error",
        "PYTHONUNBUFFERED": "1",
        "PYTHONOPTIMIZE": "",
        "PYTHONIOENCODING": "ascii",
        "LANESCOPE_DEBUG": "1",
    }
    tests = [
        "tests/cli/test_main.py::test_a_signal_ends_with_128_and_its_number[2-130]",
        "tests/cli/test_main.py::test_a_bug_of_ours_is_one_line_and_exit_70",
        "tests/cli/test_help.py::test_flags_work_though_the_help_does_not_show_them",
    ]
    status, said = suite(*tests, env=surroundings, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert (status, "3 passed" in said) == (0, True), said
