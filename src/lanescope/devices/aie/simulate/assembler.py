"""Bundles, programs and ELF files of cores, made from the text of listings: what the reader of ELF files is tried on.

It knows the instructions that steer a program and a few besides; an unknown one is an error, never something else.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence

from lanescope.devices.aie.path.program import bundle_formats
from lanescope.devices.aie.path.program.bundle_formats import BundleFormat
from lanescope.devices.aie.path.program.slots import CODES
from lanescope.errors import UsageError

#: What slots hold that do nothing, where that is known.
_NOPS = {
    "aie2": {"lda": 0, "ldb": 0, "st": 0, "alu": 0, "lng": 0, "mv": 0x38, "vec": 0x1E0},
    "aie2p": {},
}
_FLAGS = {"aie2": 2, "aie2p": 3}


def slots_of(family: str, text: str) -> dict[str, int]:
    """Return the contents of the slots of a bundle.

    Args:
        family: of the device: ``aie2`` or ``aie2p``.
        text: instructions, separated by semicolons; ``.lda 0x123`` is the content of a slot.

    Raises:
        UsageError: an instruction is unknown, or two want one slot.
    """
    found: dict[str, int] = {}
    for part in filter(None, (each.strip() for each in text.lower().split(";"))):
        if part == "nop":
            continue
        name, _, rest = part.partition(" ")
        operands = [each.strip() for each in rest.split(",")]
        maker = _MAKERS.get(name)
        if name.startswith("."):
            slot, word = name[1:], int(rest, 0)
        elif maker is not None:
            slot, word = maker(family, name, operands)
        else:
            raise UsageError(f"unknown instruction {part!r}")
        if slot in found:
            raise UsageError(f"two instructions for slot {slot}: {text!r}")
        found[slot] = word
    return found


def formats_for(family: str, contents: Mapping[str, int]) -> list[BundleFormat]:
    """Return the formats that have room for these slots and know how to leave the others empty, shortest first."""
    nops = _NOPS[family]
    return [
        each
        for size in range(2, 17, 2)
        for each in bundle_formats.formats(family, size)
        if contents.keys() <= {name for name, _, _ in each.slots}
        and all(name in contents or name in nops for name, _, _ in each.slots)
    ]


def encode(family: str, contents: Mapping[str, int], form: BundleFormat | None = None) -> bytes:
    """Return a bundle, in the shortest format unless another is given."""
    form = formats_for(family, contents)[0] if form is None else form
    nops = {name: _NOPS[family][name] for name, _, _ in form.slots if name not in contents}
    return form.write({**nops, **contents})


def assemble(family: str, functions: Mapping[str, Sequence[str]]) -> tuple[bytes, str]:
    """Return the ELF file of a program and its listing.

    Args:
        family: of the device: ``aie2`` or ``aie2p``.
        functions: texts of bundles by name of the function; ``{name}`` in a text is its address, ``{name+3}`` that of
            its bundle 3. Functions begin at multiples of 16.
    """
    # Lengths do not depend on addresses.
    at, places, forms = 0, {}, {}
    for name, bundles in functions.items():
        at = at + 15 & ~15
        for number, text in enumerate(bundles):
            form = formats_for(family, slots_of(family, re.sub(r"\{[^}]*\}", "0", text)))[0]
            places[name, number], forms[name, number] = at, form
            at += form.size
    code = bytearray(at)
    lines = [f"core.elf:\tfile format elf32-{family}", "", "Disassembly of section .text:"]
    for name, bundles in functions.items():
        lines += ["", f"{places[name, 0]:08x} <{name}>:"]
        for number, text in enumerate(bundles):
            told = re.sub(r"\{(\w+)(?:\+(\d+))?\}", lambda m: f"{places[m[1], int(m[2] or 0)]:#x}", text)
            address, form = places[name, number], forms[name, number]
            raw = encode(family, slots_of(family, told), form)
            code[address : address + form.size] = raw
            lines.append(f"{address:8x}: {raw.hex(' ')} \t{told}")
    names = {name: places[name, 0] for name in functions}
    return elf(family, [(0, bytes(code))], names), "\n".join(lines) + "\n"


def elf(
    family: str,
    code: Iterable[tuple[int, bytes]],
    functions: Mapping[str, int],
    *,
    entry: int | None = None,
    kind: int = 2,
    machine: int = 264,
    flags: int | None = None,
) -> bytes:
    """Return an ELF file with sections of code and symbols of functions."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in functions)
    symbols = bytearray(16)
    at = 1
    for name, address in functions.items():
        symbols += struct.pack("<IIIBBH", at, address, 0, 0x12, 0, 1)
        at += len(name.encode()) + 1
    parts = [(1, 6, address, content, 0, 0) for address, content in code]
    parts += [(2, 0, 0, bytes(symbols), len(parts) + 2, 16), (3, 0, 0, strings, 0, 0)]
    body = b"".join(content for _, _, _, content, _, _ in parts)
    rows = bytearray(40)
    offset = 52
    for what, attributes, address, content, link, size in parts:
        rows += struct.pack("<10I", 0, what, attributes, address, offset, len(content), link, 0, 1, size)
        offset += len(content)
    begin = min(functions.values(), default=0) if entry is None else entry
    header = b"\x7fELF\x01\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIIIIIHHHHHH",
        kind,
        machine,
        1,
        begin,
        0,
        52 + len(body),
        _FLAGS[family] if flags is None else flags,
        52,
        0,
        0,
        40,
        len(parts) + 1,
        0,
    )
    return header + body + bytes(rows)


