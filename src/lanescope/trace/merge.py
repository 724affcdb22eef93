"""Merge of several traces into one timeline: join ids and texts, shift times by the clocks of the traces."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class, replace
from lanescope.errors import MergeError
from lanescope.trace.merge_tables import (
    UNALIGNED,
    contained,
    distinct_runs,
    doubted,
    grouped,
    is_merged,
    joined,
    moved,
    on_axis,
    placed_by_clock,
    put_inside,
    record_maker,
    with_placement_error,
)
from lanescope.trace.table import Table
from lanescope.trace.trace import EPOCH_KINDS, Records, TimeBase, Trace

_NS = 1_000_000_000
_INT64_MAX = (1 << 63) - 1
#: A counter that wraps sooner may have wrapped between two captures any number of times, so it places nothing.
_LEAST_PERIOD_S = 365 * 24 * 3600
#: A counter that wraps sooner than this places not even by assumption.
_LEAST_ASSUMED_S = 1
#: Assumed only to judge how soon a counter of unknown frequency wraps.
_FAST_HZ = 1_000_000_000


@frozen_class
class TimelineShift:
    """Position of one trace on the common timeline.

    Attributes:
        shift: added to all its times, in the common time unit; >= 0, and 0 for the trace that begins first.
        clock: the clock that it shares with a trace that was placed before; empty for the first.
        error_ns: bound of the error of its times against those of the first trace, as far as that comes from placing
            them on the shared clock; None if it is not stated.
        wrap_period: 0 where ``shift`` is certain within that error. Else the wrap period, in the common time unit, of
            the narrow counter that is all it rests on: the nearest place was taken, and the true one may be any number
            of periods away.
        axis: number of the time axis; above 0 for traces that share no clock with the first one and lie beside it.
    """

    shift: int
    clock: str = ""
    error_ns: int | None = 0
    wrap_period: int = 0
    axis: int = 0


@frozen_class
class Inside:
    """Position of a trace by what of another one contains it, for traces that share no clock.

    Attributes:
        outer: number of the trace that contains it.
        link: where it lies as seen from that.
        track: lane of ``outer`` behind which its tracks are put.
        name: what its group is called.
        causes: slices of ``outer``, int64 [n]: those around each launch.
        effects: slices of the trace itself, int64 [n]: the first of each launch.
    """

    outer: int
    link: TimelineShift
    track: int
    name: str
    causes: npt.NDArray[np.int64]
    effects: npt.NDArray[np.int64]


@frozen_class
class _Clock:
    """Identity of a counter: equal for two traces that read the same one."""

    name: str
    device: str
    frequency: Fraction | None
    bits: int | None


@frozen_class
class _Reading:
    """The clock showed ``ticks`` at the trace's time ``ts``.

    ``lanes_ns`` is how far the lanes of the trace may be off against that: of an epoch, which is exact by definition,
    while lanes are placed on it by readings of their own clocks.
    """

    ticks: int
    ts: int
    error_ns: int | None
    lanes_ns: int | None = 0


def merge(traces: Sequence[Trace], *, side_by_side: bool = False, inside: Mapping[int, Inside] | None = None) -> Trace:
    """Return one trace that holds all ``traces``, the tracks of each in a group of its own.

    Ids count on from trace to trace; texts are united; raw records stay reachable. Merging merged traces again gives
    what merging all at once would have given, apart from names of groups. Groups that a clock placed with an error are
    named after both, and the stats ``placement_error`` and ``unknown_placement`` hold it. Slices and instants whose
    place is assumed (``TimelineShift.wrap_period``) have the flag ``WRAP_AMBIGUOUS``. Groups on several time axes are
    named after theirs, and all captures but those on the first one are counted by the stat ``unaligned_capture``.

    Args:
        traces: one or more; one comes back as it is.
        side_by_side: see ``align``.
        inside: see ``align``. Groups of those that are placed so come behind the lane that contains them, with arrows
            from what contains them, and the stat ``kernel_placed_capture`` counts them.

    Raises:
        MergeError: see ``align``.
    """
    if len(traces) == 1:
        return traces[0]
    placements = align(traces, side_by_side=side_by_side, inside=inside)
    # Where clocks joined both traces with others, they say where the one lies.
    within = {
        at: place
        for at, place in (inside or {}).items()
        if placements[at].shift - placements[place.outer].shift == place.link.shift
    }
    parts = [trace if is_merged(trace) else grouped(trace) for trace in traces]
    parts = [contained(part, within[at].name) if at in within else part for at, part in enumerate(parts)]
    parts = [
        part if at in within or not placement.clock else placed_by_clock(part, placement.clock, placement.error_ns)
        for at, (part, placement) in enumerate(zip(parts, placements, strict=True))
    ]
    parts = [
        with_placement_error(part, None if place.wrap_period else place.error_ns)
        for part, place in zip(parts, placements, strict=True)
    ]
    if any(placement.axis for placement in placements):
        parts = [on_axis(part, placement.axis) for part, placement in zip(parts, placements, strict=True)]
    names = list(dict.fromkeys(name for part in parts for name in part.tables()))
    pieces: dict[str, list[Table]] = {name: [] for name in names}
    offsets = dict.fromkeys(names, 0)
    makers: dict[str, list[Callable[[], Table]]] = {}
    for part, placement in zip(parts, placements, strict=True):
        before = dict(offsets)
        for name, table in part.tables().items():
            shifted = moved(table, before, placement.shift)
            is_doubted = placement.wrap_period and name in ("slices", "instants")
            pieces[name].append(doubted(shifted) if is_doubted else shifted)
            offsets[name] += len(table)
        for name in part.records:
            makers.setdefault(name, []).append(record_maker(part, name, before, placement.shift))
    tables = {name: Table.concat(pieces[name]) for name in names}
    for at, place in within.items():
        starts = [_starts(parts, traces, index) for index in (place.outer, at)]
        tables |= put_inside(tables, starts[0], starts[1], place.track, place.causes, place.effects)
    tables["tracks"] = distinct_runs(tables["tracks"])
    details = {name: tables[name] for name in names if tables[name].spec.key}
    return Trace(_time(traces, placements), tables, details, Records({n: joined(m) for n, m in makers.items()}))


def _starts(parts: Sequence[Trace], traces: Sequence[Trace], index: int) -> dict[str, int]:
    """Return what was added to the ids of a trace's rows, by table, when the parts were put together."""
    names = ("tracks", "slices")
    before = {name: sum(len(part.tables()[name]) for part in parts[:index]) for name in names}
    before["tracks"] += len(parts[index].tracks) - len(traces[index].tracks)
    return before


