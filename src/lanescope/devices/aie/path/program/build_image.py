"""Programs from what a build loads into the array: an xclbin, a PDI, or the configuration data in it (CDO).

Both hold CDOs: lists of register writes, found by their magic and checksum. What they write to the program memories of
cores is their code, without names and without the address at which it begins. Source: Xilinx/aie-rt; checked on files
that compilers wrote.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from lanescope.devices.aie.path.program.core_image import CoreImage
from lanescope.errors import InputError

Tile = tuple[int, int]

_CDO_MAGIC = b"CDO\0"
_HEADER_WORDS, _VERSION = 5, 0x200
_CHECKED_WORDS = 4
#: Payload words of a command that are told by the word behind it.
_LONG = 255
_WRITE, _DMA_WRITE, _WRITE_64 = 0x103, 0x105, 0x108
#: Program memory of a core tile, bytes from its begin; the first row of cores.
_PROGRAM_BEGIN, _PROGRAM_END = 0x20000, 0x24000
_FIRST_CORE_ROW = 2
_HINT = "pass the xclbin or PDI of the build that ran"


def images(content: bytes, source: str) -> dict[Tile, CoreImage]:
    """Return the program memories that a build loads, by column and row of the design.

    Args:
        content: of an xclbin, PDI or CDO.
        source: its name, for messages.

    Raises:
        InputError: it holds no programs, is cut, or loads two programs into one core.
    """
    memories: dict[Tile, dict[int, int]] = {}
    count = 0
    for commands in _cdos(content):
        count += 1
        if commands is None:
            raise InputError(f"{source}: truncated configuration data (CDO)", hint=_HINT)
        for address, word in _writes(commands, source):
            offset, tile = address & 0xFFFFF, (address >> 25, address >> 20 & 31)
            if not _PROGRAM_BEGIN <= offset < _PROGRAM_END or tile[1] < _FIRST_CORE_ROW:
                continue
            memory = memories.setdefault(tile, {})
            if memory.setdefault(offset - _PROGRAM_BEGIN, word) != word:
                where = f"{tile[0]},{tile[1]}"
                what = f"{source}: two programs for core {where}: the file holds several designs"
                raise InputError(what, hint="pass the PDI of the design that ran, or the core's ELF file with --elf")
    if not memories:
        what = f"none of the {count} CDOs loads a program" if count else "no configuration data (CDO) found"
        raise InputError(f"{source}: {what}", hint=_HINT)
    found = {}
    for tile, memory in sorted(memories.items()):
        code = tuple(_stretches(memory))
        found[tile] = CoreImage(f"{source}, core {tile[0]},{tile[1]}", None, code, (code[0][0],))
    return found


def _stretches(memory: dict[int, int]) -> Iterator[tuple[int, bytes]]:
    """Yield address and bytes of what was written without holes."""
    words = bytearray()
    begin = 0
    for offset, word in sorted(memory.items()):
        if words and offset != begin + len(words):
            yield begin, bytes(words)
            words.clear()
        if not words:
            begin = offset
        words += struct.pack("<I", word)
    yield begin, bytes(words)


def _cdos(content: bytes) -> Iterator[Sequence[int] | None]:
    """Yield the words behind the header of each CDO; None for one that the file ends in."""
    at = content.find(_CDO_MAGIC)
    while at >= 0:
        begin = at - 4
        at = content.find(_CDO_MAGIC, at + 1)
        if begin < 0 or begin % 4 or begin + 4 * _HEADER_WORDS > len(content):
            continue
        header = struct.unpack_from(f"<{_HEADER_WORDS}I", content, begin)
        checksum = ~sum(header[:_CHECKED_WORDS]) & 0xFFFFFFFF
        if header[0] == _CHECKED_WORDS and header[2] == _VERSION and header[4] == checksum:
            first = begin + 4 * _HEADER_WORDS
            is_whole = first + 4 * header[3] <= len(content)
            yield struct.unpack_from(f"<{header[3]}I", content, first) if is_whole else None


def _writes(words: Sequence[int], source: str) -> Iterator[tuple[int, int]]:
    """Yield address and value of the writes of a CDO; masked ones do not load programs."""
    at = 0
    while at < len(words):
        code, size = words[at] & 0xFFFF, words[at] >> 16 & 0xFF
        at += 1
        if size == _LONG and at < len(words):
            size = words[at]
            at += 1
        payload = words[at : at + size]
        if len(payload) < size:
            raise InputError(f"{source}: truncated configuration data (CDO)", hint=_HINT)
        at += size
        if code == _WRITE and size >= 2:
            yield payload[0], payload[1]
        elif code == _WRITE_64 and size >= 3:
            yield payload[1], payload[2]
        elif code == _DMA_WRITE:
            for index, word in enumerate(payload[2:]):
                yield payload[1] + 4 * index & 0xFFFFFFFF, word
