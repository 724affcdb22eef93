"""Columns as bytes: variable-length integers, deflated one by one so that their sizes add up."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_Array = npt.NDArray[np.int64] | npt.NDArray[np.uint64]

#: Effort of deflate; large columns get less of it.
_LEVEL, _FAST_LEVEL, _LARGE = 9, 6, 1 << 22
#: Numbers are encoded so many at a time, as each needs up to ten times its size in between.
_AT_ONCE = 1 << 20


def varints(values: _Array) -> bytes:
    """Return unsigned numbers as LEB128: 7 bits a byte, the lowest first, the top bit set on all but the last.

    Args:
        values: uint64 [n], or int64 without negative ones.

    Complexity:
        O(n) times the bytes of the largest.
    """
    numbers = np.ascontiguousarray(values).view(np.uint64)
    return b"".join(_encoded(numbers[at : at + _AT_ONCE]) for at in range(0, len(numbers), _AT_ONCE))


def _encoded(numbers: npt.NDArray[np.uint64]) -> bytes:
    most = int(numbers.max())
    if most < 128:
        return numbers.astype(np.uint8).tobytes()
    size = np.ones(len(numbers), np.int64)
    for shift in range(7, most.bit_length(), 7):
        size += numbers >= np.uint64(1 << shift)
    at = np.cumsum(size) - size
    out = np.empty(int(size.sum()), np.uint8)
    for byte in range(int(size.max())):
        rows = np.flatnonzero(size > byte)
        part = (numbers[rows] >> np.uint64(7 * byte)).astype(np.uint8) & 127
        out[at[rows] + byte] = part | ((size[rows] > byte + 1).astype(np.uint8) << 7)
    return out.tobytes()


def zigzag(values: Ints) -> npt.NDArray[np.uint64]:
    """Return signed numbers as unsigned ones, the small ones small: 0, -1, 1, -2 become 0, 1, 2, 3."""
    values = np.ascontiguousarray(values, np.int64)
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def deltas(values: Ints) -> Ints:
    """Return the differences of neighbours; the first is the first value."""
    return np.diff(values, prepend=np.int64(0))


def scale_of(*columns: Ints) -> int:
    """Return the greatest common divisor of all values, 1 at least."""
    found = 0
    for column in columns:
        for at in range(0, len(column), _AT_ONCE):
            found = int(np.gcd(found, np.gcd.reduce(column[at : at + _AT_ONCE])))
            if found == 1:
                return 1
    return found or 1


class Column:
    """One column, encoded and deflated.

    Args:
        name: its name.
        kind: ``u`` unsigned LEB128, ``z`` zigzag LEB128, ``f`` float64 little endian.
        values: [n], numbers of that kind.

    Attributes:
        count: number of values; ``size``: bytes; ``deflated``: a piece of a raw deflate stream, which needs nothing of
            what is before it and is not its last.
    """

    def __init__(self, name: str, kind: str, values: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> None:
        self.name, self.kind, self.count = name, kind, len(values)
        if kind == "f":
            data = values.astype("<f8").tobytes()
        else:
            data = varints(zigzag(values.astype(np.int64)) if kind == "z" else values.astype(np.int64, copy=False))
        self.size = len(data)
        stream = zlib.compressobj(_FAST_LEVEL if len(data) > _LARGE else _LEVEL, zlib.DEFLATED, -15)
        self.deflated = stream.compress(data) + stream.flush(zlib.Z_FULL_FLUSH) if data else b""


class Columns:
    """Columns of a report, one behind the other."""

    def __init__(self) -> None:
        self._columns: list[Column] = []

    def add(self, columns: list[Column]) -> None:
        """Add some."""
        self._columns += columns

    @property
    def size(self) -> int:
        """Bytes of all of them in the file: deflated and in base64."""
        return in_base64(sum(len(column.deflated) for column in self._columns) + 2)

    def directory(self) -> dict[str, list[int | str]]:
        """Return where each column is: offset, bytes, number of values, kind."""
        found: dict[str, list[int | str]] = {}
        at = 0
        for column in self._columns:
            found[column.name] = [at, column.size, column.count, column.kind]
            at += column.size
        return found

    def pieces(self) -> Iterator[bytes]:
        """Yield the deflate stream."""
        for column in self._columns:
            yield column.deflated
        yield zlib.compressobj(_LEVEL, zlib.DEFLATED, -15).flush()


def in_base64(size: int) -> int:
    """Return how many characters so many bytes are."""
    return (size + 2) // 3 * 4


def deflated(data: bytes) -> bytes:
    """Return bytes as a raw deflate stream."""
    stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, -15)
    return stream.compress(data) + stream.flush()
