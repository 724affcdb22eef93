"""What is in a file: an ``.npy`` array of words, or nothing but words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.formats.word_store import FileStore, WordStore
from lanescope.errors import InputError
from lanescope.source import Reader, npy

#: Types of arrays that hold words: a buffer may have been looked at through any of them.
_TYPES = {"<u8": 8, "<i8": 8, "<u4": 4, "<i4": 4, "|u1": 1, "|i1": 1}


#: Bytes from which the layout is told, as far as that does not take all words.
_BEGINNING = 1 << 20


@dataclass(frozen=True, slots=True)
class WordSource:
    """The array in a file.

    Attributes:
        length: bytes of the array.
        before: bytes in front of it.
        behind: bytes behind it.
        cut: bytes that the file's header promises and that are not there.
        data: uint8 [length], the bytes of the array; None where they are in a file.
        reader: that file.
    """

    length: int
    before: int
    behind: int
    cut: int
    data: npt.NDArray[np.uint8] | None
    reader: Reader | None = None

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.before + self.length + self.behind

    def words(self, bytes_each: int) -> npt.NDArray[Any]:
        """Return the whole words, ``<u8`` or ``<u4`` [n]; not copied where they are in memory and aligned."""
        length = self.length // bytes_each * bytes_each
        if self.data is None:
            assert self.reader is not None
            return self.reader.at(self.before, length).view(f"<u{bytes_each}")
        data = self.data[:length]
        if data.ctypes.data % bytes_each:
            data = data.copy()
        return data.view(f"<u{bytes_each}")

    def store(self) -> WordStore:
        """Return the 64-bit words, where they are."""
        if self.reader is not None:
            return FileStore(self.reader, self.before, self.length // 8)
        return WordStore(self.words(8))

    def beginning(self) -> WordSource:
        """Return the first bytes, in memory."""
        length = min(self.length, _BEGINNING)
        data = self.data[:length] if self.reader is None else self.reader.at(self.before, length)  # type: ignore[index]
        return WordSource(length, self.before, 0, 0, data)


def content_of(data: npt.NDArray[np.uint8]) -> WordSource:
    """Find the array of a file.

    Args:
        data: uint8 [n], an ``.npy`` file of integers, or nothing but little-endian words.

    Raises:
        InputError: an ``.npy`` file of another type.
    """
    begin, length, cut = _extent(data[: npy.MAX_HEADER + 12].tobytes(), len(data))
    return WordSource(length, begin, len(data) - begin - length, cut, data[begin : begin + length])


def content_in(reader: Reader, size: int) -> WordSource:
    """Find the array of a file that is too large to be read whole.

    Args:
        reader: the file.
        size: its bytes.

    Raises:
        InputError: an ``.npy`` file of another type, or reading fails.
    """
    begin, length, cut = _extent(reader.at(0, min(size, npy.MAX_HEADER + 12)).tobytes(), size)
    return WordSource(length, begin, size - begin - length, cut, None, reader)


def _extent(head: bytes, size: int) -> tuple[int, int, int]:
    """Return where the array begins, its bytes that are there, and those that are not."""
    header = npy.parse(head)
    if header is None:
        return 0, size, 0
    if header.descr not in _TYPES:
        raise InputError(
            f"unsupported .npy type {header.descr!r}: expected '<u8'",
            hint="save the unsigned 64-bit words: numpy.save(path, buffer.view('<u8'))",
        )
    promised = header.count * _TYPES[header.descr]
    length = min(promised, size - header.size)
    return header.size, length, promised - length
