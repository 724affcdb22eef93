"""Totals without the slices that LS501 suspects, for summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lanescope.analysis.plausibility.stamps import Points, Stamps, joined, outside
from lanescope.analysis.track_tree import Tree
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Ints
from lanescope.trace import Table, TimeBase, Trace
from lanescope.trace.column import Mask
from lanescope.trace.streams import StreamInfo, bare

if TYPE_CHECKING:
    from lanescope.analysis.plausibility.rules.islands import Witnesses
    from lanescope.analysis.plausibility.thresholds import IslandThresholds


class Suspects(NamedTuple):
    """Slices of one group with implausible timestamps.

    Attributes:
        slices: how many.
        total: sum of their lengths, in the trace's unit.
    """

    slices: int
    total: int


class SuspectTotals:
    """An observer whose result is what slices with implausible timestamps (LS501) make of each group of a summary.

    A normal trace takes one pass and a bounded sample of its timestamps. Otherwise a second pass finds the slices.

    Args:
        by: a grouping of ``summary.GROUPS``.
        limits: thresholds of LS501; None: the defaults.
    """

    def __init__(self, by: str, limits: IslandThresholds | None = None) -> None:
        self._by = by
        self._given = limits
        self._stamps = Stamps()
        self._used = np.empty(0, np.int64)
        self._last = Trace(TimeBase(), {})
        self._core: tuple[int, int] | None = None
        self._seen = {"slices": 0, "instants": 0}
        self._apart: list[Points] = []
        self._slices: list[tuple[Ints, Table]] = []

    def start(self, info: StreamInfo) -> None:
        """Begin; there is nothing to do."""

    def add(self, batch: Trace) -> None:
        """Take in the timestamps of the next batch."""
        self._last = bare(batch)
        self._stamps.add(batch.slices, batch.instants)
        tracks = [table.values("track_id") for table in (batch.slices, batch.instants)]
        self._used = distinct(np.concatenate([self._used, *map(distinct, tracks)]))

    def wants_replay(self) -> bool:
        """Tell whether some timestamps are apart from all others."""
        stamps = self._stamps
        if stamps.is_spread():
            return False
        from lanescope.analysis.plausibility.rules.islands import sampled_islands

        islands, core = sampled_islands(stamps, self._witnesses(), self._limits)
        self._core = core or (islands.window if len(islands.far.row) else None)
        return self._core is not None

    def replay(self, batch: Trace) -> None:
        """Keep what of the next batch is apart."""
        assert self._core is not None
        for name, table in (("slices", batch.slices), ("instants", batch.instants)):
            first = self._seen[name]
            self._seen[name] += len(table)
            points = outside(self._core, np.arange(first, first + len(table)), table, is_instant=name == "instants")
            self._apart.append(points)
            if name == "slices" and len(points.row):
                rows = distinct(points.row)
                self._slices.append((rows, table.take(rows - first)))

    def result(self) -> dict[str, Suspects]:
        """Return the suspects of each group that has some, by its text."""
        if self._core is None:
            return {}
        from lanescope.analysis.plausibility.rules.islands import exact_islands

        apart = joined(*self._apart)
        islands = exact_islands(self._stamps, self._core, apart, self._witnesses(), self._limits)
        suspect = distinct(islands.far.row[~islands.far.is_instant])
        tree = Tree(self._last.tracks)
        found: dict[str, Suspects] = {}
        for rows, slices in self._slices:
            mine = np.isin(rows, suspect)
            lengths = np.where(slices.valid("dur"), slices.values("dur"), 0)[mine].tolist()
            for group, length in zip(self._groups(slices, tree, mine), lengths, strict=True):
                before = found.get(group, Suspects(0, 0))
                found[group] = Suspects(before.slices + 1, before.total + length)
        return found

    @property
    def _limits(self) -> IslandThresholds:
        from lanescope.analysis.plausibility.thresholds import IslandThresholds

        return self._given or IslandThresholds()

    def _groups(self, slices: Table, tree: Tree, mine: Mask) -> list[str]:
        """Return the text of the group of each chosen slice."""
        if self._by in ("name", "category"):
            return list(map(str, slices.values(self._by)[mine]))
        tracks = slices.values("track_id")[mine].tolist()
        if self._by == "device":
            tracks = [tree.device(track) if 0 <= track < len(tree) else track for track in tracks]
        return [tree.path(track) for track in tracks]

    def _witnesses(self) -> Witnesses:
        """Return who tells of time."""
        from lanescope.analysis.plausibility.rules.islands import Witnesses
        from lanescope.analysis.plausibility.shapes import Shapes, host_lanes

        tree, shapes = Tree(self._last.tracks), Shapes()
        shapes.add(tree)
        lanes = int(np.count_nonzero((self._used >= 0) & (self._used < len(tree))))
        return Witnesses(lanes, shapes.device, host_lanes(tree))
