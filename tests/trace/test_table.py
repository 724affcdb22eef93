"""Tables as their users read them: columns, rows, data frames."""

import subprocess
import sys

import numpy as np
import pandas
import pytest

from lanescope.errors import UsageError
from lanescope.trace import ColumnSpec, Table, TableSpec, TimeBase, TraceBuilder, argument, ref, ticks, time

SPEC = TableSpec(
    "toy_tasks",
    "one task",
    (
        ColumnSpec("task", "int64", "task id"),
        ColumnSpec("wait_ns", "int64", "time in the queue", nullable=True, unit="ns"),
        ColumnSpec("share", "float64", "share of the device", nullable=True),
        ColumnSpec("core", "text", "core type", nullable=True),
        ColumnSpec("note", "utf8", "free text", nullable=True),
    ),
)


@pytest.fixture
def table():
    columns = {"task": [1, 2, 3], "wait_ns": [7, None, 5], "share": [None, 0.5, 0.25]}
    return Table.from_arrays(SPEC, {**columns, "core": ["aic", None, "aiv"], "note": ["", None, "x"]})


def test_the_unknown_duration_of_a_slice_is_masked_and_not_a_zero():
    made = TraceBuilder(TimeBase())
    lane = made.track("core 0", kind="lane", role="core")
    made.append("slices", track_id=lane, ts=[0, 1, 2], dur=[4, 0, 6], dur_valid=[True, False, True], name="a")
    slices = made.finish().slices
    assert slices["dur"].tolist() == [4, None, 6]
    assert (slices["dur"].sum(), slices["dur"].mean(), slices["dur"].min()) == (10, 5, 4)
    assert slices["last_known_ts"].tolist() == [None] * 3  # a column that is stored once for all rows
    assert slices.values("dur").tolist() == [4, 0, 6]
    assert slices.valid("dur").tolist() == [True, False, True]


def test_columns_with_nulls_are_masked_and_others_are_plain(table):
    for name, expected in (
        ("wait_ns", [7, None, 5]),
        ("share", [None, 0.5, 0.25]),
        ("core", ["aic", None, "aiv"]),
        ("note", ["", None, "x"]),
    ):
        assert isinstance(table[name], np.ma.MaskedArray)
        assert table[name].tolist() == expected
        assert type(table.values(name)) is np.ndarray
        assert type(table.take(np.array([2]))[name]) is np.ndarray
    assert type(table["task"]) is np.ndarray
    assert table["task"] is table.values("task")
    assert type(Table.empty(SPEC)["wait_ns"]) is np.ndarray
    with pytest.raises(UsageError, match="unknown column 'colour'"):
        table["colour"]


def test_some_columns_of_a_table_are_a_table_of_as_many_rows(table):
    some = table.only(["share", "task"])
    assert some.spec.names == ("task", "share")
    assert list(some.rows()) == [{"task": 1, "share": None}, {"task": 2, "share": 0.5}, {"task": 3, "share": 0.25}]


def test_chosen_rows_are_numbered_again_where_rows_have_numbers(table):
    made = TraceBuilder(TimeBase())
    lane = made.track("core 0", kind="lane", role="core")
    made.append("slices", track_id=lane, ts=[0, 1, 2], dur=[4, 5, 6], name=["a", "b", "c"])
    chosen = made.finish().slices.where(np.array([False, True, True]))
    assert chosen["id"].tolist() == [1, 2]
    assert [(row["id"], row["name"]) for row in chosen.numbered().rows()] == [(0, "b"), (1, "c")]
    assert table.numbered() is table


def test_notebooks_show_a_trace_and_a_table(table):
    assert "data loss: none" in TraceBuilder(TimeBase()).finish()._repr_html_()
    assert "<table" in table._repr_html_()


def test_iterating_gives_the_rows(table):
    assert len(list(table)) == len(table) == 3
    assert list(table) == list(table.rows())
    assert next(iter(table)) == {"task": 1, "wait_ns": 7, "share": None, "core": "aic", "note": ""}
    assert list(Table.empty(SPEC)) == []


def test_a_data_frame_has_the_columns_and_no_value_where_there_is_none(table):
    frame = pandas.DataFrame(table)
    assert frame.columns.tolist() == list(SPEC.names)
    assert frame["task"].tolist() == [1, 2, 3]
    assert frame["wait_ns"].isna().tolist() == [False, True, False]
    assert frame["wait_ns"].sum() == 12
    assert frame["note"].isna().tolist() == [False, True, False]


def test_columns_are_offered_where_their_names_are_typed(table):
    assert table._ipython_key_completions_() == list(SPEC.names)


def test_masked_arrays_are_loaded_only_for_those_who_ask_for_nulls():
    code = """
import sys
from lanescope.trace import TimeBase, TraceBuilder
made = TraceBuilder(TimeBase())
lane = made.track("core 0", kind="lane", role="core")
made.append("slices", track_id=lane, ts=[0, 1], dur=[4, 0], dur_valid=[True, False], name="a")
slices = made.finish().slices
slices["ts"], slices.values("dur"), list(slices)
assert "numpy.ma" not in sys.modules
slices["dur"]
assert "numpy.ma" in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_column_constructors_are_short_forms():
    assert ref("slice_id", "slices", "it", nullable=True) == ColumnSpec(
        "slice_id", "int64", "it", nullable=True, references="slices"
    )
    assert time("end_ts", "it") == ColumnSpec("end_ts", "int64", "it", unit="ns", is_time=True)
    assert ticks("end_ticks", "it", is_argument=True) == ColumnSpec(
        "end_ticks", "int64", "it", unit="ticks", is_argument=True
    )
    assert argument("size", "uint32", "it", unit="bytes") == ColumnSpec(
        "size", "uint32", "it", unit="bytes", is_argument=True
    )
    for made in (ref("a", "b", "c"), time("a", "c"), ticks("a", "c"), argument("a", "int64", "c")):
        assert not made.nullable
    assert not ticks("a", "c").is_argument
    assert not time("a", "c").is_argument
    assert not time("a", "c").of_host
