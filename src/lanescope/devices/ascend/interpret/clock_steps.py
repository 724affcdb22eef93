"""Clocks of single cores that stepped, found from where the stamps of cores and schedulers stop to agree.

The scheduler stamps when it sends an execution and when it sees it finished, the core when it receives it, starts and
ends. A core whose clock stepped back receives before the dispatch and seems to be seen late; one that stepped ahead
ends after it was seen. How long an execution waits at the core varies by far more than a step, how soon its end is seen
hardly varies: so an impossible stamp says that there is a step, and the time from end to finish where it begins and
ends.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.declaration import frozen_class
from lanescope.devices.ascend.interpret.execution_table import Executions
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: Executions that make a step.
_LEAST_ROWS = 3
#: A stretch has ended when rows that look sound have taken this much from its score; each takes at most 1.
_PATIENCE = 8
#: Mean score that sound rows have at most (-1: none looks stepped). Where it is larger, the step is too short to tell.
_SOUND_SCORE = -0.4


@frozen_class
class Steps:
    """Steps of the clocks of single cores, by core and first row.

    Attributes:
        suspect: bool [rows], the stamps of the core are off.
        core: int64 [steps].
        row: int64 [steps], the first row that shows it.
        size: int64 [steps] cycles by which the stamps are off, negative: the clock stepped back. An estimate: the
            difference of two medians.
    """

    suspect: Mask
    core: Int64
    row: Int64
    size: Int64


def clock_steps(runs: Executions) -> Steps:
    """Find cores whose clock stepped, and the executions that this concerns.

    Such a core has stamps that cannot be, other cores have none, and its executions before and behind are seen as soon
    as those of other cores. Without an impossible stamp nothing is concluded: a scheduler may be late.

    Args:
        runs: the executions.
    """
    suspect = np.zeros(len(runs), np.bool_)
    none = np.empty(0, np.int64)
    nothing = Steps(suspect, none, none, none)
    took = np.where(runs.receive > 0, runs.receive, runs.start)
    is_back = took < runs.dispatch
    is_ahead = (runs.finish > 0) & (runs.end > runs.finish) & (runs.dispatch > 0)
    if not (is_back.any() or is_ahead.any()):
        return nothing
    seen = np.flatnonzero((runs.dispatch > 0) & (runs.finish > 0))
    if not len(seen):
        return nothing
    # The schedulers' stamps are of another clock: their order stands.
    seen = seen[np.lexsort((runs.dispatch[seen], runs.core[seen]))]
    core, latency = runs.core[seen], (runs.finish - runs.end)[seen]
    odd_cores = distinct(core[(is_back | is_ahead)[seen]])
    if len(odd_cores) > max(1, len(distinct(core)) // 2):
        return nothing  # not the clock of a core: this chip stamps so
    sound = latency[~np.isin(core, odd_cores)]
    level = int(np.median(sound)) if len(sound) else 0
    edges = np.concatenate([[0], np.flatnonzero(np.diff(core)) + 1, [len(core)]])
    found: list[tuple[int, int, int]] = []
    for first, last in pairwise(edges.tolist()):
        late = latency[first:last] - level
        for odd, sign in ((is_back, 1), (is_ahead, -1)):
            for begin, end, size in _stretches(late, odd[seen[first:last]], sound - level, sign):
                found.append((first + begin, first + end, -size))
                _mark(suspect, runs, seen[first + begin : first + end], is_last=end == last - first)
    if not found:
        return nothing
    first_rows, _, sizes = np.array(sorted(found), np.int64).T
    return Steps(suspect, core[first_rows], seen[first_rows], sizes)


def _stretches(late: Int64, odd: Mask, sound: Int64, sign: int) -> list[tuple[int, int, int]]:
    """Return the stretches of a core's rows that are off, with how much later than elsewhere their ends are seen.

    Args:
        late: int64 [rows] cycles, how much later than usual the end of each was seen.
        odd: bool [rows], it has stamps that cannot be.
        sound: int64 [n] cycles, ``late`` of the rows of other cores.
        sign: 1: ends of a stretch seem to be seen late, -1: early.

    Returns:
        (begin, end, size) of each, with at least three rows and an impossible one.
    """
    found: list[tuple[int, int, int]] = []
    member = odd
    for _ in range(2):  # The second time with all rows of the stretches instead of the impossible ones.
        if not member.any():
            break
        size = int(np.median(late[member]))
        if size * sign <= 0 or (len(sound) and _score(sound, size).mean() > _SOUND_SCORE):
            return []
        parts = _best_parts(_score(late, size).tolist())
        found = [(begin, end, size) for begin, end in parts if odd[begin:end].any()]
        member = np.zeros(len(late), np.bool_)
        for begin, end, _ in found:
            member[begin:end] = True
    return found


def _score(late: Int64, size: int) -> npt.NDArray[np.float64]:
    """Return how far rows look off by ``size``, float64 [n]: -1 as elsewhere, 1 off by it, 0 half way."""
    score: npt.NDArray[np.float64] = np.clip(2 * late / size - 1, -1, 1)
    return score


def _best_parts(score: list[float]) -> list[tuple[int, int]]:
    """Return the parts (begin, end) of a row of scores with the largest sums, at least of three full ones."""
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(score):
        if score[at] <= 0:
            at += 1
            continue
        begin = end = at
        total = best = 0.0
        while at < len(score) and total >= 0 and best - total <= _PATIENCE:
            total += score[at]
            at += 1
            if total >= best:
                best, end = total, at
        if end - begin >= _LEAST_ROWS and best > _LEAST_ROWS - 1:
            found.append((begin, end))
        at = end
    return found


def _mark(suspect: Mask, runs: Executions, rows: Int64, *, is_last: bool) -> None:
    """Mark the executions of a stretch and those that no scheduler has seen: between, and behind the core's last."""
    suspect[rows] = True
    unseen = (runs.core == runs.core[rows[0]]) & ((runs.dispatch == 0) | (runs.finish == 0))
    unseen &= runs.counter >= runs.counter[rows[0]]
    if not is_last:
        unseen &= runs.counter <= runs.counter[rows[-1]]
    suspect |= unseen
