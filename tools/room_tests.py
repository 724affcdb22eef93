"""Which tests of a room run which lines of its modules, for `mutate_code.py`.

Each test runs in a fork of a process that has collected all of them and run none. So what one test would keep for
others (a fixture of a module, a cached result) is made, and its lines are run, by each. A line that runs when modules
are imported or tests collected belongs to all tests.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import signal
import sys
import threading
import time
import traceback
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from code_changes import ROOT, SOURCE, Change, ChangedModule

BUILD = ROOT / "build/mutate_code"
#: With a change a test may take ten times the CPU time that it takes without, and so many seconds more; an import, and
#: a test by any clock, so many: beyond, it hangs. A loop without an end may also ask for memory: so much, at most.
MORE_CPU, TIMES_CPU, IMPORT_CPU, MOST_SECONDS = 5, 10, 30, 600
MOST_BYTES = 6 << 30


@dataclass
class Tests:
    """The tests of a room: the seconds that each takes, and the lines that each, or the import, runs in each module."""

    seconds: dict[str, float]
    lines: dict[str, dict[str, list[int]]]
    imported: dict[str, list[int]]

    def of(self, change: Change) -> list[str]:
        """Return the tests that can notice a change, the quickest first; those that do not run the module come last."""
        lines = change.statement_lines()
        order = sorted(self.seconds, key=lambda name: (change.module not in self.lines[name], self.seconds[name]))
        if lines & set(self.imported.get(change.module, ())):
            return order
        return [name for name in order if lines & set(self.lines[name].get(change.module, ()))]


class Lines:
    """The lines of some modules that run; Python calls it for each line."""

    def __init__(self, folder: str) -> None:
        self.modules = {str(path): path.relative_to(SOURCE).as_posix() for path in (SOURCE / folder).rglob("*.py")}
        self.found: dict[str, set[int]] = {}
        self.begin()

    def begin(self) -> None:
        """Forget what ran up to now."""
        self.found = {path: set() for path in self.modules}

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        """Follow a call into these modules, and no other."""
        path = frame.f_code.co_filename
        if path not in self.modules:
            return None
        lines = self.found[path]

        def note(frame: FrameType, event: str, argument: object) -> Any:
            lines.add(frame.f_lineno)
            return note

        return note(frame, event, argument)

    def by_module(self) -> dict[str, list[int]]:
        """Return the lines of each module that ran."""
        return {self.modules[path]: sorted(lines) for path, lines in self.found.items() if lines}


class Recorder:
    """A plugin of pytest that runs each test in a fork and keeps the lines that it runs."""

    def __init__(self, folder: str, target: Path) -> None:
        self.lines, self.target = Lines(folder), target
        self.kept: dict[str, Any] = {"seconds": {}, "lines": {}}
        sys.settrace(self.lines)
        threading.settrace(self.lines)

    def pytest_collection_finish(self) -> None:
        """Keep what ran up to here: the imports."""
        self.kept["imported"] = self.lines.by_module()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool:
        """Run one test."""
        one = self.target.with_suffix(".one")
        child = os.fork()
        if not child:
            status = 1
            try:
                self.lines.begin()
                sys.settrace(self.lines)
                begin = time.perf_counter()
                reports = runtestprotocol(item, log=False, nextitem=None)
                one.write_text(json.dumps([time.perf_counter() - begin, self.lines.by_module()]))
                print(*(report.longrepr for report in reports if report.failed), sep="\n", flush=True)
                status = int(any(report.failed for report in reports))
            finally:
                os._exit(status)
        if os.waitpid(child, 0)[1]:
            pytest.exit(f"{item.nodeid} fails", returncode=1)
        self.kept["seconds"][item.nodeid], self.kept["lines"][item.nodeid] = json.loads(one.read_text())
        return True

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write what was found."""
        sys.settrace(None)
        if not exitstatus:
            self.target.write_text(json.dumps(self.kept))


class Chosen:
    """A plugin of pytest that runs some tests, in the order given, and ends the process if one takes much longer.

    Args:
        seconds: what each takes without a change.
    """

    def __init__(self, seconds: dict[str, float]) -> None:
        self.seconds, self.places = seconds, {name: place for place, name in enumerate(seconds)}

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None]:
        """Leave the others out."""
        yield
        items[:] = sorted(
            (item for item in items if item.nodeid in self.places), key=lambda item: self.places[item.nodeid]
        )

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Wind the clock up."""
        signal.setitimer(signal.ITIMER_PROF, MORE_CPU + TIMES_CPU * self.seconds[item.nodeid])


def passes(files: list[str], plugin: object, log: Path, change: Change | None = None) -> bool:
    """Run pytest in a process of its own, with a change, until a test fails; return whether none does.

    Args:
        files: the test files.
        plugin: what chooses or follows the tests.
        log: where the output goes.
        change: the change; None: there is none.
    """
    child = os.fork()
    if not child:
        status = 1
        try:
            os.setpgid(0, 0)
            os.chdir(ROOT)
            output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(output, 1)
            os.dup2(output, 2)
            resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
            arguments = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:anyio", "--assert=plain"]
            if change:
                signal.setitimer(signal.ITIMER_PROF, IMPORT_CPU)
                arguments += ["--timeout", str(MOST_SECONDS)]
                sys.meta_path.insert(0, ChangedModule(change))
            status = int(pytest.main([*arguments, *files], plugins=[plugin]))
        except BaseException:  # a change may raise anything at the import
            traceback.print_exc()
        finally:
            os._exit(min(status, 100))
    status = os.waitpid(child, 0)[1]
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what a hanging test has started
    return status == 0


def is_noticed(change: Change, names: list[str], tests: Tests, log: Path) -> bool:
    """Return whether one of some tests fails with a change."""
    if not names:
        return False
    files = list(dict.fromkeys(str(ROOT / name.partition("::")[0]) for name in names))
    return not passes(files, Chosen({name: tests.seconds[name] for name in names}), log, change)


def record(room: str, folder: str, wanted: list[str]) -> Tests:
    """Return the tests of a room; kept in build/mutate_code as long as the package and they are the same.

    Args:
        room: its name.
        folder: where its modules lie below src/lanescope.
        wanted: the files and folders of its tests.
    """
    BUILD.mkdir(parents=True, exist_ok=True)
    files = []
    for path in (ROOT / name for name in wanted):
        if not path.exists():
            sys.exit(f"{path.relative_to(ROOT)}: tests of {room} that do not exist")
        files += sorted(str(one) for one in path.rglob("test_*.py")) if path.is_dir() else [str(path)]
    state = hashlib.sha256(repr(files).encode())
    helpers = (path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith("test_"))
    for path in sorted({*SOURCE.rglob("*.py"), *helpers, *map(Path, files)}):
        state.update(path.read_bytes())
    target, log = BUILD / f"{room}-{state.hexdigest()[:16]}.json", BUILD / f"{room}.log"
    if not target.exists():
        new = target.with_suffix(".new")
        if not passes(files, Recorder(folder, new), log):
            sys.exit(f"the tests of {room} fail without a change: see {log.relative_to(ROOT)}")
        tests = Tests(**json.loads(new.read_text()))
        # In one process, and the quickest first, they run another way than in forks.
        if not passes(files, Chosen(dict(sorted(tests.seconds.items(), key=lambda one: one[1]))), log):
            sys.exit(f"the tests of {room} fail in another order: see {log.relative_to(ROOT)}")
        new.rename(target)
    return Tests(**json.loads(target.read_text()))
