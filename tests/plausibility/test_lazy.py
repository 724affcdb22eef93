"""Only commands that judge or sum up load the plausibility rules, and `info` where timestamps look implausible."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lanescope.cli import main

CAPTURE = Path(__file__).resolve().parents[1] / "scenarios/data/cuda/cuda_clockstep_2s.npy"
PROGRAM = """
import contextlib, io, sys
from lanescope.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    main({words!r})
rules = "lanescope.analysis.plausibility.rules", "lanescope.common.islands"
print([name for name in sys.modules if name.startswith(rules)])
"""


@pytest.mark.parametrize(
    ("words", "is_loaded"),
    [
        (["--help"], False),
        (["info", "sound.npy"], False),
        (["info", "run.npy"], True),  # its span cannot be told without them
        (["dump", "run.npy", "--limit", "1"], False),
        (["convert", "run.npy", "-o", "out.pftrace", "--no-annotations"], False),
        (["check", "run.npy"], True),
    ],
)
def test_what_is_loaded(tmp_path, words, is_loaded):
    shutil.copy(CAPTURE, tmp_path / "run.npy")
    assert main(["sim", "cuda", "-o", str(tmp_path / "sound.npy")]) == 0
    command = [sys.executable, "-c", PROGRAM.format(words=words)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout.strip() != "[]") == is_loaded, done.stdout
