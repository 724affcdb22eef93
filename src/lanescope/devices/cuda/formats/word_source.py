"""The words of a buffer: in a file that is an ``.npy`` array or nothing but words, in memory, or lane by lane.

Whoever goes through all words takes piece after piece, so that a large buffer need not be in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.errors import InputError
from lanescope.source import Reader, SpooledFile, npy

Words = npt.NDArray[np.uint64]

#: Types of arrays that hold words: a buffer may have been looked at through any of them.
_TYPES = {"<u8": 8, "<i8": 8, "<u4": 4, "<i4": 4, "|u1": 1, "|i1": 1}
#: Bytes from which the layout is told, as far as that does not take all words.
_BEGINNING = 1 << 20
#: Words of a piece: what is held at a time of a buffer that is not in memory.
PIECE_WORDS = 1 << 21
#: Words of a piece where the search for something ends with the first piece that has it.
SEARCHED_WORDS = 1 << 16


class WordStore:
    """Words, uint64. This one holds them in memory, as one piece.

    Args:
        words: uint64 [n].
    """

    is_in_memory = True

    def __init__(self, words: Words) -> None:
        self._words = words

    def __len__(self) -> int:
        return len(self._words)

    def window(self, first: int, last: int) -> Words:
        """Return the words from ``first`` to before ``last``, or to the end, uint64 [m]."""
        return self._words[first:last]

    def whole(self) -> Words:
        """Return all words, uint64 [n]."""
        return self.window(0, len(self))

    def beginning(self, length: int) -> WordStore:
        """Return the first ``length`` words."""
        return WordStore(self._words[:length])

    def pieces(self, first: int, last: int, unit: int) -> Iterator[tuple[int, Words]]:
        """Yield the words from ``first`` to before ``last`` as pieces of whole ``unit`` words; the last may be cut.

        Yields:
            Where the piece begins, and its words, valid until the next piece is asked for.
        """
        last = min(last, len(self))
        step = last - first if self.is_in_memory else max(1, PIECE_WORDS // unit) * unit
        for at in range(first, last, max(1, step)):
            yield at, self.window(at, min(at + step, last))

    def pieces_from_end(self, first: int) -> Iterator[tuple[int, Words]]:
        """Yield the words from ``first`` on as small pieces, the last one first, to look for what is near the end.

        Yields:
            As ``pieces``.
        """
        step = min(SEARCHED_WORDS, PIECE_WORDS)
        for end in range(len(self), first, -step):
            begin = max(first, end - step)
            yield begin, self.window(begin, end)


class FileStore(WordStore):
    """Words in a file.

    Args:
        reader: the file.
        before: bytes in front of them.
        count: how many.
    """

    is_in_memory = False

    def __init__(self, reader: Reader, before: int, count: int) -> None:
        self._reader, self._before, self._count = reader, before, count

    def __len__(self) -> int:
        return self._count

    def window(self, first: int, last: int) -> Words:
        """Return the words from ``first`` to before ``last``, or to the end, uint64 [m]."""
        count = max(0, min(last, self._count) - first)
        return self._reader.at(self._before + 8 * first, 8 * count).view("<u8")

    def beginning(self, length: int) -> FileStore:
        """Return the first ``length`` words."""
        return FileStore(self._reader, self._before, min(length, self._count))


def store_of(words: Words | WordStore) -> WordStore:
    """Return words as a store, if they are none."""
    return words if isinstance(words, WordStore) else WordStore(words)


class LaneMajorStore:
    """The slots of lanes that take turns, part by part: one pass over the buffer, then each part can be read alone.

    They are kept in an unnamed temporary file.

    Args:
        store: the words of the buffer.
        stride: words between two records of a lane.
        rows: records of a lane, at most; what is missing of the last row reads as zeros.
        parts: the words of each part in a row, first and last + 1.
        first: the first word of the first row.

    Raises:
        InputError: the temporary folder's disk has no room.
    """

    def __init__(
        self, store: WordStore, stride: int, rows: int, parts: Sequence[tuple[int, int]], *, first: int = 1
    ) -> None:
        self._rows, self._at = rows, {}
        done = 0
        for part in parts:
            self._at[part] = done
            done += rows * (part[1] - part[0]) * 8
        self._spool = SpooledFile(done)
        for at, words in store.pieces(first, first + rows * stride, stride):
            row, rest = (at - first) // stride, -len(words) % stride
            table = (np.append(words, np.zeros(rest, np.uint64)) if rest else words).reshape(-1, stride)
            for (begin, end), place in self._at.items():
                block: npt.NDArray[Any] = np.ascontiguousarray(table[:, begin:end])
                self._spool.write(place + row * (end - begin) * 8, block)

    def rows(self, first: int, last: int) -> Words:
        """Return the words of a part, row after row, uint64 [rows * words]."""
        return self._spool.read(self._at[first, last], self._rows * (last - first) * 8).view("<u8")


class FileBytes:
    """Bytes in a file: slices of it are arrays in memory.

    Args:
        reader: the file.
        before: bytes in front of them.
        length: how many.
    """

    def __init__(self, reader: Reader, before: int, length: int) -> None:
        self._reader, self._before, self._length = reader, before, length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice) -> npt.NDArray[np.uint8]:
        first, last, _ = part.indices(self._length)
        return self._reader.at(self._before + first, max(0, last - first))

    def words(self) -> FileStore:
        """Return the 64-bit words."""
        return FileStore(self._reader, self._before, self._length // 8)

    def part(self, first: int, last: int) -> FileBytes:
        """Return the bytes from ``first`` to before ``last``, not read yet."""
        first, last, _ = slice(first, last).indices(self._length)
        return FileBytes(self._reader, self._before + first, max(0, last - first))


@frozen_class
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

    def bytes(self) -> npt.NDArray[np.uint8] | FileBytes:
        """Return the bytes, where they are."""
        if self.reader is not None:
            return FileBytes(self.reader, self.before, self.length)
        return self.words(1)

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
