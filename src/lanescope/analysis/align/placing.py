"""A timeline with its clocks placed: times of each clock moved to where its offset puts them, their errors stated."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from lanescope.analysis.align.answer import Alignment, Found
from lanescope.analysis.align.interval import Interval
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Ints
from lanescope.common.time_domains import TrackRoots, lanes_of_clocks, without_place
from lanescope.declaration import replace
from lanescope.errors import MergeError
from lanescope.families.clock_pairs import TimeDomain
from lanescope.trace import Column, Table, TableSpec, Trace
from lanescope.trace.merge_tables import counted

#: Stat of the captures of a merged trace that share no clock with the first one.
_UNALIGNED = "unaligned_capture"
#: Stats of how well a merge or an alignment before knew where captures lie.
_OF_PLACES = (_UNALIGNED, "placement_error", "unknown_placement", "unplaced_lanes")
_AXIS = re.compile(r" \(time axis \d+\)$")
_NS = 1_000_000_000


class Place(NamedTuple):
    """Where a clock lies against the reference: it shows ``slope * t + shift`` when that shows ``t``.

    Attributes:
        slope: its rate.
        shift: exact.
        error: how far its times are off at most, once moved; None where that is not known.
        is_moved: whether its times change.
    """

    slope: Fraction
    shift: Fraction
    error: int | None
    is_moved: bool

    def to_reference(self, shown: Ints) -> Ints:
        """Return times of the reference when the clock shows some, rounded; in the same order, ties aside."""
        if not self.is_moved or not len(shown):
            return shown
        share = 1 - 1 / self.slope
        start = int(shown.min())
        off = share * start + self.shift / self.slope
        whole = math.floor(off)
        # Floating-point numbers count what a rate adds over the trace only: rounded, they keep the order.
        rest = np.rint(float(off - whole) + float(share) * (shown - start)).astype(np.int64)
        found: Ints = shown - whole - rest
        return found


_HERE = Place(Fraction(1), Fraction(0), 0, is_moved=False)


def placed(alignment: Alignment) -> Trace:
    """Return the trace with the times of each clock moved to where its offset puts them.

    Clocks whose times as shown satisfy all pairs stay where they are. The error of each clock is in the names of its
    groups and in the anchors of its lanes' clock, where checks and the critical path take it from.

    Raises:
        MergeError: a capture without a clock of the first one cannot be placed; the bound that is known is named.
    """
    trace = alignment.trace
    roots = TrackRoots(trace.tracks).root
    beside = _captures_beside(trace, roots)
    places = _places(alignment, roots, beside)
    domains = {domain.name: domain for found in alignment.found for domain in (found.pairs.first, found.pairs.second)}
    of_track, listed = _track_places(trace, roots, domains, places)
    _refuse_unplaced(alignment, domains, places, roots, beside, of_track)
    hosts = _host_places(trace, roots, domains, listed, of_track)
    moved = {name: _moved(table, trace, of_track, hosts, listed) for name, table in trace.tables().items()}
    low = min((int(moved[name].values("ts").min(initial=0)) for name in ("slices", "instants", "counters")), default=0)
    tables = {name: _later(table, -low) for name, table in moved.items()}
    axes = {name: _axis_of(alignment, trace, domain, roots, hosts, listed, places) for name, domain in domains.items()}
    tables |= _with_clocks(trace, tables, domains, places, axes, -low)
    tables["tracks"] = _named(trace, tables["tracks"], domains, places)
    tables["stats"] = _stats_of_places(trace, tables["stats"], domains, places)
    details = {name: tables[name] for name in trace.details}
    time = replace(trace.time, epoch_ns=trace.time.epoch_ns + low)
    return Trace(time, tables, details, trace.records)


def _stats_of_places(
    trace: Trace, stats: Table, domains: Mapping[str, TimeDomain], places: Mapping[str, Place]
) -> Table:
    """Return the stats with what is known of each clock, in place of what a merge knew of the captures."""
    stats = stats.where(~np.isin(stats.values("name"), _OF_PLACES))
    for name, domain in domains.items():
        if len(domain.tracks) and places[name].error is None:
            stats = counted(stats, "unplaced_lanes", len(domain.tracks), track_id=int(domain.tracks[0]))
    roots = TrackRoots(trace.tracks)
    if not roots.is_merged:
        return stats
    tracks = trace.tracks
    for clock, domain in lanes_of_clocks(trace)[0].items():
        if domain.name in domains:
            continue
        lane = int(domain.tracks[0])
        root = int(roots.root[lane])
        if clock < len(trace.clocks):
            stats = counted(stats, "unplaced_lanes", len(domain.tracks), track_id=lane)
        elif tracks.valid("input_id")[root]:
            stats = counted(stats, "unknown_placement", 1, input_id=int(tracks.values("input_id")[root]))
    return stats


# --- where clocks lie ---------------------------------------------------------------------------------------------


def _captures_beside(trace: Trace, roots: Ints) -> set[int]:
    """Return the topmost groups of captures that share no clock with the first one."""
    stats, tracks = trace.stats, trace.tracks
    inputs = stats.values("input_id")[(stats.values("name") == _UNALIGNED) & stats.valid("input_id")]
    is_there = tracks.valid("input_id") & np.isin(tracks.values("input_id"), inputs)
    return set(roots[np.flatnonzero(is_there)].tolist()) if len(inputs) else set()


def _places(alignment: Alignment, roots: Ints, beside: set[int]) -> dict[str, Place]:
    """Return the place of each clock that an interval joins to the reference, over those of the smallest errors."""
    known = {alignment.reference: _HERE}
    extents = _extents(alignment.trace)
    ways = [found for found in alignment.found if isinstance(found.result, Interval) and not found.pairs.base]
    while True:
        best: tuple[int, str, Place] | None = None
        for found in ways:
            link = _link(found, is_apart=_is_apart(found, roots, beside))
            if link.error is not None:
                link = link._replace(error=link.error + _beyond_pairs(found, extents, alignment.rate))
            for near, far, step in (
                (*found.names, link),
                (*found.names[::-1], _inverse(link, alignment.rate)),
            ):
                if near not in known or far in known:
                    continue
                place = _beyond(known[near], step, alignment.rate)
                error = place.error or 0
                if best is None or error < best[0]:
                    best = error, far, place
        if best is None:
            return known
        known[best[1]] = best[2]


def _extents(trace: Trace) -> tuple[Ints, Ints]:
    """Return the first and last moment of each track, int64 [tracks]; those of empty tracks are far and near."""
    slices, count = trace.slices, len(trace.tracks)
    first, last = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(first, slices.values("track_id"), slices.values("ts"))
    np.maximum.at(last, slices.values("track_id"), slices.values("ts") + slices.values("dur"))
    return first, last


def _beyond_pairs(found: Found, extents: tuple[Ints, Ints], rate: Fraction) -> int:
    """Return what the rate may add to the error before the first pair and after the last one."""
    result, tracks = found.result, found.pairs.second.tracks
    assert isinstance(result, Interval)
    if not len(tracks):
        return 0
    offset = int(result.offset)
    first, last = int(extents[0][tracks].min()) - offset, int(extents[1][tracks].max()) - offset
    return math.ceil(2 * rate * max(result.begin - first, last - result.end, 0)) if first <= last else 0


def _is_apart(found: Found, roots: Ints, beside: set[int]) -> bool:
    """Return whether the two clocks have no time axis in common as the trace shows them."""
    tops = [
        int(roots[domain.tracks[0]]) if len(domain.tracks) else -1 for domain in (found.pairs.first, found.pairs.second)
    ]
    return tops[0] != tops[1] and bool(beside & set(tops))


def _link(found: Found, *, is_apart: bool) -> Place:
    result = found.result
    assert isinstance(result, Interval)
    if found.holds and not is_apart:
        return Place(Fraction(1), Fraction(0), result.zero_error, is_moved=False)
    value, slope = result.line
    return Place(1 + slope, value - slope * result.begin, result.error + 1, is_moved=True)


def _inverse(place: Place, rate: Fraction) -> Place:
    error = None if place.error is None else math.ceil(place.error * (1 + rate)) + (1 if place.is_moved else 0)
    return Place(1 / place.slope, -place.shift / place.slope, error, place.is_moved)


def _beyond(near: Place, step: Place, rate: Fraction) -> Place:
    more = 1 if near.is_moved or step.is_moved else 0
    known = near.error is not None and step.error is not None
    error = math.ceil((near.error or 0) * (1 + rate)) + (step.error or 0) + more if known else None
    if near is _HERE:
        error = step.error
    slope = step.slope * near.slope
    return Place(slope, step.slope * near.shift + step.shift, error, near.is_moved or step.is_moved)


def _track_places(
    trace: Trace, roots: Ints, domains: Mapping[str, TimeDomain], places: dict[str, Place]
) -> tuple[Ints, list[Place]]:
    """Return the places, and for each track the number of its own; what counts on no known clock moves with its host.

    Clocks of a capture that nothing places stay where they are against the others of that capture.
    """
    tracks = trace.tracks
    listed: list[Place] = [_HERE]
    found = np.full(len(tracks), -1, np.int64)
    for name, place in places.items():
        if name in domains:
            listed.append(place)
            found[domains[name].tracks] = len(listed) - 1
    is_host = np.zeros(len(tracks), bool)
    for domain in domains.values():
        is_host[domain.tracks] |= domain.is_host
    parents = np.where(tracks.valid("parent_id"), tracks.values("parent_id"), -1)
    missing = np.flatnonzero(found < 0)
    own = found.copy()
    below = _below(parents, own)
    for track in missing.tolist():
        above = int(parents[track])
        while above >= 0 and found[track] < 0:
            if len(below.get(above, ())) == 1:
                found[track] = next(iter(below[above]))
            above = int(parents[above])
        if found[track] < 0:
            mine = (roots == roots[track]) & (own >= 0)
            some = own[mine & is_host] if (mine & is_host).any() else own[mine]
            found[track] = some[0] if len(some) else 0
    for name, domain in domains.items():
        if name not in places and len(domain.tracks):
            number = int(found[domain.tracks[0]])
            places[name] = listed[number]._replace(error=None)
            listed.append(places[name])
            found[domain.tracks] = len(listed) - 1
    return found, listed


def _below(parents: Ints, own: Ints) -> dict[int, set[int]]:
    """Return for each track with a number, and each group above one, the numbers in it."""
    found = {track: {int(own[track])} for track in np.flatnonzero(own >= 0).tolist()}
    for track in list(found):
        above = int(parents[track])
        while above >= 0 and not found[track] <= found.setdefault(above, set()):
            found[above] |= found[track]
            above = int(parents[above])
    return found


def _refuse_unplaced(
    alignment: Alignment,
    domains: Mapping[str, TimeDomain],
    places: Mapping[str, Place],
    roots: Ints,
    beside: set[int],
    of_track: Ints,
) -> None:
    tracks = alignment.trace.tracks
    for root in sorted(beside):
        mine = [name for name, domain in domains.items() if len(domain.tracks) and roots[domain.tracks[0]] == root]
        if any(places[name].is_moved for name in mine if name in places):
            continue
        bounds = [
            f"{'at least' if row['most'] is None else 'at most'} {row['least' if row['most'] is None else 'most']:,}"
            for row in alignment.table().rows()
            if row["status"] == "one bound" and row["second"] in mine
        ]
        name = _AXIS.sub("", str(tracks.values("name")[root]))
        known = f": its offset is {bounds[0]}, and nothing limits the other side" if bounds else ""
        raise MergeError(
            f"cannot place {name} against the first capture{known}",
            hint="record what joins both, or use 'lanescope convert --side-by-side' for a time axis each",
        )


def _host_places(
    trace: Trace, roots: Ints, domains: Mapping[str, TimeDomain], listed: list[Place], of_track: Ints
) -> Ints:
    """Return for each track the number of its capture's host, int64 [tracks]."""
    found = np.zeros(len(roots), np.int64)
    for domain in domains.values():
        if domain.is_host and len(domain.tracks):
            first = int(domain.tracks[0])
            found[roots == roots[first]] = of_track[first]
    return found


