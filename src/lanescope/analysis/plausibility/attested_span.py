"""The attested window of a stream for observers that count rows: a few timestamps per batch tell if more is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lanescope.common.distinct import distinct
from lanescope.declaration import frozen_class
from lanescope.trace import Table, Trace

if TYPE_CHECKING:
    from lanescope.common.intervals import Ints
    from lanescope.common.islands import Points, Witnesses
    from lanescope.trace.streams import StreamInfo

#: Rows of a batch and table whose timestamps are kept, at least where there are as many, and less than twice as many.
_ROWS = 256
#: A window is suspicious if one gap takes up more of it than this, or if it is so many times as long as the time from
#: the 2nd to the 98th percentile. LS501 needs a gap of 4/5, or 8 times the time from the 1st to the 99th.
_GAP, _SPANS = 0.75, 7.0


@frozen_class
class Apart:
    """Rows with timestamps that rule LS501 suspects.

    Attributes:
        start: first timestamp that it does not suspect.
        end: last one.
        rows: how many slices and instants it suspects.
    """

    start: int
    end: int
    rows: int


class AttestedSpan:
    """An observer whose result is the attested window, where it is smaller than the window of all timestamps.

    A normal capture takes one pass and a few timestamps per batch. Otherwise a second pass looks at all of them.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[Ints, Ints, int, bool]] = []  # times, tracks, rows that each represents, is it an end
        self._first: int | None = None
        self._last = 0
        self._tracks: Table | None = None
        self._core: tuple[int, int] | None = None
        self._seen = {"slices": 0, "instants": 0}
        self._outside: list[Points] = []

    def start(self, info: StreamInfo) -> None:
        """Begin; there is nothing to do."""

    def add(self, batch: Trace) -> None:
        """Keep a few timestamps of the next batch."""
        self._tracks = batch.tracks
        for table in (batch.slices, batch.instants):
            if not len(table):
                continue
            every = max(len(table) // _ROWS, 1)
            ts, track = table.values("ts"), table.values("track_id")
            self._see(int(ts.min()), int(ts.max()))
            some = slice(None, None, every)
            self._kept.append((ts[some].copy(), track[some].copy(), every, False))
            if "dur" in table.spec.names:
                dur = table.column("dur")
                ends = ts + dur.values
                if dur.valid is not None:
                    ends, track = ends[dur.valid], track[dur.valid]
                if len(ends):
                    self._see(int(ends.min()), int(ends.max()))
                    self._kept.append((ends[some].copy(), track[some].copy(), every, True))

    def _see(self, first: int, last: int) -> None:
        self._first, self._last = (
            (first, last) if self._first is None else (min(self._first, first), max(self._last, last))
        )

    def wants_replay(self) -> bool:
        """Tell whether some timestamps may be apart from all others."""
        if self._first is None or self._last <= self._first:
            return False
        times = np.sort(np.concatenate([times for times, _, _, _ in self._kept]))
        span = self._last - self._first
        low, high = times[[len(times) // 50, len(times) - 1 - len(times) // 50]].tolist()
        gaps = np.diff(times, prepend=self._first, append=self._last)
        if int(gaps.max()) <= _GAP * span and span <= _SPANS * (high - low):
            return False
        from lanescope.common.islands import IslandThresholds, find_islands

        limits = IslandThresholds()
        if sum(len(times) * every for times, _, every, _ in self._kept) >= limits.min_stamps:
            self._core = find_islands(self._sample(), self._witnesses(), limits).window
        return self._core is not None

    def replay(self, batch: Trace) -> None:
        """Keep the timestamps of the next batch that are apart."""
        from lanescope.analysis.plausibility.stamps import outside

        assert self._core is not None
        for name, table in (("slices", batch.slices), ("instants", batch.instants)):
            first = self._seen[name]
            self._seen[name] += len(table)
            positions = np.arange(first, first + len(table))
            self._outside.append(outside(self._core, positions, table, is_instant=name == "instants"))

    def result(self) -> Apart | None:
        """Return the attested window and how many rows are beyond it; None where all timestamps are plausible."""
        if self._core is None:
            return None
        from lanescope.common.islands import IslandThresholds, find_islands, joined

        sample, core = self._sample(), self._core
        inside = sample.take((sample.time >= core[0]) & (sample.time <= core[1]))
        islands = find_islands(joined(inside, *self._outside), self._witnesses(), IslandThresholds(), core)
        far = islands.far
        if not len(far.row):
            return None
        rows = sum(len(distinct(far.row[far.is_instant == kind])) for kind in (False, True))
        return Apart(*islands.window, rows)

    def _sample(self) -> Points:
        """Return the timestamps that were kept."""
        from lanescope.common.islands import NO_POINTS, Points, joined

        parts = [
            Points(
                times,
                tracks,
                np.zeros(len(times), np.int64),
                np.full(len(times), every, np.int64),
                np.zeros(len(times), np.bool_),
                np.full(len(times), is_end),
            )
            for times, tracks, every, is_end in self._kept
        ]
        return joined(NO_POINTS, *parts)

    def _witnesses(self) -> Witnesses:
        """Return who tells of time."""
        from lanescope.analysis.plausibility.shapes import Shapes, host_lanes
        from lanescope.analysis.track_tree import Tree
        from lanescope.common.distinct import distinct
        from lanescope.common.islands import Witnesses

        assert self._tracks is not None
        tree, shapes = Tree(self._tracks), Shapes()
        shapes.add(tree)
        used = distinct(np.concatenate([tracks for _, tracks, _, _ in self._kept]))
        return Witnesses(int(np.count_nonzero((used >= 0) & (used < len(tree)))), shapes.device, host_lanes(tree))
