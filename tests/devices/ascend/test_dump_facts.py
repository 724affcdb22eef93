"""What occurs in the raw dumps of the runtime's own collector: all of it has to occur in simulated dumps too.

The facts are found by a reader of its own, and by no list: a new dump in the corpus adds to them.
"""

import gzip
import struct
from itertools import pairwise

import numpy as np
import pytest

from devices.ascend.helpers import read, simulated
from lanescope.devices.ascend.formats.device_structs import REGIONS
from lanescope.devices.ascend.formats.encode_dump import encode_dump

#: By size of the header: threads, ready entries a thread, cores it has room for.
CHIPS = {127168: (4, 992, 72), 233152: (5, 1456, 108)}
ENTRY, POOL = struct.Struct("<IIQI12s"), struct.Struct("<QIII44s4QII88s")
STREAMS = ("aicpu_task", "sched_phase", "orch_phase", "aicore_task")
#: By stream: records, names and members of one, and the bytes of its padding.
RECORDS = {
    "aicpu_task": (1000, struct.Struct("<QQI12s"), ("dispatch", "finish", "reg_task_id"), 12),
    "sched_phase": (
        16384,
        struct.Struct("<QQIIIII3h3h16s"),
        ("start", "end", "loop_iter", "kind", "tasks", "pop_hit", "pop_miss", *"abcdef"),
        16,
    ),
    "orch_phase": (16384, struct.Struct("<QQQI4s"), ("start", "end", "task_id", "submit_idx"), 4),
    "aicore_task": (1024, struct.Struct("<QQQII0s"), ("start", "end", "task", "reg_task_id", "received"), 0),
}


def facts(content):
    """Return what occurs in a dump, as tuples that start with the place."""
    size = 127168 if chip(content, 127168) else 233152
    assert chip(content, size)
    threads, queued, room = CHIPS[size]
    at = threads * queued * ENTRY.size
    *queues, cores, level, sched, orch, phased = struct.unpack_from(f"<{2 * threads}I5I", content, at)
    assigned = struct.unpack_from(f"<{room}b", content, at + 8 * threads + 20)
    found = {
        ("header", "fewer cores than room", cores < room),
        ("header", "assigned cores", level, {cores: "all", 0: "none"}.get(phased, "some")),
        ("header", "threads of cores", level, "some" if max(assigned) >= 0 else "none"),
        ("header", "taken", queues[:threads] == queues[threads:]),
        ("header", "phases", level, sched > 0),
        ("header", "submits", level, orch > 0),
        *(("header", "queue used", thread == threads - 1) for thread in range(threads) if queues[thread]),
    }
    pools = size + POOL.size * 2 * (cores + threads)
    lanes = [
        *(("aicpu_task", core) for core in range(cores)),
        *(("aicore_task", core) for core in range(cores)),
        *(("sched_phase", thread) for thread in range(threads)),
        *(("orch_phase", thread) for thread in range(threads)),
    ]
    for number, (stream, _) in enumerate(lanes):
        found |= pool_facts(stream, POOL.unpack_from(content, size + POOL.size * number), level)
    lanes, at = [], pools
    while at < len(content):
        index, kind, pointer, seq, padding = ENTRY.unpack_from(content, at)
        stream = STREAMS[kind]
        most, record, _, _ = RECORDS[stream]
        at += ENTRY.size
        end = at + -(-(record.size * most + 4) // 64) * 64
        found |= {("entry", stream, "pointer", pointer > 0), ("entry", "padding", any(padding))}
        found |= {("entry", stream, "sequence", seq > 0)}
        found |= buffer_facts(stream, content[at:end])
        lanes.append((stream, index))
        at = end
    assert at == len(content)
    found |= {("order", one[0], two[0], one[1] == two[1]) for one, two in pairwise(lanes)}
    return found


def chip(content, size):
    """Return whether the header has a size: where it says how many cores are in use, another one has an empty queue."""
    threads, queued, room = CHIPS[size]
    (cores,) = struct.unpack_from("<I", content, threads * queued * ENTRY.size + 8 * threads)
    return 1 <= cores <= room


def pool_facts(stream, pool, level):
    """Return how a pool stands at the end."""
    current, seq, total, dropped, padding, *free, head, tail, more = pool
    is_used = total > 0
    return {
        ("pool", stream, level > 2, is_used, "current buffer", current > 0),
        ("pool", stream, level > 2, is_used, "rotated", seq > 0),
        ("pool", stream, level > 2, is_used, "dropped", dropped > 0),
        ("pool", stream, level > 2, is_used, "free", tail - head),
        ("pool", stream, level > 2, is_used, "taken", head > 0),
        ("pool", stream, level > 2, is_used, "addresses", all(free)),
        ("pool", "padding", any(padding + more)),
    }


def buffer_facts(stream, content):
    """Return what occurs in a buffer: members that are zero or not, padding, old slots, and what follows on what."""
    most, record, names, padding = RECORDS[stream]
    (count,) = struct.unpack_from("<I", content, record.size * most)
    rows = [record.unpack_from(content, record.size * row) for row in range(count)]
    found = {
        (stream, "full", count == most),
        (stream, "behind the count", any(content[record.size * most + 4 :])),
        (stream, "old slots", any(content[record.size * count : record.size * most])),
    }
    before = None
    for *values, unused in rows:
        row = dict(zip(names, values, strict=True))
        kind = row.get("kind", 0)
        found.add((stream, "padding", any(unused) if padding else False))
        found |= {(stream, kind, name, value != 0) for name, value in row.items() if name != "kind"}
        begin, end, *_ = values
        found.add((stream, kind, "has a duration", end > begin))
        if "task_id" in row or "task" in row:
            found.add((stream, "ring", row.get("task_id", row.get("task")) >> 32 > 0))
        if before is not None:
            found.add((stream, "follows", before[0], kind, place(before[1], (begin, end))))
        before = kind, (begin, end)
    return found


def place(before, now):
    """Return where an interval is, in terms of the one that was recorded before it."""
    if now[0] >= before[1]:
        return "behind"
    return "around" if now[0] <= before[0] and before[1] <= now[1] else "other"


def simulations():
    """Yield simulated dumps of the scenarios that the simulator is held to: few tasks, many, and many edges."""
    for dump in ("a2a3", "a5"):
        for level, seed, tasks in ((2, 1, 5), (4, 1, 5), (4, 2, 2), (4, 3, 40), (4, 4, 1500)):
            options = {"aic": 8, "aiv": 16, "threads": 3, "producers": 3.0, "format_version": "v3c"}
            yield next(iter(simulated(seed, dump=dump, level=level, tasks=tasks, **options).files.values()))


@pytest.fixture(scope="module")
def recorded(corpus):
    found = set()
    paths = sorted((corpus / "producers/ascend/raw").glob("*.bin.gz"))
    assert len(paths) >= 2
    for path in paths:
        found |= facts(gzip.decompress(path.read_bytes()))
    return found


def test_whatever_the_collector_leaves_the_simulator_leaves_too(recorded):
    made = set().union(*map(facts, simulations()))
    assert sorted(map(str, recorded - made)) == []


def test_the_facts_tell_an_unused_device_from_a_used_one():
    """A simulator that cleared its memory, or used all cores, would not pass."""
    told = read(next(iter(simulated(2, tasks=40, format_version="v3c", aic=8, aiv=16).files.values())))
    clean, used = (facts(encode_dump(told, REGIONS[0], used=random)) for random in (None, np.random.default_rng(1)))
    for stream in ("sched_phase", "orch_phase"):
        assert {(stream, "padding", True), (stream, "old slots", True)} <= used - clean
