"""Detect Perfetto traces by the packets at the start of the file; judged with the standard library only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanescope.source.detection import CERTAIN, MINE, Detection

if TYPE_CHECKING:
    from lanescope.source.detection import FileHead

FORMAT = "track_event"  # as ``layout`` has it, which costs more to load
#: ``Trace.packet``, a message.
PACKET_TAG = 0x0A
#: Wire type of the fields of a packet that nearly all packets have, by number. Source: protos/perfetto/trace/
#: trace_packet.proto.
_KNOWN = {
    3: 0, 6: 2, 8: 0, 10: 0, 11: 2, 12: 2, 13: 0, 33: 2, 35: 2, 36: 2, 41: 0, 42: 0, 43: 2, 44: 2, 50: 2, 58: 0, 59: 2,
    60: 2, 79: 0, 87: 0, 89: 2, 98: 0, 133: 2,
}  # fmt: skip
#: Highest field of a packet, with room for what later versions add.
_MOST_FIELD = 1000
#: So many packets are looked at.
_ENOUGH = 8
_SURE, _LIKELY, _PACKED = 95, 80, 60
_PACKED_FIELD, _ZSTD_FIELD = 50, 133


def detect(head: FileHead) -> Detection:
    """Look for packets, one after another, of fields that packets of a trace have."""
    data = head.data
    if data[:1] != b"\n":
        return Detection(0)
    at = packets = known = 0
    while at < len(data) and packets < _ENOUGH:
        fields = _packet(data, at, is_whole=head.is_whole)
        if fields is None:
            break
        end, found = fields
        if found < 0:
            return Detection(0)
        packets, known, at = packets + 1, known + found, end
    else:
        if packets >= _ENOUGH and known >= packets:
            return Detection(_SURE, FORMAT, f"{packets} packets of a Perfetto trace, one after another")
        if packets and known >= 2:
            return Detection(CERTAIN, FORMAT, f"nothing but packets of a Perfetto trace: {packets}")
        return Detection(0)
    cut = _cut_packet(data, at)
    if packets and known > packets and cut:
        return Detection(_LIKELY, FORMAT, f"{packets} packets of a Perfetto trace, and the start of another one")
    if not packets and cut == "packed":
        return Detection(_PACKED, FORMAT, "the start of a packet of compressed packets")
    if packets and known > 2 * packets:
        return Detection(MINE, FORMAT, f"{packets} packets of a Perfetto trace, then other bytes")
    return Detection(0)


def _varint(data: bytes, at: int) -> tuple[int, int] | None:
    """Return a varint and the place behind it; None where it does not end."""
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return None


def _packet(data: bytes, at: int, *, is_whole: bool) -> tuple[int, int] | None:
    """Return the end of a packet and how many of its fields are common ones, -1: it is none; None if it is cut."""
    if data[at] != PACKET_TAG:
        return (at, -1) if not is_whole or not at else None
    size = _varint(data, at + 1)
    if size is None or size[0] > len(data) - size[1]:
        return None
    end = size[1] + size[0]
    place, known = size[1], 0
    while place < end:
        tag = _varint(data, place)
        if tag is None or tag[1] > end:
            return end, -1
        number, wire = tag[0] >> 3, tag[0] & 7
        if not 0 < number <= _MOST_FIELD or _KNOWN.get(number, wire) != wire:
            return end, -1
        known += number in _KNOWN
        after = _after(data, tag[1], wire, end)
        if after is None:
            return end, -1
        if number == _PACKED_FIELD and b"\x78" in data[tag[1] : tag[1] + 5]:  # a stream of zlib
            known += 2
        place = after
    return end, known


def _after(data: bytes, at: int, wire: int, end: int) -> int | None:
    """Return the place behind the value of a field; None where it is not within the packet."""
    if wire in (1, 5):
        after = at + (8 if wire == 1 else 4)
    elif wire in (0, 2):
        value = _varint(data, at)
        if value is None:
            return None
        after = value[1] + (value[0] if wire == 2 else 0)
    else:
        return None
    return after if after <= end else None


def _cut_packet(data: bytes, at: int) -> str:
    """Return what begins at a place and goes on behind the head: ``packed``, ``packet`` or nothing."""
    if data[at : at + 1] != b"\n":
        return ""
    size = _varint(data, at + 1)
    if size is None:
        return "packet" if len(data) - at < 10 else ""
    tag = _varint(data, size[1])
    if tag is None:
        return "packet"
    number, wire = tag[0] >> 3, tag[0] & 7
    if _KNOWN.get(number, -1) != wire and wire != 2:
        return ""
    if number in (_PACKED_FIELD, _ZSTD_FIELD):
        inner = _varint(data, tag[1])
        is_sound = inner is not None and inner[1] + inner[0] == size[1] + size[0]
        is_stream = inner is not None and (number == _ZSTD_FIELD or data[inner[1] : inner[1] + 1] == b"\x78")
        return "packed" if is_sound and is_stream else ""
    return "packet"
