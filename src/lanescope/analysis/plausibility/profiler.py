"""Accumulator of a profile.

A native sweep takes the rows batch by batch, in the order of their tables, so that any division into batches gives the
same profile. Lanes whose slices do not come in order of start are swept again, sorted, as soon as their slices are at
hand together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.analysis.lane_time import end_or_last_known
from lanescope.analysis.plausibility.profile import Longest, Pairs, Profile
from lanescope.analysis.plausibility.shapes import Shapes, host_lanes
from lanescope.analysis.plausibility.stamps import Stamps
from lanescope.analysis.track_tree import Tree
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Intervals, Ints, known_extents, order, union
from lanescope.trace import Table, Trace
from lanescope.trace.column import Dictionary, Mask

_NO_INTS = np.empty(0, np.int64)
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


class Profiler:
    """Accumulator of a ``Profile``: ``add`` batches, then ask for the ``profile``."""

    def __init__(self) -> None:
        self._sweep = core.TraceProfile()
        self._shapes = Shapes()
        self._stamps = Stamps()
        self._names: Dictionary | None = None
        self._own_names = False
        self._gaps: list[Table] = []
        self._stats: set[str] = set()
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
        if len(batch.stats):
            self._stats.update(str(name) for name in batch.stats.values("name").tolist())
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

    def profile(
        self,
        positions: Ints | None = None,
        slices: Table | None = None,
        sorted_rows: Callable[[], Ints] | None = None,
    ) -> Profile:
        """Return the profile.

        Args:
            positions: where ``slices`` stand in the whole trace, int64 [n] rising.
            slices: with all slices of the lanes that are not in order; None: those lanes are not judged.
            sorted_rows: returns the rows of ``slices`` by lane and time, int64 [n]; None: they are sorted here.

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
                lanes, repeated = self._sorted_lanes(unordered, positions, slices, sorted_rows, lanes, repeated)
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
            stats=frozenset(self._stats),
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
        self,
        wanted: Mask,
        positions: Ints,
        slices: Table,
        sorted_rows: Callable[[], Ints] | None,
        lanes: Ints,
        repeated: Ints,
    ) -> tuple[Ints, Ints]:
        """Return the rows of lanes and the repeated slices, those of the ``wanted`` lanes from their sorted slices."""
        rows = order(*known_extents(slices)) if sorted_rows is None else sorted_rows()
        sweep = core.TraceProfile()
        sweep.add_lanes(self._shapes.of)
        track, ts, dur, last = _swept(slices)
        names, positions = self._name_codes(slices), np.ascontiguousarray(positions)
        sweep.ordered(track, ts, *dur, *last, names, positions, rows, wanted.view(np.uint8))
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
    track, ts, dur, last = _swept(slices)
    sweep.slices(track, ts, *dur, *last, names, rows)


def _swept(
    slices: Table,
) -> tuple[Ints, Ints, tuple[Ints, npt.NDArray[np.uint8]], tuple[Ints, npt.NDArray[np.uint8]]]:
    """Return lanes, starts, lengths and times last known of slices as native sweeps take them."""
    return (
        np.ascontiguousarray(slices.values("track_id")),
        np.ascontiguousarray(slices.values("ts")),
        slices.nullable("dur"),
        slices.nullable("last_known_ts"),
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