def align(
    traces: Sequence[Trace], *, side_by_side: bool = False, inside: Mapping[int, Inside] | None = None
) -> list[TimelineShift]:
    """Find the position of each trace on a common timeline.

    Two traces share a clock when both count from the same epoch (the Unix epoch; a host's monotonic clock; the zero of
    the only counter of a device), or when both have anchors on a clock of the same name, device, width and frequency.
    Traces that share none may still be joined over others. Of a clock with many anchors the two readings that lie
    closest to each other are used. Nothing in a trace can tell whether a device was reset between two captures.

    A counter of a named device that wraps too soon to be one clock of both (32 bits of nanoseconds: every 4.29 s) is
    the last resort, for traces whose times count on nothing else: each is taken to lie within half a period of the one
    that was placed on that counter before it, and its ``TimelineShift`` states the period.

    Args:
        traces: one or more.
        side_by_side: traces without a path of clocks to those before them begin a time axis of their own, at 0.
        inside: by the number of a trace, where another one contains it: that says more of the two than their clocks.

    Raises:
        MergeError: no traces, different time units, the same capture twice, no path of clocks from one to another, or
            one that was merged side by side before.
    """
    if not traces:
        raise MergeError("no captures given", hint="pass at least one capture")
    _refuse_mixed_units(traces)
    _reject_duplicates(traces)
    _reject_several_axes(traces)
    within = inside or {}
    clocks, narrow = [_readings(trace) for trace in traces], [_narrow(trace) for trace in traces]
    found: dict[int, TimelineShift] = {0: TimelineShift(0)}
    queue = deque([0])
    latest: dict[_Clock, int] = {}  # on each narrow counter, the trace that was placed last
    while queue:
        known = queue.popleft()
        latest.update(dict.fromkeys(narrow[known], known))
        for other in range(len(traces)):
            if other in found:
                continue
            link = _containing(within, known, other)
            link = link or _link(clocks[known], clocks[other], traces[known].time.time_unit)
            if link is not None:
                found[other] = _beyond(found[known], link)
                queue.append(other)
        if not queue:
            missing = (index for index in range(len(traces)) if index not in found)
            assumed = next(((index, clock) for index in missing for clock in narrow[index] if clock in latest), None)
            if assumed is not None:
                other, clock = assumed
                start = latest[clock]
                link = _nearest(clock, narrow[start][clock], narrow[other][clock], traces[other].time.time_unit)
                found[other] = _beyond(found[start], link)
                queue.append(other)
        if not queue and side_by_side and len(found) < len(traces):
            begun = next(index for index in range(len(traces)) if index not in found)
            found[begun] = TimelineShift(0, axis=1 + max(placement.axis for placement in found.values()))
            queue.append(begun)
    for index, trace in enumerate(traces):
        if index not in found:
            raise MergeError(
                f"cannot merge: {name_of(traces[0])} ({_counts_from(traces[0])}) and"
                f" {name_of(trace)} ({_counts_from(trace)}) have no common clock",
                hint="use --side-by-side for a time axis each, or record both with anchors on one clock",
                lacks="clock",
                traces=(0, index),
            )
    earliest: dict[int, int] = {}
    for placement in found.values():
        earliest[placement.axis] = min(placement.shift, earliest.get(placement.axis, placement.shift))
    placed = [replace(at, shift=at.shift - earliest[at.axis]) for at in (found[index] for index in range(len(traces)))]
    for trace, placement in zip(traces, placed, strict=True):
        if placement.shift > _INT64_MAX - _latest(trace):
            days = placement.shift / _NS / 86400
            raise MergeError(
                f"cannot merge: {name_of(trace)} starts {days:.0f} days after the first capture",
                hint="check the clocks or convert each capture separately",
            )
    return placed


