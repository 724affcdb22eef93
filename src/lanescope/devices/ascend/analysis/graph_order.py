"""Order in a task graph: levels, and the edges that others do not imply."""

from __future__ import annotations

import heapq
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: Tasks whose ancestors are kept at once, a bit each, for every task: bounds the memory of the reduction.
_BLOCK = 1 << 14


@frozen_class
class Order:
    """An order of tasks in which producers come before their consumers.

    Attributes:
        rank: int64 [tasks], place of each task in the order.
        level: int64 [tasks], edges on the longest way to the task from one without producers.
        goes_back: bool [edges], edges of cycles that the order does not keep; no level counts them.
    """

    rank: Int64
    level: Int64
    goes_back: Mask


def neighbors(near: Int64, far: Int64, tasks: int) -> list[list[int]]:
    """Return the tasks at the far end of the edges of each task, in the order of the edges."""
    order = np.argsort(near, kind="stable")
    bounds = np.searchsorted(near[order], np.arange(tasks + 1)).tolist()
    ordered = far[order].tolist()
    return [ordered[first:last] for first, last in pairwise(bounds)]


def order(pred: Int64, succ: Int64, tasks: int) -> Order:
    """Order tasks by their edges, tasks of one rank by index.

    Where tasks wait for each other in a cycle, the one with the smallest index comes first.

    Args:
        pred: int64 [edges], producers, as indices of tasks.
        succ: int64 [edges], their consumers; no edge leads to its own producer.
        tasks: number of tasks.
    """
    followers = neighbors(pred, succ, tasks)
    missing = np.bincount(succ, minlength=tasks).tolist()
    rank, level = [-1] * tasks, [0] * tasks
    ready = [task for task in range(tasks) if not missing[task]]  # a heap, as it rises
    placed = waiting = 0
    while placed < tasks:
        if not ready:
            while rank[waiting] >= 0:
                waiting += 1
            ready.append(waiting)
        task = heapq.heappop(ready)
        rank[task] = placed
        placed += 1
        for follower in followers[task]:
            missing[follower] -= 1
            if rank[follower] < 0:
                level[follower] = max(level[follower], level[task] + 1)
                if not missing[follower]:
                    heapq.heappush(ready, follower)
    ranks = np.array(rank, np.int64)
    return Order(ranks, np.array(level, np.int64), ranks[pred] > ranks[succ])


def transitive_reduction(pred: Int64, succ: Int64, found: Order) -> Mask:
    """Return which edges no path of other edges implies, bool [edges]; edges that go back are never implied.

    Args:
        pred: int64 [edges], producers.
        succ: int64 [edges], their consumers, each pair once.
        found: the order of the tasks.

    Complexity:
        Linear in the edges for each of ``tasks / 16384`` blocks, each step over as many bits as a block has tasks.
    """
    needed = np.ones(len(pred), np.bool_)
    edges = np.flatnonzero(~found.goes_back)
    first, second = found.rank[pred[edges]], found.rank[succ[edges]]
    sequence = np.lexsort((second, first))
    tasks = len(found.rank)
    bounds = np.searchsorted(first[sequence], np.arange(tasks + 1)).tolist()
    targets, numbers = second[sequence].tolist(), edges[sequence].tolist()
    for begin in range(0, tasks, _BLOCK):
        implied = _implied(bounds, targets, begin, min(begin + _BLOCK, tasks))
        needed[[numbers[place] for place in implied]] = False
    return needed


def _implied(bounds: list[int], targets: list[int], begin: int, end: int) -> list[int]:
    """Return the places of edges into the tasks ``begin`` to ``end`` that a longer path implies."""
    implied: list[int] = []
    reached = [0] * end  # by task: which of the block it reaches, itself included
    for task in range(end - 1, -1, -1):
        reach = 0
        # A path to a task leads only through earlier ones: what could imply an edge has been added before it.
        for place in range(bounds[task], bounds[task + 1]):
            target = targets[place]
            if target >= end:
                break
            if target >= begin and reach >> (target - begin) & 1:
                implied.append(place)
            else:
                reach |= reached[target]
        reached[task] = reach | (1 << (task - begin) if task >= begin else 0)
    return implied
