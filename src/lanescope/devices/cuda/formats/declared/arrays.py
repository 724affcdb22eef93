"""The arrays of a buffer: one in a plain or ``.npy`` file, several by name in an ``.npz`` file."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class, replace
from lanescope.devices.cuda.formats.declared.declaration import MAIN, Declaration
from lanescope.devices.cuda.formats.word_source import FileBytes, WordSource
from lanescope.errors import InputError
from lanescope.source import npy

Bytes = npt.NDArray[np.uint8]

ZIP_MAGIC = b"PK\x03\x04"
_SUFFIX = ".npy"
#: Bytes of the header of a member that lie before its name.
_MEMBER = 30


@frozen_class
class Arrays:
    """The arrays of a file.

    Attributes:
        data: uint8 [n] by name, in memory or in a file; the main array is ``buffer``.
        at: the first byte of each in the file, or in the array that an ``.npy`` file is.
        cut: bytes that headers promise and that are missing.
        whole: bytes of the main array where ``data`` holds only its beginning.
        envelope: bytes of an archive besides the arrays, and besides those before the main one.
    """

    data: Mapping[str, Bytes | FileBytes]
    at: Mapping[str, int]
    cut: int = 0
    envelope: int = 0
    whole: int | None = None

    @property
    def main(self) -> Bytes | FileBytes:
        """The main array."""
        return self.data[MAIN]

    @property
    def size(self) -> int:
        """Bytes of all arrays."""
        return sum(len(array) for array in self.data.values())

    def in_memory(self) -> Arrays:
        """Return the arrays, those in a file read."""
        read = {name: array[0 : len(array)] for name, array in self.data.items() if isinstance(array, FileBytes)}
        return replace(self, data={**self.data, **read}) if read else self


def is_npz(data: bytes) -> bool:
    """Return whether a file begins like an archive of arrays."""
    return data.startswith(ZIP_MAGIC)


def arrays_of(content: WordSource, declaration: Declaration) -> Arrays:
    """Return the arrays that a declaration names.

    Raises:
        InputError: an array is missing or none of integers, or the archive is damaged.
    """
    whole = content.bytes()
    if content.before == 0 and is_npz(whole[:4].tobytes()):
        return _from_archive(whole, declaration)
    if len(declaration.arrays) > 1:
        names = ", ".join((declaration.main_name, *declaration.arrays[1:]))
        raise InputError(
            f"layout {declaration.name} requires the arrays {names}",
            hint=f"save them in one file: numpy.savez(path, {names.replace(', ', '=..., ')}=...)",
        )
    return Arrays({MAIN: whole}, {MAIN: 0}, content.cut)


class _Seekable(io.RawIOBase):
    """Bytes as a file, for what reads the list of an archive's members.

    Args:
        whole: the bytes.
    """

    def __init__(self, whole: Bytes | FileBytes) -> None:
        super().__init__()
        self._whole, self._at = whole, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a byte and return it."""
        self._at = max(0, offset + (0, self._at, len(self._whole))[whence])
        return self._at

    def tell(self) -> int:
        """Return the byte that is read next."""
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read as many bytes as the buffer has room for."""
        data = self._whole[self._at : self._at + len(buffer)]
        buffer[: len(data)] = data.tobytes()
        self._at += len(data)
        return len(data)


def _part(whole: Bytes | FileBytes, first: int, last: int) -> Bytes | FileBytes:
    """Return some of the bytes, those in a file not read yet."""
    return whole.part(first, last) if isinstance(whole, FileBytes) else whole[first:last]


def _from_archive(whole: Bytes | FileBytes, declaration: Declaration) -> Arrays:
    found: dict[str, Any] = {}
    at: dict[str, int] = {}
    record = declaration.record
    of_records = {MAIN, *(spec.array for spec in (*record.fields, *record.views))}
    try:
        with zipfile.ZipFile(_Seekable(whole)) as archive:
            members = {info.filename.removesuffix(_SUFFIX): info for info in archive.infolist()}
    except (zipfile.BadZipFile, struct.error, ValueError, NotImplementedError) as error:
        raise InputError(f"damaged .npz file: {error}", hint="write it with numpy.savez") from None
    only = next(iter(members)) if len(members) == 1 else None
    for name in declaration.arrays:
        shown = declaration.main_name if name == MAIN else name
        info = members.get(shown) or members.get(name)
        if info is None and only is not None and len(declaration.arrays) == 1:
            info = members[only]
        if info is None:
            there = ", ".join(sorted(members)) or "none"
            raise InputError(
                f"array {shown!r} not found in the .npz file (it has {there})", hint=f"save it as {shown}=..."
            )
        if info.compress_type != zipfile.ZIP_STORED:
            # Compressed archives are unpacked where files are opened, if there is nothing but arrays in them.
            raise InputError("the .npz file holds more than arrays", hint="write it with numpy.savez")
        begin = _content(whole, info)
        array, before = _array(_part(whole, begin, begin + info.file_size), shown, info.file_size)
        # Arrays of what is known of lanes are small.
        found[name] = array if name in of_records else array[0 : len(array)]
        at[name] = begin + before
    used = sum(len(array) for array in found.values())
    return Arrays(found, at, envelope=len(whole) - used - at[MAIN])


def _array(member: Bytes | FileBytes, name: str, promised: int) -> tuple[Bytes | FileBytes, int]:
    """Return the bytes of the array that a member is, and how many bytes are before them."""
    header = npy.parse(member[: npy.MAX_HEADER + 12].tobytes())
    if header is None or len(member) < promised:
        raise InputError(f"array {name!r} is not an .npy array", hint="write the file with numpy.savez")
    if not _is_integer(header.descr):
        raise InputError(
            f"array {name!r} has the type {header.descr!r}: expected little-endian integers of 8 to 64 bits",
            hint=f"save its bytes as integers: numpy.savez(path, {name}={name}.view('<u4'))",
        )
    size = header.count * int(header.descr[2:])
    if header.size + size > len(member):
        raise InputError(f"array {name!r} is shorter than its header promises", hint="copy the complete file")
    return _part(member, header.size, header.size + size), header.size


def _content(whole: Bytes | FileBytes, info: zipfile.ZipInfo) -> int:
    """Return where the content of a stored member begins: after its own header, whose name and extra field vary."""
    head = whole[info.header_offset : info.header_offset + _MEMBER].tobytes()
    if len(head) < _MEMBER:
        raise InputError("damaged .npz file: a member is missing", hint="copy the complete file")
    name, extra = struct.unpack_from("<HH", head, 26)
    begin = int(info.header_offset + _MEMBER + name + extra)
    if begin + info.file_size > len(whole):
        raise InputError("damaged .npz file: a member is missing", hint="copy the complete file")
    return begin


def _is_integer(descr: str) -> bool:
    return len(descr) == 3 and descr[0] in "<|" and descr[1] in "iu" and descr[2] in "1248"