def _axis_of(
    alignment: Alignment,
    trace: Trace,
    domain: TimeDomain,
    roots: Ints,
    hosts: Ints,
    listed: list[Place],
    places: Mapping[str, Place],
) -> Place:
    """Return the place of the axis that a clock's anchors count on: the host's of its capture, if it has one."""
    if not len(domain.tracks):
        return _HERE
    host = int(hosts[domain.tracks[0]])
    if host or any(found.pairs.first.is_host for found in alignment.found):
        return listed[host]
    joined = [found for found in alignment.found if found.pairs.second.name == domain.name]
    if any(not len(found.pairs.first.tracks) and not found.pairs.base for found in joined):
        return _HERE
    return places.get(domain.name, _HERE)


# --- tables -------------------------------------------------------------------------------------------------------


def _moved(table: Table, trace: Trace, of_track: Ints, hosts: Ints, listed: list[Place]) -> Table:
    """Return a table with its times moved, each by the clock of its lane; lengths with their two ends."""
    times = [spec for spec in table.spec.columns if spec.is_time]
    if not times or not len(table) or not any(place.is_moved for place in listed) or table.spec.name == "anchors":
        return table
    columns = {name: table.column(name) for name in table.spec.names}
    ends = table.spec.name in ("slices", "gaps", "coverage")
    track = _tracks_of(table, trace)
    for spec in times:
        lane = track
        if table.spec.name == "flows":
            lane = table.values("src_track_id" if spec.name == "src_ts" else "dst_track_id")
        number = np.where(lane >= 0, (hosts if spec.of_host else of_track)[lane], 0)
        old, valid = table.values(spec.name), table.valid(spec.name)
        new = _by_place(old, number, listed)
        columns[spec.name] = Column.array(np.where(valid, new, 0), valid=None if valid.all() else valid)
        if ends and spec.name == "ts":
            dur, has_end = table.values("dur"), table.valid("dur")
            length = _by_place(old + dur, number, listed) - new
            columns["dur"] = Column.array(
                np.where(has_end & (dur >= 0), length, dur), valid=None if has_end.all() else has_end
            )
    return Table(table.spec, columns)


