"""Layered layout: tasks in columns by level, ordered for few crossings, placed for straight edges.

The steps are those of Sugiyama, Tagawa and Toda (1981): barycenters order each column; a task then takes the mean
height of its neighbors, as far as the order and the sizes in its column allow (isotonic regression).
"""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.ascend.analysis.graph_order import neighbors

Int64 = npt.NDArray[np.int64]
Point = tuple[float, float]

#: Sizes in pixels: width of a task, space between columns, between tasks, around an edge that passes a column,
#: between separate parts.
WIDTH, COLUMN_GAP, TASK_GAP, PASSING, PART_GAP = 190.0, 90.0, 16.0, 14.0, 48.0
#: Columns that an edge is led through between tasks; a longer one passes behind them.
_MAX_SPAN = 12
_ORDER_SWEEPS, _PLACE_SWEEPS = 8, 6
#: Separate parts fill rows of about this shape: width by height.
_SHAPE = 1.8
#: A column that is higher than this, and than the shape of its part asks for, becomes several.
_MAX_HEIGHT = 2400.0


@frozen_class
class Layout:
    """Where tasks and edges are drawn, in pixels.

    Attributes:
        x, y: float64 [tasks], left and upper edge.
        routes: [edges], points that an edge passes between its ends.
        width, height: of the whole.
    """

    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    routes: list[list[Point]]
    width: float
    height: float


def layout(level: Int64, heights: list[float], pred: Int64, succ: Int64) -> Layout:
    """Place tasks and edges; tasks without edges come last.

    Args:
        level: int64 [tasks], columns; each edge leads to a higher one, or is not led around tasks.
        heights: [tasks].
        pred: int64 [edges], where edges begin.
        succ: int64 [edges], where they end.
    """
    tasks = len(level)
    column = _columns(level, pred, succ)
    routes: list[list[Point]] = [[] for _ in pred]
    x, y = np.zeros(tasks), np.zeros(tasks)
    boxes: list[Point] = []
    parts = _parts(pred, succ, tasks)
    for members, edges in parts:
        boxes.append(_place_part(members, edges, column, heights, (pred, succ), (x, y), routes))
    corners, width, height = _pack(boxes)
    for (members, edges), (left, top) in zip(parts, corners, strict=True):
        x[members] += left
        y[members] += top
        for edge in edges:
            routes[edge] = [(at + left, up + top) for at, up in routes[edge]]
    return Layout(x, y, routes, width, height)


def _columns(level: Int64, pred: Int64, succ: Int64) -> Int64:
    """Return the column of each task: its level; of a task without producers the one before its first consumer."""
    first = np.full(len(level), np.iinfo(np.int64).max)
    np.minimum.at(first, pred, level[succ])
    is_source = np.ones(len(level), np.bool_)
    is_source[succ] = False
    used = np.zeros(len(level), np.bool_)
    used[pred] = True
    return np.where(is_source & used, np.maximum(first - 1, 0), level)


def _parts(pred: Int64, succ: Int64, tasks: int) -> list[tuple[list[int], list[int]]]:
    """Return tasks and edges of each separate part, those with edges first, by their first task."""
    root = list(range(tasks))

    def find(task: int) -> int:
        while root[task] != task:
            root[task] = root[root[task]]
            task = root[task]
        return task

    for first, second in zip(pred.tolist(), succ.tolist(), strict=True):
        one, other = find(first), find(second)
        root[max(one, other)] = min(one, other)
    parts: dict[int, tuple[list[int], list[int]]] = {}
    for task in range(tasks):
        parts.setdefault(find(task), ([], []))[0].append(task)
    for edge, first in enumerate(pred.tolist()):
        parts[find(first)][1].append(edge)
    return sorted(parts.values(), key=lambda part: not part[1])


def _pack(boxes: list[Point]) -> tuple[list[Point], float, float]:
    """Return the corners of boxes that fill rows, and width and height of the whole."""
    area = sum((wide + PART_GAP) * (high + PART_GAP) for wide, high in boxes)
    limit = max([(_SHAPE * area) ** 0.5, *(wide for wide, _ in boxes)])
    corners: list[Point] = []
    left = top = row = width = 0.0
    for wide, high in boxes:
        if left and left + wide > limit:
            left, top, row = 0.0, top + row + PART_GAP, 0.0
        corners.append((left, top))
        left, row = left + wide + PART_GAP, max(row, high)
        width = max(width, left - PART_GAP)
    return corners, width, top + row


def _place_part(
    members: list[int],
    edges: list[int],
    column: Int64,
    heights: list[float],
    ends: tuple[Int64, Int64],
    corner: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    routes: list[list[Point]],
) -> Point:
    """Place one part at the origin and return its size."""
    made = _Columns(members, edges, column, heights, ends)
    made.sort()
    made.fold()
    made.place()
    x, y = corner
    step = WIDTH + COLUMN_GAP
    for task, item in made.items.items():
        x[task], y[task] = made.column[item] * step, made.center[item] - heights[task] / 2
    for edge, passing in made.passing.items():
        for item in passing:
            left, center = made.column[item] * step, made.center[item]
            routes[edge] += [(left, center), (left + WIDTH, center)]
    return (len(made.layers) - 1) * step + WIDTH, made.bottom


