"""LS1xx: consistency of a single lane."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from lanescope.analysis.check.common_rules.stat_findings import reports
from lanescope.analysis.check.model import CheckContext
from lanescope.analysis.lane_time import end_or_last_known
from lanescope.analysis.track_tree import Tree
from lanescope.common.distinct import distinct
from lanescope.common.intervals import (
    INT64_MAX,
    Intervals,
    Ints,
    bounds,
    clash,
    hulls,
    last_before,
    order,
    overlapping,
    partially_overlapping,
)
from lanescope.families.rules import Rule, Violation
from lanescope.trace import Flag, Table
from lanescope.trace.column import Mask


def _discipline(subject: CheckContext) -> Iterator[Violation]:
    """Overlapping slices of disjoint lanes, partially overlapping slices of nested lanes."""
    promises = np.where(subject.disciplines["disjoint"], np.uint8(1), np.uint8(0))
    promises[subject.disciplines["nested"]] = 2
    if not clash(subject.extents, subject.order, promises):
        return
    extents = subject.extents.take(subject.order)
    group = extents.group
    filled = (extents.end > extents.begin) & (group >= 0) & (group < len(subject.tree))
    for nesting, find in (("disjoint", overlapping), ("nested", partially_overlapping)):
        mine = filled.copy()
        mine[filled] = subject.disciplines[nesting][group[filled]]
        rows = np.flatnonzero(mine)
        if not len(rows):
            continue
        describe = partial(_describe_overlap, subject, nesting)
        found = subject.order[rows[find(extents.take(rows))]]
        # What overlaps only slices with a suspect clock repeats the finding of another rule.
        suspect = subject.rows_with_flag("slices", Flag.CLOCK_SUSPECT) if len(found) else found
        if len(suspect):
            rows = rows[~np.isin(subject.order[rows], suspect)]
            sound = np.isin(found, subject.order[rows[find(extents.take(rows))]])
            for violation in subject.violations("slices", found[~sound], describe):
                yield replace(violation, severity="notice", detail=f"{violation.detail}, caused by a suspect clock")
            found = found[sound]
        yield from subject.violations("slices", found, describe)


def _describe_overlap(subject: CheckContext, nesting: str, ids: Ints) -> str:
    """Describe the overlap of the first slice in evidence with the first slice that it overlaps."""
    _, begin, end = subject.extents.take(ids)
    clashes = begin < end[0]
    if nesting == "nested":
        clashes &= (begin > begin[0]) & (end > end[0])
    clashes[0] = False
    other = int(np.argmax(clashes))
    early = int(end[0] - begin[other])
    first, second = subject.name(int(ids[0])), subject.name(int(ids[other]))
    return f"{second} starts {early} {subject.trace.time.time_unit} before {first} ends"


def _durations(subject: CheckContext) -> Iterator[Violation]:
    """Impossible durations of slices, gaps and coverage."""
    slices = subject.trace.slices
    ts, dur, closed = slices.values("ts"), slices.values("dur"), slices.valid("dur")
    least, longest = int(dur.min(initial=0)), int(dur.max(initial=0))
    least = min(least, *(int(ticks.min(initial=0)) for ticks in slices.column("dur_ticks").pieces()))
    nothing: Mask = np.broadcast_to(np.False_, (len(slices),))
    # Most traces show by a few extremes that there is nothing to find.
    negative: Mask = nothing
    beyond: Mask = nothing
    unseen: Mask = nothing
    longer: Mask = nothing
    if least < 0:
        negative = (closed & (dur < 0)) | (slices.valid("dur_ticks") & (slices.values("dur_ticks") < 0))
    if int(ts.max(initial=0)) + longest > INT64_MAX:
        beyond = closed & (dur > INT64_MAX - np.maximum(ts, 0))
    if not closed.all():
        unseen = ~closed & slices.valid("last_known_ts") & (slices.values("last_known_ts") < ts)
    if longest > _least_recorded(subject):
        longer = closed & (dur > _recorded(subject))
    words = {
        "with negative duration": negative,
        "ending beyond 63 bits": beyond,
        "last known before start": unseen,
        "longer than the lane was recorded": longer & ~beyond,
    }

    def detail(ids: Ints) -> str:
        found = {word: int(np.count_nonzero(mask[ids])) for word, mask in words.items()}
        return ", ".join(f"{count} {word}" for word, count in found.items() if count)

    yield from subject.violations("slices", np.flatnonzero(negative | beyond | unseen | longer), detail)
    for table in ("gaps", "coverage"):
        rows = subject.trace.tables()[table]
        wrong = np.flatnonzero(rows.valid("dur") & (rows.values("dur") < 0))
        yield from subject.violations(table, wrong, lambda ids: f"{len(ids)} with negative duration")


def _recorded(subject: CheckContext) -> Ints:
    """Return the recorded time span of the lane of each slice, int64 [n]; the maximum where it is unknown."""
    slices, coverage = subject.trace.slices, subject.trace.coverage
    if not len(coverage):
        return np.broadcast_to(np.int64(INT64_MAX), (len(slices),))
    group = slices.values("track_id")
    tracks = len(subject.tree)
    length = np.append(recorded(subject.tree, coverage), INT64_MAX)
    longest: Ints = length[np.where((group >= 0) & (group < tracks), group, tracks)]
    return longest


def _least_recorded(subject: CheckContext) -> int:
    """Return the recorded time span of the lane that was recorded for the shortest time."""
    coverage = subject.trace.coverage
    return int(recorded(subject.tree, coverage).min(initial=INT64_MAX)) if len(coverage) else INT64_MAX


def recorded(tree: Tree, coverage: Table) -> Ints:
    """Return the recorded time span of each track, int64 [tracks]; the maximum where it is unknown."""
    rows, tracks = tree.spread(coverage.values("track_id"))
    first, last = hulls(Intervals(tracks, coverage.values("ts")[rows], end_or_last_known(coverage)[rows]), len(tree))
    return np.where(first <= last, last - np.minimum(first, last), INT64_MAX)


def _unfinished(subject: CheckContext) -> Iterator[Violation]:
    """Unfinished and truncated slices."""
    slices = subject.trace.slices
    is_closed = slices.column("dur").valid is None
    if is_closed and not subject.flags_of["slices"] & (Flag.UNFINISHED | Flag.TRUNCATED):
        return
    flags = slices.values("flags")
    negative = (flags & np.uint32(Flag.NEGATIVE_DURATION)) != 0
    never = (~slices.valid("dur") & ~negative) | ((flags & np.uint32(Flag.UNFINISHED)) != 0)
    cut = ~never & ((flags & np.uint32(Flag.TRUNCATED)) != 0)

    def detail(ids: Ints) -> str:
        counts = {"unfinished": int(np.count_nonzero(never[ids])), "truncated": int(np.count_nonzero(cut[ids]))}
        return ", ".join(
            f"{count} {'slice' if count == 1 else 'slices'} {word}" for word, count in counts.items() if count
        )

    rows = np.flatnonzero(cut)
    at_edge = rows[~_has_gap(subject, rows)]
    cut[at_edge] = False
    yield from _at_edges(subject, at_edge)
    yield from subject.violations("slices", np.flatnonzero(never | cut), detail)


def _has_gap(subject: CheckContext, rows: Ints) -> Mask:
    """Return which slices are on a lane that has gaps, or on no lane at all, bool [n]."""
    _, tracks = subject.tree.spread(subject.trace.gaps.values("track_id"))
    lanes = subject.trace.slices.values("track_id")[rows]
    found: Mask = np.isin(lanes, tracks) | (lanes < 0) | (lanes >= len(subject.tree))
    return found


def _at_edges(subject: CheckContext, rows: Ints) -> Iterator[Violation]:
    """Yield one violation per device for truncated slices of lanes without gaps, located at the earliest slice.

    Only the start or the end of the recording can truncate those: that is one fact, not one per lane.
    """
    slices, roles = subject.trace.slices, subject.trace.tracks.values("role")
    lanes, ts = slices.values("track_id")[rows], slices.values("ts")[rows]
    found, lane = np.unique(lanes, return_inverse=True)
    tops = np.array([subject.tree.ancestors(one)[0] for one in found.tolist()], np.int64)
    devices = np.where(roles[tops] == "device", tops, -1)[lane]
    sort = np.lexsort((rows, lanes, ts, devices))
    for first, last in pairwise(bounds(devices[sort])):
        mine = sort[first:last]
        many = len(distinct(lanes[mine]))
        detail = f"{len(mine)} {'slice' if len(mine) == 1 else 'slices'} truncated by the start or the end of recording"
        yield Violation(
            detail=f"{detail}, {many} lanes" if many > 1 else detail,
            rows=rows[mine],
            track_id=int(lanes[mine[0]]),
            ts=int(ts[mine[0]]),
        )


def _after_gap(subject: CheckContext) -> Iterator[Violation]:
    """First rows after a gap: flagged as such, or first to start at or after the end of a gap."""
    gaps = subject.trace.gaps
    rows, tracks = subject.tree.spread(gaps.values("track_id"))
    of_lane: dict[int, Ints] = {}
    if len(rows):
        sort = order(tracks, gaps.values("ts")[rows])
        lanes = tracks[sort]
        of_lane = {int(lanes[first]): rows[sort[first:last]] for first, last in pairwise(bounds(lanes))}
    for table in ("slices", "instants"):
        found, after = subject.rows_with_flag(table, Flag.AFTER_GAP), _first_after(subject, table)
        if len(after):
            found = distinct(np.concatenate([found, after]))
        for hit in subject.violations(table, found):
            mine = of_lane.get(hit.track_id if hit.track_id is not None else -1)
            yield hit if mine is None else _with_gaps(hit, gaps.take(mine))


def _first_after(subject: CheckContext, table: str) -> Ints:
    """Return the ids of the first row of each lane that starts at or after the end of each of its gaps."""
    rows = subject.trace.tables()[table]
    lanes, ends = _gap_ends(subject)
    if not len(lanes) or not len(rows):
        return np.empty(0, np.int64)
    sort = subject.order if table == "slices" else order(rows.values("track_id"), rows.values("ts"))
    lane, ts = rows.values("track_id")[sort], rows.values("ts")[sort]
    found = []
    for first, last in pairwise(bounds(lanes)):
        begin, end = np.searchsorted(lane, [lanes[first], lanes[first] + 1]).tolist()
        after = begin + np.searchsorted(ts[begin:end], ends[first:last])
        found.append(sort[distinct(after[after < end])])
    return np.concatenate(found)


def _gap_ends(subject: CheckContext) -> tuple[Ints, Ints]:
    """Return lane and end of the gaps that end before the window does, int64 [n] each, by lane.

    A gap of no length ends where it is, unless a longer one covers that. One of unknown length says that its lane did
    not resume: what begins behind its begin contradicts that.
    """
    known, gaps = subject.gaps, subject.trace.gaps
    rows, tracks = subject.tree.spread(gaps.values("track_id"))
    ts = gaps.values("ts")[rows]
    at = last_before(known.group, known.begin, tracks, ts)
    is_apart = at < 0
    is_apart[~is_apart] = known.end[at[~is_apart]] <= ts[~is_apart]
    has_end = gaps.valid("dur")[rows]
    points = np.flatnonzero(is_apart | ~has_end)
    end = ts + (~has_end & (ts < INT64_MAX))
    lanes, ends = np.append(known.group, tracks[points]), np.append(known.end, end[points])
    sort = np.flatnonzero(ends < subject.window[1])
    sort = sort[np.argsort(lanes[sort], kind="stable")]
    return lanes[sort], ends[sort]


def _with_gaps(hit: Violation, gaps: Table) -> Violation:
    """Return the violation with number, causes and losses of the gaps of its lane (by time)."""
    causes = ", ".join(dict.fromkeys(gaps.values("cause").tolist()))
    lost = int(gaps.values("lost_count").sum())
    detail = f"{len(gaps)} {'gap' if len(gaps) == 1 else 'gaps'} ({causes})"
    placed = np.flatnonzero(gaps.valid("input_id"))
    if not len(placed):
        return replace(hit, detail=detail + (f", at least {lost} records lost" if lost else ""))
    row = next(gaps.take(placed[:1]).rows())
    return replace(
        hit,
        detail=detail + (f", at least {lost} records lost" if lost else ""),
        input_id=row["input_id"],
        offset=row["first_offset"],
    )


RULES = (
    Rule(
        "LS101",
        "overlapping slices on a serial lane",
        "warning",
        "Two slices of a disjoint lane overlap, or two slices of a nested lane overlap partially. The lane represents "
        "hardware that executes one thing at a time, so a timestamp or the lane of one of them is wrong. Unfinished "
        "slices extend to their last known time. The finding is a notice if all these overlaps involve a slice whose "
        "clock is suspect.",
        "Compare totals with and without these slices. Look for a wrapped or stepped clock, records of another lane, "
        "and mismatched start and end records.",
        _discipline,
    ),
    Rule(
        "LS102",
        "impossible duration",
        "error",
        "A slice, gap or coverage row has a negative duration, ends beyond 63 bits, or is longer than its lane was "
        "recorded. Or the last known time of a slice precedes its start.",
        "Exclude these rows from totals. Report the producer or decoder bug together with the input.",
        _durations,
    ),
    Rule(
        "LS103",
        "unfinished slices",
        "notice",
        "The end of a slice was not recorded, or a gap or the end of the capture truncated the slice. Its true "
        "duration is unknown. Totals exclude unfinished slices. There is one finding per lane, and one per device for "
        "slices that the start or the end of the recording truncated.",
        "Expect some at the end of a capture. Elsewhere, look for lost records or for work that hangs.",
        _unfinished,
    ),
    Rule(
        "LS104",
        "first events after a gap",
        "notice",
        "The state of a lane during a gap is unknown. The decoder resynchronized at the first event after the gap, so "
        "its timestamp or its identity may be less certain.",
        "Do not treat the gap as idle time. Use a larger trace buffer if you need this interval.",
        _after_gap,
    ),
    Rule(
        "LS105",
        "lanes without an end, or continued after it",
        "warning",
        "The records of a lane, a call or an invocation stop without the end that others have, or continue after their "
        "end. The program may have trapped, hung or exited, the last records may be lost, or the buffer contains "
        "records of several runs. The severity follows the stat.",
        "Treat the time after the last record as unknown. Check that the kernel finished before the buffer was copied, "
        "and clear the buffer before each run.",
        reports("LS105"),
    ),
)
