"""Checks of a trace batch by batch.

Rules look at tables. Most rows of large tables cannot be the fault of anything, and a native sweep tells which while a
batch is at hand. The others are kept; rules see a trace of them, with sums in place of the rest:

* A rule that judges rows one by one (flags, lengths) finds the same rows, as all that it could find are kept.
* A rule that judges pairs finds the same pairs, as both rows of every pair that clashes are kept, and a pair clashes or
  not whatever else is on its lane. The sweep knows the pairs if the rows of the lane come in order of begin: a row that
  has ended by b clashes with nothing that begins at b or later, so what has ended can be forgotten.
* The first row after a gap is kept when the gap comes before the row does.
* Shares need the time that slices cover, and gaps need the first and the last time of the trace: those are summed.

Where a lane is out of order, its ticks fall, or too much is open on it, it is looked at as a whole: all of its rows are
kept, in a second pass over the batches. A gap that comes late, and coverage that turns out shorter than a slice, take a
second pass too, but one that keeps no more than the first.

Plausibility rules need sums only. Rows that they suspect are found in a second pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

import numpy as np

from lanescope._native import core
from lanescope.analysis.check.common_rules.lane import recorded
from lanescope.analysis.check.common_rules.plausibility import CODES
from lanescope.analysis.check.engine import RULES, evaluate, rank, rules
from lanescope.analysis.check.family_rules import FamilyRules
from lanescope.analysis.check.kept_rows import (
    CHECKED_FLOWS,
    SWEPT,
    KeptInts,
    KeptRows,
    SweepState,
    disciplines,
    is_disjoint,
)
from lanescope.analysis.check.model import (
    CheckContext,
    Evidence,
    Finding,
    Sums,
    added,
    guessed_time,
    resized,
    with_conditions,
)
from lanescope.analysis.lane_time import end_or_last_known
from lanescope.analysis.plausibility.layer import Plausibility
from lanescope.analysis.plausibility.suspicion import is_listed
from lanescope.analysis.plausibility.thresholds import Thresholds
from lanescope.analysis.track_tree import Tree
from lanescope.common.distinct import distinct
from lanescope.common.intervals import INT64_MAX, Ints, total_length
from lanescope.families.rules import Rule
from lanescope.trace import Column, Table, TimeBase, Trace
from lanescope.trace.column import Mask
from lanescope.trace.streams import StreamInfo
from lanescope.trace.trace import SHARED

#: Tables that are small, or that rules read as a whole.
_SMALL = ("gaps", "coverage", "stats", "accounting")

#: From so many slices of the first batch it is judged whether lanes come in order.
_TRIAL = 1 << 16

_NO_INTS = np.empty(0, np.int64)


class StreamingChecker:
    """An observer whose result is what ``check.run`` finds in the batches joined.

    What it keeps grows with what is suspicious, not with what is sound.

    Args:
        select: codes, or beginnings of codes, of the rules to apply; empty: all.
        ignore: codes to leave out.
        thresholds: of the plausibility rules; None: the defaults.

    Attributes:
        slices: the kept rows of ``slices``, all evidence among them, and where they stood; after ``result``.
        covered: int64 [tracks], time that the slices of each track cover; after ``result``.
        is_unsettled: whether one pass was not enough; after ``wants_replay``.
        is_kept_apart: bool [tracks], tracks of which no other row shares time with a kept one; after ``wants_replay``.

    Raises:
        UsageError: a choice fits no rule.

    Example:
        >>> from lanescope.trace import TimeBase, TraceBuilder
        >>> builder, checker = TraceBuilder(TimeBase()), StreamingChecker()
        >>> lane = builder.track("core 0", kind="lane", role="core")
        >>> _ = builder.append("slices", track_id=lane, ts=[0, 10, 20], dur=[10, 10, 30], name=["load", "mma", "store"])
        >>> checker.add(builder.batch())
        >>> _ = builder.append("slices", track_id=lane, ts=40, dur=10, name="load")
        >>> checker.add(builder.finish())
        >>> checker.wants_replay()
        False
        >>> for finding in checker.result():
        ...     print(finding.code, finding.detail, finding.evidence.ids, finding.affected_fraction)
        LS101 load starts 10 ns before store ends [2 3] 0.6
    """

    def __init__(
        self, select: Iterable[str] = (), ignore: Iterable[str] = (), thresholds: Thresholds | None = None
    ) -> None:
        self._select, self._ignore = tuple(select), tuple(ignore)
        # An unknown code is refused before an hour of decoding.
        self._common = [rule for rule in rules(self._select, self._ignore) if rule in RULES]
        self._plausibility = Plausibility(thresholds)
        self._is_judged = any(rule.code in CODES for rule in self._common)
        self._time = TimeBase()
        self._shared: dict[str, Table] = {}
        self._small: dict[str, list[Table]] = {name: [] for name in _SMALL}
        self._first = {spec.name: SweepState(spec) for spec in SWEPT}
        self._swept = self._first  # those of the second pass from then on
        self._flows = KeptRows(CHECKED_FLOWS)
        self._flows_seen = 0
        self._guessed = _NO_INTS
        self._counters: list[int] = []
        self._gaps: list[tuple[Ints, Ints]] = []
        self._tree: Tree | None = None
        self._batches = 0
        self._family_rules = FamilyRules()
        self._held: list[Trace] = []  # the first: should it be the only one, passing over it gains nothing
        self.slices: tuple[Ints, Table] = _NO_INTS, Table.empty(SWEPT[0])
        self.covered = _NO_INTS
        self.is_kept_apart: Mask = np.empty(0, np.bool_)
        self.is_unsettled = False
        self._found: list[Finding] | None = None

    def start(self, info: StreamInfo) -> None:
        """Begin; there is nothing to do."""

    def add(self, batch: Trace) -> None:
        """Look at the next batch; nothing refers to it once the one after it has come."""
        self._batches += 1
        self._family_rules.add(batch)
        self._plausibility.add(batch)
        if self._batches == 1 and _is_disordered(batch):
            self._held = [batch.without_records()]
            return
        for held in self._held:
            self._take(held)
        self._held = []
        self._take(batch)

    def note_within(self) -> None:
        """Have ``within`` told, before the first batch."""
        self._first["slices"].within = KeptInts()

    @property
    def within(self) -> Ints:
        """Positions of kept slices that take no time which slices before them on their lane do not take, rising."""
        found = self._first["slices"].within
        return _NO_INTS if found is None else found.joined()

    def wants_replay(self) -> bool:
        """Find out what cannot be told from the rows kept so far; return whether there is anything."""
        if self._held:
            return False
        slices, instants = self._swept.values()
        longest = self._longest()
        self.is_unsettled = slices.settle(longest) | instants.settle(longest)
        self.is_unsettled |= self._is_judged and self._plausibility.needs_rows()
        self.is_kept_apart = slices.whole | is_disjoint(self._shared["tracks"])
        if self.is_unsettled and self._batches == 1:
            self.is_kept_apart |= True  # without a second batch it is judged as a whole
        return self.is_unsettled

    def replay(self, batch: Trace) -> None:
        """Keep what a sweep finds that knows from the start what the first one has found out."""
        if self._batches == 1:
            self._held.append(batch.without_records())
            return
        if self._swept is self._first:
            self._begin_again()
        for name, swept in self._swept.items():
            table = batch.tables()[name]
            swept.add(table, self._suspects(name, swept.sweep.rows, table))

    def _suspects(self, name: str, first: int, table: Table) -> Mask | None:
        """Return which rows, the first of which stands at ``first``, plausibility rules need; None: none at all."""
        if not self._is_judged or not len(table):
            return None
        return self._plausibility.wanted(name, np.arange(first, first + len(table)), table)

    def result(self) -> list[Finding]:
        """Return the findings, as ``check.run`` does."""
        if self._found is None:
            self._found = self._evaluated()
        return self._found

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that are applied: those for all traces, and those of the families of the batches so far."""
        return rules(self._select, self._ignore, families=self._family_rules.families)

    def _evaluated(self) -> list[Finding]:
        found = self._common_findings()
        more = self._family_rules.findings(self.covered, self._plausibility, select=self._select, ignore=self._ignore)
        self._keep_evidence(more)
        return rank(with_conditions([*found, *more], *self.slices))

    def _keep_evidence(self, findings: Iterable[Finding]) -> None:
        """Add slices to the kept ones that only rules of families report."""
        positions, slices = self.slices
        evidence = [found.evidence.ids for found in findings if found.evidence.table == "slices"]
        ids = distinct(np.concatenate([_NO_INTS, *evidence]))
        if len(new := ids[~is_listed(ids, positions)]):
            kept = KeptRows(SWEPT[0])
            kept.add(positions, slices, np.arange(len(slices)))
            kept.add(new, self._family_rules.slices(new), np.arange(len(new)))
            self.slices = kept.joined()

    def _common_findings(self) -> list[Finding]:
        if self._held:
            joined = Trace.concat(self._held)
            whole = _Judged(joined, None, self._plausibility)
            if self._is_judged:
                self._plausibility.judge_whole(joined, lambda: whole.order)
            self.slices = np.arange(len(whole.trace.slices)), whole.trace.slices
            self.covered, self.is_kept_apart = whole.covered, np.ones(len(whole.tree), np.bool_)
            return evaluate(whole, self._common)
        small = {name: Table.concat(parts) for name, parts in self._small.items() if parts}
        slices, instants = self._first.values()
        kept = {name: swept.rows.joined() for name, swept in self._swept.items()}
        kept["flows"] = self._flows.joined()
        rows = {name: positions for name, (positions, _) in kept.items()}
        tables = {**self._shared, **small, **{name: table for name, (_, table) in kept.items()}}
        tables["flows"] = _renumbered(tables["flows"], rows["slices"])
        times = np.array([*slices.window, *instants.window, *self._counters], np.int64)
        tree = Tree(self._shared["tracks"])
        if self._is_judged:
            self._plausibility.judge(kept["slices"], kept["instants"])
        sums = Sums(slices.covered, resized(self._guessed, len(tree)), slices.sweep.rows + instants.sweep.rows)
        trace = Trace(self._time, tables)
        subject = _Kept(trace, tree, self._plausibility, rows["slices"], times, sums, slices.whole)
        self.slices, self.covered = kept["slices"], subject.covered
        return [_placed(finding, rows) for finding in evaluate(subject, self._common)]

    def _longest(self) -> Ints:
        """Return the length beyond which slices of each track have to be kept, int64 [tracks]."""
        tracks = self._shared["tracks"]
        if not self._small["coverage"]:
            return np.full(len(tracks), INT64_MAX, np.int64)
        return recorded(Tree(tracks), Table.concat(self._small["coverage"]))

    def _take(self, batch: Trace) -> None:
        self._add_lanes(batch.tracks)
        self._time = batch.time
        self._shared = {name: getattr(batch, name) for name in SHARED}
        for name, parts in self._small.items():
            if len(table := batch.tables()[name]):
                parts.append(table)
        self._add_gaps(batch.gaps)
        self._guessed = added(self._guessed, guessed_time(batch.slices))
        for name, swept in self._swept.items():
            swept.add(batch.tables()[name])
        flows = batch.flows
        if len(flows):
            backward = np.flatnonzero(flows.values("dst_ts") < flows.values("src_ts"))
            self._flows.add(self._flows_seen + backward, flows, backward)
            self._flows_seen += len(flows)
        if len(batch.counters):
            ts = batch.counters.values("ts")
            self._counters += [int(ts.min()), int(ts.max())]
            self._counters = [min(self._counters), max(self._counters)]

    def _add_lanes(self, tracks: Table) -> None:
        """Make new tracks known, and the gaps so far that concern them."""
        known = len(self._shared["tracks"]) if self._shared else 0
        if len(tracks) == known:
            return
        self._tree = None
        for swept in self._swept.values():
            swept.sweep.add_lanes(disciplines(tracks))
        if self._gaps:
            tree = self._tree = Tree(tracks)
            above = {step for track in range(known, len(tree)) for step in tree.ancestors(track)}
            group, end = map(np.concatenate, zip(*self._gaps, strict=True))
            mine = np.isin(group, list(above))
            rows, lanes = tree.spread(group[mine])
            is_new = lanes >= known
            self._gaps_end(lanes[is_new], end[mine][rows[is_new]])

    def _add_gaps(self, gaps: Table) -> None:
        """Have the first rows after gaps kept; nothing should follow one of unknown length."""
        if not len(gaps):
            return
        self._tree = self._tree or Tree(self._shared["tracks"])
        group, end = gaps.values("track_id"), end_or_last_known(gaps)
        end = end + (~gaps.valid("dur") & (end < INT64_MAX))
        self._gaps.append((group, end))
        rows, lanes = self._tree.spread(group)
        self._gaps_end(lanes, end[rows])

    def _gaps_end(self, lanes: Ints, end: Ints) -> None:
        for swept in self._swept.values():
            swept.sweep.add_gaps(np.ascontiguousarray(lanes), np.ascontiguousarray(end))

    def _begin_again(self) -> None:
        """Prepare sweeps that know what those of the first pass have found out."""
        first = self._first
        tracks = self._shared["tracks"]
        longest = self._longest()
        self._swept = {spec.name: SweepState(spec, whole=first[spec.name].whole) for spec in SWEPT}
        for swept in self._swept.values():
            swept.sweep.add_lanes(disciplines(tracks))
            swept.sweep.prepare(longest, swept.whole.view(np.uint8))
        if self._gaps:
            group, end = map(np.concatenate, zip(*self._gaps, strict=True))
            rows, lanes = Tree(tracks).spread(group)
            self._gaps_end(lanes, end[rows])


