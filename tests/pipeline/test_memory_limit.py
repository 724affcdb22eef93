"""A limit on the resident set: it ends work of any kind in time, and only work that needs the memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from effort import OWN_MEMORY, SANITIZED

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")  # noqa: PTH110

MIB = 1 << 20

PROLOGUE = """
import sys
from pathlib import Path
from lanescope.io import atomic_file
from lanescope.pipeline.memory import limited
def peak():
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10
"""


def ran(code, tmp_path, *arguments):
    """Run a program with what it needs imported; ``TMPDIR`` is a folder of its own."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", PROLOGUE + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)


def test_work_that_keeps_the_interpreter_ends_with_the_message_and_leaves_nothing(tmp_path):
    """One call of the interpreter fills the memory: no thread of Python's runs meanwhile."""
    code = """
with limited(256 << 20, "too much\\n", 7):
    with atomic_file.scratch() as folder, atomic_file.atomic_writer("out.bin") as out:
        (folder / "spilled").write_bytes(b"spilled")
        (folder / "below").mkdir()
        (folder / "below" / "spilled").write_bytes(b"spilled")
        out.write(b"begun")
        out.flush()
        print(sorted(path.name[:11] for path in Path().iterdir()), flush=True)
        b"x" * (4 << 30)
"""
    done = ran(code, tmp_path)
    assert (done.returncode, done.stderr) == (7, "too much\n")
    assert done.stdout == "['.lanescope-', '.lanescope-']\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(SANITIZED == "thread", reason=OWN_MEMORY)
def test_the_peak_stays_below_the_limit(tmp_path):
    grows = """
with limited(256 << 20, "", 7):
    kept = []
    while True:
        kept.append(bytearray(1 << 20))
        print(peak(), flush=True)
"""
    done = ran(grows, tmp_path)
    assert done.returncode == 7
    assert 200 * MIB < int(done.stdout.split()[-1]) <= 256 * MIB


def test_pages_of_mapped_files_do_not_count_in_the_end(tmp_path):
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(700 * MIB)
        file.seek(650 * MIB)
        file.write(b"\5")
    code = """
from lanescope._native import core
with open("large", "rb") as file, limited(256 << 20, "too much\\n", 7):
    text, watch = core.map_file(file.fileno(), 700 << 20)
    print(sum(int(text[at : at + (1 << 20)].sum()) for at in range(0, 700 << 20, 1 << 20)), text[650 << 20], text[-1])
    assert peak() < 280 << 20
"""
    done = ran(code, tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("5 5 0\n", "", 0)


@pytest.mark.skipif(bool(SANITIZED), reason="malloc_trim gives nothing back of a sanitizer's heap")
def test_freed_memory_is_given_back_first(tmp_path):
    code = """
with limited(256 << 20, "too much\\n", 7):
    for _ in range(4):
        blocks = [bytes(60_000) for _ in range(2_700)]  # 160 MB, in the heap
        del blocks[::2]
        del blocks
"""
    assert ran(code, tmp_path).returncode == 0


def test_there_is_no_limit_after_the_block(tmp_path):
    code = """
with limited(256 << 20, "too much\\n", 7):
    pass
with limited(None, "too much\\n", 7):
    len(b"x" * (400 << 20))
"""
    assert ran(code, tmp_path).returncode == 0


def test_finished_outputs_stay(tmp_path):
    code = """
with limited(256 << 20, "", 7):
    with atomic_file.atomic_writer("out.bin") as out:
        out.write(b"whole")
    b"x" * (4 << 30)
"""
    assert ran(code, tmp_path).returncode == 7
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("out.bin", b"whole")]


def test_who_measures_is_served_before_who_works(tmp_path):
    """Each millisecond, also where all processors are busy: the work must not go on for long without being measured."""
    slices = """
import re
from lanescope.source.disk_arrays import large_arrays_on_disk
def slices():
    threads = (thread / "sched" for thread in Path("/proc/self/task").iterdir())
    found = (re.search(r"^se\\.slice\\s*:\\s*(\\d+)", path.read_text(), re.MULTILINE) for path in threads)
    return sorted(int(each[1]) for each in found if each)
before = slices()
import numpy as np, time
with limited(1 << 30, "", 7), large_arrays_on_disk(1 << 20):
    kept = np.ones(2 << 20, np.uint8)
    while len(slices()) < len(before) + 2 or (before[0] > 100_000 and slices()[1] > 100_000):
        time.sleep(0.001)
    print(*slices()[:2])
"""
    if not has_slices_of_threads():
        pytest.skip("the system does not tell the slices of threads, or has one for all")
    done = ran(slices, tmp_path)
    assert (done.returncode, done.stdout) == (0, "100000 100000\n"), done.stderr


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) > 8, reason="too many processors"
)
def test_arrays_on_disk_are_watched_on_each_processor_as_long_as_there_are_any(tmp_path):
    """Work on one processor makes pages resident while a thread waits for its turn on another."""
    code = """
import os, time
import numpy as np
from lanescope.source.disk_arrays import large_arrays_on_disk
everywhere = {(each,) for each in os.sched_getaffinity(0)}
def bound():
    threads = [int(thread.name) for thread in Path("/proc/self/task").iterdir()]
    found = []
    for thread in threads:
        try:
            found.append(tuple(os.sched_getaffinity(thread)))
        except ProcessLookupError:
            pass
    return [each for each in found if len(each) == 1]
def until(is_so):
    end = time.monotonic() + 60
    while not is_so() and time.monotonic() < end:
        time.sleep(0.001)
    return is_so()
for _ in range(2):
    with large_arrays_on_disk(1 << 20):
        kept = [np.ones(2 << 20, np.uint8) for _ in range(3)]
    print(until(lambda: sorted(bound()) == sorted(everywhere)))
    del kept
    print(until(lambda: not bound()))
"""
    if len(os.sched_getaffinity(0)) == 1:
        pytest.skip("all threads are on the one processor")
    done = ran(code, tmp_path)
    assert (done.stdout, done.returncode) == ("True\n" * 4, 0), done.stderr


def has_slices_of_threads():
    """Whether this system has slices of threads (Linux 6.12), and tells them."""
    try:
        told = Path("/proc/self/sched").read_text(encoding="utf-8")
    except OSError:
        return False
    return "se.slice" in told and tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) >= (6, 12)
