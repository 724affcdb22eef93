"""The Arrow export read by readers that we did not write."""

import gc

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import NO_POLARS, SANITIZED
from lanescope.trace import ColumnSpec, Table, TableSpec
from lanescope.trace.schema import TYPES

VALUES = {
    "int64": st.integers(-(2**63), 2**63 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "uint8": st.integers(0, 255),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    "utf8": st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
}
assert set(VALUES) == set(TYPES)


@st.composite
def tables(draw):
    length = draw(st.integers(0, 20))
    specs, columns = [], {}
    for index, type_ in enumerate(draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=6))):
        nullable = draw(st.booleans())
        value = st.none() | VALUES[type_] if nullable else VALUES[type_]
        specs.append(ColumnSpec(f"c{index}", type_, "", nullable=nullable))
        columns[f"c{index}"] = draw(st.lists(value, min_size=length, max_size=length))
    return Table.from_arrays(TableSpec("drawn", "", tuple(specs)), columns), columns


@given(tables())
def test_pyarrow_reads_what_was_written(case):
    table, expected = case
    read = pa.table(table)
    read.validate(full=True)
    assert read.to_pydict() == expected
    assert [field.nullable for field in read.schema] == [column.nullable for column in table.spec.columns]


@pytest.mark.skipif(SANITIZED == "thread", reason=NO_POLARS)
@given(tables())
def test_polars_reads_what_was_written(case):
    import polars as pl

    table, expected = case
    assert pl.DataFrame(table).to_dict(as_series=False) == expected


@given(tables())
def test_duckdb_reads_what_was_written(case):
    table, expected = case
    with duckdb.connect(config={"enable_external_access": False}) as connection:
        connection.register("drawn", table)
        rows = connection.execute("select * from drawn").fetchall()
    assert rows == list(zip(*expected.values(), strict=True))


def test_the_arrays_outlive_the_table():
    spec = TableSpec("numbers", "", (ColumnSpec("n", "int64", ""),))
    table = Table.from_arrays(spec, {"n": np.arange(100_000)})
    read = pa.table(table)
    del table
    gc.collect()
    assert read["n"].to_numpy().sum() == 100_000 * 99_999 // 2


def test_numbers_are_not_copied():
    spec = TableSpec("numbers", "", (ColumnSpec("n", "int64", ""),))
    values = np.arange(1000)
    read = pa.table(Table.from_arrays(spec, {"n": values}))
    assert read["n"].chunk(0).buffers()[1].address == values.ctypes.data


def test_an_unread_stream_is_released():
    spec = TableSpec("numbers", "", (ColumnSpec("n", "int64", ""),))
    values = np.arange(1000)
    import sys

    before = sys.getrefcount(values)
    capsule = Table.from_arrays(spec, {"n": values}).__arrow_c_stream__()
    del capsule
    gc.collect()
    assert sys.getrefcount(values) == before


@pytest.mark.parametrize("lone", ["\ud800", "a\udcff"])
def test_text_that_is_no_unicode_is_replaced(lone):
    spec = TableSpec("texts", "", (ColumnSpec("t", "text", ""),))
    assert pa.table(Table.from_arrays(spec, {"t": [lone]}))["t"].to_pylist() == [lone[:-1] + "?"]