class _Judged(CheckContext):
    """A trace that the plausibility rules have judged.

    Args:
        trace: the trace.
        tree: its tracks.
        plausibility: what they found.
    """

    def __init__(self, trace: Trace, tree: Tree | None, plausibility: Plausibility) -> None:
        super().__init__(trace, tree)
        self._judgement = plausibility

    @cached_property
    def plausibility(self) -> Plausibility:
        """What the plausibility rules found."""
        return self._judgement


class _Kept(_Judged):
    """The kept part of a trace, with results about the rest.

    Args:
        trace: the kept rows.
        tree: its tracks.
        plausibility: what the plausibility rules found.
        positions: where the kept slices stand in the whole trace, int64 [slices].
        seen: the first and the last times of rows that were not kept, int64 [n].
        sums: of all rows.
        whole: bool [tracks], tracks of which all rows are there; the covered time may not hold for them.
    """

    def __init__(
        self,
        trace: Trace,
        tree: Tree,
        plausibility: Plausibility,
        positions: Ints,
        seen: Ints,
        sums: Sums,
        whole: Mask,
    ) -> None:
        super().__init__(trace, tree, plausibility)
        self._positions = positions
        self._sums = sums
        self._seen = seen
        self._whole = whole

    def slice_positions(self, rows: Ints) -> Ints:
        """Return where slices stand in the whole trace, int64 [n]."""
        return self._positions[rows]

    def times(self) -> list[Ints]:
        """Return the times of the rows that are there and of those that were."""
        return [*super().times(), self._seen]

    @property
    def events(self) -> int:
        """Number of slices and instants of the whole trace."""
        return self._sums.events

    @cached_property
    def guessed(self) -> Ints:
        """Sum of the durations of the slices of each track that are not of quality ``exact``, int64 [tracks]."""
        return self._sums.guessed

    @cached_property
    def covered(self) -> Ints:
        """Time that the slices of each track cover, int64 [tracks]."""
        if not self._whole.any():
            return self._sums.covered
        return np.where(self._whole, total_length(self.slice_union, len(self.tree)), self._sums.covered)


