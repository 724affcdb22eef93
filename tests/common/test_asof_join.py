"""Joins over time, against loops that say what they mean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanescope.common.asof_join import group, join, pick

uint64 = st.one_of(st.integers(0, 5), st.integers(0, (1 << 64) - 1), st.integers(0xFFFF_0000_0000_0000, (1 << 64) - 1))
rows = st.lists(st.tuples(st.integers(-3, 3), uint64, st.integers(-5, 40)), max_size=40)


def columns(listed):
    return (
        np.array([row[0] for row in listed], np.int32),
        np.array([row[1] for row in listed], np.uint64),
        np.array([row[2] for row in listed], np.int64),
    )


@given(rows)
def test_group_sorts_by_key_then_time_then_row(listed) -> None:
    process, handle, seq = columns(listed)
    groups = group([process, handle], seq)
    assert groups.order.tolist() == sorted(range(len(listed)), key=lambda row: (*listed[row], row))
    keys = [listed[row][:2] for row in groups.order.tolist()]
    assert groups.first.tolist() == [place == 0 or keys[place] != keys[place - 1] for place in range(len(keys))]


@given(rows, rows, st.booleans())
def test_join(left, right, strict) -> None:
    *left_keys, left_seq = columns(left)
    *right_keys, right_seq = columns(right)
    joined = join(left_keys, left_seq, right_keys, right_seq, strict=strict)
    order = sorted(range(len(right)), key=lambda row: (right[row][2], row))
    for number, row in enumerate(left):
        mine = [other for other in order if right[other][:2] == row[:2]]
        before = [other for other in mine if right[other][2] < row[2] or (not strict and right[other][2] == row[2])]
        after = [other for other in mine if other not in before]
        assert joined.last_before()[number] == (before[-1] if before else -1)
        assert joined.first_after()[number] == (after[0] if after else -1)
        assert joined.first_after(2)[number] == (after[2] if len(after) > 2 else -1)
        assert joined.nearest()[number] == (before[-1] if before else mine[0] if mine else -1)
        assert joined.high[number] - joined.low[number] == len(mine)


@pytest.mark.parametrize("keys", [1, 2, 3, 6])
def test_wide_keys_are_ranked(keys) -> None:
    """Keys too wide to be packed with the position still sort by value."""
    rng = np.random.default_rng(1)
    wide = [rng.integers(0, 1 << 64, 500, dtype=np.uint64) for _ in range(keys)]
    groups = group(wide, np.arange(500))
    assert groups.order.tolist() == np.lexsort(wide[::-1]).tolist()


def test_pick() -> None:
    assert pick(np.array([5, 6]), np.array([1, -1, 0]), -7).tolist() == [6, -7, 5]
    assert pick(np.empty(0, np.int64), np.array([-1])).tolist() == [0]
