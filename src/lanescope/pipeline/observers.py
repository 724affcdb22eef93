"""Observers that run no analysis: count rows, collect batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lanescope.declaration import frozen_class
from lanescope.trace import Table, Trace
from lanescope.trace.streams import Marks, SinglePass
from lanescope.trace.trace import SHARED

if TYPE_CHECKING:
    from lanescope.analysis import check
    from lanescope.analysis.plausibility.thresholds import Thresholds
    from lanescope.trace.streams import StreamInfo

#: Tables that grow with the capture.
EVENTS = ("slices", "instants", "counters", "flows")


@frozen_class
class Counted:
    """Result of ``Counts``.

    Attributes:
        rows: number of rows by table.
        begin: the first time of any row, in the trace's unit; None where nothing has a time.
        end: the last one.
    """

    rows: dict[str, int]
    begin: int | None
    end: int | None


class Counts(SinglePass):
    """Counts the rows of each table, and finds the first and the last time."""

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._begin: int | None = None
        self._end: int | None = None

    def add(self, batch: Trace) -> None:
        """Count the rows of the next batch."""
        for name, table in batch.tables().items():
            self._rows[name] = len(table) + (0 if name in SHARED else self._rows.get(name, 0))
        for table in (batch.slices, batch.instants, batch.counters, batch.coverage, batch.gaps):
            if len(table):
                ts = table.values("ts")
                ends = [ts + table.values("dur") if "dur" in table.spec.names else ts]
                if "last_known_ts" in table.spec.names:
                    ends.append(table.values("last_known_ts"))
                begin, end = int(ts.min()), max(int(times.max()) for times in ends)
                self._begin = begin if self._begin is None else min(self._begin, begin)
                self._end = end if self._end is None else max(self._end, end)

    def result(self) -> Counted:
        """Return the counts."""
        return Counted(self._rows, self._begin, self._end)


class Collect(SinglePass):
    """Keeps all batches, for what needs the whole trace; on disk where the memory is limited."""

    def __init__(self) -> None:
        from lanescope.source.kept_batches import KeptBatches

        self._batches = KeptBatches()

    def add(self, batch: Trace) -> None:
        """Keep the next batch."""
        self._batches.add(batch)

    def result(self) -> Trace:
        """Return the batches joined."""
        return self._batches.joined()


class Overview(SinglePass):
    """Keeps all tables but those of events and their details, which are small whatever the capture is."""

    def __init__(self) -> None:
        self._batches: list[Trace] = []

    def add(self, batch: Trace) -> None:
        """Keep what is small of the next batch."""
        core = {name: table for name, table in batch.tables().items() if name not in (*batch.details, *EVENTS)}
        details = {name: table for name, table in batch.details.items() if not _is_of_events(table)}
        if self._batches and not _has_own_rows(self._batches[-1]):
            self._batches.pop()  # of thousands of batches, most have nothing to join
        self._batches.append(Trace(batch.time, core, details))

    def result(self) -> Trace:
        """Return the batches joined."""
        return Trace.concat(self._batches)


def _has_own_rows(batch: Trace) -> bool:
    """Return whether a batch has rows that are not in the last one as well."""
    return any(len(table) for name, table in batch.tables().items() if name not in SHARED)


def _is_of_events(details: Table) -> bool:
    """Return whether a detail table has rows of events."""
    key = details.spec.key
    return bool(key) and details.spec.column(key).references in EVENTS


class Annotations:
    """Checks the batches; its result is the table of findings that sinks draw, next to marks on suspect rows."""

    def __init__(
        self, select: Iterable[str] = (), ignore: Iterable[str] = (), thresholds: Thresholds | None = None
    ) -> None:
        from lanescope.analysis import check  # only what annotates pays for it
        from lanescope.analysis.check.suspect_marks import SuspectMarks

        self._to_table, self._marks = check.to_table, SuspectMarks
        self._checker: check.StreamingChecker | None = check.StreamingChecker(select, ignore, thresholds)
        self._table: Table | None = None

    @property
    def _checking(self) -> check.StreamingChecker:
        assert self._checker is not None, "its result was taken"
        return self._checker

    def start(self, info: StreamInfo) -> None:
        """Begin."""
        self._checking.start(info)

    def add(self, batch: Trace) -> None:
        """Check the next batch."""
        self._checking.add(batch)

    def wants_replay(self) -> bool:
        """Return whether the batches have to be seen once more."""
        return self._checking.wants_replay()

    def replay(self, batch: Trace) -> None:
        """See a batch once more."""
        self._checking.replay(batch)

    def result(self) -> Table:
        """Return the findings as a table; what they were found with is let go, as writing needs its room."""
        if self._table is None:
            self._table = self._to_table(self._checking.result())
            self._checker = None
        return self._table

    def marks(self) -> Marks | None:
        """Return what marks suspect rows, before the result is taken; None without any."""
        found = self._marks(self._checking.result())
        return found if found.count else None
