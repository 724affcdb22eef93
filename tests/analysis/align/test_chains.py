"""Offsets of clocks that are joined over others."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np

from effort import seeds
from lanescope.analysis.align.chains import Between, Chain, Loop, chains


def best(edges, clock, names):
    """Return the lowest upper limit of a clock's offset over all ways from the first clock, tried one by one."""
    arcs = {}
    for (first, second), (least, most) in edges.items():
        if most is not None:
            arcs[first, second] = min(most, arcs.get((first, second), most))
        if least is not None:
            arcs[second, first] = min(-least, arcs.get((second, first), -least))
    others = [name for name in names[1:] if name != clock]
    ways = [(names[0], *middle, clock) for size in range(len(others) + 1) for middle in permutations(others, size)]
    lengths = [sum(arcs[step] for step in pairwise(way)) for way in ways if all(step in arcs for step in pairwise(way))]
    return min(lengths, default=None)


def cases():
    for seed in seeds(300, 60):
        random = np.random.default_rng(seed)
        names = [f"clock {number}" for number in range(int(random.integers(2, 6)))]
        truth = dict(zip(names, random.integers(-1000, 1000, len(names)).tolist(), strict=True))
        edges = {}
        for first in names:
            for second in names:
                if first < second and random.random() < 0.6:
                    below, above = random.integers(0, 50, 2).tolist()
                    offset = truth[second] - truth[first]
                    least = offset - below if random.random() < 0.8 else None
                    edges[first, second] = Between(least, offset + above if random.random() < 0.8 else None)
        yield names, truth, edges


def test_limits_along_chains_are_the_best_and_contain_the_truth():
    compared = 0
    for names, truth, edges in cases():
        found = chains(edges, names[0])
        assert isinstance(found, dict)
        turned = {
            pair: Between(None if most is None else -most, None if least is None else -least)
            for pair, (least, most) in edges.items()
        }
        for clock in names[1:]:
            most, least = best(edges, clock, names), best(turned, clock, names)
            chain = found.get(clock, Chain(None, None, (), ()))
            assert (chain.most, chain.least) == (most, None if least is None else -least)
            offset = truth[clock] - truth[names[0]]
            assert most is None or offset <= most
            compared += most is not None
            if chain.most_by:
                assert chain.most_by[0] == names[0]
                assert chain.most_by[-1] == clock
    assert compared > 50


def test_a_circle_that_leaves_less_than_nothing_is_named():
    edges = {
        ("a", "b"): Between(10, 12),
        ("b", "c"): Between(10, 12),
        ("a", "c"): Between(0, 19),  # 20 at least over b
        ("c", "d"): Between(0, 5),
    }
    found = chains(edges, "a")
    assert isinstance(found, Loop)
    assert found.by == 1
    assert set(found.clocks) == {"a", "b", "c"}
    assert found.clocks[0] == found.clocks[-1]
    edges["a", "c"] = Between(0, 20)
    assert chains(edges, "a")["c"] == Chain(20, 20, ("a", "b", "c"), ("a", "c"))


def test_clocks_without_a_chain_are_left_out():
    found = chains({("b", "c"): Between(1, 2)}, "a")
    assert found == {"a": Chain(0, 0, ("a",), ("a",))}
