"""LS0xx: input files and their accounting."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from lanescope.analysis.check.model import CheckContext
from lanescope.families.rules import Rule, Violation
from lanescope.trace import accounting
from lanescope.trace.stats import DEGRADED, DUPLICATE, MAY_BE_LOST, NO_RECORDS, STALE, UNMATCHED, counted


def _sums(subject: CheckContext) -> Iterator[Violation]:
    for fault in accounting.imbalances(subject.trace.accounting, subject.trace.inputs):
        yield Violation(
            detail=fault.text, table="accounting", rows=np.array(fault.rows, np.int64), count=1, input_id=fault.input_id
        )


def _loss(subject: CheckContext) -> Iterator[Violation]:
    told = [
        row
        for row in subject.trace.stats.rows()
        if row["severity"] in ("data_loss", "error") and not row["name"].endswith((UNMATCHED, DUPLICATE, DEGRADED))
    ]
    lost = [row for row in subject.trace.accounting.rows() if row["lost"] > 0]
    counted = _counted_twice(lost, told)
    for row in lost:
        if row["id"] not in counted:
            how = "dropped by the device" if row["scope"] == "producer" else "lost"
            yield Violation(
                detail=f"{row['lost']} of {row['total']} {row['unit']}s {how}",
                table="accounting",
                rows=np.array([row["id"]], np.int64),
                count=row["lost"],
                input_id=row["input_id"],
            )
    for row in told:
        yield stat_violation(subject, row, "error" if row["severity"] == "error" else None)


def _counted_twice(lost: list[dict[str, Any]], told: list[dict[str, Any]]) -> set[int]:
    """Return the ids of rows of ``accounting`` whose loss stats of the same input count as well.

    What a device dropped is in no byte of the input: a row of scope ``producer`` and a stat of the same count, or all
    those rows and two stats together, are one loss. The stat gives its reason and its location.
    """
    found: set[int] = set()
    for input_id in {row["input_id"] for row in lost if row["scope"] == "producer"}:
        rest = [row for row in lost if row["scope"] == "producer" and row["input_id"] == input_id]
        counts = [row["count"] for row in told if row["severity"] == "data_loss" and row["input_id"] == input_id]
        for row in list(rest):
            if row["lost"] in counts:
                counts.remove(row["lost"])
                rest.remove(row)
                found.add(row["id"])
        sums = {*counts, *map(sum, combinations(counts, 2))}
        if sum(row["lost"] for row in rest) in sums:
            found |= {row["id"] for row in rest}
    return found


def stat_violation(subject: CheckContext, row: dict[str, Any], severity: str | None) -> Violation:
    """Return the violation for a row of ``stats``; a stat without a time is located at its gap."""
    track, ts = row["track_id"], row["first_ts"]
    if ts is None:
        track, ts = _gap(subject, row) or (track, ts)
    return Violation(
        detail=counted(row),
        table="stats",
        rows=np.array([row["id"]], np.int64),
        count=row["count"],
        severity=severity,
        track_id=track,
        ts=ts,
        input_id=row["input_id"],
        offset=row["first_offset"],
        stat=str(row["name"]),
    )


def _named(subject: CheckContext, *endings: str) -> Iterator[Violation]:
    for row in subject.trace.stats.rows():
        if row["name"].endswith(endings):
            yield stat_violation(subject, row, None)


def _nothing(subject: CheckContext) -> Iterator[Violation]:
    yield from _named(subject, NO_RECORDS)


def _perhaps(subject: CheckContext) -> Iterator[Violation]:
    yield from _named(subject, MAY_BE_LOST)


def _stale(subject: CheckContext) -> Iterator[Violation]:
    yield from _named(subject, *STALE)


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


RULES = (
    Rule(
        "LS001",
        "unbalanced byte accounting",
        "error",
        "The decoded, padding and lost units do not add up to the units of the input. Or a layer does not cover the "
        "units decoded by the layer below it. Part of the input is unaccounted for.",
        "Do not use totals of this input. Report the decoder bug together with the input.",
        _sums,
    ),
    Rule(
        "LS002",
        "lost or inconsistent data",
        "warning",
        "The accounting has lost units, or the decoder counted a stat of severity data_loss or error. The finding is "
        "an error for stats of severity error.",
        "Inspect the location with `lanescope dump`. Totals of these lanes are too low: record again with a larger "
        "buffer or copy the complete file.",
        _loss,
    ),
    Rule(
        "LS004",
        "capture without records",
        "warning",
        "The capture has a valid header and contains no records. The timeline is empty, which does not mean that the "
        "device was idle.",
        "Check that the instrumentation was compiled in and enabled, and that the buffer was copied after the device "
        "had finished.",
        _nothing,
    ),
    Rule(
        "LS005",
        "possible data loss",
        "notice",
        "A buffer is completely full, and the format does not count dropped records. All recorded data is consistent: "
        "the buffer may have been exactly large enough.",
        "Record again with a larger buffer if totals matter. A buffer with free space has lost nothing.",
        _perhaps,
    ),
    Rule(
        "LS006",
        "records of an earlier run",
        "warning",
        "The buffer was not cleared and contains records of an earlier run after those of this run. They are "
        "identified by their timestamps and excluded, unless an option keeps them.",
        "Clear the buffer before each run. The remaining records are not affected.",
        _stale,
    ),
)
