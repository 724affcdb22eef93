"""A trace in parts, lanes by lanes: what is found of each part is what is found of its lanes in the whole.

What an analysis keeps for each slice takes several times the memory of the slice. Lanes that share an instance, or that
flows connect, tell of each other's waits, so they are in one part. Other lanes tell of each other what is found of the
whole at first: the window, and timestamps apart from all others; and for which regions waits that are alike mostly
wait. That is found part by part, and parts whose lanes tell otherwise than all lanes are looked at once more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from lanescope.analysis.analysis_cache import AnalysisCache, instances
from lanescope.analysis.instances import PARENT
from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.plausibility.attested import Attested
from lanescope.analysis.producer_votes import ProducerVotes
from lanescope.analysis.work_classes import kinds
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Ints, sums
from lanescope.trace import Table, Trace
from lanescope.trace.row_packing import rows_of

Result = TypeVar("Result")

#: A trace of more slices is looked at in parts of about as many, where lanes allow it; or of so many times its tracks,
#: all of which each part looks at. What a part takes stays in the caches of processors, or nearly.
MOST, PER_TRACK = 1 << 18, 4
#: Pairs of lanes with a flow between them; with more of them all lanes are one part.
_PAIRS = 1 << 16
#: Columns of slices that analyses of lanes read.
_COLUMNS = ("id", "track_id", "ts", "dur", "name", "last_known_ts")


class _Part(AnalysisCache):
    """The slices of some lanes; all other tables are those of the whole."""

    def __init__(self, whole: AnalysisCache, slices: Table, rows: Ints, lanes: Ints, role: str) -> None:
        super().__init__(Trace(whole.trace.time, {**whole.trace.tables(), "slices": slices}), whole.given)
        self.time = LaneTime(self.trace, whole.time.tree)
        self.time.window = whole.time.window
        suspects = whole.time.attested
        self.time.attested = Attested(suspects.window, np.flatnonzero(np.isin(rows, suspects.rows)))
        self.lanes, self.views, self.chosen = lanes, whole.views, whole.chosen
        self.selected = None if whole.selected is None else whole.selected.take(rows)
        # What waits is told by names alone.
        nothing = np.zeros(len(whole.names), np.int64)
        known = vars(whole).get("kind_of")
        self.kind_of = kinds(whole.names.texts, nothing, nothing, whole.given) if known is None else known
        self.kept[instances, role] = instances(whole, role)


class _Slices(Protocol):
    """Slices of a trace, in memory or on disk."""

    def __len__(self) -> int: ...

    def per_track(self, tracks: int) -> Ints: ...

    def part(self, number: Ints, at: int) -> tuple[Table, Ints]: ...

    def tracks_of(self, ids: Ints) -> Ints: ...


class _InMemory:
    """The slices of a trace; what its methods return is as of ``SlicesOnDisk``."""

    def __init__(self, slices: Table) -> None:
        self._slices = slices
        self._track = slices.values("track_id")
        self._part_of: npt.NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self._slices)

    def per_track(self, tracks: int) -> Ints:
        known = (self._track >= 0) & (self._track < tracks)
        return np.bincount(self._track[known], minlength=tracks)

    def part(self, number: Ints, at: int) -> tuple[Table, Ints]:
        if self._part_of is None:
            known = (self._track >= 0) & (self._track < len(number))
            narrow = np.uint8 if int(number.max(initial=0)) < 1 << 8 else np.int32
            self._part_of = np.where(known, number[np.where(known, self._track, 0)], 0).astype(narrow)
        rows = np.flatnonzero(self._part_of == at)
        return self._slices.only(_COLUMNS).take(rows), rows

    def tracks_of(self, ids: Ints) -> Ints:
        row = rows_of(self._slices.values("id"), ids)
        return np.where(row >= 0, self._track[row], -1) if len(self._slices) else np.full(len(ids), -1)


def of_parts(whole: AnalysisCache, make: Callable[[AnalysisCache], Result], role: str = PARENT) -> list[Result]:
    """Return what a function makes of each part of a trace; of a small trace, what it makes of that.

    The lanes of all parts together are the lanes of the trace. Rows of ``slices`` are numbered within a part, ids are
    those of the trace. Where the kinds of work are not known of the whole yet, what only encloses others computes.

    Args:
        whole: the trace.
        make: takes a part, and keeps nothing of it.
        role: the instances of which waits are attributed to regions.
    """
    slices: _Slices = whole.on_disk or _InMemory(whole.trace.slices)
    number = _numbers(whole, slices, role)
    count = int(number.max(initial=0)) + 1
    if count < 2 and whole.on_disk is None:
        return [make(whole)]

    def made(at: int, votes: ProducerVotes | None) -> tuple[Result, ProducerVotes]:
        part = _Part(whole, *slices.part(number, at), whole.lanes[number[whole.lanes] == at], role)
        part.votes = votes
        return make(part), part.own_votes

    found = [made(at, None) for at in range(count)]
    votes = ProducerVotes.joined(own for _, own in found)
    return [
        result if (own.usual(own.alike) == votes.usual(own.alike)).all() else made(at, votes)[0]
        for at, (result, own) in enumerate(found)
    ]


def _numbers(whole: AnalysisCache, slices: _Slices, role: str) -> Ints:
    """Return the part of each track, int64 [tracks]; lanes that tell of each other have the same."""
    tracks = len(whole.trace.tracks)
    most = max(MOST, PER_TRACK * tracks)
    if len(slices) <= most:
        return np.zeros(tracks, np.int64)
    own = instances(whole, role).of
    group = np.where(own >= 0, own, int(own.max(initial=-1)) + 1 + np.arange(tracks))
    together = _connected(whole.trace.flows, slices, group)
    if together is None:
        return np.zeros(tracks, np.int64)
    sizes = sums(together, slices.per_track(tracks), int(together.max(initial=0)) + 1)
    # Groups without slices behind the last one with some do not make a part of their own.
    before = np.cumsum(sizes) - sizes
    part = np.minimum(before, before[sizes > 0].max(initial=0)) // most
    number: Ints = np.searchsorted(distinct(part), part)[together]
    return number


def _connected(flows: Table, slices: _Slices, group: Ints) -> Ints | None:
    """Return the lowest group that flows connect the group of each track with; None: too many pairs to tell.

    Args:
        flows: the flows.
        slices: the slices that they name.
        group: int64 [tracks], 0 or more.
    """
    tracks = len(group)
    if not len(flows):
        return group
    ends: list[Ints] = []
    for side in ("src", "dst"):
        named = flows.valid(f"{side}_slice_id")
        track = slices.tracks_of(np.where(named, flows.values(f"{side}_slice_id"), -1))
        lane = flows.values(f"{side}_track_id")
        ends += [lane, np.where(named & (track >= 0), track, lane)]
    width = int(group.max(initial=0)) + 1
    above = np.arange(width)
    for other in ends[1:]:
        real = (ends[0] >= 0) & (ends[0] < tracks) & (other >= 0) & (other < tracks)
        pairs = distinct(group[ends[0][real]] * width + group[other[real]])
        if len(pairs) > _PAIRS:
            return None
        for first, second in zip((pairs // width).tolist(), (pairs % width).tolist(), strict=True):
            low, high = sorted((_root(above, first), _root(above, second)))
            above[high] = low
    return np.array([_root(above, number) for number in group.tolist()], np.int64)


def _root(above: Ints, number: int) -> int:
    while above[number] != number:
        above[number] = above[above[number]]
        number = int(above[number])
    return number
