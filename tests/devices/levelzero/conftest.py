"""Fixtures of the tests that record: the software driver, and programs that drive the recorder."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from native.fake_ze_build import FakeZe


@pytest.fixture(scope="session")
def levelzero(require_tool: Callable[[str], Path]) -> Path:
    """Level Zero's headers and loader."""
    return require_tool("levelzero")


@pytest.fixture(scope="session")
def fake_ze(levelzero: Path) -> FakeZe:
    """The software driver of Level Zero and its programs."""
    from native.fake_ze_build import build

    return build(levelzero)


@pytest.fixture(scope="session")
def programs(levelzero: Path) -> Path:
    """The folder of programs that drive the recorder."""
    from native.recorder_build import build

    return build(levelzero)


class Done(NamedTuple):
    """What came of a program under ``lanescope record``."""

    status: int
    out: str
    err: str
    folder: Path


@pytest.fixture
def recording(fake_ze: FakeZe, tmp_path: Path) -> Callable[..., Done]:
    """Return a function that runs a program under ``lanescope record``, as a process of its own."""

    def recording(*command: Any, options: Any = (), loader: Any = None, env: Any = (), **quirks: Any) -> Done:
        folder = tmp_path / "recording"
        shutil.rmtree(folder, ignore_errors=True)
        words = [sys.executable, "-m", "lanescope", "record", "-o", str(folder), *options, "--", *map(str, command)]
        environment = {**fake_ze.environment(loader, **quirks), **dict(env)}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)
        return Done(done.returncode, done.stdout, done.stderr, folder)

    return recording


@pytest.fixture
def newest(require_tool: Callable[[str], Path], tmp_path: Path) -> Any:
    """Return a function that gives the command by which a program runs on the newest loader, and its C library."""
    lib = (require_tool("levelzero-newest") / "lib").resolve()
    (linker,) = lib.glob("ld-linux-*")

    def newest(*command: Any) -> tuple[Any, ...]:
        # In a shell: no program of this machine's own may find that C library.
        script = 'LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$0" exec "$@"'
        return ("sh", "-c", script, lib, linker, *command)

    newest.loader = lib / "libze_loader.so.1"  # type: ignore[attr-defined]
    newest.none = tmp_path / "no loader"  # type: ignore[attr-defined]
    return newest
