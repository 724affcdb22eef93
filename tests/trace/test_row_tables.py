"""Tables made of rows."""

import pytest

from lanescope.trace import ColumnSpec, TableSpec
from lanescope.trace.row_tables import table_of_tuples

SPEC = TableSpec("pairs", "pairs", (ColumnSpec("a", "int64", "first"), ColumnSpec("b", "int64", "second")))


def test_rows_become_columns():
    assert list(table_of_tuples(SPEC, [(1, 2), (3, 4)]).rows()) == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert len(table_of_tuples(SPEC, [])) == 0


@pytest.mark.parametrize("rows", [[(1, 2), (3,)], [(1, 2, 3), (4, 5)], [(1, 2, 3)], [(1,)]])
def test_a_value_too_few_or_too_many_is_not_dropped(rows):
    with pytest.raises(ValueError, match="zip"):
        table_of_tuples(SPEC, rows)
