from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanescope.errors import InternalError, UsageError
from lanescope.trace import Column, ColumnSpec, Dictionary, StatSpec, TableSpec, TimeBase, Trace, TraceBuilder
from lanescope.trace.schema import CORE_TABLES, FLAG_DOCS, Flag

TASKS = TableSpec(
    "toy_tasks",
    "one task of the toy",
    (
        ColumnSpec("slice_id", "int64", "the slice", references="slices"),
        ColumnSpec("task", "uint64", "task id", is_argument=True),
        ColumnSpec("wait_ns", "int64", "time in the queue", nullable=True, unit="ns", is_argument=True),
        ColumnSpec("is_cold", "bool", "first task of its core"),
    ),
    key="slice_id",
)
STATS = (StatSpec("toy_dropped", "data_loss", "the toy dropped a record"),)


def builder():
    return TraceBuilder(TimeBase(), details=(TASKS,), stats=STATS)


def with_input(size=100, **account):
    made = builder()
    input_id = made.input(capture="run", path="run.bin", size=size, sha256="00", family="toy", format="v1")
    if account:
        made.add_accounting(input_id=input_id, layer=0, unit="byte", unit_bytes=1, total=size, **account)
    return made, input_id


def test_every_table_of_an_empty_trace_is_there():
    trace = builder().finish()
    assert set(trace.tables()) == {spec.name for spec in CORE_TABLES} | {"toy_tasks"}
    assert all(len(table) == 0 for table in trace.tables().values())


@pytest.mark.parametrize("known", [[True, False], [False, False], [True, True]])
def test_a_value_for_all_rows_is_unknown_where_its_mask_says_so(known):
    made = builder()
    lane = made.track("core 0", kind="lane", role="core")
    made.append("slices", track_id=lane, ts=[0, 10], dur=5, dur_valid=known, name="a", last_known_ts=7)
    assert [(row["dur"], row["last_known_ts"]) for row in made.finish().slices.rows()] == [
        (5 if one else None, 7) for one in known
    ]


def test_many_tracks_at_once_are_as_one_by_one():
    one, many = builder(), builder()
    for made in (one, many):
        made.track("device", kind="group", role="device")
    places = [("a", 0, 3), ("b", 1, None), ("c", 0, 3)]
    ids = [one.track(name, kind="lane", role="core", parent=parent, input_id=7, clock_id=clock, sort_key=at)
           for at, (name, parent, clock) in enumerate(places)]  # fmt: skip
    words = Dictionary()
    first = many.tracks(
        parent_id=Column.array(np.array([0, 1, 0])),
        kind=Column.array(words.codes(["lane"] * 3), dictionary=words),
        role=Column.array(words.codes(["core"] * 3), dictionary=words),
        name=Column.array(np.array(["a", "b", "c"], object)),
        sort_key=Column.array(np.arange(3)),
        nesting=Column.array(words.codes(["disjoint"] * 3), dictionary=words),
        clock_id=Column.array(np.array([3, 0, 3]), valid=np.array([True, False, True])),
        input_id=7,
    )
    assert [first, first + 1, first + 2] == ids
    assert many.track("last", kind="group", role="device") == one.track("last", kind="group", role="device") == 4
    assert list(many.finish().tracks.rows()) == list(one.finish().tracks.rows())


def test_rows_come_back_with_nulls_texts_and_defaults():
    made = builder()
    lane = made.track("core 0", kind="lane", role="core")
    first = made.append(
        "slices",
        track_id=lane,
        ts=[0, 10],
        dur=[5, 99],
        dur_valid=[True, False],
        name=["a", "b"],
        flags=[0, 1],
        last_known_ts=[0, 12],
        last_known_ts_valid=[False, True],
    )
    made.append("toy_tasks", slice_id=np.array([first, first + 1]), task=[1, 2**64 - 1], is_cold=[True, False])
    trace = made.finish()
    rows = list(trace.slices.rows())
    assert [row["dur"] for row in rows] == [5, None]
    assert trace.slices.values("dur").tolist() == [5, 0], "the value under a null is 0"
    assert [row["last_known_ts"] for row in rows] == [None, 12]
    assert {row["quality"] for row in rows} == {"exact"}
    assert [row["task"] for row in trace.details["toy_tasks"].rows()] == [1, 2**64 - 1]
    assert [row["wait_ns"] for row in trace.details["toy_tasks"].rows()] == [None, None]


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=4), min_size=1, max_size=6), st.data())
def test_batches_joined_equal_one_batch(parts, data):
    whole, pieces, batches = builder(), builder(), []
    for part in parts:
        for made in (whole, pieces):
            made.append("slices", track_id=0, ts=np.arange(len(part)), dur=1, name=part)
        if data.draw(st.booleans()):
            batches.append(pieces.batch())
    batches.append(pieces.finish())
    joined, expected = Trace.concat(batches), whole.finish()
    assert list(joined.slices.rows()) == list(expected.slices.rows())
    assert joined.slices["id"].tolist() == list(range(sum(map(len, parts))))


def test_a_clock_keeps_its_exact_ratio():
    made = builder()
    made.clock(name="timer", device="npu 0", frequency=Fraction(10**9, 3), counter_bits=56)
    row = next(made.finish().clocks.rows())
    assert Fraction(row["frequency_num"], row["frequency_den"]) == Fraction(10**9, 3)
    assert row["resolution_ticks"] is None


def test_stats_add_up_and_keep_the_first_place():
    made = builder()
    made.add_stat("toy_dropped", 2, first_offset=7)
    made.add_stat("toy_dropped", 3, first_offset=9)
    made.add_stat("toy_dropped", 0, first_offset=1)
    made.add_stat("truncated")
    rows = list(made.finish().stats.rows())
    assert [(r["name"], r["severity"], r["count"], r["first_offset"]) for r in rows] == [
        ("toy_dropped", "data_loss", 5, 7),
        ("truncated", "data_loss", 1, None),
    ]