# --- clocks -------------------------------------------------------------------------------------------------------


def _refuse_mixed_units(traces: Sequence[Trace]) -> None:
    by_unit = {trace.time.time_unit: trace for trace in reversed(traces)}
    if len(by_unit) > 1:
        raise MergeError(
            f"cannot merge: {name_of(by_unit['cycles'])} is in cycles, {name_of(by_unit['ns'])} in nanoseconds",
            hint=f"pass the clock frequency of {name_of(by_unit['cycles'])} with --frequency",
            lacks="frequency",
            traces=tuple(index for index, trace in enumerate(traces) if trace.time.time_unit == "cycles"),
        )


def _reject_duplicates(traces: Sequence[Trace]) -> None:
    seen: dict[str, str] = {}
    for trace in traces:
        for row in trace.inputs.rows():
            if row["role"] != "main":
                continue  # captures may share a file of names
            if row["sha256"] in seen:
                raise MergeError(
                    f"cannot merge: {row['path']} and {seen[row['sha256']]} are the same capture",
                    hint="pass each capture once",
                )
            seen[row["sha256"]] = row["path"]


def _reject_several_axes(traces: Sequence[Trace]) -> None:
    for trace in traces:
        if len(traces) > 1 and UNALIGNED in trace.stats.values("name").tolist():
            raise MergeError(
                f"cannot merge: {name_of(trace)} has several time axes", hint="pass the captures themselves"
            )


