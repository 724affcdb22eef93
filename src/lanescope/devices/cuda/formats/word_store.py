"""The words of a buffer, in memory or in a file: whoever goes through all of them takes piece after piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.source import Reader, SpooledFile

Words = npt.NDArray[np.uint64]

#: Words of a piece: what is held at a time of a buffer that is not in memory.
PIECE_WORDS = 1 << 21


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
        stride: slots between two records of a lane.
        rows: records of a lane, at most.
        parts: the lanes of each part, first and last + 1.

    Raises:
        InputError: the temporary folder's disk has no room.
    """

    def __init__(self, store: WordStore, stride: int, rows: int, parts: Sequence[tuple[int, int]]) -> None:
        self._rows, self._at = rows, {}
        done = 0
        for first, last in parts:
            self._at[first, last] = done
            done += rows * (last - first) * 8
        self._spool = SpooledFile(done)
        for at, words in store.pieces(1, 1 + rows * stride, stride):
            row, table = (at - 1) // stride, words.reshape(-1, stride)
            for (first, last), begin in self._at.items():
                block: npt.NDArray[Any] = np.ascontiguousarray(table[:, first:last])
                self._spool.write(begin + row * (last - first) * 8, block)

    def rows(self, first: int, last: int) -> Words:
        """Return the slots of a part, row after row, uint64 [rows * lanes]."""
        return self._spool.read(self._at[first, last], self._rows * (last - first) * 8).view("<u8")
