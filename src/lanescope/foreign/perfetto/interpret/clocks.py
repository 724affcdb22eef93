"""One clock for all events: readings of several clocks at one moment place those of one on another.

Between readings a clock is taken to run as fast as the other, from the last reading before: what the trace processor
does. Nothing is fitted. Source: google/perfetto, docs/concepts/clock-sync.md.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.foreign.perfetto.formats.packets import Columns

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Clocks by number. Source: protos/perfetto/common/builtin_clock.proto.
NAMES = {
    1: "unix",
    2: "realtime_coarse",
    3: "host_monotonic",
    4: "monotonic_coarse",
    5: "monotonic_raw",
    6: "boottime",
    9: "tsc",
    10: "perf",
    11: "trace_file",
}
REALTIME, MONOTONIC, BOOTTIME = 1, 3, 6
#: Clocks up to here mean the same in all files.
_MOST_KNOWN = 63
#: So many clocks of one snapshot are related to each other; files have fewer than 20.
_MOST_CLOCKS = 64
#: Times beyond are no times: half of what an int64 holds, so that differences of two fit.
LATEST = 1 << 62


@dataclass(frozen=True, slots=True)
class Reading:
    """Readings of two clocks at the same moments, by the first: int64 [n] each, ns."""

    of: Int64
    to: Int64


class ClockMap:
    """Moves times from any clock of a file to one.

    Args:
        clocks: columns ``id`` and ``sequence`` of the clocks; clock n is row n - 1, clock 0 that of the trace.
        snapshots: columns ``number``, ``clock`` and ``ts`` of their readings.
        primary: number of the clock that the file names as that of the trace, 0: none.
        used: clocks that events count on.

    Attributes:
        trace_clock: id of the clock of the trace.
        is_assumed: the file relates the clock of its events to no other, so it is taken for that of the trace.
    """

    def __init__(self, clocks: Columns, snapshots: Columns, primary: int, used: list[int]) -> None:
        self._ids = clocks["id"].astype(np.int64)
        self._sequences = clocks["sequence"].astype(np.int64)
        self._snapshots = snapshots
        self.trace_clock = primary or BOOTTIME
        self.is_assumed = False
        self._used = used
        own = np.flatnonzero((self._ids == self.trace_clock) & (self._sequences == 0))
        self._target = int(own[0]) + 1 if len(own) else 0
        self._readings: dict[int, dict[int, Reading]] | None = None
        if not len(snapshots["number"]) and len(used) == 1 and used[0]:
            (only,) = used
            if int(self._ids[only - 1]) <= _MOST_KNOWN:
                # All events count on one clock, which then is as good as any other.
                self.is_assumed = int(self._ids[only - 1]) != self.trace_clock
                self.trace_clock, self._target = int(self._ids[only - 1]), only

    def moved(self, ts: Int64, clock: npt.NDArray[np.int32]) -> tuple[Int64, Mask]:
        """Return times on the clock of the trace, int64 [n], and which of them are known, bool [n]."""
        known = np.ones(len(ts), np.bool_)
        found = ts
        for number in self._used:
            steps = () if number in (0, self._target) else self._path(number)
            if steps == ():
                continue
            rows = clock == number if len(self._used) > 1 else slice(None)
            if steps is None:
                known[rows] = False
                continue
            moved = ts[rows]
            for step in steps:
                moved = _move(moved, step)
            found = ts.copy() if found is ts else found
            found[rows] = moved
        if len(found) and (int(found.min()) < 0 or int(found.max()) >= LATEST):
            known &= (found >= 0) & (found < LATEST)
        return found, known

    def any_used(self) -> int:
        """Return the number of a clock that events count on."""
        return self._used[0] if self._used else 0

    def _steps(self) -> list[tuple[Reading, ...]]:
        """Return the readings that lead from each used clock to that of the trace."""
        paths = (() if number in (0, self._target) else self._path(number) for number in self._used)
        return [path for path in paths if path is not None]

    def is_same(self) -> bool:
        """Return whether all events count on the clock of the trace, or on clocks that show the same."""
        return not any(self._steps())

    def is_constant(self) -> bool:
        """Return whether no clock drifts against that of the trace."""
        return all(len(distinct(step.to - step.of)) == 1 for path in self._steps() for step in path)

    def keeps_order(self) -> bool:
        """Return whether of two times on one clock the later one is never the earlier one on that of the trace."""
        # From one nanosecond to the next the time may stand still where a reading sets the clock back by that much.
        return all(bool((np.diff(step.to - step.of) >= -1).all()) for path in self._steps() for step in path)

    def _path(self, number: int) -> tuple[Reading, ...] | None:
        """Return the readings that lead from a clock to that of the trace; None where none do."""
        readings = self._by_clock()
        queue: deque[tuple[int, tuple[Reading, ...]]] = deque([(number, ())])
        seen = {number}
        while queue:
            at, steps = queue.popleft()
            for to, reading in readings.get(at, {}).items():
                if to in seen:
                    continue
                path = (*steps, reading)
                if to == self._target:
                    return tuple(step for step in path if not _is_same(step))
                seen.add(to)
                queue.append((to, path))
        return None

    @cached_property
    def _alike(self) -> list[tuple[tuple[int, ...], Int64, Int64]]:
        return _alike(self._snapshots)

    def _by_clock(self) -> dict[int, dict[int, Reading]]:
        if self._readings is not None:
            return self._readings
        pairs: dict[tuple[int, int], list[tuple[Int64, Int64, Int64]]] = {}
        for clocks, numbers, times in self._alike:
            last = {clock: column for column, clock in enumerate(clocks)}  # of one that comes twice
            for one, of in last.items():
                for other, to in last.items():
                    if one != other:
                        pairs.setdefault((one, other), []).append((numbers, times[:, of], times[:, to]))
        found: dict[int, dict[int, Reading]] = {}
        for (one, other), parts in pairs.items():
            snapshot, of_ts, to_ts = (np.concatenate(column) for column in zip(*parts, strict=True))
            order = np.lexsort((snapshot, of_ts))
            found.setdefault(one, {})[other] = Reading(of_ts[order], to_ts[order])
        self._readings = found
        return found

    def repeated(self) -> int:
        """Return how many snapshots have two readings of one clock."""
        return sum(len(numbers) for clocks, numbers, _ in self._alike if len(set(clocks)) < len(clocks))

    def set_back(self) -> int:
        """Return how often one of the clocks that place events was set back while another one went on.

        What was counted while it ran through the same times again has two places; it gets that of the latest reading
        which is not after it.
        """
        used = {id(step): step for path in self._steps() for step in path}
        return sum(int(np.count_nonzero(np.diff(step.to) < 0)) for step in used.values())

    def readings(self) -> list[tuple[int, Reading]]:
        """Return the clocks of all files that the file relates to that of the trace, by id, with their readings."""
        found = []
        for number, others in sorted(self._by_clock().items()):
            known = int(self._ids[number - 1])
            if self._target in others and not int(self._sequences[number - 1]) and known <= _MOST_KNOWN:
                found.append((known, others[self._target]))
        return found


def _alike(snapshots: Columns) -> list[tuple[tuple[int, ...], Int64, Int64]]:
    """Return the snapshots of the same clocks together, in the order in which such snapshots first come.

    Returns:
        The clocks, the numbers of the snapshots, int64 [m], and the time of each clock, int64 [m, clocks].
    """
    number, clock, ts = (snapshots[name] for name in ("number", "clock", "ts"))
    if not len(number):
        return []
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    sizes = np.minimum(np.diff(starts, append=len(number)), _MOST_CLOCKS)
    found = []
    for size in distinct(sizes).tolist():
        of_size = starts[sizes == size]
        places = of_size[:, None] + np.arange(size)
        clocks = clock[places]
        order = np.lexsort(clocks.T[::-1])  # stable: of the same clocks the earlier snapshot comes first
        is_other = (clocks[order[1:]] != clocks[order[:-1]]).any(axis=1)
        found += [
            (tuple(clocks[rows[0]].tolist()), of_size[rows], ts[places[rows]])
            for rows in np.split(order, np.flatnonzero(is_other) + 1)
        ]
    return sorted(found, key=lambda each: int(each[1][0]))


def _is_same(reading: Reading) -> bool:
    """Return whether two clocks always show the same."""
    return bool((reading.of == reading.to).all())


def _move(ts: Int64, reading: Reading) -> Int64:
    """Return times on another clock, from the last reading before each; before the first one from that."""
    offset = reading.to - reading.of
    if len(offset) == 1 or bool((offset == offset[0]).all()):
        return np.asarray(ts + offset[0], np.int64)
    row = np.maximum(np.searchsorted(reading.of, ts, side="right") - 1, 0)
    return np.asarray(ts + offset[row], np.int64)
