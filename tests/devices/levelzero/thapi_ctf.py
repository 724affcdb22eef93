"""THAPI's text as the CTF that its tracers write: integers for names, raw bytes for structures."""

from __future__ import annotations

import re
import struct
import uuid
from datetime import UTC, datetime
from typing import Any

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.fields import parse
from lanescope.devices.levelzero.formats.foreign import structures

UUID = uuid.UUID(int=7)
_NUMBERS = {name: number for number, name in layout.RESULTS.items()}
_LINE = re.compile(rb"(\d+):(\d+):(\d+)\.(\d{9}) - (\S+) - vpid: (\d+), vtid: (\d+) - (\S+:\S+): (\{.*\})")
_SIZES = {"pDeviceProperties_val": 368, "pKernelProperties_val": 88, "pMemAllocProperties_val": 32}
_CYCLES = 0x00020006
MIDNIGHT = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())


def kind_of(event: str, name: str, value: Any) -> str:
    """Return how a field is written: ``number``, ``text``, ``numbers`` or ``structure``."""
    if structures.members_of(event, name) is not None:
        return "structure"
    if isinstance(value, list):
        return "numbers"
    return "number" if value in _NUMBERS or re.fullmatch(r"\d{1,20}|0x[0-9a-f]+", value) else "text"


def flat(event: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields without structures that tracers write member by member."""
    found = {}
    for name, value in fields.items():
        if isinstance(value, dict) and structures.members_of(event, name) is None:
            found |= {f"{name.removesuffix('_val')}__{member}_val": item for member, item in value.items()}
        else:
            found[name] = value
    return found


def packed(event: str, name: str, value: Any) -> bytes:
    """Return the bytes of a structure."""
    members = structures.members_of(event, name)
    size = _SIZES.get(name, max(at + struct.calcsize(code) for at, code in members.values()))
    raw = bytearray(size)
    for member, (at, code) in members.items():
        if member not in value:
            continue
        given = value[member]
        if member == "uuid":
            given = bytes(int(byte) for byte in given["id"]) if isinstance(given, dict) else bytes.fromhex(given)
        elif member == "name":
            given = given.encode()
        elif member == "stype":
            given = _CYCLES if given == layout.STYPE_CYCLES else 3
        elif member == "type":
            given = 1 + list(layout.MEMORY_TYPES).index(given)
        elif member == "flags" and not given[:1].isdigit():
            given = sum(layout.FLAG_NAMES.get(word.strip(), 0) for word in given.split("|"))
        else:
            given = int(given, 0)
        struct.pack_into("<" + code, raw, at, given)
    return bytes(raw)


def write(text: bytes, folder) -> None:
    """Write a text trace of one host as a folder of CTF."""
    kinds: dict[tuple[Any, ...], int] = {}
    events, host = bytearray(), ""
    for line in text.splitlines():
        hour, minute, second, ns, host, pid, tid, name, payload = _LINE.fullmatch(line).groups()
        time = (int(hour) * 3600 + int(minute) * 60 + int(second)) * 1_000_000_000 + int(ns)
        event = name.decode().partition(":")[2]
        fields = flat(event, parse(payload))
        types = tuple((key, kind_of(event, key, value)) for key, value in fields.items())
        number = kinds.setdefault((name.decode(), types), len(kinds))
        body = struct.pack("<HQii", number, time, int(pid), int(tid))
        for key, kind in types:
            value = fields[key]
            if kind == "structure":
                raw = packed(event, key, value)
                body += struct.pack("<Q", len(raw)) + raw
            elif kind == "numbers":
                body += struct.pack(f"<Q{len(value)}Q", len(value), *(int(item, 0) for item in value))
            elif kind == "number":
                body += struct.pack("<Q", _NUMBERS[value] if value in _NUMBERS else int(value, 0))
            else:
                body += value.encode() + b"\0"
        events += body
    declared = ""
    for (name, types), number in kinds.items():
        members = ""
        for key, kind in types:
            if kind == "structure":
                members += f"u64 _{key}_length; character {key}[_{key}_length]; "
            elif kind == "numbers":
                members += f"u64 _{key}_length; u64 {key}[_{key}_length]; "
            else:
                members += f"{'u64' if kind == 'number' else 'string'} _{key}; "
        declared += f'event {{ name = "{name}"; id = {number}; stream_id = 0; fields := struct {{ {members} }}; }};\n'
    metadata = f"""/* CTF 1.8 */
typealias integer {{ size = 8; }} := u8;
typealias integer {{ size = 8; encoding = UTF8; }} := character;
typealias integer {{ size = 16; align = 8; }} := u16;
typealias integer {{ size = 32; align = 8; signed = true; }} := i32;
typealias integer {{ size = 64; align = 8; }} := u64;
trace {{ major = 1; minor = 8; uuid = "{UUID}"; byte_order = le;
  packet.header := struct {{ integer {{ size = 32; align = 8; }} magic; u8 uuid[16]; }}; }};
env {{ hostname = "{host.decode()}"; tracer_name = "lttng-ust"; }};
clock {{ name = monotonic; freq = 1000000000; offset_s = {MIDNIGHT}; }};
stream {{ packet.context := struct {{ u64 content_size; u64 packet_size; }};
  event.header := struct {{ u16 id; integer {{ size = 64; align = 8; map = clock.monotonic.value; }} timestamp; }};
  event.context := struct {{ i32 _vpid; i32 _vtid; }}; }};
{declared}"""
    folder.mkdir(parents=True)
    (folder / "metadata").write_text(metadata)
    size = 8 * (36 + len(events))
    (folder / "channel0_0").write_bytes(struct.pack("<I16sQQ", 0xC1FC1FC1, UUID.bytes, size, size) + events)
