"""Runs the commands and the Python blocks of a page, as a reader would, and compares what they print with the page.

A line ``$ lanescope ...`` of a ``console`` block is a command. The lines after it, up to the next command, are what it
prints on a terminal of 90 columns without colors. An ``output`` block is what the Python block before it prints. A line
``...`` matches any number of lines. A command or block without such lines may print anything.

``python docs/page_runner.py PAGE...`` runs pages and writes into them what their commands print now; without pages, all
pages. A part that is cut with ``...`` keeps its number of lines before and after it.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
#: Small captures that pages read: ``captures/NAME`` in the folder where a page runs.
CAPTURES = ROOT / "examples/captures"
#: Columns of the terminal on which commands print.
WIDTH = 90
#: What a command finds in its environment.
TERMINAL = {"COLUMNS": str(WIDTH), "NO_COLOR": "1", "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}

CUT = "..."
_FENCE = re.compile(r"^(`{3,})(console|python|output)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
_SKIPPED = "<!-- norun -->\n"
_CURSOR = re.compile(r"(--cursor \d+-)[0-9a-f]{12}")
_SIZE = re.compile(r"(wrote .*[( ])[\d.,]+ (?:bytes|KiB|MiB)\)$")
_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*images/made/([^)/]+)/([^)]+\.svg)\)")


@dataclass(frozen=True, slots=True)
class Step:
    """One command or one Python block of a page."""

    kind: str
    """``console`` or ``python``."""
    text: str
    """The command without its ``$``, or the block."""
    shown: list[str] | None
    """The lines that it prints, as the page shows them; None: the page shows nothing."""
    lines: tuple[int, int]
    """Where in the lines of the page ``shown`` is: first, and one after the last."""
    is_run: bool
    """False for what a reader sees only, below ``<!-- norun -->``."""


def pages() -> list[Path]:
    """Return all pages of the documentation that are written by hand, and the page of the repository."""
    found = sorted(DOCS.rglob("*.md"))
    return [ROOT / "README.md", *(page for page in found if not {"_build", "generated"} & set(page.parts))]


def steps(text: str) -> Iterator[Step]:
    """Yield what a page runs, in order."""
    blocks = list(_FENCE.finditer(text))
    for at, block in enumerate(blocks):
        kind, body = block[2], block[3]
        first = text.count("\n", 0, block.start(3))
        is_run = not text[: block.start()].endswith(_SKIPPED)
        if kind == "console":
            yield from _commands(body.splitlines(), first, is_run=is_run)
        elif kind == "python":
            following = blocks[at + 1] if at + 1 < len(blocks) else None
            if following is None or following[2] != "output":
                yield Step(kind, body, None, (0, 0), is_run)
                continue
            start = text.count("\n", 0, following.start(3))
            shown = following[3].splitlines()
            yield Step(kind, body, shown, (start, start + len(shown)), is_run)


def _commands(lines: list[str], first: int, *, is_run: bool) -> Iterator[Step]:
    starts = [at for at, line in enumerate(lines) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        shown = lines[start + 1 : end]
        yield Step("console", lines[start][2:], shown or None, (first + start + 1, first + end), is_run)


def pictures(text: str) -> list[tuple[str, str]]:
    """Return the pictures of a page that its own commands make: folder below ``images/made``, file."""
    return [(found[1], found[2]) for found in _PICTURE.finditer(text)]


class _Terminal(io.TextIOWrapper):
    """What is printed, in order, as a terminal shows it."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True)

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        self.flush()
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return seen(buffer.getvalue().decode())


def seen(text: str) -> str:
    """Return what remains on a terminal: a carriage return goes back to the start of its line, ``ESC [K`` clears it.

    Example:
        >>> seen("run.bin: 5%\\r           \\rdone\\n")
        'done\\n'
        >>> seen("2 of 3 captures\\r\\x1b[Kdone\\n")
        'done\\n'
    """
    lines = []
    for line in text.split("\n"):
        shown = ""
        for part in line.split("\r"):
            *cleared, rest = part.split("\x1b[K")
            shown = "".join(cleared) if cleared else shown
            at = len(shown) if cleared else 0
            shown = shown[:at] + rest + shown[at + len(rest) :]
        lines.append(shown.rstrip())
    return "\n".join(lines)


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def call(words: list[str], folder: Path) -> tuple[int, str]:
    """Run a command in this process, and return its exit status and what it prints on a terminal."""
    if "--memory" in words:
        return _process(words, folder)
    from lanescope.cli import main

    terminal = _Terminal()
    with (
        _environment(TERMINAL),
        contextlib.chdir(folder),
        contextlib.redirect_stdout(terminal),
        contextlib.redirect_stderr(terminal),
    ):
        status = main(words[1:])
    return status, terminal.text()


