"""A column that grows, and numbers among equal keys, against lists."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lanescope.devices.aie.interpret.growing import GrowingColumn, ordinals


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=90), max_size=8))
def test_values_are_those_appended_and_what_was_read_stays(pieces):
    column, known, read = GrowingColumn(), [], []
    for piece in pieces:
        column.extend(np.array(piece, np.int64))
        known += piece
        assert len(column) == len(known)
        read.append((column.values, list(known)))
    assert all(values.tolist() == before for values, before in read)


@given(st.lists(st.lists(st.integers(0, 90), max_size=40), max_size=6))
def test_ordinals_go_on_over_calls(pieces):
    counts, before = GrowingColumn(), Counter()
    for piece in pieces:
        expected = []
        for key in piece:
            before[key] += 1
            expected.append(before[key])
        assert ordinals(np.array(piece, np.int64), counts).tolist() == expected
