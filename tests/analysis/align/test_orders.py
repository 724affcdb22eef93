"""Orders of moments on different clocks, against simulated clocks whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from lanescope import TimeBase, TraceBuilder
from lanescope.common.clock_order import ClockErrors
from lanescope.trace import Column, Table, Trace
from lanescope.trace.merge import align, merge


def capture(random, host_ticks, off, error, *, name, moments=4):
    """A trace that counts from its own start and once read a counter that others read, ``off`` from the truth."""
    builder = TraceBuilder(TimeBase(epoch_kind="first_event"))
    main = builder.input(
        capture=name, path=name, size=0, sha256=f"{name}{random.integers(1 << 60)}", family="toy", format="v1"
    )
    builder.add_accounting(input_id=main, layer=0, unit="byte", unit_bytes=1, total=0, decoded=0)
    clock = builder.clock(name="counter", device="node", frequency=10**9)
    builder.anchor(clock_id=clock, ticks=host_ticks + off, ts=0, error_ns=error)
    lane = builder.track("lane", kind="lane", role="queue", input_id=main)
    builder.append(
        "slices", track_id=lane, ts=np.sort(random.integers(0, 1_000, moments)), dur=np.ones(moments, int), name="x"
    )
    return builder.finish()


def test_no_wrong_order_of_merged_captures_is_decided():
    """Two captures read one counter, each within its error: 1,000 cases, all pairs of their slices."""
    random = np.random.default_rng(7)
    wrong = undecided = expected = total = 0
    for _ in range(1_000):
        errors = random.integers(1, 150, 2)
        starts = 10_000 + random.integers(0, 300, 2)
        traces = [
            capture(random, int(start), int(random.integers(-error, error + 1)), int(error), name=name)
            for start, error, name in zip(starts, errors, "ab", strict=True)
        ]
        truth = [trace.slices.values("ts") + start for trace, start in zip(traces, starts, strict=True)]
        merged = merge(traces)
        lanes, ts = merged.slices.values("track_id"), merged.slices.values("ts")
        a, b = (at.ravel() for at in np.meshgrid(np.arange(4), 4 + np.arange(4)))
        found = ClockErrors(merged).order(lanes[a], ts[a], lanes[b], ts[b])
        real = np.sign(truth[0][a] - truth[1][b - 4])
        wrong += int(np.count_nonzero((found != 0) & (found != real)))
        undecided += int(np.count_nonzero(found == 0))
        expected += int(np.count_nonzero(np.abs(ts[b] - ts[a]) <= errors.sum()))
        total += len(found)
    assert wrong == 0
    assert undecided == expected  # no more than the width of the interval asks for
    assert 0.1 < undecided / total < 0.5


def test_the_error_of_a_place_is_in_the_merged_trace():
    random = np.random.default_rng(1)
    parts = [capture(random, 10_000, 0, error, name=name) for error, name in ((3, "a"), (4, "b"), (None, "c"))]
    assert [place.error_ns for place in align(parts)] == [0, 7, None]
    merged = merge(parts)
    stats = {row["name"]: row["count"] for row in merged.stats.rows()}
    assert stats == {"placement_error": 7, "unknown_placement": 1}
    lanes = np.flatnonzero(merged.tracks.values("kind") == "lane")
    zero, late = np.zeros(1, np.int64), np.full(1, 8)
    errors = ClockErrors(merged)
    a, b, c = (np.array([lane]) for lane in lanes)
    assert errors.order(a, zero, b, late).tolist() == [-1]
    assert errors.order(b, late, a, zero).tolist() == [1]
    assert errors.order(a, zero, b, late - 1).tolist() == [0]
    assert errors.order(a, zero, c, late * 10**15).tolist() == [0]
    assert errors.order(c, zero, c, late - 7).tolist() == [-1]  # one clock: always known


@pytest.mark.parametrize("drift_ppm", [-40.0, 0.0, 40.0])
def test_no_wrong_order_of_placed_clocks_is_decided(drift_ppm):
    """Launches and waits place a device's clock: orders of its work and the calls of the host are true or undecided."""
    random = np.random.default_rng(11)
    wrong = undecided = least = most = 0
    for _ in range(334):
        trace, real = launched(random, int(random.integers(-10_000_000, 10_000_000)), drift_ppm)
        placed = trace.align().place()
        (error,) = set(placed.anchors.values("error_ns").tolist())
        lanes, ts = placed.slices.values("track_id"), placed.slices.values("ts")
        a, b = np.arange(20, 40), np.arange(40, 60)  # each work, and the mark of the host around its begin
        found = ClockErrors(placed).order(lanes[a], ts[a], lanes[b], ts[b])
        wrong += int(np.count_nonzero((found != 0) & (found != np.sign(real[a] - real[b]))))
        apart = np.abs(ts[a] - ts[b])
        undecided += int(np.count_nonzero(found == 0))
        least += int(np.count_nonzero(apart <= error))
        most += int(np.count_nonzero(apart <= error + 5))  # a step of the clock, and drift beyond its anchors
    assert wrong == 0
    assert least <= undecided <= most
    assert 0.05 < undecided / (334 * 20) < 0.95


