"""Findings about stats: each stat declares the rule that reports it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from lanescope.analysis.check.model import CheckContext
from lanescope.families.rules import SEVERITIES, Violation
from lanescope.trace.stats import counted, reported_by

#: Rules whose findings say what share of the capture they concern, and are more severe if it is a large one.
_WEIGHED = ("LS003", "LS105", "LS305", "LS404")
#: Above this share of the events a finding is one step more severe.
LARGE_SHARE = 0.05


def reports(code: str) -> Callable[[CheckContext], Iterator[Violation]]:
    """Return the check of a rule that reports the stats which declare its code."""

    def check(subject: CheckContext) -> Iterator[Violation]:
        for row in subject.trace.stats.rows():
            if reported_by(row)[0] == code:
                found = stat_violation(subject, row)
                yield _weighed(subject, row, found) if code in _WEIGHED else found

    return check


def _weighed(subject: CheckContext, row: dict[str, Any], found: Violation) -> Violation:
    """Return the finding with its share of the capture, one step more severe if it is of many events."""
    of, count = row.get("share_of"), row["count"]
    if not of:
        return found
    total = subject.events if of == "events" else subject.device_lanes
    if of == "events" and count > total * LARGE_SHARE:
        step = SEVERITIES.index(str(found.severity)) + 1
        found = replace(found, severity=SEVERITIES[min(step, len(SEVERITIES) - 1)])
    if count > total:  # what it counts is not on the timeline
        return found
    return replace(found, detail=f"{found.detail}: {count:,} of {total:,} {of} ({count / total:.1%})")


def stat_violation(subject: CheckContext, row: dict[str, Any]) -> Violation:
    """Return the violation for a row of ``stats``; a stat without a time is located at its gap."""
    track, ts = row["track_id"], row["first_ts"]
    if ts is None:
        track, ts = _gap(subject, row) or (track, ts)
    return Violation(
        detail=counted(row),
        table="stats",
        rows=np.array([row["id"]], np.int64),
        count=row["count"],
        severity=reported_by(row)[1],
        track_id=track,
        ts=ts,
        input_id=row["input_id"],
        offset=row["first_offset"],
        stat=str(row["name"]),
    )


def _gap(subject: CheckContext, stat: dict[str, Any]) -> tuple[int, int] | None:
    """Return lane and start of the first gap at the byte offset of a stat; None without such a gap."""
    gaps = subject.trace.gaps
    if stat["first_offset"] is None or stat["input_id"] is None or not len(gaps):
        return None
    is_there = gaps.valid("first_offset") & (gaps.values("first_offset") == stat["first_offset"])
    is_there &= gaps.valid("input_id") & (gaps.values("input_id") == stat["input_id"])
    found = np.flatnonzero(is_there)
    if stat["track_id"] is not None:
        tracks = gaps.values("track_id")[found].tolist()
        found = found[[_is_below(subject, track, stat["track_id"]) for track in tracks]]
    if not len(found):
        return None
    first = found[np.lexsort((gaps.values("track_id")[found], gaps.values("ts")[found]))[0]]
    return int(gaps.values("track_id")[first]), int(gaps.values("ts")[first])


def _is_below(subject: CheckContext, track: int, group: int) -> bool:
    """Return whether a track is the group or a descendant of it."""
    return 0 <= track < len(subject.tree) and group in subject.tree.ancestors(track)
