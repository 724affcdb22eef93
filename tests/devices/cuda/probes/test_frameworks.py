"""Probes in Python kernels: the tests in ``frameworks``, each file with packages and a mode of its own.

Numba and Triton decide when they are imported whether they simulate, and neither is part of the environment that
lanescope is developed in, so each file is a run of pytest in a process of its own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lanescope

HERE = Path(__file__).parent / "frameworks"
ROOT = Path(__file__).parents[4]
MODES = {
    "numba_simulator": {"NUMBA_ENABLE_CUDASIM": "1"},
    "triton_interpreter": {"TRITON_INTERPRET": "1"},
    "numba_compiled": {},
    # What 3.9 does by default, said so that it does not warn.
    "triton_compiled": {"TRITON_DEFAULT_FP_FUSION": "1"},
}


# Compilers on a busy machine.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", MODES)
def test_kernels_of(name, require_tool, tmp_path):
    python = require_tool("probes")
    environment = {**os.environ, **MODES[name], "TRITON_CACHE_DIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / f"{name}.py")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    # A skip does not count as a pass.
    counts = dict(reversed(pair) for pair in re.findall(r"(\d+) (\w+)", done.stdout.splitlines()[-1]))
    assert set(counts) <= {"passed", "warnings"} | {"s"}, done.stdout[-500:]
    tests = (HERE / f"{name}.py").read_text().count("\ndef test_")
    assert int(counts["passed"]) >= tests > 0


@pytest.mark.parametrize(
    ("program", "mode"), [("numba_pipeline", "numba_simulator"), ("triton_softmax", "triton_interpreter")]
)
def test_the_tutorial_shows_what_its_programs_print(program, mode, require_tool, tmp_path):
    page = (ROOT / "docs/tutorials/probes.md").read_text()
    assert f"literalinclude}} ../../examples/probes/{program}.py" in page
    (variable,) = MODES[mode]
    shown = page.split(f"```text\n$ {variable}=1 python {program}.py\n")[1].split("```")[0]
    command = [str(require_tool("probes")), str(ROOT / "examples/probes" / f"{program}.py")]
    environment = {**os.environ, **MODES[mode], "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.stdout, done.stderr) == (shown, "")
    (first, _) = sorted((tmp_path / "out").glob("*.npy"))
    assert len(lanescope.open(first).slices) == {"numba_pipeline": 72, "triton_softmax": 128}[program]


def test_nothing_is_imported_before_it_is_asked_for():
    """lanescope does not depend on what the probes are for: the public module leaves it all alone."""
    code = (
        "import sys; from lanescope import cuda; cuda.session, cuda.PROBES, cuda.advice, dir(cuda);"
        "loaded = {'numba', 'triton', 'torch', 'cupy', 'llvmlite'} & set(sys.modules); assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_session_without_any_package_says_what_to_install():
    from importlib.util import find_spec

    from lanescope import cuda
    from lanescope.errors import MissingDependencyError, UsageError

    if not any(find_spec(name) for name in ("torch", "cupy", "numba")):
        with pytest.raises(MissingDependencyError, match="install CuPy, PyTorch or Numba"):
            cuda.session(events=["a"], blocks=1)
    with pytest.raises(UsageError, match="unknown backend 'abacus'"):
        cuda.session(events=["a"], blocks=1, backend="abacus")
