"""Recordings that disagree with others of their run: those of all runs at once, against one run after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lanescope.devices.aie.interpret import alignment
from lanescope.devices.aie.interpret.alignment import _MIN_CYCLES, _MIN_TIMER, _TOGETHER

EXACT, BOUNDED, UNKNOWN = range(3)
NEAR = st.integers(-2 * _TOGETHER, 2 * _TOGETHER)
TIMERS = st.builds(sum, st.tuples(st.sampled_from([0, _MIN_TIMER, 50_000, 1 << 56]), NEAR)).map(lambda ts: max(ts, 0))
ENDS = st.builds(sum, st.tuples(st.sampled_from([20, _MIN_CYCLES, 9000, 1 << 55]), NEAR)).map(lambda end: max(end, 0))
RECORDINGS = st.lists(
    st.tuples(TIMERS, ENDS, st.sampled_from([EXACT, EXACT, BOUNDED, UNKNOWN])), min_size=1, max_size=9
)


def together(known, recording):
    """The cycles of what started with a recording of which the least number of cycles is known."""
    timer, _, _ = recording
    return [end for other, end, kind in known if kind == EXACT and abs(other - timer) <= _TOGETHER]


def expected(run, has_edges):
    """The findings on one run: kind and place of each."""
    over, apart, late = [], [], []
    exact = [i for i, (_, _, kind) in enumerate(run) if kind == EXACT]
    for i, (timer, end, kind) in enumerate(run):
        ends = [run[k][1] for k in exact] if has_edges else together(run, run[i])
        if kind == BOUNDED and ends and (has_edges or timer >= _MIN_TIMER) and end > max(ends) + 2:
            over.append(i)
    if not has_edges:
        clusters = []
        for i in sorted((i for i in exact if run[i][0] >= _MIN_TIMER), key=lambda i: run[i][0]):
            if clusters and run[i][0] - run[clusters[-1][-1]][0] <= _TOGETHER:
                clusters[-1].append(i)
            else:
                clusters.append([i])
        for members in clusters:
            agreeing = [sum(abs(run[i][1] - run[k][1]) <= 2 for k in members) for i in members]
            shared = run[members[agreeing.index(max(agreeing))]][1]
            if 2 * max(agreeing) > len(members):
                apart += [i for i in members if abs(run[i][1] - shared) > 2]
            else:
                apart += [i for i, count in zip(members, agreeing, strict=True) if count < len(members)]
        left = [i for i in exact if i not in apart]
        agreeing = [sum(abs(run[i][1] - run[k][1]) <= _TOGETHER for k in left) for i in left]
        if left and max(agreeing) >= max(3, 0.6 * len(left)):
            shared = run[left[agreeing.index(max(agreeing))]][1]
            late = [i for i in left if shared >= _MIN_CYCLES and abs(run[i][1] - shared) > _TOGETHER]
    names = ("aie_length_mismatch", "aie_length_mismatch", "aie_stop_mismatch")
    return [(name, i) for name, found in zip(names, (over, sorted(apart), late), strict=True) for i in found]


@given(st.lists(st.tuples(RECORDINGS, st.booleans()), max_size=6), st.randoms(use_true_random=False))
def test_runs_are_judged_as_if_each_were_alone(runs, random):
    """Recordings of runs lie in the dump in any order; those of one run keep theirs."""
    turns = [number for number, (run, _) in enumerate(runs) for _ in run]
    random.shuffle(turns)
    places = [[i for i, number in enumerate(turns) if number == run] for run in range(len(runs))]
    group = np.array(turns, np.int64)
    rows = np.argsort(group, kind="stable")
    timer, end, kind = np.zeros((3, len(turns)), np.int64)
    has_edges = np.zeros(len(turns), np.bool_)
    for (run, edges), place in zip(runs, places, strict=True):
        timer[place], end[place], kind[place] = np.array(run, np.int64).T
        has_edges[place] = edges
    columns = {"timer": timer, "end": end}
    found = alignment._disagreeing(rows, group, columns, kind == EXACT, kind == BOUNDED, has_edges)
    assert found == [
        (name, place[i]) for (run, edges), place in zip(runs, places, strict=True) for name, i in expected(run, edges)
    ]
