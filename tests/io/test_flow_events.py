"""What flows do at events: the native functions against the same by hand, one flow after the other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from lanescope._native import core

TIMES = st.integers(0, 6)


def int64(values):
    return np.array(values, np.int64)


@st.composite
def drawings(draw):
    """Spans (begin, length, whether the end is known), points, and flows between numbers of events."""
    spans = draw(st.lists(st.tuples(TIMES, st.integers(0, 3), st.booleans()), min_size=1, max_size=6))
    points = draw(st.lists(TIMES, max_size=4))
    event = st.integers(0, len(spans) + len(points) - 1)
    return spans, points, draw(st.lists(st.tuples(event, event), max_size=12))


@given(drawings())
@settings(max_examples=some(300))
def test_states_and_groups(drawing):
    spans, points, flows = drawing
    begins = [begin for begin, _, _ in spans] + points
    lasts = [length > 0 and known for _, length, known in spans] + [False] * len(points)
    source, destination = (int64([flow[side] for flow in flows]) for side in (0, 1))
    columns = int64([row[0] for row in spans]), int64([row[1] for row in spans])
    known = np.array([row[2] for row in spans], np.uint8)
    state = np.empty(len(flows), np.uint8)
    tied = core.flows_states(source, destination, *columns, known, int64(points), state)
    expected = []
    for left, arrived in flows:
        if begins[left] != begins[arrived]:
            expected.append(int(begins[left] < begins[arrived]))
        else:
            expected.append(2 if lasts[arrived] else 3)
    assert (state.tolist(), tied) == (expected, expected.count(3))

    for first, count in ((0, len(spans)), (len(spans), len(points))):
        start, number, end = core.flows_by_event(source, destination, state, first, count)
        found = [
            list(zip(number[low:high].tolist(), end[low:high].tolist(), strict=True))
            for low, high in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)
        ]
        drawn = [flow for flow, how in enumerate(expected) if how in (1, 2)]
        wanted = [
            [(flow + 1, 0) for flow in drawn if flows[flow][0] == event]
            + [(flow + 1, expected[flow]) for flow in drawn if flows[flow][1] == event]
            for event in range(first, first + count)
        ]
        assert found == (wanted if any(wanted) else [])


@given(drawings())
@settings(max_examples=some(300))
def test_running_destinations(drawing):
    spans, _, flows = drawing
    begins = int64([begin for begin, _, _ in spans])
    source, destination = (int64([flow[side] % (len(spans) + 1) - 1 for flow in flows]) for side in (0, 1))
    left, arrived = int64([3] * len(flows)), int64([5 - flow % 3 for flow in range(len(flows))])
    found = core.flows_running(source, destination, left, arrived, begins).tolist()
    expected = []
    for flow in range(len(flows)):
        begin = begins[source[flow]] if source[flow] >= 0 else left[flow]
        if destination[flow] >= 0 and begins[destination[flow]] < begin <= arrived[flow]:
            expected.append(flow)
    assert found == expected


def test_events_that_do_not_exist_are_refused():
    one, none, byte = int64([0]), int64([]), np.zeros(1, np.uint8)
    for bad in (int64([-1]), int64([1])):
        with pytest.raises(ValueError, match="outside the events"):
            core.flows_states(bad, one, one, one, byte[:0], none, byte)
    with pytest.raises(ValueError, match="outside the slices"):
        core.flows_running(one, int64([1]), none, one, one)
    with pytest.raises(ValueError, match="outside the slices"):
        core.flows_running(int64([-1]), one, none, one, one)
    with pytest.raises(ValueError, match="different lengths"):
        core.flows_by_event(one, none, byte, 0, 1)
