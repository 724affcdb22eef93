"""The native graph equals the slow one on hostile rows; parts fill windows, and unchanged lengths give the trace."""

import random
from itertools import pairwise

import numpy as np
import pytest

from analysis.critical_path.programs import both, event_graph, hostile
from effort import seeds
from lanescope.analysis.critical_path.event_graph import BOUNDS, CAUSES, LAGS, UnknownTimes
from lanescope.common.intervals import Intervals

NAMES = ["x", "y", "z"]
SEEDS = seeds(3000, 400)
#: Times this far apart have several digits.
FAR = 1009


def windows(graph, rnd):
    """Return windows as (begin, end, sink, cut): the whole graph, and random ones."""
    nodes = graph.nodes
    times, before = nodes["time"].tolist(), graph.before.tolist()
    low, high = min(times), max(times)
    found = [(low, high, times.index(high), -1)]
    for _ in range(2):
        begin = rnd.randint(low - 2, high)
        sink = rnd.randrange(len(times))
        if times[sink] <= begin:
            continue
        follows = sink + 1 < len(times) and before[sink + 1] == sink and times[sink + 1] > times[sink]
        cut = follows and rnd.random() < 0.5
        end = rnd.randint(times[sink] + 1, times[sink + 1]) if cut else times[sink] + rnd.randint(0, 4)
        found.append((begin, end, sink, sink + 1 if cut else -1))
    return found


def node_of(graph, reference):
    """Return the reference's node of each native one."""
    keys = keys_of(graph)
    assert sorted(keys) == sorted(reference.nodes)
    return keys


def keys_of(graph):
    """Return row, event and time of each node."""
    columns = graph.nodes
    return list(zip(columns["row"].tolist(), columns["event"].tolist(), columns["time"].tolist(), strict=True))


def parts_of(graph, begin, end, sink, cut):
    found = graph.walk(begin, end, sink, cut=cut)
    kinds = [NAMES[kind] if kind >= 0 else None for kind in found.kind.tolist()]
    causes = [CAUSES[cause] for cause in found.cause.tolist()]
    return list(zip(found.begin.tolist(), found.end.tolist(), causes, kinds, found.row.tolist(), strict=True))


@pytest.mark.parametrize("first", range(0, len(SEEDS), 100))
def test_walk_replay_and_slack_are_those_of_the_slow_graph(first):
    for seed in SEEDS[first : first + 100]:
        rows, causes, nestings = hostile(seed)
        rnd = random.Random(seed)
        # Few causes have no floors of their own; given ones make arrivals equal that have different sources.
        given = {"floors": {name: rnd.randint(0, 3) for name in NAMES}, "wait_floor": rnd.randint(0, 2)}
        graph, slow = both(rows, causes, nestings, NAMES, blocking=("z",), **given if seed % 2 else {})
        keys = node_of(graph, slow)
        assert [keys[v] for v in range(len(keys))] == slow.nodes
        assert graph.rows_crossing == slow.crossing
        assert (graph.edges_backward, graph.edges_cyclic) == (slow.backward, slow.cyclic)
        for begin, end, sink, cut in windows(graph, rnd):
            parts = parts_of(graph, begin, end, sink, cut)
            assert parts == slow.walk(begin, end, keys[sink], keys[cut] if cut >= 0 else None), seed
            assert sum(part[1] - part[0] for part in parts) == end - begin
            assert all(a[1] == b[0] for a, b in pairwise(parts))
        sink = rnd.randrange(len(keys))
        for kind in LAGS:
            for chosen in (None, sink):
                found = graph.slack(chosen, kind).tolist()
                wanted = slow.slack(None if chosen is None else keys[chosen], kind)
                assert found == [wanted[key] for key in keys], (seed, kind)
                assert min(found) >= 0
        for bound in BOUNDS:
            assert graph.replay(bound=bound).tolist() == graph.time.tolist()
        share = np.array([rnd.choice([-1, 0]) for _ in rows], np.int32)
        num, den = rnd.choice([(0, 1), (1, 2), (2, 1), (3, 7)])

        def length(key, share=share, num=num, den=den, slow=slow):
            owner = slow.owner[key]
            if slow.piece[key] != 1 or share[owner] < 0:
                return slow.step(key)
            done = sum(
                slow.step(other)
                for other in slow.nodes
                if slow.owner[other] == owner and slow.piece[other] == 1 and slow.number[other] < slow.number[key]
            )
            return (done + slow.step(key)) * num // den - done * num // den

        times = {}
        for bound in BOUNDS:
            times[bound] = graph.replay(share, [(num, den)], bound)
            wanted = slow.replay(length, bound)
            assert times[bound].tolist() == [wanted[key] for key in keys], (seed, bound)
        assert (times["low"] <= times["nominal"]).all()
        assert (times["nominal"] <= times["high"]).all()