def launched(random, lag, drift_ppm, launches=20):
    """A host that launches work and waits for it, and the true times of its calls, of the work and of marks."""
    builder = TraceBuilder(TimeBase())
    clock = builder.clock(name="counter", device="chip", frequency=None)
    host = builder.track("thread", kind="lane", role="host_thread", nesting="nested")
    queue = builder.track("queue", kind="lane", role="queue", clock_id=clock)
    launch = np.arange(launches) * 10_000
    begin = launch + 500 + random.exponential(1_000, launches).astype(np.int64)
    wait = begin + 500 + random.exponential(1_000, launches).astype(np.int64)
    shown = begin + lag + np.round(begin * drift_ppm / 1e6).astype(np.int64)
    ones, rows = np.ones(launches, np.int64), np.arange(launches)
    builder.append("slices", track_id=host, ts=launch, dur=ones, name="launch")
    builder.append("slices", track_id=queue, ts=shown, dur=ones, name="work")
    other = builder.track("other thread", kind="lane", role="host_thread")
    mark = begin + random.integers(-1_000, 1_000, launches)
    builder.append("slices", track_id=other, ts=mark, dur=ones, name="mark")
    for kind, (src, src_ts, first), (dst, dst_ts, last) in (
        ("submit", (host, launch, rows), (queue, shown, rows + launches)),
        ("signal", (queue, shown, rows + launches), (host, wait, rows)),
    ):
        builder.append(
            "flows", kind=kind, src_track_id=src, src_ts=src_ts, dst_track_id=dst, dst_ts=dst_ts,
            src_slice_id=first, dst_slice_id=last,
        )  # fmt: skip
    return builder.finish(), np.concatenate([launch, begin, mark])


def test_lanes_that_could_not_be_placed_have_no_order_to_others():
    random = np.random.default_rng(5)
    trace, _ = launched(random, 500, 0.0)
    columns = {name: trace.flows.column(name) for name in trace.flows.spec.names}
    columns["dst_ts"] = Column.array(np.where(np.arange(40) == 7, -60_000, trace.flows.values("dst_ts")))
    contradictory = Trace(trace.time, dict(trace.tables()) | {"flows": Table(trace.flows.spec, columns)})
    placed = contradictory.align().place()
    assert [row["count"] for row in placed.stats.rows() if row["name"] == "unplaced_lanes"] == [1]
    lanes, zero = placed.slices.values("track_id"), np.zeros(1, np.int64)
    assert ClockErrors(placed).order(lanes[:1], zero, lanes[20:21], zero + 10**15).tolist() == [0]
    assert ClockErrors(placed).order(lanes[:1], zero, lanes[:1], zero + 1).tolist() == [-1]
