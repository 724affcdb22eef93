"""Lanes by the clocks that they count on, and what flows between them tell of these clocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.families.clock_pairs import ClockPairs, Int64, Orders, TimeDomain
from lanescope.trace import Table, Trace

#: Role of the group of one capture in a merged trace.
_RUN = "run"
#: What is added to names of groups that are placed with an error, or beside others.
_PLACE = re.compile(r"(?: \((?:clock .*, (?:unknown error|±.*)|time axis \d+|(?:placed, )?(?:unknown error|±.*))\))+$")


def without_place(name: str) -> str:
    """Return the name of a group without what a merge or an alignment added of where it lies."""
    return _PLACE.sub("", name)


class TrackRoots:
    """The topmost group of each track, and what to call clocks of several captures.

    Attributes:
        root: int64 [tracks], the topmost track above each.
        is_merged: whether the topmost groups are captures.

    Args:
        tracks: the tracks.
    """

    def __init__(self, tracks: Table) -> None:
        parents = np.where(tracks.valid("parent_id"), tracks.values("parent_id"), -1)
        root = np.where((parents >= 0) & (parents < len(parents)), parents, np.arange(len(parents)))
        for _ in range(64):  # each round looks twice as far up
            above = root[root]
            if (above == root).all():
                break
            root = above
        self.root: Int64 = root
        self.is_merged = bool((tracks.values("role") == _RUN).any())
        self._names, self._roles = tracks.values("name"), tracks.values("role")

    def run_name(self, track: int) -> str:
        """Return the name of the capture above a track, and a blank; empty where the trace holds one capture."""
        root = int(self.root[track])
        return f"{without_place(str(self._names[root]))} " if self._roles[root] == _RUN else ""

    def above(self, track: int, tracks: Table, role: str) -> int:
        """Return the nearest group of a role above a track; -1 where there is none."""
        at: int | None = track
        for _ in range(64):
            if at is None or self._roles[at] == role:
                break
            at = tracks.values("parent_id")[at] if tracks.valid("parent_id")[at] else None
        return -1 if at is None or self._roles[at] != role else int(at)


def lanes_of_clocks(trace: Trace, wanted: npt.NDArray[np.bool_] | None = None) -> tuple[dict[int, TimeDomain], Int64]:
    """Return the clocks that lanes count on, by number, and the number of each track's clock.

    Args:
        trace: the trace.
        wanted: bool [tracks], tracks to look at; None: all.

    Returns:
        Of clocks on which lanes count: name and lanes. Lanes without a clock count on the axis of the trace, or of
        their capture in a merged one. And int64 [tracks], -1 for what is not a lane.
    """
    tracks, clocks = trace.tracks, trace.clocks
    roots = TrackRoots(tracks)
    is_lane = tracks.values("kind") == "lane"
    if wanted is not None:
        is_lane &= wanted
    own = np.where(
        tracks.valid("clock_id"), tracks.values("clock_id"), len(clocks) + (roots.root if roots.is_merged else 0)
    )
    number: Int64 = np.where(is_lane, own, -1)
    roles = tracks.values("role")
    found: dict[int, TimeDomain] = {}
    taken: set[str] = set()
    for clock in distinct(number[number >= 0]).tolist():
        members = np.flatnonzero(number == clock)
        name = roots.run_name(int(members[0])) + _clock_name(trace, clock)
        name = next(text for text in (name, *(f"{name} ({n})" for n in range(2, len(number) + 2))) if text not in taken)
        taken.add(name)
        found[clock] = TimeDomain(name, members, bool((roles[members] == "host_thread").any()))
    return found, number


def _clock_name(trace: Trace, clock: int) -> str:
    if clock >= len(trace.clocks):
        return "host" if "host_thread" in trace.tracks.values("role").tolist() else "time axis"
    name, device = str(trace.clocks.values("name")[clock]), str(trace.clocks.values("device")[clock])
    return f"{name} of {device}" if device and device != name else name


def flow_pairs(trace: Trace) -> Iterator[ClockPairs]:
    """Yield what flows between lanes on different clocks tell of these: a cause is not later than its effect."""
    domains, number = lanes_of_clocks(trace)
    flows = trace.flows
    rows = np.flatnonzero(flows.valid("src_slice_id") & flows.valid("dst_slice_id"))
    source, target = number[flows.values("src_track_id")[rows]], number[flows.values("dst_track_id")[rows]]
    fits = (source != target) & (source >= 0) & (target >= 0)
    rows, source, target = rows[fits], source[fits], target[fits]
    orders = Orders(
        flows.values("src_ts")[rows],
        flows.values("dst_ts")[rows],
        flows.values("src_slice_id")[rows],
        flows.values("dst_slice_id")[rows],
    )
    yield from paired(domains, source, target, orders)


def paired(
    domains: dict[int, TimeDomain], source: Int64, target: Int64, orders: Orders, lacks: str = ""
) -> Iterator[ClockPairs]:
    """Yield orders by the two clocks that they join.

    Args:
        domains: the clocks by number.
        source: int64 [orders], clock of each cause.
        target: int64 [orders], clock of each effect, another one.
        orders: the causes and their effects.
        lacks: see ``ClockPairs``.
    """
    if not len(source):
        return
    least, most = np.minimum(source, target), np.maximum(source, target)
    width = int(most.max()) + 1
    key = least * width + most
    for both in distinct(key).tolist():
        mine = np.flatnonzero(key == both)
        first, second = both // width, both % width
        if domains[second].is_host and not domains[first].is_host:
            first, second = second, first
        forward, backward = mine[source[mine] == first], mine[source[mine] == second]
        yield ClockPairs(domains[first], domains[second], orders.take(forward), orders.take(backward), lacks)


def merged_pairs(found: Iterable[ClockPairs]) -> list[ClockPairs]:
    """Return what joins two clocks once, however many entries say something of them."""
    by_names: dict[tuple[str, str], list[ClockPairs]] = {}
    for pairs in found:
        names = pairs.first.name, pairs.second.name
        if names[::-1] in by_names and not pairs.base:
            pairs = pairs._replace(
                first=pairs.second,
                second=pairs.first,
                forward=pairs.backward,
                backward=pairs.forward,
                readings=pairs.readings[::-1],
            )
            names = names[::-1]
        by_names.setdefault(names, []).append(pairs)
    return [
        parts[0]._replace(
            forward=Orders.joined(part.forward for part in parts),
            backward=Orders.joined(part.backward for part in parts),
            lacks=next((part.lacks for part in parts if part.lacks), ""),
            readings=(_all(part.readings[0] for part in parts), _all(part.readings[1] for part in parts)),
        )
        for parts in by_names.values()
    ]


def _all(parts: Iterable[Int64]) -> Int64:
    return np.concatenate(list(parts))
