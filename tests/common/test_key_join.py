"""Joins by key against loops over lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from lanescope.common.key_join import Keys, duplicates, first_equal, match_unique

KEYS = st.one_of(st.lists(st.integers(-2, 8), max_size=12), st.sets(st.integers(-5, 20), max_size=12).map(sorted))


@settings(max_examples=some(600))
@given(KEYS, KEYS)
def test_keys_are_matched_where_they_are_unique(left, right):
    sides = [Keys.of(np.array(keys, np.int64)) for keys in (left, right)]
    match = match_unique(*sides)
    is_joined = [left.count(key) == right.count(key) == 1 for key in left]
    assert match.partner.tolist() == [
        right.index(key) if is_one else -1 for key, is_one in zip(left, is_joined, strict=True)
    ]
    for keys, others, alone, side in (
        (left, right, match.left_only, sides[0]),
        (right, left, match.right_only, sides[1]),
    ):
        assert alone.tolist() == [i for i, key in enumerate(keys) if keys.count(key) == 1 and key not in others]
        assert side.ambiguous_rows.tolist() == [i for i, key in enumerate(keys) if keys.count(key) > 1]
        assert side.ambiguous_keys.tolist() == sorted({key for key in keys if keys.count(key) > 1})
        assert side.unique_rows.tolist() == [keys.index(key) for key in sorted(keys) if keys.count(key) == 1]


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0, 1, 2**64 - 1])), max_size=15))
def test_rows_that_are_equal(rows):
    columns = [np.array([row[0] for row in rows], np.int32), np.array([row[1] for row in rows], np.uint64)]
    assert first_equal(columns).tolist() == [rows.index(row) for row in rows]
    assert duplicates(columns).tolist() == [i for i, row in enumerate(rows) if row in rows[:i]]
