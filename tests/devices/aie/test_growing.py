"""A column that grows, against a list."""

from hypothesis import given
from hypothesis import strategies as st

from lanescope.devices.aie.interpret.growing import GrowingColumn


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=90), max_size=8))
def test_values_are_those_appended_and_what_was_read_stays(pieces):
    column, known, read = GrowingColumn(), [], []
    for piece in pieces:
        for value in piece:
            column.append(value)
            known.append(value)
        assert len(column) == len(known)
        assert [column[index] for index in range(len(known))] == known
        read.append((column.values, list(known)))
        assert [column[index] for index in range(len(known))] == known
    assert all(values.tolist() == before for values, before in read)