def _by_place(values: Ints, number: Ints, listed: list[Place]) -> Ints:
    found = values.copy()
    for each in distinct(number).tolist():
        mine = number == each
        found[mine] = listed[each].to_reference(values[mine])
    return found


def _tracks_of(table: Table, trace: Trace) -> Ints:
    """Return the lane of each row, int64, -1 where it has none."""
    names = table.spec.names
    if "track_id" in names:
        return np.where(table.valid("track_id"), table.values("track_id"), -1)
    for key, of in (("slice_id", "slices"), ("instant_id", "instants")):
        if table.spec.key == key:
            return trace.tables()[of].values("track_id")[table.values(key)]
    if table.spec.key == "flow_id":
        return trace.flows.values("dst_track_id")[table.values("flow_id")]
    return np.full(len(table), -1, np.int64)


def _later(table: Table, delta: int) -> Table:
    """Return a table with all times later by as much."""
    if not delta or not len(table):
        return table
    columns = {name: table.column(name) for name in table.spec.names}
    for spec in table.spec.columns:
        if spec.is_time:
            valid = table.valid(spec.name)
            times = np.where(valid, table.values(spec.name) + delta, 0)
            columns[spec.name] = Column.array(times, valid=None if valid.all() else valid)
    return Table(table.spec, columns)


