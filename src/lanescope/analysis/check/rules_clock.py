"""LS3xx: clocks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from lanescope.analysis.check.model import CheckContext
from lanescope.common.intervals import Intervals, Ints, bounds, covered_length, group_starts, highest_before, order
from lanescope.families.rules import Rule, Violation
from lanescope.trace import Flag

#: From this share of a lane's busy time on, slices below the resolution make its totals doubtful.
DOUBTFUL_SHARE = 0.1


def _backward(subject: CheckContext) -> Iterator[Violation]:
    """Ends that precede their begins, and times that fall while the lane's counter rises."""
    negative = subject.rows_with_flag("slices", Flag.NEGATIVE_DURATION)
    yield from subject.violations("slices", negative, lambda _: "the recorded end precedes the recorded begin")
    for table in ("slices", "instants"):
        yield from subject.violations(
            table, _falling(subject, table), lambda _: "its time falls while its counter rises"
        )


def _falling(subject: CheckContext, table: str) -> Ints:
    """Return the ids of rows that come after another of their lane by ticks, and before it by time."""
    rows = subject.trace.tables()[table]
    known = np.flatnonzero(rows.valid("ts_ticks"))
    if not len(known):
        return known
    sort = subject.order if table == "slices" else order(rows.values("track_id"), rows.values("ts"))
    if len(known) < len(rows):
        sort = sort[rows.valid("ts_ticks")[sort]]
    lane, ticks = rows.values("track_id")[sort], rows.values("ts_ticks")[sort]
    # Sorted by time, a sound lane is sorted by ticks too, but for several ticks in one nanosecond.
    falls = ~group_starts(lane)
    falls[1:] &= ticks[1:] < ticks[:-1]
    if not falls.any():
        return np.empty(0, np.int64)
    sort = sort[np.isin(lane, np.unique(lane[falls]))]
    lane, ticks, ts = rows.values("track_id")[sort], rows.values("ts_ticks")[sort], rows.values("ts")[sort]
    by_ticks = np.lexsort((ts, ticks, lane))
    latest, first = highest_before(lane[by_ticks], ts[by_ticks])
    return np.sort(sort[by_ticks[~first & (ts[by_ticks] < latest)]])


def _ambiguous(subject: CheckContext) -> Iterator[Violation]:
    for table in ("slices", "instants"):
        yield from subject.violations(table, subject.rows_with_flag(table, Flag.WRAP_AMBIGUOUS))


def _below_resolution(subject: CheckContext) -> Iterator[Violation]:
    """Short slices by clock, at the lane of which they make up the largest share."""
    rows = subject.rows_with_flag("slices", Flag.BELOW_RESOLUTION)
    if not len(rows):
        return
    track, begin, end = subject.extents.take(rows)
    lanes, lane, counts = np.unique(track, return_inverse=True, return_counts=True)
    short = covered_length(Intervals(lane, begin, end), len(lanes))
    is_known = (lanes >= 0) & (lanes < len(subject.covered))
    busy = np.zeros(len(lanes), np.int64)
    busy[is_known] = subject.covered[lanes[is_known]]
    share = np.divide(short, busy, out=np.zeros(len(lanes)), where=busy > 0)
    clock = np.array([_clock(subject, one) for one in lanes.tolist()], np.int64)
    by_clock = np.lexsort((rows, begin, clock[lane]))
    worst_first = np.lexsort((-counts, -share, clock))
    row_edges, lane_edges = bounds(clock[lane][by_clock]), bounds(clock[worst_first])
    hits = []
    for (first, last), (first_lane, last_lane) in zip(pairwise(row_edges), pairwise(lane_edges), strict=True):
        mine, worst = by_clock[first:last], int(worst_first[first_lane])
        longest = int((end[mine] - begin[mine]).max())
        detail = f"none longer than {longest} {subject.trace.time.time_unit}"
        if (many := last_lane - first_lane) > 1:
            which = int(clock[worst])
            name = f" of {subject.trace.clocks.values('name')[which]}" if which >= 0 else ""
            detail += (
                f"; on {many} lanes{name}, worst here: {counts[worst]}, {share[worst]:.2%} of the lane's busy time"
            )
        hit = Violation(
            detail=detail,
            rows=rows[mine],
            severity="warning" if share[worst] >= DOUBTFUL_SHARE else None,
            track_id=int(lanes[worst]),
            ts=int(begin[mine[lane[mine] == worst][0]]),
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


RULES = (
    Rule(
        "LS301",
        "clock runs backwards",
        "warning",
        "The recorded end of a slice precedes its begin, or the times of a lane fall while the counter that they were "
        "made from rises. The counter was reset or stepped, or begin and end were read on different clocks.",
        "Leave these slices out; their lengths are unknown. Look for a reset, for work that moved between cores, and "
        "for a counter that is narrower than was assumed.",
        _backward,
    ),
    Rule(
        "LS302",
        "ambiguous wraps",
        "warning",
        "A narrow counter may have wrapped once more or once less between these rows and their neighbours: they may "
        "stand a whole wrap away from where they are drawn.",
        "Trust order and lengths within the lane, not its distance from others. Record an anchor, or shorter runs.",
        _ambiguous,
    ),
    Rule(
        "LS303",
        "slices below the clock's resolution",
        "notice",
        "These slices are shorter than two steps of their clock, so each may be twice as long as shown, or half. One "
        "finding for each clock, placed at the lane where they make up the largest share of the busy time; a warning "
        "where that is a tenth or more.",
        "Use their count and their sum over many, not single lengths. Use a finer clock where the device has one.",
        _below_resolution,
    ),
    Rule(
        "LS304",
        "suspect clock",
        "warning",
        "The clock of these rows contradicts its anchors or its neighbours, or the anchors contradict each other.",
        "Compare no times across lanes of this clock. Record it again, with anchors before and after.",
        _suspect,
    ),
)
