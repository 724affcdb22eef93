"""Every command and every Python block in the documentation runs as it stands, and prints what the page shows."""

import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import threading
import tty
from pathlib import Path
from xml.etree import ElementTree

import pytest

from effort import QUICK

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))

import page_pictures  # noqa: E402
import page_runner  # noqa: E402

PAGES = page_runner.pages()

#: Blocks that need a browser, a device, or set up a checkout: their number must not grow unnoticed.
NOT_RUN = {
    "docs/howto/agents.md": 1,
    "docs/howto/commands.md": 1,
    "docs/howto/ctf.md": 3,
    "docs/howto/ingest.md": 1,
    "docs/howto/record.md": 8,
    "docs/migrate/from-iprof.md": 1,
    "docs/tutorials/pytorch.md": 1,
    "README.md": 3,
}


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def in_terminal(words, folder, environment):
    """Run a command in a process of its own, on a terminal of its own."""
    leader, follower = pty.openpty()
    tty.setraw(follower)
    parts = []

    def read():
        while True:
            try:
                part = os.read(leader, 1 << 16)
            except OSError:  # the last process has closed the terminal
                return
            if not part:
                return
            parts.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=folder,
            env=environment | page_runner.TERMINAL,
            stdin=subprocess.DEVNULL,
            stdout=follower,
            stderr=follower,
            timeout=60,
            check=False,
        )
    finally:
        os.close(follower)
        reader.join()
        os.close(leader)
    return done.returncode, page_runner.seen(b"".join(parts).decode())


@pytest.fixture
def run(request, page):
    """Return a function that runs a command of a page: a process of its own, or in quick runs a call in this one."""
    is_plugin = "blinker" in page.read_text()
    if QUICK:
        if is_plugin:
            request.getfixturevalue("plugins")
        return page_runner.call
    environment = dict(os.environ)
    if is_plugin:
        environment["PYTHONPATH"] = str(request.getfixturevalue("blinker_site"))
    return lambda words, folder: in_terminal(words, folder, environment)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_groups_of_queries_are_ordered(page):
    """Without it they come in the order in which threads of DuckDB find them, another one now and then."""
    for step in page_runner.steps(page.read_text()):
        if step.kind == "console" and "group by" in step.text.lower():
            assert "order by" in step.text.lower(), step.text


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_first_rows_of_queries_are_ordered_to_the_last(page):
    """Which of equal rows come first, and which are cut off, is open if one key is all there is."""
    for step in page_runner.steps(page.read_text()):
        for query in (
            re.findall(r"lanescope sql .*?\border by (.*?) limit \d", step.text) if step.kind == "console" else ()
        ):
            assert "," in query or query == "all" or query.endswith("id"), step.text


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_page_shows_runs(page, tmp_path, run):
    text = page.read_text()
    done = page_runner.run_page(text, tmp_path, run, page.name)
    for step, printed in done:
        if step.shown is not None and not page_runner.is_shown(step.shown, printed):
            shown, now = "\n".join(step.shown), "\n".join(printed)
            pytest.fail(
                f"$ {step.text}\nthe page shows:\n{shown}\nit prints:\n{now}\n"
                f"run .venv/bin/python docs/page_runner.py {name_of(page)}"
            )
    for folder, name in page_runner.pictures(text):
        assert folder == page.stem, f"pictures of {page.name} are below images/made/{page.stem}"
        drawn = page_pictures.picture(tmp_path, name)
        assert ElementTree.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"


def test_what_a_page_shows_of_a_public_capture(corpus, tmp_path):
    text = (DOCS / "tutorials/pytorch.md").read_text()
    shutil.copy(corpus / "foreign/hta/trace_diff_control.json.gz", tmp_path / "control.json.gz")
    real = [step for step in page_runner.steps(text) if step.text.startswith("lanescope ") and not step.is_run]
    assert len(real) >= 4
    for step in real:
        status, printed = page_runner.call(shlex.split(step.text), tmp_path)
        assert status == 0
        assert page_runner.is_shown(step.shown, printed.rstrip("\n").split("\n")), f"$ {step.text}\n{printed}"


def test_captures_that_pages_read_can_be_had_without_a_checkout(tmp_path):
    packed = tmp_path / "captures.zip"
    page_pictures.pack(packed)
    before = packed.read_bytes()
    page_pictures.pack(packed)
    assert packed.read_bytes() == before
    shutil.unpack_archive(packed, tmp_path)
    for page in PAGES:
        for name in re.findall(r"(?<=[ \"])captures/[\w./-]+", page.read_text()):
            assert (tmp_path / name).is_file(), f"{name_of(page)} reads {name}"
    texts = {page: page.read_text() for page in PAGES if page != ROOT / "README.md"}
    for page, text in texts.items():
        if re.search(r"^\$ lanescope .*captures/", text, re.MULTILINE):
            assert "captures.zip" in text, f"{name_of(page)} does not say where its captures are"


def test_output_is_compared():
    text = """
```console
$ lanescope --version
lanescope 0
$ lanescope info x

```

```python
print("a", 1)
```

```output
a 1
```
"""
    version, info, python = page_runner.steps(text)
    assert (version.shown, info.shown, python.shown) == (["lanescope 0"], [""], ["a 1"])
    assert page_runner.refreshed(text, [(version, ["lanescope 1", "x"]), (python, ["a 1"])]) == text.replace(
        "lanescope 0\n", "lanescope 1\nx\n"
    )
    assert not page_runner.is_shown(["a", "b"], ["a"])
    assert not page_runner.is_shown(["a"], ["a", "b"])
    assert page_runner.is_shown(["a", "..."], ["a", "b", "c"])
    assert page_runner.is_shown(["more: use --cursor 5-17b6ca2bba24"], ["more: use --cursor 5-000000000000"])
    assert not page_runner.is_shown(["more: use --cursor 5-17b6ca2bba24"], ["more: use --cursor 6-17b6ca2bba24"])
    assert page_runner.is_shown(["wrote x (3 slices, 1,010 bytes)"], ["wrote x (3 slices, 1.1 KiB)"])
    assert not page_runner.is_shown(["wrote x (3 slices, 1.1 KiB)"], ["wrote x (4 slices, 1.1 KiB)"])


def test_blocks_that_are_not_run_are_known():
    """A block counts once, whatever it shows."""
    marker = re.compile(r"<!-- norun -->\n```(console|python)$", re.MULTILINE)
    counts = {name_of(page): len(marker.findall(page.read_text())) for page in PAGES}
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
