"""Stats are emitted in the order of their declarations, with the first place that was counted."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lanescope.common.stat_tally import StatTally
from lanescope.trace import StatSpec, TimeBase, TraceBuilder

SPECS = tuple(StatSpec(f"lamp_{letter}", "notice", letter, silent="a test") for letter in "abc")
NAMES = (*(spec.name for spec in SPECS), "truncated")


def emitted(tally, *, zero=0):
    builder = TraceBuilder(TimeBase(), stats=SPECS)
    builder.input(capture="a", path="a", size=0, sha256="", family="lamp", format="lamp")
    builder.add_bytes(decoded=0)
    tally.emit(builder, 0, zero=zero)
    columns = ("name", "track_id", "count", "first_offset", "first_ts")
    return [tuple(row[name] for name in columns) for row in builder.finish().stats.rows()]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(NAMES),
            st.integers(0, 2),
            st.sampled_from([None, 1, 2]),
            st.sampled_from([None, 7, 8]),
            st.sampled_from([None, 100, 200]),
        )
    )
)
def test_counts_add_up_and_the_first_place_is_kept(calls):
    tally = StatTally(SPECS)
    expected: dict[tuple, list] = {}
    for name, count, track, offset, ts in calls:
        tally.add(name, count, offset=offset, ts=ts, track=track)
        if count:
            expected.setdefault((name, track), [0, offset, None if ts is None else ts - 50])[0] += count
    rows = [(name, track, *found) for (name, track), found in expected.items()]
    assert emitted(tally, zero=50) == sorted(rows, key=lambda row: NAMES.index(row[0]))


ROWS = st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=20)


@given(ROWS, st.booleans(), st.booleans())
def test_rows_are_counted_like_one_call_for_each(rows, has_tracks, as_numbers):
    mask = np.array([is_counted for is_counted, _ in rows], np.bool_)
    track = np.array([track for _, track in rows], np.int64)
    offset = np.arange(len(rows)) * 16
    one_by_one, at_once = StatTally(SPECS), StatTally(SPECS)
    for row in np.flatnonzero(mask).tolist():
        of = int(track[row]) if has_tracks else None
        one_by_one.add("lamp_b", offset=16 * row, ts=1000 - row, track=of)
    at_once.add_rows(
        "lamp_b",
        np.flatnonzero(mask) if as_numbers else mask,
        offset=offset,
        ts=lambda row: 1000 - row,
        track=track if has_tracks else None,
    )
    assert sorted(emitted(at_once)) == sorted(emitted(one_by_one))


def test_the_first_of_numbered_rows_is_the_one_named_first():
    tally = StatTally(SPECS)
    tally.add_rows("lamp_a", np.array([3, 1]), offset=np.array([0, 10, 20, 30]))
    assert emitted(tally) == [("lamp_a", None, 2, 30, None)]


def test_of_calls_in_another_order_than_the_input_the_lowest_offset_is_the_place():
    tally = StatTally(SPECS)
    tally.add("lamp_a", 2, offset=80, ts=5)
    tally.add_rows("lamp_a", np.array([False, True]), offset=np.array([8, 16]), ts=np.array([900, 901]), by_offset=True)
    tally.add("lamp_a", offset=24, ts=1, by_offset=True)
    tally.add("lamp_a", by_offset=True)
    tally.add("lamp_a", offset=0, ts=2)
    assert emitted(tally) == [("lamp_a", None, 6, 16, 901)]
