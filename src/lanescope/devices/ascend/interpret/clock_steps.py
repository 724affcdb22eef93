"""Clocks of single cores that stepped, found from where the stamps of cores and schedulers stop to agree.

The scheduler stamps when it sends an execution and when it sees it finished, the core when it receives it, starts and
ends. A core whose clock stepped back receives before the dispatch and seems to be seen late; one that stepped ahead
ends after it was seen. How long an execution waits at the core varies by far more than a step, how soon its end is seen
hardly varies: so an impossible stamp says that there is a step, and the time from end to finish where it begins and
ends. A short step back may leave no impossible stamp. Then a scheduler may be late as well: it is a step only where the
ends of one core alone are seen later than any usual, one after the other, and those of all others meanwhile are not.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.common.intervals import order as in_order
from lanescope.declaration import frozen_class
from lanescope.devices.ascend.interpret.execution_table import Executions
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: Executions that make a step.
_LEAST_ROWS = 3
#: A stretch has ended when rows that look sound have taken this much from its score; each takes at most 1.
_PATIENCE = 8
#: Executions that make a step without an impossible stamp, and the share of them that is seen unusually late.
_LEAST_LATE, _LATE_SHARE = 8, 0.9
#: What is unusually late: so many times as far from the median as nine of ten executions are, and twice the median.
_UNUSUAL = 2
#: Executions whose lateness is looked at for that, at least half as many of longer captures.
_SAMPLED = 1 << 15
#: Share of a step by which another core may be late meanwhile.
_MEANWHILE = 0.3
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
    as those of other cores. Without an impossible stamp, it alone is late for long.

    Args:
        runs: the executions.
    """
    suspect = np.zeros(len(runs), np.bool_)
    none = np.empty(0, np.int64)
    nothing = Steps(suspect, none, none, none)
    took = np.where(runs.receive > 0, runs.receive, runs.start)
    is_back = took < runs.dispatch
    is_ahead = (runs.finish > 0) & (runs.end > runs.finish) & (runs.dispatch > 0)
    is_seen = (runs.dispatch > 0) & (runs.finish > 0)
    latency = runs.finish - runs.end
    is_late = _unusually_late(runs.core, latency, is_seen)
    if not (is_back.any() or is_ahead.any() or is_late.any()):
        return nothing
    seen = np.flatnonzero(is_seen)
    if not len(seen):
        return nothing
    # The schedulers' stamps are of another clock: their order stands.
    seen = seen[in_order(runs.core[seen], runs.dispatch[seen])]
    core, latency = runs.core[seen], latency[seen]
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
        if is_late[seen[first:last]].any() and core[first] not in odd_cores:
            for begin, end, size in _stretches(late, is_late[seen[first:last]], sound - level, 1):
                part = slice(first + begin, first + end)
                if _is_alone(runs.dispatch[seen], core, latency - level, is_late[seen], part, size):
                    found.append((part.start, part.stop, -size))
    for begin, end, _ in found:
        _mark(suspect, runs, seen[begin:end], is_last=end in edges)
    if not found:
        return nothing
    first_rows, _, sizes = np.array(sorted(found), np.int64).T
    return Steps(suspect, core[first_rows], seen[first_rows], sizes)


def _unusually_late(core: Int64, latency: Int64, is_seen: Mask) -> Mask:
    """Return the executions whose ends were seen unusually late, of cores with several of them, bool [rows].

    Args:
        core: int64 [rows].
        latency: int64 [rows] cycles, from the end to the moment when it was seen.
        is_seen: bool [rows], ``latency`` is known.
    """
    nothing = np.zeros(len(core), np.bool_)
    known = latency if is_seen.all() else latency[is_seen]
    if len(known) < _LEAST_LATE:
        return nothing
    known = known[:: len(known) // _SAMPLED + 1]
    at = len(known) // 2, len(known) * 9 // 10
    middle, most = np.partition(known, at)[list(at)].tolist()
    is_late: Mask = is_seen & (latency > middle + max(_UNUSUAL * (most - middle), middle))
    cores = np.bincount(core[is_late]) >= _LEAST_LATE
    if not cores.any() or np.count_nonzero(cores) > len(distinct(core)) // 2:
        return nothing
    return is_late & np.append(cores, np.zeros(int(core.max()) + 1 - len(cores), np.bool_))[core]


def _is_alone(dispatch: Int64, core: Int64, late: Int64, is_late: Mask, part: slice, size: int) -> bool:
    """Return whether a stretch of a core is unusually late throughout, not always so, and no other core is meanwhile.

    Args:
        dispatch: int64 [rows], cycles; all rows are by core and dispatch.
        core: int64 [rows].
        late: int64 [rows] cycles, how much later than usual the end of each was seen.
        is_late: bool [rows], that is unusual.
        part: the rows of the stretch.
        size: cycles by which it is late.
    """
    length, mine = part.stop - part.start, int(np.count_nonzero(core == core[part.start]))
    if length < _LEAST_LATE or is_late[part].mean() < _LATE_SHARE or mine - length < _LEAST_ROWS:
        return False
    span = dispatch[part]
    others = np.flatnonzero((dispatch >= span[0]) & (dispatch <= span[-1]) & (core != core[part.start]))
    cores, counts = np.unique(core[others], return_counts=True)
    cores = cores[counts >= _LEAST_ROWS]
    if 2 * len(cores) < len(distinct(core)):
        return False  # too few to tell
    return all(float(np.median(late[others[core[others] == one]])) < _MEANWHILE * size for one in cores.tolist())


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
