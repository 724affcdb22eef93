"""Rules, violations, findings, and the context of a check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from lanescope.analysis.check.evidence_sql import condition, query
from lanescope.analysis.check.impact import Impact
from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.plausibility.layer import Plausibility
from lanescope.analysis.plausibility.thresholds import Thresholds
from lanescope.analysis.track_tree import Tree
from lanescope.common.intervals import Ints, bounds, total_length
from lanescope.families.rules import Violation
from lanescope.trace import Table, Trace
from lanescope.trace.column import Mask

#: Number of evidence rows in a report; counts include all rows.
SAMPLE = 20


@dataclass(frozen=True, slots=True)
class Location:
    """Location of a finding, as far as it is known.

    Attributes:
        track_id: the lane.
        track: its path as text; empty without a lane.
        ts: the earliest time, in the trace's unit.
        input_id: the input.
        input: its path; empty without an input.
        offset: byte offset of the first violation in the input.
    """

    track_id: int | None = None
    track: str = ""
    ts: int | None = None
    input_id: int | None = None
    input: str = ""
    offset: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Rows that prove a finding.

    Attributes:
        table: name of their table.
        ids: int64 [n], all of them: the earliest first, or (LS303) as they stand in the table.
        where: a condition in SQL that holds for these rows only; empty: their ids have to do.
    """

    table: str
    ids: Ints
    where: str = ""

    @property
    def of_query(self) -> tuple[str, Ints, str]:
        """Table, ids and condition."""
        return self.table, self.ids, self.where

    @property
    def sample(self) -> list[int]:
        """The first ``SAMPLE`` ids."""
        return [int(row) for row in self.ids[:SAMPLE]]


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """Result of a rule: computed from the tables, never stored in the trace.

    Attributes:
        code: the rule's code.
        severity: ``notice``, ``warning`` or ``error``.
        title: the rule's title.
        detail: one line, measured values with units; may be empty.
        location: location.
        count: number of violations.
        affected_fraction: time that the evidence covers, as a share of the time that all slices of the trace cover;
            None if the evidence is not slices.
        affected_lane_fraction: time that the evidence on the lane of ``location`` covers, as a share of what all slices
            there do.
        evidence: the rows.
        help: one or two imperative sentences.
        impact: sums with and without the evidence; None if it is not slices.
        stat: name of the stat that the finding comes from; empty if it comes from no stat.
    """

    code: str
    severity: str
    title: str
    detail: str
    location: Location
    count: int
    affected_fraction: float | None
    affected_lane_fraction: float | None
    evidence: Evidence
    help: str
    impact: Impact | None = None
    stat: str = ""

    @property
    def sql(self) -> str:
        """The query that returns the evidence rows, for ``lanescope sql``; the first of them if they are too many."""
        return query(*self.evidence.of_query)[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON values; the evidence rows are a sample, ``count`` counts all.

        ``sql`` returns the first ``sql_rows`` of the evidence rows, nearly always all of them.
        """
        sql, sql_rows = query(*self.evidence.of_query)
        return {
            "code": self.code,
            "severity": self.severity,
            "title": self.title,
            "detail": self.detail,
            "stat": self.stat or None,
            "location": {name: getattr(self.location, name) for name in Location.__slots__},
            "count": self.count,
            "affected_fraction": self.affected_fraction,
            "affected_lane_fraction": self.affected_lane_fraction,
            "impact": None if self.impact is None else self.impact._asdict(),
            "evidence": {"table": self.evidence.table, "rows": len(self.evidence.ids), "sample": self.evidence.sample},
            "sql": sql,
            "sql_rows": sql_rows,
            "help": self.help,
        }


def guessed_time(slices: Table) -> Ints:
    """Return the sum of the durations of slices that are not of quality ``exact``, by track id, int64 [n]."""
    quality = slices.column("quality")
    texts = list(quality.dictionary.texts) if quality.dictionary else []
    if not len(slices) or not set(texts) - {"exact"}:
        return np.empty(0, np.int64)
    exact = texts.index("exact") if "exact" in texts else -1
    if quality.constant_value == exact:
        return np.empty(0, np.int64)
    rows = np.flatnonzero(quality.values != exact)
    track, dur = slices.values("track_id")[rows], np.maximum(slices.values("dur")[rows], 0)
    is_known = track >= 0
    found = np.zeros(int(track.max(initial=-1)) + 1, np.int64)
    np.add.at(found, track[is_known], dur[is_known])
    return found


def resized(sums: Ints, tracks: int) -> Ints:
    """Return sums by track, cut or filled with zeros to a number of tracks."""
    return np.append(sums[:tracks], np.zeros(max(0, tracks - len(sums)), np.int64))


def added(sums: Ints, more: Ints) -> Ints:
    """Return two sums by track, added; either may have fewer tracks."""
    tracks = max(len(sums), len(more))
    return resized(sums, tracks) + resized(more, tracks) if len(more) else sums


class Sums(NamedTuple):
    """Sums of all rows of a trace.

    Attributes:
        covered: int64 [tracks], time that the slices of each track cover.
        guessed: int64 [tracks], durations of those that are not of quality ``exact``.
        events: number of slices and instants.
    """

    covered: Ints
    guessed: Ints
    events: int


class CheckContext(LaneTime):
    """A trace and the intermediate results that several rules share.

    Args:
        trace: the trace.
        tree: its tracks.
        thresholds: of the plausibility rules.
    """

    def __init__(self, trace: Trace, tree: Tree | None = None, thresholds: Thresholds | None = None) -> None:
        super().__init__(trace, tree)
        self._thresholds = thresholds

    @cached_property
    def plausibility(self) -> Plausibility:
        """What the plausibility rules find."""
        return Plausibility.of_trace(self.trace, self._thresholds)

    def slice_positions(self, rows: Ints) -> Ints:
        """Return where slices stand in the whole trace, int64 [n]."""
        return rows

    def by_lane(self, table: str, rows: Ints) -> Iterator[tuple[int, Ints]]:
        """Yield (track id, its rows by time) for rows of ``slices``, ``instants`` or ``gaps``, lanes by id.

        Args:
            table: name of the table.
            rows: ids, int64 [n].
        """
        tracks = self._column(table, "track_id")[rows]
        sort = np.lexsort((rows, self._column(table, "ts")[rows], tracks))
        rows, tracks = rows[sort], tracks[sort]
        for first, last in pairwise(bounds(tracks)):
            yield int(tracks[first]), rows[first:last]

    def violations(self, table: str, rows: Ints, detail: Callable[[Ints], str] = lambda _: "") -> Iterator[Violation]:
        """Yield one violation per lane of the rows; ``detail`` describes the rows of the lane."""
        ts = self._column(table, "ts")
        for track, mine in self.by_lane(table, rows):
            yield Violation(detail=detail(mine), table=table, rows=mine, track_id=track, ts=int(ts[mine[0]]))

    def rows_with_flag(self, table: str, flag: int) -> Ints:
        """Return the ids of the slices or instants with a flag, int64."""
        if not self.flags_of[table] & int(flag):
            return np.empty(0, np.int64)
        return np.flatnonzero(self._column(table, "flags") & np.uint32(flag))

    @cached_property
    def flags_of(self) -> dict[str, int]:
        """Flags that any row of a table has."""
        return {name: int(np.bitwise_or.reduce(self._column(name, "flags"))) for name in ("slices", "instants")}

    def name(self, row: int) -> str:
        """Return the name of a slice."""
        names = self.trace.slices.column("name")
        return str(names.dictionary.texts[int(names.values[row])]) if names.dictionary else ""

    @cached_property
    def covered(self) -> Ints:
        """Time that the slices of each track cover, int64 [tracks]."""
        return total_length(self.slice_union, len(self.tree))

    @cached_property
    def guessed(self) -> Ints:
        """Sum of the durations of the slices of each track that are not of quality ``exact``, int64 [tracks]."""
        return resized(guessed_time(self.trace.slices), len(self.tree))

    @property
    def events(self) -> int:
        """Number of slices and instants."""
        return len(self.trace.slices) + len(self.trace.instants)

    @property
    def device_lanes(self) -> int:
        """Number of lanes but those of the host."""
        tracks = self.trace.tracks
        return int(np.count_nonzero((tracks.values("kind") == "lane") & (tracks.values("role") != "host_thread")))

    @cached_property
    def disciplines(self) -> dict[str, Mask]:
        """For each nesting, bool [tracks]: the lanes with this nesting."""
        tracks = self.trace.tracks
        is_lane = tracks.values("kind") == "lane"
        return {word: is_lane & (tracks.values("nesting") == word) for word in ("disjoint", "nested", "free")}

    def _column(self, table: str, name: str) -> Ints:
        values: Ints = self.trace.tables()[table].values(name)
        return values


def with_conditions(findings: Iterable[Finding], positions: Ints, slices: Table) -> list[Finding]:
    """Return findings with a condition for evidence in ``slices`` that is too scattered for ranges.

    Args:
        findings: the findings.
        positions: ids of the slices that are there, int64 [n], rising.
        slices: those slices; all that rules report by a flag are among them.
    """
    return [
        replace(found, evidence=replace(found.evidence, where=where))
        if found.evidence.table == "slices" and (where := condition(found.evidence.ids, positions, slices))
        else found
        for found in findings
    ]
