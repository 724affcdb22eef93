"""Kinds of memory of addresses, against a map of what is alive."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from devices.levelzero.helpers import Script, names, operations, stats
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Events
from lanescope.devices.levelzero.interpret.allocations import CODES, lookup

KINDS = ("shared", "device", "host")
BASE = 0xFF00_0000_0000_0000


@st.composite
def programs(draw):
    """Allocations that never overlap while they live, frees, and questions in between."""
    alive, steps = {}, []
    for _ in range(draw(st.integers(1, 40))):
        process = draw(st.integers(0, 1))
        move = draw(st.sampled_from(("alloc", "alloc", "free", "ask", "ask", "ask")))
        if move == "alloc":
            base, size = draw(st.integers(0, 60)), draw(st.integers(1, 20))
            mine = alive.setdefault(process, {})
            if all(base >= end or base + size <= begin for begin, (end, _) in mine.items()):
                kind = draw(st.sampled_from(KINDS))
                mine[base] = (base + size, kind)
                steps.append(("alloc", process, base, size, kind))
        elif move == "free" and alive.get(process):
            base = draw(st.sampled_from(sorted(alive[process])))
            del alive[process][base]
            steps.append(("free", process, base, 0, ""))
        else:
            at = draw(st.integers(0, 90))
            inside = [kind for begin, (end, kind) in alive.get(process, {}).items() if begin <= at < end]
            steps.append(("ask", process, at, 0, inside[0] if inside else layout.SYSTEM))
    return steps


@given(programs())
def test_equals_a_map(steps) -> None:
    records = [(number, *step) for number, step in enumerate(steps) if step[0] != "ask"]
    asked = [(number, *step) for number, step in enumerate(steps) if step[0] == "ask"]
    events = Events.of(
        {
            "threads": {"process_id": [0, 1], "tid": [1, 2]},
            "allocations": {
                "seq": [record[0] for record in records],
                "ts": [record[0] for record in records],
                "thread_id": [record[2] for record in records],
                "action": [record[1] for record in records],
                "base": np.array([BASE + record[3] for record in records], np.uint64),
                "bytes": np.array([record[4] for record in records], np.uint64),
                "memory": [record[5] for record in records],
            },
        }
    )
    found = lookup(
        events,
        np.array([row[2] for row in asked], np.int32),
        np.array([BASE + row[3] for row in asked], np.uint64),
        np.array([row[0] for row in asked], np.int64),
    )
    assert found.tolist() == [CODES[row[5]] for row in asked]


def test_address_space_ends(tmp_path) -> None:
    """An allocation that claims to reach beyond the last address ends there."""
    script = Script().call("zeMemAllocDevice", size=1 << 63, out_pptr_val=hex((1 << 64) - 0x1000))
    script.append("MemoryFill", 0x4, ptr=hex((1 << 64) - 2), size=1).result(0x4)
    assert names(script.open(tmp_path)) == ["MemoryFill(D)"]


def test_copies_by_memory_and_direction(tmp_path) -> None:
    script = Script()
    for number, kind in enumerate(("Shared", "Device", "Host")):
        script.call(f"zeMemAlloc{kind}", size=0x100, out_pptr_val=hex(0x1000 * (number + 1)))
    for number, (dst, src) in enumerate(((0x1000, 0x2000), (0x2010, 0x30FF), (0x3000, 0x3100), (0x9000, 0x1001))):
        script.append("MemoryCopy", 0x40 + number, dstptr=hex(dst), srcptr=hex(src), size=8 + number).result(
            0x40 + number
        )
    script.append("MemoryFill", 0x50, ptr="0x2000", size=3).result(0x50)
    rows = operations(script.open(tmp_path))
    assert [row["name"].removeprefix("zeCommandListAppendMemory") for row in rows] == [
        "Copy(D2S)",
        "Copy(H2D)",
        "Copy(M2H)",
        "Copy(S2M)",
        "Fill(D)",
    ]
    assert [row["bytes"] for row in rows] == [8, 9, 10, 11, 3]
    assert [(row["dst_memory"], row["src_memory"]) for row in rows][2:] == [
        ("host", "system"),
        ("system", "shared"),
        ("device", None),
    ]
    assert {row["kind"] for row in rows} == {"copy", "fill"}


def test_freed_memory_is_forgotten(tmp_path) -> None:
    """An address comes back as another kind; a failed free frees nothing."""
    script = Script().call("zeMemAllocDevice", size=0x100, out_pptr_val="0x1000")
    script.append("MemoryFill", 0x4, ptr="0x1000", size=1).result(0x4)
    script.call("zeMemFree", "ZE_RESULT_ERROR_INVALID_ARGUMENT", ptr="0x1000")
    script.append("MemoryFill", 0x4, ptr="0x1000", size=1).result(0x4)
    script.call("zeMemFree", ptr="0x1000")
    script.append("MemoryFill", 0x4, ptr="0x1000", size=1).result(0x4)
    script.call("zeMemAllocHost", size=0x100, out_pptr_val="0x1000")
    script.append("MemoryFill", 0x4, ptr="0x1000", size=1).result(0x4)
    found = [name[-2] for name in names(script.open(tmp_path))]
    assert found == ["D", "D", "M", "H"]


def test_global_pointers_and_described_allocations(tmp_path) -> None:
    script = Script()
    script.call("zeModuleGetGlobalPointer", hModule=0x7, out_pSize_val=16, out_pptr_val="0x5000")
    script.append("MemoryFill", 0x4, ptr="0x5008", size=1).result(0x4)
    script.call("zeModuleDestroy", hModule=0x7)
    script.append("MemoryFill", 0x4, ptr="0x5008", size=1).result(0x4)
    script.record(
        "lttng_ust_ze_properties:memory_info_properties",
        ptr="0x6000",
        pMemAllocProperties_val={"type": "ZE_MEMORY_TYPE_HOST"},
    )
    script.record("lttng_ust_ze_properties:memory_info_range", ptr="0x6000", base="0x6000", size=64)
    script.append("MemoryFill", 0x4, ptr="0x6000", size=1).result(0x4)
    assert [name[-2] for name in names(script.open(tmp_path))] == ["S", "M", "H"]


def test_memory_that_calls_touch_themselves(tmp_path) -> None:
    script = Script().call("zeContextMakeMemoryResident", hContext=1, ptr="0x1000", size=4096)
    script.call("zeContextMakeMemoryResident", "ZE_RESULT_ERROR_UNKNOWN", ptr="0x1000", size=1)
    trace = script.open(tmp_path)
    assert trace.details["levelzero_calls"]["bytes"].tolist() == [4096, 1]
    assert stats(trace) == {"levelzero_missing_date": 1}
