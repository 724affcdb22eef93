"""Inputs that were faults once: each fuzz target takes those of native/fuzz/inputs, built with the usual compiler."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INPUTS = ROOT / "native/fuzz/inputs"
TARGETS = sorted((ROOT / "native/fuzz").glob("fuzz_*.cpp"))


def core():
    """Return the core of the last build."""
    found = sorted((ROOT / "build").glob("cpython-*/liblanescope_core.a"), key=lambda path: path.stat().st_mtime)
    if not found:
        pytest.skip("the core was built elsewhere: make native")
    return found[-1]


@pytest.mark.parametrize("folder", sorted(INPUTS.iterdir()), ids=lambda path: path.name)
def test_what_was_a_fault_once_is_none(folder, tmp_path):
    program = tmp_path / folder.name
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    command = [compiler, "-std=c++20", "-O1", "-I", ROOT / "native", ROOT / f"native/fuzz/{folder.name}.cpp"]
    subprocess.run([*command, ROOT / "native/fuzz/replay.cpp", core(), "-o", program], check=True, timeout=300)
    inputs = sorted(folder.iterdir())
    assert inputs
    done = subprocess.run([program, *inputs], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.full
@pytest.mark.parametrize("source", TARGETS, ids=lambda path: path.stem)
def test_a_target_compiles(source):
    """Targets are built by clang where it was fetched; what does not compile must be noticed before that."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    command = [compiler, "-std=c++20", "-fsyntax-only", "-I", ROOT / "native", source]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[:4000]
