"""Every command and every Python block in the documentation runs as it stands."""

import contextlib
import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from effort import QUICK
from lanescope.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *(path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts and "generated" not in path.parts),
]
BLOCK = re.compile(r"(<!-- norun -->\n)?^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)

#: Blocks that need a browser, a device, or set up a checkout: their number must not grow unnoticed.
NOT_RUN = {"docs/howto/commands.md": 1, "docs/howto/ctf.md": 3, "docs/howto/record.md": 8, "README.md": 3}


def blocks(page):
    return [(kind, body, bool(skipped)) for skipped, kind, body in BLOCK.findall(page.read_text())]


def name_of(page):
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def run(request, page, tmp_path):
    """Return a function that runs a command of a page: a process of its own, or in quick runs a call in this one."""
    is_strange = "blinker" in page.read_text()

    def as_process(words):
        environment = dict(os.environ)
        if is_strange:
            environment["PYTHONPATH"] = str(request.getfixturevalue("blinker_site"))
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def as_call(words):
        if is_strange:
            request.getfixturevalue("plugins")
        capfd = request.getfixturevalue("capfd")
        with contextlib.chdir(tmp_path):
            status = main(words[1:])
        return status, "".join(capfd.readouterr())

    def run(command):
        words = shlex.split(command)
        assert words[0] == "lanescope", f"{command}: only lanescope commands are shown outside of norun blocks"
        status, said = (as_call if QUICK else as_process)(words)
        assert status == 0, f"$ {command}\n{said}"

    return run


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_shows_runs(page, tmp_path, run):
    names = {}
    for kind, body, is_skipped in blocks(page):
        if is_skipped:
            continue
        if kind == "console":
            for line in body.splitlines():
                if line.startswith("$ "):
                    run(line[2:])
        else:
            with contextlib.chdir(tmp_path):
                if ">>>" in body:
                    test = doctest.DocTestParser().get_doctest(body, names, page.name, str(page), 0)
                    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
                    runner.run(test, clear_globs=False)
                    names = test.globs
                    assert runner.summarize(verbose=False).failed == 0
                else:
                    exec(compile(body, str(page), "exec"), names)


def test_blocks_that_are_not_run_are_known():
    counts = {name_of(page): sum(skipped for *_, skipped in blocks(page)) for page in PAGES}
    assert {name: count for name, count in counts.items() if count} == NOT_RUN


def test_the_page_about_devices_is_the_example():
    """Who reads the page as it is in the repository sees all of the code, and the code that is tested."""
    page = (DOCS / "howto/add-a-device.md").read_text()
    example = ROOT / "examples/blinker"

    def shown(language):
        return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)

    def lines(text):
        return [line for line in text.splitlines() if line]

    (source,) = (example / "src").rglob("*.py")
    assert lines("".join(shown("python"))) == lines(source.read_text())
    assert "".join(shown("toml")) == (example / "pyproject.toml").read_text()
    assert len(shown("py")) == 1
    assert all(body in (example / "tests/test_blinker.py").read_text() for body in shown("py"))
    assert "literalinclude" not in page
