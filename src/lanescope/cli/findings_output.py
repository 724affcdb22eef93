"""Findings as blocks for people and pipes, as CSV and SARIF; their evidence rows."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import lanescope
from lanescope.cli.console import echo
from lanescope.cli.tables import look_of, print_table
from lanescope.view.finding_blocks import blocks, sums
from lanescope.view.formatting import escape, format_count, format_duration
from lanescope.view.tables.columns import column
from lanescope.view.tables.layout import wrapped

if TYPE_CHECKING:
    from lanescope.analysis.check import EvidenceRows, Finding, Rule, Totals

#: Findings of one rule listed on a terminal, and in the summary of a job.
_PLACES = 8

_KINDS = {
    "severity": "plain", "code": "plain", "location": "text", "ts": "count", "count": "count",
    "affected_fraction": "percent", "title": "text", "detail": "text",
}  # fmt: skip
#: Columns of evidence rows: times are exact, as they name rows.
_EVIDENCE = {
    "code": "plain", "table": "plain", "id": "id", "lane": "text", "ts": "count", "dur": "count", "name": "text"
}  # fmt: skip


def print_findings(
    args: argparse.Namespace,
    findings: Sequence[Finding],
    totals: tuple[Totals, Totals] | None,
    unit: str,
    *,
    rules: int,
    is_all: bool,
) -> None:
    """Print findings rule by rule, and what they do to totals; with ``--csv`` as a table.

    Args:
        args: the command line.
        findings: the findings.
        totals: sums over all slices, and over those that are no evidence; None if they are not known.
        unit: unit of times.
        rules: how many rules were applied.
        is_all: print all findings, else the first of each rule.
    """
    if args.csv:
        _print_csv(args, findings, unit)
    else:
        look = look_of(args)
        room = look.room(sys.stdout)
        width = 0 if room.is_wide else room.width
        shown, is_colored = findings if is_all else limit_per_rule(findings), look.has_color(sys.stdout)
        for line in blocks(findings, shown, args.input, unit, width, is_colored=is_colored):
            print(room.encoded(line))
        if findings:
            for line in wrapped(sums(findings, rules), width, " " * 4):
                print(line)
    if totals is not None and len(findings) > 1:
        _print_totals(*totals, unit)


def _print_csv(args: argparse.Namespace, findings: Sequence[Finding], unit: str) -> None:
    columns = [column(name, kind, unit if name == "ts" else "") for name, kind in _KINDS.items()]
    print_table(
        args,
        columns,
        (
            [
                finding.severity,
                finding.code,
                finding.location.track or finding.location.input,
                finding.location.ts,
                finding.count,
                finding.affected_fraction,
                finding.title,
                finding.detail,
            ]
            for finding in findings
        ),
    )


def _print_totals(everything: Totals, sound: Totals, unit: str) -> None:
    """Print what all findings together do to the sums, if that is worth telling."""
    from lanescope.analysis.plausibility.profile import WORTH_TELLING

    pairs = {"total": (everything.total, sound.total), "covered": (everything.covered, sound.covered)}
    if any(one - other > WORTH_TELLING * one for one, other in pairs.values()):
        parts = [
            f"{name} {format_duration(one, unit)} -> {format_duration(other, unit)}"
            for name, (one, other) in pairs.items()
        ]
        count = format_count(everything.slices - sound.slices, "slice")
        echo(f"all findings: without {count} of their evidence {', '.join(parts)}")


def print_evidence(
    args: argparse.Namespace,
    rows: EvidenceRows,
    findings: Sequence[Finding],
    codes: Sequence[str],
    unit: str,
) -> None:
    """Print the evidence rows of the findings of some rules, and how many are not shown."""
    if len(rows) or args.csv:
        columns = [column(name, kind, unit if kind == "count" else "") for name, kind in _EVIDENCE.items()]
        print_table(args, columns, rows.result())
    chosen = [finding for finding in findings if finding.code.startswith(tuple(codes))]
    if not chosen:
        echo(f"no findings of {', '.join(map(escape, codes))}")
    more = sum(len(finding.evidence.ids) for finding in chosen) - len(rows)
    if more:
        echo(f"... {format_count(more, 'more row')} (use --all, --json, or the SQL of --json)")


def print_sarif(findings: Sequence[Finding], rules: Sequence[Rule], artifact: str, docs_url: str) -> None:
    """Print a SARIF document."""
    import json

    from lanescope.io import sarif

    document = sarif.document(findings, rules, artifact, version=lanescope.__version__, docs_url=docs_url)
    print(json.dumps(document, indent=2))


def limit_per_rule(findings: Sequence[Finding]) -> list[Finding]:
    """Return the first few findings of each rule, in order: a clock error affects every lane."""
    seen: Counter[str] = Counter()
    shown = []
    for finding in findings:
        seen[finding.code] += 1
        if seen[finding.code] <= _PLACES:
            shown.append(finding)
    return shown


def hidden_by_rule(findings: Sequence[Finding], shown: Sequence[Finding]) -> Counter[str]:
    """Return how many findings of each rule are not shown."""
    return Counter(finding.code for finding in findings) - Counter(finding.code for finding in shown)
