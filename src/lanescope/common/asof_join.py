"""As-of joins: the last record before, or the first after, another record of the same key.

Records of all tables share one order, their ``seq``. Groups are one sort of integers that hold key and position; a join
goes through both sides in their order once and counts by key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.declaration import frozen_class

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

_WORD = 63


def pick(values: npt.NDArray[Any], rows: Int64, default: int = 0) -> npt.NDArray[Any]:
    """Return the values at ``rows``, and ``default`` where the row is -1, [len(rows)]."""
    found = np.full(len(rows), default, values.dtype)
    known = rows >= 0
    found[known] = values[rows[known]]
    return found


@frozen_class
class Groups:
    """Rows sorted by key, then by ``seq``, then as given.

    Attributes:
        order: int64 [n], the rows in that order.
        first: bool [n], in that order: True where a key begins.
    """

    order: Int64
    first: Mask

    @property
    def start(self) -> Int64:
        """int64 [n], in that order: where the group of each row begins."""
        return np.maximum.accumulate(np.where(self.first, np.arange(len(self.first)), 0))


def group(keys: Sequence[npt.NDArray[Any]], seq: Int64) -> Groups:
    """Sort rows by key and time.

    Args:
        keys: integer columns [n] that together are the key.
        seq: int64 [n], position in the stream; ties keep the order of the rows.

    Complexity:
        One sort of n 64-bit integers; a second one when the keys are too wide to be packed with the position.
    """
    count = len(seq)
    if not count:
        return Groups(np.empty(0, np.int64), np.empty(0, np.bool_))
    by_seq = None if count == 1 or bool((seq[1:] >= seq[:-1]).all()) else np.argsort(seq, kind="stable")
    width = max(1, (count - 1).bit_length())
    code = _codes(keys, _WORD - width)
    packed = (code if by_seq is None else code[by_seq]) << width
    packed |= np.arange(count)
    packed.sort()
    order = packed & ((1 << width) - 1)
    packed >>= width
    first = np.empty(count, np.bool_)
    first[0] = True
    np.not_equal(packed[1:], packed[:-1], out=first[1:])
    return Groups(order if by_seq is None else by_seq[order], first)


def _codes(keys: Sequence[npt.NDArray[Any]], room: int) -> Int64:
    """Return numbers of at most ``room`` bits, int64 [n], equal where all keys are equal."""
    narrow = [_drop_common_bits(column) for column in keys]
    widths = [int(column.max()).bit_length() for column in narrow]
    while sum(widths) > room:
        # Handles lie close together as a rule; where they do not, the widest column is replaced by ranks.
        widest = widths.index(max(widths))
        ranked = np.unique(narrow[widest], return_inverse=True)[1]
        if int(ranked.max()).bit_length() == widths[widest]:
            together = np.unique(np.stack(narrow), axis=1, return_inverse=True)[1]
            return together.reshape(-1).astype(np.int64)
        narrow[widest], widths[widest] = ranked.astype(np.int64), int(ranked.max()).bit_length()
    code = narrow[0].astype(np.int64)
    for column, width in zip(narrow[1:], widths[1:], strict=True):
        code <<= width
        code |= column.astype(np.int64)
    return code


def _drop_common_bits(column: npt.NDArray[Any]) -> UInt64:
    """Return the column without what all values share: an offset, and zero bits at the end."""
    least = column.min()
    is_unsigned = column.dtype == np.uint64
    moved: UInt64 = column - least if is_unsigned else (column.astype(np.int64) - np.int64(least)).view(np.uint64)
    used = int(np.bitwise_or.reduce(moved))
    zeros = (used & -used).bit_length() - 1 if used else 0
    return moved >> np.uint64(zeros)


@frozen_class
class Join:
    """For each left row, its place among the right rows of the same key.

    Attributes:
        rows: int64 [right], the right rows, those of a key together, sorted by time.
        at: int64 [left], the place in ``rows`` behind those of its key that come before the left row.
        low: int64 [left], where the right rows of its key begin in ``rows``.
        high: int64 [left], where they end; all three are 0 where no right row has the key.
    """

    rows: Int64
    at: Int64
    low: Int64
    high: Int64

    def last_before(self) -> Int64:
        """Return the last right row before each left row, int64 [left], -1 where there is none."""
        return self._pick(self.at - 1, self.at > self.low)

    def first_after(self, skip: Int64 | int = 0) -> Int64:
        """Return the right row after each left row and ``skip`` others, int64 [left], -1 where there is none."""
        place = self.at + skip
        return self._pick(place, place < self.high)

    def nearest(self) -> Int64:
        """Return the last right row before each left row, else the first after it, -1 where the key has none."""
        return self._pick(np.maximum(self.at - 1, self.low), self.high > self.low)

    def _pick(self, place: Int64, known: Mask) -> Int64:
        found = np.full(len(place), -1, np.int64)
        found[known] = self.rows[place[known]]
        return found


def join(
    left: Sequence[npt.NDArray[Any]],
    left_seq: Int64,
    right: Sequence[npt.NDArray[Any]],
    right_seq: Int64,
    *,
    strict: bool = True,
) -> Join:
    """Join rows of equal keys by their order in the stream.

    Args:
        left: key columns [left].
        left_seq: int64 [left].
        right: key columns [right], of the same types.
        right_seq: int64 [right].
        strict: whether a right row of the same ``seq`` comes after the left row; else it comes before it.
    """
    lefts, rights = len(left_seq), len(right_seq)
    if not rights or not lefts:
        nothing = np.zeros(lefts, np.int64)
        rows = group(right, right_seq).order if rights else np.empty(0, np.int64)
        return Join(rows, nothing, nothing, nothing)
    rows = np.empty(rights, np.int64)
    at, low, high = (np.empty(lefts, np.int64) for _ in range(3))
    keys = ([np.ascontiguousarray(column) for column in side] for side in (left, right))
    sequences = (np.ascontiguousarray(seq, np.int64) for seq in (left_seq, right_seq))
    (of_left, of_right), (left_order, right_order) = keys, sequences
    core.asof_join(of_left, left_order, of_right, right_order, strict, rows, at, low, high)
    return Join(rows, at, low, high)
