"""Joins by keys that should be unique on both sides; ambiguous rows are excluded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.declaration import frozen_class

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@frozen_class
class Keys:
    """The keys of the rows of one side.

    Attributes:
        values: int64 [n], the key of each row.
        order: int64 [n], the rows by key, rows of one key in their order.
        is_shared: bool [n], in that order, whether another row has the same key.
    """

    values: Int64
    order: Int64

    is_shared: Mask

    @classmethod
    def of(cls, values: Int64) -> Keys:
        """Sort keys; those that rise strictly need no sort."""
        if bool((values[1:] > values[:-1]).all()):
            return cls(values, np.arange(len(values)), np.zeros(len(values), np.bool_))
        order = np.argsort(values, kind="stable")
        in_order = values[order]
        same = in_order[1:] == in_order[:-1]
        shared = np.zeros(len(values), np.bool_)
        shared[1:] = same
        shared[:-1] |= same
        return cls(values, order, shared)

    @cached_property
    def unique_rows(self) -> Int64:
        """The rows that share their key with no other, by key, int64 [unique rows]."""
        return self.order[~self.is_shared] if self.is_shared.any() else self.order

    @cached_property
    def ambiguous_rows(self) -> Int64:
        """The rows that share their key with another, int64, rising."""
        return np.sort(self.order[self.is_shared])

    @property
    def ambiguous_keys(self) -> Int64:
        """The keys that several rows have, int64, rising."""
        return distinct(self.values[self.ambiguous_rows])


def first_equal(columns: Sequence[npt.NDArray[Any]]) -> Int64:
    """Return the first row that equals each row in every column, int64 [n]: the row itself where none does before it.

    Args:
        columns: at least one, [n] each.
    """
    order = np.lexsort(columns)
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = np.logical_or.reduce([column[order][1:] != column[order][:-1] for column in columns])
    found = np.empty(len(order), np.int64)
    # The sort is stable: the first row of those that are equal is the first of them all.
    found[order] = order[np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))]
    return found


def duplicates(columns: Sequence[npt.NDArray[Any]]) -> Int64:
    """Return the rows that equal an earlier row in every column, int64, rising; arguments as ``first_equal``."""
    return np.flatnonzero(first_equal(columns) != np.arange(len(columns[0])))


@frozen_class
class Match:
    """Rows of two sides, joined.

    Attributes:
        partner: int64 [left rows], the row of the right side with the same key, -1: none, or ambiguous.
        left_only: int64, rows of the left side whose key the right side does not have, rising.
        right_only: int64, rows of the right side whose key the left side does not have, rising.
    """

    partner: Int64
    left_only: Int64
    right_only: Int64


def match_unique(left: Keys, right: Keys) -> Match:
    """Join rows whose key is unique on both sides.

    Rows of a key that is ambiguous on either side have no partner, and belong to somebody: they are on neither side
    only.

    Example:
        >>> match = match_unique(Keys.of(np.array([5, 7, 8, 8])), Keys.of(np.array([9, 7, 8])))
        >>> match.partner.tolist(), match.left_only.tolist(), match.right_only.tolist()
        ([-1, 1, -1, -1], [0], [0])
    """
    partner = np.full(len(left.values), -1, np.int64)
    mine, theirs = left.unique_rows, right.unique_rows
    my_keys, their_keys = left.values[mine], right.values[theirs]
    if np.array_equal(my_keys, their_keys):
        partner[mine] = theirs
        none = np.empty(0, np.int64)
        return Match(partner, none, none)
    if len(theirs):
        at = np.minimum(np.searchsorted(their_keys, my_keys), len(theirs) - 1)
        hit = their_keys[at] == my_keys
        partner[mine[hit]] = theirs[at[hit]]
    is_left = np.zeros(len(right.values), np.bool_)
    is_left[theirs] = True
    is_left[partner[partner >= 0]] = False
    return Match(
        partner,
        _without(left.values, np.sort(mine[partner[mine] < 0]), right.ambiguous_keys),
        _without(right.values, np.flatnonzero(is_left), left.ambiguous_keys),
    )


def _without(values: Int64, rows: Int64, excluded: Int64) -> Int64:
    return rows[~np.isin(values[rows], excluded)]
