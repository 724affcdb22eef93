"""What files and queries keep for good: the numbers behind names."""

import pytest

from lanescope.trace.schema import ColumnSpec, Flag, TableSpec


def test_flags_keep_their_bits():
    # They are in every Parquet file that was written, and in queries: a bit may be added, none may move.
    assert {flag.name: flag.value for flag in Flag} == {
        "UNFINISHED": 1 << 0,
        "TRUNCATED": 1 << 1,
        "PARTIAL_OVERLAP": 1 << 2,
        "BELOW_RESOLUTION": 1 << 3,
        "CLOCK_SUSPECT": 1 << 4,
        "WRAP_AMBIGUOUS": 1 << 5,
        "INFERRED_START": 1 << 6,
        "INFERRED_IDENTITY": 1 << 7,
        "NEGATIVE_DURATION": 1 << 8,
        "AFTER_GAP": 1 << 9,
        "CUT": 1 << 10,
    }


def test_a_table_knows_its_columns_by_name():
    columns = (ColumnSpec("task", "int64", "task id"), ColumnSpec("core", "text", "core type"))
    table = TableSpec("toy_tasks", "one task", columns)
    assert [table.column(name) for name in table.names] == list(columns)
    with pytest.raises(KeyError, match="colour"):
        table.column("colour")
