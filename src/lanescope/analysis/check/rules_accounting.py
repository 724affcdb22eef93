"""LS0xx: the file and its accounting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lanescope.analysis.check.model import CheckContext
from lanescope.families.rules import Rule, Violation
from lanescope.trace import accounting
from lanescope.trace.stats import DEGRADED, DUPLICATE, MAY_BE_LOST, NO_RECORDS, STALE, UNMATCHED


def _sums(subject: CheckContext) -> Iterator[Violation]:
    for fault in accounting.imbalances(subject.trace.accounting, subject.trace.inputs):
        yield Violation(
            detail=fault.text, table="accounting", rows=np.array(fault.rows, np.int64), count=1, input_id=fault.input_id
        )


def _loss(subject: CheckContext) -> Iterator[Violation]:
    for row in subject.trace.accounting.rows():
        if row["lost"] > 0:
            whose = "the device dropped" if row["scope"] == "producer" else "not understood:"
            yield Violation(
                detail=f"{whose} {row['lost']} of {row['total']} {row['unit']}s",
                table="accounting",
                rows=np.array([row["id"]], np.int64),
                count=row["lost"],
                input_id=row["input_id"],
            )
    for row in subject.trace.stats.rows():
        if row["severity"] in ("data_loss", "error") and not row["name"].endswith((UNMATCHED, DUPLICATE, DEGRADED)):
            yield stat_violation(subject, row, "error" if row["severity"] == "error" else None)


def stat_violation(subject: CheckContext, row: dict[str, Any], severity: str | None) -> Violation:
    """Return the hit that reports a row of ``stats``; where the stat has no time, at the gap that it made."""
    track, ts = row["track_id"], row["first_ts"]
    if ts is None:
        track, ts = _gap(subject, row) or (track, ts)
    return Violation(
        detail=str(row["name"]),
        table="stats",
        rows=np.array([row["id"]], np.int64),
        count=row["count"],
        severity=severity,
        track_id=track,
        ts=ts,
        input_id=row["input_id"],
        offset=row["first_offset"],
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
    """Return lane and begin of the first gap at the byte where a stat was first noted; None if there is none."""
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
    """Tell whether a track is the group or stands below it."""
    return 0 <= track < len(subject.tree) and group in subject.tree.ancestors(track)


RULES = (
    Rule(
        "LS001",
        "the accounting does not add up",
        "error",
        "The units that were decoded, are padding or were lost are not the units of the input, or a layer does not "
        "divide what the layer below it decoded. Something of the input went missing without a word.",
        "Trust no total of this input. It is a fault of the decoder: report it with the input.",
        _sums,
    ),
    Rule(
        "LS002",
        "data was lost or is contradictory",
        "warning",
        "The decoder counted units that it could not understand, or noted a fact of severity data_loss or error. "
        "Facts of severity error make the finding an error.",
        "Look at the place with `lanescope dump`. Was the buffer too small, or the file cut? Record again if you can; "
        "totals of the lanes concerned are too low.",
        _loss,
    ),
    Rule(
        "LS004",
        "nothing was recorded",
        "warning",
        "The capture is one, and holds no record: there is nothing to draw, and nothing to conclude from that.",
        "Was the instrumentation compiled in and switched on, and the buffer copied after the device had finished?",
        _nothing,
    ),
    Rule(
        "LS005",
        "it cannot be known whether data was lost",
        "notice",
        "A buffer is filled to its last place, and nobody counted whether there was more. Nothing that was recorded "
        "lacks a part, so perhaps that was all.",
        "If totals matter, record again with a larger buffer: what does not fill it lost nothing.",
        _perhaps,
    ),
    Rule(
        "LS006",
        "records of an earlier run",
        "warning",
        "The buffer was not cleared, so behind the records of this run it still holds what an earlier one left. They "
        "were told apart by their times and left out, unless the family was asked to keep them.",
        "Clear the buffer before each run. The other records are as good as those of a buffer that was cleared.",
        _stale,
    ),
)
