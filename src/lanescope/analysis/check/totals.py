"""Bounds of sums over slices: all slices, and those that are not evidence of a finding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lanescope._native import core
from lanescope.analysis.check.kept_rows import KeptInts
from lanescope.analysis.check.model import Finding
from lanescope.analysis.check.streaming import StreamingChecker
from lanescope.analysis.plausibility.suspicion import is_listed
from lanescope.common.intervals import INT64_MAX, Intervals, Ints, known_extents, subtract, union
from lanescope.source.disk_arrays import in_pieces
from lanescope.trace import Table, TableSpec, Trace
from lanescope.trace.column import Mask
from lanescope.trace.schema import SLICES
from lanescope.trace.streams import StreamInfo

_NO_INTS = np.empty(0, np.int64)
#: The columns of a slice that give its lane and time.
_TIMES = TableSpec(
    SLICES.name, SLICES.doc, tuple(SLICES.column(name) for name in ("track_id", "ts", "dur", "last_known_ts"))
)


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over slices.

    Attributes:
        slices: how many, open ones included.
        open: how many have no known end.
        total: sum of the known lengths, in the trace's unit.
        covered: time that slices cover, lane by lane, what several share counted once.
    """

    slices: int
    open: int
    total: int
    covered: int


def totals(trace: Trace, without: Iterable[Finding] = ()) -> Totals:
    """Return the sums over all slices, or over those that are no evidence of the findings.

    Both together bound what is true: ``totals(trace)`` believes everything, ``totals(trace, findings)`` nothing that
    is in doubt.
    """
    slices = trace.slices
    sound = np.ones(len(slices), np.bool_)
    for finding in without:
        if finding.evidence.table == "slices":
            sound[finding.evidence.ids] = False
    closed = sound & slices.valid("dur")
    time = union(known_extents(slices).take(sound))
    return Totals(
        slices=int(np.count_nonzero(sound)),
        open=int(np.count_nonzero(sound) - np.count_nonzero(closed)),
        total=int(slices.values("dur")[closed].sum()),
        covered=int((time.end - time.begin).sum()),
    )


class StreamingTotals:
    """An observer whose result is ``totals`` of the batches joined, without and with the findings.

    Time that only evidence covers is found among the rows that the checker keeps: on a lane that promises disjoint
    slices, what it lets go shares time with nothing. On other lanes it may: those that have evidence are swept once
    more in a second pass, without it. Where evidence is known only after that pass, the extents of all their slices
    are kept in it, 32 bytes each.

    Args:
        checker: an observer of the same batches, that comes before this one.
    """

    def __init__(self, checker: StreamingChecker) -> None:
        self._checker = checker
        checker.note_within()
        self._rows = 0
        self._open = 0
        self._total = 0
        self._wanted: Mask = np.empty(0, np.bool_)  # lanes whose slices are kept
        self._seen_again = 0
        self._positions = KeptInts()
        self._extents = tuple(KeptInts() for _ in Intervals._fields)
        self._doubted: Mask | None = None  # of the slices of the checker, where its findings were known
        self._evidence = _NO_INTS
        self._rest: Ints | None = None  # time covered without it by track, where it is known
        self._reach = _NO_INTS

    def start(self, info: StreamInfo) -> None:
        """Begin; there is nothing to do."""

    def add(self, batch: Trace) -> None:
        """Sum up the slices of the next batch."""
        slices = batch.slices
        self._rows += len(slices)
        if slices.column("dur").is_unknown:
            self._open += len(slices)
            return
        dur, closed = slices.values("dur"), slices.column("dur").valid
        if closed is not None and not closed.all():
            self._open += len(slices) - int(np.count_nonzero(closed))
            dur = dur[closed]
        self._total += int(dur.sum())

    def wants_replay(self) -> bool:
        """Return whether evidence is on lanes whose overlapping slices the checker does not keep."""
        checker = self._checker
        if checker.is_unsettled:
            self._wanted = ~checker.is_kept_apart
        else:
            findings = checker.result()  # and with it the slices
            positions, slices = checker.slices
            doubted = self._doubted = _doubted(positions, findings)
            self._wanted = np.zeros(len(checker.is_kept_apart), np.bool_)
            if not checker.is_kept_apart.all():
                track = slices.values("track_id")[doubted]
                self._wanted[track[(track >= 0) & (track < len(self._wanted))]] = True
                self._wanted &= ~checker.is_kept_apart
            if self._wanted.any():
                # What takes no time of its own can be left out without a look at the others.
                track = slices.values("track_id")[doubted & ~is_listed(positions, checker.within)]
                takes_time = np.zeros(len(self._wanted), np.bool_)
                takes_time[track[(track >= 0) & (track < len(self._wanted))]] = True
                self._wanted &= takes_time
                self._evidence = positions[doubted]
                self._rest = np.zeros(len(self._wanted), np.int64)
                self._reach = np.full(len(self._wanted), np.iinfo(np.int64).min)
        return bool(self._wanted.any())

    def replay(self, batch: Trace) -> None:
        """Keep the extents of the next batch's slices on those lanes."""
        if self._rest is not None:
            self._add_rest(self._rest, batch.slices)
            return
        track = batch.slices.values("track_id")
        is_track = (track >= 0) & (track < len(self._wanted))
        rows = np.flatnonzero(is_track & self._wanted[np.where(is_track, track, 0)])
        if len(rows):
            self._positions.add(self._seen_again + rows)
            for kept, column in zip(self._extents, known_extents(batch.slices).take(rows), strict=True):
                kept.add(column)
        self._seen_again += len(track)

    def _add_rest(self, covered: Ints, slices: Table) -> None:
        """Add the time that slices but evidence cover: lanes that the checker does not see as a whole are in order."""
        first, last = np.searchsorted(self._evidence, [self._seen_again, self._seen_again + len(slices)])
        core.check_add_covered(
            np.ascontiguousarray(slices.values("track_id")),
            np.ascontiguousarray(slices.values("ts")),
            *slices.nullable("dur"),
            *slices.nullable("last_known_ts"),
            self._evidence[first:last] - self._seen_again,
            self._wanted.view(np.uint8),
            self._reach,
            covered,
        )
        self._seen_again += len(slices)

    def result(self, findings: Sequence[Finding] = ()) -> tuple[Totals, Totals]:
        """Return the sums over all slices, and over those that are no evidence of ``findings``.

        Args:
            findings: the checker's own, whose ``result`` has been asked for.
        """
        checker = self._checker
        positions, slices = checker.slices
        doubted = self._doubted
        if doubted is None or findings is not checker.result():
            doubted = _doubted(positions, findings)
        tracks = len(checker.covered)
        track = slices.values("track_id")
        covered = int(checker.covered.sum())
        is_stray = None
        if len(track) and not (track.min() >= 0 and track.max() < tracks):
            is_stray = (track < 0) | (track >= tracks)
            covered += _length(union(_extents(slices, np.flatnonzero(is_stray))))
        everything = Totals(self._rows, self._open, self._total, covered)
        evidence = np.flatnonzero(doubted)
        if not len(evidence):
            return everything, everything
        closed = evidence if slices.column("dur").valid is None else evidence[slices.valid("dur")[evidence]]
        dur = slices.values("dur")
        # Lanes of which the checker has every row that shares time with another: those with evidence.
        lane = track if is_stray is None else np.where(is_stray, tracks, track)
        has_evidence = np.zeros(tracks + 1, np.bool_)
        has_evidence[lane[evidence]] = True
        has_evidence[:tracks] &= checker.is_kept_apart
        if has_evidence.any():
            rows = np.flatnonzero(has_evidence[lane])
            covered -= _only(_extents(slices, rows), doubted[rows])
        if self._rest is not None:
            covered -= int((checker.covered[: len(self._rest)] - self._rest)[self._wanted].sum())
        elif self._positions:
            where, rest = self._positions.joined(), Intervals(*(kept.joined() for kept in self._extents))
            covered -= _only(rest, np.isin(where, positions[doubted]))
        return everything, Totals(
            self._rows - len(evidence),
            self._open - (len(evidence) - len(closed)),
            self._total - sum(int(dur[closed[piece]].sum()) for piece in in_pieces(len(closed))),
            covered,
        )


