"""Texts of a few words and a number each, encoded without being made: names of a million lanes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lanescope.trace.column import Encoded

#: In place of a number: nothing follows the words.
NO_NUMBER = -1


def numbered(words: Sequence[str], of: npt.NDArray[np.int32], numbers: npt.NDArray[np.int64]) -> Encoded:
    """Return texts as UTF-8.

    Args:
        words: what texts begin with.
        of: int32 [n], which of them each text begins with.
        numbers: int64 [n], what follows in decimal, at least 0; or ``NO_NUMBER``.

    Returns:
        The texts end to end, uint8, and where each begins, int64 [n + 1].

    Example:
        >>> data, begins = numbered(["SM ", "all"], np.array([0, 1], np.int32), np.array([12, NO_NUMBER]))
        >>> data.tobytes(), begins.tolist()
        (b'SM 12all', [0, 5, 8])
    """
    first = [np.frombuffer(word.encode("utf-8", "replace"), np.uint8) for word in words]
    sizes = np.array([len(word) for word in first], np.int64)
    rest = numbers.astype(np.uint64) * (numbers != NO_NUMBER)
    digits = np.where(numbers == NO_NUMBER, 0, 1).astype(np.int64)
    bound = np.uint64(10)
    while (more := rest >= bound).any():
        digits += more
        if bound >= np.uint64(10**19):
            break
        bound *= np.uint64(10)
    begins = np.zeros(len(of) + 1, np.int64)
    np.cumsum(sizes[of] + digits, out=begins[1:])
    data = np.empty(int(begins[-1]), np.uint8)
    for number, word in enumerate(first):
        at = begins[:-1][of == number]
        for place, byte in enumerate(word.tolist()):
            data[at + place] = byte
    last = begins[1:] - 1
    place = 0
    while (has := np.flatnonzero(digits > place)).size:
        data[last[has] - place] = 48 + rest[has] % np.uint64(10)
        rest //= np.uint64(10)
        place += 1
    return data, begins