def _with_clocks(
    trace: Trace,
    tables: Mapping[str, Table],
    domains: Mapping[str, TimeDomain],
    places: Mapping[str, Place],
    axes: Mapping[str, Place],
    delta: int,
) -> dict[str, Table]:
    """Return tracks, clocks and anchors with a clock of its own for each placed one, whose anchors state its error."""
    tracks, clocks, anchors = tables["tracks"], tables["clocks"], trace.anchors
    rows, readings = list(clocks.rows()), [row | {"ts": row["ts"] + delta} for row in anchors.rows()]
    clock_of, has_clock = tracks.values("clock_id").copy(), tracks.valid("clock_id").copy()
    extents = _extents(trace)
    for name, place in places.items():
        domain = domains.get(name)
        if domain is None or not len(domain.tracks) or place is _HERE:
            continue
        lane = int(domain.tracks[0])
        old = int(clock_of[lane]) if has_clock[lane] else -1
        number = len(rows)
        row = rows[old] if old >= 0 else _new_clock(clocks.spec, name)
        shown = [reading for reading in anchors.rows() if reading["clock_id"] == old]
        anchored = bool(shown)
        if not shown:
            row = row | {"frequency_num": row["frequency_num"] or _NS, "frequency_den": row["frequency_den"] or 1}
            ticks = _a_reading(trace, lane)
            first, last = int(extents[0][domain.tracks].min()), int(extents[1][domain.tracks].max())
            moments = [ticks] if ticks is not None else [(first, first), (last, last)] if first <= last else []
            shown = [{"ticks": count, "ts": ts, "error_ns": None} for count, ts in moments]
        rows.append(row | {"id": number})
        for reading in shown:
            stated = reading["error_ns"]
            error = place.error
            if not place.is_moved and stated is not None and error is not None:
                error = min(error, stated)
            moved = (axes[name] if anchored else place).to_reference(np.array([reading["ts"]], np.int64))
            ts = int(moved[0]) + delta
            readings.append({"clock_id": number, "ticks": reading["ticks"], "ts": ts, "error_ns": error})
        clock_of[domain.tracks], has_clock[domain.tracks] = number, True
    for at, reading in enumerate(readings):
        reading["id"] = at
    columns = {each: tracks.column(each) for each in tracks.spec.names}
    columns["clock_id"] = Column.array(clock_of, valid=None if has_clock.all() else has_clock)
    return {
        "tracks": Table(tracks.spec, columns),
        "clocks": _table(clocks.spec, rows),
        "anchors": _table(anchors.spec, readings),
    }


