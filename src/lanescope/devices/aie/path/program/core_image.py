"""The program memory of a core: bytes, where a walk through them begins, and names; from a core's ELF file.

The reader takes nothing for granted: a file that is cut or lies about its sizes is refused in one line.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from itertools import pairwise

from lanescope.devices.aie.path.program.symbols import Function
from lanescope.errors import InputError

ELF_MAGIC = b"\x7fELF"
_MACHINE = 264
_FAMILIES = {2: "aie2", 3: "aie2p"}
_RELOCATABLE = 1
_CODE_SECTION, _SYMBOL_TABLE = 1, 2
_EXECUTABLE, _EXECUTABLE_SEGMENT, _LOADED = 4, 1, 1
_FUNCTION = 2
#: Code that is read; program memory holds 16 KiB.
_MOST_CODE = 1 << 16
_UNKNOWN_END = 1 << 62
#: Entries of tables that are read.
_MOST_ENTRIES = 1 << 16
_CUT = "pass the complete ELF file of the core"
_BUILD_HINT = "pass the core's ELF file of the build that ran, e.g. main_core_0_2.elf"


@dataclass(frozen=True, slots=True)
class CoreImage:
    """What a program memory holds.

    Attributes:
        source: name of the file, and of the core in it.
        family: of the device (``aie2``, ``aie2p``); None: the file does not tell.
        code: stretches of code by address, disjoint.
        entries: addresses at which the program begins, or functions do.
        functions: by address.
    """

    source: str
    family: str | None
    code: tuple[tuple[int, bytes], ...]
    entries: tuple[int, ...] = ()
    functions: tuple[Function, ...] = field(default=())

    def at(self, address: int, size: int = 16) -> bytes:
        """Return bytes from an address on, as many as there are up to ``size``; none outside of the code."""
        for first, content in self.code:
            if first <= address < first + len(content):
                return content[address - first : address - first + size]
        return b""


def from_elf(content: bytes, source: str) -> CoreImage:
    """Read the ELF file of a core.

    Args:
        content: of the file.
        source: its name, for messages.

    Raises:
        InputError: it is not the linked ELF file of an AIE2 or AIE2P core, or is cut.
    """
    if content[4:6] != b"\x01\x01" or len(content) < 52:
        raise InputError(f"{source}: ELF file is not of an AI Engine core: not 32-bit little-endian", hint=_BUILD_HINT)
    kind, machine = struct.unpack_from("<HH", content, 16)
    entry, segments_at, sections_at, flags = struct.unpack_from("<4I", content, 24)
    if machine != _MACHINE:
        raise InputError(f"{source}: ELF file is not of an AI Engine core: machine {machine}", hint=_BUILD_HINT)
    if kind == _RELOCATABLE:
        what = "object file is not linked: targets of its branches are unknown"
        raise InputError(f"{source}: {what}", hint="pass the linked ELF file of the core")
    family = _FAMILIES.get(flags)
    if family is None:
        what = "AIE1, whose instructions differ" if flags == 1 else f"an unknown device family: flags {flags:#x}"
        raise InputError(f"{source}: ELF file is of {what}", hint="use the ELF file of an AIE2 or AIE2P core")
    try:
        code, functions = _sections(content, sections_at)
        if not code:
            code = _segments(content, segments_at)
    except struct.error:
        raise InputError(f"{source}: ELF file is truncated: a table is after its end", hint=_CUT) from None
    code = [(address, part) for address, part in sorted(code) if part]
    if not code:
        raise InputError(f"{source}: ELF file has no code", hint=_BUILD_HINT)
    if sum(len(part) for _, part in code) > _MOST_CODE:
        raise InputError(f"{source}: ELF file has more code than a core's program memory", hint=_BUILD_HINT)
    for (address, part), (after, _) in pairwise(code):
        if address + len(part) > after:
            raise InputError(f"{source}: ELF file has two sections of code at {after:#x}", hint=_CUT)
    functions = [each for each in functions if _holds(code, each.address)]
    entries = {entry, *(each.address for each in functions)} if _holds(code, entry) else {f.address for f in functions}
    return CoreImage(source, family, tuple(code), tuple(sorted(entries or {code[0][0]})), tuple(functions))


def _holds(code: list[tuple[int, bytes]], address: int) -> bool:
    return any(first <= address < first + len(part) for first, part in code)


def _part(content: bytes, offset: int, size: int) -> bytes:
    """Return a part of the file.

    Raises:
        struct.error: it goes on behind the end.
    """
    if offset + size > len(content):
        raise struct.error
    return content[offset : offset + size]


def _sections(content: bytes, table: int) -> tuple[list[tuple[int, bytes]], list[Function]]:
    size, count = struct.unpack_from("<HH", content, 46)
    if not table or not count:
        return [], []
    rows = [struct.unpack_from("<10I", content, table + size * index) for index in range(count)]
    code, functions = [], []
    total = 0
    for _, kind, flags, address, offset, length, link, _, _, entry in rows:
        if kind == _CODE_SECTION and flags & _EXECUTABLE:
            total += length
            # Sections that lie in each other would be read again and again.
            code.append((address, _part(content, offset, length) if total <= 2 * _MOST_CODE else b""))
        elif kind == _SYMBOL_TABLE and entry >= 16 and link < len(rows) and length // entry <= _MOST_ENTRIES:
            names = rows[link][4]
            functions += _functions(_part(content, offset, length), entry, content, names)
    # Of several names of an address, that of a function with a size comes first.
    return code, sorted(functions, key=lambda each: (each.address, each.end == _UNKNOWN_END, each.name))


def _functions(table: bytes, entry: int, content: bytes, names: int) -> list[Function]:
    found = []
    for at in range(0, len(table) - 15, entry):
        name_at, address, size, info, _, section = struct.unpack_from("<IIIBBH", table, at)
        if info & 15 == _FUNCTION and section:
            begin = names + name_at
            name = content[begin : begin + 512].partition(b"\0")[0].decode(errors="replace")
            found.append(Function(name, address, address + size if size else _UNKNOWN_END))
    return found


def _segments(content: bytes, table: int) -> list[tuple[int, bytes]]:
    size, count = struct.unpack_from("<HH", content, 42)
    found = []
    for index in range(count if table else 0):
        kind, offset, address, _, length, _, flags, _ = struct.unpack_from("<8I", content, table + size * index)
        if kind == _LOADED and flags & _EXECUTABLE_SEGMENT:
            found.append((address, _part(content, offset, length)))
    return found
