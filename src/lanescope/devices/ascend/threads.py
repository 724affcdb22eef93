"""Where the time of each scheduler thread went. Linear in the records but for one sort."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ThreadTimes:
    """Where the time of each thread went: busy and idle add up to its window.

    Attributes:
        thread: int64 [threads], rising.
        records: int64 [threads].
        begin, end: int64 [threads], from the first begin to the last end of its records, cycles.
        busy: int64 [threads], cycles in which a phase of the outer kind ran.
        longest_idle: int64 [threads], the longest pause between two of them, cycles.
        pauses: int64 [threads], how many there are.
        iterations: int64 [threads], the highest iteration that a record names; 0: none does.
        working: int64 [threads], iterations that left a record.
        pop_hit, pop_miss, dispatched, completed, resolved: int64 [threads], sums.
    """

    thread: Int64
    records: Int64
    begin: Int64
    end: Int64
    busy: Int64
    longest_idle: Int64
    pauses: Int64
    iterations: Int64
    working: Int64
    pop_hit: Int64
    pop_miss: Int64
    dispatched: Int64
    completed: Int64
    resolved: Int64


def thread_times(
    thread: Int64,
    begin: Int64,
    end: Int64,
    is_work: npt.NDArray[np.bool_],
    iteration: Int64,
    sums: dict[str, Int64],
) -> ThreadTimes:
    """Add up the phases of each thread.

    Args:
        thread: int64 [n].
        begin: int64 [n], cycles.
        end: int64 [n], cycles; one before its begin counts as that begin.
        is_work: bool [n], phases of the outer kind, unknown kinds among them; inner ones lie in others, markers have
            no width, and a phase that says that the thread idled is none.
        iteration: int64 [n], 0 where unknown.
        sums: ``pop_hit``, ``pop_miss``, ``dispatched``, ``completed``, ``resolved``: int64 [n], what each row adds.
    """
    threads, place = np.unique(thread, return_inverse=True)
    count = len(threads)
    end = np.maximum(begin, end)
    first = np.full(count, np.iinfo(np.int64).max)
    last = np.zeros(count, np.int64)
    np.minimum.at(first, place, begin)
    np.maximum.at(last, place, end)

    busy, longest, pauses = np.zeros((3, count), np.int64)
    rows = np.flatnonzero(is_work)
    rows = rows[np.lexsort((end[rows], begin[rows], place[rows]))]
    bounds = np.searchsorted(place[rows], np.arange(count + 1))
    for number in range(count):
        mine = rows[bounds[number] : bounds[number + 1]]
        # A pause lies between two phases, or between one and an edge of the window.
        reach = np.append(first[number], np.maximum.accumulate(end[mine]))
        pause = np.maximum(np.append(begin[mine], last[number]) - reach, 0)
        busy[number] = last[number] - first[number] - pause.sum()
        longest[number] = pause.max(initial=0)
        pauses[number] = np.count_nonzero(pause)

    highest = np.zeros(count, np.int64)
    np.maximum.at(highest, place, iteration)
    known = iteration > 0
    working = np.bincount(np.unique(place[known] << 32 | iteration[known]) >> 32, minlength=count)
    added = {name: np.zeros(count, np.int64) for name in sums}
    for name, values in sums.items():
        np.add.at(added[name], place, values)
    return ThreadTimes(
        thread=threads,
        records=np.bincount(place, minlength=count),
        begin=first,
        end=last,
        busy=busy,
        longest_idle=longest,
        pauses=pauses,
        iterations=highest,
        working=working,
        **added,
    )
