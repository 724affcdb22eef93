"""Pairs of starts and ends against plain loops over records."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from lanescope.common.pairing import pair_fifo, pair_stack

#: Key, whether it is an end, whether records are missing before it.
RECORDS = st.lists(st.tuples(st.integers(-1, 2), st.booleans(), st.sampled_from([False] * 5 + [True])), max_size=60)


def columns(records, *dtypes):
    return [np.array([row[i] for row in records], dtype) for i, dtype in enumerate(dtypes)]


def fifo_by_hand(records, *, is_open_once):
    """Return {start: (end, is_cut)}, the records without a partner, and the ambiguous starts."""
    queues: dict[int, list[int]] = {}
    found, unmatched, ambiguous = {}, [], set()
    for at, (key, is_end, is_cut) in enumerate(records):
        if is_cut:
            found |= {start: (at - 1, True) for queue in queues.values() for start in queue}
            queues.clear()
        queue = queues.setdefault(key, [])
        if not is_end and queue and is_open_once:
            unmatched.append(at)
        elif not is_end:
            if queue:
                ambiguous |= {at, queue[-1]}
            queue.append(at)
            found[at] = (-1, False)
        elif queue:
            found[queue.pop(0)] = (at, False)
        else:
            unmatched.append(at)
    return found, unmatched, ambiguous


@settings(max_examples=some(800))
@given(RECORDS, st.booleans(), st.booleans())
def test_fifo(records, is_open_once, has_cuts):
    if not has_cuts:
        records = [(key, is_end, False) for key, is_end, _ in records]
    key, is_end, cut_before = columns(records, np.int64, np.bool_, np.bool_)
    pairs = pair_fifo(key, is_end, is_open_once=is_open_once, cut_before=cut_before if has_cuts else None)
    found, unmatched, ambiguous = fifo_by_hand(records, is_open_once=is_open_once)
    ends = zip(pairs.end.tolist(), pairs.is_cut.tolist(), strict=True)
    assert dict(zip(pairs.start.tolist(), ends, strict=True)) == found
    assert pairs.start.tolist() == sorted(found)
    assert pairs.unmatched.tolist() == unmatched
    assert set(pairs.start[pairs.is_ambiguous].tolist()) == ambiguous


def test_a_cut_before_the_first_record_cuts_nothing():
    pairs = pair_fifo(np.array([4, 4]), np.array([False, True]), cut_before=np.array([True, False]))
    assert (pairs.start.tolist(), pairs.end.tolist(), pairs.is_cut.tolist()) == ([0], [1], [False])


def stack_by_hand(records):
    stacks: dict[int, list[int]] = {}
    found, unmatched = {}, []
    for at, (group, name, is_end) in enumerate(records):
        stack = stacks.setdefault(group, [])
        if not is_end:
            stack.append(at)
            found[at] = -1
        elif name in [records[start][1] for start in stack]:
            while records[stack[-1]][1] != name:
                stack.pop()
            found[stack.pop()] = at
        else:
            unmatched.append(at)
    return found, unmatched


@st.composite
def nested(draw):
    """Records of three groups in which everything is ended."""
    stacks: dict[int, list[int]] = {0: [], 1: [], 2: []}
    records = []
    for group in draw(st.lists(st.integers(0, 2), max_size=60)):
        if stacks[group] and draw(st.booleans()):
            records.append((group, stacks[group].pop(), True))
        else:
            stacks[group].append(draw(st.integers(0, 2)))
            records.append((group, stacks[group][-1], False))
    return records + [(group, name, True) for group, stack in stacks.items() for name in reversed(stack)]


ANYTHING = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans()), max_size=60)


@settings(max_examples=some(800))
@given(st.one_of(ANYTHING, nested()))
def test_stack(records):
    pairs = pair_stack(*columns(records, np.int32, np.int32, np.bool_))
    found, unmatched = stack_by_hand(records)
    assert dict(zip(pairs.start.tolist(), pairs.end.tolist(), strict=True)) == found
    assert pairs.unmatched.tolist() == unmatched
    assert not pairs.is_cut.any()


@given(nested())
def test_a_stack_of_complete_records_leaves_nothing_open(records):
    pairs = pair_stack(*columns(records, np.int32, np.int32, np.bool_))
    assert (pairs.end > pairs.start).all()
    assert not len(pairs.unmatched)


def test_a_deep_stack():
    """Deeper than the rounds that take out the innermost pairs."""
    names = np.concatenate([np.arange(500), np.arange(499, -1, -1)])
    pairs = pair_stack(np.zeros(1000, np.int32), names, np.arange(1000) >= 500)
    assert pairs.end.tolist() == list(range(999, 499, -1))
