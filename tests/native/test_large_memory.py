"""Memory of large columns: used again when it came back, never before, and not kept without end."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from effort import SANITIZED
from lanescope._native import core

MIB = 1 << 20


def address(array):
    return array.__array_interface__["data"][0]


def resident():
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) << 10


@pytest.mark.parametrize("size", [0, 1, MIB - 1, MIB, 5 * MIB])
def test_it_has_its_size_and_may_be_written(size):
    memory = core.large_memory(size)
    assert memory.dtype == np.uint8
    assert len(memory) == size
    memory.fill(7)
    assert (memory == 7).all()


def test_what_came_back_is_used_again():
    """In a process of its own: what other tests gave back may fill what is kept."""
    code = f"""
import numpy as np
from lanescope._native import core
address = lambda memory: memory.__array_interface__["data"][0]
first = core.large_memory(6 * {MIB})
place = address(first)
part = first[{MIB} : 2 * {MIB}]
del first
second = core.large_memory(6 * {MIB})
assert address(second) != place, "a part of it is in use"
del part, second
assert place in {{address(memory) for memory in [core.large_memory(6 * {MIB}) for _ in range(2)]}}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_memory_in_use_is_not_shared():
    kept = []
    for turn in range(60):
        memory = core.large_memory((1 + turn % 5) * MIB)
        memory.fill(turn)
        kept.append(memory)
        if turn % 3 == 2:
            del kept[turn // 2 % len(kept)]
    assert len({address(memory) for memory in kept}) == len(kept)
    assert all((memory == memory[0]).all() for memory in kept)


def test_threads_share_nothing():
    def work(number):
        for _ in range(40):
            memory = core.large_memory(2 * MIB)
            memory.fill(number)
            assert (memory == number).all()

    with ThreadPoolExecutor(4) as workers:
        for done in [workers.submit(work, number) for number in range(4)]:
            done.result()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say how much memory is used")
def test_no_more_than_a_bound_is_kept():
    before = resident()
    columns = [core.large_memory(16 * MIB) for _ in range(12)]
    for column in columns:
        column.fill(1)
    assert resident() - before > 100 * MIB
    del columns, column
    assert resident() - before < 60 * MIB


@pytest.mark.skipif(bool(SANITIZED), reason="a sanitizer ends the program where C++'s new would throw")
def test_too_much_is_an_error():
    with pytest.raises(MemoryError):
        core.large_memory(1 << 60)
