"""What is in a file: an ``.npy`` array of words, or nothing but words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda import npy
from lanescope.errors import InputError

#: Types of arrays that hold words: a buffer may have been looked at through any of them.
_TYPES = {"<u8": 8, "<i8": 8, "<u4": 4, "<i4": 4, "|u1": 1, "|i1": 1}


@dataclass(frozen=True, slots=True)
class Content:
    """The array in a file.

    Attributes:
        data: uint8 [n], the bytes of the array.
        before: bytes in front of it.
        behind: bytes behind it.
        cut: bytes that the file's header promises and that are not there.
    """

    data: npt.NDArray[np.uint8]
    before: int
    behind: int
    cut: int

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.before + len(self.data) + self.behind

    def words(self, bytes_each: int) -> npt.NDArray[Any]:
        """Return the whole words, ``<u8`` or ``<u4`` [n]; they are not copied, unless they are not aligned."""
        data = self.data[: len(self.data) // bytes_each * bytes_each]
        if data.ctypes.data % bytes_each:
            data = data.copy()
        return data.view(f"<u{bytes_each}")


def content_of(data: npt.NDArray[np.uint8]) -> Content:
    """Find the array of a file.

    Args:
        data: uint8 [n], an ``.npy`` file of integers, or nothing but little-endian words.

    Raises:
        InputError: an ``.npy`` file of another type.
    """
    header = npy.parse(data[: npy.MAX_HEADER + 12].tobytes())
    if header is None:
        return Content(data, 0, 0, 0)
    if header.descr not in _TYPES:
        raise InputError(
            f"the .npy file holds {header.descr!r}, a probe buffer is '<u8'",
            hint="save it as it is on the device: numpy.save(path, buffer.view('<u8'))",
        )
    promised = header.count * _TYPES[header.descr]
    length = min(promised, len(data) - header.size)
    return Content(
        data[header.size : header.size + length], header.size, len(data) - header.size - length, promised - length
    )
