"""Entries and exits of API functions -> calls, nested as they ran."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64, Mask, group
from lanescope.devices.levelzero.formats import layout
from lanescope.trace import Table

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """The calls of all threads, in the order of their entries.

    Attributes:
        entry: int64 [n], row of the entry in ``calls``.
        exit: int64 [n], row of the exit, -1 where it is missing.
        seq: int64 [n], position of the entry in the stream.
        exit_seq: int64 [n], position of the exit; beyond all records where it is missing.
        stray: int64 [m], rows of exits without an entry.
    """

    entry: Int64
    exit: Int64
    seq: Int64
    exit_seq: Int64
    stray: Int64


#: Rounds in which calls without calls in them are taken out; what is nested deeper is matched by level.
_PEELS = 3
#: ``exit_seq`` of a call that never returned.
NEVER = np.iinfo(np.int64).max


def match(calls: Table) -> Calls:
    """Pair entries with exits by a stack per thread.

    Where a thread's records are whole this is two sorts. In a thread with missing records an exit closes the innermost
    open call of its function, and the calls inside that one are left open; an exit of a function that is not open is
    stray.

    Args:
        calls: table ``calls`` of the event model, in the order of the stream.
    """
    count = len(calls)
    if not count:
        none = np.empty(0, np.int64)
        return Calls(none, none, none, none, none)
    thread, seq = calls.values("thread_id"), calls.values("seq")
    is_exit, function = calls.values("is_exit"), calls.codes("function")
    partner = np.full(count, -1, np.int64)
    rows = group([thread], seq).order
    # Most calls hold no other: take those that lie side by side, then those that held only such, and so on.
    for _ in range(_PEELS):
        rows = _peel(rows, thread, is_exit, function, partner)
    _match_levels(rows, thread, is_exit, function, partner)
    entry = np.flatnonzero(~is_exit)
    exit_ = partner[entry]
    return Calls(
        entry,
        exit_,
        seq[entry],
        np.where(exit_ >= 0, seq[exit_], NEVER),
        np.flatnonzero(is_exit & (partner < 0)),
    )


def _peel(rows: Int64, thread: Ints, is_exit: Mask, function: Ints, partner: Int64) -> Int64:
    """Pair each entry with the record of its thread that follows, if that is its exit; return the rest."""
    if len(rows) < 2:
        return rows
    leaves, of, name = is_exit[rows], thread[rows], function[rows]
    pair = np.flatnonzero(~leaves[:-1] & leaves[1:] & (of[:-1] == of[1:]) & (name[:-1] == name[1:]))
    partner[rows[pair]], partner[rows[pair + 1]] = rows[pair + 1], rows[pair]
    left = np.ones(len(rows), np.bool_)
    left[pair] = left[pair + 1] = False
    return rows[left]


def _match_levels(rows: Int64, thread: Ints, is_exit: Mask, function: Ints, partner: Int64) -> None:
    """Pair the records at ``rows``, sorted by thread and time: on each level of a whole thread they alternate."""
    if not len(rows):
        return
    leaves, of = is_exit[rows], thread[rows]
    first = np.ones(len(rows), np.bool_)
    first[1:] = of[1:] != of[:-1]
    step = np.where(leaves, -1, 1)
    depth = np.cumsum(step)
    start = np.maximum.accumulate(np.where(first, np.arange(len(rows)), 0))
    # How many calls are open around each one: the same number at its entry and at its exit.
    level = depth - (depth - step)[start] - ~leaves
    levels = group([of, np.maximum(level, 0)], np.arange(len(rows)))
    enters = ~leaves[levels.order]
    here = np.flatnonzero(~levels.first[1:] & enters[:-1] & ~enters[1:])
    entry, exit_ = rows[levels.order[here]], rows[levels.order[here + 1]]
    partner[entry], partner[exit_] = exit_, entry
    broken = np.zeros(int(of.max()) + 1, np.bool_)
    broken[of[level < 0]] = True
    broken[thread[entry[function[entry] != function[exit_]]]] = True
    broken[of[leaves & (partner[rows] < 0)]] = True
    if broken.any():
        mine = rows[broken[of]]
        partner[mine] = -1
        _match_broken(mine, thread, is_exit, function, partner)


def _match_broken(rows: Int64, thread: Ints, is_exit: Mask, function: Ints, partner: Int64) -> None:
    """Pair the records of threads where some are missing; linear, as each call is opened and closed once."""
    stack: list[tuple[int, int]] = []
    open_calls: dict[int, int] = {}
    last = -1
    for row, of, leaves, name in zip(
        rows.tolist(), thread[rows].tolist(), is_exit[rows].tolist(), function[rows].tolist(), strict=True
    ):
        if of != last:
            stack, open_calls, last = [], {}, of
        if not leaves:
            stack.append((row, name))
            open_calls[name] = open_calls.get(name, 0) + 1
        elif open_calls.get(name, 0):
            while True:
                entry, entered = stack.pop()
                open_calls[entered] -= 1
                if entered == name:
                    partner[entry], partner[row] = row, entry
                    break


def is_error(results: list[str]) -> Mask:
    """Return which results say that a function failed, bool [n]; an answer is no failure."""
    return np.array([result not in layout.ANSWERS for result in results], np.bool_)
