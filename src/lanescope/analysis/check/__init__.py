"""Checks: rules that a sound trace keeps, and the findings where it does not.

Example:
    >>> from lanescope.trace import TimeBase, TraceBuilder
    >>> builder = TraceBuilder(TimeBase())
    >>> lane = builder.track("core 0", kind="lane", role="core")
    >>> _ = builder.append("slices", track_id=lane, ts=[0, 20], dur=[30, 10], name=["load", "mma"])
    >>> for finding in run(builder.finish()):
    ...     print(finding.code, finding.severity, finding.place.track, finding.count, finding.detail)
    LS101 warning core 0 2 mma begins 10 ns before load ends
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lanescope.analysis.check.engine import RULES, evaluate, rules
from lanescope.analysis.check.model import (
    SAMPLE,
    SEVERITIES,
    CheckContext,
    Evidence,
    Finding,
    Location,
    Rule,
    Violation,
)
from lanescope.analysis.check.streaming import StreamingChecker
from lanescope.analysis.check.totals import StreamingTotals, Totals, totals
from lanescope.trace import ColumnSpec, Table, TableSpec, Trace

FINDINGS = TableSpec(
    "findings",
    "a judgement of a rule over the tables of a trace",
    (
        ColumnSpec("id", "int64", "dense, the worst first"),
        ColumnSpec("code", "text", "the rule's code"),
        ColumnSpec("severity", "text", "notice, warning, error"),
        ColumnSpec("title", "text", "the rule's title"),
        ColumnSpec("detail", "utf8", "what exactly is wrong here"),
        ColumnSpec("track_id", "int64", "lane it concerns", nullable=True, references="tracks"),
        ColumnSpec("track", "utf8", "path of that lane"),
        ColumnSpec("ts", "int64", "the earliest time it concerns", nullable=True, unit="ns", is_time=True),
        ColumnSpec("input_id", "int64", "input it concerns", nullable=True, references="inputs"),
        ColumnSpec("input", "utf8", "path of that input"),
        ColumnSpec("offset", "int64", "byte offset of the first fault in that input", nullable=True, unit="bytes"),
        ColumnSpec("count", "int64", "how many faults"),
        ColumnSpec("affected_fraction", "float64", "share of the trace's busy time", nullable=True, unit="1"),
        ColumnSpec("affected_lane_fraction", "float64", "share of the lane's busy time", nullable=True, unit="1"),
        ColumnSpec("evidence_table", "text", "table of the evidence rows"),
        ColumnSpec("evidence_id", "int64", "the first of them", nullable=True),
        ColumnSpec("help", "text", "what to do"),
    ),
)


def run(trace: Trace, *, select: Iterable[str] = (), ignore: Iterable[str] = ()) -> list[Finding]:
    """Examine a trace.

    Args:
        trace: the whole trace; a single batch lacks stats and accounting.
        select: codes, or beginnings of codes, of the rules to apply; empty: all.
        ignore: codes to leave out.

    Returns:
        The findings, the worst first, then by code, lane and time: one per rule and lane, clock, stat or input.

    Raises:
        UsageError: a choice fits no rule.
    """
    return evaluate(CheckContext(trace), rules(select, ignore))


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
                    "count",
                    "affected_fraction",
                    "affected_lane_fraction",
                    "help",
                )
            },
            **{
                name: [getattr(finding.place, name) for finding in findings]
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
    "Finding",
    "Location",
    "Rule",
    "StreamingChecker",
    "StreamingTotals",
    "Totals",
    "Violation",
    "rules",
    "run",
    "to_table",
    "totals",
]
