"""Start-up in instructions, which do not depend on the load; benchmarks/bench_startup.py counts on."""

import os
import re
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def count(require_tool, tmp_path_factory):
    """Return a function that counts the instructions of a Python command, its modules being compiled already."""
    valgrind = require_tool("valgrind")
    folder = tmp_path_factory.mktemp("startup")
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "cache"), "PYTHONHASHSEED": "0"}
    for unwanted in ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONPATH"):
        environment.pop(unwanted, None)

    def run(*command):
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=250, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    def count(*arguments):
        run(sys.executable, *arguments)  # compiles what it imports
        said = run(valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable, *arguments)
        return int(re.search(r"Collected : (\d+)", said)[1])

    return count


def test_help_costs_at_most_twice_what_argparse_does(count):
    assert count("-m", "lanescope", "--help") <= 2 * count("-c", "import argparse")
