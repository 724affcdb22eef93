"""Reference of the axis on which the recordings of a dump lie: ``core.AieRunAxis``, one recording at a time."""

from __future__ import annotations

from typing import NamedTuple

from lanescope.devices.aie.interpret.notes import EXECUTION
from lanescope.devices.aie.interpret.run_axis import APART, AT_LEAST, FIRST, RECORDED

#: Timers of units that started on one broadcast differ by no more.
_TOGETHER = 8


class Recording(NamedTuple):
    """A recording that begins.

    Attributes:
        run: number of its slice of the dump, and which of the Starts of its unit there it is, from 1.
        mode: trace mode.
        timer: of its Start; None: it begins with a restart.
        counts_from_start: whether the event that started it is known to set its timer back.
        follows: the slice that its own follows without a new configuration; None: it is not known to follow any.
    """

    run: tuple[int, int]
    mode: int
    timer: int | None
    counts_from_start: bool
    follows: int | None


class _Unit:
    """The last recording of one unit: run, begin, end (None: it runs), whether its timer counts from its Start."""

    __slots__ = ("begin", "counts_from_start", "end", "run")

    def __init__(self) -> None:
        self.run: tuple[int, int] | None = None
        self.begin = 0
        self.end: int | None = 0
        self.counts_from_start = False


class RunAxis:
    """Places recordings as they come, in the order of the dump.

    Args:
        limit: no recording begins later than this tick.

    Attributes:
        unknown: runs whose distance from the one before is not recorded.
        contradictory: runs whose Start timer contradicts the run before: they are in another order, or not adjacent.
        disagreeing: recordings whose Start timer differs from that of other units of their run.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._units: dict[object, _Unit] = {}
        self._begins: dict[tuple[int, int], int] = {}
        self._is_recorded: set[tuple[int, int]] = set()
        self._ends: dict[tuple[int, int], int] = {}
        self._last: tuple[int, int] | None = None
        self.unknown = self.contradictory = self.disagreeing = 0

    def begin(self, unit: object, recording: Recording) -> tuple[int, int]:
        """Place a recording of a unit.

        Returns:
            Tick at which it begins, and how that is known; 0 and ``APART`` if it has no place on the axis.
        """
        run = recording.run
        own = self._units.get(unit)
        if own is None:
            own = self._units[unit] = _Unit()
        if recording.mode >= EXECUTION and own.run is not None:
            return 0, APART  # it records no time
        if run not in self._begins:
            before: tuple[int, int] | None = (run[0], run[1] - 1)
            if before not in self._begins:  # it is in another slice, or has no place
                before = self._last
            begin = 0 if before is None else self._first_of(run, before, own, recording)
            if begin > self._limit:
                return 0, APART
            if before is not None and own.run == before and begin == self._told(own, recording):
                self._is_recorded.add(run)
            self._begins[run] = self._ends[run] = begin
            self._last = run
        elif run in self._is_recorded and (at := self._told(own, recording)) is not None:
            self.disagreeing += abs(at - self._begins[run]) > _TOGETHER
        begin = self._begins[run]
        known = FIRST if begin == 0 and run == next(iter(self._begins)) else AT_LEAST
        known = RECORDED if run in self._is_recorded else known
        if own.end is None or (own.run is not None and own.end >= begin):
            # Its own recording before goes on for longer than those of the units that began this run.
            begin, known = max(own.begin if own.end is None else own.end, begin) + 1, AT_LEAST
            if begin > self._limit:
                return 0, APART
        own.run, own.begin, own.end = run, begin, None
        own.counts_from_start = recording.counts_from_start
        return begin, known

    def end(self, unit: object, run: tuple[int, int], ticks: int) -> None:
        """Note how many ticks a unit's recording lasted."""
        own = self._units.get(unit)
        if own is None or own.run != run:
            return  # it has no place
        own.end = own.begin + ticks
        self._ends[run] = max(self._ends[run], own.end)

    def _first_of(self, run: tuple[int, int], before: tuple[int, int], own: _Unit, recording: Recording) -> int:
        """Return where a run begins whose first recording this is."""
        least = self._ends[before] + 1  # a unit stops before it starts again
        at = self._told(own, recording) if own.run == before else None
        if at is not None and at >= least:
            return at
        self.contradictory += at is not None
        self.unknown += 1
        return least

    @staticmethod
    def _told(own: _Unit, recording: Recording) -> int | None:
        """Return where a recording begins by its timer; None where that does not count from the Start before."""
        is_known = own.run is not None and own.counts_from_start and recording.counts_from_start
        is_adjacent = own.run is not None and own.run[0] in (recording.run[0], recording.follows)
        return own.begin + recording.timer if is_known and is_adjacent and recording.timer is not None else None
