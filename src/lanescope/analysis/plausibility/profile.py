"""Profile of a trace: per lane, per name and shape, what plausibility rules compare."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.analysis.plausibility.stamps import Stamps
from lanescope.analysis.track_tree import Tree
from lanescope.common.intervals import Ints
from lanescope.declaration import frozen_class
from lanescope.trace import Table
from lanescope.trace.column import Mask

#: From this share of change on, with and without suspect rows, a total is worth a line.
WORTH_TELLING = 0.01


@frozen_class
class Pairs:
    """Sums by lane and name, and a sample of lengths of each; in order of first sight.

    Attributes:
        track: int64 [n], lane.
        name: int64 [n], name, an index of ``Profile.names``.
        count: int64 [n], slices.
        closed: int64 [n], those with a known end.
        total: int64 [n], sum of their lengths.
        sample: int64 [m], lengths of the first closed slices of each that are longer than 3; lane by lane.
        sample_pair: int64 [m], which of the n a length belongs to, rising.
        is_complete: False where there were too many to keep; then the sums say nothing.
    """

    track: Ints
    name: Ints
    count: Ints
    closed: Ints
    total: Ints
    sample: Ints
    sample_pair: Ints
    is_complete: bool


@frozen_class
class Longest:
    """The longest closed slices of each name and shape, at most 32, the longest first.

    Attributes:
        name: int64 [n], index of ``Profile.names``.
        shape: int64 [n], shape of the lane; rows of one (name, shape) follow each other.
        length: int64 [n].
        row: int64 [n], position in the whole trace.
        track: int64 [n], lane.
    """

    name: Ints
    shape: Ints
    length: Ints
    row: Ints
    track: Ints


class Profile:
    """What plausibility rules know of a trace. Arrays over lanes are indexed by track id, of length ``len(tree)``.

    Timestamps are starts, ends of closed slices, and instants. The end of an unfinished slice is its last known time.
    A lane without slices has 0 in all columns but those of instants; likewise for instants.

    Attributes:
        tree: the tracks.
        time_unit: ``ns`` or ``cycles``.
        clocks: table of clocks.
        anchors: table of anchors.
        families: device families of the inputs.
        stats: names of the stats.
        names: texts that the name numbers of ``pairs`` and ``longest`` index.
        shapes: texts of the shapes.
        shape: int32 [tracks], shape of each track: siblings have the same.
        device: int64 [tracks], track of the device, or the topmost group, of each track; -1 for one without a group.
        parent: int64 [tracks], group above each track, -1 at the top: brothers have the same.
        is_lane: bool [tracks].
        is_host: bool [tracks], lanes of host threads: never warned of, always witnesses.
        is_free: bool [tracks], lanes whose slices may overlap.
        judged: bool [tracks], lanes that a rule may report now. Rules leave other lanes out of every comparison.
        count: int64 [tracks], slices; ``closed``: those with a known end; ``empty``: those of no length.
        start: int64 [tracks], first start; ``end``: last end (the reach).
        total: int64 [tracks], sum of the lengths of closed slices.
        hash: int64 [tracks], order-free hash of start, end and name of the slices.
        instants: int64 [tracks]; with ``first_instant`` and ``last_instant``.
        is_exact: bool [tracks], whether all instants are of quality ``exact``.
        starts: int64 [tracks], distinct starts.
        distinct: int64 [tracks], distinct starts, and ends beyond all timestamps before them.
        run: int64 [tracks], most closed slices of no length at one time, which is ``run_at``.
        is_ordered: bool [tracks], whether slices came in order of start. Where they did not, ``starts``, ``distinct``,
            ``run`` and gaps come from a second look at the sorted slices of the lane.
        gap: int64 [tracks], largest inner gap (from the reach to the next start) less the known ``gaps`` of the lane.
        gap_start: int64 [tracks], where it starts; ``gap_end``: the next start. Rows after it start at ``gap_end`` or
            later, rows before it end at ``gap_start`` or earlier.
        quantum: greatest common divisor of all differences between timestamps (``q``); 0 with fewer than two.
        step: int64 [tracks], ``max(q, one tick of the lane's clock, 1)``.
        tick: float64 [tracks], one tick of the lane's clock in the trace's unit; 1 where unknown.
        pairs: sums by lane and name.
        longest: the longest slices by name and shape.
        outermost: int64 [n, 3], (0, start, row) of the 64 slices that start first, (1, end, row) of 64 that end last.
        repeated: int64 [n, 3], (row, track, length) of slices that have lane, start, end and name of an earlier one.
        stamps: sample of timestamps, for LS501.
    """

    tree: Tree
    time_unit: str
    clocks: Table
    anchors: Table
    families: tuple[str, ...]
    stats: frozenset[str]
    names: list[str]
    shapes: list[str]
    shape: npt.NDArray[np.int32]
    device: Ints
    parent: Ints
    is_lane: Mask
    is_host: Mask
    is_free: Mask
    judged: Mask
    count: Ints
    closed: Ints
    empty: Ints
    start: Ints
    end: Ints
    total: Ints
    hash: Ints
    instants: Ints
    first_instant: Ints
    last_instant: Ints
    is_exact: Mask
    is_ordered: Mask
    starts: Ints
    distinct: Ints
    run: Ints
    run_at: Ints
    gap: Ints
    gap_start: Ints
    gap_end: Ints
    quantum: int
    tick: npt.NDArray[np.float64]
    pairs: Pairs
    longest: Longest
    outermost: Ints
    repeated: Ints
    stamps: Stamps

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    @cached_property
    def extent(self) -> Ints:
        """Time from the first start to the last end of each lane, int64 [tracks]."""
        extent: Ints = self.end - self.start
        return extent

    @cached_property
    def step(self) -> Ints:
        """Smallest distance of two timestamps of each lane, int64 [tracks], at least 1."""
        step: Ints = np.maximum(np.rint(self.tick).astype(np.int64), max(self.quantum, 1))
        return step

    def lanes(self, *, with_host: bool = True) -> Ints:
        """Return the judged lanes with slices, int64, rising."""
        wanted = self.judged & (self.count > 0)
        if not with_host:
            wanted = wanted & ~self.is_host
        return np.flatnonzero(wanted)

    def path(self, track: int) -> str:
        """Return the path of a track."""
        return self.tree.path(track)
