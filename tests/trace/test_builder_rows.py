"""What a builder makes of pairs, evidence, bytes and dropped units."""

from __future__ import annotations

import numpy as np
import pytest

from lanescope.common.pairing import pair_fifo
from lanescope.errors import InternalError
from lanescope.trace import Flag, StatSpec, TimeBase, TraceBuilder

UNPAIRED = StatSpec("lamp_unpaired", "notice", "a record without a partner", finding="LS401")


@pytest.fixture
def builder():
    made = TraceBuilder(TimeBase(), stats=(UNPAIRED,))
    made.input(capture="a", path="a", size=96, sha256="", family="lamp", format="lamp")
    made.input(capture="a", path="b", size=10, sha256="", family="lamp", format="lamp")
    return made


def rows(table, *names):
    return [tuple(row[name] for name in names) for row in table.rows()]


def test_pairs_become_slices_and_say_what_is_not_known_of_them(builder):
    lanes = np.array([builder.track(name, kind="lane", role="lamp") for name in "abc"])
    lamp = np.array([0, 0, 1, 2, 2, 1, 0, 2])
    is_end = np.array([False, True, False, False, False, True, True, True])
    ts = np.array([0, 100, 200, 300, 400, 150, 500, 600])
    pairs = pair_fifo(lamp, is_end)
    slices = builder.add_pairs(pairs, lanes[lamp], ts, ts // 10, name="on", unpaired=UNPAIRED.name)
    builder.add_bytes(decoded=96)
    builder.add_bytes(decoded=10, input_id=1)
    trace = builder.finish()
    assert slices.tolist() == [0, 1, 2, 3]
    ambiguous = Flag.INFERRED_IDENTITY
    columns = ("track_id", "ts", "dur", "ts_ticks", "dur_ticks", "flags", "quality", "last_known_ts")
    assert rows(trace.slices, *columns) == [
        (0, 0, 100, 0, 10, 0, "exact", None),
        (1, 200, None, 20, None, Flag.NEGATIVE_DURATION, "exact", None),
        (2, 300, 300, 30, 30, ambiguous, "inferred", None),
        (2, 400, None, 40, None, ambiguous | Flag.UNFINISHED, "inferred", 600),
    ]
    for name in ("dur", "dur_ticks", "last_known_ts"):  # sums over all rows count on it
        assert not trace.slices.values(name)[~trace.slices.valid(name)].any()
    assert rows(trace.stats, "name", "count", "first_ts") == [("lamp_unpaired", 1, 500)]


def test_pairs_that_are_cut_are_truncated(builder):
    lane = builder.track("a", kind="lane", role="lamp")
    cut = np.array([False, False, True, False])
    pairs = pair_fifo(np.zeros(4, int), np.zeros(4, np.bool_), cut_before=cut)
    ts = np.array([0, 30, 50, 60])
    builder.add_pairs(pairs, np.full(4, lane), ts, name="on", category="c", flags=int(Flag.AFTER_GAP))
    flags = Flag.AFTER_GAP | Flag.INFERRED_IDENTITY
    assert rows(builder.batch().slices, "ts", "dur", "ts_ticks", "flags") == [
        (0, 30, None, flags | Flag.TRUNCATED),
        (30, 0, None, flags | Flag.TRUNCATED),
        (50, None, None, flags | Flag.UNFINISHED),
        (60, None, None, flags | Flag.UNFINISHED),
    ]


def test_no_pairs_are_no_slices(builder):
    none = np.empty(0, np.int64)
    assert builder.add_pairs(pair_fifo(none, none > 0), none, none, none, name="on").tolist() == []
    assert not len(builder.batch().slices)


def test_coverage_of_many_lanes(builder):
    lanes = np.array([builder.track(name, kind="lane", role="lamp") for name in "ab"])
    ts = np.array([5, 20, 90])
    builder.add_coverage(lanes, ts[:1], ts[-1:])
    builder.add_coverage(lanes, ts[:0], ts[:0])
    builder.add_coverage(lanes, ts[:2], ts[1:])
    builder.add_coverage(int(lanes[0]), 3, 4)
    assert rows(builder.batch().coverage, "track_id", "ts", "dur") == [
        (0, 5, 85),
        (1, 5, 85),
        (0, 5, 15),
        (1, 20, 70),
        (0, 3, 1),
    ]


def test_bytes_that_are_not_decoded_are_lost(builder):
    assert builder.add_bytes(decoded=80, padding=10) == 6
    assert builder.add_bytes(decoded=10, input_id=1) == 0
    builder.add_dropped(unit="record", unit_bytes=8, recorded=9, dropped=3)
    accounts = builder.finish().accounting
    assert rows(accounts, "input_id", "scope", "unit", "total", "decoded", "padding", "lost") == [
        (0, "input", "byte", 96, 80, 10, 6),
        (1, "input", "byte", 10, 10, 0, 0),
        (0, "producer", "record", 12, 9, 0, 3),
    ]


@pytest.mark.parametrize("counted", [{"decoded": 97}, {"decoded": 90, "lost": 5}, {"decoded": 90, "lost": 7}])
def test_bytes_that_do_not_add_up_are_refused(builder, counted):
    builder.add_bytes(**counted)
    builder.add_bytes(decoded=10, input_id=1)
    with pytest.raises(InternalError, match="accounting of input 0"):
        builder.finish()
