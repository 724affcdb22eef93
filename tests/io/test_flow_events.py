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

    given = drawing_numbers(flows)
    numbers = np.array(given if len(flows) % 2 else [], np.uint32)
    told = given if len(numbers) else range(1, len(flows) + 1)
    for first, count in ((0, len(spans)), (len(spans), len(points))):
        start, number, end = core.flows_by_event(source, destination, state, numbers, first, count)
        found = [
            list(zip(number[low:high].tolist(), end[low:high].tolist(), strict=True))
            for low, high in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)
        ]
        drawn = [flow for flow, how in enumerate(expected) if how in (1, 2)]
        wanted = [
            [(told[flow], 0) for flow in drawn if flows[flow][0] == event]
            + [(told[flow], expected[flow]) for flow in drawn if flows[flow][1] == event]
            for event in range(first, first + count)
        ]
        assert found == (wanted if any(wanted) else [])


def drawing_numbers(flows):
    """Numbers of flows that do not count up."""
    return [7 * flow % 13 + 1 for flow in range(len(flows))]


@given(drawings(), st.data())
@settings(max_examples=some(300))
def test_numbers_follow_kinds_and_places(drawing, data):
    spans, points, flows = drawing
    begins = [begin for begin, _, _ in spans] + points
    ends = [begin + length if known else None for begin, length, known in spans] + points
    kinds = data.draw(st.integers(1, 3))
    kind = data.draw(st.lists(st.integers(0, kinds - 1), min_size=len(flows), max_size=len(flows)))
    moments = data.draw(st.lists(st.tuples(TIMES, TIMES), min_size=len(flows), max_size=len(flows)))

    def place(event, moment):
        if event >= len(spans) or moment == begins[event]:
            return 0
        return 1 if moment == ends[event] else 2

    group = [
        (kind[flow], *(place(flows[flow][side], moments[flow][side]) for side in (0, 1))) for flow in range(len(flows))
    ]
    every = [(one, left, right) for one in range(kinds) for left in range(3) for right in range(3)]
    sizes, numbers = core.flows_numbered(
        *(int64([flow[side] for flow in flows]) for side in (0, 1)),
        *(int64([moment[side] for moment in moments]) for side in (0, 1)),
        *(int64([row[field] for row in spans]) for field in (0, 1)),
        np.array([row[2] for row in spans], np.uint8),
        int64(points),
        np.array(kind if kinds > 1 else [], np.int32),
        kinds,
    )
    assert sizes.tolist() == [group.count(one) for one in every]
    in_order = sorted(range(len(flows)), key=lambda flow: (group[flow], flow))
    assert [in_order.index(flow) + 1 for flow in range(len(flows))] == numbers.tolist()


def test_there_may_be_any_number_of_kinds():
    kinds = 70_000
    one, none, kind = int64([0, 0]), int64([]), np.array([kinds - 1, 7_282], np.int32)
    sizes, numbers = core.flows_numbered(one, one, one, one, one[:1], one[:1], np.empty(0, np.uint8), none, kind, kinds)
    assert (np.flatnonzero(sizes) // 9).tolist() == [7_282, kinds - 1]
    assert numbers.tolist() == [2, 1]


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
        core.flows_by_event(one, none, byte, np.empty(0, np.uint32), 0, 1)
    for event, kind in ((-1, 0), (1, 0), (0, -1), (0, 2)):
        with pytest.raises(ValueError, match="outside the events, or is of no kind"):
            core.flows_numbered(int64([event]), one, one, one, one, one, byte[:0], none, np.array([kind], np.int32), 2)
    with pytest.raises(ValueError, match="different lengths"):
        core.flows_numbered(one, one, none, one, one, one, byte[:0], none, np.empty(0, np.int32), 1)
