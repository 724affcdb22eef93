"""The software driver of Level Zero does what a device does, and says exactly what it did."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from native.softze_build import Softze


def run(softze: Softze, *arguments: str, app: Path | None = None, **habits: str | int | Path) -> str:
    """Run the program; return its output. A failure fails the test."""
    done = subprocess.run(
        [app or softze.app, *arguments],
        env=softze.environment(**habits),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def truth_of(path: Path) -> list[dict[str, Any]]:
    """The lines of the driver's truth."""
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("arguments", [("saxpy",), ("--dlopen", "saxpy")])
def test_the_truth_of_saxpy_is_what_the_program_did(softze: Softze, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert run(softze, *arguments, "3", truth=tmp_path / "truth") == "saxpy: right\n"
    ops = truth_of(tmp_path / "truth")
    assert [(op["mark"], op["kernel"]) for op in ops] == [
        ("copy x", ""),
        ("copy y", ""),
        ("launch 0", "saxpy"),
        ("barrier 0", ""),
        ("launch 1", "saxpy"),
        ("barrier 1", ""),
        ("launch 2", "saxpy"),
        ("barrier 2", ""),
        ("copy result", ""),
    ]
