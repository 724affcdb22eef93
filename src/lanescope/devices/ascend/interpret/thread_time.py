"""Where the time of each scheduler thread went. Linear in the records but for one sort."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.declaration import frozen_class

Int64 = npt.NDArray[np.int64]


@frozen_class
class ThreadTimes:
    """Time of each thread by use: busy, idle and unknown add up to its window.

    Attributes:
        thread: int64 [threads], rising.
        records: int64 [threads].
        begin, end: int64 [threads], from the first begin to the last end of its records, cycles.
        busy: int64 [threads], cycles in which a phase of the outer kind ran.
        unknown: int64 [threads], cycles between two such phases where one with a stamp beyond the attested window lies.
        suspects: int64 [threads], records with such a stamp; they are in nothing but ``records``, ``iterations``,
            ``working`` and the sums of their counters.
        suspect: int64 [threads], cycles that those of the outer kind claim.
        longest_idle: int64 [threads], the longest pause between two of them, cycles.
        pauses: int64 [threads], how many there are.
        iterations: int64 [threads], the highest iteration that a record names; 0: none does.
        working: int64 [threads], iterations that left a record.
        pop_hit, pop_miss, dispatched, staged, drained, completed, resolved: int64 [threads], sums.
    """

    thread: Int64
    records: Int64
    begin: Int64
    end: Int64
    busy: Int64
    unknown: Int64
    suspects: Int64
    suspect: Int64
    longest_idle: Int64
    pauses: Int64
    iterations: Int64
    working: Int64
    pop_hit: Int64
    pop_miss: Int64
    dispatched: Int64
    staged: Int64
    drained: Int64
    completed: Int64
    resolved: Int64


def thread_times(
    thread: Int64,
    begin: Int64,
    end: Int64,
    is_work: npt.NDArray[np.bool_],
    iteration: Int64,
    sums: dict[str, Int64],
    attested: tuple[int, int] | None = None,
) -> ThreadTimes:
    """Add up the phases of each thread.

    Args:
        thread: int64 [n].
        begin: int64 [n], cycles.
        end: int64 [n], cycles; one before its begin counts as that begin.
        is_work: bool [n], phases of the outer kind, unknown kinds among them; inner ones lie in others, markers have
            no width, and a phase that says that the thread idled is none.
        iteration: int64 [n], 0 where unknown.
        sums: ``pop_hit``, ``pop_miss``, ``dispatched``, ``staged``, ``drained``, ``completed``, ``resolved``: int64
            [n], what each row adds.
        attested: first and last stamp that is attested; None: all are.
    """
    threads, place = np.unique(thread, return_inverse=True)
    count = len(threads)
    end = np.maximum(begin, end)
    is_far = np.zeros(len(begin), np.bool_)
    if attested is not None:
        is_far = (begin < attested[0]) | (begin > attested[1]) | (end > attested[1])
    first = np.full(count, np.iinfo(np.int64).max)
    last = np.zeros(count, np.int64)
    np.minimum.at(first, place[~is_far], begin[~is_far])
    np.maximum.at(last, place[~is_far], end[~is_far])
    first = np.minimum(first, last)  # a thread of which nothing is attested has no window
    suspects, claimed = np.bincount(place[is_far], minlength=count), np.zeros(count, np.int64)
    far = np.flatnonzero(is_far & is_work)
    np.add.at(claimed, place[far], end[far] - begin[far])

    # A pause lies between two phases, or between one and an edge of the window: points at both edges stand for those.
    rows = np.flatnonzero(is_work & ~is_far)
    lane = np.concatenate([np.arange(count), place[rows], np.arange(count)])
    low, high = np.concatenate([first, begin[rows], last]), np.concatenate([first, end[rows], last])
    order = np.lexsort((high, low, lane))
    lane, low, high = lane[order], low[order], high[order]
    reach = _running_max(lane, high)
    pause = np.maximum(low[1:] - reach[:-1], 0)
    pause[lane[1:] != lane[:-1]] = 0
    idle, longest, unknown = np.zeros((3, count), np.int64)
    if len(far):
        is_near = _holds(lane[1:], reach[:-1], low[1:], place[far], np.clip(begin[far], first[place[far]], None))
        np.add.at(unknown, lane[1:][is_near], pause[is_near])
        pause[is_near] = 0
    np.add.at(idle, lane[1:], pause)
    np.maximum.at(longest, lane[1:], pause)
    pauses = np.bincount(lane[1:][pause > 0], minlength=count)

    highest = np.zeros(count, np.int64)
    np.maximum.at(highest, place, iteration)
    known = iteration > 0
    working = np.bincount(distinct(place[known] << 32 | iteration[known]) >> 32, minlength=count)
    added = {name: np.zeros(count, np.int64) for name in sums}
    for name, values in sums.items():
        np.add.at(added[name], place, values)
    return ThreadTimes(
        thread=threads,
        records=np.bincount(place, minlength=count),
        begin=first,
        end=last,
        busy=last - first - idle - unknown,
        unknown=unknown,
        suspects=suspects,
        suspect=claimed,
        longest_idle=longest,
        pauses=pauses,
        iterations=highest,
        working=working,
        **added,
    )


def _holds(lane: Int64, low: Int64, high: Int64, other: Int64, at: Int64) -> npt.NDArray[np.bool_]:
    """Return which intervals hold a point of their lane, bool [n]; points beyond all of them are in the last one."""
    found = np.zeros(len(lane), np.bool_)
    for one, point in zip(other.tolist(), at.tolist(), strict=True):
        mine = np.flatnonzero(lane == one)
        if len(mine):
            reached = min(point, int(high[mine].max()))
            found[mine[(low[mine] <= reached) & (reached <= high[mine])]] = True
    return found


def _running_max(lane: Int64, value: Int64) -> Int64:
    """Return the largest value so far of each lane, int64 [n]; lanes rise."""
    if not len(value):
        return value
    low = int(value.min())
    span = int(value.max()) - low + 1
    if (int(lane[-1]) + 1) * span < 1 << 62:
        # Values of a later lane are above all of an earlier one: one pass does for all.
        shift = lane * span - low
        found: Int64 = np.maximum.accumulate(value + shift) - shift
        return found
    found = value.copy()
    for part in np.split(np.arange(len(lane)), np.flatnonzero(np.diff(lane)) + 1):
        found[part] = np.maximum.accumulate(value[part])
    return found