def _readings(trace: Trace) -> dict[_Clock, list[_Reading]]:
    """Return the readings of the clocks that could place a trace, its epoch's first."""
    time = trace.time
    rows = list(trace.clocks.rows())
    found: dict[_Clock, list[_Reading]] = {}
    if time.epoch_kind in ("unix", "host_monotonic"):
        # Hosts are told apart where the producer names them.
        host = next((row["device"] for row in rows if row["name"] == time.epoch_kind), "")
        clock = _Clock(time.epoch_kind, "" if time.epoch_kind == "unix" else _host(host), Fraction(_NS), None)
        found[clock] = [_Reading(time.epoch_ns, 0, 0, _lanes_error(trace))]
    identities = [_identity(row) for row in rows]
    if time.epoch_kind == "device" and len(identities) == 1 and identities[0].device:
        found[identities[0]] = [_Reading(0, -time.epoch_ns, 0)]
    for row in trace.anchors.rows():
        clock = identities[row["clock_id"]]
        # A clock has to have an owner, except the Unix time.
        if (
            (clock.device or clock.name == "unix")
            and (clock.frequency or time.time_unit == "cycles")
            and _is_unwrapped(clock)
        ):
            # A clock read against the epoch's own is not nearer to the lanes than the epoch is.
            lanes = found[clock][0].lanes_ns if clock in found else 0
            found.setdefault(clock, []).append(_Reading(row["ticks"], row["ts"], row["error_ns"], lanes))
    return found


def _lanes_error(trace: Trace) -> int | None:
    """Return how far lanes may be off on the trace's own axis, by their clocks' anchors; None if any does not state it.

    A lane without a clock counts on the axis itself.
    """
    tracks, anchors = trace.tracks, trace.anchors
    used = set(tracks.values("clock_id")[tracks.valid("clock_id") & (tracks.values("kind") == "lane")].tolist())
    used -= {row["id"] for row in trace.clocks.rows() if row["name"] == trace.time.epoch_kind}
    stated = anchors.valid("error_ns")
    errors = [(clock, np.flatnonzero(anchors.values("clock_id") == clock)) for clock in sorted(used)]
    if any(not len(rows) or not stated[rows].all() for _, rows in errors):
        return None
    return max((int(anchors.values("error_ns")[rows].max()) for _, rows in errors), default=0)


def _identity(row: dict[str, Any]) -> _Clock:
    num, den = row["frequency_num"], row["frequency_den"]
    device = _host(row["device"]) if row["name"] == "host_monotonic" else row["device"]
    return _Clock(row["name"], device, Fraction(num, den) if num and den else None, row["counter_bits"])


def _host(name: str) -> str:
    """Return what a host's clock is of: hosts without a name are taken for one, as the user merges them."""
    return name or "host"


def _is_unwrapped(clock: _Clock) -> bool:
    return clock.bits is None or _period_s(clock.bits, clock) >= _LEAST_PERIOD_S


def _period_s(bits: int, clock: _Clock) -> Fraction:
    return (1 << bits) / (clock.frequency or Fraction(_FAST_HZ))


def _narrow(trace: Trace) -> dict[_Clock, _Reading]:
    """Return the latest reading of the narrow counter that all lanes of a trace count on, if it has no other clock."""
    identities = [_identity(row) for row in trace.clocks.rows()]
    is_lane = trace.tracks.values("kind") == "lane"
    if trace.time.epoch_kind != "first_event" or len(set(identities)) != 1:
        return {}
    if not trace.tracks.valid("clock_id")[is_lane].all():
        return {}
    (clock,) = set(identities)
    if not clock.device or clock.bits is None or not (clock.frequency or trace.time.time_unit == "cycles"):
        return {}
    if _is_unwrapped(clock) or _period_s(clock.bits, clock) < _LEAST_ASSUMED_S:
        return {}
    readings = [_Reading(row["ticks"], row["ts"], row["error_ns"]) for row in trace.anchors.rows()]
    return {clock: max(readings, key=lambda reading: reading.ts)} if readings else {}


