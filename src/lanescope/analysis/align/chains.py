"""Offsets of many clocks against one: shortest paths over what pairs of clocks leave possible at a moment.

Offsets add along a chain, so limits do. Limits that lead back to where they began and leave less than nothing
contradict each other: the chain names the clocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Between(NamedTuple):
    """What is known of two clocks at a moment, in whole units, rounded outward.

    Attributes:
        least: what the second shows beyond the first, at least; None where nothing limits it.
        most: at most; None likewise.
    """

    least: int | None
    most: int | None


class Chain(NamedTuple):
    """Limits of the offset of one clock against the reference, and the clocks over which each limit was found.

    Attributes:
        least: at least; None where nothing limits it.
        most: at most; None likewise.
        least_by: clocks from the reference to it.
        most_by: likewise.
    """

    least: int | None
    most: int | None
    least_by: tuple[str, ...]
    most_by: tuple[str, ...]


class Loop(NamedTuple):
    """Clocks whose limits contradict each other around a circle.

    Attributes:
        clocks: in order, the first one again at the end.
        by: by how much they miss each other.
    """

    clocks: tuple[str, ...]
    by: int


def chains(edges: Mapping[tuple[str, str], Between], reference: str) -> dict[str, Chain] | Loop:
    """Return the limits of each clock's offset against one of them; O(clocks x edges).

    Args:
        edges: what is known of pairs of clocks; neither direction has to be given for all.
        reference: the clock that offsets count from.

    Returns:
        By clock, of those that are joined to it in any way; or a contradiction.
    """
    # An arc from a to b of a length: b is later than a by that at most.
    arcs: list[tuple[str, str, int]] = []
    for (first, second), between in edges.items():
        if between.most is not None:
            arcs.append((first, second, between.most))
        if between.least is not None:
            arcs.append((second, first, -between.least))
    clocks = list(dict.fromkeys([reference, *(clock for pair in edges for clock in pair)]))
    loop = _negative_loop(clocks, arcs)
    if loop is not None:
        return loop
    most = _shortest(arcs, reference, len(clocks))
    least = _shortest([(second, first, length) for first, second, length in arcs], reference, len(clocks))
    found = {}
    for clock in clocks:
        up, down = most.get(clock), least.get(clock)
        if up is None and down is None:
            continue
        found[clock] = Chain(
            None if down is None else -down[0],
            None if up is None else up[0],
            () if down is None else _path(least, clock),
            () if up is None else _path(most, clock),
        )
    return found


_Reached = dict[str, tuple[int, str]]


def _shortest(arcs: Sequence[tuple[str, str, int]], start: str, rounds: int) -> _Reached:
    """Return the length of the shortest way to each clock, and the clock before it on that way."""
    found: _Reached = {start: (0, start)}
    for _ in range(rounds):
        is_changed = False
        for first, second, length in arcs:
            at = found.get(first)
            if at is None:
                continue
            known = found.get(second)
            if known is None or at[0] + length < known[0]:
                found[second] = at[0] + length, first
                is_changed = True
        if not is_changed:
            break
    return found


def _negative_loop(clocks: Sequence[str], arcs: Sequence[tuple[str, str, int]]) -> Loop | None:
    lengths = dict.fromkeys(clocks, 0)
    before: dict[str, tuple[str, int]] = {}
    last = None
    for _ in clocks:
        last = None
        for first, second, length in arcs:
            if lengths[first] + length < lengths[second]:
                lengths[second] = lengths[first] + length
                before[second] = first, length
                last = second
        if last is None:
            return None
    if last is None:
        return None
    for _ in clocks:  # so many steps back one is on the loop
        last = before[last][0]
    way, total, at = [last], 0, last
    while True:
        at, length = before[at]
        total += length
        way.append(at)
        if at == last:
            return Loop(tuple(reversed(way)), -total)


def _path(reached: _Reached, clock: str) -> tuple[str, ...]:
    way = [clock]
    while reached[way[-1]][1] != way[-1]:
        way.append(reached[way[-1]][1])
    return tuple(reversed(way))
