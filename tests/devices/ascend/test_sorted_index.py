"""Places of ids against a search."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lanescope._native import core
from lanescope.common.distinct import distinct
from lanescope.devices.ascend.interpret.sorted_index import SortedIndex, union

IDS = st.one_of(
    st.integers(0, 40),
    st.builds(lambda ring, number: ring << 32 | number, st.integers(0, 3), st.integers(1000, 1040)),
    st.integers(0, 2**64 - 1),
    st.sampled_from([2**32 - 1, 2**32, 2**63, 2**64 - 1]),
)
DENSE = st.builds(lambda ring, number: ring << 32 | number, st.sampled_from([0, 2, 7]), st.integers(0, 30))


def array(values):
    return np.array(list(values), np.uint64)


@given(st.lists(IDS | DENSE, max_size=30), st.lists(st.integers(0, 29), max_size=30))
def test_places_are_those_that_a_search_finds(ids, which):
    known = distinct(array(ids))
    assert known.tolist() == sorted(set(ids))
    asked = known[np.array(which, np.int64) % len(known)] if len(known) else array([])
    assert SortedIndex.among(known).of(asked).tolist() == np.searchsorted(known, asked).tolist()


@given(st.sets(DENSE, min_size=1, max_size=40))
def test_dense_ids_have_a_table(ids):
    assert SortedIndex.among(distinct(array(ids))).table is not None


@given(st.lists(st.lists(DENSE | IDS, max_size=12), max_size=4), st.integers(0, 200))
def test_ids_are_marked_in_a_table_that_is_not_too_large(parts, most):
    ids = sorted({id_ for part in parts for id_ in part})
    rings = {ring: [id_ for id_ in ids if id_ >> 32 == ring] for ring in {id_ >> 32 for id_ in ids}}
    entries = sum(numbers[-1] - numbers[0] + 1 for numbers in rings.values())
    found = core.ascend_union([array(part) for part in parts], most)
    assert (found is None) == (entries > most or max(rings, default=0) >= 1 << 16)
    assert found is None or found.tolist() == ids


@given(st.lists(st.lists(DENSE | IDS, max_size=12), max_size=4))
def test_all_ids_of_some_lists(parts):
    assert union([array(part) for part in parts]).ids.tolist() == sorted({id_ for part in parts for id_ in part})
    rising = [sorted(set(part)) for part in parts]
    assert union([array(part) for part in rising]).ids.tolist() == sorted({id_ for part in parts for id_ in part})


def test_a_list_with_holes_takes_no_table():
    assert SortedIndex.among(array([1, 1 << 31])).table is None
    assert SortedIndex.among(array([1, 1 << 60])).table is None
    assert SortedIndex.among(array([])).of(array([])).tolist() == []
