"""The reader of streams in Python, one field after the other: what the native one is held against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lanescope.wire.ctf.metadata import LATEST_NS, SEQUENCE, TEXT, Field, Metadata
from lanescope.wire.ctf.streams import ABSENT, MAGIC, PACKET, Events, Layout


class ReferenceReader:
    """Reads streams as ``Reader`` does, one field after the other, in Python.

    Args:
        about: the description of the trace.
    """

    def __init__(self, about: Metadata) -> None:
        self.about = about
        self.layout = Layout.of(about)

    def read(self, data: bytes) -> Events:
        """Walk a stream."""
        return _Walk(self.about, self.layout, data).events()

    @staticmethod
    def fields(data: bytes, fields: Sequence[Field], payload: int) -> list[int | bytes | list[int]]:
        """Return the fields that begin at ``payload``; those that are not whole are left out."""
        found: list[int | bytes | list[int]] = []
        _fields(data, fields, payload, len(data), found)
        return found

    def values(self, data: bytes, number: int, payload: int) -> list[int | bytes | list[int]] | None:
        """Return the fields of the event whose fields begin at ``payload``; None if they are not whole."""
        found: list[int | bytes | list[int]] = []
        end = _fields(data, self.about.events[number].fields, payload, len(data), found)
        return None if end is None else found


def _fields(
    data: bytes, fields: Sequence[Field], at: int, end: int, found: list[int | bytes | list[int]]
) -> int | None:
    """Read the fields that begin at ``at``; return where they end, None if that is beyond ``end``."""
    for item in fields:
        if item.kind == TEXT:
            zero = data.find(b"\0", at, end)
            if zero < 0:
                return None
            found.append(data[at:zero])
            at = zero + 1
            continue
        count = 1
        if item.kind == SEQUENCE:
            length = found[item.length]
            assert isinstance(length, int)
            count = length
        if count * item.size > end - at:
            return None
        elements = [
            int.from_bytes(data[at + i * item.size : at + (i + 1) * item.size], "little", signed=item.signed)
            for i in range(count)
        ]
        found.append(elements if item.kind == SEQUENCE else elements[0])
        at += count * item.size
    return at


class _Walk:
    def __init__(self, about: Metadata, layout: Layout, data: bytes) -> None:
        self.about, self.layout, self.data = about, layout, data
        self.packets: list[list[int]] = []
        self.losses: list[tuple[int, int]] = []
        self.found: list[tuple[int, int, int]] = []
        self.decoded = self.padding = self.lost = 0

    def events(self) -> Events:
        at = unread = 0
        while at < len(self.data):
            end = self._packet(at) if self._is_packet(at) else None
            if end is None:
                at += 1
                continue
            self._leave(unread, at)
            at = unread = end
        self._leave(unread, len(self.data))
        classes, times, payloads = zip(*self.found, strict=True) if self.found else ((), (), ())
        return Events(
            np.frombuffer(self.data, np.uint8),
            np.array(self.packets, np.uint64).reshape(-1, len(PACKET)),
            np.array(self.losses, np.uint64).reshape(-1, 2),
            np.array(classes, np.uint16),
            np.array(times, np.uint64),
            np.array(payloads, np.uint64),
            self.decoded,
            self.padding,
            self.lost,
        )

    def _part(self, at: int, name: str, otherwise: int, size: int = 8) -> int:
        offset = self.layout.parts[name]
        if offset == ABSENT:
            return otherwise
        return int.from_bytes(self.data[at + offset : at + offset + size], "little")

    def _is_packet(self, at: int) -> bool:
        if len(self.data) - at < self.layout.packet_header:
            return False
        uuid = at + self.layout.parts["uuid"]
        return self._part(at, "magic", 0, 4) == MAGIC and self.data[uuid : uuid + 16] == self.about.uuid

    def _leave(self, begin: int, end: int) -> None:
        if not any(self.data[begin:end]):
            self.padding += end - begin
        else:
            self.losses.append((begin, end - begin))
            self.lost += end - begin

    def _packet(self, at: int) -> int | None:
        left = len(self.data) - at
        size_bits = self._part(at, "packet_size", 8 * left)
        content_bits = self._part(at, "content_size", size_bits)
        begin = self._part(at, "timestamp_begin", 0)
        size, content = size_bits // 8, content_bits // 8
        if size_bits % 8 or content_bits % 8 or not self.layout.packet_header <= content <= size or begin >= LATEST_NS:
            return None
        end = at + min(size, left)
        cut = size > left
        if size > left or (end < len(self.data) and not self._is_packet(end)):
            # Another packet inside of this one: this one's size is wrong.
            inside = range(at + self.layout.packet_header, end)
            following = next((place for place in inside if self._is_packet(place)), end)
            cut |= following != end
            end = following
        content_end = min(end, at + content)
        first = len(self.found)
        events_end = self._events(at + self.layout.packet_header, content_end, begin)
        lost = content_end - events_end
        self.packets.append(
            [
                at,
                end - at,
                content_end - at,
                begin,
                self._part(at, "timestamp_end", 0),
                self._part(at, "events_discarded", 0),
                self._part(at, "packet_seq_num", 0),
                self._part(at, "thread", 0, 4),
                self._part(at, "complete", 1, 4),
                first,
                len(self.found) - first,
                lost,
                cut,
            ]
        )
        self.decoded += events_end - at
        self.lost += lost
        self.padding += end - content_end
        return end

    def _events(self, at: int, end: int, time: int) -> int:
        layout, data = self.layout, self.data
        modulus = 1 << (8 * layout.time_size)
        while end - at >= layout.event_header:
            number = int.from_bytes(data[at + layout.id : at + layout.id + layout.id_size], "little")
            known = self.about.events.get(number)
            if known is None:
                break
            payload = at + layout.event_header
            after = _fields(data, known.fields, payload, end, [])
            if after is None:
                break
            low = int.from_bytes(data[at + layout.time : at + layout.time + layout.time_size], "little")
            time = (time + (low - time) % modulus) % (1 << 64)
            self.found.append((number, time, payload))
            at = after
        return at