# -- instructions

_Made = tuple[str, int]


def _number(operand: str, bits: int) -> int:
    return int(operand.removeprefix("#"), 0) & (1 << bits) - 1


def _register(operand: str) -> int:
    return int(operand[1:])


def _branch(family: str, name: str, operands: Sequence[str]) -> _Made:
    last = operands[-1]
    if last.startswith("p"):
        pointer = _register(last) << 7
        if name == "jnzd":
            code = 0b0011000 if family == "aie2" else 0b1000000
            return "alu", _register(operands[1]) << 15 | _register(operands[0]) << 10 | pointer | code
        if family == "aie2":
            return "alu", pointer | (0b0001000 if name == "j" else 0b0101000)
        return "alu", pointer | (0b100 if name == "j" else 0b110) << 12
    target = _number(last, 20) << 17
    if name in ("j", "jl"):
        return "lng", target | (0b010 if name == "j" else 0b100)
    return "lng", target | _register(operands[0]) << 37 | (name == "jnz") << 16 | 0b110


def _return(family: str, name: str, operands: Sequence[str]) -> _Made:
    return "alu", 0x30 if family == "aie2" else 0b101 << 12


def _done(family: str, name: str, operands: Sequence[str]) -> _Made:
    return "alu", 0x10 if family == "aie2" else 0b001 << 12


def _lock(family: str, name: str, operands: Sequence[str]) -> _Made:
    code = 0b00100 if family == "aie2" else 0b10000
    return "alu", _register(operands[0]) << 15 | 1 << 13 | (name == "acq") << 10 | _register(operands[1]) << 5 | code


def _moved(family: str, name: str) -> int:
    codes = CODES[family]
    special = {known: code for code, known in codes.moved.items()}
    if name in special:
        return special[name]
    return _register(name) << 4 | codes.pointer if name.startswith("p") else _register(name) << 2 | codes.scalar


def _move_long(family: str, name: str, operands: Sequence[str]) -> _Made:
    value = _number(operands[1], 32)
    return "lng", value >> 12 << 22 | _moved(family, operands[0]) << 15 | (value & 0xFFF) << 3 | 0b001


def _move(family: str, name: str, operands: Sequence[str]) -> _Made:
    code = _moved(family, operands[0]) << 15
    if operands[1].startswith("#"):
        if family == "aie2":
            value = _number(operands[1], 10)
            return "mv", code | value >> 1 << 6 | 0b110000 | (value & 1) << 3 | 0b100
        return "mv", code | _number(operands[1], 11) << 4 | 0b0101
    return "mv", code | _moved(family, operands[1]) << 8 | (0b10110010 if family == "aie2" else 0b00000111)


def _add(family: str, name: str, operands: Sequence[str]) -> _Made:
    code = _moved(family, operands[0]) << 15 | _register(operands[1]) << 10
    if family == "aie2":
        value = _number(operands[2], 6)
        return "mv", code | value >> 2 << 6 | 0b110011 | (value & 3) << 2
    return "mv", code | _number(operands[2], 8) << 2


def _load(family: str, name: str, operands: Sequence[str]) -> _Made:
    """A load from the stack."""
    codes, target = CODES[family], operands[0]
    found = re.fullmatch(r"\[sp, #(-\d+)\]", ", ".join(operands[1:]))
    if found is None:
        raise UsageError(f"unknown address of a load: {', '.join(operands[1:])!r}")
    offset = int(found[1]) // 4
    scalar = 0 if family == "aie2" else 0b10
    code = _register(target) << 4 | codes.loaded_pointer if target[0] == "p" else _register(target) << 2 | scalar
    if family == "aie2":
        return "lda", (offset & 0xFFF) << 9 | 1 << 8 | code << 1 | 1
    return "lda", (offset & 0x1FF) << 11 | code << 4 | 0b0010


_MAKERS: dict[str, Callable[[str, str, Sequence[str]], _Made]] = {
    **dict.fromkeys(("j", "jl", "jz", "jnz", "jnzd"), _branch),
    **dict.fromkeys(("acq", "rel"), _lock),
    "ret": _return,
    "done": _done,
    "movxm": _move_long,
    "mov": _move,
    "add.nc": _add,
    "lda": _load,
}
