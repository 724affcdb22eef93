"""Rules, violations, findings, and the context of a check."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from lanescope.analysis.lane_time import LaneTime
from lanescope.common.intervals import Ints, bounds, total_length
from lanescope.families.rules import Violation
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
        ids: int64 [n], all of them, the earliest first.
    """

    table: str
    ids: Ints

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
    stat: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON values; the evidence rows are a sample, ``count`` counts all."""
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
            "evidence": {"table": self.evidence.table, "rows": len(self.evidence.ids), "sample": self.evidence.sample},
            "help": self.help,
        }


class CheckContext(LaneTime):
    """A trace and the intermediate results that several rules share."""

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
        return np.flatnonzero(self._column(table, "flags") & np.uint32(flag))

    def name(self, row: int) -> str:
        """Return the name of a slice."""
        names = self.trace.slices.column("name")
        return str(names.dictionary.texts[int(names.values[row])]) if names.dictionary else ""

    @cached_property
    def covered(self) -> Ints:
        """Time that the slices of each track cover, int64 [tracks]."""
        return total_length(self.slice_union, len(self.tree))

    @cached_property
    def disciplines(self) -> dict[str, Mask]:
        """For each nesting, bool [tracks]: the lanes with this nesting."""
        tracks = self.trace.tracks
        is_lane = tracks.values("kind") == "lane"
        return {word: is_lane & (tracks.values("nesting") == word) for word in ("disjoint", "nested", "free")}

    def _column(self, table: str, name: str) -> Ints:
        values: Ints = self.trace.tables()[table].values(name)
        return values
