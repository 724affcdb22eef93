import json
import threading

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import NO_POLARS, SANITIZED
from lanescope.analysis import check
from lanescope.errors import InputError
from lanescope.io import parquet
from lanescope.trace import ColumnSpec, StatSpec, Table, TableSpec, TimeBase, TraceBuilder

TASKS = TableSpec(
    "toy_tasks",
    "one task",
    (
        ColumnSpec("slice_id", "int64", "the slice", references="slices"),
        ColumnSpec("task", "uint64", "task id", is_argument=True),
        ColumnSpec("note", "utf8", "free text", nullable=True),
        ColumnSpec("share", "float64", "share", nullable=True),
        ColumnSpec("is_cold", "bool", "cold"),
    ),
    key="slice_id",
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@st.composite
def builders(draw):
    """A builder and the sizes of the batches to cut it into."""
    builder = TraceBuilder(TimeBase(5, "unix", "ns"), details=(TASKS,))
    builder.track(draw(texts), kind="lane", role="core")
    builder.clock(name="c", device="d", frequency=None)
    parts = draw(st.lists(st.integers(0, 4), max_size=4))
    batches = []
    for n in parts:
        known = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), np.bool_)
        names = draw(st.one_of(texts, st.lists(texts, min_size=n, max_size=n)))
        ts = np.array(draw(st.lists(st.integers(0, 2**62), min_size=n, max_size=n)), np.int64)
        first = builder.append("slices", track_id=0, ts=ts, dur=np.arange(n), dur_valid=known, name=names)
        builder.append(
            "toy_tasks",
            slice_id=np.arange(first, first + n),
            task=np.array(draw(st.lists(st.integers(0, 2**64 - 1), min_size=n, max_size=n)), np.uint64),
            share=draw(st.none() | st.just(0.25)),
            is_cold=draw(st.booleans()),
        )
        if draw(st.booleans()):
            batches.append(builder.batch())
    return [*batches, builder.finish()]


def rows(trace):
    return {name: list(table.rows()) for name, table in trace.tables().items()}


@given(builders())
def test_a_trace_comes_back_as_it_was(tmp_path_factory, batches):
    out = tmp_path_factory.mktemp("it's") / "out.parquet"
    report = parquet.write(iter(batches), out)
    read = parquet.read(out)
    assert read.time == batches[-1].time
    whole = batches[0].concat(batches)
    assert rows(read) == rows(whole)
    assert {name: table.spec for name, table in read.tables().items()} == {
        name: table.spec for name, table in whole.tables().items()
    }
    assert report.rows["slices"] == len(whole.slices)


@pytest.fixture
def written(tmp_path):
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core 0", kind="lane", role="core")
    builder.append("slices", track_id=lane, ts=np.arange(5), dur=[1, 1, 2, 0, 1], dur_valid=[1, 1, 1, 0, 1], name="mma")
    parquet.write(builder.finish(), tmp_path / "out.parquet")
    return tmp_path / "out.parquet"


def test_what_a_stat_counts_comes_back(tmp_path):
    builder = TraceBuilder(
        TimeBase(), stats=[StatSpec("toy_dropped", "data_loss", "dropped records: the ring was full")]
    )
    builder.add_stat("toy_dropped", 3)
    parquet.write(builder.finish(), tmp_path / "out.parquet")
    read = parquet.read(tmp_path / "out.parquet")
    assert read.stats["counted"].tolist() == ["dropped records"]
    assert [(finding.detail, finding.stat) for finding in check.run(read)] == [("dropped records", "toy_dropped")]


def test_the_rule_of_a_stat_comes_back(tmp_path):
    specs = [
        StatSpec("toy_guess", "notice", "guessed times", finding="LS305 notice", share_of="events"),
        StatSpec("toy_wrap", "info", "wraps", silent="lawful"),
    ]
    builder = TraceBuilder(TimeBase(), stats=specs)
    lane = builder.track("core 0", kind="lane", role="core")
    builder.append("slices", track_id=lane, ts=[0, 10], dur=5, name="mma")
    builder.add_stat("toy_guess", 1)
    builder.add_stat("toy_wrap", 7)
    parquet.write(builder.finish(), tmp_path / "out.parquet")
    read = parquet.read(tmp_path / "out.parquet")
    assert read.stats["rule"].tolist() == ["LS305", ""]
    assert [(one.code, one.severity, one.detail) for one in check.run(read)] == [
        ("LS305", "warning", "guessed times: 1 of 2 events (50.0%)")
    ]


def test_others_read_the_files(written):
    part = written / "slices" / "part-00000.parquet"
    assert pq.read_table(part)["dur"].to_pylist() == [1, 1, 2, None, 1]
    with duckdb.connect() as connection:
        query = f"select name, quality, count(*), sum(dur) from '{written}/slices/*.parquet' group by all"
        assert connection.execute(query).fetchall() == [("mma", "exact", 5, 5)]


