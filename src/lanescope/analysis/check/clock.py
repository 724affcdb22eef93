"""LS3xx: clocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from lanescope.analysis.check.model import Hit, Rule, Subject
from lanescope.analysis.intervals import Ints, firsts, highest_before, order, union
from lanescope.trace import Flag

#: From this share of a lane's busy time on, slices below the resolution make its totals doubtful.
DOUBTFUL_SHARE = 0.1


def _backward(subject: Subject) -> Iterator[Hit]:
    """Ends that precede their begins, and times that fall while the lane's counter rises."""
    negative = subject.flagged("slices", Flag.NEGATIVE)
    yield from subject.hits("slices", negative, lambda _: "the recorded end precedes the recorded begin")
    for table in ("slices", "instants"):
        yield from subject.hits(table, _falling(subject, table), lambda _: "its time falls while its counter rises")


def _falling(subject: Subject, table: str) -> Ints:
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
    falls = ~firsts(lane)
    falls[1:] &= ticks[1:] < ticks[:-1]
    if not falls.any():
        return np.empty(0, np.int64)
    sort = sort[np.isin(lane, np.unique(lane[falls]))]
    lane, ticks, ts = rows.values("track_id")[sort], rows.values("ts_ticks")[sort], rows.values("ts")[sort]
    by_ticks = np.lexsort((ts, ticks, lane))
    latest, first = highest_before(lane[by_ticks], ts[by_ticks])
    return np.sort(sort[by_ticks[~first & (ts[by_ticks] < latest)]])


def _ambiguous(subject: Subject) -> Iterator[Hit]:
    for table in ("slices", "instants"):
        yield from subject.hits(table, subject.flagged(table, Flag.EPOCH_AMBIGUOUS))


def _below_resolution(subject: Subject) -> Iterator[Hit]:
    _, begin, end = subject.extents

    def detail(ids: Ints) -> str:
        return f"none longer than {int((end[ids] - begin[ids]).max())} {subject.trace.time.time_unit}"

    for hit in subject.hits("slices", subject.flagged("slices", Flag.BELOW_RESOLUTION), detail):
        short = union(subject.extents.take(hit.rows))
        lane = subject.covered[hit.track_id] if hit.track_id in range(len(subject.covered)) else 0
        doubtful = lane and int((short.end - short.begin).sum()) >= DOUBTFUL_SHARE * lane
        yield replace(hit, severity="warning") if doubtful else hit


def _suspect(subject: Subject) -> Iterator[Hit]:
    for table in ("slices", "instants"):
        yield from subject.hits(table, subject.flagged(table, Flag.CLOCK_SUSPECT))
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
            yield Hit(detail=f"anchors of {name} run backwards", table="anchors", rows=mine)


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
        "These slices are shorter than two steps of their clock, so each may be twice as long as shown, or half. A "
        "warning where they make up a tenth or more of their lane's busy time.",
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
