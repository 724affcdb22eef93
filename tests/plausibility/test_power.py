"""Lies are told as the table says, and sound captures stay without warnings."""

import numpy as np
import pytest

from effort import FULL, some
from plausibility import captures, odd, power
from plausibility.columns import Columns
from plausibility.lies import LIES

#: Seeds that no threshold was tuned on.
FIRST = 7_000_000
#: Odd traces of which a plausibility rule must not say anything at all.
QUIET = list(odd.KINDS)[:14]


def plausible(trace):
    """(code, severity) of what plausibility rules report."""
    return [(code, severity) for code, severity, _ in power.findings(trace, power.PLAUSIBLE)]


def assert_calm(each):
    """Sound captures have no warnings, and no more than one notice each on average."""
    assert [found for found in each if any(severity != "notice" for _, severity in found)] == []
    assert sum(map(len, each)) <= len(each)


# --- lies ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def columns():
    return {family: Columns.of(captures.simulated(family, FIRST)) for family in captures.FAMILIES}


@pytest.mark.parametrize("family", captures.FAMILIES)
def test_columns_make_the_trace_they_are_of(columns, family):
    mine = columns[family]
    made, trace = mine.to_trace(), mine.trace
    for table, names in (("slices", ("track_id", "ts", "dur", "name")), ("instants", ("track_id", "ts", "name"))):
        for name in names:
            here, there = made.tables()[table], trace.tables()[table]
            assert here.values(name).tolist() == there.values(name).tolist()
            assert here.valid(name).tolist() == there.valid(name).tolist()
    assert [row["name"] for row in made.tracks.rows()] == [row["name"] for row in trace.tracks.rows()]


@pytest.mark.parametrize("family", captures.FAMILIES)
def test_a_lie_changes_columns_and_leaves_the_original_alone(columns, family):
    mine = columns[family]
    before = [getattr(mine, name).copy() for name in ("lane", "ts", "end", "name", "its")]
    told = 0
    for number, lie in enumerate(LIES):
        changed = lie.make(mine, np.random.default_rng([FIRST, number]))
        if changed is None:
            continue
        told += 1
        arrays = [getattr(changed, name) for name in ("lane", "ts", "end", "name", "its")]
        assert any(len(a) != len(b) or (a != b).any() for a, b in zip(arrays, before, strict=True)), lie.name
        again = lie.make(mine, np.random.default_rng([FIRST, number]))
        assert again is not None
        assert (again.ts == changed.ts).all()
        assert len(changed.to_trace().slices) == len(changed.ts)
    assert told >= len(LIES) - 5
    assert all(
        (getattr(mine, name) == old).all()
        for name, old in zip(("lane", "ts", "end", "name", "its"), before, strict=True)
    )


# --- sound captures -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", captures.FAMILIES)
def test_sound_captures_have_no_warnings(family):
    count = 100 if FULL else some(20, 3)
    assert_calm([plausible(captures.simulated(family, FIRST + seed)) for seed in range(count)])


@pytest.mark.parametrize("kind", QUIET)
def test_odd_but_true_traces_have_no_findings(kind):
    number = list(odd.KINDS).index(kind)
    for seed in range(some(50, 3)):
        assert plausible(odd.KINDS[kind](np.random.default_rng([FIRST + seed, number]))) == []


@pytest.mark.parametrize("kind", list(odd.KINDS)[14:])
def test_very_odd_traces_have_hardly_a_warning(kind):
    """Columns alone cannot tell these from faults; a notice is right, a warning in one of twenty is borne."""
    number, count = list(odd.KINDS).index(kind), some(100, 3)
    each = [plausible(odd.KINDS[kind](np.random.default_rng([FIRST + seed, number]))) for seed in range(count)]
    assert sum(any(severity != "notice" for _, severity in found) for found in each) <= max(2, count // 20)


def test_recorded_captures_have_no_warnings(corpus):
    found = {}
    for folder in ("aie", "ascend", "cuda", "producers", "thapi"):
        found |= {f"{folder}/{path}": keys for path, keys in power.recorded(corpus / folder).items()}
    assert len(found) >= 8
    assert_calm([[key[:2] for key in keys] for keys in found.values()])