def _is_disordered(batch: Trace) -> bool:
    """Return whether a batch has lanes that must be checked as a whole: out of order, or by its first slices."""
    track, ts = (np.ascontiguousarray(batch.slices.values(name)) for name in ("track_id", "ts"))
    if not core.lanes_rise(track, ts, len(batch.tracks)):
        return True
    trial, first = SweepState(SWEPT[0]), KeptRows(SWEPT[0])
    trial.sweep.add_lanes(disciplines(batch.tracks))
    rows = np.arange(min(len(batch.slices), _TRIAL))
    first.add(rows, batch.slices, rows)
    trial.add(first.joined()[1])
    return trial.settle(np.full(len(batch.tracks), INT64_MAX, np.int64))


def _renumbered(flows: Table, slices: Ints) -> Table:
    """Return the flows with rows of kept slices in place of ids; -1 for a slice that was not kept."""
    columns = {name: flows.column(name) for name in flows.spec.names}
    for name in ("src_slice_id", "dst_slice_id"):
        ids = columns[name].values
        at = np.searchsorted(slices, ids)
        is_kept = slices[np.minimum(at, len(slices) - 1)] == ids if len(slices) else np.zeros(len(ids), np.bool_)
        columns[name] = Column.array(np.where(is_kept, at, -1), valid=columns[name].valid)
    return Table(flows.spec, columns)


def _placed(finding: Finding, rows: dict[str, Ints]) -> Finding:
    """Return the finding with the ids that its evidence has in the whole trace."""
    table, ids = finding.evidence.table, finding.evidence.ids
    return replace(finding, evidence=Evidence(table, rows[table][ids])) if table in rows else finding
