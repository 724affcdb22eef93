"""Profile of a trace: per lane, per name and shape, what plausibility rules compare.

A native sweep takes the rows batch by batch, in the order of their tables, so that any division into batches gives the
same profile. Lanes whose slices do not come in order of start are swept again, sorted, as soon as their slices are at
hand together.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.analysis.lane_time import end_or_last_known
from lanescope.analysis.plausibility.shapes import Shapes, host_lanes
from lanescope.analysis.plausibility.stamps import Stamps
from lanescope.analysis.track_tree import Tree
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Intervals, Ints, known_extents, order, union
from lanescope.trace import Table, Trace
from lanescope.trace.column import Dictionary, Mask
from lanescope.trace.declaration import frozen_class

_NO_INTS = np.empty(0, np.int64)
_NO_BYTES = np.empty(0, np.uint8)
#: Columns of ``TraceProfile.lanes``; then follow starts and ends of the largest inner gaps.
_LANE_COLUMNS = (
    "count",
    "closed",
    "empty",
    "start",
    "end",
    "total",
    "hash",
    "instants",
    "first_instant",
    "last_instant",
    "is_ordered",
    "starts",
    "distinct",
    "run",
    "run_at",
)
_GAPS_AT = 16


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


class Profiler:
    """Accumulator of a ``Profile``: ``add`` batches, then ask for the ``profile``."""

    def __init__(self) -> None:
        self._sweep = core.TraceProfile()
        self._shapes = Shapes()
        self._stamps = Stamps()
        self._names: Dictionary | None = None
        self._own_names = False
        self._gaps: list[Table] = []
        self._last: Trace | None = None
        self._tree: Tree | None = None
        self._inexact: set[int] = set()

    def add(self, batch: Trace) -> None:
        """Add the rows of the next batch; nothing refers to its events afterwards."""
        if self._tree is None or len(self._tree) != len(batch.tracks):
            self._tree = Tree(batch.tracks)
            self._shapes.add(self._tree)
            self._sweep.add_lanes(self._shapes.of)
        self._shared = batch.time, {name: getattr(batch, name) for name in ("clocks", "anchors", "inputs")}
        if len(batch.gaps):
            self._gaps.append(batch.gaps)
        if len(batch.slices):
            _sweep(self._sweep, batch.slices, self._name_codes(batch.slices), _NO_INTS)
        instants = batch.instants
        if len(instants):
            self._sweep.instants(*(np.ascontiguousarray(instants.values(name)) for name in ("track_id", "ts")))
            self._inexact.update(_inexact_lanes(instants))
        self._stamps.add(batch.slices, instants)

    def name_codes(self, slices: Table) -> npt.NDArray[np.int32]:
        """Return the names of slices as the profile numbers them, int32 [n]."""
        return self._name_codes(slices)

    def _name_codes(self, slices: Table) -> npt.NDArray[np.int32]:
        column = slices.column("name")
        dictionary = column.dictionary or Dictionary()
        if self._names is None:
            self._names = dictionary
        if dictionary is self._names:
            return np.ascontiguousarray(column.values)
        if not self._own_names:
            self._names, self._own_names = Dictionary(self._names.texts), True
        codes = self._names.codes(dictionary.texts)
        return codes[column.values] if len(codes) else np.zeros(len(column), np.int32)

    @property
    def unordered(self) -> Mask:
        """Lanes whose slices did not come in order of start, bool [tracks]."""
        found: Mask = self._sweep.lanes()[:, _LANE_COLUMNS.index("is_ordered")] == 0
        return found

    def profile(self, positions: Ints | None = None, slices: Table | None = None) -> Profile:
        """Return the profile.

        Args:
            positions: where ``slices`` stand in the whole trace, int64 [n] rising.
            slices: with all slices of the lanes that are not in order; None: those lanes are not judged.

        Raises:
            ValueError: there was no batch.
        """
        tree = self._tree
        if tree is None:
            raise ValueError("no batch was added")
        lanes, repeated = self._sweep.lanes(), self._sweep.repeated()
        judged = np.ones(len(tree), np.bool_)
        unordered = self.unordered
        if unordered.any():
            if slices is None or positions is None:
                judged &= ~unordered
            else:
                lanes, repeated = self._sorted_lanes(unordered, positions, slices, lanes, repeated)
        columns = dict(zip(_LANE_COLUMNS, np.ascontiguousarray(lanes[:, : len(_LANE_COLUMNS)].T), strict=True))
        for name, number in (
            ("start", "count"),
            ("end", "count"),
            ("first_instant", "instants"),
            ("last_instant", "instants"),
        ):
            columns[name] = np.where(columns[number] > 0, columns[name], 0)
        columns["is_ordered"] = ~unordered
        time, shared = self._shared
        is_lane = tree.tracks.values("kind") == "lane"
        gap, gap_start, gap_end = _largest_gap(lanes[:, _GAPS_AT:], self._gaps, tree)
        names = self._names.texts if self._names else []
        return Profile(
            tree=tree,
            time_unit=time.time_unit,
            clocks=shared["clocks"],
            anchors=shared["anchors"],
            families=tuple(dict.fromkeys(str(name) for name in shared["inputs"].values("family").tolist())),
            names=names,
            shapes=self._shapes.texts,
            shape=self._shapes.of,
            device=self._shapes.device,
            parent=np.array(tree.parents, np.int64),
            is_lane=is_lane,
            is_host=host_lanes(tree),
            is_free=is_lane & (tree.tracks.values("nesting") == "free"),
            judged=judged & is_lane,
            is_exact=~np.isin(np.arange(len(tree)), list(self._inexact)),
            gap=gap,
            gap_start=gap_start,
            gap_end=gap_end,
            quantum=int(self._sweep.step),
            tick=_ticks(tree, shared["clocks"], time.time_unit),
            pairs=self._pairs(),
            longest=Longest(*np.ascontiguousarray(self._sweep.longest().T)),
            outermost=self._sweep.outermost(),
            repeated=repeated,
            stamps=self._stamps,
            **columns,
        )

    def _pairs(self) -> Pairs:
        track, name, count, closed, total, sampled = np.ascontiguousarray(self._sweep.pairs().T)
        owner = np.repeat(np.arange(len(track)), sampled)
        sample = self._sweep.sample().reshape(-1)
        return Pairs(track, name, count, closed, total, sample, owner, self._sweep.has_all_pairs)

    def _sorted_lanes(
        self, wanted: Mask, positions: Ints, slices: Table, lanes: Ints, repeated: Ints
    ) -> tuple[Ints, Ints]:
        """Return the rows of lanes and the repeated slices, those of the ``wanted`` lanes from their sorted slices."""
        track = slices.values("track_id")
        rows = np.flatnonzero((track >= 0) & (track < len(wanted)))
        rows = rows[wanted[track[rows]]]
        rows = rows[order(*known_extents(slices).take(rows))]
        sweep = core.TraceProfile()
        sweep.add_lanes(self._shapes.of)
        some = slices.take(rows)
        _sweep(sweep, some, self._name_codes(some), np.ascontiguousarray(positions[rows]))
        again = sweep.lanes()
        found = lanes.copy()
        after = [_LANE_COLUMNS.index(name) for name in ("starts", "distinct", "run", "run_at")]
        after += range(_GAPS_AT, lanes.shape[1])
        renewed = np.ix_(np.flatnonzero(wanted), np.array(after))
        found[renewed] = again[renewed]
        repeated = np.concatenate([repeated[~wanted[repeated[:, 1]]], sweep.repeated()])
        return found, repeated[np.argsort(repeated[:, 0], kind="stable")]


def _sweep(sweep: core.TraceProfile, slices: Table, names: npt.NDArray[np.int32], rows: Ints) -> None:
    """Add slices to a native sweep; ``rows`` empty: numbered on."""
    sweep.slices(
        np.ascontiguousarray(slices.values("track_id")),
        np.ascontiguousarray(slices.values("ts")),
        *_nullable(slices, "dur"),
        *_nullable(slices, "last_known_ts"),
        names,
        rows,
    )


def _inexact_lanes(instants: Table) -> list[int]:
    """Return the tracks with an instant whose quality is not ``exact``."""
    quality = instants.column("quality")
    texts = quality.dictionary.texts if quality.dictionary else []
    is_exact = np.array([text == "exact" for text in texts], np.bool_)
    if is_exact.all():
        return []
    tracks: list[int] = distinct(instants.values("track_id")[~is_exact[quality.values]]).tolist()
    return tracks


def _nullable(table: Table, name: str) -> tuple[Ints, npt.NDArray[np.uint8]]:
    """Return the values of a column and which are known, each empty where there is nothing to tell."""
    column = table.column(name)
    if column.is_unknown:
        return _NO_INTS, _NO_BYTES
    mask = _NO_BYTES if column.valid is None else np.ascontiguousarray(column.valid).view(np.uint8)
    return np.ascontiguousarray(column.values), mask


def _largest_gap(kept: Ints, gaps: list[Table], tree: Tree) -> tuple[Ints, Ints, Ints]:
    """Return length, start and end of the largest inner gap of each lane, int64 [tracks] each.

    Args:
        kept: starts and ends of the largest ones, int64 [tracks, 2 * k], the largest first.
        gaps: known gaps of the trace, which are taken off them.
        tree: the tracks.
    """
    start, end = kept[:, 0::2], kept[:, 1::2]
    length = end - start
    if gaps and len(tree):
        table = Table.concat(gaps)
        rows, tracks = tree.spread(table.values("track_id"))
        first, last = table.values("ts")[rows], end_or_last_known(table)[rows]
        known = union(Intervals(tracks, first, last))
        length = length.copy()
        for group, gap_first, gap_last in zip(*(part.tolist() for part in known), strict=True):
            shared = np.minimum(end[group], gap_last) - np.maximum(start[group], gap_first)
            length[group] -= np.maximum(shared, 0)
    best = np.argmax(length, axis=1) if len(length) else _NO_INTS
    at = np.arange(len(length))
    return length[at, best], start[at, best], end[at, best]


def _ticks(tree: Tree, clocks: Table, unit: str) -> npt.NDArray[np.float64]:
    """Return one tick of the clock of each track in the trace's unit, float64 [tracks]; 1 where unknown."""
    found = np.ones(len(tree), np.float64)
    if unit != "ns" or not len(clocks):
        return found
    is_known = clocks.valid("frequency_num") & (clocks.values("frequency_num") > 0)
    den = np.where(clocks.valid("frequency_den"), np.maximum(clocks.values("frequency_den"), 1), 1)
    tick = np.where(is_known, 1e9 * den / np.maximum(clocks.values("frequency_num"), 1), 1.0)
    ids, valid = tree.tracks.values("clock_id"), tree.tracks.valid("clock_id")
    is_there = valid & (ids >= 0) & (ids < len(clocks))
    only = 0 if len(clocks) == 1 else -1
    clock = np.full(len(tree), only, np.int64)
    for track, parent in enumerate(tree.parents):
        if is_there[track]:
            clock[track] = ids[track]
        elif 0 <= parent < track:
            clock[track] = clock[parent]
    found[clock >= 0] = tick[clock[clock >= 0]]
    return found
