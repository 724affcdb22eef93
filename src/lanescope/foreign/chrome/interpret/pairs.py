"""Begins and ends: which belong together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.intervals import order as sorted_by

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Paired:
    """Slices made of two events.

    Attributes:
        begin: int64 [n], rows of the begins, in the order of the file.
        end: int64 [n], rows of their ends, -1: none.
        crosses: bool [n], where something that began inside was open at the end.
        unmatched: int64 [m], rows of ends that close nothing.
        disordered: how many events come before an earlier one of their stack.
    """

    begin: Int64
    end: Int64
    crosses: Mask
    unmatched: Int64
    disordered: int


def pair(rows: Int64, stack: npt.NDArray[Any], name: npt.NDArray[Any], ts: Int64, is_end: Mask) -> Paired:
    """Pair events in the order of time, those of one time in the order of the file.

    Args:
        rows: int64 [n], rows of the events.
        stack: int64 [n], what each belongs to, from 0.
        name: integers [n], codes of their names, -1: none.
        ts: int64 [n], their times.
        is_end: bool [n].
    """
    if not len(rows):
        none = np.empty(0, np.int64)
        return Paired(none, none, np.empty(0, np.bool_), none, 0)
    order = np.argsort(stack, kind="stable")
    in_file = ts[order]
    disordered = int(np.count_nonzero((in_file[1:] < in_file[:-1]) & (stack[order][1:] == stack[order][:-1])))
    if disordered:
        order = sorted_by(stack, ts)
    partner, crosses = np.empty(len(rows), np.int64), np.empty(len(rows), np.uint8)
    core.trace_event_pairs(
        np.ascontiguousarray(stack[order], np.int32),
        np.ascontiguousarray(name[order], np.int32),
        np.ascontiguousarray(is_end[order]).view(np.uint8),
        int(stack.max()) + 1,
        partner,
        crosses,
    )
    ends, sorted_rows = is_end[order], rows[order]
    begin = sorted_rows[~ends]
    end = np.append(sorted_rows, -1)[partner[~ends]]
    in_order = np.argsort(begin, kind="stable")
    unmatched = np.sort(sorted_rows[ends & (partner < 0)])
    return Paired(begin[in_order], end[in_order], crosses[~ends][in_order].view(np.bool_), unmatched, disordered)


def codes_of(*columns: npt.NDArray[Any]) -> Int64:
    """Return a number for each combination of values of columns, int64 [n], from 0, in the order of the values."""
    order = np.lexsort(columns[::-1])
    is_new = np.zeros(len(order), np.bool_)
    for column in columns:
        ordered = column[order]
        is_new[1:] |= ordered[1:] != ordered[:-1]
    codes = np.empty(len(order), np.int64)
    codes[order] = np.cumsum(is_new)
    return codes
