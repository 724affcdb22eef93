"""The packets of a file, cut anywhere: fed to the native reader, those inside of others unpacked on the way."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.foreign.perfetto.formats.messages import is_damaged

Int64 = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[Any]]

#: A packet of packets that claims to hold more is not unpacked: upstream keeps them below 512 kB.
MOST_UNPACKED = 256 << 20
#: The rest of a packet that was cut is looked for in so many bytes, then in all.
_MOST_CUT = 64 << 10


@dataclass(slots=True)
class Found:
    """What a file has.

    Attributes:
        tables: columns by table and name, as the native reader gives them.
        rows: slices, instants and facts of tracks, as the native reader gives them; None where events were kept.
        names, categories: those of events, by code.
        texts: other texts, by code.
        damaged: how many of all these have NUL, or bytes that are not UTF-8.
        message_bytes: descriptors and statistics, end to end.
        faults: count and first offset by kind.
        other: packets and bytes by field, of other data sources.
        unread: fields of events that are not read, and how often.
        zstd: packets of packets that no library here unpacks: how many, and where first.
        used_clocks: clocks that events and samples count on.
        primary_clock: number of the clock that the file names as its own, 0: none.
        size, decoded, padding, lost: bytes of the file.
        truncated_at: where the packet begins that the end of the file cuts, -1: none.
        packets: how many there are.
        reader: renders the annotations.
    """

    tables: dict[str, Columns]
    rows: dict[str, Any] | None
    names: list[str]
    categories: list[str]
    texts: list[str]
    damaged: int
    message_bytes: bytes
    faults: dict[str, tuple[int, int]]
    other: dict[int, tuple[int, int]]
    unread: dict[int, int]
    zstd: tuple[int, int]
    used_clocks: list[int]
    primary_clock: int
    size: int
    decoded: int
    padding: int
    lost: int
    truncated_at: int
    packets: int
    reader: core.PerfettoReader


class PacketReader:
    """Reads a file piece by piece.

    Args:
        size: of the file, as far as it is known.
        keeps_events: keep all events, in order of the file; else slices are found on the way.
    """

    def __init__(self, size: int = 0, *, keeps_events: bool = False) -> None:
        self._reader = core.PerfettoReader(keeps_events)
        self._reader.expect(size)
        self._keeps_events = keeps_events
        self._rest = bytearray()
        self._offset = 0  # of the rest, in the file
        self._zstd = (0, -1)

    @property
    def needs_events(self) -> bool:
        """Whether what was read so far can only be understood with all events at hand."""
        return not self._keeps_events and self._reader.needs_events

    def feed(self, data: memoryview) -> None:
        """Read the next bytes."""
        if self._rest:
            data = self._feed_rest(data)
        at = self._scan(np.frombuffer(data, np.uint8), is_last=False)
        self._rest += data[at:]
        self._offset += at

    def _feed_rest(self, data: memoryview) -> memoryview:
        """Read the packet that was cut; return what follows: hardly a byte is copied for it."""
        size = len(self._rest)
        for count in (_MOST_CUT, len(data)):
            self._rest += data[len(self._rest) - size : count]
            at = self._scan(np.frombuffer(self._rest, np.uint8), is_last=False)
            self._offset += at
            if at >= size:
                self._rest.clear()
                return data[at - size :]
            del self._rest[:at]
            size -= at
        return data[len(data) :]

    def finish(self) -> Found:
        """Take the end of the file."""
        at = self._scan(np.frombuffer(bytes(self._rest), np.uint8), is_last=True)
        self._offset += at
        reader = self._reader
        decoded, padding, lost = reader.bytes
        tables, rows = reader.take(), None if self._keeps_events else reader.take_rows()
        names, categories, texts = _texts(*reader.names), _texts(*reader.categories), _texts(*reader.texts)
        return Found(
            tables,
            rows,
            names,
            categories,
            texts,
            sum(map(is_damaged, chain(names, categories, texts))),
            reader.message_bytes(),
            reader.faults,
            reader.other,
            reader.unread,
            self._zstd,
            reader.used_clocks,
            reader.primary_clock,
            self._offset,
            decoded,
            padding,
            lost,
            reader.truncated_at,
            reader.packets,
            reader,
        )

    def _scan(self, data: npt.NDArray[np.uint8], *, is_last: bool) -> int:
        """Read whole packets; return how many bytes they are."""
        at = 0
        reader = self._reader
        while True:
            at = reader.scan(data, at, self._offset, is_last)
            packed = reader.packed
            if not isinstance(packed, bytes):
                return at
            known = self._zstd[0]
            content = self._unpack(packed, self._offset + at)
            if content is None:
                reader.not_unpacked(self._zstd[0] != known)
            else:
                reader.unpacked(np.frombuffer(content, np.uint8))

    def _unpack(self, packed: bytes, end: int) -> bytes | None:
        """Return the packets of a packet; None where they cannot be unpacked."""
        if self._reader.is_zstd:
            unpack = _zstd()
            if unpack is None:
                count, first = self._zstd
                self._zstd = count + 1, end - len(packed) if first < 0 else first
                return None
            return unpack(packed)
        from isal import igzip_lib, isal_zlib

        try:
            stream = isal_zlib.decompressobj()
            content: bytes = stream.decompress(packed, MOST_UNPACKED)
        except (igzip_lib.IsalError, zlib.error, ValueError):  # type: ignore[misc]
            return None
        return content if stream.eof else None


def _zstd() -> Callable[[bytes], bytes | None] | None:
    """Return what unpacks zstd, if any library here does."""
    try:
        import zstandard
    except ImportError:
        return None

    def unpack(packed: bytes) -> bytes | None:
        try:
            # What a frame says of its content is allocated at once.
            if zstandard.frame_content_size(packed) > MOST_UNPACKED:
                return None
            return zstandard.ZstdDecompressor().decompress(packed, max_output_size=MOST_UNPACKED)
        except (zstandard.ZstdError, MemoryError):
            return None

    return unpack


def _texts(content: bytes, offsets: Int64) -> list[str]:
    places = offsets.tolist()
    if content.isascii():
        joined = content.decode()
        return [joined[begin:end] for begin, end in pairwise(places)]
    return [content[begin:end].decode("utf-8", "replace") for begin, end in pairwise(places)]
