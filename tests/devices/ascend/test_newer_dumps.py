"""Device memory of runtimes that keep runs apart: refused with a reason, never read as that of older ones.

The memory here is put together by hand from the newer runtime's structs, byte by byte.
"""

import struct

import pytest

from devices.ascend.helpers import decode, simulated
from lanescope.devices.ascend.family import FAMILY
from lanescope.errors import InputError
from lanescope.source import MINE, FileHead

#: Records of a buffer, and bytes of one, by the number of the stream: dispatches, phases, submits, executions.
MOST = {0: (1000, 32), 1: (16384, 64), 2: (16384, 32), 3: (1024, 32)}
#: By chip: threads, cores, and ready entries of a thread.
CHIPS = {"a2a3": (4, 72, 992), "a5": (5, 108, 1456)}
RUN = 7700


def buffer(kind, records, run=RUN, number=0):
    """Return a buffer: records, their count, the run and the number of the buffer in it."""
    most, size = MOST[kind]
    content = b"".join(records).ljust(most * size, b"\0") + struct.pack("<IIQI", len(records), 0, run, number)
    return content.ljust(-(-(most * size + 4) // 64) * 64, b"\0")


def entry(kind, index, number=0):
    return struct.pack("<IIQI12x", index, kind, 0x1000 + index, number)


def executions(count):
    return [struct.pack("<QQQII", 1000 + 100 * n, 1050 + 100 * n, n, n + 1, 5) for n in range(count)]


def dispatches(count):
    return [struct.pack("<QQI12x", 980 + 100 * n, 1080 + 100 * n, n + 1) for n in range(count)]


def phases(count, *, is_newest):
    """Return phases as newer runtimes lay them out: task or pops before the iteration; the kind before or last."""
    rows = []
    for n in range(count):
        first = struct.pack("<QQII", 1000 + 50 * n, 1020 + 50 * n, n % 3, 0)
        counts = (n // 2, n % 2 + 1) if is_newest else (n // 2, n % 2, n % 2 + 1)
        depths = struct.pack("<6h", *range(6))
        rows.append((first + struct.pack(f"<{len(counts)}I", *counts) + depths + bytes([n % 2])).ljust(64, b"\0"))
    return rows


def memory(chip, cores, level, buffers):
    """Return header, pools for the whole chip, and what each producer says of the runs that it keeps."""
    threads, most, entries = CHIPS[chip]
    header = entry(3, 0) + b"\0" * ((threads * entries - 1) * 32 + 8 * threads)
    header += struct.pack("<5I", cores, level, threads - 1, 1, cores)
    header += bytes(core % (threads - 1) for core in range(cores))
    header = header.ljust(-(-(threads * entries * 32 + 8 * threads + 20 + most) // 64) * 64, b"\0")
    streams = {0: most, 3: most, 1: threads, 2: threads}
    pools = b""
    for kind, count in streams.items():
        for index in range(count):
            total = sum(number for (one, at), number in buffers.items() if (one, at) == (kind, index))
            head = struct.pack("<QIIIIII", 0x5000, 1, total, 0, 0, total, 1) if total else b""
            pools += head.ljust(192, b"\0")
    kept = 3 * 2 * (most + threads) * 64 + 63
    return header + pools + b"\0" * kept


def whole(chip, cores):
    """Return the memory of a run with its buffers behind."""
    made = {(3, 0): (3, executions(8)), (0, 0): (0, dispatches(8)), (1, 0): (1, phases(20, is_newest=True))}
    head = memory(chip, cores, 3, {lane: len(rows) for lane, (_, rows) in made.items()})
    return head + b"".join(entry(kind, lane[1]) + buffer(kind, rows) for lane, (kind, rows) in made.items())


def refused(content, **options):
    with pytest.raises(InputError, match="newer runtime") as caught:
        decode(content, name="dump.bin", **options)
    assert caught.value.exit_status == 3
    assert "chip_swimlane_records.json" in str(caught.value.hint)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("is_full", [False, True])
def test_memory_with_pools_of_the_whole_chip(chip, is_full):
    content = whole(chip, CHIPS[chip][1] if is_full else 24)
    refused(content)
    # And without the buffers.
    refused(content[: content.index(entry(3, 0), 32)])


@pytest.mark.parametrize("kind", [0, 3])
def test_buffers_of_a_run(kind):
    rows = {0: dispatches, 3: executions}[kind](8)
    content = entry(kind, 0) + buffer(kind, rows) + entry(kind, 1) + buffer(kind, rows, number=1)
    refused(content)
    refused(buffer(kind, rows))
    # The same records without a run are those of older runtimes.
    older = entry(kind, 0) + buffer(kind, rows, run=0)
    assert len(decode(older, name="dump.bin", frequency=50_000_000).details["ascend_tasks"]) == (8 if kind == 3 else 0)


@pytest.mark.parametrize("is_newest", [False, True])
def test_phases_alone(is_newest):
    content = buffer(1, phases(64, is_newest=is_newest))
    refused(content)
    refused(entry(1, 0) + content)


def test_such_a_dump_is_recognized():
    head = whole("a2a3", 24)
    match = FAMILY.detect(FileHead(head[: 1 << 16], len(head), "dump.bin"))
    assert match.score >= MINE


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dump", ["a2a3", "a5", "buffers"])
def test_older_memory_that_was_used_before_is_read(dump, seed):
    made = simulated(seed, dump=dump, level=3 + seed % 2, tasks=40)
    (name, content), *_ = made.files.items()
    assert len(decode(content, name=name).slices)
