"""LS3xx: clocks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from lanescope.analysis.check.common_rules.stat_findings import reports
from lanescope.analysis.check.model import CheckContext
from lanescope.common.distinct import distinct
from lanescope.common.intervals import (
    Intervals,
    Ints,
    bounds,
    covered_length,
    falls_in,
    group_starts,
    highest_before,
    order,
)
from lanescope.families.rules import Rule, Violation
from lanescope.trace import Flag

#: Above this share of a device's busy time, slices that are not exact are a finding.
GUESSED_SHARE = 0.5
#: From this share of a lane's busy time on, slices below the resolution make its totals doubtful.
DOUBTFUL_SHARE = 0.1
#: Share of the busy time of all lanes below which the totals of a trace do not depend on slices.
_NEGLIGIBLE_SHARE = 0.001


def _backward(subject: CheckContext) -> Iterator[Violation]:
    """Ends before starts, and timestamps that fall while the counter of the lane rises."""
    negative = subject.rows_with_flag("slices", Flag.NEGATIVE_DURATION)
    yield from subject.violations("slices", negative, lambda _: "end timestamp before start timestamp")
    for table in ("slices", "instants"):
        yield from subject.violations(
            table, _falling(subject, table), lambda _: "timestamp falls while the counter rises"
        )


def _falling(subject: CheckContext, table: str) -> Ints:
    """Return the ids of rows that come after another of their lane by ticks, and before it by time."""
    rows = subject.trace.tables()[table]
    known = rows.column("ts_ticks").valid
    if not len(rows) or (known is not None and not known.any()):
        return np.empty(0, np.int64)
    sort = subject.order if table == "slices" else order(rows.values("track_id"), rows.values("ts"))
    if known is not None and not known.all():
        sort = sort[known[sort]]
    # A valid lane that is sorted by time is sorted by ticks too, except within one nanosecond.
    if not falls_in(rows.values("track_id"), rows.column("ts_ticks").pieces(), sort):
        return np.empty(0, np.int64)
    lane, ticks = rows.values("track_id")[sort], rows.values("ts_ticks")[sort]
    falls = ~group_starts(lane)
    falls[1:] &= ticks[1:] < ticks[:-1]
    sort = sort[np.isin(lane, distinct(lane[falls]))]
    lane, ticks, ts = rows.values("track_id")[sort], rows.values("ts_ticks")[sort], rows.values("ts")[sort]
    by_ticks = np.lexsort((ts, ticks, lane))
    latest, first = highest_before(lane[by_ticks], ts[by_ticks])
    return np.sort(sort[by_ticks[~first & (ts[by_ticks] < latest)]])


def _ambiguous(subject: CheckContext) -> Iterator[Violation]:
    for table in ("slices", "instants"):
        yield from subject.violations(table, subject.rows_with_flag(table, Flag.WRAP_AMBIGUOUS))


def _below_resolution(subject: CheckContext) -> Iterator[Violation]:
    """Short slices of each clock, located at the lane with their largest share."""
    rows = subject.rows_with_flag("slices", Flag.BELOW_RESOLUTION)
    if not len(rows):
        return
    track, begin, end = subject.extents.take(rows)
    lanes = distinct(track)
    lane = np.searchsorted(lanes, track)
    counts = np.bincount(lane, minlength=len(lanes))
    short = covered_length(Intervals(lane, begin, end), len(lanes))
    is_known = (lanes >= 0) & (lanes < len(subject.covered))
    busy = np.zeros(len(lanes), np.int64)
    busy[is_known] = subject.covered[lanes[is_known]]
    share = np.divide(short, busy, out=np.zeros(len(lanes)), where=busy > 0)
    clock = np.array([_clock(subject, one) for one in lanes.tolist()], np.int64)
    # One after the other: of a long capture these are columns of millions of rows, on disk where the memory is limited.
    clocks = distinct(clock)
    of_clock = np.searchsorted(clocks, clock)[lane]
    longest = np.zeros(len(clocks), np.int64)
    np.maximum.at(longest, of_clock, end - begin)
    by_clock = np.argsort(of_clock, kind="stable")  # as they stand in the table: rows here and there take long on disk
    worst_first = np.lexsort((-counts, -share, clock))
    row_edges = [0, *np.cumsum(np.bincount(of_clock, minlength=len(clocks))).tolist()]
    lane_edges = bounds(clock[worst_first])
    hits = []
    for number, (first_lane, last_lane) in enumerate(pairwise(lane_edges)):
        mine, worst = by_clock[slice(*row_edges[number : number + 2])], int(worst_first[first_lane])
        of_all = short[worst_first[first_lane:last_lane]].sum() / max(int(subject.covered.sum()), 1)
        detail = f"longest: {longest[number]:,} {subject.trace.time.time_unit}"
        if (many := last_lane - first_lane) > 1:
            which = int(clock[worst])
            name = f" of {subject.trace.clocks.values('name')[which]}" if which >= 0 else ""
            detail += (
                f"; {many:,} lanes{name}, worst lane: {counts[worst]:,} short, {share[worst]:.2%} of its busy time"
            )
        hit = Violation(
            detail=detail,
            rows=rows[mine],
            severity="warning" if share[worst] >= DOUBTFUL_SHARE and of_all >= _NEGLIGIBLE_SHARE else None,
            track_id=int(lanes[worst]),
            ts=int(begin[lane == worst].min()),
        )
        hits.append((worst, hit))
    yield from (hit for _, hit in sorted(hits, key=lambda one: one[0]))


def _clock(subject: CheckContext, track: int) -> int:
    """Return the clock of a track, or of the nearest group above it that has one.

    Without any it is a negative number, the same for all tracks of a device.
    """
    if not 0 <= track < len(subject.tree):
        return -1
    tracks, clocks = subject.trace.tracks, len(subject.trace.clocks)
    has_clock = tracks.valid("clock_id")
    chain = subject.tree.ancestors(track)
    for step in reversed(chain):
        if has_clock[step] and 0 <= tracks.values("clock_id")[step] < clocks:
            return int(tracks.values("clock_id")[step])
    return -2 - chain[0]


def _suspect(subject: CheckContext) -> Iterator[Violation]:
    for table in ("slices", "instants"):
        yield from subject.violations(table, subject.rows_with_flag(table, Flag.CLOCK_SUSPECT))
    anchors = subject.trace.anchors
    if len(anchors):
        sort = np.lexsort((anchors.values("ts"), anchors.values("ticks"), anchors.values("clock_id")))
        clock, ts = anchors.values("clock_id")[sort], anchors.values("ts")[sort]
        latest, first = highest_before(clock, ts)
        wrong = sort[~first & (ts < latest)]
        for which in sorted(set(anchors.values("clock_id")[wrong].tolist())):
            mine = np.sort(wrong[anchors.values("clock_id")[wrong] == which])
            names = subject.trace.clocks.values("name")
            name = names[which] if 0 <= which < len(names) else f"clock {which}"
            detail = f"anchors of {name} run backwards"
            yield Violation(detail=detail, table="anchors", rows=mine, ts=int(anchors.values("ts")[mine].min()))


def _assumed(subject: CheckContext) -> Iterator[Violation]:
    """Stats about times; devices of inputs without such stats most of whose busy time is not of exact slices."""
    told = list(reports("LS305")(subject))
    yield from told
    if any(hit.input_id is None for hit in told):
        return
    inputs = [hit.input_id for hit in told if hit.input_id is not None]
    guessed = np.minimum(subject.guessed, subject.covered)
    roles = subject.trace.tracks.values("role")
    lanes = np.flatnonzero((subject.covered > 0) & (roles != "host_thread"))
    if not guessed[lanes].any():
        return
    tops = np.array([subject.tree.ancestors(lane)[0] for lane in lanes.tolist()])
    tracks = subject.trace.tracks
    is_told = tracks.valid("input_id")[tops] & np.isin(tracks.values("input_id")[tops], inputs)
    lanes, tops = lanes[~is_told], tops[~is_told]
    devices = np.where(roles[tops] == "device", tops, -1)
    for device in distinct(devices).tolist():
        mine = lanes[devices == device]
        share = int(guessed[mine].sum()) / int(subject.covered[mine].sum())
        if share > GUESSED_SHARE:
            rows = mine[guessed[mine] > 0]
            where = f"{len(mine)} {'lane' if len(mine) == 1 else 'lanes'}"
            yield Violation(
                detail=f"estimated or inferred slices: {share:.1%} of the busy time of {where}",
                table="tracks",
                rows=rows,
                track_id=device if device >= 0 else int(rows[0]),
            )


RULES = (
    Rule(
        "LS301",
        "clock reversal",
        "warning",
        "The end timestamp of a slice precedes its start timestamp, or the timestamps of a lane fall while its counter "
        "rises. The counter was reset or stepped, or start and end were read from different clocks.",
        "Exclude these slices: their durations are unknown. Look for a counter reset, for work that moved between "
        "cores, and for a counter with fewer bits than assumed.",
        _backward,
    ),
    Rule(
        "LS302",
        "ambiguous counter wraps",
        "warning",
        "The number of counter wraps between these rows and adjacent rows is not certain. Their timestamps may be off "
        "by a multiple of the wrap period.",
        "Use order and durations within the lane, but not its offset from other lanes. Record an anchor or shorter "
        "runs.",
        _ambiguous,
    ),
    Rule(
        "LS303",
        "slices shorter than twice the clock resolution",
        "notice",
        "These slices are shorter than twice the resolution of their clock, so each may be half or twice as long as "
        "shown. There is one finding per clock, located at the lane with their largest share of busy time. It is a "
        "warning if that share is 10% or more, and they take 0.1% of the busy time of all lanes or more.",
        "Use counts and totals of many slices, not single durations. Use a clock with a finer resolution if the device "
        "has one.",
        _below_resolution,
    ),
    Rule(
        "LS304",
        "inconsistent clock",
        "warning",
        "The clock of these rows contradicts its anchors or adjacent rows, or the anchors contradict each other.",
        "Do not compare timestamps across lanes of this clock. Record again with anchors before and after the run.",
        _suspect,
    ),
    Rule(
        "LS305",
        "timestamps based on an assumption",
        "notice",
        "The capture does not determine these timestamps: a clock has no anchor, an estimated rate or a contradiction "
        "that was resolved by a convention. The severity follows the stat, one step higher if more than 5% of the "
        "events are concerned. Or slices of quality `estimated` or `inferred` are most of the busy time of a device.",
        "Do not compare these timestamps with those of other lanes. Read the description of the stat for the option or "
        "the recording that replaces the assumption by a measurement.",
        _assumed,
    ),
)