def test_nothing_is_left_behind_when_writing_fails(tmp_path):
    def broken():
        yield TraceBuilder(TimeBase()).finish()
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        parquet.write(broken(), tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_part_is_noticed(written):
    (written / "slices" / "part-00000.parquet").unlink()
    with pytest.raises(InputError, match="slices"):
        parquet.read(written)


def test_a_broken_part_is_one_line(written):
    (written / "slices" / "part-00000.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(InputError, match="cannot read") as caught:
        parquet.read(written)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change", [{"schema": "lanescope.parquet/99"}, {"time": {"epoch_kind": "moon"}}, {"tables": 3}, {"time": {"x": 1}}]
)
def test_metadata_of_another_kind_is_refused(written, change):
    path = written / parquet.METADATA
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError):
        parquet.read(written)


#: Rows whose texts are declared to the writer, and rows of several files.
MANY = 3 * parquet._MANY_ROWS
NAMES = ["it's", "a; b", "\u00e9\U0001f600", 'quote " and \\ slash', "", "NULL", " space "]


def many(rows, names, **columns):
    """A trace of so many slices, whose names come in turn."""
    builder = TraceBuilder(TimeBase(5, "unix", "ns"))
    lane = builder.track("core 0", kind="lane", role="core")
    known = np.arange(rows) % 3 > 0
    builder.append(
        "slices",
        track_id=lane,
        ts=np.arange(rows) * 7,
        dur=np.where(known, 5, 0),
        dur_valid=known,
        name=[names[row % len(names)] for row in range(rows)],
        **columns,
    )
    return builder.finish()


def assert_equal_columns(one, two):
    for name in one.spec.names:
        own, other = one.column(name), two.column(name)
        assert own.texts.tolist() == other.texts.tolist(), name
        assert (own.valid is None) == (other.valid is None), name
        assert own.valid is None or own.valid.tolist() == other.valid.tolist(), name


@pytest.mark.parametrize(
    "names", [NAMES, [*NAMES, "\0"], [f"name {n}" for n in range(parquet._FEW_TEXTS + 1)]], ids=["few", "nul", "many"]
)
def test_texts_of_many_rows_come_back(tmp_path, names):
    trace = many(MANY, names, category="it's the same")
    parquet.write(trace, tmp_path / "out.parquet")
    assert_equal_columns(parquet.read(tmp_path / "out.parquet").slices, trace.slices)


@pytest.mark.skipif(SANITIZED == "thread", reason=NO_POLARS)
def test_others_read_the_texts_of_many_rows(tmp_path):
    import polars as pl

    trace = many(MANY, NAMES, category="it's the same")
    parquet.write(trace, tmp_path / "out.parquet")
    (part,) = (tmp_path / "out.parquet" / "slices").iterdir()
    for read in (pq.read_table(part), pl.read_parquet(part).to_arrow()):
        for name in ("name", "category", "quality"):
            assert read[name].to_pylist() == trace.slices.column(name).texts.tolist()
        assert read["dur"].null_count == MANY // 3
        assert str(read.schema.field("name").type) in ("string", "large_string", "string_view")


def test_unknown_texts_of_many_rows_come_back(tmp_path):
    spec = TableSpec(
        "toy", "one row", (ColumnSpec("row", "int64", "row"), ColumnSpec("state", "text", "state", nullable=True))
    )
    table = Table.from_arrays(spec, {"row": np.arange(MANY), "state": [None, "on", "off"] * (MANY // 3)})
    with parquet.TableWriters(tmp_path) as writers:
        writers.add("toy", table)
        writers.finish()
    assert pq.read_table(tmp_path / "toy" / "part-00000.parquet")["state"].to_pylist() == [None, "on", "off"] * (
        MANY // 3
    )


def test_a_large_table_is_several_files_whatever_the_cores(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_PART_ROWS", parquet._MANY_ROWS)
    trace = many(MANY + 1, NAMES)
    for cores in (1, 2, 8):
        monkeypatch.setattr(parquet, "_CORES", cores)
        parquet.write(iter([trace]), tmp_path / f"{cores}.parquet")
    files = [path.relative_to(tmp_path / "1.parquet") for path in (tmp_path / "1.parquet").rglob("*.parquet")]
    assert sum(path.parent.name == "slices" for path in files) == 4
    for path in files:
        assert len({(tmp_path / f"{cores}.parquet" / path).read_bytes() for cores in (1, 2, 8)}) == 1
    assert_equal_columns(parquet.read(tmp_path / "2.parquet").slices, trace.slices)


def test_what_a_thread_cannot_write_is_an_error_of_the_call(tmp_path, monkeypatch):
    def fail(connection, table, path, more=None):
        if len(table) >= parquet._MANY_ROWS:
            raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(parquet, "_CORES", 2)
    monkeypatch.setattr(parquet, "write_table", fail)
    with pytest.raises(OSError, match="No space left"):
        parquet.write(many(MANY, NAMES), tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []


def test_what_threads_write_ends_with_the_call(tmp_path, monkeypatch):
    """A query that would take for ever is ended when the call fails."""
    begun = threading.Event()

    def hang(connection, table, path, more=None):
        begun.set()
        connection.execute("select sum(a.range * b.range) from range(1000000000) a, range(100000) b").fetchall()

    def batches():
        yield many(MANY, NAMES)
        begun.wait()
        raise RuntimeError("stop")

    monkeypatch.setattr(parquet, "_CORES", 2)
    monkeypatch.setattr(parquet, "write_table", hang)
    with pytest.raises(RuntimeError, match="stop"):
        parquet.write(batches(), tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []
