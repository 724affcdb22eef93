"""Functions and source lines of an ELF file, by pyelftools (the extra ``elf``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lanescope.devices.aie.path.program.symbols import Function
from lanescope.errors import InputError, MissingDependencyError, os_reason


def read(path: Path) -> tuple[list[Function], dict[int, tuple[str, int]]]:
    """Read symbols and debug information.

    Returns:
        Functions by address, and (file, line) by address: for each row of the line table, where a line's code begins.

    Raises:
        InputError: it is not there, or no ELF file.
        MissingDependencyError: pyelftools is not installed.
    """
    try:
        from elftools.common.exceptions import DWARFError, ELFError
        from elftools.elf.elffile import ELFFile
    except ImportError:
        raise MissingDependencyError("--elf requires pyelftools", hint="run pip install 'lanescope[elf]'") from None
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            functions = [
                Function(name, address, address + size if size else 1 << 62)
                for name, address, size in sorted(_symbols(elf), key=lambda row: (row[1], row[0]))
            ]
            return functions, dict(_lines(elf))
    except OSError as error:
        raise InputError(
            f"cannot open {str(path)!r}: {os_reason(error)}", hint="check the path of the ELF file"
        ) from None
    except (
        ELFError,
        DWARFError,
        ValueError,
        LookupError,
        AttributeError,
        AssertionError,
        TypeError,
        ArithmeticError,
        MemoryError,
        RecursionError,
        NotImplementedError,
    ) as error:
        # The reader trusts its input; what it stumbles over is as broken as what it refuses.
        raise InputError(
            f"{path}: invalid ELF file: {error}", hint="pass an ELF file of the program or remove --elf"
        ) from None


def _symbols(elf: Any) -> list[tuple[str, int, int]]:
    table = elf.get_section_by_name(".symtab")
    if table is None:
        return []
    return [
        (symbol.name, symbol["st_value"], symbol["st_size"])
        for symbol in table.iter_symbols()
        if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_shndx"] != "SHN_UNDEF"
    ]


def _lines(elf: Any) -> list[tuple[int, tuple[str, int]]]:
    if not elf.has_dwarf_info():
        return []
    dwarf = elf.get_dwarf_info()
    found = []
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        files, first = program["file_entry"], 0 if program.header.version >= 5 else 1
        for entry in program.get_entries():
            state = entry.state
            if state is None or state.end_sequence or not 0 <= state.file - first < len(files):
                continue
            file = files[state.file - first]
            found.append((state.address, (_path(program, file), state.line)))
    return sorted(found)


def _path(program: Any, file: Any) -> str:
    name = file.name.decode(errors="replace")
    folders = program["include_directory"]
    place = file.dir_index - (0 if program.header.version >= 5 else 1)
    if name.startswith("/") or not 0 <= place < len(folders):
        return str(name)
    return f"{folders[place].decode(errors='replace')}/{name}"
