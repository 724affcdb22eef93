"""A limit on memory: it holds, or the command ends with a clear error and leaves nothing."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from lanescope.cli import main, memory
from lanescope.io.dataset.records import Catalog
from lanescope.io.dataset.store import open_store

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc"),  # noqa: PTH110
]
LIMIT = 256 << 20


@pytest.fixture(scope="session")
def capture(tmp_path_factory):
    """Some two million slices."""
    made = tmp_path_factory.mktemp("large") / "run.npy"
    assert main(["sim", "cuda", "-O", "tiles=1280", "-o", str(made)]) == 0
    return made


#: The program, with a smaller least limit than it has.
SMALLER = (
    "import sys, lanescope.pipeline.memory as m; m.LEAST = 64 << 20; from lanescope.cli import main; sys.exit(main())"
)


def measured(*arguments, cwd, program=("-m", "lanescope")):
    """Run a command: its status, its largest resident set, and standard error."""
    command = [sys.executable, *program, *map(str, arguments)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=cwd)
    peak = 0
    while process.poll() is None:
        # Not that of ``wait4``, which begins with the pages of the process that started it.
        with suppress(OSError):
            found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
            peak = max(peak, int(found[1]) << 10) if found else peak
        time.sleep(0.002)
    _, err = process.communicate()
    return process.returncode, peak, err


@pytest.mark.parametrize("output", ["out.pftrace", "out.json"])
def test_whole_lanes_are_drawn_within_the_limit(capture, tmp_path, output):
    status, peak, err = measured("convert", capture, "-o", output, "--memory", "256MiB", cwd=tmp_path)
    assert status == 0, err
    assert peak <= LIMIT


def test_what_needs_more_is_one_error_and_leaves_nothing(capture, tmp_path):
    # A picture needs all slices at once: 177 MiB, less than the least limit that users may set.
    arguments = ("convert", capture, "-o", "out.svg", "--memory", "128MiB")
    status, peak, err = measured(*arguments, cwd=tmp_path, program=("-c", SMALLER))
    assert status == 3
    assert err.splitlines() == [
        "lanescope: error: convert needs more memory than --memory 128MiB",
        "  hint: use a larger --memory, --no-annotations, write Parquet, or convert parts with --start and --end",
    ]
    assert peak <= 128 << 20
    assert not [path.name for path in tmp_path.iterdir() if "out" in path.name or path.name.startswith(".lanescope")]


def test_paths_through_all_of_a_capture_are_found_within_the_limit(capture, tmp_path):
    """Causes lead out of a window, so that it needs all of the capture: it took 600 MiB."""
    window = ("--start", "+1ms", "--end", "+1.1ms")
    status, peak, err = measured("critical-path", capture, *window, "--memory", "256MiB", cwd=tmp_path)
    assert status == 0, err
    assert peak <= LIMIT


def test_commands_that_follow_causes_say_how_to_ask_for_a_part():
    args = argparse.Namespace(start="+1ms", inputs=["run.npy"])
    for command in ("critical-path", "explain", "report"):
        assert memory._more(args, command) == (
            "use a larger --memory, or a part that convert --start and --end writes as Parquet:"
            " causes outside of it are not followed"
        )


def test_paths_of_parts_are_those_of_a_file_of_the_part(capture, tmp_path):
    window = ("--start", "+1ms", "--end", "+1.1ms")
    for command in (("convert", capture, *window, "-o", "part.parquet"), ("critical-path", "part.parquet")):
        status, peak, err = measured(*command, "--memory", "256MiB", cwd=tmp_path)
        assert status == 0, err
        assert peak <= LIMIT
    assert "causes outside of it are not followed" in err


def test_a_capture_that_needs_more_does_not_stop_the_others(capture, call, tmp_path):
    (tmp_path / "small").mkdir()
    assert call("sim", "cuda", "-O", "tiles=1", "-o", "small/run.npy").status == 0
    done = call("ingest", capture, "small/run.npy", "-o", "fleet", "--memory", "280MiB", "--jobs", "2")
    catalog = Catalog(open_store("fleet"))
    if done.status == 0:
        assert len(catalog.captures) == 2
        return
    assert done.status == 3
    assert [each.path for each in catalog.captures] == ["small/run.npy"]
    assert "MiB of memory" in catalog.failed[0].reason
    assert list((tmp_path / "fleet/_staging").iterdir()) == []


@pytest.mark.parametrize("size", ["1MiB", "x", "5", "512MB"])
def test_sizes_that_are_none_are_refused(call, size):
    assert call("convert", "run.npy", "-o", "out.parquet", "--memory", size).status == 2
