"""Tables written as Parquet are what two other readers find: all types, unknown values, many groups of rows."""

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import some
from lanescope.io import parquet, parquet_file
from lanescope.trace import Column, ColumnSpec, Dictionary, Table, TableSpec
from lanescope.trace.column import DTYPES

TYPES = [name for name in DTYPES if name != "utf8"]
#: Around the sizes of blocks and of the groups that `groups` makes.
ROWS = st.sampled_from([1, 2, 31, 32, 33, 127, 128, 129, 130, 199, 200, 201, 333, 400, 1000])


@pytest.fixture(autouse=True, scope="module")
def groups():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_file, "ROW_GROUP", 200)
        yield


def numbers(kind, n, seed):
    """Values of a type, some of them its least and most, others near each other."""
    random = np.random.default_rng(seed)
    if kind == "bool":
        return random.integers(0, 2, n).astype(bool)
    if kind == "float64":
        return np.where(random.random(n) < 0.1, np.inf, random.normal(0, 1e300, n))
    dtype = DTYPES[kind]
    info = np.iinfo(dtype)
    width = int(random.integers(1, dtype.itemsize * 8 + 1))
    low = random.integers(0, 1 << 63, n, np.uint64) * np.uint64(2) + random.integers(0, 2, n, np.uint64)
    values = (low >> np.uint64(64 - width)).astype(dtype)
    ends = random.random(n)
    return np.where(ends < 0.02, info.min, np.where(ends > 0.98, info.max, values)).astype(dtype)


@st.composite
def columns(draw, n):
    kind = draw(st.sampled_from(TYPES))
    form = draw(st.sampled_from(["known", "some", "none", "same", "unknown"]))
    seed = draw(st.integers(0, 2**32))
    dictionary = None
    if kind == "text":
        dictionary = Dictionary(["a", "", "ä" * 300, *map(str, range(draw(st.integers(0, 300))))])
        values = np.random.default_rng(seed).integers(0, draw(st.integers(1, len(dictionary))), n).astype(np.int32)
    else:
        values = numbers(kind, n, seed)
    if form == "unknown":
        return kind, Column.null(n, DTYPES[kind], dictionary=dictionary)
    if form == "same":
        return kind, Column.constant(values[0].item(), n, DTYPES[kind], dictionary=dictionary)
    valid = None
    if form != "known":
        valid = np.random.default_rng(seed).random(n) < (0.8 if form == "some" else 0)
        values[~valid] = 0
    return kind, Column.array(values, valid=valid, dictionary=dictionary)


@st.composite
def tables(draw):
    n = draw(ROWS)
    made = [draw(columns(n)) for _ in range(draw(st.integers(1, 5)))]
    specs = tuple(ColumnSpec(f"c{i}", kind, "a column", nullable=True) for i, (kind, _) in enumerate(made))
    return Table(TableSpec("toys", "one toy", specs), {f"c{i}": column for i, (_, column) in enumerate(made)})


@given(tables())
def test_other_readers_find_what_was_written(tmp_path_factory, table):
    path = tmp_path_factory.mktemp("file") / "part.parquet"
    parquet_file.write_table(table, path)
    rows = [tuple(row.values()) for row in table.rows()]
    with duckdb.connect() as connection:
        assert connection.execute("select * from read_parquet(?)", [str(path)]).fetchall() == rows
        types = [
            kind for _, kind, *_ in connection.execute("describe select * from read_parquet(?)", [str(path)]).fetchall()
        ]
    assert [kind.lower() for kind in types] == [parquet._SQL_TYPES[spec.type] for spec in table.spec.columns]
    read = pq.read_table(path)
    assert [tuple(row.values()) for row in read.to_pylist()] == rows
    groups = pq.ParquetFile(path).metadata
    assert groups.num_row_groups == -(-len(table) // 200)
    for number in range(groups.num_row_groups):
        for index, spec in enumerate(table.spec.columns):
            part = [row[index] for row in rows[200 * number : 200 * number + 200]]
            known = [value for value in part if value is not None]
            found = groups.row_group(number).column(index)
            assert found.statistics.null_count == len(part) - len(known)
            if found.statistics.has_min_max:
                assert (found.statistics.min, found.statistics.max) == (min(known), max(known))
            else:
                assert spec.type in ("text", "float64", "bool") or not known


@pytest.mark.parametrize("width", [1, 7, 31, 32, 33, 63, 64])
@pytest.mark.parametrize("seed", range(some(3, 30)))
def test_differences_of_all_widths(tmp_path, width, seed):
    random = np.random.default_rng(seed)
    steps = (
        random.integers(0, 1 << 63, 700, np.uint64) >> np.uint64(64 - width)
        if width < 64
        else random.integers(0, 1 << 64, 700, np.uint64)
    )
    values = np.cumsum(steps).view(np.int64)
    table = Table(TableSpec("toys", "one toy", (ColumnSpec("id", "int64", "a number"),)), {"id": Column.array(values)})
    parquet_file.write_table(table, tmp_path / "part.parquet")
    with duckdb.connect() as connection:
        found = connection.execute("select id from read_parquet(?)", [str(tmp_path / "part.parquet")]).fetchnumpy()
    assert np.array_equal(found["id"], values)


def test_rows_are_found_by_what_the_groups_hold(tmp_path):
    values = np.arange(1000)
    table = Table(TableSpec("toys", "one toy", (ColumnSpec("id", "int64", "a number"),)), {"id": Column.array(values)})
    parquet_file.write_table(table, tmp_path / "part.parquet")
    found = pq.read_table(tmp_path / "part.parquet", filters=[("id", ">", 790), ("id", "<", 810)])
    assert found["id"].to_pylist() == list(range(791, 810))


def test_a_table_with_free_text_is_for_others():
    spec = TableSpec("toys", "one toy", (ColumnSpec("note", "utf8", "free text"),))
    assert not parquet_file.is_for(Table.empty(spec))


def test_what_compresses_is_compressed_and_the_rest_is_not(tmp_path):
    values = {"often": np.tile(np.arange(50) ** 7, 4), "never": np.random.default_rng(1).integers(-(2**62), 2**62, 200)}
    spec = TableSpec("toys", "one toy", tuple(ColumnSpec(name, "int64", "a number") for name in values))
    parquet_file.write_table(Table(spec, {k: Column.array(v) for k, v in values.items()}), tmp_path / "part.parquet")
    group = pq.ParquetFile(tmp_path / "part.parquet").metadata.row_group(0)
    assert [group.column(i).compression for i in range(2)] == ["GZIP", "UNCOMPRESSED"]
    assert group.column(0).total_compressed_size < group.column(0).total_uncompressed_size
