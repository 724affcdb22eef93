"""Findings for views: one for each rule and title, with all its places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.analysis.check import Finding
from lanescope.trace import Trace

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
    found = []
    for (code, title, stat), each in groups.items():
        severity = min((finding.severity for finding in each), key=SEVERITIES.index)
        shares = [finding.affected_fraction for finding in each if finding.affected_fraction is not None]
        places = sorted(
            (_place(finding, trace) for finding in each),
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


def _place(finding: Finding, trace: Trace) -> Place:
    evidence, location = finding.evidence, finding.location
    row = None
    if len(evidence.ids) and evidence.table in ("slices", "flows"):
        row = int(evidence.ids[0])
        if evidence.table == "flows":
            flows = trace.flows
            row = int(flows.values("dst_slice_id")[row]) if flows.valid("dst_slice_id")[row] else -1
        if not 0 <= row < len(trace.slices):
            row = None
    track, ts, dur = location.track_id, location.ts, None
    if row is not None:
        slices = trace.slices
        track = int(slices.values("track_id")[row]) if track is None else track
        ts = int(slices.values("ts")[row]) if ts is None else ts
        dur = int(slices.values("dur")[row]) if slices.valid("dur")[row] else None
    return Place(track, ts, dur, row, finding.detail)
