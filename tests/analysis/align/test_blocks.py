"""Segments of a clock found with limits that are thinned block by block are those found with all limits."""

from fractions import Fraction

import numpy as np
import pytest

from effort import some
from lanescope.analysis.align import linear
from lanescope.analysis.align.limits import Limits, Pairs

RATE = Fraction(1, 10_000)


def pairs_of(seed):
    """Return pairs on a clock whose rate, and sometimes its offset, jumps; with some on one line and at one time."""
    rng = np.random.default_rng(seed)
    count, cuts = int(rng.integers(50, 600)), int(rng.integers(1, 8))
    at = np.sort(rng.integers(0, 10**9, count))
    if seed % 3 == 0:
        at = at // 10**5 * 10**5
    part = at * cuts // 10**9
    offset = rng.integers(-2000, 2000, cuts)[part] + rng.integers(-60, 60, cuts)[part] * at // 10**6
    delay = rng.exponential(3000, count).astype(np.int64) * (rng.random(count) < 0.8)
    is_above = rng.random(count) < 0.5
    sides = []
    for sign, mine in ((1, is_above), (-1, ~is_above)):
        rows = np.flatnonzero(mine)
        sides.append(Limits(at[rows], sign * offset[rows] + 100 + delay[rows], rows))
    return Pairs(*sides)


@pytest.mark.parametrize("block", [2, 8, 32])
def test_thinned_blocks_change_nothing(monkeypatch, block):
    left_out = 0
    for seed in range(some(400)):
        pairs = pairs_of(seed)
        monkeypatch.setattr(linear, "_BLOCK", 1 << 40)
        wanted = linear.straight_segments(pairs, RATE)
        monkeypatch.setattr(linear, "_BLOCK", block)
        got = linear.straight_segments(pairs, RATE)
        left_out += sum(len(side.at) - len(linear._Blocks(side)._rows) for side in pairs)
        assert [each[:2] for each in got] == [each[:2] for each in wanted], seed
        for (*_, mine), (*_, plain) in zip(got, wanted, strict=True):
            assert (mine.steepest, mine.flattest) == (plain.steepest, plain.flattest), seed
    assert left_out or block == 2