class _Columns:
    """Tasks of one part in columns, with a place in each column that an edge passes."""

    def __init__(
        self, members: list[int], edges: list[int], column: Int64, heights: list[float], ends: tuple[Int64, Int64]
    ) -> None:
        first = min(int(column[task]) for task in members)
        self.items = {task: item for item, task in enumerate(members)}
        self.column = [int(column[task]) - first for task in members]
        self.size = [heights[task] + TASK_GAP for task in members]
        self.passing: dict[int, list[int]] = {}
        self._weight = [1.0] * len(members)
        near: list[int] = []
        far: list[int] = []
        for edge in edges:
            source, target = self.items[int(ends[0][edge])], self.items[int(ends[1][edge])]
            begin, end = self.column[source], self.column[target]
            if begin >= end:
                continue
            between = range(begin + 1, end) if end - begin <= _MAX_SPAN else range(0)
            chain = [source, *self._pass(edge, between), target]
            near += chain[:-1]
            far += chain[1:]
        count = len(self.size)
        links = np.array(near, np.int64), np.array(far, np.int64)
        self._after, self._before = neighbors(*links, count), neighbors(*links[::-1], count)
        self.layers: list[list[int]] = [[] for _ in range(max(self.column) + 1)]
        for item, place in enumerate(self.column):
            self.layers[place].append(item)
        self.center = [0.0] * count
        self.bottom = 0.0

    def _pass(self, edge: int, columns: range) -> list[int]:
        made = list(range(len(self.size), len(self.size) + len(columns)))
        self.column += columns
        self.size += [PASSING] * len(columns)
        self._weight += [2.0] * len(columns)
        if made:
            self.passing[edge] = made
        return made

    def sort(self) -> None:
        """Order each column by the mean place of its neighbors, downstream and back."""
        place = [0.0] * len(self.size)
        for layer in self.layers:
            for at, item in enumerate(layer):
                place[item] = at / len(layer)
        for sweep in range(_ORDER_SWEEPS):
            links = self._after if sweep % 2 else self._before
            for layer in reversed(self.layers) if sweep % 2 else self.layers:
                for item in layer:
                    if links[item]:
                        place[item] = sum(place[other] for other in links[item]) / len(links[item])
                layer.sort(key=place.__getitem__)
                for at, item in enumerate(layer):
                    place[item] = at / len(layer)

    def fold(self) -> None:
        """Split columns that are too high into several beside each other."""
        area = sum(self.size) * (WIDTH + COLUMN_GAP)
        limit = max(_MAX_HEIGHT, (area / _SHAPE) ** 0.5)
        folded: list[list[int]] = []
        for layer in self.layers:
            begins = accumulate((self.size[item] for item in layer[:-1]), initial=0.0)
            folds = [int(begin / limit) for begin in begins] if layer else []
            parts: list[list[int]] = [[] for _ in range(max(folds, default=0) + 1)]
            for item, part in zip(layer, folds, strict=True):
                parts[part].append(item)
            folded += parts
        self.layers = folded
        for place, layer in enumerate(folded):
            for item in layer:
                self.column[item] = place

    def place(self) -> None:
        """Set the height of each task to the mean of its neighbors' as far as the order allows."""
        for layer in self.layers:
            self._stack(layer, [0.0] * len(layer))
        both = [before + after for before, after in zip(self._before, self._after, strict=True)]
        for sweep in range(_PLACE_SWEEPS):
            is_back = sweep % 2 == 1
            links = both if sweep >= _PLACE_SWEEPS - 2 else self._after if is_back else self._before
            for layer in reversed(self.layers) if is_back else self.layers:
                self._stack(layer, [self._wanted(item, links[item]) for item in layer])
        top = min(self.center[item] - self.size[item] / 2 for layer in self.layers for item in layer)
        self.center = [center - top for center in self.center]
        self.bottom = max(center + size / 2 for center, size in zip(self.center, self.size, strict=True))

    def _wanted(self, item: int, links: list[int]) -> float:
        if not links:
            return self.center[item]
        return sum(self.center[other] for other in links) / len(links)

    def _stack(self, layer: list[int], wanted: list[float]) -> None:
        """Place a column as close to the wanted heights as its order and sizes allow."""
        if not layer:
            return
        offsets = list(
            accumulate(((self.size[one] + self.size[other]) / 2 for one, other in pairwise(layer)), initial=0.0)
        )
        # Pools of neighbors that would overlap: sum of weighted heights, weight, length.
        pools: list[tuple[float, float, int]] = []
        for item, height, offset in zip(layer, wanted, offsets, strict=True):
            weight = self._weight[item]
            pool = ((height - offset) * weight, weight, 1)
            while pools and pools[-1][0] * pool[1] > pool[0] * pools[-1][1]:
                total, weight, length = pools.pop()
                pool = (pool[0] + total, pool[1] + weight, pool[2] + length)
            pools.append(pool)
        heights = [total / weight for total, weight, length in pools for _ in range(length)]
        for item, height, offset in zip(layer, heights, offsets, strict=True):
            self.center[item] = height + offset
