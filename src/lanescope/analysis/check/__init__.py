"""Checks: rules that a sound trace keeps, and the findings where it does not.

Example:
    >>> from lanescope.trace import TimeBase, TraceBuilder
    >>> builder = TraceBuilder(TimeBase())
    >>> lane = builder.track("core 0", kind="lane", role="core")
    >>> _ = builder.append("slices", track_id=lane, ts=[0, 20], dur=[30, 10], name=["load", "mma"])
    >>> for finding in run(builder.finish()):
    ...     print(finding.code, finding.severity, finding.place.track, finding.count, finding.detail)
    LS101 warning core 0 2 mma starts 10 ns before load ends
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lanescope.analysis.check.engine import RULES, evaluate, rules, rules_of
from lanescope.analysis.check.model import SAMPLE, CheckContext, Evidence, Finding, Location
from lanescope.analysis.check.streaming import StreamingChecker
from lanescope.common.intervals import known_extents, union
from lanescope.families.rules import SEVERITIES, Rule, Violation
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
    families = {str(name) for name in trace.inputs.values("family").tolist()}
    there = {rule.code for rule in (*RULES, *rules_of(families))}
    chosen = rules(select, ignore, families=families)
    return evaluate(CheckContext(trace), [rule for rule in chosen if rule.code in there])


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over slices.

    Attributes:
        slices: how many, open ones included.
        open: how many have no known end.
        total: sum of the known lengths, in the trace's unit.
        covered: time that slices cover, lane by lane, what several share counted once.
    """

    slices: int
    open: int
    total: int
    covered: int


def totals(trace: Trace, without: Iterable[Finding] = ()) -> Totals:
    """Return the sums over all slices, or over those that are no evidence of the findings.

    Both together bound what is true: ``totals(trace)`` believes everything, ``totals(trace, findings)`` nothing that
    is in doubt.
    """
    slices = trace.slices
    sound = np.ones(len(slices), np.bool_)
    for finding in without:
        if finding.evidence.table == "slices":
            sound[finding.evidence.ids] = False
    closed = sound & slices.valid("dur")
    time = union(known_extents(slices).take(sound))
    return Totals(
        slices=int(np.count_nonzero(sound)),
        open=int(np.count_nonzero(sound) - np.count_nonzero(closed)),
        total=int(slices.values("dur")[closed].sum()),
        covered=int((time.end - time.begin).sum()),
    )


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
    "Totals",
    "Violation",
    "rules",
    "run",
    "to_table",
    "totals",
]
