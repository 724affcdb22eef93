"""LS0xx: the file and its accounting."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanescope.analysis.check.model import Hit, Rule, Subject
from lanescope.trace import accounting
from lanescope.trace.stats import DEGRADED, DUPLICATE, UNMATCHED


def _sums(subject: Subject) -> Iterator[Hit]:
    for fault in accounting.faults(subject.trace.accounting, subject.trace.inputs):
        yield Hit(
            detail=fault.text, table="accounting", rows=np.array(fault.rows, np.int64), count=1, input_id=fault.input_id
        )


def _loss(subject: Subject) -> Iterator[Hit]:
    for row in subject.trace.accounting.rows():
        if row["lost"] > 0:
            whose = "the device dropped" if row["scope"] == "producer" else "not understood:"
            yield Hit(
                detail=f"{whose} {row['lost']} of {row['total']} {row['unit']}s",
                table="accounting",
                rows=np.array([row["id"]], np.int64),
                count=row["lost"],
                input_id=row["input_id"],
            )
    for row in subject.trace.stats.rows():
        if row["severity"] in ("data_loss", "error") and not row["name"].endswith((UNMATCHED, DUPLICATE, DEGRADED)):
            yield stat_hit(row, "error" if row["severity"] == "error" else None)


def stat_hit(row: dict[str, object], severity: str | None) -> Hit:
    """Return the hit that reports a row of ``stats``."""
    return Hit(
        detail=str(row["name"]),
        table="stats",
        rows=np.array([row["id"]], np.int64),
        count=row["count"],  # type: ignore[arg-type]
        severity=severity,
        track_id=row["track_id"],  # type: ignore[arg-type]
        ts=row["first_ts"],  # type: ignore[arg-type]
        input_id=row["input_id"],  # type: ignore[arg-type]
        offset=row["first_offset"],  # type: ignore[arg-type]
    )


RULES = (
    Rule(
        "LS001",
        "the accounting does not add up",
        "error",
        "The units that were decoded, are filler or were lost are not the units of the input, or a layer does not "
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
)