def test_order_of_causes_and_the_epoch_change_nothing():
    for seed in seeds(600, 100):
        rows, causes, nestings = hostile(seed)
        graph = event_graph(rows, causes, nestings, NAMES, blocking=("z",))
        mixed = random.Random(seed).sample(causes, len(causes))
        other = event_graph(rows, mixed, nestings, NAMES, blocking=("z",))
        later = event_graph(
            [(lane, begin + 7, end + 7, *more) for lane, begin, end, *more in rows],
            [(u, a + 7, v, b + 7, kind) for u, a, v, b, kind in causes],
            nestings,
            NAMES,
            blocking=("z",),
        )
        window = windows(graph, random.Random(seed))[0]
        parts = parts_of(graph, *window)
        assert parts_of(other, *window) == parts
        begin, end, *node = window
        moved = [(low - 7, high - 7, *more) for low, high, *more in parts_of(later, begin + 7, end + 7, *node)]
        assert moved == parts


def test_many_lanes_beside_others_change_nothing_of_them():
    """Nodes of few lanes are put in order by merging them, those of many by their digits."""
    for seed in seeds(600, 100):
        rows, causes, nestings = hostile(seed)
        rows = [(lane, begin * FAR, end * FAR, *rest) for lane, begin, end, *rest in rows]
        causes = [(u, a * FAR, v, b * FAR, kind) for u, a, v, b, kind in causes]
        low, high = min(row[1] for row in rows), max(row[2] for row in rows) + 1
        lanes = range(len(nestings), len(nestings) + 100)
        more = [(lane, low, high, "beside", False) for lane in lanes]
        graph = event_graph(rows, causes, nestings, NAMES, blocking=("z",))
        other = event_graph([*rows, *more], causes, [*nestings, *["nested"] * len(lanes)], NAMES, blocking=("z",))
        places = {key: v for v, key in enumerate(keys_of(other))}
        there = np.array([places[key] for key in keys_of(graph)])
        for kind in LAGS:
            for sink in range(0, len(there), 5):
                assert graph.slack(sink, kind).tolist() == other.slack(int(there[sink]), kind)[there].tolist(), seed
        share = np.zeros(len(rows), np.int32)
        for bound in BOUNDS:
            times = other.replay(np.append(share, np.full(len(lanes), -1, np.int32)), [(1, 2)], bound)
            assert graph.replay(share, [(1, 2)], bound).tolist() == times[there].tolist(), seed


def test_the_hostile_rows_are_hostile():
    crossing, backward, cyclic = 0, 0, 0
    for seed in SEEDS:
        rows, causes, nestings = hostile(seed)
        graph = event_graph(rows, causes, nestings, NAMES)
        crossing += graph.rows_crossing
        backward += graph.edges_backward
        cyclic += graph.edges_cyclic
    assert min(crossing, backward, cyclic) > len(SEEDS) // 10


def test_gaps_cut_everything_but_work_and_missing_coverage_only_idle_time():
    rows = [(0, 0, 10, "a", False), (0, 30, 40, "b", False), (0, 40, 60, "w", True)]
    graph = event_graph(rows, [], ["disjoint"], NAMES)
    gaps = UnknownTimes.of(Intervals(np.array([0, 0, 0]), np.array([2, 20, 45]), np.array([5, 22, 47])), 1)
    idle = UnknownTimes.of(Intervals(np.array([0, 0]), np.array([20, 25]), np.array([22, 60])), 1)
    found = graph.walk(0, 60, 5, gaps=gaps, idle=idle)
    assert list(zip(found.begin.tolist(), found.end.tolist(), [CAUSES[c] for c in found.cause], strict=True)) == [
        (0, 10, "work"),
        (10, 20, "lane idle"),
        (20, 22, "unknown"),
        (22, 25, "lane idle"),
        (25, 30, "unknown"),
        (30, 40, "work"),
        (40, 45, "wait without cause"),
        (45, 47, "unknown"),
        (47, 60, "wait without cause"),
    ]
