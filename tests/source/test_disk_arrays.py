"""Large arrays on disk: they are arrays like all others, and take no memory."""

import gc
import os
import subprocess
import sys
from hashlib import sha256

import numpy as np
import pytest

from effort import OWN_MEMORY, SANITIZED
from lanescope._native import core
from lanescope.source import Source
from lanescope.source.disk_arrays import large_arrays_on_disk, made_on_disk, memory_limited
from lanescope.wire.trace_events import TraceEventReader, Wanted

LARGE = 3 << 20


def files_of_this_process():
    """Unnamed files that are mapped here."""
    with open("/proc/self/maps") as maps:  # noqa: PTH123
        return sum("(deleted)" in line and ("/#" in line or "lanescope-" in line) for line in maps)


pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs /proc")  # noqa: PTH110


def test_arrays_of_all_makings_hold_their_values_and_go_with_the_last_use():
    before = files_of_this_process()
    with large_arrays_on_disk(1 << 20):
        empty, zeros = np.empty(LARGE, np.uint8), np.zeros(LARGE // 8)
        numbers = np.arange(LARGE // 8)
        small = np.arange(100)
        assert files_of_this_process() == before + 3
    empty[:] = 7
    assert not zeros.any()
    assert (numbers * 2)[-1] == 2 * (LARGE // 8 - 1)
    assert small.sum() == 4950
    view = numbers[5:9]
    del empty, zeros, numbers
    gc.collect()
    assert view.tolist() == [5, 6, 7, 8]
    assert files_of_this_process() == before + 1
    del view
    gc.collect()
    assert files_of_this_process() == before


def test_an_array_that_grows_or_shrinks_keeps_its_values():
    with large_arrays_on_disk(1 << 20):
        array = np.arange(LARGE // 8)
        array.resize(LARGE, refcheck=False)
        assert array[: LARGE // 8].tolist() == list(range(LARGE // 8))
        assert not array[LARGE // 8 :].any()
        array.resize(10, refcheck=False)
        small = np.arange(10)
        small.resize(LARGE, refcheck=False)
    array.resize(20, refcheck=False)
    assert array.tolist() == [*range(10), *[0] * 10]
    assert small[:10].tolist() == list(range(10))


def test_what_is_gone_is_used_again_and_zeros_are_zeros():
    before = files_of_this_process()
    with large_arrays_on_disk(1 << 20):
        first = np.full(LARGE, 7, np.uint8)
        del first
        smaller = np.zeros(LARGE - 100, np.uint8)
        assert files_of_this_process() == before + 1
        assert not smaller.any()
        del smaller
        assert np.arange(LARGE)[-1] == LARGE - 1  # too large for it
        assert files_of_this_process() == before + 2
    assert files_of_this_process() == before


def test_outside_and_in_other_threads_nothing_changes():
    from threading import Thread

    before, counts = files_of_this_process(), []

    def elsewhere():
        kept = np.empty(LARGE, np.uint8)
        counts.append(files_of_this_process())
        del kept

    with large_arrays_on_disk(1 << 20):
        other = Thread(target=elsewhere)
        other.start()
        other.join()
    kept = np.empty(LARGE, np.uint8)
    assert counts == [before]
    assert files_of_this_process() == before
    del kept


def test_a_limit_inside_of_another_gives_way_to_it():
    before = files_of_this_process()
    with large_arrays_on_disk(1 << 20):
        with large_arrays_on_disk(1 << 30):
            inner = np.empty(LARGE, np.uint8)
        outer = np.empty(LARGE, np.uint8)
        assert files_of_this_process() == before + 2
    del inner, outer
    with pytest.raises(ZeroDivisionError), large_arrays_on_disk(1 << 20):
        raise ZeroDivisionError
    kept = np.empty(LARGE, np.uint8)
    assert files_of_this_process() == before
    del kept


def test_a_folder_without_room_leaves_arrays_in_memory():
    arrays = core.DiskArrays(b"/nonexistent", 1 << 20)
    before = files_of_this_process()
    arrays.enter()
    try:
        kept = np.ones(LARGE, np.uint8)
    finally:
        arrays.leave()
    assert files_of_this_process() == before
    assert kept.sum() == LARGE


def test_what_an_iterator_makes_is_on_disk_and_not_what_its_user_makes():
    before = files_of_this_process()

    def rows():
        kept = np.full(9 << 20, 3, np.uint8)
        yield files_of_this_process()
        yield int(kept[-1])

    found = made_on_disk(rows())
    assert next(found) == before + 1
    kept = np.empty(9 << 20, np.uint8)
    assert files_of_this_process() == before + 1
    assert list(found) == [3]
    assert files_of_this_process() == before
    del kept


def test_the_content_of_a_file_is_on_disk_where_the_memory_is_limited(tmp_path):
    (tmp_path / "file").write_bytes(bytes(range(256)) * (LARGE // 256))
    before = files_of_this_process()
    with memory_limited(1 << 20):
        source = Source(tmp_path / "file")
        content = source.read()
        source.close()
        assert files_of_this_process() == before + 1
    assert content.tobytes() == (tmp_path / "file").read_bytes()
    assert content.base[-1] == 0
    assert source.sha256 == sha256(content).hexdigest()  # until then a thread has pieces of the content
    del content
    assert files_of_this_process() == before


def scanned(rows):
    """Columns that a native scanner makes: among them one that has values here and there."""
    reader = TraceEventReader({"bytes": Wanted("integer", ("bytes",))}, expected=rows)
    reader.feed(b"[")
    for first in range(0, rows, 1000):
        reader.feed(
            b"".join(
                b'{"ph":"X","name":"n%d","pid":1,"tid":%d,"ts":%d,"dur":5%s},'
                % (row % 7, row % 3, row, b',"args":{"bytes":%d}' % row if row % 5 == 0 else b"")
                for row in range(first, first + 1000)
            )
        )
    return reader.finish()


def test_columns_that_grow_natively_are_on_disk_and_the_same():
    before = files_of_this_process()
    with large_arrays_on_disk(1 << 20):
        found = scanned(300_000)
        assert files_of_this_process() >= before + 3  # those of 64 bits at least
    plain = scanned(300_000)
    for name in ("begin", "size", "flags", "name", "ts", "dur", "place", "args_begin", "args_size"):
        assert np.array_equal(getattr(found, name), getattr(plain, name)), name
    for name in ("event", "value", "odd"):
        assert np.array_equal(getattr(found.values["bytes"], name), getattr(plain.values["bytes"], name)), name
    assert found.values["bytes"].value[-1] == 299_995
    del found
    gc.collect()
    assert files_of_this_process() == before


def test_columns_that_no_disk_has_room_for_grow_in_memory():
    arrays = core.DiskArrays(b"/nonexistent", 1 << 20)
    before = files_of_this_process()
    arrays.enter()
    try:
        found = scanned(300_000)
    finally:
        arrays.leave()
    assert files_of_this_process() == before
    assert np.array_equal(found.ts, scanned(300_000).ts)


@pytest.mark.skipif(SANITIZED == "thread", reason=OWN_MEMORY)
def test_arrays_of_gigabytes_take_some_megabytes(tmp_path):
    code = """
import numpy as np
from pathlib import Path
from lanescope.source.disk_arrays import large_arrays_on_disk
with large_arrays_on_disk():
    first = np.arange(40_000_000)
    second = first * 2
    second += first
    assert int(second[-1]) == 3 * 39_999_999 and int(second.sum()) == 3 * sum(range(40_000_000))
print(next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")).split()[1])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert int(done.stdout) < 250 << 10
