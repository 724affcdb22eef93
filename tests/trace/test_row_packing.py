"""Rows for overlapping slices: against a slow, obvious reference, and against what a row must promise."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanescope import testing
from lanescope._native import core
from lanescope.errors import InternalError, UsageError
from lanescope.trace import Column, Table, TimeBase, Trace, TraceBuilder
from lanescope.trace.row_packing import FOREVER, Intervals, RowPacking, depth, pack_rows, rows_of

NESTED_ROWS, MAX_DEPTH = 8, 480

# (begin, length or None); few different times, so that everything meets everything.
some = st.lists(st.tuples(st.integers(0, 12), st.none() | st.integers(0, 6)), max_size=30)


def trace_of(*lanes, nesting="disjoint", gaps=()) -> Trace:
    """A trace whose lanes hold the given (begin, length), in that order; lanes take turns in the table."""
    builder = TraceBuilder(TimeBase())
    tracks = [builder.track(f"lane {i}", kind="lane", role="core", nesting=nesting) for i in range(len(lanes))]
    rows = [(i, track, *slice_) for track, lane in zip(tracks, lanes, strict=True) for i, slice_ in enumerate(lane)]
    for _, track, ts, dur in sorted(rows, key=lambda row: row[0]):
        builder.append("slices", track_id=track, ts=ts, dur=dur, name="a")
    for ts, dur in gaps:
        builder.append("gaps", track_id=tracks[0], ts=ts, dur=dur, cause="overrun")
    return builder.finish()


def ends(items):
    return [(begin, FOREVER if length is None else begin + length) for begin, length in items]


def reference(items, nesting) -> list[int]:
    """Return the row of each interval of one lane, the slow way."""
    spans = ends(items)
    if nesting == "nested":
        order = sorted(range(len(spans)), key=lambda i: (spans[i][0], -spans[i][1], i))
    else:
        order = sorted(range(len(spans)), key=lambda i: (spans[i][0], spans[i][0] != spans[i][1], i))
    rows: list[list[int]] = []
    found = [-1] * len(spans)
    for i in order:
        begin, end = spans[i]
        for number, row in enumerate(rows):
            still_open = [spans[j] for j in row if spans[j][1] > begin]
            if nesting == "nested" and number < NESTED_ROWS:
                fits = all(end <= other_end for _, other_end in still_open) and len(still_open) < MAX_DEPTH
            else:
                fits = not still_open
            if fits:
                break
        else:
            number = len(rows)
            rows.append([])
        rows[number].append(i)
        found[i] = number
    return found


def lanes_of(placement: RowPacking):
    for track, (start, stop) in zip(placement.row_track.tolist(), pairwise(placement.row_start.tolist()), strict=True):
        yield track, placement.order[start:stop].tolist()


@given(st.permutations(range(7)))
def test_slices_lie_where_they_lie_in_any_order_of_the_table(order):
    trace = trace_of([(0, 9), (2, 3), (12, 4)], [(1, 2), (5, 5)], [], [(3, 1), (4, 6)], nesting="nested")
    slices = trace.slices.take(np.argsort(trace.slices.values("track_id"), kind="stable"))
    by_lane = pack_rows(slices, trace.tracks)
    mixed = pack_rows(slices.take(np.array(order)), trace.tracks)
    assert by_lane.order.tolist() == np.array(order)[mixed.order].tolist() == list(range(7))
    for one in (by_lane, mixed):
        assert one.begin.tolist() == [0, 2, 12, 1, 5, 3, 4]
        assert one.end.tolist() == [9, 5, 16, 3, 10, 4, 10]
        assert one.row.tolist() == [0] * 7
        assert one.latest_ends(one.row_start[:-1]).tolist() == [16, 10, 10]


@pytest.mark.parametrize("nesting", ["disjoint", "nested", "free"])
@given(items=some)
def test_rows_are_those_of_the_reference(nesting, items):
    trace = trace_of(items, nesting=nesting)
    assert pack_rows(trace.slices, trace.tracks).row.tolist() == reference(items, nesting)


@given(testing.traces(max_slices=20), st.booleans())
def test_a_placement_keeps_its_promises(trace, with_gaps):
    gaps = trace.gaps if with_gaps else None
    placement = pack_rows(trace.slices, trace.tracks, gaps)
    tables = [trace.slices, *([gaps] if gaps is not None else [])]
    items = [(row["track_id"], row["ts"], row["dur"]) for table in tables for row in table.rows()]
    assert sorted(placement.order.tolist()) == list(range(len(items)))
    spans = ends([(ts, dur) for _, ts, dur in items])
    assert [(int(b), int(e)) for b, e in zip(placement.begin, placement.end, strict=True)] == [
        spans[i] for i in placement.order.tolist()
    ]
    disciplines = trace.tracks["nesting"].tolist()
    depths = depth(placement).tolist()
    rows_seen: dict[int, list[int]] = {}
    for track, members in lanes_of(placement):
        assert members
        assert {items[i][0] for i in members} == {track}
        (row,) = {int(placement.row[i]) for i in members}
        rows_seen.setdefault(track, []).append(row)
        stack: list[int] = []
        for i in members:  # as a viewer reads it: what is over ends, then this begins
            begin, end = spans[i]
            while stack and spans[stack[-1]][1] <= begin:
                stack.pop()
            if stack:
                assert disciplines[track] == "nested"
                assert end <= spans[stack[-1]][1]
                assert begin >= spans[stack[-1]][0]
            assert depths[i] == len(stack)
            stack.append(i)
        begins = [spans[i][0] for i in members]
        assert begins == sorted(begins)
    for track, count in enumerate(placement.rows.tolist()):
        assert rows_seen.get(track, []) == list(range(count))


def runs_with_empty_ones(track, lanes):
    """Return all lanes, and how many of the intervals each has; those without any have no track."""
    counts = np.bincount(np.array(track, np.int64), minlength=lanes).astype(np.int64)
    return np.where(counts > 0, np.arange(lanes), -1), counts


def placed_both_ways(track, begin, length, nested):
    """What the general placement finds, and what the one for intervals that come lane after lane does."""
    columns = (*(np.array(column, np.int64) for column in (track, begin, length)), np.empty(0, np.uint8))
    nests = np.array(nested, np.uint8)
    count = len(track)
    order, begins, ends = (np.empty(count, np.int64) for _ in range(3))
    row, rows, rows_too = np.empty(count, np.int32), np.empty(len(nests), np.int32), np.empty(len(nests), np.int32)
    start = core.layout_place(*columns, nests, order, row, begins, ends, rows)
    found = core.layout_lane_after_lane(*columns, nests, rows_too, np.empty(0, np.int64))
    if found is not None:
        lanes, counts = runs_with_empty_ones(track, len(nests))
        again = core.layout_lane_after_lane(lanes, *columns[1:], nests, rows_too, counts)
        assert [column.tolist() for column in again] == [column.tolist() for column in found]
    return (order.tolist(), rows.tolist(), start.tolist(), row), found, rows_too.tolist()


@pytest.mark.parametrize("tied", [(), (0,), (70,), (3, 70)])
def test_many_intervals_are_placed_by_several_threads(tied):
    """Lanes of so many intervals that threads share them; on some, an outer interval comes behind its inner one."""
    lanes, each = 80, 4000
    track = np.repeat(np.arange(lanes), each)
    begin = np.tile(10 * np.arange(each), lanes)
    length = np.full(lanes * each, 10)
    for lane in tied:
        at = lane * each + 17
        begin[at : at + 2], length[at : at + 2] = begin[at], (3, 20)
        begin[at + 2] = begin[at] + 20
        length[at + 2] = 1
    (order, rows, start, row), found, rows_too = placed_both_ways(track, begin, length, [1] * lanes)
    assert found is not None
    moved, start_too = found
    assert bool(len(moved)) == bool(tied)
    assert (moved.tolist() or list(range(len(track)))) == order
    assert (rows_too, start_too.tolist()) == (rows, start)
    assert not row.any()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(0, 4)), max_size=14), st.booleans())
def test_intervals_that_come_by_lane_are_placed_as_all_others_are(items, sort):
    by_lane = sorted(items) if sort else items
    track, begin, length = zip(*by_lane, strict=True) if by_lane else ((), (), ())
    (order, rows, start, row), found, rows_too = placed_both_ways(track, begin, length, [1, 0, 1])
    if found is None:
        return
    moved, start_too = found
    assert (moved.tolist() or list(range(len(items)))) == order
    assert (rows_too, start_too.tolist()) == (rows, start)
    assert not row.any()
    assert [begin[i] for i in order] == list(begin)  # only those that begin together change places


def test_stacks_that_come_by_lane_need_no_order():
    # A stack, then the next lane; nothing begins with what it lies in.
    _, found, _ = placed_both_ways([0, 0, 0, 2], [1, 2, 5, 0], [9, 2, 0, 4], [1, 0, 1])
    assert [part.tolist() for part in found] == [[], [0, 3, 4]]
    # An inner one of no length came before its outer one.
    _, found, _ = placed_both_ways([0, 0, 0], [1, 5, 5], [9, 0, 1], [1, 0, 1])
    assert [part.tolist() for part in found] == [[0, 2, 1], [0, 3]]


@pytest.mark.parametrize(
    ("track", "begin", "length"),
    [
        ([1, 0], [0, 0], [1, 1]),  # the lanes do not rise
        ([0, 0], [3, 1], [1, 1]),  # time falls
        ([1, 1], [0, 1], [4, 1]),  # two at a time where nothing nests
        ([0, 0], [0, 1], [2, 4]),  # they cross
        ([0] * 481, [0] * 481, [9] * 481),  # deeper than a row can be
    ],
)
def test_what_needs_more_is_placed_by_the_general_rule(track, begin, length):
    assert placed_both_ways(track, begin, length, [1, 0, 1])[1] is None


@given(some, st.randoms(use_true_random=False))
def test_rows_of_a_serial_lane_are_as_few_as_can_be(items, random):
    spans = ends(items)
    random.shuffle(items)
    trace = trace_of(items)
    # Half-open, and a moment counts only strictly inside: at its own time nothing else needs to run before or after.
    needed = 0
    for begin, end in spans:
        others = sum(b <= begin < e for b, e in spans if b < e) if begin < end else 0
        inside = sum(b < begin < e for b, e in spans) + 1 if begin == end else 0
        needed = max(needed, others, inside)
    assert int(pack_rows(trace.slices, trace.tracks).rows[0]) == needed


def test_what_meets_at_one_time():
    # On a serial lane: END before BEGIN, moments between them, all on one row.
    trace = trace_of([(0, 5), (5, 3), (5, 0), (8, 0), (8, 0), (8, 2)])
    placement = pack_rows(trace.slices, trace.tracks)
    assert placement.rows.tolist() == [1]
    assert placement.order.tolist() == [0, 2, 1, 3, 4, 5]
    # On a stack: outer first, a moment inside what begins with it.
    trace = trace_of([(5, 0), (5, 1), (0, 5), (5, 3)], nesting="nested")
    placement = pack_rows(trace.slices, trace.tracks)
    assert placement.order.tolist() == [2, 3, 1, 0]
    assert depth(placement).tolist() == [2, 1, 0, 0]
    # A serial lane shows no hierarchy that the model does not know.
    trace = trace_of([(0, 9), (2, 3), (4, 0)])
    assert pack_rows(trace.slices, trace.tracks).row.tolist() == [0, 1, 2]


def test_open_slices_last_for_ever():
    trace = trace_of([(0, None), (3, 2), (9, None)])
    assert pack_rows(trace.slices, trace.tracks).row.tolist() == [0, 1, 1]
    trace = trace_of([(0, None), (3, 2), (9, None)], nesting="nested")
    placement = pack_rows(trace.slices, trace.tracks)
    assert placement.row.tolist() == [0, 0, 0]
    assert depth(placement).tolist() == [0, 1, 1]


def test_gaps_are_placed_with_the_slices_and_behind_them_at_one_time():
    trace = trace_of([(0, 5), (9, 5)], gaps=[(5, 4), (9, 2), (30, None)])
    placement = pack_rows(trace.slices, trace.tracks, trace.gaps)
    assert placement.row.tolist() == [0, 0, 0, 1, 0]
    assert placement.order.tolist() == [0, 2, 1, 4, 3]
    assert pack_rows(trace.slices, trace.tracks).rows.tolist() == [1]


@given(some, st.integers(0, 30), st.sampled_from(["disjoint", "nested", "free"]))
def test_lanes_do_not_know_each_other(items, cut, nesting):
    together = trace_of(items[:cut], items[cut:], nesting=nesting)
    placement = pack_rows(together.slices, together.tracks)
    for lane, mine in enumerate((items[:cut], items[cut:])):
        alone = trace_of(mine, nesting=nesting)
        members = np.flatnonzero(together.slices["track_id"] == lane)
        assert placement.row[members].tolist() == pack_rows(alone.slices, alone.tracks).row.tolist()


@pytest.mark.parametrize("nesting", ["disjoint", "nested", "free"])
@pytest.mark.parametrize("shape", ["all at once", "stairs", "nested", "all open", "backwards"])
def test_hostile_lanes_are_placed_in_time(nesting, shape):
    """300 000 slices: a quadratic step would not come to an end."""
    count = 300_000
    at = np.arange(count)
    ts, dur = {
        "all at once": (np.zeros(count, np.int64), np.full(count, 5)),
        "stairs": (at, np.full(count, count)),
        "nested": (at, 2 * (count - at)),
        "all open": (at, np.zeros(count, np.int64)),
        "backwards": (at[::-1], at + 1),
    }[shape]
    builder = TraceBuilder(TimeBase())
    track = builder.track("lane", kind="lane", role="core", nesting=nesting)
    known = np.full(count, shape != "all open")
    builder.append("slices", track_id=track, ts=ts, dur=dur, dur_valid=known, name="a")
    trace = builder.finish()
    placement = pack_rows(trace.slices, trace.tracks)
    assert np.array_equal(np.sort(placement.order), at)
    assert int(depth(placement).max()) < MAX_DEPTH
    rows = np.diff(placement.row_start)
    assert int(rows.min()) > 0
    if nesting != "nested":
        inside = np.repeat(np.arange(len(rows)), rows)
        same = inside[1:] == inside[:-1]
        assert bool((placement.begin[1:][same] >= placement.end[:-1][same]).all())


def test_nothing_is_placed_where_there_is_nothing():
    trace = trace_of([], [])
    placement = pack_rows(trace.slices, trace.tracks, trace.gaps)
    assert placement.rows.tolist() == [0, 0]
    assert placement.row_start.tolist() == [0]
    assert depth(placement).tolist() == []


@pytest.mark.parametrize(
    ("track", "ts", "dur", "error", "message"),
    [
        (1, 0, 1, InternalError, "interval 1"),
        (-1, 0, 1, InternalError, "interval 1"),
        (0, 5, -1, UsageError, "negative length"),
        (0, (1 << 63) - 3, 2, UsageError, "later than 64 bits count"),
    ],
)
def test_what_cannot_be_placed_is_refused(track, ts, dur, error, message):
    builder = TraceBuilder(TimeBase())
    builder.track("lane", kind="lane", role="core")
    builder.append("slices", track_id=[0, track], ts=[0, ts], dur=[0, dur], name="a")
    trace = builder.finish()
    with pytest.raises(error, match=message):
        pack_rows(trace.slices, trace.tracks)


@given(st.lists(st.integers(-3, 20), unique=True), st.lists(st.integers(-5, 25)), st.booleans())
def test_rows_of_ids(ids, wanted, dense):
    ids = list(range(len(ids))) if dense else ids
    found = rows_of(np.array(ids, np.int64), np.array(wanted, np.int64)).tolist()
    assert found == [ids.index(each) if each in ids else -1 for each in wanted]


def test_tracks_may_have_been_filtered():
    trace = trace_of([(0, 5)], [(0, 5), (3, 5)], [(1, 1)])
    kept = trace.tracks.take(np.array([2, 1]))
    slices = trace.slices.where(trace.slices["track_id"] > 0)
    placement = pack_rows(slices, kept)
    assert placement.rows.tolist() == [1, 2]
    assert isinstance(kept, Table)


def test_intervals_of_two_tables_have_the_tracks_of_both():
    """Tracks are kept by runs, which one table can be asked for by itself only."""
    trace = trace_of([(0, 1)] * 4, [(0, 1)] * 3)
    slices = [trace.slices.where(trace.slices.values("track_id") == track) for track in range(2)]
    parts = []
    for track, table in enumerate(slices):
        runs = np.array([track]), np.array([len(table)])
        columns = {name: table.column(name) for name in table.spec.names}
        parts.append(
            Table(table.spec, columns | {"track_id": Column.repeated(runs, table.column("track_id").read_once)})
        )
    assert Intervals.of(trace.tracks, parts[1]).track.tolist() == [1] * 3
    assert Intervals.of(trace.tracks, *parts).track.tolist() == [0] * 4 + [1] * 3
