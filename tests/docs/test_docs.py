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

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    *(path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts and "generated" not in path.parts),
]
BLOCK = re.compile(r"(<!-- norun -->\n)?^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)

#: Blocks that need a browser, a device, or set up a checkout: their number must not grow unnoticed.
NOT_RUN = {"docs/howto/commands.md": 1, "docs/howto/record.md": 4, "README.md": 3}


def blocks(page):
    return [(kind, body, bool(skipped)) for skipped, kind, body in BLOCK.findall(page.read_text())]


def name_of(page):
    return page.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """A folder with the package of the recipe installed."""
    site = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    example = str(ROOT / "examples" / "blinker")
    subprocess.run([*pip, "--no-build-isolation", "--target", str(site), example], check=True, timeout=120)
    return site


def run(command, folder, environment):
    words = shlex.split(command)
    assert words[0] == "lanescope", f"{command}: only lanescope commands are shown outside of norun blocks"
    done = subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_shows_runs(page, tmp_path, request):
    environment = dict(os.environ)
    if "blinker" in page.read_text():
        environment["PYTHONPATH"] = str(request.getfixturevalue("stranger"))
    names = {}
    for kind, body, is_skipped in blocks(page):
        if is_skipped:
            continue
        if kind == "console":
            for line in body.splitlines():
                if line.startswith("$ "):
                    run(line[2:], tmp_path, environment)
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
