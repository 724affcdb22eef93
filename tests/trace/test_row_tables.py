"""Tables made of rows."""

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lanescope.trace import ColumnSpec, TableSpec
from lanescope.trace.row_tables import options_as_json, table_of_tuples

SPEC = TableSpec("pairs", "pairs", (ColumnSpec("a", "int64", "first"), ColumnSpec("b", "int64", "second")))


def test_rows_become_columns():
    assert list(table_of_tuples(SPEC, [(1, 2), (3, 4)]).rows()) == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert len(table_of_tuples(SPEC, [])) == 0


@pytest.mark.parametrize("rows", [[(1, 2), (3,)], [(1, 2, 3), (4, 5)], [(1, 2, 3)], [(1,)]])
def test_a_value_too_few_or_too_many_is_not_dropped(rows):
    with pytest.raises(ValueError, match="zip"):
        table_of_tuples(SPEC, rows)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.text("ab_0é", max_size=3),
    st.lists(st.integers(), max_size=2),
)


@given(st.dictionaries(st.text(st.sampled_from('abc_"é '), max_size=4), VALUES))
@example({"fields": False, "clock_tolerance_ms": 10.0, "time_format": "auto", "date": None})
@example({"a": math.inf, "b": math.nan, "c": -0.0, "d": "", "": 1})
def test_options_are_json(options):
    assert options_as_json(options) == json.dumps(options, sort_keys=True, default=str)
