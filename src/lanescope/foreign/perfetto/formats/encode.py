"""Writes packets field by field: for simulated traces.

Source: google/perfetto, protos/perfetto/trace/ (messages).
"""

from __future__ import annotations

import struct
import zlib

Value = int | float | str | bytes


def varint(value: int) -> bytes:
    """Encode an integer; one below 0 as 64 bits."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def message(*fields: tuple[int, Value]) -> bytes:
    """Encode fields: integers as varints, floats as doubles, texts and messages with their length in front."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            out += varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            body = value.encode("utf-8", "replace") if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(body)) + body
    return bytes(out)


def fixed64(number: int, value: int) -> bytes:
    """Encode a field of 64 bits."""
    return varint(number << 3 | 1) + value.to_bytes(8, "little")


def packet(*fields: tuple[int, Value]) -> bytes:
    """Encode a packet of the file."""
    return message((1, message(*fields)))


def compressed(packets: bytes) -> bytes:
    """Encode packets as one compressed packet."""
    return packet((50, zlib.compress(packets, 1)))
