"""Launches inside kernels: every distance that fits is found, and none that does not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanescope.analysis.align import containment
from lanescope.analysis.align.containment import containments


def spans(*pairs):
    begins, ends = zip(*pairs, strict=True) if pairs else ((), ())
    return np.array(begins, np.int64), np.array(ends, np.int64)


def tried(inner, outer):
    """Return the distances that fit, by trying each assignment."""
    found = []

    def follow(index, before, least, most, chosen):
        if index == len(inner):
            found.append((least, most, tuple(chosen)))
            return
        for at in range(before + 1, len(outer)):
            low = max(least, outer[at][0] - inner[index][0])
            high = min(most, outer[at][1] - inner[index][1])
            if low <= high:
                follow(index + 1, at, low, high, [*chosen, at])

    follow(0, -1, -(1 << 60), 1 << 60, [])
    return sorted(found)


def test_one_launch_in_one_kernel_is_placed_with_the_room_it_has():
    (found,) = containments(spans((0, 60)), spans((1000, 1100)))
    assert (found.least, found.most, found.shift, found.error) == (1000, 1040, 1020, 20)


def test_gaps_tell_which_kernels_of_many_a_buffer_holds():
    kernels = spans((0, 10), (100, 110), (150, 160), (290, 300), (400, 410))
    (found,) = containments(spans((5, 13), (55, 63), (195, 203)), kernels)
    assert found.outer.tolist() == [1, 2, 3]
    assert (found.least, found.most) == (95, 97)


def test_regular_launches_leave_a_choice_which_is_not_taken():
    kernels = spans(*((100 * at, 100 * at + 10) for at in range(5)))
    found = containments(spans((0, 9), (100, 109), (200, 209)), kernels)
    assert [each.outer.tolist() for each in found] == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    assert len(containments(spans((0, 9)), kernels, limit=2)) == 2


def test_a_launch_that_is_longer_than_each_kernel_fits_nowhere():
    assert containments(spans((0, 11)), spans((0, 10), (20, 30))) == []
    assert containments(spans((0, 11)), spans()) == []


def test_an_execution_holds_one_launch_only():
    assert containments(spans((0, 1), (2, 3)), spans((0, 100))) == []


def test_too_many_choices_are_said_to_be_too_many(monkeypatch):
    monkeypatch.setattr(containment, "MOST_STATES", 8)
    kernels = spans(*((10 * at, 10 * at + 100) for at in range(9)))
    assert containments(spans((0, 1), (2, 3)), kernels) is None


@pytest.mark.full
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 25)), max_size=7),
    st.integers(-1000, 1000),
)
def test_all_that_fits_is_found(inner, outer, shift):
    inner = sorted((begin + shift, begin + shift + length) for begin, length in inner)
    outer = sorted((begin, begin + length) for begin, length in outer)
    found = containments(spans(*inner), spans(*outer), limit=100_000)
    assert sorted((each.least, each.most, tuple(each.outer.tolist())) for each in found) == tried(inner, outer)
