"""Coverage that ends where evidence ends, against a loop over lanes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lanescope.common.coverage import evidence_spans

LANES = st.lists(st.tuples(st.integers(-3, 9), st.booleans()), unique_by=lambda lane: lane[0], max_size=6)
SEEN = st.lists(st.tuples(st.integers(-3, 9), st.integers(-50, 150)), max_size=30)


@given(LANES, SEEN, st.integers(0, 20), st.integers(20, 100), st.booleans())
def test_spans(lanes, seen, start, end, has_guarantees):
    expected = []
    for lane, is_complete in lanes:
        times = [time for of, time in seen if of == lane]
        if has_guarantees and is_complete:
            expected.append((lane, min([start, *times]), max([end, *times])))
        elif times:
            expected.append((lane, min([start, *times]), max([min([start, *times]), *times])))
    found = evidence_spans(
        np.array([lane for lane, _ in lanes], np.int64),
        np.array([lane for lane, _ in seen], np.int64),
        np.array([time for _, time in seen], np.int64),
        start=start,
        end=end,
        is_complete=np.array([is_complete for _, is_complete in lanes], np.bool_) if has_guarantees else None,
    )
    assert list(zip(*(column.tolist() for column in found), strict=True)) == expected
