"""The file ``metadata`` -> its text: written plainly, or cut into packets as LTTng does."""

from __future__ import annotations

import struct

from lanescope.wire.tsdl.types import TsdlError

#: How every description in text begins. Source: CTF 1.8.3, section 7.
SIGNATURE = b"/* CTF 1.8"
#: How every description in JSON begins. Source: CTF2-SPEC-2.0, section 5.
FRAGMENTS = b"\x1e"
#: How packets of a description begin. Source: the same, section 7.1.
PACKET_MAGIC = 0x75D11D57
#: Larger descriptions are refused.
MOST_TEXT = 64 << 20
#: magic, uuid, checksum, content and packet size in bits, compression, encryption and checksum scheme, version.
_HEADER = "I16sIII5B"


def is_packetized(head: bytes) -> bool:
    """Return whether a description is cut into packets."""
    return len(head) >= 4 and PACKET_MAGIC in struct.unpack("<I", head[:4]) + struct.unpack(">I", head[:4])


def metadata_text(data: bytes) -> str:
    """Return the text of a description.

    Args:
        data: the file ``metadata``.

    Raises:
        TsdlError: it is neither of CTF 1.8 nor of CTF 2, or its packets are damaged.
    """
    if len(data) > MOST_TEXT:
        raise TsdlError(f"longer than {MOST_TEXT} bytes")
    if is_packetized(data):
        data = _unpacked(data)
    elif not data.startswith((SIGNATURE, FRAGMENTS)):
        raise TsdlError("neither the signature of CTF 1.8 nor a fragment of CTF 2 found")
    return data.decode(errors="replace")


def _unpacked(data: bytes) -> bytes:
    order = "<" if struct.unpack("<I", data[:4])[0] == PACKET_MAGIC else ">"
    size = struct.calcsize(order + _HEADER)
    parts, at = [], 0
    while at < len(data):
        if len(data) - at < size:
            raise TsdlError(f"packet at byte {at}: its header is cut short")
        magic, _, _, content, whole, *schemes, major, minor = struct.unpack_from(order + _HEADER, data, at)
        if magic != PACKET_MAGIC:
            raise TsdlError(f"packet at byte {at}: invalid magic number {magic:#x}")
        if any(schemes):
            raise TsdlError(f"packet at byte {at}: unsupported compression, encryption or checksum")
        if (major, minor) != (1, 8):
            raise TsdlError(f"packet at byte {at}: unsupported version {major}.{minor}")
        if content % 8 or whole % 8 or not 8 * size <= content <= whole or at + content // 8 > len(data):
            raise TsdlError(f"packet at byte {at}: invalid size")
        parts.append(data[at + size : at + content // 8])
        at += whole // 8
    return b"".join(parts)