def _process(words: list[str], folder: Path) -> tuple[int, str]:
    """Run a command in a process of its own, as a limit on memory is one of all that the process does."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", *words]
    environment = {**os.environ, **TERMINAL}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    ) as running:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while piece := os.read(ours, 1 << 16):
                shown += piece
    os.close(ours)
    return running.returncode, seen(shown.decode())


class PageError(Exception):
    """A page shows what does not hold."""


def run_page(
    text: str,
    folder: Path,
    command: Callable[[list[str], Path], tuple[int, str]] = call,
    name: str = "page",
) -> list[tuple[Step, list[str]]]:
    """Run a page in an empty folder.

    Args:
        text: the page.
        folder: where to run it.
        command: runs a command, in the same way as :func:`call`.
        name: of the page, for messages.

    Returns:
        Each step that was run, and the lines that it printed.

    Raises:
        PageError: a command fails, is not one of lanescope, or an example prints something else.
    """
    if "captures/" in text and CAPTURES.is_dir():
        shutil.copytree(CAPTURES, folder / "captures", dirs_exist_ok=True)
    names: dict[str, Any] = {}
    done = []
    for step in steps(text):
        if not step.is_run:
            continue
        if step.kind == "console":
            words = shlex.split(step.text)
            if words[0] != "lanescope":
                raise PageError(f"{step.text}: only lanescope commands are shown outside of norun blocks")
            status, printed = command(words, folder)
            if status != 0:
                raise PageError(f"$ {step.text}\n{printed}")
        else:
            names, printed = _run_python(step.text, names, folder, name)
        done.append((step, printed.rstrip("\n").split("\n")))
    return done


def _run_python(body: str, names: dict[str, Any], folder: Path, name: str) -> tuple[dict[str, Any], str]:
    with _environment(TERMINAL), contextlib.chdir(folder):
        printed = io.StringIO()
        if ">>>" not in body:
            with contextlib.redirect_stdout(printed):
                exec(compile(body, name, "exec"), names)
            return names, printed.getvalue()
        test = doctest.DocTestParser().get_doctest(body, names, name, name, 0)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        runner.run(test, out=printed.write, clear_globs=False)
        if runner.summarize(verbose=False).failed:
            raise PageError(printed.getvalue())
        return test.globs, ""


def is_shown(shown: list[str], printed: list[str]) -> bool:
    """Return whether a page shows what was printed.

    Example:
        >>> is_shown(["a", "...", "d"], ["a", "b", "c", "d"])
        True
        >>> is_shown(["a", "...", "d"], ["a", "b", "c"])
        False
    """
    pattern = "\n".join(".*" if line == CUT else re.escape(_plain(line)) for line in _trimmed(shown))
    return re.fullmatch(pattern, "\n".join(map(_plain, printed)), re.DOTALL) is not None


def _trimmed(lines: list[str]) -> list[str]:
    """Return lines without the blank ones that separate a command from the next one."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return lines[:end]


def _plain(line: str) -> str:
    """Return a line without what differs from run to run: digests of cursors, sizes of files that name folders."""
    return _SIZE.sub(r"\1)", _CURSOR.sub(r"\g<1>0", line.rstrip()))


def cut(shown: list[str], printed: list[str]) -> list[str]:
    """Return what was printed, cut where the page cuts.

    Example:
        >>> cut(["x", "...", "y"], ["a", "b", "c", "d"])
        ['a', '...', 'd']
    """
    shown = _trimmed(shown)
    if CUT not in shown:
        return printed
    head = shown.index(CUT)
    tail = len(shown) - head - 1
    return [*printed[:head], CUT, *printed[len(printed) - tail :]] if head + tail < len(printed) else printed


def refreshed(text: str, done: list[tuple[Step, list[str]]]) -> str:
    """Return a page that shows what its commands print."""
    lines = text.split("\n")
    for step, printed in reversed(done):
        if step.shown is None or is_shown(step.shown, printed):
            continue
        blank = step.shown[len(_trimmed(step.shown)) :]
        lines[slice(*step.lines)] = [*(line.rstrip() for line in cut(step.shown, printed)), *blank]
    return "\n".join(lines)


@contextlib.contextmanager
def _example_family(folder: str) -> Iterator[None]:
    """Make the family of ``examples/blinker`` known, as if it were installed."""
    from lanescope.families import registry

    info = Path(folder, "lanescope_blinker-1.0.dist-info")
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lanescope-blinker\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lanescope.devices]\nblinker = lanescope_blinker:FAMILY\n")
    before = sys.path[:]
    sys.path[:0] = [folder, str(ROOT / "examples/blinker/src")]
    known = (registry.plugins, registry.family)
    for each in known:
        each.cache_clear()
    yield
    sys.path[:] = before
    for each in known:
        each.cache_clear()


def write(page: Path) -> bool:
    """Write into a page what its commands print; return whether it changed."""
    text = page.read_text()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        if "sim blinker" in text:
            stack.enter_context(_example_family(stack.enter_context(tempfile.TemporaryDirectory())))
        new = refreshed(text, run_page(text, Path(folder), name=page.name))
    if new != text:
        page.write_text(new)
    return new != text


if __name__ == "__main__":
    chosen = [Path(name).resolve() for name in sys.argv[1:]]
    for one in chosen or [each for each in pages() if any(step.shown for step in steps(each.read_text()))]:
        try:
            print(f"{one.relative_to(ROOT)}: {'written' if write(one) else 'as it was'}")
        except PageError as error:
            sys.exit(f"{one.relative_to(ROOT)}: {error}")
