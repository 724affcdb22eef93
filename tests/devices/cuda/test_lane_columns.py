"""Columns of lanes in few bytes: what comes out is what went in."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.cuda.helpers import decode, simulate
from devices.cuda.test_large import differing
from lanescope.devices.cuda.emit import batches, tracks
from lanescope.devices.cuda.formats.lane_columns import LaneColumns, end_to_end, shared

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
COLUMN = st.one_of(
    st.lists(INT64, max_size=20),
    st.tuples(INT64, st.lists(st.integers(0, 70_000), max_size=20)).map(
        lambda made: [min(made[0] + value, (1 << 63) - 1) for value in made[1]]
    ),
    st.tuples(INT64, st.integers(0, 20)).map(lambda made: [made[0]] * made[1]),
)


@pytest.mark.parametrize("parts", [([True], [True, True]), ([], [False]), ([True], [], [False])])
def test_parts_of_flags_are_flags(parts):
    """They choose rows; as numbers they would be taken for places of rows."""
    joined = end_to_end([np.array(part, np.bool_) for part in parts])
    assert joined.dtype == np.bool_
    assert joined.tolist() == [flag for part in parts for flag in part]


@given(COLUMN)
def test_a_column_is_what_was_stored(values):
    column = np.array(values, np.int64)
    stored = LaneColumns({"a": column})
    assert stored["a"].dtype == np.int64
    assert stored["a"].tolist() == values
    assert shared(column).tolist() == values
    column[:] = 5
    assert stored["a"].tolist() == values


@given(st.lists(COLUMN, min_size=1, max_size=4))
def test_parts_of_a_column_follow_each_other(parts):
    joined = end_to_end([np.array(part, np.int64) for part in parts])
    assert joined.dtype == np.int64
    assert joined.tolist() == [value for part in parts for value in part]


def test_a_column_takes_no_more_bytes_than_its_range():
    lanes = np.arange(1000, dtype=np.int64)
    columns = {"one": lanes * 0 + (1 << 60), "byte": (1 << 60) + lanes % 256, "short": lanes, "word": lanes << 22}
    stored = LaneColumns(columns)
    assert [stored._stored[name][1].dtype.itemsize for name in columns] == [1, 1, 2, 4]
    assert stored._stored["one"][1].strides == (0,)


@pytest.mark.parametrize("layout", ["tirx", "ls2", "proton"])
def test_tracks_that_are_computed_when_they_are_read_are_the_same(layout, monkeypatch):
    simulation = simulate(3, layout=layout, blocks=12, tiles=20)
    data = next(iter(simulation.files.values()))
    known = decode(data)
    monkeypatch.setattr(tracks, "_MANY", 1)
    assert differing(decode(data), known) == ["inputs"]  # their paths


def test_columns_that_were_not_read_do_not_keep_the_builder(monkeypatch):
    data = next(iter(simulate(3, layout="tirx", blocks=12, tiles=20).files.values()))
    kept = []

    class Seen(batches.TraceAssembly):
        def grow(self, *args):
            kept.extend(map(weakref.ref, (self, self.builder)))
            super().grow(*args)

    monkeypatch.setattr(batches, "TraceAssembly", Seen)
    gc.collect()
    gc.disable()
    try:
        assert len(decode(data).slices)
        assert [reference() for reference in kept] == [None, None]
    finally:
        gc.enable()
