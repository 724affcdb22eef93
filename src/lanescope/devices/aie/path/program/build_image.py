"""Programs from what a build loads into the array: an xclbin, a PDI, or the configuration data in it (CDO).

Both hold CDOs, lists of register writes. What they write to the program memories of cores is their code, without names
and without the address at which it begins.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import TypeVar

from lanescope.devices.aie.formats import cdo
from lanescope.devices.aie.path.program.core_image import CoreImage
from lanescope.errors import InputError

Tile = tuple[int, int]
_T = TypeVar("_T")

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
    for words in _whole(cdo.lists(content), source):
        count += 1
        for address, word in _writes(words, source):
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


def _whole(of: Iterator[_T], source: str) -> Iterator[_T]:
    try:
        yield from of
    except cdo.TruncatedError:
        raise InputError(f"{source}: truncated configuration data (CDO)", hint=_HINT) from None


def _writes(words: Sequence[int], source: str) -> Iterator[tuple[int, int]]:
    """Yield address and value of the writes of a CDO; masked ones do not load programs."""
    for command in _whole(cdo.commands(words), source):
        if command.mask == 0xFFFFFFFF:
            for index, word in enumerate(command.words):
                yield command.address + 4 * index & 0xFFFFFFFF, word
