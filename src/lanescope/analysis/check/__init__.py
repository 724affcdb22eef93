"""Checks: rules for traces, and findings for violations.

Example:
    >>> from lanescope.trace import TimeBase, TraceBuilder
    >>> builder = TraceBuilder(TimeBase())
    >>> lane = builder.track("core 0", kind="lane", role="core")
    >>> _ = builder.append("slices", track_id=lane, ts=[0, 20], dur=[30, 10], name=["load", "mma"])
    >>> for finding in run(builder.finish()):
    ...     print(finding.code, finding.severity, finding.location.track, finding.count, finding.detail)
    LS101 warning core 0 2 mma starts 10 ns before load ends
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lanescope.analysis.check.engine import RULES, evaluate, rules, rules_of
from lanescope.analysis.check.evidence_rows import EvidenceRow, EvidenceRows
from lanescope.analysis.check.model import SAMPLE, CheckContext, Evidence, Finding, Location, with_conditions
from lanescope.analysis.check.streaming import StreamingChecker
from lanescope.analysis.check.totals import StreamingTotals, Totals, totals
from lanescope.analysis.plausibility.thresholds import Thresholds
from lanescope.families.plugin_rules import plugin_rules
from lanescope.families.rules import SEVERITIES, Rule, Violation
from lanescope.trace import ColumnSpec, Table, TableSpec, Trace

FINDINGS = TableSpec(
    "findings",
    "result of a rule for a trace",
    (
        ColumnSpec("id", "int64", "row number, dense, in descending order of severity"),
        ColumnSpec("code", "text", "rule code"),
        ColumnSpec("severity", "text", "severity: notice, warning, error"),
        ColumnSpec("title", "text", "title of the rule"),
        ColumnSpec("detail", "utf8", "measured values of the violation"),
        ColumnSpec("stat", "text", "name of the stat that the finding comes from; empty if none"),
        ColumnSpec("track_id", "int64", "lane concerned; NULL if none", nullable=True, references="tracks"),
        ColumnSpec("track", "utf8", "path of the lane; empty if none"),
        ColumnSpec("ts", "int64", "earliest time concerned; NULL if none", nullable=True, unit="ns", is_time=True),
        ColumnSpec("input_id", "int64", "input concerned; NULL if none", nullable=True, references="inputs"),
        ColumnSpec("input", "utf8", "path of the input; empty if none"),
        ColumnSpec(
            "offset",
            "int64",
            "byte offset of the first violation in the input; NULL if unknown",
            nullable=True,
            unit="bytes",
        ),
        ColumnSpec("count", "int64", "number of violations"),
        ColumnSpec(
            "affected_fraction",
            "float64",
            "fraction of the busy time of the trace; NULL if the evidence is not slices",
            nullable=True,
            unit="1",
        ),
        ColumnSpec(
            "affected_lane_fraction",
            "float64",
            "fraction of the busy time of the lane; NULL if the evidence is not slices",
            nullable=True,
            unit="1",
        ),
        ColumnSpec("evidence_table", "text", "table of the evidence rows"),
        ColumnSpec("evidence_id", "int64", "first evidence row; NULL if none", nullable=True),
        ColumnSpec("help", "text", "recommended action"),
    ),
)


def run(
    trace: Trace,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    thresholds: Thresholds | None = None,
) -> list[Finding]:
    """Examine a trace.

    Args:
        trace: the whole trace; a single batch lacks stats and accounting.
        select: codes, or beginnings of codes, of the rules to apply; empty: all.
        ignore: codes to leave out.
        thresholds: of the plausibility rules; None: the defaults.

    Returns:
        The findings, the worst first, then by code, lane and time: one per rule and lane, clock, stat or input.

    Raises:
        UsageError: a choice fits no rule.
    """
    families = {str(name) for name in trace.inputs.values("family").tolist()}
    there = {rule.code for rule in (*RULES, *plugin_rules().rules, *rules_of(families))}
    chosen = rules(select, ignore, families=families)
    found = evaluate(CheckContext(trace, thresholds=thresholds), [rule for rule in chosen if rule.code in there])
    return with_conditions(found, np.arange(len(trace.slices)), trace.slices)


def to_table(findings: Sequence[Finding]) -> Table:
    """Return findings as a table, in their order; what exporters draw."""
    return Table.from_arrays(
        FINDINGS,
        {
            "id": range(len(findings)),
            **{
                name: [getattr(finding, name) for finding in findings]
                for name in (
                    "code",
                    "severity",
                    "title",
                    "detail",
                    "stat",
                    "count",
                    "affected_fraction",
                    "affected_lane_fraction",
                    "help",
                )
            },
            **{
                name: [getattr(finding.location, name) for finding in findings]
                for name in ("track_id", "track", "ts", "input_id", "input", "offset")
            },
            "evidence_table": [finding.evidence.table for finding in findings],
            "evidence_id": [next(iter(finding.evidence.sample), None) for finding in findings],
        },
    )


__all__ = [
    "FINDINGS",
    "RULES",
    "SAMPLE",
    "SEVERITIES",
    "CheckContext",
    "Evidence",
    "EvidenceRow",
    "EvidenceRows",
    "Finding",
    "Location",
    "Rule",
    "StreamingChecker",
    "StreamingTotals",
    "Thresholds",
    "Totals",
    "Violation",
    "rules",
    "run",
    "to_table",
    "totals",
]
