"""LS0xx: input files and their accounting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from lanescope.analysis.check.common_rules.stat_findings import reports, stat_violation
from lanescope.analysis.check.model import CheckContext
from lanescope.errors import MissingDependencyError, UsageError
from lanescope.families import registry
from lanescope.families.rules import Rule, Violation
from lanescope.trace import accounting
from lanescope.trace.stats import StatSpec, reported_by


def _sums(subject: CheckContext) -> Iterator[Violation]:
    for fault in accounting.imbalances(subject.trace.accounting, subject.trace.inputs):
        yield Violation(
            detail=fault.text, table="accounting", rows=np.array(fault.rows, np.int64), count=1, input_id=fault.input_id
        )


def _loss(subject: CheckContext) -> Iterator[Violation]:
    told = [row for row in subject.trace.stats.rows() if reported_by(row)[0] == "LS002"]
    lost = [row for row in subject.trace.accounting.rows() if row["lost"] > 0]
    counted = _counted_twice(subject, lost, told)
    for row in lost:
        left = row["lost"] - counted.get(row["id"], 0)
        if left > 0:
            how = "dropped by the device" if row["scope"] == "producer" else "lost"
            yield Violation(
                detail=f"{row['lost']} of {row['total']} {row['unit']}s {how}",
                table="accounting",
                rows=np.array([row["id"]], np.int64),
                count=left,
                input_id=row["input_id"],
            )
    for row in told:
        yield stat_violation(subject, row)


def _counted_twice(subject: CheckContext, lost: list[dict[str, Any]], told: list[dict[str, Any]]) -> dict[int, int]:
    """Return how many units of rows of ``accounting``, by id, stats of the same input count as well.

    Stats declare which units they count. The stat gives its reason and its location. Of what a device dropped, which is
    in no byte of the input, the row is left out only if stats have counted all of it.
    """
    specs = _specs(subject) if lost else {}
    found: dict[int, int] = {}
    for row in lost:
        is_dropped = row["scope"] == "producer"
        counts = [
            stat["count"]
            for stat in told
            if stat["input_id"] == row["input_id"]
            and (spec := specs.get(stat["name"])) is not None
            and any(fnmatchcase(row["unit"], unit) for unit in (spec.dropped_units if is_dropped else spec.lost_units))
        ]
        if counts and (not is_dropped or sum(counts) >= row["lost"]):
            found[row["id"]] = sum(counts)
    return found


def _specs(subject: CheckContext) -> dict[str, StatSpec]:
    """Return the stats of the families of the inputs by name."""
    found: dict[str, StatSpec] = {}
    for name in sorted(set(subject.trace.inputs.values("family").tolist())):
        with suppress(UsageError, MissingDependencyError):
            found |= {stat.name: stat for stat in registry.family(name).stats}
    return found


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
        "LS003",
        "unused input",
        "notice",
        "Part of the input, or a file next to it, was recognized and not used. Records, labels or relations are "
        "missing on the timeline. The severity follows the stat, one step higher if more than 5% of the events are "
        "concerned.",
        "Read the description of the stat for what is missing. Pass the file or option that it names.",
        reports("LS003"),
    ),
    Rule(
        "LS004",
        "capture without records",
        "warning",
        "The capture has a valid header and contains no records. The timeline is empty, which does not mean that the "
        "device was idle.",
        "Check that the instrumentation was compiled in and enabled, and that the buffer was copied after the device "
        "had finished.",
        reports("LS004"),
    ),
    Rule(
        "LS005",
        "possible data loss",
        "notice",
        "A buffer is completely full, and the format does not count dropped records. All recorded data is consistent: "
        "the buffer may have been exactly large enough.",
        "Record again with a larger buffer if totals matter. A buffer with free space has lost nothing.",
        reports("LS005"),
    ),
    Rule(
        "LS006",
        "records of an earlier run",
        "warning",
        "The buffer was not cleared and contains records of an earlier run after those of this run. They are "
        "identified by their timestamps and excluded, unless an option keeps them.",
        "Clear the buffer before each run. The remaining records are not affected.",
        reports("LS006"),
    ),
)
