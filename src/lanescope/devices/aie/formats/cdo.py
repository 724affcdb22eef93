"""Configuration data objects (CDO): lists of register writes that a build loads, in an xclbin, in a PDI, or alone.

They are found by their magic and checksum. Source: Xilinx/aie-rt; checked on files that compilers wrote.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

XCLBIN_MAGIC = b"xclbin2"
_MAGIC = b"CDO\0"
_HEADER_WORDS, _VERSION = 5, 0x200
_CHECKED_WORDS = 4
#: Payload words of a command that are told by the word behind it.
_LONG = 255
_MASK_WRITE, _WRITE, _DMA_WRITE, _MASK_WRITE_64, _WRITE_64 = 0x102, 0x103, 0x105, 0x107, 0x108
_NOTHING = 0x111
_ALL_BITS = 0xFFFFFFFF


class TruncatedError(ValueError):
    """A list of commands that its file ends in."""


class Written(NamedTuple):
    """What a command writes: words from an address on, each in the bits of a mask. Without words it writes nothing."""

    what: str
    address: int
    words: Sequence[int]
    mask: int = _ALL_BITS


def lists(content: bytes) -> Iterator[Sequence[int]]:
    """Yield the words of commands of each object.

    Raises:
        TruncatedError: the file ends in one.
    """
    at = content.find(_MAGIC)
    while at >= 0:
        begin = at - 4
        at = content.find(_MAGIC, at + 1)
        if begin < 0 or begin % 4 or begin + 4 * _HEADER_WORDS > len(content):
            continue
        header = struct.unpack_from(f"<{_HEADER_WORDS}I", content, begin)
        checksum = ~sum(header[:_CHECKED_WORDS]) & _ALL_BITS
        if header[0] == _CHECKED_WORDS and header[2] == _VERSION and header[4] == checksum:
            first = begin + 4 * _HEADER_WORDS
            if first + 4 * header[3] > len(content):
                raise TruncatedError
            yield struct.unpack_from(f"<{header[3]}I", content, first)


def commands(words: Sequence[int]) -> Iterator[Written]:
    """Yield what each command of an object writes.

    Raises:
        TruncatedError: the last one goes on behind the end.
    """
    at = 0
    while at < len(words):
        code, size = words[at] & 0xFFFF, words[at] >> 16 & 0xFF
        at += 1
        if size == _LONG and at < len(words):
            size = words[at]
            at += 1
        payload = words[at : at + size]
        if len(payload) < size:
            raise TruncatedError
        at += size
        if code == _WRITE and size >= 2:
            yield Written("register writes", payload[0], payload[1:2])
        elif code == _WRITE_64 and size >= 3:
            yield Written("register writes", payload[1], payload[2:3])
        elif code == _MASK_WRITE and size >= 3:
            yield Written("masked register writes", payload[0], payload[2:3], payload[1])
        elif code == _MASK_WRITE_64 and size >= 4:
            yield Written("masked register writes", payload[1], payload[3:4], payload[2])
        elif code == _DMA_WRITE and size >= 2:
            yield Written("data writes", payload[1], payload[2:])
        elif code != _NOTHING:
            yield Written("other commands", 0, ())


def written(writes: Iterable[tuple[int, int]]) -> bytes:
    """Return an object that makes register writes: address and value of each, in the form that compilers use."""
    words = [word for address, value in writes for word in (_WRITE_64 | 3 << 16, 0, address, value)]
    header = (_CHECKED_WORDS, int.from_bytes(_MAGIC, "little"), _VERSION, len(words))
    return struct.pack(f"<{_HEADER_WORDS + len(words)}I", *header, ~sum(header) & _ALL_BITS, *words)
