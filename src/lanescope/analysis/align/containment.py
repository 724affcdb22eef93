"""Where one trace lies on the axis of another by what must contain what: launches inside the kernels that ran them.

A kernel records its own time between the begin and the end of its execution, as the host's tool saw it. So each launch
inside an execution bounds the distance of the two time axes from both sides, and all launches together leave few
distances, often a single narrow interval. Nothing here prefers one distance to another: more than one is for the caller
to refuse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lanescope.common.intervals import Ints

#: Partial placements that are followed at once; more say that the launches tell nothing apart.
MOST_STATES = 1 << 20


class Containment(NamedTuple):
    """One way to put spans inside others.

    Attributes:
        least: smallest distance that may be added to the times of the inner spans.
        most: the largest one.
        outer: int64 [n], for each inner span the index of the outer one around it, ascending.
    """

    least: int
    most: int
    outer: Ints

    @property
    def shift(self) -> int:
        """The middle of the distances."""
        return (self.least + self.most) // 2

    @property
    def error(self) -> int:
        """How far the middle may be off."""
        return self.most - self.shift


class _States(NamedTuple):
    """Partial placements: their distances, the outer span of the latest inner one, and what each continues."""

    least: Ints
    most: Ints
    outer: Ints
    before: Ints


def containments(inner: tuple[Ints, Ints], outer: tuple[Ints, Ints], *, limit: int = 16) -> list[Containment] | None:
    """Find each constant distance at which every inner span lies inside an outer span of its own, in order.

    Args:
        inner: begins and ends, int64 [n] each, n >= 1, in the order of the launches.
        outer: begins and ends, int64 [m] each, sorted by begin; on another time axis of the same unit.
        limit: so many are returned at most.

    Returns:
        The placements, by distance: none where no distance fits, one where the spans leave no choice. None where more
        than ``MOST_STATES`` partial placements are left at some launch.
    """
    begins, ends = inner
    outer_begins, outer_ends = outer
    latest_ends = np.maximum.accumulate(outer_ends) if len(outer_ends) else outer_ends
    at = np.arange(len(outer_begins))
    states = _States(outer_begins - begins[0], outer_ends - ends[0], at, at)
    steps = [_sound(states)]
    for begin, end in zip(begins[1:].tolist(), ends[1:].tolist(), strict=True):
        now = steps[-1]
        # Outer spans that may come next: not yet ended at the smallest distance, begun at the largest one.
        first = np.maximum(now.outer + 1, np.searchsorted(latest_ends, now.least + end))
        stop = np.searchsorted(outer_begins, now.most + begin, side="right")
        counts = np.maximum(stop - first, 0)
        if int(counts.sum()) > MOST_STATES:
            return None
        before = np.repeat(np.arange(len(counts)), counts)
        chosen = np.arange(len(before)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
        least = np.maximum(now.least[before], outer_begins[chosen] - begin)
        most = np.minimum(now.most[before], outer_ends[chosen] - end)
        steps.append(_sound(_States(least, most, chosen, before)))
    last = steps[-1]
    found = np.argsort(last.least, kind="stable")[:limit]
    return [Containment(int(last.least[state]), int(last.most[state]), _path(steps, int(state))) for state in found]


def _sound(states: _States) -> _States:
    keep = states.least <= states.most
    return states if keep.all() else _States(*(values[keep] for values in states))


def _path(steps: list[_States], state: int) -> Ints:
    found = np.empty(len(steps), np.int64)
    for index in range(len(steps) - 1, -1, -1):
        found[index] = steps[index].outer[state]
        state = int(steps[index].before[state])
    return found
