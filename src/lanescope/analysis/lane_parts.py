"""A trace in parts, lanes by lanes: what is found of each part is what is found of its lanes in the whole.

What an analysis keeps for each slice takes several times the memory of the slice. Lanes that share an instance, or that
flows connect, tell of each other's waits, so they are in one part. Other lanes tell of each other what is found of the
whole at first: the window, and timestamps apart from all others; and for which regions waits that are alike mostly
wait. That is found part by part, and parts whose lanes tell otherwise than all lanes are looked at once more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from lanescope.analysis.analysis_cache import AnalysisCache, instances
from lanescope.analysis.instances import PARENT
from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.plausibility.attested import Attested
from lanescope.analysis.producer_votes import ProducerVotes
from lanescope.analysis.work_classes import kinds
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Ints
from lanescope.trace import Trace
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

    def __init__(self, whole: AnalysisCache, rows: Ints, lanes: Ints, role: str) -> None:
        slices = whole.trace.slices.only(_COLUMNS).take(rows)
        super().__init__(Trace(whole.trace.time, {**whole.trace.tables(), "slices": slices}), whole.given)
        self.time = LaneTime(self.trace, whole.time.tree)
        self.time.window = whole.time.window
        suspects = whole.time.attested
        self.time.attested = Attested(suspects.window, np.flatnonzero(np.isin(rows, suspects.rows)))
        self.lanes, self.views = lanes, whole.views
        # What waits is told by names alone.
        nothing = np.zeros(len(whole.names), np.int64)
        known = vars(whole).get("kind_of")
        self.kind_of = kinds(whole.names.texts, nothing, nothing, whole.given) if known is None else known
        self.kept[instances, role] = instances(whole, role)


def of_parts(whole: AnalysisCache, make: Callable[[AnalysisCache], Result], role: str = PARENT) -> list[Result]:
    """Return what a function makes of each part of a trace; of a small trace, what it makes of that.

    The lanes of all parts together are the lanes of the trace. Rows of ``slices`` are numbered within a part, ids are
    those of the trace. Where the kinds of work are not known of the whole yet, what only encloses others computes.

    Args:
        whole: the trace.
        make: takes a part, and keeps nothing of it.
        role: the instances of which waits are attributed to regions.
    """
    number = _numbers(whole, role)
    count = int(number.max(initial=0)) + 1
    if count < 2:
        return [make(whole)]
    track = whole.trace.slices.values("track_id")
    known = (track >= 0) & (track < len(number))
    of_slice = np.where(known, number[np.where(known, track, 0)], 0).astype(np.uint8 if count <= 1 << 8 else np.int32)

    def made(at: int, votes: ProducerVotes | None) -> tuple[Result, ProducerVotes]:
        part = _Part(whole, np.flatnonzero(of_slice == at), whole.lanes[number[whole.lanes] == at], role)
        part.votes = votes
        return make(part), part.own_votes

    found = [made(at, None) for at in range(count)]
    votes = ProducerVotes.joined(own for _, own in found)
    return [
        result if (own.usual(own.alike) == votes.usual(own.alike)).all() else made(at, votes)[0]
        for at, (result, own) in enumerate(found)
    ]


def _numbers(whole: AnalysisCache, role: str) -> Ints:
    """Return the part of each track, int64 [tracks]; lanes that tell of each other have the same."""
    tracks, track = len(whole.trace.tracks), whole.trace.slices.values("track_id")
    most = max(MOST, PER_TRACK * tracks)
    if len(track) <= most:
        return np.zeros(tracks, np.int64)
    own = instances(whole, role).of
    group = np.where(own >= 0, own, int(own.max(initial=-1)) + 1 + np.arange(tracks))
    together = _connected(whole.trace, group)
    if together is None:
        return np.zeros(tracks, np.int64)
    sizes = np.bincount(together[track[(track >= 0) & (track < tracks)]], minlength=int(together.max(initial=0)) + 1)
    # Groups without slices behind the last one with some do not make a part of their own.
    before = np.cumsum(sizes) - sizes
    part = np.minimum(before, before[sizes > 0].max(initial=0)) // most
    number: Ints = np.searchsorted(distinct(part), part)[together]
    return number


def _connected(trace: Trace, group: Ints) -> Ints | None:
    """Return the lowest group that flows connect the group of each track with; None: too many pairs to tell.

    Args:
        trace: the trace.
        group: int64 [tracks], 0 or more.
    """
    flows, slices, tracks = trace.flows, trace.slices, len(group)
    if not len(flows):
        return group
    ends: list[Ints] = []
    for side in ("src", "dst"):
        named = flows.valid(f"{side}_slice_id")
        row = rows_of(slices.values("id"), np.where(named, flows.values(f"{side}_slice_id"), -1))
        lane = flows.values(f"{side}_track_id")
        ends += [lane, np.where(named & (row >= 0), slices.values("track_id")[row], lane)]
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
