"""Level of detail: columns are exact, and no slice is left out at any zoom."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanescope.view.model.lod import OPACITIES, WIDE, Detail, opacity, rectangles


@st.composite
def drawn(draw):
    """One strip, a window and a width."""
    lengths = st.sampled_from([0, 1, 2, 5, 40, 1000])
    gaps = draw(st.lists(lengths, min_size=1, max_size=60))
    durations = draw(st.lists(lengths, min_size=len(gaps), max_size=len(gaps)))
    begin = np.cumsum(np.array(gaps) + np.array([0, *durations[:-1]]))
    end = begin + np.array(durations)
    last = int(end[-1]) + 1
    since = draw(st.integers(-10, last))
    window = (float(since), float(draw(st.integers(since + 1, last + 20))))
    colour = np.array(draw(st.lists(st.integers(0, 2), min_size=len(gaps), max_size=len(gaps))))
    return begin, end, colour, window, draw(st.integers(1, 300))


def made(begin, end, colour):
    return Detail(begin, end, np.array([0, len(begin)]), colour)


@given(drawn())
def test_every_slice_of_the_window_is_in_exactly_one_rectangle(case):
    begin, end, colour, window, width = case
    found = rectangles(made(begin, end, colour), [0], window, width)[0]
    visible = np.flatnonzero((end > window[0]) & (begin < window[1]))
    assert sum(one.slices for one in found) == len(visible)
    at, per = 0, width / (window[1] - window[0])
    for one in found:
        rows = visible[at : at + one.slices]
        at += one.slices
        assert one.row in rows
        assert end[one.row] - begin[one.row] == (end - begin)[rows].max()
        for left in np.maximum((begin[rows] - window[0]) * per, 0):
            assert one.left <= left + 1e-9
            assert left <= one.right + 1e-9


@given(drawn())
def test_the_share_of_a_column_is_what_its_slices_cover(case):
    begin, end, colour, window, width = case
    per = width / (window[1] - window[0])
    visible = np.flatnonzero((end > window[0]) & (begin < window[1]))
    at = 0
    for one in made(begin, end, colour).strip(0, window, width):
        rows = visible[at : at + one.slices]
        at += one.slices
        if one.is_alone:
            assert one.share == 1
            continue
        columns = np.maximum(((begin[rows] - window[0]) * per).astype(int), 0)
        covered = np.bincount(columns, (end - begin)[rows] * per)
        shares = np.minimum(covered, 1)[np.unique(columns)]
        assert one.share == pytest.approx(shares.mean())
        assert {opacity(share) for share in shares.round(9)} <= {one.opacity, opacity(one.share)}
        assert one.right - one.left == len(shares)


@given(drawn())
def test_rectangles_go_from_left_to_right_within_the_picture(case):
    begin, end, colour, window, width = case
    found = list(made(begin, end, colour).strip(0, window, width))
    for one, other in pairwise(found):
        assert one.right <= other.left + WIDE
    for one in found:
        assert 0 <= one.left < one.right
        assert one.left <= width
        assert not one.is_alone or one.right <= width


def test_a_slice_of_one_tick_alone_is_visible():
    detail = made(np.array([500_000]), np.array([500_001]), np.array([0]))
    (one,) = detail.strip(0, (0.0, 1e6), 100)
    assert (one.left, one.right, one.opacity) == (50, 51, 0)
    assert OPACITIES[0] > 0.4


def test_columns_of_one_colour_and_opacity_are_one_rectangle_and_others_are_not():
    begin = np.arange(0, 1000, 2)
    detail = made(begin, begin + 1, np.where(begin < 500, 0, 1))
    found = list(detail.strip(0, (0.0, 1000.0), 100))
    assert [(one.left, one.right, one.slices) for one in found] == [(0, 50, 250), (50, 100, 250)]
    assert [one.share for one in found] == [pytest.approx(0.5)] * 2


def test_bundles_cover_less_than_they_reach():
    detail = Detail(np.array([0]), np.array([10]), np.array([0, 1]), np.array([0]), np.array([4]))
    (one,) = detail.strip(0, (0.0, 1000.0), 100)
    assert one.share == pytest.approx(0.4)


def test_an_empty_window_is_refused():
    with pytest.raises(ValueError, match="empty"):
        rectangles(made(np.array([0]), np.array([1]), np.array([0])), [0], (5.0, 5.0), 10)
