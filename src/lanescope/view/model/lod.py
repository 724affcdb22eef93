"""Level of detail: what of a strip is drawn at a width, exact in each column of pixels.

A slice wider than ``WIDE`` pixels is a rectangle of its own. Others are drawn by column of one pixel: how much of it
slices cover, exactly, from sums of lengths, and the longest of them. The page of a report does the same in JavaScript;
this is what it is tested against, and what makes pictures.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

#: Pixels beyond which a slice is a rectangle of its own, and beyond which it has room for a label.
WIDE, LABELLED = 1.5, 26.0
#: Of a name that is cut to no more characters than these nothing is written: `s…y` tells nothing.
LEAST_LABEL = 4
#: Opacities of columns, and the busy shares above which each but the first is meant: a short slice alone stays visible.
OPACITIES = (0.42, 0.62, 0.82, 1.0)
_ABOVE = (0.2, 0.5, 0.8)


class Rectangle(NamedTuple):
    """Something to draw.

    Attributes:
        left, right: pixels from the left edge of the picture, within it.
        row: position along the strips' order: the slice, or the longest of those that the rectangle has in it.
        opacity: number of ``OPACITIES``.
        share: part of the rectangle that slices cover, 0 to 1; of several columns their mean.
        slices: how many slices are in it.
        is_alone: whether it is one slice with its own width, which may have a label.
    """

    left: float
    right: float
    row: int
    opacity: int
    share: float
    slices: int
    is_alone: bool = False


def opacity(share: float) -> int:
    """Return the number of the opacity of a busy share.

    Example:
        >>> [opacity(share) for share in (0.0, 0.2, 0.21, 0.5, 0.8, 0.81, 1.0)]
        [0, 0, 1, 1, 2, 3, 3]
    """
    return bisect_left(_ABOVE, share)


class Detail:
    """Strips with what the algorithm looks up.

    Args:
        begin, end: int64 [n], times along the strips' order, since a time near them.
        start: int64 [strips + 1], where each strip begins.
        colour: int64 [n], number of the colour of each: neighbours of another colour are never merged.
        busy: int64 [n], time that each covers; None: from begin to end. Bundles cover less.
    """

    def __init__(self, begin: Ints, end: Ints, start: Ints, colour: Ints, busy: Ints | None = None) -> None:
        self.begin, self.end, self.start, self.colour = begin, end, start, colour
        covered = end - begin if busy is None else busy
        self.sums = np.concatenate([[0], np.cumsum(covered)])

    def strip(self, number: int, window: tuple[float, float], width: int) -> Iterator[Rectangle]:
        """Yield what to draw of a strip, from left to right; no two overlap by more than half a pixel.

        Args:
            number: the strip.
            window: times of the left and of the right edge.
            width: pixels between them.

        Complexity:
            O(min(slices, width) * log slices).
        """
        last: Rectangle | None = None
        for one in self._parts(number, window, width):
            if last is not None and self._merges(last, one):
                columns, more = last.right - last.left, one.right - one.left
                share = (last.share * columns + one.share * more) / (columns + more)
                last = last._replace(right=one.right, share=share, slices=last.slices + one.slices)
                continue
            if last is not None:
                yield last
            last = one
        if last is not None:
            yield last

    def _merges(self, one: Rectangle, other: Rectangle) -> bool:
        return (
            not one.is_alone
            and not other.is_alone
            and one.opacity == other.opacity
            and one.right == other.left
            and int(self.colour[one.row]) == int(self.colour[other.row])
        )

    def _parts(self, number: int, window: tuple[float, float], width: int) -> Iterator[Rectangle]:
        t0, t1 = window
        first, stop = int(self.start[number]), int(self.start[number + 1])
        begin, end, per = self.begin, self.end, width / (t1 - t0)
        row = bisect_right(end, t0, first, stop)
        while row < stop and begin[row] < t1:
            left, right = (begin[row] - t0) * per, (end[row] - t0) * per
            if right - left > WIDE:
                yield Rectangle(max(float(left), 0.0), min(float(right), float(width)), row, 3, 1.0, 1, is_alone=True)
                row += 1
                continue
            column = max(int(left), 0)
            behind = max(bisect_left(begin, t0 + (column + 1) / per, row, stop), row + 1)
            if behind - 1 > row and (end[behind - 1] - begin[behind - 1]) * per > WIDE:
                behind -= 1
            covered = (int(self.sums[behind]) - int(self.sums[row])) % (1 << 64)  # sums may wrap, differences do not
            share = min(float(covered) * per, 1.0)
            longest = row + int(np.argmax(end[row:behind] - begin[row:behind]))
            yield Rectangle(column, column + 1, longest, opacity(share), share, behind - row)
            row = behind


def rectangles(
    detail: Detail, strips: Sequence[int], window: tuple[float, float], width: int
) -> dict[int, list[Rectangle]]:
    """Return what to draw of several strips, by strip.

    Args:
        detail: the slices.
        strips: their numbers.
        window: times of the left and of the right edge.
        width: pixels between them.

    Raises:
        ValueError: the window is empty.
    """
    if not window[0] < window[1] or width < 1:
        raise ValueError("the window is empty")
    return {number: list(detail.strip(number, window, width)) for number in strips}