def _nearest(clock: _Clock, known: _Reading, other: _Reading, time_unit: str) -> TimelineShift:
    """Return where ``other`` lies as seen from ``known`` if less than half a period is between the two readings."""
    assert clock.bits is not None
    period = 1 << clock.bits
    ticks = (other.ticks - known.ticks + period // 2) % period - period // 2
    nearest = _between(clock, known, replace(other, ticks=known.ticks + ticks), time_unit)
    return replace(nearest, wrap_period=_length(period, clock, time_unit))


def _containing(inside: Mapping[int, Inside], known: int, other: int) -> TimelineShift | None:
    """Return where ``other`` lies as seen from ``known`` if one contains the other."""
    if other in inside and inside[other].outer == known:
        return inside[other].link
    if known in inside and inside[known].outer == other:
        return replace(inside[known].link, shift=-inside[known].link.shift)
    return None


def _beyond(start: TimelineShift, link: TimelineShift) -> TimelineShift:
    """Return the placement of a trace that lies by ``link`` as seen from one that lies at ``start``."""
    error = _sum(start.error_ns, link.error_ns)
    return TimelineShift(
        start.shift + link.shift, link.clock, error, max(start.wrap_period, link.wrap_period), start.axis
    )


def _length(ticks: int, clock: _Clock, time_unit: str) -> int:
    return int(ticks if time_unit == "cycles" or clock.frequency is None else ticks * _NS // clock.frequency)


def _link(
    known: dict[_Clock, list[_Reading]], other: dict[_Clock, list[_Reading]], time_unit: str
) -> TimelineShift | None:
    """Return where ``other`` lies as seen from ``known``, by the shared clock with the smallest stated error."""
    pairs = [(clock, *_closest(readings, other[clock])) for clock, readings in known.items() if clock in other]
    if not pairs:
        return None

    def error(link: tuple[_Clock, _Reading, _Reading]) -> tuple[bool, int]:
        found = _sum(link[1].error_ns, link[2].error_ns)
        return found is None, found or 0

    clock, a, b = min(pairs, key=error)
    return _between(clock, a, b, time_unit)


def _between(clock: _Clock, a: _Reading, b: _Reading, time_unit: str) -> TimelineShift:
    """Return where the trace of reading ``b`` lies as seen from that of ``a``, both of one clock."""
    distance = _length(b.ticks - a.ticks, clock, time_unit)
    name = f"{clock.name} of {clock.device}".removesuffix(" of ")
    return TimelineShift(a.ts + distance - b.ts, name, _sum(a.error_ns, b.error_ns, a.lanes_ns, b.lanes_ns))


def _sum(*errors: int | None) -> int | None:
    """Return the sum of errors, None if one is not known."""
    known = [error for error in errors if error is not None]
    return sum(known) if len(known) == len(errors) else None


def _closest(known: list[_Reading], other: list[_Reading]) -> tuple[_Reading, _Reading]:
    """Return the two readings whose ticks differ least; O((m + n) log(m + n))."""
    tagged = sorted([(r.ticks, 0, i) for i, r in enumerate(known)] + [(r.ticks, 1, i) for i, r in enumerate(other)])
    best: tuple[int, int, int] | None = None
    latest: list[tuple[int, int] | None] = [None, None]
    for ticks, side, index in tagged:
        facing = latest[1 - side]
        if facing is not None and (best is None or ticks - facing[0] < best[0]):
            pair = (facing[1], index) if side else (index, facing[1])
            best = (ticks - facing[0], *pair)
        latest[side] = (ticks, index)
    assert best is not None
    return known[best[1]], other[best[2]]


def _time(traces: Sequence[Trace], placements: Sequence[TimelineShift]) -> TimeBase:
    """Return the common time base, on the clock that says most."""
    at, placement = min(
        zip((trace.time for trace in traces), placements, strict=True),
        key=lambda pair: (EPOCH_KINDS.index(pair[0].epoch_kind), pair[1].shift),
    )
    if any(one.axis for one in placements):
        return TimeBase(epoch_kind="first_event", time_unit=at.time_unit)
    return replace(at, epoch_ns=at.epoch_ns - placement.shift)


def _latest(trace: Trace) -> int:
    return max(
        (
            int(table.values(spec.name).max())
            for table in trace.tables().values()
            if len(table)
            for spec in table.spec.columns
            if spec.is_time
        ),
        default=0,
    )


def name_of(trace: Trace) -> str:
    """Return what messages call a trace: the path of its main file."""
    return next((row["path"] for row in trace.inputs.rows() if row["role"] == "main"), "a trace without inputs")


def _counts_from(trace: Trace) -> str:
    return {
        "unix": "counts from the Unix epoch",
        "host_monotonic": "counts on a host's monotonic clock",
        "device": "counts on its device's own clock",
        "first_event": "counts from its first event",
    }[trace.time.epoch_kind]
