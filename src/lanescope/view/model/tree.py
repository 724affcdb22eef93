"""Rows of the lane list: chains of only children are one row, and what is open at first fits on a screen."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from lanescope.analysis.track_tree import Tree

#: Rows that are there at first; a chain of groups at the top is opened to its leaves whatever it holds.
_ROWS = 46


class TreeRow(NamedTuple):
    """One row of the list.

    Attributes:
        chain: track ids from the top down, each the only child of the one before; the last is what is drawn.
        depth: 0 at the top.
        is_open: whether the rows below it are shown at first.
        other: of two captures side by side, the chain of the second one, whose last is the same group there.
    """

    chain: tuple[int, ...]
    depth: int
    is_open: bool = False
    other: tuple[int, ...] = ()


class Branches(Protocol):
    """A tree: what is above each number, and all of them depth first."""

    parents: list[int]

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """All numbers, int64 [n], depth first."""

    def ancestors(self, track: int, /) -> list[int]:
        """Return a number and those above it, from the top down."""


def tree_rows(tree: Branches, used: set[int], rows: int = _ROWS) -> list[TreeRow]:
    """Return the rows, depth first in drawing order.

    Args:
        tree: the tracks.
        used: tracks that have something to draw; others are left out, with the groups that hold nothing else.
        rows: how many are there at first. Groups are opened breadth first as long as they fit, and always the first one
            on each level, so that one lane at least is seen.
    """
    children = children_of(tree, used)
    chains, below = _chains(children)
    opened, shown = set[int](), len(children.get(-1, []))
    queue = deque((root, True) for root in (chains[track][-1] for track in children.get(-1, [])))
    while queue:
        track, is_first = queue.popleft()
        more = below.get(track, [])
        if not more or (shown + len(more) > rows and not is_first):
            continue
        opened.add(track)
        shown += len(more)
        first = next((child for child in more if child in below), None)
        queue.extend((child, is_first and child == first) for child in more)
    found: list[TreeRow] = []
    stack = [(track, 0) for track in reversed(children.get(-1, []))]
    while stack:
        top, depth = stack.pop()
        chain = chains[top]
        found.append(TreeRow(chain, depth, chain[-1] in opened))
        stack.extend((track, depth + 1) for track in reversed(children.get(chain[-1], [])))
    return found


def children_of(tree: Branches, used: set[int]) -> dict[int, list[int]]:
    """Return what is below each number, -1 for the top, of what has anything to draw in it."""
    order = tree.order.tolist()
    wanted = {step for track in order if track in used for step in tree.ancestors(track)}
    children: dict[int, list[int]] = {}
    for track in order:
        if track in wanted:
            children.setdefault(tree.parents[track], []).append(track)
    return children


def _chains(children: dict[int, list[int]]) -> tuple[dict[int, tuple[int, ...]], dict[int, list[int]]]:
    """Return the chain that each first track of a row begins, and the last tracks of the rows below each last track."""
    chains: dict[int, tuple[int, ...]] = {}
    stack = list(children.get(-1, []))
    while stack:
        top = stack.pop()
        chain = [top]
        while len(children.get(chain[-1], [])) == 1:
            chain.append(children[chain[-1]][0])
        chains[top] = tuple(chain)
        stack.extend(children.get(chain[-1], []))
    below = {
        chain[-1]: [chains[child][-1] for child in children[chain[-1]]]
        for chain in chains.values()
        if chain[-1] in children
    }
    return chains, below


def ranks(tree: Tree) -> list[int]:
    """Return the place of each track in drawing order."""
    found = np.empty(len(tree), np.int64)
    found[tree.order] = np.arange(len(tree))
    ranked: list[int] = found.tolist()
    return ranked
