"""Which tracks of two captures are the same: by name under the same parent, groups also by what is alike in them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from lanescope.analysis.track_tree import Tree
from lanescope.view.model.tree import TreeRow, children_of, tree_rows

#: A pair: the ids of a track in both captures, -1 where one does not have it.
Pair = tuple[int, int]


class PairedTracks:
    """The tracks of two captures as one tree of pairs.

    Children of a pair are paired by kind and name, those of one name in their order; then groups by role and what is
    left of their name without digits (process ids change from run to run); then those left alone of their kind.

    Args:
        first: tracks of one capture, and those that have something to draw.
        second: those of the other.

    Attributes:
        pairs: by number; ``parents``: number of the pair above each, -1 at the top.
        order: numbers, int64, depth first.
    """

    def __init__(self, first: tuple[Tree, set[int]], second: tuple[Tree, set[int]]) -> None:
        self._trees = first[0], second[0]
        below = [children_of(*side) for side in (first, second)]
        self._kinds = [tree.tracks.values("kind").tolist() for tree in self._trees]
        self._roles = [tree.tracks.values("role").tolist() for tree in self._trees]
        self.pairs: list[Pair] = []
        self.parents: list[int] = []
        stack = [(pair, -1) for pair in reversed(self._paired(below[0].get(-1, []), below[1].get(-1, [])))]
        while stack:
            pair, parent = stack.pop()
            number = len(self.pairs)
            self.pairs.append(pair)
            self.parents.append(parent)
            own = [below[side].get(track, []) if track >= 0 else [] for side, track in enumerate(pair)]
            stack.extend((child, number) for child in reversed(self._paired(*own)))
        self.order = np.arange(len(self.pairs))

    def ancestors(self, number: int) -> list[int]:
        """Return a pair and those above it, from the top down."""
        chain = []
        while number >= 0:
            chain.append(number)
            number = self.parents[number]
        return chain[::-1]

    def rows(self) -> list[TreeRow]:
        """Return the rows of the lane list: a group of both is one row, a lane of both two, that of the first above.

        Ids of the second capture count on from those of the first.
        """
        found: list[TreeRow] = []
        for chain, depth, is_open, _ in tree_rows(self, set(range(len(self.pairs)))):
            one = tuple(self.pairs[at][0] for at in chain if self.pairs[at][0] >= 0)
            other = tuple(self.pairs[at][1] + len(self._trees[0]) for at in chain if self.pairs[at][1] >= 0)
            last = self.pairs[chain[-1]]
            if min(last) < 0:
                found.append(TreeRow(one if last[0] >= 0 else other, depth, is_open))
            elif self._kinds[0][last[0]] == "group":
                found.append(TreeRow(one, depth, is_open, other))
            else:
                found += [TreeRow(one, depth, is_open), TreeRow(other, depth, is_open)]
        return found

    def lanes(self) -> Iterator[Pair]:
        """Yield the pairs that are lanes."""
        for pair in self.pairs:
            side = 0 if pair[0] >= 0 else 1
            if self._kinds[side][pair[side]] == "lane":
                yield pair

    def _paired(self, first: Sequence[int], second: Sequence[int]) -> list[Pair]:
        """Return children of a pair as pairs, in the order of the first, then what only the second has."""
        other_of: dict[int, int] = {}
        left = list(first), list(second)
        for key in (self._name, self._stem, self._kind):
            waiting: dict[Hashable, deque[int]] = {}
            for track in left[1]:
                waiting.setdefault(key(1, track), deque()).append(track)
            if key == self._kind:  # only what cannot be another one
                alone = [key(0, track) for track in left[0]]
                waiting = {name: queue for name, queue in waiting.items() if alone.count(name) == len(queue) == 1}
            for track in left[0]:
                queue = waiting.get(key(0, track))
                if queue:
                    other_of[track] = queue.popleft()
            taken = set(other_of.values())
            left = [at for at in left[0] if at not in other_of], [at for at in left[1] if at not in taken]
        return [(track, other_of.get(track, -1)) for track in first] + [(-1, track) for track in left[1]]

    def _name(self, side: int, track: int) -> Hashable:
        return self._kinds[side][track], self._trees[side].names[track]

    def _stem(self, side: int, track: int) -> Hashable:
        kind = self._kinds[side][track]
        if kind != "group":
            return side, track  # lanes of other names are other lanes
        return kind, self._roles[side][track], re.sub("[0-9]+", "#", self._trees[side].names[track])

    def _kind(self, side: int, track: int) -> Hashable:
        kind = self._kinds[side][track]
        return (kind, self._roles[side][track]) if kind == "group" else (side, track)