def _new_clock(spec: TableSpec, name: str) -> dict[str, object]:
    return dict.fromkeys(spec.names) | {"name": "placed clock", "device": name}


def _a_reading(trace: Trace, lane: int) -> tuple[int, int] | None:
    """Return a reading of the counter of a lane, and the time of it; None where its rows have none."""
    slices = trace.slices
    rows = np.flatnonzero((slices.values("track_id") == lane) & slices.valid("ts_ticks"))[:1]
    return (int(slices.values("ts_ticks")[rows[0]]), int(slices.values("ts")[rows[0]])) if len(rows) else None


def _table(spec: TableSpec, rows: list[dict[str, object]]) -> Table:
    return Table.from_arrays(spec, {name: [row[name] for row in rows] for name in spec.names})


def _named(trace: Trace, tracks: Table, domains: Mapping[str, TimeDomain], places: Mapping[str, Place]) -> Table:
    """Return the tracks with the error of each placed clock behind the names of the topmost groups of its lanes."""
    parents = np.where(tracks.valid("parent_id"), tracks.values("parent_id"), -1)
    names = tracks.values("name").copy()
    owner = np.full(len(tracks), -1, np.int64)
    for number, domain in enumerate(domains.values()):
        owner[domain.tracks] = number
    pure = _below(parents, owner)
    for number, name in enumerate(domains):
        place = places.get(name, _HERE)
        if place is _HERE:
            continue
        error = "unknown error" if place.error is None else f"±{place.error:,} {trace.time.time_unit}"
        told = f" ({'placed, ' if place.is_moved else ''}{error})"
        for track, owners in pure.items():
            above = int(parents[track])
            if owners == {number} and (above < 0 or pure[above] != {number}):
                names[track] = without_place(str(names[track])) + told
    for track in np.flatnonzero(parents < 0).tolist():
        names[track] = _AXIS.sub("", str(names[track]))
    return Table(tracks.spec, {each: tracks.column(each) for each in tracks.spec.names} | {"name": Column.array(names)})
