"""Contracts of the pipeline: sources, transforms, observers and sinks of batches.

These are contracts only. Rooms below the pipeline implement them (``io`` has the sinks, ``analysis`` observers);
``lanescope.pipeline.run`` drives them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from lanescope.trace.schema import CORE_TABLES
from lanescope.trace.table import Table
from lanescope.trace.trace import SHARED, Trace

R_co = TypeVar("R_co", covariant=True)

#: Is told how many bytes of the main file have been read so far, of how many.
Progress = Callable[[int, int], object]


@runtime_checkable
class Watcher(Protocol):
    """Progress that looks by itself: for formats that are read as a whole, or in any order."""

    def watch(self, reached: list[int], size: int) -> None:
        """Take where reading keeps how many bytes of the main file it has read, of how many."""


#: What a sink takes: ``batches`` in any order; ``sorted`` batches, or the whole trace where the stream is not sorted;
#: the ``whole`` trace only.
Takes = Literal["batches", "sorted", "whole"]


class StreamInfo(NamedTuple):
    """Properties of a stream, known before its first batch.

    Attributes:
        families: the device families of its rows.
        is_sorted: slices and instants of a lane come in order of time over all batches, and flows stay within a batch.
        is_whole: there is one batch.
        size: bytes of the main file; 0 where there is none.
    """

    families: tuple[str, ...] = ()
    is_sorted: bool = False
    is_whole: bool = False
    size: int = 0


class TracePart:
    """A part of the timeline, and what a decoder left out because it lies outside.

    Args:
        begin: its first moment, in the unit of the trace.
        end: the first moment after it.

    Attributes:
        begin: its first moment.
        end: the first moment after it.
        rows: how many slices and instants were left out.
    """

    def __init__(self, begin: int, end: int) -> None:
        self.begin, self.end = begin, end
        self.rows = 0
        self._hulls: list[tuple[npt.NDArray[np.int64], ...]] = []

    def holds(self, begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which intervals share time with the part, bool [n]; a point does from its start on, before its end."""
        first = np.int64(self.begin)
        return (begin < np.int64(self.end)) & ((end > first) | (begin >= first))

    def leave_out(self, track: npt.NDArray[np.int64], begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> None:
        """Count rows that are left out.

        Args:
            track: int64 [n], their tracks.
            begin: int64 [n], their begins.
            end: int64 [n], their ends.
        """
        if not len(track):
            return
        self.rows += len(track)
        order = np.argsort(track, kind="stable")
        starts = np.flatnonzero(np.diff(track[order], prepend=-2))
        firsts = np.minimum.reduceat(begin[order], starts)
        self._hulls.append((track[order][starts], firsts, np.maximum.reduceat(end[order], starts)))

    def hulls(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return tracks, and the first begin and last end of what was left out of them, int64 [n]; some repeat."""
        none = np.empty(0, np.int64)
        parts = list(zip(*self._hulls, strict=True)) or [()] * 3
        track, first, last = (np.concatenate([none, *part]) for part in parts)
        return track, first, last


class TraceSource(Protocol):
    """Source of batches. ``Source`` is another thing: bytes."""

    @property
    def info(self) -> StreamInfo:
        """Properties of the stream, known before the first batch."""

    def batches(self, progress: Progress | None = None) -> Iterator[Trace]:
        """Yield the batches; each call reads from the start again and yields the same rows.

        The stats and the accounting of a decode are in the last batch.
        """


class Transform(Protocol):
    """Transform of each batch."""

    def start(self, info: StreamInfo) -> StreamInfo:
        """Start a pass; return the properties of the changed stream."""

    def apply(self, batch: Trace) -> Trace:
        """Return the changed batch: rows may vanish or move; the ids of shared tables stay."""


class Observer(Protocol[R_co]):
    """Observer of each batch; may keep rows, not the batch."""

    def start(self, info: StreamInfo) -> None:
        """Start; called once, before the first batch."""

    def add(self, batch: Trace) -> None:
        """Process the next batch."""

    def wants_replay(self) -> bool:
        """Return whether one pass was not enough; asked once, after the last batch."""

    def replay(self, batch: Trace) -> None:
        """Process the next batch of the second pass: the same batches again."""

    def result(self) -> R_co:
        """Return the result, after the last pass."""


class Marks(Transform, Protocol):
    """Transform that marks rows; other columns and rows stay as they are.

    Attributes:
        count: number of marked rows, at least 1.
    """

    count: int


class Annotator(Observer[Table], Protocol):
    """Observer whose result is a table of findings."""

    def marks(self) -> Marks | None:
        """Return what marks the rows concerned, after the last pass; None: none is."""


class Written(Protocol):
    """Report of a sink; each sink adds its own attributes."""

    @property
    def bytes(self) -> int:
        """Number of bytes written."""


class Sink(Protocol):
    """Writer of batches.

    ``start``, any number of ``write`` and ``finish``; ``abort`` instead of the rest once anything has failed.

    Attributes:
        takes: which batches it can write.
        can_restart: whether ``start`` after ``abort`` begins an output that has nothing of the one before.
    """

    takes: Takes

    @property
    def can_restart(self) -> bool:
        """Whether it can start over."""

    def start(self, info: StreamInfo) -> None:
        """Open the output, under a temporary name."""

    def write(self, batch: Trace) -> None:
        """Write the next batch."""

    def finish(self, annotations: Table | None) -> Written:
        """Write the rest, with findings to draw, and give the output its name."""

    def abort(self) -> None:
        """Remove what was written so far; does nothing before ``start`` and after ``finish``."""


class SinglePass:
    """Base of observers that need only one pass."""

    def start(self, info: StreamInfo) -> None:
        """Do nothing: there is nothing to prepare."""

    def wants_replay(self) -> bool:
        """Return False: one pass is enough."""
        return False

    def replay(self, batch: Trace) -> None:
        """Do nothing; never called."""
        raise AssertionError("one pass was enough")


def bare(batch: Trace) -> Trace:
    """Return a batch without its events, so that they can be let go: shared tables, stats and accounting.

    Of the last batch this is what the whole stream has of them.
    """
    tables = batch.tables()
    return Trace(batch.time, {**_no_events(), **{name: tables[name] for name in (*SHARED, "stats", "accounting")}})


@cache
def _no_events() -> dict[str, Table]:
    """Return every core table without rows; made once, as this is asked for with every batch."""
    return {spec.name: Table.empty(spec) for spec in CORE_TABLES}
