"""Structures of Level Zero and CUDA that THAPI writes as raw bytes -> their fields, as its text has them.

Source: ``ze_api.h`` 1.4, ``cuda.h``, on 64-bit machines; members that later versions append come behind.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from lanescope.devices.levelzero.formats import layout

#: Members that are read: offset and format, as ``struct`` has it.
_Members = Mapping[str, tuple[int, str]]
_LIST: _Members = {"commandQueueGroupOrdinal": (16, "I"), "flags": (20, "I")}
_QUEUE: _Members = {"ordinal": (16, "I"), "index": (20, "I"), "flags": (24, "I"), "mode": (28, "I")}
_GROUPS: _Members = {"groupCountX": (0, "I"), "groupCountY": (4, "I"), "groupCountZ": (8, "I")}
_DEVICE: _Members = {
    "stype": (0, "I"),
    "subdeviceId": (32, "I"),
    "timerResolution": (80, "Q"),
    "timestampValidBits": (88, "I"),
    "kernelTimestampValidBits": (92, "I"),
    "uuid": (96, "16s"),
    "name": (112, "256s"),
}
_KERNEL: _Members = {"maxSubgroupSize": (40, "I")}
_MEMORY: _Members = {"type": (16, "I")}
_PLANE: _Members = {"WidthInBytes": (112, "Q"), "Height": (120, "Q")}
_BOX: _Members = {"WidthInBytes": (176, "Q"), "Height": (184, "Q"), "Depth": (192, "Q")}
#: Functions that are given them. Those without a version have others, of 32 bits.
_PLANES = ("cuMemcpy2D_v2", "cuMemcpy2DUnaligned_v2", "cuMemcpy2DAsync_v2")
_BOXES = ("cuMemcpy3D_v2", "cuMemcpy3DAsync_v2", "cuMemcpy3DPeer", "cuMemcpy3DPeerAsync")
#: By event and field; None: of all events.
STRUCTURES: Mapping[tuple[str | None, str], _Members] = {
    ("zeCommandListCreate_entry", "desc_val"): _LIST,
    ("zeCommandListCreateImmediate_entry", "altdesc_val"): _QUEUE,
    ("zeCommandQueueCreate_entry", "desc_val"): _QUEUE,
    **{
        (f"{function}{stream}_entry", "pCopy_val"): members
        for functions, members in ((_PLANES, _PLANE), (_BOXES, _BOX))
        for function in functions
        for stream in ("", "_ptds", "_ptsz")
    },
    (None, "pLaunchFuncArgs_val"): _GROUPS,
    (None, "pGroupCounts_val"): _GROUPS,
    (None, "pDeviceProperties_val"): _DEVICE,
    (None, "pKernelProperties_val"): _KERNEL,
    (None, "pMemAllocProperties_val"): _MEMORY,
}
#: ze_structure_type_t of properties whose timer counts cycles a second.
_STYPE_CYCLES = 0x00020006
#: ze_memory_type_t.
_MEMORY_TYPES = dict(enumerate(("ZE_MEMORY_TYPE_UNKNOWN", *layout.MEMORY_TYPES)))


def members_of(event: str, field: str) -> _Members | None:
    """Return the members of a structure that are read; None if the field is not one that is known."""
    return STRUCTURES.get((event, field)) or STRUCTURES.get((None, field))


def is_of_numbers(members: _Members) -> bool:
    """Return whether all members are written as numbers."""
    return all(code in ("I", "Q") and name not in ("stype", "type") for name, (_, code) in members.items())


def places(members: _Members) -> list[tuple[str, int, int]]:
    """Return name, offset and size in bytes of each member."""
    return [(name, at, struct.calcsize("<" + code)) for name, (at, code) in members.items()]


def text(members: _Members, raw: bytes) -> str:
    """Return a structure as THAPI's text has it; members behind its end are left out."""
    found = []
    for name, (at, code) in members.items():
        if at + struct.calcsize(code) > len(raw):
            continue
        (value,) = struct.unpack_from("<" + code, raw, at)
        found.append(f"{name}: {_written(name, value)}")
    return "{ " + ", ".join(found) + " }"


def _written(name: str, value: int | bytes) -> str:
    if name == "uuid" and isinstance(value, bytes):
        return "{ id: [ " + ", ".join(map(str, value)) + " ] }"
    if isinstance(value, bytes):
        return quoted(value.split(b"\0")[0])
    if name == "stype":
        return layout.STYPE_CYCLES if value == _STYPE_CYCLES else str(value)
    if name == "type":
        return _MEMORY_TYPES.get(value, str(value))
    return str(value)


def quoted(raw: bytes) -> str:
    """Return a text in quotes, as records have it; bytes that are not printable ASCII as escapes."""
    made = "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}" for byte in raw)
    return f'"{made}"'