def test_an_undeclared_stat_is_refused():
    with pytest.raises(InternalError, match="undeclared stat"):
        builder().add_stat("surprise")


@pytest.mark.parametrize("columns", [{"colour": 3}, {"ts": [1, 2], "dur": [1]}])
def test_columns_that_do_not_fit_are_refused(columns):
    with pytest.raises(InternalError):
        builder().append("slices", **{"track_id": 0, "ts": 0, "dur": 1, "name": "x", **columns})


def test_a_missing_column_that_may_not_be_null_is_refused():
    with pytest.raises(InternalError, match=r"missing column slices\.ts"):
        builder().append("slices", track_id=0, name="x")


def test_bytes_without_an_account_are_refused():
    made, _ = with_input()
    with pytest.raises(InternalError, match="layers"):
        made.finish()


@pytest.mark.parametrize(
    ("account", "message"),
    [
        ({"decoded": 90, "padding": 5, "lost": 4}, "100 bytes, but"),
        ({"decoded": 110, "padding": 0, "lost": -10}, "100 bytes, but"),
    ],
)
def test_sums_that_do_not_hold_are_refused(account, message):
    made, _ = with_input(**account)
    with pytest.raises(InternalError, match=message):
        made.finish()


def test_total_must_be_the_file():
    made, input_id = with_input()
    made.add_accounting(input_id=input_id, layer=0, unit="byte", unit_bytes=1, total=99, decoded=99)
    with pytest.raises(InternalError, match="99 of 100 bytes"):
        made.finish()


@pytest.mark.parametrize(("total", "holds"), [(10, True), (9, False)])
def test_the_next_layer_divides_what_was_decoded(total, holds):
    made, input_id = with_input(decoded=80, padding=20)
    made.add_accounting(input_id=input_id, layer=1, unit="record", unit_bytes=8, total=total, decoded=total)
    if holds:
        assert len(made.finish().accounting) == 2
    else:
        with pytest.raises(InternalError, match="records of 8 bytes"):
            made.finish()


def test_layers_may_be_added_in_any_order():
    made, input_id = with_input()
    made.add_accounting(input_id=input_id, layer=1, unit="record", unit_bytes=8, total=10, decoded=10)
    made.add_accounting(input_id=input_id, layer=0, unit="byte", unit_bytes=1, total=100, decoded=80, padding=20)
    assert len(made.finish().accounting) == 2


def test_a_third_layer_is_refused():
    made, input_id = with_input(decoded=100)
    for layer in (1, 2):
        made.add_accounting(input_id=input_id, layer=layer, unit="byte", unit_bytes=1, total=100, decoded=100)
    with pytest.raises(InternalError, match="layers"):
        made.finish()


def test_producer_losses_stand_outside_the_layers():
    made, input_id = with_input(decoded=100)
    made.add_accounting(
        input_id=input_id, layer=0, scope="producer", unit="record", unit_bytes=32, total=7, decoded=4, lost=3
    )
    assert made.finish().accounting["lost"].tolist() == [0, 3]


def test_raw_records_are_decoded_when_asked_for():
    made, asked = builder(), []
    other = builder().finish().slices
    made.records("toy.frame", lambda: asked.append(1) or other)
    trace = made.finish()
    assert list(trace.records) == ["toy.frame"]
    assert not asked
    assert trace.records["toy.frame"] is other
    assert trace.records["toy.frame"] is other
    assert len(asked) == 1


def test_an_unknown_column_names_those_there_are():
    with pytest.raises(UsageError, match="track_id"):
        builder().finish().slices["colour"]


def test_every_flag_is_documented():
    assert set(FLAG_DOCS) == set(Flag)


def test_every_reference_of_the_model_is_declared():
    tables = {spec.name for spec in CORE_TABLES}
    for spec in CORE_TABLES:
        for column in spec.columns:
            assert bool(column.references) == column.name.endswith(("_id", "_track", "_slice"))
            assert column.is_time == (column.name == "ts" or column.name.endswith("_ts"))
            assert column.references in tables | {""}


def test_an_unknown_plain_text_is_empty_underneath():
    spec = TableSpec("toy_notes", "a note", (ColumnSpec("note", "utf8", "free text", nullable=True),), key="slice_id")
    made = TraceBuilder(TimeBase(), details=(spec,))
    made.append("toy_notes", note=np.array(["a", "b"], object), note_valid=[False, True])
    table = made.finish().details["toy_notes"]
    assert table.values("note").tolist() == ["", "b"]
    assert table["note"].tolist() == [None, "b"]
    assert [row["note"] for row in table.rows()] == [None, "b"]


def test_a_hash_that_is_a_function_is_asked_when_it_is_read():
    asked = []
    made = TraceBuilder(TimeBase())
    made.input(capture="a", path="a", size=0, sha256=lambda: asked.append(1) or "ab", family="toy", format="v1")
    made.input(capture="a", path="b", size=0, sha256="cd", family="toy", format="v1", options={"z": 1, "a": None})
    for number in range(2):
        made.add_accounting(input_id=number, layer=0, unit="byte", unit_bytes=1, total=0, decoded=0)
    inputs = made.finish().inputs
    assert [row["path"] for row in inputs.rows("path", "size")] == ["a", "b"]
    assert inputs["options"].tolist() == ["{}", '{"a": null, "z": 1}']
    assert asked == []
    assert inputs["sha256"].tolist() == ["ab", "cd"]
    assert [row["sha256"] for row in inputs.rows()] == ["ab", "cd"]
    assert asked == [1]