def _doubted(positions: Ints, findings: Iterable[Finding]) -> Mask:
    """Return which slices are evidence, bool [n], from where they stand in the whole trace, int64 [n] rising."""
    found: Mask = np.zeros(len(positions), np.bool_)
    for finding in findings:
        if finding.evidence.table == "slices":
            found |= is_listed(positions, finding.evidence.ids)
    return found


def _extents(slices: Table, rows: Ints) -> Intervals:
    """Return lane and time of some slices."""
    return known_extents(Table(_TIMES, {name: slices.column(name) for name in _TIMES.names}).take(rows))


def _only(intervals: Intervals, chosen: Mask) -> int:
    """Return the time that only the ``chosen`` intervals cover, bool [n], lane by lane."""
    ours = union(intervals.take(chosen))
    if chosen.all():
        return _length(ours)
    # Most slices are sound, and far from those that are not.
    others = intervals.take(near(intervals, ours) & ~chosen)
    return _length(subtract(ours, others) if len(others.group) else ours)


def near(intervals: Intervals, disjoint: Intervals) -> Mask:
    """Return bool [n]: which intervals may share time with one of ``disjoint``; of the others none does.

    Args:
        intervals: any intervals.
        disjoint: sorted by group and begin, none empty.
    """
    if not len(disjoint.group) or not len(intervals.group):
        return np.zeros(len(intervals.group), np.bool_)
    low = min(int(disjoint.begin.min()), int(intervals.begin.min()))
    span = max(int(disjoint.end.max()), int(intervals.end.max())) - low + 1
    first = min(int(disjoint.group[0]), int(intervals.group.min()))
    groups = max(int(disjoint.group[-1]), int(intervals.group.max())) - first + 1
    if groups * span > INT64_MAX:
        return np.ones(len(intervals.group), np.bool_)
    own, lift = ((group - first) * span - low for group in (disjoint.group, intervals.group))
    # What is met has begun before the interval ends, and has not ended where it begins.
    begun = np.searchsorted(own + disjoint.begin, lift + intervals.end, "left")
    ended = np.searchsorted(own + disjoint.end, lift + intervals.begin, "right")
    found: Mask = begun > ended
    return found


def _length(disjoint: Intervals) -> int:
    """Return the length of all intervals."""
    return int((disjoint.end - disjoint.begin).sum())
