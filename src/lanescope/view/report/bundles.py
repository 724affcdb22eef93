"""Rows of a report: slices by strip, neighbours that are too many joined to bundles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.view.model.strips import Strips

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Into how many cells the span is divided for bundles at most: above that, bundles cost more than they save.
CELLS = 2048
#: An exact window around a finding is this part of the span, the one in the middle at most that part.
_AROUND, _MIDDLE = 1 / 2048, 1 / 64


class Rows(NamedTuple):
    """What is drawn, by strip; int64 [rows] each but ``start`` and ``row_of``.

    Attributes:
        begin, end: times; of a bundle those of its first and of its last slice.
        busy: sum of the lengths of its slices; ``slices``: how many they are.
        first: row of the slices table of the first of them.
        start: int64 [strips + 1], where each strip begins.
        row_of: int64 [slices], the row that holds each row of the slices table.
    """

    begin: Ints
    end: Ints
    busy: Ints
    slices: Ints
    first: Ints
    start: Ints
    row_of: Ints

    @property
    def bundles(self) -> Ints:
        """Rows that are more than one slice."""
        return np.flatnonzero(self.slices > 1)


def all_rows(strips: Strips) -> Rows:
    """Return a row for each slice."""
    length = strips.end - strips.begin
    return Rows(
        strips.begin, strips.end, length, np.ones(len(length), np.int64), strips.order, strips.start, strips.where
    )


def bundled(strips: Strips, low: int, cell: int, keep: Mask) -> Rows:
    """Return rows in which neighbours of a strip are joined: shorter than a cell, and begun in the same one.

    Args:
        strips: the slices.
        low: where the first cell begins.
        cell: length of a cell.
        keep: bool [n], slices along the strips' order that stay as they are.
    """
    begin, end = strips.begin, strips.end
    count = len(begin)
    joined = _joined(strips, low, cell, keep)
    first = np.flatnonzero(~joined)
    row = np.cumsum(~joined) - 1
    row_of = np.empty(count, np.int64)
    row_of[strips.order] = row
    last = np.append(first[1:], count) - 1 if count else first
    busy = np.add.reduceat(end - begin, first) if count else first
    return Rows(
        begin[first],
        end[last],
        busy,
        last - first + 1,
        strips.order[first],
        np.searchsorted(first, strips.start),
        row_of,
    )


def _joined(strips: Strips, low: int, cell: int, keep: Mask) -> Mask:
    """Return which slices, along the strips' order, are in a bundle with the one before."""
    may = (strips.end - strips.begin < cell) & ~keep
    at = (strips.begin - low) // cell
    joined = np.zeros(len(may), np.bool_)
    joined[1:] = may[1:] & may[:-1] & (at[1:] == at[:-1])
    joined[strips.start[:-1]] = False
    return joined


def main_names(rows: Rows, strips: Strips, name_of: Ints) -> Ints:
    """Return the name of each row: of a bundle the one with most of its time, the most frequent of equal ones.

    Args:
        rows: the rows.
        strips: the slices.
        name_of: int64 [slices], number of the name of each row of the slices table, the most frequent 0.
    """
    found: Ints = name_of[rows.first]
    in_bundle = np.repeat(rows.slices > 1, rows.slices)
    if not in_bundle.any():
        return found
    row = np.repeat(np.arange(len(rows.slices)), rows.slices)[in_bundle]
    name = name_of[strips.order[in_bundle]]
    length = (strips.end - strips.begin)[in_bundle]
    names = int(name.max()) + 1
    key = row * names + name
    by = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.diff(key[by], prepend=-1))
    total, pair = np.add.reduceat(length[by], first), key[by][first]
    best = np.lexsort((pair % names, -total, pair // names))
    owner = (pair // names)[best]
    leads = np.diff(owner, prepend=-1) != 0
    found = found.copy()
    found[owner[leads]] = (pair % names)[best][leads]
    return found


class Windows(NamedTuple):
    """What stays exact where slices are bundled.

    Attributes:
        times: windows, disjoint, by time.
        keep: bool [n], along the strips' order: slices in them, and those that are wanted by themselves.
    """

    times: list[tuple[int, int]]
    keep: Mask


def exact_windows(strips: Strips, window: tuple[int, int], moments: Sequence[int], wanted: Ints, most: int) -> Windows:
    """Return the windows around moments, as many as there is room for, and one in the middle.

    Args:
        strips: the slices.
        window: first and last time of the trace.
        moments: times to see exactly, the most important first.
        wanted: int64, positions along the strips' order of slices that stay in any case.
        most: how many slices may be in the windows.
    """
    low, high = window
    begins, ends = np.sort(strips.begin), np.sort(strips.end)

    def inside(since: int, until: int) -> int:
        return int(np.searchsorted(begins, until)) - int(np.searchsorted(ends, since, "right"))

    half = max(int((high - low) * _MIDDLE) // 2, 1)
    middle = (low + high) // 2
    while half > 1 and inside(middle - half, middle + half) > most // 3:
        half //= 2
    chosen = [(max(middle - half, low), min(middle + half, high))]
    used = inside(*chosen[0])
    if used > most:
        chosen, used = [], 0
    around = max(int((high - low) * _AROUND), 2)
    for moment in dict.fromkeys(moments):
        since, until = max(moment - around // 2, low), min(moment + around // 2, high)
        if any(a <= since and until <= b for a, b in chosen):
            continue
        slices = inside(since, until)
        if used + slices > most:
            break
        used += slices
        chosen.append((since, until))
    times: list[tuple[int, int]] = []
    for since, until in sorted(chosen):
        if times and since <= times[-1][1]:
            times[-1] = (times[-1][0], max(until, times[-1][1]))
        else:
            times.append((since, until))
    keep = np.zeros(len(strips.begin), np.bool_)
    keep[wanted] = True
    for since, until in times:
        keep |= (strips.begin < until) & (strips.end > since)
    return Windows(times, keep)


def longest_of_names(strips: Strips, name_of: Ints) -> Ints:
    """Return where along the strips' order the longest slice of each name is, the first of equal ones."""
    name = name_of[strips.order]
    by = np.lexsort((strips.begin - strips.end, name))
    found: Ints = by[np.flatnonzero(np.diff(name[by], prepend=-1))]
    return found


def row_count(strips: Strips, low: int, cell: int, keep: Mask) -> int:
    """Return how many rows ``bundled`` makes."""
    return int(np.count_nonzero(~_joined(strips, low, cell, keep)))


def finest(fits: Callable[[int], bool]) -> int:
    """Return the most cells that fit, 1 if none do; it is assumed that fewer take less.

    Args:
        fits: whether a number of cells does.
    """
    low, high = 1, CELLS
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low
