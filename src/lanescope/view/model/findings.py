"""Findings for views: one for each rule and title, with all its places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.analysis.check import Finding
from lanescope.trace import Trace
from lanescope.trace.row_packing import RowsById

Ints = npt.NDArray[np.int64]

#: The worst first.
SEVERITIES = ("error", "warning", "notice")


class Place(NamedTuple):
    """Where a finding is.

    Attributes:
        track: track id, None without one.
        ts: its time in the trace's unit, None without one; ``dur``: how long its first row lasts, if it is a slice.
        row: row of the slices table, None if it is none.
        detail: measured values.
    """

    track: int | None
    ts: int | None
    dur: int | None
    row: int | None
    detail: str


class RolledFinding(NamedTuple):
    """All findings of one rule and title.

    Attributes:
        code, severity, title, help: as the findings have them; of several severities the worst.
        violations: how many in all.
        share: part of the time of all slices that is concerned; None: unknown.
        places: those with a track or a time first, by time.
    """

    code: str
    severity: str
    title: str
    help: str
    violations: int
    share: float | None
    places: tuple[Place, ...]

    @property
    def detail(self) -> str:
        """Measured values of the first place that has some."""
        return next((place.detail for place in self.places if place.detail), "")


def rolled(findings: Sequence[Finding], trace: Trace) -> list[RolledFinding]:
    """Return the findings by rule and title, the worst first, else in their order."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.code, finding.title, finding.stat), []).append(finding)
    found, places_of = [], _Places(trace)
    for (code, title, stat), each in groups.items():
        severity = min((finding.severity for finding in each), key=SEVERITIES.index)
        shares = [finding.affected_fraction for finding in each if finding.affected_fraction is not None]
        places = sorted(
            (places_of.finding(finding) for finding in each),
            key=lambda place: (place.ts is None, place.ts or 0, place.track is None, place.track or 0),
        )
        found.append(
            RolledFinding(
                code,
                severity,
                # Rules that report stats are many rules in one: the name says which.
                f"{title} ({stat})" if stat else title,
                " ".join(dict.fromkeys(finding.help for finding in each)),
                sum(finding.count for finding in each),
                min(sum(shares), 1.0) if shares else None,
                tuple(places),
            )
        )
    return sorted(found, key=lambda one: SEVERITIES.index(one.severity))


class _Places:
    """Places of findings about one trace, which may be a window: its rows are not numbered like their ids."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._slices = RowsById(trace.slices.values("id"))

    def finding(self, finding: Finding) -> Place:
        """Return where a finding is: its location, with the slice that is there."""
        track, ts = finding.location.track_id, finding.location.ts
        slices = self._trace.slices
        rows = self._evidence(finding)
        if len(rows) and track is not None:
            # Evidence is in order of time, the location that of the worst: they are not always the same slice.
            rows = rows[slices.values("track_id")[rows] == track]
        if len(rows) and ts is not None:
            begin = slices.values("ts")[rows]
            rows = rows[[int(np.argmin(np.abs(begin - ts)))]]
        if not len(rows):
            return Place(track, ts, None, None, finding.detail)
        row = int(rows[0])
        dur = int(slices.values("dur")[row]) if slices.valid("dur")[row] else None
        at = int(slices.values("ts")[row]) if ts is None else ts
        return Place(int(slices.values("track_id")[row]), at, dur, row, finding.detail)

    def _evidence(self, finding: Finding) -> Ints:
        """Return the rows of slices that prove a finding, int64; of a flow those of its ends."""
        ids, flows = finding.evidence.ids, self._trace.flows
        if finding.evidence.table == "flows" and len(ids):
            known = RowsById(flows.values("id")).find(ids)
            known = known[known >= 0]
            ends = ("dst_slice_id", "src_slice_id")
            ids = np.concatenate([flows.values(end)[known[flows.valid(end)[known]]] for end in ends])
        elif finding.evidence.table != "slices":
            return np.empty(0, np.int64)
        rows: Ints = self._slices.find(np.ascontiguousarray(ids))
        return rows[rows >= 0]
